//! `$and`, `$or`, `$not`. The first two stop at the first argument that decides.

use super::{Arg, Eval, Expression, Node, Variables, Vars, parse, truthy};
use document::{Doc, Result, Value};
use std::sync::Arc;

#[derive(Debug)]
struct Junction {
    name: &'static str,
    parts: Vec<Expression>,
    /// The truth that decides: false for `$and`.
    decides: bool,
    /// Whatever the others are, the last part decides.
    settled: bool,
}

impl Node for Junction {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        if self.settled {
            return Ok(Some(Value::Boolean(self.decides)));
        }
        for part in &self.parts {
            if part.eval_bool(root, vars)? == self.decides {
                return Ok(Some(Value::Boolean(self.decides)));
            }
        }
        Ok(Some(Value::Boolean(!self.decides)))
    }
    fn children(&self) -> Vec<&Expression> {
        self.parts.iter().collect()
    }
    fn name(&self) -> &'static str {
        self.name
    }
}

pub fn and(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    junction(name, v, vars, false)
}
pub fn or(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    junction(name, v, vars, true)
}

/// A last argument that decides is all that there is to evaluate, as in the real server.
fn junction(name: &'static str, v: &Value, vars: &Variables, decides: bool) -> Result<Expression> {
    let parts = parse::arguments(v, vars)?;
    let settled = parts.last().and_then(Expression::as_constant).is_some_and(|v| v.truthy() == decides);
    Ok(Expression::Special(Arc::new(Junction { name, parts, decides, settled })))
}
pub fn not(args: &mut [Arg]) -> Eval {
    Ok(Some(Value::Boolean(!truthy(&args[0]))))
}
