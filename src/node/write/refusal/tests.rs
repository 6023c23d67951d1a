//! Each operator and keyword with the description of a document that it refuses.

use super::*;
use document::array;

fn info_of(validator: Document, document: Document) -> Document {
    info(validator.to_doc_buf().doc(), document.to_doc_buf().doc(), &QueryContext::default())
}

fn why(validator: Document, document: Document) -> Document {
    info_of(validator, document).get_document("details").cloned().unwrap_or_default()
}

/// The rules that a document breaks of a schema.
fn rules(schema: Document, document: Document) -> Value {
    let d = why(doc! { "$jsonSchema": schema }, document);
    d.get("schemaRulesNotSatisfied").cloned().unwrap_or(Value::Document(d))
}

/// The rules that a value breaks of the schema of its property.
fn rules_of_value(schema: Document, value: impl Into<Value>) -> Value {
    let all = rules(doc! { "properties": { "v": schema } }, doc! { "v": value.into() });
    let property = all.as_array().unwrap()[0].as_document().unwrap().clone();
    let property = property.get_array("propertiesNotSatisfied").unwrap()[0].as_document().unwrap().clone();
    property.get("details").cloned().unwrap()
}

#[test]
fn one_clause_says_what_it_compared() {
    let validator = doc! { "a": { "$type": "int" } };
    assert_eq!(
        why(validator.clone(), doc! { "a": "s" }),
        doc! {
            "operatorName": "$type", "specifiedAs": validator.clone(), "reason": "type did not match",
            "consideredValue": "s", "consideredType": "string",
        }
    );
    assert_eq!(why(validator, doc! {}).get_str("reason"), Some("field was missing"));
}

#[test]
fn elements_of_arrays_are_considered_ten_at_most() {
    let equal = why(doc! { "a": 1 }, doc! { "a": [2, 3] });
    assert_eq!(equal.get("consideredValues"), Some(&array![2, 3]));
    assert_eq!(why(doc! { "a": 1 }, doc! { "a": [] }).get("consideredValues"), Some(&array![]));
    let through = why(doc! { "a.b": 1 }, doc! { "a": [{ "b": 2 }, { "b": [3, 4] }] });
    assert_eq!(through.get("consideredValues"), Some(&array![2, 3, 4]));
    let whole = why(doc! { "a": { "$size": 1 } }, doc! { "a": [2, 3] });
    assert_eq!(whole.get("consideredValue"), Some(&array![2, 3]));
    let long: Vec<Value> = (0..11).map(Value::Int32).collect();
    let long = why(doc! { "a": 99 }, doc! { "a": Value::Array(long) });
    assert_eq!(long.get_array("consideredValues").map(Vec::len), Some(10));
    assert_eq!(long.get_bool("consideredValuesTruncated"), Some(true));
}

#[test]
fn operators_of_one_type_name_it() {
    let d = why(doc! { "a": { "$mod": [2, 0] } }, doc! { "a": ["x", true] });
    assert_eq!(d.get_str("reason"), Some("type did not match"));
    assert_eq!(d.get("consideredTypes"), Some(&array!["bool", "string"]));
    assert_eq!(d.get("expectedTypes"), Some(&array!["decimal", "double", "int", "long"]));
    let d = why(doc! { "a": { "$size": 2 } }, doc! { "a": 1 });
    assert_eq!(d.get_str("expectedType"), Some("array"));
    let d = why(doc! { "a": { "$mod": [2, 0] } }, doc! { "a": 3 });
    assert_eq!(d.get_str("reason"), Some("$mod did not evaluate to expected remainder"));
}

#[test]
fn several_clauses_name_those_that_fail() {
    let d = why(doc! { "a": { "$gt": 1, "$lt": 5 }, "b": { "$exists": true } }, doc! { "a": 7 });
    let failed = d.get_array("clausesNotSatisfied").unwrap();
    let at = |i: usize| failed[i].as_document().unwrap();
    assert_eq!((d.get_str("operatorName"), failed.len()), (Some("$and"), 2));
    assert_eq!((at(0).get("index"), at(1).get("index")), (Some(&Value::Int64(1)), Some(&Value::Int64(2))));
    assert_eq!(at(1).get_path("details.reason").and_then(Value::as_str), Some("path does not exist"));
}

#[test]
fn below_negations_the_clauses_that_hold_are_told() {
    assert_eq!(
        why(doc! { "$nor": [{ "a": 1 }, { "b": 1 }] }, doc! { "a": 2, "b": 1 }),
        doc! { "operatorName": "$nor", "clausesSatisfied": [{ "index": 1i64, "details": {
            "operatorName": "$eq", "specifiedAs": { "b": 1 }, "reason": "comparison succeeded", "consideredValue": 1,
        } }] }
    );
    assert_eq!(
        why(doc! { "a": { "$not": { "$gt": 5, "$lt": 10 } } }, doc! { "a": 7 })
            .get_path("details.clausesSatisfied")
            .and_then(Value::as_array)
            .map(Vec::len),
        Some(2)
    );
    let d = why(doc! { "$nor": [{ "$jsonSchema": { "required": ["a"] } }] }, doc! { "a": 1 });
    let inner = &d.get_array("clausesSatisfied").unwrap()[0];
    let reason = inner.as_document().unwrap().get_path("details.reason").cloned();
    assert_eq!(reason, Some(Value::from("schema matched")));
    assert_eq!(
        why(doc! { "a": { "$exists": false } }, doc! { "a": 1 }).get_str("reason"),
        Some("path does exist")
    );
    assert_eq!(
        why(doc! { "a": { "$ne": 1 } }, doc! { "a": 1 }).get_str("reason"),
        Some("comparison succeeded")
    );
}

#[test]
fn an_expression_tells_its_result() {
    let validator = doc! { "$expr": { "$subtract": ["$a", "$b"] } };
    assert_eq!(
        why(validator.clone(), doc! { "a": 2, "b": 2 }),
        doc! {
            "operatorName": "$expr", "specifiedAs": validator, "reason": "expression did not match",
            "expressionResult": 0,
        }
    );
    assert_eq!(why(doc! { "$expr": "$gone" }, doc! {}).get("expressionResult"), None);
}

#[test]
fn places_that_are_none_are_told_from_places_elsewhere() {
    let validator = || doc! { "at": { "$geoWithin": { "$box": [[0, 0], [1, 1]] } } };
    let elsewhere = why(validator(), doc! { "at": [5, 5] });
    assert!(elsewhere.get_str("reason").unwrap().starts_with("none of the considered geometries"));
    let none = why(validator(), doc! { "at": "here" });
    assert_eq!(none.get_str("reason"), Some("could not find a valid geometry at the given path"));
}

#[test]
fn a_schema_names_rules_and_properties_in_the_parsers_order() {
    let schema = doc! {
        "bsonType": "object", "title": "person", "required": ["name", "age"],
        "properties": {
            "age": { "bsonType": "int", "minimum": 0, "description": "in years" }, "name": { "bsonType": "string" },
        },
    };
    assert_eq!(
        why(doc! { "$jsonSchema": schema }, doc! { "age": -1 }),
        doc! {
            "operatorName": "$jsonSchema", "title": "person",
            "schemaRulesNotSatisfied": [
                { "operatorName": "properties", "propertiesNotSatisfied": [{
                    "propertyName": "age", "description": "in years", "details": [{
                        "operatorName": "minimum", "specifiedAs": { "minimum": 0 }, "reason": "comparison failed",
                        "consideredValue": -1,
                    }],
                }] },
                { "operatorName": "required", "specifiedAs": { "required": ["name", "age"] }, "missingProperties": ["name"] },
            ],
        }
    );
    let other = why(doc! { "$jsonSchema": { "bsonType": "array" } }, doc! {});
    assert_eq!(other.get_str("reason"), Some("expression always evaluates to false"));
}

#[test]
fn a_value_of_another_type_breaks_the_rule_of_its_type_alone() {
    assert_eq!(
        rules_of_value(doc! { "bsonType": "string", "pattern": "^S", "minLength": 2 }, 1),
        array![{
            "operatorName": "bsonType", "specifiedAs": { "bsonType": "string" }, "reason": "type did not match",
            "consideredValue": 1, "consideredType": "int",
        }]
    );
}

#[test]
fn rules_of_arrays_tell_lengths_duplicates_and_items() {
    assert_eq!(
        rules_of_value(doc! { "maxItems": 1, "uniqueItems": true }, array![1, 2, 1]),
        array![
            { "operatorName": "maxItems", "specifiedAs": { "maxItems": 1 },
              "reason": "array did not match specified length", "consideredValue": [1, 2, 1], "numberOfItems": 3 },
            { "operatorName": "uniqueItems", "specifiedAs": { "uniqueItems": true }, "reason": "found a duplicate item",
              "consideredValue": [1, 2, 1], "duplicatedValue": 1 },
        ]
    );
    let of_type = |value: &str| {
        doc! {
            "operatorName": "bsonType", "specifiedAs": { "bsonType": "int" }, "reason": "type did not match",
            "consideredValue": value, "consideredType": "string",
        }
    };
    assert_eq!(
        rules_of_value(doc! { "items": { "bsonType": "int", "title": "number" } }, array![1, "x", "y"]),
        array![{
            "operatorName": "items", "title": "number", "reason": "At least one item did not match the sub-schema",
            "itemIndex": 1i64, "details": [of_type("x")],
        }]
    );
    let listed = doc! { "items": [{ "bsonType": "int" }, { "bsonType": "int" }], "additionalItems": false };
    assert_eq!(
        rules_of_value(listed, array![1, "x", 3]),
        array![
            { "operatorName": "items", "details": [{ "itemIndex": 1i64, "details": [of_type("x")] }] },
            { "operatorName": "additionalItems", "specifiedAs": { "additionalItems": false },
              "reason": "found additional items", "additionalItems": [3] },
        ]
    );
    let listed = doc! { "items": [{}], "additionalItems": { "bsonType": "int" } };
    assert_eq!(
        rules_of_value(listed, array![1, 2, "x"]),
        array![{
            "operatorName": "additionalItems", "reason": "At least one additional item did not match the sub-schema",
            "itemIndex": 2i64, "details": [of_type("x")],
        }]
    );
}

#[test]
fn rules_of_fields_tell_their_names() {
    let schema = doc! {
        "properties": { "_id": {}, "a": {} }, "patternProperties": { "^S": { "bsonType": "int" } },
        "additionalProperties": false, "maxProperties": 1,
        "dependencies": { "a": ["b", "c"], "c": { "required": ["d"] } },
    };
    assert_eq!(
        rules(schema, doc! { "a": 1, "Sum": "x", "c": 1 }),
        array![
            { "operatorName": "additionalProperties", "specifiedAs": { "additionalProperties": false },
              "additionalProperties": ["c"] },
            { "operatorName": "patternProperties", "details": [{
                "propertyName": "Sum", "regexMatched": "^S", "details": [{
                    "operatorName": "bsonType", "specifiedAs": { "bsonType": "int" }, "reason": "type did not match",
                    "consideredValue": "x", "consideredType": "string",
                }],
            }] },
            { "operatorName": "maxProperties", "specifiedAs": { "maxProperties": 1 },
              "reason": "specified number of properties was not satisfied", "numberOfProperties": 3 },
            { "operatorName": "dependencies", "failingDependencies": [
                { "conditionalProperty": "a", "missingProperties": ["b"] },
                { "conditionalProperty": "c", "details": [{
                    "operatorName": "required", "specifiedAs": { "required": ["d"] }, "missingProperties": ["d"],
                }] },
            ] },
        ]
    );
    let d = rules(doc! { "additionalProperties": { "enum": [1] } }, doc! { "a": 1, "b": 2 });
    let first = d.as_array().unwrap()[0].as_document().unwrap();
    assert_eq!(first.get_str("failingProperty"), Some("b"));
    assert_eq!(first.get_str("reason"), Some("at least one additional property did not match the subschema"));
}

#[test]
fn more_properties_are_named_only_where_there_are_some() {
    let named = |additional: bool, document: Document| -> Vec<String> {
        let schema = doc! { "properties": { "age": { "minimum": 0 } }, "additionalProperties": additional };
        let d = why(doc! { "$jsonSchema": schema }, document);
        let rules = d.get_array("schemaRulesNotSatisfied").unwrap();
        rules.iter().filter_map(|r| Some(r.as_document()?.get_str("operatorName")?.to_string())).collect()
    };
    assert_eq!(named(true, doc! { "age": -1, "more": 1 }), ["properties"]);
    assert_eq!(named(false, doc! { "age": -1 }), ["properties"]);
    assert_eq!(named(false, doc! { "age": 1, "more": 1 }), ["additionalProperties"]);
    assert_eq!(named(false, doc! { "age": -1, "more": 1 }), ["properties", "additionalProperties"]);
}

#[test]
fn composed_schemas_tell_which_of_them_fail() {
    let (a, b) = (doc! { "required": ["a"] }, doc! { "required": ["b"], "title": "second" });
    let needs = |name: &str| {
        doc! { "operatorName": "required", "specifiedAs": { "required": [name] }, "missingProperties": [name] }
    };
    assert_eq!(
        rules(doc! { "allOf": [a.clone(), b.clone()] }, doc! { "a": 1 }),
        array![{ "operatorName": "allOf", "schemasNotSatisfied": [
            { "index": 1i64, "title": "second", "details": [needs("b")] },
        ] }]
    );
    for keyword in ["anyOf", "oneOf"] {
        assert_eq!(
            rules(doc! { keyword: [a.clone(), b.clone()] }, doc! {}),
            array![{ "operatorName": keyword, "schemasNotSatisfied": [
                { "index": 0i64, "details": [needs("a")] },
                { "index": 1i64, "title": "second", "details": [needs("b")] },
            ] }]
        );
    }
    assert_eq!(
        rules(doc! { "oneOf": [a.clone(), b, {}] }, doc! { "a": 1 }),
        array![{
            "operatorName": "oneOf", "reason": "more than one subschema matched", "matchingSchemaIndexes": [0, 2],
        }]
    );
    assert_eq!(
        rules(doc! { "not": a }, doc! { "a": 1 }),
        array![{ "operatorName": "not", "reason": "child expression matched" }]
    );
}

#[test]
fn a_large_document_is_described_without_its_values() {
    let large = "x".repeat(5 << 20);
    let validator = doc! { "a": 1, "b": { "$exists": false }, "c": { "$in": [1] }, "d": { "$gt": 1 } };
    let document = doc! { "_id": 7, "a": large.as_str(), "b": 1, "c": large.as_str(), "d": large.as_str() };
    let info = info_of(validator, document);
    assert_eq!((info.get_i64("failingDocumentId"), info.get_bool("truncated")), (Some(7), Some(true)));
    assert!(info.to_vec().len() < 2000);
    let clauses = info.get_path("details.clausesNotSatisfied").and_then(Value::as_array).unwrap();
    assert_eq!(clauses.len(), 4);
    let mut many = doc! { "_id": 7 };
    for i in 0..1_300_000 {
        many.push(format!("f{i}"), Value::Null);
    }
    let info = info_of(doc! { "$jsonSchema": { "additionalProperties": false } }, many);
    assert_eq!(info.get_str("note"), Some("detailed error was too large"));
}

#[test]
fn a_deep_description_is_cut() {
    let mut schema = doc! { "required": ["x"] };
    let mut value = doc! {};
    for _ in 0..60 {
        schema = doc! { "properties": { "a": schema } };
        value = doc! { "a": value };
    }
    let info = info_of(doc! { "$jsonSchema": schema }, value);
    assert_eq!(info.get_str("reason"), Some("generated error was too deeply nested"));
}

#[test]
fn strings_compare_under_the_collation_of_the_validator() {
    let context = QueryContext::collated(
        &document::Collation::of_document(&doc! { "locale": "en", "strength": 2 }).unwrap(),
    );
    let validator = doc! { "a": "x", "b": "x" };
    let d = info(validator.to_doc_buf().doc(), doc! { "a": "X", "b": "y" }.to_doc_buf().doc(), &context);
    let failed = d.get_path("details.clausesNotSatisfied").and_then(Value::as_array).unwrap();
    assert_eq!(failed.len(), 1);
}
