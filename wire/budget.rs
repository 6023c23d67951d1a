//! What all connections of a node may hold of messages that are not read to their end, or are being run.
//!
//! ```text
//! a message  .. 64 KiB              free: the connection's own buffer
//!            .. 1 MiB               charged as memory grows with the bytes that arrive
//!            .. its claimed length  charged in full before the next byte is read, with what it decompresses to
//! ```
//! A message that was charged in full can always be read to its end, so messages never wait for each other in a circle.
//! A claim costs nothing until a mebibyte of it has arrived. Where the budget is used up a connection is not read on, which slows its
//! sender down, until others have ended; meanwhile a half-sent message that stands still or comes slower than [`RATE_MIN`] loses its connection.
//! A half-sent message of which nothing more comes loses it after [`QUIET_MAX`] in any case.
//!
//! Invariant: connections of other nodes are charged and never wait: a router's request holds its own budget while it waits for a
//! shard, and two shards that wait for each other must not do so over this.

use runtime::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::Notify;

/// A half-sent message is given up when nothing of it has come for this long.
pub const QUIET_MAX: Duration = Duration::from_secs(60);
/// How long a message may stand still, and take at least, while others wait for memory,
const GRACE: Duration = Duration::from_secs(2);
/// and the bytes a second it must come with beyond.
pub const RATE_MIN: usize = 256 * 1024;
/// A message waits this long for memory before its connection is given up.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How often a half-sent message is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// The budget of one node, shared by its connections.
#[derive(Debug)]
pub struct InputBudget {
    bytes_max: fn() -> usize,
    taken: AtomicUsize,
    waiting: AtomicUsize,
    freed: Notify,
}

impl InputBudget {
    /// `bytes_max` says at any time how much there may be. At least one message of the longest kind always fits, compressed and not.
    pub fn new(bytes_max: fn() -> usize) -> InputBudget {
        InputBudget {
            bytes_max,
            taken: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        }
    }
    /// Bytes charged now.
    pub fn taken(&self) -> usize {
        self.taken.load(SeqCst)
    }
    fn try_take(&self, bytes: usize) -> bool {
        let most = (self.bytes_max)().max(2 * crate::limits::MAX_MESSAGE);
        let fits = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= most);
        self.taken.fetch_update(SeqCst, SeqCst, fits).is_ok()
    }
    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, SeqCst);
        self.freed.notify_waiters();
    }
    /// Waits until `bytes` more fit; false when that took too long.
    async fn take(&self, bytes: usize) -> bool {
        let _waiting = Waiting::enter(self);
        let taken = async {
            loop {
                let freed = self.freed.notified();
                tokio::pin!(freed);
                freed.as_mut().enable();
                if self.try_take(bytes) {
                    return;
                }
                freed.await;
            }
        };
        tokio::time::timeout(WAIT_MAX, taken).await.is_ok()
    }
}

/// Counts one that waits for memory.
struct Waiting<'a>(&'a InputBudget);

impl Waiting<'_> {
    fn enter(budget: &InputBudget) -> Waiting<'_> {
        budget.waiting.fetch_add(1, SeqCst);
        Waiting(budget)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, SeqCst);
    }
}

/// What one connection has charged for the message that it reads or runs.
#[derive(Debug)]
pub(crate) struct Account {
    budget: Arc<InputBudget>,
    /// A connection of another node, which never waits.
    pub(crate) trusted: bool,
    charged: usize,
}

impl Account {
    pub(crate) fn new(budget: Arc<InputBudget>) -> Account {
        Account { budget, trusted: false, charged: 0 }
    }

    /// Charges so that `bytes` stand in the account, waiting if it must; false when there was no room in time.
    pub(crate) async fn raise(&mut self, bytes: usize) -> bool {
        let missing = bytes.saturating_sub(self.charged);
        if missing == 0 {
            return true;
        }
        if self.trusted {
            self.budget.taken.fetch_add(missing, SeqCst);
        } else if !self.budget.try_take(missing) && !self.budget.take(missing).await {
            return false;
        }
        self.charged += missing;
        true
    }
    pub(crate) fn clear(&mut self) {
        let charged = std::mem::take(&mut self.charged);
        if charged > 0 {
            self.budget.give_back(charged);
        }
    }

    /// Returns once a message that began at `began`, and of which `have` bytes are here, has come too slowly. Nothing of it
    /// comes while this runs.
    pub(crate) async fn overdue(&self, began: Instant, have: usize) {
        let quiet_since = Instant::now();
        let share = Duration::from_secs_f64(have as f64 / RATE_MIN as f64);
        loop {
            tokio::time::sleep(LOOK).await;
            let quiet = quiet_since.elapsed();
            let slow = quiet > GRACE || began.elapsed() > GRACE + share;
            if (slow && self.budget.waiting.load(SeqCst) > 0) || quiet > QUIET_MAX {
                return;
            }
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.clear();
    }
}
