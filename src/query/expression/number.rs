//! Numbers as operators need them: what counts as integral, and sums that do not lose what cancels.

use document::{Decimal128, Value, number};

/// A decimal as text.
pub fn decimal_text(d: Decimal128) -> String {
    number::decimal_to_string(d)
}

/// A double as a decimal of up to 34 digits: its exact value, as far as that goes.
pub fn exact_decimal(d: f64) -> Option<Decimal128> {
    if !d.is_finite() {
        return number::to_decimal(&Value::Double(d));
    }
    let text = format!("{d:.33e}");
    let (mantissa, exponent) = text.split_once('e')?;
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    number::decimal_from_str(&format!("{mantissa}E{exponent}")).map(shorten)
}

/// `5E0` and `1.5E2` rather written with exponent zero, as far as no zeros are added after the point.
fn shorten(d: Decimal128) -> Decimal128 {
    let one = number::to_decimal(&Value::Int32(1)).unwrap_or(d);
    let whole = d.quantize(one);
    let same = number::compare(document::ValueRef::Decimal128(whole), document::ValueRef::Decimal128(d));
    if same.is_some_and(|o| o.is_eq()) && !whole.is_nan() { whole } else { d }
}

/// The number as an int32 when its value is exactly one, whatever its type.
pub fn exact_i32(v: &Value) -> Option<i32> {
    number::to_i64_exact(v).and_then(|i| i32::try_from(i).ok())
}

/// A sum of two doubles that keeps the rounding error: about 106 bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct DoubleDouble {
    pub high: f64,
    pub low: f64,
    /// What a plain addition gives: the answer when infinities or NaN took part.
    special: f64,
}

impl DoubleDouble {
    pub fn add(&mut self, x: f64) {
        self.special += x;
        let (sum, error) = two_sum(self.high, x);
        let (high, low) = two_sum(sum, error + self.low);
        self.high = high;
        self.low = low;
    }
    pub fn value(&self) -> f64 {
        let sum = self.high + self.low;
        if sum.is_finite() { sum } else { self.special }
    }
}

fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

/// The type a sum has: the widest seen, in the order int, long, double, decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Width {
    #[default]
    Int,
    Long,
    Double,
    Decimal,
}

/// A sum of numbers of any types. Integers are summed exactly, doubles with compensation, decimals as decimals.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    integers: i128,
    doubles: DoubleDouble,
    decimals: Option<Value>,
    pub width: Width,
    pub count: u64,
    short_doubles: bool,
}

impl Sum {
    /// Doubles that meet a decimal are taken to 15 digits, as `$add` does, not to 34.
    pub fn with_short_doubles() -> Sum {
        Sum { short_doubles: true, ..Sum::default() }
    }
    /// Adds `v` when it is a number; says whether it was.
    pub fn add(&mut self, v: &Value) -> bool {
        match v {
            Value::Int32(i) => self.integers += *i as i128,
            Value::Int64(i) => {
                self.integers += *i as i128;
                self.width = self.width.max(Width::Long);
            }
            Value::Double(d) => {
                self.doubles.add(*d);
                self.width = self.width.max(Width::Double);
            }
            Value::Decimal128(_) => {
                self.decimals = match &self.decimals {
                    None => Some(v.clone()),
                    Some(sum) => number::add(sum, v),
                };
                self.width = Width::Decimal;
            }
            _ => return false,
        }
        self.count += 1;
        true
    }
    fn as_f64(&self) -> f64 {
        let mut total = self.doubles;
        let high = self.integers as f64;
        total.add(high);
        total.add((self.integers - high as i128) as f64);
        total.value()
    }
    fn non_decimal(&self) -> Value {
        if self.doubles.high == 0.0 && self.doubles.low == 0.0 && self.doubles.special == 0.0 {
            return match i64::try_from(self.integers) {
                Ok(i) => Value::Int64(i),
                Err(_) => Value::Double(self.as_f64()),
            };
        }
        Value::Double(self.as_f64())
    }
    /// The sum in the widest type; an int32 sum that does not fit is int64, an int64 sum that does not is a double.
    pub fn result(&self) -> Value {
        match self.width {
            Width::Int | Width::Long => match i64::try_from(self.integers) {
                Err(_) => Value::Double(self.as_f64()),
                Ok(i) if self.width == Width::Int => number::int_or_long(i),
                Ok(i) => Value::Int64(i),
            },
            Width::Double => Value::Double(self.as_f64()),
            Width::Decimal => self.decimal(),
        }
    }
    fn decimal(&self) -> Value {
        let rest = match self.non_decimal() {
            Value::Double(d) if !self.short_doubles => exact_decimal(d),
            v => number::to_decimal(&v),
        };
        let rest = rest.map(Value::Decimal128);
        match (&self.decimals, rest) {
            (Some(a), Some(b)) => number::add(a, &b).unwrap_or(Value::Null),
            (None, Some(b)) => b,
            (Some(a), None) => a.clone(),
            (None, None) => Value::Null,
        }
    }
    /// The mean: double, or decimal when a decimal took part. Null for no numbers.
    pub fn mean(&self) -> Value {
        if self.count == 0 {
            return Value::Null;
        }
        if self.width == Width::Decimal {
            return number::divide(&self.decimal(), &Value::Int64(self.count as i64)).unwrap_or(Value::Null);
        }
        Value::Double(self.as_f64() / self.count as f64)
    }
    /// The parts that another node merges: `[integers high, integers low, double high, double low, decimal, width, count]`.
    pub fn export(&self) -> Value {
        Value::Array(vec![
            Value::Int64((self.integers >> 64) as i64),
            Value::Int64(self.integers as i64),
            Value::Double(if self.doubles.value().is_finite() {
                self.doubles.high
            } else {
                self.doubles.special
            }),
            Value::Double(if self.doubles.value().is_finite() { self.doubles.low } else { 0.0 }),
            self.decimals.clone().unwrap_or(Value::Null),
            Value::Int32(self.width as i32),
            Value::Int64(self.count as i64),
        ])
    }
    /// Adds what [`Sum::export`] wrote; ignores anything else.
    pub fn merge(&mut self, v: &Value) {
        let Value::Array(parts) = v else { return };
        let [high, low, dh, dl, decimal, width, count] = parts.as_slice() else { return };
        let part = |v: &Value| number::to_i64_exact(v).unwrap_or(0);
        self.integers += ((part(high) as i128) << 64) | (part(low) as u64 as i128);
        for d in [dh, dl] {
            if let Value::Double(d) = d
                && *d != 0.0
            {
                self.doubles.add(*d);
            }
        }
        if decimal.is_number() {
            self.decimals = match &self.decimals {
                None => Some(decimal.clone()),
                Some(sum) => number::add(sum, decimal),
            };
        }
        let width =
            [Width::Int, Width::Long, Width::Double, Width::Decimal][part(width).clamp(0, 3) as usize];
        self.width = self.width.max(width);
        self.count += part(count).max(0) as u64;
    }
}
