//! `_configsvrCommitChunkMigration`: a range changes its owner. The one moment at which a migration happens.

use super::{history_with, next_major, next_minor};
use crate::balancer::lost::FENCED;
use crate::chunk::Chunk;
use crate::config::catalog::Sharded;
use crate::config::{ConfigServer, MIGRATIONS, PLACEMENT_HISTORY, insert, require_majority, shown};
use crate::messages::Message;
use crate::messages::chunks::CommitChunkMigration;
use document::{Document, Result, Timestamp, Value, bail, doc, err};
use node::{BatchWrite, Operation, Request};

impl ConfigServer {
    /// [`CommitChunkMigration`]; returns `{shardVersion}`, the donor's version afterwards.
    ///
    /// # Errors
    /// StaleEpoch (150), ConflictingOperationInProgress (117), ShardNotFound (70), 40165 when no chunk of the donor holds
    /// the range, IncompatibleShardingMetadata (105).
    pub async fn commit_chunk_migration(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, CommitChunkMigration::COMMAND)?;
        self.ensure().await?;
        let commit = CommitChunkMigration::parse(request.body)?;
        let version = commit.version;
        if self.node.failpoints.should("migrationCommitVersionError") {
            bail!(STALE_EPOCH, "Failpoint 'migrationCommitVersionError' generated error");
        }
        // The range changes hands after the donor's last write to it, whichever clock is ahead: reads of the past go by that.
        if let Some(after) = commit.valid_after {
            self.node.log.advance_clock(after.as_u64());
        }
        // No shard begins to drain, or goes, between the look at the recipient and the commit.
        let _members = self.membership.read().await;
        let _lock = self.lock_chunks(&commit.ns).await;
        let collection = self.of_generation(&commit.ns, Some(version.epoch), Some(version.timestamp))?;
        let current = self.chunk_to_move(&commit, &collection)?;
        if *current.shard != *commit.to {
            self.check_note(&commit)?;
            let writes = self.migration_writes(&commit, &collection, &current)?;
            self.commit(&writes).await?;
        }
        let placement = self.catalog().shard_placement(collection.info.uuid, &commit.from);
        Ok(doc! { "shardVersion": collection.version(placement).to_document() })
    }

    /// A migration of the balancer's is committed as long as its note stands and is not fenced. One that a deposed primary asks for when it wakes,
    /// though its successor has stopped the balancer, has none.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117).
    fn check_note(&self, commit: &CommitChunkMigration) -> Result<()> {
        let Some(note) = commit.note else { return Ok(()) };
        match self.local.find_one(MIGRATIONS, &doc! { "_id": note })? {
            Some(noted) if noted.get_bool(FENCED) != Some(true) => Ok(()),
            _ => bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "The balancer has given up its migration of {} to {}",
                commit.ns,
                commit.to
            ),
        }
    }

    /// The chunk that holds the range: the donor's, or the recipient's when the commit has happened already.
    fn chunk_to_move(&self, commit: &CommitChunkMigration, collection: &Sharded) -> Result<Chunk> {
        let not_found = || {
            err!(
                40165,
                "Tried to find the chunk for '{} -> {}' of {} on shard {}, but found no chunk",
                shown(&commit.chunk.min),
                shown(&commit.chunk.max),
                commit.ns,
                commit.from
            )
        };
        let (min, max) = (
            collection.key.encode_bound(&commit.chunk.min)?,
            collection.key.encode_bound(&commit.chunk.max)?,
        );
        let found = self.catalog().chunk_at(collection, &commit.chunk.min)?.ok_or_else(not_found)?;
        if min >= max || found.max_key < max {
            return Err(not_found());
        }
        if *found.shard == *commit.to && found.min_key == min && found.max_key == max {
            return Ok(found);
        }
        if *found.shard != *commit.from {
            return Err(not_found());
        }
        if !collection.may_migrate() {
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "Migrations for collection {} are not allowed",
                commit.ns
            );
        }
        if let Some(known) = &commit.chunk.known
            && found.version > known.placement
        {
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "Rejecting the commit of the migration: the chunk [{}, {}) has version {}|{}, newer than {}|{} of the request",
                shown(&found.min),
                shown(&found.max),
                found.version.secs,
                found.version.inc,
                known.major(),
                known.minor()
            );
        }
        if self.catalog().shard(&commit.to)?.draining {
            bail!(SHARD_NOT_FOUND, "Shard {} is currently draining and may not receive chunks", commit.to);
        }
        Ok(found)
    }

    fn migration_writes(
        &self,
        commit: &CommitChunkMigration,
        collection: &Sharded,
        current: &Chunk,
    ) -> Result<Vec<BatchWrite>> {
        let uuid = collection.info.uuid;
        let at = self.tick();
        let version = next_major(self.catalog().collection_placement(uuid))?;
        let mut moved = Chunk {
            min: commit.chunk.min.clone(),
            max: commit.chunk.max.clone(),
            min_key: collection.key.encode_bound(&commit.chunk.min)?,
            max_key: collection.key.encode_bound(&commit.chunk.max)?,
            shard: commit.to.as_str().into(),
            version,
            jumbo: false,
            bytes: None,
            history: history_with(&current.history, at, &commit.to, self.history_window_secs())?,
            ..current.clone()
        };
        if moved.min_key == current.min_key && moved.max_key == current.max_key {
            moved.bytes = current.bytes;
        }
        let stayed = self.stays_on_donor(collection, current, &moved, version)?;
        let mut writes = vec![self.put_chunk(collection, &moved)];
        writes.extend(stayed.iter().map(|c| self.put_chunk(collection, c)));
        self.note_placement(&mut writes, commit, collection, &stayed, at);
        Ok(writes)
    }

    /// What changes on the donor: the leftovers of a chunk that is moved in part, or else one other chunk, whose raised
    /// version makes requests for the donor stale; nothing when the donor is left without chunks.
    fn stays_on_donor(
        &self,
        collection: &Sharded,
        old: &Chunk,
        moved: &Chunk,
        major: Timestamp,
    ) -> Result<Vec<Chunk>> {
        let mut version = major;
        let mut piece = |min: (&Document, &[u8]), max: (&Document, &[u8])| -> Result<Chunk> {
            version = next_minor(version)?;
            Ok(Chunk {
                id: self.node.new_object_id(),
                min: min.0.clone(),
                max: max.0.clone(),
                min_key: min.1.to_vec(),
                max_key: max.1.to_vec(),
                version,
                jumbo: false,
                bytes: None,
                ..old.clone()
            })
        };
        let mut stayed = Vec::new();
        if old.min_key < moved.min_key {
            stayed.push(piece((&old.min, &old.min_key), (&moved.min, &moved.min_key))?);
        }
        if moved.max_key < old.max_key {
            stayed.push(piece((&moved.max, &moved.max_key), (&old.max, &old.max_key))?);
        }
        if stayed.is_empty()
            && let Some(control) = self.catalog().another_chunk_of(collection, &old.shard, &old.min_key)?
        {
            stayed.push(Chunk { version: next_minor(major)?, ..control });
        }
        Ok(stayed)
    }

    /// Adds the entry of `config.placementHistory` when the set of owners changes.
    fn note_placement(
        &self,
        writes: &mut Vec<BatchWrite>,
        commit: &CommitChunkMigration,
        collection: &Sharded,
        stayed: &[Chunk],
        at: Timestamp,
    ) {
        let uuid = collection.info.uuid;
        let catalog = self.catalog();
        let newcomer = catalog.shard_placement(uuid, &commit.to) == Timestamp::default();
        if !newcomer && !stayed.is_empty() {
            return;
        }
        let mut owners: Vec<String> = catalog.shards().into_iter().map(|s| s.name).collect();
        owners.retain(|s| {
            *s == commit.to
                || (*s == commit.from && !stayed.is_empty())
                || (*s != commit.from && catalog.shard_placement(uuid, s) != Timestamp::default())
        });
        writes.push(insert(
            PLACEMENT_HISTORY,
            placement_entry(self.node.new_object_id(), &commit.ns, Some(uuid), at, owners),
        ));
    }
}

/// A document of `config.placementHistory`.
pub(crate) fn placement_entry(
    id: document::ObjectId,
    ns: &str,
    uuid: Option<[u8; 16]>,
    at: Timestamp,
    shards: Vec<String>,
) -> Document {
    let mut d = doc! { "_id": id, "nss": ns };
    if let Some(uuid) = uuid {
        d.push("uuid", Value::uuid(uuid));
    }
    d.push("timestamp", at);
    d.push("shards", shards);
    d
}
