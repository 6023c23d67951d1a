//! Reading: point lookup, cursors, ranges. All of it works on a borrowed root, be it a tree's or a snapshot's.

use super::node::{FANOUT, NodePtr};
use super::record::RecordPtr;
use std::marker::PhantomData;
use std::ops::Bound;

/// More levels than any tree that fits an address space has: inner nodes that are not at the right edge keep about 15
/// children or more.
pub(super) const LEVELS: usize = 16;
/// How many entries ahead of a scan the records are asked for.
const AHEAD: usize = 12;

/// A root that stays as it is for `'a`.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    root: Option<NodePtr>,
    of: PhantomData<&'a ()>,
}

impl<'a> View<'a> {
    /// # Safety
    /// What `root` reaches is neither freed nor edited during `'a`.
    pub(super) unsafe fn new(root: Option<NodePtr>) -> View<'a> {
        View { root, of: PhantomData }
    }

    pub(super) fn get(self, key: &[u8]) -> Option<&'a [u8]> {
        let mut at = self.root?;
        // SAFETY: promised to `View::new`; a child's level is one below its parent's.
        unsafe {
            loop {
                let node = at.get();
                if node.level == 0 {
                    let (i, found) = node.bound(key);
                    return if found { node.record(i).map(|record| record.value()) } else { None };
                }
                at = at.inner().child(node.child_for(key));
                at.prefetch();
            }
        }
    }

    pub(super) fn cursor(self) -> Cursor<'a> {
        Cursor { view: self, place: Place::Before, steps: [None; LEVELS], at: [0; LEVELS] }
    }

    pub(super) fn range(self, lo: Bound<&[u8]>, hi: Bound<&[u8]>) -> Range<'a> {
        let mut front = self.cursor();
        let mut back = self.cursor();
        let some = front.seek_lower(lo)
            && match hi {
                Bound::Unbounded => back.last(),
                Bound::Included(key) => back.seek_for_prev(key),
                Bound::Excluded(key) => {
                    back.seek(key);
                    back.prev()
                }
            };
        let some = some && front.key() <= back.key();
        Range::new(front, back, some)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    On,
    After,
}

/// A position in a tree or snapshot: on an entry, before the first, or after the last.
#[derive(Clone)]
pub struct Cursor<'a> {
    view: View<'a>,
    place: Place,
    /// The path to the entry, by level: the node and the entry in it. Only good while `place` is `On`.
    steps: [Option<NodePtr>; LEVELS],
    at: [u8; LEVELS],
}

const _: () = assert!(FANOUT <= u8::MAX as usize);

impl<'a> Cursor<'a> {
    /// Goes to the first entry whose key is >= `key`; true when there is one, else the cursor is after the last.
    pub fn seek(&mut self, key: &[u8]) -> bool {
        let Some((leaf, i)) = self.descend(key, |leaf| leaf.bound(key).0) else { return false };
        if i < leaf {
            return true;
        }
        // Past the leaf's last entry: the next leaf's first is the one.
        self.at[0] = (leaf - 1) as u8;
        self.next()
    }

    /// Goes to the last entry whose key is <= `key`; true when there is one, else the cursor is before the first.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> bool {
        let Some((_, i)) = self.descend(key, |leaf| {
            let (i, found) = leaf.bound(key);
            i + usize::from(found)
        }) else {
            self.place = Place::Before;
            return false;
        };
        // Now just behind the entry.
        self.prev_from(i)
    }

    /// Goes to the first entry within a lower bound.
    pub(super) fn seek_lower(&mut self, lo: Bound<&[u8]>) -> bool {
        match lo {
            Bound::Unbounded => self.first(),
            Bound::Included(key) => self.seek(key),
            Bound::Excluded(key) => self.seek(key) && (self.key() != Some(key) || self.next()),
        }
    }

    /// Goes to the first entry; false when there is none.
    pub fn first(&mut self) -> bool {
        self.place = Place::After;
        self.view.root.is_some_and(|root| self.descend_to_first(root))
    }

    /// Goes to the last entry; false when there is none.
    pub fn last(&mut self) -> bool {
        self.place = Place::Before;
        self.view.root.is_some_and(|root| self.descend_to_last(root))
    }

    /// To the next entry; from before the first to the first. True when on an entry.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> bool {
        match (self.place, self.steps[0]) {
            (Place::On, Some(leaf)) => {
                // SAFETY: promised to `View::new`.
                let leaf = unsafe { leaf.get() };
                let i = self.at[0] as usize + 1;
                if i < leaf.count() {
                    self.at[0] = i as u8;
                    if let Some(ahead) = leaf.record_ahead(i + AHEAD) {
                        ahead.prefetch();
                    }
                    return true;
                }
                self.step_over(0)
            }
            (Place::Before, _) => self.first(),
            _ => false,
        }
    }

    /// To the previous entry; from after the last to the last. True when on an entry.
    #[inline]
    pub fn prev(&mut self) -> bool {
        match self.place {
            Place::On => self.prev_from(self.at[0] as usize),
            Place::After => self.last(),
            Place::Before => false,
        }
    }

    /// The key the cursor is on.
    #[inline]
    pub fn key(&self) -> Option<&'a [u8]> {
        // SAFETY: promised to `View::new`.
        self.record().map(|record| unsafe { record.key() })
    }

    /// The value the cursor is on.
    #[inline]
    pub fn value(&self) -> Option<&'a [u8]> {
        // SAFETY: promised to `View::new`.
        self.record().map(|record| unsafe { record.value() })
    }

    /// Key and value the cursor is on.
    #[inline]
    pub fn entry(&self) -> Option<(&'a [u8], &'a [u8])> {
        // SAFETY: promised to `View::new`.
        self.record().map(|record| unsafe { record.entry() })
    }

    #[inline]
    pub(super) fn record(&self) -> Option<RecordPtr> {
        if self.place != Place::On {
            return None;
        }
        // SAFETY: promised to `View::new`.
        self.steps[0].and_then(|leaf| unsafe { leaf.get().record(self.at[0] as usize) })
    }

    /// Whether both are on the same entry of the same leaf.
    #[inline]
    pub(super) fn is_with(&self, other: &Cursor<'_>) -> bool {
        self.at[0] == other.at[0]
            && self.steps[0] == other.steps[0]
            && self.place == Place::On
            && other.place == Place::On
    }

    /// Walks to the leaf for `key` and stands on the entry that `find` says, which may be one past the last. Returns
    /// the leaf's count and the entry; None, and the cursor after the last, in an empty tree.
    fn descend(&mut self, key: &[u8], find: impl Fn(&super::node::Node) -> usize) -> Option<(usize, usize)> {
        self.place = Place::After;
        let mut at = self.view.root?;
        // SAFETY: promised to `View::new`; a child's level is one below its parent's.
        unsafe {
            loop {
                let node = at.get();
                let level = node.level as usize;
                self.steps[level] = Some(at);
                if level == 0 {
                    let i = find(node);
                    self.at[0] = i as u8;
                    self.place = Place::On;
                    return Some((node.count(), i));
                }
                let i = node.child_for(key);
                self.at[level] = i as u8;
                at = at.inner().child(i);
                at.prefetch();
            }
        }
    }

    fn descend_to_first(&mut self, from: NodePtr) -> bool {
        self.descend_edge(from, |_| 0)
    }

    fn descend_to_last(&mut self, from: NodePtr) -> bool {
        self.descend_edge(from, |count| count - 1)
    }

    /// Completes the path below `from`, which is included, along the entry that `choose` picks from each count.
    fn descend_edge(&mut self, from: NodePtr, choose: impl Fn(usize) -> usize) -> bool {
        let mut at = from;
        // SAFETY: promised to `View::new`; a node in a tree has at least one entry.
        unsafe {
            loop {
                let node = at.get();
                let level = node.level as usize;
                let i = choose(node.count());
                self.steps[level] = Some(at);
                self.at[level] = i as u8;
                if level == 0 {
                    self.place = Place::On;
                    return true;
                }
                at = at.inner().child(i);
            }
        }
    }

    fn top(&self) -> usize {
        // SAFETY: promised to `View::new`.
        self.view.root.map_or(0, |root| unsafe { root.get().level as usize })
    }

    /// Leaves the subtree at `level` on the path forwards: on to the first entry behind it.
    pub(super) fn step_over(&mut self, level: usize) -> bool {
        for above in level + 1..=self.top() {
            let Some(at) = self.steps[above] else { break };
            let i = self.at[above] as usize + 1;
            // SAFETY: promised to `View::new`; levels above 0 are inner nodes.
            unsafe {
                if i < at.get().count() {
                    self.at[above] = i as u8;
                    return self.descend_to_first(at.inner().child(i));
                }
            }
        }
        self.place = Place::After;
        false
    }

    /// To the entry before entry `i` of the leaf the path leads to.
    fn prev_from(&mut self, i: usize) -> bool {
        if i > 0 {
            self.at[0] = (i - 1) as u8;
            return true;
        }
        for above in 1..=self.top() {
            let Some(at) = self.steps[above] else { break };
            if let Some(i) = self.at[above].checked_sub(1) {
                self.at[above] = i;
                // SAFETY: promised to `View::new`; levels above 0 are inner nodes.
                return self.descend_to_last(unsafe { at.inner().child(i as usize) });
            }
        }
        self.place = Place::Before;
        false
    }

    /// Both cursors are on the same entry of the same leaf: moves both behind the largest subtree they share, and
    /// behind any equal subtrees that follow it directly.
    pub(super) fn skip_shared(&mut self, other: &mut Cursor<'_>) {
        let top = self.top().min(other.top());
        let mut level = 0;
        while level < top && self.steps[level + 1] == other.steps[level + 1] {
            level += 1;
        }
        if level < top {
            self.skip_equal_children(other, level + 1);
        }
        self.step_over(level);
        other.step_over(level);
    }

    /// Moves both paths forward at `level` for as long as the next child is one and the same node.
    fn skip_equal_children(&mut self, other: &mut Cursor<'_>, level: usize) {
        let (Some(a), Some(b)) = (self.steps[level], other.steps[level]) else { return };
        // SAFETY: promised to `View::new`; the level is above 0.
        let (a, b) = unsafe { (a.inner(), b.inner()) };
        loop {
            let (i, j) = (self.at[level] as usize + 1, other.at[level] as usize + 1);
            if i >= a.node.count() || j >= b.node.count() || a.child(i) != b.child(j) {
                return;
            }
            self.at[level] += 1;
            other.at[level] += 1;
        }
    }
}

/// The entries of a key range, in order, from either end.
pub struct Range<'a> {
    front: Cursor<'a>,
    back: Cursor<'a>,
    /// Whether `front` is at or before `back`, both on entries not yet given.
    some: bool,
    /// While `some`: the entries of the front's leaf below this one are within the range.
    end: u8,
}

impl<'a> Range<'a> {
    fn new(front: Cursor<'a>, back: Cursor<'a>, some: bool) -> Range<'a> {
        let mut range = Range { front, back, some, end: 0 };
        if some {
            range.limit();
        }
        range
    }

    /// Computes `end`; both cursors are on entries.
    fn limit(&mut self) {
        self.end = match self.front.steps[0] {
            leaf if leaf == self.back.steps[0] => self.back.at[0] + 1,
            // SAFETY: promised to `View::new`.
            Some(leaf) => unsafe { leaf.get().count() as u8 },
            None => 0,
        };
    }

    fn next_leaf(&mut self) {
        self.some = self.front.steps[0] != self.back.steps[0] && self.front.step_over(0);
        if self.some {
            self.limit();
        }
    }
}

impl<'a> Iterator for Range<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if !self.some {
            return None;
        }
        // SAFETY: promised to `View::new`.
        let leaf = unsafe { self.front.steps[0]?.get() };
        let i = self.front.at[0];
        let record = leaf.record(i as usize)?;
        if i + 1 < self.end {
            self.front.at[0] = i + 1;
            if let Some(ahead) = leaf.record_ahead(i as usize + AHEAD) {
                ahead.prefetch();
            }
        } else {
            self.next_leaf();
        }
        // SAFETY: promised to `View::new`.
        Some(unsafe { record.entry() })
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if !self.some {
            return None;
        }
        let entry = self.back.entry();
        self.some = !self.front.is_with(&self.back) && self.back.prev();
        if self.some {
            self.limit();
        }
        entry
    }
}
