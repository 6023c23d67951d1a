//! A wildcard index as the indexes on single paths that it stands for.
//!
//! ```text
//! {"$**": 1}, filter {b: 5, c: {$gt: 1}}    →    {$_path: 1, b: 1} with $_path ["b", "b"]
//!                                                {$_path: 1, c: 1} with $_path ["c", "c"]
//! ```
//! Such an expansion is planned like any other index, with bounds on `$_path` that are given with it. It exists only for a path
//! whose predicate no document can meet without being in the index under that path: never for one that a missing value or
//! a whole document or array may meet.
//!
//! Where values may be documents (`{$exists: true}`), whose fields stand under longer paths, the expansion takes in
//! everything below the path. A name that is a number may be a position in an array, which is no part of an indexed path, so the
//! path without it is looked at too.

use super::bounds::{Interval, Intervals};
use super::candidates::Bound;
use super::{IndexInfo, WildcardInfo};
use crate::matcher::path::array_index;
use crate::matcher::{Comparison, Condition, Operand, Test};
use document::compare::canonical_type;
use document::{Document, Value, ValueRef};
use indexmap::IndexMap;

/// The field of a key pattern that stands for the path.
pub const PATH: &str = "$_path";

/// What sets an index on a path apart from an ordinary one.
#[derive(Clone, Debug)]
pub struct Expansion {
    /// The field the wildcard has become.
    pub path: String,
    /// Of `$_path`.
    pub paths: Intervals,
    /// The bounds of the path itself decide nothing: the values lie under other paths too.
    pub below: bool,
    /// A document may have several keys in the range.
    pub repeats: bool,
}

/// More paths than this, from positions in arrays, are not looked at.
const PATHS_MAX: usize = 64;
/// An index stands for no more than so many, however many paths a filter speaks of: each is planned by itself.
const EXPANSIONS_MAX: usize = 64;

/// The indexes that `index` stands for in a filter with these bounds.
pub(super) fn expand(bounds: &[Bound<'_>], index: &IndexInfo) -> Vec<IndexInfo> {
    let Some(wildcard) = &index.wildcard else { return Vec::new() };
    let mut of_path: IndexMap<&str, Vec<&Bound<'_>>> = IndexMap::new();
    for b in bounds {
        of_path.entry(&b.path).or_default().push(b);
    }
    let expanded = of_path.iter().filter_map(|(path, own)| on_path(path, own, index, wildcard));
    let mut out: Vec<IndexInfo> = expanded.take(EXPANSIONS_MAX).collect();
    let first = index.key.keys().next();
    if wildcard.at > 0 && bounds.iter().any(|b| Some(b.path.as_str()) == first) {
        out.push(beside_only(index, wildcard));
    }
    out
}

fn on_path(
    path: &str,
    bounds: &[&Bound<'_>],
    index: &IndexInfo,
    wildcard: &WildcardInfo,
) -> Option<IndexInfo> {
    let paths = alternatives(path, wildcard)?;
    let multikey = paths.iter().any(|p| !wildcard.scope.arrays_on(p).is_empty());
    let own: Vec<&Bound<'_>> = bounds.iter().copied().filter(|b| usable(b, path, multikey)).collect();
    if own.is_empty() {
        return None;
    }
    let below = own.iter().all(|b| holds_documents(&b.intervals));
    // A document may be empty in the index because what it holds is left out.
    let exact = paths.len() == 1 && wildcard.scope.covers_whole(&paths[0]);
    let list = paths.iter().flat_map(|p| {
        let point = Interval::point(Value::from(p.as_str()));
        let under = Interval {
            lo: Value::from(format!("{p}.")),
            lo_inclusive: true,
            hi: Value::from(format!("{p}/")),
            hi_inclusive: false,
        };
        [Some(point), below.then_some(under)]
    });
    let expansion = Expansion {
        path: path.to_string(),
        paths: Intervals { list: list.flatten().collect(), exact, takes_missing: false },
        below,
        repeats: below || multikey,
    };
    Some(expanded(index, wildcard, expansion, multikey))
}

/// Whether the documents that meet the predicate are all among those with a key on the path.
fn usable(b: &Bound<'_>, path: &str, multikey: bool) -> bool {
    b.path == path
        && !b.intervals.takes_missing
        && !(multikey && b.only_without_arrays)
        && decides(b.test, b.only_without_arrays)
}

impl Expansion {
    /// Whether the predicate may bound the values under the path. Where documents have one value there, every predicate
    /// speaks of that one; where they have several, a predicate may hold for one without a key, or with a key below the path.
    pub(super) fn may_bound(&self, b: &Bound<'_>, multikey: bool) -> bool {
        !multikey
            || b.path != self.path
            || (usable(b, &self.path, multikey) && (self.below || !holds_documents(&b.intervals)))
    }
}

/// The index for a filter on the fields before the wildcard alone: every key of a document, and the one of those without.
fn beside_only(index: &IndexInfo, wildcard: &WildcardInfo) -> IndexInfo {
    let any = Interval {
        lo: Value::from(""),
        lo_inclusive: true,
        hi: Value::Document(Document::new()),
        hi_inclusive: false,
    };
    let path = index.key.keys().nth(wildcard.at).unwrap_or_default().to_string();
    let list = vec![Interval::point(Value::MinKey), any];
    // It decides nothing, and takes nothing from what the other fields decide.
    let paths = Intervals { list, exact: true, takes_missing: true };
    expanded(index, wildcard, Expansion { path, paths, below: true, repeats: true }, false)
}

fn expanded(index: &IndexInfo, wildcard: &WildcardInfo, expansion: Expansion, multikey: bool) -> IndexInfo {
    let mut key = Document::new();
    for (i, (name, direction)) in index.key.iter().enumerate() {
        if i == wildcard.at {
            key.push(PATH, 1);
            key.push(expansion.path.as_str(), direction.clone());
        } else {
            key.push(name, direction.clone());
        }
    }
    IndexInfo { key, multikey, sparse: true, expansion: Some(expansion), ..index.clone() }
}

/// The paths under which the values of `path` may stand in the index; `None` where it does not hold all of them.
fn alternatives(path: &str, wildcard: &WildcardInfo) -> Option<Vec<String>> {
    let scope = &wildcard.scope;
    let mut paths: Vec<String> = Vec::new();
    for (i, name) in path.split('.').enumerate() {
        if i == 0 {
            paths.push(name.to_string());
            continue;
        }
        let mut longer = Vec::with_capacity(paths.len());
        for p in paths {
            let is_position = array_index(name).is_some() && scope.arrays_on(&p).contains(&p.as_str());
            longer.push(format!("{p}.{name}"));
            if is_position {
                // What an array inside the array holds has no keys of its own.
                if scope.is_nested(&p) {
                    return None;
                }
                longer.push(p);
            }
        }
        if longer.len() > PATHS_MAX {
            return None;
        }
        paths = longer;
    }
    paths.sort();
    paths.dedup();
    paths.iter().all(|p| scope.covers(p)).then_some(paths)
}

/// Whether the keys under the path decide the test: not where a whole document or array is asked for.
fn decides(test: &Test, negated: bool) -> bool {
    match test {
        // `$ne: null`, the only negation that takes no missing value.
        Test::Compare(Comparison::Eq, operand) if negated => operand.is_null(),
        _ if negated => false,
        Test::Compare(op, operand) => is_decided(*op, operand),
        Test::In(set) => set.values.iter().all(|v| is_decided(Comparison::Eq, v)),
        Test::ElemMatchValue(list) => list.iter().all(condition_decides),
        Test::Exists | Test::Type(_) | Test::Regex(_) => true,
        _ => false,
    }
}

fn condition_decides(c: &Condition) -> bool {
    match c {
        Condition::Test(Test::ElemMatchValue(_)) => true,
        Condition::Test(test) => decides(test, false),
        Condition::All(list) => list.iter().all(condition_decides),
        Condition::Not(_) => true,
    }
}

fn is_decided(op: Comparison, operand: &Operand) -> bool {
    match operand.value() {
        ValueRef::Document(d) => op == Comparison::Eq && d.is_empty(),
        ValueRef::Array(d) => op == Comparison::Eq && d.is_empty(),
        ValueRef::Null => op != Comparison::Lte && op != Comparison::Gte,
        _ => true,
    }
}

/// Whether a document other than the empty one lies in the intervals.
fn holds_documents(intervals: &Intervals) -> bool {
    let document = canonical_type(0x03);
    let rank = |v: &Value| canonical_type(v.tag());
    intervals.list.iter().any(|i| {
        let ends_before =
            rank(&i.hi) == document && !i.hi_inclusive && i.hi == Value::Document(Document::new());
        rank(&i.lo) <= document && document <= rank(&i.hi) && !i.is_point() && !ends_before
    })
}

#[cfg(test)]
mod tests {
    use super::super::candidates::collect;
    use super::super::tests::{filter, planned};
    use super::super::{Hint, Plan, Request, plan};
    use super::*;
    use crate::matcher::Matcher;
    use document::doc;
    use document::wildcard::Wildcard;
    use std::sync::Arc;

    fn index(key: Document, projection: Option<Document>) -> IndexInfo {
        let (at, path) = key.keys().enumerate().find(|(_, p)| p.contains("$**")).unwrap();
        let scope = Arc::new(Wildcard::parse(path, projection.as_ref()));
        IndexInfo {
            name: "w".into(),
            wildcard: Some(WildcardInfo { at, scope }),
            multikey: true,
            key,
            ..IndexInfo::default()
        }
    }
    fn seen(index: &IndexInfo, d: Document) {
        index.wildcard.as_ref().unwrap().scope.for_each(d.to_doc_buf().doc(), &mut |_, _| {});
    }
    fn shown(f: Document, index: &IndexInfo) -> String {
        match planned(f, None, std::slice::from_ref(index)) {
            Plan::Index { scan, filter } => {
                let rest = crate::explain::parsed_query(&filter);
                let once = if scan.repeats { "several" } else { "one" };
                format!("{:?} {once} {rest:?}", scan.shown_bounds()).replace("String", "")
            }
            Plan::CollScan { .. } => "scan".to_string(),
            other => format!("{other:?}"),
        }
    }
    fn text(bounds: Document, once: &str, rest: Document) -> String {
        format!("{bounds:?} {once} {rest:?}").replace("String", "")
    }

    #[test]
    fn a_predicate_on_a_path_becomes_bounds_on_path_and_value() {
        let all = index(doc! {"$**": 1}, None);
        assert_eq!(
            shown(doc! {"a.b": {"$gt": 5}}, &all),
            text(doc! {"$_path": ["[\"a.b\", \"a.b\"]"], "a.b": ["(5, inf.0]"]}, "one", doc! {})
        );
        assert_eq!(
            shown(doc! {"a": {"$exists": true}}, &all),
            text(
                doc! {"$_path": ["[\"a\", \"a\"]", "[\"a.\", \"a/\")"], "a": ["[MinKey, MaxKey]"]},
                "several",
                doc! {"a": {"$exists": true}}
            )
        );
    }

    #[test]
    fn what_a_missing_value_or_a_whole_document_may_meet_is_scanned() {
        let all = index(doc! {"$**": 1}, None);
        let filters = [
            doc! {"a": Value::Null},
            doc! {"a": {"$exists": false}},
            doc! {"a": {"$ne": 5}},
            doc! {"a": {"b": 1}},
            doc! {"a": [1, 2]},
            doc! {"a": {"$in": [1, {"b": 1}]}},
            doc! {"a": {"$gt": {"b": 1}}},
            doc! {"a": {"$elemMatch": {"$eq": {"b": 1}}}},
            doc! {"_id.x": 5},
        ];
        for f in filters {
            assert_eq!(shown(f.clone(), &all), "scan", "{f:?}");
        }
        assert_ne!(shown(doc! {"a": {"$ne": Value::Null}}, &all), "scan");
        seen(&all, doc! {"a": [1]});
        assert_eq!(shown(doc! {"a": {"$ne": Value::Null}}, &all), "scan", "not where arrays are");
    }

    #[test]
    fn of_two_predicates_on_a_path_with_arrays_one_bounds_that_the_keys_decide() {
        let all = index(doc! {"$**": 1}, None);
        seen(&all, doc! {"a": [5, {"b": 1}]});
        let above = doc! {"a": {"$gt": 4}};
        for other in [
            doc! {"a": {"b": 1}},
            doc! {"a": {"$eq": Value::Null}},
            doc! {"a": {"$type": "object"}},
            doc! {"a": {"$exists": true}},
        ] {
            for both in [vec![above.clone(), other.clone()], vec![other.clone(), above.clone()]] {
                let plan = shown(doc! {"$and": both.clone()}, &all);
                assert!(
                    plan.contains("(4, inf.0]") && plan.contains("[\\\"a\\\", \\\"a\\\"]"),
                    "{both:?}: {plan}"
                );
            }
        }
    }

    #[test]
    fn an_empty_document_is_looked_at_where_something_below_it_is_left_out() {
        let some = index(doc! {"$**": 1}, Some(doc! {"a.b": 0}));
        let bounds = |path: &str| {
            let at = format!("[\"{path}\", \"{path}\"]");
            Document(vec![
                ("$_path".into(), vec![Value::from(at)].into()),
                (path.into(), vec![Value::from("[{}, {}]")].into()),
            ])
        };
        let filter = |path: &str| Document(vec![(path.into(), Document::new().into())]);
        assert_eq!(shown(filter("a"), &some), text(bounds("a"), "one", doc! {"a": {"$eq": {}}}));
        assert_eq!(shown(filter("c"), &some), text(bounds("c"), "one", doc! {}));
    }

    #[test]
    fn a_position_in_an_array_is_looked_for_under_the_path_of_the_array_too() {
        let all = index(doc! {"$**": 1}, None);
        let bounds = |paths: Vec<&str>| {
            let list: Vec<Value> = paths.iter().map(|p| Value::from(format!("[\"{p}\", \"{p}\"]"))).collect();
            doc! {"$_path": list, "a.0.b": ["[5, 5]"]}
        };
        let f = || doc! {"a.0.b": 5};
        let rest = || doc! {"a.0.b": {"$eq": 5}};
        assert_eq!(shown(f(), &all), text(bounds(vec!["a.0.b"]), "one", rest()));
        seen(&all, doc! {"a": [{"b": 1}]});
        assert_eq!(shown(f(), &all), text(bounds(vec!["a.0.b", "a.b"]), "several", rest()));
        seen(&all, doc! {"a": [[{"b": 1}]]});
        assert_eq!(shown(f(), &all), "scan", "arrays in arrays have no keys for what they hold");
    }

    #[test]
    fn fields_beside_the_wildcard_can_be_searched_alone() {
        let two = index(doc! {"t": 1, "$**": 1}, Some(doc! {"t": 0}));
        assert_eq!(
            shown(doc! {"t": 1, "a": 2}, &two),
            text(doc! {"t": ["[1, 1]"], "$_path": ["[\"a\", \"a\"]"], "a": ["[2, 2]"]}, "one", doc! {})
        );
        assert_eq!(
            shown(doc! {"t": 1}, &two),
            text(
                doc! {"t": ["[1, 1]"], "$_path": ["[MinKey, MinKey]", "[\"\", {})"], "$**": ["[MinKey, MaxKey]"]},
                "several",
                doc! {}
            )
        );
        assert_eq!(shown(doc! {"b": {"$exists": false}}, &two), "scan");
    }

    #[test]
    fn a_hint_on_a_wildcard_index_is_refused_where_it_does_not_hold_the_matches() {
        let indexes = [index(doc! {"$**": 1}, None)];
        let hint = Hint::Name("w".into());
        let hinted = |f: Document| {
            let f = filter(f);
            plan(&Request { hint: Some(&hint), ..Request::new(&f, &indexes) }).map_err(|e| e.code)
        };
        assert!(matches!(hinted(doc! {"a": 1}), Ok(Plan::Index { .. })));
        assert!(matches!(hinted(doc! {"$or": [{"a": 1}, {"b": 2}]}), Ok(Plan::Or(_))));
        for f in [doc! {}, doc! {"_id": 1}, doc! {"a": Value::Null}, doc! {"$or": [{"a": 1}, {"_id": 2}]}] {
            assert_eq!(hinted(f.clone()).err(), Some(document::codes::NO_QUERY_EXECUTION_PLANS), "{f:?}");
        }
    }

    #[test]
    fn of_very_many_paths_only_so_many_are_planned() {
        const MANY: usize = 20_000;
        let all = index(doc! {"$**": 1}, None);
        let of_paths =
            |value: fn(usize) -> Value| filter((0..MANY).map(|i| (format!("f{i}"), value(i))).collect());
        let expansions = |f: &Matcher| expand(&collect(f), &all).len();
        assert_eq!(expansions(&of_paths(|i| Value::from(i as i32))), EXPANSIONS_MAX);
        assert_eq!(expansions(&of_paths(|_| Value::Null)), 0, "none of them is of use");
        let f = of_paths(|i| Value::from(i as i32));
        let Plan::Index { filter, .. } = plan(&Request::new(&f, std::slice::from_ref(&all))).unwrap() else {
            panic!()
        };
        assert!(std::ptr::eq(filter.root(), f.root()), "the filter is not copied for each");
    }
}
