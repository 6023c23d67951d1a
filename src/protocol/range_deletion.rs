//! When a range that this shard gave away (or did not receive in the end) may be deleted.
//!
//! A task is addressed by collection UUID and range, never by name alone: a collection dropped and made again under
//! the same name has another UUID, and its documents are nobody's orphans.
//!
//! Invariant: documents are deleted only while the task is ready, its time has come, this shard does not own the range
//! and nobody reads through a filter that does. Each document is checked once more under the latch.
//!
//! # Who may be waiting for whom
//!
//! ```text
//! who waits                     for whom                          how it ends
//! a pending task                the decision of its migration     the donor's coordinator writes it, after a crash too
//! a ready task                  orphanCleanupDelaySecs            by the clock
//!                               cursors with an older filter      they end, or time out when nobody reads them
//!                               placement that is not known       a refresh; repeated while the config server is away
//!                               a range that seems to be owned    looked at again: orphans stay rather than documents go
//! a migration to this shard     tasks of the same range           they run, or the migration fails
//! moveChunk with waitForDelete  the task of its range             it runs; the client may go
//! ```
//! The deleter holds no lock between two batches, so nothing waits for it for longer than a batch.

/// What is known of a task and its collection at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The outcome of the migration is not known yet.
    pub pending: bool,
    /// The collection of the task's UUID is there.
    pub collection_exists: bool,
    /// What the shard knows of the collection's placement: whether it owns a part of the range.
    pub ownership: Ownership,
    /// Milliseconds at which the delay ends.
    pub due_ms: i64,
    pub now_ms: i64,
    /// A filter is alive that owns a part of the range: a cursor of before the migration.
    pub read_by_somebody: bool,
    /// Held back by an operator or a test.
    pub suspended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Not known: the placement must be refreshed first.
    Unknown,
    /// The collection, of this UUID, is not sharded, or is no more of this UUID: all that is here is ours to keep.
    NotSharded,
    Owned,
    NotOwned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing until somebody changes the task.
    WaitForOutcome,
    WaitUntil(i64),
    /// Ask again soon.
    WaitForReaders,
    Refresh,
    Delete,
    /// The task is void: the collection is gone.
    Drop,
}

/// What to do about a task.
pub fn next(f: Facts) -> Next {
    if f.pending {
        return Next::WaitForOutcome;
    }
    if !f.collection_exists {
        return Next::Drop;
    }
    if f.suspended {
        return Next::WaitForReaders;
    }
    if f.now_ms < f.due_ms {
        return Next::WaitUntil(f.due_ms);
    }
    match f.ownership {
        Ownership::Unknown => Next::Refresh,
        // A ready task for a range that is owned contradicts the config server: the data stays.
        Ownership::Owned | Ownership::NotSharded => Next::WaitForReaders,
        Ownership::NotOwned if f.read_by_somebody => Next::WaitForReaders,
        Ownership::NotOwned => Next::Delete,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Facts = Facts {
        pending: false,
        collection_exists: true,
        ownership: Ownership::NotOwned,
        due_ms: 10,
        now_ms: 10,
        read_by_somebody: false,
        suspended: false,
    };

    #[test]
    fn only_a_ready_due_unowned_unread_range_is_deleted() {
        let rows = [
            (FREE, Next::Delete),
            (Facts { pending: true, ..FREE }, Next::WaitForOutcome),
            (Facts { now_ms: 9, ..FREE }, Next::WaitUntil(10)),
            (Facts { ownership: Ownership::Unknown, ..FREE }, Next::Refresh),
            (Facts { ownership: Ownership::Owned, ..FREE }, Next::WaitForReaders),
            (Facts { ownership: Ownership::NotSharded, ..FREE }, Next::WaitForReaders),
            (Facts { read_by_somebody: true, ..FREE }, Next::WaitForReaders),
            (Facts { suspended: true, ..FREE }, Next::WaitForReaders),
            (Facts { collection_exists: false, ..FREE }, Next::Drop),
            (Facts { collection_exists: false, pending: true, ..FREE }, Next::WaitForOutcome),
        ];
        for (facts, expected) in rows {
            assert_eq!(next(facts), expected, "{facts:?}");
        }
    }
}
