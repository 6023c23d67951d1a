//! Rewrites that do not change the result, and questions about a pipeline's front.

use super::{Context, Needs, Parsed, ParsedKind, Pipeline, parse, pushdown, sort};
use document::{Document, Result, Value, doc, number};
use std::collections::BTreeSet;

/// Merges neighbouring `$match`es, `$limit`s and `$skip`s, moves `$match` before `$sort` and, as far as it can go ([`pushdown`]), before other
/// stages, folds a limit into a `$sort`.
pub fn optimize(p: Pipeline, ctx: &Context) -> Result<Pipeline> {
    let mut stages: Vec<Written> = p.stages.into_iter().map(|s| (s.name, s.spec.clone(), Some(s))).collect();
    let mut i = 0;
    let mut left = pushdown::VALUES_MAX;
    while i + 1 < stages.len() {
        match rewrite(&stages[i], &stages[i + 1], ctx, &mut left) {
            Rewrite::None => i += 1,
            Rewrite::Join(spec) => {
                stages[i] = (stages[i].0, spec, None);
                stages.remove(i + 1);
                i = i.saturating_sub(1);
            }
            Rewrite::Swap => {
                stages.swap(i, i + 1);
                i = i.saturating_sub(1);
            }
            Rewrite::Ahead(filter, rest) => {
                let rest = rest.map(|rest| ("$match", rest.into(), None));
                stages.splice(i + 1..i + 2, rest);
                stages.insert(i, ("$match", filter.into(), None));
                i = i.saturating_sub(1);
            }
        }
    }
    fold_limits(&mut stages);
    let mut out = Vec::with_capacity(stages.len());
    for (name, spec, parsed) in stages {
        match parsed {
            Some(s) => out.push(s),
            None => out.extend(reparse(name, &spec, ctx)?),
        }
    }
    Ok(Pipeline { stages: out })
}

/// Parses one stage again after its argument changed.
pub(super) fn reparse(name: &str, spec: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let mut inner = ctx.clone();
    inner.from_router = true;
    if inner.namespace.collection.is_empty() {
        inner.namespace.collection = "$cmd.aggregate".into();
    }
    let stage = Value::Document(Document(vec![(name.to_string(), spec.clone())]));
    Ok(parse::parse(&[stage], &inner)?.stages)
}

enum Rewrite {
    None,
    Join(Value),
    Swap,
    /// A part of the second goes before the first; what is left of it stays.
    Ahead(Document, Option<Document>),
}

type Written = (&'static str, Value, Option<Parsed>);

fn rewrite(a: &Written, b: &Written, ctx: &Context, left: &mut usize) -> Rewrite {
    let whole = |v: &Value| number::to_i64_exact(v).unwrap_or(0);
    match (a.0, b.0) {
        ("$match", "$match") => Rewrite::Join(Value::Document(both(&a.1, &b.1))),
        ("$limit", "$limit") => Rewrite::Join(Value::Int64(whole(&a.1).min(whole(&b.1)))),
        ("$skip", "$skip") => Rewrite::Join(Value::Int64(whole(&a.1).saturating_add(whole(&b.1)))),
        ("$sort", "$match") => Rewrite::Swap,
        (name, "$match") => {
            let filter = b.1.as_document().filter(|filter| pushdown::affords(filter, left));
            let split = filter.and_then(|filter| pushdown::split(name, &a.1, filter, ctx));
            split.map_or(Rewrite::None, |(ahead, rest)| Rewrite::Ahead(ahead, rest))
        }
        _ => Rewrite::None,
    }
}

fn both(a: &Value, b: &Value) -> Document {
    let empty = |v: &Value| v.as_document().is_some_and(Document::is_empty);
    match (a, b) {
        (a, Value::Document(b)) if empty(a) => b.clone(),
        (Value::Document(a), b) if empty(b) => a.clone(),
        _ => doc! {"$and": [a, b]},
    }
}

/// `$sort, $limit n` and `$sort, $skip m, $limit n` keep only so many documents while sorting.
fn fold_limits(stages: &mut [Written]) {
    for i in 0..stages.len() {
        if stages[i].0 != "$sort" {
            continue;
        }
        let Some(n) = limit_of(stages[i + 1..].iter().map(|s| (s.0, &s.1))) else { continue };
        if let Value::Document(d) = &stages[i].1 {
            stages[i] = ("$sort", Value::Document(sort::fold_limit(d, n)), None);
        }
    }
}

/// How many documents the front of a pipeline lets through: `$limit`, or `$skip` then `$limit`.
pub(super) fn limit_of<'a>(stages: impl Iterator<Item = (&'static str, &'a Value)>) -> Option<i64> {
    let mut skipped = 0i64;
    for (name, spec) in stages {
        let n = number::to_i64_exact(spec);
        match name {
            "$skip" => skipped = skipped.checked_add(n?)?,
            "$limit" => return skipped.checked_add(n?),
            _ => return None,
        }
    }
    None
}

/// The filter of the leading `$match` stages and how many there are.
pub(super) fn leading_match(p: &Pipeline) -> (Option<Document>, usize) {
    let specs: Vec<&Document> =
        p.stages.iter().take_while(|s| s.name == "$match").filter_map(|s| s.spec.as_document()).collect();
    let n = specs.len();
    let filter = match specs.as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        many => {
            Some(doc! {"$and": (Value::Array(many.iter().map(|d| Value::Document((*d).clone())).collect()))})
        }
    };
    (filter, n)
}

pub(super) fn leading_sort(p: &Pipeline) -> Option<(Document, Option<i64>)> {
    let s = p.stages.iter().find(|s| s.name != "$match")?;
    match (s.name, &s.spec) {
        ("$sort", Value::Document(d)) => Some(sort::pattern_and_limit(d)),
        _ => None,
    }
}

pub(super) fn without_leading_sort(p: &Pipeline) -> Pipeline {
    let mut stages = p.stages.clone();
    if let Some(at) = stages.iter().position(|s| s.name != "$match")
        && stages[at].name == "$sort"
    {
        // A folded limit is always followed by the $limit it came from.
        stages.remove(at);
    }
    Pipeline { stages }
}

pub(super) fn leading_limit(p: &Pipeline) -> Option<i64> {
    limit_of(p.stages.iter().skip_while(|s| s.name == "$match").map(|s| (s.name, &s.spec)))
}

/// The paths that can matter.
pub(super) fn needed_fields(p: &Pipeline) -> Option<Vec<String>> {
    let mut fields = BTreeSet::new();
    for s in &p.stages {
        let needs = match &s.kind {
            ParsedKind::Local(plan) => plan.needs(),
            ParsedKind::Facet(_) => Needs::Everything,
            ParsedKind::Host(h) => h.join.as_ref().map_or(Needs::Everything, |j| j.needs()),
        };
        match needs {
            Needs::Everything => return None,
            Needs::Passing(paths) => fields.extend(paths),
            Needs::Only(paths) => {
                fields.extend(paths);
                return Some(outermost(fields));
            }
        }
    }
    None
}

/// Those paths that are below no other.
fn outermost(paths: BTreeSet<String>) -> Vec<String> {
    let is_below = |path: &str| path.match_indices('.').any(|(at, _)| paths.contains(&path[..at]));
    paths.iter().filter(|path| !is_below(path)).cloned().collect()
}
