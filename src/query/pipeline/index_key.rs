//! `{$meta: "indexKey"}`: the key of the index entry by which a document was found.
//!
//! The query puts it into a field of the document that has a name of the server's own, and `{$meta: "indexKey"}` reads that field. A
//! pipeline asks the query for it with a stage of this form, behind the stages that choose and order documents; what comes
//! after reads and removes the field as [`super::hidden`] says.
//!
//! ```text
//! [$match, $sort, $project {k: {$meta: "indexKey"}}]
//!     = [$match, $sort, $addFields {h: {$meta: "indexKey"}}, $project {k: "$h"}]
//! ```

use super::fusion::stage_of;
use super::hidden::{Hidden, asking, asks_for, carried, may_ask};
use super::{Pipeline, host::Role, table};
use document::{Doc, Value, doc};

pub const META: &str = "indexKey";
pub const FIELD: &str = "__internal_indexKey";
const KEY: Hidden = Hidden { meta: META, field: FIELD };

/// Whether a projection asks for it.
pub fn is_asked_by(projection: Doc<'_>) -> bool {
    may_ask(projection, META) && asks_for(&Value::Document(projection.to_document()), &[KEY])
}

/// A pipeline that asks the query for the key where one of its stages reads it: behind what the query does of the pipeline, which
/// on a router is no more than the filter.
pub(super) fn with_key(stages: Vec<Value>, on_router: bool) -> Vec<Value> {
    let names = || stages.iter().map(|stage| stage_of(stage).map_or("", |(name, _)| name));
    let is_source =
        |name| table::find(name).is_some_and(|row| matches!(row.kind, table::Kind::Host(Role::Source, _)));
    if asking(&stages, &[KEY]).is_empty() || names().next().is_some_and(is_source) {
        return stages;
    }
    let mut at = names().take_while(|name| *name == "$match").count();
    for name in ["$sort", "$limit"].into_iter().filter(|_| !on_router) {
        at += usize::from(names().nth(at) == Some(name));
    }
    let (front, rest) = stages.split_at(at);
    let asked = Value::Document(doc! { "$addFields": { FIELD: { "$meta": META } } });
    front.iter().cloned().chain([asked]).chain(carried(rest.to_vec(), &[KEY])).collect()
}

/// What is behind the stage that asks for the key, where the pipeline begins with it.
pub(super) fn behind(pipeline: &Pipeline) -> Option<Pipeline> {
    let (first, rest) = pipeline.stages.split_first()?;
    let spec = first.spec.as_document().filter(|_| first.name == "$addFields")?;
    (spec.len() == 1 && spec.get_document(FIELD).is_some_and(|d| d.get_str("$meta") == Some(META)))
        .then(|| Pipeline { stages: rest.to_vec() })
}
