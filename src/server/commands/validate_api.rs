//! What the stable API does not allow: of a request under `apiStrict`, and in the catalog (`validateDBMetadata`).

use super::crud::node;
use crate::auth::needs;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Doc, Document, Result, Value, ValueRef, bail, codes, doc};
use node::metadata_errors::MetadataErrors;

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

/// Operators of expressions, accumulators among them, that version 1 has not.
const UNSTABLE_OPERATORS: &[&str] =
    &["$_internalJsCall", "$_internalJsEmit", "$accumulator", "$function", "$median", "$percentile"];

/// Fields that version 1 has not, of commands that it has.
pub mod unstable {
    pub const FIND: &[&str] = &[
        "awaitData",
        "max",
        "min",
        "noCursorTimeout",
        "oplogReplay",
        "returnKey",
        "showRecordId",
        "tailable",
    ];
    pub const CREATE: &[&str] =
        &["autoIndexId", "capped", "indexOptionDefaults", "max", "size", "storageEngine"];
    pub const CREATE_INDEXES: &[&str] =
        &["indexes.background", "indexes.bucketSize", "indexes.sparse", "indexes.storageEngine"];
    pub const UPDATE: &[&str] = &["updates.upsertSupplied"];
}

/// Refuses a command that the version has not.
///
/// # Errors
/// APIStrictError (323).
pub fn check_name(command: &Command, version: &str) -> Result<()> {
    if !(if version == "2" { command.second_api } else { command.stable_api }) {
        bail!(
            API_STRICT_ERROR,
            "Provided apiStrict:true, but the command {} is not in API Version {version}. Information on supported \
             commands and migrations in API Version {version} can be found at \
             https://dochub.mongodb.org/core/manual-versioned-api",
            command.name
        );
    }
    Ok(())
}

/// Refuses what a request under `apiStrict` asks beside its command's name; of an explanation, what it explains.
///
/// # Errors
/// APIStrictError (323) for a field, a stage or operator or a kind of index that version 1 has not.
pub fn check_strict(context: &Context, request: &Request<'_>) -> Result<()> {
    if request.command.name == "explain"
        && let Some(body) = request.target().as_document()
        && let Some((_, command)) = context.service.commands().find(first_name(body).as_bytes())
        && command.name != "explain"
    {
        check_name(command, "1")?;
        return check_asked(&explained(request, command, body));
    }
    check_asked(request)
}

fn first_name(body: Doc<'_>) -> &str {
    body.iter().next().map_or("", |e| e.name())
}

/// What an explanation is asked for, as a request of its own.
fn explained<'a>(request: &Request<'a>, command: &'static Command, body: Doc<'a>) -> Request<'a> {
    let node = node::request::Request { body, sequences: &[], ..request.node };
    Request { command, name: command.name, node, exhaust_allowed: false, comment: None }
}

fn check_asked(request: &Request<'_>) -> Result<()> {
    for field in request.command.unstable_fields {
        let given = match field.split_once('.') {
            None => request.body.iter().skip(1).any(|e| e.name() == *field),
            Some((list, field)) => request.documents(list).any(|d| d.get(field).is_some()),
        };
        if given {
            let name = request.command.name;
            bail!(API_STRICT_ERROR, "BSON field '{name}.{field}' is not allowed with apiStrict:true.");
        }
    }
    for index in request.documents("indexes").filter(|_| request.command.name == "createIndexes") {
        if index.get_document("key").is_some_and(has_special_kind) {
            bail!(API_STRICT_ERROR, "{}", index_refused(index.get_str("name").unwrap_or_default()));
        }
    }
    check_operators(request)?;
    if request.command.name != "aggregate" {
        return Ok(());
    }
    if request.get("explain").is_some_and(|v| v.truthy()) {
        bail!(API_STRICT_ERROR, "The 'explain' field of aggregate is not supported in API Version 1");
    }
    request.get("pipeline").and_then(|v| v.as_array()).map_or(Ok(()), check_stages)
}

/// Looks where a command has expressions: everywhere in pipelines and projections, and in filters under `$expr`.
fn check_operators(request: &Request<'_>) -> Result<()> {
    match request.command.name {
        "aggregate" | "find" | "count" | "distinct" | "findAndModify" => check_fields(request.body),
        "update" => request.documents("updates").try_for_each(check_fields),
        "delete" => request.documents("deletes").try_for_each(check_fields),
        _ => Ok(()),
    }
}

fn check_fields(fields: Doc<'_>) -> Result<()> {
    for e in fields {
        match (e.name(), e.value()) {
            ("pipeline" | "projection" | "fields", v) => check_expressions(v)?,
            ("update" | "u", v @ ValueRef::Array(_)) => check_expressions(v)?,
            ("filter" | "query" | "q", v) => check_filter(v)?,
            _ => {}
        }
    }
    Ok(())
}

/// The values of an array or document, with their names.
fn inside(v: ValueRef<'_>) -> Option<Doc<'_>> {
    v.as_document().or_else(|| v.as_array())
}

fn check_filter(filter: ValueRef<'_>) -> Result<()> {
    let mut open: Vec<Doc<'_>> = inside(filter).into_iter().collect();
    while let Some(d) = open.pop() {
        for e in d {
            match e.name() {
                "$expr" => check_expressions(e.value())?,
                "$and" | "$or" | "$nor" => open.extend(inside(e.value())),
                // The conditions in the list of one of these.
                name if name.bytes().all(|b| b.is_ascii_digit()) => open.extend(inside(e.value())),
                _ => {}
            }
        }
    }
    Ok(())
}

fn check_expressions(v: ValueRef<'_>) -> Result<()> {
    let mut open: Vec<Doc<'_>> = inside(v).into_iter().collect();
    while let Some(d) = open.pop() {
        for e in d {
            if UNSTABLE_OPERATORS.contains(&e.name()) {
                bail!(API_STRICT_ERROR, "{}", operator_refused(e.name()));
            }
            if e.name() != "$literal" {
                open.extend(inside(e.value()));
            }
        }
    }
    Ok(())
}

/// The same of stages, and of the pipelines in them.
fn check_stages(stages: Doc<'_>) -> Result<()> {
    let stages = stages.iter().filter_map(|s| s.value().as_document()?.iter().next());
    for stage in stages.filter(|stage| stage.name().starts_with('$')) {
        let name = stage.name();
        if !STAGES.contains(&name) && !OTHER_STAGES.contains(&name) {
            bail!(API_STRICT_ERROR, "{}", operator_refused(name));
        }
        let Some(argument) = stage.value().as_document() else { continue };
        if name == "$changeStream" && argument.get("showExpandedEvents").is_some() {
            bail!(
                API_STRICT_ERROR,
                "The 'showExpandedEvents' parameter to $changeStream is not supported in API Version 1"
            );
        }
        let option = argument.iter().map(|e| e.name()).find(|option| *option != "count");
        if name == "$collStats"
            && let Some(option) = option
        {
            bail!(
                API_STRICT_ERROR,
                "The '{option}' argument to $collStats is not supported in API Version 1"
            );
        }
        let nested = argument.iter().filter(|e| match name {
            "$lookup" | "$unionWith" => e.name() == "pipeline",
            _ => name == "$facet",
        });
        for pipeline in nested.filter_map(|e| e.value().as_array()) {
            check_stages(pipeline)?;
        }
    }
    Ok(())
}

fn run(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["db", "collection", "apiParameters"])?;
    if context.operation.write_concern.given {
        bail!(INVALID_OPTIONS, "Command does not support writeConcern");
    }
    let parameters = request.document("apiParameters")?.ok_or_else(|| request.missing("apiParameters"))?;
    let strict = is_strict(request, parameters)?;
    let (db, collection) = (request.string("db")?, request.string("collection")?);
    check_names(db, collection)?;
    let mut errors = MetadataErrors::default();
    for slot in node(context)?.namespaces.visible() {
        let (own_db, name) = storage::split_namespace(&slot.ns);
        if db.is_some_and(|d| d != own_db) || collection.is_some_and(|c| c != name) || !strict {
            continue;
        }
        let state = slot.read_unchecked();
        let view = state.view.iter().flat_map(|v| unstable_stages(&v.pipeline));
        let indexes =
            state.collection.iter().flat_map(|c| c.indexes()).filter_map(|i| unstable_index(i.spec()));
        view.chain(indexes).for_each(|text| errors.add(described(&slot.ns, &text).into()));
    }
    reply.fields(&errors.reply());
    Ok(())
}

/// Whether the parameters ask for the errors of version 1, the only one there is.
fn is_strict(request: &Request<'_>, parameters: Doc<'_>) -> Result<bool> {
    let (mut version, mut strict) = (None, false);
    for e in parameters {
        let wrong =
            |expected| request.wrong_type(&format!("apiParameters.{}", e.name()), e.value(), expected);
        match (e.name(), e.value()) {
            ("version", ValueRef::String(v)) => version = Some(v),
            ("version", ValueRef::Null | ValueRef::Undefined) => {}
            ("version", _) => return Err(wrong("string")),
            ("strict", ValueRef::Boolean(b)) => strict = b,
            ("deprecationErrors", ValueRef::Boolean(_)) => {}
            ("strict" | "deprecationErrors", _) => return Err(wrong("bool")),
            (name, _) => bail!(
                IDL_UNKNOWN_FIELD,
                "BSON field 'validateDBMetadata.apiParameters.{name}' is an unknown field."
            ),
        }
    }
    let version = version.ok_or_else(|| request.missing("apiParameters.version"))?;
    Ok(strict && version == "1")
}

fn check_names(db: Option<&str>, collection: Option<&str>) -> Result<()> {
    if let Some(db) = db {
        if db.is_empty() {
            bail!(28539, "db name is empty");
        }
        if db.contains(['.', '\0']) || db.len() > 63 {
            bail!(INVALID_NAMESPACE, "Invalid db name: '{db}'");
        }
        if db.contains([' ', '/', '\\', '"']) {
            bail!(13280, "invalid db name: {db}");
        }
    }
    match collection {
        Some(c) if c.is_empty() || c.starts_with('.') || c.contains('\0') => {
            bail!(INVALID_NAMESPACE, "Invalid collection name: '{c}'")
        }
        _ => Ok(()),
    }
}

fn described(ns: &str, text: &str) -> Document {
    doc! { "ns": ns, "code": codes::API_STRICT_ERROR, "codeName": "APIStrictError", "errmsg": text }
}

fn unstable_stages(pipeline: &[Value]) -> Vec<String> {
    let names = pipeline.iter().filter_map(|stage| stage.as_document()?.first().map(|(name, _)| name));
    names.filter(|name| !STAGES.contains(name)).map(operator_refused).collect()
}

fn operator_refused(name: &str) -> String {
    format!("{name} is not allowed with 'apiStrict: true' in API Version 1")
}

fn unstable_index(spec: &storage::IndexSpec) -> Option<String> {
    let d = spec.document();
    let special = has_special_kind(d.get_document("key")?.to_doc_buf().doc());
    let option = ["sparse", "storageEngine"].iter().any(|o| d.get(o).is_some_and(Value::truthy));
    (special || option).then(|| index_refused(d.get_str("name").unwrap_or_default()))
}

/// Whether the key is one of an index that version 1 has not.
fn has_special_kind(key: Doc<'_>) -> bool {
    key.iter().any(|e| matches!(e.value().as_str(), Some("text" | "geoHaystack")))
}

fn index_refused(name: &str) -> String {
    format!("The index with name {name} is not allowed in API version 1.")
}
