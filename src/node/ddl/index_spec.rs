//! What an index specification may say: its options, their types, and what of them goes together.
//!
//! Everything is refused here, in the real server's words, before a build begins; what storage alone can tell (two
//! indexes that contradict each other) is left to it.

use crate::open::partial_predicate;
use document::{Doc, Document, Result, Value, ValueRef, bail, err};
use query::QueryContext;
use query::matcher::Matcher;
use query::projection::Projection;
use storage::IndexSpec;
use storage::index::MEASURED;

/// What an option takes.
#[derive(Clone, Copy)]
enum Takes {
    /// Whatever it is, it is checked elsewhere or not at all.
    Any,
    Object,
    Text,
    Number,
    Bool,
    /// A boolean or a number.
    Flag,
}

const OPTIONS: [(&str, Takes); 27] = [
    ("originalSpec", Takes::Any),
    ("v", Takes::Any),
    ("key", Takes::Object),
    ("name", Takes::Text),
    ("ns", Takes::Text),
    ("unique", Takes::Flag),
    ("sparse", Takes::Flag),
    ("background", Takes::Flag),
    ("expireAfterSeconds", Takes::Any),
    ("hidden", Takes::Bool),
    ("prepareUnique", Takes::Flag),
    ("dropDups", Takes::Any),
    ("partialFilterExpression", Takes::Object),
    ("collation", Takes::Object),
    ("storageEngine", Takes::Object),
    ("weights", Takes::Object),
    ("default_language", Takes::Text),
    ("language_override", Takes::Text),
    ("textIndexVersion", Takes::Number),
    ("2dsphereIndexVersion", Takes::Any),
    ("finestIndexedLevel", Takes::Any),
    ("coarsestIndexedLevel", Takes::Any),
    ("bits", Takes::Any),
    ("min", Takes::Any),
    ("max", Takes::Any),
    ("wildcardProjection", Takes::Object),
    ("clustered", Takes::Any),
];

/// Reads a specification. The first thing that is wrong decides the error, in the order of this function.
pub(super) fn check_spec(spec: &Document) -> Result<IndexSpec> {
    check_version(spec)?;
    for (name, value) in spec.iter() {
        check_option(spec, name, value)?;
    }
    if let Some(filter) = spec.get_document("partialFilterExpression") {
        check_filter(filter)?;
    }
    if let Some(engines) = spec.get_document("storageEngine") {
        super::storage_options::check_engines(engines.to_doc_buf().doc())?;
    }
    let key = spec.get_document("key");
    if spec.contains_key("weights") && !key.is_some_and(|k| k.iter().any(|(_, v)| v.as_str() == Some("text")))
    {
        bail!(CANNOT_CREATE_INDEX, "the field 'weights' is only for text indexes");
    }
    if let Some(projection) = spec.get_document("wildcardProjection") {
        check_wildcard_projection(projection)?;
    }
    let Some(key) = key else {
        bail!(
            FAILED_TO_PARSE,
            "Error in specification {} :: caused by :: The 'key' field is a required property of an index specification",
            shown(spec)
        );
    };
    check_name(spec, key)?;
    check_options_of_id(spec, key)?;
    // The time of measurements is two fields of their buckets.
    let of_buckets = spec.contains_key("originalSpec");
    if !of_buckets && key.iter().any(|(_, kind)| kind.as_str() == Some(MEASURED)) {
        bail!(
            CANNOT_CREATE_INDEX,
            "Index kind '{MEASURED}' is for the buckets of time-series collections alone"
        );
    }
    if spec.contains_key("expireAfterSeconds") && !of_buckets && key.len() > 1 {
        bail!(
            CANNOT_CREATE_INDEX,
            "TTL indexes are single-field indexes, compound indexes do not support TTL"
        );
    }
    IndexSpec::parse(spec, &partial_predicate)
}

fn shown(spec: &Document) -> String {
    document::shell::document(spec)
}

fn check_version(spec: &Document) -> Result<()> {
    match spec.get_present("v") {
        Some(v) if !matches!(v.as_f64(), Some(n) if n == 1.0 || n == 2.0) => bail!(
            CANNOT_CREATE_INDEX,
            "Invalid index specification {}; cannot create an index with v={}",
            shown(spec),
            document::shell::value(v)
        ),
        Some(v) if v.as_f64() == Some(1.0) && spec.get_present("collation").is_some() => bail!(
            CANNOT_CREATE_INDEX,
            "Invalid index specification {}; cannot create an index with the 'collation' option and v=1",
            shown(spec)
        ),
        _ => Ok(()),
    }
}

/// The specification without what is no option: `ignoreUnknownIndexOptions`.
pub(super) fn without_unknown(spec: &Document) -> Document {
    let known = |(name, _): &(&str, &Value)| OPTIONS.iter().any(|(known, _)| known == name);
    spec.iter().filter(known).map(|(name, value)| (name.to_string(), value.clone())).collect()
}

/// Refuses an option that is unknown, of the wrong type, or out of range.
fn check_option(spec: &Document, name: &str, value: &Value) -> Result<()> {
    let Some((_, takes)) = OPTIONS.iter().find(|(known, _)| *known == name) else {
        bail!(
            INVALID_INDEX_SPECIFICATION_OPTION,
            "Error in specification {} :: caused by :: The field '{name}' is not valid for an index specification. Specification: {}",
            shown(spec),
            shown(spec)
        );
    };
    if name == "weights" && matches!(value, Value::String(_) | Value::Array(_)) {
        bail!(CANNOT_CREATE_INDEX, "text index option 'weights' must be an object");
    }
    let (right, expected) = match takes {
        Takes::Any => (true, ""),
        Takes::Object => (value.as_document().is_some(), "object"),
        Takes::Text => (value.as_str().is_some(), "string"),
        Takes::Number => (value.is_number(), "number"),
        Takes::Bool => (value.as_bool().is_some(), "bool"),
        Takes::Flag => (value.as_bool().is_some() || value.is_number(), "bool"),
    };
    if !right {
        bail!(
            TYPE_MISMATCH,
            "Error in specification :: caused by :: The field '{name}' must be of type {expected}, but got {}",
            value.type_name()
        );
    }
    match name {
        "expireAfterSeconds" => check_expiry(value),
        _ => Ok(()),
    }
}

fn check_expiry(value: &Value) -> Result<()> {
    match document::number::as_f64(value) {
        Some(n) if (0.0..=i32::MAX as f64).contains(&n) => Ok(()),
        Some(_) => bail!(
            CANNOT_CREATE_INDEX,
            "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different value than {}",
            document::shell::value(value)
        ),
        None => bail!(
            CANNOT_CREATE_INDEX,
            "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{}'.",
            value.type_name()
        ),
    }
}

fn check_name(spec: &Document, key: &Document) -> Result<()> {
    match spec.get_str("name") {
        Some(name) if name.contains('\0') => bail!(
            CANNOT_CREATE_INDEX,
            "Error in specification :: caused by :: The index name cannot contain NUL bytes"
        ),
        Some("") => {
            bail!(
                CANNOT_CREATE_INDEX,
                "Error in specification :: caused by :: The index name cannot be empty"
            )
        }
        Some("*") => bail!(BAD_VALUE, "The index name '*' is not valid."),
        Some("_id_") if !key.keys().eq(["_id"]) => bail!(
            BAD_VALUE,
            "The index name '_id_' is reserved for the _id index, which must have key pattern {{_id: 1}}, found {}",
            shown(key)
        ),
        _ => Ok(()),
    }
}

/// The index on `_id` itself takes few options; one of another kind on `_id` (hashed, text) is like any other.
fn check_options_of_id(spec: &Document, key: &Document) -> Result<()> {
    let of_id = key.len() == 1 && key.get("_id").is_some_and(|v| v.as_str().is_none());
    let mut others = vec!["sparse", "expireAfterSeconds", "partialFilterExpression", "hidden"];
    if !spec.get("clustered").is_some_and(Value::truthy) {
        others.push("unique");
    }
    if let Some(other) = spec.keys().find(|k| of_id && others.contains(k)) {
        bail!(
            INVALID_INDEX_SPECIFICATION_OPTION,
            "Error in specification {} :: caused by :: The field '{other}' is not valid for an _id index specification",
            shown(spec)
        );
    }
    Ok(())
}

/// What is malformed is told as such, and only then what is not allowed.
fn check_filter(filter: &Document) -> Result<()> {
    if filter.keys().any(|name| matches!(name, "$text" | "$where")) {
        bail!(BAD_VALUE, "$text and $where are not allowed in a partial index filter");
    }
    Matcher::parse(filter.to_doc_buf().doc(), &QueryContext::default())?;
    check_partial_filter(filter.to_doc_buf().doc())
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
                bail!(QUERY_FEATURE_NOT_ALLOWED, "$expr is not allowed in a partial index filter")
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
                    // `$in` may have some.
                    if o.name() == "$all" && has_pattern(o.value()) {
                        return Err(refused("$regex"));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn has_pattern(list: ValueRef<'_>) -> bool {
    matches!(list, ValueRef::Array(items) if items.iter().any(|e| matches!(e.value(), ValueRef::Regex(..))))
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
        bail!(
            51271,
            "Bad projection specification, cannot use computed fields or operators: {}",
            document::shell::document(projection)
        );
    }
    Ok(())
}
