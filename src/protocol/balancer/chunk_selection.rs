//! The chunk selection policy: splits at the edges of zones, and the migrations that keep a collection even.
//!
//! For each collection, in this order:
//! 1. a draining shard gives its chunks to the least loaded shard that may have them;
//! 2. a chunk in the range of a zone that its shard lacks goes to the least loaded shard of the zone;
//! 3. where the most and the least loaded shard of a zone are too far apart, the most loaded gives.
//!
//! A collection with `noBalance` or without permission to migrate is left alone altogether, draining included, as on the
//! real server.
//!
//! Load is bytes of documents owned, and a migration takes about one chunk's size from the lower end of a chunk. The older
//! generations counted chunks and moved whole ones ([`Policy`]); draining and zones are the same there.
//!
//! One pass is linear in chunks and shards: a collection has up to a million of the ones, and a round up to ten thousand
//! collections on a thousand of the others.

use super::failures::Failures;
use super::{CollectionView, IMBALANCE_FACTOR, Move, Reason, Round, Split};
use std::collections::BTreeSet;

/// What is evened out, and how large a difference is left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Bytes; a difference below three chunk sizes is left.
    #[default]
    DataSize,
    /// Chunks; a shard gives when it has over one more than the ideal, the mean rounded up.
    IdealChunkCount,
    /// Chunks; the difference that starts balancing grows with their number (2, 4, 8), and balancing ends below 2.
    ChunkCountThresholds,
}

impl Policy {
    /// The values of the parameter `balancerPolicy`.
    pub const NAMES: &'static [&'static str] = &["dataSize", "idealChunkCount", "chunkCountThresholds"];

    pub fn parse(name: &str) -> Option<Policy> {
        match name {
            "dataSize" => Some(Policy::DataSize),
            "idealChunkCount" => Some(Policy::IdealChunkCount),
            "chunkCountThresholds" => Some(Policy::ChunkCountThresholds),
            _ => None,
        }
    }
    /// Whether `low` and `high` are far enough apart; `chunks` and `ideal` are those of the zone.
    fn is_uneven(self, c: &CollectionView, chunks: i64, ideal: i64, high: i64, low: i64) -> bool {
        match self {
            Policy::DataSize => {
                let threshold = c.max_chunk_bytes.saturating_mul(IMBALANCE_FACTOR);
                low <= ideal && high >= ideal && high.saturating_sub(low) >= threshold
            }
            Policy::IdealChunkCount => high - ideal > 1 && low < ideal,
            Policy::ChunkCountThresholds => high - low >= if c.under_way { 2 } else { threshold_of(chunks) },
        }
    }
}

/// The difference in chunks that starts balancing.
fn threshold_of(chunks: i64) -> i64 {
    match chunks {
        ..20 => 2,
        20..80 => 4,
        _ => 8,
    }
}

/// The splits that leave every chunk in one zone's range or in none.
pub fn splits(c: &CollectionView) -> Vec<Split> {
    let mut splits: Vec<Split> = Vec::new();
    if !c.balanced {
        return splits;
    }
    let edges = c.zones.iter().flat_map(|z| [(&z.min_key, &z.min), (&z.max_key, &z.max)]);
    for (key, edge) in edges {
        let at = c.chunks.partition_point(|chunk| chunk.max_key <= *key);
        let Some(chunk) = c.chunks.get(at).filter(|chunk| chunk.min_key < *key) else { continue };
        match splits.last_mut().filter(|s| s.min == chunk.min) {
            // The end of one range may be the beginning of the next.
            Some(same) if same.points.last() != Some(edge) => same.points.push(edge.clone()),
            Some(_) => {}
            None => splits.push(Split {
                min: chunk.min.clone(),
                max: chunk.max.clone(),
                shard: chunk.shard,
                points: vec![edge.clone()],
            }),
        }
    }
    splits
}

/// The migrations of one round for one collection. `round` holds the shards that take part in one already, and gets those
/// chosen here.
pub fn select(
    c: &CollectionView,
    policy: Policy,
    round: &mut Round<'_>,
    failures: &Failures,
    now_ms: i64,
) -> Vec<Move> {
    if !c.balanced || round.is_full() || failures.collection_rests(&c.ns, now_ms) {
        return Vec::new();
    }
    let mut selection = Selection::new(c, policy, round, failures, now_ms);
    selection.drain();
    selection.enforce_zones();
    selection.even_out();
    selection.moves
}

/// The first thing that keeps the collection from being balanced; `None` when it is.
pub fn violation(c: &CollectionView, policy: Policy, shards: &[super::ShardView]) -> Option<Reason> {
    let draining = |i: usize| shards.get(i).is_some_and(|s| s.draining);
    if c.chunks.iter().any(|chunk| draining(chunk.shard)) {
        return Some(Reason::Draining);
    }
    if !c.balanced {
        return None;
    }
    let misplaced = |chunk: &super::ChunkView| {
        let zone = chunk.zone.and_then(|at| c.zones.get(at));
        zone.is_some_and(|z| shards.get(chunk.shard).is_some_and(|s| !s.zones.contains(&z.zone)))
    };
    if c.chunks.iter().any(misplaced) || !splits(c).is_empty() {
        return Some(Reason::ZoneViolation);
    }
    let moves = select(c, policy, &mut Round::new(shards), &Failures::default(), 0);
    moves.first().map(|m| m.reason)
}

/// The move of one chunk to the shard of its zone with the fewest chunks, where that has fewer than its own shard.
pub fn move_to_least(c: &CollectionView, chunk: usize, shards: &[super::ShardView]) -> Option<Move> {
    let (mut round, failures) = (Round::new(shards), Failures::default());
    let mut selection = Selection::new(c, Policy::IdealChunkCount, &mut round, &failures, 0);
    let from = c.chunks.get(chunk)?.shard;
    let to = selection.least_loaded(from, selection.zone_name(chunk))?;
    if selection.loads[to] < selection.loads[from] {
        selection.take(chunk, to, Reason::ChunksImbalance);
    }
    selection.moves.pop()
}

/// The choices for one collection.
struct Selection<'c, 'r, 's> {
    c: &'c CollectionView,
    policy: Policy,
    round: &'r mut Round<'s>,
    failures: &'c Failures,
    now_ms: i64,
    /// What each shard has, by its index: bytes, or chunks.
    loads: Vec<Option<i64>>,
    owned: Owned,
    moves: Vec<Move>,
}

/// Indexes of chunks, by shard.
struct Owned {
    order: Vec<usize>,
    /// Where each shard's begin; one more than there are shards.
    starts: Vec<usize>,
}

impl Owned {
    fn new(c: &CollectionView, shards: usize) -> Owned {
        let mut starts = vec![0; shards + 1];
        for chunk in &c.chunks {
            starts[chunk.shard.min(shards.saturating_sub(1)) + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut order = vec![0; c.chunks.len()];
        for (i, chunk) in c.chunks.iter().enumerate() {
            let at = &mut next[chunk.shard.min(shards.saturating_sub(1))];
            order[*at] = i;
            *at += 1;
        }
        Owned { order, starts }
    }
    fn of(&self, shard: usize) -> &[usize] {
        match (self.starts.get(shard), self.starts.get(shard + 1)) {
            (Some(from), Some(to)) => &self.order[*from..*to],
            _ => &[],
        }
    }
}

impl<'c, 'r, 's> Selection<'c, 'r, 's> {
    fn new(
        c: &'c CollectionView,
        policy: Policy,
        round: &'r mut Round<'s>,
        failures: &'c Failures,
        now_ms: i64,
    ) -> Self {
        let owned = Owned::new(c, round.shards.len());
        let mut loads = c.bytes.clone();
        loads.resize(round.shards.len(), None);
        if policy != Policy::DataSize {
            // What a shard did not say makes it as unknown as before.
            loads = loads.iter().enumerate().map(|(i, l)| l.map(|_| owned.of(i).len() as i64)).collect();
        }
        Selection { c, policy, round, failures, now_ms, loads, owned, moves: Vec::new() }
    }

    fn zone_name(&self, chunk: usize) -> Option<&'c str> {
        self.c.chunks[chunk].zone.map(|at| self.c.zones[at].zone.as_str())
    }
    fn may_give(&self, shard: usize) -> bool {
        self.round.is_free(shard)
            && self.loads[shard].is_some()
            && !self.failures.donor_rests(&self.round.shards[shard].name, self.now_ms)
    }
    fn may_receive(&self, shard: usize) -> bool {
        let view = &self.round.shards[shard];
        self.round.is_free(shard) && self.loads[shard].is_some() && !view.draining && self.is_open(shard)
    }
    /// Neither full nor passed over as a recipient.
    fn is_open(&self, shard: usize) -> bool {
        let view = &self.round.shards[shard];
        !view.full && !self.failures.recipient_rests(&view.name, self.now_ms)
    }
    fn is_of_zone(&self, shard: usize, zone: Option<&str>) -> bool {
        zone.is_none_or(|z| self.round.shards[shard].zones.contains(z))
    }
    fn rests(&self, chunk: usize) -> bool {
        self.failures.chunk_rests(&self.c.ns, &self.c.chunks[chunk].min_key, self.now_ms)
    }
    /// The shard with the least that may receive chunks of the zone.
    fn least_loaded(&self, from: usize, zone: Option<&str>) -> Option<usize> {
        (0..self.round.shards.len())
            .filter(|s| *s != from && self.may_receive(*s) && self.is_of_zone(*s, zone))
            .min_by_key(|s| self.loads[*s])
    }

    fn drain(&mut self) {
        let donors: Vec<usize> =
            (0..self.round.shards.len()).filter(|s| self.round.shards[*s].draining).collect();
        for donor in donors {
            if self.owned.of(donor).is_empty() || !self.may_give(donor) {
                continue;
            }
            let found = self.owned.of(donor).iter().find_map(|i| {
                let stays = (self.c.chunks[*i].jumbo && !self.c.move_jumbo) || self.rests(*i);
                let to = if stays { None } else { self.least_loaded(donor, self.zone_name(*i)) };
                to.map(|to| (*i, to))
            });
            if let Some((chunk, to)) = found {
                self.take(chunk, to, Reason::Draining);
            }
        }
    }

    fn enforce_zones(&mut self) {
        if self.c.zones.is_empty() {
            return;
        }
        // Zones that no free shard belongs to: nothing frees one within a round.
        let mut hopeless: BTreeSet<&str> = BTreeSet::new();
        for i in 0..self.c.chunks.len() {
            let chunk = &self.c.chunks[i];
            let Some(zone) = self.zone_name(i).filter(|z| !hopeless.contains(z)) else { continue };
            let donor = chunk.shard;
            let stays = self.is_of_zone(donor, Some(zone)) || self.round.shards[donor].draining;
            if stays || !self.may_give(donor) || (chunk.jumbo && !self.c.move_jumbo) || self.rests(i) {
                continue;
            }
            match self.least_loaded(donor, Some(zone)) {
                Some(to) => self.take(i, to, Reason::ZoneViolation),
                None => {
                    hopeless.insert(zone);
                }
            }
        }
    }

    fn even_out(&mut self) {
        let named: BTreeSet<&str> = self.c.zones.iter().map(|z| z.zone.as_str()).collect();
        for zone in std::iter::once(None).chain(named.into_iter().map(Some)) {
            self.even_out_zone(zone);
        }
    }

    /// Pairs the most loaded shard with the least loaded one, the second most with the second least, and so on.
    fn even_out_zone(&mut self, zone: Option<&'c str>) {
        let loads = self.loads_of_zone(zone);
        let members: Vec<usize> = (0..loads.len())
            .filter(|s| loads[*s].is_some() && !self.round.shards[*s].draining && self.is_of_zone(*s, zone))
            .collect();
        // Shards that can have no more do not lower what the others may reach.
        let reachable: Vec<usize> = members.iter().copied().filter(|s| self.is_open(*s)).collect();
        let total: i64 = reachable.iter().filter_map(|s| loads[*s]).fold(0, i64::saturating_add);
        let count = reachable.len().max(1) as i64;
        let ideal = match self.policy {
            Policy::DataSize => total / count,
            _ => (total + count - 1) / count,
        };
        let load = |s: usize| loads[s].unwrap_or(0);
        let mut free: Vec<usize> = members.into_iter().filter(|s| self.round.is_free(*s)).collect();
        free.sort_by_key(|s| (load(*s), *s));
        let (mut low, mut high) = (0, free.len().saturating_sub(1));
        while low < high {
            let (to, from) = (free[low], free[high]);
            if !self.policy.is_uneven(self.c, total, ideal, load(from), load(to)) {
                return;
            }
            if !self.may_receive(to) {
                low += 1;
                continue;
            }
            let gives = self.may_give(from).then(|| self.first_to_give(from, zone)).flatten();
            if let Some(chunk) = gives {
                self.take(chunk, to, Reason::ChunksImbalance);
                low += 1;
            }
            high -= 1;
        }
    }

    /// Bytes are known of the whole collection only; chunks are counted in the zone.
    fn loads_of_zone(&self, zone: Option<&str>) -> Vec<Option<i64>> {
        if self.policy == Policy::DataSize {
            return self.loads.clone();
        }
        let mut counts: Vec<Option<i64>> = self.loads.iter().map(|l| l.map(|_| 0)).collect();
        for (i, chunk) in self.c.chunks.iter().enumerate() {
            if self.zone_name(i) == zone
                && let Some(Some(n)) = counts.get_mut(chunk.shard)
            {
                *n += 1;
            }
        }
        counts
    }

    fn first_to_give(&self, donor: usize, zone: Option<&str>) -> Option<usize> {
        let mut own = self.owned.of(donor).iter().copied();
        own.find(|i| !self.c.chunks[*i].jumbo && self.zone_name(*i) == zone && !self.rests(*i))
    }

    fn take(&mut self, chunk: usize, to: usize, reason: Reason) {
        let view = &self.c.chunks[chunk];
        // Bytes are moved in parts of the usual size; what cannot be split, and what is counted, as a whole.
        let whole = view.jumbo || self.policy != Policy::DataSize;
        let unit = if self.policy == Policy::DataSize { self.c.max_chunk_bytes } else { 1 };
        let name = |s: usize| self.round.shards[s].name.clone();
        self.moves.push(Move {
            ns: self.c.ns.clone(),
            from: name(view.shard),
            to: name(to),
            min: view.min.clone(),
            max: whole.then(|| view.max.clone()),
            min_key: view.min_key.clone(),
            reason,
            force_jumbo: view.jumbo,
        });
        for (shard, change) in [(view.shard, -unit), (to, unit)] {
            self.loads[shard] = self.loads[shard].map(|l| l.saturating_add(change));
            self.round.occupy(shard);
        }
    }
}
