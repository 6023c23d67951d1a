//! A spool: documents in the order in which they came, in memory until their owner spills them to a file, and read as
//! often as is wanted.
//!
//! The file holds whole documents one after another; what came after the last spill stays in memory behind them. A reader
//! keeps a [`Place`], so that several may read one spool, each at its own pace.

use super::spill::{CHUNK, File, Reading, Space};
use document::{Doc, DocBuf, Result, meter};

/// What a document takes beside its bytes.
const DOCUMENT_BYTES: usize = 64;

/// What went to a file at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    pub records: u64,
    pub bytes: u64,
}

impl std::ops::Add for Stored {
    type Output = Stored;
    fn add(self, other: Stored) -> Stored {
        Stored { records: self.records + other.records, bytes: self.bytes + other.bytes }
    }
}

#[derive(Default)]
pub struct Spool {
    file: Option<Box<dyn File>>,
    stored: Stored,
    memory: Vec<DocBuf>,
}

/// Where a reader stands.
#[derive(Default)]
pub struct Place {
    file: Reading,
    /// Documents read of those in memory.
    memory: usize,
}

impl Spool {
    /// Keeps a document; returns what it takes in memory.
    pub fn push(&mut self, d: DocBuf) -> usize {
        let bytes = d.bytes().len() + DOCUMENT_BYTES;
        self.memory.push(d);
        bytes
    }
    pub fn len(&self) -> usize {
        self.memory.len() + usize::try_from(self.stored.records).unwrap_or(usize::MAX)
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub fn has_spilled(&self) -> bool {
        self.file.is_some()
    }
    /// Moves what is in memory to the file. No reader may have read of what is in memory: it would read that again.
    ///
    /// # Errors
    /// The space's, and those of [`meter::spend`].
    pub fn spill(&mut self, space: &dyn Space) -> Result<Stored> {
        if self.memory.is_empty() {
            return Ok(Stored::default());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(space.file()?),
        };
        let mut stored = Stored::default();
        let mut buffer = Vec::with_capacity(CHUNK);
        for d in self.memory.drain(..) {
            meter::spend(4 + d.bytes().len() / 512)?;
            buffer.extend_from_slice(d.bytes());
            stored.records += 1;
            if buffer.len() >= CHUNK {
                file.append(&buffer)?;
                stored.bytes += buffer.len() as u64;
                buffer.clear();
            }
        }
        file.append(&buffer)?;
        stored.bytes += buffer.len() as u64;
        self.stored = self.stored + stored;
        Ok(stored)
    }
    /// The documents in memory.
    pub fn in_memory(&self) -> &[DocBuf] {
        &self.memory
    }
    /// What went to the file so far: the next document to go there begins at its end.
    pub fn stored(&self) -> Stored {
        self.stored
    }
    /// The document that begins there in the file.
    ///
    /// # Errors
    /// The file's, and those of [`meter::spend`].
    pub fn read(&mut self, at: u64, length: usize) -> Result<DocBuf> {
        meter::spend(4 + length / 512)?;
        let mut bytes = vec![0; length];
        if let Some(file) = &mut self.file {
            file.read(at, &mut bytes)?;
        }
        Ok(DocBuf::from_validated(bytes))
    }
    /// All documents.
    ///
    /// # Errors
    /// The space's, and those of [`meter::spend`].
    pub fn into_vec(mut self) -> Result<Vec<DocBuf>> {
        let mut all = Vec::with_capacity(self.len());
        let mut place = Place::default();
        for _ in 0..self.stored.records {
            let d = self.next(&mut place)?;
            all.extend(d.map(|d| DocBuf::from_validated(d.bytes().to_vec())));
        }
        all.append(&mut self.memory);
        Ok(all)
    }
    /// The document at a place, which moves on.
    ///
    /// # Errors
    /// The space's, and those of [`meter::spend`].
    pub fn next<'a>(&'a mut self, place: &'a mut Place) -> Result<Option<Doc<'a>>> {
        meter::spend(1)?;
        let end = self.stored.bytes;
        let Some(file) = self.file.as_deref_mut().filter(|_| !place.file.is_done(end)) else {
            let next = self.memory.get(place.memory);
            place.memory += usize::from(next.is_some());
            return Ok(next.map(DocBuf::doc));
        };
        place.file.need(file, end, 4)?;
        let length = place.file.number(0);
        place.file.need(file, end, length)?;
        Ok(Some(Doc::from_validated(place.file.take(length))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::spill::tests::MemorySpace;
    use document::doc;

    #[test]
    fn a_spool_gives_what_was_put_in_again_and_again_from_its_file_and_from_memory() {
        let space = MemorySpace::default();
        let mut spool = Spool::default();
        assert_eq!(spool.spill(&space).unwrap(), Stored::default());
        assert_eq!(space.made.load(std::sync::atomic::Ordering::Relaxed), 0, "a file of nothing");
        let (mut place, mut read) = (Place::default(), Vec::new());
        for i in 0..300 {
            let d = doc! { "_id": i, "s": "x".repeat(if i == 200 { 200_000 } else { 700 }) };
            spool.push(d.to_doc_buf());
            if i % 90 == 89 {
                spool.spill(&space).unwrap();
            }
            if i == 200 {
                // A reader goes on with what comes after it has read some.
                while let Some(d) = spool.next(&mut place).unwrap() {
                    read.push(d.get_i64("_id"));
                    if read.len() == 150 {
                        break;
                    }
                }
            }
        }
        assert_eq!(spool.len(), 300);
        let mut again = Place::default();
        let mut all = Vec::new();
        while let Some(d) = spool.next(&mut again).unwrap() {
            all.push(d.get_i64("_id"));
        }
        while let Some(d) = spool.next(&mut place).unwrap() {
            read.push(d.get_i64("_id"));
        }
        spool.push(doc! { "_id": 300 }.to_doc_buf());
        assert!(spool.next(&mut again).unwrap().is_some(), "a reader at the end passed over what came later");
        let expected: Vec<Option<i64>> = (0..300).map(Some).collect();
        assert_eq!((all, read), (expected.clone(), expected));
        drop(spool);
        assert_eq!(space.alive.load(std::sync::atomic::Ordering::Relaxed), 0);
    }
}
