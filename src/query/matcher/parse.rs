//! From the document a client sent to the tree the matcher evaluates.

use crate::QueryContext;
use crate::matcher::ast::{Comparison, Condition, Leaf, Node, Operand, Test};
use crate::matcher::ops::{self, Parse, PathInput};
use crate::matcher::path::Path;
use crate::matcher::pattern::Pattern;
use document::{Doc, Element, Result, ValueRef, bail, meter};
use std::sync::Arc;

/// The work of parsing one element of a filter, beside what it allocates.
const UNITS_AN_ELEMENT: usize = 2;

/// A whole filter: the conjunction of its fields.
pub fn filter(doc: Doc<'_>, ctx: &QueryContext) -> Result<Node> {
    let mut nodes = Vec::new();
    for e in doc {
        meter::spend(UNITS_AN_ELEMENT)?;
        nodes.push(if e.name_bytes().first() == Some(&b'$') { top(e, ctx)? } else { field(e, ctx)? });
    }
    Ok(Node::and(nodes))
}

fn top(e: Element<'_>, ctx: &QueryContext) -> Result<Node> {
    let name = e.name();
    match ops::find(ops::TOP_OPERATORS, name).map(|row| &row.parse) {
        Some(Parse::Top(parse)) => parse(e, ctx),
        Some(_) => bail!(NOT_IMPLEMENTED, "{name} is known but not implemented in this server"),
        // A reference to another document is matched field by field.
        None if matches!(name, "$ref" | "$id" | "$db") => field(e, ctx),
        None => bail!(
            BAD_VALUE,
            "unknown top level operator: {name}. If you have a field name that starts with a '$' symbol, consider using $getField or $setField."
        ),
    }
}

/// Whether a value is a set of operators and not a document to be equal to.
pub fn is_operator_document(d: Doc<'_>) -> bool {
    d.iter().next().is_some_and(|e| {
        let name = e.name();
        name.starts_with('$') && !matches!(name, "$ref" | "$id" | "$db")
    })
}

fn field(e: Element<'_>, ctx: &QueryContext) -> Result<Node> {
    let path = Arc::new(Path::new(e.name()));
    let test = match e.value() {
        ValueRef::Document(d) if is_operator_document(d) => {
            let list = conditions(e.name(), d, ctx)?;
            return Ok(Node::and(list.into_iter().map(|c| c.at(&path)).collect()));
        }
        ValueRef::Regex(source, options) => Test::Regex(Arc::new(Pattern::compile(source, options)?)),
        ValueRef::Undefined => bail!(BAD_VALUE, "cannot compare to undefined"),
        _ => Test::Compare(Comparison::Eq, Operand::of(&e, &ctx.collation)),
    };
    Ok(Node::Leaf(Leaf { path, test }))
}

/// The operators standing under one path.
pub fn conditions(path: &str, d: Doc<'_>, ctx: &QueryContext) -> Result<Vec<Condition>> {
    let mut out = Vec::new();
    for e in d {
        meter::spend(UNITS_AN_ELEMENT)?;
        let name = e.name();
        let input = PathInput { path, argument: e, siblings: d, ctx };
        match ops::find(ops::PATH_OPERATORS, name).map(|row| &row.parse) {
            Some(Parse::Path(parse)) => out.push(parse(&input)?),
            Some(_) => bail!(NOT_IMPLEMENTED, "{name} is known but not implemented in this server"),
            None if name == "$expr" => {
                bail!(BAD_VALUE, "$expr can only be applied to the top-level document")
            }
            None => bail!(BAD_VALUE, "unknown operator: {name}"),
        }
    }
    Ok(out)
}
