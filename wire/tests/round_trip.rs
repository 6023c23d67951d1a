//! Messages survive being written and read.

use super::*;
use crate::op_msg::{CHECKSUM_PRESENT, EXHAUST_ALLOWED, MORE_TO_COME};
use crate::{FrameError, FrameReader, FrameWriter, ReplyTo, encode, op_reply};
use document::Doc;
use proptest::prelude::*;
use tokio::io::AsyncWriteExt;

/// `{hello: 1, helloOk: true, $db: "admin"}` as drivers put it on the wire.
const HELLO_MSG: &[u8] = b"\x3e\0\0\0\x07\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\
    \x29\0\0\0\x10hello\0\x01\0\0\0\x08helloOk\0\x01\x02$db\0\x06\0\0\0admin\0\0";

/// The first message of the node driver: OP_QUERY on admin.$cmd with `{ismaster: 1, helloOk: true, compression: ["none"]}`.
const HELLO_QUERY: &[u8] = b"\x62\0\0\0\x01\0\0\0\0\0\0\0\xd4\x07\0\0\x04\0\0\0admin.$cmd\0\0\0\0\0\xff\xff\xff\xff\
    \x3b\0\0\0\x10ismaster\0\x01\0\0\0\x08helloOk\0\x01\x04compression\0\x11\0\0\0\x020\0\x05\0\0\0none\0\0\0";

#[test]
fn golden_hello_in_op_msg() {
    let hello = msg(HELLO_MSG);
    assert_eq!((hello.request_id(), hello.command_name()), (7, "hello"));
    assert_eq!(hello.body().get_str("$db"), Some("admin"));
    let mut again = Vec::new();
    encode::msg(&mut again, 7, 0, 0, |w| w.fields_of(hello.body()));
    assert_eq!(again, HELLO_MSG);
}

#[test]
fn golden_hello_in_op_query() {
    let Ok(Message::Query(hello)) = decoded(HELLO_QUERY) else { panic!("{:?}", decoded(HELLO_QUERY)) };
    assert_eq!((hello.database(), hello.command_name()), ("admin", "ismaster"));
    assert!(hello.check_supported().is_ok());
    let mut reply = Vec::new();
    op_reply::write(&mut reply, 9, 1, 0, |w| w.double("ok", 1.0));
    let golden: &[u8] =
        b"\x35\0\0\0\x09\0\0\0\x01\0\0\0\x01\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\
        \x11\0\0\0\x01ok\0\0\0\0\0\0\0\xf0\x3f\0";
    assert_eq!(reply, golden);
    let Ok(Message::Reply(reply)) = decoded(golden) else { panic!("not an OP_REPLY") };
    assert_eq!((reply.response_to(), reply.body().get_i64("ok")), (1, Some(1)));
}

#[test]
fn other_commands_by_op_query_are_error_352() {
    let mut frame = Vec::new();
    encode::query(&mut frame, 3, "test", |w| w.string("find", "c"));
    let Ok(Message::Query(find)) = decoded(&frame) else { panic!("not an OP_QUERY") };
    let error = find.check_supported().expect_err("find by OP_QUERY");
    assert_eq!(error.code, 352);
    assert!(
        error
            .message
            .starts_with("Unsupported OP_QUERY command: find. The client driver may require an upgrade")
    );
}

#[test]
fn a_wrapped_query_is_unwrapped() {
    let mut frame = Vec::new();
    encode::query(&mut frame, 3, "admin", |w| {
        w.document_with("$query", |w| w.i32("isMaster", 1));
        w.document_with("$readPreference", |w| w.string("mode", "primary"));
    });
    let Ok(Message::Query(hello)) = decoded(&frame) else { panic!("not an OP_QUERY") };
    assert_eq!(hello.command_name(), "isMaster");
}

fn insert(flags: u32, docs: &[DocBuf]) -> Vec<u8> {
    let mut out = Vec::new();
    let start = encode::begin_msg(&mut out, 5, 0, flags, |w| w.string("insert", "c"));
    encode::sequence(&mut out, "documents", docs.iter().map(|d| d.doc()));
    encode::finish_msg(&mut out, start);
    out
}

#[test]
fn sequences_keep_their_documents_in_order() {
    let docs: Vec<DocBuf> = (0..100).map(|i| DocWriter::build(|w| w.i32("_id", i))).collect();
    let insert = msg(&insert(MORE_TO_COME | EXHAUST_ALLOWED, &docs));
    assert!(insert.more_to_come() && insert.exhaust_allowed() && !insert.has_checksum());
    let read = insert.sequence("documents").expect("the sequence");
    assert_eq!(read.len(), 100);
    assert!(read.map(Doc::to_owned).eq(docs.iter().cloned()));
    let whole = insert.to_single_document();
    let array = whole.get("documents").and_then(|v| v.as_array()).expect("the array");
    assert_eq!(
        array.element("99").and_then(|e| e.value().as_document()).and_then(|d| d.get_i64("_id")),
        Some(99)
    );
    assert!(insert.sequence("updates").is_none());
}

#[test]
fn an_empty_sequence_is_a_sequence() {
    let insert = msg(&insert(0, &[]));
    assert_eq!(insert.sequence("documents").map(|d| d.count()), Some(0));
    assert!(insert.sequences()[0].is_empty());
}

#[test]
fn a_checksum_is_verified_and_given_back() {
    let frame = insert(CHECKSUM_PRESENT, &[ping()]);
    let read = decoded(&frame).expect("the checksum is right");
    for at in 20..frame.len() {
        let mut broken = frame.clone();
        broken[at] ^= 0x40;
        assert_eq!(refused(&broken).code(), 288, "byte {at}");
    }
    let mut writer = FrameWriter::new(tokio::io::sink());
    let reply = msg(writer.build(&ReplyTo::to(&read), 0, |w| w.i32("ok", 1)));
    assert!(reply.has_checksum());
    assert_eq!(reply.response_to(), 5);
}

#[tokio::test]
async fn bytes_may_arrive_one_by_one() {
    let frames = [insert(CHECKSUM_PRESENT, &[ping()]), HELLO_QUERY.to_vec(), insert(0, &[])].concat();
    let (mut there, here) = tokio::io::duplex(1);
    let send = runtime::spawn(async move { there.write_all(&frames).await });
    let mut reader = FrameReader::new(here);
    assert!(matches!(reader.read(&Limits::STANDARD).await, Ok(Message::Msg(_))));
    assert!(matches!(reader.read(&Limits::STANDARD).await, Ok(Message::Query(_))));
    assert!(matches!(reader.read(&Limits::STANDARD).await, Ok(Message::Msg(_))));
    assert!(matches!(reader.read(&Limits::STANDARD).await, Err(FrameError::Closed)));
    send.await.expect("joined").expect("sent");
}

#[tokio::test]
async fn many_messages_in_one_read_come_out_one_by_one() {
    let mut frames = Vec::new();
    (0..2000).for_each(|i| encode::msg(&mut frames, i, 0, 0, |w| w.i32("ping", i)));
    let mut reader = FrameReader::new(frames.as_slice());
    for i in 0..2000 {
        let message = reader.read(&Limits::STANDARD).await.expect("a message");
        assert_eq!((message.request_id(), message.body().get_i64("ping")), (i, Some(i as i64)));
    }
    assert!(matches!(reader.read(&Limits::STANDARD).await, Err(FrameError::Closed)));
}

#[tokio::test]
async fn a_cancelled_read_loses_nothing() {
    let (mut there, here) = tokio::io::duplex(64);
    let mut reader = FrameReader::new(here);
    for part in HELLO_MSG.chunks(9) {
        let early =
            tokio::time::timeout(std::time::Duration::from_millis(2), reader.read(&Limits::STANDARD)).await;
        assert!(early.is_err());
        there.write_all(part).await.expect("sent");
    }
    assert_eq!(reader.read(&Limits::STANDARD).await.expect("whole").request_id(), 7);
}

#[tokio::test]
async fn a_stream_that_ends_within_a_message_is_an_error() {
    for cut in 1..HELLO_MSG.len() {
        let mut reader = FrameReader::new(&HELLO_MSG[..cut]);
        assert!(matches!(reader.read(&Limits::STANDARD).await, Err(FrameError::Io(_))), "cut at {cut}");
    }
}

proptest! {
    #[test]
    fn whatever_is_written_is_read(
        id: i32, more: bool, checksum: bool, compressor in 0u8..5,
        text in ".{0,80}", blobs in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 0..8),
    ) {
        let docs: Vec<DocBuf> = blobs.iter().map(|b| DocWriter::build(|w| w.binary("b", 0, b))).collect();
        let flags = if more { MORE_TO_COME } else { 0 } | if checksum { CHECKSUM_PRESENT } else { 0 };
        let mut out = Vec::new();
        let start = encode::begin_msg(&mut out, id, 1, flags, |w| w.string("text", &text));
        encode::sequence(&mut out, "docs", docs.iter().map(|d| d.doc()));
        encode::finish_msg(&mut out, start);
        if let Some(c) = Compressor::from_id(compressor).filter(|_| !checksum) {
            crate::op_compressed::compress_in_place(&mut out, 0, c, &mut Codecs::default());
        }
        let read = msg(&out);
        let written: String = text.clone();
        prop_assert_eq!(read.body().get_str("text"), Some(written.as_str()));
        prop_assert_eq!((read.request_id(), read.more_to_come()), (id, more));
        prop_assert!(read.sequence("docs").expect("docs").map(Doc::to_owned).eq(docs));
    }

    #[test]
    fn a_damaged_message_is_never_a_panic(at in 0usize..200, to: u8, cut in 0usize..200) {
        let mut frame = insert(0, &[ping(), ping()]);
        let at = at % frame.len();
        frame[at] = to;
        frame.truncate(frame.len() - cut % frame.len());
        if let Ok(message) = decoded(&frame) {
            let _ = message.body().to_document();
        }
    }
}

/// Prints what reading costs: `cargo test -p wire --release -- --ignored --nocapture read_cost`.
#[tokio::test]
#[ignore]
async fn read_cost() {
    let mut frames = Vec::new();
    const N: u32 = 200_000;
    for i in 0..N as i32 {
        encode::msg(&mut frames, i, 0, 0, |w| {
            w.string("find", "collection");
            w.document_with("filter", |w| w.i32("_id", i));
            w.i32("limit", 1);
            w.bool("singleBatch", true);
            w.document_with("lsid", |w| w.uuid("id", &[7; 16]));
            w.string("$db", "test");
        });
    }
    let mut reader = FrameReader::new(frames.as_slice());
    let start = runtime::Instant::now();
    for _ in 0..N {
        reader.read(&Limits::STANDARD).await.expect("a message");
    }
    println!("{:?} a message of {} bytes", start.elapsed() / N, frames.len() / N as usize);
}
