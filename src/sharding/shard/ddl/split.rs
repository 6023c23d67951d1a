//! Finding split points and changing chunks without moving them: splitVector, autoSplitVector, splitChunk, mergeChunks.
//!
//! Points are found by walking the shard-key index of a snapshot, whose keys begin with the encoded shard key: counting
//! needs no documents, and only the documents at the points are read.

use super::Ddl;
use crate::config::{argument, required, shown};
use crate::key_pattern::ShardKeyPattern;
use crate::shard::migration::range::shard_key_index;
use crate::shard::migration::range::{KeyRange, Most, pieces, require_shard_key_index};
use document::{Document, Result, Value, bail, doc, err};
use node::{Node, Operation, Request};
use std::sync::Arc;
use storage::{CollectionSnapshot, CollectionView};

/// Points of one autoSplitVector: as many chunks as one split may make.
const SPLIT_POINTS_MAX: usize = 8192;
/// Index keys walked between two looks at interrupts and other tasks.
const SLICE: usize = 4096;

/// How to choose points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// One, in the middle.
    Median,
    /// After so many documents each, at most so many points.
    Every { documents: usize, points_max: usize },
}

/// A range of a collection to look for points in.
pub struct Range<'a> {
    pub ns: &'a str,
    pub key: &'a ShardKeyPattern,
    pub min: &'a Document,
    pub max: &'a Document,
}

/// The points: shard keys within the range, ascending, none equal to its lower bound. Documents with the same key are
/// never divided.
///
/// # Errors
/// NamespaceNotFound (26); IndexNotFound (27) without an index that begins with the key; interrupts.
pub async fn split_points(
    node: &Node,
    op: &Operation,
    range: &Range<'_>,
    points: Points,
) -> Result<Vec<Document>> {
    let snapshot = snapshot_of(node, range.ns)?;
    let slot = key_index(&snapshot, range.key).ok_or_else(|| {
        err!(
            INDEX_NOT_FOUND,
            "couldn't find index over splitting key {} of {}",
            shown(range.key.document()),
            range.ns
        )
    })?;
    match points {
        Points::Median => {
            let total = walk(op, &snapshot, slot, range, &mut |_, _| true).await?;
            if total < 2 {
                return Ok(Vec::new());
            }
            median(op, &snapshot, slot, range, total / 2).await
        }
        Points::Every { documents, points_max } => {
            every(op, &snapshot, slot, range, documents, points_max).await
        }
    }
}

fn snapshot_of(node: &Node, ns: &str) -> Result<CollectionSnapshot> {
    let slot = node.namespaces.slot(ns);
    let state = slot.read_unchecked();
    state
        .collection
        .as_ref()
        .map(|c| c.snapshot())
        .ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns not found: {ns}"))
}

/// The slot of an index whose keys begin with the shard key's.
fn key_index(snapshot: &CollectionSnapshot, key: &ShardKeyPattern) -> Option<usize> {
    shard_key_index(snapshot, key)
}

/// Visits the index keys of the range in order with their records until `visit` says false; answers how many it visited.
async fn walk(
    op: &Operation,
    snapshot: &CollectionSnapshot,
    slot: usize,
    range: &Range<'_>,
    visit: &mut (dyn FnMut(&[u8], storage::RecordId) -> bool + Send),
) -> Result<usize> {
    let (min, max) = (range.key.encode_bound(range.min)?, range.key.encode_bound(range.max)?);
    let mut visited = 0;
    let mut from: Option<(Vec<u8>, storage::RecordId)> = None;
    loop {
        // A cursor borrows the snapshot and is not kept across the await.
        {
            let Some(mut cursor) = snapshot.index_cursor(slot) else { return Ok(visited) };
            let mut entry = match &from {
                None => cursor.seek(&min),
                Some((key, record)) => cursor.seek_after(key, *record),
            };
            let mut slice = 0;
            loop {
                let Some(e) = entry.filter(|e| e.key < max.as_slice()) else { return Ok(visited) };
                visited += 1;
                if !visit(e.key, e.record) {
                    return Ok(visited);
                }
                slice += 1;
                if slice == SLICE {
                    from = Some((e.key.to_vec(), e.record));
                    break;
                }
                entry = cursor.next();
            }
        }
        op.check_interrupt()?;
        tokio::task::yield_now().await;
    }
}

fn key_at(
    snapshot: &CollectionSnapshot,
    range: &Range<'_>,
    record: storage::RecordId,
) -> Option<(Document, Vec<u8>)> {
    let d = snapshot.get(record)?;
    Some((range.key.key_document_of(d).ok()?, range.key.key_of(d).ok()?))
}

/// The key of the document in the middle; where that is the lower bound, the first key above it.
async fn median(
    op: &Operation,
    snapshot: &CollectionSnapshot,
    slot: usize,
    range: &Range<'_>,
    middle: usize,
) -> Result<Vec<Document>> {
    let min = range.key.encode_bound(range.min)?;
    let mut at = 0;
    let mut found = None;
    let mut first: Option<Vec<u8>> = None;
    walk(op, snapshot, slot, range, &mut |key, record| {
        first.get_or_insert_with(|| key.to_vec());
        at += 1;
        if at <= middle {
            return true;
        }
        // All keys below the point must be on its left: a key that equals the first one leaves nothing there.
        match key_at(snapshot, range, record) {
            Some((_, encoded))
                if encoded == min || first.as_ref().is_some_and(|f| f.starts_with(&encoded)) =>
            {
                true
            }
            Some((document, _)) => {
                found = Some(document);
                false
            }
            None => true,
        }
    })
    .await?;
    Ok(found.into_iter().collect())
}

async fn every(
    op: &Operation,
    snapshot: &CollectionSnapshot,
    slot: usize,
    range: &Range<'_>,
    documents: usize,
    points_max: usize,
) -> Result<Vec<Document>> {
    let mut points = Vec::new();
    // The encoded shard key of the piece under way: a point must differ from it.
    let mut last = range.key.encode_bound(range.min)?;
    let mut first: Option<Vec<u8>> = None;
    let mut counted = 0;
    walk(op, snapshot, slot, range, &mut |key, record| {
        first.get_or_insert_with(|| key.to_vec());
        counted += 1;
        if counted <= documents || points.len() >= points_max {
            return points.len() < points_max;
        }
        if let Some((document, encoded)) = key_at(snapshot, range, record)
            && encoded != last
            && !first.as_ref().is_some_and(|f| f.starts_with(&encoded))
        {
            points.push(document);
            last = encoded;
            // The document at the point is the first of the next piece.
            counted = 1;
        }
        true
    })
    .await?;
    Ok(points)
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
    let range = Range { ns: &ns, key: &key, min: &min, max: &max };
    let points = points_wanted(node, &ns, &body)?;
    let keys = split_points(node, op, &range, points).await?;
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
    let snapshot = snapshot_of(node, ns)?;
    let average = (snapshot.data_bytes() / (snapshot.len().max(1) as u64)).max(1);
    // Pieces of half the size: what is split is not at once due to be split again.
    let mut documents = usize::try_from(bytes as u64 / (2 * average)).unwrap_or(usize::MAX);
    if let Some(most) =
        body.get_i64("maxChunkObjects").and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0)
    {
        documents = documents.min(most);
    }
    let points_max = body.get_i64("maxSplitPoints").and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
    Ok(Points::Every { documents: documents.max(1), points_max: points_max.unwrap_or(usize::MAX) })
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
                    document::extended_json::to_relaxed(point),
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
        let mut commit = doc! {
            "_configsvrCommitChunkSplit": ns, "collEpoch": body.get("epoch").cloned(), "min": body.get("min").cloned(),
            "max": body.get("max").cloned(), "splitPoints": points.clone(), "shard": self.shard()?,
        };
        if let Some(timestamp) = body.get_present("timestamp") {
            commit.push("timestamp", timestamp.clone());
        }
        op.interruptible(self.commit_chunks(ns, commit)).await?
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
        let ns = argument(&request)?;
        let body = request.body.to_document();
        let bounds = required(&body, "bounds", Value::as_array)?;
        let [Value::Document(min), Value::Document(max)] = bounds.as_slice() else {
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
        if let Some(table) = routing.table()
            && table.exact(&lower, &upper).is_some()
        {
            bail!(
                ILLEGAL_OPERATION,
                "could not merge chunks, collection {ns} already contains chunk for the range [{}, {})",
                shown(min),
                shown(max)
            );
        }
        let mut commit = doc! {
            "_configsvrCommitChunksMerge": ns, "shard": self.shard()?, "collUUID": { "uuid": tracked.get("uuid").cloned() },
            "chunkRange": { "min": min.clone(), "max": max.clone() },
        };
        for name in ["epoch", "timestamp"] {
            if let Some(value) = body.get_present(name) {
                commit.push(name, value.clone());
            }
        }
        op.interruptible(self.commit_chunks(ns, commit)).await?
    }

    /// Runs `_shardsvrMergeAllChunksOnShard`.
    pub(super) async fn merge_all_chunks(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let ns = argument(&request)?;
        let body = request.body.to_document();
        let mut commit = doc! { "_configsvrCommitMergeAllChunksOnShard": ns, "shard": self.shard()? };
        if let Some(most) = body.get_present("maxNumberOfChunksToMerge") {
            commit.push("maxNumberOfChunksToMerge", most.clone());
        }
        // How many were merged tells the balancer whether to ask again.
        let answer = op.interruptible(self.config(commit)).await?;
        drop(self.role.refresh_collection(ns).await);
        let merged = answer?.get_i64("numMergedChunks").unwrap_or(0);
        Ok(doc! { "numMergedChunks": merged as i32 })
    }
}
