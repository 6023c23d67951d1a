//! A line: the successive versions of one tree, its stamps, its live snapshots and their dead lists.
//!
//! mod.rs argues why each free below is safe; the words used here are defined there.

use super::Image;
use super::node::NodePtr;
use super::record::RecordPtr;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Bytes that a line has allocated and not yet freed, and those of them that snapshots alone see.
#[derive(Default)]
pub(super) struct Counters {
    bytes: AtomicU64,
    dead: AtomicU64,
}

impl Counters {
    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn sub(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn dead(&self) -> u64 {
        self.dead.load(Ordering::Relaxed)
    }

    /// Parts leave a dead list: to be freed, or since they live again.
    ///
    /// # Safety
    /// They are alive.
    unsafe fn unlist(&self, parts: &[Dead]) {
        // SAFETY: promised by the caller.
        let bytes: usize = parts.iter().map(|dead| unsafe { dead.size() }).sum();
        self.dead.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

/// What a root no longer reaches.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Node(NodePtr),
    Record(RecordPtr),
}

/// A part that was taken out of the tree, with the stamp of its making.
#[derive(Clone, Copy)]
pub(super) struct Dead {
    stamp: u64,
    part: Part,
}

impl Dead {
    /// # Safety
    /// The node is alive.
    pub(super) unsafe fn node(node: NodePtr) -> Dead {
        // SAFETY: alive; the stamp of a node never changes once it is in a tree.
        Dead { stamp: unsafe { node.get().stamp }, part: Part::Node(node) }
    }

    /// # Safety
    /// The record is alive.
    pub(super) unsafe fn record(record: RecordPtr) -> Dead {
        // SAFETY: alive.
        Dead { stamp: unsafe { record.stamp() }, part: Part::Record(record) }
    }

    /// # Safety
    /// The part is alive.
    unsafe fn size(&self) -> usize {
        // SAFETY: promised by the caller.
        unsafe {
            match self.part {
                Part::Node(node) => node.size(),
                Part::Record(record) => record.size(),
            }
        }
    }

    /// # Safety
    /// Nothing reaches the part any more.
    unsafe fn free(self, counters: &Counters) {
        // SAFETY: promised by the caller.
        unsafe {
            match self.part {
                Part::Node(node) => node.free(counters),
                Part::Record(record) => record.free(counters),
            }
        }
    }
}

/// A frozen version: what a [`super::Snapshot`] counts.
pub(super) struct Frozen {
    pub(super) line: Arc<Line>,
    pub(super) image: Image,
    pub(super) stamp: u64,
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.line.release(self.stamp);
    }
}

/// A live snapshot as its line sees it.
struct Live {
    stamp: u64,
    root: Option<NodePtr>,
    /// What this snapshot sees and the version after it (the next live snapshot, or the tree) does not.
    dead: Vec<Dead>,
    handle: Weak<Frozen>,
}

#[derive(Default)]
struct State {
    /// Ascending by stamp.
    live: Vec<Live>,
    /// The tree was dropped: no version follows the newest live snapshot.
    ended: bool,
}

pub(super) struct Line {
    /// The snapshot that the line starts from; held for as long as the line lives.
    origin: Option<Arc<Frozen>>,
    /// The origin's stamp, or 0: what is stamped so or lower is not this line's to free or edit.
    floor: u64,
    /// The stamp of the newest live snapshot, or the floor. Rises only under `&Tree`, so not while the tree is written.
    newest: AtomicU64,
    /// The stamp that a write made now gives: above every snapshot of the line so far.
    clock: AtomicU64,
    pub(super) counters: Arc<Counters>,
    state: Mutex<State>,
}

impl Line {
    pub(super) fn new(origin: Option<Arc<Frozen>>) -> Arc<Line> {
        let floor = origin.as_ref().map_or(0, |frozen| frozen.stamp);
        Arc::new(Line {
            origin,
            floor,
            newest: AtomicU64::new(floor),
            clock: AtomicU64::new(floor + 1),
            counters: Arc::default(),
            state: Mutex::default(),
        })
    }

    #[cfg(test)]
    pub(super) fn origin(&self) -> Option<&Arc<Frozen>> {
        self.origin.as_ref()
    }

    /// The stamp for what a write makes.
    pub(super) fn stamp(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// What is stamped above this belongs to the tree alone. Acquire pairs with the release in `release`: a writer that
    /// sees a snapshot gone also sees that all its readers are done.
    pub(super) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// Freezes the tree's present image.
    pub(super) fn snapshot(self: &Arc<Line>, image: Image) -> Arc<Frozen> {
        let mut state = self.state.lock();
        if let Some(last) = state.live.last()
            && last.root == image.root
            && let Some(same) = last.handle.upgrade()
        {
            // A write since would have changed the root.
            return same;
        }
        let stamp = self.clock.load(Ordering::Relaxed);
        let frozen = Arc::new(Frozen { line: self.clone(), image, stamp });
        self.push(&mut state, stamp, image.root, Arc::downgrade(&frozen));
        frozen
    }

    fn push(&self, state: &mut State, stamp: u64, root: Option<NodePtr>, handle: Weak<Frozen>) {
        state.live.push(Live { stamp, root, dead: Vec::new(), handle });
        self.clock.store(stamp + 1, Ordering::Relaxed);
        self.newest.store(stamp, Ordering::Release);
    }

    /// Disposes of what a finished write took out of the tree: frees what no snapshot sees, and lists the rest with
    /// the newest snapshot.
    ///
    /// # Safety
    /// The parts were reached by the tree of this line before the write and are not any more.
    pub(super) unsafe fn retire(&self, parts: &mut Vec<Dead>) {
        let newest = self.newest();
        let mut state: Option<MutexGuard<'_, State>> = None;
        for dead in parts.drain(..).filter(|dead| dead.stamp > self.floor) {
            if dead.stamp > newest {
                // SAFETY: made after every live snapshot, and gone from the tree.
                unsafe { dead.free(&self.counters) };
                continue;
            }
            match state.get_or_insert_with(|| self.state.lock()).live.last_mut() {
                Some(last) if dead.stamp <= last.stamp => {
                    // SAFETY: a snapshot sees it.
                    self.counters.dead.fetch_add(unsafe { dead.size() } as u64, Ordering::Relaxed);
                    last.dead.push(dead);
                }
                // SAFETY: the snapshot that saw it was released since `newest` was read.
                _ => unsafe { dead.free(&self.counters) },
            }
        }
    }

    /// Ends a snapshot.
    fn release(&self, stamp: u64) {
        let unseen = self.take_out(&mut self.state.lock(), stamp);
        // SAFETY: they are freed below.
        unsafe { self.counters.unlist(&unseen) };
        for dead in unseen {
            // SAFETY: `take_out` found that nothing sees it.
            unsafe { dead.free(&self.counters) };
        }
    }

    /// Takes a snapshot off the list and returns what it alone saw and the tree does not, to be freed without the
    /// lock. If no version follows, all that it alone saw is freed here.
    fn take_out(&self, state: &mut State, stamp: u64) -> Vec<Dead> {
        let Ok(at) = state.live.binary_search_by_key(&stamp, |live| live.stamp) else {
            debug_assert!(false, "a snapshot is released once");
            return Vec::new();
        };
        let mut gone = state.live.remove(at);
        let was_newest = at == state.live.len();
        let previous = at.checked_sub(1).map(|i| &mut state.live[i]);
        let below = previous.as_ref().map_or(self.floor, |previous| previous.stamp);
        if was_newest {
            self.newest.store(below, Ordering::Release);
        }
        if was_newest && state.ended {
            // SAFETY: what is above `below` was seen by no earlier snapshot, and there is nothing later. The lock keeps
            // the previous snapshot, whose nodes the walk looks at, from being released meanwhile. The dead list is
            // among what this snapshot sees, so the walk or a later one covers it.
            unsafe {
                self.counters.unlist(&gone.dead);
                free_reachable(gone.root, below, &self.counters);
            }
            return Vec::new();
        }
        let Some(previous) = previous else {
            // Nothing at or below the floor is ever listed.
            return gone.dead;
        };
        // What was made after the previous snapshot, and is dead before the next, was seen by the one that goes.
        let unseen = gone.dead.extract_if(.., |dead| dead.stamp > below).collect();
        if previous.dead.is_empty() {
            previous.dead = gone.dead;
        } else {
            previous.dead.append(&mut gone.dead);
        }
        unseen
    }

    /// The tree is dropped: its image becomes a last snapshot, which is released at once.
    pub(super) fn end(&self, image: Image) {
        let mut state = self.state.lock();
        let stamp = self.clock.load(Ordering::Relaxed);
        self.push(&mut state, stamp, image.root, Weak::new());
        state.ended = true;
        // The new last snapshot has an empty dead list, so there is nothing more to free.
        self.take_out(&mut state, stamp);
    }

    /// Makes `frozen` the version that the tree has now, if that needs nothing but freeing: when it is the newest live
    /// snapshot (or the origin, and there is none). What died since then lives again. The caller then frees what the
    /// tree reached above its stamp. False, and nothing done, otherwise.
    pub(super) fn rewind(self: &Arc<Line>, frozen: &Arc<Frozen>) -> bool {
        let mut state = self.state.lock();
        match state.live.last_mut() {
            Some(last) if Arc::ptr_eq(&frozen.line, self) && last.stamp == frozen.stamp => {
                // SAFETY: the snapshot sees them.
                unsafe { self.counters.unlist(&last.dead) };
                last.dead = Vec::new();
                true
            }
            Some(_) => false,
            None => self.origin.as_ref().is_some_and(|origin| Arc::ptr_eq(origin, frozen)),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // The tree and all snapshots are gone, so everything is freed. (While unwinding a test may have cut a walk.)
        let left = (self.counters.bytes(), self.counters.dead());
        debug_assert!(std::thread::panicking() || left == (0, 0), "a line frees all it made");
        // A chain of branches of branches is let go link by link, not by recursion.
        let mut origin = self.origin.take();
        while let Some(frozen) = origin.take().and_then(Arc::into_inner) {
            let line = frozen.line.clone();
            drop(frozen);
            origin = Arc::into_inner(line).and_then(|mut line| line.origin.take());
        }
    }
}

/// Frees what `root` reaches and is stamped above `above`.
///
/// # Safety
/// No tree and no snapshot reaches those parts; what is at or below `above` stays alive during the call.
pub(super) unsafe fn free_reachable(root: Option<NodePtr>, above: u64, counters: &Counters) {
    // A frozen node was not edited after it was frozen, so below a node at or below `above` nothing is above it.
    // SAFETY (the block): each node is read before it is freed, and reached once, as a tree is a tree.
    unsafe {
        let mut todo: Vec<NodePtr> = root.into_iter().filter(|node| node.get().stamp > above).collect();
        while let Some(at) = todo.pop() {
            let node = at.get();
            for i in 0..node.count() {
                if let Some(ahead) = node.record_ahead(i + 4) {
                    ahead.prefetch();
                }
                if node.level > 0 {
                    let child = at.inner().child(i);
                    if child.get().stamp > above {
                        todo.push(child);
                    }
                }
                if let Some(record) = node.record(i).filter(|record| record.stamp() > above) {
                    record.free(counters);
                }
            }
            at.free(counters);
        }
    }
}
