//! Extended JSON, both ways.

use super::generate::value;
use crate::extended_json::{from_str, to_canonical, to_logged, to_relaxed};
use crate::{Value, array, doc};
use proptest::prelude::*;

fn readable_fields(d: &crate::Document) -> bool {
    !d.keys().any(|k| k.starts_with('$')) && d.iter().all(|(_, v)| readable(v))
}

/// Documents whose first name is a wrapper's mean the wrapped value when read.
fn readable(v: &Value) -> bool {
    match v {
        Value::Document(d) => readable_fields(d),
        Value::JavaScriptWithScope(c) => readable_fields(&c.scope),
        Value::Array(a) => a.iter().all(readable),
        Value::Decimal128(d) => *d == crate::Decimal128::parse(&d.to_string()).unwrap(),
        Value::Double(n) => !n.is_nan(),
        _ => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn canonical_text_reads_back_as_the_same_value(v in value().prop_filter("readable", readable)) {
        prop_assert_eq!(from_str(&to_canonical(&v)).unwrap(), v);
    }

    #[test]
    fn arbitrary_text_is_read_or_refused(s in "[\\[\\]{}\",:0-9a-z$\\\\ -]{0,30}") {
        let _ = from_str(&s);
    }
}

#[test]
fn relaxed_text_is_plain() {
    let v = Value::from(
        doc! {"a": 1, "b": [1.5, 2i64, "x\"\n"], "c": Value::DateTime(0), "d": Value::DateTime(-1)},
    );
    let text = r#"{"a":1,"b":[1.5,2,"x\"\n"],"c":{"$date":"1970-01-01T00:00:00Z"},"d":{"$date":{"$numberLong":"-1"}}}"#;
    assert_eq!(to_relaxed(&v), text);
    assert_eq!(
        from_str(r#"[1, -2.5e0, 5000000000, true, null]"#).unwrap(),
        array![1, -2.5, 5000000000i64, true, Value::Null]
    );
    assert_eq!(from_str(r#""\ud83d\ude00""#).unwrap(), "😀".into());
}

#[test]
fn logged_text_has_milliseconds_and_names_uuids() {
    let id = Value::uuid([1; 16]);
    let d = doc! {"when": Value::DateTime(0), "id": id, "text": "a\u{1}"};
    let text = r#"{"when":{"$date":"1970-01-01T00:00:00.000Z"},"id":{"$uuid":"01010101-0101-0101-0101-010101010101"},"text":"a\u0001"}"#;
    assert_eq!(to_logged(&d), text);
}

#[test]
fn nesting_is_bounded() {
    assert!(from_str(&"[".repeat(100_000)).is_err());
}
