//! create, drop, dropDatabase, collMod.

use super::LOCK_WAIT;
use crate::namespace::Slot;
use crate::view::View;
use crate::write::extras::{Capped, Validator};
use crate::write::unit::{Origin, WriteUnit};
use crate::{Node, Operation, Request};
use document::{Document, Result, Value, bail, doc, err};
use std::sync::Arc;
use storage::entry::{Draft, EntryParts, Op};
use storage::log::Class;
use storage::{CollectionMeta, split_namespace};

const CREATE_FIELDS: [&str; 21] = [
    "capped",
    "size",
    "max",
    "autoIndexId",
    "idIndex",
    "storageEngine",
    "validator",
    "validationLevel",
    "validationAction",
    "indexOptionDefaults",
    "viewOn",
    "pipeline",
    "collation",
    "writeConcern",
    "temp",
    "flags",
    "comment",
    "changeStreamPreAndPostImages",
    "expireAfterSeconds",
    "encryptedFields",
    "recordIdsReplicated",
];

/// Runs a `create` command.
pub async fn create(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    let body = request.body.to_document();
    let mut options = Document::new();
    for (name, value) in body.iter().skip(1) {
        if name.starts_with('$') || value.is_null() || is_generic(name) {
            continue;
        }
        match name {
            "timeseries" | "clusteredIndex" => {
                bail!(NOT_IMPLEMENTED, "the option '{name}' of create is not implemented")
            }
            _ if !CREATE_FIELDS.contains(&name) => {
                bail!(IDL_UNKNOWN_FIELD, "BSON field 'create.{name}' is an unknown field.")
            }
            "writeConcern" | "comment" | "idIndex" => {}
            _ => options.push(name, value.clone()),
        }
    }
    check_options(&options)?;
    create_collection(node, op, &ns, options, None).await?;
    Ok(Document::new())
}

/// Fields that any command may carry and the dispatcher has read.
pub fn is_generic(name: &str) -> bool {
    matches!(
        name,
        "lsid"
            | "txnNumber"
            | "maxTimeMS"
            | "readConcern"
            | "apiVersion"
            | "apiStrict"
            | "apiDeprecationErrors"
            | "shardVersion"
            | "databaseVersion"
            | "stmtId"
            | "stmtIds"
            | "maxTimeMSOpOnly"
            | "autocommit"
            | "startTransaction"
            | "comment"
            | "writeConcern"
            | "rawData"
    )
}

fn check_options(options: &Document) -> Result<()> {
    let capped = options.get("capped").is_some_and(Value::truthy);
    if capped && options.get("size").is_none() && options.get_str("viewOn").is_none() {
        bail!(INVALID_OPTIONS, "the 'size' field is required when 'capped' is true");
    }
    if !capped && (options.contains_key("size") || options.contains_key("max")) {
        bail!(
            INVALID_OPTIONS,
            "the 'capped' field needs to be true when either the 'size' or 'max' fields are present"
        );
    }
    if let Some(size) = options.get("size").and_then(document::number::to_i64_saturating)
        && capped
        && !(1..=1 << 50).contains(&size)
    {
        bail!(BAD_VALUE, "BSON field 'size' value must be >= 1, actual value '{size}'");
    }
    if options.contains_key("pipeline") && !options.contains_key("viewOn") {
        bail!(INVALID_OPTIONS, "'pipeline' cannot be specified without 'viewOn'");
    }
    if let Some(c) = options.get_document("collation")
        && c.get_str("locale").is_some_and(|l| l != "simple")
    {
        bail!(NOT_IMPLEMENTED, "collations other than simple are not implemented");
    }
    for (field, allowed) in [
        ("validationLevel", ["off", "strict", "moderate"].as_slice()),
        ("validationAction", &["error", "warn", "errorAndLog"]),
    ] {
        if let Some(v) = options.get_str(field)
            && !allowed.contains(&v)
        {
            bail!(BAD_VALUE, "Enumeration value '{v}' for field '{field}' is not a valid value.");
        }
    }
    Validator::of(options)?;
    Ok(())
}

/// Creates a collection or view. Succeeds when one with the same options is there.
///
/// # Errors
/// NamespaceExists (48), InvalidNamespace (73), and what the options may give.
pub async fn create_collection(
    node: &Node,
    op: &Operation,
    ns: &str,
    options: Document,
    uuid: Option<[u8; 16]>,
) -> Result<()> {
    let (db, name) = split_namespace(ns);
    if name.starts_with("system.") && !allowed_system(db, name) {
        bail!(INVALID_NAMESPACE, "Invalid system namespace: {ns}");
    }
    if options.get_str("viewOn").is_some() {
        return create_view(node, op, ns, &options).await;
    }
    let slot = node.namespaces.slot(ns);
    let _intent = slot.intent_exclusive(LOCK_WAIT).await?;
    let uuid = uuid.unwrap_or_else(|| node.new_uuid());
    node.write(op, &slot, |unit| {
        if unit.state.view.is_some() {
            bail!(NAMESPACE_EXISTS, "A view already exists. NS: {ns}");
        }
        if let Some(existing) = unit.collection() {
            if same_options(&existing.meta().options, &options) {
                return Ok(());
            }
            bail!(NAMESPACE_EXISTS, "Collection {ns} already exists.");
        }
        unit.create_collection(CollectionMeta::with_options(ns, uuid, options), false);
        Ok(())
    })
    .await?;
    Ok(())
}

fn same_options(a: &Document, b: &Document) -> bool {
    a.len() == b.len()
        && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| document::compare::values_equal(v, w)))
}

fn allowed_system(db: &str, name: &str) -> bool {
    matches!(
        name,
        "system.js" | "system.views" | "system.profile" | "system.users" | "system.version" | "system.roles"
    ) || name.starts_with("system.buckets.")
        || db == "config"
        || db == "local"
}

async fn create_view(node: &Node, op: &Operation, ns: &str, options: &Document) -> Result<()> {
    let (db, _) = split_namespace(ns);
    let slot = node.namespaces.slot(ns);
    let _intent = slot.intent_exclusive(LOCK_WAIT).await?;
    if slot.read(op, |s| Ok(s.collection.is_some())).await? {
        bail!(NAMESPACE_EXISTS, "Collection {ns} already exists.");
    }
    let mut definition = doc! { "_id": ns };
    definition.push("viewOn", options.get_str("viewOn").unwrap_or(""));
    definition.push("pipeline", options.get("pipeline").cloned().unwrap_or(Value::Array(Vec::new())));
    if let Some(collation) = options.get("collation") {
        definition.push("collation", collation.clone());
    }
    let Some((_, view)) = View::from_document(&definition) else {
        bail!(BAD_VALUE, "'viewOn' must be a string and 'pipeline' an array")
    };
    view.check()?;
    if let Some(existing) = &slot.read_unchecked().view {
        if **existing == view {
            return Ok(());
        }
        bail!(NAMESPACE_EXISTS, "A view already exists. NS: {ns}");
    }
    let views = node.namespaces.slot(&format!("{db}.system.views"));
    let bytes = definition.to_doc_buf();
    node.write(&Operation::internal(), &views, |unit| {
        unit.ensure_exists();
        unit.insert(bytes.doc(), Origin::default())
    })
    .await?;
    slot.write_unchecked().view = Some(Arc::new(view));
    Ok(())
}

async fn drop_view(node: &Node, slot: &Slot) -> Result<()> {
    let views = node.namespaces.slot(&format!("{}.system.views", slot.database.name));
    let id = Value::from(slot.ns.as_str()).to_holder();
    node.write(&Operation::internal(), &views, |unit| {
        let found = id.get("").and_then(|id| unit.collection()?.find_id(id)).map(|(record, _)| record);
        found.map_or(Ok(false), |record| unit.delete(record, Origin::default()))
    })
    .await?;
    slot.write_unchecked().view = None;
    Ok(())
}

/// Runs a `drop` command. Dropping what is not there succeeds, as it does since 7.0.
pub async fn drop(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    let (_, name) = split_namespace(&ns);
    if name.starts_with("system.")
        && !matches!(name, "system.profile" | "system.js" | "system.views")
        && !ns.starts_with("config.")
    {
        bail!(ILLEGAL_OPERATION, "can't drop system collection {ns}");
    }
    crate::write::statement::check_uuid(request.body, &node.namespaces.slot(&ns))?;
    let dropped = drop_collection(node, op, &ns, false).await?;
    Ok(match dropped {
        Some(indexes) => doc! { "nIndexesWas": indexes as i32, "ns": ns },
        None => Document::new(),
    })
}

/// Drops a collection or view; answers how many indexes it had, `None` when there was nothing.
pub async fn drop_collection(
    node: &Node,
    op: &Operation,
    ns: &str,
    from_migrate: bool,
) -> Result<Option<usize>> {
    let slot = node.namespaces.slot(ns);
    let _intent = slot.intent_exclusive(LOCK_WAIT).await?;
    if slot.read_unchecked().view.is_some() {
        drop_view(node, &slot).await?;
        return Ok(Some(0));
    }
    let (dropped, _) = node
        .write(op, &slot, |unit| {
            let Some(c) = unit.state.uninstall() else { return Ok(None) };
            log_drop(unit, &c, from_migrate);
            Ok(Some((c.indexes().len(), c)))
        })
        .await?;
    // The trees are freed here, outside the latch.
    Ok(dropped.map(|(n, _)| n))
}

fn log_drop(unit: &mut WriteUnit<'_>, c: &storage::Collection, from_migrate: bool) {
    let o = doc! { "drop": c.meta().name() };
    unit.command(Some(c.uuid()), o, Some(doc! { "numRecords": c.len() as i64 }), from_migrate);
}

/// Runs a `dropDatabase` command.
pub async fn drop_database(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let db = request.db;
    if matches!(db, "admin" | "local" | "config") && node.is_replica_set() {
        bail!(ILLEGAL_OPERATION, "Cannot drop '{db}' database while replication is active");
    }
    let existed = drop_database_named(node, op, db, false).await?;
    Ok(if existed {
        doc! { "dropped": db }
    } else {
        Document::new()
    })
}

/// Drops every collection of a database and says so in the log; false when there was none.
pub async fn drop_database_named(node: &Node, op: &Operation, db: &str, from_migrate: bool) -> Result<bool> {
    let mut existed = false;
    loop {
        for slot in node.namespaces.of_database(db) {
            existed |= drop_collection(node, op, &slot.ns, from_migrate).await?.is_some();
        }
        if !existed || log_database_drop(node, op, db, from_migrate) {
            return Ok(existed);
        }
        // Somebody has created a collection in between.
        op.check_interrupt()?;
    }
}

/// Logs that a database is gone; false when it is not. Replay drops what is there at this entry, so nothing may be.
fn log_database_drop(node: &Node, op: &Operation, db: &str, from_migrate: bool) -> bool {
    let o = doc! { "dropDatabase": 1 }.to_doc_buf();
    let ns = format!("{db}.$cmd");
    let mut parts = EntryParts::default();
    let draft = Draft { from_migrate, ..Draft::new(Op::Command, &ns, None) };
    draft.encode(o.doc(), &mut parts);
    let class = if db == "local" { Class::Local } else { Class::Oplog };
    // No commit is under way while this is held.
    let _gate = node.gate.write();
    if node.namespaces.of_database(db).iter().any(|s| s.read_unchecked().collection.is_some()) {
        return false;
    }
    let appended = node.log.append(class, &[&parts.slices(o.doc())]);
    op.note_commit(Some(&appended));
    true
}

/// Runs a `collMod` command.
pub async fn coll_mod(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    let mut change = doc! { "collMod": split_namespace(&ns).1 };
    for e in request.body.iter().skip(1) {
        let name = e.name();
        if !name.starts_with('$') && !is_generic(name) && !matches!(name, "dryRun" | "collectionUUID") {
            change.push(name, e.value().to_value());
        }
    }
    let slot = node.namespaces.slot(&ns);
    let _intent = slot.intent_exclusive(LOCK_WAIT).await?;
    if slot.read_unchecked().view.is_some() {
        return modify_view(node, &slot, &change).await;
    }
    let (reply, _) = node
        .write(op, &slot, |unit| {
            let before = unit.existing()?;
            let reply = index_reply(before, change.get_document("index"))?;
            let uuid = before.uuid();
            check_coll_mod(&change)?;
            Validator::of(&change)?;
            let Some(c) = unit.state.collection.as_mut() else {
                bail!(NAMESPACE_NOT_FOUND, "ns does not exist: {ns}")
            };
            storage::recovery::apply_coll_mod(c, &change)?;
            let options = c.meta().options.clone();
            unit.state.validator = Validator::of(&options)?;
            unit.state.capped = Capped::of(&options);
            unit.command(Some(uuid), change.clone(), None, false);
            Ok(reply)
        })
        .await?;
    Ok(reply)
}

fn check_coll_mod(change: &Document) -> Result<()> {
    const KNOWN: [&str; 14] = [
        "collMod",
        "index",
        "validator",
        "validationLevel",
        "validationAction",
        "viewOn",
        "pipeline",
        "changeStreamPreAndPostImages",
        "cappedSize",
        "cappedMax",
        "expireAfterSeconds",
        "timeseries",
        "recordPreImages",
        "noPadding",
    ];
    match change.keys().find(|k| !KNOWN.contains(k)) {
        Some(name) => bail!(IDL_UNKNOWN_FIELD, "BSON field 'collMod.{name}' is an unknown field."),
        None => Ok(()),
    }
}

/// What collMod answers of an index: its options before and after.
fn index_reply(c: &storage::Collection, index: Option<&Document>) -> Result<Document> {
    let mut reply = Document::new();
    let Some(index) = index else { return Ok(reply) };
    if !index.contains_key("name") && !index.contains_key("keyPattern") {
        bail!(INVALID_OPTIONS, "Must specify either index name or key pattern.");
    }
    let named = |spec: &storage::IndexSpec| match index.get_str("name") {
        Some(name) => spec.name() == name,
        None => Some(spec.key()) == index.get_document("keyPattern"),
    };
    let Some(found) = c.indexes().iter().map(|i| i.spec()).find(|s| named(s)) else {
        bail!(
            INDEX_NOT_FOUND,
            "cannot find index {} for ns {}",
            document::extended_json::to_relaxed(&Value::from(index)),
            c.ns()
        )
    };
    for option in ["expireAfterSeconds", "hidden", "unique", "prepareUnique"] {
        if let Some(new) = index.get(option) {
            let old = found.document().get(option).cloned();
            if let Some(old) = old.or((option != "expireAfterSeconds").then_some(Value::Boolean(false))) {
                reply.push(format!("{option}_old"), old);
            }
            reply.push(format!("{option}_new"), new.clone());
        }
    }
    Ok(reply)
}

async fn modify_view(node: &Node, slot: &Slot, change: &Document) -> Result<Document> {
    let current = slot
        .read_unchecked()
        .view
        .clone()
        .ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns does not exist: {}", slot.ns))?;
    let mut view = (*current).clone();
    if let Some(on) = change.get_str("viewOn") {
        view.on = on.to_string();
    }
    if let Some(pipeline) = change.get_array("pipeline") {
        view.pipeline = pipeline.clone();
    }
    view.check()?;
    let definition =
        doc! { "_id": slot.ns.as_str(), "viewOn": view.on.as_str(), "pipeline": view.pipeline.clone() };
    let views = node.namespaces.slot(&format!("{}.system.views", slot.database.name));
    let bytes = definition.to_doc_buf();
    node.write(&Operation::internal(), &views, |unit| {
        let found = bytes.get("_id").and_then(|id| unit.collection()?.find_id(id)).map(|(record, _)| record);
        match found {
            Some(record) => unit.update(record, bytes.doc(), Origin::default()),
            None => Ok(()),
        }
    })
    .await?;
    slot.write_unchecked().view = Some(Arc::new(view));
    Ok(Document::new())
}
