//! One collection: its records and its indexes, changed together.
//!
//! A change has two halves. *Prepare* reads only and does all that may fail: it computes the keys of the document in
//! every index and finds keys that are taken. *Apply* edits the trees by the plan and cannot fail, so that between the
//! first edit and the append to the log nothing can go wrong. Both happen under the latch of the namespace, which the
//! caller holds; a plan is good only until the next change of the collection.

use std::sync::Arc;

use document::{Collation, Doc, Document, Result, Value, ValueRef, bail, err};

use crate::catalog::CollectionMeta;
use crate::index::fill::{Unfilled, fill};
use crate::index::keys::{Computed, KeyBuffer, KeySource, Keys, same_at_paths};
use crate::index::{
    Index, IndexCursor, IndexInfo, IndexSpec, Met, SpecConflict, conflict, duplicate_key, read_record_id,
};
use crate::record_store::{ChangeTable, RecordCursor, RecordId, RecordStore};
use crate::snapshot::{CollectionSnapshot, CollectionView};
use crate::tree::Tree;

/// The most indexes a collection may have.
pub const MAX_INDEXES: usize = 64;

/// A live collection. Reading takes `&self`, writing `&mut self`; the latch that makes this so is the caller's.
pub struct Collection {
    meta: Arc<CollectionMeta>,
    records: RecordStore,
    indexes: Vec<Index>,
    /// See [`Collection::defer_indexes`].
    deferred: bool,
    /// Reused by deletes.
    scratch: KeyBuffer,
    /// The default, of which the index on `_id` is.
    collation: Collation,
}

/// What an insert will put into the indexes.
#[derive(Clone, Debug, Default)]
pub struct InsertPlan {
    added: KeyBuffer,
    met: Vec<(usize, Met)>,
}

/// What an update will take out of the indexes and put into them.
#[derive(Clone, Debug, Default)]
pub struct UpdatePlan {
    removed: KeyBuffer,
    added: KeyBuffer,
    met: Vec<(usize, Met)>,
}

impl InsertPlan {
    /// The keys that will be added: slot of the index and encoded key.
    pub fn added(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.added.iter()
    }
}

impl UpdatePlan {
    /// The keys that will be added: slot of the index and encoded key.
    pub fn added(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.added.iter()
    }
    /// The keys that will be removed: slot of the index and encoded key.
    pub fn removed(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.removed.iter()
    }
    /// Whether no index changes.
    pub fn leaves_indexes(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

/// A collection frozen for a checkpoint.
pub struct FrozenCollection {
    /// Its state.
    pub snapshot: CollectionSnapshot,
    pub(crate) changes: ChangeTable,
}

impl Collection {
    /// An empty collection, with the index on `_id` unless `meta` says otherwise.
    pub fn new(meta: CollectionMeta) -> Collection {
        let collation = meta.collation();
        let indexes = match meta.clustered() {
            Some(definition) => {
                vec![Index::new(IndexSpec::clustered(&collation, definition.get_str("name")))]
            }
            None if meta.id_index => vec![Index::new(IndexSpec::id(&collation))],
            None => Vec::new(),
        };
        Collection {
            collation,
            meta: Arc::new(meta),
            records: RecordStore::new(),
            indexes,
            deferred: false,
            scratch: KeyBuffer::default(),
        }
    }

    pub(crate) fn branch_of(snapshot: &CollectionSnapshot) -> Collection {
        let index =
            |i: &crate::index::IndexSnapshot| Index { info: Arc::clone(&i.info), tree: i.tree.branch() };
        Collection {
            collation: snapshot.meta.collation(),
            meta: Arc::clone(&snapshot.meta),
            records: RecordStore::branch(&snapshot.records, snapshot.next_record),
            indexes: snapshot.indexes.iter().map(index).collect(),
            deferred: snapshot.maintained < snapshot.indexes.len(),
            scratch: KeyBuffer::default(),
        }
    }

    /// Namespace, UUID, options.
    pub fn meta(&self) -> &CollectionMeta {
        &self.meta
    }
    /// The default collation.
    pub fn collation(&self) -> &Collation {
        &self.collation
    }
    /// The namespace.
    pub fn ns(&self) -> &str {
        &self.meta.ns
    }
    /// The UUID.
    pub fn uuid(&self) -> [u8; 16] {
        self.meta.uuid
    }
    /// The number of documents.
    pub fn len(&self) -> usize {
        self.records.len()
    }
    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.records.len() == 0
    }
    /// The bytes of all documents.
    pub fn data_bytes(&self) -> u64 {
        self.records.bytes()
    }
    /// The bytes of keys and record ids of all indexes.
    pub fn index_bytes(&self) -> u64 {
        self.indexes.iter().map(Index::bytes).sum()
    }
    /// Memory held by records and indexes, superseded versions that snapshots keep included.
    pub fn allocated_bytes(&self) -> u64 {
        self.records.allocated_bytes() + self.indexes.iter().map(|i| i.tree.allocated_bytes()).sum::<u64>()
    }
    /// Bytes of versions that are none of the present any more: snapshots keep them.
    pub fn superseded_bytes(&self) -> u64 {
        self.records.superseded_bytes() + self.indexes.iter().map(|i| i.tree.superseded_bytes()).sum::<u64>()
    }
    /// The document at `record`.
    pub fn get(&self, record: RecordId) -> Option<Doc<'_>> {
        self.records.get(record)
    }
    /// The record id that the next insert will be given.
    pub fn next_record(&self) -> RecordId {
        self.records.next_id()
    }
    /// The document with this `_id`, in the collection's collation.
    pub fn find_id(&self, id: ValueRef<'_>) -> Option<(RecordId, Doc<'_>)> {
        let record = self.record_of_id(id)?;
        Some((record, self.get(record)?))
    }
    /// Where the document with this `_id` is.
    pub fn record_of_id(&self, id: ValueRef<'_>) -> Option<RecordId> {
        match self.indexes.first() {
            Some(index) if index.spec().is_id() => {
                let mut key = Vec::with_capacity(24);
                index.spec().collation().append_key(&mut key, id, false);
                read_record_id(index.tree.get(&key)?)
            }
            _ => CollectionView::find_id(self, id).map(|(record, _)| record),
        }
    }
    /// The indexes in the order of their creation.
    pub fn indexes(&self) -> &[Index] {
        &self.indexes[..self.maintained()]
    }
    /// The indexes and those that are known and not built ([`Collection::defer_indexes`]).
    pub(crate) fn known_indexes(&self) -> &[Index] {
        &self.indexes
    }
    /// Whether scans follow the index on `_id`.
    pub fn is_clustered(&self) -> bool {
        self.indexes.first().is_some_and(|i| i.spec().is_clustered())
    }
    /// How many indexes users count: a clustered one is no index beside the collection.
    pub fn indexes_beside(&self) -> usize {
        self.maintained() - usize::from(self.is_clustered())
    }
    /// The index called `name`.
    pub fn index(&self, name: &str) -> Option<&Index> {
        self.indexes().iter().find(|i| i.spec().name() == name)
    }
    /// Freezes records and indexes; O(number of indexes).
    pub fn snapshot(&self) -> CollectionSnapshot {
        CollectionSnapshot {
            meta: Arc::clone(&self.meta),
            records: self.records.snapshot(),
            indexes: self.indexes.iter().map(Index::snapshot).collect(),
            maintained: self.maintained(),
            next_record: self.records.next_id(),
        }
    }
    /// A copy under another namespace and UUID, which shares with this one what neither changes; O(number of indexes).
    pub fn fork(&self, ns: &str, uuid: [u8; 16]) -> Collection {
        let index = |i: &Index| Index { info: Arc::clone(&i.info), tree: i.snapshot().tree.branch() };
        let mut meta = CollectionMeta::clone(&self.meta);
        (meta.ns, meta.uuid) = (ns.to_string(), uuid);
        Collection {
            collation: self.collation.clone(),
            meta: Arc::new(meta),
            records: self.records.fork(),
            indexes: self.indexes.iter().map(index).collect(),
            deferred: self.deferred,
            scratch: KeyBuffer::default(),
        }
    }
    /// Puts everything back to `snapshot`, which was taken of this collection and has the indexes it has now. The record
    /// ids given since are given again: nothing of what used them was logged.
    pub fn restore(&mut self, snapshot: &CollectionSnapshot) {
        self.records.restore(&snapshot.records, snapshot.next_record);
        for (index, before) in self.indexes.iter_mut().zip(&snapshot.indexes) {
            index.info = Arc::clone(&before.info);
            index.tree.replace_root(&before.tree);
        }
    }
    /// Freezes for a checkpoint, to be called under the exclusive gate.
    pub fn freeze(&self) -> FrozenCollection {
        FrozenCollection { snapshot: self.snapshot(), changes: self.records.changes().clone() }
    }

    /// The keys of `doc` in all indexes that cover it. Errors: those of the source.
    fn keys_of(&self, doc: Doc<'_>, keys: Keys, source: &dyn KeySource, plan: &mut InsertPlan) -> Result<()> {
        for (slot, index) in self.indexes.iter().take(self.maintained()).enumerate() {
            if index.spec().covers(doc) {
                let met = source.keys(index.asked(doc, keys), slot, &mut plan.added)?;
                if !index.info().met.holds(&met) {
                    plan.met.push((slot, met));
                }
            }
        }
        Ok(())
    }

    /// The keys of `doc` in the unique indexes, as (slot, encoded key): what a transaction locks next to the record.
    pub fn unique_keys(
        &self,
        doc: Doc<'_>,
        keys: Keys,
        source: &dyn KeySource,
    ) -> Result<Vec<(usize, Vec<u8>)>> {
        let mut out = KeyBuffer::default();
        for (slot, index) in self.indexes.iter().take(self.maintained()).enumerate() {
            if index.spec().unique() && index.spec().covers(doc) {
                source.keys(index.asked(doc, keys), slot, &mut out)?;
            }
        }
        Ok(out.iter().map(|(slot, key)| (slot, key.to_vec())).collect())
    }

    /// Plans putting in a document that was accepted before. Errors: DuplicateKey (11000), and what the keys of the document may give
    /// (171, 16766, 16746).
    pub fn prepare_insert(&self, doc: Doc<'_>) -> Result<InsertPlan> {
        let mut plan = InsertPlan::default();
        self.prepare_insert_into(doc, Keys::Accepted, &Computed, &mut plan)?;
        Ok(plan)
    }

    /// The same, reusing the memory of an old plan. Of a document that is offered the keys may be too many (201, 16732, 16733); moreover the
    /// errors of the source.
    pub fn prepare_insert_into(
        &self,
        doc: Doc<'_>,
        keys: Keys,
        source: &dyn KeySource,
        plan: &mut InsertPlan,
    ) -> Result<()> {
        plan.added.clear();
        plan.met.clear();
        self.keys_of(doc, keys, source, plan)?;
        if self.is_clustered() {
            check_record_id(doc)?;
        }
        self.check_unique(&plan.added, doc, None)
    }

    fn check_unique(&self, added: &KeyBuffer, doc: Doc<'_>, own: Option<RecordId>) -> Result<()> {
        for key in &added.keys {
            let index = &self.indexes[key.slot];
            let bytes = added.key(*key);
            let taken = if index.spec().unique() {
                index.tree.get(bytes).and_then(read_record_id).is_some_and(|r| Some(r) != own)
            } else {
                index.spec().prepare_unique() && has_other(index, bytes, own)
            };
            if taken {
                return Err(match index.spec().is_clustered() {
                    true => duplicate_record_id(self.ns(), index.spec(), doc, bytes),
                    false => duplicate_key(self.ns(), index.spec(), doc, bytes),
                });
            }
        }
        Ok(())
    }

    /// Puts the document of the plan and answers its record id.
    pub fn insert(&mut self, mut plan: InsertPlan, doc: Doc<'_>) -> RecordId {
        self.insert_with(&mut plan, doc)
    }

    /// As [`Collection::insert`], leaving the plan's memory to the caller.
    pub fn insert_with(&mut self, plan: &mut InsertPlan, doc: Doc<'_>) -> RecordId {
        let record = self.records.append(doc);
        add_keys(&mut self.indexes, &mut plan.added, record);
        self.note_met(&plan.met);
        record
    }

    /// Plans replacing the document at `record` by `new`, the whole new document. Indexes whose paths hold the same
    /// bytes in both are left alone. Errors as [`Collection::prepare_insert`]; NoMatchingDocument-like misuse (an
    /// absent record) is InternalError.
    pub fn prepare_update(&self, record: RecordId, new: Doc<'_>) -> Result<UpdatePlan> {
        let Some(old) = self.get(record) else {
            bail!(INTERNAL_ERROR, "record {record} is not in {}", self.ns())
        };
        self.prepare_update_of(record, (old, new), Keys::Accepted, &Computed)
    }

    /// As [`Collection::prepare_update`], `old` being the document at `record`. Errors as [`Collection::prepare_insert_into`].
    pub fn prepare_update_of(
        &self,
        record: RecordId,
        (old, new): (Doc<'_>, Doc<'_>),
        keys: Keys,
        source: &dyn KeySource,
    ) -> Result<UpdatePlan> {
        let mut plan = UpdatePlan::default();
        let (mut before, mut after) = (KeyBuffer::default(), KeyBuffer::default());
        for (slot, index) in self.indexes.iter().take(self.maintained()).enumerate() {
            let spec = index.spec();
            let (was, will) = (spec.covers(old), spec.covers(new));
            if was == will && (!will || same_at_paths(spec, old, new)) {
                continue;
            }
            before.clear();
            after.clear();
            if was
                && will
                && let Some(met) = after.append_grown_keys(slot, spec, (old, new), keys)?
            {
                if !index.info().met.holds(&met) {
                    plan.met.push((slot, met));
                }
                missing(index, &mut after, record, &mut plan.added);
                continue;
            }
            if was {
                source.keys(index.asked(old, Keys::Accepted), slot, &mut before)?;
            }
            if will {
                let met = source.keys(index.asked(new, keys), slot, &mut after)?;
                if !index.info().met.holds(&met) {
                    plan.met.push((slot, met));
                }
            }
            subtract(&before, &after, &mut plan.removed);
            subtract(&after, &before, &mut plan.added);
        }
        self.check_unique(&plan.added, new, Some(record))?;
        Ok(plan)
    }

    /// Replaces the document at `record`.
    pub fn update(&mut self, record: RecordId, mut plan: UpdatePlan, new: Doc<'_>) {
        remove_keys(&mut self.indexes, &mut plan.removed, record);
        add_keys(&mut self.indexes, &mut plan.added, record);
        self.note_met(&plan.met);
        self.records.replace(record, new);
    }

    /// Plans removing the document: its keys, in place of what is in `plan`. Errors: those of the source.
    pub fn prepare_delete(&self, doc: Doc<'_>, source: &dyn KeySource, plan: &mut KeyBuffer) -> Result<()> {
        plan.clear();
        for (slot, index) in self.indexes.iter().take(self.maintained()).enumerate() {
            if index.spec().covers(doc) {
                source.keys(index.asked(doc, Keys::Accepted), slot, plan)?;
            }
        }
        Ok(())
    }

    /// Removes the document at `record`, which has the keys of the plan; false when there is none.
    pub fn delete_with(&mut self, record: RecordId, plan: &mut KeyBuffer) -> bool {
        remove_keys(&mut self.indexes, plan, record);
        self.records.remove(record)
    }

    /// Removes the document at `record`; false when there is none.
    pub fn delete(&mut self, record: RecordId) -> bool {
        let Some(doc) = self.records.get(record) else { return false };
        let mut plan = std::mem::take(&mut self.scratch);
        // The same keys were computed without an error when the document was written.
        let computed = self.prepare_delete(doc, &Computed, &mut plan);
        debug_assert!(computed.is_ok());
        let removed = self.delete_with(record, &mut plan);
        self.scratch = plan;
        removed
    }

    fn note_met(&mut self, news: &[(usize, Met)]) {
        for (slot, met) in news {
            self.indexes[*slot].note(met);
        }
    }

    /// Whether an index may be added: `Identical` when it is there already. Errors: 85, 86, and CannotCreateIndex (67)
    /// when there are too many.
    pub fn check_index(&self, spec: &IndexSpec) -> Result<SpecConflict> {
        for existing in &self.indexes {
            if conflict(spec, existing.spec())? == SpecConflict::Identical {
                return Ok(SpecConflict::Identical);
            }
        }
        if self.indexes.len() >= MAX_INDEXES {
            let key = document::shell::document(spec.key());
            bail!(CANNOT_CREATE_INDEX, "add index fails, too many indexes for {} key:{key}", self.ns());
        }
        Ok(SpecConflict::None)
    }

    /// Adds an index over the documents that are there, at once; false when an identical one exists. For collections
    /// that are not small use [`crate::index::IndexBuild`]. Errors: as [`Collection::check_index`] and
    /// [`Collection::prepare_insert`]; on an error nothing has changed.
    pub fn create_index(&mut self, spec: IndexSpec) -> Result<bool> {
        self.add_index(spec, Keys::Accepted)
    }

    /// As [`Collection::create_index`], of an index that may be offered: then a document's keys in it may be too many.
    pub fn add_index(&mut self, spec: IndexSpec, keys: Keys) -> Result<bool> {
        if self.check_index(&spec)? == SpecConflict::Identical {
            return Ok(false);
        }
        let slot = self.indexes.len();
        self.indexes.push(Index::new(spec));
        if slot < self.maintained()
            && let Err(error) = self.fill_indexes(slot, keys)
        {
            self.indexes.truncate(slot);
            return Err(error);
        }
        Ok(true)
    }

    /// Fills the indexes that are maintained, from slot `first` on, which are empty. Uses all cores.
    fn fill_indexes(&mut self, first: usize, keys: Keys) -> Result<()> {
        let specs: Vec<Arc<IndexSpec>> =
            self.indexes[first..self.maintained()].iter().map(|i| Arc::clone(&i.info.spec)).collect();
        let filled = fill(&self.records.snapshot(), self.records.next_id(), &specs, keys);
        let filled = filled.map_err(|unfilled| match unfilled {
            Unfilled::Key(error) => error,
            Unfilled::Taken(at, key, record) => self.taken(&specs[at], &key, record),
        })?;
        for (index, filled) in self.indexes[first..].iter_mut().zip(filled) {
            index.tree = filled.tree;
            index.note(&filled.met);
        }
        Ok(())
    }

    /// How many of the indexes follow the documents: all, but only the one on `_id` while a log is replayed, and on a member that
    /// builds no others.
    fn maintained(&self) -> usize {
        if self.deferred { 1 } else { self.indexes.len() }
    }

    /// From now on only the index on `_id` is maintained, where there is one, until [`Collection::catch_up_indexes`]. The
    /// others are known, so that what is said of them later fits, and empty.
    pub fn defer_indexes(&mut self) {
        if self.deferred || !self.indexes.first().is_some_and(|i| i.spec().is_id()) {
            return;
        }
        self.deferred = true;
        for index in &mut self.indexes[1..] {
            *index = Index::new(Arc::clone(&index.info.spec));
        }
    }

    /// Fills the indexes that were not maintained, and maintains all again.
    pub fn catch_up_indexes(&mut self) -> Result<()> {
        match std::mem::take(&mut self.deferred) {
            true => self.fill_indexes(1, Keys::Accepted),
            false => Ok(()),
        }
    }

    fn taken(&self, spec: &IndexSpec, key: &[u8], record: RecordId) -> document::Error {
        match self.get(record) {
            Some(doc) => duplicate_key(self.ns(), spec, doc, key),
            None => err!(INTERNAL_ERROR, "record {record} is not in {}", self.ns()),
        }
    }

    pub(crate) fn publish_index(&mut self, index: Index) {
        self.indexes.push(index);
    }

    /// Removes the index called `name` and answers its definition. Errors: IndexNotFound (27), and InvalidOptions (72)
    /// for the index on `_id`.
    pub fn drop_index(&mut self, name: &str) -> Result<IndexSpec> {
        let Some(slot) = self.indexes.iter().position(|i| i.spec().name() == name) else {
            bail!(INDEX_NOT_FOUND, "index not found with name [{name}]");
        };
        if self.indexes[slot].spec().is_clustered() {
            bail!(5979800, "It is illegal to drop the clusteredIndex");
        }
        if self.indexes[slot].spec().is_id() {
            bail!(INVALID_OPTIONS, "cannot drop _id index");
        }
        Ok(Arc::unwrap_or_clone(Arc::unwrap_or_clone(self.indexes.remove(slot).info).spec))
    }

    /// Sets (`None`: removes) an option of an index that leaves its entries as they are: `hidden`,
    /// `expireAfterSeconds`, `prepareUnique`. Error: IndexNotFound (27).
    pub fn set_index_option(&mut self, name: &str, option: &str, value: Option<Value>) -> Result<()> {
        let Some(index) = self.indexes.iter_mut().find(|i| i.info.spec.name() == name) else {
            bail!(INDEX_NOT_FOUND, "cannot find index {name} for ns {}", self.meta.ns);
        };
        Arc::make_mut(&mut Arc::make_mut(&mut index.info).spec).set_option(option, value);
        Ok(())
    }

    /// Makes an index unique. Errors: IndexNotFound (27), CannotConvertIndexToUnique (359) with `violations`, lists of
    /// the `_id`s that share a key.
    pub fn make_index_unique(&mut self, name: &str) -> Result<()> {
        let Some(slot) = self.indexes.iter().position(|i| i.info.spec.name() == name) else {
            bail!(INDEX_NOT_FOUND, "cannot find index {name} for ns {}", self.meta.ns);
        };
        if self.indexes[slot].spec().unique() {
            return Ok(());
        }
        self.refuse_violations(slot)?;
        let mut tree = Tree::new();
        let mut cursor = self.indexes[slot].cursor();
        while let Some(entry) = cursor.next() {
            tree.insert(entry.key, &entry.record.to_be_bytes());
        }
        let index = &mut self.indexes[slot];
        index.tree = tree;
        Arc::make_mut(&mut Arc::make_mut(&mut index.info).spec).set_unique();
        Ok(())
    }

    /// Refuses what [`Collection::make_index_unique`] would, and changes nothing.
    pub fn check_index_can_be_unique(&self, name: &str) -> Result<()> {
        match self.indexes.iter().position(|i| i.info.spec.name() == name) {
            Some(slot) if !self.indexes[slot].spec().unique() => self.refuse_violations(slot),
            _ => Ok(()),
        }
    }

    fn refuse_violations(&self, slot: usize) -> Result<()> {
        let mut violations = Vec::new();
        let mut group: Vec<RecordId> = Vec::new();
        let mut last: Option<&[u8]> = None;
        let mut cursor = self.indexes[slot].cursor();
        loop {
            let entry = cursor.next();
            if entry.map(|e| e.key) != last {
                if group.len() > 1 {
                    let id = |r: &RecordId| self.get(*r).and_then(|d| d.get("_id")).map(|v| v.to_value());
                    violations.push(document::doc! {
                        "ids": Value::Array(group.iter().filter_map(id).collect())
                    });
                }
                group.clear();
            }
            let Some(entry) = entry else { break };
            last = Some(entry.key);
            group.push(entry.record);
        }
        if violations.is_empty() {
            return Ok(());
        }
        let mut info = Document::new();
        info.push("violations", violations);
        let error = err!(
            CANNOT_CONVERT_INDEX_TO_UNIQUE,
            "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again."
        );
        Err(error.with_info(info))
    }

    /// Gives the collection another namespace.
    pub fn rename(&mut self, ns: impl Into<String>) {
        Arc::make_mut(&mut self.meta).ns = ns.into();
    }
    /// Replaces the options.
    pub fn set_options(&mut self, options: Document) {
        Arc::make_mut(&mut self.meta).options = options;
    }
    /// Removes all documents and keeps the indexes.
    pub fn clear(&mut self) {
        while let Some((record, _)) = self.records.cursor().first() {
            self.delete(record);
        }
    }

    pub(crate) fn changes(&self) -> &ChangeTable {
        self.records.changes()
    }
    /// Takes in a record as it is, past the indexes: for images and copies, followed by [`Self::rebuild_indexes`].
    pub fn load_record(&mut self, record: RecordId, doc: &[u8]) {
        self.records.load(record, doc);
    }
    /// The id of the next record.
    pub fn set_next_record(&mut self, next: RecordId) {
        self.records.set_next_id(next);
    }
    /// Gives an empty collection the indexes of an image, and defers what can be.
    pub(crate) fn expect_indexes(&mut self, specs: Vec<IndexSpec>) {
        self.indexes = specs.into_iter().map(Index::new).collect();
        self.defer_indexes();
    }
    /// Fills the maintained indexes from loaded records.
    pub(crate) fn fill_maintained(&mut self) -> Result<()> {
        self.fill_indexes(0, Keys::Accepted)
    }
    /// Fills the indexes from loaded records: `specs` replace those the collection has, all of them or the one on `_id`.
    pub fn rebuild_indexes(&mut self, specs: Vec<IndexSpec>, all: bool) -> Result<()> {
        self.expect_indexes(specs);
        self.deferred &= !all;
        self.fill_maintained()
    }
}

impl CollectionView for Collection {
    fn meta(&self) -> &CollectionMeta {
        &self.meta
    }
    fn get(&self, record: RecordId) -> Option<Doc<'_>> {
        self.records.get(record)
    }
    fn len(&self) -> usize {
        self.records.len()
    }
    fn data_bytes(&self) -> u64 {
        self.records.bytes()
    }
    fn records(&self) -> RecordCursor<'_> {
        self.records.cursor()
    }
    fn index_count(&self) -> usize {
        self.maintained()
    }
    fn index_info(&self, slot: usize) -> Option<&IndexInfo> {
        self.indexes().get(slot).map(Index::info)
    }
    fn index_cursor(&self, slot: usize) -> Option<IndexCursor<'_>> {
        self.indexes().get(slot).map(Index::cursor)
    }
}

/// The most bytes that `_id` may take in a clustered collection, encoded.
const RECORD_ID_BYTES_MAX: usize = 8 * 1024 * 1024;

/// # Errors
/// 5894900 for an `_id` that is too long.
fn check_record_id(doc: Doc<'_>) -> Result<()> {
    // What a string and binary data take beyond their bytes; nothing else comes near the limit unless it holds such.
    let bytes = match doc.get("_id") {
        Some(ValueRef::String(s)) => s.len() + 2,
        Some(ValueRef::Binary(_, bytes)) => bytes.len() + 7,
        Some(ValueRef::Document(d)) => d.bytes().len(),
        _ => 0,
    };
    if bytes > RECORD_ID_BYTES_MAX {
        bail!(
            5894900,
            "RecordId is larger than allowed: the key of the clustered index has {bytes} bytes, {RECORD_ID_BYTES_MAX} are allowed"
        );
    }
    Ok(())
}

/// DuplicateKey (11000) for an `_id` that is taken. Of numbers that are not finite the real server cannot tell the value,
/// and says so with codes of their own.
fn duplicate_record_id(ns: &str, spec: &IndexSpec, doc: Doc<'_>, key: &[u8]) -> document::Error {
    let number = doc.get("_id").and_then(|v| document::number::as_f64(&v.to_value()));
    match number {
        Some(n) if n.is_nan() => err!(50819, "Duplicate key in {ns}: _id is not a number"),
        Some(n) if n.is_infinite() => err!(50826, "Duplicate key in {ns}: _id is infinite"),
        _ => duplicate_key(ns, spec, doc, key),
    }
}

fn has_other(index: &Index, key: &[u8], own: Option<RecordId>) -> bool {
    let mut cursor = index.cursor();
    let mut entry = cursor.seek(key);
    while let Some(found) = entry.filter(|e| e.key == key) {
        if Some(found.record) != own {
            return true;
        }
        entry = cursor.next();
    }
    false
}

fn add_keys(indexes: &mut [Index], keys: &mut KeyBuffer, record: RecordId) {
    for at in 0..keys.keys.len() {
        let key = keys.keys[at];
        let index = &mut indexes[key.slot];
        if index.info.spec.unique() {
            index.tree.insert(keys.key(key), &record.to_be_bytes());
        } else {
            index.tree.insert(keys.key_with_record(key, record), &[]);
        }
    }
}

fn remove_keys(indexes: &mut [Index], keys: &mut KeyBuffer, record: RecordId) {
    for at in 0..keys.keys.len() {
        let key = keys.keys[at];
        let index = &mut indexes[key.slot];
        if index.info.spec.unique() {
            index.tree.remove(keys.key(key));
        } else {
            index.tree.remove(keys.key_with_record(key, record));
        }
    }
}

/// Appends to `out` the keys of `a` that are not in `b`. Both hold sorted keys of one index.
fn subtract(a: &KeyBuffer, b: &KeyBuffer, out: &mut KeyBuffer) {
    for key in &a.keys {
        let bytes = a.key(*key);
        if b.keys.binary_search_by(|k| b.key(*k).cmp(bytes)).is_err() {
            out.push(key.slot, bytes);
        }
    }
}

/// Appends to `out` those of a document's keys that the index, which is not unique, has not.
fn missing(index: &Index, keys: &mut KeyBuffer, record: RecordId, out: &mut KeyBuffer) {
    for at in 0..keys.keys.len() {
        let key = keys.keys[at];
        if index.tree.get(keys.key_with_record(key, record)).is_none() {
            out.push(key.slot, keys.key(key));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
