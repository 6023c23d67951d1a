//! Reads over several shards give what one node gives, in batches of the size asked for.

use super::fake::{Fake, find_all, run, run_pipeline, table};
use document::{Document, Timestamp, Value, doc};
use proptest::prelude::*;
use query::QueryContext;
use query::matcher::Matcher;
use query::projection::Projection;
use query::sort::SortSpec;
use std::sync::Arc;

const SHARDS: &[&str] = &["a", "b", "c"];

fn cluster(n: i32) -> Arc<Fake> {
    let fake = Fake::new(table(doc! { "x": 1 }, &[0, 10, 20], SHARDS), SHARDS);
    for i in 0..n {
        fake.put(doc! { "_id": i, "x": (i * 7 % 31) - 3, "y": i % 5 });
    }
    fake
}

#[tokio::test]
async fn a_point_query_asks_one_shard_and_passes_its_cursor_on() {
    let fake = cluster(0);
    for i in 0..10 {
        fake.put(doc! { "_id": i, "x": 5 });
    }
    let (found, batches) = find_all(&fake.router(), doc! { "find": "c", "filter": { "x": 5 } }, 3).await;
    assert_eq!((found.len(), batches), (10, 4));
    assert!(fake.state.lock().log.iter().all(|l| l.ends_with(" b")));
}

#[tokio::test]
async fn a_read_of_a_stale_placement_is_repeated() {
    let fake = cluster(40);
    let router = fake.router();
    find_all(&router, doc! { "find": "c", "filter": {} }, 100).await;
    fake.state.lock().move_chunk(5, "a");
    fake.state.lock().move_chunk(25, "c");
    let (found, _) = find_all(&router, doc! { "find": "c", "filter": {} }, 100).await;
    assert_eq!(found.len(), 40);
    let n = run(&router, doc! { "count": "c", "query": { "x": { "$gte": 3 } } }).await.unwrap();
    let wanted = fake.all().iter().filter(|d| d.get_i64("x").unwrap() >= 3).count();
    assert_eq!(n.get_i64("n"), Some(wanted as i64));
}

#[tokio::test]
async fn count_skips_and_limits_over_the_whole() {
    let router = cluster(40).router();
    let n = |command: Document| {
        let router = router.clone();
        async move { run(&router, command).await.unwrap().get_i64("n").unwrap() }
    };
    assert_eq!(n(doc! { "count": "c" }).await, 40);
    assert_eq!(n(doc! { "count": "c", "limit": 7 }).await, 7);
    assert_eq!(n(doc! { "count": "c", "skip": 35, "limit": 7 }).await, 5);
    assert_eq!(n(doc! { "count": "c", "skip": 50 }).await, 0);
}

#[tokio::test]
async fn a_time_that_is_too_far_ahead_is_not_taken_over() {
    let fake = cluster(1);
    let router = fake.router();
    let now = (crate::router::task::now_ms() / 1000) as u32;
    let (hour, years) = (60 * 60, 2 * 366 * 24 * 60 * 60);
    for (ahead, taken) in [(years, false), (hour, true)] {
        let time = Timestamp::new(now + ahead, 1);
        let count = doc! { "count": "c" };
        // A client's, which the dispatcher refuses before, and a shard's.
        let brought = doc! { "count": "c", "$clusterTime": { "clusterTime": time } };
        for (command, told) in [(brought, None), (count, Some(time))] {
            fake.state.lock().time = told;
            run(&router, command).await.unwrap();
            assert_eq!(router.cluster_time() >= time, taken, "{ahead} seconds ahead, {told:?}");
        }
        assert_eq!(router.hear_topology(time), !taken, "{ahead} seconds ahead");
    }
}

#[tokio::test]
async fn a_killed_cursor_is_gone_and_one_of_another_collection_is_not_shown() {
    let fake = cluster(40);
    let router = fake.router();
    let reply = run(&router, doc! { "find": "c", "filter": {}, "batchSize": 2 }).await.unwrap();
    let id = reply.get_path("cursor.id").unwrap().clone();
    let other = doc! { "getMore": id.clone(), "collection": "other" };
    assert_eq!(run(&router, other).await.unwrap_err().code, 13);
    let killed = doc! { "killCursors": "c", "cursors": (Value::Array(vec![id.clone(), Value::Int64(5)])) };
    let reply = run(&router, killed).await.unwrap();
    assert_eq!(reply.get("cursorsKilled"), Some(&Value::Array(vec![id.clone()])));
    assert_eq!(reply.get("cursorsNotFound"), Some(&Value::Array(vec![Value::Int64(5)])));
    let more = doc! { "getMore": id, "collection": "c" };
    assert_eq!(run(&router, more).await.unwrap_err().code, 43);
    assert!(router.cursors.is_empty());
}

/// How many documents the batch of a reply has, and its cursor.
fn batch_of(reply: &Document) -> (usize, Value) {
    let cursor = reply.get_document("cursor").unwrap();
    let batch = cursor.get_array("firstBatch").or_else(|| cursor.get_array("nextBatch")).unwrap();
    (batch.len(), cursor.get("id").unwrap().clone())
}

#[tokio::test]
async fn a_batch_is_filled_from_all_shards() {
    let fake = cluster(400);
    let router = fake.router();
    let reply = run(&router, doc! { "find": "c", "filter": {}, "batchSize": 2 }).await.unwrap();
    let (n, id) = batch_of(&reply);
    assert_eq!(n, 2);
    let more = doc! { "getMore": id.clone(), "collection": "c", "batchSize": 97 };
    assert_eq!(batch_of(&run(&router, more).await.unwrap()), (97, id.clone()));
    let rest = doc! { "getMore": id, "collection": "c" };
    assert_eq!(batch_of(&run(&router, rest).await.unwrap()), (301, Value::Int64(0)));

    // The first replies of these shards hold three documents each.
    let all = doc! { "aggregate": "c", "pipeline": (Value::Array(vec![])), "cursor": {} };
    let (n, id) = batch_of(&run(&router, all).await.unwrap());
    assert_eq!(n, 101);
    let rest = doc! { "getMore": id, "collection": "c" };
    assert_eq!(batch_of(&run(&router, rest).await.unwrap()), (299, Value::Int64(0)));
}

#[tokio::test]
async fn a_batch_of_zero_opens_the_cursor_only() {
    let fake = cluster(10);
    let router = fake.router();
    let reply = run(&router, doc! { "find": "c", "filter": {}, "batchSize": 0 }).await.unwrap();
    assert_eq!(reply.get_path("cursor.firstBatch"), Some(&Value::Array(vec![])));
    let id = reply.get_path("cursor.id").unwrap().clone();
    let reply = run(&router, doc! { "getMore": id, "collection": "c" }).await.unwrap();
    assert!(!reply.get_path("cursor.nextBatch").unwrap().as_array().unwrap().is_empty());
}

/// Pipelines whose results have one order, or whose order is made one by the last stage.
fn pipelines() -> Vec<Value> {
    let list = document::array![
        [{ "$match": { "x": 5 } }, { "$sort": { "_id": 1 } }],
        [{ "$match": { "x": { "$gte": 3 } } }, { "$sort": { "y": -1, "_id": 1 } }, { "$skip": 3 }, { "$limit": 7 }],
        [{ "$group": { "_id": "$y", "n": { "$sum": 1 }, "sum": { "$sum": "$x" }, "mean": { "$avg": "$x" },
                       "least": { "$min": "$x" }, "all": { "$addToSet": "$y" } } }, { "$sort": { "_id": 1 } }],
        [{ "$group": { "_id": Value::Null, "n": { "$sum": 1 } } }],
        [{ "$count": "n" }],
        [{ "$match": { "x": { "$lt": 0 } } }, { "$count": "n" }],
        [{ "$sort": { "_id": -1 } }, { "$limit": 5 }],
        [{ "$sort": { "x": 1, "_id": 1 } }, { "$group": { "_id": "$y", "first": { "$first": "$x" } } }, { "$sort": { "_id": 1 } }],
        [{ "$project": { "z": { "$add": ["$x", "$y"] } } }, { "$sort": { "z": 1, "_id": 1 } }, { "$skip": 2 }],
        [{ "$sortByCount": "$y" }, { "$sort": { "_id": 1 } }],
        [{ "$facet": { "a": [{ "$count": "n" }], "b": [{ "$match": { "y": 1 } }, { "$sort": { "_id": 1 } }] } }],
        [{ "$bucket": { "groupBy": "$y", "boundaries": [0, 2, 5] } }],
        [{ "$sort": { "_id": 1 } }],
    ];
    list.as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_divided_pipeline_equals_one_nodes_pipeline() {
    let fake = cluster(60);
    let router = fake.router();
    for pipeline in pipelines() {
        let stages = pipeline.as_array().unwrap().clone();
        let all = fake.all().iter().map(|d| d.to_doc_buf()).collect();
        let wanted = run_pipeline(&stages, all, false).unwrap();
        let wanted: Vec<Document> = wanted.iter().map(|d| d.to_document()).collect();
        let command = doc! { "aggregate": "c", "pipeline": pipeline.clone(), "cursor": {} };
        let (found, _) = find_all(&router, command, 4).await;
        assert_eq!(sets_sorted(found), sets_sorted(wanted), "{pipeline:?}");
    }
}

/// `$addToSet` gives its values in any order.
fn sets_sorted(documents: Vec<Document>) -> Vec<Document> {
    let sorted = |mut d: Document| {
        if let Some(Value::Array(all)) = d.get_mut("all") {
            all.sort_by(document::compare::compare_values);
        }
        d
    };
    documents.into_iter().map(sorted).collect()
}

#[tokio::test]
async fn a_lookup_reads_the_other_collection_through_the_router() {
    let fake = cluster(12);
    let lookup = doc! { "$lookup": { "from": "c", "localField": "_id", "foreignField": "y", "as": "same" } };
    let count = doc! { "$project": { "n": { "$size": "$same" } } };
    let command = doc! {
        "aggregate": "c", "pipeline": [{ "$match": { "_id": { "$lt": 5 } } }, lookup, count, { "$sort": { "_id": 1 } }],
        "cursor": {},
    };
    let (found, _) = find_all(&fake.router(), command, 100).await;
    let n: Vec<i64> = found.iter().map(|d| d.get_i64("n").unwrap()).collect();
    assert_eq!(n, [3, 3, 2, 2, 2]);
}

fn sort() -> impl Strategy<Value = Document> {
    let field = prop_oneof![Just("x"), Just("y"), Just("_id"), Just("z")];
    proptest::collection::btree_map(field, prop_oneof![Just(1), Just(-1)], 1..3)
        .prop_map(|m| m.into_iter().map(|(k, v)| (k.to_string(), Value::Int32(v))).collect())
}

fn mixed() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-5..30).prop_map(Value::Int32),
        (-50..300).prop_map(|n| Value::Double(f64::from(n) / 10.0)),
        "[a-c]{0,2}".prop_map(Value::String),
        Just(Value::Null),
        proptest::collection::vec((-3..3).prop_map(Value::Int32), 0..3).prop_map(Value::Array),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    /// Sorted, skipped, limited and projected over three shards as over one list.
    #[test]
    fn a_merged_read_equals_one_nodes_read(
        values in proptest::collection::vec((-5..30i32, mixed()), 0..40), mut sort in sort(), skip in 0..10i32,
        limit in 0..20i32, batch in 1..9i32, project in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            sort.insert("_id", 1);
            let fake = cluster(0);
            for (i, (x, y)) in values.iter().enumerate() {
                fake.put(doc! { "_id": i as i32, "x": *x, "y": y.clone() });
            }
            let spec = SortSpec::parse(sort.to_doc_buf().doc()).unwrap();
            let mut wanted: Vec<Document> = fake.all();
            wanted.sort_by_key(|d| spec.key(d.to_doc_buf().doc()).unwrap());
            wanted.drain(..(skip as usize).min(wanted.len()));
            if limit > 0 {
                wanted.truncate(limit as usize);
            }
            let mut command = doc! { "find": "c", "filter": {}, "sort": sort, "skip": skip };
            if limit > 0 {
                command.push("limit", limit);
            }
            if project {
                command.push("projection", doc! { "x": 1, "_id": 0 });
                let p = doc! { "x": 1, "_id": 0 }.to_doc_buf();
                let p = Projection::parse(p.doc(), &Matcher::always(), &QueryContext::default()).unwrap();
                for d in &mut wanted {
                    let mut out = Vec::new();
                    p.apply(d.to_doc_buf().doc(), &mut out).unwrap();
                    *d = document::DocBuf::from_validated(out).to_document();
                }
            }
            let (found, _) = find_all(&fake.router(), command, batch).await;
            assert_eq!(found, wanted);
        });
    }
}
