//! Measured sizes of chunks: they stand with a chunk while its collection is defragmented, and no longer.

use crate::chunk::Chunk;
use crate::config::ConfigServer;
use crate::config::catalog::Sharded;
use document::{Document, ObjectId, Result, bail};
use protocol::balancer::defragmentation::Phase;

impl ConfigServer {
    /// Keeps the size of a chunk of a collection that is being defragmented.
    ///
    /// # Errors
    /// IllegalOperation (20) when the collection, or a chunk with exactly these bounds, is no longer there, or nothing
    /// defragments it any more.
    pub(crate) async fn keep_size(
        &self,
        ns: &str,
        epoch: ObjectId,
        min: &Document,
        max: &Document,
        bytes: i64,
    ) -> Result<()> {
        let _lock = self.lock_chunks(ns).await;
        let collection = self.catalog().sharded(ns)?;
        let wanted =
            collection.is_defragmented() && collection.defragmentation_phase() != Some(Phase::Finished);
        if collection.info.epoch != epoch || !wanted {
            bail!(ILLEGAL_OPERATION, "collection {ns} is no longer being defragmented");
        }
        let max_key = collection.key.encode_bound(max)?;
        let found = self.catalog().chunk_at(&collection, min)?;
        let Some(chunk) = found.filter(|c| c.min == *min && c.max_key == max_key) else {
            bail!(ILLEGAL_OPERATION, "the chunk of {ns} that was measured is no longer there")
        };
        self.commit(&[self.put_chunk(&collection, &Chunk { bytes: Some(bytes), ..chunk })]).await
    }

    /// Removes all sizes of a collection, whose chunks are locked by the caller.
    pub(crate) async fn forget_sizes(&self, collection: &Sharded) -> Result<()> {
        let measured = self.catalog().chunks(collection)?.into_iter().filter(|c| c.bytes.is_some());
        let writes = measured.map(|c| self.put_chunk(collection, &Chunk { bytes: None, ..c }));
        self.commit_in_parts(writes.collect()).await
    }
}
