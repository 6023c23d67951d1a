//! What a transaction does in place of a commit: it enters locks and keeps its changes for later.

use super::locks::{Entered, Lock, LockTable};
use super::{Transaction, write_conflict};
use crate::namespace::SlotState;
use crate::snapshots::Frozen;
use crate::write::unit::Origin;
use document::{Doc, DocBuf, DocWriter, Result, bail};
use runtime::simulation::{self, Check};
use storage::entry::Draft;
use storage::{CollectionView, RecordId};

/// The part of a transaction in a [`crate::WriteUnit`].
pub(crate) struct Part<'a> {
    pub(super) transaction: &'a Transaction,
    pub(super) table: &'a LockTable,
    /// The namespace as it is, under its latch.
    pub(super) live: &'a SlotState,
    /// As the transaction's snapshot has it.
    pub(super) base: &'a Frozen,
    pub(super) writes: &'a mut Vec<DocBuf>,
    pub(super) locks: &'a mut Vec<Lock>,
}

impl Part<'_> {
    /// Whether the collection was there before the transaction.
    pub(crate) fn is_older(&self) -> bool {
        self.base.collection.is_some()
    }

    /// What the log keeps of a statement of a retryable write that the transaction executes: its number, and what its
    /// repetition is answered with.
    pub(crate) fn history(&self, origin: Origin<'_>) -> Option<DocBuf> {
        let stmt = origin.statement.filter(|stmt| *stmt >= 0)?;
        self.transaction.session.executes()?;
        Some(DocWriter::build(|w| {
            origin.more.iter().for_each(|more| w.fields_of(*more));
            w.i32("stmtId", stmt);
        }))
    }

    /// Keeps a change for the commit.
    pub(crate) fn push(&mut self, draft: &Draft<'_>, o: Doc<'_>) {
        self.writes.push(draft.to_doc_buf(o));
    }

    /// Locks a record that is to be changed. One that the transaction made itself needs no lock.
    pub(crate) fn lock_record(&mut self, record: RecordId) -> Result<()> {
        let Some(base) = self.base.collection.as_ref().filter(|base| record < base.next_record()) else {
            return Ok(());
        };
        if !self.enter(Lock::Record(base.meta().uuid, record))? {
            return Ok(());
        }
        let now = self.live.collection.as_ref().and_then(|c| c.get(record));
        same(now.map(|d| d.bytes()) == base.get(record).map(|d| d.bytes()))
    }

    /// Locks keys of unique indexes that are to be added or removed: (slot, encoded key).
    pub(crate) fn lock_keys<'k>(&mut self, keys: impl Iterator<Item = (usize, &'k [u8])>) -> Result<()> {
        let Some(base) = &self.base.collection else { return Ok(()) };
        for (slot, key) in keys {
            if !self.enter(Lock::Key(base.meta().uuid, slot, key.to_vec()))? {
                continue;
            }
            let now = self.live.collection.as_ref().and_then(|c| holder_of(c, slot, key));
            same(now == holder_of(base, slot, key))?;
        }
        Ok(())
    }

    /// Locks the name of a collection that is to be made.
    pub(crate) fn lock_namespace(&mut self, ns: &str) -> Result<()> {
        if self.is_older() {
            bail!(NAMESPACE_EXISTS, "Collection {ns} already exists.");
        }
        self.enter(Lock::Namespace(ns.to_string()))?;
        same(self.live.collection.is_none() && self.live.view.is_none())
    }

    /// Whether the lock is new to the transaction.
    fn enter(&mut self, lock: Lock) -> Result<bool> {
        match self.table.enter(&lock, self.transaction.serial, &self.transaction.ended()) {
            Entered::Before => Ok(false),
            Entered::HeldByAnother => Err(write_conflict()),
            Entered::Now => {
                self.locks.push(lock);
                Ok(true)
            }
        }
    }
}

/// The record that a unique index holds under a key.
fn holder_of<V: CollectionView>(view: &V, slot: usize, key: &[u8]) -> Option<RecordId> {
    view.index_cursor(slot)?.seek(key).filter(|e| e.key == key).map(|e| e.record)
}

fn same(unchanged: bool) -> Result<()> {
    match unchanged {
        true => Ok(()),
        false if simulation::omits(Check::WriteConflict) => Ok(()),
        false => Err(write_conflict()),
    }
}
