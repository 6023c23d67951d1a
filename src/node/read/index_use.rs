//! What reading has done on this node: how often each index was used (`$indexStats`), and the totals of `serverStatus`.

use crate::exec::walk::Counters;
use crate::stripe::Counter;
use dashmap::DashMap;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Counts by namespace and index name, since the node started or the index was first asked about.
#[derive(Default)]
pub struct IndexUse {
    counts: DashMap<String, HashMap<String, Counter, RandomState>, RandomState>,
    started_ms: std::sync::OnceLock<i64>,
    pub totals: Totals,
}

/// Since the node started.
#[derive(Default)]
pub struct Totals {
    /// Index keys and documents examined.
    pub keys: Counter,
    pub docs: Counter,
    /// Blocking sorts begun.
    pub sorts: Counter,
}

impl Totals {
    pub fn note(&self, counters: Counters) {
        self.keys.add(counters.keys as i64);
        self.docs.add(counters.docs as i64);
    }
    /// One document was found by `_id` and handed out, or was not there.
    pub fn note_point(&self, found: bool) {
        if found {
            self.keys.increment();
            self.docs.increment();
        }
    }
}

impl IndexUse {
    pub fn note(&self, ns: &str, index: &str) {
        if let Some(counts) = self.counts.get(ns)
            && let Some(n) = counts.get(index)
        {
            n.increment();
            return;
        }
        let mut counts = self.counts.entry(ns.to_string()).or_default();
        counts.entry(index.to_string()).or_default().increment();
    }
    /// Uses, and since when they are counted.
    pub fn of(&self, ns: &str, index: &str, now_ms: i64) -> (i64, i64) {
        let ops = self.counts.get(ns).and_then(|c| c.get(index).map(Counter::get)).unwrap_or(0);
        (ops, *self.started_ms.get_or_init(|| now_ms))
    }
    /// Begins again to count the uses of an index.
    pub fn forget_index(&self, ns: &str, index: &str) {
        if let Some(mut counts) = self.counts.get_mut(ns) {
            counts.remove(index);
        }
    }
    pub fn forget(&self, ns: &str) {
        self.counts.remove(ns);
    }
}
