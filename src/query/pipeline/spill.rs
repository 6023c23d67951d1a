//! Spilling: sorted runs in files, merged again.
//!
//! A stage that may use the disk collects entries of a key and some bytes, a document mostly, in a [`Sorter`]. When that is over
//! its limit it writes what it has as a *run*; at the end the runs are merged with what is still in memory. Keys compare
//! as bytes; equal keys come in the order in which they were put in.
//!
//! Nothing is sorted in one go: entries are sorted some thousands at a time, in *chunks*, and chunks and runs are merged
//! entry by entry. So the work is counted and can be interrupted, and a sort in memory is the same code without runs.
//!
//! A run's bytes: for each entry the key's length (u32), the other length (u32), key, bytes. The files belong to the
//! process that wrote them and are never read by another; the space removes each when it is dropped.
//!
//! With many runs a merge would read many files in small pieces; so once [`RUNS_MAX`] have been written they are merged
//! into one.

use super::Run as Settings;
use super::account::{Charge, Kind, Use};
use super::spool::Stored;
use document::{Result, meter};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Where runs are written: the host's directory for such files.
pub trait Space: std::fmt::Debug + Send + Sync {
    /// An empty file, removed when it is dropped.
    fn file(&self) -> Result<Box<dyn File>>;
}

/// A file that is written once, from its beginning to its end, and then read at any place.
pub trait File: Send + Sync {
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Fills `out` from a position on.
    fn read(&mut self, at: u64, out: &mut [u8]) -> Result<()>;
}

/// Runs that are merged into one when there are so many.
const RUNS_MAX: usize = 64;
/// Bytes of a run that are read or written at once.
pub(super) const CHUNK: usize = 64 * 1024;

/// Entries that are sorted at once.
const CHUNK_ENTRIES: usize = 2048;
/// Bytes before an entry in a run: its two lengths.
pub(super) const HEAD_BYTES: usize = 8;
/// What an entry takes beside its bytes.
const ENTRY_BYTES: usize = 64;

/// A key and what goes with it.
pub type Entry = (Vec<u8>, Vec<u8>);

pub(super) struct Run {
    pub(super) file: Box<dyn File>,
    pub(super) bytes: u64,
}

/// The runs a stage has written.
pub struct Runs {
    space: Arc<dyn Space>,
    runs: Vec<Run>,
}

impl Runs {
    pub fn new(space: Arc<dyn Space>) -> Runs {
        Runs { space, runs: Vec::new() }
    }
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
    /// Writes a run of entries that come in the order of their keys.
    ///
    /// # Errors
    /// The space's.
    pub fn write(&mut self, entries: impl Iterator<Item = Result<Entry>>) -> Result<Stored> {
        let (run, records) = write_run(&*self.space, entries)?;
        let stored = Stored { records, bytes: run.bytes };
        self.runs.push(run);
        if self.runs.len() >= RUNS_MAX {
            let all = std::mem::take(&mut self.runs);
            let merged = Merge::new(all, Vec::new())?;
            let (run, _) = write_run(&*self.space, merged)?;
            self.runs.push(run);
        }
        Ok(stored)
    }
    /// All entries in order: those of the runs, and those of `chunks`, each of which is sorted.
    ///
    /// # Errors
    /// The space's.
    pub fn merge(self, chunks: Vec<Vec<Entry>>) -> Result<Merge> {
        Merge::new(self.runs, chunks)
    }
}

/// The entries by key: sorted in pieces.
///
/// # Errors
/// Those of [`meter::spend`].
pub(super) fn sorted(entries: impl IntoIterator<Item = Entry>) -> Result<Merge> {
    let (mut entries, mut chunks) = (entries.into_iter(), Vec::new());
    loop {
        let mut chunk: Vec<Entry> = entries.by_ref().take(CHUNK_ENTRIES).collect();
        if chunk.is_empty() {
            return Merge::new(Vec::new(), chunks);
        }
        meter::spend(CHUNK_ENTRIES * 4)?;
        chunk.sort_unstable();
        chunks.push(chunk);
    }
}

/// Appends an entry in the form it has in a run.
pub(super) fn append_entry(buffer: &mut Vec<u8>, key: &[u8], bytes: &[u8]) {
    buffer.extend_from_slice(&(key.len() as u32).to_le_bytes());
    buffer.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    buffer.extend_from_slice(key);
    buffer.extend_from_slice(bytes);
}

/// Writes a run; returns with it how many records it has.
pub(super) fn write_run(
    space: &dyn Space,
    entries: impl Iterator<Item = Result<Entry>>,
) -> Result<(Run, u64)> {
    let mut run = Run { file: space.file()?, bytes: 0 };
    let (mut buffer, mut records) = (Vec::with_capacity(CHUNK), 0);
    for entry in entries {
        let (key, bytes) = entry?;
        meter::spend(4 + (key.len() + bytes.len()) / 512)?;
        append_entry(&mut buffer, &key, &bytes);
        records += 1;
        if buffer.len() >= CHUNK {
            run.file.append(&buffer)?;
            run.bytes += buffer.len() as u64;
            buffer.clear();
        }
    }
    run.file.append(&buffer)?;
    run.bytes += buffer.len() as u64;
    Ok((run, records))
}

/// How far a file is read, and what was read ahead.
#[derive(Default)]
pub(super) struct Reading {
    at: u64,
    buffer: Vec<u8>,
    used: usize,
}

impl Reading {
    /// Whether all of the file, which ends at `end`, was taken.
    pub(super) fn is_done(&self, end: u64) -> bool {
        self.used == self.buffer.len() && self.at == end
    }
    /// Reads on until so many bytes are there.
    pub(super) fn need(&mut self, file: &mut dyn File, end: u64, bytes: usize) -> Result<()> {
        if self.buffer.len() - self.used >= bytes {
            return Ok(());
        }
        self.buffer.drain(..self.used);
        self.used = 0;
        let have = self.buffer.len();
        let left = usize::try_from(end - self.at).unwrap_or(usize::MAX);
        let more = left.min(CHUNK.max(bytes - have));
        self.buffer.resize(have + more, 0);
        file.read(self.at, &mut self.buffer[have..])?;
        self.at += more as u64;
        if self.buffer.len() < bytes {
            document::bail!(INTERNAL_ERROR, "a spilled run ends within an entry");
        }
        Ok(())
    }
    /// A number of those bytes.
    pub(super) fn number(&self, from: usize) -> usize {
        number_at(&self.buffer[self.used..], from)
    }
    /// Takes some of those bytes.
    pub(super) fn take(&mut self, bytes: usize) -> &[u8] {
        self.used += bytes;
        &self.buffer[self.used - bytes..self.used]
    }
}

/// A u32 of what was read.
pub(super) fn number_at(bytes: &[u8], from: usize) -> usize {
    u32::from_le_bytes(bytes[from..from + 4].try_into().unwrap_or([0; 4])) as usize
}

/// Where the entries of a merge come from, each in order.
enum Input {
    Run(Run, Reading),
    Chunk(std::vec::IntoIter<Entry>),
}

impl Input {
    fn next(&mut self) -> Result<Option<Entry>> {
        match self {
            Input::Chunk(entries) => Ok(entries.next()),
            Input::Run(run, reading) if reading.is_done(run.bytes) => Ok(None),
            Input::Run(run, reading) => {
                reading.need(&mut *run.file, run.bytes, HEAD_BYTES)?;
                let (key, rest) = (reading.number(0), reading.number(4));
                reading.need(&mut *run.file, run.bytes, HEAD_BYTES + key + rest)?;
                let entry = reading.take(HEAD_BYTES + key + rest);
                let (key, rest) = entry[HEAD_BYTES..].split_at(key);
                Ok(Some((key.to_vec(), rest.to_vec())))
            }
        }
    }
}

/// Key, number of the input, bytes: the order of the merge.
struct Head(Vec<u8>, usize, Vec<u8>);
impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Head {}
impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Head {
    fn cmp(&self, other: &Head) -> std::cmp::Ordering {
        self.0.cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

/// The entries of several runs and chunks in order.
#[derive(Default)]
pub struct Merge {
    inputs: Vec<Input>,
    heads: BinaryHeap<Reverse<Head>>,
    /// How many entries may still be given, if there is a limit.
    left: Option<usize>,
}

impl Merge {
    /// What is in memory came last, and stands behind all runs.
    pub(super) fn new(runs: Vec<Run>, chunks: Vec<Vec<Entry>>) -> Result<Merge> {
        let runs = runs.into_iter().map(|run| Input::Run(run, Reading::default()));
        let chunks = chunks.into_iter().map(|c| Input::Chunk(c.into_iter()));
        let mut merge = Merge { inputs: runs.chain(chunks).collect(), ..Merge::default() };
        for i in 0..merge.inputs.len() {
            if let Some((key, bytes)) = merge.inputs[i].next()? {
                merge.heads.push(Reverse(Head(key, i, bytes)));
            }
        }
        Ok(merge)
    }
    /// The entry that comes next.
    pub fn peek(&self) -> Option<(&[u8], &[u8])> {
        self.heads.peek().map(|Reverse(head)| (head.0.as_slice(), head.2.as_slice()))
    }
    fn pull(&mut self) -> Result<Option<Entry>> {
        meter::spend(1 + self.inputs.len().ilog2() as usize)?;
        let Some(mut top) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse(Head(_, i, _)) = &*top;
        let i = *i;
        let Reverse(Head(key, _, bytes)) = match self.inputs[i].next()? {
            Some((key, bytes)) => std::mem::replace(&mut *top, Reverse(Head(key, i, bytes))),
            None => std::collections::binary_heap::PeekMut::pop(top),
        };
        Ok(Some((key, bytes)))
    }
}

impl Iterator for Merge {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        if self.inputs.is_empty() || self.left == Some(0) {
            return None;
        }
        self.left = self.left.map(|n| n - 1);
        self.pull().transpose()
    }
}

/// Collects entries and gives them back in order, by way of files where it must and may.
pub struct Sorter {
    space: Option<Arc<dyn Space>>,
    charge: Charge,
    /// How many of the first entries are wanted.
    limit: Option<usize>,
    /// With a limit: no entry from this key on can be among them.
    beyond: Option<Vec<u8>>,
    chunk: Vec<Entry>,
    chunks: Vec<Vec<Entry>>,
    entries: usize,
    runs: Option<Runs>,
    weigh: fn(&Entry) -> usize,
}

/// What an entry takes in memory.
fn bytes_of((key, bytes): &Entry) -> usize {
    key.len() + bytes.len() + ENTRY_BYTES
}

impl Sorter {
    /// Holds up to `bytes_max`; `limit`: how many of the first entries are wanted.
    pub fn new(settings: &Settings, kind: Kind, bytes_max: usize, limit: Option<usize>) -> Sorter {
        Sorter::with(settings.charge(bytes_max).counted_as(kind), settings.space(), limit)
    }
    /// The same without a pipeline.
    pub fn with(charge: Charge, space: Option<Arc<dyn Space>>, limit: Option<usize>) -> Sorter {
        let limit = limit.filter(|n| *n > 0);
        let (chunk, chunks) = (Vec::new(), Vec::new());
        Sorter { space, charge, limit, beyond: None, chunk, chunks, entries: 0, runs: None, weigh: bytes_of }
    }
    /// Has entries charged by `weigh` instead of by their bytes.
    pub fn weighing(self, weigh: fn(&Entry) -> usize) -> Sorter {
        Sorter { weigh, ..self }
    }
    /// Whether it holds more than it should, and has no disk.
    pub fn is_over(&self) -> bool {
        self.charge.is_over()
    }
    pub fn limit(&self) -> usize {
        self.charge.limit()
    }
    pub fn used(&self) -> Use {
        self.charge.used
    }

    /// # Errors
    /// The space's, and those of [`meter::spend`].
    pub fn push(&mut self, key: Vec<u8>, bytes: Vec<u8>) -> Result<()> {
        meter::spend(4)?;
        if self.beyond.as_ref().is_some_and(|b| key >= *b) {
            return Ok(());
        }
        let entry = (key, bytes);
        self.charge.add((self.weigh)(&entry));
        self.chunk.push(entry);
        self.entries += 1;
        if self.chunk.len() >= CHUNK_ENTRIES {
            self.sort_chunk()?;
            if self.limit.is_some_and(|limit| self.entries >= limit.saturating_mul(2)) {
                self.prune()?;
            }
        }
        if self.charge.is_over() {
            self.prune()?;
            if self.charge.is_over() && self.space.is_some() {
                self.spill()?;
            }
        }
        Ok(())
    }
    fn sort_chunk(&mut self) -> Result<()> {
        meter::spend(self.chunk.len() * 4)?;
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.sort_by(|a, b| a.0.cmp(&b.0));
        if !chunk.is_empty() {
            self.chunks.push(chunk);
        }
        Ok(())
    }
    /// Forgets what a limit leaves out.
    fn prune(&mut self) -> Result<()> {
        let Some(limit) = self.limit.filter(|limit| *limit < self.entries) else { return Ok(()) };
        self.sort_chunk()?;
        let first: Result<Vec<Entry>> =
            Merge::new(Vec::new(), std::mem::take(&mut self.chunks))?.take(limit).collect();
        let first = first?;
        self.beyond = first.last().map(|(key, _)| key.clone());
        self.entries = first.len();
        self.charge.set(first.iter().map(self.weigh).sum());
        self.chunks.push(first);
        Ok(())
    }
    /// Writes what is in memory as a run.
    fn spill(&mut self) -> Result<()> {
        let Some(space) = &self.space else { return Ok(()) };
        let runs = self.runs.take().unwrap_or_else(|| Runs::new(space.clone()));
        self.sort_chunk()?;
        let merged = Merge::new(Vec::new(), std::mem::take(&mut self.chunks))?;
        let stored = self.runs.insert(runs).write(merged.take(self.limit.unwrap_or(usize::MAX)))?;
        self.charge.spilled(stored);
        self.entries = 0;
        Ok(())
    }
    /// What was pushed, in order.
    ///
    /// # Errors
    /// The space's.
    pub fn finish(&mut self) -> Result<Merge> {
        self.sort_chunk()?;
        let chunks = std::mem::take(&mut self.chunks);
        let mut merge = match self.runs.take() {
            Some(runs) => runs.merge(chunks)?,
            None => Merge::new(Vec::new(), chunks)?,
        };
        merge.left = self.limit;
        Ok(merge)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Files in memory; counts those that are alive.
    #[derive(Debug, Default)]
    pub(crate) struct MemorySpace {
        pub(crate) alive: Arc<AtomicUsize>,
        pub(crate) made: AtomicUsize,
    }
    struct MemoryFile(Vec<u8>, Arc<AtomicUsize>);
    impl Space for MemorySpace {
        fn file(&self) -> Result<Box<dyn File>> {
            self.alive.fetch_add(1, Ordering::Relaxed);
            self.made.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(MemoryFile(Vec::new(), self.alive.clone())))
        }
    }
    impl File for MemoryFile {
        fn append(&mut self, bytes: &[u8]) -> Result<()> {
            self.0.extend_from_slice(bytes);
            Ok(())
        }
        fn read(&mut self, at: u64, out: &mut [u8]) -> Result<()> {
            out.copy_from_slice(&self.0[at as usize..at as usize + out.len()]);
            Ok(())
        }
    }
    impl Drop for MemoryFile {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn many_runs_come_back_in_order_equal_keys_as_they_were_put_in_and_their_files_go() {
        let space = Arc::new(MemorySpace::default());
        let mut stored = Stored::default();
        let mut runs = Runs::new(space.clone());
        let entry = |key: u8, n: i32| (vec![key], [&n.to_be_bytes()[..], &[0; 900]].concat());
        for n in 0..100 {
            let run = [0u8, 3, 3, 7].map(|k| Ok(entry(k.wrapping_add((n % 2) as u8), n)));
            stored = stored + runs.write(run.into_iter()).unwrap();
        }
        let all: Vec<Entry> = runs.merge(vec![vec![entry(3, 100)]]).unwrap().map(|e| e.unwrap()).collect();
        assert_eq!(all.len(), 401);
        let order: Vec<(u8, u8)> = all.iter().map(|(k, b)| (k[0], b[3])).collect();
        let mut sorted = order.clone();
        sorted.sort();
        assert_eq!(order, sorted);
        assert_eq!(space.alive.load(Ordering::Relaxed), 0);
        assert_eq!(stored.records, 400, "runs that are merged are stored anew");
    }

    #[test]
    fn a_sorter_gives_the_same_with_files_and_without_whole_and_limited() {
        let numbers: Vec<u32> = (0..20_000u32).map(|i| i.wrapping_mul(2_654_435_761) % 5000).collect();
        let mut expected: Vec<(u32, u32)> = numbers.iter().zip(0..).map(|(n, i)| (*n, i)).collect();
        expected.sort();
        for (bytes_max, spills) in [(usize::MAX, false), (200_000, true)] {
            for limit in [None, Some(10), Some(7000)] {
                let space = Arc::new(MemorySpace::default());
                let charge = Charge::new(&Default::default(), bytes_max);
                let mut sorter = Sorter::with(charge, Some(space.clone()), limit);
                for (n, i) in numbers.iter().zip(0u32..) {
                    sorter.push(n.to_be_bytes().to_vec(), i.to_be_bytes().to_vec()).unwrap();
                }
                let number = |b: &[u8]| u32::from_be_bytes(b.try_into().unwrap());
                let sorted: Vec<(u32, u32)> = sorter
                    .finish()
                    .unwrap()
                    .map(|e| e.map(|(k, b)| (number(&k), number(&b))).unwrap())
                    .collect();
                let wanted = limit.unwrap_or(usize::MAX).min(expected.len());
                assert_eq!(sorted, expected[..wanted]);
                let spilled = space.made.load(Ordering::Relaxed) > 0;
                assert_eq!(spilled, spills && limit != Some(10), "{limit:?}");
                assert_eq!(space.alive.load(Ordering::Relaxed), 0);
            }
        }
    }
}
