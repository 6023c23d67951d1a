//! `config.system.sessions`: the logical sessions of the whole cluster, sharded by their id.
//!
//! The config server makes it once there is a shard; routers and shards write through it what they have seen used. An
//! index makes a session that nobody refreshes expire.

use crate::chunk::ShardId;
use crate::config::ConfigServer;
use crate::messages::ddl::{CommitCreateCollection, CreateParticipant, FirstChunk};
use crate::messages::{Flag, Message};
use crate::remote::{Target, majority};
use crate::router::write::first_error;
use crate::routing::{CatalogCache, Routing, RoutingTable};
use document::error::{STALE_DB_VERSION, STALE_SHARD_VERSION};
use document::{Document, Result, Value, bail, codes, doc, err};
use node::operation::SessionId;
use std::collections::BTreeMap;
use std::sync::Arc;

pub const NS: &str = "config.system.sessions";
const COLLECTION: &str = "system.sessions";
/// How often a batch is sent anew when its placement turned out to be old.
const ATTEMPTS_MAX: usize = 10;
/// Sessions in one request.
const BATCH: usize = 1000;

/// The index by which sessions expire.
pub fn expiry_index(timeout_minutes: i64) -> Document {
    doc! {
        "v": 2, "key": { "lastUse": 1 }, "name": "lsidTTLIndex", "expireAfterSeconds": (timeout_minutes * 60) as i32,
    }
}

/// The update that notes a session's use.
fn note(id: &SessionId, last_use_ms: i64) -> Document {
    doc! {
        "q": { "_id": id.to_document() }, "u": { "$max": { "lastUse": Value::DateTime(last_use_ms) } },
        "upsert": true,
    }
}

/// Writes sessions and when they were last used, each to the shard that owns it.
///
/// # Errors
/// NamespaceNotSharded (118) until the config server has made the collection; those of the shards.
pub async fn refresh(cache: &CatalogCache, sessions: &[(SessionId, i64)]) -> Result<()> {
    let mut left: Vec<&(SessionId, i64)> = sessions.iter().collect();
    // Somebody may have asked before there was one.
    if cache.collection(NS).await?.table().is_none() {
        cache.refresh_collection(NS).await?;
    }
    for attempt in 1.. {
        let Routing::Sharded(table) = cache.collection(NS).await? else {
            bail!(NAMESPACE_NOT_SHARDED, "Collection {NS} is not sharded");
        };
        let Err(error) = send(cache, &table, &mut left).await else { break };
        if !error.is(STALE_SHARD_VERSION | STALE_DB_VERSION) || attempt == ATTEMPTS_MAX {
            return Err(error);
        }
        cache.refresh_collection(NS).await?;
    }
    Ok(())
}

/// Sends what is left; takes out of it what has arrived.
async fn send(cache: &CatalogCache, table: &RoutingTable, left: &mut Vec<&(SessionId, i64)>) -> Result<()> {
    let mut by_owner: BTreeMap<ShardId, Vec<&(SessionId, i64)>> = BTreeMap::new();
    for session in left.iter() {
        let key = table.key.key_of(doc! { "_id": session.0.to_document() }.to_doc_buf().doc())?;
        by_owner.entry(table.find(&key).shard.clone()).or_default().push(*session);
    }
    for (shard, sessions) in by_owner {
        for batch in sessions.chunks(BATCH) {
            let updates: Vec<Document> = batch.iter().map(|(id, last)| note(id, *last)).collect();
            let command = doc! {
                "update": COLLECTION, "updates": updates, "ordered": false, "writeConcern": majority(),
                "shardVersion": table.shard_version(&shard).to_document(),
            };
            let reply = cache.remote.run(Target::Shard(&shard), "config", command.to_doc_buf()).await?;
            if let Some(error) = first_error(reply.doc()) {
                return Err(error);
            }
            left.retain(|s| !batch.iter().any(|sent| sent.0 == s.0));
        }
    }
    Ok(())
}

impl ConfigServer {
    /// Makes `config.system.sessions` if it is not there: on the first shard, cut into
    /// `minNumChunksForSessionsCollection` chunks.
    ///
    /// # Errors
    /// ShardNotFound (70) while there is no shard; those of the shard.
    pub async fn ensure_sessions_collection(self: &Arc<ConfigServer>) -> Result<()> {
        self.ensure().await?;
        if self.catalog().find_collection(NS)?.is_some() {
            return Ok(());
        }
        let shard = self.catalog().shards().into_iter().find(|s| !s.draining).ok_or_else(|| {
            err!(
                SHARD_NOT_FOUND,
                "Failed to create {NS}: cannot create the collection until there are shards"
            )
        })?;
        let uuid = self.node.new_uuid();
        let timeout = self.parameters.int("localLogicalSessionTimeoutMinutes").max(1);
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
}
