//! Reading the catalog: typed, by index, on frozen collections.
//!
//! A collection may have a million chunks, so nothing here reads more of them than it answers: chunks are found by the
//! indexes on `{uuid, min}` and `{uuid, lastmod}`, whose keys are the encoded values one after the other.

use super::{CHUNKS, COLLECTIONS, DATABASES, SHARDS, TAGS};
use crate::chunk::Chunk;
use crate::key_pattern::ShardKeyPattern;
use crate::routing::registry::{Shard, shard_of};
use crate::routing::table::{CollectionInfo, RoutingTable};
use document::{Document, Result, Timestamp, Value, err, key_string};
use node::Node;
use protocol::balancer::defragmentation::Phase;
use protocol::version::{DatabaseVersion, ShardVersion};
use std::collections::BTreeMap;
use storage::CollectionSnapshot;
use storage::CollectionView;
use storage::index::prefix_end;

/// Reads of one node's catalog; each call sees what is committed at that moment.
pub struct Catalog<'n> {
    node: &'n Node,
}

/// A sharded collection with what its chunks' versions are compared by.
#[derive(Clone, Debug)]
pub struct Sharded {
    pub info: CollectionInfo,
    pub document: Document,
    pub key: ShardKeyPattern,
}

impl Sharded {
    /// The collection's generation with another placement.
    pub fn version(&self, placement: Timestamp) -> ShardVersion {
        ShardVersion { epoch: self.info.epoch, timestamp: self.info.timestamp, placement }
    }
    fn flag(&self, name: &str) -> bool {
        self.document.get_bool(name).unwrap_or(false)
    }
    pub fn is_unsplittable(&self) -> bool {
        self.flag("unsplittable")
    }
    /// It is being defragmented, or is to be.
    pub fn is_defragmented(&self) -> bool {
        self.flag("defragmentCollection")
    }
    /// The phase of its defragmentation, as far as one has begun.
    pub fn defragmentation_phase(&self) -> Option<Phase> {
        self.document.get_str("defragmentationPhase").and_then(Phase::parse)
    }
    /// Chunk selection may touch it: migrations are allowed, `noBalance` is not set, nothing defragments it.
    pub fn is_balanced(&self) -> bool {
        self.may_migrate() && !self.flag("noBalance") && !self.is_defragmented()
    }
    /// The auto-merger may touch it: neither `enableAutoMerge: false` nor `noBalance`, and nothing defragments it.
    pub fn is_auto_merged(&self) -> bool {
        let enabled = self.document.get_bool("enableAutoMerge").unwrap_or(true);
        enabled && !self.flag("noBalance") && !self.is_defragmented()
    }
    /// Neither `allowMigrations` nor `permitMigrations` is false.
    pub fn may_migrate(&self) -> bool {
        self.info.allow_migrations
    }
    pub fn parse(document: Document) -> Result<Sharded> {
        let info = CollectionInfo::from_document(&document).ok_or_else(|| {
            err!(INCOMPATIBLE_SHARDING_METADATA, "unreadable collection entry {document:?}")
        })?;
        let key = ShardKeyPattern::parse(&info.key)?;
        Ok(Sharded { info, document, key })
    }
}

/// A document of `config.databases`.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    pub name: String,
    pub primary: String,
    pub version: DatabaseVersion,
}

impl Database {
    pub fn from_document(d: &Document) -> Option<Database> {
        Some(Database {
            name: d.get_str("_id")?.to_string(),
            primary: d.get_str("primary")?.to_string(),
            version: DatabaseVersion::from_document(d.get_document("version")?)?,
        })
    }
    pub fn to_document(&self) -> Document {
        document::doc! { "_id": self.name.as_str(), "primary": self.primary.as_str(), "version": self.version.to_document() }
    }
}

/// A document of `config.tags`: a range of keys that belongs to a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneRange {
    pub id: Value,
    pub zone: String,
    pub min: Document,
    pub max: Document,
}

impl<'n> Catalog<'n> {
    pub fn new(node: &'n Node) -> Catalog<'n> {
        Catalog { node }
    }

    fn snapshot(&self, ns: &str) -> Option<CollectionSnapshot> {
        self.node.namespaces.slot(ns).read_unchecked().collection.as_ref().map(|c| c.snapshot())
    }
    fn all(&self, ns: &str) -> Vec<Document> {
        let Some(snapshot) = self.snapshot(ns) else { return Vec::new() };
        let mut records = snapshot.records();
        let first = records.first();
        std::iter::successors(first, |_| records.next()).map(|(_, d)| d.to_document()).collect()
    }
    fn by_id(&self, ns: &str, id: &str) -> Option<Document> {
        let snapshot = self.snapshot(ns)?;
        let holder = Value::from(id).to_holder();
        snapshot.find_id(holder.get("")?).map(|(_, d)| d.to_document())
    }

    /// Shards in name order.
    pub fn shards(&self) -> Vec<Shard> {
        let mut shards: Vec<Shard> = self.all(SHARDS).iter().filter_map(shard_of).collect();
        shards.sort_by(|a, b| a.name.cmp(&b.name));
        shards
    }
    pub fn shard_document(&self, name: &str) -> Option<Document> {
        self.by_id(SHARDS, name)
    }
    /// # Errors
    /// ShardNotFound (70).
    pub fn shard(&self, name: &str) -> Result<Shard> {
        let found = self.shard_document(name);
        found.as_ref().and_then(shard_of).ok_or_else(|| err!(SHARD_NOT_FOUND, "Shard {name} not found"))
    }
    pub fn databases(&self) -> Vec<Database> {
        self.all(DATABASES).iter().filter_map(Database::from_document).collect()
    }
    pub fn database(&self, name: &str) -> Option<Database> {
        Database::from_document(&self.by_id(DATABASES, name)?)
    }
    /// Documents of `config.collections` that describe sharded collections.
    pub fn collections(&self) -> Vec<Sharded> {
        self.all(COLLECTIONS).into_iter().filter_map(|d| Sharded::parse(d).ok()).collect()
    }
    pub fn collection_document(&self, ns: &str) -> Option<Document> {
        self.by_id(COLLECTIONS, ns)
    }
    pub fn find_collection(&self, ns: &str) -> Result<Option<Sharded>> {
        self.by_id(COLLECTIONS, ns).map(Sharded::parse).transpose()
    }
    /// # Errors
    /// NamespaceNotSharded (118), also for a tracked collection that cannot be split.
    pub fn sharded(&self, ns: &str) -> Result<Sharded> {
        let found = self.find_collection(ns)?.filter(|c| !c.is_unsplittable());
        found.ok_or_else(|| err!(NAMESPACE_NOT_SHARDED, "Collection {ns} is not sharded."))
    }
    /// Zone ranges of a namespace, by lower bound.
    pub fn zone_ranges(&self, ns: &str) -> Vec<ZoneRange> {
        let mut prefix = Vec::with_capacity(64);
        key_string::append_value(&mut prefix, &Value::from(ns), false);
        let found = self.of_prefix(TAGS, "ns_1_min_1", &prefix);
        let mut ranges: Vec<ZoneRange> =
            found.iter().filter(|d| d.get_str("ns") == Some(ns)).filter_map(zone_range_of).collect();
        ranges.sort_by(|a, b| compare(&a.min, &b.min));
        ranges
    }
    /// The ids of all zone ranges in a database.
    pub fn zones_of_database(&self, db: &str) -> Vec<Value> {
        let of_database =
            |d: &Document| d.get_str("ns").is_some_and(|ns| storage::split_namespace(ns).0 == db);
        self.all(TAGS).iter().filter(|d| of_database(d)).filter_map(|d| d.get("_id").cloned()).collect()
    }
    /// Whether any namespace has a range in the zone.
    pub fn zone_has_ranges(&self, zone: &str) -> bool {
        self.all(TAGS).iter().any(|d| d.get_str("tag") == Some(zone))
    }

    /// All chunk documents of a collection, by lower bound.
    pub fn chunk_documents(&self, uuid: [u8; 16]) -> Vec<Document> {
        self.of_prefix(CHUNKS, "uuid_1_min_1", &uuid_key(uuid))
    }
    /// The documents whose index keys begin with `prefix`, in the order of the index.
    fn of_prefix(&self, ns: &str, index: &str, prefix: &[u8]) -> Vec<Document> {
        let Some(snapshot) = self.snapshot(ns) else { return Vec::new() };
        let Some(slot) = snapshot.index_slot(index) else { return Vec::new() };
        let Some(mut cursor) = snapshot.index_cursor(slot) else { return Vec::new() };
        let mut found = Vec::new();
        let mut entry = cursor.seek(prefix);
        while let Some(e) = entry.filter(|e| e.key.starts_with(prefix)) {
            found.extend(snapshot.get(e.record).map(|d| d.to_document()));
            entry = cursor.next();
        }
        found
    }
    /// All chunks of a collection, by lower bound.
    pub fn chunks(&self, collection: &Sharded) -> Result<Vec<Chunk>> {
        self.chunk_documents(collection.info.uuid)
            .iter()
            .map(|d| Chunk::from_document(d, &collection.key))
            .collect()
    }
    /// # Errors
    /// ConflictingOperationInProgress (117) when the chunks do not cover the key space.
    pub fn routing_table(&self, collection: &Sharded) -> Result<RoutingTable> {
        RoutingTable::build(&collection.info, self.chunks(collection)?)
    }

    /// The chunk whose range holds `bound`, a full shard key; `None` when no chunk starts at or below it.
    pub fn chunk_at(&self, collection: &Sharded, bound: &Document) -> Result<Option<Chunk>> {
        let mut upper = uuid_key(collection.info.uuid);
        let prefix = upper.clone();
        key_string::append_value(&mut upper, &Value::Document(bound.clone()), false);
        // The last entry that is not above the bound.
        let upper = prefix_end(&upper).unwrap_or(upper);
        let found = self.last_below("uuid_1_min_1", &prefix, &upper);
        found.map(|d| Chunk::from_document(&d, &collection.key)).transpose()
    }
    /// The highest chunk version of a collection; 0|0 when it has no chunk.
    pub fn collection_placement(&self, uuid: [u8; 16]) -> Timestamp {
        let prefix = uuid_key(uuid);
        let end = prefix_end(&prefix).unwrap_or_default();
        let newest = self.last_below("uuid_1_lastmod_1", &prefix, &end);
        newest.and_then(|d| d.get("lastmod").and_then(Value::as_timestamp)).unwrap_or_default()
    }
    /// The highest version among the chunks of one shard; 0|0 when it has none. Walks from the newest version down, so
    /// it is short for shards that were changed lately.
    pub fn shard_placement(&self, uuid: [u8; 16], shard: &str) -> Timestamp {
        self.newest_of(uuid, shard)
            .and_then(|d| d.get("lastmod").and_then(Value::as_timestamp))
            .unwrap_or_default()
    }
    /// The chunk with the highest version that a shard owns.
    pub fn newest_chunk_of(&self, collection: &Sharded, shard: &str) -> Result<Option<Chunk>> {
        self.newest_of(collection.info.uuid, shard)
            .map(|d| Chunk::from_document(&d, &collection.key))
            .transpose()
    }
    fn newest_of(&self, uuid: [u8; 16], shard: &str) -> Option<Document> {
        let snapshot = self.snapshot(CHUNKS)?;
        // A shard without chunks must not cost a walk over everybody else's.
        self.first_of_shard(&snapshot, uuid, shard)?;
        let prefix = uuid_key(uuid);
        let mut cursor = snapshot.index_cursor(snapshot.index_slot("uuid_1_lastmod_1")?)?;
        let mut entry = cursor.seek_before(&prefix_end(&prefix)?);
        while let Some(e) = entry.filter(|e| e.key.starts_with(&prefix)) {
            let d = snapshot.get(e.record)?;
            if d.get_str("shard") == Some(shard) {
                return Some(d.to_document());
            }
            entry = cursor.prev();
        }
        None
    }
    fn first_of_shard(&self, snapshot: &CollectionSnapshot, uuid: [u8; 16], shard: &str) -> Option<Document> {
        let mut prefix = uuid_key(uuid);
        key_string::append_value(&mut prefix, &Value::from(shard), false);
        let mut cursor = snapshot.index_cursor(snapshot.index_slot("uuid_1_shard_1_min_1")?)?;
        let entry = cursor.seek(&prefix).filter(|e| e.key.starts_with(&prefix))?;
        Some(snapshot.get(entry.record)?.to_document())
    }
    /// A chunk that `shard` owns other than the one at `not_min`; the first in key order.
    pub fn another_chunk_of(
        &self,
        collection: &Sharded,
        shard: &str,
        not_min: &[u8],
    ) -> Result<Option<Chunk>> {
        let Some(snapshot) = self.snapshot(CHUNKS) else { return Ok(None) };
        let mut prefix = uuid_key(collection.info.uuid);
        key_string::append_value(&mut prefix, &Value::from(shard), false);
        let slot = snapshot.index_slot("uuid_1_shard_1_min_1");
        let Some(mut cursor) = slot.and_then(|s| snapshot.index_cursor(s)) else { return Ok(None) };
        let mut entry = cursor.seek(&prefix);
        while let Some(e) = entry.filter(|e| e.key.starts_with(&prefix)) {
            if let Some(d) = snapshot.get(e.record) {
                let chunk = Chunk::from_document(&d.to_document(), &collection.key)?;
                if chunk.min_key != not_min {
                    return Ok(Some(chunk));
                }
            }
            entry = cursor.next();
        }
        Ok(None)
    }
    /// How many chunks of a collection each shard owns.
    pub fn chunk_counts(&self, uuid: [u8; 16]) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for d in self.chunk_documents(uuid) {
            *counts.entry(d.get_str("shard").unwrap_or("").to_string()).or_default() += 1;
        }
        counts
    }
    fn last_below(&self, index: &str, prefix: &[u8], upper: &[u8]) -> Option<Document> {
        let snapshot = self.snapshot(CHUNKS)?;
        let mut cursor = snapshot.index_cursor(snapshot.index_slot(index)?)?;
        let entry = cursor.seek_before(upper).filter(|e| e.key.starts_with(prefix))?;
        Some(snapshot.get(entry.record)?.to_document())
    }
}

fn uuid_key(uuid: [u8; 16]) -> Vec<u8> {
    let mut key = Vec::with_capacity(64);
    key_string::append_value(&mut key, &Value::uuid(uuid), false);
    key
}

/// Order of bounds as chunks have it: by the values, the field names being the same.
pub fn compare(a: &Document, b: &Document) -> std::cmp::Ordering {
    document::compare::compare_docs(a.to_doc_buf().doc(), b.to_doc_buf().doc())
}

fn zone_range_of(d: &Document) -> Option<ZoneRange> {
    Some(ZoneRange {
        id: d.get("_id")?.clone(),
        zone: d.get_str("tag")?.to_string(),
        min: d.get_document("min")?.clone(),
        max: d.get_document("max")?.clone(),
    })
}
