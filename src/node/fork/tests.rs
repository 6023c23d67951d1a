//! Copies of databases: they and their originals go their own ways, through checkpoints and restarts.

use super::*;
use crate::local::LocalClient;
use crate::replication::testing;
use crate::{Node, Operation, ddl};
use std::sync::Arc;
use storage::files::MemoryFiles;

async fn insert(node: &Arc<Node>, ns: &str, ids: std::ops::Range<i32>) {
    for id in ids {
        LocalClient::new(node.clone()).insert(ns, &doc! { "_id": id, "x": id % 7 }).await.unwrap();
    }
}

/// Every collection that is no snapshot's: its namespace, its UUID and its documents, with the keys of each index counted.
fn shown(node: &Node) -> Vec<(String, [u8; 16], Vec<i32>, Vec<usize>)> {
    let mut out = Vec::new();
    for slot in node.namespaces.visible().iter().filter(|slot| slot.ns.starts_with('d')) {
        if let Some(c) = &slot.read_unchecked().collection {
            let mut records = CollectionView::records(c);
            let first = records.first();
            let all = std::iter::successors(first, |_| records.next());
            let ids = all.map(|(_, d)| d.get_i64("_id").unwrap() as i32).collect();
            let keys = c.indexes().iter().map(|i| i.len()).collect();
            out.push((slot.ns.clone(), c.uuid(), ids, keys));
        }
    }
    out
}
fn ids(node: &Node, ns: &str) -> Option<Vec<i32>> {
    shown(node).into_iter().find(|c| c.0 == ns).map(|c| c.2)
}

fn op() -> Operation {
    Operation::internal()
}

#[tokio::test]
async fn a_copy_and_its_original_go_their_own_ways() {
    let files = MemoryFiles::default();
    let node = testing::open(None, &files, |_| {});
    let indexes = [(doc! { "x": 1 }, doc! { "name": "x_1" })];
    LocalClient::new(node.clone()).ensure_collection("d.a", &indexes).await.unwrap();
    insert(&node, "d.a", 0..100).await;
    insert(&node, "d.b", 0..3).await;
    assert_eq!(fork_database(&node, &op(), "d", "d2", false).await.unwrap(), 2);
    insert(&node, "d.a", 100..110).await;
    insert(&node, "d2.b", 50..51).await;
    ddl::collections::drop_collection(&node, &op(), "d.b", false).await.unwrap();
    assert_eq!(ids(&node, "d2.a").unwrap().len(), 100);
    assert_eq!((ids(&node, "d2.b"), ids(&node, "d.b")), (Some(vec![0, 1, 2, 50]), None));
    let code = |e: document::Error| e.code;
    assert_eq!(fork_database(&node, &op(), "d", "d2", false).await.map_err(code), Err(48));
    assert_eq!(fork_database(&node, &op(), "none", "d3", false).await.map_err(code), Err(26));
    assert_eq!(fork_database(&node, &op(), "d", "$x", false).await.map_err(code), Err(73));
    assert_eq!(fork_database(&node, &op(), "d", "config", false).await.map_err(code), Err(73));
    assert_eq!(fork_database(&node, &op(), "d", "d2", true).await, Ok(1));
    insert(&node, "d2.a", 500..501).await;
    let before = shown(&node);
    node.shutdown();
    drop(node);
    let node = testing::open(None, &files, |_| {});
    assert_eq!(shown(&node), before);
    let keys = &shown(&node)[1];
    assert_eq!((keys.0.as_str(), keys.3.as_slice()), ("d2.a", &[111, 111][..]));
}

#[tokio::test]
async fn a_restore_gives_back_what_was_there_with_its_uuid_over_checkpoints_and_restarts() {
    let files = MemoryFiles::default();
    let mut node = testing::open(None, &files, |_| {});
    insert(&node, "d.a", 0..2000).await;
    insert(&node, "d.b", 0..3).await;
    node.checkpoint().unwrap();
    take_snapshot(&node, &op(), "s").await.unwrap();
    let before = shown(&node);
    for round in 0..4 {
        LocalClient::new(node.clone()).delete("d.a", &doc! { "_id": 5 }).await.unwrap();
        insert(&node, "d.a", 5000..5010).await;
        insert(&node, "d.new", 0..1).await;
        ddl::rename::rename(&node, &op(), "d.b", "d.c", ddl::rename::DropTarget::Refuse).await.unwrap();
        if round % 2 == 1 {
            node.checkpoint().unwrap();
        }
        assert_eq!(restore(&node, &op(), "s").await.unwrap(), 2);
        assert_eq!(shown(&node), before, "round {round}");
        if round > 1 {
            node.checkpoint().unwrap();
        }
        node.shutdown();
        drop(node);
        node = testing::open(None, &files, |_| {});
        assert_eq!(shown(&node), before, "round {round}, started again");
    }
    assert_eq!(list_snapshots(&node), [doc! { "name": "s", "collections": 2 }]);
    let catalog = ddl::list::cluster_catalog(&node, "admin", false);
    assert!(catalog.len() >= 2 && catalog.iter().all(|d| !d.get_str("db").unwrap().starts_with('$')));
    drop_snapshot(&node, &op(), "s").await.unwrap();
    assert_eq!(restore(&node, &op(), "s").await.unwrap_err().code, 26);
    assert!(
        node.namespaces
            .all()
            .iter()
            .all(|slot| { !is_hidden(&slot.database.name) || slot.read_unchecked().collection.is_none() })
    );
}

#[tokio::test]
async fn an_empty_snapshot_empties_the_node_and_views_come_and_go() {
    let node = testing::node(None);
    take_snapshot(&node, &op(), "empty").await.unwrap();
    insert(&node, "d.a", 0..3).await;
    LocalClient::new(node.clone())
        .insert("d.system.views", &doc! { "_id": "d.v", "viewOn": "a", "pipeline": document::array![] })
        .await
        .unwrap();
    node.load_views();
    take_snapshot(&node, &op(), "full").await.unwrap();
    fork_database(&node, &op(), "d", "e", false).await.unwrap();
    let view = |ns: &str| node.namespaces.slot(ns).read_unchecked().view.is_some();
    assert!(view("d.v") && view("e.v"));
    assert_eq!(restore(&node, &op(), "empty").await.unwrap(), 0);
    assert!(shown(&node).is_empty() && !view("d.v") && !view("e.v"));
    restore(&node, &op(), "full").await.unwrap();
    assert!(view("d.v") && !view("e.v"));
    for bad in ["", "a.b", "a:b", "x y", &"x".repeat(65)] {
        assert_eq!(take_snapshot(&node, &op(), bad).await.unwrap_err().code, 2, "{bad}");
    }
}

#[tokio::test]
async fn many_collections_are_put_back_at_once() {
    let node = testing::node(None);
    for i in 0..300 {
        insert(&node, &format!("d.c{i:03}"), 0..1).await;
    }
    take_snapshot(&node, &op(), "s").await.unwrap();
    let before = shown(&node);
    insert(&node, "d.c007", 7..8).await;
    assert_eq!(restore(&node, &op(), "s").await.unwrap(), 300);
    assert_eq!(shown(&node), before);
}

#[tokio::test]
async fn a_copy_waits_for_transactions_that_use_what_it_replaces() {
    let node = testing::node(None);
    insert(&node, "d.a", 0..3).await;
    insert(&node, "d2.a", 0..1).await;
    let command = doc! { "tesseraFork": 1, "maxTimeMS": 20 }.to_doc_buf();
    let timed = || Operation::parse(1, Arc::default(), command.doc()).unwrap();
    let in_use = node.namespaces.slot("d2.a").intent_shared(crate::ddl::lock::LOCK_WAIT).await.unwrap();
    let refused = fork_database(&node, &timed(), "d", "d2", true).await.unwrap_err();
    assert_eq!((refused.code, ids(&node, "d2.a")), (document::codes::MAX_TIME_MS_EXPIRED, Some(vec![0])));
    drop(in_use);
    fork_database(&node, &op(), "d", "d2", true).await.unwrap();
    assert_eq!(ids(&node, "d2.a"), Some(vec![0, 1, 2]));
}

#[tokio::test]
async fn a_copy_of_more_than_an_entry_of_the_log_holds_changes_nothing() {
    let node = testing::node(None);
    insert(&node, "d.a", 0..1).await;
    insert(&node, "e.a", 7..8).await;
    let pad = "x".repeat(15 << 20);
    for i in 0..5 {
        let view = doc! { "_id": format!("d.v{i}"), "viewOn": "a", "pipeline": document::array![], "pad": pad.as_str() };
        LocalClient::new(node.clone()).insert("d.system.views", &view).await.unwrap();
    }
    let before = node.log.appended();
    assert_eq!(fork_database(&node, &op(), "d", "e", true).await.unwrap_err().code, 96);
    assert_eq!(node.log.appended(), before);
    let collection = node.namespaces.slot("e.a").read_unchecked().collection.as_ref().map(|c| c.len());
    assert_eq!(collection, Some(1));
}

#[tokio::test]
async fn what_came_since_does_not_count_against_the_collections_of_a_snapshot() {
    let node = testing::node(None);
    insert(&node, "d.a", 0..3).await;
    take_snapshot(&node, &op(), "s").await.unwrap();
    let names: BTreeSet<String> = (0..COLLECTIONS_MAX).map(|i| format!("d.c{i}")).collect();
    let making = op();
    let made = node.write_alone(
        &making,
        || Ok((names.clone(), ())),
        |unit, ()| {
            for ns in &names {
                let meta = plain(ns, node.new_uuid());
                unit.on(ns).into_iter().for_each(|mut target| target.create_collection(meta.clone(), true));
            }
            unit.group();
            Ok(())
        },
    );
    made.await.unwrap();
    assert_eq!(take_snapshot(&node, &op(), "t").await.unwrap_err().code, document::codes::OPERATION_FAILED);
    assert_eq!(restore(&node, &op(), "s").await.unwrap(), 1);
    assert_eq!(shown(&node).len(), 1);
}
