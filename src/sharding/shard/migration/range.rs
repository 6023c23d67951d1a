//! A range of shard keys over a collection, and walking it by the index that serves the shard key.

use crate::key_pattern::ShardKeyPattern;
use document::{Doc, Document, Result, err};
use std::sync::Arc;
use std::time::{Duration, Instant};
use storage::{CollectionView, RecordId};

/// The longest that one slice of a walk runs before it yields.
pub const SLICE_TIME_MAX: Duration = Duration::from_millis(1);

/// `[min, max)` of encoded shard keys.
#[derive(Clone)]
pub struct KeyRange {
    pub key: Arc<ShardKeyPattern>,
    pub min: Vec<u8>,
    pub max: Vec<u8>,
}

impl KeyRange {
    pub fn new(key: Arc<ShardKeyPattern>, min: &Document, max: &Document) -> Result<KeyRange> {
        Ok(KeyRange { min: key.encode_bound(min)?, max: key.encode_bound(max)?, key })
    }
    pub fn contains(&self, doc: Doc<'_>) -> bool {
        self.key.key_of(doc).is_ok_and(|k| self.min <= k && k < self.max)
    }
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        self.min < other.max && other.min < self.max
    }
}

/// The slot of an index that lists every document once in shard key order.
pub fn shard_key_index(view: &impl CollectionView, key: &ShardKeyPattern) -> Option<usize> {
    (0..view.index_count()).find(|slot| {
        view.index_info(*slot).is_some_and(|info| {
            key.is_prefix_of(info.spec.key())
                && !info.multikey
                && !info.spec.sparse()
                && info.spec.partial_filter().is_none()
        })
    })
}
/// # Errors
/// IndexNotFound (27) with the real server's text.
pub fn require_shard_key_index(view: &impl CollectionView, key: &ShardKeyPattern) -> Result<usize> {
    shard_key_index(view, key).ok_or_else(|| {
        err!(
            INDEX_NOT_FOUND,
            "can't find index with prefix {} in storeCurrentRecordId for {}",
            document::extended_json::to_relaxed(&document::Value::Document(key.document().clone())),
            view.meta().ns
        )
    })
}

/// Where a walk stands: the last entry seen, as key and record.
#[derive(Clone, Default)]
pub struct Position(Option<(Vec<u8>, RecordId)>);

/// Walks on from `position` until `f` says stop (the entry it stops at is visited again), time is up, or the end.
/// Answers whether the end was reached.
pub fn walk_slice(
    view: &impl CollectionView,
    slot: usize,
    range: &KeyRange,
    position: &mut Position,
    mut f: impl FnMut(RecordId) -> bool,
) -> bool {
    let Some(mut cursor) = view.index_cursor(slot) else { return true };
    let mut entry = match &position.0 {
        None => cursor.seek(&range.min),
        Some((key, record)) => cursor.seek_after(key, *record),
    };
    let started = Instant::now();
    let mut seen = 0u32;
    let mut last: Option<(&[u8], RecordId)> = None;
    let ended = loop {
        // An index entry may have components behind the shard key's: bytes below `max` are below it as keys too.
        let Some(e) = entry.filter(|e| e.key < range.max.as_slice()) else { break true };
        if !f(e.record) {
            break false;
        }
        last = Some((e.key, e.record));
        seen += 1;
        if seen.is_multiple_of(32) && started.elapsed() > SLICE_TIME_MAX {
            break false;
        }
        entry = cursor.next();
    };
    if let Some((key, record)) = last {
        position.0 = Some((key.to_vec(), record));
    }
    ended
}
