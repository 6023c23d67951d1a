//! The shapes of the catalog commands, field by field.

use crate::shape::Kind::*;
use crate::shape::{Shape, field, required};

const GRANULARITIES: &[&str] = &["seconds", "minutes", "hours"];
const VALIDATION_LEVELS: &[&str] = &["off", "strict", "moderate"];
const VALIDATION_ACTIONS: &[&str] = &["error", "warn", "errorAndLog"];

pub const CREATE: Shape = Shape {
    name: "create",
    generic: true,
    fields: &[
        field("capped", SafeBool),
        field("size", Number),
        field("max", Number),
        field("autoIndexId", SafeBool),
        field("idIndex", Object),
        field("storageEngine", Object),
        field("validator", Object),
        field("validationLevel", OneOf(VALIDATION_LEVELS)),
        field("validationAction", OneOf(VALIDATION_ACTIONS)),
        field("indexOptionDefaults", Object),
        field("viewOn", String),
        field("pipeline", Stages),
        field("collation", Object),
        field("temp", SafeBool),
        field("flags", Number),
        field("changeStreamPreAndPostImages", Object),
        field("expireAfterSeconds", Number),
        field("encryptedFields", Object),
        field("recordIdsReplicated", Bool),
        field("timeseries", Object),
        field("clusteredIndex", SafeBoolOrObject),
    ],
};

pub const PRE_AND_POST_IMAGES: Shape =
    Shape { name: "changeStreamPreAndPostImages", generic: false, fields: &[required("enabled", Bool)] };

pub const CLUSTERED_INDEX: Shape = Shape {
    name: "create.clusteredIndex",
    generic: false,
    fields: &[
        field("v", Number),
        required("key", Object),
        field("name", String),
        required("unique", SafeBool),
    ],
};

pub const TIMESERIES: Shape = Shape {
    name: "create.timeseries",
    generic: false,
    fields: &[
        required("timeField", String),
        field("metaField", String),
        field("granularity", OneOf(GRANULARITIES)),
        field("bucketMaxSpanSeconds", Number),
        field("bucketRoundingSeconds", Number),
    ],
};

/// What collMod may change of a time series.
pub const COLL_MOD_TIMESERIES: Shape = Shape {
    name: "collMod.timeseries",
    generic: false,
    fields: &[
        field("granularity", OneOf(GRANULARITIES)),
        field("bucketMaxSpanSeconds", Number),
        field("bucketRoundingSeconds", Number),
    ],
};

pub const COLL_MOD: Shape = Shape {
    name: "collMod",
    generic: true,
    fields: &[
        field("index", Object),
        field("validator", Object),
        field("validationLevel", OneOf(VALIDATION_LEVELS)),
        field("validationAction", OneOf(VALIDATION_ACTIONS)),
        field("viewOn", String),
        field("pipeline", Stages),
        field("changeStreamPreAndPostImages", Object),
        field("cappedSize", Number),
        field("cappedMax", Number),
        field("expireAfterSeconds", NumberOrString),
        field("timeseries", Object),
        field("dryRun", SafeBool),
        field("collectionUUID", Uuid),
        field("recordPreImages", Bool),
        field("noPadding", SafeBool),
        field("isTimeseriesNamespace", Bool),
    ],
};

pub const COLL_MOD_INDEX: Shape = Shape {
    name: "collMod.index",
    generic: false,
    fields: &[
        field("name", String),
        field("keyPattern", Object),
        field("expireAfterSeconds", Number),
        field("hidden", SafeBool),
        field("unique", SafeBool),
        field("prepareUnique", SafeBool),
        field("forceNonUnique", SafeBool),
    ],
};

pub const DROP: Shape = Shape { name: "drop", generic: true, fields: &[field("collectionUUID", Uuid)] };

pub const DROP_DATABASE: Shape =
    Shape { name: "dropDatabase", generic: true, fields: &[required("dropDatabase", One)] };

pub const RENAME: Shape = Shape {
    name: "renameCollection",
    generic: true,
    fields: &[
        required("renameCollection", String),
        required("to", String),
        field("dropTarget", Any),
        field("stayTemp", Bool),
        field("collectionUUID", Uuid),
    ],
};

pub const CREATE_INDEXES: Shape = Shape {
    name: "createIndexes",
    generic: true,
    fields: &[
        required("indexes", Objects),
        field("ignoreUnknownIndexOptions", SafeBool),
        field("commitQuorum", NumberOrString),
        field("collectionUUID", Uuid),
    ],
};

pub const SET_INDEX_COMMIT_QUORUM: Shape = Shape {
    name: "setIndexCommitQuorum",
    generic: true,
    fields: &[required("indexNames", Array), required("commitQuorum", NumberOrString)],
};

pub const DROP_INDEXES: Shape = Shape {
    name: "dropIndexes",
    generic: true,
    fields: &[required("index", Indexes), field("collectionUUID", Uuid)],
};

pub const COMPACT: Shape = Shape {
    name: "compact",
    generic: true,
    fields: &[field("force", Bool), field("freeSpaceTargetMB", Number), field("dryRun", Bool)],
};

pub const LIST_COLLECTIONS: Shape = Shape {
    name: "listCollections",
    generic: true,
    fields: &[
        field("filter", Object),
        field("nameOnly", Bool),
        field("authorizedCollections", Bool),
        field("cursor", Cursor),
        field("includePendingDrops", SafeBool),
        field("bucketUuid", Any),
    ],
};

pub const LIST_DATABASES: Shape = Shape {
    name: "listDatabases",
    generic: true,
    fields: &[field("filter", Object), field("nameOnly", SafeBool), field("authorizedDatabases", Bool)],
};

pub const LIST_INDEXES: Shape = Shape {
    name: "listIndexes",
    generic: true,
    fields: &[
        field("cursor", Cursor),
        field("includeBuildUUIDs", SafeBool),
        field("includeIndexBuildInfo", SafeBool),
        field("isTimeseriesNamespace", Bool),
    ],
};

pub const DB_STATS: Shape = Shape {
    name: "dbStats",
    generic: true,
    // The scale is checked where it is read.
    fields: &[field("scale", Any), field("freeStorage", SafeBool)],
};

pub const DATA_SIZE: Shape = Shape {
    name: "dataSize",
    generic: true,
    fields: &[
        required("dataSize", String),
        field("keyPattern", Object),
        field("min", Object),
        field("max", Object),
        field("estimate", SafeBool),
    ],
};
