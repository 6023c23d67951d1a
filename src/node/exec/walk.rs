//! Walking a collection by a plan, resumable between any two records.

use super::covered::{Behind, Covered, Made, Skip};
use super::keys::Keys;
use super::merge::Merge;
use super::nearest::Nearest;
use super::sorter::{Means, RecordSorter, Sorted};
use crate::namespace::OwnershipFilter;
use document::{Doc, DocBuf, Result, Value};
use query::matcher::Matcher;
use query::pipeline::account::Use;
use query::planner::{Direction, KeyRange, Plan};
use query::sort::SortSpec;
use runtime::Instant;
use std::collections::HashSet;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;
use storage::{CollectionView, IndexCursor, IndexEntry, IndexSpec, RecordId};

/// Work done in one slice on a snapshot.
const SLICE_RECORDS: u32 = 4096;
const SLICE_TIME: Duration = Duration::from_millis(1);
/// The most records between two looks at the clock.
const CLOCK_EVERY: u32 = 64;

/// How much may be done before the walk returns.
///
/// The clock is looked at after the first record, the third, the seventh and so on: cheap records are soon counted by
/// dozens, while a filter that takes milliseconds a record stops the slice where its time is up.
pub struct Budget {
    records: u32,
    until: Instant,
    next_look: u32,
    interval: u32,
}

impl Budget {
    /// A slice on a snapshot: about a millisecond.
    pub fn slice() -> Budget {
        Budget::of(SLICE_RECORDS, SLICE_TIME)
    }
    /// So many records at most.
    pub fn of(records: u32, time: Duration) -> Budget {
        let next_look = records.saturating_sub(1);
        Budget { records, until: Instant::now() + time, next_look, interval: 1 }
    }
    /// Uses one record up; false when there is nothing left.
    #[inline]
    pub(super) fn spend(&mut self) -> bool {
        if self.records == 0 {
            return false;
        }
        if self.records <= self.next_look && self.is_over() {
            self.records = 0;
            return false;
        }
        self.records -= 1;
        true
    }
    fn is_over(&mut self) -> bool {
        self.interval = (self.interval * 2).min(CLOCK_EVERY);
        self.next_look = self.records.saturating_sub(self.interval);
        Instant::now() >= self.until
    }
}

/// What the receiver of a record did with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Took it and wants more.
    More,
    /// Took it and wants no further one now.
    Last,
    /// Had no room: it is to be offered again.
    Refused,
}

/// Why a walk returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The budget is used up.
    Slice,
    /// The receiver said [`Taken::Last`] or [`Taken::Refused`].
    Stopped,
    /// Nothing more will come.
    End,
}

/// What a walk found, with the key it was found by in an index.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    pub record: RecordId,
    pub doc: Doc<'a>,
}

/// Work done so far, as explain shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub keys: u64,
    pub docs: u64,
    /// Times that a place in an index was looked for.
    pub seeks: u64,
    /// What a scan or a union found again.
    pub dups: u64,
    /// What passed the filter.
    pub passed: u64,
    /// Of that, what the shard does not own.
    pub foreign: u64,
    /// What a blocking sort took.
    pub sort: Use,
}

impl Counters {
    /// What was examined since an earlier state.
    pub fn since(self, before: Counters) -> Counters {
        Counters {
            keys: self.keys - before.keys,
            docs: self.docs - before.docs,
            seeks: self.seeks - before.seeks,
            dups: self.dups - before.dups,
            passed: self.passed - before.passed,
            foreign: self.foreign - before.foreign,
            sort: self.sort,
        }
    }
    /// Adds what was examined between two states.
    pub(super) fn add(&mut self, now: Counters, before: Counters) {
        *self += now.since(before);
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.keys += other.keys;
        self.docs += other.docs;
        self.seeks += other.seeks;
        self.dups += other.dups;
        self.passed += other.passed;
        self.foreign += other.foreign;
        self.sort = other.sort;
    }
}

/// What goes with a walk through all its slices.
pub struct Context<'a> {
    pub owner: Option<&'a dyn OwnershipFilter>,
    pub counters: &'a mut Counters,
    /// Where the index keys of what is found are noted, if they are shown.
    pub keys: Option<&'a Keys>,
}

impl Context<'_> {
    /// Whether the shard owns what passed the filter.
    #[inline]
    fn takes(&mut self, doc: Doc<'_>) -> bool {
        takes(self.counters, self.owner, doc)
    }
}

#[inline]
fn takes(counters: &mut Counters, owner: Option<&dyn OwnershipFilter>, doc: Doc<'_>) -> bool {
    counters.passed += 1;
    let owned = owner.is_none_or(|o| o.owns(doc));
    counters.foreign += u64::from(!owned);
    owned
}

/// A plan under way.
pub enum Walk {
    Eof,
    Scan(Scan),
    Id { id: DocBuf, filter: Matcher, done: bool },
    Index(Box<IndexWalk>),
    Or(Box<Or>),
    Merge(Box<Merge>),
    Sort(Box<Sort>),
    Near(Box<Nearest>),
}

pub struct Scan {
    filter: Matcher,
    direction: Direction,
    /// The record handled last.
    last: Option<RecordId>,
    done: bool,
}

pub struct IndexWalk {
    index: String,
    /// Inclusive lower and exclusive upper end of each range; no upper end is infinity.
    ranges: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    range: usize,
    direction: Direction,
    filter: Matcher,
    /// Key and record handled last within the range at hand.
    last: Option<(Vec<u8>, RecordId)>,
    /// The scan is one of the collection: what it meets are documents and no keys.
    clustered: bool,
    /// Records met, where one may be met twice.
    seen: Option<HashSet<RecordId>>,
    /// What is read of a key in place of its document.
    covered: Option<Covered>,
    /// Where a key leads only to others that differ from it.
    skip: Option<Skip>,
    /// The index when the snapshot was given back: another may have its name since.
    released: Option<Arc<IndexSpec>>,
}

pub struct Or {
    /// With what each has examined.
    branches: Vec<(Walk, Counters)>,
    at: usize,
    seen: HashSet<RecordId>,
}

pub struct Sort {
    input: Walk,
    sorter: Option<RecordSorter>,
    sorted: Sorted,
}

pub(super) type Sink<'s> = dyn FnMut(Found<'_>) -> Result<Taken> + 's;

impl Walk {
    /// Bytes of the keys that a blocking sort collected; of those in files, nothing.
    pub fn sorted_bytes(&self) -> usize {
        match self {
            Walk::Sort(sort) if sort.sorted.used.spills == 0 => sort.sorted.used.peak_bytes,
            _ => 0,
        }
    }
    /// Starts a plan. `sort` is the request's; `limit` (skip included) bounds what a blocking sort keeps.
    pub fn new(plan: Plan, sort: Option<&SortSpec>, limit: Option<usize>) -> Walk {
        Walk::with_sort(plan, sort, limit, &Means::default())
    }
    /// The same; `means` are those of a blocking sort.
    pub fn with_sort(plan: Plan, sort: Option<&SortSpec>, limit: Option<usize>, means: &Means) -> Walk {
        match plan {
            Plan::Eof => Walk::Eof,
            Plan::CollScan { direction, filter } => {
                Walk::Scan(Scan { filter, direction, last: None, done: false })
            }
            Plan::IdHack { id, filter } => Walk::by_id(&id, filter),
            Plan::Index { scan, filter } => Walk::Index(Box::new(IndexWalk {
                covered: Covered::of(&scan),
                skip: Skip::of(&scan),
                ranges: scan.ranges.iter().filter_map(ends).collect(),
                index: scan.index,
                range: 0,
                clustered: scan.clustered,
                direction: scan.direction,
                filter,
                last: None,
                seen: scan.repeats.then(HashSet::new),
                released: None,
            })),
            Plan::Or(branches) => Walk::Or(Box::new(Or {
                branches: branches
                    .into_iter()
                    .map(|p| (Walk::new(p, None, None), Counters::default()))
                    .collect(),
                at: 0,
                seen: HashSet::new(),
            })),
            Plan::Merge { branches, order } => {
                let walks = branches.into_iter().map(|p| Walk::new(p, None, None)).collect();
                Walk::Merge(Box::new(Merge::new(walks, order)))
            }
            Plan::Near { order, rings, .. } => {
                Walk::Near(Box::new(Nearest::new(rings, order, limit, means.clone())))
            }
            Plan::Sort { input, .. } => {
                let order = sort.cloned().unwrap_or_default();
                Walk::Sort(Box::new(Sort::new(*input, RecordSorter::new(order, limit, means))))
            }
        }
    }
    /// The one document with this `_id`.
    pub fn by_id(id: &Value, filter: Matcher) -> Walk {
        Walk::Id { id: id.to_holder(), filter, done: false }
    }

    /// Whether the position stays good on a later state of the collection.
    pub fn is_resumable(&self) -> bool {
        match self {
            Walk::Eof | Walk::Scan(_) | Walk::Id { .. } | Walk::Index(_) => true,
            Walk::Or(or) => or.branches.iter().all(|(walk, _)| walk.is_resumable()),
            // They hold records found at a moment of their own.
            Walk::Merge(_) | Walk::Sort(_) | Walk::Near(_) => false,
        }
    }
    /// `view` is given back, and the walk may go on over a later state.
    pub fn released<V: CollectionView>(&mut self, view: &V) {
        match self {
            Walk::Index(walk) => {
                let info = view.index_slot(&walk.index).and_then(|slot| view.index_info(slot));
                walk.released = info.map(|info| info.spec.clone());
            }
            Walk::Or(or) => or.branches.iter_mut().for_each(|(walk, _)| walk.released(view)),
            _ => {}
        }
    }
    /// The collection goes on changing between slices: from now on a record may be met again under another key.
    pub fn resumed(&mut self) {
        match self {
            // No document changes its `_id`.
            Walk::Index(walk) if walk.clustered => {}
            Walk::Index(walk) => {
                walk.seen.get_or_insert_with(HashSet::new);
            }
            Walk::Or(or) => or.branches.iter_mut().for_each(|(walk, _)| walk.resumed()),
            _ => {}
        }
    }

    /// Goes on over `view`, which must be the collection at the moment at which the walk began or was resumed.
    pub fn run<V: CollectionView>(
        &mut self,
        view: &V,
        context: &mut Context<'_>,
        budget: &mut Budget,
        sink: &mut Sink<'_>,
    ) -> Result<Progress> {
        match self {
            Walk::Eof => Ok(Progress::End),
            Walk::Scan(scan) => scan.run(view, context, budget, sink),
            Walk::Id { id, filter, done } => {
                if *done {
                    return Ok(Progress::End);
                }
                let Some((record, doc)) = id.get("").and_then(|id| view.find_id(id)) else {
                    *done = true;
                    return Ok(Progress::End);
                };
                context.counters.keys += 1;
                context.counters.docs += 1;
                if !filter.matches(doc)? || !context.takes(doc) {
                    *done = true;
                    return Ok(Progress::End);
                }
                context.keys.zip(id.get("")).into_iter().for_each(|(keys, id)| keys.note_id(record, id));
                let taken = sink(Found { record, doc })?;
                *done = taken != Taken::Refused;
                Ok(if taken == Taken::More { Progress::End } else { Progress::Stopped })
            }
            Walk::Index(walk) => walk.run(view, context, budget, sink),
            Walk::Or(or) => or.run(view, context, budget, sink),
            Walk::Merge(merge) => merge.run(view, context, budget, sink),
            Walk::Sort(sort) => sort.run(view, context, budget, &|_| Ok(true), sink),
            Walk::Near(nearest) => nearest.run(view, context, budget, sink),
        }
    }

    /// What each access to the collection has examined, in the order in which the plan names them; `whole` is what all have.
    pub fn examined(&self, whole: Counters, out: &mut Vec<Counters>) {
        match self {
            Walk::Or(or) => or.branches.iter().for_each(|(walk, own)| walk.examined(*own, out)),
            Walk::Merge(merge) => merge.branches().for_each(|(walk, own)| walk.examined(own, out)),
            Walk::Sort(sort) => sort.input.examined(whole, out),
            Walk::Eof | Walk::Scan(_) | Walk::Id { .. } | Walk::Index(_) | Walk::Near(_) => out.push(whole),
        }
    }

    /// Counts all that matches within the budget without fetching documents where the index alone decides.
    pub fn count_only<V: CollectionView>(
        &mut self,
        view: &V,
        context: &mut Context<'_>,
        budget: &mut Budget,
        count: &mut u64,
        most: u64,
    ) -> Result<Progress> {
        if let Walk::Index(walk) = self
            && walk.filter.is_always_true()
            && context.owner.is_none()
        {
            return walk.count(view, context, budget, count, most);
        }
        self.run(view, context, budget, &mut |_| {
            *count += 1;
            Ok(if *count >= most { Taken::Last } else { Taken::More })
        })
    }
}

impl Scan {
    fn run<V: CollectionView>(
        &mut self,
        view: &V,
        context: &mut Context<'_>,
        budget: &mut Budget,
        sink: &mut Sink<'_>,
    ) -> Result<Progress> {
        if self.done {
            return Ok(Progress::End);
        }
        let forward = self.direction == Direction::Forward;
        let mut cursor = view.records();
        let mut next = match (self.last, forward) {
            (None, true) => cursor.first(),
            (None, false) => cursor.last(),
            (Some(last), true) => last.checked_add(1).and_then(|r| cursor.seek(r)),
            (Some(last), false) => last.checked_sub(1).and_then(|r| cursor.seek_back(r)),
        };
        // A conjunction that says nothing is not asked of every document.
        let filter = Some(&self.filter).filter(|f| !f.is_always_true());
        while let Some((record, doc)) = next {
            if !budget.spend() {
                return Ok(Progress::Slice);
            }
            context.counters.docs += 1;
            let passes = match filter {
                Some(f) => f.matches(doc)?,
                None => true,
            };
            if passes && context.takes(doc) {
                match sink(Found { record, doc })? {
                    Taken::More => {}
                    Taken::Last => {
                        self.last = Some(record);
                        return Ok(Progress::Stopped);
                    }
                    Taken::Refused => return Ok(Progress::Stopped),
                }
            }
            self.last = Some(record);
            next = if forward { cursor.next() } else { cursor.prev() };
        }
        self.done = true;
        Ok(Progress::End)
    }
}

/// The range as [low, high); `None` when it is empty.
fn ends(range: &KeyRange) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    Some((range.start()?, range.end()))
}

impl IndexWalk {
    /// To the next entry of the range at hand after the last one handled; `None` at the range's end.
    fn enter<'v>(&self, cursor: &mut IndexCursor<'v>) -> Option<IndexEntry<'v>> {
        let (low, high) = self.ranges.get(self.range)?;
        let entry = match (self.direction, &self.last) {
            (Direction::Forward, None) => cursor.seek(low),
            (Direction::Forward, Some((key, record))) => cursor.seek_after(key, *record),
            (Direction::Backward, None) => match high {
                Some(high) => cursor.seek_before(high),
                None => cursor.last(),
            },
            (Direction::Backward, Some((key, record))) => cursor.seek_before_entry(key, *record),
        };
        entry.filter(|e| self.inside(e))
    }
    fn inside(&self, entry: &IndexEntry<'_>) -> bool {
        let Some((low, high)) = self.ranges.get(self.range) else { return false };
        match self.direction {
            Direction::Forward => high.as_ref().is_none_or(|h| entry.key < h.as_slice()),
            Direction::Backward => entry.key >= low.as_slice(),
        }
    }
    fn step<'v>(&self, cursor: &mut IndexCursor<'v>, from: &IndexEntry<'_>) -> Option<IndexEntry<'v>> {
        if let Some(behind) = self.skip.as_ref().and_then(|skip| skip.behind(from.key)) {
            let entry = match behind {
                Behind::From(key) => cursor.seek(&key),
                Behind::Before(key) => cursor.seek_before(&key),
            };
            return entry.filter(|e| self.inside(e));
        }
        let entry = match self.direction {
            Direction::Forward => cursor.next(),
            Direction::Backward => cursor.prev(),
        };
        entry.filter(|e| self.inside(e))
    }
    fn note(&mut self, entry: &IndexEntry<'_>) {
        match &mut self.last {
            Some((key, record)) => {
                key.clear();
                key.extend_from_slice(entry.key);
                *record = entry.record;
            }
            None => self.last = Some((entry.key.to_vec(), entry.record)),
        }
    }

    /// The slot of the index, unless what bears its name now holds other keys.
    fn slot<V: CollectionView>(&self, view: &V) -> Option<usize> {
        let slot = view.index_slot(&self.index)?;
        let Some(released) = &self.released else { return Some(slot) };
        view.index_info(slot).filter(|info| info.spec.has_keys_of(released)).map(|_| slot)
    }

    /// Hands each entry to `f`, which says whether to go on.
    fn each<V: CollectionView>(
        &mut self,
        view: &V,
        counters: &mut Counters,
        budget: &mut Budget,
        mut f: impl FnMut(&mut IndexWalk, &mut Counters, &IndexEntry<'_>) -> Result<Taken>,
    ) -> Result<Progress> {
        let cursor = self.slot(view).and_then(|slot| view.index_cursor(slot));
        let Some(mut cursor) = cursor else {
            document::bail!(QUERY_PLAN_KILLED, "index '{}' dropped", self.index)
        };
        while self.range < self.ranges.len() {
            counters.seeks += u64::from(self.last.is_none());
            let mut next = self.enter(&mut cursor);
            let mut handled: Option<IndexEntry<'_>> = None;
            while let Some(entry) = next {
                let spent = budget.spend();
                let handed = match spent {
                    true => {
                        counters.keys += u64::from(!self.clustered);
                        f(self, counters, &entry)
                    }
                    false => Ok(Taken::Refused),
                };
                // After an error, too, the walk can go on: the entry is then handed out again.
                let taken = match handed {
                    Ok(taken) => taken,
                    Err(e) => {
                        if let Some(entry) = handled {
                            self.note(&entry);
                        }
                        return Err(e);
                    }
                };
                if taken != Taken::Refused {
                    handled = Some(entry);
                }
                if taken != Taken::More {
                    if let Some(entry) = handled {
                        self.note(&entry);
                    }
                    return Ok(if spent { Progress::Stopped } else { Progress::Slice });
                }
                counters.seeks += u64::from(self.skip.is_some());
                next = self.step(&mut cursor, &entry);
            }
            self.range += 1;
            self.last = None;
            // A range that holds nothing is work, too.
            if self.range < self.ranges.len() && !budget.spend() {
                return Ok(Progress::Slice);
            }
        }
        Ok(Progress::End)
    }

    /// Hands a record on if it passes.
    fn offer(
        &self,
        counters: &mut Counters,
        found: Found<'_>,
        owner: Option<&dyn OwnershipFilter>,
        sink: &mut Sink<'_>,
    ) -> Result<Taken> {
        let passes = self.filter.is_always_true() || self.filter.matches(found.doc)?;
        if !passes || !takes(counters, owner, found.doc) {
            return Ok(Taken::More);
        }
        sink(found)
    }

    fn run<V: CollectionView>(
        &mut self,
        view: &V,
        context: &mut Context<'_>,
        budget: &mut Budget,
        sink: &mut Sink<'_>,
    ) -> Result<Progress> {
        let (owner, keys) = (context.owner, context.keys);
        let slot = view.index_slot(&self.index);
        let shown = keys.zip(slot.and_then(|slot| view.index_info(slot)));
        let kinds = self.covered.as_ref().and_then(|_| view.index_info(slot?));
        // Where it has met an array since it was planned, a key is an element of it: the document is read.
        let kinds = kinds.filter(|info| !info.multikey()).map(|info| info.met.kinds);
        let mut made = Made::default();
        self.each(view, context.counters, budget, |walk, counters, entry| {
            if walk.seen.as_mut().is_some_and(|seen| !seen.insert(entry.record)) {
                counters.dups += 1;
                return Ok(Taken::More);
            }
            let covered = walk.covered.as_ref().zip(kinds);
            if let Some(doc) = covered.and_then(|(c, kinds)| c.read(entry.key, kinds, &mut made)) {
                let taken = walk.offer(counters, Found { record: entry.record, doc }, owner, sink);
                walk.unsee(entry.record, &taken);
                return taken;
            }
            let Some(doc) = view.get(entry.record) else { return Ok(Taken::More) };
            counters.docs += 1;
            let taken = walk.offer(counters, Found { record: entry.record, doc }, owner, &mut |found| {
                if let Some((keys, info)) = shown {
                    keys.note(&info.spec, entry, doc);
                }
                sink(found)
            });
            walk.unsee(entry.record, &taken);
            taken
        })
    }

    /// A record that was not taken will be offered again.
    fn unsee(&mut self, record: RecordId, taken: &Result<Taken>) {
        if matches!(taken, Ok(Taken::Refused) | Err(_))
            && let Some(seen) = &mut self.seen
        {
            seen.remove(&record);
        }
    }

    fn count<V: CollectionView>(
        &mut self,
        view: &V,
        context: &mut Context<'_>,
        budget: &mut Budget,
        count: &mut u64,
        most: u64,
    ) -> Result<Progress> {
        self.each(view, context.counters, budget, |walk, _, entry| {
            if walk.seen.as_mut().is_some_and(|seen| !seen.insert(entry.record)) {
                return Ok(Taken::More);
            }
            *count += 1;
            Ok(if *count >= most { Taken::Last } else { Taken::More })
        })
    }
}

impl Or {
    fn run<V: CollectionView>(
        &mut self,
        view: &V,
        context: &mut Context<'_>,
        budget: &mut Budget,
        sink: &mut Sink<'_>,
    ) -> Result<Progress> {
        let Or { branches, at, seen } = self;
        while let Some((branch, examined)) = branches.get_mut(*at) {
            let before = *context.counters;
            let mut dups = 0;
            let progress = branch.run(view, context, budget, &mut |found| {
                if !seen.insert(found.record) {
                    dups += 1;
                    return Ok(Taken::More);
                }
                let taken = sink(found);
                if matches!(taken, Ok(Taken::Refused) | Err(_)) {
                    seen.remove(&found.record);
                }
                taken
            });
            examined.add(*context.counters, before);
            // The union's own, none of the branch.
            context.counters.dups += dups;
            let progress = progress?;
            if progress != Progress::End {
                return Ok(progress);
            }
            *at += 1;
            // A branch that finds nothing is work, too.
            if *at < branches.len() && !budget.spend() {
                return Ok(Progress::Slice);
            }
        }
        Ok(Progress::End)
    }
}

impl Sort {
    pub(super) fn new(input: Plan, sorter: RecordSorter) -> Sort {
        Sort { input: Walk::new(input, None, None), sorter: Some(sorter), sorted: Sorted::default() }
    }

    /// Sorts what `keep` says of.
    pub(super) fn run<V: CollectionView>(
        &mut self,
        view: &V,
        context: &mut Context<'_>,
        budget: &mut Budget,
        keep: &dyn Fn(Doc<'_>) -> Result<bool>,
        sink: &mut Sink<'_>,
    ) -> Result<Progress> {
        if let Some(sorter) = &mut self.sorter {
            let progress = self.input.run(view, context, budget, &mut |found| {
                if keep(found.doc)? {
                    sorter.push(found.record, found.doc)?;
                }
                Ok(Taken::More)
            })?;
            if progress != Progress::End {
                return Ok(progress);
            }
            self.sorted = self.sorter.take().map(RecordSorter::finish).transpose()?.unwrap_or_default();
            context.counters.sort = self.sorted.used;
        }
        while let Some(record) = self.sorted.peek()? {
            let Some(doc) = view.get(record) else {
                self.sorted.take();
                continue;
            };
            if !budget.spend() {
                return Ok(Progress::Slice);
            }
            match sink(Found { record, doc })? {
                Taken::More => self.sorted.take(),
                Taken::Last => {
                    self.sorted.take();
                    return Ok(Progress::Stopped);
                }
                Taken::Refused => return Ok(Progress::Stopped),
            }
        }
        Ok(Progress::End)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(budget: &mut Budget, mut each: impl FnMut()) -> u32 {
        let mut n = 0;
        while budget.spend() {
            each();
            n += 1;
        }
        n
    }

    #[test]
    fn a_slice_of_expensive_records_ends_with_its_time_and_one_of_cheap_records_with_their_number() {
        let dear = taken(&mut Budget::of(100, Duration::ZERO), || {});
        assert_eq!(dear, 1, "the time was up after the first");
        assert_eq!(taken(&mut Budget::of(300, Duration::from_secs(60)), || {}), 300);
        let mut later = Budget::of(1000, Duration::from_millis(30));
        assert!(taken(&mut later, || std::thread::sleep(Duration::from_millis(10))) < 16);
    }
}
