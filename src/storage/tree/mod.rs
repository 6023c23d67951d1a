//! A persistent (copy-on-write) B+tree: O(1) snapshots, writable branches, the difference of two snapshots.
//!
//! # Layout
//! A record is one allocation that holds a key and its value (`record`); a node has up to 61 entries of an 8-byte key
//! prefix and a pointer (`node`). A separator in an inner node is a record without a value and belongs to the node.
//! Records, once made, are never written; a node may be, as follows.
//!
//! # Words
//! A *line* is the successive versions of one tree. Its *clock* counts the snapshots: a node or record carries as its
//! *stamp* the clock at its making, and a snapshot gets the clock as its stamp and advances it. So what a snapshot
//! sees is stamped at or below it, and what is written afterwards is stamped above it.
//!
//! A *branch* is a line that starts from a snapshot of another line, its *origin*, which it keeps alive. Its clock starts
//! above the origin's stamp, the *floor*. Whatever it reaches that is stamped at or below the floor belongs to lines it
//! came from; it neither edits nor frees that. A line that starts empty has floor 0 and stamps from 1.
//!
//! ```text
//!   line A   ──1──S1──2──S2──3───▶ tree A        S1, S2: live snapshots; digits: stamps given
//!                  └──2──3──T3──4──▶ tree B      B: a branch with origin S1, floor 1, and a snapshot of its own
//! ```
//!
//! # Editing
//! A write owns a node when its stamp is above the line's newest live snapshot (or the floor); else it replaces the node
//! by a copy, and so the path up to the root. There are no reference counts on nodes: snapshots, branches and lines are
//! counted, what they see is not.
//!
//! *Invariant (frozen).* A node that a snapshot sees is never written while that snapshot lives. It was stamped at or
//! below the snapshot, the newest live snapshot is at or above it, and a write only edits what is above the newest.
//! The newest rises only in [`Tree::snapshot`], which borrows the tree, so not during a write. It falls when a snapshot is released,
//! on any thread: a writer that reads the old value copies without need, and a writer that reads the new value (acquire)
//! comes after the release that stored it, and that came after the last read through the last handle of the snapshot
//! (by the counter of its Arc). Snapshots released earlier handed their order on through the line's mutex. Hence readers of
//! snapshots need no lock, and no byte they read is written concurrently.
//!
//! *Invariant (below).* For a live snapshot or floor X: below a node stamped at or below X there is nothing stamped
//! above X, since the node was not written after X was taken. So walks for what is above X need not enter it.
//!
//! # Freeing
//! *Invariant (interval).* Within a line, the versions (live snapshots in order, then the tree) that see a part are
//! consecutive, from the first at or above its stamp to the one before its death.
//!
//! A part taken out of the tree is
//! - left alone when at or below the floor: it is not ours;
//! - freed when above the newest live snapshot: no snapshot sees it, as all are older;
//! - otherwise put on the newest snapshot's *dead list*: that snapshot sees it, and no later version does.
//!
//! Releasing a snapshot S whose previous live snapshot (or floor) is P goes through S's dead list: what is above P was seen
//! by nobody but S, and is freed; the rest is seen by P, and not by what follows S, so it joins the list of P. (At or below
//! the floor nothing is listed.) So an idle old snapshot keeps what it sees and not every version made since.
//!
//! Dropping the tree makes its image a last snapshot and releases that. When the newest snapshot of a line without a
//! tree is released, nothing follows it: all it sees above P is freed, by a walk (its dead list adds nothing: those parts
//! are seen by it, too). The walk holds the line's mutex, so P and the nodes it looks at stay; there is no writer left to wait.
//!
//! A line ends with its tree and its snapshots; by then all it made is freed, and it lets its origin go.
//!
//! # Putting a root back
//! To go back to the line's newest live snapshot S: what died since S is exactly S's dead list, all of it seen by S, so
//! the list is cleared; what the tree reaches above S was seen by nobody else and is freed. A branch without live snapshots goes back
//! to its origin in the same way. In both cases intervals stay intervals, as the versions that did not see the revived parts are gone.
//! When newer snapshots live, that would not hold, and the difference is written as ordinary changes instead.
//!
//! # Locks
//! The line's mutex guards the list of live snapshots. A write takes it once, and only when it replaced something that
//! a snapshot sees.

mod cursor;
mod difference;
mod line;
mod node;
mod record;
#[cfg(test)]
mod tests;
mod write;

pub use cursor::{Cursor, Range};
pub use difference::{Change, Difference, difference};

use cursor::View;
use line::{Dead, Frozen, Line, free_reachable};
use node::NodePtr;
use std::ops::Bound;
use std::sync::Arc;

/// A root and what is known of all it reaches.
#[derive(Clone, Copy, Default)]
struct Image {
    root: Option<NodePtr>,
    len: usize,
    key_bytes: u64,
    value_bytes: u64,
}

/// A writable ordered map of bytes. Keys are any bytes, ordered as `memcmp` orders; a prefix comes before its extensions.
pub struct Tree {
    image: Image,
    line: Arc<Line>,
    /// What the present write took out of the tree; empty between writes.
    retired: Vec<Dead>,
}

/// A frozen version of a tree: counted, cheap to clone, readable from any thread. It may outlive its tree.
#[derive(Clone)]
pub struct Snapshot {
    frozen: Arc<Frozen>,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree::new()
    }
}

impl Tree {
    /// An empty tree that shares nothing with any other.
    pub fn new() -> Tree {
        Tree { image: Image::default(), line: Line::new(None), retired: Vec::new() }
    }

    /// A tree of entries, which should come in ascending key order: then its nodes are full.
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(entries: impl IntoIterator<Item = (K, V)>) -> Tree {
        let mut tree = Tree::new();
        for (key, value) in entries {
            tree.insert(key.as_ref(), value.as_ref());
        }
        tree
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.image.len
    }

    pub fn is_empty(&self) -> bool {
        self.image.len == 0
    }

    /// The sum of the lengths of the values.
    pub fn value_bytes(&self) -> u64 {
        self.image.value_bytes
    }

    /// The sum of the lengths of the keys.
    pub fn key_bytes(&self) -> u64 {
        self.image.key_bytes
    }

    /// Bytes of the nodes and records that this line made and has not freed, including superseded ones that its
    /// snapshots keep. What a branch shares with its origin counts there.
    pub fn allocated_bytes(&self) -> u64 {
        self.line.counters.bytes()
    }

    /// Those of them that only snapshots see.
    pub fn superseded_bytes(&self) -> u64 {
        self.line.counters.dead()
    }

    fn view(&self) -> View<'_> {
        // SAFETY: only `&mut self` edits or frees what the tree reaches, or retires it so that others may.
        unsafe { View::new(self.image.root) }
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.view().get(key)
    }

    /// Puts an entry; true when it replaced a value. Ascending keys fill leaves completely instead of by half.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> bool {
        self.insert_parts(key, &[value])
    }

    /// A cursor before the first entry.
    pub fn cursor(&self) -> Cursor<'_> {
        self.view().cursor()
    }

    /// The entries within the bounds.
    pub fn range<'a>(&'a self, lo: Bound<&[u8]>, hi: Bound<&[u8]>) -> Range<'a> {
        self.view().range(lo, hi)
    }

    /// Freezes what the tree holds now, in O(1). Without a write since the last live snapshot it is that one again.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { frozen: self.line.snapshot(self.image) }
    }

    /// Makes the tree hold what `s` holds. For the newest live snapshot of this tree, and for the origin of a branch
    /// that has no snapshot, the cost is that of freeing what was written since; for any other snapshot, that of
    /// writing the difference.
    pub fn replace_root(&mut self, s: &Snapshot) {
        if self.line.rewind(&s.frozen) {
            let written = self.image.root;
            self.image = s.frozen.image;
            // SAFETY: above the snapshot's stamp only this tree reached them, and it does not any more. `s` keeps the
            // snapshot alive, and with it what is at or below its stamp.
            unsafe { free_reachable(written, s.frozen.stamp, &self.line.counters) };
            return;
        }
        let before = self.snapshot();
        for change in difference(&before, s, Bound::Unbounded, Bound::Unbounded) {
            match change.after {
                Some(value) => self.insert(change.key, value),
                None => self.remove(change.key),
            };
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.line.end(self.image);
    }
}

impl Snapshot {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.frozen.image.len
    }

    pub fn is_empty(&self) -> bool {
        self.frozen.image.len == 0
    }

    /// The sum of the lengths of the values.
    pub fn value_bytes(&self) -> u64 {
        self.frozen.image.value_bytes
    }

    /// The sum of the lengths of the keys.
    pub fn key_bytes(&self) -> u64 {
        self.frozen.image.key_bytes
    }

    fn view(&self) -> View<'_> {
        // SAFETY: the snapshot is alive while it is borrowed, so what it sees is frozen and not freed.
        unsafe { View::new(self.frozen.image.root) }
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.view().get(key)
    }

    /// A cursor before the first entry.
    pub fn cursor(&self) -> Cursor<'_> {
        self.view().cursor()
    }

    /// The entries within the bounds.
    pub fn range<'a>(&'a self, lo: Bound<&[u8]>, hi: Bound<&[u8]>) -> Range<'a> {
        self.view().range(lo, hi)
    }

    /// A writable tree that starts as this snapshot and keeps it alive; O(1).
    pub fn branch(&self) -> Tree {
        Tree { image: self.frozen.image, line: Line::new(Some(self.frozen.clone())), retired: Vec::new() }
    }

    /// Whether both are one version of one tree. (Two that are not may still hold the same entries.)
    pub fn is_same(&self, other: &Snapshot) -> bool {
        Arc::ptr_eq(&self.frozen, &other.frozen)
    }
}
