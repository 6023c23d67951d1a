//! `_configsvrCommitRefineCollectionShardKey`: a shard key gets more fields, and every bound with it.
//!
//! No document moves: a bound `{x: 5}` becomes `{x: 5, y: MinKey}`, which divides the same documents, and the end of the
//! key space stays its end. Owners, histories and chunk versions stay; the epoch and the timestamp are new, so whoever
//! knows the old key asks. A chunk that was jumbo may now be divisible.

use super::catalog::{Sharded, ZoneRange};
use super::{COLLECTIONS, ConfigServer, TAGS, change, put, require_majority, shown};
use crate::chunk::Chunk;
use crate::key_pattern::ShardKeyPattern;
use crate::messages::Message;
use crate::messages::ddl::CommitRefine;
use document::{Document, ObjectId, Result, Value, bail, doc, err};
use node::{BatchWrite, Operation, Request};

impl ConfigServer {
    /// `{_configsvrCommitRefineCollectionShardKey: ns, key, newEpoch, oldTimestamp}`. A repeat finds its epoch in place.
    ///
    /// # Errors
    /// NamespaceNotSharded (118), StaleEpoch (150) for another incarnation than that of `oldTimestamp`, InvalidOptions (72)
    /// for a key that does not extend the present one.
    pub async fn commit_refine(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, CommitRefine::COMMAND)?;
        self.ensure().await?;
        let CommitRefine { ns, key, epoch, known } = CommitRefine::parse(request.body)?;
        let (ns, key) = (ns.as_str(), ShardKeyPattern::parse(&key)?);
        for point in
            ["hangRefineCollectionShardKeyBeforeUpdatingChunks", "hangRefineCollectionShardKeyBeforeCommit"]
        {
            self.node.failpoints.pause_operation(op, point, ns).await?;
        }
        let _lock = self.lock_chunks(ns).await;
        let collection = self.catalog().sharded(ns)?;
        if collection.info.epoch == epoch {
            return Ok(Document::new());
        }
        if collection.info.timestamp != known {
            bail!(STALE_EPOCH, "Collection {ns} has changed since the refinement of its shard key began");
        }
        if !key.extends(&collection.key) {
            bail!(INVALID_OPTIONS, "{}", not_an_extension(key.document(), collection.key.document()));
        }
        self.commit(&self.refined(&collection, &key, epoch)?).await?;
        Ok(Document::new())
    }

    fn refined(&self, old: &Sharded, key: &ShardKeyPattern, epoch: ObjectId) -> Result<Vec<BatchWrite>> {
        let mut entry = old.document.clone();
        entry.insert("key", key.document().clone());
        entry.insert("lastmodEpoch", epoch);
        entry.insert("timestamp", self.tick());
        entry.insert("lastmod", Value::DateTime(self.node.now_ms()));
        // The operation itself had forbidden them.
        entry.remove("allowMigrations");
        let new = Sharded::parse(entry.clone())?;
        let mut writes = vec![change(COLLECTIONS, old.document.clone(), entry)];
        for chunk in self.catalog().chunks(old)? {
            writes.push(self.put_chunk(&new, &refined_chunk(key, chunk)?));
        }
        for zone in self.catalog().zone_ranges(&old.info.ns) {
            writes.push(refined_zone(key, &old.info.ns, zone)?);
        }
        Ok(writes)
    }
}

/// Why a key cannot take the place of another.
pub(crate) fn not_an_extension(key: &Document, present: &Document) -> String {
    format!(
        "refineCollectionShardKey shard key {} must extend the current shard key {}",
        shown(key),
        shown(present)
    )
}

fn refined_bound(key: &ShardKeyPattern, bound: &Document) -> Result<Document> {
    key.refined_bound(bound).ok_or_else(|| {
        err!(
            INCOMPATIBLE_SHARDING_METADATA,
            "{} is no bound of a prefix of {}",
            shown(bound),
            shown(key.document())
        )
    })
}

fn refined_chunk(key: &ShardKeyPattern, old: Chunk) -> Result<Chunk> {
    let (min, max) = (refined_bound(key, &old.min)?, refined_bound(key, &old.max)?);
    let (min_key, max_key) = (key.encode_bound(&min)?, key.encode_bound(&max)?);
    Ok(Chunk { min, max, min_key, max_key, jumbo: false, ..old })
}

fn refined_zone(key: &ShardKeyPattern, ns: &str, zone: ZoneRange) -> Result<BatchWrite> {
    let (min, max) = (refined_bound(key, &zone.min)?, refined_bound(key, &zone.max)?);
    Ok(put(TAGS, doc! { "_id": zone.id, "ns": ns, "tag": zone.zone, "min": min, "max": max }))
}
