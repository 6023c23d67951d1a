//! Shapes of the plane and the distance of points on it.

use crate::legacy::Pair;

/// A shape of the plane.
#[derive(Clone, Debug, PartialEq)]
pub enum Flat {
    /// The lesser and the greater corner.
    Box(Pair, Pair),
    Circle(Pair, f64),
    Polygon(Vec<Pair>),
}

impl Flat {
    /// A box by two opposite corners.
    pub fn of_corners(a: Pair, b: Pair) -> Flat {
        Flat::Box((a.0.min(b.0), a.1.min(b.1)), (a.0.max(b.0), a.1.max(b.1)))
    }

    pub fn contains(&self, p: Pair) -> bool {
        match self {
            Flat::Box(lo, hi) => (lo.0..=hi.0).contains(&p.0) && (lo.1..=hi.1).contains(&p.1),
            Flat::Circle(center, radius) => distance(*center, p) <= *radius,
            Flat::Polygon(vertices) => in_polygon(vertices, p),
        }
    }

    /// The least box that holds the shape.
    pub fn bounds(&self) -> (Pair, Pair) {
        match self {
            Flat::Box(lo, hi) => (*lo, *hi),
            Flat::Circle((x, y), r) => ((x - r, y - r), (x + r, y + r)),
            Flat::Polygon(vertices) => {
                let start = ((f64::INFINITY, f64::INFINITY), (f64::NEG_INFINITY, f64::NEG_INFINITY));
                vertices.iter().fold(start, |(lo, hi), v| {
                    ((lo.0.min(v.0), lo.1.min(v.1)), (hi.0.max(v.0), hi.1.max(v.1)))
                })
            }
        }
    }
}

/// The straight distance.
pub fn distance(a: Pair, b: Pair) -> f64 {
    (a.0 - b.0).hypot(a.1 - b.1)
}

/// A vertex and a horizontal or vertical edge belong to the polygon, even to one that is flat. Otherwise by the parity of the
/// edges that a ray to the right meets, where a point on an edge counts as on its left.
fn in_polygon(vertices: &[Pair], p: Pair) -> bool {
    let mut inside = false;
    let Some(mut before) = vertices.last().copied() else { return false };
    for &v in vertices {
        if on_straight_edge(before, v, p) {
            return true;
        }
        let crossed = p.1 > before.1.min(v.1) && p.1 <= before.1.max(v.1) && p.0 <= before.0.max(v.0);
        if crossed {
            let x = (p.1 - before.1) * (v.0 - before.0) / (v.1 - before.1) + before.0;
            if before.0 == v.0 || p.0 <= x {
                inside = !inside;
            }
        }
        before = v;
    }
    inside
}

/// Whether `p` is an end of the edge, or on it where it runs along an axis.
fn on_straight_edge(a: Pair, b: Pair, p: Pair) -> bool {
    let straight = a.0 == b.0 || a.1 == b.1;
    p == a || p == b || (straight && Flat::of_corners(a, b).contains(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polygon(vertices: &[Pair]) -> Flat {
        Flat::Polygon(vertices.to_vec())
    }

    #[test]
    fn vertices_and_straight_edges_belong_to_a_polygon() {
        let square = polygon(&[(0.0, 0.0), (0.0, 10.0), (10.0, 10.0), (10.0, 0.0)]);
        for p in [
            (0.0, 0.0),
            (0.0, 10.0),
            (10.0, 0.0),
            (5.0, 0.0),
            (0.0, 5.0),
            (10.0, 5.0),
            (5.0, 10.0),
            (5.0, 5.0),
        ] {
            assert!(square.contains(p), "{p:?}");
        }
        assert!(!square.contains((-0.1, 5.0)) && !square.contains((5.0, 10.1)));
    }

    #[test]
    fn a_flat_polygon_holds_its_vertices_and_straight_edges() {
        let flat = polygon(&[(0.0, 0.0), (5.0, 0.0), (10.0, 0.0)]);
        assert!(flat.contains((3.0, 0.0)) && !flat.contains((3.0, 5.0)) && !flat.contains((11.0, 0.0)));
        let one = polygon(&[(1.0, 1.0), (1.0, 1.0), (1.0, 1.0)]);
        assert!(one.contains((1.0, 1.0)) && !one.contains((1.0, 1.5)));
        let slanted = polygon(&[(0.0, 0.0), (5.0, 5.0), (0.0, 0.0)]);
        assert!(slanted.contains((5.0, 5.0)) && !slanted.contains((2.0, 2.0)));
    }

    #[test]
    fn a_slanted_edge_belongs_to_what_is_on_its_left() {
        let triangle = polygon(&[(4.0, 4.0), (6.0, 4.0), (5.0, 6.0)]);
        assert!(triangle.contains((5.5, 5.0)) && !triangle.contains((4.5, 5.0)));
    }
}
