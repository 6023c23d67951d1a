//! Prepared transactions across checkpoints, restarts and changes of the primary.
//!
//! ```text
//! primary      in the table of transactions, with their locks: only a coordinator ends them
//! secondary    in `replication::apply::Between`, without locks: the log ends them
//! ```
//! A member that steps down moves them to the second place before it applies an entry of another, one that begins to lead to
//! the first before its own first entry. Both happen one after the other ([`Node::claim_prepared`], [`Node::yield_transactions`]): a
//! reign may end while it begins. Checkpoints and copies hold both.

use super::commit::target;
use super::locks::Lock;
use super::{Prepared, State, Transaction};
use crate::Node;
use crate::operation::{ApiParameters, Operation, ReadConcern, SessionId};
use document::{DocBuf, Result, Timestamp, err};
use parking_lot::Mutex;
use runtime::Instant;
use runtime::simulation::{self, Check};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use storage::Collection;
use storage::checkpoint::OpenTransaction;
use storage::entry::Entry;
use storage::index::{Computed, Keys};
use storage::log::Position;
use tokio::sync::watch;

/// What a read looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Area<'a> {
    All,
    Database(&'a str),
    Collection(&'a str),
}

impl Area<'_> {
    /// Whether operations of a transaction change something there. A command of one changes its database.
    pub(crate) fn is_written_by(self, operations: &[DocBuf]) -> bool {
        let mut written = operations.iter().filter_map(|o| o.doc().get_str("ns"));
        match self {
            Area::All => true,
            Area::Database(db) => written.any(|ns| storage::split_namespace(ns).0 == db),
            Area::Collection(read) => {
                let db = storage::split_namespace(read).0;
                written.any(|ns| ns == read || storage::split_namespace(ns) == (db, "$cmd"))
            }
        }
    }
}

impl Node {
    /// The prepared transactions as a checkpoint keeps them. The caller holds the gate exclusively.
    pub(crate) fn prepared_transactions(&self) -> Vec<OpenTransaction> {
        let mut all = self.prepared_here();
        // One that is about to change its place is in both.
        let is_here =
            |b: &OpenTransaction| all.iter().any(|t| t.lsid == b.lsid && t.txn_number == b.txn_number);
        let mut between = self.replication.transactions_between();
        between.retain(|b| !is_here(b));
        all.append(&mut between);
        all
    }

    /// Where the first entry of a transaction begins that is prepared, or of which only a part is in the log.
    pub(crate) fn oldest_prepared(&self) -> Option<Position> {
        let open = self.transactions.open();
        let here = open.iter().filter_map(|t| Some(t.state.lock().prepared?.first_position)).min();
        here.into_iter().chain(self.replication.first_between()).min()
    }

    fn prepared_here(&self) -> Vec<OpenTransaction> {
        let open = self.transactions.open();
        let kept = open.iter().filter_map(|t| {
            let state = t.state.lock();
            let prepared = state.prepared.filter(|_| !state.over)?;
            Some(OpenTransaction {
                lsid: t.session.to_document().to_doc_buf(),
                txn_number: t.number,
                last_ts: prepared.at.ts,
                operations: state.writes.clone(),
                prepared: Some(prepared.at),
                first_position: prepared.first_position,
            })
        });
        kept.collect()
    }

    /// Waits for the outcome of everything that is prepared at `until` or before, and has written to what is read: a read of that
    /// time shows it, or does not.
    ///
    /// # Errors
    /// Interrupts.
    pub(crate) async fn wait_prepared(&self, op: &Operation, area: Area<'_>, until: Timestamp) -> Result<()> {
        if simulation::omits(Check::PrepareConflict) {
            return Ok(());
        }
        loop {
            if let Some(t) = self.prepared_by(area, until) {
                op.interruptible(t.wait_ended()).await?;
                continue;
            }
            let mut progress = self.replication.progress();
            let between = self.replication.prepared_between(area, until);
            // Looked for again: it may have moved over from the log to the table.
            if between.is_empty() && self.prepared_by(area, until).is_none() {
                return Ok(());
            }
            while self.replication.is_any_between(&between) {
                drop(op.interruptible(progress.changed()).await?);
            }
        }
    }

    /// One in the table that is prepared at `until` or before, and has written to what is read.
    fn prepared_by(&self, area: Area<'_>, until: Timestamp) -> Option<Arc<Transaction>> {
        let open = self.transactions.open.lock();
        let concerns =
            |t: &&Arc<Transaction>| t.is_prepared_by(until) && area.is_written_by(&t.state.lock().writes);
        open.values().find(concerns).cloned()
    }

    /// Whether anything is prepared at `until` or before.
    pub(crate) fn is_any_prepared(&self, until: Timestamp) -> bool {
        !simulation::omits(Check::PrepareConflict)
            && (self.prepared_by(Area::All, until).is_some()
                || !self.replication.prepared_between(Area::All, until).is_empty())
    }

    /// What a read of a namespace looks at: a view may read any collection of its database.
    pub(crate) fn area_of<'a>(&self, ns: &'a str) -> Area<'a> {
        match self.namespaces.slot(ns).read_unchecked().view.is_some() {
            true => Area::Database(storage::split_namespace(ns).0),
            false => Area::Collection(ns),
        }
    }

    /// Gives up the transactions of a reign that has ended: what is prepared is the log's from now on, everything else is
    /// aborted. Writes are closed, so whatever was appended as prepared has been noted under the gate.
    pub(crate) fn yield_transactions(&self) {
        let _places = self.replication.places.lock();
        let open: Vec<_> = self.transactions.open().into_iter().filter(|t| !t.only_reads).collect();
        if open.is_empty() {
            return;
        }
        // Added before they end here, so that who looks in both places misses none.
        self.replication.add_between(self.prepared_here());
        for t in &open {
            let session = self.sessions.touch(t.session, 0);
            let (is_prepared, over) = {
                let state = t.state.lock();
                (state.prepared.is_some(), state.over)
            };
            t.fail();
            if let Some(op) = t.running.lock().upgrade() {
                op.kill(document::codes::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE);
            }
            if over || is_prepared {
                session.set_transaction(None);
                self.end_transaction(t);
            } else {
                self.abort_unprepared(&session, t);
            }
        }
    }

    /// Takes what is prepared over from the log, and has a reign begin (`begin`) before anybody can give it back; `None` where `leads`
    /// says, once nobody can, that this node does not lead.
    ///
    /// # Errors
    /// As [`Node::restore_prepared`], and those of `begin`.
    pub(crate) fn claim_prepared<T>(
        &self,
        leads: impl FnOnce() -> bool,
        begin: impl FnOnce() -> Result<T>,
    ) -> Result<Option<T>> {
        let _places = self.replication.places.lock();
        if !leads() {
            return Ok(None);
        }
        self.restore_prepared(self.replication.transactions_between())?;
        self.replication.forget_between();
        begin().map(Some)
    }

    /// Goes on with the transactions that were prepared when the node stopped: their locks are taken again.
    ///
    /// # Errors
    /// An operation that cannot be read or does not fit what is there: the log is damaged.
    pub(crate) fn restore_prepared(&self, transactions: Vec<OpenTransaction>) -> Result<()> {
        transactions.into_iter().try_for_each(|t| self.restore_one(t))
    }

    fn restore_one(&self, open: OpenTransaction) -> Result<()> {
        let Some(at) = open.prepared else { return Ok(()) };
        let id = SessionId::parse(open.lsid.doc())?;
        let now = self.now_ms();
        let mut state = State {
            prepared: Some(Prepared {
                at,
                position: self.log.appended(),
                first_position: open.first_position,
                since: Instant::now(),
            }),
            ..State::default()
        };
        self.lock_again(&open, &mut state)?;
        state.writes = open.operations;
        let t = self.transactions.register(|serial| Transaction {
            serial,
            session: id,
            number: open.txn_number,
            read_concern: ReadConcern::LOCAL,
            api: ApiParameters::default(),
            started: Instant::now(),
            started_ms: now,
            expires_ms: i64::MAX,
            lock_timeout: None,
            section_timeout: std::time::Duration::MAX,
            bytes_max: u64::MAX,
            placed_at: Timestamp::MAX,
            moment: None,
            node: Weak::new(),
            only_reads: false,
            ended: watch::Sender::new(false),
            failed: AtomicBool::new(false),
            running: Mutex::new(Weak::new()),
            seen: super::report::Seen::default(),
            state: Mutex::new(State::default()),
        });
        for lock in &state.locks {
            self.transactions.locks.enter(lock, t.serial, &t.ended());
        }
        *t.state.lock() = state;
        let session = self.sessions.touch(id, now);
        session.set_phase(open.txn_number, protocol::transaction::Phase::Prepared);
        session.set_transaction(Some(t));
        Ok(())
    }

    /// Finds the locks by doing the operations on branches; no client is there yet, so the intent locks are free.
    fn lock_again(&self, open: &OpenTransaction, state: &mut State) -> Result<()> {
        let mut branches: BTreeMap<String, (Collection, u64)> = BTreeMap::new();
        for operation in &open.operations {
            let entry = Entry::read(operation.doc())?;
            let ns = target(&entry)?;
            let slot = self.namespaces.slot(&ns);
            if !branches.contains_key(&ns) {
                let latched = slot.read_unchecked();
                let live = latched.collection.as_ref().ok_or_else(|| {
                    err!(INTERNAL_ERROR, "a prepared transaction wrote {ns}, which is not there")
                })?;
                branches.insert(ns.clone(), (live.snapshot().branch(), live.next_record()));
                state.intents.extend(slot.intent_now().map(|guard| (ns.clone(), guard)));
            }
            if let Some((branch, own)) = branches.get_mut(&ns) {
                lock_change(branch, *own, &entry, &mut state.locks)?;
            }
        }
        Ok(())
    }
}

/// Applies one operation to a branch and notes what it locks. Records from `own` on are the transaction's.
fn lock_change(branch: &mut Collection, own: u64, entry: &Entry<'_>, locks: &mut Vec<Lock>) -> Result<()> {
    let uuid = branch.uuid();
    let found = |branch: &Collection| entry.document_id().and_then(|id| branch.record_of_id(id));
    let mut note = |branch: &Collection| -> Result<()> {
        let Some((record, doc)) = found(branch).and_then(|r| Some((r, branch.get(r)?))) else {
            return Ok(());
        };
        if record < own {
            locks.push(Lock::Record(uuid, record));
        }
        let keys = branch.unique_keys(doc, Keys::Accepted, &Computed)?;
        locks.extend(keys.into_iter().map(|(slot, key)| Lock::Key(uuid, slot, key)));
        Ok(())
    };
    note(branch)?;
    storage::recovery::apply_to_collection(branch, entry)
        .map_err(|reason| err!(INTERNAL_ERROR, "a prepared transaction does not fit: {reason}"))?;
    note(branch)
}
