//! What this member has fetched and applied since its start: `serverStatus.metrics.repl`.

use crate::Node;
use document::{Document, doc};
use runtime::Instant;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub(super) struct Count(AtomicU64);
impl Count {
    pub(super) fn add(&self, n: usize) {
        self.0.fetch_add(n as u64, Ordering::Relaxed);
    }
    fn get(&self) -> i64 {
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

#[derive(Default)]
pub(super) struct Metrics {
    pub(super) batches: Timed,
    pub(super) applied: Count,
    pub(super) get_mores: Timed,
    pub(super) empty_batches: Count,
    pub(super) fetched: Count,
    pub(super) fetched_bytes: Count,
    pub(super) readers: Count,
    pub(super) position_reports: Count,
    pub(super) sources_chosen: Count,
    pub(super) sources_missing: Count,
    pub(super) copies: Count,
    pub(super) failed_copies: Count,
}

impl Node {
    /// `serverStatus.metrics.repl`.
    pub fn replication_metrics(&self) -> Document {
        let m = &self.replication.metrics;
        let mut get_mores = m.get_mores.shown();
        get_mores.push("numEmptyBatches", m.empty_batches.get());
        doc! {
            "apply": { "batches": m.batches.shown(), "ops": m.applied.get() },
            "initialSync": { "completed": m.copies.get(), "failedAttempts": m.failed_copies.get() },
            "network": {
                "bytes": m.fetched_bytes.get(), "getmores": get_mores, "ops": m.fetched.get(),
                "readersCreated": m.readers.get(), "replSetUpdatePosition": { "num": m.position_reports.get() },
            },
            "syncSource": {
                "numSelections": m.sources_chosen.get(), "numTimesCouldNotFind": m.sources_missing.get(),
            },
        }
    }
}
