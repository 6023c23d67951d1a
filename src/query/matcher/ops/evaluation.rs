//! `$mod`, `$regex`, `$expr`, `$where`, `$comment`, `$alwaysTrue`, `$alwaysFalse`, `$sampleRate`.

use super::PathInput;
use crate::QueryContext;
use crate::computed::Computed;
use crate::matcher::ast::{Condition, ElementTest, Node, Test};
use crate::matcher::expr::Expr;
use crate::matcher::pattern::Pattern;
use document::{Collation, Document, Element, Result, Value, ValueRef, bail, doc, number};
use std::sync::Arc;

#[derive(Debug)]
struct Modulo {
    divisor: i64,
    remainder: i64,
}

impl ElementTest for Modulo {
    fn matches(&self, e: &Element<'_>) -> Result<bool> {
        let v = e.value();
        let n = match v {
            ValueRef::Int32(i) => i as i64,
            ValueRef::Int64(i) => i,
            ValueRef::Double(d) if d.is_finite() && d.abs() < 9.3e18 => d as i64,
            ValueRef::Decimal128(d) if !crate::matcher::ast::is_nan(v) => {
                match number::to_i64_saturating(&Value::Decimal128(d)) {
                    Some(n) if n != i64::MAX && n != i64::MIN => n,
                    _ => return Ok(false),
                }
            }
            _ => return Ok(false),
        };
        Ok(n.checked_rem(self.divisor).unwrap_or(0) == self.remainder)
    }
    fn describe(&self) -> Document {
        doc! {"$mod": [self.divisor, self.remainder]}
    }
}

fn whole(v: ValueRef<'_>, what: &str) -> Result<i64> {
    let value = v.to_value();
    match v {
        ValueRef::Int32(_) | ValueRef::Int64(_) => Ok(v.as_i64().unwrap_or(0)),
        ValueRef::Double(_) | ValueRef::Decimal128(_) => {
            let bad = number::is_nan(&value)
                || number::as_f64(&value).is_none_or(|d| !d.is_finite() || d.abs() >= 9.3e18);
            if bad {
                bail!(
                    BAD_VALUE,
                    "malformed mod, {what} value is invalid :: caused by :: Unable to coerce NaN/Inf to integral type"
                );
            }
            Ok(number::to_i64_saturating(&value).unwrap_or(0))
        }
        _ => bail!(BAD_VALUE, "malformed mod, {what} not a number"),
    }
}

pub fn modulo(input: &PathInput<'_>) -> Result<Condition> {
    let ValueRef::Array(list) = input.argument.value() else {
        bail!(BAD_VALUE, "malformed mod, needs to be an array");
    };
    let items: Vec<ValueRef<'_>> = list.iter().map(|e| e.value()).collect();
    let (divisor, remainder) = match items.as_slice() {
        [] | [_] => bail!(BAD_VALUE, "malformed mod, not enough elements"),
        [d, r] => (whole(*d, "divisor")?, whole(*r, "remainder")?),
        _ => bail!(BAD_VALUE, "malformed mod, too many elements"),
    };
    if divisor == 0 {
        bail!(BAD_VALUE, "divisor cannot be 0");
    }
    Ok(Condition::Test(Test::Other(Arc::new(Modulo { divisor, remainder }))))
}

pub fn regex(input: &PathInput<'_>) -> Result<Condition> {
    let beside = input.siblings.get("$options");
    let beside = match beside {
        None => None,
        Some(ValueRef::String(s)) => Some(s),
        Some(_) => bail!(BAD_VALUE, "$options has to be a string"),
    };
    let pattern = match input.argument.value() {
        ValueRef::String(source) => Pattern::compile(source, beside.unwrap_or(""))?,
        ValueRef::Regex(source, own) => {
            if beside.is_some() && !own.is_empty() {
                let options_first = input.siblings.iter().next().is_some_and(|e| e.name() == "$options");
                if options_first {
                    bail!(51074, "options set in both $options and $regex");
                }
                bail!(51075, "options set in both $regex and $options");
            }
            Pattern::compile(source, beside.unwrap_or(own))?
        }
        _ => bail!(BAD_VALUE, "$regex has to be a string"),
    };
    Ok(Condition::Test(Test::Regex(Arc::new(pattern))))
}

/// `$options` is read by `$regex`; alone it is an error.
pub fn options(input: &PathInput<'_>) -> Result<Condition> {
    if input.siblings.get("$regex").is_none() {
        bail!(BAD_VALUE, "$options needs a $regex");
    }
    Ok(Condition::All(Vec::new()))
}

pub fn comment_at_path(_: &PathInput<'_>) -> Result<Condition> {
    Ok(Condition::All(Vec::new()))
}
pub fn comment(_: Element<'_>, _: &QueryContext) -> Result<Node> {
    Ok(Node::True)
}

pub fn expr(e: Element<'_>, ctx: &QueryContext) -> Result<Node> {
    let value = e.value().to_value();
    let plain;
    let ctx = match is_constant_membership(&value) && !ctx.collation.is_simple() {
        true => {
            plain = ctx.clone().with_collation(&Collation::SIMPLE);
            &plain
        }
        false => ctx,
    };
    Ok(Node::Expr(Expr::new(Computed::parse(&value, ctx)?, &ctx.collation)))
}

/// `{$in: ["$field", [constants]]}`, which the real server rewrites to a match without the collation.
fn is_constant_membership(v: &Value) -> bool {
    let Some(("$in", Value::Array(args))) = v.as_document().and_then(Document::first) else { return false };
    let constant =
        |v: &Value| !matches!(v, Value::Document(_)) && !v.as_str().is_some_and(|s| s.starts_with('$'));
    match args.as_slice() {
        [Value::String(path), Value::Array(items)] => {
            path.starts_with('$') && !path.starts_with("$$") && items.iter().all(constant)
        }
        _ => false,
    }
}

/// `$where`: where nothing runs scripts, it has no place.
pub fn script(e: Element<'_>, ctx: &QueryContext) -> Result<Node> {
    let code = match e.value() {
        ValueRef::String(code) | ValueRef::JavaScript(code) => code,
        _ => bail!(BAD_VALUE, "$where got bad type"),
    };
    if ctx.scripts.engine().is_none() {
        bail!(BAD_VALUE, "$where is not allowed in this context");
    }
    Ok(Node::Script(ctx.scripts.function(code, ctx.scripts.stored.clone())?))
}

fn must_be_one(e: Element<'_>) -> Result<()> {
    if e.value().as_i64() != Some(1) {
        bail!(FAILED_TO_PARSE, "{} must be an integer value of 1", e.name());
    }
    Ok(())
}
pub fn always_true(e: Element<'_>, _: &QueryContext) -> Result<Node> {
    must_be_one(e)?;
    Ok(Node::True)
}
pub fn always_false(e: Element<'_>, _: &QueryContext) -> Result<Node> {
    must_be_one(e)?;
    Ok(Node::False)
}

pub fn sample_rate(e: Element<'_>, ctx: &QueryContext) -> Result<Node> {
    let Some(rate) = number::as_f64(&e.value().to_value()) else {
        bail!(BAD_VALUE, "argument to $sampleRate must be a numeric type");
    };
    if !(0.0..=1.0).contains(&rate) {
        bail!(BAD_VALUE, "numeric argument to $sampleRate must be in [0, 1]");
    }
    Ok(match rate {
        0.0 => Node::False,
        1.0 => Node::True,
        _ => Node::SampleRate { rate, seed: ctx.seed },
    })
}
