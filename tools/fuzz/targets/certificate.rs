//! A certificate as a client shows it: the name of its holder, its roles and its cluster. Only what a trusted authority has signed
//! is read; it may be as odd as any.
#![no_main]
use libfuzzer_sys::fuzz_target;
use peer::Peer;
// Both files read certificates by it.
use x509_parser as _;

// The server's own files, without the rest of it, which nothing here needs built with the fuzzer's instruments.
#[path = "../../../src/server/tls/peer.rs"]
mod peer;
#[path = "../../../src/server/tls/subject.rs"]
mod subject;

fuzz_target!(|data: &[u8]| {
    if let Ok(Peer { subject, roles, cluster, .. }) = Peer::of(data) {
        assert_eq!(subject, subject::subject_name(data).unwrap_or_default());
        drop((roles, cluster));
    }
});
