//! The checksum of documents that follow one another by `_id`.

use document::hash::Checksum;
use document::{Doc, Document, Result, Value, bail, doc};
use runtime::Instant;
use std::time::Duration;
use storage::{CollectionView, RecordId};

/// The longest time for which a batch keeps writers of its collection waiting.
pub(super) const LATCH_MAX: Duration = Duration::from_millis(20);
/// Documents between two looks at the clock.
const LOOK: u64 = 16;

/// A range of `_id`; both ends belong to it unless `after` excepts the lower one.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    pub from: Value,
    pub after: bool,
    pub to: Value,
}

/// Where a batch ends before its range does.
#[derive(Clone, Debug)]
pub struct Limits {
    pub documents: u64,
    pub bytes: u64,
    /// For which it goes on, if not for as long as it takes.
    pub time: Option<Duration>,
}

/// What a batch held.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sum {
    pub documents: u64,
    pub bytes: u64,
    pub md5: String,
    /// The `_id` at which it ended, which belongs to it.
    pub to: Value,
    /// It reached the end of its range.
    pub is_last: bool,
}

impl Sum {
    /// The members of a log entry that say which documents were summed up, and what their sum is.
    pub(super) fn range(&self, bounds: &Bounds) -> Document {
        doc! {
            "md5": self.md5.as_str(), "batchStart": { "_id": bounds.from.clone() }, "after": bounds.after,
            "batchEnd": { "_id": self.to.clone() },
        }
    }
    /// What the health log says of it.
    pub(super) fn shown(&self, bounds: &Bounds) -> Document {
        doc! {
            "count": self.documents as i64, "bytes": self.bytes as i64, "md5": self.md5.as_str(),
            "batchStart": { "_id": bounds.from.clone() }, "batchEnd": { "_id": self.to.clone() },
        }
    }
}

/// The checksum of the documents in the range, as far as the limits allow; of one document at least.
///
/// # Errors
/// IndexNotFound (27) for a collection without an index on `_id`.
pub(super) fn sum(view: &impl CollectionView, bounds: &Bounds, limits: &Limits) -> Result<Sum> {
    let until = limits.time.map(|time| Instant::now() + time);
    let (mut checksum, mut last) = (Checksum::default(), None);
    let (mut documents, mut bytes, mut is_last) = (0u64, 0u64, true);
    each(view, bounds, |_, d| {
        let size = d.bytes().len() as u64;
        let is_full = documents >= limits.documents
            || bytes.saturating_add(size) > limits.bytes
            || (documents.is_multiple_of(LOOK) && until.is_some_and(|until| Instant::now() >= until));
        if is_full && documents > 0 {
            is_last = false;
            return false;
        }
        checksum.update(d.bytes());
        (documents, bytes) = (documents + 1, bytes + size);
        last = d.get("_id").map(|id| id.to_value());
        true
    })?;
    let to = last.filter(|_| !is_last).unwrap_or_else(|| bounds.to.clone());
    Ok(Sum { documents, bytes, md5: checksum.hex(), to, is_last })
}

/// Calls `f` with the documents of the range in the order of their `_id`, until it returns false.
///
/// # Errors
/// IndexNotFound (27) for a collection without an index on `_id`.
pub(super) fn each(
    view: &impl CollectionView,
    bounds: &Bounds,
    mut f: impl FnMut(RecordId, Doc<'_>) -> bool,
) -> Result<()> {
    let slot = view.index_slot("_id_");
    let Some((info, mut cursor)) =
        slot.and_then(|slot| Some((view.index_info(slot)?, view.index_cursor(slot)?)))
    else {
        bail!(INDEX_NOT_FOUND, "the collection has no index on _id")
    };
    let key_of = |id: &Value| {
        let mut key = Vec::new();
        info.spec.collation().append_value_key(&mut key, id, false);
        key
    };
    let (from, to) = (key_of(&bounds.from), key_of(&bounds.to));
    let mut next = cursor.seek(&from);
    while let Some(entry) = next {
        if entry.key > to.as_slice() {
            break;
        }
        let excepted = bounds.after && entry.key == from;
        if !excepted
            && let Some(d) = view.get(entry.record)
            && !f(entry.record, d)
        {
            break;
        }
        next = cursor.next();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::{Collection, CollectionMeta};

    fn collection(ids: impl IntoIterator<Item = i32>) -> Collection {
        let mut collection = Collection::new(CollectionMeta::new("t.c", [1; 16]));
        for id in ids {
            let d = doc! { "_id": id, "pad": "x".repeat(20) }.to_doc_buf();
            let plan = collection.prepare_insert(d.doc()).unwrap();
            collection.insert(plan, d.doc());
        }
        collection
    }

    fn batches(collection: &Collection, limits: &Limits) -> Vec<Sum> {
        let mut bounds = Bounds { from: Value::MinKey, after: false, to: Value::MaxKey };
        let mut found = Vec::new();
        loop {
            let sum = sum(collection, &bounds, limits).unwrap();
            bounds = Bounds { from: sum.to.clone(), after: true, to: bounds.to };
            found.push(sum);
            if found.last().is_some_and(|sum| sum.is_last) {
                return found;
            }
        }
    }

    #[test]
    fn batches_join_and_cover_everything_once() {
        let limits = Limits { documents: 4, bytes: u64::MAX, time: None };
        let found = batches(&collection((0..10).rev()), &limits);
        let counts: Vec<_> = found.iter().map(|sum| (sum.documents, sum.to.clone())).collect();
        assert_eq!(counts, [(4, Value::Int32(3)), (4, Value::Int32(7)), (2, Value::MaxKey)]);
    }

    #[test]
    fn one_document_is_in_a_batch_however_large_it_is() {
        let limits = Limits { documents: 4, bytes: 1, time: None };
        assert_eq!(batches(&collection(0..3), &limits).len(), 3);
    }

    #[test]
    fn sums_are_equal_where_documents_are_whatever_the_order_of_insertion() {
        let limits = Limits { documents: 100, bytes: u64::MAX, time: None };
        assert_eq!(batches(&collection(0..9), &limits), batches(&collection((0..9).rev()), &limits));
        assert_ne!(batches(&collection(0..9), &limits), batches(&collection(0..8), &limits));
    }
}
