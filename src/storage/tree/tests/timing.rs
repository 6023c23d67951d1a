//! Timings, run by hand: `cargo test --release -p storage tree_timing -- --ignored --nocapture`.

use super::*;
use runtime::Instant;

/// Scatters 0..n over the key space without repetition.
fn scattered(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

#[allow(clippy::disallowed_methods)]
fn timed<T>(what: &str, n: u64, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    println!("{what:32} {:8.1} ns each", start.elapsed().as_nanos() as f64 / n as f64);
    result
}

#[test]
#[ignore = "a measurement"]
fn tree_timing() {
    const N: u64 = 1_000_000;
    let value = [7u8; 100];
    let mut tree = Tree::new();
    timed("ascending insert", N, || (0..N).for_each(|i| _ = tree.insert(&i.to_be_bytes(), &value)));
    println!("overhead {} bytes/entry", (tree.allocated_bytes() - tree.value_bytes() - tree.key_bytes()) / N);
    timed("scan, ascending made", N, || {
        tree.range(Bound::Unbounded, Bound::Unbounded).map(|(k, _)| k.len()).sum::<usize>()
    });
    timed("steps alone", N, || {
        let mut cursor = tree.cursor();
        let mut n = 0;
        while cursor.next() {
            n += 1;
        }
        n
    });
    timed("cursor keys", N, || {
        let mut cursor = tree.cursor();
        let mut n = 0;
        while cursor.next() {
            n += cursor.key().map_or(0, |k| k.len());
        }
        n
    });
    timed("scan again", N, || {
        tree.range(Bound::Unbounded, Bound::Unbounded).map(|(k, _)| k.len()).sum::<usize>()
    });
    timed("drop", N, || drop(tree));
    let mut tree = Tree::new();
    timed("random insert", N, || (0..N).for_each(|i| _ = tree.insert(&scattered(i), &value)));
    println!("overhead {} bytes/entry", (tree.allocated_bytes() - tree.value_bytes() - tree.key_bytes()) / N);
    let order = |i: u64| scattered(i.wrapping_mul(7919) % N);
    let found = timed("random get", N, || (0..N).filter(|&i| tree.get(&order(i)).is_some()).count());
    assert_eq!(found as u64, N);
    timed("scan, keys, random made", N, || {
        tree.range(Bound::Unbounded, Bound::Unbounded).map(|(k, _)| k.len()).sum::<usize>()
    });
    timed("scan of 100", N / 100, || {
        (0..N / 100)
            .map(|i| tree.range(Bound::Included(&order(i)), Bound::Unbounded).take(100).count())
            .sum::<usize>()
    });
    timed("update", N, || (0..N).for_each(|i| _ = tree.insert(&order(i), &value)));
    for every in [1, 16, 256] {
        let mut held = tree.snapshot();
        timed(&format!("update, a snapshot every {every}"), N / 4, || {
            for i in 0..N / 4 {
                if i % every == 0 {
                    held = tree.snapshot();
                }
                tree.insert(&order(i), &value);
            }
        });
        drop(held);
    }
    let before = tree.snapshot();
    (0..1000).for_each(|i| _ = tree.insert(&order(i), b"changed"));
    let after = tree.snapshot();
    timed("difference, per change", 1000, || {
        super::super::difference(&before, &after, Bound::Unbounded, Bound::Unbounded).count()
    });
    drop((before, after));
    timed("remove", N, || (0..N).for_each(|i| _ = tree.remove(&order(i))));
    assert_eq!(tree.allocated_bytes(), 0);
}
