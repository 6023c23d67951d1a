//! `config.system.sessions`: the logical sessions of the whole cluster, sharded by their id.
//!
//! The config server makes it once there is a shard; routers and shards write to it what they have seen used. An index makes a
//! session that nobody refreshes expire. The commands that are sent here also serve a set that is no shard, whose collection of
//! the same name is an ordinary one.

use crate::chunk::ShardId;
use crate::config::ConfigServer;
use crate::config::catalog::Sharded;
use crate::messages::ddl::{CollModParticipant, CommitCreateCollection, CreateParticipant, FirstChunk};
use crate::messages::{Flag, Message};
use crate::remote::{Target, majority};
use crate::router::write::first_error;
use crate::routing::{CatalogCache, Routing, RoutingTable};
use document::error::{STALE_DB_VERSION, STALE_SHARD_VERSION};
use document::{Doc, DocBuf, Document, Error, Result, Value, bail, codes, doc, err};
use node::operation::SessionId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub const NS: &str = "config.system.sessions";
const COLLECTION: &str = "system.sessions";
/// How often a batch is sent anew when its placement turned out to be old.
const ATTEMPTS_MAX: usize = 10;
/// Sessions in one request.
pub const BATCH: usize = 1000;
/// Sessions that are sorted by their owners at a time.
const SLICE: usize = 10 * BATCH;
/// A shard may be paused, or wait 15 s for a majority.
const REPLY_LIMIT: Duration = Duration::from_secs(30);
/// DO NOT CHANGE: tools look for it.
pub const EXPIRY: &str = "lsidTTLIndex";

/// The key of the index by which sessions expire.
pub fn expiry_key() -> Document {
    doc! { "lastUse": 1 }
}
/// After how many seconds sessions expire whose timeout is so many minutes.
pub fn expiry_secs(timeout_minutes: i64) -> i64 {
    timeout_minutes.max(1).saturating_mul(60).min(i32::MAX.into())
}
fn expiry_index(timeout_minutes: i64) -> Document {
    let seconds = expiry_secs(timeout_minutes) as i32;
    doc! { "v": 2, "key": expiry_key(), "name": EXPIRY, "expireAfterSeconds": seconds }
}
/// The `collMod` that gives the index another expiry.
pub fn change_expiry(seconds: i64) -> Document {
    let index = doc! { "keyPattern": expiry_key(), "expireAfterSeconds": seconds };
    doc! { "collMod": COLLECTION, "index": index }
}

/// What is written counts when a majority has it. A majority that does not come makes an error, and not a wait without end.
pub fn concern() -> Document {
    doc! { "w": "majority", "wtimeout": 15_000 }
}
/// The command that notes when sessions were used. A later use that is known already stays.
pub fn updates(sessions: &[(SessionId, i64)]) -> Document {
    let note = |(id, last_use_ms): &(SessionId, i64)| {
        doc! {
            "q": { "_id": id.to_document() }, "u": { "$max": { "lastUse": Value::DateTime(*last_use_ms) } },
            "upsert": true,
        }
    };
    let updates: Vec<Document> = sessions.iter().map(note).collect();
    doc! { "update": COLLECTION, "updates": updates, "ordered": false, "writeConcern": concern() }
}
/// The command that removes sessions.
pub fn deletes(sessions: &[SessionId]) -> Document {
    let delete = |id: &SessionId| doc! { "q": { "_id": id.to_document() }, "limit": 1 };
    let deletes: Vec<Document> = sessions.iter().map(delete).collect();
    doc! { "delete": COLLECTION, "deletes": deletes, "ordered": false, "writeConcern": concern() }
}
/// The command that looks for sessions.
pub fn find(sessions: &[SessionId]) -> Document {
    let ids: Vec<Document> = sessions.iter().map(SessionId::to_document).collect();
    doc! {
        "find": COLLECTION, "filter": { "_id": { "$in": ids } }, "projection": { "_id": 1 },
        "batchSize": sessions.len() as i64, "singleBatch": true,
    }
}

/// # Errors
/// What a reply to [`updates`] or [`deletes`] says did not succeed.
pub fn check(reply: Doc<'_>) -> Result<()> {
    if let Some(error) = first_error(reply) {
        return Err(error);
    }
    match reply.get_document("writeConcernError") {
        Some(error) => Err(crate::router::write::error_of(error)),
        None => Ok(()),
    }
}
/// The sessions in the reply to [`find`].
///
/// # Errors
/// Something else than a session under an `_id`.
pub fn found(reply: Doc<'_>) -> Result<Vec<SessionId>> {
    let batch = reply.get_document("cursor").and_then(|cursor| cursor.get("firstBatch")?.as_array());
    let found = batch.into_iter().flat_map(|batch| batch.iter());
    let ids = found.filter_map(|e| e.value().as_document()?.get_document("_id").map(SessionId::parse));
    ids.collect()
}

/// Writes when sessions were last used, each to the shard that owns it.
///
/// # Errors
/// NamespaceNotSharded (118) until the config server has made the collection; those of the shards.
pub async fn refresh(cache: &CatalogCache, sessions: &[(SessionId, i64)]) -> Result<()> {
    on_owners(cache, sessions, |(id, _)| id, updates, check).await
}
/// Removes sessions.
///
/// # Errors
/// As [`refresh`].
pub async fn remove(cache: &CatalogCache, sessions: &[SessionId]) -> Result<()> {
    on_owners(cache, sessions, |id| id, deletes, check).await
}
/// Those of the sessions that the collection does not have.
///
/// # Errors
/// As [`refresh`].
pub async fn missing(cache: &CatalogCache, mut sessions: BTreeSet<SessionId>) -> Result<BTreeSet<SessionId>> {
    let asked: Vec<SessionId> = sessions.iter().copied().collect();
    let take_out = |reply: Doc<'_>| {
        for id in found(reply)? {
            sessions.remove(&id);
        }
        Ok(())
    };
    on_owners(cache, &asked, |id| id, find, take_out).await?;
    Ok(sessions)
}

/// Sends commands about items to the shards that own their sessions, batch by batch, and has each reply looked at.
async fn on_owners<T: Copy + Send + Sync>(
    cache: &CatalogCache,
    items: &[T],
    session: fn(&T) -> &SessionId,
    command: fn(&[T]) -> Document,
    mut take: impl FnMut(Doc<'_>) -> Result<()> + Send,
) -> Result<()> {
    // Somebody may have asked before there was one.
    if cache.collection(NS).await?.table().is_none() {
        cache.refresh_collection(NS).await?;
    }
    placement(cache).await?;
    let mut failed = None;
    for slice in items.chunks(SLICE) {
        let mut left = slice.to_vec();
        for attempt in 1.. {
            let table = placement(cache).await?;
            let mut batches = by_owner(&table, &left, session)?;
            let Err(error) = send(cache, &table, &mut batches, command, &mut take).await else { break };
            if !is_stale(&error) || attempt == ATTEMPTS_MAX {
                failed.get_or_insert(error);
                break;
            }
            left = batches.into_iter().flat_map(|(_, batch)| batch).collect();
            cache.refresh_collection(NS).await?;
        }
    }
    failed.map_or(Ok(()), Err)
}

fn is_stale(error: &Error) -> bool {
    error.is(STALE_SHARD_VERSION | STALE_DB_VERSION)
}

async fn placement(cache: &CatalogCache) -> Result<Arc<RoutingTable>> {
    match cache.collection(NS).await? {
        Routing::Sharded(table) => Ok(table),
        _ => bail!(NAMESPACE_NOT_SHARDED, "Collection {NS} is not sharded"),
    }
}

/// The items in batches, each of sessions of one shard.
fn by_owner<T: Copy>(
    table: &RoutingTable,
    items: &[T],
    session: fn(&T) -> &SessionId,
) -> Result<Vec<(ShardId, Vec<T>)>> {
    let mut by_owner: BTreeMap<ShardId, Vec<T>> = BTreeMap::new();
    for item in items {
        let key = table.key.key_of(doc! { "_id": session(item).to_document() }.to_doc_buf().doc())?;
        by_owner.entry(table.find(&key).shard.clone()).or_default().push(*item);
    }
    let batches = by_owner
        .iter()
        .flat_map(|(shard, items)| items.chunks(BATCH).map(|batch| (shard.clone(), batch.to_vec())));
    Ok(batches.collect())
}

/// Sends the batches, and takes out those that have arrived. A shard that fails keeps no other one's sessions from it; of several errors the
/// one that another placement may mend is told.
async fn send<T: Send + Sync>(
    cache: &CatalogCache,
    table: &RoutingTable,
    batches: &mut Vec<(ShardId, Vec<T>)>,
    command: fn(&[T]) -> Document,
    take: &mut (impl FnMut(Doc<'_>) -> Result<()> + Send),
) -> Result<()> {
    let mut failed: Option<Error> = None;
    for (shard, batch) in std::mem::take(batches) {
        let mut command = command(&batch);
        command.push("shardVersion", table.shard_version(&shard).to_document());
        if let Err(error) = ask(cache, &shard, command).await.and_then(|reply| take(reply.doc())) {
            batches.push((shard, batch));
            failed = match failed {
                Some(earlier) if is_stale(&earlier) || !is_stale(&error) => Some(earlier),
                _ => Some(error),
            };
        }
    }
    failed.map_or(Ok(()), Err)
}

/// What a shard replies, within [`REPLY_LIMIT`].
async fn ask(cache: &CatalogCache, shard: &ShardId, command: Document) -> Result<DocBuf> {
    let asked = cache.remote.run(Target::Shard(shard), "config", command.to_doc_buf());
    match tokio::time::timeout(REPLY_LIMIT, asked).await {
        Ok(reply) => reply,
        Err(_) => {
            bail!(EXCEEDED_TIME_LIMIT, "shard {shard} has said nothing about sessions in {REPLY_LIMIT:?}")
        }
    }
}

impl ConfigServer {
    /// Makes `config.system.sessions` if it is not there: on the first shard, cut into
    /// `minNumChunksForSessionsCollection` chunks. Where it is there, its index gets the expiry of this node's
    /// `localLogicalSessionTimeoutMinutes` if it has another.
    ///
    /// # Errors
    /// ShardNotFound (70) while there is no shard; those of the shard.
    pub async fn ensure_sessions_collection(self: &Arc<ConfigServer>) -> Result<()> {
        self.ensure().await?;
        // Of two that make it at once one would be registered and the other one made.
        let _one = self.sessions_collection.lock().await;
        let timeout = self.parameters.int("localLogicalSessionTimeoutMinutes");
        if let Some(collection) = self.catalog().find_collection(NS)? {
            return self.mend_expiry(&collection, expiry_secs(timeout)).await;
        }
        let shard = self.catalog().shards().into_iter().find(|s| !s.draining).ok_or_else(|| {
            err!(
                SHARD_NOT_FOUND,
                "Failed to create {NS}: cannot create the collection until there are shards"
            )
        })?;
        let uuid = self.node.new_uuid();
        let (name, indexes) = (COLLECTION.to_string(), Some(vec![expiry_index(timeout)]));
        let make = CreateParticipant { name, uuid, options: None, indexes }.with_majority();
        let host = Target::Host(&shard.host);
        let made = self.remote.run(host, "config", make.to_doc_buf()).await;
        if made.as_ref().is_err_and(|e| e.code == codes::INVALID_UUID) {
            // One of the time before the shard was added: what it says is of no cluster.
            let drop = doc! { "drop": COLLECTION, "writeConcern": majority() };
            self.remote.run(host, "config", drop.to_doc_buf()).await?;
            self.remote.run(host, "config", make.to_doc_buf()).await?;
        } else {
            made?;
        }
        let count = self.parameters.int("minNumChunksForSessionsCollection").clamp(1, 1_000_000) as u32;
        let created = CommitCreateCollection {
            ns: NS.to_string(),
            uuid,
            key: doc! { "_id": 1 },
            unique: Flag(false),
            collation: None,
            series: None,
            unsplittable: Flag(false),
            chunks: ranges(count, &shard.name),
        };
        match self.create_in_catalog(&created).await {
            // Another request was faster; what was made here is adopted by nobody and gives way.
            Err(e) if e.code == codes::ALREADY_INITIALIZED => Ok(()),
            done => done.map(|_| ()),
        }
    }

    /// Changes the expiry of the index on those owners that have another.
    async fn mend_expiry(&self, collection: &Sharded, seconds: i64) -> Result<()> {
        let table = self.catalog().routing_table(collection)?;
        let owners: Vec<ShardId> = table.shards().cloned().collect();
        for shard in owners {
            let connection = self.catalog().shard(&shard)?.host;
            let host = Target::Host(&connection);
            let indexes = doc! { "listIndexes": COLLECTION, "cursor": { "batchSize": 1000 } };
            let reply = self.remote.run(host, "config", indexes.to_doc_buf()).await?;
            if listed_expiry(reply.doc()).is_none_or(|has| has == seconds) {
                continue;
            }
            let (name, command) = (COLLECTION.to_string(), change_expiry(seconds));
            let change = CollModParticipant { name, command, histories: None }.with_majority();
            self.remote.run(host, "config", change.to_doc_buf()).await?;
        }
        Ok(())
    }
}

/// The expiry of the index in a reply to `listIndexes`; `None` where it is not there.
fn listed_expiry(reply: Doc<'_>) -> Option<i64> {
    let batch = reply.get_document("cursor")?.get("firstBatch")?.as_array()?;
    let mut indexes = batch.iter().filter_map(|e| e.value().as_document());
    indexes.find(|index| index.get_str("name") == Some(EXPIRY))?.get_i64("expireAfterSeconds")
}

/// `count` ranges of equal size over the first four bytes of the session's UUID.
fn ranges(count: u32, shard: &str) -> Vec<FirstChunk> {
    let bound = |i: u32| -> Document {
        match i {
            0 => doc! { "_id": Value::MinKey },
            i if i == count => doc! { "_id": Value::MaxKey },
            i => {
                let mut id = [0u8; 16];
                let high = (u64::from(i) << 32) / u64::from(count);
                id[..4].copy_from_slice(&(high as u32).to_be_bytes());
                doc! { "_id": { "id": Value::uuid(id) } }
            }
        }
    };
    (0..count).map(|i| FirstChunk { min: bound(i), max: bound(i + 1), shard: shard.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_on_one_another_and_cover_everything() {
        for count in [1, 2, 3, 1024] {
            let all = ranges(count, "a");
            assert_eq!(all.len(), count as usize);
            assert_eq!(all[0].min.get("_id"), Some(&Value::MinKey));
            assert_eq!(all[all.len() - 1].max.get("_id"), Some(&Value::MaxKey));
            assert!(all.windows(2).all(|w| w[0].max == w[1].min));
        }
        let half = ranges(2, "a")[0].max.get_path("_id.id").and_then(Value::as_uuid);
        assert_eq!(half.map(|id| id[0]), Some(0x80));
    }

    #[test]
    fn the_expiry_of_listed_indexes_is_read_and_errors_of_writes_are_told() {
        let listed = |name: &str| {
            let indexes = vec![doc! { "name": "_id_" }, doc! { "name": name, "expireAfterSeconds": 1800 }];
            doc! { "cursor": { "firstBatch": indexes } }.to_doc_buf()
        };
        assert_eq!(listed_expiry(listed(EXPIRY).doc()), Some(1800));
        assert_eq!(listed_expiry(listed("other").doc()), None);
        let failed = doc! { "n": 1, "writeConcernError": { "code": 64, "errmsg": "waiting timed out" } };
        assert_eq!(check(failed.to_doc_buf().doc()).unwrap_err().code, 64);
        assert_eq!(check(doc! { "n": 1 }.to_doc_buf().doc()), Ok(()));
    }
}
