//! A cluster in memory: shards that hold lists of documents, check the version of every statement, and give chunks away
//! when a test says so.

use crate::chunk::{Chunk, ShardId};
use crate::key_pattern::ShardKeyPattern;
use crate::router::body::Placement;
use crate::router::cluster::{Call, Cluster};
use crate::router::{Router, Task};
use crate::router::{aggregate, count, cursor, ddl, find, find_and_modify, write};
use crate::routing::RoutingTable;
use crate::routing::table::CollectionInfo;
use document::{Doc, DocBuf, Document, Error, ObjectId, Result, Timestamp, Value, codes, doc, err};
use futures::future::BoxFuture;
use node::{Operation, Request};
use parking_lot::Mutex;
use protocol::version::{DatabaseVersion, ShardVersion};
use query::QueryContext;
use query::matcher::Matcher;
use query::pipeline::{Context, Namespace, Run, parse};
use query::projection::Projection;
use query::sort::SortSpec;
use query::update::{Outcome, Update};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wire::client::{CallResult, RemoteError};

pub(super) const NS: &str = "d.c";

/// What the shards hold and the config server knows.
pub(super) struct State {
    pub table: Arc<RoutingTable>,
    pub shards: BTreeMap<String, Vec<DocBuf>>,
    /// Statements executed, by `(session, statement id)`, on each shard.
    executed: BTreeMap<String, BTreeSet<i64>>,
    cursors: BTreeMap<i64, (String, Vec<DocBuf>)>,
    next_cursor: i64,
    /// Before each statement this is asked which chunk moves now (a key in it) and where to.
    pub moves: Vec<Option<(i32, &'static str)>>,
    pub log: Vec<String>,
    /// How each aggregation reads: the level of its read concern and its comment, empty where it has none, and the mode of its preference.
    pub readings: Vec<[String; 3]>,
    /// The next replies that get lost after their command was executed.
    pub lost_replies: usize,
    /// Leases of ranges by shard, and the shard that grants none.
    pub leases: BTreeSet<String>,
    released: BTreeSet<String>,
    pub grants_none: Option<&'static str>,
    /// The shard whose lease is lost when it executes a statement.
    pub loses_lease: Option<&'static str>,
    /// The times that every reply carries.
    pub time: Option<Timestamp>,
    /// What this shard says to every request, instead of executing it.
    pub refuses: Option<(&'static str, Error)>,
}

/// The fake cluster; `known` is what the router remembers.
pub(super) struct Fake {
    pub state: Mutex<State>,
    known: Mutex<Option<Arc<RoutingTable>>>,
}

fn info(key: Document) -> CollectionInfo {
    CollectionInfo {
        ns: NS.into(),
        uuid: [1; 16],
        epoch: ObjectId([2; 12]),
        timestamp: Timestamp::new(5, 0),
        key,
        unique: false,
        default_collation: document::Collation::SIMPLE,
        allow_migrations: true,
        unsplittable: false,
        restored: Default::default(),
        series: None,
    }
}

/// A table over `x` cut at these points, the pieces given to the shards in turn.
pub(super) fn table(key: Document, cuts: &[i32], shards: &[&str]) -> RoutingTable {
    let pattern = ShardKeyPattern::parse(&key).unwrap();
    let bound = |at: Option<i32>, end: Value| -> Document {
        let first = at.map_or(end.clone(), Value::Int32);
        let mut values = vec![first];
        let fill = if at.is_some() { Value::MinKey } else { end };
        values.resize(pattern.fields().len(), fill);
        pattern.fields().iter().map(|f| f.path.clone()).zip(values).collect()
    };
    let mut chunks = Vec::new();
    for i in 0..=cuts.len() {
        let lo = i.checked_sub(1).map(|i| cuts[i]);
        let d = doc! {
            "min": (bound(lo, Value::MinKey)), "max": (bound(cuts.get(i).copied(), Value::MaxKey)),
            "shard": (shards[i % shards.len()]), "lastmod": (Timestamp::new(1, i as u32)),
        };
        chunks.push(Chunk::from_document(&d, &pattern).unwrap());
    }
    RoutingTable::build(&info(key), chunks).unwrap()
}

impl Fake {
    pub(super) fn new(table: RoutingTable, shards: &[&str]) -> Arc<Fake> {
        let state = State {
            table: Arc::new(table),
            shards: shards.iter().map(|s| (s.to_string(), Vec::new())).collect(),
            executed: BTreeMap::new(),
            cursors: BTreeMap::new(),
            next_cursor: 1,
            moves: Vec::new(),
            log: Vec::new(),
            readings: Vec::new(),
            lost_replies: 0,
            leases: BTreeSet::new(),
            released: BTreeSet::new(),
            grants_none: None,
            loses_lease: None,
            refuses: None,
            time: None,
        };
        Arc::new(Fake { state: Mutex::new(state), known: Mutex::default() })
    }
    pub(super) fn router(self: &Arc<Fake>) -> Arc<Router> {
        Router::over(self.clone(), "h:1")
    }
    /// Every document of the cluster, in order of `_id`.
    pub(super) fn all(&self) -> Vec<Document> {
        let state = self.state.lock();
        let mut all: Vec<Document> = state.shards.values().flatten().map(|d| d.to_document()).collect();
        all.sort_by(document::compare::compare_documents);
        all
    }
    /// Puts a document where it belongs.
    pub(super) fn put(&self, d: Document) {
        let mut state = self.state.lock();
        let d = d.to_doc_buf();
        let key = state.table.key.key_of(d.doc()).unwrap();
        let shard = state.table.find(&key).shard.to_string();
        state.shards.get_mut(&shard).unwrap().push(d);
    }
}

impl State {
    fn note_reading(&mut self, call: &Call<'_>) {
        if call.body.get("aggregate").is_some() {
            let level = call.body.get_document("readConcern").and_then(|concern| concern.get_str("level"));
            let comment = call.body.get_str("comment");
            let read = [level.unwrap_or(""), comment.unwrap_or(""), call.preference.mode.name()];
            self.readings.push(read.map(str::to_string));
        }
    }
    /// The chunk that holds `x` moves to another shard, with its documents.
    pub(super) fn move_chunk(&mut self, x: i32, to: &str) {
        let key = self.table.key.clone();
        let found = doc! { "x": x }.to_doc_buf();
        let chunk = self.table.find(&key.key_of(found.doc()).unwrap()).clone();
        if &*chunk.shard == to {
            return;
        }
        let from = chunk.shard.to_string();
        let major = self.table.collection_version().major() + 1;
        let mut moved = (*chunk).clone();
        moved.shard = to.into();
        moved.version = Timestamp::new(major, 0);
        let control = self.table.chunks().find(|c| *c.shard == *from && c.min_key != chunk.min_key).cloned();
        let mut changed = vec![moved];
        if let Some(control) = control {
            let mut control = (*control).clone();
            control.version = Timestamp::new(major, 1);
            changed.push(control);
        }
        let info = info(self.table.key.document().clone());
        self.table = Arc::new(self.table.update(&info, changed).unwrap());
        let documents = std::mem::take(self.shards.get_mut(&from).unwrap());
        let (going, staying) =
            documents.into_iter().partition(|d| chunk.contains(&key.key_of(d.doc()).unwrap()));
        self.shards.insert(from, staying);
        self.shards.get_mut(to).unwrap().extend::<Vec<DocBuf>>(going);
    }

    fn check(&mut self, shard: &str, body: Doc<'_>) -> Result<()> {
        if let Some(Some((x, to))) = self.moves.pop() {
            self.move_chunk(x, to);
        }
        let received = body.get_document("shardVersion").and_then(ShardVersion::parse);
        let received = received.expect("every request carries a version");
        let wanted = self.table.shard_version(shard);
        if received.compatible_with(&wanted) {
            return Ok(());
        }
        Err(err!(STALE_CONFIG, "stale").with_info(doc! {
            "ns": NS, "vReceived": (received.to_document()), "vWanted": (wanted.to_document()), "shardId": shard,
        }))
    }

    fn run(&mut self, shard: &str, body: Doc<'_>, sequence: &[Doc<'_>]) -> Result<Document> {
        let name = body.iter().next().unwrap().name().to_string();
        self.log.push(format!("{name} {shard}"));
        if let Some((_, error)) = self.refuses.as_ref().filter(|(refusing, _)| *refusing == shard) {
            return Err(error.clone());
        }
        match name.as_str() {
            "insert" | "update" | "delete" => self.write(&name, shard, body, sequence),
            "find" => self.find(shard, body),
            "aggregate" => self.aggregate(shard, body),
            "getMore" => self.get_more(body),
            "count" => {
                self.check(shard, body)?;
                let n = self.matching(shard, body.get_document("query").unwrap_or(Doc::empty())).len();
                Ok(doc! { "n": n as i32 })
            }
            "findAndModify" => self.find_and_modify(shard, body),
            "createIndexes" | "getDefaultRWConcern" => Ok(doc! {}),
            "_shardsvrKeepRanges" => self.keep_ranges(shard, body.get_str("action").unwrap()),
            "killCursors" | "commitTransaction" | "abortTransaction" | "coordinateCommitTransaction" => {
                Ok(doc! {})
            }
            other => panic!("unexpected command {other}"),
        }
    }

    fn keep_ranges(&mut self, shard: &str, action: &str) -> Result<Document> {
        let kept = match action {
            "begin" if self.grants_none == Some(shard) => {
                return Err(err!(LOCK_TIMEOUT, "a range is leaving"));
            }
            "begin" => self.leases.insert(shard.to_string()) || self.leases.contains(shard),
            "renew" => self.leases.contains(shard),
            _ if self.leases.remove(shard) => self.released.insert(shard.to_string()),
            _ => self.released.contains(shard),
        };
        match kept {
            true => Ok(doc! {}),
            false => Err(err!(QUERY_PLAN_KILLED, "no lease")),
        }
    }

    fn matching(&self, shard: &str, filter: Doc<'_>) -> Vec<DocBuf> {
        let matcher = Matcher::parse(filter, &QueryContext::default()).unwrap();
        let documents = self.shards[shard].iter();
        documents.filter(|d| matcher.matches(d.doc()).unwrap()).cloned().collect()
    }

    fn write(&mut self, name: &str, shard: &str, body: Doc<'_>, sequence: &[Doc<'_>]) -> Result<Document> {
        if self.loses_lease == Some(shard) {
            self.leases.remove(shard);
        }
        let ordered = body.get_bool("ordered").unwrap_or(true);
        let mut inline = Vec::new();
        if sequence.is_empty() {
            let list = body.get("documents").and_then(|v| v.as_array()).unwrap();
            inline.extend(list.iter().filter_map(|e| e.value().as_document()));
        }
        let statements: &[Doc<'_>] = if sequence.is_empty() { &inline } else { sequence };
        let ids: Option<Vec<i64>> = body
            .get("stmtIds")
            .and_then(|v| v.as_array())
            .map(|a| a.iter().filter_map(|e| e.value().as_i64()).collect());
        let (mut n, mut modified, mut errors, mut retried) = (0, 0, Vec::new(), Vec::new());
        let mut stale = None;
        for (i, statement) in statements.iter().enumerate() {
            let stmt = ids.as_ref().map(|ids| ids[i]);
            if stmt.is_some_and(|s| self.executed.get(shard).is_some_and(|e| e.contains(&s))) {
                n += 1;
                retried.push(Value::Int32(stmt.unwrap() as i32));
                continue;
            }
            if stale.is_none() {
                stale = self.check(shard, body).err();
            }
            let done = match &stale {
                Some(e) => Err(e.clone()),
                None => self.statement(name, shard, *statement),
            };
            match done {
                Ok(changed) => {
                    n += changed;
                    modified += changed;
                    if changed > 0
                        && let Some(s) = stmt
                    {
                        self.executed.entry(shard.to_string()).or_default().insert(s);
                    }
                }
                Err(e) => {
                    let info = e.info.clone().map(|i| *i);
                    let mut error = doc! { "index": i as i32, "code": e.code, "errmsg": e.message };
                    if let Some(info) = info {
                        error.push("errInfo", info);
                    }
                    errors.push(error);
                    if ordered {
                        break;
                    }
                }
            }
        }
        let mut reply = doc! { "n": n };
        if name == "update" {
            reply.push("nModified", modified);
        }
        if !errors.is_empty() {
            reply.push("writeErrors", errors);
        }
        if !retried.is_empty() {
            reply.push("retriedStmtIds", Value::Array(retried));
        }
        Ok(reply)
    }

    fn statement(&mut self, name: &str, shard: &str, statement: Doc<'_>) -> Result<i32> {
        if name == "insert" {
            let key = self.table.key.key_of(statement).unwrap();
            assert!(self.table.owns(shard, &key), "a document was sent to a shard that does not own it");
            let id = statement.get("_id").unwrap();
            let list = self.shards.get_mut(shard).unwrap();
            if list.iter().any(|d| document::compare::equal(d.get("_id").unwrap(), id)) {
                return Err(err!(
                    DUPLICATE_KEY,
                    "E11000 duplicate key error collection: d.c index: _id_ dup key"
                ));
            }
            list.push(statement.to_owned());
            return Ok(1);
        }
        let matcher = Matcher::parse(statement.get_document("q").unwrap(), &QueryContext::default()).unwrap();
        let all = match name {
            "update" => statement.get("multi").is_some_and(|v| v.truthy()),
            _ => statement.get_i64("limit") == Some(0),
        };
        let mut changed = 0;
        let documents = std::mem::take(self.shards.get_mut(shard).unwrap());
        let mut kept = Vec::new();
        for d in documents {
            if (changed > 0 && !all) || !matcher.matches(d.doc()).unwrap() {
                kept.push(d);
                continue;
            }
            changed += 1;
            if name == "update" {
                kept.push(updated(&d, statement.get("u").unwrap().to_value()));
            }
        }
        self.shards.insert(shard.to_string(), kept);
        Ok(changed)
    }

    fn find_and_modify(&mut self, shard: &str, body: Doc<'_>) -> Result<Document> {
        self.check(shard, body)?;
        let found = self.matching(shard, body.get_document("query").unwrap()).into_iter().next();
        let Some(found) = found else {
            return Ok(
                doc! { "lastErrorObject": { "n": 0, "updatedExisting": false }, "value": Value::Null },
            );
        };
        let new = updated(&found, body.get("update").unwrap().to_value());
        for d in self.shards.get_mut(shard).unwrap() {
            if *d == found {
                *d = new.clone();
            }
        }
        Ok(doc! { "lastErrorObject": { "n": 1, "updatedExisting": true }, "value": (found.doc()), "n": 1 })
    }

    fn find(&mut self, shard: &str, body: Doc<'_>) -> Result<Document> {
        let ids = body.get("stmtIds").and_then(|v| v.as_array());
        let mut ids = ids.into_iter().flat_map(|a| a.iter()).filter_map(|e| e.value().as_i64());
        if ids.any(|id| self.executed.get(shard).is_some_and(|e| e.contains(&id))) {
            return Err(err!(TRANSACTION_COMMITTED, "executed before"));
        }
        self.check(shard, body)?;
        let mut found = self.matching(shard, body.get_document("filter").unwrap_or(Doc::empty()));
        let sort = SortSpec::parse(body.get_document("sort").unwrap_or(Doc::empty())).unwrap();
        if !sort.is_empty() {
            found.sort_by_key(|d| sort.key(d.doc()).unwrap());
        }
        if let Some(limit) = body.get_i64("limit").filter(|n| *n > 0) {
            found.truncate(limit as usize);
        }
        if let Some(spec) = body.get_document("projection") {
            let p = Projection::parse(spec, &Matcher::always(), &QueryContext::default()).unwrap();
            for d in &mut found {
                let mut out = Vec::new();
                p.apply(d.doc(), &mut out).unwrap();
                *d = DocBuf::from_validated(out);
            }
        }
        let size = body.get_i64("batchSize").unwrap_or(101) as usize;
        Ok(self.batch("firstBatch", shard, found, size))
    }
    fn aggregate(&mut self, shard: &str, body: Doc<'_>) -> Result<Document> {
        self.check(shard, body)?;
        let stages = body.get("pipeline").and_then(|v| v.as_array()).unwrap().to_array();
        let found = run_pipeline(&stages, self.shards[shard].clone(), true)?;
        let size = body.get_document("cursor").and_then(|c| c.get_i64("batchSize")).unwrap_or(3) as usize;
        Ok(self.batch("firstBatch", shard, found, size))
    }
    fn batch(&mut self, name: &str, shard: &str, mut documents: Vec<DocBuf>, size: usize) -> Document {
        let rest = documents.split_off(size.min(documents.len()));
        let mut id = 0;
        if !rest.is_empty() {
            id = self.next_cursor;
            self.next_cursor += 1;
            self.cursors.insert(id, (shard.to_string(), rest));
        }
        let items: Vec<Document> = documents.iter().map(|d| d.to_document()).collect();
        let mut cursor = Document::new();
        cursor.push(name, items);
        cursor.push("id", Value::Int64(id));
        cursor.push("ns", NS);
        doc! { "cursor": cursor }
    }
    fn get_more(&mut self, body: Doc<'_>) -> Result<Document> {
        let id = body.get_i64("getMore").unwrap();
        let Some((shard, rest)) = self.cursors.remove(&id) else {
            return Err(err!(CURSOR_NOT_FOUND, "no cursor"));
        };
        let size = body.get_i64("batchSize").map_or(usize::MAX, |n| n as usize);
        let mut reply = self.batch("nextBatch", &shard, rest, size);
        // A cursor keeps its id.
        if let Some(Value::Document(c)) = reply.get_mut("cursor")
            && let Some(new) = c.get_i64("id").filter(|n| *n != 0)
        {
            let moved = self.cursors.remove(&new).unwrap();
            self.cursors.insert(id, moved);
            c.insert("id", Value::Int64(id));
        }
        Ok(reply)
    }
}

/// What a node without shards gives.
pub(super) fn run_pipeline(
    stages: &[Value],
    documents: Vec<DocBuf>,
    from_router: bool,
) -> Result<Vec<DocBuf>> {
    let mut context = Context::new(Namespace::parse(NS), QueryContext::default());
    context.from_router = from_router;
    parse(stages, &context)?.run_local(documents, &Run::new(&context))
}

fn updated(d: &DocBuf, u: Value) -> DocBuf {
    let update = Update::parse(&u, &[], &QueryContext::default()).unwrap();
    match update.apply(d.doc(), None, false).unwrap() {
        Outcome::NoOp => d.clone(),
        Outcome::Changed(new) => new,
    }
}

impl Cluster for Fake {
    fn cached(&self, _: &str) -> Option<Placement> {
        self.known.lock().clone().map(placement)
    }
    fn placement<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<Placement>>> {
        let table = self.state.lock().table.clone();
        *self.known.lock() = Some(table.clone());
        Box::pin(async move { Ok(Some(placement(table))) })
    }
    fn note_stale(&self, _: &str, _: &Error) {
        *self.known.lock() = None;
    }
    fn invalidate(&self, _: &str) {
        *self.known.lock() = None;
    }
    fn forget(&self, _: Option<&str>) {
        *self.known.lock() = None;
    }
    fn reload_shards<'a>(&'a self) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }
    fn shards<'a>(&'a self) -> BoxFuture<'a, Result<Vec<(ShardId, String)>>> {
        let names = self.state.lock().shards.keys().map(|s| (s.as_str().into(), s.clone())).collect();
        Box::pin(async { Ok(names) })
    }
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, CallResult<DocBuf>> {
        let mut state = self.state.lock();
        state.note_reading(&call);
        let reply = state.run(call.shard, call.body, call.sequence.map_or(&[], |(_, docs)| docs));
        let lost = state.lost_replies > 0;
        state.lost_replies = state.lost_replies.saturating_sub(1);
        let answer = match reply {
            _ if lost => {
                let error = Error::new(codes::HOST_UNREACHABLE, "the reply was lost");
                Err(Box::new(RemoteError { error, reply: None, not_sent: false }))
            }
            Ok(mut d) => {
                if call.body.get("autocommit").is_some() {
                    d.push("readOnly", d.get_i64("n").unwrap_or(0) == 0);
                }
                d.push("ok", 1.0);
                if let Some(time) = state.time {
                    d.push("operationTime", time);
                    d.push("$clusterTime", doc! { "clusterTime": time });
                    d.push("$topologyTime", time);
                }
                Ok(d.to_doc_buf())
            }
            Err(error) => Err(Box::new(RemoteError {
                reply: Some(error.to_reply().to_doc_buf()),
                error,
                not_sent: false,
            })),
        };
        Box::pin(async move { answer })
    }
    fn config_string(&self) -> String {
        String::new()
    }
    fn statistics(&self) -> Document {
        Document::new()
    }
}

fn placement(table: Arc<RoutingTable>) -> Placement {
    let database = DatabaseVersion { uuid: [1; 16], timestamp: Timestamp::new(1, 0), last_mod: 1 };
    let primary = table.shards().next().unwrap().clone();
    Placement { primary, database: Some(database), table: Some(table), alone: None, now: None }
}

/// Runs a command on the router.
pub(super) async fn run(router: &Router, command: Document) -> Result<Document> {
    let mut command = command;
    command.push("$db", "d");
    let body = command.to_doc_buf();
    let op = Operation::parse(1, Arc::default(), body.doc())?;
    let request = Request { db: "d", body: body.doc(), sequences: &[] };
    let task: Task<'_> = router.task(&op, request);
    let reply = match task.request.name() {
        "createIndexes" => ddl::create_indexes(&task).await,
        "insert" => write::insert(&task).await,
        "update" => write::update(&task).await,
        "delete" => write::delete(&task).await,
        "find" => find::find(&task).await,
        "aggregate" => aggregate::aggregate(&task).await,
        "getMore" => cursor::get_more(&task).await,
        "killCursors" => cursor::kill_cursors(&task).await,
        "count" => count::count(&task).await,
        "findAndModify" => find_and_modify::find_and_modify(&task).await,
        other => panic!("unexpected command {other}"),
    };
    reply.map(|r| r.to_document())
}

/// Every document of a find, over all its batches, and how many batches there were.
pub(super) async fn find_all(router: &Router, command: Document, batch: i32) -> (Vec<Document>, usize) {
    let mut command = command;
    match command.get("cursor") {
        Some(_) => command.insert("cursor", doc! { "batchSize": batch }),
        None => command.push("batchSize", batch),
    }
    let mut reply = run(router, command).await.unwrap();
    let (mut out, mut batches) = (Vec::new(), 1);
    loop {
        let c = reply.get_document("cursor").unwrap().clone();
        let items = c.get_array("firstBatch").or_else(|| c.get_array("nextBatch")).unwrap();
        assert!(items.len() <= batch as usize);
        out.extend(items.iter().map(|v| v.as_document().unwrap().clone()));
        let id = c.get_i64("id").unwrap();
        if id == 0 {
            return (out, batches);
        }
        let more = doc! { "getMore": Value::Int64(id), "collection": "c", "batchSize": batch };
        reply = run(router, more).await.unwrap();
        batches += 1;
    }
}
