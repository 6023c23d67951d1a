//! The body and sequences of a command as a server walks them before it knows the command: its name, `$db`, the
//! generic fields, and its statements. The message around them is made here, so that all of the input is theirs.
#![no_main]
use document::{Doc, Document};
use libfuzzer_sys::fuzz_target;
use wire::op_compressed::Codecs;
use wire::{Limits, Message, ReplyTo, decode, encode};

const GENERIC: [&str; 12] = [
    "$db",
    "lsid",
    "txnNumber",
    "autocommit",
    "startTransaction",
    "readConcern",
    "writeConcern",
    "maxTimeMS",
    "comment",
    "shardVersion",
    "databaseVersion",
    "$clusterTime",
];

fuzz_target!(|data: &[u8]| {
    let mut frame = Vec::new();
    encode::begin(&mut frame, 1, 0, 2013);
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(data);
    encode::finish(&mut frame, 0);
    let decoded = decode(frame.into(), &Limits::STANDARD, Default::default(), &mut Codecs::default());
    let Ok(message) = decoded else { return };
    let _ = ReplyTo::to(&message);
    let Message::Msg(request) = message else { return };
    let body = request.body();
    let _ = request.command_name().len();
    for name in GENERIC {
        if let Some(value) = body.get_present(name) {
            let _ =
                (value.as_i64(), value.as_uuid(), value.truthy(), value.as_document().map(Doc::to_document));
        }
    }
    for sequence in request.sequences() {
        let documents: Vec<Document> = request.documents(sequence).map(Doc::to_document).collect();
        assert_eq!(documents.len(), sequence.len());
    }
});
