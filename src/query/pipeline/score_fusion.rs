//! `$scoreFusion` as the stages it stands for.
//!
//! ```text
//! each pipeline i   P.., $replaceRoot {d: <document>, r0: <score>}, normalise and weigh r0 as s0
//! of all            $group by d._id {d, r0, s0, r1, s1..}, $addFields {score: {$avg: [s0, s1..]}}, $sort, $replaceRoot d
//! ```
//! A document that a pipeline does not give has the score 0 there.

use super::fusion::{Fusion, Input, member, stage_of, united};
use super::hidden::Hidden;
use super::score::{self, as_score, stage, text_of};
use super::text::is_text_match;
use document::{Document, Result, Value, bail, doc, wrong_type};

const DISTANCE: &str = "__internal_distance";
const DESCRIPTION: &str = "the value calculated by combining the scores (either normalized or raw) across input pipelines from which this document is output from:";

/// How the scores of the pipelines become one.
enum Combination {
    Average,
    Expression(Value),
}

impl Combination {
    fn parse(d: &Document) -> Result<Combination> {
        let path = "$scoreFusion.combination";
        let by_expression = match member(d, "method") {
            None => false,
            Some(Value::String(s)) if s == "avg" => false,
            Some(Value::String(s)) if s == "expression" => true,
            Some(Value::String(s)) => {
                bail!(BAD_VALUE, "Enumeration value '{s}' for field '{path}.method' is not a valid value.")
            }
            Some(v) => return Err(wrong_type(&format!("{path}.method"), v.type_name(), "string")),
        };
        match (by_expression, d.get("expression")) {
            (false, None) => Ok(Combination::Average),
            (false, Some(_)) => {
                bail!(BAD_VALUE, "{path}.expression needs {path}.method to be 'expression'")
            }
            (true, None) => bail!(BAD_VALUE, "{path}.method 'expression' needs {path}.expression"),
            (true, Some(_)) if member(d, "weights").is_some() => {
                bail!(BAD_VALUE, "{path}.weights and {path}.expression exclude each other")
            }
            (true, Some(v)) => Ok(Combination::Expression(v.clone())),
        }
    }
    fn score(&self, inputs: &[Input]) -> Value {
        let of = |i: usize| Value::from(doc! { "$ifNull": [format!("$s{i}"), 0.0] });
        let combined = match self {
            Combination::Average => {
                let scores: Vec<Value> = (0..inputs.len()).map(of).collect();
                doc! { "$avg": (Value::Array(scores)) }
            }
            Combination::Expression(expression) => {
                let vars: Document =
                    inputs.iter().enumerate().map(|(i, input)| (input.name.clone(), of(i))).collect();
                doc! { "$let": { "vars": vars, "in": (expression.clone()) } }
            }
        };
        as_score(combined.into())
    }
    fn details(&self) -> Document {
        match self {
            Combination::Average => doc! { "method": "avg" },
            Combination::Expression(e) => {
                doc! { "method": "custom expression", "expression": { "$literal": (text_of(e)) } }
            }
        }
    }
}

pub(super) fn stages(
    fusion: &Fusion,
    combination: &Document,
    collection: &str,
    wanted: &[Hidden],
) -> Result<Vec<Value>> {
    let combination = Combination::parse(combination)?;
    let mut inputs = Vec::with_capacity(fusion.inputs.len());
    for (i, input) in fusion.inputs.iter().enumerate() {
        inputs.push(scored(fusion, i, input)?);
    }
    let mut out = united(inputs.into_iter(), collection);
    // Equal only by the command's collation is not the same document.
    let mut group =
        doc! { "_id": { "i": "$d._id", "h": { "$toHashedIndexKey": "$d._id" } }, "d": { "$first": "$d" } };
    for i in 0..fusion.inputs.len() {
        for part in ["r", "s", "x"] {
            group.push(format!("{part}{i}"), doc! { "$max": (format!("${part}{i}")) });
        }
    }
    out.push(stage("$group", group));
    out.push(stage("$addFields", doc! { "score": (combination.score(&fusion.inputs)) }));
    out.push(stage("$sort", doc! { "score": -1, "d._id": 1 }));
    let hidden: Document = wanted
        .iter()
        .map(|h| match h.meta {
            "score" => (h.field.to_string(), Value::from("$score")),
            _ => (h.field.to_string(), details(fusion, &combination).into()),
        })
        .collect();
    out.push(doc! { "$replaceRoot": { "newRoot": { "$mergeObjects": ["$d", hidden] } } }.into());
    Ok(out)
}

/// The documents of one pipeline, each with its score before and after it is normalised and weighed.
fn scored(fusion: &Fusion, i: usize, input: &Input) -> Result<Vec<Value>> {
    let last = input.stages.iter().rev().find_map(score::spec_of);
    let mut stages = input.stages.clone();
    let raw: Value = match stages.first_mut() {
        _ if last.is_some() => doc! { "$meta": "score" }.into(),
        Some(first) if is_text_match(first) => doc! { "$meta": "textScore" }.into(),
        Some(first) => distance(first),
        None => Value::Null,
    };
    let document = doc! { "$unsetField": { "field": DISTANCE, "input": "$$ROOT" } };
    let mut root = doc! { "d": document };
    root.push(format!("r{i}"), as_score(raw));
    if last.and_then(Value::as_document).is_some_and(|d| d.get_bool("scoreDetails") == Some(true)) {
        root.push(format!("x{i}"), doc! { "$meta": "scoreDetails" });
    }
    stages.push(doc! { "$replaceRoot": { "newRoot": root } }.into());
    let mut out = score::expand(Vec::new(), stages, Vec::new())?;
    out.extend(fusion.normalization.stages(&format!("r{i}"), &format!("s{i}"), input.weight));
    Ok(out)
}

/// Has a `$geoNear` write the distance, and returns where it stands.
fn distance(first: &mut Value) -> Value {
    let Some(("$geoNear", Value::Document(spec))) = stage_of(first) else { return Value::Null };
    let mut spec = spec.clone();
    spec.push("distanceField", DISTANCE);
    *first = stage("$geoNear", spec);
    format!("${DISTANCE}").into()
}

fn details(fusion: &Fusion, combination: &Combination) -> Document {
    let of = |(i, input): (usize, &Input)| {
        let raw = format!("$r{i}");
        let detail = format!("$x{i}");
        let given = doc! { "$cond": [{ "$lte": [detail.as_str(), Value::Null] }, [], [detail.as_str()]] };
        let entry = doc! {
            "inputPipelineName": { "$literal": (input.name.as_str()) }, "inputPipelineRawScore": (raw.as_str()),
            "weight": (input.weight), "value": (format!("$s{i}")), "details": given,
        };
        Value::from(doc! { "$cond": [{ "$lte": [raw, Value::Null] }, [], [entry]] })
    };
    let inputs: Vec<Value> = fusion.inputs.iter().enumerate().map(of).collect();
    doc! {
        "value": "$score", "description": { "$literal": DESCRIPTION },
        "normalization": (fusion.normalization.name()), "combination": (combination.details()),
        "details": { "$concatArrays": (Value::Array(inputs)) },
    }
}
