//! Sort orders and the blocking sort.
use document::{Doc, DocBuf, Result, bail};

#[derive(Clone, Debug)]
pub struct SortSpec {}
impl SortSpec {
    pub fn parse(_spec: Doc<'_>) -> Result<SortSpec> {
        bail!(NOT_IMPLEMENTED, "sort")
    }
    /// A key whose memcmp order is the sort order.
    pub fn key(&self, _doc: Doc<'_>) -> Vec<u8> {
        Vec::new()
    }
}
/// Collects documents and returns them in order; with a limit keeps only the first `limit`.
pub struct Sorter {}
impl Sorter {
    pub fn new(_spec: SortSpec, _limit: Option<usize>, _memory_bytes_max: usize) -> Sorter {
        Sorter {}
    }
    pub fn push(&mut self, _doc: DocBuf) -> Result<()> {
        Ok(())
    }
    pub fn finish(self) -> Vec<DocBuf> {
        Vec::new()
    }
}
