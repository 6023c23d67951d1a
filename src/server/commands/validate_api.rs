//! `validateDBMetadata`: what in the catalog the stable API does not allow.

use super::crud::node;
use crate::auth::needs;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Document, Result, Value, bail, codes, doc};

pub const ROWS: &[Command] = &[Command::sync("validateDBMetadata", Roles::MONGOD, run)
    .needs(Needs::Asked(needs::validates_metadata))
    .help("Looks for what the stable API lacks.")];

/// Stages of version 1 that a view may have.
const STAGES: &[&str] = &[
    "$addFields",
    "$bucket",
    "$bucketAuto",
    "$count",
    "$densify",
    "$documents",
    "$facet",
    "$fill",
    "$geoNear",
    "$graphLookup",
    "$group",
    "$limit",
    "$lookup",
    "$match",
    "$project",
    "$redact",
    "$replaceRoot",
    "$replaceWith",
    "$sample",
    "$set",
    "$setWindowFields",
    "$skip",
    "$sort",
    "$sortByCount",
    "$unionWith",
    "$unset",
    "$unwind",
];

/// Stages of version 1 that a view cannot have.
const OTHER_STAGES: &[&str] = &["$changeStream", "$collStats", "$merge", "$out"];

/// Refuses what a request under `apiStrict` asks beside its command's name.
///
/// # Errors
/// APIStrictError (323) for a stage of an aggregation that version 1 has not.
pub fn check_strict(request: &Request<'_>) -> Result<()> {
    if request.command.name != "aggregate" {
        return Ok(());
    }
    let stages = request.get("pipeline").and_then(|v| v.as_array()).into_iter().flatten();
    let stages = stages.filter_map(|s| s.value().as_document()?.iter().next());
    for stage in stages.filter(|stage| stage.name().starts_with('$')) {
        let name = stage.name();
        if !STAGES.contains(&name) && !OTHER_STAGES.contains(&name) {
            bail!(API_STRICT_ERROR, "{}", stage_refused(name));
        }
        let expanded = stage.value().as_document().is_some_and(|d| d.get("showExpandedEvents").is_some());
        if name == "$changeStream" && expanded {
            bail!(
                API_STRICT_ERROR,
                "The 'showExpandedEvents' parameter to $changeStream is not supported in API Version 1"
            );
        }
    }
    Ok(())
}

fn run(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["db", "collection", "apiParameters"])?;
    let parameters = request.document("apiParameters")?.ok_or_else(|| request.missing("apiParameters"))?;
    if parameters.get_str("version") != Some("1") {
        bail!(API_VERSION_ERROR, "API version must be \"1\"");
    }
    let strict = parameters.get_bool("strict") == Some(true);
    let (db, collection) = (request.string("db")?, request.string("collection")?);
    let mut errors = Vec::new();
    for slot in node(context)?.namespaces.visible() {
        let (own_db, name) = storage::split_namespace(&slot.ns);
        if db.is_some_and(|d| d != own_db) || collection.is_some_and(|c| c != name) || !strict {
            continue;
        }
        let state = slot.read_unchecked();
        let view = state.view.iter().flat_map(|v| unstable_stages(&v.pipeline));
        let indexes =
            state.collection.iter().flat_map(|c| c.indexes()).filter_map(|i| unstable_index(i.spec()));
        errors.extend(view.chain(indexes).map(|text| described(&slot.ns, &text)));
    }
    // `hasMoreErrors` would say that not all fit; all do.
    reply.fields(&doc! { "apiVersionErrors": errors });
    Ok(())
}

fn described(ns: &str, text: &str) -> Document {
    doc! { "ns": ns, "code": codes::API_STRICT_ERROR, "codeName": "APIStrictError", "errmsg": text }
}

fn unstable_stages(pipeline: &[Value]) -> Vec<String> {
    let names = pipeline.iter().filter_map(|stage| stage.as_document()?.first().map(|(name, _)| name));
    names.filter(|name| !STAGES.contains(name)).map(stage_refused).collect()
}

fn stage_refused(name: &str) -> String {
    format!("stage {name} is not allowed with 'apiStrict: true' in API Version 1")
}

fn unstable_index(spec: &storage::IndexSpec) -> Option<String> {
    let d = spec.document();
    let special = d.get_document("key")?.iter().find_map(|(_, v)| match v.as_str() {
        Some(kind @ ("text" | "geoHaystack")) => Some(kind.to_string()),
        _ => None,
    });
    let option = ["sparse", "storageEngine"].iter().find(|o| d.get(o).is_some_and(Value::truthy));
    let what = special.or_else(|| option.map(|o| o.to_string()))?;
    Some(format!(
        "The index with name {} is not allowed in API version 1: {what}",
        d.get_str("name").unwrap_or("")
    ))
}
