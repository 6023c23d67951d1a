//! `_configsvrCommitChunksMerge` and `_configsvrCommitMergeAllChunksOnShard`: adjacent chunks of one shard become one.

use super::next_minor;
use crate::chunk::{Chunk, ShardId};
use crate::config::catalog::Sharded;
use crate::config::{CHUNKS, ConfigServer, delete, require_majority, shown};
use crate::messages::Message;
use crate::messages::chunks::{CommitChunksMerge, CommitMergeAllChunks};
use document::{Document, Result, Timestamp, Value, bail, doc};
use node::{Operation, Request};
use runtime::Instant;
use std::collections::BTreeSet;
use std::time::Duration;

/// Chunks that one commit merges at most: neither it nor its entry in the change log may outgrow what an entry holds.
const PART_CHUNKS_MAX: usize = 10_000;

impl ConfigServer {
    /// [`CommitChunksMerge`]; returns `{shardVersion}`.
    ///
    /// # Errors
    /// StaleEpoch (150), InvalidUUID (207), IllegalOperation (20) when the range is not made of whole chunks of this
    /// shard. For the balancer's also ConflictingOperationInProgress (117) once it is stopped, and IllegalOperation where its
    /// policy, with the zones and marks of now, would not have asked: both may have changed since it did.
    pub async fn commit_chunks_merge(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, CommitChunksMerge::COMMAND)?;
        self.ensure().await?;
        let merge = CommitChunksMerge::parse(request.body)?;
        let CommitChunksMerge { ns, shard, range, .. } = &merge;
        let _inside = self.enter_merge(merge.of_balancer)?;
        let _lock = self.lock_chunks(ns).await;
        let collection = self.of_generation(ns, merge.epoch, merge.timestamp)?;
        if merge.collection.as_ref().is_some_and(|c| c.uuid != collection.info.uuid) {
            bail!(INVALID_UUID, "UUID of collection {ns} does not match the one of the merge request");
        }
        let found = self.chunks_between(&collection, shard, &range.min, &range.max)?;
        if merge.of_balancer.0 {
            self.check_merge_of_balancer(&collection, &found)?;
        }
        if let [_, _, ..] = found.as_slice() {
            self.merge(ns, &collection, &found).await?;
        }
        Ok(
            doc! { "shardVersion": collection.version(self.catalog().shard_placement(collection.info.uuid, shard)).to_document() },
        )
    }

    /// The chunks that fill `min..max`, all of `shard`. A single chunk with exactly these bounds is the outcome of a
    /// merge whose answer was lost.
    fn chunks_between(
        &self,
        collection: &Sharded,
        shard: &str,
        min: &Document,
        max: &Document,
    ) -> Result<Vec<Chunk>> {
        let ns = &collection.info.ns;
        let max_key = collection.key.encode_bound(max)?;
        let mut found: Vec<Chunk> = Vec::new();
        let mut lower = min.clone();
        let mut lower_key = collection.key.encode_bound(min)?;
        while lower_key < max_key {
            let chunk = self.catalog().chunk_at(collection, &lower)?.filter(|c| c.min_key == lower_key);
            let Some(chunk) = chunk.filter(|c| c.max_key <= max_key) else {
                bail!(
                    ILLEGAL_OPERATION,
                    "could not merge chunks, collection {ns} range starting at {} and ending at {} does not consist of whole chunks",
                    shown(min),
                    shown(max)
                )
            };
            if *chunk.shard != *shard {
                bail!(
                    ILLEGAL_OPERATION,
                    "could not merge chunks, collection {ns} range starting at {} and ending at {} is not all on shard {shard}",
                    shown(min),
                    shown(max)
                );
            }
            (lower, lower_key) = (chunk.max.clone(), chunk.max_key.clone());
            found.push(chunk);
        }
        Ok(found)
    }

    fn check_merge_of_balancer(&self, collection: &Sharded, chunks: &[Chunk]) -> Result<()> {
        let edges = self.zone_edges(collection);
        let apart = |pair: &&[Chunk]| pair.iter().any(|c| c.jumbo) || edges.contains(&pair[1].min_key);
        match chunks.windows(2).find(apart) {
            Some(pair) => bail!(
                ILLEGAL_OPERATION,
                "could not merge chunks, collection {} has the edge of a zone at {}, or a jumbo chunk beside it",
                collection.info.ns,
                shown(&pair[1].min)
            ),
            None => Ok(()),
        }
    }

    /// Where the ranges of zones begin and end, as keys. A range of other fields than the shard key's has no edge in it.
    fn zone_edges(&self, collection: &Sharded) -> BTreeSet<Vec<u8>> {
        let ranges = self.catalog().zone_ranges(&collection.info.ns);
        let edges = ranges.iter().flat_map(|z| [&z.min, &z.max]);
        edges.filter_map(|edge| collection.key.encode_bound(edge).ok()).collect()
    }

    /// Makes one chunk of neighbours, [`PART_CHUNKS_MAX`] at a time: what has been merged by then stays so when a later part fails.
    async fn merge(&self, ns: &str, collection: &Sharded, chunks: &[Chunk]) -> Result<()> {
        let Some((first, others)) = chunks.split_first() else { return Ok(()) };
        let mut merged = first.clone();
        for part in others.chunks(PART_CHUNKS_MAX - 1) {
            let part: Vec<Chunk> = std::iter::once(merged).chain(part.iter().cloned()).collect();
            merged = self.merge_part(ns, collection, &part).await?;
        }
        Ok(())
    }

    /// Commits one part of a merge; returns what it has become.
    async fn merge_part(&self, ns: &str, collection: &Sharded, chunks: &[Chunk]) -> Result<Chunk> {
        let [first, .., last] = chunks else {
            bail!(ILLEGAL_OPERATION, "could not merge chunks, collection {ns}: there is nothing to merge")
        };
        let before = self.catalog().collection_placement(collection.info.uuid);
        // Reads in the past are answered by owners since the youngest of the merged chunks came.
        let since = chunks.iter().filter_map(|c| c.history.first()).map(|(t, _)| *t).max();
        let history: Vec<(Timestamp, ShardId)> =
            since.map(|t| (t, first.shard.clone())).into_iter().collect();
        let bytes = chunks.iter().map(|c| c.bytes).try_fold(0i64, |sum, b| Some(sum.saturating_add(b?)));
        let merged = Chunk {
            max: last.max.clone(),
            max_key: last.max_key.clone(),
            version: next_minor(before)?,
            jumbo: false,
            bytes,
            history,
            ..first.clone()
        };
        let mut writes: Vec<_> = chunks[1..].iter().map(|c| delete(CHUNKS, Value::ObjectId(c.id))).collect();
        writes.push(self.put_chunk(collection, &merged));
        self.commit(&writes).await?;
        let shown: Vec<Document> = chunks
            .iter()
            .map(|c| doc! { "min": c.min.clone(), "max": c.max.clone(), "lastmod": c.version })
            .collect();
        let details = doc! {
            "merged": shown, "prevShardVersion": before, "mergedVersion": merged.version, "owningShard": &*merged.shard,
        };
        self.log_change("merge", ns, details).await;
        Ok(merged)
    }

    /// [`CommitMergeAllChunks`]; returns `{shardVersion, numMergedChunks}`. Chunks marked jumbo, and those that came lately ([`Settled`]), stay as they are.
    ///
    /// # Errors
    /// NamespaceNotSharded (118), ShardNotFound (70), ConflictingOperationInProgress (117) for the balancer's once it is stopped.
    pub async fn commit_merge_all_chunks(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, CommitMergeAllChunks::COMMAND)?;
        self.ensure().await?;
        let merge = CommitMergeAllChunks::parse(request.body)?;
        let CommitMergeAllChunks { ns, shard, chunks_max, .. } = &merge;
        let _inside = self.enter_merge(merge.of_balancer)?;
        self.catalog().shard(shard)?;
        let limit = chunks_max.unwrap_or(i64::from(i32::MAX));
        let millis_max = u64::try_from(merge.millis_max.unwrap_or(i64::MAX)).unwrap_or(0);
        let until = Instant::now().checked_add(Duration::from_millis(millis_max));
        let _lock = self.lock_chunks(ns).await;
        let collection = self.catalog().sharded(ns)?;
        let edges = self.zone_edges(&collection);
        let settled = self.settled(&collection);
        let mut merged = 0;
        for run in runs(&self.catalog().chunks(&collection)?, shard, &edges, &settled) {
            if until.is_some_and(|until| Instant::now() > until) {
                break;
            }
            let room = usize::try_from(limit - merged).unwrap_or(0).min(run.len());
            if room >= 2 {
                self.merge(ns, &collection, &run[..room]).await?;
                merged += room as i64;
            }
        }
        let version = collection.version(self.catalog().shard_placement(collection.info.uuid, shard));
        Ok(doc! { "shardVersion": version.to_document(), "numMergedChunks": merged as i32 })
    }
}

/// Which chunks' histories may go: those of chunks that never moved, and those no reader needs any more.
pub(crate) struct Settled {
    /// When this incarnation of the collection began. A chunk that is on its shard since then, and was on no other, has never
    /// moved; a rename or another key begins an incarnation of chunks that may have.
    made: Timestamp,
    /// Moves up to this second are beyond the window of reads in the past and the life of transactions.
    before_secs: u32,
}

impl Settled {
    fn holds(&self, chunk: &Chunk) -> bool {
        let since = chunk.history.first().map_or(Timestamp::default(), |(t, _)| *t);
        (since <= self.made && chunk.history.len() < 2) || since.secs <= self.before_secs
    }
    /// Two neighbours of one shard may become one: neither jumbo, both settled, no edge of a zone between them.
    fn joins(&self, a: &Chunk, b: &Chunk, edges: &BTreeSet<Vec<u8>>) -> bool {
        let may = |c: &Chunk| !c.jumbo && self.holds(c);
        a.shard == b.shard && a.max_key == b.min_key && may(a) && may(b) && !edges.contains(&b.min_key)
    }
}

impl ConfigServer {
    /// What counts as settled now.
    pub(crate) fn settled(&self, collection: &Sharded) -> Settled {
        let now_secs = u32::try_from(self.node.now_ms() / 1000).unwrap_or(u32::MAX);
        let before_secs = now_secs.saturating_sub(self.history_window_secs());
        Settled { made: collection.info.timestamp, before_secs }
    }

    /// The shards that have chunks of the collection to merge.
    ///
    /// # Errors
    /// Unreadable chunks.
    pub(crate) fn shards_to_merge_on(&self, collection: &Sharded) -> Result<BTreeSet<ShardId>> {
        let edges = self.zone_edges(collection);
        let settled = self.settled(collection);
        let chunks = self.catalog().chunks(collection)?;
        let pairs = chunks.windows(2).filter(|pair| settled.joins(&pair[0], &pair[1], &edges));
        Ok(pairs.map(|pair| pair[0].shard.clone()).collect())
    }
}

/// Runs of chunks of `shard` that may become one.
fn runs<'c>(
    chunks: &'c [Chunk],
    shard: &str,
    edges: &BTreeSet<Vec<u8>>,
    settled: &Settled,
) -> Vec<&'c [Chunk]> {
    let runs = chunks.chunk_by(|a, b| settled.joins(a, b, edges));
    runs.filter(|run| run.len() > 1 && *run[0].shard == *shard).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_pattern::ShardKeyPattern;

    #[test]
    fn chunks_that_came_lately_or_are_jumbo_are_not_merged() {
        let key = ShardKeyPattern::parse(&doc! { "x": 1 }).unwrap();
        let chunk = |min: i32, jumbo: bool, since: u32| {
            let d = doc! {
                "min": doc! { "x": min }, "max": doc! { "x": min + 1 }, "shard": "a", "lastmod": Timestamp::new(1, 0),
                "jumbo": jumbo, "history": [{ "validAfter": Timestamp::new(since, 0), "shard": "a" }],
            };
            Chunk::from_document(&d, &key).unwrap()
        };
        let chunks = [
            chunk(0, false, 1),
            chunk(1, false, 500),
            chunk(2, true, 1),
            chunk(3, false, 500),
            chunk(4, false, 900),
            chunk(5, false, 1),
            chunk(6, false, 1),
        ];
        let lengths = |shard: &str, made: u32, before_secs: u32| -> Vec<usize> {
            let settled = Settled { made: Timestamp::new(made, 0), before_secs };
            runs(&chunks, shard, &BTreeSet::new(), &settled).iter().map(|r| r.len()).collect()
        };
        assert_eq!(lengths("a", 1, 700), [2, 2]);
        assert_eq!(lengths("a", 1, 100), [2]);
        // Chunks that are there since the collection was made have never moved.
        assert_eq!(lengths("a", 900, 0), [2, 4]);
        // Those that were on another shard before have, whatever the collection was called then.
        let mut moved = chunks.clone();
        moved[5].history.push((Timestamp::new(1, 0), "b".into()));
        let settled = Settled { made: Timestamp::new(900, 0), before_secs: 0 };
        assert_eq!(
            runs(&moved, "a", &BTreeSet::new(), &settled).iter().map(|r| r.len()).collect::<Vec<_>>(),
            [2, 2]
        );
        assert!(lengths("b", 900, 900).is_empty());
    }
}
