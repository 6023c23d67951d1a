//! Stages that the host supplies: sources, `$out`, `$merge`. Their arguments are checked as far as they can be without
//! a catalog.

use crate::expression::field_path::FieldPath;
use crate::expression::parse::check_variable_name;
use crate::expression::{Expression, Vars};
use crate::pipeline::host::Role;
use crate::pipeline::{Context, HostStage, Namespace, Run};
use document::{Doc, DocBuf, Result, Value, bail, wrong_type};

/// A source whose argument the host reads itself.
pub fn source(name: &'static str, v: &Value, ctx: &Context) -> Result<HostStage> {
    match (name, v) {
        ("$collStats", v) if !matches!(v, Value::Document(_)) => {
            bail!(
                5447000,
                "$collStats must take a nested object but found: {name}: {}",
                crate::expression::parse::show(v)
            )
        }
        ("$planCacheStats", Value::Document(d)) => check_plan_cache_stats(d)?,
        ("$planCacheStats", v) => {
            bail!(FAILED_TO_PARSE, "$planCacheStats value must be an object. Found: {}", v.type_name())
        }
        ("$querySettings", Value::Document(d)) => check_query_settings(d)?,
        ("$querySettings", v) => {
            bail!(7746800, "$querySettings stage expects a document as argument, not {}", v.type_name())
        }
        ("$indexStats", Value::Document(d)) if d.is_empty() => {}
        ("$indexStats", _) => bail!(28803, "The $indexStats stage specification must be an empty object"),
        ("$collStats", Value::Document(d)) => check_coll_stats(d)?,
        ("$currentOp", Value::Document(d)) => check_current_op(name, d, ctx)?,
        ("$listClusterCatalog", v) => check_catalog(v)?,
        ("$listSessions" | "$listLocalSessions", Value::Document(d)) => check_sessions(name, d)?,
        (_, Value::Document(_)) => {}
        (_, v) => bail!(
            TYPE_MISMATCH,
            "the {name} stage specification must be an object, but found {}",
            v.type_name()
        ),
    }
    check_place(name, ctx)?;
    let on_collection = !ctx.namespace.collection.is_empty();
    let misplaced = match name {
        "$querySettings" => on_collection,
        "$listSampledQueries" => on_collection || ctx.namespace.db != "admin",
        _ => false,
    };
    if misplaced {
        bail!(INVALID_NAMESPACE, "{name} must be run against the 'admin' database with {{aggregate: 1}}");
    }
    Ok(HostStage { name, spec: v.clone(), namespace: None, role: Role::Source, join: None })
}

/// Refuses what is told of sessions and of the catalog elsewhere than a client asks for it, in a `$facet` too.
///
/// # Errors
/// InvalidNamespace (73), 9621301.
pub fn check_place(name: &str, ctx: &Context) -> Result<()> {
    let on_collection = !ctx.namespace.collection.is_empty();
    match name {
        "$listLocalSessions" if on_collection => bail!(
            INVALID_NAMESPACE,
            "{name} must be run against the database with {{aggregate: 1}}, not a collection"
        ),
        "$listClusterCatalog" if on_collection => {
            bail!(9621301, "The $listClusterCatalog stage must be run on a database")
        }
        "$listSessions" if ctx.namespace.to_string() != "config.system.sessions" => {
            bail!(INVALID_NAMESPACE, "{name} may only be run against config.system.sessions")
        }
        _ => Ok(()),
    }
}

/// `{shards, balancingConfiguration}`.
fn check_catalog(v: &Value) -> Result<()> {
    let Value::Document(d) = v else {
        bail!(
            9621302,
            "$listClusterCatalog must take a nested object but found: {}",
            crate::expression::parse::show(v)
        );
    };
    for (field, v) in d.iter() {
        match (field, v) {
            ("shards" | "balancingConfiguration", Value::Boolean(_)) => {}
            ("shards" | "balancingConfiguration", v) => {
                return Err(document::wrong_type(
                    &format!("$listClusterCatalog.{field}"),
                    v.type_name(),
                    "bool",
                ));
            }
            _ => bail!(IDL_UNKNOWN_FIELD, "BSON field '$listClusterCatalog.{field}' is an unknown field."),
        }
    }
    Ok(())
}

/// `{latencyStats: {histograms}, storageStats: {scale}, count: {}, queryExecStats: {}, operationStats: {}}`; the first
/// field that is wrong decides the error, before anything is known of the collection.
///
/// # Errors
/// 14, 40415, 31170.
pub fn check_coll_stats(d: &document::Document) -> Result<()> {
    for (field, v) in d.iter().filter(|(_, v)| !v.is_null()) {
        let wrong = |path: &str, v: &Value, expected: &str| {
            document::wrong_type(&format!("$collStats.{path}"), v.type_name(), expected)
        };
        let known = ["latencyStats", "storageStats", "count", "queryExecStats", "operationStats"];
        if !known.contains(&field) {
            bail!(IDL_UNKNOWN_FIELD, "BSON field '$collStats.{field}' is an unknown field.");
        }
        let Value::Document(options) = v else { return Err(wrong(field, v, "object")) };
        for (option, v) in options.iter() {
            match (field, option, v) {
                ("latencyStats", "histograms", Value::Boolean(_)) => {}
                ("latencyStats", "histograms", v) => return Err(wrong("latencyStats.histograms", v, "bool")),
                ("latencyStats", other, _) => {
                    bail!(
                        IDL_UNKNOWN_FIELD,
                        "BSON field '$collStats.latencyStats.{other}' is an unknown field."
                    )
                }
                ("storageStats", "scale", v) if !v.is_number() && !v.is_null() => {
                    return Err(wrong("storageStats.scale", v, "number"));
                }
                ("count" | "queryExecStats", ..) => {
                    bail!(31170, "The {field} option of $collStats must be an empty object")
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// `{allHosts: bool}`.
fn check_plan_cache_stats(d: &document::Document) -> Result<()> {
    for (i, (field, v)) in d.iter().enumerate() {
        match (field, v) {
            ("allHosts", _) if i > 0 => {
                bail!(FAILED_TO_PARSE, "$planCacheStats parameters object may contain 'allHosts' once")
            }
            ("allHosts", Value::Boolean(_)) => {}
            ("allHosts", v) => bail!(13111, "wrong type for field (allHosts) {} != 8", v.tag()),
            _ => bail!(
                FAILED_TO_PARSE,
                "$planCacheStats parameters object may contain only 'allHosts' field. Found: {field}"
            ),
        }
    }
    Ok(())
}

/// `{showDebugQueryShape: bool}`.
fn check_query_settings(d: &document::Document) -> Result<()> {
    for (field, v) in d.iter() {
        match (field, v) {
            ("showDebugQueryShape", Value::Boolean(_)) => {}
            ("showDebugQueryShape", v) => {
                return Err(document::wrong_type(
                    "$querySettings.showDebugQueryShape",
                    v.type_name(),
                    "bool",
                ));
            }
            _ => bail!(IDL_UNKNOWN_FIELD, "BSON field '$querySettings.{field}' is an unknown field."),
        }
    }
    Ok(())
}

/// `{allUsers: bool}`, `{users: [{user, db}, ..]}` or `{}`.
fn check_sessions(name: &str, d: &document::Document) -> Result<()> {
    let wrong = |path: &str, v: &Value, expected: &str| {
        let found = v.type_name();
        document::wrong_type(&format!("{name}.{path}"), found, expected)
    };
    for (field, v) in d.iter() {
        match (field, v) {
            ("allUsers", Value::Boolean(_)) => {}
            ("allUsers" | "users", Value::Null | Value::Undefined) => {}
            ("allUsers", v) => return Err(wrong(field, v, "bool")),
            ("users", Value::Array(users)) => users.iter().try_for_each(|user| match user {
                Value::Null | Value::Undefined => Ok(()),
                Value::Document(user) => check_user(name, user),
                v => Err(wrong("users", v, "object")),
            })?,
            ("users", v) => return Err(wrong(field, v, "array")),
            _ => bail!(IDL_UNKNOWN_FIELD, "BSON field '{name}.{field}' is an unknown field."),
        }
    }
    let users = d.get_array("users").is_some_and(|users| users.iter().any(|user| !user.is_null()));
    if users && d.get_bool("allUsers") == Some(true) {
        bail!(
            UNSUPPORTED_FORMAT,
            "{name} may not specify {{allUsers:true}} and {{users:[...]}} at the same time"
        );
    }
    Ok(())
}

fn check_user(name: &str, user: &document::Document) -> Result<()> {
    if let Some((field, _)) = user.iter().find(|(field, _)| !matches!(*field, "user" | "db")) {
        bail!(IDL_UNKNOWN_FIELD, "BSON field '{name}.users.{field}' is an unknown field.");
    }
    for field in ["user", "db"] {
        match user.get(field).filter(|v| !v.is_null()) {
            Some(Value::String(_)) => {}
            Some(v) => {
                return Err(document::wrong_type(&format!("{name}.users.{field}"), v.type_name(), "string"));
            }
            None => {
                bail!(
                    IDL_FAILED_TO_PARSE,
                    "BSON field '{name}.users.{field}' is missing but a required field"
                )
            }
        }
    }
    Ok(())
}

/// Every field of the stage is a flag.
/// `$currentOp`: flags, in the one database that may show them.
fn check_current_op(name: &str, d: &document::Document, ctx: &Context) -> Result<()> {
    const FLAGS: &[&str] = &[
        "allUsers",
        "idleConnections",
        "idleSessions",
        "idleCursors",
        "localOps",
        "truncateOps",
        "targetAllNodes",
    ];
    if let Some(unknown) = d.keys().find(|field| !FLAGS.contains(field)) {
        bail!(IDL_UNKNOWN_FIELD, "BSON field '{name}.{unknown}' is an unknown field.");
    }
    check_flags(name, d)?;
    if d.get_bool("localOps") == Some(true) && d.get_bool("targetAllNodes") == Some(true) {
        bail!(FAILED_TO_PARSE, "The 'localOps' and 'targetAllNodes' parameters of {name} exclude each other");
    }
    if !ctx.namespace.collection.is_empty() || ctx.namespace.db != "admin" {
        bail!(INVALID_NAMESPACE, "{name} must be run against the 'admin' database with {{aggregate: 1}}");
    }
    Ok(())
}

fn check_flags(name: &str, d: &document::Document) -> Result<()> {
    match d.iter().find(|(_, v)| !matches!(v, Value::Boolean(_))) {
        Some((field, v)) => bail!(
            TYPE_MISMATCH,
            "The '{field}' parameter of the {name} stage must be a boolean value, but found: {}",
            v.type_name()
        ),
        None => Ok(()),
    }
}

/// `$documents`: an expression that gives an array of documents; run by [`documents_of`].
pub fn documents(name: &'static str, v: &Value, ctx: &Context) -> Result<HostStage> {
    Expression::parse(v, &ctx.scope())?;
    if !ctx.in_join && !ctx.namespace.collection.is_empty() && !ctx.namespace.collection.starts_with("$cmd") {
        bail!(INVALID_NAMESPACE, "'$documents' can only be run with {{aggregate: 1}}");
    }
    Ok(HostStage { name, spec: v.clone(), namespace: None, role: Role::Source, join: None })
}

/// The documents of a `$documents` stage.
pub fn documents_of(stage: &HostStage, run: &Run) -> Result<Vec<DocBuf>> {
    let scope = crate::expression::Variables::with_names(run.names.iter().map(String::as_str))
        .with_collation(&run.collation)
        .with_scripts(&run.scripts);
    let mut vars: Vars = run.vars.clone();
    let v = Expression::parse(&stage.spec, &scope)?.eval(Doc::empty(), &mut vars)?;
    let Some(Value::Array(items)) = v else { bail!(5858203, "an array is expected") };
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        let Value::Document(d) = item else {
            bail!(
                40228,
                "'newRoot' expression  must evaluate to an object, but resulting value was: {}. Type of resulting value: '{}'.",
                crate::expression::parse::show(&item),
                item.type_name()
            );
        };
        out.push(d.to_doc_buf());
    }
    Ok(out)
}

/// `$out: "collection"` or `{db, coll, timeseries}`.
pub fn out(name: &'static str, v: &Value, ctx: &Context) -> Result<HostStage> {
    let namespace = match v {
        Value::String(s) => Namespace::new(&*ctx.namespace.db, s),
        Value::Document(d) => {
            if let Some(bad) = d.keys().find(|k| !["db", "coll", "timeseries"].contains(k)) {
                bail!(IDL_UNKNOWN_FIELD, "BSON field '$out.{bad}' is an unknown field.");
            }
            if let Some(v) = d.get_present("timeseries").filter(|v| v.as_document().is_none()) {
                return Err(document::wrong_type("$out.timeseries", v.type_name(), "object"));
            }
            Namespace::new(required(name, d, "db")?, required(name, d, "coll")?)
        }
        v => bail!(16990, "$out only supports a string or object argument, but found {}", v.type_name()),
    };
    check_target(name, &namespace)?;
    Ok(HostStage { name, spec: v.clone(), namespace: Some(namespace), role: Role::Write, join: None })
}

fn required(name: &str, d: &document::Document, field: &str) -> Result<String> {
    match d.get_present(field) {
        Some(Value::String(s)) => Ok(s.clone()),
        Some(v) => Err(document::wrong_type(&format!("{name}.{field}"), v.type_name(), "string")),
        None => bail!(IDL_FAILED_TO_PARSE, "BSON field '{name}.{field}' is missing but a required field"),
    }
}

fn check_target(name: &str, ns: &Namespace) -> Result<()> {
    if name == "$out" && ns.collection.starts_with('$') {
        bail!(ILLEGAL_OPERATION, "Can't {name} to a collection whose name begins with '$': {ns}");
    }
    if ns.collection.is_empty()
        || ns.db.is_empty()
        || ns.db.contains(['/', '\\', '.', ' ', '"', '$', '\0'])
        || ns.collection.contains(['$', '\0'])
        || ns.collection.starts_with('.')
    {
        bail!(INVALID_NAMESPACE, "Invalid {name} target namespace, {ns}");
    }
    let most = Namespace::BYTES_MAX;
    if ns.db.len() + 1 + ns.collection.len() > most {
        bail!(ILLEGAL_OPERATION, "Fully qualified namespace is too long. Namespace: {ns} Max: {most}");
    }
    if ns.collection.starts_with("system.") {
        let code = if name == "$out" { 17385 } else { 31319 };
        return Err(document::Error::new(
            code,
            format!("Can't {name} to special collection: {}", ns.collection),
        ));
    }
    if document::is_internal_database(&ns.db) {
        let code = if name == "$out" { 31321 } else { 31320 };
        return Err(document::Error::new(code, format!("Can't {name} to internal database: {}", ns.db)));
    }
    Ok(())
}

const WHEN_MATCHED: [&str; 5] = ["replace", "keepExisting", "merge", "fail", "pipeline"];
const WHEN_NOT_MATCHED: [&str; 3] = ["insert", "discard", "fail"];

/// `$merge: "collection"` or `{into, on, let, whenMatched, whenNotMatched}`.
pub fn merge(name: &'static str, v: &Value, ctx: &Context) -> Result<HostStage> {
    // Of the others a null says no more than that they are absent.
    let v = &match v {
        Value::Document(d) => {
            let said =
                |(name, v): &(&str, &Value)| ["into", "on", "whenMatched"].contains(name) || !v.is_null();
            Value::Document(d.iter().filter(said).map(|(name, v)| (name.to_string(), v.clone())).collect())
        }
        other => other.clone(),
    };
    let target = match v {
        Value::String(s) => Value::String(s.clone()),
        Value::Document(d) => {
            check_merge(d)?;
            match d.get("into") {
                Some(into) => into.clone(),
                None => {
                    bail!(IDL_FAILED_TO_PARSE, "BSON field '$merge.into' is missing but a required field")
                }
            }
        }
        v => bail!(TYPE_MISMATCH, "$merge only supports a string or object argument, not {}", v.type_name()),
    };
    let namespace = match &target {
        Value::String(s) if s.is_empty() && v.as_str().is_none() => {
            bail!(5786800, "{{into: \"\"}} must not be empty")
        }
        Value::String(s) => Namespace::new(&*ctx.namespace.db, s),
        Value::Document(d) => {
            if let Some(bad) = d.keys().find(|k| !["db", "coll"].contains(k)) {
                bail!(IDL_UNKNOWN_FIELD, "BSON field 'into.{bad}' is an unknown field.");
            }
            // A null or an empty name stands for the database of the command.
            let db = match d.get_present("db") {
                Some(_) => required("into", d, "db")?,
                None => String::new(),
            };
            let db = if db.is_empty() { ctx.namespace.db.clone() } else { db };
            if d.get_present("coll").is_none() {
                bail!(5786801, "{{into: {{coll: ..}}}} must be given");
            }
            Namespace::new(db, required("into", d, "coll")?)
        }
        v => bail!(
            51178,
            "{name} 'into' field must be either a string or an object, but found {}",
            v.type_name()
        ),
    };
    check_target(name, &namespace)?;
    Ok(HostStage { name, spec: v.clone(), namespace: Some(namespace), role: Role::Write, join: None })
}

const MERGE_FIELDS: [&str; 7] = [
    "into",
    "on",
    "let",
    "whenMatched",
    "whenNotMatched",
    "targetCollectionVersion",
    "allowMergeOnNullishValues",
];

fn check_merge(d: &document::Document) -> Result<()> {
    if let Some(bad) = d.keys().find(|k| !MERGE_FIELDS.contains(k)) {
        bail!(IDL_UNKNOWN_FIELD, "BSON field '$merge.{bad}' is an unknown field.");
    }
    if let Some(on) = d.get("on") {
        check_merge_on(on)?;
    }
    let runs_pipeline = d.get("whenMatched").map_or(Ok(false), check_when_matched)?;
    if let Some(mode) = d.get("whenNotMatched") {
        check_when_not_matched(mode)?;
    }
    if let (Some(matched @ ("keepExisting" | "fail")), Some(not_matched @ ("discard" | "fail"))) =
        (d.get_str("whenMatched"), d.get_str("whenNotMatched"))
    {
        bail!(
            51181,
            "Combination of {{whenMatched: {matched}, whenNotMatched: {not_matched}}} is not supported"
        );
    }
    check_merge_let(d, runs_pipeline)
}

fn check_merge_on(on: &Value) -> Result<()> {
    let items = match on {
        Value::String(path) => return FieldPath::parse(path).map(drop),
        Value::Array(items) if items.is_empty() => {
            bail!(51187, "If explicitly specifying $merge 'on', must include at least one field")
        }
        Value::Array(items) => items,
        v => bail!(
            51186,
            "$merge 'on' field  must be either a string or an array of strings, but found {}",
            v.type_name()
        ),
    };
    let mut seen = std::collections::HashSet::new();
    for item in items {
        let Value::String(s) = item else {
            bail!(51134, "$merge 'on' array elements must be strings, but found {}", item.type_name());
        };
        FieldPath::parse(s)?;
        if !seen.insert(s) {
            bail!(31465, "Found a duplicate field '{s}'");
        }
    }
    Ok(())
}

/// Whether documents are merged by a pipeline.
fn check_when_matched(mode: &Value) -> Result<bool> {
    match mode {
        Value::String(s) if WHEN_MATCHED.contains(&s.as_str()) => Ok(s == "pipeline"),
        Value::String(s) => {
            bail!(BAD_VALUE, "Enumeration value '{s}' for field 'whenMatched' is not a valid value.")
        }
        Value::Array(stages) if stages.iter().any(|stage| stage.as_document().is_none()) => {
            bail!(TYPE_MISMATCH, "Each element of the 'pipeline' array must be an object")
        }
        Value::Array(_) => Ok(true),
        v => bail!(
            51191,
            "$merge 'whenMatched' field  must be either a string or an array, but found {}",
            v.type_name()
        ),
    }
}

fn check_when_not_matched(mode: &Value) -> Result<()> {
    match mode {
        Value::String(s) if WHEN_NOT_MATCHED.contains(&s.as_str()) => Ok(()),
        Value::String(s) => {
            bail!(BAD_VALUE, "Enumeration value '{s}' for field 'whenNotMatched' is not a valid value.")
        }
        v => Err(wrong_type("$merge.whenNotMatched", v.type_name(), "string")),
    }
}

fn check_merge_let(d: &document::Document, runs_pipeline: bool) -> Result<()> {
    if let Some(new) = d.get_document("let").and_then(|bound| bound.get("new"))
        && new.as_str() != Some("$$ROOT")
    {
        bail!(51273, "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'");
    }
    match d.get("let") {
        Some(Value::Document(_)) if !runs_pipeline => {
            bail!(
                51199,
                "Cannot use 'let' variables with 'whenMatched: {}' mode",
                d.get_str("whenMatched").unwrap_or("merge")
            )
        }
        Some(Value::Document(bound)) => bound.keys().try_for_each(|name| check_variable_name(name, true)),
        None => Ok(()),
        Some(v) => Err(wrong_type("$merge.let", v.type_name(), "object")),
    }
}
