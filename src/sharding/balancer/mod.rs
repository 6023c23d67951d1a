//! The balancer: what the config server's primary does to keep data even, by itself.
//!
//! ```text
//! settings     whether and when it may work (config.settings, parameters)
//! statistics   what the policies see: shards, sizes, chunks, zones
//! rounds       the main loop: splits and migrations, waited for
//! moves        one migration, and what follows from how it ended
//! lost         migrations whose answers were lost
//! auto_split   the older generation's splitting
//! actions      the second loop: merges and measurements, not waited for
//! defragment   collections that are defragmented, phase by phase
//! merger       what may be merged, now and then
//! commands     what users ask and say
//! ```
//!
//! The decisions are [`protocol::balancer`]'s.
//!
//! Invariant: whoever is about to change chunks for the balancer enters [`Balancer::enter`] first and then looks whether the
//! balancer may work. balancerStop switches off first and then waits until nobody is inside, so afterwards nothing of the
//! balancer's can commit. A shard that was asked to merge, or splits by itself, may be paused and wake later: its commit
//! says whose it is, and enters in the same way. A migration whose donor is gone is fenced by a raised version of its chunk.
//!
//! A paused or cut-off shard keeps its connections, and what was asked of it never ends by itself. So whatever a round
//! waits for goes on only as long as its shards are heard of ([`ConfigServer::while_heard`]). balancerStop alone waits on for a
//! paused donor, which may still commit when it wakes.

mod actions;
mod auto_split;
mod commands;
mod defragment;
pub(crate) mod lost;
mod merger;
mod moves;
mod rounds;
mod settings;
pub(crate) mod statistics;

use crate::config::ConfigServer;
use crate::messages::Flag;
use crate::remote::Target;
use document::{Document, Result, bail};
use parking_lot::Mutex;
use protocol::balancer::auto_merger::AutoMerger;
use protocol::balancer::failures::Failures;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;
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
    /// Ends a pause after a round that had nothing to move: a defragmentation has by now.
    to_move: Arc<tokio::sync::Notify>,
    /// What failed lately.
    failures: Mutex<Failures>,
    /// Collections that the last round moved chunks of, and did not fail with.
    under_way: Mutex<BTreeSet<String>>,
    unsure: Arc<Mutex<lost::Unsure>>,
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

/// The most that a short question to a shard takes.
const QUESTION_MAX: Duration = Duration::from_secs(60);

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
    pub fn current_operations(&self) -> Vec<Document> {
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

impl ConfigServer {
    /// Does `work`, which a shard takes part in, as long as the shard is heard of.
    ///
    /// # Errors
    /// Those of `work`; HostUnreachable (6) when the shard has fallen silent, which may go on with it all the same.
    async fn while_heard<T>(&self, shard: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        // Boxed: what is done with two shards is wrapped twice.
        let work = Box::pin(work);
        match self.catalog().shard(shard) {
            Ok(shard) => self.remote.while_heard(&shard.host, work).await,
            // It is gone: so says whatever looks for it.
            Err(_) => work.await,
        }
    }

    /// Asks a shard something short, by its connection string, as long as it is heard of.
    ///
    /// # Errors
    /// The shard's own; HostUnreachable (6) when it has fallen silent, NetworkTimeout (89) when it is heard of and does not reply.
    pub(crate) async fn ask_while_heard(&self, host: &str, command: Document) -> Result<Document> {
        let asked = self.remote.while_heard(host, self.remote.admin(Target::Host(host), command));
        match tokio::time::timeout(QUESTION_MAX, asked).await {
            Ok(reply) => reply,
            Err(_) => bail!(NETWORK_TIMEOUT, "{host} did not reply within {} s", QUESTION_MAX.as_secs()),
        }
    }

    /// Enters for the commit of a merge, where the balancer has asked a shard for it: the shard may have been paused since.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) when the balancer has been stopped.
    pub(crate) fn enter_merge(&self, of_balancer: Flag) -> Result<Option<Inside>> {
        self.enter_for(of_balancer, || settings::mode(&self.balancer_settings()) == "full")
    }

    /// Enters for the commit of a split that a shard wants by itself.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) when shards are not to split any more.
    pub(crate) fn enter_auto_split(&self, auto_split: Flag) -> Result<Option<Inside>> {
        self.enter_for(auto_split, || self.auto_splits())
    }

    fn enter_for(&self, concerned: Flag, is_on: impl Fn() -> bool) -> Result<Option<Inside>> {
        let inside = concerned.0.then(|| self.balancer.enter());
        if concerned.0 && !is_on() {
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "The balancer was stopped before its change of chunks was committed"
            );
        }
        Ok(inside)
    }
}
