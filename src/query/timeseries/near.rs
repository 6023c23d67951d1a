//! `$geoNear` over measurements: their places are known once buckets are unpacked, so each is measured then and all are sorted.
//!
//! ```text
//! [$_internalUnpackBucket, $geoNear {key, near, query, ..}, ..]
//!     = [$_internalUnpackBucket, $match query, $_internalComputeGeoNearDistance {key, near, ..}, $sort by the distance, ..]
//! ```
//!
//! One with a `maxDistance` on the sphere asks an index on places for the buckets ([`on_buckets`]).

use super::{predicate, unpacked_by};
use crate::pipeline::stages::geo_near::{MEASURE, MEASURED};
use document::{Document, Result, Value, bail, doc, number};
use geo::legacy;

/// The pipeline over buckets with what stands for a `$geoNear` at the front of the user's.
///
/// # Errors
/// 5860206 for one that names no field.
pub fn with_distances(pipeline: Vec<Value>) -> Result<Vec<Value>> {
    let spec = pipeline.get(1).and_then(Value::as_document).and_then(|stage| stage.get_document("$geoNear"));
    let Some(mut spec) = spec.filter(|_| unpacked_by(&pipeline).is_some()).cloned() else {
        return Ok(pipeline);
    };
    if spec.get("key").is_none() && spec.get("near").is_some() {
        bail!(
            5860206,
            "$geoNear over a time-series collection must say with 'key' which field to measure to"
        );
    }
    let query = match spec.get("query") {
        Some(Value::Document(query)) => Some(doc! { "$match": query.clone() }),
        _ => None,
    };
    if query.is_some() {
        spec.remove("query");
    }
    let behind = [doc! { MEASURE: spec }, doc! { "$sort": { MEASURED: 1 } }, doc! { "$unset": MEASURED }];
    let stages: Vec<Document> = query.into_iter().chain(behind).collect();
    let mut rest = pipeline.into_iter();
    let unpack = rest.next();
    Ok(unpack.into_iter().chain(stages.into_iter().map(Value::Document)).chain(rest.skip(1)).collect())
}

/// What such a pipeline says of buckets where its distances have a limit.
pub(super) fn on_buckets(pipeline: &[Value]) -> Option<Document> {
    let measured = |stage: &Value| stage.as_document()?.get_document(MEASURE).cloned();
    let spec = pipeline.iter().skip(1).take(2).find_map(measured)?;
    let greatest = number::as_f64(spec.get("maxDistance")?).filter(|d| *d >= 0.0)?;
    let (coordinates, unit) = match spec.get("near")? {
        Value::Document(point) if point.get_str("type") == Some("Point") => {
            (point.get("coordinates")?, geo::EARTH_RADIUS_M)
        }
        legacy if spec.get("spherical").is_some_and(Value::truthy) => (legacy, 1.0),
        _ => return None,
    };
    let holder = coordinates.to_holder();
    let (lng, lat) = legacy::point(holder.doc().get("")?)?;
    if !(-180.0..=180.0).contains(&lng) || !(-90.0..=90.0).contains(&lat) {
        return None;
    }
    // A little more than asked for: what lies on the edge must not be missed.
    let radians = greatest / unit * (1.0 + 1e-9) + 1e-12;
    let center = Value::Array(vec![Value::Double(lng), Value::Double(lat)]);
    let around = doc! { "$centerSphere": Value::Array(vec![center, Value::Double(radians)]) };
    let key = spec.get_str("key").filter(|_| radians < std::f64::consts::PI)?;
    Some(predicate::may_hold(key, &around))
}
