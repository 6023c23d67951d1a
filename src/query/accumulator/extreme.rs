//! `$min`, `$max`, `$first`, `$last`: one value of all.
//!
//! Partial: an array with the value, or empty when nothing was seen.

use super::{Accumulator, Parsed, single, value_bytes};
use crate::expression::{Arg, Variables};
use document::{Collation, Result, Value};

#[derive(Clone, Copy, PartialEq)]
enum Which {
    Min,
    Max,
    First,
    Last,
}

struct One {
    which: Which,
    value: Option<Value>,
    collation: Collation,
}

impl One {
    fn wins(&self, v: &Value) -> bool {
        let Some(best) = &self.value else { return true };
        match self.which {
            Which::Min => self.collation.compare_values(v, best).is_lt(),
            Which::Max => self.collation.compare_values(v, best).is_gt(),
            Which::First => false,
            Which::Last => true,
        }
    }
}

impl Accumulator for One {
    fn add(&mut self, v: Arg) -> Result<()> {
        let v = match (v, self.which) {
            (None | Some(Value::Null | Value::Undefined), Which::Min | Which::Max) => return Ok(()),
            (v, _) => v.unwrap_or(Value::Null),
        };
        if self.wins(&v) {
            self.value = Some(v);
        }
        Ok(())
    }
    fn export(&mut self) -> Value {
        Value::Array(self.value.clone().into_iter().collect())
    }
    fn merge(&mut self, partial: Value) -> Result<()> {
        if let Value::Array(mut one) = partial
            && let Some(v) = one.pop()
        {
            self.add(Some(v))?;
        }
        Ok(())
    }
    fn finish(&mut self) -> Value {
        self.value.clone().unwrap_or(Value::Null)
    }
    fn memory(&self) -> usize {
        self.value.as_ref().map_or(0, value_bytes)
    }
}

pub fn parse(name: &'static str, v: &Value, vars: &Variables) -> Result<Parsed> {
    let which = match name {
        "$min" => Which::Min,
        "$max" => Which::Max,
        "$first" => Which::First,
        _ => Which::Last,
    };
    let collation = vars.collation().clone();
    Ok(Parsed::new(name, single(name, v, vars)?, move |_| {
        Box::new(One { which, value: None, collation: collation.clone() })
    }))
}
