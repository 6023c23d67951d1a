//! Operators that belong to no family, and `$$CURRENT`.

use super::{Arg, Eval, Expression, Node, Variables, Vars, is_nullish, parse, type_name};
use crate::pipeline::{index_key, sort_key};
use crate::sort::SortSpec;
use document::fts::TextQuery;
use document::{Doc, Result, Value, bail};
use std::sync::Arc;

/// `"$$CURRENT"`, the root document unless rebound.
#[derive(Debug)]
pub struct Current;

impl Node for Current {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        Ok(Some(vars.current().cloned().unwrap_or_else(|| Value::Document(root.to_document()))))
    }
    fn children(&self) -> Vec<&Expression> {
        Vec::new()
    }
    fn is_pure(&self) -> bool {
        false
    }
}

pub fn literal(_: &'static str, v: &Value, _: &Variables) -> Result<Expression> {
    Ok(Expression::Constant(v.clone()))
}

/// `$expr` and `$const` inside an expression mean their argument.
pub fn expr(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    parse::expression(v, vars)
}

#[derive(Debug)]
struct Rand;

impl Node for Rand {
    fn eval(&self, _: Doc<'_>, vars: &mut Vars) -> Eval {
        Ok(Some(Value::Double(vars.random())))
    }
    fn children(&self) -> Vec<&Expression> {
        Vec::new()
    }
    fn is_pure(&self) -> bool {
        false
    }
    fn name(&self) -> &'static str {
        "$rand"
    }
}

pub fn rand(_: &'static str, v: &Value, _: &Variables) -> Result<Expression> {
    match v {
        Value::Document(d) if d.is_empty() => {}
        Value::Array(a) if a.is_empty() => {}
        Value::Document(_) | Value::Array(_) => bail!(3040501, "$rand does not currently accept arguments"),
        v => bail!(10065, "invalid parameter: expected an object ($rand), found {}", v.type_name()),
    }
    Ok(Expression::Special(Arc::new(Rand)))
}

#[derive(Debug)]
struct Meta(String);

/// What `{$meta: ..}` may name.
const META: &[&str] = &[
    "textScore",
    "randVal",
    "searchScore",
    "searchHighlights",
    "geoNearDistance",
    "geoNearPoint",
    "recordId",
    "indexKey",
    "sortKey",
    "searchScoreDetails",
    "vectorSearchScore",
    "score",
    "scoreDetails",
    "searchSequenceToken",
    "timeseriesBucketMinTime",
    "timeseriesBucketMaxTime",
    "stream",
];

impl Node for Meta {
    fn eval(&self, root: Doc<'_>, _: &mut Vars) -> Eval {
        // The others are there only where the pipeline was written anew with fields in their place.
        Ok(root.get(index_key::FIELD).filter(|_| self.0 == index_key::META).map(|v| v.to_value()))
    }
    fn children(&self) -> Vec<&Expression> {
        Vec::new()
    }
    fn is_pure(&self) -> bool {
        false
    }
    fn name(&self) -> &'static str {
        "$meta"
    }
}

/// The score of the document at hand, which must be as the query found it.
#[derive(Debug)]
struct TextScore(Arc<TextQuery>);

impl Node for TextScore {
    fn eval(&self, root: Doc<'_>, _: &mut Vars) -> Eval {
        Ok(Some(Value::Double(self.0.score(root))))
    }
    fn children(&self) -> Vec<&Expression> {
        Vec::new()
    }
    fn is_pure(&self) -> bool {
        false
    }
    fn name(&self) -> &'static str {
        "$meta"
    }
}

pub fn meta(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::String(s) = v else { bail!(17307, "$meta only supports string arguments") };
    if !META.contains(&s.as_str()) {
        bail!(17308, "Unsupported $meta field: {s}");
    }
    if let ("textScore", Some(query)) = (s.as_str(), vars.text()) {
        return Ok(Expression::Special(Arc::new(TextScore(query.clone()))));
    }
    // These are there only where the pipeline or the projection was written anew.
    let missing = match s.as_str() {
        sort_key::META => "sort key",
        "textScore" | "geoNearDistance" | "geoNearPoint" => s,
        _ => return Ok(Expression::Special(Arc::new(Meta(s.clone())))),
    };
    bail!(40218, "query requires {missing} metadata, but it is not available")
}

/// The values by which the document at hand, as a sort sees it, is sorted.
#[derive(Debug)]
struct SortKey(SortSpec);

impl Node for SortKey {
    fn eval(&self, root: Doc<'_>, _: &mut Vars) -> Eval {
        let values = self.0.values(root)?;
        Ok(Some(Value::Array(values.into_iter().map(|v| v.to_value()).collect())))
    }
    fn children(&self) -> Vec<&Expression> {
        Vec::new()
    }
    fn reads(&self) -> Vec<String> {
        self.0.components().iter().map(|(path, _)| path.clone()).collect()
    }
    fn name(&self) -> &'static str {
        sort_key::OPERATOR
    }
}

/// `{$_internalSortKey: <pattern>}`, which [`sort_key`] puts in the place of `{$meta: "sortKey"}`.
pub fn key_of_sort(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(pattern) = v else {
        bail!(BAD_VALUE, "{} takes the pattern of a sort", sort_key::OPERATOR)
    };
    let spec = SortSpec::parse(pattern.to_doc_buf().doc())?.with_collation(vars.collation());
    Ok(Expression::Special(Arc::new(SortKey(spec))))
}

#[derive(Debug)]
struct SampleRate(f64);

impl Node for SampleRate {
    fn eval(&self, _: Doc<'_>, vars: &mut Vars) -> Eval {
        Ok(Some(Value::Boolean(vars.random() < self.0)))
    }
    fn children(&self) -> Vec<&Expression> {
        Vec::new()
    }
    fn is_pure(&self) -> bool {
        false
    }
}

pub fn sample_rate(_: &'static str, v: &Value, _: &Variables) -> Result<Expression> {
    match document::number::as_f64(v) {
        Some(rate) if (0.0..=1.0).contains(&rate) => Ok(Expression::Special(Arc::new(SampleRate(rate)))),
        _ => bail!(BAD_VALUE, "numeric argument to $sampleRate must be in [0, 1]"),
    }
}

pub fn type_of(args: &mut [Arg]) -> Eval {
    Ok(Some(Value::from(type_name(&args[0]))))
}

pub fn is_number(args: &mut [Arg]) -> Eval {
    Ok(Some(Value::Boolean(args[0].as_ref().is_some_and(Value::is_number))))
}

pub fn to_hashed_index_key(args: &mut [Arg]) -> Eval {
    let v = args[0].take().unwrap_or(Value::Null);
    Ok(Some(Value::Int64(document::hash::hash64_value(&v))))
}

pub fn binary_size(args: &mut [Arg]) -> Eval {
    match &args[0] {
        v if is_nullish(v) => Ok(Some(Value::Null)),
        Some(Value::String(s)) => Ok(Some(Value::Int32(s.len() as i32))),
        Some(Value::Binary(b)) => Ok(Some(Value::Int32(b.bytes.len() as i32))),
        v => bail!(51276, "$binarySize requires a string or BinData argument, found: {}", type_name(v)),
    }
}

pub fn bson_size(args: &mut [Arg]) -> Eval {
    match &args[0] {
        v if is_nullish(v) => Ok(Some(Value::Null)),
        Some(Value::Document(d)) => Ok(Some(Value::Int32(d.to_vec().len() as i32))),
        v => bail!(31393, "$bsonSize requires a document input, found: {}", type_name(v)),
    }
}

pub fn ts_second(args: &mut [Arg]) -> Eval {
    match &args[0] {
        v if is_nullish(v) => Ok(Some(Value::Null)),
        Some(Value::Timestamp(t)) => Ok(Some(Value::Int64(t.secs as i64))),
        v => bail!(5687301, " Argument to $tsSecond must be a timestamp, but is {}", type_name(v)),
    }
}
pub fn ts_increment(args: &mut [Arg]) -> Eval {
    match &args[0] {
        v if is_nullish(v) => Ok(Some(Value::Null)),
        Some(Value::Timestamp(t)) => Ok(Some(Value::Int64(t.inc as i64))),
        v => bail!(5687302, " Argument to $tsIncrement must be a timestamp, but is {}", type_name(v)),
    }
}
