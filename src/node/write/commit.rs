//! A commit: what is changed under the latches of one or several namespaces, and appended to the log in one go.
//!
//! ```text
//! gate (shared) -> latches, by namespace
//!   [`Commit::open`]      from here on a panic aborts the process: trees may hold what the log does not
//!     changes prepared, applied, their entries staged
//!   [`Commit::finish`]    one append; the session table takes the entries in
//! latches released
//! ```
//!
//! Every change of data or of the catalog goes through here: [`Node::write`] opens a commit over one namespace,
//! [`Node::write_wide`] over any number. This file alone appends to the log.

use super::unit::WriteUnit;
use crate::Node;
use crate::namespace::{Met, Patience, Slot, SlotState, latch_all, wait_or_yield};
use crate::operation::{Operation, Received, SessionId};
use crate::transaction::{Decision, Transaction};
use document::{Doc, DocBuf, DocWriter, Result, meter};
use parking_lot::RwLockWriteGuard;
use protocol::session::EntryTime;
use protocol::transaction::Phase;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use storage::collection::InsertPlan;
use storage::entry::{Draft, EntryParts, Op, SessionPart};
use storage::index::KeyBuffer;
use storage::log::{Appended, Class, OpTime};

struct Staged {
    payload: Range<usize>,
    statement: Option<i32>,
    /// More statements of the same entry.
    also: Vec<i32>,
    /// Its `prevOpTime` names the entry staged before it.
    chained: bool,
}

/// What an open commit has staged.
pub(crate) struct Commit {
    lsid: Option<DocBuf>,
    /// Where the session's previous entry stands.
    previous: (u64, i64),
    payloads: Vec<u8>,
    staged: Vec<Staged>,
    parts: EntryParts,
    /// Reused by inserts.
    pub(super) insert_plan: InsertPlan,
    /// Reused by deletes.
    pub(super) removed: KeyBuffer,
    class: Class,
    /// A session's transaction, what these entries make of it, and the statements of a retryable write among them.
    transaction: Option<(SessionId, i64, Phase, Vec<i32>)>,
    /// Changes that may yet be taken back are told to no observer.
    pub(super) tentative: bool,
    _committing: Option<Committing>,
}

/// Aborts the process when it is dropped by a panic: trees may hold what the log does not.
pub(crate) struct Committing;
impl Drop for Committing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("panic while committing: trees and log may differ, aborting");
            std::process::abort();
        }
    }
}

/// An open commit over several namespaces; made by [`Node::write_wide`].
pub struct WideUnit<'a> {
    node: &'a Node,
    op: &'a Operation,
    states: Vec<(&'a Slot, RwLockWriteGuard<'a, SlotState>)>,
    commit: Commit,
}

impl Node {
    /// Runs `f` as one commit over all of `slots`, whose latches it holds. No version is checked.
    ///
    /// # Errors
    /// Those of [`Node::admit`], and what `f` returns. Changes `f` made before it failed are committed, unless it took them back
    /// ([`WideUnit::all_or_nothing`]).
    pub async fn write_wide<T>(
        &self,
        op: &Operation,
        slots: &[Arc<Slot>],
        f: impl FnOnce(&mut WideUnit<'_>) -> Result<T>,
    ) -> Result<(T, Option<Appended>)> {
        self.admit(op).await?;
        let ordered: BTreeMap<&str, &Slot> = slots.iter().map(|s| (s.ns.as_str(), &**s)).collect();
        let ordered: Vec<&Slot> = ordered.into_values().collect();
        let mut patience = Patience::default();
        loop {
            {
                let _gate = self.gate.read();
                if let Some(states) = latch_all(&ordered, &mut patience) {
                    return self.wide_unit(op, states, f);
                }
            }
            wait_or_yield(op, None).await?;
        }
    }

    /// Runs `f` while no commit of the node is under way.
    ///
    /// # Errors
    /// An operation that is to end before it has come to that, and what `f` returns.
    pub(crate) async fn exclusively<T>(&self, op: &Operation, f: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut patience = Patience::default();
        loop {
            {
                let gate = patience.attempt(|| self.gate.try_write(), |time| self.gate.try_write_for(time));
                if gate.is_some() {
                    return f();
                }
            }
            wait_or_yield(op, None).await?;
        }
    }

    /// As [`Node::write_wide`] over no namespace. `note` takes in what `f` has returned and what was appended before the gate is
    /// let go: a step-down, which takes the gate, finds it noted.
    ///
    /// # Errors
    /// As [`Node::write_wide`].
    pub(crate) async fn write_wide_noting<T, N>(
        &self,
        op: &Operation,
        f: impl FnOnce(&mut WideUnit<'_>) -> Result<T>,
        note: impl FnOnce(T, &Appended) -> N,
    ) -> Result<Option<N>> {
        self.admit(op).await?;
        let _gate = self.gate.read();
        let (out, appended) = self.wide_unit(op, Vec::new(), f)?;
        Ok(appended.map(|appended| note(out, &appended)))
    }

    /// Runs `f` as one commit over the namespaces that `choose` names, while no other commit of the node is under way: `f` finds
    /// what `choose` has seen. For catalog changes of many collections; no version is checked.
    ///
    /// # Errors
    /// As [`Node::write_wide`].
    pub(crate) async fn write_alone<P, T>(
        &self,
        op: &Operation,
        choose: impl FnOnce() -> Result<(BTreeSet<String>, P)>,
        f: impl FnOnce(&mut WideUnit<'_>, P) -> Result<T>,
    ) -> Result<(T, Option<Appended>)> {
        self.admit(op).await?;
        self.exclusively(op, || {
            let (names, plan) = choose()?;
            let slots: Vec<Arc<Slot>> = names.iter().map(|ns| self.namespaces.slot(ns)).collect();
            let states = slots.iter().map(|slot| (&**slot, slot.write_unchecked())).collect();
            self.wide_unit(op, states, |unit| f(unit, plan))
        })
        .await
    }

    /// As [`Node::write_wide`], once, with the versions `received` compared for `first`: a critical section that is met is
    /// handed back, for the holder of an intent lock (see [`crate::ddl`]).
    pub(crate) fn write_wide_or_section<T>(
        &self,
        op: &Operation,
        received: &Received,
        (first, others): (&Slot, &[&Slot]),
        f: impl FnOnce(&mut WideUnit<'_>) -> Result<T>,
    ) -> Result<Met<T>> {
        let slots: Vec<&Slot> = std::iter::once(first).chain(others.iter().copied()).collect();
        first.write_all_or_section(&slots, &self.gate, received, |states| {
            self.wide_unit(op, states, f).map(|(out, _)| out)
        })
    }

    fn wide_unit<T>(
        &self,
        op: &Operation,
        states: Vec<(&Slot, RwLockWriteGuard<'_, SlotState>)>,
        f: impl FnOnce(&mut WideUnit<'_>) -> Result<T>,
    ) -> Result<(T, Option<Appended>)> {
        let ns = states.first().map_or("", |(slot, _)| &slot.ns);
        self.check_may_log(ns)?;
        states.iter().try_for_each(|(slot, _)| self.check_user_writes(op, &slot.ns))?;
        let mut states = states;
        for (slot, state) in &mut states {
            self.snapshots.before_change(slot, state);
        }
        let mut unit = WideUnit { node: self, op, commit: Commit::open(self.class_of(ns)), states };
        let out = meter::latched(|| f(&mut unit));
        let appended = unit.commit.finish(self, op);
        Ok((out?, appended))
    }

    /// Appends one entry that changes nothing under a latch. The caller holds the gate.
    pub(crate) fn append_entry(&self, draft: &Draft<'_>, o: Doc<'_>) -> Appended {
        let mut commit = Commit::open(self.class_of(draft.ns));
        commit.stage(draft, o, None);
        commit.append(self, |_| {})
    }
}

impl Node {
    /// Refuses entries for the oplog on a member that does not lead. Asked under the gate.
    pub(crate) fn check_may_log(&self, ns: &str) -> Result<()> {
        match self.class_of(ns) {
            Class::Local => Ok(()),
            Class::Oplog => self.check_leads(),
        }
    }

    /// Whether entries of a namespace are the oplog's or this node's own.
    pub(super) fn class_of(&self, ns: &str) -> Class {
        let own = self.is_detached || ns.starts_with("local.") || ns.ends_with(".system.profile");
        if own { Class::Local } else { Class::Oplog }
    }
}

impl WideUnit<'_> {
    /// The unit of one of the namespaces; `None` when the commit was not opened over it.
    pub fn on(&mut self, ns: &str) -> Option<WriteUnit<'_>> {
        let at = self.place(ns)?;
        let (slot, state) = &mut self.states[at];
        Some(WriteUnit::new(self.node, slot, state, self.op, &mut self.commit))
    }

    /// The states of two different namespaces; `None` when the commit was not opened over both.
    pub(crate) fn pair(&mut self, a: &str, b: &str) -> Option<(&mut SlotState, &mut SlotState)> {
        let places = [self.place(a)?, self.place(b)?];
        let [(_, first), (_, second)] = self.states.get_disjoint_mut(places).ok()?;
        Some((&mut **first, &mut **second))
    }

    /// Many namespaces stand in order, a few perhaps not.
    fn place(&self, ns: &str) -> Option<usize> {
        let found = self.states.binary_search_by(|(slot, _)| slot.ns.as_str().cmp(ns));
        found.ok().or_else(|| self.states.iter().position(|(slot, _)| slot.ns == ns))
    }

    /// Runs `f`; when it fails, the trees are put back and its entries are forgotten. `f` may not drop a
    /// collection, nor make or drop an index of one that was there. Observers are the caller's to tell, once nothing can be taken back.
    pub(crate) fn all_or_nothing<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before: Vec<_> =
            self.states.iter().map(|(_, s)| s.collection.as_ref().map(|c| c.snapshot())).collect();
        let staged = self.commit.staged.len();
        self.commit.tentative = true;
        let out = f(self);
        self.commit.tentative = false;
        if out.is_err() {
            for ((_, state), before) in self.states.iter_mut().zip(&before) {
                match (state.collection.as_mut(), before) {
                    (Some(c), Some(before)) => c.restore(before),
                    (Some(_), None) => drop(state.uninstall()),
                    (None, _) => {}
                }
            }
            self.commit.staged.truncate(staged);
        }
        out
    }

    /// Stages the changes of a transaction: what commits it, or prepares it.
    pub(crate) fn log_transaction(&mut self, t: &Transaction, writes: &[DocBuf], phase: Phase) -> Result<()> {
        let entries = crate::transaction::entries(writes, phase == Phase::Prepared);
        let statements = writes.iter().filter_map(|w| w.doc().get_i64("stmtId")).map(|n| n as i32).collect();
        self.commit.stage_transaction(t, &entries, (0, -1), phase, statements);
        Ok(())
    }

    /// Stages what the coordinator has decided about a transaction that was prepared at `prepared`.
    pub(crate) fn log_decision(&mut self, t: &Transaction, decision: Decision, prepared: OpTime) {
        let phase = match decision {
            Decision::Commit(_) => Phase::Committed,
            Decision::Abort => Phase::AbortedAfterPrepare,
        };
        let o = crate::transaction::decision_document(decision).to_doc_buf();
        self.commit.stage_transaction(t, &[o], (prepared.ts, prepared.term), phase, Vec::new());
    }

    /// Makes one `applyOps` entry of all that is staged. The length of its `o`.
    pub(crate) fn group(&mut self) -> usize {
        self.commit.group()
    }
}

impl Commit {
    /// Opens a commit whose entries are of one class ([`Node::class_of`]).
    pub(super) fn open(class: Class) -> Commit {
        Commit {
            lsid: None,
            previous: (0, -1),
            payloads: Vec::new(),
            staged: Vec::new(),
            parts: EntryParts::default(),
            insert_plan: InsertPlan::default(),
            removed: KeyBuffer::default(),
            class,
            transaction: None,
            tentative: false,
            _committing: Some(Committing),
        }
    }

    /// Nothing that reaches a tree others see: the changes of a transaction that is not committed.
    pub(super) fn apart() -> Commit {
        Commit { _committing: None, ..Commit::open(Class::Oplog) }
    }

    /// Stages the entries of a transaction: the first names `previous`, each other the one before it.
    fn stage_transaction(
        &mut self,
        t: &Transaction,
        entries: &[DocBuf],
        previous: (u64, i64),
        phase: Phase,
        statements: Vec<i32>,
    ) {
        let lsid = t.session.to_document().to_doc_buf();
        for (i, o) in entries.iter().enumerate() {
            let session = SessionPart { lsid: lsid.doc(), txn_number: t.number, statements: &[], previous };
            let draft = Draft { session: Some(session), ..Draft::new(Op::Command, "admin.$cmd", None) };
            self.stage(&draft, o.doc(), None);
            if let Some(staged) = self.staged.last_mut() {
                staged.chained = i > 0;
            }
        }
        self.transaction = Some((t.session, t.number, phase, statements));
    }

    /// Stages an entry.
    pub(super) fn stage(&mut self, draft: &Draft<'_>, o: Doc<'_>, statement: Option<i32>) {
        draft.encode(o, &mut self.parts);
        let start = self.payloads.len();
        for slice in self.parts.slices(o) {
            self.payloads.extend_from_slice(slice);
        }
        self.staged.push(Staged {
            payload: start..self.payloads.len(),
            statement,
            also: Vec::new(),
            chained: false,
        });
    }

    /// Stages an entry that may be a statement of the operation's session.
    pub(super) fn stage_statement(
        &mut self,
        node: &Node,
        op: &Operation,
        draft: Draft<'_>,
        o: Doc<'_>,
        (statement, also): (Option<i32>, &[i32]),
    ) {
        let fields = op.session.as_ref().filter(|s| s.txn_number.is_some());
        let Some((fields, statement)) = fields.zip(statement) else { return self.stage(&draft, o, None) };
        let number = fields.txn_number.unwrap_or(-1);
        if self.lsid.is_none() {
            self.previous = node.sessions.previous(&fields.lsid, number);
        }
        let lsid = self.lsid.take().unwrap_or_else(|| fields.lsid.to_document().to_doc_buf());
        let session = SessionPart {
            lsid: lsid.doc(),
            txn_number: number,
            statements: match also.is_empty() {
                true => &[statement],
                false => &[&[statement], also].concat(),
            },
            previous: self.previous,
        };
        self.stage(&Draft { session: Some(session), ..draft }, o, Some(statement));
        if let Some(staged) = self.staged.last_mut() {
            staged.also.extend_from_slice(also);
        }
        self.lsid = Some(lsid);
    }

    fn group(&mut self) -> usize {
        let o = DocWriter::build(|w| {
            w.array_with("applyOps", |w| {
                for (i, staged) in self.staged.iter().enumerate() {
                    let operation = Doc::from_validated(&self.payloads[staged.payload.clone()]);
                    w.with_index(i, |w, name| w.document(name, operation));
                }
            });
        });
        self.staged.clear();
        self.payloads.clear();
        self.stage(&Draft::new(Op::Command, "admin.$cmd", None), o.doc(), None);
        o.bytes().len()
    }

    /// Appends what is staged and notes it with the operation. Cannot fail.
    pub(super) fn finish(self, node: &Node, op: &Operation) -> Option<Appended> {
        if self.staged.is_empty() {
            return None;
        }
        let fields = op.session.as_ref().filter(|_| self.lsid.is_some());
        let mut times = Vec::with_capacity(if fields.is_some() { self.staged.len() } else { 0 });
        let appended = self.append(node, |ts| {
            if fields.is_some() {
                times.push(ts);
            }
        });
        if let Some(fields) = fields {
            let number = fields.txn_number.unwrap_or(-1);
            for (s, ts) in self.staged.iter().zip(&times) {
                if let Some(statement) = s.statement {
                    node.sessions.counts.changes.fetch_add(1, Ordering::Relaxed);
                    let at = EntryTime { ts: *ts, term: appended.last.term };
                    node.sessions.apply(fields.lsid, number, &[statement], at, appended.wall);
                    if !s.also.is_empty() {
                        node.sessions.apply(fields.lsid, number, &s.also, at, appended.wall);
                    }
                }
            }
        }
        if let Some((id, number, phase, statements)) = &self.transaction {
            let at = EntryTime { ts: appended.last.ts, term: appended.last.term };
            node.sessions.counts.changes.fetch_add(1, Ordering::Relaxed);
            node.sessions.apply_transaction(*id, *number, *phase, statements, at, appended.wall);
        }
        node.note_commit(op, &appended);
        Some(appended)
    }

    fn append(&self, node: &Node, mut note: impl FnMut(u64)) -> Appended {
        let (staged, payloads) = (&self.staged, &self.payloads);
        let (mut previous, term) = (0, node.log.term());
        node.log.append_with(self.class, staged.len(), |i, ts, out| {
            let payload = &payloads[staged[i].payload.clone()];
            match staged[i].chained {
                false => out.extend(payload),
                true => storage::entry::with_previous(payload, previous, term, |bytes| out.extend(bytes)),
            }
            previous = ts;
            note(ts);
        })
    }
}
