//! createIndexes, dropIndexes, and listing of indexes.
//!
//! A small collection is indexed inside one commit. A larger one is indexed while writes go on: the build scans a
//! snapshot, catches up by tree differences, and is published under the latch with the last of them.

use crate::namespace::Slot;
use crate::open::partial_predicate;
use crate::{Node, Operation, Request};
use document::{Collation, Doc, Document, Result, Value, ValueRef, bail, doc, err};
use query::QueryContext;
use query::matcher::Matcher;
use query::projection::Projection;
use std::sync::Arc;
use storage::index::SpecConflict;
use storage::{CollectionMeta, IndexBuild, IndexSpec, split_namespace};

/// Up to this many documents an index is built inside the commit that publishes it.
const BUILD_AT_ONCE_MAX: usize = 1000;
/// Documents scanned between two looks at interrupts and other tasks.
const SCAN_SLICE: usize = 500;

const OPTIONS: [&str; 27] = [
    "originalSpec",
    "v",
    "key",
    "name",
    "ns",
    "unique",
    "sparse",
    "background",
    "expireAfterSeconds",
    "hidden",
    "prepareUnique",
    "dropDups",
    "partialFilterExpression",
    "collation",
    "storageEngine",
    "weights",
    "default_language",
    "language_override",
    "textIndexVersion",
    "2dsphereIndexVersion",
    "finestIndexedLevel",
    "coarsestIndexedLevel",
    "bits",
    "min",
    "max",
    "wildcardProjection",
    "clustered",
];

/// Runs a `createIndexes` command.
pub async fn create_indexes(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let (slot, specs) = asked(node, op, request)?;
    build_indexes(node, op, &slot, &specs, false).await
}

/// The reply to a `createIndexes` command that has nothing to build; `None` for one that has, and for one that is refused.
pub fn nothing_to_build(node: &Node, op: &Operation, request: Request<'_>) -> Option<Document> {
    let (slot, specs) = asked(node, op, request).ok()?;
    let default = slot.collation();
    let state = slot.read_unchecked();
    let c = state.collection.as_ref()?;
    let is_there = |spec: &Document| -> Result<bool> {
        check_spec(spec)?;
        let spec = whole_seconds(inheriting(spec, &default)?);
        Ok(c.check_index(&check_spec(&spec)?)? == SpecConflict::Identical)
    };
    let all = specs.iter().all(|spec| is_there(spec).unwrap_or(false));
    all.then(|| built(false, c.indexes_beside(), c.indexes_beside()))
}

/// The collection and the specifications that a `createIndexes` command names.
fn asked(node: &Node, op: &Operation, request: Request<'_>) -> Result<(Arc<Slot>, Vec<Document>)> {
    let ns = request.namespace()?;
    crate::write::statement::check_writable(&ns)?;
    if ns.ends_with(".system.views") {
        bail!(CANNOT_CREATE_INDEX, "Cannot create indexes on {ns}");
    }
    node.check_write_concern(op)?;
    let specs: Vec<Document> = request.documents("indexes").map(|d| d.to_document()).collect();
    if specs.is_empty() {
        bail!(BAD_VALUE, "Must specify at least one index to create");
    }
    if specs.iter().any(|spec| spec.contains_key("key") && spec.get_present("name").is_none()) {
        bail!(FAILED_TO_PARSE, "The 'name' field is a required property of an index specification");
    }
    let slot = node.namespaces.slot(&ns);
    crate::write::statement::check_uuid(request.body, &slot)?;
    if specs.iter().any(|s| s.get("clustered").is_some_and(Value::truthy)) {
        super::clustered::check_index(&specs, &slot)?;
    }
    if let Some(series) = crate::timeseries::of(node, &slot) {
        let specs = crate::timeseries::ddl::bucket_specs(&specs, &series.options)?;
        return Ok((series.buckets, specs));
    }
    Ok((slot, specs))
}

/// Refuses filters that a partial index cannot have: only what can be proved of a query is allowed.
fn check_partial_filter(filter: Doc<'_>) -> Result<()> {
    const COMPARISONS: &[&str] = &[
        "$eq",
        "$gt",
        "$gte",
        "$lt",
        "$lte",
        "$in",
        "$all",
        "$type",
        "$exists",
        "$geoWithin",
        "$geoIntersects",
    ];
    let refused = |what: &str| err!(CANNOT_CREATE_INDEX, "Expression not supported in partial index: {what}");
    for e in filter.iter() {
        match (e.name(), e.value()) {
            ("$and" | "$or", ValueRef::Array(parts)) => {
                for part in parts.iter() {
                    part.value().as_document().map_or(Ok(()), check_partial_filter)?;
                }
            }
            ("$expr", _) => {
                bail!(224, "$expr is not allowed in a partial index filter")
            }
            ("$where" | "$text", _) => {
                bail!(BAD_VALUE, "{} is not allowed in this context", e.name())
            }
            ("$comment", _) => {}
            (name, _) if name.starts_with('$') => return Err(refused(name)),
            (_, ValueRef::Regex(..)) => return Err(refused("$regex")),
            (_, ValueRef::Document(d)) if d.iter().next().is_some_and(|o| o.name().starts_with('$')) => {
                for o in d.iter() {
                    let exists_not = o.name() == "$exists" && !o.value().truthy();
                    if exists_not || !COMPARISONS.contains(&o.name()) {
                        return Err(refused(o.name()));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks a specification's options beyond what storage checks.
pub fn check_spec(spec: &Document) -> Result<IndexSpec> {
    if let Some(v) = spec.get_present("v")
        && !matches!(v.as_f64(), Some(n) if n == 1.0 || n == 2.0)
    {
        bail!(
            CANNOT_CREATE_INDEX,
            "Invalid index specification {}; cannot create an index with v={}",
            document::extended_json::to_relaxed(&Value::from(spec)),
            document::extended_json::to_relaxed(v)
        );
    }
    for (name, value) in spec.iter() {
        if !OPTIONS.contains(&name) {
            bail!(
                INVALID_INDEX_SPECIFICATION_OPTION,
                "Error in specification {} :: caused by :: The field '{name}' is not valid for an index specification. Specification: {}",
                document::extended_json::to_relaxed(&Value::from(spec)),
                document::extended_json::to_relaxed(&Value::from(spec))
            );
        }
        check_type(name, value)?;
        if name == "expireAfterSeconds" {
            match document::number::as_f64(value) {
                Some(n) if (0.0..=i32::MAX as f64).contains(&n) => {}
                Some(_) => bail!(
                    CANNOT_CREATE_INDEX,
                    "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different value than {value:?}"
                ),
                None => bail!(
                    CANNOT_CREATE_INDEX,
                    "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{}'.",
                    value.type_name()
                ),
            }
        }
    }
    if let Some(filter) = spec.get_document("partialFilterExpression") {
        if filter.keys().any(|name| matches!(name, "$text" | "$where")) {
            bail!(BAD_VALUE, "$text and $where are not allowed in a partial index filter");
        }
        // What is malformed is told as such, and only then what is not allowed.
        Matcher::parse(filter.to_doc_buf().doc(), &QueryContext::default())?;
        check_partial_filter(filter.to_doc_buf().doc())?;
    }
    if spec.contains_key("weights")
        && !spec.get_document("key").is_some_and(|key| key.iter().any(|(_, v)| v.as_str() == Some("text")))
    {
        bail!(CANNOT_CREATE_INDEX, "the field 'weights' is only for text indexes");
    }
    if let Some(projection) = spec.get_document("wildcardProjection") {
        check_wildcard_projection(projection)?;
    }
    if spec.get("key").is_none() {
        bail!(
            FAILED_TO_PARSE,
            "Error in specification {} :: caused by :: The 'key' field is a required property of an index specification",
            document::extended_json::to_relaxed(&Value::from(spec))
        );
    }
    if spec.get_str("name").is_some_and(|name| name.contains('\0')) {
        bail!(
            CANNOT_CREATE_INDEX,
            "Error in specification :: caused by :: The index name cannot contain NUL bytes"
        );
    }
    if spec.get("name").is_some_and(|n| n.as_str() == Some("")) {
        bail!(CANNOT_CREATE_INDEX, "Error in specification :: caused by :: The index name cannot be empty");
    }
    if spec.get_str("name") == Some("*") {
        bail!(BAD_VALUE, "The index name '*' is not valid.");
    }
    if spec.get_str("name") == Some("_id_")
        && let Some(key) = spec.get_document("key").filter(|k| !k.keys().eq(["_id"]))
    {
        bail!(
            BAD_VALUE,
            "The index name '_id_' is reserved for the _id index, which must have key pattern {{_id: 1}}, found {}",
            document::extended_json::to_relaxed(&Value::Document(key.clone()))
        );
    }
    let id_key = spec.get_document("key").is_some_and(|k| k.len() == 1 && k.contains_key("_id"));
    if id_key
        && spec
            .keys()
            .any(|k| matches!(k, "sparse" | "expireAfterSeconds" | "partialFilterExpression" | "hidden"))
        && spec.get_document("key").and_then(|k| k.get("_id")).is_none_or(|v| v.as_str().is_none())
    {
        bail!(
            INVALID_INDEX_SPECIFICATION_OPTION,
            "Error in specification {} :: caused by :: The field is not valid for an _id index specification",
            document::extended_json::to_relaxed(&Value::from(spec))
        );
    }
    // The time of measurements is two fields of their buckets.
    let of_buckets = spec.contains_key("originalSpec");
    if spec.contains_key("expireAfterSeconds")
        && !of_buckets
        && spec.get_document("key").is_some_and(|k| k.len() > 1)
    {
        bail!(
            CANNOT_CREATE_INDEX,
            "TTL indexes are single-field indexes, compound indexes do not support TTL"
        );
    }
    IndexSpec::parse(spec, &partial_predicate)
}

/// A wildcard's projection only includes or excludes; `_id` alone may be named otherwise than the rest.
fn check_wildcard_projection(projection: &Document) -> Result<()> {
    let names: Vec<&str> = projection.keys().collect();
    for (i, name) in names.iter().enumerate() {
        let under = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('.'));
        if let Some(parent) = names[..i].iter().find(|n| under(name, n)) {
            bail!(31249, "Path collision at {name} remaining portion {}", &name[parent.len() + 1..]);
        }
        if names[..i].iter().any(|n| under(n, name)) {
            bail!(31250, "Path collision at {name}");
        }
    }
    let others: Document = projection
        .iter()
        .filter(|(name, _)| *name != "_id")
        .map(|(n, v)| (n.to_string(), v.clone()))
        .collect();
    let plain = |v: &Value| v.is_number() || v.as_bool().is_some() || v.as_document().is_some();
    let whole = others.is_empty() || !projection.get("_id").is_none_or(plain);
    let checked = if whole { projection } else { &others };
    let filter = Matcher::always();
    let parsed = Projection::parse(checked.to_doc_buf().doc(), &filter, &QueryContext::default())?;
    if !parsed.is_simple() {
        bail!(51271, "Bad projection specification, cannot use computed fields or operators: {projection:?}");
    }
    Ok(())
}

/// Refuses an option of the wrong type.
fn check_type(name: &str, value: &Value) -> Result<()> {
    let expected = match name {
        "key" | "partialFilterExpression" | "collation" | "wildcardProjection" | "storageEngine" => {
            (value.as_document().is_none()).then_some("object")
        }
        "weights" if matches!(value, Value::String(_) | Value::Array(_)) => {
            bail!(CANNOT_CREATE_INDEX, "text index option 'weights' must be an object")
        }
        "weights" => value.as_document().is_none().then_some("object"),
        "textIndexVersion" => (!value.is_number()).then_some("number"),
        "name" | "ns" | "default_language" | "language_override" => {
            value.as_str().is_none().then_some("string")
        }
        "hidden" => value.as_bool().is_none().then_some("bool"),
        "unique" | "sparse" | "prepareUnique" | "background" => {
            (value.as_bool().is_none() && !value.is_number()).then_some("bool")
        }
        _ => None,
    };
    match expected {
        None => Ok(()),
        Some(expected) => bail!(
            TYPE_MISMATCH,
            "Error in specification :: caused by :: The field '{name}' must be of type {expected}, but got {}",
            value.type_name()
        ),
    }
}

/// Builds what is not there yet; answers createIndexes' reply.
pub async fn build_indexes(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    specs: &[Document],
    from_migrate: bool,
) -> Result<Document> {
    specs.iter().try_for_each(|spec| check_spec(spec).map(drop))?;
    let (created, before) = ensure_collection(node, op, slot, from_migrate).await?;
    let default = slot.collation();
    for spec in specs {
        let spec = whole_seconds(inheriting(spec, &default)?);
        build_index(node, op, slot, check_spec(&spec)?, &spec).await?;
    }
    let after = slot.read(op, |s| Ok(s.collection.as_ref().map_or(0, |c| c.indexes_beside()))).await?;
    Ok(built(created, before, after))
}

fn built(created: bool, before: usize, after: usize) -> Document {
    let mut reply = doc! { "numIndexesBefore": before as i32, "numIndexesAfter": after as i32 };
    reply.push("createdCollectionAutomatically", created);
    if before == after {
        reply.push("note", "all indexes already exist");
    }
    reply
}

/// The specification with `expireAfterSeconds` as it is kept: an int, cut.
fn whole_seconds(mut spec: Document) -> Document {
    if let Some(seconds) = spec.get("expireAfterSeconds").and_then(document::number::as_f64) {
        spec.insert("expireAfterSeconds", seconds as i32);
    }
    spec
}

/// The specification with the collection's collation where it names none.
///
/// # Errors
/// BadValue (2) for an index on `_id` with another collation than the collection.
fn inheriting(spec: &Document, default: &Collation) -> Result<Document> {
    let Some(own) = spec.get_document("collation") else {
        let mut spec = spec.clone();
        if let Some(full) = default.document() {
            spec.push("collation", full.clone());
        }
        return Ok(spec);
    };
    let own = Collation::of_document(own)?;
    let on_id = spec
        .get_document("key")
        .is_some_and(|k| k.keys().eq(["_id"]) && k.iter().all(|(_, v)| v.is_number()));
    if on_id && own != *default {
        bail!(
            BAD_VALUE,
            "The _id index must have the same collation as the collection. Index collation: {own:?}, collection collation: {default:?}"
        );
    }
    Ok(spec.clone())
}

/// The definition of an index for a collection whose default may differ: it names even the simple collation.
pub fn complete(spec: &IndexSpec) -> Document {
    let mut out = spec.document().clone();
    if spec.collation().is_simple() {
        out.push("collation", doc! { "locale": "simple" });
    }
    out
}

async fn ensure_collection(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    from_migrate: bool,
) -> Result<(bool, usize)> {
    let (out, _) = node
        .write(op, slot, |unit| {
            if unit.state.view.is_some() {
                bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Cannot create indexes on a view");
            }
            let created = unit.collection().is_none();
            if created {
                unit.claim_namespace()?;
                let meta = CollectionMeta::new(unit.slot.ns.clone(), node.new_uuid());
                unit.create_collection(meta, from_migrate);
            }
            Ok((created, unit.existing()?.indexes_beside()))
        })
        .await?;
    Ok(out)
}

async fn build_index(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    spec: IndexSpec,
    document: &Document,
) -> Result<()> {
    let build = slot
        .read(op, |s| {
            let c = s
                .collection
                .as_ref()
                .ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns does not exist: {}", slot.ns))?;
            if c.len() <= BUILD_AT_ONCE_MAX || op.transaction().is_some() {
                Ok(None)
            } else {
                IndexBuild::start(c, spec).map(Some)
            }
        })
        .await?;
    let Some(build) = build else {
        node.change(op, slot, |unit| unit.create_index_from(document.clone())).await?;
        return Ok(());
    };
    let Some(mut build) = build else { return Ok(()) };
    while !build.scan(SCAN_SLICE)? {
        op.check_interrupt()?;
        tokio::task::yield_now().await;
    }
    // Two rounds outside the latch leave little for the one under it.
    for _ in 0..2 {
        let newer = slot
            .read(op, |s| {
                s.collection
                    .as_ref()
                    .map(|c| c.snapshot())
                    .ok_or_else(|| err!(INDEX_BUILD_ABORTED, "the collection was dropped"))
            })
            .await?;
        build.catch_up(newer)?;
        tokio::task::yield_now().await;
    }
    node.change(op, slot, |unit| {
        let mut o = doc! { "createIndexes": split_namespace(&slot.ns).1 };
        for (name, value) in build.spec().document().iter() {
            o.push(name, value.clone());
        }
        let Some(c) = unit.state.collection.as_mut() else {
            bail!(INDEX_BUILD_ABORTED, "the collection was dropped")
        };
        let uuid = c.uuid();
        build.finish(c)?;
        unit.command(Some(uuid), o, None, false);
        Ok(())
    })
    .await?;
    Ok(())
}

/// Runs a `dropIndexes` command.
pub async fn drop_indexes(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    let slot = node.namespaces.slot(&ns);
    let Some(index) = request.body.get("index").map(|v| v.to_value()) else {
        bail!(IDL_FAILED_TO_PARSE, "BSON field 'dropIndexes.index' is missing but a required field")
    };
    if let Some(series) = crate::timeseries::of(node, &slot) {
        let index = crate::timeseries::ddl::bucket_index(&index, &series.options)?;
        return drop_indexes_named(node, op, &series.buckets, &index).await;
    }
    drop_indexes_named(node, op, &slot, &index).await
}

/// Drops the index or indexes that `index` names: a name, `"*"`, a key pattern, a list of names.
pub async fn drop_indexes_named(node: &Node, op: &Operation, slot: &Slot, index: &Value) -> Result<Document> {
    let (reply, _) = node
        .change(op, slot, |unit| {
            let ns = unit.slot.ns.clone();
            if unit.state.view.is_some() {
                bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Cannot drop indexes on view '{ns}'");
            }
            let c = unit
                .state
                .collection
                .as_ref()
                .ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns not found {ns}"))?;
            let (uuid, before) = (c.uuid(), c.indexes_beside());
            let names = names_of(c, index)?;
            for name in &names {
                let Some(c) = unit.state.collection.as_mut() else { break };
                let spec = c.drop_index(name)?;
                let o = doc! { "dropIndexes": split_namespace(&ns).1, "index": name.as_str() };
                unit.command(Some(uuid), o, Some(spec.document().clone()), false);
            }
            let mut reply = doc! { "nIndexesWas": before as i32 };
            if index.as_str() == Some("*") {
                reply.push("msg", "non-_id indexes dropped for collection");
            }
            Ok(reply)
        })
        .await?;
    Ok(reply)
}

fn names_of(c: &storage::Collection, index: &Value) -> Result<Vec<String>> {
    let others = || c.indexes().iter().map(|i| i.spec()).filter(|s| !s.is_id());
    let clustered = c.indexes().first().map(|i| i.spec()).filter(|s| s.is_clustered());
    let checked = |name: &str| {
        if clustered.is_some_and(|s| s.shown_name() == name) {
            bail!(5979800, "It is illegal to drop the clusteredIndex");
        }
        if name == "_id_" && clustered.is_none() {
            bail!(INVALID_OPTIONS, "cannot drop _id index");
        }
        match others().find(|s| s.name() == name) {
            Some(_) => Ok(name.to_string()),
            None => bail!(INDEX_NOT_FOUND, "index not found with name [{name}]"),
        }
    };
    match index {
        Value::Array(list) if matches!(list.as_slice(), [Value::String(s)] if s == "*") => {
            Ok(others().map(|s| s.name().to_string()).collect())
        }
        Value::String(s) if s == "*" => Ok(others().map(|s| s.name().to_string()).collect()),
        Value::String(name) => Ok(vec![checked(name)?]),
        Value::Array(list) => list
            .iter()
            .map(|v| {
                v.as_str()
                    .ok_or_else(|| err!(TYPE_MISMATCH, "dropIndexes: names must be strings"))
                    .and_then(checked)
            })
            .collect(),
        Value::Document(pattern) => {
            let of_id = pattern.len() == 1 && pattern.contains_key("_id");
            if of_id && clustered.is_some() {
                bail!(5979800, "It is illegal to drop the clusteredIndex");
            }
            if of_id {
                bail!(INVALID_OPTIONS, "cannot drop _id index");
            }
            let found: Vec<String> = others()
                .filter(|s| {
                    document::compare::compare_docs(s.key().to_doc_buf().doc(), pattern.to_doc_buf().doc())
                        .is_eq()
                })
                .map(|s| s.name().to_string())
                .collect();
            match found.as_slice() {
                [] => bail!(
                    INDEX_NOT_FOUND,
                    "can't find index with key: {}",
                    document::extended_json::to_relaxed(index)
                ),
                [_] => Ok(found),
                _ => bail!(
                    AMBIGUOUS_INDEX_KEY_PATTERN,
                    "{} indexes found for key: {}, identify by name instead.",
                    found.len(),
                    document::extended_json::to_relaxed(index)
                ),
            }
        }
        other => bail!(
            TYPE_MISMATCH,
            "BSON field 'dropIndexes.index' is the wrong type '{}', expected types '[string, array, object]'",
            other.type_name()
        ),
    }
}
