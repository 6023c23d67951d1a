//! What goes over the wire, byte by byte, with a client that obeys nothing.

use super::*;
use crate::log::Logger;
use crate::options::{Options, Program};
use crate::service::Service;
use document::{Document, doc};
use std::time::Duration;
use tokio::io::{AsyncReadExt, DuplexStream};
use wire::op_msg::EXHAUST_ALLOWED;

struct Raw {
    stream: DuplexStream,
    service: Arc<Service>,
}

/// A router without a cluster needs no directory and knows every command used here.
fn connect() -> Raw {
    let service = Service::new(Options::defaults(Program::Mongos), Arc::new(Logger::silent()), 27017, None);
    let service = Arc::new(service);
    let connection = Arc::new(Connection::new(1, "test".to_string(), false));
    service.operations.add_connection(&connection);
    let (stream, theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(serve(service.clone(), connection, reader, writer));
    Raw { stream, service }
}

fn msg(flags: u32, command: Document) -> Vec<u8> {
    let mut out = Vec::new();
    encode::msg(&mut out, 7, 0, flags, |w| {
        command.write_fields(w);
        w.string("$db", "admin");
    });
    out
}

impl Raw {
    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }
    /// One whole message, or `None` when the connection closes.
    async fn receive(&mut self) -> Option<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).await.ok()?;
        let mut message = vec![0; u32::from_le_bytes(head) as usize];
        message[..4].copy_from_slice(&head);
        self.stream.read_exact(&mut message[4..]).await.ok()?;
        Some(message)
    }
    async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(50), self.receive()).await.is_err()
    }
}

fn word(message: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(message[at..at + 4].try_into().unwrap())
}
fn body(message: &[u8]) -> Document {
    Doc::from_validated(&message[BODY_AT..]).to_document()
}

#[tokio::test]
async fn a_reply_answers_its_request() {
    let mut c = connect();
    c.send(&msg(0, doc! {"ping": 1})).await;
    let reply = c.receive().await.unwrap();
    assert_eq!((word(&reply, 8), word(&reply, 12), word(&reply, 16)), (7, 2013, 0));
    assert_eq!(body(&reply), doc! {"ok": 1.0});
}

#[tokio::test]
async fn more_to_come_is_run_and_not_answered() {
    let mut c = connect();
    c.send(&msg(MORE_TO_COME, doc! {"ping": 1})).await;
    c.send(&msg(MORE_TO_COME, doc! {"nosuch": 1})).await;
    assert!(c.is_silent().await);
    c.send(&msg(0, doc! {"ping": 1})).await;
    assert!(c.receive().await.is_some());
    assert_eq!(c.service.counters.network.requests.get(), 3);
}

#[tokio::test]
async fn a_request_with_a_checksum_is_answered_with_one() {
    let mut c = connect();
    c.send(&msg(CHECKSUM_PRESENT, doc! {"ping": 1})).await;
    let reply = c.receive().await.unwrap();
    assert_eq!(word(&reply, 16), CHECKSUM_PRESENT);
    let mut wrong = msg(CHECKSUM_PRESENT, doc! {"ping": 1});
    *wrong.last_mut().unwrap() ^= 1;
    c.send(&wrong).await;
    assert!(c.receive().await.is_none());
}

#[tokio::test]
async fn hello_comes_by_op_query_and_nothing_else_does() {
    let mut c = connect();
    let query = |command: Document| {
        let mut out = Vec::new();
        encode::query(&mut out, 9, "admin", |w| command.write_fields(w));
        out
    };
    c.send(&query(doc! {"isMaster": 1, "helloOk": true})).await;
    let reply = c.receive().await.unwrap();
    assert_eq!((word(&reply, 8), word(&reply, 12), word(&reply, 32)), (9, 1, 1));
    let hello = Doc::from_validated(&reply[36..]).to_document();
    assert_eq!(
        (hello.get_str("msg"), hello.get_bool("ismaster"), hello.get_bool("helloOk")),
        (Some("isdbgrid"), Some(true), Some(true))
    );
    c.send(&query(doc! {"ping": 1})).await;
    let reply = c.receive().await.unwrap();
    let error = Doc::from_validated(&reply[36..]).to_document();
    assert_eq!(
        (error.get_i64("code"), error.get_str("codeName")),
        (Some(352), Some("UnsupportedOpQueryCommand"))
    );
    c.send(&query(doc! {"hello": 1})).await;
    assert!(c.receive().await.is_some());
}

#[tokio::test]
async fn an_exhaust_hello_goes_on_by_itself() {
    let mut c = connect();
    let version = c.service.topology.version();
    let hello = doc! {"hello": 1, "topologyVersion": version.to_document(), "maxAwaitTimeMS": 20};
    c.send(&msg(EXHAUST_ALLOWED, hello)).await;
    let mut answers_to = 7;
    for _ in 0..3 {
        let reply = c.receive().await.unwrap();
        assert_eq!((word(&reply, 8), word(&reply, 16)), (answers_to, MORE_TO_COME));
        assert_eq!(body(&reply).get_str("msg"), Some("isdbgrid"));
        answers_to = word(&reply, 4);
    }
    c.service.topology.publish(crate::topology::Membership::Standalone);
    let changed = loop {
        let reply = body(&c.receive().await.unwrap());
        if reply.get_path("topologyVersion.counter").and_then(|v| v.as_i64()) == Some(1) {
            break reply;
        }
    };
    assert!(changed.get("msg").is_none());
}

#[tokio::test]
async fn hello_negotiates_what_both_have() {
    let mut c = connect();
    let offer = document::array!["none", "zlib", "unknown", "snappy"];
    c.send(&msg(0, doc! {"hello": 1, "compression": offer})).await;
    let reply = body(&c.receive().await.unwrap());
    assert_eq!(reply.get("compression"), Some(&document::array!["zlib", "snappy"]));
    let mut compressed = msg(0, doc! {"ping": 1});
    compress_in_place(&mut compressed, 0, Compressor::Snappy, &mut Codecs::default());
    c.send(&compressed).await;
    assert_eq!(word(&c.receive().await.unwrap(), 12), 2012);
    // Not negotiated: the connection ends.
    let mut compressed = msg(0, doc! {"ping": 1});
    compress_in_place(&mut compressed, 0, Compressor::Zstd, &mut Codecs::default());
    c.send(&compressed).await;
    assert!(c.receive().await.is_none());
}

#[tokio::test]
async fn garbage_ends_the_connection_and_bad_bson_says_why() {
    let mut c = connect();
    c.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(c.receive().await.is_none());
    let mut c = connect();
    let mut bad = msg(0, doc! {"ping": "x"});
    // The string's length now reaches beyond its document.
    bad[BODY_AT + 4 + 6] = 200;
    c.send(&bad).await;
    assert_eq!(body(&c.receive().await.unwrap()).get_i64("code"), Some(22));
    assert!(c.receive().await.is_none());
}

#[tokio::test]
async fn a_request_without_a_database_is_an_error() {
    let mut c = connect();
    let mut out = Vec::new();
    encode::msg(&mut out, 7, 0, 0, |w| w.i32("ping", 1));
    c.send(&out).await;
    assert_eq!(body(&c.receive().await.unwrap()).get_i64("code"), Some(40571));
    out.clear();
    encode::msg(&mut out, 7, 0, 0, |_| {});
    c.send(&out).await;
    assert_eq!(body(&c.receive().await.unwrap()).get_i64("code"), Some(59));
}
