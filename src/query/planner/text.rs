//! The plan of a `$text`: the ranges of its terms in the text index, the filter checked on each document.

use super::candidates;
use super::{Bounds, IndexInfo, IndexScan, KeyRange, Plan, Request};
use crate::matcher::{Matcher, Node};
use document::fts::TextQuery;
use document::{Document, Result, Value, bail, key_string};

/// The field of the key pattern that stands for the terms.
const TERM: &str = "_fts";

/// The text query among the top-level conjuncts.
pub(super) fn query_of<'a>(request: &Request<'a>) -> Option<&'a TextQuery> {
    request.filter.text().map(|q| &**q)
}

/// Errors: 291 where a field before the text is not held to a value or a partial index lacks documents, BadValue for a hint.
pub(super) fn plan(request: &Request<'_>, query: &TextQuery) -> Result<Plan> {
    if request.hint.is_some() {
        bail!(BAD_VALUE, "text and hint not allowed in same query");
    }
    let Some(index) = request.indexes.iter().find(|i| i.key.contains_key(TERM) && !i.hidden) else {
        if request.indexes.iter().any(|i| i.key.contains_key(TERM)) {
            bail!(
                NO_QUERY_EXECUTION_PLANS,
                "error processing query: planner returned error :: caused by :: the text index is hidden"
            );
        }
        bail!(INDEX_NOT_FOUND, "text index required for $text query");
    };
    let usable = candidates::partial_filter_holds_all(request.filter, index);
    let Some(prefix) = usable.then(|| prefix(request, index)).flatten() else {
        bail!(
            NO_QUERY_EXECUTION_PLANS,
            "error processing query: planner returned error :: caused by :: failed to use text index to satisfy $text query (if text index is compound, are equality predicates given for all prefix fields?)"
        );
    };
    let range = |term: &String| {
        let mut key = prefix.clone();
        key_string::append_value(&mut key, &Value::from(term.as_str()), false);
        KeyRange { lo: key.clone(), lo_inclusive: true, hi: key, hi_inclusive: true }
    };
    let mut ranges: Vec<KeyRange> = query.lookup().iter().map(range).collect();
    ranges.sort_by(|a, b| a.lo.cmp(&b.lo));
    let terms = query.lookup().iter().map(|t| Value::from(format!("[\"{t}\", \"{t}\"]"))).collect();
    let mut bounds = Document::new();
    bounds.push(TERM, Value::Array(terms));
    let bounds = Bounds::Given(bounds);
    // A document has a key for each of its terms.
    let scan =
        IndexScan { unique: false, multikey: true, repeats: true, ranges, bounds, ..IndexScan::of(index) };
    Ok(Plan::Index { scan, filter: request.filter.clone() })
}

/// The encoded values that the filter holds the fields before the text to.
fn prefix(request: &Request<'_>, index: &IndexInfo) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    for (path, direction) in index.key.iter().take_while(|(path, _)| *path != TERM) {
        let value = candidates::single_value(request.filter, path)?;
        key_string::append_value(&mut key, &value, direction.as_f64().is_some_and(|n| n < 0.0));
    }
    Some(key)
}

/// The fields before the text with the values that the filter holds them to.
pub(crate) fn held(filter: &Matcher, scan: &IndexScan) -> Document {
    let before = scan.key.keys().take_while(|path| *path != TERM);
    before.filter_map(|path| Some((path.to_string(), candidates::single_value(filter, path)?))).collect()
}

/// Whether `$text` stands below the top level: every branch of its disjunction then needs an index.
pub(super) fn is_nested(node: &Node) -> bool {
    match node {
        Node::Text(_) => true,
        Node::And(list) | Node::Or(list) | Node::Nor(list) => list.iter().any(is_nested),
        _ => false,
    }
}
