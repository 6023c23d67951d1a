//! The table of coordinators: their phases and what a failure in each means.

use super::OnFailure::{Fail, Retry, Undo, UndoIfDefinite};
use super::{OnFailure, Phase, Protocol};

const fn phase(name: &'static str, on_failure: OnFailure) -> Phase {
    Phase { name, on_failure }
}

pub const CREATE_COLLECTION: Protocol = Protocol {
    operation: "createCollection_V4",
    phases: &[
        phase("checkPreconditions", Fail),
        phase("enterCriticalSection", Undo),
        phase("createCollectionOnParticipants", Undo),
        phase("commitOnShardingCatalog", UndoIfDefinite),
        phase("setPostCommitMetadata", Retry),
        phase("exitCriticalSection", Retry),
    ],
};

pub const DROP_COLLECTION: Protocol = Protocol {
    operation: "dropCollection_V2",
    phases: &[
        phase("enterCriticalSection", Undo),
        phase("dropCollection", Retry),
        phase("releaseCriticalSection", Retry),
    ],
};

pub const DROP_DATABASE: Protocol = Protocol {
    operation: "dropDatabase_V2",
    phases: &[
        phase("dropCollections", Retry),
        phase("enterCriticalSection", Retry),
        phase("dropDatabase", Retry),
        phase("exitCriticalSection", Retry),
    ],
};

pub const RENAME_COLLECTION: Protocol = Protocol {
    operation: "renameCollection_V2",
    phases: &[
        phase("checkPreconditions", Fail),
        phase("blockCrudAndRename", Undo),
        phase("renameMetadata", Retry),
        phase("unblockCRUD", Retry),
    ],
};

pub const MOVE_PRIMARY: Protocol = Protocol {
    operation: "movePrimary",
    phases: &[
        phase("checkPreconditions", Fail),
        phase("blockWrites", Undo),
        phase("clone", Undo),
        phase("enterCriticalSection", Undo),
        phase("commit", UndoIfDefinite),
        phase("clean", Retry),
        phase("exitCriticalSection", Retry),
    ],
};

pub const COLL_MOD: Protocol =
    Protocol { operation: "collMod_V3", phases: &[phase("updateShards", UndoIfDefinite)] };

pub const DROP_INDEXES: Protocol =
    Protocol { operation: "dropIndexes", phases: &[phase("updateShards", UndoIfDefinite)] };

/// Every coordinator there is.
pub const ALL: &[&Protocol] = &[
    &CREATE_COLLECTION,
    &DROP_COLLECTION,
    &DROP_DATABASE,
    &RENAME_COLLECTION,
    &MOVE_PRIMARY,
    &COLL_MOD,
    &DROP_INDEXES,
];
