//! Keys of documents, definitions and their errors.

use document::{DocBuf, Document, Error, Value, array, codes, doc};

use super::keys::for_each_key;
use super::*;
use crate::{Collection, CollectionMeta, InsertPlan};

fn spec(document: Document) -> IndexSpec {
    IndexSpec::parse(&document, &no_partial_indexes).unwrap()
}

fn keys(spec: &IndexSpec, document: Document) -> document::Result<(Value, bool)> {
    let document = document.to_doc_buf();
    let mut keys = Vec::new();
    let met = for_each_key(spec, document.doc(), &mut |components| {
        let components: Vec<Value> = components.iter().map(|v| v.to_value()).collect();
        keys.push(match components.as_slice() {
            [one] => one.clone(),
            _ => Value::Array(components),
        });
        Ok(())
    })?;
    Ok((Value::Array(keys), met.multikey))
}

#[test]
fn arrays_give_a_key_for_each_element_and_missing_values_are_null() {
    let cases = [
        (doc! { "a": 1 }, doc! { "a": 5 }, array![5], false),
        (doc! { "a": 1 }, doc! {}, array![Value::Null], false),
        (doc! { "a": 1 }, doc! { "a": [1, 2] }, array![1, 2], true),
        (doc! { "a": 1 }, doc! { "a": [] }, array![Value::Undefined], true),
        (doc! { "a": 1 }, doc! { "a": [[1, 2], 3] }, array![[1, 2], 3], true),
        (
            doc! { "a.b": 1 },
            doc! { "a": [{ "b": 1 }, { "b": [2, 3] }, 4] },
            array![1, 2, 3, Value::Null],
            true,
        ),
        (doc! { "a.b": 1 }, doc! { "a": [] }, array![Value::Null], true),
        (doc! { "a.b": 1 }, doc! { "a": 3 }, array![Value::Null], false),
        (doc! { "a.0": 1 }, doc! { "a": [7, 8] }, array![7], false),
        (doc! { "a.1.b": 1 }, doc! { "a": [7, { "b": 9 }] }, array![9], false),
        (doc! { "a.2": 1 }, doc! { "a": [7, { "2": 9 }] }, array![Value::Null, 9], true),
        (
            doc! { "a.b": 1, "a.c": 1 },
            doc! { "a": [{ "b": 1, "c": 2 }, { "b": 3 }] },
            array![[1, 2], [3, Value::Null]],
            true,
        ),
        (doc! { "a": 1, "b": 1 }, doc! { "a": [1, 2], "b": 0 }, array![[1, 0], [2, 0]], true),
    ];
    for (key, document, expected, multikey) in cases {
        let found = keys(&spec(doc! { "key": key.clone() }), document.clone()).unwrap();
        assert_eq!(found, (expected, multikey), "{key:?} of {document:?}");
    }
}

#[test]
fn a_sparse_index_leaves_out_a_key_without_any_value() {
    let one = spec(doc! { "key": { "a": 1 }, "sparse": true });
    assert_eq!(keys(&one, doc! {}).unwrap().0, array![]);
    assert_eq!(keys(&one, doc! { "a": Value::Null }).unwrap().0, array![Value::Null]);
    let below = spec(doc! { "key": { "a.b": 1 }, "sparse": true });
    assert_eq!(keys(&below, doc! { "a": [{ "b": 1 }, { "c": 1 }] }).unwrap().0, array![1]);
    let two = spec(doc! { "key": { "a": 1, "b": 1 }, "sparse": true });
    assert_eq!(keys(&two, doc! { "b": 1 }).unwrap().0, array![[Value::Null, 1]]);
    assert_eq!(keys(&two, doc! { "c": 1 }).unwrap().0, array![]);
}

#[test]
fn what_cannot_be_indexed_is_refused() {
    let two = spec(doc! { "key": { "a": 1, "b": 1 } });
    let error = keys(&two, doc! { "a": [1], "b": [2] }).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (171, "cannot index parallel arrays [b] [a]"));
    let hashed = spec(doc! { "key": { "a": "hashed" } });
    assert_eq!(keys(&hashed, doc! { "a": [1] }).unwrap_err().code, 16766);
    let positional = spec(doc! { "key": { "a.0": 1 } });
    assert_eq!(keys(&positional, doc! { "a": [{ "0": 1 }] }).unwrap_err().code, 16746);
}

fn refusal(key: Document) -> (i32, String) {
    let error: Error = IndexSpec::parse(&doc! { "key": key }, &no_partial_indexes).unwrap_err();
    (error.code, error.message)
}

#[test]
fn key_patterns_are_checked_with_the_real_texts() {
    let cannot = |text: &str| (codes::CANNOT_CREATE_INDEX, text.to_string());
    assert_eq!(refusal(doc! {}), cannot("Index keys cannot be an empty object."));
    assert_eq!(refusal(doc! { "a": 0 }), cannot("Values in the index key pattern cannot be 0."));
    assert_eq!(refusal(doc! { "a": f64::NAN }), cannot("Values in the index key pattern cannot be NaN."));
    let type_text = "Values in v:2 index key pattern cannot be of type bool. Only numbers > 0, numbers < 0, and \
                     strings are allowed.";
    assert_eq!(refusal(doc! { "a": true }), cannot(type_text));
    assert_eq!(refusal(doc! { "a": "nope" }), cannot("Unknown index plugin 'nope'"));
    assert_eq!(refusal(doc! { "a..b": 1 }), cannot("Index keys cannot contain an empty field."));
    let dollar = "Index key contains an illegal field name: field name starts with '$'.";
    assert_eq!(refusal(doc! { "a.$b": 1 }), cannot(dollar));
    assert_eq!(refusal(doc! { "a": "hashed", "b": "hashed" }).0, 31303);
    assert_eq!(refusal(doc! { "$**.a": 1 }).0, codes::CANNOT_CREATE_INDEX);
    assert_eq!(refusal(doc! { "a.$**": 1, "b.$**": 1 }).0, 7246201);
    assert_eq!(refusal(doc! { "_id": -1 }).0, codes::BAD_VALUE);
    assert!(validate_key_pattern(&doc! { "a.$id": 1, "b": -1.5, "c": "hashed" }).is_ok());
}

#[test]
fn names_are_generated_and_shown_with_the_options() {
    let made = spec(doc! { "key": { "a": 1, "b.c": -1.0, "d": "hashed" }, "hidden": true, "sparse": false });
    assert_eq!(made.name(), "a_1_b.c_-1_d_hashed");
    let shown = doc! {
        "v": 2, "key": { "a": 1, "b.c": -1.0, "d": "hashed" }, "name": "a_1_b.c_-1_d_hashed", "hidden": true
    };
    assert_eq!(made.document(), &shown);
}

#[test]
fn definitions_conflict_as_in_the_real_server() {
    let existing = spec(doc! { "key": { "a": 1 }, "expireAfterSeconds": 5 });
    let against = |wanted: Document| conflict(&spec(wanted), &existing).map_err(|e| e.code);
    assert_eq!(against(doc! { "key": { "a": 1.0 }, "expireAfterSeconds": 5 }), Ok(SpecConflict::Identical));
    assert_eq!(against(doc! { "key": { "b": 1 } }), Ok(SpecConflict::None));
    assert_eq!(against(doc! { "key": { "a": 1 }, "name": "x", "unique": true }), Ok(SpecConflict::None));
    assert_eq!(against(doc! { "key": { "b": 1 }, "name": "a_1" }), Err(codes::INDEX_KEY_SPECS_CONFLICT));
    assert_eq!(against(doc! { "key": { "a": 1 }, "unique": true }), Err(codes::INDEX_KEY_SPECS_CONFLICT));
    assert_eq!(against(doc! { "key": { "a": 1 } }), Err(codes::INDEX_OPTIONS_CONFLICT));
    let renamed = doc! { "key": { "a": 1 }, "expireAfterSeconds": 5, "name": "x" };
    assert_eq!(against(renamed), Err(codes::INDEX_OPTIONS_CONFLICT));
}

#[test]
fn arrays_are_told_by_field_and_name() {
    let met = |key: Document, document: Document| {
        let spec = spec(doc! { "key": key.clone(), "name": "i" });
        let met = for_each_key(&spec, document.to_doc_buf().doc(), &mut |_| Ok(())).unwrap();
        key.keys().enumerate().map(|(at, path)| met.arrays.on(at, path).join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(met(doc! { "a": 1, "b.c": 1 }, doc! { "a": 1, "b": [{ "c": [2] }] }), ["", "b b.c"]);
    assert_eq!(met(doc! { "a.b": 1, "a.c": 1 }, doc! { "a": [] }), ["a", "a"]);
    let places = doc! { "n": 1, "p.q": "2dsphere", "t": 1 };
    assert_eq!(met(places, doc! { "p": [{ "q": [1, 2] }], "t": [7] }), ["", "p", "t"]);
}

#[test]
fn a_place_that_cannot_be_indexed_is_shown_as_the_real_server_shows_documents() {
    let refused = |kind: &str, place: Value| {
        let document = doc! { "_id": 1, "at": place };
        keys(&spec(doc! { "key": { "at": kind } }), document).unwrap_err().message
    };
    assert_eq!(
        refused("2d", array![200, 0]),
        "point not in interval of [ -180, 180 ] :: caused by :: { _id: 1, at: [ 200, 0 ] }"
    );
    let shown = refused("2dsphere", array![200, 0]);
    assert!(shown.starts_with("Can't extract geo keys: { _id: 1, at: [ 200, 0 ] }  "), "{shown}");
}

/// A collection with an index.
fn indexed(key: Document) -> Collection {
    let mut collection = Collection::new(CollectionMeta::new("t.c", [1; 16]));
    let spec = doc! { "key": key, "name": "i", "2dsphereIndexVersion": 3 };
    collection.create_index(IndexSpec::parse(&spec, &no_partial_indexes).unwrap()).unwrap();
    collection
}

fn numbers(count: i32) -> Value {
    Value::Array((0..count).map(Value::from).collect())
}

const OFFERED: Keys = Keys::Offered { places_max: 100_000 };

/// What a document that is offered is refused for.
fn offered(key: Document, document: &DocBuf) -> Result<(), i32> {
    let plan = &mut InsertPlan::default();
    indexed(key).prepare_insert_into(document.doc(), OFFERED, &Computed, plan).map_err(|e| e.code)
}

#[test]
fn a_document_is_refused_for_its_keys_when_it_is_offered_and_never_once_it_was_accepted() {
    let key = doc! { "a": 1, "x": 1 };
    let large = doc! { "_id": 1, "a": "a".repeat(1 << 20), "x": numbers(70) }.to_doc_buf();
    assert_eq!(offered(key.clone(), &large), Err(codes::CANNOT_BUILD_INDEX_KEYS));
    let mut collection = indexed(key);
    let plan = collection.prepare_insert(large.doc()).unwrap();
    let record = collection.insert(plan, large.doc());
    let less = doc! { "_id": 1, "a": "a", "x": 1 }.to_doc_buf();
    let plan = collection.prepare_update(record, less.doc()).unwrap();
    collection.update(record, plan, less.doc());
    let more = collection.prepare_update_of(record, (less.doc(), large.doc()), OFFERED, &Computed);
    assert_eq!(more.err().map(|e| e.code), Some(codes::CANNOT_BUILD_INDEX_KEYS));
    let plan = collection.prepare_update(record, large.doc()).unwrap();
    collection.update(record, plan, large.doc());
    let again = |name: &str| {
        IndexSpec::parse(&doc! { "key": { "x": 1, "a": 1 }, "name": name }, &no_partial_indexes).unwrap()
    };
    let refused = collection.add_index(again("offered"), OFFERED);
    assert_eq!(refused.err().map(|e| e.code), Some(codes::CANNOT_BUILD_INDEX_KEYS));
    assert!(collection.create_index(again("accepted")).unwrap());
    assert!(collection.delete(record));
}

#[test]
fn places_and_terms_are_limited_in_number_as_on_the_real_server() {
    let place = |count| doc! { "at": [1, 2], "x": numbers(count) }.to_doc_buf();
    let places = doc! { "at": "2dsphere", "x": 1 };
    assert_eq!(offered(places.clone(), &place(100_000)), Ok(()));
    assert_eq!(offered(places, &place(100_001)), Err(codes::CANNOT_BUILD_INDEX_KEYS));
    let few = Keys::Offered { places_max: 10 };
    let (of_few, plan) = (indexed(doc! { "at": "2dsphere", "x": 1 }), &mut InsertPlan::default());
    assert!(of_few.prepare_insert_into(place(10).doc(), few, &Computed, plan).is_ok());
    let refused = of_few.prepare_insert_into(place(11).doc(), few, &Computed, plan);
    assert_eq!(refused.map_err(|e| e.code), Err(codes::CANNOT_BUILD_INDEX_KEYS));
    assert_eq!(offered(doc! { "x": 1 }, &place(100_001)), Ok(()), "of plain fields there are any number");
    let words = |count: i32| {
        let words: Vec<String> = (0..count).map(|i| format!("w{i:07}")).collect();
        doc! { "s": words.join(" ") }.to_doc_buf()
    };
    let text = || doc! { "s": "text" };
    assert_eq!(offered(text(), &words(100_000)), Ok(()));
    assert_eq!(offered(text(), &words(150_000)), Err(16733));
    assert_eq!(offered(text(), &words(400_001)), Err(16732));
    assert!(indexed(text()).prepare_insert(words(150_000).doc()).is_ok());
}
