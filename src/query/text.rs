//! Values as the real server prints them in messages: `{ a: 1, b: [ "x" ] }`.

use document::encoding::hex;
use document::{Doc, Document, Value, ValueRef, doc, number};

/// `{ a: 1, b: "x" }`.
pub fn document(d: Doc<'_>) -> String {
    beginning(d, usize::MAX)
}

/// At least the first `bytes` of what [`document`] prints, if there is as much. Of what comes afterwards only little is looked at.
pub fn beginning(d: Doc<'_>, bytes: usize) -> String {
    let mut out = String::new();
    append_beginning(&mut out, d, true, bytes);
    out
}

/// `{$truncated: text}` in place of a document of more than `bytes`, with that much of its text; `None` for one that is shown whole.
pub fn truncated(d: Doc<'_>, bytes: usize) -> Option<Document> {
    (d.bytes().len() > bytes).then(|| doc! { "$truncated": excerpt(d, bytes) })
}

/// What [`document`] prints, cut to `bytes`, of which the last are dots then.
fn excerpt(d: Doc<'_>, bytes: usize) -> String {
    let mut text = beginning(d, bytes);
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes.saturating_sub(3)));
        text.push_str("...");
    }
    text
}

fn append_beginning(out: &mut String, d: Doc<'_>, named: bool, bytes: usize) {
    let (open, close) = if named { ("{", "}") } else { ("[", "]") };
    out.push_str(open);
    for (i, e) in d.iter().enumerate() {
        if out.len() >= bytes {
            return;
        }
        out.push_str(if i == 0 { " " } else { ", " });
        if named {
            out.push_str(e.name());
            out.push_str(": ");
        }
        match e.value() {
            ValueRef::Document(inner) => append_beginning(out, inner, true, bytes),
            ValueRef::Array(inner) => append_beginning(out, inner, false, bytes),
            ValueRef::String(s) => {
                out.push('"');
                match s.len() > bytes {
                    true => return out.push_str(&s[..s.floor_char_boundary(bytes)]),
                    false => out.push_str(s),
                }
                out.push('"');
            }
            ValueRef::Binary(subtype, b) => {
                out.push_str(&value(ValueRef::Binary(subtype, &b[..b.len().min(bytes)])))
            }
            other => out.push_str(&value(other)),
        }
    }
    out.push_str(if d.iter().next().is_some() { " " } else { "" });
    out.push_str(close);
}

/// One value.
pub fn value(v: ValueRef<'_>) -> String {
    match v {
        ValueRef::Double(d) => double(d),
        ValueRef::String(s) => format!("\"{s}\""),
        ValueRef::Document(d) => document(d),
        ValueRef::Array(a) => {
            let mut out = String::new();
            append_beginning(&mut out, a, false, usize::MAX);
            out
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

#[cfg(test)]
mod tests {
    use super::*;
    use document::{array, doc};

    #[test]
    fn the_beginning_of_a_text_is_the_text_cut() {
        let d = doc! {
            "a": 1, "b": { "c": [], "d": {}, "e": array!["x", { "f": 1.5 }] }, "s": "ä".repeat(50), "l": Value::Array(vec![Value::Int32(7); 50]),
        }
        .to_doc_buf();
        let whole = document(d.doc());
        assert_eq!(beginning(d.doc(), whole.len()), whole);
        for bytes in 1..whole.len() {
            let begun = beginning(d.doc(), bytes);
            assert!(begun.len() + 1 >= bytes, "{begun}");
            assert_eq!(begun.as_bytes()[..bytes - 1], whole.as_bytes()[..bytes - 1]);
        }
        let long = doc! { "s": "x".repeat(1 << 20), "t": 1 }.to_doc_buf();
        assert!(beginning(long.doc(), 100).len() < 200);
        assert_eq!(excerpt(long.doc(), 100), format!("{{ s: \"{}...", "x".repeat(91)));
        assert_eq!(excerpt(d.doc(), whole.len()), whole);
        assert_eq!(truncated(long.doc(), 100), Some(doc! { "$truncated": excerpt(long.doc(), 100) }));
        assert_eq!(truncated(d.doc(), d.bytes().len()), None);
    }
}
