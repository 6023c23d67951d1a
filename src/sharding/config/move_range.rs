//! `_configsvrMoveRange`: a user or the balancer wants a range moved. The donor does it; here the request is checked
//! and sent on.

use super::{ConfigServer, shown};
use crate::chunk::Chunk;
use crate::messages::Message;
use crate::messages::chunks::RequestMove;
use crate::remote::Target;
use crate::shard::migration::MoveRange;
use document::{Document, Result, bail};
use node::{Operation, Request};

impl ConfigServer {
    /// Runs a [`RequestMove`]. Moving a range to where it is succeeds at once.
    ///
    /// # Errors
    /// NamespaceNotSharded (118), ShardNotFound (70), InvalidOptions (72), and the donor's (ChunkTooBig, 117, ...).
    pub async fn move_range(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        self.ensure().await?;
        let RequestMove { ns, to, min, max, force_jumbo, wait_for_delete, throttle } =
            RequestMove::parse(request.body)?;
        let collection = self.catalog().sharded(&ns)?;
        let to = self.shard_named(&to)?;
        let Some(anchor) = min.as_ref().or(max.as_ref()) else {
            bail!(INVALID_OPTIONS, "Mandatory to specify at least one bound of the range")
        };
        for given in [&min, &max].into_iter().flatten() {
            if !collection.key.is_full_key(given) {
                bail!(
                    INVALID_OPTIONS,
                    "{} is not a full shard key of {}",
                    shown(given),
                    shown(collection.key.document())
                );
            }
        }
        let chunk = match &min {
            Some(min) => self.catalog().chunk_at(&collection, min)?,
            None => self.chunk_ending_at_or_holding(&collection, anchor)?,
        };
        let Some(chunk) = chunk else {
            bail!(INVALID_OPTIONS, "no chunk of {ns} holds the bound {}", shown(anchor))
        };
        check_within(&ns, &collection.key, &chunk, min.as_ref(), max.as_ref())?;
        if *chunk.shard == *to.name {
            return Ok(Document::new());
        }
        let migration = MoveRange {
            ns,
            from: chunk.shard.to_string(),
            to: to.name,
            min,
            max,
            epoch: Some(collection.info.epoch),
            max_bytes: self.max_chunk_bytes(&collection),
            max_objects: None,
            force_jumbo: i32::from(force_jumbo.0),
            wait_for_delete: wait_for_delete.0,
            throttle,
            note: None,
        };
        op.interruptible(self.migrate(&migration)).await??;
        Ok(Document::new())
    }

    fn chunk_ending_at_or_holding(
        &self,
        collection: &super::catalog::Sharded,
        max: &Document,
    ) -> Result<Option<Chunk>> {
        let key = collection.key.encode_bound(max)?;
        let chunks = self.catalog().chunks(collection)?;
        Ok(chunks.into_iter().find(|c| c.min_key < key && key <= c.max_key))
    }

    /// Has the donor move the range.
    ///
    /// # Errors
    /// The donor's.
    pub async fn migrate(&self, m: &MoveRange) -> Result<()> {
        // The donor refuses while the cluster stands still.
        self.whole.pass().await;
        let donor = self.catalog().shard(&m.from)?;
        self.remote.admin(Target::Host(&donor.host), m.to_document()).await.map(drop)
    }
}

fn check_within(
    ns: &str,
    key: &crate::key_pattern::ShardKeyPattern,
    chunk: &Chunk,
    min: Option<&Document>,
    max: Option<&Document>,
) -> Result<()> {
    let outside = |bound: &Document| -> Result<bool> {
        let bound = key.encode_bound(bound)?;
        Ok(bound < chunk.min_key || bound > chunk.max_key)
    };
    let mut bad = false;
    for bound in [min, max].into_iter().flatten() {
        bad |= outside(bound)?;
    }
    if let (Some(min), Some(max)) = (min, max)
        && key.encode_bound(min)? >= key.encode_bound(max)?
    {
        bail!(INVALID_OPTIONS, "the range to move has to begin before it ends");
    }
    if bad {
        let shown_bound = |bound: Option<&Document>, or: &Document| shown(bound.unwrap_or(or));
        bail!(
            CONFLICTING_OPERATION_IN_PROGRESS,
            "Unable to move range with bounds [{}, {}) of {ns}, which lies in more than one chunk; found [{}, {})",
            shown_bound(min, &chunk.min),
            shown_bound(max, &chunk.max),
            shown(&chunk.min),
            shown(&chunk.max)
        );
    }
    Ok(())
}
