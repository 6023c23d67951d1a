//! Filling empty indexes from the records of a collection, on all cores.
//!
//! ```text
//! records -> runs of consecutive records --(any thread)--> their keys in each index, sorted
//!         -> the runs of one index --(a thread for each index)--> merged -> tree, in key order, which fills leaves completely
//! ```
//! A run is small enough for a processor's cache: sorting all keys at once waits for memory at every comparison.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use document::{Doc, Result};

use super::IndexSpec;
use super::keys::{Asked, Computed, KeyBuffer, KeySource, Keys, Met, RECORD_ID_ROOM};
use crate::parallel::in_order;
use crate::record_store::{RecordCursor, RecordId};
use crate::tree::{Snapshot, Tree};

/// Record ids in a run.
const RUN: u64 = 32 * 1024;

/// A filled index.
pub(crate) struct Filled {
    pub(crate) tree: Tree,
    pub(crate) met: Met,
}

/// Why an index could not be filled.
pub(crate) enum Unfilled {
    /// A document has no valid key.
    Key(document::Error),
    /// Two records of the unique index at this place of `specs` share a key; the later of them.
    Taken(usize, Vec<u8>, RecordId),
}

/// The sorted keys of some records in one index.
#[derive(Default)]
struct Run {
    /// Each key and its record id, one after the other.
    bytes: Vec<u8>,
    keys: Vec<RunKey>,
    met: Met,
}

/// A key in a run. The prefix decides most comparisons without a look at the bytes.
#[derive(Clone, Copy)]
struct RunKey {
    prefix: u64,
    start: usize,
    end: usize,
}

impl Run {
    fn of(&self, key: RunKey) -> &[u8] {
        &self.bytes[key.start..key.end]
    }
    /// The key with its record id behind it.
    fn whole(&self, key: RunKey) -> &[u8] {
        &self.bytes[key.start..key.end + RECORD_ID_ROOM]
    }

    fn add(
        &mut self,
        spec: &Arc<IndexSpec>,
        record: RecordId,
        doc: Doc<'_>,
        (buffer, keys): (&mut KeyBuffer, Keys),
    ) -> Result<()> {
        if !spec.covers(doc) {
            return Ok(());
        }
        buffer.clear();
        self.met.merge(&Computed.keys(Asked { spec, doc, keys }, 0, buffer)?);
        for (_, key) in buffer.iter() {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(key);
            self.keys.push(RunKey { prefix: prefix(key), start, end: self.bytes.len() });
            self.bytes.extend_from_slice(&record.to_be_bytes());
        }
        Ok(())
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let order = |a: &RunKey, b: &RunKey| {
            let whole = |k: &RunKey| &bytes[k.start..k.end + RECORD_ID_ROOM];
            let key = |k: &RunKey| &bytes[k.start..k.end];
            a.prefix.cmp(&b.prefix).then_with(|| key(a).cmp(key(b)).then_with(|| whole(a).cmp(whole(b))))
        };
        if !self.keys.is_sorted_by(|a, b| order(a, b).is_le()) {
            self.keys.sort_unstable_by(order);
        }
    }
}

/// The first eight bytes as a number that compares as they do, as far as they go.
fn prefix(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let n = key.len().min(8);
    first[..n].copy_from_slice(&key[..n]);
    u64::from_be_bytes(first)
}

/// Fills an index for each of `specs` from `records`, whose ids are below `next` and whose keys are accepted already or offered.
pub(crate) fn fill(
    records: &Snapshot,
    next: RecordId,
    specs: &[Arc<IndexSpec>],
    keys: Keys,
) -> std::result::Result<Vec<Filled>, Unfilled> {
    let starts: Vec<RecordId> = (0..next).step_by(RUN as usize).collect();
    let mut runs: Vec<Vec<Run>> = specs.iter().map(|_| Vec::with_capacity(starts.len())).collect();
    in_order(
        &starts,
        |start| read_runs(records, *start, specs, keys).map_err(Unfilled::Key),
        |_, read| {
            runs.iter_mut().zip(read).for_each(|(runs, run)| runs.push(run));
            Ok(())
        },
    )?;
    let places: Vec<usize> = (0..specs.len()).collect();
    let mut filled = Vec::with_capacity(specs.len());
    let merged = |place: &usize| {
        merge(&runs[*place], specs[*place].unique())
            .map_err(|(key, record)| Unfilled::Taken(*place, key, record))
    };
    in_order(&places, merged, |_, index| {
        filled.push(index);
        Ok(())
    })?;
    Ok(filled)
}

/// The runs of the records from `start` on, one for each index.
fn read_runs(records: &Snapshot, start: RecordId, specs: &[Arc<IndexSpec>], keys: Keys) -> Result<Vec<Run>> {
    let mut runs: Vec<Run> = specs.iter().map(|_| Run::default()).collect();
    let mut buffer = KeyBuffer::default();
    let mut cursor = RecordCursor::new(records.cursor());
    let mut at = cursor.seek(start);
    while let Some((record, doc)) = at.filter(|(record, _)| record - start < RUN) {
        for (spec, run) in specs.iter().zip(&mut runs) {
            run.add(spec, record, doc, (&mut buffer, keys))?;
        }
        at = cursor.next();
    }
    runs.iter_mut().for_each(Run::sort);
    Ok(runs)
}

/// The next key of a run, ordered among those of the others.
struct Head<'a> {
    prefix: u64,
    key: &'a [u8],
    /// Runs are in the order of their records.
    run: usize,
    at: usize,
}

impl Ord for Head<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let keys = self.prefix.cmp(&other.prefix).then_with(|| self.key.cmp(other.key));
        keys.then(self.run.cmp(&other.run))
    }
}
impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Head<'_> {}

fn merge(runs: &[Run], unique: bool) -> std::result::Result<Filled, (Vec<u8>, RecordId)> {
    let head = |run: usize, at: usize| {
        let key = *runs[run].keys.get(at)?;
        Some(Reverse(Head { prefix: key.prefix, key: runs[run].of(key), run, at }))
    };
    let mut heads: BinaryHeap<_> = (0..runs.len()).filter_map(|run| head(run, 0)).collect();
    let mut tree = Tree::new();
    while let Some(mut first) = heads.peek_mut() {
        let (run, at) = (first.0.run, first.0.at);
        let whole = runs[run].whole(runs[run].keys[at]);
        let (key, record) = whole.split_at(whole.len() - RECORD_ID_ROOM);
        if !unique {
            tree.insert(whole, &[]);
        } else if tree.insert(key, record) {
            let record = record.try_into().map_or(0, RecordId::from_be_bytes);
            return Err((key.to_vec(), record));
        }
        match head(run, at + 1) {
            Some(next) => *first = next,
            None => drop(std::collections::binary_heap::PeekMut::pop(first)),
        }
    }
    let mut met = Met::default();
    runs.iter().for_each(|run| met.merge(&run.met));
    Ok(Filled { tree, met })
}
