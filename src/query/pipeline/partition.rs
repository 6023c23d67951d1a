//! Entries divided by the hash of their key: what a hash table in memory has no room for.
//!
//! All entries of a key stand in one *partition*, in the order in which they were put in, so that each partition can be
//! read into a table of its own. One that still has no room is divided once more, by another hash: that of its level.
//!
//! The partitions of a level share one file. Each collects its entries, in the form of those of a run (see [`super::spill`]),
//! in a block in memory and appends the block when it is full; where its blocks stand is kept in memory. So a level holds
//! a megabyte at most beside the file, whatever went there.

use super::spill::{File, HEAD_BYTES, Space, append_entry, number_at};
use document::{Result, meter};
use foldhash::fast::FixedState;
use parking_lot::Mutex;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Partitions of a level, as a power of two.
const PARTITION_BITS: u32 = 5;
/// Bytes with which a block is full; its last entry may be longer.
const BLOCK: usize = 32 * 1024;
/// Levels after which keys are divided no more: keys that a client made to collide stay together.
pub const LEVELS_MAX: u32 = 8;

/// One file, written by all partitions of a level.
type Shared = Arc<Mutex<Box<dyn File>>>;

/// The partitions of one level while they are written.
pub struct Partitions {
    level: u32,
    file: Shared,
    length: u64,
    parts: Vec<Blocks>,
}

/// What a partition has in the file, and its block that is not full.
#[derive(Default)]
struct Blocks {
    written: Vec<(u64, usize)>,
    open: Vec<u8>,
}

impl Partitions {
    /// # Errors
    /// The space's.
    pub fn new(space: &dyn Space, level: u32) -> Result<Partitions> {
        let file = Arc::new(Mutex::new(space.file()?));
        let parts = std::iter::repeat_with(Blocks::default).take(1 << PARTITION_BITS).collect();
        Ok(Partitions { level, file, length: 0, parts })
    }
    /// Adds an entry; returns how many bytes it takes in the file.
    ///
    /// # Errors
    /// The file's, and those of [`meter::spend`].
    pub fn push(&mut self, key: &[u8], bytes: &[u8]) -> Result<usize> {
        meter::spend(4 + (key.len() + bytes.len()) / 512)?;
        let hash = FixedState::with_seed(u64::from(self.level)).hash_one(key);
        let part = &mut self.parts[(hash >> (u64::BITS - PARTITION_BITS)) as usize];
        append_entry(&mut part.open, key, bytes);
        // Where blocks end is kept, so a long entry ends its own at once.
        if part.open.len() >= BLOCK {
            self.file.lock().append(&part.open)?;
            part.written.push((self.length, part.open.len()));
            self.length += part.open.len() as u64;
            part.open.clear();
            part.open.shrink_to(2 * BLOCK);
        }
        Ok(HEAD_BYTES + key.len() + bytes.len())
    }
    /// The partitions that have entries.
    pub fn finish(self) -> impl Iterator<Item = Partition> {
        let Partitions { level, file, parts, .. } = self;
        let filled = parts.into_iter().filter(|part| !part.written.is_empty() || !part.open.is_empty());
        filled.map(move |part| Partition {
            level,
            file: file.clone(),
            written: part.written.into_iter(),
            last: Some(part.open),
            block: Vec::new(),
            used: 0,
        })
    }
}

/// The entries of one partition, read once.
pub struct Partition {
    level: u32,
    file: Shared,
    written: std::vec::IntoIter<(u64, usize)>,
    /// The block that never went to the file.
    last: Option<Vec<u8>>,
    block: Vec<u8>,
    used: usize,
}

impl Partition {
    pub fn level(&self) -> u32 {
        self.level
    }
    /// Key and bytes of the next entry.
    ///
    /// # Errors
    /// The file's, and those of [`meter::spend`].
    pub fn pull(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        meter::spend(2)?;
        if self.used == self.block.len() && !self.next_block()? {
            return Ok(None);
        }
        let rest = &self.block[self.used..];
        let (key, bytes) = (number_at(rest, 0), number_at(rest, 4));
        let entry = &rest[HEAD_BYTES..HEAD_BYTES + key + bytes];
        self.used += HEAD_BYTES + entry.len();
        Ok(Some(entry.split_at(key)))
    }
    fn next_block(&mut self) -> Result<bool> {
        self.used = 0;
        match self.written.next() {
            Some((at, length)) => {
                meter::spend(length / 512)?;
                self.block.resize(length, 0);
                self.file.lock().read(at, &mut self.block)?;
            }
            None => self.block = self.last.take().unwrap_or_default(),
        }
        Ok(!self.block.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::spill::tests::MemorySpace;
    use std::collections::HashMap;
    use std::sync::atomic::Ordering;

    #[test]
    fn all_entries_of_a_key_come_from_one_partition_in_their_order_and_another_level_divides_differently() {
        let space = MemorySpace::default();
        let mut whole: HashMap<Vec<u8>, Vec<Vec<u8>>> = HashMap::new();
        let mut level_1 = Partitions::new(&space, 1).unwrap();
        for i in 0..30_000u32 {
            let key = (i % 7000).to_be_bytes().to_vec();
            // Some entries fill several blocks by themselves.
            let bytes = [&i.to_be_bytes()[..], &vec![7; if i % 9000 == 5 { 100_000 } else { 20 }]].concat();
            assert_eq!(level_1.push(&key, &bytes).unwrap(), HEAD_BYTES + key.len() + bytes.len());
            whole.entry(key).or_default().push(bytes);
        }
        let (mut parts, mut keys) = (0, 0);
        for mut part in level_1.finish() {
            parts += 1;
            let mut own: HashMap<Vec<u8>, Vec<Vec<u8>>> = HashMap::new();
            let mut level_2 = Partitions::new(&space, part.level() + 1).unwrap();
            while let Some((key, bytes)) = part.pull().unwrap() {
                own.entry(key.to_vec()).or_default().push(bytes.to_vec());
                level_2.push(key, b"").unwrap();
            }
            keys += own.len();
            assert!(own.iter().all(|(key, entries)| whole[key] == *entries));
            assert!(level_2.finish().count() > 20, "a level divides as the one before did");
        }
        assert_eq!((parts, keys), (32, 7000));
        assert_eq!(space.alive.load(Ordering::Relaxed), 0);
        assert_eq!(space.made.load(Ordering::Relaxed), 33);
    }
}
