//! A geometry on the sphere, taken apart into points, lines and polygons.

use crate::legacy::Pair;
use s2rst::s1::Angle;
use s2rst::s2::Region as S2Region;
use s2rst::s2::polyline::Polyline;
use s2rst::s2::{Cap, Cell, LatLng, Point, Polygon};

/// Points, lines and polygons; a GeoJSON value of any type is one of these.
#[derive(Clone, Debug, Default)]
pub struct Geometry {
    pub points: Vec<Point>,
    pub lines: Vec<Polyline>,
    pub polygons: Vec<Polygon>,
    /// The plane coordinates where the value is one point.
    pub flat: Option<Pair>,
}

/// So many vertices are as much work to compare with as a part of its own.
const VERTICES_A_PART: usize = 16;

/// A point of the sphere from longitude and latitude in degrees.
pub fn sphere_point((lng, lat): Pair) -> Point {
    LatLng::from_degrees(lat, lng).normalized().to_point()
}

impl Geometry {
    /// One point.
    pub fn of_point(pair: Pair) -> Geometry {
        Geometry { points: vec![sphere_point(pair)], flat: Some(pair), ..Geometry::default() }
    }

    /// Takes in the parts of another geometry.
    pub fn extend(&mut self, other: Geometry) {
        self.points.extend(other.points);
        self.lines.extend(other.lines);
        self.polygons.extend(other.polygons);
    }

    /// How many points, lines and polygons there are, of which one of many vertices counts as several.
    pub fn parts(&self) -> usize {
        let lines = self.lines.iter().map(|l| 1 + l.num_vertices() / VERTICES_A_PART);
        let polygons = self.polygons.iter().map(|p| 1 + p.num_vertices() / VERTICES_A_PART);
        self.points.len() + lines.sum::<usize>() + polygons.sum::<usize>()
    }

    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.lines.is_empty() && self.polygons.is_empty()
    }

    /// Whether the two have a point in common.
    pub fn meets(&self, other: &Geometry) -> bool {
        let own_points = self.points.iter().any(|p| other.meets_point(*p));
        own_points
            || other.points.iter().any(|p| self.meets_point(*p))
            || self.lines.iter().any(|line| other.meets_line(line))
            || other
                .lines
                .iter()
                .any(|line| self.polygons.iter().any(|p| p.clone().intersects_polyline(line)))
            || self.polygons.iter().any(|a| other.polygons.iter().any(|b| a.intersects_polygon(b)))
    }

    /// A point meets what lies in its leaf cell, which is about a centimetre wide.
    fn meets_point(&self, p: Point) -> bool {
        let cell = Cell::from_point(p);
        self.points.contains(&p)
            || self.lines.iter().any(|line| line.intersects_cell(&cell))
            || self.polygons.iter().any(|polygon| polygon.intersects_cell(&cell))
    }

    fn meets_line(&self, line: &Polyline) -> bool {
        self.lines.iter().any(|l| l.intersects(line))
            || self.polygons.iter().any(|p| p.clone().intersects_polyline(line))
    }

    /// Whether one of the polygons contains each part of `other`.
    pub fn contains(&self, other: &Geometry) -> bool {
        let point = |p: &Point| self.polygons.iter().any(|polygon| polygon.contains_point(p));
        let line = |l: &Polyline| self.polygons.iter().any(|polygon| contains_line(polygon, l));
        let polygon = |b: &Polygon| self.polygons.iter().any(|a| a.contains_polygon(b));
        !other.is_empty()
            && other.points.iter().all(point)
            && other.lines.iter().all(line)
            && other.polygons.iter().all(polygon)
    }

    /// The least distance to `from`, in radians.
    pub fn distance(&self, from: Point) -> f64 {
        let points = self.points.iter().map(|p| p.distance(from).radians());
        let lines = self.lines.iter().map(|line| line.project(from).0.distance(from).radians());
        let polygons = self.polygons.iter().map(|polygon| polygon.get_distance(from).radians());
        points.chain(lines).chain(polygons).fold(f64::INFINITY, f64::min)
    }

    /// Every vertex.
    pub fn vertices(&self) -> impl Iterator<Item = Point> + '_ {
        let lines = self.lines.iter().flat_map(|l| l.vertices_vec().iter().copied());
        let loops = self.polygons.iter().flat_map(|p| p.loops().iter());
        self.points.iter().copied().chain(lines).chain(loops.flat_map(|l| l.vertices().iter().copied()))
    }
}

/// Below this length, in radians, a line is a point to the library, which finds nothing of it outside of any polygon.
const LINE_RADIANS_MIN: f64 = 1e-14;

fn contains_line(polygon: &Polygon, line: &Polyline) -> bool {
    let vertices = line.vertices_vec();
    let length: f64 = vertices.windows(2).map(|edge| edge[0].distance(edge[1]).radians()).sum();
    match vertices.first().filter(|_| length < LINE_RADIANS_MIN) {
        Some(point) => polygon.contains_point(point),
        None => polygon.clone().contains_polyline(line),
    }
}

/// A cap of the sphere around a point, its radius in radians.
pub fn cap(center: Point, radius: f64) -> Cap {
    Cap::from_center_angle(center, Angle::from_radians(radius.min(std::f64::consts::PI)))
}
