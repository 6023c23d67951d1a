//! What the config server is asked to change of a collection's chunks, by shards and routers; and what shards are asked first.

use super::Flag;
use document::{Document, ObjectId, Timestamp};
use protocol::version::ShardVersion;

part! {
    /// A range of shard keys.
    Range {
        min "min": Document,
        max "max": Document,
    }
}

part! {
    /// The range that has moved.
    MigratedChunk {
        min "min": Document,
        max "max": Document,
        /// The version of the chunk that held it, as the donor knew it.
        known "lastmod": Option<ShardVersion>,
    }
}

message! {
    /// A range changes its owner.
    CommitChunkMigration = "_configsvrCommitChunkMigration" (ns) {
        from "fromShard": String,
        to "toShard": String,
        chunk "migratedChunk": MigratedChunk,
        /// The collection's version as the donor knew it.
        version "fromShardCollectionVersion": ShardVersion,
        /// The donor's clock: its last write to the range is not later.
        valid_after "validAfter": Option<Timestamp>,
        /// The balancer's note of the migration, unless it is a user's.
        note "note": Option<ObjectId>,
    }
}

message! {
    /// Afterwards no chunk with these bounds has that version or an older one.
    EnsureChunkVersion = "_configsvrEnsureChunkVersionIsGreaterThan" {
        min "minKey": Document,
        max "maxKey": Document,
        version "version": ShardVersion,
        ns "nss": Option<String>,
        uuid "collectionUUID": Option<[u8; 16]>,
    }
}

message! {
    /// A chunk is no longer taken to be too big to move.
    ClearJumboFlag = "_configsvrClearJumboFlag" (ns) {
        epoch "epoch": ObjectId,
        min "minKey": Document,
        max "maxKey": Document,
    }
}

message! {
    /// One chunk becomes several.
    CommitChunkSplit = "_configsvrCommitChunkSplit" (ns) {
        epoch "collEpoch": ObjectId,
        timestamp "timestamp": Option<Timestamp>,
        min "min": Document,
        max "max": Document,
        points "splitPoints": Vec<Document>,
        shard "shard": String,
        /// A shard wants it because the chunk has grown: refused once chunks are not to be split any more.
        auto_split "autoSplit": Flag,
    }
}

part! {
    /// A collection's UUID, as it stands in a merge.
    CollectionUuid {
        uuid "uuid": [u8; 16],
    }
}

message! {
    /// The chunks that fill a range become one.
    CommitChunksMerge = "_configsvrCommitChunksMerge" (ns) {
        shard "shard": String,
        collection "collUUID": Option<CollectionUuid>,
        range "chunkRange": Range,
        epoch "epoch": Option<ObjectId>,
        timestamp "timestamp": Option<Timestamp>,
        /// The balancer wants it, and not a user: refused once the balancer is stopped.
        of_balancer "ofBalancer": Flag,
    }
}

message! {
    /// Whatever may be merged on a shard is.
    CommitMergeAllChunks = "_configsvrCommitMergeAllChunksOnShard" (ns) {
        shard "shard": String,
        chunks_max "maxNumberOfChunksToMerge": Option<i64>,
        /// No further run of chunks is begun after so many milliseconds.
        millis_max "maxTimeProcessingChunksMS": Option<i64>,
        /// The balancer wants it, and not a user: refused once the balancer is stopped.
        of_balancer "ofBalancer": Flag,
    }
}

message! {
    /// Whether chunks may move.
    SetAllowMigrations = "_configsvrSetAllowMigrations" (ns) {
        allow "allowMigrations": bool,
        uuid "collectionUUID": Option<[u8; 16]>,
        /// The user's own flag, and not that of catalog changes.
        permit "permit": Flag,
    }
}

message! {
    /// Has a shard merge the chunks that fill a range.
    ShardMergeChunks = "_shardsvrMergeChunks" (ns) {
        bounds "bounds": Vec<Document>,
        epoch "epoch": Option<ObjectId>,
        timestamp "timestamp": Option<Timestamp>,
        /// The balancer wants it, and not a user: refused once the balancer is stopped.
        of_balancer "ofBalancer": Flag,
    }
}

message! {
    /// Has a shard merge whatever may be merged on it.
    ShardMergeAllChunks = "_shardsvrMergeAllChunksOnShard" (ns) {
        chunks_max "maxNumberOfChunksToMerge": Option<i64>,
        /// The balancer wants it, and not a user: refused once the balancer is stopped.
        of_balancer "ofBalancer": Flag,
    }
}

message! {
    /// Has a shard measure a range of its own.
    MeasureRange = "_shardsvrMeasureRange" (ns) {
        key "keyPattern": Document,
        min "min": Document,
        max "max": Document,
    }
}

message! {
    /// A user wants a range moved.
    RequestMove = "_configsvrMoveRange" (ns) {
        to "toShard": String,
        /// At least one bound is given.
        min "min": Option<Document>,
        max "max": Option<Document>,
        /// Moved even if it is too big.
        force_jumbo "forceJumbo": Flag,
        wait_for_delete "waitForDelete": Flag,
        /// The write concern that each batch of documents on the recipient waits for.
        throttle "secondaryThrottle": Option<Document>,
    }
}
