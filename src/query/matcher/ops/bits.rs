//! `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet`, `$bitsAnyClear`.
//!
//! A number counts as 64 bits of two's complement, so that positions past 63 repeat the sign; binary data as its bytes, the
//! least significant first, with zeros beyond its end.

use super::PathInput;
use crate::matcher::ast::{Condition, ElementTest, Test};
use document::{Document, Element, Result, Value, ValueRef, bail, number};
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
enum Kind {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

#[derive(Debug)]
struct Bits {
    kind: Kind,
    positions: Vec<u32>,
}

impl ElementTest for Bits {
    fn matches(&self, e: &Element<'_>) -> Result<bool> {
        Ok(match e.value() {
            ValueRef::Binary(_, bytes) => {
                self.decide(|p| bytes.get(p as usize / 8).is_some_and(|byte| byte >> (p % 8) & 1 == 1))
            }
            v if v.is_number() => match number::to_i64_exact(&v.to_value()) {
                Some(n) => self.decide(|p| n >> p.min(63) & 1 == 1),
                None => false,
            },
            _ => false,
        })
    }
    fn describe(&self) -> Document {
        let name = match self.kind {
            Kind::AllSet => "$bitsAllSet",
            Kind::AllClear => "$bitsAllClear",
            Kind::AnySet => "$bitsAnySet",
            Kind::AnyClear => "$bitsAnyClear",
        };
        let positions = self.positions.iter().map(|p| Value::Int64(*p as i64)).collect();
        Document(vec![(name.to_string(), Value::Array(positions))])
    }
}

impl Bits {
    fn decide(&self, is_set: impl Fn(u32) -> bool) -> bool {
        let mut positions = self.positions.iter().copied();
        match self.kind {
            Kind::AllSet => positions.all(is_set),
            Kind::AllClear => !positions.any(is_set),
            Kind::AnySet => positions.any(is_set),
            Kind::AnyClear => !positions.all(is_set),
        }
    }
}

fn parse(kind: Kind, input: &PathInput<'_>) -> Result<Condition> {
    let name = input.argument.name();
    let positions = match input.argument.value() {
        ValueRef::Array(list) => position_list(name, list)?,
        ValueRef::Binary(_, bytes) => set_bits(bytes),
        v if v.is_number() => set_bits(&mask(name, v)?.to_le_bytes()),
        _ => bail!(
            BAD_VALUE,
            "{name} takes an Array, a number, or a BinData but received: {}",
            input.argument.value().type_name()
        ),
    };
    Ok(Condition::Test(Test::Other(Arc::new(Bits { kind, positions }))))
}

fn mask(name: &str, v: ValueRef<'_>) -> Result<i64> {
    let text = || document::shell::value(&v.to_value());
    match number::to_i64_exact(&v.to_value()) {
        Some(n) if n >= 0 => Ok(n),
        Some(_) => bail!(FAILED_TO_PARSE, "Expected a non-negative number in: {name}: {}", text()),
        None => bail!(FAILED_TO_PARSE, "Expected an integer: {name}: {}", text()),
    }
}

fn position_list(name: &str, list: document::Doc<'_>) -> Result<Vec<u32>> {
    let mut positions = Vec::new();
    for item in list {
        let v = item.value();
        if !v.is_number() {
            bail!(
                BAD_VALUE,
                "Failed to parse bit position. Expected a number in: {}: {}",
                item.name(),
                v.type_name()
            );
        }
        match number::to_i64_exact(&v.to_value()) {
            Some(n) if n < 0 => bail!(BAD_VALUE, "bit positions must be >= 0 but got {n} in {name}"),
            Some(n) if n <= i32::MAX as i64 => positions.push(n as u32),
            _ => bail!(BAD_VALUE, "Failed to parse bit position. Expected an integer: {}", item.name()),
        }
    }
    Ok(positions)
}

fn set_bits(bytes: &[u8]) -> Vec<u32> {
    let at = |i: usize| (0..8u32).filter(move |b| bytes[i] >> b & 1 == 1).map(move |b| i as u32 * 8 + b);
    (0..bytes.len()).flat_map(at).collect()
}

pub fn all_set(input: &PathInput<'_>) -> Result<Condition> {
    parse(Kind::AllSet, input)
}
pub fn all_clear(input: &PathInput<'_>) -> Result<Condition> {
    parse(Kind::AllClear, input)
}
pub fn any_set(input: &PathInput<'_>) -> Result<Condition> {
    parse(Kind::AnySet, input)
}
pub fn any_clear(input: &PathInput<'_>) -> Result<Condition> {
    parse(Kind::AnyClear, input)
}
