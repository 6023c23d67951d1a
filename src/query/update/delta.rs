//! The difference between two documents, as the oplog records it. DO NOT CHANGE: logs hold it and consumers read it.
//!
//! ```text
//! document diff := {d: {name: false, ..}, u: {name: value, ..}, i: {name: value, ..}, s<name>: diff, ..}
//! array diff    := {a: true, l: new length, u<position>: value, s<position>: diff, ..}
//! ```
//! `d` deletes, `u` replaces in place, `i` appends (a field that is there moves to the end), `s` goes into a document or an array. Applying a
//! diff twice gives what applying it once gives.

use document::{Doc, DocBuf, DocWriter, Document, Element, Result, Value, ValueRef, bail};

const ARRAY: u8 = 0x04;
const DOCUMENT: u8 = 0x03;

/// `{$v: 2, diff: {...}}`. The diff is empty when the documents are equal; it may be larger than `new`, which then is the better record.
pub fn compute(old: Doc<'_>, new: Doc<'_>) -> Document {
    let mut out = Document::new();
    out.push("$v", 2);
    out.push("diff", document_diff(old, new));
    out
}

fn document_diff(old: Doc<'_>, new: Doc<'_>) -> Document {
    let (mut deleted, mut updated, mut inserted) = (Vec::new(), Document::new(), Document::new());
    let mut nested = Document::new();
    let mut rest = new.iter().peekable();
    for before in old {
        match rest.peek() {
            Some(after) if after.name_bytes() == before.name_bytes() => {
                if after.whole() != before.whole() {
                    value_diff(&before, after, before.name(), &mut updated, &mut nested);
                }
                rest.next();
            }
            _ => deleted.push(before.name()),
        }
    }
    for after in rest {
        deleted.retain(|name| *name != after.name());
        inserted.push(after.name(), after.value());
    }
    let mut out = Document::new();
    if !deleted.is_empty() {
        out.push(
            "d",
            deleted.into_iter().map(|n| (n.to_string(), Value::Boolean(false))).collect::<Document>(),
        );
    }
    for (section, fields) in [("u", updated), ("i", inserted)] {
        if !fields.is_empty() {
            out.push(section, fields);
        }
    }
    out.0.extend(nested.0);
    out
}

/// A nested diff where both are documents or both arrays and it is the shorter way; else the new value.
fn value_diff(
    before: &Element<'_>,
    after: &Element<'_>,
    name: &str,
    updated: &mut Document,
    nested: &mut Document,
) {
    let diff = match (before.value(), after.value()) {
        (ValueRef::Document(a), ValueRef::Document(b)) => Some(document_diff(a, b)),
        (ValueRef::Array(a), ValueRef::Array(b)) => Some(array_diff(a, b)),
        _ => None,
    };
    match diff {
        Some(diff) if diff.to_vec().len() < after.value_bytes().len() => {
            nested.push(format!("s{name}"), diff)
        }
        _ => updated.push(name, after.value()),
    }
}

fn array_diff(old: Doc<'_>, new: Doc<'_>) -> Document {
    let mut out = Document::new();
    out.push("a", true);
    let (old, new): (Vec<_>, Vec<_>) = (old.iter().collect(), new.iter().collect());
    if new.len() < old.len() {
        out.push("l", new.len() as i32);
    }
    for (i, after) in new.iter().enumerate() {
        let position = i.to_string();
        let (mut updated, mut nested) = (Document::new(), Document::new());
        match old.get(i) {
            Some(before) if before.tag() == after.tag() && before.value_bytes() == after.value_bytes() => {
                continue;
            }
            Some(before) => value_diff(before, after, &position, &mut updated, &mut nested),
            None => updated.push(position.as_str(), after.value()),
        }
        for (_, value) in updated.0 {
            out.push(format!("u{position}"), value);
        }
        out.0.extend(nested.0);
    }
    out
}

/// Applies a diff (the inner document of [`compute`]'s). Error 4770500 for a diff that is none.
pub fn apply(old: Doc<'_>, diff: &Document) -> Result<DocBuf> {
    let mut out = Vec::with_capacity(old.bytes().len() + 64);
    apply_document(old, diff, &mut out)?;
    Ok(DocBuf::from_validated(out))
}

/// The sections of a document diff.
#[derive(Default)]
struct Sections<'a> {
    deleted: Option<&'a Document>,
    updated: Option<&'a Document>,
    inserted: Option<&'a Document>,
    nested: Vec<(&'a str, &'a Document)>,
}

impl<'a> Sections<'a> {
    fn read(diff: &'a Document) -> Result<Sections<'a>> {
        let mut out = Sections::default();
        for (section, value) in diff.iter() {
            let Value::Document(fields) = value else {
                bail!(4770500, "Diff section '{section}' is no object")
            };
            match section {
                "d" => out.deleted = Some(fields),
                "u" => out.updated = Some(fields),
                "i" => out.inserted = Some(fields),
                _ => match section.strip_prefix('s') {
                    Some(name) => out.nested.push((name, fields)),
                    None => bail!(4770500, "Unknown diff section '{section}'"),
                },
            }
        }
        Ok(out)
    }
    fn nested(&self, name: &str) -> Option<&'a Document> {
        self.nested.iter().find(|(n, _)| *n == name).map(|(_, d)| *d)
    }
}

fn apply_document(old: Doc<'_>, diff: &Document, out: &mut Vec<u8>) -> Result<()> {
    let sections = Sections::read(diff)?;
    let has = |fields: Option<&Document>, name: &str| fields.is_some_and(|d| d.contains_key(name));
    let mut result = Ok(());
    DocWriter::write(out, |w| {
        for e in old {
            let name = e.name();
            if has(sections.deleted, name) || has(sections.inserted, name) {
                continue;
            }
            if let Some(value) = sections.updated.and_then(|d| d.get(name)) {
                value.write(w, name);
            } else if let Some(inner) = sections.nested(name) {
                match apply_value(&e, inner) {
                    Ok(bytes) if e.tag() == ARRAY => w.array(name, bytes.doc()),
                    Ok(bytes) => w.document(name, bytes.doc()),
                    Err(error) => result = Err(error),
                }
            } else {
                w.element(&e);
            }
        }
        // A replaced field that is not there any more comes back at the end.
        for (name, value) in sections.updated.into_iter().flat_map(|d| d.iter()) {
            if old.element(name).is_none() {
                value.write(w, name);
            }
        }
        if let Some(fields) = sections.inserted {
            fields.write_fields(w);
        }
    });
    result
}

fn apply_value(e: &Element<'_>, diff: &Document) -> Result<DocBuf> {
    let inner = Doc::from_validated(e.value_bytes());
    match (e.tag(), diff.contains_key("a")) {
        (DOCUMENT, false) => apply(inner, diff),
        (ARRAY, true) => apply_array(inner, diff),
        // The document has moved on since: a later entry of the log gives the field its value.
        _ => Ok(inner.to_owned()),
    }
}

fn apply_array(old: Doc<'_>, diff: &Document) -> Result<DocBuf> {
    let mut items: Vec<Value> = old.to_array();
    if let Some(length) = diff.get("l") {
        let Some(n) = length.as_i64().and_then(|n| usize::try_from(n).ok()) else {
            bail!(4770500, "The length of an array diff must be a number");
        };
        items.truncate(n);
    }
    for (name, value) in diff.iter() {
        if matches!(name, "a" | "l") {
            continue;
        }
        let position = name.get(1..).and_then(|p| p.parse::<usize>().ok());
        let Some(position) = position.filter(|p| *p <= items.len() + 1_500_000) else {
            bail!(4770500, "Unknown array diff section '{name}'");
        };
        if name.starts_with('u') {
            if position >= items.len() {
                items.resize(position + 1, Value::Null);
            }
            items[position] = value.clone();
        } else if let (Some(item), Value::Document(inner)) = (items.get_mut(position), value) {
            apply_item(item, inner)?;
        }
    }
    Ok(DocWriter::build(|w| {
        for (i, item) in items.iter().enumerate() {
            w.with_index(i, |w, name| item.write(w, name));
        }
    }))
}

fn apply_item(item: &mut Value, diff: &Document) -> Result<()> {
    let holder = item.to_holder();
    let Some(e) = holder.doc().iter().next() else { return Ok(()) };
    let new = match e.tag() {
        DOCUMENT | ARRAY => apply_value(&e, diff)?,
        _ => return Ok(()),
    };
    *item = if e.tag() == ARRAY {
        Value::Array(new.doc().to_array())
    } else {
        Value::Document(new.to_document())
    };
    Ok(())
}
