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
    a.install(NS, &Routing::Unsharded, a.signals.now(NS));
    assert!(a.persist_installed(&op, NS, &Routing::Unsharded).await.unwrap());
    assert!(!a.persist_installed(&op, NS, &old).await.unwrap());
    assert!(matches!(a.persisted_collection(NS).unwrap(), Some(Routing::Unsharded)));
    // Forgotten, it is written by whoever reads it anew.
    a.clear_placement(NS);
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
