//! `count` and `distinct`: asked of every shard concerned, and put together.

use super::body::{Placement, ok_reply};
use super::cursor::size;
use super::task::{Retry, Task};
use super::{collation, scatter, single};
use document::{Collation, DocBuf, Document, Result, Value, bail, doc};
use node::read::count::CountCommand;
use node::read::distinct::DistinctCommand;
use query::matcher::Matcher;
use std::collections::BTreeMap;
use wire::limits::MAX_USER_DOCUMENT;

pub async fn count(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    CountCommand::parse(task.body())?;
    let mut retry = Retry::default();
    loop {
        let Some(placement) = task.placement(&ns).await? else {
            check_query(task)?;
            return Ok(ok_reply(doc! { "n": 0 }));
        };
        match count_at(task, &ns, &placement).await {
            Ok(reply) => return Ok(reply),
            Err(e) if super::find::is_view_of_sharded(&e) => {
                return super::aggregate::count_on_view(task, &e).await;
            }
            Err(e) => retry.absorb(task, &ns, e).await?,
        }
    }
}

/// There is nothing to read, but what was asked for must make sense.
fn check_query(task: &Task<'_>) -> Result<()> {
    let context = collation::context_of_nothing(task)?;
    Matcher::parse(task.document_or_empty("query"), &context).map(drop)
}

async fn count_at(task: &Task<'_>, ns: &str, placement: &Placement) -> Result<DocBuf> {
    let shards = scatter::targets(task, placement, task.document_or_empty("query"))?;
    if let [shard] = shards.as_slice() {
        return single::read(task, ns, placement, shard).await;
    }
    let skip = size(task, "skip")?.unwrap_or(0) as i64;
    let limit = task.get("limit").and_then(|v| v.as_i64()).map_or(0, i64::saturating_abs);
    let replies = scatter::read_all(task, &shards, |shard| {
        task.forward(&["skip", "limit"], &placement.versions(shard), |w| {
            if limit > 0 {
                w.i64("limit", limit.saturating_add(skip));
            }
        })
    })
    .await?;
    let all: i64 = replies.iter().filter_map(|(_, r)| r.doc().get_i64("n")).sum();
    let n = (all - skip).max(0);
    let n = if limit > 0 { n.min(limit) } else { n };
    Ok(ok_reply(doc! { "n": number(n) }))
}

/// Small counts are 32-bit, as the real server's.
pub fn number(n: i64) -> Value {
    i32::try_from(n).map_or(Value::Int64(n), Value::Int32)
}

pub async fn distinct(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    DistinctCommand::parse(task.body())?;
    let mut retry = Retry::default();
    loop {
        let Some(placement) = task.placement(&ns).await? else {
            check_query(task)?;
            return Ok(ok_reply(doc! { "values": Value::Array(Vec::new()) }));
        };
        match distinct_at(task, &ns, &placement).await {
            Ok(reply) => return Ok(reply),
            Err(e) if super::find::is_view_of_sharded(&e) => {
                return super::aggregate::distinct_on_view(task, &e).await;
            }
            Err(e) => retry.absorb(task, &ns, e).await?,
        }
    }
}

async fn distinct_at(task: &Task<'_>, ns: &str, placement: &Placement) -> Result<DocBuf> {
    let shards = scatter::targets(task, placement, task.document_or_empty("query"))?;
    if let [shard] = shards.as_slice() {
        return single::read(task, ns, placement, shard).await;
    }
    let replies =
        scatter::read_all(task, &shards, |shard| task.forward(&[], &placement.versions(shard), |_| {}))
            .await?;
    let collation = match &placement.table {
        Some(table) => collation::of(task.body(), table)?,
        None => Collation::SIMPLE,
    };
    let (mut values, mut bytes) = (BTreeMap::<Vec<u8>, Value>::new(), 0);
    for (_, reply) in &replies {
        for e in reply.doc().get("values").and_then(|v| v.as_array()).into_iter().flat_map(|a| a.iter()) {
            let mut key = Vec::new();
            collation.append_key(&mut key, e.value(), false);
            values.entry(key).or_insert_with(|| {
                bytes += e.whole().len();
                e.value().to_value()
            });
            // Each shard's are bounded so.
            if bytes > MAX_USER_DOCUMENT {
                bail!(17217, "distinct too big, 16mb cap");
            }
        }
    }
    let mut reply = Document::new();
    reply.push("values", Value::Array(values.into_values().collect()));
    Ok(ok_reply(reply))
}
