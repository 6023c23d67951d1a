//! Building an index while writes go on.
//!
//! ```text
//! start      under the latch: conflicts checked, a snapshot taken
//! scan       without the latch, in slices: the keys of the snapshot's documents
//! catch_up   any number of times, without the latch: the difference to a newer snapshot
//! finish     under the latch, exclusively: the last difference, then the index is published
//! ```
//!
//! Writers know nothing of it. Two documents may share a key of a unique index in a snapshot and no longer when the
//! build ends, so duplicates are set aside and only those left at the end fail the build.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use document::{Doc, Result, bail, err, meter};

use super::keys::{Computed, KeyBuffer, KeySource, Keys};
use super::{Index, IndexSpec, SpecConflict, duplicate_key, read_record_id};
use crate::collection::Collection;
use crate::record_store::RecordId;
use crate::snapshot::{CollectionSnapshot, CollectionView};
use crate::tree::difference;

/// An index that is being built.
pub struct IndexBuild {
    index: Index,
    base: CollectionSnapshot,
    /// The last record scanned.
    scanned: RecordId,
    complete: bool,
    /// Records whose key another record has taken in the tree of a unique index.
    duplicates: BTreeMap<Vec<u8>, BTreeSet<RecordId>>,
    /// Whether they may be too many.
    whose: Keys,
    keys: KeyBuffer,
}

impl IndexBuild {
    /// Begins; `None` when an identical index exists. A document's keys may be too many where they are offered. Errors: those of
    /// [`Collection::check_index`].
    pub fn start(collection: &Collection, spec: IndexSpec, whose: Keys) -> Result<Option<IndexBuild>> {
        if collection.check_index(&spec)? == SpecConflict::Identical {
            return Ok(None);
        }
        Ok(Some(IndexBuild {
            index: Index::new(spec),
            base: collection.snapshot(),
            scanned: 0,
            complete: false,
            duplicates: BTreeMap::new(),
            whose,
            keys: KeyBuffer::default(),
        }))
    }

    /// The definition of the index.
    pub fn spec(&self) -> &IndexSpec {
        self.index.spec()
    }

    /// Scans up to `records` documents; true when all are done. Errors: those that the keys of a document may give, and the overseer's.
    pub fn scan(&mut self, records: usize) -> Result<bool> {
        // After a catch-up the base holds records above the last one scanned, which are in the index already.
        if self.complete {
            return Ok(true);
        }
        let base = self.base.clone();
        let mut cursor = base.records();
        let mut at = cursor.seek(self.scanned + 1);
        for _ in 0..records {
            let Some((record, doc)) = at else {
                self.complete = true;
                break;
            };
            meter::spend(1)?;
            self.add(record, doc)?;
            self.scanned = record;
            at = cursor.next();
        }
        Ok(self.complete)
    }

    /// Applies what changed between the snapshot the build has come to and `newer`; answers how many records. Only after
    /// the scan is complete.
    pub fn catch_up(&mut self, newer: CollectionSnapshot) -> Result<usize> {
        if !self.complete {
            bail!(INTERNAL_ERROR, "index build of {} has not finished its scan", self.spec().name());
        }
        let base = self.base.clone();
        let mut changed = 0;
        for change in difference(base.record_tree(), newer.record_tree(), Bound::Unbounded, Bound::Unbounded)
        {
            let Some(record) = read_record_id(change.key) else { continue };
            if let Some(before) = change.before {
                self.remove(record, Doc::from_validated(before))?;
            }
            if let Some(after) = change.after {
                self.add(record, Doc::from_validated(after))?;
            }
            changed += 1;
        }
        self.base = newer;
        Ok(changed)
    }

    /// Catches up with the collection as it is, under its latch, and adds the index to it. Errors: DuplicateKey (11000),
    /// those of [`Collection::check_index`], and those of keys; then the collection is as before.
    pub fn finish(mut self, collection: &mut Collection) -> Result<()> {
        if self.base.meta().uuid != collection.uuid() {
            bail!(
                NAMESPACE_NOT_FOUND,
                "collection {} was dropped during the index build",
                self.base.meta().ns
            );
        }
        self.catch_up(collection.snapshot())?;
        if let Some((key, records)) = self.duplicates.first_key_value() {
            let doc = records.first().and_then(|r| collection.get(*r));
            return Err(match doc {
                Some(doc) => duplicate_key(collection.ns(), self.spec(), doc, key),
                None => err!(INTERNAL_ERROR, "a duplicate key without its document"),
            });
        }
        if collection.check_index(self.spec())? == SpecConflict::None {
            collection.publish_index(self.index);
        }
        Ok(())
    }

    fn add(&mut self, record: RecordId, doc: Doc<'_>) -> Result<()> {
        if !self.index.spec().covers(doc) {
            return Ok(());
        }
        self.keys.clear();
        let met = Computed.keys(self.index.asked(doc, self.whose), 0, &mut self.keys)?;
        self.index.note(&met);
        for at in 0..self.keys.len() {
            let key = self.keys.keys[at];
            if !self.index.spec().unique() {
                self.index.tree.insert(self.keys.key_with_record(key, record), &[]);
                continue;
            }
            let bytes = self.keys.key(key);
            if self.index.tree.get(bytes).is_some() {
                self.duplicates.entry(bytes.to_vec()).or_default().insert(record);
            } else {
                self.index.tree.insert(bytes, &record.to_be_bytes());
            }
        }
        Ok(())
    }

    fn remove(&mut self, record: RecordId, doc: Doc<'_>) -> Result<()> {
        if !self.index.spec().covers(doc) {
            return Ok(());
        }
        self.keys.clear();
        Computed.keys(self.index.asked(doc, Keys::Accepted), 0, &mut self.keys)?;
        for at in 0..self.keys.len() {
            let key = self.keys.keys[at];
            if self.index.spec().unique() {
                self.remove_unique(at, record);
            } else {
                self.index.tree.remove(self.keys.key_with_record(key, record));
            }
        }
        Ok(())
    }

    /// Takes (key, record) out of the tree, letting a duplicate in, or out of the duplicates.
    fn remove_unique(&mut self, at: usize, record: RecordId) {
        let key = self.keys.key(self.keys.keys[at]);
        let holder = self.index.tree.get(key).and_then(read_record_id);
        let others = self.duplicates.get_mut(key);
        if holder == Some(record) {
            match others.and_then(BTreeSet::pop_first) {
                Some(next) => self.index.tree.insert(key, &next.to_be_bytes()),
                None => self.index.tree.remove(key),
            };
        } else if let Some(others) = others {
            others.remove(&record);
        }
        if self.duplicates.get(key).is_some_and(BTreeSet::is_empty) {
            self.duplicates.remove(key);
        }
    }
}
