//! What the balancer does, from what it sees: pure functions and machines from statistics to actions.
//!
//! Two loops on the config server ask three policies (`sharding::balancer` performs what they say):
//!
//! ```text
//! main loop, in rounds     chunk selection   splits at the edges of zones
//!                          defragmentation   migrations, first choice of shards
//!                          chunk selection   migrations on the shards that are left
//! second loop, on signal   defragmentation   merges and measurements
//!                          auto-merger       merges of everything a shard may merge
//! ```
//!
//! A shard takes part in one migration at a time, as donor or recipient, over all collections of a round ([`Round`]), so at
//! most half as many migrations run as there are shards. What failed is passed over for a while ([`failures`]), so that
//! nothing that keeps failing holds up anything else.
//!
//! The scripts in `scripts/` show each behaviour with its numbers.

pub mod auto_merger;
pub mod chunk_selection;
pub mod defragmentation;
pub mod failures;
pub mod window;

pub use chunk_selection::{Policy, move_to_least, select, splits, violation};

use document::Document;
use std::collections::BTreeSet;

/// Shards further apart than this many maximum chunk sizes are balanced.
pub const IMBALANCE_FACTOR: i64 = 3;

/// One shard as every collection of a round sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShardView {
    pub name: String,
    pub draining: bool,
    pub zones: BTreeSet<String>,
    /// It holds as much as its `maxSize` allows, and receives nothing.
    pub full: bool,
}

/// A range of keys that belongs to a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneView {
    pub zone: String,
    pub min: Document,
    pub max: Document,
    pub min_key: Vec<u8>,
    pub max_key: Vec<u8>,
}

/// One chunk; its keys are the encoded bounds, which order as the bounds do.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkView {
    pub min: Document,
    pub max: Document,
    pub min_key: Vec<u8>,
    pub max_key: Vec<u8>,
    /// Index among the shards of the round.
    pub shard: usize,
    pub jumbo: bool,
    /// Index among the collection's zone ranges; `None` for a chunk that no single range holds.
    pub zone: Option<usize>,
}

/// One collection as the policy sees it: chunks in key order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionView {
    pub ns: String,
    pub max_chunk_bytes: i64,
    /// Bytes of the collection's documents that each shard owns; `None` where a shard did not say.
    pub bytes: Vec<Option<i64>>,
    /// By lower bound.
    pub zones: Vec<ZoneView>,
    pub chunks: Vec<ChunkView>,
    /// Neither `noBalance` nor a ban on migrations keeps the balancer away.
    pub balanced: bool,
    /// Jumbo chunks of draining shards and in wrong zones are moved as well (`attemptToBalanceJumboChunks`).
    pub move_jumbo: bool,
    /// The last round moved chunks of it without a failure: with thresholds by chunk counts, it goes on until the shards are even.
    pub under_way: bool,
}

/// Gives each chunk the zone range that holds all of it. Both are in key order.
pub fn assign_zones(chunks: &mut [ChunkView], zones: &[ZoneView]) {
    let mut at = 0;
    for chunk in chunks {
        while zones.get(at).is_some_and(|z| z.max_key <= chunk.min_key) {
            at += 1;
        }
        let holds = |z: &ZoneView| z.min_key <= chunk.min_key && chunk.max_key <= z.max_key;
        chunk.zone = zones.get(at).is_some_and(holds).then_some(at);
    }
}

/// Why a migration is made. The names are those of balancerCollectionStatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Draining,
    ZoneViolation,
    ChunksImbalance,
    DefragmentingChunks,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Reason::Draining => "draining",
            Reason::ZoneViolation => "zoneViolation",
            Reason::ChunksImbalance => "chunksImbalance",
            Reason::DefragmentingChunks => "defragmentingChunks",
        }
    }
}

/// A migration to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    pub ns: String,
    pub from: String,
    pub to: String,
    pub min: Document,
    /// `None`: the donor splits off about one chunk's size.
    pub max: Option<Document>,
    pub min_key: Vec<u8>,
    pub reason: Reason,
    pub force_jumbo: bool,
}

/// A chunk to split, at points within it.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    pub min: Document,
    pub max: Document,
    pub shard: usize,
    pub points: Vec<Document>,
}

/// How an action ended, as far as policies care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Worth the same attempt again: a network error, a step-down.
    Retriable,
    Failed,
}

/// The shards of one round, and which of them already take part in a migration.
pub struct Round<'a> {
    pub shards: &'a [ShardView],
    busy: Vec<bool>,
    free: usize,
}

impl<'a> Round<'a> {
    pub fn new(shards: &'a [ShardView]) -> Round<'a> {
        Round { shards, busy: vec![false; shards.len()], free: shards.len() }
    }
    pub fn is_free(&self, shard: usize) -> bool {
        self.busy.get(shard).is_some_and(|busy| !busy)
    }
    pub fn occupy(&mut self, shard: usize) {
        if let Some(busy) = self.busy.get_mut(shard).filter(|busy| !**busy) {
            *busy = true;
            self.free -= 1;
        }
    }
    /// No two shards are left for a migration.
    pub fn is_full(&self) -> bool {
        self.free < 2
    }
    /// The index of a shard by its name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.shards.iter().position(|s| s.name == name)
    }
}

#[cfg(test)]
mod scripts;
