//! Sort keys and their order.

use super::*;
use document::{DocBuf, array, doc};

fn sorted(spec: Document, docs: Vec<Document>, limit: Option<usize>) -> Vec<i64> {
    let spec = SortSpec::parse(spec.to_doc_buf().doc()).unwrap();
    let mut sorter = Sorter::new(spec, limit, MEMORY_LIMIT_BYTES);
    for d in docs {
        sorter.push(DocBuf::from(d)).unwrap();
    }
    sorter.finish().iter().map(|d| d.doc().get_i64("_id").unwrap()).collect()
}

#[test]
fn arrays_sort_by_their_least_or_greatest_element() {
    let docs = || {
        vec![doc! {"_id": 1, "a": [5, 1]}, doc! {"_id": 2, "a": 3}, doc! {"_id": 3}, doc! {"_id": 4, "a": []}]
    };
    assert_eq!(sorted(doc! {"a": 1}, docs(), None), [4, 3, 1, 2]);
    assert_eq!(sorted(doc! {"a": -1}, docs(), None), [1, 2, 3, 4]);
}

#[test]
fn a_limit_keeps_the_first_and_their_order_of_arrival() {
    let docs = || (0..20).map(|i| doc! {"_id": i, "a": {"b": i % 3}}).collect::<Vec<_>>();
    assert_eq!(sorted(doc! {"a.b": 1}, docs(), Some(4)), [0, 3, 6, 9]);
    assert_eq!(sorted(doc! {"a.b": -1, "_id": -1}, docs(), Some(3)), [17, 14, 11]);
}

#[test]
fn too_much_memory_is_error_292() {
    let spec = SortSpec::parse(doc! {"a": 1}.to_doc_buf().doc()).unwrap();
    let mut sorter = Sorter::new(spec, None, 100);
    let code = (0..9).find_map(|i| sorter.push(doc! {"a": i}.to_doc_buf()).err()).unwrap().code;
    assert_eq!(code, 292);
}

#[test]
fn a_decimal_is_rounded_to_a_direction_and_a_double_is_cut() {
    let parsed =
        |direction: Value| SortSpec::parse(doc! {"a": direction}.to_doc_buf().doc()).map_err(|e| e.code);
    let decimal = |text: &str| Value::Decimal128(document::Decimal128::parse(text).expect("a decimal"));
    let descends = |direction: Value| parsed(direction).map(|spec| spec.components()[0].1);
    assert_eq!(descends(decimal("0.51")), Ok(false));
    assert_eq!(descends(decimal("-0.51")), Ok(true));
    assert_eq!(descends(decimal("1.5")), Err(15975), "rounds to 2");
    assert_eq!(descends(Value::from(1.9)), Ok(false));
    assert_eq!(descends(Value::from(0.51)), Err(15975));
}

#[test]
fn bad_patterns_are_refused_with_their_codes() {
    let code = |d: Document| SortSpec::parse(d.to_doc_buf().doc()).unwrap_err().code;
    assert_eq!(code(doc! {"a": 2}), 15975);
    assert_eq!(code(doc! {"a": "x"}), 15974);
    assert_eq!(code(doc! {"": 1}), 40352);
    assert_eq!(code(doc! {"a": {"$meta": "indexKey"}}), 31138);
    let _ = array![1];
}
