//! Filters: what they match, and how wrong ones are refused.

use super::*;
use document::{Document, Value, array, doc};

fn matcher(filter: Document) -> Result<Matcher> {
    Matcher::parse(filter.to_doc_buf().doc(), &QueryContext::at(0))
}
fn matches(filter: Document, d: Document) -> bool {
    matcher(filter).unwrap().matches(d.to_doc_buf().doc()).unwrap()
}
/// Each line: a filter, documents it matches, documents it does not.
fn script(lines: Vec<(Document, Vec<Document>, Vec<Document>)>) {
    for (filter, yes, no) in lines {
        for d in yes {
            assert!(matches(filter.clone(), d.clone()), "{filter:?} should match {d:?}");
        }
        for d in no {
            assert!(!matches(filter.clone(), d.clone()), "{filter:?} should not match {d:?}");
        }
    }
}
fn error(filter: Document) -> (i32, String) {
    let e = matcher(filter).unwrap_err();
    (e.code, e.message)
}

#[test]
fn equality_is_of_values_elements_and_whole_arrays() {
    script(vec![
        (
            doc! {"a": 1},
            vec![doc! {"a": 1}, doc! {"a": 1.0}, doc! {"a": [0, 1]}],
            vec![doc! {"a": [[1]]}, doc! {}],
        ),
        (
            doc! {"a": [1, 2]},
            vec![doc! {"a": [1, 2]}, doc! {"a": [[1, 2]]}],
            vec![doc! {"a": [2, 1]}, doc! {"a": 1}],
        ),
        (doc! {"a": {"b": 1}}, vec![doc! {"a": {"b": 1}}], vec![doc! {"a": {"b": 1, "c": 2}}]),
        (
            doc! {"a.b": 1},
            vec![doc! {"a": [{"b": 2}, {"b": 1}]}, doc! {"a": {"b": [1]}}],
            vec![doc! {"a": [[{"b": 1}]]}],
        ),
        (doc! {"a.0": 1}, vec![doc! {"a": [1, 2]}, doc! {"a": {"0": 1}}], vec![doc! {"a": [2, 1]}]),
        (doc! {"a.1.b": 5}, vec![doc! {"a": [0, {"b": 5}]}], vec![doc! {"a": [{"b": 5}, 0]}]),
    ]);
}

#[test]
fn null_is_also_missing() {
    script(vec![
        (
            doc! {"a": Value::Null},
            vec![doc! {}, doc! {"a": Value::Null}, doc! {"a": [Value::Null]}],
            vec![doc! {"a": 0}, doc! {"a": []}],
        ),
        (
            doc! {"a.b": Value::Null},
            vec![doc! {"a": 5}, doc! {"a": [{"c": 1}]}],
            vec![doc! {"a": [1]}, doc! {"a": {"b": 1}}],
        ),
        (doc! {"a": {"$ne": Value::Null}}, vec![doc! {"a": 1}], vec![doc! {}]),
        (doc! {"a": {"$exists": true}}, vec![doc! {"a": Value::Null}, doc! {"a": []}], vec![doc! {"b": 1}]),
        (doc! {"a.b": {"$exists": false}}, vec![doc! {"a": [1]}, doc! {}], vec![doc! {"a": [{"b": 1}, {}]}]),
        (doc! {"a": {"$in": [Value::Null, 3]}}, vec![doc! {}, doc! {"a": 3}], vec![doc! {"a": 4}]),
    ]);
}

#[test]
fn order_is_within_one_type() {
    script(vec![
        (
            doc! {"a": {"$gt": 5}},
            vec![doc! {"a": 6}, doc! {"a": [1, 9]}],
            vec![doc! {"a": "x"}, doc! {"a": 5}, doc! {"a": f64::NAN}],
        ),
        (doc! {"a": {"$lt": "m"}}, vec![doc! {"a": "a"}], vec![doc! {"a": 1}, doc! {"a": "z"}]),
        (doc! {"a": {"$lte": f64::NAN}}, vec![doc! {"a": f64::NAN}], vec![doc! {"a": 1}]),
        (
            doc! {"a": {"$gt": Value::MinKey}},
            vec![doc! {"a": 1}, doc! {"a": "x"}],
            vec![doc! {"a": Value::MinKey}],
        ),
        (doc! {"a": {"$gt": 1, "$lt": 3}}, vec![doc! {"a": 2}, doc! {"a": [0, 9]}], vec![doc! {"a": 3}]),
    ]);
}

#[test]
fn arrays_have_their_operators() {
    script(vec![
        (doc! {"a": {"$all": [1, 2]}}, vec![doc! {"a": [2, 3, 1]}], vec![doc! {"a": [1]}, doc! {"a": 1}]),
        (doc! {"a": {"$all": []}}, vec![], vec![doc! {"a": []}, doc! {}]),
        (doc! {"a": {"$size": 2}}, vec![doc! {"a": [1, [2, 3]]}], vec![doc! {"a": [[1, 2]]}, doc! {"a": 1}]),
        (
            doc! {"a": {"$elemMatch": {"$gt": 1, "$lt": 3}}},
            vec![doc! {"a": [0, 2]}],
            vec![doc! {"a": [0, 9]}, doc! {"a": 2}],
        ),
        (
            doc! {"a": {"$elemMatch": {"b": 1, "c": 2}}},
            vec![doc! {"a": [{"b": 1, "c": 2}]}],
            vec![doc! {"a": [{"b": 1}, {"c": 2}]}],
        ),
        (
            doc! {"a": {"$not": {"$elemMatch": {"b": 1}}}},
            vec![doc! {"a": [{"b": 2}]}],
            vec![doc! {"a": [{"b": 1}]}],
        ),
    ]);
}

#[test]
fn values_have_their_operators() {
    script(vec![
        (
            doc! {"a": {"$type": "number"}},
            vec![doc! {"a": 1}, doc! {"a": [1.5]}],
            vec![doc! {"a": "1"}, doc! {}],
        ),
        (doc! {"a": {"$type": ["string", 8]}}, vec![doc! {"a": "x"}, doc! {"a": true}], vec![doc! {"a": 1}]),
        (doc! {"a": {"$type": "array"}}, vec![doc! {"a": []}], vec![doc! {"a": 1}]),
        (
            doc! {"a": {"$mod": [4, 0]}},
            vec![doc! {"a": 8}, doc! {"a": 4.9}, doc! {"a": -4}],
            vec![doc! {"a": 2}, doc! {"a": "4"}],
        ),
        (
            doc! {"a": {"$regex": "^B", "$options": "i"}},
            vec![doc! {"a": "bcd"}, doc! {"a": ["x", "B"]}],
            vec![doc! {"a": "ab"}, doc! {"a": 1}],
        ),
        (
            doc! {"a": {"$bitsAllSet": [0, 2]}},
            vec![doc! {"a": 5}, doc! {"a": -1}],
            vec![doc! {"a": 4}, doc! {"a": 5.5}],
        ),
        (doc! {"a": {"$bitsAnyClear": 3}}, vec![doc! {"a": 1}], vec![doc! {"a": 7}]),
        (doc! {"$expr": {"$gt": ["$a", "$b"]}}, vec![doc! {"a": 2, "b": 1}], vec![doc! {"a": 1, "b": 1}]),
        (
            doc! {"$jsonSchema": {"required": ["a"], "properties": {"a": {"bsonType": "int", "minimum": 3}}}},
            vec![doc! {"a": 3}],
            vec![doc! {}, doc! {"a": 2}, doc! {"a": "x"}],
        ),
    ]);
}

#[test]
fn conditions_combine() {
    script(vec![
        (
            doc! {"$or": [{"a": 1}, {"b": {"$gt": 5}}]},
            vec![doc! {"a": 1}, doc! {"b": 6}],
            vec![doc! {"a": 2, "b": 5}],
        ),
        (doc! {"$nor": [{"a": 1}, {"b": 1}]}, vec![doc! {"a": 2}], vec![doc! {"b": 1}]),
        (doc! {"a": {"$not": {"$gt": 5}}}, vec![doc! {"a": 5}, doc! {}], vec![doc! {"a": [1, 6]}]),
        (doc! {"a": {"$nin": [1, 2]}}, vec![doc! {"a": 3}, doc! {}], vec![doc! {"a": [3, 2]}]),
        (doc! {"a": 1, "b": 2, "$comment": "why"}, vec![doc! {"a": 1, "b": 2}], vec![doc! {"a": 1}]),
        (doc! {}, vec![doc! {}], vec![]),
    ]);
}

#[test]
fn the_position_is_of_the_outermost_array() {
    let position = |filter: Document, d: Document| {
        matcher(filter).unwrap().matches_with_position(d.to_doc_buf().doc()).unwrap()
    };
    assert_eq!(position(doc! {"a": {"$gt": 4}}, doc! {"a": [1, 5, 9]}), (true, Some(1)));
    assert_eq!(position(doc! {"a.b": 2}, doc! {"a": [{"b": 1}, {"b": [0, 0, 2]}]}), (true, Some(1)));
    assert_eq!(
        position(doc! {"a": {"$elemMatch": {"b": 2}}}, doc! {"a": [{"b": 1}, {"b": 2}]}),
        (true, Some(1))
    );
    assert_eq!(position(doc! {"a": {"$ne": 7}}, doc! {"a": [1]}), (true, None));
    assert_eq!(position(doc! {"a.0": 1}, doc! {"a": [1]}), (true, None));
    assert_eq!(position(doc! {"a": 7}, doc! {"a": [1]}), (false, None));
}

#[test]
fn unknown_known_and_malformed_operators_are_told_apart() {
    assert_eq!(error(doc! {"a": {"$foo": 1}}), (2, "unknown operator: $foo".into()));
    assert_eq!(error(doc! {"$where": "1"}).0, 2, "nothing runs scripts here");
    assert!(error(doc! {"$foo": 1}).1.starts_with("unknown top level operator: $foo."));
    assert_eq!(error(doc! {"$or": []}), (2, "$and/$or/$nor must be a nonempty array".into()));
    assert_eq!(error(doc! {"a": {"$in": 1}}), (2, "$in needs an array".into()));
    let text = "Regular expression is invalid: missing closing parenthesis";
    assert_eq!(error(doc! {"a": {"$regex": "("}}), (51091, text.into()));
    assert_eq!(error(doc! {"a": {"$options": "i"}}).0, 2);
}

#[test]
fn every_known_operator_is_either_parsed_or_said_to_be_missing() {
    for row in ops::PATH_OPERATORS.iter().chain(ops::TOP_OPERATORS) {
        assert!(row.name.starts_with('$'));
        if matches!(row.parse, ops::Parse::NotImplemented) {
            let at_top = ops::TOP_OPERATORS.iter().any(|r| std::ptr::eq(r, row));
            let filter: Document = [(row.name.to_string(), Value::Int32(1))].into_iter().collect();
            let filter = if at_top {
                filter
            } else {
                doc! {"a": filter}
            };
            assert_eq!(error(filter).0, 238, "{}", row.name);
        }
    }
}

#[test]
fn equalities_are_given_to_the_planner_and_to_targeting() {
    let m = matcher(doc! {"a": 1, "b": {"$in": [2]}, "c": {"$gt": 3}, "$or": [{"d": 1}, {"e": 1}]}).unwrap();
    let mut found: Vec<(&str, i64)> =
        m.equalities().into_iter().map(|(p, v)| (p, v.as_i64().unwrap())).collect();
    found.sort();
    assert_eq!(found, [("a", 1), ("b", 2)]);
    assert_eq!(m.tests_of("c").count(), 1);
    let _ = array![1];
}

/// Otherwise no deadline is looked at between documents, of which each takes milliseconds.
#[test]
fn a_comparison_with_many_shapes_counts_as_much_work() {
    let spent = |shapes: usize| {
        let polygons = vec![array![[[0, 0], [1, 0], [1, 1], [0, 0]]]; shapes];
        let shape = doc! { "type": "MultiPolygon", "coordinates": polygons };
        let filter = matcher(doc! { "at": { "$geoIntersects": { "$geometry": shape } } }).unwrap();
        let place = doc! { "at": [50, 50] }.to_doc_buf();
        document::meter::within(&mut document::meter::Oversight::default(), || {
            let before = document::meter::spent();
            assert!(!filter.matches(place.doc()).unwrap());
            document::meter::spent() - before
        })
    };
    assert!(spent(200) > 20 * spent(1));
}
