//! Samples of queries on a cluster: a router hands each to a shard that has the collection, and reads them all from the shards.

use super::Router;
use super::body::{Versions, batch, cursor_id};
use super::cluster::Call;
use super::task::Task;
use crate::chunk::ShardId;
use crate::messages::Message;
use crate::messages::sampling::KeepSample;
use document::{DocBuf, Document, Result, Value, doc};
use futures::future::join_all;
use node::sampling::Sample;
use node::sampling::samples::QUERIES;

impl Router {
    /// Hands a sample to one of the shards that have its collection.
    ///
    /// # Errors
    /// Those of the call; the sample is lost.
    pub async fn keep_sample(&self, sample: &Sample) -> Result<()> {
        let Some(placement) = self.cluster.placement(&sample.ns).await? else { return Ok(()) };
        let shards = placement.shards();
        let pick = usize::from(sample.id[0]) % shards.len().max(1);
        let Some(shard) = shards.get(pick) else { return Ok(()) };
        let command = KeepSample { sample: sample.to_document() }.to_document();
        let body = super::body::own(&command, "admin", self.clock(), &Versions::NONE);
        self.cluster.call(Call::new(shard, body.doc())).await.map(drop).map_err(|e| e.error)
    }
}

/// The documents of a collection of samples on every shard that match.
///
/// # Errors
/// Those of the reads.
pub async fn on_shards(task: &Task<'_>, ns: &str, filter: &Document) -> Result<Vec<DocBuf>> {
    let shards = task.all_shards().await?;
    let read = join_all(shards.iter().map(|shard| on_shard(task, shard, ns, filter))).await;
    Ok(read.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

async fn on_shard(task: &Task<'_>, shard: &ShardId, ns: &str, filter: &Document) -> Result<Vec<DocBuf>> {
    let (db, collection) = storage::split_namespace(ns);
    let find = doc! { "find": collection, "filter": filter.clone() };
    let mut found = Vec::new();
    let mut reply = task.read(shard, &task.own(&find, db, &Versions::NONE)).await?;
    loop {
        found.extend(batch(reply.doc()).map(|d| d.to_owned()));
        let id = cursor_id(reply.doc());
        if id == 0 {
            return Ok(found);
        }
        let more = doc! { "getMore": Value::Int64(id), "collection": collection };
        reply = task.read(shard, &task.own(&more, db, &Versions::NONE)).await?;
    }
}

/// `$listSampledQueries`.
pub(super) async fn list(task: &Task<'_>, spec: &Value) -> Result<Vec<DocBuf>> {
    let of = match spec.as_document().and_then(|d| d.get_str("namespace")) {
        Some(ns) => doc! { "ns": ns },
        None => Document::new(),
    };
    on_shards(task, QUERIES, &of).await
}
