//! collMod: changes of a collection's options, of one of its indexes, or of a view's definition.
//!
//! Values are coerced before anything else looks at them, so that the log and the catalog hold booleans and integers
//! whatever the client sent.

use super::capped::CAPPED_BYTES_MAX;
use super::shapes;
use crate::namespace::Slot;
use crate::read::pseudo::OPLOG;
use crate::shape;
use crate::view::View;
use crate::write::extras::Validator;
use crate::{Node, Operation, Request};
use document::{Doc, Document, Result, Value, ValueRef, bail, doc, err};
use futures::future::BoxFuture;
use storage::{IndexSpec, split_namespace};

/// Runs a `collMod` command.
pub fn coll_mod<'a>(
    node: &'a Node,
    op: &'a Operation,
    request: Request<'a>,
) -> BoxFuture<'a, Result<Document>> {
    Box::pin(modify(node, op, request))
}

async fn modify(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    node.check_write_concern(op)?;
    shapes::COLL_MOD.check_command(request.body, request.sequences)?;
    if request.body.get("expireAfterSeconds") == Some(ValueRef::Null) {
        return Err(document::wrong_types("collMod.expireAfterSeconds", "null", "[string, long]"));
    }
    let slot = node.namespaces.slot(&ns);
    node.check_uuid(request.body, &slot)?;
    let change = change(request.body, split_namespace(&ns).1)?;
    if ns == OPLOG && ["cappedSize", "cappedMax"].iter().any(|field| change.contains_key(field)) {
        bail!(INVALID_OPTIONS, "Cannot modify the size of the oplog with collMod; use replSetResizeOplog");
    }
    let dry_run = request.body.get("dryRun").is_some_and(|v| v.truthy());
    if dry_run && !change.get_document("index").is_some_and(|i| i.contains_key("unique")) {
        bail!(INVALID_OPTIONS, "dryRun mode is only supported for the conversion of an index to unique");
    }
    let series = crate::timeseries::named(node, op, &slot, request.body).await?;
    let (slot, ns, change) = match &series {
        Some(series) => {
            let change = crate::timeseries::ddl::bucket_change(change, series)?;
            (series.buckets.clone(), series.buckets.ns.clone(), change)
        }
        None => (slot, ns, change),
    };
    if slot.read_unchecked().view.is_some() {
        return modify_view(node, op, &slot, &change).await;
    }
    if change.contains_key("viewOn") || change.contains_key("pipeline") {
        slot.read(op, |s| s.collection.as_ref().map(|_| ()).ok_or_else(|| missing(&ns))).await?;
        bail!(INVALID_OPTIONS, "'viewOn' and 'pipeline' are only supported on views");
    }
    let (reply, _) = node
        .change(op, &slot, |unit| {
            let before = unit.existing()?;
            check_capped(before.meta().capped(), series.is_some(), &change)?;
            check_expiry(before, &change, node.now_ms())?;
            let reply = index_reply(before, change.get_document("index"))?;
            let (uuid, old) = (before.uuid(), before_change(before, &reply));
            Validator::check_new(&ns, &change)?;
            Validator::check_encryption(&change, &before.meta().options)?;
            if dry_run {
                check_conversion(before, &change)?;
                return Ok(Document::new());
            }
            let c = unit.state.collection.as_mut().ok_or_else(|| missing(&ns))?;
            storage::recovery::apply_coll_mod(c, &change)?;
            unit.state.heed_options();
            unit.command(Some(uuid), change.clone(), Some(old), false);
            if reply.contains_key("hidden_new") {
                // An index that was hidden or shown begins anew, as one that was just made.
                let specs = unit.state.collection.iter().flat_map(|c| c.indexes()).map(|i| i.spec());
                let named = change.get_document("index");
                for spec in specs.filter(|spec| named.is_some_and(|change| is_named(spec, change))) {
                    node.index_use.forget_index(&ns, spec.name());
                }
            }
            Ok(reply)
        })
        .await?;
    Ok(reply)
}

/// Whether a change names this index. A clustered index is found by its name only, and then refused.
fn is_named(spec: &IndexSpec, change: &Document) -> bool {
    match change.get_str("name") {
        Some(name) => spec.shown_name() == name,
        None => {
            !spec.is_clustered() && change.get_document("keyPattern").is_some_and(|key| spec.has_key(key))
        }
    }
}

/// What the entry keeps of the state before: the collection's options, and those of the index that change.
fn before_change(c: &storage::Collection, reply: &Document) -> Document {
    let mut options = doc! { "uuid": Value::uuid(c.uuid()) };
    options.0.extend(c.meta().options.clone());
    let mut old = doc! { "collectionOptions_old": options };
    let index: Document = reply
        .iter()
        .filter_map(|(name, v)| Some((name.strip_suffix("_old")?.to_string(), v.clone())))
        .collect();
    if !index.is_empty() {
        old.push("indexOptions_old", index);
    }
    old
}

fn missing(ns: &str) -> document::Error {
    err!(NAMESPACE_NOT_FOUND, "ns does not exist: {ns}")
}

/// What is to change, coerced: the command without its generic fields, as the log holds it.
fn change(body: Doc<'_>, name: &str) -> Result<Document> {
    let mut change = doc! { "collMod": name };
    for e in body.iter().skip(1) {
        let (name, v) = (e.name(), e.value());
        if matches!(v, ValueRef::Null | ValueRef::Undefined)
            || matches!(name, "dryRun" | "collectionUUID" | "isTimeseriesNamespace")
            || !shapes::COLL_MOD.has(name)
        {
            continue;
        }
        match (name, v) {
            ("index", ValueRef::Document(index)) => change.push(name, index_change(index)?),
            ("expireAfterSeconds", v) => change.push(name, collection_expiry(v)?),
            ("timeseries", ValueRef::Document(given)) => {
                shapes::COLL_MOD_TIMESERIES.check(given)?;
                change.push(name, given.to_document());
            }
            ("pipeline", v) => change.push(name, View::stages(v)),
            ("cappedSize", v) => change.push(name, capped_size(v)?),
            ("cappedMax", v) => change.push(name, capped_max(v)?),
            ("changeStreamPreAndPostImages", ValueRef::Document(images)) => {
                shapes::PRE_AND_POST_IMAGES.check(images)?;
                let enabled = images.get("enabled").is_some_and(|v| v.truthy());
                change.push(name, doc! { "enabled": enabled });
            }
            (name, v) => change.push(name, v.to_value()),
        }
    }
    Ok(change)
}

fn capped_size(v: ValueRef<'_>) -> Result<i64> {
    match shape::to_long(v) {
        Some(size) if (1..=CAPPED_BYTES_MAX).contains(&size) => Ok(size),
        _ => bail!(
            BAD_VALUE,
            "BSON field 'cappedSize' value must be >= 1 and <= 2^50, actual value '{}'",
            document::shell::value(&v.to_value())
        ),
    }
}

fn capped_max(v: ValueRef<'_>) -> Result<i64> {
    match shape::to_long(v) {
        Some(max) if max <= i64::from(i32::MAX) => Ok(max),
        _ => bail!(
            BAD_VALUE,
            "BSON field 'cappedMax' value must be < 2^31, actual value '{}'",
            document::shell::value(&v.to_value())
        ),
    }
}

fn check_capped(capped: bool, series: bool, change: &Document) -> Result<()> {
    if !capped && (change.contains_key("cappedSize") || change.contains_key("cappedMax")) {
        bail!(INVALID_OPTIONS, "Collection must be capped.");
    }
    if change.contains_key("timeseries") && !series {
        bail!(INVALID_OPTIONS, "option only supported on a time-series collection: timeseries");
    }
    Ok(())
}

/// Documents expire by collection only where it is clustered.
fn check_expiry(c: &storage::Collection, change: &Document, now_ms: i64) -> Result<()> {
    let Some(expiry) = change.get("expireAfterSeconds") else { return Ok(()) };
    if !c.is_clustered() {
        bail!(
            INVALID_OPTIONS,
            "'expireAfterSeconds' is only supported on time-series collections or clustered collections"
        );
    }
    match expiry {
        Value::Int64(seconds) => super::clustered::check_expiry(*seconds, now_ms),
        _ => Ok(()),
    }
}

/// Seconds, or `off`, of a collection.
fn collection_expiry(v: ValueRef<'_>) -> Result<Value> {
    match v {
        ValueRef::String("off") => Ok(Value::from("off")),
        ValueRef::String(other) => bail!(
            INVALID_OPTIONS,
            "Failed to parse expireAfterSeconds: only 'off' and numbers are allowed, got '{other}'"
        ),
        v => Ok(Value::Int64(shape::to_long(v).unwrap_or(0))),
    }
}

/// The `index` member, coerced.
fn index_change(index: Doc<'_>) -> Result<Document> {
    shapes::COLL_MOD_INDEX.check(index)?;
    let mut change = Document::new();
    for e in index.iter().filter(|e| e.value() != ValueRef::Null) {
        match e.name() {
            "expireAfterSeconds" => change.push("expireAfterSeconds", expiry(e.value())?),
            name @ ("hidden" | "unique" | "prepareUnique") => change.push(name, e.value().truthy()),
            name => change.push(name, e.value().to_value()),
        }
    }
    match (change.contains_key("name"), change.contains_key("keyPattern")) {
        (true, true) => bail!(INVALID_OPTIONS, "Cannot specify both key pattern and name."),
        (false, false) => bail!(INVALID_OPTIONS, "Must specify either index name or key pattern."),
        _ => {}
    }
    if !["expireAfterSeconds", "hidden", "unique", "prepareUnique"].iter().any(|o| change.contains_key(o)) {
        bail!(INVALID_OPTIONS, "no expireAfterSeconds, hidden, unique, or prepareUnique field");
    }
    if change.get("unique").is_some_and(|v| !v.truthy()) {
        bail!(BAD_VALUE, "Cannot make index non-unique");
    }
    Ok(change)
}

fn expiry(v: ValueRef<'_>) -> Result<Value> {
    let seconds = shape::to_long(v).unwrap_or(0).min(i64::from(i32::MAX));
    if seconds < 0 {
        bail!(INVALID_OPTIONS, "TTL index 'expireAfterSeconds' option cannot be less than 0");
    }
    Ok(Value::Int64(seconds))
}

/// What collMod answers of an index: its options before and after.
fn index_reply(c: &storage::Collection, index: Option<&Document>) -> Result<Document> {
    let mut reply = Document::new();
    let Some(index) = index else { return Ok(reply) };
    let Some(found) = c.indexes().iter().map(|i| i.spec()).find(|s| is_named(s, index)) else {
        bail!(INDEX_NOT_FOUND, "cannot find index {} for ns {}", document::shell::document(index), c.ns())
    };
    check_index_change(found, index)?;
    for option in ["expireAfterSeconds", "hidden", "unique", "prepareUnique"] {
        let Some(new) = index.get(option) else { continue };
        let old = found.document().get(option).cloned();
        let absent_is_false = matches!(option, "hidden" | "prepareUnique");
        let old = match old {
            Some(old) if option == "expireAfterSeconds" => {
                Some(Value::Int64(document::number::to_i64_saturating(&old).unwrap_or(0)))
            }
            old => old.or(absent_is_false.then_some(Value::Boolean(false))),
        };
        match old {
            Some(old) if option != "expireAfterSeconds" && old.truthy() == new.truthy() => continue,
            Some(old) => reply.push(format!("{option}_old"), old),
            None => {}
        }
        reply.push(format!("{option}_new"), new.clone());
    }
    Ok(reply)
}

/// Whether the index that the change names could be made unique.
fn check_conversion(c: &storage::Collection, change: &Document) -> Result<()> {
    let Some(index) = change.get_document("index") else { return Ok(()) };
    match c.indexes().iter().map(|i| i.spec()).find(|s| is_named(s, index)) {
        Some(spec) => c.check_index_can_be_unique(spec.name()),
        None => Ok(()),
    }
}

fn check_index_change(spec: &IndexSpec, change: &Document) -> Result<()> {
    let expires = change.contains_key("expireAfterSeconds");
    if spec.is_clustered() && change.contains_key("hidden") {
        bail!(6011800, "The clusteredIndex cannot be hidden or unhidden");
    }
    if spec.is_id() && (expires || change.get("hidden").is_some_and(Value::truthy)) {
        let what = if expires { "be TTL indexes" } else { "be hidden" };
        let code = if expires { document::codes::INVALID_OPTIONS } else { document::codes::BAD_VALUE };
        return Err(document::Error::new(code, format!("the _id index cannot {what}")));
    }
    if expires && spec.fields().len() > 1 {
        bail!(INVALID_OPTIONS, "TTL indexes are single-field indexes, compound indexes do not support TTL");
    }
    if spec.wildcard().is_some()
        && ["expireAfterSeconds", "unique", "prepareUnique"].iter().any(|o| change.contains_key(o))
    {
        bail!(INVALID_OPTIONS, "a wildcard index can be neither unique nor a TTL index");
    }
    let prepares = change.get("prepareUnique").is_some_and(|v| v.truthy() != spec.prepare_unique());
    if prepares && (expires || change.contains_key("hidden")) {
        bail!(INVALID_OPTIONS, "prepareUnique cannot be changed together with another option of the index");
    }
    if change.contains_key("unique") && !spec.unique() && !spec.prepare_unique() {
        bail!(INVALID_OPTIONS, "Cannot make index unique with 'prepareUnique=false'");
    }
    Ok(())
}

async fn modify_view(node: &Node, op: &Operation, slot: &Slot, change: &Document) -> Result<Document> {
    let current = slot
        .read_unchecked()
        .view
        .clone()
        .ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns does not exist: {}", slot.ns))?;
    for option in change.keys().skip(1) {
        if !matches!(option, "viewOn" | "pipeline") {
            bail!(INVALID_OPTIONS, "option not supported on a view: {option}");
        }
    }
    let mut view = (*current).clone();
    if let Some(on) = change.get_str("viewOn") {
        view.on = on.to_string();
    }
    if let Some(pipeline) = change.get_array("pipeline") {
        view.pipeline = pipeline.clone();
    }
    view.check_pipeline(node, &slot.database.name)?;
    view.check_graph(node, &slot.ns)?;
    let mut definition =
        doc! { "_id": slot.ns.as_str(), "viewOn": view.on.as_str(), "pipeline": view.pipeline.clone() };
    if let Some(collation) = view.collation.document() {
        definition.push("collation", collation.clone());
    }
    crate::view::define(node, op, slot, &definition, |state| match &state.view {
        Some(_) => Ok(Some(view.clone())),
        None => bail!(NAMESPACE_NOT_FOUND, "ns does not exist: {}", slot.ns),
    })
    .await?;
    Ok(Document::new())
}
