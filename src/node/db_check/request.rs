//! What a `dbCheck` asks for.

use super::batch::{Bounds, LATCH_MAX, Limits};
use crate::operation::WriteConcern;
use crate::shape::Kind::{Number, Object, OneOf, String as Text};
use crate::shape::{Shape, field};
use crate::{Node, Request};
use document::{Document, Result, Value, ValueRef, bail, doc};
use std::time::Duration;

const MODES: &[&str] = &["dataConsistency", "dataConsistencyAndMissingIndexKeysCheck", "extraIndexKeysCheck"];

pub const SHAPE: Shape = Shape {
    name: "dbCheck",
    generic: true,
    fields: &[
        field("start", Object),
        field("end", Object),
        field("maxCount", Number),
        field("maxSize", Number),
        field("maxDocsPerBatch", Number),
        field("maxBatchTimeMillis", Number),
        field("validateMode", OneOf(MODES)),
        field("secondaryIndex", Text),
        field("batchWriteConcern", Object),
    ],
};

const DOCUMENTS_PER_BATCH: i64 = 5000;
const BATCH_TIME_MS: i64 = 1000;
/// Bytes of the documents of a batch; one alone may have more.
const BATCH_BYTES_MAX: u64 = 20 << 20;

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    Documents,
    DocumentsAndMissingKeys,
    /// The entries of this index.
    ExtraIndexKeys(String),
}

impl Mode {
    pub fn name(&self) -> &'static str {
        match self {
            Mode::Documents => MODES[0],
            Mode::DocumentsAndMissingKeys => MODES[1],
            Mode::ExtraIndexKeys(_) => MODES[2],
        }
    }
}

pub struct Asked {
    /// One collection, or all of the database.
    pub namespaces: Vec<String>,
    pub bounds: Bounds,
    pub mode: Mode,
    pub write_concern: WriteConcern,
    documents_max: u64,
    bytes_max: u64,
    batch_documents: u64,
    batch_time: Duration,
}

impl Asked {
    /// Reads a request of the right shape.
    ///
    /// # Errors
    /// Those of the fields' values, and NamespaceNotFound (26).
    pub fn read(node: &Node, request: Request<'_>) -> Result<Asked> {
        let body = request.body;
        let namespaces = namespaces(node, request)?;
        let positive = |name: &str, usual: i64| match body
            .get_present(name)
            .and_then(crate::shape::to_long)
            .unwrap_or(usual)
        {
            n if n > 0 => Ok(n.unsigned_abs()),
            n => bail!(BAD_VALUE, "BSON field '{name}' value must be > 0, actual value '{n}'"),
        };
        let id = |name: &str, usual: Value| match body.get_document(name) {
            Some(d) => match (d.get("_id"), d.iter().count()) {
                (Some(id), 1) => Ok(id.to_value()),
                _ => bail!(BAD_VALUE, "the field '{name}' of dbCheck must be a document with one field, _id"),
            },
            None => Ok(usual),
        };
        let bounds =
            Bounds { from: id("start", Value::MinKey)?, after: false, to: id("end", Value::MaxKey)? };
        let time = positive("maxBatchTimeMillis", BATCH_TIME_MS)?;
        Ok(Asked {
            namespaces,
            bounds,
            mode: mode(request)?,
            write_concern: match body.get_document("batchWriteConcern") {
                Some(concern) => WriteConcern::parse(concern)?,
                None => WriteConcern::acknowledged(),
            },
            documents_max: positive("maxCount", i64::MAX)?,
            bytes_max: positive("maxSize", i64::MAX)?,
            batch_documents: positive("maxDocsPerBatch", DOCUMENTS_PER_BATCH)?,
            batch_time: Duration::from_millis(time).min(LATCH_MAX),
        })
    }

    /// What the next batch may hold, after so many documents and bytes.
    pub fn limits(&self, documents: u64, bytes: u64) -> Limits {
        Limits {
            documents: self.batch_documents.min(self.documents_max.saturating_sub(documents)),
            bytes: BATCH_BYTES_MAX.min(self.bytes_max.saturating_sub(bytes)),
            time: Some(self.batch_time),
        }
    }
    /// Whether the whole check has looked at as much as it may.
    pub fn has_reached(&self, documents: u64, bytes: u64) -> bool {
        documents >= self.documents_max || bytes >= self.bytes_max
    }
    /// The parameters as the health log shows them.
    pub fn shown(&self) -> Document {
        let mut d = doc! { "validateMode": self.mode.name() };
        match &self.mode {
            Mode::ExtraIndexKeys(index) => d.push("secondaryIndex", index.as_str()),
            _ => {
                d.push("batchStart", doc! { "_id": self.bounds.from.clone() });
                d.push("batchEnd", doc! { "_id": self.bounds.to.clone() });
                d.push("maxCount", i64::try_from(self.documents_max).unwrap_or(i64::MAX));
                d.push("maxSize", i64::try_from(self.bytes_max).unwrap_or(i64::MAX));
                d.push("maxDocsPerBatch", self.batch_documents as i64);
            }
        }
        d
    }
}

fn mode(request: Request<'_>) -> Result<Mode> {
    let index = request.body.get_str("secondaryIndex");
    match (request.body.get_str("validateMode"), index) {
        (Some("extraIndexKeysCheck"), Some(index)) => Ok(Mode::ExtraIndexKeys(index.to_string())),
        (Some("extraIndexKeysCheck"), None) => {
            bail!(
                BAD_VALUE,
                "When validateMode is set to extraIndexKeysCheck, the secondaryIndex field must be set"
            )
        }
        (_, Some(_)) => bail!(
            BAD_VALUE,
            "When validateMode is set to dataConsistency or dataConsistencyAndMissingIndexKeysCheck, the secondaryIndex field cannot be set"
        ),
        (Some("dataConsistencyAndMissingIndexKeysCheck"), None) => Ok(Mode::DocumentsAndMissingKeys),
        _ => Ok(Mode::Documents),
    }
}

fn namespaces(node: &Node, request: Request<'_>) -> Result<Vec<String>> {
    let db = request.db;
    match request.argument() {
        Some(ValueRef::String(_)) => {
            let ns = request.namespace()?;
            if db == "local" || ns.ends_with(".system.profile") {
                bail!(40619, "Cannot run dbCheck on {ns} because it is not replicated");
            }
            if node.namespaces.slot(&ns).read_unchecked().collection.is_none() {
                bail!(NAMESPACE_NOT_FOUND, "Collection {ns} not found");
            }
            Ok(vec![ns])
        }
        Some(v) if v.is_number() => {
            if db == "local" {
                bail!(INVALID_NAMESPACE, "Cannot run dbCheck on local database");
            }
            let slots = node.namespaces.of_database(db);
            let held = slots.iter().filter(|slot| slot.read_unchecked().collection.is_some());
            Ok(held.map(|slot| slot.ns.to_string()).filter(|ns| !ns.ends_with(".system.profile")).collect())
        }
        other => bail!(
            TYPE_MISMATCH,
            "BSON field 'dbCheck' is the wrong type '{}', expected types '[string, int]'",
            other.map_or("missing", |v| v.type_name())
        ),
    }
}
