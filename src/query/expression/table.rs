//! Every expression operator the server knows, one row each.

use super::{Arg, Eval, Expression, Variables};
use document::{Result, Value};

/// An operator over evaluated arguments; it may take them out of the slice.
pub type Function = fn(&mut [Arg]) -> Eval;
/// An operator that parses its own argument: (its name, the argument, the scope).
pub type Parse = fn(&'static str, &Value, &Variables) -> Result<Expression>;

pub struct Operator {
    pub name: &'static str,
    pub kind: Kind,
}
#[derive(Clone, Copy)]
pub enum Kind {
    Function { min: usize, max: usize, call: Function },
    Special(Parse),
    /// The server has it, we do not.
    NotImplemented,
}
impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The row of an operator; `None` when the server does not know it either.
pub fn find(name: &str) -> Option<&'static Operator> {
    OPERATORS.iter().find(|o| o.name == name)
}

pub const OPERATORS: &[Operator] = &[];
