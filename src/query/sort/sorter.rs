//! A blocking sort bounded in memory; with a limit it keeps only what can still be in the result.

use crate::sort::SortSpec;
use document::{DocBuf, Result, bail};
use std::collections::BinaryHeap;

/// What a blocking sort may hold unless told otherwise.
pub const MEMORY_LIMIT_BYTES: usize = 100 * 1024 * 1024;

/// Key and order of arrival, so that equal keys keep that order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    key: Vec<u8>,
    arrival: u64,
}

struct Entry {
    rank: Rank,
    doc: DocBuf,
}
impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.rank == other.rank
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}

/// Collects documents and gives them back in order.
pub struct Sorter {
    spec: SortSpec,
    limit: Option<usize>,
    memory_bytes_max: usize,
    memory_bytes: usize,
    arrivals: u64,
    /// With a limit the root is the worst entry kept.
    heap: BinaryHeap<Entry>,
    all: Vec<Entry>,
}

impl Sorter {
    /// `limit`: only that many of the first documents are kept (skip + limit of the query).
    pub fn new(spec: SortSpec, limit: Option<usize>, memory_bytes_max: usize) -> Sorter {
        let limit = limit.filter(|n| *n > 0);
        Sorter {
            spec,
            limit,
            memory_bytes_max,
            memory_bytes: 0,
            arrivals: 0,
            heap: BinaryHeap::new(),
            all: Vec::new(),
        }
    }
    /// Errors: 292 when the documents kept exceed the memory limit, BadValue for parallel arrays.
    pub fn push(&mut self, doc: DocBuf) -> Result<()> {
        let rank = Rank { key: self.spec.key(doc.doc())?, arrival: self.arrivals };
        self.arrivals += 1;
        let full = self.limit.is_some_and(|n| self.heap.len() >= n);
        if full && self.heap.peek().is_some_and(|worst| rank >= worst.rank) {
            return Ok(());
        }
        let entry = Entry { rank, doc };
        self.memory_bytes += entry_bytes(&entry);
        match self.limit {
            Some(_) => self.heap.push(entry),
            None => self.all.push(entry),
        }
        if full && let Some(worst) = self.heap.pop() {
            self.memory_bytes -= entry_bytes(&worst);
        }
        if self.memory_bytes > self.memory_bytes_max {
            bail!(
                QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                "Sort exceeded memory limit of {} bytes, but did not opt in to external sorting.",
                self.memory_bytes_max
            );
        }
        Ok(())
    }
    /// The documents in order.
    pub fn finish(mut self) -> Vec<DocBuf> {
        let entries = match self.limit {
            Some(_) => self.heap.into_sorted_vec(),
            None => {
                self.all.sort_unstable();
                self.all
            }
        };
        entries.into_iter().map(|e| e.doc).collect()
    }
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }
}

fn entry_bytes(e: &Entry) -> usize {
    e.rank.key.len() + e.doc.bytes().len() + std::mem::size_of::<Entry>()
}
