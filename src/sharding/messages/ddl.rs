//! What the coordinator of a catalog change has shards do, and has the config server commit.

use super::Flag;
use document::{Document, ObjectId, Timestamp};
use protocol::version::DatabaseVersion;

message! {
    /// Blocks a namespace, or lets go of it.
    ParticipantBlock = "_shardsvrParticipantBlock" (name) {
        block "blockType": String,
        reason "reason": Document,
    }
}

message! {
    /// A collection is made, with its indexes, as the coordinator's shard has it.
    CreateParticipant = "_shardsvrCreateCollectionParticipant" (name) {
        uuid "collectionUUID": [u8; 16],
        options "options": Option<Document>,
        indexes "indexes": Option<Vec<Document>>,
    }
}

message! {
    /// A collection goes.
    DropParticipant = "_shardsvrDropCollectionParticipant" (name) {
        /// Only the one that has it.
        uuid "collectionUUID": Option<[u8; 16]>,
        only_empty "requireCollectionEmpty": Flag,
        from_migrate "fromMigrate": Flag,
    }
}

message! {
    /// What a shard has of a collection gets another name; what it has of a namesake of that goes.
    RenameParticipant = "_shardsvrRenameCollectionParticipant" (name) {
        to "to": String,
        source "sourceUUID": [u8; 16],
        /// Nothing is changed: the shard says whether it could.
        check "check": Flag,
        from_migrate "fromMigrate": Flag,
    }
}

message! {
    /// A database goes.
    DropDatabaseParticipant = "_shardsvrDropDatabaseParticipant" {
        /// Nothing is dropped: only critical sections of the operation are left.
        only_sections "onlySections": Flag,
        from_migrate "fromMigrate": Flag,
        /// Only while the catalog has this version.
        dropped "dropped": Option<DatabaseVersion>,
    }
}

message! {
    /// The catalog forgets a collection.
    CommitDropCollection = "_configsvrCommitDropCollection" (ns) {
        uuid "collectionUUID": Option<[u8; 16]>,
        /// It goes on as one that is where its database is.
        untrack "untrack": Flag,
    }
}

message! {
    /// A database gets another primary shard.
    CommitMovePrimary = "_configsvrCommitMovePrimary" (db) {
        to "to": String,
        expected "expectedDatabaseVersion": DatabaseVersion,
    }
}

message! {
    /// The catalog forgets a database.
    CommitDropDatabase = "_configsvrCommitDropDatabase" (db) {
        version "databaseVersion": DatabaseVersion,
    }
}

message! {
    /// A shard key gets more fields.
    CommitRefine = "_configsvrCommitRefineCollectionShardKey" (ns) {
        key "key": Document,
        epoch "newEpoch": ObjectId,
        /// The incarnation that the operation began with.
        known "oldTimestamp": Timestamp,
    }
}
