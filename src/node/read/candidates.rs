//! Candidates for a write: record ids that matched on a snapshot, in slices.

use crate::namespace::Slot;
use crate::{Node, Operation};
use document::Result;
use query::matcher::Matcher;
use query::planner::Hint;
use query::sort::SortSpec;
use storage::RecordId;

/// What to search for.
pub struct Search<'a> {
    pub filter: &'a Matcher,
    pub sort: Option<&'a SortSpec>,
    pub hint: Option<&'a Hint>,
}

/// A search under way.
pub struct Candidates {}

impl Candidates {
    /// Plans the search and takes its snapshot under the latch, where versions are checked.
    pub async fn open(
        _node: &Node,
        _op: &Operation,
        _slot: &Slot,
        _search: Search<'_>,
    ) -> Result<Candidates> {
        todo!()
    }
    /// The next slice of records; empty at the end.
    pub async fn next(&mut self, _op: &Operation) -> Result<Vec<RecordId>> {
        todo!()
    }
}
