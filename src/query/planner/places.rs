//! Plans for predicates on places: the cells an index has to look at, and the index that a near predicate needs.

use super::bounds::{Interval, Intervals};
use super::candidates;
use super::{IndexInfo, Plan, Request, with_sort};
use crate::matcher::ops::geo::{Geo, Kind, Metric, Near};
use crate::matcher::path::Path;
use crate::matcher::{Matcher, Node, Test};
use crate::sort::SortSpec;
use document::{Doc, Result, Value, bail};
use geo::EARTH_RADIUS_M;
use geo::cells::Layout;
use std::sync::Arc;

/// The predicates on places at `path` among the conjuncts.
fn predicates<'a>(filter: &'a Matcher, path: &'a str) -> impl Iterator<Item = &'a Geo> {
    filter.root().conjuncts().iter().filter_map(move |node| match node {
        Node::Leaf(leaf) | Node::MayHold(leaf) if &*leaf.path.text == path => match &leaf.test {
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
        (Kind::Within(region) | Kind::Intersects(region), layout) => layout.reads(region),
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
/// NoQueryExecutionPlans (291) without one that has every document the query can match, 16433 for a point outside the grid of one on a plane.
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
        !index.hidden
            && test.is_some_and(|(_, test)| test.near().is_some())
            && candidates::partial_filter_holds_all(request.filter, index)
    };
    let usable = match hinted {
        Some(index) => Some(index).filter(holds_near),
        None => request.indexes.iter().find(holds_near),
    };
    let candidate = usable.and_then(|index| Some((index, candidates::candidate_of(request.filter, index)?)));
    let Some((index, candidate)) = candidate else {
        bail!(
            NO_QUERY_EXECUTION_PLANS,
            "error processing query: planner returned error :: caused by :: unable to find index for $geoNear query"
        );
    };
    if let Some(Layout::Plane(grid)) = &index.layout
        && [wanted.center.0, wanted.center.1].iter().any(|x| !(grid.min..=grid.max).contains(x))
    {
        bail!(16433, "point not in interval of [ {}, {} ]", grid.min, grid.max);
    }
    let plan = Plan::Index { scan: candidate.scan, filter: candidate.filter };
    match sort {
        Some(_) => with_sort(plan, sort),
        None => {
            let rings = Rings {
                path: Path::new(path),
                near: wanted.clone(),
                filter: request.filter.clone(),
                index: index.clone(),
            };
            let order = SortSpec::by_distance(path, wanted);
            Ok(Plan::Near { input: Box::new(plan), order, rings: Arc::new(rings) })
        }
    }
}

/// How a near predicate is searched from its point outwards: in rings, of which each reaches some times as far as the one
/// before. So the nearest few are found without a look at what is far away.
#[derive(Clone, Debug)]
pub struct Rings {
    path: Path,
    near: Near,
    filter: Matcher,
    index: IndexInfo,
}

/// How far the first ring reaches: metres on the sphere, and on a plane this share of an axis.
const FIRST_METRES: f64 = 10.0;
const FIRST_SHARE: f64 = 1e-6;
/// How many times farther the next one reaches. A ring is found by scanning all within it, so this bounds what is scanned again.
const GROWTH: f64 = 4.0;

impl Rings {
    /// How far the first ring reaches, in the unit of the metric.
    pub fn first(&self) -> f64 {
        let first = match (self.near.metric, &self.index.layout) {
            (Metric::Flat, Some(Layout::Plane(grid))) => (grid.max - grid.min) * FIRST_SHARE,
            (Metric::Radians, _) => FIRST_METRES / EARTH_RADIUS_M,
            _ => FIRST_METRES,
        };
        self.bounded(first.max(self.near.least * GROWTH))
    }
    /// How far the one after that reaches which reaches so far; `None` when that was the last.
    pub fn next(&self, reached: f64) -> Option<f64> {
        (reached < self.near.greatest).then(|| self.bounded(reached * GROWTH))
    }
    /// The last ring takes in all that is left.
    fn bounded(&self, reach: f64) -> f64 {
        let plane = match &self.index.layout {
            Some(Layout::Plane(grid)) => (grid.max - grid.min) * 2.0,
            _ => f64::INFINITY,
        };
        let last = reach * GROWTH >= self.near.greatest.min(self.near.farthest()).min(plane);
        if last { self.near.greatest } else { reach }
    }
    /// What finds all within this reach.
    pub fn plan(&self, reach: f64) -> Plan {
        let candidate = candidates::candidate_of(&self.filter.reaching(reach), &self.index);
        candidate.map_or(Plan::Eof, |c| Plan::Index { scan: c.scan, filter: c.filter })
    }
    /// Whether a document's place is farther away than this.
    ///
    /// # Errors
    /// Those of [`document::meter::spend`].
    pub fn is_beyond(&self, reach: f64, doc: Doc<'_>) -> Result<bool> {
        Ok(self.near.distance_at(&self.path, doc)?.is_some_and(|distance| distance > reach))
    }
}
