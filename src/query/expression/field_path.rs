//! Dotted paths as expressions read them.
//!
//! A path goes through documents; at an array it is evaluated in every element and the results form an array, without
//! those that miss. Array positions are never addressed (`"$a.0"` names a field "0").
//!
//! What is passed over on the way is charged to the [`meter`]: it is for the caller to spend, and so to be refused.

use crate::depth::check_path_length;
use crate::matcher::path::{charge_passed, find};
use document::{Doc, Document, Result, Value, ValueRef, bail, meter};
use std::fmt;

/// A path in components. The empty path names the whole value.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FieldPath(Vec<Box<str>>);

impl FieldPath {
    /// Parses `a.b.c` (without the dollar).
    pub fn parse(path: &str) -> Result<FieldPath> {
        if path.is_empty() {
            bail!(40352, "FieldPath cannot be constructed with empty string");
        }
        if path.ends_with('.') {
            bail!(40353, "FieldPath must not end with a '.'.");
        }
        let parts: Vec<Box<str>> = path.split('.').map(Into::into).collect();
        check_path_length(parts.len())?;
        for part in &parts {
            check_field_name(part)?;
        }
        Ok(FieldPath(parts))
    }
    /// Splits at dots and refuses nothing, for the places where any name may be asked for.
    pub fn parse_lenient(path: &str) -> FieldPath {
        FieldPath(path.split('.').map(Into::into).collect())
    }
    pub fn empty() -> FieldPath {
        FieldPath(Vec::new())
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn parts(&self) -> &[Box<str>] {
        &self.0
    }
    /// The value at the path, decoded; nothing else of the document is.
    pub fn get(&self, doc: Doc<'_>) -> Option<Value> {
        match self.0.split_first() {
            None => Some(Value::Document(doc.to_document())),
            Some((name, rest)) => in_doc(doc, name, rest),
        }
    }
    pub fn get_in_value(&self, v: &Value) -> Option<Value> {
        if self.0.is_empty() { Some(v.clone()) } else { in_value(v, &self.0) }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// Refuses names that a path component cannot have.
pub fn check_field_name(name: &str) -> Result<()> {
    if name.is_empty() {
        bail!(15998, "FieldPath field names may not be empty strings.");
    }
    if name.starts_with('$') && !matches!(name, "$id" | "$ref" | "$db") {
        bail!(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    }
    if name.contains('\0') {
        bail!(16411, "FieldPath field names may not contain '\\0'.");
    }
    if name.contains('.') {
        bail!(16412, "FieldPath field names may not contain '.'. Consider using $getField or $setField.");
    }
    Ok(())
}

fn in_doc(doc: Doc<'_>, name: &str, rest: &[Box<str>]) -> Option<Value> {
    let found = find(doc, name);
    charge_passed(doc, found.as_ref());
    let v = found?.value();
    let Some((next, rest)) = rest.split_first() else { return Some(v.to_value()) };
    match v {
        ValueRef::Document(inner) => in_doc(inner, next, rest),
        ValueRef::Array(items) => Some(in_array(items, next, rest)),
        _ => None,
    }
}

/// Only documents of an array are gone into, not arrays in it.
fn in_array(items: Doc<'_>, name: &str, rest: &[Box<str>]) -> Value {
    let found = items.iter().filter_map(|e| {
        meter::charge(1);
        match e.value() {
            ValueRef::Document(inner) => in_doc(inner, name, rest),
            _ => None,
        }
    });
    Value::Array(found.collect())
}

fn in_value(v: &Value, path: &[Box<str>]) -> Option<Value> {
    let Some((name, rest)) = path.split_first() else { return Some(v.clone()) };
    match v {
        Value::Document(d) => in_value(field(d, name)?, rest),
        Value::Array(items) => {
            meter::charge(items.len());
            Some(Value::Array(items.iter().filter_map(|i| nested(i, path)).collect()))
        }
        _ => None,
    }
}

/// Fields that are passed over in the time of a unit of work.
const FIELDS_A_UNIT: usize = 16;

fn field<'v>(d: &'v Document, name: &str) -> Option<&'v Value> {
    let at = d.0.iter().position(|(n, _)| n == name);
    if d.len() > FIELDS_A_UNIT {
        meter::charge(at.unwrap_or(d.len()) / FIELDS_A_UNIT);
    }
    Some(&d.0[at?].1)
}

fn nested(v: &Value, path: &[Box<str>]) -> Option<Value> {
    match v {
        Value::Document(_) => in_value(v, path),
        _ => None,
    }
}
