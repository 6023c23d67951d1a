//! A query under way: a walk with what comes after it (ownership before skip and limit, then projection).

use super::batch::Output;
use super::choice::{Memory, Watched};
use super::keys::Keys;
use super::profiled::Profiled;
use super::shown::Whole;
use super::sorter::Means;
use super::walk::{Budget, Context, Counters, Found, Progress, Taken, Walk};
use crate::namespace::{OwnershipFilter, Slot, SlotState};
use crate::operation::ReadLevel;
use crate::view::View;
use crate::{Node, Operation};
use document::error::Phase;
use document::{Collation, Doc, DocBuf, DocWriter, Document, Result, Value, bail, meter};
use query::QueryContext;
use query::explain::inclusion_of;
use query::matcher::Matcher;
use query::pipeline::index_key;
use query::planner::{Distinct, Hint, Plan};
use query::projection::Projection;
use query::sort::SortSpec;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use storage::{Collection, CollectionSnapshot};

/// Records that a query may examine, and time it may take, under the latch before it takes a snapshot instead.
const LATCHED_RECORDS: u32 = 256;
const LATCHED_TIME: Duration = Duration::from_micros(200);
/// Quanta of evaluation under the latch, likewise.
pub(crate) const LATCHED_QUANTA: u32 = 2;

/// What is wanted of a collection.
#[derive(Default)]
pub struct Wanted<'a> {
    pub filter: Matcher,
    pub sort: Option<&'a SortSpec>,
    pub hint: Option<&'a Hint>,
    pub min: Option<&'a Document>,
    pub max: Option<&'a Document>,
    /// What a blocking sort may use.
    pub sort_means: Means,
    /// How `min` and `max` are read.
    pub collation: Collation,
    pub shape: Shape,
    /// The plan, where it was chosen before.
    pub chosen: Option<Plan>,
    /// The indexes that the settings of the query allow.
    pub allowed: Option<&'a [Value]>,
    /// The paths that the caller reads, where it does not read whole documents and no projection says so.
    pub needed: Option<Vec<String>>,
    /// Documents are cut down to the fields of `needed`.
    pub narrows: bool,
    /// Hides what this shard does not own.
    pub owner: Option<Arc<dyn OwnershipFilter>>,
    /// Only one record for each value of a path is asked for.
    pub distinct: Option<&'a Distinct>,
}

/// What happens to the records found.
#[derive(Clone, Default)]
pub struct Shape {
    pub skip: u64,
    pub limit: Option<u64>,
    pub projection: Option<Projection>,
    pub return_key: bool,
    pub show_record_id: bool,
    /// Each document gets the key that it was found by in the field of `{$meta: "indexKey"}`.
    pub index_key: bool,
}

impl Shape {
    /// Whether the keys are shown by which documents are found.
    fn shows_keys(&self) -> bool {
        self.return_key || self.index_key
    }
}

/// What opening a query met.
pub enum Opened {
    /// The namespace is a view.
    View(Arc<View>),
    /// There is no such collection.
    Absent,
    Query(Box<Query>),
}

/// A query on one collection.
pub struct Query {
    walk: Walk,
    shape: Shape,
    /// Set where index keys are shown.
    keys: Option<Keys>,
    skipped: u64,
    returned: u64,
    owner: Option<Arc<dyn OwnershipFilter>>,
    /// It came through a router: it must not see what a shard comes to hold without owning it.
    routed: bool,
    pub counters: Counters,
    /// Present while the query has not ended.
    snapshot: Option<CollectionSnapshot>,
    ended: bool,
    /// Its snapshot was given back while it was idle.
    released: bool,
    pub uuid: [u8; 16],
    /// Already counted in the node's totals.
    noted: Counters,
    watched: Watched,
    /// The namespace, where a fail point makes the query pause between its slices.
    pauses: Option<String>,
    /// While the profiler is to see what the plan does.
    profiled: Option<Box<Profiled>>,
}

/// The filter that hides what this shard does not own, for a request that came with a version.
pub fn ownership(state: &SlotState, op: &Operation) -> Option<Arc<dyn OwnershipFilter>> {
    let versioned = op.received.shard.is_some() && op.read_concern.level != ReadLevel::Available;
    state.placement.as_ref().filter(|_| versioned).and_then(|p| p.filter())
}

impl Wanted<'_> {
    /// The paths that must be known of what is found; `None` where it is all of the document.
    pub(super) fn read_paths(&self) -> Option<Vec<String>> {
        if self.shape.shows_keys() || self.shape.show_record_id {
            return None;
        }
        let mut paths = match (&self.shape.projection, &self.needed) {
            (Some(projection), _) => projection.needed_fields()?,
            (None, needed) => needed.clone()?,
        };
        paths.extend(self.owner.iter().flat_map(|o| o.paths()));
        Some(paths)
    }
    /// The projection that cuts documents down to what is needed; keys tell no more anyway.
    pub(crate) fn narrowing(&self) -> Option<Projection> {
        let needed = self.needed.as_ref().filter(|n| self.narrows && !n.is_empty())?;
        keeping(needed.iter().filter_map(|path| path.split('.').next()).collect())
    }
    /// The same where nothing is needed of a document but that it is there.
    fn emptying(&self) -> Option<Projection> {
        self.needed.as_ref().filter(|needed| self.narrows && needed.is_empty())?;
        keeping(BTreeSet::from(["_id"]))
    }
    /// How many records a blocking sort has to keep.
    fn kept(&self) -> Option<usize> {
        usize::try_from(self.shape.limit?.checked_add(self.shape.skip)?).ok()
    }
}

/// The projection to fields that are read by their names.
fn keeping(fields: BTreeSet<&str>) -> Option<Projection> {
    let spec = inclusion_of(fields.into_iter().map(str::to_string)).to_doc_buf();
    let kept = Projection::parse(spec.doc(), &Matcher::always(), &QueryContext::at(0)).ok()?;
    Some(kept.first_of_each())
}

impl Query {
    /// Bytes that its blocking sort holds.
    pub fn sorted_bytes(&self) -> usize {
        self.walk.sorted_bytes()
    }
    /// Plans and runs the first slice under the latch, where the versions are checked; takes a snapshot there if the
    /// query goes on.
    pub async fn open(
        node: &Node,
        op: &Operation,
        slot: &Slot,
        wanted: Wanted<'_>,
        out: &mut dyn Output,
    ) -> Result<Opened> {
        let wanted = Wanted { allowed: op.allowed_indexes.get().map(Vec::as_slice), ..wanted };
        let opened = slot.read(op, |state| {
            if let Some(view) = &state.view {
                return Ok(Opened::View(view.clone()));
            }
            let Some(collection) = &state.collection else { return Ok(Opened::Absent) };
            let owner = ownership(state, op);
            let distinct = wanted.distinct.filter(|_| owner.is_none());
            let wanted = Wanted { owner, distinct, ..wanted };
            let choice = wanted.choose(node, collection, Memory::Used)?;
            note_use(node, op, &slot.ns, &choice.plan);
            note_hashes(node, op, &wanted, &choice.plan, collection);
            check_time(node, op)?;
            if node.failpoints.should("planExecutorAlwaysFails") {
                bail!(4382101, "PlanExecutor hit planExecutorAlwaysFails fail point");
            }
            let profiled =
                Profiled::of(node, &choice, &wanted, collection.is_clustered(), || summary(&choice.plan));
            let mut query = Query::begin(collection, choice.plan, wanted);
            query.profiled = profiled;
            query.watched = Watched::new(choice.cached);
            let mut budget = Budget::of(LATCHED_RECORDS, LATCHED_TIME);
            if node.failpoints.is_set(YIELD) {
                // One record under the latch, so that the query has a pause to be held in.
                budget = Budget::of(1, LATCHED_TIME);
                query.pauses = Some(slot.ns.clone());
            }
            // An empty batch asks nothing of the plan, so its cursor stays open over an empty collection.
            let begun = match out.is_full() {
                true => Ok(Progress::Stopped),
                false => meter::bounded(LATCHED_QUANTA, || query.advance(collection, &mut budget, out)),
            };
            match begun {
                Ok(_) => {}
                // The filter or the projection is dear: it is evaluated on the snapshot.
                Err(e) if e.code == meter::OVERRUN => {}
                Err(e) => return Err(e.at(Phase::Running)),
            }
            query.note(node, op);
            query.routed = op.received.shard.is_some();
            if !query.ended {
                query.snapshot = Some(collection.snapshot());
            }
            Ok(Opened::Query(Box::new(query)))
        });
        let opened = opened.await;
        node.plan_caches.trim();
        opened
    }

    /// A query at its beginning, over whatever [`Query::advance`] is then given.
    pub fn begin(collection: &Collection, plan: Plan, mut wanted: Wanted<'_>) -> Query {
        let kept = wanted.kept();
        if wanted.shape.projection.is_none() && !plan.is_covered() {
            wanted.shape.projection = wanted.narrowing().or_else(|| wanted.emptying());
        }
        let keys = wanted.shape.shows_keys().then(|| Keys::of_collection(collection.is_clustered()));
        Query {
            walk: Walk::with_sort(plan, wanted.sort, kept, &wanted.sort_means),
            shape: wanted.shape,
            keys,
            skipped: 0,
            returned: 0,
            owner: wanted.owner,
            routed: false,
            counters: Counters::default(),
            snapshot: None,
            ended: false,
            released: false,
            uuid: collection.uuid(),
            noted: Counters::default(),
            watched: Watched::default(),
            pauses: None,
            profiled: None,
        }
    }

    /// What each access to the collection has examined, in the order in which the plan names them.
    pub fn examined(&self) -> Vec<Counters> {
        let mut out = Vec::new();
        self.walk.examined(self.counters, &mut out);
        out
    }
    fn whole(&self) -> Whole {
        let (returned, counters, ended) = (self.returned, self.counters, self.ended);
        Whole { returned, counters, examined: self.examined(), ended }
    }
    /// Whether it looks at all documents of the collection.
    pub fn scans(&self) -> bool {
        matches!(self.walk, Walk::Scan(_))
    }
    pub fn ended(&self) -> bool {
        self.ended
    }
    pub fn returned(&self) -> u64 {
        self.returned
    }
    /// Gives the snapshot back while nobody asks for more; the position stays. A routed query keeps its snapshot, and so
    /// does one whose sort is under way, for it holds record ids of that moment.
    pub fn release(&mut self) -> Option<CollectionSnapshot> {
        // What it owned when it began may have been deleted here since, after a move: only the snapshot still has it. A
        // collection that was not sharded then may have been sharded and moved since.
        if !self.walk.is_resumable() || self.routed {
            return None;
        }
        let given = self.snapshot.take()?;
        self.walk.released(&given);
        self.released = true;
        Some(given)
    }
    /// Takes a new snapshot of the collection after [`Query::release`].
    pub fn resume(&mut self, collection: &Collection) {
        if std::mem::take(&mut self.released) {
            self.snapshot = Some(collection.snapshot());
            self.walk.resumed();
        }
    }
    pub fn is_released(&self) -> bool {
        self.released
    }
    /// Adds what was examined since the last call to the node's totals, and lets the plan be judged by it.
    fn note(&mut self, node: &Node, op: &Operation) {
        let new = self.counters.since(self.noted);
        node.index_use.totals.note(new);
        op.note_examined(new.keys, new.docs);
        self.noted = self.counters;
        self.watched.note(self.counters, self.returned + self.skipped);
        if let Some(profiled) = &self.profiled {
            profiled.note(op, &self.whole());
        }
    }

    /// One slice over `view`.
    pub fn advance<V: storage::CollectionView>(
        &mut self,
        view: &V,
        budget: &mut Budget,
        out: &mut dyn Output,
    ) -> Result<Progress> {
        let Query { walk, shape, keys, skipped, returned, owner, counters, .. } = self;
        let limit = shape.limit.unwrap_or(u64::MAX);
        let mut reached = *returned >= limit;
        if reached {
            self.ended = true;
            return Ok(Progress::End);
        }
        let mut context = Context { owner: owner.as_deref(), counters, keys: keys.as_ref() };
        let progress = walk.run(view, &mut context, budget, &mut |found| {
            if *skipped < shape.skip {
                *skipped += 1;
                return Ok(Taken::More);
            }
            if out.is_full() || *returned >= limit {
                return Ok(Taken::Refused);
            }
            let taken = match (&shape.projection, &*keys, shape.show_record_id) {
                (None, None, false) => out.put(found.doc)?,
                (Some(p), None, false) => out.put_with(&mut |bytes| p.apply(found.doc, bytes))?,
                (_, keys, _) => {
                    let key = keys.as_ref().and_then(|keys| keys.of(found.record));
                    out.put_with(&mut |bytes| shaped(found, shape, key.as_ref(), bytes))?
                }
            };
            if !taken {
                return Ok(Taken::Refused);
            }
            keys.iter().for_each(|keys| keys.forget(found.record));
            *returned += 1;
            reached = *returned >= limit;
            Ok(if reached || out.is_full() { Taken::Last } else { Taken::More })
        })?;
        if progress == Progress::End || reached {
            self.ended = true;
            self.snapshot = None;
            return Ok(Progress::End);
        }
        Ok(progress)
    }

    /// Goes on over the query's snapshot until `out` is full or the query has ended.
    pub async fn fill(&mut self, node: &Node, op: &Operation, out: &mut dyn Output) -> Result<()> {
        while !self.ended && !out.is_full() {
            op.check_interrupt()?;
            if let Some(ns) = &self.pauses {
                node.failpoints.pause_operation(op, YIELD, ns).await?;
            }
            let Some(snapshot) = self.snapshot.take() else {
                self.ended = true;
                return Ok(());
            };
            let progress = self.advance(&snapshot, &mut Budget::slice(), out)?;
            self.note(node, op);
            if !self.ended {
                self.snapshot = Some(snapshot);
            }
            match progress {
                Progress::Slice => crate::lane::give_way(op).await?,
                Progress::Stopped | Progress::End => break,
            }
        }
        Ok(())
    }
}

/// The fail point between two slices.
const YIELD: &str = "setYieldAllLocksHang";

/// A read at a cluster time is answered while nothing was written after that time.
///
/// # Errors
/// SnapshotUnavailable (246).
pub fn check_time(node: &Node, op: &Operation) -> Result<()> {
    match op.read_concern.at_cluster_time.filter(|_| op.transaction().is_none()) {
        Some(at) if node.log.last_optime().ts > at.as_u64() => bail!(
            SNAPSHOT_UNAVAILABLE,
            "Read timestamp Timestamp({}, {}) is older than the oldest available timestamp.",
            at.secs,
            at.inc
        ),
        _ => Ok(()),
    }
}

/// Notes the query's hashes for the profiler. One by `_id` has none.
pub(crate) fn note_hashes(
    node: &Node,
    op: &Operation,
    wanted: &Wanted<'_>,
    plan: &Plan,
    collection: &Collection,
) {
    if node.profiling.load(std::sync::atomic::Ordering::Relaxed) && !matches!(plan, Plan::IdHack { .. }) {
        let hashes = wanted.hashes(crate::plan_cache::signature(&super::index_infos(collection)));
        op.note_hashes(hashes.shape, hashes.key);
    }
}

fn scans_collection(plan: &Plan) -> bool {
    match plan.access() {
        Plan::CollScan { .. } => true,
        Plan::Or(branches) | Plan::Merge { branches, .. } => branches.iter().any(scans_collection),
        _ => false,
    }
}

/// Counts the indexes and scans that a plan uses, and notes the plan for the profiler; one that may well be slow also for the log.
pub(crate) fn note_use(node: &Node, op: &Operation, ns: &str, plan: &Plan) {
    let (sorts, scans) = (plan.needs_sort(), scans_collection(plan));
    if sorts || scans || node.profiling.load(std::sync::atomic::Ordering::Relaxed) {
        op.note_plan(summary(plan));
    }
    if sorts {
        node.index_use.totals.sorts.increment();
    }
    if scans {
        node.index_use.note_scan(ns, false);
    }
    match plan.access() {
        several @ (Plan::Or(_) | Plan::Merge { .. }) => {
            // A query uses an index once, by however many scans.
            let mut used = BTreeSet::new();
            visit_indexes(several, &mut |index| {
                used.insert(index);
            });
            used.into_iter().for_each(|index| node.index_use.note(ns, index));
        }
        one => visit_indexes(one, &mut |index| node.index_use.note(ns, index)),
    }
}

/// A plan in a few words: `IXSCAN { a: 1 }, IXSCAN { b: 1 }`.
pub(crate) fn summary(plan: &Plan) -> String {
    match plan {
        Plan::Eof => "EOF".to_string(),
        Plan::IdHack { .. } => "IDHACK".to_string(),
        Plan::CollScan { .. } => "COLLSCAN".to_string(),
        Plan::Index { scan, .. } => {
            let fields: Vec<String> =
                scan.key.iter().map(|(name, v)| format!("{name}: {}", kind(v))).collect();
            let stage = if scan.skips.is_some() { "DISTINCT_SCAN" } else { "IXSCAN" };
            format!("{stage} {{ {} }}", fields.join(", "))
        }
        Plan::Or(branches) | Plan::Merge { branches, .. } => {
            branches.iter().map(summary).collect::<Vec<String>>().join(", ")
        }
        Plan::Sort { input, .. } => summary(input),
        Plan::Near { input, .. } => summary(input).replacen("IXSCAN", "GEO_NEAR", 1),
    }
}

fn kind(v: &document::Value) -> String {
    match (v.as_f64(), v.as_str()) {
        (Some(n), _) => n.to_string(),
        (_, Some(s)) => format!("\"{s}\""),
        _ => "1".to_string(),
    }
}

/// Calls `visit` with the name of the index of each scan of a plan.
fn visit_indexes<'a>(plan: &'a Plan, visit: &mut impl FnMut(&'a str)) {
    match plan {
        Plan::IdHack { .. } => visit("_id_"),
        Plan::Index { scan, .. } => visit(&scan.index),
        Plan::Or(branches) | Plan::Merge { branches, .. } => {
            branches.iter().for_each(|b| visit_indexes(b, visit));
        }
        Plan::Sort { input, .. } | Plan::Near { input, .. } => visit_indexes(input, visit),
        Plan::Eof | Plan::CollScan { .. } => {}
    }
}

/// A result with an index key or a record id. `returnKey` shows the key alone.
fn shaped(found: Found<'_>, shape: &Shape, key: Option<&DocBuf>, out: &mut Vec<u8>) -> Result<()> {
    if shape.return_key {
        out.extend_from_slice(key.map_or(Doc::empty().bytes(), DocBuf::bytes));
        return Ok(());
    }
    let (mut dressed, mut projected) = (Vec::new(), Vec::new());
    let mut source = found.doc;
    if let Some(key) = key {
        DocWriter::write(&mut dressed, |w| {
            w.fields_of(source);
            w.document(index_key::FIELD, key.doc());
        });
        source = Doc::from_validated(&dressed);
    }
    if let Some(p) = &shape.projection {
        p.apply(source, &mut projected)?;
        source = Doc::from_validated(&projected);
    }
    // The field of the key is no part of the document.
    let hides_key = key.is_some() && shape.projection.as_ref().is_some_and(|p| !p.is_inclusion());
    DocWriter::write(out, |w| {
        source.iter().filter(|e| !hides_key || e.name() != index_key::FIELD).for_each(|e| w.element(&e));
        if shape.show_record_id {
            w.i64("$recordId", found.record as i64);
        }
    });
    Ok(())
}
