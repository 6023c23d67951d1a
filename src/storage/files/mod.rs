//! Files, behind a trait, so that a crash can be rehearsed.
//!
//! What storage may assume of a disk, and what [`SimulatedDisk`] therefore takes away when it crashes:
//!
//! - Bytes written are durable once [`File::sync`] of that file has returned; until then any subset of the written
//!   sectors may survive, and the last one may be torn in the middle.
//! - A name (create, rename, remove) is durable once [`Files::sync_dir`] of its directory has returned; until then
//!   the changes of names survive up to some point and not beyond.
//! - A rename inside one directory is atomic.
//! - After a failed `sync` nothing is known about the unsynced bytes, and a later `sync` that succeeds does not say
//!   that they were written: whoever sees a failed sync must stop writing.
//!
//! Three worlds implement it: [`RealFiles`] (the operating system), [`MemoryFiles`] (no durability; for a node without
//! a data directory) and [`SimulatedDisk`] (tests).

mod memory;
mod real;
mod simulated;
#[cfg(test)]
mod tests;

pub use memory::MemoryFiles;
pub use real::RealFiles;
pub use simulated::{CrashMode, Fault, SimulatedDisk};

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open file. All methods take `&self`: a file is shared between one writer and many readers.
pub trait File: Send + Sync {
    /// Reads up to `buffer.len()` bytes at `offset` and returns how many; fewer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`, extending the file where needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at the end of the file. Not atomic between several appenders.
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.write_at(bytes, self.len()?)
    }

    /// Makes everything written to this file so far durable, its length included.
    fn sync(&self) -> io::Result<()>;

    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends (with zeros) to `length` bytes.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Reserves space so that the file is at least `length` bytes long, the new bytes reading as zeros. Does not
    /// write the zeros where the file system can avoid it.
    fn preallocate(&self, length: u64) -> io::Result<()>;

    /// Reads exactly `buffer.len()` bytes at `offset`, or `UnexpectedEof`.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self.read_at(buffer, offset)? {
            n if n == buffer.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The whole content from `offset` to the end.
    fn read_to_end_at(&self, offset: u64) -> io::Result<Vec<u8>> {
        let length = self.len()?.saturating_sub(offset);
        let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let mut bytes = vec![0; length];
        let read = self.read_at(&mut bytes, offset)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}

/// Bytes of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    pub used: u64,
}

/// A file system.
pub trait Files: Send + Sync {
    /// Opens an existing file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Creates a file for reading and writing; an existing one is cut to nothing.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Creates a directory and its parents where missing.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Gives a file another name, atomically replacing what had that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the name of a file. Open handles keep working.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory with everything in it; a directory that does not exist is no error.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// The names (not paths) in a directory, sorted; those of directories included.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Whether a file or directory of that name exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Locks a file (created where missing) against every other opener, also inside this process, until the
    /// returned lock is dropped. Never waits.
    fn lock(&self, path: &Path) -> Result<FileLock, LockError>;

    /// What the file system of a directory holds. One that is not the system's has no bounds, and is shown as empty.
    fn space(&self, _dir: &Path) -> io::Result<Space> {
        Ok(Space::default())
    }

    /// The content of a whole file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.open(path)?.read_to_end_at(0)
    }

    /// Replaces a file by `bytes` so that after a crash it holds the old content or all of the new: written beside it,
    /// synced, renamed into place, the directory synced.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        let file = self.create(&beside)?;
        file.write_at(bytes, 0)?;
        file.sync()?;
        self.rename(&beside, path)?;
        self.sync_dir(path.parent().unwrap_or(Path::new(".")))
    }
}

/// A held lock; dropping it releases.
pub struct FileLock {
    _held: Box<dyn Send + Sync>,
}

impl FileLock {
    pub(crate) fn new(held: impl Send + Sync + 'static) -> Self {
        FileLock { _held: Box::new(held) }
    }
}

impl fmt::Debug for FileLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileLock")
    }
}

/// Why a lock was not given.
#[derive(Debug)]
pub enum LockError {
    /// Another process, or another node in this one, holds it (the real server's `DBPathInUse`, code 98).
    InUse(PathBuf),
    /// The lock file could not be opened or locked.
    Io(io::Error),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::InUse(path) => {
                write!(
                    f,
                    "Unable to lock the lock file: {}. Another mongod instance is already running on the data directory",
                    path.display()
                )
            }
            LockError::Io(error) => write!(f, "Unable to lock the lock file: {error}"),
        }
    }
}

impl std::error::Error for LockError {}
