//! The error of a taken key, with the real server's text and members.
//!
//! `E11000 duplicate key error collection: db.c index: a_1 dup key: { a: 1 }`, and `keyPattern` and `keyValue`, which
//! drivers show. The values are written as the real server writes documents into messages. Where the index has a
//! collation the text says so and shows the sort keys of strings, in hexadecimal: `collation: {..} dup key: { a: "0x29" }`.

use std::fmt::Write;

use document::encoding::hex;
use document::{Doc, Document, Error, Value, ValueRef, err};

use super::keys;
use super::spec::{FieldKind, IndexSpec};

/// DuplicateKey (11000) for the key `key`, one of those of `doc` in the index.
pub(crate) fn duplicate_key(ns: &str, spec: &IndexSpec, doc: Doc<'_>, key: &[u8]) -> Error {
    let mut values = Document::new();
    let mut encoded = Vec::new();
    let found = keys::for_each_key(spec, doc, &mut |components| {
        encoded.clear();
        keys::encode(spec, components, &mut encoded);
        if encoded == key && values.is_empty() {
            values = key_value(spec, components);
        }
    });
    debug_assert!(found.is_ok(), "the keys of this document were computed a moment ago");
    let mut text = format!("E11000 duplicate key error collection: {ns} index: {} ", spec.name());
    let mut info = Document::new();
    info.push("keyPattern", spec.key().clone());
    if let Some(collation) = spec.collation().document() {
        text.push_str("collation: ");
        write_document(&mut text, collation);
        text.push(' ');
        values = values.iter().map(|(name, v)| (name.to_string(), spec.collation().shown(v))).collect();
        info.push("keyValue", values.clone());
        info.push("collation", collation.clone());
    } else {
        info.push("keyValue", values.clone());
    }
    text.push_str("dup key: ");
    write_document(&mut text, &values);
    err!(DUPLICATE_KEY, "{text}").with_info(info)
}

fn key_value(spec: &IndexSpec, components: &[ValueRef<'_>]) -> Document {
    let mut values = Document::new();
    for (field, value) in spec.fields().iter().zip(components) {
        match field.kind {
            FieldKind::Hashed => values.push(field.path.as_str(), keys::hashed(spec, *value)),
            _ => values.push(field.path.as_str(), value.to_value()),
        }
    }
    values
}

/// A document as the real server writes it into messages.
pub fn in_message(document: &Document) -> String {
    let mut text = String::new();
    write_document(&mut text, document);
    text
}

fn write_document(out: &mut String, document: &Document) {
    if document.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push_str("{ ");
    for (i, (name, value)) in document.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        out.push_str(name);
        out.push_str(": ");
        write_value(out, value);
    }
    out.push_str(" }");
}

fn write_array(out: &mut String, items: &[Value]) {
    if items.is_empty() {
        out.push_str("[]");
        return;
    }
    out.push_str("[ ");
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write_value(out, item);
    }
    out.push_str(" ]");
}

fn write_value(out: &mut String, value: &Value) {
    // Writing to a string does not fail.
    let _ = match value {
        Value::Double(d) => write_double(out, *d),
        Value::String(s) | Value::Symbol(s) => write!(out, "\"{}\"", shortened(s)),
        Value::Document(d) => {
            write_document(out, d);
            Ok(())
        }
        Value::Array(a) => {
            write_array(out, a);
            Ok(())
        }
        Value::Binary(b) if b.subtype == 4 && b.bytes.len() == 16 => {
            let h = hex(&b.bytes);
            write!(out, "UUID(\"{}-{}-{}-{}-{}\")", &h[..8], &h[8..12], &h[12..16], &h[16..20], &h[20..])
        }
        Value::Binary(b) => write!(out, "BinData({}, {})", b.subtype, hex(&b.bytes).to_uppercase()),
        Value::Undefined => write!(out, "undefined"),
        Value::ObjectId(id) => write!(out, "ObjectId('{}')", hex(&id.0)),
        Value::Boolean(b) => write!(out, "{b}"),
        Value::DateTime(ms) => write!(out, "new Date({ms})"),
        Value::Null => write!(out, "null"),
        Value::Regex(r) => write!(out, "/{}/{}", r.pattern, r.options),
        Value::DbPointer(ns, id) => write!(out, "DBRef('{ns}',{})", hex(&id.0)),
        Value::JavaScript(code) => write!(out, "{code}"),
        Value::JavaScriptWithScope(code, scope) => {
            let written = write!(out, "CodeWScope( {code}, ");
            write_document(out, scope);
            out.push(')');
            written
        }
        Value::Int32(n) => write!(out, "{n}"),
        Value::Int64(n) => write!(out, "{n}"),
        Value::Timestamp(t) => write!(out, "Timestamp({}, {})", t.secs, t.inc),
        Value::Decimal128(d) => write!(out, "{}", document::number::decimal_to_string(*d)),
        Value::MinKey => write!(out, "MinKey"),
        Value::MaxKey => write!(out, "MaxKey"),
    };
}

/// Whole numbers keep one decimal, so that a double is told from an integer.
fn write_double(out: &mut String, d: f64) -> std::fmt::Result {
    if d.is_nan() {
        write!(out, "nan.0")
    } else if d.is_infinite() {
        write!(out, "{}inf.0", if d < 0.0 { "-" } else { "" })
    } else if d.trunc() == d && d.abs() < 1e15 {
        write!(out, "{d:.1}")
    } else {
        write!(out, "{d}")
    }
}

/// Strings of more than 160 bytes are shown by their first 150.
fn shortened(s: &str) -> String {
    if s.len() <= 160 {
        return s.to_string();
    }
    let mut end = 150;
    while !s.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &s[..end])
}
