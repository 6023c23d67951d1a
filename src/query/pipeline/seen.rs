//! A set of keys, in memory until its owner spills it to files.
//!
//! Each spill writes the keys in memory to a [`KeyFile`]. Once there are [`FILES_MAX`] of them they are merged into one.
//! Their indexes stay in memory, and the owner charges what they take.

use super::key_file::KeyFile;
use super::spill::{Merge, Space, sorted};
use super::spool::Stored;
use document::Result;
use std::collections::HashSet;

/// Files that are merged into one when there are so many.
const FILES_MAX: usize = 8;

#[derive(Default)]
pub struct Seen {
    memory: HashSet<Vec<u8>, foldhash::fast::RandomState>,
    files: Vec<KeyFile>,
    /// Reused for every block.
    block: Vec<u8>,
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
            if file.find(&key, &mut self.block, |_| true)? {
                return Ok(false);
            }
        }
        Ok(self.memory.insert(key))
    }
    /// What the indexes of the files take in memory.
    pub fn index_bytes(&self) -> usize {
        self.files.iter().map(KeyFile::index_bytes).sum()
    }
    /// Moves the keys in memory to a file; their index stays.
    ///
    /// # Errors
    /// The space's, and those of [`meter::spend`].
    pub fn spill(&mut self, space: &dyn Space) -> Result<Stored> {
        if self.memory.is_empty() {
            return Ok(Stored::default());
        }
        let keys = std::mem::take(&mut self.memory).into_iter().map(|key| (key, Vec::new()));
        let (file, stored) = KeyFile::write(space, sorted(keys)?)?;
        self.files.push(file);
        if self.files.len() >= FILES_MAX {
            let runs = std::mem::take(&mut self.files).into_iter().map(KeyFile::into_run).collect();
            let (file, _) = KeyFile::write(space, Merge::new(runs, Vec::new())?)?;
            self.files.push(file);
        }
        Ok(stored)
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
