//! Sharded time series: what a client asks of `X`, said of `system.buckets.X`, which is what the catalog knows.
//!
//! ```text
//! insert    a measurement goes to the shard that owns the bucket it would begin; the shard sorts it into its buckets
//! update,   to the shards whose buckets can hold what the filter matches; what concerns one measurement that may be on any
//! delete    of several is a transaction, see [`super::one_document`]
//! find ...  a view like any other: the shard that has it says what it means, and that is asked of the buckets
//! ```
//! A router learns that the buckets of `X` are sharded when the primary refuses a write to `X` because of the buckets' version; what it
//! knows of them it keeps up to date like all placement.

use super::body::Placement;
use super::cluster::database_of;
use super::task::Task;
use document::{Doc, DocBuf, DocWriter, Result, Value, ValueRef};
use query::timeseries::{Options, bucket, predicate};

/// A time series that is sharded, or was moved by itself.
#[derive(Clone)]
pub(super) struct Series {
    /// The namespace of its buckets.
    pub buckets: String,
    pub options: Options,
    pub placement: Placement,
}

/// The namespace of the buckets that a time series of this name would have.
pub(super) fn buckets_of(ns: &str) -> Option<String> {
    let name = ns.strip_prefix(database_of(ns))?.strip_prefix('.')?;
    (!name.starts_with("system.")).then(|| query::timeseries::buckets_of(ns))
}

/// The time series of this name, if the catalog says where its buckets are.
pub(super) async fn sharded(task: &Task<'_>, ns: &str) -> Result<Option<Series>> {
    let Some(buckets) = buckets_of(ns) else { return Ok(None) };
    let Some(placement) = task.placement(&buckets).await? else { return Ok(None) };
    let table = placement.table.as_ref().or(placement.alone.as_ref());
    let options = table.and_then(|table| table.series.clone());
    Ok(options.map(|options| Series { buckets, options, placement }))
}

/// The same where this router has heard that such buckets may be: what every write asks.
pub(super) async fn sharded_if_known(task: &Task<'_>, ns: &str) -> Result<Option<Series>> {
    match buckets_of(ns).is_some_and(|buckets| task.router.cluster.may_be_sharded(&buckets)) {
        true => sharded(task, ns).await,
        false => Ok(None),
    }
}

/// Where a write goes, and to which time series if that is what it concerns and the catalog says where its buckets are.
pub(super) struct Placed {
    pub placement: Placement,
    pub series: Option<Series>,
}

/// Where what a write to `ns` concerns is now; its database is created if need be.
pub(super) async fn placed(task: &Task<'_>, ns: &str) -> Result<Placed> {
    let placement = task.placement_for_write(ns).await?;
    if placement.table.is_none()
        && placement.alone.is_none()
        && let Some(series) = sharded_if_known(task, ns).await?
    {
        return Ok(Placed { placement: series.placement.clone(), series: Some(series) });
    }
    Ok(Placed { placement, series: None })
}

impl Series {
    /// The client's command with the buckets in the place of the time series.
    pub(super) fn renamed(&self, body: Doc<'_>) -> DocBuf {
        let name = self.buckets.strip_prefix(database_of(&self.buckets)).unwrap_or_default();
        DocWriter::build(|w| {
            let mut fields = body.iter();
            if let Some(first) = fields.next() {
                // Some commands name it in full.
                let in_full =
                    matches!(first.value(), ValueRef::String(s) if s.contains('.') && self.is_named(s));
                w.string(first.name(), if in_full { &self.buckets } else { name.trim_start_matches('.') });
            }
            fields.for_each(|e| w.element(&e));
        })
    }
    fn is_named(&self, ns: &str) -> bool {
        buckets_of(ns).as_deref() == Some(&self.buckets)
    }
    /// The fields of its shard key that a measurement has.
    ///
    /// # Errors
    /// BadValue (2) for a measurement without a time.
    pub(super) fn key_fields(&self, measurement: Doc<'_>) -> Result<DocBuf> {
        bucket::key_fields(measurement, &self.options)
    }
    /// A pipeline over the buckets that finds one measurement.
    pub(super) fn search(&self, filter: Doc<'_>) -> Value {
        document::array![
            self.options.unpack_stage(), { "$match": filter }, { "$limit": 1 }, { "$project": { "_id": 1 } }
        ]
    }
    /// What a filter on measurements says of shard keys.
    pub(super) fn key_filter(&self, filter: Doc<'_>) -> DocBuf {
        let said = predicate::on_shard_key(&filter.to_document(), &self.options);
        said.unwrap_or_default().to_doc_buf()
    }
}
