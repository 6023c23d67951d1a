//! Writes to one document whose filter does not say on which shard it is.
//!
//! ```text
//! probe   (retryable writes) did some shard execute this statement before?    -> its answer
//! read    every shard concerned: one document that matches                    -> its _id and shard key
//! write   the statement, held to that document, on the shard that owns it     -> n: 1, or it changed: read again
//! none    an upsert inserts the new document where that belongs
//! ```
//!
//! Invariant: at most one shard executes the statement: only one is ever asked to at a time, and is asked again only
//! after it said that it did nothing.

use super::body::{Placement, take};
use super::collation;
use super::scatter::read_all;
use super::target;
use super::task::{Retry, Task, is_stale};
use super::write::{Kind, Write, error_of};
use crate::chunk::ShardId;
use crate::routing::RoutingTable;
use document::{Doc, DocBuf, DocWriter, Document, Result, Value, bail, codes, doc};
use query::matcher::Matcher;
use query::sort::SortSpec;
use query::update::Update;
use std::sync::Arc;

/// How often the search begins again after others changed what it had found.
const SEARCHES_MAX: usize = 100;

/// The reply of the shard that executed the statement (or one made here), whose indexes count from 0.
pub struct Done {
    pub reply: DocBuf,
}

/// Runs statement `i` of an update or a delete.
pub async fn run(write: &Write<'_, '_>, i: usize) -> Result<Done> {
    let statement = write.statements[i].doc();
    let filter = statement.get_document("q").unwrap_or(Doc::empty());
    let _alone = write.task.router.search_alone(write.task.op).await?;
    let mut retry = Retry::default();
    let mut probed = !write.task.op.is_retryable_write();
    for _ in 0..SEARCHES_MAX {
        match attempt(write, i, statement, filter, &mut probed).await {
            Ok(Some(reply)) => return Ok(Done { reply }),
            Ok(None) => write.task.op.check_interrupt()?,
            Err(e) if is_stale(&e) => retry.absorb(write.task, write.ns, e).await?,
            Err(e) => return Err(e),
        }
    }
    bail!(WRITE_CONFLICT, "the documents this statement matched kept changing")
}

async fn attempt(
    write: &Write<'_, '_>,
    i: usize,
    statement: Doc<'_>,
    filter: Doc<'_>,
    probed: &mut bool,
) -> Result<Option<DocBuf>> {
    let placement = write.task.placement_for_write(write.ns).await?;
    let Some(table) = placement.table.clone() else {
        let shard = placement.primary.clone();
        return write.send_changed(&placement, &shard, i, &statement.to_owned()).await.map(Some);
    };
    if !*probed {
        if let Some(reply) = probe(write, &placement, i, statement).await? {
            return Ok(Some(reply));
        }
        *probed = true;
    }
    let found = find_one(write.task, write.ns, &placement, &table, filter, statement).await?;
    let Some(found) = found else {
        return match statement.get("upsert").is_some_and(|v| v.truthy()) {
            true => insert_new(write, &placement, &table, i, statement, filter).await,
            false => Ok(Some(nothing(write.kind))),
        };
    };
    let shard = target::document(&table, found.doc())?;
    let held = held_to(statement, "q", filter, &target::identity(&table.key, found.doc())?);
    let reply = write.send_changed(&placement, &shard, i, &held).await?;
    // Neither executed nor refused: it matches no more.
    let did_nothing = reply.doc().get_i64("n") == Some(0) && reply.doc().element("writeErrors").is_none();
    Ok((!did_nothing).then_some(reply))
}

fn nothing(kind: Kind) -> DocBuf {
    match kind {
        Kind::Update => doc! { "n": 0, "nModified": 0, "ok": 1.0 },
        _ => doc! { "n": 0, "ok": 1.0 },
    }
    .to_doc_buf()
}

/// The statement with its filter held to one document. Nothing is inserted if it is gone.
pub fn held_to(statement: Doc<'_>, name: &str, filter: Doc<'_>, identity: &Document) -> DocBuf {
    DocWriter::build(|w| {
        for e in statement.iter() {
            match e.name() {
                n if n == name => w.document_with(name, |w| {
                    identity.write_fields(w);
                    if !filter.is_empty() {
                        w.array_with("$and", |w| w.document("0", filter));
                    }
                }),
                "upsert" | "sort" | "hint" => {}
                _ => w.element(&e),
            }
        }
    })
}

/// Asks every shard whether it executed this statement before: a shard answers a repetition before it looks for
/// documents, and the filter sent matches none.
async fn probe(
    write: &Write<'_, '_>,
    placement: &Placement,
    i: usize,
    statement: Doc<'_>,
) -> Result<Option<DocBuf>> {
    let never = never_matching(statement, "q");
    for shard in placement.shards() {
        let reply = write.send_changed(placement, &shard, i, &never).await?;
        if reply.doc().get("retriedStmtIds").is_some() {
            return Ok(Some(reply));
        }
    }
    Ok(None)
}

/// The statement with a filter that matches nothing, and without upsert.
pub fn never_matching(statement: Doc<'_>, name: &str) -> DocBuf {
    let never = doc! { "_id": { "$in": [] } };
    DocWriter::build(|w| {
        for e in statement.iter() {
            match e.name() {
                n if n == name => w.document_with(name, |w| never.write_fields(w)),
                "upsert" | "sort" | "hint" => {}
                _ => w.element(&e),
            }
        }
    })
}

/// One document that matches; with `sort`, the first.
pub async fn find_one(
    task: &Task<'_>,
    ns: &str,
    placement: &Placement,
    table: &Arc<RoutingTable>,
    filter: Doc<'_>,
    statement: Doc<'_>,
) -> Result<Option<DocBuf>> {
    let context = collation::context(task, statement, table)?;
    let sort = SortSpec::parse(statement.get_document("sort").unwrap_or(Doc::empty()))?;
    let sort = sort.with_collation(&context.collation);
    let shards = target::filter(table, filter, &context).shards;
    let (db, collection) = ns.split_once('.').unwrap_or((ns, ""));
    let mut command = doc! { "find": collection, "filter": filter, "limit": 1, "singleBatch": true };
    command.0.extend(take(statement, &["sort", "hint", "collation"]));
    command.0.extend(take(task.body(), &["let", "maxTimeMS", "lsid", "comment"]));
    if sort.is_empty() {
        let mut projection: Document =
            table.key.fields().iter().map(|f| (f.path.clone(), Value::Int32(1))).collect();
        projection.insert("_id", 1);
        command.push("projection", projection);
    }
    let replies = read_all(task, &shards, |shard| task.own(&command, db, &placement.versions(shard))).await?;
    first_of(replies, &sort)
}

fn first_of(replies: Vec<(ShardId, DocBuf)>, sort: &SortSpec) -> Result<Option<DocBuf>> {
    let mut best: Option<(Vec<u8>, DocBuf)> = None;
    for (_, reply) in &replies {
        let batch = reply.doc().get_document("cursor").and_then(|c| c.get("firstBatch")?.as_array());
        let Some(found) = batch.and_then(|b| b.iter().next()?.value().as_document()) else { continue };
        let key = sort.key(found)?;
        if best.as_ref().is_none_or(|(k, _)| key < *k) {
            best = Some((key, found.to_owned()));
        }
    }
    Ok(best.map(|(_, d)| d))
}

/// An upsert that found nothing: the document it makes, inserted where it belongs. `None` when another came first.
async fn insert_new(
    write: &Write<'_, '_>,
    placement: &Placement,
    table: &Arc<RoutingTable>,
    i: usize,
    statement: Doc<'_>,
    filter: Doc<'_>,
) -> Result<Option<DocBuf>> {
    let new = new_document(write.task, table, statement, filter, "u")?;
    let id = new.get("_id").map_or(Value::Null, |v| v.to_value());
    let stmt = write.statement_id(i);
    match insert_at_owner(write.task, write.ns, placement, table, &new, stmt).await? {
        false => Ok(None),
        true => {
            let upserted = document::array![{ "index": 0, "_id": id }];
            Ok(Some(doc! { "n": 1, "nModified": 0, "upserted": upserted, "ok": 1.0 }.to_doc_buf()))
        }
    }
}

/// The document that an upsert with this filter and update (in member `update`) inserts, with its `_id`.
pub fn new_document(
    task: &Task<'_>,
    table: &RoutingTable,
    statement: Doc<'_>,
    filter: Doc<'_>,
    update: &str,
) -> Result<DocBuf> {
    let context = collation::context(task, statement, table)?;
    let matcher = Matcher::parse(filter, &context)?;
    let filters: Vec<Document> = statement
        .get("arrayFilters")
        .and_then(|v| v.as_array())
        .into_iter()
        .flat_map(|a| a.iter())
        .filter_map(|e| e.value().as_document().map(|d| d.to_document()))
        .collect();
    let update = statement.get(update).map_or(Value::Null, |v| v.to_value());
    let new = Update::parse(&update, &filters, &context)?.upsert_document(&matcher)?;
    if new.doc().element("_id").is_some() {
        return Ok(new);
    }
    let id = task.router.new_object_id();
    Ok(DocWriter::build(|w| {
        w.object_id("_id", id);
        w.fields_of(new.doc());
    }))
}

/// Inserts a document on the shard that owns it; `false` when its key was taken meanwhile.
pub async fn insert_at_owner(
    task: &Task<'_>,
    ns: &str,
    placement: &Placement,
    table: &Arc<RoutingTable>,
    new: &DocBuf,
    stmt: i32,
) -> Result<bool> {
    let (db, collection) = ns.split_once('.').unwrap_or((ns, ""));
    let shard = target::document(table, new.doc())?;
    let documents = Value::Array(vec![Value::from(new.doc())]);
    let mut command = doc! { "insert": collection, "documents": documents };
    command.0.extend(take(
        task.body(),
        &["lsid", "txnNumber", "writeConcern", "bypassDocumentValidation", "comment", "maxTimeMS"],
    ));
    if task.op.is_retryable_write() {
        command.push("stmtIds", Value::Array(vec![Value::Int32(stmt)]));
    }
    let body = task.own(&command, db, &placement.versions(&shard));
    let reply = task.write(&shard, &body).await?;
    let errors = reply.doc().get("writeErrors").and_then(|v| v.as_array());
    match errors.and_then(|a| a.iter().next()?.value().as_document()).map(error_of) {
        None => Ok(true),
        Some(e) if e.code == codes::DUPLICATE_KEY && is_retriable_duplicate(&e.message) => Ok(false),
        Some(e) => Err(e),
    }
}

/// A duplicate `_id` means that another inserted the document first; of any other index it is the client's error.
fn is_retriable_duplicate(message: &str) -> bool {
    message.contains("index: _id_")
}
