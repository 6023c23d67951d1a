//! The catalog of time series: creating, listing, indexes, collMod, and what becomes of their buckets.
//!
//! `system.buckets.X` is made first, then its index, then the view X. A create that ends in between is finished by the next
//! one with the same options, or undone by a drop; until then there is no X. A drop takes the view and the buckets in one
//! commit.

use super::{Series, is_series};
use crate::ddl::{clustered, collections, indexes, rename, shapes};
use crate::namespace::{Slot, SlotState};
use crate::shape::to_long;
use crate::view::View;
use crate::{Node, Operation};
use document::{Doc, Document, Result, Value, bail, doc};
use query::timeseries::indexes::{bucket_key, bucket_spec, shown};
use query::timeseries::{BUCKETS_PREFIX, Options, buckets_of, seconds_of};
use storage::split_namespace;

/// The longest span of a bucket: a year.
const SPAN_SECONDS_MAX: i64 = 31_536_000;
/// Options of create that a time series collection may have.
const ALLOWED: &[&str] = &[
    "timeseries",
    "expireAfterSeconds",
    "storageEngine",
    "indexOptionDefaults",
    "collation",
    "temp",
    "flags",
];

/// The option `timeseries` with all its members.
///
/// # Errors
/// InvalidOptions (72), BadValue (2), and those of the shape.
pub fn definition(given: Doc<'_>) -> Result<Document> {
    definition_for(given, true)
}

/// The same; `$out` takes any name for the meta field.
pub(crate) fn definition_for(given: Doc<'_>, check_meta: bool) -> Result<Document> {
    shapes::TIMESERIES.check(given)?;
    let mut out = Document::new();
    for name in ["timeField", "metaField"] {
        let Some(field) = given.get_present(name).and_then(|v| v.as_str().map(str::to_string)) else {
            continue;
        };
        if field.contains('\0') {
            bail!(BAD_VALUE, "BSON field 'timeseries.{name}' must not contain null bytes");
        }
        if field.contains('.') {
            bail!(INVALID_OPTIONS, "'{name}' must not contain '.'");
        }
        if name == "metaField" && check_meta && (field == "_id" || out.get_str("timeField") == Some(&field)) {
            bail!(
                INVALID_OPTIONS,
                "The '{name}' option must not be '_id' or the same as timeField: '{field}'"
            );
        }
        out.push(name, field);
    }
    let granularity = given.get_present("granularity").and_then(|v| v.as_str().map(str::to_string));
    let (rounding, span) =
        (seconds(given, "bucketRoundingSeconds")?, seconds(given, "bucketMaxSpanSeconds")?);
    match (granularity, rounding, span) {
        (None, Some(rounding), Some(span)) if rounding == span => {
            out.push("bucketRoundingSeconds", Value::Int32(rounding as i32));
            out.push("bucketMaxSpanSeconds", Value::Int32(span as i32));
        }
        (granularity, None, span) => {
            let granularity = granularity.unwrap_or_else(|| "seconds".to_string());
            let (default, _) = seconds_of(Some(&granularity));
            if span.is_some_and(|span| span != default) {
                bail!(
                    INVALID_OPTIONS,
                    "Timeseries 'bucketMaxSpanSeconds' needs an equal 'bucketRoundingSeconds', or that of the granularity: {default}"
                );
            }
            out.push("granularity", granularity);
            out.push("bucketMaxSpanSeconds", Value::Int32(default as i32));
        }
        _ => bail!(
            INVALID_OPTIONS,
            "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' must be given together and be equal, and without granularity"
        ),
    }
    Ok(out)
}

fn seconds(given: Doc<'_>, name: &str) -> Result<Option<i64>> {
    match given.get_present(name).map(|v| to_long(v).unwrap_or(0)) {
        None => Ok(None),
        Some(n) if (1..=SPAN_SECONDS_MAX).contains(&n) => Ok(Some(n)),
        Some(n) => bail!(
            BAD_VALUE,
            "BSON field '{name}' value must be between 1 and {SPAN_SECONDS_MAX}, actual value '{n}'"
        ),
    }
}

/// Creates a time series collection. Succeeds when one with the same options is there.
///
/// # Errors
/// InvalidOptions (72), NamespaceExists (48), and those of [`definition`].
pub async fn create(node: &Node, op: &Operation, ns: &str, mut given: Document) -> Result<()> {
    // What drivers send though nobody asked for it.
    if given.get("capped").is_some_and(|capped| !capped.truthy()) {
        given.remove("capped");
    }
    if let Some(name) = given.keys().find(|name| !ALLOWED.contains(name)) {
        bail!(INVALID_OPTIONS, "the option '{name}' is not supported with 'timeseries'");
    }
    if op.transaction().is_some() {
        bail!(
            OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
            "Cannot create a time-series collection in a multi-document transaction. NS: {ns}"
        );
    }
    let Some(Value::Document(timeseries)) = given.get("timeseries") else {
        bail!(TYPE_MISMATCH, "BSON field 'create.timeseries' must be an object")
    };
    let timeseries = definition(timeseries.to_doc_buf().doc())?;
    let Some(options) = Options::of_document(&timeseries) else {
        bail!(BAD_VALUE, "the option 'timeseries' has no timeField")
    };
    if let Some(Value::Int64(seconds)) = given.get("expireAfterSeconds") {
        clustered::check_expiry(*seconds, node.now_ms())?;
    }
    let slot = node.namespaces.slot(ns);
    let taken = slot.read(op, |s| Ok(s.collection.is_some())).await?;
    if taken {
        bail!(NAMESPACE_EXISTS, "Collection {ns} already exists.");
    }
    let other_view = slot.read_unchecked().view.as_ref().is_some_and(|v| !is_series(v));
    if other_view {
        bail!(NAMESPACE_EXISTS, "A view already exists. NS: {ns}");
    }
    let buckets = buckets_of(ns);
    let specs = default_indexes(&timeseries)?;
    let made = bucket_options(&given, timeseries);
    loop {
        collections::create_collection(node, op, &buckets, made.clone(), None).await?;
        if !specs.is_empty() {
            indexes::build_indexes(node, op, &node.namespaces.slot(&buckets), &specs, false).await?;
        }
        define_view(node, op, &slot, &options, given.get("collation")).await?;
        // A drop that found no view yet has taken the buckets alone.
        let there = node.namespaces.slot(&buckets).read_unchecked().collection.is_some();
        if there || slot.read_unchecked().view.is_none() {
            return Ok(());
        }
    }
}

pub(crate) fn bucket_options(given: &Document, timeseries: Document) -> Document {
    let mut options = doc! {
        "validator": {
            "$jsonSchema": {
                "bsonType": "object", "required": ["_id", "control", "data"],
                "properties": {
                    "_id": { "bsonType": "objectId" }, "control": { "bsonType": "object" },
                    "data": { "bsonType": "object" }, "meta": {},
                },
                "additionalProperties": false,
            },
        },
        "clusteredIndex": true,
    };
    options.push("timeseries", timeseries);
    for (name, value) in given.iter().filter(|(name, _)| *name != "timeseries") {
        options.push(name, value.clone());
    }
    options
}

/// What is made with the collection, for the buckets.
pub(crate) fn default_indexes(timeseries: &Document) -> Result<Vec<Document>> {
    match Options::of_document(timeseries) {
        Some(options) if options.meta.is_some() => Ok(vec![bucket_spec(&default_index(&options), &options)?]),
        _ => Ok(Vec::new()),
    }
}

fn default_index(options: &Options) -> Document {
    let meta = options.meta.as_deref().unwrap_or_default();
    let mut key = Document::new();
    key.push(meta, 1);
    key.push(options.time.as_str(), 1);
    doc! { "key": key, "name": format!("{meta}_1_{}_1", options.time) }
}

pub(crate) async fn define_view(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    options: &Options,
    collation: Option<&Value>,
) -> Result<()> {
    let (definition, view) = view_of(&slot.ns, options, collation)?;
    crate::view::define(node, op, slot, &definition, |state| {
        Ok(has_no_view(slot, state)?.then(|| view.clone()))
    })
    .await
}

/// The view of a time series, and its definition.
fn view_of(ns: &str, options: &Options, collation: Option<&Value>) -> Result<(Document, View)> {
    let on = format!("{BUCKETS_PREFIX}{}", split_namespace(ns).1);
    let pipeline = Value::Array(vec![Value::Document(options.unpack_stage())]);
    let mut definition = doc! { "_id": ns, "viewOn": on, "pipeline": pipeline };
    if let Some(collation) = collation {
        definition.push("collation", collation.clone());
    }
    match View::from_document(&definition) {
        Some((_, view)) => Ok((definition, view)),
        None => bail!(INTERNAL_ERROR, "the view of time series {ns} is none"),
    }
}

/// Whether the name is free; not so where a time series has it.
///
/// # Errors
/// NamespaceExists (48) where something else has it.
fn has_no_view(slot: &Slot, state: &SlotState) -> Result<bool> {
    let ns = &slot.ns;
    match &state.view {
        Some(existing) if is_series(existing) => Ok(false),
        Some(_) => bail!(NAMESPACE_EXISTS, "A view already exists. NS: {ns}"),
        None if state.collection.is_some() => bail!(NAMESPACE_EXISTS, "Collection {ns} already exists."),
        None => Ok(true),
    }
}

/// `$out` puts one collection on one shard in the place of another.
///
/// # Errors
/// IllegalOperation (20) for a time series that is sharded.
pub(super) fn refuse_sharded(ns: &str, buckets: &SlotState) -> Result<()> {
    match buckets.placement.as_ref().is_some_and(|p| p.filter().is_some()) {
        true => bail!(ILLEGAL_OPERATION, "cannot $out into the sharded time-series collection {ns}"),
        false => Ok(()),
    }
}

/// Makes the buckets `made` those of the time series `target`, with its view, in one commit. What had the name gives way if it is a time
/// series, too.
///
/// # Errors
/// NamespaceExists (48), NamespaceNotFound (26); a stale version of `target`.
pub(crate) async fn put_in_place(
    node: &Node,
    op: &Operation,
    made: &str,
    target: &str,
    series: &Series,
) -> Result<()> {
    let (db, _) = split_namespace(target);
    let slot = |ns: &str| node.namespaces.slot(ns);
    let (view_slot, made_slot) = (slot(target), slot(made));
    let buckets = slot(&buckets_of(target));
    let definitions = slot(&format!("{db}.system.views"));
    let options = series.buckets_options();
    let (definition, view) = view_of(target, &series.options, options.get("collation"))?;
    let definition = definition.to_doc_buf();
    let mut locked = [&*view_slot, &*made_slot, &*buckets];
    locked.sort_by(|a, b| a.ns.cmp(&b.ns));
    let others = [&*definitions, &*made_slot, &*buckets];
    let dropped = node.locked(op, &locked, || {
        node.write_wide_or_section(op, &op.received, (&view_slot, &others), |unit| {
            if let Some(target) = unit.on(target) {
                has_no_view(&view_slot, target.state)?;
            }
            if let Some(there) = unit.on(&buckets.ns) {
                refuse_sharded(target, there.state)?;
            }
            let dropped = rename::rename_latched(unit, made, &buckets.ns, true, |_| Ok(()))?;
            crate::view::put(unit, &view_slot, definition.doc(), view.clone())?;
            Ok(dropped)
        })
    });
    if let Some(gone) = dropped.await? {
        node.forget_dropped(gone.uuid(), gone.ns());
    }
    Ok(())
}

/// How listCollections shows a time series collection.
pub(crate) fn listed(node: &Node, slot: &Slot) -> Option<Document> {
    let series = super::of(node, slot)?;
    let mut options = series.buckets.read_unchecked().collection.as_ref()?.meta().options.clone();
    let timeseries = options.get("timeseries").cloned()?;
    for internal in ["validator", "clusteredIndex", "timeseries"] {
        options.remove(internal);
    }
    let mut shown = doc! { "timeseries": timeseries };
    shown.0.extend(options);
    let name = split_namespace(&slot.ns).1;
    Some(doc! { "name": name, "type": "timeseries", "options": shown, "info": { "readOnly": false } })
}

/// The indexes in terms of measurements.
pub(crate) async fn list_indexes(op: &Operation, series: &Series) -> Result<Vec<Document>> {
    let all = Box::pin(crate::ddl::list::list_indexes_of(op, &series.buckets)).await?;
    Ok(all.iter().filter_map(shown).collect())
}

/// The specifications for the buckets.
///
/// # Errors
/// Those of [`bucket_spec`], and of indexes that no collection could have.
pub(crate) fn bucket_specs(specs: &[Document], options: &Options) -> Result<Vec<Document>> {
    specs.iter().map(|spec| bucket_spec(spec, options)).collect()
}

/// What dropIndexes names, in terms of buckets.
pub(crate) fn bucket_index(index: &Value, options: &Options) -> Result<Value> {
    match index {
        Value::Document(key) => bucket_key(key, options).map(Value::Document),
        other => Ok(other.clone()),
    }
}

/// The change of a collMod, for the collection of buckets.
///
/// # Errors
/// InvalidOptions (72) for what a time series collection does not have, and for a granularity or span that shrinks.
pub(crate) fn bucket_change(change: Document, series: &Series) -> Result<Document> {
    let mut out = doc! { "collMod": split_namespace(&series.buckets.ns).1 };
    for (name, value) in change.into_iter().skip(1) {
        match (name.as_str(), value) {
            ("timeseries", Value::Document(given)) => {
                out.push("timeseries", changed(series.definition(), &given)?);
            }
            ("index", Value::Document(mut index)) => {
                if let Some(Value::Document(key)) = index.get("keyPattern").cloned() {
                    index.insert("keyPattern", bucket_key(&key, &series.options)?);
                }
                out.push("index", index);
            }
            // The real server takes these and does nothing by them.
            ("cappedSize" | "cappedMax", _) => {}
            ("expireAfterSeconds", value) => out.push("expireAfterSeconds", value),
            (name, _) => bail!(INVALID_OPTIONS, "option not supported on a time-series collection: {name}"),
        }
    }
    Ok(out)
}

/// The definition that collMod asks for by its option `timeseries`.
///
/// # Errors
/// InvalidOptions (72) for a granularity or span that shrinks, and those of the shape.
pub fn rebucketed(series: &Series, given: Doc<'_>) -> Result<Document> {
    shapes::COLL_MOD_TIMESERIES.check(given)?;
    changed(series.definition(), &given.to_document())
}

/// The definition with what collMod wants of it.
fn changed(current: Document, given: &Document) -> Result<Document> {
    let mut wanted = given.clone();
    let fields: Vec<(String, Value)> = ["timeField", "metaField"]
        .iter()
        .filter_map(|name| Some((name.to_string(), current.get(name)?.clone())))
        .collect();
    let bucketing = ["granularity", "bucketMaxSpanSeconds", "bucketRoundingSeconds"];
    if !bucketing.iter().any(|name| wanted.get_present(name).is_some()) {
        return Ok(current);
    }
    let given = |name: &str| wanted.get_present(name).is_some();
    // Beside a granularity the span may stand that it has.
    if given("bucketMaxSpanSeconds") != given("bucketRoundingSeconds") && !given("granularity") {
        bail!(INVALID_OPTIONS, "bucketMaxSpanSeconds and bucketRoundingSeconds must be given together");
    }
    wanted.0.splice(0..0, fields);
    let new = definition_for(wanted.to_doc_buf().doc(), false)?;
    let span = |d: &Document| d.get_i64("bucketMaxSpanSeconds").unwrap_or(0);
    let was_custom = current.contains_key("bucketRoundingSeconds");
    let rounding = |d: &Document| Options::of_document(d).map_or(0, |o| o.rounding_seconds);
    if span(&new) < span(&current)
        || rounding(&new) < rounding(&current)
        || (was_custom && new.contains_key("granularity"))
    {
        bail!(
            INVALID_OPTIONS,
            "Invalid transition for timeseries.granularity or bucketing parameters: they can only grow"
        );
    }
    Ok(new)
}

/// What `collStats` says of the buckets.
pub(crate) fn statistics(name: &str, count: i64, bytes: i64) -> Document {
    let average = if count > 0 { bytes / count } else { 0 };
    doc! {
        "bucketsNs": name, "bucketCount": document::number::int_or_long(count),
        "numBytesUncompressed": Value::Int64(bytes), "avgBucketSize": document::number::int_or_long(average),
    }
}
