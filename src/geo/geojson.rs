//! GeoJSON, read from BSON and checked as the real server checks it.
//!
//! Coordinates are longitude and latitude. A ring is closed, has at least three different vertices and does not cross
//! itself; it encloses the smaller of the two sides, except under the reference system with strict winding, which is for
//! polygons larger than a hemisphere.

use crate::Geometry;
use crate::geometry::sphere_point;
use crate::legacy::{self, Pair};
use crate::ring::{self, Edges};
use document::{Doc, Element, Result, ValueRef, bail, meter};
use s2rst::s2::polyline::Polyline;
use s2rst::s2::{Loop, Point, Polygon};

const CRS_84: &str = "urn:ogc:def:crs:OGC:1.3:CRS84";
const EPSG_4326: &str = "EPSG:4326";
const STRICT: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";

/// The `type` of a GeoJSON object; `None` for anything else.
pub fn kind(d: Doc<'_>) -> Option<&'static str> {
    const KINDS: [&str; 7] = [
        "Point",
        "LineString",
        "Polygon",
        "MultiPoint",
        "MultiLineString",
        "MultiPolygon",
        "GeometryCollection",
    ];
    let Some(ValueRef::String(name)) = d.get("type") else { return None };
    KINDS.into_iter().find(|kind| *kind == name)
}

/// Reads a GeoJSON object.
///
/// # Errors
/// BadValue (2) says what is wrong with it; those of [`meter::spend`].
pub fn read(d: Doc<'_>) -> Result<Geometry> {
    let Some(kind) = kind(d) else {
        let shown = d.get("type").map_or("missing".to_string(), |v| document::shell::value(&v.to_value()));
        bail!(BAD_VALUE, "unknown GeoJSON type: {shown}");
    };
    let strict = reference_system(d)?;
    if strict && kind != "Polygon" {
        bail!(BAD_VALUE, "the strict winding order CRS is only supported for Polygon geometries: {kind}");
    }
    if kind == "GeometryCollection" {
        return collection(d);
    }
    let Some(coordinates) = d.get("coordinates") else {
        bail!(BAD_VALUE, "{kind} must have coordinates");
    };
    let mut out = Geometry::default();
    match kind {
        "Point" => out = Geometry::of_point(position(coordinates)?),
        "LineString" => out.lines.push(line(coordinates)?),
        "Polygon" => out.polygons.push(polygon(coordinates, strict)?),
        "MultiPoint" => {
            let points = positions(coordinates)?;
            if points.is_empty() {
                bail!(BAD_VALUE, "MultiPoint coordinates must have at least 1 element");
            }
            out.points = points.into_iter().map(sphere_point).collect();
        }
        "MultiLineString" => {
            for item in several(coordinates, kind)? {
                out.lines.push(line(item)?);
            }
        }
        _ => {
            for item in several(coordinates, kind)? {
                out.polygons.push(polygon(item, false)?);
            }
        }
    }
    Ok(out)
}

/// Whether the object asks for strict winding.
pub fn is_strict(d: Doc<'_>) -> bool {
    reference_system(d).unwrap_or(false)
}

fn collection(d: Doc<'_>) -> Result<Geometry> {
    let Some(ValueRef::Array(items)) = d.get("geometries") else {
        bail!(BAD_VALUE, "GeometryCollection geometries must be an array");
    };
    let mut out = Geometry::default();
    for item in items.iter() {
        let ValueRef::Document(inner) = item.value() else {
            bail!(BAD_VALUE, "Element {} of \"geometries\" is not an object", item.name());
        };
        if kind(inner) == Some("GeometryCollection") {
            bail!(BAD_VALUE, "GeometryCollections cannot be nested");
        }
        out.extend(read(inner)?);
    }
    if out.is_empty() {
        bail!(BAD_VALUE, "GeometryCollection geometries must have at least 1 element");
    }
    Ok(out)
}

fn several<'d>(v: ValueRef<'d>, kind: &str) -> Result<Vec<ValueRef<'d>>> {
    let ValueRef::Array(items) = v else { bail!(BAD_VALUE, "{kind} coordinates must be an array") };
    let items: Vec<ValueRef<'d>> = items.iter().map(|e| e.value()).collect();
    if items.is_empty() {
        bail!(BAD_VALUE, "{kind} coordinates must have at least 1 element");
    }
    Ok(items)
}

/// Whether `crs` asks for strict winding.
fn reference_system(d: Doc<'_>) -> Result<bool> {
    let Some(crs) = d.get("crs") else { return Ok(false) };
    let ValueRef::Document(crs) = crs else { bail!(BAD_VALUE, "GeoJSON CRS must be an object") };
    if !matches!(crs.get("type"), Some(ValueRef::String("name"))) {
        bail!(BAD_VALUE, "GeoJSON CRS must have field \"type\": \"name\"");
    }
    let Some(ValueRef::Document(properties)) = crs.get("properties") else {
        bail!(BAD_VALUE, "CRS must have field \"properties\" which is an object");
    };
    match properties.get("name") {
        Some(ValueRef::String(CRS_84 | EPSG_4326)) => Ok(false),
        Some(ValueRef::String(STRICT)) => Ok(true),
        Some(ValueRef::String(other)) => bail!(BAD_VALUE, "Unknown CRS name: {other}"),
        _ => bail!(BAD_VALUE, "In CRS, \"properties.name\" must be a string"),
    }
}

/// Longitude and latitude.
fn position(v: ValueRef<'_>) -> Result<Pair> {
    let pair = match v {
        ValueRef::Array(d) => legacy::pair(d),
        ValueRef::Document(_) => legacy::point(v),
        _ => None,
    };
    let Some((lng, lat)) = pair else {
        bail!(BAD_VALUE, "Point must only contain numeric elements: longitude, then latitude");
    };
    if !(-180.0..=180.0).contains(&lng) || !(-90.0..=90.0).contains(&lat) {
        bail!(BAD_VALUE, "longitude/latitude is out of bounds, lng: {lng} lat: {lat}");
    }
    Ok((lng, lat))
}

fn positions(v: ValueRef<'_>) -> Result<Vec<Pair>> {
    let ValueRef::Array(items) = v else {
        bail!(BAD_VALUE, "GeoJSON coordinates must be an array of coordinates")
    };
    let counted = |e: Element<'_>| {
        meter::spend(1)?;
        position(e.value())
    };
    items.iter().map(counted).collect()
}

fn line(v: ValueRef<'_>) -> Result<Polyline> {
    let mut vertices: Vec<Point> = positions(v)?.into_iter().map(sphere_point).collect();
    vertices.dedup();
    if vertices.len() < 2 {
        bail!(BAD_VALUE, "GeoJSON LineString must have at least 2 vertices");
    }
    let antipodal = vertices.windows(2).any(|w| w[0] == -w[1]);
    if antipodal {
        bail!(BAD_VALUE, "GeoJSON LineString has adjacent vertices that are antipodal");
    }
    Ok(Polyline::new(vertices))
}

fn polygon(v: ValueRef<'_>, strict: bool) -> Result<Polygon> {
    let ValueRef::Array(rings) = v else { bail!(BAD_VALUE, "Polygon coordinates must be an array") };
    let mut loops = Vec::new();
    for item in rings.iter() {
        let points = positions(item.value())?;
        if points.is_empty() {
            bail!(BAD_VALUE, "Loop has no vertices: coordinates must not be empty");
        }
        if points.first() != points.last() {
            bail!(BAD_VALUE, "Loop is not closed, first vertex does not equal last vertex");
        }
        if points.len() < 4 {
            bail!(BAD_VALUE, "Loop must have at least 3 different vertices");
        }
        let mut one = ring::of(&points);
        check_loop(&one)?;
        if !strict {
            one.normalize();
        }
        loops.push(one);
    }
    let Some(shell) = loops.first() else { bail!(BAD_VALUE, "Polygon has no loops.") };
    if strict && loops.len() > 1 {
        bail!(BAD_VALUE, "Only one simple loop is allowed in a big polygon");
    }
    for hole in &loops[1..] {
        meter::spend(hole.num_vertices() + shell.num_vertices() / 8)?;
        if !shell.contains_loop(hole) {
            bail!(
                BAD_VALUE,
                "Secondary loops not contained by first exterior loop - secondary loops must be holes in the first loop"
            );
        }
    }
    Ok(Polygon::from_loops(loops))
}

fn check_loop(one: &Loop) -> Result<()> {
    if one.num_vertices() < 3 {
        bail!(BAD_VALUE, "Loop must have at least 3 different vertices");
    }
    meter::spend(one.num_vertices())?;
    let whole = Polygon::from_loops(vec![one.clone()]);
    let reason = match one.validate().err().or_else(|| whole.validate().err()) {
        Some(reason) => Some(reason),
        None => crossing(one)?,
    };
    match reason {
        Some(reason) => bail!(BAD_VALUE, "Loop is not valid: {reason}"),
        None => Ok(()),
    }
}

/// Two vertices of the loop that are the same, or two of its edges that cross.
fn crossing(one: &Loop) -> Result<Option<String>> {
    if let Some((i, j)) = ring::repeated_vertices(one)? {
        return Ok(Some(format!("Duplicate vertices: {i} and {j}")));
    }
    Ok(match ring::edges(one)? {
        Edges::Apart => None,
        Edges::Cross(i, j) => Some(format!("Edges {i} and {j} cross")),
        Edges::Crowded => Some("Too many edges overlap to tell whether they cross".to_string()),
    })
}
