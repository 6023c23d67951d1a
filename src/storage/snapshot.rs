//! Reading a collection, live or frozen, through one interface.

use std::sync::Arc;

use document::{Doc, ValueRef};

use crate::catalog::CollectionMeta;
use crate::index::{IndexCursor, IndexInfo, IndexSnapshot};
use crate::record_store::{RecordCursor, RecordId};
use crate::tree::Snapshot;

/// What can be read of a collection: live under its latch, frozen in a snapshot, or in a transaction's branch.
///
/// Indexes are addressed by *slot*, their position in the order of creation; a slot stays valid while the same view is
/// held, and a position in an index survives the view as its key bytes and record id.
pub trait CollectionView {
    /// Namespace, UUID, options.
    fn meta(&self) -> &CollectionMeta;
    /// The document at `record`.
    fn get(&self, record: RecordId) -> Option<Doc<'_>>;
    /// The number of documents.
    fn len(&self) -> usize;
    /// The bytes of all documents.
    fn data_bytes(&self) -> u64;
    /// A cursor before the first record.
    fn records(&self) -> RecordCursor<'_>;
    /// The number of indexes.
    fn index_count(&self) -> usize;
    /// Definition and flags of the index at `slot`.
    fn index_info(&self, slot: usize) -> Option<&IndexInfo>;
    /// A cursor before the first entry of the index at `slot`.
    fn index_cursor(&self, slot: usize) -> Option<IndexCursor<'_>>;

    /// Whether there are no documents.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The slot of the index called `name`.
    fn index_slot(&self, name: &str) -> Option<usize> {
        (0..self.index_count()).find(|slot| self.index_info(*slot).is_some_and(|i| i.spec.name() == name))
    }
    /// The document with this `_id`, numbers being equal across their types and strings in the index's collation.
    fn find_id(&self, id: ValueRef<'_>) -> Option<(RecordId, Doc<'_>)> {
        if let Some(slot) = self.index_slot("_id_") {
            let mut key = Vec::with_capacity(24);
            self.index_info(slot)?.spec.collation().append_key(&mut key, id, false);
            let entry = self.index_cursor(slot)?.seek(&key).filter(|e| e.key == key)?;
            return Some((entry.record, self.get(entry.record)?));
        }
        let mut cursor = self.records();
        while let Some((record, doc)) = cursor.next() {
            if doc.get("_id").is_some_and(|v| document::compare::compare(v, id).is_eq()) {
                return Some((record, doc));
            }
        }
        None
    }
}

/// A collection as it stood at one moment: records and indexes, frozen. Cheap to clone, read from any thread.
#[derive(Clone)]
pub struct CollectionSnapshot {
    pub(crate) meta: Arc<CollectionMeta>,
    pub(crate) records: Snapshot,
    pub(crate) indexes: Vec<IndexSnapshot>,
    /// How many of them are built.
    pub(crate) maintained: usize,
    pub(crate) next_record: RecordId,
}

impl CollectionSnapshot {
    /// The indexes in the order of their creation.
    pub fn indexes(&self) -> &[IndexSnapshot] {
        &self.indexes[..self.maintained]
    }
    /// The indexes and those that are known and not built.
    pub fn known_indexes(&self) -> &[IndexSnapshot] {
        &self.indexes
    }
    /// The frozen records, keyed by record id big-endian, e.g. for [`crate::tree::difference`].
    pub fn record_tree(&self) -> &Snapshot {
        &self.records
    }
    /// The record id that the next insert would have been given.
    pub fn next_record(&self) -> RecordId {
        self.next_record
    }
    /// A private, writable collection that starts as this snapshot (a transaction's). Record ids it gives out are its
    /// own.
    pub fn branch(&self) -> crate::Collection {
        crate::Collection::branch_of(self)
    }
}

impl CollectionView for CollectionSnapshot {
    fn meta(&self) -> &CollectionMeta {
        &self.meta
    }
    fn get(&self, record: RecordId) -> Option<Doc<'_>> {
        self.records.get(&record.to_be_bytes()).map(Doc::from_validated)
    }
    fn len(&self) -> usize {
        self.records.len()
    }
    fn data_bytes(&self) -> u64 {
        self.records.value_bytes()
    }
    fn records(&self) -> RecordCursor<'_> {
        RecordCursor::new(self.records.cursor())
    }
    fn index_count(&self) -> usize {
        self.maintained
    }
    fn index_info(&self, slot: usize) -> Option<&IndexInfo> {
        self.indexes().get(slot).map(IndexSnapshot::info)
    }
    fn index_cursor(&self, slot: usize) -> Option<IndexCursor<'_>> {
        self.indexes().get(slot).map(IndexSnapshot::cursor)
    }
}
