//! The index keys by which a query finds its records, for those that show them: `returnKey` and `{$meta: "indexKey"}`.
//!
//! A scan of an index notes the key of each record that it hands on; the query takes it out when the record arrives, which
//! may be behind a sort or a union. What was found without an index has no key.

use document::{Doc, DocBuf, ValueRef};
use std::cell::RefCell;
use std::collections::HashMap;
use storage::index::keys::shown;
use storage::{IndexEntry, IndexSpec, RecordId};

pub struct Keys {
    by_record: RefCell<HashMap<RecordId, DocBuf>>,
    clustered: bool,
}

impl Keys {
    /// Those of a collection, which may be clustered.
    pub(super) fn of_collection(clustered: bool) -> Keys {
        Keys { by_record: RefCell::default(), clustered }
    }
    /// Notes by which entry of an index a record was found first. A text index shows no keys.
    pub(super) fn note(&self, spec: &IndexSpec, entry: &IndexEntry<'_>, doc: Doc<'_>) {
        if spec.is_clustered() || spec.text().is_some() || self.by_record.borrow().contains_key(&entry.record)
        {
            return;
        }
        if let Some(key) = shown(spec, doc, entry.key) {
            self.by_record.borrow_mut().insert(entry.record, key.to_doc_buf());
        }
    }
    /// Notes that a record was found by its `_id`, which in a clustered collection is no key of an index.
    pub(super) fn note_id(&self, record: RecordId, id: ValueRef<'_>) {
        if self.clustered {
            return;
        }
        self.by_record.borrow_mut().insert(record, document::doc! { "_id": id.to_value() }.to_doc_buf());
    }
    /// The key of a record, which keeps it until it is forgotten.
    pub(super) fn of(&self, record: RecordId) -> Option<DocBuf> {
        self.by_record.borrow().get(&record).cloned()
    }
    pub(super) fn forget(&self, record: RecordId) {
        self.by_record.borrow_mut().remove(&record);
    }
}
