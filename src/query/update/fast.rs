//! Updates of top-level fields, in one pass over the bytes.
//!
//! Elements that no operator names are copied as they stand; only the values operators name are decoded. New fields follow in the order
//! of the operators. `None` when the general way has to be taken.

use super::ops::Change;
use super::tree::Place;
use super::{Operators, Outcome};
use document::{Doc, DocBuf, DocWriter, Result};

/// Beyond this many operators the general way is no slower.
const OPERATIONS_MAX: usize = 16;

pub(super) fn apply(o: &Operators, old: Doc<'_>, is_insert: bool) -> Result<Option<Outcome>> {
    if o.operations.len() > OPERATIONS_MAX || o.operations.iter().any(|op| op.path.text == "_id") {
        return Ok(None);
    }
    let mut seen = [false; OPERATIONS_MAX];
    let mut changed = false;
    let mut out = Vec::with_capacity(old.bytes().len() + 64);
    let mut result = Ok(());
    DocWriter::write(&mut out, |w| result = rewrite(o, old, is_insert, w, &mut seen, &mut changed));
    result?;
    Ok(Some(if changed { Outcome::Changed(DocBuf::from_validated(out)) } else { Outcome::NoOp }))
}

fn rewrite(
    o: &Operators,
    old: Doc<'_>,
    is_insert: bool,
    w: &mut DocWriter<'_>,
    seen: &mut [bool; OPERATIONS_MAX],
    changed: &mut bool,
) -> Result<()> {
    let place = |name| Place { path: name, name, document: old, is_insert };
    for e in old {
        let found = o.operations.iter().position(|op| op.path.text.as_bytes() == e.name_bytes());
        let Some(i) = found.filter(|i| !seen[*i]) else {
            w.element(&e);
            continue;
        };
        seen[i] = true;
        let mut value = e.value().to_value();
        match o.operations[i].modifier.change(&mut value, &place(e.name()))? {
            Change::None => w.element(&e),
            Change::Changed => {
                value.write(w, e.name());
                *changed = true;
            }
            Change::Remove => *changed = true,
        }
    }
    for (op, seen) in o.operations.iter().zip(seen.iter()) {
        if !seen && let Some(value) = op.modifier.create(&place(&op.path.text))? {
            value.write(w, &op.path.text);
            *changed = true;
        }
    }
    Ok(())
}
