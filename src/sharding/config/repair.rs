//! Making history anew: of the chunks of a collection, and of what was placed where.

use super::catalog::Sharded;
use super::chunks::migration::placement_entry;
use super::{ConfigServer, PLACEMENT_HISTORY, argument, delete, insert, require_majority};
use crate::chunk::Chunk;
use document::{Document, Result, Timestamp, Value};
use node::{BatchWrite, Operation, Request};

/// Documents changed by one batch.
const AT_ONCE: usize = 2000;

impl ConfigServer {
    /// `{_configsvrRepairShardedCollectionChunksHistory: ns, force?}`: chunks whose history is missing, or names another owner, get
    /// one that begins now; all do when `force` says so. Versions are raised, so that every node reads them anew.
    ///
    /// # Errors
    /// NamespaceNotSharded (118).
    pub async fn repair_chunks_history(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, "_configsvrRepairShardedCollectionChunksHistory")?;
        self.ensure().await?;
        let ns = argument(&request)?;
        let force = request.body.get("force").is_some_and(|v| v.truthy());
        let _lock = self.lock_chunks(ns).await;
        let collection = self.catalog().sharded(ns)?;
        let at = self.tick();
        let mut writes = Vec::new();
        for d in self.catalog().chunk_documents(collection.info.uuid) {
            let chunk = Chunk::from_document(&d, &collection.key)?;
            let since = d.get("onCurrentShardSince").and_then(Value::as_timestamp);
            let sound = chunk.history.first().is_some_and(|(t, s)| *s == chunk.shard && Some(*t) == since);
            if force || !sound {
                let history = vec![(at, chunk.shard.clone())];
                writes.push(self.put_chunk(&collection, &Chunk { history, ..chunk }));
            }
        }
        if writes.is_empty() {
            return Ok(Document::new());
        }
        for some in writes.chunks(AT_ONCE) {
            self.commit(some).await?;
        }
        self.commit(&self.bump_every_owner(&collection)?).await?;
        Ok(Document::new())
    }

    /// `{_configsvrResetPlacementHistory: 1}`: what is known of the past is forgotten; the history begins with what is where now.
    ///
    /// # Errors
    /// A failed log.
    pub async fn reset_placement_history(&self, op: &Operation, _request: Request<'_>) -> Result<Document> {
        require_majority(op, "_configsvrResetPlacementHistory")?;
        self.ensure().await?;
        // No shard, database or chunk comes or goes meanwhile.
        let _topology = self.topology.lock().await;
        let _members = self.membership.write().await;
        let at = self.tick();
        let old = self.local.find(PLACEMENT_HISTORY, &Document::new())?;
        let mut writes: Vec<BatchWrite> = old
            .iter()
            .filter(|d| d.get("timestamp").and_then(Value::as_timestamp).is_none_or(|t| t < at))
            .filter_map(|d| d.get("_id").map(|id| delete(PLACEMENT_HISTORY, id.clone())))
            .collect();
        writes.extend(self.present_placements(at).into_iter().map(|d| insert(PLACEMENT_HISTORY, d)));
        for some in writes.chunks(AT_ONCE) {
            self.commit(some).await?;
        }
        Ok(Document::new())
    }

    /// What is placed where, as entries of the history. Those of the empty namespace say from when on the history holds.
    fn present_placements(&self, at: Timestamp) -> Vec<Document> {
        let id = || self.node.new_object_id();
        let all: Vec<String> = self.catalog().shards().into_iter().map(|s| s.name).collect();
        let mut entries = vec![
            placement_entry(id(), "", None, Timestamp::new(0, 1), all),
            placement_entry(id(), "", None, at, Vec::new()),
        ];
        for database in self.catalog().databases() {
            entries.push(placement_entry(id(), &database.name, None, at, vec![database.primary]));
        }
        for Sharded { info, .. } in self.catalog().collections() {
            let owners = self.catalog().chunk_counts(info.uuid).into_keys().collect();
            entries.push(placement_entry(id(), &info.ns, Some(info.uuid), at, owners));
        }
        entries
    }
}
