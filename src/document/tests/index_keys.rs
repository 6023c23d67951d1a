//! Golden cases of index keys and sort keys.

use crate::path::{index_keys, sort_key};
use crate::{Collation, Document, Value, array, codes, doc};

fn keys(d: Document, paths: &[&str]) -> Vec<Vec<Value>> {
    let d = d.to_doc_buf();
    let keys = index_keys(d.doc(), paths).unwrap().keys;
    keys.iter().map(|k| k.iter().map(|v| v.to_value()).collect()).collect()
}

fn one(v: impl Into<Value>) -> Vec<Value> {
    vec![v.into()]
}

#[test]
fn single_fields() {
    assert_eq!(keys(doc! {"a": 5}, &["a"]), [one(5)]);
    assert_eq!(keys(doc! {"b": 5}, &["a"]), [one(Value::Null)]);
    assert_eq!(keys(doc! {"a": {"b": 5}}, &["a.b"]), [one(5)]);
    assert_eq!(keys(doc! {"a": 5}, &["a.b"]), [one(Value::Null)]);
    assert_eq!(keys(doc! {"a": [1, 2, 1]}, &["a"]), [one(1), one(2)]);
    assert_eq!(keys(doc! {"a": [1, 1.0]}, &["a"]), [one(1)]);
    assert_eq!(keys(doc! {"a": []}, &["a"]), [one(Value::Undefined)]);
    assert_eq!(keys(doc! {"a": []}, &["a.b"]), [one(Value::Null)]);
    assert_eq!(keys(doc! {"a": [[1, 2], 3]}, &["a"]), [one(array![1, 2]), one(3)]);
    assert_eq!(keys(doc! {"a": [{"b": 1}, {"b": 2}, {}, 7]}, &["a.b"]), [one(1), one(2), one(Value::Null)]);
    assert_eq!(keys(doc! {"a": [{"b": [1, 2]}, {"b": 3}]}, &["a.b"]), [one(1), one(2), one(3)]);
    assert_eq!(keys(doc! {"a": [[{"b": 1}]]}, &["a.b"]), [one(Value::Null)]);
}

#[test]
fn compound_paths_through_one_array_advance_together() {
    let d = doc! {"a": [{"b": 1, "c": 4}, {"b": 2}], "d": 9};
    assert_eq!(
        keys(d, &["a.b", "a.c", "d"]),
        [vec![1.into(), 4.into(), 9.into()], vec![2.into(), Value::Null, 9.into()]]
    );
    let d = doc! {"a": [{"b": 1}, {"b": 2}]};
    assert_eq!(
        keys(d, &["a", "a.b"]),
        [vec![doc! {"b": 1}.into(), 1.into()], vec![doc! {"b": 2}.into(), 2.into()]]
    );
    assert_eq!(keys(doc! {"a": []}, &["a", "a.b"]), [vec![Value::Undefined, Value::Null]]);
    let d = doc! {"a": {"b": [1, 2]}, "c": 3};
    assert_eq!(keys(d, &["a.b", "c"]), [vec![1.into(), 3.into()], vec![2.into(), 3.into()]]);
}

#[test]
fn parallel_arrays_are_refused() {
    let d = doc! {"a": [1], "b": [2]}.to_doc_buf();
    let error = index_keys(d.doc(), &["a", "b"]).unwrap_err();
    assert_eq!(error.code, codes::CANNOT_INDEX_PARALLEL_ARRAYS);
    assert_eq!(error.message, "cannot index parallel arrays [b] [a]");
    let d = doc! {"categories": ["x"], "stock": [{"quantity": 1}]}.to_doc_buf();
    let error = index_keys(d.doc(), &["categories", "stock.quantity"]).unwrap_err();
    assert_eq!(error.message, "cannot index parallel arrays [stock] [categories]");
    let d = doc! {"a": [{"b": [1], "c": [2]}]}.to_doc_buf();
    let error = index_keys(d.doc(), &["a.b", "a.c"]).unwrap_err();
    assert_eq!(error.message, "cannot index parallel arrays [c] [b]");
    let error = sort_key(d.doc(), &[("a.b", false), ("a.c", true)], &Collation::SIMPLE).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (2, "cannot sort with keys that are parallel arrays"));
}

#[test]
fn numeric_names_are_positions_unless_ambiguous() {
    assert_eq!(keys(doc! {"a": [5, 6]}, &["a.1"]), [one(6)]);
    assert_eq!(keys(doc! {"a": [5, {"b": 6}]}, &["a.1.b"]), [one(6)]);
    assert_eq!(keys(doc! {"a": [[1, 2]]}, &["a.0"]), [one(1), one(2)]);
    assert_eq!(keys(doc! {"a": [{"5": 1}]}, &["a.5"]), [one(1)]);
    assert_eq!(keys(doc! {"a": {"0": 1}}, &["a.0"]), [one(1)]);
    let d = doc! {"a": [{"0": 1}]}.to_doc_buf();
    assert_eq!(index_keys(d.doc(), &["a.0"]).unwrap_err().code, 16746);
}

#[test]
fn multikey_paths_and_missing_fields_are_reported() {
    let d = doc! {"a": {"b": [{"c": [1]}]}}.to_doc_buf();
    let k = index_keys(d.doc(), &["a.b.c", "x"]).unwrap();
    assert_eq!(k.multikey, [vec![1, 2], vec![]]);
    assert_eq!(k.missing, [false, true]);
    assert!(k.is_multikey() && !k.all_missing());
    assert!(index_keys(d.doc(), &["x", "a.y"]).unwrap().all_missing());
}

#[test]
fn many_elements_make_each_key_once() {
    let items: Vec<Value> = (0..100).map(|i| Value::Int32(i % 40)).collect();
    assert_eq!(keys(doc! {"a": Value::Array(items)}, &["a"]).len(), 40);
}

#[test]
fn the_sort_key_is_the_least_in_the_order_of_the_pattern() {
    let key = |d: Document, pattern: &[(&str, bool)]| -> Vec<Value> {
        let d = d.to_doc_buf();
        sort_key(d.doc(), pattern, &Collation::SIMPLE).unwrap().iter().map(|v| v.to_value()).collect()
    };
    assert_eq!(key(doc! {"a": [3, 1, 2]}, &[("a", false)]), one(1));
    assert_eq!(key(doc! {"a": [3, 1, 2]}, &[("a", true)]), one(3));
    assert_eq!(key(doc! {"a": []}, &[("a", false)]), one(Value::Undefined));
    let d = doc! {"a": [{"b": 1, "c": 5}, {"b": 1, "c": 7}]};
    assert_eq!(key(d, &[("a.b", false), ("a.c", true)]), [1.into(), 7.into()]);
    assert_eq!(key(doc! {}, &[("a", false)]), one(Value::Null));
}
