//! What the balancer and the shards ask each other beside chunks and migrations.

use document::Document;

part! {
    /// A collection of which a shard is asked what it owns.
    CountedCollection {
        ns "ns": String,
        /// Of another incarnation nothing is owned.
        uuid "UUID": Option<[u8; 16]>,
    }
}

message! {
    /// How many bytes does the shard own of each collection, and hold in all?
    StatsForBalancing = "_shardsvrGetStatsForBalancing" {
        collections "collections": Vec<CountedCollection>,
        /// Bytes of one unit of the reply.
        scale "scaleFactor": Option<i64>,
    }
}

part! {
    /// A collection with a chunk size of its own.
    OwnChunkSize {
        ns "ns": String,
        bytes "maxChunkSizeBytes": i64,
    }
}

part! {
    /// The sizes that chunks are to have.
    ChunkSizes {
        usual_bytes "maxChunkSizeBytes": i64,
        own "collections": Vec<OwnChunkSize>,
    }
}

message! {
    /// Chunks are to be split by their shards as they grow, or no longer.
    SetAutoSplit = "_shardsvrSetAutoSplit" {
        /// `None`: no longer.
        sizes "sizes": Option<ChunkSizes>,
    }
}

message! {
    /// The chunk that was split off at the end of a growing key may go elsewhere.
    RebalanceChunk = "_configsvrRebalanceChunk" (ns) {
        min "min": Document,
    }
}
