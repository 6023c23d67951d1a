//! Time series: measurements kept in buckets.
//!
//! ```text
//! collection X  =  view over system.buckets.X:  [{$_internalUnpackBucket: {timeField, metaField}}]
//!
//! measurement {_id, time, meta, a, b}
//!      │ split: meta goes to the bucket, the rest is a row
//!      ▼
//! bucket      one value of meta, one window of time, at most 1000 rows        (crate `series`)
//!      ▲
//! filter      what it says of meta and time is asked of the buckets first     [`predicate`]
//! index       {meta: 1, time: 1} of X is {meta: 1, control.min.time: 1, control.max.time: 1} of its buckets   [`indexes`]
//! ```

pub mod indexes;
pub mod near;
pub mod predicate;
#[cfg(test)]
mod tests;

use document::{Document, Value, doc};
pub use series::{Options, UNPACK, bucket, seconds_of};

/// What the name of a collection of buckets begins with.
pub const BUCKETS_PREFIX: &str = "system.buckets.";

/// The namespace of the buckets of a time series.
pub fn buckets_of(ns: &str) -> String {
    let (db, name) = ns.split_once('.').unwrap_or((ns, ""));
    format!("{db}.{BUCKETS_PREFIX}{name}")
}

/// The time series whose buckets a namespace holds by its name, whether there are any or not.
pub fn series_of(buckets: &str) -> Option<String> {
    let (db, name) = buckets.split_once('.')?;
    Some(format!("{db}.{}", name.strip_prefix(BUCKETS_PREFIX)?))
}

/// The options that a pipeline's first stage unpacks buckets by.
pub fn unpacked_by(pipeline: &[Value]) -> Option<Options> {
    let stage = pipeline.first()?.as_document()?;
    Options::of_document(stage.get_document(UNPACK)?)
}

/// A pipeline over buckets, with the part of its first filter that buckets can answer put before they are unpacked.
pub fn with_bucket_filter(pipeline: Vec<Value>) -> Vec<Value> {
    let Some(options) = unpacked_by(&pipeline) else { return pipeline };
    let said = first_filter(&pipeline).and_then(|filter| predicate::on_buckets(filter, &options));
    let filters: Vec<Value> =
        said.into_iter().chain(near::on_buckets(&pipeline)).map(Value::Document).collect();
    match filters.is_empty() {
        true => pipeline,
        false => std::iter::once(doc! { "$match": { "$and": filters } }.into()).chain(pipeline).collect(),
    }
}

/// The filter of the measurements that such a pipeline begins with.
fn first_filter(pipeline: &[Value]) -> Option<&Document> {
    pipeline.get(1)?.as_document()?.get_document("$match")
}

/// What the first filter of a pipeline over buckets says of their shard keys.
pub fn shard_key_filter(pipeline: &[Value], options: &Options) -> Option<Document> {
    predicate::on_shard_key(first_filter(pipeline)?, options)
}
