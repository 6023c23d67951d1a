//! `$geoWithin` (`$within`), `$geoIntersects`, `$near`, `$nearSphere` (`$geoNear`).
//!
//! A near predicate both limits (by its distances) and sorts: a find that has one and no sort of its own returns the
//! nearest first ([`super::super::Matcher::near`]). It stands once, among the conjuncts at the top.

use super::PathInput;
use crate::QueryContext;
use crate::expression::parse::show;
use crate::matcher::Matcher;
use crate::matcher::ast::{Condition, ElementTest, Leaf, Node, Test};
use crate::matcher::path::{LeafArrays, Path, walk};
use ::geo::flat::{self, Flat};
use ::geo::geometry::{cap, sphere_point};
use ::geo::legacy::{self, Pair};
use ::geo::region::stored;
use ::geo::{EARTH_RADIUS_M, Geometry, Region, geojson};
use document::{Doc, DocWriter, Document, Element, Error, Result, Value, ValueRef, bail, doc};
use std::f64::consts::PI;
use std::sync::Arc;

/// A test of a value's place.
#[derive(Debug)]
pub struct Geo {
    pub kind: Kind,
    shown: Document,
}

#[derive(Debug)]
pub enum Kind {
    Within(Region),
    Intersects(Region),
    Near(Near),
}

/// A point to be near to.
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    pub center: Pair,
    pub metric: Metric,
    /// In the unit of the metric, both included.
    pub least: f64,
    pub greatest: f64,
}

/// How distances are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// On the plane, in the unit of the coordinates.
    Flat,
    /// On the sphere, in radians.
    Radians,
    /// On the sphere, in metres.
    Metres,
}

impl Near {
    /// The distance of a geometry in the unit of the metric.
    pub fn distance(&self, g: &Geometry) -> f64 {
        match self.metric {
            Metric::Flat => g.flat.map_or(f64::INFINITY, |p| flat::distance(self.center, p)),
            // By way of metres, whose rounding clients of the real server see.
            Metric::Radians => g.distance(sphere_point(self.center)) * EARTH_RADIUS_M / EARTH_RADIUS_M,
            Metric::Metres => g.distance(sphere_point(self.center)) * EARTH_RADIUS_M,
        }
    }
    /// The least distance of what a value holds that is within the limits: itself, or one of an array's elements.
    ///
    /// # Errors
    /// Those of [`document::meter::spend`].
    pub fn distance_of(&self, v: ValueRef<'_>) -> Result<Option<f64>> {
        Ok(self.nearest(v)?.map(|(distance, _)| distance))
    }
    /// The same with the value that is nearest.
    ///
    /// # Errors
    /// Those of [`document::meter::spend`].
    pub fn nearest<'v>(&self, v: ValueRef<'v>) -> Result<Option<(f64, ValueRef<'v>)>> {
        let within =
            |g: &Geometry| Some(self.distance(g)).filter(|d| (self.least..=self.greatest).contains(d));
        if let Some(g) = stored(v)? {
            return Ok(within(&g).map(|distance| (distance, v)));
        }
        let ValueRef::Array(items) = v else { return Ok(None) };
        let mut best: Option<(f64, ValueRef<'v>)> = None;
        for e in items.iter() {
            if let Some(distance) = stored(e.value())?.and_then(|g| within(&g))
                && best.is_none_or(|(least, _)| distance < least)
            {
                best = Some((distance, e.value()));
            }
        }
        Ok(best)
    }
    /// The least distance within the limits among the values at a path of a document.
    ///
    /// # Errors
    /// Those of [`document::meter::spend`].
    pub fn distance_at(&self, path: &Path, doc: Doc<'_>) -> Result<Option<f64>> {
        let mut least: Option<f64> = None;
        walk(doc, &path.parts, LeafArrays::Whole, &mut |e, _| {
            let Some(e) = e else { return Ok(false) };
            if let Some(d) = self.distance_of(e.value())? {
                least = Some(least.map_or(d, |l| l.min(d)));
            }
            Ok(false)
        })?;
        Ok(least)
    }
    /// Where all that is near enough lies, for an index to look in.
    pub fn region(&self) -> Region {
        let radians = match self.metric {
            Metric::Flat => return Region::Flat(Flat::Circle(self.center, self.greatest)),
            Metric::Radians => self.greatest,
            Metric::Metres => self.greatest / EARTH_RADIUS_M,
        };
        // A little more than asked for: what lies on the edge must not be missed.
        Region::Cap(cap(sphere_point(self.center), (radians * (1.0 + 1e-9) + 1e-12).min(PI)))
    }
    pub fn is_flat(&self) -> bool {
        self.metric == Metric::Flat
    }
    /// As far as a place on the sphere can be, in the unit of the metric.
    pub fn farthest(&self) -> f64 {
        match self.metric {
            Metric::Flat => f64::INFINITY,
            Metric::Radians => PI,
            Metric::Metres => PI * EARTH_RADIUS_M,
        }
    }
}

impl Geo {
    pub fn near(&self) -> Option<&Near> {
        match &self.kind {
            Kind::Near(near) => Some(near),
            _ => None,
        }
    }
    /// Where every match lies, at least in part.
    pub fn region(&self) -> std::borrow::Cow<'_, Region> {
        use std::borrow::Cow;
        match &self.kind {
            Kind::Within(region) | Kind::Intersects(region) => Cow::Borrowed(region),
            Kind::Near(near) => Cow::Owned(near.region()),
        }
    }
}

/// What a geometry costs to be compared with one part of a region, in units of the meter.
const PART_UNITS: usize = 10;

impl ElementTest for Geo {
    fn matches(&self, e: &Element<'_>) -> Result<bool> {
        match &self.kind {
            Kind::Within(region) => Ok(stored(e.value())?.is_some_and(|g| region.contains(&g))),
            Kind::Intersects(region) => Ok(stored(e.value())?.is_some_and(|g| region.meets(&g))),
            Kind::Near(near) => Ok(near.distance_of(e.value())?.is_some()),
        }
    }
    fn units(&self, e: &Element<'_>) -> usize {
        let parts = match &self.kind {
            Kind::Within(region) | Kind::Intersects(region) => region.parts(),
            Kind::Near(_) => 1,
        };
        PART_UNITS * parts + e.value_bytes().len() / 8
    }
    fn describe(&self) -> Document {
        self.shown.clone()
    }
    fn geo(&self) -> Option<&Geo> {
        Some(self)
    }
}

fn made(name: &'static str, kind: Kind, input: &PathInput<'_>) -> Condition {
    let shown = Document(vec![(name.to_string(), input.argument.value().to_value())]);
    Condition::Test(Test::Other(Arc::new(Geo { kind, shown })))
}

/// These predicates stand alone under their path.
fn alone(name: &str, input: &PathInput<'_>) -> Result<()> {
    let other =
        input.siblings.iter().find(|e| e.name() != input.argument.name() && e.name() != "$uniqueDocs");
    match other {
        Some(other) => bail!(BAD_VALUE, "{name} cannot be combined with {}", other.name()),
        None => Ok(()),
    }
}

/// Whether a stored value is a geometry: a GeoJSON object or a pair of coordinates.
pub fn is_place(v: ValueRef<'_>) -> bool {
    stored(v).is_ok_and(|geometry| geometry.is_some())
}

pub fn within(input: &PathInput<'_>) -> Result<Condition> {
    let ValueRef::Document(d) = input.argument.value() else {
        bail!(BAD_VALUE, "malformed geo query: {}", shown(input));
    };
    alone("$geoWithin", input)?;
    let mut members = d.iter().filter(|e| e.name() != "$uniqueDocs");
    let (Some(shape), None) = (members.next(), members.next()) else {
        bail!(BAD_VALUE, "geo query takes exactly one shape: {}", shown(input));
    };
    let region = match shape.name() {
        "$geometry" => {
            let geometry = geometry(shape.value())?;
            if geometry.polygons.is_empty() || !geometry.points.is_empty() || !geometry.lines.is_empty() {
                bail!(BAD_VALUE, "$geoWithin not supported with provided geometry: {}", shown(input));
            }
            Region::Sphere(Box::new(geometry))
        }
        "$box" => {
            let [a, b, ..] = pairs(shape.value())?[..] else { bail!(BAD_VALUE, "$box needs two corners") };
            Region::Flat(Flat::of_corners(a, b))
        }
        "$polygon" => {
            let vertices = pairs(shape.value())?;
            if vertices.len() < 3 {
                bail!(BAD_VALUE, "Polygon must have at least 3 points");
            }
            Region::Flat(Flat::Polygon(vertices))
        }
        "$center" => {
            let (center, radius) = circle(shape.value())?;
            Region::Flat(Flat::Circle(center, radius))
        }
        "$centerSphere" => {
            let (center, radius) = circle(shape.value())?;
            check_lng_lat(center)?;
            Region::around(sphere_point(center), radius)
        }
        other => bail!(BAD_VALUE, "unknown geo specifier: {other}: {}", show(&shape.value().to_value())),
    };
    Ok(made("$geoWithin", Kind::Within(region), input))
}

pub fn intersects(input: &PathInput<'_>) -> Result<Condition> {
    let ValueRef::Document(d) = input.argument.value() else {
        bail!(BAD_VALUE, "malformed geo query: {}", shown(input));
    };
    alone("$geoIntersects", input)?;
    let mut members = d.iter();
    let (Some(shape), None) = (members.next(), members.next()) else {
        bail!(BAD_VALUE, "$geoIntersects takes exactly one $geometry: {}", shown(input));
    };
    if shape.name() != "$geometry" {
        bail!(BAD_VALUE, "$geoIntersects not supported with provided geometry: {}", shown(input));
    }
    let region = Region::Sphere(Box::new(geometry(shape.value())?));
    Ok(made("$geoIntersects", Kind::Intersects(region), input))
}

/// What is asked of buckets for a predicate on places of their measurements.
pub const OF_BUCKET: &str = "$_internalBucketGeoWithin";

/// `{$_internalBucketGeoWithin: {withinRegion: <what $geoWithin or $geoIntersects takes>, field: <path>}}`.
pub fn of_bucket(e: Element<'_>, ctx: &QueryContext) -> Result<Node> {
    let ValueRef::Document(d) = e.value() else { bail!(TYPE_MISMATCH, "{OF_BUCKET} expects an object") };
    let (Some(region), Some(field)) = (d.get_document("withinRegion"), d.get_str("field")) else {
        bail!(FAILED_TO_PARSE, "{OF_BUCKET} requires both 'withinRegion' and 'field'");
    };
    let operator = if region.get("$geometry").is_some() { "$geoIntersects" } else { "$geoWithin" };
    let path = format!("data.{field}");
    let filter = DocWriter::build(|w| w.document_with(&path, |w| w.document(operator, region)));
    match Matcher::parse(filter.doc(), ctx)?.root() {
        Node::Leaf(leaf) => Ok(Node::MayHold(leaf.clone())),
        _ => bail!(BAD_VALUE, "{OF_BUCKET} with an invalid region"),
    }
}

/// As explain shows it.
pub fn shown_of_bucket(leaf: &Leaf) -> Document {
    let region = match &leaf.test {
        Test::Other(test) => test.describe().0.into_iter().next().map(|(_, region)| region),
        _ => None,
    };
    let field = leaf.path.text.strip_prefix("data.").unwrap_or(&leaf.path.text);
    doc! { OF_BUCKET: { "withinRegion": region.unwrap_or(Value::Null), "field": field } }
}

pub fn near(input: &PathInput<'_>) -> Result<Condition> {
    near_of("$near", input)
}
pub fn near_sphere(input: &PathInput<'_>) -> Result<Condition> {
    near_of("$nearSphere", input)
}

/// `$maxDistance` and `$minDistance` are read with the point they belong to.
pub fn distance_limit(input: &PathInput<'_>) -> Result<Condition> {
    let near = ["$near", "$nearSphere", "$geoNear"];
    if !input.siblings.iter().any(|e| near.contains(&e.name())) {
        bail!(BAD_VALUE, "{} needs $near or $nearSphere beside it", input.argument.name());
    }
    Ok(Condition::All(Vec::new()))
}

fn near_of(name: &'static str, input: &PathInput<'_>) -> Result<Condition> {
    let limits = ["$maxDistance", "$minDistance", "$uniqueDocs"];
    let is_near = |n: &str| ["$near", "$nearSphere", "$geoNear", "$geoWithin", "$geoIntersects"].contains(&n);
    for e in input.siblings.iter().filter(|e| e.name() != input.argument.name()) {
        if is_near(e.name()) {
            bail!(BAD_VALUE, "{name} cannot be combined with {}", e.name());
        }
        if !limits.contains(&e.name()) {
            bail!(34413, "invalid argument in geo near query: {}", e.name());
        }
    }
    let near = match input.argument.value() {
        ValueRef::Document(d) if d.get("$geometry").is_some() => near_geometry(d, input.siblings)?,
        ValueRef::Document(d) | ValueRef::Array(d) => near_legacy(name, d, input.siblings)?,
        _ => bail!(BAD_VALUE, "near must be first in: {}", shown(input)),
    };
    Ok(made(name, Kind::Near(near), input))
}

/// `{$geometry: <point>, $minDistance, $maxDistance}`: metres on the sphere.
fn near_geometry(d: Doc<'_>, siblings: Doc<'_>) -> Result<Near> {
    let (mut center, mut least, mut greatest) = (None, 0.0, f64::INFINITY);
    for e in d {
        match e.name() {
            "$geometry" => center = Some(near_point(e.value())?),
            "$minDistance" => least = finite_limit(&e)?,
            "$maxDistance" => greatest = finite_limit(&e)?,
            other => bail!(BAD_VALUE, "invalid argument in geo near query: {other}"),
        }
    }
    let Some((center, metric)) = center else { bail!(BAD_VALUE, "$near requires a point") };
    let beside = |name: &str| siblings.iter().find(|e| e.name() == name);
    if let Some(e) = beside("$minDistance") {
        least = limit(&e)?;
    }
    if let Some(e) = beside("$maxDistance") {
        greatest = limit(&e)?;
    }
    Ok(Near { center, metric, least, greatest })
}

fn near_point(v: ValueRef<'_>) -> Result<(Pair, Metric)> {
    match v {
        ValueRef::Document(d) if geojson::kind(d) == Some("Point") => {
            let g = geojson::read(d)?;
            match g.flat {
                Some(point) => Ok((point, Metric::Metres)),
                None => bail!(BAD_VALUE, "invalid point in geo near query $geometry argument"),
            }
        }
        ValueRef::Document(d) if d.get("type").is_none() && d.get("coordinates").is_some() => {
            let coordinates = d.get("coordinates").unwrap_or(ValueRef::Null);
            match legacy::point(coordinates) {
                Some(point) => {
                    check_lng_lat(point)?;
                    Ok((point, Metric::Metres))
                }
                None => bail!(
                    BAD_VALUE,
                    "invalid point in geo near query $geometry argument: {}",
                    show(&v.to_value())
                ),
            }
        }
        ValueRef::Document(d) if d.get("type").is_some() => {
            bail!(BAD_VALUE, "invalid point in geo near query $geometry argument: {}", show(&v.to_value()))
        }
        v => match legacy::exact_point(v) {
            Some(point) => {
                check_lng_lat(point)?;
                Ok((point, Metric::Metres))
            }
            None => bail!(
                BAD_VALUE,
                "invalid point in geo near query $geometry argument: {}",
                show(&v.to_value())
            ),
        },
    }
}

/// `[x, y]` with distances beside it, or as a third member.
fn near_legacy(name: &str, d: Doc<'_>, siblings: Doc<'_>) -> Result<Near> {
    let Some(center) = legacy::pair(d) else {
        bail!(BAD_VALUE, "invalid point provided to {name}: {}", show(&ValueRef::Document(d).to_value()))
    };
    let metric = if name == "$nearSphere" { Metric::Radians } else { Metric::Flat };
    let (mut least, mut greatest) = (0.0, f64::INFINITY);
    for (i, e) in d.iter().enumerate().skip(2) {
        match e.name() {
            "$minDistance" => least = legacy_limit(&e)?,
            "$maxDistance" => greatest = legacy_limit(&e)?,
            _ if i == 2 && legacy::number(e.value()).is_some() => greatest = legacy_limit(&e)?,
            other => bail!(BAD_VALUE, "invalid argument in geo near query: {other}"),
        }
    }
    for e in siblings {
        match e.name() {
            "$minDistance" => least = legacy_limit(&e)?,
            "$maxDistance" => greatest = legacy_limit(&e)?,
            _ => {}
        }
    }
    if metric == Metric::Radians {
        check_lng_lat(center)?;
    }
    Ok(Near { center, metric, least, greatest })
}

/// A distance beside the point, or with it.
fn limit(e: &Element<'_>) -> Result<f64> {
    match legacy::number(e.value()) {
        Some(x) if x >= 0.0 => Ok(x),
        Some(_) => bail!(BAD_VALUE, "{} must be non-negative", e.name().trim_start_matches('$')),
        None => bail!(BAD_VALUE, "{} must be a number", e.name().trim_start_matches('$')),
    }
}

/// One with the point, which must end somewhere.
fn finite_limit(e: &Element<'_>) -> Result<f64> {
    match limit(e)? {
        x if x.is_finite() => Ok(x),
        _ => bail!(BAD_VALUE, "{} must be non-negative", e.name().trim_start_matches('$')),
    }
}

/// A distance beside a legacy point, which has codes of its own.
fn legacy_limit(e: &Element<'_>) -> Result<f64> {
    let code = if e.name() == "$minDistance" { 16893 } else { 16895 };
    match legacy::number(e.value()) {
        Some(x) if x >= 0.0 => Ok(x),
        Some(_) => Err(Error::new(code + 1, format!("{} must be non-negative", e.name()))),
        None => Err(Error::new(code, format!("{} must be a number", e.name()))),
    }
}

fn geometry(v: ValueRef<'_>) -> Result<Geometry> {
    match v {
        ValueRef::Document(d) if d.get("type").is_some() || d.get("coordinates").is_some() => {
            geojson::read(d)
        }
        v => match legacy::exact_point(v) {
            Some(point) => {
                check_lng_lat(point)?;
                Ok(Geometry::of_point(point))
            }
            None => bail!(BAD_VALUE, "unknown GeoJSON type: {}", show(&v.to_value())),
        },
    }
}

fn check_lng_lat((lng, lat): Pair) -> Result<()> {
    if (-180.0..=180.0).contains(&lng) && (-90.0..=90.0).contains(&lat) {
        return Ok(());
    }
    bail!(BAD_VALUE, "Legacy point is out of bounds for spherical query")
}

/// The points of `$box` and `$polygon`, given as an array or a document of points.
fn pairs(v: ValueRef<'_>) -> Result<Vec<Pair>> {
    let (ValueRef::Array(d) | ValueRef::Document(d)) = v else {
        bail!(BAD_VALUE, "Point must be an array or object");
    };
    let point = |e: Element<'_>| match legacy::exact_point(e.value()) {
        Some(p) => Ok(p),
        None => bail!(
            BAD_VALUE,
            "Point must be an array or object of two numbers, found {}",
            show(&e.value().to_value())
        ),
    };
    d.iter().map(point).collect()
}

/// The center and radius of `$center` and `$centerSphere`.
fn circle(v: ValueRef<'_>) -> Result<(Pair, f64)> {
    let (ValueRef::Array(d) | ValueRef::Document(d)) = v else {
        bail!(BAD_VALUE, "center must be an array of a point and a radius");
    };
    let mut members = d.iter();
    let (Some(center), Some(radius), None) = (members.next(), members.next(), members.next()) else {
        bail!(BAD_VALUE, "Only 2 fields allowed for circular region");
    };
    let Some(center) = legacy::exact_point(center.value()) else {
        bail!(BAD_VALUE, "Point must be an array or object")
    };
    match legacy::number(radius.value()) {
        Some(radius) if radius >= 0.0 => Ok((center, radius)),
        Some(_) => bail!(BAD_VALUE, "radius must be non-negative"),
        None => bail!(BAD_VALUE, "radius must be a non-negative number"),
    }
}

fn shown(input: &PathInput<'_>) -> String {
    let d = DocWriter::build(|w| w.element(&input.argument));
    document::shell::document(&d.to_document())
}

/// A near predicate stands once, and among the conjuncts at the top.
///
/// # Errors
/// BadValue (2).
pub fn check_near(root: &Node) -> Result<()> {
    let conjuncts = root.conjuncts();
    let top = conjuncts.iter().filter(|n| near_of_node(n).is_some()).count();
    if top > 1 {
        bail!(BAD_VALUE, "Too many geoNear expressions");
    }
    if conjuncts.iter().any(|n| near_of_node(n).is_none() && holds_near(n)) {
        bail!(BAD_VALUE, "geo $near must be top-level expr");
    }
    Ok(())
}

/// Whether a filter asks for an order by distance, whatever else is wrong with it.
pub fn names_near(filter: Doc<'_>) -> bool {
    let names = |d: Doc<'_>| d.iter().any(|e| ["$near", "$nearSphere", "$geoNear"].contains(&e.name()));
    filter.iter().any(|e| match (e.name(), e.value()) {
        ("$and" | "$or" | "$nor", ValueRef::Array(list)) => {
            list.iter().filter_map(|item| item.value().as_document()).any(names_near)
        }
        (name, ValueRef::Document(operators)) => !name.starts_with('$') && names(operators),
        _ => false,
    })
}

/// The error for a distance where nothing sorts by it.
pub fn near_refused() -> Error {
    document::err!(
        5626500,
        "$geoNear, $near, and $nearSphere are not allowed in this context, as these operators require sorting geospatial data. If you do not need sort, consider using $geoWithin instead."
    )
}

/// The near predicate that a node is.
pub fn near_of_node(node: &Node) -> Option<(&str, &Near)> {
    let Node::Leaf(leaf) = node else { return None };
    let Test::Other(test) = &leaf.test else { return None };
    Some((&leaf.path.text, test.geo()?.near()?))
}

/// The node with its near predicate reaching no farther than `greatest`, in the unit of its metric.
pub fn reaching(node: &Node, greatest: f64) -> Node {
    match node {
        Node::And(children) => Node::And(children.iter().map(|n| reaching(n, greatest)).collect()),
        Node::Leaf(leaf) => {
            let Test::Other(test) = &leaf.test else { return node.clone() };
            let Some(geo) = test.geo() else { return node.clone() };
            let Some(near) = geo.near() else { return node.clone() };
            let kind = Kind::Near(Near { greatest, ..near.clone() });
            let test = Test::Other(Arc::new(Geo { kind, shown: geo.shown.clone() }));
            Node::Leaf(Leaf { path: leaf.path.clone(), test })
        }
        other => other.clone(),
    }
}

fn holds_near(node: &Node) -> bool {
    match node {
        Node::And(list) | Node::Or(list) | Node::Nor(list) => list.iter().any(holds_near),
        Node::Not(inner) => holds_near(inner),
        Node::Leaf(leaf) => test_holds_near(&leaf.test),
        _ => false,
    }
}

fn test_holds_near(test: &Test) -> bool {
    match test {
        Test::Other(test) => test.geo().is_some_and(|g| g.near().is_some()),
        Test::ElemMatchObject(node) => holds_near(node),
        Test::ElemMatchValue(list) => list.iter().any(condition_holds_near),
        _ => false,
    }
}

fn condition_holds_near(condition: &Condition) -> bool {
    match condition {
        Condition::Test(test) => test_holds_near(test),
        Condition::All(list) => list.iter().any(condition_holds_near),
        Condition::Not(inner) => condition_holds_near(inner),
    }
}
