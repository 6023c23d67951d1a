//! Random interleavings of everything, on several lines at once, against cloned `BTreeMap`s.
//!
//! After each step the touched tree must satisfy the node rules and equal its model; now and then, and when a line
//! has lost its tree, the bytes it has allocated must be exactly those that its tree and live snapshots reach.

use super::*;
use crate::tree::difference;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Insert { tree: usize, key: Vec<u8>, len: u8 },
    Remove { tree: usize, key: Vec<u8> },
    InsertRun { tree: usize, shape: u8, from: u16, count: u16, stride: u16 },
    RemoveRun { tree: usize, from: usize, count: usize },
    Snapshot { tree: usize },
    Release { snapshot: usize },
    Branch { snapshot: usize },
    DropTree { tree: usize },
    Replace { tree: usize, snapshot: usize },
    Difference { a: usize, b: usize, lo: Option<Vec<u8>>, hi: Option<Vec<u8>> },
    Seek { tree: usize, key: Vec<u8> },
}

/// Few distinct short keys (so that they meet), with zeros and shared beginnings.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(prop::sample::select(vec![0u8, 1, 0x61, 0xff]), 0..4),
        (0u16..200, 0u8..4).prop_map(|(i, shape)| shaped(shape, i)),
        (0u16..200).prop_map(|i| shaped(3, i)[..40].to_vec()),
    ]
}

/// The `i`th key of a family: bare, with a prefix beyond 8 bytes, with one beyond what a node strips, varying in the middle.
fn shaped(shape: u8, i: u16) -> Vec<u8> {
    match shape % 4 {
        0 => i.to_be_bytes().to_vec(),
        1 => format!("user/{i:08}").into_bytes(),
        2 => format!("{}{i:06}", "p".repeat(31)).into_bytes(),
        _ => [&[b'q'; 20][..], &i.to_be_bytes(), &[b'r'; 30]].concat(),
    }
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0usize..1000;
    prop_oneof![
        6 => (at.clone(), key(), any::<u8>()).prop_map(|(tree, key, len)| Step::Insert { tree, key, len }),
        4 => (at.clone(), key()).prop_map(|(tree, key)| Step::Remove { tree, key }),
        4 => (at.clone(), any::<u8>(), 0u16..5000, 1u16..500, 1u16..20).prop_map(
            |(tree, shape, from, count, stride)| Step::InsertRun { tree, shape, from, count, stride }
        ),
        3 => (at.clone(), 0usize..5000, 1usize..600)
            .prop_map(|(tree, from, count)| Step::RemoveRun { tree, from, count }),
        6 => at.clone().prop_map(|tree| Step::Snapshot { tree }),
        5 => at.clone().prop_map(|snapshot| Step::Release { snapshot }),
        2 => at.clone().prop_map(|snapshot| Step::Branch { snapshot }),
        1 => at.clone().prop_map(|tree| Step::DropTree { tree }),
        2 => (at.clone(), at.clone()).prop_map(|(tree, snapshot)| Step::Replace { tree, snapshot }),
        2 => (at.clone(), at.clone(), prop::option::of(key()), prop::option::of(key()))
            .prop_map(|(a, b, lo, hi)| Step::Difference { a, b, lo, hi }),
        2 => (at, key()).prop_map(|(tree, key)| Step::Seek { tree, key }),
    ]
}

/// A line as the test knows it.
struct Known {
    counters: Arc<Counters>,
    floor: u64,
}

#[derive(Default)]
struct World {
    lines: Vec<Known>,
    /// Tree, model, line.
    trees: Vec<(Tree, Model, usize)>,
    snapshots: Vec<(Snapshot, Model, usize)>,
}

impl World {
    fn add(&mut self, tree: Tree, model: Model) {
        let floor = tree.line.newest();
        self.lines.push(Known { counters: counters(&tree), floor });
        self.trees.push((tree, model, self.lines.len() - 1));
    }

    fn run(&mut self, step: Step) {
        let pick = |i: usize, len: usize| if len == 0 { None } else { Some(i % len) };
        let tree = |world: &World, i| pick(i, world.trees.len());
        let snapshot = |world: &World, i| pick(i, world.snapshots.len());
        let touched = match step {
            Step::Insert { tree: t, key, len } => tree(self, t).inspect(|&t| self.insert(t, key, len)),
            Step::Remove { tree: t, key } => tree(self, t).inspect(|&t| self.remove(t, &key)),
            Step::InsertRun { tree: t, shape, from, count, stride } => tree(self, t).inspect(|&t| {
                for i in 0..count {
                    self.insert(t, shaped(shape, from.wrapping_add(i * stride)), shape);
                }
            }),
            Step::RemoveRun { tree: t, from, count } => tree(self, t).inspect(|&t| {
                let keys: Vec<_> = self.trees[t].1.keys().skip(from).take(count).cloned().collect();
                keys.iter().for_each(|key| self.remove(t, key));
            }),
            Step::Snapshot { tree: t } => tree(self, t).inspect(|&t| {
                let (tree, model, line) = &self.trees[t];
                self.snapshots.push((tree.snapshot(), model.clone(), *line));
            }),
            Step::Release { snapshot: s } => snapshot(self, s).and_then(|s| {
                let (snapshot, model, line) = self.snapshots.swap_remove(s);
                assert_holds(&snapshot, &model);
                drop(snapshot);
                self.account(line);
                None
            }),
            Step::Branch { snapshot: s } => snapshot(self, s).filter(|_| self.trees.len() < 5).map(|s| {
                let (snapshot, model, _) = &self.snapshots[s];
                self.add(snapshot.branch(), model.clone());
                self.trees.len() - 1
            }),
            Step::DropTree { tree: t } => tree(self, t).filter(|_| self.trees.len() > 1).and_then(|t| {
                let (tree, _, line) = self.trees.swap_remove(t);
                drop(tree);
                self.account(line);
                None
            }),
            Step::Replace { tree: t, snapshot: s } => tree(self, t).zip(snapshot(self, s)).map(|(t, s)| {
                // Mostly within a line, as that is what the fast way is for.
                let s = self.snapshots.iter().rposition(|(_, _, line)| *line == self.trees[t].2).unwrap_or(s);
                self.trees[t].0.replace_root(&self.snapshots[s].0);
                self.trees[t].1 = self.snapshots[s].1.clone();
                t
            }),
            Step::Difference { a, b, lo, hi } => {
                snapshot(self, a).zip(snapshot(self, b)).and_then(|(a, b)| {
                    self.compare(a, b, lo, hi);
                    None
                })
            }
            Step::Seek { tree: t, key } => tree(self, t).inspect(|&t| self.seek(t, &key)),
        };
        if let Some(t) = touched {
            assert_tree_holds(&self.trees[t].0, &self.trees[t].1);
            self.account(self.trees[t].2);
        }
    }

    fn insert(&mut self, t: usize, key: Vec<u8>, len: u8) {
        let (tree, model, _) = &mut self.trees[t];
        let value = vec![len; len as usize];
        let (a, b) = value.split_at(value.len() / 3);
        assert_eq!(tree.insert_parts(&key, &[a, b]), model.insert(key, value.clone()).is_some());
    }

    fn remove(&mut self, t: usize, key: &[u8]) {
        let (tree, model, _) = &mut self.trees[t];
        assert_eq!(tree.get(key), model.get(key).map(Vec::as_slice));
        assert_eq!(tree.remove(key), model.remove(key).is_some());
    }

    fn seek(&self, t: usize, key: &[u8]) {
        let (tree, model, _) = &self.trees[t];
        let from = (Bound::Included(key), Bound::Unbounded);
        let upto = (Bound::Unbounded, Bound::Included(key));
        let mut cursor = tree.cursor();
        assert_eq!(cursor.seek(key), cursor.key().is_some());
        assert_eq!(cursor.key(), model.range::<[u8], _>(from).next().map(|(k, _)| &k[..]));
        assert_eq!(cursor.prev(), cursor.key().is_some());
        let below = model.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key)));
        assert_eq!(cursor.key(), below.last().map(|(k, _)| &k[..]));
        assert_eq!(cursor.seek_for_prev(key), cursor.key().is_some());
        assert_eq!(cursor.key(), model.range::<[u8], _>(upto).next_back().map(|(k, _)| &k[..]));
        assert!(
            tree.range(from.0, from.1).map(|(k, _)| k).eq(model.range::<[u8], _>(from).map(|(k, _)| &k[..]))
        );
        assert!(
            tree.range(upto.0, upto.1)
                .rev()
                .map(|(k, _)| k)
                .eq(model.range::<[u8], _>(upto).rev().map(|(k, _)| &k[..]))
        );
    }

    fn compare(&self, a: usize, b: usize, lo: Option<Vec<u8>>, hi: Option<Vec<u8>>) {
        let lo = lo.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let hi = hi.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let inside = |key: &[u8]| {
            !matches!(lo, Bound::Excluded(lo) if key <= lo) && !matches!(hi, Bound::Included(hi) if key > hi)
        };
        let ((before, old, _), (after, new, _)) = (&self.snapshots[a], &self.snapshots[b]);
        let mut keys: Vec<_> = old.keys().chain(new.keys()).filter(|key| inside(key)).collect();
        keys.sort();
        keys.dedup();
        let expected = keys
            .into_iter()
            .filter(|key| old.get(*key) != new.get(*key))
            .map(|key| (key.as_slice(), old.get(key).map(Vec::as_slice), new.get(key).map(Vec::as_slice)));
        assert!(difference(before, after, lo, hi).map(|c| (c.key, c.before, c.after)).eq(expected));
    }

    /// The line's allocation is what its tree and snapshots reach. Origins of branches are held by the branches, so a
    /// line that has any is only checked from below.
    fn account(&self, line: usize) {
        let known = &self.lines[line];
        let tree = self.trees.iter().find(|(_, _, l)| *l == line).map(|(tree, _, _)| tree);
        let mut snapshots: Vec<_> = self
            .snapshots
            .iter()
            .filter(|(_, _, l)| *l == line)
            .map(|(snapshot, _, _)| snapshot.clone())
            .collect();
        let lines = self.trees.iter().map(|(tree, _, _)| &tree.line);
        for held in lines.chain(self.snapshots.iter().map(|(snapshot, _, _)| &snapshot.frozen.line)) {
            let mut held = held.origin();
            while let Some(frozen) = held {
                if Arc::ptr_eq(&frozen.line.counters, &known.counters) {
                    snapshots.push(Snapshot { frozen: frozen.clone() });
                }
                held = frozen.line.origin();
            }
        }
        assert_eq!(reachable_bytes(tree, snapshots.iter(), known.floor), known.counters.bytes());
    }

    /// Lets everything go, in an order that `seed` chooses; nothing may stay allocated.
    fn end(mut self, seed: usize) {
        for (snapshot, model, _) in &self.snapshots {
            assert_holds(snapshot, model);
        }
        let mut turn = seed;
        while self.trees.len() + self.snapshots.len() > 0 {
            turn = turn.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let i = (turn >> 33) % (self.trees.len() + self.snapshots.len());
            if i < self.trees.len() {
                self.trees.swap_remove(i);
            } else {
                self.snapshots.swap_remove(i - self.trees.len());
            }
        }
        assert!(self.lines.iter().all(|line| line.counters.bytes() == 0), "everything was freed");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn random_interleavings_equal_the_model(
        steps in prop::collection::vec(step(), 1..120),
        start in 0u16..3000,
        seed in any::<usize>(),
    ) {
        let mut world = World::default();
        world.add(Tree::new(), Model::new());
        for i in 0..start {
            world.insert(0, shaped(1, i), i as u8 % 40);
        }
        steps.into_iter().for_each(|step| world.run(step));
        world.end(seed);
    }
}

/// How many cases to run; `TREE_CASES` asks for more than the quick default.
fn cases() -> u32 {
    std::env::var("TREE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40)
}
