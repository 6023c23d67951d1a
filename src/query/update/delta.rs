//! The difference between two documents, as the oplog records it.
use document::{Doc, DocBuf, Document, Result, bail};

/// `{$v: 2, diff: {...}}`.
pub fn compute(_old: Doc<'_>, _new: Doc<'_>) -> Document {
    Document::new()
}
/// `diff` is the inner document.
pub fn apply(_old: Doc<'_>, _diff: &Document) -> Result<DocBuf> {
    bail!(NOT_IMPLEMENTED, "delta")
}
