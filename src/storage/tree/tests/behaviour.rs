//! One behaviour each, with small data.

use super::*;
use crate::tree::difference;

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

fn filled(n: u64) -> Tree {
    Tree::bulk_load((0..n).map(|i| (key(i), i.to_string())))
}

#[test]
fn ascending_inserts_leave_nodes_full() {
    let tree = filled(61 * 100);
    let records = tree.len() as u64 * (16 + 8) + tree.value_bytes();
    let nodes = tree.allocated_bytes() - records;
    assert!(nodes <= 100 * 1024 + 4 * 1504 + 100 * 32, "{nodes} bytes of nodes for 100 full leaves");
}

#[test]
fn empty_keys_and_values_are_entries() {
    let mut tree = Tree::new();
    assert!(!tree.insert(b"", b""));
    assert!(!tree.insert(b"\0", b"x"));
    assert!(tree.insert_parts(b"\0", &[b"ab", b"", b"c"]));
    assert_eq!(tree.get(b""), Some(&b""[..]));
    assert_eq!(tree.get(b"\0"), Some(&b"abc"[..]));
    assert_eq!(tree.get(b"\0\0"), None);
    assert_eq!((tree.len(), tree.key_bytes(), tree.value_bytes()), (2, 1, 3));
    assert!(tree.remove(b"") && !tree.remove(b"") && tree.remove(b"\0"));
    assert!(tree.is_empty());
    assert_eq!(tree.allocated_bytes(), 0);
}

#[test]
fn cursor_turns_around_at_both_ends() {
    let tree = filled(200);
    let mut cursor = tree.cursor();
    assert_eq!(cursor.key(), None);
    assert!(!cursor.prev());
    assert!(cursor.next());
    assert_eq!(cursor.key(), Some(&key(0)[..]));
    assert!(!cursor.prev());
    assert!(cursor.next() && cursor.next());
    assert_eq!(cursor.key(), Some(&key(1)[..]));
    assert!(cursor.last() && !cursor.next() && !cursor.next());
    assert!(cursor.prev());
    assert_eq!(cursor.entry(), Some((&key(199)[..], &b"199"[..])));
    assert!(!cursor.seek(&[0xff]));
    assert!(cursor.prev());
    assert_eq!(cursor.value(), Some(&b"199"[..]));
    assert!(!cursor.seek_for_prev(b""));
    assert!(cursor.seek_for_prev(&[0xff]));
    assert_eq!(cursor.key(), Some(&key(199)[..]));
    assert!(!Tree::new().cursor().next());
}

#[test]
fn range_meets_in_the_middle_and_ends() {
    let tree = filled(300);
    let (lo, hi) = (key(10), key(20));
    let mut range = tree.range(Bound::Excluded(&lo), Bound::Included(&hi));
    let mut seen = 0;
    while range.next().is_some() {
        seen += 1;
        seen += usize::from(range.next_back().is_some());
    }
    assert_eq!(seen, 10);
    assert!(range.next().is_none() && range.next_back().is_none());
    assert_eq!(tree.range(Bound::Included(&hi), Bound::Excluded(&lo)).count(), 0);
    assert_eq!(tree.range(Bound::Excluded(&lo), Bound::Excluded(&key(11))).count(), 0);
}

#[test]
fn snapshot_outlives_its_tree() {
    let mut tree = filled(1000);
    let count = counters(&tree);
    let old = tree.snapshot();
    for i in 0..1000 {
        tree.remove(&key(i));
    }
    let empty = tree.snapshot();
    drop(tree);
    assert_eq!((old.len(), empty.len()), (1000, 0));
    assert_eq!(old.range(Bound::Unbounded, Bound::Unbounded).count(), 1000);
    drop(old);
    assert_eq!(count.bytes(), 0);
    assert!(empty.is_empty());
}

#[test]
fn unchanged_tree_gives_the_same_snapshot() {
    let mut tree = filled(10);
    let a = tree.snapshot();
    assert!(a.is_same(&tree.snapshot()));
    tree.insert(b"x", b"y");
    assert!(!a.is_same(&tree.snapshot()));
}

#[test]
fn idle_old_snapshot_does_not_keep_every_later_version() {
    let mut tree = filled(2000);
    let before = tree.allocated_bytes();
    let idle = tree.snapshot();
    for round in 0..200u64 {
        let passing = tree.snapshot();
        for i in 0..50 {
            tree.insert(&key(i * 40), &round.to_be_bytes());
        }
        drop(passing);
    }
    assert!(tree.allocated_bytes() < before * 2 + 10_000);
    assert_eq!(idle.get(&key(40)), Some(&b"40"[..]));
}

#[test]
fn what_only_snapshots_see_is_counted() {
    let mut tree = filled(2000);
    let first = tree.snapshot();
    tree.insert(&key(7), &[1; 100_000]);
    let second = tree.snapshot();
    tree.insert(&key(7), b"short");
    // Nobody sees that one.
    tree.insert(&key(7), b"other");
    let kept = tree.superseded_bytes();
    assert!((100_000..130_000).contains(&kept), "{kept}");
    drop(first);
    assert!((100_000..130_000).contains(&tree.superseded_bytes()));
    drop(second);
    assert_eq!(tree.superseded_bytes(), 0);
    // What was removed lives again.
    let start = tree.snapshot();
    tree.remove(&key(9));
    assert!(tree.superseded_bytes() > 0);
    tree.replace_root(&start);
    drop(start);
    assert_eq!(tree.superseded_bytes(), 0);
}

#[test]
fn rollback_returns_to_the_allocation_before() {
    let mut tree = filled(3000);
    let before = tree.allocated_bytes();
    for _ in 0..3 {
        let start = tree.snapshot();
        for i in 1000..2000 {
            tree.remove(&key(i));
            tree.insert(&key(i * 10), b"new");
        }
        tree.replace_root(&start);
        drop(start);
        assert_eq!(tree.allocated_bytes(), before);
        assert_eq!(tree.len(), 3000);
        assert_eq!(tree.get(&key(1500)), Some(&b"1500"[..]));
    }
}

#[test]
fn branch_sees_its_own_writes_alone() {
    let mut tree = filled(500);
    let origin = tree.snapshot();
    let mut branch = origin.branch();
    drop(origin);
    branch.insert(&key(7), b"branch");
    tree.insert(&key(7), b"trunk");
    tree.remove(&key(8));
    assert_eq!(branch.get(&key(7)), Some(&b"branch"[..]));
    assert_eq!(branch.get(&key(8)), Some(&b"8"[..]));
    let count = counters(&tree);
    drop(tree);
    assert_eq!(branch.len(), 500);
    let nested = branch.snapshot().branch();
    drop(branch);
    assert_eq!(nested.get(&key(7)), Some(&b"branch"[..]));
    drop(nested);
    assert_eq!(count.bytes(), 0);
}

#[test]
fn difference_gives_each_kind_of_change_and_resumes() {
    let mut tree = filled(5000);
    let before = tree.snapshot();
    tree.insert(&key(4000), b"changed");
    tree.insert(&key(4001), b"4001");
    tree.remove(&key(17));
    tree.insert(&key(9000), b"added");
    let after = tree.snapshot();
    let found: Vec<_> = difference(&before, &after, Bound::Unbounded, Bound::Unbounded).collect();
    assert_eq!(found.len(), 3, "rewriting the same bytes is no change");
    assert_eq!((found[0].before, found[0].after), (Some(&b"17"[..]), None));
    assert_eq!((found[1].before, found[1].after), (Some(&b"4000"[..]), Some(&b"changed"[..])));
    assert_eq!((found[2].before, found[2].after), (None, Some(&b"added"[..])));
    let rest = difference(&before, &after, Bound::Excluded(found[0].key), Bound::Excluded(&key(9000)));
    assert_eq!(rest.collect::<Vec<_>>(), found[1..2]);
}

#[test]
fn long_shared_prefixes_and_outsiders_find_their_place() {
    let mut tree = Tree::new();
    let mut model = Model::new();
    for i in 0..3000u64 {
        let i = i * 7919 % 3000;
        let name = format!("{}{i:05}", "collection/with/a/long/name/".repeat((i % 3) as usize));
        tree.insert(name.as_bytes(), b"v");
        model.insert(name.into_bytes(), b"v".to_vec());
        if i % 500 == 0 {
            tree.insert(&i.to_le_bytes(), b"outsider");
            model.insert(i.to_le_bytes().to_vec(), b"outsider".to_vec());
        }
    }
    assert_tree_holds(&tree, &model);
    assert!(model.keys().all(|key| tree.get(key).is_some() && tree.get(&key[..key.len() - 1]).is_none()));
}

#[test]
fn ascending_within_groups_leaves_nodes_nearly_full() {
    let mut tree = Tree::new();
    for i in 0..2000u64 {
        for group in 0..8u64 {
            tree.insert(&[key(group), key(i)].concat(), b"");
        }
    }
    let nodes = tree.allocated_bytes() - tree.len() as u64 * (16 + 16);
    assert!(nodes < 16000 / 50 * 1050, "{nodes} bytes of nodes for 16000 entries");
}

#[test]
fn released_snapshots_no_longer_cause_copies() {
    let mut tree = filled(1000);
    let (older, newer) = (tree.snapshot(), tree.snapshot());
    drop((older, newer));
    let root = tree.image.root;
    tree.insert(&key(1), b"x");
    assert!(tree.image.root == root, "nobody sees the root, so it is edited in place");
    let held = tree.snapshot();
    tree.insert(&key(1), b"y");
    assert!(tree.image.root != root, "a snapshot sees the root, so it is copied");
    drop(held);
}

#[test]
fn draining_from_the_left_frees_as_it_goes() {
    let mut tree = filled(1000);
    let before = tree.allocated_bytes();
    for i in 1000..20_000 {
        tree.insert(&key(i), b"1234");
        tree.remove(&key(i - 1000));
    }
    assert!(tree.allocated_bytes() < before + 8 * 1024);
}

#[test]
fn long_chain_of_branches_is_dropped_without_recursion() {
    let mut tree = filled(10);
    let count = counters(&tree);
    for i in 0..20_000 {
        tree = tree.snapshot().branch();
        tree.insert(&key(i % 10), b"again");
    }
    assert_eq!(tree.len(), 10);
    drop(tree);
    assert_eq!(count.bytes(), 0);
}

#[test]
fn handles_may_cross_threads() {
    fn crosses<T: Send + Sync + 'static>() {}
    crosses::<Tree>();
    crosses::<Snapshot>();
}
