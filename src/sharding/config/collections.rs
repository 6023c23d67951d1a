//! `config.collections`: sharded collections come, go, change their name and their balancing.
//!
//! The coordinators on the database's primary shard do the work on the shards; what they commit here is one batch.

use super::catalog::Sharded;
use super::chunks::migration::placement_entry;
use super::require_majority;
use super::{
    CHUNKS, COLLECTIONS, ConfigServer, PLACEMENT_HISTORY, TAGS, argument, change, delete, insert, put, shown,
};
use crate::chunk::Chunk;
use crate::key_pattern::ShardKeyPattern;
use crate::messages::ddl::{
    CommitBucketing, CommitConversion, CommitCreateCollection, CommitDropCollection, CommitRename, FirstChunk,
};
use crate::messages::{Flag, Message};
use crate::routing::table::SERIES;
use document::{Document, Result, Timestamp, Value, bail, codes, doc, err};
use node::{BatchWrite, Operation, Request};
use std::collections::BTreeSet;

const MIB: i64 = 1024 * 1024;

impl ConfigServer {
    /// [`CommitCreateCollection`]; returns `{collectionUUID, collectionVersion}`: a new incarnation with its own epoch and timestamp, chunk versions
    /// 1|0, 1|1, ... A repeat with the same UUID answers what is there.
    ///
    /// # Errors
    /// AlreadyInitialized (23) when another incarnation exists, ShardNotFound (70), 117 when chunks leave a gap.
    pub async fn commit_create_collection(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, CommitCreateCollection::COMMAND)?;
        self.ensure().await?;
        let created = CommitCreateCollection::parse(request.body)?;
        self.create_in_catalog(&created).await
    }

    /// As [`ConfigServer::commit_create_collection`].
    ///
    /// # Errors
    /// The same.
    pub(crate) async fn create_in_catalog(&self, created: &CommitCreateCollection) -> Result<Document> {
        let (ns, uuid) = (created.ns.as_str(), created.uuid);
        let _topology = self.topology.lock().await;
        let _lock = self.lock_chunks(ns).await;
        if let Some(existing) = self.catalog().find_collection(ns)? {
            if existing.info.uuid != uuid {
                bail!(ALREADY_INITIALIZED, "sharding already enabled for collection {ns}");
            }
            return Ok(self.created_reply(&existing));
        }
        let (document, chunks) = self.new_collection(created)?;
        let collection = Sharded::parse(document.clone())?;
        let owners: BTreeSet<String> = chunks.iter().map(|c| c.shard.to_string()).collect();
        for shard in &owners {
            self.catalog().shard(shard)?;
        }
        let at = collection.info.timestamp;
        let placement =
            placement_entry(self.node.new_object_id(), ns, Some(uuid), at, owners.into_iter().collect());
        let mut writes = vec![put(COLLECTIONS, document), insert(PLACEMENT_HISTORY, placement)];
        writes.extend(chunks.iter().map(|c| insert(CHUNKS, c.to_document(uuid))));
        crate::routing::RoutingTable::build(&collection.info, chunks)?;
        self.remove_chunks(uuid).await?;
        self.commit(&writes).await?;
        Ok(self.created_reply(&collection))
    }

    fn created_reply(&self, collection: &Sharded) -> Document {
        let mut reply = doc! { "collectionUUID": Value::uuid(collection.info.uuid) };
        for (name, value) in self.collection_version_document(collection) {
            reply.push(name, value);
        }
        reply
    }

    /// The entry of a new incarnation, and its chunks.
    ///
    /// # Errors
    /// Those of a bad shard key.
    pub(super) fn new_collection(&self, created: &CommitCreateCollection) -> Result<(Document, Vec<Chunk>)> {
        let pattern = ShardKeyPattern::parse(&created.key)?;
        let timestamp = self.tick();
        let mut document = doc! {
            "_id": created.ns.as_str(), "lastmodEpoch": self.node.new_object_id(), "lastmod": Value::DateTime(self.node.now_ms()),
            "timestamp": timestamp, "uuid": Value::uuid(created.uuid), "key": created.key.clone(), "unique": created.unique.0,
        };
        if let Some(collation) = &created.collation {
            document.push("defaultCollation", collation.clone());
        }
        document.push("noBalance", false);
        if created.unsplittable.0 {
            document.push("unsplittable", true);
        }
        if let Some(fields) = &created.series {
            document.push(SERIES, fields.clone());
        }
        let mut chunks = Vec::new();
        for (i, FirstChunk { min, max, shard }) in created.chunks.iter().enumerate() {
            let shard: std::sync::Arc<str> = shard.as_str().into();
            chunks.push(Chunk {
                bytes: None,
                id: self.node.new_object_id(),
                min_key: pattern.encode_bound(min)?,
                max_key: pattern.encode_bound(max)?,
                min: min.clone(),
                max: max.clone(),
                shard: shard.clone(),
                version: Timestamp::new(1, i as u32),
                jumbo: false,
                history: vec![(timestamp, shard)],
            });
        }
        Ok((document, chunks))
    }

    /// [`CommitDropCollection`]: the collection is no longer sharded; its chunks and zone
    /// ranges go, those too that have waited for one that never was. What is gone already stays gone, and a namesake with another UUID is
    /// left alone.
    ///
    /// # Errors
    /// A failed log.
    pub async fn commit_drop_collection(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, CommitDropCollection::COMMAND)?;
        self.ensure().await?;
        let CommitDropCollection { ns, uuid, untrack } = CommitDropCollection::parse(request.body)?;
        let ns = ns.as_str();
        let _members = self.membership.read().await;
        let _lock = self.lock_chunks(ns).await;
        if let Some(found) =
            self.catalog().find_collection(ns)?.filter(|c| uuid.is_none_or(|u| u == c.info.uuid))
        {
            let mut writes = vec![delete(COLLECTIONS, Value::from(ns))];
            writes.extend(self.catalog().zone_ranges(ns).into_iter().map(|z| delete(TAGS, z.id)));
            // One that is only untracked is where its database is.
            if !untrack.0 {
                let (id, at) = (self.node.new_object_id(), self.tick());
                let entry = placement_entry(id, ns, Some(found.info.uuid), at, Vec::new());
                writes.push(insert(PLACEMENT_HISTORY, entry));
            }
            self.commit(&writes).await?;
            self.remove_chunks(found.info.uuid).await?;
            if !untrack.0 {
                self.log_change("dropCollection", ns, Document::new()).await;
            }
            return Ok(Document::new());
        }
        // Zones may have waited for one that was never sharded. Those of a namesake that is sharded stay.
        if self.catalog().find_collection(ns)?.is_none() {
            let zones: Vec<_> =
                self.catalog().zone_ranges(ns).into_iter().map(|z| delete(TAGS, z.id)).collect();
            if !zones.is_empty() {
                self.commit(&zones).await?;
            }
        }
        if let Some(uuid) = uuid {
            // The first try may have ended between the two steps.
            self.remove_chunks_of_gone(uuid).await?;
        }
        Ok(Document::new())
    }

    /// Removes the chunks of an incarnation that is not in the catalog. A collection that was renamed keeps its chunks.
    async fn remove_chunks_of_gone(&self, uuid: [u8; 16]) -> Result<()> {
        match self.catalog().collections().iter().all(|c| c.info.uuid != uuid) {
            true => self.remove_chunks(uuid).await,
            false => Ok(()),
        }
    }

    pub(super) async fn remove_chunks(&self, uuid: [u8; 16]) -> Result<()> {
        let chunks = self.catalog().chunk_documents(uuid);
        let ids = chunks.iter().filter_map(|d| d.get("_id").cloned());
        self.commit_in_parts(ids.map(|id| delete(CHUNKS, id)).collect()).await
    }

    /// [`CommitRename`]: a sharded collection goes on under another name, as a
    /// new incarnation with the same UUID and chunks; a sharded target is dropped with it. Where the target is another by now, this is an
    /// attempt that comes late.
    ///
    /// # Errors
    /// A failed log. A repeat finds the target in place.
    pub async fn commit_rename_collection(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, CommitRename::COMMAND)?;
        self.ensure().await?;
        let CommitRename { ns: from, to, source, replaced } = CommitRename::parse(request.body)?;
        let (from, to) = (from.as_str(), to.as_str());
        if from == to {
            bail!(ILLEGAL_OPERATION, "Can't rename a collection to itself");
        }
        let _members = self.membership.read().await;
        let _first = self.lock_chunks(from.min(to)).await;
        let _second = self.lock_chunks(from.max(to)).await;
        let catalog = self.catalog();
        let target = catalog.find_collection(to)?;
        let stays = |uuid| uuid == source || replaced != Some(uuid);
        if target.as_ref().is_some_and(|t| stays(t.info.uuid)) {
            // The first try may have ended between the two steps.
            if let Some(replaced) = replaced {
                self.remove_chunks_of_gone(replaced).await?;
            }
            return Ok(Document::new());
        }
        let moving = catalog.find_collection(from)?.filter(|c| c.info.uuid == source);
        let mut writes = Vec::new();
        let at = self.tick();
        if let Some(target) = &target {
            writes.push(delete(COLLECTIONS, Value::from(to)));
            writes.extend(catalog.zone_ranges(to).into_iter().map(|z| delete(TAGS, z.id)));
            let gone = placement_entry(self.node.new_object_id(), to, Some(target.info.uuid), at, Vec::new());
            writes.push(insert(PLACEMENT_HISTORY, gone));
        }
        if let Some(moving) = &moving {
            self.rename_writes(&mut writes, moving, to);
        }
        self.commit(&writes).await?;
        if let Some(replaced) = replaced {
            self.remove_chunks_of_gone(replaced).await?;
        }
        Ok(Document::new())
    }

    fn rename_writes(&self, writes: &mut Vec<BatchWrite>, moving: &Sharded, to: &str) {
        let from = moving.info.ns.as_str();
        let catalog = self.catalog();
        let mut entry = moving.document.clone();
        let (epoch, timestamp) = (self.node.new_object_id(), self.tick());
        entry.insert("_id", to);
        entry.insert("lastmodEpoch", epoch);
        entry.insert("timestamp", timestamp);
        entry.insert("lastmod", Value::DateTime(self.node.now_ms()));
        // The rename itself had forbidden them.
        entry.remove("allowMigrations");
        writes.push(change(COLLECTIONS, moving.document.clone(), entry));
        for zone in catalog.zone_ranges(from) {
            writes.push(delete(TAGS, zone.id));
            let id = self.node.new_object_id();
            writes.push(insert(
                TAGS,
                doc! { "_id": id, "ns": to, "tag": zone.zone, "min": zone.min, "max": zone.max },
            ));
        }
        let uuid = moving.info.uuid;
        let owners: Vec<String> = catalog.chunk_counts(uuid).into_keys().collect();
        let mut entry = |ns: &str, shards: Vec<String>| {
            writes.push(insert(
                PLACEMENT_HISTORY,
                placement_entry(self.node.new_object_id(), ns, Some(uuid), timestamp, shards),
            ));
        };
        entry(from, Vec::new());
        entry(to, owners);
    }

    /// [`CommitConversion`]: a collection that is not sharded goes on under another UUID, on its shard. A repeat finds it in place.
    ///
    /// # Errors
    /// A failed log.
    pub async fn commit_conversion(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, CommitConversion::COMMAND)?;
        self.ensure().await?;
        let CommitConversion { ns, uuid, new } = CommitConversion::parse(request.body)?;
        let _members = self.membership.read().await;
        let _lock = self.lock_chunks(&ns).await;
        let Some(old) = self.catalog().find_collection(&ns)?.filter(|c| c.info.uuid == uuid) else {
            return Ok(Document::new());
        };
        let first = |c: Chunk| FirstChunk { min: c.min, max: c.max, shard: c.shard.to_string() };
        let copied = CommitCreateCollection {
            ns,
            uuid: new,
            key: old.info.key.clone(),
            unique: Flag(false),
            collation: None,
            series: None,
            unsplittable: Flag(true),
            chunks: self.catalog().chunks(&old)?.into_iter().map(first).collect(),
        };
        let mut writes = self.replacement_writes(Some(old), &copied)?;
        let gone = self.catalog().chunk_documents(uuid);
        writes.extend(gone.iter().filter_map(|d| d.get("_id").cloned()).map(|id| delete(CHUNKS, id)));
        self.commit(&writes).await?;
        Ok(Document::new())
    }

    /// [`CommitBucketing`]: the definition of a time series whose buckets are tracked, and raised versions, so that routers read it anew before
    /// they aim by it. A repeat finds it in place.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) for another incarnation, or for one that is no longer tracked.
    pub async fn commit_bucketing(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, CommitBucketing::COMMAND)?;
        self.ensure().await?;
        let CommitBucketing { ns, uuid, series } = CommitBucketing::parse(request.body)?;
        let _lock = self.lock_chunks(&ns).await;
        let found = self.catalog().find_collection(&ns)?.filter(|c| c.info.uuid == uuid);
        let Some(collection) = found else {
            bail!(CONFLICTING_OPERATION_IN_PROGRESS, "collection {ns} was dropped or made anew")
        };
        if collection.document.get_document(SERIES) == Some(&series) {
            return Ok(Document::new());
        }
        let mut entry = collection.document.clone();
        entry.insert(SERIES, series);
        let mut writes = vec![change(COLLECTIONS, collection.document.clone(), entry)];
        writes.extend(self.bump_every_owner(&collection)?);
        self.commit(&writes).await?;
        Ok(Document::new())
    }

    /// `{_configsvrConfigureCollectionBalancing: ns, chunkSize?, defragmentCollection?, enableAutoMerger?}`.
    ///
    /// # Errors
    /// NamespaceNotSharded (118), InvalidOptions (72).
    pub async fn configure_collection_balancing(
        &self,
        op: &Operation,
        request: Request<'_>,
    ) -> Result<Document> {
        require_majority(op, "_configsvrConfigureCollectionBalancing")?;
        self.ensure().await?;
        let ns = argument(&request)?;
        let body = request.body.to_document();
        let lock = self.lock_chunks(ns).await;
        let collection = self.catalog().sharded(ns)?;
        let (defragmented, epoch) = (collection.is_defragmented(), collection.info.epoch);
        let mut entry = collection.document.clone();
        match body.get_present("chunkSize").map(|v| (v.as_i64(), v)) {
            None => {}
            Some((Some(0), _)) => {
                entry.remove("maxChunkSizeBytes");
            }
            Some((Some(mib), _)) if (1..=1024).contains(&mib) => entry.insert("maxChunkSizeBytes", mib * MIB),
            Some((_, v)) => {
                bail!(INVALID_OPTIONS, "Chunk size '{}' out of range [1MB, 1GB]", document::shell::value(v))
            }
        }
        if let Some(enable) = body.get_bool("enableAutoMerger") {
            entry.insert("enableAutoMerge", enable);
        }
        let defragment = body.get_bool("defragmentCollection");
        if defragment == Some(true) && !defragmented {
            entry.insert("defragmentCollection", true);
        }
        self.commit(&[change(COLLECTIONS, collection.document, entry)]).await?;
        drop(lock);
        if defragment == Some(false) && defragmented {
            self.end_defragmentation(ns, epoch).await?;
        }
        self.balancer.signal();
        Ok(Document::new())
    }

    /// The size a chunk may reach before it is split off or counts as imbalance, in bytes: the collection's, or that of
    /// `config.settings`, or 128 MiB.
    pub fn max_chunk_bytes(&self, collection: &Sharded) -> i64 {
        collection.document.get_i64("maxChunkSizeBytes").unwrap_or_else(|| self.usual_chunk_bytes())
    }
    /// The size of chunks of collections without one of their own.
    pub(crate) fn usual_chunk_bytes(&self) -> i64 {
        let setting = self.setting("chunksize");
        // Tests write fractions of a MiB.
        let mib = setting.as_ref().and_then(|s| s.get("value")).and_then(Value::as_f64);
        mib.filter(|m| *m > 0.0 && *m <= 1024.0).map_or(128 * MIB, |m| (m * MIB as f64) as i64)
    }
    /// A document of `config.settings`.
    pub fn setting(&self, id: &str) -> Option<Document> {
        self.local.find_one(super::SETTINGS, &doc! { "_id": id }).unwrap_or(None)
    }

    /// The chunk a user names by `find` (a document with the shard key) or `bounds` (its exact bounds).
    ///
    /// # Errors
    /// NamespaceNotSharded (118), UnknownError (8) with the real server's texts for wrong arguments.
    pub fn chunk_named(&self, ns: &str, body: &Document) -> Result<Chunk> {
        let collection = self.catalog().sharded(ns)?;
        let none = || err!(codes::UNKNOWN_ERROR, "no chunk found with the shard key bounds");
        match (body.get_document("find"), body.get_array("bounds")) {
            (Some(find), None) => {
                let bound = collection.key.key_document_of(find.to_doc_buf().doc())?;
                let missing = collection.key.fields().iter().any(|f| find.get_path(&f.path).is_none());
                if missing {
                    bail!(UNKNOWN_ERROR, "no shard key found in chunk query {}", shown(find));
                }
                self.catalog().chunk_at(&collection, &bound)?.ok_or_else(none)
            }
            (None, Some(bounds)) => {
                let [Value::Document(min), Value::Document(max)] = bounds.as_slice() else {
                    bail!(UNKNOWN_ERROR, "bounds must be an array of two documents")
                };
                let (min_key, max_key) = (collection.key.encode_bound(min), collection.key.encode_bound(max));
                let (Ok(min_key), Ok(max_key)) = (min_key, max_key) else {
                    bail!(
                        UNKNOWN_ERROR,
                        "shard key bounds [{},{}) are not valid for shard key pattern {}",
                        shown(min),
                        shown(max),
                        shown(collection.key.document())
                    )
                };
                let found = self.catalog().chunk_at(&collection, min)?;
                found.filter(|c| c.min_key == min_key && c.max_key == max_key).ok_or_else(none)
            }
            (None, None) => bail!(UNKNOWN_ERROR, "need to specify find or bounds"),
            (Some(_), Some(_)) => bail!(UNKNOWN_ERROR, "cannot specify both find and bounds"),
        }
    }
}
