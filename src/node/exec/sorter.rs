//! The blocking sort of a query: keys and record ids only. The documents are fetched from the snapshot afterwards.
//!
//! Above its limit the sort goes on in files. Where the client forbade those, what is sorted is weighed as if documents
//! were held, as the real server holds them, and a sort that is too heavy is refused.

use document::{Doc, Result, bail};
use query::pipeline::account::{Kind, Use};
use query::pipeline::spill::{Entry, Merge, Sorter, Space};
use query::pipeline::{Account, Charge, Spills};
use query::sort::SortSpec;
use std::sync::Arc;
use storage::RecordId;

/// An entry is the record's id and the length of its document.
const RECORD_BYTES: usize = size_of::<RecordId>();

/// What a sort may use.
#[derive(Clone, Default)]
pub struct Means {
    /// Bytes that it may hold in memory; `None`: any number.
    pub bytes_max: Option<usize>,
    /// Where it goes on above that; `None` where it must not.
    pub space: Option<Arc<dyn Space>>,
    /// Where it notes what it holds, if somebody wants to know.
    pub account: Option<Arc<Account>>,
    /// Who is told of what it writes, where there is no account yet that tells.
    pub told: Vec<Arc<Spills>>,
}

/// Collects records and gives them back in order; with a limit it keeps only what can still be in the result.
pub struct RecordSorter {
    spec: SortSpec,
    sorter: Sorter,
    may_spill: bool,
}

impl RecordSorter {
    /// `limit`: how many of the first records are wanted.
    pub fn new(spec: SortSpec, limit: Option<usize>, means: &Means) -> RecordSorter {
        let account = means.account.clone().unwrap_or_default();
        if means.account.is_none() {
            account.tell(means.told.clone());
        }
        let charge = Charge::new(&account, means.bytes_max.unwrap_or(usize::MAX)).counted_as(Kind::Sort);
        let sorter = Sorter::with(charge, means.space.clone(), limit);
        let may_spill = means.space.is_some();
        RecordSorter {
            spec,
            sorter: if may_spill { sorter } else { sorter.weighing(with_document) },
            may_spill,
        }
    }
    /// # Errors
    /// BadValue for arrays in two components; 292 when a sort that must not spill exceeds its limit; those of the disk.
    pub fn push(&mut self, record: RecordId, doc: Doc<'_>) -> Result<()> {
        let key = self.spec.key(doc)?;
        let mut entry = Vec::with_capacity(RECORD_BYTES + 4);
        entry.extend_from_slice(&record.to_be_bytes());
        entry.extend_from_slice(&(doc.bytes().len() as u32).to_be_bytes());
        self.sorter.push(key, entry)?;
        if !self.may_spill && self.sorter.is_over() {
            bail!(
                QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                "Sort exceeded memory limit of {} bytes, but did not opt in to external sorting.",
                self.sorter.limit()
            );
        }
        Ok(())
    }
    /// The records in order.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn finish(mut self) -> Result<Sorted> {
        let merge = self.sorter.finish()?;
        Ok(Sorted { merge, next: None, used: self.sorter.used() })
    }
}

/// What an entry and the document that it stands for weigh.
fn with_document((key, entry): &Entry) -> usize {
    let document = entry.get(RECORD_BYTES..).and_then(|b| b.try_into().ok()).map_or(0, u32::from_be_bytes);
    key.len() + document as usize
}

/// Records in order, read one after the other.
#[derive(Default)]
pub struct Sorted {
    merge: Merge,
    next: Option<RecordId>,
    /// What sorting took, for explain.
    pub used: Use,
}

impl Sorted {
    /// The record that stands next, the same until it is taken.
    ///
    /// # Errors
    /// Those of the disk, and of [`document::meter::spend`].
    pub fn peek(&mut self) -> Result<Option<RecordId>> {
        if self.next.is_none()
            && let Some(entry) = self.merge.next().transpose()?
        {
            self.next = entry.1.first_chunk().map(|b| u64::from_be_bytes(*b));
        }
        Ok(self.next)
    }
    pub fn take(&mut self) {
        self.next = None;
    }
}
