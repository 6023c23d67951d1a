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

/// By the parity of the edges that a ray to the right meets. A point on an edge counts as on its left, so that of the
/// edges through a point only those without a second one beyond it take it in.
fn in_polygon(vertices: &[Pair], p: Pair) -> bool {
    let mut inside = false;
    let Some(mut before) = vertices.last().copied() else { return false };
    for &v in vertices {
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
