//! The config server as a shard, `config`, and back.
//!
//! ```text
//! transitionFromDedicatedConfigServer   identity for its own node -> config.shards
//! transitionToDedicatedConfigServer     as removeShard; at the end what is left of users' collections is dropped, and the identity
//! ```
//! What is left then is empty: the chunks have moved, their orphans are deleted, no database has its primary here, and what the
//! shard has begun has ended. The identity goes last: as long as it is there, whoever comes next knows that something is left.

use super::shards::Candidate;
use super::{ConfigServer, require_majority};
use crate::remote::{Target, majority};
use crate::shard::identity::{VERSION_COLLECTION, is_placed};
use crate::shard::range_deleter::TASKS;
use crate::shard::{coordinator, ddl, migration};
use document::{Document, Result, bail, doc};
use node::Operation;
use node::ddl::collections::drop_collection;
use std::collections::BTreeSet;

/// The name of the config server as a shard.
pub const CONFIG_SHARD: &str = "config";
/// Where a shard notes what it has begun and owes others an end of.
const UNDER_WAY: &[&str] = &[
    coordinator::COLLECTION,
    ddl::COORDINATORS,
    ddl::block::SECTIONS,
    migration::COORDINATORS,
    migration::RECIPIENTS,
];

impl ConfigServer {
    /// `{_configsvrTransitionFromDedicatedConfigServer: 1}`. Again where it is a shard already, that changes nothing.
    ///
    /// # Errors
    /// OperationFailed (96) where it holds a database of users; ConflictingOperationInProgress (117) while the cluster stands still.
    pub async fn transition_from_dedicated(&self, op: &Operation) -> Result<Document> {
        require_majority(op, "_configsvrTransitionFromDedicatedConfigServer")?;
        let cluster = self.ensure().await?;
        let _one = self.transition.lock().await;
        if self.catalog().shard(CONFIG_SHARD).is_ok() {
            return Ok(Document::new());
        }
        self.finish_leaving().await?;
        self.refuse_users_databases()?;
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
        if let Err(e) = self.refuse_users_databases() {
            self.forget_identity().await?;
            return Err(e);
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
        let _one = self.transition.lock().await;
        let _lock = self.topology.lock().await;
        if let Ok(shard) = self.catalog().shard(CONFIG_SHARD) {
            return self.remove(shard).await;
        }
        // It was removed, and the node that did so has not come to clear up.
        if !self.has_config_identity()? {
            bail!(SHARD_NOT_FOUND, "Drop of shard {CONFIG_SHARD} failed because it does not exist");
        }
        let unknown = self.unknown_collections();
        if !unknown.is_empty() {
            return Ok(pending_cleanup(CONFIG_SHARD, &Cleanup { unknown, ..Cleanup::default() }));
        }
        self.cease_to_be_a_shard().await?;
        Ok(doc! { "msg": "removeshard completed successfully", "state": "completed", "shard": CONFIG_SHARD })
    }

    /// Ends what was begun before a crash or a step-down: where the catalog does not have the config server as a shard, it is none.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) when it holds documents that nobody else may have; a failed log.
    pub async fn finish_transition(&self) -> Result<()> {
        let _one = self.transition.lock().await;
        self.finish_leaving().await
    }
    async fn finish_leaving(&self) -> Result<()> {
        let _lock = self.topology.lock().await;
        match self.catalog().shard(CONFIG_SHARD).is_err() && self.has_config_identity()? {
            true => self.cease_to_be_a_shard().await,
            false => Ok(()),
        }
    }
    fn has_config_identity(&self) -> Result<bool> {
        let own = doc! { "_id": "shardIdentity", "shardName": CONFIG_SHARD };
        Ok(self.local.find_one(VERSION_COLLECTION, &own)?.is_some())
    }
    async fn forget_identity(&self) -> Result<()> {
        self.local.delete(VERSION_COLLECTION, &doc! { "_id": "shardIdentity" }).await.map(drop)
    }

    /// What the config server has to do before it can cease to be a shard, though it owns nothing.
    pub(super) fn cleanup(&self) -> Result<Cleanup> {
        let held = |ns: &str| {
            let slot = self.node.namespaces.slot(ns);
            slot.read_unchecked().collection.as_ref().map_or(0, storage::Collection::len)
        };
        let under_way = UNDER_WAY.iter().map(|ns| held(ns)).sum();
        let deletions = held(TASKS);
        Ok(Cleanup { deletions, under_way, unknown: self.unknown_collections() })
    }

    /// Collections of users here that have documents and are no copy of what the catalog knows elsewhere. What this node writes by
    /// itself (profiles, the unfinished result of an `$out`) does not count.
    fn unknown_collections(&self) -> Vec<String> {
        let slots = self.node.namespaces.all();
        let unknown = slots.iter().filter(|slot| {
            let found = slot.read_unchecked().collection.as_ref().map(|c| (c.uuid(), c.len()));
            let Some((uuid, 1..)) = found.filter(|_| is_users(&slot.ns)) else { return false };
            let entry = self.catalog().find_collection(&slot.ns).ok().flatten();
            let own = slot.ns.ends_with(".system.profile") || node::read::is_output(&slot.ns);
            !own && entry.is_none_or(|entry| entry.info.uuid != uuid)
        });
        unknown.map(|slot| slot.ns.clone()).collect()
    }

    /// Leaves nothing of a shard on this node, which is none any more.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) when it holds documents that nobody else may have, or data of all shards is exchanged;
    /// nothing is dropped then.
    pub(super) async fn cease_to_be_a_shard(&self) -> Result<()> {
        self.refuse_during_standstill()?;
        let unknown = self.unknown_collections();
        if !unknown.is_empty() {
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "the config server holds documents of collections that the catalog does not know: {}",
                unknown.join(", ")
            );
        }
        // Other members and change streams know that the collections live elsewhere.
        let op = Operation::internal_marked(true);
        for slot in self.node.namespaces.all() {
            if is_placed(&slot.ns) && slot.read_unchecked().collection.is_some() {
                drop_collection(&self.node, &op, &slot.ns, true).await?;
            }
        }
        // Not before the drops are as durable as this is.
        self.forget_identity().await
    }

    /// # Errors
    /// OperationFailed (96).
    fn refuse_users_databases(&self) -> Result<()> {
        match self.users_databases().into_iter().next() {
            Some(database) => bail!(
                OPERATION_FAILED,
                "can't add shard '{CONFIG_SHARD}' because a local database '{database}' exists on the config server"
            ),
            None => Ok(()),
        }
    }

    fn users_databases(&self) -> BTreeSet<String> {
        let slots = self.node.namespaces.all();
        let held = slots.iter().filter(|s| is_users(&s.ns) && s.read_unchecked().collection.is_some());
        held.map(|s| storage::split_namespace(&s.ns).0.to_string()).collect()
    }
}

fn is_users(ns: &str) -> bool {
    !document::is_internal_database(storage::split_namespace(ns).0)
}

/// What is to end on a shard that owns nothing, before it may go.
#[derive(Default)]
pub(super) struct Cleanup {
    /// Deletions of orphans.
    deletions: usize,
    /// Transactions, changes of the catalog and migrations.
    pub(super) under_way: usize,
    /// Collections whose documents are nowhere else.
    unknown: Vec<String>,
}

impl Cleanup {
    pub(super) fn is_done(&self) -> bool {
        self.deletions == 0 && self.under_way == 0 && self.unknown.is_empty()
    }
}

/// The reply of a removal that waits for this.
pub(super) fn pending_cleanup(shard: &str, left: &Cleanup) -> Document {
    let mut reply = doc! {
        "msg": "waiting for data to be cleaned up", "state": "pendingDataCleanup", "shard": shard,
        "pendingRangeDeletions": left.deletions as i64, "pendingOperations": left.under_way as i64,
    };
    if !left.unknown.is_empty() {
        reply.push(
            "note",
            "you need to drop collectionsUnknown, which the catalog does not know, on the config server",
        );
        reply.push("collectionsUnknown", left.unknown.clone());
    }
    reply
}
