//! Questions about the cluster: answered from what the router knows, from the config server, or by adding up the shards.

use super::aggregate::all_documents;
use super::body::{Versions, batch, ok_reply, strip_times};
use super::cluster::CONFIG;
use super::ddl::{self, full_namespace};
use super::task::Task;
use crate::chunk::ShardId;
use crate::config::shards::{draining_wanted, shard_map};
use document::error::NETWORK;
use document::{Doc, DocBuf, Document, Result, Value, ValueRef, bail, doc};
use futures::future::join_all;
use node::Request;
use node::auth::Owners;
use node::metadata_errors::MetadataErrors;
use node::operation::SessionId;
use std::collections::{BTreeMap, BTreeSet};

/// The client's command on every shard, without versions.
async fn on_all_shards(task: &Task<'_>) -> Result<Vec<(ShardId, DocBuf)>> {
    let body = &task.forward(&[], &Versions::NONE, |_| {});
    let before = task.router.topology_time();
    let replies = ask_all(task, body).await?;
    // A shard that is new to this router was not asked: the others know of it.
    if task.router.topology_time() == before {
        return Ok(replies);
    }
    task.router.cluster.reload_shards().await?;
    ask_all(task, body).await
}

async fn ask_all(task: &Task<'_>, body: &DocBuf) -> Result<Vec<(ShardId, DocBuf)>> {
    let shards = task.all_shards().await?;
    let sent = shards.iter().map(|s| async move { (s.clone(), task.read(s, body).await) });
    of_members(task, join_all(sent).await).await
}

/// The replies of shards that belong to the cluster: one that was asked and cannot be reached may have been removed since
/// this router read who is there.
async fn of_members(
    task: &Task<'_>,
    answers: Vec<(ShardId, Result<DocBuf>)>,
) -> Result<Vec<(ShardId, DocBuf)>> {
    let unreachable = answers.iter().any(|(_, answer)| answer.as_ref().is_err_and(|e| e.is(NETWORK)));
    let mut members = Vec::new();
    if unreachable {
        task.router.cluster.reload_shards().await?;
        members = task.all_shards().await?;
    }
    let removed = |shard: &ShardId| unreachable && !members.contains(shard);
    answers.into_iter().filter(|(s, _)| !removed(s)).map(|(s, answer)| Ok((s, answer?))).collect()
}

/// `fsync` on every shard and the config server. Where one of them is not locked, none is.
pub async fn fsync(task: &Task<'_>) -> Result<DocBuf> {
    let body = &task.forward(&[], &Versions::NONE, |_| {});
    let (done, failed) = on_everybody(task, body).await?;
    if let Some(error) = failed {
        if task.body().get("lock").is_some_and(|v| v.truthy()) {
            let unlock = &task.own(&doc! { "fsyncUnlock": 1 }, "admin", &Versions::NONE);
            join_all(done.iter().map(|(shard, _)| task.write(shard, unlock))).await;
        }
        return Err(error);
    }
    let files = done.iter().filter_map(|(_, reply)| reply.get_i64("numFiles")).sum::<i64>();
    let all: Document = done.into_iter().map(|(shard, reply)| (shard.to_string(), reply.into())).collect();
    Ok(ok_reply(doc! { "numFiles": files as i32, "all": all }))
}

/// `fsyncUnlock` of all that [`fsync`] locks.
pub async fn fsync_unlock(task: &Task<'_>) -> Result<DocBuf> {
    let body = &task.forward(&[], &Versions::NONE, |_| {});
    let (done, failed) = on_everybody(task, body).await?;
    if let Some(error) = failed {
        return Err(error);
    }
    let left = done.iter().filter_map(|(_, reply)| reply.get_i64("lockCount")).max().unwrap_or(0);
    Ok(ok_reply(doc! { "info": "fsyncUnlock completed", "lockCount": left }))
}

/// Sends a command to the shards and the config server: the replies, and the first failure.
async fn on_everybody(
    task: &Task<'_>,
    body: &DocBuf,
) -> Result<(Vec<(ShardId, Document)>, Option<document::Error>)> {
    task.router.cluster.reload_shards().await?;
    let mut everybody = task.all_shards().await?;
    if everybody.iter().all(|shard| &**shard != CONFIG) {
        everybody.push(CONFIG.into());
    }
    let sent = everybody.iter().map(|s| async move { (s.clone(), task.write(s, body).await) });
    let (mut done, mut failed) = (Vec::new(), None);
    for (shard, answer) in join_all(sent).await {
        match answer {
            Ok(reply) => done.push((shard, strip_times(reply.doc()).doc().to_document())),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Ok((done, failed))
}

/// `listDatabases`: sizes added up over the shards; `admin` and `config` are the config server's.
pub async fn list_databases(task: &Task<'_>) -> Result<DocBuf> {
    let mut found: BTreeMap<String, (i64, Document)> = BTreeMap::new();
    let body = task.forward(&[], &Versions::NONE, |_| {});
    let before = task.router.topology_time();
    let config = task.read(CONFIG, &body).await?;
    if task.router.topology_time() != before {
        task.router.cluster.reload_shards().await?;
    }
    let mut replies = on_all_shards(task).await?;
    replies.push((CONFIG.into(), config));
    let last = replies.len() - 1;
    for (i, (shard, reply)) in replies.iter().enumerate() {
        let databases = reply.doc().get("databases").and_then(|v| v.as_array());
        for d in databases.into_iter().flat_map(|a| a.iter()).filter_map(|e| e.value().as_document()) {
            let name = d.get_str("name").unwrap_or("");
            let on_config = matches!(name, "admin" | "config");
            // The config server answers once more where it is a shard.
            if name == "local" || on_config != (i == last) {
                continue;
            }
            let size = d.get_i64("sizeOnDisk").unwrap_or(0);
            let (total, shards) = found.entry(name.to_string()).or_default();
            *total += size;
            shards.push(&**shard, size);
        }
    }
    let name_only = task.get("nameOnly").is_some_and(|v| v.truthy());
    let total: i64 = found.values().map(|(size, _)| size).sum();
    let databases: Vec<Document> = found
        .into_iter()
        .map(|(name, (size, shards))| match name_only {
            true => doc! { "name": name },
            false => doc! { "name": name, "sizeOnDisk": size, "empty": size == 0, "shards": shards },
        })
        .collect();
    let mut reply = doc! { "databases": databases };
    if !name_only {
        reply.push("totalSize", total);
        reply.push("totalSizeMb", total / (1024 * 1024));
    }
    Ok(ok_reply(reply))
}

/// Adds up the numbers of several replies; members of other types are the first reply's.
fn summed(replies: &[(ShardId, DocBuf)], not_summed: &[&str]) -> Document {
    let mut sum = Document::new();
    for (_, reply) in replies {
        for (name, value) in strip_times(reply.doc()).to_document() {
            if name == "ok" || name == "writeConcernError" {
                continue;
            }
            match sum.get_mut(&name) {
                None => sum.push(name, value),
                Some(slot) if !not_summed.contains(&name.as_str()) => add(slot, &value),
                Some(_) => {}
            }
        }
    }
    sum
}

fn add(slot: &mut Value, more: &Value) {
    let new = match (&*slot, more) {
        (Value::Int32(a), Value::Int32(b)) => super::count::number(i64::from(*a) + i64::from(*b)),
        (Value::Double(_), _) | (_, Value::Double(_)) => match (slot.as_f64(), more.as_f64()) {
            (Some(a), Some(b)) => Value::Double(a + b),
            _ => return,
        },
        (a, b) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Value::Int64(a.saturating_add(b)),
            _ => match (slot, more) {
                (Value::Document(a), Value::Document(b)) => {
                    for (name, value) in b.iter() {
                        match a.get_mut(name) {
                            Some(slot) => add(slot, value),
                            None => a.push(name, value.clone()),
                        }
                    }
                    return;
                }
                _ => return,
            },
        },
    };
    *slot = new;
}

async fn raw_of(task: &Task<'_>, replies: &[(ShardId, DocBuf)]) -> Result<Document> {
    let hosts = task.router.cluster.shards().await?;
    let host = |shard: &ShardId| {
        hosts.iter().find(|(n, _)| n == shard).map_or_else(|| shard.to_string(), |(_, host)| host.clone())
    };
    Ok(replies.iter().map(|(s, r)| (host(s), Value::Document(strip_times(r.doc()).to_document()))).collect())
}

/// `dbStats`: added up over the shards.
pub async fn db_stats(task: &Task<'_>) -> Result<DocBuf> {
    let replies = match super::cluster::is_config(task.db()) {
        true => return super::single::on_config(task).await,
        false => on_all_shards(task).await?,
    };
    let mut sum =
        summed(&replies, &["db", "scaleFactor", "fsUsedSize", "fsTotalSize", "avgObjSize", "collections"]);
    let (size, objects) = (sum.get("dataSize").and_then(number), sum.get("objects").and_then(number));
    if let (Some(size), Some(objects)) = (size, objects) {
        let scale = sum.get("scaleFactor").and_then(number).unwrap_or(1.0);
        sum.insert("avgObjSize", if objects > 0.0 { size * scale / objects } else { 0.0 });
    }
    let mut reply = doc! { "raw": (raw_of(task, &replies).await?) };
    reply.0.extend(sum);
    Ok(ok_reply(reply))
}

fn number(v: &Value) -> Option<f64> {
    v.as_f64()
}

/// `collStats`: added up over the shards that own chunks, each also by itself.
pub async fn coll_stats(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let Some(replies) = ddl::on_all_owners(task, &ns).await? else {
        bail!(NAMESPACE_NOT_FOUND, "Database [{}] not found.", task.db());
    };
    let series = super::timeseries::sharded(task, &ns).await?;
    let sharded = match &series {
        Some(series) => series.placement.table.is_some(),
        None => task.placement(&ns).await?.is_some_and(|p| p.table.is_some()),
    };
    let mut sum =
        summed(&replies, &["ns", "scaleFactor", "avgObjSize", "nindexes", "capped", "max", "maxSize"]);
    let (size, count) = (sum.get("size").and_then(number), sum.get("count").and_then(number));
    if let (Some(size), Some(count)) = (size, count)
        && count > 0.0
    {
        sum.insert("avgObjSize", Value::Int64((size / count) as i64));
    }
    if series.is_some() {
        of_series(&mut sum, &ns);
    }
    let mut shards = Document::new();
    for (shard, reply) in &replies {
        shards.push(&**shard, strip_times(reply.doc()).to_document());
    }
    let mut reply = doc! { "sharded": sharded };
    if !sharded && let Some((shard, _)) = replies.first() {
        reply.push("primary", &**shard);
    }
    reply.0.extend(sum);
    if sharded {
        reply.push("shards", shards);
    }
    Ok(ok_reply(reply))
}

/// The sums of a sharded time series, in place of those of its buckets' shards.
fn of_series(sum: &mut Document, ns: &str) {
    sum.insert("ns", ns);
    let Some(Value::Document(buckets)) = sum.get_mut("timeseries") else { return };
    let total = |name: &str| buckets.get_i64(name).unwrap_or(0);
    let average = total("numBytesUncompressed").checked_div(total("bucketCount")).unwrap_or(0);
    buckets.insert("avgBucketSize", document::number::int_or_long(average));
}

/// `validate`: valid where every shard says so.
pub async fn validate(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let Some(replies) = ddl::on_all_owners(task, &ns).await? else {
        bail!(NAMESPACE_NOT_FOUND, "Collection '{ns}' does not exist to validate.");
    };
    if let [(_, only)] = replies.as_slice() {
        return Ok(strip_times(only.doc()));
    }
    let valid = replies.iter().all(|(_, r)| r.doc().get_bool("valid").unwrap_or(false));
    let mut reply = summed(&replies, &["ns", "nIndexes", "valid", "uuid", "indexDetails"]);
    reply.insert("valid", valid);
    reply.push("raw", raw_of(task, &replies).await?);
    Ok(ok_reply(reply))
}

/// `dataSize`: added up over the shards.
pub async fn data_size(task: &Task<'_>) -> Result<DocBuf> {
    let ns = full_namespace(task)?;
    match ddl::on_all_owners(task, &ns).await? {
        Some(replies) => Ok(ok_reply(summed(&replies, &["estimate", "millis"]))),
        None => Ok(ok_reply(doc! { "size": 0i64, "numObjects": 0i64, "millis": 0i64, "estimate": false })),
    }
}

/// `listShards`: the documents of `config.shards`.
pub async fn list_shards(task: &Task<'_>) -> Result<DocBuf> {
    let wanted = draining_wanted(task.request.body)?;
    let command = doc! { "find": "shards", "filter": {}, "sort": { "_id": 1 }, "$db": "config" };
    let documents = all_documents(task, "config", command).await?;
    let chosen = documents
        .iter()
        .map(|d| d.to_document())
        .filter(|d| wanted.is_none_or(|w| d.get_bool("draining").unwrap_or(false) == w));
    Ok(ok_reply(doc! { "shards": (chosen.collect::<Vec<Document>>()) }))
}

/// `getShardMap`.
pub async fn get_shard_map(task: &Task<'_>) -> Result<DocBuf> {
    let shards = task.router.cluster.shards().await?;
    Ok(ok_reply(shard_map(&shards, Some(&task.router.cluster.config_string()))))
}

/// `getShardVersion` of a collection or a database, as the router knows it.
pub async fn get_shard_version(task: &Task<'_>) -> Result<DocBuf> {
    let name = match task.request.argument() {
        Some(ValueRef::String(name)) => name.to_string(),
        _ => bail!(INVALID_NAMESPACE, "getShardVersion needs a namespace"),
    };
    let Some((_, _)) = name.split_once('.') else { return database_version(task, &name, true).await };
    let Some(table) = task.placement(&name).await?.and_then(|p| p.table) else {
        bail!(NAMESPACE_NOT_SHARDED, "Collection {name} is not sharded");
    };
    let version = table.collection_version();
    let mut reply = doc! {
        "version": version.placement, "versionEpoch": version.epoch, "versionTimestamp": version.timestamp,
    };
    if task.get("fullMetadata").is_some_and(|v| v.truthy()) {
        let chunks: Vec<Value> = table
            .chunks()
            .take(100_000)
            .map(|c| Value::Array(vec![c.min.clone().into(), c.max.clone().into()]))
            .collect();
        reply.push("chunks", Value::Array(chunks));
    }
    Ok(ok_reply(reply))
}

/// `getDatabaseVersion`.
pub async fn get_database_version(task: &Task<'_>) -> Result<DocBuf> {
    let Some(ValueRef::String(db)) = task.request.argument() else {
        bail!(INVALID_NAMESPACE, "getDatabaseVersion needs the name of a database");
    };
    database_version(task, db, false).await
}

async fn database_version(task: &Task<'_>, db: &str, with_primary: bool) -> Result<DocBuf> {
    let Some(placement) = task.placement(&format!("{db}.")).await? else {
        bail!(NAMESPACE_NOT_FOUND, "database {db} not found");
    };
    let version = placement.database.map(|v| v.to_document()).unwrap_or_default();
    Ok(ok_reply(match with_primary {
        true => doc! { "primaryShard": &*placement.primary, "shardingEnabled": true, "version": version },
        false => doc! { "dbVersion": version },
    }))
}

/// `planCacheClear`, `planCacheSetFilter` and `planCacheClearFilters`: on every shard that has the collection.
pub async fn plan_cache(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let known = ddl::on_all_owners(task, &ns).await?.is_some();
    if !known && task.request.body.iter().next().is_some_and(|e| e.name() == "planCacheSetFilter") {
        bail!(BAD_VALUE, "no such collection");
    }
    Ok(ok_reply(Document::new()))
}

/// `planCacheListFilters`: those of the shards, each once.
pub async fn plan_cache_filters(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let mut filters: Vec<Value> = Vec::new();
    for (_, reply) in ddl::on_all_owners(task, &ns).await?.unwrap_or_default() {
        for filter in reply.to_document().get_array("filters").into_iter().flatten() {
            if !filters.contains(filter) {
                filters.push(filter.clone());
            }
        }
    }
    Ok(ok_reply(doc! { "filters": Value::Array(filters) }))
}

/// `validateDBMetadata`: what any shard finds.
pub async fn validate_metadata(task: &Task<'_>) -> Result<DocBuf> {
    let mut errors = MetadataErrors::default();
    on_all_shards(task).await?.iter().for_each(|(_, reply)| errors.add_reply(&reply.to_document()));
    Ok(ok_reply(errors.reply()))
}

/// `setClusterParameter`: the config server sets it, there and on every shard.
pub async fn set_cluster_parameter(task: &Task<'_>) -> Result<DocBuf> {
    let parameter = match task.request.argument() {
        Some(ValueRef::Document(parameter)) => parameter,
        None | Some(ValueRef::Null | ValueRef::Undefined) => bail!(
            IDL_FAILED_TO_PARSE,
            "BSON field 'setClusterParameter.setClusterParameter' is missing but a required field"
        ),
        Some(other) => bail!(
            TYPE_MISMATCH,
            "BSON field 'setClusterParameter.setClusterParameter' is the wrong type '{}', expected type 'object'",
            other.type_name()
        ),
    };
    task.config(doc! { "_configsvrSetClusterParameter": parameter.to_document() }).await?;
    // Known now; if this fails, the next ping tells.
    let _ = task.router.refresh_parameters().await;
    Ok(ok_reply(Document::new()))
}

/// `flushRouterConfig`.
pub async fn flush_router_config(task: &Task<'_>) -> Result<DocBuf> {
    let name = task.request.argument().and_then(|v| v.as_str());
    task.router.cluster.forget(name);
    if name.is_none() {
        task.router.cluster.reload_shards().await?;
    }
    Ok(ok_reply(doc! { "flushed": true }))
}

/// What a source stage of `aggregate: 1` produces on a router.
pub async fn source_documents(task: &Task<'_>, stage: &str, spec: &Value) -> Result<Vec<DocBuf>> {
    match stage {
        "$currentOp" => current_op(task, spec).await,
        "$shardedDataDistribution" => data_distribution(task).await,
        "$querySettings" => {
            task.router.refresh_parameters().await?;
            let shown = task.router.query_settings.shown(spec.as_document().unwrap_or(&Document::new()));
            Ok(shown.iter().map(Document::to_doc_buf).collect())
        }
        "$listLocalSessions" => {
            let known = task.router.own_sessions.get().map(|list| list()).unwrap_or_default();
            let empty = Document::new();
            let owners = Owners::listed(spec.as_document().unwrap_or(&empty), &task.op.client);
            let shown = |(id, last): (SessionId, i64)| {
                doc! { "_id": (id.to_document()), "lastUse": (Value::DateTime(last)) }.to_doc_buf()
            };
            Ok(known.into_iter().filter(|(id, _)| owners.include(&id.uid)).map(shown).collect())
        }
        // No statistics are kept, as on a server that was not told to sample queries.
        "$queryStats" => Ok(Vec::new()),
        "$listClusterCatalog" => cluster_catalog(task, spec).await,
        "$listSampledQueries" => super::sampling::list(task, spec).await,
        _ => bail!(NOT_IMPLEMENTED, "{stage} on a router is known but not implemented"),
    }
}

/// The operations of all shards, each with its shard's name; of this router alone with `localOps`. Shards show the router everything:
/// which of it the client is shown is decided here.
pub async fn current_op(task: &Task<'_>, spec: &Value) -> Result<Vec<DocBuf>> {
    let empty = Document::new();
    let flags = spec.as_document().unwrap_or(&empty);
    if flags.get_bool("localOps") == Some(true) {
        let own = task.router.own_operations.get().map(|list| list(flags, &task.op.client));
        return Ok(own.unwrap_or_default().iter().map(|d| d.to_doc_buf()).collect());
    }
    let owners = Owners::operating(flags, &task.op.client);
    let mut everybody = flags.clone();
    everybody.insert("allUsers", true);
    let mut stage = Document::new();
    stage.push("$currentOp", everybody);
    let command = doc! { "aggregate": 1, "pipeline": [stage], "cursor": { "batchSize": 100000 } };
    let mut out = Vec::new();
    for (shard, reply) in ask_all(task, &task.own(&command, "admin", &Versions::NONE)).await? {
        for mut d in batch(reply.doc()).map(Doc::to_document) {
            if !owners.include_row(&d) {
                continue;
            }
            if let Some(id) = d.get_i64("opid") {
                d.insert("opid", format!("{shard}:{id}"));
            }
            d.0.insert(0, ("shard".to_string(), Value::from(&*shard)));
            out.push(d.to_doc_buf());
        }
    }
    Ok(out)
}

/// `$listClusterCatalog`: what the primaries of the database, or of all, list, and what the config server says of placement.
async fn cluster_catalog(task: &Task<'_>, spec: &Value) -> Result<Vec<DocBuf>> {
    let flag = |name: &str| spec.as_document().and_then(|d| d.get_bool(name)) == Some(true);
    let databases = match task.db() {
        "admin" => {
            let command = doc! { "find": "databases", "sort": { "_id": 1 }, "$db": "config" };
            let known = all_documents(task, "config", command).await?;
            known.iter().filter_map(|d| Some(d.doc().get_str("_id")?.to_string())).collect()
        }
        db => vec![db.to_string()],
    };
    let command =
        doc! { "find": "collections", "filter": { "unsplittable": { "$ne": true } }, "$db": "config" };
    let sharded = all_documents(task, "config", command).await?;
    let sharded: BTreeMap<&str, _> =
        sharded.iter().filter_map(|d| Some((d.doc().get_str("_id")?, d.doc()))).collect();
    let mut out = Vec::new();
    for db in &databases {
        let command = doc! { "listCollections": 1, "cursor": { "batchSize": 1_000_000 }, "$db": db.as_str() };
        let command = command.to_doc_buf();
        let request = Request { db, body: command.doc(), sequences: &[] };
        let inner = Task::new(task.router, task.op, request);
        let reply = ddl::list_collections(&inner).await?;
        task.hear_from(&inner);
        for collection in batch(reply.doc()) {
            let ns = format!("{db}.{}", collection.get_str("name").unwrap_or_default());
            let mut d = doc! { "db": db.as_str(), "ns": ns.as_str() };
            d.0.extend(collection.to_document().into_iter().filter(|(name, _)| name != "name"));
            let entry = sharded.get(ns.as_str());
            d.push("sharded", entry.is_some());
            if let Some(key) = entry.and_then(|e| e.get_document("key")) {
                d.push("shardKey", key.to_document());
            }
            if flag("shards") {
                let shards = task.placement(&ns).await?.map(|p| p.shards()).unwrap_or_default();
                d.push("shards", Value::Array(shards.iter().map(|s| Value::from(&**s)).collect()));
            }
            if let Some(entry) = entry.filter(|_| flag("balancingConfiguration")) {
                d.push("balancingEnabled", !entry.get("noBalance").is_some_and(|v| v.truthy()));
                d.push("autoMergingEnabled", entry.get("enableAutoMerge").is_none_or(|v| v.truthy()));
                if let Some(bytes) = entry.get("maxChunkSizeBytes").and_then(|v| v.as_i64()) {
                    d.push("chunkSize", bytes >> 20);
                }
            }
            out.push(d.to_doc_buf());
        }
    }
    Ok(out)
}

/// `$shardedDataDistribution`: for each sharded collection what each shard owns and what it merely holds. Each shard is asked once.
async fn data_distribution(task: &Task<'_>) -> Result<Vec<DocBuf>> {
    let filter = doc! { "unsplittable": { "$ne": true } };
    let command = doc! { "find": "collections", "filter": filter, "sort": { "_id": 1 }, "$db": "config" };
    let collections = all_documents(task, "config", command).await?;
    let owners = owners(task).await?;
    let held = shares(task).await?;
    let mut out = Vec::new();
    for collection in &collections {
        let Some(ns) = collection.doc().get_str("_id") else { continue };
        let uuid = collection.doc().get("uuid").and_then(|v| v.as_uuid()).unwrap_or_default();
        let shown = held.get(ns).into_iter().flatten().filter(|share| {
            let shard = share.get_str("shardName").unwrap_or_default().to_string();
            owners.contains(&(uuid, shard)) || share.get_i64("numOrphanedDocs") != Some(0)
        });
        let shards: Vec<Document> = shown.cloned().collect();
        out.push(doc! { "ns": ns, "shards": shards }.to_doc_buf());
    }
    Ok(out)
}

/// The shards that own chunks, by the collection's UUID.
async fn owners(task: &Task<'_>) -> Result<BTreeSet<([u8; 16], String)>> {
    let group = doc! { "$group": { "_id": { "uuid": "$uuid", "shard": "$shard" } } };
    let command = doc! { "aggregate": "chunks", "pipeline": vec![group], "cursor": {}, "$db": "config" };
    let found = all_documents(task, "config", command).await?;
    let owner = |d: &DocBuf| {
        let id = d.doc().get_document("_id")?;
        Some((id.get("uuid")?.as_uuid()?, id.get_str("shard")?.to_string()))
    };
    Ok(found.iter().filter_map(owner).collect())
}

/// What every shard has of every collection.
async fn shares(task: &Task<'_>) -> Result<BTreeMap<String, Vec<Document>>> {
    let stats = doc! { "$_internalAllCollectionStats": { "stats": { "storageStats": {} } } };
    let needed =
        doc! { "ns": 1, "storageStats": { "size": 1, "count": 1, "numOrphanDocs": 1, "timeseries": 1 } };
    let pipeline = vec![stats, doc! { "$project": needed }];
    let command = doc! { "aggregate": 1, "pipeline": pipeline, "cursor": { "batchSize": 100000 } };
    let mut held: BTreeMap<String, Vec<Document>> = BTreeMap::new();
    for (shard, reply) in ask_all(task, &task.own(&command, "admin", &Versions::NONE)).await? {
        for stats in batch(reply.doc()) {
            let ns = stats.get_str("ns").unwrap_or_default().to_string();
            held.entry(ns).or_default().push(share(&shard, &stats.to_document()));
        }
    }
    Ok(held)
}

fn share(shard: &str, stats: &Document) -> Document {
    let found = |name: &str| stats.get_path(&format!("storageStats.{name}")).and_then(Value::as_f64);
    let number = |name: &str| found(name).unwrap_or(0.0) as i64;
    // Of a time series the documents are its buckets.
    let count = found("count").or_else(|| found("timeseries.bucketCount")).unwrap_or(0.0) as i64;
    let (size, orphans) = (number("size"), number("numOrphanDocs"));
    let average = if count > 0 { size / count } else { 0 };
    let owned = (count - orphans).max(0);
    doc! {
        "shardName": shard, "numOrphanedDocs": orphans, "numOwnedDocuments": owned,
        "ownedSizeBytes": owned * average, "orphanedSizeBytes": orphans * average,
    }
}

/// `config.mongos` entry of this router.
pub fn ping_document(host: &str, up_seconds: i64, version: &str, now_ms: i64) -> Document {
    doc! {
        "_id": host, "advisoryHostFQDNs": [], "created": Value::DateTime(now_ms - up_seconds * 1000),
        "mongoVersion": version, "ping": Value::DateTime(now_ms), "up": up_seconds, "waiting": true,
    }
}
