//! The balancer: what the config server's primary does to keep data even, by itself.
//!
//! ```text
//! settings     whether and when it may work (config.settings, parameters)
//! statistics   what the policies see: shards, sizes, chunks, zones
//! rounds       the main loop: splits and migrations, waited for
//! moves        one migration, and what follows from how it ended
//! auto_split   the older generation's splitting
//! actions      the second loop: merges and measurements, not waited for
//! defragment   collections that are defragmented, phase by phase
//! merger       what may be merged, now and then
//! silence      shards that do not reply hold nothing up
//! commands     what users ask and say
//! ```
//!
//! The decisions are [`protocol::balancer`]'s.
//!
//! Invariant: whoever is about to change chunks for the balancer enters [`Balancer::enter`] first and then looks whether the
//! balancer may work. balancerStop switches off first and then waits until nobody is inside, so afterwards nothing of the
//! balancer's can commit.

mod actions;
mod auto_split;
mod commands;
mod defragment;
mod merger;
mod moves;
mod rounds;
mod settings;
mod silence;
pub(crate) mod statistics;

use parking_lot::Mutex;
use protocol::balancer::auto_merger::AutoMerger;
use protocol::balancer::failures::Failures;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What there is to know of the balancer of one config server.
#[derive(Default)]
pub struct Balancer {
    rounds: AtomicI64,
    in_round: AtomicBool,
    running: AtomicBool,
    /// Some shard may split chunks by itself: all were told to, in this reign or perhaps the one before, and not all have
    /// replied since that they no longer do.
    auto_splits: AtomicBool,
    /// Held while the shards are told.
    telling: tokio::sync::Mutex<()>,
    /// How many are inside: a round, and each action of the second loop.
    inside: Arc<watch::Sender<usize>>,
    tasks: Mutex<Vec<tokio::task::JoinHandle<()>>>,
    /// Ends the pause between two rounds.
    wake: Arc<tokio::sync::Notify>,
    /// What failed lately.
    failures: Mutex<Failures>,
    /// Collections that the last round moved chunks of, and did not fail with.
    under_way: Mutex<BTreeSet<String>>,
    /// Shards that may be in a migration whose answer was lost.
    unsure: Arc<Mutex<BTreeSet<String>>>,
    /// Wakes the second loop.
    wake_actions: Arc<tokio::sync::Notify>,
    /// The second loop is to look at the catalog again.
    rescan: AtomicBool,
    /// Actions of the second loop.
    actions: Mutex<JoinSet<()>>,
    outstanding: Arc<AtomicUsize>,
    defragmentations: Mutex<defragment::Defragmentations>,
    merger: Mutex<AutoMerger>,
}

/// An action under way.
struct Outstanding(Arc<AtomicUsize>);

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Two shards that are in a migration of the balancer's. Unless its end is known, they stay noted.
pub(super) struct Unsure {
    all: Arc<Mutex<BTreeSet<String>>>,
    shards: [String; 2],
    pub(super) is_over: bool,
}

impl Drop for Unsure {
    fn drop(&mut self) {
        if !self.is_over {
            self.all.lock().extend(self.shards.clone());
        }
    }
}

/// Somebody who may change chunks for the balancer.
pub(crate) struct Inside(Arc<watch::Sender<usize>>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n = n.saturating_sub(1));
    }
}

impl Balancer {
    /// Rounds since the node started.
    pub fn rounds(&self) -> i64 {
        self.rounds.load(Ordering::Relaxed)
    }
    pub fn is_in_round(&self) -> bool {
        self.in_round.load(Ordering::SeqCst)
    }
    fn enter(&self) -> Inside {
        self.inside.send_modify(|n| *n += 1);
        Inside(self.inside.clone())
    }
    /// Waits until nobody is inside.
    async fn left(&self) {
        let mut inside = self.inside.subscribe();
        // The sender lives as long as the balancer.
        let _ = inside.wait_for(|n| *n == 0).await;
    }
    fn unsure_of(&self, from: &str, to: &str) -> Unsure {
        Unsure { all: self.unsure.clone(), shards: [from.to_string(), to.to_string()], is_over: false }
    }
    fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::SeqCst)
    }
    fn note_outstanding(&self) -> Outstanding {
        self.outstanding.fetch_add(1, Ordering::SeqCst);
        Outstanding(self.outstanding.clone())
    }
    /// Has the second loop look for something to do.
    pub(crate) fn signal(&self) {
        self.rescan.store(true, Ordering::SeqCst);
        self.wake_actions.notify_one();
    }
    /// Ends the loops at once: the node is no longer primary, or stops.
    pub fn stop(&self) {
        self.running.store(false, Ordering::SeqCst);
        for task in self.tasks.lock().drain(..) {
            task.abort();
        }
        self.in_round.store(false, Ordering::SeqCst);
        *self.failures.lock() = Failures::default();
        self.under_way.lock().clear();
        self.actions.lock().abort_all();
        *self.defragmentations.lock() = defragment::Defragmentations::default();
        *self.merger.lock() = AutoMerger::default();
    }
    /// Rows of `$currentOp`.
    pub fn current_operations(&self) -> Vec<document::Document> {
        if !self.running.load(Ordering::SeqCst) {
            return Vec::new();
        }
        vec![
            document::doc! {
                "type": "op", "desc": "Balancer", "active": self.is_in_round(), "op": "none", "ns": "",
                "numBalancerRounds": self.rounds(),
            },
            document::doc! {
                "type": "op", "desc": "BalancerSecondary", "active": self.outstanding() > 0, "op": "none", "ns": "",
                "outstandingActions": self.outstanding() as i64,
            },
        ]
    }
}
