//! Logical sessions of a node: who is known, and which statements of retryable writes were executed.
//!
//! A session is checked out by one operation at a time, so two deliveries of one statement cannot both find it
//! unexecuted. What was executed is derived from log entries by [`protocol::session::Session::apply`] alone: at
//! commit (under the namespace's latch, so that the order is the log's), at replay, and from a checkpoint's image.
//!
//! A router executes some statements of a retryable write as transactions of its own, each in a *child* of the client's
//! session that names the write's number. What a child has committed counts as executed by the write, and of the children
//! of one number and the write itself only one is at work on this node at a time:
//!
//! ```text
//! a child begins, or the write itself comes    the parent is checked out
//!     what is in progress in other children    waited for a moment ([`GRACE`]), then aborted; a prepared one is waited for
//!     its statements                           looked up in the parent and in the children that have committed
//! ```
//!
//! So a repetition through another router either finds what the first delivery has done, or ends it before it is done.

use crate::Node;
use crate::operation::{ChildId, Operation, SessionId};
use crate::transaction::Transaction;
use document::{Document, Result, Value, bail, doc};
use parking_lot::Mutex;
use protocol::session::{EntryTime, INCOMPLETE_HISTORY, Session, Statement};
use protocol::transaction::{Admission, Phase, Request};
use runtime::simulation::{self, Check};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// One session known to this node.
pub struct SessionSlot {
    pub id: SessionId,
    pub(crate) checkout: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<Session>,
    /// The transaction under way, if there is one.
    transaction: Mutex<Option<Arc<Transaction>>>,
    last_use_ms: AtomicI64,
}

impl SessionSlot {
    pub fn transaction(&self) -> Option<Arc<Transaction>> {
        self.transaction.lock().clone()
    }
    pub(crate) fn set_transaction(&self, transaction: Option<Arc<Transaction>>) {
        *self.transaction.lock() = transaction;
    }
    pub(crate) fn admit(&self, number: i64, request: Request) -> Result<Admission> {
        self.state.lock().admit(number, request, || document::encoding::hex(&self.id.id))
    }
    pub(crate) fn is_prepared(&self) -> bool {
        self.state.lock().phase == Phase::Prepared
    }
    fn is_unused_since(&self, ms: i64) -> bool {
        self.last_use_ms.load(Ordering::Relaxed) < ms
    }
    /// Whether it has begun a write or a transaction, so that a late repetition has to find it.
    fn has_history(&self) -> bool {
        self.state.lock().txn_number >= 0
    }
    /// Whether an operation has it in hand, or a transaction of it has not ended.
    fn is_busy(self: &Arc<Self>) -> bool {
        // A session that is checked out has a second owner.
        Arc::strong_count(self) > 1 || self.transaction.lock().is_some() || self.is_prepared()
    }
    pub(crate) fn set_phase(&self, number: i64, phase: Phase) {
        self.state.lock().set_phase(number, phase);
    }
    /// The number of the parent's retryable write that this session executes.
    fn executes(&self) -> Option<i64> {
        self.id.child?.number
    }
    /// The statements that it has committed, under the session and number that a repetition comes with.
    fn executed(&self) -> Vec<(SessionId, i64, i32, EntryTime)> {
        let state = self.state.lock();
        let (session, number) = self.id.executes().unwrap_or((self.id, state.txn_number));
        let counts = self.id.child.is_none() || state.phase == Phase::Committed;
        let executed = state.executed.iter().filter(|_| counts);
        executed.map(|(stmt, at)| (session, number, *stmt, *at)).collect()
    }
}

/// Whether `what` came within `time`.
async fn within(time: Duration, what: impl Future<Output = ()>) -> bool {
    tokio::time::timeout(time, what).await.is_ok()
}

/// How long a transaction that executes a retryable write may go on after another delivery of the write has come.
const GRACE: Duration = Duration::from_millis(50);
/// The pause between attempts to end one whose session is busy.
const BUSY: Duration = Duration::from_millis(20);

/// What was done with sessions since the node was started.
#[derive(Default)]
pub struct Counts {
    /// Retryable writes that had been executed before, wholly or in part, and how many of their statements.
    pub retried_commands: AtomicI64,
    pub retried_statements: AtomicI64,
    /// Changes of what `config.transactions` shows, made as primary.
    pub changes: AtomicI64,
}

/// Held while an operation runs a statement of a retryable write.
pub struct Checkout {
    pub session: Arc<SessionSlot>,
    counts: Arc<Counts>,
    /// Some statement was executed before.
    retried: AtomicBool,
    /// The children that have committed something under the same number.
    children: Vec<Arc<SessionSlot>>,
    _guard: tokio::sync::OwnedMutexGuard<()>,
}

impl Checkout {
    /// Whether statement `stmt` is to be executed now.
    pub fn check(&self, stmt: i32) -> Result<Statement> {
        let by_child = self.children.iter().find_map(|c| c.state.lock().executed.get(&stmt).copied());
        let found = match by_child {
            Some(at) => Statement::AlreadyExecuted(at),
            None => self.session.state.lock().check(stmt)?,
        };
        match found {
            Statement::AlreadyExecuted(_) if simulation::omits(Check::Executed) => Ok(Statement::Execute),
            Statement::AlreadyExecuted(at) => {
                self.count_retried();
                Ok(Statement::AlreadyExecuted(at))
            }
            found => Ok(found),
        }
    }

    fn count_retried(&self) {
        self.counts.retried_statements.fetch_add(1, Ordering::Relaxed);
        if !self.retried.swap(true, Ordering::Relaxed) {
            self.counts.retried_commands.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[derive(Default)]
pub struct SessionTable {
    pub counts: Arc<Counts>,
    slots: Mutex<BTreeMap<SessionId, Arc<SessionSlot>>>,
    /// Whether there was ever a child: most nodes never see one.
    has_children: AtomicBool,
}

impl SessionTable {
    /// The session's slot, made when unknown; notes that it was used.
    pub fn touch(&self, id: SessionId, now_ms: i64) -> Arc<SessionSlot> {
        if id.child.is_some() {
            self.has_children.store(true, Ordering::Relaxed);
        }
        let mut slots = self.slots.lock();
        let slot = slots.entry(id).or_insert_with(|| {
            Arc::new(SessionSlot {
                id,
                checkout: Arc::default(),
                state: Mutex::new(Session::new()),
                transaction: Mutex::new(None),
                last_use_ms: now_ms.into(),
            })
        });
        slot.last_use_ms.fetch_max(now_ms, Ordering::Relaxed);
        slot.clone()
    }

    /// Checks the operation's session out for a retryable write; `None` when it is no retryable write.
    ///
    /// # Errors
    /// Those of [`SessionTable::check_out_write`].
    pub async fn check_out(&self, node: &Node, op: &Operation) -> Result<Option<Checkout>> {
        let Some(fields) = op.session.as_ref().filter(|_| op.is_retryable_write()) else { return Ok(None) };
        let Some(txn_number) = fields.txn_number else { return Ok(None) };
        self.check_out_write(node, op, fields.lsid, txn_number, None).await.map(Some)
    }

    /// Checks a session out for its retryable write of this number, which nothing else on this node executes then. `child` is
    /// the child that is about to.
    ///
    /// # Errors
    /// TransactionTooOld (225), IncompleteTransactionHistory (217) for the number of a transaction; an interrupt while
    /// another operation holds the session.
    pub(crate) async fn check_out_write(
        &self,
        node: &Node,
        op: &Operation,
        parent: SessionId,
        number: i64,
        child: Option<SessionId>,
    ) -> Result<Checkout> {
        let session = self.touch(parent, node.now_ms());
        let guard = loop {
            let guard = op.interruptible(session.checkout.clone().lock_owned()).await?;
            // A transaction of an older number ends: one that is prepared by its coordinator, any other now.
            match session.transaction().filter(|t| t.number < number) {
                None if session.transaction().is_none() && session.is_prepared() => bail!(
                    INTERRUPTED_DUE_TO_REPL_STATE_CHANGE,
                    "what the session has prepared is the log's, and its outcome not known here"
                ),
                None => break guard,
                Some(t) if t.is_prepared() => {
                    drop(guard);
                    op.interruptible(t.wait_ended()).await?;
                }
                Some(t) => node.abort_unprepared(&session, &t),
            }
        };
        session.state.lock().begin(number, || document::encoding::hex(&parent.id))?;
        let mut children = self.settle_children(node, op, parent, number, child).await?;
        children.retain(|c| c.executes() == Some(number) && c.state.lock().phase == Phase::Committed);
        let (counts, retried) = (self.counts.clone(), AtomicBool::new(false));
        Ok(Checkout { session, counts, retried, children, _guard: guard })
    }

    /// Returns when nothing is in progress in the children of the numbers up to `number`, but for `except`, which it returns;
    /// forgets those of older numbers. The caller holds the parent, so none begins meanwhile.
    pub(crate) async fn settle_children(
        &self,
        node: &Node,
        op: &Operation,
        parent: SessionId,
        number: i64,
        except: Option<SessionId>,
    ) -> Result<Vec<Arc<SessionSlot>>> {
        if !self.has_children.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let children = self.forget_children(&parent, number);
        let mut waited = false;
        for child in children.iter().filter(|child| Some(child.id) != except) {
            let mut patience = if child.executes() == Some(number) { GRACE } else { Duration::ZERO };
            while let Some(t) = child.transaction() {
                waited = true;
                if t.is_prepared() {
                    op.interruptible(t.wait_ended()).await?;
                    continue;
                }
                if !patience.is_zero() && op.interruptible(within(patience, t.wait_ended())).await? {
                    continue;
                }
                patience = BUSY;
                node.end_sibling(&t);
            }
        }
        Ok(if waited { self.forget_children(&parent, number) } else { children })
    }

    /// Forgets the children of older numbers in which nothing is in progress. Returns the others of the numbers up to `number`.
    fn forget_children(&self, parent: &SessionId, number: i64) -> Vec<Arc<SessionSlot>> {
        let mut slots = self.slots.lock();
        let (mut kept, mut over) = (Vec::new(), Vec::new());
        for (id, child) in family(&slots, parent) {
            match child.executes() {
                Some(n) if n < number && child.transaction().is_none() => over.push(*id),
                Some(n) if n <= number => kept.push(child.clone()),
                _ => {}
            }
        }
        for id in over {
            slots.remove(&id);
        }
        kept
    }

    /// Takes in a log entry's session fields.
    pub fn apply(&self, id: SessionId, txn_number: i64, stmts: &[i32], at: EntryTime, wall_ms: i64) {
        self.touch(id, wall_ms).state.lock().apply(txn_number, stmts, at, wall_ms);
    }

    /// Takes in what a log entry says of a session's transaction; `stmts` are statements of the retryable write that it
    /// executes, whose older numbers are history from then on.
    pub fn apply_transaction(
        &self,
        id: SessionId,
        txn_number: i64,
        phase: Phase,
        stmts: &[i32],
        at: EntryTime,
        wall_ms: i64,
    ) {
        if let Some((parent, number)) = id.executes() {
            self.apply(parent, number, &[], at, wall_ms);
            self.forget_children(&parent, number);
        }
        self.touch(id, wall_ms).state.lock().apply_transaction(txn_number, phase, stmts, at, wall_ms);
    }

    /// What a session's number has come to as a transaction.
    pub fn phase(&self, id: &SessionId, txn_number: i64) -> Phase {
        let slot = self.slots.lock().get(id).cloned();
        slot.map_or(Phase::None, |s| {
            let state = s.state.lock();
            if state.txn_number == txn_number { state.phase } else { Phase::None }
        })
    }
    /// # Errors
    /// TransactionTooOld (225) when the session has gone on to a newer number.
    pub fn refuse_older(&self, id: &SessionId, txn_number: i64) -> Result<()> {
        let slot = self.slots.lock().get(id).cloned();
        let Some(slot) = slot else { return Ok(()) };
        let state = slot.state.lock();
        match txn_number < state.txn_number {
            true => state.refuse_older(txn_number, || document::encoding::hex(&id.id)),
            false => Ok(()),
        }
    }
    /// What every session has executed under its newest number: `(session, number, statement, entry)`.
    pub fn executed(&self) -> Vec<(SessionId, i64, i32, EntryTime)> {
        let slots: Vec<Arc<SessionSlot>> = self.slots.lock().values().cloned().collect();
        slots.iter().flat_map(|slot| slot.executed()).collect()
    }
    /// Sessions, with their newest numbers, of whose history a part is missing here.
    pub fn incomplete(&self) -> Vec<(SessionId, i64)> {
        let slots: Vec<Arc<SessionSlot>> = self.slots.lock().values().cloned().collect();
        let numbered = slots.iter().filter_map(|slot| {
            let state = slot.state.lock();
            state.incomplete.then_some((slot.id, state.txn_number))
        });
        numbered.collect()
    }
    /// Timestamp and term of the session's newest entry under this number; `(0, -1)` before the first.
    pub fn previous(&self, id: &SessionId, txn_number: i64) -> (u64, i64) {
        let slot = self.slots.lock().get(id).cloned();
        let Some(slot) = slot else { return (0, -1) };
        let state = slot.state.lock();
        match state.txn_number == txn_number && !state.executed.is_empty() {
            true => (state.last_write.ts, state.last_write.term),
            false => (0, -1),
        }
    }
    /// Whether the statement needs no entry here: it is known, or its number is history.
    pub fn knows(&self, id: &SessionId, txn_number: i64, stmt: i32) -> bool {
        let slots = self.slots.lock();
        let by_child = |c: &SessionSlot| {
            let state = c.state.lock();
            state.phase == Phase::Committed && state.executed.contains_key(&stmt)
        };
        if self.has_children.load(Ordering::Relaxed)
            && family(&slots, id).any(|(_, c)| c.executes() == Some(txn_number) && by_child(c))
        {
            return true;
        }
        slots.get(id).is_some_and(|s| {
            let state = s.state.lock();
            state.txn_number > txn_number
                || (state.txn_number == txn_number
                    && match stmt {
                        INCOMPLETE_HISTORY => state.incomplete,
                        stmt => state.executed.contains_key(&stmt),
                    })
        })
    }

    /// Forgets every session: the state they belong to is replaced.
    pub fn clear(&self) {
        self.slots.lock().clear();
    }
    pub fn len(&self) -> usize {
        self.slots.lock().len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Forgets a session: its client ended it and nothing was written under it. One that an operation has in hand stays.
    pub fn end(&self, id: &SessionId) {
        let mut slots = self.slots.lock();
        if slots.get(id).is_some_and(|s| Arc::strong_count(s) == 1 && s.state.lock().txn_number < 0) {
            slots.remove(id);
        }
    }
    /// Forgets sessions not used since `before_ms` that have written nothing a repetition could ask for. Returns how many.
    /// One with a transaction stays: what is prepared is its coordinator's.
    pub fn reap(&self, before_ms: i64) -> usize {
        reap_where(&mut self.slots.lock(), |s| s.is_unused_since(before_ms) && !s.has_history())
    }
    /// Clients' sessions that have written something, themselves or by a child, and were not used since `before_ms`; none of
    /// those in which a transaction has not ended.
    pub fn with_old_history(&self, before_ms: i64) -> BTreeSet<SessionId> {
        with_old_history(&self.slots.lock(), before_ms)
    }
    /// Forgets what these sessions and their children have done, except for those used since `before_ms`. A session is
    /// forgotten with its children or not at all: together they hold the history of its writes. Returns how many went.
    pub fn reap_history(&self, of: &BTreeSet<SessionId>, before_ms: i64) -> usize {
        if of.is_empty() {
            return 0;
        }
        let mut slots = self.slots.lock();
        let old = with_old_history(&slots, before_ms);
        reap_where(&mut slots, |s| {
            let client = s.id.parent();
            of.contains(&client) && old.contains(&client)
        })
    }
    /// Forgets, of the sessions that servers made for transactions of their own, those not used since `before_ms`. Those that
    /// execute retryable writes stay as long as their parents: they hold its history.
    pub fn reap_internal(&self, before_ms: i64) -> usize {
        let internal = |s: &SessionSlot| s.id.child.is_some_and(|c| c.number.is_none());
        reap_where(&mut self.slots.lock(), |s| internal(s) && s.is_unused_since(before_ms))
    }
    /// The table as documents of `config.transactions`.
    pub fn documents(&self) -> Vec<Document> {
        let slots = self.slots.lock();
        slots.values().filter_map(|s| transaction_document(&s.id, &s.state.lock())).collect()
    }

    /// The table as one document for a checkpoint.
    pub fn image(&self) -> Document {
        let slots = self.slots.lock();
        let sessions = slots.values().map(|slot| image_of(slot)).collect::<Vec<Document>>();
        doc! { "sessions": sessions }
    }
    /// Reads [`SessionTable::image`] back. Malformed members are passed over: the checkpoint's checksum vouches.
    pub fn restore(&self, image: &Document) {
        for item in image.get_array("sessions").into_iter().flatten() {
            if let Some(d) = item.as_document() {
                self.restore_one(d);
            }
        }
    }
    fn restore_one(&self, d: &Document) -> Option<()> {
        let lsid = SessionId::parse(d.get_document("lsid")?.to_doc_buf().doc()).ok()?;
        let mut session = Session::new();
        session.txn_number = d.get_i64("txnNumber")?;
        session.last_write = EntryTime { ts: d.get_i64("ts")? as u64, term: d.get_i64("t")? };
        session.last_write_date = d.get_i64("date")?;
        session.incomplete = d.get_bool("incomplete").unwrap_or(false);
        session.phase = d.get_str("phase").map_or(Phase::None, Phase::from_name);
        // What was in progress has ended with the process.
        if session.phase == Phase::InProgress {
            session.phase = Phase::Aborted;
        }
        if let Some(start) = d.get_i64("start") {
            session.start = Some(EntryTime { ts: start as u64, term: d.get_i64("startTerm").unwrap_or(-1) });
        }
        for triple in d.get_array("executed")? {
            let t = triple.as_array()?;
            let number = |i: usize| t.get(i).and_then(Value::as_i64);
            let at = EntryTime { ts: number(1)? as u64, term: number(2)? };
            session.executed.insert(i32::try_from(number(0)?).ok()?, at);
        }
        let last_use = session.last_write_date;
        *self.touch(lsid, last_use).state.lock() = session;
        Some(())
    }
}

/// See [`SessionTable::with_old_history`].
fn with_old_history(slots: &BTreeMap<SessionId, Arc<SessionSlot>>, before_ms: i64) -> BTreeSet<SessionId> {
    let is_old = |s: &Arc<SessionSlot>| s.is_unused_since(before_ms) && !s.is_busy();
    let written = slots.values().filter(|s| is_old(s) && s.has_history());
    let mut old: BTreeSet<SessionId> = written.map(|s| s.id.parent()).collect();
    if old.is_empty() {
        return old;
    }
    for slot in slots.values().filter(|s| !is_old(s)) {
        old.remove(&slot.id.parent());
    }
    old
}

/// Forgets the sessions that are chosen, except for those that are busy; returns how many.
fn reap_where(
    slots: &mut BTreeMap<SessionId, Arc<SessionSlot>>,
    chosen: impl Fn(&SessionSlot) -> bool,
) -> usize {
    let before = slots.len();
    slots.retain(|_, s| !chosen(s) || s.is_busy());
    before - slots.len()
}

/// The sessions that execute a session's retryable writes.
fn family<'a>(
    slots: &'a BTreeMap<SessionId, Arc<SessionSlot>>,
    parent: &SessionId,
) -> impl Iterator<Item = (&'a SessionId, &'a Arc<SessionSlot>)> {
    let first = SessionId { child: Some(ChildId { number: Some(0), uuid: [0; 16] }), ..*parent };
    let parent = *parent;
    slots.range(first..).take_while(move |(id, _)| id.parent() == parent)
}

fn image_of(slot: &SessionSlot) -> Document {
    let s = slot.state.lock();
    let executed: Vec<Value> = s
        .executed
        .iter()
        .map(|(stmt, at)| {
            Value::Array(vec![Value::Int32(*stmt), Value::Int64(at.ts as i64), Value::Int64(at.term)])
        })
        .collect();
    let mut image = doc! {
        "lsid": slot.id.to_document(), "txnNumber": s.txn_number, "ts": s.last_write.ts as i64,
        "t": s.last_write.term, "date": s.last_write_date, "incomplete": s.incomplete, "executed": executed,
    };
    if let Some(phase) = s.phase.name() {
        image.push("phase", phase);
    }
    if let Some(start) = s.start {
        image.push("start", start.ts as i64);
        image.push("startTerm", start.term);
    }
    image
}

fn transaction_document(id: &SessionId, s: &Session) -> Option<Document> {
    if s.last_write.ts == 0 {
        return None;
    }
    let optime = |at: EntryTime| doc! { "ts": document::Timestamp::from_u64(at.ts), "t": at.term };
    let mut shown = doc! { "_id": id.to_document(), "txnNum": s.txn_number };
    if id.child.is_some() {
        shown.push("parentLsid", id.parent().to_document());
    }
    if let Some(start) = s.start {
        shown.push("startOpTime", optime(start));
    }
    shown.push("lastWriteOpTime", optime(s.last_write));
    shown.push("lastWriteDate", Value::DateTime(s.last_write_date));
    if let Some(phase) = s.phase.name() {
        shown.push("state", phase);
    }
    Some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::NO_USER;

    /// Else the operation would begin its transaction where nobody finds it, and a repetition would run beside it.
    #[test]
    fn a_session_that_an_operation_has_in_hand_is_not_ended_beside_it() {
        let table = SessionTable::default();
        let id = SessionId::of_client([7; 16], NO_USER);
        let held = table.touch(id, 1);
        table.end(&id);
        assert!(Arc::ptr_eq(&held, &table.touch(id, 2)));
        drop(held);
        table.end(&id);
        assert!(table.is_empty());
    }

    #[test]
    fn history_is_forgotten_of_old_sessions_that_are_named_and_with_all_their_children() {
        let table = SessionTable::default();
        let id = |n: u8| SessionId::of_client([n; 16], NO_USER);
        let at = EntryTime { ts: 1, term: 1 };
        table.touch(id(1), 10);
        for (n, used) in [(2, 10), (3, 10), (4, 30)] {
            table.apply(id(n), 1, &[0], at, used);
        }
        // Its child has executed its write long ago, and it was used since.
        table.apply_transaction(id(5).with_child(Some(1), [5; 16]), 0, Phase::Committed, &[0], at, 10);
        table.touch(id(5), 30);
        // A secondary knows of what is prepared from the log alone.
        table.apply_transaction(id(6), 1, Phase::Prepared, &[], at, 10);

        assert_eq!(table.reap(20), 1, "one that has written nothing");
        assert_eq!(table.with_old_history(20), BTreeSet::from([id(2), id(3)]));
        let named = BTreeSet::from([id(3), id(4), id(5), id(6)]);
        assert_eq!(table.reap_history(&named, 20), 1);
        assert!(table.knows(&id(2), 1, 0) && !table.knows(&id(3), 1, 0));
        assert_eq!(table.reap_history(&named, 40), 3, "one, and one with its child");
        assert_eq!(table.len(), 2, "what is not named, and what is prepared");
    }
}
