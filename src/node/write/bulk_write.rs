//! bulkWrite: inserts, updates and deletes in several collections by one command.
//!
//! ```text
//! {bulkWrite: 1, ops: [{insert: 0, document} | {update: 0, filter, updateMods, ..} | {delete: 0, filter, ..}, ..],
//!  nsInfo: [{ns}, ..], ordered, errorsOnly, let, cursor: {batchSize}}
//! ```
//! The number in an operation is the place of its namespace in `nsInfo`. Each operation is a statement of its own; the
//! reply is a cursor over one document for each, in order, and sums.

use super::delete::{self, DeleteStatement};
use super::insert::{Flags, insert_numbered};
use super::shapes;
use super::statement::*;
use super::update;
use crate::namespace::Slot;
use crate::session::Checkout;
use crate::timeseries::{self, Series};
use crate::{Node, Operation, Request};
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Value, ValueRef, bail, doc, err};
use std::sync::Arc;

/// Runs a `bulkWrite` command; answers the reply's members without `ok`.
///
/// # Errors
/// Those that end the whole command; an operation's own error stands in its document.
pub async fn bulk_write(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    node.check_write_concern(op)?;
    shapes::BULK_WRITE.check_command(request.body, request.sequences)?;
    let namespaces = namespaces(node, request)?;
    let operations: Vec<Doc<'_>> = request.documents("ops").collect();
    check_batch(request.body, operations.len())?;
    for raw in &operations {
        operation_namespace(*raw, namespaces.len())?;
    }
    let bulk = Bulk {
        node,
        op,
        variables: crate::read::command_variables(node, request.body)?,
        flags: Flags {
            ordered: true,
            keep_empty_timestamps: request.body.get_bool("bypassEmptyTsReplacement").unwrap_or(false),
            bypass_validation: request.body.get("bypassDocumentValidation").is_some_and(|v| v.truthy()),
            from_migrate: false,
        },
    };
    let errors_only = request.body.get("errorsOnly").is_some_and(|v| v.truthy());
    let checkout = node.sessions.check_out(node, op).await?;
    let mut sums = Sums::default();
    for (index, raw) in operations.iter().enumerate() {
        between_statements(op, index).await?;
        let done = bulk.run(&namespaces, *raw, index, checkout.as_ref(), &mut sums).await;
        match done {
            Ok(item) if errors_only => drop(item),
            Ok(item) => sums.items.push(item),
            Err(e) if ends_command_of(op, &e) => return Err(e),
            Err(e) => {
                sums.errors += 1;
                let shown = sums.messages.take(&e);
                sums.items.push(failed(index, &e, shown));
                if stops(op, ordered(request.body)) {
                    break;
                }
            }
        }
    }
    Ok(sums.reply())
}

struct Bulk<'a> {
    node: &'a Node,
    op: &'a Operation,
    variables: Document,
    flags: Flags,
}

#[derive(Default)]
struct Sums {
    items: Vec<Document>,
    messages: Messages,
    errors: i32,
    inserted: i64,
    matched: i64,
    modified: i64,
    upserted: i64,
    deleted: i64,
    retried: Vec<i32>,
}

impl Sums {
    fn reply(self) -> Document {
        let items: Vec<Value> = self.items.into_iter().map(Value::from).collect();
        let mut reply = doc! {
            "cursor": { "id": 0i64, "firstBatch": Value::Array(items), "ns": "admin.$cmd.bulkWrite" },
            "nErrors": self.errors, "nInserted": self.inserted as i32, "nMatched": self.matched as i32,
            "nModified": self.modified as i32, "nUpserted": self.upserted as i32, "nDeleted": self.deleted as i32,
        };
        if !self.retried.is_empty() {
            let retried = self.retried.into_iter().map(Value::Int32).collect();
            reply.push("retriedStmtIds", Value::Array(retried));
        }
        reply
    }
}

/// The slots of `nsInfo`, in its order.
fn namespaces(node: &Node, request: Request<'_>) -> Result<Vec<Target>> {
    let mut slots = Vec::new();
    for info in request.documents("nsInfo") {
        shapes::BULK_NAMESPACE.check(info)?;
        let ns = info.get_str("ns").unwrap_or_default();
        let (db, collection) = storage::split_namespace(ns);
        crate::request::check_collection_name(db, collection)?;
        check_writable(ns)?;
        let slot = node.namespaces.slot(ns);
        let refused = node.check_uuid(info, &slot).err();
        let series = timeseries::of(node, &slot);
        slots.push(Target { slot, series, refused });
    }
    Ok(slots)
}

/// One entry of `nsInfo`. That it means another collection of this name is an error of each operation on it.
struct Target {
    slot: Arc<Slot>,
    /// What it is, if it is a time series.
    series: Option<Series>,
    refused: Option<Error>,
}

/// The place in `nsInfo` of the namespace that an operation is on.
///
/// # Errors
/// Those of an operation of an unknown kind or shape; BadValue for a namespace that is not in `nsInfo`.
pub fn operation_namespace(raw: Doc<'_>, namespaces: usize) -> Result<usize> {
    let first = raw.iter().next();
    let kind = first.as_ref().map_or("", |e| e.name());
    let shape = match kind {
        "insert" => &shapes::BULK_INSERT,
        "update" => &shapes::BULK_UPDATE,
        "delete" => &shapes::BULK_DELETE,
        "" => bail!(FAILED_TO_PARSE, "BulkWriteOperation must have at least one field"),
        other => bail!(IDL_UNKNOWN_FIELD, "BSON field 'bulkWrite.ops.{other}' is an unknown field."),
    };
    shape.check(raw)?;
    shapes::check_collation(raw)?;
    match first.and_then(|e| namespace_index(e.value())) {
        Some(n) if n < namespaces => Ok(n),
        _ => bail!(
            BAD_VALUE,
            "BulkWrite ops entry {} has an invalid nsInfo index.",
            document::shell::document(&raw.to_document())
        ),
    }
}

/// The place in `nsInfo` that an operation names; a fraction is cut.
fn namespace_index(v: ValueRef<'_>) -> Option<usize> {
    usize::try_from(crate::shape::to_long(v)?).ok()
}

fn failed(index: usize, error: &Error, message: &str) -> Document {
    let mut item = doc! { "ok": 0.0, "idx": index as i32, "code": error.code, "errmsg": message };
    error_details(error, &mut item);
    item.push("n", 0);
    item
}

impl Bulk<'_> {
    async fn run(
        &self,
        namespaces: &[Target],
        raw: Doc<'_>,
        index: usize,
        checkout: Option<&Checkout>,
        sums: &mut Sums,
    ) -> Result<Document> {
        let Some(first) = raw.iter().next() else { bail!(FAILED_TO_PARSE, "an empty operation") };
        // Both were checked before the first operation ran.
        let slot = namespace_index(first.value()).and_then(|n| namespaces.get(n));
        let target = slot.ok_or_else(|| err!(BAD_VALUE, "no such nsInfo"))?;
        if let Some(error) = &target.refused {
            return Err(error.clone());
        }
        let stmt = statement_id(self.op, index);
        match first.name() {
            "insert" => self.insert(&target.slot, raw, index, stmt, checkout, sums).await,
            "update" => self.update(target, raw, index, stmt, checkout, sums).await,
            _ => self.delete(&target.slot, raw, index, stmt, checkout, sums).await,
        }
    }

    async fn insert(
        &self,
        slot: &Slot,
        raw: Doc<'_>,
        index: usize,
        stmt: i32,
        checkout: Option<&Checkout>,
        sums: &mut Sums,
    ) -> Result<Document> {
        let Some(document) = raw.get_document("document") else {
            bail!(IDL_FAILED_TO_PARSE, "BSON field 'bulkWrite.ops.document' is missing but a required field")
        };
        let outcome =
            insert_numbered(self.node, self.op, slot, &[document], self.flags, checkout, |_| stmt).await?;
        if let Some(error) = outcome.first_error {
            return Err(error);
        }
        sums.retried.extend(outcome.retried);
        sums.inserted += 1;
        Ok(doc! { "ok": 1.0, "idx": index as i32, "n": 1 })
    }

    async fn update(
        &self,
        Target { slot, series, .. }: &Target,
        raw: Doc<'_>,
        index: usize,
        stmt: i32,
        checkout: Option<&Checkout>,
        sums: &mut Sums,
    ) -> Result<Document> {
        let done = match executed_before(checkout, stmt)? {
            Some(at) => {
                sums.retried.push(stmt);
                update::done_before(self.node, at, stmt)?
            }
            None => {
                let renamed = update_statement(raw);
                let (target, bypass) = ((&**slot, series.as_ref()), self.flags.bypass_validation);
                update::parse_and_run(
                    self.node,
                    self.op,
                    target,
                    renamed.doc(),
                    &self.variables,
                    stmt,
                    bypass,
                )
                .await?
            }
        };
        sums.matched += done.matched;
        sums.modified += done.modified;
        let n = done.matched + done.upserted.is_some() as i64;
        let mut item =
            doc! { "ok": 1.0, "idx": index as i32, "n": n as i32, "nModified": done.modified as i32 };
        if let Some(id) = done.upserted {
            sums.upserted += 1;
            item.push("upserted", doc! { "_id": id });
        }
        Ok(item)
    }

    async fn delete(
        &self,
        slot: &Slot,
        raw: Doc<'_>,
        index: usize,
        stmt: i32,
        checkout: Option<&Checkout>,
        sums: &mut Sums,
    ) -> Result<Document> {
        let n = match executed_before(checkout, stmt)? {
            Some(_) => {
                sums.retried.push(stmt);
                1
            }
            None => {
                let renamed = delete_statement(raw);
                let series = timeseries::of(self.node, slot);
                let s = DeleteStatement::parse(
                    self.node,
                    (slot, series.as_ref()),
                    renamed.doc(),
                    &self.variables,
                )?;
                if !s.one && self.op.is_retryable_write() {
                    bail!(INVALID_OPTIONS, "Cannot use retryable writes with limit=0");
                }
                delete::run(self.node, self.op, slot, &s, stmt).await?
            }
        };
        sums.deleted += n;
        Ok(doc! { "ok": 1.0, "idx": index as i32, "n": n as i32 })
    }
}

/// Fields of an operation with the names they have in a statement of the single command.
const UPDATE_NAMES: &[(&str, &str)] = &[
    ("filter", "q"),
    ("updateMods", "u"),
    ("multi", "multi"),
    ("upsert", "upsert"),
    ("arrayFilters", "arrayFilters"),
    ("hint", "hint"),
    ("collation", "collation"),
    ("constants", "c"),
    ("sort", "sort"),
    ("upsertSupplied", "upsertSupplied"),
    ("sampleId", "sampleId"),
];
const DELETE_NAMES: &[(&str, &str)] =
    &[("filter", "q"), ("hint", "hint"), ("collation", "collation"), ("sampleId", "sampleId")];

/// The statement of `update` that an operation means.
pub fn update_statement(raw: Doc<'_>) -> DocBuf {
    DocWriter::build(|w| renamed(w, raw, UPDATE_NAMES))
}

/// The statement of `delete` that an operation means.
pub fn delete_statement(raw: Doc<'_>) -> DocBuf {
    DocWriter::build(|w| {
        renamed(w, raw, DELETE_NAMES);
        w.i32("limit", if raw.get("multi").is_some_and(|v| v.truthy()) { 0 } else { 1 });
    })
}

fn renamed(w: &mut DocWriter<'_>, raw: Doc<'_>, names: &[(&str, &str)]) {
    for e in raw.iter().skip(1).filter(|e| e.value() != ValueRef::Null) {
        if let Some((_, name)) = names.iter().find(|(n, _)| *n == e.name()) {
            w.element_as(name, &e);
        }
    }
}
