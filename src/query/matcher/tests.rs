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

/// The units that asking a filter of a document takes, which does not match.
fn units_of(filter: &Matcher, d: Document) -> i64 {
    let d = d.to_doc_buf();
    document::meter::within(&mut document::meter::Oversight::default(), || {
        let before = document::meter::spent();
        assert!(!filter.matches(d.doc()).unwrap());
        document::meter::spent() - before
    })
}

fn numbers(count: i32) -> Value {
    Value::Array((0..count).map(Value::from).collect())
}

#[test]
fn a_path_of_many_positions_is_walked_in_the_time_of_its_places_and_not_of_its_ways() {
    // To the innermost array lead as many ways as Fibonacci's eighty-fifth number has.
    let inner = |inside: Value, _| Value::from(vec![Value::Document(doc! {"0": inside})]);
    let d = || doc! {"a": (0..85).fold(Value::from(1), inner)};
    let filter = |names: usize, value: i32| {
        let path = format!("a{}", ".0".repeat(names));
        matcher(doc! {path: value}).unwrap()
    };
    let units = units_of(&filter(150, 2), d());
    assert!(units < 50_000, "{units}");
    let holds = |names: usize| filter(names, 1).matches(d().to_doc_buf().doc()).unwrap();
    assert!(holds(85) && holds(120) && holds(170));
    assert!(!holds(84) && !holds(171));
}

#[test]
fn bits_are_compared_by_the_bytes_of_a_mask() {
    let bytes = |bytes: &[u8]| Value::Binary(document::Binary { subtype: 0, bytes: bytes.to_vec() });
    let mask = |operator: &str, mask: &[u8]| doc! {"a": doc! {operator: bytes(mask)}};
    script(vec![
        (
            mask("$bitsAllSet", &[5, 0, 0]),
            vec![doc! {"a": 7}, doc! {"a": bytes(&[5])}, doc! {"a": -1}],
            vec![doc! {"a": 4}, doc! {"a": bytes(&[0, 5])}, doc! {"a": "x"}],
        ),
        (mask("$bitsAllSet", &[0; 9]), vec![doc! {"a": 0}], vec![doc! {"a": 0.5}]),
        (mask("$bitsAllSet", &[0, 0, 0, 0, 0, 0, 0, 0, 1]), vec![doc! {"a": -1}], vec![doc! {"a": i64::MAX}]),
        (
            mask("$bitsAllClear", &[0, 1]),
            vec![doc! {"a": 255}, doc! {"a": bytes(&[9])}],
            vec![doc! {"a": 256}],
        ),
        (mask("$bitsAnySet", &[3]), vec![doc! {"a": 2}], vec![doc! {"a": 4}]),
        (mask("$bitsAnyClear", &[3, 0]), vec![doc! {"a": 2}, doc! {"a": bytes(&[])}], vec![doc! {"a": 3}]),
    ]);
    let shown = render::node(matcher(mask("$bitsAnySet", &[3, 1])).unwrap().root());
    assert!(format!("{shown:?}").contains("[Int64(0), Int64(1), Int64(8)]"), "{shown:?}");
    let long = matcher(mask("$bitsAnySet", &vec![0xFF; 1 << 20])).unwrap();
    assert!(units_of(&long, doc! {"a": bytes(&[])}) > (1 << 20) / 128);
}

/// Otherwise a filter of many tests looks at its deadline once for all of them.
#[test]
fn what_a_test_goes_through_counts_as_work() {
    const MANY: i32 = 200_000;
    let units = |filter: Document, d: Document| units_of(&matcher(filter).unwrap(), d);
    let d = || doc! {"x": numbers(MANY)};
    assert!(units(doc! {"x": {"$size": MANY - 1}}, d()) > i64::from(MANY) / 32);
    assert!(units(doc! {"x": {"$size": 1}}, d()) < 100, "no more are counted than would be too many");
    assert!(units(doc! {"x.y": 1}, d()) > i64::from(MANY) / 32);
    let text = || doc! {"s": "a".repeat(MANY as usize)};
    assert!(units(doc! {"s": {"$lt": "Z"}}, text()) > i64::from(MANY) / 512);
    assert!(units(doc! {"s": {"$in": ["a", "b", "c", "d", "e", "f"]}}, text()) > i64::from(MANY) / 256);
    let types = matcher(doc! {"x": {"$type": vec![Value::from("int"); 1000]}}).unwrap();
    let Node::Leaf(Leaf { test: Test::Type(types), .. }) = types.root() else { panic!() };
    assert_eq!(types.tags, [0x10]);
}

/// Each of them would be looked for among all the others.
#[test]
fn a_schema_of_many_names_is_asked_of_a_document_of_many_fields() {
    const MANY: usize = 100_000;
    let names = || (0..MANY).map(|i| format!("f{i}"));
    let required = || Value::Array(names().map(Value::from).collect());
    let properties: Document = names().map(|name| (name, Value::Document(doc! {"enum": [1, 2.5]}))).collect();
    let dependencies: Document =
        names().take(1000).map(|name| (name, Value::Array(vec![Value::from("f0")]))).collect();
    let schema = doc! {
        "required": required(), "properties": properties, "dependencies": dependencies, "additionalProperties": false,
    };
    let filter = matcher(doc! {"$jsonSchema": schema}).unwrap();
    let wide = |value: Value| -> Document { names().map(|name| (name, value.clone())).collect() };
    assert!(filter.matches(wide(Value::Double(1.0)).to_doc_buf().doc()).unwrap());
    assert!(!filter.matches(wide(Value::from(2)).to_doc_buf().doc()).unwrap());
    let mut twice = required();
    if let Value::Array(list) = &mut twice {
        list.push(Value::from("f7"));
    }
    assert_eq!(error(doc! {"$jsonSchema": {"required": twice}}).0, 9);
    let any = doc! {"anyOf": vec![Value::Document(doc! {"bsonType": "string"}); 1000]};
    let of_items = matcher(doc! {"$jsonSchema": {"properties": {"x": {"items": any}}}}).unwrap();
    assert!(units_of(&of_items, doc! {"x": numbers(10)}) > 1000);
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
