//! From an operation of the log to an event.
//!
//! ```text
//! i            insert                  c  create, createIndexes, dropIndexes, collMod, drop, rename, dropDatabase
//! u  diff      update                  n  shardCollection, refineCollectionShardKey, reshardCollection (in o2)
//! u  document  replace                 i, u, d on system.views: create, modify, drop of a view
//! d            delete
//! ```
//! Fields come in the order of the real server: `{to?, txnNumber?, lsid?, _id, operationType, clusterTime,
//! collectionUUID?, wallTime, fullDocument?, ns, documentKey?, operationDescription?, updateDescription?, ...}`, images
//! that are looked up afterwards.

use super::images;
use super::scope::Scope;
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Timestamp, ValueRef, doc};
use query::change_stream::description::update_description;
use query::change_stream::{Spec, Token};
use std::borrow::Cow;
use storage::entry::{Entry, Op};
use storage::split_namespace;

/// What a stream asks for.
#[derive(Clone, Debug)]
pub struct Watch {
    pub scope: Scope,
    pub spec: Spec,
    /// Pre-images of changes before this wall time (ms) have expired.
    pub images_since: i64,
}

/// One operation as the log has it, alone or unwound from a transaction.
pub struct Logged<'a> {
    pub entry: Entry<'a>,
    pub time: Timestamp,
    pub wall: i64,
    /// Its place among all operations of its transaction.
    pub index: i64,
    /// `lsid` and `txnNumber` of its transaction.
    pub transaction: Option<(Doc<'a>, i64)>,
}

/// An event, and what becomes of the stream with it.
pub struct Event {
    pub token: Token,
    pub operation_type: Cow<'static, str>,
    pub wall: i64,
    pub doc: DocBuf,
    /// An update whose document is to be looked up.
    pub wants_current: bool,
    /// A required image is missing.
    pub missing: Option<Error>,
}

/// What is particular to an event; common fields are added by [`Parts::finish`].
struct Parts<'a> {
    operation_type: &'static str,
    db: &'a str,
    /// Empty for an event of a database.
    collection: &'a str,
    uuid: Option<[u8; 16]>,
    to: Option<Document>,
    full_document: Option<Doc<'a>>,
    document_key: Option<Document>,
    operation_description: Option<Document>,
    /// Further members, in order.
    more: Document,
}

impl<'a> Parts<'a> {
    fn new(operation_type: &'static str, ns: (&'a str, &'a str), uuid: Option<[u8; 16]>) -> Parts<'a> {
        let (db, collection) = ns;
        Parts {
            operation_type,
            db,
            collection,
            uuid,
            to: None,
            full_document: None,
            document_key: None,
            operation_description: None,
            more: Document::new(),
        }
    }

    fn token(&self, l: &Logged<'_>) -> Token {
        let mut identifier = doc! { "operationType": self.operation_type };
        match (&self.document_key, &self.operation_description) {
            (Some(key), _) => identifier.push("documentKey", key.clone()),
            (None, Some(description)) => identifier.push("operationDescription", description.clone()),
            (None, None) => {}
        }
        Token::event(l.time, l.index, self.uuid, identifier)
    }

    fn finish(self, l: &Logged<'_>, spec: &Spec) -> Event {
        let token = self.token(l);
        let expanded = spec.show_expanded_events;
        let doc = DocWriter::build(|w| {
            if let Some(to) = &self.to {
                write_namespace(w, "to", to.get_str("db").unwrap_or(""), to.get_str("coll").unwrap_or(""));
            }
            if let Some((lsid, number)) = l.transaction {
                w.i64("txnNumber", number);
                w.document("lsid", lsid);
            }
            write_head(w, &token, self.operation_type);
            if let Some(uuid) = self.uuid.filter(|_| expanded) {
                w.uuid("collectionUUID", &uuid);
            }
            w.date("wallTime", l.wall);
            if let Some(full) = self.full_document {
                w.document("fullDocument", full);
            }
            write_namespace(w, "ns", self.db, self.collection);
            if let Some(key) = &self.document_key {
                w.document_with("documentKey", |w| key.write_fields(w));
            }
            if let Some(description) = self.operation_description.as_ref().filter(|_| expanded) {
                w.document_with("operationDescription", |w| description.write_fields(w));
            }
            self.more.write_fields(w);
        });
        Event {
            token,
            operation_type: self.operation_type.into(),
            wall: l.wall,
            doc,
            wants_current: false,
            missing: None,
        }
    }
}

fn write_head(w: &mut DocWriter<'_>, token: &Token, operation_type: &str) {
    w.document_with("_id", |w| w.string("_data", &token.data()));
    w.string("operationType", operation_type);
    w.timestamp("clusterTime", token.time);
}

fn write_namespace(w: &mut DocWriter<'_>, name: &str, db: &str, collection: &str) {
    w.document_with(name, |w| {
        w.string("db", db);
        if !collection.is_empty() {
            w.string("coll", collection);
        }
    });
}

/// The event that ends a stream after `cause`.
pub fn invalidate(cause: &Token, wall: i64) -> Event {
    let token = Token { from_invalidate: true, ..cause.clone() };
    let doc = DocWriter::build(|w| {
        write_head(w, &token, "invalidate");
        w.date("wallTime", wall);
    });
    Event { token, operation_type: "invalidate".into(), wall, doc, wants_current: false, missing: None }
}

impl Watch {
    /// The event of an operation; `None` when the stream does not show it.
    ///
    /// # Errors
    /// An entry that cannot be read.
    pub fn event(&self, l: &Logged<'_>) -> Result<Option<Event>> {
        if l.entry.from_migrate() && !self.spec.show_migration_events {
            return Ok(None);
        }
        match l.entry.op {
            Op::Insert | Op::Update | Op::Delete => self.change(l),
            Op::Command => Ok(self.command(l)),
            Op::Noop => Ok(self.noted(l)),
        }
    }

    fn sees(&self, ns: (&str, &str)) -> bool {
        self.scope.sees(ns.0, ns.1, self.spec.show_system_events)
    }

    fn change(&self, l: &Logged<'_>) -> Result<Option<Event>> {
        let ns = split_namespace(l.entry.ns);
        if ns.1 == "system.views" && self.spec.show_expanded_events && !self.spec.show_system_events {
            return Ok(self.view_change(l, ns.0));
        }
        if !self.sees(ns) {
            return Ok(None);
        }
        let o = l.entry.o;
        let is_difference = o.iter().next().is_some_and(|e| e.name() == "$v");
        let (operation_type, key) = match l.entry.op {
            Op::Insert => ("insert", l.entry.o2),
            Op::Update if is_difference => ("update", l.entry.o2),
            Op::Update => ("replace", l.entry.o2),
            _ => ("delete", Some(o)),
        };
        let key = match key {
            Some(key) => key.to_document(),
            None => o.get("_id").map(|id| doc! { "_id": id.to_value() }).unwrap_or_default(),
        };
        let mut parts = Parts::new(operation_type, ns, l.entry.uuid);
        parts.document_key = Some(key);
        match operation_type {
            "insert" | "replace" => parts.full_document = Some(o),
            "update" => self.describe_update(o, &mut parts),
            _ => {}
        }
        let missing = images::add(self, l, operation_type, &mut parts.more)?;
        let mut event = parts.finish(l, &self.spec);
        event.missing = missing;
        event.wants_current = operation_type == "update" && self.spec.looks_up();
        Ok(Some(event))
    }

    fn describe_update(&self, o: Doc<'_>, parts: &mut Parts<'_>) {
        if self.spec.show_raw_update_description {
            parts.more.push("rawUpdateDescription", o.to_document());
            return;
        }
        let diff = o.get_document("diff").map(Doc::to_document).unwrap_or_default();
        parts.more.push("updateDescription", update_description(&diff, self.spec.show_expanded_events));
    }

    /// A view's definition is a document of `system.views`.
    fn view_change(&self, l: &Logged<'_>, db: &str) -> Option<Event> {
        if matches!(self.scope, Scope::Collection(_)) || !self.scope.sees_database(db) {
            return None;
        }
        let name = l.entry.document_id()?.as_str()?;
        let operation_type = match l.entry.op {
            Op::Insert => "create",
            Op::Update => "modify",
            _ => "drop",
        };
        let mut parts = Parts::new(operation_type, split_namespace(name), None);
        if operation_type != "drop" {
            parts.operation_description = Some(without(l.entry.o, &["_id"]));
        }
        Some(parts.finish(l, &self.spec))
    }

    fn command(&self, l: &Logged<'_>) -> Option<Event> {
        let (name, argument) = l.entry.command()?;
        let db = l.entry.ns.strip_suffix(".$cmd")?;
        let expanded = self.spec.show_expanded_events;
        match name {
            "renameCollection" => self.renamed(l, argument.as_str()?),
            "dropDatabase" if self.scope.sees_database(db) => {
                let mut parts = Parts::new("dropDatabase", (db, ""), None);
                parts.operation_description = None;
                Some(parts.finish(l, &self.spec))
            }
            "drop" => self.on_collection(l, "drop", (db, argument.as_str()?), None),
            "create" if expanded => {
                let description = without(l.entry.o, &["create"]);
                self.on_collection(l, "create", (db, argument.as_str()?), Some(description))
            }
            "createIndexes" if expanded => {
                let spec = without(l.entry.o, &["createIndexes"]);
                let description = doc! { "indexes": [(spec)] };
                self.on_collection(l, "createIndexes", (db, argument.as_str()?), Some(description))
            }
            "commitIndexBuild" if expanded => {
                let specs = l.entry.o.get("indexes")?.to_value();
                self.on_collection(
                    l,
                    "createIndexes",
                    (db, argument.as_str()?),
                    Some(doc! { "indexes": specs }),
                )
            }
            "dropIndexes" if expanded => {
                let description = doc! { "indexes": [(l.entry.o2?.to_document())] };
                self.on_collection(l, "dropIndexes", (db, argument.as_str()?), Some(description))
            }
            "collMod" if expanded => self.modified(l, (db, argument.as_str()?)),
            _ => None,
        }
    }

    fn on_collection(
        &self,
        l: &Logged<'_>,
        operation_type: &'static str,
        ns: (&str, &str),
        description: Option<Document>,
    ) -> Option<Event> {
        let mut parts = Parts::new(operation_type, ns, l.entry.uuid);
        parts.operation_description = description;
        self.sees(ns).then(|| parts.finish(l, &self.spec))
    }

    fn renamed(&self, l: &Logged<'_>, from: &str) -> Option<Event> {
        let to = l.entry.o.get_str("to")?;
        let (source, target) = (split_namespace(from), split_namespace(to));
        if !self.sees(source) && !self.sees(target) {
            return None;
        }
        let shown = doc! { "db": target.0, "coll": target.1 };
        let mut description = doc! { "to": shown.clone() };
        if let Some(dropped) = l.entry.o.get("dropTarget").filter(|v| v.as_uuid().is_some()) {
            description.push("dropTarget", dropped.to_value());
        }
        let mut parts = Parts::new("rename", source, l.entry.uuid);
        (parts.to, parts.operation_description) = (Some(shown), Some(description));
        Some(parts.finish(l, &self.spec))
    }

    fn modified(&self, l: &Logged<'_>, ns: (&str, &str)) -> Option<Event> {
        let mut parts = Parts::new("modify", ns, l.entry.uuid);
        parts.operation_description = Some(without(l.entry.o, &["collMod"]));
        let mut before = Document::new();
        for (kept, shown) in
            [("collectionOptions_old", "collectionOptions"), ("indexOptions_old", "indexOptions")]
        {
            if let Some(old) = l.entry.o2.and_then(|o2| o2.get(kept)) {
                before.push(shown, old.to_value());
            }
        }
        if !before.is_empty() {
            parts.more.push("stateBeforeChange", before);
        }
        self.sees(ns).then(|| parts.finish(l, &self.spec))
    }

    /// What a no-op notes of the catalog of a cluster.
    fn noted(&self, l: &Logged<'_>) -> Option<Event> {
        let o2 = l.entry.o2.filter(|_| self.spec.show_expanded_events)?;
        let named = o2.iter().next()?;
        let (operation_type, internal) =
            *NOTED.iter().map(|(n, i)| (n, *i)).find(|(n, _)| **n == named.name()).as_ref()?;
        if internal && !self.spec.show_system_events {
            return None;
        }
        let ns = split_namespace(named.value().as_str()?);
        self.on_collection(l, operation_type, ns, Some(without(o2, &[named.name()])))
    }
}

/// The names in `o2` of a no-op that are events, and whether only internal consumers see them.
const NOTED: [(&str, bool); 7] = [
    ("shardCollection", false),
    ("refineCollectionShardKey", false),
    ("reshardCollection", false),
    ("migrateChunkToNewShard", true),
    ("migrateLastChunkFromShard", true),
    ("reshardBegin", true),
    ("reshardDoneCatchUp", true),
];

fn without(d: Doc<'_>, names: &[&str]) -> Document {
    let mut out = Document::new();
    for e in d.iter().filter(|e| !names.contains(&e.name())) {
        out.push(e.name(), e.value().to_value());
    }
    out
}

impl Event {
    /// Reads an event that another node made.
    ///
    /// # Errors
    /// Those of [`Token::parse`].
    pub fn read(doc: DocBuf) -> Result<Event> {
        let token = Token::parse(&doc.doc().get_document("_id").map(Doc::to_document).unwrap_or_default())?;
        let operation_type = Cow::Owned(doc.doc().get_str("operationType").unwrap_or("").to_string());
        let wall = match doc.get("wallTime") {
            Some(ValueRef::DateTime(ms)) => ms,
            _ => 0,
        };
        Ok(Event { token, operation_type, wall, doc, wants_current: false, missing: None })
    }
    /// Adds the document that was looked up; null when there was none.
    pub fn set_full_document(&mut self, found: Option<&DocBuf>) {
        self.wants_current = false;
        self.doc = DocWriter::build(|w| {
            w.fields_of(self.doc.doc());
            match found {
                Some(d) => w.document("fullDocument", d.doc()),
                None => w.null("fullDocument"),
            }
        });
    }
}
