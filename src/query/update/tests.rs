//! Updates: results, differences and refusals.

use super::*;
use document::{array, doc};

fn ctx() -> QueryContext {
    QueryContext::at(1000)
}
fn change(old: Document, u: impl Into<Value>) -> Result<Option<Document>> {
    change_with(old, u, None, &[])
}
fn change_with(
    old: Document,
    u: impl Into<Value>,
    position: Option<usize>,
    filters: &[Document],
) -> Result<Option<Document>> {
    match Update::parse(&u.into(), filters, &ctx())?.apply(old.to_doc_buf().doc(), position, false)? {
        Outcome::NoOp => Ok(None),
        Outcome::Changed(new) => Ok(Some(new.to_document())),
    }
}
fn changed(old: Document, u: Document) -> Document {
    change(old, u).unwrap().expect("a change")
}
fn code(old: Document, u: impl Into<Value>) -> i32 {
    change(old, u).unwrap_err().code
}

#[test]
fn fields_are_set_in_place_and_new_ones_in_the_order_of_their_names() {
    assert_eq!(
        changed(doc! {"_id": 1, "b": 1, "z": 2}, doc! {"$set": {"y": 1, "b": 5, "a": 2}}),
        doc! {"_id": 1, "b": 5, "z": 2, "a": 2, "y": 1}
    );
    assert_eq!(changed(doc! {"_id": 1}, doc! {"$set": {"a.b.c": 1}}), doc! {"_id": 1, "a": {"b": {"c": 1}}});
    assert_eq!(
        changed(doc! {"a": [1]}, doc! {"$set": {"a.3": 4}}),
        doc! {"a": [1, Value::Null, Value::Null, 4]}
    );
    assert_eq!(changed(doc! {"a": 1, "b": 2}, doc! {"$unset": {"a": ""}}), doc! {"b": 2});
    assert_eq!(
        changed(
            doc! {"a": 1, "b": 2, "c": 3, "d": 4},
            doc! {"$unset": {"c": 1}, "$set": {"e": 5, "a": "long enough"}, "$inc": {"d": 1}}
        ),
        doc! {"a": "long enough", "b": 2, "d": 5, "e": 5}
    );
    assert_eq!(changed(doc! {"a": [1, 2]}, doc! {"$unset": {"a.0": ""}}), doc! {"a": [Value::Null, 2]});
    assert_eq!(
        changed(doc! {"a": {"b": 1}, "c": 2}, doc! {"$rename": {"a.b": "d.e"}}),
        doc! {"a": {}, "c": 2, "d": {"e": 1}}
    );
}

#[test]
fn nothing_changes_is_no_op() {
    for u in [
        doc! {"$set": {"a": 1}},
        doc! {"$inc": {"a": 0}},
        doc! {"$unset": {"x.y": 1}},
        doc! {"$max": {"a": 0}},
        doc! {"$rename": {"x": "_id"}},
    ] {
        assert_eq!(change(doc! {"_id": 1, "a": 1}, u).unwrap(), None);
    }
}

#[test]
fn numbers_keep_or_widen_their_type() {
    assert_eq!(changed(doc! {"a": 1}, doc! {"$inc": {"a": 2, "b": 3}}), doc! {"a": 3, "b": 3});
    assert_eq!(changed(doc! {"a": i32::MAX}, doc! {"$inc": {"a": 1}}), doc! {"a": i32::MAX as i64 + 1});
    assert_eq!(changed(doc! {"a": 2}, doc! {"$mul": {"a": 1.5, "b": 2}}), doc! {"a": 3.0, "b": 0});
    assert_eq!(code(doc! {"_id": 1, "a": i64::MAX}, doc! {"$inc": {"a": 1}}), 2);
    let error = change(doc! {"_id": 1, "a": "x"}, doc! {"$inc": {"a": 1}}).unwrap_err();
    assert_eq!(error.code, 14);
    assert_eq!(
        error.message,
        "Cannot apply $inc to a value of non-numeric type. {_id: 1} has the field 'a' of non-numeric type string"
    );
    assert_eq!(changed(doc! {"a": 13}, doc! {"$bit": {"a": {"and": 10}}}), doc! {"a": 8});
}

#[test]
fn arrays_are_pushed_pulled_and_popped() {
    assert_eq!(changed(doc! {}, doc! {"$push": {"a": 1}}), doc! {"a": [1]});
    let each = doc! {"$push": {"a": {"$each": [5, 1], "$sort": -1, "$slice": 3}}};
    assert_eq!(changed(doc! {"a": [3, 4]}, each), doc! {"a": [5, 4, 3]});
    let at = doc! {"$push": {"a": {"$each": [9], "$position": -1}}};
    assert_eq!(changed(doc! {"a": [1, 2]}, at), doc! {"a": [1, 9, 2]});
    assert_eq!(
        changed(doc! {"a": [1]}, doc! {"$addToSet": {"a": {"$each": [1.0, 2, 2]}}}),
        doc! {"a": [1, 2]}
    );
    assert_eq!(changed(doc! {"a": [1, 5, 9]}, doc! {"$pull": {"a": {"$gt": 4}}}), doc! {"a": [1]});
    assert_eq!(
        changed(doc! {"a": [{"b": 1, "c": 2}, {"b": 2}]}, doc! {"$pull": {"a": {"b": 1}}}),
        doc! {"a": [{"b": 2}]}
    );
    assert_eq!(changed(doc! {"a": [1, 2, 1]}, doc! {"$pullAll": {"a": [1]}}), doc! {"a": [2]});
    assert_eq!(changed(doc! {"a": [1, 2]}, doc! {"$pop": {"a": -1}}), doc! {"a": [2]});
}

#[test]
fn positions_are_the_matched_every_or_filtered_elements() {
    let old = || doc! {"_id": 1, "a": [{"x": 1}, {"x": 2}, {"x": 3}]};
    let got = change_with(old(), doc! {"$set": {"a.$.x": 9}}, Some(1), &[]).unwrap().unwrap();
    assert_eq!(got, doc! {"_id": 1, "a": [{"x": 1}, {"x": 9}, {"x": 3}]});
    assert_eq!(
        changed(old(), doc! {"$inc": {"a.$[].x": 1}}),
        doc! {"_id": 1, "a": [{"x": 2}, {"x": 3}, {"x": 4}]}
    );
    let got = change_with(old(), doc! {"$set": {"a.$[e].x": 0}}, None, &[doc! {"e.x": {"$gte": 2}}])
        .unwrap()
        .unwrap();
    assert_eq!(got, doc! {"_id": 1, "a": [{"x": 1}, {"x": 0}, {"x": 0}]});
    assert_eq!(code(old(), doc! {"$set": {"a.$.x": 9}}), 2);
    assert_eq!(code(old(), doc! {"$set": {"a.$[e].x": 9}}), 2);
    let unused = change_with(old(), doc! {"$set": {"b": 1}}, None, &[doc! {"e": 1}]);
    assert_eq!(unused.unwrap_err().code, 9);
}

#[test]
fn bad_updates_have_the_real_codes() {
    let old = || doc! {"_id": 1, "a": 5};
    assert_eq!(code(old(), doc! {"$set": {"a": 1, "a.b": 1}}), 40);
    assert_eq!(code(old(), doc! {"$set": {"a": 1}, "$inc": {"a": 1}}), 40);
    assert_eq!(code(old(), doc! {"$set": {"_id": 2}}), 66);
    assert_eq!(code(old(), doc! {"_id": 2}), 66);
    assert_eq!(code(old(), doc! {"$unset": {"_id": 1}}), 66);
    assert_eq!(code(old(), doc! {"$foo": {"a": 1}}), 9);
    assert_eq!(code(old(), doc! {"$set": 1}), 9);
    assert_eq!(code(old(), doc! {"$set": {"": 1}}), 56);
    assert_eq!(code(old(), doc! {"b": 1, "$set": {"a": 1}}), 52);
    let error = change(old(), doc! {"$set": {"a.b": 1}}).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (28, "Cannot create field 'b' in element {a: 5}"));
    assert_eq!(code(old(), array![{"$match": {}}]), 72);
}

#[test]
fn replacements_keep_the_id_in_front() {
    assert_eq!(change(doc! {"_id": 1, "a": 1}, doc! {"b": 2}).unwrap().unwrap(), doc! {"_id": 1, "b": 2});
    assert_eq!(
        change(doc! {"_id": 1, "a": 1}, doc! {"b": 2, "_id": 1}).unwrap().unwrap(),
        doc! {"_id": 1, "b": 2}
    );
}

#[test]
fn pipelines_compute_from_the_document() {
    let u = array![{"$set": {"c": "$a", "d.e": 1}}, {"$unset": "a"}];
    assert_eq!(change(doc! {"_id": 1, "a": 7}, u).unwrap().unwrap(), doc! {"_id": 1, "c": 7, "d": {"e": 1}});
    let u = array![{"$replaceWith": {"x": "$a"}}];
    assert_eq!(change(doc! {"_id": 1, "a": 7}, u).unwrap().unwrap(), doc! {"_id": 1, "x": 7});
}

#[test]
fn upserts_start_from_the_equalities_of_the_filter() {
    let upsert = |filter: Document, u: Value| {
        let m = Matcher::parse(filter.to_doc_buf().doc(), &ctx()).unwrap();
        Update::parse(&u, &[], &ctx()).unwrap().upsert_document(&m).map(|d| d.to_document())
    };
    let got = upsert(
        doc! {"a": 1, "b.c": {"$eq": 2}, "d": {"$gt": 3}, "_id": 9},
        doc! {"$set": {"x": 1}, "$setOnInsert": {"y": 2}, "$inc": {"a": 1}}.into(),
    );
    assert_eq!(got.unwrap(), doc! {"_id": 9, "a": 2, "b": {"c": 2}, "x": 1, "y": 2});
    assert_eq!(upsert(doc! {"_id": 4, "a": 1}, doc! {"b": 1}.into()).unwrap(), doc! {"_id": 4, "b": 1});
    assert_eq!(
        upsert(doc! {"$and": [{"a": 1}, {"a": 2}]}, doc! {"$set": {"b": 1}}.into()).unwrap_err().code,
        54
    );
    assert_eq!(upsert(doc! {"_id": 1}, doc! {"$set": {"_id": 2}}.into()).unwrap_err().code, 66);
}

#[test]
fn only_an_upsert_that_inserts_may_set_a_field_whose_name_begins_with_a_dollar() {
    let m = Matcher::parse(doc! {"_id": 1}.to_doc_buf().doc(), &ctx()).unwrap();
    for path in ["$hotel", "$hotel.price"] {
        let u = Update::parse(&doc! {"$set": {"a": 1, path: 2}}.into(), &[], &ctx()).unwrap();
        let inserted = u.upsert_document(&m).unwrap().to_document();
        assert!(inserted.contains_key("$hotel"), "{inserted:?}");
        assert_eq!(u.apply(doc! {"_id": 1}.to_doc_buf().doc(), None, false).unwrap_err().code, 52);
    }
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);
impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }
    fn value(&mut self, depth: u32) -> Value {
        match self.roll(if depth == 0 { 3 } else { 6 }) {
            0 => Value::Int32(self.roll(3) as i32),
            1 => Value::from("a string that is somewhat long"),
            2 => Value::Int64(self.roll(3) as i64),
            3 => Value::Array((0..self.roll(4)).map(|_| self.value(depth - 1)).collect()),
            _ => Value::Document(self.document(depth - 1)),
        }
    }
    fn document(&mut self, depth: u32) -> Document {
        let mut d = Document::new();
        for name in ["c", "a", "d", "b", "e"] {
            if self.roll(2) == 0 {
                d.push(name, self.value(depth));
            }
        }
        if self.roll(6) == 0 {
            d.0.reverse();
        }
        d
    }
}

#[test]
fn splicing_and_the_tree_give_the_same_document() {
    let mut dice = Dice(5);
    for _ in 0..3000 {
        let old = dice.document(1).to_doc_buf();
        let mut u = Document::new();
        let mut names = vec!["a", "b", "c", "d", "e", "f"];
        for operator in ["$set", "$unset", "$inc", "$push", "$setOnInsert", "$max"] {
            let name = names.remove(dice.roll(names.len() as u64) as usize);
            let argument = if operator == "$inc" { Value::Int32(1) } else { dice.value(1) };
            if dice.roll(2) == 0 {
                u.push(operator, [(name.to_string(), argument)].into_iter().collect::<Document>());
            }
        }
        if u.is_empty() {
            continue;
        }
        let mut update = Update::parse(&Value::Document(u.clone()), &[], &ctx()).unwrap();
        let fast = update.apply(old.doc(), None, false);
        let Kind::Operators(o) = &mut update.kind else { panic!() };
        o.flat = false;
        assert_eq!(fast, update.apply(old.doc(), None, false), "{u:?} on {old:?}");
    }
}

#[test]
fn many_values_are_compared_as_few_are() {
    let many = array![1.0, Value::Int64(2), "b", doc! {"x": 3.0}, 7, Value::Null, 7.0];
    assert_eq!(
        changed(doc! {"a": [1, 2, doc! {"x": 3}]}, doc! {"$addToSet": {"a": {"$each": many.clone()}}}),
        doc! {"a": [1, 2, doc! {"x": 3}, "b", 7, Value::Null]}
    );
    assert_eq!(
        changed(
            doc! {"a": [1, 2, 5, doc! {"x": 3}, doc! {"x": 4}, "b", "c"]},
            doc! {"$pullAll": {"a": many}}
        ),
        doc! {"a": [5, doc! {"x": 4}, "c"]}
    );
}

#[test]
fn updates_of_long_arrays_can_be_interrupted() {
    use document::meter::{OVERRUN, Oversight, bounded, within};
    let many = |from: i32| Value::Array((from..from + 30_000).map(Value::Int32).collect());
    let old = doc! {"_id": 1, "a": many(0)}.to_doc_buf();
    for u in [
        doc! {"$addToSet": {"a": {"$each": many(30_000)}}},
        doc! {"$addToSet": {"a": {"$each": [-1, -2]}}},
        doc! {"$pullAll": {"a": many(30_000)}},
        doc! {"$pull": {"a": -1}},
        doc! {"$push": {"a": {"$each": many(30_000), "$sort": -1}}},
    ] {
        let update = Update::parse(&u.clone().into(), &[], &ctx()).unwrap();
        let ended = within(&mut Oversight::default(), || bounded(1, || update.apply(old.doc(), None, false)));
        assert_eq!(ended.err().map(|e| e.code), Some(OVERRUN), "{:?}", u.keys().next());
    }
}

#[test]
fn a_stage_sets_many_fields_as_stages_set_few() {
    let old = doc! { "_id": 1, "a": 1, "b": { "c": 1 }, "d": [{ "e": 1 }, 2], "gone": 1, "last": 1 };
    let mut fields = doc! {
        "a": 2, "b.c": 5, "b.x": 6, "d.e": 7, "gone": "$missing", "none": "$missing", "new.y": 1, "new.z": 2, "a2.b": { "c": 1 },
    };
    (0..30).for_each(|i| fields.push(format!("f{i}"), i));
    let whole = array![{ "$set": fields.clone() }];
    let few = |part: &[(String, Value)]| Value::from(doc! { "$set": Document(part.to_vec()) });
    let parts = Value::Array(fields.0.chunks(5).map(few).collect());
    let changed = change(old.clone(), whole).unwrap().unwrap();
    assert_eq!(changed.get("d"), Some(&array![{ "e": 7 }, { "e": 7 }]));
    assert_eq!(Some(changed), change(old, parts).unwrap());
}

#[test]
fn positions_and_names_are_set_in_one_order_however_they_are_mixed() {
    let names = ["9", "10", "1a", "$x", "-", "a", "01", "1b", "2", "100", "9z", "0"];
    let paths: Vec<path::UpdatePath> =
        names.iter().map(|n| path::UpdatePath { text: (*n).to_string(), steps: Vec::new() }).collect();
    let is_before = |a: &path::UpdatePath, b: &path::UpdatePath| a.order(b) == std::cmp::Ordering::Less;
    for a in &paths {
        for b in &paths {
            assert_eq!(a.order(b), b.order(a).reverse(), "{a:?} {b:?}");
            for c in paths.iter().filter(|c| is_before(a, b) && is_before(b, c)) {
                assert!(is_before(a, c), "{a:?} {b:?} {c:?}");
            }
        }
    }
    let mixed = (0..60).map(|i| (if i % 2 == 0 { format!("{i}") } else { format!("{i}a") }, Value::Int32(i)));
    let set = changed(doc! {}, doc! { "$set": Document(mixed.collect()) });
    assert_eq!(set.len(), 60);
    assert_eq!(set.keys().nth(30), Some("11a"), "positions first, then names as text");
}

#[test]
fn a_value_that_is_set_below_each_element_is_counted_as_often_as_it_is_copied() {
    use document::meter::{OVERRUN, Oversight, bounded, within};
    let elements = |n: usize| Value::Array(vec![Value::Document(doc! {}); n]);
    let u = array![{ "$set": { "x.a": "$big" } }];
    assert_eq!(code(doc! { "x": elements(1000), "big": "b".repeat(1 << 20) }, u.clone()), 10334);
    let many = doc! { "_id": 1, "x": elements(30_000), "big": 1 }.to_doc_buf();
    let update = Update::parse(&u, &[], &ctx()).unwrap();
    let ended = within(&mut Oversight::default(), || bounded(1, || update.apply(many.doc(), None, false)));
    assert_eq!(ended.err().map(|e| e.code), Some(OVERRUN));
}

/// Units of work that `f` is counted for.
fn units(f: impl FnOnce()) -> i64 {
    use document::meter::{Oversight, spent, within};
    within(&mut Oversight::default(), || {
        f();
        spent()
    })
}

#[test]
fn each_of_many_fields_is_found_without_looking_through_the_others() {
    use document::meter::{OVERRUN, Oversight, bounded, within};
    const MANY: i32 = 20_000;
    let fields = |prefix: &str, suffix: &str, value: &dyn Fn(i32) -> Value| {
        Document((0..MANY).map(|i| (format!("{prefix}{i}{suffix}"), value(i))).collect())
    };
    let number = |i: i32| Value::Int32(i);
    let old = fields("f", "", &number).to_doc_buf();
    let renames = doc! { "$rename": fields("f", "", &|i| Value::from(format!("g{i}"))) };
    let update = Update::parse(&renames.into(), &[], &ctx()).unwrap();
    let work = units(|| {
        let Outcome::Changed(new) = update.apply(old.doc(), None, false).unwrap() else { panic!() };
        assert_eq!(new.to_document(), fields("g", "", &number));
    });
    assert!(work < 1_000_000, "{work}");
    let ended = within(&mut Oversight::default(), || bounded(1, || update.apply(old.doc(), None, false)));
    assert_eq!(ended.err().map(|e| e.code), Some(OVERRUN));

    let below = doc! { "$set": fields("d", ".x", &number) };
    let update = Update::parse(&below.into(), &[], &ctx()).unwrap();
    let work = units(|| {
        let Outcome::Changed(new) = update.apply(old.doc(), None, false).unwrap() else { panic!() };
        assert_eq!(new.doc().iter().count(), 2 * MANY as usize);
    });
    assert!(work < 1_000_000, "{work}");
}

#[test]
fn many_renames_do_what_few_do() {
    let old = doc! { "_id": 1, "a": { "b": 1, "c": 2 }, "d": 3, "e": 4, "last": 5 };
    let mut renames = doc! { "a.b": "d.x", "e": "a.y", "d.z": "none" };
    let few = |renames: &Document| change(old.clone(), doc! { "$rename": renames.clone() });
    let refused = few(&renames).unwrap_err();
    (0..20).for_each(|i| renames.push(format!("missing{i}"), format!("m{i}")));
    assert_eq!(few(&renames).unwrap_err(), refused, "d is no document");
    let mut renames = doc! { "a.b": "n.x", "e": "a.y", "d": "n.z" };
    let expected = doc! { "_id": 1, "a": { "c": 2, "y": 4 }, "last": 5, "n": { "x": 1, "z": 3 } };
    assert_eq!(few(&renames).unwrap(), Some(expected.clone()));
    (0..20).for_each(|i| renames.push(format!("missing{i}"), format!("m{i}")));
    assert_eq!(few(&renames).unwrap(), Some(expected));
}

#[test]
fn an_upsert_of_many_fields_is_counted_and_finds_each_without_looking_through_the_others() {
    use document::meter::{OVERRUN, Oversight, bounded, within};
    let fields =
        |prefix: &str| Document((0..20_000).map(|i| (format!("{prefix}{i}"), Value::Int32(i))).collect());
    let filter = Matcher::parse(fields("f.").to_doc_buf().doc(), &ctx()).unwrap();
    let update = Update::parse(&doc! { "$set": fields("g") }.into(), &[], &ctx()).unwrap();
    let work = units(|| {
        let new = update.upsert_document(&filter).unwrap();
        assert_eq!(new.doc().get_document("f").map(|f| f.iter().count()), Some(20_000));
        assert_eq!(new.doc().iter().count(), 20_001);
    });
    assert!(work < 1_000_000, "{work}");
    let ended = within(&mut Oversight::default(), || bounded(1, || update.upsert_document(&filter)));
    assert_eq!(ended.err().map(|e| e.code), Some(OVERRUN));
}
