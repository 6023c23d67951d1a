//! Sizes: of a collection, of a database, of a range of documents.

use crate::{Node, Operation, Request};
use document::{Document, Result, Value, bail, doc, meter};
use std::collections::BTreeSet;
use storage::{Collection, CollectionView};

/// How many documents of the collection that has a name wait for the range deleter: what its tasks (`config.rangeDeletions`) say.
pub fn orphan_count(node: &Node, ns: &str) -> i64 {
    let Some(uuid) = node.namespaces.slot(ns).uuid() else { return 0 };
    let tasks = node.namespaces.slot("config.rangeDeletions");
    let state = tasks.read_unchecked();
    let Some(c) = &state.collection else { return 0 };
    let mut records = c.records();
    let first = records.first();
    std::iter::successors(first, |_| records.next())
        .filter(|(_, task)| task.get("collectionUuid").and_then(|v| v.as_uuid()) == Some(uuid))
        .filter_map(|(_, task)| task.get_i64("numOrphanDocs"))
        .sum()
}

/// The members of `collStats` and of `$collStats.storageStats`. Sizes are divided by `scale`; `avgObjSize` is not.
/// `orphans` is what [`orphan_count`] answers.
pub fn collection_statistics(node: &Node, c: &Collection, scale: i64, orphans: i64) -> Document {
    let size = c.data_bytes() as i64;
    let count = c.len() as i64;
    let index_size = c.index_bytes() as i64;
    let mut d = doc! { "size": number(size / scale), "count": number(count) };
    if count > 0 {
        d.push("avgObjSize", number(size / count));
    }
    let mut sizes = Document::new();
    for i in c.indexes() {
        sizes.push(i.spec().name(), number(i.bytes() as i64 / scale));
    }
    d.push("numOrphanDocs", number(orphans));
    d.push("storageSize", number(c.allocated_bytes() as i64 / scale));
    d.push("freeStorageSize", 0);
    let options = &c.meta().options;
    let capped = c.meta().capped();
    d.push("capped", capped);
    if capped {
        d.push("max", options.get("max").cloned().unwrap_or(Value::Int32(0)));
        let bytes = options.get("size").and_then(document::number::to_i64_saturating).unwrap_or(0);
        d.push("maxSize", number(bytes / scale));
    }
    let ready: Vec<&str> = c.indexes().iter().map(|i| i.spec().name()).collect();
    let begun = node.index_builds.begun(c.uuid(), &ready).into_iter();
    let begun: Vec<Value> = begun.filter_map(|(spec, _)| spec.get("name").cloned()).collect();
    d.push("nindexes", (c.indexes_beside() + begun.len()) as i32);
    d.push("indexDetails", Document::new());
    d.push("indexBuilds", begun);
    d.push("totalIndexSize", number(index_size / scale));
    d.push("totalSize", number((c.allocated_bytes() as i64 + index_size) / scale));
    d.push("indexSizes", sizes);
    d.push("scaleFactor", number(scale));
    if options.contains_key("timeseries") {
        d.remove("count");
        d.remove("avgObjSize");
        d.push("timeseries", crate::timeseries::ddl::statistics(c.ns(), count, size));
    }
    d
}

/// What `collStats` answers of a collection that does not exist.
pub fn no_statistics(scale: i64) -> Document {
    doc! {
        "size": 0, "count": 0, "numOrphanDocs": 0, "storageSize": 0, "totalSize": 0, "nindexes": 0, "totalIndexSize": 0,
        "indexDetails": {}, "indexSizes": {}, "scaleFactor": number(scale),
    }
}

/// The same of the oplog, which is no collection: its size is what the log keeps. `None` for any other name.
pub fn oplog_statistics(node: &Node, ns: &str, scale: i64) -> Option<Document> {
    if ns != "local.oplog.rs" || node.replication.standing().config.is_none() {
        return None;
    }
    let (size, max) = (node.log.bytes() as i64, node.log.retain_bytes().min(i64::MAX as u64) as i64);
    Some(doc! {
        "size": number(size / scale), "count": 0, "numOrphanDocs": 0, "storageSize": number(size / scale),
        "freeStorageSize": 0, "capped": true, "max": 0, "maxSize": number(max / scale), "nindexes": 0,
        "indexDetails": {}, "indexBuilds": [], "totalIndexSize": 0, "totalSize": number(size / scale),
        "indexSizes": {}, "scaleFactor": number(scale),
    })
}

fn number(n: i64) -> Value {
    document::number::int_or_long(n)
}

/// The command's `scale`.
pub fn scale(request: Request<'_>) -> Result<i64> {
    match request.body.get_present("scale") {
        None => Ok(1),
        Some(v) => match document::number::as_f64(&v.to_value()) {
            Some(n) if n >= 1.0 => Ok(n as i64),
            Some(_) => bail!(
                BAD_VALUE,
                "BSON field 'scale' value must be >= 1, actual value '{}'",
                v.as_i64().unwrap_or(0)
            ),
            None => Err(document::wrong_types("scale", v.type_name(), "[long, int, decimal, double]")),
        },
    }
}

/// Runs a `collStats` command.
pub async fn coll_stats(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    let scale = scale(request)?;
    let slot = node.namespaces.slot(&ns);
    let slot = crate::timeseries::of(node, &slot).map_or(slot, |series| series.buckets);
    let orphans = orphan_count(node, &ns);
    let mut reply = doc! { "ns": ns.as_str() };
    let stats = slot
        .read(op, |s| {
            if s.view.is_some() {
                bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Namespace {ns} is a view, not a collection");
            }
            Ok(s.collection.as_ref().map_or_else(
                || oplog_statistics(node, &ns, scale).unwrap_or_else(|| no_statistics(scale)),
                |c| collection_statistics(node, c, scale, orphans),
            ))
        })
        .await?;
    reply.0.extend(stats.0);
    Ok(reply)
}

/// Runs a `dbStats` command.
pub fn db_stats(node: &Node, request: Request<'_>) -> Result<Document> {
    let scale = scale(request)?;
    crate::request::check_database_name(request.db)?;
    let (mut collections, mut views, mut objects, mut data, mut storage, mut indexes, mut index_size) =
        (0i64, 0i64, 0i64, 0i64, 0i64, 0i64, 0i64);
    for slot in node.namespaces.of_database(request.db) {
        let state = slot.read_unchecked();
        views += state.view.is_some() as i64;
        if let Some(c) = &state.collection {
            collections += 1;
            objects += c.len() as i64;
            data += c.data_bytes() as i64;
            storage += c.allocated_bytes() as i64;
            indexes += c.indexes_beside() as i64;
            index_size += c.index_bytes() as i64;
        }
    }
    let scaled = |n: i64| n as f64 / scale as f64;
    let space = node.options.files.space(&node.options.dir).unwrap_or_default();
    let mut reply = doc! {
        "db": request.db, "collections": collections, "views": views, "objects": objects,
        "avgObjSize": if objects > 0 { data as f64 / objects as f64 } else { 0.0 },
        "dataSize": scaled(data), "storageSize": scaled(storage), "indexes": indexes,
        "indexSize": scaled(index_size), "totalSize": scaled(storage + index_size), "scaleFactor": scale,
        "fsUsedSize": scaled(space.used as i64), "fsTotalSize": scaled(space.total as i64),
    };
    // Nothing is kept that holds no data.
    if request.body.get_present("freeStorage").is_some_and(|v| v.truthy()) {
        reply.0.extend(doc! {
            "freeStorageSize": 0.0, "indexFreeStorageSize": 0.0, "totalFreeStorageSize": 0.0,
        });
    }
    Ok(reply)
}

/// Runs a `dataSize` command: `{dataSize: ns, keyPattern?, min?, max?, estimate?}`. A range is counted by scanning.
pub async fn data_size(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let Some(ns) = request.argument().and_then(|v| v.as_str()) else {
        bail!(INVALID_NAMESPACE, "dataSize needs the full namespace")
    };
    let slot = node.namespaces.slot(ns);
    let (min, max) = (request.body.get_document("min"), request.body.get_document("max"));
    if min.is_some() != max.is_some() {
        bail!(BAD_VALUE, "min and max must be both or neither specified");
    }
    let range = min.zip(max).map(|(lo, hi)| (lo.to_document(), hi.to_document()));
    let snapshot = slot
        .read(op, |s| match s.view.is_some() {
            true => bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Namespace {ns} is a view, not a collection"),
            false => {
                let fits = |lo: &Document| {
                    let mut keys = s.collection.iter().flat_map(|c| c.indexes()).map(|i| i.spec().key());
                    s.collection.is_none() || keys.any(|key| begins_with(key, lo))
                };
                if range.as_ref().is_some_and(|(lo, _)| !fits(lo)) {
                    bail!(OPERATION_FAILED, "couldn't find valid index containing key pattern");
                }
                Ok(s.collection.as_ref().map(|c| c.snapshot()))
            }
        })
        .await?;
    let started = runtime::Instant::now();
    let (mut size, mut objects) = (0i64, 0i64);
    if let Some(c) = snapshot {
        match &range {
            None => (size, objects) = (c.data_bytes() as i64, c.len() as i64),
            Some((lo, hi)) => {
                let mut records = c.records();
                let mut next = records.first();
                while let Some((_, d)) = next {
                    meter::spend(4)?;
                    if in_range(d, lo, hi) {
                        size += d.bytes().len() as i64;
                        objects += 1;
                    }
                    next = records.next();
                }
            }
        }
    }
    let millis = started.elapsed().as_millis() as i64;
    let estimate = request.body.get_present("estimate").is_some_and(|v| v.truthy());
    Ok(doc! { "estimate": estimate, "size": size, "numObjects": objects, "millis": millis })
}

/// Whether the fields of a key pattern begin with those of a bound.
fn begins_with(pattern: &Document, bound: &Document) -> bool {
    pattern.len() >= bound.len() && pattern.iter().zip(bound.iter()).all(|((a, _), (b, _))| a == b)
}

fn in_range(d: document::Doc<'_>, lo: &Document, hi: &Document) -> bool {
    let key = |bound: &Document, of: Option<document::Doc<'_>>| {
        let mut k = Vec::new();
        for (path, v) in bound.iter() {
            match of {
                None => document::key_string::append_value(&mut k, v, false),
                Some(d) => document::key_string::append(
                    &mut k,
                    document::path::get(d, path).unwrap_or(document::ValueRef::Null),
                    false,
                ),
            }
        }
        k
    };
    let k = key(lo, Some(d));
    key(lo, None) <= k && k < key(hi, None)
}

/// Names of the databases that hold anything.
pub fn database_names(node: &Node) -> BTreeSet<String> {
    node.namespaces
        .all()
        .iter()
        .filter(|s| s.read_unchecked().collection.is_some())
        .map(|s| s.database.name.clone())
        .collect()
}
