//! balancerStart, balancerStop, balancerStatus, balancerCollectionStatus.

use super::settings::mode;
use crate::config::{ConfigServer, SETTINGS, argument, change, require_majority};
use document::{Document, Result, doc};
use node::{Operation, Request};
use protocol::balancer::Reason;

const MIB: i64 = 1024 * 1024;

impl ConfigServer {
    /// `{_configsvrBalancerStart: 1}`: rounds run from now on. Their loops begin and end with the reign of the config server's
    /// primary, and not here: a node that is deposed meanwhile would go on with them.
    pub async fn balancer_start(&self, op: &Operation) -> Result<Document> {
        require_majority(op, "_configsvrBalancerStart")?;
        self.ensure().await?;
        self.set_balancing(true).await?;
        self.balancer.wake.notify_one();
        self.balancer.signal();
        self.log_action("balancer.start", "", Document::new()).await;
        Ok(Document::new())
    }

    /// `{_configsvrBalancerStop: 1, maxTimeMS?}`: nothing of the balancer's begins any more, and what was under way has
    /// ended, so that it changes no chunk afterwards. Shards that split chunks by themselves are told to stop.
    ///
    /// # Errors
    /// MaxTimeMSExpired (50) while something goes on; the balancer stays stopped.
    pub async fn balancer_stop(&self, op: &Operation) -> Result<Document> {
        require_majority(op, "_configsvrBalancerStop")?;
        self.ensure().await?;
        self.set_balancing(false).await?;
        op.interruptible(self.tell_auto_split()).await?;
        op.interruptible(self.balancer.left()).await?;
        op.interruptible(self.join_unsure()).await??;
        self.log_action("balancer.stop", "", Document::new()).await;
        Ok(Document::new())
    }

    async fn set_balancing(&self, on: bool) -> Result<()> {
        let before = self.setting("balancer").unwrap_or_else(|| doc! { "_id": "balancer" });
        let mut settings = before.clone();
        settings.insert("mode", if on { "full" } else { "off" });
        settings.insert("stopped", !on);
        let changed = [Some((before, settings)), self.auto_split_with_balancer(on)];
        let writes = changed.into_iter().flatten().map(|(before, after)| change(SETTINGS, before, after));
        self.commit(&writes.collect::<Vec<_>>()).await
    }

    /// `{_configsvrBalancerStatus: 1}`.
    pub async fn balancer_status(&self) -> Result<Document> {
        self.ensure().await?;
        let settings = self.setting("balancer").unwrap_or_default();
        Ok(doc! {
            "mode": mode(&settings), "inBalancerRound": self.balancer.is_in_round(),
            "numBalancerRounds": self.balancer.rounds(), "term": self.node.log.term(),
        })
    }

    /// `{_configsvrBalancerCollectionStatus: ns}`: from the shards' sizes as they are now.
    ///
    /// # Errors
    /// NamespaceNotSharded (118), and those of a shard that does not answer.
    pub async fn balancer_collection_status(&self, request: Request<'_>) -> Result<Document> {
        self.ensure().await?;
        let collection = self.catalog().sharded(argument(&request)?)?;
        let bytes = self.max_chunk_bytes(&collection);
        let mut reply = Document::new();
        if bytes % MIB == 0 {
            reply.push("chunkSize", bytes / MIB);
        } else {
            reply.push("chunkSize", bytes as f64 / MIB as f64);
        }
        if collection.is_defragmented() {
            reply.push("balancerCompliant", false);
            reply.push("firstComplianceViolation", Reason::DefragmentingChunks.name());
            reply.push("details", self.defragmentation_progress(&collection)?);
            return Ok(reply);
        }
        let violation = self.compliance_of(&collection).await?;
        reply.push("balancerCompliant", violation.is_none());
        if let Some(reason) = violation {
            reply.push("firstComplianceViolation", reason.name());
        }
        Ok(reply)
    }
}
