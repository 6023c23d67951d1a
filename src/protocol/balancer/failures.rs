//! What failed lately, and is passed over for a while.
//!
//! A migration fails for a reason that nobody names: its chunk, its collection, the donor or the recipient. So all four
//! are remembered. A chunk rests after its first failure; a collection or a side of a shard after several in a row, since
//! those usually fail through no fault of theirs. Each further failure doubles the rest; a success ends it.
//!
//! Blame stays where it is known to belong: a chunk that has failed before is held against neither its collection nor its
//! donor, and one end of a migration that has failed several times in a row is held against it, and not the other end.

use super::Move;
use std::collections::BTreeMap;

/// The rest after the first failure that counts, in milliseconds.
pub const REST_MS_MIN: i64 = 1000;
/// The longest rest of a chunk, in milliseconds.
pub const REST_MS_MAX: i64 = 10 * 60 * 1000;
/// That of anything larger, which may be innocent.
pub const REST_MS_MAX_SHARED: i64 = 60 * 1000;
/// So many failures in a row, of whatever chunks, make a collection or a side of a shard rest.
const FAILURES_BEFORE_REST: u32 = 3;
/// Chunks remembered; beyond that those forget first whose rest is over.
const CHUNKS_MAX: usize = 10_000;

/// Failures in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Streak {
    failures: u32,
    rests_until: i64,
}

impl Streak {
    /// The first `free` failures cost nothing.
    fn failed(&mut self, free: u32, rest_ms_max: i64, now: i64) {
        self.failures = self.failures.saturating_add(1);
        if self.failures > free {
            let doublings = (self.failures - free - 1).min(20);
            self.rests_until = now + (REST_MS_MIN << doublings).min(rest_ms_max);
        }
    }
    fn shared_failed(&mut self, now: i64) {
        self.failed(FAILURES_BEFORE_REST - 1, REST_MS_MAX_SHARED, now);
    }
    fn rests(&self, now: i64) -> bool {
        now < self.rests_until
    }
}

/// What rests after failures of its own, each of which doubles the rest, by name.
#[derive(Debug, Default)]
pub struct Rests(BTreeMap<String, Streak>);

impl Rests {
    /// Something failed at `now`, in milliseconds.
    pub fn failed(&mut self, name: &str, now: i64) {
        let streak = self.0.entry(name.to_string()).or_default();
        // What was under way with it has failed for the same reason.
        if !streak.rests(now) {
            streak.failed(0, REST_MS_MAX_SHARED, now);
        }
    }
    pub fn succeeded(&mut self, name: &str) {
        self.0.remove(name);
    }
    /// Whether it failed last.
    pub fn has_failed(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
    pub fn rests(&self, name: &str, now: i64) -> bool {
        self.0.get(name).is_some_and(|s| s.rests(now))
    }
    /// When the next rest ends.
    pub fn next_end(&self, now: i64) -> Option<i64> {
        self.0.values().map(|s| s.rests_until).filter(|at| *at > now).min()
    }
}

/// The memory of one balancer.
#[derive(Debug, Default)]
pub struct Failures {
    chunks: BTreeMap<(String, Vec<u8>), Streak>,
    collections: BTreeMap<String, Streak>,
    donors: BTreeMap<String, Streak>,
    recipients: BTreeMap<String, Streak>,
}

impl Failures {
    /// A migration failed at `now`, in milliseconds.
    pub fn failed(&mut self, m: &Move, now: i64) {
        if self.chunks.len() >= CHUNKS_MAX {
            self.chunks.retain(|_, streak| streak.rests(now));
        }
        let chunk = self.chunks.entry((m.ns.clone(), m.min_key.clone())).or_default();
        let first = chunk.failures == 0;
        chunk.failed(0, REST_MS_MAX, now);
        let known = |of: &BTreeMap<String, Streak>, shard: &str| {
            of.get(shard).is_some_and(|s| s.failures >= FAILURES_BEFORE_REST)
        };
        let (donor_known, recipient_known) = (known(&self.donors, &m.from), known(&self.recipients, &m.to));
        if !donor_known || recipient_known {
            self.recipients.entry(m.to.clone()).or_default().shared_failed(now);
        }
        if first && !recipient_known {
            self.donors.entry(m.from.clone()).or_default().shared_failed(now);
            if !donor_known {
                self.collections.entry(m.ns.clone()).or_default().shared_failed(now);
            }
        }
    }
    /// A migration was made: neither its collection nor its shards are to blame for what failed before.
    pub fn succeeded(&mut self, m: &Move) {
        self.chunks.remove(&(m.ns.clone(), m.min_key.clone()));
        self.collections.remove(&m.ns);
        self.donors.remove(&m.from);
        self.recipients.remove(&m.to);
    }
    pub fn chunk_rests(&self, ns: &str, min_key: &[u8], now: i64) -> bool {
        // Nearly always there is nothing to look up, and no key to build.
        !self.chunks.is_empty()
            && self.chunks.get(&(ns.to_string(), min_key.to_vec())).is_some_and(|s| s.rests(now))
    }
    pub fn collection_rests(&self, ns: &str, now: i64) -> bool {
        self.collections.get(ns).is_some_and(|s| s.rests(now))
    }
    pub fn donor_rests(&self, shard: &str, now: i64) -> bool {
        self.donors.get(shard).is_some_and(|s| s.rests(now))
    }
    pub fn recipient_rests(&self, shard: &str, now: i64) -> bool {
        self.recipients.get(shard).is_some_and(|s| s.rests(now))
    }
}
