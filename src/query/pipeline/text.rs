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

const SCORE: &str = "__internal_textScore";

fn is_score(v: &Value) -> bool {
    v.as_document().is_some_and(|d| d.len() == 1 && d.get_str("$meta") == Some("textScore"))
}

fn mentions(v: &Value) -> bool {
    match v {
        v if is_score(v) => true,
        Value::Document(d) => d.iter().any(|(_, v)| mentions(v)),
        Value::Array(items) => items.iter().any(mentions),
        _ => false,
    }
}

fn replaced(v: &Value) -> Value {
    match v {
        v if is_score(v) => Value::from(format!("${SCORE}")),
        Value::Document(d) => Value::Document(d.iter().map(|(k, v)| (k.to_string(), replaced(v))).collect()),
        Value::Array(items) => Value::Array(items.iter().map(replaced).collect()),
        other => other.clone(),
    }
}

/// Whether a stage is a `$match` by `$text`.
pub fn is_text_match(stage: &Value) -> bool {
    let filter = stage.as_document().and_then(|d| d.get_document("$match"));
    filter.is_some_and(|f| crate::matcher::ops::text::is_in(f.to_doc_buf().doc()))
}

/// The pipeline with the score in a field, where it begins with a `$text` and asks for the score.
///
/// # Errors
/// 17313 for a `$text` in a later stage.
pub fn with_score_field(stages: Vec<Value>) -> Result<Vec<Value>> {
    if stages.iter().skip(1).any(is_text_match) {
        bail!(17313, "$match with $text is only allowed as the first pipeline stage");
    }
    let last = stages.iter().rposition(mentions);
    let (Some(last), true) = (last, stages.first().is_some_and(is_text_match)) else { return Ok(stages) };
    let mut out = Vec::with_capacity(stages.len() + 2);
    for (i, stage) in stages.into_iter().enumerate() {
        out.push(if i == 0 || i > last { stage } else { reading(&stage) });
        if i == 0 {
            out.push(doc! { "$addFields": { SCORE: { "$meta": "textScore" } } }.into());
        }
        if i == last {
            out.push(doc! { "$unset": SCORE }.into());
        }
    }
    Ok(out)
}

/// The stage with the field in the place of the score.
fn reading(stage: &Value) -> Value {
    let Some((name, v)) = stage.as_document().and_then(Document::first) else { return stage.clone() };
    let new = match (name, v) {
        ("$sort", Value::Document(d)) => {
            let by = |(path, v): (&str, &Value)| match is_score(v) {
                true => (SCORE.to_string(), Value::Int32(-1)),
                false => (path.to_string(), v.clone()),
            };
            Value::Document(d.iter().map(by).collect())
        }
        ("$project", Value::Document(d)) => {
            let mut d = match replaced(v) {
                Value::Document(d) => d,
                _ => d.clone(),
            };
            let excludes = |(path, v): (&str, &Value)| {
                path != "_id" && (v.is_number() || v.as_bool().is_some()) && !v.truthy()
            };
            if !d.iter().any(excludes) {
                d.push(SCORE, 1);
            }
            Value::Document(d)
        }
        _ => replaced(v),
    };
    Value::Document(Document(vec![(name.to_string(), new)]))
}
