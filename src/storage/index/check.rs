//! Do a collection's records and an index say the same of each other?
//!
//! An index has, for every document that it covers, exactly the document's keys. So it lacks a key that a document has
//! ([`CollectionSnapshot::missing_keys`]), or has an entry that no document gives ([`CollectionSnapshot::explains`]); where it lacks
//! none and has as many entries as the documents have keys, it has none too many, and nobody needs to look at each.

use document::Doc;

use super::keys::{Asked, Computed, KeyBuffer, KeySource, Keys};
use super::{IndexCursor, IndexEntry};
use crate::record_store::RecordId;
use crate::snapshot::{CollectionSnapshot, CollectionView};

/// What one index says of one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeysOfDocument {
    /// How many keys the document has.
    pub keys: usize,
    /// Those of them that the index lacks.
    pub missing: Vec<Vec<u8>>,
}

impl CollectionSnapshot {
    /// Looks up the keys of the document at `record` in the index at `slot`, over which `cursor` is.
    ///
    /// # Errors
    /// The document has no keys in this index, and could not be inserted (as [`crate::Collection::prepare_insert`]).
    pub fn missing_keys(
        &self,
        slot: usize,
        cursor: &mut IndexCursor<'_>,
        record: RecordId,
        doc: Doc<'_>,
    ) -> document::Result<KeysOfDocument> {
        let Some(keys) = self.keys(slot, doc)? else { return Ok(KeysOfDocument::default()) };
        let mut found = KeysOfDocument { keys: keys.len(), missing: Vec::new() };
        for (_, key) in keys.iter() {
            if !cursor.seek_entry(key, record) {
                found.missing.push(key.to_vec());
            }
        }
        Ok(found)
    }

    /// Whether the document that an entry of the index at `slot` leads to has the entry's key.
    pub fn explains(&self, slot: usize, entry: &IndexEntry<'_>) -> bool {
        let keys = self.get(entry.record).and_then(|doc| self.keys(slot, doc).ok().flatten());
        keys.is_some_and(|keys| keys.iter().any(|(_, key)| key == entry.key))
    }

    /// The keys of a document in the index at `slot`; `None` where the index does not cover it.
    fn keys(&self, slot: usize, doc: Doc<'_>) -> document::Result<Option<KeyBuffer>> {
        let Some(info) = self.index_info(slot).filter(|info| info.spec.covers(doc)) else { return Ok(None) };
        let mut keys = KeyBuffer::default();
        Computed.keys(Asked { spec: &info.spec, doc, keys: Keys::Accepted }, slot, &mut keys)?;
        Ok(Some(keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Collection, CollectionMeta};
    use document::{Document, doc};

    fn collection(documents: &[Document]) -> Collection {
        let mut collection = Collection::new(CollectionMeta::new("t.c", [1; 16]));
        for spec in [
            doc! { "key": { "a": 1 }, "name": "a_1" },
            doc! { "key": { "u": 1 }, "name": "u_1", "unique": true, "sparse": true },
        ] {
            let spec = super::super::IndexSpec::parse(&spec, &super::super::no_partial_indexes).unwrap();
            collection.create_index(spec).unwrap();
        }
        for d in documents {
            let d = d.to_doc_buf();
            let plan = collection.prepare_insert(d.doc()).unwrap();
            collection.insert(plan, d.doc());
        }
        collection
    }

    /// Of each index: its keys, the missing ones, and the entries that nothing explains.
    fn judged(snapshot: &CollectionSnapshot) -> Vec<(usize, usize, usize)> {
        let judge = |slot| {
            let (mut keys, mut missing, mut extra) = (0, 0, 0);
            let mut records = snapshot.records();
            let mut next = records.first();
            let mut cursor = snapshot.index_cursor(slot).unwrap();
            while let Some((record, doc)) = next {
                let found = snapshot.missing_keys(slot, &mut cursor, record, doc).unwrap();
                (keys, missing) = (keys + found.keys, missing + found.missing.len());
                next = records.next();
            }
            let mut next = cursor.first();
            while let Some(entry) = next {
                extra += usize::from(!snapshot.explains(slot, &entry));
                next = cursor.next();
            }
            (keys, missing, extra)
        };
        (0..snapshot.index_count()).map(judge).collect()
    }

    #[test]
    fn a_sound_collection_has_every_key_and_no_other() {
        let c = collection(&[doc! { "_id": 1, "a": [1, 2, 2], "u": 5 }, doc! { "_id": 2 }]);
        assert_eq!(judged(&c.snapshot()), [(2, 0, 0), (3, 0, 0), (1, 0, 0)]);
    }

    #[test]
    fn keys_taken_from_an_index_are_missed_and_entries_of_another_collection_are_too_many() {
        let c = collection(&[doc! { "_id": 1, "a": [1, 2], "u": 5 }, doc! { "_id": 2, "a": 3, "u": 6 }]);
        let other = collection(&[doc! { "_id": 1, "a": [1, 4], "u": 5 }, doc! { "_id": 3, "a": 3, "u": 9 }]);
        let mut mixed = c.snapshot();
        mixed.indexes = other.snapshot().indexes;
        assert_eq!(judged(&mixed), [(2, 1, 1), (3, 1, 1), (2, 1, 1)]);
    }
}
