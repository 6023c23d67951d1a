//! `$and`, `$or`, `$nor` and `$not`.

use super::PathInput;
use crate::QueryContext;
use crate::matcher::ast::{Comparison, Condition, InSet, Leaf, Node, Test};
use crate::matcher::parse;
use crate::matcher::pattern::Pattern;
use document::{Element, Result, ValueRef, bail};
use std::sync::Arc;

fn list(e: Element<'_>, ctx: &QueryContext) -> Result<Vec<Node>> {
    let ValueRef::Array(items) = e.value() else { bail!(BAD_VALUE, "{} must be an array", e.name()) };
    let mut nodes = Vec::new();
    for item in items {
        let ValueRef::Document(d) = item.value() else {
            bail!(BAD_VALUE, "$or/$and/$nor entries need to be full objects");
        };
        nodes.push(parse::filter(d, ctx)?);
    }
    if nodes.is_empty() {
        bail!(BAD_VALUE, "$and/$or/$nor must be a nonempty array");
    }
    Ok(nodes)
}

pub fn and(e: Element<'_>, ctx: &QueryContext) -> Result<Node> {
    Ok(Node::and(list(e, ctx)?))
}
pub fn or(e: Element<'_>, ctx: &QueryContext) -> Result<Node> {
    let mut branches = list(e, ctx)?;
    if branches.iter().any(|b| matches!(b, Node::True)) {
        return Ok(Node::True);
    }
    if let Some(set) = as_in(&branches, ctx)? {
        return Ok(set);
    }
    branches.sort_by(Node::order);
    Ok(if branches.len() == 1 { branches.remove(0) } else { Node::Or(branches) })
}
/// Equalities of one path are one `$in`, which also keeps a positional `$` known.
fn as_in(branches: &[Node], ctx: &QueryContext) -> Result<Option<Node>> {
    let mut operands = Vec::with_capacity(branches.len());
    let mut path = None;
    for branch in branches {
        match branch {
            Node::Leaf(Leaf { path: own, test: Test::Compare(Comparison::Eq, operand) })
                if path.is_none_or(|p| p == own) =>
            {
                path = Some(own);
                operands.push(operand.clone());
            }
            _ => return Ok(None),
        }
    }
    let Some(path) = path.filter(|_| operands.len() > 1).cloned() else { return Ok(None) };
    Ok(Some(Node::Leaf(Leaf { path, test: Test::In(InSet::of(operands, &ctx.collation)?) })))
}

pub fn nor(e: Element<'_>, ctx: &QueryContext) -> Result<Node> {
    Ok(Node::Nor(list(e, ctx)?))
}

pub fn not(input: &PathInput<'_>) -> Result<Condition> {
    match input.argument.value() {
        ValueRef::Regex(source, options) => {
            Ok(Condition::Test(Test::Regex(Arc::new(Pattern::compile(source, options)?))).negated())
        }
        ValueRef::Document(d) if d.is_empty() => bail!(BAD_VALUE, "$not cannot be empty"),
        ValueRef::Document(d) => Ok(Condition::All(parse::conditions(input.path, d, input.ctx)?).negated()),
        _ => bail!(BAD_VALUE, "$not needs a regex or a document"),
    }
}
