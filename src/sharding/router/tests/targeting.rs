//! Which shards a filter reaches, held against documents. What it reaches in each case is in `router/scripts`.

use super::fake::table;
use crate::key_pattern::ShardKeyPattern;
use crate::router::target;
use document::{Document, Value, array, doc};
use proptest::prelude::*;
use query::QueryContext;
use query::matcher::Matcher;

const SHARDS: &[&str] = &["a", "b", "c", "d"];

#[test]
fn a_hashed_key_is_reached_by_equality_alone() {
    let t = table(doc! { "x": "hashed" }, &[0], &["a", "b"]);
    let reach = |filter: Document| {
        target::filter(&t, filter.to_doc_buf().doc(), &QueryContext::default()).shards.len()
    };
    assert_eq!(reach(doc! { "x": 5 }), 1);
    assert_eq!(reach(doc! { "x": { "$gt": 5 } }), 2);
    for x in 0..50 {
        let d = doc! { "x": x }.to_doc_buf();
        let owner = target::document(&t, d.doc()).unwrap();
        let by_filter = target::filter(&t, d.doc(), &QueryContext::default()).shards;
        assert_eq!(by_filter, vec![owner]);
    }
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-5..30).prop_map(Value::Int32),
        (-50..300).prop_map(|n| Value::Double(f64::from(n) / 10.0)),
        Just(Value::Null),
        Just(Value::Double(f64::NAN)),
        Just(Value::Double(-0.0)),
        "[a-c]{0,2}".prop_map(Value::String),
        any::<bool>().prop_map(Value::Boolean),
        (0..3).prop_map(|n| Value::from(doc! { "k": n })),
    ]
}

fn condition() -> impl Strategy<Value = Value> {
    let op = prop_oneof![Just("$eq"), Just("$gt"), Just("$gte"), Just("$lt"), Just("$lte"), Just("$ne")];
    prop_oneof![
        value(),
        (op, value()).prop_map(|(op, v)| {
            let mut d = Document::new();
            d.push(op, v);
            Value::Document(d)
        }),
        proptest::collection::vec(value(), 0..3).prop_map(|v| Value::from(doc! { "$in": Value::Array(v) })),
        Just(Value::from(doc! { "$exists": false })),
        Just(Value::from(doc! { "$type": "number" })),
    ]
}

fn filter() -> impl Strategy<Value = Document> {
    let leaf = (prop_oneof![Just("x"), Just("y")], condition()).prop_map(|(name, c)| {
        let mut d = Document::new();
        d.push(name, c);
        d
    });
    leaf.prop_recursive(2, 6, 3, |inner| {
        (prop_oneof![Just("$or"), Just("$and")], proptest::collection::vec(inner, 1..3)).prop_map(
            |(op, list)| {
                let mut d = Document::new();
                d.push(op, list);
                d
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
    /// What matches is on a shard that is asked, whatever the types.
    #[test]
    fn no_match_is_left_out(f in filter(), x in value(), y in value(), compound in any::<bool>()) {
        let key = if compound { doc! { "x": 1, "y": 1 } } else { doc! { "x": 1 } };
        let t = table(key, &[0, 10, 20], SHARDS);
        let d = doc! { "x": x, "y": y }.to_doc_buf();
        let f = f.to_doc_buf();
        let matcher = Matcher::parse(f.doc(), &QueryContext::default()).unwrap();
        if matcher.matches(d.doc()).unwrap() {
            let owner = target::document(&t, d.doc()).unwrap();
            let target = target::filter(&t, f.doc(), &QueryContext::default());
            prop_assert!(target.shards.contains(&owner), "{f:?} {d:?} {:?}", target.shards);
            if let Some(key) = target.key {
                prop_assert_eq!(key, t.key.key_of(d.doc()).unwrap());
            }
        }
    }
}

#[test]
fn a_document_is_found_again_by_its_identity() {
    let key = ShardKeyPattern::parse(&doc! { "a.b": 1 }).unwrap();
    let d = doc! { "_id": { "$x": 1 }, "a": { "b": { "c": 1 } } }.to_doc_buf();
    let identity = target::identity(&key, d.doc()).unwrap();
    let matcher = Matcher::parse(identity.to_doc_buf().doc(), &QueryContext::default()).unwrap();
    assert!(matcher.matches(d.doc()).unwrap());
    let other = doc! { "_id": 1, "a": { "b": { "c": 1 } } }.to_doc_buf();
    assert!(!matcher.matches(other.doc()).unwrap());
    assert_ne!(array![1], array![2]);
}
