//! A login by password, message by message: the first and the last of a client, what a server stored of the user, and a client
//! that a server answers. An input is these texts, one a line.
#![no_main]
use document::doc;
use libfuzzer_sys::fuzz_target;
use wire::scram::{ClientFirst, ClientSide, Credential, Mechanism, ServerSide, secret};

fuzz_target!(|data: &[u8]| {
    let mut lines = data.splitn(3, |b| *b == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (first, last, stored) = (line(), line(), line());
    for mechanism in [Mechanism::Sha1, Mechanism::Sha256] {
        serve(mechanism, first, last);
        if let Ok(text) = std::str::from_utf8(stored) {
            let key = doc! { "iterationCount": 1, "salt": text, "storedKey": text, "serverKey": text };
            let _ = Credential::of_document(mechanism, &key);
            let _ = secret(mechanism, text, text);
        }
        let (client, _) = ClientSide::begin(mechanism, "u");
        let _ = client.is_signed(last);
    }
});

fn serve(mechanism: Mechanism, first: &[u8], last: &[u8]) {
    let Ok(first) = ClientFirst::parse(first) else { return };
    assert!(!first.user.is_empty());
    let credential = Credential::derive(mechanism, b"secret", vec![7; mechanism.salt_length()], 1);
    let (server, message) = ServerSide::begin(first, mechanism, vec![credential]);
    // The nonce is new each time: what comes after it in the first part is the input's.
    let nonce = message.split(',').next().unwrap_or_default();
    let last = String::from_utf8_lossy(last).replace("r=*", nonce);
    assert!(server.finish(last.as_bytes()).is_err(), "nobody guesses the proof");
}
