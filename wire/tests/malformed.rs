//! Malformed messages are refused, and none makes anybody allocate.

use super::*;
use crate::op_msg::MORE_TO_COME;
use crate::{Answer, FrameError, FrameReader, Header, encode};

/// An OP_MSG with the given bytes after its flags.
fn with_sections(flags: u32, sections: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode::begin(&mut out, 42, 0, 2013);
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(sections);
    encode::finish(&mut out, 0);
    out
}

fn body() -> Vec<u8> {
    [&[0], ping().bytes()].concat()
}

fn sequence(name: &[u8], content: &[u8], size: i32) -> Vec<u8> {
    [&[1][..], &size.to_le_bytes(), name, content].concat()
}

async fn read_with_length(length: i32) -> Result<Message, FrameError> {
    let header = Header { message_length: length, request_id: 1, response_to: 0, op_code: 2013 };
    FrameReader::new(&header.to_bytes()[..]).read(&Limits::STANDARD).await
}

#[tokio::test]
async fn lengths_outside_the_limits_are_refused_from_the_header_alone() {
    for length in [i32::MIN, -1, 0, 15, 48_000_001, i32::MAX] {
        match read_with_length(length).await {
            Err(FrameError::Malformed(m)) => {
                assert_eq!((m.code(), m.answer), (17, Answer::Silence));
                assert!(m.message().contains(&format!("msgLen {length} is invalid")), "{}", m.message());
                assert!(m.reply().is_none());
            }
            other => panic!("{length}: {other:?}"),
        }
    }
    // A length that is allowed and never arrives costs only what did arrive.
    assert!(matches!(read_with_length(48_000_000).await, Err(FrameError::Io(_))));
}

#[tokio::test]
async fn memory_grows_with_what_arrives_and_not_with_what_is_claimed() {
    let header = Header { message_length: 48_000_000, request_id: 1, response_to: 0, op_code: 2013 };
    for arrived in [0, 10, 1000, 100_000, 1_000_000] {
        let bytes = [&header.to_bytes()[..], &vec![0; arrived]].concat();
        let mut reader = FrameReader::new(bytes.as_slice());
        assert!(matches!(reader.read(&Limits::STANDARD).await, Err(FrameError::Io(_))));
        let most = 2 * (bytes.len() + crate::reader::READ_AHEAD);
        assert!(reader.capacity() <= most, "{} bytes for {arrived}", reader.capacity());
    }
}

#[tokio::test]
async fn memory_of_a_long_message_is_given_back() {
    let mut frames = Vec::new();
    encode::msg(&mut frames, 1, 0, 0, |w| w.binary("b", 0, &vec![0; 5_000_000]));
    encode::msg(&mut frames, 2, 0, 0, |w| w.i32("ping", 1));
    let mut reader = FrameReader::new(frames.as_slice());
    for id in [1, 2] {
        assert_eq!(reader.read(&Limits::STANDARD).await.expect("a message").request_id(), id);
    }
    assert!(reader.read(&Limits::STANDARD).await.is_err());
    assert!(reader.capacity() < 100_000, "{}", reader.capacity());
}

#[test]
fn the_limit_before_authentication_is_lower() {
    let mut frame = Vec::new();
    encode::msg(&mut frame, 1, 0, 0, |w| w.binary("b", 0, &[0; 16_384]));
    let codecs = &mut Codecs::default();
    let before = decode(frame.into(), &Limits::BEFORE_AUTHENTICATION, all(), codecs);
    assert_eq!(before.expect_err("too long").code(), 17);
}

#[test]
fn the_declared_length_must_be_the_real_one() {
    let mut frame = with_sections(0, &body());
    frame.push(0);
    assert_eq!(refused(&frame).code(), 17);
    assert_eq!(refused(&[]).code(), 17);
}

#[test]
fn opcodes_that_are_gone_or_never_were_are_refused() {
    for op in [0, 1000, 2001, 2002, 2005, 2006, 2007, 2010, 2011, -1] {
        let mut frame = with_sections(0, &body());
        frame[12..16].copy_from_slice(&i32::to_le_bytes(op));
        assert_eq!(refused(&frame).answer, Answer::Silence, "opcode {op}");
    }
}

#[test]
fn unknown_required_flags_are_refused_and_unknown_optional_ones_are_not() {
    for bit in 0..32 {
        let frame = with_sections(1 << bit, &body());
        match bit {
            0 => assert_eq!((refused(&frame).code(), refused(&frame).goes_on), (288, false)),
            1 | 16.. => assert!(decoded(&frame).is_ok(), "bit {bit}"),
            _ => assert_eq!((refused(&frame).code(), refused(&frame).goes_on), (223, false), "bit {bit}"),
        }
    }
}

#[test]
fn each_fault_of_the_sections_has_its_code_and_is_answered() {
    let doc = ping();
    let size = |n: usize| (4 + 2 + n) as i32;
    let good = sequence(b"a\0", doc.bytes(), size(doc.bytes().len()));
    let cases: Vec<(&str, Vec<u8>, i32)> = vec![
        ("no section", vec![], 40587),
        ("only a sequence", good.clone(), 40587),
        ("two bodies", [body(), body()].concat(), 40430),
        ("unknown kind", [body(), vec![2]].concat(), 40432),
        ("same sequence twice", [body(), good.clone(), good.clone()].concat(), 40431),
        ("sequence named as a field", [body(), sequence(b"ping\0", &[], 9)].concat(), 40433),
        ("sequence without a size", [body(), vec![1, 0, 0]].concat(), 15),
        ("sequence longer than the message", [body(), sequence(b"a\0", doc.bytes(), 1000)].concat(), 15),
        ("negative sequence size", [body(), sequence(b"a\0", doc.bytes(), -1)].concat(), 15),
        ("size below its own field", [body(), sequence(b"a\0", doc.bytes(), 3)].concat(), 15),
        ("name without an end", [body(), sequence(b"abcd", &[], 8)].concat(), 15),
        ("name that is not UTF-8", [body(), sequence(b"\xff\0", &[], 6)].concat(), 22),
        ("sequence that cuts its document", [body(), sequence(b"a\0", doc.bytes(), size(7))].concat(), 22),
        ("document of length 4", vec![0, 4, 0, 0, 0], 22),
        ("document of negative length", vec![0, 255, 255, 255, 255, 0], 22),
        ("document longer than the message", vec![0, 6, 0, 0, 0, 0], 22),
        ("document without an end", vec![0, 5, 0, 0, 0, 1], 22),
        ("cut length", vec![0, 5, 0], 22),
    ];
    for (name, sections, code) in cases {
        let error = refused(&with_sections(0, &sections));
        assert_eq!(
            (error.code(), error.request_id, error.answer, error.goes_on),
            (code, 42, Answer::OpMsg, true),
            "{name}: {error:?}"
        );
        let reply = msg(&error.reply().expect("an answer"));
        assert_eq!(reply.response_to(), 42);
        assert_eq!(reply.body().get_i64("code"), Some(code as i64), "{name}");
        let silent = refused(&with_sections(MORE_TO_COME, &sections));
        assert!(silent.reply().is_none(), "{name}: a reply that nobody waits for");
    }
}

#[test]
fn a_thousand_sequences_are_too_many() {
    let many: Vec<u8> = (0..1000).flat_map(|i| sequence(format!("{i:04}\0").as_bytes(), &[], 9)).collect();
    assert_eq!(refused(&with_sections(0, &[body(), many].concat())).code(), 40431);
}

/// `{"": {"": ... {} }}` with `depth` levels in all.
fn nested(depth: usize) -> Vec<u8> {
    let mut doc = vec![5, 0, 0, 0, 0];
    for _ in 1..depth {
        let length = (doc.len() + 7) as u32;
        doc = [&length.to_le_bytes()[..], &[3, 0], &doc, &[0]].concat();
    }
    doc
}

#[test]
fn nesting_ends_at_the_limit_and_costs_no_stack() {
    let with = |depth| with_sections(0, &[&[0][..], &nested(depth)].concat());
    assert!(decoded(&with(200)).is_ok());
    assert!(decoded(&with(201)).is_err());
    assert!(decoded(&with(20_000)).is_err());
}

#[test]
fn a_document_may_not_be_longer_than_one_that_can_be_stored() {
    let mut frame = Vec::new();
    encode::msg(&mut frame, 1, 0, 0, |w| w.binary("b", 0, &vec![0; 16 * 1024 * 1024 + 16 * 1024]));
    assert_eq!(refused(&frame).code(), 10334);
}

#[test]
fn op_query_outside_cmd_and_op_query_lies_are_answered_in_op_reply() {
    let mut frame = Vec::new();
    encode::query(&mut frame, 8, "admin", |w| w.i32("ismaster", 1));
    let find = [&frame[..20], b"test.coll\0\0\0\0\0\0\0\0\0\x05\0\0\0\0"].concat();
    let cases = [(find, 5739101), (frame[..18].to_vec(), 15), (frame[..frame.len() - 1].to_vec(), 22)];
    for (mut frame, code) in cases {
        encode::finish(&mut frame, 0);
        let error = refused(&frame);
        assert_eq!((error.code(), error.answer), (code, Answer::OpReply), "{error:?}");
        let Ok(Message::Reply(reply)) = decoded(&error.reply().expect("an answer")) else {
            panic!("no OP_REPLY")
        };
        assert_eq!(reply.response_to(), 8);
    }
}
