//! Readers of snapshots on other threads while the tree is written.

use super::*;
use std::sync::mpsc;

fn value(version: u64, key: u64) -> Vec<u8> {
    [version.to_be_bytes(), key.to_be_bytes()].concat()
}

/// Each snapshot must show one version of every key, whatever the writer does meanwhile; releases happen on the
/// readers, so on threads that compete with the writer for the dead lists.
#[test]
fn snapshots_stay_as_they_were_while_the_writer_goes_on() {
    const KEYS: u64 = 400;
    let mut tree = Tree::new();
    let count = counters(&tree);
    let mut senders = Vec::new();
    let mut readers = Vec::new();
    for _ in 0..3 {
        let (sender, receiver) = mpsc::sync_channel::<(u64, Snapshot)>(4);
        senders.push(sender);
        readers.push(std::thread::spawn(move || {
            let mut seen = 0;
            for (version, snapshot) in receiver {
                for key in 0..KEYS {
                    assert_eq!(snapshot.get(&key.to_be_bytes()), Some(&value(version, key)[..]));
                }
                let mut branch = snapshot.branch();
                drop(snapshot);
                branch.insert(b"mine", b"alone");
                assert_eq!(branch.len(), KEYS as usize + 1);
                assert_eq!(branch.range(Bound::Unbounded, Bound::Unbounded).count(), KEYS as usize + 1);
                seen += 1;
            }
            seen
        }));
    }
    let rounds = if cfg!(debug_assertions) { 150 } else { 600 };
    for version in 0..rounds {
        for key in 0..KEYS {
            tree.insert(&key.to_be_bytes(), &value(version, key));
        }
        senders[version as usize % 3].send((version, tree.snapshot())).expect("the reader lives");
        let start = tree.snapshot();
        for key in 0..KEYS / 2 {
            tree.remove(&(key * 2).to_be_bytes());
        }
        tree.replace_root(&start);
    }
    drop(senders);
    let seen: u64 =
        readers.into_iter().map(|reader| reader.join().expect("a reader saw what it should")).sum();
    assert_eq!(seen, rounds);
    drop(tree);
    assert_eq!(count.bytes(), 0);
}

/// Snapshots may be taken through a shared reference by several threads at once.
#[test]
fn snapshots_are_taken_and_released_concurrently() {
    let mut tree = Tree::bulk_load((0..1000u64).map(|i| (i.to_be_bytes(), b"v")));
    let count = counters(&tree);
    for round in 0..20u64 {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let snapshot = tree.snapshot();
                        assert_eq!(snapshot.len(), 1000);
                    }
                });
            }
        });
        tree.insert(&round.to_be_bytes(), b"w");
    }
    drop(tree);
    assert_eq!(count.bytes(), 0);
}
