//! Streams over entries written by hand: what the log may hold besides what this node's commands write today.

use super::ChangeStreamRows;
use crate::exec::batch::Documents;
use crate::replication::testing;
use crate::{Node, Operation};
use document::{Document, Result, Timestamp, Value, codes, doc};
use query::pipeline::{Context, Namespace, Run, parse};
use std::sync::Arc;
use storage::log::Class;

const UUID: [u8; 16] = [7; 16];

/// Appends the payload of an entry and returns its time.
fn log(node: &Node, payload: Document) -> Timestamp {
    let bytes = payload.to_vec();
    Timestamp::from_u64(node.log.append(Class::Oplog, &[&[&bytes]]).last.ts)
}

fn lsid() -> Document {
    doc! { "id": (Value::uuid([1; 16])) }
}

fn insert(id: i32) -> Document {
    doc! { "op": "i", "ns": "d.c", "ui": (Value::uuid(UUID)), "o": { "_id": id }, "o2": { "_id": id } }
}

/// One entry of a transaction's chain.
fn part(operations: &[Document], before: Timestamp, more: Document) -> Document {
    let operations = operations.iter().cloned().map(Value::from).collect::<Vec<_>>();
    let mut o = doc! { "applyOps": (Value::Array(operations)) };
    o.0.extend(more.0);
    let term = if before.as_u64() == 0 { -1i64 } else { 1 };
    doc! {
        "lsid": (lsid()), "txnNumber": 5i64, "op": "c", "ns": "admin.$cmd", "o": o,
        "prevOpTime": { "ts": before, "t": term },
    }
}

fn open(node: &Arc<Node>, spec: Document) -> Result<ChangeStreamRows> {
    let context = Context::new(Namespace::new("d", "c"), node.parse_context(Document::new()));
    let pipeline = parse(&[doc! { "$changeStream": spec }.into()], &context)?;
    ChangeStreamRows::open(node, &Operation::internal(), "d.c", &pipeline, Run::new(&context), false)
}

async fn events(node: &Arc<Node>, stream: &mut ChangeStreamRows) -> Result<Vec<Document>> {
    let mut out = Documents::default();
    stream.fill(node, &Arc::new(Operation::internal()), &mut out).await?;
    Ok(out.list.iter().map(|d| d.to_document()).collect())
}

fn ids(events: &[Document]) -> Vec<i64> {
    events.iter().filter_map(|e| e.get_path("documentKey._id")?.as_i64()).collect()
}

/// A transaction in three entries, with an operation on another collection, and one that is prepared.
fn transactions(node: &Node) -> [Timestamp; 2] {
    let other = doc! { "op": "i", "ns": "d.other", "ui": (Value::uuid([9; 16])), "o": { "_id": 0 }, "o2": { "_id": 0 } };
    let none = Timestamp::new(0, 0);
    let first = log(node, part(&[insert(1), insert(2)], none, doc! { "partialTxn": true }));
    log(node, insert(100));
    let second = log(node, part(&[other, insert(3)], first, doc! { "partialTxn": true }));
    let committed = log(node, part(&[insert(4)], second, doc! { "count": 5i64 }));
    let prepared = log(node, part(&[insert(5)], none, doc! { "prepare": true }));
    log(node, insert(101));
    let mut commit = part(&[], prepared, Document::new());
    commit.insert("o", doc! { "commitTransaction": 1, "commitTimestamp": prepared });
    let of_prepared = log(node, commit);
    let aborted = log(node, part(&[insert(6)], none, doc! { "prepare": true }));
    let mut abort = part(&[], aborted, Document::new());
    abort.insert("o", doc! { "abortTransaction": 1 });
    log(node, abort);
    [committed, of_prepared]
}

#[tokio::test]
async fn a_transaction_is_shown_where_it_is_committed_and_every_token_resumes() {
    let node = testing::node(Some("rs"));
    let mut stream = open(&node, doc! {}).unwrap();
    let [committed, of_prepared] = transactions(&node);
    let all = events(&node, &mut stream).await.unwrap();
    assert_eq!(ids(&all), [100, 1, 2, 3, 4, 101, 5]);
    let (one, last) = (&all[1], &all[6]);
    assert_eq!(one.get("clusterTime"), Some(&Value::Timestamp(committed)));
    assert_eq!((one.get_i64("txnNumber"), one.get_document("lsid")), (Some(5), Some(&lsid())));
    assert_eq!(last.get("clusterTime"), Some(&Value::Timestamp(of_prepared)));
    assert!(all[0].get("lsid").is_none());
    let tokens: Vec<&str> = all.iter().filter_map(|e| e.get_path("_id._data")?.as_str()).collect();
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    for (i, token) in tokens.iter().enumerate() {
        let mut resumed = open(&node, doc! { "resumeAfter": { "_data": (*token) } }).unwrap();
        assert_eq!(ids(&events(&node, &mut resumed).await.unwrap()), ids(&all[i + 1..]), "after {i}");
    }
}

#[tokio::test]
async fn operations_count_whether_they_are_watched_or_not() {
    let node = testing::node(Some("rs"));
    let mut stream = open(&node, doc! {}).unwrap();
    transactions(&node);
    let all = events(&node, &mut stream).await.unwrap();
    let index = |e: &Document| {
        query::change_stream::Token::parse(e.get_document("_id").unwrap()).unwrap().operation_index
    };
    assert_eq!(all.iter().map(index).collect::<Vec<_>>(), [0, 0, 1, 3, 4, 0, 0]);
}

#[tokio::test]
async fn what_a_migration_wrote_is_shown_on_request_only() {
    let node = testing::node(Some("rs"));
    let (mut usual, mut all) =
        (open(&node, doc! {}).unwrap(), open(&node, doc! { "showMigrationEvents": true }).unwrap());
    let mut moved = insert(1);
    moved.push("fromMigrate", true);
    log(&node, moved);
    log(&node, insert(2));
    assert_eq!(ids(&events(&node, &mut usual).await.unwrap()), [2]);
    assert_eq!(ids(&events(&node, &mut all).await.unwrap()), [1, 2]);
}

#[tokio::test]
async fn a_token_whose_event_does_not_come_again_is_fatal_once_a_later_one_comes() {
    let node = testing::node(Some("rs"));
    let mut stream = open(&node, doc! { "showMigrationEvents": true }).unwrap();
    let mut moved = insert(1);
    moved.push("fromMigrate", true);
    log(&node, moved);
    let token = events(&node, &mut stream).await.unwrap()[0].get("_id").cloned().unwrap();
    let mut resumed = open(&node, doc! { "resumeAfter": token }).unwrap();
    assert_eq!(events(&node, &mut resumed).await.unwrap(), []);
    log(&node, insert(2));
    let failed = events(&node, &mut resumed).await.unwrap_err();
    assert_eq!(failed.code, codes::CHANGE_STREAM_FATAL_ERROR);
}

#[tokio::test]
async fn noted_changes_of_a_cluster_are_expanded_events() {
    let node = testing::node(Some("rs"));
    let mut stream = open(&node, doc! { "showExpandedEvents": true }).unwrap();
    log(
        &node,
        doc! {
            "op": "n", "ns": "d.c", "ui": (Value::uuid(UUID)), "o": { "msg": "shard" },
            "o2": { "shardCollection": "d.c", "shardKey": { "a": 1 }, "unique": false },
        },
    );
    let shown = events(&node, &mut stream).await.unwrap();
    assert_eq!(shown[0].get_str("operationType"), Some("shardCollection"));
    assert_eq!(
        shown[0].get_document("operationDescription"),
        Some(&doc! { "shardKey": { "a": 1 }, "unique": false })
    );
}

#[tokio::test]
async fn a_chain_without_its_beginning_is_lost_history() {
    let node = testing::node(Some("rs"));
    let mut stream = open(&node, doc! {}).unwrap();
    log(&node, part(&[insert(1)], Timestamp::new(1, 1), doc! { "count": 2i64 }));
    let failed = events(&node, &mut stream).await.unwrap_err();
    assert_eq!(failed.code, codes::CHANGE_STREAM_HISTORY_LOST);
}

#[tokio::test]
async fn a_standalone_has_no_streams() {
    let node = testing::node(None);
    assert_eq!(open(&node, doc! {}).err().map(|e| e.code), Some(40573));
}
