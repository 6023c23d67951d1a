//! A file of entries in the order of their keys, in which a key is looked up.
//!
//! It has the form of a run (see [`super::spill`]). An index in memory holds the first key of every block, so that a look-up reads
//! a block or two, and more only of a key whose entries fill more. The index takes about a hundredth of what it leads to
//! where entries are short; of those that fill a block by themselves it holds each key.

use super::spill::{HEAD_BYTES, Merge, Run, Space, number_at, write_run};
use super::spool::Stored;
use document::{Result, meter};

/// Bytes of a file for one key of its index.
const BLOCK: u64 = 4096;
/// What a key of an index takes beside its bytes.
const INDEXED_BYTES: usize = std::mem::size_of::<(Vec<u8>, u64)>();

pub struct KeyFile {
    run: Run,
    /// The first key of each block, and where it begins.
    index: Vec<(Vec<u8>, u64)>,
    index_bytes: usize,
}

impl KeyFile {
    /// # Errors
    /// The space's, and those of [`meter::spend`].
    pub fn write(space: &dyn Space, entries: Merge) -> Result<(KeyFile, Stored)> {
        let (mut index, mut at, mut next) = (Vec::new(), 0, 0);
        let noted = entries.inspect(|entry| {
            let Ok((key, bytes)) = entry else { return };
            if at >= next {
                index.push((key.clone(), at));
                next = at + BLOCK;
            }
            at += (HEAD_BYTES + key.len() + bytes.len()) as u64;
        });
        let (run, records) = write_run(space, noted)?;
        let stored = Stored { records, bytes: run.bytes };
        let index_bytes = index.iter().map(|(key, _)| key.len() + INDEXED_BYTES).sum();
        Ok((KeyFile { run, index, index_bytes }, stored))
    }
    /// What the index takes.
    pub fn index_bytes(&self) -> usize {
        self.index_bytes
    }
    pub(super) fn into_run(self) -> Run {
        self.run
    }
    /// Gives `take` what stands with the key, entry by entry, until it returns true; says whether it did. `block` is reused
    /// from one look-up to the next.
    ///
    /// # Errors
    /// The file's, and those of [`meter::spend`].
    pub fn find(
        &mut self,
        key: &[u8],
        block: &mut Vec<u8>,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        // The block before the first that begins with the key may end with it.
        let mut at = self.index.partition_point(|(first, _)| first.as_slice() < key).saturating_sub(1);
        while let Some((_, from)) = self.index.get(at).filter(|(first, _)| first.as_slice() <= key) {
            meter::spend(64)?;
            let to = self.index.get(at + 1).map_or(self.run.bytes, |(_, at)| *at);
            block.resize(usize::try_from(to - from).unwrap_or(usize::MAX), 0);
            self.run.file.read(*from, block)?;
            let mut rest = block.as_slice();
            while rest.len() >= HEAD_BYTES {
                let (key_bytes, bytes) = (number_at(rest, 0), number_at(rest, 4));
                let (entry, others) = rest[HEAD_BYTES..].split_at(key_bytes + bytes);
                let (own, bytes) = entry.split_at(key_bytes);
                if own > key {
                    return Ok(false);
                }
                if own == key && take(bytes) {
                    return Ok(true);
                }
                rest = others;
            }
            at += 1;
        }
        Ok(false)
    }
}
