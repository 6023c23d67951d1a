//! The shapes of the commands that routers alone have. What is `Any` here is checked by who uses it.

use node::shape::Kind::{Any, Bool, Number, Object, Objects, SafeBool, String, Uuid};
use node::shape::{Shape, field, required};

pub(super) const SHARD_COLLECTION: Shape = Shape {
    name: "shardCollection",
    generic: true,
    fields: &[
        field("key", Object),
        field("unique", Any),
        field("numInitialChunks", Any),
        field("presplitHashedZones", Any),
        field("implicitlyCreateIndex", Any),
        field("skipHashedShardKeyIndexCreation", Any),
        field("enforceUniquenessCheck", Any),
        field("collation", Any),
        field("timeseries", Any),
        field("collectionUUID", Any),
        field("unsplittable", Any),
        field("dataShard", Any),
    ],
};

pub(super) const MOVE_RANGE: Shape = Shape {
    name: "moveRange",
    generic: true,
    fields: &[
        required("toShard", String),
        field("min", Object),
        field("max", Object),
        field("waitForDelete", SafeBool),
        field("forceJumbo", SafeBool),
        field("secondaryThrottle", SafeBool),
        field("_secondaryThrottle", SafeBool),
    ],
};

pub(super) const CONFIGURE_COLLECTION_BALANCING: Shape = Shape {
    name: "configureCollectionBalancing",
    generic: true,
    fields: &[
        required("configureCollectionBalancing", String),
        field("chunkSize", Number),
        field("defragmentCollection", Bool),
        field("enableAutoMerger", Bool),
    ],
};

pub(super) const BALANCER_COLLECTION_STATUS: Shape = Shape {
    name: "balancerCollectionStatus",
    generic: true,
    fields: &[required("balancerCollectionStatus", String)],
};

pub(super) const MERGE_ALL_CHUNKS: Shape = Shape {
    name: "mergeAllChunksOnShard",
    generic: true,
    fields: &[
        required("shard", String),
        field("maxNumberOfChunksToMerge", Number),
        field("maxTimeProcessingChunksMS", Number),
    ],
};

pub(super) const ADD_SHARD_TO_ZONE: Shape = Shape {
    name: "addShardToZone",
    generic: true,
    fields: &[required("addShardToZone", String), required("zone", String)],
};
pub(super) const REMOVE_SHARD_FROM_ZONE: Shape = Shape {
    name: "removeShardFromZone",
    generic: true,
    fields: &[required("removeShardFromZone", String), required("zone", String)],
};
/// A zone of null removes the range; that it is there at all is checked by who uses it.
pub(super) const UPDATE_ZONE_KEY_RANGE: Shape = Shape {
    name: "updateZoneKeyRange",
    generic: true,
    fields: &[required("min", Object), required("max", Object), field("zone", String)],
};

pub(super) const REMOVE_SHARD: Shape =
    Shape { name: "removeShard", generic: true, fields: &[required("removeShard", String)] };
pub(super) const START_SHARD_DRAINING: Shape =
    Shape { name: "startShardDraining", generic: true, fields: &[required("startShardDraining", String)] };
pub(super) const STOP_SHARD_DRAINING: Shape =
    Shape { name: "stopShardDraining", generic: true, fields: &[required("stopShardDraining", String)] };
pub(super) const SHARD_DRAINING_STATUS: Shape =
    Shape { name: "shardDrainingStatus", generic: true, fields: &[required("shardDrainingStatus", String)] };
pub(super) const COMMIT_SHARD_REMOVAL: Shape =
    Shape { name: "commitShardRemoval", generic: true, fields: &[required("commitShardRemoval", String)] };

pub(super) const REFINE_SHARD_KEY: Shape = Shape {
    name: "refineCollectionShardKey",
    generic: true,
    fields: &[
        required("key", Object),
        field("collectionUUID", Uuid),
        field("enforceUniquenessCheck", SafeBool),
    ],
};

pub(super) const RESHARD_COLLECTION: Shape = Shape {
    name: "reshardCollection",
    generic: true,
    fields: &[
        required("key", Object),
        field("unique", SafeBool),
        field("numInitialChunks", Number),
        field("numSamplesPerChunk", Number),
        field("collation", Object),
        field("zones", Objects),
        field("_presetReshardedChunks", Objects),
        field("collectionUUID", Uuid),
        field("shardDistribution", Objects),
        field("forceRedistribution", SafeBool),
        field("reshardingUUID", Uuid),
        field("relaxed", SafeBool),
    ],
};

pub(super) const MOVE_COLLECTION: Shape =
    Shape { name: "moveCollection", generic: true, fields: &[required("toShard", String)] };

pub(super) const UNSHARD_COLLECTION: Shape =
    Shape { name: "unshardCollection", generic: true, fields: &[field("toShard", String)] };

pub(super) const ABORT_RESHARD_COLLECTION: Shape = plain("abortReshardCollection");
pub(super) const ABORT_MOVE_COLLECTION: Shape = plain("abortMoveCollection");
pub(super) const ABORT_UNSHARD_COLLECTION: Shape = plain("abortUnshardCollection");
pub(super) const COMMIT_RESHARD_COLLECTION: Shape = plain("commitReshardCollection");
pub(super) const CLEANUP_RESHARD_COLLECTION: Shape = plain("cleanupReshardCollection");
pub(super) const UNTRACK_COLLECTION: Shape = plain("untrackUnshardedCollection");

pub(super) const RESET_PLACEMENT_HISTORY: Shape = plain("resetPlacementHistory");
pub(super) const REPAIR_CHUNKS_HISTORY: Shape = Shape {
    name: "repairShardedCollectionChunksHistory",
    generic: true,
    fields: &[field("force", SafeBool)],
};

/// A command with nothing but its argument.
const fn plain(name: &'static str) -> Shape {
    Shape { name, generic: true, fields: &[] }
}

pub(super) const CREATE_UNSPLITTABLE: Shape = Shape {
    name: "createUnsplittableCollection",
    generic: true,
    fields: &[field("dataShard", String), field("collectionUUID", Uuid)],
};
