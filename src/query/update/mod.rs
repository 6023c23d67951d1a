//! Updates: operators, replacements and pipelines.
pub mod delta;
use crate::ParseContext;
use crate::matcher::Matcher;
use document::{Doc, DocBuf, Document, Result, Value, bail};

#[derive(Clone, Debug)]
pub struct Update {}
/// What an update made of one document.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    NoOp,
    Changed(DocBuf),
}
impl Update {
    /// `u`: a document of operators, a replacement, or an array of pipeline stages.
    pub fn parse(_u: &Value, _array_filters: &[Document], _ctx: &ParseContext) -> Result<Update> {
        bail!(NOT_IMPLEMENTED, "update")
    }
    pub fn is_replacement(&self) -> bool {
        false
    }
    pub fn apply(&self, _old: Doc<'_>, _match_position: Option<usize>, _is_insert: bool) -> Result<Outcome> {
        bail!(NOT_IMPLEMENTED, "update")
    }
    /// The document an upsert inserts when nothing matched; without `_id` when neither the filter nor the update give one.
    pub fn upsert_document(&self, _filter: &Matcher) -> Result<DocBuf> {
        bail!(NOT_IMPLEMENTED, "update")
    }
}
