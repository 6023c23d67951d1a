//! Values as the real server prints them in messages: `{ a: 1, b: [ "x" ] }`.

use document::encoding::hex;
use document::{Doc, Value, ValueRef, number};

/// `{ a: 1, b: "x" }`.
pub fn document(d: Doc<'_>) -> String {
    let fields: Vec<String> = d.iter().map(|e| format!("{}: {}", e.name(), value(e.value()))).collect();
    if fields.is_empty() { "{}".to_string() } else { format!("{{ {} }}", fields.join(", ")) }
}

/// One value.
pub fn value(v: ValueRef<'_>) -> String {
    match v {
        ValueRef::Double(d) => double(d),
        ValueRef::String(s) => format!("\"{s}\""),
        ValueRef::Document(d) => document(d),
        ValueRef::Array(a) => {
            let items: Vec<String> = a.iter().map(|e| value(e.value())).collect();
            if items.is_empty() { "[]".to_string() } else { format!("[ {} ]", items.join(", ")) }
        }
        ValueRef::Binary(subtype, bytes) => format!("BinData({subtype}, {})", hex(bytes)),
        ValueRef::Undefined => "undefined".to_string(),
        ValueRef::ObjectId(o) => format!("ObjectId('{}')", hex(&o.0)),
        ValueRef::Boolean(b) => b.to_string(),
        ValueRef::DateTime(ms) => format!("new Date({ms})"),
        ValueRef::Null => "null".to_string(),
        ValueRef::Regex(p, o) => format!("/{p}/{o}"),
        ValueRef::DbPointer(ns, id) => format!("DBRef('{ns}', {})", hex(&id.0)),
        ValueRef::JavaScript(c) => c.to_string(),
        ValueRef::Symbol(s) => format!("\"{s}\""),
        ValueRef::JavaScriptWithScope(c, s) => format!("CodeWScope( {c}, {})", document(s)),
        ValueRef::Int32(i) => i.to_string(),
        ValueRef::Timestamp(t) => format!("Timestamp({}, {})", t.secs, t.inc),
        ValueRef::Int64(i) => i.to_string(),
        ValueRef::Decimal128(d) => number::decimal_to_string(d),
        ValueRef::MinKey => "MinKey".to_string(),
        ValueRef::MaxKey => "MaxKey".to_string(),
    }
}

/// An owned value.
pub fn owned(v: &Value) -> String {
    let holder = v.to_holder();
    holder.doc().iter().next().map_or_else(String::new, |e| value(e.value()))
}

/// `{name: value}`, the way one element is printed.
pub fn element(name: &str, v: &Value) -> String {
    format!("{{{name}: {}}}", owned(v))
}

fn double(d: f64) -> String {
    if d.is_nan() {
        "nan".to_string()
    } else if d.is_infinite() {
        if d > 0.0 { "inf".to_string() } else { "-inf".to_string() }
    } else if d.trunc() == d && d.abs() < 1e15 {
        format!("{d:.1}")
    } else {
        format!("{d}")
    }
}
