//! The records of a collection: a tree from record id to document bytes.
//!
//! Record ids are given in log order, from 1, and never given again, so a scan in record order is a scan in insertion
//! order and a replay of the log gives every document the id it had. Next to the tree stands, for each block of
//! consecutive ids, the number of the last change in it: a checkpoint writes again only the image segments that
//! hold a changed block.

use std::sync::Arc;

use document::Doc;

use crate::tree::{Cursor, Snapshot, Tree};

/// The place of a document in its collection; in log order, never reused.
pub type RecordId = u64;

/// Record ids per block of the change table, as a shift.
const BLOCK_SHIFT: u32 = 10;

/// The records of a live collection.
pub(crate) struct RecordStore {
    tree: Tree,
    next: RecordId,
    changes: ChangeTable,
}

/// The number of the last change in each block of record ids.
#[derive(Clone, Default)]
pub(crate) struct ChangeTable {
    last: u64,
    blocks: Vec<u64>,
    /// Shared by the copies of one table and by nothing else: numbers of different tables say nothing of each other.
    line: Arc<()>,
    silent: bool,
}

impl ChangeTable {
    /// A table that notes nothing: branches are never written to images.
    fn silent() -> ChangeTable {
        ChangeTable { silent: true, ..ChangeTable::default() }
    }
    fn note(&mut self, record: RecordId) {
        if self.silent {
            return;
        }
        self.last += 1;
        let block = (record >> BLOCK_SHIFT) as usize;
        if block >= self.blocks.len() {
            self.blocks.resize(block + 1, 0);
        }
        self.blocks[block] = self.last;
    }
    /// Whether the two are copies of one table.
    pub(crate) fn same_line(&self, other: &ChangeTable) -> bool {
        Arc::ptr_eq(&self.line, &other.line)
    }
    /// The number of the last change anywhere.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }
    /// Whether some record in the inclusive range changed after change number `since`.
    pub(crate) fn changed_since(&self, first: RecordId, last: RecordId, since: u64) -> bool {
        let from = (first >> BLOCK_SHIFT) as usize;
        let to = (last >> BLOCK_SHIFT) as usize;
        self.blocks.iter().take(to.saturating_add(1)).skip(from).any(|c| *c > since)
    }
}

impl RecordStore {
    pub(crate) fn new() -> RecordStore {
        RecordStore { tree: Tree::new(), next: 1, changes: ChangeTable::default() }
    }
    /// A private line that starts as `snapshot`.
    pub(crate) fn branch(snapshot: &Snapshot, next: RecordId) -> RecordStore {
        RecordStore { tree: snapshot.branch(), next, changes: ChangeTable::silent() }
    }
    /// A line of its own that starts as this one is. No image of another collection is right for it.
    pub(crate) fn fork(&self) -> RecordStore {
        RecordStore { tree: self.snapshot().branch(), next: self.next, changes: ChangeTable::default() }
    }
    pub(crate) fn next_id(&self) -> RecordId {
        self.next
    }
    pub(crate) fn set_next_id(&mut self, next: RecordId) {
        self.next = self.next.max(next);
    }
    pub(crate) fn get(&self, record: RecordId) -> Option<Doc<'_>> {
        self.tree.get(&record.to_be_bytes()).map(Doc::from_validated)
    }
    pub(crate) fn append(&mut self, doc: Doc<'_>) -> RecordId {
        let record = self.next;
        self.next += 1;
        self.tree.insert(&record.to_be_bytes(), doc.bytes());
        self.changes.note(record);
        record
    }
    pub(crate) fn replace(&mut self, record: RecordId, doc: Doc<'_>) {
        self.tree.insert(&record.to_be_bytes(), doc.bytes());
        self.changes.note(record);
    }
    pub(crate) fn remove(&mut self, record: RecordId) -> bool {
        self.changes.note(record);
        self.tree.remove(&record.to_be_bytes())
    }
    /// Puts a record read from an image, which is not a change. Ids must ascend.
    pub(crate) fn load(&mut self, record: RecordId, doc: &[u8]) {
        self.tree.insert(&record.to_be_bytes(), doc);
        self.set_next_id(record.saturating_add(1));
    }
    pub(crate) fn len(&self) -> usize {
        self.tree.len()
    }
    pub(crate) fn bytes(&self) -> u64 {
        self.tree.value_bytes()
    }
    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.tree.allocated_bytes()
    }
    pub(crate) fn superseded_bytes(&self) -> u64 {
        self.tree.superseded_bytes()
    }
    pub(crate) fn cursor(&self) -> RecordCursor<'_> {
        RecordCursor { cursor: self.tree.cursor() }
    }
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.tree.snapshot()
    }
    /// Back to `snapshot`. The change table keeps what it noted: a block too many is written, never one too few.
    pub(crate) fn restore(&mut self, snapshot: &Snapshot, next: RecordId) {
        self.tree.replace_root(snapshot);
        self.next = next;
    }
    pub(crate) fn changes(&self) -> &ChangeTable {
        &self.changes
    }
}

/// A position among the records. Every method that moves answers the record arrived at, or `None` past the end.
pub struct RecordCursor<'a> {
    cursor: Cursor<'a>,
}

impl<'a> RecordCursor<'a> {
    pub(crate) fn new(cursor: Cursor<'a>) -> RecordCursor<'a> {
        RecordCursor { cursor }
    }
    /// The record at the position.
    pub fn record(&self) -> Option<(RecordId, Doc<'a>)> {
        let (key, value) = self.cursor.entry()?;
        Some((RecordId::from_be_bytes(key.try_into().ok()?), Doc::from_validated(value)))
    }
    /// To the first record at or after `record`.
    pub fn seek(&mut self, record: RecordId) -> Option<(RecordId, Doc<'a>)> {
        let found = self.cursor.seek(&record.to_be_bytes());
        self.arrived(found)
    }
    /// To the last record at or before `record`.
    pub fn seek_back(&mut self, record: RecordId) -> Option<(RecordId, Doc<'a>)> {
        let found = self.cursor.seek_for_prev(&record.to_be_bytes());
        self.arrived(found)
    }
    /// To the first record.
    pub fn first(&mut self) -> Option<(RecordId, Doc<'a>)> {
        let found = self.cursor.first();
        self.arrived(found)
    }
    /// To the last record.
    pub fn last(&mut self) -> Option<(RecordId, Doc<'a>)> {
        let found = self.cursor.last();
        self.arrived(found)
    }
    /// To the next record; at first to the first.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<(RecordId, Doc<'a>)> {
        let found = self.cursor.next();
        self.arrived(found)
    }
    /// To the previous record.
    pub fn prev(&mut self) -> Option<(RecordId, Doc<'a>)> {
        let found = self.cursor.prev();
        self.arrived(found)
    }
    fn arrived(&self, found: bool) -> Option<(RecordId, Doc<'a>)> {
        if found { self.record() } else { None }
    }
}
