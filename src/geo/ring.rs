//! Rings of a polygon: a ring meets itself in no vertex and crosses itself nowhere.
//!
//! Each edge has a box around it, in the three coordinates of the sphere's space. The boxes are gone through along the
//! axis on which the fewest overlap, and only edges whose boxes overlap are compared: nearly none of an ordinary ring. A ring that is made so that all
//! overlap would take as many comparisons as it has pairs of edges: there is a bound to them, beyond which it is no ring. It is a fixed
//! one, since keys of an index are made where nothing can end the work, and must be the same ones again.

use crate::geometry::sphere_point;
use crate::legacy::Pair;
use document::{Result, meter};
use s2rst::s2::edge_crosser::EdgeCrosser;
use s2rst::s2::edge_crossings::Crossing;
use s2rst::s2::{Loop, Point};
use std::cmp::Ordering;

/// A ring as a loop, without its repeated last vertex and its repeated neighbours.
pub(crate) fn of(points: &[Pair]) -> Loop {
    let mut vertices: Vec<Point> = points.iter().map(|p| sphere_point(*p)).collect();
    vertices.pop();
    vertices.dedup();
    Loop::new(vertices)
}

fn coordinates(p: Point) -> [f64; 3] {
    [p.0.x, p.0.y, p.0.z]
}

fn compare(a: &[f64], b: &[f64]) -> Ordering {
    a.partial_cmp(b).unwrap_or(Ordering::Equal)
}

/// The first vertex that comes again, and where.
///
/// # Errors
/// Those of [`meter::spend`].
pub(crate) fn repeated_vertices(one: &Loop) -> Result<Option<(usize, usize)>> {
    let n = one.num_vertices();
    meter::spend(n)?;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| compare(&coordinates(one.vertex(*a)), &coordinates(one.vertex(*b))));
    let again = order.windows(2).filter(|w| one.vertex(w[0]) == one.vertex(w[1])).map(|w| (w[0], w[1]));
    Ok(again.min())
}

/// What an edge lies in. An arc is farther from its chord than the chord's square by four nowhere.
struct Bounds {
    low: [f64; 3],
    high: [f64; 3],
}

/// More than what rounding can take away.
const SLACK: f64 = 1e-14;

impl Bounds {
    fn of(a: Point, b: Point) -> Bounds {
        let (a, b) = (coordinates(a), coordinates(b));
        let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
        let room = square / 4.0 + SLACK;
        let of = |choose: fn(f64, f64) -> f64, room: f64| std::array::from_fn(|i| choose(a[i], b[i]) + room);
        Bounds { low: of(f64::min, -room), high: of(f64::max, room) }
    }
    fn overlap(&self, other: &Bounds) -> bool {
        (0..3).all(|i| self.low[i] <= other.high[i] && other.low[i] <= self.high[i])
    }
}

/// What was found of a ring's edges.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Edges {
    Apart,
    /// The first edge that crosses a later one, and the first such.
    Cross(usize, usize),
    /// More of them overlap than are compared.
    Crowded,
}

/// Whether edges cross.
///
/// # Errors
/// Those of [`meter::spend`].
pub(crate) fn edges(one: &Loop) -> Result<Edges> {
    edges_within(one, COMPARISONS_MAX)
}

fn edges_within(one: &Loop, mut left: usize) -> Result<Edges> {
    let n = one.num_vertices();
    let at = |i: usize| one.vertex(i % n);
    let bounds: Vec<Bounds> = (0..n).map(|i| Bounds::of(at(i), at(i + 1))).collect();
    meter::spend(3 * n)?;
    let sweeps = (0..3).map(|axis| Sweep::of(&bounds, axis));
    let Some(sweep) = sweeps.min_by_key(|sweep| sweep.pairs).filter(|sweep| sweep.pairs <= left) else {
        return Ok(Edges::Crowded);
    };
    left -= sweep.pairs;
    let mut first: Option<(usize, usize)> = None;
    for (at_order, &edge) in sweep.order.iter().enumerate() {
        meter::spend(1)?;
        let near = sweep.order[at_order + 1..].iter().enumerate();
        let reach = bounds[edge].high[sweep.axis];
        for (compared, &other) in near.take_while(|(_, other)| bounds[**other].low[sweep.axis] <= reach) {
            if compared.is_multiple_of(PAIRS_A_UNIT) {
                meter::spend(1)?;
            }
            let (i, j) = (edge.min(other), edge.max(other));
            let neighbours = j == i + 1 || (j + 1) % n == i;
            if neighbours || first.is_some_and(|first| first <= (i, j)) || !bounds[i].overlap(&bounds[j]) {
                continue;
            }
            meter::spend(1)?;
            let Some(less) = left.checked_sub(COMPARISONS_A_CROSSING) else { return Ok(Edges::Crowded) };
            left = less;
            if EdgeCrosser::new(at(i), at(i + 1)).crossing_sign(at(j), at(j + 1)) == Crossing::Cross {
                first = Some((i, j));
            }
        }
    }
    Ok(first.map_or(Edges::Apart, |(i, j)| Edges::Cross(i, j)))
}

/// The edges in the order in which their boxes begin along an axis.
struct Sweep {
    axis: usize,
    order: Vec<usize>,
    /// How many pairs of boxes overlap along the axis.
    pairs: usize,
}

impl Sweep {
    fn of(bounds: &[Bounds], axis: usize) -> Sweep {
        let low = |i: usize| bounds[i].low[axis];
        let mut order: Vec<usize> = (0..bounds.len()).collect();
        order.sort_by(|a, b| low(*a).total_cmp(&low(*b)));
        let behind =
            |(at, &i): (usize, &usize)| order.partition_point(|j| low(*j) <= bounds[i].high[axis]) - at - 1;
        let pairs = order.iter().enumerate().map(behind).sum();
        Sweep { axis, order, pairs }
    }
}

/// Pairs of edges whose boxes are compared in the time of a unit of work.
const PAIRS_A_UNIT: usize = 8;
/// Pairs of boxes that are compared in the time in which two edges are.
const COMPARISONS_A_CROSSING: usize = 8;
/// Pairs of boxes that are compared for one ring, which takes about a second. An ordinary one of 100,000 vertices needs a hundredth of them.
const COMPARISONS_MAX: usize = 200_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// By comparing all with all.
    fn plainly(one: &Loop) -> Option<(usize, usize)> {
        let n = one.num_vertices();
        let at = |i: usize| one.vertex(i % n);
        let crosses = |i: usize, j: usize| {
            EdgeCrosser::new(at(i), at(i + 1)).crossing_sign(at(j), at(j + 1)) == Crossing::Cross
        };
        let pairs = (0..n).flat_map(|i| (i + 2..n).map(move |j| (i, j)));
        pairs.filter(|(i, j)| (j + 1) % n != *i).find(|(i, j)| crosses(*i, *j))
    }

    /// Rings of a few vertices anywhere on the sphere, some small and some around half of it.
    #[test]
    fn the_first_crossing_is_that_of_all_pairs() {
        let mut seed = 7u64;
        let mut next = |span: f64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((seed >> 33) as f64 / (1u64 << 31) as f64 - 0.5) * span
        };
        let (mut crossing, mut simple) = (0, 0);
        for round in 0..4000 {
            let spread = [0.001, 1.0, 40.0, 300.0][round % 4];
            let points: Vec<Pair> =
                (0..4 + round % 9).map(|_| (next(spread), next(spread.min(170.0)))).collect();
            let one = Loop::new(points.into_iter().map(sphere_point).collect());
            let expected = plainly(&one);
            assert_eq!(edges(&one).unwrap(), expected.map_or(Edges::Apart, |(i, j)| Edges::Cross(i, j)));
            *(if expected.is_some() { &mut crossing } else { &mut simple }) += 1;
        }
        assert!(crossing > 500 && simple > 500, "{crossing} {simple}");
    }

    /// Around a point, at distances that vary by a part of the mean.
    fn around(vertices: usize, varying: f64) -> Loop {
        let mut seed = 11u64;
        let point = |i: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let distance = 5.0 * (1.0 + varying * ((seed >> 33) as f64 / (1u64 << 31) as f64 - 0.5));
            let (sin, cos) = (std::f64::consts::TAU * i as f64 / vertices as f64).sin_cos();
            sphere_point((distance * cos, distance * sin))
        };
        Loop::new((0..vertices).map(point).collect())
    }

    #[test]
    fn a_ring_is_compared_a_fixed_number_of_times() {
        assert_eq!(edges(&around(100_000, 0.0)).unwrap(), Edges::Apart);
        assert_eq!(edges(&around(100_000, 0.001)).unwrap(), Edges::Apart);
        // Teeth of which each overlaps all others, whichever way they are gone through.
        let teeth = (0..15_000).flat_map(|i| {
            let x = f64::from(i) * 0.0005;
            [(x, 0.0), (x + 10.000_25, 10.0)]
        });
        let comb = teeth.chain([(7.5, 0.0), (7.5, -1.0), (0.0, -1.0)]).map(sphere_point);
        assert_eq!(edges(&Loop::new(comb.collect())).unwrap(), Edges::Crowded);
        assert_eq!(edges_within(&around(4000, 1.0), 1_000_000).unwrap(), Edges::Crowded);
        assert_eq!(edges_within(&around(400, 1.0), 1_000_000).unwrap(), Edges::Apart);
    }

    #[test]
    fn the_first_vertex_that_comes_again_is_found() {
        let ring = |points: &[Pair]| Loop::new(points.iter().map(|p| sphere_point(*p)).collect());
        assert_eq!(repeated_vertices(&ring(&[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)])).unwrap(), None);
        let twice = ring(&[(5.0, 5.0), (0.0, 0.0), (1.0, 0.0), (-0.0, 0.0), (5.0, 5.0)]);
        assert_eq!(repeated_vertices(&twice).unwrap(), Some((0, 4)));
    }
}
