//! How a transaction ends: its changes applied to the live trees and logged as one, or let go.
//!
//! ```text
//! unprepared   {op: "c", ns: "admin.$cmd", lsid, txnNumber, o: {applyOps: [...]}, prevOpTime: {ts: Timestamp(0, 0), t: -1}}
//!              above 16 MB a chain: all but the last {applyOps, partialTxn: true}, the last {applyOps, count}
//! prepared     the same, the last with {prepare: true}; then {commitTransaction: 1, commitTimestamp} or {abortTransaction: 1}
//! ```
//!
//! The entries of a chain are appended in one go, so no other stands between them. A prepared transaction's changes reach
//! the trees with its commit entry; until then its locks keep them possible.
//!
//! An end that waits while its node steps down may go on when the node leads again. The step-down has aborted the
//! transaction then, or has left it to the log ([`Node::yield_transactions`]): whether it is over is asked under the gate.

use super::session::{Admitted, Entered, Limits};
use super::{Prepared, State, Transaction};
use crate::Node;
use crate::namespace::{Slot, wait_for_end};
use crate::operation::Operation;
use crate::write::commit::WideUnit;
use document::{DocBuf, Document, Result, Timestamp, Value, bail, doc, err};
use protocol::transaction::{Phase, Request};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use storage::entry::Entry;

/// What the coordinator has decided about a prepared transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Commit(Timestamp),
    Abort,
}

impl Node {
    /// Commits the operation's transaction; `at` is given for a prepared one only.
    ///
    /// # Errors
    /// Those of [`Node::enter_transaction`]; InvalidOptions (72) for a timestamp that is missing, out of place or before
    /// the prepare; a failed log.
    pub async fn commit_transaction(
        self: &Arc<Node>,
        op: &Arc<Operation>,
        at: Option<Timestamp>,
        limits: Limits,
    ) -> Result<()> {
        let entered = match self.enter_transaction(op, Request::Commit, limits).await? {
            Admitted::Done => return Ok(()),
            Admitted::Run(entered) => entered,
        };
        let prepared = entered.transaction.state.lock().prepared;
        let done = match (prepared, at) {
            (None, None) => self.commit_unprepared(op, &entered).await,
            (None, Some(_)) => Err(err!(
                INVALID_OPTIONS,
                "commitTransaction cannot provide commitTimestamp to unprepared transaction."
            )),
            (Some(_), None) => Err(err!(
                INVALID_OPTIONS,
                "commitTransaction must provide commitTimestamp to prepared transaction."
            )),
            (Some(prepared), Some(at)) => {
                self.decide_prepared(op, &entered, prepared, Decision::Commit(at)).await
            }
        };
        entered.leave(done.is_ok());
        done
    }

    /// Aborts the operation's transaction, as its client or its coordinator wants.
    ///
    /// # Errors
    /// Those of [`Node::enter_transaction`]; a failed log.
    pub async fn abort_transaction(self: &Arc<Node>, op: &Arc<Operation>, limits: Limits) -> Result<()> {
        self.abort_as(op, Request::Abort, limits).await
    }
    /// Aborts the operation's transaction unless it is prepared. Whoever says so need not know what the coordinator does:
    /// what is not prepared cannot have been decided to commit.
    ///
    /// # Errors
    /// PreparedTransactionInProgress (267); those of [`Node::enter_transaction`].
    pub async fn abort_unless_prepared(self: &Arc<Node>, op: &Arc<Operation>, limits: Limits) -> Result<()> {
        self.abort_as(op, Request::AbortUnprepared, limits).await
    }

    async fn abort_as(self: &Arc<Node>, op: &Arc<Operation>, request: Request, limits: Limits) -> Result<()> {
        let entered = match self.enter_transaction(op, request, limits).await? {
            Admitted::Done => return Ok(()),
            Admitted::Run(entered) => entered,
        };
        let prepared = entered.transaction.state.lock().prepared;
        match prepared {
            None => {
                entered.leave(false);
                Ok(())
            }
            Some(prepared) => {
                let done = self.decide_prepared(op, &entered, prepared, Decision::Abort).await;
                entered.leave(true);
                done
            }
        }
    }

    async fn commit_unprepared(&self, op: &Operation, entered: &Entered) -> Result<()> {
        let (t, session) = (&entered.transaction, &entered.session);
        if t.failed.load(Ordering::SeqCst) {
            return Err(t.no_such_transaction());
        }
        let slots = self.slots_of(&*t.open_state()?)?;
        if slots.is_empty() {
            self.confirm_reign(op)?;
            session.set_phase(t.number, Phase::Committed);
        } else {
            self.write_unless_held(op, t, &slots).await?;
        }
        self.note_committed(t, op);
        self.conclude(session, t, true);
        Ok(())
    }

    /// Writes an entry for the end of a transaction that has only read. Once a majority has it, this member still led when the
    /// transaction ended, and what it read is committed. A set of one leads always.
    fn confirm_reign(&self, op: &Operation) -> Result<()> {
        match self.replication.commit.is_shared() {
            true => self.append_note(op, doc! { "msg": "read-only transaction" }),
            false => Ok(()),
        }
    }

    /// Waits while the cluster stands still.
    async fn write_unless_held(&self, op: &Operation, t: &Transaction, slots: &[Arc<Slot>]) -> Result<()> {
        loop {
            let standstill = &self.namespaces.standstill;
            let commit = |unit: &mut WideUnit<'_>| match standstill.signal() {
                Some(ended) => Ok(Some(ended)),
                None => self.log_commit(t, unit).map(|()| None),
            };
            match self.write_wide(op, slots, commit).await?.0 {
                Some(ended) => wait_for_end(op, ended).await?,
                None => return Ok(()),
            }
        }
    }

    /// Under the gate: applies and stages the changes of a transaction that is not prepared.
    pub(super) fn log_commit(&self, t: &Transaction, unit: &mut WideUnit<'_>) -> Result<()> {
        self.check_not_restored(t)?;
        let mut state = t.open_state()?;
        state.over = true;
        apply(unit, &state.writes)?;
        unit.log_transaction(t, &state.writes, Phase::Committed)
    }

    /// Under the gate: stages the changes as prepared. Returns the position where the first entry will begin.
    pub(super) fn log_prepare(&self, t: &Transaction, unit: &mut WideUnit<'_>) -> Result<u64> {
        self.check_not_restored(t)?;
        // Other parts may wait for the end of the standstill, which waits for those that are prepared.
        if self.namespaces.standstill.signal().is_some() {
            return Err(t.no_such_transaction());
        }
        let mut state = t.open_state()?;
        // Seen by who asks after the clock has passed a time, so that no prepare before that time is missed.
        state.preparing = true;
        let before = self.log.appended();
        unit.log_transaction(t, &state.writes, Phase::Prepared)?;
        Ok(before)
    }

    /// Under the gate: applies the changes of a prepared transaction if it commits, and stages the decision.
    pub(super) fn log_decided(
        &self,
        t: &Transaction,
        unit: &mut WideUnit<'_>,
        prepared: Prepared,
        decision: Decision,
    ) -> Result<()> {
        let mut state = t.state.lock();
        if state.over {
            bail!(
                INTERRUPTED_DUE_TO_REPL_STATE_CHANGE,
                "the node has stepped down before the decision about the transaction was logged"
            );
        }
        if decision != Decision::Abort {
            apply(unit, &state.writes)?;
        }
        unit.log_decision(t, decision, prepared.at);
        // A checkpoint that comes between this and the end of the transaction holds its changes.
        state.over = true;
        Ok(())
    }

    /// Under the gate: a transaction that has read what was before a restore cannot change what is after it.
    fn check_not_restored(&self, t: &Transaction) -> Result<()> {
        let read = t.moment.as_ref().map_or(u64::MAX, |moment| moment.ts());
        match read < self.restored_ts.load(Ordering::SeqCst) {
            true => Err(t.no_such_transaction()),
            false => Ok(()),
        }
    }

    /// The namespaces that a transaction has changed.
    fn slots_of(&self, state: &State) -> Result<Vec<Arc<Slot>>> {
        let mut names = BTreeSet::new();
        for write in &state.writes {
            names.insert(target(&Entry::read(write.doc())?)?);
        }
        Ok(names.iter().map(|ns| self.namespaces.slot(ns)).collect())
    }

    /// Prepares the operation's transaction: from then on it survives restarts, and only its coordinator ends it.
    /// Returns the prepare timestamp.
    ///
    /// # Errors
    /// Those of [`Node::enter_transaction`]; OperationNotSupportedInTransaction (263) when it made a collection;
    /// ReadConcernMajorityNotEnabled (148) beside an arbiter.
    pub async fn prepare_transaction(
        self: &Arc<Node>,
        op: &Arc<Operation>,
        limits: Limits,
    ) -> Result<Timestamp> {
        let entered = match self.enter_transaction(op, Request::Prepare, limits).await? {
            Admitted::Done => return self.prepared_before(op),
            Admitted::Run(entered) => entered,
        };
        let done = self.prepare(op, &entered).await;
        entered.leave(done.is_ok());
        done
    }

    fn prepared_before(&self, op: &Operation) -> Result<Timestamp> {
        let id = op.session.as_ref().map(|s| s.lsid);
        let open = self.transactions.open();
        let t = open.iter().find(|t| Some(t.session) == id);
        let prepared = t.and_then(|t| t.state.lock().prepared);
        let prepared = prepared.ok_or_else(|| err!(NO_SUCH_TRANSACTION, "the transaction has ended"))?;
        op.note_position(prepared.position);
        Ok(Timestamp::from_u64(prepared.at.ts))
    }

    async fn prepare(&self, op: &Operation, entered: &Entered) -> Result<Timestamp> {
        let t = &entered.transaction;
        if t.failed.load(Ordering::SeqCst) {
            return Err(t.no_such_transaction());
        }
        // Where one data-bearing member is away, what is prepared is not committed, and keeps its locks until it is back.
        let standing = self.replication.standing();
        if standing.config.as_deref().is_some_and(|c| c.members().iter().any(|m| m.arbiter)) {
            bail!(READ_CONCERN_MAJORITY_NOT_ENABLED, "A set with an arbiter prepares no transactions");
        }
        drop(standing);
        let creates = t.state.lock().writes.iter().any(|w| w.get("op").and_then(|v| v.as_str()) == Some("c"));
        if creates {
            bail!(
                OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                "Cannot create new collections inside distributed transactions"
            );
        }
        // Noted under the gate: a step-down finds every prepare entry of the log noted.
        let noted = self
            .write_wide_noting(
                op,
                |unit| self.log_prepare(t, unit),
                |first_position, appended| t.note_prepared(first_position, appended),
            )
            .await?;
        let at = noted.ok_or_else(|| err!(INTERNAL_ERROR, "a prepare without an entry"))?;
        self.transactions.totals.prepared.fetch_add(1, Ordering::Relaxed);
        Ok(Timestamp::from_u64(at.ts))
    }

    async fn decide_prepared(
        &self,
        op: &Operation,
        entered: &Entered,
        prepared: Prepared,
        decision: Decision,
    ) -> Result<()> {
        let (t, session) = (&entered.transaction, &entered.session);
        if let Decision::Commit(at) = decision {
            if at.as_u64() < prepared.at.ts {
                bail!(
                    INVALID_OPTIONS,
                    "'commitTimestamp' Timestamp({}, {}) must be greater than or equal to 'prepareTimestamp'",
                    at.secs,
                    at.inc
                );
            }
            self.log.advance_clock(at.as_u64());
        }
        let slots = match decision {
            Decision::Commit(_) => self.slots_of(&t.state.lock())?,
            Decision::Abort => Vec::new(),
        };
        self.write_wide(op, &slots, |unit| self.log_decided(t, unit, prepared, decision)).await?;
        let committed = matches!(decision, Decision::Commit(_));
        if committed {
            self.note_committed(t, op);
        }
        self.conclude(session, t, committed);
        let totals = &self.transactions.totals;
        let prepared =
            if committed { &totals.prepared_then_committed } else { &totals.prepared_then_aborted };
        prepared.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// The namespace that an operation changes.
pub(super) fn target(entry: &Entry<'_>) -> Result<String> {
    match entry.command() {
        Some((_, name)) if entry.op == storage::entry::Op::Command => {
            Ok(format!("{}.{}", storage::split_namespace(entry.ns).0, name.as_str().unwrap_or("")))
        }
        _ => Ok(entry.ns.to_string()),
    }
}

/// Applies a transaction's changes, all or none. The locks it holds make each of them possible.
fn apply(unit: &mut WideUnit<'_>, writes: &[DocBuf]) -> Result<()> {
    unit.all_or_nothing(|unit| {
        for write in writes {
            let entry = Entry::read(write.doc())?;
            let ns = target(&entry)?;
            let mut unit =
                unit.on(&ns).ok_or_else(|| err!(INTERNAL_ERROR, "{ns} is not part of the commit"))?;
            unit.apply(&entry)?;
        }
        Ok(())
    })?;
    for write in writes {
        let entry = Entry::read(write.doc())?;
        if let Some(unit) = unit.on(&target(&entry)?) {
            unit.tell(&entry);
        }
    }
    Ok(())
}

/// Session, number and predecessor of an entry's `o`, for the log.
pub(crate) fn decision_document(decision: Decision) -> Document {
    match decision {
        Decision::Commit(at) => doc! { "commitTransaction": 1, "commitTimestamp": Value::Timestamp(at) },
        Decision::Abort => doc! { "abortTransaction": 1 },
    }
}

/// The bytes of operations that one entry holds, and what each needs beside its own: an entry fits a document.
pub(crate) const ENTRY_BYTES: usize = 16 * 1024 * 1024 - 16 * 1024;
const ELEMENT_BYTES: usize = 12;

/// `o` of the entries of a transaction, in order: as few as hold the operations.
pub(crate) fn entries(writes: &[DocBuf], prepare: bool) -> Vec<DocBuf> {
    let mut parts: Vec<&[DocBuf]> = Vec::new();
    let mut rest = writes;
    loop {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|w| {
            bytes += w.bytes().len() + ELEMENT_BYTES;
            bytes <= ENTRY_BYTES
        });
        // An operation always fits alone: the log takes entries four times as large.
        let n = fits.count().max(1).min(rest.len());
        let (part, more) = rest.split_at(n);
        parts.push(part);
        rest = more;
        if rest.is_empty() {
            break;
        }
    }
    let last = parts.len() - 1;
    let make = |(i, part): (usize, &&[DocBuf])| {
        document::DocWriter::build(|w| {
            w.array_with("applyOps", |w| {
                for (n, operation) in part.iter().enumerate() {
                    w.with_index(n, |w, name| w.document(name, operation.doc()));
                }
            });
            if i < last {
                w.bool("partialTxn", true);
            }
            if i == last && prepare {
                w.bool("prepare", true);
            }
            if i == last && last > 0 {
                w.i64("count", writes.len() as i64);
            }
        })
    };
    parts.iter().enumerate().map(make).collect()
}
