//! `$score` as the stages it stands for.
//!
//! ```text
//! {$score: {score: E, normalization: "sigmoid", weight: w}}
//!     = $addFields {raw: E}, $addFields {new: {$multiply: [{$sigmoid: "$raw"}, w]}}, $unset raw
//! ```
//! What the stages behind it ask for by `{$meta: "score"}` and `{$meta: "scoreDetails"}` stands in hidden fields
//! ([`super::text`]) up to the next `$score`, whose own expression may still ask for it.

use super::fusion::{flag, member, missing, only, stage_of};
use super::text::{Hidden, asks_for, read_from_fields, reading, replaced};
use crate::expression::parse::show;
use document::{Document, Result, Value, bail, doc, number, wrong_type};

pub(super) const SCORE: Hidden = Hidden { meta: "score", field: "__internal_newScore" };
pub(super) const DETAILS: Hidden = Hidden { meta: "scoreDetails", field: "__internal_newScoreDetails" };
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

/// The pipeline without `$score`; `None` where there is none.
///
/// # Errors
/// The real server's for a malformed argument.
pub(super) fn expand(stages: &[Value]) -> Result<Option<Vec<Value>>> {
    let Some(first) = position(stages) else { return Ok(None) };
    let (before, mut rest) = stages.split_at(first);
    let mut out = before.to_vec();
    let mut known = Vec::new();
    while let Some((score, after)) = rest.split_first() {
        let spec = replaced(spec_of(score).unwrap_or(&Value::Null), &known);
        if asks_for(&spec, &[SCORE]) {
            bail!(40218, "query requires score metadata, but it is not available");
        }
        let (own, next) = after.split_at(position(after).unwrap_or(after.len()));
        let asked = |h: &Hidden| own.iter().chain(next.first()).any(|stage| asks_for(stage, &[*h]));
        let wanted: Vec<Hidden> = [SCORE, DETAILS].into_iter().filter(asked).collect();
        out.extend(Score::parse(&spec)?.stages(&wanted, &known)?);
        if next.first().is_some_and(|stage| asks_for(stage, &wanted)) {
            out.extend(own.iter().map(|stage| reading(stage, &wanted)));
            known = wanted;
        } else {
            out.extend(read_from_fields(own.to_vec(), &wanted));
            known = Vec::new();
        }
        rest = next;
    }
    Ok(Some(out))
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
        bail!(
            TYPE_MISMATCH,
            "BSON field '$score.weight' is the wrong type '{}', expected types '[long, int, decimal, double]'",
            v.type_name()
        );
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
    fn stages(&self, wanted: &[Hidden], known: &[Hidden]) -> Result<Vec<Value>> {
        let raw = doc! { "$_internalScore": (self.expression.clone()) };
        let mut out = vec![stage("$addFields", Document(vec![(RAW.to_string(), raw.into())]))];
        let mut done = vec![Value::from(RAW)];
        let is_wanted = |meta: &str| wanted.iter().any(|h| h.meta == meta);
        done.extend(known.iter().filter(|h| !is_wanted(h.meta)).map(|h| Value::from(h.field)));
        if !is_wanted(SCORE.meta) {
            done.push(SCORE.field.into());
        }
        out.extend(self.normalization.stages(RAW, SCORE.field, self.weight));
        if is_wanted(DETAILS.meta) {
            out.push(self.details_stage()?);
        }
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
