//! The auto-merger policy: every interval, each shard is asked to merge what may be merged.
//!
//! ```text
//! scan        which (shard, collection) pairs have mergeable chunks
//! issue       at most ACTIONS_PER_SHARD_MAX at a time on a shard, and one for a collection each `throttling`
//! drained     the interval begins
//! ```
//! A merge that left something to merge, or whose failure is worth another attempt, is issued again in the same run; one
//! that has failed [`ATTEMPTS_MAX`] times is left to the next, so that a shard that is away does not keep the run open. The
//! scan itself reads the catalog and is the driver's; what may be merged is the definition of `mergeAllChunksOnShard`.

use super::Outcome;
use std::collections::{BTreeMap, BTreeSet};

/// Merges of one shard that are under way at a time.
pub const ACTIONS_PER_SHARD_MAX: usize = 10;

/// Failed attempts at a merge in one run.
pub const ATTEMPTS_MAX: u32 = 3;

/// A shard and a collection with chunks to merge on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Merge {
    pub shard: String,
    pub ns: String,
}

/// The state of one balancer's auto-merger. Times are milliseconds.
#[derive(Debug, Default)]
pub struct AutoMerger {
    due: BTreeSet<Merge>,
    running: BTreeSet<Merge>,
    /// Failed attempts, in this run.
    failed: BTreeMap<Merge, u32>,
    /// When the last merge of a collection was issued, in this run.
    issued: BTreeMap<String, i64>,
    /// When the last run had drained; `None` before the first run.
    drained: Option<i64>,
    in_run: bool,
}

impl AutoMerger {
    /// Whether it is time to look for mergeable chunks. The first run begins at once.
    pub fn wants_scan(&self, now: i64, interval_ms: i64) -> bool {
        !self.in_run && self.drained.is_none_or(|at| now >= at.saturating_add(interval_ms))
    }
    /// Begins a run with what a scan found.
    pub fn begin(&mut self, found: impl IntoIterator<Item = Merge>, now: i64) {
        self.due = found.into_iter().collect();
        self.issued.clear();
        self.failed.clear();
        self.in_run = true;
        self.end_if_drained(now);
    }
    /// The next merge that may be issued now.
    pub fn next_action(&mut self, now: i64, throttling_ms: i64) -> Option<Merge> {
        let rests = |ns: &str| self.issued.get(ns).is_some_and(|at| now < at.saturating_add(throttling_ms));
        let found = self.due.iter().find(|m| self.has_room(&m.shard) && !rests(&m.ns)).cloned()?;
        self.due.remove(&found);
        self.running.insert(found.clone());
        self.issued.insert(found.ns.clone(), now);
        Some(found)
    }
    fn has_room(&self, shard: &str) -> bool {
        self.running.iter().filter(|m| m.shard == shard).count() < ACTIONS_PER_SHARD_MAX
    }
    /// A merge has ended; `more` when it may have left something to merge.
    pub fn ended(&mut self, merge: &Merge, outcome: Outcome, more: bool, now: i64) {
        if !self.running.remove(merge) {
            return;
        }
        let again = match outcome {
            Outcome::Done => more,
            Outcome::Failed => false,
            Outcome::Retriable => {
                let failed = self.failed.entry(merge.clone()).or_default();
                *failed += 1;
                *failed < ATTEMPTS_MAX
            }
        };
        if again {
            self.due.insert(merge.clone());
        }
        self.end_if_drained(now);
    }
    /// Gives up what is due: auto-merging was switched off.
    pub fn clear(&mut self, now: i64) {
        self.due.clear();
        self.end_if_drained(now);
    }
    fn end_if_drained(&mut self, now: i64) {
        if self.in_run && self.due.is_empty() && self.running.is_empty() {
            self.in_run = false;
            self.drained = Some(now);
        }
    }
    /// Merges that are due or under way.
    pub fn remaining(&self) -> usize {
        self.due.len() + self.running.len()
    }
    /// When the next run may begin; `None` while one goes on.
    pub fn next_run_at(&self, interval_ms: i64) -> Option<i64> {
        self.drained.filter(|_| !self.in_run).map(|at| at.saturating_add(interval_ms))
    }
    /// When there may be something to issue although nothing happens before; `None` when nothing is due, or only on shards
    /// where a merge must end first.
    pub fn next_at(&self, throttling_ms: i64) -> Option<i64> {
        let at = |m: &Merge| self.issued.get(&m.ns).map_or(i64::MIN, |at| at.saturating_add(throttling_ms));
        self.due.iter().filter(|m| self.has_room(&m.shard)).map(at).min()
    }
}
