//! What reading has done on this node: how often each index was used (`$indexStats`) and each collection scanned
//! (`$collStats`), and the totals of `serverStatus`.

use crate::exec::walk::Counters;
use crate::stripe::Counter;
use dashmap::DashMap;
use document::{Document, doc};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Counts by namespace and index name, since the node started or the index was first asked about.
#[derive(Default)]
pub struct IndexUse {
    counts: DashMap<String, HashMap<String, Counter, RandomState>, RandomState>,
    scans: DashMap<String, Scans, RandomState>,
    started_ms: std::sync::OnceLock<i64>,
    pub totals: Totals,
}

/// Plans that read a collection from one end.
#[derive(Default)]
pub struct Scans {
    total: Counter,
    non_tailable: Counter,
}

impl Scans {
    fn note(&self, tails: bool) {
        self.total.increment();
        if !tails {
            self.non_tailable.increment();
        }
    }
    /// `collectionScans`.
    pub fn shown(&self) -> Document {
        doc! { "nonTailable": self.non_tailable.get(), "total": self.total.get() }
    }
}

/// Since the node started.
#[derive(Default)]
pub struct Totals {
    pub scans: Scans,
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
    /// Counts a scan of the collection; one that goes on with what is inserted `tails`.
    pub fn note_scan(&self, ns: &str, tails: bool) {
        self.totals.scans.note(tails);
        match self.scans.get(ns) {
            Some(scans) => scans.note(tails),
            None => self.scans.entry(ns.to_string()).or_default().note(tails),
        }
    }
    /// The scans of the collection.
    pub fn scans_of(&self, ns: &str) -> Document {
        self.scans.get(ns).map_or_else(|| Scans::default().shown(), |scans| scans.shown())
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
    /// What was counted goes with a collection that gets another name.
    pub fn rename(&self, from: &str, to: &str) {
        if let Some((_, counts)) = self.counts.remove(from) {
            self.counts.insert(to.to_string(), counts);
        }
        if let Some((_, scans)) = self.scans.remove(from) {
            self.scans.insert(to.to_string(), scans);
        }
    }
    pub fn forget(&self, ns: &str) {
        self.counts.remove(ns);
        self.scans.remove(ns);
    }
}
