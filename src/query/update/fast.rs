//! Updates of top-level fields, by splicing bytes.
//!
//! Only the values that operators name are decoded. What stands between them is copied in runs; new fields follow in the order of the
//! operators. When nothing changes, nothing is copied. `None` when the general way has to be taken.

use super::ops::Change;
use super::tree::Place;
use super::{Operators, Outcome};
use crate::fields::Fields;
use document::{Doc, DocBuf, DocWriter, Element, Result, Value, meter};

/// A stretch of the old document and the field that takes its place.
struct Edit<'a> {
    start: usize,
    end: usize,
    field: Option<(&'a str, Value)>,
}

pub(super) fn apply(o: &Operators, old: Doc<'_>, is_insert: bool) -> Result<Option<Outcome>> {
    if o.operations.iter().any(|op| op.path.text == "_id") {
        return Ok(None);
    }
    let fields = Fields::of(old, o.operations.len())?;
    let mut edits: Vec<Edit<'_>> = Vec::with_capacity(o.operations.len());
    let mut appended: Vec<(&str, Value)> = Vec::new();
    for op in &o.operations {
        let name = op.path.text.as_str();
        let place = Place { path: name, name, document: old, is_insert };
        meter::spend(4)?;
        let Some(e) = fields.get(name) else {
            appended.extend(op.modifier.create(&place)?.map(|v| (name, v)));
            continue;
        };
        let mut value = e.value().to_value();
        let field = match op.modifier.change(&mut value, &place)? {
            Change::None => continue,
            Change::Changed => Some((name, value)),
            Change::Remove => None,
        };
        let start = offset(old, &e);
        edits.push(Edit { start, end: start + e.whole().len(), field });
    }
    if edits.is_empty() && appended.is_empty() {
        return Ok(Some(Outcome::NoOp));
    }
    edits.sort_by_key(|e| e.start);
    Ok(Some(Outcome::Changed(splice(old, &edits, &appended))))
}

/// Where the element stands in the document it was found in.
fn offset(doc: Doc<'_>, e: &Element<'_>) -> usize {
    (e.whole().as_ptr() as usize).saturating_sub(doc.bytes().as_ptr() as usize)
}

fn splice(old: Doc<'_>, edits: &[Edit<'_>], appended: &[(&str, Value)]) -> DocBuf {
    let bytes = old.bytes();
    let mut out = Vec::with_capacity(bytes.len() + 64);
    DocWriter::write(&mut out, |w| {
        let mut from = 4;
        for edit in edits {
            w.buffer().extend_from_slice(bytes.get(from..edit.start).unwrap_or(&[]));
            if let Some((name, value)) = &edit.field {
                value.write(w, name);
            }
            from = edit.end;
        }
        w.buffer().extend_from_slice(bytes.get(from..bytes.len().saturating_sub(1)).unwrap_or(&[]));
        for (name, value) in appended {
            value.write(w, name);
        }
    });
    DocBuf::from_validated(out)
}
