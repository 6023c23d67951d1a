//! Aggregation expressions: parsed once, evaluated against one document at a time.
//!
//! ```text
//! value ──parse──> Expression ──eval(root, vars)──> Option<Value>      None is "missing"
//! ```
//!
//! The root document stays raw bytes; a field path walks it and decodes the one value it names. A missing result is
//! `None`, which is distinct from `Some(Value::Null)`: `$project` drops the field, `$push` skips it, `$ifNull` and
//! most operators treat the two alike.
//!
//! Variables are resolved to stack positions when parsing ([`Variables`]) and hold their values in [`Vars`] while
//! evaluating. The depth of the stack at an expression is the same in both, so a position found while parsing is
//! right while evaluating.
//!
//! Invariant: evaluation does no I/O; the time of `$$NOW` is given by the caller, once per command.

pub mod arithmetic;
pub mod array;
pub mod bits;
pub mod boolean;
pub mod comparison;
pub mod conditional;
pub mod constants;
pub mod convert;
pub mod date;
pub mod date_format;
pub mod field_path;
pub mod iterate;
pub mod miscellaneous;
pub mod number;
pub mod object;
pub mod parse;
pub mod regex;
pub mod script;
pub mod set;
pub mod statistics;
pub mod string;
pub mod table;
pub mod trigonometry;
pub mod variables;

pub use constants::Constants;
pub use field_path::FieldPath;
pub use variables::{Variables, Vars};

use document::error::Phase;
use document::{Doc, Document, Error, Result, Value, meter};
use std::fmt;
use std::sync::Arc;

/// A value or missing.
pub type Arg = Option<Value>;
/// What evaluation answers: a value, missing, or an error with the real server's code.
pub type Eval = Result<Option<Value>>;

/// A parsed expression. Cloning is cheap enough for plans; evaluation needs `&self` only.
#[derive(Clone, Debug)]
pub enum Expression {
    Constant(Value),
    /// `"$a.b"`: a path from `$$CURRENT`, which is the root unless rebound.
    Field(FieldPath),
    /// `"$$ROOT.a"` and `"$$CURRENT.a"`.
    Root(FieldPath),
    /// `"$$name.a"`.
    Variable(variables::Slot, FieldPath),
    Object(Vec<(String, Expression)>),
    Array(Vec<Expression>),
    /// An operator whose arguments are all evaluated before it.
    Call(&'static table::Operator, table::Function, Vec<Expression>),
    /// An operator that decides itself what to evaluate.
    Special(Arc<dyn Node>),
}

/// An operator with its own evaluation order, named arguments or bound variables.
pub trait Node: fmt::Debug + Send + Sync {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval;
    /// The direct children, for dependency analysis.
    fn children(&self) -> Vec<&Expression>;
    /// The children whose constants must have a value, in the order in which they are looked at.
    fn settled(&self) -> Vec<&Expression> {
        self.children()
    }
    /// The paths of the document that are read beside those of the children.
    fn reads(&self) -> Vec<String> {
        Vec::new()
    }
    /// False when two evaluations may differ (`$rand`) or the whole document is needed.
    fn is_pure(&self) -> bool {
        true
    }
    fn name(&self) -> &'static str {
        ""
    }
}

impl Expression {
    /// Whether its value depends on a field of the document.
    pub fn reads_fields(&self) -> bool {
        match self {
            Expression::Constant(_) | Expression::Variable(..) => false,
            Expression::Field(_) | Expression::Root(_) => true,
            Expression::Object(fields) => fields.iter().any(|(_, e)| e.reads_fields()),
            Expression::Array(items) | Expression::Call(_, _, items) => {
                items.iter().any(|e| e.reads_fields())
            }
            Expression::Special(node) => node.children().into_iter().any(|e| e.reads_fields()),
        }
    }
    /// Whether it is made of constants alone.
    fn is_constant(&self) -> bool {
        match self {
            Expression::Constant(_) => true,
            Expression::Field(_) | Expression::Root(_) | Expression::Variable(..) => false,
            Expression::Object(fields) => fields.iter().all(|(_, e)| e.is_constant()),
            Expression::Array(items) | Expression::Call(_, _, items) => {
                items.iter().all(Expression::is_constant)
            }
            Expression::Special(node) => {
                node.is_pure()
                    && node.reads().is_empty()
                    && node.children().into_iter().all(Expression::is_constant)
            }
        }
    }
    /// Parses an expression. Errors carry the real server's codes (168 for an unknown operator, 16020 for a wrong
    /// number of arguments, 17276 for an undefined variable, ...).
    pub fn parse(v: &Value, vars: &Variables) -> Result<Expression> {
        parse::expression(v, vars)
    }

    /// Evaluates against `root`. `None` is missing.
    pub fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        meter::spend(1)?;
        match self {
            Expression::Constant(v) => Ok(Some(v.clone())),
            Expression::Field(path) => Ok(match vars.current() {
                None => path.get(root),
                Some(current) => path.get_in_value(current),
            }),
            Expression::Root(path) if path.is_empty() => Ok(Some(Value::Document(root.to_document()))),
            Expression::Root(path) => Ok(path.get(root)),
            Expression::Variable(slot, path) => variables::eval(*slot, path, vars),
            Expression::Object(fields) => {
                let mut out = Document(Vec::with_capacity(fields.len()));
                for (name, e) in fields {
                    if let Some(v) = e.eval(root, vars)? {
                        out.0.push((name.clone(), v));
                    }
                }
                Ok(Some(Value::Document(out)))
            }
            Expression::Array(items) => {
                let mut out = Vec::with_capacity(items.len());
                for e in items {
                    out.push(e.eval(root, vars)?.unwrap_or(Value::Null));
                }
                Ok(Some(Value::Array(out)))
            }
            Expression::Call(_, function, args) => {
                call(function, args, root, vars).map_err(|e| self.failed(e))
            }
            Expression::Special(node) => node.eval(root, vars).map_err(|e| self.failed(e)),
        }
    }

    /// Notes of an error in which phase of a command the real server meets it.
    fn failed(&self, error: Error) -> Error {
        match error.phase {
            Phase::Before => error.at(if self.is_constant() { Phase::Constant } else { Phase::Running }),
            _ => error,
        }
    }

    /// Evaluates to a value, with missing as null.
    pub fn eval_or_null(&self, root: Doc<'_>, vars: &mut Vars) -> Result<Value> {
        Ok(self.eval(root, vars)?.unwrap_or(Value::Null))
    }

    /// Evaluates for truth, as `$cond` and `$expr` do.
    pub fn eval_bool(&self, root: Doc<'_>, vars: &mut Vars) -> Result<bool> {
        Ok(truthy(&self.eval(root, vars)?))
    }

    pub fn as_constant(&self) -> Option<&Value> {
        match self {
            Expression::Constant(v) => Some(v),
            _ => None,
        }
    }

    /// Its truth where no document has a part in it.
    fn constant_truth(&self) -> Option<Result<bool>> {
        self.is_constant().then(|| self.eval_bool(Doc::empty(), &mut Vars::new(0)))
    }

    /// The paths of the root document that evaluation may read; `None` when it may need all of it.
    pub fn needed_fields(&self) -> Option<Vec<String>> {
        let mut out = Vec::new();
        self.collect_fields(&mut out).then_some(out)
    }

    /// Whether a variable is read anywhere, bound inside or not.
    pub fn has_variables(&self) -> bool {
        match self {
            Expression::Constant(_) | Expression::Field(_) | Expression::Root(_) => false,
            Expression::Variable(..) => true,
            Expression::Object(fields) => fields.iter().any(|(_, e)| e.has_variables()),
            Expression::Array(items) | Expression::Call(_, _, items) => {
                items.iter().any(Expression::has_variables)
            }
            Expression::Special(node) => node.children().iter().any(|e| e.has_variables()),
        }
    }

    fn collect_fields(&self, out: &mut Vec<String>) -> bool {
        match self {
            Expression::Constant(_) | Expression::Variable(..) => true,
            Expression::Root(path) if path.is_empty() => false,
            Expression::Field(path) | Expression::Root(path) => {
                out.push(path.to_string());
                true
            }
            Expression::Object(fields) => fields.iter().all(|(_, e)| e.collect_fields(out)),
            Expression::Array(items) | Expression::Call(_, _, items) => {
                items.iter().all(|e| e.collect_fields(out))
            }
            Expression::Special(node) => {
                out.extend(node.reads());
                node.is_pure() && node.children().iter().all(|e| e.collect_fields(out))
            }
        }
    }
}

/// Most operators take one to three arguments; those are evaluated without an allocation.
fn call(function: &table::Function, args: &[Expression], root: Doc<'_>, vars: &mut Vars) -> Eval {
    match args {
        [a] => function.call(&mut [a.eval(root, vars)?]),
        [a, b] => function.call(&mut [a.eval(root, vars)?, b.eval(root, vars)?]),
        [a, b, c] => function.call(&mut [a.eval(root, vars)?, b.eval(root, vars)?, c.eval(root, vars)?]),
        many => {
            let mut values = Vec::with_capacity(many.len());
            for e in many {
                values.push(e.eval(root, vars)?);
            }
            function.call(&mut values)
        }
    }
}

/// Missing, null or undefined.
pub fn is_nullish(v: &Arg) -> bool {
    matches!(v, None | Some(Value::Null | Value::Undefined))
}

/// The query language's truth of a value: false for false, zero, null, undefined and missing.
pub fn truthy(v: &Arg) -> bool {
    v.as_ref().is_some_and(Value::truthy)
}

/// The type's name in messages; missing has one too.
pub fn type_name(v: &Arg) -> &'static str {
    v.as_ref().map_or("missing", Value::type_name)
}

#[cfg(test)]
mod tests;
