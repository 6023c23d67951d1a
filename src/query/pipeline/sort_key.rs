//! `{$meta: "sortKey"}`: the values that a document was sorted by, one for each field of the pattern.
//!
//! They are a function of the document as the sort saw it, so a pipeline computes them right behind the `$sort`, and what comes after reads
//! and removes the field as [`super::hidden`] says, up to the next `$sort`. A find projects the very documents that it sorts.
//!
//! ```text
//! [$sort {a: 1}, $project {k: {$meta: "sortKey"}}] = [$sort {a: 1}, $addFields {h: {$_internalSortKey: {a: 1}}}, $project {k: "$h"}]
//! ```

use super::fusion::stage_of;
use super::hidden::{Hidden, asking, carried, may_ask};
use crate::QueryContext;
use crate::matcher::Matcher;
use crate::projection::Projection;
use crate::sort::SortSpec;
use document::{Doc, DocBuf, Document, Result, Value, doc};

pub const META: &str = "sortKey";
pub const OPERATOR: &str = "$_internalSortKey";
const KEY: Hidden = Hidden { meta: META, field: "__internal_sortKey" };

/// A find's projection, with the keys of its sort where it asks for them.
///
/// # Errors
/// Those of [`Projection::parse`]; 40218 for keys where nothing is sorted.
pub fn projection(
    spec: Doc<'_>,
    sort: Option<&SortSpec>,
    filter: &Matcher,
    context: &QueryContext,
) -> Result<Projection> {
    let keyed = in_projection(spec, sort);
    Projection::parse(keyed.as_ref().map_or(spec, DocBuf::doc), filter, context)
}

fn in_projection(projection: Doc<'_>, sort: Option<&SortSpec>) -> Option<DocBuf> {
    let sort = sort.filter(|sort| may_ask(projection, META) && !sort.is_empty() && !sort.by_score())?;
    let key = doc! { (OPERATOR): (sort.to_document()) };
    let Value::Document(new) = with(&projection.to_document().into(), &key) else { return None };
    Some(new.to_doc_buf())
}

/// The expression with `key` in the place of each `{$meta: "sortKey"}`.
fn with(v: &Value, key: &Document) -> Value {
    match v {
        Value::Document(d) if d.len() == 1 && d.get_str("$meta") == Some(META) => key.clone().into(),
        Value::Document(d) if d.len() == 1 && d.contains_key("$literal") => v.clone(),
        Value::Document(d) => Value::Document(d.iter().map(|(k, v)| (k.to_string(), with(v, key))).collect()),
        Value::Array(items) => Value::Array(items.iter().map(|v| with(v, key)).collect()),
        other => other.clone(),
    }
}

/// The pipeline with the keys of each `$sort` that a stage behind it asks for.
pub(super) fn with_keys(stages: Vec<Value>) -> Vec<Value> {
    if asking(&stages, &[KEY]).is_empty() {
        return stages;
    }
    let is_sort = |v: &Value| stage_of(v).is_some_and(|(name, _)| name == "$sort");
    let mut out: Vec<Value> = Vec::with_capacity(stages.len() + 2);
    let mut rest = stages;
    while !rest.is_empty() {
        let end = rest.iter().skip(1).position(is_sort).map_or(rest.len(), |at| at + 1);
        let later = rest.split_off(end);
        match pattern(&rest[0]) {
            Some(pattern) if !asking(&rest[1..], &[KEY]).is_empty() => {
                let key = Document(vec![(KEY.field.to_string(), doc! { (OPERATOR): pattern }.into())]);
                out.push(rest[0].clone());
                out.push(doc! { "$addFields": key }.into());
                out.extend(carried(rest.split_off(1), &[KEY]));
            }
            _ => out.append(&mut rest),
        }
        rest = later;
    }
    out
}

/// The pattern of a `$sort` by fields.
fn pattern(stage: &Value) -> Option<Document> {
    let (_, spec) = stage_of(stage).filter(|(name, _)| *name == "$sort")?;
    spec.as_document().filter(|d| d.iter().all(|(_, v)| v.is_number())).cloned()
}
