//! Plans that need no documents: all that is asked of a record stands in the key of an index.
//!
//! Only where the index holds no arrays, whose elements its keys are, and has no collation, whose strings its keys do not hold.
//! A key of null does not tell whether the field is missing, nor which of the documents on its path is: there the document is read.
//! So the documents on the path of any other value are known to be there.

use super::ranges::FieldKind;
use super::{IndexInfo, Plan};
use crate::matcher::{Node, Test};

/// Has the plan read the paths of `needed`, and those of its filter, from the keys of its index where that is possible.
pub fn cover(plan: &mut Plan, needed: &[String], indexes: &[IndexInfo]) {
    let Plan::Index { scan, filter } = plan else { return };
    let Some(index) = indexes.iter().find(|i| i.name == scan.index) else { return };
    if scan.clustered || scan.multikey || index.wildcard.is_some() || !index.collation.is_simple() {
        return;
    }
    let mut asked: Vec<&str> = needed.iter().map(String::as_str).collect();
    if !paths(filter.root(), &mut asked) {
        return;
    }
    let mut read = vec![false; index.key.len()];
    for path in asked {
        match place(index, path) {
            Some(at) => read[at] = true,
            None => return,
        }
    }
    let paths: Vec<&str> =
        index.key.keys().zip(&read).filter(|(_, read)| **read).map(|(path, _)| path).collect();
    // Of a document and a field within it a key tells only one.
    if !paths.iter().any(|outer| paths.iter().any(|inner| is_within(inner, outer))) {
        scan.covered = read;
    }
}

fn is_within(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
}

/// The position of a path in an index whose keys tell its values.
fn place(index: &IndexInfo, path: &str) -> Option<usize> {
    // A number on a path may be a position, which a projection does not take it for.
    let at = index.key.keys().position(|p| p == path).filter(|_| !has_position(path))?;
    let kind = index.key.iter().nth(at).and_then(|(_, v)| FieldKind::of(v))?;
    let plain = matches!(kind, FieldKind::Ascending | FieldKind::Descending);
    Some(at).filter(|_| plain && index.kinds.tells(at))
}

/// Whether a name on a path is a number.
pub(super) fn has_position(path: &str) -> bool {
    path.split('.').any(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()))
}

/// Collects the paths that a filter reads; false where it reads more than paths.
fn paths<'a>(node: &'a Node, out: &mut Vec<&'a str>) -> bool {
    match node {
        Node::And(list) | Node::Or(list) | Node::Nor(list) => list.iter().all(|n| paths(n, out)),
        Node::Not(inner) => paths(inner, out),
        Node::Leaf(leaf) => {
            out.push(&leaf.path.text);
            // What asks of arrays is left to documents.
            reads_values(&leaf.test)
        }
        Node::True | Node::False => true,
        Node::Expr(_) | Node::Schema(_) | Node::Text(_) | Node::Script(_) | Node::SampleRate { .. } => false,
        Node::MayHold(_) => false,
    }
}

fn reads_values(test: &Test) -> bool {
    match test {
        Test::Compare(..) | Test::In(_) | Test::Exists | Test::Type(_) | Test::Regex(_) => true,
        Test::Size(_) | Test::ElemMatchObject(_) | Test::ElemMatchValue(_) | Test::Other(_) => false,
    }
}
