//! Opening a node: recovery, the new term, the slots; and its checkpoints.

use crate::namespace::Namespaces;
use crate::operation::SessionId;
use crate::replication::State;
use crate::session::SessionTable;
use crate::temporary::TemporaryFiles;
use crate::write::retry::operations_of;
use crate::{Node, failpoints, observer};
use document::oid::ObjectIdGenerator;
use document::{Collation, Doc, Document, Result, Timestamp, Value, doc, meter};
use parking_lot::{Mutex, RwLock};
use protocol::session::EntryTime;
use protocol::transaction::Phase;
use query::QueryContext;
use query::matcher::Matcher;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use storage::checkpoint::{CheckpointReport, Checkpoints, Contents};
use storage::entry::{Draft, Entry, Op};
use storage::files::{FileLock, Files};
use storage::log::{Clock, FrameRef, LogOptions, OpTime, SyncPolicy};
use storage::recovery::{self, Progress, ReplayObserver, Report};
use storage::{Collection, Predicate, StorageError};

/// How a node is opened.
#[derive(Clone)]
pub struct NodeOptions {
    pub files: Arc<dyn Files>,
    /// The data directory; unused when the log is in memory.
    pub dir: PathBuf,
    pub log: LogOptions,
    pub clock: Arc<dyn Clock>,
    /// The name given with `--replSet`.
    pub replica_set: Option<String>,
    /// `host:port` under which others reach this node.
    pub host: String,
}

/// What holds the data directory and writes its checkpoints.
pub struct Opened {
    pub node: Arc<Node>,
    pub report: Report,
}

/// The parts of a node that belong to its directory.
pub struct Directory {
    pub(crate) checkpoints: Mutex<Option<Checkpoints>>,
    /// The time of the newest entry in the checkpoint that is in force; 0 where there is none.
    stable: AtomicU64,
    _lock: Option<FileLock>,
}

impl Directory {
    fn of(checkpoints: Option<Checkpoints>, report: &Report, lock: Option<FileLock>) -> Directory {
        let stable = report.checkpoint_optime.map_or(0, |t| t.ts).into();
        Directory { checkpoints: Mutex::new(checkpoints), stable, _lock: lock }
    }
}

/// Name of the checkpoint blob that holds the session table. DO NOT CHANGE: it is on disk.
const SESSIONS: &str = "sessions";

/// Derives the session table while the log is replayed.
pub(crate) struct Replay<'a> {
    pub(crate) sessions: &'a SessionTable,
    pub(crate) progress: &'a mut dyn FnMut(Progress),
}

impl ReplayObserver for Replay<'_> {
    fn restore(&mut self, extra: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
        if let Some(bytes) = extra.get(SESSIONS) {
            self.sessions.restore(&Doc::from_validated(bytes).to_document());
        }
        Ok(())
    }
    fn after(&mut self, frame: &FrameRef<'_>, _entry: &Entry<'_>) -> Result<(), String> {
        let entry = Doc::from_validated(frame.payload);
        apply_session_fields(self.sessions, entry, frame.optime, frame.wall);
        Ok(())
    }
    fn progress(&mut self, progress: Progress) {
        (self.progress)(progress);
    }
}

/// How long a checkpoint waits for what it holds to be committed.
const COMMIT_WAIT: std::time::Duration = std::time::Duration::from_millis(500);

/// What a member keeps beside its log. A directory whose copy was interrupted is emptied when it is a member's again: nothing
/// in it is of use to the set. Without the set it stays, with what was written to it since.
fn open_state(options: &NodeOptions) -> Result<State, StorageError> {
    let ephemeral = options.log.in_memory || options.log.sync == SyncPolicy::Never;
    if ephemeral {
        return Ok(State::in_memory());
    }
    let (files, dir) = (&options.files, &options.dir);
    files.create_dir_all(dir).map_err(StorageError::io("create", dir))?;
    let state = State::open(files.clone(), dir).map_err(StorageError::io("read", dir))?;
    if state.get().copying && options.replica_set.is_some() {
        for name in ["checkpoint", "journal", "log"] {
            let path = dir.join(name);
            files.remove_dir_all(&path).map_err(StorageError::io("remove", &path))?;
        }
    }
    Ok(state)
}

/// Gives the session table what an entry says of its session.
pub(crate) fn apply_session_fields(sessions: &SessionTable, entry: Doc<'_>, optime: OpTime, wall: i64) {
    let (Some(lsid), Some(number)) = (entry.get_document("lsid"), entry.get_i64("txnNumber")) else { return };
    let Ok(id) = SessionId::parse(lsid) else { return };
    let statements: Vec<i32> = match entry.get("stmtId").map(|v| v.to_value()) {
        Some(Value::Array(a)) => a.iter().filter_map(Value::as_i64).map(|n| n as i32).collect(),
        Some(v) => v.as_i64().map(|n| n as i32).into_iter().collect(),
        None => Vec::new(),
    };
    let at = EntryTime { ts: optime.ts, term: optime.term };
    if let Some(phase) = phase_of(entry) {
        return sessions.apply_transaction(id, number, phase, &statements_within(entry), at, wall);
    }
    sessions.apply(id, number, &statements, at, wall);
}

/// The statements of a retryable write among the operations of a transaction's entry.
fn statements_within(entry: Doc<'_>) -> Vec<i32> {
    operations_of(entry).filter_map(|o| o.get_i64("stmtId")).map(|n| n as i32).collect()
}

/// What an entry makes of its session's transaction; `None` for a statement of a retryable write.
fn phase_of(entry: Doc<'_>) -> Option<Phase> {
    let o = entry.get_document("o").filter(|_| entry.get_str("op") == Some("c"))?;
    let flag = |name: &str| o.get_bool(name) == Some(true);
    match o.iter().next()?.name() {
        "applyOps" if flag("partialTxn") => Some(Phase::InProgress),
        "applyOps" if flag("prepare") => Some(Phase::Prepared),
        "applyOps" | "commitTransaction" => Some(Phase::Committed),
        "abortTransaction" => Some(Phase::AbortedAfterPrepare),
        _ => None,
    }
}

/// Makes the predicate of a partial index out of its `partialFilterExpression`, in the index's collation. It is asked under the latch
/// when a document is written: were it cut short by the end of the operation's time, the index would lack a key, or keep one.
pub fn partial_predicate(filter: &Document, collation: &Collation) -> Result<Predicate> {
    let context = QueryContext::collated(collation);
    let matcher = Matcher::parse(filter.to_doc_buf().doc(), &context)?;
    Ok(Arc::new(move |doc| meter::unbroken(|| matcher.matches(doc)).unwrap_or(false)))
}

impl Node {
    /// Recovers the directory and opens it for writing; the term has risen.
    ///
    /// # Errors
    /// A directory in use, damage, a mismatch between checkpoint and log, I/O.
    pub fn open(options: NodeOptions) -> Result<Opened, StorageError> {
        Node::open_telling(options, &mut |_| {})
    }

    /// As [`Node::open`], telling how far it has come.
    ///
    /// # Errors
    /// Those of [`Node::open`].
    pub fn open_telling(
        options: NodeOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Opened, StorageError> {
        let sessions = SessionTable::default();
        let state = open_state(&options)?;
        let opened = recovery::open(
            options.files.clone(),
            &options.dir,
            options.log.clone(),
            &partial_predicate,
            &mut Replay { sessions: &sessions, progress },
        )?;
        let kept = state.get();
        let is_member = options.replica_set.is_some();
        let is_detached = !is_member && kept.config.is_some();
        // A member's term rises by an election.
        let newest = opened.report.last_optime.term.max(0);
        let voted = kept.vote.map_or(0, |vote| vote.term);
        opened.log.set_term(if is_member || is_detached { newest.max(voted) } else { newest + 1 });
        let last = opened.log.last_optime();
        let namespaces = Namespaces::default();
        for (ns, collection) in opened.collections {
            namespaces.slot(&ns).write_unchecked().install(collection);
        }
        let temporary = Arc::new(TemporaryFiles::open(options.files.clone(), &options.dir));
        let node = Arc::new(Node {
            clock: options.clock.clone(),
            options,
            log: opened.log,
            gate: RwLock::new(()),
            namespaces,
            sessions,
            snapshots: Arc::default(),
            transactions: crate::transaction::Transactions::default(),
            past: crate::past::Past::default(),
            restored_ts: Default::default(),
            observers: observer::Observers::default(),
            failpoints: failpoints::FailPoints::new(),
            profiling: false.into(),
            write_conflicts: Default::default(),
            is_detached,
            limits: RwLock::default(),
            keys_of_places_max: 100_000.into(),
            disk_use_by_default: true.into(),
            temporary,
            spills: Arc::default(),
            replication: crate::replication::Replication::new(state, last),
            log_holds: crate::maintenance::LogHolds::default(),
            cursors: crate::cursor::Cursors::default(),
            stream_feed: Default::default(),
            index_builds: Default::default(),
            index_use: crate::read::index_use::IndexUse::default(),
            plan_caches: crate::plan_cache::PlanCaches::default(),
            query_settings: Arc::default(),
            default_time: Arc::default(),
            cardinality: Arc::default(),
            samples: Default::default(),
            analyzers: Default::default(),
            user_writes: Default::default(),
            series: crate::timeseries::Catalog::default(),
            ttl: crate::ttl::Totals::default(),
            db_checks: crate::db_check::Checks::default(),
            hooks: RwLock::new(None),
            scripting: std::sync::OnceLock::new(),
            object_ids: ObjectIdGenerator::new(runtime::random()),
            directory: Directory::of(opened.checkpoints, &opened.report, opened.lock),
        });
        node.watch_own_collections();
        let (prepared, incomplete) = opened.transactions.into_iter().partition(|t| t.prepared.is_some());
        node.replication.add_between(incomplete);
        node.restore_prepared(prepared)
            .map_err(|e| StorageError::Mismatch { position: node.log.appended(), reason: e.message })?;
        if !node.is_replica_set() {
            node.replication.services.start();
        }
        Ok(Opened { node, report: opened.report })
    }

    /// Has in memory, and keeps there, what collections of the servers' own say.
    fn watch_own_collections(self: &Arc<Self>) {
        self.load_views();
        self.load_user_writes();
        self.observers.add(crate::user_writes::COLLECTION, self.user_writes.clone());
        self.watch_cluster_parameters();
        self.watch_defaults();
    }

    /// Writes a checkpoint, from which the next start replays; `None` for a node in memory, and for a member while what it has is
    /// not committed. Blocks its thread.
    ///
    /// # Errors
    /// I/O; the older checkpoint stays in force.
    pub fn checkpoint(&self) -> Result<Option<CheckpointReport>, StorageError> {
        let mut guard = self.directory.checkpoints.lock();
        let Some(checkpoints) = guard.as_mut() else { return Ok(None) };
        let contents = self.freeze();
        self.log.wait_durable_blocking(contents.position)?;
        if self.is_later_than_a_test_wants(contents.optime) || !self.becomes_committed(contents.optime) {
            return Ok(None);
        }
        // Before it is written: a rollback to a point before it, of which it is to keep this member, would lose what it stands on.
        let noted = self.replication.note_committed(contents.optime);
        noted.map_err(StorageError::io("note what is committed in", &self.options.dir))?;
        let optime = contents.optime;
        let report = checkpoints.write(contents, &self.log)?;
        self.directory.stable.store(optime.ts, Ordering::SeqCst);
        Ok(Some(report))
    }

    /// Whether `holdStableTimestampAtSpecificTimestamp` is on and its `timestamp` lies before this optime.
    fn is_later_than_a_test_wants(&self, optime: OpTime) -> bool {
        let is_later = |data: &Document| {
            data.get("timestamp").and_then(Value::as_timestamp).is_some_and(|last| optime.ts > last.as_u64())
        };
        self.failpoints.should_with("holdStableTimestampAtSpecificTimestamp", is_later).is_some()
    }

    /// Whether there are entries, and nothing of them can be rolled back.
    pub(crate) fn is_all_committed(&self) -> bool {
        let last = self.log.last_optime();
        last.ts != 0 && self.is_committed(last)
    }

    /// Whether an optime is committed within a while. What is not may be rolled back, and a rollback begins at a
    /// checkpoint. Blocks its thread.
    fn becomes_committed(&self, optime: OpTime) -> bool {
        let until = runtime::Instant::now() + COMMIT_WAIT;
        while self.replication.commit.is_shared() && !self.is_committed(optime) {
            let waited = runtime::pause_thread(std::time::Duration::from_millis(5));
            if !waited || runtime::Instant::now() >= until {
                return false;
            }
        }
        true
    }

    /// Writes a checkpoint of a state that was copied from another member, and of which nothing is in the log.
    pub(crate) fn checkpoint_anew(&self) -> Result<(), StorageError> {
        let mut guard = self.directory.checkpoints.lock();
        if guard.is_none() {
            return Ok(());
        }
        let mut checkpoints = Checkpoints::new(self.options.files.clone(), &self.options.dir)?;
        let contents = self.freeze();
        self.log.wait_durable_blocking(contents.position)?;
        let optime = contents.optime;
        checkpoints.write(contents, &self.log)?;
        self.directory.stable.store(optime.ts, Ordering::SeqCst);
        *guard = Some(checkpoints);
        Ok(())
    }

    /// Whether this node writes checkpoints at all.
    pub(crate) fn has_checkpoints(&self) -> bool {
        self.directory.checkpoints.lock().is_some()
    }

    /// The time from which a restart would go on: that of the newest entry in the newest checkpoint.
    pub fn stable_recovery_time(&self) -> Option<Timestamp> {
        let ts = self.directory.stable.load(Ordering::SeqCst);
        (ts != 0).then(|| Timestamp::from_u64(ts))
    }

    /// Everything as of one log position.
    fn freeze(&self) -> Contents {
        let _gate = self.gate.write();
        // Listed under the gate: a collection created before it is in the checkpoint or its entry is after it.
        let slots = self.namespaces.all();
        let collections = slots
            .iter()
            .filter_map(|s| s.read_unchecked().collection.as_ref().map(Collection::freeze))
            .collect();
        let extra = BTreeMap::from([(SESSIONS.to_string(), self.sessions.image().to_vec())]);
        Contents {
            collections,
            transactions: self.prepared_transactions(),
            extra,
            position: self.log.appended(),
            optime: self.log.last_optime(),
        }
    }

    /// Appends a no-op entry: what a new primary writes, and what a read that waits for a later time asks for.
    ///
    /// # Errors
    /// NotWritablePrimary (10107).
    pub fn append_noop(&self, message: Document) -> Result<storage::log::Appended> {
        let _gate = self.gate.read();
        self.check_leads()?;
        Ok(self.append_entry(&Draft::new(Op::Noop, "", None), message.to_doc_buf().doc()))
    }

    /// Syncs the log and stops taking writes.
    pub fn shutdown(&self) {
        // A log that failed has said so to every writer already.
        let _ = self.log.shutdown();
    }

    /// Approximate bytes of log since the newest checkpoint: when to write the next.
    pub fn log_bytes(&self) -> u64 {
        self.log.bytes()
    }
}

/// What a primary writes when it begins its term.
pub fn new_primary_message() -> Document {
    doc! { "msg": "new primary" }
}
