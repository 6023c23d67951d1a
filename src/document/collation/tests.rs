//! Collations, held against expectations of their rules and options.

use super::{Collation, compares_alike};
use crate::{Document, Value, array, doc, key_string};
use std::cmp::Ordering;

fn collation(spec: Document) -> Collation {
    Collation::of_document(&spec).expect("a good collation")
}

fn refused(spec: Document) -> i32 {
    Collation::of_document(&spec).expect_err("refused").code
}

fn key(c: &Collation, v: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    c.append_value_key(&mut out, v, false);
    out
}

#[test]
fn what_was_left_out_is_filled_in_as_the_locale_has_it() {
    let shown = |spec: Document| collation(spec).document().expect("not simple").clone();
    assert_eq!(
        shown(doc! { "locale": "fr_CA", "strength": 2i64 }),
        doc! {
            "locale": "fr_CA", "caseLevel": false, "caseFirst": "off", "strength": 2, "numericOrdering": false,
            "alternate": "non-ignorable", "maxVariable": "punct", "normalization": false, "backwards": true,
            "version": "57.1",
        }
    );
    assert_eq!(shown(doc! { "locale": "th" }).get_str("alternate"), Some("shifted"));
    assert_eq!(shown(doc! { "locale": "da" }).get_str("caseFirst"), Some("upper"));
    let again = shown(doc! { "locale": "de@collation=phonebook", "numericOrdering": true });
    assert_eq!(shown(again.clone()), again, "the filled-in form reads as itself");
}

#[test]
fn simple_is_no_collation_whatever_stands_beside_it() {
    let c = collation(doc! { "locale": "simple", "strength": 1, "caseFirst": "upper" });
    assert!(c.is_simple() && c == Collation::SIMPLE && c.document().is_none());
    assert_eq!(c.compare_values(&"a".into(), &"B".into()), Ordering::Greater);
}

#[test]
fn each_bad_document_has_its_code() {
    for (spec, code) in [
        (doc! {}, 40414),
        (doc! { "locale": Value::Null }, 40414),
        (doc! { "locale": 1 }, 14),
        (doc! { "locale": "en", "Strength": 1 }, 40415),
        (doc! { "locale": "en", "strength": "1" }, 14),
        (doc! { "locale": "en", "strength": 0 }, 2),
        (doc! { "locale": "en", "strength": f64::NAN }, 2),
        (doc! { "locale": "en", "strength": 6 }, 2),
        (doc! { "locale": "en", "backwards": Value::Null }, 14),
        (doc! { "locale": "en", "caseFirst": "x" }, 2),
        (doc! { "locale": "en", "caseFirst": "upper", "strength": 2 }, 2),
        (doc! { "locale": "en", "backwards": true, "strength": 1 }, 2),
        (doc! { "locale": "en", "version": "1" }, 161),
        (doc! { "locale": "" }, 2),
        (doc! { "locale": "en-US" }, 2),
        (doc! { "locale": "en_us" }, 2),
        (doc! { "locale": "xx" }, 2),
        (doc! { "locale": "invalid_locale_xyz" }, 2),
        (doc! { "locale": "en@collation=nonsense" }, 2),
        (doc! { "locale": "sv", "backwards": true }, 238),
        (doc! { "locale": "cs@collation=search" }, 238),
    ] {
        let text = format!("{spec:?}");
        assert_eq!(refused(spec), code, "{text}");
    }
}

#[test]
fn posix_orders_ascii_by_its_codes() {
    let c = collation(doc! { "locale": "en_US_POSIX", "strength": 1 });
    for (a, b) in [("A", "B"), ("B", "a"), ("a", "b"), ("0", "A")] {
        assert_eq!(c.compare_values(&a.into(), &b.into()), Ordering::Less, "{a} {b}");
    }
}

#[test]
fn keys_order_and_equal_as_comparisons_do() {
    let words = [
        "",
        "a",
        "A",
        "á",
        "ab",
        "Ab",
        "a b",
        "a-b",
        "b",
        "cote",
        "coté",
        "côte",
        "côté",
        "z",
        "ß",
        "ss",
        "10",
        "2",
        "\u{0}",
        "a\u{0}b",
        "あ",
        "ア",
        "가",
        "𝒳",
        "\u{10FFFF}",
    ];
    for spec in [
        doc! { "locale": "en" },
        doc! { "locale": "en", "strength": 1 },
        doc! { "locale": "en", "strength": 1, "caseLevel": true },
        doc! { "locale": "en", "strength": 2, "numericOrdering": true },
        doc! { "locale": "fr_CA", "strength": 5 },
        doc! { "locale": "en", "alternate": "shifted", "maxVariable": "space" },
        doc! { "locale": "ja", "strength": 4 },
        doc! { "locale": "en_US_POSIX" },
    ] {
        let c = collation(spec);
        for a in words {
            for b in words {
                let (a, b): (Value, Value) = (a.into(), b.into());
                let order = c.compare_values(&a, &b);
                assert_eq!(key(&c, &a).cmp(&key(&c, &b)), order, "{a:?} {b:?} {c:?}");
                assert_eq!(
                    crate::compare::compare_values(&c.comparable(&a), &c.comparable(&b)),
                    order,
                    "{a:?} {b:?} {c:?}"
                );
                assert_eq!(key(&Collation::SIMPLE, &c.comparable(&a)), key(&c, &a));
            }
        }
    }
}

#[test]
fn strings_inside_documents_and_arrays_compare_by_the_collation_and_names_do_not() {
    let c = collation(doc! { "locale": "en", "strength": 2 });
    assert!(c.values_equal(&doc! { "a": ["X"] }.into(), &doc! { "a": ["x"] }.into()));
    assert!(!c.values_equal(&doc! { "A": 1 }.into(), &doc! { "a": 1 }.into()));
    assert_eq!(key(&c, &array!["X", 1]), key(&c, &array!["x", 1]));
    let mut plain = Vec::new();
    key_string::append_value(&mut plain, &array![1, doc! {"b": true}], false);
    assert_eq!(key(&c, &array![1, doc! {"b": true}]), plain, "what holds no string has one key");
}

#[test]
fn what_holds_a_string_does_not_compare_alike() {
    for (v, alike) in [
        (Value::Int32(1), true),
        (Value::from("a"), false),
        (array![1, doc! {"a": true}], true),
        (array![1, doc! {"a": "x"}], false),
    ] {
        let holder = v.to_holder();
        assert_eq!(compares_alike(holder.get("").expect("a value")), alike, "{v:?}");
    }
}
