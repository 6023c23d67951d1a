//! The option `clusteredIndex` of create, and expiry by collection.
//!
//! A clustered collection is scanned in the order of `_id`, and it is listed without an index on `_id` beside it. Here
//! its records stay where every collection has them, and the index on `_id` is what its scans follow (`storage`, `planner`).

use super::shapes;
use crate::namespace::Slot;
use crate::shape;
use document::{Doc, Document, Result, Value, ValueRef, bail, doc};

/// What create says beside `clusteredIndex`, whatever that is.
///
/// # Errors
/// InvalidOptions (72), and the codes the real server has for each conflict.
pub fn check_company(body: Doc<'_>) -> Result<()> {
    let present =
        |name: &str| body.get(name).is_some_and(|v| !matches!(v, ValueRef::Null | ValueRef::Undefined));
    let given = body.get("clusteredIndex").is_some_and(|v| v.truthy());
    if body.get("capped").is_some_and(|v| v.truthy()) {
        bail!(6049200, "The 'capped' and 'clusteredIndex' options can not both be given");
    }
    if !given {
        return Ok(());
    }
    if present("timeseries") {
        bail!(INVALID_OPTIONS, "The 'timeseries' and 'clusteredIndex' options can not both be given");
    }
    if present("viewOn") {
        bail!(6026500, "The 'clusteredIndex' option is not supported with views");
    }
    if present("max") {
        bail!(6049204, "The 'max' option is not supported with 'clusteredIndex'");
    }
    if present("idIndex") {
        bail!(INVALID_OPTIONS, "The 'clusteredIndex' option is not supported with the 'idIndex' option");
    }
    Ok(())
}

/// The definition with all its members; `None` where the option is false.
///
/// # Errors
/// 5979703 for `true`, which the real server keeps for itself; IDLFailedToParse (40414, 40415), TypeMismatch (14);
/// 5979700, 5979704, InvalidIndexSpecificationOption (197).
pub fn definition(value: ValueRef<'_>) -> Result<Option<Document>> {
    let ValueRef::Document(given) = value else {
        if value.truthy() {
            bail!(5979703, "The 'clusteredIndex' option does not support 'true' for user collections");
        }
        return Ok(None);
    };
    shapes::CLUSTERED_INDEX.check(given)?;
    if !given.get("unique").is_some_and(|v| v.truthy()) {
        bail!(5979700, "The clusteredIndex option requires unique: true to be specified");
    }
    if given.get("v").and_then(shape::to_long).is_some_and(|v| v != 2) {
        bail!(5979704, "Invalid clusteredIndex specification: 'v' must be 2");
    }
    let key = given.get_document("key").unwrap_or(Doc::empty());
    let fields: Vec<_> = key.iter().collect();
    let is_one = |v: ValueRef<'_>| document::number::as_f64(&v.to_value()) == Some(1.0);
    if !matches!(fields.as_slice(), [f] if f.name() == "_id" && is_one(f.value())) {
        bail!(
            INVALID_INDEX_SPECIFICATION_OPTION,
            "The clusteredIndex option requires the key to be {{ _id: 1 }}, but got {}",
            document::shell::document(&key.to_document())
        );
    }
    let name = given.get_str("name").unwrap_or("_id_");
    Ok(Some(doc! { "v": 2, "key": { "_id": 1 }, "name": name, "unique": true }))
}

/// # Errors
/// InvalidOptions (72) for an expiry that nothing could follow.
pub fn check_options(options: &Document, now_ms: i64) -> Result<()> {
    let Some(Value::Int64(seconds)) = options.get("expireAfterSeconds") else { return Ok(()) };
    if !options.contains_key("clusteredIndex") || options.contains_key("viewOn") {
        bail!(
            INVALID_OPTIONS,
            "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified"
        );
    }
    check_expiry(*seconds, now_ms)
}

/// # Errors
/// InvalidOptions (72) for seconds below zero, and for more than have gone by since 1970.
pub fn check_expiry(seconds: i64, now_ms: i64) -> Result<()> {
    if seconds < 0 {
        bail!(INVALID_OPTIONS, "TTL index 'expireAfterSeconds' option cannot be less than 0");
    }
    if seconds.checked_mul(1000).is_none_or(|ms| ms > now_ms) {
        bail!(
            INVALID_OPTIONS,
            "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number: {seconds}"
        );
    }
    Ok(())
}

/// createIndexes with `clustered` makes nothing: it names the clustered index that is there.
///
/// # Errors
/// InvalidOptions (72).
pub fn check_index(specs: &[Document], slot: &Slot) -> Result<()> {
    let on_id = |s: &Document| s.get_document("key").is_some_and(|k| k.keys().eq(["_id"]));
    let clustered = slot.read_unchecked().collection.as_ref().is_some_and(|c| c.is_clustered());
    if !clustered {
        bail!(
            INVALID_OPTIONS,
            "Cannot create index with option 'clustered' on a collection that is not clustered"
        );
    }
    if specs.iter().any(|s| s.get("clustered").is_some_and(Value::truthy) && !on_id(s)) {
        bail!(INVALID_OPTIONS, "Only the index on _id of a clustered collection can be 'clustered'");
    }
    Ok(())
}
