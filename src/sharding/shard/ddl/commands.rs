//! The commands of coordinators and participants, by name.

use super::Ddl;
use super::block::BlockType;
use crate::config::required;
use crate::messages::chunks::SetAllowMigrations;
use crate::messages::ddl::ParticipantBlock;
use crate::messages::user_writes::ShardUserWriteBlock;
use crate::messages::{Flag, Message};
use document::{Document, Result, Value, bail, err};
use futures::future::BoxFuture;
use node::operation::WriteAck;
use node::{Operation, Request};

/// What [`run`] answers.
pub const COMMANDS: &[&str] = &[
    "_shardsvrAbortReshardCollection",
    "_shardsvrCheckMetadataConsistency",
    "_shardsvrCheckMetadataConsistencyParticipant",
    "_shardsvrCleanupReshardCollection",
    "_shardsvrCloneCatalogData",
    "_shardsvrCollMod",
    "_shardsvrCollModParticipant",
    "_shardsvrCommitReshardCollection",
    "_shardsvrConvertToCapped",
    "_shardsvrConvertToCappedParticipant",
    "_shardsvrCreateCollection",
    "_shardsvrCreateCollectionParticipant",
    "_shardsvrCreateIndexes",
    "_shardsvrCreateIndexesParticipant",
    "_shardsvrDropCollection",
    "_shardsvrDropCollectionParticipant",
    "_shardsvrDropDatabase",
    "_shardsvrDropDatabaseParticipant",
    "_shardsvrDropIndexes",
    "_shardsvrDropIndexesParticipant",
    "_shardsvrGetStatsForBalancing",
    "_shardsvrJoinDDLCoordinators",
    "_shardsvrMeasureRange",
    "_shardsvrMergeAllChunksOnShard",
    "_shardsvrMergeChunks",
    "_shardsvrMovePrimary",
    "_shardsvrParticipantBlock",
    "_shardsvrRefineCollectionShardKey",
    "_shardsvrRenameCollection",
    "_shardsvrRenameCollectionParticipant",
    "_shardsvrReshardAbort",
    "_shardsvrReshardCatchUp",
    "_shardsvrReshardClone",
    "_shardsvrReshardCollection",
    "_shardsvrReshardConfirm",
    "_shardsvrReshardDonate",
    "_shardsvrReshardDrain",
    "_shardsvrReshardPrepare",
    "_shardsvrReshardSample",
    "_shardsvrReshardSwitch",
    "_shardsvrSetAllowMigrations",
    "_shardsvrStandstill",
    "_shardsvrUntrackUnsplittableCollection",
    "_shardsvrSetAutoSplit",
    "_shardsvrSetUserWriteBlockMode",
    "_shardsvrValidateShardKeyCandidate",
    "autoSplitVector",
    "splitChunk",
    "splitVector",
];

/// Runs a command of [`COMMANDS`]; answers its reply without `ok`. Replies are made when all that a command leaves behind, or has found done
/// before, is majority-committed: a repetition finds what the first attempt still waits for.
///
/// # Errors
/// CommandNotFound (59) for any other name; ShardingStateNotInitialized (203) on a node that is no shard.
pub fn run<'a>(ddl: &'a Ddl, op: &'a Operation, request: Request<'a>) -> BoxFuture<'a, Result<Document>> {
    Box::pin(run_named(ddl, op, request))
}

async fn run_named(ddl: &Ddl, op: &Operation, request: Request<'_>) -> Result<Document> {
    // These only look at data.
    if !matches!(request.name(), "splitVector" | "autoSplitVector") {
        ddl.role.require_identity()?;
    }
    require_majority(op, request.name())?;
    // Another primary is asked when this one is deposed; when this member leads again, all may be over that it was asked for.
    ddl.role.node.while_reign_lasts(op, run_in_reign(ddl, op, request)).await
}

async fn run_in_reign(ddl: &Ddl, op: &Operation, request: Request<'_>) -> Result<Document> {
    let reply = ddl.answer_once(op, request).await?;
    if !LEAVE_NOTHING.contains(&request.name()) {
        op.interruptible(ddl.role.node.wait_all_committed_for(op)).await??;
    }
    Ok(reply)
}

pub(super) async fn answer(ddl: &Ddl, op: &Operation, request: Request<'_>) -> Result<Document> {
    match request.name() {
        "_shardsvrCheckMetadataConsistency" => ddl.check_database(op, request).await,
        "_shardsvrCollMod" => ddl.coll_mod(op, request).await,
        "_shardsvrConvertToCapped" => ddl.convert_to_capped(op, request).await,
        "_shardsvrCreateCollection" => ddl.create_collection(op, request).await,
        "_shardsvrCreateIndexes" => ddl.create_indexes(op, request).await,
        "_shardsvrDropCollection" => ddl.drop_collection(op, request).await,
        "_shardsvrDropDatabase" => ddl.drop_database(op, request).await,
        "_shardsvrDropIndexes" => ddl.drop_indexes(op, request).await,
        "_shardsvrMovePrimary" => ddl.move_primary(op, request).await,
        "_shardsvrRefineCollectionShardKey" => ddl.refine_shard_key(op, request).await,
        "_shardsvrRenameCollection" => ddl.rename_collection(op, request).await,
        "_shardsvrReshardCollection" => ddl.reshard(op, request).await,
        "_shardsvrAbortReshardCollection" => ddl.abort_reshard(op, request).await,
        "_shardsvrCommitReshardCollection" => ddl.hasten_reshard(op, request).await,
        "_shardsvrCleanupReshardCollection" => ddl.cleanup_reshard(op, request).await,
        "_shardsvrUntrackUnsplittableCollection" => ddl.untrack(op, request).await,
        "_shardsvrSetAllowMigrations" => ddl.set_allow_migrations(op, request).await,
        "_shardsvrJoinDDLCoordinators" => op.interruptible(ddl.join(&[])).await?.map(|()| Document::new()),
        "_shardsvrMergeAllChunksOnShard" => ddl.merge_all_chunks(op, request).await,
        "_shardsvrMergeChunks" => ddl.merge_chunks(op, request).await,
        "autoSplitVector" => super::split::auto_split_vector(&ddl.role.node, op, request).await,
        "splitChunk" => ddl.split_chunk(op, request).await,
        "splitVector" => super::split::split_vector(&ddl.role.node, op, request).await,
        _ => run_participant(ddl, op, request).await,
    }
}

/// Commands that leave nothing behind which a crash might take back.
const LEAVE_NOTHING: &[&str] = &[
    "_shardsvrCheckMetadataConsistency",
    "_shardsvrCheckMetadataConsistencyParticipant",
    "_shardsvrGetStatsForBalancing",
    "_shardsvrJoinDDLCoordinators",
    "_shardsvrMeasureRange",
    "_shardsvrMergeAllChunksOnShard",
    "_shardsvrMergeChunks",
    "_shardsvrReshardCatchUp",
    "_shardsvrReshardClone",
    "_shardsvrReshardConfirm",
    "_shardsvrReshardDonate",
    "_shardsvrReshardSample",
    "_shardsvrSetAutoSplit",
    "_shardsvrValidateShardKeyCandidate",
    "autoSplitVector",
    "splitChunk",
    "splitVector",
];

/// Runs a command that coordinators send to shards. Whatever it leaves behind, or has found done before, is majority-committed when
/// the reply is made: the coordinator goes on to where nothing is repeated any more.
pub(super) async fn run_participant(ddl: &Ddl, op: &Operation, request: Request<'_>) -> Result<Document> {
    ddl.make_way(&request);
    let _passed = ddl.fences.pass(request.body).await?;
    let reply = answer_coordinator(ddl, op, request).await?;
    if !LEAVE_NOTHING.contains(&request.name()) {
        ddl.role.node.wait_all_committed_for(op).await?;
    }
    Ok(reply)
}

async fn answer_coordinator(ddl: &Ddl, op: &Operation, request: Request<'_>) -> Result<Document> {
    match request.name() {
        "_shardsvrCheckMetadataConsistencyParticipant" => ddl.check_here(request).await,
        "_shardsvrCloneCatalogData" => ddl.clone_catalog_data(request).await,
        "_shardsvrCollModParticipant" => ddl.coll_mod_here(request).await,
        "_shardsvrConvertToCappedParticipant" => ddl.convert_participant(request).await,
        "_shardsvrCreateIndexesParticipant" => ddl.create_indexes_here(request).await,
        "_shardsvrDropIndexesParticipant" => ddl.drop_indexes_here(request).await,
        "_shardsvrCreateCollectionParticipant" => ddl.create_participant(request).await,
        "_shardsvrDropCollectionParticipant" => ddl.drop_participant(request).await,
        "_shardsvrDropDatabaseParticipant" => ddl.drop_database_participant(request).await,
        "_shardsvrGetStatsForBalancing" => ddl.stats_for_balancing(op, request).await,
        "_shardsvrMeasureRange" => ddl.measure_range(op, request).await,
        "_shardsvrSetAutoSplit" => ddl.strong()?.set_auto_split(request).await,
        "_shardsvrParticipantBlock" => participant_block(ddl, request).await,
        "_shardsvrSetUserWriteBlockMode" => {
            let asked = ShardUserWriteBlock::parse(request.body)?;
            crate::shard::user_writes::set(ddl, op, asked).await.map(|()| Document::new())
        }
        "_shardsvrRenameCollectionParticipant" => ddl.rename_participant(request).await,
        "_shardsvrReshardAbort"
        | "_shardsvrReshardCatchUp"
        | "_shardsvrReshardClone"
        | "_shardsvrReshardConfirm"
        | "_shardsvrReshardDonate"
        | "_shardsvrReshardDrain"
        | "_shardsvrReshardPrepare"
        | "_shardsvrReshardSample"
        | "_shardsvrReshardSwitch" => ddl.reshard_participant(request).await,
        "_shardsvrStandstill" => ddl.standstill_step(request).await,
        "_shardsvrValidateShardKeyCandidate" => ddl.validate_key_candidate(request).await,
        name => bail!(COMMAND_NOT_FOUND, "no such command: '{name}'"),
    }
}

fn require_majority(op: &Operation, command: &str) -> Result<()> {
    let coordinator = matches!(
        command,
        "_shardsvrCreateCollection"
            | "_shardsvrDropCollection"
            | "_shardsvrDropDatabase"
            | "_shardsvrRefineCollectionShardKey"
            | "_shardsvrRenameCollection"
            | "_shardsvrReshardCollection"
            | "_shardsvrMovePrimary"
    );
    if coordinator && op.write_concern.given && op.write_concern.w != WriteAck::Majority {
        bail!(
            INVALID_OPTIONS,
            "{command} must be called with majority writeConcern, got {}",
            document::shell::document(&op.write_concern.to_document())
        );
    }
    Ok(())
}

/// `{_shardsvrParticipantBlock: collection, blockType, reason}`.
async fn participant_block(ddl: &Ddl, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    let ParticipantBlock { block: name, reason, .. } = ParticipantBlock::parse(request.body)?;
    let block = BlockType::parse(&name).ok_or_else(|| {
        err!(BAD_VALUE, "Enumeration value '{name}' for field 'blockType' is not a valid value.")
    })?;
    ddl.set_block(&ns, block, &reason).await?;
    Ok(Document::new())
}

impl Ddl {
    /// Waits until no coordinator is under way that this primary has taken up, but for those of the operations `but`.
    pub(crate) async fn join(&self, but: &[&str]) -> Result<()> {
        let operation = |d: &Document| {
            d.get_document("_id").and_then(|id| id.get_str("operationType")).unwrap_or("").to_string()
        };
        let awaited = |d: &Document| !but.contains(&operation(d).as_str());
        while self.role.local.find(super::COORDINATORS, &Document::new())?.iter().any(awaited) {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// `{_shardsvrSetAllowMigrations: collection, allowMigrations}`. When it has returned after forbidding them, none is under
    /// way.
    async fn set_allow_migrations(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        self.check_primary(op, request.db).await?;
        let body = request.body.to_document();
        let allow = required(&body, "allowMigrations", Value::as_bool)?;
        let _held = self.locks.take(&[&ns], &format!("setAllowMigrations of {ns}")).await?;
        let set = SetAllowMigrations { ns: ns.clone(), allow, uuid: None, permit: Flag(true) };
        self.config(set.to_document()).await?;
        if !allow {
            self.stop_migrations(&ns).await?;
        }
        self.refresh_everywhere(&ns).await?;
        Ok(Document::new())
    }
}
