//! The part of a router's `$out` or `$merge` that concerns this shard.
//!
//! ```text
//! {_shardsvrWriteOutput: <collection>, stage: {$merge: {into, on, ...}}, documents: [...]}      merged here
//! {_shardsvrWriteOutput: <collection>, stage: {$out: {db, coll}}, documents: [...], temporary?, end?: true}
//!                                                    put into the collection beside the target, whose name is returned
//! {_shardsvrWriteOutput: <collection>, temporary, drop: true}                                   given up
//! ```
//! `let` and `collation` are those of the client's command; `documentKey: true` says that `on` is the shard key with `_id`, which needs
//! no index of its own.
//!
//! Why no document is merged twice, and none gets lost beside a migration: the versions are compared once, before the first document,
//! and until the last one no range leaves the collection. So a refusal as stale means that nothing was done, and the router
//! may send the documents elsewhere. A drop waits for a while only, so every slice looks whether the collection is still the one
//! whose versions were compared.

use super::aggregate::Asked;
use super::host::{LocalHost, Writing};
use super::output::{Bound, is_output};
use crate::{Node, Operation, Request};
use document::{DocBuf, Document, Result, Value, ValueRef, bail, err};
use protocol::version::ShardVersion;
use query::pipeline::{Context, HostStage, Namespace, Run, parse};
use std::sync::Arc;

/// Runs `_shardsvrWriteOutput`.
///
/// # Errors
/// Those of the stages; stale ones only where nothing was done.
pub async fn write(node: &Arc<Node>, op: &Arc<Operation>, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    let flag = |name: &str| request.body.get(name).is_some_and(|v| v.truthy());
    let temporary = request.body.get_str("temporary").filter(|ns| is_output(ns));
    let writing = Writing {
        bypass_validation: flag("bypassDocumentValidation"),
        document_key: flag("documentKey"),
        temporary: parking_lot::Mutex::new(temporary.map(str::to_string)),
        ..Writing::default()
    };
    let (writing, others) = (Arc::new(writing), Arc::default());
    let host = LocalHost { node: node.clone(), op: op.clone(), writing, others, ns: ns.clone() };
    if flag("drop") {
        host.give_up().await;
        return Ok(Document::new());
    }
    let (stage, run) = stage_of(node, &ns, request)?;
    let documents: Vec<DocBuf> = request.documents("documents").map(|d| d.to_owned()).collect();
    match stage.name {
        "$out" => {
            let series = stage.spec.as_document().and_then(|d| d.get_document("timeseries"));
            host.out(&ns, series, documents, flag("end")).await?;
        }
        _ => merge(&host, &ns, &stage, documents, &run).await?,
    }
    let mut reply = Document::new();
    if let Some(ns) = host.writing.temporary.lock().take() {
        reply.push("temporary", ns);
    }
    Ok(reply)
}

/// The stage, and the variables it may use.
fn stage_of(node: &Node, ns: &str, request: Request<'_>) -> Result<(HostStage, Run)> {
    let asked = Asked::on(node, ns, request.body)?;
    let mut context = Context::new(Namespace::parse(ns), node.parse_context(asked.variables));
    context.query.collation = asked.collation.unwrap_or_default();
    context.query.scripts.map_reduce = request.body.get("isMapReduceCommand").is_some_and(|v| v.truthy());
    if let Some(ValueRef::DateTime(now)) =
        request.body.get_document("runtimeConstants").and_then(|d| d.get("localNow"))
    {
        context.query.now_ms = now;
    }
    let stage = request.body.get_document("stage").map(|d| Value::Document(d.to_document()));
    let stage = stage.ok_or_else(|| {
        err!(IDL_FAILED_TO_PARSE, "BSON field '{}.stage' is missing but a required field", request.name())
    })?;
    match parse(&[stage], &context)?.writes() {
        Some(stage) => Ok((stage.clone(), Run::new(&context))),
        None => bail!(FAILED_TO_PARSE, "{} takes $out and $merge", request.name()),
    }
}

async fn merge(
    host: &LocalHost,
    ns: &str,
    stage: &HostStage,
    documents: Vec<DocBuf>,
    run: &Run,
) -> Result<()> {
    let slot = host.node.namespaces.slot(ns);
    let kept = slot.keep_ranges(&host.op).await?;
    // A range that is leaving already has left when writes go on, and then the versions say so.
    let (bound, _) = host.node.write(&host.op, &slot, |unit| Ok(Bound::to(unit))).await?;
    let mut op = host.aside();
    op.received = host.op.received;
    op.received.shard = op.received.shard.map(|_| ShardVersion::IGNORED);
    let done = host.merge_as(&op, ns, &stage.spec, documents, run, Some(&bound)).await;
    drop(kept);
    done
}
