//! What holds for operations that name no concern: the document that `setDefaultRWConcern` stores.
//!
//! It is a document of `config.settings`, so that it survives restarts and is every member's; what is here is a copy in memory,
//! renewed by an observer of that collection, on secondaries too, and read anew where the collection was exchanged.

use crate::Node;
use crate::observer::WriteObserver;
use crate::operation::{ReadConcern, WriteConcern};
use crate::replication::Replication;
use document::{Doc, DocBuf, Result, ValueRef, doc, err};
use std::sync::{Arc, Weak};

pub const COLLECTION: &str = "config.settings";
pub const ID: &str = "ReadWriteConcernDefaults";
const READ_CONCERN: &str = "defaultReadConcern";
const WRITE_CONCERN: &str = "defaultWriteConcern";

struct Watch(Weak<Node>);

impl WriteObserver for Watch {
    fn inserted(&self, _: &str, doc: Doc<'_>) {
        if doc.get_str("_id") == Some(ID)
            && let Some(node) = self.0.upgrade()
        {
            node.replication.learn_defaults(doc);
        }
    }
    fn updated(&self, ns: &str, new: Doc<'_>) {
        self.inserted(ns, new);
    }
    fn deleted(&self, _: &str, old: Doc<'_>) {
        if old.get_str("_id") == Some(ID)
            && let Some(node) = self.0.upgrade()
        {
            node.replication.learn_defaults(Doc::empty());
        }
    }
}

/// The document that holds a field, where it has it.
fn document_in(stored: Doc<'_>, name: &str) -> Option<Result<DocBuf>> {
    Some(match stored.get(name)? {
        ValueRef::Document(d) => Ok(d.to_owned()),
        other => {
            Err(err!(TYPE_MISMATCH, "{name} is no document: {}", document::shell::value(&other.to_value())))
        }
    })
}

impl Replication {
    /// A client may have put anything there: what cannot be read is passed over, and what was in force stays so.
    fn learn_defaults(&self, stored: Doc<'_>) {
        let unreadable = |name: &str, error: String| {
            self.note(
                "A default concern that is stored cannot be read, and is not used",
                doc! { "namespace": COLLECTION, "field": name, "error": error },
            );
        };
        let read = document_in(stored, READ_CONCERN).map(|d| ReadConcern::parse(d?.doc()));
        match read.transpose() {
            Ok(concern) => self.set_default_read_level(concern.map(|c| c.level)),
            Err(error) => unreadable(READ_CONCERN, error.message),
        }
        let write = document_in(stored, WRITE_CONCERN).map(|d| WriteConcern::parse(d?.doc()));
        match write.transpose() {
            Ok(concern) => self.set_default_write_concern(concern),
            Err(error) => unreadable(WRITE_CONCERN, error.message),
        }
    }
}

impl Node {
    /// Begins to follow the defaults, if this is a member of a set: no others have any.
    pub(crate) fn watch_defaults(self: &Arc<Self>) {
        if self.is_replica_set() {
            self.observers.add(COLLECTION, Arc::new(Watch(Arc::downgrade(self))));
        }
    }
    /// Reads them, at the start of a member and where the collection was not written but exchanged.
    pub(crate) fn load_defaults(&self) {
        let slot = self.namespaces.slot(COLLECTION);
        let state = slot.read_unchecked();
        let found = state.collection.as_ref().and_then(|c| c.find_id(ValueRef::String(ID)));
        self.replication.learn_defaults(found.map_or(Doc::empty(), |(_, d)| d));
    }
}
