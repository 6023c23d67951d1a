//! What can go wrong between memory and disk. A client never sees these: they end a start, or a checkpoint.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::LockError;
use crate::log::{LogError, Position};

/// Why a node's data could not be opened or a checkpoint not be written.
#[derive(Debug)]
pub enum StorageError {
    /// A file operation failed.
    Io {
        /// What was being done.
        operation: &'static str,
        /// To which file or directory.
        path: PathBuf,
        /// The operating system's words.
        error: io::Error,
    },
    /// A file holds what cannot be.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The log does not fit the data it is replayed on.
    Mismatch {
        /// The entry, by where its frame begins.
        position: Position,
        /// What does not fit.
        reason: String,
    },
    /// The log.
    Log(LogError),
    /// The directory's lock.
    Lock(LockError),
}

impl StorageError {
    /// Tells what was being done to which path.
    pub fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StorageError {
        let path = path.to_owned();
        move |error| StorageError::Io { operation, path, error }
    }
    pub(crate) fn corrupt(path: &Path, reason: impl Into<String>) -> StorageError {
        StorageError::Corrupt { path: path.to_owned(), reason: reason.into() }
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageError::Io { operation, path, error } => {
                write!(f, "storage: {operation} {} failed: {error}", path.display())
            }
            StorageError::Corrupt { path, reason } => {
                write!(f, "storage: {} is damaged: {reason}", path.display())
            }
            StorageError::Mismatch { position, reason } => {
                write!(f, "storage: the log entry at position {position} does not fit the data: {reason}")
            }
            StorageError::Log(error) => error.fmt(f),
            StorageError::Lock(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StorageError {}

impl From<LogError> for StorageError {
    fn from(error: LogError) -> StorageError {
        StorageError::Log(error)
    }
}
