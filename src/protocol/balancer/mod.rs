//! What the balancer does, from what it sees: pure functions from statistics to migrations.
//!
//! For each collection, in this order:
//! 1. a draining shard gives its chunks to the least loaded shard that may have them;
//! 2. a chunk in the range of a zone that its shard lacks goes to the least loaded shard of the zone;
//! 3. where the most and the least loaded shard of a zone are at least [`IMBALANCE_FACTOR`] x the maximum chunk size
//!    apart, the most loaded gives a range of about one chunk's size.
//!
//! A shard takes part in one migration at a time, as donor or recipient, over all collections of a round.
//!
//! Load is bytes of documents owned. Chunks marked jumbo stay unless told otherwise; a collection with `noBalance` or
//! without permission to migrate is drained but not balanced.

use document::Document;
use std::collections::BTreeSet;

/// Shards further apart than this many maximum chunk sizes are balanced.
pub const IMBALANCE_FACTOR: i64 = 3;

/// One shard as the policy sees it, for one collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShardLoad {
    pub shard: String,
    pub draining: bool,
    pub zones: BTreeSet<String>,
    /// Bytes of the collection's documents it owns.
    pub bytes: i64,
}

/// One chunk as the policy sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkView {
    pub min: Document,
    pub max: Document,
    pub shard: String,
    pub jumbo: bool,
    /// The zone whose range holds the chunk; `None` outside all ranges.
    pub zone: Option<String>,
}

/// One collection as the policy sees it: chunks in key order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionView {
    pub ns: String,
    pub max_chunk_bytes: i64,
    pub shards: Vec<ShardLoad>,
    pub chunks: Vec<ChunkView>,
    /// `noBalance` is not set and migrations are allowed.
    pub balanced: bool,
    /// Jumbo chunks of draining shards are moved as well (`attemptToBalanceJumboChunks`).
    pub move_jumbo: bool,
}

/// Why a migration is made. The names are those of balancerCollectionStatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Draining,
    ZoneViolation,
    ChunksImbalance,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Reason::Draining => "draining",
            Reason::ZoneViolation => "zoneViolation",
            Reason::ChunksImbalance => "chunksImbalance",
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
    pub reason: Reason,
    pub force_jumbo: bool,
}

/// The migrations of one round for one collection. `busy` holds the shards that take part in one already, and gets those
/// chosen here.
pub fn select(collection: &CollectionView, busy: &mut BTreeSet<String>) -> Vec<Move> {
    let mut loads = collection.shards.clone();
    let mut moves = Vec::new();
    drain(collection, &mut loads, busy, &mut moves);
    if collection.balanced {
        enforce_zones(collection, &mut loads, busy, &mut moves);
        for zone in zones_of(collection) {
            while let Some(one) = even_out(collection, zone.as_deref(), &mut loads, busy) {
                moves.push(one);
            }
        }
    }
    moves
}

/// The first thing that keeps the collection from being balanced; `None` when it is.
pub fn violation(collection: &CollectionView) -> Option<Reason> {
    select(collection, &mut BTreeSet::new()).first().map(|m| m.reason).or_else(|| {
        // What cannot be moved (jumbo) is still a violation.
        let draining = |c: &ChunkView| collection.shards.iter().any(|s| s.shard == c.shard && s.draining);
        collection.chunks.iter().any(draining).then_some(Reason::Draining)
    })
}

fn drain(
    collection: &CollectionView,
    loads: &mut [ShardLoad],
    busy: &mut BTreeSet<String>,
    moves: &mut Vec<Move>,
) {
    let donors: Vec<String> =
        loads.iter().filter(|s| s.draining && !busy.contains(&s.shard)).map(|s| s.shard.clone()).collect();
    for donor in donors {
        let own = collection.chunks.iter().filter(|c| c.shard == donor);
        for chunk in own.filter(|c| !c.jumbo || collection.move_jumbo) {
            let Some(to) = least_loaded(loads, busy, &donor, chunk.zone.as_deref()) else { continue };
            take(loads, busy, &donor, &to, collection.max_chunk_bytes);
            moves.push(of_chunk(collection, chunk, to, Reason::Draining));
            break;
        }
    }
}

fn enforce_zones(
    collection: &CollectionView,
    loads: &mut [ShardLoad],
    busy: &mut BTreeSet<String>,
    moves: &mut Vec<Move>,
) {
    for chunk in &collection.chunks {
        let Some(zone) = &chunk.zone else { continue };
        let fits = loads.iter().any(|s| s.shard == chunk.shard && s.zones.contains(zone));
        if fits || busy.contains(&chunk.shard) || (chunk.jumbo && !collection.move_jumbo) {
            continue;
        }
        if let Some(to) = least_loaded(loads, busy, &chunk.shard, Some(zone)) {
            take(loads, busy, &chunk.shard, &to, collection.max_chunk_bytes);
            moves.push(of_chunk(collection, chunk, to, Reason::ZoneViolation));
        }
    }
}

fn zones_of(collection: &CollectionView) -> BTreeSet<Option<String>> {
    collection.chunks.iter().map(|c| c.zone.clone()).collect()
}

fn even_out(
    collection: &CollectionView,
    zone: Option<&str>,
    loads: &mut [ShardLoad],
    busy: &mut BTreeSet<String>,
) -> Option<Move> {
    let threshold = collection.max_chunk_bytes.saturating_mul(IMBALANCE_FACTOR);
    let member = |s: &&ShardLoad| !s.draining && zone.is_none_or(|z| s.zones.contains(z));
    let members: Vec<&ShardLoad> = loads.iter().filter(member).collect();
    let total: i64 = members.iter().map(|s| s.bytes).sum();
    let ideal = total / members.len().max(1) as i64;
    let free = || members.iter().filter(|s| !busy.contains(&s.shard));
    let receiver = free().min_by_key(|s| (s.bytes, &s.shard))?.shard.clone();
    let low = members.iter().find(|s| s.shard == receiver)?.bytes;
    if low > ideal {
        return None;
    }
    // From the most loaded down, the first that has a chunk to give.
    let mut donors: Vec<&&ShardLoad> = free().filter(|s| s.shard != receiver).collect();
    donors.sort_by_key(|s| (-s.bytes, s.shard.clone()));
    for donor in donors {
        if donor.bytes < ideal || donor.bytes.saturating_sub(low) < threshold {
            return None;
        }
        let chunk = collection
            .chunks
            .iter()
            .find(|c| c.shard == donor.shard && c.zone.as_deref() == zone && !c.jumbo);
        if let Some(chunk) = chunk {
            let from = donor.shard.clone();
            take(loads, busy, &from, &receiver, collection.max_chunk_bytes);
            return Some(Move {
                ns: collection.ns.clone(),
                from,
                to: receiver,
                min: chunk.min.clone(),
                max: None,
                reason: Reason::ChunksImbalance,
                force_jumbo: false,
            });
        }
    }
    None
}

fn of_chunk(collection: &CollectionView, chunk: &ChunkView, to: String, reason: Reason) -> Move {
    // A chunk is moved in parts of the usual size, unless it cannot be split.
    Move {
        ns: collection.ns.clone(),
        from: chunk.shard.clone(),
        to,
        min: chunk.min.clone(),
        max: chunk.jumbo.then(|| chunk.max.clone()),
        reason,
        force_jumbo: chunk.jumbo,
    }
}

/// The shard with the least bytes that is free, not draining, and of the zone.
fn least_loaded(
    loads: &[ShardLoad],
    busy: &BTreeSet<String>,
    from: &str,
    zone: Option<&str>,
) -> Option<String> {
    loads
        .iter()
        .filter(|s| s.shard != from && !s.draining && !busy.contains(&s.shard))
        .filter(|s| zone.is_none_or(|z| s.zones.contains(z)))
        .min_by_key(|s| (s.bytes, &s.shard))
        .map(|s| s.shard.clone())
}

fn take(loads: &mut [ShardLoad], busy: &mut BTreeSet<String>, from: &str, to: &str, bytes: i64) {
    for s in loads {
        if s.shard == from {
            s.bytes = s.bytes.saturating_sub(bytes);
        } else if s.shard == to {
            s.bytes = s.bytes.saturating_add(bytes);
        }
    }
    busy.insert(from.to_string());
    busy.insert(to.to_string());
}

#[cfg(test)]
mod tests;
