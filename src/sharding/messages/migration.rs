//! What donor and recipient of a migration say to each other. How a migration begins (`_shardsvrMoveRange`, `_recvChunkStart`)
//! is in `shard/migration/request`, since it is checked as it is read.

use super::Flag;

message! {
    /// How far has the reception come?
    RecvChunkStatus = "_recvChunkStatus" (ns) {
        /// Of any session where it is left out.
        session "sessionId": Option<String>,
        wait_until_steady "waitForSteadyOrDone": Flag,
    }
}

message! {
    /// The donor blocks writes: take the last of them.
    RecvChunkCommit = "_recvChunkCommit" (ns) {
        session "sessionId": String,
        block_on_recipient "acquireCSOnRecipient": Flag,
    }
}

message! {
    /// The migration is given up.
    RecvChunkAbort = "_recvChunkAbort" (ns) {
        /// Of any session where it is left out.
        session "sessionId": Option<String>,
    }
}

message! {
    /// The migration is decided: serve the range.
    RecvChunkRelease = "_recvChunkReleaseCritSec" (ns) {
        session "sessionId": String,
        /// For a fail point alone: it is left to others to tell the recipient where chunks are.
        skip_refresh "skipRefresh": Flag,
    }
}

message! {
    /// The next documents of the range.
    MigrateClone = "_migrateClone" (ns) {
        session "sessionId": String,
    }
}

message! {
    /// The next changes of the range since they were cloned.
    TransferMods = "_transferMods" (ns) {
        session "sessionId": String,
    }
}

message! {
    /// The next retryable writes of the range.
    GetNextSessionMods = "_getNextSessionMods" (ns) {
        session "sessionId": String,
    }
}

message! {
    /// Waits until no migration is under way; those of one collection that have not begun to commit give way.
    JoinMigrations = "_shardsvrJoinMigrations" {
        stop "stop": Option<String>,
    }
}
