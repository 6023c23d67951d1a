//! Plans for predicates on places: the cells an index has to look at, and the index that a near predicate needs.

use super::bounds::{Interval, Intervals};
use super::candidates;
use super::{IndexInfo, Plan, Request, with_sort};
use crate::matcher::ops::geo::{Geo, Kind, Metric};
use crate::matcher::{Matcher, Node, Test};
use crate::sort::SortSpec;
use document::{Result, Value, bail};
use geo::cells::Layout;

/// The predicates on places at `path` among the conjuncts.
fn predicates<'a>(filter: &'a Matcher, path: &'a str) -> impl Iterator<Item = &'a Geo> {
    filter.root().conjuncts().iter().filter_map(move |node| match node {
        Node::Leaf(leaf) if &*leaf.path.text == path => match &leaf.test {
            Test::Other(test) => test.geo(),
            _ => None,
        },
        _ => None,
    })
}

/// Whether an index of this layout can serve the predicate at all.
fn serves(layout: &Layout, test: &Geo) -> bool {
    match (&test.kind, layout) {
        (Kind::Near(near), Layout::Sphere(_)) => near.metric != Metric::Flat,
        (Kind::Near(near), Layout::Plane(_)) => near.metric != Metric::Metres,
        (Kind::Within(region) | Kind::Intersects(region), layout) => layout.ranges(region).is_some(),
    }
}

/// The cells in which a predicate at `path` finds its documents, and that predicate. `None` when there is no such
/// predicate that the index can serve.
pub(super) fn intervals<'a>(
    filter: &'a Matcher,
    path: &'a str,
    layout: &Layout,
) -> Option<(Intervals, &'a Geo)> {
    let test = predicates(filter, path).find(|test| serves(layout, test))?;
    let Some(ranges) = layout.ranges(&test.region()) else {
        return Some((Intervals { takes_missing: false, ..Intervals::everything() }, test));
    };
    let interval = |r: std::ops::RangeInclusive<i64>| Interval {
        lo: Value::Int64(*r.start()),
        lo_inclusive: true,
        hi: Value::Int64(*r.end()),
        hi_inclusive: true,
    };
    Some((Intervals::of(ranges.into_iter().map(interval).collect(), false), test))
}

/// The plan of a query with a near predicate, which needs an index on its path.
///
/// # Errors
/// NoQueryExecutionPlans (291) without one.
pub(super) fn near(
    request: &Request<'_>,
    sort: Option<&SortSpec>,
    hinted: Option<&IndexInfo>,
) -> Result<Plan> {
    let Some((path, wanted)) = request.filter.near() else { return Ok(Plan::Eof) };
    let holds_near = |index: &&IndexInfo| {
        let place =
            index.layout.as_ref().filter(|_| index.key.get(path).is_some_and(|v| v.as_str().is_some()));
        let test = place.and_then(|layout| intervals(request.filter, path, layout));
        !index.hidden && test.is_some_and(|(_, test)| test.near().is_some())
    };
    let usable = match hinted {
        Some(index) => Some(index).filter(holds_near),
        None => request.indexes.iter().find(holds_near),
    };
    let candidate = usable.and_then(|index| candidates::candidate_of(request.filter, index));
    let Some(candidate) = candidate else {
        bail!(
            NO_QUERY_EXECUTION_PLANS,
            "error processing query: planner returned error :: caused by :: unable to find index for $geoNear query"
        );
    };
    let plan = Plan::Index { scan: candidate.scan, filter: candidate.filter };
    match sort {
        Some(_) => with_sort(plan, sort),
        None => Ok(Plan::Near { input: Box::new(plan), order: SortSpec::by_distance(path, wanted) }),
    }
}
