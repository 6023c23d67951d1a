//! The table's invariants, and the whole way of a request over a real socket.

use super::*;
use crate::log::Logger;
use crate::options::{Options, Program};
use crate::service::{Config, Running, Service};
use crate::topology::{Member, Membership, election_id};
use document::{DocBuf, Document, Value, doc};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::client::Connection;

#[test]
fn every_name_stands_once_and_is_found() {
    for roles in [Roles::MONGOD, Roles::ROUTER] {
        check_lookup(roles);
    }
}

fn check_lookup(roles: Roles) {
    let lookup = Lookup::new(crate::commands::TABLES, roles);
    assert_eq!(lookup.duplicates(), Vec::<&str>::new());
    for (index, row) in lookup.rows().iter().enumerate() {
        for name in std::iter::once(&row.name).chain(row.aliases) {
            assert_eq!(lookup.find(name.as_bytes()).map(|(i, _)| i), Some(index), "{name}");
        }
        assert!(!row.roles.is_empty(), "{} answers nowhere", row.name);
        assert!(!row.is_implemented() || !row.help.is_empty(), "{} has no help", row.name);
    }
    assert!(lookup.find(b"nosuch").is_none() && lookup.find(b"").is_none());
}

/// A node on a free port, without a unix socket, in a directory that goes with it.
struct Node {
    running: Running,
    _dir: tempfile::TempDir,
}

impl Node {
    async fn start(f: impl FnOnce(&mut Options)) -> Node {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::defaults(Program::Mongod);
        options.port = 0;
        options.unix_socket = false;
        options.dbpath = dir.path().to_path_buf();
        options.set_parameters = vec![("enableTestCommands".to_string(), "1".to_string())];
        f(&mut options);
        let config = Config { options, log: Arc::new(Logger::silent()), ephemeral: true };
        Node { running: Service::start(config).await.unwrap(), _dir: dir }
    }
    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.running.port())
    }
    async fn connect(&self) -> Connection {
        Connection::connect(&self.address()).await.unwrap()
    }
}

async fn run(connection: &mut Connection, command: Document) -> document::Result<Document> {
    connection.run("admin", command.to_doc_buf()).await.map(|reply: DocBuf| reply.to_document())
}

#[tokio::test]
async fn three_answers() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    assert_eq!(run(&mut c, doc! {"ping": 1}).await.unwrap().get("ok"), Some(&Value::Double(1.0)));
    let unknown = run(&mut c, doc! {"nosuch": 1}).await.unwrap_err();
    assert_eq!((unknown.code, unknown.message.as_str()), (59, "no such command: 'nosuch'"));
    assert_eq!(run(&mut c, doc! {"mapReduce": "c"}).await.unwrap_err().code, 238);
    // A router's command on a standalone does not exist.
    assert_eq!(run(&mut c, doc! {"isdbgrid": 1}).await.unwrap_err().code, 59);
    let strict = run(&mut c, doc! {"connectionStatus": 1, "x": 1}).await.unwrap_err();
    assert_eq!(strict.message, "BSON field 'connectionStatus.x' is an unknown field.");
    node.running.stop().await;
}

#[tokio::test]
async fn command_names_take_any_value_and_null_fields_are_absent() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    for command in [
        doc! {"isMaster": Value::Null},
        doc! {"serverStatus": Value::Null},
        doc! {"ping": "1"},
        doc! {"connectionStatus": 1, "showPrivileges": Value::Null},
        doc! {"hello": 1, "topologyVersion": Value::Null, "maxAwaitTimeMS": Value::Null, "backpressure": "2"},
    ] {
        run(&mut c, command.clone()).await.unwrap_or_else(|e| panic!("{command:?}: {e}"));
    }
    node.running.stop().await;
}

#[tokio::test]
async fn hello_has_the_shape_of_its_name_and_membership() {
    let node = Node::start(|o| o.repl_set = Some("rs0".to_string())).await;
    let mut c = node.connect().await;
    let hello = run(&mut c, doc! {"hello": 1}).await.unwrap();
    assert_eq!(hello.get("isreplicaset"), Some(&Value::Boolean(true)));
    assert_eq!(hello.get_str("info"), Some("Does not have a valid replica set config"));
    assert!(hello.get("setName").is_none() && hello.get("$clusterTime").is_none());
    assert_eq!(hello.get("isWritablePrimary"), Some(&Value::Boolean(false)));
    let member = Member {
        set_name: "rs0".into(),
        set_version: 1,
        hosts: vec!["h:1".into()],
        me: "h:1".into(),
        primary: Some("h:1".into()),
        is_primary: true,
        term: 1,
        election_id: Some(election_id(1)),
        ..Member::default()
    };
    node.running.service.topology.publish(Membership::Member(member));
    let hello = run(&mut c, doc! {"ismaster": 1}).await.unwrap();
    assert_eq!(hello.get("ismaster"), Some(&Value::Boolean(true)));
    assert_eq!(
        hello.get("electionId").and_then(Value::as_object_id).unwrap().hex(),
        "7fffffff0000000000000001"
    );
    assert_eq!(hello.get_path("topologyVersion.counter"), Some(&Value::Int64(1)));
    for field in ["lastWrite", "$clusterTime", "operationTime", "helloOk", "connectionId", "me", "primary"] {
        assert!(hello.contains_key(field), "{field}");
    }
    node.running.stop().await;
}

#[tokio::test]
async fn an_awaiting_hello_answers_at_the_change() {
    let node = Node::start(|o| o.repl_set = Some("rs0".to_string())).await;
    let mut c = node.connect().await;
    let version = run(&mut c, doc! {"hello": 1}).await.unwrap().get("topologyVersion").cloned();
    let wait = |ms: i64| doc! {"hello": 1, "topologyVersion": version.clone(), "maxAwaitTimeMS": ms};
    let started = Instant::now();
    run(&mut c, wait(60)).await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(55));
    let service = node.running.service.clone();
    let (reply, ()) = tokio::join!(run(&mut c, wait(20_000)), async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        service.topology.publish(Membership::Standalone);
    });
    assert_eq!(reply.unwrap().get_path("topologyVersion.counter"), Some(&Value::Int64(1)));
    let half = run(&mut c, doc! {"hello": 1, "topologyVersion": version}).await.unwrap_err();
    assert_eq!(half.code, 31368);
    node.running.stop().await;
}

#[tokio::test]
async fn fail_command_answers_its_error_as_often_as_asked() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    let data = doc! {"failCommands": ["ping"], "errorCode": 91, "errorLabels": ["RetryableWriteError"]};
    run(&mut c, doc! {"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": data})
        .await
        .unwrap();
    run(&mut c, doc! {"buildInfo": 1}).await.unwrap();
    let error = run(&mut c, doc! {"ping": 1}).await.unwrap_err();
    assert_eq!((error.code, error.labels.as_slice()), (91, &["RetryableWriteError"][..]));
    run(&mut c, doc! {"ping": 1}).await.unwrap();
    let data = doc! {"failCommands": ["ping"], "closeConnection": true};
    run(&mut c, doc! {"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": data})
        .await
        .unwrap();
    assert!(run(&mut c, doc! {"ping": 1}).await.is_err());
    run(&mut node.connect().await, doc! {"ping": 1}).await.unwrap();
    node.running.stop().await;
}

#[tokio::test]
async fn fail_points_do_not_exist_without_test_commands() {
    let node = Node::start(|o| o.set_parameters.clear()).await;
    let mut c = node.connect().await;
    let command = doc! {"configureFailPoint": "failCommand", "mode": "off"};
    assert_eq!(run(&mut c, command).await.unwrap_err().code, 59);
    node.running.stop().await;
}

#[tokio::test]
async fn kill_op_ends_a_waiting_command() {
    let node = Node::start(|_| {}).await;
    let (mut c, mut other) = (node.connect().await, node.connect().await);
    let version = run(&mut c, doc! {"hello": 1}).await.unwrap().get("topologyVersion").cloned();
    let wait = doc! {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 20_000};
    let (waited, ()) = tokio::join!(run(&mut c, wait), async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        let ops = run(&mut other, doc! {"currentOp": 1}).await.unwrap();
        let waiting = ops.get_array("inprog").unwrap().iter().filter_map(Value::as_document);
        let op =
            waiting.filter(|op| op.get_path("command.hello").is_some()).find_map(|op| op.get_i64("opid"));
        run(&mut other, doc! {"killOp": 1, "op": op}).await.unwrap();
    });
    assert_eq!(waited.unwrap_err().code, 11601);
    node.running.stop().await;
}

#[tokio::test]
async fn stop_is_quick_and_the_directory_can_be_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let config = || {
        let mut options = Options::defaults(Program::Mongod);
        (options.port, options.unix_socket, options.dbpath) = (0, false, dir.path().to_path_buf());
        Config { options, log: Arc::new(Logger::silent()), ephemeral: false }
    };
    let running = Service::start(config()).await.unwrap();
    let error = Service::start(config()).await.map(|_| ()).unwrap_err();
    assert_eq!((error.exit_code, error.id, error.error.code), (100, 20557, 98));
    assert!(error.error.message.contains("Another mongod instance is already running on the"));
    let mut c = Connection::connect(&format!("127.0.0.1:{}", running.port())).await.unwrap();
    let version = run(&mut c, doc! {"hello": 1}).await.unwrap().get("topologyVersion").cloned();
    let wait = doc! {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 20_000};
    let started = Instant::now();
    let (_, ()) = tokio::join!(run(&mut c, wait), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        running.stop().await;
    });
    assert!(started.elapsed() < Duration::from_secs(2));
    assert_eq!(std::fs::read(dir.path().join("mongod.lock")).unwrap(), b"");
    Service::start(config()).await.unwrap().stop().await;
}

#[tokio::test]
async fn a_port_in_use_is_an_exit_code_of_48() {
    let node = Node::start(|_| {}).await;
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::defaults(Program::Mongod);
    (options.port, options.unix_socket, options.dbpath) =
        (node.running.port(), false, dir.path().to_path_buf());
    let config = Config { options, log: Arc::new(Logger::silent()), ephemeral: true };
    let error = Service::start(config).await.map(|_| ()).unwrap_err();
    assert_eq!(
        (error.exit_code, error.id, error.error.message.as_str()),
        (48, 20568, "Address already in use")
    );
    node.running.stop().await;
}

#[tokio::test]
async fn shutdown_answers_nothing_and_asks_for_the_end() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    assert!(run(&mut c, doc! {"shutdown": 1, "force": true, "timeoutSecs": 0}).await.is_err());
    assert_eq!(node.running.service.end_requested().await, 0);
    node.running.stop().await;
}

#[tokio::test]
async fn counters_move_when_what_they_count_happens() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    for _ in 0..3 {
        run(&mut c, doc! {"ping": 1}).await.unwrap();
    }
    let _ = run(&mut c, doc! {"killOp": 1}).await;
    let status = run(&mut c, doc! {"serverStatus": 1}).await.unwrap();
    assert_eq!(status.get_path("metrics.commands.ping.total"), Some(&Value::Int64(3)));
    assert_eq!(status.get_path("metrics.commands.killOp.failed"), Some(&Value::Int64(1)));
    assert!(status.get_path("network.numRequests").unwrap().as_i64() >= Some(5));
    assert_eq!(status.get_path("connections.current"), Some(&Value::Int32(1)));
    assert!(status.get_path("asserts.user").unwrap().as_i64() >= Some(1));
    let without = run(&mut c, doc! {"serverStatus": 1, "metrics": 0}).await.unwrap();
    assert!(!without.contains_key("metrics") && without.contains_key("mem"));
    node.running.stop().await;
}

#[tokio::test]
async fn a_handler_that_panics_is_answered_and_costs_only_its_connection() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    let command = doc! {"configureFailPoint": "panicInPing", "mode": "alwaysOn"};
    run(&mut c, command).await.unwrap();
    let error = run(&mut c, doc! {"ping": 1}).await.unwrap_err();
    assert_eq!(error.code, 1);
    run(&mut node.connect().await, doc! {"buildInfo": 1}).await.unwrap();
    node.running.stop().await;
}

#[tokio::test]
async fn fsync_with_lock_is_undone_once_for_each_lock() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    for locks in 1..=2i64 {
        let reply = run(&mut c, doc! {"fsync": 1, "lock": true}).await.unwrap();
        assert_eq!(reply.get_i64("lockCount"), Some(locks));
    }
    assert!(node.running.service.is_locked());
    for left in [1, 0] {
        assert_eq!(run(&mut c, doc! {"fsyncUnlock": 1}).await.unwrap().get_i64("lockCount"), Some(left));
    }
    assert_eq!(run(&mut c, doc! {"fsyncUnlock": 1}).await.unwrap_err().code, 20);
    assert_eq!(run(&mut c, doc! {"fsync": 1}).await.unwrap().get_i64("numFiles"), Some(1));
    node.running.stop().await;
}

#[tokio::test]
async fn a_retryable_write_that_may_be_sent_again_says_so() {
    let node = Node::start(|o| o.repl_set = Some("rs0".to_string())).await;
    node.running
        .service
        .topology
        .publish(Membership::Member(Member { is_primary: true, ..Member::default() }));
    let mut c = node.connect().await;
    let session = doc! { "id": Value::uuid([7; 16]) };
    let insert = |numbered: bool| {
        let mut d = doc! {"insert": "c", "documents": [{"_id": 1}], "lsid": session.clone()};
        if numbered {
            d.push("txnNumber", 1i64);
        }
        d
    };
    let fail = |labels: Option<Value>| {
        let mut data = doc! {"failCommands": ["insert"], "errorCode": 91};
        if let Some(labels) = labels {
            data.push("errorLabels", labels);
        }
        doc! {"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": data}
    };
    for (labels, numbered, want) in [
        (None, true, &["RetryableWriteError"][..]),
        (None, false, &[][..]),
        (Some(document::array![]), true, &[][..]),
        (Some(document::array!["TransientTransactionError"]), true, &["TransientTransactionError"][..]),
    ] {
        run(&mut c, fail(labels)).await.unwrap();
        let error = run(&mut c, insert(numbered)).await.unwrap_err();
        assert_eq!((error.code, error.labels.as_slice()), (91, want));
    }
    node.running.stop().await;
}

#[tokio::test]
async fn writes_count_by_statement_and_by_document() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    run(&mut c, doc! {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}).await.unwrap();
    let update = doc! {"q": {"_id": 1}, "u": {"$set": {"x": 1}}};
    run(&mut c, doc! {"update": "c", "updates": [update.clone(), update]}).await.unwrap();
    run(&mut c, doc! {"delete": "c", "deletes": [{"q": {"_id": 3}, "limit": 1}]}).await.unwrap();
    let status = run(&mut c, doc! {"serverStatus": 1}).await.unwrap();
    let at = |path: &str| status.get_path(path).and_then(Value::as_i64).unwrap_or(-1);
    assert_eq!([at("opcounters.insert"), at("opcounters.update"), at("opcounters.delete")], [3, 2, 1]);
    let documents = ["inserted", "updated", "deleted"].map(|n| at(&format!("metrics.document.{n}")));
    assert_eq!(documents, [3, 1, 1]);
    node.running.stop().await;
}
