//! Collations: how strings compare where a command, a collection, an index or a view says so.
//!
//! A [`Collation`] is what everything that compares values carries. The simple one, which compares bytes, is no more
//! than a `None`, so that whoever has no collation pays nothing. Any other shares a collator of ICU's rules:
//!
//! ```text
//! {locale: "fr", strength: 1}  ──spec──>  all ten members, as the server shows them  ──rules──>  collator
//! ```
//!
//! Only strings compare differently, at whatever depth they stand: in documents and in arrays too, but not names of
//! fields, codes or regular expressions. A key ([`Collation::append_key`]) holds the collator's sort key in place of
//! the string, so equal strings have equal keys and the order of keys is the order of the collation. Sort keys may
//! change with the version of the rules; index trees are never written to disk, so they are built with one version.

mod rules;
mod spec;

use crate::compare::{canonical_type, compare_documents_with, compare_values_with, compare_with};
use crate::{Doc, Document, Result, Value, ValueRef, key_string};
use icu_collator::CollatorBorrowed;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A collation's rules.
pub struct Collator {
    /// All members, in the server's order.
    spec: Document,
    rules: CollatorBorrowed<'static>,
}

impl Collator {
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        self.rules.compare(a, b)
    }
    /// A text whose order byte by byte is the order of the strings: ICU's sort key, each byte as the character of that
    /// number.
    pub fn sort_key(&self, s: &str) -> String {
        let mut bytes = Vec::with_capacity(s.len() * 2);
        let Ok(()) = self.rules.write_sort_key_to(s, &mut bytes);
        bytes.into_iter().map(char::from).collect()
    }
}

/// How strings compare; the default is byte by byte.
#[derive(Clone, Default)]
pub struct Collation(Option<Arc<Collator>>);

impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a.spec == b.spec,
            _ => false,
        }
    }
}
impl Eq for Collation {}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("simple"),
            Some(c) => c.spec.fmt(f),
        }
    }
}

impl Collation {
    /// Byte by byte.
    pub const SIMPLE: Collation = Collation(None);

    /// Reads a collation document. Errors: 40414 without a locale, 40415 for an unknown member, 14 for a wrong type,
    /// 2 for a value out of its range or in conflict with another, 161 for another version, 238 for rules that this
    /// server's data do not have.
    pub fn parse(spec: Doc<'_>) -> Result<Collation> {
        let spec = spec::Spec::parse(spec)?;
        if spec.is_simple() {
            return Ok(Collation::SIMPLE);
        }
        let rules = rules::of(&spec)?;
        Ok(Collation(Some(Arc::new(Collator { spec: spec.filled_in(&rules), rules }))))
    }
    /// As [`Collation::parse`].
    pub fn of_document(spec: &Document) -> Result<Collation> {
        Collation::parse(spec.to_doc_buf().doc())
    }
    /// Whether strings compare byte by byte.
    #[inline]
    pub fn is_simple(&self) -> bool {
        self.0.is_none()
    }
    /// All its members, as listIndexes and explain show them; `None` for the simple one.
    pub fn document(&self) -> Option<&Document> {
        self.0.as_ref().map(|c| &c.spec)
    }
    #[inline]
    fn collator(&self) -> Option<&Collator> {
        self.0.as_deref()
    }
    /// The order of two values, as [`crate::compare::compare`].
    #[inline]
    pub fn compare(&self, a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
        compare_with(a, b, self.collator())
    }
    /// The order of two owned values.
    #[inline]
    pub fn compare_values(&self, a: &Value, b: &Value) -> Ordering {
        compare_values_with(a, b, self.collator())
    }
    pub fn compare_documents(&self, a: &Document, b: &Document) -> Ordering {
        compare_documents_with(a, b, self.collator())
    }
    pub fn values_equal(&self, a: &Value, b: &Value) -> bool {
        self.compare_values(a, b).is_eq()
    }
    /// Appends one component of a key, as [`key_string::append`].
    #[inline]
    pub fn append_key(&self, out: &mut Vec<u8>, v: ValueRef<'_>, descending: bool) {
        key_string::append_with(out, v, descending, self.collator());
    }
    /// Appends one component of a key, as [`key_string::append_value`].
    pub fn append_value_key(&self, out: &mut Vec<u8>, v: &Value, descending: bool) {
        key_string::append_value_with(out, v, descending, self.collator());
    }
    /// The value that compares byte by byte as `v` does by this collation: every string gives way to its sort key. The
    /// simple key of the result is this collation's key of `v`.
    pub fn comparable(&self, v: &Value) -> Value {
        let Some(collator) = self.collator() else { return v.clone() };
        match v {
            Value::String(s) | Value::Symbol(s) => Value::String(collator.sort_key(s)),
            Value::Document(d) => {
                Value::Document(d.iter().map(|(name, v)| (name.to_string(), self.comparable(v))).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(|v| self.comparable(v)).collect()),
            other => other.clone(),
        }
    }
    /// The value with the sort key of every string in hexadecimal, as messages about keys show it: `0x29`.
    pub fn shown(&self, v: &Value) -> Value {
        match (v, &self.0) {
            (_, None) => v.clone(),
            (Value::String(s) | Value::Symbol(s), Some(c)) => {
                Value::String(format!("0x{}", crate::encoding::hex(&sort_key_bytes(&c.sort_key(s)))))
            }
            (Value::Document(d), _) => {
                Value::Document(d.iter().map(|(name, v)| (name.to_string(), self.shown(v))).collect())
            }
            (Value::Array(items), _) => Value::Array(items.iter().map(|v| self.shown(v)).collect()),
            (other, _) => other.clone(),
        }
    }
}

/// ICU's sort key, of the text that [`Collator::sort_key`] made of it.
pub fn sort_key_bytes(key: &str) -> Vec<u8> {
    key.chars().map(|c| c as u32 as u8).collect()
}

/// Whether a value compares the same by every collation: it is no string and holds none.
pub fn compares_alike(v: ValueRef<'_>) -> bool {
    match v {
        ValueRef::Document(d) | ValueRef::Array(d) => d.iter().all(|e| compares_alike(e.value())),
        v => canonical_type(v.tag()) != canonical_type(0x02),
    }
}

#[cfg(test)]
mod tests;
