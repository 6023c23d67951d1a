//! Numbers of four types as one field: order, promotion, arithmetic.
//!
//! `None` means an operand is not a number, or for the `*_exact` functions that an int64 overflowed.
use crate::{Decimal128, Value, ValueRef};
use std::cmp::Ordering;

/// Exact numeric order; NaN is equal to itself and below all. Non-numbers compare equal to nothing: `None`.
pub fn compare(_a: ValueRef<'_>, _b: ValueRef<'_>) -> Option<Ordering> {
    todo!()
}
/// int32 overflow gives int64, int64 overflow gives double (aggregation's rule).
pub fn add(_a: &Value, _b: &Value) -> Option<Value> {
    todo!()
}
pub fn subtract(_a: &Value, _b: &Value) -> Option<Value> {
    todo!()
}
pub fn multiply(_a: &Value, _b: &Value) -> Option<Value> {
    todo!()
}
/// As [`add`], but int64 overflow is `None` (the rule of `$inc`).
pub fn add_exact(_a: &Value, _b: &Value) -> Option<Value> {
    todo!()
}
pub fn subtract_exact(_a: &Value, _b: &Value) -> Option<Value> {
    todo!()
}
pub fn multiply_exact(_a: &Value, _b: &Value) -> Option<Value> {
    todo!()
}
/// Double or decimal; `None` also for a zero divisor.
pub fn divide(_a: &Value, _b: &Value) -> Option<Value> {
    todo!()
}
/// Remainder with the sign of the dividend; `None` also for a zero divisor.
pub fn modulo(_a: &Value, _b: &Value) -> Option<Value> {
    todo!()
}
pub fn negate(_a: &Value) -> Option<Value> {
    todo!()
}
pub fn absolute(_a: &Value) -> Option<Value> {
    todo!()
}
pub fn is_nan(_a: &Value) -> bool {
    todo!()
}
/// Any number as a double (decimals rounded to nearest).
pub fn as_f64(_a: &Value) -> Option<f64> {
    todo!()
}
/// Any number truncated toward zero, clamped; NaN is 0.
pub fn to_i64_saturating(_a: &Value) -> Option<i64> {
    todo!()
}
/// A number with an exact int64 value, of whatever type.
pub fn to_i64_exact(_a: &Value) -> Option<i64> {
    todo!()
}
/// Doubles are taken to 15 significant digits, as the server does.
pub fn to_decimal(_a: &Value) -> Option<Decimal128> {
    todo!()
}
/// int32 when it fits, else int64.
pub fn int_or_long(v: i64) -> Value {
    i32::try_from(v).map_or(Value::Int64(v), Value::Int32)
}
pub fn decimal_to_string(_d: Decimal128) -> String {
    todo!()
}
pub fn decimal_from_str(_s: &str) -> Option<Decimal128> {
    todo!()
}
