//! Changes of where a time series `X` is: what is sharded, or moved, is `system.buckets.X`, by a key that is said of buckets.
//!
//! ```text
//! {meta field.sub: 1, time: 1}   ->   {meta.sub: 1, control.min.time: 1}
//! ```
//! The view `X` stays where its database is. A change of the buckets' placement holds the lock of `X`, too: what drops or makes `X`
//! waits for it.

use super::{Ddl, split};
use crate::config::shown;
use crate::key_pattern::ShardKeyPattern;
use crate::routing::table::SERIES;
use document::{Document, Result, Value, bail, doc};
use node::{Node, Operation, timeseries};
use query::timeseries::{Options, buckets_of, series_of};

/// Member of a request that shards buckets: the key in terms of measurements.
pub(super) const SERIES_KEY: &str = "timeseriesKey";

/// Whether the request is of buckets because it was made of their time series.
pub(super) fn is_of_series(request: &Document) -> bool {
    request.contains_key(SERIES)
}
/// The time series whose name a change of its buckets locks, too.
pub(super) fn also_locked(buckets: &str, request: &Document) -> Vec<String> {
    series_of(buckets).filter(|_| is_of_series(request)).into_iter().collect()
}

impl Ddl {
    /// The request for the buckets, where a time series is to be sharded. One that is not there yet is made first.
    ///
    /// # Errors
    /// InvalidOptions (72) for what no time series can be sharded by, for options other than its own, and for a collection
    /// that is none.
    pub(super) async fn series_request(
        &self,
        op: &Operation,
        ns: &str,
        body: &Document,
    ) -> Result<Option<(String, Document)>> {
        let asked = body.get_document("timeseries");
        if let Some(asked) = asked {
            self.make_series(ns, asked, body.get("collation")).await?;
        }
        let node = &self.role.node;
        let Some(series) = timeseries::of(node, &node.namespaces.slot(ns)) else {
            match asked {
                Some(_) => bail!(NAMESPACE_NOT_FOUND, "time-series collection {ns} was dropped meanwhile"),
                None => return Ok(None),
            }
        };
        op.check_interrupt()?;
        let definition = series.definition();
        check_same(ns, asked, &definition)?;
        for refused in ["unique", "unsplittable"] {
            if body.get(refused).is_some_and(Value::truthy) {
                bail!(INVALID_OPTIONS, "The option '{refused}' is not supported for time-series collections");
            }
        }
        let key = body.get_document("shardKey").cloned().unwrap_or_default();
        let on_buckets = shard_key(&key, &series.options)?;
        let buckets = buckets_of(ns);
        let mut out = body.clone();
        if let Some((name, _)) = body.first() {
            out.insert(name, split(&buckets).1);
        }
        for passing in ["timeseries", "collectionUUID"] {
            out.remove(passing);
        }
        out.insert("shardKey", on_buckets);
        out.insert(SERIES_KEY, key);
        out.insert(SERIES, definition);
        Ok(Some((buckets, out)))
    }

    /// What is asked of `ns`, said of its buckets where that is a time series: a shard key, and bounds of its ranges.
    ///
    /// # Errors
    /// InvalidOptions (72) for a key that no time series can be sharded by.
    pub(super) fn on_buckets(&self, ns: String, mut request: Document) -> Result<(String, Document)> {
        for own in [SERIES, SERIES_KEY] {
            request.remove(own);
        }
        let node = &self.role.node;
        let Some(series) = timeseries::of(node, &node.namespaces.slot(&ns)) else { return Ok((ns, request)) };
        request.remove("collectionUUID");
        if let Some(key) = request.get_document("key").cloned() {
            request.insert("key", shard_key(&key, &series.options)?);
            request.insert(SERIES_KEY, key);
        }
        for list in ["zones", "shardDistribution", "_presetReshardedChunks"] {
            let Some(Value::Array(ranges)) = request.get_mut(list) else { continue };
            ranges.iter_mut().for_each(|range| bounds_on_buckets(range, &series.options));
        }
        request.insert(SERIES, series.definition());
        Ok((buckets_of(&ns), request))
    }
    /// Where the documents of `ns` are: of a time series, its buckets.
    pub(super) fn documents_of(&self, ns: String) -> String {
        let node = &self.role.node;
        match timeseries::of(node, &node.namespaces.slot(&ns)) {
            Some(_) => buckets_of(&ns),
            None => ns,
        }
    }

    /// Makes a time series that is to be sharded, if nothing has its name.
    async fn make_series(&self, ns: &str, asked: &Document, collation: Option<&Value>) -> Result<()> {
        let node = &self.role.node;
        let _held = self.locks.take(&[ns], &format!("create of {ns}")).await?;
        let slot = node.namespaces.slot(ns);
        let is_series = timeseries::of(node, &slot).is_some();
        let (is_collection, is_view) = {
            let state = slot.read_unchecked();
            (state.collection.is_some(), state.view.is_some())
        };
        if is_series {
            return Ok(());
        }
        if is_collection || is_view || self.tracked(ns).await?.is_some() {
            bail!(
                INVALID_OPTIONS,
                "the option 'timeseries' cannot be given for {ns}, which is no time-series collection"
            );
        }
        let mut given = doc! { "timeseries": asked.clone() };
        if let Some(collation) = collation {
            given.push("collation", collation.clone());
        }
        let op = Operation::internal();
        timeseries::ddl::create(node, &op, ns, given).await?;
        node.wait_operation_committed(&op).await
    }

    /// Refuses to place buckets that are no more, or another time series' by now: they were looked at before their names were
    /// locked.
    pub(super) fn check_buckets(&self, ns: &str, request: &Document) -> Result<()> {
        if !is_of_series(request) {
            return Ok(());
        }
        let slot = self.role.node.namespaces.slot(ns);
        let state = slot.read_unchecked();
        let Some(collection) = &state.collection else {
            bail!(NAMESPACE_NOT_FOUND, "the time series of {ns} was dropped meanwhile")
        };
        match collection.meta().options.get_document("timeseries") == request.get_document(SERIES) {
            true => Ok(()),
            false => {
                bail!(CONFLICTING_OPERATION_IN_PROGRESS, "the time series of {ns} was changed meanwhile")
            }
        }
    }

    /// Drops the view whose buckets are gone. While their name is blocked there is no other time series of this name, but where this is a
    /// repetition there may be something else by now.
    pub(super) async fn drop_view_of(&self, series: &str) -> Result<()> {
        let is_view = self
            .role
            .node
            .namespaces
            .slot(series)
            .read_unchecked()
            .view
            .as_deref()
            .is_some_and(timeseries::is_series);
        if !is_view {
            return self.role.node.wait_all_committed().await;
        }
        let op = Operation::internal();
        node::ddl::collections::drop_if(&self.role.node, &op, series, false, |_| true).await?;
        self.role.node.wait_operation_committed(&op).await
    }

    /// The buckets of a time series of this name, if they are tracked. What has the name may also be what is left of one.
    pub(super) async fn tracked_buckets(&self, ns: &str) -> Result<Option<(String, Document)>> {
        if split(ns).1.starts_with("system.") || !may_be_series(&self.role.node, ns) {
            return Ok(None);
        }
        let buckets = buckets_of(ns);
        Ok(self.tracked(&buckets).await?.map(|entry| (buckets, entry)))
    }
}

fn may_be_series(node: &Node, ns: &str) -> bool {
    let slot = node.namespaces.slot(ns);
    let state = slot.read_unchecked();
    state.collection.is_none() && state.view.as_deref().is_none_or(timeseries::is_series)
}

/// Refuses options of a time series that are not those it has.
fn check_same(ns: &str, asked: Option<&Document>, definition: &Document) -> Result<()> {
    let Some(asked) = asked else { return Ok(()) };
    let whole = timeseries::ddl::definition(asked.to_doc_buf().doc())?;
    let differs = |name: &&str| asked.get_present(name).is_some() && whole.get(name) != definition.get(name);
    match asked.keys().find(differs) {
        Some(name) => bail!(
            INVALID_OPTIONS,
            "the 'timeseries' option '{name}' of the request is not that of the existing collection {ns}: {}",
            shown(definition)
        ),
        None => Ok(()),
    }
}

/// The shard key of the buckets.
///
/// # Errors
/// InvalidOptions (72) for fields that are neither of the meta field nor the time field, and for the time field in another place than
/// the last, or hashed.
fn shard_key(key: &Document, options: &Options) -> Result<Document> {
    let mut out = Document::new();
    for (at, (path, kind)) in key.iter().enumerate() {
        if let Some(rest) = options.below_meta(path) {
            out.push(format!("meta{rest}"), kind.clone());
            continue;
        }
        if path != options.time {
            bail!(
                INVALID_OPTIONS,
                "only the time field or the meta field can be part of the shard key of a time-series collection: {path}"
            );
        }
        if at + 1 < key.len() {
            bail!(INVALID_OPTIONS, "the time field '{path}' can only be at the end of the shard key");
        }
        if kind.as_str().is_some() {
            bail!(INVALID_OPTIONS, "the time field '{path}' of a time-series collection cannot be hashed");
        }
        out.push(format!("control.min.{path}"), kind.clone());
    }
    Ok(out)
}

/// Says the bounds of a range of measurements of their buckets.
fn bounds_on_buckets(range: &mut Value, options: &Options) {
    let Value::Document(range) = range else { return };
    for side in ["min", "max"] {
        let Some(Value::Document(bound)) = range.get_mut(side) else { continue };
        for (path, _) in &mut bound.0 {
            if let Some(rest) = options.below_meta(path) {
                *path = format!("meta{rest}");
            } else if *path == options.time {
                *path = format!("control.min.{path}");
            }
        }
    }
}

/// The definition of the index `spec`, which serves a shard key, as a time series has it where the request is of one.
///
/// # Errors
/// Those of a bad shard key.
pub(super) fn index_for(request: &Document, spec: Document) -> Result<Document> {
    let options = request.get_document(SERIES).and_then(Options::of_document);
    let (Some(key), Some(options)) = (request.get_document(SERIES_KEY), options) else { return Ok(spec) };
    let own = doc! { "v": 2, "key": key.clone(), "name": ShardKeyPattern::parse(key)?.index_name() };
    let mut made = match query::timeseries::indexes::bucket_spec(&own, &options) {
        Ok(made) => made,
        // One with a hashed field, which nobody else can make.
        Err(_) => {
            let mut made = own.clone();
            made.insert("key", spec.get("key").cloned().unwrap_or(Value::Null));
            made.push("originalSpec", own);
            made
        }
    };
    if let Some(collation) = spec.get("collation") {
        made.insert("collation", collation.clone());
    }
    Ok(made)
}
