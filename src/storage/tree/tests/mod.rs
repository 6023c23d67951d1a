//! Tests of the tree, and the accounting they share.

mod behaviour;
mod model;
mod threads;
mod timing;

use super::line::Counters;
use super::node::NodePtr;
use super::{Snapshot, Tree};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Key and value of each live part by address, for all that `root` reaches above `floor`.
fn reach(root: Option<NodePtr>, floor: u64, parts: &mut BTreeMap<usize, usize>) {
    let Some(at) = root else { return };
    // SAFETY: the callers hold the tree or snapshot that the root is of.
    unsafe {
        let node = at.get();
        if node.stamp <= floor || parts.insert(&raw const *node as usize, at.size()).is_some() {
            return;
        }
        for i in 0..node.count() {
            if let Some(record) = node.record(i).filter(|record| record.stamp() > floor) {
                let size = 16 + record.key().len() + record.value().len();
                parts.insert(record.key().as_ptr() as usize, size);
            }
            if node.level > 0 {
                reach(Some(at.inner().child(i)), floor, parts);
            }
        }
    }
}

/// The bytes that a line must have allocated: what its tree and its snapshots (all of them must be given) reach.
fn reachable_bytes<'a>(
    tree: Option<&Tree>,
    snapshots: impl Iterator<Item = &'a Snapshot>,
    floor: u64,
) -> u64 {
    let mut parts = BTreeMap::new();
    reach(tree.and_then(|tree| tree.image.root), floor, &mut parts);
    snapshots.for_each(|snapshot| reach(snapshot.frozen.image.root, floor, &mut parts));
    parts.values().map(|&size| size as u64).sum()
}

/// Panics when a node contradicts the layout's rules, or the rule that children are not above a frozen parent.
fn check_nodes(tree: &Tree) {
    fn check(at: NodePtr, level: u8, newest: u64, lo: Option<&[u8]>, hi: Option<&[u8]>) {
        // SAFETY: reached from a borrowed tree.
        unsafe {
            let node = at.get();
            assert_eq!(node.level, level);
            node.check();
            for i in node.first_keyed()..node.count() {
                assert!(lo.is_none_or(|lo| lo <= node.key(i)) && hi.is_none_or(|hi| node.key(i) < hi));
            }
            for i in (0..node.count()).filter(|_| level > 0) {
                let child = at.inner().child(i);
                assert!(child.get().stamp <= newest || node.stamp > newest);
                let lo = if i > 0 { Some(node.key(i)) } else { lo };
                let hi = if i + 1 < node.count() { Some(node.key(i + 1)) } else { hi };
                check(child, level - 1, newest, lo, hi);
            }
        }
    }
    if let Some(root) = tree.image.root {
        // SAFETY: the tree is borrowed.
        check(root, unsafe { root.get().level }, tree.line.newest(), None, None);
    }
}

fn assert_holds(snapshot: &Snapshot, model: &Model) {
    assert_eq!(snapshot.len(), model.len());
    assert!(
        snapshot.range(Bound::Unbounded, Bound::Unbounded).eq(model.iter().map(|(k, v)| (&k[..], &v[..])))
    );
}

fn assert_tree_holds(tree: &Tree, model: &Model) {
    check_nodes(tree);
    assert_eq!(tree.len(), model.len());
    assert_eq!(tree.key_bytes(), model.keys().map(|key| key.len() as u64).sum::<u64>());
    assert_eq!(tree.value_bytes(), model.values().map(|value| value.len() as u64).sum::<u64>());
    assert!(tree.range(Bound::Unbounded, Bound::Unbounded).eq(model.iter().map(|(k, v)| (&k[..], &v[..]))));
}

fn counters(tree: &Tree) -> Arc<Counters> {
    tree.line.counters.clone()
}
