//! The config server as a shard, `config`, and back.
//!
//! ```text
//! transitionFromDedicatedConfigServer   identity for its own node -> config.shards
//! transitionToDedicatedConfigServer     as removeShard; at the end what is left of users' collections is dropped, and the identity
//! ```
//! What is left then is empty: the chunks have moved, their orphans are deleted, and no database has its primary here.

use super::shards::Candidate;
use super::{ConfigServer, require_majority};
use crate::remote::{Target, majority};
use document::{Document, Result, bail, doc};
use node::Operation;
use node::ddl::collections::drop_collection;
use std::collections::BTreeSet;

/// The name of the config server as a shard.
pub const CONFIG_SHARD: &str = "config";
const IDENTITIES: &str = "admin.system.version";
const RANGE_DELETIONS: &str = "config.rangeDeletions";

impl ConfigServer {
    /// `{_configsvrTransitionFromDedicatedConfigServer: 1}`. Again where it is a shard already, that changes nothing.
    ///
    /// # Errors
    /// OperationFailed (96) where it holds a database of users; ConflictingOperationInProgress (117) while the cluster stands still.
    pub async fn transition_from_dedicated(&self, op: &Operation) -> Result<Document> {
        require_majority(op, "_configsvrTransitionFromDedicatedConfigServer")?;
        let cluster = self.ensure().await?;
        if self.catalog().shard(CONFIG_SHARD).is_ok() {
            return Ok(Document::new());
        }
        if let Some(database) = self.users_databases().into_iter().next() {
            bail!(
                OPERATION_FAILED,
                "can't add shard '{CONFIG_SHARD}' because a local database '{database}' exists on the config server"
            );
        }
        let connection = self.connection_string()?;
        let identity = doc! {
            "_id": "shardIdentity", "shardName": CONFIG_SHARD, "clusterId": cluster,
            "configsvrConnectionString": connection.as_str(),
        };
        let command = doc! { "_addShard": 1, "shardIdentity": identity, "writeConcern": majority() };
        self.remote.admin(Target::Host(&connection), command).await?;
        let _writes = self.block_new_shard(&connection).await?;
        let _lock = self.topology.lock().await;
        self.refuse_during_standstill()?;
        if self.catalog().shard(CONFIG_SHARD).is_ok() {
            return Ok(Document::new());
        }
        let set = connection.split_once('/').map_or("", |(set, _)| set).to_string();
        let candidate = Candidate { set, connection, config_version: 1, databases: Vec::new() };
        self.register(&candidate, CONFIG_SHARD, 0).await?;
        Ok(Document::new())
    }

    /// `{_configsvrTransitionToDedicatedConfigServer: 1}`, repeated until it answers `state: "completed"`.
    ///
    /// # Errors
    /// As [`ConfigServer::remove_shard`].
    pub async fn transition_to_dedicated(&self, op: &Operation) -> Result<Document> {
        require_majority(op, "_configsvrTransitionToDedicatedConfigServer")?;
        self.ensure().await?;
        let _lock = self.topology.lock().await;
        if let Ok(shard) = self.catalog().shard(CONFIG_SHARD) {
            return self.remove(shard).await;
        }
        // It was removed, and the node that did so has not come to clear up.
        if self.local.find_one(IDENTITIES, &doc! { "_id": "shardIdentity" })?.is_none() {
            bail!(SHARD_NOT_FOUND, "Drop of shard {CONFIG_SHARD} failed because it does not exist");
        }
        self.cease_to_be_a_shard().await?;
        Ok(doc! { "msg": "removeshard completed successfully", "state": "completed", "shard": CONFIG_SHARD })
    }

    /// Whether orphans of the config server are still to be deleted.
    pub(super) fn pending_deletions(&self) -> Result<usize> {
        Ok(self.local.find(RANGE_DELETIONS, &Document::new())?.len())
    }

    /// Leaves nothing of a shard on this node, which is none any more.
    pub(super) async fn cease_to_be_a_shard(&self) -> Result<()> {
        self.local.delete(IDENTITIES, &doc! { "_id": "shardIdentity" }).await?;
        // Other members and change streams know that the collections live elsewhere.
        let op = Operation::internal_marked(true);
        for slot in self.node.namespaces.all() {
            if is_users(&slot.ns) && slot.read_unchecked().collection.is_some() {
                drop_collection(&self.node, &op, &slot.ns, true).await?;
            }
        }
        Ok(())
    }

    fn users_databases(&self) -> BTreeSet<String> {
        let slots = self.node.namespaces.all();
        let held = slots.iter().filter(|s| is_users(&s.ns) && s.read_unchecked().collection.is_some());
        held.map(|s| storage::split_namespace(&s.ns).0.to_string()).collect()
    }
}

fn is_users(ns: &str) -> bool {
    !matches!(storage::split_namespace(ns).0, "admin" | "config" | "local")
}
