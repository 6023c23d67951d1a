//! `$rankFusion` as the stages it stands for.
//!
//! ```text
//! {$rankFusion: {input: {pipelines: {p: [P..], q: [Q..]}}}}
//!     = P.., $_internalRank {pipeline: 0}, $unionWith {coll: <own>, pipeline: [Q.., $_internalRank {pipeline: 1}]},
//!       $_internalFuse
//! ```
//! What later stages ask for by `{$meta: "score"}` and `{$meta: "scoreDetails"}` stands in hidden fields ([`super::text`]).

use super::table;
use super::text::{Hidden, asks_for, read_from_fields};
use document::{Document, Result, Value, bail, doc, number};

const SCORE: Hidden = Hidden { meta: "score", field: "__internal_score" };
const DETAILS: Hidden = Hidden { meta: "scoreDetails", field: "__internal_scoreDetails" };

/// Stages that choose and order documents and leave them as they are.
const SELECTION: &[&str] =
    &["$match", "$sort", "$limit", "$skip", "$sample", "$geoNear", "$search", "$vectorSearch"];
/// Stages that bring an order of their own.
const RANKED: &[&str] = &["$geoNear", "$search", "$vectorSearch"];
const STAGES_MAX: usize = 1000;

/// The pipeline of a collection (or view) without `$rankFusion`; `None` where there is none at the front.
///
/// # Errors
/// The real server's for a malformed argument.
pub fn expand(stages: &[Value], collection: &str) -> Result<Option<Vec<Value>>> {
    let Some(("$rankFusion", spec)) = stages.first().and_then(stage_of) else { return Ok(None) };
    let fusion = Fusion::parse(spec)?;
    let rest = stages[1..].to_vec();
    if !fusion.score_details && rest.iter().any(|stage| asks_for(stage, &[DETAILS])) {
        bail!(40218, "query requires scoreDetails metadata, but it is not available");
    }
    let wanted: Vec<Hidden> =
        [SCORE, DETAILS].into_iter().filter(|h| rest.iter().any(|stage| asks_for(stage, &[*h]))).collect();
    let mut out = fusion.stages(collection, &wanted);
    out.extend(read_from_fields(rest, &wanted));
    Ok(Some(out))
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

fn is_fusion(name: &str) -> bool {
    matches!(name, "$rankFusion" | "$scoreFusion")
}

fn stage_of(stage: &Value) -> Option<(&str, &Value)> {
    stage.as_document().and_then(Document::first)
}

struct Input {
    name: String,
    stages: Vec<Value>,
    weight: f64,
}

struct Fusion {
    inputs: Vec<Input>,
    score_details: bool,
}

fn wrong_type(path: &str, v: &Value, expected: &str) -> document::Error {
    document::err!(
        TYPE_MISMATCH,
        "BSON field '$rankFusion.{path}' is the wrong type '{}', expected type '{expected}'",
        v.type_name()
    )
}

fn missing(path: &str) -> document::Error {
    document::err!(IDL_FAILED_TO_PARSE, "BSON field '$rankFusion.{path}' is missing but a required field")
}

/// A member that is an object; null counts as absent.
fn object<'a>(d: &'a Document, name: &str, path: &str) -> Result<Option<&'a Document>> {
    match d.get(name) {
        None | Some(Value::Null | Value::Undefined) => Ok(None),
        Some(Value::Document(inner)) => Ok(Some(inner)),
        Some(v) => Err(wrong_type(path, v, "object")),
    }
}

fn only(d: &Document, path: &str, known: &[&str]) -> Result<()> {
    match d.iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => {
            bail!(IDL_UNKNOWN_FIELD, "BSON field '$rankFusion{path}.{name}' is an unknown field.")
        }
        None => Ok(()),
    }
}

impl Fusion {
    fn parse(spec: &Value) -> Result<Fusion> {
        let Value::Document(d) = spec else {
            bail!(
                FAILED_TO_PARSE,
                "$rankFusion must take a nested object but found: {}",
                crate::expression::parse::show(spec)
            );
        };
        only(d, "", &["input", "combination", "scoreDetails"])?;
        let score_details = match d.get("scoreDetails") {
            None | Some(Value::Null | Value::Undefined) => false,
            Some(Value::Boolean(b)) => *b,
            Some(v) => return Err(wrong_type("scoreDetails", v, "bool")),
        };
        let combination = object(d, "combination", "combination")?;
        let input = object(d, "input", "input")?.ok_or_else(|| missing("input"))?;
        only(input, ".input", &["pipelines"])?;
        let pipelines =
            object(input, "pipelines", "input.pipelines")?.ok_or_else(|| missing("input.pipelines"))?;
        if pipelines.is_empty() {
            bail!(BAD_VALUE, "$rankFusion requires at least one pipeline");
        }
        let mut inputs = Vec::with_capacity(pipelines.len());
        for (name, v) in pipelines.iter() {
            let Value::Array(stages) = v else { return Err(wrong_type("input.pipelines", v, "array")) };
            check_name(name)?;
            check_stages(stages)?;
            inputs.push(Input { name: name.to_string(), stages: stages.clone(), weight: 1.0 });
        }
        if let Some(combination) = combination {
            weigh(&mut inputs, combination)?;
        }
        Ok(Fusion { inputs, score_details })
    }
    fn stages(&self, collection: &str, wanted: &[Hidden]) -> Vec<Value> {
        let mut out = Vec::new();
        for (i, input) in self.inputs.iter().enumerate() {
            let mut ranked = input.stages.clone();
            ranked.push(
                doc! { "$_internalRank": { "pipeline": i as i32, "sort": order_of(&input.stages) } }.into(),
            );
            match i {
                0 => out = ranked,
                _ => out.push(doc! { "$unionWith": { "coll": collection, "pipeline": ranked } }.into()),
            }
        }
        let names: Vec<Value> = self.inputs.iter().map(|i| Value::from(i.name.as_str())).collect();
        let weights: Vec<Value> = self.inputs.iter().map(|i| Value::Double(i.weight)).collect();
        let mut spec = doc! { "names": (Value::Array(names)), "weights": (Value::Array(weights)) };
        for hidden in wanted {
            spec.push(hidden.meta, hidden.field);
        }
        out.push(doc! { "$_internalFuse": spec }.into());
        out
    }
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

/// Stages may choose and order documents, in an order that they say.
fn check_stages(stages: &[Value]) -> Result<()> {
    if stages.is_empty() {
        bail!(9834300, "$rankFusion input pipeline cannot be empty");
    }
    if let Some(v) = stages.iter().find(|v| v.as_document().is_none()) {
        return Err(wrong_type("input.pipelines", v, "object"));
    }
    if stages.len() > STAGES_MAX {
        bail!(7749501, "Pipeline length must be no longer than {STAGES_MAX} stages");
    }
    for (at, stage) in stages.iter().enumerate() {
        let Some((name, spec)) =
            stage_of(stage).filter(|_| stage.as_document().is_some_and(|d| d.len() == 1))
        else {
            bail!(40323, "A pipeline stage specification object must contain exactly one field.");
        };
        check_place(name, at)?;
        if is_fusion(name) {
            bail!(10473002, "{name} is not allowed in an input pipeline of $rankFusion");
        }
        if table::find(name).is_none() {
            bail!(40324, "Unrecognized pipeline stage name: '{name}'");
        }
        let adds = |field: &str| spec.as_document().is_some_and(|d| d.contains_key(field));
        if !SELECTION.contains(&name)
            || (name == "$geoNear" && (adds("distanceField") || adds("includeLocs")))
        {
            bail!(9191103, "{name} modifies documents, which an input pipeline of $rankFusion must not");
        }
    }
    let names = || stages.iter().filter_map(stage_of).map(|(name, _)| name);
    if !names().next().is_some_and(|name| RANKED.contains(&name)) && !names().any(|name| name == "$sort") {
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

fn weigh(inputs: &mut [Input], combination: &Document) -> Result<()> {
    only(combination, ".combination", &["weights"])?;
    let weights = object(combination, "weights", "combination.weights")?;
    let weights = weights.ok_or_else(|| missing("combination.weights"))?;
    if weights.len() > inputs.len() {
        bail!(
            9460301,
            "$rankFusion input has more weights ({}) than pipelines ({})",
            weights.len(),
            inputs.len()
        );
    }
    for (name, v) in weights.iter() {
        let Some(input) = inputs.iter_mut().find(|i| i.name == name) else {
            bail!(9967500, "The weight '{name}' is of no pipeline of $rankFusion");
        };
        if !v.is_number() {
            bail!(
                13118,
                "A weight of $rankFusion must be a number, but '{name}' is of type {}",
                v.type_name()
            );
        }
        let weight = number::as_f64(v).unwrap_or(f64::NAN);
        if weight.is_nan() || weight < 0.0 {
            bail!(9460300, "A weight of $rankFusion must be non-negative, but '{name}' is {weight}");
        }
        input.weight = weight;
    }
    Ok(())
}
