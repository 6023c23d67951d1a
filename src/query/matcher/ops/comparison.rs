//! `$eq`, `$ne`, `$lt`, `$lte`, `$gt`, `$gte`, `$in`, `$nin`.
//!
//! A comparison holds only between values of one canonical type (all numbers are one), with two exceptions: null and missing are
//! equal, and MinKey and MaxKey bound everything. Strings compare by the operand's collation. NaN equals NaN and is neither less nor greater than any number.

use super::PathInput;
use crate::matcher::ast::{Comparison, Condition, Fast, InSet, Operand, Test, is_nan};
use crate::matcher::pattern::Pattern;
use crate::merge_sort::merge_sort;
use document::compare::canonical_type;
use document::{Collation, Element, Result, ValueRef, bail, meter};
use std::cmp::Ordering;
use std::sync::Arc;

const UNDEFINED: u8 = 0x06;
const REGEX: u8 = 0x0B;

fn comparison(op: Comparison, input: &PathInput<'_>) -> Result<Condition> {
    let e = input.argument;
    if e.tag() == UNDEFINED {
        bail!(BAD_VALUE, "cannot compare to undefined");
    }
    if e.tag() == REGEX && op != Comparison::Eq {
        bail!(BAD_VALUE, "Can't have RegEx as arg to predicate over field '{}'.", input.path);
    }
    Ok(Condition::Test(Test::Compare(op, Operand::of(&e, &input.ctx.collation))))
}

pub fn eq(input: &PathInput<'_>) -> Result<Condition> {
    comparison(Comparison::Eq, input)
}
pub fn ne(input: &PathInput<'_>) -> Result<Condition> {
    if input.argument.tag() == REGEX {
        bail!(BAD_VALUE, "Can't have regex as arg to $ne.");
    }
    Ok(comparison(Comparison::Eq, input)?.negated())
}
pub fn lt(input: &PathInput<'_>) -> Result<Condition> {
    comparison(Comparison::Lt, input)
}
pub fn lte(input: &PathInput<'_>) -> Result<Condition> {
    comparison(Comparison::Lte, input)
}
pub fn gt(input: &PathInput<'_>) -> Result<Condition> {
    comparison(Comparison::Gt, input)
}
pub fn gte(input: &PathInput<'_>) -> Result<Condition> {
    comparison(Comparison::Gte, input)
}

pub fn in_list(input: &PathInput<'_>) -> Result<Condition> {
    Ok(Condition::Test(Test::In(set(input, "$in")?)))
}
pub fn not_in_list(input: &PathInput<'_>) -> Result<Condition> {
    Ok(Condition::Test(Test::In(set(input, "$nin")?)).negated())
}

fn set(input: &PathInput<'_>, name: &str) -> Result<InSet> {
    let ValueRef::Array(list) = input.argument.value() else { bail!(BAD_VALUE, "{name} needs an array") };
    let mut set = InSet::default();
    for item in list {
        meter::spend(2)?;
        match item.value() {
            ValueRef::Undefined => bail!(BAD_VALUE, "InMatchExpression equality cannot be undefined"),
            ValueRef::Regex(source, options) => {
                set.patterns.push(Arc::new(Pattern::compile(source, options)?))
            }
            ValueRef::Document(d)
                if d.iter().next().is_some_and(|e| e.name_bytes().first() == Some(&b'$')) =>
            {
                let first = d.iter().next().map_or("", |e| e.name());
                if !matches!(first, "$ref" | "$id" | "$db") {
                    bail!(BAD_VALUE, "cannot nest $ under $in");
                }
                set.values.push(Operand::of(&item, &input.ctx.collation));
            }
            _ => set.values.push(Operand::of(&item, &input.ctx.collation)),
        }
    }
    let patterns = set.patterns;
    Ok(InSet { patterns, ..InSet::of(set.values, &input.ctx.collation)? })
}

impl InSet {
    /// The set of these values.
    ///
    /// # Errors
    /// Those of [`document::meter::spend`].
    pub fn of(mut values: Vec<Operand>, collation: &Collation) -> Result<InSet> {
        let has_null = values.iter().any(Operand::is_null);
        merge_sort(&mut values, |a, b| collation.compare(a.value(), b.value()))?;
        values.dedup_by(|a, b| collation.compare(a.value(), b.value()) == Ordering::Equal);
        Ok(InSet { values, patterns: Vec::new(), has_null, collation: collation.clone() })
    }
    /// Whether it holds the value.
    ///
    /// # Errors
    /// Those of [`document::meter::spend`].
    pub fn matches(&self, e: &Element<'_>) -> Result<bool> {
        for pattern in &self.patterns {
            pattern.spend(e.value_bytes().len())?;
            if pattern.matches(e)? {
                return Ok(true);
            }
        }
        Ok(match self.values.len() {
            0..=4 => self.values.iter().any(|v| compare_matches(Comparison::Eq, v, e)),
            _ => self.contains(e.value()),
        })
    }
    fn contains(&self, v: ValueRef<'_>) -> bool {
        self.values.binary_search_by(|probe| self.collation.compare(probe.value(), v)).is_ok()
    }
}

/// Whether a missing value passes.
pub fn compare_matches_missing(op: Comparison, operand: &Operand) -> bool {
    match op {
        Comparison::Eq => operand.is_null(),
        Comparison::Lt => operand.tag == 0x7F,
        Comparison::Lte => operand.is_null() || operand.tag == 0x7F,
        Comparison::Gt => operand.tag == 0xFF,
        Comparison::Gte => operand.is_null() || operand.tag == 0xFF,
    }
}

#[inline]
pub fn compare_matches(op: Comparison, operand: &Operand, e: &Element<'_>) -> bool {
    if let Some(order) = fast_order(operand, e) {
        return accepts(op, order);
    }
    if canonical_type(e.tag()) != canonical_type(operand.tag) {
        return match op {
            Comparison::Eq => false,
            Comparison::Lt | Comparison::Lte => operand.tag == 0x7F,
            Comparison::Gt | Comparison::Gte => operand.tag == 0xFF,
        };
    }
    let (a, b) = (e.value(), operand.value());
    if is_nan(a) || is_nan(b) {
        let both = is_nan(a) && is_nan(b);
        return both && !matches!(op, Comparison::Lt | Comparison::Gt);
    }
    accepts(op, operand.collation.compare(a, b))
}

fn accepts(op: Comparison, order: Ordering) -> bool {
    match op {
        Comparison::Eq => order == Ordering::Equal,
        Comparison::Lt => order == Ordering::Less,
        Comparison::Lte => order != Ordering::Greater,
        Comparison::Gt => order == Ordering::Greater,
        Comparison::Gte => order != Ordering::Less,
    }
}

/// The order of the common pairs, without decoding into [`ValueRef`]s.
#[inline]
fn fast_order(operand: &Operand, e: &Element<'_>) -> Option<Ordering> {
    let b = e.value_bytes();
    match (operand.fast, e.tag()) {
        (Fast::Integer(x), 0x10) => Some((i32::from_le_bytes(b.try_into().ok()?) as i64).cmp(&x)),
        (Fast::Integer(x), 0x12) => Some(i64::from_le_bytes(b.try_into().ok()?).cmp(&x)),
        (Fast::Integer(x), 0x01) if x.unsigned_abs() < 1 << 53 => {
            f64::from_le_bytes(b.try_into().ok()?).partial_cmp(&(x as f64))
        }
        (Fast::Double(x), 0x01) => f64::from_le_bytes(b.try_into().ok()?).partial_cmp(&x),
        (Fast::Double(x), 0x10) => (i32::from_le_bytes(b.try_into().ok()?) as f64).partial_cmp(&x),
        // Length and terminator aside, the bytes of strings order as the strings do.
        (Fast::String, 0x02) => Some(text(b)?.cmp(text(operand.bytes())?)),
        _ => None,
    }
}

fn text(b: &[u8]) -> Option<&[u8]> {
    b.get(4..b.len().checked_sub(1)?)
}
