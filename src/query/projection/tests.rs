//! Projections: results and refusals.

use super::*;
use crate::QueryContext;
use document::{Document, doc};

fn project(spec: Document, filter: Document, input: Document) -> Result<Document> {
    let ctx = QueryContext::at(0);
    let matcher = Matcher::parse(filter.to_doc_buf().doc(), &ctx)?;
    let p = Projection::parse(spec.to_doc_buf().doc(), &matcher, &ctx)?;
    let mut out = Vec::new();
    p.apply(input.to_doc_buf().doc(), &mut out)?;
    Ok(Doc::from_validated(&out).to_document())
}
fn plain(spec: Document, input: Document) -> Document {
    project(spec, doc! {}, input).unwrap()
}
fn code(spec: Document) -> i32 {
    project(spec, doc! {}, doc! {}).unwrap_err().code
}

#[test]
fn inclusion_keeps_the_document_order_and_id() {
    let d = doc! {"_id": 1, "a": 1, "b": {"c": 2, "d": 3}, "e": 4};
    assert_eq!(plain(doc! {"e": 1, "b.c": 1}, d.clone()), doc! {"_id": 1, "b": {"c": 2}, "e": 4});
    assert_eq!(plain(doc! {"_id": 0, "a": true}, d.clone()), doc! {"a": 1});
    assert_eq!(plain(doc! {"_id": 1}, d.clone()), doc! {"_id": 1});
    assert_eq!(plain(doc! {"b": {"d": 1}}, d), doc! {"_id": 1, "b": {"d": 3}});
}

fn twice_a() -> Document {
    Document(vec![("a".into(), 1.into()), ("a".into(), 2.into()), ("b".into(), 3.into())])
}

#[test]
fn one_that_is_read_by_names_keeps_the_first_field_of_each() {
    let ctx = QueryContext::at(0);
    let first = |spec: Document, input: Document| {
        let p = Projection::parse(spec.to_doc_buf().doc(), &Matcher::always(), &ctx).unwrap().first_of_each();
        let mut out = Vec::new();
        p.apply(input.to_doc_buf().doc(), &mut out).unwrap();
        Doc::from_validated(&out).to_document()
    };
    let mut twice = doc! {"b": 1, "_id": 2, "a": 3, "a2": 0, "c": 4};
    twice.push("a", 5);
    assert_eq!(first(doc! {"a": 1, "b": 1}, twice.clone()), doc! {"b": 1, "_id": 2, "a": 3});
    assert_eq!(first(doc! {"a": 1, "_id": 0, "none": 1}, twice.clone()), doc! {"a": 3});
    assert_eq!(first(doc! {"_id": 1}, twice.clone()), doc! {"_id": 2});
    assert_eq!(first(doc! {"a": 1, "c": 1, "_id": 0}, twice_a()), doc! {"a": 1});
    // Others are applied as ever.
    assert_eq!(first(doc! {"a": 0, "b": 0, "a2": 0}, twice.clone()), doc! {"_id": 2, "c": 4});
    assert_eq!(first(doc! {"b.x": 1}, twice), doc! {"_id": 2});
    for n in [1, 30, 31, 32, 33, 100] {
        let all: Document = (0..120).map(|i| (format!("f{i}"), document::Value::Int32(1))).collect();
        let some: Document = all.iter().take(n).map(|(name, v)| (name.to_string(), v.clone())).collect();
        assert_eq!(first(some.clone(), all.clone()), some);
        assert_eq!(plain(some.clone(), all), some);
    }
    let doubled = doc! {"a": 1, "b": 1};
    assert_eq!(plain(doubled, twice_a()), twice_a());
}

#[test]
fn exclusion_drops_what_is_named_also_in_arrays() {
    let d = doc! {"_id": 1, "a": [{"b": 1, "c": 2}, 5, [{"b": 3}]]};
    assert_eq!(plain(doc! {"a.b": 0}, d.clone()), doc! {"_id": 1, "a": [{"c": 2}, 5, [{}]]});
    assert_eq!(plain(doc! {"a.b": 1}, d.clone()), doc! {"_id": 1, "a": [{"b": 1}, [{"b": 3}]]});
    assert_eq!(plain(doc! {"_id": 0}, doc! {"_id": 1, "x": 2}), doc! {"x": 2});
}

#[test]
fn slice_cuts_and_keeps_the_other_fields() {
    let d = doc! {"_id": 1, "a": [1, 2, 3, 4], "b": 1};
    assert_eq!(plain(doc! {"a": {"$slice": -2}}, d.clone()), doc! {"_id": 1, "a": [3, 4], "b": 1});
    assert_eq!(plain(doc! {"a": {"$slice": [1, 2]}}, d.clone()), doc! {"_id": 1, "a": [2, 3], "b": 1});
    assert_eq!(plain(doc! {"a": {"$slice": 1}, "b": 0}, d.clone()), doc! {"_id": 1, "a": [1]});
    assert_eq!(plain(doc! {"a": {"$slice": 1}, "_id": 1}, d), doc! {"_id": 1, "a": [1]});
}

#[test]
fn elem_match_and_positional_keep_one_element() {
    let d = doc! {"_id": 1, "a": [{"x": 1}, {"x": 5}, {"x": 6}]};
    assert_eq!(
        plain(doc! {"a": {"$elemMatch": {"x": {"$gt": 3}}}}, d.clone()),
        doc! {"_id": 1, "a": [{"x": 5}]}
    );
    assert_eq!(plain(doc! {"a": {"$elemMatch": {"x": 9}}}, d.clone()), doc! {"_id": 1});
    assert_eq!(project(doc! {"a.$": 1}, doc! {"a.x": 6}, d).unwrap(), doc! {"_id": 1, "a": [{"x": 6}]});
}

#[test]
fn positional_cuts_the_first_array_of_the_path_and_keeps_those_below() {
    let d = doc! {"_id": 1, "a": [{"b": [1, 2, 3], "c": 1}, {"b": [4, 5, 6], "c": 2}]};
    let shown = |filter| project(doc! {"a.b.$": 1}, filter, d.clone()).unwrap();
    assert_eq!(shown(doc! {"a.b": 5}), doc! {"_id": 1, "a": [{"b": [4, 5, 6]}]});
    assert_eq!(shown(doc! {"a.c": 1}), doc! {"_id": 1, "a": [{"b": [1, 2, 3]}]});
    // The position may be beyond the arrays that the element holds.
    let short = doc! {"_id": 1, "a": [{"b": [1]}, {"b": [2]}, {"b": 3}]};
    let shown = |filter| project(doc! {"a.b.$": 1}, filter, short.clone()).unwrap();
    assert_eq!(shown(doc! {"a.b": 2}), doc! {"_id": 1, "a": [{"b": [2]}]});
    assert_eq!(shown(doc! {"a.b": 3}), doc! {"_id": 1, "a": [{"b": 3}]});
    // Documents lead to the first array; other cuts below it are made as well.
    let deep = doc! {"_id": 1, "o": {"a": [{"b": [1, 2], "c": [7, 8]}, {"b": [3], "c": [9, 0]}]}};
    let spec = doc! {"o.a.b.$": 1, "o.a.c": {"$slice": 1}};
    let expected = doc! {"_id": 1, "o": {"a": [{"b": [3], "c": [9]}]}};
    assert_eq!(project(spec, doc! {"o.a.b": 3}, deep).unwrap(), expected);
    let parallel = doc! {"_id": 1, "a": [{"b": [1]}], "n": [1, 2, 3]};
    assert_eq!(project(doc! {"a.b.$": 1}, doc! {"n": 3}, parallel).unwrap_err().code, 51247);
}

#[test]
fn bad_specifications_have_the_real_codes() {
    assert_eq!(code(doc! {"a": 1, "b": 0}), 31254);
    assert_eq!(code(doc! {"a": 0, "b": 1}), 31253);
    assert_eq!(code(doc! {"a": 1, "a.b": 1}), 31249);
    assert_eq!(code(doc! {"a.b": 1, "a": 1}), 31250);
    assert_eq!(code(doc! {"": 1}), 40352);
    assert_eq!(code(doc! {"a": {"$elemMatch": 1}}), 31274);
    assert_eq!(code(doc! {"a.b": {"$elemMatch": {"x": 1}}}), 31275);
}

#[test]
fn very_many_slices_are_cut_in_one_pass() {
    const MANY: usize = 20_000;
    let d: Document = (0..MANY).map(|i| (format!("f{i}"), document::array![1, 2, 3])).collect();
    let slices = || (0..MANY).map(|i| (format!("f{i}"), document::Value::Document(doc! {"$slice": 1})));
    let cut: Document = (0..MANY).map(|i| (format!("f{i}"), document::array![1])).collect();
    assert_eq!(plain(slices().collect(), d.clone()), cut);
    let below = |d: Document| doc! {"a": [d, 5, [{"f0": [1, 2]}]]};
    let nested: Document = slices().map(|(name, slice)| (format!("a.{name}"), slice)).collect();
    assert_eq!(plain(nested, below(d)), below(cut), "an array in an array is left alone");
}

#[test]
fn slices_collide_with_one_another_and_with_other_fields() {
    let slice = || doc! {"$slice": 1};
    assert_eq!(code(doc! {"a": slice(), "a.b": slice()}), 31249);
    assert_eq!(code(doc! {"a.b": slice(), "a": slice()}), 31250);
    assert_eq!(code(doc! {"a": slice(), "a.b": 0}), 31249);
    assert_eq!(code(doc! {"a.b": 0, "a": slice()}), 31250);
    assert_eq!(code(doc! {"a": 1, "a.b": slice()}), 31249);
    let d = doc! {"_id": 1, "a": {"b": [1, 2], "c": 3, "d": 4}};
    assert_eq!(plain(doc! {"a.b": slice(), "a.c": 0}, d.clone()), doc! {"_id": 1, "a": {"b": [1], "d": 4}});
    assert_eq!(plain(doc! {"a.b": slice(), "a.c": 1}, d), doc! {"_id": 1, "a": {"b": [1], "c": 3}});
}

#[test]
fn a_field_that_is_computed_below_each_element_is_counted_as_often_as_it_is_copied() {
    use document::Value;
    use document::meter::{OVERRUN, Oversight, bounded, within};
    let elements = |n: usize| Value::Array(vec![Value::Document(doc! {}); n]);
    let spec = doc! { "x.a": "$big" };
    let input = doc! { "x": elements(1000), "big": "b".repeat(1 << 20) };
    assert_eq!(project(spec.clone(), doc! {}, input).unwrap_err().code, 10334);
    let many = doc! { "x": elements(30_000), "big": 1 };
    let ended = within(&mut Oversight::default(), || bounded(1, || project(spec, doc! {}, many)));
    assert_eq!(ended.err().map(|e| e.code), Some(OVERRUN));
}
