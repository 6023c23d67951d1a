//! `$sum`, `$count`, `$avg`, `$stdDevPop`, `$stdDevSamp`.

use super::{Accumulator, Parsed, single};
use crate::expression::number::Sum;
use crate::expression::{Arg, Expression, Variables};
use document::{Result, Value, bail, number};

struct Total {
    sum: Sum,
    mean: bool,
}

impl Accumulator for Total {
    fn add(&mut self, v: Arg) -> Result<()> {
        if let Some(v) = v {
            self.sum.add(&v);
        }
        Ok(())
    }
    fn export(&mut self) -> Value {
        self.sum.export()
    }
    fn merge(&mut self, partial: Value) -> Result<()> {
        self.sum.merge(&partial);
        Ok(())
    }
    fn finish(&mut self) -> Value {
        if self.mean { self.sum.mean() } else { self.sum.result() }
    }
}

pub fn sum(name: &'static str, v: &Value, vars: &Variables) -> Result<Parsed> {
    Ok(Parsed::new(name, single(name, v, vars)?, |_| Box::new(Total { sum: Sum::default(), mean: false })))
}
pub fn avg(name: &'static str, v: &Value, vars: &Variables) -> Result<Parsed> {
    Ok(Parsed::new(name, single(name, v, vars)?, |_| Box::new(Total { sum: Sum::default(), mean: true })))
}
pub fn count(name: &'static str, v: &Value, _: &Variables) -> Result<Parsed> {
    match v {
        Value::Document(d) if d.is_empty() => {}
        _ => bail!(TYPE_MISMATCH, "$count takes no arguments, i.e. $count:{{}}"),
    }
    let one = Expression::Constant(Value::Int32(1));
    Ok(Parsed::new(name, one, |_| Box::new(Total { sum: Sum::default(), mean: false })))
}

/// Mean and sum of squared differences, updated one value at a time (Welford) and mergeable (Chan).
#[derive(Clone, Copy, Debug, Default)]
pub struct Deviation {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Deviation {
    /// Takes a number; anything else is ignored.
    pub fn add(&mut self, v: &Value) {
        let Some(x) = number::as_f64(v) else { return };
        self.count += 1.0;
        let delta = x - self.mean;
        self.mean += delta / self.count;
        self.squares += delta * (x - self.mean);
    }
    fn join(&mut self, other: Deviation) {
        let total = self.count + other.count;
        if other.count == 0.0 {
            return;
        }
        if self.count == 0.0 {
            *self = other;
            return;
        }
        let delta = other.mean - self.mean;
        self.mean += delta * other.count / total;
        self.squares += other.squares + delta * delta * self.count * other.count / total;
        self.count = total;
    }
    /// Null without enough numbers: one for the population, two for a sample.
    pub fn result(&self, sample: bool) -> Value {
        let divisor = if sample { self.count - 1.0 } else { self.count };
        if divisor <= 0.0 {
            return Value::Null;
        }
        let variance = self.squares / divisor;
        if variance.is_nan() || variance.is_infinite() {
            return Value::Double(f64::NAN);
        }
        Value::Double(variance.sqrt())
    }
}

struct StandardDeviation {
    state: Deviation,
    sample: bool,
}

impl Accumulator for StandardDeviation {
    fn add(&mut self, v: Arg) -> Result<()> {
        if let Some(v) = v {
            self.state.add(&v);
        }
        Ok(())
    }
    fn export(&mut self) -> Value {
        let d = &self.state;
        Value::Array([d.count, d.mean, d.squares].map(Value::Double).to_vec())
    }
    fn merge(&mut self, partial: Value) -> Result<()> {
        if let Value::Array(parts) = &partial
            && let [Value::Double(count), Value::Double(mean), Value::Double(squares)] = parts.as_slice()
        {
            self.state.join(Deviation { count: *count, mean: *mean, squares: *squares });
        }
        Ok(())
    }
    fn finish(&mut self) -> Value {
        self.state.result(self.sample)
    }
}

pub fn deviation(name: &'static str, v: &Value, vars: &Variables) -> Result<Parsed> {
    let sample = name == "$stdDevSamp";
    let start = move |_| -> Box<dyn Accumulator> {
        Box::new(StandardDeviation { state: Deviation::default(), sample })
    };
    Ok(Parsed::new(name, single(name, v, vars)?, start))
}
