//! create, drop, dropDatabase, collMod.

pub use super::coll_mod::coll_mod;
use super::{capped::CAPPED_BYTES_MAX, clustered, shapes};
use crate::namespace::{Met, Slot};
use crate::read::pseudo::TRANSACTIONS;
use crate::shape;
use crate::view::View;
use crate::write::extras::{Validator, check_case};
use crate::write::unit::WriteUnit;
use crate::{Node, Operation, Request, timeseries};
use document::{Collation, Doc, Document, Result, Value, ValueRef, bail, doc};
use futures::future::BoxFuture;
use query::timeseries::BUCKETS_PREFIX;
use std::sync::Arc;
use storage::entry::{Draft, Op};
use storage::{Collection, CollectionMeta, split_namespace};

/// Runs a `create` command.
pub async fn create(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    create_as(node, op, request, None).await
}

/// The same, with the UUID that the collection gets.
pub(crate) async fn create_as(
    node: &Node,
    op: &Operation,
    request: Request<'_>,
    uuid: Option<[u8; 16]>,
) -> Result<Document> {
    let ns = request.namespace()?;
    node.check_write_concern(op)?;
    shapes::CREATE.check_command(request.body, request.sequences)?;
    let mut options = Document::new();
    for e in request.body.iter().skip(1) {
        let (name, value) = (e.name(), e.value());
        if matches!(value, ValueRef::Null | ValueRef::Undefined)
            || name == "idIndex"
            || !shapes::CREATE.has(name)
        {
            continue;
        }
        match name {
            "clusteredIndex" => {
                clustered::check_company(request.body)?;
                clustered::definition(value)?.into_iter().for_each(|d| options.push(name, d));
            }
            "pipeline" => options.push(name, View::stages(value)),
            "expireAfterSeconds" => options.push(name, shape::to_long(value).unwrap_or(0)),
            "size" | "max" if matches!(value, ValueRef::Double(_) | ValueRef::Decimal128(_)) => {
                options.push(name, document::number::int_or_long(shape::to_long(value).unwrap_or(0)));
            }
            _ => options.push(name, value.to_value()),
        }
    }
    if let Some(spec) = request.body.get_document("idIndex") {
        if options.contains_key("viewOn") {
            bail!(INVALID_OPTIONS, "'idIndex' is not allowed with 'viewOn'");
        }
        check_id_index(spec)?;
        check_id_collation(spec, &options)?;
    }
    if let Some(images) = request.body.get_document("changeStreamPreAndPostImages") {
        shapes::PRE_AND_POST_IMAGES.check(images)?;
        if images.get_bool("enabled") == Some(true) {
            check_images(&ns, &options)?;
        }
    }
    super::encrypted_fields::check(&options)?;
    super::storage_options::check(&options)?;
    if options.contains_key("timeseries") {
        if request.body.get_present("idIndex").is_some() {
            options.push("idIndex", true);
        }
        timeseries::ddl::create(node, op, &ns, options).await?;
        return Ok(Document::new());
    }
    if split_namespace(&ns).1.starts_with(BUCKETS_PREFIX) {
        bail!(ILLEGAL_OPERATION, "{ns} can only be created as the buckets of a time-series collection");
    }
    check_options(&options)?;
    Validator::check_new(&ns, &options)?;
    Validator::check_encryption(&options, &Document::new())?;
    clustered::check_options(&options, node.now_ms())?;
    leave_out_defaults(&mut options);
    create_collection(node, op, &ns, options, uuid).await?;
    Ok(Document::new())
}

/// Takes out what says no more than its absence, so that creating a collection again with it succeeds.
fn leave_out_defaults(options: &mut Document) {
    let images = options.get_path("changeStreamPreAndPostImages.enabled").is_some_and(Value::truthy);
    if !images {
        options.remove("changeStreamPreAndPostImages");
    }
    for name in ["storageEngine", "indexOptionDefaults"] {
        if options.get_document(name).is_some_and(Document::is_empty) {
            options.remove(name);
        }
    }
    if options.get("capped").is_some_and(Value::truthy) {
        options.insert("capped", true);
    }
}

fn check_images(ns: &str, options: &Document) -> Result<()> {
    if options.contains_key("viewOn") {
        bail!(INVALID_OPTIONS, "option not supported on a view: changeStreamPreAndPostImages");
    }
    if document::is_internal_database(split_namespace(ns).0) {
        bail!(INVALID_OPTIONS, "changeStreamPreAndPostImages is not supported on internal databases: {ns}");
    }
    Ok(())
}

/// Refuses an `idIndex` other than the one that every collection has.
fn check_id_index(spec: Doc<'_>) -> Result<()> {
    for e in spec.iter() {
        let (name, v) = (e.name(), e.value());
        match (name, v) {
            ("key", ValueRef::Document(key)) if key.to_document() != doc! { "_id": 1 } => {
                let fields: Vec<_> = key.iter().collect();
                let ascending =
                    matches!(fields.as_slice(), [f] if f.name() == "_id" && f.value().as_f64() == Some(1.0));
                if !ascending {
                    bail!(
                        BAD_VALUE,
                        "The field 'key' for an _id index must be {{_id: 1}}, but got {}",
                        document::shell::document(&key.to_document())
                    );
                }
            }
            ("key", ValueRef::Document(_)) | ("collation", ValueRef::Document(_)) => {}
            ("ns", ValueRef::String(_)) => {}
            ("name", ValueRef::String("")) => bail!(CANNOT_CREATE_INDEX, "index names cannot be empty"),
            ("name", ValueRef::String(_)) => {}
            ("v", v) if v.is_number() => match document::number::to_i64_exact(&v.to_value()) {
                Some(1 | 2) => {}
                Some(n) => bail!(
                    CANNOT_CREATE_INDEX,
                    "Invalid index specification; cannot create an index with v={n}"
                ),
                None => bail!(BAD_VALUE, "Index version must be representable as a 32-bit integer"),
            },
            ("key" | "name" | "collation" | "ns" | "v", v) => bail!(
                TYPE_MISMATCH,
                "The field '{name}' of an _id index has the wrong type '{}'",
                v.type_name()
            ),
            _ => bail!(
                INVALID_INDEX_SPECIFICATION_OPTION,
                "The field '{name}' is not valid for an _id index specification. Specification: {spec:?}"
            ),
        }
    }
    for needed in ["key", "name"] {
        if spec.get(needed).is_none() {
            bail!(FAILED_TO_PARSE, "The '{needed}' field is a required property of an index specification");
        }
    }
    Ok(())
}

/// The collation with all its members; none where it is the simple one.
///
/// # Errors
/// Those of [`Collation::parse`].
fn fill_in_collation(options: &mut Document) -> Result<()> {
    let Some(spec) = options.get_document("collation") else { return Ok(()) };
    match Collation::of_document(spec)?.document() {
        Some(full) => options.insert("collation", full.clone()),
        None => {
            options.remove("collation");
        }
    }
    Ok(())
}

/// The index on `_id` has the collection's collation.
fn check_id_collation(spec: Doc<'_>, options: &Document) -> Result<()> {
    let Some(own) = spec.get_document("collation") else {
        return Ok(());
    };
    let own = Collation::parse(own)?;
    let of_collection = match options.get_document("collation") {
        Some(spec) => Collation::of_document(spec)?,
        None => Collation::SIMPLE,
    };
    if own != of_collection {
        bail!(
            BAD_VALUE,
            "The _id index must have the same collation as the collection. Index collation: {own:?}, collection collation: {of_collection:?}"
        );
    }
    Ok(())
}

fn check_options(options: &Document) -> Result<()> {
    let capped = options.get("capped").is_some_and(Value::truthy);
    if capped && options.get("size").is_none() {
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
        && !(1..=CAPPED_BYTES_MAX).contains(&size)
    {
        bail!(BAD_VALUE, "BSON field 'size' value must be >= 1, actual value '{size}'");
    }
    if let Some(max) = options.get("max").and_then(|v| v.to_holder().get("").and_then(shape::to_long))
        && max > i64::from(i32::MAX)
    {
        bail!(BAD_VALUE, "max in a capped collection has to be < 2^31 or not set");
    }
    if options.contains_key("pipeline") && !options.contains_key("viewOn") {
        bail!(INVALID_OPTIONS, "'pipeline' cannot be specified without 'viewOn'");
    }
    Ok(())
}

/// Creates a collection or view. Succeeds when one with the same options is there, outside transactions.
///
/// # Errors
/// NamespaceExists (48), InvalidNamespace (73), and what the options may give.
pub fn create_collection<'a>(
    node: &'a Node,
    op: &'a Operation,
    ns: &'a str,
    options: Document,
    uuid: Option<[u8; 16]>,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(create_named(node, op, ns, options, uuid))
}

async fn create_named(
    node: &Node,
    op: &Operation,
    ns: &str,
    mut options: Document,
    uuid: Option<[u8; 16]>,
) -> Result<()> {
    fill_in_collation(&mut options)?;
    let (db, name) = split_namespace(ns);
    if name.starts_with("system.") && !allowed_system(db, name) {
        bail!(INVALID_NAMESPACE, "Invalid system namespace: {ns}");
    }
    check_case(node, db)?;
    if options.get_str("viewOn").is_some() {
        if op.transaction().is_some() {
            bail!(
                OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                "Cannot create a view in a multi-document transaction. NS: {ns}"
            );
        }
        return create_view(node, op, ns, &options).await;
    }
    let slot = node.namespaces.slot(ns);
    let uuid = uuid.unwrap_or_else(|| node.new_uuid());
    node.change(op, &slot, |unit| {
        if unit.state.view.is_some() {
            bail!(NAMESPACE_EXISTS, "A view already exists. NS: {ns}");
        }
        if let Some(existing) = unit.collection() {
            // A transaction that creates a collection relies on its having made it.
            if op.transaction().is_none() && same_options(&existing.meta().options, &options) {
                return Ok(());
            }
            bail!(NAMESPACE_EXISTS, "Collection {ns} already exists.");
        }
        unit.claim_namespace()?;
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
    ) || name.starts_with(BUCKETS_PREFIX)
        || db == "config"
        || db == "local"
}

async fn create_view(node: &Node, op: &Operation, ns: &str, options: &Document) -> Result<()> {
    let (db, _) = split_namespace(ns);
    let slot = node.namespaces.slot(ns);
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
    view.check_pipeline(node, db)?;
    view.check_graph(node, ns)?;
    crate::view::define(node, op, &slot, &definition, |state| match &state.view {
        Some(existing) if **existing == view => Ok(None),
        Some(_) => bail!(NAMESPACE_EXISTS, "A view already exists. NS: {ns}"),
        None if state.collection.is_some() => bail!(NAMESPACE_EXISTS, "Collection {ns} already exists."),
        None => Ok(Some(view.clone())),
    })
    .await
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
    if ns == "local.oplog.rs" && node.is_replica_set() {
        bail!(ILLEGAL_OPERATION, "can't drop live oplog while replicating");
    }
    node.check_uuid(request.body, &node.namespaces.slot(&ns))?;
    node.failpoints.pause_operation(op, "hangDropCollectionBeforeLockAcquisition", &ns).await?;
    let dropped = drop_collection(node, op, &ns, false).await?;
    Ok(dropped.map_or_else(Document::new, |indexes| dropped_reply(&ns, indexes)))
}

/// What `drop` replies of something that was there. A collection has at least one index; a view has none.
pub fn dropped_reply(ns: &str, indexes: usize) -> Document {
    match indexes {
        0 => doc! { "ns": ns },
        _ => doc! { "nIndexesWas": indexes as i32, "ns": ns },
    }
}

/// Drops a collection or view; answers how many indexes it had, `None` when there was nothing.
pub async fn drop_collection(
    node: &Node,
    op: &Operation,
    ns: &str,
    from_migrate: bool,
) -> Result<Option<usize>> {
    drop_if(node, op, ns, from_migrate, |_| true).await
}

/// Drops what was made with `temp`, for as long as one primary leads: whoever used it has lost it with that one.
///
/// # Errors
/// A failed log, the end of the reign.
pub async fn drop_temporary(node: &Node) -> Result<()> {
    let op = Operation::internal();
    for slot in node.namespaces.all() {
        let uuid = {
            let state = slot.read_unchecked();
            let temporary =
                state.collection.as_ref().filter(|c| c.meta().options.get_bool("temp") == Some(true));
            temporary.map(|c| c.uuid())
        };
        if uuid.is_some() {
            drop_if(node, &op, &slot.ns, false, |found| found == uuid).await?;
        }
    }
    Ok(())
}

/// As [`drop_collection`], if `wanted` accepts the collection's UUID, asked under the latch. A view has none.
pub async fn drop_if(
    node: &Node,
    op: &Operation,
    ns: &str,
    from_migrate: bool,
    wanted: impl Fn(Option<[u8; 16]>) -> bool,
) -> Result<Option<usize>> {
    if ns == TRANSACTIONS && node.is_any_prepared(document::Timestamp::MAX) {
        bail!(PREPARED_TRANSACTION_IN_PROGRESS, "{ns} cannot be dropped while a transaction is prepared");
    }
    let slot = node.namespaces.slot(ns);
    loop {
        let buckets = buckets_beside(node, &slot);
        let mut slots: Vec<&Slot> = std::iter::once(&*slot).chain(buckets.as_deref()).collect();
        slots.sort_unstable_by_key(|slot| slot.ns.as_str());
        let dropped = node
            .locked(op, &slots, || match same_slot(&buckets, &buckets_beside(node, &slot)) {
                true => drop_locked(node, op, (&slot, buckets.as_deref()), from_migrate, &wanted)
                    .map(|dropped| dropped.map(Some)),
                // Another was made of this name before the locks were taken.
                false => Ok(Met::Data(None)),
            })
            .await?;
        let Some(Dropped { found, collection }) = dropped else { continue };
        if let Some(collection) = &collection {
            node.forget_dropped(collection.uuid(), collection.ns());
        }
        // The trees are freed here, outside the latches.
        return Ok(found.then(|| collection.map_or(0, |c| c.indexes_beside())));
    }
}

/// The buckets that go with a namespace: those of a time series, or what is left of one whose create or `$out` was cut
/// off before there was a view.
fn buckets_beside(node: &Node, slot: &Slot) -> Option<Arc<Slot>> {
    let (view, is_collection) = {
        let state = slot.read_unchecked();
        (state.view.clone(), state.collection.is_some())
    };
    let (db, name) = split_namespace(&slot.ns);
    let own = format!("{BUCKETS_PREFIX}{name}");
    let goes = view.map_or(!is_collection, |view| timeseries::is_series(&view) && view.on == own);
    if !goes || name.starts_with(BUCKETS_PREFIX) {
        return None;
    }
    // Looking makes no slot: a database that is dropped again and again would gain names.
    let buckets = node.namespaces.existing(&format!("{db}.{own}"))?;
    let filled = buckets.read_unchecked().collection.is_some();
    filled.then_some(buckets)
}

fn same_slot(a: &Option<Arc<Slot>>, b: &Option<Arc<Slot>>) -> bool {
    a.as_ref().map(|slot| &slot.ns) == b.as_ref().map(|slot| &slot.ns)
}

/// What a drop has found, and the collection it took out, of a time series that of its buckets.
struct Dropped {
    found: bool,
    collection: Option<Collection>,
}

/// Drops a namespace and the buckets beside it in one commit. The caller holds the intent locks.
fn drop_locked(
    node: &Node,
    op: &Operation,
    (slot, buckets): (&Slot, Option<&Slot>),
    from_migrate: bool,
    wanted: impl Fn(Option<[u8; 16]>) -> bool,
) -> Result<Met<Dropped>> {
    let take = |unit: &mut WriteUnit<'_>| {
        let collection = unit.state.uninstall();
        collection.iter().for_each(|c| log_drop(unit, c, from_migrate));
        collection
    };
    if slot.read_unchecked().view.is_some() {
        if !wanted(None) {
            return Ok(Met::Data(Dropped { found: false, collection: None }));
        }
        let removed = crate::view::remove(node, op, slot, buckets, take)?;
        return Ok(removed.map(|collection| Dropped { found: true, collection }));
    }
    let slot = buckets.unwrap_or(slot);
    slot.write_or_section(&node.gate, &op.received, |state| {
        let (collection, _) = node.write_unit(op, slot, state, |unit| {
            let unwanted = unit.collection().is_some_and(|c| !wanted(Some(c.uuid())));
            Ok(if unwanted { None } else { take(unit) })
        })?;
        Ok(Dropped { found: collection.is_some(), collection })
    })
}

fn log_drop(unit: &mut WriteUnit<'_>, c: &Collection, from_migrate: bool) {
    let o = doc! { "drop": c.meta().name() };
    unit.command(Some(c.uuid()), o, Some(doc! { "numRecords": c.len() as i64 }), from_migrate);
}

/// Runs a `dropDatabase` command.
pub async fn drop_database(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let db = request.db;
    if db == "admin" {
        bail!(ILLEGAL_OPERATION, "Dropping the 'admin' database is prohibited.");
    }
    if matches!(db, "local" | "config") && node.is_replica_set() {
        bail!(ILLEGAL_OPERATION, "Cannot drop '{db}' database while replication is active");
    }
    drop_database_named(node, op, db, false).await?;
    Ok(Document::new())
}

/// Drops every collection of a database and says so in the log; false when there was none.
pub async fn drop_database_named(node: &Node, op: &Operation, db: &str, from_migrate: bool) -> Result<bool> {
    let mut existed = false;
    loop {
        for slot in node.namespaces.of_database(db) {
            existed |= drop_collection(node, op, &slot.ns, from_migrate).await?.is_some();
        }
        for point in ["dropDatabaseHangAfterAllCollectionsDrop", "dropDatabaseHangBeforeLog"] {
            node.failpoints.pause_operation(op, point, "").await?;
        }
        if !existed || log_database_drop(node, op, db, from_migrate).await? {
            return Ok(existed);
        }
        // Somebody has created a collection in between.
        op.check_interrupt()?;
    }
}

/// What a database holds at one moment: its collections by UUID, its views by name.
pub struct Contents(Vec<(String, Option<[u8; 16]>)>);

/// Lists what a database holds.
pub fn contents_of(node: &Node, db: &str) -> Contents {
    let listed = node.namespaces.of_database(db).into_iter().filter_map(|slot| {
        let state = slot.read_unchecked();
        let uuid = state.collection.as_ref().map(|c| c.uuid());
        (uuid.is_some() || state.view.is_some()).then(|| (slot.ns.clone(), uuid))
    });
    Contents(listed.collect())
}

/// Drops what was listed and nothing that was made since; says in the log that the database is gone when nothing is left.
pub async fn drop_contents(
    node: &Node,
    op: &Operation,
    db: &str,
    contents: &Contents,
    from_migrate: bool,
) -> Result<()> {
    let mut existed = false;
    for (ns, uuid) in &contents.0 {
        existed |= drop_if(node, op, ns, from_migrate, |found| found == *uuid).await?.is_some();
    }
    if existed {
        log_database_drop(node, op, db, from_migrate).await?;
    }
    Ok(())
}

/// Logs that a database is gone; false when it is not. Replay drops what is there at this entry, so nothing may be.
async fn log_database_drop(node: &Node, op: &Operation, db: &str, from_migrate: bool) -> Result<bool> {
    let o = doc! { "dropDatabase": 1 }.to_doc_buf();
    let ns = format!("{db}.$cmd");
    node.exclusively(op, || {
        node.check_may_log(&ns)?;
        node.check_user_writes(op, &ns)?;
        if node.namespaces.of_database(db).iter().any(|s| s.read_unchecked().collection.is_some()) {
            return Ok(false);
        }
        let draft = Draft { from_migrate, ..Draft::new(Op::Command, &ns, None) };
        node.note_commit(op, &node.append_entry(&draft, o.doc()));
        Ok(true)
    })
    .await
}
