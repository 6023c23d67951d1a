//! Arbitrary values, dense at the edges where encodings and orders go wrong.

use crate::{Binary, CodeWithScope, DbPointer, Decimal128, Document, ObjectId, Regex, Timestamp, Value};
use proptest::prelude::*;

pub(super) fn decimal() -> impl Strategy<Value = Decimal128> {
    let edges = [
        "0",
        "-0",
        "0E+6111",
        "1E-6176",
        "-1E-6176",
        "9.999999999999999999999999999999999E+6144",
        "NaN",
        "Infinity",
        "-Infinity",
        "0.1",
        "0.10",
        "1.5",
        "9007199254740993",
        "9007199254740992.5",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "1E+308",
        "1.8E+308",
        "5E-324",
        "1E-330",
        "1E+30",
        "0.3333333333333333333333333333333333",
    ];
    prop_oneof![
        prop::sample::select(edges.to_vec()).prop_map(|s| Decimal128::parse(s).unwrap()),
        any::<[u8; 16]>().prop_map(Decimal128),
        (any::<bool>(), 0..10u128.pow(34), -50..50i32).prop_map(|(n, c, e)| Decimal128::from_parts(n, c, e)),
        (any::<bool>(), 0..200u128, -6i32..3).prop_map(|(n, c, e)| Decimal128::from_parts(n, c, e)),
        any::<i64>().prop_map(Decimal128::from_i64),
        any::<f64>().prop_map(Decimal128::from_f64),
    ]
}

pub(super) fn number() -> impl Strategy<Value = Value> {
    let p53 = 1i64 << 53;
    let integers =
        vec![0, 1, -1, 63, 64, 127, 128, p53 - 1, p53, p53 + 1, -p53 - 1, i64::MIN, i64::MAX, i64::MAX - 512];
    let doubles = vec![
        0.0,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
        0.1,
        0.5,
        1.5,
        -1.5,
        9007199254740992.0,
        9007199254740994.0,
        9223372036854775808.0,
        -9223372036854775808.0,
        9.3e18,
        -9.3e18,
        1e30,
    ];
    prop_oneof![
        prop::sample::select(integers).prop_map(Value::Int64),
        prop::sample::select(doubles).prop_map(Value::Double),
        any::<i32>().prop_map(Value::Int32),
        (-300i32..300).prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        any::<f64>().prop_map(Value::Double),
        (-300i32..300).prop_map(|n| Value::Double(n as f64 / 4.0)),
        any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
        decimal().prop_map(Value::Decimal128),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[\0\x01\x02ab]{0,4}", "\\PC{0,12}"]
}

/// Names and regular expressions hold no NUL.
fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[ab\x01]{0,3}", "\\PC{0,10}"].prop_map(|s| s.replace('\0', ""))
}

fn scalar() -> impl Strategy<Value = Value> {
    let id = || any::<[u8; 12]>().prop_map(ObjectId);
    prop_oneof![
        4 => number(),
        3 => text().prop_map(Value::String),
        1 => id().prop_map(Value::ObjectId),
        1 => any::<bool>().prop_map(Value::Boolean),
        1 => any::<i64>().prop_map(Value::DateTime),
        1 => any::<u64>().prop_map(|v| Value::Timestamp(Timestamp::from_u64(v))),
        1 => (any::<u8>(), prop::collection::vec(any::<u8>(), 0..6)).prop_filter_map("subtype 2", |(subtype, bytes)| {
            (subtype != 2).then_some(Value::Binary(Binary { subtype, bytes }))
        }),
        1 => (name(), name()).prop_map(|(pattern, options)| Regex { pattern, options }.into()),
        1 => (text(), id()).prop_map(|(ns, id)| DbPointer { ns, id }.into()),
        1 => text().prop_map(Value::JavaScript),
        1 => text().prop_map(Value::Symbol),
        2 => prop::sample::select(vec![Value::Null, Value::Undefined, Value::MinKey, Value::MaxKey]),
    ]
}

pub(super) fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 24, 4, |inner| {
        let fields = prop::collection::vec((name(), inner.clone()), 0..4).prop_map(Document).boxed();
        prop_oneof![
            fields.clone().prop_map(Value::Document),
            prop::collection::vec(inner, 0..4).prop_map(Value::Array),
            (text(), fields).prop_map(|(code, scope)| CodeWithScope { code, scope }.into()),
        ]
    })
}

pub(super) fn document() -> impl Strategy<Value = Document> {
    prop::collection::vec((name(), value()), 0..6).prop_map(Document)
}
