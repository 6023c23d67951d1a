//! Snapshots of a whole node: every collection as it stood at one moment, in constant time.
//!
//! Each snapshot has an *epoch*, counted up while no commit is under way (the gate is held exclusively). A namespace
//! notes the epoch in which it was last changed. The first commit to a namespace in a newer epoch keeps what the
//! namespace held before, if a live snapshot needs it:
//!
//! ```text
//! epoch        0        1 (S1)            2 (S2)
//! commits to c    w w        w               |      w
//!                            └ keeps c for S1        └ keeps c for S2
//! commits to d    w          |               |
//!                            both S1 and S2 read d as it still is
//! ```
//!
//! A kept state serves the snapshots of the epochs above its `after` and up to its `until`; it is let go with the last
//! of them. So taking a snapshot costs nothing for collections that nobody writes, and one freeze of the roots for the
//! others.

use crate::namespace::SlotState;
use crate::view::View;
use crate::{Node, Operation, namespace::Slot};
use document::Result;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use storage::CollectionSnapshot;

/// What a namespace held at one moment.
#[derive(Clone, Default)]
pub struct Frozen {
    pub collection: Option<CollectionSnapshot>,
    pub view: Option<Arc<View>>,
}

impl Frozen {
    fn of(state: &SlotState) -> Frozen {
        Frozen { collection: state.collection.as_ref().map(|c| c.snapshot()), view: state.view.clone() }
    }
}

struct Kept {
    after: u64,
    until: u64,
    frozen: Frozen,
}

#[derive(Default)]
struct Board {
    /// Live snapshots by epoch, counted.
    live: BTreeMap<u64, u32>,
    /// By namespace, ascending.
    kept: HashMap<String, Vec<Kept>>,
}

/// The live snapshots of a node.
#[derive(Default)]
pub struct Snapshots {
    /// Rises under the exclusive gate only.
    epoch: AtomicU64,
    board: Mutex<Board>,
}

/// All namespaces of a node at one moment; holds them until it is dropped.
pub struct NodeSnapshot {
    snapshots: Arc<Snapshots>,
    epoch: u64,
    /// Timestamp of the newest entry that it sees.
    pub ts: u64,
    /// Of the node's past ([`crate::past::Past::edition`]).
    pub(crate) edition: u64,
}

impl Node {
    /// Every namespace as it is at a moment between two commits.
    ///
    /// # Errors
    /// An operation that is to end before that moment has come.
    pub async fn snapshot(&self, op: &Operation) -> Result<NodeSnapshot> {
        self.exclusively(op, || {
            let mut board = self.snapshots.board.lock();
            let epoch = self.snapshots.epoch.fetch_add(1, Ordering::Relaxed) + 1;
            *board.live.entry(epoch).or_default() += 1;
            Ok(NodeSnapshot {
                snapshots: self.snapshots.clone(),
                epoch,
                ts: self.log.last_optime().ts,
                edition: self.past.edition(),
            })
        })
        .await
    }
}

impl Snapshots {
    /// To be called under gate and latch before a namespace is changed.
    pub(crate) fn before_change(&self, slot: &Slot, state: &mut SlotState) {
        if state.capped.is_some() {
            slot.written.notify_waiters();
        }
        let epoch = self.epoch.load(Ordering::Relaxed);
        if state.changed_in < epoch {
            self.keep(slot, state, epoch);
        }
    }

    #[cold]
    fn keep(&self, slot: &Slot, state: &mut SlotState, epoch: u64) {
        let after = std::mem::replace(&mut state.changed_in, epoch);
        let mut board = self.board.lock();
        if board.live.range(after + 1..=epoch).next().is_some() {
            let kept = Kept { after, until: epoch, frozen: Frozen::of(state) };
            board.kept.entry(slot.ns.clone()).or_default().push(kept);
        }
    }

    /// How many states are kept for snapshots.
    pub fn kept(&self) -> usize {
        self.board.lock().kept.values().map(Vec::len).sum()
    }
}

impl NodeSnapshot {
    /// What the namespace held; `state` is what it holds now, under its latch.
    pub fn read(&self, slot: &Slot, state: &SlotState) -> Frozen {
        let board = self.snapshots.board.lock();
        // Looked for first: a slot that was forgotten and made anew does not know of its earlier changes.
        let kept = board
            .kept
            .get(&slot.ns)
            .and_then(|kept| kept.iter().find(|k| k.until >= self.epoch && k.after < self.epoch));
        match kept {
            Some(kept) => kept.frozen.clone(),
            None => Frozen::of(state),
        }
    }
}

impl Drop for NodeSnapshot {
    fn drop(&mut self) {
        let mut gone = Vec::new();
        let mut board = self.snapshots.board.lock();
        let Board { live, kept } = &mut *board;
        if let Some(count) = live.get_mut(&self.epoch) {
            *count -= 1;
            if *count > 0 {
                return;
            }
        }
        live.remove(&self.epoch);
        kept.retain(|_, states| {
            let needed = |k: &mut Kept| live.range(k.after + 1..=k.until).next().is_some();
            gone.extend(states.extract_if(.., |k| !needed(k)));
            !states.is_empty()
        });
        drop(board);
        // The trees are freed outside the lock.
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use crate::local::LocalClient;
    use crate::replication::testing;
    use crate::{Node, Operation, ddl};
    use document::doc;
    use std::sync::Arc;
    use storage::CollectionView;

    fn count(node: &Node, snapshot: &super::NodeSnapshot, ns: &str) -> Option<usize> {
        let slot = node.namespaces.slot(ns);
        let state = slot.read_unchecked();
        snapshot.read(&slot, &state).collection.map(|c| c.len())
    }
    async fn insert(node: &Arc<Node>, ns: &str, id: i32) {
        LocalClient::new(node.clone()).insert(ns, &doc! { "_id": id }).await.unwrap();
    }

    #[tokio::test]
    async fn two_collections_are_read_at_one_moment_and_kept_no_longer_than_needed() {
        let node = testing::node(None);
        insert(&node, "d.a", 1).await;
        insert(&node, "d.b", 1).await;
        let first = node.snapshot(&Operation::internal()).await.unwrap();
        insert(&node, "d.a", 2).await;
        let second = node.snapshot(&Operation::internal()).await.unwrap();
        insert(&node, "d.a", 3).await;
        insert(&node, "d.b", 2).await;
        insert(&node, "d.c", 1).await;
        assert_eq!((count(&node, &first, "d.a"), count(&node, &second, "d.a")), (Some(1), Some(2)));
        assert_eq!((count(&node, &first, "d.b"), count(&node, &second, "d.b")), (Some(1), Some(1)));
        assert_eq!((count(&node, &first, "d.c"), count(&node, &second, "d.c")), (None, None));
        assert_eq!(node.snapshots.kept(), 4);
        drop(first);
        assert_eq!(count(&node, &second, "d.a"), Some(2));
        assert_eq!(node.snapshots.kept(), 3);
        drop(second);
        assert_eq!(node.snapshots.kept(), 0);
    }

    #[tokio::test]
    async fn a_snapshot_sees_what_was_dropped_and_renamed_since() {
        let node = testing::node(None);
        insert(&node, "d.a", 1).await;
        insert(&node, "d.b", 1).await;
        let snapshot = node.snapshot(&Operation::internal()).await.unwrap();
        let op = Operation::internal();
        ddl::collections::drop_collection(&node, &op, "d.a", false).await.unwrap();
        ddl::rename::rename(&node, &op, "d.b", "d.c", ddl::rename::DropTarget::Refuse).await.unwrap();
        assert_eq!(count(&node, &snapshot, "d.a"), Some(1));
        assert_eq!(count(&node, &snapshot, "d.b"), Some(1));
        assert_eq!(count(&node, &snapshot, "d.c"), None);
    }
}
