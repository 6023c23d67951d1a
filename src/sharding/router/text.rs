//! `$text` through a router: the definition of the text index is asked of a shard, and scores are computed here of the
//! documents that are merged by them.

use super::body::{Placement, batch};
use super::task::Task;
use document::fts::TextIndex;
use document::{Doc, Document, Result, Value, doc};
use query::QueryContext;
use query::matcher::{Matcher, ops::stands_in};
use query::pipeline::{Context, fusion, text::with_metadata};
use query::timeseries::near::with_distances;
use std::sync::Arc;

/// Names the collection's text index to a context, where the filter has a `$text`.
pub(super) async fn note_index(
    task: &Task<'_>,
    ns: &str,
    placement: &Placement,
    filter: Doc<'_>,
    context: &mut QueryContext,
) -> Result<()> {
    let Some(shard) = placement.shards().into_iter().next().filter(|_| stands_in(filter, "$text")) else {
        return Ok(());
    };
    let (db, collection) = ns.split_once('.').unwrap_or((ns, ""));
    let command = doc! { "listIndexes": collection, "cursor": {} };
    let body = task.own(&command, db, &placement.versions(&shard));
    let reply = task.read(&shard, &body).await?;
    let found = batch(reply.doc()).map(Doc::to_document).find(|d| d.contains_key("weights"));
    context.text_index = found.map(|d| TextIndex::parse(&d).map(Arc::new)).transpose()?;
    Ok(())
}

/// The stages of a pipeline that is to be divided, with the metadata of the first in fields.
pub(super) async fn scored(
    task: &Task<'_>,
    ns: &str,
    placement: &Placement,
    stages: Vec<Value>,
    context: &mut Context,
) -> Result<Vec<Value>> {
    let collection = ns.split_once('.').map_or("", |(_, collection)| collection);
    let stages = fusion::expand(&stages, collection)?.unwrap_or(stages);
    let stages = with_metadata(with_distances(stages)?, true)?;
    let first = stages.first().and_then(Value::as_document).and_then(|d| d.get_document("$match"));
    if let Some(filter) = first.map(Document::to_doc_buf)
        && stands_in(filter.doc(), "$text")
    {
        note_index(task, ns, placement, filter.doc(), &mut context.query).await?;
        context.query.text = Matcher::parse(filter.doc(), &context.query)?.text().cloned();
    }
    Ok(stages)
}
