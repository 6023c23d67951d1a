//! What goes over the wire, byte by byte, with a client that obeys nothing.

use super::*;
use crate::dispatch::{Context, Handler, Kind, Reply, Request};
use crate::log::Logger;
use crate::options::{Options, Program};
use crate::service::Service;
use document::{Document, doc};
use node::failpoints::Mode;
use std::time::Duration;
use tokio::io::{AsyncReadExt, DuplexStream};
use wire::op_msg::{EXHAUST_ALLOWED, NO_REPLY};

struct Raw {
    stream: DuplexStream,
    service: Arc<Service>,
}

/// A router without a cluster needs no directory and knows every command used here.
fn connect() -> Raw {
    let service = Service::new(Options::defaults(Program::Mongos), Arc::new(Logger::silent()), 27017, None);
    let service = Arc::new(service);
    let connection = Arc::new(Connection::new(1, "test".to_string(), Entrance::Tcp));
    service.operations.add_connection(&connection);
    let (stream, theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(theirs);
    runtime::spawn(serve(service.clone(), connection, reader, writer));
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
    /// Waits until nothing runs any more.
    async fn becomes_idle(&self) {
        while self.service.operations.active() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
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
async fn a_long_reply_is_cut_and_compressed_whole() {
    let mut c = connect();
    c.send(&msg(0, doc! {"hello": 1, "compression": ["zlib"]})).await;
    assert!(body(&c.receive().await.unwrap()).contains_key("compression"));
    let mut unknown = Document::new();
    unknown.push("x".repeat(2 << 20), 1);
    let mut request = msg(0, unknown);
    compress_in_place(&mut request, 0, Compressor::Zlib, &mut Codecs::default());
    // The second time with what the first one left to be used again.
    for _ in 0..2 {
        c.send(&request).await;
        let reply = c.receive().await.unwrap();
        assert_eq!((word(&reply, 12), word(&reply, 16)), (op_code::COMPRESSED as u32, op_code::MSG as u32));
        let length = word(&reply, 20) as usize;
        let shown = document::error::MESSAGE_BYTES_MAX;
        assert!((shown..shown + 1000).contains(&length), "{length}");
        assert!(length > COMPRESSED_HERE_BYTES_MAX && reply.len() < 100_000, "{}", reply.len());
    }
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
async fn a_document_that_may_not_enter_is_refused_and_the_connection_goes_on() {
    let mut c = connect();
    let too_deep = (0..201).fold(Document::new(), |inner, _| doc! {"a": inner});
    let command = doc! {"insert": "c", "documents": [too_deep]};
    c.send(&msg(0, command.clone())).await;
    let refused = c.receive().await.unwrap();
    assert_eq!((word(&refused, 8), body(&refused).get_i64("code")), (7, Some(15)));
    c.send(&msg(MORE_TO_COME, command)).await;
    c.send(&msg(0, doc! {"ping": 1})).await;
    assert_eq!(body(&c.receive().await.unwrap()), doc! {"ok": 1.0});
    assert_eq!(c.service.counters.asserts.user.get(), 2);
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
async fn an_exhaust_hello_that_does_not_say_how_long_it_waits_is_refused() {
    let mut c = connect();
    c.send(&msg(EXHAUST_ALLOWED, doc! {"hello": 1})).await;
    let reply = c.receive().await.unwrap();
    assert_eq!((word(&reply, 16), body(&reply).get_i64("code")), (0, Some(51763)));
    c.send(&msg(0, doc! {"hello": 1})).await;
    assert_eq!(body(&c.receive().await.unwrap()).get_str("msg"), Some("isdbgrid"));
    let version = c.service.topology.version();
    let later = crate::topology::TopologyVersion { counter: version.counter + 1, ..version };
    c.send(&msg(0, doc! {"hello": 1, "topologyVersion": later.to_document(), "maxAwaitTimeMS": 20})).await;
    assert_eq!(body(&c.receive().await.unwrap()).get_i64("code"), Some(51761));
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
async fn garbage_ends_the_connection_and_bad_bson_is_refused() {
    let mut c = connect();
    c.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(c.receive().await.is_none());
    let mut c = connect();
    let mut bad = msg(0, doc! {"ping": "x"});
    // The string's length now reaches beyond its document.
    bad[BODY_AT + 4 + 6] = 200;
    c.send(&bad).await;
    assert_eq!(body(&c.receive().await.unwrap()).get_i64("code"), Some(22));
    c.send(&msg(0, doc! {"ping": 1})).await;
    assert_eq!(body(&c.receive().await.unwrap()), doc! {"ok": 1.0});
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

/// A connection on which many requests are served at a time.
async fn multiplexed() -> (Raw, Document) {
    let mut c = connect();
    c.send(&msg(0, doc! {"hello": 1, "multiplex": true})).await;
    let hello = body(&c.receive().await.unwrap());
    assert_eq!(hello.get_bool("multiplex"), Some(true));
    (c, hello)
}

/// Another request id in place of 7.
fn numbered(id: i32, mut message: Vec<u8>) -> Vec<u8> {
    message[4..8].copy_from_slice(&id.to_le_bytes());
    message
}

/// A request that waits for a change that does not come.
fn waiting(hello: &Document) -> Document {
    let version = hello.get_document("topologyVersion").unwrap().clone();
    doc! {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 60_000}
}

#[tokio::test]
async fn requests_that_wait_hold_nobody_up_on_a_multiplexed_connection() {
    let (mut c, hello) = multiplexed().await;
    let mut together = numbered(1, msg(0, waiting(&hello)));
    together.extend(numbered(2, msg(0, doc! {"ping": 1})));
    together.extend(numbered(3, msg(0, waiting(&hello))));
    together.extend(numbered(4, msg(MORE_TO_COME, doc! {"ping": 1})));
    together.extend(msg(CHECKSUM_PRESENT, doc! {"ping": 1}));
    c.send(&together).await;
    for (id, flags) in [(2, 0), (7, CHECKSUM_PRESENT)] {
        let reply = c.receive().await.unwrap();
        assert_eq!((word(&reply, 8), word(&reply, 16)), (id, flags));
    }
    // Both are shown as what the connection does, and each can be killed.
    let shown = c.service.operations.describe("h", false, &node::auth::Owners::Everybody, &|_| None);
    assert_eq!(shown.len(), 2);
    for (shown, id) in shown.iter().zip([1, 3]) {
        assert!(c.service.operations.kill(shown.get_i64("opid").unwrap(), document::codes::INTERRUPTED));
        let reply = c.receive().await.unwrap();
        assert_eq!((word(&reply, 8), body(&reply).get_i64("code")), (id, Some(11601)));
    }
    assert_eq!(c.service.operations.active(), 0);
    assert_eq!(c.service.counters.network.requests.get(), 6);
}

#[tokio::test]
async fn what_would_close_a_connection_ends_one_request_of_a_multiplexed_one() {
    let (mut c, hello) = multiplexed().await;
    c.send(&numbered(1, msg(0, waiting(&hello)))).await;
    let data = doc! {"failCommands": ["ping"], "closeConnection": true, "failInternalCommands": true};
    c.service.failpoints().configure("failCommand", Mode::Times(1), data);
    c.send(&numbered(2, msg(0, doc! {"ping": 1}))).await;
    let reply = c.receive().await.unwrap();
    assert_eq!((word(&reply, 8), word(&reply, 16)), (2, NO_REPLY));
    c.send(&numbered(3, msg(0, doc! {"ping": 1}))).await;
    assert_eq!(word(&c.receive().await.unwrap(), 8), 3);
    assert_eq!(c.service.operations.active(), 1, "the request that waits goes on");
}

#[tokio::test]
async fn a_multiplexed_connection_takes_no_long_requests_and_ends_what_its_peer_leaves() {
    let (mut c, hello) = multiplexed().await;
    let long = msg(0, doc! {"ping": 1, "filler": "x".repeat(Limits::MULTIPLEXED.max_message)});
    let mut together = numbered(1, msg(0, waiting(&hello)));
    together.extend(numbered(2, msg(0, doc! {"ping": 1})));
    together.extend(long);
    c.send(&together).await;
    assert_eq!(word(&c.receive().await.unwrap(), 8), 2, "what came before is answered");
    assert!(c.receive().await.is_none());
    c.becomes_idle().await;
}

#[tokio::test]
async fn an_abandoned_request_of_a_multiplexed_connection_is_interrupted_and_others_go_on() {
    let (mut c, hello) = multiplexed().await;
    c.send(&numbered(1, msg(0, waiting(&hello)))).await;
    c.send(&numbered(2, msg(0, waiting(&hello)))).await;
    c.send(&numbered(3, msg(MORE_TO_COME, doc! {"_abandon": 1}))).await;
    let reply = c.receive().await.unwrap();
    assert_eq!((word(&reply, 8), body(&reply).get_i64("code")), (1, Some(279)));
    assert_eq!(c.service.operations.active(), 1);
    assert!(c.is_silent().await);
}

#[tokio::test]
async fn a_closed_connection_interrupts_what_it_waited_for_after_what_it_had_sent_before() {
    let mut c = connect();
    c.send(&msg(0, doc! {"hello": 1})).await;
    let hello = body(&c.receive().await.unwrap());
    let mut together = msg(0, waiting(&hello));
    together.extend(msg(MORE_TO_COME, doc! {"ping": 1}));
    c.send(&together).await;
    while c.service.operations.active() == 0 {
        tokio::task::yield_now().await;
    }
    c.stream.shutdown().await.unwrap();
    let reply = c.receive().await.unwrap();
    assert_eq!(body(&reply).get_i64("code"), Some(279));
    assert!(c.receive().await.is_none());
    assert_eq!(c.service.counters.network.requests.get(), 3, "what was sent before the end is run");
}

/// A timer inside a future aligns it to cache lines, for which allocators have no fast way; requests allocate these.
#[tokio::test]
async fn the_futures_of_frequent_commands_hold_no_timers_and_that_of_a_find_is_small() {
    let c = connect();
    let connection = Arc::new(Connection::new(2, "test".to_string(), Entrance::Tcp));
    let Ok(Message::Msg(find)) =
        wire::decode_uncompressed(msg(0, doc! {"find": "c"}).into(), &Limits::STANDARD)
    else {
        panic!("not an OP_MSG")
    };
    let body = find.body().to_owned();
    let answer = multiplexed::answer(c.service.clone(), connection.clone(), find, 1);
    assert!(align_of_val(&answer) <= 16);
    let operation = Arc::new(node::Operation::internal());
    let context = Context { service: c.service.clone(), connection, operation };
    let tables = [crate::commands::read::ROWS, crate::commands::crud::ROWS, crate::commands::router::ROWS];
    let mut looked_at = 0;
    for row in tables.into_iter().flatten().filter(|row| row.kind != Kind::Other) {
        let Handler::Async(handler) = row.handler else { continue };
        let node = node::request::Request { db: "d", body: body.doc(), sequences: &[] };
        let request = Request { command: row, name: row.name, node, exhaust_allowed: false, comment: None };
        let mut reply = Reply::open(Vec::new());
        let future = handler(&context, &request, &mut reply);
        assert!(align_of_val(&*future) <= 16, "{}", row.name);
        if row.name == "find" {
            assert!(size_of_val(&*future) <= 2048, "{}", size_of_val(&*future));
        }
        looked_at += 1;
    }
    assert!(looked_at > 20, "{looked_at}");
}
