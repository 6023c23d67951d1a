//! What stages on the router read of other collections comes batch by batch, and is closed with the cursor that reads it.

use super::fake::{Fake, find_all, run, table};
use crate::router::Router;
use document::{Document, Value, codes, doc, err};
use std::sync::Arc;

const SHARDS: &[&str] = &["a", "b", "c"];

/// 400 documents over three shards: more than a first batch of the router and of each shard.
fn cluster() -> (Arc<Fake>, Arc<Router>) {
    let fake = Fake::new(table(doc! { "x": 1 }, &[0, 10, 20], SHARDS), SHARDS);
    for i in 0..400 {
        fake.put(doc! { "_id": i, "x": (i * 7 % 31) - 3 });
    }
    let router = fake.router();
    (fake, router)
}

/// An aggregation of nothing, followed by these stages.
fn of_nothing(stages: Vec<Document>, batch: i32) -> Document {
    let nothing = doc! { "$match": { "x": 999 } };
    let stages: Vec<Value> = std::iter::once(nothing).chain(stages).map(Value::Document).collect();
    doc! { "aggregate": "c", "pipeline": Value::Array(stages), "cursor": { "batchSize": batch } }
}

fn union() -> Document {
    doc! { "$unionWith": "c" }
}

/// A union of a union, which is a cursor of the router within another.
fn nested() -> Document {
    doc! { "$unionWith": { "coll": "c", "pipeline": [{ "$match": { "x": 999 } }, union()] } }
}

/// On which shards this command was executed until now, closing in the background included.
async fn executed(fake: &Fake, command: &str) -> Vec<String> {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
    let log = fake.state.lock().log.clone();
    let on = |entry: &String| entry.strip_prefix(command)?.strip_prefix(' ').map(str::to_string);
    let mut shards: Vec<String> = log.iter().filter_map(on).collect();
    shards.sort();
    shards
}

fn cursor_of(reply: &Document) -> (usize, i64) {
    let cursor = reply.get_document("cursor").unwrap();
    let batch = cursor.get_array("firstBatch").or_else(|| cursor.get_array("nextBatch")).unwrap();
    (batch.len(), cursor.get_i64("id").unwrap())
}

#[tokio::test]
async fn a_limit_behind_a_union_reads_its_first_batch_and_closes_the_rest() {
    for stage in [union(), nested()] {
        let (fake, router) = cluster();
        let reply = run(&router, of_nothing(vec![stage, doc! { "$limit": 4 }], 101)).await.unwrap();
        assert_eq!(cursor_of(&reply), (4, 0));
        assert_eq!(executed(&fake, "getMore").await, SHARDS, "for the first batch");
        assert_eq!(executed(&fake, "killCursors").await, SHARDS);
        assert!(router.cursors.is_empty());
    }
}

#[tokio::test]
async fn a_union_goes_on_from_batch_to_batch_of_its_reader() {
    for stage in [union(), nested()] {
        let (fake, router) = cluster();
        let (found, _) = find_all(&router, of_nothing(vec![stage], 7), 7).await;
        let mut ids: Vec<i64> = found.iter().map(|d| d.get_i64("_id").unwrap()).collect();
        ids.sort();
        assert_eq!(ids, (0..400).collect::<Vec<i64>>());
        assert!(executed(&fake, "killCursors").await.is_empty(), "all were read to their end");
        assert!(router.cursors.is_empty());
    }
}

#[tokio::test]
async fn what_a_union_has_open_is_closed_when_its_reader_is_killed() {
    for stage in [union(), nested()] {
        let (fake, router) = cluster();
        let (_, id) = cursor_of(&run(&router, of_nothing(vec![stage], 2)).await.unwrap());
        assert_eq!(router.cursors.len(), 1, "the cursor of the union is the reader's");
        assert!(executed(&fake, "killCursors").await.is_empty());
        run(&router, doc! { "killCursors": "c", "cursors": [Value::Int64(id)] }).await.unwrap();
        assert_eq!(executed(&fake, "killCursors").await, SHARDS);
    }
}

#[tokio::test]
async fn what_a_union_has_open_is_closed_when_a_shard_fails() {
    for stage in [union(), nested()] {
        let (fake, router) = cluster();
        let (_, id) = cursor_of(&run(&router, of_nothing(vec![stage], 2)).await.unwrap());
        fake.state.lock().refuses = Some(("b", err!(OPERATION_FAILED, "no")));
        let more = doc! { "getMore": Value::Int64(id), "collection": "c" };
        assert_eq!(run(&router, more).await.unwrap_err().code, codes::OPERATION_FAILED);
        // The others have sent all they had.
        assert_eq!(executed(&fake, "killCursors").await, ["b"]);
        assert!(router.cursors.is_empty());
    }
}

#[tokio::test]
async fn what_a_get_more_opens_reads_as_its_command() {
    let (fake, router) = cluster();
    let mut command = of_nothing(vec![union()], 0);
    command.push("readConcern", doc! { "level": "majority" });
    command.push("$readPreference", doc! { "mode": "secondary" });
    command.push("comment", "why");
    let (_, id) = cursor_of(&run(&router, command).await.unwrap());
    let more = doc! { "getMore": Value::Int64(id), "collection": "c", "batchSize": 400 };
    assert_eq!(cursor_of(&run(&router, more).await.unwrap()).0, 400);
    // The shard that may have what the filter wants, and all of them for the union.
    let readings = fake.state.lock().readings.clone();
    assert_eq!(readings, vec![["majority", "why", "secondary"].map(str::to_string); 1 + SHARDS.len()]);
}

#[tokio::test]
async fn a_lookup_reads_no_more_than_it_may_hold() {
    let (fake, router) = cluster();
    router.limits.write().lookup = 1000;
    let lookup = doc! { "$lookup": { "from": "c", "pipeline": Value::Array(vec![]), "as": "all" } };
    let one = doc! { "$match": { "x": 5 } };
    let stages = vec![one.into(), doc! { "$limit": 1 }.into(), lookup.into()];
    let command = doc! { "aggregate": "c", "pipeline": Value::Array(stages), "cursor": {} };
    assert_eq!(run(&router, command).await.unwrap_err().code, 4568);
    assert_eq!(executed(&fake, "getMore").await, SHARDS, "for the first batch");
    assert_eq!(executed(&fake, "killCursors").await, SHARDS);
}
