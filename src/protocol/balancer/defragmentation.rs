//! The defragmentation policy: as few chunks as the placement allows, in three phases.
//!
//! ```text
//! mergeAndMeasureChunks   each run of neighbours on one shard becomes one chunk, whose size is measured
//! moveAndMergeChunks      a small chunk moves to the shard of a neighbour and is merged with it, until none can
//! mergeChunks             what has become neighbours meanwhile is merged
//! ```
//!
//! A machine runs one phase. The driver begins it with the catalog's chunks, performs what [`Defragmentation::next_action`]
//! and [`Defragmentation::migrations`] say, reports how it ended, and persists the phase that [`Defragmentation::outcome`]
//! names before it begins that one with the chunks as they are then. So a restart loses nothing but work under way: sizes
//! stand with the chunks, and a run that was not merged is found again.
//!
//! Neighbours are never merged across the edge of a zone's range, which the balancer would split again, nor with a jumbo
//! chunk, which would lose its mark. Nor does a chunk go from a shard of its zone to one outside for a neighbour.
//!
//! A retriable failure repeats the action. Any other begins a phase anew: the first after a failed move, since others change
//! the chunks; else the same.

use super::failures::Failures;
use super::{ChunkView, Outcome, Round, ShardView, ZoneView};
use document::Document;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A chunk below this part of the maximum size is small.
const SMALL_PERCENT: i64 = 25;

/// The values of `defragmentationPhase` in config.collections. DO NOT CHANGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    MergeAndMeasureChunks,
    MoveAndMergeChunks,
    MergeChunks,
    /// Only what it left remains to be removed.
    Finished,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Phase::MergeAndMeasureChunks => "mergeAndMeasureChunks",
            Phase::MoveAndMergeChunks => "moveAndMergeChunks",
            Phase::MergeChunks => "mergeChunks",
            Phase::Finished => "finished",
        }
    }
    pub fn parse(name: &str) -> Option<Phase> {
        let all =
            [Phase::MergeAndMeasureChunks, Phase::MoveAndMergeChunks, Phase::MergeChunks, Phase::Finished];
        all.into_iter().find(|p| p.name() == name)
    }
}

/// Names a chunk of one machine.
pub type ChunkId = usize;

/// What the second loop is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Neighbours from `min` to `max`, all on the shard, become one chunk.
    Merge { chunk: ChunkId, shard: usize, min: Document, max: Document },
    /// The size of the range is asked for and kept with its chunk.
    Measure { chunk: ChunkId, shard: usize, min: Document, max: Document },
}

/// A whole chunk to move next to a neighbour.
#[derive(Clone, Debug, PartialEq)]
pub struct Migration {
    pub chunk: ChunkId,
    pub from: usize,
    pub to: usize,
    pub min: Document,
    pub max: Document,
    pub min_key: Vec<u8>,
}

/// A chunk, and the neighbours it is linked with.
#[derive(Clone, Debug)]
struct Link {
    chunk: ChunkView,
    bytes: Option<i64>,
    before: Option<ChunkId>,
    after: Option<ChunkId>,
    /// Something is under way that concerns it.
    busy: bool,
    /// It has more than a migration takes: it stays where it is in this phase.
    too_big: bool,
}

/// Work of the second loop.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// From this chunk to that one.
    Merge(ChunkId, ChunkId),
    Measure(ChunkId),
}

/// One phase of one collection.
#[derive(Debug)]
pub struct Defragmentation {
    phase: Phase,
    /// Below this a chunk is small.
    small_bytes: i64,
    /// The zones that the chunks' indexes mean.
    zones: Vec<ZoneView>,
    links: Vec<Link>,
    steps: VecDeque<Step>,
    /// Actions handed out, by the first chunk they concern.
    running: BTreeMap<ChunkId, Step>,
    /// Small chunks that may still find a neighbour, the smallest first.
    small: BTreeSet<(i64, ChunkId)>,
    /// Migrations handed out, with their recipients.
    moving: BTreeMap<ChunkId, usize>,
    failed: bool,
}

impl Defragmentation {
    /// Begins a phase over a collection's chunks, each with its measured size, and its zones. Moving needs every size: where
    /// one is missing, the first phase begins instead.
    pub fn begin(
        phase: Phase,
        chunks: Vec<(ChunkView, Option<i64>)>,
        zones: Vec<ZoneView>,
        max_chunk_bytes: i64,
    ) -> Defragmentation {
        let measured = chunks.iter().all(|(_, bytes)| bytes.is_some());
        let phase = if phase == Phase::MoveAndMergeChunks && !measured {
            Phase::MergeAndMeasureChunks
        } else {
            phase
        };
        let last = chunks.len().saturating_sub(1);
        let links = chunks.into_iter().enumerate().map(|(i, (chunk, bytes))| Link {
            chunk,
            bytes,
            before: i.checked_sub(1),
            after: (i < last).then_some(i + 1),
            busy: false,
            too_big: false,
        });
        let mut machine = Defragmentation {
            phase,
            small_bytes: max_chunk_bytes / 100 * SMALL_PERCENT + max_chunk_bytes % 100 * SMALL_PERCENT / 100,
            zones,
            links: links.collect(),
            steps: VecDeque::new(),
            running: BTreeMap::new(),
            small: BTreeSet::new(),
            moving: BTreeMap::new(),
            failed: false,
        };
        machine.plan();
        machine
    }

    fn plan(&mut self) {
        if self.phase == Phase::Finished {
            return;
        }
        let mut at = (!self.links.is_empty()).then_some(0);
        while let Some(first) = at {
            let last = self.end_of_run(first);
            at = self.links[last].after;
            if first != last {
                self.plan_merge(first, last);
            } else if self.phase == Phase::MergeAndMeasureChunks && self.links[first].bytes.is_none() {
                self.links[first].busy = true;
                self.steps.push_back(Step::Measure(first));
            } else {
                self.consider(first);
            }
        }
    }

    fn plan_merge(&mut self, first: ChunkId, last: ChunkId) {
        let mut at = Some(first);
        while let Some(i) = at {
            self.links[i].busy = true;
            if let Some(bytes) = self.links[i].bytes {
                self.small.remove(&(bytes, i));
            }
            at = if i == last { None } else { self.links[i].after };
        }
        self.steps.push_back(Step::Merge(first, last));
    }

    /// Two neighbours may become one chunk.
    fn joins(&self, a: ChunkId, b: ChunkId) -> bool {
        let (a, b) = (&self.links[a].chunk, &self.links[b].chunk);
        a.shard == b.shard && self.fits(a, b)
    }
    /// As [`Defragmentation::joins`], once they are on one shard.
    fn fits(&self, a: &ChunkView, b: &ChunkView) -> bool {
        a.zone == b.zone && !a.jumbo && !b.jumbo
    }
    fn end_of_run(&self, first: ChunkId) -> ChunkId {
        let mut last = first;
        while let Some(next) = self.links[last].after.filter(|n| !self.links[*n].busy && self.joins(last, *n))
        {
            last = next;
        }
        last
    }
    fn start_of_run(&self, last: ChunkId) -> ChunkId {
        let mut first = last;
        while let Some(previous) =
            self.links[first].before.filter(|p| !self.links[*p].busy && self.joins(*p, first))
        {
            first = previous;
        }
        first
    }

    /// Notes a chunk as small where it is, and nothing is under way with it.
    fn consider(&mut self, id: ChunkId) {
        let link = &self.links[id];
        if self.phase == Phase::MoveAndMergeChunks
            && !link.busy
            && !link.too_big
            && !link.chunk.jumbo
            && let Some(bytes) = link.bytes.filter(|b| *b < self.small_bytes)
        {
            self.small.insert((bytes, id));
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }
    /// The zones as they were when the phase began.
    pub fn zones(&self) -> &[ZoneView] {
        &self.zones
    }
    /// Chunks that the phase still has to deal with.
    pub fn remaining(&self) -> usize {
        self.steps.len() + self.running.len() + self.small.len() + self.moving.len()
    }
    /// Chunks wait for a round to move them.
    pub fn has_small(&self) -> bool {
        !self.small.is_empty()
    }
    /// The second loop has something to ask for, of shards that may be asked.
    pub fn has_action(&self, may: impl Fn(usize) -> bool) -> bool {
        !self.failed && self.steps.iter().any(|step| may(self.shard_of(step)))
    }

    fn shard_of(&self, step: &Step) -> usize {
        let (Step::Merge(first, _) | Step::Measure(first)) = step;
        self.links[*first].chunk.shard
    }

    /// The next action of the second loop, of shards that may be asked.
    pub fn next_action(&mut self, may: impl Fn(usize) -> bool) -> Option<Action> {
        if self.failed {
            return None;
        }
        let at = self.steps.iter().position(|step| may(self.shard_of(step)))?;
        let step = self.steps.remove(at)?;
        let (first, last) = match step {
            Step::Merge(first, last) => (first, last),
            Step::Measure(chunk) => (chunk, chunk),
        };
        self.running.insert(first, step);
        let shard = self.links[first].chunk.shard;
        let (min, max) = (self.links[first].chunk.min.clone(), self.links[last].chunk.max.clone());
        Some(match step {
            Step::Merge(..) => Action::Merge { chunk: first, shard, min, max },
            Step::Measure(_) => Action::Measure { chunk: first, shard, min, max },
        })
    }

    /// A merge has ended.
    pub fn merged(&mut self, chunk: ChunkId, outcome: Outcome) {
        let Some(Step::Merge(first, last)) = self.running.remove(&chunk) else { return };
        match outcome {
            Outcome::Retriable => self.steps.push_back(Step::Merge(first, last)),
            Outcome::Failed => self.failed = true,
            Outcome::Done => {
                self.collapse(first, last);
                self.grow(first);
            }
        }
    }

    /// Puts one chunk in the place of several.
    fn collapse(&mut self, first: ChunkId, last: ChunkId) {
        let mut bytes = Some(0i64);
        let mut at = Some(first);
        while let Some(i) = at {
            bytes = bytes.zip(self.links[i].bytes).map(|(a, b)| a.saturating_add(b));
            at = if i == last { None } else { self.links[i].after };
        }
        let (max, max_key) = (self.links[last].chunk.max.clone(), self.links[last].chunk.max_key.clone());
        let after = self.links[last].after;
        if let Some(after) = after {
            self.links[after].before = Some(first);
        }
        let link = &mut self.links[first];
        link.chunk.max = max;
        link.chunk.max_key = max_key;
        link.after = after;
        link.bytes = bytes;
        link.busy = false;
    }

    /// What follows for a chunk that has just become larger.
    fn grow(&mut self, id: ChunkId) {
        if self.phase == Phase::MergeAndMeasureChunks {
            // Measured anew even where all parts were: that is the point of the phase.
            self.links[id].busy = true;
            self.steps.push_back(Step::Measure(id));
            return;
        }
        self.join_run(id);
    }

    /// Merges a chunk with the neighbours it may be merged with; without any, looks at its size.
    fn join_run(&mut self, id: ChunkId) {
        let (first, last) = (self.start_of_run(id), self.end_of_run(id));
        if first == last { self.consider(id) } else { self.plan_merge(first, last) }
    }

    /// A measurement has ended, with the size in bytes when it succeeded.
    pub fn measured(&mut self, chunk: ChunkId, size: Result<i64, Outcome>) {
        let Some(step) = self.running.remove(&chunk) else { return };
        match size {
            Ok(bytes) => {
                self.links[chunk].bytes = Some(bytes);
                self.links[chunk].busy = false;
            }
            Err(Outcome::Retriable) => self.steps.push_back(step),
            Err(_) => self.failed = true,
        }
    }

    /// The migrations of one round, on shards that are free.
    pub fn migrations(&mut self, round: &mut Round<'_>, known: &Known<'_>) -> Vec<Migration> {
        let mut chosen = Vec::new();
        if self.failed || self.phase != Phase::MoveAndMergeChunks || known.collection_rests() {
            return chosen;
        }
        let candidates: Vec<(i64, ChunkId)> = self.small.iter().copied().collect();
        for (size, id) in candidates {
            if round.is_full() {
                break;
            }
            if self.links[id].busy {
                continue;
            }
            match self.best_neighbour(id, round, known) {
                Neighbour::None => {
                    self.small.remove(&(size, id));
                }
                Neighbour::NotNow => {}
                Neighbour::At(neighbour) => {
                    let to = self.links[neighbour].chunk.shard;
                    let link = &self.links[id];
                    if to == link.chunk.shard {
                        self.join_run(id);
                        continue;
                    }
                    let free = round.is_free(link.chunk.shard) && round.is_free(to);
                    if !free || !known.may_give(round, &link.chunk) {
                        continue;
                    }
                    round.occupy(link.chunk.shard);
                    round.occupy(to);
                    chosen.push(Migration {
                        chunk: id,
                        from: link.chunk.shard,
                        to,
                        min: link.chunk.min.clone(),
                        max: link.chunk.max.clone(),
                        min_key: link.chunk.min_key.clone(),
                    });
                    self.small.remove(&(size, id));
                    self.moving.insert(id, to);
                    self.links[id].busy = true;
                    self.forget_small(neighbour);
                    self.links[neighbour].busy = true;
                }
            }
        }
        chosen
    }

    fn forget_small(&mut self, id: ChunkId) {
        if let Some(bytes) = self.links[id].bytes {
            self.small.remove(&(bytes, id));
        }
    }

    /// The neighbour that a small chunk is to be merged with, by points for, in order of weight: it is on the chunk's
    /// shard; it is the larger; together they are no longer small; its shard has less data than the other's.
    fn best_neighbour(&self, id: ChunkId, round: &Round<'_>, known: &Known<'_>) -> Neighbour {
        let chunk = &self.links[id].chunk;
        let sides = [self.links[id].before, self.links[id].after];
        let may = |n: &ChunkId| {
            let other = &self.links[*n].chunk;
            let shard = round.shards.get(other.shard);
            self.fits(chunk, other)
                && shard.is_some_and(|s| !s.draining && !s.full && self.keeps_to_zone(chunk, s, round))
        };
        let mut possible: Vec<ChunkId> = sides.into_iter().flatten().filter(may).collect();
        if possible.is_empty() {
            return Neighbour::None;
        }
        let shard_of = |n: ChunkId| self.links[n].chunk.shard;
        possible.retain(|n| shard_of(*n) == chunk.shard || known.may_receive(round, shard_of(*n)));
        let data = |n: ChunkId| known.bytes_of(shard_of(n)).unwrap_or(i64::MAX);
        let own = self.links[id].bytes.unwrap_or(0);
        let score = |n: ChunkId| {
            let theirs = self.links[n].bytes.unwrap_or(0);
            let least = possible.iter().all(|other| *other == n || data(n) < data(*other));
            8 * i32::from(shard_of(n) == chunk.shard)
                + 4 * i32::from(own < theirs)
                + 2 * i32::from(own.saturating_add(theirs) >= self.small_bytes)
                + i32::from(least)
        };
        // The first of two equals.
        let best = possible.iter().copied().rev().max_by_key(|n| score(*n));
        match best {
            Some(n) if self.links[n].busy => Neighbour::NotNow,
            Some(n) => Neighbour::At(n),
            None => Neighbour::NotNow,
        }
    }

    /// The chunk does not leave its zone by going to the shard.
    fn keeps_to_zone(&self, chunk: &ChunkView, to: &ShardView, round: &Round<'_>) -> bool {
        let Some(zone) = chunk.zone.and_then(|at| self.zones.get(at)) else { return true };
        let is_of = |s: &ShardView| s.zones.contains(&zone.zone);
        is_of(to) || !round.shards.get(chunk.shard).is_some_and(is_of)
    }

    /// A migration has ended. The chunk is merged with its new neighbours next.
    pub fn migrated(&mut self, chunk: ChunkId, outcome: Outcome) {
        let Some((to, neighbours)) = self.end_of_move(chunk) else { return };
        match outcome {
            Outcome::Done => {
                self.links[chunk].chunk.shard = to;
                self.join_run(chunk);
            }
            Outcome::Retriable => {
                self.consider(chunk);
                neighbours.into_iter().for_each(|n| self.consider(n));
            }
            Outcome::Failed => self.failed = true,
        }
    }

    /// A chunk has more than a migration takes: it stays where it is, and others may come to it.
    pub fn too_big(&mut self, chunk: ChunkId) {
        let Some((_, neighbours)) = self.end_of_move(chunk) else { return };
        self.links[chunk].too_big = true;
        neighbours.into_iter().for_each(|n| self.consider(n));
    }

    /// Frees the chunk and its neighbours on the recipient; returns the recipient and them.
    fn end_of_move(&mut self, chunk: ChunkId) -> Option<(usize, Vec<ChunkId>)> {
        let to = self.moving.remove(&chunk)?;
        let sides = [self.links[chunk].before, self.links[chunk].after];
        let neighbours: Vec<ChunkId> =
            sides.into_iter().flatten().filter(|n| self.links[*n].chunk.shard == to).collect();
        self.links[chunk].busy = false;
        for n in &neighbours {
            // Another migration or merge may concern the one that was not chosen.
            if !self.moving.contains_key(n) && !self.is_in_step(*n) {
                self.links[*n].busy = false;
            }
        }
        Some((to, neighbours))
    }

    fn is_in_step(&self, id: ChunkId) -> bool {
        let key = &self.links[id].chunk.min_key;
        let within = |step: &Step| match step {
            Step::Measure(chunk) => *chunk == id,
            Step::Merge(first, last) => {
                self.links[*first].chunk.min_key <= *key && *key <= self.links[*last].chunk.min_key
            }
        };
        self.steps.iter().chain(self.running.values()).any(within)
    }

    /// The phase that comes next, once nothing is under way; `None` before.
    pub fn outcome(&self) -> Option<Phase> {
        if !self.running.is_empty() || !self.moving.is_empty() {
            return None;
        }
        if self.failed {
            return Some(match self.phase {
                Phase::MoveAndMergeChunks => Phase::MergeAndMeasureChunks,
                same => same,
            });
        }
        if !self.steps.is_empty() || !self.small.is_empty() {
            return None;
        }
        Some(match self.phase {
            Phase::MergeAndMeasureChunks => Phase::MoveAndMergeChunks,
            Phase::MoveAndMergeChunks => Phase::MergeChunks,
            Phase::MergeChunks | Phase::Finished => Phase::Finished,
        })
    }
    /// The phase ends because something failed for good, and not because it is complete.
    pub fn has_failed(&self) -> bool {
        self.failed
    }
}

/// What a round knows of a collection: migrations pass over what has failed lately, and a shard that did not say what it has.
pub struct Known<'a> {
    pub ns: &'a str,
    /// What each shard has of the collection, where it said so.
    pub bytes: &'a [Option<i64>],
    pub failures: &'a Failures,
    pub now_ms: i64,
}

impl Known<'_> {
    fn bytes_of(&self, shard: usize) -> Option<i64> {
        self.bytes.get(shard).copied().flatten()
    }
    fn collection_rests(&self) -> bool {
        self.failures.collection_rests(self.ns, self.now_ms)
    }
    fn may_give(&self, round: &Round<'_>, chunk: &ChunkView) -> bool {
        let rests = |shard: &ShardView| self.failures.donor_rests(&shard.name, self.now_ms);
        self.bytes_of(chunk.shard).is_some()
            && round.shards.get(chunk.shard).is_some_and(|s| !rests(s))
            && !self.failures.chunk_rests(self.ns, &chunk.min_key, self.now_ms)
    }
    fn may_receive(&self, round: &Round<'_>, shard: usize) -> bool {
        let rests = |shard: &ShardView| self.failures.recipient_rests(&shard.name, self.now_ms);
        self.bytes_of(shard).is_some() && round.shards.get(shard).is_some_and(|s| !rests(s))
    }
}

/// Whom a small chunk may be merged with.
enum Neighbour {
    /// Nobody, ever.
    None,
    /// Somebody with whom something is under way, or whose shard rests.
    NotNow,
    At(ChunkId),
}
