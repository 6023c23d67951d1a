//! The older generation's splitting as the config server sees it: whether shards are to split, and the chunk that grows at an
//! end of the key space.

use super::moves::Chosen;
use super::settings::is_balanced;
use super::statistics;
use crate::config::{ConfigServer, argument, required_doc};
use crate::remote::Target;
use document::{Document, Result, doc};
use node::{Operation, Request};
use protocol::balancer::move_to_least;
use std::sync::atomic::Ordering;

impl ConfigServer {
    /// Tells the shards whether to split chunks by themselves, once anybody has said so in `config.settings`.
    pub(super) async fn tell_auto_split(&self) {
        let Some(setting) = self.setting("autosplit") else { return };
        let enabled = setting.get_bool("enabled").unwrap_or(false);
        if !enabled && !self.balancer.auto_splits.swap(false, Ordering::SeqCst) {
            return;
        }
        self.balancer.auto_splits.store(enabled, Ordering::SeqCst);
        let command = doc! { "_shardsvrSetAutoSplit": 1, "enabled": enabled, "maxChunkSizeBytes": self.usual_chunk_bytes() };
        let shards = self.catalog().shards();
        let tell = |host: String| {
            let command = command.clone();
            async move { self.remote.admin(Target::Host(&host), command).await }
        };
        // A shard that is not reached now is told in the next round.
        drop(futures::future::join_all(shards.into_iter().map(|s| tell(s.host))).await);
    }

    /// `{_configsvrRebalanceChunk: ns, min}`: the chunk is moved to the shard that has least of the collection, if it is
    /// balanced at all. A shard asks for it when it has split off the end of a growing key.
    ///
    /// # Errors
    /// NamespaceNotSharded (118); the migration's.
    pub async fn rebalance_chunk(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        self.ensure().await?;
        let ns = argument(&request)?;
        let body = request.body.to_document();
        let min = required_doc(&body, "min")?;
        let collection = self.catalog().sharded(ns)?;
        let _inside = self.balancer.enter();
        if !self.balancing_now() || !is_balanced(&collection) {
            return Ok(Document::new());
        }
        let statistics = statistics::gather(self, std::slice::from_ref(&collection)).await;
        let view = statistics::view(self, &collection, &statistics)?;
        let key = collection.key.encode_bound(min)?;
        let found = view.chunks.iter().position(|c| c.min_key == key && !c.jumbo);
        if let Some(what) = found.and_then(|at| move_to_least(&view, at, &statistics.views)) {
            let chosen = Chosen { what, collection, origin: None };
            op.interruptible(self.make(&chosen)).await??;
        }
        Ok(Document::new())
    }
}
