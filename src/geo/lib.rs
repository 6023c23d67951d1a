//! Geometry on the sphere and on the plane: GeoJSON and legacy points read from BSON, shapes that contain or meet them,
//! distances, and the cells under which an index keeps them.
//!
//! ```text
//! stored value ──read──> Geometry ──┬─ Region::{contains, meets}     $geoWithin, $geoIntersects
//!                                   ├─ distance from a point         $near, $geoNear
//!                                   └─ cells                         keys of 2dsphere and 2d indexes
//! ```
//!
//! The sphere is S2's (crate `s2rst`): edges are great circles. The plane has straight edges and holds points only.
//!
//! Invariant: nothing here knows collections, queries or indexes.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on the machine's clock")
)]

pub mod cells;
pub mod flat;
pub mod geojson;
pub mod geometry;
pub mod legacy;
pub mod region;
mod ring;
#[cfg(test)]
mod tests;

pub use geometry::Geometry;
pub use region::Region;

/// The radius of the earth by which distances are given in metres.
pub const EARTH_RADIUS_M: f64 = 6_378_100.0;
