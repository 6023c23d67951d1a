//! Cluster parameters: documents that all nodes of a set, or of a cluster, have alike.
//!
//! Kept in `config.clusterParameters`. In a cluster the router asks the config server, which writes its own and then every
//! shard's.

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Doc, Document, Result, Value, ValueRef, bail, doc};
use node::Node;
use node::auth::Action as A;
use node::local::LocalClient;
use sharding::config::ConfigServer;
use sharding::remote::{Target, majority};
use std::sync::Arc;

pub const ROWS: &[Command] = &[
    Command::sync("getClusterParameter", Roles::MONGOD, get)
        .needs(Needs::Cluster(&[A::GetClusterParameter]))
        .admin_only()
        .help("Values of cluster parameters."),
    Command::future("setClusterParameter", Roles::MONGOD, |c, r, reply| Box::pin(set(c, r, reply)))
        .needs(Needs::Cluster(&[A::SetClusterParameter]))
        .admin_only()
        .primary_only()
        .help("Sets a cluster parameter."),
    Command::future("_configsvrSetClusterParameter", Roles::MONGOD, |c, r, reply| {
        Box::pin(set_on_cluster(c, r, reply))
    })
    .admin_only()
    .primary_only()
    .help("Internal command of the config server."),
    Command::future("_shardsvrSetClusterParameter", Roles::MONGOD, |c, r, reply| {
        Box::pin(set_on_shard(c, r, reply))
    })
    .admin_only()
    .primary_only()
    .help("Internal command of a shard."),
];

const COLLECTION: &str = "config.clusterParameters";

/// One parameter.
struct Row {
    name: &'static str,
    default: fn() -> Document,
    test_only: bool,
    /// Nothing reads it and a node would have to behave otherwise: only its default may be set.
    fixed: bool,
}

const fn row(name: &'static str, default: fn() -> Document) -> Row {
    Row { name, default, test_only: false, fixed: false }
}

const TABLE: &[Row] = &[
    row("changeStreamOptions", || doc! { "preAndPostImages": { "expireAfterSeconds": "off" } }),
    row("configServerReadPreferenceForCatalogQueries", || doc! { "mustAlwaysUseNearest": false }),
    Row { fixed: true, ..row("defaultMaxTimeMS", || doc! { "readOperations": 0i64 }) },
    row("internalQueryCutoffForSampleFromRandomCursor", || doc! { "sampleCutoff": 0.05 }),
    row("pauseMigrationsDuringMultiUpdates", || doc! { "enabled": false }),
    row("querySettings", || doc! { "settingsArray": [] }),
    row("shardedClusterCardinalityForDirectConns", || doc! { "hasTwoOrMoreShards": false }),
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

/// `{getClusterParameter: name | [names] | "*"}`.
fn get(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let node = node(context)?;
    let rows: Vec<&Row> = match request.target() {
        ValueRef::String("*") => {
            TABLE.iter().filter(|row| context.service.parameters.test_commands() || !row.test_only).collect()
        }
        ValueRef::String(name) => vec![find(context, name)?],
        ValueRef::Array(names) => {
            let names = names.iter().map(|e| match e.value() {
                ValueRef::String(name) => find(context, name),
                other => {
                    Err(request.wrong_type(&format!("getClusterParameter.{}", e.name()), other, "string"))
                }
            });
            names.collect::<Result<Vec<_>>>()?
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

/// What the client asks for: `{name: {field: value, ..}}`.
fn asked<'a>(request: &Request<'a>) -> Result<(&'a str, Doc<'a>)> {
    let target = request.target();
    let whole =
        target.as_document().ok_or_else(|| request.wrong_type("setClusterParameter", target, "object"));
    let mut fields = whole?.iter();
    let Some(first) = fields.next().filter(|_| fields.next().is_none()) else {
        bail!(INVALID_OPTIONS, "setClusterParameter only supports setting exactly one parameter")
    };
    match first.value() {
        ValueRef::Document(d) => Ok((first.name(), d)),
        _ => bail!(ILLEGAL_OPERATION, "Cluster parameter value must be an object"),
    }
}

/// The parameter as it will be stored, its fields of the default's types.
fn stored(context: &Context, node: &Node, name: &str, given: Doc<'_>) -> Result<Document> {
    let row = find(context, name)?;
    let default = (row.default)();
    let mut d = doc! { "_id": row.name, "clusterParameterTime": node.cluster_time() };
    let mut fields = default.clone();
    for e in given.iter().filter(|e| !matches!(e.name(), "_id" | "clusterParameterTime")) {
        let Some(slot) = fields.get_mut(e.name()) else {
            bail!(IDL_UNKNOWN_FIELD, "BSON field '{name}.{}' is an unknown field.", e.name())
        };
        *slot = typed(&format!("{name}.{}", e.name()), slot, e.value())?;
    }
    if name == "changeStreamOptions"
        && let Some(expiry) = fields.get_path("preAndPostImages.expireAfterSeconds")
        && expiry.as_str() != Some("off")
        && expiry.as_i64().is_none_or(|n| n <= 0)
    {
        bail!(BAD_VALUE, "Expected a positive integer for 'expireAfterSeconds' field")
    }
    if row.fixed && fields != default {
        bail!(NOT_IMPLEMENTED, "cluster parameter '{name}' is known but not implemented");
    }
    d.0.extend(fields);
    Ok(d)
}

fn typed(path: &str, default: &Value, given: ValueRef<'_>) -> Result<Value> {
    let value = match (default, given) {
        (Value::Int32(_), v) if v.is_number() => {
            v.as_i64().and_then(|n| i32::try_from(n).ok()).map(Value::Int32)
        }
        (Value::Int64(_), v) if v.is_number() => v.as_i64().map(Value::Int64),
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

async fn set_here(context: &Context, request: &Request<'_>) -> Result<()> {
    let (name, given) = asked(request)?;
    let node = node(context)?;
    let d = stored(context, node, name, given)?;
    LocalClient::new(node.clone()).put(COLLECTION, &d).await
}

async fn set(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    if asked(request)?.0 == "querySettings" {
        bail!(NO_SUCH_KEY, "querySettings can only be set by setQuerySettings");
    }
    if matches!(context.service.role, Roles::SHARD | Roles::CONFIG) {
        bail!(NOT_IMPLEMENTED, "setClusterParameter can only run on mongos in sharded clusters");
    }
    set_here(context, request).await
}

async fn set_on_shard(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    context.service.members.shard()?.require_identity()?;
    set_here(context, request).await
}

/// The config server's own first: what it refuses no shard gets to see.
async fn set_on_cluster(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let config = context.service.members.config("_configsvrSetClusterParameter")?;
    set_here(context, request).await?;
    set_on_shards(config, &request.target().to_value()).await
}

/// Has every shard set what the config server has set: `{name: {...}}`.
///
/// # Errors
/// Those of the first shard that does not; the same again reaches the others.
pub async fn set_on_shards(config: &ConfigServer, value: &Value) -> Result<()> {
    for shard in config.catalog().shards() {
        let command = doc! { "_shardsvrSetClusterParameter": value.clone(), "writeConcern": majority() };
        config.remote.admin(Target::Host(&shard.host), command).await?;
    }
    Ok(())
}
