//! Batches whose chunks move away in the middle: every statement is executed exactly once, errors keep their indexes.

use super::fake::{Fake, NS, run, table};
use crate::router::paused_migrations::Hold;
use document::{Document, Result, Timestamp, Value, codes, doc, err};
use node::cluster_parameters::Copied;
use node::{Operation, Request};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

const SHARDS: &[&str] = &["a", "b", "c"];

fn cluster() -> Arc<Fake> {
    Fake::new(table(doc! { "x": 1 }, &[0, 10, 20], SHARDS), SHARDS)
}

fn documents(xs: impl IntoIterator<Item = i32>) -> Vec<Document> {
    xs.into_iter().enumerate().map(|(i, x)| doc! { "_id": i as i32, "x": x }).collect()
}

fn errors(reply: &Document) -> Vec<(i64, i64)> {
    let list = reply.get_array("writeErrors").cloned().unwrap_or_default();
    list.iter()
        .map(|e| e.as_document().unwrap())
        .map(|e| (e.get_i64("index").unwrap(), e.get_i64("code").unwrap()))
        .collect()
}

#[tokio::test]
async fn a_batch_for_one_shard_is_one_request() {
    let fake = cluster();
    let reply = run(&fake.router(), doc! { "insert": "c", "documents": documents([1, 2, 3]) }).await.unwrap();
    assert_eq!(reply.get_i64("n"), Some(3));
    assert_eq!(fake.state.lock().log, ["insert b"]);
}

#[tokio::test]
async fn an_ordered_batch_goes_in_runs_and_an_unordered_one_in_one_batch_a_shard() {
    let xs = [1, 2, 11, 3];
    let fake = cluster();
    run(&fake.router(), doc! { "insert": "c", "documents": documents(xs) }).await.unwrap();
    assert_eq!(fake.state.lock().log, ["insert b", "insert c", "insert b"]);
    let fake = cluster();
    run(&fake.router(), doc! { "insert": "c", "documents": documents(xs), "ordered": false }).await.unwrap();
    assert_eq!(fake.state.lock().log, ["insert b", "insert c"]);
}

#[tokio::test]
async fn an_error_keeps_the_clients_index_and_ends_an_ordered_command() {
    for ordered in [true, false] {
        let fake = cluster();
        fake.put(doc! { "_id": 2, "x": 12 });
        let command = doc! { "insert": "c", "documents": documents([1, 11, 12, 2, 21]), "ordered": ordered };
        let reply = run(&fake.router(), command).await.unwrap();
        assert_eq!(errors(&reply), [(2, 11000)]);
        assert_eq!(reply.get_i64("n"), Some(if ordered { 2 } else { 4 }));
    }
}

#[tokio::test]
async fn a_key_that_is_an_array_fails_its_statement_alone() {
    let fake = cluster();
    let list = vec![doc! { "_id": 0, "x": 1 }, doc! { "_id": 1, "x": [1] }, doc! { "_id": 2, "x": 2 }];
    let command = doc! { "insert": "c", "documents": list, "ordered": false };
    let reply = run(&fake.router(), command).await.unwrap();
    assert_eq!((reply.get_i64("n"), errors(&reply)), (Some(2), vec![(1, 61)]));
}

#[tokio::test]
async fn a_document_without_id_gets_one_here() {
    let fake = cluster();
    run(&fake.router(), doc! { "insert": "c", "documents": [{ "x": 1 }] }).await.unwrap();
    assert!(matches!(fake.all()[0].first(), Some(("_id", Value::ObjectId(_)))));
}

#[tokio::test]
async fn an_update_of_one_document_that_names_no_shard_changes_one() {
    let fake = cluster();
    for d in documents([1, 11, 21, -1]) {
        fake.put(d);
    }
    let router = fake.router();
    let u = doc! { "q": { "_id": { "$gte": 0 } }, "u": { "$set": { "y": 1 } } };
    let reply = run(&router, doc! { "update": "c", "updates": [u] }).await.unwrap();
    assert_eq!((reply.get_i64("n"), reply.get_i64("nModified")), (Some(1), Some(1)));
    assert_eq!(fake.all().iter().filter(|d| d.contains_key("y")).count(), 1);
    let u = doc! { "q": { "_id": { "$gte": 0 } }, "u": { "$set": { "z": 1 } }, "multi": true };
    let reply = run(&router, doc! { "update": "c", "updates": [u] }).await.unwrap();
    assert_eq!((reply.get_i64("n"), reply.get_i64("nModified")), (Some(4), Some(4)));
    let reply =
        run(&router, doc! { "delete": "c", "deletes": [{ "q": { "z": 1 }, "limit": 1 }] }).await.unwrap();
    assert_eq!((reply.get_i64("n"), fake.all().len()), (Some(1), 3));
    let reply = run(&router, doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] }).await.unwrap();
    assert_eq!((reply.get_i64("n"), fake.all().len()), (Some(3), 0));
}

#[tokio::test]
async fn an_upsert_that_names_no_shard_inserts_where_the_document_belongs() {
    let fake = cluster();
    let u = doc! { "q": { "_id": 7 }, "u": { "$set": { "x": 15 } }, "upsert": true };
    let reply = run(&fake.router(), doc! { "update": "c", "updates": [u] }).await.unwrap();
    let upserted = reply.get_array("upserted").unwrap()[0].as_document().unwrap().clone();
    assert_eq!(upserted, doc! { "index": 0, "_id": 7 });
    assert_eq!(fake.state.lock().shards["c"].len(), 1);
}

#[tokio::test]
async fn find_and_modify_without_the_key_changes_one_document() {
    let fake = cluster();
    for d in documents([1, 11]) {
        fake.put(d);
    }
    let command = doc! { "findAndModify": "c", "query": { "_id": 1 }, "update": { "$set": { "y": 1 } } };
    let reply = run(&fake.router(), command).await.unwrap();
    assert_eq!(reply.get_path("value._id"), Some(&Value::Int32(1)));
    assert_eq!(fake.all()[1].get_i64("y"), Some(1));
}

/// The error says that the transaction may be begun anew; among the write errors it would say nothing.
#[tokio::test]
async fn a_shard_that_is_not_reached_fails_the_whole_command_of_a_transaction() {
    let fake = cluster();
    fake.state.lock().lost_replies = usize::MAX;
    let failed = begin_with(&fake, doc! { "insert": "c", "documents": documents([1]) }).await.unwrap_err();
    assert_eq!(failed.code, codes::HOST_UNREACHABLE);
}

/// It would read at a time before all others.
#[tokio::test]
async fn a_router_that_knows_no_time_asks_for_it() {
    let fake = cluster();
    let router = fake.router();
    let op = Operation::internal();
    router.time_to_read_at(&op).await.unwrap();
    assert_eq!(fake.state.lock().log, ["getDefaultRWConcern config"]);
    let known = Timestamp::new(crate::router::task::now_ms() as u32 / 1000, 1);
    router.advance(known);
    assert_eq!(router.time_to_read_at(&op).await.unwrap(), known);
    assert_eq!(fake.state.lock().log.len(), 1);
}

/// Runs a command that begins a transaction.
async fn begin_with(fake: &Arc<Fake>, mut command: Document) -> Result<Document> {
    let router = fake.router();
    let begins = doc! {
        "lsid": { "id": (Value::uuid([7; 16])) }, "txnNumber": Value::Int64(1), "autocommit": false,
        "startTransaction": true, "$db": "d",
    };
    command.0.extend(begins);
    let op = Operation::parse(1, Arc::default(), command.to_doc_buf().doc())?;
    let _entered = router.transactions.enter(&op, Timestamp::default()).await?;
    run(&router, command).await
}

#[tokio::test]
async fn an_unordered_command_of_a_transaction_that_is_lost_asks_no_shard_for_more() {
    let fake = cluster();
    fake.put(doc! { "_id": 1, "x": 1 });
    let lost = err!(NO_SUCH_TRANSACTION, "gone").with_label("TransientTransactionError");
    fake.state.lock().refuses = Some(("b", lost));
    let all = || doc! { "q": {}, "u": { "$set": { "y": 1 } }, "multi": true };
    let one = doc! { "q": { "x": 1 }, "u": { "$set": { "y": 1 } } };
    // One for several shards asks each of them twice: at first whether it knows the same placement.
    for (updates, times) in [(vec![one, all(), all()], 1), (vec![all(), all()], 2)] {
        fake.state.lock().log.clear();
        let update = doc! { "update": "c", "updates": updates.clone(), "ordered": false };
        let failed = begin_with(&fake, update).await.unwrap_err();
        assert_eq!(failed.code, codes::NO_SUCH_TRANSACTION);
        let asked = fake.state.lock().log.iter().filter(|asked| *asked == "update b").count();
        assert_eq!(asked, times, "{updates:?}");
    }
}

/// The client learns that it may try again.
#[tokio::test(start_paused = true)]
async fn indexes_in_a_transaction_whose_placement_keeps_changing_end_in_the_shards_error() {
    let fake = cluster();
    fake.state.lock().refuses =
        Some(("b", err!(STALE_CONFIG, "stale").with_label("TransientTransactionError")));
    let indexes = vec![doc! { "key": { "y": 1 }, "name": "y_1" }];
    let failed = begin_with(&fake, doc! { "createIndexes": "c", "indexes": indexes }).await.unwrap_err();
    assert_eq!(failed.code, codes::STALE_CONFIG);
    assert!(failed.labels.contains(&"TransientTransactionError"));
}

/// A retryable write whose reply is lost is sent again and not executed again; so is one in two phases.
#[tokio::test]
async fn a_lost_reply_is_asked_for_again_under_the_same_statement_ids() {
    let session = || doc! { "lsid": { "id": (Value::uuid([7; 16])) }, "txnNumber": Value::Int64(1) };
    let fake = cluster();
    fake.state.lock().lost_replies = 1;
    let mut command = doc! { "insert": "c", "documents": documents([1, 11, 2]) };
    command.0.extend(session());
    let reply = run(&fake.router(), command).await.unwrap();
    assert_eq!((reply.get_i64("n"), errors(&reply), fake.all().len()), (Some(3), vec![], 3));

    // The client repeats an update that went through, although its document matches no more.
    let u = doc! { "q": { "n": { "$exists": false } }, "u": { "$inc": { "n": 1 } } };
    for _ in 0..3 {
        let mut command = doc! { "update": "c", "updates": [u.clone()], "stmtIds": [9] };
        command.0.extend(session());
        let reply = run(&fake.router(), command).await.unwrap();
        assert_eq!(reply.get_i64("n"), Some(1));
    }
    assert_eq!(fake.all().iter().filter(|d| d.contains_key("n")).count(), 1);
}

/// The range goes to a shard that has been asked already.
#[tokio::test]
async fn an_update_of_many_shards_misses_no_range_that_moves_as_it_begins() {
    let fake = cluster();
    for (id, x) in [(1, -1), (2, 1), (3, 11)] {
        fake.put(doc! { "_id": id, "x": x });
    }
    fake.state.lock().moves = vec![None, Some((1, "a"))];
    let update = doc! { "q": {}, "u": { "$set": { "y": 1 } }, "multi": true };
    let reply = run(&fake.router(), doc! { "update": "c", "updates": [update] }).await.unwrap();
    assert_eq!((reply.get_i64("n"), errors(&reply)), (Some(3), vec![]));
    assert!(fake.all().iter().all(|d| d.get_i64("y") == Some(1)));
}

/// A hundred migrations one after another are waited for.
#[tokio::test(start_paused = true)]
async fn a_placement_that_never_settles_ends_in_the_stale_error() {
    let fake = cluster();
    fake.state.lock().moves = (0..100).map(|i| Some((1, ["b", "a"][i % 2]))).collect();
    let reply = run(&fake.router(), doc! { "insert": "c", "documents": documents([1]) }).await;
    assert_eq!(reply.unwrap().get_i64("n"), Some(1));
    fake.state.lock().moves = (0..100_000).map(|i| Some((1, ["b", "a"][i % 2]))).collect();
    let reply = run(&fake.router(), doc! { "insert": "c", "documents": documents([2]) }).await;
    let reply = reply.unwrap();
    assert_eq!((reply.get_i64("n"), errors(&reply)), (Some(0), vec![(0, 13388)]));
}

fn moves() -> impl Strategy<Value = Vec<Option<(i32, &'static str)>>> {
    let one =
        (prop_oneof![Just(-1), Just(1), Just(11), Just(21)], 0..3usize).prop_map(|(x, s)| (x, SHARDS[s]));
    proptest::collection::vec(proptest::option::weighted(0.25, one), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    /// Whatever moves between two statements: nothing is lost, nothing happens twice, counts are true.
    #[test]
    fn each_statement_is_executed_once(
        xs in proptest::collection::vec(-5..30i32, 1..25), moves in moves(), ordered in any::<bool>(),
        duplicate in proptest::option::of(0..25usize),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fake = cluster();
            let router = fake.router();
            let mut list = documents(xs.clone());
            let duplicate = duplicate.filter(|i| *i > 0 && *i < list.len());
            if let Some(i) = duplicate {
                list[i] = list[i - 1].clone();
            }
            run(&router, doc! { "count": "c" }).await.unwrap();
            fake.state.lock().moves = moves.clone();
            let command = doc! { "insert": "c", "documents": list, "ordered": ordered };
            let reply = run(&router, command).await.unwrap();
            fake.state.lock().moves.clear();
            let wanted = match duplicate {
                Some(i) if ordered => i,
                Some(_) => xs.len() - 1,
                None => xs.len(),
            };
            assert_eq!(reply.get_i64("n"), Some(wanted as i64), "{reply:?}");
            assert_eq!(fake.all().len(), wanted);
            assert_eq!(errors(&reply).len(), duplicate.is_some() as usize);

            // Every document counted up once, each by an update of its own, while chunks move on.
            fake.state.lock().moves = moves;
            let stored = fake.all();
            let updates: Vec<Document> = stored
                .iter()
                .map(|d| doc! { "q": { "_id": (d.get("_id").unwrap()), "x": (d.get("x").unwrap()) }, "u": { "$inc": { "n": 1 } } })
                .collect();
            let command = doc! { "update": "c", "updates": updates, "ordered": ordered };
            let reply = run(&router, command).await.unwrap();
            assert_eq!(reply.get_i64("n"), Some(wanted as i64), "{reply:?}");
            assert!(fake.all().iter().all(|d| d.get_i64("n") == Some(1)));
        });
    }
}

/// An update of many documents over all shards, with migrations held back.
async fn update_all(fake: &Arc<Fake>) -> Document {
    for d in documents([1, 11, 21, -1]) {
        fake.put(d);
    }
    let router = fake.router();
    router.pauses_migrations.learn(&doc! { "enabled": true });
    let u = doc! { "q": {}, "u": { "$set": { "y": 1 } }, "multi": true };
    run(&router, doc! { "update": "c", "updates": [u] }).await.unwrap()
}

#[tokio::test]
async fn a_lease_that_lapsed_before_its_end_fails_the_statement() {
    let fake = cluster();
    let reply = update_all(&fake).await;
    assert_eq!((reply.get_i64("n"), errors(&reply)), (Some(4), vec![]));
    let fake = cluster();
    fake.state.lock().loses_lease = Some("b");
    let reply = update_all(&fake).await;
    assert_eq!((reply.get_i64("n"), errors(&reply)), (Some(4), vec![(0, 175)]));
    assert!(fake.state.lock().leases.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lease_outlives_lost_replies_until_its_time_is_over() {
    let fake = cluster();
    let router = fake.router();
    router.pauses_migrations.learn(&doc! { "enabled": true });
    let body = doc! { "update": "c", "$db": "d" }.to_doc_buf();
    let op = Operation::parse(1, Arc::default(), body.doc()).unwrap();
    let task = router.task(&op, Request { db: "d", body: body.doc(), sequences: &[] });
    let hold = Hold::wanted(&task, NS).unwrap();
    let loses = |n: usize| fake.state.lock().lost_replies = n;
    loses(1);
    hold.on(&["b".into()]).await.unwrap();
    // Two renewals, each sent three times.
    loses(6);
    assert!(tokio::time::timeout(Duration::from_secs(30), hold.lost()).await.is_err());
    loses(usize::MAX);
    let lost = tokio::time::timeout(Duration::from_secs(30), hold.lost()).await.unwrap();
    assert_eq!(lost.code, codes::HOST_UNREACHABLE);
    loses(2);
    hold.release().await.unwrap();
    assert!(fake.state.lock().leases.is_empty());
}

#[tokio::test]
async fn an_interrupted_statement_waits_for_no_lease() {
    let fake = cluster();
    let router = fake.router();
    router.pauses_migrations.learn(&doc! { "enabled": true });
    let body = doc! { "update": "c", "$db": "d" }.to_doc_buf();
    let op = Operation::parse(1, Arc::default(), body.doc()).unwrap();
    let task = router.task(&op, Request { db: "d", body: body.doc(), sequences: &[] });
    let hold = Hold::wanted(&task, NS).unwrap();
    op.kill(codes::INTERRUPTED);
    assert_eq!(hold.on(&["b".into()]).await.unwrap_err().code, codes::INTERRUPTED);
    // Granted all the same, unheard; given back though the operation was killed.
    assert_eq!(fake.state.lock().leases.len(), 1);
    hold.release().await.unwrap();
    assert!(fake.state.lock().leases.is_empty());
}

#[tokio::test]
async fn a_shard_that_keeps_no_ranges_leaves_no_lease_on_others() {
    let fake = cluster();
    fake.state.lock().grants_none = Some("c");
    let reply = update_all(&fake).await;
    assert_eq!((reply.get_i64("n"), errors(&reply)), (Some(0), vec![(0, 24)]));
    assert!(fake.state.lock().leases.is_empty());
}
