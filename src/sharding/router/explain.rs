//! `explain`: the shards' explanations under the stage that puts their results together.

use super::aggregate::{
    all_on_primary, below_view, names_others, optimized, pipeline_context, raw_stages, target_shards,
};
use super::body::{Placement, ok_reply, strip_times};
use super::find::is_view_of_sharded;
use super::map_reduce::as_aggregate;
use super::scatter;
use super::task::{Retry, Task};
use crate::chunk::ShardId;
use crate::remote::hosts as hosts_of;
use document::{Doc, DocBuf, Document, Error, Result, Value, bail, doc};
use node::Request;
use node::read::aggregate_command::names_collection;
use node::read::explain::{is_map_reduce, refuse_writing, shown_command, verbosity_of};
use query::pipeline::sort::shown;
use query::pipeline::{Limits, Split, split};

/// `{explain: {find|count|distinct|aggregate|update|delete|findAndModify: c, ...}, verbosity}`.
pub async fn explain(task: &Task<'_>) -> Result<DocBuf> {
    let inner = node::read::explain::explained_command(&task.request)?;
    let Some(first) = inner.iter().next() else {
        bail!(FAILED_TO_PARSE, "explain needs a command to explain")
    };
    let asked = Task::new(task.router, task.op, Request { db: task.db(), body: inner, sequences: &[] });
    if first.name() == "aggregate" && !names_collection(Some(first.value()))? {
        return without_collection(&asked);
    }
    if is_map_reduce(first.name()) {
        return of_map_reduce(task, &asked).await;
    }
    let Some(collection) = first.value().as_str() else {
        bail!(INVALID_NAMESPACE, "explain needs a command on a collection");
    };
    if first.name() == "aggregate" {
        refuse_writing(&raw_stages(&asked).to_array(), verbosity_of(&task.request)?)?;
    }
    let ns = format!("{}.{collection}", task.db());
    explained(task, &ns, first.name(), &asked).await
}

/// Explains the aggregation that a mapReduce command becomes, under the command.
async fn of_map_reduce(task: &Task<'_>, asked: &Task<'_>) -> Result<DocBuf> {
    let (_, pipeline) = as_aggregate(asked).await?;
    let body = instead(task, pipeline.to_document());
    let inner = Task::new(task.router, task.op, Request { db: task.db(), body: body.doc(), sequences: &[] });
    let reply = Box::pin(explain(&inner)).await;
    task.hear_from(&inner);
    let mut reply = reply?.to_document();
    reply.remove("queryShapeHash");
    reply.insert("command", shown_command(asked.body(), asked.db()));
    Ok(reply.to_doc_buf())
}

/// `aggregate` with `explain: true`.
pub async fn aggregate(task: &Task<'_>) -> Result<DocBuf> {
    if !names_collection(task.request.argument())? {
        return without_collection(task);
    }
    let ns = task.request.namespace()?;
    explained(task, &ns, "aggregate", task).await
}

/// A pipeline on no collection runs here, as a whole.
fn without_collection(asked: &Task<'_>) -> Result<DocBuf> {
    let mut context = pipeline_context(asked, &format!("{}.$cmd.aggregate", asked.db()))?;
    context.namespace.collection = String::new();
    let raw = asked.get("pipeline").and_then(|v| v.as_array()).unwrap_or(Doc::empty());
    let pipeline = optimized(&raw.to_array(), &context)?;
    let mongos =
        doc! { "host": asked.router.host.as_str(), "stages": Value::Array(shown(pipeline.to_array())) };
    finish(asked, doc! { "splitPipeline": Value::Null, "mongos": mongos })
}

/// Explains the command `asked`, which `task` has or is.
async fn explained(task: &Task<'_>, ns: &str, name: &str, asked: &Task<'_>) -> Result<DocBuf> {
    let inner = asked.body();
    let mut retry = Retry::default();
    loop {
        let Some(placement) = task.placement(ns).await? else {
            bail!(NAMESPACE_NOT_FOUND, "database {} does not exist", task.db());
        };
        let shards = shards_of(asked, &placement, name, inner)?;
        let parts = match name {
            "aggregate" => parts_of(asked, ns, &placement, &shards).await?,
            _ => None,
        };
        let front =
            parts.as_ref().filter(|parts| !parts.only_merge).map(|parts| front_of(task, asked, parts));
        let replies = scatter::read_all(task, &shards, |shard| {
            let body = front.as_ref().map_or(task.body(), DocBuf::doc);
            task.forward_as(body, &[], &placement.versions(shard), |_| {})
        })
        .await;
        let replies = match replies {
            Ok(replies) => replies,
            Err(e) if is_view_of_sharded(&e) => return of_view(task, asked, &e).await,
            Err(e) => {
                retry.absorb(task, ns, e).await?;
                continue;
            }
        };
        return match name {
            "aggregate" => of_pipeline(asked, parts, replies).await,
            _ => of_query(asked, name, inner, replies).await,
        };
    }
}

/// Explains the aggregation that the command is on what is below its view.
async fn of_view(task: &Task<'_>, asked: &Task<'_>, error: &Error) -> Result<DocBuf> {
    let (db, body) = below_view(asked, error)?;
    let body = instead(task, body.doc().to_document());
    let inner = Task::new(task.router, task.op, Request { db: &db, body: body.doc(), sequences: &[] });
    let reply = match task.request.name() == "explain" {
        true => Box::pin(explain(&inner)).await,
        false => Box::pin(aggregate(&inner)).await,
    };
    task.hear_from(&inner);
    reply
}

/// The command of `task` with another one explained.
fn instead(task: &Task<'_>, explained: Document) -> DocBuf {
    if task.request.name() != "explain" {
        return explained.to_doc_buf();
    }
    let mut whole = task.body().to_document();
    whole.insert("explain", explained);
    whole.to_doc_buf()
}

/// How the pipeline is divided; `None` where a shard runs all of it.
async fn parts_of(
    asked: &Task<'_>,
    ns: &str,
    placement: &Placement,
    shards: &[ShardId],
) -> Result<Option<Split>> {
    let raw = raw_stages(asked);
    let others = names_others(raw);
    if shards.len() == 1 && !others {
        return Ok(None);
    }
    let context = pipeline_context(asked, ns)?;
    let pipeline = optimized(&raw.to_array(), &context)?;
    if others && all_on_primary(asked, ns, placement, &pipeline).await? {
        return Ok(None);
    }
    Ok(Some(split(&pipeline, &context)?))
}

/// The command for the shards: the front of the divided pipeline is explained there.
fn front_of(task: &Task<'_>, asked: &Task<'_>, parts: &Split) -> DocBuf {
    let mut part = asked.body().to_document();
    part.insert("pipeline", Value::Array(parts.shards.to_array()));
    part.insert("fromRouter", true);
    part.insert("needsMerge", true);
    instead(task, part)
}

fn shards_of(task: &Task<'_>, placement: &Placement, name: &str, inner: Doc<'_>) -> Result<Vec<ShardId>> {
    let list = |field: &str| inner.get(field).and_then(|v| v.as_array()).unwrap_or(Doc::empty());
    if name == "aggregate" {
        return target_shards(task, placement, list("pipeline"));
    }
    let filter = match name {
        "find" => inner.get_document("filter"),
        "update" | "delete" => {
            let first = list(if name == "update" { "updates" } else { "deletes" }).iter().next();
            first.and_then(|e| e.value().as_document()).and_then(|s| s.get_document("q"))
        }
        _ => inner.get_document("query"),
    };
    scatter::targets(task, placement, filter.unwrap_or(Doc::empty()))
}

async fn of_query(
    task: &Task<'_>,
    name: &str,
    inner: Doc<'_>,
    replies: Vec<(ShardId, DocBuf)>,
) -> Result<DocBuf> {
    let hosts = task.router.cluster.shards().await?;
    let stage = match (replies.len(), name) {
        (_, "update" | "delete") => "SHARD_WRITE",
        (1, _) => "SINGLE_SHARD",
        _ if inner.get_document("sort").is_some_and(|s| !s.is_empty()) => "SHARD_MERGE_SORT",
        _ => "SHARD_MERGE",
    };
    let (mut plans, mut executions, mut all_plans) = (Vec::new(), Vec::new(), Vec::new());
    let (mut totals, mut slowest) = (Totals::default(), 0);
    for (shard, reply) in &replies {
        let reply = strip_times(reply.doc()).to_document();
        let mut plan = doc! { "explainVersion": "1", "shardName": &**shard };
        if let Some((_, host)) = hosts.iter().find(|(n, _)| n == shard) {
            plan.push("connectionString", host.as_str());
        }
        plan.0.extend(reply.get("serverInfo").map(|v| ("serverInfo".to_string(), v.clone())));
        if let Some(p) = reply.get_document("queryPlanner") {
            plan.0.extend(p.clone());
        }
        plans.push(plan);
        if let Some(stats) = reply.get_document("executionStats") {
            totals.add(stats);
            slowest = slowest.max(stats.get_i64("executionTimeMillis").unwrap_or(0));
            let mut execution = doc! { "shardName": &**shard };
            execution.0.extend(stats.clone());
            if let Some(plans) = execution.remove("allPlansExecution") {
                all_plans.push(Value::from(doc! { "shardName": &**shard, "allPlans": plans }));
            }
            executions.push(execution);
        }
    }
    let mut reply = doc! {
        "queryPlanner": { "mongosPlannerVersion": 1, "winningPlan": { "stage": stage, "shards": plans } },
    };
    if !executions.is_empty() {
        let mut stats = doc! {
            "nReturned": totals.returned, "executionTimeMillis": slowest, "totalKeysExamined": totals.keys,
            "totalDocsExamined": totals.documents,
        };
        let mut stages = doc! { "stage": stage };
        stages.0.extend(stats.0.iter().cloned());
        stages.push("shards", executions);
        stats.push("executionStages", stages);
        if !all_plans.is_empty() {
            stats.push("allPlansExecution", all_plans);
        }
        reply.push("executionStats", stats);
    }
    finish(task, reply)
}

#[derive(Default)]
struct Totals {
    returned: i64,
    keys: i64,
    documents: i64,
}

impl Totals {
    fn add(&mut self, stats: &Document) {
        self.returned += stats.get_i64("nReturned").unwrap_or(0);
        self.keys += stats.get_i64("totalKeysExamined").unwrap_or(0);
        self.documents += stats.get_i64("totalDocsExamined").unwrap_or(0);
    }
}

async fn of_pipeline(
    task: &Task<'_>,
    parts: Option<Split>,
    replies: Vec<(ShardId, DocBuf)>,
) -> Result<DocBuf> {
    let hosts = task.router.cluster.shards().await?;
    let mut shards = Document::new();
    for (shard, reply) in &replies {
        let mut shown = Document::new();
        if let Some((_, host)) = hosts.iter().find(|(n, _)| n == shard) {
            shown.push("host", hosts_of(host).next());
        }
        for field in ["explainVersion", "stages", "queryPlanner", "executionStats"] {
            if let Some(value) = reply.doc().get(field) {
                shown.push(field, value.to_value());
            }
        }
        shards.push(&**shard, shown);
    }
    let mut reply = Document::new();
    match parts {
        Some(parts) => {
            reply.push("mergeType", "mongos");
            reply.push(
                "splitPipeline",
                doc! { "shardsPart": shown(parts.shards.to_array()), "mergerPart": shown(parts.merge.to_array()) },
            );
        }
        None => reply.push("splitPipeline", Value::Null),
    }
    reply.push("shards", shards);
    finish(task, reply)
}

fn finish(asked: &Task<'_>, mut reply: Document) -> Result<DocBuf> {
    node::read::explain::finish(&asked.router.host, &Limits::default(), &mut reply, asked.body(), asked.db());
    Ok(ok_reply(reply))
}
