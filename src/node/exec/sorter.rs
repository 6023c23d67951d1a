//! The blocking sort of a query: keys and record ids only. The documents are fetched from the snapshot afterwards.

use document::{Doc, Result, bail};
use query::sort::SortSpec;
use std::collections::BinaryHeap;
use storage::RecordId;

/// Key, order of arrival (equal keys keep it), record.
type Entry = (Vec<u8>, u64, RecordId);

/// Collects records and gives them back in order; with a limit it keeps only what can still be in the result.
pub struct RecordSorter {
    spec: SortSpec,
    limit: Option<usize>,
    /// Set where the client forbade the use of disk: then what is sorted is counted as if documents were held, and
    /// bounded as the real server bounds it. Otherwise keys are held, however many.
    bytes_max: Option<usize>,
    arrivals: u64,
    bytes: usize,
    /// With a limit the root is the worst entry kept.
    heap: BinaryHeap<Entry>,
    all: Vec<Entry>,
}

impl RecordSorter {
    /// `limit`: how many of the first records are wanted.
    pub fn new(spec: SortSpec, limit: Option<usize>, bytes_max: Option<usize>) -> RecordSorter {
        let limit = limit.filter(|n| *n > 0);
        RecordSorter {
            spec,
            limit,
            bytes_max,
            arrivals: 0,
            bytes: 0,
            heap: BinaryHeap::new(),
            all: Vec::new(),
        }
    }
    /// # Errors
    /// BadValue for arrays in two components; 292 when a bounded sort exceeds the memory limit.
    pub fn push(&mut self, record: RecordId, doc: Doc<'_>) -> Result<()> {
        let key = self.spec.key(doc)?;
        let size = key.len() + doc.bytes().len();
        let arrival = self.arrivals;
        self.arrivals += 1;
        match self.limit {
            None => self.all.push((key, arrival, record)),
            Some(n) => {
                if self.heap.len() >= n {
                    match self.heap.peek() {
                        Some(worst) if key >= worst.0 => return Ok(()),
                        _ => {}
                    }
                    // What goes was about as large as what comes.
                    self.heap.pop();
                    self.bytes = self.bytes.saturating_sub(size);
                }
                self.heap.push((key, arrival, record));
            }
        }
        self.bytes += size;
        if let Some(most) = self.bytes_max.filter(|most| self.bytes > *most) {
            bail!(
                QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                "Executor error during find command :: caused by :: Sort exceeded memory limit of {most} bytes, but did not opt in to external sorting."
            );
        }
        Ok(())
    }
    /// The records in order.
    pub fn finish(self) -> Vec<RecordId> {
        let mut entries = match self.limit {
            Some(_) => self.heap.into_vec(),
            None => self.all,
        };
        entries.sort_unstable();
        entries.into_iter().map(|(_, _, record)| record).collect()
    }
}
