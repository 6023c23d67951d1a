//! Finding split points and changing chunks without moving them: splitVector, autoSplitVector, splitChunk, mergeChunks.
//!
//! Points are found by walking the shard-key index of a snapshot: counting needs no documents, and only the documents at the
//! points are read.

use super::Ddl;
use crate::config::{argument, required, shown};
use crate::key_pattern::ShardKeyPattern;
use crate::messages::chunks::{
    CollectionUuid, CommitChunkSplit, CommitChunksMerge, CommitMergeAllChunks, Range, ShardMergeAllChunks,
    ShardMergeChunks,
};
use crate::messages::{Flag, Message};
use crate::shard::migration::range::{
    KeyRange, Most, Position, pieces, require_shard_key_index, shard_key_index, total_bytes, walk_slice,
};
use document::{Document, Result, Value, bail, doc, err};
use node::{Node, Operation, Request};
use std::sync::Arc;
use storage::{CollectionSnapshot, CollectionView, RecordId};

/// Points of one split: as many chunks as it may make.
pub const SPLIT_POINTS_MAX: usize = 8192;

/// How to choose points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// One, in the middle.
    Median,
    /// After so many documents each, at most so many points.
    Every { documents: usize, points_max: usize },
}

/// The points: shard keys within the range, ascending, none equal to its lower bound. Documents with the same key are
/// never divided.
///
/// # Errors
/// NamespaceNotFound (26); IndexNotFound (27) without an index that begins with the key; interrupts.
pub async fn split_points(
    node: &Node,
    op: &Operation,
    ns: &str,
    range: &KeyRange,
    points: Points,
) -> Result<Vec<Document>> {
    let snapshot = snapshot_of(node, ns)?;
    let slot = shard_key_index(&snapshot, &range.key).ok_or_else(|| {
        err!(
            INDEX_NOT_FOUND,
            "couldn't find index over splitting key {} of {ns}",
            shown(range.key.document())
        )
    })?;
    let walk = Walk { op, snapshot: &snapshot, slot, range };
    match points {
        Points::Median => walk.median().await,
        Points::Every { documents, points_max } => walk.every(documents, points_max).await,
    }
}

pub fn snapshot_of(node: &Node, ns: &str) -> Result<CollectionSnapshot> {
    let slot = node.namespaces.slot(ns);
    let state = slot.read_unchecked();
    state
        .collection
        .as_ref()
        .map(|c| c.snapshot())
        .ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns not found: {ns}"))
}

/// A range and the index to walk it by.
struct Walk<'a> {
    op: &'a Operation,
    snapshot: &'a CollectionSnapshot,
    slot: usize,
    range: &'a KeyRange,
}

impl Walk<'_> {
    /// Visits the documents of the range in the order of their keys until `visit` says false.
    async fn each(&self, mut visit: impl FnMut(RecordId) -> bool + Send) -> Result<()> {
        let mut position = Position::default();
        let mut stopped = false;
        while !stopped {
            let ended = walk_slice(self.snapshot, self.slot, self.range, &mut position, |record| {
                stopped = !visit(record);
                !stopped
            });
            if ended {
                break;
            }
            self.op.check_interrupt()?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn key_of(&self, record: RecordId) -> Option<Vec<u8>> {
        self.range.key.key_of(self.snapshot.get(record)?).ok()
    }

    /// The document's shard key, where a chunk may begin with it: documents below it must be in the range, and documents
    /// with the key `last` stay together. MaxKey is the end of the last chunk.
    fn point_at(&self, record: RecordId, last: &[u8]) -> Option<(Document, Vec<u8>)> {
        let key = self.key_of(record).filter(|key| key != last && *key < self.range.max)?;
        Some((self.range.key.key_document_of(self.snapshot.get(record)?).ok()?, key))
    }

    /// The key of the document in the middle; where nothing lies below that, the first key above it.
    async fn median(&self) -> Result<Vec<Document>> {
        let mut total = 0;
        self.each(|_| {
            total += 1;
            true
        })
        .await?;
        let mut first = None;
        let mut found = None;
        let mut at = 0;
        self.each(|record| {
            let first = first.get_or_insert_with(|| self.key_of(record).unwrap_or_default());
            if at >= total / 2 {
                found = self.point_at(record, first);
            }
            at += 1;
            found.is_none()
        })
        .await?;
        Ok(found.into_iter().map(|(point, _)| point).collect())
    }

    /// The key after each so many documents.
    async fn every(&self, documents: usize, points_max: usize) -> Result<Vec<Document>> {
        let mut points = Vec::new();
        // The key that the piece under way begins with.
        let mut last = None;
        let mut counted = 0;
        self.each(|record| {
            let last = last.get_or_insert_with(|| self.key_of(record).unwrap_or_default());
            counted += 1;
            if counted > documents
                && points.len() < points_max
                && let Some((point, key)) = self.point_at(record, last)
            {
                points.push(point);
                *last = key;
                // The document at the point is the first of the next piece.
                counted = 1;
            }
            points.len() < points_max
        })
        .await?;
        Ok(points)
    }
}

/// Documents of average size that make up half of `bytes`, so that what is split there is not at once due to be split
/// again; no more than `most`.
pub fn documents_per_piece(view: &impl CollectionView, bytes: i64, most: Option<i64>) -> usize {
    let average = total_bytes(view) / i64::try_from(view.len()).unwrap_or(i64::MAX).max(1);
    let documents = (bytes / 2 / average.max(1)).min(most.unwrap_or(i64::MAX));
    usize::try_from(documents.max(1)).unwrap_or(usize::MAX)
}

/// Runs `splitVector`: `{keyPattern, min?, max?, force?, maxSplitPoints?, maxChunkObjects?, maxChunkSize?,
/// maxChunkSizeBytes?}` answers `{splitKeys}`.
///
/// # Errors
/// BadValue (2) and those of [`split_points`].
pub async fn split_vector(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let text = argument(&request)?;
    let ns = if text.contains('.') { text.to_string() } else { format!("{}.{text}", request.db) };
    let body = request.body.to_document();
    let key = ShardKeyPattern::parse(required(&body, "keyPattern", Value::as_document)?)?;
    let bound = |name: &str| body.get_document(name).filter(|d| !d.is_empty());
    let (min, max) = match (bound("min"), bound("max")) {
        (None, None) => (key.global_min(), key.global_max()),
        (Some(min), Some(max)) => {
            let full = |b: &Document| key.extend_bound(b, Value::MinKey);
            let (Some(min), Some(max)) = (full(min), full(max)) else {
                bail!(BAD_VALUE, "the bounds do not fit the key pattern {}", shown(key.document()))
            };
            (min, max)
        }
        _ => bail!(BAD_VALUE, "either provide both min and max or leave both empty"),
    };
    let range = KeyRange::new(Arc::new(key), &min, &max)?;
    let points = points_wanted(node, &ns, &body)?;
    let keys = split_points(node, op, &ns, &range, points).await?;
    Ok(doc! { "splitKeys": keys })
}

/// Runs `autoSplitVector`: `{keyPattern, min, max, maxChunkSizeBytes, maxChunkObjects?}` returns `{splitKeys}`: pieces of at
/// most that size each, by the documents' real sizes, and where documents are counted, pieces that a migration takes.
///
/// # Errors
/// BadValue (2), NamespaceNotFound (26), IndexNotFound (27).
pub async fn auto_split_vector(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let text = argument(&request)?;
    let ns = if text.contains('.') { text.to_string() } else { format!("{}.{text}", request.db) };
    let body = request.body.to_document();
    let key = ShardKeyPattern::parse(required(&body, "keyPattern", Value::as_document)?)?;
    let bytes = required(&body, "maxChunkSizeBytes", Value::as_i64)?;
    if bytes <= 0 {
        bail!(BAD_VALUE, "maxChunkSizeBytes must be positive, found {bytes}");
    }
    let bound = |name: &str| required(&body, name, Value::as_document);
    let range = KeyRange::new(Arc::new(key), bound("min")?, bound("max")?)?;
    let snapshot = snapshot_of(node, &ns)?;
    let slot = require_shard_key_index(&snapshot, &range.key)?;
    let most = Most::of(&snapshot, bytes, body.get_i64("maxChunkObjects").filter(|n| *n > 0));
    let keys = op.interruptible(pieces(&snapshot, slot, &range, most, SPLIT_POINTS_MAX)).await?;
    Ok(doc! { "splitKeys": keys, "continuation": false })
}

fn points_wanted(node: &Node, ns: &str, body: &Document) -> Result<Points> {
    if body.get("force").is_some_and(Value::truthy) {
        return Ok(Points::Median);
    }
    let bytes = body
        .get_i64("maxChunkSizeBytes")
        .or_else(|| body.get("maxChunkSize").and_then(Value::as_f64).map(|mib| (mib * 1048576.0) as i64));
    let Some(bytes) = bytes.filter(|b| *b > 0) else {
        bail!(BAD_VALUE, "need to specify the desired max chunk size (maxChunkSize or maxChunkSizeBytes)")
    };
    let most = body.get_i64("maxChunkObjects").filter(|n| *n > 0);
    let documents = documents_per_piece(&snapshot_of(node, ns)?, bytes, most);
    let points_max = body.get_i64("maxSplitPoints").and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
    Ok(Points::Every { documents, points_max: points_max.unwrap_or(usize::MAX) })
}

impl Ddl {
    /// Runs `splitChunk`: `{from, keyPattern, epoch, timestamp?, min, max, splitKeys}`.
    ///
    /// # Errors
    /// InvalidOptions (72), CannotSplit (87) for a hashed point of the wrong type, and the config server's.
    pub(super) async fn split_chunk(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let ns = argument(&request)?;
        let body = request.body.to_document();
        let key = ShardKeyPattern::parse(required(&body, "keyPattern", Value::as_document)?)?;
        let points = required(&body, "splitKeys", Value::as_array)?;
        if points.is_empty() {
            bail!(BAD_VALUE, "no split keys were given");
        }
        for point in points {
            let Some(point) = point.as_document().filter(|p| key.is_full_key(p)) else {
                bail!(
                    INVALID_OPTIONS,
                    "split key {} is not a full shard key of {}",
                    document::shell::value(point),
                    shown(key.document())
                )
            };
            for (field, (_, value)) in key.fields().iter().zip(point.iter()) {
                if field.hashed && !matches!(value, Value::Int64(_) | Value::MinKey | Value::MaxKey) {
                    bail!(
                        CANNOT_SPLIT,
                        "splitChunk cannot split chunk {ns} at {}: hashed fields are NumberLong, MinKey or MaxKey",
                        shown(point)
                    );
                }
            }
        }
        let commit = CommitChunkSplit {
            ns: ns.to_string(),
            epoch: required(&body, "epoch", Value::as_object_id)?,
            timestamp: body.get("timestamp").and_then(Value::as_timestamp),
            min: required(&body, "min", Value::as_document)?.clone(),
            max: required(&body, "max", Value::as_document)?.clone(),
            points: points.iter().filter_map(|p| p.as_document().cloned()).collect(),
            shard: self.shard()?,
            auto_split: Flag(false),
        };
        op.interruptible(self.commit_chunks(ns, commit.to_document())).await?
    }

    /// Has the config server change chunks of this shard, then looks at the placement again.
    async fn commit_chunks(&self, ns: &str, commit: Document) -> Result<Document> {
        let answer = self.config(commit).await;
        // Also after a failure: this shard may be the one that knows too little.
        drop(self.role.refresh_collection(ns).await);
        answer.map(|_| Document::new())
    }

    /// Runs `_shardsvrMergeChunks`: `{bounds: [min, max], epoch?, timestamp?}`.
    pub(super) async fn merge_chunks(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let merge = ShardMergeChunks::parse(request.body)?;
        let ns = merge.ns.as_str();
        let [min, max] = merge.bounds.as_slice() else {
            bail!(BAD_VALUE, "bounds must be an array of exactly two documents")
        };
        let tracked = self.tracked(ns).await?;
        let Some(tracked) = tracked else { bail!(NAMESPACE_NOT_SHARDED, "Collection {ns} is not sharded.") };
        let key = ShardKeyPattern::parse(required(&tracked, "key", Value::as_document)?)?;
        let (Ok(lower), Ok(upper)) = (key.encode_bound(min), key.encode_bound(max)) else {
            bail!(
                ILLEGAL_OPERATION,
                "could not merge chunks, the range [{}, {}) is not valid for collection {ns} with key pattern {}",
                shown(min),
                shown(max),
                shown(key.document())
            )
        };
        let routing = self.role.refresh_collection(ns).await?;
        // To the balancer that is a merge done, the answer of which it did not get; the config server looks.
        if !merge.of_balancer.0
            && let Some(table) = routing.table()
            && table.exact(&lower, &upper).is_some()
        {
            bail!(
                ILLEGAL_OPERATION,
                "could not merge chunks, collection {ns} already contains chunk for the range [{}, {})",
                shown(min),
                shown(max)
            );
        }
        let uuid = tracked.get("uuid").and_then(Value::as_uuid);
        let commit = CommitChunksMerge {
            ns: merge.ns.clone(),
            shard: self.shard()?,
            collection: uuid.map(|uuid| CollectionUuid { uuid }),
            range: Range { min: min.clone(), max: max.clone() },
            epoch: merge.epoch,
            timestamp: merge.timestamp,
            of_balancer: merge.of_balancer,
        };
        op.interruptible(self.commit_chunks(ns, commit.to_document())).await?
    }

    /// Runs `_shardsvrMergeAllChunksOnShard`.
    pub(super) async fn merge_all_chunks(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let ShardMergeAllChunks { ns, chunks_max, of_balancer } = ShardMergeAllChunks::parse(request.body)?;
        let commit = CommitMergeAllChunks {
            ns: ns.clone(),
            shard: self.shard()?,
            chunks_max,
            millis_max: None,
            of_balancer,
        };
        // How many were merged tells the balancer whether to ask again.
        let answer = op.interruptible(self.config(commit.to_document())).await?;
        drop(self.role.refresh_collection(&ns).await);
        let merged = answer?.get_i64("numMergedChunks").unwrap_or(0);
        Ok(doc! { "numMergedChunks": merged as i32 })
    }
}
