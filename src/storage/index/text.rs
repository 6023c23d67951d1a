//! Text indexes: the form in which one is kept, and the keys of a document.
//!
//! `{a: 1, title: "text", body: "text", z: 1}` is kept as `{a: 1, _fts: "text", _ftsx: 1, z: 1}` with the text fields among
//! the weights. A document has a key for each of its terms:
//!
//! ```text
//! prefix fields, term, score, suffix fields
//! ```
//! A document without terms is not in the index.

use super::spec::{IndexSpec, KeyField};
use document::fts::TextIndex;
use document::path::is_position;
use document::{Doc, Document, Result, Value, ValueRef, bail};
use std::collections::BTreeMap;

/// The field of a key pattern that stands for the terms, and the one for their score.
pub const TERM: &str = "_fts";
pub const SCORE: &str = "_ftsx";
const VERSION: i32 = 3;
const WEIGHT_MAX: f64 = 99_999.0;

/// Whether the key pattern is that of a text index.
pub fn is_text(key: &Document) -> bool {
    key.iter().any(|(_, v)| v.as_str() == Some("text"))
}

/// The specification of a text index in the form in which it is kept. Errors: CannotCreateIndex (67).
pub fn normalized(spec: &Document, key: &Document) -> Result<Document> {
    let mut pattern = Document::new();
    let mut weights = BTreeMap::new();
    let mut ended = false;
    for (name, v) in key.iter() {
        match v {
            _ if name == SCORE => {}
            Value::String(kind) if kind == "text" => {
                if ended {
                    bail!(CANNOT_CREATE_INDEX, "'text' fields in index must all be adjacent");
                }
                if !pattern.contains_key(TERM) {
                    pattern.push(TERM, "text");
                    pattern.push(SCORE, 1);
                }
                if name != TERM {
                    weights.insert(name.to_string(), Value::Int32(1));
                }
            }
            v => {
                ended = pattern.contains_key(TERM);
                pattern.push(name, v.clone());
            }
        }
    }
    take_weights(spec, &mut weights)?;
    if weights.is_empty() {
        bail!(CANNOT_CREATE_INDEX, "a text index needs at least one text field");
    }
    let mut out = Document::new();
    for (name, v) in spec.iter().filter(|(name, _)| !OWN.contains(name)) {
        out.push(name, if name == "key" { Value::Document(pattern.clone()) } else { v.clone() });
    }
    if !out.contains_key("name") {
        out.push("name", super::default_name(key));
    }
    out.push("weights", TextIndex::weights_document(&weights));
    out.push("default_language", spec.get_str("default_language").unwrap_or("english"));
    out.push("language_override", language_override(spec)?);
    out.push("textIndexVersion", version(spec)?);
    TextIndex::parse(&out)?;
    Ok(out)
}

const OWN: [&str; 4] = ["weights", "default_language", "language_override", "textIndexVersion"];

fn take_weights(spec: &Document, weights: &mut BTreeMap<String, Value>) -> Result<()> {
    let given = match spec.get("weights") {
        None => return Ok(()),
        Some(Value::Document(d)) => d.clone(),
        Some(_) => bail!(CANNOT_CREATE_INDEX, "text index option 'weights' must be an object"),
    };
    for (path, weight) in given.iter() {
        let fits = weight.as_f64().is_some_and(|w| w > 0.0 && w < WEIGHT_MAX);
        if !fits {
            bail!(
                CANNOT_CREATE_INDEX,
                "text index weight must be in the exclusive interval (0,{WEIGHT_MAX}) but found: {}",
                document::shell::value(weight)
            );
        }
        if path.is_empty() || (path.starts_with('$') && path != "$**") {
            bail!(CANNOT_CREATE_INDEX, "weight cannot be on field '{path}'");
        }
        weights.insert(path.to_string(), weight.clone());
    }
    Ok(())
}

fn language_override(spec: &Document) -> Result<&str> {
    let name = spec.get_str("language_override").unwrap_or("language");
    if name.is_empty() || name.starts_with('$') || name.contains('.') {
        bail!(CANNOT_CREATE_INDEX, "language_override is not valid");
    }
    Ok(name)
}

fn version(spec: &Document) -> Result<i32> {
    match spec.get("textIndexVersion") {
        None => Ok(VERSION),
        Some(v) => match document::number::to_i64_exact(v) {
            Some(n @ 1..=3) if !matches!(v, Value::Decimal128(_)) => Ok(n as i32),
            _ => bail!(CANNOT_CREATE_INDEX, "bad textIndexVersion: {v:?}"),
        },
    }
}

/// Calls `f` with the components of each key.
///
/// # Errors
/// CannotBuildIndexKeys (201) for an array in a field beside the text, or on the way to it; those of [`TextIndex::terms`].
pub(crate) fn for_each_key(
    spec: &IndexSpec,
    index: &TextIndex,
    doc: Doc<'_>,
    f: &mut dyn FnMut(&[ValueRef<'_>]),
) -> Result<()> {
    let mut beside = Vec::with_capacity(spec.fields().len());
    for field in spec.fields() {
        let own = matches!(field.path.as_str(), TERM | SCORE);
        beside.push(if own { ValueRef::Null } else { value_beside(field, doc)? });
    }
    for (term, score) in index.terms(doc)? {
        let mut components: Vec<ValueRef<'_>> = Vec::with_capacity(beside.len());
        for (field, value) in spec.fields().iter().zip(&beside) {
            components.push(match field.path.as_str() {
                TERM => ValueRef::String(&term),
                SCORE => ValueRef::Double(score),
                _ => *value,
            });
        }
        f(&components);
    }
    Ok(())
}

/// The value of a field beside the text; null where it is missing. A position leads to that element of an array, as in an index of plain keys.
fn value_beside<'d>(field: &KeyField, doc: Doc<'d>) -> Result<ValueRef<'d>> {
    let mut value = ValueRef::Document(doc);
    for name in &field.names {
        let found = match value {
            ValueRef::Document(d) => d.get(name),
            ValueRef::Array(items) if is_position(name) && items.get(name).is_some() => items.get(name),
            ValueRef::Array(_) => return array_beside(field, doc),
            _ => None,
        };
        let Some(found) = found else { return Ok(ValueRef::Null) };
        value = found;
    }
    match value {
        ValueRef::Array(_) => array_beside(field, doc),
        value => Ok(value),
    }
}

fn array_beside<T>(field: &KeyField, doc: Doc<'_>) -> Result<T> {
    bail!(
        CANNOT_BUILD_INDEX_KEYS,
        "Field '{}' of text index contains an array in document: {}",
        field.path,
        document::shell::document(&doc.to_document())
    )
}
