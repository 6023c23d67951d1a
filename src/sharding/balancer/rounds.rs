//! The rounds: every ten seconds, or as the fail point `overrideBalanceRoundInterval` says.
//!
//! A round splits chunks at the edges of zones, asks for sizes, selects migrations over all collections and makes them
//! at the same time; each shard is in at most one. A failed migration ends nothing but itself.

use super::statistics;
use crate::config::ConfigServer;
use crate::config::catalog::Sharded;
use crate::config::move_range::Migration;
use document::{Document, Result, Value, doc};
use protocol::balancer::{Move, select};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(10);
/// After a round that moved something the next comes soon.
const INTERVAL_WHEN_MOVING: Duration = Duration::from_secs(1);

/// The fail point that says how long to wait between two rounds.
const OVERRIDE: &str = "overrideBalanceRoundInterval";

/// Waits until the fail point is configured anew: a test that shortens the pause does not wait for the one under way.
async fn overridden(node: &node::Node) {
    let mut configured = node.failpoints.configured();
    while configured.changed().await.is_ok() {
        if node.failpoints.is_set(OVERRIDE) {
            return;
        }
    }
    std::future::pending().await
}

/// What a round did.
#[derive(Default)]
struct Report {
    candidates: usize,
    moved: usize,
}

impl ConfigServer {
    /// Starts the rounds; this node is the config server's primary. Idempotent.
    pub fn start_balancer(self: &Arc<Self>) {
        if self.balancer.running.swap(true, Ordering::SeqCst) {
            return;
        }
        let config = Arc::downgrade(self);
        let task = tokio::spawn(async move {
            loop {
                let Some(config) = config.upgrade() else { return };
                let wait = config.balancer_tick().await;
                let interval = config.round_interval(wait);
                let (wake, node) = (config.balancer.wake.clone(), config.node.clone());
                drop(config);
                tokio::select! {
                    _ = tokio::time::sleep(interval) => {}
                    _ = wake.notified() => {}
                    _ = overridden(&node) => {}
                }
            }
        });
        *self.balancer.task.lock() = Some(task);
    }

    fn round_interval(&self, usual: Duration) -> Duration {
        let data = self.node.failpoints.should_with(OVERRIDE, |_| true);
        let millis = data.and_then(|d| d.get_i64("intervalMs")).and_then(|ms| u64::try_from(ms).ok());
        millis.map_or(usual, Duration::from_millis)
    }

    /// Runs a round if the settings allow it now; answers how long to wait for the next.
    async fn balancer_tick(&self) -> Duration {
        if self.ensure().await.is_err() || !self.balancing_now() {
            return INTERVAL;
        }
        self.balancer.in_round.send_replace(true);
        let started = Instant::now();
        let outcome = self.balance_once().await;
        self.balancer.in_round.send_replace(false);
        self.balancer.rounds.fetch_add(1, Ordering::Relaxed);
        let millis = started.elapsed().as_millis() as i32;
        match outcome {
            Ok(report) => {
                if report.candidates > 0 {
                    let details = doc! {
                        "executionTimeMillis": millis, "errorOccured": false,
                        "candidateChunks": report.candidates as i32, "chunksMoved": report.moved as i32,
                    };
                    self.log_action("balancer.round", "", details).await;
                }
                if report.moved > 0 { INTERVAL_WHEN_MOVING } else { INTERVAL }
            }
            Err(e) => {
                let details =
                    doc! { "executionTimeMillis": millis, "errorOccured": true, "errmsg": e.message };
                self.log_action("balancer.round", "", details).await;
                INTERVAL
            }
        }
    }

    /// Neither stopped nor outside the active window.
    pub(crate) fn balancing_now(&self) -> bool {
        let settings = self.setting("balancer").unwrap_or_default();
        if super::commands::mode(&settings) == "off" {
            return false;
        }
        match settings.get_document("activeWindow") {
            Some(window) => in_window(window, self.node.now_ms()),
            None => true,
        }
    }

    /// One round.
    async fn balance_once(&self) -> Result<Report> {
        let shards = self.catalog().shards();
        let collections: Vec<Sharded> =
            self.catalog().collections().into_iter().filter(|c| !c.is_unsplittable()).collect();
        if shards.len() < 2 || collections.is_empty() {
            return Ok(Report::default());
        }
        for collection in &collections {
            self.split_at_zone_edges(collection).await?;
        }
        let sizes = statistics::sizes(self, &shards, &collections).await?;
        let mut busy = BTreeSet::new();
        let mut chosen: Vec<Migration> = Vec::new();
        for collection in &collections {
            let view = statistics::view(self, collection, &shards, &sizes)?;
            let moves = select(&view, &mut busy);
            chosen.extend(moves.into_iter().map(|m| self.migration_of(collection, m)));
        }
        let outcomes = futures::future::join_all(chosen.iter().map(|m| self.migrate_or_skip(m))).await;
        let moved = outcomes.into_iter().filter(|moved| *moved).count();
        Ok(Report { candidates: chosen.len(), moved })
    }

    fn migration_of(&self, collection: &Sharded, m: Move) -> Migration {
        let settings = self.setting("balancer").unwrap_or_default();
        Migration {
            ns: m.ns,
            from: m.from,
            to: m.to,
            min: Some(m.min),
            max: m.max,
            epoch: collection.info.epoch,
            max_chunk_bytes: self.max_chunk_bytes(collection),
            force_jumbo: if m.force_jumbo { 2 } else { 0 },
            wait_for_delete: settings.get("_waitForDelete").is_some_and(Value::truthy),
            secondary_throttle: None,
        }
    }

    async fn migrate_or_skip(&self, m: &Migration) -> bool {
        // Stopping the balancer ends the round before its next migration.
        if !self.balancing_now() {
            return false;
        }
        self.migrate(m).await.is_ok()
    }

    /// Splits the chunks that reach over the edge of a zone, so that every chunk lies in one zone or none.
    async fn split_at_zone_edges(&self, collection: &Sharded) -> Result<()> {
        let zones = self.catalog().zone_ranges(&collection.info.ns);
        let mut edges: Vec<Document> = zones.into_iter().flat_map(|z| [z.min, z.max]).collect();
        edges.dedup();
        for edge in edges {
            let Ok(key) = collection.key.encode_bound(&edge) else { continue };
            let Some(chunk) = self.catalog().chunk_at(collection, &edge)? else { continue };
            if chunk.min_key == key || chunk.max_key <= key {
                continue;
            }
            let request = doc! {
                "_configsvrCommitChunkSplit": collection.info.ns.as_str(), "collEpoch": collection.info.epoch,
                "timestamp": collection.info.timestamp, "min": chunk.min.clone(), "max": chunk.max.clone(),
                "splitPoints": vec![edge], "shard": &*chunk.shard,
            };
            self.run_own(request, |c, op, r| Box::pin(c.commit_chunk_split(op, r))).await?;
        }
        Ok(())
    }

    /// Whether the edge of a zone lies within a chunk.
    fn is_cut_by_zone(&self, collection: &Sharded) -> Result<bool> {
        for zone in self.catalog().zone_ranges(&collection.info.ns) {
            for edge in [zone.min, zone.max] {
                let Ok(key) = collection.key.encode_bound(&edge) else { continue };
                let chunk = self.catalog().chunk_at(collection, &edge)?;
                if chunk.is_some_and(|c| c.min_key < key && key < c.max_key) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Runs a command of this config server for itself.
    pub(crate) async fn run_own<F>(&self, command: Document, f: F) -> Result<Document>
    where
        F: for<'a> FnOnce(
            &'a ConfigServer,
            &'a node::Operation,
            node::Request<'a>,
        ) -> futures::future::BoxFuture<'a, Result<Document>>,
    {
        let bytes = command.to_doc_buf();
        let request = node::Request { db: "admin", body: bytes.doc(), sequences: &[] };
        let op = node::Operation::internal();
        f(self, &op, request).await
    }

    /// The shards' own numbers, for one collection.
    pub(crate) async fn compliance_of(
        &self,
        collection: &Sharded,
    ) -> Result<Option<protocol::balancer::Reason>> {
        let shards = self.catalog().shards();
        let sizes = statistics::sizes(self, &shards, std::slice::from_ref(collection)).await?;
        use protocol::balancer::Reason;
        Ok(match protocol::balancer::violation(&statistics::view(self, collection, &shards, &sizes)?) {
            None | Some(Reason::ChunksImbalance) if self.is_cut_by_zone(collection)? => {
                Some(Reason::ZoneViolation)
            }
            found => found,
        })
    }
}

/// Whether the time of day lies in `{start: "HH:MM", stop: "HH:MM"}`, which may reach over midnight. Times are UTC. An
/// unreadable window does not stop the balancer.
fn in_window(window: &Document, now_ms: i64) -> bool {
    let minutes = |name: &str| -> Option<i64> {
        let (h, m) = window.get_str(name)?.split_once(':')?;
        Some(h.trim().parse::<i64>().ok()? * 60 + m.trim().parse::<i64>().ok()?)
    };
    let (Some(start), Some(stop)) = (minutes("start"), minutes("stop")) else { return true };
    let now = now_ms.div_euclid(60_000).rem_euclid(24 * 60);
    if start <= stop { start <= now && now < stop } else { now >= start || now < stop }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_may_reach_over_midnight() {
        let at = |h: i64, m: i64| (h * 60 + m) * 60_000;
        let day = doc! { "start": "08:00", "stop": "20:30" };
        assert!(in_window(&day, at(8, 0)) && in_window(&day, at(20, 29)) && !in_window(&day, at(20, 30)));
        let night = doc! { "start": "23:00", "stop": "6:00" };
        assert!(
            in_window(&night, at(23, 0)) && in_window(&night, at(5, 59)) && !in_window(&night, at(12, 0))
        );
        assert!(in_window(&doc! { "start": "x" }, 0));
    }
}
