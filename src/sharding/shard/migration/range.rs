//! A range of shard keys over a collection, and walking it by the index that serves the shard key.

use crate::key_pattern::ShardKeyPattern;
use document::{Doc, Document, Result, Value, err, key_string};
use runtime::Instant;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use storage::{CollectionView, RecordId};

/// The longest that one slice of a walk runs before it yields.
pub const SLICE_TIME_MAX: Duration = Duration::from_millis(1);

/// `[min, max)` of encoded shard keys.
#[derive(Clone)]
pub struct KeyRange {
    pub key: Arc<ShardKeyPattern>,
    pub min: Vec<u8>,
    pub max: Vec<u8>,
    /// It reaches to the end of the key space, where a document may have the key MaxKey itself: routing gives it to the
    /// last chunk, so it goes where that goes.
    to_the_end: bool,
}

impl KeyRange {
    pub fn new(key: Arc<ShardKeyPattern>, min: &Document, max: &Document) -> Result<KeyRange> {
        let to_the_end = max.iter().all(|(_, v)| *v == Value::MaxKey);
        Ok(KeyRange { min: key.encode_bound(min)?, max: key.encode_bound(max)?, key, to_the_end })
    }
    pub fn contains(&self, doc: Doc<'_>) -> bool {
        self.key.key_of(doc).is_ok_and(|k| self.min <= k && self.is_below_end(&k))
    }
    /// As [`KeyRange::contains`], for the key a log entry names its document by; `None` when it lacks shard key fields.
    pub fn contains_document_key(&self, key: Doc<'_>) -> Option<bool> {
        self.key.key_of_document_key(key).map(|k| self.min <= k && self.is_below_end(&k))
    }
    /// Whether a key, or an index entry that begins with one, lies below the upper bound.
    fn is_below_end(&self, key: &[u8]) -> bool {
        self.to_the_end || key < self.max.as_slice()
    }
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        self.min < other.max && other.min < self.max
    }
}

/// The slot of an index that lists every document in shard key order, which is that of plain strings: rather one that lists
/// each once. Keys hold no arrays, so an index with several entries for a document has them for the sake of later fields.
pub fn shard_key_index(view: &impl CollectionView, key: &ShardKeyPattern) -> Option<usize> {
    let serving = |slot: &usize| {
        view.index_info(*slot).is_some_and(|info| {
            key.is_prefix_of(info.spec.key())
                && !info.spec.sparse()
                && info.spec.collation().is_simple()
                && info.spec.partial_filter().is_none()
        })
    };
    (0..view.index_count()).filter(serving).min_by_key(|slot| is_multikey(view, *slot))
}

/// Whether a document may have several entries in the index at `slot`.
pub fn is_multikey(view: &impl CollectionView, slot: usize) -> bool {
    view.index_info(slot).is_some_and(|info| info.multikey())
}

/// # Errors
/// IndexNotFound (27) with the real server's text.
pub fn require_shard_key_index(view: &impl CollectionView, key: &ShardKeyPattern) -> Result<usize> {
    shard_key_index(view, key).ok_or_else(|| {
        err!(
            INDEX_NOT_FOUND,
            "can't find index with prefix {} in storeCurrentRecordId for {}",
            document::shell::document(key.document()),
            view.meta().ns
        )
    })
}

/// Where a walk stands.
#[derive(Clone, Default)]
pub struct Position {
    /// The last entry seen, as key and record.
    last: Option<(Vec<u8>, RecordId)>,
    /// In a multikey index: the shard key of that entry, and the documents met under it.
    met: (Vec<u8>, BTreeSet<RecordId>),
}

impl Position {
    /// Whether the document was met under this shard key before; if not, it is now.
    fn meets_again(&mut self, shard_key: &[u8], record: RecordId) -> bool {
        if self.met.0 != shard_key {
            self.met = (shard_key.to_vec(), BTreeSet::new());
        }
        !self.met.1.insert(record)
    }
}

/// The components of an index entry that are the shard key's.
fn shard_key_of<'k>(key: &'k [u8], pattern: &ShardKeyPattern) -> &'k [u8] {
    let mut end = 0;
    for _ in pattern.fields() {
        match key_string::component_length(&key[end..], false) {
            Some(n) => end += n,
            None => return key,
        }
    }
    &key[..end]
}

/// Each document is visited once, whatever its entries. Walks on from `position` until `f` says stop (the entry it stops at is visited again), time is up, or the end.
/// Answers whether the end was reached.
pub fn walk_slice(
    view: &impl CollectionView,
    slot: usize,
    range: &KeyRange,
    position: &mut Position,
    mut f: impl FnMut(RecordId) -> bool,
) -> bool {
    let Some(mut cursor) = view.index_cursor(slot) else { return true };
    let multikey = is_multikey(view, slot);
    let mut entry = match &position.last {
        None => cursor.seek(&range.min),
        Some((key, record)) => cursor.seek_after(key, *record),
    };
    let started = Instant::now();
    let mut seen = 0u32;
    let mut last: Option<(&[u8], RecordId)> = None;
    let ended = loop {
        // An index entry may have components behind the shard key's: bytes below `max` are below it as keys too.
        let Some(e) = entry.filter(|e| range.is_below_end(e.key)) else { break true };
        let again = multikey && position.meets_again(shard_key_of(e.key, &range.key), e.record);
        if !again && !f(e.record) {
            // It is visited again.
            position.met.1.remove(&e.record);
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
        position.last = Some((key.to_vec(), record));
    }
    ended
}

/// What a range may hold at most.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    pub bytes: i64,
    pub documents: i64,
}

impl Most {
    /// So many bytes; where `documents` are counted, also so many of them, and no more than 1.3 times as many as make up
    /// `bytes` when all are of average size.
    pub fn of(view: &impl CollectionView, bytes: i64, documents: Option<i64>) -> Most {
        let documents = documents.map_or(i64::MAX, |most| {
            let average = total_bytes(view) / i64::try_from(view.len()).unwrap_or(i64::MAX).max(1);
            most.min((bytes / average.max(1)).saturating_mul(130) / 100)
        });
        Most { bytes, documents }
    }
}

/// Bytes of the whole collection.
pub fn total_bytes(view: &impl CollectionView) -> i64 {
    i64::try_from(view.data_bytes()).unwrap_or(i64::MAX)
}

/// Bytes and number of documents.
#[derive(Clone, Copy, Default)]
struct Size {
    bytes: i64,
    documents: i64,
}

/// Keys that divide the range into pieces that hold no more than `most`; at most so many. Documents with the same key are
/// never divided: a key that has more than that by itself becomes a piece of its own.
pub async fn pieces(
    view: &impl CollectionView,
    slot: usize,
    range: &KeyRange,
    most: Most,
    points_max: usize,
) -> Vec<Document> {
    let mut points: Vec<Document> = Vec::new();
    let mut position = Position::default();
    // Of the piece under way: what lies before the current key, and that key with what it has so far.
    let (mut before, mut same) = (Size::default(), Size::default());
    let mut current: Option<(Vec<u8>, RecordId)> = None;
    loop {
        let done = walk_slice(view, slot, range, &mut position, |record| {
            let Some(doc) = view.get(record) else { return true };
            let Ok(key) = range.key.key_of(doc) else { return true };
            if current.as_ref().is_none_or(|(k, _)| *k != key) {
                before.bytes += same.bytes;
                before.documents += same.documents;
                same = Size::default();
                current = Some((key, record));
            }
            // No chunk begins with MaxKey: documents that have it belong to the last.
            let may_begin = current.as_ref().is_some_and(|(key, _)| *key < range.max);
            same.bytes += doc.bytes().len() as i64;
            same.documents += 1;
            let too_many =
                before.bytes + same.bytes > most.bytes || before.documents + same.documents > most.documents;
            if before.documents > 0 && too_many && may_begin {
                let first = current.as_ref().and_then(|(_, first)| view.get(*first));
                points.extend(first.and_then(|d| range.key.key_document_of(d).ok()));
                before = Size::default();
            }
            points.len() < points_max
        });
        if done || points.len() >= points_max {
            return points;
        }
        tokio::task::yield_now().await;
    }
}

/// Bytes and number of the documents in the range; stops early once there are more than so many bytes.
pub async fn measure(
    view: &impl CollectionView,
    slot: usize,
    range: &KeyRange,
    bytes_max: i64,
) -> (i64, i64) {
    let (mut bytes, mut documents) = (0i64, 0i64);
    let mut position = Position::default();
    loop {
        let done = walk_slice(view, slot, range, &mut position, |record| {
            bytes += view.get(record).map_or(0, |d| d.bytes().len() as i64);
            documents += 1;
            bytes <= bytes_max
        });
        if done || bytes > bytes_max {
            return (bytes, documents);
        }
        tokio::task::yield_now().await;
    }
}

/// As [`walk_slice`], over all records in their order.
pub fn walk_records(
    view: &impl CollectionView,
    position: &mut Position,
    mut f: impl FnMut(RecordId) -> bool,
) -> bool {
    let mut cursor = view.records();
    let next = position.last.as_ref().map_or(RecordId::MIN, |(_, record)| record.saturating_add(1));
    let mut entry = cursor.seek(next);
    let started = Instant::now();
    let mut seen = 0u32;
    while let Some((record, _)) = entry {
        if !f(record) {
            return false;
        }
        position.last = Some((Vec::new(), record));
        seen += 1;
        if seen.is_multiple_of(32) && started.elapsed() > SLICE_TIME_MAX {
            return false;
        }
        entry = cursor.next();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;
    use storage::{Collection, CollectionMeta, IndexSpec};

    /// Documents of the given keys and sizes, in a collection with an index on the key.
    fn filled(documents: &[(i32, usize)]) -> Collection {
        let spec = doc! { "v": 2, "key": { "x": 1 }, "name": "x_1" };
        let mut c = Collection::new(CollectionMeta::new("d.c", [1; 16]));
        c.create_index(IndexSpec::parse(&spec, &node::open::partial_predicate).unwrap()).unwrap();
        for (id, (x, size)) in documents.iter().enumerate() {
            let empty = doc! { "_id": id as i32, "x": *x, "p": "" }.to_doc_buf().doc().bytes().len();
            let d = doc! { "_id": id as i32, "x": *x, "p": "p".repeat(size - empty) }.to_doc_buf();
            let plan = c.prepare_insert(d.doc()).unwrap();
            c.insert(plan, d.doc());
        }
        c
    }

    #[tokio::test]
    async fn pieces_hold_no_more_than_asked_and_a_large_key_stands_alone() {
        let key = Arc::new(ShardKeyPattern::parse(&doc! { "x": 1 }).unwrap());
        let all = KeyRange::new(key, &doc! { "x": Value::MinKey }, &doc! { "x": Value::MaxKey }).unwrap();
        let cut = async |documents: &[(i32, usize)], most: usize| {
            let bytes = Most { bytes: 300, documents: i64::MAX };
            let points = pieces(&filled(documents), 1, &all, bytes, most).await;
            points.iter().map(|p| p.get_i64("x").unwrap()).collect::<Vec<_>>()
        };
        // Small documents before large ones: by bytes, not by number.
        let uneven: Vec<(i32, usize)> = (0..10).map(|x| (x, if x < 6 { 50 } else { 200 })).collect();
        assert_eq!(cut(&uneven, 9).await, [6, 7, 8, 9]);
        assert_eq!(cut(&uneven, 1).await, [6]);
        // The key 5 has 600 bytes: nothing shares its piece.
        assert_eq!(cut(&[(1, 100), (5, 300), (5, 300), (7, 100), (8, 100)], 9).await, [5, 7]);
        assert_eq!(cut(&[(5, 300), (5, 300)], 9).await, [0i64; 0]);
        // By number, where documents are counted: never within a key.
        let view = filled(&[(1, 50), (2, 50), (2, 50), (3, 50), (4, 50), (5, 50)]);
        let points = pieces(&view, 1, &all, Most { bytes: 300, documents: 2 }, 9).await;
        assert_eq!(points, [doc! { "x": 2 }, doc! { "x": 3 }, doc! { "x": 5 }]);
        // Six documents of 50 bytes: 1.3 times two make up 100 bytes.
        assert_eq!([None, Some(9), Some(1)].map(|n| Most::of(&view, 100, n).documents), [i64::MAX, 2, 1]);
        assert_eq!(measure(&filled(&uneven), 1, &all, i64::MAX).await, (1100, 10));
        assert!(measure(&filled(&uneven), 1, &all, 120).await.0 <= 200);
    }

    #[test]
    fn a_document_with_several_entries_is_visited_once_wherever_the_walk_stops() {
        let pattern = doc! { "x": 1 };
        let spec = doc! { "v": 2, "key": { "x": 1, "a": 1 }, "name": "x_1_a_1" };
        let mut c = Collection::new(CollectionMeta::new("d.c", [1; 16]));
        c.create_index(IndexSpec::parse(&spec, &node::open::partial_predicate).unwrap()).unwrap();
        for id in 0..6 {
            let d = doc! { "_id": id, "x": id / 3, "a": [id, 10 + id, 20 + id] }.to_doc_buf();
            let plan = c.prepare_insert(d.doc()).unwrap();
            c.insert(plan, d.doc());
        }
        let key = Arc::new(ShardKeyPattern::parse(&pattern).unwrap());
        let slot = shard_key_index(&c, &key).unwrap();
        assert!(is_multikey(&c, slot));
        let range = KeyRange::new(key, &doc! { "x": 0 }, &doc! { "x": Value::MaxKey }).unwrap();
        for stop_after in 1..7 {
            let (mut met, mut position) = (Vec::new(), Position::default());
            loop {
                let mut n = 0;
                let ended = walk_slice(&c, slot, &range, &mut position, |record| {
                    n += 1;
                    if n <= stop_after {
                        met.push(record);
                    }
                    n <= stop_after
                });
                if ended {
                    break;
                }
            }
            assert_eq!(met, [1, 2, 3, 4, 5, 6], "stopped after {stop_after}");
        }
    }

    #[tokio::test]
    async fn a_document_at_the_end_of_the_key_space_lies_in_the_last_range() {
        let pattern = doc! { "x": 1 };
        let spec = doc! { "v": 2, "key": pattern.clone(), "name": "x_1" };
        let mut c = Collection::new(CollectionMeta::new("d.c", [1; 16]));
        c.create_index(IndexSpec::parse(&spec, &node::open::partial_predicate).unwrap()).unwrap();
        for (id, x) in [(1, Value::Int32(5)), (2, Value::Int32(15)), (3, Value::MaxKey)] {
            let d = doc! { "_id": id, "x": x }.to_doc_buf();
            let plan = c.prepare_insert(d.doc()).unwrap();
            c.insert(plan, d.doc());
        }
        let key = Arc::new(ShardKeyPattern::parse(&pattern).unwrap());
        for (max, expected) in [(Value::MaxKey, vec![2, 3]), (Value::Int32(20), vec![2])] {
            let range = KeyRange::new(key.clone(), &doc! { "x": 10 }, &doc! { "x": max }).unwrap();
            let mut met = Vec::new();
            assert!(walk_slice(&c, 1, &range, &mut Position::default(), |record| {
                met.push(record);
                true
            }));
            assert_eq!(met, expected);
            let inside = |r: &RecordId| c.get(*r).is_some_and(|d| range.contains(d));
            assert_eq!((1..=3).filter(inside).collect::<Vec<_>>(), expected);
            let least = Most { bytes: 1, documents: 1 };
            assert!(pieces(&c, 1, &range, least, 9).await.is_empty(), "no chunk begins at its end");
        }
    }
}
