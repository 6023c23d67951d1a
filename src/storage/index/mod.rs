//! Indexes: what one is ([`IndexSpec`]), the keys a document has in it ([`keys`]), its tree ([`Index`]), building one
//! while writes go on ([`IndexBuild`]).
//!
//! A key is the concatenation of the [`document::key_string`] encodings of its components, so that byte order is index
//! order. A tree holds, for each key of each document:
//!
//! ```text
//! unique index        key                  -> record id, 8 bytes, big-endian
//! any other index     key, record id       -> (nothing)
//! ```
//!
//! so a unique index answers "is this key taken" by one lookup, and equal keys of other indexes stand in record order.
//! Components delimit themselves: no key is a proper prefix of another key of the same index.
//!
//! Index trees are not written to disk: they are rebuilt from the records when a node starts, so the encoding may
//! change between releases.

mod build;
mod check;
mod cursor;
mod duplicate;
pub(crate) mod fill;
pub mod keys;
mod places;
mod spec;
#[cfg(test)]
mod tests;
pub mod text;
pub mod wildcard;

pub use build::IndexBuild;
pub use check::KeysOfDocument;
pub(crate) use cursor::read_record_id;
pub use cursor::{IndexCursor, IndexEntry, prefix_end};
pub(crate) use duplicate::duplicate_key;
pub use keys::{Asked, Computed, KeyBuffer, KeySource, Keys, Met};
pub use spec::{
    FieldKind, IndexSpec, KeyField, MEASURED, PredicateFactory, SpecConflict, conflict, default_name,
    no_partial_indexes, validate_key_pattern,
};

use std::sync::Arc;

use document::Doc;

use crate::tree::{Snapshot, Tree};

/// The filter of a partial index: whether a document is in it. Storage does not know the query language.
pub type Predicate = Arc<dyn Fn(Doc<'_>) -> bool + Send + Sync>;

/// What is known of an index apart from its entries.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    /// Its definition, which is another one when anything of it changes.
    pub spec: Arc<IndexSpec>,
    /// What its documents have shown; never shrinks while the node runs.
    pub met: Met,
}

impl IndexInfo {
    /// Whether some document had more than one key, or an array, on an indexed path.
    pub fn multikey(&self) -> bool {
        self.met.multikey
    }
}

/// An index of a live collection.
pub struct Index {
    pub(crate) info: Arc<IndexInfo>,
    pub(crate) tree: Tree,
}

/// An index as it stood when its collection's snapshot was taken.
#[derive(Clone)]
pub struct IndexSnapshot {
    pub(crate) info: Arc<IndexInfo>,
    pub(crate) tree: Snapshot,
}

impl Index {
    pub(crate) fn new(spec: impl Into<Arc<IndexSpec>>) -> Index {
        let spec = spec.into();
        // A document has a key for each of its paths in a wildcard index.
        let multikey = spec.wildcard().is_some();
        let met = Met { multikey, ..Met::default() };
        Index { info: Arc::new(IndexInfo { spec, met }), tree: Tree::new() }
    }
    /// The definition.
    pub fn spec(&self) -> &IndexSpec {
        &self.info.spec
    }
    /// The question for a document's keys in it.
    pub(crate) fn asked<'a>(&'a self, doc: Doc<'a>, keys: Keys) -> Asked<'a> {
        Asked { spec: &self.info.spec, doc, keys }
    }
    /// See [`IndexInfo::multikey`].
    pub fn is_multikey(&self) -> bool {
        self.info.multikey()
    }
    /// Definition and flags.
    pub fn info(&self) -> &IndexInfo {
        &self.info
    }
    /// The number of keys.
    pub fn len(&self) -> usize {
        self.tree.len()
    }
    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }
    /// Bytes of keys and record ids.
    pub fn bytes(&self) -> u64 {
        self.tree.key_bytes() + self.tree.value_bytes()
    }
    /// A cursor before the first entry.
    pub fn cursor(&self) -> IndexCursor<'_> {
        IndexCursor::new(self.tree.cursor(), self.info.spec.unique())
    }
    pub(crate) fn snapshot(&self) -> IndexSnapshot {
        IndexSnapshot { info: Arc::clone(&self.info), tree: self.tree.snapshot() }
    }
    /// Takes note of what a document has shown.
    pub(crate) fn note(&mut self, met: &Met) {
        if !self.info.met.holds(met) {
            Arc::make_mut(&mut self.info).met.merge(met);
        }
    }
}

impl IndexSnapshot {
    /// Definition and flags.
    pub fn info(&self) -> &IndexInfo {
        &self.info
    }
    /// The number of keys.
    pub fn len(&self) -> usize {
        self.tree.len()
    }
    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }
    /// A cursor before the first entry.
    pub fn cursor(&self) -> IndexCursor<'_> {
        IndexCursor::new(self.tree.cursor(), self.info.spec.unique())
    }
}
