//! Ranges move while clients write; power fails at every step; the config server's answers get lost.

use super::cluster::{Cluster, CommitFault};
use document::doc;
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

/// What clients know to have happened.
type Expected = BTreeMap<i32, Option<i64>>;

/// Writes at random until told to stop; answers what must be there.
async fn writer(cluster: Arc<Cluster>, from: i32, stop: Arc<AtomicBool>) -> Expected {
    let mut client = cluster.session();
    let mut expected = Expected::new();
    while !stop.load(Ordering::SeqCst) {
        // Every writer has keys of its own, spread over the whole range.
        let x = from + 4 * (rand::random::<u32>() % 100) as i32;
        let now = expected.get(&x).copied().flatten();
        let next = match (now, rand::random::<u32>() % 8) {
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
        let tasks = (0..4).map(|i| tokio::spawn(writer(cluster.clone(), i, stop.clone()))).collect();
        Writers { stop, tasks }
    }
    /// Ends the writers and compares what they know with what is there.
    async fn check(self, cluster: &Cluster) {
        self.stop.store(true, Ordering::SeqCst);
        let mut expected = BTreeMap::new();
        for task in self.tasks {
            let known = tokio::time::timeout(Duration::from_secs(10), task).await.expect("a writer hangs").unwrap();
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
    let moving = tokio::spawn({
        let cluster = cluster.clone();
        async move { cluster.move_range("a", "b", 100, 300).await }
    });
    let reached = tokio::time::timeout(Duration::from_secs(5), role.node.failpoints.wait_entered(point, 1)).await;
    assert!(reached.is_ok(), "{point} is never reached");
    cluster.crash(victim).await;
    if victim != holder {
        role.node.failpoints.configure(point, Mode::Off, doc! {});
    }
    drop(role);
    let _ = tokio::time::timeout(Duration::from_secs(8), moving).await.expect("the move hangs");
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
    donor_crashes_before_the_decision_is_written: "a" "hangBeforeWritingDecision" "a" None;
    donor_crashes_before_it_writes_what_a_lost_answer_meant: "a" "hangBeforeWritingDecision" "a" LoseAnswer;
    donor_crashes_after_the_commit: "a" "moveChunkHangAtStep6" "a" None;
    recipient_crashes_before_the_clone: "b" "migrateThreadHangAtStep2" "b" None;
    recipient_crashes_after_the_clone: "b" "migrateThreadHangAtStep3" "b" None;
    recipient_crashes_before_the_last_difference: "b" "migrateThreadHangAtStep5" "b" None;
    recipient_crashes_before_it_answers_the_commit: "b" "migrateThreadHangAtStep6" "b" None;
    recipient_crashes_when_the_donor_has_not_committed: "a" "moveChunkHangAtStep5" "b" None;
    recipient_crashes_after_the_commit: "a" "moveChunkHangAtStep6" "b" None;
}
