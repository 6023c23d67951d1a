//! Raising versions without moving anything: so that whoever acts on an older one is refused.

use super::next_major;
use crate::chunk::Chunk;
use crate::config::catalog::Sharded;
use crate::config::{COLLECTIONS, ConfigServer, change, require_majority};
use crate::messages::Message;
use crate::messages::chunks::{ClearJumboFlag, EnsureChunkVersion, SetAllowMigrations};
use crate::shard::migration::MoveRange;
use document::{Document, Result, Timestamp, bail, doc};
use node::{BatchWrite, Operation, Request};

impl ConfigServer {
    /// [`EnsureChunkVersion`]: a commit still under way for an older version fails afterwards.
    ///
    /// # Errors
    /// A request without version or bounds. A chunk or collection that is gone needs nothing.
    pub async fn ensure_chunk_version(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, EnsureChunkVersion::COMMAND)?;
        self.ensure().await?;
        let EnsureChunkVersion { min, max, version, ns, uuid } = EnsureChunkVersion::parse(request.body)?;
        let (min, max) = (&min, &max);
        let ns = ns.or_else(|| {
            let mut all = self.catalog().collections().into_iter();
            all.find(|c| c.info.epoch == version.epoch || Some(c.info.uuid) == uuid).map(|c| c.info.ns)
        });
        let Some(ns) = ns else { return Ok(Document::new()) };
        let _lock = self.lock_chunks(&ns).await;
        let Some(collection) = self.catalog().find_collection(&ns)? else { return Ok(Document::new()) };
        if collection.info.epoch != version.epoch || uuid.is_some_and(|u| u != collection.info.uuid) {
            return Ok(Document::new());
        }
        let (Ok(min_key), Ok(max_key)) = (collection.key.encode_bound(min), collection.key.encode_bound(max))
        else {
            bail!(BAD_VALUE, "minKey and maxKey must be full shard keys of {ns}")
        };
        // A range within a chunk counts as that chunk: the commit would have split it.
        let found = self.catalog().chunk_at(&collection, min)?;
        let Some(chunk) = found.filter(|c| c.min_key <= min_key && max_key <= c.max_key) else {
            return Ok(Document::new());
        };
        if chunk.version <= version.placement {
            self.raise(&collection, chunk).await?;
        }
        Ok(Document::new())
    }

    /// Writes down that a migration is not to be committed any more, and raises the version of the chunk that it was to move from a shard that
    /// is gone. The version that the donor asks for once it is back, [`EnsureChunkVersion`], finds that newer one, and changes
    /// nothing.
    ///
    /// # Errors
    /// A failed log.
    pub(crate) async fn fence_migration(&self, m: &MoveRange, fence: BatchWrite) -> Result<()> {
        let _lock = self.lock_chunks(&m.ns).await;
        let mut writes = vec![fence];
        let collection = self.catalog().find_collection(&m.ns)?;
        if let Some(collection) = collection.filter(|c| m.epoch == Some(c.info.epoch))
            && let Some(bound) = &m.min
            && let Some(chunk) = self.catalog().chunk_at(&collection, bound)?.filter(|c| *c.shard == *m.from)
        {
            writes.push(self.raised(&collection, chunk)?);
        }
        self.commit(&writes).await
    }

    async fn raise(&self, collection: &Sharded, chunk: Chunk) -> Result<()> {
        self.commit(&[self.raised(collection, chunk)?]).await
    }
    fn raised(&self, collection: &Sharded, chunk: Chunk) -> Result<BatchWrite> {
        let version = next_major(self.catalog().collection_placement(collection.info.uuid))?;
        Ok(self.put_chunk(collection, &Chunk { version, ..chunk }))
    }

    /// [`ClearJumboFlag`].
    ///
    /// # Errors
    /// StaleEpoch (150), IncompatibleShardingMetadata (105) when there is no such chunk.
    pub async fn clear_jumbo_flag(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, ClearJumboFlag::COMMAND)?;
        self.ensure().await?;
        let ClearJumboFlag { ns, epoch, min, max } = &ClearJumboFlag::parse(request.body)?;
        let _lock = self.lock_chunks(ns).await;
        let collection = self.of_generation(ns, Some(*epoch), None)?;
        let (min_key, max_key) = (collection.key.encode_bound(min)?, collection.key.encode_bound(max)?);
        let found = self.catalog().chunk_at(&collection, min)?;
        let Some(chunk) = found.filter(|c| c.min_key == min_key && c.max_key == max_key) else {
            bail!(INCOMPATIBLE_SHARDING_METADATA, "Unable to find chunk with the given bounds in {ns}")
        };
        if chunk.jumbo {
            self.raise(&collection, Chunk { jumbo: false, ..chunk }).await?;
        }
        Ok(Document::new())
    }

    /// `clearJumboFlag` of a user: `find` or `bounds` name the chunk.
    pub async fn clear_jumbo_flag_of(&self, ns: &str, chunk: &Chunk) -> Result<()> {
        let _lock = self.lock_chunks(ns).await;
        let collection = self.catalog().sharded(ns)?;
        let found = self.catalog().chunk_at(&collection, &chunk.min)?;
        if let Some(found) = found.filter(|c| c.jumbo && c.min_key == chunk.min_key) {
            self.raise(&collection, Chunk { jumbo: false, ..found }).await?;
        }
        Ok(())
    }

    /// Marks a chunk that cannot be moved, so that the balancer passes it by. The version stays: routing is the same.
    /// Another one in its place, or another incarnation of the collection, is let be.
    pub(crate) async fn mark_jumbo(&self, of: &Sharded, chunk: &Chunk) -> Result<()> {
        let ns = &of.info.ns;
        let _lock = self.lock_chunks(ns).await;
        let collection = self.catalog().sharded(ns)?;
        let found = self.catalog().chunk_at(&collection, &chunk.min)?;
        let same = |c: &Chunk| (&c.min_key, &c.max_key) == (&chunk.min_key, &chunk.max_key);
        match found.filter(|c| !c.jumbo && same(c) && collection.info.epoch == of.info.epoch) {
            Some(chunk) => self.commit(&[self.put_chunk(&collection, &Chunk { jumbo: true, ..chunk })]).await,
            None => Ok(()),
        }
    }

    /// [`SetAllowMigrations`]: the flag, and a raised version for one chunk of each shard so that shards refresh.
    /// `allowMigrations` is what DDL operations set; `permit` means the user's own flag, `permitMigrations`, which they leave
    /// alone. A migration needs both.
    ///
    /// # Errors
    /// NamespaceNotSharded (118), ConflictingOperationInProgress (117) for another incarnation.
    pub async fn set_allow_migrations(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, SetAllowMigrations::COMMAND)?;
        self.ensure().await?;
        let SetAllowMigrations { ns, allow, uuid, permit } = &SetAllowMigrations::parse(request.body)?;
        let allow = *allow;
        let _lock = self.lock_chunks(ns).await;
        let collection = self.catalog().sharded(ns)?;
        if uuid.is_some_and(|u| u != collection.info.uuid) {
            bail!(CONFLICTING_OPERATION_IN_PROGRESS, "Collection {ns} was dropped and created anew");
        }
        let flag = if permit.0 { "permitMigrations" } else { "allowMigrations" };
        if collection.document.get_bool(flag).unwrap_or(true) == allow {
            return Ok(Document::new());
        }
        let mut entry = collection.document.clone();
        entry.remove(flag);
        if !allow {
            entry.push(flag, false);
        }
        let mut writes = vec![change(COLLECTIONS, collection.document.clone(), entry)];
        writes.extend(self.bump_every_owner(&collection)?);
        self.commit(&writes).await?;
        Ok(Document::new())
    }

    /// One chunk of each owner with a new major version.
    pub(crate) fn bump_every_owner(&self, collection: &Sharded) -> Result<Vec<BatchWrite>> {
        let uuid = collection.info.uuid;
        let mut version: Timestamp = self.catalog().collection_placement(uuid);
        let mut writes = Vec::new();
        for shard in self.catalog().shards() {
            if let Some(chunk) = self.catalog().newest_chunk_of(collection, &shard.name)? {
                version = next_major(version)?;
                writes.push(self.put_chunk(collection, &Chunk { version, ..chunk }));
            }
        }
        Ok(writes)
    }

    /// What a shard's version is in the catalog, for answers of DDL commands.
    pub fn collection_version_document(&self, collection: &Sharded) -> Document {
        doc! { "collectionVersion": collection.version(self.catalog().collection_placement(collection.info.uuid)).to_document() }
    }
}
