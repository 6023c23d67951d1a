//! Time series: measurements kept in buckets.
//!
//! ```text
//! collection X  =  view over system.buckets.X:  [{$_internalUnpackBucket: {timeField, metaField}}]
//!
//! measurement {_id, time, meta, a, b}
//!      │ split: meta goes to the bucket, the rest is a row
//!      ▼
//! bucket      one value of meta, one window of time, at most 1000 rows        [`bucket`]
//!      ▲
//! filter      what it says of meta and time is asked of the buckets first     [`predicate`]
//! index       {meta: 1, time: 1} of X is {meta: 1, control.min.time: 1, control.max.time: 1} of its buckets   [`indexes`]
//! ```
//!
//! A window is a stretch of `bucketMaxSpanSeconds` counted from 1970, so that a measurement belongs to one window whatever
//! came before it, and late measurements do not close the bucket that is being filled.

pub mod bucket;
pub mod indexes;
pub mod near;
pub mod predicate;
#[cfg(test)]
mod tests;

use document::{Document, Value, doc};

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

/// The stage that makes measurements of buckets.
pub const UNPACK: &str = "$_internalUnpackBucket";

/// What must be known of a time series collection to read and write its buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub time: String,
    pub meta: Option<String>,
    pub span_seconds: i64,
    pub rounding_seconds: i64,
}

/// What a granularity means: the span of a bucket, and to what its least time is rounded.
pub fn seconds_of(granularity: Option<&str>) -> (i64, i64) {
    match granularity {
        Some("minutes") => (86_400, 3600),
        Some("hours") => (2_592_000, 86_400),
        _ => (3600, 60),
    }
}

impl Options {
    /// Reads the option `timeseries` of a collection, or the argument of the unpacking stage.
    pub fn of_document(d: &Document) -> Option<Options> {
        let (span, rounding) = seconds_of(d.get_str("granularity"));
        Some(Options {
            time: d.get_str("timeField")?.to_string(),
            meta: d.get_str("metaField").map(str::to_string),
            span_seconds: d.get_i64("bucketMaxSpanSeconds").unwrap_or(span).max(1),
            rounding_seconds: d.get_i64("bucketRoundingSeconds").unwrap_or(rounding).max(1),
        })
    }
    /// The number of the window that a time is in.
    pub fn window(&self, millis: i64) -> i64 {
        millis.div_euclid(self.span_seconds.saturating_mul(1000))
    }
    /// The time rounded down, as `control.min` says it.
    pub fn rounded(&self, millis: i64) -> i64 {
        let step = self.rounding_seconds.saturating_mul(1000);
        millis.saturating_sub(millis.rem_euclid(step))
    }
    /// These with windows so short that all measurements of one have the same rounded time, and so the same shard key as
    /// their bucket.
    pub fn narrow(&self) -> Options {
        Options { span_seconds: self.rounding_seconds, ..self.clone() }
    }
    /// The stage that unpacks these buckets.
    pub fn unpack_stage(&self) -> Document {
        let mut spec = doc! { "timeField": self.time.as_str() };
        if let Some(meta) = &self.meta {
            spec.push("metaField", meta.as_str());
        }
        spec.push("bucketMaxSpanSeconds", self.span_seconds);
        doc! { UNPACK: spec }
    }
    /// Whether a path is the meta field or below it; the rest of it with its dot.
    pub fn below_meta<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rest = path.strip_prefix(self.meta.as_deref()?)?;
        (rest.is_empty() || rest.starts_with('.')).then_some(rest)
    }
}

/// The options that a pipeline's first stage unpacks buckets by.
pub fn unpacked_by(pipeline: &[Value]) -> Option<Options> {
    let stage = pipeline.first()?.as_document()?;
    Options::of_document(stage.get_document(UNPACK)?)
}

/// A pipeline over buckets, with the part of its first filter that buckets can answer put before they are unpacked.
pub fn with_bucket_filter(pipeline: Vec<Value>) -> Vec<Value> {
    let filter =
        unpacked_by(&pipeline).and_then(|options| predicate::on_buckets(first_filter(&pipeline)?, &options));
    let Some(filter) = filter else { return pipeline };
    std::iter::once(Value::Document(doc! { "$match": filter })).chain(pipeline).collect()
}

/// The filter of the measurements that such a pipeline begins with.
fn first_filter(pipeline: &[Value]) -> Option<&Document> {
    pipeline.get(1)?.as_document()?.get_document("$match")
}

/// What the first filter of a pipeline over buckets says of their shard keys.
pub fn shard_key_filter(pipeline: &[Value], options: &Options) -> Option<Document> {
    predicate::on_shard_key(first_filter(pipeline)?, options)
}
