//! The table's invariants, and the whole way of a request over a real socket.

use super::*;
use crate::log::Logger;
use crate::options::{Options, Program};
use crate::service::{Config, Running, Service};
use crate::topology::{Horizon, Member, Membership, TopologyVersion, election_id};
use document::{DocBuf, Document, Value, doc};
use runtime::Instant;
use std::sync::Arc;
use std::time::Duration;
use wire::client::{CallOptions, Connection};

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
        let config = Config { options, log: Arc::new(Logger::silent()), ephemeral: true, key: None };
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
async fn a_distinct_on_a_view_says_ok_in_a_whole_number() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    run(&mut c, doc! {"create": "v", "viewOn": "c", "pipeline": []}).await.unwrap();
    for (name, ok) in [("v", Value::Int32(1)), ("c", Value::Double(1.0))] {
        assert_eq!(run(&mut c, doc! {"distinct": name, "key": "a"}).await.unwrap().get("ok"), Some(&ok));
    }
}

#[tokio::test]
async fn three_answers() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    assert_eq!(run(&mut c, doc! {"ping": 1}).await.unwrap().get("ok"), Some(&Value::Double(1.0)));
    let unknown = run(&mut c, doc! {"nosuch": 1}).await.unwrap_err();
    assert_eq!((unknown.code, unknown.message.as_str()), (59, "no such command: 'nosuch'"));
    assert_eq!(run(&mut c, doc! {"analyze": 1}).await.unwrap_err().code, 238);
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
async fn a_hello_says_how_long_it_waits_and_for_what_this_process_has_had() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    let service = node.running.service.clone();
    let exhaust = doc! {"hello": 1}.to_doc_buf();
    let refused = c.run_exhaust("admin", None, exhaust.doc()).await.map(|_| ());
    assert_eq!(document::Error::from(refused.unwrap_err()).code, 51756);
    let version = service.topology.version();
    let later = TopologyVersion { counter: version.counter + 1, ..version };
    let wait = doc! {"hello": 1, "topologyVersion": later.to_document(), "maxAwaitTimeMS": 20_000};
    let mut c = node.connect().await;
    assert_eq!(run(&mut c, wait.clone()).await.unwrap_err().code, 51764);
    service.topology.publish(Membership::Member(Member::default()));
    let later = TopologyVersion { counter: version.counter + 2, ..version };
    let wait = doc! {"hello": 1, "topologyVersion": later.to_document(), "maxAwaitTimeMS": 20_000};
    assert_eq!(run(&mut c, wait).await.unwrap_err().code, 31382);
    node.running.stop().await;
}

#[tokio::test]
async fn a_client_that_waits_hears_that_its_address_of_the_member_is_gone() {
    let node = Node::start(|o| o.repl_set = Some("rs0".to_string())).await;
    let service = node.running.service.clone();
    let seen_as = |me: &str| {
        let horizon = Horizon { me: me.to_string(), addresses: Default::default() };
        Membership::Member(Member { horizons: vec![horizon], ..Member::default() })
    };
    service.topology.publish(seen_as("h:1"));
    for (next, told) in [
        (seen_as("h:2"), Some(303)),
        (Membership::Member(Member { term: 7, ..Member::default() }), Some(303)),
        (Membership::Member(Member { term: 8, ..Member::default() }), None),
        (Membership::Removed { set_name: "rs0".to_string() }, Some(303)),
        (Membership::Member(Member::default()), None),
    ] {
        let mut c = node.connect().await;
        let version = service.topology.version().to_document();
        let wait = doc! {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 20_000};
        let (waited, ()) = tokio::join!(run(&mut c, wait), async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            service.topology.publish(next);
        });
        assert_eq!(waited.err().map(|e| e.code), told);
        assert_eq!(run(&mut c, doc! {"ping": 1}).await.is_err(), told.is_some());
    }
    node.running.stop().await;
}

#[tokio::test]
async fn a_rollback_ends_what_clients_do_and_closes_their_connections() {
    let node = Node::start(|_| {}).await;
    let service = node.running.service.clone();
    let (mut idle, mut kept, mut busy) = (node.connect().await, node.connect().await, node.connect().await);
    run(&mut idle, doc! {"ping": 1}).await.unwrap();
    run(&mut kept, doc! {"hello": 1, "hangUpOnStepDown": false}).await.unwrap();
    let version = service.topology.version().to_document();
    let wait = doc! {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 20_000};
    let (first, second, ()) = tokio::join!(run(&mut kept, wait.clone()), run(&mut busy, wait), async {
        while service.operations.active() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        service.end_clients();
    });
    assert_eq!(first.unwrap_err().code, 11602);
    assert!(second.is_err(), "it is killed, and may be cut off before it says so");
    run(&mut kept, doc! {"ping": 1}).await.unwrap();
    for gone in [&mut idle, &mut busy] {
        // Closing a connection takes effect when its task is looked at next.
        let until = Instant::now() + Duration::from_secs(20);
        while run(gone, doc! {"ping": 1}).await.is_ok() {
            assert!(Instant::now() < until, "the connection stays open");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let told = service.operations.last_transition();
    assert_eq!(told.get_str("lastStateTransition"), Some("rollback"));
    assert_eq!(told.get_i64("totalOperationsKilled"), Some(2));
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
        Config { options, log: Arc::new(Logger::silent()), ephemeral: false, key: None }
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
    let config = Config { options, log: Arc::new(Logger::silent()), ephemeral: true, key: None };
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
        (None, true, &["RetryableWriteError", "NoWritesPerformed"][..]),
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

#[tokio::test]
async fn fail_points_have_names_that_somebody_asks_about_and_are_shown_as_parameters() {
    let given = r#"{mode:{times:1},"data":{'failCommands':["ping"],errorCode:6}}"#;
    let node = Node::start(|o| {
        o.set_parameters.push(("failpoint.failCommand".to_string(), given.to_string()));
        o.set_parameters.push(("failpoint.noSuchPoint".to_string(), "{mode:'alwaysOn'}".to_string()));
    })
    .await;
    let mut c = node.connect().await;
    let shown = run(&mut c, doc! {"getParameter": 1, "failpoint.failCommand": 1}).await.unwrap();
    assert_eq!(shown.get_document("failpoint.failCommand").and_then(|d| d.get_i64("mode")), Some(3));
    assert_eq!(run(&mut c, doc! {"ping": 1}).await.unwrap_err().code, 6);
    run(&mut c, doc! {"ping": 1}).await.unwrap();
    for command in [
        doc! {"configureFailPoint": "noSuchPoint", "mode": "alwaysOn"},
        doc! {"waitForFailPoint": "noSuchPoint", "timesEntered": 1, "maxTimeMS": 10},
    ] {
        assert_eq!(run(&mut c, command).await.unwrap_err().code, 266);
    }
    let endless = doc! {"waitForFailPoint": "failCommand", "timesEntered": 9};
    assert_eq!(run(&mut c, endless).await.unwrap_err().code, 40414);
    let late = doc! {"waitForFailPoint": "failCommand", "timesEntered": 9, "maxTimeMS": 10};
    assert_eq!(run(&mut c, late).await.unwrap_err().code, 50);
    node.running.stop().await;
}

#[tokio::test]
async fn an_operation_held_by_a_fail_point_is_found_by_it_and_can_be_killed() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    run(&mut c, doc! {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}).await.unwrap();
    for point in ["waitInFindBeforeMakingBatch", "setYieldAllLocksHang"] {
        run(&mut c, doc! {"configureFailPoint": point, "mode": "alwaysOn", "data": {"nss": "admin.c"}})
            .await
            .unwrap();
        let mut held = node.connect().await;
        let find =
            runtime::spawn(
                async move { run(&mut held, doc! {"find": "c", "filter": {"x": {"$ne": 1}}}).await },
            );
        run(&mut c, doc! {"waitForFailPoint": point, "timesEntered": 1, "maxTimeMS": 5000}).await.unwrap();
        let wanted = doc! {"currentOp": 1, "failpointMsg": point, "secs_running": {"$lt": 60}};
        let mut found = Vec::new();
        while found.is_empty() {
            let reply = run(&mut c, wanted.clone()).await.unwrap();
            found = reply.get_array("inprog").cloned().unwrap_or_default();
        }
        assert_eq!(found.len(), 1, "{point}");
        let op = found[0].as_document().and_then(|d| d.get_i64("opid")).unwrap();
        run(&mut c, doc! {"killOp": 1, "op": op}).await.unwrap();
        assert_eq!(find.await.unwrap().unwrap_err().code, 11601, "{point}");
        run(&mut c, doc! {"configureFailPoint": point, "mode": "off"}).await.unwrap();
    }
    run(&mut c, doc! {"find": "c"}).await.unwrap();
    node.running.stop().await;
}

#[tokio::test]
async fn checksums_depend_on_what_is_held_and_not_on_the_order_it_came_in() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    for (name, ids) in [("a", [1, 2]), ("b", [2, 1]), ("other", [1, 3])] {
        let documents: Vec<Document> = ids.iter().map(|id| doc! {"_id": *id}).collect();
        run(&mut c, doc! {"insert": name, "documents": documents}).await.unwrap();
    }
    let all = run(&mut c, doc! {"dbHash": 1, "collections": ["a", "b", "other", "none"]}).await.unwrap();
    let sum = |name: &str| all.get_path(&format!("collections.{name}")).cloned();
    assert_eq!((sum("a").is_some(), sum("a") == sum("b"), sum("a") == sum("other")), (true, true, false));
    assert_eq!(sum("none"), None);
    assert!(all.get_path("uuids.a").and_then(Value::as_uuid).is_some());
    let hashed = run(&mut c, doc! {"_hashBSONElement": 1, "seed": 0}).await.unwrap();
    let wanted = document::hash::hash64_value(&Value::Int32(1));
    assert_eq!(hashed.get("out"), Some(&Value::Int64(wanted)));
    let other = run(&mut c, doc! {"_hashBSONElement": 1, "seed": 7}).await.unwrap();
    assert_ne!(other.get("out"), hashed.get("out"));
    node.running.stop().await;
}

#[tokio::test]
async fn cluster_parameters_have_defaults_types_and_a_time() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    let get = doc! {"getClusterParameter": "testIntClusterParameter"};
    let first =
        |reply: Document| reply.get_array("clusterParameters").unwrap()[0].as_document().cloned().unwrap();
    assert_eq!(first(run(&mut c, get.clone()).await.unwrap()).get_i64("intData"), Some(16));
    run(&mut c, doc! {"setClusterParameter": {"testIntClusterParameter": {"intData": 5}}}).await.unwrap();
    let now = first(run(&mut c, get).await.unwrap());
    assert_eq!((now.get_i64("intData"), now.contains_key("clusterParameterTime")), (Some(5), true));
    for (given, code) in [
        (doc! {"noSuch": {}}, 4),
        (doc! {"testIntClusterParameter": {"x": 1}}, 40415),
        (doc! {"testIntClusterParameter": {"intData": "x"}}, 14),
        (doc! {"testIntClusterParameter": {}, "testStrClusterParameter": {}}, 72),
        (doc! {"defaultMaxTimeMS": {"readOperations": -5}}, 2),
    ] {
        assert_eq!(run(&mut c, doc! {"setClusterParameter": given}).await.unwrap_err().code, code);
    }
    node.running.stop().await;
}

#[tokio::test]
async fn sessions_are_written_through_and_listed() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    let session = run(&mut c, doc! {"startSession": 1}).await.unwrap();
    let list = doc! {"aggregate": "system.sessions", "pipeline": [{"$listSessions": {}}], "cursor": {}};
    let listed = async |c: &mut Connection| {
        let reply = c.run("config", list.to_doc_buf()).await.unwrap().to_document();
        reply.get_path("cursor.firstBatch").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    assert!(listed(&mut c).await.is_empty(), "nothing is there before a refresh");
    run(&mut c, doc! {"refreshLogicalSessionCacheNow": 1}).await.unwrap();
    let found = listed(&mut c).await;
    let id = found.iter().filter_map(|d| d.as_document()?.get_path("_id.id").cloned()).next();
    assert_eq!(id.as_ref(), session.get_path("id.id"));
    let expiry = async |c: &mut Connection| {
        let indexes = c.run("config", doc! {"listIndexes": "system.sessions"}.to_doc_buf()).await.unwrap();
        let indexes = indexes.to_document().get_path("cursor.firstBatch").and_then(Value::as_array).cloned();
        let indexes = indexes.unwrap_or_default();
        let mut indexes = indexes.iter().filter_map(Value::as_document);
        indexes.find(|d| d.get_str("name") == Some("lsidTTLIndex"))?.get_i64("expireAfterSeconds")
    };
    assert_eq!(expiry(&mut c).await, Some(1800));
    // Another expiry than the node's own is mended, and what has ended is removed.
    let index = doc! {"keyPattern": {"lastUse": 1}, "expireAfterSeconds": 7};
    c.run("config", doc! {"collMod": "system.sessions", "index": index}.to_doc_buf()).await.unwrap();
    assert_eq!(expiry(&mut c).await, Some(7));
    let ended = session.get("id").cloned().unwrap();
    run(&mut c, doc! {"endSessions": [ended]}).await.unwrap();
    run(&mut c, doc! {"refreshLogicalSessionCacheNow": 1}).await.unwrap();
    assert_eq!((expiry(&mut c).await, listed(&mut c).await), (Some(1800), Vec::new()));
    let status = run(&mut c, doc! {"serverStatus": 1}).await.unwrap();
    let told = status.get_document("logicalSessionRecordCache").unwrap();
    let count = |name: &str| told.get_i64(name);
    assert_eq!(count("sessionsCollectionJobCount"), Some(2));
    assert_eq!(count("lastSessionsCollectionJobEntriesEnded"), Some(1));
    assert_eq!(count("lastSessionsCollectionJobEntriesRefreshed"), Some(0));
    assert_eq!(count("activeSessionsCount"), Some(0));
    node.running.stop().await;
}

#[tokio::test]
async fn cursors_end_with_their_sessions_unless_those_are_in_use() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    run(&mut c, doc! {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}).await.unwrap();
    let lsid = |n: u8| doc! {"id": Value::uuid([n; 16])};
    let mut cursors = Vec::new();
    for n in [0, 1] {
        let find = doc! {"find": "c", "batchSize": 1, "noCursorTimeout": true, "lsid": lsid(n)};
        let reply = run(&mut c, find).await.unwrap();
        cursors.push(reply.get_path("cursor.id").and_then(Value::as_i64).unwrap());
    }
    let next = |n: u8| {
        let cursor = cursors[usize::from(n)];
        doc! {"getMore": cursor, "collection": "c", "batchSize": 1, "lsid": lsid(n)}
    };
    let refresh = || doc! {"refreshLogicalSessionCacheNow": 1};
    run(&mut c, refresh()).await.unwrap();
    let delete = doc! {"delete": "system.sessions", "deletes": [{"q": {}, "limit": 0}]};
    c.run("config", delete.to_doc_buf()).await.unwrap();
    run(&mut c, next(1)).await.unwrap();
    run(&mut c, refresh()).await.unwrap();
    assert_eq!(run(&mut c, next(0)).await.unwrap_err().code, document::codes::CURSOR_NOT_FOUND);
    run(&mut c, next(1)).await.unwrap();
    node.running.stop().await;
}

#[tokio::test]
async fn feature_flags_say_their_version_and_test_commands_can_wait() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    let flags = doc! {"getParameter": 1, "featureFlagBulkWriteCommand": 1, "featureFlagGlobalIndexes": 1};
    let flags = run(&mut c, flags).await.unwrap();
    let flag = |name: &str| flags.get_document(name).map(|d| (d.get_bool("value"), d.get_str("version")));
    assert_eq!(flag("featureFlagBulkWriteCommand"), Some((Some(true), Some("8.0"))));
    assert_eq!(flag("featureFlagGlobalIndexes"), Some((Some(false), Some(""))));
    let started = Instant::now();
    run(&mut c, doc! {"sleep": 1, "millis": 50}).await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(50));
    let ended = run(&mut c, doc! {"sleep": 1, "secs": 30, "w": true, "maxTimeMS": 10}).await.unwrap_err();
    assert_eq!((ended.code, node.running.service.is_locked()), (50, false));
    node.running.stop().await;
}

#[tokio::test]
async fn the_profiler_notes_operations_of_databases_whose_level_asks_for_it() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    run(&mut c, doc! {"insert": "c", "documents": [{"_id": 1}]}).await.unwrap();
    run(&mut c, doc! {"profile": 2}).await.unwrap();
    let update = doc! {"q": {"_id": 1}, "u": {"$set": {"x": 1}}};
    run(&mut c, doc! {"update": "c", "updates": [update]}).await.unwrap();
    run(&mut c, doc! {"find": "c", "comment": "mine"}).await.unwrap();
    run(&mut c, doc! {"find": "c", "noSuchOption": 1}).await.unwrap_err();
    assert_eq!(run(&mut c, doc! {"profile": 0}).await.unwrap().get_i64("was"), Some(2));
    run(&mut c, doc! {"find": "c", "comment": "later"}).await.unwrap();
    let noted = run(&mut c, doc! {"find": "system.profile"}).await.unwrap();
    let noted = noted.get_path("cursor.firstBatch").and_then(Value::as_array).cloned().unwrap();
    let ops: Vec<&str> = noted.iter().filter_map(|d| d.as_document()?.get_str("op")).collect();
    assert_eq!(ops, ["update", "query", "query"]);
    let at = |i: usize| noted[i].as_document().unwrap();
    assert_eq!((at(0).get_i64("nModified"), at(1).get_i64("nreturned")), (Some(1), Some(1)));
    let seen = |i: usize| (at(i).get_str("planSummary"), at(i).get_i64("docsExamined"));
    assert_eq!((seen(0), seen(1)), ((Some("IDHACK"), Some(1)), (Some("COLLSCAN"), Some(1))));
    assert_eq!(at(1).get_path("command.comment"), Some(&Value::from("mine")));
    assert_eq!(at(2).get_i64("errCode"), Some(40415));
    let filter = doc! {"profile": 1, "filter": {"command.comment": "this"}};
    run(&mut c, filter).await.unwrap();
    for comment in ["that", "this"] {
        run(&mut c, doc! {"find": "c", "comment": comment}).await.unwrap();
    }
    run(&mut c, doc! {"profile": 0}).await.unwrap();
    let count = run(&mut c, doc! {"count": "system.profile"}).await.unwrap();
    assert_eq!(count.get_i64("n"), Some(4));
    node.running.stop().await;
}

#[tokio::test]
async fn an_exhaust_get_more_goes_on_by_itself_and_its_cursor_ends_with_its_connection() {
    let node = Node::start(|_| {}).await;
    let mut c = node.connect().await;
    let filler = "x".repeat(200_000);
    for i in 0..100 {
        run(&mut c, doc! {"insert": "c", "documents": [{"_id": i, "filler": filler.as_str()}]})
            .await
            .unwrap();
    }
    let open = async |c: &mut Connection| {
        let found = run(c, doc! {"find": "c", "batchSize": 1}).await.unwrap();
        found.get_path("cursor.id").and_then(Value::as_i64).unwrap()
    };
    let exhaust = CallOptions { exhaust: true, ..CallOptions::default() };
    let get_more = async |c: &mut Connection, id: i64| {
        let command = doc! {"getMore": id, "collection": "c", "batchSize": 3};
        c.call("admin", &exhaust, &[], |w| command.write_fields(w)).await.unwrap()
    };
    let id = open(&mut c).await;
    let mut reply = get_more(&mut c, id).await;
    let mut seen = 1;
    loop {
        let cursor = reply.body().get_document("cursor").unwrap();
        seen += cursor.get("nextBatch").and_then(|v| v.as_array()).unwrap().iter().count();
        assert_eq!(cursor.get_i64("id").unwrap() != 0, reply.more_to_come());
        if !reply.more_to_come() {
            break;
        }
        reply = c.next_reply(None).await.unwrap();
    }
    assert_eq!(seen, 100);
    // One request at a time again; then a stream that nobody reads to its end.
    let id = open(&mut c).await;
    assert!(get_more(&mut c, id).await.more_to_come());
    drop(c);
    let cursors = &node.running.service.node.as_ref().unwrap().cursors;
    for _ in 0..1000 {
        if cursors.metrics().open == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(cursors.metrics().open, 0);
    node.running.stop().await;
}
