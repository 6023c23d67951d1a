//! The commands of the config server: rows over [`sharding::config::commands`].
//!
//! Every data-bearing node knows the names; on one that is no config server they are refused with IllegalOperation (20).

use crate::dispatch::{BoxFuture, Command, Context, Needs, Reply, Request, Roles};
use document::Result;
use node::auth::Action as A;
use sharding::config::commands;

macro_rules! row {
    ($name:literal) => {
        Command::future($name, Roles::MONGOD, run)
            .admin_only()
            .primary_only()
            .help("Internal command of the config server.")
    };
}

pub const ROWS: &[Command] = &[
    row!("_configsvrAddShard"),
    row!("_configsvrAddShardToZone"),
    row!("_configsvrBalancerCollectionStatus"),
    row!("_configsvrBalancerStart"),
    row!("_configsvrBalancerStatus"),
    row!("_configsvrBalancerStop"),
    row!("_configsvrCheckClusterMetadataConsistency"),
    row!("_configsvrCheckMetadataConsistency"),
    row!("_configsvrClearJumboFlag"),
    row!("_configsvrCollMod"),
    row!("_configsvrCommitChunkMigration"),
    row!("_configsvrCommitChunkSplit"),
    row!("_configsvrCommitChunksMerge"),
    row!("_configsvrCommitConvertToCapped"),
    row!("_configsvrCommitCreateCollection"),
    row!("_configsvrCommitDropCollection"),
    row!("_configsvrCommitDropDatabase"),
    row!("_configsvrCommitMergeAllChunksOnShard"),
    row!("_configsvrCommitMovePrimary"),
    row!("_configsvrCommitRefineCollectionShardKey"),
    row!("_configsvrCommitRenameCollection"),
    row!("_configsvrCommitShardRemoval"),
    row!("_configsvrConfigureCollectionBalancing"),
    row!("_configsvrCreateDatabase"),
    row!("_configsvrEnsureChunkVersionIsGreaterThan"),
    row!("_configsvrMoveRange"),
    row!("_configsvrRebalanceChunk"),
    row!("_configsvrRemoveShard"),
    row!("_configsvrRemoveShardFromZone"),
    row!("_configsvrRepairShardedCollectionChunksHistory"),
    row!("_configsvrResetPlacementHistory"),
    row!("_configsvrReshardingBegin"),
    row!("_configsvrReshardingCommit"),
    row!("_configsvrReshardingEnd"),
    row!("_configsvrReshardingSetState"),
    row!("_configsvrSetAllowMigrations"),
    row!("_configsvrSetUserWriteBlockMode"),
    row!("_configsvrShardDrainingStatus"),
    row!("_configsvrStartShardDraining"),
    row!("_configsvrStopShardDraining"),
    row!("_configsvrTesseraFork"),
    row!("_configsvrTesseraRestore"),
    row!("_configsvrTesseraSnapshot"),
    row!("_configsvrTesseraSnapshots"),
    row!("_configsvrTransitionFromDedicatedConfigServer"),
    row!("_configsvrTransitionToDedicatedConfigServer"),
    row!("_configsvrUpdateZoneKeyRange"),
    Command::future("listShards", Roles::CONFIG, list_shards)
        .needs(Needs::Cluster(&[A::ListShards]))
        .aliases(&["listshards"])
        .admin_only()
        .help("Lists the shards."),
    Command::sync("getShardingReady", Roles::CONFIG, ready)
        .admin_only()
        .help("Whether the cluster has a shard."),
    Command::future("getShardMap", Roles::MONGOD, shard_map)
        .needs(Needs::Cluster(&[A::GetShardMap]))
        .admin_only()
        .help("Shards and their hosts."),
];

fn run<'a>(
    context: &'a Context,
    request: &'a Request<'a>,
    reply: &'a mut Reply,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        let config = context.service.members.config(request.command.name)?;
        reply.fields(&commands::run(config, &context.operation, request.node).await?);
        Ok(())
    })
}

fn list_shards<'a>(
    context: &'a Context,
    request: &'a Request<'a>,
    reply: &'a mut Reply,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        let config = context.service.members.config("listShards")?;
        reply.fields(&config.list_shards(request.node).await?);
        Ok(())
    })
}

/// `getShardingReady`.
fn ready(context: &Context, _: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let config = context.service.members.config("getShardingReady")?;
    reply.fields(&document::doc! { "isReady": !config.catalog().shards().is_empty() });
    Ok(())
}

fn shard_map<'a>(
    context: &'a Context,
    _: &'a Request<'a>,
    reply: &'a mut Reply,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        let members = &context.service.members;
        let map = match (members.config("getShardMap"), members.shard()) {
            (Ok(config), _) => config.shard_map().await?,
            (_, Ok(shard)) if shard.identity().is_some() => shard.shard_map().await?,
            // Outside a cluster there are none.
            _ => sharding::config::shards::shard_map(&[] as &[(String, String)], None),
        };
        reply.fields(&map);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_config_server_has_a_row() {
        for name in commands::COMMANDS {
            assert!(ROWS.iter().any(|row| row.name == *name), "{name}");
        }
    }
}
