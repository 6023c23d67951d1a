//! `$inc`, `$mul`, `$min`, `$max`, `$bit`.

use super::{Change, Modifier, Parsed};
use crate::QueryContext;
use crate::text;
use crate::update::path::UpdatePath;
use crate::update::tree::Place;
use document::compare::compare_values;
use document::{Collation, Result, Value, bail, number};
use std::cmp::Ordering;
use std::sync::Arc;

#[derive(Debug)]
struct Arithmetic {
    name: &'static str,
    argument: Value,
    combine: fn(&Value, &Value) -> Option<Value>,
    /// What a missing field becomes.
    initial: Value,
}

impl Modifier for Arithmetic {
    fn change(&self, value: &mut Value, place: &Place<'_>) -> Result<Change> {
        if !value.is_number() {
            bail!(
                TYPE_MISMATCH,
                "Cannot apply {} to a value of non-numeric type. {} has the field '{}' of non-numeric type {}",
                self.name,
                place.document_id(),
                place.name,
                value.type_name()
            );
        }
        let Some(new) = (self.combine)(value, &self.argument) else {
            bail!(
                BAD_VALUE,
                "Failed to apply {} operations to current value ({}) for document {}",
                self.name,
                with_type(value),
                place.document_id()
            );
        };
        // Equal numbers of one type are the same number: a negative zero stays.
        if new.tag() == value.tag() && compare_values(&new, value) == Ordering::Equal {
            return Ok(Change::None);
        }
        *value = new;
        Ok(Change::Changed)
    }
    fn create(&self, _: &Place<'_>) -> Result<Option<Value>> {
        Ok(Some(self.initial.clone()))
    }
}

fn with_type(v: &Value) -> String {
    let kind = match v {
        Value::Int32(_) => "NumberInt",
        Value::Int64(_) => "NumberLong",
        Value::Double(_) => "NumberDouble",
        _ => "NumberDecimal",
    };
    format!("({kind}){}", text::owned(v))
}

pub fn inc(path: &UpdatePath, v: &Value, _: &QueryContext) -> Parsed {
    if !v.is_number() {
        bail!(TYPE_MISMATCH, "Cannot increment with non-numeric argument: {}", text::element(&path.text, v));
    }
    Ok(Arc::new(Arithmetic {
        name: "$inc",
        argument: v.clone(),
        combine: number::add_exact,
        initial: v.clone(),
    }))
}

pub fn mul(path: &UpdatePath, v: &Value, _: &QueryContext) -> Parsed {
    let initial = match v {
        Value::Int32(_) => Value::Int32(0),
        Value::Int64(_) => Value::Int64(0),
        Value::Double(_) => Value::Double(0.0),
        Value::Decimal128(_) => number::decimal_from_str("0").map_or(Value::Int32(0), Value::Decimal128),
        _ => bail!(
            TYPE_MISMATCH,
            "Cannot multiply with non-numeric argument: {}",
            text::element(&path.text, v)
        ),
    };
    Ok(Arc::new(Arithmetic { name: "$mul", argument: v.clone(), combine: number::multiply_exact, initial }))
}

/// `$min` and `$max`: the argument takes the field's place when it stands on this side of it.
#[derive(Debug)]
struct Extreme {
    argument: Value,
    wanted: Ordering,
    collation: Collation,
}

impl Modifier for Extreme {
    fn change(&self, value: &mut Value, _: &Place<'_>) -> Result<Change> {
        if self.collation.compare_values(&self.argument, value) != self.wanted {
            return Ok(Change::None);
        }
        *value = self.argument.clone();
        Ok(Change::Changed)
    }
    fn create(&self, _: &Place<'_>) -> Result<Option<Value>> {
        Ok(Some(self.argument.clone()))
    }
}

fn extreme(v: &Value, wanted: Ordering, ctx: &QueryContext) -> Parsed {
    Ok(Arc::new(Extreme { argument: v.clone(), wanted, collation: ctx.collation.clone() }))
}
pub fn min(_: &UpdatePath, v: &Value, ctx: &QueryContext) -> Parsed {
    extreme(v, Ordering::Less, ctx)
}
pub fn max(_: &UpdatePath, v: &Value, ctx: &QueryContext) -> Parsed {
    extreme(v, Ordering::Greater, ctx)
}

#[derive(Clone, Copy, Debug)]
enum BitOperation {
    And,
    Or,
    Xor,
}

#[derive(Debug)]
struct Bit(Vec<(BitOperation, Value)>);

impl Bit {
    fn combine(&self, start: &Value) -> Value {
        let mut long = matches!(start, Value::Int64(_));
        let mut n = start.as_i64().unwrap_or(0);
        for (operation, operand) in &self.0 {
            long |= matches!(operand, Value::Int64(_));
            let x = operand.as_i64().unwrap_or(0);
            n = match operation {
                BitOperation::And => n & x,
                BitOperation::Or => n | x,
                BitOperation::Xor => n ^ x,
            };
        }
        if long { Value::Int64(n) } else { Value::Int32(n as i32) }
    }
}

impl Modifier for Bit {
    fn change(&self, value: &mut Value, place: &Place<'_>) -> Result<Change> {
        if !matches!(value, Value::Int32(_) | Value::Int64(_)) {
            bail!(
                BAD_VALUE,
                "Cannot apply $bit to a value of non-integral type.{} has the field {} of non-integer type {}",
                place.document_id(),
                place.name,
                value.type_name()
            );
        }
        let new = self.combine(value);
        if new == *value {
            return Ok(Change::None);
        }
        *value = new;
        Ok(Change::Changed)
    }
    fn create(&self, _: &Place<'_>) -> Result<Option<Value>> {
        Ok(Some(self.combine(&Value::Int32(0))))
    }
}

pub fn bit(_: &UpdatePath, v: &Value, _: &QueryContext) -> Parsed {
    let Value::Document(d) = v else {
        bail!(
            BAD_VALUE,
            "The $bit modifier is not compatible with a {}. You must pass in an embedded document: {{$bit: {{field: {{and/or/xor: #}}}}",
            v.type_name()
        );
    };
    let mut steps = Vec::new();
    for (name, operand) in d.iter() {
        let operation = match name {
            "and" => BitOperation::And,
            "or" => BitOperation::Or,
            "xor" => BitOperation::Xor,
            other => bail!(
                BAD_VALUE,
                "The $bit modifier only supports 'and', 'or', and 'xor', not '{other}' which is an unknown operator: {}",
                text::element(name, operand)
            ),
        };
        if !matches!(operand, Value::Int32(_) | Value::Int64(_)) {
            bail!(
                BAD_VALUE,
                "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: {}",
                operand.type_name(),
                text::element(name, operand)
            );
        }
        steps.push((operation, operand.clone()));
    }
    if steps.is_empty() {
        bail!(
            BAD_VALUE,
            "You must pass in at least one bitwise operation. The format is: {{$bit: {{field: {{and/or/xor: #}}}}"
        );
    }
    Ok(Arc::new(Bit(steps)))
}
