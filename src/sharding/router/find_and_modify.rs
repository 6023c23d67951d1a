//! `findAndModify`: one document, on the shard its query names or, where it names none, in two phases
//! (see [`two_phase`]).

use super::body::{Placement, ok_reply, take};
use super::cluster::Call;
use super::collation;
use super::task::{Retry, Task, is_stale};
use super::{target, two_phase};
use crate::chunk::ShardId;
use crate::routing::RoutingTable;
use document::{Doc, DocBuf, Document, Result, Value, bail, codes, doc};
use query::matcher::Matcher;
use query::projection::Projection;
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;

const SEARCHES_MAX: usize = 100;

pub async fn find_and_modify(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    node::write::shapes::FIND_AND_MODIFY.check_command(task.request.body, task.request.sequences)?;
    let mut retry = Retry::default();
    let mut probed = !task.op.is_retryable_write();
    let mut alone = None;
    for _ in 0..SEARCHES_MAX {
        match attempt(task, &ns, &mut probed, &mut alone).await {
            Ok(Some(reply)) => return Ok(reply),
            Ok(None) => task.op.check_interrupt()?,
            Err(e) if is_stale(&e) => retry.absorb(task, &ns, e).await?,
            Err(e) if e.code == codes::WOULD_CHANGE_OWNING_SHARD => return Err(super::write::would_move()),
            Err(e) => return Err(e),
        }
    }
    bail!(WRITE_CONFLICT, "the documents this findAndModify matched kept changing")
}

async fn attempt(
    task: &Task<'_>,
    ns: &str,
    probed: &mut bool,
    alone: &mut Option<OwnedMutexGuard<()>>,
) -> Result<Option<DocBuf>> {
    let placement = task.placement_for_write(ns).await?;
    let Some(table) = placement.table.clone() else {
        return as_it_is(task, &placement, &placement.primary).await.map(Some);
    };
    let filter = task.document_or_empty("query");
    let upsert = task.get("upsert").is_some_and(|v| v.truthy());
    let aim = target::filter(&table, filter, &collation::context(task, task.body(), &table)?);
    if let [shard] = aim.shards.as_slice()
        && (aim.key.is_some() || !upsert)
    {
        return as_it_is(task, &placement, shard).await.map(Some);
    }
    if !*probed {
        if alone.is_none() {
            *alone = task.router.search_alone(task.op).await?;
        }
        if let Some(reply) = probe(task, &placement).await? {
            return Ok(Some(reply));
        }
        *probed = true;
    }
    let found = two_phase::find_one(task, ns, &placement, &table, filter, task.body()).await?;
    match found {
        Some(found) => held_to(task, &placement, &table, filter, found.doc()).await,
        None if upsert => insert_new(task, ns, &placement, &table, filter).await,
        None => Ok(Some(nothing(task))),
    }
}

async fn as_it_is(task: &Task<'_>, placement: &Placement, shard: &ShardId) -> Result<DocBuf> {
    let body = task.forward(&[], &placement.versions(shard), |_| {});
    let brief = target::names_one(task.document_or_empty("query"));
    let call = Call { brief, ..Call::new(shard, body.doc()) };
    task.write_call(call).await.map_err(|e| e.error)
}

async fn held_to(
    task: &Task<'_>,
    placement: &Placement,
    table: &Arc<RoutingTable>,
    filter: Doc<'_>,
    found: Doc<'_>,
) -> Result<Option<DocBuf>> {
    let shard = target::document(table, found)?;
    let identity = target::identity(&table.key, found)?;
    let body = task.forward(&["query", "sort", "hint", "upsert"], &placement.versions(&shard), |w| {
        w.document_with("query", |w| {
            identity.write_fields(w);
            if !filter.is_empty() {
                w.array_with("$and", |w| w.document("0", filter));
            }
        });
    });
    let call = Call::new(&shard, body.doc());
    let reply = task.write_call(call).await.map_err(|e| e.error)?;
    let n = reply.doc().get_document("lastErrorObject").and_then(|d| d.get_i64("n"));
    Ok((n != Some(0)).then_some(reply))
}

async fn probe(task: &Task<'_>, placement: &Placement) -> Result<Option<DocBuf>> {
    let never = doc! { "_id": { "$in": [] } };
    for shard in placement.shards() {
        let body = task.forward(&["query", "sort", "hint", "upsert"], &placement.versions(&shard), |w| {
            w.document_with("query", |w| never.write_fields(w));
        });
        let reply = task.write(&shard, &body).await?;
        if reply.doc().get("retriedStmtId").is_some() {
            return Ok(Some(reply));
        }
    }
    Ok(None)
}

fn nothing(task: &Task<'_>) -> DocBuf {
    let removes = task.get("remove").is_some_and(|v| v.truthy());
    let mut last = doc! { "n": 0 };
    if !removes {
        last.push("updatedExisting", false);
    }
    ok_reply(doc! { "lastErrorObject": last, "value": Value::Null })
}

async fn insert_new(
    task: &Task<'_>,
    ns: &str,
    placement: &Placement,
    table: &Arc<RoutingTable>,
    filter: Doc<'_>,
) -> Result<Option<DocBuf>> {
    let new = two_phase::new_document(task, table, task.body(), filter, "update")?;
    let stmt = task.op.session.as_ref().and_then(|s| s.stmt_ids.first().copied()).unwrap_or(0);
    if !two_phase::insert_at_owner(task, ns, placement, table, &new, stmt).await? {
        return Ok(None);
    }
    let id = new.get("_id").map_or(Value::Null, |v| v.to_value());
    let last: Document = doc! { "n": 1, "updatedExisting": false, "upserted": id };
    let value = match task.get("new").is_some_and(|v| v.truthy()) {
        true => Value::from(projected(task, table, filter, &new)?),
        false => Value::Null,
    };
    Ok(Some(ok_reply(doc! { "lastErrorObject": last, "value": value })))
}

fn projected(task: &Task<'_>, table: &RoutingTable, filter: Doc<'_>, new: &DocBuf) -> Result<DocBuf> {
    let fields = take(task.body(), &["fields"]);
    let Some(spec) = fields.get_document("fields").filter(|f| !f.is_empty()) else { return Ok(new.clone()) };
    let context = collation::context(task, task.body(), table)?;
    let matcher = Matcher::parse(filter, &context)?;
    let projection = Projection::parse(spec.to_doc_buf().doc(), &matcher, &context)?;
    let mut out = Vec::new();
    projection.apply(new.doc(), &mut out)?;
    Ok(DocBuf::from_validated(out))
}
