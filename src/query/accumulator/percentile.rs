//! `$median` and `$percentile`. All numbers are kept, so the answers are exact: the value at rank ceil(p * n).
//!
//! Partial: the array of numbers.

use super::{Accumulator, Parsed};
use crate::expression::{Arg, Expression, Variables, parse};
use crate::merge_sort::merge_sort;
use document::{Result, Value, bail, number};
use std::cmp::Ordering;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Spec {
    p: Vec<f64>,
    one: bool,
}

impl Spec {
    pub fn start(&self) -> State {
        State { spec: self.clone(), numbers: Vec::new() }
    }
}

/// NaN sorts below every number, as in the BSON order.
fn order(a: &f64, b: &f64) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

pub struct State {
    spec: Spec,
    numbers: Vec<f64>,
}

impl Accumulator for State {
    fn add(&mut self, v: Arg) -> Result<()> {
        self.numbers.extend(v.as_ref().and_then(number::as_f64));
        Ok(())
    }
    fn export(&mut self) -> Value {
        Value::Array(self.numbers.iter().map(|d| Value::Double(*d)).collect())
    }
    fn merge(&mut self, partial: Value) -> Result<()> {
        if let Value::Array(items) = partial {
            self.numbers.extend(items.iter().filter_map(number::as_f64));
        }
        Ok(())
    }
    fn settle(&mut self, partial: bool) -> Result<()> {
        if partial { Ok(()) } else { merge_sort(&mut self.numbers, order) }
    }
    fn finish(&mut self) -> Value {
        // Little work where they were settled.
        self.numbers.sort_by(order);
        let n = self.numbers.len();
        let at = |p: &f64| {
            let rank = ((p * n as f64).ceil() as usize).clamp(1, n.max(1)) - 1;
            self.numbers.get(rank).map_or(Value::Null, |d| Value::Double(*d))
        };
        if self.spec.one { at(&self.spec.p[0]) } else { Value::Array(self.spec.p.iter().map(at).collect()) }
    }
    fn memory(&self) -> usize {
        self.numbers.len() * 8
    }
}

/// `{input, method}` and, for `$percentile`, `p`.
pub fn parse(name: &'static str, v: &Value, vars: &Variables) -> Result<(Spec, Expression)> {
    let Value::Document(d) = v else {
        bail!(7429703, "specification must be an object; found {name} :{}", v.type_name());
    };
    let median = name == "$median";
    let known: &[&str] = if median { &["input", "method"] } else { &["input", "method", "p"] };
    if let Some(bad) = d.keys().find(|k| !known.contains(k)) {
        bail!(IDL_UNKNOWN_FIELD, "BSON field '{name}.{bad}' is an unknown field.");
    }
    for field in known {
        if !d.contains_key(field) {
            bail!(IDL_FAILED_TO_PARSE, "BSON field '{name}.{field}' is missing but a required field");
        }
    }
    match d.get("method") {
        Some(Value::String(s)) if s == "approximate" => {}
        Some(Value::String(_)) => {
            bail!(BAD_VALUE, "Currently only 'approximate' can be used as percentile 'method'.")
        }
        Some(v) => return Err(document::wrong_type(&format!("{name}.method"), v.type_name(), "string")),
        None => {}
    }
    let p = match d.get("p") {
        None => vec![0.5],
        Some(p) => points(&parse::expression(p, vars)?)?,
    };
    let input = parse::expression(d.get("input").unwrap_or(&Value::Null), vars)?;
    Ok((Spec { p, one: median }, input))
}

fn points(p: &Expression) -> Result<Vec<f64>> {
    let Some(Value::Array(items)) = p.as_constant() else {
        bail!(7750301, "The $percentile 'p' field must be an array of numbers from [0.0, 1.0]");
    };
    if items.is_empty() {
        bail!(7750301, "The $percentile 'p' field must be a non-empty array of numbers from [0.0, 1.0]");
    }
    let mut out = Vec::new();
    for item in items {
        let Some(d) = number::as_f64(item) else {
            bail!(
                7750302,
                "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {}",
                parse::show(item)
            );
        };
        if !(0.0..=1.0).contains(&d) {
            bail!(
                7750303,
                "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {d}"
            );
        }
        out.push(d);
    }
    Ok(out)
}

pub fn accumulator(name: &'static str, v: &Value, vars: &Variables) -> Result<Parsed> {
    let (spec, input) = parse(name, v, vars)?;
    Ok(Parsed::new(name, input, move |_| Box::new(spec.start())))
}
