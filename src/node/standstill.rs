//! A standstill: what clients want of a cluster's data waits, whatever it concerns.
//!
//! ```text
//! waits                  every request that was sent for a version: writes, and reads too where they are held as well
//!                        the commit of a transaction that is not prepared
//! is refused             preparing a transaction
//! goes on                what the nodes do among themselves; the decision about a prepared transaction
//! ```
//! It stands above the critical sections of single namespaces, under the same latches: what has passed the check before a standstill began
//! has reached the trees when the commit gate was held alone once ([`Node::stand_still`]). So after all shards stand still, and each has waited for
//! its prepared transactions, every transaction has committed on all shards or on none.

use crate::Node;
use crate::namespace::{Access, Refusal};
use crate::operation::Received;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use tokio::sync::watch;

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    Writes = 1,
    ReadsAndWrites = 2,
}

#[derive(Default)]
pub struct Standstill {
    /// 0, or an [`Extent`].
    extent: AtomicU8,
    ended: Mutex<Option<watch::Sender<bool>>>,
}

impl Standstill {
    pub(crate) fn begin(&self, extent: Extent) {
        let mut ended = self.ended.lock();
        ended.get_or_insert_with(|| watch::Sender::new(false));
        self.extent.store(extent as u8, SeqCst);
    }
    /// Lets those go on who wait. Without a standstill nothing happens.
    pub fn end(&self) {
        let ended = {
            let mut ended = self.ended.lock();
            self.extent.store(0, SeqCst);
            ended.take()
        };
        if let Some(ended) = ended {
            ended.send_replace(true);
        }
    }
    pub fn holds(&self, extent: Extent) -> bool {
        self.extent.load(SeqCst) >= extent as u8
    }
    /// The end of the standstill; `None` while there is none.
    pub fn signal(&self) -> Option<watch::Receiver<bool>> {
        self.ended.lock().as_ref().map(watch::Sender::subscribe)
    }
    /// Called under the latch of what the request is about.
    pub(crate) fn check(&self, received: &Received, access: Access) -> Result<(), Refusal> {
        let extent = match access {
            Access::Write => Extent::Writes,
            Access::Read => Extent::ReadsAndWrites,
        };
        if !self.holds(extent) || (received.shard.is_none() && received.database.is_none()) {
            return Ok(());
        }
        match self.signal() {
            Some(signal) => Err(Refusal::CriticalSection(signal)),
            None => Ok(()),
        }
    }
}

impl Node {
    /// Begins a standstill, or makes one that holds writes hold reads too. When it returns, no commit is under way that has not seen it.
    pub fn stand_still(&self, extent: Extent) {
        self.namespaces.standstill.begin(extent);
        drop(self.gate.write());
    }

    /// Waits until the transactions have ended that are prepared, or about to be.
    pub async fn wait_prepared_ended(&self) {
        for t in self.transactions.open().into_iter().filter(|t| t.is_preparing() || t.is_prepared()) {
            t.wait_ended().await;
        }
    }

    /// When all data was last exchanged, in this life of the node; whoever has read it before must not change what it finds by what it read.
    pub fn restored_at(&self) -> u64 {
        self.restored_ts.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::version::ShardVersion;

    #[test]
    fn what_carries_a_version_waits_and_the_rest_goes_on() {
        let standstill = Standstill::default();
        let sent = Received { shard: Some(ShardVersion::IGNORED), database: None };
        let passes = |received: &Received, access| standstill.check(received, access).is_ok();
        assert!(passes(&sent, Access::Write) && standstill.signal().is_none());
        standstill.begin(Extent::Writes);
        assert!(!passes(&sent, Access::Write) && passes(&sent, Access::Read));
        standstill.begin(Extent::ReadsAndWrites);
        assert!(!passes(&sent, Access::Read) && passes(&Received::default(), Access::Write));
        let signal = standstill.signal().unwrap();
        standstill.end();
        assert!(*signal.borrow() && passes(&sent, Access::Write));
    }
}
