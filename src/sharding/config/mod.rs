//! The config server: the authoritative catalog of shards, databases, collections and chunks.
//!
//! Every command is one function of [`ConfigServer`]. A command that changes several documents commits them as one
//! `applyOps` entry ([`ConfigServer::commit`]), durable before the answer: a reader sees all of a change or nothing.
//!
//! Serialisation: `topology` guards what depends on the set of shards and databases (addShard against createDatabase);
//! a lock for each collection's chunks makes read-check-write of versions atomic. Both are held across durable writes
//! and never across a call to another node, except `topology` by addShard, which must not miss a new database. What shards are told of
//! (blocks of user writes, cluster parameters) has locks of its own, held while they are told.
//!
//! Versions: a migration raises the collection's major version; a split or merge its minor; a new incarnation gets a
//! new epoch and timestamp. All are chosen here and nowhere else.

mod addresses;
pub mod catalog;
pub(crate) mod changelog;
pub mod chunks;
mod cluster_parameters;
pub mod collections;
pub mod commands;
pub mod consistency;
pub mod databases;
pub mod dedicated;
pub mod move_range;
pub(crate) mod refine;
mod repair;
mod resharding;
mod sampling;
pub mod shards;
#[cfg(test)]
mod tests;
mod user_writes;
mod whole;
pub mod zones;

pub(crate) use whole::CATALOG_WAIT;

use crate::balancer::Balancer;
use crate::remote::Remote;
use crate::shard::ddl::fence::Fences;
use catalog::Catalog;
use document::{Document, ObjectId, Result, Timestamp, Value, bail, doc, err};
use node::local::LocalClient;
use node::operation::{WriteAck, WriteConcern};
use node::parameters::Parameters;
use node::{BatchWrite, Node, Operation};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

pub const SHARDS: &str = "config.shards";
pub const DATABASES: &str = "config.databases";
pub const COLLECTIONS: &str = "config.collections";
pub const CHUNKS: &str = "config.chunks";
pub const TAGS: &str = "config.tags";
pub const SETTINGS: &str = "config.settings";
pub const CHANGELOG: &str = "config.changelog";
pub const ACTIONLOG: &str = "config.actionlog";
pub const VERSION: &str = "config.version";
pub const MIGRATIONS: &str = "config.migrations";
pub const PLACEMENT_HISTORY: &str = "config.placementHistory";
pub const RESHARDING_OPERATIONS: &str = "config.reshardingOperations";

/// A part of what is more than one commit.
const PART_WRITES_MAX: usize = 1000;
const PART_BYTES_MAX: usize = 16 << 20;

/// Catalog and commands of one config server node.
pub struct ConfigServer {
    pub node: Arc<Node>,
    pub local: LocalClient,
    pub remote: Arc<Remote>,
    pub parameters: Arc<Parameters>,
    pub balancer: Balancer,
    ready: tokio::sync::OnceCell<ObjectId>,
    topology_time: AtomicU64,
    topology: tokio::sync::Mutex<()>,
    /// Held while `config.system.sessions` is made.
    pub(crate) sessions_collection: tokio::sync::Mutex<()>,
    /// Shared by what gives a shard something to own; exclusive, for a moment, when a shard begins to drain or goes. Taken
    /// after `topology` and before the locks of chunks.
    membership: tokio::sync::RwLock<()>,
    /// Held while the config server becomes a shard or ceases to be one. Taken before all others.
    transition: tokio::sync::Mutex<()>,
    /// Held while the block of user writes is changed on the shards. Taken before `topology`.
    user_writes: Arc<tokio::sync::Mutex<()>>,
    /// Held while shards are told of cluster parameters. Taken after `user_writes` and before `topology`.
    shards_parameters: tokio::sync::Mutex<()>,
    /// A shard could not be told of them.
    parameters_missed: tokio::sync::Notify,
    chunk_locks: Mutex<BTreeMap<String, Weak<tokio::sync::Mutex<()>>>>,
    /// What happens to all data of the cluster at once.
    pub(crate) whole: whole::Whole,
    /// Of the messages of shards' coordinators.
    fences: Fences,
}

impl ConfigServer {
    pub fn new(node: Arc<Node>, remote: Arc<Remote>, parameters: Arc<Parameters>) -> Arc<ConfigServer> {
        remote.keep_time(&node, &parameters);
        Arc::new(ConfigServer {
            local: LocalClient::new(node.clone()),
            balancer: Balancer::default(),
            node,
            remote,
            parameters,
            ready: tokio::sync::OnceCell::new(),
            topology_time: AtomicU64::new(0),
            topology: tokio::sync::Mutex::default(),
            sessions_collection: tokio::sync::Mutex::default(),
            membership: tokio::sync::RwLock::default(),
            transition: tokio::sync::Mutex::default(),
            user_writes: Arc::default(),
            shards_parameters: tokio::sync::Mutex::default(),
            parameters_missed: tokio::sync::Notify::new(),
            chunk_locks: Mutex::default(),
            whole: whole::Whole::default(),
            fences: Fences::default(),
        })
    }

    /// The catalog, read directly.
    pub fn catalog(&self) -> Catalog<'_> {
        Catalog::new(&self.node)
    }

    /// Makes the catalog's collections and indexes and the cluster's identity, once; answers the cluster id. Every
    /// command asks for it first, so a node that has just become primary needs no other preparation.
    ///
    /// # Errors
    /// A failed log.
    pub async fn ensure(&self) -> Result<ObjectId> {
        self.ready.get_or_try_init(|| self.initialize()).await.copied()
    }

    async fn initialize(&self) -> Result<ObjectId> {
        let unique = || doc! { "unique": true };
        let none = Document::new;
        let plain: &[(&str, Vec<(Document, Document)>)] = &[
            (SHARDS, vec![(doc! { "host": 1 }, unique())]),
            (DATABASES, vec![]),
            (COLLECTIONS, vec![]),
            (
                CHUNKS,
                vec![
                    (doc! { "uuid": 1, "min": 1 }, unique()),
                    (doc! { "uuid": 1, "shard": 1, "min": 1 }, unique()),
                    (doc! { "uuid": 1, "lastmod": 1 }, unique()),
                    (doc! { "uuid": 1, "shard": 1, "onCurrentShardSince": 1 }, none()),
                ],
            ),
            (TAGS, vec![(doc! { "ns": 1, "min": 1 }, unique()), (doc! { "ns": 1, "tag": 1 }, none())]),
            (SETTINGS, vec![]),
            (MIGRATIONS, vec![]),
            (VERSION, vec![]),
            ("config.mongos", vec![]),
            ("config.locks", vec![]),
            (RESHARDING_OPERATIONS, vec![]),
            (PLACEMENT_HISTORY, vec![(doc! { "nss": 1, "timestamp": -1 }, unique())]),
        ];
        self.ensure_settings().await?;
        for (ns, indexes) in plain {
            self.local.ensure_collection(ns, indexes).await?;
        }
        changelog::ensure(self).await?;
        self.note_topology_time();
        self.cluster_id().await
    }

    /// `config.settings` refuses what the balancer could not read.
    async fn ensure_settings(&self) -> Result<()> {
        let exists = self.node.namespaces.slot(SETTINGS).read_unchecked().collection.is_some();
        if exists {
            return Ok(());
        }
        let time = || doc! { "bsonType": "string", "pattern": "^([01]?[0-9]|2[0-3]):[0-5][0-9]$" };
        let id = |name: &str| doc! { "bsonType": "string", "enum": [name] };
        let schema = |name: &str, mut properties: Document| {
            properties.insert("_id", id(name));
            doc! { "properties": properties }
        };
        let others = doc! {
            "properties": { "_id": { "not": { "enum": ["chunksize", "balancer", "autosplit", "automerge"] } } },
        };
        let size = doc! { "bsonType": "number", "minimum": 1, "maximum": 1024 };
        let flag = || doc! { "bsonType": "bool" };
        let window = doc! { "bsonType": "object", "required": ["start", "stop"], "properties": { "start": time(), "stop": time() } };
        let balancer = doc! {
            "mode": { "bsonType": "string", "enum": ["full", "autoSplitOnly", "off"] }, "stopped": flag(), "activeWindow": window,
            "_secondaryThrottle": { "bsonType": ["bool", "object"] }, "_waitForDelete": flag(),
            "attemptToBalanceJumboChunks": flag(),
        };
        let any: Vec<Document> = vec![
            schema("chunksize", doc! { "value": size }),
            schema("balancer", balancer),
            schema("autosplit", doc! { "enabled": flag() }),
            schema("automerge", doc! { "enabled": flag() }),
            others,
        ];
        let options = doc! { "validator": { "$jsonSchema": { "oneOf": any } }, "validationLevel": "strict", "validationAction": "error" };
        let op = Operation::internal();
        match node::ddl::collections::create_collection(&self.node, &op, SETTINGS, options, None).await {
            Err(e) if e.code != document::codes::NAMESPACE_EXISTS => Err(e),
            _ => Ok(()),
        }
    }

    async fn cluster_id(&self) -> Result<ObjectId> {
        if let Some(version) = self.local.find_one(VERSION, &doc! { "_id": 1 })? {
            let id = version.get("clusterId").and_then(Value::as_object_id);
            return id.ok_or_else(|| {
                err!(INCOMPATIBLE_SHARDING_CONFIG_VERSION, "config.version has no clusterId")
            });
        }
        let id = self.node.new_object_id();
        self.local.put(VERSION, &doc! { "_id": 1, "clusterId": id }).await?;
        Ok(id)
    }

    /// The connection string under which the cluster reaches this config server: `set/host:port,...`.
    pub fn connection_string(&self) -> Result<String> {
        let set = self.local.find("local.system.replset", &Document::new())?.into_iter().next();
        let name = set.as_ref().and_then(|s| s.get_str("_id")).map(str::to_string);
        let Some(name) = name.or_else(|| self.node.options.replica_set.clone()) else {
            return Ok(self.node.options.host.clone());
        };
        let members = set.as_ref().and_then(|s| s.get_array("members"));
        let hosts: Vec<&str> =
            members.into_iter().flatten().filter_map(|m| m.as_document()?.get_str("host")).collect();
        let hosts = if hosts.is_empty() { self.node.options.host.clone() } else { hosts.join(",") };
        Ok(format!("{name}/{hosts}"))
    }

    /// A cluster time above all handed out before.
    pub fn tick(&self) -> Timestamp {
        Timestamp::from_u64(self.node.log.reserve_ts())
    }

    /// Commits all of `writes` or none, and returns when they are majority-committed.
    ///
    /// # Errors
    /// DuplicateKey (11000) and the like, with nothing changed; a failed log.
    pub async fn commit(&self, writes: &[BatchWrite]) -> Result<()> {
        let op = Operation::internal();
        self.node.commit_batch(&op, writes).await?;
        if writes.iter().any(|w| w.ns() == SHARDS) {
            self.note_topology_time();
        }
        self.node.wait_operation_committed(&op).await
    }

    /// Commits `writes` in their order, as many as an entry of the log should hold at a time: for what may be more than one holds. After a
    /// failure those that came first are committed, so the caller can be repeated. Without any it waits all the same: a repetition that finds
    /// nothing left to write must not be done before what it wrote the first time is majority-committed.
    ///
    /// # Errors
    /// As [`ConfigServer::commit`].
    pub(crate) async fn commit_in_parts(&self, writes: Vec<BatchWrite>) -> Result<()> {
        let (mut part, mut part_bytes) = (Vec::new(), 0);
        for write in writes {
            let bytes = match &write {
                BatchWrite::Insert { doc, .. }
                | BatchWrite::Put { doc, .. }
                | BatchWrite::Change { after: doc, .. } => doc.to_vec().len(),
                BatchWrite::Delete { .. } => 0,
            };
            if part.len() == PART_WRITES_MAX || part_bytes + bytes > PART_BYTES_MAX {
                self.commit(&std::mem::take(&mut part)).await?;
                part_bytes = 0;
            }
            part_bytes += bytes;
            part.push(write);
        }
        self.commit(&part).await
    }

    /// When the set of shards was changed last; in replies to other nodes.
    pub fn topology_time(&self) -> Timestamp {
        Timestamp::from_u64(self.topology_time.load(Ordering::Relaxed))
    }
    fn note_topology_time(&self) {
        let newest = self.catalog().shards().iter().map(|s| s.topology_time.as_u64()).max();
        self.topology_time.fetch_max(newest.unwrap_or(0), Ordering::Relaxed);
    }

    /// The lock of a collection's chunks.
    pub(crate) async fn lock_chunks(&self, ns: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.chunk_locks.lock();
            locks.retain(|_, lock| lock.strong_count() > 0);
            match locks.get(ns).and_then(Weak::upgrade) {
                Some(lock) => lock,
                None => {
                    let lock = Arc::new(tokio::sync::Mutex::new(()));
                    locks.insert(ns.to_string(), Arc::downgrade(&lock));
                    lock
                }
            }
        };
        lock.lock_owned().await
    }
}

/// Refuses a command that came with a write concern other than majority. One without any is a majority write here.
///
/// # Errors
/// InvalidOptions (72).
pub fn require_majority(op: &Operation, command: &str) -> Result<()> {
    let WriteConcern { w, given, .. } = &op.write_concern;
    if *given && *w != WriteAck::Majority {
        bail!(
            INVALID_OPTIONS,
            "{command} must be called with majority writeConcern, got {}",
            document::shell::document(&op.write_concern.to_document())
        );
    }
    Ok(())
}

pub(crate) fn put(ns: &str, doc: Document) -> BatchWrite {
    BatchWrite::Put { ns: ns.to_string(), doc }
}
/// A document that was read as `before`, changed. Clients write to documents of the catalog too, and take no lock of the config
/// server's: what they have written since to other fields stays.
pub(crate) fn change(ns: &str, before: Document, after: Document) -> BatchWrite {
    BatchWrite::Change { ns: ns.to_string(), before, after }
}
/// As [`change`], to what `f` makes of the document.
pub(crate) fn edit(ns: &str, before: Document, f: impl FnOnce(&mut Document)) -> BatchWrite {
    let mut after = before.clone();
    f(&mut after);
    change(ns, before, after)
}
pub(crate) fn insert(ns: &str, doc: Document) -> BatchWrite {
    BatchWrite::Insert { ns: ns.to_string(), doc }
}
pub(crate) fn delete(ns: &str, id: Value) -> BatchWrite {
    BatchWrite::Delete { ns: ns.to_string(), id }
}
/// The string a command has as its argument.
///
/// # Errors
/// InvalidNamespace (73).
pub(crate) fn argument<'a>(request: &node::Request<'a>) -> Result<&'a str> {
    request.argument().and_then(|v| v.as_str()).filter(|s| !s.is_empty()).ok_or_else(|| {
        err!(INVALID_NAMESPACE, "the argument of {} must be a non-empty string", request.name())
    })
}
/// The shard that a command names by its argument; what names none is found nowhere.
pub(crate) fn shard_argument<'a>(request: &node::Request<'a>) -> &'a str {
    request.argument().and_then(|v| v.as_str()).unwrap_or_default()
}
/// A member that must be there and of the type `read` accepts.
///
/// # Errors
/// IDLFailedToParse (40414), TypeMismatch (14).
pub(crate) fn required<'v, T>(
    body: &'v Document,
    name: &str,
    read: impl FnOnce(&'v Value) -> Option<T>,
) -> Result<T> {
    let command = body.first().map_or("", |(n, _)| n);
    let Some(value) = body.get_present(name) else {
        bail!(IDL_FAILED_TO_PARSE, "BSON field '{command}.{name}' is missing but a required field")
    };
    read(value).ok_or_else(|| {
        err!(TYPE_MISMATCH, "BSON field '{command}.{name}' is the wrong type '{}'", value.type_name())
    })
}
pub(crate) fn required_str<'v>(body: &'v Document, name: &str) -> Result<&'v str> {
    required(body, name, Value::as_str)
}
pub(crate) fn required_doc<'v>(body: &'v Document, name: &str) -> Result<&'v Document> {
    required(body, name, Value::as_document)
}
/// A value as messages show it.
pub(crate) fn shown(d: &Document) -> String {
    document::shell::document(d)
}
