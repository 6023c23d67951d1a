//! Golden cases of the matcher's traversal.

use crate::path::{for_each_leaf, for_each_value, get, traverses_array};
use crate::{Document, Value, array, doc};

fn values(d: Document, path: &str) -> Vec<Option<Value>> {
    let d = d.to_doc_buf();
    let mut seen = Vec::new();
    for_each_value(d.doc(), path, &mut |v| {
        seen.push(v.map(|v| v.to_value()));
        Ok(false)
    })
    .unwrap();
    seen
}

fn leaves(d: Document, path: &str) -> Vec<Option<Value>> {
    let d = d.to_doc_buf();
    let mut seen = Vec::new();
    for_each_leaf(d.doc(), path, &mut |v| {
        seen.push(v.map(|v| v.to_value()));
        Ok(false)
    })
    .unwrap();
    seen
}

fn some(v: impl Into<Value>) -> Option<Value> {
    Some(v.into())
}

#[test]
fn fields_of_documents_are_found() {
    assert_eq!(values(doc! {"a": 1}, "a"), [some(1)]);
    assert_eq!(values(doc! {"a": {"b": 2}}, "a.b"), [some(2)]);
    assert_eq!(values(doc! {"a": 1}, "b"), [None]);
    assert_eq!(values(doc! {"a": 1}, "a.b"), [None]);
    assert_eq!(values(doc! {"a": {"c": 1}}, "a.b.c"), [None]);
}

#[test]
fn an_array_at_the_end_gives_its_elements_then_itself() {
    assert_eq!(values(doc! {"a": [5, 6]}, "a"), [some(5), some(6), some(array![5, 6])]);
    assert_eq!(values(doc! {"a": [[5]]}, "a"), [some(array![5]), some(array![[5]])]);
    assert_eq!(values(doc! {"a": []}, "a"), [some(array![])]);
    assert_eq!(leaves(doc! {"a": [5, 6]}, "a"), [some(array![5, 6])]);
}

#[test]
fn an_array_on_the_way_gives_the_fields_of_its_documents() {
    assert_eq!(values(doc! {"a": [{"b": 5}, 3, {}, {"b": 9}]}, "a.b"), [some(5), None, some(9)]);
    assert_eq!(
        values(doc! {"a": [{"b": [1, 2]}, {"b": 3}]}, "a.b"),
        [some(1), some(2), some(array![1, 2]), some(3)]
    );
    assert_eq!(leaves(doc! {"a": [{"b": [1, 2]}, {"b": 3}]}, "a.b"), [some(array![1, 2]), some(3)]);
    assert_eq!(values(doc! {"a": []}, "a.b"), []);
    assert_eq!(values(doc! {"a": [1, 2]}, "a.b"), []);
    assert_eq!(values(doc! {"a": [[{"b": 1}]]}, "a.b"), []);
}

#[test]
fn numbers_are_positions_and_names() {
    assert_eq!(values(doc! {"a": [5, 7, 3]}, "a.1"), [some(7)]);
    assert_eq!(values(doc! {"a": [5, [2, 4], 3]}, "a.1"), [some(array![2, 4])]);
    assert_eq!(values(doc! {"a": [5, {"1": 4}, 3]}, "a.1"), [some(4), some(doc! {"1": 4})]);
    assert_eq!(values(doc! {"a": [5, {"b": 4}, 3]}, "a.1.b"), [None, some(4)]);
    assert_eq!(values(doc! {"a": [5, [6, 7]]}, "a.1.0"), [some(6)]);
    assert_eq!(values(doc! {"a": [5]}, "a.01"), []);
}

#[test]
fn a_visit_stops_when_told() {
    let d = doc! {"a": [1, 2, 3]}.to_doc_buf();
    let mut count = 0;
    let stopped = for_each_value(d.doc(), "a", &mut |_| {
        count += 1;
        Ok(count == 2)
    });
    assert!(stopped.unwrap());
    assert_eq!(count, 2);
}

#[test]
fn get_follows_documents_only() {
    let d = doc! {"a": {"b": [1], "c": 2}}.to_doc_buf();
    assert_eq!(get(d.doc(), "a.c").map(|v| v.to_value()), some(2));
    assert_eq!(get(d.doc(), "a.b").map(|v| v.to_value()), some(array![1]));
    assert_eq!(get(d.doc(), "a.b.0"), None);
    assert!(
        traverses_array(d.doc(), "a.b.x")
            && traverses_array(d.doc(), "a.b")
            && !traverses_array(d.doc(), "a.c")
    );
}

/// `{a: [{"0": [{"0": ... [{"0": innermost}]}]}]}` with so many documents in arrays.
fn positions_in_positions(depth: usize, innermost: impl Into<Value>) -> Document {
    let inner = |inside: Value, _| Value::from(vec![Value::Document(doc! {"0": inside})]);
    doc! {"a": (0..depth).fold(innermost.into(), inner)}
}

#[test]
fn a_path_of_many_positions_is_walked_in_the_time_of_its_places_and_not_of_its_ways() {
    // To the innermost array lead as many ways as Fibonacci's eighty-fifth number has.
    let d = positions_in_positions(85, 1).to_doc_buf();
    let path = format!("a{}", ".0".repeat(171));
    let mut count = 0;
    let stopped = for_each_leaf(d.doc(), &path, &mut |v| {
        assert_eq!(v.map(|v| v.to_value()), None);
        count += 1;
        Ok(false)
    });
    assert!(!stopped.unwrap() && count < 20_000, "{count}");
    // As positions and names in turn it is found, and by the position of the innermost array with all of the names before it.
    let found = |names: usize| values(positions_in_positions(85, 1), &format!("a{}", ".0".repeat(names)));
    assert!(found(85).contains(&some(1)) && found(170).contains(&some(1)));
    assert!(!found(84).contains(&some(1)) && !found(171).contains(&some(1)));
}
