//! A change stream over a cluster: the streams of all shards, merged in the order of their tokens.
//!
//! ```text
//! shard 0 ──events, promise──┐
//! shard 1 ──events, promise──┼─ the least token first ─> (look up) ─> resume, user's stages, checks ─> batch
//! config  ──new shards───────┘
//! ```
//! Every shard is read, also those without the collection: it may come there. A *promise* is the token of a shard's
//! newest batch: nothing at or before it will come any more. An event is handed out only when no other shard can have
//! one before it, that is when each has a later event at hand or has promised a later token.
//!
//! A shard without events promises nothing new by itself. When an event waits for such a shard, the router makes it
//! write a note into its oplog, at a time after the event's; the shard's waiting getMore returns with it.
//!
//! The insertion of a shard is an event of `config.shards`, which takes part in the merge: before any later event is
//! handed out, the new shard is read from that time on. So nothing written there is missed.
//!
//! Shards only read their log and serve images from it. Where to resume, the user's stages, the lookup of current
//! documents (which may have moved) and invalidation are the router's, by the code that a node uses for its own streams.
//!
//! Requests to shards outlive the getMore that sent them: what they bring is kept for the next.

use super::aggregate::pipeline_context;
use super::body::{ArrayBuilder, Versions, batch, cursor_id, take};
use super::cluster::{CONFIG, Call, Cluster};
use super::cursor::{BATCH_BYTES_MAX, Cursor, FIRST_BATCH, Kind, kill_on_shards};
use super::sub_pipelines::{RouterHost, SubCursors};
use super::task::Task;
use crate::chunk::ShardId;
use document::{Doc, DocBuf, Document, Error, Result, Timestamp, Value, bail, doc};
use futures::future::join_all;
use node::change_stream::event::Event;
use node::change_stream::{Delivery, Scope, Watch, labelled, refuse_uuid};
use node::operation::ReadLevel;
use query::change_stream::{Spec, Start, Token, split};
use query::pipeline::{Pipeline, Run, optimize, parse};
use runtime::Instant;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use wire::client::CallResult;

/// The longest that a shard is asked to wait at a time.
const SHARD_WAIT_MAX: Duration = Duration::from_secs(1);

/// The stream of one shard.
struct Source {
    shard: ShardId,
    /// The config server's stream of `config.shards`.
    tells_of_shards: bool,
    id: i64,
    events: VecDeque<(String, DocBuf)>,
    /// Fragments of an event that is not whole yet.
    fragments: Vec<DocBuf>,
    promise: String,
    /// A getMore is under way.
    asked: bool,
    /// The event for which the shard was made to write a note.
    noted: String,
}

pub struct StreamCursor {
    ns: String,
    /// What shards run.
    spec: Document,
    lsid: Document,
    looks_up: bool,
    sources: Vec<Source>,
    delivery: Delivery,
    replies: mpsc::UnboundedReceiver<(usize, CallResult<DocBuf>)>,
    sender: mpsc::UnboundedSender<(usize, CallResult<DocBuf>)>,
}

/// Whether the pipeline begins with `$changeStream`.
pub fn is_stream(pipeline: Doc<'_>) -> bool {
    let first = pipeline.iter().next().and_then(|e| e.value().as_document());
    first.and_then(|d| d.iter().next()).is_some_and(|e| e.name() == "$changeStream")
}

/// Runs an `aggregate` that begins with `$changeStream`.
pub async fn open(task: &Task<'_>, ns: &str, stages: &[Value], size: Option<usize>) -> Result<DocBuf> {
    open_stream(task, ns, stages, size).await.map_err(labelled)
}

async fn open_stream(task: &Task<'_>, ns: &str, stages: &[Value], size: Option<usize>) -> Result<DocBuf> {
    let mut context = pipeline_context(task, ns)?;
    if context.namespace.collection.starts_with("$cmd") {
        context.namespace.collection.clear();
    }
    let pipeline = optimize(parse(stages, &context)?, &context)?;
    let stage = pipeline.source_stage().and_then(|s| s.spec.as_document().cloned()).unwrap_or_default();
    let spec = Spec::parse(&stage)?;
    check(task, &spec)?;
    let scope = Scope::of(&context.namespace, &spec);
    let (stage, first) = beginning(task, stage, &spec).await?;
    let stream = StreamCursor::new(task, ns, stage, (spec, scope), &pipeline, Run::new(&context), &first)?;
    let mut cursor = Cursor::new(task, ns, Kind::Stream(Box::new(stream)));
    let mut batch = ArrayBuilder::default();
    let Kind::Stream(stream) = &mut cursor.kind else { bail!(INTERNAL_ERROR, "a stream is no stream") };
    let filled = stream.open_and_fill(task, &mut batch, size.unwrap_or(FIRST_BATCH)).await;
    let token = stream.token();
    match filled {
        Err(e) => {
            cursor.close(&task.router.cluster);
            Err(e)
        }
        Ok(more) => {
            let id = if more { cursor.keep(task)? } else { 0 };
            Ok(super::body::stream_reply("firstBatch", &batch, id, ns, Some(&token)))
        }
    }
}

fn check(task: &Task<'_>, spec: &Spec) -> Result<()> {
    refuse_uuid(task.body())?;
    if spec.show_migration_events {
        return Err(Error::new(31123, "Change streams from mongos may not show migration events"));
    }
    if spec.allow_to_run_on_system_ns {
        bail!(INVALID_OPTIONS, "Change streams from mongos may not run on system namespaces");
    }
    let concern = &task.op.read_concern;
    if concern.level_given && concern.level != ReadLevel::Majority {
        bail!(
            INVALID_OPTIONS,
            "$changeStream cannot run with a readConcern other than 'majority', or in a multi-document transaction."
        );
    }
    Ok(())
}

/// The stage as shards get it, which all begin at one place, and the token that stands for that place.
async fn beginning(task: &Task<'_>, mut stage: Document, spec: &Spec) -> Result<(Document, Token)> {
    if spec.looks_up() {
        stage.remove("fullDocument");
    }
    let first = match &spec.start {
        Start::After { token, .. } => {
            // A shard looks at neither name: it passes on what comes after the token.
            let token = token.to_document();
            stage.remove("resumeAfter");
            stage.insert("startAfter", token);
            match &spec.start {
                Start::After { token, .. } => token.clone(),
                _ => Token::high_water_mark(Timestamp::default()),
            }
        }
        Start::At(time) => Token::high_water_mark(*time),
        Start::Now => {
            let now = now(task).await?;
            let next = Timestamp::from_u64(now.as_u64().saturating_add(1));
            stage.remove("startAtOperationTime");
            stage.push("startAtOperationTime", next);
            Token::high_water_mark(next)
        }
    };
    Ok((stage, first))
}

/// A time at or after everything that any shard has acknowledged.
async fn now(task: &Task<'_>) -> Result<Timestamp> {
    let shards = task.all_shards().await?;
    let asked = shards.iter().map(|shard| {
        let body = task.own(&doc! { "ping": 1 }, "admin", &Versions::NONE);
        async move { task.read(shard, &body).await }
    });
    join_all(asked).await.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(task.router.cluster_time())
}

impl StreamCursor {
    /// Events that shards have sent and that wait for those of others.
    pub fn held_bytes(&self) -> usize {
        let of = |s: &Source| {
            let events = s.events.iter().map(|(_, event)| event).chain(&s.fragments);
            events.map(|d| d.bytes().len()).sum::<usize>()
        };
        self.sources.iter().map(of).sum()
    }
    fn new(
        task: &Task<'_>,
        ns: &str,
        stage: Document,
        (spec, scope): (Spec, Scope),
        pipeline: &Pipeline,
        run: Run,
        first: &Token,
    ) -> Result<StreamCursor> {
        let looks_up = spec.looks_up();
        let watch = Watch { scope, spec, images_since: i64::MIN };
        let (sender, replies) = mpsc::unbounded_channel();
        Ok(StreamCursor {
            ns: ns.to_string(),
            spec: stage,
            lsid: take(task.body(), &["lsid"]),
            looks_up,
            sources: Vec::new(),
            delivery: Delivery::new(watch, pipeline, run, first)?,
            replies,
            sender,
        })
    }
    pub fn open_cursors(&self) -> Vec<(ShardId, i64)> {
        self.sources.iter().filter(|s| s.id != 0).map(|s| (s.shard.clone(), s.id)).collect()
    }
    /// `postBatchResumeToken`.
    pub fn token(&self) -> Document {
        self.delivery.token()
    }

    async fn open_and_fill(
        &mut self,
        task: &Task<'_>,
        batch: &mut ArrayBuilder,
        documents_max: usize,
    ) -> Result<bool> {
        task.router.cluster.reload_shards().await?;
        let spec = self.spec.clone();
        self.add_source(task, CONFIG.into(), &config_spec(&spec), true).await?;
        let shards = task.all_shards().await?;
        self.add_sources(task, &shards, &spec).await?;
        self.fill(task, batch, documents_max, Instant::now()).await
    }

    async fn add_sources(&mut self, task: &Task<'_>, shards: &[ShardId], spec: &Document) -> Result<()> {
        let (ns, lsid) = (self.ns.clone(), self.lsid.clone());
        let opened = shards.iter().map(|shard| open_source(task, &ns, &lsid, shard, spec, false));
        let mut failed = None;
        for source in join_all(opened).await {
            match source {
                Ok(source) => self.sources.push(source),
                Err(e) => failed = Some(e),
            }
        }
        failed.map_or(Ok(()), Err)
    }
    async fn add_source(
        &mut self,
        task: &Task<'_>,
        shard: ShardId,
        spec: &Document,
        tells_of_shards: bool,
    ) -> Result<()> {
        let (ns, lsid) = (self.ns.clone(), self.lsid.clone());
        let source = open_source(task, &ns, &lsid, &shard, spec, tells_of_shards).await?;
        self.sources.push(source);
        Ok(())
    }

    /// Adds up to `documents_max` documents to the batch, waiting for the first until the time is up; whether there can be
    /// more.
    pub async fn fill(
        &mut self,
        task: &Task<'_>,
        batch: &mut ArrayBuilder,
        documents_max: usize,
        until: Instant,
    ) -> Result<bool> {
        loop {
            while let Some(front) = self.delivery.front() {
                let fits = batch.is_empty() || batch.byte_len() + front.bytes().len() <= BATCH_BYTES_MAX;
                if batch.len() >= documents_max || !fits {
                    return Ok(true);
                }
                batch.push(front.doc());
                self.delivery.pop();
            }
            if self.delivery.is_closed() {
                kill_on_shards(&task.router.cluster, &self.ns, self.open_cursors());
                return Ok(false);
            }
            if batch.len() >= documents_max {
                return Ok(true);
            }
            task.op.check_interrupt()?;
            while let Ok((i, reply)) = self.replies.try_recv() {
                self.receive(task, i, reply)?;
            }
            match self.first_ready() {
                Some(i) => self.take(task, i).await?,
                None => {
                    self.promise();
                    if !batch.is_empty() || Instant::now() >= until {
                        return Ok(true);
                    }
                    self.ask(task, until);
                    self.note(task);
                    self.wait(task, until).await?;
                }
            }
        }
    }

    /// The source of the least event at hand, if none before it can come.
    fn first_ready(&self) -> Option<usize> {
        let heads = self.sources.iter().enumerate().filter_map(|(i, s)| Some((&s.events.front()?.0, i)));
        let (token, i) = heads.min()?;
        let others = self.sources.iter().filter(|s| s.events.is_empty());
        others.into_iter().all(|s| s.promise > *token).then_some(i)
    }

    /// Hands the event on, or heeds what the config server tells.
    async fn take(&mut self, task: &Task<'_>, i: usize) -> Result<()> {
        let source = &mut self.sources[i];
        let Some((_, event)) = source.events.pop_front() else { return Ok(()) };
        if source.tells_of_shards {
            return self.heed_shards(task, event).await;
        }
        let mut event = Event::read(event)?;
        if self.looks_up && event.operation_type == "update" {
            let found = current(task, &event).await?;
            event.set_full_document(found.as_ref());
        }
        // No stage of a stream reads another collection.
        let others = SubCursors::default();
        self.delivery.take(event, &RouterHost { task, output: None, others: &others }).await
    }

    /// Reads shards that were added, from the time at which they were.
    async fn heed_shards(&mut self, task: &Task<'_>, event: DocBuf) -> Result<()> {
        if event.doc().get_str("operationType") != Some("insert") {
            return Ok(());
        }
        let time = event.get("clusterTime").and_then(|v| v.as_timestamp()).unwrap_or_default();
        task.router.cluster.reload_shards().await?;
        let known = |shard: &ShardId| self.sources.iter().any(|s| !s.tells_of_shards && s.shard == *shard);
        let new: Vec<ShardId> = task.all_shards().await?.into_iter().filter(|s| !known(s)).collect();
        let mut spec = self.spec.clone();
        spec.remove("startAfter");
        spec.insert("startAtOperationTime", Timestamp::from_u64(time.as_u64().saturating_add(1)));
        self.add_sources(task, &new, &spec).await
    }

    /// What every shard promises, where none has an event at hand.
    fn promise(&mut self) {
        if self.sources.iter().any(|s| !s.events.is_empty()) {
            return;
        }
        if let Some(least) = self.sources.iter().map(|s| s.promise.as_str()).min() {
            self.delivery.promise(least);
        }
    }

    /// Sends a getMore to every shard that has no event at hand and none under way.
    fn ask(&mut self, task: &Task<'_>, until: Instant) {
        let wait = until.saturating_duration_since(Instant::now()).min(SHARD_WAIT_MAX);
        let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(1).max(1);
        for i in 0..self.sources.len() {
            let source = &self.sources[i];
            if source.asked || !source.events.is_empty() {
                continue;
            }
            let (db, collection) =
                if source.tells_of_shards { ("config", "shards") } else { target(&self.ns) };
            let mut command = doc! {
                "getMore": Value::Int64(source.id), "collection": collection, "maxTimeMS": wait_ms,
            };
            command.0.extend(self.lsid.clone());
            let body = task.own(&command, db, &Versions::NONE);
            self.sources[i].asked = true;
            let (cluster, shard) = (task.router.cluster.clone(), self.sources[i].shard.clone());
            runtime::spawn(get_more(cluster, shard, body, i, self.sender.clone()));
        }
    }

    /// Makes the shards that an event waits for write a note into their oplog.
    fn note(&mut self, task: &Task<'_>) {
        let Some(least) = self.sources.iter().filter_map(|s| s.events.front()).map(|(t, _)| t.clone()).min()
        else {
            return;
        };
        for source in &mut self.sources {
            if !source.events.is_empty() || source.promise > least || source.noted == least {
                continue;
            }
            source.noted.clone_from(&least);
            let command =
                doc! { "appendOplogNote": 1, "data": { "msg": "a change stream waits for this time" } };
            let body = task.own(&command, "admin", &Versions::NONE);
            let (cluster, shard) = (task.router.cluster.clone(), source.shard.clone());
            runtime::spawn(async move {
                let _ = cluster.call(Call::new(&shard, body.doc())).await;
            });
        }
    }

    /// Waits for a shard's reply, or until the time is up.
    async fn wait(&mut self, task: &Task<'_>, until: Instant) -> Result<()> {
        let next = Box::pin(tokio::time::timeout_at(until, self.replies.recv()));
        match task.op.interruptible(next).await? {
            Ok(Some((i, reply))) => self.receive(task, i, reply),
            _ => Ok(()),
        }
    }

    fn receive(&mut self, task: &Task<'_>, i: usize, reply: CallResult<DocBuf>) -> Result<()> {
        let source = &mut self.sources[i];
        source.asked = false;
        match reply {
            Ok(reply) => {
                task.hear(reply.doc());
                source.receive(reply.doc())
            }
            Err(e) => Err(e.error),
        }
    }
}

/// Opens the stream of one shard.
async fn open_source(
    task: &Task<'_>,
    ns: &str,
    lsid: &Document,
    shard: &ShardId,
    spec: &Document,
    tells_of_shards: bool,
) -> Result<Source> {
    let (db, collection) = if tells_of_shards { ("config", "shards") } else { target(ns) };
    let target: Value = match collection.starts_with("$cmd") {
        true => Value::Int32(1),
        false => collection.into(),
    };
    let pipeline = Value::Array(vec![doc! { "$changeStream": spec.clone() }.into()]);
    let mut command = doc! {
        "aggregate": target, "pipeline": pipeline, "cursor": {}, "fromRouter": true, "needsMerge": true,
    };
    command.0.extend(lsid.clone());
    // The default read concern of the cluster is not a stream's.
    let concern = if task.op.read_concern.given { "readConcern" } else { "" };
    command.0.extend(take(task.body(), &["maxTimeMS", concern, "comment"]));
    let body = task.own(&command, db, &Versions::NONE);
    let reply = task.read(shard, &body).await?;
    let mut source = Source {
        shard: shard.clone(),
        tells_of_shards,
        id: 0,
        events: VecDeque::new(),
        fragments: Vec::new(),
        promise: String::new(),
        asked: false,
        noted: String::new(),
    };
    source.receive(reply.doc())?;
    Ok(source)
}

fn target(ns: &str) -> (&str, &str) {
    ns.split_once('.').unwrap_or((ns, ""))
}

async fn get_more(
    cluster: Arc<dyn Cluster>,
    shard: ShardId,
    body: DocBuf,
    i: usize,
    sender: mpsc::UnboundedSender<(usize, CallResult<DocBuf>)>,
) {
    let reply = cluster.call(Call::new(&shard, body.doc())).await;
    // The stream may have ended meanwhile; then nobody wants it.
    let _ = sender.send((i, reply));
}

impl Source {
    /// Takes a batch in.
    fn receive(&mut self, reply: Doc<'_>) -> Result<()> {
        self.id = cursor_id(reply);
        let Some(cursor) = reply.get_document("cursor") else { return Ok(()) };
        for mut event in batch(reply).map(Doc::to_owned) {
            if let Some(part) = event.doc().get_document("splitEvent").map(Doc::to_document) {
                self.fragments.push(event);
                if part.get_i64("fragment") != part.get_i64("of") {
                    continue;
                }
                event = split::join(&std::mem::take(&mut self.fragments))?;
            }
            let token = event.doc().get_document("_id").and_then(|d| d.get_str("_data")).map(str::to_string);
            self.events.extend(token.map(|token| (token, event)));
        }
        if let Some(token) = cursor.get_document("postBatchResumeToken").and_then(|d| d.get_str("_data"))
            && self.fragments.is_empty()
        {
            self.promise = token.to_string();
        }
        Ok(())
    }
}

/// The stream of `config.shards` that begins where the others do.
fn config_spec(spec: &Document) -> Document {
    let mut out = doc! { "allowToRunOnConfigDB": true };
    let start = spec.get("startAtOperationTime").cloned().or_else(|| {
        let token = Token::parse(spec.get_document("startAfter")?).ok()?;
        Some(Value::Timestamp(token.time))
    });
    if let Some(start) = start {
        out.push("startAtOperationTime", start);
    }
    out
}

/// The document of an update as it is now, wherever it is.
async fn current(task: &Task<'_>, event: &Event) -> Result<Option<DocBuf>> {
    let ns = event.doc.get("ns").and_then(|v| v.as_document());
    let key = event.doc.get("documentKey").and_then(|v| v.as_document());
    let Some(((db, collection), key)) =
        ns.and_then(|d| Some((d.get_str("db")?, d.get_str("coll")?))).zip(key)
    else {
        return Ok(None);
    };
    let mut command = doc! {
        "find": collection, "filter": key.to_document(), "limit": 1, "singleBatch": true,
        "readConcern": { "level": "majority", "afterClusterTime": event.token.time }, "$db": db,
    };
    command.0.extend(take(task.body(), &["lsid"]));
    let found = super::aggregate::all_documents(task, db, command).await?.into_iter().next();
    match (&found, event.token.uuid) {
        // Asked for afterwards: one that is gone does not come back.
        (Some(_), Some(uuid)) if !is_still(task, db, collection, uuid).await? => Ok(None),
        _ => Ok(found),
    }
}

/// Whether the collection of this name is the one with this UUID, and none that has come to have the name.
async fn is_still(task: &Task<'_>, db: &str, collection: &str, uuid: [u8; 16]) -> Result<bool> {
    let Some(placement) = task.placement(&format!("{db}.{collection}")).await? else { return Ok(false) };
    if let Some(table) = placement.table.as_ref().or(placement.alone.as_ref()) {
        return Ok(table.uuid == uuid);
    }
    let list = doc! { "listCollections": 1, "filter": { "name": collection }, "cursor": {} };
    // The primary's, whatever members the client reads from: another may not have heard of it.
    let reply = task.change(&placement.primary, &task.own(&list, db, &placement.database_versions())).await?;
    let found = reply.to_document();
    let first = found.get_path("cursor.firstBatch").and_then(Value::as_array).and_then(|batch| batch.first());
    let now = first.and_then(Value::as_document).and_then(|d| d.get_path("info.uuid")?.as_uuid());
    Ok(now == Some(uuid))
}
