//! The commands of a shard's coordinators and their participants: rows over [`sharding::shard::ddl::commands`].
//!
//! Every data-bearing node knows the names; on one that no cluster has taken in they are refused with
//! ShardingStateNotInitialized (203).

use crate::dispatch::{BoxFuture, Command, Context, Needs, Reply, Request, Roles};
use document::Result;
use node::auth::Action as A;
use sharding::shard::ddl::{commands, split};

macro_rules! row {
    ($name:literal) => {
        Command::future($name, Roles::MONGOD, run).primary_only().help("Internal command of a shard.")
    };
}

/// A coordinator: a router that gives up ends the waiting for it, and what waits for its lock; not what has begun.
macro_rules! begins {
    ($name:literal) => {
        row!($name).ends_with_client()
    };
}

pub const ROWS: &[Command] = &[
    row!("_shardsvrCheckMetadataConsistency"),
    row!("_shardsvrCheckMetadataConsistencyParticipant"),
    row!("_shardsvrCloneCatalogData"),
    begins!("_shardsvrCollMod"),
    row!("_shardsvrCollModParticipant"),
    begins!("_shardsvrConvertToCapped"),
    row!("_shardsvrConvertToCappedParticipant"),
    begins!("_shardsvrCreateCollection"),
    row!("_shardsvrCreateCollectionParticipant"),
    begins!("_shardsvrCreateIndexes"),
    row!("_shardsvrCreateIndexesParticipant"),
    begins!("_shardsvrDropCollection"),
    row!("_shardsvrDropCollectionParticipant"),
    begins!("_shardsvrDropDatabase"),
    row!("_shardsvrDropDatabaseParticipant"),
    begins!("_shardsvrDropIndexes"),
    row!("_shardsvrDropIndexesParticipant"),
    row!("_shardsvrGetStatsForBalancing"),
    row!("_shardsvrJoinDDLCoordinators"),
    row!("_shardsvrMeasureRange"),
    row!("_shardsvrMergeAllChunksOnShard"),
    row!("_shardsvrMergeChunks"),
    begins!("_shardsvrMovePrimary"),
    row!("_shardsvrParticipantBlock"),
    begins!("_shardsvrRefineCollectionShardKey"),
    begins!("_shardsvrRenameCollection"),
    row!("_shardsvrRenameCollectionParticipant"),
    begins!("_shardsvrAbortReshardCollection"),
    begins!("_shardsvrCleanupReshardCollection"),
    begins!("_shardsvrCommitReshardCollection"),
    row!("_shardsvrReshardAbort"),
    row!("_shardsvrReshardCatchUp"),
    row!("_shardsvrReshardClone"),
    begins!("_shardsvrReshardCollection"),
    row!("_shardsvrReshardConfirm"),
    row!("_shardsvrReshardDonate"),
    row!("_shardsvrReshardDrain"),
    row!("_shardsvrReshardPrepare"),
    row!("_shardsvrReshardSample"),
    row!("_shardsvrReshardSwitch"),
    begins!("_shardsvrSetAllowMigrations"),
    row!("_shardsvrStandstill"),
    begins!("_shardsvrUntrackUnsplittableCollection"),
    row!("_shardsvrSetAutoSplit"),
    row!("_shardsvrSetUserWriteBlockMode").admin_only(),
    row!("_shardsvrValidateShardKeyCandidate"),
    row!("autoSplitVector"),
    row!("splitChunk"),
    Command::future("splitVector", Roles::MONGOD, split_vector)
        .needs(Needs::Namespace(&[A::SplitVector]))
        .ends_with_client()
        .help("Keys that divide a collection into chunks."),
];

fn run<'a>(
    context: &'a Context,
    request: &'a Request<'a>,
    reply: &'a mut Reply,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        let ddl = context.service.members.ddl()?;
        let _began = super::user_writes::begin_ddl(context, request).await?;
        reply.fields(&commands::run(ddl, &context.operation, request.node).await?);
        Ok(())
    })
}

fn split_vector<'a>(
    context: &'a Context,
    request: &'a Request<'a>,
    reply: &'a mut Reply,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        if let Some(node) = &context.service.node {
            reply.fields(&split::split_vector(node, &context.operation, request.node).await?);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_coordinators_has_a_row() {
        for name in commands::COMMANDS {
            assert!(ROWS.iter().any(|row| row.name == *name), "{name}");
        }
    }
}
