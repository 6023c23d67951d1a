//! Opening a node: recovery, the new term, the slots; and its checkpoints.

use crate::namespace::Namespaces;
use crate::operation::SessionId;
use crate::session::SessionTable;
use crate::temporary::TemporaryFiles;
use crate::{Node, failpoints, observer};
use document::oid::ObjectIdGenerator;
use document::{Collation, Doc, Document, Result, Value, doc};
use parking_lot::{Mutex, RwLock};
use protocol::session::EntryTime;
use protocol::transaction::Phase;
use query::QueryContext;
use query::matcher::Matcher;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use storage::checkpoint::{CheckpointReport, Checkpoints, Contents};
use storage::entry::{Draft, Entry, Op};
use storage::files::{FileLock, Files};
use storage::log::{Clock, FrameRef, LogOptions};
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
    _lock: Option<FileLock>,
}

/// Name of the checkpoint blob that holds the session table. DO NOT CHANGE: it is on disk.
const SESSIONS: &str = "sessions";

struct Replay<'a> {
    sessions: &'a SessionTable,
    progress: &'a mut dyn FnMut(Progress),
}

impl ReplayObserver for Replay<'_> {
    fn restore(&mut self, extra: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
        if let Some(bytes) = extra.get(SESSIONS) {
            self.sessions.restore(&Doc::from_validated(bytes).to_document());
        }
        Ok(())
    }
    fn after(&mut self, frame: &FrameRef<'_>, _entry: &Entry<'_>) -> Result<(), String> {
        apply_session_fields(self.sessions, frame);
        Ok(())
    }
    fn progress(&mut self, progress: Progress) {
        (self.progress)(progress);
    }
}

/// Gives the session table what an entry says of its session.
fn apply_session_fields(sessions: &SessionTable, frame: &FrameRef<'_>) {
    let entry = Doc::from_validated(frame.payload);
    let (Some(lsid), Some(number)) = (entry.get_document("lsid"), entry.get_i64("txnNumber")) else { return };
    let Ok(id) = SessionId::parse(lsid) else { return };
    let statements: Vec<i32> = match entry.get("stmtId").map(|v| v.to_value()) {
        Some(Value::Array(a)) => a.iter().filter_map(Value::as_i64).map(|n| n as i32).collect(),
        Some(v) => v.as_i64().map(|n| n as i32).into_iter().collect(),
        None => Vec::new(),
    };
    let at = EntryTime { ts: frame.optime.ts, term: frame.optime.term };
    if let Some(phase) = phase_of(entry) {
        return sessions.apply_transaction(id, number, phase, at, frame.wall);
    }
    sessions.apply(id, number, &statements, at, frame.wall);
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

/// Makes the predicate of a partial index out of its `partialFilterExpression`, in the index's collation.
pub fn partial_predicate(filter: &Document, collation: &Collation) -> Result<Predicate> {
    let context = QueryContext::collated(collation);
    let matcher = Matcher::parse(filter.to_doc_buf().doc(), &context)?;
    Ok(Arc::new(move |doc| matcher.matches(doc).unwrap_or(false)))
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
        let opened = recovery::open(
            options.files.clone(),
            &options.dir,
            options.log.clone(),
            &partial_predicate,
            &mut Replay { sessions: &sessions, progress },
        )?;
        opened.log.set_term(opened.report.last_optime.term.max(0) + 1);
        let namespaces = Namespaces::default();
        for (ns, collection) in opened.collections {
            namespaces.slot(&ns).write_unchecked().install(collection);
        }
        let temporary = TemporaryFiles::open(options.files.clone(), &options.dir);
        let temporary = Arc::new(temporary);
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
            observers: observer::Observers::default(),
            failpoints: failpoints::FailPoints::new(),
            profiling: false.into(),
            limits: RwLock::default(),
            disk_use_by_default: true.into(),
            temporary,
            replication: crate::replication::Replication::default(),
            log_holds: crate::maintenance::LogHolds::default(),
            cursors: crate::cursor::Cursors::default(),
            index_use: crate::read::index_use::IndexUse::default(),
            ttl: crate::ttl::Totals::default(),
            hooks: RwLock::new(None),
            object_ids: ObjectIdGenerator::new(rand::random()),
            next_operation: AtomicI64::new(1),
            directory: Directory { checkpoints: Mutex::new(opened.checkpoints), _lock: opened.lock },
        });
        node.load_views();
        node.restore_prepared(opened.transactions)
            .map_err(|e| StorageError::Mismatch { position: node.log.appended(), reason: e.message })?;
        if !node.is_replica_set() {
            node.replication.services.start();
        }
        Ok(Opened { node, report: opened.report })
    }

    /// Writes a checkpoint, from which the next start replays; `None` for a node in memory. Blocks its thread.
    ///
    /// # Errors
    /// I/O; the older checkpoint stays in force.
    pub fn checkpoint(&self) -> Result<Option<CheckpointReport>, StorageError> {
        let mut guard = self.directory.checkpoints.lock();
        let Some(checkpoints) = guard.as_mut() else { return Ok(None) };
        let contents = self.freeze();
        self.log.wait_durable_blocking(contents.position)?;
        checkpoints.write(contents, &self.log).map(Some)
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
    pub fn append_noop(&self, message: Document) -> storage::log::Appended {
        let _gate = self.gate.read();
        self.append_entry(&Draft::new(Op::Noop, "", None), message.to_doc_buf().doc())
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
