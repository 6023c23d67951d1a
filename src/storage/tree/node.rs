//! Nodes: layout, search inside a node, and the edits of an owned node.
//!
//! ```text
//! stamp u64 | count u16 | level u8 | skip u8 | last u8 | head [27] | prefixes [61] u64 | records [61] pointer
//!                                                               inner nodes only: | children [61] pointer
//! ```
//!
//! `level` is 0 for a leaf. The first `skip` bytes are common to all keys of the node and stand in `head`; a prefix is
//! the next 8 bytes of a key, big-endian, padded with zeros, so that comparing two prefixes orders the keys unless they
//! are equal; then the keys themselves are compared. 61 entries make a leaf 1,016 bytes, just inside the 1 KiB size
//! class of the usual allocators.
//!
//! An inner node of n children has separators at 1..n: child i holds the keys >= separator i and < separator i+1. Its
//! entry 0 has a child but no separator.
//!
//! Invariant: the entries below `count` point to live records and nodes as long as the node itself may be read. So a
//! `&Node` (made only by the unsafe [`NodePtr::get`]) is a promise for all that it reaches.

use super::line::Counters;
use super::record::RecordPtr;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cmp::Ordering;
use std::mem::offset_of;
use std::ptr::NonNull;

pub(super) const FANOUT: usize = 61;
/// The longest common prefix that a node strips.
const HEAD: usize = 27;
/// From this size on a node that grows at its end considers stripping its common prefix.
const WORTH_STRIPPING: usize = 8;

#[repr(C)]
pub(super) struct Node {
    pub(super) stamp: u64,
    count: u16,
    pub(super) level: u8,
    skip: u8,
    /// Where the last entry was inserted: keys that ascend, if only within a group, go one behind it.
    last: u8,
    head: [u8; HEAD],
    prefixes: [u64; FANOUT],
    records: [Option<RecordPtr>; FANOUT],
}

#[repr(C)]
pub(super) struct Inner {
    pub(super) node: Node,
    children: [Option<NodePtr>; FANOUT],
}

/// A pointer to a node; whoever uses one knows why the node is still alive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct NodePtr(NonNull<Node>);

// SAFETY: a node that more than one thread can reach is frozen, see mod.rs.
unsafe impl Send for NodePtr {}
// SAFETY: as above.
unsafe impl Sync for NodePtr {}

fn layout(level: u8) -> Layout {
    if level == 0 { Layout::new::<Node>() } else { Layout::new::<Inner>() }
}

impl NodePtr {
    /// An empty node.
    pub(super) fn new(stamp: u64, level: u8, counters: &Counters) -> NodePtr {
        let layout = layout(level);
        // SAFETY: the size is above zero, and zeros are a valid node: all counts 0, all pointers None.
        unsafe {
            let Some(at) = NonNull::new(alloc_zeroed(layout).cast::<Node>()) else {
                handle_alloc_error(layout)
            };
            (*at.as_ptr()).stamp = stamp;
            (*at.as_ptr()).level = level;
            counters.add(layout.size());
            NodePtr(at)
        }
    }

    /// A copy with the same entries; the entries then belong to whichever of the two stays in the tree.
    ///
    /// # Safety
    /// The node is alive.
    pub(super) unsafe fn copy(self, stamp: u64, counters: &Counters) -> NodePtr {
        // SAFETY: both have the layout of the same level, and the new one is reached by nobody else.
        unsafe {
            let copy = NodePtr::new(stamp, self.get().level, counters);
            let size = layout(self.get().level).size();
            copy.0.as_ptr().cast::<u8>().copy_from_nonoverlapping(self.0.as_ptr().cast(), size);
            copy.get_mut().stamp = stamp;
            copy
        }
    }

    /// Asks the processor to load all prefixes at once: a binary search would wait for line after line.
    #[inline]
    pub(super) fn prefetch(self) {
        #[cfg(target_arch = "x86_64")]
        for line in 0..offset_of!(Node, records) / 64 {
            // SAFETY: a prefetch reads nothing that the program sees and cannot fault; the lines are within the node.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(self.0.as_ptr().cast::<i8>().add(line * 64));
            }
        }
    }

    /// # Safety
    /// The node stays alive and unedited for `'a`.
    #[inline]
    pub(super) unsafe fn get<'a>(self) -> &'a Node {
        // SAFETY: promised by the caller.
        unsafe { self.0.as_ref() }
    }

    /// # Safety
    /// The caller owns the node (nothing but the tree being edited reaches it) and holds no other reference to it.
    pub(super) unsafe fn get_mut<'a>(self) -> &'a mut Node {
        // SAFETY: promised by the caller.
        unsafe { &mut *self.0.as_ptr() }
    }

    /// # Safety
    /// As [`NodePtr::get`], and the level is above 0.
    #[inline]
    pub(super) unsafe fn inner<'a>(self) -> &'a Inner {
        // SAFETY: a node above level 0 was allocated as an `Inner`, whose first field is the node.
        unsafe { self.0.cast::<Inner>().as_ref() }
    }

    /// # Safety
    /// As [`NodePtr::get_mut`], and the level is above 0.
    pub(super) unsafe fn inner_mut<'a>(self) -> &'a mut Inner {
        // SAFETY: as in `inner`.
        unsafe { &mut *self.0.cast::<Inner>().as_ptr() }
    }

    /// The bytes of its allocation.
    ///
    /// # Safety
    /// The node is alive.
    pub(super) unsafe fn size(self) -> usize {
        // SAFETY: promised by the caller.
        layout(unsafe { self.get().level }).size()
    }

    /// Frees the node alone, not what it points to.
    ///
    /// # Safety
    /// The node is alive and nothing reaches it any more.
    pub(super) unsafe fn free(self, counters: &Counters) {
        // SAFETY: allocated in `new` with the layout of its level.
        unsafe {
            let layout = layout(self.get().level);
            dealloc(self.0.as_ptr().cast(), layout);
            counters.sub(layout.size());
        }
    }
}

/// The first 8 bytes as a number that orders as the bytes do.
#[inline]
fn prefix_of(rest: &[u8]) -> u64 {
    if let Some(first) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut bytes = [0; 8];
    bytes[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(bytes)
}

/// How many leading bytes two keys share.
pub(super) fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

impl Node {
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    /// Whether an entry before `i` would directly follow the one inserted last.
    pub(super) fn continues_at(&self, i: usize) -> bool {
        i == self.last as usize + 1
    }

    pub(super) fn is_full(&self) -> bool {
        self.count() == FANOUT
    }

    /// The first entry that has a key: an inner node's entry 0 has none.
    pub(super) fn first_keyed(&self) -> usize {
        usize::from(self.level > 0)
    }

    /// The record of an entry; None for the missing separator of an inner node's entry 0.
    #[inline]
    pub(super) fn record(&self, i: usize) -> Option<RecordPtr> {
        self.records[i]
    }

    /// The record pointer some entries further on, if there is such an entry; only good for prefetching.
    #[inline]
    pub(super) fn record_ahead(&self, i: usize) -> Option<RecordPtr> {
        self.records.get(i).copied().flatten()
    }

    /// The key of entry `i`; empty for an entry that has none.
    pub(super) fn key(&self, i: usize) -> &[u8] {
        // SAFETY: the records of a node live while the node may be read.
        self.records[i].map_or(&[], |record| unsafe { record.key() })
    }

    /// The first keyed entry whose key is >= `key` (or the count), and whether it equals `key`.
    pub(super) fn bound(&self, key: &[u8]) -> (usize, bool) {
        let (lo, count, skip) = (self.first_keyed(), self.count(), self.skip as usize);
        if skip > 0 {
            match key[..skip.min(key.len())].cmp(&self.head[..skip]) {
                Ordering::Less => return (lo, false),
                Ordering::Greater => return (count, false),
                Ordering::Equal => {}
            }
        }
        let prefix = prefix_of(&key[skip..]);
        let prefixes = &self.prefixes[..count];
        let i = lo + prefixes[lo..].partition_point(|&p| p < prefix);
        if i == count || prefixes[i] != prefix {
            return (i, false);
        }
        self.bound_among_equal(i, prefix, key)
    }

    /// As `bound`, from `i`, the first entry of a run with this prefix.
    fn bound_among_equal(&self, i: usize, prefix: u64, key: &[u8]) -> (usize, bool) {
        let mut lo = i;
        let mut hi = i + self.prefixes[i..self.count()].partition_point(|&p| p <= prefix);
        while lo < hi {
            let mid = (lo + hi) / 2;
            match self.key(mid).cmp(key) {
                Ordering::Less => lo = mid + 1,
                Ordering::Equal => return (mid, true),
                Ordering::Greater => hi = mid,
            }
        }
        (lo, false)
    }

    /// The child of an inner node that holds `key` if any does.
    #[inline]
    pub(super) fn child_for(&self, key: &[u8]) -> usize {
        let (i, found) = self.bound(key);
        // An inner node's bound is at least 1.
        if found { i } else { i - 1 }
    }

    /// Puts another record in the place of one with the same key, and returns the former.
    pub(super) fn replace(&mut self, i: usize, record: RecordPtr) -> Option<RecordPtr> {
        self.records[i].replace(record)
    }

    /// Inserts an entry before `i`. The node must have room; `key` is the record's key.
    pub(super) fn insert(&mut self, i: usize, key: &[u8], record: RecordPtr) {
        self.strip_at_most(key);
        let count = self.count();
        self.prefixes.copy_within(i..count, i + 1);
        self.records.copy_within(i..count, i + 1);
        self.prefixes[i] = prefix_of(&key[self.skip as usize..]);
        self.records[i] = Some(record);
        self.count += 1;
        self.last = i as u8;
        if self.count() == WORTH_STRIPPING {
            self.strip_more();
        }
    }

    /// Takes entry `i` out and returns its record.
    pub(super) fn remove(&mut self, i: usize) -> Option<RecordPtr> {
        let count = self.count();
        let record = self.records[i];
        self.prefixes.copy_within(i + 1..count, i);
        self.records.copy_within(i + 1..count, i);
        self.count -= 1;
        record
    }

    /// Moves the entries from `m` on to the empty node `right` of the same level.
    fn move_tail(&mut self, m: usize, right: &mut Node) {
        let count = self.count();
        right.prefixes[..count - m].copy_from_slice(&self.prefixes[m..count]);
        right.records[..count - m].copy_from_slice(&self.records[m..count]);
        right.skip = self.skip;
        right.head = self.head;
        right.count = (count - m) as u16;
        self.count = m as u16;
    }

    /// Splits a leaf before entry `m`.
    pub(super) fn split_leaf(&mut self, m: usize, right: &mut Node) {
        self.move_tail(m, right);
    }

    /// Appends the entries of the leaf `right`, which are all above this leaf's; there must be room.
    pub(super) fn append_leaf(&mut self, right: &Node) {
        let (at, more) = (self.count(), right.count());
        self.prefixes[at..at + more].copy_from_slice(&right.prefixes[..more]);
        self.records[at..at + more].copy_from_slice(&right.records[..more]);
        self.count += right.count;
        if self.skip != right.skip || self.head[..self.skip as usize] != right.head[..self.skip as usize] {
            self.strip_anew();
        }
    }

    /// Strips fewer bytes if `key`, about to be inserted, does not share them.
    fn strip_at_most(&mut self, key: &[u8]) {
        let skip = shared_bytes(key, &self.head[..self.skip as usize]);
        if skip < self.skip as usize {
            self.set_skip(skip);
        }
    }

    /// Strips more bytes if all keys share more and are too long to fit their prefixes.
    pub(super) fn strip_more(&mut self) {
        let skip = self.strippable();
        if skip > self.skip as usize {
            self.set_skip(skip);
        }
    }

    /// Recomputes what is stripped after entries came from elsewhere.
    fn strip_anew(&mut self) {
        self.skip = 0;
        let skip = self.strippable();
        self.set_skip(skip);
    }

    /// How many bytes are worth stripping: what all keys share if it makes a prefix tell more, else none. The keys
    /// are sorted, so what the first and the last share, all share.
    fn strippable(&self) -> usize {
        let (lo, count) = (self.first_keyed(), self.count());
        if count < lo + 2 {
            return 0;
        }
        let (first, last) = (self.key(lo), self.key(count - 1));
        if first.len().max(last.len()) <= self.skip as usize + 8 {
            return 0;
        }
        shared_bytes(first, last).min(HEAD)
    }

    /// Strips `skip` bytes, which all keys share, and recomputes the prefixes.
    fn set_skip(&mut self, skip: usize) {
        let (lo, count) = (self.first_keyed(), self.count());
        let mut head = [0; HEAD];
        if lo < count {
            head[..skip].copy_from_slice(&self.key(lo)[..skip]);
        }
        let skip = if lo < count { skip } else { 0 };
        for i in lo..count {
            self.prefixes[i] = prefix_of(&self.key(i)[skip..]);
        }
        self.head = head;
        self.skip = skip as u8;
    }

    /// Panics when the entries contradict the layout's rules.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let (lo, count, skip) = (self.first_keyed(), self.count(), self.skip as usize);
        assert!(count > 0 && count <= FANOUT);
        for i in lo..count {
            assert!(self.key(i).starts_with(&self.head[..skip]));
            assert_eq!(self.prefixes[i], prefix_of(&self.key(i)[skip..]));
            assert!(i == lo || self.key(i - 1) < self.key(i), "keys ascend");
        }
        assert!(lo == 0 || self.records[0].is_none());
    }
}

impl Inner {
    #[inline]
    pub(super) fn child(&self, i: usize) -> NodePtr {
        debug_assert!(i < self.node.count());
        self.children[i].expect("entries below the count have a child")
    }

    pub(super) fn set_child(&mut self, i: usize, child: NodePtr) {
        self.children[i] = Some(child);
    }

    /// Makes the empty node hold one child, which needs no separator.
    pub(super) fn begin(&mut self, child: NodePtr) {
        self.children[0] = Some(child);
        self.node.records[0] = None;
        self.node.count = 1;
    }

    /// Inserts a child before entry `i` (at least 1). The node must have room.
    pub(super) fn insert(&mut self, i: usize, separator: RecordPtr, child: NodePtr) {
        let count = self.node.count();
        self.children.copy_within(i..count, i + 1);
        self.children[i] = Some(child);
        // SAFETY: the separator was just made, or comes from a node of the same tree.
        self.node.insert(i, unsafe { separator.key() }, separator);
    }

    /// Takes out child `i` and returns the separator that stood before it; for the first child, the one behind it,
    /// as its neighbour becomes the first and needs none.
    pub(super) fn remove(&mut self, i: usize) -> Option<RecordPtr> {
        let count = self.node.count();
        self.children.copy_within(i + 1..count, i);
        let removed = self.node.remove(i);
        if i > 0 || self.node.count() == 0 {
            return removed;
        }
        self.node.records[0].take()
    }

    /// Splits before child `m` (at least 1) and returns the separator between the two.
    pub(super) fn split(&mut self, m: usize, right: &mut Inner) -> Option<RecordPtr> {
        let count = self.node.count();
        right.children[..count - m].copy_from_slice(&self.children[m..count]);
        self.node.move_tail(m, &mut right.node);
        right.node.records[0].take()
    }

    /// Appends the children of `right`; `separator` stands between the two. There must be room.
    pub(super) fn append(&mut self, separator: Option<RecordPtr>, right: &Inner) {
        let (at, more) = (self.node.count(), right.node.count());
        self.children[at..at + more].copy_from_slice(&right.children[..more]);
        self.node.records[at..at + more].copy_from_slice(&right.node.records[..more]);
        self.node.records[at] = separator;
        self.node.count += right.node.count;
        self.node.strip_anew();
    }
}
