//! A whole message, header included: every opcode, compression, limits before and after authentication.
#![no_main]
use libfuzzer_sys::fuzz_target;
use wire::op_compressed::Codecs;
use wire::{Compressor, Limits, Message, decode, encode};

fuzz_target!(|data: &[u8]| {
    // The length is made right, or hardly any input would get past it; whether it is checked, unit tests say.
    let mut frame = data.to_vec();
    if frame.len() >= 16 && frame[3] != 0xFF {
        encode::finish(&mut frame, 0);
    }
    let all =
        [Compressor::Noop, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd].into_iter().collect();
    let limits = Limits { max_message: 1 << 20, ..Limits::STANDARD };
    for limits in [limits, Limits::BEFORE_AUTHENTICATION] {
        match decode(frame.clone().into(), &limits, all, &mut Codecs::default()) {
            Ok(message) => read(&message),
            Err(malformed) => drop(malformed.reply()),
        }
    }
});

fn read(message: &Message) {
    let _ = (message.request_id(), message.body().to_document());
    match message {
        Message::Msg(m) => {
            let whole = m.to_single_document();
            // A message that was accepted can be written again and is accepted again, as the same message.
            let mut again = Vec::new();
            let start = encode::begin_msg(&mut again, 1, 0, 0, |w| w.fields_of(m.body()));
            for sequence in m.sequences() {
                encode::sequence(&mut again, m.identifier(sequence), m.documents(sequence));
            }
            encode::finish_msg(&mut again, start);
            let none = Default::default();
            match decode(again.into(), &Limits::STANDARD, none, &mut Codecs::default()) {
                Ok(Message::Msg(second)) => assert_eq!(second.to_single_document(), whole),
                other => panic!("written again it is {other:?}"),
            }
        }
        Message::Query(q) => {
            let _ = (q.database().len(), q.check_supported());
        }
        Message::Reply(r) => {
            let _ = r.flags();
        }
    }
}
