//! Snapshots of the cluster: taken, listed, dropped.
//!
//! ```text
//! config.tesseraSnapshots    { _id: name, id: UUID, collections, takenAt, shards: [{ name, zones }] }       DO NOT CHANGE
//! ```
//! Each node keeps its part as a snapshot of its own, whose name is made of the id.

use super::*;
use crate::messages::standstill::{Begin, Confirm, KeptPart, Take};
use node::fork::{self, Part};

pub(super) const SNAPSHOTS: &str = "config.tesseraSnapshots";

/// The name of a shard's part.
pub(super) fn shard_part(id: &Value) -> String {
    format!("shard-{}", document::encoding::hex(&id.as_uuid().unwrap_or_default()))
}
/// The name of the catalog's part; a config server may be a shard too.
pub(super) fn catalog_part(id: &str) -> String {
    id.replacen("shard-", "catalog-", 1)
}

impl ConfigServer {
    pub(super) async fn run_take(&self, phase: TakePhase, state: &mut Document) -> Result<()> {
        match phase {
            TakePhase::Quiesce => self.quiesce(state).await,
            TakePhase::Begin => {
                let begin = Begin { reads: Flag(false), restore: Flag(false), requires: None, copy: None };
                self.on_shards(state, |_| Step::Begin(begin.clone())).await.map(drop)
            }
            TakePhase::Take => self.take_parts(state).await,
            TakePhase::Commit => self.commit_snapshot(state).await,
            TakePhase::End => self.end_and_drop_replaced(state).await,
        }
    }

    pub(super) async fn run_drop(&self, phase: DropSnapshotPhase, state: &mut Document) -> Result<()> {
        match phase {
            DropSnapshotPhase::Commit => {
                let name = state.get("name").cloned().unwrap_or(Value::Null);
                self.local.delete(SNAPSHOTS, &doc! { "_id": name }).await.map(drop)
            }
            DropSnapshotPhase::End => self.end_and_drop_replaced(state).await,
        }
    }

    async fn end_and_drop_replaced(&self, state: &Document) -> Result<()> {
        self.end_everywhere(state, strings(state, "replaced")).await
    }

    /// `{_configsvrTesseraSnapshot: name, drop?}` answers `{collections}`.
    ///
    /// # Errors
    /// BadValue (2) for the name, NamespaceNotFound (26) where one that is not there is to be dropped, LockBusy (46),
    /// ExceededTimeLimit (262) for what does not end in time.
    pub async fn take_or_drop_snapshot(
        self: &Arc<Self>,
        op: &Operation,
        request: Request<'_>,
    ) -> Result<Document> {
        require_majority(op, request.name())?;
        self.ensure().await?;
        let name = argument(&request)?;
        fork::check_name(name)?;
        if request.body.get("drop").is_some_and(|v| v.truthy()) {
            let replaced = vec![Value::from(shard_part(&self.snapshot_named(name)?.0))];
            let fields = doc! { "name": name, "replaced": Value::Array(replaced) };
            self.run_whole(op, Kind::Drop, fields).await?;
            return Ok(Document::new());
        }
        let id = Value::uuid(self.node.new_uuid());
        let undone = Value::Array(vec![Value::from(shard_part(&id))]);
        let done = self.run_whole(op, Kind::Take, doc! { "name": name, "id": id, "undone": undone }).await?;
        Ok(doc! { "collections": done.get_i64("collections").unwrap_or(0) as i32 })
    }

    /// `{_configsvrTesseraSnapshots: 1}` answers `{snapshots: [{name, collections}]}`.
    ///
    /// # Errors
    /// A failed log.
    pub async fn list_snapshots(&self) -> Result<Document> {
        self.ensure().await?;
        let mut all = self.local.find(SNAPSHOTS, &Document::new())?;
        all.sort_by(|a, b| a.get_str("_id").cmp(&b.get_str("_id")));
        let shown = all.iter().map(|d| {
            let collections = d.get_i64("collections").unwrap_or(0) as i32;
            doc! { "name": d.get_str("_id").unwrap_or_default(), "collections": collections }
        });
        Ok(doc! { "snapshots": shown.collect::<Vec<Document>>() })
    }

    /// The id of a snapshot, and its document.
    ///
    /// # Errors
    /// NamespaceNotFound (26).
    pub(super) fn snapshot_named(&self, name: &str) -> Result<(Value, Document)> {
        let found = self.local.find_one(SNAPSHOTS, &doc! { "_id": name })?;
        let id = found.as_ref().and_then(|d| d.get("id").cloned());
        id.zip(found).ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "snapshot {name} not found"))
    }

    async fn take_parts(&self, state: &mut Document) -> Result<()> {
        let id = state.get("id").cloned().unwrap_or(Value::Null);
        let (part, uuid) = (shard_part(&id), id.as_uuid().unwrap_or_default());
        let kept = KeptPart { name: part.clone(), id: uuid };
        let taken = self.on_shards(state, |_| Step::Take(Take { part: kept.clone() })).await?;
        let op = Operation::internal();
        fork::take_part(&self.node, &op, &catalog_part(&part), Part::Catalog, uuid).await?;
        self.node.wait_operation_committed(&op).await?;
        self.on_shards(state, |_| Step::Confirm(Confirm {})).await?;
        state.insert("collections", distinct(&taken));
        let name = state.get_str("name").unwrap_or_default();
        if let Ok((replaced, _)) = self.snapshot_named(name) {
            state.insert("replaced", Value::Array(vec![Value::from(shard_part(&replaced))]));
        }
        Ok(())
    }

    async fn commit_snapshot(&self, state: &Document) -> Result<()> {
        let member = |name: &str| state.get(name).cloned().unwrap_or(Value::Null);
        let shards = self.catalog().shards().into_iter();
        let shards: Vec<Document> = shards.map(|s| doc! { "name": s.name, "zones": s.zones }).collect();
        let snapshot = doc! {
            "_id": member("name"), "id": member("id"), "collections": member("collections"),
            "takenAt": Value::DateTime(self.node.now_ms()), "shards": shards,
        };
        self.local.put(SNAPSHOTS, &snapshot).await
    }

    pub(super) async fn drop_catalog_part(&self, shard_part: &str) -> Result<()> {
        self.drop_kept(&catalog_part(shard_part)).await
    }

    /// Drops what this node keeps under a name, if anything; returns when that is majority-committed.
    pub(super) async fn drop_kept(&self, name: &str) -> Result<()> {
        let op = Operation::internal();
        match fork::drop_snapshot(&self.node, &op, name).await {
            Err(e) if e.code != document::codes::NAMESPACE_NOT_FOUND => Err(e),
            _ => self.node.wait_operation_committed(&op).await,
        }
    }
}
