//! A pipeline divided between shards and the node that merges.
//!
//! ```text
//! per-document stages        shards
//! $group                     shards give partials, the merger merges them
//! $sort                      shards sort and append $sortKey, the merger merges the streams by it
//! $limit n                   both
//! $skip n                    merger; with a $limit m after it shards stop at n + m
//! $count                     as a $group
//! $sample                    shards draw, the merger merges by the drawn numbers
//! anything else              merger, with all that follows
//! ```

use super::optimize::{limit_of, reparse};
use super::stages::sample::EMIT_KEY;
use super::{Context, Parsed, ParsedKind, Pipeline, group, sort};
use document::{Document, Result, Value, doc, number};

/// How the merger reads the shards' streams.
#[derive(Clone, Debug, PartialEq)]
pub enum MergeKind {
    /// In any order.
    Unordered,
    /// In the order of the shards' `$sortKey` fields, which are taken off ([`sort::take_sort_key`]). The pattern is given
    /// for explain.
    SortKey(Document),
}

/// The two parts. Both are ordinary pipelines; the shards' part is sent as [`Pipeline::to_array`] with `fromRouter`.
#[derive(Clone, Debug)]
pub struct Split {
    pub shards: Pipeline,
    pub merge: Pipeline,
    pub merge_kind: MergeKind,
    /// The pipeline reads nothing from shards (`$documents`).
    pub only_merge: bool,
}

/// A `$geoNear` on shards, whose documents the merger orders by their distances. One that writes none has it written for that, and taken
/// out again.
fn near_on_shards(s: &Parsed, spec: &Document, ctx: &Context, out: &mut Split) -> Result<()> {
    const OWN: &str = "__internal_mergedDistance";
    let given = spec.get_str("distanceField");
    match given {
        Some(_) => out.shards.stages.push(s.clone()),
        None => {
            let mut spec = spec.clone();
            spec.push("distanceField", OWN);
            out.shards.stages.extend(reparse(s.name, &spec.into(), ctx)?);
        }
    }
    let pattern = Document(vec![(given.unwrap_or(OWN).to_string(), Value::Int32(1))]);
    out.shards.stages.extend(reparse(sort::ADD_SORT_KEY, &pattern.clone().into(), ctx)?);
    if given.is_none() {
        out.shards.stages.extend(reparse("$unset", &OWN.into(), ctx)?);
    }
    out.merge_kind = MergeKind::SortKey(pattern);
    Ok(())
}

/// Stages that look at one document at a time and need no host.
const PER_DOCUMENT: [&str; 11] = [
    "$_internalInhibitOptimization",
    "$match",
    "$project",
    "$addFields",
    "$set",
    "$unset",
    "$unwind",
    "$replaceRoot",
    "$replaceWith",
    "$redact",
    crate::timeseries::UNPACK,
];

/// Divides an optimised pipeline.
pub fn split(p: &Pipeline, ctx: &Context) -> Result<Split> {
    let mut out = Split {
        shards: Pipeline::default(),
        merge: Pipeline::default(),
        merge_kind: MergeKind::Unordered,
        only_merge: false,
    };
    if p.first_stage_name() == Some("$documents") {
        out.merge = p.clone();
        out.only_merge = true;
        return Ok(out);
    }
    let mut rest = p.stages.as_slice();
    while let Some((s, after)) = rest.split_first() {
        let source = matches!(&s.kind, ParsedKind::Host(h) if h.is_source());
        if !source && !PER_DOCUMENT.contains(&s.name) {
            break;
        }
        out.shards.stages.push(s.clone());
        rest = after;
    }
    if let Some((s, after)) = rest.split_first() {
        divide(s, after, ctx, &mut out)?;
        out.merge.stages.extend_from_slice(after);
    }
    Ok(out)
}

/// The first stage that sees more than one document.
fn divide(s: &Parsed, after: &[Parsed], ctx: &Context, out: &mut Split) -> Result<()> {
    match (s.name, &s.spec) {
        ("$group", Value::Document(d)) => {
            let (shard, merge) = group::halves(d);
            out.shards.stages.extend(reparse("$group", &shard.into(), ctx)?);
            out.merge.stages.extend(reparse("$group", &merge.into(), ctx)?);
        }
        ("$count", Value::String(field)) => {
            let mut spec = doc! {"_id": (Value::Null)};
            spec.push(field.as_str(), doc! {"$sum": 1});
            let (shard, merge) = group::halves(&spec);
            out.shards.stages.extend(reparse("$group", &shard.into(), ctx)?);
            out.merge.stages.extend(reparse("$group", &merge.into(), ctx)?);
            out.merge.stages.extend(reparse("$project", &doc! {"_id": 0}.into(), ctx)?);
        }
        ("$sort", Value::Document(d)) => {
            let (pattern, _) = sort::pattern_and_limit(d);
            out.shards.stages.push(s.clone());
            if let Some(n) = limit_of(after.iter().map(|s| (s.name, &s.spec))) {
                out.shards.stages.extend(reparse("$limit", &Value::Int64(n), ctx)?);
            }
            out.shards.stages.extend(reparse(sort::ADD_SORT_KEY, &pattern.clone().into(), ctx)?);
            out.merge_kind = MergeKind::SortKey(pattern);
        }
        ("$geoNear", Value::Document(d)) => near_on_shards(s, d, ctx, out)?,
        ("$sample", Value::Document(d)) => {
            let mut shard = d.clone();
            shard.push(EMIT_KEY, true);
            out.shards.stages.extend(reparse("$sample", &shard.into(), ctx)?);
            let size = d.get("size").and_then(number::to_i64_saturating).unwrap_or(1).max(1);
            out.merge.stages.extend(reparse("$limit", &Value::Int64(size), ctx)?);
            out.merge_kind = MergeKind::SortKey(doc! {"$rand": {"$meta": "randVal"}});
        }
        ("$limit", _) => {
            out.shards.stages.push(s.clone());
            out.merge.stages.push(s.clone());
        }
        ("$skip", _) => {
            let all = [s].into_iter().chain(after).map(|s| (s.name, &s.spec));
            if let Some(n) = limit_of(all) {
                out.shards.stages.extend(reparse("$limit", &Value::Int64(n), ctx)?);
            }
            out.merge.stages.push(s.clone());
        }
        _ => out.merge.stages.push(s.clone()),
    }
    Ok(())
}
