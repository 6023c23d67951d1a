//! Cluster parameters: documents that all nodes of a set, or of a cluster, have alike.
//!
//! Kept in `config.clusterParameters`. In a cluster the router asks the config server, which keeps its own and has every shard set
//! them ([`sharding::config::ConfigServer::set_cluster_parameter`]).

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Doc, Document, Result, Value, ValueRef, bail, doc};
use node::Node;
use node::auth::Action as A;
use node::cardinality;
use node::cluster_parameters::COLLECTION;
use node::local::LocalClient;
use std::sync::Arc;

pub const ROWS: &[Command] = &[
    Command::sync("getClusterParameter", Roles::MONGOD, get)
        .needs(Needs::Cluster(&[A::GetClusterParameter]))
        .admin_only()
        .help("Values of cluster parameters."),
    Command::future("setClusterParameter", Roles::MONGOD, |c, r, reply| Box::pin(set(c, r, reply)))
        .needs(Needs::Cluster(&[A::SetClusterParameter]))
        .admin_only()
        .takes_no_write_concern()
        .primary_only()
        .help("Sets a cluster parameter."),
    Command::future("_configsvrSetClusterParameter", Roles::MONGOD, |c, r, reply| {
        Box::pin(set_on_cluster(c, r, reply))
    })
    .admin_only()
    .primary_only()
    .help("Internal command of the config server."),
];

/// One parameter.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    default: fn() -> Document,
    pub(crate) test_only: bool,
    /// False: it is kept and shown; what it tunes does not exist here, or does not depend on it.
    pub(crate) effective: bool,
    /// Reads what a client gives as the fields to keep.
    read: fn(&Row, Doc<'_>) -> Result<Document>,
}

const fn row(name: &'static str, default: fn() -> Document) -> Row {
    Row { name, default, test_only: false, effective: true, read: read_by_default }
}
const fn inert(name: &'static str, default: fn() -> Document) -> Row {
    Row { effective: false, ..row(name, default) }
}

pub(crate) const TABLE: &[Row] = &[
    Row {
        read: read_change_stream_options,
        ..row("changeStreamOptions", || doc! { "preAndPostImages": { "expireAfterSeconds": "off" } })
    },
    // It concerns change collections, which only serverless deployments have: others keep and show it.
    Row { read: read_change_streams, ..inert("changeStreams", || doc! { "expireAfterSeconds": 3600i64 }) },
    inert("configServerReadPreferenceForCatalogQueries", || doc! { "mustAlwaysUseNearest": false }),
    Row { read: read_default_time, ..row("defaultMaxTimeMS", || doc! { "readOperations": 0i64 }) },
    inert("internalQueryCutoffForSampleFromRandomCursor", || doc! { "sampleCutoff": 0.05 }),
    row("pauseMigrationsDuringMultiUpdates", || doc! { "enabled": false }),
    row("querySettings", || doc! { "settingsArray": [] }),
    row(cardinality::PARAMETER, || doc! { (cardinality::FIELD): false }),
    Row { test_only: true, ..row("testBoolClusterParameter", || doc! { "boolData": false }) },
    Row { test_only: true, ..row("testIntClusterParameter", || doc! { "intData": 16 }) },
    Row { test_only: true, ..row("testStrClusterParameter", || doc! { "strData": "off" }) },
];

fn find(context: &Context, name: &str) -> Result<&'static Row> {
    let tests = context.service.parameters.test_commands();
    match TABLE.iter().find(|row| row.name == name && (tests || !row.test_only)) {
        Some(row) => Ok(row),
        None => bail!(NO_SUCH_KEY, "Unknown server parameter: {name}"),
    }
}

fn current(node: &Arc<Node>, row: &Row) -> Result<Document> {
    let stored = LocalClient::new(node.clone()).find_one(COLLECTION, &doc! { "_id": row.name })?;
    Ok(stored.unwrap_or_else(|| {
        let mut d = doc! { "_id": row.name };
        d.0.extend((row.default)());
        d
    }))
}

/// `{getClusterParameter: name | [names] | "*"}`. The types of all names are checked before the first is looked up.
fn get(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let node = node(context)?;
    let rows: Vec<&Row> = match request.target() {
        ValueRef::String("*") => {
            TABLE.iter().filter(|row| context.service.parameters.test_commands() || !row.test_only).collect()
        }
        ValueRef::String(name) => vec![find(context, name)?],
        ValueRef::Array(names) => {
            let names = names.iter().map(|e| match e.value() {
                ValueRef::String(name) => Ok(name),
                other => {
                    Err(request.wrong_type(&format!("getClusterParameter.{}", e.name()), other, "string"))
                }
            });
            let names = names.collect::<Result<Vec<&str>>>()?;
            names.into_iter().map(|name| find(context, name)).collect::<Result<Vec<_>>>()?
        }
        other => {
            return Err(request.wrong_type("getClusterParameter", other, "[string, array]"));
        }
    };
    if rows.is_empty() {
        bail!(BAD_VALUE, "Must supply at least one cluster server parameter name to getClusterParameter");
    }
    let shown = rows.into_iter().map(|row| current(node, row)).collect::<Result<Vec<Document>>>()?;
    reply.fields(&doc! { "clusterParameters": shown });
    Ok(())
}

/// The one parameter that the client names, with its value: `{name: value}`.
fn asked<'a>(request: &Request<'a>) -> Result<(&'a str, ValueRef<'a>)> {
    let whole = match request.target() {
        ValueRef::Document(whole) => whole,
        ValueRef::Null | ValueRef::Undefined => return Err(request.missing("setClusterParameter")),
        other => return Err(request.wrong_type("setClusterParameter", other, "object")),
    };
    let mut fields = whole.iter();
    let first = fields.next();
    if fields.next().is_some() {
        bail!(INVALID_OPTIONS, "setClusterParameter only supports setting exactly one parameter")
    }
    // An empty document names the parameter "", which nobody knows.
    Ok(first.map_or(("", ValueRef::Null), |e| (e.name(), e.value())))
}

/// The parameter as it will be stored, its fields of the default's types.
fn stored(context: &Context, node: &Node, name: &str, given: ValueRef<'_>) -> Result<Document> {
    let row = find(context, name)?;
    let ValueRef::Document(given) = given else {
        bail!(BAD_VALUE, "Cluster parameter '{name}' must be an object, not {}", given.type_name());
    };
    if let Some(e) = given.iter().find(|e| e.name().starts_with('$')) {
        let field = e.name();
        bail!(
            DOLLAR_PREFIXED_FIELD_NAME,
            "The dollar ($) prefixed field '{field}' in '{name}.{field}' is not valid for storage."
        );
    }
    let fields = (row.read)(row, given)?;
    let mut d = doc! { "_id": row.name, "clusterParameterTime": node.cluster_time() };
    d.0.extend(fields);
    Ok(d)
}

/// Each field of its default's type; one that is absent or null has its default.
fn read_by_default(row: &Row, given: Doc<'_>) -> Result<Document> {
    let mut fields = (row.default)();
    for e in given.iter().filter(|e| !matches!(e.name(), "_id" | "clusterParameterTime")) {
        let (name, field) = (row.name, e.name());
        let Some(slot) = fields.get_mut(field) else {
            bail!(IDL_UNKNOWN_FIELD, "BSON field '{name}.{field}' is an unknown field.")
        };
        if !matches!(e.value(), ValueRef::Null | ValueRef::Undefined) {
            *slot = typed(&format!("{name}.{field}"), slot, e.value())?;
        }
    }
    Ok(fields)
}

/// `{expireAfterSeconds: seconds}`.
fn read_change_streams(row: &Row, given: Doc<'_>) -> Result<Document> {
    let fields = read_by_default(row, given)?;
    if fields.get_i64("expireAfterSeconds").is_none_or(|seconds| seconds <= 0) {
        bail!(BAD_VALUE, "Expected a positive integer for 'expireAfterSeconds' field")
    }
    Ok(fields)
}

/// `{readOperations: milliseconds}`, from 0, which is no limit.
fn read_default_time(row: &Row, given: Doc<'_>) -> Result<Document> {
    let fields = read_by_default(row, given)?;
    match fields.get_i64("readOperations").unwrap_or(0) {
        ms @ i64::MIN..0 => bail!(
            BAD_VALUE,
            "BSON field 'readOperations' value must be greater than or equal to 0, actual value '{ms}'"
        ),
        _ => Ok(fields),
    }
}

/// `{preAndPostImages: {expireAfterSeconds: "off" | seconds}}`, of which nothing may be missing. Whatever is wrong is a BadValue.
fn read_change_stream_options(row: &Row, given: Doc<'_>) -> Result<Document> {
    let unknown =
        given.iter().find(|e| !matches!(e.name(), "preAndPostImages" | "_id" | "clusterParameterTime"));
    if let Some(e) = unknown {
        bail!(BAD_VALUE, "BSON field '{}.{}' is an unknown field.", row.name, e.name());
    }
    let images = match given.get("preAndPostImages") {
        Some(ValueRef::Document(images)) => images,
        Some(other) => bail!(
            BAD_VALUE,
            "BSON field '{}.preAndPostImages' is the wrong type '{}', expected type 'object'",
            row.name,
            other.type_name()
        ),
        None => bail!(BAD_VALUE, "Expected 'preAndPostImages' in the value of '{}'", row.name),
    };
    if let Some(e) = images.iter().find(|e| e.name() != "expireAfterSeconds") {
        bail!(BAD_VALUE, "BSON field '{}.preAndPostImages.{}' is an unknown field.", row.name, e.name());
    }
    let expiry = match images.get("expireAfterSeconds") {
        Some(ValueRef::String("off")) => Value::from("off"),
        Some(ValueRef::String(_)) => {
            bail!(BAD_VALUE, "Invalid string for 'expireAfterSeconds', expected 'off'")
        }
        Some(v) => match v.as_i64().filter(|seconds| *seconds > 0) {
            Some(seconds) => Value::Int64(seconds),
            None => bail!(BAD_VALUE, "Expected a positive integer for 'expireAfterSeconds' field"),
        },
        None => bail!(BAD_VALUE, "Expected 'expireAfterSeconds' in '{}.preAndPostImages'", row.name),
    };
    Ok(doc! { "preAndPostImages": { "expireAfterSeconds": expiry } })
}

fn typed(path: &str, default: &Value, given: ValueRef<'_>) -> Result<Value> {
    let value = match (default, given) {
        (Value::Int32(_), v) if v.is_number() => {
            v.as_i64().and_then(|n| i32::try_from(n).ok()).map(Value::Int32)
        }
        (Value::Int64(_), v) if v.is_number() => node::shape::to_long(v).map(Value::Int64),
        (Value::Double(_), v) if v.is_number() => v.as_f64().map(Value::Double),
        (Value::Boolean(_), ValueRef::Boolean(b)) => Some(Value::Boolean(b)),
        (Value::String(_), ValueRef::String(s)) => Some(Value::from(s)),
        (Value::Document(_), ValueRef::Document(d)) => Some(Value::Document(d.to_document())),
        (Value::Array(_), v @ ValueRef::Array(_)) => Some(v.to_value()),
        _ => None,
    };
    match value {
        Some(value) => Ok(value),
        None => bail!(
            TYPE_MISMATCH,
            "BSON field '{path}' is the wrong type '{}', expected type '{}'",
            given.type_name(),
            default.type_name()
        ),
    }
}

/// The parameter of the request as it will be stored, set now.
fn asked_for(context: &Context, request: &Request<'_>) -> Result<Document> {
    let (name, given) = asked(request)?;
    let d = stored(context, node(context)?, name, given)?;
    if !find(context, name)?.effective {
        let attr = doc! { "parameter": name };
        let text = "This cluster parameter is kept and has no effect";
        context.service.log.warning("CONTROL", 9_000_002, &context.connection.name(), text, attr);
    }
    Ok(d)
}

async fn set(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    if asked(request)?.0 == "querySettings" {
        bail!(NO_SUCH_KEY, "querySettings can only be set by setQuerySettings");
    }
    if matches!(context.service.role, Roles::SHARD | Roles::CONFIG) {
        bail!(NOT_IMPLEMENTED, "setClusterParameter can only run on mongos in sharded clusters");
    }
    LocalClient::new(node(context)?.clone()).put(COLLECTION, &asked_for(context, request)?).await
}

/// The config server's own first: what it refuses no shard gets to see.
async fn set_on_cluster(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let config = context.service.members.config("_configsvrSetClusterParameter")?;
    config.set_cluster_parameter(&asked_for(context, request)?).await
}
