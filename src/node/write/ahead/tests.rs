//! Documents whose keys, or whose validator, take longer than a latch is held for.

use crate::lane::metered;
use crate::local::LocalClient;
use crate::replication::testing;
use crate::write::tests::{self, code_of};
use crate::{Node, Operation, Request, ddl};
use document::{Document, Value, codes, doc};
use std::sync::Arc;

const NS: &str = "d.c";

/// Runs a write with its work counted; its reply, and how many questions were answered without the latch.
async fn run(node: &Arc<Node>, command: Document) -> (Document, usize) {
    let op = Operation::internal();
    let reply = metered(tests::run(node, &op, command)).await.unwrap();
    let state = op.ahead.0.lock();
    assert_eq!(state.misses, 0, "an answer was of no use");
    (reply, state.known.len())
}

/// Makes the collection with a validator.
async fn checked(node: &Arc<Node>, validator: Document) {
    let body = doc! { "create": "c", "validator": validator }.to_doc_buf();
    let request = Request { db: "d", body: body.doc(), sequences: &[] };
    ddl::collections::create(node, &Operation::internal(), request).await.unwrap();
}

/// A collection with a text index and an index on `x`.
async fn indexed() -> Arc<Node> {
    let node = testing::node(None);
    let indexes = [
        doc! { "key": { "s": "text" }, "name": "text" },
        doc! { "key": { "x": 1 }, "name": "x", "unique": true, "sparse": true },
    ];
    let indexes: Vec<Value> = indexes.into_iter().map(Value::from).collect();
    let body = doc! { "createIndexes": "c", "indexes": indexes }.to_doc_buf();
    let request = Request { db: "d", body: body.doc(), sequences: &[] };
    ddl::indexes::create_indexes(&node, &Operation::internal(), request).await.unwrap();
    node
}

/// So many words that none of the others has.
fn words(first: i32, count: i32) -> String {
    (first..first + count).map(|i| format!("w{i:07} ")).collect()
}

/// The keys of the text index, the documents.
fn keys_and_documents(node: &Arc<Node>) -> (usize, usize) {
    let keys = node.namespaces.slot(NS).read_unchecked().collection.as_ref().map(|c| c.indexes()[1].len());
    (keys.unwrap_or(0), LocalClient::new(node.clone()).find(NS, &doc! {}).unwrap().len())
}

#[tokio::test]
async fn long_keys_are_computed_without_the_latch_and_written_once() {
    let node = indexed().await;
    let documents =
        vec![doc! { "s": words(0, 20_000) }, doc! { "s": "short" }, doc! { "s": words(20_000, 20_000) }];
    let (reply, known) = run(&node, doc! { "insert": "c", "documents": documents }).await;
    assert_eq!((reply.get_i64("n"), code_of(&reply), known), (Some(3), None, 2));
    assert_eq!(keys_and_documents(&node), (40_001, 3));

    let all = |u: Document| doc! { "update": "c", "updates": vec![doc! { "q": {}, "u": u, "multi": true }] };
    let (reply, known) = run(&node, all(doc! { "$set": { "s": words(0, 10_000) } })).await;
    assert_eq!((reply.get_i64("nModified"), code_of(&reply), known > 0), (Some(3), None, true));
    assert_eq!(keys_and_documents(&node), (30_000, 3));

    let change = doc! { "findAndModify": "c", "query": { "n": 1 }, "update": { "$set": { "s": words(0, 20_000) } }, "upsert": true };
    let (_, known) = run(&node, change).await;
    assert_eq!((keys_and_documents(&node), known), ((50_000, 4), 1));
    let upsert = doc! { "q": { "n": 2 }, "u": { "$set": { "s": words(0, 20_000) } }, "upsert": true };
    let (reply, known) = run(&node, doc! { "update": "c", "updates": vec![upsert] }).await;
    assert_eq!((reply.get_i64("n"), known), (Some(1), 1));
    assert_eq!(keys_and_documents(&node), (70_000, 5));

    let one = doc! { "delete": "c", "deletes": vec![doc! { "q": { "n": 1 }, "limit": 1 }] };
    assert_eq!(run(&node, one).await.1, 1);
    assert_eq!(keys_and_documents(&node), (50_000, 4));
    let (reply, _) = run(&node, doc! { "delete": "c", "deletes": vec![doc! { "q": {}, "limit": 0 }] }).await;
    assert_eq!((reply.get_i64("n"), keys_and_documents(&node)), (Some(4), (0, 0)));
}

#[tokio::test]
async fn a_refusal_that_took_long_is_the_one_it_would_have_been() {
    let node = indexed().await;
    let many = doc! { "s": words(0, 150_000), "x": 1 };
    let documents = vec![many, doc! { "x": 1 }, doc! { "s": words(0, 20_000), "x": 1 }, doc! { "x": 2 }];
    let (reply, _) = run(&node, doc! { "insert": "c", "documents": documents, "ordered": false }).await;
    let codes_of: Vec<Option<i64>> =
        reply.get_array("writeErrors").unwrap().iter().map(|e| e.as_document()?.get_i64("code")).collect();
    assert_eq!(codes_of, [Some(16733), Some(i64::from(codes::DUPLICATE_KEY))]);
    assert_eq!((reply.get_i64("n"), keys_and_documents(&node)), (Some(2), (0, 2)));
}

/// A validator that takes long and accepts what has an `x` above 0.
fn patient() -> Document {
    let long = doc! { "$reduce": { "input": { "$range": [0, 100_000] }, "initialValue": 0, "in": { "$add": ["$$value", 1] } } };
    doc! { "$expr": { "$gt": ["$x", { "$subtract": [long, 100_000] }] } }
}

#[tokio::test]
async fn a_validator_that_takes_long_is_asked_without_the_latch() {
    let node = testing::node(None);
    checked(&node, patient()).await;
    let documents = vec![doc! { "x": 1 }, doc! { "_id": 1, "x": 0 }];
    let (reply, known) = run(&node, doc! { "insert": "c", "documents": documents }).await;
    assert_eq!((reply.get_i64("n"), known), (Some(1), 2), "of the last document a verdict and why");
    let refused = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().clone();
    assert_eq!(refused.get_i64("code"), Some(i64::from(codes::DOCUMENT_VALIDATION_FAILURE)));
    let info = refused.get_document("errInfo").unwrap();
    assert_eq!(info.get_i64("failingDocumentId"), Some(1), "{info:?}");
    let update = doc! { "q": {}, "u": { "$inc": { "x": -1 } } };
    let (reply, _) = run(&node, doc! { "update": "c", "updates": vec![update] }).await;
    assert_eq!(code_of(&reply), Some(i64::from(codes::DOCUMENT_VALIDATION_FAILURE)));
    let update = doc! { "q": {}, "u": { "$inc": { "x": 1 } } };
    let (reply, known) = run(&node, doc! { "update": "c", "updates": vec![update] }).await;
    assert_eq!((reply.get_i64("nModified"), code_of(&reply), known), (Some(1), None, 1));
}

#[tokio::test]
async fn why_a_large_document_is_refused_is_described_without_the_latch() {
    let node = testing::node(None);
    checked(&node, doc! { "x": 1 }).await;
    let large = doc! { "_id": 1, "s": "s".repeat(20_000) };
    let (reply, known) = run(&node, doc! { "insert": "c", "documents": vec![large] }).await;
    assert_eq!((code_of(&reply), known), (Some(i64::from(codes::DOCUMENT_VALIDATION_FAILURE)), 1));
    let (reply, known) = run(&node, doc! { "insert": "c", "documents": vec![doc! { "_id": 1 }] }).await;
    assert_eq!((code_of(&reply), known), (Some(i64::from(codes::DOCUMENT_VALIDATION_FAILURE)), 0));
}
