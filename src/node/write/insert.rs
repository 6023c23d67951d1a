//! insert: documents in, in slices under one latch each.

use super::shapes;
use super::statement::*;
use super::unit::{Origin, WriteUnit};
use crate::session::Checkout;
use crate::{Node, Operation, Request};
use document::{Doc, DocBuf, DocWriter, Document, Result, Timestamp, ValueRef, bail, meter};
use runtime::Instant;
use std::borrow::Cow;
use std::time::Duration;

/// The longest that one slice of a batch keeps the latch.
const SLICE_TIME_MAX: Duration = Duration::from_millis(1);

/// Runs an `insert` command; answers the reply's members without `ok`.
///
/// # Errors
/// Those that end the whole command; a statement's own error goes into `writeErrors`.
pub async fn insert(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    check_writable(&ns)?;
    node.check_write_concern(op)?;
    shapes::INSERT.check_command(request.body, request.sequences)?;
    let documents: Vec<Doc<'_>> = request.documents("documents").collect();
    check_batch(request.body, documents.len())?;
    let slot = node.namespaces.slot(&ns);
    if let Err(e) = node.check_uuid(request.body, &slot) {
        return Outcome::refused(op, ordered(request.body), documents.len(), e)
            .map(|outcome| outcome.reply(false));
    }
    let series = crate::timeseries::named(node, op, &slot, request.body).await?;
    let flags = Flags {
        ordered: ordered(request.body),
        keep_empty_timestamps: request.body.get_bool("bypassEmptyTsReplacement").unwrap_or(false),
        bypass_validation: request.body.get("bypassDocumentValidation").is_some_and(|v| v.truthy()),
        from_migrate: false,
    };
    let checkout = node.sessions.check_out(node, op).await?;
    let (into, statement) = ((&*slot, series.as_ref()), |i| statement_id(op, i));
    let done = insert_into(node, op, into, &documents, flags, checkout.as_ref(), statement).await;
    done.map(|outcome| outcome.reply(false))
}

/// How documents are to be inserted.
#[derive(Clone, Copy)]
pub struct Flags {
    pub ordered: bool,
    pub keep_empty_timestamps: bool,
    pub bypass_validation: bool,
    /// Cloned by a migration: logged as such, and not a user's statement.
    pub from_migrate: bool,
}

/// Inserts documents in order, creating the collection when there is none.
pub async fn insert_documents(
    node: &Node,
    op: &Operation,
    slot: &crate::namespace::Slot,
    documents: &[Doc<'_>],
    flags: Flags,
) -> Result<Outcome> {
    let checkout = node.sessions.check_out(node, op).await?;
    insert_numbered(node, op, slot, documents, flags, checkout.as_ref(), |i| statement_id(op, i)).await
}

/// As [`insert_documents`], under a session that is checked out already; `statement` numbers the documents.
pub(super) async fn insert_numbered(
    node: &Node,
    op: &Operation,
    slot: &crate::namespace::Slot,
    documents: &[Doc<'_>],
    flags: Flags,
    checkout: Option<&Checkout>,
    statement: impl Fn(usize) -> i32,
) -> Result<Outcome> {
    let series = crate::timeseries::of(node, slot);
    insert_into(node, op, (slot, series.as_ref()), documents, flags, checkout, statement).await
}

/// The same into a collection of which is said whether it is a time series.
async fn insert_into(
    node: &Node,
    op: &Operation,
    (slot, series): (&crate::namespace::Slot, Option<&crate::timeseries::Series>),
    documents: &[Doc<'_>],
    flags: Flags,
    checkout: Option<&Checkout>,
    statement: impl Fn(usize) -> i32,
) -> Result<Outcome> {
    if let Some(series) = series {
        return crate::timeseries::insert::insert(node, op, series, documents, flags, checkout, statement)
            .await;
    }
    let mut outcome = Outcome::default();
    let (mut next, mut given) = (0, None);
    while next < documents.len() {
        op.check_interrupt()?;
        hold_slice(node, op, &slot.ns, documents[next]).await?;
        let from = next;
        let slice = node.write_waiting(op, &op.received, slot, |unit| {
            let started = Instant::now();
            while next < documents.len() {
                let index = next;
                next += 1;
                let stmt = statement(index);
                let done = match executed_before(checkout, stmt) {
                    Ok(Some(_)) => {
                        outcome.retried.push(stmt);
                        Ok(())
                    }
                    Ok(None) => insert_one(unit, documents[index], stmt, flags, &mut given),
                    Err(e) => Err(e),
                };
                match done {
                    Ok(()) => outcome.n += 1,
                    Err(e) if e.code == meter::OVERRUN || ends_command_of(op, &e) => {
                        // Where it waits for a transaction, or for its keys, it goes on from here.
                        next = index;
                        return Err(e);
                    }
                    Err(e) => {
                        outcome.fail(index, &e);
                        if stops(op, flags.ordered) {
                            next = documents.len();
                        }
                    }
                }
                if started.elapsed() > SLICE_TIME_MAX {
                    break;
                }
            }
            Ok(())
        });
        if let Err(e) = slice.await {
            // The versions are checked before anything of the slice runs: these statements were not executed.
            if !is_stale(&e) || op.transaction().is_some() {
                return Err(e);
            }
            outcome.fail(from, &e);
            if !flags.ordered {
                for index in from + 1..documents.len() {
                    outcome.fail(index, &e);
                }
            }
            break;
        }
        if next < documents.len() {
            tokio::task::yield_now().await;
        }
    }
    Ok(outcome)
}

/// The points at which tests hold an insert, before `next` and what follows it.
async fn hold_slice(node: &Node, op: &Operation, ns: &str, next: Doc<'_>) -> Result<()> {
    if let Some(held) = node.failpoints.hold(op, "hangDuringBatchInsert", ns) {
        held.await?;
        let here = |data: &Document| is_at(data, ns, next);
        node.failpoints.pause_while_set_with("hangAfterCollectionInserts", here).await;
    }
    Ok(())
}

/// Whether a point's data name this document of this collection, or any.
fn is_at(data: &Document, ns: &str, doc: Doc<'_>) -> bool {
    let wanted = data.get("first_id");
    let found = doc.get("_id").map(|id| id.to_value());
    crate::failpoints::concerns(data, ns) && wanted.is_none_or(|id| found.as_ref() == Some(id))
}

/// `given` is the document with the `_id` that it was given, where it is to be inserted again.
fn insert_one(
    unit: &mut WriteUnit<'_>,
    doc: Doc<'_>,
    stmt: i32,
    flags: Flags,
    given: &mut Option<DocBuf>,
) -> Result<()> {
    let node = unit.node;
    node.failpoints.fail_if_set("failAllInserts")?;
    let point = "failCollectionInserts";
    if node.failpoints.should_with(point, |data| is_at(data, &unit.slot.ns, doc)).is_some() {
        bail!(
            FAIL_POINT_ENABLED,
            "Failpoint ({point}) has been enabled, so rejecting insertion of a document"
        );
    }
    let doc = match given.take() {
        Some(again) => Stored::Changed(again),
        None => normalized(node, doc, flags.keep_empty_timestamps)?,
    };
    let done = insert_stored(unit, doc.doc(), stmt, flags);
    if let (Err(e), Stored::Changed(doc)) = (&done, doc)
        && e.code == meter::OVERRUN
    {
        *given = Some(doc);
    }
    done
}

fn insert_stored(unit: &mut WriteUnit<'_>, doc: Doc<'_>, stmt: i32, flags: Flags) -> Result<()> {
    if unit.state.view.is_some() {
        bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Namespace {} is a view, not a collection", unit.slot.ns);
    }
    unit.check_room()?;
    if unit.collection().is_none() {
        unit.create_implicitly()?;
    }
    if !flags.bypass_validation {
        unit.check_validator(doc)?;
    }
    let origin = Origin { statement: Some(stmt), from_migrate: flags.from_migrate, ..Origin::default() };
    unit.insert(doc, origin)?;
    unit.trim_capped()
}

/// A document as it will be stored: borrowed when it needs no change.
pub enum Stored<'a> {
    As(Doc<'a>),
    Changed(DocBuf),
}
impl Stored<'_> {
    pub fn doc(&self) -> Doc<'_> {
        match self {
            Stored::As(d) => *d,
            Stored::Changed(d) => d.doc(),
        }
    }
}

/// Puts `_id` first (making one where missing) and fills empty top-level timestamps; refuses what cannot be stored.
pub fn normalized<'a>(node: &Node, doc: Doc<'a>, keep_empty_timestamps: bool) -> Result<Stored<'a>> {
    if doc.bytes().len() > DOCUMENT_BYTES_MAX {
        bail!(
            BAD_VALUE,
            "object to insert too large. size in bytes: {}, max size: {DOCUMENT_BYTES_MAX}",
            doc.bytes().len()
        );
    }
    let mut id_at = None;
    let mut empty_timestamp = false;
    for (at, e) in doc.iter().enumerate() {
        if e.name_bytes() == b"_id" && id_at.is_none() {
            id_at = Some(at);
            check_id(e.value())?;
        } else if e.tag() == 0x11 && e.value_bytes() == [0; 8] {
            empty_timestamp |= !keep_empty_timestamps;
        }
    }
    if id_at == Some(0) && !empty_timestamp {
        return Ok(Stored::As(doc));
    }
    let now = || Timestamp::from_u64(node.log.reserve_ts());
    Ok(Stored::Changed(DocWriter::build(|w| {
        match doc.element("_id") {
            Some(id) => w.element(&id),
            None => w.object_id("_id", node.new_object_id()),
        }
        let mut id_seen = false;
        for e in doc.iter() {
            if e.name_bytes() == b"_id" && !id_seen {
                id_seen = true;
            } else if empty_timestamp && e.tag() == 0x11 && e.value_bytes() == [0; 8] {
                w.timestamp(e.name(), now());
            } else {
                w.element(&e);
            }
        }
    })))
}

/// Refuses values that cannot be an `_id`.
pub fn check_id(id: ValueRef<'_>) -> Result<()> {
    match id {
        ValueRef::Array(_) | ValueRef::Regex(..) | ValueRef::Undefined => {
            bail!(INVALID_ID_FIELD, "The '_id' value cannot be of type {}", id.type_name())
        }
        ValueRef::Document(d) => match d.iter().find(|e| e.name_bytes().first() == Some(&b'$')) {
            Some(e) if !matches!(e.name(), "$ref" | "$id" | "$db") => {
                let name: Cow<'_, str> = e.name().into();
                bail!(
                    DOLLAR_PREFIXED_FIELD_NAME,
                    "_id fields may not contain '$'-prefixed fields: {name} is not valid for storage."
                )
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}
