//! The foreign side of a `$lookup` by equality: documents by the keys of what the matcher sees at a path.
//!
//! In memory it is the documents in their order and a hash table of where they stand. Spilled, the documents go to one file,
//! and what the table held to sorted runs of `key -> places`, which become one [`KeyFile`] at the end:
//!
//! ```text
//! push, push, (spill), push, (spill) .. settle ──> find: keys -> places, in order, each once ──> documents
//! ```
//! The input is not divided, as the groups of `$group` are, since it has to keep its order.

use super::key_file::KeyFile;
use super::spill::{Entry, Runs, Space, sorted};
use super::spool::{Spool, Stored};
use crate::expression::FieldPath;
use document::{Collation, DocBuf, Result, Value, ValueRef, meter, path};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// What a key takes beside its bytes.
const KEY_BYTES: usize = 96;

/// What a place takes in a file.
const STORED_BYTES: usize = 12;

/// Where a document stands: its number in memory, or its first byte in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    at: u64,
    pub length: u32,
}

impl Place {
    fn to_bytes(self) -> [u8; STORED_BYTES] {
        let mut bytes = [0; STORED_BYTES];
        bytes[..8].copy_from_slice(&self.at.to_be_bytes());
        bytes[8..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }
    fn from_bytes(bytes: &[u8; STORED_BYTES]) -> Option<Place> {
        let (at, length) = bytes.split_first_chunk()?;
        let length = u32::from_be_bytes(*length.first_chunk()?);
        Some(Place { at: u64::from_be_bytes(*at), length })
    }
}

/// Places that are found before it is worth looking for those found again.
const PLACES_MIN: usize = 4096;

fn sort_distinct(places: &mut Vec<Place>) -> Result<()> {
    meter::spend(places.len())?;
    places.sort_unstable();
    places.dedup();
    Ok(())
}

#[derive(Default)]
pub struct HashSide {
    documents: Spool,
    table: HashMap<Vec<u8>, Vec<Place>, foldhash::fast::RandomState>,
    /// What the table held, once it was spilled.
    runs: Option<Runs>,
    /// The same when all is there.
    keys: Option<KeyFile>,
    /// Reused for every key, and for every block.
    scratch: Vec<u8>,
}

impl HashSide {
    /// Adds a document; returns what it takes in memory.
    ///
    /// # Errors
    /// Those of [`meter::spend`]: an array may hold many values.
    pub fn push(&mut self, d: DocBuf, foreign: &FieldPath, collation: &Collation) -> Result<usize> {
        meter::spend(4 + d.bytes().len() / 64)?;
        let HashSide { documents, table, scratch, .. } = self;
        let at = documents.in_memory().len() as u64;
        let place = Place { at, length: d.bytes().len() as u32 };
        let mut bytes = 0;
        path::for_each_value(d.doc(), &foreign.to_string(), &mut |v: Option<ValueRef<'_>>| {
            scratch.clear();
            match v {
                Some(v) => collation.append_key(scratch, v, false),
                None => collation.append_value_key(scratch, &Value::Null, false),
            }
            match table.get_mut(scratch) {
                Some(places) if places.last() == Some(&place) => {}
                Some(places) => {
                    places.push(place);
                    bytes += size_of::<Place>();
                }
                None => {
                    table.insert(scratch.clone(), vec![place]);
                    bytes += scratch.len() + KEY_BYTES;
                }
            }
            Ok(false)
        })?;
        Ok(bytes + documents.push(d))
    }
    /// Moves all that is in memory to files.
    ///
    /// # Errors
    /// The space's, and those of [`meter::spend`].
    pub fn spill(&mut self, space: &Arc<dyn Space>) -> Result<Stored> {
        let mut begins = Vec::with_capacity(self.documents.in_memory().len());
        let mut end = self.documents.stored().bytes;
        for d in self.documents.in_memory() {
            begins.push(end);
            end += d.bytes().len() as u64;
        }
        let documents = self.documents.spill(&**space)?;
        let mut entries: Vec<Entry> = Vec::with_capacity(self.table.len());
        for (key, places) in std::mem::take(&mut self.table) {
            meter::spend(4 + places.len())?;
            let stored = |place: &Place| {
                let at = begins.get(place.at as usize).copied().unwrap_or(end);
                Place { at, ..*place }.to_bytes()
            };
            entries.push((key, places.iter().flat_map(stored).collect()));
        }
        let runs = self.runs.get_or_insert_with(|| Runs::new(space.clone()));
        let keys = runs.write(sorted(entries)?)?;
        Ok(Stored { bytes: documents.bytes + keys.bytes, ..documents })
    }
    /// Gets it ready for [`HashSide::find`], when all has been pushed; what was spilled goes to files altogether. Returns
    /// that, and what is left in memory if it did.
    ///
    /// # Errors
    /// The space's, and those of [`meter::spend`].
    pub fn settle(&mut self, space: &Arc<dyn Space>) -> Result<Option<(Stored, usize)>> {
        if self.runs.is_none() {
            return Ok(None);
        }
        let last = self.spill(space)?;
        let Some(runs) = self.runs.take() else { return Ok(None) };
        let (keys, _) = KeyFile::write(&**space, runs.merge(Vec::new())?)?;
        let left = keys.index_bytes();
        self.keys = Some(keys);
        Ok(Some((last, left)))
    }
    /// Where the documents of any of these keys stand, in their order.
    ///
    /// # Errors
    /// The files', and those of [`meter::spend`].
    pub fn find(&mut self, keys: &[Vec<u8>]) -> Result<Vec<Place>> {
        let (mut places, mut distinct) = (Vec::new(), 0);
        for key in keys {
            match &mut self.keys {
                None => places.extend(self.table.get(key).into_iter().flatten()),
                Some(file) => {
                    file.find(key, &mut self.scratch, |bytes| {
                        places.extend(bytes.as_chunks().0.iter().filter_map(Place::from_bytes));
                        false
                    })?;
                }
            }
            // Values that stand in the same documents find them again and again.
            if places.len() > 2 * distinct + PLACES_MIN {
                sort_distinct(&mut places)?;
                distinct = places.len();
            }
        }
        sort_distinct(&mut places)?;
        Ok(places)
    }
    /// The documents that stand there.
    ///
    /// # Errors
    /// The files', and those of [`meter::spend`].
    pub fn documents(&mut self, places: &[Place]) -> Result<Vec<Cow<'_, DocBuf>>> {
        if self.keys.is_some() {
            let read = |place: &Place| self.documents.read(place.at, place.length as usize).map(Cow::Owned);
            return places.iter().map(read).collect();
        }
        let held = self.documents.in_memory();
        Ok(places.iter().filter_map(|place| held.get(place.at as usize)).map(Cow::Borrowed).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::lookup::key;
    use crate::pipeline::spill::tests::MemorySpace;
    use document::doc;
    use std::sync::atomic::Ordering;

    #[test]
    fn documents_are_found_by_their_keys_the_same_in_memory_and_in_files() {
        let foreign = FieldPath::parse("a.k").unwrap();
        let collation = Collation::default();
        let space = Arc::new(MemorySpace::default());
        let made = |spill_every: usize| {
            let shared: Arc<dyn Space> = space.clone();
            let mut side = HashSide::default();
            for i in 0..3000usize {
                let k = match i % 5 {
                    0 => Value::Int32((i % 100) as i32),
                    1 => Value::Array(vec![Value::Int32(1), Value::Int32(2), Value::Int32(1)]),
                    2 => Value::Null,
                    _ => Value::String(format!("{}{}", "x".repeat(if i == 2003 { 9000 } else { 3 }), i % 40)),
                };
                let inner = if i % 50 == 49 {
                    doc! {}
                } else {
                    doc! { "k": k }
                };
                let d = doc! { "_id": i as i32, "a": inner };
                let taken = side.push(d.to_doc_buf(), &foreign, &collation).unwrap();
                assert!(taken > d.to_doc_buf().bytes().len());
                if i % spill_every == spill_every - 1 {
                    side.spill(&shared).unwrap();
                }
            }
            let settled = side.settle(&shared).unwrap();
            assert_eq!(settled.is_some(), spill_every < 3000);
            side
        };
        let (mut memory, mut files) = (made(usize::MAX), made(700));
        let long = format!("{}3", "x".repeat(9000));
        let values = [
            vec![Value::Int32(5)],
            vec![Value::Null],
            vec![Value::Int32(2), Value::Double(1.0), Value::Int32(35)],
            vec![Value::Array(vec![Value::Int32(1), Value::Int32(2), Value::Int32(1)])],
            vec![Value::String("xxx13".into()), Value::String(long)],
            vec![Value::String("none".into())],
            vec![],
        ];
        for values in values {
            let keys: Vec<Vec<u8>> = values.iter().map(|v| key(v, &collation)).collect();
            let ids = |side: &mut HashSide| {
                let places = side.find(&keys).unwrap();
                let found = side.documents(&places).unwrap();
                let id = |d: &Cow<'_, DocBuf>| d.get("_id").and_then(|v| v.as_i64()).unwrap();
                found.iter().map(id).collect::<Vec<i64>>()
            };
            let expected = ids(&mut memory);
            assert!(expected.is_sorted_by(|a, b| a < b));
            assert_eq!(expected.is_empty(), values.is_empty() || values == [Value::String("none".into())]);
            assert_eq!(ids(&mut files), expected, "{values:?}");
        }
        assert_eq!(space.alive.load(Ordering::Relaxed), 2, "documents and keys");
        drop(files);
        assert_eq!(space.alive.load(Ordering::Relaxed), 0);
    }
}
