//! Text indexes: the form in which one is kept, and the keys of a document.
//!
//! `{a: 1, title: "text", body: "text", z: 1}` is kept as `{a: 1, _fts: "text", _ftsx: 1, z: 1}` with the text fields among
//! the weights. A document has a key for each of its terms:
//!
//! ```text
//! prefix fields, term, score, suffix fields
//! ```
//! A document without terms is not in the index.

use super::keys::{EmitAny, Keys};
use super::spec::{IndexSpec, KeyField};
use document::fts::TextIndex;
use document::path::is_position;
use document::{Doc, DocWriter, Document, Error, Result, Value, ValueRef, bail, err};
use std::collections::BTreeMap;

/// The field of a key pattern that stands for the terms, and the one for their score.
pub const TERM: &str = "_fts";
pub const SCORE: &str = "_ftsx";
const VERSION: i32 = 3;
const WEIGHT_MAX: f64 = 99_999.0;
/// Terms that a document may have.
const TERMS_MAX: usize = 400_000;
/// Bytes that its keys may take, each as a document.
const TERMS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longer terms count as shortened.
const TERM_BYTES_MAX: usize = 256;

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
/// CannotBuildIndexKeys (201) for an array in a field beside the text, or on the way to it, 16732 and 16733 for too many terms, each only where
/// they are offered; those of [`TextIndex::terms`] and of `f`.
pub(crate) fn for_each_key(
    spec: &IndexSpec,
    index: &TextIndex,
    doc: Doc<'_>,
    keys: Keys,
    f: &mut EmitAny<'_>,
) -> Result<()> {
    let mut beside = Vec::with_capacity(spec.fields().len());
    for field in spec.fields() {
        let own = matches!(field.path.as_str(), TERM | SCORE);
        let value = if own { Some(ValueRef::Null) } else { value_beside(field, doc) };
        match value {
            Some(value) => beside.push(value),
            None if keys.are_offered() => return Err(array_beside(field, doc)),
            // What was accepted before such were refused is there as null.
            None => beside.push(ValueRef::Null),
        }
    }
    let terms = index.terms(doc)?;
    if keys.are_offered() {
        check_terms(doc, &beside, &terms)?;
    }
    for (term, score) in terms {
        let mut components: Vec<ValueRef<'_>> = Vec::with_capacity(beside.len());
        for (field, value) in spec.fields().iter().zip(&beside) {
            components.push(match field.path.as_str() {
                TERM => ValueRef::String(&term),
                SCORE => ValueRef::Double(score),
                _ => *value,
            });
        }
        f(&components)?;
    }
    Ok(())
}

/// Whether a document may have these terms, each with the values beside them.
fn check_terms(doc: Doc<'_>, beside: &[ValueRef<'_>], terms: &BTreeMap<String, f64>) -> Result<()> {
    let id = || doc.element("_id").map_or(Value::Null, |id| id.value().to_value());
    if terms.len() > TERMS_MAX {
        bail!(
            16732,
            "too many unique keys for a single document to have a text index, max is {}_id: {}",
            terms.len(),
            document::shell::value(&id())
        );
    }
    // A term and a score are two of the values beside, both null there and with an empty name each: 5 bytes more of the term, 8 of the score.
    let around = DocWriter::build(|w| beside.iter().for_each(|v| w.value("", *v))).bytes().len() + 13;
    let bytes: usize = terms.keys().map(|term| around + term.len().min(TERM_BYTES_MAX)).sum();
    if bytes > TERMS_BYTES_MAX {
        bail!(
            16733,
            "trying to index text where term list is too big, max is 4mb _id: {}",
            document::shell::value(&id())
        );
    }
    Ok(())
}

/// The value of a field beside the text, null where it is missing; nothing for an array, or below one. A position leads to that element of an
/// array, as in an index of plain keys.
fn value_beside<'d>(field: &KeyField, doc: Doc<'d>) -> Option<ValueRef<'d>> {
    let mut value = ValueRef::Document(doc);
    for name in &field.names {
        let found = match value {
            ValueRef::Document(d) => d.get(name),
            ValueRef::Array(items) if is_position(name) && items.get(name).is_some() => items.get(name),
            ValueRef::Array(_) => return None,
            _ => None,
        };
        let Some(found) = found else { return Some(ValueRef::Null) };
        value = found;
    }
    (!matches!(value, ValueRef::Array(_))).then_some(value)
}

fn array_beside(field: &KeyField, doc: Doc<'_>) -> Error {
    err!(
        CANNOT_BUILD_INDEX_KEYS,
        "Field '{}' of text index contains an array in document: {}",
        field.path,
        document::shell::document(&doc.to_document())
    )
}
