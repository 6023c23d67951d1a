use super::*;
use crate::ParseContext;
use document::{doc, key_string};

fn index(name: &str, key: Document) -> IndexInfo {
    IndexInfo { name: name.into(), key, ..IndexInfo::default() }
}
fn filter(d: Document) -> Matcher {
    Matcher::parse(d.to_doc_buf().doc(), &ParseContext::at(0)).unwrap()
}
fn planned(f: Document, sort: Option<Document>, indexes: &[IndexInfo]) -> Plan {
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
            format!("{} {}", scan.index, scan.bounds.iter().map(text).collect::<Vec<_>>().join("; "))
        }
        other => format!("{other:?}"),
    }
}

/// What the filter means for the bounds of an index on a, printed as explain does.
#[test]
fn predicates_become_bounds() {
    let a = [index("a_1", doc! {"a": 1})];
    let script = [
        (doc! {"a": 5}, "a_1 a: [5, 5]"),
        (doc! {"a": {"$gt": 5}}, "a_1 a: (5, inf]"),
        (doc! {"a": {"$lte": 5}}, "a_1 a: [-inf, 5]"),
        (doc! {"a": {"$gt": 1, "$lt": 5}}, "a_1 a: (1, 5)"),
        (doc! {"a": {"$gt": 9, "$lt": 5}}, "a_1 a: "),
        (doc! {"a": {"$gte": "x"}}, "a_1 a: [\"x\", {})"),
        (doc! {"a": {"$in": [3, 1, 2]}}, "a_1 a: [1, 1] [2, 2] [3, 3]"),
        (doc! {"a": Value::Null}, "a_1 a: [null, null]"),
        (doc! {"a": {"$ne": 5}}, "a_1 a: [MinKey, 5) (5, MaxKey]"),
        (doc! {"a": {"$regex": "^ab"}}, "a_1 a: [\"ab\", \"ac\") [/^ab/, /^ab/]"),
        (doc! {"a": {"$regex": "^ab?"}}, "a_1 a: [\"a\", \"b\") [/^ab?/, /^ab?/]"),
        (doc! {"a": {"$regex": "ab"}}, "a_1 a: [\"\", {}) [/ab/, /ab/]"),
        (doc! {"a": {"$exists": false}}, "a_1 a: [null, null]"),
        (doc! {"a": {"$gt": Value::MinKey}}, "a_1 a: (MinKey, MaxKey]"),
        (doc! {"a": [1, 2]}, "a_1 a: [1, 1] [[ 1, 2 ], [ 1, 2 ]]"),
    ];
    for (f, expected) in script {
        let text = format!("{f:?}");
        assert_eq!(bounds_of(&planned(f, None, &a)), expected, "{text}");
    }
}

#[test]
fn multikey_bounds_are_not_intersected() {
    let mut a = index("a_1", doc! {"a": 1});
    a.multikey = true;
    let plan = planned(doc! {"a": {"$gt": 1, "$lt": 5}}, None, std::slice::from_ref(&a));
    assert_eq!(bounds_of(&plan), "a_1 a: [-inf, 5)");
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
fn the_longest_equality_prefix_wins_and_exact_bounds_leave_the_filter() {
    let indexes =
        [index("a_1", doc! {"a": 1}), index("a_1_b_1", doc! {"a": 1, "b": 1}), index("b_1", doc! {"b": 1})];
    let plan = planned(doc! {"a": 1, "b": {"$gt": 2}, "c": 3}, None, &indexes);
    assert_eq!(bounds_of(&plan), "a_1_b_1 a: [1, 1]; b: (2, inf]");
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
fn sorts_are_provided_forward_backward_and_after_equalities() {
    let indexes = [index("a_1_b_1", doc! {"a": 1, "b": 1})];
    let p = planned(doc! {}, Some(doc! {"a": -1, "b": -1}), &indexes);
    let Plan::Index { scan, .. } = &p else { panic!("{p:?}") };
    assert_eq!(scan.direction, Direction::Backward);
    assert!(!planned(doc! {"a": 1}, Some(doc! {"b": 1}), &indexes).needs_sort());
    assert!(!planned(doc! {"a": 1}, Some(doc! {"a": -1, "b": 1}), &indexes).needs_sort());
    assert!(planned(doc! {"a": {"$in": [1, 2]}}, Some(doc! {"b": 1}), &indexes).needs_sort());
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
    let p = ask(Hint::Natural(Direction::Backward)).unwrap();
    assert!(matches!(p, Plan::CollScan { direction: Direction::Backward, .. }));
}
