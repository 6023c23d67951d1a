//! `$expr`, and what it says of single paths.
//!
//! A comparison of a path with a value in which no document has a part bounds the scan of an index, if it has to hold for the whole
//! expression to be true: `{$and: [{$eq: ["$a", 1]}, {$lt: ["$b", "$$x"]}]}` says something of `a` and of `b`. The expression itself is
//! asked of every document that the scan finds.

use super::{Comparison, Leaf, Operand, Path, Test};
use crate::ParseContext;
use crate::computed::Computed;
use crate::expression::Expression;
use document::{Collation, Value};
use std::sync::Arc;

/// So many comparisons are looked for.
const COMPARISONS_MAX: usize = 32;

/// Operators in a value that is computed while a filter is parsed, and which these may be.
const OPERATORS_MAX: usize = 8;
const CHEAP: [&str; 15] = [
    "$add",
    "$subtract",
    "$multiply",
    "$divide",
    "$mod",
    "$abs",
    "$dateAdd",
    "$dateSubtract",
    "$dateTrunc",
    "$toDate",
    "$toObjectId",
    "$toInt",
    "$toLong",
    "$toDouble",
    "$toDecimal",
];

#[derive(Clone, Debug)]
pub struct Expr {
    pub computed: Computed,
    collation: Collation,
    comparisons: Vec<Leaf>,
}

impl Expr {
    /// `collation` is the one that the expression compares by.
    pub fn new(computed: Computed, collation: &Collation) -> Expr {
        let mut comparisons = Vec::new();
        collect(&computed, computed.expression(), collation, &mut comparisons);
        Expr { computed, collation: collation.clone(), comparisons }
    }
    pub fn at_time_of(&self, ctx: &ParseContext) -> Expr {
        Expr::new(self.computed.at_time_of(ctx), &self.collation)
    }
    /// What holds of every document for which the expression is true, in the order of expressions: values of different types compare, too,
    /// an array is one value, and what is missing is less than all others but MinKey.
    pub fn comparisons(&self) -> &[Leaf] {
        &self.comparisons
    }
}

fn collect(computed: &Computed, e: &Expression, collation: &Collation, out: &mut Vec<Leaf>) {
    match e {
        Expression::Special(node) if node.name() == "$and" => {
            node.children().into_iter().for_each(|child| collect(computed, child, collation, out));
        }
        Expression::Call(operator, _, arguments) if out.len() < COMPARISONS_MAX => {
            let [left, right] = arguments.as_slice() else { return };
            let Some((comparison, mirrored)) = comparison(operator.name) else { return };
            let (path, comparison, value) = match (path_of(left), path_of(right)) {
                (Some(path), None) => (path, comparison, right),
                (None, Some(path)) => (path, mirrored, left),
                _ => return,
            };
            let mut operators_left = OPERATORS_MAX;
            if !is_fixed(value, &mut operators_left) {
                return;
            }
            if let Some(value) = computed.value_of(value).filter(is_comparable) {
                let test = Test::Compare(comparison, Operand::new(&value, collation));
                out.push(Leaf { path: Arc::new(Path::new(&path)), test });
            }
        }
        _ => {}
    }
}

/// The comparison, and the one that says the same with its sides exchanged.
fn comparison(name: &str) -> Option<(Comparison, Comparison)> {
    Some(match name {
        "$eq" => (Comparison::Eq, Comparison::Eq),
        "$gt" => (Comparison::Gt, Comparison::Lt),
        "$gte" => (Comparison::Gte, Comparison::Lte),
        "$lt" => (Comparison::Lt, Comparison::Gt),
        "$lte" => (Comparison::Lte, Comparison::Gte),
        _ => return None,
    })
}

fn path_of(e: &Expression) -> Option<String> {
    match e {
        Expression::Field(path) | Expression::Root(path) if !path.is_empty() => Some(path.parts().join(".")),
        _ => None,
    }
}

/// Whether it has one value under given variables, whatever the document, that is computed in no time worth counting.
fn is_fixed(e: &Expression, operators_left: &mut usize) -> bool {
    let (name, operands) = match e {
        Expression::Constant(_) | Expression::Variable(..) => return true,
        Expression::Call(operator, _, operands) => (operator.name, operands.iter().collect()),
        Expression::Special(node) => (node.name(), node.children()),
        Expression::Field(_) | Expression::Root(_) | Expression::Object(_) | Expression::Array(_) => {
            return false;
        }
    };
    let Some(left) = operators_left.checked_sub(1).filter(|_| CHEAP.contains(&name)) else { return false };
    *operators_left = left;
    operands.into_iter().all(|operand| is_fixed(operand, operators_left))
}

/// Whether an index tells how values stand to this one: an array is in it by its elements.
fn is_comparable(v: &Value) -> bool {
    !matches!(v, Value::Array(_) | Value::Undefined | Value::Regex(_) | Value::Symbol(_))
}
