//! Which shards a filter or a document concerns.
//!
//! A document has one key and so one shard. A filter is read as a query planner reads it, with the shard key in the
//! place of an index: the ranges of encoded keys in which every matching document lies, and the shards that own a
//! chunk meeting one of them. The encoding is that of the chunks' bounds, so ranges and chunks compare as bytes.
//!
//! ```text
//! {state: "NY", pop: {$gt: 5}}  with key {state: 1, _id: 1}   ->  "NY".* .. "NY".*   ->  the chunks it meets
//! {$or: [{state: "NY"}, {state: "NJ"}]}                       ->  the union of the branches
//! {pop: 3}                                                    ->  everything
//! ```
//!
//! Invariant: what is left out can hold no matching document; targeting too much is only slow.

use crate::chunk::ShardId;
use crate::key_pattern::ShardKeyPattern;
use crate::routing::RoutingTable;
use document::{Doc, DocBuf, Document, Result, Value, ValueRef, doc, hash, key_string};
use query::QueryContext;
use query::matcher::{Matcher, Node};
use query::planner::{self, Hint, IndexInfo, KeyRange, Plan};
use std::collections::BTreeSet;

/// How deeply nested `$or`s are followed before the filter is sent everywhere.
const OR_DEPTH_MAX: usize = 8;

/// The shards a filter concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// In name order, never empty.
    pub shards: Vec<ShardId>,
    /// The filter holds every field of the shard key to one value: all it can match has this key.
    pub key: Option<Vec<u8>>,
}

/// The shard that owns a document.
///
/// # Errors
/// ShardKeyNotFound (61) when a key field is an array.
pub fn document(table: &RoutingTable, doc: Doc<'_>) -> Result<ShardId> {
    Ok(table.find(&table.key.key_of(doc)?).shard.clone())
}

/// The shards that own documents which `filter` can match. Where the context has a collation, what the filter says of
/// strings says nothing of the chunks, whose bounds are in another order.
pub fn filter(table: &RoutingTable, filter: Doc<'_>, context: &QueryContext) -> Target {
    reach(table, filter, context).0
}

/// As [`filter`]; also whether the filter says anything of the shard key.
pub fn reach(table: &RoutingTable, filter: Doc<'_>, context: &QueryContext) -> (Target, bool) {
    if let Some(key) = equality_key(&table.key, filter, context.collation.is_simple()) {
        return (Target { shards: vec![table.find(&key).shard.clone()], key: Some(key) }, true);
    }
    let everywhere = || (Target { shards: all_shards(table), key: None }, false);
    if filter.is_empty() {
        return everywhere();
    }
    // A filter the router cannot read is refused by the shards, with the right error.
    let Ok(matcher) = Matcher::parse(filter, context) else { return everywhere() };
    let Some(ranges) = ranges(&table.key, &matcher, 0) else { return everywhere() };
    let key = single_key(&table.key, &ranges);
    let mut shards = shards_of(table, &ranges);
    if shards.is_empty() {
        // Nothing can match: one shard says so in the words of its command.
        shards.extend(table.shards().next().cloned());
    }
    (Target { shards, key }, true)
}

/// Every shard that owns a chunk.
pub fn all_shards(table: &RoutingTable) -> Vec<ShardId> {
    table.shards().cloned().collect()
}

/// The key when the filter's top level gives each key field as a plain value: the common point query, without parsing.
pub fn equality_key(pattern: &ShardKeyPattern, filter: Doc<'_>, simple_collation: bool) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(16 * pattern.fields().len());
    for field in pattern.fields() {
        let value = filter.get(&field.path)?;
        if !is_plain(value) || !(simple_collation || document::collation::compares_alike(value)) {
            return None;
        }
        if field.hashed {
            key_string::append(&mut key, ValueRef::Int64(hash::hash64(value)), false);
        } else {
            key_string::append(&mut key, value, false);
        }
    }
    Some(key)
}

/// Whether the filter can match one document only: it holds `_id` to one value.
pub fn names_one(filter: Doc<'_>) -> bool {
    filter.get("_id").is_some_and(is_plain)
}

/// Whether the filter holds a value that means equality with just this value.
fn is_plain(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Document(d) => d.iter().next().is_none_or(|e| e.name_bytes().first() != Some(&b'$')),
        ValueRef::Array(_) | ValueRef::Regex(..) | ValueRef::Undefined => false,
        // Ranges compare by type: null also stands for missing, which keys do as well.
        _ => true,
    }
}

/// The ranges of encoded keys that hold every match; `None` when they are all keys.
fn ranges(pattern: &ShardKeyPattern, matcher: &Matcher, depth: usize) -> Option<Vec<KeyRange>> {
    if matcher.is_always_false() {
        return Some(Vec::new());
    }
    let index = index_of(pattern);
    let hint = Hint::Key(index.key.clone());
    let request = planner::Request {
        hint: Some(&hint),
        ..planner::Request::new(matcher, std::slice::from_ref(&index))
    };
    match planner::plan(&request) {
        Ok(Plan::Index { scan, .. }) if !scan.ranges.iter().any(is_everything) => Some(scan.ranges),
        Ok(Plan::Eof) => Some(Vec::new()),
        Ok(_) if depth < OR_DEPTH_MAX => or_ranges(pattern, matcher, depth),
        _ => None,
    }
}

/// The union over the branches of the filter's first `$or`, each taken together with the other conjuncts.
fn or_ranges(pattern: &ShardKeyPattern, matcher: &Matcher, depth: usize) -> Option<Vec<KeyRange>> {
    let conjuncts = matcher.root().conjuncts();
    let at = conjuncts.iter().position(|n| matches!(n, Node::Or(_)))?;
    let Node::Or(branches) = &conjuncts[at] else { return None };
    let mut union = Vec::new();
    for branch in branches {
        let others = conjuncts.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, n)| n.clone());
        let nodes: Vec<Node> = std::iter::once(branch.clone()).chain(others).collect();
        let branch = Matcher::from_node(Node::and(nodes), DocBuf::new());
        union.extend(ranges(pattern, &branch, depth + 1)?);
    }
    union.sort_by(|a, b| (&a.lo, &a.hi).cmp(&(&b.lo, &b.hi)));
    union.dedup();
    Some(union)
}

/// The shard key as the planner sees an index. Key fields are never arrays, so it is not multikey.
fn index_of(pattern: &ShardKeyPattern) -> IndexInfo {
    IndexInfo { name: "shard key".into(), key: pattern.document().clone(), ..IndexInfo::default() }
}

fn is_everything(range: &KeyRange) -> bool {
    range.lo.is_empty() && range.hi.is_empty() && range.hi_inclusive
}

/// The one key of the ranges, if they are a single point with all the key's components.
fn single_key(pattern: &ShardKeyPattern, ranges: &[KeyRange]) -> Option<Vec<u8>> {
    let [one] = ranges else { return None };
    let is_point = one.lo == one.hi && one.lo_inclusive && one.hi_inclusive;
    (is_point && component_count(&one.lo)? == pattern.fields().len()).then(|| one.lo.clone())
}

fn component_count(mut key: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !key.is_empty() {
        key = key.get(key_string::component_length(key, false)?..)?;
        count += 1;
    }
    Some(count)
}

fn shards_of(table: &RoutingTable, ranges: &[KeyRange]) -> Vec<ShardId> {
    let all = table.shards().count();
    let mut found: BTreeSet<ShardId> = BTreeSet::new();
    for range in ranges {
        let lo = filled(&table.key, range);
        for chunk in table.overlapping(&lo, &range.hi, range.hi_inclusive) {
            if !found.contains(&chunk.shard) {
                found.insert(chunk.shard.clone());
            }
            if found.len() == all {
                return found.into_iter().collect();
            }
        }
    }
    found.into_iter().collect()
}

/// The lower bound with `MinKey` for the fields it says nothing of: no key lies between, but a chunk may begin there.
fn filled(pattern: &ShardKeyPattern, range: &KeyRange) -> Vec<u8> {
    let mut lo = range.lo.clone();
    if !range.lo_inclusive {
        return lo;
    }
    let given = component_count(&lo).filter(|n| *n > 0).unwrap_or(pattern.fields().len());
    for _ in given..pattern.fields().len() {
        key_string::append(&mut lo, ValueRef::MinKey, false);
    }
    lo
}

/// The fields that find a document again: its `_id` and its shard key.
pub fn identity(pattern: &ShardKeyPattern, doc: Doc<'_>) -> Result<Document> {
    let mut fields = pattern.fields_of(doc)?;
    if let Some(id) = doc.get("_id") {
        fields.insert("_id", id.to_value());
    }
    // A document or a pattern as a bare value could be read as an operator.
    let exactly = |v: Value| match v {
        Value::Document(_) | Value::Regex(_) | Value::Array(_) => Value::from(doc! { "$eq": v }),
        v => v,
    };
    Ok(fields.into_iter().map(|(name, value)| (name, exactly(value))).collect())
}
