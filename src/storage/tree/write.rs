//! Writing: insert and remove, splitting and merging nodes on the path.
//!
//! A write first makes every node on its path its own (copying those that a snapshot sees), then edits them in place.
//! What it takes out of the tree is collected and disposed of at its end, so nothing is freed that it may still read.

use super::Tree;
use super::cursor::LEVELS;
use super::line::Dead;
use super::node::{FANOUT, Node, NodePtr, shared_bytes};
use super::record::RecordPtr;

/// A node with fewer entries looks for a neighbour to merge with...
const MIN: usize = FANOUT / 4;
/// ...so that both together have at most this many, which leaves room to grow.
const MERGED: usize = FANOUT * 3 / 4;

/// How many entries a full node keeps when it splits for an entry before `i`: half, except where keys ascend. There the
/// entries behind the new one, if any, go away once, so that the node then fills to its end, and from there on full
/// nodes stay full: `FANOUT` means that the new entry alone begins the next.
fn split_at(node: &Node, i: usize, rightmost: bool) -> usize {
    if node.continues_at(i) || (rightmost && i == FANOUT) { i } else { FANOUT / 2 }
}

/// The owned inner nodes on the way to a leaf, by level, and the entry taken in each.
struct Path {
    steps: [Option<(NodePtr, usize)>; LEVELS],
    leaf: NodePtr,
    /// The leaf is the last of the tree.
    rightmost: bool,
}

impl Path {
    fn step(&self, level: usize) -> Option<(NodePtr, usize)> {
        self.steps.get(level).copied().flatten()
    }
}

// SAFETY (the whole block): every node on a `Path` is owned: made after the newest snapshot, so reached by this tree
// alone, which `&mut self` lends to nobody else. The references made from it end before the next is made. Nodes and
// records that leave the tree are retired, that is freed only after the write. A child's level is one below its
// parent's.
impl Tree {
    /// As [`Tree::insert`], the value being the concatenation of `parts`. Key and value must each be below 4 GiB.
    pub fn insert_parts(&mut self, key: &[u8], parts: &[&[u8]]) -> bool {
        let record = RecordPtr::new(self.line.stamp(), key, parts, &self.line.counters);
        let value_len = parts.iter().map(|part| part.len() as u64).sum::<u64>();
        let Some(path) = self.own_path(key) else {
            self.begin(key, record);
            self.count_in(key, value_len);
            return false;
        };
        let (i, found) = unsafe { path.leaf.get().bound(key) };
        if found {
            let old = unsafe { path.leaf.get_mut().replace(i, record) };
            self.count_value(old, value_len);
            self.retire_record(old);
        } else {
            self.insert_into_leaf(&path, i, key, record);
            self.count_in(key, value_len);
        }
        self.dispose();
        found
    }

    /// Removes an entry; true when there was one.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        if self.get(key).is_none() {
            return false;
        }
        let Some(path) = self.own_path(key) else { return false };
        let record = unsafe {
            let (i, _) = path.leaf.get().bound(key);
            path.leaf.get_mut().remove(i)
        };
        self.count_out(key, record);
        self.retire_record(record);
        self.mend(&path);
        self.dispose();
        true
    }

    fn count_in(&mut self, key: &[u8], value_len: u64) {
        self.image.len += 1;
        self.image.key_bytes += key.len() as u64;
        self.image.value_bytes += value_len;
    }

    fn count_value(&mut self, old: Option<RecordPtr>, value_len: u64) {
        let old = old.map_or(0, |old| unsafe { old.value() }.len() as u64);
        self.image.value_bytes = self.image.value_bytes - old + value_len;
    }

    fn count_out(&mut self, key: &[u8], record: Option<RecordPtr>) {
        self.image.len -= 1;
        self.image.key_bytes -= key.len() as u64;
        self.image.value_bytes -= record.map_or(0, |record| unsafe { record.value() }.len() as u64);
    }

    fn retire_record(&mut self, record: Option<RecordPtr>) {
        self.retired.extend(record.map(|record| unsafe { Dead::record(record) }));
    }

    fn retire_node(&mut self, node: NodePtr) {
        self.retired.push(unsafe { Dead::node(node) });
    }

    /// Ends a write: what it took out of the tree is freed or listed.
    fn dispose(&mut self) {
        if !self.retired.is_empty() {
            unsafe { self.line.retire(&mut self.retired) };
        }
    }

    fn new_node(&self, level: u8) -> NodePtr {
        NodePtr::new(self.line.stamp(), level, &self.line.counters)
    }

    /// The tree's first entry.
    fn begin(&mut self, key: &[u8], record: RecordPtr) {
        let leaf = self.new_node(0);
        unsafe { leaf.get_mut().insert(0, key, record) };
        self.image.root = Some(leaf);
    }

    /// The node itself if this tree alone reaches it, else a copy to put in its place.
    fn own(&mut self, node: NodePtr, newest: u64) -> NodePtr {
        if unsafe { node.get().stamp } > newest {
            return node;
        }
        let copy = unsafe { node.copy(self.line.stamp(), &self.line.counters) };
        self.retire_node(node);
        copy
    }

    /// Owns all nodes from the root to the leaf for `key`. None in an empty tree.
    fn own_path(&mut self, key: &[u8]) -> Option<Path> {
        let newest = self.line.newest();
        let root = self.image.root?;
        let mut node = self.own(root, newest);
        self.image.root = Some(node);
        let mut steps = [None; LEVELS];
        let mut rightmost = true;
        loop {
            let level = unsafe { node.get().level } as usize;
            if level == 0 {
                return Some(Path { steps, leaf: node, rightmost });
            }
            let (i, child) = unsafe {
                let i = node.get().child_for(key);
                rightmost &= i + 1 == node.get().count();
                (i, node.inner().child(i))
            };
            child.prefetch();
            steps[level] = Some((node, i));
            let owned = self.own(child, newest);
            if owned != child {
                unsafe { node.inner_mut().set_child(i, owned) };
            }
            node = owned;
        }
    }

    fn insert_into_leaf(&mut self, path: &Path, i: usize, key: &[u8], record: RecordPtr) {
        let leaf = path.leaf;
        if unsafe { !leaf.get().is_full() } {
            unsafe { leaf.get_mut().insert(i, key, record) };
            return;
        }
        let m = split_at(unsafe { leaf.get() }, i, path.rightmost);
        let right = self.new_node(0);
        unsafe {
            leaf.get_mut().split_leaf(m, right.get_mut());
            if i <= m && m < FANOUT {
                leaf.get_mut().insert(i, key, record);
            } else {
                right.get_mut().insert(i - m, key, record);
            }
            leaf.get_mut().strip_more();
            right.get_mut().strip_more();
        }
        let separator = self.separator(leaf, right);
        self.insert_child(path, separator, right);
    }

    /// The shortest key above the last of `left` and not above the first of `right`.
    fn separator(&self, left: NodePtr, right: NodePtr) -> RecordPtr {
        let (left, right) = unsafe { (left.get(), right.get()) };
        let (below, first) = (left.key(left.count() - 1), right.key(0));
        let len = (shared_bytes(below, first) + 1).min(first.len());
        RecordPtr::new(self.line.stamp(), &first[..len], &[], &self.line.counters)
    }

    /// Puts `right` behind the child on the path at level 1, splitting upwards as needed.
    fn insert_child(&mut self, path: &Path, separator: RecordPtr, right: NodePtr) {
        let (mut separator, mut right) = (separator, right);
        let mut level = 1;
        while let Some((parent, i)) = path.step(level) {
            if unsafe { !parent.get().is_full() } {
                unsafe { parent.inner_mut().insert(i + 1, separator, right) };
                return;
            }
            (separator, right) = self.split_inner(parent, i + 1, separator, right, path.rightmost);
            level += 1;
        }
        assert!(level < LEVELS, "a tree of this height exceeds any memory");
        let root = self.new_node(level as u8);
        unsafe {
            root.inner_mut().begin(self.image.root.expect("a tree that splits has a root"));
            root.inner_mut().insert(1, separator, right);
        }
        self.image.root = Some(root);
    }

    /// Splits the full `node` and inserts a child before entry `i`; returns the new node and its separator.
    fn split_inner(
        &mut self,
        node: NodePtr,
        i: usize,
        separator: RecordPtr,
        child: NodePtr,
        rightmost: bool,
    ) -> (RecordPtr, NodePtr) {
        let new = self.new_node(unsafe { node.get().level });
        let m = split_at(unsafe { node.get() }, i, rightmost);
        if m == FANOUT {
            unsafe { new.inner_mut().begin(child) };
            return (separator, new);
        }
        unsafe {
            let between = node.inner_mut().split(m, new.inner_mut());
            let (target, i) = if i <= m { (node, i) } else { (new, i - m) };
            target.inner_mut().insert(i, separator, child);
            node.get_mut().strip_more();
            new.get_mut().strip_more();
            (between.expect("every child but the first has a separator"), new)
        }
    }

    /// After a removal: takes out nodes that became empty, merges small ones, and lowers the root.
    fn mend(&mut self, path: &Path) {
        let mut node = path.leaf;
        let mut level = 1;
        while let Some((parent, i)) = path.step(level) {
            let count = unsafe { node.get().count() };
            if count == 0 {
                let separator = unsafe { parent.inner_mut().remove(i) };
                self.retire_record(separator);
                self.retire_node(node);
            } else if count < MIN {
                self.merge(parent, i);
            } else {
                return;
            }
            node = parent;
            level += 1;
        }
        self.lower_root();
    }

    /// Merges child `i` with a neighbour if both fit one node with room left.
    fn merge(&mut self, parent: NodePtr, i: usize) {
        let count = unsafe { parent.get().count() };
        for r in [i, i + 1] {
            if r == 0 || r >= count {
                continue;
            }
            let (left, right) = unsafe { (parent.inner().child(r - 1), parent.inner().child(r)) };
            if unsafe { left.get().count() + right.get().count() } > MERGED {
                continue;
            }
            let owned = self.own(left, self.line.newest());
            unsafe {
                parent.inner_mut().set_child(r - 1, owned);
                let separator = parent.inner_mut().remove(r);
                if owned.get().level == 0 {
                    owned.get_mut().append_leaf(right.get());
                    self.retire_record(separator);
                } else {
                    owned.inner_mut().append(separator, right.inner());
                }
            }
            self.retire_node(right);
            return;
        }
    }

    /// Drops an empty root, and inner roots with a single child.
    fn lower_root(&mut self) {
        while let Some(root) = self.image.root {
            let (level, count) = unsafe { (root.get().level, root.get().count()) };
            self.image.root = match (level, count) {
                (_, 0) => None,
                (0, _) | (_, 2..) => return,
                _ => Some(unsafe { root.inner().child(0) }),
            };
            self.retire_node(root);
        }
    }
}
