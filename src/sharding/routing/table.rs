//! The routing table of one sharded collection: immutable, shared, replaced as a whole by a refresh.
//!
//! Chunks stand in key order in pages of at most [`PAGE`] behind `Arc`s, so a refresh that brings a few changed
//! chunks copies the pages they fall into and the list of pages, not the million chunks beside them. A lookup is a
//! binary search over the pages' first keys and one within the page.
//!
//! Invariant: chunks cover the key space from MinKey to MaxKey without gap or overlap; [`RoutingTable::update`]
//! refuses anything else with ConflictingOperationInProgress, and the refresh starts over from nothing.

use crate::chunk::{Chunk, ShardId};
use crate::config::shown;
use crate::key_pattern::ShardKeyPattern;
use document::{Collation, Document, ObjectId, Result, Timestamp, bail};
use protocol::version::ShardVersion;
use query::timeseries::Options;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most chunks of one page.
const PAGE: usize = 256;

/// When the collection was put back to a snapshot: the histories of its chunks do not say who had its data before. DO NOT CHANGE: on disk.
pub const RESTORED: &str = "restoredAt";

/// The definition of the time series whose buckets a collection holds. DO NOT CHANGE: clients read it.
pub const SERIES: &str = "timeseriesFields";

/// Placement of a sharded collection as of its collection version.
#[derive(Clone, Debug)]
pub struct RoutingTable {
    pub ns: String,
    pub uuid: [u8; 16],
    pub epoch: ObjectId,
    pub timestamp: Timestamp,
    pub key: Arc<ShardKeyPattern>,
    pub unique: bool,
    /// How strings compare in the collection unless a command says otherwise; never in its shard key.
    pub default_collation: Collation,
    /// Neither `allowMigrations` nor `permitMigrations` of the collection's document is false.
    pub allow_migrations: bool,
    /// Tracked but not sharded: one chunk, wherever it is.
    pub unsplittable: bool,
    /// When it was put back to a snapshot; 0: never.
    pub restored: Timestamp,
    /// It holds the buckets of a time series with these options.
    pub series: Option<Options>,
    pages: Vec<Arc<Vec<Arc<Chunk>>>>,
    shards: BTreeMap<ShardId, Owned>,
    version: Timestamp,
}

/// What a shard owns of a collection.
#[derive(Clone, Copy, Debug, Default)]
struct Owned {
    /// The highest version among its chunks.
    version: Timestamp,
    chunks: usize,
    /// When the last of them came.
    newest: Timestamp,
}

/// A collection's properties beside its chunks: one document of `config.collections`.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionInfo {
    pub ns: String,
    pub uuid: [u8; 16],
    pub epoch: ObjectId,
    pub timestamp: Timestamp,
    pub key: Document,
    pub unique: bool,
    /// How strings compare in the collection unless a command says otherwise; never in its shard key.
    pub default_collation: Collation,
    pub allow_migrations: bool,
    /// Tracked but not sharded.
    pub unsplittable: bool,
    /// When it was put back to a snapshot; 0: never.
    pub restored: Timestamp,
    /// It holds the buckets of a time series with these options.
    pub series: Option<Options>,
}

impl CollectionInfo {
    /// Reads a document of `config.collections`; `None` when a needed member is missing.
    pub fn from_document(d: &Document) -> Option<CollectionInfo> {
        Some(CollectionInfo {
            ns: d.get_str("_id")?.to_string(),
            uuid: d.get("uuid")?.as_uuid()?,
            epoch: d.get("lastmodEpoch")?.as_object_id()?,
            timestamp: d.get("timestamp")?.as_timestamp()?,
            key: d.get_document("key")?.clone(),
            unique: d.get_bool("unique").unwrap_or(false),
            default_collation: d
                .get_document("defaultCollation")
                .and_then(|c| Collation::of_document(c).ok())
                .unwrap_or_default(),
            allow_migrations: ["allowMigrations", "permitMigrations"]
                .iter()
                .all(|flag| d.get_bool(flag).unwrap_or(true)),
            unsplittable: d.get_bool("unsplittable").unwrap_or(false),
            restored: d.get(RESTORED).and_then(|v| v.as_timestamp()).unwrap_or_default(),
            series: d.get_document(SERIES).and_then(Options::of_document),
        })
    }
}

impl RoutingTable {
    /// Builds a table from all chunks, in any order.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) when the chunks do not cover the key space exactly: they were read while
    /// they changed.
    pub fn build(info: &CollectionInfo, mut chunks: Vec<Chunk>) -> Result<RoutingTable> {
        chunks.sort_by(|a, b| a.min_key.cmp(&b.min_key));
        let key = Arc::new(ShardKeyPattern::parse(&info.key)?);
        let chunks: Vec<Arc<Chunk>> = chunks.into_iter().map(Arc::new).collect();
        let table = RoutingTable {
            ns: info.ns.clone(),
            uuid: info.uuid,
            epoch: info.epoch,
            timestamp: info.timestamp,
            key,
            unique: info.unique,
            default_collation: info.default_collation.clone(),
            allow_migrations: info.allow_migrations,
            unsplittable: info.unsplittable,
            restored: info.restored,
            series: info.series.clone(),
            pages: chunks.chunks(PAGE).map(|page| Arc::new(page.to_vec())).collect(),
            shards: BTreeMap::new(),
            version: Timestamp::default(),
        };
        table.finish()
    }

    /// The table with `changed` chunks (newer versions, in any order) laid over this one's: a changed chunk takes the
    /// place of every chunk it overlaps.
    ///
    /// # Errors
    /// As [`RoutingTable::build`].
    pub fn update(&self, info: &CollectionInfo, mut changed: Vec<Chunk>) -> Result<RoutingTable> {
        changed.sort_by_key(|a| a.version);
        let mut table = self.clone();
        table.allow_migrations = info.allow_migrations;
        table.series = info.series.clone();
        for chunk in changed {
            table.lay_over(chunk);
        }
        table.finish()
    }

    fn lay_over(&mut self, chunk: Chunk) {
        let first = self.page_of(&chunk.min_key);
        let mut last = first;
        while last + 1 < self.pages.len() && self.pages[last + 1][0].min_key < chunk.max_key {
            last += 1;
        }
        let chunk = Arc::new(chunk);
        let mut merged: Vec<Arc<Chunk>> = Vec::new();
        let mut placed = false;
        for old in self.pages.get(first..=last.min(self.pages.len().saturating_sub(1))).into_iter().flatten()
        {
            for c in old.iter() {
                let overlaps = c.min_key < chunk.max_key && chunk.min_key < c.max_key;
                if !placed && c.min_key >= chunk.min_key {
                    merged.push(chunk.clone());
                    placed = true;
                }
                if !overlaps {
                    merged.push(c.clone());
                }
            }
        }
        if !placed {
            merged.push(chunk);
        }
        let pages: Vec<_> = merged.chunks(PAGE).map(|p| Arc::new(p.to_vec())).collect();
        let end = (last + 1).min(self.pages.len());
        self.pages.splice(first.min(end)..end, pages);
    }

    fn finish(mut self) -> Result<RoutingTable> {
        self.shards.clear();
        self.version = Timestamp::default();
        let mut reached: Option<&[u8]> = None;
        let pages = std::mem::take(&mut self.pages);
        for chunk in pages.iter().flat_map(|p| p.iter()) {
            if reached.is_some_and(|r| r != chunk.min_key.as_slice()) || chunk.min_key >= chunk.max_key {
                bail!(
                    CONFLICTING_OPERATION_IN_PROGRESS,
                    "Gap or an overlap between ranges of {} before {:?}",
                    self.ns,
                    chunk.min
                );
            }
            reached = Some(&chunk.max_key);
            let owned = self.shards.entry(chunk.shard.clone()).or_default();
            owned.version = owned.version.max(chunk.version);
            owned.chunks += 1;
            let came = chunk.history.first().map_or(Timestamp::default(), |(t, _)| *t);
            owned.newest = owned.newest.max(came).max(self.restored);
            self.version = self.version.max(chunk.version);
        }
        let first = pages.first().and_then(|p| p.first());
        let (min, max) =
            (self.key.encode_bound(&self.key.global_min())?, self.key.encode_bound(&self.key.global_max())?);
        if first.is_none_or(|c| c.min_key != min) || reached != Some(max.as_slice()) {
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "The chunks of {} do not reach from MinKey to MaxKey",
                self.ns
            );
        }
        self.pages = pages;
        Ok(self)
    }

    fn page_of(&self, key: &[u8]) -> usize {
        self.pages.partition_point(|p| p[0].min_key.as_slice() <= key).saturating_sub(1)
    }

    /// The chunk that holds the encoded key; `None` only for MaxKey itself, which belongs to the last chunk.
    pub fn find(&self, key: &[u8]) -> &Arc<Chunk> {
        let page = &self.pages[self.page_of(key)];
        let at = page.partition_point(|c| c.min_key.as_slice() <= key).saturating_sub(1);
        &page[at]
    }
    /// The chunks that meet `lo..hi` (`hi_inclusive` says whether `hi` itself counts), in key order. Bounds are prefixes
    /// of encoded keys, as the planner makes them: an inclusive upper bound takes in every key that begins with it.
    pub fn overlapping<'a>(
        &'a self,
        lo: &'a [u8],
        hi: &'a [u8],
        hi_inclusive: bool,
    ) -> impl Iterator<Item = &'a Arc<Chunk>> + 'a {
        let page = self.page_of(lo);
        self.pages[page..]
            .iter()
            .flat_map(|p| p.iter())
            .skip_while(move |c| c.max_key.as_slice() <= lo && c.max_key != self.last_max())
            .take_while(move |c| {
                c.min_key.as_slice() < hi || (hi_inclusive && (c.min_key == hi || c.min_key.starts_with(hi)))
            })
    }
    fn last_max(&self) -> &[u8] {
        self.pages.last().and_then(|p| p.last()).map_or(&[], |c| c.max_key.as_slice())
    }
    /// All chunks in key order.
    pub fn chunks(&self) -> impl Iterator<Item = &Arc<Chunk>> {
        self.pages.iter().flat_map(|p| p.iter())
    }
    pub fn chunk_count(&self) -> usize {
        self.shards.values().map(|owned| owned.chunks).sum()
    }
    /// The chunk with exactly these encoded bounds.
    pub fn exact(&self, min_key: &[u8], max_key: &[u8]) -> Option<&Arc<Chunk>> {
        Some(self.find(min_key)).filter(|c| c.min_key == min_key && c.max_key == max_key)
    }
    /// Shards that own at least one chunk, in name order.
    pub fn shards(&self) -> impl Iterator<Item = &ShardId> {
        self.shards.keys()
    }
    pub fn chunks_owned_by(&self, shard: &str) -> usize {
        self.shards.get(shard).map_or(0, |owned| owned.chunks)
    }
    /// Generation and the highest version of all chunks.
    pub fn collection_version(&self) -> ShardVersion {
        ShardVersion { epoch: self.epoch, timestamp: self.timestamp, placement: self.version }
    }
    /// Generation and the highest version of the chunks `shard` owns; 0|0 when it owns none.
    pub fn shard_version(&self, shard: &str) -> ShardVersion {
        let placement = self.shards.get(shard).map_or(Timestamp::default(), |owned| owned.version);
        ShardVersion { epoch: self.epoch, timestamp: self.timestamp, placement }
    }
    /// When the last of the chunks that `shard` owns has come to it.
    pub fn newest_on(&self, shard: &str) -> Timestamp {
        self.shards.get(shard).map_or(Timestamp::default(), |owned| owned.newest)
    }

    /// Who owned what at a time in the past, by the histories of the chunks; `None` when it was as it is.
    ///
    /// # Errors
    /// StaleChunkHistory (250) when a history does not reach back so far.
    pub fn at(&self, time: Timestamp) -> Result<Option<RoutingTable>> {
        if self.shards.values().all(|owned| owned.newest <= time) {
            return Ok(None);
        }
        if time < self.restored {
            bail!(
                STALE_CHUNK_HISTORY,
                "{} was put back to a snapshot after cluster time Timestamp({}, {})",
                self.ns,
                time.secs,
                time.inc
            );
        }
        let mut table = self.clone();
        for page in &mut table.pages {
            let chunks = page.iter().map(|chunk| self.chunk_at(chunk, time));
            *page = Arc::new(chunks.collect::<Result<_>>()?);
        }
        table.finish().map(Some)
    }
    fn chunk_at(&self, chunk: &Arc<Chunk>, time: Timestamp) -> Result<Arc<Chunk>> {
        match chunk.history.iter().find(|(since, _)| *since <= time) {
            Some((_, shard)) if *shard == chunk.shard => Ok(chunk.clone()),
            Some((_, shard)) => Ok(Arc::new(Chunk { shard: shard.clone(), ..(**chunk).clone() })),
            None if chunk.history.is_empty() => Ok(chunk.clone()),
            None => bail!(
                STALE_CHUNK_HISTORY,
                "Cannot find shardId the chunk of {} from {} belonged to at cluster time Timestamp({}, {})",
                self.ns,
                shown(&chunk.min),
                time.secs,
                time.inc
            ),
        }
    }

    /// Whether `shard` owns the encoded key.
    pub fn owns(&self, shard: &str, key: &[u8]) -> bool {
        &*self.find(key).shard == shard
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{Value, doc};

    fn info() -> CollectionInfo {
        CollectionInfo {
            ns: "d.c".into(),
            uuid: [1; 16],
            epoch: ObjectId([2; 12]),
            timestamp: Timestamp::new(5, 0),
            key: doc! { "x": 1 },
            unique: false,
            default_collation: Collation::SIMPLE,
            allow_migrations: true,
            unsplittable: false,
            restored: Timestamp::default(),
            series: None,
        }
    }
    fn bound(v: Option<i32>, end: Value) -> Document {
        doc! { "x": v.map_or(end, Value::Int32) }
    }
    fn chunk(lo: Option<i32>, hi: Option<i32>, shard: &str, major: u32, minor: u32) -> Chunk {
        let d = doc! {
            "min": bound(lo, Value::MinKey), "max": bound(hi, Value::MaxKey), "shard": shard,
            "lastmod": Timestamp::new(major, minor),
        };
        Chunk::from_document(&d, &ShardKeyPattern::parse(&doc! { "x": 1 }).unwrap()).unwrap()
    }
    fn owner(t: &RoutingTable, x: i32) -> String {
        let key = t.key.key_of(doc! { "x": x }.to_doc_buf().doc()).unwrap();
        t.find(&key).shard.to_string()
    }

    #[test]
    fn a_key_is_found_in_the_chunk_whose_lower_bound_it_reaches() {
        let t = RoutingTable::build(
            &info(),
            vec![chunk(Some(10), None, "b", 1, 1), chunk(None, Some(10), "a", 1, 0)],
        )
        .unwrap();
        assert_eq!(owner(&t, 9), "a");
        assert_eq!(owner(&t, 10), "b");
        assert_eq!(t.shard_version("a").placement, Timestamp::new(1, 0));
        assert_eq!(t.collection_version().placement, Timestamp::new(1, 1));
        assert_eq!(t.shard_version("c").placement, Timestamp::default());
    }

    #[test]
    fn a_table_put_back_to_a_snapshot_knows_nothing_of_the_time_before() {
        let whole = || vec![chunk(None, None, "a", 1, 0)];
        let before = RoutingTable::build(&info(), whole()).unwrap();
        assert!(before.at(Timestamp::new(9, 0)).unwrap().is_none());
        let info = CollectionInfo { restored: Timestamp::new(10, 0), ..info() };
        let after = RoutingTable::build(&info, whole()).unwrap();
        assert_eq!(after.at(Timestamp::new(9, 9)).unwrap_err().code, document::codes::STALE_CHUNK_HISTORY);
        assert!(after.at(Timestamp::new(10, 0)).unwrap().is_none());
        assert_eq!(after.newest_on("a"), Timestamp::new(10, 0));
    }

    #[test]
    fn a_gap_or_an_overlap_is_refused() {
        let gap = vec![chunk(None, Some(10), "a", 1, 0), chunk(Some(11), None, "b", 1, 1)];
        assert!(RoutingTable::build(&info(), gap).is_err());
        let overlap = vec![chunk(None, Some(12), "a", 1, 0), chunk(Some(11), None, "b", 1, 1)];
        assert!(RoutingTable::build(&info(), overlap).is_err());
        assert!(RoutingTable::build(&info(), vec![chunk(None, Some(12), "a", 1, 0)]).is_err());
    }

    #[test]
    fn an_update_equals_a_table_built_anew() {
        let n = 2000;
        let mut model: Vec<Chunk> = (0..n)
            .map(|i| {
                let lo = (i > 0).then_some(i * 10);
                let hi = (i < n - 1).then_some((i + 1) * 10);
                chunk(lo, hi, if i % 2 == 0 { "a" } else { "b" }, 1, i as u32)
            })
            .collect();
        let t = RoutingTable::build(&info(), model.clone()).unwrap();
        // Splits chunk 700, merges 701..=1300 and moves chunk 3.
        let changed = vec![
            chunk(Some(7000), Some(7003), "a", 2, 0),
            chunk(Some(7003), Some(7010), "a", 2, 1),
            chunk(Some(7010), Some(13010), "b", 2, 2),
            chunk(Some(30), Some(40), "c", 3, 0),
        ];
        let updated = t.update(&info(), changed.clone()).unwrap();
        model.retain(|c| !changed.iter().any(|n| c.min_key < n.max_key && n.min_key < c.max_key));
        model.extend(changed);
        let fresh = RoutingTable::build(&info(), model).unwrap();
        let bounds =
            |t: &RoutingTable| t.chunks().map(|c| (c.min.clone(), c.shard.clone())).collect::<Vec<_>>();
        assert_eq!(bounds(&updated), bounds(&fresh));
        assert_eq!(updated.shard_version("c").placement, Timestamp::new(3, 0));
        assert_eq!(owner(&updated, 35), "c");
    }

    #[test]
    fn a_range_meets_every_chunk_it_touches() {
        let t = RoutingTable::build(
            &info(),
            vec![
                chunk(None, Some(10), "a", 1, 0),
                chunk(Some(10), Some(20), "b", 1, 1),
                chunk(Some(20), None, "c", 1, 2),
            ],
        )
        .unwrap();
        let key = |x: i32| t.key.key_of(doc! { "x": x }.to_doc_buf().doc()).unwrap();
        let shards = |lo: i32, hi: i32, inc: bool| {
            t.overlapping(&key(lo), &key(hi), inc).map(|c| c.shard.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(shards(5, 10, false), ["a"]);
        assert_eq!(shards(5, 10, true), ["a", "b"]);
        assert_eq!(shards(10, 25, true), ["b", "c"]);
        assert_eq!(shards(25, 30, true), ["c"]);
    }
}
