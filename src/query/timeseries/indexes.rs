//! Indexes of a time series collection, in terms of its buckets.
//!
//! A field of measurements is indexed by the least and the greatest value a bucket has of it, or, if it is a place, by the cells of
//! all that a bucket holds; the meta field is a field of the bucket.

use super::Options;
use document::compare::compare_values;
use document::{Document, Result, Value, bail, doc};

/// The key pattern on buckets for one on measurements.
///
/// # Errors
/// CannotCreateIndex (67), InvalidOptions (72), 7246201 for kinds of index that buckets cannot have.
pub fn bucket_key(key: &Document, options: &Options) -> Result<Document> {
    let mut out = Document::new();
    for (path, kind) in key.iter() {
        if kind.as_str() == Some("text") {
            bail!(INVALID_OPTIONS, "Text indexes are not supported on time-series collections");
        }
        if let Some(rest) = options.below_meta(path) {
            out.push(format!("meta{rest}"), kind.clone());
            continue;
        }
        if path.contains("$**") {
            bail!(7246201, "Wildcard indexes are not supported on time-series collections");
        }
        match (kind.as_str(), document::number::as_f64(kind)) {
            (Some("2dsphere"), _) => out.push(format!("data.{path}"), "2dsphere_bucket"),
            (Some(kind), _) => bail!(
                CANNOT_CREATE_INDEX,
                "Invalid index key for a time-series collection: indexes of kind '{kind}' on measurements are not supported"
            ),
            (None, Some(n)) => {
                let (first, second) = if n < 0.0 { ("max", "min") } else { ("min", "max") };
                out.push(format!("control.{first}.{path}"), kind.clone());
                out.push(format!("control.{second}.{path}"), kind.clone());
            }
            (None, None) => {
                bail!(CANNOT_CREATE_INDEX, "Values in the index key pattern must be numbers or strings")
            }
        }
    }
    Ok(out)
}

/// The filter of a partial index, said of buckets: a bucket that can hold a measurement of it is in the index. Of fields
/// beside meta and time a bucket may say nothing ([`super::bucket`]).
pub fn bucket_filter(filter: &Document, options: &Options) -> Document {
    let (mut out, mut more) = (Document::new(), Vec::new());
    let mut add = |path: String, condition: Value| match out.contains_key(&path) {
        false => out.push(path, condition),
        true => more.push(Value::from(doc! { path: condition })),
    };
    for (name, value) in filter.iter() {
        match (options.below_meta(name), value) {
            (Some(rest), _) => add(format!("meta{rest}"), value.clone()),
            (None, Value::Array(list)) if name.starts_with('$') => {
                let each = list.iter().map(|v| match v {
                    Value::Document(d) => Value::Document(bucket_filter(d, options)),
                    other => other.clone(),
                });
                add(name.to_string(), Value::Array(each.collect()));
            }
            (None, Value::Document(operators)) if operators.keys().any(|name| name.starts_with('$')) => {
                for (operator, operand) in operators.iter() {
                    on_field(name, operator, operand, &mut add);
                }
            }
            (None, value) => on_field(name, "$eq", value, &mut add),
        }
    }
    if !more.is_empty() {
        out.push("$and", Value::Array(more));
    }
    out
}

/// What a condition on a field of measurements says of its least and its greatest value.
fn on_field(field: &str, operator: &str, operand: &Value, add: &mut impl FnMut(String, Value)) {
    let mut bound = |side: &str, operator: &str, operand: &Value| {
        add(format!("control.{side}.{field}"), Value::from(doc! { operator: operand.clone() }));
    };
    match (operator, operand) {
        ("$lt" | "$lte", _) => bound("min", operator, operand),
        ("$eq", _) => {
            bound("min", "$lte", operand);
            bound("max", "$gte", operand);
        }
        ("$in", Value::Array(list)) => {
            let ends = list.iter().min_by(|a, b| compare_values(a, b));
            let ends = ends.zip(list.iter().max_by(|a, b| compare_values(a, b)));
            if let Some((least, greatest)) = ends {
                bound("min", "$lte", greatest);
                bound("max", "$gte", least);
            }
        }
        _ => bound("max", operator, operand),
    }
}

/// The specification for the buckets, which keeps that of the user as `originalSpec`.
///
/// # Errors
/// InvalidOptions (72) for unique ones, for sparse ones on measurements, and for expiry without a filter on the meta field, and those of
/// [`bucket_key`].
pub fn bucket_spec(spec: &Document, options: &Options) -> Result<Document> {
    let key = spec.get_document("key");
    let of_bucket = |path: &str| path == options.time || options.below_meta(path).is_some();
    let on_buckets = key.is_some_and(|k| k.keys().all(of_bucket));
    for refused in ["unique", "sparse", "prepareUnique"] {
        if spec.get(refused).is_some_and(Value::truthy) && !(refused == "sparse" && on_buckets) {
            bail!(INVALID_OPTIONS, "{refused} indexes are not supported on time-series collections");
        }
    }
    if spec.contains_key("expireAfterSeconds") {
        check_expiry(spec, options)?;
    }
    let mut out = Document::new();
    let mut original = Document::new();
    original.push("v", 2);
    for (name, value) in spec.iter() {
        match (name, value) {
            ("key", Value::Document(key)) => out.push(name, bucket_key(key, options)?),
            ("partialFilterExpression", Value::Document(filter)) => {
                out.push(name, bucket_filter(filter, options));
            }
            _ => out.push(name, value.clone()),
        }
        if name != "v" {
            original.push(name, value.clone());
        }
    }
    out.push("originalSpec", original);
    Ok(out)
}

fn check_expiry(spec: &Document, options: &Options) -> Result<()> {
    let on_time = spec.get_document("key").is_some_and(|k| k.keys().eq([options.time.as_str()]));
    let filter = spec.get_document("partialFilterExpression");
    let on_meta = filter.is_some_and(|f| f.keys().all(|name| options.below_meta(name).is_some()));
    if !on_time || !on_meta {
        bail!(
            INVALID_OPTIONS,
            "TTL indexes on time-series collections must be on the time field and have a partialFilterExpression on the meta field"
        );
    }
    Ok(())
}

/// A pipeline of the collection as one of its buckets, where it begins with `$indexStats`: of the indexes there it shows those
/// that [`shown`] does, as they were asked for.
pub fn with_shown_statistics(mut stages: Vec<Value>) -> Vec<Value> {
    if stages.first().and_then(Value::as_document).is_some_and(|d| d.contains_key("$indexStats")) {
        let made = doc! { "$match": { "spec.originalSpec": { "$exists": true } } };
        let asked = doc! { "$set": { "key": "$spec.originalSpec.key", "spec": "$spec.originalSpec" } };
        stages.splice(1..1, [made.into(), asked.into()]);
    }
    stages
}

/// What listIndexes of the collection shows for an index of its buckets; none for one that no user made.
pub fn shown(spec: &Document) -> Option<Document> {
    let mut original = spec.get_document("originalSpec")?.clone();
    for option in ["hidden", "expireAfterSeconds"] {
        match spec.get(option) {
            Some(value) => original.insert(option, value.clone()),
            None => {
                original.remove(option);
            }
        }
    }
    Some(original)
}
