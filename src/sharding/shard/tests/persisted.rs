//! The placement that a shard keeps on disk is never replaced by an older one.

use super::cluster::{Cluster, NS};
use crate::routing::{DatabaseEntry, Routing};
use document::{Timestamp, Value, doc};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_task_writes_no_older_placement_over_a_newer() {
    let cluster = Cluster::new().await;
    let a = cluster.shard("a");
    let old = a.refresh_collection(NS).await.unwrap();
    assert!(matches!(old, Routing::Sharded(_)));
    a.install(NS, &Routing::Unsharded, a.signals.now(NS));
    assert!(a.persist_installed(NS, &Routing::Unsharded).await.unwrap());
    assert!(!a.persist_installed(NS, &old).await.unwrap());
    assert!(matches!(a.persisted_collection(NS).unwrap(), Some(Routing::Unsharded)));
    // Forgotten, it is written by whoever reads it anew.
    a.clear_placement(NS);
    assert!(!a.persist_installed(NS, &old).await.unwrap());
    let version = doc! { "uuid": Value::uuid([1; 16]), "timestamp": Timestamp::new(1, 0), "lastMod": 1 };
    let database = DatabaseEntry::from_document(&doc! { "_id": "d", "primary": "a", "version": version });
    assert!(!a.persist_installed_database("d", Some(&database.unwrap())).await.unwrap());
}
