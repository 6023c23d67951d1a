//! Ranges move while clients write; power fails at every step; the config server's answers get lost.

use super::cluster::{Cluster, CommitFault, NS};
use super::lifetime::FOREVER;
use crate::shard::migration::{recipient, sessions};
use document::{Document, Timestamp, Value, codes, doc};
use node::failpoints::Mode;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_moves_with_its_documents_and_leaves_none_behind() {
    let cluster = Cluster::new().await;
    let mut client = cluster.session();
    for x in -20..40 {
        cluster.insert(&mut client, x).await.unwrap();
    }
    cluster.move_range("a", "b", 10, 30).await.unwrap();
    assert_eq!(cluster.owned().await.len(), 60);
    cluster.settle().await;
    assert_eq!(cluster.held("a").len(), 40);
    assert_eq!(cluster.held("b").len(), 20);
    // Routers of before are refused, learn, and find the recipient.
    assert_eq!(cluster.increment(&mut client, 15).await.unwrap(), 1);
    assert_eq!(cluster.owned().await[&15], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_executed_on_the_donor_is_not_executed_again_on_the_recipient() {
    let cluster = Cluster::new().await;
    let mut client = cluster.session();
    cluster.insert(&mut client, 5).await.unwrap();
    cluster.increment(&mut client, 5).await.unwrap();
    cluster.move_range("a", "b", 0, 1000).await.unwrap();
    // The client did not see the answer: the same number again, which now reaches the recipient.
    client.number -= 1;
    assert_eq!(cluster.increment(&mut client, 5).await.unwrap(), 1);
    assert_eq!(cluster.owned().await[&5], 1);
    cluster.settle().await;
    cluster.move_range("b", "a", 0, 1000).await.unwrap();
    client.number -= 1;
    assert_eq!(cluster.increment(&mut client, 5).await.unwrap(), 1);
    assert_eq!(cluster.owned().await[&5], 1);
}

/// A snapshot taken in between asks the recipient, and has to find there what the range had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_changes_hands_after_the_last_write_of_a_recipient_whose_clock_is_ahead() {
    let cluster = Cluster::new().await;
    let mut client = cluster.session();
    cluster.insert(&mut client, 5).await.unwrap();
    let recipient = cluster.shard("b");
    let ahead = Timestamp::new(recipient.node.cluster_time().secs + 1000, 0);
    recipient.node.log.advance_clock(ahead.as_u64());
    cluster.move_range("a", "b", 0, 1000).await.unwrap();
    let valid_after = *cluster.network.valid_after.lock();
    assert!(valid_after > Some(ahead), "{valid_after:?}");
}

/// What clients know to have happened.
type Expected = BTreeMap<i32, Option<i64>>;

/// Writes at random until told to stop; answers what must be there.
async fn writer(cluster: Arc<Cluster>, from: i32, stop: Arc<AtomicBool>) -> Expected {
    let mut client = cluster.session();
    let mut expected = Expected::new();
    while !stop.load(Ordering::SeqCst) {
        // Every writer has keys of its own, spread over the whole range.
        let x = from + 4 * (runtime::random::<u32>() % 100) as i32;
        let now = expected.get(&x).copied().flatten();
        let next = match (now, runtime::random::<u32>() % 8) {
            (None, _) => {
                assert_eq!(cluster.insert(&mut client, x).await.unwrap(), 1);
                Some(0)
            }
            (Some(_), 0) => {
                assert_eq!(cluster.delete(&mut client, x).await.unwrap(), 1, "delete {x}");
                None
            }
            (Some(n), _) => {
                assert_eq!(cluster.increment(&mut client, x).await.unwrap(), 1, "update {x}");
                Some(n + 1)
            }
        };
        expected.insert(x, next);
    }
    expected
}

struct Writers {
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<Expected>>,
}
impl Writers {
    fn start(cluster: &Arc<Cluster>) -> Writers {
        let stop = Arc::new(AtomicBool::new(false));
        let tasks = (0..4).map(|i| runtime::spawn(writer(cluster.clone(), i, stop.clone()))).collect();
        Writers { stop, tasks }
    }
    /// Ends the writers and compares what they know with what is there.
    async fn check(self, cluster: &Cluster) {
        self.stop.store(true, Ordering::SeqCst);
        let mut expected = BTreeMap::new();
        for task in self.tasks {
            let known = tokio::time::timeout(FOREVER, task).await.expect("a writer hangs").unwrap();
            expected.extend(known.into_iter().filter_map(|(x, n)| Some((x, n?))));
        }
        assert!(expected.len() > 10);
        let found = cluster.owned().await;
        for (x, n) in &expected {
            assert_eq!(found.get(x), Some(n), "document {x}");
        }
        assert_eq!(found, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_during_moves_are_there_exactly_once() {
    let cluster = Cluster::new().await;
    let writers = Writers::start(&cluster);
    tokio::time::sleep(Duration::from_millis(100)).await;
    for _ in 0..4 {
        cluster.move_range("a", "b", 100, 300).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        cluster.settle().await;
        cluster.move_range("b", "a", 100, 300).await.unwrap();
        cluster.settle().await;
    }
    writers.check(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_and_a_late_request_are_resolved_by_the_config_server() {
    for fault in [CommitFault::LoseAnswer, CommitFault::LoseRequest] {
        let cluster = Cluster::new().await;
        let writers = Writers::start(&cluster);
        tokio::time::sleep(Duration::from_millis(50)).await;
        *cluster.network.fault.lock() = fault;
        let moved = cluster.move_range("a", "b", 0, 200).await;
        *cluster.network.fault.lock() = CommitFault::None;
        assert_eq!(moved.is_ok(), fault == CommitFault::LoseAnswer, "{fault:?}: {moved:?}");
        cluster.settle().await;
        let on_recipient = cluster.held("b").len();
        assert_eq!(on_recipient > 0, fault == CommitFault::LoseAnswer);
        writers.check(&cluster).await;
    }
}

/// Power fails on `victim` while `at` holds the migration on `holder`.
async fn crash_at(holder: &str, point: &str, victim: &str, fault: CommitFault) {
    let cluster = Cluster::new().await;
    let writers = Writers::start(&cluster);
    tokio::time::sleep(Duration::from_millis(60)).await;
    *cluster.network.fault.lock() = fault;
    let role = cluster.shard(holder);
    role.node.failpoints.configure(point, Mode::AlwaysOn, doc! {});
    let moving = runtime::spawn({
        let cluster = cluster.clone();
        async move { cluster.move_range("a", "b", 100, 300).await }
    });
    let reached = tokio::time::timeout(FOREVER, role.node.failpoints.wait_entered(point, 1)).await;
    assert!(reached.is_ok(), "{point} is never reached");
    drop(role);
    cluster.crash(victim).await;
    if victim != holder {
        cluster.shard(holder).node.failpoints.configure(point, Mode::Off, doc! {});
    }
    let _ = tokio::time::timeout(FOREVER, moving).await.expect("the move hangs");
    *cluster.network.fault.lock() = CommitFault::None;
    cluster.settle().await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    for shard in ["a", "b"] {
        let left = cluster.shard(shard).local.find(crate::shard::migration::COORDINATORS, &doc! {}).unwrap();
        assert!(left.is_empty(), "{point}: coordinator left: {left:?}");
        assert!(!cluster.shard(shard).in_critical_section(super::cluster::NS));
    }
    writers.check(&cluster).await;
    // And the shards can migrate again.
    cluster.settle().await;
    let owner_is_b = cluster.held("b").iter().any(|d| (100..300).contains(&d.get_i64("x").unwrap()));
    let (from, to) = if owner_is_b { ("b", "a") } else { ("a", "b") };
    cluster.move_range(from, to, 100, 300).await.unwrap();
}

macro_rules! crashes {
    ($($name:ident: $holder:literal $point:literal $victim:literal $fault:ident;)+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            crash_at($holder, $point, $victim, CommitFault::$fault).await;
        }
    )+};
}
crashes! {
    donor_crashes_before_anything_is_written: "a" "moveChunkHangAtStep2" "a" None;
    donor_crashes_after_the_recipient_started: "a" "moveChunkHangAtStep3" "a" None;
    donor_crashes_in_the_steady_state: "a" "moveChunkHangAtStep4" "a" None;
    donor_crashes_when_the_recipient_has_everything: "a" "moveChunkHangAtStep5" "a" None;
    donor_crashes_before_the_decision_is_written: "a" "hangBeforeMakingCommitDecisionDurable" "a" None;
    donor_crashes_before_it_writes_what_a_lost_answer_meant: "a" "hangBeforeMakingCommitDecisionDurable" "a" LoseAnswer;
    donor_crashes_after_the_commit: "a" "moveChunkHangAtStep6" "a" None;
    recipient_crashes_before_the_clone: "b" "migrateThreadHangAtStep2" "b" None;
    recipient_crashes_after_the_clone: "b" "migrateThreadHangAtStep4" "b" None;
    recipient_crashes_before_the_last_difference: "b" "migrateThreadHangAtStep6" "b" None;
    recipient_crashes_before_it_answers_the_commit: "b" "migrateThreadHangAtStep7" "b" None;
    recipient_crashes_when_the_donor_has_not_committed: "a" "moveChunkHangAtStep5" "b" None;
    recipient_crashes_after_the_commit: "a" "moveChunkHangAtStep6" "b" None;
}

/// Between the clone and the last difference: unique values are swapped, a key leaves the range, an `_id` is deleted
/// and inserted again, and documents come and go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_between_clone_and_commit_arrive_whatever_their_order() {
    let cluster = Cluster::new().await;
    let a = cluster.shard("a");
    let slot = a.node.namespaces.slot(super::cluster::NS);
    a.node
        .write(&node::Operation::internal(), &slot, |unit| {
            unit.create_index_now(&doc! { "x": 1, "u": 1 }, &doc! { "unique": true })
        })
        .await
        .unwrap();
    let mut client = cluster.session();
    let mut insert = async |id: i32, x: i32, u: i32| {
        let d = doc! { "_id": id, "x": x, "u": u, "n": 0 };
        cluster.write(&mut client, x, doc! { "insert": "c", "documents": vec![d] }).await.unwrap()
    };
    for (id, x, u) in [(1, 5, 1), (2, 5, 2), (3, 10, 3), (4, 11, 4), (5, 12, 5)] {
        insert(id, x, u).await;
    }
    let b = cluster.shard("b");
    b.node.failpoints.configure("migrateThreadHangAtStep4", Mode::AlwaysOn, doc! {});
    let moving = runtime::spawn({
        let cluster = cluster.clone();
        async move { cluster.move_range("a", "b", 0, 1000).await }
    });
    b.node.failpoints.wait_entered("migrateThreadHangAtStep4", 1).await;
    assert_eq!(cluster.held("b").len(), 5, "the clone is there");
    let mut client = cluster.session();
    let mut set = async |id: i32, x: i32, to: document::Document| {
        let u = doc! { "q": { "_id": id, "x": x }, "u": { "$set": to } };
        assert_eq!(
            cluster.write(&mut client, x, doc! { "update": "c", "updates": vec![u] }).await.unwrap(),
            1
        );
    };
    set(1, 5, doc! { "u": 100 }).await;
    set(2, 5, doc! { "u": 1 }).await;
    set(1, 5, doc! { "u": 2 }).await;
    // Out of the range, into another chunk of the donor.
    set(3, 10, doc! { "x": 2000 }).await;
    let mut client = cluster.session();
    cluster
        .write(
            &mut client,
            11,
            doc! { "delete": "c", "deletes": vec![doc! { "q": { "_id": 4, "x": 11 }, "limit": 1 }] },
        )
        .await
        .unwrap();
    let again = doc! { "_id": 4, "x": 13, "u": 44, "n": 7 };
    cluster.write(&mut client, 13, doc! { "insert": "c", "documents": vec![again] }).await.unwrap();
    cluster
        .write(
            &mut client,
            12,
            doc! { "delete": "c", "deletes": vec![doc! { "q": { "_id": 5, "x": 12 }, "limit": 1 }] },
        )
        .await
        .unwrap();
    b.node.failpoints.configure("migrateThreadHangAtStep4", Mode::Off, doc! {});
    moving.await.unwrap().unwrap();
    cluster.settle().await;
    let shown = |shard: &str| {
        let mut all: Vec<(i64, i64, i64)> = cluster
            .held(shard)
            .iter()
            .map(|d| (d.get_i64("_id").unwrap(), d.get_i64("x").unwrap(), d.get_i64("u").unwrap()))
            .collect();
        all.sort();
        all
    };
    assert_eq!(shown("a"), [(3, 2000, 3)]);
    assert_eq!(shown("b"), [(1, 5, 2), (2, 5, 1), (4, 13, 44)]);
}

/// More than one batch each way, so that answers are cut and taken up again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_of_many_batches_moves() {
    let cluster = Cluster::new().await;
    let a = cluster.shard("a");
    let slot = a.node.namespaces.slot(super::cluster::NS);
    let op = node::Operation::internal();
    let filler = "f".repeat(300_000);
    let fill = async |n: i32| {
        for x in 0..80 {
            let d = doc! { "_id": x, "x": x, "n": n, "filler": filler.as_str() }.to_doc_buf();
            a.node
                .write(&op, &slot, |unit| {
                    match unit.existing()?.find_id(document::ValueRef::Int32(x)).map(|f| f.0) {
                        Some(record) => unit.replace(record, d.doc(), node::Origin::default()),
                        None => unit.insert(d.doc(), node::Origin::default()).map(|_| ()),
                    }
                })
                .await
                .unwrap();
        }
    };
    fill(0).await;
    let b = cluster.shard("b");
    b.node.failpoints.configure("migrateThreadHangAtStep4", Mode::AlwaysOn, doc! {});
    let moving = runtime::spawn({
        let cluster = cluster.clone();
        async move { cluster.move_range("a", "b", 0, 1000).await }
    });
    b.node.failpoints.wait_entered("migrateThreadHangAtStep4", 1).await;
    fill(1).await;
    b.node.failpoints.configure("migrateThreadHangAtStep4", Mode::Off, doc! {});
    moving.await.unwrap().unwrap();
    let found = cluster.owned().await;
    assert_eq!(found.len(), 80);
    assert!(found.values().all(|n| *n == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_made_during_a_migration_ends_it() {
    let cluster = Cluster::new().await;
    let mut client = cluster.session();
    cluster.insert(&mut client, 5).await.unwrap();
    let a = cluster.shard("a");
    a.node.failpoints.configure("moveChunkHangAtStep4", Mode::AlwaysOn, doc! {});
    let moving = runtime::spawn({
        let cluster = cluster.clone();
        async move { cluster.move_range("a", "b", 0, 1000).await }
    });
    a.node.failpoints.wait_entered("moveChunkHangAtStep4", 1).await;
    let slot = a.node.namespaces.slot(super::cluster::NS);
    let op = node::Operation::internal();
    a.node.write(&op, &slot, |unit| unit.create_index_now(&doc! { "n": 1 }, &doc! {})).await.unwrap();
    a.node.failpoints.configure("moveChunkHangAtStep4", Mode::Off, doc! {});
    moving.await.unwrap().unwrap_err();
    cluster.settle().await;
    assert_eq!(cluster.increment(&mut client, 5).await.unwrap(), 1, "the donor serves as before");
    assert_eq!((cluster.held("a").len(), cluster.held("b").len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_does_not_leave_while_many_documents_are_updated() {
    let cluster = Cluster::new().await;
    let mut client = cluster.session();
    cluster.insert(&mut client, 5).await.unwrap();
    let a = cluster.shard("a");
    let slot = a.node.namespaces.slot(super::cluster::NS);
    let updating = slot.keep_ranges(&node::Operation::internal()).await.unwrap();
    a.node.failpoints.configure("moveChunkHangAtStep4", Mode::AlwaysOn, doc! {});
    let moving = runtime::spawn({
        let cluster = cluster.clone();
        async move { cluster.move_range("a", "b", 0, 1000).await }
    });
    a.node.failpoints.wait_entered("moveChunkHangAtStep4", 1).await;
    a.node.failpoints.configure("moveChunkHangAtStep4", Mode::Off, doc! {});
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!moving.is_finished() && !a.in_critical_section(super::cluster::NS));
    drop(updating);
    moving.await.unwrap().unwrap();
    assert_eq!(cluster.owned().await[&5], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_took_its_document_out_of_the_range_is_known_where_the_range_goes() {
    let cluster = Cluster::new().await;
    let mut client = cluster.session();
    for (id, x) in [(1, 5), (2, 5)] {
        let d = doc! { "_id": id, "x": x, "n": 0 };
        cluster.write(&mut client, x, doc! { "insert": "c", "documents": vec![d] }).await.unwrap();
    }
    let leave = async |client: &mut super::cluster::Client| {
        let u = doc! { "q": { "x": 5 }, "u": [{ "$set": { "x": 500 } }] };
        cluster.write(client, 5, doc! { "update": "c", "updates": vec![u] }).await.unwrap()
    };
    assert_eq!(leave(&mut client).await, 1);
    cluster.move_range("a", "b", 0, 50).await.unwrap();
    client.number -= 1;
    assert_eq!(leave(&mut client).await, 1);
    let left: Vec<i64> = cluster.held("b").iter().filter_map(|d| d.get_i64("x")).collect();
    assert_eq!(left, [5], "the other document stays as it was");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_whose_entry_the_log_has_lost_is_refused_where_the_range_goes() {
    let cluster = Cluster::new().await;
    let mut client = cluster.session();
    cluster.insert(&mut client, 5).await.unwrap();
    cluster.increment(&mut client, 5).await.unwrap();
    // The session table says that the statement was executed, by an entry that the log does not have.
    let sessions = &cluster.shard("a").node.sessions;
    let mut image = sessions.image();
    let mut lost = image.get_array("sessions").unwrap().clone();
    for session in &mut lost {
        let document::Value::Document(session) = session else { continue };
        use document::Value::{Array, Int32, Int64};
        let executed = vec![Array(vec![Int32(0), Int64(1), Int64(1)])];
        session.insert("executed", executed);
    }
    image.insert("sessions", lost);
    sessions.restore(&image);
    for (from, to) in [("a", "b"), ("b", "a"), ("a", "b")] {
        cluster.move_range(from, to, 0, 1000).await.unwrap();
        cluster.settle().await;
    }
    client.number -= 1;
    let refused = cluster.increment(&mut client, 5).await.unwrap_err();
    assert_eq!(refused.code, codes::INCOMPLETE_TRANSACTION_HISTORY);
    assert_eq!(cluster.owned().await[&5], 1);
    // The next number is none of this.
    assert_eq!(cluster.increment(&mut client, 5).await.unwrap(), 1);
}

/// movePrimary asks for it in parts; one statement of many large documents must not make a part that no reply can carry.
#[tokio::test]
async fn the_history_of_one_long_write_is_handed_out_in_parts() {
    let c = Cluster::new().await;
    let mut client = c.session();
    let large = |x: i32| doc! { "_id": x, "x": x, "filler": "f".repeat(1 << 20) };
    let documents: Vec<Document> = (1..=10).map(large).collect();
    c.write(&mut client, 1, doc! { "insert": "c", "documents": documents }).await.unwrap();
    let (role, mut after, mut parts, mut statements) = (c.shard("a"), None, 0, Vec::new());
    loop {
        let mut command = doc! { "_shardsvrGetSessionHistory": NS };
        if let Some(after) = after {
            command.push("after", after);
        }
        let part = sessions::whole_history(&role.node, command.to_doc_buf().doc()).await.unwrap();
        assert!(part.bytes().len() < 6 << 20, "{} bytes", part.bytes().len());
        let part = part.to_document();
        let entries = part.get_array("oplog").unwrap().iter().filter_map(Value::as_document);
        statements.extend(entries.filter_map(|e| e.get_i64("stmtId")));
        parts += 1;
        match part.get_document("next") {
            Some(next) => after = Some(next.clone()),
            None => break,
        }
    }
    assert_eq!(statements, (0..10).collect::<Vec<i64>>());
    assert!(parts > 1);
}

/// The requests passed the check of the primary just before the reign ended.
#[tokio::test]
async fn migrations_that_come_after_the_reign_are_refused_and_leave_nothing_behind() {
    let c = Cluster::new().await;
    let (a, b) = (c.shard("a"), c.shard("b"));
    a.stop();
    b.stop();
    let late = tokio::time::timeout(FOREVER, c.move_range("a", "b", 0, 1000)).await;
    late.expect("a donor that has stopped is waited for").unwrap_err();
    assert!(a.migrations.donation().is_none());
    let late = recipient::start(&b, start_of_reception().to_doc_buf().doc()).await;
    assert_eq!(late.unwrap_err().code, codes::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE);
    assert!(b.migrations.reception().is_none());
}

fn start_of_reception() -> Document {
    doc! {
        "_recvChunkStart": NS, "uuid": Value::uuid([3; 16]), "sessionId": "a_b_1", "fromShardName": "a", "toShardName": "b",
        "min": { "x": 0 }, "max": { "x": 1000 }, "shardKeyPattern": { "x": 1 },
        "collection": { "uuid": Value::uuid([7; 16]), "indexes": Vec::<Document>::new() },
    }
}

/// A drop stops migrations on all shards at once, so the recipient may hear of it before it has done anything.
#[tokio::test]
async fn a_reception_that_is_stopped_before_its_first_action_is_over() {
    let c = Cluster::new().await;
    let (b, start) = (c.shard("b"), start_of_reception());
    // Its task has not run yet: there is one thread, and it is this one's.
    recipient::start(&b, start.to_doc_buf().doc()).await.unwrap();
    tokio::time::timeout(FOREVER, b.migrations.stop(NS)).await.expect("the reception does not end");
    c.move_range("a", "b", 0, 1000).await.unwrap();
}
