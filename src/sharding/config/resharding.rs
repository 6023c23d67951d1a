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
    CHUNKS, COLLECTIONS, ConfigServer, PLACEMENT_HISTORY, RESHARDING_OPERATIONS, TAGS, argument, delete,
    insert, put,
};
use super::{require_majority, required, required_str};
use crate::messages::ddl::CommitCreateCollection;
use crate::messages::{self, Flag};
use document::{Document, Result, Value, bail, doc};
use node::{BatchWrite, Operation, Request};
use std::collections::BTreeSet;

impl ConfigServer {
    /// `{_configsvrReshardingBegin: ns, reshardingUUID, oldUUID, newUUID, tempNs, tracked, key, donors, recipients, ...}`.
    ///
    /// # Errors
    /// ReshardCollectionInProgress (338) while another operation runs, even under the same UUID, ShardNotFound (70) for a recipient that is not there or
    /// is draining, ConflictingOperationInProgress (117) for another incarnation.
    pub async fn begin_resharding(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, "_configsvrReshardingBegin")?;
        self.ensure().await?;
        let ns = argument(&request)?;
        let body = request.body.to_document();
        let uuid = required(&body, "reshardingUUID", Value::as_uuid)?;
        let _members = self.membership.read().await;
        let _one = self.lock_chunks(RESHARDING_OPERATIONS).await;
        let _lock = self.lock_chunks(ns).await;
        let id = Value::uuid(uuid);
        let running = self.local.find(RESHARDING_OPERATIONS, &Document::new())?;
        let this = [("_id", Some(&id)), ("ns", Some(&Value::from(ns))), ("newUUID", body.get("newUUID"))];
        let is_this = |d: &Document| this.iter().all(|(name, value)| d.get(name) == *value);
        if let Some(other) = running.iter().find(|d| !is_this(d)) {
            bail!(
                RESHARD_COLLECTION_IN_PROGRESS,
                "Only one resharding operation is allowed to be active at a time, and that on {} is",
                other.get_str("ns").unwrap_or("")
            );
        }
        for shard in required(&body, "recipients", Value::as_array)?.iter().filter_map(Value::as_str) {
            if self.catalog().shard(shard)?.draining {
                bail!(SHARD_NOT_FOUND, "Shard {shard} is currently draining and may not receive data");
            }
        }
        let collection = self.still(ns, &body)?;
        let operation = self.operation_document(ns, id, &body)?;
        let mut writes = vec![put(RESHARDING_OPERATIONS, operation.clone())];
        if let Some(collection) = collection {
            let mut entry = collection.document;
            entry.insert("reshardingFields", fields_of(&operation));
            writes.push(put(COLLECTIONS, entry));
        }
        self.commit(&writes).await?;
        Ok(Document::new())
    }

    /// The collection's entry, if it is tracked; it is that which the operation began with.
    fn still(&self, ns: &str, body: &Document) -> Result<Option<Sharded>> {
        let old = required(body, "oldUUID", Value::as_uuid)?;
        let tracked = body.get_bool("tracked").unwrap_or(false);
        let found = self.catalog().find_collection(ns)?;
        let same = match &found {
            Some(found) => tracked && found.info.uuid == old,
            None => !tracked,
        };
        match same {
            true => Ok(found),
            false => bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "collection {ns} was dropped, renamed or made anew since its resharding began"
            ),
        }
    }

    /// What is noted of the operation that a message is of: a client may have named another by the same UUID.
    fn operation(&self, ns: &str, body: &Document) -> Result<Option<Document>> {
        let id = Value::uuid(required(body, "reshardingUUID", Value::as_uuid)?);
        let new = Value::uuid(required(body, "newUUID", Value::as_uuid)?);
        self.local.find_one(RESHARDING_OPERATIONS, &doc! { "_id": id, "ns": ns, "newUUID": new })
    }

    fn operation_document(&self, ns: &str, id: Value, body: &Document) -> Result<Document> {
        let member = |name: &str| body.get(name).cloned().unwrap_or(Value::Null);
        let shards = |name: &str| -> Result<Vec<Document>> {
            let names = required(body, name, Value::as_array)?.iter().filter_map(Value::as_str);
            Ok(names.map(|s| doc! { "id": s, "mutableState": { "state": "unused" } }).collect())
        };
        let mut operation = doc! {
            "_id": id, "ns": ns, "ui": member("oldUUID"), "tempNs": member("tempNs"), "newUUID": member("newUUID"),
            "reshardingKey": member("key"), "startTime": Value::DateTime(self.node.now_ms()),
            "state": "preparing-to-donate", "donorShards": shards("donors")?, "recipientShards": shards("recipients")?,
            "provenance": member("provenance"), "approxDocumentsToCopy": member("approxDocumentsToCopy"),
            "approxBytesToCopy": member("approxBytesToCopy"),
        };
        if let Some(zones) = body.get_present("zones") {
            operation.push("zones", zones.clone());
        }
        Ok(operation)
    }

    /// `{_configsvrReshardingSetState: ns, reshardingUUID, newUUID, state}`. An operation that is not known needs no state.
    ///
    /// # Errors
    /// A failed log.
    pub async fn set_resharding_state(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, "_configsvrReshardingSetState")?;
        self.ensure().await?;
        let ns = argument(&request)?;
        let body = request.body.to_document();
        let state = required_str(&body, "state")?;
        let _lock = self.lock_chunks(ns).await;
        let Some(mut operation) = self.operation(ns, &body)? else {
            return Ok(Document::new());
        };
        operation.insert("state", state);
        let mut writes = vec![put(RESHARDING_OPERATIONS, operation.clone())];
        if let Some(mut entry) =
            self.catalog().collection_document(ns).filter(|e| e.contains_key("reshardingFields"))
        {
            entry.insert("reshardingFields", fields_of(&operation));
            writes.push(put(COLLECTIONS, entry));
        }
        self.commit(&writes).await?;
        Ok(Document::new())
    }

    /// `{_configsvrReshardingCommit: ns, reshardingUUID, oldUUID, newUUID, tracked, key, chunks, unsplittable?, zones?,
    /// defaultCollation?}`: the collection is the copy from here. A repeat finds it so. The collation of a tracked collection stays.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) for another incarnation than the operation began with; ShardNotFound (70).
    pub async fn commit_resharding(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, "_configsvrReshardingCommit")?;
        self.ensure().await?;
        let ns = argument(&request)?;
        let body = request.body.to_document();
        let new = required(&body, "newUUID", Value::as_uuid)?;
        let _members = self.membership.read().await;
        let _lock = self.lock_chunks(ns).await;
        if self.catalog().find_collection(ns)?.is_some_and(|c| c.info.uuid == new) {
            return Ok(Document::new());
        }
        if self.operation(ns, &body)?.is_none() {
            bail!(NO_SUCH_RESHARD_COLLECTION, "the operation on {ns} was given up");
        }
        let old = self.still(ns, &body)?;
        let (mut entry, chunks) = self.new_collection(&copied(ns, new, &body)?)?;
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
        let at = collection.info.timestamp;
        let placement =
            placement_entry(self.node.new_object_id(), ns, Some(new), at, owners.into_iter().collect());
        let mut writes = vec![put(COLLECTIONS, entry), insert(PLACEMENT_HISTORY, placement)];
        writes.extend(chunks.iter().map(|c| insert(CHUNKS, c.to_document(new))));
        crate::routing::RoutingTable::build(&collection.info, chunks)?;
        self.replace_zones(&mut writes, ns, &body);
        self.remove_chunks(new).await?;
        self.commit(&writes).await?;
        Ok(Document::new())
    }

    fn replace_zones(&self, writes: &mut Vec<BatchWrite>, ns: &str, body: &Document) {
        let Some(zones) = body.get_array("zones") else { return };
        writes.extend(self.catalog().zone_ranges(ns).into_iter().map(|z| delete(TAGS, z.id)));
        for zone in zones.iter().filter_map(Value::as_document) {
            let member = |name: &str| zone.get(name).cloned().unwrap_or(Value::Null);
            let range = doc! {
                "_id": self.node.new_object_id(), "ns": ns, "tag": member("zone"), "min": member("min"), "max": member("max"),
            };
            writes.push(insert(TAGS, range));
        }
    }

    /// `{_configsvrReshardingEnd: ns, reshardingUUID, oldUUID, newUUID, committed}` answers `{committed}`. An operation that is to be
    /// given up and was committed stays as it is; once it is given up it cannot be committed.
    ///
    /// # Errors
    /// A failed log. A repeat has nothing to do.
    pub async fn end_resharding(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, "_configsvrReshardingEnd")?;
        self.ensure().await?;
        let ns = argument(&request)?;
        let body = request.body.to_document();
        let id = Value::uuid(required(&body, "reshardingUUID", Value::as_uuid)?);
        let old = required(&body, "oldUUID", Value::as_uuid)?;
        let _lock = self.lock_chunks(ns).await;
        let committed = body.get_bool("committed").unwrap_or(false);
        let new = body.get("newUUID").and_then(Value::as_uuid);
        if !committed && new.is_some() && self.catalog().find_collection(ns)?.map(|c| c.info.uuid) == new {
            return Ok(doc! { "committed": true });
        }
        if committed && self.catalog().collections().iter().all(|c| c.info.uuid != old) {
            self.remove_chunks(old).await?;
        }
        let mut writes = Vec::new();
        if let Some(mut entry) = self.catalog().collection_document(ns)
            && entry.get_path("reshardingFields.reshardingUUID") == Some(&id)
        {
            entry.remove("reshardingFields");
            writes.push(put(COLLECTIONS, entry));
        }
        if self.operation(ns, &body)?.is_some() {
            writes.push(delete(RESHARDING_OPERATIONS, id));
        }
        self.commit(&writes).await?;
        Ok(doc! { "committed": committed })
    }
}

/// The collection that the copy is.
fn copied(ns: &str, uuid: [u8; 16], body: &Document) -> Result<CommitCreateCollection> {
    let of = "_configsvrReshardingCommit";
    Ok(CommitCreateCollection {
        ns: ns.to_string(),
        uuid,
        key: messages::read(body, of, "key")?,
        unique: Flag(false),
        collation: messages::read(body, of, "defaultCollation")?,
        series: None,
        unsplittable: messages::read(body, of, "unsplittable")?,
        chunks: messages::read(body, of, "chunks")?,
    })
}

/// What a collection's entry says of an operation that runs.
fn fields_of(operation: &Document) -> Document {
    let member = |name: &str| operation.get(name).cloned().unwrap_or(Value::Null);
    doc! {
        "reshardingUUID": member("_id"), "state": member("state"), "startTime": member("startTime"),
        "provenance": member("provenance"),
    }
}
