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

/// The bits that are asked for.
#[derive(Debug)]
enum Asked {
    Positions(Vec<u32>),
    /// The bits that are set in these bytes, the least significant byte first.
    Mask(Vec<u8>),
}

#[derive(Debug)]
struct Bits {
    kind: Kind,
    asked: Asked,
}

/// Positions that are looked at in the time of a unit of work, and bytes of a mask.
const POSITIONS_A_UNIT: usize = 16;
const BYTES_A_UNIT: usize = 64;
/// Explain shows no more positions.
const SHOWN_MAX: usize = 100_000;

impl ElementTest for Bits {
    fn matches(&self, e: &Element<'_>) -> Result<bool> {
        Ok(match e.value() {
            ValueRef::Binary(_, bytes) => self.decide(|i| bytes.get(i).copied().unwrap_or(0)),
            v if v.is_number() => match number::to_i64_exact(&v.to_value()) {
                Some(n) => {
                    let sign = if n < 0 { 0xFF } else { 0 };
                    self.decide(|i| n.to_le_bytes().get(i).copied().unwrap_or(sign))
                }
                None => false,
            },
            _ => false,
        })
    }
    fn units(&self, _: &Element<'_>) -> usize {
        match &self.asked {
            Asked::Positions(positions) => positions.len() / POSITIONS_A_UNIT,
            Asked::Mask(mask) => mask.len() / BYTES_A_UNIT,
        }
    }
    fn describe(&self) -> Document {
        let name = match self.kind {
            Kind::AllSet => "$bitsAllSet",
            Kind::AllClear => "$bitsAllClear",
            Kind::AnySet => "$bitsAnySet",
            Kind::AnyClear => "$bitsAnyClear",
        };
        let positions: Vec<i64> = match &self.asked {
            Asked::Positions(positions) => positions.iter().map(|p| i64::from(*p)).take(SHOWN_MAX).collect(),
            Asked::Mask(mask) => {
                let is_set = |p: &i64| mask[*p as usize / 8] >> (p % 8) & 1 == 1;
                (0..mask.len() as i64 * 8).filter(is_set).take(SHOWN_MAX).collect()
            }
        };
        let positions = positions.into_iter().map(Value::Int64).collect();
        Document(vec![(name.to_string(), Value::Array(positions))])
    }
}

impl Bits {
    /// `byte` gives the value's bytes, the least significant first, of which there are as many as are asked for.
    fn decide(&self, byte: impl Fn(usize) -> u8) -> bool {
        let clear = |i: usize, bits: u8| bits & !byte(i) != 0;
        let set = |i: usize, bits: u8| bits & byte(i) != 0;
        match self.kind {
            Kind::AllSet => !self.any(clear),
            Kind::AllClear => !self.any(set),
            Kind::AnySet => self.any(set),
            Kind::AnyClear => self.any(clear),
        }
    }
    /// Whether `test` holds for some byte and the bits asked for in it.
    fn any(&self, test: impl Fn(usize, u8) -> bool) -> bool {
        match &self.asked {
            Asked::Positions(positions) => positions.iter().any(|p| test(*p as usize / 8, 1 << (p % 8))),
            Asked::Mask(mask) => mask.iter().enumerate().any(|(i, bits)| test(i, *bits)),
        }
    }
}

fn parse(kind: Kind, input: &PathInput<'_>) -> Result<Condition> {
    let name = input.argument.name();
    let asked = match input.argument.value() {
        ValueRef::Array(list) => Asked::Positions(position_list(name, list)?),
        ValueRef::Binary(_, bytes) => Asked::Mask(bytes.to_vec()),
        v if v.is_number() => Asked::Mask(mask(name, v)?.to_le_bytes().to_vec()),
        _ => bail!(
            BAD_VALUE,
            "{name} takes an Array, a number, or a BinData but received: {}",
            input.argument.value().type_name()
        ),
    };
    Ok(Condition::Test(Test::Other(Arc::new(Bits { kind, asked }))))
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
