//! A statement's way into its transaction and out again: the session checked out, the transaction begun or found.

use super::{State, Transaction, Transactions, catalog_has_changed, check_catalog};
use crate::namespace::{Access, Placement};
use crate::operation::{ApiParameters, Operation, ReadLevel, SessionFields, SessionId};
use crate::past::Moment;
use crate::session::{Checkout, SessionSlot};
use crate::snapshots::Frozen;
use crate::{Node, log_failed};
use document::{Result, Timestamp, bail, codes};
use parking_lot::Mutex;
use protocol::session::Statement;
use protocol::transaction::{Admission, Phase, Request};
use runtime::Instant;
use runtime::simulation::{self, Check};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, watch};

/// How long a read of level majority or snapshot waits for what is here to be committed, before it reads the past. Longer than
/// that takes where nothing is wrong; and what is here costs less than the past, which is rebuilt from the log.
const COMMIT_PATIENCE: Duration = Duration::from_millis(10);

/// What the node's parameters say of transactions.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `transactionLifetimeLimitSeconds`.
    pub lifetime: Duration,
    /// `maxTransactionLockRequestTimeoutMillis`; `None` for a negative value: as long as the operation may run.
    pub lock_timeout: Option<Duration>,
    /// `metadataRefreshInTransactionMaxWaitBehindCritSecMS`.
    pub section_timeout: Duration,
    /// `transactionSizeLimitBytes`: how much a transaction may write.
    pub bytes_max: u64,
    /// Members of a cluster begin again what their router sends anew.
    pub may_restart: bool,
}

/// What became of a request.
pub enum Admitted {
    Run(Entered),
    /// A repetition of what was done.
    Done,
}

/// Held while an operation acts for a transaction; dropped without [`Entered::leave`], it aborts the transaction, since
/// nobody knows how far the statement came.
pub struct Entered {
    node: Arc<Node>,
    pub(super) session: Arc<SessionSlot>,
    pub transaction: Arc<Transaction>,
    since: Instant,
    left: bool,
    _checkout: OwnedMutexGuard<()>,
}

/// What the operation's client has said of the API. Routers look at what theirs say, and of other nodes nobody asks it.
fn api_of_client(op: &Operation) -> ApiParameters {
    if op.client.internal.load(Ordering::Relaxed) { ApiParameters::default() } else { op.api }
}

impl Node {
    /// Checks the operation's session out and finds or begins its transaction.
    ///
    /// # Errors
    /// IllegalOperation (20) on a node that is no member of a set, those of [`protocol::session::Session::admit`], those
    /// of the read concern, an interrupt while another operation holds the session, InterruptedDueToReplStateChange (11602)
    /// when the node has stepped down and what is prepared there is the log's, APIMismatchError (347).
    pub async fn enter_transaction(
        self: &Arc<Node>,
        op: &Arc<Operation>,
        request: Request,
        limits: Limits,
    ) -> Result<Admitted> {
        if !self.is_replica_set() {
            bail!(
                ILLEGAL_OPERATION,
                "Transaction numbers are only allowed on a replica set member or mongos"
            );
        }
        let fields = op.session.as_ref();
        let Some((fields, number)) = fields.and_then(|s| Some((s, s.txn_number?))) else {
            bail!(INVALID_OPTIONS, "a transaction needs lsid and txnNumber")
        };
        let _write = match (request, fields.lsid.executes()) {
            (Request::Start { .. }, Some((parent, number))) => {
                Some(self.claim_write(op, fields, parent, number).await?)
            }
            _ => None,
        };
        let session = self.sessions.touch(fields.lsid, self.now_ms());
        loop {
            let checkout = op.interruptible(session.checkout.clone().lock_owned()).await?;
            let current = session.transaction();
            let admission = match session.admit(number, request) {
                Err(_) if request == Request::Continue && simulation::omits(Check::EndedTransaction) => {
                    Admission::Begin
                }
                admitted => admitted?,
            };
            if current.is_none() && session.is_prepared() {
                bail!(
                    INTERRUPTED_DUE_TO_REPL_STATE_CHANGE,
                    "the node has stepped down: the prepared transaction is the log's, and its outcome not known here"
                );
            }
            match admission {
                Admission::Wait => {
                    drop(checkout);
                    if let Some(t) = current {
                        op.interruptible(t.wait_ended()).await?;
                    }
                }
                Admission::AlreadyDone => return Ok(Admitted::Done),
                Admission::Continue => {
                    let Some(t) = current else {
                        bail!(
                            NO_SUCH_TRANSACTION,
                            "Transaction with {{ txnNumber: {number} }} has been aborted."
                        )
                    };
                    api_of_client(op).check_same(t.api)?;
                    return Ok(Admitted::Run(self.entered(op, session.clone(), t, checkout)));
                }
                Admission::Begin => {
                    if let Some(old) = current {
                        self.abort_unprepared(&session, &old);
                    }
                    if fields.lsid.child.is_none() {
                        self.sessions.settle_children(self, op, fields.lsid, number, None).await?;
                    }
                    let t = self.begin(op, &session, number, limits).await?;
                    return Ok(Admitted::Run(self.entered(op, session.clone(), t, checkout)));
                }
            }
        }
    }

    /// Makes the operation's session the only one that executes the retryable write it is a child for. Held until the
    /// transaction has begun.
    ///
    /// # Errors
    /// TransactionCommitted (256) when the operation's statement was executed before; those of
    /// [`crate::session::SessionTable::check_out_write`].
    async fn claim_write(
        &self,
        op: &Operation,
        fields: &SessionFields,
        parent: SessionId,
        number: i64,
    ) -> Result<Checkout> {
        let write = self.sessions.check_out_write(self, op, parent, number, Some(fields.lsid)).await?;
        for stmt in fields.stmt_ids.iter().filter(|stmt| **stmt >= 0) {
            if let Statement::AlreadyExecuted(_) = write.check(*stmt)? {
                bail!(
                    TRANSACTION_COMMITTED,
                    "Statement {stmt} of txnNumber {number} has been executed before"
                );
            }
        }
        Ok(write)
    }

    fn entered(
        self: &Arc<Node>,
        op: &Arc<Operation>,
        session: Arc<SessionSlot>,
        transaction: Arc<Transaction>,
        checkout: OwnedMutexGuard<()>,
    ) -> Entered {
        *transaction.running.lock() = Arc::downgrade(op);
        transaction.seen.use_by(op);
        op.join(transaction.clone());
        Entered {
            node: self.clone(),
            session,
            transaction,
            since: Instant::now(),
            left: false,
            _checkout: checkout,
        }
    }

    async fn begin(
        self: &Arc<Node>,
        op: &Operation,
        session: &SessionSlot,
        number: i64,
        limits: Limits,
    ) -> Result<Arc<Transaction>> {
        // The number is taken even if the transaction cannot begin: what follows finds it aborted.
        session.set_phase(number, Phase::Aborted);
        let concern = &op.read_concern;
        if concern.after_cluster_time.is_some() {
            self.await_read_concern(op).await?;
        }
        self.check_not_ahead(op)?;
        // Read before the snapshot is taken: whatever has come until then is in it.
        let placed_at = concern.at_cluster_time.unwrap_or_else(|| self.cluster_time());
        let moment = self.moment(op, concern.at_cluster_time).await?;
        if matches!(concern.level, ReadLevel::Snapshot | ReadLevel::Majority) {
            op.interruptible(self.log.wait_durable(self.log.appended())).await?.map_err(log_failed)?;
        }
        let now = self.now_ms();
        let t = self.transactions.register(|serial| Transaction {
            serial,
            session: session.id,
            number,
            read_concern: concern.clone(),
            api: api_of_client(op),
            started: Instant::now(),
            started_ms: now,
            expires_ms: now.saturating_add(limits.lifetime.as_millis() as i64),
            lock_timeout: limits.lock_timeout,
            section_timeout: limits.section_timeout,
            bytes_max: limits.bytes_max,
            placed_at,
            moment: Some(moment),
            node: Arc::downgrade(self),
            only_reads: false,
            ended: watch::Sender::new(false),
            failed: AtomicBool::new(false),
            running: Mutex::new(Weak::new()),
            seen: super::report::Seen::default(),
            state: Mutex::new(State::default()),
        });
        session.set_phase(number, Phase::InProgress);
        session.set_transaction(Some(t.clone()));
        self.transactions.totals.started.fetch_add(1, Ordering::Relaxed);
        Ok(t)
    }

    /// Makes a read outside transactions read all it touches as of one moment. Level snapshot: the time it names, or now, or the
    /// commit point where that lags behind. Level majority: the commit point, where that lags behind; else it reads what is
    /// here and waits. `names` says what it reads, its own namespace first, if it may read the past at level majority.
    ///
    /// # Errors
    /// Those of the read concern; InvalidOptions (72) for a time nobody can have seen; SnapshotTooOld (239).
    pub async fn read_at_one_moment(
        self: &Arc<Node>,
        op: &Operation,
        names: impl FnOnce() -> Option<Vec<String>>,
    ) -> Result<()> {
        if op.transaction().is_some() {
            return Ok(());
        }
        op.begin_reading(self.past.edition());
        match self.read_level(op) {
            ReadLevel::Snapshot => Box::pin(self.read_snapshot(op)).await,
            ReadLevel::Majority if self.replication.commit.is_shared() => match names() {
                Some(names) => Box::pin(self.read_committed(op, names)).await,
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// # Errors
    /// InvalidOptions (72) for a read at a time that nobody can have seen.
    fn check_not_ahead(&self, op: &Operation) -> Result<()> {
        if op.read_concern.at_cluster_time.is_some_and(|at| at > self.cluster_time()) {
            bail!(
                INVALID_OPTIONS,
                "readConcern atClusterTime value must not be greater than the current clusterTime"
            );
        }
        Ok(())
    }

    async fn read_snapshot(self: &Arc<Node>, op: &Operation) -> Result<()> {
        let concern = &op.read_concern;
        self.check_possible(ReadLevel::Snapshot)?;
        self.await_named_times(op).await?;
        self.check_not_ahead(op)?;
        if let Some(at) = concern.at_cluster_time.filter(|_| !self.is_writable()) {
            self.wait_applied(op, at).await?;
        }
        let mut at = concern.at_cluster_time;
        if let Some(named) = at.or(concern.after_cluster_time) {
            self.await_commit_point(op, named).await?;
        }
        if at.is_none() && self.lags(op).await? {
            at = Some(Timestamp::from_u64(self.committed().ts)).filter(|at| self.keeps(*at));
        }
        let placed_at = at.unwrap_or_else(|| self.cluster_time());
        let moment = self.moment(op, at).await?;
        self.keep_read(&moment);
        if at.is_none() {
            op.interruptible(self.wait_all_committed()).await??;
        }
        op.join(self.reader(op, placed_at, moment));
        Ok(())
    }

    /// The past at the commit point, for a read of level majority. Where it cannot be shown, the read goes the other way: it shows
    /// what is here and waits until that is committed.
    async fn read_committed(self: &Arc<Node>, op: &Operation, names: Vec<String>) -> Result<()> {
        let Some(ns) = names.first() else { return Ok(()) };
        self.await_named_times(op).await?;
        if let Some(after) = op.read_concern.after_cluster_time {
            self.await_commit_point(op, after).await?;
            for ns in &names {
                Box::pin(self.wait_prepared(op, self.area_of(ns), after)).await?;
            }
        }
        if !self.lags(op).await? {
            return Ok(());
        }
        let Some(moment) = self.committed_moment() else { return Ok(()) };
        let reader = self.reader(op, Timestamp::from_u64(moment.ts()), moment.clone());
        // A member that begins to lead knows of no chunk that came here, and a secondary not of the newest.
        reader.learn_placement(&self.namespaces.slot(ns), op, &op.received, Access::Read).await?;
        match self.rebuild_for(&moment, names) {
            Err(e) if matches!(e.code, codes::SNAPSHOT_UNAVAILABLE | codes::SNAPSHOT_TOO_OLD) => {
                return Ok(());
            }
            rebuilt => reader.state.lock().rebuilt = rebuilt?,
        }
        op.join(reader);
        Ok(())
    }

    /// Whether what is here is not committed, and will not be in a moment.
    async fn lags(&self, op: &Operation) -> Result<bool> {
        if !self.replication.commit.is_shared() {
            return Ok(false);
        }
        let wait = tokio::time::timeout(COMMIT_PATIENCE, self.wait_all_committed());
        // A wait that a step-down ends has not seen it committed.
        Ok(!op.interruptible(Box::pin(wait)).await?.is_ok_and(|committed| committed.is_ok()))
    }

    /// Namespaces at the moment, with what views among them read, if all can be read there.
    ///
    /// # Errors
    /// SnapshotUnavailable (246), SnapshotTooOld (239) where the log has been cut since.
    fn rebuild_for(&self, moment: &Moment, mut names: Vec<String>) -> Result<BTreeMap<String, Frozen>> {
        let mut rebuilt = BTreeMap::new();
        while let Some(ns) = names.pop() {
            if rebuilt.contains_key(&ns) {
                continue;
            }
            let (slot, db) = (self.namespaces.slot(&ns), storage::split_namespace(&ns).0);
            // The log does not have all that happens there.
            if document::is_internal_database(db) {
                return Err(catalog_has_changed(&slot, moment.ts()));
            }
            let frozen = moment.rebuilt(self, &slot)?;
            let live = slot.read_unchecked();
            check_catalog(&slot, &frozen, &live, moment.ts())?;
            let came = |p: &Arc<dyn Placement>| p.came_after(Timestamp::from_u64(moment.ts()));
            if frozen.view != live.view || live.placement.as_ref().is_some_and(came) {
                return Err(catalog_has_changed(&slot, moment.ts()));
            }
            drop(live);
            if let Some(view) = &frozen.view {
                names.extend(view.reads(self, db)?);
            }
            rebuilt.insert(ns, frozen);
        }
        Ok(rebuilt)
    }

    /// What an operation joins to read as of a moment.
    fn reader(self: &Arc<Node>, op: &Operation, placed_at: Timestamp, moment: Moment) -> Arc<Transaction> {
        Arc::new(Transaction {
            serial: 0,
            session: SessionId::of_client([0; 16], crate::operation::NO_USER),
            number: -1,
            read_concern: op.read_concern.clone(),
            api: ApiParameters::default(),
            started: Instant::now(),
            started_ms: self.now_ms(),
            expires_ms: i64::MAX,
            lock_timeout: None,
            section_timeout: Duration::MAX,
            bytes_max: u64::MAX,
            placed_at,
            moment: Some(moment),
            node: Arc::downgrade(self),
            only_reads: true,
            ended: watch::Sender::new(false),
            failed: AtomicBool::new(false),
            running: Mutex::new(Weak::new()),
            seen: super::report::Seen::default(),
            state: Mutex::new(State::default()),
        })
    }

    /// Ends a transaction that is not prepared, without a trace. The caller holds the session.
    pub(crate) fn abort_unprepared(&self, session: &SessionSlot, t: &Arc<Transaction>) {
        session.set_phase(t.number, Phase::Aborted);
        self.conclude(session, t, false);
    }

    /// The end of a transaction, either way: its session has none, it is told of, lets go of everything, and is counted.
    pub(super) fn conclude(&self, session: &SessionSlot, t: &Arc<Transaction>, committed: bool) {
        session.set_transaction(None);
        self.tell_end(t, committed);
        self.end_transaction(t);
        let totals = &self.transactions.totals;
        let ended = if committed { &totals.committed } else { &totals.aborted };
        ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets go of everything that a transaction holds.
    pub(super) fn end_transaction(&self, t: &Transaction) {
        let mut state = t.state.lock();
        state.over = true;
        let locks = std::mem::take(&mut state.locks);
        let branches = std::mem::take(&mut state.branches);
        let (intents, writes) = (std::mem::take(&mut state.intents), std::mem::take(&mut state.writes));
        drop(state);
        self.transactions.locks.leave(locks);
        self.transactions.open.lock().remove(&t.serial);
        drop((branches, intents, writes));
        self.cursors.kill_transaction(t.session, t.number);
        t.ended.send_replace(true);
    }

    /// Aborts the transactions whose time is over; answers how many.
    pub fn reap_transactions(&self) -> usize {
        let now = self.now_ms();
        let expired = |t: &&Arc<Transaction>| now >= t.expires_ms && !t.is_prepared();
        let expired: Vec<_> = self.transactions.open().iter().filter(expired).cloned().collect();
        for t in &expired {
            self.kill_transaction(t, codes::TRANSACTION_EXCEEDED_LIFETIME_LIMIT_SECONDS);
        }
        expired.len()
    }

    /// Aborts the transactions of the sessions chosen, but for prepared ones: their coordinator decides.
    pub fn abort_transactions_of(&self, chosen: impl Fn(&SessionId) -> bool) {
        for t in self.transactions.open().iter().filter(|t| chosen(&t.session) && !t.is_prepared()) {
            self.kill_transaction(t, codes::INTERRUPTED);
        }
    }

    /// Ends a transaction that executes a retryable write of which another delivery has come.
    pub(crate) fn end_sibling(&self, t: &Arc<Transaction>) {
        self.kill_transaction(t, codes::NO_SUCH_TRANSACTION);
    }

    /// Aborts a transaction at once, or has the operation that runs a statement of it do so.
    fn kill_transaction(&self, t: &Arc<Transaction>, code: i32) {
        let session = self.sessions.touch(t.session, 0);
        t.fail();
        if let Some(op) = t.running.lock().upgrade() {
            op.kill(code);
        }
        if let Ok(_checkout) = session.checkout.clone().try_lock_owned() {
            let current = session.transaction().filter(|now| Arc::ptr_eq(now, t) && !t.is_prepared());
            if let Some(t) = current {
                self.abort_unprepared(&session, &t);
            }
        }
    }
}

impl Transactions {
    pub(super) fn register(&self, make: impl FnOnce(u64) -> Transaction) -> Arc<Transaction> {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed) + 1;
        let t = Arc::new(make(serial));
        self.open.lock().insert(serial, t.clone());
        t
    }
}

impl Entered {
    /// Ends the operation's part. A failed one takes the transaction with it. Returns whether it had to.
    pub fn leave(mut self, done: bool) -> bool {
        self.end(done)
    }

    fn end(&mut self, done: bool) -> bool {
        self.left = true;
        let t = &self.transaction;
        let op = std::mem::take(&mut *t.running.lock()).upgrade();
        t.seen.stop(self.since.elapsed(), op.as_deref());
        let open = !*t.ended.borrow() && !t.is_prepared();
        let aborts = open && (!done || t.failed.load(Ordering::SeqCst));
        if aborts {
            self.node.abort_unprepared(&self.session, t);
        }
        aborts
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if !self.left {
            self.end(false);
        }
    }
}
