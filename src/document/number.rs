//! Numbers of four types as one field: order, promotion, arithmetic.
//!
//! The result has the widest operand type in the order int32, int64, double, decimal; an int32 result that does not
//! fit becomes an int64. `None` means an operand is not a number, or for the `*_exact` functions that an int64
//! overflowed.

use crate::decimal::Parts;
use crate::decimal::{compare_f64_magnitude, compare_magnitude};
use crate::{Decimal128, Value, ValueRef};
use std::cmp::Ordering;

/// A number out of its value.
#[derive(Clone, Copy, Debug)]
enum Number {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Decimal(Decimal128),
}

impl Number {
    fn of(v: &Value) -> Option<Number> {
        Some(match v {
            Value::Int32(n) => Number::Int32(*n),
            Value::Int64(n) => Number::Int64(*n),
            Value::Double(n) => Number::Double(*n),
            Value::Decimal128(n) => Number::Decimal(*n),
            _ => return None,
        })
    }
    /// The value as an integer, unless its type is double or decimal.
    fn integer(self) -> Option<i64> {
        match self {
            Number::Int32(n) => Some(n as i64),
            Number::Int64(n) => Some(n),
            _ => None,
        }
    }
    fn f64(self) -> f64 {
        match self {
            Number::Int32(n) => n as f64,
            Number::Int64(n) => n as f64,
            Number::Double(n) => n,
            Number::Decimal(n) => n.to_f64(),
        }
    }
    fn decimal(self) -> Decimal128 {
        match self {
            Number::Int32(n) => Decimal128::from_i64(n as i64),
            Number::Int64(n) => Decimal128::from_i64(n),
            Number::Double(n) => Decimal128::from_f64(n),
            Number::Decimal(n) => n,
        }
    }
}

/// Exact numeric order; NaN is equal to itself and below all. `None` when either is not a number.
#[inline]
pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>) -> Option<Ordering> {
    use ValueRef::{Decimal128 as Dec, Double, Int32, Int64};
    Some(match (a, b) {
        (Int32(a), Int32(b)) => a.cmp(&b),
        (Int32(a), Int64(b)) => (a as i64).cmp(&b),
        (Int64(a), Int32(b)) => a.cmp(&(b as i64)),
        (Int64(a), Int64(b)) => a.cmp(&b),
        (Double(a), Double(b)) => compare_f64(a, b),
        (Int32(a), Double(b)) => compare_f64(a as f64, b),
        (Double(a), Int32(b)) => compare_f64(a, b as f64),
        (Int64(a), Double(b)) => compare_i64_f64(a, b),
        (Double(a), Int64(b)) => compare_i64_f64(b, a).reverse(),
        (Dec(a), Dec(b)) => compare_decimals(a, b),
        (Dec(a), Int32(b)) => compare_decimals(a, Decimal128::from_i64(b as i64)),
        (Dec(a), Int64(b)) => compare_decimals(a, Decimal128::from_i64(b)),
        (Int32(a), Dec(b)) => compare_decimals(Decimal128::from_i64(a as i64), b),
        (Int64(a), Dec(b)) => compare_decimals(Decimal128::from_i64(a), b),
        (Dec(a), Double(b)) => compare_f64_decimal(b, a).reverse(),
        (Double(a), Dec(b)) => compare_f64_decimal(a, b),
        _ => return None,
    })
}

fn compare_f64(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

fn compare_i64_f64(a: i64, b: f64) -> Ordering {
    if b.is_nan() || b < -9223372036854775808.0 {
        return Ordering::Greater;
    }
    if b >= 9223372036854775808.0 {
        return Ordering::Less;
    }
    let whole = b.trunc();
    // In range, so the cast is exact; the fraction decides between equal whole parts.
    a.cmp(&(whole as i64)).then_with(|| compare_f64(whole, b))
}

fn compare_decimals(a: Decimal128, b: Decimal128) -> Ordering {
    let (ra, rb) = (decimal_rank(a), decimal_rank(b));
    match (a.parts(), b.parts()) {
        (
            Parts::Finite { negative, coefficient, exponent },
            Parts::Finite { coefficient: other, exponent: other_exponent, .. },
        ) if ra == rb => {
            let order = compare_magnitude((coefficient, exponent), (other, other_exponent));
            if negative && ra != 3 { order.reverse() } else { order }
        }
        _ => ra.cmp(&rb),
    }
}

/// NaN, minus infinity, negative, zero, positive, infinity.
fn decimal_rank(d: Decimal128) -> u8 {
    match d.parts() {
        Parts::Nan => 0,
        Parts::Infinity { negative: true } => 1,
        Parts::Finite { coefficient: 0, .. } => 3,
        Parts::Finite { negative: true, .. } => 2,
        Parts::Finite { .. } => 4,
        Parts::Infinity { .. } => 5,
    }
}

fn compare_f64_decimal(a: f64, b: Decimal128) -> Ordering {
    let rank = decimal_rank(b);
    let own = match a {
        a if a.is_nan() => 0,
        f64::NEG_INFINITY => 1,
        f64::INFINITY => 5,
        0.0 => 3,
        a if a < 0.0 => 2,
        _ => 4,
    };
    match b.parts() {
        Parts::Finite { coefficient, exponent, .. } if own == rank && own != 3 => {
            let order = compare_f64_magnitude(a.abs(), coefficient, exponent);
            if own == 2 { order.reverse() } else { order }
        }
        _ => own.cmp(&rank),
    }
}

/// Applies the operation of the widest type. `integer` says what to do on int64 overflow by answering `None`.
fn apply(
    a: &Value,
    b: &Value,
    integer: fn(i64, i64) -> Option<i64>,
    double: fn(f64, f64) -> f64,
    decimal: fn(Decimal128, Decimal128) -> Decimal128,
) -> Option<Result<Value, f64>> {
    let (a, b) = (Number::of(a)?, Number::of(b)?);
    if matches!(a, Number::Decimal(_)) || matches!(b, Number::Decimal(_)) {
        return Some(Ok(Value::Decimal128(decimal(a.decimal(), b.decimal()))));
    }
    let (Some(x), Some(y)) = (a.integer(), b.integer()) else {
        return Some(Ok(Value::Double(double(a.f64(), b.f64()))));
    };
    let both_int32 = matches!((a, b), (Number::Int32(_), Number::Int32(_)));
    Some(match integer(x, y) {
        Some(n) if both_int32 => Ok(int_or_long(n)),
        Some(n) => Ok(Value::Int64(n)),
        None => Err(double(a.f64(), b.f64())),
    })
}

/// int32 overflow gives int64, int64 overflow gives double (aggregation's rule).
pub fn add(a: &Value, b: &Value) -> Option<Value> {
    Some(apply(a, b, i64::checked_add, |x, y| x + y, Decimal128::plus)?.unwrap_or_else(Value::Double))
}
pub fn subtract(a: &Value, b: &Value) -> Option<Value> {
    Some(apply(a, b, i64::checked_sub, |x, y| x - y, Decimal128::minus)?.unwrap_or_else(Value::Double))
}
pub fn multiply(a: &Value, b: &Value) -> Option<Value> {
    Some(apply(a, b, i64::checked_mul, |x, y| x * y, Decimal128::times)?.unwrap_or_else(Value::Double))
}
/// As [`add`], but int64 overflow is `None` (the rule of `$inc`).
pub fn add_exact(a: &Value, b: &Value) -> Option<Value> {
    apply(a, b, i64::checked_add, |x, y| x + y, Decimal128::plus)?.ok()
}
pub fn subtract_exact(a: &Value, b: &Value) -> Option<Value> {
    apply(a, b, i64::checked_sub, |x, y| x - y, Decimal128::minus)?.ok()
}
pub fn multiply_exact(a: &Value, b: &Value) -> Option<Value> {
    apply(a, b, i64::checked_mul, |x, y| x * y, Decimal128::times)?.ok()
}

/// Double or decimal; `None` also for a zero divisor.
pub fn divide(a: &Value, b: &Value) -> Option<Value> {
    let (a, b) = (Number::of(a)?, Number::of(b)?);
    if matches!(a, Number::Decimal(_)) || matches!(b, Number::Decimal(_)) {
        let divisor = b.decimal();
        return (!divisor.is_zero()).then(|| Value::Decimal128(a.decimal().over(divisor)));
    }
    let divisor = b.f64();
    (divisor != 0.0).then(|| Value::Double(a.f64() / divisor))
}

/// Remainder with the sign of the dividend; `None` also for a zero divisor.
pub fn modulo(a: &Value, b: &Value) -> Option<Value> {
    let divisor = Number::of(b)?;
    if divisor.f64() == 0.0 && divisor.decimal().is_zero() {
        return None;
    }
    // A divisor of -1 divides everything; i64::MIN by it would overflow.
    let remainder = |x: i64, y: i64| Some(x.checked_rem(y).unwrap_or(0));
    apply(a, b, remainder, |x, y| x % y, Decimal128::remainder)?.ok()
}

/// int32's and int64's least values widen.
pub fn negate(a: &Value) -> Option<Value> {
    Some(match Number::of(a)? {
        Number::Int32(n) => int_or_long(-(n as i64)),
        Number::Int64(n) => n.checked_neg().map_or(Value::Double(-(n as f64)), Value::Int64),
        Number::Double(n) => Value::Double(-n),
        Number::Decimal(n) => Value::Decimal128(n.negate()),
    })
}

/// As [`negate`] where the number is negative; `None` also for the least int64, which has no absolute value.
pub fn absolute(a: &Value) -> Option<Value> {
    Some(match Number::of(a)? {
        Number::Int32(n) => int_or_long((n as i64).abs()),
        Number::Int64(n) => Value::Int64(n.checked_abs()?),
        Number::Double(n) => Value::Double(n.abs()),
        Number::Decimal(n) => Value::Decimal128(n.absolute()),
    })
}

pub fn is_nan(a: &Value) -> bool {
    match a {
        Value::Double(n) => n.is_nan(),
        Value::Decimal128(n) => n.is_nan(),
        _ => false,
    }
}

/// Any number as a double (decimals rounded to nearest).
pub fn as_f64(a: &Value) -> Option<f64> {
    Number::of(a).map(Number::f64)
}

/// Any number truncated toward zero, clamped; NaN is 0.
pub fn to_i64_saturating(a: &Value) -> Option<i64> {
    Some(match Number::of(a)? {
        Number::Int32(n) => n as i64,
        Number::Int64(n) => n,
        Number::Double(n) => n as i64,
        Number::Decimal(n) => n.to_i64_saturating(),
    })
}

/// A number with an exact int64 value, of whatever type.
pub fn to_i64_exact(a: &Value) -> Option<i64> {
    match Number::of(a)? {
        Number::Int32(n) => Some(n as i64),
        Number::Int64(n) => Some(n),
        Number::Double(n) => {
            let fits = (-9223372036854775808.0..9223372036854775808.0).contains(&n) && n.trunc() == n;
            fits.then_some(n as i64)
        }
        Number::Decimal(n) => n.to_i64_exact(),
    }
}

/// Doubles are taken to 15 significant digits, as the server does.
pub fn to_decimal(a: &Value) -> Option<Decimal128> {
    Number::of(a).map(Number::decimal)
}

/// A number of things: int32 when it fits, else int64.
pub fn count(n: u64) -> Value {
    int_or_long(i64::try_from(n).unwrap_or(i64::MAX))
}

/// int32 when it fits, else int64.
pub fn int_or_long(v: i64) -> Value {
    i32::try_from(v).map_or(Value::Int64(v), Value::Int32)
}

pub fn decimal_to_string(d: Decimal128) -> String {
    d.to_string()
}

pub fn decimal_from_str(s: &str) -> Option<Decimal128> {
    Decimal128::parse(s)
}
