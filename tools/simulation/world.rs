//! A cluster of numbers: shards, collections, chunks with bytes spread evenly over their keys. The policies see it as they see
//! a real one; their migrations are made at once, and fail where the world says so.

use document::{Document, doc};
use protocol::balancer::failures::Failures;
use protocol::balancer::{ChunkView, CollectionView, Move, Policy, Round, ShardView, select};

/// The maximum size of a chunk in this world.
pub(crate) const CHUNK_BYTES: i64 = 128 << 20;
/// Time between two rounds, in milliseconds.
const ROUND_MS: i64 = 1000;

pub(crate) struct World {
    pub shards: Vec<ShardView>,
    pub collections: Vec<CollectionView>,
    /// Bytes of each chunk, as `collections` has them.
    pub sizes: Vec<Vec<i64>>,
    /// A shard that fails every migration to or from it.
    pub broken: Option<usize>,
    pub failures: Failures,
    pub now_ms: i64,
    pub moves: usize,
    pub failed: usize,
}

pub(crate) fn key(at: u64) -> (Document, Vec<u8>) {
    (doc! { "x": at as i64 }, at.to_be_bytes().to_vec())
}

fn position(key: &[u8]) -> u64 {
    key.try_into().map(u64::from_be_bytes).unwrap_or(0)
}

impl World {
    pub(crate) fn new(shards: usize) -> World {
        let shard = |i| ShardView { name: format!("shard{i:04}"), ..ShardView::default() };
        World {
            shards: (0..shards).map(shard).collect(),
            collections: Vec::new(),
            sizes: Vec::new(),
            broken: None,
            failures: Failures::default(),
            now_ms: 0,
            moves: 0,
            failed: 0,
        }
    }

    /// Adds a collection whose i-th chunk has `bytes(i)` and lies on `owner(i)`.
    pub(crate) fn add(
        &mut self,
        chunks: usize,
        bytes: impl Fn(usize) -> i64,
        owner: impl Fn(usize) -> usize,
    ) {
        let width = (i64::MAX as u64) / chunks as u64;
        let view = |i: usize| {
            let ((min, min_key), (max, max_key)) = (key(i as u64 * width), key((i as u64 + 1) * width));
            ChunkView { min, max, min_key, max_key, shard: owner(i), jumbo: false, zone: None }
        };
        self.sizes.push((0..chunks).map(&bytes).collect());
        let mut owned = vec![Some(0); self.shards.len()];
        for i in 0..chunks {
            owned[owner(i)] = owned[owner(i)].map(|b: i64| b + bytes(i));
        }
        self.collections.push(CollectionView {
            ns: format!("d.c{:05}", self.collections.len()),
            max_chunk_bytes: CHUNK_BYTES,
            bytes: owned,
            chunks: (0..chunks).map(view).collect(),
            balanced: true,
            ..CollectionView::default()
        });
    }

    /// The migrations of one round.
    pub(crate) fn decide(&self) -> Vec<Move> {
        let mut round = Round::new(&self.shards);
        let mut moves = Vec::new();
        for c in &self.collections {
            moves.extend(select(c, Policy::DataSize, &mut round, &self.failures, self.now_ms));
        }
        moves
    }

    /// Decides a round and makes its migrations; returns how many were tried.
    pub(crate) fn round(&mut self) -> usize {
        let moves = self.decide();
        for m in &moves {
            let index = |name: &str| self.shards.iter().position(|s| s.name == name).unwrap_or(0);
            let (from, to) = (index(&m.from), index(&m.to));
            if self.broken == Some(from) || self.broken == Some(to) {
                self.failures.failed(m, self.now_ms);
                self.failed += 1;
            } else {
                self.make(m, to);
                self.failures.succeeded(m);
                self.moves += 1;
            }
        }
        self.now_ms += ROUND_MS;
        moves.len()
    }

    /// Moves a chunk, or as much of its lower end as one migration takes.
    fn make(&mut self, m: &Move, to: usize) {
        let Some(at) = self.collections.iter().position(|c| c.ns == m.ns) else { return };
        let (c, sizes) = (&mut self.collections[at], &mut self.sizes[at]);
        let Ok(i) = c.chunks.binary_search_by(|chunk| chunk.min_key.cmp(&m.min_key)) else { return };
        let taken = sizes[i].min(CHUNK_BYTES);
        let from = c.chunks[i].shard;
        if taken < sizes[i] {
            let (low, high) = (position(&c.chunks[i].min_key), position(&c.chunks[i].max_key));
            let cut = low + ((high - low) as f64 * (taken as f64 / sizes[i] as f64)) as u64;
            let (bound, bound_key) = key(cut.clamp(low + 1, high - 1));
            let mut rest = c.chunks[i].clone();
            (rest.min, rest.min_key) = (bound.clone(), bound_key.clone());
            (c.chunks[i].max, c.chunks[i].max_key) = (bound, bound_key);
            c.chunks.insert(i + 1, rest);
            sizes.insert(i + 1, sizes[i] - taken);
            sizes[i] = taken;
        }
        c.chunks[i].shard = to;
        for (shard, change) in [(from, -taken), (to, taken)] {
            c.bytes[shard] = c.bytes[shard].map(|b| b + change);
        }
    }

    /// The difference between the fullest and the emptiest of the shards that `counts`, in chunk sizes.
    pub(crate) fn imbalance(&self, counts: impl Fn(usize) -> bool) -> f64 {
        let c = &self.collections[0];
        let known = || c.bytes.iter().enumerate().filter(|(i, _)| counts(*i)).filter_map(|(_, b)| *b);
        let (low, high) = (known().min().unwrap_or(0), known().max().unwrap_or(0));
        (high - low) as f64 / CHUNK_BYTES as f64
    }
}

/// The fewest migrations of one chunk size each after which no two loads are three chunk sizes apart; loads are in chunk
/// sizes. Whatever window the loads end in, what lies above it must leave, and what is missing below it must come.
pub(crate) fn fewest_moves(loads: &[f64]) -> usize {
    let highest = loads.iter().copied().fold(0.0, f64::max) as usize;
    let needed = |low: usize| {
        let excess: f64 = loads.iter().map(|l| (l - (low as f64 + 3.0)).max(0.0).ceil()).sum();
        let missing: f64 = loads.iter().map(|l| (low as f64 - l).max(0.0).ceil()).sum();
        excess.max(missing) as usize
    };
    (0..=highest).map(needed).min().unwrap_or(0)
}
