//! The auto-merger's side of the catalog: which collections take part, what may be merged, and having it merged.

use super::actions::{Action, Next, outcome_of};
use crate::config::ConfigServer;
use crate::messages::chunks::ShardMergeAllChunks;
use crate::messages::{Flag, Message};
use crate::remote::Target;
use document::{Result, doc};
use protocol::balancer::auto_merger::Merge;

/// Chunks that one action merges at most, so that it does not keep the collection's chunks locked for long.
const CHUNKS_MAX: i64 = 1000;

impl ConfigServer {
    /// `config.settings {_id: "automerge", enabled}`; on unless it says otherwise.
    fn auto_merges(&self) -> bool {
        self.setting("automerge").and_then(|s| s.get_bool("enabled")).unwrap_or(true)
    }

    /// Begins a run when the interval is over. Collections with `noBalance`, those that are defragmented, and those with
    /// `enableAutoMerge: false` are left alone.
    pub(super) async fn look_for_merges(&self) {
        let now = self.node.now_ms();
        if !self.auto_merges() {
            return self.balancer.merger.lock().clear(now);
        }
        let interval_ms = self.parameters.int("autoMergerIntervalSecs").saturating_mul(1000);
        if !self.balancer.merger.lock().wants_scan(now, interval_ms) {
            return;
        }
        let mut found = Vec::new();
        for collection in self.splittable().iter().filter(|c| c.is_auto_merged()) {
            // Unreadable chunks are the business of checkMetadataConsistency.
            let shards = self.shards_to_merge_on(collection).unwrap_or_default();
            found.extend(
                shards.into_iter().map(|s| Merge { shard: s.to_string(), ns: collection.info.ns.clone() }),
            );
            tokio::task::yield_now().await;
        }
        self.balancer.merger.lock().begin(found, now);
    }

    pub(super) fn next_auto_merge(&self) -> Next {
        let (now, throttling) = (self.node.now_ms(), self.parameters.int("autoMergerThrottlingMS"));
        let mut merger = self.balancer.merger.lock();
        match merger.next_action(now, throttling) {
            Some(merge) => Next::Action(Action::AutoMerge(merge)),
            None => {
                let interval = self.parameters.int("autoMergerIntervalSecs").saturating_mul(1000);
                let at = merger.next_at(throttling).or_else(|| merger.next_run_at(interval));
                at.map_or(Next::Nothing, |at| Next::In(at.saturating_sub(now).max(0)))
            }
        }
    }

    pub(super) async fn perform_auto_merge(&self, merge: Merge) {
        let merged = self.while_heard(&merge.shard, self.merge_all(&merge)).await;
        if let Err(e) = &merged {
            let details = doc! { "step": "autoMerge", "shard": merge.shard.as_str(), "code": e.code, "errmsg": e.message.as_str() };
            self.log_action("balancer.error", &merge.ns, details).await;
        }
        let more = merged.as_ref().is_ok_and(|n| *n >= CHUNKS_MAX);
        let now = self.node.now_ms();
        self.balancer.merger.lock().ended(&merge, outcome_of(&merged), more, now);
    }

    /// How many chunks were merged.
    async fn merge_all(&self, merge: &Merge) -> Result<i64> {
        // It may have been switched off since it was found.
        let still = self.catalog().find_collection(&merge.ns)?.is_some_and(|c| c.is_auto_merged());
        if !still || !self.auto_merges() {
            return Ok(0);
        }
        let shard = self.catalog().shard(&merge.shard)?;
        let ask = ShardMergeAllChunks {
            ns: merge.ns.clone(),
            chunks_max: Some(CHUNKS_MAX),
            of_balancer: Flag(true),
        };
        let reply = self.remote.admin(Target::Host(&shard.host), ask.to_document()).await?;
        Ok(reply.get_i64("numMergedChunks").unwrap_or(0))
    }
}
