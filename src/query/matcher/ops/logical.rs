//! `$and`, `$or`, `$nor` and `$not`.

use super::PathInput;
use crate::ParseContext;
use crate::matcher::ast::{Condition, Node, Test};
use crate::matcher::parse;
use crate::matcher::pattern::Pattern;
use document::{Element, Result, ValueRef, bail};
use std::sync::Arc;

fn list(e: Element<'_>, ctx: &ParseContext) -> Result<Vec<Node>> {
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

pub fn and(e: Element<'_>, ctx: &ParseContext) -> Result<Node> {
    Ok(Node::and(list(e, ctx)?))
}
pub fn or(e: Element<'_>, ctx: &ParseContext) -> Result<Node> {
    let mut branches = list(e, ctx)?;
    if branches.iter().any(|b| matches!(b, Node::True)) {
        return Ok(Node::True);
    }
    Ok(if branches.len() == 1 { branches.remove(0) } else { Node::Or(branches) })
}
pub fn nor(e: Element<'_>, ctx: &ParseContext) -> Result<Node> {
    Ok(Node::Nor(list(e, ctx)?))
}

pub fn not(input: &PathInput<'_>) -> Result<Condition> {
    match input.argument.value() {
        ValueRef::Regex(source, options) => {
            Ok(Condition::Test(Test::Regex(Arc::new(Pattern::compile(source, options)?))).not())
        }
        ValueRef::Document(d) if d.is_empty() => bail!(BAD_VALUE, "$not cannot be empty"),
        ValueRef::Document(d) => Ok(Condition::All(parse::conditions(input.path, d, input.ctx)?).not()),
        _ => bail!(BAD_VALUE, "$not needs a regex or a document"),
    }
}
