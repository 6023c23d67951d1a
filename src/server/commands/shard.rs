//! The commands of a shard: rows over [`sharding::shard::commands`].
//!
//! Every data-bearing node knows the names; on one that no cluster has taken in they are refused with
//! ShardingStateNotInitialized (203), but for `shardingState` and `getShardVersion`, which say so.

use crate::dispatch::{BoxFuture, Command, Context, Needs, Reply, Request, Roles};
use document::{Result, Timestamp, doc};
use node::auth::Action as A;
use sharding::shard::commands;

macro_rules! row {
    ($name:literal $($alias:literal)*) => {
        Command::future($name, Roles::MONGOD, run)
            .aliases(&[$($alias),*])
            .admin_only()
            .help("Internal command of a shard.")
    };
}

pub const ROWS: &[Command] = &[
    row!("_shardsvrMoveRange" "moveChunk").primary_only(),
    row!("_recvChunkStart").primary_only(),
    row!("_recvChunkStatus"),
    row!("_recvChunkCommit").primary_only(),
    row!("_recvChunkAbort").primary_only(),
    row!("_recvChunkReleaseCritSec").primary_only(),
    row!("_migrateClone").primary_only(),
    row!("_transferMods").primary_only(),
    row!("_getNextSessionMods").primary_only(),
    row!("_shardsvrGetSessionHistory").primary_only(),
    row!("_shardsvrReshardFetch").primary_only(),
    row!("_shardsvrJoinMigrations"),
    row!("_shardsvrKeepRanges").primary_only(),
    row!("_shardsvrAddShard" "_addShard").primary_only(),
    row!("_shardsvrSetClusterParameter").primary_only(),
    row!("_flushRoutingTableCacheUpdates" "_flushRoutingTableCacheUpdatesWithWriteConcern"),
    row!("_flushDatabaseCacheUpdates" "_flushDatabaseCacheUpdatesWithWriteConcern"),
    row!("getShardVersion")
        .needs(Needs::Namespace(&[A::GetShardVersion]))
        .help("The version of a collection, as known here."),
    row!("getDatabaseVersion")
        .needs(Needs::DatabaseNamed(&[A::GetDatabaseVersion]))
        .help("The version of a database, as known here."),
    row!("shardingState")
        .needs(Needs::Cluster(&[A::ShardingState]))
        .help("Whether this node is a shard, and what it knows of collections."),
    Command::sync("flushRouterConfig", Roles::MONGOD, flush)
        .needs(Needs::Cluster(&[A::FlushRouterConfig]))
        .aliases(&["flushrouterconfig"])
        .admin_only()
        .help("Forgets what is known of placement."),
    row!("cleanupOrphaned")
        .needs(Needs::Cluster(&[A::CleanupOrphaned]))
        .primary_only()
        .help("Waits until the orphans of a collection are gone."),
];

fn run<'a>(
    context: &'a Context,
    request: &'a Request<'a>,
    reply: &'a mut Reply,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        let members = &context.service.members;
        let role = match (members.shard(), request.command.name) {
            (Ok(role), _) => role,
            (Err(_), "shardingState") => {
                reply.fields(&doc! { "enabled": false });
                return Ok(());
            }
            (Err(_), "getShardVersion") => {
                let none = Timestamp::default();
                reply.fields(
                    &doc! { "configServer": "", "inShardedMode": false, "mine": none, "global": none },
                );
                return Ok(());
            }
            (Err(e), _) => return Err(e),
        };
        match commands::run(role, &context.operation, request.node).await? {
            commands::Reply::Tree(fields) => reply.fields(&fields),
            commands::Reply::Raw(fields) => reply.fields_of(fields.doc()),
        }
        Ok(())
    })
}

/// `{flushRouterConfig: 1 | database | namespace}`: what this node caches for itself. Placement in force stays.
fn flush(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    if let Ok(role) = context.service.members.shard() {
        match request.target().as_str() {
            None => role.cache.clear(),
            Some(name) if name.contains('.') => role.cache.clear_collection(name),
            Some(name) => role.cache.clear_database(name),
        }
    }
    reply.fields(&doc! { "flushed": true });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_a_shard_has_a_row() {
        for (name, aliases) in commands::COMMANDS {
            let row = ROWS.iter().find(|row| row.name == *name).expect(name);
            assert_eq!(row.aliases, *aliases);
        }
    }
}
