//! `_configsvrCommitChunkSplit`: one chunk becomes several, on the same shard.

use super::next_minor;
use crate::chunk::Chunk;
use crate::config::catalog::Sharded;
use crate::config::{ConfigServer, require_majority, shown};
use crate::messages::Message;
use crate::messages::chunks::CommitChunkSplit;
use document::{Document, Result, bail, doc, err};
use node::{Operation, Request};

impl ConfigServer {
    /// [`CommitChunkSplit`]; returns `{collectionVersion, shardVersion}`.
    ///
    /// # Errors
    /// StaleEpoch (150), InvalidOptions (72) for points that do not lie within the chunk in ascending order,
    /// ConflictingOperationInProgress (117) when the shard does not own that chunk, or splits by itself and is not to any more.
    pub async fn commit_chunk_split(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, CommitChunkSplit::COMMAND)?;
        self.commit_split(CommitChunkSplit::parse(request.body)?).await
    }

    /// # Errors
    /// As [`ConfigServer::commit_chunk_split`].
    pub(crate) async fn commit_split(&self, split: CommitChunkSplit) -> Result<Document> {
        self.ensure().await?;
        let CommitChunkSplit { ns, epoch, timestamp, min, max, points, shard, auto_split } = &split;
        let _inside = self.enter_auto_split(*auto_split)?;
        let _lock = self.lock_chunks(ns).await;
        let collection = self.of_generation(ns, Some(*epoch), *timestamp)?;
        let (min_key, max_key) = (collection.key.encode_bound(min)?, collection.key.encode_bound(max)?);
        let keys = check_points(&collection, (min, &min_key), (max, &max_key), points)?;
        let found = self.catalog().chunk_at(&collection, min)?;
        let Some(chunk) = found.filter(|c| c.min_key == min_key && *c.shard == *shard) else {
            return Err(not_owned(ns, shard, min, max));
        };
        if chunk.max_key != max_key {
            if self.split_was_done(&collection, &chunk, min, max, points)? {
                return Ok(self.versions(&collection, shard));
            }
            return Err(not_owned(ns, shard, min, max));
        }
        let pieces = self.pieces(&collection, &chunk, points, &keys)?;
        let writes: Vec<_> = pieces.iter().map(|c| self.put_chunk(&collection, c)).collect();
        self.commit(&writes).await?;
        self.log_split(ns, &chunk, &pieces).await;
        Ok(self.versions(&collection, shard))
    }

    fn pieces(
        &self,
        collection: &Sharded,
        chunk: &Chunk,
        points: &[Document],
        keys: &[Vec<u8>],
    ) -> Result<Vec<Chunk>> {
        let mut version = self.catalog().collection_placement(collection.info.uuid);
        let mut pieces = Vec::with_capacity(points.len() + 1);
        let (mut min, mut min_key) = (chunk.min.clone(), chunk.min_key.clone());
        let ends = points.iter().zip(keys).chain(std::iter::once((&chunk.max, &chunk.max_key)));
        for (max, max_key) in ends {
            version = next_minor(version)?;
            let id = if pieces.is_empty() { chunk.id } else { self.node.new_object_id() };
            let (max, max_key) = (max.clone(), max_key.clone());
            pieces.push(Chunk {
                id,
                min,
                max: max.clone(),
                min_key,
                max_key: max_key.clone(),
                version,
                jumbo: false,
                bytes: None,
                ..chunk.clone()
            });
            (min, min_key) = (max, max_key);
        }
        Ok(pieces)
    }

    /// Whether the chunks there are exactly what this split would make: its first answer was lost.
    fn split_was_done(
        &self,
        collection: &Sharded,
        first: &Chunk,
        min: &Document,
        max: &Document,
        points: &[Document],
    ) -> Result<bool> {
        let mut lower = min.clone();
        for upper in points.iter().chain(std::iter::once(max)) {
            let found = self.catalog().chunk_at(collection, &lower)?;
            let upper_key = collection.key.encode_bound(upper)?;
            if !found.is_some_and(|c| c.min == lower && c.max_key == upper_key && c.shard == first.shard) {
                return Ok(false);
            }
            lower = upper.clone();
        }
        Ok(true)
    }

    async fn log_split(&self, ns: &str, before: &Chunk, pieces: &[Chunk]) {
        let shown = |c: &Chunk| doc! { "min": c.min.clone(), "max": c.max.clone(), "lastmod": c.version };
        if let [left, right] = pieces {
            let details = doc! {
                "before": shown(before), "left": shown(left), "right": shown(right), "owningShard": &*before.shard,
            };
            return self.log_change("split", ns, details).await;
        }
        for (i, piece) in pieces.iter().enumerate() {
            let details = doc! {
                "before": shown(before), "number": i as i32 + 1, "of": pieces.len() as i32, "chunk": shown(piece),
                "owningShard": &*before.shard,
            };
            self.log_change("multi-split", ns, details).await;
        }
    }
}

fn not_owned(ns: &str, shard: &str, min: &Document, max: &Document) -> document::Error {
    err!(
        CONFLICTING_OPERATION_IN_PROGRESS,
        "Tried to split the chunk [{}, {}) of {ns}, which shard {shard} does not own",
        shown(min),
        shown(max)
    )
}

/// The encoded points, if they ascend strictly between the bounds.
fn check_points(
    collection: &Sharded,
    min: (&Document, &[u8]),
    max: (&Document, &[u8]),
    points: &[Document],
) -> Result<Vec<Vec<u8>>> {
    if points.is_empty() {
        bail!(INVALID_OPTIONS, "no split points were given");
    }
    let mut keys: Vec<Vec<u8>> = Vec::with_capacity(points.len());
    let mut lower = min.1.to_vec();
    for point in points {
        let key = collection.key.encode_bound(point)?;
        if key == min.1 {
            bail!(
                INVALID_OPTIONS,
                "not allowed to split chunk at its lower bound {}: a chunk cannot be empty",
                shown(min.0)
            );
        }
        if key <= lower || key.as_slice() >= max.1 {
            bail!(
                INVALID_OPTIONS,
                "Split keys must be contained within chunk boundaries and strictly ascending: {} in [{}, {})",
                shown(point),
                shown(min.0),
                shown(max.0)
            );
        }
        lower = key.clone();
        keys.push(key);
    }
    Ok(keys)
}
