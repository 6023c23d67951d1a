//! Range deletion never takes what is owned or read.

use super::cluster::{Cluster, NS};
use crate::shard::range_deleter::{TASKS, settle_if_forgotten, tasks};
use document::{Document, Value, codes, doc};
use node::failpoints::Mode;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_does_not_come_back_while_its_deletion_is_pending() {
    let cluster = Cluster::new().await;
    let mut client = cluster.session();
    for x in 0..50 {
        cluster.insert(&mut client, x).await.unwrap();
    }
    let a = cluster.shard("a");
    a.node.failpoints.configure("suspendRangeDeletion", Mode::AlwaysOn, doc! {});
    cluster.move_range("a", "b", 0, 1000).await.unwrap();
    a.parameters.set_at_runtime("receiveChunkWaitForRangeDeleterTimeoutMS", &Value::Int32(50)).unwrap();
    let refused = cluster.move_range("b", "a", 0, 1000).await.unwrap_err();
    assert_eq!(refused.code, codes::CHUNK_RANGE_CLEANUP_PENDING, "{refused:?}");
    assert_eq!(tasks(&a, Some(NS))[0].orphans, 50);
    a.node.failpoints.configure("suspendRangeDeletion", Mode::Off, doc! {});
    cluster.settle().await;
    cluster.move_range("b", "a", 0, 1000).await.unwrap();
    assert_eq!(cluster.owned().await.len(), 50);
}

/// A task that contradicts the config server, as a bug or an operator might leave it: the data stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ready_task_for_an_owned_range_deletes_nothing() {
    let cluster = Cluster::new().await;
    let mut client = cluster.session();
    for x in 0..50 {
        cluster.insert(&mut client, x).await.unwrap();
    }
    let a = cluster.shard("a");
    let task = |id: u8, uuid: u8| -> Document {
        doc! {
            "_id": Value::uuid([id; 16]), "nss": NS, "collectionUuid": Value::uuid([uuid; 16]), "donorShardId": "a",
            "range": { "min": { "x": 10 }, "max": { "x": 20 } }, "whenToClean": "now", "numOrphanDocs": 0i64,
            "keyPattern": { "x": 1 },
        }
    };
    a.local.insert(TASKS, &task(1, 7)).await.unwrap();
    // One for a collection of this name that was dropped.
    a.local.insert(TASKS, &task(2, 8)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(cluster.held("a").len(), 50);
    let left = tasks(&a, None);
    assert_eq!(left.len(), 1, "the task of the dropped collection is void: {left:?}");
    assert_eq!(left[0].uuid, [7; 16]);
}

/// What the next primary has begun, the deposed one does not know: taken for forgotten, the range would be deleted and then committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pending_task_is_not_settled_by_a_donor_that_is_deposed() {
    let cluster = Cluster::new().await;
    let a = cluster.shard("a");
    a.node.failpoints.configure("suspendRangeDeletion", Mode::AlwaysOn, doc! {});
    let task = doc! {
        "_id": Value::uuid([3; 16]), "nss": NS, "collectionUuid": Value::uuid([7; 16]), "donorShardId": "b",
        "range": { "min": { "x": 5000 }, "max": { "x": 6000 } }, "whenToClean": "now", "numOrphanDocs": 0i64,
        "pending": true, "keyPattern": { "x": 1 },
    };
    a.local.insert(TASKS, &task).await.unwrap();
    let is_pending = || tasks(&a, None)[0].pending;
    *cluster.network.deposed.lock() = Some("b:1");
    settle_if_forgotten(&a, &tasks(&a, None)[0]).await.unwrap_err();
    assert!(is_pending());
    *cluster.network.deposed.lock() = None;
    settle_if_forgotten(&a, &tasks(&a, None)[0]).await.unwrap();
    assert!(!is_pending(), "the donor that leads knows nothing of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_that_is_read_through_an_older_filter_waits() {
    let cluster = Cluster::new().await;
    let mut client = cluster.session();
    for x in 0..50 {
        cluster.insert(&mut client, x).await.unwrap();
    }
    let a = cluster.shard("a");
    let filter = a.placement(NS).and_then(|p| node::namespace::Placement::filter(&p)).unwrap();
    cluster.move_range("a", "b", 0, 1000).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(cluster.held("a").len(), 50, "a cursor may still read them");
    drop(filter);
    cluster.settle().await;
    assert_eq!(cluster.held("a").len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_goes_on_after_a_restart() {
    let cluster = Cluster::new().await;
    let mut client = cluster.session();
    for x in 0..50 {
        cluster.insert(&mut client, x).await.unwrap();
    }
    cluster.shard("a").node.failpoints.configure("suspendRangeDeletion", Mode::AlwaysOn, doc! {});
    cluster.move_range("a", "b", 0, 1000).await.unwrap();
    cluster.crash("a").await;
    cluster.settle().await;
    assert_eq!(cluster.held("a").len(), 0);
    assert_eq!(cluster.owned().await.len(), 50);
}
