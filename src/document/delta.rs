//! The difference between two documents, as the oplog records it. DO NOT CHANGE: logs hold it and consumers read it.
//!
//! ```text
//! document diff := {d: {name: false, ..}, u: {name: value, ..}, i: {name: value, ..}, s<name>: diff, ..}
//! array diff    := {a: true, l: new length, u<position>: value, s<position>: diff, ..}
//! ```
//! `d` deletes, `u` replaces in place, `i` appends (a field that is there moves to the end), `s` goes into a document or an array. Applying a
//! diff twice gives what applying it once gives.

use std::collections::BTreeMap;

use crate::{Doc, DocBuf, DocWriter, Document, Element, Result, Value, ValueRef, bail};
use std::collections::{HashMap, HashSet};

const ARRAY: u8 = 0x04;
const DOCUMENT: u8 = 0x03;

/// `{$v: 2, diff: {...}}`. The diff is empty when the documents are equal; it may be larger than `new`, which then is the better record.
pub fn compute(old: Doc<'_>, new: Doc<'_>) -> DocBuf {
    compute_along(old, new, &Touched::default())
}

/// The same for an update that was told where to write: a value written whole stands whole in the diff, at its path, however much of it was there
/// before. Elsewhere the diff is as short as it can be.
pub fn compute_along(old: Doc<'_>, new: Doc<'_>, touched: &Touched) -> DocBuf {
    DocWriter::build(|w| {
        w.i32("$v", 2);
        w.document_with("diff", |w| document_diff(old, new, &[touched], w));
    })
}

/// Paths that an update was told to write.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    named: BTreeMap<String, Touched>,
    /// Every element of an array.
    every: Option<Box<Touched>>,
    end: Option<Extent>,
}

/// How much of the value at its path an update writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// Elements at the end of an array.
    Elements,
}

impl Touched {
    /// Adds a path; a step without a name means every element.
    pub fn add<'s>(&mut self, steps: impl Iterator<Item = Option<&'s str>>, extent: Extent) {
        let mut at = self;
        for step in steps {
            at = match step {
                Some(name) => at.named.entry(name.to_string()).or_default(),
                None => at.every.get_or_insert_default(),
            };
        }
        at.end = Some(extent);
    }
}

/// What is touched at a name below the given places.
fn below<'t>(at: &[&'t Touched], name: &[u8]) -> Vec<&'t Touched> {
    let name = std::str::from_utf8(name).unwrap_or("");
    at.iter().flat_map(|t| t.named.get(name).into_iter().chain(t.every.as_deref())).collect()
}

/// What changed in one document, by section.
#[derive(Default)]
struct Changes<'a> {
    deleted: Vec<&'a [u8]>,
    updated: Vec<Element<'a>>,
    inserted: Vec<Element<'a>>,
    nested: Vec<(Element<'a>, DocBuf)>,
}

fn document_diff(old: Doc<'_>, new: Doc<'_>, at: &[&Touched], w: &mut DocWriter<'_>) {
    let mut changes = Changes::default();
    let (mut old, mut new) = (old.iter(), new.iter());
    while let Some(before) = old.next() {
        let mut beyond = new.clone();
        match beyond.next() {
            Some(after) if after.name_bytes() == before.name_bytes() => {
                new = beyond;
                if after.whole() == before.whole() {
                    continue;
                }
                match nested_diff(&before, &after, &below(at, after.name_bytes())) {
                    Some(diff) => changes.nested.push((after, diff)),
                    None => changes.updated.push(after),
                }
                // Most updates change one field: where what follows is the same there is nothing more to find.
                if old.rest() == new.rest() {
                    return changes.write(w);
                }
            }
            _ => changes.deleted.push(before.name_bytes()),
        }
    }
    changes.inserted.extend(new);
    if !changes.deleted.is_empty() && !changes.inserted.is_empty() {
        let again: HashSet<&[u8]> = changes.inserted.iter().map(|e| e.name_bytes()).collect();
        changes.deleted.retain(|name| !again.contains(name));
    }
    changes.write(w);
}

impl Changes<'_> {
    fn write(&self, w: &mut DocWriter<'_>) {
        if !self.deleted.is_empty() {
            w.document_with("d", |w| {
                self.deleted.iter().for_each(|name| w.bool(&String::from_utf8_lossy(name), false));
            });
        }
        for (section, fields) in [("u", &self.updated), ("i", &self.inserted)] {
            if !fields.is_empty() {
                w.document_with(section, |w| fields.iter().for_each(|e| w.element(e)));
            }
        }
        for (e, diff) in &self.nested {
            w.document(&format!("s{}", e.name()), diff.doc());
        }
    }
}

/// A nested diff where both are documents or both arrays, and either the update wrote below or it is the shorter way.
fn nested_diff(before: &Element<'_>, after: &Element<'_>, at: &[&Touched]) -> Option<DocBuf> {
    if at.iter().any(|t| t.end == Some(Extent::Whole)) {
        return None;
    }
    let diff = match (before.value(), after.value()) {
        (ValueRef::Document(a), ValueRef::Document(b)) => DocWriter::build(|w| document_diff(a, b, at, w)),
        (ValueRef::Array(a), ValueRef::Array(b)) => DocWriter::build(|w| array_diff(a, b, at, w)),
        _ => return None,
    };
    Some(diff).filter(|diff| !at.is_empty() || diff.bytes().len() < after.value_bytes().len())
}

fn array_diff(old: Doc<'_>, new: Doc<'_>, at: &[&Touched], w: &mut DocWriter<'_>) {
    w.bool("a", true);
    let (old, new): (Vec<_>, Vec<_>) = (old.iter().collect(), new.iter().collect());
    if new.len() < old.len() {
        w.i32("l", new.len() as i32);
    }
    for (i, after) in new.iter().enumerate() {
        let before = old.get(i);
        if before.is_some_and(|b| b.tag() == after.tag() && b.value_bytes() == after.value_bytes()) {
            continue;
        }
        match before.and_then(|before| nested_diff(before, after, &below(at, after.name_bytes()))) {
            Some(diff) => w.document(&format!("s{i}"), diff.doc()),
            None => w.element_as(&format!("u{i}"), after),
        }
    }
}

/// Applies a diff (the inner document of [`compute`]'s). Error 4770500 for a diff that is none.
pub fn apply(old: Doc<'_>, diff: &Document) -> Result<DocBuf> {
    let mut out = Vec::with_capacity(old.bytes().len() + 64);
    apply_document(old, diff, &mut out)?;
    Ok(DocBuf::from_validated(out))
}

/// Fields that are looked for one by one.
const SEARCHES_MAX: usize = 8;

/// The sections of a document diff. Fields are found by hash: a diff may name as many as a document has.
#[derive(Default)]
struct Sections<'a> {
    /// Deleted, or moved to the end.
    gone: HashSet<&'a str>,
    updated: HashMap<&'a str, &'a Value>,
    /// The same in their order.
    updates: Option<&'a Document>,
    inserted: Option<&'a Document>,
    nested: HashMap<&'a str, &'a Document>,
}

impl<'a> Sections<'a> {
    fn read(diff: &'a Document) -> Result<Sections<'a>> {
        let mut out = Sections::default();
        for (section, value) in diff.iter() {
            let Value::Document(fields) = value else {
                bail!(4770500, "Diff section '{section}' is no object")
            };
            match section {
                "d" => out.gone.extend(fields.keys()),
                "u" => {
                    out.updates = Some(fields);
                    fields.iter().for_each(|(name, v)| {
                        out.updated.entry(name).or_insert(v);
                    });
                }
                "i" => {
                    out.inserted = Some(fields);
                    out.gone.extend(fields.keys());
                }
                _ => match section.strip_prefix('s') {
                    Some(name) => {
                        out.nested.entry(name).or_insert(fields);
                    }
                    None => bail!(4770500, "Unknown diff section '{section}'"),
                },
            }
        }
        Ok(out)
    }
}

fn apply_document(old: Doc<'_>, diff: &Document, out: &mut Vec<u8>) -> Result<()> {
    let sections = Sections::read(diff)?;
    // A few fields are found sooner by a search than by an index.
    let index: Option<HashSet<&str>> = match sections.nested.len() + sections.updated.len() {
        0..=SEARCHES_MAX => None,
        _ => Some(old.iter().map(|e| e.name()).collect()),
    };
    let present = |name: &str| match &index {
        Some(index) => index.contains(name),
        None => old.element(name).is_some(),
    };
    if let Some(name) = sections.nested.keys().find(|name| !present(name)) {
        bail!(4770500, "Field '{name}' of a diff is missing");
    }
    let mut result = Ok(());
    DocWriter::write(out, |w| {
        for e in old {
            let name = e.name();
            if sections.gone.contains(name) {
                continue;
            }
            if let Some(value) = sections.updated.get(name) {
                value.write(w, name);
            } else if let Some(inner) = sections.nested.get(name) {
                match apply_value(&e, inner) {
                    Ok(bytes) if e.tag() == ARRAY => w.array(name, bytes.doc()),
                    Ok(bytes) => w.document(name, bytes.doc()),
                    Err(error) => result = Err(error),
                }
            } else {
                w.element(&e);
            }
        }
        // A replaced field that is not there comes at the end.
        for (name, value) in sections.updates.into_iter().flat_map(|d| d.iter()) {
            if !present(name) {
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
        _ => bail!(4770500, "The diff of field '{}' does not fit its value", e.name()),
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
        } else if let (true, Some(item), Value::Document(inner)) =
            (name.starts_with('s'), items.get_mut(position), value)
        {
            apply_item(item, inner)?;
        } else {
            bail!(4770500, "Section '{name}' of an array diff does not fit the array");
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
    let new = apply_value(&e, diff)?;
    *item = if e.tag() == ARRAY {
        Value::Array(new.doc().to_array())
    } else {
        Value::Document(new.to_document())
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc;

    fn applied(old: &Document, diff: &Document) -> Result<Document> {
        apply(old.to_doc_buf().doc(), diff).map(|d| d.to_document())
    }

    #[test]
    fn a_diff_leads_from_the_old_document_to_the_new() {
        let pairs = [
            (doc! {"_id": 1, "a": 1, "b": 2}, doc! {"_id": 1, "a": 5, "c": 3}),
            (
                doc! {"_id": 1, "a": {"x": 1, "y": "0123456789012345678901234567890"}},
                doc! {"_id": 1, "a": {"x": 2, "y": "0123456789012345678901234567890"}},
            ),
            (doc! {"_id": 1, "a": [1, 2, 3, 4, 5, 6, 7, 8]}, doc! {"_id": 1, "a": [1, 9, 3, 4, 5, 6, 7]}),
            (doc! {"_id": 1, "a": [1]}, doc! {"_id": 1, "a": [1, 2, 3]}),
            (doc! {"_id": 1, "a": 1, "b": 2}, doc! {"_id": 1, "b": 2, "a": 1}),
            (doc! {"_id": 1}, doc! {"_id": 1}),
        ];
        for (old, new) in pairs {
            let delta = compute(old.to_doc_buf().doc(), new.to_doc_buf().doc()).to_document();
            let diff = delta.get_document("diff").unwrap();
            let once = applied(&old, diff).unwrap();
            assert_eq!(once, new, "{delta:?}");
            assert_eq!(applied(&once, diff).unwrap(), new, "twice {delta:?}");
        }
        let (old, new) = (doc! {"a": 1, "b": 2}, doc! {"a": 5, "c": 3});
        let delta = compute(old.to_doc_buf().doc(), new.to_doc_buf().doc()).to_document();
        assert_eq!(delta, doc! {"$v": 2, "diff": {"d": {"b": false}, "u": {"a": 5}, "i": {"c": 3}}});
    }

    #[test]
    fn sections_are_applied_in_place_and_twice_gives_the_same() {
        let before = doc! { "_id": 1, "a": 1, "b": { "x": 1, "y": 2 }, "c": [1, { "z": 1 }, 3], "e": 9 };
        let diff = doc! {
            "d": { "e": false }, "u": { "a": 5 }, "i": { "n": 1 },
            "sb": { "d": { "y": false } },
            "sc": { "a": true, "l": 2, "u0": 7, "s1": { "u": { "z": 2 } } }
        };
        let after = doc! { "_id": 1, "a": 5, "b": { "x": 1 }, "c": [7, { "z": 2 }], "n": 1 };
        assert_eq!(applied(&before, &diff).unwrap(), after);
        assert_eq!(applied(&after, &diff).unwrap(), after);
    }

    #[test]
    fn a_diff_that_does_not_fit_is_an_error_and_not_a_panic() {
        let before = doc! { "_id": 1, "a": 1, "c": [1] };
        for diff in [
            doc! { "x": { "a": 1 } },
            doc! { "sq": { "d": { "y": false } } },
            doc! { "sa": { "u": { "y": 1 } } },
            doc! { "sc": { "a": true, "u99999999999": 1 } },
            doc! { "sc": { "a": true, "s0": { "u": { "y": 1 } } } },
            doc! { "sc": { "a": true, "s7": { "u": { "y": 1 } } } },
            doc! { "sc": { "a": true, "\u{e9}": 1 } },
            doc! { "d": 1 },
        ] {
            assert!(applied(&before, &diff).is_err(), "{diff:?}");
        }
    }

    /// Numbers that look random and are the same in every run.
    struct Dice(u64);
    impl Dice {
        fn roll(&mut self, sides: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) % sides
        }
        fn value(&mut self, depth: u32) -> Value {
            match self.roll(if depth == 0 { 3 } else { 6 }) {
                0 => Value::Int32(self.roll(3) as i32),
                1 => Value::from("a string that is somewhat long"),
                2 => Value::Int64(self.roll(3) as i64),
                3 => Value::Array((0..self.roll(4)).map(|_| self.value(depth - 1)).collect()),
                _ => Value::Document(self.document(depth - 1)),
            }
        }
        fn document(&mut self, depth: u32) -> Document {
            let mut d = Document::new();
            for name in ["c", "a", "d", "b", "e"] {
                if self.roll(2) == 0 {
                    d.push(name, self.value(depth));
                }
            }
            if self.roll(6) == 0 {
                d.0.reverse();
            }
            d
        }
    }

    #[test]
    fn any_diff_leads_from_the_old_document_to_the_new() {
        let mut dice = Dice(3);
        for _ in 0..3000 {
            let (old, new) = (dice.document(3), dice.document(3));
            let delta = compute(old.to_doc_buf().doc(), new.to_doc_buf().doc()).to_document();
            let once = applied(&old, delta.get_document("diff").unwrap()).unwrap();
            assert_eq!(once, new, "{old:?} {delta:?}");
        }
    }

    #[test]
    fn what_an_update_wrote_whole_stands_whole_and_the_rest_at_its_path() {
        let along = |old: Document, new: Document, paths: &[(&[Option<&str>], Extent)]| {
            let mut touched = Touched::default();
            paths.iter().for_each(|(path, extent)| touched.add(path.iter().copied(), *extent));
            compute_along(old.to_doc_buf().doc(), new.to_doc_buf().doc(), &touched)
                .to_document()
                .get_document("diff")
                .cloned()
        };
        let (old, new) = (doc! { "l": [1, 2, 3, 4, 5, 6, 7, 8] }, doc! { "l": [1, 2, 3, 4, 5, 6, 7, 9] });
        let whole = along(old.clone(), new.clone(), &[(&[Some("l")], Extent::Whole)]);
        assert_eq!(whole, Some(doc! { "u": { "l": [1, 2, 3, 4, 5, 6, 7, 9] } }));
        let element = along(old, new, &[(&[Some("l"), None], Extent::Whole)]);
        assert_eq!(element, Some(doc! { "sl": { "a": true, "u7": 9 } }));
        let nested = along(
            doc! { "d": { "x": 1 } },
            doc! { "d": { "x": 2 } },
            &[(&[Some("d"), Some("x")], Extent::Whole)],
        );
        assert_eq!(nested, Some(doc! { "sd": { "u": { "x": 2 } } }));
        let pushed = along(doc! { "l": [] }, doc! { "l": [1] }, &[(&[Some("l")], Extent::Elements)]);
        assert_eq!(pushed, Some(doc! { "sl": { "a": true, "u0": 1 } }));
    }
}
