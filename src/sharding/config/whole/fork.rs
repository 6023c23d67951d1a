//! A database copied under another name, on all shards.
//!
//! The copy of a sharded collection has the UUID that was chosen here, so that it is the same everywhere, and the chunks of its original.

use super::*;
use crate::chunk::Chunk;
use crate::config::catalog::{Database, Sharded};
use crate::config::repair::Owned;
use crate::config::{CHUNKS, COLLECTIONS, DATABASES, TAGS, delete, insert, put};
use crate::messages::standstill::{Begin, CopyDatabase, DatabaseCopy};
use crate::routing::table::RESTORED;
use document::Timestamp;
use node::BatchWrite;
use protocol::version::DatabaseVersion;

/// The two databases of a fork.
fn databases(state: &Document) -> (&str, &str) {
    (state.get_str("from").unwrap_or_default(), state.get_str("to").unwrap_or_default())
}

/// What a shard is told to copy.
fn order(state: &Document, source: &Database, shard: &str, uuids: &Document) -> DatabaseCopy {
    let (from, to) = databases(state);
    let primary = Flag(shard == source.primary);
    DatabaseCopy { from: from.to_string(), to: to.to_string(), uuids: uuids.clone(), primary }
}

impl ConfigServer {
    pub(super) async fn run_fork(&self, phase: ForkPhase, state: &mut Document) -> Result<()> {
        match phase {
            ForkPhase::Quiesce => self.quiesce(state).await,
            ForkPhase::Begin => self.begin_fork(state).await,
            ForkPhase::Copy => self.copy_on_shards(state).await,
            ForkPhase::Catalog => self.enter_copies(state).await,
            ForkPhase::End => self.end_everywhere(state, Vec::new()).await,
        }
    }

    /// `{_configsvrTesseraFork: from, to, replace?}` answers `{collections}`.
    ///
    /// # Errors
    /// InvalidNamespace (73), NamespaceNotFound (26), NamespaceExists (48), DatabaseDifferCase (13297), OperationFailed (96) for
    /// too much, LockBusy (46), ExceededTimeLimit (262).
    pub async fn fork_database(self: &Arc<Self>, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, request.name())?;
        self.ensure().await?;
        let (from, to) = (argument(&request)?, request.body.get_str("to").unwrap_or_default());
        node::fork::check_databases(from, to)?;
        let replace = request.body.get("replace").is_some_and(|v| v.truthy());
        if self.catalog().database(from).is_none() {
            bail!(NAMESPACE_NOT_FOUND, "database {from} not found");
        }
        let fields = doc! { "from": from, "to": to, "replace": replace, "forgets": true };
        let done = self.run_whole(op, Kind::Fork, fields).await?;
        Ok(doc! { "collections": done.get_i64("collections").unwrap_or(0) as i32 })
    }

    async fn begin_fork(&self, state: &mut Document) -> Result<()> {
        let (from, to) = databases(state);
        let source = self.source(from)?;
        let mut uuids = Document::new();
        for c in self.tracked_of(from) {
            let name = storage::split_namespace(&c.info.ns).1;
            uuids.push(name, Value::uuid(self.node.new_uuid()));
        }
        let begin = |shard: &str| {
            let copy = Some(order(state, &source, shard, &uuids));
            Step::Begin(Begin { reads: Flag(true), restore: Flag(false), requires: None, copy })
        };
        let found = self.on_shards(state, begin).await?;
        let any = |name: &str| found.iter().any(|reply| reply.get_bool(name) == Some(true));
        if !any("fromExists") {
            bail!(NAMESPACE_NOT_FOUND, "database {from} not found");
        }
        if any("toExists") && state.get_bool("replace") != Some(true) {
            bail!(NAMESPACE_EXISTS, "database {to} exists already");
        }
        let alike = |d: &Database| d.name != to && d.name.eq_ignore_ascii_case(to);
        if let Some(other) = self.catalog().databases().into_iter().find(alike) {
            bail!(
                DATABASE_DIFFER_CASE,
                "db already exists with different case already have: [{}] trying to create [{to}]",
                other.name
            );
        }
        state.insert("uuids", uuids);
        let replaced = self.tracked_of(state.get_str("to").unwrap_or_default());
        let replaced: Vec<Value> = replaced.iter().map(|c| Value::uuid(c.info.uuid)).collect();
        state.insert("replacedUUIDs", replaced);
        Ok(())
    }

    fn tracked_of(&self, db: &str) -> Vec<Sharded> {
        let mut all = self.catalog().collections();
        all.retain(|c| storage::split_namespace(&c.info.ns).0 == db);
        all
    }

    async fn copy_on_shards(&self, state: &mut Document) -> Result<()> {
        let source = self.source(databases(state).0)?;
        let uuids = state.get_document("uuids").cloned().unwrap_or_default();
        let copy =
            |shard: &str| Step::CopyDatabase(CopyDatabase { copy: order(state, &source, shard, &uuids) });
        let copied = self.on_shards(state, copy).await?;
        state.insert("collections", distinct(&copied));
        Ok(())
    }

    fn source(&self, from: &str) -> Result<Database> {
        self.catalog().database(from).ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "database {from} not found"))
    }

    /// Can be repeated from any part on: it begins by leaving out what it may have entered. The chunks of a copy are nobody's before its entry
    /// is there, and those of a collection that gave way nobody's afterwards, so which they are was written down before.
    async fn enter_copies(&self, state: &Document) -> Result<()> {
        let (from, to) = databases(state);
        let source = self.source(from)?;
        let at = self.tick();
        let version = DatabaseVersion { uuid: self.node.new_uuid(), timestamp: at, last_mod: 1 };
        let copy = Database { name: to.to_string(), primary: source.primary.clone(), version };
        let placed = Owned { ns: to.to_string(), uuid: None, shards: vec![source.primary] };
        let mut writes = vec![put(DATABASES, copy.to_document()), self.note_owners(at, placed)];
        self.leave_out(to, &mut writes)?;
        let mut kept = Vec::new();
        for original in self.tracked_of(from) {
            let name = storage::split_namespace(&original.info.ns).1;
            let uuid = state.get_document("uuids").and_then(|uuids| uuids.get(name)).and_then(Value::as_uuid);
            let Some(uuid) = uuid else { continue };
            let ns = format!("{to}.{name}");
            let owners = self.enter_chunks(&original, uuid, at).await?;
            writes.push(put(COLLECTIONS, self.entry_of_copy(&original, &ns, uuid, at)));
            writes.extend(self.zones_of_copy(&original, &ns));
            writes.push(self.note_owners(at, Owned { ns, uuid: Some(uuid), shards: owners }));
            kept.push(uuid);
        }
        self.commit_in_parts(writes).await?;
        let replaced = state.get_array("replacedUUIDs").into_iter().flatten().filter_map(Value::as_uuid);
        for uuid in replaced.filter(|uuid| !kept.contains(uuid)) {
            self.remove_chunks(uuid).await?;
        }
        Ok(())
    }

    /// Removes what the catalog has of a database but for its own entry and chunks.
    fn leave_out(&self, db: &str, writes: &mut Vec<BatchWrite>) -> Result<()> {
        writes
            .extend(self.tracked_of(db).iter().map(|c| delete(COLLECTIONS, Value::from(c.info.ns.as_str()))));
        for zone in self.local.find(TAGS, &Document::new())? {
            if zone.get_str("ns").is_some_and(|ns| storage::split_namespace(ns).0 == db) {
                writes.push(delete(TAGS, zone.get("_id").cloned().unwrap_or(Value::Null)));
            }
        }
        Ok(())
    }

    async fn enter_chunks(&self, original: &Sharded, uuid: [u8; 16], at: Timestamp) -> Result<Vec<String>> {
        self.remove_chunks(uuid).await?;
        let chunks = self.catalog().chunks(original)?;
        let copies = chunks.into_iter().map(|c| {
            let history = vec![(at, c.shard.clone())];
            insert(CHUNKS, Chunk { id: self.node.new_object_id(), history, ..c }.to_document(uuid))
        });
        self.commit_in_parts(copies.collect()).await?;
        Ok(self.catalog().chunk_counts(uuid).into_keys().collect())
    }

    fn entry_of_copy(&self, original: &Sharded, ns: &str, uuid: [u8; 16], at: Timestamp) -> Document {
        let mut entry = original.document.clone();
        for passing in [RESTORED, "defragmentCollection", "defragmentationPhase"] {
            entry.remove(passing);
        }
        entry.insert("_id", ns);
        entry.insert("uuid", Value::uuid(uuid));
        entry.insert("lastmodEpoch", self.node.new_object_id());
        entry.insert("timestamp", at);
        entry
    }

    fn zones_of_copy(&self, original: &Sharded, ns: &str) -> Vec<BatchWrite> {
        let ranges = self.catalog().zone_ranges(&original.info.ns).into_iter();
        let copies = ranges.map(|range| {
            let id = self.node.new_object_id();
            insert(TAGS, doc! { "_id": id, "ns": ns, "tag": range.zone, "min": range.min, "max": range.max })
        });
        copies.collect()
    }
}
