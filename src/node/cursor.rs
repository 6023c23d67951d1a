//! Cursors between two batches.
//!
//! An entry is *idle* (it holds the rows) or *pinned* (a getMore has taken the rows out and holds a [`Pin`]). A pin that
//! is dropped without [`Pin::park`] takes the cursor with it, so a getMore whose client went away leaves nothing.
//! Killing an idle cursor drops its rows at once; killing a pinned one kills the operation that holds it.
//!
//! A cursor keeps what it began with: its snapshot and, on a shard, the filter of documents the shard owned then. So a
//! chunk that moves away meanwhile neither adds nor hides a document.

use crate::memory;
use crate::operation::{ApiParameters, Operation, ReadLevel, SessionId};
use crate::read::rows::Rows;
use crate::transaction::Transaction;
use document::{Doc, DocBuf, Document, Error, Result, Value, bail, codes, err};
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// An idle cursor lives this long unless it asked for no timeout: `cursorTimeoutMillis`.
pub const IDLE_MS: i64 = 10 * 60 * 1000;
/// A cursor idle for this long gives its snapshot back, and goes on from its position in the collection as it then is.
pub const SNAPSHOT_IDLE_MS: i64 = 60 * 1000;
/// How long an idle cursor lives at most while the process is above its memory limit.
pub const SHORT_IDLE_MS: i64 = 30 * 1000;
/// Two looks for expired cursors are at least this far apart.
const REAP_EVERY_MS: i64 = 1000;

/// A query whose client has not seen its end.
pub struct Cursor {
    pub ns: String,
    pub session: Option<SessionId>,
    /// The number of the transaction that it was opened in.
    pub transaction: Option<i64>,
    pub rows: Rows,
    pub no_timeout: bool,
    /// What its reads promise, each batch like the first.
    pub level: ReadLevel,
    /// It reads at one moment to its end, however long its client waits.
    pub keeps_snapshot: bool,
    /// That moment, where later batches read more than the snapshot that the rows hold.
    pub reader: Option<Arc<Transaction>>,
    /// What its batches have not used yet of the time that `maxTimeMS` gave them together.
    pub time_left: Option<Duration>,
    pub account: Account,
}

/// What `$currentOp` shows of a cursor.
#[derive(Clone)]
pub struct Account {
    /// The command that opened it.
    pub command: Arc<DocBuf>,
    pub created_ms: i64,
    /// Documents and batches handed out.
    pub returned: u64,
    pub batches: u64,
}

impl Account {
    /// Of a cursor that `command` opened now, whose first batch has so many documents.
    pub fn new(command: Doc<'_>, now_ms: i64, returned: usize) -> Account {
        Account {
            command: Arc::new(command.to_owned()),
            created_ms: now_ms,
            returned: returned as u64,
            batches: 1,
        }
    }
}

/// Ends of the classes in which cursors' lives are counted, in seconds; the last class has none.
const LIFE_SECONDS: [u64; 6] = [1, 5, 15, 30, 60, 600];
const LIFE_NAMES: [&str; 7] = [
    "lessThan1Second",
    "lessThan5Seconds",
    "lessThan15Seconds",
    "lessThan30Seconds",
    "lessThan1Minute",
    "lessThan10Minutes",
    "greaterThanOrEqual10Minutes",
];

/// How long the cursors lived that are gone: a count for each class.
#[derive(Default)]
pub struct Lives([AtomicU64; 7]);

impl Lives {
    /// A life that begins now, and is counted when it is dropped.
    pub fn begin(self: &Arc<Lives>) -> Life {
        Life { began: Instant::now(), counted: self.clone() }
    }
    pub fn counts(&self) -> [u64; 7] {
        self.0.each_ref().map(|n| n.load(Ordering::Relaxed))
    }
}

/// The life of one cursor.
pub struct Life {
    began: Instant,
    counted: Arc<Lives>,
}

impl Drop for Life {
    fn drop(&mut self) {
        let seconds = self.began.elapsed().as_secs();
        let class = LIFE_SECONDS.iter().position(|end| seconds < *end).unwrap_or(LIFE_SECONDS.len());
        self.counted.0[class].fetch_add(1, Ordering::Relaxed);
    }
}

struct Entry {
    /// Dropped with the entry.
    _life: Life,
    ns: String,
    session: Option<SessionId>,
    transaction: Option<i64>,
    /// Of the command that opened it.
    api: ApiParameters,
    no_timeout: bool,
    last_use_ms: i64,
    /// Up to the last batch but the one under way.
    account: Account,
    state: State,
}

enum State {
    Idle(Box<Cursor>),
    Pinned(Arc<Operation>),
}

/// All cursors of a node.
pub struct Cursors {
    entries: Mutex<HashMap<i64, Entry>>,
    timed_out: AtomicU64,
    opened: AtomicU64,
    more_than_one_batch: AtomicU64,
    lives: Arc<Lives>,
    idle_ms: AtomicI64,
    next_reap_ms: AtomicI64,
}

impl Default for Cursors {
    fn default() -> Cursors {
        Cursors {
            entries: Mutex::default(),
            timed_out: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            more_than_one_batch: AtomicU64::new(0),
            lives: Arc::default(),
            idle_ms: AtomicI64::new(IDLE_MS),
            next_reap_ms: AtomicI64::new(0),
        }
    }
}

/// What `serverStatus.metrics.cursor` shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CursorMetrics {
    pub open: u64,
    pub pinned: u64,
    pub no_timeout: u64,
    pub timed_out: u64,
    pub total_opened: u64,
    pub more_than_one_batch: u64,
    /// See [`Lives`].
    pub lives: [u64; 7],
}

impl CursorMetrics {
    /// `lifespan`: how many cursors that are gone lived how long.
    pub fn lifespans(&self) -> Document {
        LIFE_NAMES
            .iter()
            .zip(self.lives)
            .map(|(name, n)| ((*name).to_string(), Value::from(n as i64)))
            .collect()
    }
}

/// What killing a cursor came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    Yes,
    NotFound,
}

/// One open cursor as `$currentOp` shows it.
pub struct CursorInfo {
    pub id: i64,
    pub ns: String,
    pub session: Option<SessionId>,
    pub last_use_ms: i64,
    pub no_timeout: bool,
    pub account: Account,
    /// The number of the getMore that uses it now.
    pub operation: Option<i64>,
}

impl Cursors {
    /// Registers a cursor and answers its id, a positive random number.
    ///
    /// # Errors
    /// InternalError when the system has no random numbers to give; ExceededMemoryLimit where memory is short and the cursor
    /// would take much of it.
    pub fn open(&self, cursor: Cursor, now_ms: i64) -> Result<i64> {
        self.reap_if_due(now_ms);
        let kept = cursor.rows.held_bytes() + cursor.account.command.bytes().len();
        let api = ApiParameters::of(cursor.account.command.doc());
        let mut entries = self.entries.lock();
        memory::check_cursor(kept, entries.len())?;
        let id = loop {
            let id = random_id();
            if !entries.contains_key(&id) {
                break id;
            }
        };
        entries.insert(
            id,
            Entry {
                _life: self.lives.begin(),
                ns: cursor.ns.clone(),
                session: cursor.session,
                transaction: cursor.transaction,
                api,
                no_timeout: cursor.no_timeout,
                last_use_ms: now_ms,
                account: cursor.account.clone(),
                state: State::Idle(Box::new(cursor)),
            },
        );
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(id)
    }

    /// Takes the cursor for one getMore.
    ///
    /// # Errors
    /// CursorNotFound (43), Unauthorized (13) for another namespace, 50736-50738 for another session, APIMismatchError (347), CursorInUse.
    pub fn pin(&self, id: i64, ns: &str, op: &Arc<Operation>, now_ms: i64) -> Result<Pin<'_>> {
        self.reap_if_due(now_ms);
        let mut entries = self.entries.lock();
        let entry = entries.get_mut(&id).ok_or_else(|| not_found(id))?;
        if matches!(entry.state, State::Pinned(_)) {
            return Err(Error::new(CURSOR_IN_USE, format!("cursor id {id} is already in use")));
        }
        if entry.ns != ns {
            bail!(
                UNAUTHORIZED,
                "Requested getMore on namespace '{ns}', but cursor belongs to a different namespace {}",
                entry.ns
            );
        }
        check_session(OF_NODE, id, entry.session, op.session.as_ref().map(|s| s.lsid))?;
        check_transaction(OF_NODE, id, entry.transaction, op.transaction_number())?;
        // Routers look at what their clients say, and ask for more without saying it again.
        if !op.client.internal.load(Ordering::Relaxed) {
            op.api.check_cursor(entry.api)?;
        }
        entry.last_use_ms = now_ms;
        match std::mem::replace(&mut entry.state, State::Pinned(op.clone())) {
            State::Idle(cursor) => Ok(Pin { cursors: self, id, cursor: Some(cursor) }),
            State::Pinned(_) => Err(not_found(id)),
        }
    }

    /// How long the next batch may take. One that awaits data is told so with each getMore.
    pub fn time_left(&self, id: i64) -> Option<Duration> {
        match &self.entries.lock().get(&id)?.state {
            State::Idle(cursor) if !cursor.rows.awaits_data() => cursor.time_left,
            _ => None,
        }
    }
    pub fn contains(&self, id: i64) -> bool {
        self.entries.lock().contains_key(&id)
    }
    /// Kills a cursor, as killCursors does; `ns` is the namespace the command named.
    pub fn kill(&self, id: i64) -> Killed {
        let gone = self.entries.lock().remove(&id);
        match gone {
            None => return Killed::NotFound,
            Some(Entry { state: State::Pinned(op), .. }) => op.kill(codes::CURSOR_KILLED),
            Some(_) => {}
        }
        Killed::Yes
    }
    /// The sessions that have cursors.
    pub fn sessions(&self) -> BTreeSet<SessionId> {
        self.entries.lock().values().filter_map(|e| e.session).collect()
    }
    /// Kills every cursor that `which` names by namespace and session; answers how many.
    pub fn kill_where(&self, mut which: impl FnMut(&str, Option<SessionId>) -> bool) -> usize {
        let ids: Vec<i64> = {
            let entries = self.entries.lock();
            entries.iter().filter(|(_, e)| which(&e.ns, e.session)).map(|(id, _)| *id).collect()
        };
        ids.into_iter().filter(|id| self.kill(*id) == Killed::Yes).count()
    }
    /// Kills the cursors of a transaction that ends.
    pub fn kill_transaction(&self, session: SessionId, number: i64) {
        let ids: Vec<i64> = {
            let entries = self.entries.lock();
            let of = |e: &Entry| e.session == Some(session) && e.transaction == Some(number);
            entries.iter().filter(|(_, e)| of(e)).map(|(id, _)| *id).collect()
        };
        for id in ids {
            self.kill(id);
        }
    }
    /// Kills the cursors of a session that ends.
    pub fn kill_session(&self, id: SessionId) -> usize {
        self.kill_where(|_, session| session == Some(id))
    }

    /// Frees what idle cursors hold of a collection that was dropped. They stay, and their next batch is the error that
    /// says so.
    pub fn release_dropped(&self, uuid: [u8; 16]) {
        let mut freed = Vec::new();
        for entry in self.entries.lock().values_mut() {
            if let State::Idle(cursor) = &mut entry.state
                && cursor.rows.uuid() == Some(uuid)
            {
                freed.push(std::mem::replace(&mut cursor.rows, Rows::Dropped(uuid)));
            }
        }
        // Snapshots and buffers are let go outside the lock.
    }

    /// Ends cursors that were idle for too long. Cheap when called often; also asked on every open and getMore.
    pub fn reap_if_due(&self, now_ms: i64) {
        if now_ms < self.next_reap_ms.load(Ordering::Relaxed) {
            return;
        }
        self.next_reap_ms.store(now_ms.saturating_add(REAP_EVERY_MS), Ordering::Relaxed);
        self.reap(now_ms);
    }
    /// Ends cursors that were idle for too long; answers how many. Those idle for less give their snapshots back.
    pub fn reap(&self, now_ms: i64) -> usize {
        let mut limit = self.idle_ms.load(Ordering::Relaxed);
        // Where memory is short nothing that is idle is worth more than what is under way.
        let short = memory::is_short();
        if short {
            limit = limit.min(SHORT_IDLE_MS);
        }
        let (mut dropped, mut released) = (Vec::new(), Vec::new());
        self.entries.lock().retain(|_, e| {
            let expired = !e.no_timeout && now_ms.saturating_sub(e.last_use_ms) >= limit;
            if let State::Idle(cursor) = &mut e.state
                && !cursor.keeps_snapshot
                && (short || now_ms.saturating_sub(e.last_use_ms) >= SNAPSHOT_IDLE_MS)
            {
                released.extend(cursor.rows.release());
            }
            if !expired || matches!(e.state, State::Pinned(_)) {
                return true;
            }
            dropped.push(std::mem::replace(&mut e.state, State::Pinned(Arc::new(Operation::internal()))));
            false
        });
        // Snapshots are let go outside the lock.
        self.timed_out.fetch_add(dropped.len() as u64, Ordering::Relaxed);
        dropped.len()
    }
    /// Sets the idle timeout (`cursorTimeoutMillis`).
    pub fn set_idle_ms(&self, ms: i64) {
        self.idle_ms.store(ms.max(1), Ordering::Relaxed);
        self.next_reap_ms.store(0, Ordering::Relaxed);
    }

    pub fn metrics(&self) -> CursorMetrics {
        let entries = self.entries.lock();
        let count = |f: &dyn Fn(&Entry) -> bool| entries.values().filter(|e| f(e)).count() as u64;
        CursorMetrics {
            open: entries.len() as u64,
            pinned: count(&|e| matches!(e.state, State::Pinned(_))),
            no_timeout: count(&|e| e.no_timeout),
            timed_out: self.timed_out.load(Ordering::Relaxed),
            total_opened: self.opened.load(Ordering::Relaxed),
            more_than_one_batch: self.more_than_one_batch.load(Ordering::Relaxed),
            lives: self.lives.counts(),
        }
    }
    /// All of them, whether a getMore uses them or not.
    pub fn list(&self) -> Vec<CursorInfo> {
        let entries = self.entries.lock();
        let info = |(id, e): (&i64, &Entry)| CursorInfo {
            id: *id,
            ns: e.ns.clone(),
            session: e.session,
            last_use_ms: e.last_use_ms,
            no_timeout: e.no_timeout,
            account: e.account.clone(),
            operation: match &e.state {
                State::Idle(_) => None,
                State::Pinned(operation) => Some(operation.id),
            },
        };
        entries.iter().map(info).collect()
    }
}

/// A cursor taken out for one getMore.
pub struct Pin<'a> {
    cursors: &'a Cursors,
    id: i64,
    cursor: Option<Box<Cursor>>,
}

impl Pin<'_> {
    pub fn cursor(&mut self) -> Result<&mut Cursor> {
        self.cursor
            .as_deref_mut()
            .ok_or_else(|| err!(INTERNAL_ERROR, "a cursor was used after it was parked"))
    }
    /// Puts the cursor back for the next getMore; false when it was killed meanwhile.
    pub fn park(mut self, now_ms: i64) -> bool {
        let Some(mut cursor) = self.cursor.take() else { return false };
        cursor.account.batches += 1;
        if cursor.account.batches == 2 {
            self.cursors.more_than_one_batch.fetch_add(1, Ordering::Relaxed);
        }
        let mut entries = self.cursors.entries.lock();
        match entries.get_mut(&self.id) {
            Some(entry) => {
                entry.last_use_ms = now_ms;
                entry.account = cursor.account.clone();
                if let State::Pinned(op) = &entry.state {
                    cursor.time_left = op.time_left();
                }
                entry.state = State::Idle(cursor);
                true
            }
            None => {
                drop(entries);
                false
            }
        }
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        if self.cursor.is_some() {
            self.cursors.entries.lock().remove(&self.id);
        }
    }
}

/// The code of an error that names a cursor another getMore holds.
const CURSOR_IN_USE: i32 = 12051;

fn not_found(id: i64) -> Error {
    err!(CURSOR_NOT_FOUND, "cursor id {id} not found")
}

/// The first of the codes that refuse a getMore to others than the cursor's own, of a node and of a router. DO NOT CHANGE.
pub const OF_NODE: i32 = 50736;
pub const OF_ROUTER: i32 = 50799;

/// Whether a getMore in session `now` may use a cursor that was created in session `created`.
///
/// # Errors
/// `base` and the two codes behind it.
pub fn check_session(base: i32, id: i64, created: Option<SessionId>, now: Option<SessionId>) -> Result<()> {
    let text =
        |s: SessionId| format!("{} - {}", uuid::Uuid::from_bytes(s.id), document::encoding::hex(&s.uid));
    let (more, made, used) = match (created, now) {
        (None, Some(now)) => (0, "not created in a session".to_string(), format!("in session {}", text(now))),
        (Some(of), None) => (1, format!("created in session {}", text(of)), "without an lsid".to_string()),
        (Some(of), Some(now)) if of != now => {
            (2, format!("created in session {}", text(of)), format!("in session {}", text(now)))
        }
        _ => return Ok(()),
    };
    Err(refused(base + more, id, &made, &used))
}

/// Whether a getMore under transaction `now` may use a cursor that was created under transaction `created`.
///
/// # Errors
/// The three codes behind those of [`check_session`].
pub fn check_transaction(base: i32, id: i64, created: Option<i64>, now: Option<i64>) -> Result<()> {
    let (more, made, used) = match (created, now) {
        (None, Some(now)) => (3, "not created in a transaction".to_string(), format!("in transaction {now}")),
        (Some(of), None) => (4, format!("created in transaction {of}"), "without a txnNumber".to_string()),
        (Some(of), Some(now)) if of != now => {
            (5, format!("created in transaction {of}"), format!("in transaction {now}"))
        }
        _ => return Ok(()),
    };
    Err(refused(base + more, id, &made, &used))
}

fn refused(code: i32, id: i64, made: &str, used: &str) -> Error {
    Error::new(code, format!("Cannot run getMore on cursor {id}, which was {made}, {used}"))
}

/// A positive 63-bit number: ids must not be guessed.
fn random_id() -> i64 {
    runtime::random_range(1..=i64::MAX)
}
