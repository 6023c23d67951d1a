//! The shapes of the write commands, field by field.

use crate::request::Request;
use crate::shape::Kind::*;
use crate::shape::{Field, Shape, field, required};
use document::{Doc, Result};

pub const INSERT: Shape = Shape {
    name: "insert",
    generic: true,
    fields: &[
        required("documents", Objects),
        field("ordered", Bool),
        field("bypassDocumentValidation", SafeBool),
        field("bypassEmptyTsReplacement", Bool),
        field("collectionUUID", Uuid),
        field("encryptionInformation", Object),
        field("isTimeseriesNamespace", Bool),
    ],
};

pub const UPDATE: Shape = Shape {
    name: "update",
    generic: true,
    fields: &[
        required("updates", Objects),
        field("ordered", Bool),
        field("bypassDocumentValidation", SafeBool),
        field("bypassEmptyTsReplacement", Bool),
        field("let", Object),
        field("runtimeConstants", Object),
        field("collectionUUID", Uuid),
        field("encryptionInformation", Object),
        field("isTimeseriesNamespace", Bool),
    ],
};

pub const UPDATE_STATEMENT: Shape = Shape {
    name: "update.updates",
    generic: false,
    fields: &[
        required("q", Object),
        required("u", Update),
        field("c", Object),
        field("upsert", SafeBool),
        field("multi", SafeBool),
        field("collation", Object),
        field("arrayFilters", Objects),
        field("hint", Hint),
        field("sort", Object),
        field("upsertSupplied", SafeBool),
        field("sampleId", Uuid),
        field("allowShardKeyUpdatesWithoutFullShardKeyInQuery", Bool),
    ],
};

pub const DELETE: Shape = Shape {
    name: "delete",
    generic: true,
    fields: &[
        required("deletes", Objects),
        field("ordered", Bool),
        field("bypassDocumentValidation", SafeBool),
        field("let", Object),
        field("runtimeConstants", Object),
        field("collectionUUID", Uuid),
        field("encryptionInformation", Object),
        field("isTimeseriesNamespace", Bool),
    ],
};

pub const DELETE_STATEMENT: Shape = Shape {
    name: "delete.deletes",
    generic: false,
    fields: &[
        required("q", Object),
        required("limit", Limit),
        field("collation", Object),
        field("hint", Hint),
        field("sampleId", Uuid),
    ],
};

pub const FIND_AND_MODIFY: Shape = Shape {
    name: "findAndModify",
    generic: true,
    fields: &[
        field("query", Object),
        field("sort", Object),
        field("remove", SafeBool),
        field("update", Update),
        field("new", SafeBool),
        field("fields", Object),
        field("projection", Object),
        field("upsert", SafeBool),
        field("bypassDocumentValidation", SafeBool),
        field("bypassEmptyTsReplacement", Bool),
        field("arrayFilters", Objects),
        field("hint", Hint),
        field("collation", Object),
        field("let", Object),
        field("runtimeConstants", Object),
        field("collectionUUID", Uuid),
        field("encryptionInformation", Object),
        field("sampleId", Uuid),
        field("isTimeseriesNamespace", Bool),
    ],
};

pub const BULK_WRITE: Shape = Shape {
    name: "bulkWrite",
    generic: true,
    fields: &[
        required("ops", Objects),
        required("nsInfo", Objects),
        field("errorsOnly", Bool),
        field("ordered", Bool),
        field("bypassDocumentValidation", SafeBool),
        field("bypassEmptyTsReplacement", Bool),
        field("let", Object),
        field("cursor", Cursor),
    ],
};

pub const BULK_NAMESPACE: Shape = Shape {
    name: "bulkWrite.nsInfo",
    generic: false,
    fields: &[
        required("ns", String),
        field("collectionUUID", Uuid),
        field("encryptionInformation", Object),
        field("shardVersion", Any),
        field("databaseVersion", Any),
        field("isTimeseriesNamespace", Bool),
    ],
};

pub const BULK_INSERT: Shape = Shape {
    name: "bulkWrite.BulkWriteInsertOp",
    generic: false,
    fields: &[required("insert", Number), required("document", Object)],
};

pub const BULK_UPDATE: Shape = Shape {
    name: "bulkWrite.BulkWriteUpdateOp",
    generic: false,
    fields: &[
        required("update", Number),
        required("filter", Object),
        required("updateMods", Update),
        field("multi", Bool),
        field("upsert", Bool),
        field("arrayFilters", Objects),
        field("hint", Hint),
        field("collation", Object),
        field("constants", Object),
        field("sort", Object),
        field("upsertSupplied", SafeBool),
        field("sampleId", Uuid),
    ],
};

pub const BULK_DELETE: Shape = Shape {
    name: "bulkWrite.BulkWriteDeleteOp",
    generic: false,
    fields: &[
        required("delete", Number),
        required("filter", Object),
        field("multi", Bool),
        field("hint", Hint),
        field("collation", Object),
        field("sampleId", Uuid),
    ],
};

/// Checks a command and each of its statements, before the first of them runs.
pub fn check_statements(request: Request<'_>, command: &Shape, list: &str, statement: &Shape) -> Result<()> {
    command.check_command(request.body, request.sequences)?;
    for raw in request.documents(list) {
        statement.check(raw)?;
        check_collation(raw)?;
    }
    Ok(())
}

/// Refuses a bad collation before the first statement runs.
pub fn check_collation(raw: Doc<'_>) -> Result<()> {
    match raw.get_document("collation") {
        Some(spec) if !spec.is_empty() => document::Collation::parse(spec).map(drop),
        _ => Ok(()),
    }
}

const _: () = {
    const fn small(fields: &[Field]) -> bool {
        fields.len() <= 64
    }
    assert!(small(UPDATE_STATEMENT.fields) && small(FIND_AND_MODIFY.fields));
};
