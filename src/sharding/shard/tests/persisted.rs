//! The placement that a shard keeps on disk is never replaced by an older one.

use super::cluster::{Cluster, NS};
use crate::routing::{DatabaseEntry, Routing};
use document::{Timestamp, Value, doc};
use node::Operation;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_task_writes_no_older_placement_over_a_newer() {
    let cluster = Cluster::new().await;
    let (a, op) = (cluster.shard("a"), Operation::internal());
    let old = a.refresh_collection(NS).await.unwrap();
    assert!(matches!(old, Routing::Sharded(_)));
    assert!(a.install(NS, &Routing::Unsharded, a.signals.now(NS), a.forgotten(NS)));
    assert!(a.persist_installed(&op, NS, &Routing::Unsharded).await.unwrap());
    assert!(!a.persist_installed(&op, NS, &old).await.unwrap());
    assert!(matches!(a.persisted_collection(NS).unwrap(), Some(Routing::Unsharded)));
    // Forgotten, it is written by whoever reads it anew.
    let before = a.forgotten(NS);
    a.clear_placement(NS);
    // Nor is what was read before installed after: a change of the catalog may have come in between.
    assert!(!a.install(NS, &old, a.signals.now(NS), before));
    assert!(a.placement(NS).unwrap().table().is_none());
    assert!(!a.persist_installed(&op, NS, &old).await.unwrap());
    let version = doc! { "uuid": Value::uuid([1; 16]), "timestamp": Timestamp::new(1, 0), "lastMod": 1 };
    let database = DatabaseEntry::from_document(&doc! { "_id": "d", "primary": "a", "version": version });
    assert!(!a.persist_installed_database("d", Some(&database.unwrap())).await.unwrap());
}

/// The config server may be out of reach when the migration has committed: nothing that is remembered then may be from before.
#[tokio::test]
async fn what_is_written_down_is_void_from_the_critical_section_until_it_is_read_anew() {
    let cluster = Cluster::new().await;
    let (a, op) = (cluster.shard("a"), Operation::internal());
    let before = a.refresh_collection(NS).await.unwrap();
    assert!(a.persist_installed(&op, NS, &before).await.unwrap());
    a.enter_critical_section(NS, "test", Duration::from_secs(1)).await.unwrap();
    a.signal_secondaries(NS).await.unwrap();
    let late = a.persist_installed(&op, NS, &before);
    tokio::pin!(late);
    assert!(tokio::time::timeout(Duration::from_millis(20), &mut late).await.is_err());
    a.persist_forgotten(NS, &before).await.unwrap();
    assert!(a.persisted_collection(NS).unwrap().is_none());
    a.leave_critical_section(NS);
    assert!(late.await.unwrap());
    assert!(matches!(a.persisted_collection(NS).unwrap(), Some(Routing::Sharded(_))));
}

/// Whoever leads next has to have heard of it, and to tell the others: they go on reading by what they know.
#[tokio::test]
async fn a_placement_changes_only_when_a_majority_has_heard_of_it() {
    let cluster = Cluster::new().await;
    let a = cluster.shard("a");
    a.refresh_collection(NS).await.unwrap();
    let shared = |shared| a.node.replication.commit.set_shared(shared);
    // The majority is away.
    shared(true);
    let signalled = tokio::time::timeout(Duration::from_millis(100), a.signal_secondaries(NS)).await;
    assert!(signalled.is_err(), "a change begins of which nobody else may know");
    shared(false);
    a.signal_secondaries(NS).await.unwrap();
}
