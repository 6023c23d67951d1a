//! Values back from the keys of an index.
//!
//! The encoding ([`crate::key_string`]) gives equal values equal bytes, so a key does not tell 1 from 1.0. What the
//! index has met settles that: [`Kinds`] notes for each field which types of number came, and where a whole number can
//! have been of one type only, the key tells the value exactly. Null may also stand for a missing field, and documents, arrays
//! and rarer types are not read back: there the reader fetches the document.

use crate::key_string::{self, Plain};
use crate::{Value, ValueRef};
use std::borrow::Cow;

/// Fields that have notes of their own; those after them share the last.
const FIELDS: usize = 8;

const INT: u8 = 1;
/// A long that an int could hold, and one that none could.
const SMALL_LONG: u8 = 2;
const LARGE_LONG: u8 = 4;
const WHOLE_DOUBLE: u8 = 8;
/// Decimals, NaN and negative zero, whose keys are those of other numbers.
const OTHER_NUMBER: u8 = 16;
const SYMBOL: u8 = 32;

/// The types of number that each field of an index has held; only ever grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds([u8; FIELDS]);

impl Kinds {
    /// Notes the value of the field at this position.
    #[inline]
    pub fn note(&mut self, field: usize, value: ValueRef<'_>) {
        self.0[field.min(FIELDS - 1)] |= kind(value);
    }
    pub fn merge(&mut self, other: Kinds) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own |= other;
        }
    }
    /// Whether it would stay as it is if `other` were merged into it.
    pub fn holds(&self, other: Kinds) -> bool {
        self.0.iter().zip(other.0).all(|(own, other)| own | other == *own)
    }
    /// Whether keys tell the numbers and strings of a field exactly.
    pub fn tells(&self, field: usize) -> bool {
        let met = self.0[field.min(FIELDS - 1)];
        let one_of = |types: u8| (met & types).count_ones() <= 1;
        met & (OTHER_NUMBER | SYMBOL) == 0
            && one_of(INT | SMALL_LONG | WHOLE_DOUBLE)
            && one_of(LARGE_LONG | WHOLE_DOUBLE)
    }
    /// A whole number of the field, as what it was.
    fn whole(&self, field: usize, n: i64) -> Option<Value> {
        let met = self.0[field.min(FIELDS - 1)];
        let small = i32::try_from(n).ok();
        match (small, met & WHOLE_DOUBLE != 0) {
            (_, true) => Some(Value::Double(n as f64)),
            (Some(n), false) if met & INT != 0 => Some(Value::Int32(n)),
            _ => Some(Value::Int64(n)),
        }
    }
}

fn kind(value: ValueRef<'_>) -> u8 {
    match value {
        ValueRef::Int32(_) => INT,
        ValueRef::Int64(n) if i32::try_from(n).is_ok() => SMALL_LONG,
        // The least long has the key of the double that equals it.
        ValueRef::Int64(i64::MIN) | ValueRef::Decimal128(_) => OTHER_NUMBER,
        ValueRef::Int64(_) => LARGE_LONG,
        ValueRef::Double(d) if d.is_nan() || (d == 0.0 && d.is_sign_negative()) => OTHER_NUMBER,
        ValueRef::Double(d) if d.fract() == 0.0 && d.is_finite() => WHOLE_DOUBLE,
        ValueRef::Symbol(_) => SYMBOL,
        _ => 0,
    }
}

/// The value of the component that `key` begins with, and its length. The value is `None` where the key does not tell
/// it; the whole is `None` when the bytes are no key. The field must be one that [`Kinds::tells`].
pub fn read(key: &[u8], descending: bool, kinds: Kinds, field: usize) -> Option<(Option<Value>, usize)> {
    let length = key_string::component_length(key, descending)?;
    let mut component = Cow::Borrowed(key.get(..length)?);
    if descending {
        key_string::invert(component.to_mut());
    }
    let value = match key_string::plain(&component) {
        Some(Plain::Whole(n)) => kinds.whole(field, n),
        Some(Plain::Double(d)) => Some(Value::Double(d)),
        Some(Plain::Value(v)) => Some(v),
        None => None,
    };
    Some((value, length))
}

/// Whether the first component of `key` stands for null or a missing field.
pub fn may_be_missing(key: &[u8], descending: bool) -> bool {
    key.first().is_some_and(|b| key_string::is_null(if descending { !b } else { *b }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binary, Decimal128, ObjectId, Timestamp};

    fn read_back(values: &[Value], descending: bool) -> Vec<Option<Value>> {
        let mut kinds = Kinds::default();
        for v in values {
            kinds.note(0, v.to_holder().get("").unwrap());
        }
        let read = |v: &Value| {
            let mut key = Vec::new();
            key_string::append_value(&mut key, v, descending);
            let length = key.len();
            key.extend_from_slice(b"rest");
            let (value, used) = read(&key, descending, kinds, 0).unwrap();
            assert_eq!(used, length);
            value
        };
        values.iter().map(read).collect()
    }

    #[test]
    fn keys_tell_values_whose_types_do_not_mix() {
        let ints = [0, 1, -1, 127, 128, -128, 300, -70000, i32::MAX, i32::MIN].map(Value::Int32);
        let longs = [1, -5, i64::MAX, i64::MIN + 1, 1 << 40].map(Value::Int64);
        let doubles = [0.0, 1.0, -2.5, 0.1, 1e300, -1e300, 3e9, f64::INFINITY, f64::NEG_INFINITY, 5e-324];
        let doubles = doubles.map(Value::Double);
        let others = [
            Value::from("abc"),
            Value::from("a\0b\u{1}c"),
            Value::from(""),
            Value::Boolean(true),
            Value::Boolean(false),
            Value::DateTime(-5),
            Value::Timestamp(Timestamp { secs: 7, inc: 9 }),
            Value::ObjectId(ObjectId([7; 12])),
            Value::Binary(Binary { subtype: 4, bytes: vec![0, 1, 255] }),
            Value::MinKey,
            Value::MaxKey,
        ];
        for descending in [false, true] {
            for list in [&ints[..], &longs[..], &doubles[..], &others[..]] {
                let wanted: Vec<Option<Value>> = list.iter().cloned().map(Some).collect();
                assert_eq!(format!("{:?}", read_back(list, descending)), format!("{wanted:?}"));
            }
        }
    }

    #[test]
    fn what_a_key_leaves_open_is_not_told() {
        let told = |values: &[Value]| {
            let mut kinds = Kinds::default();
            values.iter().for_each(|v| kinds.note(0, v.to_holder().get("").unwrap()));
            kinds.tells(0)
        };
        assert!(!told(&[Value::Int32(1), Value::Double(2.0)]));
        assert!(!told(&[Value::Int32(1), Value::Int64(1)]));
        assert!(!told(&[Value::Double(-0.0)]));
        assert!(!told(&[Value::Decimal128(Decimal128([0; 16]))]));
        assert!(told(&[Value::Int32(1), Value::Double(2.5), Value::Int64(1 << 40)]));
        assert_eq!(read_back(&[Value::Null, Value::Document(crate::doc! {"a": 1})], false), vec![None, None]);
    }
}
