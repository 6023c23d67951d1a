//! The lock room of catalog changes: every lock that a change of the catalog takes, on every node, in one order.
//!
//! ```text
//! shard    1  DDL locks of databases, by name        shared for a collection, exclusive for the database as a whole
//!          2  DDL locks of namespaces, by name       (both: sharding/shard/ddl/locks.rs; waits end with LockBusy)
//! config   3  topology                               shards and databases
//!             membership                             shared by commits of migrations, exclusive when a shard drains or goes
//!          4  chunks of a collection, by namespace
//! shard    5  critical sections, by name             database first; a section outlives the request that enters it
//!          6  writes of many documents that keep the ranges (Slot::keep_ranges)
//!          7  intent locks, by namespace             exclusive for a change; shared by transactions; waits end with LockTimeout
//! node     8  commit gate, database latch, namespace latches by name, session table, log
//! ```
//!
//! There is no cycle because whoever waits for a lock holds only locks that stand before it:
//! - a coordinator holds 1 and 2 while it calls the config server, which takes 3 and 4 and, while it holds them, calls no
//!   shard that has coordinators (addShard calls the newcomer, which is none yet; removeShard asks one that owns nothing for a
//!   count, which waits for a majority and for none of these locks but 8, and not for long);
//! - a coordinator enters sections (5) and then makes the participants change their catalogs (7, 8) on its behalf. These
//!   changes carry no versions, so no section makes them wait;
//! - a client's change carries versions and so may have to wait for a section (5). It lets go of its intent lock (7) first
//!   and begins anew when the section has ended: [`Node::change`] is the only way to write under an intent lock;
//! - a migration enters its section (5) after it has waited for 6 and 7, holding nothing meanwhile;
//! - 8 is never held across a wait.
//!
//! A transaction keeps intent locks (7, shared) between its statements. A statement of it that meets a section therefore
//! must fail instead of waiting for longer than its coordinator waits for 7.

use crate::namespace::{Exclusive, Met, Slot, wait_for_end};
use crate::operation::Received;
use crate::write::unit::WriteUnit;
use crate::{Node, Operation};
use document::Result;
use std::time::Duration;
use storage::log::Appended;

/// How long a catalog change waits for an intent lock.
pub const LOCK_WAIT: Duration = Duration::from_secs(60);

impl Node {
    /// Runs `f` as one commit on the namespace, like [`Node::write`], while no transaction and no other change of the
    /// catalog uses it.
    ///
    /// # Errors
    /// LockTimeout (24), and those of [`Node::write`].
    pub async fn change<T>(
        &self,
        op: &Operation,
        slot: &Slot,
        f: impl FnOnce(&mut WriteUnit<'_>) -> Result<T>,
    ) -> Result<(T, Option<Appended>)> {
        // A transaction holds the intent lock shared; what it changes only it can see.
        if op.transaction().is_some() {
            return self.write(op, slot, f).await;
        }
        let mut f = Some(f);
        self.locked(op, &[slot], || {
            slot.write_or_section(&self.gate, &op.received, |state| {
                // A section is met before this is called, so it is called once.
                self.write_unit(op, slot, state, f.take().ok_or_else(called_twice)?)
            })
        })
        .await
    }

    /// Takes the intent lock of a namespace exclusively, under a name.
    ///
    /// # Errors
    /// LockTimeout (24) after `timeout`, which says who holds it.
    pub async fn intent_exclusive(&self, slot: &Slot, timeout: Duration, name: &str) -> Result<Exclusive> {
        slot.intent_exclusive(timeout, name, || self.transactions.holders(&slot.ns)).await
    }
    /// The same for a change of the catalog, which waits for [`LOCK_WAIT`].
    ///
    /// # Errors
    /// LockTimeout (24), and those of an operation that is to end.
    pub(crate) async fn lock_for_change(&self, op: &Operation, slot: &Slot) -> Result<Exclusive> {
        op.locking(self.intent_exclusive(slot, LOCK_WAIT, &op.name())).await?
    }

    /// Runs `attempt` with the intent locks of `slots`, which stand in namespace order, until it has met no section.
    pub(crate) async fn locked<T>(
        &self,
        op: &Operation,
        slots: &[&Slot],
        mut attempt: impl FnMut() -> Result<Met<T>>,
    ) -> Result<T> {
        loop {
            self.admit(op).await?;
            let mut held = Vec::with_capacity(slots.len());
            for slot in slots {
                held.push(self.lock_for_change(op, slot).await?);
            }
            match attempt()? {
                Met::Data(done) => return Ok(done),
                Met::Section(signal) => {
                    drop(held);
                    wait_for_end(op, signal).await?;
                }
            }
        }
    }
}

fn called_twice() -> document::Error {
    document::err!(INTERNAL_ERROR, "a catalog change was begun twice")
}

/// What a request was sent for, as far as it concerns the database: a view has no placement of its own.
pub(crate) fn of_database(op: &Operation) -> Received {
    Received { shard: None, database: op.received.database }
}
