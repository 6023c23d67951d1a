//! The balancer: rounds on the config server that ask shards for sizes and have ranges moved.
//!
//! The policy is [`protocol::balancer`]; here it gets its numbers ([`statistics`]) and its moves are made ([`rounds`]).
//! `config.settings {_id: "balancer"}` says whether and when rounds run; the commands write it.

mod commands;
mod rounds;
pub(crate) mod statistics;

use node::Node;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use tokio::sync::watch;

/// What there is to know of the balancer of one config server.
pub struct Balancer {
    rounds: AtomicI64,
    in_round: watch::Sender<bool>,
    running: AtomicBool,
    task: Mutex<Option<tokio::task::JoinHandle<()>>>,
    /// Ends the pause between two rounds.
    wake: Arc<tokio::sync::Notify>,
}

impl Balancer {
    pub(crate) fn new(_node: &Arc<Node>) -> Balancer {
        Balancer {
            rounds: AtomicI64::new(0),
            in_round: watch::Sender::new(false),
            running: AtomicBool::new(false),
            task: Mutex::new(None),
            wake: Arc::default(),
        }
    }
    /// Rounds since the node started.
    pub fn rounds(&self) -> i64 {
        self.rounds.load(Ordering::Relaxed)
    }
    pub fn is_in_round(&self) -> bool {
        *self.in_round.borrow()
    }
    /// Ends the rounds at once: the node is no longer primary, or stops.
    pub fn stop(&self) {
        self.running.store(false, Ordering::SeqCst);
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
        self.in_round.send_replace(false);
    }
}
