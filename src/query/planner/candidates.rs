//! For each index the scan it would give.

use super::bounds::{self, Intervals};
use super::ranges::{self, FieldKind, KeyRange};
use super::{
    Bounds, Direction, IndexInfo, IndexScan, Plan, Request, cover, partial, places, residual, wildcard,
};
use crate::matcher::{Condition, Leaf, Matcher, Node, Test};
use crate::sort::SortSpec;
use document::{Collation, Document, Result, Value, bail, collation};
use std::borrow::Cow;

/// More scans than this are not merged to provide a sort.
pub(super) const SCANS_MAX: usize = 200;
/// Conjuncts that bound one field; any others on it are asked of the documents.
const BOUNDS_MAX: usize = 32;
/// A filter of more conjuncts is asked whole of the documents that a scan finds, whatever the scan's bounds decide: a copy without those
/// would be made for each scan.
const CONJUNCTS_MAX: usize = 1000;

/// A scan of one index and what it is worth.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub scan: IndexScan,
    pub filter: Matcher,
    pub provides_sort: bool,
    /// Set where only the merge of these scans, one for each combination of points, provides the sort.
    pub exploded: Vec<IndexScan>,
    pub unique: bool,
    /// Leading fields held to one value.
    pub equalities: usize,
    /// Fields after those that are bounded otherwise.
    pub other_bounds: usize,
    pub fields: usize,
}

impl Candidate {
    /// The plan for a request with this sort.
    pub(super) fn into_plan(self, sort: Option<&SortSpec>) -> Result<Plan> {
        let Candidate { scan, filter, provides_sort, exploded, .. } = self;
        if let Some(order) = sort.filter(|_| !exploded.is_empty()) {
            let branch = |scan| Plan::Index { scan, filter: filter.clone() };
            return Ok(Plan::Merge {
                branches: exploded.into_iter().map(branch).collect(),
                order: order.clone(),
            });
        }
        let plan = Plan::Index { scan, filter };
        if provides_sort { Ok(plan) } else { super::with_sort(plan, sort) }
    }
    pub(super) fn is_bounded(&self) -> bool {
        self.equalities + self.other_bounds > 0
    }
}

/// The sort asked for, and how many scans may be merged to provide it.
#[derive(Clone, Copy)]
struct Order<'a> {
    sort: &'a SortSpec,
    scans: usize,
}

/// A conjunct that bounds a path.
pub(super) struct Bound<'a> {
    pub(super) path: String,
    pub(super) intervals: Intervals,
    /// The conjunct's position in the filter, unless the bound is only a consequence of it.
    conjunct: Option<usize>,
    /// Not where arrays are. A negation: the key null also stands for an empty array on the way, which is not equal to null. Of a
    /// path with a position every one, since an array there is in the index by its elements, to none of which it is equal.
    pub(super) only_without_arrays: bool,
    pub(super) test: &'a Test,
    element: Option<Element<'a>>,
}

/// The innermost `$elemMatch` that a condition stands in: one element of the array there satisfies all that stand in it.
#[derive(Clone, Copy)]
struct Element<'a> {
    of: &'a Leaf,
    /// How many names lead to the array.
    names: usize,
}

impl Element<'_> {
    fn is(&self, other: &Element<'_>) -> bool {
        std::ptr::eq(self.of, other.of)
    }
}

impl Bound<'_> {
    /// What it says of an index of this collation; `None` where strings stand otherwise in it.
    fn intervals(&self, of_index: &Collation) -> Option<Cow<'_, Intervals>> {
        match self.test.string_collation() {
            Some(own) if own != of_index => None,
            _ if of_index.is_simple() => Some(Cow::Borrowed(&self.intervals)),
            _ => match self.test {
                Test::Regex(pattern) => Some(Cow::Owned(bounds::of_any_string(pattern))),
                test if has_pattern(test) => None,
                _ => Some(Cow::Borrowed(&self.intervals)),
            },
        }
    }
}

/// Whether its intervals hold beginnings of strings, which only an index of plain strings has.
fn has_pattern(test: &Test) -> bool {
    match test {
        Test::Regex(_) => true,
        Test::In(set) => !set.patterns.is_empty(),
        Test::ElemMatchValue(list) => list.iter().any(condition_has_pattern),
        _ => false,
    }
}

fn condition_has_pattern(c: &Condition) -> bool {
    match c {
        Condition::Test(test) => has_pattern(test),
        Condition::All(list) => list.iter().any(condition_has_pattern),
        Condition::Not(inner) => condition_has_pattern(inner),
    }
}

/// What the filter says of paths.
pub(super) fn collect(filter: &Matcher) -> Vec<Bound<'_>> {
    let mut out = collect_tests(filter);
    out.extend(collect_comparisons(filter));
    out
}

/// What comparisons in `$expr` say of their paths.
fn collect_comparisons(filter: &Matcher) -> impl Iterator<Item = Bound<'_>> {
    let nodes = filter.root().conjuncts().iter();
    let comparisons = nodes.flat_map(|node| match node {
        Node::Expr(e) => e.comparisons(),
        _ => &[],
    });
    comparisons.filter_map(of_comparison)
}

fn of_comparison(leaf: &Leaf) -> Option<Bound<'_>> {
    let path = &leaf.path.text;
    let intervals = bounds::of_expression(&leaf.test)?;
    (!cover::has_position(path)).then(|| Bound {
        path: path.to_string(),
        conjunct: None,
        // An array is one value to the expression, and is in the index by its elements, which stand elsewhere.
        only_without_arrays: !intervals.is_single_point(),
        intervals,
        test: &leaf.test,
        element: None,
    })
}

/// The same without what `$expr` says. The indexes that a wildcard index stands for hold no documents as values.
fn collect_tests(filter: &Matcher) -> Vec<Bound<'_>> {
    let mut out = Vec::new();
    for (i, node) in filter.root().conjuncts().iter().enumerate() {
        match node {
            Node::Leaf(leaf) => collect_leaf(leaf, ("", None), Some(i), &mut out),
            Node::Not(inner) => {
                if let Node::Leaf(leaf) = &**inner
                    && let Some(intervals) = bounds::of_negation(&leaf.test)
                {
                    let only_without_arrays =
                        !intervals.takes_missing || cover::has_position(&leaf.path.text);
                    out.push(Bound {
                        path: leaf.path.text.to_string(),
                        intervals,
                        conjunct: None,
                        only_without_arrays,
                        test: &leaf.test,
                        element: None,
                    });
                }
            }
            _ => {}
        }
    }
    out
}

/// Collects of a condition in an element, whose path with a dot is the prefix.
fn collect_leaf<'a>(
    leaf: &'a Leaf,
    (prefix, element): (&str, Option<Element<'a>>),
    conjunct: Option<usize>,
    out: &mut Vec<Bound<'a>>,
) {
    let path = format!("{prefix}{}", leaf.path.text);
    if let Test::ElemMatchObject(node) = &leaf.test {
        let below = format!("{path}.");
        let element = Some(Element { of: leaf, names: path.split('.').count() });
        for child in node.conjuncts() {
            // A position in an element is none in the array, which is what the index takes it for.
            if let Node::Leaf(inner) = child
                && !cover::has_position(&inner.path.text)
            {
                collect_leaf(inner, (&below, element), None, out);
            }
        }
        return;
    }
    if let Some(mut intervals) = bounds::of_test(&leaf.test) {
        if conjunct.is_none() {
            intervals.exact = false;
        }
        // The documents of an array may lack a field whose name is taken for a position: no key tells of that.
        if !(intervals.takes_missing && cover::has_position(&path)) {
            let test = &leaf.test;
            out.push(Bound { path, intervals, conjunct, only_without_arrays: false, test, element });
        }
    }
}

/// The one value that the filter holds a path to.
pub(super) fn single_value(filter: &Matcher, path: &str) -> Option<Value> {
    let bounds = collect(filter);
    let mut own = bounds.iter().filter(|b| b.path == path).filter_map(|b| b.intervals(&Collation::SIMPLE));
    own.find(|i| i.is_single_point()).map(|i| i.list[0].lo.clone())
}

/// The candidates among `indexes`: those that bound something or provide the sort.
pub(super) fn all(filter: &Matcher, sort: Option<&SortSpec>, indexes: &[IndexInfo]) -> Vec<Candidate> {
    all_within(filter, sort, indexes, SCANS_MAX)
}

/// The same, where no more than so many scans are merged to provide the sort.
pub(super) fn all_within(
    filter: &Matcher,
    sort: Option<&SortSpec>,
    indexes: &[IndexInfo],
    scans: usize,
) -> Vec<Candidate> {
    let sort = sort.map(|sort| Order { sort, scans });
    let mut all = collect_tests(filter);
    let tests = all.len();
    all.extend(collect_comparisons(filter));
    let tests = &all[..tests];
    let mut out = Vec::new();
    let mut add = |index: &IndexInfo| {
        let bounds = if index.wildcard.is_some() { tests } else { &all };
        let candidate = candidate(filter, bounds, sort, index, false);
        // Who asks whether a field exists is helped by the index of those documents that have it.
        let asks_existence = index.sparse
            && index.expansion.is_none()
            && index.key.keys().next().is_some_and(|path| {
                bounds
                    .iter()
                    .any(|b| b.path == path && matches!(b.test, Test::Exists) && !b.intervals.takes_missing)
            });
        let useful = candidate.filter(|c| c.is_bounded() || c.provides_sort || asks_existence);
        out.extend(useful.filter(|_| holds_all(filter, bounds, index)));
    };
    for index in indexes.iter().filter(|index| !index.hidden) {
        match index.wildcard {
            Some(_) => wildcard::expand(tests, index).iter().for_each(&mut add),
            None => add(index),
        }
    }
    out
}

/// Whether the filter of a partial index lets in every document that the query can match; so it is of an index that is not partial.
pub(super) fn partial_filter_holds_all(filter: &Matcher, index: &IndexInfo) -> bool {
    let wanted = index.partial_filter.as_ref();
    wanted.is_none_or(|wanted| partial::implies(filter, wanted.doc(), &index.collation))
}

/// Whether every document the query can match is in the index.
fn holds_all(filter: &Matcher, bounds: &[Bound<'_>], index: &IndexInfo) -> bool {
    if index.partial_filter.is_some() {
        return partial_filter_holds_all(filter, index);
    }
    // A sparse index leaves out documents that have none of its fields; an expansion was asked for what it leaves out.
    !index.sparse
        || index.expansion.is_some()
        || index.key.keys().any(|path| {
            bounds.iter().any(|b| {
                b.path == path && !b.intervals.takes_missing && !(index.multikey && b.only_without_arrays)
            })
        })
}

/// The plan a hint asks for. A partial index that does not hold all that the query can match is read whole, and the
/// answer is what of it matches: who hints asks for that.
pub(super) fn forced(filter: &Matcher, sort: Option<&SortSpec>, index: &IndexInfo) -> Result<Plan> {
    let holds_all = partial_filter_holds_all(filter, index);
    let bounds = if holds_all { collect(filter) } else { Vec::new() };
    let order = sort.map(|sort| Order { sort, scans: SCANS_MAX });
    let Some(c) = candidate(filter, &bounds, order, index, true) else {
        bail!(
            NO_QUERY_EXECUTION_PLANS,
            "error processing query: planner returned error :: caused by :: No query solutions"
        );
    };
    c.into_plan(sort)
}

/// The scan of an index that bounds what it can of a filter and has one of these orders, where there are any; provided that every
/// document the filter can match is in the index.
pub(super) fn whole_or_bounded_in(
    filter: &Matcher,
    orders: &[SortSpec],
    index: &IndexInfo,
) -> Option<Candidate> {
    let bounds = collect(filter);
    if !holds_all(filter, &bounds, index) {
        return None;
    }
    if orders.is_empty() {
        return candidate(filter, &bounds, None, index, false);
    }
    orders.iter().find_map(|sort| {
        let found = candidate(filter, &bounds, Some(Order { sort, scans: 0 }), index, false)?;
        Some(found).filter(|c| c.provides_sort)
    })
}

pub(super) fn candidate_of(filter: &Matcher, index: &IndexInfo) -> Option<Candidate> {
    candidate(filter, &collect(filter), None, index, false)
}

/// A field of an index that has bounds.
struct Bounded<'a> {
    at: usize,
    /// The first name of its path.
    root: &'a str,
    repeats: bool,
    /// What its bounds come from, where that is one condition.
    element: Option<Element<'a>>,
}

/// The `$elemMatch` from which alone the field at `path` can have bounds beside those below the same root that have some: theirs, unless an
/// array within its elements is common to the paths.
fn shared_element<'a>(
    index: &IndexInfo,
    bounded: &[Bounded<'a>],
    root: &str,
    path: &str,
) -> Option<Element<'a>> {
    let mut below = bounded.iter().filter(|b| b.root == root);
    let element = below.clone().next()?.element.filter(|_| index.tells_arrays())?;
    let common = |beginning: &str| {
        beginning.split('.').count() > element.names
            && path.strip_prefix(beginning).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let beside = |b: &Bounded<'a>| {
        let arrays = index.key.keys().nth(b.at).map(|other| index.arrays.on(b.at, other));
        b.element.is_some_and(|e| e.is(&element)) && !arrays.into_iter().flatten().any(common)
    };
    below.all(beside).then_some(element)
}

/// The intervals of each field of the index, and which conjuncts they come from; `None` where the index cannot be used.
fn narrowed(
    filter: &Matcher,
    bounds: &[Bound<'_>],
    index: &IndexInfo,
    kinds: &[FieldKind],
    hinted: bool,
) -> Option<(Vec<Intervals>, Vec<Vec<usize>>)> {
    let mut fields: Vec<Intervals> = Vec::with_capacity(kinds.len());
    let mut used: Vec<Vec<usize>> = Vec::with_capacity(kinds.len());
    let mut bounded_fields: Vec<Bounded<'_>> = Vec::new();
    for (at, (path, kind)) in index.key.keys().zip(kinds).enumerate() {
        let root = path.split('.').next().unwrap_or(path);
        if let Some(expansion) = index.expansion.as_ref().filter(|_| path == wildcard::PATH) {
            fields.push(expansion.paths.clone());
            used.push(Vec::new());
            continue;
        }
        if *kind == FieldKind::Place {
            // A document without a place is not in the index, so only a predicate on places can use it.
            match places::intervals(filter, path, index.layout.as_ref()?) {
                Some((intervals, _)) => fields.push(intervals),
                // A hint reads the index whole.
                None if hinted => fields.push(Intervals::everything()),
                None => return None,
            }
            used.push(Vec::new());
            bounded_fields.push(Bounded { at, root, repeats: index.multikey, element: None });
            continue;
        }
        // Two paths into one array may be satisfied by different elements, which are different keys.
        let repeats = index.repeats_at(at);
        let apart = bounded_fields.iter().any(|b| b.root == root && (b.repeats || repeats));
        let shared = if apart { shared_element(index, &bounded_fields, root, path) } else { None };
        let below = index.expansion.as_ref().is_some_and(|e| e.below && e.path == path);
        let (intervals, conjuncts, element) = match below || (apart && shared.is_none()) {
            true => (Intervals::everything(), Vec::new(), None),
            false => for_field(path, bounds, index, (repeats, shared)),
        };
        if !intervals.is_everything() {
            bounded_fields.push(Bounded { at, root, repeats, element });
        }
        let hashed = *kind == FieldKind::Hashed;
        // The hash of null stands for missing too, and equal numbers of different hashes do not exist.
        let unusable = hashed && !intervals.is_points();
        fields.push(if unusable { Intervals::everything() } else { intervals });
        used.push(if unusable { Vec::new() } else { conjuncts });
    }
    Some((fields, used))
}

fn candidate(
    filter: &Matcher,
    bounds: &[Bound<'_>],
    order: Option<Order<'_>>,
    index: &IndexInfo,
    hinted: bool,
) -> Option<Candidate> {
    let kinds: Vec<FieldKind> = index.key.iter().map(|(_, v)| FieldKind::of(v)).collect::<Option<_>>()?;
    if index.wildcard.is_some() && index.expansion.is_none() {
        return None;
    }
    let (fields, used) = narrowed(filter, bounds, index, &kinds, hinted)?;
    let pairs: Vec<(FieldKind, &Intervals)> = kinds.iter().copied().zip(&fields).collect();
    let (mut key_ranges, decided) = ranges::build(&pairs);
    // Under several paths a key does not tell by which of them a document was found.
    let one_path = index.expansion.as_ref().is_none_or(|e| e.paths.exact);
    // An array at a position is a value to the matcher, whose elements are in the index nevertheless, and a position is also a name.
    let at_position = |i: usize| index.key.keys().nth(i).is_some_and(cover::has_position);
    let exact = |i: usize| fields[i].exact && kinds[i] != FieldKind::Hashed && one_path && !at_position(i);
    let dropped: Vec<usize> =
        (0..decided).filter(|i| exact(*i)).flat_map(|i| used[i].iter().copied()).collect();
    let equalities = fields.iter().take_while(|f| f.is_single_point()).count();
    let other_bounds =
        fields[equalities..decided.max(equalities)].iter().filter(|f| !f.is_everything()).count();
    // The path that a wildcard index was expanded for narrows nothing by itself.
    let held_path = index.key.keys().take(equalities).any(|p| p == wildcard::PATH);
    let direction = order.and_then(|o| sort_direction(o.sort, index, &kinds, &fields));
    let exploded = match (order, direction) {
        (Some(order), None) => explode(order, index, &kinds, &fields),
        _ => Vec::new(),
    };
    if direction == Some(Direction::Backward) {
        key_ranges.reverse();
    }
    let conjuncts = filter.root().conjuncts();
    // A scan of the collection reads the documents anyway, and shows the whole filter.
    let clustered = index.clustered.is_some();
    let remaining = match dropped.is_empty() || clustered || conjuncts.len() > CONJUNCTS_MAX {
        true => filter.clone(),
        false => residual(conjuncts, |i| !dropped.contains(&i)),
    };
    let field_count = fields.len();
    Some(Candidate {
        scan: IndexScan {
            // A range that ends before the path takes in a document's keys under all its other paths.
            repeats: index.expansion.as_ref().map_or(index.multikey, |e| {
                e.repeats || index.key.keys().take(decided).all(|p| p != wildcard::PATH)
            }),
            wildcard: index.wildcard.as_ref().map(|w| w.scope.clone()),
            direction: direction.unwrap_or(Direction::Forward),
            ranges: key_ranges,
            bounds: Bounds::of(fields),
            ..IndexScan::of(index)
        },
        filter: remaining,
        provides_sort: direction.is_some() || !exploded.is_empty(),
        exploded,
        unique: index.unique,
        equalities: equalities - usize::from(held_path),
        other_bounds: other_bounds + usize::from(held_path && equalities + other_bounds == 1),
        fields: field_count,
    })
}

/// Scans that each hold the fields before the sorted ones to one value, so that each provides the sort; the first of these
/// fields changes slowest. None where that does not help, or takes too many of them.
fn explode(order: Order<'_>, index: &IndexInfo, kinds: &[FieldKind], all: &[Intervals]) -> Vec<IndexScan> {
    let points = all.iter().take_while(|f| f.is_points()).count();
    let scans = all[..points].iter().try_fold(1usize, |n, f| n.checked_mul(f.list.len()));
    let plain = index.wildcard.is_none() && index.clustered.is_none() && !kinds.contains(&FieldKind::Place);
    let Some(scans) = scans.filter(|n| plain && (2..=order.scans).contains(n)) else { return Vec::new() };
    // One value is as good as another where a field is held to it: what holds for the first combination holds for all.
    let mut first = all.to_vec();
    first[..points].iter_mut().for_each(|field| field.list.truncate(1));
    let Some(direction) = sort_direction(order.sort, index, kinds, &first) else { return Vec::new() };
    let scan = |mut at: usize| {
        let mut fields = first.clone();
        for field in (0..points).rev() {
            let list = &all[field].list;
            fields[field].list = vec![list[at % list.len()].clone()];
            at /= list.len();
        }
        let pairs: Vec<(FieldKind, &Intervals)> = kinds.iter().copied().zip(&fields).collect();
        let (mut ranges, _) = ranges::build(&pairs);
        if direction == Direction::Backward {
            ranges.reverse();
        }
        IndexScan { direction, ranges, bounds: Bounds::of(fields), ..IndexScan::of(index) }
    };
    (0..scans).map(scan).collect()
}

/// The scan of a whole collection in the order of its clustered index.
pub(super) fn whole(index: &IndexInfo, direction: Direction) -> IndexScan {
    IndexScan { unique: true, direction, ranges: vec![KeyRange::everything()], ..IndexScan::of(index) }
}

/// The intervals of one field and the conjuncts they stand for. In a field that is `multikey` the values that satisfy two predicates may be
/// different ones, so only one predicate can bound the scan: the narrowest. Where an element is given, only what stands in it counts; where the
/// one predicate stands in one, it is returned.
fn for_field<'a>(
    path: &str,
    bounds: &[Bound<'a>],
    index: &IndexInfo,
    (multikey, within): (bool, Option<Element<'_>>),
) -> (Intervals, Vec<usize>, Option<Element<'a>>) {
    let mut element = None;
    let mut out = Intervals::everything();
    let mut conjuncts = Vec::new();
    let mut any = false;
    let fits = |b: &&Bound<'_>| {
        b.path == path
            && !(multikey && b.only_without_arrays)
            && within.is_none_or(|within| b.element.is_some_and(|e| e.is(&within)))
            && index.expansion.as_ref().is_none_or(|e| e.may_bound(b, multikey))
    };
    for b in bounds.iter().filter(fits).take(BOUNDS_MAX) {
        let Some(mut intervals) = b.intervals(&index.collation) else { continue };
        if multikey && bounds::leaves_out_an_extreme(b.test) {
            intervals = Cow::Owned(Intervals::everything());
        }
        if !any {
            (out, any, element) = (intervals.into_owned(), true, b.element);
            conjuncts.extend(b.conjunct);
        } else if !multikey {
            (out, element) = (out.intersect(&intervals), None);
            conjuncts.extend(b.conjunct);
        } else if narrower(&intervals, &out) {
            (out, element) = (intervals.into_owned(), b.element);
            conjuncts.clear();
            conjuncts.extend(b.conjunct);
        }
    }
    (out, conjuncts, element)
}

fn narrower(a: &Intervals, b: &Intervals) -> bool {
    let width = |i: &Intervals| match i {
        i if i.is_single_point() => 0,
        i if i.is_points() => 1,
        i if i.is_everything() => 3,
        _ => 2,
    };
    width(a) < width(b)
}

/// The direction in which the index delivers the sort; `None` when it does not.
fn sort_direction(
    sort: &SortSpec,
    index: &IndexInfo,
    kinds: &[FieldKind],
    fields: &[Intervals],
) -> Option<Direction> {
    if sort.by_score() {
        return None;
    }
    let paths: Vec<&str> = index.key.keys().collect();
    // What is sorted by is the least or the greatest element of an array, not the one that led to the document.
    let fixed = |path: &str| {
        let mut named = paths.iter().zip(fields).enumerate().filter(|(_, (p, _))| **p == path);
        named.any(|(i, (_, f))| f.is_single_point() && !index.repeats_at(i))
    };
    let mut direction = None;
    let mut at = 0;
    for (path, descending) in sort.components() {
        if fixed(path) {
            continue;
        }
        while at < paths.len() && paths[at] != path && fields[at].is_single_point() {
            at += 1;
        }
        let plain = |at: usize| !matches!(kinds[at], FieldKind::Hashed | FieldKind::Place);
        if at >= paths.len() || paths[at] != path || !plain(at) || index.repeats_at(at) {
            return None;
        }
        if sort.collation() != &index.collation && !fields[at].without_strings() {
            return None;
        }
        let same = *descending == (kinds[at] == FieldKind::Descending);
        let wanted = if same { Direction::Forward } else { Direction::Backward };
        if direction.is_some_and(|d| d != wanted) {
            return None;
        }
        direction = Some(wanted);
        at += 1;
    }
    // Several points on a field before the sorted ones give several runs, each in order.
    let in_one_run =
        (0..at).all(|i| fields[i].is_single_point() || sort.components().iter().any(|(p, _)| *p == paths[i]));
    if !in_one_run {
        return None;
    }
    Some(direction.unwrap_or(Direction::Forward))
}

/// A scan between explicit `min` and `max` keys of the hinted index.
pub(super) fn min_max(request: &Request<'_>) -> Result<Plan> {
    let Some(hint) = request.hint else {
        bail!(51173, "When using min()/max() a hint of which index to use must be provided");
    };
    let index = super::hinted_index(hint, request.indexes)?;
    if index.wildcard.is_some() {
        bail!(51174, "wildcard indexes do not support min/max");
    }
    let kinds: Option<Vec<FieldKind>> = index.key.iter().map(|(_, v)| FieldKind::of(v)).collect();
    let Some(kinds) = kinds else {
        bail!(51174, "The index chosen cannot be used with min()/max()");
    };
    // Bounds of a hashed field are hashes already.
    let plain = |kind: FieldKind| if kind == FieldKind::Hashed { FieldKind::Ascending } else { kind };
    let kinds: Vec<FieldKind> = kinds.into_iter().map(plain).collect();
    let key = |d: &Document| -> Result<Vec<u8>> {
        let stands_alike =
            |v: &Value| v.to_holder().doc().iter().all(|e| collation::compares_alike(e.value()));
        if request.collation != &index.collation && !d.iter().all(|(_, v)| stands_alike(v)) {
            bail!(
                51174,
                "The index chosen has another collation than the query, which min/max bound by strings"
            );
        }
        if d.len() != index.key.len() || !d.keys().eq(index.key.keys()) {
            bail!(51174, "The index chosen is not compatible with min/max");
        }
        let holder: Vec<(FieldKind, Intervals)> = kinds
            .iter()
            .copied()
            .zip(d.iter().map(|(_, v)| Intervals {
                list: vec![super::Interval::point(index.collation.comparable(v))],
                exact: true,
                takes_missing: false,
            }))
            .collect();
        let pairs: Vec<(FieldKind, &Intervals)> = holder.iter().map(|(k, i)| (*k, i)).collect();
        Ok(ranges::build(&pairs).0.into_iter().next().map(|r| r.lo).unwrap_or_default())
    };
    let mut range = KeyRange::everything();
    if let Some(min) = request.min {
        range.lo = key(min)?;
    }
    if let Some(max) = request.max {
        (range.hi, range.hi_inclusive) = (key(max)?, false);
    }
    if request.min.is_some() && request.max.is_some() && range.lo >= range.hi {
        bail!(51175, "The value of min must be less than the value of max");
    }
    let clustered = index.clustered.is_some();
    let mut bounds = Document::new();
    if clustered {
        let first = |d: &Document| d.iter().next().map(|(_, v)| v.clone());
        for (name, bound) in [("minRecord", request.min), ("maxRecord", request.max)] {
            bound.and_then(first).into_iter().for_each(|v| bounds.push(name, v));
        }
    } else {
        bounds.push("startKey", request.min.cloned().unwrap_or_default());
        bounds.push("endKey", request.max.cloned().unwrap_or_default());
    }
    let scan = IndexScan { ranges: vec![range], bounds: Bounds::Given(bounds), ..IndexScan::of(index) };
    Ok(Plan::Index { scan, filter: request.filter.clone() })
}
