//! The older generation's splitting as the config server sees it: whether shards are to split, and the chunk that grows at an
//! end of the key space.

use super::moves::Chosen;
use super::statistics;
use crate::config::ConfigServer;
use crate::config::catalog::Sharded;
use crate::messages::Message;
use crate::messages::balancing::{ChunkSizes, OwnChunkSize, RebalanceChunk, SetAutoSplit};
use document::{Document, Result};
use node::{Operation, Request};
use protocol::balancer::move_to_least;
use std::sync::atomic::Ordering;

/// The document of `config.settings` that says whether shards split chunks.
pub(super) const AUTO_SPLIT: &str = "autosplit";
const ENABLED: &str = "enabled";
/// There: balancerStop has switched it off, and balancerStart is to switch it on again.
const STOPPED: &str = "stopped";

impl ConfigServer {
    /// Chunks are to be split as they grow.
    pub(super) fn auto_splits(&self) -> bool {
        self.setting(AUTO_SPLIT).and_then(|s| s.get_bool(ENABLED)).unwrap_or(false)
    }

    /// Tells the shards whether to split chunks by themselves: again in every round while they are to, and otherwise until
    /// all of them have replied, since one that was not reached goes on splitting.
    pub(crate) async fn tell_auto_split(&self) {
        // What is told last is what holds.
        let _telling = self.balancer.telling.lock().await;
        let enabled = self.auto_splits();
        if !enabled && !self.balancer.auto_splits.load(Ordering::SeqCst) {
            return;
        }
        self.balancer.auto_splits.store(true, Ordering::SeqCst);
        let command = self.auto_split_command(enabled).to_document();
        let shards = self.catalog().shards();
        let tell = |host: String| {
            let command = command.clone();
            async move { self.ask_while_heard(&host, command).await }
        };
        let told = futures::future::join_all(shards.into_iter().map(|s| tell(s.host))).await;
        if !enabled && told.iter().all(Result::is_ok) {
            self.balancer.auto_splits.store(false, Ordering::SeqCst);
        }
    }

    /// What shards are told: from what size on they split, and where a collection has a size of its own.
    fn auto_split_command(&self, enabled: bool) -> SetAutoSplit {
        let own = |c: Sharded| {
            let bytes = c.document.get_i64("maxChunkSizeBytes")?;
            Some(OwnChunkSize { ns: c.info.ns, bytes })
        };
        let sizes = enabled.then(|| ChunkSizes {
            usual_bytes: self.usual_chunk_bytes(),
            own: self.splittable().into_iter().filter_map(own).collect(),
        });
        SetAutoSplit { sizes }
    }

    /// The setting as it is, and once the balancer is switched on or off; `None` where that changes nothing. Switching off ends
    /// splitting too, and it is resumed with the balancer; between the two a user may switch it on by itself.
    pub(super) fn auto_split_with_balancer(&self, on: bool) -> Option<(Document, Document)> {
        let before = self.setting(AUTO_SPLIT)?;
        let concerned = if on { STOPPED } else { ENABLED };
        if !before.get_bool(concerned).unwrap_or(false) {
            return None;
        }
        let mut setting = before.clone();
        setting.insert(ENABLED, on);
        setting.insert(STOPPED, !on);
        Some((before, setting))
    }

    /// [`RebalanceChunk`]: the chunk is moved to the shard that has least of the collection, if it is
    /// balanced at all. A shard asks for it when it has split off the end of a growing key.
    ///
    /// # Errors
    /// NamespaceNotSharded (118); the migration's.
    pub async fn rebalance_chunk(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        self.ensure().await?;
        let RebalanceChunk { ns, min } = RebalanceChunk::parse(request.body)?;
        let collection = self.catalog().sharded(&ns)?;
        let _inside = self.balancer.enter();
        if !self.balancing_now() || !collection.is_balanced() {
            return Ok(Document::new());
        }
        let statistics = statistics::gather(self, std::slice::from_ref(&collection)).await;
        let view = statistics::view(self, &collection, &statistics)?;
        let key = collection.key.encode_bound(&min)?;
        let found = view.chunks.iter().position(|c| c.min_key == key && !c.jumbo);
        if let Some(what) = found.and_then(|at| move_to_least(&view, at, &statistics.views)) {
            let chosen = [Chosen { what, collection, origin: None }];
            op.interruptible(self.make_all(&chosen))
                .await?
                .into_iter()
                .try_for_each(|made| made.map(drop))?;
        }
        Ok(Document::new())
    }
}
