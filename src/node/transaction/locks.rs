//! What open transactions have changed or mean to: records, unique keys, names of collections.
//!
//! A transaction enters a lock under the shared latch of the namespace, where it also compares what it saw with what is
//! there. A write outside transactions looks here under the exclusive latch before it changes anything. So of two that
//! want the same record or key one comes first, and the other knows: a transaction fails at once with WriteConflict, a
//! plain write waits for the transaction to end.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use storage::RecordId;
use tokio::sync::watch;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lock {
    /// A record of the collection with this UUID.
    Record([u8; 16], RecordId),
    /// A key of its unique index at this slot.
    Key([u8; 16], usize, Vec<u8>),
    /// The name of a collection that is being created.
    Namespace(String),
}

/// Becomes true when a transaction has ended.
pub type Ended = watch::Receiver<bool>;

struct Holder {
    transaction: u64,
    ended: Ended,
}

#[derive(Default)]
pub struct LockTable {
    held: AtomicUsize,
    table: Mutex<HashMap<Lock, Holder>>,
}

/// What asking for a lock came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    Now,
    Before,
    HeldByAnother,
}

impl LockTable {
    /// Whether no lock is held at all: asked by every plain write, under a latch that orders it with those who enter.
    pub fn is_empty(&self) -> bool {
        self.held.load(Ordering::Relaxed) == 0
    }
    pub fn len(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
    pub fn enter(&self, lock: &Lock, transaction: u64, ended: &Ended) -> Entered {
        let mut table = self.table.lock();
        match table.get(lock) {
            Some(holder) if holder.transaction == transaction => Entered::Before,
            Some(_) => Entered::HeldByAnother,
            None => {
                table.insert(lock.clone(), Holder { transaction, ended: ended.clone() });
                self.held.store(table.len(), Ordering::Relaxed);
                Entered::Now
            }
        }
    }
    /// Tells when the holder of a lock ends; `None` when nobody holds it.
    pub fn holder(&self, lock: &Lock) -> Option<Ended> {
        self.table.lock().get(lock).map(|h| h.ended.clone())
    }
    pub fn leave(&self, locks: impl IntoIterator<Item = Lock>) {
        let mut table = self.table.lock();
        for lock in locks {
            table.remove(&lock);
        }
        self.held.store(table.len(), Ordering::Relaxed);
    }
}
