//! The catalog put back to a snapshot, as new incarnations.
//!
//! ```text
//! snapshot's copies  ──▶  a stage, where databases and collections get new versions  ──▶  config.*, all in one commit
//!                             it is dropped at the end
//! ```
//! Chunks stay as they were: they are found by the UUID of their collection, and their versions are compared within its incarnation. Who had their ranges
//! before, nobody can say any more, which the collection does (`restoredAt`).
//!
//! Sessions are not put back, and so neither is the placement of their collection.

use super::snapshot::{catalog_part, shard_part};
use super::*;
use crate::config::repair::Owned;
use crate::config::{CHUNKS, COLLECTIONS, DATABASES, SHARDS, delete, edit, put};
use crate::routing::table::RESTORED;
use document::Timestamp;
use node::BatchWrite;
use node::fork::{self, CATALOG, catalog_copy};
use std::collections::BTreeSet;

const STAGE: &str = "stage";
const SESSIONS: &str = "config.system.sessions";

impl ConfigServer {
    /// Can be repeated: the versions of the last time are the newest.
    pub(super) async fn put_back_catalog(&self, state: &Document) -> Result<()> {
        let part = catalog_part(&shard_part(state.get("id").unwrap_or(&Value::Null)));
        self.copy_all(|ns| (catalog_copy(&part, ns), catalog_copy(STAGE, ns))).await?;
        let at = self.tick();
        let mut writes = self.new_versions(at)?;
        self.keep_sessions(&mut writes)?;
        self.commit_in_parts(writes).await?;
        self.copy_all(|ns| (catalog_copy(STAGE, ns), ns.to_string())).await?;
        self.note_new_owners(names(state, "since"), at).await?;
        self.put_back_zones(state).await?;
        self.drop_kept(STAGE).await?;
        self.log_change("restore", "", doc! { "snapshot": state.get_str("name").unwrap_or_default() }).await;
        self.balancer.signal();
        Ok(())
    }

    async fn copy_all(&self, pair: impl Fn(&str) -> (String, String)) -> Result<()> {
        let pairs: Vec<(String, String)> = CATALOG.iter().map(|ns| pair(ns)).collect();
        let op = Operation::internal();
        fork::replace_collections(&self.node, &op, &pairs).await?;
        self.node.wait_operation_committed(&op).await
    }

    /// Every database and collection of the stage as a new incarnation.
    fn new_versions(&self, at: Timestamp) -> Result<Vec<BatchWrite>> {
        let mut writes = Vec::new();
        let databases = catalog_copy(STAGE, DATABASES);
        for mut d in self.local.find(&databases, &Document::new())? {
            let version = doc! { "uuid": Value::uuid(self.node.new_uuid()), "timestamp": at, "lastMod": 1 };
            d.insert("version", version);
            writes.push(put(&databases, d));
        }
        let collections = catalog_copy(STAGE, COLLECTIONS);
        for mut d in self.local.find(&collections, &Document::new())? {
            if d.get_str("_id") == Some(SESSIONS) {
                continue;
            }
            d.insert("lastmodEpoch", self.node.new_object_id());
            d.insert("timestamp", at);
            d.insert(RESTORED, at);
            writes.push(put(&collections, d));
        }
        Ok(writes)
    }

    fn keep_sessions(&self, writes: &mut Vec<BatchWrite>) -> Result<()> {
        let (collections, chunks) = (catalog_copy(STAGE, COLLECTIONS), catalog_copy(STAGE, CHUNKS));
        if let Some(then) = self.local.find_one(&collections, &doc! { "_id": SESSIONS })? {
            let uuid = then.get("uuid").cloned().unwrap_or(Value::Null);
            for chunk in self.local.find(&chunks, &doc! { "uuid": uuid })? {
                writes.push(delete(&chunks, chunk.get("_id").cloned().unwrap_or(Value::Null)));
            }
            writes.push(delete(&collections, Value::from(SESSIONS)));
        }
        let Some(now) = self.catalog().collection_document(SESSIONS) else { return Ok(()) };
        if let Some(uuid) = now.get("uuid").and_then(Value::as_uuid) {
            writes.extend(self.catalog().chunk_documents(uuid).into_iter().map(|chunk| put(&chunks, chunk)));
        }
        writes.push(put(&collections, now));
        Ok(())
    }

    /// `config.placementHistory`: who has data from now on, and who has none any more.
    async fn note_new_owners(&self, gone: impl Iterator<Item = &str>, at: Timestamp) -> Result<()> {
        let mut owned = self.present_owners();
        let there: BTreeSet<String> = owned.iter().map(|o| o.ns.clone()).collect();
        let gone = gone.filter(|ns| !there.contains(*ns));
        owned.extend(gone.map(|ns| Owned { ns: ns.to_string(), uuid: None, shards: Vec::new() }));
        owned.retain(|o| o.ns != SESSIONS);
        // At a time of its own, so that a repetition meets none of the last time.
        let at = at.max(self.tick());
        self.commit_in_parts(owned.into_iter().map(|owned| self.note_owners(at, owned)).collect()).await
    }

    /// The zones that shards had.
    async fn put_back_zones(&self, state: &Document) -> Result<()> {
        let Ok((_, snapshot)) = self.snapshot_named(state.get_str("name").unwrap_or_default()) else {
            return Ok(());
        };
        let mut writes = Vec::new();
        for then in snapshot.get_array("shards").into_iter().flatten().filter_map(Value::as_document) {
            let Some(now) = self.catalog().shard_document(then.get_str("name").unwrap_or_default()) else {
                continue;
            };
            let zones = then.get("zones").cloned().unwrap_or(Value::Array(Vec::new()));
            if now.get("tags").cloned().unwrap_or(Value::Array(Vec::new())) != zones {
                writes.push(edit(SHARDS, now, |shard| shard.insert("tags", zones)));
            }
        }
        self.commit(&writes).await
    }
}
