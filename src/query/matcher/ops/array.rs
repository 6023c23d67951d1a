//! `$all`, `$elemMatch` and `$size`.

use super::PathInput;
use crate::matcher::ast::{Comparison, Condition, Operand, Test};
use crate::matcher::parse;
use crate::matcher::pattern::Pattern;
use document::{Doc, Element, Result, ValueRef, bail, number};
use std::sync::Arc;

pub fn all(input: &PathInput<'_>) -> Result<Condition> {
    let ValueRef::Array(list) = input.argument.value() else { bail!(BAD_VALUE, "$all needs an array") };
    let first = list.iter().next();
    let Some(first) = first else { return Ok(Condition::never()) };
    let nested = |e: &Element<'_>| matches!(e.value(), ValueRef::Document(d) if d.iter().next().is_some_and(|f| f.name() == "$elemMatch"));
    if nested(&first) {
        return all_elem_match(input, list);
    }
    let mut conditions = Vec::new();
    for item in list {
        conditions.push(match item.value() {
            ValueRef::Regex(source, options) => {
                Condition::Test(Test::Regex(Arc::new(Pattern::compile(source, options)?)))
            }
            ValueRef::Undefined => bail!(BAD_VALUE, "cannot compare to undefined"),
            ValueRef::Document(d) if parse::is_operator_document(d) => {
                bail!(BAD_VALUE, "no $ expressions in $all")
            }
            _ => Condition::Test(Test::Compare(Comparison::Eq, Operand::of(&item, &input.ctx.collation))),
        });
    }
    Ok(Condition::All(conditions))
}

fn all_elem_match(input: &PathInput<'_>, list: Doc<'_>) -> Result<Condition> {
    let mut conditions = Vec::new();
    for item in list {
        let ValueRef::Document(d) = item.value() else {
            bail!(BAD_VALUE, "$all/$elemMatch has to be consistent");
        };
        match d.iter().next() {
            Some(e) if e.name() == "$elemMatch" => {
                let inner = PathInput { path: input.path, argument: e, siblings: d, ctx: input.ctx };
                conditions.push(elem_match(&inner)?);
            }
            _ => bail!(BAD_VALUE, "$all/$elemMatch has to be consistent"),
        }
    }
    Ok(Condition::All(conditions))
}

/// Whether `$elemMatch`'s argument is about the elements themselves and not about their fields.
fn is_value_form(d: Doc<'_>) -> bool {
    let Some(first) = d.iter().next() else { return false };
    let name = first.name();
    name.starts_with('$')
        && super::find(super::TOP_OPERATORS, name).is_none_or(|_| name == "$comment" || name == "$geoNear")
        && !matches!(name, "$ref" | "$id" | "$db")
}

pub fn elem_match(input: &PathInput<'_>) -> Result<Condition> {
    let ValueRef::Document(d) = input.argument.value() else {
        bail!(BAD_VALUE, "$elemMatch needs an Object")
    };
    if is_value_form(d) {
        return Ok(Condition::Test(Test::ElemMatchValue(parse::conditions("", d, input.ctx)?)));
    }
    for e in d {
        if matches!(e.name(), "$where" | "$text") {
            bail!(BAD_VALUE, "{} can only be applied to the top-level document", e.name());
        }
        if e.name() == "$expr" {
            bail!(BAD_VALUE, "$expr can only be applied to the top-level document");
        }
    }
    Ok(Condition::Test(Test::ElemMatchObject(Box::new(parse::filter(d, input.ctx)?))))
}

pub fn size(input: &PathInput<'_>) -> Result<Condition> {
    let v = input.argument.value();
    let value = v.to_value();
    if !v.is_number() {
        bail!(
            BAD_VALUE,
            "Failed to parse $size. Expected a number in: $size: {}",
            document::shell::value(&value)
        );
    }
    let Some(n) = number::to_i64_exact(&value) else {
        bail!(
            BAD_VALUE,
            "Failed to parse $size. Expected an integer: $size: {}",
            document::shell::value(&value)
        );
    };
    if n > i32::MAX as i64 {
        bail!(BAD_VALUE, "Failed to parse $size. Cannot represent as an integer: $size: {n}");
    }
    if n < 0 {
        bail!(BAD_VALUE, "Failed to parse $size. Expected a non-negative number in: $size: {n}");
    }
    Ok(Condition::Test(Test::Size(n)))
}
