//! Reading, held against brute force over the documents that were written.

use super::candidates::{Candidates, Search};
use crate::failpoints::Mode;
use crate::open::NodeOptions;
use crate::operation::SessionId;
use crate::{Node, Operation, Request};
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Value, array, codes, doc};
use query::QueryContext;
use query::matcher::Matcher;
use query::sort::SortSpec;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::time::Duration;
use storage::files::MemoryFiles;
use storage::log::{LogOptions, RealClock};

fn node() -> Arc<Node> {
    let clock = Arc::new(RealClock);
    let log = LogOptions { in_memory: true, clock: clock.clone(), ..LogOptions::default() };
    let options = NodeOptions {
        files: Arc::new(MemoryFiles::default()),
        dir: "/data".into(),
        log,
        clock,
        replica_set: Some("rs".to_string()),
        host: "localhost:27017".to_string(),
    };
    Node::open(options).expect("opens").node
}

fn op() -> Arc<Operation> {
    Arc::new(Operation::internal())
}

/// Runs one command as the server's row does.
async fn run_as(node: &Arc<Node>, op: &Arc<Operation>, command: Document) -> Result<Document> {
    let body = command.to_doc_buf();
    let request = Request { db: "d", body: body.doc(), sequences: &[] };
    let name = request.name().to_string();
    let mut out = Vec::new();
    out.extend_from_slice(&[0; 4]);
    let mut w = DocWriter::resume(&mut out);
    match name.as_str() {
        "find" => super::find::find(node, op, request, &mut w).await?,
        "getMore" => super::get_more::get_more(node, op, request, &mut w).await?,
        "aggregate" => super::aggregate::aggregate(node, op, request, &mut w).await?,
        "distinct" => drop(super::distinct::distinct(node, op, request, &mut w).await?),
        "count" => return super::count::count(node, op, request).await,
        "killCursors" => return super::get_more::kill_cursors(node, request),
        "explain" => return super::explain::explain(node, op, request).await,
        "insert" => return crate::write::insert::insert(node, op, request).await,
        "update" => return crate::write::update::update(node, op, request).await,
        "delete" => return crate::write::delete::delete(node, op, request).await,
        "create" => return crate::ddl::collections::create(node, op, request).await,
        "drop" => return crate::ddl::collections::drop(node, op, request).await,
        "createIndexes" => return crate::ddl::indexes::create_indexes(node, op, request).await,
        "dropIndexes" => return crate::ddl::indexes::drop_indexes(node, op, request).await,
        other => panic!("no command {other}"),
    }
    out.push(0);
    let length = out.len() as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    document::validate::validate(&out, document::validate::Limits::MESSAGE).expect("a valid reply");
    Ok(DocBuf::from_validated(out).to_document())
}

async fn run(node: &Arc<Node>, command: Document) -> Result<Document> {
    run_as(node, &op(), command).await
}

async fn insert(node: &Arc<Node>, ns: &str, docs: &[Document]) {
    for chunk in docs.chunks(1000) {
        let reply = run(node, doc! { "insert": ns, "documents": chunk.to_vec() }).await.expect("inserted");
        assert!(!reply.contains_key("writeErrors"), "{reply:?}");
    }
}

/// All rows of a cursor command, pulled with this batch size.
async fn rows(node: &Arc<Node>, command: Document, batch: i32) -> Result<Vec<Document>> {
    let collection = command.first().and_then(|(_, v)| v.as_str()).unwrap_or("$cmd.aggregate").to_string();
    let reply = run(node, command).await?;
    let cursor = reply.get_document("cursor").expect("a cursor").clone();
    let mut out = documents(cursor.get_array("firstBatch").expect("a batch"));
    let mut id = cursor.get_i64("id").expect("an id");
    while id != 0 {
        let more = doc! { "getMore": id, "collection": collection.as_str(), "batchSize": batch };
        let reply = run(node, more).await?;
        let cursor = reply.get_document("cursor").expect("a cursor").clone();
        let next = documents(cursor.get_array("nextBatch").expect("a batch"));
        assert!(next.len() <= batch as usize);
        out.extend(next);
        id = cursor.get_i64("id").expect("an id");
    }
    Ok(out)
}

fn documents(list: &[Value]) -> Vec<Document> {
    list.iter().map(|v| v.as_document().expect("a document").clone()).collect()
}

fn matcher(filter: &Document) -> Matcher {
    Matcher::parse(filter.to_doc_buf().doc(), &QueryContext::default()).expect("a filter")
}

fn ids(docs: &[Document]) -> Vec<i64> {
    docs.iter().map(|d| d.get_i64("_id").expect("an id")).collect()
}

// ---- random worlds ----

fn scalar(r: &mut SmallRng) -> Value {
    match r.random_range(0..10) {
        0 => Value::Null,
        1 => Value::from(["x", "xy", "y"][r.random_range(0..3)]),
        2 => Value::Double(r.random_range(0..8) as f64 / 2.0),
        3 => Value::Int64(r.random_range(0..4)),
        4 => Value::Boolean(r.random()),
        _ => Value::Int32(r.random_range(0..6)),
    }
}

fn value(r: &mut SmallRng) -> Value {
    match r.random_range(0..10) {
        0 => Value::Array((0..r.random_range(0..4)).map(|_| scalar(r)).collect()),
        1 => Value::Document(doc! { "e": scalar(r) }),
        _ => scalar(r),
    }
}

/// Arrays only under `b`, so that some indexes stay free of them.
fn random_doc(r: &mut SmallRng, id: i32) -> Document {
    let mut d = doc! { "_id": id };
    if r.random_bool(0.9) {
        d.push("a", scalar(r));
    }
    if r.random_bool(0.9) {
        d.push("b", value(r));
    }
    if r.random_bool(0.9) {
        d.push("c", doc! { "e": scalar(r) });
    }
    d
}

const FIELDS: [&str; 4] = ["a", "b", "c.e", "_id"];

fn random_leaf(r: &mut SmallRng) -> Document {
    let field = FIELDS[r.random_range(0..4)];
    let v = scalar(r);
    let condition = match r.random_range(0..10) {
        0 => Value::Document(doc! { "$gt": v }),
        1 => Value::Document(doc! { "$gte": v, "$lt": scalar(r) }),
        2 => Value::Document(doc! { "$lte": v }),
        3 => Value::Document(doc! { "$in": array![v, scalar(r), scalar(r)] }),
        4 => Value::Document(doc! { "$ne": v }),
        5 => Value::Document(doc! { "$exists": r.random::<bool>() }),
        6 => Value::Document(doc! { "$nin": array![v, scalar(r)] }),
        _ => v,
    };
    Document(vec![(field.to_string(), condition)])
}

fn random_filter(r: &mut SmallRng) -> Document {
    match r.random_range(0..8) {
        0 => Document::new(),
        1 => doc! { "$or": array![random_leaf(r), random_leaf(r)] },
        2 => doc! { "$or": array![random_leaf(r), doc! { "$and": array![random_leaf(r), random_leaf(r)] }] },
        3 => doc! { "$and": array![random_leaf(r), random_leaf(r), random_leaf(r)] },
        4 => doc! { "$nor": array![random_leaf(r)] },
        _ => random_leaf(r),
    }
}

fn random_index(r: &mut SmallRng, n: usize) -> Document {
    let mut key = Document::new();
    let first = r.random_range(0..3);
    for i in 0..r.random_range(1..3) {
        key.push(FIELDS[(first + i) % 3], if r.random() { 1 } else { -1 });
    }
    if r.random_bool(0.1) {
        key = Document(vec![("a".to_string(), Value::from("hashed"))]);
    }
    let mut spec = doc! { "key": key, "name": format!("i{n}") };
    match r.random_range(0..8) {
        0 => spec.push("sparse", true),
        1 => spec.push("partialFilterExpression", doc! { "a": { "$gte": 2 } }),
        _ => {}
    }
    spec
}

fn sorted(mut docs: Vec<Document>, sort: &Document) -> Vec<Document> {
    let spec = SortSpec::parse(sort.to_doc_buf().doc()).expect("a sort");
    docs.sort_by_cached_key(|d| spec.key(d.to_doc_buf().doc()).expect("a key"));
    docs
}

/// A filter, and what brute force finds by it.
struct Case<'a> {
    node: &'a Arc<Node>,
    filter: Document,
    expected: Vec<Document>,
    batch: i32,
    context: String,
}

impl Case<'_> {
    async fn rows(&self, command: Document) -> Vec<Document> {
        rows(self.node, command, self.batch).await.expect(&self.context)
    }

    async fn check_ids(&self, command: Document) {
        let mut found = ids(&self.rows(command).await);
        found.sort_unstable();
        assert_eq!(found, ids(&self.expected), "{}", self.context);
    }

    async fn find_and_count(&self) {
        self.check_ids(doc! { "find": "c", "filter": self.filter.clone(), "batchSize": self.batch }).await;
        let command = doc! { "count": "c", "query": self.filter.clone() };
        let counted = run(self.node, command).await.expect(&self.context);
        assert_eq!(counted.get_i64("n"), Some(self.expected.len() as i64), "{}", self.context);
    }

    /// By `find` and by `aggregate`.
    async fn sort_skip_and_limit(&self, r: &mut SmallRng, field: &str) {
        let direction = if r.random() { 1 } else { -1 };
        let sort = Document(vec![
            (field.to_string(), Value::Int32(direction)),
            ("_id".to_string(), Value::Int32(if r.random() { 1 } else { -1 })),
        ]);
        let (skip, limit) = (r.random_range(0..20), r.random_range(0..60));
        let whole = sorted(self.expected.clone(), &sort);
        let take = if limit == 0 { usize::MAX } else { limit };
        let wanted: Vec<Document> = whole.into_iter().skip(skip).take(take).collect();
        let context = format!("{} sort {sort:?} skip {skip} limit {limit}", self.context);
        let command = doc! {
            "find": "c", "filter": self.filter.clone(), "sort": sort.clone(), "skip": skip as i32,
            "limit": limit as i32, "batchSize": self.batch,
        };
        assert_eq!(self.rows(command).await, wanted, "{context}");

        let mut stages = vec![
            Value::Document(doc! { "$match": self.filter.clone() }),
            Value::Document(doc! { "$sort": sort }),
            Value::Document(doc! { "$skip": skip as i64 }),
        ];
        if limit > 0 {
            stages.push(Value::Document(doc! { "$limit": limit as i64 }));
        }
        let command = doc! { "aggregate": "c", "pipeline": stages, "cursor": { "batchSize": self.batch } };
        assert_eq!(self.rows(command).await, wanted, "{context} aggregate");
    }

    async fn aggregate_and_distinct(&self, field: &str) {
        let only_match = array![doc! { "$match": self.filter.clone() }];
        self.check_ids(
            doc! { "aggregate": "c", "pipeline": only_match, "cursor": { "batchSize": self.batch } },
        )
        .await;
        let command = doc! { "distinct": "c", "key": field, "query": self.filter.clone() };
        let reply = run(self.node, command).await.expect(&self.context);
        assert_eq!(
            as_set(reply.get_array("values").expect("values")),
            distinct(&self.expected, field),
            "{}",
            self.context
        );
    }
}

#[tokio::test]
async fn every_plan_finds_what_a_scan_of_all_documents_finds() {
    for seed in 0..16 {
        let r = &mut SmallRng::seed_from_u64(seed);
        let node = node();
        let docs: Vec<Document> = (0..r.random_range(1..400)).map(|i| random_doc(r, i)).collect();
        insert(&node, "c", &docs).await;
        for n in 0..r.random_range(0..5) {
            let spec = random_index(r, n);
            // Two random indexes may be the same one under two names.
            let made = run(&node, doc! { "createIndexes": "c", "indexes": array![spec.clone()] }).await;
            assert!(
                made.as_ref().err().is_none_or(|e| e.code == codes::INDEX_OPTIONS_CONFLICT),
                "{spec:?} {made:?}"
            );
        }
        for _ in 0..25 {
            let filter = random_filter(r);
            let m = matcher(&filter);
            let expected: Vec<Document> =
                docs.iter().filter(|d| m.matches(d.to_doc_buf().doc()).expect("matches")).cloned().collect();
            let context = format!("seed {seed} filter {filter:?}");
            let batch = r.random_range(1..200);

            let case = Case { node: &node, filter, expected, batch, context };
            case.find_and_count().await;
            let field = FIELDS[r.random_range(0..3)];
            case.sort_skip_and_limit(r, field).await;
            case.aggregate_and_distinct(field).await;
        }
        let reply = run(&node, doc! { "distinct": "c", "key": "a" }).await.expect("distinct");
        assert_eq!(as_set(reply.get_array("values").expect("values")), distinct(&docs, "a"), "seed {seed}");
    }
}

fn as_set(values: &[Value]) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = values
        .iter()
        .map(|v| {
            let mut key = Vec::new();
            document::key_string::append_value(&mut key, v, false);
            key
        })
        .collect();
    keys.sort();
    keys
}

fn distinct(docs: &[Document], field: &str) -> Vec<Vec<u8>> {
    let mut values = Vec::new();
    for d in docs {
        match d.get_path(field) {
            Some(Value::Array(items)) => values.extend(items.clone()),
            Some(v) => values.push(v.clone()),
            None => {}
        }
    }
    let mut keys = as_set(&values);
    keys.dedup();
    keys
}

#[tokio::test]
async fn a_cursor_reads_what_was_there_when_it_was_opened() {
    let node = node();
    insert(&node, "c", &(0..3000).map(|i| doc! { "_id": i, "x": 0 }).collect::<Vec<_>>()).await;
    let reply = run(&node, doc! { "find": "c", "batchSize": 10, "sort": { "_id": 1 } }).await.expect("find");
    let id = reply.get_document("cursor").and_then(|c| c.get_i64("id")).expect("an id");
    run(&node, doc! { "update": "c", "updates": array![doc! { "q": {}, "u": { "$set": { "x": 1 } }, "multi": true }] })
        .await
        .expect("updated");
    run(
        &node,
        doc! { "delete": "c", "deletes": array![doc! { "q": { "_id": { "$gte": 1000 } }, "limit": 0 }] },
    )
    .await
    .expect("deleted");
    insert(&node, "c", &[doc! { "_id": 5000 }]).await;
    let more = run(&node, doc! { "getMore": id, "collection": "c" }).await.expect("more");
    let rest =
        documents(more.get_document("cursor").and_then(|c| c.get_array("nextBatch")).expect("a batch"));
    assert_eq!(ids(&rest), (10..3000).collect::<Vec<i64>>());
    assert!(rest.iter().all(|d| d.get_i64("x") == Some(0)));
    assert_eq!(node.cursors.metrics().open, 0);
}

#[tokio::test]
async fn a_routed_cursor_reads_at_its_moment_however_long_its_client_waits() {
    let node = node();
    insert(&node, "c", &(0..500).map(|i| doc! { "_id": i }).collect::<Vec<_>>()).await;
    let mut op = Operation::internal();
    op.received.shard = Some(protocol::version::ShardVersion::UNTRACKED);
    let reply = run_as(&node, &Arc::new(op), doc! { "find": "c", "batchSize": 100 }).await.expect("find");
    let id = reply.get_document("cursor").and_then(|c| c.get_i64("id")).expect("an id");
    node.cursors.reap(node.now_ms() + crate::cursor::SNAPSHOT_IDLE_MS);
    // Meanwhile the collection was sharded, a range moved away and the range deleter did its work.
    run(
        &node,
        doc! { "delete": "c", "deletes": array![doc! { "q": { "_id": { "$gte": 200 } }, "limit": 0 }] },
    )
    .await
    .expect("deleted");
    let more = run(&node, doc! { "getMore": id, "collection": "c" }).await.expect("more");
    let rest =
        documents(more.get_document("cursor").and_then(|c| c.get_array("nextBatch")).expect("a batch"));
    assert_eq!(ids(&rest), (100..500).collect::<Vec<i64>>());
}

#[tokio::test]
async fn an_idle_cursor_gives_its_snapshot_back_and_goes_on_from_its_position() {
    let node = node();
    insert(&node, "c", &(0..3000).map(|i| doc! { "_id": i, "a": i }).collect::<Vec<_>>()).await;
    run(&node, doc! { "createIndexes": "c", "indexes": array![doc! { "key": { "a": 1 }, "name": "a_1" }] })
        .await
        .expect("indexed");
    for filter in [doc! {}, doc! { "a": { "$gte": 0 } }] {
        let indexed = !filter.is_empty();
        let reply =
            run(&node, doc! { "find": "c", "filter": filter, "batchSize": 1000 }).await.expect("find");
        let id = reply.get_document("cursor").and_then(|c| c.get_i64("id")).expect("an id");
        assert_eq!(node.cursors.reap(node.now_ms() + crate::cursor::SNAPSHOT_IDLE_MS), 0);
        // Gone from what is ahead, and moved from behind to ahead, which a walk by record does not see.
        run(&node, doc! { "delete": "c", "deletes": array![doc! { "q": { "_id": 2500 }, "limit": 1 }] })
            .await
            .expect("deleted");
        run(&node, doc! { "update": "c", "updates": array![doc! { "q": { "_id": 5 }, "u": { "$set": { "a": 9999 } } }] })
            .await
            .expect("updated");
        let more = run(&node, doc! { "getMore": id, "collection": "c" }).await.expect("more");
        let rest =
            documents(more.get_document("cursor").and_then(|c| c.get_array("nextBatch")).expect("a batch"));
        let mut expected: Vec<i64> = (1000..3000).filter(|i| *i != 2500).collect();
        if indexed {
            expected.push(5);
        }
        assert_eq!(ids(&rest), expected);
        run(&node, doc! { "insert": "c", "documents": array![doc! { "_id": 2500, "a": 2500 }] })
            .await
            .expect("back");
        run(&node, doc! { "delete": "c", "deletes": array![doc! { "q": { "_id": 2500 }, "limit": 1 }] })
            .await
            .expect("deleted");
        run(&node, doc! { "update": "c", "updates": array![doc! { "q": { "_id": 5 }, "u": { "$set": { "a": 5 } } }] })
            .await
            .expect("updated");
    }
}

/// A cursor on 3000 documents that has found the first 1000 by an index on `a`, with its snapshot given back.
async fn idle_cursor(node: &Arc<Node>, projection: Document) -> i64 {
    insert(node, "c", &(0..3000).map(|i| doc! { "_id": i, "a": i, "b": -i }).collect::<Vec<_>>()).await;
    index_on(node, "a").await;
    let find =
        doc! { "find": "c", "filter": { "a": { "$gte": 0 } }, "projection": projection, "batchSize": 1000 };
    let reply = run(node, find).await.expect("find");
    assert_eq!(node.cursors.reap(node.now_ms() + crate::cursor::SNAPSHOT_IDLE_MS), 0);
    reply.get_document("cursor").and_then(|c| c.get_i64("id")).expect("an id")
}

/// Makes an index on this path that is called `i`.
async fn index_on(node: &Arc<Node>, path: &str) {
    let mut key = Document::new();
    key.push(path, 1);
    run(node, doc! { "createIndexes": "c", "indexes": array![doc! { "key": key, "name": "i" }] })
        .await
        .expect("indexed");
}

#[tokio::test]
async fn an_idle_cursor_that_reads_keys_finds_arrays_whole_afterwards() {
    let node = node();
    let id = idle_cursor(&node, doc! { "_id": 0, "a": 1 }).await;
    let u = doc! { "$set": { "a": array![2000, 2001] } };
    run(&node, doc! { "update": "c", "updates": array![doc! { "q": { "_id": 2000 }, "u": u }] })
        .await
        .expect("updated");
    let more = run(&node, doc! { "getMore": id, "collection": "c" }).await.expect("more");
    let rest =
        documents(more.get_document("cursor").and_then(|c| c.get_array("nextBatch")).expect("a batch"));
    assert_eq!(rest.len(), 2000);
    assert_eq!(rest[999], doc! { "a": 1999 });
    assert_eq!(rest[1000], doc! { "a": array![2000, 2001] });
    assert_eq!(rest[1001], doc! { "a": 2001 });
}

#[tokio::test]
async fn an_idle_cursor_ends_where_another_index_has_the_name_of_its_own() {
    for (path, same) in [("a", true), ("b", false)] {
        let node = node();
        let id = idle_cursor(&node, doc! {}).await;
        run(&node, doc! { "dropIndexes": "c", "index": "i" }).await.expect("dropped");
        index_on(&node, path).await;
        let more = run(&node, doc! { "getMore": id, "collection": "c" }).await;
        match same {
            true => drop(more.expect("the same keys")),
            false => assert_eq!(code(more), codes::QUERY_PLAN_KILLED),
        }
    }
}

fn code(result: Result<Document>) -> i32 {
    result.expect_err("refused").code
}

#[tokio::test]
async fn cursors_belong_to_their_namespace_and_session_and_can_be_killed() {
    let node = node();
    insert(&node, "c", &(0..500).map(|i| doc! { "_id": i }).collect::<Vec<_>>()).await;
    let mut mine = Operation::internal();
    let lsid = SessionId::of_client([7; 16], crate::operation::NO_USER);
    mine.session = Some(crate::operation::SessionFields {
        lsid,
        txn_number: None,
        autocommit: None,
        start_transaction: false,
        stmt_ids: Vec::new(),
    });
    let mine = Arc::new(mine);
    let open = || async {
        let reply = run_as(&node, &mine, doc! { "find": "c", "batchSize": 2 }).await.expect("find");
        reply.get_document("cursor").and_then(|c| c.get_i64("id")).expect("an id")
    };
    let id = open().await;
    assert!(id > 0);
    assert_eq!(code(run(&node, doc! { "getMore": id, "collection": "c" }).await), 50737);
    assert_eq!(
        code(run_as(&node, &mine, doc! { "getMore": id, "collection": "e" }).await),
        codes::UNAUTHORIZED
    );
    assert!(run_as(&node, &mine, doc! { "getMore": id, "collection": "c", "batchSize": 3 }).await.is_ok());
    let killed = run(&node, doc! { "killCursors": "c", "cursors": array![id, 99i64] }).await.expect("killed");
    assert_eq!(killed.get_array("cursorsKilled"), Some(&vec![Value::Int64(id)]));
    assert_eq!(killed.get_array("cursorsNotFound"), Some(&vec![Value::Int64(99)]));
    assert_eq!(
        code(run_as(&node, &mine, doc! { "getMore": id, "collection": "c" }).await),
        codes::CURSOR_NOT_FOUND
    );
    open().await;
    assert_eq!(node.cursors.kill_session(lsid), 1);
    // Idle for too long.
    open().await;
    assert_eq!(node.cursors.reap(node.now_ms() + crate::cursor::IDLE_MS), 1);
    assert_eq!(node.cursors.metrics().timed_out, 1);
    // The collection is dropped, and another takes its name.
    let id = open().await;
    run(&node, doc! { "drop": "c" }).await.expect("dropped");
    insert(&node, "c", &[doc! { "_id": 1 }]).await;
    assert_eq!(
        code(run_as(&node, &mine, doc! { "getMore": id, "collection": "c" }).await),
        codes::QUERY_PLAN_KILLED
    );
    assert_eq!(
        code(run_as(&node, &mine, doc! { "getMore": id, "collection": "c" }).await),
        codes::CURSOR_NOT_FOUND
    );
}

#[tokio::test]
async fn a_pinned_cursor_is_refused_to_others_and_dies_with_its_operation() {
    let node = node();
    insert(&node, "c", &(0..500).map(|i| doc! { "_id": i }).collect::<Vec<_>>()).await;
    let reply = run(&node, doc! { "find": "c", "batchSize": 2 }).await.expect("find");
    let id = reply.get_document("cursor").and_then(|c| c.get_i64("id")).expect("an id");
    let holder = op();
    let pin = node.cursors.pin(id, "d.c", &holder, node.now_ms()).expect("pinned");
    assert_eq!(node.cursors.metrics().pinned, 1);
    let refused: Error = node.cursors.pin(id, "d.c", &op(), node.now_ms()).err().expect("in use");
    assert!(refused.message.contains("already in use"));
    node.cursors.kill(id);
    assert!(holder.kill_pending());
    assert!(!pin.park(node.now_ms()));
    assert_eq!(node.cursors.metrics().open, 0);
}

#[tokio::test]
async fn batches_end_at_sixteen_megabytes() {
    let node = node();
    let padding = "p".repeat(3_000_000);
    for i in 0..8 {
        insert(&node, "c", &[doc! { "_id": i, "p": padding.as_str() }]).await;
    }
    let reply = run(&node, doc! { "find": "c" }).await.expect("find");
    let cursor = reply.get_document("cursor").expect("a cursor");
    assert_eq!(cursor.get_array("firstBatch").expect("a batch").len(), 5);
    assert_eq!(
        ids(&rows(&node, doc! { "find": "c" }, 100).await.expect("rows")),
        (0..8).collect::<Vec<i64>>()
    );
    // A projection makes them small: one batch holds all.
    let reply = run(&node, doc! { "find": "c", "projection": { "p": 0 } }).await.expect("find");
    assert_eq!(reply.get_document("cursor").and_then(|c| c.get_i64("id")), Some(0));
}

#[tokio::test]
async fn candidates_are_those_of_one_moment_whatever_is_written_meanwhile() {
    let node = node();
    insert(&node, "c", &(0..5000).map(|i| doc! { "_id": i, "a": i % 3 }).collect::<Vec<_>>()).await;
    run(&node, doc! { "createIndexes": "c", "indexes": array![doc! { "key": { "a": 1 }, "name": "a_1" }] })
        .await
        .expect("indexed");
    let op = op();
    let slot = node.namespaces.slot("d.c");
    let filter = matcher(&doc! { "a": 1 });
    let sort = SortSpec::parse(doc! { "_id": -1 }.to_doc_buf().doc()).expect("a sort");
    for sort in [None, Some(&sort)] {
        let search = Search { filter: &filter, sort, hint: None };
        let mut candidates = Candidates::open(&node, &op, &slot, search).await.expect("opened");
        let before = slot.read_unchecked().collection.as_ref().expect("there").snapshot();
        let mut found = Vec::new();
        loop {
            let slice = candidates.next(&op).await.expect("a slice");
            if slice.is_empty() {
                break;
            }
            // Each slice is moved out of the index range that is being walked, and back into it.
            let ids: Vec<Value> = slice
                .iter()
                .filter_map(|r| storage::CollectionView::get(&before, *r)?.get("_id").map(|v| v.to_value()))
                .collect();
            found.extend(slice);
            for a in [9, 1] {
                let statement = doc! { "q": { "_id": { "$in": Value::Array(ids.clone()) } }, "u": { "$set": { "a": a } }, "multi": true };
                run(&node, doc! { "update": "c", "updates": array![statement] }).await.expect("updated");
            }
        }
        assert_eq!(found.len(), 1667);
        let mut unique = found.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), found.len());
        if sort.is_some() {
            assert!(found.is_sorted_by(|a, b| a > b));
        }
    }
}

#[tokio::test]
async fn the_log_is_read_as_a_collection_and_sought_by_ts() {
    let node = node();
    insert(&node, "c", &(0..300).map(|i| doc! { "_id": i }).collect::<Vec<_>>()).await;
    let find = |command: Document| {
        let node = node.clone();
        async move {
            let body = command.to_doc_buf();
            let request = Request { db: "local", body: body.doc(), sequences: &[] };
            let mut out = vec![0; 4];
            super::find::find(&node, &op(), request, &mut DocWriter::resume(&mut out)).await.expect("found");
            out.push(0);
            let length = out.len() as u32;
            out[..4].copy_from_slice(&length.to_le_bytes());
            let reply = DocBuf::from_validated(out).to_document();
            documents(reply.get_document("cursor").and_then(|c| c.get_array("firstBatch")).expect("a batch"))
        }
    };
    let all = find(doc! { "find": "oplog.rs", "filter": { "op": "i" }, "batchSize": 1000 }).await;
    assert_eq!(all.len(), 300);
    let last = find(doc! { "find": "oplog.rs", "sort": { "$natural": -1 }, "limit": 1 }).await;
    assert_eq!(last[0].get_path("o._id"), Some(&Value::Int32(299)));
    let ts = all[250].get("ts").cloned().expect("ts");
    let tail = find(doc! { "find": "oplog.rs", "filter": { "ts": { "$gt": ts.clone() } } }).await;
    assert_eq!(tail.len(), 49);
    let one = find(doc! { "find": "oplog.rs", "filter": { "ts": ts } }).await;
    assert_eq!(one, vec![all[250].clone()]);
}

#[tokio::test]
async fn out_replaces_its_target_and_keeps_the_indexes() {
    let node = node();
    insert(&node, "c", &(0..700).map(|i| doc! { "_id": i, "a": i % 7 }).collect::<Vec<_>>()).await;
    insert(&node, "o", &[doc! { "_id": "old" }]).await;
    run(&node, doc! { "createIndexes": "o", "indexes": array![doc! { "key": { "a": 1 }, "name": "a_1" }] })
        .await
        .expect("indexed");
    let out = |filter: Document| {
        doc! { "aggregate": "c", "pipeline": array![doc! { "$match": filter }, doc! { "$out": "o" }], "cursor": {} }
    };
    assert_eq!(rows(&node, out(doc! { "a": 3 }), 10).await.expect("out"), vec![]);
    let plan =
        run(&node, doc! { "explain": { "count": "o", "query": { "a": 3 } } }).await.expect("explained");
    assert_eq!(plan.get_path("executionStats.totalKeysExamined"), Some(&Value::Int32(100)), "{plan:?}");
    assert_eq!(run(&node, doc! { "count": "o" }).await.expect("counted").get_i64("n"), Some(100));
    // Nothing is written when the pipeline fails half way, and nothing is left behind.
    let failing = doc! {
        "aggregate": "c", "pipeline": array![doc! { "$project": { "_id": { "$literal": 1 } } }, doc! { "$out": "o" }], "cursor": {}
    };
    assert_eq!(code(run(&node, failing).await), codes::DUPLICATE_KEY);
    assert_eq!(run(&node, doc! { "count": "o" }).await.expect("counted").get_i64("n"), Some(100));
    let there: Vec<String> = node
        .namespaces
        .of_database("d")
        .iter()
        .filter(|s| s.read_unchecked().collection.is_some())
        .map(|s| s.ns.clone())
        .collect();
    assert_eq!(there, ["d.c", "d.o"]);
}

/// Owns the documents whose `_id` is even.
struct Even;
impl crate::namespace::OwnershipFilter for Even {
    fn owns(&self, doc: Doc<'_>) -> bool {
        doc.get_i64("_id").is_some_and(|id| id % 2 == 0)
    }
    fn paths(&self) -> Vec<String> {
        vec!["_id".to_string()]
    }
    fn document_key(&self, doc: Doc<'_>) -> document::DocBuf {
        document::DocWriter::build(|w| doc.element("_id").iter().for_each(|id| w.element(id)))
    }
}
struct Sharded;
impl crate::namespace::Placement for Sharded {
    fn check(
        &self,
        _: &crate::operation::Received,
        _: crate::namespace::Access,
    ) -> std::result::Result<(), crate::namespace::Refusal> {
        Ok(())
    }
    fn filter(&self) -> Option<Arc<dyn crate::namespace::OwnershipFilter>> {
        Some(Arc::new(Even))
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

#[tokio::test]
async fn a_versioned_read_sees_owned_documents_only_and_keeps_its_filter() {
    let node = node();
    insert(&node, "c", &(0..1000).map(|i| doc! { "_id": i, "a": i % 10 }).collect::<Vec<_>>()).await;
    run(&node, doc! { "createIndexes": "c", "indexes": array![doc! { "key": { "a": 1 }, "name": "a_1" }] })
        .await
        .expect("indexed");
    node.namespaces.slot("d.c").write_unchecked().placement = Some(Arc::new(Sharded));
    let mut versioned = Operation::internal();
    versioned.received.shard = Some(protocol::version::ShardVersion::IGNORED);
    let versioned = Arc::new(versioned);
    let count = async |query: Document| {
        run_as(&node, &versioned, doc! { "count": "c", "query": query }).await.expect("counted").get_i64("n")
    };
    assert_eq!(count(Document::new()).await, Some(500));
    assert_eq!(count(doc! { "a": 4 }).await, Some(100));
    assert_eq!(count(doc! { "a": 5 }).await, Some(0));
    assert_eq!(count(doc! { "_id": 3 }).await, Some(0));
    // The limit counts owned documents, and the point read asks too.
    let limited = doc! { "find": "c", "sort": { "_id": 1 }, "limit": 3 };
    let reply = run_as(&node, &versioned, limited).await.expect("find");
    let found =
        documents(reply.get_document("cursor").and_then(|c| c.get_array("firstBatch")).expect("a batch"));
    assert_eq!(ids(&found), [0, 2, 4]);
    let reply = run_as(&node, &versioned, doc! { "find": "c", "filter": { "_id": 3 } }).await.expect("find");
    let found = reply.get_document("cursor").and_then(|c| c.get_array("firstBatch")).expect("a batch");
    assert!(found.is_empty());
    // The chunks move away while the cursor is open.
    let reply = run_as(&node, &versioned, doc! { "find": "c", "batchSize": 10 }).await.expect("find");
    let id = reply.get_document("cursor").and_then(|c| c.get_i64("id")).expect("an id");
    node.namespaces.slot("d.c").write_unchecked().placement = None;
    let more = run_as(&node, &versioned, doc! { "getMore": id, "collection": "c" }).await.expect("more");
    let rest =
        documents(more.get_document("cursor").and_then(|c| c.get_array("nextBatch")).expect("a batch"));
    assert_eq!(rest.len(), 490);
    assert!(ids(&rest).iter().all(|id| id % 2 == 0));
    // A direct read sees what is there.
    assert_eq!(run(&node, doc! { "count": "c" }).await.expect("counted").get_i64("n"), Some(1000));
}

/// CPU time of this thread in nanoseconds: a busy machine does not count.
fn cpu_ns() -> u128 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local of the right type.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as u128 * 1_000_000_000 + t.tv_nsec as u128
}

/// What a filter costs for each document of a scan, and what a find by `_id` costs; printed when asked for.
#[tokio::test]
#[ignore = "a measurement"]
async fn measure_scan() {
    let node = node();
    let padding = "p".repeat(900);
    let docs: Vec<Document> =
        (0..100_000).map(|i| doc! { "_id": i, "k": i % 1000, "s": "abc", "p": padding.as_str() }).collect();
    insert(&node, "c", &docs).await;
    for filter in [doc! { "k": 7 }, doc! { "p": "no" }, doc! { "zz": 1 }] {
        let started = cpu_ns();
        let n = 10;
        for _ in 0..n {
            run(&node, doc! { "count": "c", "query": filter.clone() }).await.expect("counted");
        }
        println!("{filter:?}: {} ns a document", (cpu_ns() - started) / n / 100_000);
    }
    let op = op();
    for spread in [1, 7919] {
        let started = cpu_ns();
        for i in 0..100_000 {
            let body = document::DocWriter::build(|w| {
                w.string("find", "c");
                w.document_with("filter", |w| w.i32("_id", (i * spread) % 100_000));
                w.string("$db", "d");
            });
            let mut out = Vec::with_capacity(2048);
            let request = Request { db: "d", body: body.doc(), sequences: &[] };
            super::find::find(&node, &op, request, &mut DocWriter::resume(&mut out)).await.expect("found");
        }
        println!("point find: {} ns", (cpu_ns() - started) / 100_000);
    }
}

#[tokio::test]
async fn a_dropped_collection_takes_what_its_idle_cursors_hold_and_they_say_so() {
    let node = node();
    insert(&node, "c", &(0..20).map(|i| doc! { "_id": i }).collect::<Vec<_>>()).await;
    let grouped = doc! { "aggregate": "c", "pipeline": [{ "$group": { "_id": "$_id" } }], "cursor": { "batchSize": 2 } };
    for command in [grouped, doc! { "find": "c", "batchSize": 2 }] {
        let reply = run(&node, command).await.expect("opened");
        let id = reply.get_document("cursor").and_then(|c| c.get_i64("id")).expect("an id");
        let uuid = node.namespaces.slot("d.c").read_unchecked().collection.as_ref().map(|c| c.uuid());
        node.cursors.release_dropped(uuid.expect("a collection"));
        let e = run(&node, doc! { "getMore": id, "collection": "c" }).await.expect_err("dropped");
        assert_eq!(e.code, codes::QUERY_PLAN_KILLED);
    }
    run(&node, doc! { "drop": "c" }).await.expect("dropped");
    assert_eq!(node.cursors.metrics().open, 0);
}

#[tokio::test]
async fn stages_that_spill_give_what_they_give_in_memory_and_fail_where_they_may_not() {
    let node = node();
    insert(
        &node,
        "c",
        &(0..4000).map(|i| doc! { "_id": i, "k": i * 7 % 1999, "s": "x".repeat(40) }).collect::<Vec<_>>(),
    )
    .await;
    let pipelines = [
        array![
            doc! { "$group": { "_id": "$k", "n": { "$sum": "$_id" }, "all": { "$push": "$_id" } } },
            doc! { "$sort": { "_id": 1 } }
        ],
        array![doc! { "$addFields": { "z": 1 } }, doc! { "$sort": { "k": -1, "_id": 1 } }],
        array![doc! { "$bucketAuto": { "groupBy": "$k", "buckets": 5, "output": { "n": { "$sum": 1 } } } }],
    ];
    let mut commands: Vec<Document> =
        pipelines.map(|p| doc! { "aggregate": "c", "pipeline": p, "cursor": {} }).into_iter().collect();
    commands.push(doc! { "find": "c", "sort": { "k": -1, "_id": 1 }, "projection": { "k": 1 } });
    commands.push(doc! { "aggregate": "c", "pipeline": [{ "$sort": { "k": 1 } }], "cursor": {} });
    for asked in commands {
        let command = |disk: bool| {
            let mut command = asked.clone();
            command.insert("allowDiskUse", disk);
            command
        };
        *node.limits.write() = Default::default();
        let expected = rows(&node, command(true), 500).await.expect("in memory");
        let small = 20_000;
        *node.limits.write() =
            query::pipeline::Limits { sort: small, group: small, bucket_auto: small, ..Default::default() };
        let (before, _) = node.temporary.totals();
        assert_eq!(rows(&node, command(true), 500).await.expect("spilled"), expected);
        assert!(node.temporary.totals().0 > before, "nothing was spilled");
        let e = run(&node, command(false)).await.expect_err("no disk");
        assert_eq!(e.code, codes::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED);
    }
}

/// A chain of ten links that each lead to sixty documents: several depths, most documents met more than once.
#[tokio::test]
async fn windows_and_searches_that_spill_give_what_they_give_in_memory_and_fail_where_they_may_not() {
    use query::pipeline::account::Kind;
    let node = node();
    let document = |i: i32| {
        let next = array![i / 60 + 1, i % 10];
        doc! { "_id": i, "link": i / 60, "next": next, "v": i * 7 % 97, "s": "x".repeat(60) }
    };
    insert(&node, "c", &(0..600).map(document).collect::<Vec<_>>()).await;
    let until = doc! { "documents": ["unbounded", "current"] };
    let near = doc! { "range": [(-20), 20] };
    let output = doc! {
        "sum": { "$sum": "$v", "window": (until.clone()) }, "all": { "$push": "$missing", "window": (near.clone()) },
        "most": { "$max": "$v", "window": (near) }, "rank": { "$rank": {} },
        "before": { "$shift": { "output": "$v", "by": (-2) } }, "held": { "$locf": "$missing" },
        "rate": { "$derivative": { "input": "$v" }, "window": (until) },
        "pair": { "$covariancePop": ["$v", "$_id"], "window": { "documents": [(-3), 3] } },
    };
    let by = doc! { "$mod": ["$_id", 2] };
    let windows =
        doc! { "$setWindowFields": { "partitionBy": (by), "sortBy": { "_id": 1 }, "output": (output) } };
    let search = doc! { "$graphLookup": {
        "from": "c", "startWith": 0, "connectFromField": "next", "connectToField": "link", "as": "r", "depthField": "d",
    } };
    let shorter = doc! { "$graphLookup": {
        "from": "c", "startWith": ["$link", 3], "connectFromField": "next", "connectToField": "link", "as": "r",
        "maxDepth": 1, "restrictSearchWithMatch": { "_id": { "$gt": 90 } },
    } };
    let first = doc! { "$match": { "_id": { "$in": [0, 300] } } };
    let order = doc! { "$set": { "r": { "$sortArray": { "input": "$r", "sortBy": { "_id": 1 } } } } };
    let pipelines = [
        (Kind::SetWindowFields, array![windows]),
        (Kind::GraphLookup, array![first.clone(), search, order.clone()]),
        (Kind::GraphLookup, array![first, shorter, order]),
    ];
    for (kind, pipeline) in pipelines {
        let command = |disk: bool| doc! { "aggregate": "c", "pipeline": pipeline.clone(), "cursor": {}, "allowDiskUse": disk };
        *node.limits.write() = Default::default();
        let expected = rows(&node, command(true), 500).await.expect("in memory");
        let before = node.spills.of(kind);
        let small = 15_000;
        *node.limits.write() =
            query::pipeline::Limits { set_window_fields: small, graph_lookup: small, ..Default::default() };
        assert_eq!(rows(&node, command(true), 500).await.expect("spilled"), expected);
        let after = node.spills.of(kind);
        assert!(after.spills > before.spills + 1, "{kind:?}: {after:?}");
        assert!(after.spilled_records > before.spilled_records + 100, "{kind:?}: {after:?}");
        let e = run(&node, command(false)).await.expect_err("no disk");
        assert_eq!(e.code, codes::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED);
    }
}

#[tokio::test]
async fn a_read_of_a_view_heeds_its_hint_and_whether_it_may_use_the_disk() {
    let node = node();
    let documents: Vec<Document> =
        (0..300).map(|i| doc! { "_id": i, "k": i % 9, "s": "x".repeat(100) }).collect();
    insert(&node, "c", &documents).await;
    run(&node, doc! { "create": "v", "viewOn": "c", "pipeline": [] }).await.expect("a view");
    *node.limits.write() = query::pipeline::Limits { sort: 10_000, ..Default::default() };
    let sorted = |disk: bool| doc! { "find": "v", "sort": { "k": 1 }, "allowDiskUse": disk };
    run(&node, sorted(true)).await.expect("spilled");
    let e = run(&node, sorted(false)).await.expect_err("no disk");
    assert_eq!(e.code, codes::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED);
    for mut command in [doc! { "find": "v" }, doc! { "count": "v" }, doc! { "distinct": "v", "key": "k" }] {
        command.push("hint", "none");
        let explained = doc! { "explain": command.clone(), "verbosity": "queryPlanner" };
        for command in [command, explained] {
            let shown = format!("{command:?}");
            let e = run(&node, command).await.err().map(|e| e.code);
            assert_eq!(e, Some(codes::BAD_VALUE), "{shown}");
        }
    }
}

#[tokio::test]
async fn reads_that_do_not_say_whether_they_may_use_the_disk_do_as_the_parameter_says() {
    let node = node();
    let documents: Vec<Document> =
        (0..300).map(|i| doc! { "_id": i, "k": i % 9, "s": "x".repeat(100) }).collect();
    insert(&node, "c", &documents).await;
    run(&node, doc! { "create": "v", "viewOn": "c", "pipeline": [] }).await.expect("a view");
    *node.limits.write() = query::pipeline::Limits { sort: 10_000, ..Default::default() };
    let refused = Some(codes::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED);
    let reads = [
        doc! { "find": "c", "sort": { "k": 1 } },
        doc! { "find": "v", "sort": { "k": 1 } },
        doc! { "aggregate": "c", "pipeline": [{ "$sort": { "k": 1 } }], "cursor": {} },
    ];
    for read in reads {
        for by_default in [false, true] {
            node.disk_use_by_default.store(by_default, std::sync::atomic::Ordering::Relaxed);
            for said in [None, Some(false), Some(true)] {
                let mut command = read.clone();
                command.0.extend(said.map(|disk| ("allowDiskUse".to_string(), Value::Boolean(disk))));
                let explained = doc! { "explain": command.clone(), "verbosity": "executionStats" };
                let expected = if said.unwrap_or(by_default) { None } else { refused };
                for command in [command, explained] {
                    let shown = format!("{command:?} where the default is {by_default}");
                    assert_eq!(run(&node, command).await.err().map(|e| e.code), expected, "{shown}");
                }
            }
        }
    }
}

#[tokio::test]
async fn no_document_beyond_16_mib_leaves() {
    let node = node();
    insert(&node, "c", &[doc! { "_id": 1, "s": "x".repeat(9 << 20) }]).await;
    let twice = doc! { "aggregate": "c", "pipeline": [{ "$set": { "t": "$s" } }], "cursor": {} };
    let e = run(&node, twice).await.expect_err("too large");
    assert_eq!(e.code, codes::BSON_OBJECT_TOO_LARGE);
    let e =
        run(&node, doc! { "find": "c", "projection": { "s": 1, "t": "$s" } }).await.expect_err("too large");
    assert_eq!(e.code, codes::BSON_OBJECT_TOO_LARGE);
    let pipeline =
        array![doc! { "$set": { "t": "$s" } }, doc! { "$project": { "n": { "$strLenBytes": "$t" } } }];
    let under_way = doc! { "aggregate": "c", "pipeline": pipeline, "cursor": {} };
    assert!(run(&node, under_way).await.is_ok(), "between two stages it may be larger");
}

/// A drop waits for a while only for a batch of a router's `$merge`.
#[tokio::test]
async fn a_routed_merge_does_not_bring_back_a_target_that_was_dropped_between_its_slices() {
    for again in [false, true] {
        let node = node();
        insert(&node, "target", &[doc! { "_id": -1 }]).await;
        let point = "hangWhileBuildingDocumentSourceMergeBatch";
        node.failpoints.configure(point, Mode::Skip(1), doc! {});
        let documents: Vec<Document> = (0..200).map(|i| doc! { "_id": i }).collect();
        let stage = doc! { "$merge": { "into": { "db": "d", "coll": "target" } } };
        let command = doc! { "_shardsvrWriteOutput": "target", "stage": stage, "documents": documents };
        let command = command.to_doc_buf();
        let merge = async {
            let request = Request { db: "d", body: command.doc(), sequences: &[] };
            super::routed_output::write(&node, &op(), request).await
        };
        let dropped = async {
            node.failpoints.wait_entered(point, 1).await;
            run(&node, doc! { "drop": "target" }).await.unwrap();
            if again {
                run(&node, doc! { "create": "target" }).await.unwrap();
            }
            node.failpoints.configure(point, Mode::Off, doc! {});
        };
        let (merged, ()) = tokio::join!(merge, dropped);
        assert_eq!(merged.unwrap_err().code, codes::QUERY_PLAN_KILLED);
        let slot = node.namespaces.slot("d.target");
        let left = slot.read_unchecked().collection.as_ref().map(|c| c.len());
        assert_eq!(left, again.then_some(0));
    }
}

/// A transaction holds the name of the target for as long as this looks.
#[tokio::test]
async fn an_out_into_a_time_series_makes_buckets_and_view_at_once() {
    let node = node();
    let at = |n: i64| doc! { "_id": (n as i32), "at": Value::DateTime(n), "m": 1 };
    insert(&node, "source", &[at(1), at(2)]).await;
    let slot = |ns: &str| node.namespaces.slot(ns);
    let held = slot("d.series").intent_shared(Duration::from_secs(1)).await.unwrap();
    let out = doc! { "db": "d", "coll": "series", "timeseries": { "timeField": "at", "metaField": "m" } };
    let out = run(&node, doc! { "aggregate": "source", "pipeline": [{ "$out": out }], "cursor": {} });
    let looked = async {
        let written = || {
            let outputs = node.namespaces.of_database("d");
            outputs.iter().any(|s| {
                super::is_output(&s.ns)
                    && s.read_unchecked().collection.as_ref().is_some_and(|c| c.len() == 1)
            })
        };
        while !written() {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let made = slot("d.system.buckets.series").read_unchecked().collection.is_some();
        drop(held);
        made
    };
    let (done, made) = tokio::join!(out, looked);
    done.unwrap();
    assert!(!made, "the buckets are there and the view is not");
    let found = rows(&node, doc! { "find": "series", "filter": {} }, 10).await.unwrap();
    assert_eq!(found.len(), 2);
    assert!(
        node.namespaces
            .of_database("d")
            .iter()
            .all(|s| !super::is_output(&s.ns) || s.read_unchecked().collection.is_none())
    );
}

#[test]
fn an_output_is_called_by_a_uuid() {
    let of = |name: &str| super::is_output(&format!("d.{name}"));
    assert!(of(&super::output_name([7; 16])));
    for name in ["tmp.agg_out.mine", "tmp.agg_out.", "tmp.agg_out", "07070707-0707-0707-0707-070707070707"] {
        assert!(!of(name), "{name}");
    }
    assert!(!of(&format!("{}.more", super::output_name([7; 16]))));
}

#[tokio::test]
async fn what_a_search_by_distance_writes_to_files_is_counted() {
    let node = node();
    let place = |i: i32| doc! { "_id": i, "at": [f64::from(i % 100), f64::from(i / 100)] };
    insert(&node, "c", &(0..1000).map(place).collect::<Vec<_>>()).await;
    run(&node, doc! { "createIndexes": "c", "indexes": [{ "key": { "at": "2d" }, "name": "at_2d" }] })
        .await
        .expect("indexed");
    node.limits.write().sort = 2000;
    let spilled = || node.spills.of(query::pipeline::account::Kind::Sort).spilled_bytes;
    assert_eq!(spilled(), 0);
    let near = doc! { "find": "c", "filter": { "at": { "$near": [5, 5] } } };
    assert_eq!(rows(&node, near, 500).await.expect("found").len(), 1000);
    assert!(spilled() > 0);
}

/// A collection with indexes on `a` and on `b`, and a filter that either helps.
async fn with_two_plans(node: &Arc<Node>) -> Document {
    insert(node, "c", &(0..600).map(|i| doc! { "_id": i, "a": i % 7, "b": i % 11 }).collect::<Vec<_>>())
        .await;
    let indexes =
        array![doc! { "key": { "a": 1 }, "name": "a_1" }, doc! { "key": { "b": 1 }, "name": "b_1" }];
    run(node, doc! { "createIndexes": "c", "indexes": indexes }).await.expect("indexed");
    doc! { "a": 3, "b": 4 }
}

fn uuid_of(node: &Node, ns: &str) -> [u8; 16] {
    node.namespaces.slot(ns).read_unchecked().collection.as_ref().expect("a collection").uuid()
}

#[tokio::test]
async fn explaining_a_pipeline_runs_it_once_and_remembers_no_plan() {
    let node = node();
    let filter = with_two_plans(&node).await;
    let pipeline = array![doc! { "$match": filter }, doc! { "$group": { "_id": "$a", "n": { "$sum": 1 } } }];
    let read = || (node.index_use.totals.keys.get(), node.index_use.totals.docs.get());
    let before = read();
    let command =
        doc! { "explain": { "aggregate": "c", "pipeline": pipeline }, "verbosity": "executionStats" };
    let plan = run(&node, command).await.expect("explained");
    let stages = plan.get_array("stages").expect("stages");
    let cursor = stages[0].as_document().and_then(|d| d.get_document("$cursor")).expect("a cursor");
    let stats = cursor.get_document("executionStats").expect("statistics");
    let shown = |name: &str| stats.get_i64(name).unwrap();
    let after = read();
    assert_eq!(
        (after.0 - before.0, after.1 - before.1),
        (shown("totalKeysExamined"), shown("totalDocsExamined"))
    );
    assert_eq!((shown("nReturned"), shown("totalKeysExamined") > 0), (8, true), "{plan:?}");
    assert_eq!(stages[1].as_document().and_then(|d| d.get_i64("nReturned")), Some(1), "{plan:?}");
    let used = |index: &str| node.index_use.of("d.c", index, 0).0;
    assert_eq!(used("a_1") + used("b_1"), 1);
    assert!(node.plan_caches.of(uuid_of(&node, "d.c")).is_none_or(|cache| cache.is_empty()));
}

#[tokio::test]
async fn a_count_and_a_distinct_on_a_view_are_explained_as_pipelines() {
    let node = node();
    let filter = with_two_plans(&node).await;
    run(&node, doc! { "create": "v", "viewOn": "c", "pipeline": [{ "$match": { "a": 3 } }] })
        .await
        .expect("a view");
    let explained = async |command: Document| {
        run(&node, doc! { "explain": command, "verbosity": "executionStats" }).await.expect("explained")
    };
    let count = explained(doc! { "count": "v", "query": { "b": 4 }, "skip": 1, "limit": 5 }).await;
    let last = count.get_array("stages").and_then(|s| s.last()).and_then(Value::as_document).cloned();
    assert_eq!(last.expect("stages").get_i64("nReturned"), Some(1), "{count:?}");
    let distinct = explained(doc! { "distinct": "v", "key": "b", "query": filter }).await;
    assert_eq!(
        distinct.get_path("executionStats.nReturned").and_then(Value::as_i64),
        Some(8),
        "{distinct:?}"
    );
    let delete = doc! { "delete": "v", "deletes": [{ "q": {}, "limit": 0 }] };
    assert_eq!(code(run(&node, doc! { "explain": delete }).await), codes::COMMAND_NOT_SUPPORTED_ON_VIEW);
}

#[tokio::test]
async fn explain_shows_the_limits_that_are_set() {
    let node = node();
    *node.limits.write() =
        query::pipeline::Limits { sort: 12_345, set_window_fields: 678, ..Default::default() };
    let reply = run(&node, doc! { "explain": { "find": "c" } }).await.expect("explained");
    let shown = reply.get_document("serverParameters").expect("parameters");
    let of = |name: &str| shown.get_i64(name);
    assert_eq!(of("internalQueryMaxBlockingSortMemoryUsageBytes"), Some(12_345));
    assert_eq!(of("internalDocumentSourceSetWindowFieldsMaxMemoryBytes"), Some(678));
    assert_eq!(of("internalDocumentSourceGroupMaxMemoryBytes"), Some(104_857_600));
}

#[tokio::test]
async fn explain_heeds_the_options_of_a_find_that_change_what_it_does() {
    let node = node();
    with_two_plans(&node).await;
    let explained = async |more: Document| {
        let mut command = doc! { "find": "c", "filter": { "a": 3 }, "projection": { "a": 1, "_id": 0 } };
        command.0.extend(more.0);
        run(&node, doc! { "explain": command, "verbosity": "executionStats" }).await
    };
    let stages = |plan: &Document| {
        let mut at = plan.get_path("queryPlanner.winningPlan").and_then(Value::as_document);
        let mut names = Vec::new();
        while let Some(stage) = at {
            names.push(stage.get_str("stage").unwrap_or_default().to_string());
            at = stage.get_document("inputStage");
        }
        names
    };
    let plain = explained(doc! {}).await.expect("explained");
    assert_eq!(stages(&plain), ["PROJECTION_COVERED", "IXSCAN"]);
    let keys = explained(doc! { "returnKey": true }).await.expect("explained");
    assert_eq!(stages(&keys), ["RETURN_KEY", "FETCH", "IXSCAN"]);
    let records = explained(doc! { "showRecordId": true }).await.expect("explained");
    assert_eq!(stages(&records), ["PROJECTION_SIMPLE", "FETCH", "IXSCAN"]);
    node.limits.write().sort = 100;
    let sorted = explained(doc! { "sort": { "b": 1, "_id": 1 }, "allowDiskUse": false }).await;
    assert_eq!(code(sorted), codes::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED);
}

/// The latch is asked for by a thread of its own: it is never given where the plan caches are trimmed under it.
#[tokio::test]
async fn plan_caches_are_trimmed_under_no_latch() {
    let node = node();
    let filter = with_two_plans(&node).await;
    let uuid = uuid_of(&node, "d.c");
    node.plan_caches.set_bound(0);
    let other = node.plan_caches.make([9; 16]);
    // Trimming looks at every cache, and waits at this one.
    let held = other.hold();
    let searching = node.clone();
    let found = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(&searching, doc! { "find": "c", "filter": filter }))
    });
    while node.plan_caches.of(uuid).is_none_or(|cache| cache.is_empty()) {
        std::thread::yield_now();
    }
    let (latched, is_latched) = std::sync::mpsc::channel();
    let writing = node.clone();
    std::thread::spawn(move || {
        drop(writing.namespaces.slot("d.c").write_unchecked());
        latched.send(()).unwrap();
    });
    is_latched.recv_timeout(Duration::from_secs(60)).expect("the latch is free");
    drop(held);
    found.join().unwrap().expect("found");
    assert!(node.plan_caches.of(uuid).unwrap().is_empty(), "nothing was trimmed");
}

/// A batch of a cursor is read in the history in which it began.
#[tokio::test]
async fn a_later_batch_that_a_rollback_overtook_is_not_answered() {
    let node = node();
    let documents: Vec<Value> = (0..3).map(|i| Value::from(doc! { "_id": i })).collect();
    run_as(&node, &op(), doc! { "insert": "c", "documents": documents }).await.unwrap();
    let first = run_as(&node, &op(), doc! { "find": "c", "batchSize": 1 }).await.unwrap();
    let id = first.get_document("cursor").and_then(|c| c.get_i64("id")).unwrap();
    let more = op();
    run_as(&node, &more, doc! { "getMore": Value::Int64(id), "collection": "c" }).await.unwrap();
    node.past.replace();
    let answered = node.await_level_committed(&more, crate::operation::ReadLevel::Majority).await;
    assert_eq!(answered.err().map(|e| e.code), Some(codes::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE));
}
