//! What this member has fetched and applied since its start: `serverStatus.metrics.repl`.

use crate::Node;
use document::{Document, codes, doc};
use parking_lot::Mutex;
use runtime::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use storage::entry::{Entry, Op};

#[derive(Default)]
pub(super) struct Count(AtomicU64);
impl Count {
    pub(super) fn add(&self, n: usize) {
        self.0.fetch_add(n as u64, Ordering::Relaxed);
    }
    pub(super) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed) as i64
    }
}

/// How often something was done, and how long it took.
#[derive(Default)]
pub(super) struct Timed {
    num: Count,
    millis: Count,
}
impl Timed {
    pub(super) fn done(&self, began: Instant) {
        self.num.add(1);
        self.millis.add(began.elapsed().as_millis() as usize);
    }
    fn shown(&self) -> Document {
        doc! { "num": self.num.get(), "totalMillis": self.millis.get() }
    }
}

/// How many operations wait for something now.
#[derive(Default)]
pub(crate) struct Waiters(AtomicU64);

/// One of them, while it lives.
pub(crate) struct Waits<'a>(&'a Waiters);

impl Waiters {
    pub(crate) fn enter(&self) -> Waits<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Waits(self)
    }
    fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed) as i64
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Operations of others that were applied here: `serverStatus.opcountersRepl`.
#[derive(Default)]
pub(super) struct Operations {
    inserts: Count,
    updates: Count,
    deletes: Count,
    commands: Count,
}
impl Operations {
    /// Counts an entry; of several operations in one, each.
    pub(super) fn count(&self, entry: &Entry<'_>) {
        if let Some(("applyOps", list)) = entry.command() {
            let inner = list.as_array().into_iter().flat_map(|list| list.iter());
            for d in inner.filter_map(|e| e.value().as_document()) {
                if let Ok(entry) = Entry::read(d) {
                    self.count_one(entry.op);
                }
            }
        } else {
            self.count_one(entry.op);
        }
    }
    fn count_one(&self, op: Op) {
        match op {
            Op::Insert => self.inserts.add(1),
            Op::Update => self.updates.add(1),
            Op::Delete => self.deletes.add(1),
            Op::Command => self.commands.add(1),
            Op::Noop => {}
        }
    }
}

#[derive(Default)]
pub(crate) struct Metrics {
    pub(super) operations: Operations,
    pub(super) batches: Timed,
    pub(super) applied: Count,
    pub(super) get_mores: Timed,
    pub(super) empty_batches: Count,
    pub(super) fetched: Count,
    pub(super) fetched_bytes: Count,
    /// What was fetched and is not applied yet.
    pub(super) waiting: AtomicU64,
    pub(super) waiting_bytes: AtomicU64,
    pub(super) readers: Count,
    pub(super) position_reports: Count,
    sources_chosen: Count,
    sources_changed: Count,
    last_source: Mutex<String>,
    pub(super) sources_missing: Count,
    pub(super) admissions: Count,
    pub(super) copies: Count,
    pub(super) failed_copies: Count,
    /// All attempts at a copy have failed.
    pub(super) hopeless_copies: Count,
    /// Batches of this member's oplog that others have fetched.
    served: Timed,
    /// How often the beginning of the log was let go, and for how long that took in microseconds.
    truncations: Count,
    truncating_micros: Count,
    /// Ends of a copy, a rollback or a start.
    pub(super) secondary_attempts: Count,
    forced_step_downs: Count,
    failed_step_downs: Count,
    waits: Timed,
    /// Writes that wait for other members, and reads that wait for this one to come to a time.
    pub(crate) awaiting_members: Waiters,
    pub(super) awaiting_time: Waiters,
    timeouts: Count,
    default_timeouts: Count,
    default_unsatisfiable: Count,
}
impl Metrics {
    /// Says how many of the entries that were fetched still wait to be applied, and their bytes.
    pub(super) fn set_waiting(&self, entries: usize, bytes: usize) {
        self.waiting.store(entries as u64, Ordering::Relaxed);
        self.waiting_bytes.store(bytes as u64, Ordering::Relaxed);
    }
    /// The beginning of the log was let go.
    pub(crate) fn note_truncation(&self, began: Instant) {
        self.truncations.add(1);
        self.truncating_micros.add(began.elapsed().as_micros() as usize);
    }
    /// Entries are to be fetched from this host.
    pub(super) fn chose(&self, host: &str) {
        self.sources_chosen.add(1);
        let mut last = self.last_source.lock();
        if *last != host {
            self.sources_changed.add(1);
            *last = host.to_string();
        }
    }
    /// A write has waited for other members, with this `writeConcernError`; `given` is whether the client said for how many.
    pub(crate) fn acknowledged(&self, began: Instant, error: Option<&Document>, given: bool) {
        self.waits.done(began);
        let code = error.and_then(|e| e.get_i64("code")).and_then(|code| i32::try_from(code).ok());
        match code {
            Some(codes::WRITE_CONCERN_FAILED) => {
                self.timeouts.add(1);
                self.default_timeouts.add(usize::from(!given));
            }
            Some(codes::UNSATISFIABLE_WRITE_CONCERN) => self.default_unsatisfiable.add(usize::from(!given)),
            _ => {}
        }
    }
}

impl Node {
    /// `serverStatus.opcountersRepl`.
    pub fn replicated_operations(&self) -> Document {
        let o = &self.replication.metrics.operations;
        doc! {
            "insert": o.inserts.get(), "query": 0i64, "update": o.updates.get(), "delete": o.deletes.get(),
            "getmore": 0i64, "command": o.commands.get(),
        }
    }
    /// `serverStatus.metrics.getLastError`: how writes waited for other members.
    pub fn write_concern_metrics(&self) -> Document {
        let m = &self.replication.metrics;
        doc! {
            "default": { "unsatisfiable": m.default_unsatisfiable.get(), "wtimeouts": m.default_timeouts.get() },
            "wtime": m.waits.shown(), "wtimeouts": m.timeouts.get(),
        }
    }
    /// `serverStatus.oplogTruncation`.
    pub fn oplog_truncation(&self) -> Document {
        let m = &self.replication.metrics;
        doc! {
            "oplogMinRetentionHours": self.log.retain_ms() as f64 / 3_600_000.0,
            "totalTimeTruncatingMicros": m.truncating_micros.get(), "truncateCount": m.truncations.get(),
        }
    }
    /// Another member has fetched a batch of the oplog.
    pub fn note_served(&self, began: Instant) {
        self.replication.metrics.served.done(began);
    }
    /// A step-down that does not wait for others was asked for.
    pub fn note_forced_step_down(&self, done: bool) {
        let m = &self.replication.metrics;
        m.forced_step_downs.add(1);
        m.failed_step_downs.add(usize::from(!done));
    }
    /// `serverStatus.metrics.commands.replSetStepDownWithForce`.
    pub fn forced_step_downs(&self) -> Document {
        let m = &self.replication.metrics;
        doc! { "failed": m.failed_step_downs.get(), "total": m.forced_step_downs.get() }
    }
    /// `serverStatus.metrics.repl`.
    pub fn replication_metrics(&self) -> Document {
        let m = &self.replication.metrics;
        let (waiting, waiting_bytes) =
            (m.waiting.load(Ordering::Relaxed) as i64, m.waiting_bytes.load(Ordering::Relaxed) as i64);
        let most = document::validate::Limits::INTERNAL.bytes_max as i64;
        let mut get_mores = m.get_mores.shown();
        get_mores.push("numEmptyBatches", m.empty_batches.get());
        doc! {
            "apply": { "attemptsToBecomeSecondary": m.secondary_attempts.get(), "batchSize": m.applied.get(), "batches": m.batches.shown(), "ops": m.applied.get() },
            // A batch is fetched when the one before was applied; an entry is written and applied in one go.
            "buffer": {
                "count": waiting, "maxSizeBytes": most, "sizeBytes": waiting_bytes,
                "write": { "count": waiting, "maxSizeBytes": most, "sizeBytes": waiting_bytes },
                "apply": { "count": 0i64, "maxSizeBytes": most, "sizeBytes": 0i64 },
            },
            "initialSync": { "completed": m.copies.get(), "failedAttempts": m.failed_copies.get(), "failures": m.hopeless_copies.get() },
            "network": {
                "bytes": m.fetched_bytes.get(), "getmores": get_mores, "oplogGetMoresProcessed": m.served.shown(), "ops": m.fetched.get(),
                "readersCreated": m.readers.get(), "replSetUpdatePosition": { "num": m.position_reports.get() },
            },
            "reconfig": { "numAutoReconfigsForRemovalOfNewlyAddedFields": m.admissions.get() },
            "syncSource": {
                "numSelections": m.sources_chosen.get(), "numTimesChoseDifferent": m.sources_changed.get(),
                "numTimesChoseSame": m.sources_chosen.get() - m.sources_changed.get(),
                "numTimesCouldNotFind": m.sources_missing.get(),
            },
            "waiters": { "opTime": m.awaiting_time.get(), "replication": m.awaiting_members.get() },
        }
    }
}
