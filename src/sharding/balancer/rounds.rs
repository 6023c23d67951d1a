//! The main loop: every ten seconds, sooner while there is work, or as the fail point `overrideBalanceRoundInterval` says.
//!
//! A round splits chunks at the edges of zones, asks for sizes, selects migrations over all collections, in an order that
//! changes each time, and makes them at the same time; each shard is in at most one. Whatever fails is written to
//! `config.actionlog` and ends nothing but itself.

use super::moves::{Chosen, Made};
use super::statistics::{self, Statistics};
use crate::config::ConfigServer;
use crate::config::catalog::Sharded;
use document::{Document, Error, Result, doc};
use protocol::balancer::{CollectionView, IMBALANCE_FACTOR, Policy, Round, select};
use rand::seq::SliceRandom;
use runtime::Instant;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(10);
/// Migrations that the entry of a round describes.
const DESCRIBED_MAX: usize = 50;

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
    /// Each migration with its reason, for people.
    moves: Vec<Document>,
    error: Option<Error>,
}

impl ConfigServer {
    /// Starts the loops; this node is the config server's primary. Idempotent.
    pub fn start_balancer(self: &Arc<Self>) {
        if self.balancer.running.swap(true, Ordering::SeqCst) {
            return;
        }
        self.balancer
            .auto_splits
            .store(self.setting(super::auto_split::AUTO_SPLIT).is_some(), Ordering::SeqCst);
        self.recall_migrations();
        let config = Arc::downgrade(self);
        let rounds = runtime::spawn(async move {
            loop {
                let Some(config) = config.upgrade() else { return };
                let wait = config.balancer_tick().await;
                let interval = config.round_interval(wait);
                let balancer = &config.balancer;
                let (wake, to_move, node) =
                    (balancer.wake.clone(), balancer.to_move.clone(), config.node.clone());
                drop(config);
                tokio::select! {
                    _ = tokio::time::sleep(interval) => {}
                    _ = wake.notified() => {}
                    // The pause between two rounds that move something is kept.
                    _ = to_move.notified(), if interval >= INTERVAL => {}
                    _ = overridden(&node) => {}
                }
            }
        });
        self.balancer.tasks.lock().push(rounds);
        self.start_actions();
    }

    fn round_interval(&self, usual: Duration) -> Duration {
        let data = self.node.failpoints.should_with(OVERRIDE, |_| true);
        let millis = data.and_then(|d| d.get_i64("intervalMs")).and_then(|ms| u64::try_from(ms).ok());
        millis.map_or(usual, Duration::from_millis)
    }

    /// Runs a round if the settings allow it now; returns how long to wait for the next.
    async fn balancer_tick(&self) -> Duration {
        if self.ensure().await.is_err() {
            return INTERVAL;
        }
        // Not inside yet: it changes no chunk, and may take long where a shard cannot be reached.
        self.tell_auto_split().await;
        let _inside = self.balancer.enter();
        if !self.balancing_now() {
            return INTERVAL;
        }
        self.balancer.in_round.store(true, Ordering::SeqCst);
        let started = Instant::now();
        let report = self.balance_once().await;
        self.balancer.in_round.store(false, Ordering::SeqCst);
        self.balancer.rounds.fetch_add(1, Ordering::Relaxed);
        let logged = report.candidates > 0 || report.error.is_some();
        // What was split for being too big is moved next.
        let goes_on = report.moved > 0 || (report.candidates > 0 && report.error.is_none());
        if logged {
            self.log_action("balancer.round", "", report.details(started.elapsed())).await;
        }
        if goes_on { self.millis("balancerMigrationsThrottlingMs") } else { INTERVAL }
    }

    /// One round.
    async fn balance_once(&self) -> Report {
        let mut report = Report::default();
        let mut collections = self.splittable();
        if collections.is_empty() {
            return report;
        }
        // No collection is always first.
        collections.shuffle(&mut runtime::rng());
        for collection in collections.iter().filter(|c| c.is_balanced()) {
            if let Err(e) = self.split_at_zone_edges(collection).await {
                self.note_error(&mut report, "split", &collection.info.ns, e).await;
            }
        }
        let statistics = statistics::gather(self, &collections).await;
        for (shard, e) in &statistics.failed {
            self.note_error(&mut report, "statistics", shard, e.clone()).await;
        }
        let mut round = Round::new(&statistics.views);
        let mut chosen = self.defragmentation_moves(&collections, &statistics, &mut round);
        let selected = self.select_moves(&collections, &statistics, &mut round, &mut report).await;
        *self.balancer.under_way.lock() = selected.iter().map(|c| c.what.ns.clone()).collect();
        chosen.extend(selected);
        report.candidates = chosen.len();
        let outcomes = self.make_all(&chosen).await;
        for (chosen, outcome) in chosen.iter().zip(outcomes) {
            report.took_in(chosen, &outcome);
            self.defragmentation_moved(chosen, &outcome);
            match outcome {
                Ok(made) => report.moved += usize::from(made == Made::Moved),
                Err(e) => {
                    // What was begun ends with a failure; it begins again where the shards are too far apart.
                    self.balancer.under_way.lock().remove(&chosen.what.ns);
                    self.note_error(&mut report, "migration", &chosen.what.ns, e).await;
                }
            }
        }
        self.settle_unsure().await;
        self.balancer.signal();
        report
    }

    /// The migrations of the round; the time for choosing is bounded by a parameter.
    async fn select_moves(
        &self,
        collections: &[Sharded],
        statistics: &Statistics,
        round: &mut Round<'_>,
        report: &mut Report,
    ) -> Vec<Chosen> {
        let policy = self.balancer_policy();
        let until = Instant::now() + self.millis("balancerChunksSelectionTimeoutMs");
        let now = self.node.now_ms();
        let mut chosen = Vec::new();
        for collection in collections.iter().filter(|c| c.is_balanced()) {
            if round.is_full() || Instant::now() > until {
                break;
            }
            match self.view_unless_even(collection, statistics, policy) {
                Ok(None) => {}
                Ok(Some(view)) => {
                    let moves = select(&view, policy, round, &self.balancer.failures.lock(), now);
                    chosen.extend(moves.into_iter().map(|what| Chosen {
                        what,
                        collection: collection.clone(),
                        origin: None,
                    }));
                }
                Err(e) => self.note_error(report, "selection", &collection.info.ns, e).await,
            }
        }
        chosen
    }

    /// The collection with its chunks; `None` where its sizes alone show that there is nothing to do, so that chunks of
    /// most collections are never read.
    fn view_unless_even(
        &self,
        collection: &Sharded,
        statistics: &Statistics,
        policy: Policy,
    ) -> Result<Option<CollectionView>> {
        let bytes = statistics.bytes_of(&collection.info.ns);
        let known = || bytes.iter().flatten();
        let (low, high) = (known().min().copied().unwrap_or(0), known().max().copied().unwrap_or(0));
        let threshold = self.max_chunk_bytes(collection).saturating_mul(IMBALANCE_FACTOR);
        let even = policy == Policy::DataSize
            && high.saturating_sub(low) < threshold
            && !statistics.views.iter().any(|s| s.draining)
            && self.catalog().zone_ranges(&collection.info.ns).is_empty();
        if even { Ok(None) } else { statistics::view(self, collection, statistics).map(Some) }
    }

    /// Writes a failure down; the round goes on.
    async fn note_error(&self, report: &mut Report, step: &str, what: &str, e: Error) {
        let details = doc! { "step": step, "code": e.code, "errmsg": e.message.as_str() };
        self.log_action("balancer.error", what, details).await;
        report.error.get_or_insert(e);
    }
}

impl Report {
    fn took_in(&mut self, chosen: &Chosen, outcome: &Result<Made>) {
        let m = &chosen.what;
        if self.moves.len() >= DESCRIBED_MAX {
            return;
        }
        let mut d = doc! {
            "ns": m.ns.as_str(), "min": m.min.clone(), "from": m.from.as_str(), "to": m.to.as_str(),
            "reason": m.reason.name(), "moved": matches!(outcome, Ok(Made::Moved)),
        };
        if let Err(e) = outcome {
            d.push("errmsg", e.message.as_str());
        }
        self.moves.push(d);
    }
    fn details(self, took: Duration) -> Document {
        let mut details = doc! {
            "executionTimeMillis": took.as_millis() as i32, "errorOccured": self.error.is_some(),
        };
        if let Some(e) = &self.error {
            details.push("errmsg", e.message.as_str());
        }
        details.push("candidateChunks", self.candidates as i32);
        details.push("chunksMoved", self.moved as i32);
        details.push("moves", self.moves);
        details
    }
}
