//! Which collation a command through the router compares by: the one it names, or else the collection's default.
//!
//! Chunks are bounded by plain strings. So a filter that compares strings otherwise says nothing of the chunks, and what
//! shards sort by a collation is merged here by the same.

use super::body::{Placement, batch};
use super::task::Task;
use crate::routing::RoutingTable;
use document::{Collation, Doc, Result, ValueRef, doc};
use query::QueryContext;

/// The collation document of a command or a statement; an empty one names none.
fn named(body: Doc<'_>) -> Option<Doc<'_>> {
    body.get_document("collation").filter(|d| !d.is_empty())
}

/// Whether strings are compared byte by byte, asked without reading the collation.
pub(super) fn is_simple(body: Doc<'_>, table: &RoutingTable) -> bool {
    match named(body) {
        Some(c) => c.get_str("locale") == Some("simple"),
        None => table.default_collation.is_simple(),
    }
}

/// The collation of a command or a statement on a sharded collection.
///
/// # Errors
/// Those of [`Collation::parse`].
pub(super) fn of(body: Doc<'_>, table: &RoutingTable) -> Result<Collation> {
    named(body).map_or_else(|| Ok(table.default_collation.clone()), Collation::parse)
}

/// What a parser of the statement's queries may see of the outside, its collation included.
pub(super) fn context(task: &Task<'_>, statement: Doc<'_>, table: &RoutingTable) -> Result<QueryContext> {
    Ok(QueryContext::from(task.parse_context()?).with_collation(&of(statement, table)?))
}

/// The same where there is no collection, whose default would count.
pub(super) fn context_of_nothing(task: &Task<'_>) -> Result<QueryContext> {
    let collation = named(task.body()).map_or(Ok(Collation::SIMPLE), Collation::parse)?;
    Ok(QueryContext::from(task.parse_context()?).with_collation(&collation))
}

/// The collation of a command whose stages run here. The default of a collection that is not sharded is asked of the
/// shard that has it.
pub(super) async fn of_pipeline(task: &Task<'_>, ns: &str, placement: &Placement) -> Result<Collation> {
    match (named(task.body()), &placement.table) {
        (Some(c), _) => Collation::parse(c),
        (None, Some(table)) => Ok(table.default_collation.clone()),
        (None, None) => default_of_unsharded(task, ns, placement).await,
    }
}

async fn default_of_unsharded(task: &Task<'_>, ns: &str, placement: &Placement) -> Result<Collation> {
    let (db, collection) = ns.split_once('.').unwrap_or((ns, ""));
    let command = doc! { "listCollections": 1, "filter": { "name": collection }, "cursor": {} };
    if let Some(table) = &placement.alone {
        return Ok(table.default_collation.clone());
    }
    let body = task.own(&command, db, &placement.versions(&placement.primary));
    let reply = task.read(&placement.primary, &body).await?;
    let options = batch(reply.doc()).next().and_then(|d| d.get_document("options"));
    match options.and_then(|o| o.get("collation")) {
        Some(ValueRef::Document(c)) => Collation::parse(c),
        _ => Ok(Collation::SIMPLE),
    }
}
