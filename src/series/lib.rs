//! Buckets of time series: how measurements are kept in documents, and given back.
//!
//! ```text
//! measurement ──split──> meta, row      row ──append──> bucket ──rows──> row ──measurement──> measurement
//! ```
//!
//! A window is a stretch of `bucketMaxSpanSeconds` counted from 1970, so that a measurement belongs to one window whatever
//! came before it, and late measurements do not close the bucket that is being filled.
//!
//! Invariant: nothing here knows collections, queries or indexes.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on the machine's clock")
)]

pub mod bucket;
#[cfg(test)]
mod tests;

use document::{Document, doc};

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
