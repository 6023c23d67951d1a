//! Dotted paths through documents and arrays.
use crate::{Doc, Result, ValueRef};

/// A value by dotted path through documents only; an array on the way ends it (a last array is returned).
pub fn get<'a>(_doc: Doc<'a>, _path: &str) -> Option<ValueRef<'a>> {
    todo!()
}
/// Every value the matcher sees at `path`, arrays on the way and at the end expanded; at the end the array itself
/// comes last. A missing value is `None`. `f` returns true to stop; the result says whether it did.
pub fn for_each_value<'a>(
    _doc: Doc<'a>,
    _path: &str,
    _f: &mut dyn FnMut(Option<ValueRef<'a>>) -> bool,
) -> bool {
    todo!()
}
/// As [`for_each_value`] but an array at the end is given whole only (`$exists`, `$size`, `$elemMatch`, ...).
pub fn for_each_leaf<'a>(
    _doc: Doc<'a>,
    _path: &str,
    _f: &mut dyn FnMut(Option<ValueRef<'a>>) -> bool,
) -> bool {
    todo!()
}
/// Whether an array lies on the path or at its end.
pub fn traverses_array(_doc: Doc<'_>, _path: &str) -> bool {
    todo!()
}
/// The keys of one document in one compound index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexKeys<'a> {
    /// Each key: one value for each path, null for missing, undefined for an empty array. Not sorted; no two equal.
    pub keys: Vec<Vec<ValueRef<'a>>>,
    /// For each path the positions of those of its names whose value was an array.
    pub multikey: Vec<Vec<usize>>,
    /// For each path: nothing was found at it in any key (sparse indexes skip a document when all are).
    pub missing: Vec<bool>,
}
impl IndexKeys<'_> {
    pub fn is_multikey(&self) -> bool {
        self.multikey.iter().any(|p| !p.is_empty())
    }
    pub fn all_missing(&self) -> bool {
        self.missing.iter().all(|m| *m)
    }
}
/// Errors: CannotIndexParallelArrays; 16746 for a numeric name that is both a position and a field.
pub fn index_keys<'a>(_doc: Doc<'a>, _paths: &[&str]) -> Result<IndexKeys<'a>> {
    todo!()
}
/// The key a document sorts by: of its index keys the least in the order of `pattern` (path, descending).
pub fn sort_key<'a>(_doc: Doc<'a>, _pattern: &[(&str, bool)]) -> Result<Vec<ValueRef<'a>>> {
    todo!()
}
