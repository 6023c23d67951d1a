//! Transactions of a router's clients: which shards take part, and how they end.
//!
//! ```text
//! statement   to a shard for the first time: startTransaction and the read concern go along; the first shard is the
//!             coordinator. Each reply says whether the shard has only read (readOnly).
//! commit      none took part            done
//!             none has written          commitTransaction to all
//!             one has written           commitTransaction to the others; when all have, to the one that has written
//!             else                      coordinateCommitTransaction {participants} to the coordinator: two-phase
//! abort       abortTransaction to all
//! ```
//!
//! All that a statement sends goes through [`super::Task::call`], which dresses it here ([`Transaction::dress`]). A shard
//! that refuses a statement as stale has aborted its part: one that took part only since this statement is forgotten and
//! may begin again; any other ends the transaction, since its earlier statements are gone.
//!
//! A `recoveryToken` names a shard that has written. Through it another router learns what became of the commit.

pub mod metrics;
mod report;

use super::Router;
use super::cluster::Call;
use super::internal::still_led;
use super::task::{Task, is_stale};
use crate::chunk::ShardId;
use document::error::{NETWORK, NOT_PRIMARY, code_name};
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Timestamp, Value, bail, codes, doc, err};
use futures::future::join_all;
use metrics::{CommitType, Metrics, Outcome, Progress};
use node::Operation;
use node::operation::{ApiParameters, ReadLevel, SessionId};
use parking_lot::Mutex;
use protocol::transaction::Phase;
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use wire::client::CallResult;

/// How long a failed statement waits for shards to abort.
const ABORT_WAIT_MAX: Duration = Duration::from_secs(1);
/// How long shards are told to abort behind the back of the statement: until then a set has elected a primary.
const ABORT_MAX: Duration = Duration::from_secs(20);

/// The transactions of a router's sessions.
#[derive(Default)]
pub struct Transactions {
    sessions: Mutex<BTreeMap<SessionId, Arc<Transaction>>>,
    pub metrics: Arc<Metrics>,
}

/// The newest transaction of a session.
pub struct Transaction {
    session: SessionId,
    checkout: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State>,
    /// `None` for one of the router's own.
    metrics: Option<Arc<Metrics>>,
}

#[derive(Clone)]
struct State {
    number: i64,
    phase: Phase,
    /// What its first statement carried.
    api: ApiParameters,
    used: Instant,
    /// The connection of its last statement.
    used_by: i64,
    /// What the first statement asked for; goes to each shard with its first statement.
    read_concern: Document,
    participants: BTreeMap<ShardId, Participant>,
    coordinator: Option<ShardId>,
    /// A shard that has written.
    recovery: Option<ShardId>,
    /// Statements begun.
    statement: u32,
    /// The code of a write that was refused.
    failed: Option<i32>,
    /// `None` before the first statement.
    progress: Option<Progress>,
    /// The commit was handed on: what becomes of it is the shards' to say.
    committing: bool,
    /// All that have only read have committed. After a restart they would not know, and prove nothing.
    readers_committed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Participant {
    /// `None` before its first reply.
    read_only: Option<bool>,
    /// The statement with which it came in.
    since: u32,
}

/// Held while a command of a transaction runs.
pub struct Entered {
    pub transaction: Arc<Transaction>,
    _checkout: OwnedMutexGuard<()>,
}

impl Entered {
    fn new(transaction: Arc<Transaction>, checkout: OwnedMutexGuard<()>, op: &Operation) -> Entered {
        let mut state = transaction.state.lock();
        state.used = Instant::now();
        state.used_by = op.client.connection_id;
        if let Some(progress) = &mut state.progress {
            progress.run(op.client.clone());
        }
        drop(state);
        Entered { transaction, _checkout: checkout }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(progress) = &mut self.transaction.state.lock().progress {
            progress.stop();
        }
    }
}

impl Transactions {
    fn of(&self, id: SessionId) -> Arc<Transaction> {
        let mut sessions = self.sessions.lock();
        let fresh = || {
            let state = Mutex::new(State::new(-1));
            let metrics = Some(self.metrics.clone());
            Arc::new(Transaction { session: id, checkout: Arc::default(), state, metrics })
        };
        sessions.entry(id).or_insert_with(fresh).clone()
    }

    /// The transaction that the operation is a statement of.
    pub fn find(&self, op: &Operation) -> Option<Arc<Transaction>> {
        let fields = op.session.as_ref().filter(|s| s.autocommit.is_some())?;
        let found = self.sessions.lock().get(&fields.lsid).cloned()?;
        let current = Some(found.state.lock().number) == fields.txn_number;
        current.then_some(found)
    }

    /// Makes the operation a statement of its transaction: the first begins it, at the cluster time `now`.
    ///
    /// # Errors
    /// TransactionTooOld (225), ConflictingOperationInProgress (117), NoSuchTransaction (251), TransactionCommitted (256),
    /// APIMismatchError (347).
    pub async fn enter(&self, op: &Operation, now: Timestamp) -> Result<Entered> {
        let Some((fields, number)) = op.session.as_ref().and_then(|s| Some((s, s.txn_number?))) else {
            bail!(INVALID_OPTIONS, "a transaction needs lsid and txnNumber")
        };
        let transaction = self.of(fields.lsid);
        let checkout = op.interruptible(transaction.checkout.clone().lock_owned()).await?;
        {
            let mut state = transaction.state.lock();
            state.admit(number, fields.start_transaction)?;
            if fields.start_transaction {
                transaction.end(&mut state, Outcome::Aborted(metrics::REPLACED));
                *state = State::new(number);
                state.progress = Some(self.metrics.start(Instant::now()));
                state.phase = Phase::InProgress;
                state.read_concern = read_concern(op, now);
                state.api = op.api;
            }
            op.api.check_same(state.api)?;
            state.statement += 1;
        }
        Ok(Entered::new(transaction, checkout, op))
    }

    /// `serverStatus.transactions`.
    pub fn status(&self) -> Document {
        let sessions: Vec<_> = self.sessions.lock().values().cloned().collect();
        self.metrics.to_document(sessions.iter().filter_map(|t| t.state.lock().open()))
    }

    /// How many sessions have begun a transaction here that is not forgotten.
    pub fn sessions(&self) -> usize {
        self.sessions.lock().len()
    }

    /// Those in progress whose session, and time since it was last used, are chosen.
    pub fn chosen(&self, which: impl Fn(&SessionId, Duration) -> bool) -> Vec<Arc<Transaction>> {
        self.open(|t, state| which(&t.session, state.used.elapsed()))
    }
    /// Those in progress whose last statement came by this connection.
    pub fn used_by(&self, connection: i64) -> Vec<Arc<Transaction>> {
        self.open(|_, state| state.used_by == connection)
    }
    fn open(&self, which: impl Fn(&Transaction, &State) -> bool) -> Vec<Arc<Transaction>> {
        let sessions = self.sessions.lock();
        let open = |t: &&Arc<Transaction>| {
            let state = t.state.lock();
            state.phase == Phase::InProgress && which(t, &state)
        };
        sessions.values().filter(open).cloned().collect()
    }
    /// Forgets the sessions not used for `age`.
    pub fn forget_older(&self, age: Duration) {
        let mut sessions = self.sessions.lock();
        let old = |t: &Arc<Transaction>| Arc::strong_count(t) == 1 && t.state.lock().used.elapsed() >= age;
        for (_, t) in sessions.extract_if(.., |_, t| old(t)) {
            t.end(&mut t.state.lock(), Outcome::Aborted(metrics::REPLACED));
        }
    }
}

impl State {
    fn new(number: i64) -> State {
        State {
            number,
            phase: Phase::None,
            api: ApiParameters::default(),
            used: Instant::now(),
            used_by: 0,
            read_concern: Document::new(),
            participants: BTreeMap::new(),
            coordinator: None,
            recovery: None,
            statement: 0,
            failed: None,
            progress: None,
            committing: false,
            readers_committed: false,
        }
    }

    fn admit(&self, number: i64, starts: bool) -> Result<()> {
        if number < self.number {
            bail!(
                TRANSACTION_TOO_OLD,
                "txnNumber {number} is less than last txnNumber {} seen in the session",
                self.number
            );
        }
        match (number == self.number, starts) {
            (false, true) => Ok(()),
            (false, false) => bail!(
                NO_SUCH_TRANSACTION,
                "cannot continue txnId {} for session with txnId {number}",
                self.number
            ),
            (true, true) => {
                bail!(CONFLICTING_OPERATION_IN_PROGRESS, "txnNumber {number} for session already started")
            }
            (true, false) => self.admit_known(number),
        }
    }
    fn admit_known(&self, number: i64) -> Result<()> {
        match self.phase {
            Phase::Committed => {
                bail!(TRANSACTION_COMMITTED, "Transaction with {{ txnNumber: {number} }} has been committed.")
            }
            Phase::InProgress if !self.committing => Ok(()),
            _ => bail!(NO_SUCH_TRANSACTION, "Transaction with {{ txnNumber: {number} }} has been aborted."),
        }
    }
}

/// The read concern that shards are given. A snapshot over several shards is taken at one time, chosen now.
fn read_concern(op: &Operation, now: Timestamp) -> Document {
    let asked = &op.read_concern;
    let mut concern = Document::new();
    match asked.level {
        _ if !asked.given => {}
        ReadLevel::Majority => concern.push("level", "majority"),
        ReadLevel::Snapshot => concern.push("level", "snapshot"),
        _ => concern.push("level", "local"),
    }
    match (asked.level, asked.after_cluster_time) {
        (ReadLevel::Snapshot, after) => {
            let at = after.map_or(now, |after| after.max(now));
            concern.push("atClusterTime", asked.at_cluster_time.unwrap_or(at));
        }
        (_, Some(after)) => concern.push("afterClusterTime", after),
        (_, None) => {}
    }
    concern
}

/// Commands that shards run as statements of a transaction.
fn joins(name: &[u8]) -> bool {
    matches!(
        name,
        b"find"
            | b"aggregate"
            | b"distinct"
            | b"getMore"
            | b"killCursors"
            | b"insert"
            | b"update"
            | b"delete"
            | b"findAndModify"
            | b"findandmodify"
            | b"bulkWrite"
            | b"create"
            | b"createIndexes"
    )
}

impl Transaction {
    /// One that the router runs on its own, in a session that has no other; at one time on all shards, if one is given.
    pub(super) fn internal(session: SessionId, at: Option<Timestamp>) -> Arc<Transaction> {
        let read_concern = at.map(|at| doc! { "level": "snapshot", "atClusterTime": at }).unwrap_or_default();
        let state = State { phase: Phase::InProgress, statement: 1, read_concern, ..State::new(0) };
        Arc::new(Transaction { session, checkout: Arc::default(), state: Mutex::new(state), metrics: None })
    }
    pub(super) fn commit_path(&self) -> CommitPath {
        CommitPath::of(&self.state.lock())
    }
    /// Counts the end, once.
    fn end(&self, state: &mut State, outcome: Outcome<'_>) {
        if let Some(metrics) = &self.metrics {
            metrics.end(state, self.session, outcome);
        }
    }
    /// Counts so many commands that go to shards.
    fn target(&self, requests: usize) {
        if let Some(metrics) = &self.metrics {
            metrics.target(requests);
        }
    }
    /// The commit is handed on: from now on nothing aborts the transaction.
    pub(super) fn hand_over(&self) {
        self.state.lock().committing = true;
    }

    /// The commit has failed: what is not prepared may be aborted.
    pub(super) fn take_back(&self) {
        self.state.lock().committing = false;
    }

    /// The command as a statement of this transaction on `shard`, which takes part from now on. `None` when it is none.
    pub(super) fn dress(&self, shard: &str, body: Doc<'_>) -> Option<DocBuf> {
        // What is the config server's as such, not as a shard, is outside transactions.
        let of_config =
            shard == super::cluster::CONFIG && body.get_str("$db").is_none_or(super::cluster::is_config);
        if of_config || !joins(body.iter().next()?.name_bytes()) {
            return None;
        }
        let mut state = self.state.lock();
        let fresh = !state.participants.contains_key(shard);
        if fresh {
            let since = state.statement;
            state.participants.insert(shard.into(), Participant { read_only: None, since });
            state.coordinator.get_or_insert_with(|| shard.into());
            if let Some(metrics) = &self.metrics {
                metrics.contact();
            }
        }
        self.target(1);
        let coordinates = state.coordinator.as_deref() == Some(shard);
        // The write concern would be a default of the cluster's: a transaction has its own with the commit.
        let own = [
            "lsid",
            "txnNumber",
            "autocommit",
            "startTransaction",
            "readConcern",
            "writeConcern",
            "coordinator",
        ];
        Some(DocWriter::build(|w| {
            for e in body.iter().filter(|e| !own.contains(&e.name())) {
                w.element(&e);
            }
            w.document("lsid", self.session.to_document().to_doc_buf().doc());
            w.i64("txnNumber", state.number);
            w.bool("autocommit", false);
            if fresh {
                w.bool("startTransaction", true);
                if !state.read_concern.is_empty() {
                    w.document("readConcern", state.read_concern.to_doc_buf().doc());
                }
            }
            if coordinates {
                w.bool("coordinator", true);
            }
        }))
    }

    /// Takes in a shard's answer to what [`Transaction::dress`] made.
    pub(super) fn hear(&self, shard: &str, answer: &CallResult<DocBuf>) {
        let mut state = self.state.lock();
        let statement = state.statement;
        match answer {
            Ok(reply) => {
                let reply = reply.doc();
                state.failed = state.failed.or_else(|| refused(reply));
                let Some(read_only) = reply.get_bool("readOnly") else { return };
                if !read_only {
                    state.recovery.get_or_insert_with(|| shard.into());
                }
                if let Some(p) = state.participants.get_mut(shard) {
                    p.read_only = Some(read_only);
                }
            }
            Err(e) if is_stale(&e.error) => {
                // It has aborted its part. What it did before this statement cannot be done again.
                if state
                    .participants
                    .get(shard)
                    .is_some_and(|p| p.since == statement && p.read_only.is_none())
                {
                    state.participants.remove(shard);
                    if state.coordinator.as_deref() == Some(shard) {
                        state.coordinator = state.participants.keys().next().cloned();
                    }
                }
            }
            Err(_) => {}
        }
    }

    /// What every reply of a statement carries.
    pub fn recovery_token(&self) -> Document {
        let mut token = Document::new();
        if let Some(shard) = &self.state.lock().recovery {
            token.push("recoveryShardId", shard.to_string());
        }
        token
    }
    /// A statement was half executed: nothing of the transaction may be committed.
    pub(super) fn fail(&self, code: i32) {
        self.state.lock().failed = Some(code);
    }
    /// The code of a statement's write that was refused (the shard has aborted its part), or of one that was half executed.
    pub(super) fn failed(&self) -> Option<i32> {
        self.state.lock().failed
    }
}

/// The code of the first write that the reply says was refused.
fn refused(reply: Doc<'_>) -> Option<i32> {
    if reply.get("writeErrors").is_none() && reply.get_i64("nErrors").unwrap_or(0) == 0 {
        return None;
    }
    // A bulkWrite names them in a cursor, with a document for each write.
    let errors = reply.get("writeErrors").or_else(|| reply.get_document("cursor")?.get("firstBatch"));
    let errors = errors.and_then(|v| v.as_array()).into_iter().flat_map(|errors| errors.iter());
    let mut found = errors.filter_map(|e| e.value().as_document()?.get_i64("code")).map(|code| code as i32);
    Some(found.find(|code| *code != 0).unwrap_or(codes::UNKNOWN_ERROR))
}

impl Router {
    /// Ends a statement's part: one that failed, with this code, takes the transaction with it, on every shard.
    pub async fn leave_transaction(&self, entered: Entered, failed: Option<i32>) {
        let t = &entered.transaction;
        if let Some(code) = failed.or_else(|| t.failed()) {
            self.abort_everywhere(t, code).await;
        }
    }

    /// Aborts transactions, because of `code`. One that a statement runs in ends with its operation.
    pub async fn abort_transactions(&self, transactions: Vec<Arc<Transaction>>, code: i32) {
        for t in transactions {
            if let Ok(_checkout) = t.checkout.clone().try_lock_owned() {
                self.abort_everywhere(&t, code).await;
            }
        }
    }

    /// Aborts every part, because of `code`; nothing when the commit was handed on.
    pub(super) async fn abort_everywhere(&self, t: &Transaction, code: i32) {
        let shards: Vec<ShardId> = {
            let mut state = t.state.lock();
            if state.phase != Phase::InProgress || state.committing {
                return;
            }
            state.phase = Phase::Aborted;
            t.end(&mut state, Outcome::Aborted(&code_name(code)));
            state.participants.keys().cloned().collect()
        };
        self.abort_parts(t, shards).await;
    }

    /// Has shards abort their parts. One that is prepared stays: its coordinator decides.
    async fn abort_parts(&self, t: &Transaction, shards: Vec<ShardId>) {
        if shards.is_empty() {
            return;
        }
        t.target(shards.len());
        let abort = t.ending(doc! { "abortTransaction": 1, "unlessPrepared": true });
        let cluster = self.cluster.clone();
        let telling = runtime::spawn(async move {
            let told = join_all(shards.iter().map(|shard| cluster.call(Call::new(shard, abort.doc()))));
            // What a shard says to this is of no account: a part that is not aborted now expires.
            let _ = tokio::time::timeout(ABORT_MAX, told).await;
        });
        let _ = Box::pin(tokio::time::timeout(ABORT_WAIT_MAX, telling)).await;
    }
}

impl Transaction {
    pub(super) fn ending(&self, mut command: Document) -> DocBuf {
        command.push("lsid", self.session.to_document());
        command.push("txnNumber", self.state.lock().number);
        command.push("autocommit", false);
        command.push("$db", "admin");
        command.to_doc_buf()
    }
}

/// Runs `abortTransaction`.
pub async fn abort(task: &Task<'_>) -> Result<DocBuf> {
    let entered = begin_end(task).await?;
    let t = &entered.transaction;
    let shards: Vec<ShardId> = {
        let mut state = t.state.lock();
        state.admit_known(state.number)?;
        state.phase = Phase::Aborted;
        t.end(&mut state, Outcome::Aborted(metrics::ABORT));
        state.participants.keys().cloned().collect()
    };
    if shards.is_empty() {
        bail!(NO_SUCH_TRANSACTION, "no known command has been sent by this router for this transaction");
    }
    let replies = send_all(task, t, &shards, doc! { "abortTransaction": 1 }).await?;
    replies.into_iter().next_back().ok_or_else(|| err!(INTERNAL_ERROR, "no shard has answered"))
}

/// Runs `commitTransaction`.
pub async fn commit(task: &Task<'_>) -> Result<DocBuf> {
    let Some((fields, number)) = task.op.session.as_ref().and_then(|s| Some((s, s.txn_number?))) else {
        bail!(INVALID_OPTIONS, "a transaction needs lsid and txnNumber")
    };
    let known = task.router.transactions.find(task.op).is_some();
    if !known && task.get("recoveryToken").is_some() {
        return recover(task, fields.lsid, number).await;
    }
    let entered = begin_end(task).await?;
    let t = &entered.transaction;
    let way = {
        let mut state = t.state.lock();
        if !state.committing && state.phase != Phase::Committed {
            state.admit_known(state.number)?;
        }
        state.committing = true;
        let way = CommitPath::of(&state);
        let kind = CommitType::of(&state, &way);
        task.router.transactions.metrics.begin_commit(&mut state, kind, Instant::now());
        way
    };
    let done = match way {
        CommitPath::Unknown => {
            Err(err!(NO_SUCH_TRANSACTION, "a participant has not answered any statement of the transaction"))
        }
        CommitPath::None => Ok(super::body::ok_reply(Document::new())),
        CommitPath::ReadOnly(shards) => read_parts(task, t, &shards).await,
        CommitPath::OneWriter(readers, writer) => match read_parts(task, t, &readers).await {
            Ok(read) => {
                t.state.lock().readers_committed = true;
                // What was read, too, is to be what the write concern asks for.
                commit_on(task, t, &[writer]).await.map(|written| worst_concern(vec![written, read]))
            }
            failed => failed,
        },
        CommitPath::TwoPhase(coordinator, shards) => {
            let listed: Vec<Value> =
                shards.iter().map(|s| Value::Document(doc! { "shardId": s.to_string() })).collect();
            let command = doc! { "coordinateCommitTransaction": 1, "participants": Value::Array(listed) };
            send_all(task, t, &[coordinator], command).await.map(worst_concern)
        }
    };
    match &done {
        Ok(reply) => {
            let mut state = t.state.lock();
            state.phase = Phase::Committed;
            if reply.doc().get("writeConcernError").is_none() {
                t.end(&mut state, Outcome::Committed);
            }
        }
        // Its coordinator may have died before it knew of all the parts.
        Err(e) if e.code == codes::NO_SUCH_TRANSACTION => {
            t.take_back();
            task.router.abort_everywhere(t, e.code).await;
        }
        // Nobody knows what became of it: it may be asked again.
        Err(_) => {}
    }
    done
}

/// How a transaction is committed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CommitPath {
    /// No shard took part.
    None,
    ReadOnly(Vec<ShardId>),
    /// Those that have only read, and the one that has written.
    OneWriter(Vec<ShardId>, ShardId),
    /// The coordinator, and all that took part.
    TwoPhase(ShardId, Vec<ShardId>),
    /// Some shard has never said what it did.
    Unknown,
}

impl CommitPath {
    fn of(state: &State) -> CommitPath {
        if state.participants.values().any(|p| p.read_only.is_none()) {
            return CommitPath::Unknown;
        }
        let of = |read_only| {
            let chosen = state.participants.iter().filter(move |(_, p)| p.read_only == Some(read_only));
            chosen.map(|(shard, _)| shard.clone()).collect::<Vec<_>>()
        };
        match (of(true), of(false).as_slice(), &state.coordinator) {
            (readers, [], _) if readers.is_empty() => CommitPath::None,
            (readers, [], _) => CommitPath::ReadOnly(readers),
            (_, [writer], _) if state.readers_committed => CommitPath::OneWriter(Vec::new(), writer.clone()),
            (readers, [writer], _) => CommitPath::OneWriter(readers, writer.clone()),
            (_, _, Some(coordinator)) => {
                CommitPath::TwoPhase(coordinator.clone(), state.participants.keys().cloned().collect())
            }
            (_, _, None) => CommitPath::Unknown,
        }
    }
}

async fn begin_end(task: &Task<'_>) -> Result<Entered> {
    let Some((fields, number)) = task.op.session.as_ref().and_then(|s| Some((s, s.txn_number?))) else {
        bail!(INVALID_OPTIONS, "a transaction needs lsid and txnNumber")
    };
    let t = task.router.transactions.of(fields.lsid);
    let checkout = task.op.interruptible(t.checkout.clone().lock_owned()).await?;
    let (current, first) = {
        let state = t.state.lock();
        (state.number, Some(state.api).filter(|_| state.phase == Phase::InProgress))
    };
    if number < current {
        bail!(
            TRANSACTION_TOO_OLD,
            "txnNumber {number} is less than last txnNumber {current} seen in the session"
        );
    }
    if number > current {
        match task.request.name() {
            "commitTransaction" => bail!(
                50940,
                "cannot commit with no participants and no recovery token: this router has seen no statement of the transaction"
            ),
            _ => {
                bail!(NO_SUCH_TRANSACTION, "cannot continue txnId {current} for session with txnId {number}")
            }
        }
    }
    if let Some(first) = first {
        task.op.api.check_same(first)?;
    }
    Ok(Entered::new(t, checkout, task.op))
}

/// Sends what ends a transaction to all of `shards` at once, with the client's write concern. It may be repeated, and is
/// where a connection breaks. The first refusal is the answer.
async fn send_all(
    task: &Task<'_>,
    t: &Transaction,
    shards: &[ShardId],
    mut command: Document,
) -> Result<Vec<DocBuf>> {
    if let Some(concern) = task.get("writeConcern") {
        command.push("writeConcern", concern.to_value());
    }
    let body = t.ending(command);
    t.target(shards.len());
    let answers = join_all(shards.iter().map(|shard| send(task, shard, &body))).await;
    answers.into_iter().collect()
}

async fn send(task: &Task<'_>, shard: &ShardId, body: &DocBuf) -> Result<DocBuf> {
    let mut attempt = 1;
    loop {
        match task.call(Call::new(shard, body.doc())).await {
            Err(e) if e.error.is(NETWORK | NOT_PRIMARY) && attempt < 4 => {
                task.op.check_interrupt()?;
                Box::pin(tokio::time::sleep(Duration::from_millis(20 << attempt))).await;
                attempt += 1;
            }
            Err(e) => return Err(e.error),
            Ok(reply) => return Ok(reply),
        }
    }
}

async fn commit_on(task: &Task<'_>, t: &Transaction, shards: &[ShardId]) -> Result<DocBuf> {
    send_all(task, t, shards, doc! { "commitTransaction": 1 }).await.map(worst_concern)
}

/// Commits parts that have only read: each says that it still led.
async fn read_parts(task: &Task<'_>, t: &Transaction, shards: &[ShardId]) -> Result<DocBuf> {
    let read = commit_on(task, t, shards).await?;
    still_led(read.doc()).map(|()| read)
}

/// The reply to show: one with a write concern error if there is one.
pub(super) fn worst_concern(mut replies: Vec<DocBuf>) -> DocBuf {
    let at = replies.iter().position(|r| r.doc().get("writeConcernError").is_some()).unwrap_or(0);
    match replies.is_empty() {
        true => super::body::ok_reply(Document::new()),
        false => replies.swap_remove(at),
    }
}

/// Asks the shard that a recovery token names what became of a transaction that this router has not seen.
async fn recover(task: &Task<'_>, lsid: SessionId, number: i64) -> Result<DocBuf> {
    let token = task.document_or_empty("recoveryToken");
    let Some(shard) = token.get_str("recoveryShardId") else {
        let text =
            "Recovery token is empty, meaning the transaction only performed reads and can be safely retried";
        return Err(Error::new(codes::NO_SUCH_TRANSACTION, text));
    };
    let mut command = doc! { "coordinateCommitTransaction": 1, "participants": Vec::<Value>::new() };
    command.push("lsid", lsid.to_document());
    command.push("txnNumber", number);
    command.push("autocommit", false);
    if let Some(concern) = task.get("writeConcern") {
        command.push("writeConcern", concern.to_value());
    }
    command.push("$db", "admin");
    let since = Instant::now();
    let done = send(task, &shard.into(), &command.to_doc_buf()).await;
    let outcome = match &done {
        Ok(reply) if reply.doc().get("writeConcernError").is_none() => Some(Outcome::Committed),
        Err(e) if e.code == codes::NO_SUCH_TRANSACTION => Some(Outcome::Aborted("NoSuchTransaction")),
        _ => None,
    };
    task.router.transactions.metrics.recovered(State::new(number), lsid, since, outcome);
    done
}
