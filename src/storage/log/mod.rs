//! The one log: write-ahead log, oplog, feed of change streams, history of retryable writes.
//!
//! # Positions
//!
//! A position is a byte offset in the endless stream of frames, segment heads not counted. A frame begins at its
//! `position` and ends at `position + FRAME_HEAD + length`, where the next begins: there are no holes. "Durable up to p"
//! means every frame that ends at or before p.
//!
//! # Files
//!
//! The stream is cut into segments, files named `log-<position of the first frame, 16 hex digits>.seg`. A frame never
//! spans two segments; one that is larger than a segment gets a segment of its own. All numbers are little-endian.
//!
//! Segment head, 64 bytes (`segment.rs`):
//!
//! | offset | size | |
//! |---|---|---|
//! | 0 | 8 | magic `TSSRALOG` |
//! | 8 | 4 | format version, 1 |
//! | 12 | 4 | `previous`: checksum of the last frame before this segment, 0 at the beginning of the stream |
//! | 16 | 8 | position of the first frame |
//! | 24 | 8 | `ts` of the first frame |
//! | 32 | 8 | `synced`: position known to be durable when the segment was created |
//! | 40 | 20 | zero |
//! | 60 | 4 | CRC-32C of bytes 0..60 |
//!
//! Frame, 56 bytes and the payload (`frame.rs`):
//!
//! | offset | size | |
//! |---|---|---|
//! | 0 | 4 | `length` of the payload |
//! | 4 | 1 | `class`: 1 oplog, 2 local |
//! | 5 | 3 | zero |
//! | 8 | 8 | `position` |
//! | 16 | 8 | `term`, signed |
//! | 24 | 8 | `ts`: seconds << 32 or increment, rising from frame to frame |
//! | 32 | 8 | `wall`: milliseconds since 1970, signed |
//! | 40 | 8 | `synced`: position that was durable when the batch of this frame was written |
//! | 48 | 4 | `previous`: checksum of the frame before |
//! | 52 | 4 | CRC-32C of bytes 0..52 and the payload |
//! | 56 | `length` | payload |
//!
//! A segment is preallocated in steps, so zeros may follow its last frame; when the next segment begins, and at a clean
//! shutdown, it is cut to its exact length.
//!
//! # Which frames are valid
//!
//! A frame is valid where it stands if its `position` is the position it stands at, its length lies inside the file and
//! below the maximum, its class is known, its `previous` is the checksum of the frame before, its `ts` is above that
//! frame's, and its checksum holds. The stream ends at the first frame E that is not valid. Then:
//!
//! - A *statement* is the `synced` of a segment head with a right checksum, or of a frame after E that is right in
//!   itself (position, length, class, checksum), or the position of the checkpoint from which replay starts.
//! - If a statement is above E, bytes that were durable have been damaged: opening refuses ([`LogError::Corrupt`]) and
//!   changes nothing.
//! - Otherwise E is where the last crash tore the tail, which nobody was told to be durable: everything from E is cut,
//!   and reported if it held anything but zeros.
//!
//! Because `previous` chains frames and the cut is made durable before anything is written after it, frames of a tail
//! that was cut can never be mistaken for the continuation of what replaced it.
//!
//! # Who does what
//!
//! An appender, under its latch, takes the short mutex of the *tail* (`tail.rs`), receives timestamp and position, and
//! copies its bytes into a chunk in memory. One thread (`writer.rs`) takes full and half-full chunks, fills in `synced`,
//! `previous` and the checksum, writes them to the segment and syncs: at once when somebody waits, otherwise after the
//! interval. Commits that arrive during a sync share the next one. Before taking latches a writer asks
//! [`Log::admit`], which waits while too much is unwritten; `append` itself neither waits nor fails.
//!
//! A segment is synced, and only then the next created, so a head's `synced` covers all before it. The name of a new
//! segment is made durable before the first frame in it is acknowledged.
//!
//! After a failed write or sync nothing is known about the unsynced bytes (see `files`), so the log is *failed* for good:
//! waiters get the error, nothing more is written, nothing more acknowledged.
//!
//! # The clock
//!
//! `ts` is the larger of the wall clock's second and the last one plus one. On opening it starts one second above both
//! the last frame and the wall clock: what was handed out without being appended (`reserve_ts`, lost unsynced tail) in
//! an earlier run lay at or below the wall clock's second of that run or directly above the frames. A persisted ceiling
//! would cost a sync at start or before handing out; a wall clock set back by more than the time since the last frame is
//! the one case this does not cover, and then only for times that were never written to the log.

mod clock;
mod frame;
mod reader;
mod recovery;
mod segment;
mod tail;
#[cfg(test)]
mod tests;
mod waiters;
mod writer;

pub use clock::{Clock, RealClock, SimulatedClock};
pub use frame::{Class, FRAME_HEAD, Frame, FrameRef, MAX_PAYLOAD};
pub use reader::{LogReader, ReverseReader};
pub use recovery::{RecoveryReport, TornTail};
pub use tail::Payload;

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::files::{Files, MemoryFiles};
use writer::Shared;

/// A place in the stream of frames; see the head of this file.
pub type Position = u64;

/// When a frame was made: a BSON timestamp value (seconds << 32 | increment) and the term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpTime {
    /// Timestamp value.
    pub ts: u64,
    /// Election term; -1 or 0 before the first.
    pub term: i64,
}

/// What an append hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Optime of the first entry.
    pub first: OpTime,
    /// Optime of the last entry.
    pub last: OpTime,
    /// Position of the first entry's frame.
    pub start: Position,
    /// End position: durable once `durable() >= position`.
    pub position: Position,
}

/// When the log is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPolicy {
    /// At once when somebody waits; what nobody waits for, at most `interval` after it was appended.
    Group {
        /// 100 ms in the real server.
        interval: Duration,
    },
    /// Never, except at shutdown: appended counts as durable.
    Never,
}

/// How a log is opened.
#[derive(Clone)]
pub struct LogOptions {
    /// Size at which a segment is full, in bytes.
    pub segment_bytes: u64,
    /// When to sync.
    pub sync: SyncPolicy,
    /// How many bytes [`Log::retention_position`] keeps.
    pub retain_bytes: u64,
    /// Nothing reaches `files`: the segments live in memory and are gone with the process.
    pub in_memory: bool,
    /// Above this many unwritten bytes [`Log::admit`] waits.
    pub buffer_bytes: u64,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            segment_bytes: 16 << 20,
            sync: SyncPolicy::Group { interval: Duration::from_millis(100) },
            retain_bytes: 1 << 30,
            in_memory: false,
            buffer_bytes: 64 << 20,
            clock: Arc::new(RealClock),
        }
    }
}

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// At the oldest frame kept.
    Start,
    /// At the frame that begins at this position, which must be a frame's beginning or the end.
    Position(Position),
    /// At the first frame whose `ts` is this or later.
    Ts(u64),
    /// After the newest frame.
    End,
}

/// What can go wrong in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogError {
    /// A file operation failed while opening, reading or cutting.
    Io {
        /// What was being done.
        operation: &'static str,
        /// To which file.
        path: PathBuf,
        /// The kind of the error.
        kind: io::ErrorKind,
        /// The operating system's words.
        message: String,
    },
    /// Durable bytes are damaged or missing.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where the stream breaks.
        position: Position,
        /// What is wrong.
        reason: String,
    },
    /// A write or sync failed earlier; the log takes no more.
    Failed(String),
    /// The asked position is no longer kept.
    PositionLost {
        /// What was asked for.
        asked: Position,
        /// The oldest position kept.
        first: Position,
    },
    /// The asked position was cut off by `truncate_after`, or never existed.
    Truncated {
        /// What was asked for.
        asked: Position,
        /// The end of the log.
        end: Position,
    },
    /// An entry is larger than [`MAX_PAYLOAD`].
    TooLarge(u64),
    /// The log was shut down.
    Closed,
    /// The caller's replay function refused a frame.
    Replay(String),
}

impl LogError {
    pub(crate) fn io(operation: &'static str, path: &Path, error: &io::Error) -> Self {
        LogError::Io { operation, path: path.to_owned(), kind: error.kind(), message: error.to_string() }
    }

    pub(crate) fn corrupt(path: &Path, position: Position, reason: impl Into<String>) -> Self {
        LogError::Corrupt { path: path.to_owned(), position, reason: reason.into() }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Io { operation, path, message, .. } => {
                write!(f, "log: {operation} {} failed: {message}", path.display())
            }
            LogError::Corrupt { path, position, reason } => {
                write!(f, "log: {} is damaged at position {position}: {reason}", path.display())
            }
            LogError::Failed(reason) => write!(f, "log: no write is acknowledged after a failure: {reason}"),
            LogError::PositionLost { asked, first } => {
                write!(f, "log: position {asked} is no longer kept, the oldest is {first}")
            }
            LogError::Truncated { asked, end } => {
                write!(f, "log: position {asked} is not in the log, which ends at {end}")
            }
            LogError::TooLarge(bytes) => {
                write!(f, "log: an entry of {bytes} bytes is larger than the maximum of {MAX_PAYLOAD}")
            }
            LogError::Closed => f.write_str("log: closed"),
            LogError::Replay(reason) => write!(f, "log: replay failed: {reason}"),
        }
    }
}

impl std::error::Error for LogError {}

/// An open log. Shared by reference or in an `Arc`; dropping it shuts it down.
pub struct Log {
    shared: Arc<Shared>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Log {
    /// Opens the log in `dir`, which is created where missing. Every frame from `start_at` (the checkpoint's position;
    /// `None`: the oldest) is given to `replay` in order. Refuses damaged logs; cuts a torn tail.
    pub fn open(
        files: Arc<dyn Files>,
        dir: &Path,
        options: LogOptions,
        start_at: Option<Position>,
        replay: &mut dyn FnMut(&FrameRef<'_>) -> Result<(), LogError>,
    ) -> Result<(Log, RecoveryReport), LogError> {
        let files: Arc<dyn Files> = if options.in_memory { Arc::new(MemoryFiles::default()) } else { files };
        let _ = (files, dir, start_at, replay);
        todo!()
    }

    /// Appends one frame for each entry, a payload being the concatenation of its slices, with consecutive timestamps.
    /// Neither waits nor fails; payloads above [`MAX_PAYLOAD`] must have been refused by [`admit`](Self::admit).
    pub fn append(&self, class: Class, entries: &[&[&[u8]]]) -> Appended {
        let _ = (class, entries);
        todo!()
    }

    /// Appends `n` frames whose payloads `write` produces, given the index and the timestamp of each. `write` runs
    /// under the log's mutex: it copies bytes and nothing else.
    pub fn append_with(
        &self,
        class: Class,
        n: usize,
        write: impl FnMut(usize, u64, &mut Payload<'_>),
    ) -> Appended {
        let _ = (class, n, write);
        todo!()
    }

    /// Waits while too many bytes are unwritten. To be asked, before any latch is taken, with the size of the largest
    /// entry; an error means that the write must be refused.
    pub async fn admit(&self, bytes: u64) -> Result<(), LogError> {
        let _ = bytes;
        poll_fn(|_| todo!()).await
    }

    /// [`admit`](Self::admit) for a thread that may block.
    pub fn admit_blocking(&self, bytes: u64) -> Result<(), LogError> {
        let _ = bytes;
        todo!()
    }

    /// Position up to which the log is durable (under [`SyncPolicy::Never`]: appended).
    pub fn durable(&self) -> Position {
        todo!()
    }

    /// Position up to which the log is appended.
    pub fn appended(&self) -> Position {
        todo!()
    }

    /// Waits until the log is durable up to `position`, asking for a sync at once.
    pub async fn wait_durable(&self, position: Position) -> Result<(), LogError> {
        let _ = position;
        poll_fn(|_| todo!()).await
    }

    /// Waits until the log is durable up to `position` without asking for a sync (tailing readers of durable frames).
    pub async fn wait_durable_passive(&self, position: Position) -> Result<(), LogError> {
        let _ = position;
        poll_fn(|_| todo!()).await
    }

    /// [`wait_durable`](Self::wait_durable) for a thread that may block.
    pub fn wait_durable_blocking(&self, position: Position) -> Result<(), LogError> {
        let _ = position;
        todo!()
    }

    /// Waits until something is appended after `position` (tailing cursors).
    pub async fn wait_appended(&self, position: Position) -> Result<(), LogError> {
        let _ = position;
        poll_fn(|_| todo!()).await
    }

    /// Whether the log still works.
    pub fn health(&self) -> Result<(), LogError> {
        todo!()
    }

    /// Optime of the newest frame of class oplog; zero where there is none.
    pub fn last_optime(&self) -> OpTime {
        todo!()
    }

    /// Wall time of the newest frame of class oplog, milliseconds.
    pub fn last_wall(&self) -> i64 {
        todo!()
    }

    /// Optime of the newest durable frame of class oplog.
    pub fn durable_optime(&self) -> OpTime {
        todo!()
    }

    /// Wall time of the newest durable frame of class oplog, milliseconds.
    pub fn durable_wall(&self) -> i64 {
        todo!()
    }

    /// Lets every later timestamp be above `ts`.
    pub fn advance_clock(&self, ts: u64) {
        let _ = ts;
        todo!()
    }

    /// A fresh timestamp without an entry, above all handed out before.
    pub fn reserve_ts(&self) -> u64 {
        todo!()
    }

    /// The newest timestamp handed out or advanced to.
    pub fn last_ts(&self) -> u64 {
        todo!()
    }

    /// The term given to frames.
    pub fn term(&self) -> i64 {
        todo!()
    }

    /// Sets the term of frames appended from now on.
    pub fn set_term(&self, term: i64) {
        let _ = term;
        todo!()
    }

    /// A reader of frames, appended ones included, from `from` on.
    pub fn reader(&self, from: ReadFrom) -> Result<LogReader, LogError> {
        let _ = from;
        todo!()
    }

    /// A reader backwards, newest first, of the frames that end at or before `from` (`None`: the end).
    pub fn reverse_reader(&self, from: Option<Position>) -> Result<ReverseReader, LogError> {
        let _ = from;
        todo!()
    }

    /// The newest frame, of a class where one is given.
    pub fn last_frame(&self, class: Option<Class>) -> Result<Option<Frame>, LogError> {
        let _ = class;
        todo!()
    }

    /// Removes whole segments that end at or before `position`.
    pub fn truncate_before(&self, position: Position) -> Result<(), LogError> {
        let _ = position;
        todo!()
    }

    /// Cuts everything from `position` (the end of the last frame to keep) on. The caller keeps appenders out. The clock
    /// does not go back. Waiters get [`LogError::Truncated`].
    pub fn truncate_after(&self, position: Position) -> Result<(), LogError> {
        let _ = position;
        todo!()
    }

    /// Position of the oldest frame kept.
    pub fn first_position(&self) -> Position {
        todo!()
    }

    /// Timestamp of the oldest frame kept.
    pub fn first_ts(&self) -> Option<u64> {
        todo!()
    }

    /// Bytes of frames kept.
    pub fn bytes(&self) -> u64 {
        todo!()
    }

    /// The position that [`truncate_before`](Self::truncate_before) may be given so that `retain_bytes` are kept.
    pub fn retention_position(&self) -> Position {
        todo!()
    }

    /// Writes and syncs everything, and ends the log's thread. Later appends are lost.
    pub fn shutdown(&self) -> Result<(), LogError> {
        todo!()
    }
}
