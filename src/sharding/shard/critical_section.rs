//! A critical section: the time in which the placement of a collection or a database changes hands.
//!
//! ```text
//! catch-up   writes wait, reads go on
//! commit     reads wait too
//! ended      whoever waited checks its version again
//! ```
//! It lives in the placement, and so changes under the latch of what it protects: what passed the check before the
//! section began has also reached the trees before it.

use node::namespace::Access;
use std::sync::Arc;
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    CatchUp,
    Commit,
}

/// An entered section.
#[derive(Clone)]
pub struct Section {
    pub phase: Phase,
    /// Why, for currentOp and messages.
    pub reason: Arc<str>,
    ended: Arc<watch::Sender<bool>>,
}

impl Section {
    pub fn new(phase: Phase, reason: &str) -> Section {
        Section { phase, reason: reason.into(), ended: Arc::new(watch::Sender::new(false)) }
    }
    pub fn blocks(&self, access: Access) -> bool {
        self.phase == Phase::Commit || access == Access::Write
    }
    /// What a waiting request watches.
    pub fn signal(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }
    pub fn at(&self, phase: Phase) -> Section {
        Section { phase, ..self.clone() }
    }
    /// Wakes those who wait; the placement has lost the section already.
    pub fn end(&self) {
        self.ended.send_replace(true);
    }
}
