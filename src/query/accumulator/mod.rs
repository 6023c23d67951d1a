//! Accumulators of `$group`, `$bucket` and `$bucketAuto`.
//!
//! A state takes values one by one and gives its result. For a cluster it also exports what it has seen as one BSON
//! value (a *partial*), and merges partials of other states:
//!
//! ```text
//! shard: add, add, add ─ export ─┐
//! shard: add, add ────── export ─┴─> router: merge, merge ─ finish
//! ```
//!
//! Invariant: for every accumulator, merging the partials of any division of the input (in the order of the division) and
//! then finishing gives what adding the whole input gives.

pub mod collect;
pub mod custom;
pub mod extreme;
pub mod percentile;
pub mod statistics;
pub mod table;
pub mod top;

use crate::expression::{Arg, Expression, Variables, Vars, parse};
use document::{Doc, Result, Value, bail};
use std::fmt;
use std::sync::Arc;

/// The state of one accumulator in one group.
pub trait Accumulator: Send {
    /// Takes the next value; `None` is missing.
    fn add(&mut self, v: Arg) -> Result<()>;
    /// What this state has seen, for [`Accumulator::merge`] on another node.
    fn export(&mut self) -> Value;
    /// Takes what another state exported.
    fn merge(&mut self, partial: Value) -> Result<()>;
    /// Does what may fail of making the result, or what is exported if it is `partial`; asked once, before either.
    fn settle(&mut self, partial: bool) -> Result<()> {
        let _ = partial;
        Ok(())
    }
    /// The result; the state is used up.
    fn finish(&mut self) -> Value;
    /// The result so far; more may be added.
    fn current(&mut self) -> Value {
        // Right where `finish` takes nothing out of the state; the others have their own.
        self.finish()
    }
    /// Bytes held beyond the state itself, roughly.
    fn memory(&self) -> usize {
        0
    }
}

/// A parsed `{<accumulator>: <argument>}`.
#[derive(Clone)]
pub struct Parsed {
    pub name: &'static str,
    /// Evaluated for each document; the value goes to [`Accumulator::add`].
    pub input: Expression,
    /// `n` of the accumulators that give several values, evaluated once for each group on the group's key.
    pub n: Option<Expression>,
    start: Start,
}

/// Makes the state of a group.
#[derive(Clone)]
enum Start {
    Counting(Arc<dyn Fn(usize) -> Box<dyn Accumulator> + Send + Sync>),
    /// From the value of an expression on the group's key.
    From(Expression, Arc<dyn Fn(Value) -> Box<dyn Accumulator> + Send + Sync>),
}

impl fmt::Debug for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.name).field("input", &self.input).finish()
    }
}

impl Parsed {
    pub(crate) fn new(
        name: &'static str,
        input: Expression,
        start: impl Fn(usize) -> Box<dyn Accumulator> + Send + Sync + 'static,
    ) -> Parsed {
        Parsed { name, input, n: None, start: Start::Counting(Arc::new(start)) }
    }
    /// One whose states begin with the value of `initial` on the group's key.
    pub(crate) fn from_key(
        name: &'static str,
        input: Expression,
        initial: Expression,
        start: impl Fn(Value) -> Box<dyn Accumulator> + Send + Sync + 'static,
    ) -> Parsed {
        Parsed { name, input, n: None, start: Start::From(initial, Arc::new(start)) }
    }
    /// A fresh state for the group with key `key` (a document when the key is one).
    pub fn start(&self, key: &Value, vars: &mut Vars) -> Result<Box<dyn Accumulator>> {
        let key_document = || match key {
            Value::Document(d) => d.to_doc_buf(),
            _ => document::DocBuf::new(),
        };
        match (&self.start, &self.n) {
            (Start::Counting(start), None) => Ok(start(1)),
            (Start::Counting(start), Some(e)) => {
                let n = e.eval(key_document().doc(), vars)?;
                Ok(start(top::positive(self.name, &n)?))
            }
            (Start::From(initial, start), _) => Ok(start(initial.eval_or_null(key_document().doc(), vars)?)),
        }
    }
    pub fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> crate::expression::Eval {
        self.input.eval(root, vars)
    }
}

/// Parses `{<accumulator>: <argument>}` of the output field `field`. Errors: 40234 not an object, 40238 several
/// accumulators, 15952 unknown, 40237 an array where one expression is wanted.
pub fn parse(field: &str, v: &Value, vars: &Variables) -> Result<Parsed> {
    let Value::Document(d) = v else {
        bail!(40234, "The field '{field}' must be an accumulator object");
    };
    let Some((name, argument)) = d.first() else {
        bail!(40234, "The field '{field}' must be an accumulator object");
    };
    if d.len() != 1 {
        bail!(40238, "The field '{field}' must specify one accumulator");
    }
    if !name.starts_with('$') {
        bail!(40234, "The field '{field}' must be an accumulator object");
    }
    if matches!(argument, Value::Array(_)) {
        bail!(40237, "The {name} accumulator is a unary operator");
    }
    let Some(row) = table::find(name) else { bail!(15952, "unknown group operator '{name}'") };
    match row.parse {
        Some(parse) => parse(row.name, argument, vars),
        None => bail!(NOT_IMPLEMENTED, "{name} is known but not implemented as an accumulator"),
    }
}

/// The one expression most accumulators take; arrays are refused before.
pub(crate) fn single(_: &str, v: &Value, vars: &Variables) -> Result<Expression> {
    parse::expression(v, vars)
}

/// The bytes a value holds, roughly.
pub fn value_bytes(v: &Value) -> usize {
    let inner = match v {
        Value::String(s) | Value::Symbol(s) | Value::JavaScript(s) => s.len(),
        Value::Document(d) => d.iter().map(|(k, v)| k.len() + 24 + value_bytes(v)).sum(),
        Value::Array(a) => a.iter().map(value_bytes).sum(),
        Value::Binary(b) => b.bytes.len(),
        _ => 0,
    };
    std::mem::size_of::<Value>() + inner
}

#[cfg(test)]
mod tests;
