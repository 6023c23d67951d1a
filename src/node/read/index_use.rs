//! What reading has done on this node: how often each index was used (`$indexStats`), and the totals of `serverStatus`.

use crate::exec::walk::Counters;
use dashmap::DashMap;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts by namespace and index name, since the node started or the index was first asked about.
#[derive(Default)]
pub struct IndexUse {
    counts: DashMap<String, HashMap<String, AtomicU64>>,
    started_ms: std::sync::OnceLock<i64>,
    pub totals: Totals,
}

/// Since the node started.
#[derive(Default)]
pub struct Totals {
    /// Index keys and documents examined.
    pub keys: AtomicU64,
    pub docs: AtomicU64,
    /// Blocking sorts begun.
    pub sorts: AtomicU64,
}

impl Totals {
    pub fn note(&self, counters: Counters) {
        self.keys.fetch_add(counters.keys, Relaxed);
        self.docs.fetch_add(counters.docs, Relaxed);
    }
    /// One document was found by `_id` and handed out, or was not there.
    pub fn note_point(&self, found: bool) {
        if found {
            self.keys.fetch_add(1, Relaxed);
            self.docs.fetch_add(1, Relaxed);
        }
    }
}

impl IndexUse {
    pub fn note(&self, ns: &str, index: &str) {
        if let Some(counts) = self.counts.get(ns)
            && let Some(n) = counts.get(index)
        {
            n.fetch_add(1, Relaxed);
            return;
        }
        let mut counts = self.counts.entry(ns.to_string()).or_default();
        counts.entry(index.to_string()).or_default().fetch_add(1, Relaxed);
    }
    /// Uses, and since when they are counted.
    pub fn of(&self, ns: &str, index: &str, now_ms: i64) -> (i64, i64) {
        let ops = self.counts.get(ns).and_then(|c| c.get(index).map(|n| n.load(Relaxed))).unwrap_or(0);
        (ops as i64, *self.started_ms.get_or_init(|| now_ms))
    }
    pub fn forget(&self, ns: &str) {
        self.counts.remove(ns);
    }
}
