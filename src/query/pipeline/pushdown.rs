//! Predicate pushdown: what of a `$match` is asked before the stage in front of it.
//!
//! ```text
//! {$addFields: {t: ..}}, {$match: {a: 1, t: 2}}   =   {$match: {a: 1}}, {$addFields: {t: ..}}, {$match: {t: 2}}
//! ```
//! So what is asked of a view, or behind a join, can be found by an index. A condition goes ahead of a stage that leaves the fields
//! alone which it reads, each of them with all that is below it.

use super::Context;
use super::lookup::is_random;
use crate::expression::Expression;
use document::{Document, Value, doc};
use std::collections::BTreeSet;

/// Values of filters that are looked at for one pipeline: a client chooses how long its filters are and how many stages stand in front of them.
pub(super) const VALUES_MAX: usize = 20_000;

/// Counts a filter's values against what is left; false where they are more.
pub(super) fn affords(filter: &Document, left: &mut usize) -> bool {
    fn count(v: &Value, left: &mut usize) -> bool {
        let Some(rest) = left.checked_sub(1) else { return false };
        *left = rest;
        match v {
            Value::Document(d) => affords(d, left),
            Value::Array(items) => items.iter().all(|item| count(item, left)),
            _ => true,
        }
    }
    filter.iter().all(|(_, v)| count(v, left))
}

/// The fields of the document itself that a stage leaves as they are.
enum Kept {
    AllBut(BTreeSet<String>),
    Only(BTreeSet<String>),
}

/// The filter that goes ahead of a stage, and the one that stays behind it; `None` where nothing can go.
pub(super) fn split(
    name: &str,
    spec: &Value,
    filter: &Document,
    ctx: &Context,
) -> Option<(Document, Option<Document>)> {
    let kept = kept(name, spec)?;
    let goes = |part: &Document| {
        let mut roots = BTreeSet::new();
        let known = roots_read(part, ctx, &mut roots) && !roots.is_empty();
        known
            && match &kept {
                Kept::AllBut(changed) => roots.is_disjoint(changed),
                Kept::Only(left) => roots.is_subset(left),
            }
    };
    let (ahead, behind): (Vec<Document>, Vec<Document>) = conjuncts(filter).into_iter().partition(goes);
    (!ahead.is_empty()).then(|| (joined(ahead), (!behind.is_empty()).then(|| joined(behind))))
}

fn joined(mut parts: Vec<Document>) -> Document {
    match parts.len() {
        1 => parts.remove(0),
        _ => doc! { "$and": parts },
    }
}

/// Documents of one field each, all of which have to match.
fn conjuncts(filter: &Document) -> Vec<Document> {
    let mut out = Vec::new();
    for (name, v) in filter.iter() {
        match (name, v) {
            ("$and", Value::Array(parts)) => {
                out.extend(parts.iter().filter_map(Value::as_document).flat_map(conjuncts));
            }
            (name, v) => out.push(Document(vec![(name.to_string(), v.clone())])),
        }
    }
    out
}

/// Collects the fields that a filter reads; false where it may read others, or be decided anew each time.
fn roots_read(filter: &Document, ctx: &Context, out: &mut BTreeSet<String>) -> bool {
    filter.iter().all(|(name, v)| match (name, v) {
        ("$and" | "$or" | "$nor", Value::Array(parts)) => {
            parts.iter().all(|part| part.as_document().is_some_and(|part| roots_read(part, ctx, out)))
        }
        ("$expr", v) => {
            let parsed =
                Expression::parse(v, &ctx.scope()).ok().filter(|_| !is_random(std::slice::from_ref(v)));
            let Some(paths) = parsed.and_then(|e| e.needed_fields()) else { return false };
            out.extend(paths.iter().map(|path| root(path)));
            true
        }
        (path, _) if path.is_empty() || path.starts_with(['$', '.']) => false,
        (path, _) => {
            out.insert(root(path));
            true
        }
    })
}

fn root(path: &str) -> String {
    path.split('.').next().unwrap_or(path).to_string()
}

fn kept(name: &str, spec: &Value) -> Option<Kept> {
    let changed = |paths: &mut dyn Iterator<Item = &str>| Some(Kept::AllBut(paths.map(root).collect()));
    match (name, spec) {
        // What the server itself puts into documents belongs to the stage in front.
        ("$addFields" | "$set", Value::Document(d)) => {
            let own = d.keys().any(|field| field.starts_with("__internal"));
            changed(&mut d.keys().filter(|_| !own)).filter(|_| !own)
        }
        ("$unset", Value::String(path)) => changed(&mut std::iter::once(path.as_str())),
        ("$unset", Value::Array(paths)) => changed(&mut paths.iter().filter_map(Value::as_str)),
        ("$unwind", Value::String(path)) => changed(&mut path.strip_prefix('$').into_iter()),
        ("$unwind", Value::Document(d)) => {
            let path = d.get_str("path").and_then(|path| path.strip_prefix('$'));
            changed(&mut path.into_iter().chain(d.get_str("includeArrayIndex")))
        }
        ("$lookup" | "$graphLookup", Value::Document(d)) if !d.contains_key("_internalUnwind") => {
            changed(&mut std::iter::once(d.get_str("as")?))
        }
        ("$project", Value::Document(d)) => projected(d),
        _ => None,
    }
}

/// What a `$project` leaves alone: in an inclusion the fields that it names and no more, in an exclusion those that it does not name.
fn projected(spec: &Document) -> Option<Kept> {
    let said = |v: &Value| match v {
        Value::Boolean(b) => Some(*b),
        v if v.is_number() => Some(v.truthy()),
        _ => None,
    };
    let excludes = spec.iter().all(|(_, v)| said(v) == Some(false));
    if excludes {
        return Some(Kept::AllBut(spec.keys().map(root).collect()));
    }
    let named = spec.iter().filter(|(name, v)| !name.contains('.') && said(v) == Some(true));
    let mut left: BTreeSet<String> = named.map(|(name, _)| name.to_string()).collect();
    if !spec.contains_key("_id") && !spec.keys().any(|name| name.starts_with("_id.")) {
        left.insert("_id".to_string());
    }
    Some(Kept::Only(left))
}
