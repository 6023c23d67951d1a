//! Documents and values as the real server writes them into messages: the spelling of the `mongo` shell, roughly.
//!
//! `{ a: 1, b: [ "x", 2.0 ], c: ObjectId('507f1f77bcf86cd799439011') }`. Long strings are shortened.

use crate::encoding::hex;
use crate::{Document, Value};
use std::fmt::Write;

/// A document as messages show it.
pub fn document(document: &Document) -> String {
    let mut text = String::new();
    write_document(&mut text, document);
    text
}

/// A value as messages show it.
pub fn value(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
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
        Value::Binary(b) => match value.as_uuid() {
            Some(id) => write!(out, "UUID(\"{}\")", crate::uuid::to_string(&id)),
            None => write!(out, "BinData({}, {})", b.subtype, hex(&b.bytes).to_uppercase()),
        },
        Value::Undefined => write!(out, "undefined"),
        Value::ObjectId(id) => write!(out, "ObjectId('{}')", id.hex()),
        Value::Boolean(b) => write!(out, "{b}"),
        Value::DateTime(ms) => write!(out, "new Date({ms})"),
        Value::Null => write!(out, "null"),
        Value::Regex(r) => write!(out, "/{}/{}", r.pattern, r.options),
        Value::DbPointer(p) => write!(out, "DBRef('{}',{})", p.ns, p.id.hex()),
        Value::JavaScript(code) => write!(out, "{code}"),
        Value::JavaScriptWithScope(c) => {
            let written = write!(out, "CodeWScope( {}, ", c.code);
            write_document(out, &c.scope);
            out.push(')');
            written
        }
        Value::Int32(n) => write!(out, "{n}"),
        Value::Int64(n) => write!(out, "{n}"),
        Value::Timestamp(t) => write!(out, "Timestamp({}, {})", t.secs, t.inc),
        Value::Decimal128(d) => write!(out, "{}", crate::number::decimal_to_string(*d)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ObjectId, Timestamp, doc};

    #[test]
    fn values_are_spelled_as_in_the_shell() {
        let d = doc! {
            "a": 1, "b": 2i64, "c": 3.0, "d": 0.5, "e": [true, Value::Null, "x"], "f": {}, "g": [], "h": { "i": Value::MinKey },
            "j": ObjectId([7; 12]), "k": Value::DateTime(5), "l": Timestamp::new(1, 2), "m": f64::NAN, "n": f64::NEG_INFINITY,
        };
        assert_eq!(
            document(&d),
            "{ a: 1, b: 2, c: 3.0, d: 0.5, e: [ true, null, \"x\" ], f: {}, g: [], h: { i: MinKey }, \
             j: ObjectId('070707070707070707070707'), k: new Date(5), l: Timestamp(1, 2), m: nan.0, n: -inf.0 }"
        );
        assert_eq!(value(&Value::from("y".repeat(200))).len(), 155);
    }
}
