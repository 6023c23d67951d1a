//! How often each index was used by a query: `$indexStats`.

use dashmap::DashMap;
use std::collections::HashMap;

/// Counts by namespace and index name, since the node started or the index was first asked about.
#[derive(Default)]
pub struct IndexUse {
    counts: DashMap<String, HashMap<String, u64>>,
    started_ms: std::sync::OnceLock<i64>,
}

impl IndexUse {
    pub fn note(&self, ns: &str, index: &str) {
        let mut counts = match self.counts.get_mut(ns) {
            Some(counts) => counts,
            None => self.counts.entry(ns.to_string()).or_default(),
        };
        match counts.get_mut(index) {
            Some(n) => *n += 1,
            None => {
                counts.insert(index.to_string(), 1);
            }
        }
    }
    /// Uses, and since when they are counted.
    pub fn of(&self, ns: &str, index: &str, now_ms: i64) -> (i64, i64) {
        let ops = self.counts.get(ns).and_then(|c| c.get(index).copied()).unwrap_or(0);
        (ops as i64, *self.started_ms.get_or_init(|| now_ms))
    }
    pub fn forget(&self, ns: &str) {
        self.counts.remove(ns);
    }
}
