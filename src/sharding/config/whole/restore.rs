//! All data and the catalog put back to a snapshot.

use super::snapshot::{catalog_part, shard_part};
use super::*;
use crate::config::COLLECTIONS;
use crate::messages::standstill::{Begin, KeptPart, PutBack};
use node::fork;
use std::collections::BTreeSet;

impl ConfigServer {
    pub(super) async fn run_restore(&self, phase: RestorePhase, state: &mut Document) -> Result<()> {
        match phase {
            RestorePhase::Quiesce => self.quiesce(state).await,
            RestorePhase::Begin => self.begin_restore(state).await,
            RestorePhase::PutBack => self.put_back_shards(state).await,
            RestorePhase::Catalog => self.put_back_catalog(state).await,
            RestorePhase::End => self.end_everywhere(state, Vec::new()).await,
        }
    }

    /// `{_configsvrTesseraRestore: name}` answers `{collections}`.
    ///
    /// # Errors
    /// NamespaceNotFound (26), ShardNotFound (70) where a shard was removed since, OperationFailed (96) for too much, LockBusy (46),
    /// ExceededTimeLimit (262).
    pub async fn restore_snapshot(
        self: &Arc<Self>,
        op: &Operation,
        request: Request<'_>,
    ) -> Result<Document> {
        require_majority(op, request.name())?;
        self.ensure().await?;
        let name = argument(&request)?;
        self.snapshot_named(name)?;
        let done = self.run_whole(op, Kind::Restore, doc! { "name": name, "forgets": true }).await?;
        Ok(doc! { "collections": done.get_i64("collections").unwrap_or(0) as i32 })
    }

    async fn begin_restore(&self, state: &mut Document) -> Result<()> {
        let (id, snapshot) = self.snapshot_named(state.get_str("name").unwrap_or_default())?;
        let parts = snapshot.get_array("shards").into_iter().flatten().filter_map(Value::as_document);
        let parts: Vec<String> = parts.filter_map(|s| s.get_str("name")).map(String::from).collect();
        if let Some(gone) = parts.iter().find(|part| names(state, "shards").all(|s| s != part.as_str())) {
            bail!(SHARD_NOT_FOUND, "a part of the snapshot was on shard {gone}, which was removed");
        }
        let part = shard_part(&id);
        let own = catalog_part(&part);
        if !fork::holds_snapshot(&self.node, &own, id.as_uuid().unwrap_or_default()) {
            bail!(NAMESPACE_NOT_FOUND, "the config server does not have its part of the snapshot");
        }
        let since = self.collections_since(&own)?;
        let kept = KeptPart { name: part, id: id.as_uuid().unwrap_or_default() };
        let begin = |shard: &str| {
            let requires = parts.iter().any(|p| p == shard).then(|| kept.clone());
            Step::Begin(Begin { reads: Flag(true), restore: Flag(true), requires, copy: None })
        };
        self.on_shards(state, begin).await?;
        state.insert("collections", snapshot.get("collections").cloned().unwrap_or(Value::Int32(0)));
        state.insert("id", id);
        state.insert("parts", parts);
        state.insert("since", since);
        Ok(())
    }

    /// The sharded collections that a snapshot does not have. Asked once, before the catalog is exchanged.
    fn collections_since(&self, catalog_part: &str) -> Result<Vec<String>> {
        let kept = self.local.find(&fork::catalog_copy(catalog_part, COLLECTIONS), &Document::new())?;
        let kept: BTreeSet<&str> = kept.iter().filter_map(|d| d.get_str("_id")).collect();
        let now = self.catalog().collections().into_iter().map(|c| c.info.ns);
        Ok(now.filter(|ns| !kept.contains(ns.as_str())).collect())
    }

    async fn put_back_shards(&self, state: &Document) -> Result<()> {
        let part = shard_part(state.get("id").unwrap_or(&Value::Null));
        let databases = self.catalog().databases();
        let put_back = |shard: &str| {
            let own = databases.iter().filter(|d| d.primary == shard);
            let name = names(state, "parts").any(|p| p == shard).then(|| part.clone());
            Step::PutBack(PutBack { name, reported: own.map(|d| d.name.clone()).collect() })
        };
        self.on_shards(state, put_back).await.map(drop)
    }
}
