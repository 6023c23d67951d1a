//! The table of coordinators: their phases and what a failure in each means.
//!
//! Each kind has its own type of phases, so that its coordinator names every one of them and the compiler sees a missing
//! one. Names are as they stand in documents. DO NOT CHANGE them.

use super::OnFailure::{Fail, Retry, Undo, UndoIfDefinite};
use super::{OnFailure, Phase, Protocol};

const fn phase(name: &'static str, on_failure: OnFailure) -> Phase {
    Phase { name, on_failure }
}

macro_rules! protocols {
    ($($(#[$doc:meta])* $protocol:ident $phases:ident $operation:literal {
        $($phase:ident $name:literal $on_failure:ident),+ $(,)?
    })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $phases { $($phase),+ }

            impl $phases {
                /// The phase of this name; `None` for a name of another version of this code.
                pub fn named(name: &str) -> Option<$phases> {
                    match name {
                        $($name => Some($phases::$phase),)+
                        _ => None,
                    }
                }
            }

            pub const $protocol: Protocol = Protocol {
                operation: $operation,
                phases: &[$(phase($name, $on_failure)),+],
            };
        )+

        /// Every coordinator there is.
        pub const ALL: &[&Protocol] = &[$(&$protocol),+];
    };
}

protocols! {
    /// shardCollection.
    CREATE_COLLECTION CreatePhase "createCollection_V4" {
        CheckPreconditions "checkPreconditions" Fail,
        EnterCriticalSection "enterCriticalSection" Undo,
        CreateOnParticipants "createCollectionOnParticipants" Undo,
        CommitOnShardingCatalog "commitOnShardingCatalog" UndoIfDefinite,
        SetPostCommitMetadata "setPostCommitMetadata" Retry,
        ExitCriticalSection "exitCriticalSection" Retry,
    }
    /// drop of a sharded collection. Its migrations are over before anything is dropped.
    DROP_COLLECTION DropPhase "dropCollection_V2" {
        FreezeCollection "freezeCollection" Undo,
        EnterCriticalSection "enterCriticalSection" Undo,
        DropCollection "dropCollection" Retry,
        ReleaseCriticalSection "releaseCriticalSection" Retry,
    }
    /// dropDatabase.
    DROP_DATABASE DropDatabasePhase "dropDatabase_V2" {
        DropCollections "dropCollections" Retry,
        EnterCriticalSection "enterCriticalSection" Retry,
        DropDatabase "dropDatabase" Retry,
        ExitCriticalSection "exitCriticalSection" Retry,
    }
    /// renameCollection where source or target is sharded. The migrations of both are over before a name changes.
    RENAME_COLLECTION RenamePhase "renameCollection_V2" {
        CheckPreconditions "checkPreconditions" Fail,
        FreezeMigrations "freezeMigrations" Undo,
        BlockCrudAndRename "blockCrudAndRename" Undo,
        RenameMetadata "renameMetadata" Retry,
        UnblockCrud "unblockCRUD" Retry,
    }
    /// movePrimary.
    MOVE_PRIMARY MovePrimaryPhase "movePrimary" {
        CheckPreconditions "checkPreconditions" Fail,
        BlockWrites "blockWrites" Undo,
        Clone "clone" Undo,
        EnterCriticalSection "enterCriticalSection" Undo,
        Commit "commit" UndoIfDefinite,
        Clean "clean" Retry,
        ExitCriticalSection "exitCriticalSection" Retry,
    }
    /// refineCollectionShardKey. No chunk moves or changes while the bounds of all get longer.
    REFINE_SHARD_KEY RefinePhase "refineCollectionShardKey_V2" {
        CheckPreconditions "checkPreconditions" Fail,
        FreezeMigrations "freezeMigrations" Undo,
        BlockCrud "blockCRUD" Undo,
        Commit "commit" UndoIfDefinite,
        ReleaseCriticalSection "releaseCritSec" Retry,
    }
    /// reshardCollection, moveCollection, unshardCollection: a copy takes the collection's place.
    RESHARD ReshardPhase "reshardCollection" {
        CheckPreconditions "checkPreconditions" Fail,
        FreezeMigrations "freezeMigrations" Undo,
        Initialize "initialize" Undo,
        Clone "clone" UndoIfDefinite,
        BlockWrites "blockWrites" Undo,
        Commit "commit" UndoIfDefinite,
        SwitchCollections "switchCollections" Retry,
        UnblockCrud "unblockCRUD" Retry,
        Clean "clean" Retry,
    }
    /// untrackUnshardedCollection.
    UNTRACK UntrackPhase "untrackUnsplittableCollection" {
        CheckPreconditions "checkPreconditions" Fail,
        EnterCriticalSection "enterCriticalSection" Undo,
        Commit "commit" UndoIfDefinite,
        DropEmptyCopies "dropEmptyCopies" Retry,
        ExitCriticalSection "exitCriticalSection" Retry,
    }
    /// convertToCapped of a tracked collection. When the copy has the name the catalog follows.
    CONVERT_TO_CAPPED ConvertPhase "convertToCapped" {
        CheckPreconditions "checkPreconditions" Fail,
        FreezeMigrations "freezeMigrations" Undo,
        BlockCrud "blockCRUD" Undo,
        ConvertCollection "convertCollection" UndoIfDefinite,
        Commit "commit" Retry,
        UnblockCrud "unblockCRUD" Retry,
    }
    /// collMod of a sharded collection. A migration under way would bring the old definition to its recipient. While the bucketing of a time
    /// series changes nobody writes to it: the catalog and all shards have the same when writes go on.
    COLL_MOD CollModPhase "collMod_V3" {
        FreezeMigrations "freezeMigrations" Undo,
        UpdateShards "updateShards" UndoIfDefinite,
        BlockShards "blockShards" Undo,
        UpdateConfig "updateConfig" UndoIfDefinite,
        UpdateBuckets "updateBuckets" Retry,
        UnblockShards "unblockShards" Retry,
        AllowMigrations "allowMigrations" Retry,
    }
    /// createIndexes of a sharded collection: on all of its shards or on none.
    CREATE_INDEXES CreateIndexesPhase "createIndexes" {
        FreezeMigrations "freezeMigrations" Undo,
        NoteIndexes "noteIndexes" Undo,
        BuildIndexes "buildIndexes" UndoIfDefinite,
        AllowMigrations "allowMigrations" Retry,
    }
    /// dropIndexes of a sharded collection, likewise.
    DROP_INDEXES DropIndexesPhase "dropIndexes" {
        FreezeMigrations "freezeMigrations" Undo,
        UpdateShards "updateShards" UndoIfDefinite,
        AllowMigrations "allowMigrations" Retry,
    }
    /// A snapshot of the whole cluster. Nothing of it counts before its document is written.
    TAKE_SNAPSHOT TakePhase "takeSnapshot" {
        Quiesce "quiesce" Undo,
        Begin "begin" Undo,
        Take "take" Undo,
        Commit "commit" Retry,
        End "end" Retry,
    }
    /// It is forgotten first, and then its parts go.
    DROP_SNAPSHOT DropSnapshotPhase "dropSnapshot" {
        Commit "commit" Retry,
        End "end" Retry,
    }
    /// All data and the catalog put back. From the first shard that is put back on there is no way but forward.
    RESTORE RestorePhase "restore" {
        Quiesce "quiesce" Undo,
        Begin "begin" Undo,
        PutBack "putBack" Retry,
        Catalog "catalog" Retry,
        End "end" Retry,
    }
    /// The copy of a database under another name.
    FORK ForkPhase "fork" {
        Quiesce "quiesce" Undo,
        Begin "begin" Undo,
        Copy "copy" Retry,
        Catalog "catalog" Retry,
        End "end" Retry,
    }
}
