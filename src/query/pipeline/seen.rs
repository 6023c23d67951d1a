//! A set of keys, in memory until its owner spills it to files.
//!
//! Each spill writes the keys in memory, sorted, to a file of the form of a run (see [`super::spill`]). An index in memory
//! holds the first key of every block of such a file, so that a look-up reads one block of each. Once there are
//! [`FILES_MAX`] of them they are merged into one. The index takes about a hundredth of what it leads to where keys are
//! short; of keys that fill a block by themselves it holds each. So the owner charges what it takes.

use super::spill::{CHUNK_ENTRIES, Entry, HEAD_BYTES, Merge, Run, Space, number_at, write_run};
use super::spool::Stored;
use document::{Result, meter};
use std::collections::HashSet;

/// Files that are merged into one when there are so many.
const FILES_MAX: usize = 8;
/// Bytes of a file for one key of its index.
const BLOCK: u64 = 4096;
/// What a key of an index takes beside its bytes.
const INDEXED_BYTES: usize = std::mem::size_of::<(Vec<u8>, u64)>();

#[derive(Default)]
pub struct Seen {
    memory: HashSet<Vec<u8>, foldhash::fast::RandomState>,
    files: Vec<KeyFile>,
    /// Reused for every block.
    block: Vec<u8>,
}

struct KeyFile {
    run: Run,
    /// The first key of each block, and where it begins.
    index: Vec<(Vec<u8>, u64)>,
    /// What that takes.
    index_bytes: usize,
}

impl Seen {
    /// Adds a key; false when it is there already.
    ///
    /// # Errors
    /// The space's, and those of [`meter::spend`].
    pub fn insert(&mut self, key: Vec<u8>) -> Result<bool> {
        if self.memory.contains(&key) {
            return Ok(false);
        }
        for file in &mut self.files {
            if file.contains(&key, &mut self.block)? {
                return Ok(false);
            }
        }
        Ok(self.memory.insert(key))
    }
    /// What the indexes of the files take in memory.
    pub fn index_bytes(&self) -> usize {
        self.files.iter().map(|file| file.index_bytes).sum()
    }
    /// Moves the keys in memory to a file; their index stays.
    ///
    /// # Errors
    /// The space's, and those of [`meter::spend`].
    pub fn spill(&mut self, space: &dyn Space) -> Result<Stored> {
        if self.memory.is_empty() {
            return Ok(Stored::default());
        }
        let mut keys = std::mem::take(&mut self.memory).into_iter();
        let mut chunks = Vec::new();
        while keys.len() > 0 {
            meter::spend(CHUNK_ENTRIES * 4)?;
            let mut chunk: Vec<Entry> =
                keys.by_ref().take(CHUNK_ENTRIES).map(|key| (key, Vec::new())).collect();
            chunk.sort_unstable();
            chunks.push(chunk);
        }
        let (file, stored) = KeyFile::write(space, Merge::new(Vec::new(), chunks)?)?;
        self.files.push(file);
        if self.files.len() >= FILES_MAX {
            let runs = std::mem::take(&mut self.files).into_iter().map(|file| file.run).collect();
            let (file, _) = KeyFile::write(space, Merge::new(runs, Vec::new())?)?;
            self.files.push(file);
        }
        Ok(stored)
    }
}

impl KeyFile {
    fn write(space: &dyn Space, entries: Merge) -> Result<(KeyFile, Stored)> {
        let (mut index, mut at, mut next) = (Vec::new(), 0, 0);
        let noted = entries.inspect(|entry| {
            let Ok((key, _)) = entry else { return };
            if at >= next {
                index.push((key.clone(), at));
                next = at + BLOCK;
            }
            at += (HEAD_BYTES + key.len()) as u64;
        });
        let (run, records) = write_run(space, noted)?;
        let stored = Stored { records, bytes: run.bytes };
        let index_bytes = index.iter().map(|(key, _)| key.len() + INDEXED_BYTES).sum();
        Ok((KeyFile { run, index, index_bytes }, stored))
    }
    fn contains(&mut self, key: &[u8], block: &mut Vec<u8>) -> Result<bool> {
        meter::spend(64)?;
        let behind = self.index.partition_point(|(first, _)| first.as_slice() <= key);
        let Some((_, from)) = behind.checked_sub(1).map(|i| &self.index[i]) else { return Ok(false) };
        let to = self.index.get(behind).map_or(self.run.bytes, |(_, at)| *at);
        block.resize(usize::try_from(to - from).unwrap_or(usize::MAX), 0);
        self.run.file.read(*from, block)?;
        let mut rest = block.as_slice();
        while rest.len() >= HEAD_BYTES {
            let (entry, others) = rest.split_at(HEAD_BYTES + number_at(rest, 0));
            if &entry[HEAD_BYTES..] == key {
                return Ok(true);
            }
            rest = others;
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::spill::tests::MemorySpace;
    use std::sync::atomic::Ordering;

    #[test]
    fn an_index_of_large_keys_says_what_it_takes() {
        let space = MemorySpace::default();
        let bytes_of_index = |length: usize| {
            let mut seen = Seen::default();
            for i in 0..100u32 {
                seen.insert([&i.to_be_bytes()[..], &vec![7; length - 4]].concat()).unwrap();
                if i % 10 == 9 {
                    seen.spill(&space).unwrap();
                }
            }
            seen.index_bytes()
        };
        assert!(bytes_of_index(40) < 40 * 20);
        assert!(bytes_of_index(5000) >= 100 * 5000);
    }

    #[test]
    fn a_set_says_the_same_of_a_key_wherever_the_key_stands() {
        let space = MemorySpace::default();
        let (mut seen, mut model) = (Seen::default(), HashSet::new());
        for i in 0..40_000u32 {
            let n = i.wrapping_mul(2_654_435_761) % 20_011;
            // Keys of very different lengths; the longest is longer than a block.
            let key = [&n.to_be_bytes()[..], &vec![7; if n == 5 { 9000 } else { n as usize % 50 }]].concat();
            assert_eq!(seen.insert(key.clone()).unwrap(), model.insert(key), "{n}");
            if i % 2900 == 2899 {
                seen.spill(&space).unwrap();
                assert!(seen.files.len() < FILES_MAX);
            }
        }
        assert_eq!(space.alive.load(Ordering::Relaxed), seen.files.len());
        drop(seen);
        assert_eq!(space.alive.load(Ordering::Relaxed), 0);
    }
}
