//! Persistent (copy-on-write) B+tree: O(1) snapshots, writable branches, difference of two snapshots.
#![allow(unused_variables)]

use std::marker::PhantomData;
use std::ops::Bound;

/// A writable line of versions. Keys are any bytes ordered by memcmp; values are up to 64 MiB.
pub struct Tree {}

/// A frozen root, counted and cheap to clone; it may outlive its tree and be read from any thread.
#[derive(Clone)]
pub struct Snapshot {}

/// A position in a tree or snapshot.
pub struct Cursor<'a> {
    of: PhantomData<&'a ()>,
}

/// The entries of a key range, in order, from either end.
pub struct Range<'a> {
    of: PhantomData<&'a ()>,
}

/// The changes between two snapshots, in key order.
pub struct Difference<'a> {
    of: PhantomData<&'a ()>,
}

/// One key whose value differs between two snapshots; at least one side is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    pub key: &'a [u8],
    pub before: Option<&'a [u8]>,
    pub after: Option<&'a [u8]>,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree::new()
    }
}

impl Tree {
    pub fn new() -> Tree {
        todo!()
    }
    pub fn len(&self) -> usize {
        todo!()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The sum of the lengths of the values.
    pub fn value_bytes(&self) -> u64 {
        todo!()
    }
    /// The sum of the lengths of the keys.
    pub fn key_bytes(&self) -> u64 {
        todo!()
    }
    /// Bytes held by nodes and records of this line, superseded ones that a snapshot keeps included.
    pub fn allocated_bytes(&self) -> u64 {
        todo!()
    }
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        todo!()
    }
    /// Puts one entry; true when an existing value was replaced. Ascending keys fill leaves completely.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> bool {
        self.insert_parts(key, &[value])
    }
    /// As [`Tree::insert`], the value being the concatenation of `parts`.
    pub fn insert_parts(&mut self, key: &[u8], parts: &[&[u8]]) -> bool {
        todo!()
    }
    /// True when the key was present.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        todo!()
    }
    /// A cursor before the first entry.
    pub fn cursor(&self) -> Cursor<'_> {
        todo!()
    }
    pub fn range<'a>(&'a self, lo: Bound<&[u8]>, hi: Bound<&[u8]>) -> Range<'a> {
        todo!()
    }
    /// Freezes what the tree holds now, in O(1).
    pub fn snapshot(&self) -> Snapshot {
        todo!()
    }
    /// Puts an old root back.
    pub fn replace_root(&mut self, s: &Snapshot) {
        todo!()
    }
    /// A tree of the entries, which must come in strictly ascending key order.
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(entries: impl IntoIterator<Item = (K, V)>) -> Tree {
        let mut tree = Tree::new();
        for (key, value) in entries {
            tree.insert(key.as_ref(), value.as_ref());
        }
        tree
    }
}

impl Snapshot {
    pub fn len(&self) -> usize {
        todo!()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub fn value_bytes(&self) -> u64 {
        todo!()
    }
    pub fn key_bytes(&self) -> u64 {
        todo!()
    }
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        todo!()
    }
    pub fn cursor(&self) -> Cursor<'_> {
        todo!()
    }
    pub fn range<'a>(&'a self, lo: Bound<&[u8]>, hi: Bound<&[u8]>) -> Range<'a> {
        todo!()
    }
    /// A writable tree that starts as this snapshot and pins it.
    pub fn branch(&self) -> Tree {
        todo!()
    }
}

impl<'a> Cursor<'a> {
    /// Goes to the first entry whose key is >= `key`; true when there is one.
    pub fn seek(&mut self, key: &[u8]) -> bool {
        todo!()
    }
    /// Goes to the last entry whose key is <= `key`; true when there is one.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> bool {
        todo!()
    }
    pub fn first(&mut self) -> bool {
        todo!()
    }
    pub fn last(&mut self) -> bool {
        todo!()
    }
    /// To the next entry; from before the first to the first. True when on an entry.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> bool {
        todo!()
    }
    /// To the previous entry; from after the last to the last. True when on an entry.
    pub fn prev(&mut self) -> bool {
        todo!()
    }
    pub fn key(&self) -> Option<&'a [u8]> {
        todo!()
    }
    pub fn value(&self) -> Option<&'a [u8]> {
        todo!()
    }
    pub fn entry(&self) -> Option<(&'a [u8], &'a [u8])> {
        todo!()
    }
}

impl<'a> Iterator for Range<'a> {
    type Item = (&'a [u8], &'a [u8]);
    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        todo!()
    }
}

impl<'a> Iterator for Difference<'a> {
    type Item = Change<'a>;
    fn next(&mut self) -> Option<Change<'a>> {
        todo!()
    }
}

/// What changed from `before` to `after` within the bounds, in key order, skipping everything the two share.
pub fn difference<'a>(
    before: &'a Snapshot,
    after: &'a Snapshot,
    lo: Bound<&[u8]>,
    hi: Bound<&[u8]>,
) -> Difference<'a> {
    todo!()
}
