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
}

impl Node for Junction {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
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
    Ok(Expression::Special(Arc::new(Junction { name, parts: parse::arguments(v, vars)?, decides: false })))
}
pub fn or(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    Ok(Expression::Special(Arc::new(Junction { name, parts: parse::arguments(v, vars)?, decides: true })))
}
pub fn not(args: &mut [Arg]) -> Eval {
    Ok(Some(Value::Boolean(!truthy(&args[0]))))
}
