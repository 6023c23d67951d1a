//! What a query asks about: a region of the sphere or the plane, and how stored values are read for it.

use crate::flat::Flat;
use crate::geometry::cap;
use crate::{Geometry, geojson, legacy};
use document::{Doc, Result, ValueRef, codes};
use s2rst::s2::{Cap, Point};

/// A region to find geometries in.
#[derive(Clone, Debug)]
pub enum Region {
    /// A GeoJSON geometry.
    Sphere(Box<Geometry>),
    /// `$centerSphere`: a cap of the sphere.
    Cap(Cap),
    /// A shape of the plane.
    Flat(Flat),
}

impl Region {
    /// A cap around a point, the radius in radians.
    pub fn around(center: Point, radius: f64) -> Region {
        Region::Cap(cap(center, radius))
    }

    /// Of how many parts it is: what is compared with it is compared with each.
    pub fn parts(&self) -> usize {
        match self {
            Region::Sphere(own) => own.parts(),
            Region::Cap(_) => 1,
            Region::Flat(Flat::Polygon(vertices)) => vertices.len(),
            Region::Flat(Flat::Box(..) | Flat::Circle(..)) => 1,
        }
    }

    /// Whether the geometry lies in the region.
    pub fn contains(&self, g: &Geometry) -> bool {
        match self {
            Region::Sphere(own) => own.contains(g),
            Region::Cap(cap) => !g.is_empty() && g.vertices().all(|v| cap.contains_point(v)),
            Region::Flat(flat) => g.flat.is_some_and(|p| flat.contains(p)),
        }
    }

    /// Whether the geometry and the region have a point in common.
    pub fn meets(&self, g: &Geometry) -> bool {
        match self {
            Region::Sphere(own) => own.meets(g),
            Region::Cap(cap) => g.distance(cap.center()) <= cap.angle_radius().radians(),
            Region::Flat(flat) => g.flat.is_some_and(|p| flat.contains(p)),
        }
    }
}

/// The geometry that a stored value is; `None` when it is none, or a faulty one.
///
/// # Errors
/// Those of [`document::meter::spend`].
pub fn stored(v: ValueRef<'_>) -> Result<Option<Geometry>> {
    match v {
        ValueRef::Document(d) if is_geojson(d) => match geojson::read(d) {
            Ok(geometry) => Ok(Some(geometry)),
            Err(faulty) if faulty.code == codes::BAD_VALUE => Ok(None),
            Err(ended) => Err(ended),
        },
        v => Ok(legacy::point(v).map(Geometry::of_point)),
    }
}

/// Whether a document claims to be GeoJSON.
pub fn is_geojson(d: Doc<'_>) -> bool {
    matches!(d.get("type"), Some(ValueRef::String(_)))
}
