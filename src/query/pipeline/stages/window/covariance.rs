//! Covariance of pairs of numbers.
//!
//! Each pair adds the product of its distance from the mean of x before it and from the mean of y after it. Means come
//! from sums, so sums that overflow show in the result, as on the real server.

use crate::expression::Arg;
use document::{Value, number};

/// The pairs so far. Values keep their types: one decimal makes the result a decimal.
#[derive(Clone, Debug)]
pub(super) struct Covariance {
    count: i64,
    sum_x: Value,
    sum_y: Value,
    products: Value,
    /// The sum of the infinities and NaNs; pairs with one of them count for nothing else.
    not_finite: Option<f64>,
}

impl Default for Covariance {
    fn default() -> Covariance {
        let zero = Value::Int32(0);
        Covariance {
            count: 0,
            sum_x: zero.clone(),
            sum_y: zero,
            products: Value::Double(0.0),
            not_finite: None,
        }
    }
}

impl Covariance {
    /// Takes a pair; one that is not of two numbers is ignored.
    pub(super) fn add(&mut self, x: &Arg, y: &Arg) {
        let (Some(x), Some(y)) = (x, y) else { return };
        let (Some(a), Some(b)) = (number::as_f64(x), number::as_f64(y)) else { return };
        let stray =
            [(x, a), (y, b)].into_iter().filter(|(v, f)| !is_finite(v, *f)).map(|(_, f)| f).sum::<f64>();
        if !is_finite(x, a) || !is_finite(y, b) {
            self.not_finite = Some(self.not_finite.unwrap_or(0.0) + stray);
        } else if self.take(x, y).is_none() {
            self.products = Value::Null;
        }
    }

    fn take(&mut self, x: &Value, y: &Value) -> Option<()> {
        let before = self.count;
        self.count += 1;
        let mean = |sum: &Value, count: i64| number::divide(sum, &Value::Int64(count));
        let mean_x = if before > 0 { Some(mean(&self.sum_x, before)?) } else { None };
        self.sum_x = number::add(&self.sum_x, x)?;
        self.sum_y = number::add(&self.sum_y, y)?;
        // A first pair lies on both means.
        let Some(mean_x) = mean_x else { return Some(()) };
        let dx = number::subtract(x, &mean_x)?;
        let dy = number::subtract(y, &mean(&self.sum_y, self.count)?)?;
        self.products = number::add(&self.products, &number::multiply(&dx, &dy)?)?;
        Some(())
    }

    /// Null without enough pairs: one for the population, two for a sample.
    pub(super) fn result(&self, sample: bool) -> Value {
        let divisor = if sample { self.count - 1 } else { self.count };
        if divisor <= 0 {
            return Value::Null;
        }
        if let Some(sum) = self.not_finite.filter(|_| self.count > 1) {
            return Value::Double(sum);
        }
        number::divide(&self.products, &Value::Int64(divisor)).unwrap_or(Value::Null)
    }
}

fn is_finite(v: &Value, as_double: f64) -> bool {
    match v {
        Value::Decimal128(_) => as_double.is_finite() || as_double.is_infinite() && !is_infinite_decimal(v),
        _ => as_double.is_finite(),
    }
}

/// A decimal may be finite and still too large for a double.
fn is_infinite_decimal(v: &Value) -> bool {
    matches!(v, Value::Decimal128(d) if number::decimal_to_string(*d).ends_with("Infinity"))
}
