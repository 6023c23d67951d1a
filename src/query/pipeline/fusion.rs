//! `$rankFusion` as the stages it stands for.
//!
//! ```text
//! {$rankFusion: {input: {pipelines: {p: [P..], q: [Q..]}}}}
//!     = P.., $_internalRank {pipeline: 0}, $unionWith {coll: <own>, pipeline: [Q.., $_internalRank {pipeline: 1}]},
//!       $_internalFuse
//! ```
//! What later stages ask for by `{$meta: "score"}` and `{$meta: "scoreDetails"}` stands in hidden fields ([`super::hidden`]).
//! `$scoreFusion` and `$score` are written in [`super::score_fusion`] and [`super::score`].

use super::hidden::{DETAILS, Hidden, SCORE, asking, asks_for};
use super::text::is_text_match;
use super::{score, score_fusion, table};
use document::{Document, Result, Value, bail, doc, number, wrong_type};

/// Stages that choose and order documents and leave them as they are.
const SELECTION: &[&str] =
    &["$match", "$sort", "$limit", "$skip", "$sample", "$geoNear", "$search", "$vectorSearch"];
/// Stages that bring an order of their own.
const RANKED: &[&str] = &["$geoNear", "$search", "$vectorSearch"];
const STAGES_MAX: usize = 1000;

/// The pipeline of a collection (or view) without `$rankFusion`, `$scoreFusion` and `$score`; `None` where there are none.
///
/// # Errors
/// The real server's for a malformed argument, 40218 for a score asked for before there is one.
pub fn expand(stages: &[Value], collection: &str) -> Result<Option<Vec<Value>>> {
    let over_series = || collection.starts_with(crate::timeseries::BUCKETS_PREFIX);
    if let Some(fused) = fused(stages, collection, over_series)? {
        return Ok(Some(fused));
    }
    let Some(at) = score::position(stages) else { return Ok(None) };
    if stages[..=at].iter().any(|stage| asks_for(stage, &[SCORE])) {
        bail!(40218, "query requires score metadata, but it is not available");
    }
    score::expand(Vec::new(), stages.to_vec(), Vec::new()).map(Some)
}

/// The stages of a fusion, which leave what is wanted in hidden fields.
type Written = fn(&Fusion, &Document, &str, &[Hidden]) -> Result<Vec<Value>>;

/// The pipeline without the fusion with which it begins; `None` where it does not. `over_series` says whether the collection is a time
/// series, or holds the buckets of one, and is asked only then.
///
/// # Errors
/// As for [`expand`]; 10557301 over a time series.
pub fn fused(
    stages: &[Value],
    collection: &str,
    over_series: impl FnOnce() -> bool,
) -> Result<Option<Vec<Value>>> {
    let Some((first, rest)) = stages.split_first() else { return Ok(None) };
    let (name, spec, write): (_, _, Written) = match stage_of(first) {
        Some(("$rankFusion", spec)) => ("$rankFusion", spec, rank_stages),
        Some(("$scoreFusion", spec)) => ("$scoreFusion", spec, score_fusion::stages),
        _ => return Ok(None),
    };
    if over_series() {
        bail!(10557301, "{name} is unsupported on timeseries collections");
    }
    let (fusion, combination) = Fusion::parse(name, spec)?;
    let wanted = asking(rest, &[SCORE, DETAILS]);
    if !fusion.score_details && wanted.contains(&DETAILS) {
        bail!(40218, "query requires scoreDetails metadata, but it is not available");
    }
    let out = write(&fusion, &combination, collection, &wanted)?;
    score::expand(out, rest.to_vec(), wanted).map(Some)
}

/// Refuses the stage anywhere but at the front.
///
/// # Errors
/// 10170100.
pub fn check_place(name: &str, at: usize) -> Result<()> {
    if at > 0 && is_fusion(name) {
        bail!(10170100, "{name} is only valid as the first stage in a pipeline");
    }
    Ok(())
}

pub(super) fn is_fusion(name: &str) -> bool {
    matches!(name, "$rankFusion" | "$scoreFusion")
}

/// The name and the argument of a stage; what has more members is none, which the parser tells.
pub(super) fn stage_of(stage: &Value) -> Option<(&str, &Value)> {
    stage.as_document().filter(|d| d.len() == 1).and_then(Document::first)
}

pub(super) struct Input {
    pub name: String,
    pub stages: Vec<Value>,
    pub weight: f64,
}

pub(super) struct Fusion {
    /// `$rankFusion` or `$scoreFusion`.
    pub stage: &'static str,
    pub inputs: Vec<Input>,
    pub normalization: score::Normalization,
    pub score_details: bool,
}

pub(super) fn missing(path: &str) -> document::Error {
    document::err!(IDL_FAILED_TO_PARSE, "BSON field '{path}' is missing but a required field")
}

/// A member; null counts as absent.
pub(super) fn member<'a>(d: &'a Document, name: &str) -> Option<&'a Value> {
    d.get(name).filter(|v| !matches!(v, Value::Null | Value::Undefined))
}

/// A member that is an object.
fn object<'a>(d: &'a Document, owner: &str, name: &str) -> Result<Option<&'a Document>> {
    match member(d, name) {
        None => Ok(None),
        Some(Value::Document(inner)) => Ok(Some(inner)),
        Some(v) => Err(wrong_type(&format!("{owner}.{name}"), v.type_name(), "object")),
    }
}

/// A member that says yes or no.
pub(super) fn flag(d: &Document, owner: &str, name: &str) -> Result<bool> {
    match member(d, name) {
        None => Ok(false),
        Some(Value::Boolean(b)) => Ok(*b),
        Some(v) => Err(wrong_type(&format!("{owner}.{name}"), v.type_name(), "bool")),
    }
}

pub(super) fn only(d: &Document, path: &str, known: &[&str]) -> Result<()> {
    match d.iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => bail!(IDL_UNKNOWN_FIELD, "BSON field '{path}.{name}' is an unknown field."),
        None => Ok(()),
    }
}

impl Fusion {
    /// The fusion, and how its inputs are combined.
    fn parse(stage: &'static str, spec: &Value) -> Result<(Fusion, Document)> {
        let Value::Document(d) = spec else {
            bail!(
                FAILED_TO_PARSE,
                "{stage} must take a nested object but found: {}",
                crate::expression::parse::show(spec)
            );
        };
        only(d, stage, &["input", "combination", "scoreDetails"])?;
        let score_details = flag(d, stage, "scoreDetails")?;
        let combination = object(d, stage, "combination")?;
        let path = format!("{stage}.input");
        let input = object(d, stage, "input")?.ok_or_else(|| missing(&path))?;
        let normalization = match stage {
            "$scoreFusion" => {
                only(input, &path, &["pipelines", "normalization"])?;
                score::normalization(input, &path)?
                    .ok_or_else(|| missing(&format!("{path}.normalization")))?
            }
            _ => {
                only(input, &path, &["pipelines"])?;
                score::Normalization::None
            }
        };
        let inputs = inputs(stage, input, &path)?;
        let mut fusion = Fusion { stage, inputs, normalization, score_details };
        if let Some(combination) = combination {
            fusion.weigh(combination)?;
        }
        Ok((fusion, combination.cloned().unwrap_or_default()))
    }
    fn weigh(&mut self, combination: &Document) -> Result<()> {
        let stage = self.stage;
        let path = format!("{stage}.combination");
        let weights = object(combination, &path, "weights")?;
        match (stage, weights) {
            ("$scoreFusion", weights) => {
                only(combination, &path, &["weights", "method", "expression"])?;
                weights.map_or(Ok(()), |weights| weigh(stage, &mut self.inputs, weights))
            }
            (_, Some(weights)) => {
                only(combination, &path, &["weights"])?;
                weigh(stage, &mut self.inputs, weights)
            }
            _ => {
                only(combination, &path, &["weights"])?;
                Err(missing(&format!("{path}.weights")))
            }
        }
    }
}

fn inputs(stage: &'static str, input: &Document, path: &str) -> Result<Vec<Input>> {
    let path = format!("{path}.pipelines");
    let pipelines = match member(input, "pipelines") {
        None => return Err(missing(&path)),
        Some(Value::Document(pipelines)) => pipelines,
        Some(v) => return Err(wrong_type(&path, v.type_name(), "object")),
    };
    if pipelines.is_empty() {
        bail!(BAD_VALUE, "{stage} requires at least one pipeline");
    }
    let mut inputs = Vec::with_capacity(pipelines.len());
    for (name, v) in pipelines.iter() {
        let Value::Array(stages) = v else { return Err(wrong_type(&path, v.type_name(), "array")) };
        check_name(name)?;
        check_stages(stage, stages, &path)?;
        inputs.push(Input { name: name.to_string(), stages: stages.clone(), weight: 1.0 });
    }
    Ok(inputs)
}

/// What stands for a `$rankFusion`.
fn rank_stages(fusion: &Fusion, _: &Document, collection: &str, wanted: &[Hidden]) -> Result<Vec<Value>> {
    let inputs = fusion.inputs.iter().enumerate().map(|(i, input)| {
        let mut ranked = input.stages.clone();
        ranked.push(
            doc! { "$_internalRank": { "pipeline": i as i32, "sort": order_of(&input.stages) } }.into(),
        );
        ranked
    });
    let mut out = united(inputs, collection);
    let names: Vec<Value> = fusion.inputs.iter().map(|i| Value::from(i.name.as_str())).collect();
    let weights: Vec<Value> = fusion.inputs.iter().map(|i| Value::Double(i.weight)).collect();
    let mut spec = doc! { "names": (Value::Array(names)), "weights": (Value::Array(weights)) };
    for hidden in wanted {
        spec.push(hidden.meta, hidden.field);
    }
    out.push(doc! { "$_internalFuse": spec }.into());
    Ok(out)
}

/// The first pipeline, with the others' documents behind its own.
pub(super) fn united(inputs: impl Iterator<Item = Vec<Value>>, collection: &str) -> Vec<Value> {
    let mut out = Vec::new();
    for (i, input) in inputs.enumerate() {
        match i {
            0 => out = input,
            _ => out.push(doc! { "$unionWith": { "coll": collection, "pipeline": input } }.into()),
        }
    }
    out
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        bail!(15998, "FieldPath field names may not be empty strings.");
    }
    if name.starts_with('$') {
        bail!(16410, "FieldPath field names may not start with '$', given '{name}'.");
    }
    if name.contains('.') {
        bail!(16412, "FieldPath field names may not contain '.', given '{name}'.");
    }
    Ok(())
}

/// Stages may choose and order documents, in an order that they say or by a score.
fn check_stages(stage: &'static str, stages: &[Value], path: &str) -> Result<()> {
    let scored = stage == "$scoreFusion";
    if stages.is_empty() {
        bail!(9834300, "{stage} input pipeline cannot be empty");
    }
    if let Some(v) = stages.iter().find(|v| v.as_document().is_none()) {
        return Err(wrong_type(path, v.type_name(), "object"));
    }
    if stages.len() > STAGES_MAX {
        bail!(7749501, "Pipeline length must be no longer than {STAGES_MAX} stages");
    }
    for (at, inner) in stages.iter().enumerate() {
        let Some((name, spec)) =
            stage_of(inner).filter(|_| inner.as_document().is_some_and(|d| d.len() == 1))
        else {
            bail!(40323, "A pipeline stage specification object must contain exactly one field.");
        };
        check_place(name, at)?;
        if is_fusion(name) {
            bail!(10473002, "{name} is not allowed in an input pipeline of {stage}");
        }
        if table::find(name).is_none() {
            bail!(40324, "Unrecognized pipeline stage name: '{name}'");
        }
        let adds = |field: &str| spec.as_document().is_some_and(|d| d.contains_key(field));
        let selects = SELECTION.contains(&name) || (scored && name == "$score");
        if !selects || (name == "$geoNear" && (adds("distanceField") || adds("includeLocs"))) {
            bail!(9191103, "{name} modifies documents, which an input pipeline of {stage} must not");
        }
    }
    let names = || stages.iter().filter_map(stage_of).map(|(name, _)| name);
    let begins_ranked = names().next().is_some_and(|name| RANKED.contains(&name));
    if scored {
        if !begins_ranked && !is_text_match(&stages[0]) && !names().any(|name| name == "$score") {
            bail!(
                9402500,
                "All subpipelines to the $scoreFusion stage must begin with a scored stage or have a $score"
            );
        }
    } else if !begins_ranked && !names().any(|name| name == "$sort") {
        bail!(
            9191100,
            "All subpipelines to the $rankFusion stage must begin with a ranked stage or have a $sort"
        );
    }
    Ok(())
}

/// The pattern by which a pipeline's documents come, where equal keys are equal ranks.
fn order_of(stages: &[Value]) -> Value {
    let ordering =
        stages.iter().rev().filter_map(stage_of).find(|(name, _)| matches!(*name, "$sort" | "$sample"));
    match ordering {
        Some(("$sort", Value::Document(d))) if d.iter().all(|(_, v)| v.as_document().is_none()) => {
            Value::Document(d.clone())
        }
        _ => Value::Null,
    }
}

fn weigh(stage: &str, inputs: &mut [Input], weights: &Document) -> Result<()> {
    if weights.len() > inputs.len() {
        bail!(
            9460301,
            "{stage} input has more weights ({}) than pipelines ({})",
            weights.len(),
            inputs.len()
        );
    }
    for (name, v) in weights.iter() {
        let Some(input) = inputs.iter_mut().find(|i| i.name == name) else {
            bail!(9967500, "The weight '{name}' is of no pipeline of {stage}");
        };
        if !v.is_number() {
            bail!(13118, "A weight of {stage} must be a number, but '{name}' is of type {}", v.type_name());
        }
        let weight = number::as_f64(v).unwrap_or(f64::NAN);
        if weight.is_nan() || weight < 0.0 {
            bail!(9460300, "A weight of {stage} must be non-negative, but '{name}' is {weight}");
        }
        input.weight = weight;
    }
    Ok(())
}
