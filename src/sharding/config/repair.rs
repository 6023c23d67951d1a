//! Making history anew: of the chunks of a collection, and of what was placed where.

use super::catalog::Sharded;
use super::chunks::migration::placement_entry;
use super::{ConfigServer, PLACEMENT_HISTORY, argument, delete, insert, require_majority};
use crate::chunk::Chunk;
use document::{Document, Result, Timestamp, Value};
use node::{BatchWrite, Operation, Request};

/// The time of the mark that stands for all that was before.
const BEGINNING: Timestamp = Timestamp { secs: 0, inc: 1 };

/// A database or a collection, and the shards that have it.
pub(super) struct Owned {
    pub ns: String,
    pub uuid: Option<[u8; 16]>,
    pub shards: Vec<String>,
}

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
        self.commit_in_parts(writes).await?;
        // Also where nothing was wrong: an earlier run may have ended before it.
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
        self.commit_in_parts(self.history_anew()?).await?;
        Ok(Document::new())
    }

    /// What makes the history of placements begin now. The marks come first and what is forgotten goes last, so that every part of this leaves
    /// a history that says from when on it holds and lacks nothing of that time.
    pub(super) fn history_anew(&self) -> Result<Vec<BatchWrite>> {
        let at = self.tick();
        let old = self.local.find(PLACEMENT_HISTORY, &Document::new())?;
        let time = |d: &Document| d.get("timestamp").and_then(Value::as_timestamp);
        let forget = |d: &Document| d.get("_id").map(|id| delete(PLACEMENT_HISTORY, id.clone()));
        // No two entries of a namespace have one time, so the old mark gives way before the new one.
        let (marks, entries): (Vec<_>, Vec<_>) =
            old.iter().filter(|d| time(d).is_none_or(|t| t < at)).partition(|d| time(d) == Some(BEGINNING));
        let mut writes: Vec<BatchWrite> = marks.into_iter().filter_map(forget).collect();
        // Those of the empty namespace say from when on the history holds.
        let all = self.catalog().shards().into_iter().map(|s| s.name).collect();
        writes.push(self.note_owners(BEGINNING, Owned { ns: String::new(), uuid: None, shards: all }));
        writes.push(self.note_owners(at, Owned { ns: String::new(), uuid: None, shards: Vec::new() }));
        writes.extend(self.present_owners().into_iter().map(|owned| self.note_owners(at, owned)));
        writes.extend(entries.into_iter().filter_map(forget));
        Ok(writes)
    }

    /// Who has each database and each collection now.
    pub(super) fn present_owners(&self) -> Vec<Owned> {
        let databases = self.catalog().databases().into_iter();
        let databases = databases.map(|d| Owned { ns: d.name, uuid: None, shards: vec![d.primary] });
        let collections = self.catalog().collections().into_iter().map(|Sharded { info, .. }| Owned {
            shards: self.catalog().chunk_counts(info.uuid).into_keys().collect(),
            ns: info.ns,
            uuid: Some(info.uuid),
        });
        databases.chain(collections).collect()
    }

    /// An entry of the history.
    pub(super) fn note_owners(&self, at: Timestamp, Owned { ns, uuid, shards }: Owned) -> BatchWrite {
        insert(PLACEMENT_HISTORY, placement_entry(self.node.new_object_id(), &ns, uuid, at, shards))
    }
}
