//! Attributes of a log line as relaxed Extended JSON.

use document::{Document, Value};
use std::fmt::Write;

/// A document as one line of relaxed Extended JSON.
pub fn to_json(d: &Document) -> String {
    let mut out = String::new();
    document(&mut out, d);
    out
}

pub(super) fn document(out: &mut String, d: &Document) {
    out.push('{');
    for (i, (name, v)) in d.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        string(out, name);
        out.push(':');
        value(out, v);
    }
    out.push('}');
}

pub(super) fn value(out: &mut String, v: &Value) {
    // Writing into a String cannot fail.
    let _ = match v {
        Value::Double(f) if f.is_finite() && f.trunc() == *f && f.abs() < 1e15 => write!(out, "{f:.1}"),
        Value::Double(f) if f.is_finite() => write!(out, "{f}"),
        Value::Double(f) if f.is_nan() => write!(out, "{{\"$numberDouble\":\"NaN\"}}"),
        Value::Double(f) => {
            write!(out, "{{\"$numberDouble\":\"{}Infinity\"}}", if *f < 0.0 { "-" } else { "" })
        }
        Value::String(s) => return string(out, s),
        Value::Symbol(s) => return wrapped(out, "$symbol", s),
        Value::JavaScript(s) | Value::JavaScriptWithScope(s, _) => return wrapped(out, "$code", s),
        Value::Document(d) => return document(out, d),
        Value::Array(items) => return array(out, items),
        Value::Binary(b) => {
            if let Some(id) = v.as_uuid() {
                return wrapped(out, "$uuid", &document::uuid::to_string(&id));
            }
            write!(
                out,
                "{{\"$binary\":{{\"base64\":\"{}\",\"subType\":\"{:x}\"}}}}",
                document::encoding::base64(&b.bytes),
                b.subtype
            )
        }
        Value::Undefined => write!(out, "{{\"$undefined\":true}}"),
        Value::ObjectId(id) => return wrapped(out, "$oid", &id.hex()),
        Value::Boolean(b) => write!(out, "{b}"),
        Value::DateTime(ms) if (0..253_402_300_800_000).contains(ms) => {
            return wrapped(out, "$date", &document::extended_json::iso_date(*ms).replace("+00:00", "Z"));
        }
        Value::DateTime(ms) => write!(out, "{{\"$date\":{{\"$numberLong\":\"{ms}\"}}}}"),
        Value::Null => write!(out, "null"),
        Value::Regex(r) => {
            out.push_str("{\"$regularExpression\":{\"pattern\":");
            string(out, &r.pattern);
            out.push_str(",\"options\":");
            string(out, &r.options);
            write!(out, "}}}}")
        }
        Value::DbPointer(ns, id) => {
            out.push_str("{\"$dbPointer\":{\"$ref\":");
            string(out, ns);
            write!(out, ",\"$id\":{{\"$oid\":\"{}\"}}}}}}", id.hex())
        }
        Value::Int32(n) => write!(out, "{n}"),
        Value::Int64(n) => write!(out, "{n}"),
        Value::Timestamp(t) => write!(out, "{{\"$timestamp\":{{\"t\":{},\"i\":{}}}}}", t.secs, t.inc),
        Value::Decimal128(_) => write!(out, "{{\"$numberDecimal\":\"?\"}}"),
        Value::MinKey => write!(out, "{{\"$minKey\":1}}"),
        Value::MaxKey => write!(out, "{{\"$maxKey\":1}}"),
    };
}

fn array(out: &mut String, items: &[Value]) {
    out.push('[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        value(out, item);
    }
    out.push(']');
}

fn wrapped(out: &mut String, name: &str, text: &str) {
    out.push_str("{\"");
    out.push_str(name);
    out.push_str("\":");
    string(out, text);
    out.push('}');
}

/// A quoted string. Control characters are escaped, so that a line stays one line whatever a client sent.
pub(super) fn string(out: &mut String, s: &str) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
