//! Multi-document transactions of this node.
//!
//! ```text
//! first statement   session checked out, node snapshot taken
//! a statement       intent lock (shared) on each namespace it touches; reads and writes a *branch* of the collection as
//!                   the snapshot has it; each record and unique key it changes is entered in the lock table, and
//!                   compared: the snapshot and the live tree must agree, else WriteConflict
//! commit            the writes applied to the live trees under their latches, one `applyOps` entry, locks let go
//! abort             branches dropped, locks let go; nothing was logged
//! ```
//!
//! Every read goes through [`crate::namespace::Slot::read`] and every write through [`Node::write`]; both hand out the
//! transaction's branch in place of the live state where the operation belongs to a transaction. So all commands read
//! their own writes, through every kind of index, without knowing of transactions.
//!
//! Who waits for whom: a statement waits for an intent lock no longer than `maxTransactionLockRequestTimeoutMillis` and
//! never for another transaction; catalog changes wait for the intent locks, plain writes for locked records. So there is
//! no cycle; a client that went away is ended by the reaper ([`Node::reap_transactions`]).
//!
//! Order of locks: namespace latch, then the transaction's own state, then the lock table.

pub mod admission;
mod commit;
pub mod locks;
mod part;
mod prepared;
pub mod report;
mod session;
#[cfg(test)]
mod tests;

pub use commit::Decision;
pub(crate) use commit::{decision_document, entries};
pub(crate) use part::Part;
pub(crate) use prepared::Area;
pub use session::{Admitted, Entered, Limits};

use crate::namespace::{Access, Placement, Slot, SlotState};
use crate::operation::{ApiParameters, Operation, ReadConcern, ReadLevel, Received, SessionId};
use crate::past::Moment;
use crate::snapshots::Frozen;
use crate::write::statement::is_stale;
use crate::{Node, WriteUnit};
use document::{DocBuf, Error, Result, Timestamp, bail, doc, err};
use locks::{Ended, Lock, LockTable};
use parking_lot::{Mutex, MutexGuard};
use query::timeseries::BUCKETS_PREFIX;
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use storage::CollectionView;
use storage::log::{Appended, OpTime};
use tokio::sync::{OwnedRwLockReadGuard, watch};

/// The transactions of a node.
#[derive(Default)]
pub struct Transactions {
    pub locks: LockTable,
    pub totals: report::Totals,
    serial: AtomicU64,
    /// Those that have not ended, by serial number.
    open: Mutex<BTreeMap<u64, Arc<Transaction>>>,
}

/// One transaction that has not ended.
pub struct Transaction {
    serial: u64,
    pub session: SessionId,
    pub number: i64,
    pub read_concern: ReadConcern,
    /// What its first command carried.
    api: ApiParameters,
    started: Instant,
    started_ms: i64,
    expires_ms: i64,
    /// How long a statement waits for an intent lock; `None`: as long as its operation may run.
    lock_timeout: Option<Duration>,
    /// How long a statement waits for a namespace that a migration has in its critical section: what the transaction holds
    /// elsewhere may be what another migration waits for.
    section_timeout: Duration,
    bytes_max: u64,
    /// No later than this was it placed which documents it reads here: what has come to this shard afterwards it misses.
    placed_at: Timestamp,
    /// What it reads; `None` for one that was prepared before a restart: it takes no statement any more.
    moment: Option<Moment>,
    node: Weak<Node>,
    /// A read outside transactions at one moment: it holds no intent locks and cannot write.
    only_reads: bool,
    ended: watch::Sender<bool>,
    /// A statement failed, or it was killed: it is aborted when the command under way ends.
    failed: AtomicBool,
    /// The operation that runs a statement now.
    running: Mutex<Weak<Operation>>,
    seen: report::Seen,
    state: Mutex<State>,
}

/// What a transaction has done so far.
#[derive(Default)]
struct State {
    intents: BTreeMap<String, OwnedRwLockReadGuard<()>>,
    branches: BTreeMap<String, Branch>,
    /// Namespaces rebuilt as of a moment in the past, before their branches are made.
    rebuilt: BTreeMap<String, Frozen>,
    /// Its changes in order, as operations of an `applyOps`.
    writes: Vec<DocBuf>,
    /// How large they are together.
    bytes: u64,
    locks: Vec<Lock>,
    /// Its prepare entry is about to be appended: whoever reads at a time that has passed must wait for the outcome.
    preparing: bool,
    prepared: Option<Prepared>,
    over: bool,
}

#[derive(Clone, Copy)]
struct Prepared {
    at: OpTime,
    /// Position behind the prepare entry, and where its first frame begins.
    position: u64,
    first_position: u64,
    since: Instant,
}

/// A namespace as the transaction sees it.
struct Branch {
    state: SlotState,
    base: Frozen,
}

impl Transactions {
    /// Those that have not ended.
    pub fn open(&self) -> Vec<Arc<Transaction>> {
        self.open.lock().values().cloned().collect()
    }
    /// Those that hold the intent lock of a namespace, by what errors call them.
    pub(crate) fn holders(&self, ns: &str) -> Vec<String> {
        let holds = |t: &Arc<Transaction>| t.state.lock().intents.contains_key(ns);
        let named = |t: Arc<Transaction>| {
            format!("transaction {} of session {}", t.number, document::uuid::to_string(&t.session.id))
        };
        self.open().into_iter().filter(holds).map(named).collect()
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "transaction {} of {:?}", self.number, self.session)
    }
}

impl Transaction {
    /// Becomes true when it has ended.
    pub fn ended(&self) -> Ended {
        self.ended.subscribe()
    }
    pub async fn wait_ended(&self) {
        let mut ended = self.ended();
        // The sender lives as long as the transaction, which is held here.
        let _ = ended.wait_for(|ended| *ended).await;
    }
    pub fn is_prepared(&self) -> bool {
        self.state.lock().prepared.is_some()
    }
    /// Whether it is prepared, or will be at a time that may have been handed out already.
    pub(crate) fn is_preparing(&self) -> bool {
        let state = self.state.lock();
        state.preparing || state.prepared.is_some()
    }
    /// Whether its prepare timestamp is, or may turn out to be, `until` or earlier.
    fn is_prepared_by(&self, until: Timestamp) -> bool {
        let state = self.state.lock();
        state.prepared.map_or(state.preparing, |p| p.at.ts <= until.as_u64())
    }
    /// When its lifetime is over, in milliseconds since 1970; what is prepared has no end.
    pub fn expires_ms(&self) -> i64 {
        self.expires_ms
    }
    /// Whether it has changed nothing so far.
    pub fn is_read_only(&self) -> bool {
        self.state.lock().writes.is_empty()
    }
    /// The time to show of a read of level snapshot outside transactions.
    pub fn read_time(&self) -> Option<document::Timestamp> {
        let shows = self.only_reads && self.read_concern.level == ReadLevel::Snapshot;
        let moment = self.moment.as_ref().filter(|_| shows)?;
        Some(document::Timestamp::from_u64(moment.ts()))
    }
    /// Whether it is a read at one moment outside transactions.
    pub fn only_reads(&self) -> bool {
        self.only_reads
    }
    /// Its state, as long as it has not ended.
    ///
    /// # Errors
    /// NoSuchTransaction (251).
    fn open_state(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock();
        match state.over {
            true => Err(self.no_such_transaction()),
            false => Ok(state),
        }
    }
    /// Notes that its prepare entries have been appended, the first at `first_position`. Returns when it is prepared.
    fn note_prepared(&self, first_position: u64, appended: &Appended) -> OpTime {
        let at = OpTime { ts: appended.last.ts, term: appended.last.term };
        let mut state = self.state.lock();
        state.prepared =
            Some(Prepared { at, position: appended.position, first_position, since: Instant::now() });
        state.branches.clear();
        at
    }
    /// Has it aborted when the command under way ends.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
    }

    /// Learns the placement of a namespace at its first touch, takes its intent lock, and rebuilds it where it is read in the
    /// past.
    async fn reach(&self, slot: &Slot, op: &Operation, received: &Received, access: Access) -> Result<()> {
        self.learn_placement(slot, op, received, access).await?;
        self.lock_intent(slot, op).await?;
        let Some(moment) = self.moment.as_ref().filter(|m| m.base().is_none()) else { return Ok(()) };
        let known = {
            let state = self.state.lock();
            state.branches.contains_key(&slot.ns) || state.rebuilt.contains_key(&slot.ns)
        };
        if known {
            return Ok(());
        }
        let node = self.node.upgrade().ok_or_else(|| self.no_such_transaction())?;
        let frozen = moment.rebuilt(&node, slot)?;
        self.state.lock().rebuilt.insert(slot.ns.clone(), frozen);
        Ok(())
    }

    /// What this shard does not know yet is learnt before the statement touches the namespace: a statement that is refused
    /// as stale aborts its transaction, and the router cannot repeat the earlier ones.
    async fn learn_placement(
        &self,
        slot: &Slot,
        op: &Operation,
        received: &Received,
        access: Access,
    ) -> Result<()> {
        if self.state.lock().branches.contains_key(&slot.ns) {
            return Ok(());
        }
        let Some(node) = self.node.upgrade() else { return Ok(()) };
        let Some(learner) = node.namespaces.learner() else { return Ok(()) };
        // The database first, then the collection.
        for _ in 0..2 {
            match self.not_behind_section(slot, slot.read_live(op, received, access, |_| Ok(()))).await {
                Err(e) if is_stale(&e) => op.interruptible(learner.learn(&e)).await?,
                met => return met,
            }
        }
        Ok(())
    }

    async fn lock_intent(&self, slot: &Slot, op: &Operation) -> Result<()> {
        if self.only_reads || self.state.lock().intents.contains_key(&slot.ns) {
            return Ok(());
        }
        let guard = op.locking(slot.intent_shared(self.lock_timeout.unwrap_or(Duration::MAX))).await??;
        self.state.lock().intents.entry(slot.ns.clone()).or_insert(guard);
        Ok(())
    }

    /// Runs `f` on the namespace as the transaction sees it, with the versions of the request checked.
    pub(crate) async fn read<T>(
        &self,
        slot: &Slot,
        op: &Operation,
        f: impl FnOnce(&SlotState) -> Result<T>,
    ) -> Result<T> {
        self.reach(slot, op, &op.received, Access::Read).await?;
        let read = slot.read_live(op, &op.received, Access::Read, |live| {
            let mut state = self.state.lock();
            f(&self.branch(&mut state, slot, live)?.state)
        });
        self.not_behind_section(slot, read).await
    }

    /// Awaits access to a namespace, for as long as a statement may wait.
    ///
    /// # Errors
    /// ShardCannotRefreshDueToLocksHeld (343), whereupon the router aborts the transaction or begins it anew.
    async fn not_behind_section<T>(&self, slot: &Slot, access: impl Future<Output = Result<T>>) -> Result<T> {
        if self.section_timeout == Duration::MAX {
            return access.await;
        }
        match Box::pin(tokio::time::timeout(self.section_timeout, access)).await {
            Ok(done) => done,
            Err(_) => Err(err!(
                SHARD_CANNOT_REFRESH_DUE_TO_LOCKS_HELD,
                "{} is in the critical section of a migration, and a transaction may not wait longer for it",
                slot.ns
            )
            .with_info(doc! { "ns": slot.ns.as_str() })),
        }
    }

    /// Runs `f` as part of the transaction: its changes go into the branch and are kept for the commit.
    pub(crate) async fn write<T>(
        &self,
        node: &Node,
        slot: &Slot,
        op: &Operation,
        received: &Received,
        f: impl FnOnce(&mut WriteUnit<'_>) -> Result<T>,
    ) -> Result<T> {
        if self.only_reads {
            bail!(INVALID_OPTIONS, "a snapshot is not written to");
        }
        let name = storage::split_namespace(&slot.ns).1;
        let buckets = name.starts_with(BUCKETS_PREFIX) && op.is_part_of_statement();
        if name.starts_with("system.") && !buckets {
            bail!(50781, "Cannot write to system collection {} within a transaction.", slot.ns);
        }
        self.reach(slot, op, received, Access::Write).await?;
        let write = slot.read_live(op, received, Access::Write, |live| {
            let mut state = self.state.lock();
            self.branch(&mut state, slot, live)?;
            let State { branches, writes, bytes, locks, .. } = &mut *state;
            let before = writes.len();
            let Some(branch) = branches.get_mut(&slot.ns) else {
                bail!(INTERNAL_ERROR, "a branch that was made is gone")
            };
            let part = Part {
                transaction: self,
                table: &node.transactions.locks,
                live,
                base: &branch.base,
                writes: &mut *writes,
                locks,
            };
            let done = WriteUnit::in_transaction(node, slot, &mut branch.state, op, part, f);
            // What stopped half-way goes on with the rest.
            *bytes += writes[before..].iter().map(|w| w.bytes().len() as u64).sum::<u64>();
            match done.is_ok() && *bytes > self.bytes_max {
                true => Err(self.too_large()),
                false => done,
            }
        });
        self.not_behind_section(slot, write).await
    }

    /// The branch of a namespace, made at its first touch. `live` is the namespace under its latch.
    fn branch<'s>(&self, state: &'s mut State, slot: &Slot, live: &SlotState) -> Result<&'s Branch> {
        let moment = self.moment.as_ref().filter(|_| !state.over && state.prepared.is_none());
        let Some(moment) = moment else { return Err(self.no_such_transaction()) };
        if !state.branches.contains_key(&slot.ns) {
            let base = match moment.base() {
                Some(snapshot) => snapshot.read(slot, live),
                None => state.rebuilt.remove(&slot.ns).unwrap_or_default(),
            };
            check_catalog(slot, &base, live, moment.ts())?;
            if !self.only_reads {
                check_indexes(slot, &base, live, moment.ts())?;
            }
            let mut own = SlotState::default();
            own.set_view(base.view.clone());
            if let Some(collection) = &base.collection {
                own.install(collection.branch());
            }
            state.branches.insert(slot.ns.clone(), Branch { state: own, base });
        }
        let placement = self.placement_of(slot, live)?;
        let branch = state.branches.get_mut(&slot.ns).ok_or_else(|| self.no_such_transaction())?;
        branch.state.placement = placement;
        Ok(branch)
    }

    /// By which placement the documents of a namespace are filtered: a snapshot by that of its time, whose router asked by it; a read of
    /// the commit point and a statement by the one in force, unless something has come here since.
    ///
    /// # Errors
    /// StaleChunkHistory (250), SnapshotUnavailable (246), MigrationConflict (272).
    fn placement_of(&self, slot: &Slot, live: &SlotState) -> Result<Option<Arc<dyn Placement>>> {
        let Some(placement) = &live.placement else { return Ok(None) };
        if self.only_reads && self.read_concern.level == ReadLevel::Snapshot {
            return Ok(placement.at(self.placed_at)?.or_else(|| live.placement.clone()));
        }
        if placement.came_after(self.placed_at) {
            if self.only_reads {
                return Err(catalog_has_changed(slot, self.placed_at.as_u64()));
            }
            bail!(
                MIGRATION_CONFLICT,
                "Collection {} has undergone a migration operation that completed after the snapshot was taken; please retry \
                 the operation or multi-document transaction",
                slot.ns
            );
        }
        Ok(live.placement.clone())
    }

    fn too_large(&self) -> Error {
        err!(
            TRANSACTION_TOO_LARGE,
            "A transaction may write no more than {} bytes (transactionSizeLimitBytes)",
            self.bytes_max
        )
    }
    fn no_such_transaction(&self) -> Error {
        err!(NO_SUCH_TRANSACTION, "Transaction with {{ txnNumber: {} }} has been aborted.", self.number)
    }
}

/// The catalog of a namespace may not have changed between the snapshot and the first touch.
///
/// # Errors
/// SnapshotUnavailable (246).
fn check_catalog(slot: &Slot, base: &Frozen, live: &SlotState, ts: u64) -> Result<()> {
    let same = match (&base.collection, &live.collection) {
        (None, None) => true,
        (Some(was), Some(is)) => {
            let was_indexes = was.indexes().iter().map(|i| i.info().spec.name());
            was.meta().uuid == is.uuid() && was_indexes.eq(is.indexes().iter().map(|i| i.spec().name()))
        }
        _ => false,
    };
    match same {
        true => Ok(()),
        false => Err(catalog_has_changed(slot, ts)),
    }
}

/// What a transaction locks are keys of the indexes that its snapshot has: those of the same names that admit other documents now,
/// such as one that was made unique, would refuse its commit.
///
/// # Errors
/// SnapshotUnavailable (246).
fn check_indexes(slot: &Slot, base: &Frozen, live: &SlotState, ts: u64) -> Result<()> {
    let (Some(was), Some(is)) = (&base.collection, &live.collection) else { return Ok(()) };
    let specs = is.indexes().iter().map(|i| i.spec());
    match was.indexes().iter().map(|i| &i.info().spec).zip(specs).all(|(was, is)| was.admits_as(is)) {
        true => Ok(()),
        false => Err(catalog_has_changed(slot, ts)),
    }
}

fn catalog_has_changed(slot: &Slot, ts: u64) -> Error {
    let at = document::Timestamp::from_u64(ts);
    err!(
        SNAPSHOT_UNAVAILABLE,
        "Unable to read from a snapshot due to pending collection catalog changes to collection '{}'; please retry the \
         operation. Snapshot timestamp is Timestamp({}, {}).",
        slot.ns,
        at.secs,
        at.inc
    )
}

/// The error of a write that came after another's.
pub fn write_conflict() -> Error {
    err!(
        WRITE_CONFLICT,
        "Caused by :: Write conflict during plan execution and yielding is disabled. :: Please retry your operation or \
         multi-document transaction."
    )
}
