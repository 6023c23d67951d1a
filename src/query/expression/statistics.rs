//! Accumulators used as expressions: `$sum`, `$avg`, `$min`, `$max`, `$stdDevPop`, `$stdDevSamp`, and the percentiles.
//!
//! With one argument that evaluates to an array, they run over its elements; otherwise over the arguments.

use super::{Arg, Eval, Expression, Node, Variables, Vars};
use crate::accumulator::{self, Accumulator, statistics::Deviation};
use document::{Collation, Doc, Result, Value, meter};
use std::sync::Arc;

fn over(args: &mut [Arg]) -> Vec<Value> {
    if let [Some(Value::Array(items))] = args {
        return std::mem::take(items);
    }
    args.iter_mut().filter_map(Option::take).collect()
}

/// Counts what it takes to add `v` to what came before: much more for a decimal than for any other number.
fn count(v: &Value) -> Result<()> {
    meter::spend(if matches!(v, Value::Decimal128(_)) { 4 } else { 1 })
}

fn total(args: &mut [Arg]) -> Result<super::number::Sum> {
    let mut total = super::number::Sum::default();
    for v in over(args) {
        count(&v)?;
        total.add(&v);
    }
    Ok(total)
}
pub fn sum(args: &mut [Arg]) -> Eval {
    Ok(Some(total(args)?.result()))
}
pub fn avg(args: &mut [Arg]) -> Eval {
    Ok(Some(total(args)?.mean()))
}
fn extreme(args: &mut [Arg], wanted: std::cmp::Ordering, c: &Collation) -> Eval {
    let mut best: Option<Value> = None;
    for v in over(args) {
        meter::spend(1)?;
        if matches!(v, Value::Null | Value::Undefined) {
            continue;
        }
        if best.as_ref().is_none_or(|b| c.compare_values(&v, b) == wanted) {
            best = Some(v);
        }
    }
    Ok(Some(best.unwrap_or(Value::Null)))
}
pub fn min(args: &mut [Arg], c: &Collation) -> Eval {
    extreme(args, std::cmp::Ordering::Less, c)
}
pub fn max(args: &mut [Arg], c: &Collation) -> Eval {
    extreme(args, std::cmp::Ordering::Greater, c)
}
fn deviation(args: &mut [Arg], sample: bool) -> Eval {
    let mut d = Deviation::default();
    for v in over(args) {
        count(&v)?;
        d.add(&v);
    }
    Ok(Some(d.result(sample)))
}
pub fn std_dev_pop(args: &mut [Arg]) -> Eval {
    deviation(args, false)
}
pub fn std_dev_samp(args: &mut [Arg]) -> Eval {
    deviation(args, true)
}

#[derive(Debug)]
struct Percentile {
    name: &'static str,
    spec: accumulator::percentile::Spec,
    input: Expression,
}

impl Node for Percentile {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let mut state = self.spec.start();
        match self.input.eval(root, vars)? {
            Some(Value::Array(items)) => {
                for v in items {
                    meter::spend(1)?;
                    state.add(Some(v))?;
                }
            }
            v => state.add(v)?,
        }
        state.settle(false)?;
        Ok(Some(state.finish()))
    }
    fn children(&self) -> Vec<&Expression> {
        vec![&self.input]
    }
    fn name(&self) -> &'static str {
        self.name
    }
}

pub fn percentile(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let (spec, input) = accumulator::percentile::parse(name, v, vars)?;
    Ok(Expression::Special(Arc::new(Percentile { name, spec, input })))
}
