//! Index filters, and what trials of plans have shown: for each collection, by the shape of the query.
//!
//! ```text
//! no entry ──a trial──> inactive, works w ──a trial, works <= w──> active ──a query far dearer than w──> inactive
//!                          └──a trial, works > w──> inactive, works 2w
//! ```
//! An active entry saves the trial. An entry counts only as long as the collection has the indexes it was made with, which
//! is asked at each use: nothing has to tell the cache of changes to the catalog. A query with one plan, such as one by `_id`, comes
//! nowhere near. Collections are known by UUID, and what is dropped takes its filters along.
//!
//! What all collections' entries hold is bounded for the node (`planCacheSize`): above it the oldest go, wherever they are.

use crate::exec::choice::{Trial, WORKS_MAX};
use crate::exec::query::Wanted;
use crate::stripe::Counter;
use document::{Document, Result, Value, ValueRef, bail, doc};
use parking_lot::{Mutex, RwLock};
use query::explain::{Extras, winning_plan};
use query::planner::{IndexInfo, Plan};
use query::shape::{Planned, plan_hash, plan_shape};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Entries kept for one collection, and collections kept.
const ENTRIES_MAX: usize = 1000;
const COLLECTIONS_MAX: usize = 1000;
/// Bytes of shapes and of what is shown that are kept for one collection.
const BYTES_MAX: usize = 1024 * 1024;
/// The longest shape that has an entry, and the most bytes of what an entry keeps to be shown.
const SHAPE_BYTES_MAX: usize = 16 * 1024;
const SHOWN_BYTES_MAX: usize = 16 * 1024;
/// A plan that does so many times the work of its trial is tried again.
const WORKS_FACTOR: u64 = 10;

/// Of what `planCacheSize` allows, the part that is left when it was used up, in percent: so that eviction is rare.
const KEPT_PERCENT: usize = 80;

/// What `planCacheSize` says: a part of the memory that there is, or a number of bytes.
///
/// # Errors
/// BadValue (2).
pub fn parse_size(text: &str, memory: usize) -> Result<usize> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
    let value = number.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    let unit = match (text[number.len()..].to_ascii_uppercase().as_str(), value) {
        ("%", Some(n)) if n < 100.0 => memory as f64 / 100.0,
        ("" | "B", Some(_)) => 1.0,
        ("KB", Some(_)) => 1024.0,
        ("MB", Some(_)) => 1024.0 * 1024.0,
        ("GB", Some(_)) => 1024.0 * 1024.0 * 1024.0,
        _ => bail!(BAD_VALUE, "Unable to parse value string '{text}' as a size of the plan cache"),
    };
    Ok((value.unwrap_or(0.0) * unit) as usize)
}

/// Any number until one is set.
struct Bound(AtomicUsize);

impl Default for Bound {
    fn default() -> Bound {
        Bound(AtomicUsize::new(usize::MAX))
    }
}

/// The caches of a node.
#[derive(Default)]
pub struct PlanCaches {
    /// What all entries weigh.
    held: Arc<AtomicUsize>,
    /// What they may weigh.
    bound: Bound,
    /// The number of filters anywhere: without any no query is asked for its shape.
    filters: AtomicUsize,
    collections: RwLock<HashMap<[u8; 16], Arc<PlanCache>>>,
    /// Queries that took a remembered plan, those that had to try several, and those that had only one.
    pub hits: Counter,
    pub misses: Counter,
    pub skipped: Counter,
}

/// The cache of one collection.
#[derive(Default)]
pub struct PlanCache {
    held: Arc<AtomicUsize>,
    filters: RwLock<Vec<IndexFilter>>,
    entries: Mutex<HashMap<Vec<u8>, Arc<Entry>>>,
}

/// The indexes that queries of a shape may use.
#[derive(Clone, Debug)]
pub struct IndexFilter {
    pub shape: Vec<u8>,
    pub query: Document,
    pub sort: Document,
    pub projection: Document,
    pub collation: Option<Document>,
    /// Names and key patterns.
    pub indexes: Vec<Value>,
}

/// What a trial has shown.
pub struct Entry {
    /// Of the indexes the collection had.
    signature: u64,
    identity: String,
    works: AtomicU64,
    active: AtomicBool,
    filtered: bool,
    created_ms: i64,
    /// All but what changes, as `$planCacheStats` shows it; no more than the hashes where it is long.
    shown: Document,
    /// The length of `shown`.
    bytes: usize,
    weight: Option<Weight>,
}

/// A part of what the node's entries weigh; taken off again when it is dropped.
struct Weight {
    held: Arc<AtomicUsize>,
    bytes: usize,
}

impl Weight {
    fn new(held: &Arc<AtomicUsize>, bytes: usize) -> Weight {
        held.fetch_add(bytes, Relaxed);
        Weight { held: held.clone(), bytes }
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Relaxed);
    }
}

impl PlanCaches {
    /// `serverStatus.metrics.query.planCache`.
    pub fn shown(&self) -> Document {
        let shapes: usize = self.collections.read().values().map(|cache| cache.entries.lock().len()).sum();
        doc! {
            "totalQueryShapes": shapes as i64, "totalSizeEstimateBytes": self.held.load(Relaxed) as i64,
            "classic": { "hits": self.hits.get(), "misses": self.misses.get(), "skipped": self.skipped.get() },
        }
    }
    /// The cache of a collection, if it has one.
    pub fn of(&self, uuid: [u8; 16]) -> Option<Arc<PlanCache>> {
        self.collections.read().get(&uuid).cloned()
    }
    /// The cache of a collection, made if need be.
    pub fn make(&self, uuid: [u8; 16]) -> Arc<PlanCache> {
        if let Some(cache) = self.of(uuid) {
            return cache;
        }
        let mut collections = self.collections.write();
        if collections.len() >= COLLECTIONS_MAX {
            // Those with filters are few and were asked for.
            collections.retain(|_, cache| !cache.filters.read().is_empty());
        }
        let new = || Arc::new(PlanCache { held: self.held.clone(), ..PlanCache::default() });
        collections.entry(uuid).or_insert_with(new).clone()
    }
    /// Sets what all entries together may weigh.
    pub fn set_bound(&self, bytes: usize) {
        self.bound.0.store(bytes, Relaxed);
        self.trim();
    }
    /// Forgets the oldest entries where all weigh too much. That looks at every entry of the node, so no latch is held
    /// meanwhile.
    pub fn trim(&self) {
        let bound = self.bound.0.load(Relaxed);
        let held = self.held.load(Relaxed);
        if held <= bound {
            return;
        }
        let collections: Vec<Arc<PlanCache>> = self.collections.read().values().cloned().collect();
        let mut oldest: Vec<(i64, usize, Vec<u8>)> = Vec::new();
        for (at, cache) in collections.iter().enumerate() {
            oldest.extend(cache.entries.lock().iter().map(|(shape, e)| (e.created_ms, at, shape.clone())));
        }
        oldest.sort();
        let mut over = held - bound / 100 * KEPT_PERCENT;
        for (_, at, shape) in oldest {
            let gone = collections[at].entries.lock().remove(&shape);
            over = over.saturating_sub(gone.and_then(|e| e.weight.as_ref().map(|w| w.bytes)).unwrap_or(0));
            if over == 0 {
                break;
            }
        }
    }
    /// Forgets a collection that was dropped.
    pub fn forget(&self, uuid: [u8; 16]) {
        if let Some(cache) = self.collections.write().remove(&uuid) {
            self.filters.fetch_sub(cache.filters.read().len(), Relaxed);
        }
    }

    /// Sets a filter in place of one of the same shape. Plans of the shape are forgotten.
    pub fn set_filter(&self, uuid: [u8; 16], filter: IndexFilter) {
        let cache = self.make(uuid);
        let mut filters = cache.filters.write();
        cache.entries.lock().remove(&filter.shape);
        let before = filters.len();
        filters.retain(|f| f.shape != filter.shape);
        filters.push(filter);
        self.filters.fetch_add(filters.len() - before, Relaxed);
    }
    /// Removes the filter of a shape, or all.
    pub fn clear_filters(&self, uuid: [u8; 16], shape: Option<&[u8]>) {
        let Some(cache) = self.of(uuid) else { return };
        let mut filters = cache.filters.write();
        let before = filters.len();
        filters.retain(|f| shape.is_some_and(|s| f.shape != s));
        cache.clear(shape);
        self.filters.fetch_sub(before - filters.len(), Relaxed);
    }

    /// Takes away the indexes that a filter does not name; true when there is a filter for the query.
    pub fn restrict(&self, uuid: [u8; 16], wanted: &Wanted<'_>, indexes: &mut Vec<IndexInfo>) -> bool {
        if self.filters.load(Relaxed) == 0 {
            return false;
        }
        let Some(cache) = self.of(uuid) else { return false };
        let filters = cache.filters.read();
        if filters.is_empty() {
            return false;
        }
        let shape = wanted.plan_shape();
        let Some(filter) = filters.iter().find(|f| f.shape == shape) else { return false };
        indexes.retain(|index| crate::exec::choice::names(&filter.indexes, index));
        true
    }
}

impl PlanCache {
    pub fn filters(&self) -> Vec<IndexFilter> {
        self.filters.read().clone()
    }
    /// Forgets the plan of a shape, or all.
    pub fn clear(&self, shape: Option<&[u8]>) {
        match shape {
            Some(shape) => drop(self.entries.lock().remove(shape)),
            None => self.entries.lock().clear(),
        }
    }
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.entries.lock().is_empty()
    }
    /// Keeps everybody from the entries.
    #[cfg(test)]
    pub fn hold(&self) -> impl Drop + '_ {
        self.entries.lock()
    }
    /// The entry of a shape that holds for these indexes.
    pub fn entry(&self, shape: &[u8], signature: u64) -> Option<Arc<Entry>> {
        self.entries.lock().get(shape).filter(|e| e.signature == signature).cloned()
    }
    /// `$planCacheStats`.
    pub fn shown(&self, signature: u64, host: &str) -> Vec<Document> {
        let entries = self.entries.lock();
        entries.values().filter(|e| e.signature == signature).map(|e| e.shown(host)).collect()
    }
    /// Enters what a trial has shown, unless the shape is too long to be kept.
    pub fn store(&self, shape: Vec<u8>, mut entry: Entry) {
        if shape.len() > SHAPE_BYTES_MAX {
            return;
        }
        entry.weight = Some(Weight::new(&self.held, shape.len() + entry.bytes));
        let mut entries = self.entries.lock();
        if let Some(old) = entries.remove(&shape).filter(|old| old.signature == entry.signature) {
            let (was, is) = (old.works.load(Relaxed), entry.works.load(Relaxed));
            entry.active.store(is <= was, Relaxed);
            if is > was {
                entry.works.store(was.saturating_mul(2), Relaxed);
            }
        }
        let held = |(shape, entry): (&Vec<u8>, &Arc<Entry>)| shape.len() + entry.bytes;
        let room = BYTES_MAX.saturating_sub(shape.len() + entry.bytes);
        while entries.len() >= ENTRIES_MAX || entries.iter().map(held).sum::<usize>() > room {
            let oldest = entries.iter().min_by_key(|(_, e)| e.created_ms).map(|(shape, _)| shape.clone());
            let Some(oldest) = oldest else { break };
            entries.remove(&oldest);
        }
        entries.insert(shape, Arc::new(entry));
    }
}

/// What `$planCacheStats` shows of a query and its trials.
fn details(wanted: &Wanted<'_>, best: &Plan, trials: &[Trial]) -> Document {
    let mut created = doc! { "query": wanted.filter.filter().to_document() };
    created.push("sort", wanted.sort.map(|s| s.to_document()).unwrap_or_default());
    let projection = wanted.shape.projection.as_ref();
    created.push("projection", projection.map(|p| p.spec().to_document()).unwrap_or_default());
    if let Some(collation) = wanted.collation.document() {
        created.push("collation", collation.clone());
    }
    let cached = winning_plan(best, &Extras { projection, ..Extras::default() });
    let statistics: Vec<Document> = trials.iter().map(|t| t.statistics(wanted)).collect();
    let scores: Vec<Value> = trials.iter().map(|t| Value::Double(t.score)).collect();
    doc! {
        "createdFromQuery": created, "cachedPlan": cached, "creationExecStats": statistics,
        "candidatePlanScores": scores,
    }
}

impl Entry {
    pub fn new(
        wanted: &Wanted<'_>,
        signature: u64,
        filtered: bool,
        now_ms: i64,
        best: &Plan,
        trials: &[Trial],
    ) -> Entry {
        let won = trials.first();
        let hashes = wanted.hashes(signature);
        let mut shown = doc! {
            "version": "1", "queryHash": hashes.shape.as_str(), "planCacheShapeHash": hashes.shape.as_str(),
            "planCacheKey": hashes.key.as_str(), "timeOfCreation": Value::DateTime(now_ms),
        };
        if wanted.filter.filter().bytes().len() <= SHOWN_BYTES_MAX {
            let details = details(wanted, best, trials);
            if details.to_vec().len() <= SHOWN_BYTES_MAX {
                shown.0.extend(details.0);
            }
        }
        Entry {
            signature,
            identity: best.identity().unwrap_or_default(),
            // Without a trial it counts as one that found nothing.
            works: AtomicU64::new(won.map_or(u64::from(WORKS_MAX), |t| t.works)),
            active: AtomicBool::new(false),
            filtered,
            created_ms: now_ms,
            bytes: shown.to_vec().len(),
            weight: None,
            shown,
        }
    }
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }
    pub fn is_of(&self, plan: &Plan) -> bool {
        plan.identity().is_some_and(|i| i == self.identity)
    }
    /// Takes note of the work a query by this plan has done.
    pub fn note(&self, works: u64) {
        if works > self.works.load(Relaxed).saturating_mul(WORKS_FACTOR).max(WORKS_FACTOR) {
            self.active.store(false, Relaxed);
        }
    }
    fn shown(&self, host: &str) -> Document {
        let mut out = self.shown.clone();
        out.push("isActive", self.is_active());
        out.push("works", i64::try_from(self.works.load(Relaxed)).unwrap_or(i64::MAX));
        out.push("worksType", "works");
        out.push("indexFilterSet", self.filtered);
        out.push("estimatedSizeBytes", self.bytes as i64);
        out.push("host", host);
        out
    }
}

/// The hashes of a query's plan shape, alone and with the indexes there are.
pub struct Hashes {
    pub shape: String,
    pub key: String,
}

impl Wanted<'_> {
    fn planned<T>(&self, f: impl FnOnce(&Planned<'_>) -> T) -> T {
        let sort = self.sort.map(|s| s.to_document());
        f(&Planned {
            filter: &self.filter,
            sort: sort.as_ref(),
            projection: self.shape.projection.as_ref().map(|p| p.spec()),
            collation: &self.collation,
        })
    }
    pub fn plan_shape(&self) -> Vec<u8> {
        self.planned(|p| plan_shape(p).bytes().to_vec())
    }
    pub fn hashes(&self, signature: u64) -> Hashes {
        self.hashes_with(signature, &[])
    }
    /// The same, where something beside the query tells it from others.
    pub fn hashes_with(&self, signature: u64, beside: &[u8]) -> Hashes {
        self.planned(|p| {
            let shape = plan_shape(p);
            let key = [&signature.to_be_bytes(), beside].concat();
            Hashes { shape: plan_hash(&shape, beside), key: plan_hash(&shape, &key) }
        })
    }
}

/// What a plan may depend on of a collection's indexes.
pub fn signature(indexes: &[IndexInfo]) -> u64 {
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    for i in indexes {
        (&i.name, i.hidden, i.multikey, &i.arrays, i.unique, i.sparse).hash(&mut hasher);
        i.key.to_vec().hash(&mut hasher);
    }
    hasher.finish()
}

/// The `indexes` of planCacheSetFilter and of query settings.
///
/// # Errors
/// BadValue (2).
pub fn index_names(v: Option<ValueRef<'_>>) -> Result<Vec<Value>> {
    let Some(ValueRef::Array(list)) = v else { bail!(BAD_VALUE, "required field indexes must be an array") };
    if list.is_empty() {
        bail!(BAD_VALUE, "required field indexes must contain at least one index");
    }
    list.iter()
        .map(|e| match e.value() {
            ValueRef::Document(d) if d.is_empty() => {
                bail!(BAD_VALUE, "each item in indexes must not be empty")
            }
            v @ (ValueRef::Document(_) | ValueRef::String(_)) => Ok(v.to_value()),
            _ => bail!(BAD_VALUE, "each item in indexes must be an object or string"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(created_ms: i64, bytes: usize) -> Entry {
        Entry {
            signature: 1,
            identity: String::new(),
            works: AtomicU64::new(1),
            active: AtomicBool::new(true),
            filtered: false,
            created_ms,
            shown: Document::new(),
            bytes,
            weight: None,
        }
    }

    #[test]
    fn the_oldest_entries_of_all_collections_go_when_all_weigh_too_much() {
        let caches = PlanCaches::default();
        for age in 0..20i64 {
            let cache = caches.make([(age % 10) as u8; 16]);
            cache.store(vec![age as u8], entry(age, 999));
            caches.trim();
        }
        let there = |age: i64| caches.of([(age % 10) as u8; 16]).unwrap().entry(&[age as u8], 1).is_some();
        assert!((0..20).all(there), "without a bound nothing goes");
        caches.set_bound(10_000);
        assert_eq!((0..20).filter(|age| there(*age)).collect::<Vec<i64>>(), (12..20).collect::<Vec<i64>>());
        // An entry in another's place weighs once.
        caches.make([9; 16]).store(vec![19], entry(19, 999));
        assert_eq!(caches.held.load(Relaxed), 8000);
        caches.forget([9; 16]);
        caches.make([8; 16]).clear(None);
        assert_eq!(caches.held.load(Relaxed), 6000);
    }

    #[test]
    fn the_size_is_a_part_of_the_memory_or_a_number_of_bytes() {
        let sizes = [("5%", 50), ("0%", 0), ("7", 7), ("2KB", 2048), ("1 mb", 1 << 20), ("1.5GB", 3 << 29)];
        for (text, bytes) in sizes {
            assert_eq!(parse_size(text, 1000).unwrap(), bytes, "{text}");
        }
        for text in ["", "100%", "-1", "-5%", "5TB", "x", "MB", "nan", "inf"] {
            assert_eq!(parse_size(text, 1000).unwrap_err().code, 2, "{text}");
        }
    }
}
