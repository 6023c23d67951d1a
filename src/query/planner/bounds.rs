//! What a predicate says of the values of one index field, as intervals in BSON order.
//!
//! Intervals are exact when a key in them is enough for the predicate to hold; otherwise the predicate is checked again on the document.
//! Strings stand in them as an index of the predicate's collation holds them ([`document::Collation::comparable`]), so all here is in plain BSON order;
//! whether an index of another collation can use them is asked of the test ([`Test::string_collation`]).
//! They always hold every key by which a matching document could be found: one at least of its keys lies in them.

use crate::matcher::ast::{InSet, TypeSet, is_nan};
use crate::matcher::pattern::Pattern;
use crate::matcher::{Comparison, Condition, Operand, Test};
use document::compare::{canonical_type, compare_values};
use document::{Binary, Doc, ObjectId, Timestamp, Value, ValueRef};
use std::cmp::Ordering;

/// Values from `lo` to `hi`, in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    pub lo: Value,
    pub lo_inclusive: bool,
    pub hi: Value,
    pub hi_inclusive: bool,
}

/// A set of values: ascending, disjoint intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals {
    pub list: Vec<Interval>,
    pub exact: bool,
    /// A missing value may match, so that a sparse index cannot answer.
    pub takes_missing: bool,
}

impl Interval {
    pub fn point(v: Value) -> Interval {
        Interval { lo: v.clone(), lo_inclusive: true, hi: v, hi_inclusive: true }
    }
    pub fn everything() -> Interval {
        Interval { lo: Value::MinKey, lo_inclusive: true, hi: Value::MaxKey, hi_inclusive: true }
    }
    pub fn is_point(&self) -> bool {
        self.lo_inclusive && self.hi_inclusive && compare_values(&self.lo, &self.hi) == Ordering::Equal
    }
    pub fn is_everything(&self) -> bool {
        self.lo == Value::MinKey && self.hi == Value::MaxKey && self.lo_inclusive && self.hi_inclusive
    }
    fn is_empty(&self) -> bool {
        match compare_values(&self.lo, &self.hi) {
            Ordering::Less => false,
            Ordering::Equal => !(self.lo_inclusive && self.hi_inclusive),
            Ordering::Greater => true,
        }
    }
}

impl Intervals {
    pub fn everything() -> Intervals {
        Intervals { list: vec![Interval::everything()], exact: false, takes_missing: true }
    }
    pub(super) fn of(list: Vec<Interval>, exact: bool) -> Intervals {
        let mut out = Intervals { list, exact, takes_missing: false };
        out.normalize();
        out
    }
    pub fn is_everything(&self) -> bool {
        matches!(self.list.as_slice(), [one] if one.is_everything())
    }
    pub fn is_points(&self) -> bool {
        self.list.iter().all(Interval::is_point)
    }
    /// Exactly one value.
    pub fn is_single_point(&self) -> bool {
        self.list.len() == 1 && self.list[0].is_point()
    }

    /// Whether no string is among the values, nor a document or array that may hold one.
    pub fn without_strings(&self) -> bool {
        let rank = |v: &Value| canonical_type(v.tag());
        let holding = [canonical_type(0x02), canonical_type(0x03), canonical_type(0x04)];
        self.list.iter().all(|i| !holding.iter().any(|r| (rank(&i.lo)..=rank(&i.hi)).contains(r)))
    }

    /// Orders and merges.
    fn normalize(&mut self) {
        self.list.retain(|i| !i.is_empty());
        self.list.sort_by(|a, b| compare_values(&a.lo, &b.lo).then(b.lo_inclusive.cmp(&a.lo_inclusive)));
        let mut out: Vec<Interval> = Vec::with_capacity(self.list.len());
        for next in self.list.drain(..) {
            if let Some(last) = out.last_mut() {
                let order = compare_values(&next.lo, &last.hi);
                let touching = order == Ordering::Equal && (next.lo_inclusive || last.hi_inclusive);
                if order == Ordering::Less || touching {
                    match compare_values(&next.hi, &last.hi) {
                        Ordering::Greater => (last.hi, last.hi_inclusive) = (next.hi, next.hi_inclusive),
                        Ordering::Equal => last.hi_inclusive |= next.hi_inclusive,
                        Ordering::Less => {}
                    }
                    continue;
                }
            }
            out.push(next);
        }
        self.list = out;
    }

    pub fn union(mut self, other: Intervals) -> Intervals {
        self.list.extend(other.list);
        self.exact &= other.exact;
        self.takes_missing |= other.takes_missing;
        self.normalize();
        self
    }

    /// What is in both, by going through the two lists once: both are in order, and no two intervals of one touch.
    pub fn intersect(&self, other: &Intervals) -> Intervals {
        let mut list = Vec::new();
        let (mut at, mut other_at) = (0, 0);
        while let (Some(a), Some(b)) = (self.list.get(at), other.list.get(other_at)) {
            let (lo, lo_inclusive) = match compare_values(&a.lo, &b.lo) {
                Ordering::Greater => (&a.lo, a.lo_inclusive),
                Ordering::Less => (&b.lo, b.lo_inclusive),
                Ordering::Equal => (&a.lo, a.lo_inclusive && b.lo_inclusive),
            };
            let ends = compare_values(&a.hi, &b.hi);
            let (hi, hi_inclusive) = match ends {
                Ordering::Less => (&a.hi, a.hi_inclusive),
                Ordering::Greater => (&b.hi, b.hi_inclusive),
                Ordering::Equal => (&a.hi, a.hi_inclusive && b.hi_inclusive),
            };
            list.push(Interval { lo: lo.clone(), lo_inclusive, hi: hi.clone(), hi_inclusive });
            match ends {
                Ordering::Greater => other_at += 1,
                _ => at += 1,
            }
        }
        let mut out = Intervals::of(list, self.exact && other.exact);
        out.takes_missing = self.takes_missing && other.takes_missing;
        out
    }

    /// Everything else. Only of exact intervals is it exact, and then only where no field is an array.
    pub fn complement(&self) -> Intervals {
        let mut list = Vec::new();
        let (mut lo, mut lo_inclusive) = (Value::MinKey, true);
        for i in &self.list {
            list.push(Interval { lo, lo_inclusive, hi: i.lo.clone(), hi_inclusive: !i.lo_inclusive });
            (lo, lo_inclusive) = (i.hi.clone(), !i.hi_inclusive);
        }
        list.push(Interval { lo, lo_inclusive, hi: Value::MaxKey, hi_inclusive: true });
        let mut out = Intervals::of(list, false);
        out.takes_missing = !self.takes_missing;
        out
    }
}

/// The least and the greatest value of the operand's type, and whether the greatest belongs to it.
fn type_range(v: ValueRef<'_>) -> Option<(Value, Value, bool)> {
    Some(match v {
        ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_) | ValueRef::Decimal128(_) => {
            (Value::Double(f64::NEG_INFINITY), Value::Double(f64::INFINITY), true)
        }
        ValueRef::String(_) | ValueRef::Symbol(_) => {
            (Value::from(""), Value::Document(Default::default()), false)
        }
        ValueRef::Document(_) => (Value::Document(Default::default()), Value::Array(Vec::new()), false),
        ValueRef::Binary(..) => (
            Value::Binary(Binary { subtype: 0, bytes: Vec::new() }),
            Value::ObjectId(ObjectId([0; 12])),
            false,
        ),
        ValueRef::ObjectId(_) => {
            (Value::ObjectId(ObjectId([0; 12])), Value::ObjectId(ObjectId([0xFF; 12])), true)
        }
        ValueRef::Boolean(_) => (Value::Boolean(false), Value::Boolean(true), true),
        ValueRef::DateTime(_) => (Value::DateTime(i64::MIN), Value::DateTime(i64::MAX), true),
        ValueRef::Timestamp(_) => {
            (Value::Timestamp(Timestamp::default()), Value::Timestamp(Timestamp::MAX), true)
        }
        _ => return None,
    })
}

/// The intervals of a test; `None` when it says nothing that an index could use.
pub fn of_test(test: &Test) -> Option<Intervals> {
    match test {
        Test::Compare(op, operand) => of_comparison(*op, operand),
        Test::In(set) => of_set(set),
        Test::Regex(pattern) => Some(of_pattern(pattern)),
        Test::Exists => Some(Intervals { takes_missing: false, ..Intervals::everything() }),
        Test::ElemMatchValue(list) => of_conditions(list),
        Test::Type(types) => of_types(types),
        _ => None,
    }
}

/// The intervals of a comparison by which an expression compares: in the order of all values, of which what is missing is the least but for
/// MinKey. An index has it as null.
pub fn of_expression(test: &Test) -> Option<Intervals> {
    let Test::Compare(op, operand) = test else { return None };
    let v = if is_nan(operand.value()) { Value::Double(f64::NAN) } else { comparable(operand) };
    let low = matches!(v, Value::Null | Value::MinKey);
    let below = |v: Value, inclusive: bool| {
        let (hi, hi_inclusive) = if low { (Value::Null, true) } else { (v, inclusive) };
        Interval { hi, hi_inclusive, ..Interval::everything() }
    };
    let above =
        |v: Value, inclusive: bool| Interval { lo: v, lo_inclusive: inclusive, ..Interval::everything() };
    let (interval, takes_missing) = match op {
        Comparison::Eq => (Interval::point(v), false),
        Comparison::Gt | Comparison::Gte => {
            let least = v == Value::MinKey;
            (above(v, *op == Comparison::Gte), least)
        }
        Comparison::Lt => (below(v, false), true),
        Comparison::Lte => (below(v, true), true),
    };
    Some(Intervals { takes_missing, ..Intervals::of(vec![interval], false) })
}

/// The brackets of the types. An array is in the index by its elements, wherever they stand.
fn of_types(types: &TypeSet) -> Option<Intervals> {
    const ARRAY: u8 = 0x04;
    if types.contains(ARRAY) {
        return Some(Intervals { takes_missing: false, ..Intervals::everything() });
    }
    let number = types.any_number.then_some(0x01);
    let brackets = number.into_iter().chain(types.tags.iter().copied()).map(bracket);
    Some(Intervals::of(brackets.collect::<Option<Vec<Interval>>>()?, false))
}

/// All values of the type, and those that stand among them.
fn bracket(tag: u8) -> Option<Interval> {
    let example = match tag {
        0x01 | 0x10 | 0x12 | 0x13 => ValueRef::Double(0.0),
        0x02 | 0x0E => ValueRef::String(""),
        0x03 => ValueRef::Document(Doc::empty()),
        0x05 => ValueRef::Binary(0, &[]),
        0x06 => return Some(Interval::point(Value::Undefined)),
        0x07 => ValueRef::ObjectId(ObjectId([0; 12])),
        0x08 => ValueRef::Boolean(false),
        0x09 => ValueRef::DateTime(0),
        0x0A => return Some(Interval::point(Value::Null)),
        0x11 => ValueRef::Timestamp(Timestamp::default()),
        0xFF => return Some(Interval::point(Value::MinKey)),
        0x7F => return Some(Interval::point(Value::MaxKey)),
        _ => return None,
    };
    let (lo, hi, hi_inclusive) = type_range(example)?;
    let lo = if matches!(lo, Value::Double(_)) { Value::Double(f64::NAN) } else { lo };
    Some(Interval { lo, lo_inclusive: true, hi, hi_inclusive })
}

/// `$ne`, `$nin`, `$not`, `{$exists: false}`.
pub fn of_negation(test: &Test) -> Option<Intervals> {
    if matches!(test, Test::Exists) {
        return Some(Intervals {
            takes_missing: true,
            exact: false,
            ..Intervals::of(vec![Interval::point(Value::Null)], false)
        });
    }
    let inner = match test {
        // An array is in the index by its elements: that an element is there does not say the array is not.
        Test::Compare(Comparison::Eq, operand) if !is_array(operand) => of_test(test)?,
        Test::In(set) if set.patterns.is_empty() && !set.values.iter().any(is_array) => of_test(test)?,
        _ => return None,
    };
    let null_or_inexact = !inner.exact && !inner.takes_missing;
    (!null_or_inexact).then(|| inner.complement())
}

fn is_array(operand: &Operand) -> bool {
    matches!(operand.value(), ValueRef::Array(_))
}

fn of_conditions(list: &[Condition]) -> Option<Intervals> {
    let mut out: Option<Intervals> = None;
    for c in list {
        let next = match c {
            // An array in the array is in the index as itself, not by its elements.
            Condition::Test(Test::ElemMatchValue(_)) => None,
            Condition::Test(test) => of_test(test),
            Condition::All(inner) => of_conditions(inner),
            Condition::Not(_) => None,
        };
        let Some(next) = next else { continue };
        out = Some(match out {
            None => next,
            Some(have) => have.intersect(&next),
        });
    }
    out.map(|i| Intervals { exact: false, takes_missing: false, ..i })
}

/// The operand as an index of its collation holds it.
fn comparable(operand: &Operand) -> Value {
    let value = operand.value().to_value();
    if operand.collation.is_simple() { value } else { operand.collation.comparable(&value) }
}

fn of_comparison(op: Comparison, operand: &Operand) -> Option<Intervals> {
    let v = operand.value();
    let value = comparable(operand);
    match v {
        ValueRef::Null if op == Comparison::Eq || op == Comparison::Lte || op == Comparison::Gte => {
            return Some(Intervals {
                takes_missing: true,
                ..Intervals::of(vec![Interval::point(Value::Null)], false)
            });
        }
        ValueRef::Null => return Some(Intervals::of(Vec::new(), true)),
        ValueRef::Array(items) => {
            return (op == Comparison::Eq).then(|| {
                // The elements are in the index; an array in an array is there as itself.
                let first = items.iter().next().map_or(Value::Undefined, |e| e.value().to_value());
                let first = operand.collation.comparable(&first);
                Intervals::of(vec![Interval::point(first), Interval::point(value)], false)
            });
        }
        ValueRef::MinKey | ValueRef::MaxKey if op != Comparison::Eq => return of_extreme(op, value),
        v if is_nan(v) => {
            let point = matches!(op, Comparison::Eq | Comparison::Lte | Comparison::Gte);
            let list = if point { vec![Interval::point(Value::Double(f64::NAN))] } else { Vec::new() };
            return Some(Intervals::of(list, true));
        }
        _ => {}
    }
    let (lo, lo_inclusive, hi, hi_inclusive) = match op {
        Comparison::Eq => return Some(Intervals::of(vec![Interval::point(value)], true)),
        Comparison::Lt => (type_range(v)?.0, true, value, false),
        Comparison::Lte => (type_range(v)?.0, true, value, true),
        Comparison::Gt | Comparison::Gte => {
            let (_, greatest, inclusive) = type_range(v)?;
            (value, op == Comparison::Gte, greatest, inclusive)
        }
    };
    Some(Intervals::of(vec![Interval { lo, lo_inclusive, hi, hi_inclusive }], true))
}

fn of_extreme(op: Comparison, v: Value) -> Option<Intervals> {
    let low = v == Value::MinKey;
    let everything = Interval::everything();
    let one = match (op, low) {
        (Comparison::Lt, true) | (Comparison::Gt, false) => return Some(Intervals::of(Vec::new(), true)),
        (Comparison::Lte, true) | (Comparison::Gte, false) => Interval::point(v),
        (Comparison::Gt, true) => Interval { lo_inclusive: false, ..everything },
        (Comparison::Lt, false) => Interval { hi_inclusive: false, ..everything },
        _ => everything,
    };
    let mut out = Intervals::of(vec![one], false);
    out.takes_missing = true;
    Some(out)
}

/// Whether the least or the greatest of all values lies outside of the intervals of a comparison for which an array that holds
/// nothing else passes, being another value itself.
pub fn leaves_out_an_extreme(test: &Test) -> bool {
    match test {
        Test::Compare(Comparison::Gt, operand) => operand.value() == ValueRef::MinKey,
        Test::Compare(Comparison::Lt, operand) => operand.value() == ValueRef::MaxKey,
        _ => false,
    }
}

fn of_set(set: &InSet) -> Option<Intervals> {
    let (mut exact, mut takes_missing) = (true, false);
    let mut points = Vec::with_capacity(set.values.len());
    for operand in &set.values {
        match operand.value() {
            ValueRef::Null | ValueRef::Array(_) => {
                let of_one = of_comparison(Comparison::Eq, operand)?;
                exact &= of_one.exact;
                takes_missing |= of_one.takes_missing;
                points.extend(of_one.list);
            }
            _ => points.push(Interval::point(comparable(operand))),
        }
    }
    // Ordered and merged once: a set may be large.
    let mut out = Intervals { takes_missing, ..Intervals::of(points, exact) };
    for pattern in &set.patterns {
        out = out.union(of_pattern(pattern));
    }
    Some(out)
}

/// What a pattern can match in an index whose strings are not held as they are.
pub fn of_any_string(pattern: &Pattern) -> Intervals {
    let strings = Interval {
        lo: Value::from(""),
        lo_inclusive: true,
        hi: Value::Document(Default::default()),
        hi_inclusive: false,
    };
    Intervals::of(vec![strings, Interval::point(regex_of(pattern))], false)
}

fn regex_of(pattern: &Pattern) -> Value {
    document::Regex { pattern: pattern.source.clone(), options: pattern.options.clone() }.into()
}

fn of_pattern(pattern: &Pattern) -> Intervals {
    let strings = match pattern.prefix() {
        Some((prefix, _)) => {
            let hi = successor(&prefix).map_or(Value::Document(Default::default()), Value::String);
            Interval { lo: Value::String(prefix), lo_inclusive: true, hi, hi_inclusive: false }
        }
        None => return of_any_string(pattern),
    };
    Intervals::of(vec![strings, Interval::point(regex_of(pattern))], false)
}

/// The least string above all that begin with `prefix`, among those that are valid UTF-8.
fn successor(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            char::MAX => continue,
            '\u{D7FF}' => Some('\u{E000}'),
            c => char::from_u32(c as u32 + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}
