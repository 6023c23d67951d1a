//! The shapes of the commands that routers alone have. What is `Any` here is checked by who uses it.

use node::shape::Kind::{Any, Number, Object, Objects, SafeBool, String, Uuid};
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
        field("toShard", Any),
        field("min", Object),
        field("max", Object),
        field("waitForDelete", Any),
        field("forceJumbo", Any),
        field("secondaryThrottle", Any),
        field("_secondaryThrottle", Any),
    ],
};

pub(super) const CONFIGURE_COLLECTION_BALANCING: Shape = Shape {
    name: "configureCollectionBalancing",
    generic: true,
    fields: &[field("chunkSize", Any), field("defragmentCollection", Any), field("enableAutoMerger", Any)],
};

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
