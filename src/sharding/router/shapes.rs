//! The shapes of the commands that routers alone have. What is `Any` here is checked by who uses it.

use node::shape::Kind::{Any, Object, SafeBool, Uuid};
use node::shape::{Shape, field, required};

pub const SHARD_COLLECTION: Shape = Shape {
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

pub const MOVE_RANGE: Shape = Shape {
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

pub const CONFIGURE_COLLECTION_BALANCING: Shape = Shape {
    name: "configureCollectionBalancing",
    generic: true,
    fields: &[field("chunkSize", Any), field("defragmentCollection", Any), field("enableAutoMerger", Any)],
};

pub const REFINE_SHARD_KEY: Shape = Shape {
    name: "refineCollectionShardKey",
    generic: true,
    fields: &[
        required("key", Object),
        field("collectionUUID", Uuid),
        field("enforceUniquenessCheck", SafeBool),
    ],
};
