//! `applyOps`: entries of an oplog, given by a client.
//!
//! Each entry goes the way of the command that would do the same, as a commit of its own: there is no atomic mode, as in the
//! real server, which reads no `allowAtomic` either. What an entry has changed stays. An entry that fails ends the command; an
//! update that finds nothing does not, and fails the command when all are through.

use super::insert::normalized;
use super::statement::{check_changeable, refuse_view};
use super::unit::WriteUnit;
use super::update::check_size;
use crate::ddl::{collections, indexes, rename, shapes};
use crate::namespace::Slot;
use crate::request::{check_collection_name, check_database_name};
use crate::{Node, Operation, Origin, Request};
use document::{Doc, DocBuf, DocWriter, Document, Element, Error, Result, Value, ValueRef, bail, codes, doc};
use storage::RecordId;
use storage::entry::Op;
use storage::split_namespace;

/// Codes of options that the real server had once.
const PRE_CONDITION: i32 = 6711600;
const ALWAYS_UPSERT: i32 = 6711601;
const PARTIAL_TRANSACTION: i32 = 31056;
/// The code of an update in a form that is no longer known.
const UPDATE_VERSION: i32 = 4772600;
/// How deep applyOps may stand within applyOps.
const DEPTH_MAX: usize = 10;
/// The most items that an array within a document of the largest size can have.
const ITEMS_MAX: u64 = 2_100_000;

/// An entry whose fields have been looked at.
struct Entry<'a> {
    op: Op,
    ns: &'a str,
    o: Doc<'a>,
    raw: Doc<'a>,
    /// Those of a command that is an `applyOps` itself.
    nested: Vec<Entry<'a>>,
}

/// Runs an `applyOps` command.
///
/// # Errors
/// What the entries are refused for, before any is applied; then that of the first which fails, with `applied` and `results`;
/// UnknownError (8) where an update found nothing.
pub async fn apply_ops(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    check_options(request.body)?;
    let entries = read_all(request.argument(), 0)?;
    node.check_write_concern(op)?;
    let bypass = request.body.get("bypassDocumentValidation").is_some_and(|v| v.truthy());
    let mut results = Vec::new();
    for entry in &entries {
        op.check_interrupt()?;
        match Box::pin(entry.apply(node, op, bypass)).await {
            Ok(None) => {}
            Ok(Some(done)) => results.push(Value::Boolean(done)),
            Err(error) => {
                results.push(Value::Boolean(false));
                return Err(with_results(error, results));
            }
        }
        tokio::task::yield_now().await;
    }
    if results.contains(&Value::Boolean(false)) {
        let error = Error::new(codes::UNKNOWN_ERROR, "applyOps had one or more errors applying ops");
        return Err(with_results(error, results));
    }
    Ok(reply(results))
}

fn reply(results: Vec<Value>) -> Document {
    doc! { "applied": results.len() as i32, "results": Value::Array(results) }
}

fn with_results(mut error: Error, results: Vec<Value>) -> Error {
    let mut info = error.info.take().map(|i| *i).unwrap_or_default();
    reply(results).iter().for_each(|(name, value)| info.insert(name, value.clone()));
    error.with_info(info)
}

/// The entries of an array, those of nested `applyOps` looked at too.
fn read_all(list: Option<ValueRef<'_>>, depth: usize) -> Result<Vec<Entry<'_>>> {
    if depth > DEPTH_MAX {
        bail!(FAILED_TO_PARSE, "Too many nested applyOps");
    }
    let Some(ValueRef::Array(list)) = list else {
        let found = list.map_or("missing", |v| v.type_name());
        bail!(TYPE_MISMATCH, "BSON field 'applyOps' is the wrong type '{found}', expected type 'array'")
    };
    list.iter().map(|e| Entry::read(&e, depth)).collect()
}

fn check_options(body: Doc<'_>) -> Result<()> {
    for e in body.iter().skip(1) {
        match (e.name(), e.value()) {
            ("prepare", _) => bail!(BAD_VALUE, "Cannot use 'prepare' in applyOps"),
            ("partialTxn", _) => {
                return Err(Error::new(PARTIAL_TRANSACTION, "Cannot use 'partialTxn' in applyOps"));
            }
            ("count", v) if !v.is_number() => {
                let found = v.type_name();
                bail!(
                    TYPE_MISMATCH,
                    "BSON field 'applyOps.count' is the wrong type '{found}', expected type 'long'"
                )
            }
            ("count", _) => bail!(BAD_VALUE, "Cannot use 'count' in applyOps"),
            ("alwaysUpsert", ValueRef::Boolean(false) | ValueRef::Null | ValueRef::Undefined) => {}
            ("alwaysUpsert", ValueRef::Boolean(true)) => {
                return Err(Error::new(ALWAYS_UPSERT, "alwaysUpsert: true is no longer supported"));
            }
            ("alwaysUpsert", v) => {
                let found = v.type_name();
                bail!(
                    TYPE_MISMATCH,
                    "BSON field 'applyOps.alwaysUpsert' is the wrong type '{found}', expected type 'bool'"
                )
            }
            ("preCondition", _) => {
                return Err(Error::new(PRE_CONDITION, "applyOps does not support preCondition any longer"));
            }
            _ => {}
        }
    }
    Ok(())
}

impl<'a> Entry<'a> {
    fn read(e: &Element<'a>, depth: usize) -> Result<Entry<'a>> {
        let ValueRef::Document(raw) = e.value() else {
            bail!(TYPE_MISMATCH, "op not an object: {}", e.value().type_name())
        };
        document::refuse_doubled("OplogEntryBase", raw.iter().map(|e| e.name()))?;
        let letter = match raw.get("op") {
            None => bail!(NO_SUCH_KEY, "Missing expected field \"op\""),
            Some(ValueRef::String("")) => bail!(ILLEGAL_OPERATION, "\"op\" field value cannot be empty"),
            Some(ValueRef::String(letter)) => letter,
            Some(v) => {
                bail!(TYPE_MISMATCH, "\"op\" had the wrong type. Expected string, found {}", v.type_name())
            }
        };
        let Some(op) = Op::from_letter(letter) else {
            bail!(
                BAD_VALUE,
                "Enumeration value '{letter}' for field 'OplogEntryBase.op' is not a valid value."
            )
        };
        let ns = match raw.get("ns") {
            Some(ValueRef::String(ns)) if ns.contains('\0') => {
                bail!(ILLEGAL_OPERATION, "namespaces cannot have embedded null characters")
            }
            Some(ValueRef::String(ns)) if !ns.is_empty() || op == Op::Noop => ns,
            Some(ValueRef::String(_)) => {
                bail!(ILLEGAL_OPERATION, "\"ns\" field value cannot be empty when op type is not 'n'")
            }
            _ => bail!(ILLEGAL_OPERATION, "\"ns\" field is not a string"),
        };
        let o = match raw.get("o") {
            Some(ValueRef::Document(o)) => o,
            Some(v) => {
                let found = v.type_name();
                bail!(
                    TYPE_MISMATCH,
                    "BSON field 'OplogEntryBase.o' is the wrong type '{found}', expected type 'object'"
                )
            }
            None => {
                bail!(IDL_FAILED_TO_PARSE, "BSON field 'OplogEntryBase.o' is missing but a required field")
            }
        };
        if op == Op::Command {
            document::refuse_doubled(first_name(o), o.iter().map(|e| e.name()))?;
        }
        let nested = match (op, o.iter().next()) {
            (Op::Command, Some(e)) if e.name() == "applyOps" => read_all(Some(e.value()), depth + 1)?,
            _ => Vec::new(),
        };
        Ok(Entry { op, ns, o, raw, nested })
    }

    /// Applies the entry: whether it fits, or nothing for one that changes nothing.
    async fn apply(&self, node: &Node, op: &Operation, bypass: bool) -> Result<Option<bool>> {
        match self.op {
            Op::Noop => return Ok(None),
            Op::Command => return Box::pin(self.command(node, op, bypass)).await.map(Some),
            Op::Insert | Op::Update | Op::Delete => {}
        }
        let (db, name) = split_namespace(self.ns);
        check_database_name(db)?;
        check_collection_name(db, name)?;
        check_changeable(self.ns)?;
        if name == "system.views" {
            return self.change_view(node, op, db).await.map(Some);
        }
        let slot = node.namespaces.slot(self.ns);
        let change = match self.op {
            Op::Insert => Change::Insert(normalized(node, self.with_id(self.o)?, true)?.doc().to_owned()),
            Op::Update => Change::update(self)?,
            _ => Change::Delete,
        };
        let named = if self.op == Op::Update { self.o2()? } else { self.with_id(self.o)? };
        let id = named.get("_id").unwrap_or(ValueRef::Null);
        let (done, _) = node
            .write_waiting(op, &op.received, &slot, |unit| {
                refuse_view(&slot, unit.state)?;
                self.check_uuid(&slot, unit)?;
                let record = unit.collection().and_then(|c| c.record_of_id(id));
                change.make(unit, id, record, bypass)
            })
            .await?;
        Ok(Some(done))
    }

    fn with_id(&self, d: Doc<'a>) -> Result<Doc<'a>> {
        match d.get("_id") {
            Some(_) => Ok(d),
            None => bail!(NO_SUCH_KEY, "Failed to apply {} due to missing _id", self.op.letter()),
        }
    }
    fn o2(&self) -> Result<Doc<'a>> {
        match self.raw.get("o2") {
            Some(ValueRef::Document(o2)) => self.with_id(o2),
            _ => bail!(NO_SUCH_KEY, "Failed to apply update due to missing o2"),
        }
    }

    /// A collection that is named by its UUID, too, must be that one.
    fn check_uuid(&self, slot: &Slot, unit: &WriteUnit<'_>) -> Result<()> {
        let Some(uuid) = self.uuid()? else { return Ok(()) };
        match unit.collection().is_some_and(|c| c.uuid() == uuid) {
            true => Ok(()),
            false => bail!(NAMESPACE_NOT_FOUND, "no collection {} with the UUID of the entry", slot.ns),
        }
    }

    fn uuid(&self) -> Result<Option<[u8; 16]>> {
        match self.raw.get_present("ui") {
            None => Ok(None),
            Some(ValueRef::Binary(_, bytes)) => match bytes.try_into() {
                Ok(uuid) => Ok(Some(uuid)),
                Err(_) => bail!(INVALID_UUID, "the UUID of an entry has 16 bytes, not {}", bytes.len()),
            },
            Some(v) => {
                let found = v.type_name();
                bail!(
                    TYPE_MISMATCH,
                    "BSON field 'OplogEntryBase.ui' is the wrong type '{found}', expected type 'binData'"
                )
            }
        }
    }

    /// The command, on the collection that has the entry's UUID whatever its name is now.
    fn by_uuid(&self, node: &Node) -> Result<DocBuf> {
        let (Some(uuid), Some(first)) = (self.uuid()?, self.o.iter().next()) else {
            return Ok(self.o.to_owned());
        };
        if matches!(first.name(), "create" | "dropDatabase") {
            return Ok(self.o.to_owned());
        }
        let Some(ns) = of_uuid(node, uuid) else {
            bail!(NAMESPACE_NOT_FOUND, "no collection has the UUID of the entry {}", self.ns)
        };
        let (db, name) = split_namespace(&ns);
        if db != split_namespace(self.ns).0 && first.name() != "renameCollection" {
            bail!(NAMESPACE_NOT_FOUND, "the collection with the UUID of the entry is {ns}");
        }
        let named = if first.name() == "renameCollection" { ns.as_str() } else { name };
        Ok(DocWriter::build(|w| {
            w.string(first.name(), named);
            self.o.iter().skip(1).for_each(|e| w.element(&e));
        }))
    }

    /// A collection gets the UUID that the entry names; where it has it already, it stays as it is.
    async fn create(&self, node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
        let uuid = self.uuid()?;
        let (Some(wanted), ns) = (uuid, request.namespace()?) else {
            return collections::create(node, op, request).await;
        };
        if self.o.get_present("viewOn").is_some() {
            bail!(INVALID_OPTIONS, "a view has no UUID");
        }
        // The next one to name a UUID looks when this one has its collection.
        let _naming = node.namespaces.naming_uuids.lock().await;
        if self.o.get_present("timeseries").is_some() {
            bail!(NOT_IMPLEMENTED, "a time series collection with a UUID in applyOps is not implemented");
        }
        match of_uuid(node, wanted) {
            Some(found) if found == ns => return Ok(Document::new()),
            Some(found) => bail!(NAMESPACE_EXISTS, "The UUID of the entry is that of {found}."),
            None if node.namespaces.slot(&ns).read_unchecked().collection.is_some() => {
                bail!(NAMESPACE_EXISTS, "Collection {ns} already exists, with another UUID.")
            }
            None => {}
        }
        collections::create_as(node, op, request, uuid).await
    }

    /// An entry on `system.views` goes the way of the command on the view.
    async fn change_view(&self, node: &Node, op: &Operation, db: &str) -> Result<bool> {
        let named = if self.op == Op::Update { self.o2()? } else { self.with_id(self.o)? };
        let ns = named.get_str("_id").unwrap_or("");
        let (of, view) = split_namespace(ns);
        if of != db {
            bail!(INVALID_VIEW_DEFINITION, "a view of {db} cannot be called '{ns}'");
        }
        let slot = node.namespaces.slot(ns);
        let is_there = slot.read_unchecked().view.is_some();
        let command = match (self.op, is_there) {
            (Op::Delete, false) => return Ok(true),
            (Op::Delete, true) => "drop",
            (Op::Update, false) => return Ok(false),
            (_, true) => "collMod",
            (_, false) => "create",
        };
        let body = DocWriter::build(|w| {
            w.string(command, view);
            if self.op != Op::Delete {
                self.o.iter().filter(|e| e.name() != "_id").for_each(|e| w.element(&e));
            }
        });
        let request = Request { db, body: body.doc(), sequences: &[] };
        let done = match command {
            "drop" => collections::drop(node, op, request).await,
            "collMod" => crate::ddl::coll_mod::coll_mod(node, op, request).await,
            _ => collections::create(node, op, request).await,
        };
        done.map(|_| true)
    }

    /// Each entry of an `applyOps` within this one.
    async fn apply_nested(&self, node: &Node, op: &Operation, bypass: bool) -> Result<bool> {
        let mut all = true;
        for entry in &self.nested {
            op.check_interrupt()?;
            all &= Box::pin(entry.apply(node, op, bypass)).await? != Some(false);
            tokio::task::yield_now().await;
        }
        Ok(all)
    }

    async fn command(&self, node: &Node, op: &Operation, bypass: bool) -> Result<bool> {
        let (db, name) = split_namespace(self.ns);
        check_database_name(db)?;
        if name != "$cmd" {
            bail!(INVALID_NAMESPACE, "a command's namespace is <db>.$cmd, not {}", self.ns);
        }
        let body = self.by_uuid(node)?;
        let request = Request { db, body: body.doc(), sequences: &[] };
        let done = match request.name() {
            "create" => self.create(node, op, request).await,
            "drop" => {
                shapes::DROP.check_command(request.body, &[])?;
                collections::drop(node, op, request).await
            }
            "dropDatabase" => collections::drop_database(node, op, request).await,
            "collMod" => crate::ddl::coll_mod::coll_mod(node, op, request).await,
            "createIndexes" => {
                let body = index_command(request.body);
                shapes::CREATE_INDEXES.check_command(body.doc(), &[])?;
                indexes::create_indexes(node, op, Request { body: body.doc(), ..request }).await
            }
            "dropIndexes" | "deleteIndexes" => {
                shapes::DROP_INDEXES.check_command(request.body, &[])?;
                indexes::drop_indexes(node, op, request).await
            }
            "renameCollection" => {
                shapes::RENAME.check_command(request.body, &[])?;
                rename::rename_collection(node, op, request).await
            }
            "applyOps" => return self.apply_nested(node, op, bypass).await,
            name @ ("startIndexBuild" | "commitIndexBuild" | "abortIndexBuild") => {
                bail!(COMMAND_NOT_SUPPORTED, "The {name} operation is not supported in applyOps mode")
            }
            "dbCheck" => bail!(NOT_IMPLEMENTED, "the command dbCheck within applyOps is not implemented"),
            name => bail!(BAD_VALUE, "Invalid key '{name}' found in 'o'"),
        };
        done.map(|_| true)
    }
}

fn first_name(d: Doc<'_>) -> &str {
    d.iter().next().map_or("", |e| e.name())
}

/// The name of the collection that has this UUID.
fn of_uuid(node: &Node, uuid: [u8; 16]) -> Option<String> {
    node.namespaces.visible().iter().find(|slot| slot.holds(uuid)).map(|slot| slot.ns.to_string())
}

/// The command of an entry `{createIndexes: <collection>, v, key, name, ..}`.
fn index_command(o: Doc<'_>) -> DocBuf {
    if o.get("indexes").is_some() {
        return o.to_owned();
    }
    DocWriter::build(|w| {
        o.iter().take(1).for_each(|e| w.element(&e));
        w.array_with("indexes", |w| {
            let spec = DocWriter::build(|w| o.iter().skip(1).for_each(|e| w.element(&e)));
            w.with_index(0, |w, name| w.document(name, spec.doc()));
        });
    })
}

/// What is done to the document of an `_id`.
enum Change {
    /// Takes the place of one that is there.
    Insert(DocBuf),
    Replace {
        with: Document,
        upsert: bool,
    },
    Difference(Document),
    Delete,
}

impl Change {
    fn update(entry: &Entry<'_>) -> Result<Change> {
        let upsert = entry.raw.get("b").is_some_and(|v| v.truthy());
        match entry.o.get("$v") {
            Some(v) if v.as_i64() != Some(2) => {
                return Err(Error::new(UPDATE_VERSION, format!("Unsupported oplog entry version: {v:?}")));
            }
            Some(_) => {}
            None if entry.o.iter().next().is_some_and(|e| e.name().starts_with('$')) => {
                // Without a version they are of the first one.
                return Err(Error::new(UPDATE_VERSION, "Unsupported oplog entry version: 1"));
            }
            None => return Ok(Change::Replace { with: entry.o.to_document(), upsert }),
        }
        let Some(difference) = entry.o.get_document("diff") else {
            bail!(FAILED_TO_PARSE, "an update of $v: 2 needs a 'diff' that is an object")
        };
        let difference = difference.to_document();
        if items_written(&difference) > ITEMS_MAX {
            bail!(BSON_OBJECT_TOO_LARGE, "the update makes arrays larger than a document can be");
        }
        Ok(Change::Difference(difference))
    }

    /// Whether it fits what is there.
    fn make(
        &self,
        unit: &mut WriteUnit<'_>,
        id: ValueRef<'_>,
        record: Option<RecordId>,
        bypass: bool,
    ) -> Result<bool> {
        if let Change::Delete = self {
            return match record {
                Some(record) => unit.delete(record, Origin::default()).map(|_| true),
                None => Ok(true),
            };
        }
        unit.existing()?;
        let Some(record) = record else {
            let new = match self {
                Change::Insert(new) => new.clone(),
                Change::Replace { with, upsert: true } => replacement(id, with)?,
                _ => return Ok(false),
            };
            if !bypass {
                unit.check_validator(new.doc())?;
            }
            unit.check_room()?;
            unit.insert(new.doc(), Origin::default())?;
            return unit.trim_capped().map(|()| true);
        };
        let Some(old) = unit.existing()?.get(record).map(|d| d.to_owned()) else { return Ok(false) };
        let new = match self {
            Change::Insert(new) => new.clone(),
            Change::Replace { with, .. } => replacement(id, with)?,
            Change::Difference(difference) => document::delta::apply(old.doc(), difference)?,
            Change::Delete => return Ok(false),
        };
        check(&old, &new)?;
        if !bypass {
            unit.check_validator_of_update(old.doc(), new.doc())?;
        }
        unit.check_capped_growth(old.doc(), new.doc())?;
        unit.check_room_of(old.doc(), new.doc())?;
        let prepared = unit.prepare_update(record, old.doc(), new.doc(), None)?;
        let prepared = match self {
            Change::Difference(_) => prepared,
            _ => prepared.whole(),
        };
        let origin = Origin { from_migrate: unit.is_orphan(old.doc()), ..Origin::default() };
        unit.put(record, prepared, new.doc(), origin).map(|()| true)
    }
}

fn check(old: &DocBuf, new: &DocBuf) -> Result<()> {
    check_size(new.doc())?;
    let ids = (old.doc().element("_id"), new.doc().element("_id"));
    match ids {
        (Some(a), Some(b)) if a.tag() == b.tag() && a.value_bytes() == b.value_bytes() => Ok(()),
        (Some(a), Some(b)) if a.value().is_number() && a.value() == b.value() => Ok(()),
        _ => bail!(
            IMMUTABLE_FIELD,
            "Performing an update on the path '_id' would modify the immutable field '_id'"
        ),
    }
}

/// The replacement with its `_id` first.
fn replacement(id: ValueRef<'_>, with: &Document) -> Result<DocBuf> {
    let given = with.get("_id").cloned().unwrap_or_else(|| id.to_value());
    let mut new = doc! { "_id": given };
    with.iter().filter(|(name, _)| *name != "_id").for_each(|(name, value)| new.push(name, value.clone()));
    let new = new.to_doc_buf();
    check_size(new.doc())?;
    Ok(new)
}

/// How many items the arrays of a difference have at least: a position that is named makes all before it.
fn items_written(difference: &Document) -> u64 {
    let array = difference.contains_key("a");
    let positions = difference.keys().filter_map(|name| name.strip_prefix('u')?.parse::<u64>().ok());
    let here = if array { positions.max().unwrap_or(0) } else { 0 };
    let nested = difference.iter().filter(|(name, _)| name.starts_with('s'));
    nested.filter_map(|(_, v)| v.as_document()).map(items_written).fold(here, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::Document;
    use std::sync::Arc;

    /// Two look before either creates: each finds the UUID free.
    #[tokio::test]
    async fn a_uuid_given_by_two_at_once_is_that_of_one_collection() {
        let node = crate::replication::testing::node(None);
        let create = |name: &'static str, uuid: [u8; 16]| {
            let node: Arc<Node> = node.clone();
            async move {
                let o = doc! { "create": name };
                let entry = doc! { "op": "c", "ns": "d.$cmd", "ui": Value::uuid(uuid), "o": o };
                let body: Document = doc! { "applyOps": Value::Array(vec![entry.into()]) };
                let body = body.to_doc_buf();
                let request = Request { db: "admin", body: body.doc(), sequences: &[] };
                apply_ops(&node, &Operation::internal(), request).await
            }
        };
        // Both namespaces are in use for a moment, so that both wait when they have looked.
        let slots = ["a", "b"].map(|name| node.namespaces.slot(&format!("d.{name}")));
        let held = slots.each_ref().map(|slot| slot.intent_now().unwrap());
        let uuid = [7; 16];
        let both = async { tokio::join!(create("a", uuid), create("b", uuid)) };
        let release = async {
            tokio::task::yield_now().await;
            drop(held);
        };
        let ((a, b), ()) = tokio::join!(both, release);
        assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
        assert_eq!(a.and(b).unwrap_err().code, codes::NAMESPACE_EXISTS);
        assert_eq!(slots.iter().filter(|slot| slot.holds(uuid)).count(), 1);
    }
}
