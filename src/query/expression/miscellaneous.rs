//! Operators that belong to no family, and `$$CURRENT`.

use super::{Eval, Expression, Node, Vars};
use document::{Doc, Value};

/// `"$$CURRENT"`, the root document unless rebound.
#[derive(Debug)]
pub struct Current;

impl Node for Current {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        Ok(Some(vars.current().cloned().unwrap_or_else(|| Value::Document(root.to_document()))))
    }
    fn children(&self) -> Vec<&Expression> {
        Vec::new()
    }
    fn is_pure(&self) -> bool {
        false
    }
}
