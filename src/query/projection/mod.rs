//! Projections of find and findAndModify.
use crate::ParseContext;
use crate::matcher::Matcher;
use document::{Doc, Result, bail};

#[derive(Clone, Debug)]
pub struct Projection {}
impl Projection {
    /// `filter` is what a positional `a.$` refers to.
    pub fn parse(_spec: Doc<'_>, _filter: &Matcher, _ctx: &ParseContext) -> Result<Projection> {
        bail!(NOT_IMPLEMENTED, "projection")
    }
    /// Appends the projected document to `out`.
    pub fn apply(&self, _doc: Doc<'_>, _out: &mut Vec<u8>) -> Result<()> {
        bail!(NOT_IMPLEMENTED, "projection")
    }
}
