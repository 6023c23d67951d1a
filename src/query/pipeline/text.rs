//! `{$meta: "textScore"}` in a pipeline.
//!
//! The score is a function of the document that the leading `$match` found. So it is put into a field of the document
//! right behind that stage, read there by whatever asks for it, and taken out behind the last stage that does:
//!
//! ```text
//! [$match, $project {s: {$meta: "textScore"}}, $sort {x: {$meta: "textScore"}}]
//!     = [$match, $addFields {h: {$meta: "textScore"}}, $project {s: "$h", h: 1}, $sort {h: -1}, $unset h]
//! ```

use document::{Document, Result, Value, bail, doc};

/// Metadata that stands in a field until the last stage that asks for it.
#[derive(Clone, Copy)]
pub(super) struct Hidden {
    pub meta: &'static str,
    pub field: &'static str,
}

pub(super) const SCORE: Hidden = Hidden { meta: "textScore", field: "__internal_textScore" };

/// The field of `{$meta: <name>}`.
fn field_of(v: &Value, hidden: &[Hidden]) -> Option<&'static str> {
    let name = v.as_document().filter(|d| d.len() == 1)?.get_str("$meta")?;
    hidden.iter().find(|h| h.meta == name).map(|h| h.field)
}

/// Whether the members of this document are a stage that reads other documents by its `pipeline`.
fn reads_others(d: &Document) -> bool {
    d.len() == 1 && d.first().is_some_and(|(name, _)| matches!(name, "$lookup" | "$unionWith"))
}

/// Whether a stage asks for one of these.
pub(super) fn asks_for(v: &Value, hidden: &[Hidden]) -> bool {
    match v {
        v if field_of(v, hidden).is_some() => true,
        Value::Document(d) => d.iter().any(|(_, inner)| match inner {
            Value::Document(join) if reads_others(d) => {
                join.iter().any(|(name, v)| name != "pipeline" && asks_for(v, hidden))
            }
            inner => asks_for(inner, hidden),
        }),
        Value::Array(items) => items.iter().any(|v| asks_for(v, hidden)),
        _ => false,
    }
}

pub(super) fn replaced(v: &Value, hidden: &[Hidden]) -> Value {
    if let Some(field) = field_of(v, hidden) {
        return Value::from(format!("${field}"));
    }
    let member = |(k, v): (&str, &Value)| (k.to_string(), replaced(v, hidden));
    match v {
        Value::Document(d) if reads_others(d) => {
            let of_join = |(k, v): (&str, &Value)| match k {
                "pipeline" => (k.to_string(), v.clone()),
                _ => member((k, v)),
            };
            let stage = |(name, v): (&str, &Value)| match v {
                Value::Document(join) => {
                    (name.to_string(), Value::Document(join.iter().map(of_join).collect()))
                }
                v => member((name, v)),
            };
            Value::Document(d.iter().map(stage).collect())
        }
        Value::Document(d) => Value::Document(d.iter().map(member).collect()),
        Value::Array(items) => Value::Array(items.iter().map(|v| replaced(v, hidden)).collect()),
        other => other.clone(),
    }
}

/// Whether a stage is a `$match` by `$text`.
pub fn is_text_match(stage: &Value) -> bool {
    let filter = stage.as_document().and_then(|d| d.get_document("$match"));
    filter.is_some_and(|f| crate::matcher::ops::stands_in(f.to_doc_buf().doc(), "$text"))
}

/// The pipeline with the score in a field, where it begins with a `$text` and asks for the score.
///
/// # Errors
/// 17313 for a `$text` in a later stage.
pub fn with_score_field(stages: Vec<Value>) -> Result<Vec<Value>> {
    if stages.iter().skip(1).any(is_text_match) {
        bail!(17313, "$match with $text is only allowed as the first pipeline stage");
    }
    let wanted = stages.iter().any(|stage| asks_for(stage, &[SCORE]));
    if !wanted || !stages.first().is_some_and(is_text_match) {
        return Ok(stages);
    }
    let mut out = stages;
    let rest = out.split_off(1);
    let score = Document(vec![(SCORE.field.to_string(), doc! { "$meta": SCORE.meta }.into())]);
    out.push(doc! { "$addFields": score }.into());
    out.extend(read_from_fields(rest, &[SCORE]));
    Ok(out)
}

/// Stages behind one that fills the fields: they read them, and the last that does is followed by one that takes them out.
pub(super) fn read_from_fields(stages: Vec<Value>, hidden: &[Hidden]) -> Vec<Value> {
    let Some(last) = stages.iter().rposition(|stage| asks_for(stage, hidden)) else { return stages };
    let mut out = Vec::with_capacity(stages.len() + 1);
    for (i, stage) in stages.into_iter().enumerate() {
        out.push(if i > last { stage } else { reading(&stage, hidden) });
        if i == last {
            let fields: Vec<Value> = hidden.iter().map(|h| Value::from(h.field)).collect();
            out.push(doc! { "$unset": (Value::Array(fields)) }.into());
        }
    }
    out
}

/// The stage with fields in the place of the metadata.
pub(super) fn reading(stage: &Value, hidden: &[Hidden]) -> Value {
    let Some((name, v)) = super::fusion::stage_of(stage) else { return stage.clone() };
    let new = match (name, v) {
        ("$sort", Value::Document(d)) => {
            let by = |(path, v): (&str, &Value)| match field_of(v, hidden) {
                Some(field) => (field.to_string(), Value::Int32(-1)),
                None => (path.to_string(), v.clone()),
            };
            Value::Document(d.iter().map(by).collect())
        }
        ("$project", Value::Document(d)) => {
            let mut d = match replaced(v, hidden) {
                Value::Document(d) => d,
                _ => d.clone(),
            };
            let excludes = |(path, v): (&str, &Value)| {
                path != "_id" && (v.is_number() || v.as_bool().is_some()) && !v.truthy()
            };
            if !d.iter().any(excludes) {
                hidden.iter().for_each(|h| d.push(h.field, 1));
            }
            Value::Document(d)
        }
        _ => return replaced(stage, hidden),
    };
    Value::Document(Document(vec![(name.to_string(), new)]))
}
