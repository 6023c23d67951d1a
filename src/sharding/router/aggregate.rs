//! `aggregate`: as it is where one shard can answer all of it, else divided between shards and router.
//!
//! ```text
//! unsharded, nothing else named      the primary of the database, as it is
//! one shard by the leading $match    that shard, as it is
//! otherwise                          query::pipeline::split: the front on the shards, the rest here
//! ```
//! `$lookup`, `$graphLookup` and `$unionWith` run here when what they name may be elsewhere; the other collection is read
//! through the router like any client's. `$out` and `$merge` run on a shard where everything named is unsharded with that primary, and
//! else here ([`super::output`]).

use super::body::{self, ArrayBuilder, Placement, cursor_reply, ok_reply, take};
use super::cluster::database_of;
use super::cursor::{BATCH_BYTES_MAX, Kind, OpenOnShards, first_batch, size};
use super::merge::{Merge, Shape};
use super::output::Output;
use super::sub_pipelines::{RouterHost, SubCursors};
use super::task::{Retry, Task};
use super::{change_stream, collation, cursor, scatter, single, text};
use crate::chunk::ShardId;
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Value, ValueRef, bail, doc};
use futures::future::BoxFuture;
use node::read::aggregate::check_level;
use node::read::aggregate_command::{AggregateCommand, names_collection};
use node::read::find::natural_order;
use node::{Request, memory};
use query::pipeline::{
    Context, Execution, MergeKind, Namespace, Pipeline, PipelineHost, Run, Source, fusion, optimize, parse,
    parse_checked, refuse_own, split,
};
use std::collections::VecDeque;

/// `aggregate`, of a client.
pub fn aggregate<'a>(task: &'a Task<'_>) -> BoxFuture<'a, Result<DocBuf>> {
    match refuse_own(raw_stages(task)) {
        Ok(()) => run(task),
        Err(e) => Box::pin(async { Err(e) }),
    }
}

/// `aggregate`, where the router may have written some of the stages. Boxed: a stage may run another.
fn run<'a>(task: &'a Task<'_>) -> BoxFuture<'a, Result<DocBuf>> {
    Box::pin(async move {
        let command = AggregateCommand::parse(task.body())?;
        check_level(task.op, command.pipeline)?;
        if command.explain {
            return super::explain::aggregate(task).await;
        }
        command.check_cursor()?;
        let size = command.batch_size.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        match names_collection(task.request.argument())? {
            true => on_collection(task, size).await,
            false => without_collection(task, size).await,
        }
    })
}

pub(super) fn raw_stages<'a>(task: &Task<'a>) -> Doc<'a> {
    task.get("pipeline").and_then(|v| v.as_array()).unwrap_or(Doc::empty())
}

fn stages(task: &Task<'_>) -> Vec<Value> {
    raw_stages(task).to_array()
}

async fn on_collection(task: &Task<'_>, size: Option<usize>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    if change_stream::is_stream(raw_stages(task)) {
        return change_stream::open(task, &ns, &stages(task), size).await;
    }
    let mut retry = Retry::default();
    loop {
        let Some(placement) = task.placement(&ns).await? else {
            // There is nothing to read, but what was asked for must make sense.
            parse(&stages(task), &pipeline_context(task, &ns)?)?;
            if first_stage(raw_stages(task)) == Some("$collStats") {
                bail!(
                    NAMESPACE_NOT_FOUND,
                    "Unable to retrieve information for $collStats stage :: caused by :: database {} not found",
                    task.db()
                );
            }
            return Ok(cursor_reply("firstBatch", &ArrayBuilder::default(), 0, &ns));
        };
        match aggregate_at(task, &ns, &placement, size).await {
            Ok(reply) => return Ok(reply),
            Err(e) if super::find::is_view_of_sharded(&e) => return on_view(task, &e).await,
            Err(e) => retry.absorb(task, &ns, e).await?,
        }
    }
}

async fn aggregate_at(
    task: &Task<'_>,
    ns: &str,
    placement: &Placement,
    size: Option<usize>,
) -> Result<DocBuf> {
    let raw = raw_stages(task);
    if begins_with_statistics(raw) && !super::cluster::is_config(ns) {
        return statistics(task, ns, placement, size).await;
    }
    let shards = target_shards(task, placement, raw)?;
    let reply = aggregate_on(task, ns, placement, size, &shards).await?;
    task.router.targeted.aggregate.note(placement.table.as_deref(), shards.len());
    Ok(reply)
}

async fn aggregate_on(
    task: &Task<'_>,
    ns: &str,
    placement: &Placement,
    size: Option<usize>,
    shards: &[ShardId],
) -> Result<DocBuf> {
    let others = names_others(raw_stages(task));
    if let [shard] = shards
        && !others
    {
        return single::read(task, ns, placement, shard).await;
    }
    let mut context = context_on(task, ns, placement).await?;
    let stages = text::scored(task, ns, placement, stages(task), &mut context).await?;
    let pipeline = optimized(&stages, &context)?;
    if others && all_on_primary(task, ns, placement, &pipeline).await? {
        match single::read(task, ns, placement, placement.home()).await {
            Err(e) if is_of_unnamed(&e, ns, &pipeline) => {}
            done => return done,
        }
    }
    divided(task, ns, placement, shards, &pipeline, &context, size).await
}

/// The pipeline of a command. An expression that no document has a part in must have a value, here as on a node.
pub(super) fn optimized(stages: &[Value], context: &Context) -> Result<Pipeline> {
    let constant = |e: Error| e.while_running(String::new, Some("Failed to optimize pipeline"));
    optimize(parse_checked(stages, context).map_err(constant)?, context)
}

/// Whether the error says that a collection is not where it was believed which the pipeline does not name itself: it names a view,
/// and what is below that is sharded.
fn is_of_unnamed(error: &Error, ns: &str, pipeline: &Pipeline) -> bool {
    let other = error.info.as_ref().and_then(|i| i.get_str("ns"));
    error.is(document::error::STALE_SHARD_VERSION)
        && other.is_some_and(|other| {
            other != ns && !pipeline.involved_namespaces().iter().any(|(named, _)| named.to_string() == other)
        })
}

fn first_stage(pipeline: Doc<'_>) -> Option<&str> {
    Some(pipeline.iter().next()?.value().as_document()?.iter().next()?.name())
}

/// Whether the pipeline begins by telling of each shard by itself.
fn begins_with_statistics(pipeline: Doc<'_>) -> bool {
    matches!(first_stage(pipeline), Some("$collStats" | "$indexStats"))
}

/// `$collStats` and `$indexStats`: every shard's documents, each with its shard's name; the other stages run here.
async fn statistics(task: &Task<'_>, ns: &str, placement: &Placement, size: Option<usize>) -> Result<DocBuf> {
    let context = context_on(task, ns, placement).await?;
    let all = stages(task);
    parse(&all, &context)?;
    let (front, rest) = all.split_at(1);
    let rest = optimize(parse(rest, &context)?, &context)?;
    let front = Value::Array(front.to_vec());
    let replies =
        scatter::read_all(task, &placement.shards(), |shard| shard_command(task, placement, shard, &front))
            .await?;
    let mut documents = Vec::new();
    for (shard, reply) in replies {
        let mut merge = Merge::new(ns, vec![(shard.clone(), reply)], Shape::default())?;
        loop {
            let batch = merge.next_documents(task).await?;
            if batch.is_empty() {
                break;
            }
            documents.extend(batch.iter().map(|d| named(d.doc(), &shard)));
        }
    }
    let mut cursor = PipelineCursor::new(task, None, &rest, &context)?;
    cursor.given = Some(documents);
    started(task, ns, cursor, &rest, size).await
}

/// The reply of a pipeline that runs here.
async fn started(
    task: &Task<'_>,
    ns: &str,
    cursor: PipelineCursor,
    pipeline: &Pipeline,
    size: Option<usize>,
) -> Result<DocBuf> {
    match pipeline.writes() {
        Some(stage) => super::output::run(task, ns, cursor, stage).await,
        None => first_batch(task, ns, Kind::Pipeline(Box::new(cursor)), size).await,
    }
}

/// A shard's document under the shard's name.
fn named(d: Doc<'_>, shard: &str) -> DocBuf {
    DocWriter::build(|w| {
        w.string("shard", shard);
        d.iter().filter(|e| e.name_bytes() != b"shard").for_each(|e| w.element(&e));
    })
}

/// The context of a pipeline on the collection that stands here.
pub async fn context_on(task: &Task<'_>, ns: &str, placement: &Placement) -> Result<Context> {
    let mut context = pipeline_context(task, ns)?;
    context.query.collation = collation::of_pipeline(task, ns, placement).await?;
    Ok(context)
}

/// The context of a pipeline, in the collation that the command names.
pub fn pipeline_context(task: &Task<'_>, ns: &str) -> Result<Context> {
    let mut context = Context::new(Namespace::parse(ns), task.parse_context()?.into());
    if let Some(named) = task.body().get_document("collation").filter(|d| !d.is_empty()) {
        context.query.collation = document::Collation::parse(named)?;
    }
    context.allow_disk_use = task.get("allowDiskUse").is_none_or(|v| v.truthy());
    Ok(context)
}

/// Whether some stage may read or write another collection; asked without parsing.
pub fn names_others(pipeline: Doc<'_>) -> bool {
    pipeline.iter().filter_map(|e| e.value().as_document()).filter_map(|s| s.iter().next()).any(|e| {
        matches!(
            e.name_bytes(),
            b"$lookup"
                | b"$graphLookup"
                | b"$unionWith"
                | b"$out"
                | b"$merge"
                | b"$facet"
                | b"$rankFusion"
                | b"$scoreFusion"
        )
    })
}

/// The shards concerned, by the `$match` at the front.
pub fn target_shards(task: &Task<'_>, placement: &Placement, pipeline: Doc<'_>) -> Result<Vec<ShardId>> {
    let first = pipeline.iter().next().and_then(|e| e.value().as_document());
    if first.is_some_and(|stage| stage.get(query::timeseries::UNPACK).is_some()) {
        // The view says how long buckets were when it was made.
        let series = placement.table.as_ref().and_then(|table| table.series.as_ref());
        let said =
            series.and_then(|series| query::timeseries::shard_key_filter(&pipeline.to_array(), series));
        let said = said.unwrap_or_default();
        return scatter::targets(task, placement, said.to_doc_buf().doc());
    }
    let filter = first.and_then(|s| s.get_document("$match")).unwrap_or(Doc::empty());
    scatter::targets(task, placement, filter)
}

/// Whether the collection and everything the pipeline names is unsharded and on one shard.
pub(super) async fn all_on_primary(
    task: &Task<'_>,
    ns: &str,
    placement: &Placement,
    pipeline: &Pipeline,
) -> Result<bool> {
    // A shard takes what is tracked for sharded, as its database's version says nothing of it.
    if placement.table.is_some() || placement.alone.is_some() {
        return Ok(false);
    }
    let written = pipeline.writes().is_some();
    for (other, _) in pipeline.involved_namespaces() {
        let other = other.to_string();
        // The request names the version of one database, so another's may move under what is written there.
        if written && database_of(&other) != database_of(ns) {
            return Ok(false);
        }
        let there = match task.placement(&other).await? {
            Some(p) => p.table.is_none() && p.alone.is_none() && p.primary == placement.primary,
            // A database that does not exist holds nothing; writes to it would have to create it.
            None => database_of(&other) == database_of(ns),
        };
        if !there {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The front on the shards, the rest here.
async fn divided(
    task: &Task<'_>,
    ns: &str,
    placement: &Placement,
    shards: &[ShardId],
    pipeline: &Pipeline,
    context: &Context,
    size: Option<usize>,
) -> Result<DocBuf> {
    let parts = split(pipeline, context)?;
    if parts.only_merge {
        let cursor = PipelineCursor::new(task, None, &parts.merge, context)?;
        return started(task, ns, cursor, &parts.merge, size).await;
    }
    let front = Value::Array(parts.shards.to_array());
    let replies =
        scatter::read_all(task, shards, |shard| shard_command(task, placement, shard, &front)).await?;
    let by_key = matches!(parts.merge_kind, MergeKind::SortKey(_));
    let merge = Merge::new(ns, replies, Shape { sort_key_field: by_key, ..Shape::default() })?;
    if parts.merge.is_empty() {
        return first_batch(task, ns, Kind::Merge(Box::new(merge)), size).await;
    }
    let cursor = PipelineCursor::new(task, Some(merge), &parts.merge, context)?;
    started(task, ns, cursor, &parts.merge, size).await
}

/// What is the same for all that runs for one command.
pub(super) fn constants(task: &Task<'_>) -> Value {
    constants_at(task, task.now_ms())
}

/// The same of a command that began at another moment, in milliseconds since 1970.
pub(super) fn constants_at(task: &Task<'_>, now_ms: i64) -> Value {
    Value::from(doc! { "localNow": (Value::DateTime(now_ms)), "clusterTime": (task.router.cluster_time()) })
}

fn shard_command(task: &Task<'_>, placement: &Placement, shard: &str, front: &Value) -> DocBuf {
    let without = ["pipeline", "cursor", "writeConcern", "fromRouter", "needsMerge", "runtimeConstants"];
    task.forward(&without, &placement.versions(shard), |w| {
        constants(task).write(w, "runtimeConstants");
        front.write(w, "pipeline");
        w.document_with("cursor", |_| {});
        w.bool("fromRouter", true);
        w.bool("needsMerge", true);
    })
}

/// A pipeline that runs here over what the shards send.
pub struct PipelineCursor {
    merge: Option<Merge>,
    /// The input, where it is no merged stream.
    given: Option<Vec<DocBuf>>,
    execution: Execution,
    /// What its stages read of other collections.
    others: SubCursors,
    ready: VecDeque<DocBuf>,
    ended: bool,
}

impl PipelineCursor {
    fn new(
        task: &Task<'_>,
        merge: Option<Merge>,
        pipeline: &Pipeline,
        context: &Context,
    ) -> Result<PipelineCursor> {
        let run = Run { limits: *task.router.limits.read(), ..Run::new(context) };
        let execution = Execution::new(pipeline, run)?;
        let others = SubCursors::new(execution.run().account.clone(), task.body());
        Ok(PipelineCursor { merge, given: None, execution, others, ready: VecDeque::new(), ended: false })
    }
    /// What is open on shards for the pipeline, whose collection is `ns`.
    pub fn into_open(self, ns: String) -> OpenOnShards {
        let own = self.merge.as_ref().map(Merge::open_cursors).unwrap_or_default();
        let mut open = self.others.into_open();
        open.push((ns, own));
        open
    }
    /// About how many bytes its stages, their input and their results hold.
    pub fn held_bytes(&self) -> usize {
        let merge = self.merge.as_ref().map_or(0, Merge::held_bytes);
        let documents = self.ready.iter().chain(self.given.iter().flatten());
        let stages = self.execution.run().account.bytes() + self.others.held_bytes();
        merge + stages + documents.map(|d| d.bytes().len()).sum::<usize>()
    }
    /// Adds up to `documents_max` documents to the batch; whether there can be more.
    pub async fn fill(
        &mut self,
        task: &Task<'_>,
        batch: &mut ArrayBuilder,
        documents_max: usize,
    ) -> Result<bool> {
        loop {
            while let Some(next) = self.ready.front() {
                let fits = batch.is_empty() || batch.byte_len() + next.bytes().len() <= BATCH_BYTES_MAX;
                if batch.len() >= documents_max || !fits {
                    return Ok(true);
                }
                batch.push(next.doc());
                self.ready.pop_front();
            }
            if self.ended {
                return Ok(false);
            }
            if batch.len() >= documents_max {
                return Ok(true);
            }
            task.op.check_interrupt()?;
            self.advance(task, None).await?;
        }
    }
    /// The next documents; none at the end.
    pub async fn next_documents(&mut self, task: &Task<'_>) -> Result<Vec<DocBuf>> {
        while self.ready.is_empty() && !self.ended {
            task.op.check_interrupt()?;
            self.advance(task, None).await?;
        }
        Ok(std::mem::take(&mut self.ready).into())
    }

    /// Runs a part of the pipeline; false when it has ended.
    pub(super) async fn advance(&mut self, task: &Task<'_>, output: Option<&Output<'_, '_>>) -> Result<bool> {
        memory::check_gathered(|| self.held_bytes())?;
        let mut source = Pulled { merge: self.merge.as_mut(), given: &mut self.given, task };
        let host = RouterHost { task, output, others: &self.others };
        match self.execution.next(&mut source, &host).await? {
            Some(documents) if documents.is_empty() => tokio::task::yield_now().await,
            Some(documents) => self.ready.extend(documents),
            None => {
                self.ended = true;
                self.close(task);
            }
        }
        Ok(!self.ended)
    }
    /// Closes what is open on shards.
    pub fn close(&mut self, task: &Task<'_>) {
        if let Some(merge) = &mut self.merge {
            merge.close(task);
        }
        self.others.close(&task.router.cluster);
    }
}

struct Pulled<'t, 'a> {
    merge: Option<&'t mut Merge>,
    given: &'t mut Option<Vec<DocBuf>>,
    task: &'t Task<'a>,
}

impl Source for Pulled<'_, '_> {
    fn next<'a>(&'a mut self, _: &'a dyn PipelineHost) -> BoxFuture<'a, Result<Option<Vec<DocBuf>>>> {
        Box::pin(async move {
            let Some(merge) = &mut self.merge else { return Ok(self.given.take()) };
            let documents = merge.next_documents(self.task).await?;
            Ok((!documents.is_empty()).then_some(documents))
        })
    }
}

/// Every document of a cursor command run through the router.
pub fn all_documents<'a>(
    task: &'a Task<'_>,
    db: &'a str,
    command: Document,
) -> BoxFuture<'a, Result<Vec<DocBuf>>> {
    Box::pin(async move {
        let command = reading_at(task, command);
        let reply = first_reply(task, db, &command).await?;
        rest_of(task, db, command.doc(), reply).await
    })
}

/// The command with the time at which the task reads, if it reads at one.
pub(super) fn reading_at(task: &Task<'_>, mut command: Document) -> DocBuf {
    if let Some(at) = task.read_at() {
        command.insert("readConcern", doc! { "level": "snapshot", "atClusterTime": at });
    }
    command.to_doc_buf()
}

/// What the router replies to a cursor command of its own.
pub(super) async fn first_reply(task: &Task<'_>, db: &str, command: &DocBuf) -> Result<DocBuf> {
    let inner = Task::new(task.router, task.op, Request { db, body: command.doc(), sequences: &[] });
    let reply = match inner.request.name() {
        "find" => super::find::find(&inner).await?,
        _ => run(&inner).await?,
    };
    task.hear_from(&inner);
    Ok(reply)
}

/// Every document of a cursor of this router, from the reply of the command that opened it.
pub async fn rest_of(task: &Task<'_>, db: &str, command: Doc<'_>, mut reply: DocBuf) -> Result<Vec<DocBuf>> {
    let (mut documents, mut bytes) = (Vec::new(), 0);
    loop {
        let Some(c) = reply.doc().get_document("cursor") else { return Ok(documents) };
        documents.extend(body::batch(reply.doc()).map(|d| d.to_owned()));
        let id = body::cursor_id(reply.doc());
        if id == 0 {
            return Ok(documents);
        }
        bytes += reply.doc().bytes().len();
        if let Err(e) = memory::check_gathered(|| bytes) {
            cursor::close(task, id, c.get_str("ns").unwrap_or_default());
            return Err(e);
        }
        let collection = c.get_str("ns").and_then(|ns| ns.split_once('.')).map_or("", |(_, c)| c);
        let mut more = doc! { "getMore": Value::Int64(id), "collection": collection };
        more.0.extend(take(command, &["lsid"]));
        more.push("$db", db);
        let more = more.to_doc_buf();
        let next = Task::new(task.router, task.op, Request { db, body: more.doc(), sequences: &[] });
        reply = cursor::get_more(&next).await?;
        task.hear_from(&next);
    }
}

/// `aggregate: 1`.
async fn without_collection(task: &Task<'_>, size: Option<usize>) -> Result<DocBuf> {
    let ns = format!("{}.$cmd.aggregate", task.db());
    if change_stream::is_stream(raw_stages(task)) {
        return change_stream::open(task, &ns, &stages(task), size).await;
    }
    let mut context = pipeline_context(task, &ns)?;
    context.namespace.collection = String::new();
    let pipeline = optimized(&stages(task), &context)?;
    let cursor = PipelineCursor::new(task, None, &pipeline, &context)?;
    started(task, &ns, cursor, &pipeline, size).await
}

/// What a view means: the namespace below it, the pipeline that makes the view of it, and the collation.
struct Resolved {
    ns: Namespace,
    pipeline: Vec<Value>,
    collation: Document,
}

/// The view as the shard resolved it.
fn resolved(error: &Error) -> Result<Resolved> {
    let view = error.info.as_ref().and_then(|i| i.get_document("resolvedView").cloned());
    let Some(view) = view else { return Err(error.clone()) };
    let ns = Namespace::parse(view.get_str("ns").unwrap_or(""));
    let simple = || doc! { "locale": "simple" };
    Ok(Resolved {
        ns,
        pipeline: view.get_array("pipeline").cloned().unwrap_or_default(),
        collation: view.get_document("collation").cloned().unwrap_or_else(simple),
    })
}

/// The aggregation, and its database, that a command on a view is on what is below it.
///
/// # Errors
/// The given one, for a command that cannot be one.
pub fn below_view(task: &Task<'_>, error: &Error) -> Result<(String, DocBuf)> {
    let Resolved { ns, mut pipeline, collation } = resolved(error)?;
    let mut command = match task.request.name() {
        "aggregate" => {
            let mut own = stages(task);
            let series = ns.collection.starts_with(query::timeseries::BUCKETS_PREFIX);
            // What is asked of a time series is told of its buckets.
            if series && begins_with_statistics(raw_stages(task)) {
                pipeline.clear();
                own = query::timeseries::indexes::with_shown_statistics(own);
            }
            let view = task.request.argument().and_then(|v| v.as_str()).unwrap_or_default();
            pipeline.extend(fusion::fused(&own, view, || series)?.unwrap_or(own));
            task.body().to_document()
        }
        name => {
            pipeline.extend(query_stages(task, name).ok_or_else(|| error.clone())?);
            query_as_aggregate(task)?
        }
    };
    command.insert("aggregate", ns.collection.as_str());
    command.insert("pipeline", Value::Array(pipeline));
    command.insert("collation", collation);
    Ok((ns.db.clone(), command.to_doc_buf()))
}

/// The fields of a query that its aggregation has, too.
fn query_as_aggregate(task: &Task<'_>) -> Result<Document> {
    let mut cursor = Document::new();
    if let Some(n) = size(task, "batchSize")? {
        cursor.push("batchSize", n as i64);
    }
    let mut command = doc! { "aggregate": 1, "cursor": cursor };
    // A null field counts as absent in these commands, but not in every field of an aggregate.
    command.0.extend(take(task.body(), READ_FIELDS).0.into_iter().filter(|(_, v)| !v.is_null()));
    if let Some(order) =
        natural_order(task.body().get_document("sort")).filter(|_| !command.contains_key("hint"))
    {
        command.push("hint", order.to_value());
    }
    Ok(command)
}

/// Runs a command on a view as an aggregation on what is below it.
pub async fn on_view(task: &Task<'_>, error: &Error) -> Result<DocBuf> {
    let (db, body) = below_view(task, error)?;
    let inner = Task::new(task.router, task.op, Request { db: &db, body: body.doc(), sequences: &[] });
    let reply = run(&inner).await;
    task.hear_from(&inner);
    let (reply, view) = (reply?, task.request.namespace()?);
    task.router.cursors.rename(body::cursor_id(reply.doc()), &view);
    Ok(body::renamed_cursor(reply.doc(), &view))
}

/// The stages that are to a view what a query is to a collection.
fn query_stages(task: &Task<'_>, name: &str) -> Option<Vec<Value>> {
    let mut stages = find_stages(task, if name == "find" { "filter" } else { "query" });
    match name {
        "find" => {}
        "count" => stages.push(Value::from(doc! { "$count": "n" })),
        "distinct" => {
            let key = task.get("key").and_then(|v| v.as_str()).unwrap_or("");
            stages.extend(distinct_stages(key));
        }
        _ => return None,
    }
    Some(stages)
}

/// The stages that collect the values at a path as `distinct` does: arrays on the way and at the end are entered, once each.
fn distinct_stages(key: &str) -> Vec<Value> {
    let ends = key.match_indices('.').map(|(i, _)| i).chain([key.len()]);
    let mut stages = Vec::new();
    for end in ends {
        let path = format!("${}", &key[..end]);
        let unwind = doc! { "path": path.as_str(), "preserveNullAndEmptyArrays": true };
        stages.push(Value::from(doc! { "$unwind": unwind }));
        if end < key.len() {
            let is_document = doc! { "$eq": [{ "$type": path }, "object"] };
            stages.push(Value::from(doc! { "$match": { "$expr": is_document } }));
        }
    }
    let group = doc! { "_id": Value::Null, "values": { "$addToSet": format!("${key}") } };
    stages.push(Value::from(doc! { "$group": group }));
    stages
}

/// The stages that do what a find's fields say.
fn find_stages(task: &Task<'_>, filter: &str) -> Vec<Value> {
    let mut out = Vec::new();
    let mut stage = |name: &str, value: Option<ValueRef<'_>>| {
        if let Some(v) = value {
            out.push(Value::Document(Document(vec![(name.to_string(), v.to_value())])));
        }
    };
    let non_empty = |name: &str| task.get(name).filter(|v| v.as_document().is_some_and(|d| !d.is_empty()));
    let positive = |name: &str| task.get(name).filter(|v| v.as_i64().is_some_and(|n| n > 0));
    stage("$match", non_empty(filter));
    let ordered = natural_order(task.body().get_document("sort")).is_none();
    stage("$sort", non_empty("sort").filter(|_| ordered));
    stage("$skip", positive("skip"));
    stage("$limit", positive("limit"));
    stage("$project", non_empty("projection"));
    out
}

const READ_FIELDS: &[&str] =
    &["lsid", "maxTimeMS", "readConcern", "comment", "let", "collation", "hint", "allowDiskUse"];

pub async fn count_on_view(task: &Task<'_>, error: &Error) -> Result<DocBuf> {
    let reply = on_view(task, error).await?;
    let n = body::batch(reply.doc()).next().and_then(|d| d.get_i64("n")).unwrap_or(0);
    Ok(ok_reply(doc! { "n": super::count::number(n) }))
}

pub async fn distinct_on_view(task: &Task<'_>, error: &Error) -> Result<DocBuf> {
    let reply = on_view(task, error).await?;
    let values = body::batch(reply.doc()).next().and_then(|d| d.get("values").map(|v| v.to_value()));
    // A whole number, as from one node.
    Ok(doc! { "values": values.unwrap_or(Value::Array(Vec::new())), "ok": 1 }.to_doc_buf())
}
