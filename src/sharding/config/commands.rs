//! The commands of the config server, by name.

use super::ConfigServer;
use document::{Document, Result, bail};
use futures::future::BoxFuture;
use node::{Operation, Request};
use std::sync::Arc;

/// What [`run`] answers.
pub const COMMANDS: &[&str] = &[
    "_configsvrAddShard",
    "_configsvrAddShardToZone",
    "_configsvrBalancerCollectionStatus",
    "_configsvrBalancerStart",
    "_configsvrBalancerStatus",
    "_configsvrBalancerStop",
    "_configsvrCheckClusterMetadataConsistency",
    "_configsvrCheckMetadataConsistency",
    "_configsvrClearJumboFlag",
    "_configsvrCollMod",
    "_configsvrCommitChunkMigration",
    "_configsvrCommitChunkSplit",
    "_configsvrCommitChunksMerge",
    "_configsvrCommitConvertToCapped",
    "_configsvrCommitCreateCollection",
    "_configsvrCommitDropCollection",
    "_configsvrCommitDropDatabase",
    "_configsvrCommitMergeAllChunksOnShard",
    "_configsvrCommitMovePrimary",
    "_configsvrCommitRefineCollectionShardKey",
    "_configsvrCommitRenameCollection",
    "_configsvrCommitShardRemoval",
    "_configsvrConfigureCollectionBalancing",
    "_configsvrCreateDatabase",
    "_configsvrEnsureChunkVersionIsGreaterThan",
    "_configsvrMoveRange",
    "_configsvrRebalanceChunk",
    "_configsvrRemoveShard",
    "_configsvrRemoveShardFromZone",
    "_configsvrRepairShardedCollectionChunksHistory",
    "_configsvrResetPlacementHistory",
    "_configsvrReshardingBegin",
    "_configsvrReshardingCommit",
    "_configsvrReshardingEnd",
    "_configsvrReshardingSetState",
    "_configsvrSetAllowMigrations",
    "_configsvrSetUserWriteBlockMode",
    "_configsvrShardDrainingStatus",
    "_configsvrStartShardDraining",
    "_configsvrStopShardDraining",
    "_configsvrTesseraFork",
    "_configsvrTesseraRestore",
    "_configsvrTesseraSnapshot",
    "_configsvrTesseraSnapshots",
    "_configsvrTransitionFromDedicatedConfigServer",
    "_configsvrTransitionToDedicatedConfigServer",
    "_configsvrUpdateZoneKeyRange",
];

/// Those that only look.
const LOOK: &[&str] = &[
    "_configsvrBalancerCollectionStatus",
    "_configsvrBalancerStatus",
    "_configsvrCheckClusterMetadataConsistency",
    "_configsvrCheckMetadataConsistency",
    "_configsvrShardDrainingStatus",
    "_configsvrTesseraSnapshots",
];

/// Those by which shards come and go.
const CHANGE_SHARDS: &[&str] = &[
    "_configsvrAddShard",
    "_configsvrCommitShardRemoval",
    "_configsvrRemoveShard",
    "_configsvrTransitionFromDedicatedConfigServer",
    "_configsvrTransitionToDedicatedConfigServer",
];

/// Runs a command of [`COMMANDS`]; answers its reply without `ok`. What a change has written, or has found done before, is majority-committed
/// when the reply is made: the catalog is read as it is here, and a repetition finds what the first attempt still waits for.
///
/// # Errors
/// CommandNotFound (59) for any other name.
pub fn run<'a>(
    config: &'a Arc<ConfigServer>,
    op: &'a Operation,
    request: Request<'a>,
) -> BoxFuture<'a, Result<Document>> {
    Box::pin(run_named(config, op, request))
}

async fn run_named(config: &Arc<ConfigServer>, op: &Operation, request: Request<'_>) -> Result<Document> {
    config.node.while_reign_lasts(op, run_in_turn(config, op, request)).await
}

async fn run_in_turn(config: &Arc<ConfigServer>, op: &Operation, request: Request<'_>) -> Result<Document> {
    // A shard's coordinator may have undone meanwhile what a message of its was for that comes late.
    let _passed = config.fences.pass(request.body).await?;
    let reply = answer(config, op, request).await?;
    if CHANGE_SHARDS.contains(&request.name()) {
        config.tell_cardinality().await?;
    }
    if !LOOK.contains(&request.name()) {
        op.interruptible(config.node.wait_all_committed_for(op)).await??;
    }
    Ok(reply)
}

async fn answer(config: &Arc<ConfigServer>, op: &Operation, request: Request<'_>) -> Result<Document> {
    match request.name() {
        "_configsvrAddShard" => config.add_shard(op, request).await,
        "_configsvrAddShardToZone" => config.add_shard_to_zone(op, request).await,
        "_configsvrBalancerCollectionStatus" => config.balancer_collection_status(request).await,
        "_configsvrBalancerStart" => config.balancer_start(op).await,
        "_configsvrBalancerStatus" => config.balancer_status().await,
        "_configsvrBalancerStop" => config.balancer_stop(op).await,
        "_configsvrCheckClusterMetadataConsistency" => config.check_cluster(request).await,
        "_configsvrCheckMetadataConsistency" => config.check_database(request).await,
        "_configsvrClearJumboFlag" => config.clear_jumbo_flag(op, request).await,
        "_configsvrCommitChunkMigration" => config.commit_chunk_migration(op, request).await,
        "_configsvrCommitChunkSplit" => config.commit_chunk_split(op, request).await,
        "_configsvrCommitChunksMerge" => config.commit_chunks_merge(op, request).await,
        "_configsvrCommitConvertToCapped" => config.commit_conversion(op, request).await,
        "_configsvrCommitCreateCollection" => config.commit_create_collection(op, request).await,
        "_configsvrCommitDropCollection" => config.commit_drop_collection(op, request).await,
        "_configsvrCommitDropDatabase" => config.commit_drop_database(op, request).await,
        "_configsvrCommitMergeAllChunksOnShard" => config.commit_merge_all_chunks(op, request).await,
        "_configsvrCommitMovePrimary" => config.commit_move_primary(op, request).await,
        "_configsvrCollMod" => config.commit_bucketing(op, request).await,
        "_configsvrCommitRefineCollectionShardKey" => config.commit_refine(op, request).await,
        "_configsvrCommitRenameCollection" => config.commit_rename_collection(op, request).await,
        "_configsvrCommitShardRemoval" => config.commit_shard_removal(op, request).await,
        "_configsvrConfigureCollectionBalancing" => config.configure_collection_balancing(op, request).await,
        "_configsvrCreateDatabase" => config.create_database(op, request).await,
        "_configsvrEnsureChunkVersionIsGreaterThan" => config.ensure_chunk_version(op, request).await,
        "_configsvrMoveRange" => config.move_range(op, request).await,
        "_configsvrRebalanceChunk" => config.rebalance_chunk(op, request).await,
        "_configsvrRemoveShard" => config.remove_shard(op, request).await,
        "_configsvrRemoveShardFromZone" => config.remove_shard_from_zone(op, request).await,
        "_configsvrRepairShardedCollectionChunksHistory" => config.repair_chunks_history(op, request).await,
        "_configsvrResetPlacementHistory" => config.reset_placement_history(op, request).await,
        "_configsvrReshardingBegin" => config.begin_resharding(op, request).await,
        "_configsvrReshardingCommit" => config.commit_resharding(op, request).await,
        "_configsvrReshardingEnd" => config.end_resharding(op, request).await,
        "_configsvrReshardingSetState" => config.set_resharding_state(op, request).await,
        "_configsvrSetAllowMigrations" => config.set_allow_migrations(op, request).await,
        "_configsvrSetUserWriteBlockMode" => config.set_user_write_block_mode(op, request).await,
        "_configsvrShardDrainingStatus" => config.shard_draining_status(request).await,
        "_configsvrStartShardDraining" => config.start_shard_draining(op, request).await,
        "_configsvrStopShardDraining" => config.stop_shard_draining(op, request).await,
        "_configsvrTesseraFork" => config.fork_database(op, request).await,
        "_configsvrTesseraRestore" => config.restore_snapshot(op, request).await,
        "_configsvrTesseraSnapshot" => config.take_or_drop_snapshot(op, request).await,
        "_configsvrTesseraSnapshots" => config.list_snapshots().await,
        "_configsvrTransitionFromDedicatedConfigServer" => config.transition_from_dedicated(op).await,
        "_configsvrTransitionToDedicatedConfigServer" => config.transition_to_dedicated(op).await,
        "_configsvrUpdateZoneKeyRange" => config.update_zone_key_range(op, request).await,
        name => bail!(COMMAND_NOT_FOUND, "no such command: '{name}'"),
    }
}
