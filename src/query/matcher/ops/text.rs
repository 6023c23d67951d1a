//! `$text`: asked of the collection's text index, which the context names.

use crate::QueryContext;
use crate::matcher::ast::Node;
use document::fts::{Language, TextQuery};
use document::{Element, Result, ValueRef, bail};
use std::sync::Arc;

pub fn text(e: Element<'_>, ctx: &QueryContext) -> Result<Node> {
    let ValueRef::Document(d) = e.value() else { bail!(BAD_VALUE, "$text expects an object") };
    let (mut search, mut language, mut case, mut marks) = (None, None, false, false);
    for o in d {
        match (o.name(), o.value()) {
            ("$search", ValueRef::String(s)) => search = Some(s),
            ("$language", ValueRef::String("")) => {}
            ("$language", ValueRef::String(s)) => match Language::find(s) {
                Some(known) => language = Some((s, known)),
                None => bail!(BAD_VALUE, "unsupported language: \"{s}\" for text index version 3"),
            },
            ("$caseSensitive", ValueRef::Boolean(b)) => case = b,
            ("$diacriticSensitive", ValueRef::Boolean(b)) => marks = b,
            (name @ ("$search" | "$language"), v) => wrong_type(name, v, "string")?,
            (name @ ("$caseSensitive" | "$diacriticSensitive"), v) => wrong_type(name, v, "bool")?,
            (name, _) => bail!(BAD_VALUE, "extra fields in $text: '{name}'"),
        }
    }
    let Some(search) = search else { bail!(NO_SUCH_KEY, "Missing expected field \"$search\"") };
    let Some(index) = &ctx.text_index else { bail!(INDEX_NOT_FOUND, "text index required for $text query") };
    let spec = document::doc! {
        "$search": search, "$language": language.map_or("", |(name, _)| name),
        "$caseSensitive": case, "$diacriticSensitive": marks,
    };
    let query = TextQuery::new(index.clone(), search, language.map(|(_, l)| l), case, marks, spec);
    Ok(Node::Text(Arc::new(query)))
}

fn wrong_type(name: &str, v: ValueRef<'_>, expected: &str) -> Result<()> {
    bail!(TYPE_MISMATCH, "\"{name}\" had the wrong type. Expected {expected}, found {}", v.type_name())
}

/// Refuses more than one `$text`, one beside a `$near`, which brings an order of its own, and one that is negated.
pub fn check(root: &Node) -> Result<()> {
    if count(root) > 1 {
        bail!(BAD_VALUE, "Too many text expressions");
    }
    if count(root) > 0 && root.conjuncts().iter().any(|node| super::geo::near_of_node(node).is_some()) {
        bail!(BAD_VALUE, "text and geoNear not allowed in same query");
    }
    if negated(root) {
        bail!(BAD_VALUE, "text expression not allowed in nor");
    }
    Ok(())
}

fn count(node: &Node) -> usize {
    match node {
        Node::Text(_) => 1,
        Node::And(list) | Node::Or(list) | Node::Nor(list) => list.iter().map(count).sum(),
        Node::Not(inner) => count(inner),
        _ => 0,
    }
}

fn negated(node: &Node) -> bool {
    match node {
        Node::Nor(list) => list.iter().any(|n| count(n) > 0),
        Node::Not(inner) => count(inner) > 0,
        Node::And(list) | Node::Or(list) => list.iter().any(negated),
        _ => false,
    }
}
