//! What the coordinator of a catalog change has shards do, and has the config server commit.

use super::Flag;
use document::{Document, ObjectId, Timestamp};
use protocol::version::DatabaseVersion;

message! {
    /// Blocks a namespace, or lets go of it.
    ParticipantBlock = "_shardsvrParticipantBlock" (name) {
        block "blockType": String,
        reason "reason": Document,
        /// The copy of a resharding that is given up: receiving it ends first.
        copy "newUUID": Option<[u8; 16]>,
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
    /// A collection is changed by a client's `collMod`.
    CollModParticipant = "_shardsvrCollModParticipant" (name) {
        command "command": Document,
        /// What sessions have done to the collection on these shards is known here before it is changed.
        histories "sessionHistoriesOf": Option<Vec<String>>,
    }
}

message! {
    /// Indexes go by a client's `dropIndexes`.
    DropIndexesParticipant = "_shardsvrDropIndexesParticipant" (name) {
        command "command": Document,
    }
}

message! {
    /// Indexes are made by a client's `createIndexes`.
    CreateIndexesParticipant = "_shardsvrCreateIndexesParticipant" (name) {
        command "command": Option<Document>,
        /// Nothing is made: the shard says which indexes it has, and what it would reply if it has all that are asked for.
        only_list "onlyList": Flag,
        /// Nothing is made: builds of these indexes for this incarnation end.
        aborted "abortedUUID": Option<[u8; 16]>,
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
    /// What a shard has of a collection becomes capped, under another UUID.
    ConvertParticipant = "_shardsvrConvertToCappedParticipant" (name) {
        size "size": i64,
        uuid "collectionUUID": [u8; 16],
        new "newUUID": [u8; 16],
        from_migrate "fromMigrate": Flag,
    }
}

message! {
    /// The catalog learns that a collection has another UUID, where it is.
    CommitConversion = "_configsvrCommitConvertToCapped" (ns) {
        uuid "collectionUUID": [u8; 16],
        new "newUUID": [u8; 16],
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
    /// A database exists from here. The reply is `{databaseVersion}`.
    CreateDatabase = "_configsvrCreateDatabase" (db) {
        /// The least loaded shard where it is missing.
        primary "primaryShardId": Option<String>,
    }
}

part! {
    /// A chunk of a collection that has none yet.
    FirstChunk {
        min "min": Document,
        max "max": Document,
        shard "shard": String,
    }
}

message! {
    /// The catalog learns of a collection.
    CommitCreateCollection = "_configsvrCommitCreateCollection" (ns) {
        uuid "collectionUUID": [u8; 16],
        key "key": Document,
        unique "unique": Flag,
        collation "defaultCollation": Option<Document>,
        /// Where its documents are the buckets of a time series.
        series "timeseriesFields": Option<Document>,
        /// It is tracked without being sharded, and has one chunk.
        unsplittable "unsplittable": Flag,
        /// In the order of their bounds, without gaps.
        chunks "chunks": Vec<FirstChunk>,
    }
}

message! {
    /// A collection goes on under another name.
    CommitRename = "_configsvrCommitRenameCollection" (ns) {
        to "to": String,
        source "sourceUUID": [u8; 16],
        /// What has the other name now, and goes.
        replaced "targetUUID": Option<[u8; 16]>,
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

part! {
    /// A collection as its shard has it.
    Definition {
        ns "ns": String,
        uuid "uuid": [u8; 16],
        options "options": Document,
        indexes "indexes": Vec<Document>,
    }
}

message! {
    /// What a database has that is not tracked is copied to its primary to come.
    CloneCatalogData = "_shardsvrCloneCatalogData" (db) {
        /// Where the donor is reached.
        from "from": String,
        collections "collections": Vec<Definition>,
        /// These are made, empty, where they are not there.
        tracked "tracked": Vec<Definition>,
    }
}

message! {
    /// What have sessions done to a collection?
    SessionHistory = "_shardsvrGetSessionHistory" (ns) {
        /// The last statement of the reply before.
        after "after": Option<Document>,
    }
}

message! {
    /// Do the indexes of a shard go with a key?
    ValidateShardKey = "_shardsvrValidateShardKeyCandidate" (ns) {
        key "key": Document,
        unique "unique": Flag,
        enforced "enforceUniquenessCheck": Option<bool>,
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
    /// A time series gets other buckets.
    CommitBucketing = "_configsvrCollMod" (ns) {
        uuid "collectionUUID": [u8; 16],
        series "timeseriesFields": Document,
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

#[cfg(test)]
impl CommitCreateCollection {
    /// A collection sharded by x with one chunk, on `shard`.
    pub(crate) fn whole(ns: &str, uuid: [u8; 16], shard: &str) -> CommitCreateCollection {
        let bound = |value| document::doc! { "x": value };
        let (min, max) = (bound(document::Value::MinKey), bound(document::Value::MaxKey));
        CommitCreateCollection {
            ns: ns.to_string(),
            uuid,
            key: document::doc! { "x": 1 },
            unique: Flag(false),
            collation: None,
            series: None,
            unsplittable: Flag(false),
            chunks: vec![FirstChunk { min, max, shard: shard.to_string() }],
        }
    }
}
