//! setQuerySettings and removeQuerySettings.
//!
//! The settings of a cluster are the config server's, to which routers hand these commands; it tells the shards. A command
//! reads what there is, changes it and writes it back, so there is one at a time.

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Doc, Document, Result, Value, ValueRef, bail, doc};
use node::auth::Action as A;
use node::cluster_parameters::COLLECTION;
use node::local::LocalClient;
use node::query_settings::{PARAMETER, Setting};
use query::shape::query_hash;
use tokio::sync::Mutex;

pub const ROWS: &[Command] = &[
    Command::future("setQuerySettings", Roles::MONGOD, |c, r, reply| Box::pin(set(c, r, reply)))
        .needs(Needs::Cluster(&[A::QuerySettings]))
        .admin_only()
        .primary_only()
        .help("Sets what is wanted of the queries of a shape."),
    Command::future("removeQuerySettings", Roles::MONGOD, |c, r, reply| Box::pin(remove(c, r, reply)))
        .needs(Needs::Cluster(&[A::QuerySettings]))
        .admin_only()
        .primary_only()
        .help("Removes what was wanted of the queries of a shape."),
];

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// A shape: its hash, and a query of it where one was given.
fn named(request: &Request<'_>) -> Result<(String, Option<Document>)> {
    let name = request.command.name;
    match request.target() {
        ValueRef::String("") => bail!(INVALID_LENGTH, "a query shape hash has 64 hexadecimal digits"),
        ValueRef::String(hash) => match hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()) {
            true => Ok((hash.to_uppercase(), None)),
            // What is no hash can name nothing that was set.
            false if name == "removeQuerySettings" && hash.len() != 64 => {
                bail!(INVALID_LENGTH, "a query shape hash has 64 hexadecimal digits, not '{hash}'")
            }
            false => bail!(BAD_VALUE, "a query shape hash has 64 hexadecimal digits, not '{hash}'"),
        },
        ValueRef::Document(query) => {
            let hash = hash_of(name, query)?;
            if name == "setQuerySettings" {
                check_can_have_settings(query)?;
            }
            Ok((hash, Some(query.to_document())))
        }
        v => Err(request.wrong_type(name, v, "[string, object]")),
    }
}

fn hash_of(name: &str, query: Doc<'_>) -> Result<String> {
    let command = query.iter().next().map_or("", |e| e.name());
    if !matches!(command, "find" | "distinct" | "aggregate") {
        bail!(7746402, "QueryShape can not be computed for command: {command}");
    }
    let db = match query.get("$db") {
        Some(ValueRef::String("")) => bail!(INVALID_NAMESPACE, "Invalid database name: ''"),
        Some(ValueRef::String(db)) => db,
        None | Some(ValueRef::Null) => {
            bail!(IDL_FAILED_TO_PARSE, "BSON field '{name}.$db' is missing but a required field")
        }
        Some(v) => bail!(
            TYPE_MISMATCH,
            "BSON field '{name}.$db' is the wrong type '{}', expected type 'string'",
            v.type_name()
        ),
    };
    match query_hash(db, query) {
        Some(hash) => Ok(hash),
        None => bail!(7746402, "QueryShape can not be computed for command: {command}"),
    }
}

/// Refuses queries that settings cannot change.
fn check_can_have_settings(query: Doc<'_>) -> Result<()> {
    let db = query.get_str("$db").unwrap_or("");
    let collection = query.iter().next().and_then(|e| e.value().as_str()).unwrap_or("");
    if document::is_internal_database(db) || collection.starts_with("system.") {
        bail!(8584900, "setQuerySettings command cannot be used on internal databases or system collections");
    }
    if query.get("find").is_some() && is_by_id(query.get_document("filter").unwrap_or(Doc::empty())) {
        bail!(7746606, "setQuerySettings command cannot be used on find queries that are by _id alone");
    }
    Ok(())
}

fn is_by_id(filter: Doc<'_>) -> bool {
    let mut fields = filter.iter();
    let Some(first) = fields.next().filter(|e| e.name() == "_id" && fields.next().is_none()) else {
        return false;
    };
    match first.value() {
        ValueRef::Document(d) => {
            d.iter().next().is_none_or(|o| !o.name().starts_with('$') || o.name() == "$eq")
        }
        v => !matches!(v, ValueRef::Regex(..)),
    }
}

fn wrong(path: &str, v: ValueRef<'_>, expected: &str) -> document::Error {
    let found = v.type_name();
    document::err!(
        TYPE_MISMATCH,
        "BSON field 'setQuerySettings.settings.{path}' is the wrong type '{found}', expected type '{expected}'"
    )
}

/// The `settings` as they are given, checked.
fn settings(request: &Request<'_>) -> Result<Document> {
    let given = match request.get("settings") {
        Some(ValueRef::Document(d)) if d.is_empty() => {
            bail!(8727502, "settings field in setQuerySettings command cannot be empty")
        }
        Some(ValueRef::Document(d)) => d,
        Some(v) => return Err(request.wrong_type("settings", v, "object")),
        None => return Err(request.missing("settings")),
    };
    let mut out = Document::new();
    for e in given.iter() {
        match (e.name(), e.value()) {
            ("indexHints", ValueRef::Array(list)) => {
                let hints = list.iter().map(|h| match h.value() {
                    ValueRef::Document(d) => index_hint(d),
                    v => Err(wrong("indexHints", v, "object")),
                });
                out.push("indexHints", hints.collect::<Result<Vec<Value>>>()?);
            }
            ("indexHints", ValueRef::Document(d)) => out.push("indexHints", vec![index_hint(d)?]),
            ("indexHints", v) => return Err(wrong("indexHints", v, "array")),
            ("queryFramework", ValueRef::String(s @ ("classic" | "sbe"))) => out.push("queryFramework", s),
            ("queryFramework", ValueRef::Null) => {}
            ("queryFramework", ValueRef::String(s)) => bail!(
                BAD_VALUE,
                "Enumeration value '{s}' for field 'setQuerySettings.settings.queryFramework' is not a valid value."
            ),
            ("queryFramework", v) => return Err(wrong("queryFramework", v, "string")),
            ("reject", ValueRef::Boolean(b)) => out.push("reject", b),
            ("reject", v) => return Err(wrong("reject", v, "bool")),
            ("comment", v) => out.push("comment", v.to_value()),
            (name, _) => {
                bail!(IDL_UNKNOWN_FIELD, "BSON field 'setQuerySettings.settings.{name}' is an unknown field.")
            }
        }
    }
    Ok(out)
}

fn index_hint(hint: Doc<'_>) -> Result<Value> {
    let missing = |field: &str| {
        document::err!(
            IDL_FAILED_TO_PARSE,
            "BSON field 'setQuerySettings.settings.indexHints.{field}' is missing but a required field"
        )
    };
    let ns = match hint.get_present("ns") {
        Some(ValueRef::Document(ns)) => ns,
        Some(v) => return Err(wrong("indexHints.ns", v, "object")),
        None => return Err(missing("ns")),
    };
    for (field, code) in [("db", 8727500), ("coll", 8727501)] {
        match ns.get_present(field) {
            Some(ValueRef::String(_)) => {}
            Some(v) => return Err(wrong(&format!("indexHints.ns.{field}"), v, "string")),
            None => {
                return Err(document::Error::new(
                    code,
                    format!("invalid namespace of an index hint: '{field}' is missing"),
                ));
            }
        }
    }
    match hint.get_present("allowedIndexes") {
        Some(ValueRef::Array(list)) => {
            if list.iter().any(|e| !matches!(e.value(), ValueRef::String(_) | ValueRef::Document(_))) {
                bail!(FAILED_TO_PARSE, "Hint must be a string or an object");
            }
        }
        Some(v) => return Err(wrong("indexHints.allowedIndexes", v, "array")),
        None => return Err(missing("allowedIndexes")),
    }
    Ok(Value::Document(hint.to_document()))
}

/// Refuses settings that say nothing, as those do that allow no index or do not reject.
fn check_says_something(settings: &Document) -> Result<()> {
    let hints = settings.get_array("indexHints").is_some_and(|list| {
        list.iter()
            .filter_map(Value::as_document)
            .any(|h| h.get_array("allowedIndexes").is_some_and(|a| !a.is_empty()))
    });
    let rejects = settings.get_bool("reject") == Some(true);
    if !hints && !rejects && !settings.contains_key("queryFramework") {
        bail!(7746604, "the resulting settings cannot be empty or contain only default values");
    }
    Ok(())
}

/// Only where settings are kept: on a set, or on the config server.
fn check_role(context: &Context, name: &str) -> Result<()> {
    match context.service.role {
        Roles::SHARD => bail!(NOT_IMPLEMENTED, "{name} can only run on mongos in sharded clusters"),
        Roles::CONFIG => Ok(()),
        _ if node(context)?.options.replica_set.is_none() => {
            bail!(ILLEGAL_OPERATION, "{name} can only run on replica sets and sharded clusters")
        }
        _ => Ok(()),
    }
}

/// Of a cluster: its shards get what the config server has.
async fn store(context: &Context, list: &[Setting]) -> Result<()> {
    let node = node(context)?;
    let list: Vec<Document> = list.iter().map(Setting::to_document).collect();
    let d = doc! { "_id": PARAMETER, "clusterParameterTime": node.cluster_time(), "settingsArray": list };
    if context.service.role == Roles::CONFIG {
        return context.service.members.config("setQuerySettings")?.set_cluster_parameter(&d).await;
    }
    LocalClient::new(node.clone()).put(COLLECTION, &d).await
}

async fn set(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["settings"])?;
    check_role(context, request.command.name)?;
    let (hash, query) = named(request)?;
    let given = settings(request)?;
    let _one = ONE_AT_A_TIME.lock().await;
    let mut list = node(context)?.query_settings.list().to_vec();
    let at = list.iter().position(|s| s.hash == hash).unwrap_or_else(|| {
        list.push(Setting { hash: hash.clone(), settings: Document::new(), query: None });
        list.len() - 1
    });
    let setting = &mut list[at];
    for (name, v) in given.iter() {
        setting.settings.insert(name, v.clone());
    }
    check_says_something(&setting.settings)?;
    setting.query = query.or(setting.query.take());
    reply.fields(&setting.to_document());
    store(context, &list).await
}

async fn remove(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    check_role(context, request.command.name)?;
    let (hash, _) = named(request)?;
    let _one = ONE_AT_A_TIME.lock().await;
    let mut list = node(context)?.query_settings.list().to_vec();
    let before = list.len();
    list.retain(|s| s.hash != hash);
    if list.len() == before {
        // An earlier attempt may not have reached every shard.
        return match context.service.role {
            Roles::CONFIG => store(context, &list).await,
            _ => Ok(()),
        };
    }
    store(context, &list).await
}
