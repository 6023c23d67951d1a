//! The commands of a shard: from the config server, from other shards, from operators.

use super::identity::{Identity, is_placed};
use super::migration::{MoveRange, donor, recipient, sessions};
use super::placement::State;
use super::{ShardRole, cluster_parameters, range_deleter, refresh, resharding};
use crate::messages::Message;
use crate::messages::migration::{
    GetNextSessionMods, JoinMigrations, MigrateClone, RecvChunkAbort, RecvChunkCommit, RecvChunkRelease,
    RecvChunkStatus, TransferMods,
};
use crate::messages::placement::{FlushDatabase, FlushRoutingTable};
use crate::messages::ranges::{KeepRanges, LeaseAction};
use document::{Doc, DocBuf, Document, Result, Timestamp, Value, bail, doc, err};
use futures::future::BoxFuture;
use node::ranges::Statement;
use node::{Operation, Request};
use std::sync::Arc;
use std::time::Duration;

/// A reply without `ok`.
pub enum Reply {
    Tree(Document),
    /// Large and raw.
    Raw(DocBuf),
}

impl From<Document> for Reply {
    fn from(d: Document) -> Reply {
        Reply::Tree(d)
    }
}

/// What [`run`] answers, with the other names of each.
pub const COMMANDS: &[(&str, &[&str])] = &[
    ("_shardsvrMoveRange", &["moveChunk"]),
    ("_recvChunkStart", &[]),
    ("_recvChunkStatus", &[]),
    ("_recvChunkCommit", &[]),
    ("_recvChunkAbort", &[]),
    ("_recvChunkReleaseCritSec", &[]),
    ("_migrateClone", &[]),
    ("_transferMods", &[]),
    ("_getNextSessionMods", &[]),
    ("_shardsvrGetSessionHistory", &[]),
    ("_shardsvrReshardFetch", &[]),
    ("_shardsvrJoinMigrations", &[]),
    ("_shardsvrKeepRanges", &[]),
    ("_shardsvrAddShard", &["_addShard"]),
    ("_shardsvrSetClusterParameter", &[]),
    ("_flushRoutingTableCacheUpdates", &["_flushRoutingTableCacheUpdatesWithWriteConcern"]),
    ("_flushDatabaseCacheUpdates", &["_flushDatabaseCacheUpdatesWithWriteConcern"]),
    ("getShardVersion", &[]),
    ("getDatabaseVersion", &[]),
    ("shardingState", &[]),
    ("cleanupOrphaned", &[]),
];

/// Runs a command of [`COMMANDS`] by one of its names.
///
/// # Errors
/// CommandNotFound (59) for any other name; ShardingStateNotInitialized (203) on a node that is no shard.
pub fn run<'a>(
    role: &'a Arc<ShardRole>,
    op: &'a Operation,
    request: Request<'a>,
) -> BoxFuture<'a, Result<Reply>> {
    Box::pin(run_named(role, op, request))
}

async fn run_named(role: &Arc<ShardRole>, op: &Operation, request: Request<'_>) -> Result<Reply> {
    let (name, body) = (request.name(), request.body);
    Ok(match name {
        "_shardsvrMoveRange" | "moveChunk" => {
            donor::move_range(role, op, MoveRange::parse(body)?).await?;
            Document::new().into()
        }
        "_recvChunkStart" => recipient::start(role, body).await?.into(),
        "_recvChunkStatus" => recipient::status(role, op, RecvChunkStatus::parse(body)?).await?.into(),
        "_recvChunkCommit" => recipient::commit(role, op, RecvChunkCommit::parse(body)?).await?.into(),
        "_recvChunkAbort" => recipient::abort(role, op, RecvChunkAbort::parse(body)?).await?.into(),
        "_recvChunkReleaseCritSec" => {
            recipient::release(role, op, RecvChunkRelease::parse(body)?).await?.into()
        }
        "_migrateClone" => Reply::Raw(donor::hand_out_documents(role, MigrateClone::parse(body)?).await?),
        "_transferMods" => Reply::Raw(donor::hand_out_changes(role, TransferMods::parse(body)?).await?),
        "_getNextSessionMods" => {
            Reply::Raw(donor::hand_out_sessions(role, GetNextSessionMods::parse(body)?).await?)
        }
        "_shardsvrGetSessionHistory" => Reply::Raw(sessions::whole_history(&role.node, body).await?),
        "_shardsvrReshardFetch" => Reply::Raw(resharding::donor::fetch(role, Message::parse(body)?).await?),
        "_shardsvrJoinMigrations" => {
            match JoinMigrations::parse(body)?.stop {
                Some(ns) => op.interruptible(role.migrations.stop(&ns)).await?,
                None => op.interruptible(role.migrations.join()).await?,
            }
            Document::new().into()
        }
        "_shardsvrKeepRanges" => keep_ranges(role, op, KeepRanges::parse(body)?).await?.into(),
        "_shardsvrAddShard" | "_addShard" => add_shard(role, body).await?.into(),
        "_shardsvrSetClusterParameter" => cluster_parameters::set(role, body).await?.into(),
        "_flushRoutingTableCacheUpdates" | "_flushRoutingTableCacheUpdatesWithWriteConcern" => {
            role.require_identity()?;
            let FlushRoutingTable { ns, sync_from_config } = FlushRoutingTable::parse(body)?;
            if is_placed(&ns) {
                role.flush_collection(op, &ns, sync_from_config != Some(false)).await?;
            }
            Document::new().into()
        }
        "_flushDatabaseCacheUpdates" | "_flushDatabaseCacheUpdatesWithWriteConcern" => {
            role.require_identity()?;
            let FlushDatabase { db, sync_from_config } = FlushDatabase::parse(body)?;
            role.flush_database(op, &db, sync_from_config != Some(false)).await?;
            Document::new().into()
        }
        "getShardVersion" => shard_version(role, argument(request)?, body).into(),
        "getDatabaseVersion" => database_version(role, argument(request)?).into(),
        "shardingState" => sharding_state(role).into(),
        "cleanupOrphaned" => range_deleter::cleanup_orphaned(role, op, body).await?.into(),
        other => bail!(COMMAND_NOT_FOUND, "no such command: '{other}'"),
    })
}

fn argument<'a>(request: Request<'a>) -> Result<&'a str> {
    let text = request.argument().and_then(|v| v.as_str()).filter(|s| !s.is_empty());
    text.ok_or_else(|| err!(INVALID_NAMESPACE, "{} needs a namespace", request.name()))
}

async fn keep_ranges(role: &Arc<ShardRole>, op: &Operation, asked: KeepRanges) -> Result<Document> {
    role.require_identity()?;
    let slot = role.node.namespaces.slot(&asked.ns);
    let lease = Duration::from_millis(asked.lease_millis.clamp(0, 60_000) as u64);
    let statement = Statement { router: asked.router, number: asked.number, ended_below: asked.ended_below };
    match asked.action {
        LeaseAction::Begin => slot.ranges.lease(op, statement, lease).await?,
        LeaseAction::Renew => slot.ranges.renew(statement, lease)?,
        LeaseAction::Release => slot.ranges.release(statement)?,
    }
    Ok(Document::new())
}

async fn add_shard(role: &Arc<ShardRole>, body: Doc<'_>) -> Result<Document> {
    // Older config servers send the identity's members at the top.
    let identity = body.get_document("shardIdentity").unwrap_or(body).to_document();
    role.add_shard(Identity::from_document(&identity)?).await?;
    Ok(Document::new())
}

fn shard_version(role: &ShardRole, ns: &str, body: Doc<'_>) -> Document {
    let config = role.remote.registry.config().unwrap_or_default();
    let mut reply = doc! { "configServer": config, "inShardedMode": role.identity().is_some(), "mine": Timestamp::default() };
    let Some(placement) = role.placement(ns) else {
        reply.push("global", Timestamp::default());
        return reply;
    };
    match &placement.state {
        State::Unknown => reply.push("global", "UNKNOWN"),
        State::Unsharded => reply.push("global", Timestamp::default()),
        State::Sharded { filter, version } => {
            reply.insert("mine", version.placement);
            reply.push("global", filter.table.collection_version().placement);
            reply.push("globalEpoch", filter.table.epoch);
            reply.push("globalTimestamp", filter.table.timestamp);
            if body.get_bool("fullMetadata") == Some(true) {
                reply.push("metadata", metadata(filter, *version));
            }
        }
    }
    if placement.section.is_some() {
        reply.push("inCriticalSection", true);
    }
    reply
}

fn metadata(filter: &super::ShardFilter, version: protocol::version::ShardVersion) -> Document {
    let chunks: Vec<Value> = filter
        .table
        .chunks()
        .filter(|c| c.shard == filter.shard)
        .take(1000)
        .map(|c| Value::Array(vec![c.min.clone().into(), c.max.clone().into()]))
        .collect();
    doc! {
        "collVersion": filter.table.collection_version().placement, "collVersionEpoch": filter.table.epoch,
        "collVersionTimestamp": filter.table.timestamp, "shardVersion": version.placement,
        "shardVersionEpoch": version.epoch, "shardVersionTimestamp": version.timestamp,
        "keyPattern": filter.table.key.document().clone(), "chunks": Value::Array(chunks),
    }
}

fn database_version(role: &ShardRole, db: &str) -> Document {
    match role.database(db) {
        Some(entry) => doc! { "dbVersion": entry.version.to_document() },
        None => doc! { "dbVersion": Document::new() },
    }
}

/// `shardingState`: whether this node is a shard, of which cluster, and what it knows of each collection.
pub fn sharding_state(role: &ShardRole) -> Document {
    let Some(identity) = role.identity() else { return doc! { "enabled": false } };
    let mut versions = Document::new();
    for slot in role.node.namespaces.all() {
        let state = slot.read_unchecked();
        match refresh::placement_of(&state).map(|p| &p.state) {
            Some(State::Sharded { version, .. }) => versions.push(
                slot.ns.as_str(),
                doc! { "placementVersion": version.placement, "timestamp": version.timestamp, "epoch": version.epoch },
            ),
            Some(State::Unsharded) => versions.push(slot.ns.as_str(), Document::new()),
            _ => {}
        }
    }
    doc! {
        "enabled": true, "configServer": identity.config.as_str(), "shardName": &*identity.name,
        "clusterId": identity.cluster_id, "versions": versions,
    }
}

/// `serverStatus.shardingStatistics` of a shard.
pub fn sharding_statistics(role: &ShardRole) -> Document {
    let mut d = role.statistics.to_document();
    let tasks = range_deleter::tasks(role, None);
    d.push("rangeDeleterTasks", tasks.len() as i64);
    d.push("numOrphanDocs", tasks.iter().filter(|t| !t.pending).map(|t| t.orphans).sum::<i64>());
    d.push("catalogCache", role.cache.statistics());
    d.0.extend(role.resharding.statistics().0);
    d
}
