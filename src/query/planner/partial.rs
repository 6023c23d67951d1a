//! Whether a query asks only for documents that a partial index holds.

use crate::QueryContext;
use crate::matcher::{Comparison, Leaf, Matcher, Node, Operand, Test};
use document::compare::canonical_type;
use document::{Collation, Doc};
use std::cmp::Ordering;

/// Whether everything that `query` matches also matches the index's filter. May say no where the truth is yes.
pub(super) fn implies(query: &Matcher, index_filter: Doc<'_>, of_index: &Collation) -> bool {
    let ctx = QueryContext::collated(of_index);
    match Matcher::parse(index_filter, &ctx) {
        Ok(wanted) => implies_node(query.root(), wanted.root()),
        Err(_) => false,
    }
}

fn implies_node(query: &Node, wanted: &Node) -> bool {
    match wanted {
        Node::True => true,
        Node::And(all) => all.iter().all(|w| implies_node(query, w)),
        Node::Or(any) => {
            any.iter().any(|w| implies_node(query, w))
                || matches!(query, Node::Or(branches) if branches.iter().all(|b| implies_node(b, wanted)))
        }
        Node::Leaf(wanted) => match query {
            Node::Or(branches) => branches.iter().all(|b| implies_node(b, &Node::Leaf(wanted.clone()))),
            _ => query.conjuncts().iter().any(|c| match c {
                Node::Leaf(have) => have.path == wanted.path && implies_leaf(have, wanted),
                Node::Not(inner) => matches!((&**inner, &wanted.test), (Node::Leaf(have), Test::Exists)
                    if have.path == wanted.path && matches!(&have.test, Test::Compare(Comparison::Eq, v) if v.is_null())),
                Node::Or(_) => implies_node(c, &Node::Leaf(wanted.clone())),
                _ => false,
            }),
        },
        _ => false,
    }
}

fn implies_leaf(have: &Leaf, wanted: &Leaf) -> bool {
    match (&have.test, &wanted.test) {
        (Test::Compare(_, v), Test::Exists) => !v.is_null(),
        (Test::In(set), Test::Exists) => !set.has_null,
        (
            Test::Exists
            | Test::Regex(_)
            | Test::Type(_)
            | Test::ElemMatchObject(_)
            | Test::ElemMatchValue(_),
            Test::Exists,
        ) => true,
        (Test::In(set), Test::Compare(op, limit)) if set.patterns.is_empty() => {
            set.values.iter().all(|v| comparison_implies(Comparison::Eq, v, *op, limit))
        }
        (Test::In(a), Test::In(b)) if a.patterns.is_empty() && a.collation == b.collation => {
            let within = |v: &Operand| {
                b.values.binary_search_by(|w| b.collation.compare(w.value(), v.value())).is_ok()
            };
            a.values.iter().all(within)
        }
        (Test::In(a), Test::In(b)) if a.patterns.is_empty() => {
            a.values.iter().all(|v| b.values.iter().any(|w| order(v, w) == Some(Ordering::Equal)))
        }
        (Test::Compare(Comparison::Eq, v), Test::In(set)) => {
            set.values.iter().any(|w| order(v, w) == Some(Ordering::Equal))
        }
        (Test::Compare(have_op, v), Test::Compare(op, limit)) => comparison_implies(*have_op, v, *op, limit),
        (Test::Compare(Comparison::Eq, v), Test::Type(types)) => types.contains(v.tag),
        (Test::Type(a), Test::Type(b)) => !a.any_number && a.tags.iter().all(|t| b.contains(*t)),
        _ => false,
    }
}

/// The order of two operands; `None` where strings compare by two collations.
fn order(a: &Operand, b: &Operand) -> Option<Ordering> {
    match (a.string_collation(), b.string_collation()) {
        (Some(x), Some(y)) if x != y => None,
        (Some(c), _) | (None, Some(c)) => Some(c.compare(a.value(), b.value())),
        (None, None) => Some(Collation::SIMPLE.compare(a.value(), b.value())),
    }
}

fn comparison_implies(have: Comparison, v: &Operand, wanted: Comparison, limit: &Operand) -> bool {
    use Comparison::*;
    if canonical_type(v.tag) != canonical_type(limit.tag) {
        return false;
    }
    let Some(order) = order(v, limit) else { return false };
    match (have, wanted) {
        (Eq, Eq) => order == Ordering::Equal,
        (Eq, Lt) | (Lte, Lt) => order == Ordering::Less,
        (Eq | Lt | Lte, Lte) | (Lt, Lt) => order != Ordering::Greater,
        (Eq, Gt) | (Gte, Gt) => order == Ordering::Greater,
        (Eq | Gt | Gte, Gte) | (Gt, Gt) => order != Ordering::Less,
        _ => false,
    }
}
