//! Candidates for a write: record ids that matched on a snapshot, in slices.
//!
//! The first slice runs under the latch; a search that ends there takes no snapshot. What the write then does under
//! the exclusive latch re-fetches and re-matches: a candidate is a hint, never a promise.
//!
//! A write of many documents compares the versions of its request once, with the search. Refused half-way, its router
//! would send it anew, and what was done would be done twice. So that nothing it searched for moves away meanwhile it
//! keeps its ranges here until it ends ([`Slot::keep_ranges`]).

use crate::exec::choice::{Memory, Watched};
use crate::exec::profiled::Profiled;
use crate::exec::query::{LATCHED_QUANTA, Wanted, note_hashes, note_use, ownership, summary};
use crate::exec::shown::Whole;
use crate::exec::sorter::Means;
use crate::exec::walk::{Context, Counters};
use crate::exec::{Budget, Progress, Taken, Walk};
use crate::namespace::{OwnershipFilter, Slot};
use crate::operation::Received;
use crate::ranges::Kept;
use crate::{Node, Operation, WriteUnit};
use document::error::Phase;
use document::{Result, bail, meter};
use protocol::version::ShardVersion;
use query::matcher::Matcher;
use query::planner::Hint;
use query::sort::SortSpec;
use std::sync::Arc;
use std::time::Duration;
use storage::{CollectionSnapshot, RecordId};

/// Record ids handed out at once.
const SLICE: usize = 256;

/// What to search for.
pub struct Search<'a> {
    pub filter: &'a Matcher,
    pub sort: Option<&'a SortSpec>,
    pub hint: Option<&'a Hint>,
}

/// A search under way.
pub struct Candidates {
    walk: Walk,
    owner: Option<Arc<dyn OwnershipFilter>>,
    counters: Counters,
    noted: Counters,
    /// How many records were found.
    matched: u64,
    watched: Watched,
    /// While the profiler is to see what the plan does.
    profiled: Option<Box<Profiled>>,
    snapshot: Option<CollectionSnapshot>,
    /// Found under the latch.
    found: Vec<RecordId>,
    /// The collection searched.
    uuid: Option<[u8; 16]>,
    /// What the writes of these candidates are checked for.
    pub received: Received,
}

impl Candidates {
    /// Plans the search and takes its snapshot under the latch, where versions are checked.
    pub async fn open(node: &Node, op: &Operation, slot: &Slot, search: Search<'_>) -> Result<Candidates> {
        let wanted = Wanted {
            filter: search.filter.clone(),
            sort: search.sort,
            hint: search.hint,
            ..Wanted::default()
        };
        // A write has no say in whether its sort may use the disk.
        let means = match search.sort {
            Some(_) => node.sort_means(op, None),
            None => Means::default(),
        };
        let opened = slot.read(op, |state| {
            let mut out = Candidates {
                walk: Walk::Eof,
                owner: None,
                counters: Counters::default(),
                noted: Counters::default(),
                matched: 0,
                watched: Watched::default(),
                profiled: None,
                snapshot: None,
                found: Vec::new(),
                uuid: None,
                received: op.received,
            };
            let Some(collection) = &state.collection else { return Ok(out) };
            out.uuid = Some(collection.uuid());
            out.owner = ownership(state, op);
            let choice = wanted.choose(node, collection, Memory::Used)?;
            note_use(node, op, &slot.ns, &choice.plan);
            note_hashes(node, op, &wanted, &choice.plan, collection);
            out.profiled =
                Profiled::of(node, &choice, &wanted, collection.is_clustered(), || summary(&choice.plan));
            out.watched = Watched::new(choice.cached);
            out.walk = Walk::with_sort(choice.plan, wanted.sort, None, &means);
            let mut found = Vec::new();
            let mut budget = Budget::of(SLICE as u32, Duration::from_micros(200));
            match meter::bounded(LATCHED_QUANTA, || out.slice(collection, &mut budget, &mut found)) {
                Ok(Progress::End) => {}
                Err(e) if e.code != meter::OVERRUN => return Err(e.at(Phase::Running)),
                _ => out.snapshot = Some(collection.snapshot()),
            }
            out.found = found;
            out.note(op);
            Ok(out)
        });
        let opened = opened.await;
        node.plan_caches.trim();
        opened
    }

    /// The same for a write of all that is found; the guard is to be kept until that ends.
    pub async fn open_for_many(
        node: &Node,
        op: &Operation,
        slot: &Slot,
        search: Search<'_>,
    ) -> Result<(Kept, Candidates)> {
        let kept = slot.keep_ranges(op).await?;
        // A range that is leaving already has left when writes go on, and then the versions say so.
        node.write(op, slot, |_| Ok(())).await?;
        let mut out = Candidates::open(node, op, slot, search).await?;
        // Critical sections are still waited for, and the database's version is still compared: an unsharded
        // collection moves with it.
        out.received.shard = op.received.shard.map(|_| ShardVersion::IGNORED);
        Ok((kept, out))
    }

    /// # Errors
    /// QueryPlanKilled (175) when this is not the collection that was searched.
    pub fn check_collection(&self, unit: &WriteUnit<'_>) -> Result<()> {
        match unit.collection().map(|c| c.uuid()) == self.uuid {
            true => Ok(()),
            false => bail!(QUERY_PLAN_KILLED, "collection dropped. UUID of {} has changed", unit.slot.ns),
        }
    }

    /// The next slice of records; empty at the end.
    pub async fn next(&mut self, op: &Operation) -> Result<Vec<RecordId>> {
        let mut found = std::mem::take(&mut self.found);
        while found.is_empty()
            && let Some(snapshot) = self.snapshot.take()
        {
            op.check_interrupt()?;
            let progress = self.slice(&snapshot, &mut Budget::slice(), &mut found)?;
            self.note(op);
            if progress != Progress::End {
                self.snapshot = Some(snapshot);
            }
            if progress == Progress::Slice {
                crate::lane::give_way(op).await?;
            }
        }
        Ok(found)
    }

    /// Adds what was examined since the last call to what the operation has, and lets the plan be judged by it.
    fn note(&mut self, op: &Operation) {
        let new = self.counters.since(self.noted);
        op.note_examined(new.keys, new.docs);
        self.noted = self.counters;
        self.watched.note(self.counters, self.matched);
        if let Some(profiled) = &self.profiled {
            let mut examined = Vec::new();
            self.walk.examined(self.counters, &mut examined);
            let ended = self.snapshot.is_none();
            let whole = Whole { returned: self.matched, counters: self.counters, examined, ended };
            profiled.note(op, &whole);
        }
    }
    fn slice<V: storage::CollectionView>(
        &mut self,
        view: &V,
        budget: &mut Budget,
        found: &mut Vec<RecordId>,
    ) -> Result<Progress> {
        let mut context = Context { owner: self.owner.as_deref(), counters: &mut self.counters, keys: None };
        self.walk.run(view, &mut context, budget, &mut |f| {
            found.push(f.record);
            self.matched += 1;
            Ok(if found.len() >= SLICE { Taken::Last } else { Taken::More })
        })
    }
}
