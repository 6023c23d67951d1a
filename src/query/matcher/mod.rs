//! Filters.
use crate::ParseContext;
use document::{Doc, Result, ValueRef, bail};

/// A parsed filter.
#[derive(Clone, Debug, Default)]
pub struct Matcher {}

impl Matcher {
    pub fn parse(_filter: Doc<'_>, _ctx: &ParseContext) -> Result<Matcher> {
        bail!(NOT_IMPLEMENTED, "matcher")
    }
    pub fn always() -> Matcher {
        Matcher {}
    }
    pub fn matches(&self, _doc: Doc<'_>) -> Result<bool> {
        bail!(NOT_IMPLEMENTED, "matcher")
    }
    /// Whether it matches, and the position that a positional `$` means.
    pub fn matches_with_position(&self, _doc: Doc<'_>) -> Result<(bool, Option<usize>)> {
        bail!(NOT_IMPLEMENTED, "matcher")
    }
    /// Whether one array element matches, read as `$pull` and `$elemMatch` read it.
    pub fn matches_element(&self, _element: ValueRef<'_>) -> Result<bool> {
        bail!(NOT_IMPLEMENTED, "matcher")
    }
    pub fn is_always_true(&self) -> bool {
        false
    }
}
