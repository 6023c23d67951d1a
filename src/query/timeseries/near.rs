//! `$geoNear` over measurements: their places are known once buckets are unpacked, so each is measured then and all are sorted.
//!
//! ```text
//! [$_internalUnpackBucket, $geoNear {key, near, query, ..}, ..]
//!     = [$_internalUnpackBucket, $match query, $_internalComputeGeoNearDistance {key, near, ..}, $sort by the distance, ..]
//! ```

use super::unpacked_by;
use crate::pipeline::stages::geo_near::{MEASURE, MEASURED};
use document::{Document, Result, Value, bail, doc};

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
