//! createIndexes, dropIndexes, and listing of indexes.
//!
//! A small collection is indexed inside one commit. A larger one is indexed while writes go on: the build scans a
//! snapshot, catches up by tree differences, and is published under the latch with the last of them. Before it is published
//! a client's build waits for its commit quorum ([`super::commit_quorum`]). A fail point of [`super::index_builds`] makes a small collection
//! be indexed like a large one.

use super::commit_quorum::Quorum;
use super::index_builds::{Build, Stage, points};
use super::index_spec::{check_spec, without_unknown};
use crate::namespace::Slot;
use crate::{Node, Operation, Request};
use document::{Collation, Document, Result, Value, bail, codes, doc, err};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use storage::index::SpecConflict;
use storage::{Collection, CollectionMeta, CollectionSnapshot, IndexBuild, IndexSpec, split_namespace};

/// Up to this many documents an index is built inside the commit that publishes it.
const BUILD_AT_ONCE_MAX: usize = 1000;
/// Documents scanned between two looks at interrupts and other tasks.
const SCAN_SLICE: usize = 500;
/// How often a build that waits for members takes in what was written.
const CATCH_UP_EVERY: Duration = Duration::from_secs(1);

/// Runs a `createIndexes` command, which waits for members only if it says so.
pub async fn create_indexes(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    create_indexes_by(node, op, request, Quorum::NOBODY).await
}

/// Runs a `createIndexes` command, with the quorum that counts where it names none.
///
/// # Errors
/// Those of a quorum that cannot be, and of building.
pub async fn create_indexes_by(
    node: &Node,
    op: &Operation,
    request: Request<'_>,
    default: Quorum,
) -> Result<Document> {
    let given = request.body.get_present("commitQuorum").map(Quorum::parse).transpose()?;
    let (slot, specs) = asked(node, op, request)?;
    if !node.is_replica_set() || op.transaction().is_some() {
        return build_indexes(node, op, &slot, &specs, false).await;
    }
    let quorum = given.unwrap_or(default);
    node.check_commit_quorum(&quorum)?;
    let mut reply = build_all(node, op, &slot, &specs, false, &quorum).await?;
    if reply.get("note").is_none() {
        reply.push("commitQuorum", quorum.shown());
    }
    Ok(reply)
}

/// The reply to a `createIndexes` command that has nothing to build; `None` for one that has, and for one that is refused.
pub fn nothing_to_build(node: &Node, op: &Operation, request: Request<'_>) -> Option<Document> {
    let (slot, specs) = asked(node, op, request).ok()?;
    let default = slot.collation();
    let state = slot.read_unchecked();
    let c = state.collection.as_ref()?;
    let is_there = |spec: &Document| -> Result<bool> {
        check_spec(spec)?;
        let spec = whole_seconds(inheriting(spec, &default)?);
        Ok(c.check_index(&check_spec(&spec)?)? == SpecConflict::Identical)
    };
    let all = specs.iter().all(|spec| is_there(spec).unwrap_or(false));
    all.then(|| built(false, c.indexes_beside(), c.indexes_beside()))
}

/// The collection and the specifications that a `createIndexes` command names.
fn asked(node: &Node, op: &Operation, request: Request<'_>) -> Result<(Arc<Slot>, Vec<Document>)> {
    let ns = request.namespace()?;
    crate::write::statement::check_changeable(&ns)?;
    if ns.ends_with(".system.views") {
        bail!(CANNOT_CREATE_INDEX, "Cannot create indexes on {ns}");
    }
    node.check_write_concern(op)?;
    let lenient = request.body.get_bool("ignoreUnknownIndexOptions") == Some(true);
    let specs = request.documents("indexes").map(|d| d.to_document());
    let specs: Vec<Document> =
        specs.map(|spec| if lenient { without_unknown(&spec) } else { spec }).collect();
    if specs.is_empty() {
        bail!(BAD_VALUE, "Must specify at least one index to create");
    }
    if specs.iter().any(|spec| spec.contains_key("key") && spec.get_present("name").is_none()) {
        bail!(FAILED_TO_PARSE, "The 'name' field is a required property of an index specification");
    }
    if ns == "config.transactions" {
        bail!(ILLEGAL_OPERATION, "not allowed to create index on config.transactions");
    }
    let slot = node.namespaces.slot(&ns);
    node.check_uuid(request.body, &slot)?;
    if specs.iter().any(|s| s.get("clustered").is_some_and(Value::truthy)) {
        super::clustered::check_index(&specs, &slot)?;
    }
    if let Some(series) = crate::timeseries::of(node, &slot) {
        let specs = crate::timeseries::ddl::bucket_specs(&specs, &series.options)?;
        return Ok((series.buckets, specs));
    }
    Ok((slot, specs))
}

/// Builds what is not there yet, waiting for no other member; answers createIndexes' reply.
pub async fn build_indexes(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    specs: &[Document],
    from_migrate: bool,
) -> Result<Document> {
    build_all(node, op, slot, specs, from_migrate, &Quorum::NOBODY).await
}

/// Boxed where it is compiled once, and not in each crate that waits for it.
fn build_all<'a>(
    node: &'a Node,
    op: &'a Operation,
    slot: &'a Slot,
    specs: &'a [Document],
    from_migrate: bool,
    quorum: &'a Quorum,
) -> BoxFuture<'a, Result<Document>> {
    Box::pin(build_each(node, op, slot, specs, from_migrate, quorum))
}

async fn build_each(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    specs: &[Document],
    from_migrate: bool,
    quorum: &Quorum,
) -> Result<Document> {
    specs.iter().try_for_each(|spec| check_spec(spec).map(drop))?;
    let (created, before) = ensure_collection(node, op, slot, from_migrate).await?;
    let default = slot.collation();
    let collection = slot.read_unchecked().collection.as_ref().map(|c| c.uuid()).unwrap_or_default();
    let names = specs.iter().filter_map(|spec| spec.get_str("name").map(str::to_string)).collect();
    let reigns = node.replication.commit.reigns();
    let build = node.index_builds.register(node.new_uuid(), collection, names, quorum.clone(), reigns);
    node.failpoints.pause_operation(op, points::BEFORE_STARTING, &slot.ns).await?;
    for spec in specs {
        let spec = whole_seconds(inheriting(spec, &default)?);
        build_index(node, op, slot, check_spec(&spec)?, &spec, &build).await?;
    }
    let after = slot.read(op, |s| Ok(s.collection.as_ref().map_or(0, |c| c.indexes_beside()))).await?;
    Ok(built(created, before, after))
}

fn built(created: bool, before: usize, after: usize) -> Document {
    let mut reply = doc! { "numIndexesBefore": before as i32, "numIndexesAfter": after as i32 };
    reply.push("createdCollectionAutomatically", created);
    if before == after {
        reply.push("note", "all indexes already exist");
    }
    reply
}

/// The specification with `expireAfterSeconds` as it is kept: an int, cut.
fn whole_seconds(mut spec: Document) -> Document {
    if let Some(seconds) = spec.get("expireAfterSeconds").and_then(document::number::as_f64) {
        spec.insert("expireAfterSeconds", seconds as i32);
    }
    spec
}

/// The specification with the collection's collation where it names none.
///
/// # Errors
/// BadValue (2) for an index on `_id` with another collation than the collection, CannotCreateIndex (67) for one on a plane with
/// any but the simple.
fn inheriting(spec: &Document, default: &Collation) -> Result<Document> {
    let on_plane = spec.get_document("key").is_some_and(|k| k.iter().any(|(_, v)| v.as_str() == Some("2d")));
    let check_plane = |collation: &Collation| match collation.document() {
        Some(full) if on_plane => {
            bail!(
                CANNOT_CREATE_INDEX,
                "Index type '2d' does not support collation: {}",
                document::shell::document(full)
            )
        }
        _ => Ok(()),
    };
    let Some(own) = spec.get_document("collation") else {
        let mut spec = spec.clone();
        if let Some(full) = default.document() {
            check_plane(default)?;
            spec.push("collation", full.clone());
        }
        return Ok(spec);
    };
    let own = Collation::of_document(own)?;
    check_plane(&own)?;
    let on_id = spec
        .get_document("key")
        .is_some_and(|k| k.keys().eq(["_id"]) && k.iter().all(|(_, v)| v.is_number()));
    if on_id && own != *default {
        bail!(
            BAD_VALUE,
            "The _id index must have the same collation as the collection. Index collation: {}, collection collation: {}",
            shown(&own),
            shown(default)
        );
    }
    Ok(spec.clone())
}

/// A collation as messages show it.
fn shown(collation: &Collation) -> String {
    collation
        .document()
        .map_or_else(|| document::shell::document(&doc! { "locale": "simple" }), document::shell::document)
}

/// The definition of an index for a collection whose default may differ: it names even the simple collation.
pub fn complete(spec: &IndexSpec) -> Document {
    let mut out = spec.document().clone();
    if spec.collation().is_simple() {
        out.push("collation", doc! { "locale": "simple" });
    }
    out
}

async fn ensure_collection(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    from_migrate: bool,
) -> Result<(bool, usize)> {
    let (out, _) = node
        .write(op, slot, |unit| {
            if unit.state.view.is_some() {
                bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Cannot create indexes on a view");
            }
            let created = unit.collection().is_none();
            if created {
                unit.claim_namespace()?;
                let meta = CollectionMeta::new(unit.slot.ns.clone(), node.new_uuid());
                unit.create_collection(meta, from_migrate);
            }
            Ok((created, unit.existing()?.indexes_beside()))
        })
        .await?;
    Ok(out)
}

async fn build_index(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    spec: IndexSpec,
    document: &Document,
    registered: &Build,
) -> Result<()> {
    let stage = Stage { node, op, slot, build: registered };
    let watched = stage.is_watched() && op.transaction().is_none();
    let mut has_waited = false;
    let build = loop {
        let (build, is_new) = slot
            .read(op, |s| {
                let c = s
                    .collection
                    .as_ref()
                    .ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns does not exist: {}", slot.ns))?;
                let at_once = c.is_empty() || (c.len() <= BUILD_AT_ONCE_MAX && !watched);
                if at_once || op.transaction().is_some() {
                    // A collection without documents gives no member anything to do.
                    let is_new = c.check_index(&spec).is_ok_and(|found| found != SpecConflict::Identical);
                    Ok((None, is_new && !c.is_empty()))
                } else {
                    Ok((
                        Some(IndexBuild::start(c, spec.clone(), node.offered_keys())?.map(|b| (b, c.len()))),
                        true,
                    ))
                }
            })
            .await?;
        // While it waits a small collection may become a large one, which is not to be read under the latch.
        if build.is_some() || !is_new || has_waited {
            break build;
        }
        node.await_commit_quorum(op, registered).await.map_err(|e| registered.failed(&slot.ns, e))?;
        has_waited = true;
    };
    match build {
        None => build_at_once(&stage, &spec, document).await,
        Some(None) => Ok(()),
        Some(Some((build, records))) => {
            registered.begin(document.clone());
            let done = build_beside_writes(&stage, build, records as u64, has_waited).await;
            op.show_progress(None);
            if done.is_err() {
                node.failpoints.pause_while_set(points::BEFORE_CLEAN_UP).await;
            }
            done.map_err(|error| registered.failed(&slot.ns, error))
        }
    }
}

/// Builds the index in the commit that publishes it.
async fn build_at_once(stage: &Stage<'_>, spec: &IndexSpec, document: &Document) -> Result<()> {
    let Stage { node, op, slot, build } = stage;
    let build_here = |unit: &mut crate::write::unit::WriteUnit<'_>| {
        build.check()?;
        let fits = unit.existing().and_then(|c| c.check_index(spec)).is_ok();
        // A definition that does not go with the others is refused before anything is built.
        let told = |error| if fits { build.failed(&slot.ns, error) } else { error };
        unit.create_index_from(document.clone()).map_err(told)
    };
    node.change(op, slot, build_here).await?;
    Ok(())
}

async fn build_beside_writes(
    stage: &Stage<'_>,
    mut build: IndexBuild,
    records: u64,
    has_waited: bool,
) -> Result<()> {
    let Stage { node, op, slot, build: registered } = *stage;
    stage.pass(&points::SET_UP).await?;
    stage.show_scan(0, records);
    stage.pass(&points::STARTED).await?;
    let mut scanned = 0;
    while !build.scan(SCAN_SLICE)? {
        scanned += SCAN_SLICE as u64;
        stage.show_scan(scanned.min(records), records);
        op.check_interrupt()?;
        registered.check()?;
        tokio::task::yield_now().await;
    }
    stage.show_scan(records, records);
    stage.pass(&points::SCANNED).await?;
    stage.show_drain();
    build.catch_up(snapshot(op, slot).await?)?;
    stage.pass(&points::FIRST_DRAIN).await?;
    if !has_waited {
        await_quorum_catching_up(node, op, slot, registered, &mut build).await?;
    }
    // Two rounds outside the latch leave little for the one under it.
    build.catch_up(snapshot(op, slot).await?)?;
    tokio::task::yield_now().await;
    stage.pass(&points::SECOND_DRAIN).await?;
    node.change(op, slot, |unit| {
        stage.may_commit()?;
        let mut o = doc! { "createIndexes": split_namespace(&slot.ns).1 };
        for (name, value) in build.spec().document().iter() {
            o.push(name, value.clone());
        }
        let Some(c) = unit.state.collection.as_mut() else {
            bail!(INDEX_BUILD_ABORTED, "collection dropped")
        };
        let uuid = c.uuid();
        build.finish(c)?;
        unit.command(Some(uuid), o, None, false);
        Ok(())
    })
    .await?;
    Ok(())
}

/// Waits for the members, and takes in meanwhile what is written, so that little is left when they have come.
async fn await_quorum_catching_up(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    registered: &Build,
    build: &mut IndexBuild,
) -> Result<()> {
    let mut waiting = std::pin::pin!(node.await_commit_quorum(op, registered));
    loop {
        tokio::select! {
            met = &mut waiting => return met,
            () = tokio::time::sleep(CATCH_UP_EVERY) => build.catch_up(snapshot(op, slot).await?).map(drop)?,
        }
    }
}

async fn snapshot(op: &Operation, slot: &Slot) -> Result<CollectionSnapshot> {
    let dropped = || err!(INDEX_BUILD_ABORTED, "collection dropped");
    slot.read(op, |s| s.collection.as_ref().map(|c| c.snapshot()).ok_or_else(dropped)).await
}

/// Runs a `dropIndexes` command.
pub async fn drop_indexes(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    let slot = node.namespaces.slot(&ns);
    let Some(index) = request.body.get("index").map(|v| v.to_value()) else {
        bail!(IDL_FAILED_TO_PARSE, "BSON field 'dropIndexes.index' is missing but a required field")
    };
    node.check_uuid(request.body, &slot)?;
    if let Some(series) = crate::timeseries::of(node, &slot) {
        let index = crate::timeseries::ddl::bucket_index(&index, &series.options)?;
        return drop_indexes_named(node, op, &series.buckets, &index).await;
    }
    drop_indexes_named(node, op, &slot, &index).await
}

/// Drops the index or indexes that `index` names: a name, `"*"`, a key pattern, a list of names.
/// Those that are being built are ended.
pub async fn drop_indexes_named(node: &Node, op: &Operation, slot: &Slot, index: &Value) -> Result<Document> {
    let collection = slot.read_unchecked().collection.as_ref().map(|c| (c.uuid(), c.indexes_beside()));
    let Some((uuid, before)) = collection else {
        return drop_ready_indexes(node, op, slot, index, &[]).await;
    };
    let ended = node.index_builds.drop_begun(op, uuid, index).await?;
    match drop_ready_indexes(node, op, slot, index, &ended).await {
        // What was being built never came to be.
        Err(error)
            if error.code == codes::INDEX_NOT_FOUND
                && !ended.is_empty()
                && !matches!(index, Value::Array(_)) =>
        {
            Ok(doc! { "nIndexesWas": (before + ended.len()) as i32 })
        }
        done => done,
    }
}

/// The indexes that are named beside those of the names `ended` that never came to be. Some of a build are ready before others, or
/// before it is ended.
fn without(collection: &Collection, index: &Value, ended: &[String]) -> Value {
    let Value::Array(list) = index else { return index.clone() };
    let is_ready = |name: &str| collection.indexes().iter().any(|i| i.spec().name() == name);
    let is_gone =
        |v: &Value| v.as_str().is_some_and(|name| ended.iter().any(|e| e == name) && !is_ready(name));
    Value::Array(list.iter().filter(|v| !is_gone(v)).cloned().collect())
}

async fn drop_ready_indexes(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    index: &Value,
    ended: &[String],
) -> Result<Document> {
    let (reply, _) = node
        .change(op, slot, |unit| {
            let ns = unit.slot.ns.clone();
            if unit.state.view.is_some() {
                bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Cannot drop indexes on view '{ns}'");
            }
            let c = unit
                .state
                .collection
                .as_ref()
                .ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns not found {ns}"))?;
            let (uuid, before) = (c.uuid(), c.indexes_beside());
            let names = names_of(c, &without(c, index, ended))?;
            for name in &names {
                let Some(c) = unit.state.collection.as_mut() else { break };
                let spec = c.drop_index(name)?;
                node.index_use.forget_index(&ns, name);
                let o = doc! { "dropIndexes": split_namespace(&ns).1, "index": name.as_str() };
                unit.command(Some(uuid), o, Some(spec.document().clone()), false);
            }
            let mut reply = doc! { "nIndexesWas": before as i32 };
            if index.as_str() == Some("*") {
                reply.push("msg", "non-_id indexes dropped for collection");
            }
            Ok(reply)
        })
        .await?;
    Ok(reply)
}

/// Refuses what [`drop_indexes_named`] would refuse of a collection.
pub fn check_droppable(slot: &Slot, index: &Value) -> Result<()> {
    let state = slot.read_unchecked();
    state.collection.as_ref().map_or(Ok(()), |c| names_of(c, index).map(drop))
}

fn names_of(c: &storage::Collection, index: &Value) -> Result<Vec<String>> {
    let others = || c.indexes().iter().map(|i| i.spec()).filter(|s| !s.is_id());
    let clustered = c.indexes().first().map(|i| i.spec()).filter(|s| s.is_clustered());
    let checked = |name: &str| {
        if clustered.is_some_and(|s| s.shown_name() == name) {
            bail!(5979800, "It is illegal to drop the clusteredIndex");
        }
        if name == "_id_" && clustered.is_none() {
            bail!(INVALID_OPTIONS, "cannot drop _id index");
        }
        match others().find(|s| s.name() == name) {
            Some(_) => Ok(name.to_string()),
            None => bail!(INDEX_NOT_FOUND, "index not found with name [{name}]"),
        }
    };
    match index {
        Value::Array(list) if matches!(list.as_slice(), [Value::String(s)] if s == "*") => {
            Ok(others().map(|s| s.name().to_string()).collect())
        }
        Value::String(s) if s == "*" => Ok(others().map(|s| s.name().to_string()).collect()),
        Value::String(name) => Ok(vec![checked(name)?]),
        Value::Array(list) => list
            .iter()
            .map(|v| {
                v.as_str()
                    .ok_or_else(|| err!(TYPE_MISMATCH, "dropIndexes: names must be strings"))
                    .and_then(checked)
            })
            .collect(),
        Value::Document(pattern) => {
            let of_id = pattern.len() == 1 && pattern.contains_key("_id");
            if of_id && clustered.is_some() {
                bail!(5979800, "It is illegal to drop the clusteredIndex");
            }
            if of_id {
                bail!(INVALID_OPTIONS, "cannot drop _id index");
            }
            let found: Vec<String> = others()
                .filter(|s| {
                    document::compare::compare_docs(s.key().to_doc_buf().doc(), pattern.to_doc_buf().doc())
                        .is_eq()
                })
                .map(|s| s.name().to_string())
                .collect();
            match found.as_slice() {
                [] => bail!(INDEX_NOT_FOUND, "can't find index with key: {}", document::shell::value(index)),
                [_] => Ok(found),
                _ => bail!(
                    AMBIGUOUS_INDEX_KEY_PATTERN,
                    "{} indexes found for key: {}, identify by name instead.",
                    found.len(),
                    document::shell::value(index)
                ),
            }
        }
        other => {
            Err(document::wrong_types("dropIndexes.index", other.type_name(), "[string, array, object]"))
        }
    }
}
