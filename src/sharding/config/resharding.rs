//! The catalog's part in resharding: what is noted of an operation while it runs, and its commit.
//!
//! ```text
//! Begin      a document in config.reshardingOperations, reshardingFields on the collection; one operation at a time
//! SetState   how far it is, for people
//! Commit     the collection's document with another UUID, epoch and key, its chunks and zones: one batch
//! End        chunks of the UUID that is no more, and the document, go
//! ```
//! Chunks are found by UUID, so those of the old and of the new collection do not meet.

use super::catalog::Sharded;
use super::chunks::migration::placement_entry;
use super::{
    CHUNKS, COLLECTIONS, ConfigServer, PLACEMENT_HISTORY, RESHARDING_OPERATIONS, TAGS, change, delete, edit,
    insert, put, require_majority,
};
use crate::messages::ddl::CommitCreateCollection;
use crate::messages::resharding::{
    Resharding, ReshardingBegin, ReshardingCommit, ReshardingEnd, ReshardingSetState, ZoneToCome,
};
use crate::messages::{self, Flag, Message};
use document::{Document, Result, Value, bail, doc};
use node::{BatchWrite, Operation, Request};
use std::collections::BTreeSet;

impl ConfigServer {
    /// Runs a [`ReshardingBegin`].
    ///
    /// # Errors
    /// ReshardCollectionInProgress (338) while another operation runs, even under the same UUID, ShardNotFound (70) for a recipient that is not there or
    /// is draining, ConflictingOperationInProgress (117) for another incarnation.
    pub async fn begin_resharding(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, ReshardingBegin::COMMAND)?;
        self.ensure().await?;
        let begin = ReshardingBegin::parse(request.body)?;
        let ns = begin.of.ns.as_str();
        self.node.failpoints.pause_operation(op, "reshardingPauseCoordinatorBeforeInitializing", ns).await?;
        let _members = self.membership.read().await;
        let _one = self.lock_chunks(RESHARDING_OPERATIONS).await;
        let _lock = self.lock_chunks(ns).await;
        let running = self.local.find(RESHARDING_OPERATIONS, &Document::new())?;
        let this = named(&begin.of);
        let is_this = |d: &Document| this.iter().all(|(name, value)| d.get(name) == Some(value));
        if let Some(other) = running.iter().find(|d| !is_this(d)) {
            bail!(
                RESHARD_COLLECTION_IN_PROGRESS,
                "Only one resharding operation is allowed to be active at a time, and that on {} is",
                other.get_str("ns").unwrap_or("")
            );
        }
        for shard in &begin.recipients {
            if self.catalog().shard(shard)?.draining {
                bail!(SHARD_NOT_FOUND, "Shard {shard} is currently draining and may not receive data");
            }
        }
        let collection = self.still(&begin.of)?;
        let operation = self.operation_document(&begin);
        let mut writes = vec![put(RESHARDING_OPERATIONS, operation.clone())];
        if let Some(collection) = collection {
            let fields = fields_of(&operation);
            writes.push(edit(COLLECTIONS, collection.document, |e| e.insert("reshardingFields", fields)));
        }
        self.commit(&writes).await?;
        Ok(Document::new())
    }

    /// The collection's entry, if it is tracked; it is that which the operation began with.
    fn still(&self, of: &Resharding) -> Result<Option<Sharded>> {
        let found = self.catalog().find_collection(&of.ns)?;
        let same = match &found {
            Some(found) => of.tracked.0 && found.info.uuid == of.old,
            None => !of.tracked.0,
        };
        match same {
            true => Ok(found),
            false => bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "collection {} was dropped, renamed or made anew since its resharding began",
                of.ns
            ),
        }
    }

    /// What is noted of the operation that a message is of.
    fn operation(&self, of: &Resharding) -> Result<Option<Document>> {
        self.local.find_one(RESHARDING_OPERATIONS, &named(of))
    }

    fn operation_document(&self, begin: &ReshardingBegin) -> Document {
        let of = &begin.of;
        let shards = |names: &[String]| -> Vec<Document> {
            names.iter().map(|s| doc! { "id": s.as_str(), "mutableState": { "state": "unused" } }).collect()
        };
        let mut operation = doc! {
            "_id": Value::uuid(of.id), "ns": of.ns.as_str(), "ui": Value::uuid(of.old), "tempNs": of.temporary.as_str(),
            "newUUID": Value::uuid(of.new), "reshardingKey": begin.to_come.key.clone(),
            "startTime": Value::DateTime(self.node.now_ms()), "state": "preparing-to-donate",
            "donorShards": shards(&begin.to_come.donors), "recipientShards": shards(&begin.recipients),
            "provenance": begin.provenance.as_str(), "approxDocumentsToCopy": begin.documents,
            "approxBytesToCopy": begin.bytes,
        };
        messages::set(&mut operation, "zones", &begin.zones);
        operation
    }

    /// Runs a [`ReshardingSetState`]. An operation that is not known needs no state.
    ///
    /// # Errors
    /// A failed log.
    pub async fn set_resharding_state(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, ReshardingSetState::COMMAND)?;
        self.ensure().await?;
        let ReshardingSetState { of, state, clone_timestamp } = ReshardingSetState::parse(request.body)?;
        let ns = of.ns.as_str();
        let point = match state.as_str() {
            "cloning" => Some("reshardingPauseCoordinatorBeforeCloning"),
            "blocking-writes" => Some("reshardingPauseCoordinatorBeforeBlockingWrites"),
            _ => None,
        };
        if let Some(point) = point {
            self.node.failpoints.pause_operation(op, point, ns).await?;
        }
        let _lock = self.lock_chunks(ns).await;
        let Some(mut operation) = self.operation(&of)? else {
            return Ok(Document::new());
        };
        operation.insert("state", state);
        if let Some(from) = clone_timestamp {
            operation.insert("cloneTimestamp", from);
        }
        let mut writes = vec![put(RESHARDING_OPERATIONS, operation.clone())];
        if let Some(entry) =
            self.catalog().collection_document(ns).filter(|e| e.contains_key("reshardingFields"))
        {
            let fields = fields_of(&operation);
            writes.push(edit(COLLECTIONS, entry, |e| e.insert("reshardingFields", fields)));
        }
        self.commit(&writes).await?;
        Ok(Document::new())
    }

    /// Runs a [`ReshardingCommit`]: the collection is the copy from here. A repeat finds it so. The collation of a tracked
    /// collection stays.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) for another incarnation than the operation began with; ShardNotFound (70).
    pub async fn commit_resharding(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, ReshardingCommit::COMMAND)?;
        self.ensure().await?;
        let ReshardingCommit { of, to_come, unsplittable, unique, zones, collation, series } =
            ReshardingCommit::parse(request.body)?;
        let (ns, new) = (of.ns.as_str(), of.new);
        self.node
            .failpoints
            .pause_operation(op, "reshardingPauseCoordinatorBeforeDecisionPersisted", ns)
            .await?;
        let _members = self.membership.read().await;
        let _lock = self.lock_chunks(ns).await;
        if self.catalog().find_collection(ns)?.is_some_and(|c| c.info.uuid == new) {
            return Ok(Document::new());
        }
        if self.operation(&of)?.is_none() {
            bail!(NO_SUCH_RESHARD_COLLECTION, "the operation on {ns} was given up");
        }
        let old = self.still(&of)?;
        let copied = CommitCreateCollection {
            ns: ns.to_string(),
            uuid: new,
            key: to_come.key,
            unique,
            collation,
            series,
            unsplittable,
            chunks: to_come.chunks,
        };
        let mut writes = self.replacement_writes(old, &copied)?;
        if let Some(zones) = zones {
            self.replace_zones(&mut writes, ns, zones);
        }
        self.remove_chunks(new).await?;
        self.commit(&writes).await?;
        Ok(Document::new())
    }

    /// What makes a copy the collection, in the place of `old`.
    ///
    /// # Errors
    /// ShardNotFound (70) for an owner that is none, and those of chunks that leave a gap.
    pub(super) fn replacement_writes(
        &self,
        old: Option<Sharded>,
        copied: &CommitCreateCollection,
    ) -> Result<Vec<BatchWrite>> {
        let (mut entry, chunks) = self.new_collection(copied)?;
        for name in
            ["defaultCollation", "noBalance", "maxChunkSizeBytes", "enableAutoMerge", "permitMigrations"]
        {
            if let Some(value) = old.as_ref().and_then(|o| o.document.get(name)) {
                entry.insert(name, value.clone());
            }
        }
        let collection = Sharded::parse(entry.clone())?;
        let owners: BTreeSet<String> = chunks.iter().map(|c| c.shard.to_string()).collect();
        for shard in &owners {
            self.catalog().shard(shard)?;
        }
        let (ns, new, at) = (copied.ns.as_str(), copied.uuid, collection.info.timestamp);
        let owners = owners.into_iter().collect();
        let placement = placement_entry(self.node.new_object_id(), ns, Some(new), at, owners);
        let before = old.map(|old| old.document).unwrap_or_default();
        let mut writes = vec![change(COLLECTIONS, before, entry), insert(PLACEMENT_HISTORY, placement)];
        writes.extend(chunks.iter().map(|c| insert(CHUNKS, c.to_document(new))));
        crate::routing::RoutingTable::build(&collection.info, chunks)?;
        Ok(writes)
    }

    fn replace_zones(&self, writes: &mut Vec<BatchWrite>, ns: &str, zones: Vec<ZoneToCome>) {
        writes.extend(self.catalog().zone_ranges(ns).into_iter().map(|z| delete(TAGS, z.id)));
        for ZoneToCome { zone, min, max } in zones {
            let range =
                doc! { "_id": self.node.new_object_id(), "ns": ns, "tag": zone, "min": min, "max": max };
            writes.push(insert(TAGS, range));
        }
    }

    /// Runs a [`ReshardingEnd`]; answers `{committed}`. An operation that is to be given up and was committed stays as it is;
    /// once it is given up it cannot be committed.
    ///
    /// # Errors
    /// A failed log. A repeat has nothing to do.
    pub async fn end_resharding(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, ReshardingEnd::COMMAND)?;
        self.ensure().await?;
        let ReshardingEnd { of, committed: Flag(committed) } = ReshardingEnd::parse(request.body)?;
        let (ns, id) = (of.ns.as_str(), Value::uuid(of.id));
        for point in points_before_end(committed) {
            self.node.failpoints.pause_operation(op, point, ns).await?;
        }
        let _lock = self.lock_chunks(ns).await;
        if !committed && self.catalog().find_collection(ns)?.is_some_and(|c| c.info.uuid == of.new) {
            return Ok(doc! { "committed": true });
        }
        if committed && self.catalog().collections().iter().all(|c| c.info.uuid != of.old) {
            self.remove_chunks(of.old).await?;
        }
        let mut writes = Vec::new();
        if let Some(entry) = self.catalog().collection_document(ns)
            && entry.get_path("reshardingFields.reshardingUUID") == Some(&id)
        {
            writes.push(edit(COLLECTIONS, entry, |e| drop(e.remove("reshardingFields"))));
        }
        if self.operation(&of)?.is_some() {
            writes.push(delete(RESHARDING_OPERATIONS, id));
        }
        self.commit(&writes).await?;
        Ok(doc! { "committed": committed })
    }
}

/// The fail points that the end of an operation passes: releases of the real server name that before the state document goes in two ways.
fn points_before_end(committed: bool) -> &'static [&'static str] {
    match committed {
        true => &[
            "reshardingPauseCoordinatorBeforeCompletion",
            "reshardingPauseCoordinatorBeforeRemovingStateDoc",
        ],
        false => &["reshardingPauseCoordinatorBeforeStartingErrorFlow"],
    }
}

/// The names of an operation: a client may have named another by the same UUID.
fn named(of: &Resharding) -> Document {
    doc! { "_id": Value::uuid(of.id), "ns": of.ns.as_str(), "newUUID": Value::uuid(of.new) }
}

/// What a collection's entry says of an operation that runs.
fn fields_of(operation: &Document) -> Document {
    let member = |name: &str| operation.get(name).cloned().unwrap_or(Value::Null);
    doc! {
        "reshardingUUID": member("_id"), "state": member("state"), "startTime": member("startTime"),
        "provenance": member("provenance"),
    }
}
