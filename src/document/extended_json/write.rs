//! The writer.

use super::date::format_date;
use crate::encoding::base64;
use crate::{Document, Value};
use std::fmt::Write;

/// Relaxed: plain numbers and ISO dates where nothing is lost that a reader of logs needs.
pub fn to_relaxed(v: &Value) -> String {
    written(v, Form::Relaxed)
}

/// Canonical: every type is kept.
pub fn to_canonical(v: &Value) -> String {
    written(v, Form::Canonical)
}

/// As lines of a log have it: relaxed, with milliseconds in every date and `{"$uuid":...}`.
pub fn to_logged(d: &Document) -> String {
    let mut out = String::new();
    write_logged(&mut out, d);
    out
}

/// Appends what [`to_logged`] gives.
pub fn write_logged(out: &mut String, d: &Document) {
    Writer { out, form: Form::Logged }.document(d);
}

/// Appends a quoted string. Control characters are escaped, so that a line stays one line whatever it is made of.
pub fn write_text(out: &mut String, text: &str) {
    Writer { out, form: Form::Logged }.text(text);
}

fn written(v: &Value, form: Form) -> String {
    let mut out = String::new();
    Writer { out: &mut out, form }.value(v);
    out
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Canonical,
    Relaxed,
    Logged,
}

struct Writer<'a> {
    out: &'a mut String,
    form: Form,
}

impl Writer<'_> {
    fn raw(&mut self, text: impl std::fmt::Display) {
        // Writing to a String does not fail.
        let _ = write!(self.out, "{text}");
    }
    fn wrapped(&mut self, name: &str, text: impl std::fmt::Display) {
        self.raw(format_args!("{{\"{name}\":\"{text}\"}}"));
    }
    fn value(&mut self, v: &Value) {
        match v {
            Value::Double(n) => self.double(*n),
            Value::String(s) => self.text(s),
            Value::Document(d) => self.document(d),
            Value::Array(items) => self.array(items),
            Value::Binary(b) => {
                if let Some(id) = v.as_uuid().filter(|_| self.form == Form::Logged) {
                    return self.wrapped("$uuid", crate::uuid::to_string(&id));
                }
                let encoded = base64(&b.bytes);
                let subtype = b.subtype;
                self.raw(format_args!(
                    "{{\"$binary\":{{\"base64\":\"{encoded}\",\"subType\":\"{subtype:02x}\"}}}}"
                ));
            }
            Value::Undefined => self.raw("{\"$undefined\":true}"),
            Value::ObjectId(id) => self.wrapped("$oid", id.hex()),
            Value::Boolean(b) => self.raw(b),
            Value::DateTime(millis) => self.date(*millis),
            Value::Null => self.raw("null"),
            Value::Regex(r) => {
                self.raw("{\"$regularExpression\":{\"pattern\":");
                self.text(&r.pattern);
                self.raw(",\"options\":");
                self.text(&r.options);
                self.raw("}}");
            }
            Value::DbPointer(p) => {
                self.raw("{\"$dbPointer\":{\"$ref\":");
                self.text(&p.ns);
                self.raw(",\"$id\":");
                self.wrapped("$oid", p.id.hex());
                self.raw("}}");
            }
            Value::JavaScript(code) => self.named("$code", code, ""),
            Value::Symbol(s) => self.named("$symbol", s, ""),
            Value::JavaScriptWithScope(c) => {
                self.named("$code", &c.code, ",\"$scope\":");
                self.document(&c.scope);
                self.raw("}");
            }
            Value::Int32(n) if self.form == Form::Canonical => self.wrapped("$numberInt", n),
            Value::Int32(n) => self.raw(n),
            Value::Timestamp(t) => {
                self.raw(format_args!("{{\"$timestamp\":{{\"t\":{},\"i\":{}}}}}", t.secs, t.inc));
            }
            Value::Int64(n) if self.form == Form::Canonical => self.wrapped("$numberLong", n),
            Value::Int64(n) => self.raw(n),
            Value::Decimal128(d) => self.wrapped("$numberDecimal", d),
            Value::MinKey => self.raw("{\"$minKey\":1}"),
            Value::MaxKey => self.raw("{\"$maxKey\":1}"),
        }
    }
    /// `{"name":"text"` and `}`, or `more` instead of the brace.
    fn named(&mut self, name: &str, text: &str, more: &str) {
        self.raw(format_args!("{{\"{name}\":"));
        self.text(text);
        self.raw(if more.is_empty() { "}" } else { more });
    }
    fn double(&mut self, n: f64) {
        let text = double_text(n);
        match self.form == Form::Canonical || !n.is_finite() {
            true => self.wrapped("$numberDouble", text),
            false => self.raw(text),
        }
    }
    fn date(&mut self, millis: i64) {
        match format_date(millis).filter(|_| self.form != Form::Canonical && millis >= 0) {
            Some(text) if self.form == Form::Logged => self.wrapped("$date", text),
            Some(text) => self.wrapped("$date", text.replace(".000Z", "Z")),
            None => self.raw(format_args!("{{\"$date\":{{\"$numberLong\":\"{millis}\"}}}}")),
        }
    }
    fn array(&mut self, items: &[Value]) {
        self.out.push('[');
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            self.value(item);
        }
        self.out.push(']');
    }
    fn document(&mut self, d: &Document) {
        self.out.push('{');
        for (i, (name, value)) in d.iter().enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            self.text(name);
            self.out.push(':');
            self.value(value);
        }
        self.out.push('}');
    }
    fn text(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                c if c.is_control() => self.raw(format_args!("\\u{:04x}", c as u32)),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

/// The shortest text that reads back as the same double, always with a point or an exponent.
fn double_text(n: f64) -> String {
    if n.is_nan() {
        return "NaN".to_string();
    }
    if n.is_infinite() {
        return if n < 0.0 { "-Infinity" } else { "Infinity" }.to_string();
    }
    if n != 0.0 && !(1e-5..1e17).contains(&n.abs()) {
        return format!("{n:E}").replace('E', if n.abs() < 1.0 { "E" } else { "E+" });
    }
    format!("{n:?}")
}
