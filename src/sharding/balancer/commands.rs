//! balancerStart, balancerStop, balancerStatus, balancerCollectionStatus.

use crate::config::{ConfigServer, SETTINGS, argument, put, require_majority};
use document::{Document, Result, doc};
use node::{Operation, Request};
use std::sync::Arc;

const MIB: i64 = 1024 * 1024;

/// `full` or `off`, as the settings say.
pub(super) fn mode(settings: &Document) -> &'static str {
    let stopped = settings.get("stopped").is_some_and(|v| v.truthy());
    let off = settings.get_str("mode") == Some("off");
    if stopped || off { "off" } else { "full" }
}

impl ConfigServer {
    /// `{_configsvrBalancerStart: 1}`: rounds run from now on.
    pub async fn balancer_start(self: &Arc<Self>, op: &Operation) -> Result<Document> {
        require_majority(op, "_configsvrBalancerStart")?;
        self.ensure().await?;
        self.set_balancing(true).await?;
        self.start_balancer();
        self.balancer.wake.notify_one();
        self.log_action("balancer.start", "", Document::new()).await;
        Ok(Document::new())
    }

    /// `{_configsvrBalancerStop: 1, maxTimeMS?}`: no round begins any more, and the one under way has ended.
    ///
    /// # Errors
    /// MaxTimeMSExpired (50) while the round goes on; rounds stay stopped.
    pub async fn balancer_stop(&self, op: &Operation) -> Result<Document> {
        require_majority(op, "_configsvrBalancerStop")?;
        self.ensure().await?;
        self.set_balancing(false).await?;
        let mut in_round = self.balancer.in_round.subscribe();
        op.interruptible(async move {
            // The sender lives as long as the balancer.
            let _ = in_round.wait_for(|running| !running).await;
        })
        .await?;
        self.log_action("balancer.stop", "", Document::new()).await;
        Ok(Document::new())
    }

    async fn set_balancing(&self, on: bool) -> Result<()> {
        let mut settings = self.setting("balancer").unwrap_or_else(|| doc! { "_id": "balancer" });
        settings.insert("mode", if on { "full" } else { "off" });
        settings.insert("stopped", !on);
        self.commit(&[put(SETTINGS, settings)]).await
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
        let violation = self.compliance_of(&collection).await?;
        reply.push("balancerCompliant", violation.is_none());
        if let Some(reason) = violation {
            reply.push("firstComplianceViolation", reason.name());
        }
        Ok(reply)
    }
}
