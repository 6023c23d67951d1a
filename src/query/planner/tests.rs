//! Plans: bounds and the choice between indexes. What each predicate becomes is in `scripts`.

use super::*;
use crate::QueryContext;
use document::{doc, key_string};

fn index(name: &str, key: Document) -> IndexInfo {
    IndexInfo { name: name.into(), key, ..IndexInfo::default() }
}
pub(super) fn filter(d: Document) -> Matcher {
    Matcher::parse(d.to_doc_buf().doc(), &QueryContext::at(0)).unwrap()
}
pub(super) fn planned(f: Document, sort: Option<Document>, indexes: &[IndexInfo]) -> Plan {
    let filter = filter(f);
    let sort = sort.map(|s| SortSpec::parse(s.to_doc_buf().doc()).unwrap());
    plan(&Request { sort: sort.as_ref(), ..Request::new(&filter, indexes) }).unwrap()
}
fn bounds_of(plan: &Plan) -> String {
    match plan.access() {
        Plan::Index { scan, .. } => {
            let text = |(k, v): (&str, &Value)| {
                let list: Vec<&str> = v.as_array().unwrap().iter().map(|b| b.as_str().unwrap()).collect();
                format!("{k}: {}", list.join(" "))
            };
            format!("{} {}", scan.index, scan.shown_bounds().iter().map(text).collect::<Vec<_>>().join("; "))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn multikey_bounds_are_not_intersected() {
    let mut a = index("a_1", doc! {"a": 1});
    a.multikey = true;
    let plan = planned(doc! {"a": {"$gt": 1, "$lt": 5}}, None, std::slice::from_ref(&a));
    assert_eq!(bounds_of(&plan), "a_1 a: [-inf.0, 5)");
    let Plan::Index { filter, .. } = &plan else { panic!() };
    assert!(
        filter.matches(doc! {"a": [0, 9]}.to_doc_buf().doc()).unwrap(),
        "the other bound stays in the filter"
    );
    assert!(!filter.matches(doc! {"a": 0}.to_doc_buf().doc()).unwrap());
    a.key = doc! {"a.b": 1, "a.c": 1};
    let plan = planned(doc! {"a.b": 1, "a.c": 2}, None, &[a]);
    assert_eq!(bounds_of(&plan), "a_1 a.b: [1, 1]; a.c: [MinKey, MaxKey]");
}

#[test]
fn comparisons_of_expressions_bound_their_paths() {
    let a = index("a_1", doc! {"a": 1});
    let of = |e: Document, indexes: &[IndexInfo]| bounds_of(&planned(doc! {"$expr": e}, None, indexes));
    let on = |e: Document| of(e, std::slice::from_ref(&a));
    assert_eq!(on(doc! {"$eq": ["$a", 1]}), "a_1 a: [1, 1]");
    assert_eq!(on(doc! {"$eq": [{"$add": [1, 1]}, "$$ROOT.a"]}), "a_1 a: [2, 2]");
    let computed = on(doc! {"$gte": ["$a", {"$subtract": [{"$toLong": "$$NOW"}, 5]}]});
    assert!(computed.starts_with("a_1 a: [") && computed.contains("-5"), "{computed}");
    // Values of other types compare, too, and what is missing stands as null.
    assert_eq!(on(doc! {"$gt": ["$a", 1]}), "a_1 a: (1, MaxKey]");
    assert_eq!(on(doc! {"$gt": [1, "$a"]}), "a_1 a: [MinKey, 1)");
    assert_eq!(on(doc! {"$lte": ["$a", "x"]}), "a_1 a: [MinKey, \"x\"]");
    assert_eq!(on(doc! {"$lt": ["$a", (Value::Null)]}), "a_1 a: [MinKey, null]");
    assert_eq!(
        on(doc! {"$and": [{"$gte": ["$a", 1]}, {"$and": [{"$lt": ["$a", 5]}, "$b"]}]}),
        "a_1 a: [1, 5)"
    );
    // What need not hold, reads two paths, or may differ from one time to the other, says nothing.
    for silent in [
        doc! {"$or": [{"$eq": ["$a", 1]}, "$b"]},
        doc! {"$not": [{"$eq": ["$a", 1]}]},
        doc! {"$eq": ["$a", "$b"]},
        doc! {"$eq": ["$a", {"$rand": {}}]},
        doc! {"$eq": ["$a", {"$literal": [1]}]},
        doc! {"$eq": ["$a", {"$size": {"$range": [0, "$$NOW"]}}]},
        doc! {"$ne": ["$a", 1]},
        doc! {"$eq": ["$$ROOT", 1]},
    ] {
        assert!(on(silent.clone()).starts_with("CollScan"), "{silent:?}");
    }
    // The filter is still asked of what is found.
    let plan = planned(doc! {"$expr": {"$eq": ["$a", 1]}}, None, std::slice::from_ref(&a));
    let Plan::Index { filter, .. } = &plan else { panic!() };
    assert!(!filter.matches(doc! {"a": [1]}.to_doc_buf().doc()).unwrap());
    // An array is one value to an expression: its elements in the index say where a single value is, not how it compares.
    let multikey = IndexInfo { multikey: true, ..a.clone() };
    assert_eq!(of(doc! {"$eq": ["$a", 1]}, std::slice::from_ref(&multikey)), "a_1 a: [1, 1]");
    assert!(of(doc! {"$gt": ["$a", 1]}, std::slice::from_ref(&multikey)).starts_with("CollScan"));
    // What is missing is less than 1, and not in a sparse index.
    let sparse = IndexInfo { sparse: true, ..a.clone() };
    assert_eq!(of(doc! {"$gt": ["$a", 1]}, std::slice::from_ref(&sparse)), "a_1 a: (1, MaxKey]");
    assert!(of(doc! {"$lt": ["$a", 1]}, std::slice::from_ref(&sparse)).starts_with("CollScan"));
    assert!(of(doc! {"$gt": ["$a", (Value::MinKey)]}, std::slice::from_ref(&sparse)).starts_with("CollScan"));
    let partial =
        IndexInfo { partial_filter: Some(doc! {"a": {"$gt": 0}}.to_doc_buf()), ..index("p", doc! {"a": 1}) };
    assert!(of(doc! {"$eq": ["$a", 1]}, &[partial]).starts_with("CollScan"));
    // A position in a path is a name to an expression.
    let positioned = index("a.0_1", doc! {"a.0": 1});
    assert!(of(doc! {"$eq": ["$a.0", 1]}, &[positioned]).starts_with("CollScan"));
    let hashed = index("a_hashed", doc! {"a": "hashed"});
    assert!(of(doc! {"$eq": ["$a", 1]}, std::slice::from_ref(&hashed)).starts_with("a_hashed"));
    assert!(of(doc! {"$lt": ["$a", 1]}, &[hashed]).starts_with("CollScan"));
    let both = index("a_1_b_1", doc! {"a": 1, "b": 1});
    let eq_and_range = doc! {"$expr": {"$and": [{"$eq": ["$a", 1]}, {"$gt": ["$b", 5]}]}};
    assert_eq!(
        bounds_of(&planned(eq_and_range, Some(doc! {"b": 1}), &[both])),
        "a_1_b_1 a: [1, 1]; b: (5, MaxKey]"
    );
}

/// The array itself lies beside the extreme, and its only key does not.
#[test]
fn an_array_of_nothing_but_an_extreme_is_found_beside_it() {
    let mut a = index("a_1", doc! {"a": 1});
    let bounds = |operator: &str, extreme: Value, a: &IndexInfo| {
        bounds_of(&planned(doc! {"a": {operator: extreme}}, None, std::slice::from_ref(a)))
    };
    assert_eq!(bounds("$gt", Value::MinKey, &a), "a_1 a: (MinKey, MaxKey]");
    assert_eq!(bounds("$lt", Value::MaxKey, &a), "a_1 a: [MinKey, MaxKey)");
    a.multikey = true;
    for (operator, extreme) in [("$gt", Value::MinKey), ("$lt", Value::MaxKey)] {
        assert!(bounds(operator, extreme.clone(), &a).starts_with("CollScan"), "{operator} {extreme:?}");
    }
    assert_eq!(bounds("$lte", Value::MinKey, &a), "a_1 a: [MinKey, MinKey]");
    assert_eq!(bounds("$gte", Value::MaxKey, &a), "a_1 a: [MaxKey, MaxKey]");
}

#[test]
fn of_very_many_conjuncts_on_a_field_some_bound_it_and_all_are_asked() {
    const MANY: i32 = 50_000;
    let list: Vec<Value> = (0..MANY).map(Value::from).collect();
    let mut conjuncts = vec![Value::Document(doc! {"a": {"$in": list}})];
    conjuncts.extend((0..MANY).map(|_| Value::Document(doc! {"a": {"$type": "number"}})));
    let plan = planned(doc! {"$and": conjuncts}, None, &[index("a_1", doc! {"a": 1})]);
    let Plan::Index { scan, filter } = &plan else { panic!() };
    assert_eq!(scan.index, "a_1");
    assert_eq!(filter.root().conjuncts().len(), MANY as usize + 1);
    assert!(filter.matches(doc! {"a": MANY - 1}.to_doc_buf().doc()).unwrap());
    assert!(!filter.matches(doc! {"a": MANY}.to_doc_buf().doc()).unwrap());
}

#[test]
fn arrays_in_one_field_concern_no_other() {
    let mut both = index("t_1_tags_1", doc! {"t": 1, "tags": 1});
    both.multikey = true;
    both.arrays.note(1, 0);
    let plan = planned(doc! {"t": {"$gt": 1, "$lt": 5}}, Some(doc! {"t": -1}), std::slice::from_ref(&both));
    assert_eq!(bounds_of(&plan), "t_1_tags_1 t: (5, 1); tags: [MaxKey, MinKey]");
    assert!(!plan.needs_sort(), "{plan:?}");
    let Plan::Index { scan, filter } = &plan else { panic!("{plan:?}") };
    assert!(scan.repeats && filter.is_always_true());
    let sorted = |filter: Document, sort: Document, index: &IndexInfo| {
        !planned(filter, Some(sort), std::slice::from_ref(index)).needs_sort()
    };
    assert!(!sorted(doc! {"t": 1}, doc! {"tags": 1}, &both), "the least tag comes first, not the first key");
    both.key = doc! {"tags": 1, "t": 1};
    both.arrays = MultikeyPaths::default();
    both.arrays.note(0, 0);
    assert!(sorted(doc! {"tags": "x"}, doc! {"t": 1}, &both));
    assert!(!sorted(doc! {"tags": "x"}, doc! {"tags": 1, "t": 1}, &both));
    both.arrays = MultikeyPaths::default();
    assert!(!sorted(doc! {"tags": "x"}, doc! {"t": 1}, &both), "where the arrays are is not known");
}

#[test]
fn one_element_bounds_all_the_fields_below_it() {
    let mut below = index("i", doc! {"a.b": 1, "a.c": 1});
    below.multikey = true;
    (0..2).for_each(|field| below.arrays.note(field, 0));
    let bounds = |f: Document, index: &IndexInfo| bounds_of(&planned(f, None, std::slice::from_ref(index)));
    let one = doc! {"a": {"$elemMatch": {"b": 1, "c": {"$gt": 2}}}};
    assert_eq!(bounds(one.clone(), &below), "i a.b: [1, 1]; a.c: (2, inf.0]");
    let two = doc! {"$and": [{"a": {"$elemMatch": {"b": 1}}}, {"a": {"$elemMatch": {"c": 2}}}]};
    assert_eq!(bounds(two, &below), "i a.b: [1, 1]; a.c: [MinKey, MaxKey]");
    let beside = doc! {"a": {"$elemMatch": {"b": {"$gt": 1}}}, "a.c": 2};
    assert_eq!(bounds(beside, &below), "i a.b: (1, inf.0]; a.c: [MinKey, MaxKey]");
    // Of an array in the element two elements may be meant.
    below.key = doc! {"a.x.b": 1, "a.x.c": 1};
    let deeper = doc! {"a": {"$elemMatch": {"x.b": 1, "x.c": 2}}};
    assert_eq!(bounds(deeper.clone(), &below), "i a.x.b: [1, 1]; a.x.c: [2, 2]");
    (0..2).for_each(|field| below.arrays.note(field, 1));
    assert_eq!(bounds(deeper, &below), "i a.x.b: [1, 1]; a.x.c: [MinKey, MaxKey]");
}

#[test]
fn the_longest_equality_prefix_wins_and_exact_bounds_leave_the_filter() {
    let indexes =
        [index("a_1", doc! {"a": 1}), index("a_1_b_1", doc! {"a": 1, "b": 1}), index("b_1", doc! {"b": 1})];
    let plan = planned(doc! {"a": 1, "b": {"$gt": 2}, "c": 3}, None, &indexes);
    assert_eq!(bounds_of(&plan), "a_1_b_1 a: [1, 1]; b: (2, inf.0]");
    let Plan::Index { filter, .. } = &plan else { panic!() };
    assert_eq!(filter.leaves().map(|l| l.path.text.to_string()).collect::<Vec<_>>(), ["c"]);
}

#[test]
fn ranges_hold_exactly_the_keys_of_matching_values() {
    for key in [doc! {"a": 1, "b": -1}, doc! {"a": -1, "b": 1}] {
        let descending: Vec<bool> = key.iter().map(|(_, v)| v.as_i64() == Some(-1)).collect();
        let indexes = [index("i", key)];
        for f in [
            doc! {"a": 2, "b": {"$gt": 1, "$lte": 3}},
            doc! {"a": {"$in": [1, 3]}, "b": {"$lt": 2}},
            doc! {"a": {"$gte": 2}},
            doc! {"a": {"$gt": 0, "$lt": 4}, "b": 2},
        ] {
            let plan = planned(f.clone(), None, &indexes);
            let Plan::Index { scan, filter: rest } = &plan else { panic!("{plan:?}") };
            let whole = filter(f.clone());
            for a in 0..5 {
                for b in 0..5 {
                    let d = doc! {"a": a, "b": b}.to_doc_buf();
                    let k = key_string::encode(&[ValueRef::Int32(a), ValueRef::Int32(b)], &descending);
                    let hits = scan.ranges.iter().filter(|r| r.contains(&k)).count();
                    let half_open = scan
                        .ranges
                        .iter()
                        .filter(|r| r.start().is_some_and(|s| k >= s) && r.end().is_none_or(|e| k < e));
                    assert_eq!(hits, half_open.count());
                    assert!(hits <= 1, "ranges are disjoint");
                    let found = hits == 1 && rest.matches(d.doc()).unwrap();
                    assert_eq!(found, whole.matches(d.doc()).unwrap(), "{f:?} {a} {b}");
                }
            }
        }
    }
}

#[test]
fn a_long_list_is_a_range_for_each_value() {
    let indexes = [index("a_1_b_1", doc! {"a": 1, "b": 1})];
    let list = |n: i32| Value::Array((0..n).map(Value::Int32).collect());
    let ranges = |f: Document| match planned(f, None, &indexes) {
        Plan::Index { scan, .. } => scan.ranges.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(ranges(doc! {"a": {"$in": (list(5000))}}), 5000);
    assert_eq!(ranges(doc! {"a": 1, "b": {"$in": (list(5000))}}), 5000);
    assert_eq!(ranges(doc! {"a": {"$in": (list(5000))}, "b": 1}), 5000);
    // Where two lists would make too many, the first makes the ranges.
    assert_eq!(ranges(doc! {"a": {"$in": (list(5000))}, "b": {"$in": (list(2))}}), 5000);
}

#[test]
fn sorts_are_provided_forward_backward_and_after_equalities() {
    let indexes = [index("a_1_b_1", doc! {"a": 1, "b": 1})];
    let p = planned(doc! {}, Some(doc! {"a": -1, "b": -1}), &indexes);
    let Plan::Index { scan, .. } = &p else { panic!("{p:?}") };
    assert_eq!(scan.direction, Direction::Backward);
    assert!(!planned(doc! {"a": 1}, Some(doc! {"b": 1}), &indexes).needs_sort());
    assert!(!planned(doc! {"a": 1}, Some(doc! {"a": -1, "b": 1}), &indexes).needs_sort());
    assert!(!planned(doc! {"a": {"$in": [1, 2]}}, Some(doc! {"b": 1}), &indexes).needs_sort());
    assert!(planned(doc! {}, Some(doc! {"a": 1, "b": -1}), &indexes).needs_sort());
    assert!(planned(doc! {}, Some(doc! {"b": 1}), &indexes).needs_sort());
}

#[test]
fn sparse_and_partial_indexes_answer_only_what_they_hold() {
    let mut sparse = index("a_1", doc! {"a": 1});
    sparse.sparse = true;
    let sparse = [sparse];
    assert!(matches!(planned(doc! {"a": Value::Null}, None, &sparse), Plan::CollScan { .. }));
    assert!(matches!(planned(doc! {"a": 1}, None, &sparse), Plan::Index { .. }));
    assert!(planned(doc! {}, Some(doc! {"a": 1}), &sparse).needs_sort());
    let mut partial = index("a_1", doc! {"a": 1});
    partial.partial_filter = Some(doc! {"b": {"$gt": 5}}.to_doc_buf());
    let partial = [partial];
    assert!(matches!(planned(doc! {"a": 1}, None, &partial), Plan::CollScan { .. }));
    assert!(matches!(planned(doc! {"a": 1, "b": 7}, None, &partial), Plan::Index { .. }));
    assert!(matches!(planned(doc! {"a": 1, "b": {"$gt": 4}}, None, &partial), Plan::CollScan { .. }));
}

/// One of them suffices. Each branch of one was divided by the next one, twice as many for each.
#[test]
fn disjunctions_beside_one_another_are_not_multiplied() {
    let indexes = [index("_id_", doc! {"_id": 1}), index("a_1", doc! {"a": 1}), index("b_1", doc! {"b": 1})];
    let mut all: Vec<Value> = (0..60).map(|i| doc! {"$or": [{"s": i}, {"t": i}]}.into()).collect();
    all.push(doc! {"$or": [{"a": 1}, {"$or": [{"a": 2}, {"b": 3}], "s": 1}]}.into());
    let plan = planned(doc! {"$and": all}, None, &indexes);
    let Plan::Or(branches) = plan else { panic!("{plan:?}") };
    assert!(
        matches!(&branches[..], [Plan::Or(inner), Plan::Index { .. }] if inner.len() == 2),
        "{branches:?}"
    );
    assert_eq!(bounds_of(&branches[1]), "a_1 a: [1, 1]");
}

#[test]
fn one_id_is_looked_up_and_a_disjunction_is_a_union() {
    let indexes = [index("_id_", doc! {"_id": 1}), index("a_1", doc! {"a": 1})];
    assert!(matches!(planned(doc! {"_id": 7, "b": 1}, None, &indexes), Plan::IdHack { .. }));
    let p = planned(doc! {"$or": [{"a": 1}, {"_id": 2}]}, None, &indexes);
    assert!(matches!(&p, Plan::Or(branches) if branches.len() == 2), "{p:?}");
    let p = planned(doc! {"$or": [{"a": 1}, {"b": 2}]}, None, &indexes);
    assert!(matches!(p, Plan::CollScan { .. }), "{p:?}");
}

#[test]
fn hashed_indexes_answer_points() {
    let indexes = [index("a_hashed", doc! {"a": "hashed"})];
    let p = planned(doc! {"a": 5}, None, &indexes);
    let Plan::Index { scan, filter } = &p else { panic!("{p:?}") };
    let mut key = Vec::new();
    key_string::append_value(&mut key, &Value::Int64(document::hash::hash64_value(&Value::Int32(5))), false);
    assert!(scan.ranges[0].contains(&key));
    assert!(!filter.is_always_true(), "a hash does not prove equality");
    assert!(matches!(planned(doc! {"a": {"$gt": 5}}, None, &indexes), Plan::CollScan { .. }));
}

#[test]
fn a_hint_is_obeyed_or_refused() {
    let indexes = [index("a_1", doc! {"a": 1})];
    let f = filter(doc! {"b": 1});
    let ask = |hint: Hint| plan(&Request { hint: Some(&hint), ..Request::new(&f, &indexes) });
    assert!(matches!(ask(Hint::Name("a_1".into())).unwrap(), Plan::Index { .. }));
    assert!(matches!(ask(Hint::Key(doc! {"a": 1.0})).unwrap(), Plan::Index { .. }));
    assert_eq!(ask(Hint::Name("nope".into())).unwrap_err().code, 2);
    let mut partial = index("a_1", doc! {"a": 1});
    partial.partial_filter = Some(doc! {"b": {"$gt": 5}}.to_doc_buf());
    let restricted = [partial];
    let hint = Hint::Name("a_1".into());
    let p = plan(&Request { hint: Some(&hint), ..Request::new(&f, &restricted) }).unwrap();
    assert!(matches!(p, Plan::Index { .. }), "a hinted partial index answers with what it holds");
    let p = ask(Hint::Natural(Direction::Backward)).unwrap();
    assert!(matches!(p, Plan::CollScan { direction: Direction::Backward, .. }));
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);
impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }
    fn scalar(&mut self) -> Value {
        match self.roll(8) {
            0 => Value::Null,
            1 => Value::from("x"),
            2 => Value::Double(self.roll(4) as f64 + 0.5),
            _ => Value::Int32(self.roll(4) as i32),
        }
    }
    fn value(&mut self) -> Value {
        match self.roll(6) {
            0 => Value::Array((0..self.roll(3)).map(|_| self.scalar()).collect()),
            1 => Value::Array(vec![Value::Array(vec![self.scalar()])]),
            _ => self.scalar(),
        }
    }
    fn document(&mut self) -> Document {
        let mut d = Document::new();
        if self.roll(5) > 0 {
            d.push("a", self.value());
        }
        match self.roll(4) {
            0 => {}
            1 => d.push(
                "b",
                (0..self.roll(3)).map(|_| doc! {"c": self.value(), "d": self.scalar()}).collect::<Vec<_>>(),
            ),
            2 => d.push("b", doc! {"c": self.scalar(), "d": self.scalar()}),
            _ => d.push("b", self.scalar()),
        }
        d
    }
    fn condition(&mut self) -> Value {
        match self.roll(10) {
            0 => doc! {"$gt": self.scalar()}.into(),
            1 => doc! {"$lte": self.scalar()}.into(),
            2 => doc! {"$in": [self.scalar(), self.scalar()]}.into(),
            3 => doc! {"$ne": self.scalar()}.into(),
            4 => doc! {"$exists": self.roll(2) == 0}.into(),
            5 => doc! {"$gte": 1, "$lt": self.roll(5) as i32}.into(),
            6 => doc! {"$elemMatch": {"$gte": 1, "$lt": 3}}.into(),
            7 => doc! {"$not": {"$gt": 1}}.into(),
            8 => doc! {"$elemMatch": {"$elemMatch": {"$gte": 0}}}.into(),
            _ => self.value(),
        }
    }
    fn filter(&mut self) -> Document {
        let mut f = Document::new();
        for path in ["a", "b.c", "b.d"] {
            if self.roll(2) == 0 {
                f.push(path, self.condition());
            }
        }
        match self.roll(5) {
            0 => doc! {"$or": [f, {"a": self.condition()}]},
            1 => doc! {"$and": [f, {"a": self.condition()}]},
            2 => doc! {"b": {"$elemMatch": {"c": self.condition(), "d": 1}}},
            _ => f,
        }
    }
}

/// Has the index tell where these keys met arrays.
fn note_arrays(index: &mut IndexInfo, entries: &[document::path::IndexKeys<'_>]) {
    for (field, names) in entries.iter().flat_map(|keys| keys.multikey.iter().enumerate()) {
        names.iter().for_each(|name| index.arrays.note(field, *name));
    }
}

/// The contract of every plan: with the keys each document has in the index, ranges and remaining filter together find exactly the documents the
/// filter matches.
#[test]
fn a_plan_finds_exactly_what_a_scan_finds() {
    let mut dice = Dice(8);
    let keys = [
        doc! {"a": 1},
        doc! {"b.c": -1},
        doc! {"a": 1, "b.c": 1},
        doc! {"b.c": 1, "b.d": -1},
        doc! {"b.d": 1, "a": -1},
    ];
    for round in 0..8000 {
        let key = keys[round % keys.len()].clone();
        let docs: Vec<Document> = (0..6).map(|_| dice.document()).collect();
        let paths: Vec<&str> = key.keys().collect();
        let bytes: Vec<DocBuf> = docs.iter().map(|d| d.to_doc_buf()).collect();
        let Ok(entries) =
            bytes.iter().map(|d| document::path::index_keys(d.doc(), &paths)).collect::<Result<Vec<_>>>()
        else {
            continue;
        };
        let mut index = index("i", key.clone());
        index.multikey = entries.iter().any(|k| k.is_multikey());
        if round % 2 == 0 {
            note_arrays(&mut index, &entries);
        }
        index.sparse = round % 7 == 0;
        let text = dice.filter();
        let Ok(whole) = Matcher::parse(text.to_doc_buf().doc(), &QueryContext::at(0)) else { continue };
        let descending: Vec<bool> = key.iter().map(|(_, v)| v.as_i64() == Some(-1)).collect();
        let plan = plan(&Request::new(&whole, std::slice::from_ref(&index))).unwrap();
        for (d, k) in bytes.iter().zip(&entries) {
            let stored = !(index.sparse && k.all_missing());
            let encoded: Vec<Vec<u8>> =
                k.keys.iter().filter(|_| stored).map(|k| key_string::encode(k, &descending)).collect();
            let found = finds(&plan, d.doc(), &encoded);
            let expected = whole.matches(d.doc()).unwrap();
            assert_eq!(found, expected, "round {round}: {text:?} on {d:?} by {index:?}\n{plan:?}");
        }
    }
}

/// Planning for them would take minutes if every member were merged into those before it, or compared with every other.
#[test]
fn large_sets_are_put_in_order_once() {
    let set = |member: fn(i32) -> Value| (0..150_000).map(member).collect::<Vec<Value>>();
    let indexes = [IndexInfo { multikey: true, ..index("a_1", doc! {"a": 1}) }, index("b_1", doc! {"b": 1})];
    let pairs = set(|i| Value::Array(vec![Value::Int32(i), Value::Int32(0)]));
    let ranges = |filter: Document| match planned(filter, None, &indexes) {
        Plan::Index { scan, .. } => scan.ranges.len(),
        other => panic!("{other:?}"),
    };
    // Of each pair its first element, and itself.
    assert_eq!(ranges(doc! {"a": {"$in": pairs}}), 300_000);
    let (twos, threes) = (set(|i| Value::Int32(2 * i)), set(|i| Value::Int32(3 * i)));
    assert_eq!(ranges(doc! {"$and": [{"b": {"$in": twos}}, {"b": {"$in": threes}}]}), 50_000);
}

/// The plan of a filter, a sort and some indexes, all of them exact.
fn planned_by(filter: Document, sort: Document, keys: &[Document]) -> (Plan, Vec<IndexInfo>) {
    let indexes: Vec<IndexInfo> = keys.iter().map(|k| index(&format!("{k:?}"), k.clone())).collect();
    let filter = Matcher::parse(filter.to_doc_buf().doc(), &QueryContext::at(0)).unwrap();
    let sort = SortSpec::parse(sort.to_doc_buf().doc()).unwrap();
    let plan = plan(&Request { sort: Some(&sort), ..Request::new(&filter, &indexes) }).unwrap();
    (plan, indexes)
}

#[test]
fn values_before_the_sorted_field_become_scans_that_are_merged() {
    let keys = [doc! {"a": 1, "b": 1, "c": 1}];
    let branches = |filter: Document, sort: Document| match planned_by(filter, sort, &keys).0 {
        Plan::Merge { branches, .. } => branches.len(),
        _ => 0,
    };
    assert_eq!(branches(doc! {"a": {"$in": [1, 2, 3]}}, doc! {"b": 1}), 3);
    assert_eq!(branches(doc! {"a": {"$in": [1, 2]}, "b": {"$in": [3, 4]}}, doc! {"c": -1}), 4);
    assert_eq!(branches(doc! {"a": {"$in": [1, 2]}}, doc! {"b": 1, "c": -1}), 0, "no scan has that order");
    assert_eq!(branches(doc! {"a": {"$gt": 1}}, doc! {"b": 1}), 0, "a range is no value");
    assert_eq!(branches(doc! {"a": {"$in": [1, 2]}}, doc! {"a": 1, "b": 1}), 0, "one scan has it");
    let many: Vec<Value> = (0..201).map(Value::Int32).collect();
    assert_eq!(branches(doc! {"a": {"$in": (many)}}, doc! {"b": 1}), 0, "too many scans");
}

#[test]
fn branches_of_an_or_that_have_the_order_are_merged() {
    let keys = [doc! {"a": 1, "s": 1}, doc! {"b": 1, "s": 1}];
    let either = doc! {"$or": [{"a": 1}, {"b": 2, "x": 3}]};
    assert!(
        matches!(planned_by(either.clone(), doc! {"s": 1}, &keys).0, Plan::Merge { branches, .. } if branches.len() == 2)
    );
    assert!(planned_by(either, doc! {"x": 1}, &keys).0.needs_sort());
    let unordered = doc! {"$or": [{"a": 1}, {"b": {"$gt": 2}}]};
    assert!(planned_by(unordered, doc! {"s": 1}, &keys).0.needs_sort());
}

#[test]
fn a_merge_has_a_bounded_number_of_scans() {
    let keys = [doc! {"a": 1, "s": 1}];
    let merged = |branches: i32, values: i32| {
        let list =
            |branch: i32| -> Vec<Value> { (0..values).map(|v| Value::Int32(branch * values + v)).collect() };
        let either: Vec<Value> =
            (0..branches).map(|b| Value::Document(doc! {"a": {"$in": (list(b))}})).collect();
        match planned_by(doc! {"$or": (either)}, doc! {"s": 1}, &keys).0 {
            Plan::Merge { branches, .. } => branches.len(),
            plan => {
                assert!(plan.needs_sort());
                0
            }
        }
    };
    assert_eq!(merged(200, 1), 200);
    assert_eq!(merged(201, 1), 0);
    assert_eq!(merged(2, 100), 200);
    assert_eq!(merged(10, 100), 0);
}

#[test]
fn a_scan_covers_what_its_keys_tell() {
    let covered = |filter: Document, needed: &[&str], change: &dyn Fn(&mut IndexInfo)| {
        let (mut plan, mut indexes) =
            planned_by(filter, Document::new(), &[doc! {"a": 1, "b": -1, "c.d": 1}]);
        indexes.iter_mut().for_each(change);
        let needed: Vec<String> = needed.iter().map(|s| s.to_string()).collect();
        cover(&mut plan, &needed, &indexes);
        matches!(plan, Plan::Index { scan, .. } if !scan.covered.is_empty())
    };
    let as_is = |_: &mut IndexInfo| {};
    assert!(covered(doc! {"a": 1}, &["b"], &as_is));
    assert!(covered(doc! {"a": 1}, &[], &as_is));
    assert!(covered(doc! {"a": {"$gt": 1}, "b": {"$ne": 5}}, &["a"], &as_is));
    assert!(!covered(doc! {"a": 1}, &["_id", "a"], &as_is));
    assert!(!covered(doc! {"a": 1, "x": 1}, &["a"], &as_is), "the filter asks for more");
    assert!(covered(doc! {"a": 1}, &["c.d"], &as_is));
    assert!(!covered(doc! {"a": 1}, &["c"], &as_is), "more than the field within");
    let position = |i: &mut IndexInfo| i.key = doc! {"a": 1, "b": -1, "c.0": 1};
    assert!(!covered(doc! {"a": 1}, &["c.0"], &position), "the name of a field, or a position");
    let nested = |i: &mut IndexInfo| i.key = doc! {"a": 1, "b": -1, "b.d": 1};
    assert!(!covered(doc! {"a": 1}, &["b", "b.d"], &nested), "a document and what is in it");
    // Equal numbers of two types have one key.
    let mixed = |i: &mut IndexInfo| {
        i.kinds.note(1, ValueRef::Int32(1));
        i.kinds.note(1, ValueRef::Double(1.0));
    };
    assert!(!covered(doc! {"a": 1}, &["b"], &mixed));
    assert!(covered(doc! {"a": 1}, &["a"], &mixed));
}

#[test]
fn a_distinct_skips_behind_the_field_that_leads() {
    let skips = |filter: Document, path: &str| {
        let indexes = [index("i", doc! {"a": 1, "b": 1})];
        let filter = Matcher::parse(filter.to_doc_buf().doc(), &QueryContext::at(0)).unwrap();
        let wanted = Distinct { path: path.into(), ..Distinct::default() };
        match distinct(&Request::new(&filter, &indexes), &wanted) {
            Some(Plan::Index { scan, .. }) => scan.skips.map(|s| s.fields),
            _ => None,
        }
    };
    assert_eq!(skips(Document::new(), "a"), Some(1));
    assert_eq!(skips(doc! {"a": {"$gte": 3}}, "a"), Some(1));
    assert_eq!(skips(doc! {"a": 3}, "b"), Some(2));
    assert_eq!(skips(Document::new(), "b"), None);
    assert_eq!(skips(doc! {"b": 3}, "a"), None);
    let everything = filter(Document::new());
    let hashed = [index("i", doc! {"a": "hashed"})];
    let a = Distinct { path: "a".into(), ..Distinct::default() };
    assert!(distinct(&Request::new(&everything, &hashed), &a).is_none(), "one hash is of several values");
}

#[test]
fn a_group_by_one_field_skips_in_the_order_that_it_needs() {
    let plan = |order: Document, filter: Document, key: Document| {
        let filter = Matcher::parse(filter.to_doc_buf().doc(), &QueryContext::at(0)).unwrap();
        let orders = (!order.is_empty()).then(|| SortSpec::parse(order.to_doc_buf().doc()).unwrap());
        let wanted = Distinct { path: "a".into(), orders: orders.into_iter().collect(), grouped: true };
        match distinct(&Request::new(&filter, &[index("i", key)]), &wanted) {
            Some(Plan::Index { scan, .. }) => Some(scan.direction),
            _ => None,
        }
    };
    let (forward, backward) = (Some(Direction::Forward), Some(Direction::Backward));
    let everything = Document::new;
    assert_eq!(plan(everything(), everything(), doc! {"a": 1, "b": 1}), forward);
    assert_eq!(plan(doc! {"a": 1, "b": 1}, everything(), doc! {"a": 1, "b": 1}), forward);
    assert_eq!(plan(doc! {"a": -1, "b": -1}, everything(), doc! {"a": 1, "b": 1}), backward);
    assert_eq!(plan(doc! {"a": 1, "b": -1}, everything(), doc! {"a": 1, "b": 1}), None);
    assert_eq!(plan(doc! {"a": 1, "b": 1}, doc! {"c": 1}, doc! {"c": 1, "a": 1, "b": 1}), forward);
    assert_eq!(
        plan(doc! {"a": 1, "b": 1}, doc! {"b": 1}, doc! {"a": 1, "b": 1}),
        None,
        "the filter asks for more"
    );
}

fn finds(plan: &Plan, d: document::Doc<'_>, keys: &[Vec<u8>]) -> bool {
    match plan {
        Plan::Index { scan, filter } => {
            keys.iter().any(|k| scan.ranges.iter().any(|r| r.contains(k))) && filter.matches(d).unwrap()
        }
        Plan::CollScan { filter, .. } => filter.matches(d).unwrap(),
        Plan::Or(branches) => branches.iter().any(|b| finds(b, d, keys)),
        Plan::Eof => false,
        other => panic!("{other:?}"),
    }
}
