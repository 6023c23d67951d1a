//! Both directions of every message fit together.

use super::balancing::*;
use super::chunks::*;
use super::ddl::*;
use super::migration::*;
use super::placement::*;
use super::ranges::*;
use super::resharding::*;
use super::sampling::*;
use super::standstill::*;
use super::user_writes::*;
use super::*;
use document::{codes, doc};

fn check<M: Message + PartialEq + std::fmt::Debug>() {
    let message = M::example();
    let sent = message.to_document();
    assert_eq!(sent.first().map(|(name, _)| name), Some(M::COMMAND));
    assert_eq!(M::read(&sent).expect(M::COMMAND), message);
    // Whatever may be left out is, and nothing else: reading names the first that is missing.
    for (name, _) in sent.iter().skip(1) {
        let mut without = sent.clone();
        without.remove(name);
        let said = M::read(&without).err();
        let expected = format!("BSON field '{}.{name}' is missing but a required field", M::COMMAND);
        assert!(said.is_none_or(|e| e.code == codes::IDL_FAILED_TO_PARSE && e.message == expected), "{name}");
    }
}

macro_rules! check_all {
    ($($message:ident),+ $(,)?) => { $(check::<$message>();)+ };
}

#[test]
fn every_message_is_read_as_it_was_written() {
    check_all!(
        CommitChunkMigration,
        EnsureChunkVersion,
        ClearJumboFlag,
        CommitChunkSplit,
        CommitChunksMerge,
        CommitMergeAllChunks,
        SetAllowMigrations,
        ShardMergeChunks,
        ShardMergeAllChunks,
        MeasureRange,
        RequestMove,
    );
    check_all!(
        RecvChunkStatus,
        RecvChunkCommit,
        RecvChunkAbort,
        RecvChunkRelease,
        MigrateClone,
        TransferMods,
        GetNextSessionMods,
        JoinMigrations,
    );
    check_all!(
        ReshardSample,
        ReshardDonate,
        ReshardPrepare,
        ReshardClone,
        ReshardCatchUp,
        ReshardConfirm,
        ReshardDrain,
        ReshardSwitch,
        ReshardAbort,
        ReshardFetch,
        ReshardingBegin,
        ReshardingSetState,
        ReshardingCommit,
        ReshardingEnd,
    );
    check_all!(
        ParticipantBlock,
        CreateDatabase,
        CreateParticipant,
        CollModParticipant,
        DropIndexesParticipant,
        CreateIndexesParticipant,
        DropParticipant,
        RenameParticipant,
        DropDatabaseParticipant,
        ConvertParticipant,
        CommitConversion,
        CommitCreateCollection,
        CommitRename,
        CommitDropCollection,
        CommitMovePrimary,
        CommitDropDatabase,
        CommitRefine,
        CommitBucketing,
    );
    check_all!(StatsForBalancing, SetAutoSplit, RebalanceChunk);
    check_all!(CloneCatalogData, SessionHistory, ValidateShardKey);
    check_all!(Quiesce, Begin, Take, PutBack, CopyDatabase, Confirm, End);
    check_all!(FlushRoutingTable, FlushDatabase, ClusterUserWriteBlock, ShardUserWriteBlock, KeepRanges);
    check_all!(AskRates, KeepSample);
}

#[test]
fn a_step_is_read_as_the_message_that_its_name_says() {
    let steps = [Step::Begin(Begin::example()), Step::End(End::example()), Step::Confirm(Confirm::example())];
    for step in steps {
        assert_eq!(Step::read(&step.to_document()), Ok(step));
    }
    let error = Step::read(&doc! { "_shardsvrStandstill": "rest" }).map_err(|e| e.code);
    assert_eq!(error, Err(codes::BAD_VALUE));
}

#[test]
fn a_field_of_the_wrong_type_is_named() {
    let error =
        SetAllowMigrations::read(&doc! { "_configsvrSetAllowMigrations": "d.c", "allowMigrations": "no" });
    let message = "BSON field '_configsvrSetAllowMigrations.allowMigrations' is the wrong type 'string', expected type 'bool'";
    assert_eq!(error.map_err(|e| (e.code, e.message)), Err((codes::TYPE_MISMATCH, message.to_string())));
    let error =
        SetAllowMigrations::read(&doc! { "_configsvrSetAllowMigrations": 1, "allowMigrations": true });
    assert_eq!(error.map_err(|e| e.code), Err(codes::INVALID_NAMESPACE));
}
