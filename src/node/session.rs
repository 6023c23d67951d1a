//! Logical sessions of a node: who is known, and which statements of retryable writes were executed.
//!
//! A session is checked out by one operation at a time, so two deliveries of one statement cannot both find it
//! unexecuted. What was executed is derived from log entries by [`protocol::session::Session::apply`] alone: at
//! commit (under the namespace's latch, so that the order is the log's), at replay, and from a checkpoint's image.

use crate::operation::{Operation, SessionId};
use document::{Document, Result, Value, doc};
use parking_lot::Mutex;
use protocol::session::{EntryTime, INCOMPLETE_HISTORY, Session, Statement};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One session known to this node.
pub struct SessionSlot {
    pub id: SessionId,
    checkout: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<Session>,
    last_use_ms: std::sync::atomic::AtomicI64,
}

/// Held while an operation runs a statement of a retryable write.
pub struct Checkout {
    pub session: Arc<SessionSlot>,
    _guard: tokio::sync::OwnedMutexGuard<()>,
}

impl Checkout {
    /// Whether statement `stmt` is to be executed now.
    pub fn check(&self, stmt: i32) -> Result<Statement> {
        self.session.state.lock().check(stmt)
    }
}

#[derive(Default)]
pub struct SessionTable {
    slots: Mutex<BTreeMap<SessionId, Arc<SessionSlot>>>,
}

impl SessionTable {
    /// The session's slot, made when unknown; notes that it was used.
    pub fn touch(&self, id: SessionId, now_ms: i64) -> Arc<SessionSlot> {
        let mut slots = self.slots.lock();
        let slot = slots.entry(id).or_insert_with(|| {
            Arc::new(SessionSlot {
                id,
                checkout: Arc::default(),
                state: Mutex::new(Session::new()),
                last_use_ms: now_ms.into(),
            })
        });
        slot.last_use_ms.fetch_max(now_ms, std::sync::atomic::Ordering::Relaxed);
        slot.clone()
    }

    /// Checks the operation's session out for a retryable write; `None` when it is no retryable write.
    ///
    /// # Errors
    /// TransactionTooOld (225); an interrupt while another operation holds the session.
    pub async fn check_out(&self, op: &Operation, now_ms: i64) -> Result<Option<Checkout>> {
        let Some(fields) = op.session.as_ref().filter(|_| op.is_retryable_write()) else { return Ok(None) };
        let Some(txn_number) = fields.txn_number else { return Ok(None) };
        let session = self.touch(fields.lsid, now_ms);
        let guard = op.interruptible(session.checkout.clone().lock_owned()).await?;
        session.state.lock().begin(txn_number, || document::encoding::hex(&fields.lsid.id))?;
        Ok(Some(Checkout { session, _guard: guard }))
    }

    /// Takes in a log entry's session fields.
    pub fn apply(&self, id: SessionId, txn_number: i64, stmts: &[i32], at: EntryTime, wall_ms: i64) {
        self.touch(id, wall_ms).state.lock().apply(txn_number, stmts, at, wall_ms);
    }

    /// What every session has executed under its newest number: `(session, number, statement, entry)`.
    pub fn executed(&self) -> Vec<(SessionId, i64, i32, EntryTime)> {
        let slots: Vec<Arc<SessionSlot>> = self.slots.lock().values().cloned().collect();
        let mut all = Vec::new();
        for slot in slots {
            let state = slot.state.lock();
            all.extend(state.executed.iter().map(|(stmt, at)| (slot.id, state.txn_number, *stmt, *at)));
        }
        all
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
        let slot = self.slots.lock().get(id).cloned();
        slot.is_some_and(|s| {
            let state = s.state.lock();
            state.txn_number > txn_number
                || (state.txn_number == txn_number
                    && match stmt {
                        INCOMPLETE_HISTORY => state.incomplete,
                        stmt => state.executed.contains_key(&stmt),
                    })
        })
    }

    pub fn len(&self) -> usize {
        self.slots.lock().len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Forgets a session: its client ended it and nothing was written under it.
    pub fn end(&self, id: &SessionId) {
        let mut slots = self.slots.lock();
        if slots.get(id).is_some_and(|s| s.state.lock().txn_number < 0) {
            slots.remove(id);
        }
    }
    /// Forgets sessions not used since `before_ms`.
    pub fn reap(&self, before_ms: i64) -> usize {
        let mut slots = self.slots.lock();
        let before = slots.len();
        // A session that is checked out has a second owner.
        slots.retain(|_, s| {
            s.last_use_ms.load(std::sync::atomic::Ordering::Relaxed) >= before_ms || Arc::strong_count(s) > 1
        });
        before - slots.len()
    }
    /// `(id, last use in ms)` of every session.
    pub fn list(&self) -> Vec<(SessionId, i64)> {
        let slots = self.slots.lock();
        slots.values().map(|s| (s.id, s.last_use_ms.load(std::sync::atomic::Ordering::Relaxed))).collect()
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

fn image_of(slot: &SessionSlot) -> Document {
    let s = slot.state.lock();
    let executed: Vec<Value> = s
        .executed
        .iter()
        .map(|(stmt, at)| {
            Value::Array(vec![Value::Int32(*stmt), Value::Int64(at.ts as i64), Value::Int64(at.term)])
        })
        .collect();
    doc! {
        "lsid": slot.id.to_document(), "txnNumber": s.txn_number, "ts": s.last_write.ts as i64,
        "t": s.last_write.term, "date": s.last_write_date, "incomplete": s.incomplete, "executed": executed,
    }
}

fn transaction_document(id: &SessionId, s: &Session) -> Option<Document> {
    if s.last_write.ts == 0 {
        return None;
    }
    Some(doc! {
        "_id": id.to_document(),
        "txnNum": s.txn_number,
        "lastWriteOpTime": { "ts": document::Timestamp::from_u64(s.last_write.ts), "t": s.last_write.term },
        "lastWriteDate": Value::DateTime(s.last_write_date),
    })
}
