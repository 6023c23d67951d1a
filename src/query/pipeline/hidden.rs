//! Metadata of documents in a pipeline: scores, their details, and what a `$geoNear` found.
//!
//! A stage that gives metadata puts it into a field of the document with a name of the server's own. Whatever asks for it by
//! `{$meta: ..}` reads that field, and it is taken out behind the last stage that does. Until then no other stage sees it:
//! it is no part of `$$ROOT`, a `$project` and a `$replaceRoot` keep it, and the pipelines of a `$facet` read or remove it themselves.
//!
//! ```text
//! [$match, $project {s: {$meta: "textScore"}}, $sort {x: {$meta: "textScore"}}]
//!     = [$match, $addFields {h: {$meta: "textScore"}}, $project {s: "$h", h: 1}, $sort {h: -1}, $unset h]
//! ```
//! A `$score` is the last stage that may ask for an earlier score, which its own replaces.

use super::fusion::stage_of;
use super::score;
use document::{Doc, Document, Value, doc};

/// Metadata and the field in which it stands.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Hidden {
    pub meta: &'static str,
    pub field: &'static str,
}

pub(super) const SCORE: Hidden = Hidden { meta: "score", field: "__internal_score" };
pub(super) const DETAILS: Hidden = Hidden { meta: "scoreDetails", field: "__internal_scoreDetails" };

/// Whether a projection may ask for `meta`: most are told without being read.
pub(super) fn may_ask(projection: Doc<'_>, meta: &str) -> bool {
    projection.bytes().windows(meta.len()).any(|bytes| bytes == meta.as_bytes())
}

/// The field of `{$meta: <name>}`.
fn field_of(v: &Value, hidden: &[Hidden]) -> Option<&'static str> {
    let name = v.as_document().filter(|d| d.len() == 1)?.get_str("$meta")?;
    hidden.iter().find(|h| h.meta == name).map(|h| h.field)
}

/// The stages that see these: those up to the next `$score`, where it is a score.
fn reach<'a>(stages: &'a [Value], hidden: &[Hidden]) -> &'a [Value] {
    let replaces = hidden.iter().any(|h| [SCORE, DETAILS].contains(h));
    let end = score::position(stages).filter(|_| replaces).map_or(stages.len(), |at| at + 1);
    &stages[..end]
}

/// Whether an expression is a field of the server's own, in which metadata stand.
pub(super) fn is_read_by(v: &Value) -> bool {
    v.as_str().is_some_and(|path| path.starts_with("$__internal_"))
}

/// Whether a stage, or a part of one, asks for one of these.
pub(super) fn asks_for(v: &Value, hidden: &[Hidden]) -> bool {
    if field_of(v, hidden).is_some() {
        return true;
    }
    match (stage_of(v), v) {
        (Some(("$literal", _)), _) => false,
        (Some(("$facet", Value::Document(facets))), _) => facets.iter().any(|(_, v)| match v {
            Value::Array(stages) => !asking(stages, hidden).is_empty(),
            _ => false,
        }),
        (Some(("$lookup" | "$unionWith", Value::Document(join))), _) => {
            join.iter().any(|(name, v)| name != "pipeline" && asks_for(v, hidden))
        }
        (_, Value::Document(d)) => d.iter().any(|(_, v)| asks_for(v, hidden)),
        (_, Value::Array(items)) => items.iter().any(|v| asks_for(v, hidden)),
        _ => false,
    }
}

/// Those of these that the stages ask for.
pub(super) fn asking(stages: &[Value], hidden: &[Hidden]) -> Vec<Hidden> {
    let seen = reach(stages, hidden);
    hidden.iter().copied().filter(|h| seen.iter().any(|stage| asks_for(stage, &[*h]))).collect()
}

/// Stages behind one that fills the fields.
pub(super) fn carried(stages: Vec<Value>, hidden: &[Hidden]) -> Vec<Value> {
    if hidden.is_empty() {
        return stages;
    }
    let fields: Vec<Value> = hidden.iter().map(|h| Value::from(h.field)).collect();
    let unset = doc! { "$unset": (Value::Array(fields)) };
    let seen = reach(&stages, hidden);
    let last = seen.iter().rposition(|stage| asks_for(stage, hidden));
    let mut out = Vec::with_capacity(stages.len() + 1);
    // What nobody asks for goes at once.
    if last.is_none() {
        out.push(unset.clone().into());
    }
    for (i, stage) in stages.into_iter().enumerate() {
        if last.is_none_or(|last| i > last) {
            out.push(stage);
            continue;
        }
        out.push(reading(&stage, hidden, last != Some(i)));
        // A `$score` that asks for the one before it replaces or removes that itself.
        let replaces = score::spec_of(&stage).is_some() && [SCORE, DETAILS].contains(&hidden[0]);
        if last == Some(i) && !replaces {
            out.push(unset.clone().into());
        }
    }
    out
}

/// The stage with fields in the place of the metadata. With `keep`, stages behind it read them too.
fn reading(stage: &Value, hidden: &[Hidden], keep: bool) -> Value {
    let Some((name, v)) = stage_of(stage) else { return stage.clone() };
    let new = match (name, v) {
        ("$match", v) => in_filter(v, hidden),
        ("$sort", Value::Document(d)) => {
            let by = |(path, v): (&str, &Value)| match field_of(v, hidden) {
                Some(field) => (field.to_string(), Value::Int32(-1)),
                None => (path.to_string(), v.clone()),
            };
            Value::Document(d.iter().map(by).collect())
        }
        ("$facet", Value::Document(d)) => {
            Value::Document(d.iter().map(|(k, v)| facet(k, v, hidden)).collect())
        }
        ("$project", Value::Document(d)) if keep => projection(d, hidden),
        ("$replaceWith", v) if keep => with_fields(replaced(v, hidden), hidden),
        ("$replaceRoot", Value::Document(d)) if keep => {
            let root = |(k, v): (&str, &Value)| (k.to_string(), with_fields(replaced(v, hidden), hidden));
            Value::Document(d.iter().map(root).collect())
        }
        ("$lookup" | "$unionWith", Value::Document(join)) => {
            let of_join = |(k, v): (&str, &Value)| match k {
                "pipeline" => (k.to_string(), v.clone()),
                _ => (k.to_string(), replaced(v, hidden)),
            };
            Value::Document(join.iter().map(of_join).collect())
        }
        (_, v) => replaced(v, hidden),
    };
    Value::Document(Document(vec![(name.to_string(), new)]))
}

fn facet(name: &str, stages: &Value, hidden: &[Hidden]) -> (String, Value) {
    let stages = match stages {
        Value::Array(stages) => Value::Array(carried(stages.clone(), hidden)),
        other => other.clone(),
    };
    (name.to_string(), stages)
}

/// A projection that includes fields includes these too.
fn projection(d: &Document, hidden: &[Hidden]) -> Value {
    let mut new: Document = d.iter().map(|(k, v)| (k.to_string(), replaced(v, hidden))).collect();
    if !excludes(d, "") {
        hidden.iter().for_each(|h| new.push(h.field, 1));
    }
    Value::Document(new)
}

/// Whether a projection excludes: some field, or `_id` alone.
fn excludes(d: &Document, above: &str) -> bool {
    let is_no = |v: &Value| (v.is_number() || v.as_bool().is_some()) && !v.truthy();
    let nothing_else = above.is_empty() && d.len() == 1;
    d.iter().any(|(path, v)| match v {
        Value::Document(inner) if inner.keys().all(|k| !k.starts_with('$')) => excludes(inner, path),
        v => is_no(v) && (!above.is_empty() || path != "_id" || nothing_else),
    })
}

/// A new root with the fields of the old one; what is no document stays as it is, and is refused by the stage.
fn with_fields(root: Value, hidden: &[Hidden]) -> Value {
    let fields: Document =
        hidden.iter().map(|h| (h.field.to_string(), format!("${}", h.field).into())).collect();
    let both = doc! { "$mergeObjects": ["$$root", fields] };
    let is_document = doc! { "$eq": [{ "$type": "$$root" }, "object"] };
    doc! { "$let": { "vars": { "root": root }, "in": { "$cond": [is_document, both, "$$root"] } } }.into()
}

/// A filter, of which only expressions ask for metadata.
fn in_filter(v: &Value, hidden: &[Hidden]) -> Value {
    match v {
        Value::Document(d) => {
            let member = |(k, v): (&str, &Value)| match k {
                "$expr" => (k.to_string(), replaced(v, hidden)),
                _ => (k.to_string(), in_filter(v, hidden)),
            };
            Value::Document(d.iter().map(member).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|v| in_filter(v, hidden)).collect()),
        other => other.clone(),
    }
}

/// An expression, or what has expressions in it.
fn replaced(v: &Value, hidden: &[Hidden]) -> Value {
    if let Some(field) = field_of(v, hidden) {
        return Value::from(format!("${field}"));
    }
    match v {
        Value::String(s) if s == "$$ROOT" || s == "$$CURRENT" => hidden.iter().fold(v.clone(), |input, h| {
            doc! { "$unsetField": { "field": (h.field), "input": input } }.into()
        }),
        Value::Document(d) if d.len() == 1 && d.contains_key("$literal") => v.clone(),
        Value::Document(d) => {
            Value::Document(d.iter().map(|(k, v)| (k.to_string(), replaced(v, hidden))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|v| replaced(v, hidden)).collect()),
        other => other.clone(),
    }
}
