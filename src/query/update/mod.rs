//! Updates: operators, replacements and pipelines.
//!
//! ```text
//! {$set: {"a.b": 1}, $inc: {n: 2}}   operators    applied path by path, in the order of the paths
//! {a: 1}                             replacement  the whole document but its _id
//! [{$set: {..}}, ..]                 pipeline     the document is the pipeline's input
//! ```
//!
//! An update is parsed once. Applying it is a function of the old document (and, for `a.$`, of the position the filter matched): it gives
//! the new document or says that nothing changed. An update of top-level fields only is done by splicing bytes ([`fast`]); any other goes through the tree ([`tree`]).
//!
//! Invariant: `_id` never changes, and a document never leaves here larger than 16 MiB or deeper than 200 levels.

mod fast;
mod index;
pub mod ops;
mod parse;
pub mod path;
mod pipeline;
#[cfg(test)]
mod tests;
mod tree;
mod upsert;

use crate::QueryContext;
use crate::matcher::Matcher;
use document::delta::Touched;
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Value, ValueRef, bail};
use ops::Modifier;
use path::UpdatePath;
pub use path::component_order as field_order;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The largest document a collection may hold.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A parsed update.
#[derive(Clone, Debug)]
pub struct Update {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Operators(Operators),
    Replacement(DocBuf),
    Pipeline(pipeline::Steps),
}

/// A modifier at a path.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    path: UpdatePath,
    modifier: Arc<dyn Modifier>,
}

#[derive(Clone, Debug)]
pub(crate) struct Operators {
    /// In the order of their paths, which is the order in which new fields appear.
    operations: Vec<Operation>,
    renames: Vec<ops::rename::Rename>,
    array_filters: BTreeMap<String, Matcher>,
    /// Every path is one name at the top level.
    flat: bool,
    /// The paths, as the log's difference is to follow them.
    touched: Touched,
    /// Why it may not be applied to a document that exists: it sets a field whose name begins with `$`, which only an insert may have.
    inserts_only: Option<Error>,
}

/// What an update made of one document.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    NoOp,
    Changed(DocBuf),
}

impl Update {
    /// `u`: a document of operators, a replacement, or an array of pipeline stages. Errors are the real server's.
    pub fn parse(u: &Value, array_filters: &[Document], ctx: &QueryContext) -> Result<Update> {
        Ok(Update { kind: parse::update(u, array_filters, ctx)? })
    }
    /// Makes the constants `c` of a statement known to its update `u`.
    ///
    /// # Errors
    /// 51198 where `u` is no pipeline.
    pub fn take_constants(c: Doc<'_>, u: ValueRef<'_>, variables: &mut Document) -> Result<()> {
        if u.as_array().is_none() {
            bail!(51198, "Constant values may only be specified for pipeline updates");
        }
        c.iter().for_each(|e| {
            variables.insert(e.name(), e.value().to_value());
        });
        Ok(())
    }
    /// The update by which a statement inserts where it finds nothing, if it names one: `upsertSupplied` says that the
    /// document to insert is `new` among the constants `c`.
    ///
    /// # Errors
    /// FailedToParse (9) where no document is supplied.
    pub fn of_supplied(statement: Doc<'_>, ctx: &QueryContext) -> Result<Option<Update>> {
        let said = |field| statement.get(field).is_some_and(|v| v.truthy());
        if !said("upsert") || !said("upsertSupplied") {
            return Ok(None);
        }
        let supplied = statement.get_document("c").and_then(|c| c.get_document("new"));
        let Some(supplied) = supplied else {
            bail!(
                FAILED_TO_PARSE,
                "the parameter 'upsertSupplied' is set to 'true', but no document was supplied"
            );
        };
        let update = Update::parse(&Value::Document(supplied.to_document()), &[], ctx)?;
        match update.is_replacement() {
            true => Ok(Some(update)),
            false => bail!(FAILED_TO_PARSE, "the document supplied for an upsert must not be an update"),
        }
    }
    pub fn is_replacement(&self) -> bool {
        matches!(self.kind, Kind::Replacement(_))
    }
    pub fn is_pipeline(&self) -> bool {
        matches!(self.kind, Kind::Pipeline(_))
    }
    /// Whether some path holds a positional `$`, so that the filter's position is needed.
    pub fn needs_position(&self) -> bool {
        match &self.kind {
            Kind::Operators(o) => o.operations.iter().any(|op| op.path.is_positional()),
            _ => false,
        }
    }
    /// The top-level fields it may change; `None` when that may be any.
    pub fn touched_fields(&self) -> Option<Vec<&str>> {
        let Kind::Operators(o) = &self.kind else { return None };
        let mut out: Vec<&str> = o.operations.iter().map(|op| op.path.first()).collect();
        out.extend(o.renames.iter().flat_map(|r| r.first_names()));
        Some(out)
    }
    /// Where operators were told to write; `None` for what computes a whole document.
    pub fn touched(&self) -> Option<&Touched> {
        match &self.kind {
            Kind::Operators(o) => Some(&o.touched),
            _ => None,
        }
    }
    /// Applies the update to one document. `match_position`: the array position that `$` means
    /// ([`Matcher::matches_with_position`]); `is_insert`: the document is being upserted, so `$setOnInsert` counts.
    pub fn apply(&self, old: Doc<'_>, match_position: Option<usize>, is_insert: bool) -> Result<Outcome> {
        let new = match &self.kind {
            Kind::Operators(o) => {
                if let Some(error) = o.inserts_only.as_ref().filter(|_| !is_insert) {
                    return Err(error.clone());
                }
                if o.flat
                    && let Some(outcome) = fast::apply(o, old, is_insert)?
                {
                    return checked(outcome);
                }
                let mut document = old.to_document();
                let state = tree::State { old, match_position, is_insert, array_filters: &o.array_filters };
                if !tree::apply(o, &mut document, &state)? {
                    return Ok(Outcome::NoOp);
                }
                let new = document.to_doc_buf();
                check_id_by_operators(old, new.doc())?;
                new
            }
            Kind::Replacement(r) => replaced(old, r.doc())?,
            Kind::Pipeline(steps) => {
                let new = with_id_of(old, steps.apply(old)?);
                check_id_by_replacement(old, new.doc())?;
                new
            }
        };
        // A replacement is compared as it was given: one without `_id` is never the same as what is stored.
        let may_be_same = match &self.kind {
            Kind::Replacement(r) => r.doc().element("_id").is_some(),
            _ => true,
        };
        if may_be_same && new.bytes() == old.bytes() {
            return Ok(Outcome::NoOp);
        }
        checked(Outcome::Changed(crate::depth::checked(new)?))
    }
    /// The document an upsert inserts when nothing matched: the filter's equalities with the update applied. Without `_id` when neither
    /// gives one; the caller then generates it.
    pub fn upsert_document(&self, filter: &Matcher) -> Result<DocBuf> {
        let new = crate::depth::checked(upsert::document(self, filter)?)?;
        check_size(new.bytes().len())?;
        Ok(new)
    }
}

/// What an upsert by operators begins with: the document that the filter's equalities give, `_id` first.
///
/// # Errors
/// NotSingleValueField when two of them give the same field.
pub fn upsert_base(filter: &Matcher) -> Result<DocBuf> {
    upsert::base(filter)
}

fn checked(outcome: Outcome) -> Result<Outcome> {
    if let Outcome::Changed(new) = &outcome {
        check_size(new.bytes().len())?;
    }
    Ok(outcome)
}

fn check_size(bytes: usize) -> Result<()> {
    if bytes > DOCUMENT_BYTES_MAX {
        bail!(17419, "Resulting document after update is larger than {DOCUMENT_BYTES_MAX}");
    }
    Ok(())
}

fn same(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    document::compare::compare(a, b) == std::cmp::Ordering::Equal
}

fn check_id_by_operators(old: Doc<'_>, new: Doc<'_>) -> Result<()> {
    let ok = match (old.get("_id"), new.get("_id")) {
        (Some(a), Some(b)) => same(a, b),
        (None, Some(id)) => return check_id_type(id),
        (Some(_), None) => false,
        (None, None) => true,
    };
    if !ok {
        bail!(
            IMMUTABLE_FIELD,
            "Performing an update on the path '_id' would modify the immutable field '_id'"
        );
    }
    Ok(())
}

fn check_id_by_replacement(old: Doc<'_>, new: Doc<'_>) -> Result<()> {
    match (old.get("_id"), new.get("_id")) {
        (Some(a), Some(b)) if !same(a, b) => bail!(
            IMMUTABLE_FIELD,
            "After applying the update, the (immutable) field '_id' was found to have been altered to _id: {}",
            crate::text::value(b)
        ),
        (None, Some(id)) => check_id_type(id),
        _ => Ok(()),
    }
}

/// Types an `_id` cannot have.
pub fn check_id_type(id: ValueRef<'_>) -> Result<()> {
    if matches!(id, ValueRef::Array(_) | ValueRef::Regex(..) | ValueRef::Undefined) {
        bail!(INVALID_ID_FIELD, "The '_id' value cannot be of type {}", id.type_name());
    }
    Ok(())
}

/// The replacement with the old `_id` in front, unless it has one itself.
fn replaced(old: Doc<'_>, replacement: Doc<'_>) -> Result<DocBuf> {
    let new = with_id_of(old, replacement.to_owned());
    check_id_by_replacement(old, new.doc())?;
    Ok(new)
}

fn with_id_of(old: Doc<'_>, new: DocBuf) -> DocBuf {
    let own = new.doc().element("_id");
    match old.element("_id").or(own) {
        // The stored type of an equal _id stays, and _id stands first.
        Some(id) => DocWriter::build(|w| {
            w.element(own.as_ref().unwrap_or(&id));
            new.doc().iter().filter(|e| e.name_bytes() != b"_id").for_each(|e| w.element(&e));
        }),
        None => new,
    }
}
