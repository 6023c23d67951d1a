//! Time series collections on a node: the collection is a view of its buckets, and what is written to it is written to them.
//!
//! Reads need nothing of this: the view's pipeline unpacks the buckets ([`query::timeseries`]). A measurement joins the
//! bucket of its meta and window that is being filled ([`Catalog`] remembers which), or begins one. The catalog is a hint:
//! under the latch the bucket is looked at again, and a hint that is lost costs a bucket that is less full.
//!
//! Invariant: a bucket and all that is logged of it is an ordinary document of an ordinary collection, so replication,
//! recovery and rollback know nothing of measurements.

pub mod ddl;
pub mod delete;
pub mod insert;
pub(crate) mod output;
pub mod update;

use crate::namespace::Slot;
use crate::view::View;
use crate::{Node, Operation};
use document::{Doc, Document, ObjectId, Result, bail};
use parking_lot::Mutex;
use query::timeseries::{BUCKETS_PREFIX, Options, series_of, unpacked_by};
use std::collections::HashMap;
use std::sync::Arc;
use storage::split_namespace;

/// Buckets being filled that are remembered at most; then all are forgotten.
const OPEN_MAX: usize = 100_000;

/// The buckets being filled, by collection, meta and window.
#[derive(Default)]
pub struct Catalog {
    open: Mutex<HashMap<(ObjectKey, Vec<u8>), ObjectId>>,
}

type ObjectKey = [u8; 16];

impl Catalog {
    fn get(&self, collection: ObjectKey, key: &[u8]) -> Option<ObjectId> {
        self.open.lock().get(&(collection, key.to_vec())).copied()
    }
    fn note(&self, collection: ObjectKey, key: &[u8], bucket: ObjectId) {
        let mut open = self.open.lock();
        if open.len() >= OPEN_MAX {
            open.clear();
        }
        open.insert((collection, key.to_vec()), bucket);
    }
}

/// A time series collection.
#[derive(Clone)]
pub struct Series {
    /// The collection as users name it.
    pub ns: String,
    pub buckets: Arc<Slot>,
    pub options: Options,
    /// By what measurements are sorted into buckets: shorter windows where buckets are sharded by time.
    pub(crate) packing: Options,
}

/// Whether a shard key of buckets says something of their time.
pub fn is_by_time(key: &Document) -> bool {
    key.keys().any(|path| path.starts_with("control."))
}

/// Whether a view is that of a time series collection.
pub fn is_series(view: &View) -> bool {
    view.on.starts_with(BUCKETS_PREFIX) && unpacked_by(&view.pipeline).is_some()
}

/// The time series collection of this name, if that is what it is.
pub fn of(node: &Node, slot: &Slot) -> Option<Series> {
    let view = slot.read_unchecked().view.clone().filter(|v| is_series(v))?;
    let (db, _) = split_namespace(&slot.ns);
    let buckets = node.namespaces.slot(&format!("{db}.{}", view.on));
    with_buckets(&slot.ns, buckets)
}

/// The time series that a write command concerns. A router names the buckets of a sharded one, and says so: the view stands on one shard
/// alone.
///
/// # Errors
/// NamespaceNotFound (26) where the buckets are gone; a stale version.
pub(crate) async fn named(
    node: &Node,
    op: &Operation,
    slot: &Arc<Slot>,
    body: Doc<'_>,
) -> Result<Option<Series>> {
    if !body.get_bool("isTimeseriesNamespace").unwrap_or(false) {
        return Ok(of(node, slot));
    }
    let Some(ns) = series_of(&slot.ns) else { return Ok(of(node, slot)) };
    if let Some(series) = with_buckets(&ns, slot.clone()) {
        return Ok(Some(series));
    }
    slot.read(op, |_| Ok(())).await?;
    bail!(NAMESPACE_NOT_FOUND, "ns does not exist: {}", slot.ns)
}

/// The time series collection that has these buckets, if that is what they are.
pub fn of_buckets(buckets: &Arc<Slot>) -> Option<Series> {
    with_buckets(&series_of(&buckets.ns)?, buckets.clone())
}

fn with_buckets(ns: &str, buckets: Arc<Slot>) -> Option<Series> {
    let (options, packing) = {
        let state = buckets.read_unchecked();
        let definition = state.collection.as_ref()?.meta().options.get_document("timeseries")?;
        let options = Options::of_document(definition)?;
        let owned = state.placement.as_ref().and_then(|p| p.filter());
        let by_time = owned.is_some_and(|filter| filter.paths().iter().any(|p| p.starts_with("control.")));
        let packing = if by_time { options.narrow() } else { options.clone() };
        (options, packing)
    };
    Some(Series { ns: ns.to_string(), buckets, options, packing })
}

/// Refuses statements of a client's transaction.
///
/// # Errors
/// OperationNotSupportedInTransaction (263).
pub(crate) fn refuse_transaction(op: &Operation, series: &Series, what: &str) -> Result<()> {
    if op.transaction().is_some() && !op.is_part_of_statement() {
        bail!(
            OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
            "Cannot {what} a time-series collection in a multi-document transaction: {}",
            series.ns
        );
    }
    Ok(())
}
