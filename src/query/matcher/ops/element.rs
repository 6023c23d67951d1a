//! `$exists` and `$type`.

use super::PathInput;
use crate::matcher::ast::{Condition, Test, TypeSet};
use document::{Result, ValueRef, bail};

pub fn exists(input: &PathInput<'_>) -> Result<Condition> {
    let e = Condition::Test(Test::Exists);
    Ok(if input.argument.value().truthy() { e } else { e.negated() })
}

pub fn of_type(input: &PathInput<'_>) -> Result<Condition> {
    Ok(Condition::Test(Test::Type(type_set(input.argument.value(), "$type")?)))
}

/// Reads a type's alias or number, or an array of them.
pub fn type_set(v: ValueRef<'_>, field: &str) -> Result<TypeSet> {
    let mut set = TypeSet::default();
    match v {
        ValueRef::Array(list) => {
            for item in list {
                add(&mut set, item.value(), field)?;
            }
            if set.tags.is_empty() && !set.any_number {
                bail!(FAILED_TO_PARSE, "{field} must match at least one type");
            }
        }
        one => add(&mut set, one, field)?,
    }
    Ok(set)
}

fn add(set: &mut TypeSet, v: ValueRef<'_>, field: &str) -> Result<()> {
    match v {
        ValueRef::String("number") => set.any_number = true,
        ValueRef::String(name) => set.insert(tag_of_alias(name)?),
        v if v.is_number() => set.insert(tag_of_number(v)?),
        _ => bail!(TYPE_MISMATCH, "type must be represented as a number or a string"),
    }
    let _ = field;
    Ok(())
}

fn tag_of_number(v: ValueRef<'_>) -> Result<u8> {
    let n = match v {
        ValueRef::Decimal128(_) => document::number::to_i64_exact(&v.to_value()),
        v => v.as_i64(),
    };
    match n {
        Some(0) => bail!(BAD_VALUE, "$type 0 is no longer supported. Instead use {{$exists: false}}"),
        Some(-1) => Ok(0xFF),
        Some(n @ (1..=19 | 127)) => Ok(n as u8),
        _ => bail!(BAD_VALUE, "Invalid numerical type code: {}", document::shell::value(&v.to_value())),
    }
}

/// The type byte of an alias of `$type`.
pub fn tag_of_alias(name: &str) -> Result<u8> {
    let tag = (1..=19u8).chain([0x7F, 0xFF]).find(|t| document::raw::type_name(*t) == name);
    match tag {
        Some(tag) => Ok(tag),
        None => bail!(BAD_VALUE, "Unknown type name alias: {name}"),
    }
}
