//! `$score` as the stages it stands for.
//!
//! ```text
//! {$score: {score: E, normalization: "sigmoid", weight: w}}
//!     = $addFields {raw: E}, $addFields {new: {$multiply: [{$sigmoid: "$raw"}, w]}}, $unset raw
//! ```
//! What the stages behind it ask for by `{$meta: "score"}` and `{$meta: "scoreDetails"}` stands in hidden fields
//! ([`super::hidden`]) up to the next `$score`, whose own expression may still ask for it.

use super::fusion::{flag, member, missing, only, stage_of};
use super::hidden::{DETAILS, Hidden, SCORE, asking, carried};
use crate::expression::parse::show;
use document::{Document, Result, Value, bail, doc, number, wrong_type};

const RAW: &str = "__internal_rawScore";
const DESCRIPTION: &str = "the score calculated from multiplying a weight in the range [0,1] with either a normalized or nonnormalized value:";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Normalization {
    None,
    Sigmoid,
    MinMaxScaler,
}

impl Normalization {
    pub(super) fn name(self) -> &'static str {
        match self {
            Normalization::None => "none",
            Normalization::Sigmoid => "sigmoid",
            Normalization::MinMaxScaler => "minMaxScaler",
        }
    }
    /// The stages that put the normalised and weighted number of one field into another.
    pub(super) fn stages(self, raw: &str, to: &str, weight: f64) -> Vec<Value> {
        let number = format!("${raw}");
        let add = |v: Value| {
            let product = doc! { "$multiply": (Value::Array(vec![v, Value::Double(weight)])) };
            stage("$addFields", Document(vec![(to.to_string(), product.into())]))
        };
        match self {
            Normalization::None => vec![add(number.into())],
            Normalization::Sigmoid => vec![add(doc! { "$sigmoid": number }.into())],
            Normalization::MinMaxScaler => {
                let (least, most) = ("$__internal_least", "$__internal_most");
                let range = doc! { "$subtract": [most, least] };
                let above = doc! { "$subtract": [number.as_str(), least] };
                let scaled = doc! { "$divide": [above, range] };
                let equal = doc! { "$eq": [most, least] };
                let output = doc! {
                    "__internal_least": { "$min": number.as_str() }, "__internal_most": { "$max": number.as_str() },
                };
                vec![
                    stage("$setWindowFields", doc! { "output": output }),
                    add(doc! { "$cond": [equal, 0.0, scaled] }.into()),
                    doc! { "$unset": ["__internal_least", "__internal_most"] }.into(),
                ]
            }
        }
    }
}

pub(super) fn stage(name: &str, spec: Document) -> Value {
    Value::Document(Document(vec![(name.to_string(), spec.into())]))
}

/// An expression as details show it.
pub(super) fn text_of(expression: &Value) -> String {
    format!("{{ string: {} }}", show(expression).replace('"', "'"))
}

/// The member that says how scores are normalised.
pub(super) fn normalization(d: &Document, owner: &str) -> Result<Option<Normalization>> {
    Ok(Some(match member(d, "normalization") {
        None => return Ok(None),
        Some(Value::String(s)) => match s.as_str() {
            "none" => Normalization::None,
            "sigmoid" => Normalization::Sigmoid,
            "minMaxScaler" => Normalization::MinMaxScaler,
            other => bail!(
                BAD_VALUE,
                "Enumeration value '{other}' for field '{owner}.normalization' is not a valid value."
            ),
        },
        Some(v) => return Err(wrong_type(&format!("{owner}.normalization"), v.type_name(), "string")),
    }))
}

/// Where the first `$score` stands.
pub(super) fn position(stages: &[Value]) -> Option<usize> {
    stages.iter().position(|stage| spec_of(stage).is_some())
}

/// The argument of a `$score`.
pub(super) fn spec_of(stage: &Value) -> Option<&Value> {
    stage_of(stage).filter(|(name, _)| *name == "$score").map(|(_, spec)| spec)
}

/// Stages behind `out`, which has filled these fields, without `$score`.
///
/// # Errors
/// The real server's for a malformed argument.
pub(super) fn expand(
    mut out: Vec<Value>,
    mut rest: Vec<Value>,
    mut filled: Vec<Hidden>,
) -> Result<Vec<Value>> {
    loop {
        rest = carried(rest, &filled);
        let Some(at) = position(&rest) else { break };
        let after = rest.split_off(at + 1);
        let score = Score::parse(rest.pop().as_ref().and_then(spec_of).unwrap_or(&Value::Null))?;
        out.append(&mut rest);
        filled = asking(&after, &[SCORE, DETAILS]);
        out.extend(score.stages(&filled)?);
        rest = after;
    }
    out.append(&mut rest);
    Ok(out)
}

/// A number as the double that a score is; anything else is refused as no factor of a product.
pub(super) fn as_score(expression: Value) -> Value {
    let refused = doc! { "$multiply": [{ "$type": "$$score" }, 1] };
    let score = doc! { "$cond": [{ "$isNumber": "$$score" }, { "$toDouble": "$$score" }, refused] };
    doc! { "$let": { "vars": { "score": expression }, "in": score } }.into()
}

struct Score {
    expression: Value,
    normalization: Normalization,
    weight: f64,
    details: bool,
}

fn weight(d: &Document) -> Result<f64> {
    let Some(v) = member(d, "weight") else { return Ok(1.0) };
    if !v.is_number() {
        return Err(document::wrong_types("$score.weight", v.type_name(), "[long, int, decimal, double]"));
    }
    let weight = number::as_f64(v).unwrap_or(f64::NAN);
    if weight.is_nan() || weight < 0.0 {
        bail!(51024, "BSON field 'weight' value must be >= 0, actual value '{weight}'");
    }
    if weight > 1.0 {
        bail!(51024, "BSON field 'weight' value must be <= 1, actual value '{weight}'");
    }
    Ok(weight)
}

impl Score {
    fn parse(spec: &Value) -> Result<Score> {
        let Value::Document(d) = spec else {
            bail!(FAILED_TO_PARSE, "$score must take a nested object but found: {}", show(spec));
        };
        only(d, "$score", &["score", "scoreDetails", "normalization", "weight"])?;
        Ok(Score {
            expression: d.get("score").cloned().ok_or_else(|| missing("$score.score"))?,
            normalization: normalization(d, "$score")?.unwrap_or(Normalization::None),
            weight: weight(d)?,
            details: flag(d, "$score", "scoreDetails")?,
        })
    }
    fn stages(&self, wanted: &[Hidden]) -> Result<Vec<Value>> {
        let raw = Document(vec![(RAW.to_string(), as_score(self.expression.clone()))]);
        let mut out = vec![stage("$addFields", raw)];
        out.extend(self.normalization.stages(RAW, SCORE.field, self.weight));
        if wanted.contains(&DETAILS) {
            out.push(self.details_stage()?);
        }
        let unwanted = [SCORE, DETAILS].into_iter().filter(|h| !wanted.contains(h)).map(|h| h.field);
        let done = unwanted.chain([RAW]).map(Value::from).collect();
        out.push(doc! { "$unset": (Value::Array(done)) }.into());
        Ok(out)
    }
    fn details_stage(&self) -> Result<Value> {
        if !self.details {
            bail!(40218, "query requires scoreDetails metadata, but it is not available");
        }
        let details = doc! {
            "value": (format!("${}", SCORE.field)), "description": { "$literal": DESCRIPTION },
            "rawScore": (format!("${RAW}")), "normalization": (self.normalization.name()), "weight": (self.weight),
            "expression": { "$literal": (text_of(&self.expression)) }, "details": (Value::Array(Vec::new())),
        };
        Ok(stage("$addFields", Document(vec![(DETAILS.field.to_string(), details.into())])))
    }
}
