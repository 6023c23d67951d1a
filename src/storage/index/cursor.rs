//! Walking an index in key order, from either end, resumable by key.

use crate::RecordId;
use crate::tree::Cursor;

/// Bytes of a record id in a tree key or value.
const RID: usize = 8;

/// One entry of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry<'a> {
    /// The encoded components, without the record id.
    pub key: &'a [u8],
    /// The record it leads to.
    pub record: RecordId,
}

/// A position in an index. Every method that moves answers the entry arrived at, or `None` past the end.
pub struct IndexCursor<'a> {
    cursor: Cursor<'a>,
    unique: bool,
}

impl<'a> IndexCursor<'a> {
    pub(crate) fn new(cursor: Cursor<'a>, unique: bool) -> IndexCursor<'a> {
        IndexCursor { cursor, unique }
    }

    /// The entry at the position.
    pub fn entry(&self) -> Option<IndexEntry<'a>> {
        let (key, value) = self.cursor.entry()?;
        if self.unique {
            return Some(IndexEntry { key, record: read_record_id(value)? });
        }
        let (key, record) = key.split_at(key.len().checked_sub(RID)?);
        Some(IndexEntry { key, record: read_record_id(record)? })
    }

    /// To the first entry with a key at or above `bound`, which may be any bytes.
    pub fn seek(&mut self, bound: &[u8]) -> Option<IndexEntry<'a>> {
        self.arrived_if(|c| c.seek(bound))
    }

    /// To the last entry with a key below `bound`, which may be any bytes; with [`prefix_end`] of a key: to its last.
    pub fn seek_before(&mut self, bound: &[u8]) -> Option<IndexEntry<'a>> {
        if !self.cursor.seek_for_prev(bound) {
            return None;
        }
        match self.cursor.key() {
            Some(key) if key == bound => self.prev(),
            _ => self.entry(),
        }
    }

    /// To the first entry after (`key`, `record`), whether or not that is still there: resumes a forward scan.
    pub fn seek_after(&mut self, key: &[u8], record: RecordId) -> Option<IndexEntry<'a>> {
        let position = self.position(key, record);
        if !self.cursor.seek(&position) {
            return None;
        }
        match self.cursor.key() {
            Some(key) if key == position => self.next(),
            _ => self.entry(),
        }
    }

    /// To the last entry before (`key`, `record`), whether or not that is still there: resumes a backward scan.
    pub fn seek_before_entry(&mut self, key: &[u8], record: RecordId) -> Option<IndexEntry<'a>> {
        let position = self.position(key, record);
        self.seek_before(&position)
    }

    /// To the entry of (`key`, `record`), if it is there.
    pub fn seek_entry(&mut self, key: &[u8], record: RecordId) -> bool {
        let position = self.position(key, record);
        self.seek(&position).is_some_and(|e| (e.key, e.record) == (key, record))
    }

    /// To the first entry.
    pub fn first(&mut self) -> Option<IndexEntry<'a>> {
        self.arrived_if(|c| c.first())
    }

    /// To the last entry.
    pub fn last(&mut self) -> Option<IndexEntry<'a>> {
        self.arrived_if(|c| c.last())
    }

    /// To the next entry.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<IndexEntry<'a>> {
        self.arrived_if(|c| c.next())
    }

    /// To the previous entry.
    pub fn prev(&mut self) -> Option<IndexEntry<'a>> {
        self.arrived_if(|c| c.prev())
    }

    fn arrived_if(&mut self, step: impl FnOnce(&mut Cursor<'a>) -> bool) -> Option<IndexEntry<'a>> {
        if step(&mut self.cursor) { self.entry() } else { None }
    }

    fn position(&self, key: &[u8], record: RecordId) -> Vec<u8> {
        let mut position = Vec::with_capacity(key.len() + RID);
        position.extend_from_slice(key);
        if !self.unique {
            position.extend_from_slice(&record.to_be_bytes());
        }
        position
    }
}

pub(crate) fn read_record_id(bytes: &[u8]) -> Option<RecordId> {
    Some(RecordId::from_be_bytes(bytes.try_into().ok()?))
}

/// The least bytes above everything that begins with `prefix`; `None` when nothing is above (all 0xFF, or empty).
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|b| *b != 0xFF)?;
    let mut end = prefix[..=keep].to_vec();
    end[keep] += 1;
    Some(end)
}
