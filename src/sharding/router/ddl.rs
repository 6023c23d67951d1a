//! Commands that change what exists: to the primary of the database, whose coordinator does the work, or to the config
//! server.
//!
//! A command that concerns metadata of the whole cluster has an internal form (`_shardsvr..`, `_configsvr..`), sent with
//! the database's version and majority write concern. What concerns an unsharded collection alone is sent as it is.

use super::body::{ArrayBuilder, Placement, ok_reply, strip_times};
use super::cluster::{Call, database_of};
use super::single;
use super::target;
use super::task::{ATTEMPTS_MAX, Repeat, Retry, Task};
use super::timeseries::{self, Series};
use super::{scatter, shapes};
use crate::chunk::{Chunk, ShardId};
use crate::config::dedicated::CONFIG_SHARD;
use crate::messages::chunks::{ClearJumboFlag, RequestMove, ShardMergeChunks};
use crate::messages::ddl::CreateDatabase;
use crate::messages::{Flag, Message};
use crate::routing::RoutingTable;
use crate::shard::ddl::repeated::REQUEST_ID;
use crate::shard::migration::throttle_of;
use document::{DocBuf, Document, Result, Value, ValueRef, bail, codes, doc, err, wrong_type};
use futures::future::join_all;
use node::Request;
use node::generic::is_generic;
use query::QueryContext;
use query::timeseries::indexes;
use runtime::Instant;
use std::sync::Arc;
use wire::client::CallResult;

/// The client's own fields, without the command's name and without generic ones.
fn own_fields(task: &Task<'_>) -> Document {
    task.body()
        .iter()
        .skip(1)
        .filter(|e| (e.name() == "comment" || !is_generic(e.name())) && e.tag() != 0x0A)
        .map(|e| (e.name().to_string(), e.value().to_value()))
        .collect()
}

/// An internal command named `name` with this argument and the client's own fields.
pub(super) fn internal(task: &Task<'_>, name: &str, argument: impl Into<Value>) -> Document {
    let mut command = Document::new();
    command.push(name, argument);
    command.0.extend(own_fields(task));
    command
}

/// Runs an internal command on the primary of database `db`, addressed to database `on`. `None`: there is no such database. Where the
/// shard's primary changes meanwhile the next one is asked, under the same name, and gives the outcome of what it has taken up.
pub(super) async fn on_primary(
    task: &Task<'_>,
    db: &str,
    on: &str,
    command: Document,
) -> Result<Option<DocBuf>> {
    let mut command = command;
    command.insert("writeConcern", doc! { "w": "majority" });
    command.insert(REQUEST_ID, Value::uuid(runtime::uuid()));
    let mut retry = Retry::default();
    loop {
        let Some(placement) = task.placement(&format!("{db}.")).await? else { return Ok(None) };
        let body = task.own(&command, on, &placement.database_versions());
        match task.change(&placement.primary, &body).await {
            Ok(reply) => return Ok(Some(reply)),
            Err(e) => retry.absorb(task, db, e).await?,
        }
    }
}

/// The namespace in a command's first field, given in full (`"db.c"`).
///
/// # Errors
/// InvalidNamespace (73).
pub fn full_namespace(task: &Task<'_>) -> Result<String> {
    match task.request.argument() {
        Some(ValueRef::String(ns)) => match ns.split_once('.') {
            Some((db, collection)) => {
                node::request::check_collection_name(db, collection)?;
                Ok(ns.to_string())
            }
            None => bail!(INVALID_NAMESPACE, "Invalid namespace specified '{ns}'"),
        },
        Some(v) => bail!(
            TYPE_MISMATCH,
            "BSON field '{0}.{0}' is the wrong type '{1}', expected type 'string'",
            task.request.name(),
            v.type_name()
        ),
        None => bail!(INVALID_NAMESPACE, "a namespace is required"),
    }
}

fn database_argument(task: &Task<'_>) -> Result<String> {
    match task.request.argument() {
        Some(ValueRef::String(db)) => {
            node::request::check_database_name(db)?;
            Ok(db.to_string())
        }
        _ => bail!(INVALID_NAMESPACE, "{} must be given the name of a database", task.request.name()),
    }
}

fn string<'a>(task: &Task<'a>, name: &str) -> Result<&'a str> {
    match task.get(name) {
        Some(ValueRef::String(s)) => Ok(s),
        Some(v) => Err(wrong_type(&field_of(task, name), v.type_name(), "string")),
        None => bail!(
            IDL_FAILED_TO_PARSE,
            "BSON field '{}.{name}' is missing but a required field",
            task.request.name()
        ),
    }
}

/// A field of the client's command, as errors name it.
fn field_of(task: &Task<'_>, name: &str) -> String {
    format!("{}.{name}", task.request.name())
}

fn bound(task: &Task<'_>, name: &str) -> Option<Document> {
    task.get(name).and_then(|v| v.as_document()).map(|d| d.to_document())
}

/// `create`: an unsharded collection or a view on the primary.
pub async fn create(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let as_series = task.get("timeseries").is_some();
    let mut retry = Retry::default();
    loop {
        let placement = task.placement_for_write(&ns).await?;
        if placement.table.is_some() || (as_series && timeseries::sharded(task, &ns).await?.is_some()) {
            bail!(NAMESPACE_EXISTS, "namespace {ns} already exists, but is sharded");
        }
        if let Some(reply) = try_as_it_is(task, &ns, &mut retry).await? {
            return Ok(reply);
        }
    }
}

/// The client's command, as it is, to the primary of an unsharded namespace, creating the database if need be.
async fn as_it_is(task: &Task<'_>, ns: &str) -> Result<DocBuf> {
    let mut retry = Retry::default();
    loop {
        if let Some(reply) = try_as_it_is(task, ns, &mut retry).await? {
            return Ok(reply);
        }
    }
}

/// One attempt of [`as_it_is`]; `None` when something it was sent by was stale. That may be the placement of a time series' buckets, which
/// another router has sharded: whoever tells such a series apart asks again.
async fn try_as_it_is(task: &Task<'_>, ns: &str, retry: &mut Retry) -> Result<Option<DocBuf>> {
    let placement = task.placement_for_write(ns).await?;
    let shard = placement.home().clone();
    let body = task.forward(&[], &placement.versions(&shard), |_| {});
    // A repetition would not find the index that the first attempt has dropped.
    let sent = match task.request.name() {
        "dropIndexes" | "deleteIndexes" => task.write(&shard, &body).await,
        _ => task.change(&shard, &body).await,
    };
    match sent {
        Ok(reply) => Ok(Some(reply)),
        Err(e) => retry.absorb(task, ns, e).await.map(|()| None),
    }
}

/// `createIndexes`: by the coordinator where the collection is sharded.
pub async fn create_indexes(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let (db, collection) = ns.split_once('.').unwrap_or((&ns, ""));
    let (mut retry, mut vanished) = (Retry::default(), 0);
    while vanished < ATTEMPTS_MAX {
        let placement = task.placement_for_write(&ns).await?;
        if placement.table.is_none() && placement.alone.is_none() {
            if let Some(series) = timeseries::sharded(task, &ns).await? {
                return create_indexes_of_series(task, &series).await;
            }
            match try_as_it_is(task, &ns, &mut retry).await? {
                Some(reply) => return Ok(reply),
                None => continue,
            }
        }
        if task.in_transaction() {
            // Each shard refuses what it does not have yet; a coordinator would wait for the transaction to end.
            match on_owners(task, &placement).await {
                Ok(replies) => return raw_reply(task, replies).await,
                Err(e) => retry.absorb(task, &ns, e).await?,
            }
            continue;
        }
        let command = with_sequences(task, internal(task, "_shardsvrCreateIndexes", collection));
        match on_primary(task, db, db, command).await {
            Ok(Some(reply)) => return Ok(strip_times(reply.doc())),
            // Not tracked any more, or gone with its database.
            Ok(None) => {}
            Err(e) if e.code == codes::NAMESPACE_NOT_SHARDED => {}
            Err(e) => return Err(e),
        }
        task.router.cluster.forget(Some(&ns));
        vanished += 1;
    }
    bail!(CONFLICTING_OPERATION_IN_PROGRESS, "the placement of {ns} kept changing")
}

/// `createIndexes` of a sharded time series: those of its buckets.
async fn create_indexes_of_series(task: &Task<'_>, series: &Series) -> Result<DocBuf> {
    let (db, buckets) = series.buckets.split_once('.').unwrap_or((&series.buckets, ""));
    let mut command = with_sequences(task, internal(task, "_shardsvrCreateIndexes", buckets));
    let specs = command.get_array("indexes").into_iter().flatten().filter_map(Value::as_document);
    let specs: Vec<Document> =
        specs.map(|spec| indexes::bucket_spec(spec, &series.options)).collect::<Result<_>>()?;
    command.insert("indexes", specs);
    match on_primary(task, db, db, command).await? {
        Some(reply) => Ok(strip_times(reply.doc())),
        None => bail!(NAMESPACE_NOT_FOUND, "ns does not exist: {}", series.buckets),
    }
}

/// `setIndexCommitQuorum`: on every shard that builds the indexes.
pub async fn set_index_commit_quorum(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    match task.placement(&ns).await? {
        Some(placement) => raw_reply(task, on_owners(task, &placement).await?).await,
        None => bail!(NAMESPACE_NOT_FOUND, "Collection '{ns}' was not found."),
    }
}

/// The command with what the client sent as document sequences in its place.
fn with_sequences(task: &Task<'_>, mut command: Document) -> Document {
    for (name, _) in task.request.sequences {
        let documents: Vec<Document> = task.request.documents(name).map(|d| d.to_document()).collect();
        command.insert(*name, documents);
    }
    command
}

fn text(d: &Document) -> String {
    document::shell::document(d)
}

/// The client's command on every shard that owns a chunk; each is asked though another fails.
async fn on_owners(task: &Task<'_>, placement: &Placement) -> Result<Vec<(ShardId, DocBuf)>> {
    let shards = placement.shards();
    let sent = shards.iter().map(|shard| async move {
        let body = task.forward(&[], &placement.versions(shard), |_| {});
        task.write(shard, &body).await.map(|reply| (shard.clone(), reply))
    });
    join_all(sent).await.into_iter().collect()
}

/// The first shard's reply, with everybody's under `raw`.
async fn raw_reply(task: &Task<'_>, replies: Vec<(ShardId, DocBuf)>) -> Result<DocBuf> {
    if replies.len() == 1 {
        return Ok(replies.into_iter().next().map(|(_, r)| r).unwrap_or_default());
    }
    let hosts = task.router.cluster.shards().await?;
    let mut reply = Document::new();
    let mut raw = Document::new();
    for (shard, r) in &replies {
        let members: Document = super::body::strip_times(r.doc()).to_document();
        if reply.is_empty() {
            reply
                .0
                .extend(members.iter().filter(|(n, _)| *n != "ok").map(|(n, v)| (n.to_string(), v.clone())));
        }
        let host = hosts.iter().find(|(name, _)| name == shard).map_or(&**shard, |(_, host)| host.as_str());
        raw.push(host, members);
    }
    reply.0.insert(0, ("raw".to_string(), Value::Document(raw)));
    Ok(ok_reply(reply))
}

/// `dropIndexes`, `collMod`: by the coordinator where the collection is sharded.
async fn changed_everywhere(task: &Task<'_>, internal_name: &str) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let mut retry = Retry::default();
    let placement = loop {
        let placement = task.placement(&ns).await?;
        if placement.as_ref().is_none_or(|p| p.table.is_some() || p.alone.is_some()) {
            break placement;
        }
        if let Some(series) = timeseries::sharded(task, &ns).await? {
            return buckets_changed(task, internal_name, &series).await;
        }
        if let Some(reply) = try_as_it_is(task, &ns, &mut retry).await? {
            return Ok(reply);
        }
    };
    let (db, collection) = ns.split_once('.').unwrap_or((&ns, ""));
    // The database may have been dropped since its placement was read.
    let reply = match placement {
        None => None,
        Some(_) => on_primary(task, db, db, internal(task, internal_name, collection)).await?,
    };
    reply.ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns does not exist: {ns}"))
}

/// The same of a sharded time series.
async fn buckets_changed(task: &Task<'_>, internal_name: &str, series: &Series) -> Result<DocBuf> {
    let (db, buckets) = series.buckets.split_once('.').unwrap_or((&series.buckets, ""));
    let mut command = internal(task, internal_name, buckets);
    if let Some(Value::Document(key)) = command.get("index")
        && !key.contains_key("keyPattern")
        && internal_name == "_shardsvrDropIndexes"
    {
        let key = indexes::bucket_key(key, &series.options)?;
        command.insert("index", key);
    }
    if internal_name == "_shardsvrCollMod" {
        command.insert("isTimeseriesNamespace", true);
    }
    let reply = on_primary(task, db, db, command).await?;
    reply.ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns does not exist: {}", series.buckets))
}

pub async fn drop_indexes(task: &Task<'_>) -> Result<DocBuf> {
    changed_everywhere(task, "_shardsvrDropIndexes").await
}
pub async fn coll_mod(task: &Task<'_>) -> Result<DocBuf> {
    changed_everywhere(task, "_shardsvrCollMod").await
}

/// `drop`.
pub async fn drop_collection(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let (db, collection) = ns.split_once('.').unwrap_or((&ns, ""));
    if super::cluster::is_config(&ns) {
        return as_it_is(task, &ns).await;
    }
    let reply = on_primary(task, db, db, internal(task, "_shardsvrDropCollection", collection)).await;
    forget_with_buckets(task, &ns);
    Ok(reply?.map_or_else(|| ok_reply(Document::new()), |r| super::body::strip_times(r.doc())))
}

/// A time series has its placement under another name.
pub(super) fn forget_with_buckets(task: &Task<'_>, ns: &str) {
    task.router.cluster.forget(Some(ns));
    if let Some(buckets) = timeseries::buckets_of(ns) {
        task.router.cluster.forget(Some(&buckets));
    }
}

/// `dropDatabase`.
pub async fn drop_database(task: &Task<'_>) -> Result<DocBuf> {
    let db = task.db();
    if document::is_internal_database(db) {
        bail!(ILLEGAL_OPERATION, "Cannot drop '{db}' database");
    }
    let reply = on_primary(task, db, db, internal(task, "_shardsvrDropDatabase", 1)).await;
    task.router.cluster.forget(Some(db));
    match reply? {
        Some(_) => Ok(ok_reply(Document::new())),
        None => Ok(ok_reply(doc! { "info": "database does not exist" })),
    }
}

/// `renameCollection`.
pub async fn rename_collection(task: &Task<'_>) -> Result<DocBuf> {
    let (from, to, _) = node::ddl::rename::read(task.body())?;
    node::ddl::rename::check_names(from, to)?;
    let (db, collection) = from.split_once('.').unwrap_or((from, ""));
    let reply = on_primary(task, db, db, internal(task, "_shardsvrRenameCollection", collection)).await;
    task.router.cluster.forget(Some(from));
    task.router.cluster.forget(Some(to));
    if database_of(to) != database_of(from) {
        // The shard may have made it.
        task.router.cluster.forget(Some(database_of(to)));
    }
    match reply? {
        Some(_) => Ok(ok_reply(Document::new())),
        None => bail!(NAMESPACE_NOT_FOUND, "Source collection {from} does not exist"),
    }
}

/// `enableSharding`: makes the database exist.
pub async fn enable_sharding(task: &Task<'_>) -> Result<DocBuf> {
    let db = database_argument(task)?;
    let primary = match task.get("primaryShard") {
        Some(_) => Some(string(task, "primaryShard")?.to_string()),
        None => None,
    };
    task.config(CreateDatabase { db: db.clone(), primary }.to_document()).await?;
    task.router.cluster.forget(Some(&db));
    Ok(ok_reply(Document::new()))
}

/// `shardCollection`.
pub async fn shard_collection(task: &Task<'_>) -> Result<DocBuf> {
    let ns = full_namespace(task)?;
    let (db, collection) = ns.split_once('.').unwrap_or((&ns, ""));
    shapes::SHARD_COLLECTION.check_command(task.request.body, task.request.sequences)?;
    let Some(key) = bound(task, "key") else {
        bail!(IDL_FAILED_TO_PARSE, "BSON field 'shardCollection.key' is missing but a required field");
    };
    if document::is_internal_database(db) {
        bail!(ILLEGAL_OPERATION, "Can't shard collections of the '{db}' database: {ns}");
    }
    task.placement_for_write(&ns).await?;
    let mut command = doc! { "_shardsvrCreateCollection": collection, "shardKey": key };
    command.0.extend(own_fields(task).into_iter().filter(|(name, _)| name != "key"));
    let reply = on_primary(task, db, db, command).await;
    forget_with_buckets(task, &ns);
    reply?;
    Ok(ok_reply(doc! { "collectionsharded": ns }))
}

/// `movePrimary`.
pub async fn move_primary(task: &Task<'_>) -> Result<DocBuf> {
    let db = database_argument(task)?;
    if document::is_internal_database(&db) {
        bail!(INVALID_OPTIONS, "Can't move primary for {db} database");
    }
    if task.get("to").and_then(|v| v.as_str()).is_none_or(str::is_empty) {
        bail!(INVALID_OPTIONS, "you have to specify where you want to move it");
    }
    let reply = on_primary(task, &db, "admin", internal(task, "_shardsvrMovePrimary", db.as_str())).await;
    task.router.cluster.forget(Some(&db));
    match reply? {
        Some(_) => Ok(ok_reply(Document::new())),
        None => bail!(NAMESPACE_NOT_FOUND, "database {db} not found"),
    }
}

/// Commands `{name: ns, ...}` that the db primary runs as `_shardsvr<Name>: collection` on the user's database.
async fn by_coordinator(task: &Task<'_>, internal_name: &str) -> Result<DocBuf> {
    let ns = full_namespace(task)?;
    let (db, collection) = ns.split_once('.').unwrap_or((&ns, ""));
    let reply = on_primary(task, db, db, internal(task, internal_name, collection)).await;
    task.router.cluster.forget(Some(&ns));
    match reply? {
        Some(reply) => Ok(reply),
        None => bail!(NAMESPACE_NOT_FOUND, "database {db} not found"),
    }
}
pub async fn set_allow_migrations(task: &Task<'_>) -> Result<DocBuf> {
    by_coordinator(task, "_shardsvrSetAllowMigrations").await
}

/// `refineCollectionShardKey`.
pub async fn refine_shard_key(task: &Task<'_>) -> Result<DocBuf> {
    let ns = full_namespace(task)?;
    let (db, collection) = ns.split_once('.').unwrap_or((&ns, ""));
    shapes::REFINE_SHARD_KEY.check_command(task.request.body, task.request.sequences)?;
    let mut command = doc! { "_shardsvrRefineCollectionShardKey": collection };
    command.push("newShardKey", bound(task, "key").unwrap_or_default());
    command.0.extend(own_fields(task).into_iter().filter(|(name, _)| name != "key"));
    let reply = on_primary(task, db, db, command).await;
    forget_with_buckets(task, &ns);
    match reply? {
        Some(_) => Ok(ok_reply(Document::new())),
        None => bail!(NAMESPACE_NOT_FOUND, "database {db} not found"),
    }
}

/// `checkMetadataConsistency` on a collection, a database, or (on `admin`) the cluster.
pub async fn check_metadata(task: &Task<'_>) -> Result<DocBuf> {
    if task.db() == "admin" {
        let command = internal(task, "_configsvrCheckClusterMetadataConsistency", 1);
        let reply = task.config(command).await?;
        let ns = "admin.$cmd.aggregate";
        return super::cursor::adopt(task, ns, &super::cluster::CONFIG.into(), reply);
    }
    let argument = task.request.argument().map_or(Value::Int32(1), |v| v.to_value());
    let db = task.db();
    let reply =
        on_primary(task, db, db, internal(task, "_shardsvrCheckMetadataConsistency", argument)).await?;
    let ns = format!("{db}.$cmd.aggregate");
    match (reply, task.placement(&format!("{db}.")).await?) {
        (Some(reply), Some(placement)) => {
            let ns =
                reply.doc().get_document("cursor").and_then(|c| c.get_str("ns")).unwrap_or(&ns).to_string();
            super::cursor::adopt(task, &ns, &placement.primary, reply)
        }
        _ => Ok(super::body::cursor_reply("firstBatch", &Default::default(), 0, &ns)),
    }
}

/// The routing table of a sharded collection, read anew.
///
/// # Errors
/// NamespaceNotSharded (118).
pub async fn fresh_table(task: &Task<'_>, ns: &str) -> Result<Arc<RoutingTable>> {
    task.router.cluster.forget(Some(ns));
    let placement = task.placement(ns).await?;
    placement
        .and_then(|p| p.table)
        .ok_or_else(|| err!(NAMESPACE_NOT_SHARDED, "Collection {ns} is not sharded"))
}

/// The chunk that `find` or `bounds` names.
fn chunk_of(task: &Task<'_>, table: &RoutingTable) -> Result<Arc<Chunk>> {
    match (task.get("find"), task.get("bounds")) {
        (Some(ValueRef::Document(find)), None) => {
            let found = target::filter(table, find, &QueryContext::default());
            let Some(key) = found.key else {
                bail!(OPERATION_FAILED, "no shard key found in chunk query {}", text(&find.to_document()));
            };
            Ok(table.find(&key).clone())
        }
        (None, Some(ValueRef::Array(bounds))) => {
            let bounds: Vec<Document> =
                bounds.iter().filter_map(|e| e.value().as_document()).map(|d| d.to_document()).collect();
            let [min, max] = bounds.as_slice() else {
                bail!(OPERATION_FAILED, "bounds must be a pair of shard keys");
            };
            let (min_key, max_key) = (table.key.encode_bound(min)?, table.key.encode_bound(max)?);
            table.exact(&min_key, &max_key).cloned().ok_or_else(|| {
                err!(
                    OPERATION_FAILED,
                    "no chunk found with the shard key bounds [{},{})",
                    text(min),
                    text(max)
                )
            })
        }
        (None, None) => bail!(OPERATION_FAILED, "must specify either find or bounds"),
        (Some(v), None) => Err(wrong_type(&field_of(task, "find"), v.type_name(), "object")),
        (None, Some(v)) => Err(wrong_type(&field_of(task, "bounds"), v.type_name(), "array")),
        _ => bail!(OPERATION_FAILED, "cannot specify both find and bounds"),
    }
}

/// `moveChunk`.
pub async fn move_chunk(task: &Task<'_>) -> Result<DocBuf> {
    let started = Instant::now();
    let ns = full_namespace(task)?;
    let to = string(task, "to")?;
    let table = fresh_table(task, &ns).await?;
    let chunk = chunk_of(task, &table)?;
    let flag = |names: &[&str]| names.iter().any(|n| task.get(n).is_some_and(|v| v.truthy()));
    let request = RequestMove {
        ns,
        to: to.to_string(),
        min: Some(chunk.min.clone()),
        max: Some(chunk.max.clone()),
        force_jumbo: Flag(flag(&["forceJumbo"])),
        wait_for_delete: Flag(flag(&["waitForDelete", "_waitForDelete"])),
        throttle: throttle(task),
    };
    move_range_by_config(task, request).await?;
    Ok(ok_reply(doc! { "millis": started.elapsed().as_millis() as i32 }))
}

/// `moveRange`.
pub async fn move_range(task: &Task<'_>) -> Result<DocBuf> {
    let ns = full_namespace(task)?;
    shapes::MOVE_RANGE.check_command(task.request.body, task.request.sequences)?;
    let to = string(task, "toShard")?;
    let (min, max) = (bound(task, "min"), bound(task, "max"));
    if min.is_none() && max.is_none() {
        bail!(INVALID_OPTIONS, "At least one of min or max must be provided");
    }
    let table = fresh_table(task, &ns).await?;
    for b in [&min, &max].into_iter().flatten() {
        if !table.key.is_full_key(b) {
            bail!(
                INVALID_OPTIONS,
                "The bound {} is not a full shard key of {}",
                text(b),
                text(table.key.document())
            );
        }
    }
    let flag = |name: &str| task.get(name).is_some_and(|v| v.truthy());
    let request = RequestMove {
        ns,
        to: to.to_string(),
        min,
        max,
        force_jumbo: Flag(flag("forceJumbo")),
        wait_for_delete: Flag(flag("waitForDelete")),
        throttle: throttle(task),
    };
    move_range_by_config(task, request).await?;
    Ok(ok_reply(Document::new()))
}

/// What `secondaryThrottle` asks for, with the write concern that came with it, if any.
fn throttle(task: &Task<'_>) -> Option<Document> {
    let asked =
        ["secondaryThrottle", "_secondaryThrottle"].iter().any(|n| task.get(n).is_some_and(|v| v.truthy()));
    let concern =
        task.get("writeConcern").and_then(|v| v.as_document()).map(|d| Value::Document(d.to_document()));
    if !asked {
        return None;
    }
    throttle_of(Some(&concern.unwrap_or(Value::Boolean(true))))
}

async fn move_range_by_config(task: &Task<'_>, request: RequestMove) -> Result<()> {
    let moved = task.config(request.to_document()).await;
    task.router.cluster.invalidate(&request.ns);
    moved.map(drop)
}

/// `split`: at `middle`, or at the median of the chunk that `find` or `bounds` names.
pub async fn split(task: &Task<'_>) -> Result<DocBuf> {
    let ns = full_namespace(task)?;
    let mut table = fresh_table(task, &ns).await?;
    let given = ["find", "bounds", "middle"].iter().filter(|n| task.get(n).is_some()).count();
    if given == 0 {
        bail!(OPERATION_FAILED, "need to specify find/bounds or middle");
    }
    if given > 1 {
        bail!(OPERATION_FAILED, "cannot specify several of find, bounds and middle together");
    }
    let (mut chunk, point) = match bound(task, "middle") {
        Some(middle) => at_middle(&table, middle)?,
        None => {
            let chunk = chunk_of(task, &table)?;
            let point = median(task, &ns, &table, &chunk).await?;
            (chunk, point)
        }
    };
    let mut repeat = Repeat::default();
    loop {
        match split_at(task, &ns, &table, &chunk, &point).await {
            Err(e) => repeat.absorb(task, e).await?,
            Ok(()) => return Ok(ok_reply(Document::new())),
        }
        table = fresh_table(task, &ns).await?;
        let key = table.key.encode_bound(&point)?;
        chunk = table.find(&key).clone();
        if chunk.min_key == key {
            return Ok(ok_reply(Document::new()));
        }
    }
}

/// Has the chunk's owner split it.
async fn split_at(
    task: &Task<'_>,
    ns: &str,
    table: &RoutingTable,
    chunk: &Chunk,
    point: &Document,
) -> CallResult<()> {
    let command = doc! {
        "splitChunk": ns, "from": &*chunk.shard, "keyPattern": table.key.document().clone(),
        "epoch": table.epoch, "timestamp": table.timestamp, "min": chunk.min.clone(), "max": chunk.max.clone(),
        "splitKeys": [point.clone()], "shardVersion": table.collection_version().to_document(),
    };
    let body = task.own(&without_generic(command, "shardVersion"), "admin", &super::body::Versions::NONE);
    let done = task.write_call(Call::new(&chunk.shard, body.doc())).await;
    task.router.cluster.invalidate(ns);
    done.map(drop)
}

/// A member of this name would be read as the version of the request itself.
fn without_generic(mut command: Document, name: &str) -> Document {
    command.remove(name);
    command
}

fn at_middle(table: &RoutingTable, middle: Document) -> Result<(Arc<Chunk>, Document)> {
    if let Some((name, v)) = middle.iter().find(|(_, v)| matches!(v, Value::Array(_))) {
        bail!(OPERATION_FAILED, "the split point's {name} cannot be an array: {}", document::shell::value(v));
    }
    let key = table.key.encode_bound(&middle)?;
    let chunk = table.find(&key).clone();
    if chunk.min_key == key {
        bail!(OPERATION_FAILED, "new split key {} is a boundary key of existing chunk", text(&middle));
    }
    Ok((chunk, middle))
}

async fn median(task: &Task<'_>, ns: &str, table: &RoutingTable, chunk: &Chunk) -> Result<Document> {
    let command = doc! {
        "splitVector": ns, "keyPattern": table.key.document().clone(), "min": chunk.min.clone(),
        "max": chunk.max.clone(), "force": true,
    };
    let body = task.own(&command, "admin", &super::body::Versions::NONE);
    let reply = task.read(&chunk.shard, &body).await?.to_document();
    let point = reply.get_array("splitKeys").and_then(|keys| keys.first()?.as_document().cloned());
    point.ok_or_else(|| err!(CANNOT_SPLIT, "Unable to find median in chunk because chunk is indivisible."))
}

/// `mergeChunks`: on the shard that owns the range.
pub async fn merge_chunks(task: &Task<'_>) -> Result<DocBuf> {
    let ns = full_namespace(task)?;
    let mut table = fresh_table(task, &ns).await?;
    let bounds: Vec<Document> = match task.get("bounds") {
        Some(ValueRef::Array(a)) => {
            a.iter().filter_map(|e| e.value().as_document()).map(|d| d.to_document()).collect()
        }
        _ => Vec::new(),
    };
    let [min, max] = bounds.as_slice() else {
        bail!(OPERATION_FAILED, "bounds must be exactly 2 shard keys")
    };
    let (min_key, max_key) = (table.key.encode_bound(min)?, table.key.encode_bound(max)?);
    if min_key >= max_key {
        bail!(OPERATION_FAILED, "min bound must be less than max bound");
    }
    let mut repeat = Repeat::default();
    loop {
        let merge = ShardMergeChunks {
            ns: ns.clone(),
            bounds: vec![min.clone(), max.clone()],
            epoch: Some(table.epoch),
            timestamp: Some(table.timestamp),
            of_balancer: Flag(false),
        };
        let body = task.own(&merge.to_document(), "admin", &super::body::Versions::NONE);
        let done = task.write_call(Call::new(&table.find(&min_key).shard, body.doc())).await;
        task.router.cluster.invalidate(&ns);
        match done {
            Err(e) => repeat.absorb(task, e).await?,
            Ok(_) => return Ok(ok_reply(Document::new())),
        }
        table = fresh_table(task, &ns).await?;
        if table.exact(&min_key, &max_key).is_some() {
            return Ok(ok_reply(Document::new()));
        }
    }
}

/// `mergeAllChunksOnShard`.
pub async fn merge_all_chunks(task: &Task<'_>) -> Result<DocBuf> {
    let ns = full_namespace(task)?;
    shapes::MERGE_ALL_CHUNKS.check_command(task.request.body, task.request.sequences)?;
    let done = task.config(internal(task, "_configsvrCommitMergeAllChunksOnShard", ns.as_str())).await;
    task.router.cluster.invalidate(&ns);
    done?;
    Ok(ok_reply(Document::new()))
}

/// `clearJumboFlag`.
pub async fn clear_jumbo_flag(task: &Task<'_>) -> Result<DocBuf> {
    let ns = full_namespace(task)?;
    let table = fresh_table(task, &ns).await?;
    let chunk = chunk_of(task, &table)?;
    let clear =
        ClearJumboFlag { ns: ns.clone(), epoch: table.epoch, min: chunk.min.clone(), max: chunk.max.clone() };
    task.config(clear.to_document()).await?;
    task.router.cluster.forget(Some(&ns));
    Ok(ok_reply(Document::new()))
}

/// The client's command under its config-server name, with its own argument and fields.
pub async fn to_config(task: &Task<'_>, internal_name: &str) -> Result<DocBuf> {
    task.config(for_config(task, internal_name)).await
}
/// The same for one that must not be executed twice: data that are put back again are without what was written in between.
pub async fn to_config_once(task: &Task<'_>, internal_name: &str) -> Result<DocBuf> {
    task.config_once(for_config(task, internal_name)).await
}
fn for_config(task: &Task<'_>, internal_name: &str) -> Document {
    let argument = task.request.argument().map_or(Value::Int32(1), |v| v.to_value());
    internal(task, internal_name, argument)
}

macro_rules! forwarded {
    ($($function:ident $name:literal $($shape:ident)?;)*) => {
        $(#[doc = concat!("To the config server as `", $name, "`.")]
        pub async fn $function(task: &Task<'_>) -> Result<DocBuf> {
            $(shapes::$shape.check_command(task.request.body, task.request.sequences)?;)?
            to_config(task, $name).await
        })*
    };
}
forwarded! {
    balancer_start "_configsvrBalancerStart";
    balancer_stop "_configsvrBalancerStop";
    balancer_status "_configsvrBalancerStatus";
    balancer_collection_status "_configsvrBalancerCollectionStatus" BALANCER_COLLECTION_STATUS;
    configure_collection_balancing "_configsvrConfigureCollectionBalancing" CONFIGURE_COLLECTION_BALANCING;
    add_shard_to_zone "_configsvrAddShardToZone" ADD_SHARD_TO_ZONE;
    remove_shard_from_zone "_configsvrRemoveShardFromZone" REMOVE_SHARD_FROM_ZONE;
    start_shard_draining "_configsvrStartShardDraining" START_SHARD_DRAINING;
    stop_shard_draining "_configsvrStopShardDraining" STOP_SHARD_DRAINING;
    shard_draining_status "_configsvrShardDrainingStatus" SHARD_DRAINING_STATUS;
    commit_shard_removal "_configsvrCommitShardRemoval" COMMIT_SHARD_REMOVAL;
}

/// To the config server as `_configsvrUpdateZoneKeyRange`, where a zone that is missing removes the range: a client says so by null.
pub async fn update_zone_key_range(task: &Task<'_>) -> Result<DocBuf> {
    full_namespace(task)?;
    shapes::UPDATE_ZONE_KEY_RANGE.check_command(task.request.body, task.request.sequences)?;
    if task.body().get("zone").is_none() {
        bail!(IDL_FAILED_TO_PARSE, "BSON field 'updateZoneKeyRange.zone' is missing but a required field");
    }
    to_config(task, "_configsvrUpdateZoneKeyRange").await
}

/// `repairShardedCollectionChunksHistory`: routing is read anew by whoever meets the raised versions.
pub async fn repair_chunks_history(task: &Task<'_>) -> Result<DocBuf> {
    let ns = full_namespace(task)?;
    shapes::REPAIR_CHUNKS_HISTORY.check_command(task.request.body, task.request.sequences)?;
    let command = internal(task, "_configsvrRepairShardedCollectionChunksHistory", ns.as_str());
    task.config(command).await?;
    task.router.cluster.forget(Some(&ns));
    Ok(ok_reply(Document::new()))
}

/// `resetPlacementHistory`.
pub async fn reset_placement_history(task: &Task<'_>) -> Result<DocBuf> {
    shapes::RESET_PLACEMENT_HISTORY.check_command(task.request.body, task.request.sequences)?;
    task.config(doc! { "_configsvrResetPlacementHistory": 1 }).await?;
    Ok(ok_reply(Document::new()))
}

/// `addShard`, `removeShard`: they change who is there, so the list of shards is read anew.
pub async fn add_shard(task: &Task<'_>) -> Result<DocBuf> {
    if let Some(v) = task.request.argument().filter(|v| v.as_str().is_none()) {
        bail!(
            TYPE_MISMATCH,
            "BSON field 'addShard.addShard' is the wrong type '{}', expected type 'string'",
            v.type_name()
        );
    }
    changing_shards(task, "_configsvrAddShard").await
}
pub async fn remove_shard(task: &Task<'_>) -> Result<DocBuf> {
    shapes::REMOVE_SHARD.check_command(task.request.body, task.request.sequences)?;
    changing_shards(task, "_configsvrRemoveShard").await
}
/// The config server becomes a shard, and ceases to be one.
pub async fn transition_from_dedicated(task: &Task<'_>) -> Result<DocBuf> {
    changing_shards(task, "_configsvrTransitionFromDedicatedConfigServer").await
}
pub async fn transition_to_dedicated(task: &Task<'_>) -> Result<DocBuf> {
    changing_shards(task, "_configsvrTransitionToDedicatedConfigServer").await
}
pub async fn start_transition(task: &Task<'_>) -> Result<DocBuf> {
    task.config(internal(task, "_configsvrStartShardDraining", CONFIG_SHARD)).await
}
pub async fn stop_transition(task: &Task<'_>) -> Result<DocBuf> {
    task.config(internal(task, "_configsvrStopShardDraining", CONFIG_SHARD)).await
}
pub async fn transition_status(task: &Task<'_>) -> Result<DocBuf> {
    task.config(internal(task, "_configsvrShardDrainingStatus", CONFIG_SHARD)).await
}
pub async fn commit_transition(task: &Task<'_>) -> Result<DocBuf> {
    let reply = task.config(internal(task, "_configsvrCommitShardRemoval", CONFIG_SHARD)).await?;
    task.router.cluster.reload_shards().await?;
    Ok(reply)
}
async fn changing_shards(task: &Task<'_>, internal_name: &str) -> Result<DocBuf> {
    let reply = to_config(task, internal_name).await?;
    task.router.cluster.reload_shards().await?;
    Ok(reply)
}

/// `convertToCapped`: by the coordinator where the catalog knows the collection; refused for a sharded one.
pub async fn convert_to_capped(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let (db, collection) = ns.split_once('.').unwrap_or((&ns, ""));
    let mut retry = Retry::default();
    loop {
        let placement = task.placement_for_write(&ns).await?;
        if placement.table.is_some() {
            bail!(ILLEGAL_OPERATION, "can't do command: convertToCapped on sharded collection: {ns}");
        }
        let sent = match placement.alone {
            Some(_) => {
                let command = internal(task, "_shardsvrConvertToCapped", collection);
                let reply = on_primary(task, db, db, command).await;
                task.router.cluster.forget(Some(&ns));
                reply.map(|_| ok_reply(Document::new()))
            }
            None => {
                let body = task.forward(&[], &placement.versions(&placement.primary), |_| {});
                task.change(&placement.primary, &body).await
            }
        };
        match sent {
            Ok(reply) => return Ok(reply),
            Err(e) => retry.absorb(task, &ns, e).await?,
        }
    }
}

/// `splitVector` of a collection that is not sharded: what its one shard answers.
pub async fn split_vector(task: &Task<'_>) -> Result<DocBuf> {
    let ns = full_namespace(task)?;
    if database_of(&ns) != task.db() {
        bail!(ILLEGAL_OPERATION, "Performing splitVector across dbs isn't supported via mongos");
    }
    if task.placement(&ns).await?.is_some_and(|p| p.table.is_some()) {
        bail!(ILLEGAL_OPERATION, "can't do command: splitVector on sharded collection: {ns}");
    }
    as_it_is(task, &ns).await
}

/// Commands on a database as such.
pub async fn on_database(task: &Task<'_>) -> Result<DocBuf> {
    match single::on_primary(task, &[]).await? {
        Some(reply) => Ok(reply),
        None => bail!(NAMESPACE_NOT_FOUND, "database {} not found", task.db()),
    }
}

/// `listIndexes` of a sharded time series: those of its buckets, as the user made them.
async fn list_indexes_of_series(task: &Task<'_>, ns: &str, series: &Series) -> Result<DocBuf> {
    let body = series.renamed(task.body());
    let inner = Task::new(task.router, task.op, Request { db: task.db(), body: body.doc(), sequences: &[] });
    let reply = Box::pin(list_indexes(&inner)).await?;
    let all = super::aggregate::rest_of(&inner, task.db(), body.doc(), reply).await?;
    task.hear_from(&inner);
    let mut shown = ArrayBuilder::default();
    for spec in all.iter().filter_map(|spec| indexes::shown(&spec.doc().to_document())) {
        shown.push(spec.to_doc_buf().doc());
    }
    Ok(super::body::cursor_reply("firstBatch", &shown, 0, ns))
}

/// `listIndexes`: of a shard that owns a chunk.
pub async fn list_indexes(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let mut retry = Retry::default();
    loop {
        if let Some(series) = timeseries::sharded(task, &ns).await? {
            return list_indexes_of_series(task, &ns, &series).await;
        }
        let Some(placement) = task.placement(&ns).await? else {
            bail!(NAMESPACE_NOT_FOUND, "ns does not exist: {ns}");
        };
        let shards = placement.shards();
        let primary_owns = shards.contains(&placement.primary);
        let shard = if primary_owns { placement.primary.clone() } else { shards[0].clone() };
        match single::read(task, &ns, &placement, &shard).await {
            Ok(reply) => return Ok(reply),
            Err(e) => retry.absorb(task, &ns, e).await?,
        }
    }
}

/// `listCollections`: of the primary.
pub async fn list_collections(task: &Task<'_>) -> Result<DocBuf> {
    let ns = format!("{}.$cmd.listCollections", task.db());
    match single::on_primary(task, &[]).await? {
        Some(reply) => Ok(reply),
        None => Ok(super::body::cursor_reply("firstBatch", &Default::default(), 0, &ns)),
    }
}

async fn on_all_owners_of_series(task: &Task<'_>, series: &Series) -> Result<Option<Vec<(ShardId, DocBuf)>>> {
    let body = series.renamed(task.body());
    let request = Request { db: task.db(), body: body.doc(), sequences: &[] };
    let inner = Task::new(task.router, task.op, request);
    let replies = Box::pin(on_all_owners(&inner, &series.buckets)).await;
    task.hear_from(&inner);
    replies
}

/// The client's command, as it is, on every shard with the collection's versions.
pub async fn on_all_owners(task: &Task<'_>, ns: &str) -> Result<Option<Vec<(ShardId, DocBuf)>>> {
    let mut retry = Retry::default();
    loop {
        if let Some(series) = timeseries::sharded(task, ns).await? {
            return on_all_owners_of_series(task, &series).await;
        }
        let Some(placement) = task.placement(ns).await? else { return Ok(None) };
        let shards = placement.shards();
        let sent =
            scatter::read_all(task, &shards, |shard| task.forward(&[], &placement.versions(shard), |_| {}))
                .await;
        match sent {
            Ok(replies) => return Ok(Some(replies)),
            Err(e) => retry.absorb(task, ns, e).await?,
        }
    }
}
