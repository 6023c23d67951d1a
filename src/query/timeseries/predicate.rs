//! What a filter on measurements says of their buckets.
//!
//! Every bucket with a measurement that matches passes; others may. Only what is said of the meta field, which all rows of
//! a bucket share, of time, of which a bucket knows the least and the greatest, and of places, by which buckets may be indexed,
//! is carried over.

use super::Options;
use crate::matcher::ops::geo::OF_BUCKET;
use document::{Document, Value, doc};

/// The filter for buckets; none where nothing can be said.
pub fn on_buckets(filter: &Document, options: &Options) -> Option<Document> {
    said_of(filter, options, false)
}

/// The same, with what follows for the least time from the longest span of a bucket: that is a field of shard keys, while the
/// greatest time is none.
pub fn on_shard_key(filter: &Document, options: &Options) -> Option<Document> {
    said_of(filter, options, true)
}

fn said_of(filter: &Document, options: &Options, by_span: bool) -> Option<Document> {
    let mut parts: Vec<Value> = Vec::new();
    for (name, value) in filter.iter() {
        match (name, value) {
            ("$and", Value::Array(list)) => {
                let inner = list.iter().filter_map(Value::as_document);
                parts.extend(inner.filter_map(|d| said_of(d, options, by_span)).map(Value::Document));
            }
            ("$or", Value::Array(list)) => {
                let each =
                    list.iter().map(|v| said_of(v.as_document()?, options, by_span).map(Value::Document));
                parts.extend(each.collect::<Option<Vec<_>>>().map(|list| Value::from(doc! { "$or": list })));
            }
            (name, _) if name.starts_with('$') => {}
            (name, value) if name == options.time => on_time(value, options, by_span, &mut parts),
            (name, value) => {
                if let Some(rest) = options.below_meta(name) {
                    let path = format!("meta{rest}");
                    parts.push(Value::Document(doc! { path: value.clone() }));
                } else if let Some(region) = region_of(value) {
                    parts.push(Value::Document(may_hold(name, region)));
                }
            }
        }
    }
    match parts.len() {
        0 => None,
        _ => Some(doc! { "$and": parts }),
    }
}

/// What a predicate on places asks for.
fn region_of(value: &Value) -> Option<&Document> {
    let operators = value.as_document()?;
    operators.get_document("$geoWithin").or_else(|| operators.get_document("$geoIntersects"))
}

/// The filter for buckets in which a measurement may have its place in a region.
pub(super) fn may_hold(field: &str, region: &Document) -> Document {
    doc! { OF_BUCKET: { "withinRegion": region.clone(), "field": field } }
}

fn on_time(value: &Value, options: &Options, by_span: bool, parts: &mut Vec<Value>) {
    let reach = options.span_seconds.saturating_add(options.rounding_seconds).saturating_mul(1000);
    let mut bound = |side: &str, operator: &str, date: i64| {
        if by_span && side == "max" {
            let least = Value::DateTime(date.saturating_sub(reach));
            let path = format!("control.min.{}", options.time);
            parts.push(Value::Document(doc! { path: { "$gte": least } }));
        }
        let path = format!("control.{side}.{}", options.time);
        parts.push(Value::Document(doc! { path: { operator: Value::DateTime(date) } }));
    };
    match value {
        Value::DateTime(date) => {
            bound("min", "$lte", *date);
            bound("max", "$gte", *date);
        }
        Value::Document(operators) => {
            for (operator, operand) in operators.iter() {
                match (operator, operand) {
                    ("$gt" | "$gte", Value::DateTime(date)) => bound("max", operator, *date),
                    ("$lt" | "$lte", Value::DateTime(date)) => bound("min", operator, *date),
                    ("$eq", Value::DateTime(date)) => {
                        bound("min", "$lte", *date);
                        bound("max", "$gte", *date);
                    }
                    ("$in", Value::Array(list)) => {
                        let dates: Option<Vec<i64>> = list.iter().map(date_of).collect();
                        if let Some((first, last)) =
                            dates.and_then(|d| Some((*d.iter().min()?, *d.iter().max()?)))
                        {
                            bound("min", "$lte", last);
                            bound("max", "$gte", first);
                        }
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn date_of(v: &Value) -> Option<i64> {
    match v {
        Value::DateTime(date) => Some(*date),
        _ => None,
    }
}
