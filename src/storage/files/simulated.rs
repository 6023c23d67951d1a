//! A disk that can lose power.
//!
//! Every file has two images: *live*, what a running process reads back, and *durable*, what is on the platter. Between
//! them stands the list of changes since the last `sync`. Names have the same two images, per directory, with the list
//! of changes since the last `sync_dir`. [`SimulatedDisk::crash`] builds new live images from the durable ones and what
//! the [`CrashMode`] lets through, makes every open handle fail, and releases every lock; the test then reopens.
//!
//! Operations that change something (create, write, set_len, preallocate, sync, sync_dir, rename, remove) are numbered
//! from 0; a [`Fault`] strikes at a number. A power failure strikes *after* the bytes of a write reached the disk's
//! cache, so that the write may survive torn.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{File, FileLock, Files, LockError};

const SECTOR: usize = 512;

/// What a crash lets through of the changes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashMode {
    /// Nothing: the strictest disk that keeps its promises.
    DropUnsynced,
    /// Any subset of the unsynced sectors, the last of each write torn at any byte; names up to some change.
    Torn {
        /// Decides which; the same seed gives the same disk.
        seed: u64,
    },
    /// Everything: the process was killed, the machine was not. What was not synced stays in the machine's cache, from
    /// which the next crash may still take it.
    KeepAll,
}

/// What goes wrong at an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// This operation and all after it fail, as if the process had ended there.
    PowerOff,
    /// The operation, if it is a sync, fails, and as on Linux the bytes are then taken for clean: a later sync succeeds
    /// without having written them. Any other operation fails with an I/O error.
    SyncFails,
    /// The operation fails with `StorageFull` and changes nothing.
    NoSpace,
}

/// A simulated file system; clones share it.
#[derive(Clone, Default)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    name_changes: Vec<NameChange>,
    dirs: BTreeSet<PathBuf>,
    locks: BTreeSet<PathBuf>,
    generation: u64,
    operations: u64,
    reads: u64,
    fault: Option<(u64, Fault)>,
    off: bool,
    ignore_syncs: bool,
    ignore_dir_syncs: bool,
}

#[derive(Default)]
struct Inode {
    live: Vec<u8>,
    durable: Vec<u8>,
    changes: Vec<Change>,
}

enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

/// Sets or removes the inode of one name.
#[derive(Clone)]
struct NameChange {
    path: PathBuf,
    inode: Option<u64>,
    /// The second half of a rename survives exactly when the first does.
    with_previous: bool,
}

impl Inode {
    fn write(image: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
        if image.len() < offset + bytes.len() {
            image.resize(offset + bytes.len(), 0);
        }
        image[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn change(&mut self, change: Change) {
        match &change {
            Change::Write { offset, bytes } => Self::write(&mut self.live, *offset, bytes),
            Change::Length(length) => self.live.resize(*length, 0),
        }
        self.changes.push(change);
    }

    fn sync(&mut self) {
        self.durable.clone_from(&self.live);
        self.changes.clear();
    }

    fn crash(&mut self, mode: CrashMode, random: &mut Random) {
        match mode {
            CrashMode::DropUnsynced => {}
            CrashMode::KeepAll => return,
            CrashMode::Torn { .. } => {
                for change in std::mem::take(&mut self.changes) {
                    match change {
                        Change::Length(length) if random.coin() => self.durable.resize(length, 0),
                        Change::Length(_) => {}
                        Change::Write { offset, bytes } => self.tear(offset, &bytes, random),
                    }
                }
            }
        }
        self.changes.clear();
        self.live.clone_from(&self.durable);
    }

    fn tear(&mut self, offset: usize, bytes: &[u8], random: &mut Random) {
        let mut at = 0;
        while at < bytes.len() {
            let end = ((offset + at) / SECTOR * SECTOR + SECTOR - offset).min(bytes.len());
            if random.coin() {
                let torn = end == bytes.len() && random.coin();
                let end = if torn { at + random.below(end - at + 1) } else { end };
                Self::write(&mut self.durable, offset + at, &bytes[at..end]);
            }
            at = end;
        }
    }
}

/// A xorshift generator: the same seed gives the same crash.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn coin(&mut self) -> bool {
        self.next() >> 33 & 1 == 1
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n.max(1)
    }
}

impl SimulatedDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many changing operations were begun.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// How often a file was read.
    pub fn reads(&self) -> u64 {
        self.state.lock().reads
    }

    /// Lets `fault` strike at the operation with this number (see [`operations`](Self::operations)).
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        self.state.lock().fault = Some((operation, fault));
    }

    /// From now on `File::sync` reports success and does nothing: what a forgotten sync amounts to.
    pub fn ignore_syncs(&self, ignore: bool) {
        self.state.lock().ignore_syncs = ignore;
    }

    /// From now on `sync_dir` reports success and does nothing.
    pub fn ignore_dir_syncs(&self, ignore: bool) {
        self.state.lock().ignore_dir_syncs = ignore;
    }

    /// Loses power: see the head of this file. Faults are cleared.
    pub fn crash(&self, mode: CrashMode) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let seed = if let CrashMode::Torn { seed } = mode { seed } else { 0 };
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        if mode != CrashMode::KeepAll {
            state.lose_power(mode, &mut random);
        }
        state.locks.clear();
        state.generation += 1;
        state.fault = None;
        state.off = false;
    }

    /// Damages one byte of a file in both images, as a failing medium would.
    pub fn corrupt(&self, path: &Path, offset: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let inode = state.inode_of(path)?;
        let at = usize::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        for image in [&mut inode.live, &mut inode.durable] {
            if let Some(byte) = image.get_mut(at) {
                *byte ^= 0x5A;
            }
        }
        Ok(())
    }
}

fn apply(names: &mut BTreeMap<PathBuf, u64>, change: &NameChange) {
    match change.inode {
        Some(inode) => names.insert(change.path.clone(), inode),
        None => names.remove(&change.path),
    };
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{}: no such file", path.display()))
}

fn powered_off() -> io::Error {
    io::Error::other("the simulated disk has lost power")
}

impl State {
    fn lose_power(&mut self, mode: CrashMode, random: &mut Random) {
        let changes = std::mem::take(&mut self.name_changes);
        let surviving = match mode {
            CrashMode::Torn { .. } => random.below(changes.len() + 1),
            _ => 0,
        };
        for (at, change) in changes.into_iter().enumerate() {
            if at < surviving || (change.with_previous && at == surviving && at > 0) {
                apply(&mut self.durable_names, &change);
            }
        }
        self.names.clone_from(&self.durable_names);
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        self.inodes.retain(|inode, _| named.contains(inode));
        for inode in self.inodes.values_mut() {
            inode.crash(mode, random);
        }
    }

    fn alive(&self) -> io::Result<()> {
        if self.off { Err(powered_off()) } else { Ok(()) }
    }

    /// Numbers a changing operation; answers the fault that strikes it.
    fn begin(&mut self) -> io::Result<Option<Fault>> {
        self.alive()?;
        let number = self.operations;
        self.operations += 1;
        match self.fault {
            Some((at, Fault::PowerOff)) if number >= at => {
                self.off = true;
                Ok(Some(Fault::PowerOff))
            }
            Some((at, Fault::NoSpace)) if number == at => Err(io::ErrorKind::StorageFull.into()),
            Some((at, fault)) if number == at => Ok(Some(fault)),
            _ => Ok(None),
        }
    }

    fn inode_of(&mut self, path: &Path) -> io::Result<&mut Inode> {
        let inode = *self.names.get(path).ok_or_else(|| not_found(path))?;
        self.inodes.get_mut(&inode).ok_or_else(|| not_found(path))
    }

    fn change_names(&mut self, changes: Vec<NameChange>) {
        for change in changes {
            apply(&mut self.names, &change);
            self.name_changes.push(change);
        }
    }
}

/// Turns what struck an operation that was nevertheless performed in the cache into its result.
fn outcome(fault: Option<Fault>) -> io::Result<()> {
    match fault {
        None => Ok(()),
        Some(Fault::PowerOff) => Err(powered_off()),
        Some(_) => Err(io::Error::other("the simulated disk failed this operation")),
    }
}

struct SimulatedFile {
    state: Arc<Mutex<State>>,
    inode: u64,
    generation: u64,
}

impl SimulatedFile {
    fn with<T>(&self, f: impl FnOnce(&mut State, u64) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state.lock();
        if state.generation != self.generation {
            return Err(powered_off());
        }
        f(&mut state, self.inode)
    }

    fn change(&self, change: Change) -> io::Result<()> {
        self.with(|state, inode| {
            let fault = state.begin()?;
            if fault != Some(Fault::SyncFails)
                && let Some(inode) = state.inodes.get_mut(&inode)
            {
                inode.change(change);
            }
            outcome(fault)
        })
    }
}

fn index(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput.into())
}

impl File for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|state, inode| {
            state.alive()?;
            state.reads += 1;
            let Some(inode) = state.inodes.get(&inode) else { return Ok(0) };
            let from = index(offset)?.min(inode.live.len());
            let n = buffer.len().min(inode.live.len() - from);
            buffer[..n].copy_from_slice(&inode.live[from..from + n]);
            Ok(n)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change(Change::Write { offset: index(offset)?, bytes: bytes.to_vec() })
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|state, inode| {
            let fault = state.begin()?;
            let ignore = state.ignore_syncs;
            if let Some(inode) = state.inodes.get_mut(&inode) {
                match fault {
                    None if !ignore => inode.sync(),
                    Some(Fault::SyncFails) => inode.changes.clear(),
                    _ => {}
                }
            }
            outcome(fault)
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.with(|state, inode| Ok(state.inodes.get(&inode).map_or(0, |inode| inode.live.len() as u64)))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.change(Change::Length(index(length)?))
    }

    fn preallocate(&self, length: u64) -> io::Result<()> {
        if self.len()? >= length {
            return Ok(());
        }
        self.change(Change::Length(index(length)?))
    }
}

impl SimulatedDisk {
    fn handle(&self, state: &State, inode: u64) -> Arc<dyn File> {
        Arc::new(SimulatedFile { state: Arc::clone(&self.state), inode, generation: state.generation })
    }

    fn rename_names(state: &mut State, changes: Vec<NameChange>) -> io::Result<()> {
        let fault = state.begin()?;
        if fault != Some(Fault::SyncFails) {
            state.change_names(changes);
        }
        outcome(fault)
    }
}

impl Files for SimulatedDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let state = self.state.lock();
        state.alive()?;
        let inode = *state.names.get(path).ok_or_else(|| not_found(path))?;
        Ok(self.handle(&state, inode))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        if let Some(&inode) = state.names.get(path) {
            let fault = state.begin()?;
            if let Some(inode) = state.inodes.get_mut(&inode) {
                inode.change(Change::Length(0));
            }
            outcome(fault)?;
            return Ok(self.handle(&state, inode));
        }
        let inode = state.next_inode;
        state.next_inode += 1;
        state.inodes.insert(inode, Inode::default());
        let change = NameChange { path: path.to_owned(), inode: Some(inode), with_previous: false };
        Self::rename_names(&mut state, vec![change])?;
        Ok(self.handle(&state, inode))
    }

    // Directories are taken for durable at once: they are made when a data directory is first opened, before anything
    // in them could be acknowledged.
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.alive()?;
        state.dirs.extend(path.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let inode = *state.names.get(from).ok_or_else(|| not_found(from))?;
        let changes = vec![
            NameChange { path: to.to_owned(), inode: Some(inode), with_previous: false },
            NameChange { path: from.to_owned(), inode: None, with_previous: true },
        ];
        Self::rename_names(&mut state, changes)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        if !state.names.contains_key(path) {
            return Err(not_found(path));
        }
        Self::rename_names(
            &mut state,
            vec![NameChange { path: path.to_owned(), inode: None, with_previous: false }],
        )
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let under: Vec<PathBuf> = state.names.keys().filter(|name| name.starts_with(path)).cloned().collect();
        for path in under {
            Self::rename_names(&mut state, vec![NameChange { path, inode: None, with_previous: false }])?;
        }
        state.dirs.retain(|dir| !dir.starts_with(path));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        state.alive()?;
        let all = state.names.keys().chain(state.dirs.iter());
        let children = all.filter(|path| path.parent() == Some(dir)).filter_map(|path| path.file_name());
        let unique: BTreeSet<String> = children.map(|name| name.to_string_lossy().into_owned()).collect();
        Ok(unique.into_iter().collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state.lock();
        state.alive()?;
        Ok(state.names.contains_key(path) || state.dirs.contains(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let fault = state.begin()?;
        if fault.is_none() && !state.ignore_dir_syncs {
            let state = &mut *state;
            let in_dir = |change: &NameChange| change.path.parent() == Some(dir);
            for change in state.name_changes.iter().filter(|change| in_dir(change)) {
                apply(&mut state.durable_names, change);
            }
            state.name_changes.retain(|change| !in_dir(change));
        }
        outcome(fault)
    }

    fn lock(&self, path: &Path) -> Result<FileLock, LockError> {
        let mut state = self.state.lock();
        state.alive().map_err(LockError::Io)?;
        if !state.locks.insert(path.to_owned()) {
            return Err(LockError::InUse(path.to_owned()));
        }
        let generation = state.generation;
        Ok(FileLock::new(SimulatedLock { state: Arc::clone(&self.state), path: path.to_owned(), generation }))
    }
}

struct SimulatedLock {
    state: Arc<Mutex<State>>,
    path: PathBuf,
    generation: u64,
}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if state.generation == self.generation {
            state.locks.remove(&self.path);
        }
    }
}
