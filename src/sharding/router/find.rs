//! `find`: to the shards its filter concerns.
//!
//! ```text
//! one shard      the command as it is; batches are passed on
//! several        each shard sorts and limits (skip + limit); the router merges, skips, limits and, after a sort, projects
//! ```

use super::body::{Placement, cursor_reply};
use super::cursor::{Kind, first_batch, size};
use super::merge::{Merge, Shape};
use super::task::{Retry, Task};
use super::{body, collation, scatter, single, text};
use crate::chunk::ShardId;
use document::{Doc, DocBuf, Result, bail};
use node::read::find::FindCommand;
use query::QueryContext;
use query::matcher::Matcher;
use query::pipeline::sort_key::projection;
use query::planner::Hint;
use query::sort::SortSpec;

pub async fn find(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let mut retry = Retry::default();
    loop {
        let Some(placement) = task.placement(&ns).await? else {
            check(task)?;
            return Ok(cursor_reply("firstBatch", &body::ArrayBuilder::default(), 0, &ns));
        };
        match find_at(task, &ns, &placement).await {
            Ok(reply) => return Ok(reply),
            Err(e) if is_view_of_sharded(&e) => return super::aggregate::on_view(task, &e).await,
            Err(e) => retry.absorb(task, &ns, e).await?,
        }
    }
}

/// There is nothing to read, but what was asked for must make sense.
fn check(task: &Task<'_>) -> Result<()> {
    let command = FindCommand::parse(task.body())?;
    let context = collation::context_of_nothing(task)?;
    let filter = Matcher::parse(command.filter.unwrap_or(Doc::empty()), &context)?;
    let sort = command.sort.map(SortSpec::parse).transpose()?;
    command.projection.map(|p| projection(p, sort.as_ref(), &filter, &context)).transpose()?;
    command.hint.map(Hint::given).transpose()?;
    Ok(())
}

/// A view can be resolved by the shard, but what is below it is sharded.
pub fn is_view_of_sharded(e: &document::Error) -> bool {
    e.code == document::codes::COMMAND_ON_SHARDED_VIEW_NOT_SUPPORTED_ON_MONGOD
}

async fn find_at(task: &Task<'_>, ns: &str, placement: &Placement) -> Result<DocBuf> {
    let shards = scatter::targets(task, placement, task.document_or_empty("filter"))?;
    let reply = match shards.as_slice() {
        [shard] => single::read(task, ns, placement, shard).await,
        // Boxed, so that a find on one shard is not as large as this.
        several => Box::pin(on_several(task, ns, placement, several)).await,
    }?;
    task.router.targeted.find.note(placement.table.as_deref(), shards.len());
    Ok(reply)
}

async fn on_several(task: &Task<'_>, ns: &str, placement: &Placement, shards: &[ShardId]) -> Result<DocBuf> {
    FindCommand::parse(task.body())?;
    if task.get("tailable").is_some_and(|v| v.truthy()) {
        bail!(BAD_VALUE, "tailable cursors are not supported on sharded collections: {ns}");
    }
    let shape = shape(task, ns, placement).await?;
    let batch_size = size(task, "batchSize")?;
    let replies =
        scatter::read_all(task, shards, |shard| shard_command(task, placement, shard, &shape)).await?;
    let merge = Merge::new(ns, replies, shape)?;
    first_batch(task, ns, Kind::Merge(Box::new(merge)), batch_size).await
}

async fn shape(task: &Task<'_>, ns: &str, placement: &Placement) -> Result<Shape> {
    let mut context = QueryContext::from(task.parse_context()?);
    if let Some(table) = &placement.table {
        context.collation = collation::of(task.body(), table)?;
    }
    let filter = task.document_or_empty("filter");
    text::note_index(task, ns, placement, filter, &mut context).await?;
    let filter = Matcher::parse(filter, &context)?;
    let sort = SortSpec::parse(task.document_or_empty("sort"))?.with_collation(&context.collation);
    let sort = sort.with_text(filter.text())?;
    // A near predicate sorts where the request does not.
    let by_distance = || filter.near().map(|(path, near)| SortSpec::by_distance(path, near));
    let sort = Some(sort).filter(|s| !s.is_empty()).or_else(by_distance);
    let projection = match task.get("projection").and_then(|v| v.as_document()) {
        Some(spec) if sort.is_some() && !spec.is_empty() => {
            Some(projection(spec, sort.as_ref(), &filter, &context)?)
        }
        _ => None,
    };
    let limit = size(task, "limit")?.filter(|n| *n > 0).map(|n| n as u64);
    Ok(Shape {
        sort,
        sort_key_field: false,
        projection,
        skip: size(task, "skip")?.unwrap_or(0) as u64,
        limit,
    })
}

/// What one of several shards is asked.
fn shard_command(task: &Task<'_>, placement: &Placement, shard: &str, shape: &Shape) -> DocBuf {
    let mut without = vec!["skip", "limit", "singleBatch"];
    if shape.projection.is_some() {
        without.push("projection");
    }
    task.forward(&without, &placement.versions(shard), |w| {
        if let Some(limit) = shape.limit {
            w.i64("limit", i64::try_from(limit.saturating_add(shape.skip)).unwrap_or(i64::MAX));
        }
    })
}
