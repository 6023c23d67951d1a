//! The internal client and its pool against a server of the test.

use crate::client::{Address, CallOptions, CallResult, ConnectOptions, Connection, Pool, PoolOptions};
use crate::op_msg::{ABANDON, MORE_TO_COME, NO_REPLY};
use crate::{Compressor, FrameReader, FrameWriter, Limits, Message, ReplyTo};
use document::{Doc, DocWriter, Document, Value, codes};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

/// A server of a few commands, which counts its connections and requests.
#[derive(Default)]
struct Server {
    accepted: AtomicUsize,
    requests: AtomicUsize,
    /// Agrees to connections with many requests at a time.
    multiplexes: AtomicBool,
    /// Requests that their callers gave up.
    abandoned: AtomicUsize,
}

impl Server {
    async fn start() -> (Arc<Server>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let host = listener.local_addr().expect("bound").to_string();
        let server = Arc::new(Server::default());
        let shared = server.clone();
        runtime::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.accepted.fetch_add(1, SeqCst);
                runtime::spawn(serve(stream, shared.clone()));
            }
        });
        (server, host)
    }

    /// The compressors agreed on, and the reply that says so.
    fn hello(&self, body: Doc<'_>) -> (Vec<Compressor>, Document) {
        assert!(body.get_document("client").is_some_and(|c| c.get_document("driver").is_some()));
        let theirs = body.get("compression").and_then(|v| v.as_array()).unwrap_or(Doc::empty());
        let common = crate::op_compressed::negotiate(&Compressor::OFFERED, theirs);
        let names: Vec<Value> = common.iter().map(|c| Value::from(c.name())).collect();
        let multiplex = self.multiplexes.load(SeqCst) && body.get_bool("multiplex") == Some(true);
        (common, document::doc! { "multiplex": multiplex, "compression": names, "ok": 1.0 })
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite, server: Arc<Server>) {
    let (read, write) = tokio::io::split(Box::pin(stream));
    let (mut reader, mut writer) = (FrameReader::new(read), FrameWriter::new(write));
    let mut held = Vec::new();
    while let Ok(message) = reader.read(&Limits::STANDARD).await {
        server.requests.fetch_add(1, SeqCst);
        let to = ReplyTo::to(&message);
        let Message::Msg(request) = message else { return };
        match request.command_name() {
            "hello" => {
                let (common, reply) = server.hello(request.body());
                writer.reply_doc(&to, 0, reply.to_doc_buf().doc()).await.expect("sent");
                reader.set_compressors(common.into_iter().collect());
            }
            "echo" => {
                let compressed = request.compressor().map_or("", |c| c.name());
                let reply = |w: &mut DocWriter<'_>| {
                    w.document("request", request.to_single_document().doc());
                    w.string("compressor", compressed);
                    w.bool("checksum", request.has_checksum());
                    w.double("ok", 1.0);
                };
                writer.reply(&to, 0, reply).await.expect("sent");
            }
            "fail" => {
                let reply = document::doc! {
                    "ok": 0.0, "errmsg": "no", "code": 112, "codeName": "WriteConflict",
                    "errorLabels": ["TransientTransactionError"], "writeErrors": [{"index": 0}],
                };
                writer.reply_doc(&to, 0, reply.to_doc_buf().doc()).await.expect("sent");
            }
            "stream" => {
                let mut to = to;
                for i in 0..3 {
                    let flags = if i < 2 { MORE_TO_COME } else { 0 };
                    writer.reply(&to, flags, |w| w.i32("i", i)).await.expect("sent");
                    to.request_id = writer.last_request_id();
                }
            }
            // Answered by the release that follows, the last one first.
            "hold" => held.push((to, request.body().to_owned())),
            "release" => {
                writer.reply(&to, 0, |w| w.double("ok", 1.0)).await.expect("sent");
                for (to, body) in std::mem::take(&mut held).into_iter().rev() {
                    let reply = |w: &mut DocWriter<'_>| {
                        w.fields_of(body.doc());
                        w.double("ok", 1.0);
                    };
                    writer.reply(&to, 0, reply).await.expect("sent");
                }
            }
            "later" => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                writer.reply(&to, 0, |w| w.double("ok", 1.0)).await.expect("sent");
            }
            "vanish" => drop(writer.reply(&to, NO_REPLY, |_| {}).await.expect("sent")),
            ABANDON => {
                assert!(request.more_to_come());
                server.abandoned.fetch_add(1, SeqCst);
            }
            "quiet" => assert!(request.more_to_come()),
            "hang" => tokio::time::sleep(Duration::from_secs(60)).await,
            "die" => return,
            other => panic!("{other}"),
        }
    }
}

fn command(name: &str) -> document::DocBuf {
    DocWriter::build(|w| w.i32(name, 1))
}

#[tokio::test]
async fn a_command_goes_there_and_back() {
    let (server, host) = Server::start().await;
    let mut connection = Connection::connect(&host).await.expect("connected");
    let reply = connection.run("test", command("echo")).await.expect("ok");
    let request = reply.doc().get_document("request").expect("the request");
    assert_eq!((request.get_i64("echo"), request.get_str("$db")), (Some(1), Some("test")));
    // A command that names its own database is passed on as it is.
    let with_db = DocWriter::build(|w| {
        w.i32("echo", 1);
        w.string("$db", "other");
    });
    let reply = connection.run("test", with_db).await.expect("ok");
    let request = reply.doc().get_document("request").expect("the request");
    assert_eq!(
        request.iter().filter(|e| e.name() == "$db").map(|e| e.value().as_str()).collect::<Vec<_>>(),
        [Some("other")]
    );
    let docs = [Doc::empty(), Doc::empty()];
    let reply = connection
        .run_with_sequences("test", command("echo").doc(), &[("documents", &docs)])
        .await
        .expect("ok");
    let documents = reply.doc().get_document("request").and_then(|r| r.get("documents")?.as_array());
    assert_eq!(documents.expect("the sequence").iter().count(), 2);
    assert_eq!(server.accepted.load(SeqCst), 1);
}

#[tokio::test]
async fn compression_and_checksum_are_used_when_asked_for() {
    let (_server, host) = Server::start().await;
    for compressor in Compressor::OFFERED {
        let options = ConnectOptions { compressors: vec![compressor], ..ConnectOptions::default() };
        let mut connection = Connection::connect_with(&host, &options).await.expect("connected");
        let reply = connection.run("test", command("echo")).await.expect("ok");
        assert_eq!(reply.doc().get_str("compressor"), Some(compressor.name()));
    }
    let options = ConnectOptions { checksum: true, ..ConnectOptions::default() };
    let mut connection = Connection::connect_with(&host, &options).await.expect("connected");
    let reply = connection.run("test", command("echo")).await.expect("ok");
    assert_eq!(reply.doc().get_bool("checksum"), Some(true));
}

#[tokio::test]
async fn a_refusal_keeps_its_whole_reply() {
    let (_server, host) = Server::start().await;
    let pool = Pool::default();
    let options = CallOptions::default();
    let error =
        pool.run_full(&host, "test", &options, &[], command("fail").doc()).await.expect_err("refused");
    assert_eq!((error.error.code, error.not_sent, error.is_network()), (112, false, false));
    assert_eq!(error.error.labels, ["TransientTransactionError"]);
    let reply: Document = error.reply.as_ref().expect("the reply").to_document();
    assert!(reply.get("writeErrors").is_some());
    assert!(pool.run(&host, "test", command("echo")).await.is_ok(), "the connection is still good");
    assert_eq!(pool.statistics(), [(host, 0, 1, 1)]);
}

#[tokio::test]
async fn commands_without_reply_and_with_many_replies() {
    let (server, host) = Server::start().await;
    let mut connection = Connection::connect(&host).await.expect("connected");
    let options = CallOptions::default();
    connection.send_only("test", &options, |w| w.i32("quiet", 1)).await.expect("sent");
    let exhaust = CallOptions { exhaust: true, ..options };
    let mut reply = connection.call("test", &exhaust, &[], |w| w.i32("stream", 1)).await.expect("first");
    let mut seen = vec![reply.body().get_i64("i")];
    while reply.more_to_come() {
        assert!(!connection.is_reusable());
        reply = connection.next_reply(None).await.expect("next");
        seen.push(reply.body().get_i64("i"));
    }
    assert_eq!(seen, [Some(0), Some(1), Some(2)]);
    assert!(connection.is_reusable());
    assert_eq!(server.requests.load(SeqCst), 3);
}

#[tokio::test]
async fn a_deadline_is_a_network_timeout_and_costs_the_connection() {
    let (server, host) = Server::start().await;
    let pool = Pool::default();
    let options = CallOptions::timeout(Duration::from_millis(50));
    let error = pool.run_full(&host, "test", &options, &[], command("hang").doc()).await.expect_err("late");
    assert_eq!((error.error.code, error.not_sent, error.is_network()), (codes::NETWORK_TIMEOUT, false, true));
    assert!(pool.run(&host, "test", command("echo")).await.is_ok());
    assert_eq!(server.accepted.load(SeqCst), 2);
}

#[tokio::test]
async fn an_abandoned_call_never_answers_the_next() {
    let (server, host) = Server::start().await;
    let pool = Pool::default();
    let call = pool.run(&host, "test", command("hang"));
    assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
    assert!(pool.run(&host, "test", command("echo")).await.is_ok());
    assert_eq!(server.accepted.load(SeqCst), 2);
}

#[tokio::test]
async fn a_peer_that_closes_is_host_unreachable_and_idle_connections_to_it_are_not_used() {
    let (server, host) = Server::start().await;
    let pool = Pool::default();
    let error = pool.run(&host, "test", command("die")).await.expect_err("closed");
    assert_eq!(error.code, codes::HOST_UNREACHABLE);
    assert!(error.is(document::error::NETWORK));
    // An idle connection that its peer has closed is found out before use.
    let mut idle = pool.get(&host, None).await.expect("connected");
    idle.send_only("test", &CallOptions::default(), |w| w.i32("die", 1)).await.expect("sent");
    drop(idle);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let before = server.accepted.load(SeqCst);
    assert!(pool.run(&host, "test", command("echo")).await.is_ok());
    assert_eq!(server.accepted.load(SeqCst), before + 1);
}

#[tokio::test]
async fn connections_are_reused_and_bounded() {
    let (server, host) = Server::start().await;
    let options =
        PoolOptions { max_per_host: 2, wait_timeout: Duration::from_millis(50), ..PoolOptions::default() };
    let pool = Pool::new(options);
    for _ in 0..10 {
        pool.run(&host, "test", command("echo")).await.expect("ok");
    }
    assert_eq!(server.accepted.load(SeqCst), 1);
    let one = pool.get(&host, None).await.expect("the first");
    let two = pool.get(&host, None).await.expect("the second");
    let error = pool.get(&host, None).await.expect_err("no third");
    assert_eq!(error.code, codes::NETWORK_TIMEOUT);
    drop(one);
    assert!(pool.get(&host, None).await.is_ok());
    pool.forget(&host);
    drop(two);
    assert_eq!(pool.statistics(), [(host, 0, 0, 2)]);
}

#[tokio::test]
async fn nobody_there_is_host_unreachable_and_certainly_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let host = listener.local_addr().expect("bound").to_string();
    drop(listener);
    let call = CallOptions::default();
    let error =
        Pool::default().run_full(&host, "t", &call, &[], command("echo").doc()).await.expect_err("nobody");
    assert_eq!((error.error.code, error.not_sent), (codes::HOST_UNREACHABLE, true));
    let error = Connection::connect("/nonexistent/socket.sock").await.expect_err("nobody");
    assert_eq!(error.code, codes::HOST_UNREACHABLE);
}

/// A server that agrees to many requests at a time, and a pool that sends brief calls over one connection.
async fn multiplexing() -> (Arc<Server>, String, Pool) {
    let (server, host) = Server::start().await;
    server.multiplexes.store(true, SeqCst);
    (server, host, Pool::new(PoolOptions { lanes: 1, ..PoolOptions::default() }))
}

fn numbered(name: &str, n: i32) -> document::DocBuf {
    DocWriter::build(|w| w.i32(name, n))
}

async fn brief(pool: &Pool, host: &str, command: document::DocBuf) -> CallResult<document::DocBuf> {
    pool.run_full(host, "test", &CallOptions { brief: true, ..CallOptions::default() }, &[], command.doc())
        .await
}

/// Waits until the server has seen so many requests, hellos included.
async fn seen(server: &Server, requests: usize) {
    while server.requests.load(SeqCst) < requests {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn brief_calls_share_a_connection_and_each_gets_its_own_reply_in_any_order() {
    let (server, host, pool) = multiplexing().await;
    let calls: Vec<_> = (0..50)
        .map(|n| {
            let (pool, host) = (pool.clone(), host.clone());
            runtime::spawn(async move { brief(&pool, &host, numbered("hold", n)).await })
        })
        .collect();
    seen(&server, 51).await;
    assert_eq!(pool.statistics(), [(host.clone(), 1, 0, 1)]);
    brief(&pool, &host, numbered("release", 1)).await.expect("ok");
    for (n, call) in calls.into_iter().enumerate() {
        let reply = call.await.expect("no panic").expect("ok");
        assert_eq!(reply.doc().get_i64("hold"), Some(n as i64));
    }
    assert_eq!((server.accepted.load(SeqCst), pool.statistics()), (1, vec![(host, 0, 1, 1)]));
}

#[tokio::test]
async fn a_brief_call_that_is_given_up_costs_the_others_nothing() {
    let (server, host, pool) = multiplexing().await;
    let options = CallOptions { brief: true, ..CallOptions::timeout(Duration::from_millis(50)) };
    let late =
        pool.run_full(&host, "test", &options, &[], numbered("hold", 1).doc()).await.expect_err("late");
    assert_eq!((late.error.code, late.not_sent, late.is_network()), (codes::NETWORK_TIMEOUT, false, true));
    let given_up =
        tokio::time::timeout(Duration::from_millis(50), brief(&pool, &host, numbered("hold", 2))).await;
    assert!(given_up.is_err());
    // The replies to both come now, and are nobody's.
    brief(&pool, &host, numbered("release", 1)).await.expect("ok");
    assert_eq!(server.abandoned.load(SeqCst), 2);
    for n in 0..3 {
        let reply = brief(&pool, &host, numbered("echo", n)).await.expect("ok");
        let request = reply.doc().get_document("request").expect("the request");
        assert_eq!(request.get_i64("echo"), Some(i64::from(n)));
    }
    assert_eq!(server.accepted.load(SeqCst), 1);
}

#[tokio::test]
async fn when_a_shared_connection_closes_all_who_wait_learn_of_it_and_the_next_makes_another() {
    let (server, host, pool) = multiplexing().await;
    let waiting: Vec<_> = (0..3)
        .map(|n| {
            let (pool, host) = (pool.clone(), host.clone());
            runtime::spawn(async move { brief(&pool, &host, numbered("hold", n)).await })
        })
        .collect();
    seen(&server, 4).await;
    let error = brief(&pool, &host, command("die")).await.expect_err("closed");
    assert_eq!((error.error.code, error.not_sent), (codes::HOST_UNREACHABLE, false));
    for call in waiting {
        let error = call.await.expect("no panic").expect_err("closed");
        assert_eq!(
            (error.error.code, error.not_sent, error.is_network()),
            (codes::HOST_UNREACHABLE, false, true)
        );
    }
    assert!(brief(&pool, &host, command("echo")).await.is_ok());
    assert_eq!(server.accepted.load(SeqCst), 2);
}

#[tokio::test]
async fn a_peer_can_end_one_brief_call_as_if_its_connection_had_closed() {
    let (server, host, pool) = multiplexing().await;
    let error = brief(&pool, &host, command("vanish")).await.expect_err("no reply");
    assert_eq!(
        (error.error.code, error.not_sent, error.is_network()),
        (codes::HOST_UNREACHABLE, false, true)
    );
    assert_eq!(brief(&pool, &host, command("fail")).await.expect_err("refused").error.code, 112);
    assert!(brief(&pool, &host, command("echo")).await.is_ok());
    assert_eq!(server.accepted.load(SeqCst), 1);
}

#[tokio::test]
async fn long_requests_and_peers_of_another_kind_get_connections_of_their_own() {
    let (server, host, pool) = multiplexing().await;
    brief(&pool, &host, command("echo")).await.expect("ok");
    let long = DocWriter::build(|w| {
        w.i32("echo", 1);
        w.string("filler", &"x".repeat(Limits::MULTIPLEXED.max_message));
    });
    brief(&pool, &host, long).await.expect("ok");
    assert_eq!(server.accepted.load(SeqCst), 2);
    // Forgotten, and the peer has changed its mind: asked once, then no more.
    pool.forget(&host);
    server.multiplexes.store(false, SeqCst);
    for _ in 0..3 {
        brief(&pool, &host, command("echo")).await.expect("ok");
    }
    assert_eq!(server.accepted.load(SeqCst), 4);
}

#[tokio::test]
async fn a_shared_connection_that_is_forgotten_serves_the_calls_under_way() {
    let (server, host, pool) = multiplexing().await;
    let call = {
        let (pool, host) = (pool.clone(), host.clone());
        runtime::spawn(async move { brief(&pool, &host, command("later")).await })
    };
    seen(&server, 2).await;
    pool.forget(&host);
    assert!(call.await.expect("no panic").is_ok());
    assert!(brief(&pool, &host, command("echo")).await.is_ok());
    assert_eq!(server.accepted.load(SeqCst), 2);
}

#[test]
fn the_future_of_a_call_is_small_and_holds_no_timer() {
    let (pool, options) = (Pool::default(), CallOptions::default());
    let command = command("echo");
    let call = pool.run_as_is("host", &options, &[], command.doc());
    assert!(align_of_val(&call) <= 16 && size_of_val(&call) <= 2048, "{}", size_of_val(&call));
}

#[test]
fn addresses() {
    let tcp = |host: &str, port| Ok(Address::Tcp(host.to_string(), port));
    assert_eq!(Address::parse("localhost"), tcp("localhost", 27017));
    assert_eq!(Address::parse("10.0.0.1:5"), tcp("10.0.0.1", 5));
    assert_eq!(Address::parse("[::1]:5"), tcp("::1", 5));
    assert_eq!(Address::parse("::1"), tcp("::1", 27017));
    assert_eq!(Address::parse("%2Ftmp%2Fa.sock"), Ok(Address::Unix("/tmp/a.sock".into())));
    assert_eq!(Address::parse("/tmp/a.sock"), Ok(Address::Unix("/tmp/a.sock".into())));
    for bad in ["", ":5", "a:b", "a:0", "a:70000", "[::1"] {
        assert!(Address::parse(bad).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn a_unix_socket_serves_as_well() {
    let path = std::env::temp_dir().join(format!("wire-test-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("bound");
    runtime::spawn(async move {
        let (stream, _) = listener.accept().await.expect("accepted");
        serve(stream, Arc::default()).await;
    });
    let pool = Pool::default();
    let host = path.to_str().expect("UTF-8").replace('/', "%2F");
    for _ in 0..3 {
        assert!(pool.run(&host, "test", command("echo")).await.is_ok());
    }
    std::fs::remove_file(&path).expect("removed");
}
