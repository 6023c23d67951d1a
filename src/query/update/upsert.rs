//! The document an upsert inserts.

use super::path::beginnings;
use super::{Kind, Outcome, Update};
use crate::matcher::path::Path;
use crate::matcher::{Comparison, Leaf, Matcher, Node, Test};
use document::{DocBuf, Document, Result, Value, bail, meter};
use std::collections::HashSet;

pub(super) fn document(update: &Update, filter: &Matcher) -> Result<DocBuf> {
    if let Kind::Replacement(r) = &update.kind {
        return replacement(r, filter);
    }
    let base = base(filter)?;
    let new = match update.apply(base.doc(), None, true)? {
        Outcome::NoOp => base,
        Outcome::Changed(new) => super::with_id_of(base.doc(), new),
    };
    if let Some(id) = new.get("_id") {
        super::check_id_type(id)?;
    }
    Ok(new)
}

/// What the filter alone gives, `_id` first: what operators then change.
pub(super) fn base(filter: &Matcher) -> Result<DocBuf> {
    Ok(id_first(from_filter(filter)?).to_doc_buf())
}

fn replacement(r: &DocBuf, filter: &Matcher) -> Result<DocBuf> {
    let mut pairs = Vec::new();
    collect(filter.root(), &mut pairs);
    let id = pairs.into_iter().find(|(path, _)| *path.text == *"_id").map(|(_, v)| v);
    let mut base = Document::new();
    if let Some(id) = id {
        base.push("_id", id);
    }
    super::replaced(base.to_doc_buf().doc(), r.doc())
}

fn id_first(mut d: Document) -> Document {
    if let Some(at) = d.0.iter().position(|(n, _)| n == "_id") {
        d.0[..=at].rotate_right(1);
    }
    d
}

/// The fields that the filter's equalities give. Error: NotSingleValueField when two give the same field.
fn from_filter(filter: &Matcher) -> Result<Document> {
    let mut pairs = Vec::new();
    collect(filter.root(), &mut pairs);
    pairs.sort_by(|a, b| a.0.text.cmp(&b.0.text));
    let mut out = Document::new();
    let mut seen = HashSet::new();
    for (path, value) in &pairs {
        crate::depth::check_path_length(path.parts.len())?;
        // Each beginning of a path is looked up.
        meter::spend(1 + path.parts.len() * (1 + path.text.len() / 1024))?;
        // In the order of the texts a path comes after all that it begins with.
        if let Some(earlier) = beginnings(&path.text).find(|b| seen.contains(b)) {
            if earlier == &*path.text {
                bail!(
                    NOT_SINGLE_VALUE_FIELD,
                    "cannot infer query fields to set, path '{}' is matched twice",
                    path.text
                );
            }
            bail!(
                NOT_SINGLE_VALUE_FIELD,
                "cannot infer query fields to set, both paths '{}' and '{earlier}' are matched",
                path.text
            );
        }
        seen.insert(&*path.text);
        append(&mut out, &path.parts.iter().map(|p| &*p.name).collect::<Vec<_>>(), value);
    }
    Ok(out)
}

fn collect<'a>(node: &'a Node, out: &mut Vec<(&'a Path, Value)>) {
    match node {
        Node::And(list) => list.iter().for_each(|n| collect(n, out)),
        Node::Or(list) if list.len() == 1 => collect(&list[0], out),
        Node::Leaf(Leaf { path, test }) => match test {
            Test::Compare(Comparison::Eq, operand) => out.push((path, operand.value().to_value())),
            Test::In(set) if set.values.len() == 1 && set.patterns.is_empty() => {
                out.push((path, set.values[0].value().to_value()));
            }
            _ => {}
        },
        _ => {}
    }
}

/// Appends the value at a path that comes after all those in the document: what has a beginning in common with it stands last.
fn append(doc: &mut Document, parts: &[&str], value: &Value) {
    let Some((first, rest)) = parts.split_first() else { return };
    if rest.is_empty() {
        doc.push(*first, value.clone());
        return;
    }
    if doc.0.last().is_none_or(|(name, _)| name != first) {
        doc.push(*first, Document::new());
    }
    if let Some((_, Value::Document(inner))) = doc.0.last_mut() {
        append(inner, rest, value);
    }
}
