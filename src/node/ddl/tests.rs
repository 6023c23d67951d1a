//! Catalog commands and writes on a node in memory, and the same state after a restart from its log.

use crate::local::LocalClient;
use crate::operation::{ClientInfo, Operation};
use crate::replication::testing;
use crate::{Node, Request, ddl, write};
use document::meter::{self, Overseer, Slice};
use document::{Collation, DocBuf, Document, Result, Value, doc};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use storage::files::MemoryFiles;

/// Runs a command of the database `t` as the dispatcher does.
async fn run(node: &Arc<Node>, command: Document) -> Result<Document> {
    let body: DocBuf = command.to_doc_buf();
    let op = Operation::parse(1, Arc::new(ClientInfo::default()), body.doc())?;
    let r = Request { db: "t", body: body.doc(), sequences: &[] };
    match r.name() {
        "insert" => write::insert::insert(node, &op, r).await,
        "update" => write::update::update(node, &op, r).await,
        "delete" => write::delete::delete(node, &op, r).await,
        "findAndModify" => write::find_and_modify::find_and_modify(node, &op, r).await,
        "bulkWrite" => write::bulk_write::bulk_write(node, &op, r).await,
        "create" => ddl::collections::create(node, &op, r).await,
        "drop" => ddl::collections::drop(node, &op, r).await,
        "dropDatabase" => ddl::collections::drop_database(node, &op, r).await,
        "collMod" => ddl::coll_mod::coll_mod(node, &op, r).await,
        "createIndexes" => ddl::indexes::create_indexes(node, &op, r).await,
        "renameCollection" => ddl::rename::rename_collection(node, &op, r).await,
        "convertToCapped" => {
            ddl::capped::convert(node, &op, &r.namespace()?, 4096, None).await.map(|()| Document::new())
        }
        other => panic!("no {other} here"),
    }
}

async fn ok(node: &Arc<Node>, command: Document) -> Document {
    let shown = format!("{command:?}");
    run(node, command).await.unwrap_or_else(|e| panic!("{shown}: {e}"))
}
async fn code(node: &Arc<Node>, command: Document) -> i32 {
    run(node, command).await.err().map_or(0, |e| e.code)
}
fn ids(node: &Arc<Node>, ns: &str) -> Vec<i64> {
    let found = LocalClient::new(node.clone()).find(ns, &doc! {}).unwrap();
    found.iter().filter_map(|d| d.get_i64("_id")).collect()
}
fn documents(n: i32) -> Value {
    Value::Array((0..n).map(|i| Value::from(doc! { "_id": i, "pad": "x".repeat(100) })).collect())
}
fn session(mut command: Document, number: i64) -> Document {
    command.push("lsid", doc! { "id": Value::uuid([7; 16]) });
    command.push("txnNumber", number);
    command
}

#[tokio::test]
async fn a_duplicate_key_that_an_upsert_would_meet_again_is_answered_at_once() {
    let node = testing::node(None);
    ok(&node, doc! {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1", "unique": true}]})
        .await;
    ok(&node, doc! {"insert": "c", "documents": [{"_id": 1, "x": 1}]}).await;
    let command =
        doc! {"findAndModify": "c", "query": {"_id": 2}, "update": {"$set": {"x": 1}}, "upsert": true};
    let error = run(&node, command).await.unwrap_err();
    assert_eq!(error.code, 11000);
    assert!(error.info.unwrap().contains_key("keyPattern"));
    let update = doc! {
        "update": "c", "updates": [{"q": {"x": 5}, "u": {"$set": {"x": 1}}, "upsert": true}],
    };
    let Some(Value::Array(errors)) = ok(&node, update).await.get("writeErrors").cloned() else { panic!() };
    assert_eq!(errors[0].as_document().unwrap().get_i64("code"), Some(11000));
}

#[tokio::test]
async fn a_retried_statement_is_executed_once_also_after_a_restart() {
    let files = MemoryFiles::default();
    let node = testing::open(Some("rs"), &files, |_| {});
    let increment = |number| {
        session(
            doc! {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}, "upsert": true}]},
            number,
        )
    };
    let find = |number| {
        let command =
            doc! {"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}, "new": true};
        session(command, number)
    };
    ok(&node, increment(1)).await;
    let first = ok(&node, increment(2)).await;
    let image = ok(&node, find(3)).await;
    node.shutdown();
    drop(node);
    let node = testing::open(Some("rs"), &files, |_| {});
    assert_eq!(code(&node, increment(2)).await, 225);
    let again = ok(&node, find(3)).await;
    assert_eq!((again.get("value"), again.get_i64("retriedStmtId")), (image.get("value"), Some(0)));
    let number = LocalClient::new(node.clone()).find_one("t.c", &doc! {}).unwrap().unwrap().get_i64("n");
    assert_eq!((number, first.get_i64("nModified")), (Some(3), Some(1)));
    assert_eq!(
        code(
            &node,
            session(doc! {"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "multi": true}]}, 4)
        )
        .await,
        0
    );
    assert_eq!(LocalClient::new(node).find("t.c", &doc! {"a": 1}).unwrap().len(), 0);
}

#[tokio::test]
async fn a_statement_failed_by_the_fail_point_is_executed_when_it_is_sent_again() {
    use crate::failpoints::Mode;
    let node = testing::node(Some("rs"));
    let insert = || session(doc! {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}, 1);
    let data = doc! {"failBeforeCommitExceptionCode": 1};
    node.failpoints.configure("onPrimaryTransactionalWrite", Mode::Times(1), data);
    assert_eq!(ok(&node, insert()).await.get_i64("n"), Some(0));
    assert_eq!(ids(&node, "t.c"), [0i64; 0]);
    assert_eq!(ok(&node, insert()).await.get_i64("n"), Some(2));
    assert_eq!(ids(&node, "t.c"), [1, 2]);
}

#[tokio::test]
async fn bulk_write_answers_for_each_operation_and_stops_where_it_is_ordered() {
    let node = testing::node(None);
    let ops = || {
        document::array![
            {"insert": 0, "document": {"_id": 1}},
            {"update": 0, "filter": {"_id": 9}, "updateMods": {"$set": {"a": 1}}, "upsert": true},
            {"insert": 0, "document": {"_id": 1}},
            {"delete": 0, "filter": {}, "multi": true},
        ]
    };
    let reply = ok(&node, doc! {"bulkWrite": 1, "ops": ops(), "nsInfo": [{"ns": "t.c"}]}).await;
    let sum = |reply: &Document| {
        ["nErrors", "nInserted", "nMatched", "nModified", "nUpserted", "nDeleted"]
            .map(|f| reply.get_i64(f).unwrap())
    };
    assert_eq!(sum(&reply), [1, 1, 0, 0, 1, 0]);
    let items = reply.get_path("cursor.firstBatch").unwrap().as_array().unwrap().clone();
    let last = items[2].as_document().unwrap();
    assert_eq!((items.len(), last.get_i64("code"), last.get_i64("idx")), (3, Some(11000), Some(2)));
    let unordered = doc! {
        "bulkWrite": 1, "ops": ops(), "nsInfo": [{"ns": "t.c"}], "ordered": false, "errorsOnly": true,
    };
    let reply = ok(&node, unordered).await;
    assert_eq!(sum(&reply), [2, 0, 1, 0, 0, 2]);
    assert_eq!(reply.get_path("cursor.firstBatch").unwrap().as_array().unwrap().len(), 2);
    assert_ne!(
        code(&node, doc! {"bulkWrite": 1, "ops": [{"insert": 1, "document": {}}], "nsInfo": [{"ns": "t.c"}]})
            .await,
        0
    );
}

#[tokio::test]
async fn a_collection_made_capped_keeps_its_newest_documents_and_survives_a_restart() {
    let files = MemoryFiles::default();
    let node = testing::open(None, &files, |_| {});
    ok(&node, doc! {"insert": "c", "documents": documents(100)}).await;
    ok(&node, doc! {"convertToCapped": "c"}).await;
    let left = ids(&node, "t.c");
    assert!(left.len() < 50 && left.last() == Some(&99), "{left:?}");
    let names: Vec<String> = node
        .namespaces
        .of_database("t")
        .iter()
        .filter(|s| s.read_unchecked().collection.is_some())
        .map(|s| s.ns.clone())
        .collect();
    assert_eq!(names, ["t.c"]);
    node.shutdown();
    drop(node);
    assert_eq!(ids(&testing::open(None, &files, |_| {}), "t.c"), left);
}

#[tokio::test]
async fn a_dropped_database_is_gone_after_a_restart_and_what_was_made_later_is_not() {
    let files = MemoryFiles::default();
    let node = testing::open(None, &files, |_| {});
    ok(&node, doc! {"insert": "a", "documents": documents(3)}).await;
    ok(&node, doc! {"create": "v", "viewOn": "a", "pipeline": []}).await;
    assert_eq!(ok(&node, doc! {"dropDatabase": 1}).await, doc! {});
    assert_eq!(ok(&node, doc! {"dropDatabase": 1}).await, doc! {});
    ok(&node, doc! {"insert": "b", "documents": documents(2)}).await;
    node.shutdown();
    drop(node);
    let node = testing::open(None, &files, |_| {});
    assert_eq!((ids(&node, "t.a"), ids(&node, "t.b")), (vec![], vec![0, 1]));
    assert!(node.namespaces.slot("t.v").read_unchecked().view.is_none());
}

#[tokio::test]
async fn a_database_that_is_dropped_again_and_again_gains_no_names() {
    let files = MemoryFiles::default();
    let node = testing::open(None, &files, |_| {});
    ok(&node, doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
    ok(&node, doc! { "dropDatabase": 1 }).await;
    let before = node.namespaces.of_database("t").len();
    for _ in 0..3 {
        ok(&node, doc! { "dropDatabase": 1 }).await;
    }
    assert_eq!(node.namespaces.of_database("t").len(), before);
}

#[tokio::test]
async fn a_renamed_collection_keeps_indexes_and_takes_the_place_of_its_target_only_if_told() {
    let node = testing::node(None);
    ok(&node, doc! {"insert": "a", "documents": documents(3)}).await;
    ok(&node, doc! {"createIndexes": "a", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}).await;
    ok(&node, doc! {"insert": "b", "documents": documents(1)}).await;
    assert_eq!(code(&node, doc! {"renameCollection": "t.a", "to": "t.b"}).await, 48);
    assert_eq!(code(&node, doc! {"renameCollection": "t.x", "to": "t.y"}).await, 26);
    assert_eq!(
        code(&node, doc! {"renameCollection": "t.a", "to": "T.a"}).await,
        13297,
        "names differ by case"
    );
    ok(&node, doc! {"renameCollection": "t.a", "to": "t.b", "dropTarget": true}).await;
    assert_eq!((ids(&node, "t.a"), ids(&node, "t.b")), (vec![], vec![0, 1, 2]));
    let slot = node.namespaces.slot("t.b");
    assert_eq!(slot.read_unchecked().collection.as_ref().unwrap().indexes().len(), 2);
}

#[tokio::test]
async fn a_moderate_validator_lets_old_sins_be() {
    let node = testing::node(None);
    ok(&node, doc! {"insert": "c", "documents": [{"_id": 1, "a": 0}, {"_id": 2, "a": 5}]}).await;
    ok(&node, doc! {"collMod": "c", "validator": {"a": {"$gt": 1}}, "validationLevel": "moderate"}).await;
    let set =
        |id: i32, a: i32| doc! {"update": "c", "updates": [{"q": {"_id": id}, "u": {"$set": {"a": a}}}]};
    assert!(!ok(&node, set(1, -1)).await.contains_key("writeErrors"));
    assert!(ok(&node, set(2, -1)).await.contains_key("writeErrors"));
    ok(&node, doc! {"collMod": "c", "validationLevel": "strict"}).await;
    assert!(ok(&node, set(1, -2)).await.contains_key("writeErrors"));
}

#[tokio::test]
async fn options_of_an_index_are_checked() {
    let node = testing::node(None);
    let make = |options: Document| {
        let mut index = doc! {"key": {"a": 1}, "name": "a_1"};
        index.0.extend(options.0);
        doc! {"createIndexes": "c", "indexes": [index]}
    };
    assert_eq!(code(&node, make(doc! {"partialFilterExpression": 5})).await, 14);
    assert_eq!(code(&node, make(doc! {"nosuch": 5})).await, 197);
    assert_eq!(code(&node, make(doc! {"expireAfterSeconds": "x"})).await, 67);
    ok(&node, make(doc! {"background": true})).await;
    let spec = |node: &Arc<Node>| {
        let slot = node.namespaces.slot("t.c");
        slot.read_unchecked().collection.as_ref().unwrap().index("a_1").unwrap().spec().document().clone()
    };
    assert_eq!(spec(&node).get("background"), Some(&Value::Boolean(true)));
    // Whether it was built in the background says nothing about what it is.
    let again = ok(&node, make(doc! {})).await;
    assert_eq!(again.get_i64("numIndexesAfter"), Some(2));
}

#[tokio::test]
async fn a_collection_made_after_a_view_was_checked_keeps_the_view_out() {
    let node = testing::node(None);
    ok(&node, doc! {"insert": "c", "documents": documents(1)}).await;
    let slot = node.namespaces.slot("t.c");
    let definition = doc! { "_id": "t.c", "viewOn": "other", "pipeline": Value::Array(Vec::new()) };
    let view = crate::view::View::from_document(&definition).unwrap().1;
    // What create_view does once its own look at the namespace is over.
    let refused = crate::view::define(&node, &Operation::internal(), &slot, &definition, |state| match state
        .collection
        .is_some()
    {
        true => Err(document::err!(NAMESPACE_EXISTS, "there is a collection")),
        false => Ok(Some(view.clone())),
    })
    .await;
    assert_eq!(refused.unwrap_err().code, document::codes::NAMESPACE_EXISTS);
    assert!(slot.read_unchecked().view.is_none());
    assert!(ids(&node, "t.system.views").is_empty());
    assert!(node.namespaces.slot("t.system.views").read_unchecked().collection.is_none());
}

/// How many buckets a time series has; none where it is none.
fn buckets_of(node: &Arc<Node>, ns: &str) -> Option<usize> {
    let series = crate::timeseries::of(node, &node.namespaces.slot(ns))?;
    series.buckets.read_unchecked().collection.as_ref().map(|c| c.len())
}

#[tokio::test]
async fn a_time_series_is_dropped_with_its_buckets_or_not_at_all() {
    let files = MemoryFiles::default();
    let node = testing::open(None, &files, |_| {});
    let create = || doc! {"create": "c", "timeseries": {"timeField": "t"}};
    ok(&node, create()).await;
    ok(&node, doc! {"insert": "c", "documents": [{"_id": 1, "t": Value::DateTime(0)}]}).await;
    let buckets = node.namespaces.slot("t.system.buckets.c");
    let in_use = buckets.intent_shared(crate::ddl::lock::LOCK_WAIT).await.unwrap();
    assert_eq!(code(&node, doc! {"drop": "c", "maxTimeMS": 20}).await, document::codes::MAX_TIME_MS_EXPIRED);
    assert_eq!(buckets_of(&node, "t.c"), Some(1));
    drop(in_use);
    let before = node.log.last_ts();
    ok(&node, doc! {"drop": "c"}).await;
    // Wherever the log is cut off, there are no measurements without the collection.
    let mut log = node.log.reader(storage::log::ReadFrom::Ts(before + 1)).unwrap();
    let logged = document::Doc::from_validated(log.next().unwrap().unwrap().payload).to_document();
    assert_eq!(logged.get_path("o.drop"), Some(&Value::from("system.buckets.c")));
    drop(log);
    node.shutdown();
    drop(node);
    let node = testing::open(None, &files, |_| {});
    assert!(node.namespaces.slot("t.c").read_unchecked().view.is_none());
    ok(&node, create()).await;
    assert_eq!(buckets_of(&node, "t.c"), Some(0));
}

#[tokio::test]
async fn a_drop_takes_the_buckets_of_a_time_series_that_was_never_finished() {
    let node = testing::node(None);
    let create = |field: &str| doc! {"create": "c", "timeseries": {"timeField": field}};
    ok(&node, create("t")).await;
    ok(&node, doc! {"insert": "c", "documents": [{"_id": 1, "t": Value::DateTime(0)}]}).await;
    // As after a kill between the buckets and the view.
    let local = LocalClient::new(node.clone());
    assert_eq!(local.delete("t.system.views", &doc! {"_id": "t.c"}).await, Ok(1));
    node.namespaces.slot("t.c").write_unchecked().set_view(None);
    assert!(ok(&node, doc! {"drop": "c"}).await.contains_key("ns"));
    ok(&node, create("other")).await;
    assert_eq!(buckets_of(&node, "t.c"), Some(0));
    // Another view of the buckets does not take them along.
    let pipeline = document::array![{"$_internalUnpackBucket": {"timeField": "other"}}];
    ok(&node, doc! {"create": "v", "viewOn": "system.buckets.c", "pipeline": pipeline}).await;
    ok(&node, doc! {"drop": "v"}).await;
    assert_eq!(buckets_of(&node, "t.c"), Some(0));
}

#[tokio::test]
async fn a_bucket_is_never_larger_than_a_document() {
    let node = testing::node(None);
    ok(&node, doc! {"create": "c", "timeseries": {"timeField": "t", "metaField": "m"}}).await;
    let measurement = |id: i32| {
        doc! {"_id": id, "t": Value::DateTime(0), "m": "m".repeat(1 << 20), "v": "v".repeat(10 << 20)}
    };
    for id in 0..2 {
        let reply = ok(&node, doc! {"insert": "c", "documents": [measurement(id)]}).await;
        assert_eq!(reply.get_i64("n"), Some(1));
    }
    let state = node.namespaces.slot("t.system.buckets.c");
    let state = state.read_unchecked();
    let mut records = storage::CollectionView::records(state.collection.as_ref().unwrap());
    let first = records.first();
    let sizes: Vec<usize> =
        std::iter::successors(first, |_| records.next()).map(|(_, d)| d.bytes().len()).collect();
    assert_eq!(sizes.len(), 2);
    assert!(sizes.iter().all(|size| *size < write::statement::DOCUMENT_BYTES_MAX), "{sizes:?}");
}

#[tokio::test]
async fn a_removal_of_one_measurement_of_a_bucket_is_answered_again() {
    let node = testing::node(Some("rs"));
    ok(&node, doc! {"create": "c", "timeseries": {"timeField": "t"}}).await;
    let documents =
        document::array![{"_id": 1, "t": Value::DateTime(0)}, {"_id": 2, "t": Value::DateTime(1)}];
    ok(&node, doc! {"insert": "c", "documents": documents}).await;
    for (number, id) in [(1, 1), (2, 2)] {
        let remove = || session(doc! {"findAndModify": "c", "query": {"_id": id}, "remove": true}, number);
        let first = ok(&node, remove()).await;
        assert_eq!(first.get_path("value._id"), Some(&Value::Int32(id)));
        let again = ok(&node, remove()).await;
        assert_eq!(again.get("value"), first.get("value"));
        assert_eq!(again.get("lastErrorObject"), first.get("lastErrorObject"));
    }
    assert_eq!(buckets_of(&node, "t.c"), Some(0));
}

#[tokio::test]
async fn bulk_write_updates_a_time_series_as_update_does() {
    let node = testing::node(Some("rs"));
    ok(&node, doc! {"create": "c", "timeseries": {"timeField": "t", "metaField": "m"}}).await;
    ok(&node, doc! {"insert": "c", "documents": [{"_id": 1, "t": Value::DateTime(0), "m": 1}]}).await;
    let update = |u: Document, multi: bool| {
        let ops =
            document::array![{"update": 0, "filter": {"m": {"$gt": 0}}, "updateMods": u, "multi": multi}];
        doc! {"bulkWrite": 1, "ops": ops, "nsInfo": [{"ns": "t.c"}]}
    };
    let code_of = |reply: &Document, list: &str| {
        let first =
            reply.get_path(list).and_then(Value::as_array).and_then(|list| list.first()?.as_document());
        first.and_then(|item| item.get_i64("code"))
    };
    let reply = ok(&node, update(doc! {"$inc": {"m": 1}}, true)).await;
    assert_eq!((reply.get_i64("nModified"), code_of(&reply, "cursor.firstBatch")), (Some(1), None));
    let meta = LocalClient::new(node.clone()).find("t.system.buckets.c", &doc! {"meta": 2}).unwrap();
    assert_eq!(meta.len(), 1);
    for refused in [
        update(doc! {"$inc": {"m": 1}}, false),
        update(doc! {"$inc": {"v": 1}}, true),
        session(update(doc! {"$inc": {"m": 1}}, true), 1),
    ] {
        assert_eq!(code_of(&ok(&node, refused).await, "cursor.firstBatch"), Some(72));
    }
    let retried = session(
        doc! {"update": "c", "updates": [{"q": {"m": 2}, "u": {"$inc": {"m": 1}}, "multi": true}]},
        2,
    );
    assert_eq!(code_of(&ok(&node, retried).await, "writeErrors"), Some(72));
}

#[tokio::test]
async fn what_gives_way_to_another_collection_takes_its_index_filters_along() {
    let node = testing::node(None);
    let filtered = |ns: &str| {
        let uuid = node.namespaces.slot(ns).read_unchecked().collection.as_ref().unwrap().uuid();
        let filter = crate::plan_cache::IndexFilter {
            shape: vec![1],
            query: doc! {},
            sort: doc! {},
            projection: doc! {},
            collation: None,
            indexes: Vec::new(),
        };
        node.plan_caches.set_filter(uuid, filter);
        uuid
    };
    for name in ["a", "b"] {
        ok(&node, doc! {"insert": name, "documents": documents(1)}).await;
    }
    let gone = filtered("t.b");
    ok(&node, doc! {"renameCollection": "t.a", "to": "t.b", "dropTarget": true}).await;
    assert!(node.plan_caches.of(gone).is_none());
    let gone = filtered("t.b");
    let op = Operation::internal();
    crate::fork::fork_database(&node, &op, "t", "u", false).await.unwrap();
    crate::fork::fork_database(&node, &op, "u", "t", true).await.unwrap();
    assert!(node.plan_caches.of(gone).is_none());
    // What a restore puts back is the same collection.
    let kept = filtered("t.b");
    crate::fork::take_snapshot(&node, &op, "s").await.unwrap();
    crate::fork::restore(&node, &op, "s").await.unwrap();
    assert!(node.plan_caches.of(kept).is_some());
}

#[tokio::test]
async fn an_ordered_insert_of_measurements_ends_with_its_first_error() {
    let node = testing::node(None);
    ok(&node, doc! {"create": "c", "timeseries": {"timeField": "t", "metaField": "m"}}).await;
    let sphere = document::array![{"key": {"m": "2dsphere"}, "name": "m_2dsphere"}];
    ok(&node, doc! {"createIndexes": "c", "indexes": sphere}).await;
    let nowhere = doc! {"type": "Point", "coordinates": [500, 500]};
    let documents = document::array![{"t": Value::DateTime(0), "m": nowhere}, {"t": "no time"}];
    let reply = ok(&node, doc! {"insert": "c", "documents": documents}).await;
    let errors = reply.get("writeErrors").and_then(Value::as_array).unwrap();
    let places: Vec<_> = errors.iter().map(|e| e.as_document().unwrap().get_i64("index")).collect();
    assert_eq!((reply.get_i64("n"), places), (Some(0), vec![Some(0)]));
}

/// Counts the checks that find the commit gate held.
struct Watching {
    node: Arc<Node>,
    gated: AtomicU32,
}
impl Overseer for Watching {
    fn check(&self, _: &mut Slice) -> Result<()> {
        self.gated.fetch_add(u32::from(self.node.gate.try_write().is_none()), Ordering::SeqCst);
        Ok(())
    }
}

/// Finds every operation out of time.
struct Late;
impl Overseer for Late {
    fn check(&self, _: &mut Slice) -> Result<()> {
        document::bail!(MAX_TIME_MS_EXPIRED, "operation exceeded time limit");
    }
}

/// Such an index lacked a key, or kept one, for good.
#[test]
fn whether_an_index_covers_a_document_does_not_depend_on_what_time_is_left() {
    let filter = doc! { "a": { "$gt": 1500 } };
    let covers = crate::open::partial_predicate(&filter, &Collation::SIMPLE).unwrap();
    let document = doc! { "a": Value::Array((0..1600).map(Value::Int32).collect()) }.to_doc_buf();
    meter::within(&mut meter::Oversight::default(), || {
        meter::oversee(Arc::new(Late));
        assert!((0..1000).all(|_| covers(document.doc())));
        assert!(meter::spend(1).is_err());
    });
}

/// A check may wait for a place in the lane. Such a wait held the gate, which whoever had the place came to wait for: the node stood
/// still for good.
#[tokio::test]
async fn long_work_of_a_catalog_change_waits_for_no_place_while_it_holds_the_gate() {
    let node = testing::node(None);
    let documents: Vec<Value> = (0..200).map(|i| Value::from(doc! { "_id": i, "s": "x" })).collect();
    ok(&node, doc! { "insert": "c", "documents": documents }).await;
    let watching = Arc::new(Watching { node: node.clone(), gated: 0.into() });
    let all = vec![Value::from(doc! { "s": { "$type": "string" } }); 500];
    let index = doc! { "key": { "s": 1 }, "name": "s", "partialFilterExpression": { "$and": all } };
    let overseer = watching.clone();
    crate::lane::metered(async {
        meter::oversee(overseer);
        ok(&node, doc! { "createIndexes": "c", "indexes": [index] }).await;
    })
    .await;
    assert_eq!(watching.gated.load(Ordering::SeqCst), 0);
}
