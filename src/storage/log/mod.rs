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
//! | 24 | 8 | `ts`: seconds << 32 or increment, rising from frame to frame; class local repeats the one before |
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
//! frame's (or, in class local, the same), and its checksum holds. The stream ends at the first frame E that is not valid. Then:
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
mod cut;
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
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;

use crate::files::{Files, MemoryFiles};
use tail::Tail;
use waiters::block_on;
use writer::{Shared, Writer};

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
    /// The wall clock's milliseconds that the entries carry.
    pub wall: i64,
}

/// When the log is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPolicy {
    /// At once when somebody waits; what nobody waits for, at most `interval` after it was appended.
    Group {
        /// 100 ms in the real server.
        interval: Duration,
    },
    /// Never: appended counts as durable. The bytes are handed to the files now and then, and at shutdown.
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
    /// How long it keeps frames even if they are more.
    pub retain_ms: u64,
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
            retain_ms: 0,
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
    /// None in a simulation, where a task makes the rounds.
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Log {
    /// Opens the log in `dir`, which is created where missing. Every frame from `start_at` (the checkpoint's position;
    /// `None`: the oldest) is given to `replay` in order. Refuses damaged logs; cuts a torn tail. What is found is
    /// durable when this returns. The caller then raises the term.
    pub fn open(
        files: Arc<dyn Files>,
        dir: &Path,
        options: LogOptions,
        start_at: Option<Position>,
        replay: &mut dyn FnMut(&FrameRef<'_>) -> Result<(), LogError>,
    ) -> Result<(Log, RecoveryReport), LogError> {
        let files: Arc<dyn Files> = if options.in_memory { Arc::new(MemoryFiles::default()) } else { files };
        let found = recovery::recover(&*files, dir, start_at, replay)?;
        let clock_start = clock_start(found.ts_bound, options.clock.now_millis());
        let newest = found.newest.unwrap_or_default();
        let mut writer = Writer::new(found.end, found.checksum, newest);
        writer.current = found.segments.last().cloned();
        if let Some(current) = &writer.current {
            let length = current.file.len();
            writer.allocated = length.map_err(|error| LogError::io("read", &current.path, &error))?;
        }
        let tail = Tail::new(found.end, clock_start - 1, found.ts_bound, found.last.term, newest);
        let shared = Shared::new(files, dir.to_owned(), options, found.segments, writer, tail);
        let shared = Arc::new(shared);
        shared.settle(found.unsure)?;
        if found.newest.is_none() {
            shared.find_newest()?;
        }
        let report = RecoveryReport {
            first_position: shared.first_position(),
            end_position: found.end,
            frames_replayed: found.replayed,
            torn: found.torn,
            last_optime: found.last,
            clock_start,
        };
        let thread = if runtime::simulation::is_running() {
            drop(runtime::spawn(shared.clone().run_as_task()));
            None
        } else {
            Some(start_thread(&shared)?)
        };
        Ok((Log { shared, thread: Mutex::new(thread) }, report))
    }

    /// Appends one frame for each entry, a payload being the concatenation of its slices, with consecutive timestamps.
    /// Neither waits nor fails; payloads above [`MAX_PAYLOAD`] must have been refused by [`admit`](Self::admit).
    pub fn append(&self, class: Class, entries: &[&[&[u8]]]) -> Appended {
        let size = |i: usize| entries[i].iter().map(|slice| slice.len()).sum();
        self.push(class, entries.len(), size, |i, _, payload| {
            entries[i].iter().for_each(|slice| payload.extend(slice));
        })
    }

    /// Appends `n` frames whose payloads `write` produces, given the index and the timestamp of each. `write` runs
    /// under the log's mutex: it copies bytes and nothing else; a panic in it aborts the process.
    pub fn append_with(
        &self,
        class: Class,
        n: usize,
        write: impl FnMut(usize, u64, &mut Payload<'_>),
    ) -> Appended {
        self.push(class, n, |_| 1024, write)
    }

    /// Appends one entry of another member's log with the time and term it has there, which must be above those of the
    /// newest frame here. The clock moves on to that time.
    pub fn append_at(&self, class: Class, optime: OpTime, wall: i64, payload: &[&[u8]]) -> Appended {
        let size = payload.iter().map(|slice| slice.len()).sum();
        let appended = {
            let mut tail = self.shared.tail.lock();
            let appended = tail.append_at(class, optime, wall, size, |out| {
                payload.iter().for_each(|slice| out.extend(slice));
            });
            self.shared.appended.store(appended.position, Ordering::SeqCst);
            appended
        };
        self.shared.announce(appended.position);
        appended
    }

    fn push(
        &self,
        class: Class,
        n: usize,
        size: impl Fn(usize) -> usize,
        write: impl FnMut(usize, u64, &mut Payload<'_>),
    ) -> Appended {
        let wall = self.shared.options.clock.now_millis();
        let appended = {
            let mut tail = self.shared.tail.lock();
            let appended = tail.append(class, wall, n, size, write);
            self.shared.appended.store(appended.position, Ordering::SeqCst);
            appended
        };
        self.shared.announce(appended.position);
        appended
    }

    /// Waits while too many bytes are unwritten. To be asked, before any latch is taken, with the size of the largest
    /// entry; an error means that the write must be refused.
    pub async fn admit(&self, bytes: u64) -> Result<(), LogError> {
        let shared = &*self.shared;
        if bytes > MAX_PAYLOAD {
            return Err(LogError::TooLarge(bytes));
        }
        let enough = self.appended().saturating_sub(shared.options.buffer_bytes);
        let check = || {
            let health = shared.health().and_then(|()| shared.open());
            let written = shared.written.load(Ordering::SeqCst);
            (health.is_err() || written >= enough).then_some(health)
        };
        shared.written_waiters.wait(enough, check).await
    }

    /// [`admit`](Self::admit) for a thread that may block.
    pub fn admit_blocking(&self, bytes: u64) -> Result<(), LogError> {
        let unwritten = self.appended().saturating_sub(self.shared.written.load(Ordering::SeqCst));
        if unwritten <= self.shared.options.buffer_bytes && bytes <= MAX_PAYLOAD {
            return self.health();
        }
        if runtime::simulation::is_running() {
            self.shared.sync_here()?;
        }
        block_on(self.admit(bytes))
    }

    /// Position up to which the log is durable (under [`SyncPolicy::Never`]: appended).
    pub fn durable(&self) -> Position {
        self.shared.durable()
    }

    /// Position up to which the log is appended.
    pub fn appended(&self) -> Position {
        self.shared.appended.load(Ordering::SeqCst)
    }

    /// Waits until the log is durable up to `position`, asking for a sync at once.
    pub async fn wait_durable(&self, position: Position) -> Result<(), LogError> {
        if !self.shared.never_syncs() && self.shared.durable() < position {
            self.shared.request(position);
        }
        self.wait_durable_passive(position).await
    }

    /// Waits until the log is durable up to `position` without asking for a sync (tailing readers of durable frames).
    pub async fn wait_durable_passive(&self, position: Position) -> Result<(), LogError> {
        let shared = &*self.shared;
        let epoch = shared.epoch.load(Ordering::SeqCst);
        let check = || shared.durable_answer(position, epoch);
        shared.durable_waiters.wait(position, check).await
    }

    /// [`wait_durable`](Self::wait_durable) for a thread that may block.
    pub fn wait_durable_blocking(&self, position: Position) -> Result<(), LogError> {
        if runtime::simulation::is_running() {
            self.shared.sync_here()?;
        }
        block_on(self.wait_durable(position))
    }

    /// Waits until something is appended after `position` (tailing cursors).
    pub async fn wait_appended(&self, position: Position) -> Result<(), LogError> {
        let shared = &*self.shared;
        let epoch = shared.epoch.load(Ordering::SeqCst);
        let check = || match shared.lowest_cut_since(epoch) {
            Some(end) if end < position => Some(Err(LogError::Truncated { asked: position, end })),
            _ if shared.appended.load(Ordering::SeqCst) > position => Some(Ok(())),
            _ => shared.open().err().map(Err),
        };
        shared.appended_waiters.wait(position.saturating_add(1), check).await
    }

    /// Whether the log still works: an error after a failed write or sync, or after shutdown.
    pub fn health(&self) -> Result<(), LogError> {
        self.shared.health().and_then(|()| self.shared.open())
    }

    /// Returns once a write or sync has failed, with what failed.
    pub async fn wait_failed(&self) -> LogError {
        let shared = &*self.shared;
        shared.failure_waiters.wait(u64::MAX, || shared.health().err()).await
    }

    /// Whether a write or sync has failed: nothing since may be told to anybody.
    pub fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::SeqCst)
    }

    /// Optime of the newest frame of class oplog; zero where there is none.
    pub fn last_optime(&self) -> OpTime {
        self.shared.tail.lock().newest.optime
    }

    /// Wall time of the newest frame of class oplog, milliseconds.
    pub fn last_wall(&self) -> i64 {
        self.shared.tail.lock().newest.wall
    }

    /// Optime of the newest durable frame of class oplog.
    pub fn durable_optime(&self) -> OpTime {
        self.shared.durable_stamp().optime
    }

    /// Wall time of the newest durable frame of class oplog, milliseconds.
    pub fn durable_wall(&self) -> i64 {
        self.shared.durable_stamp().wall
    }

    /// Lets every later timestamp be above `ts`. Whether a time that came from elsewhere is plausible is for the caller to
    /// judge; one in the last seconds that can be written is taken for the one before, so that the clock cannot overflow.
    pub fn advance_clock(&self, ts: u64) {
        const LATEST: u64 = u64::MAX - (1 << 40);
        if self.last_ts() >= ts {
            return;
        }
        let tail = self.shared.tail.lock();
        tail.last_ts.fetch_max(ts.min(LATEST), Ordering::Release);
    }

    /// A fresh timestamp without an entry, above all handed out before.
    pub fn reserve_ts(&self) -> u64 {
        let wall = self.shared.options.clock.now_millis();
        self.shared.tail.lock().next_ts(wall)
    }

    /// The newest timestamp handed out or advanced to.
    pub fn last_ts(&self) -> u64 {
        self.shared.last_ts.load(Ordering::Acquire)
    }

    /// The term given to frames.
    pub fn term(&self) -> i64 {
        self.shared.tail.lock().term
    }

    /// Sets the term of frames appended from now on.
    pub fn set_term(&self, term: i64) {
        self.shared.tail.lock().term = term;
    }

    /// A reader of frames, appended ones included, from `from` on.
    pub fn reader(&self, from: ReadFrom) -> Result<LogReader, LogError> {
        LogReader::open(&self.shared, from)
    }

    /// A reader backwards, newest first, of the frames that end at or before `from` (`None`: the end).
    pub fn reverse_reader(&self, from: Option<Position>) -> Result<ReverseReader, LogError> {
        ReverseReader::open(&self.shared, from)
    }

    /// The newest frame, of a class where one is given.
    pub fn last_frame(&self, class: Option<Class>) -> Result<Option<Frame>, LogError> {
        let mut reader = self.reverse_reader(None)?;
        while let Some(frame) = reader.next()? {
            if class.is_none_or(|class| class == frame.class) {
                return Ok(Some(frame.to_owned()));
            }
        }
        Ok(None)
    }

    /// Removes whole segments that end at or before `position`, but never one whose successor is not durable.
    pub fn truncate_before(&self, position: Position) -> Result<(), LogError> {
        cut::truncate_before(&self.shared, position)
    }

    /// Cuts everything from `position` (the end of the last frame to keep) on. The caller keeps appenders out. The clock
    /// does not go back. Waiters for what was cut get [`LogError::Truncated`], and so do readers beyond it.
    pub fn truncate_after(&self, position: Position) -> Result<(), LogError> {
        cut::truncate_after(&self.shared, position)
    }

    /// Position of the oldest frame kept.
    pub fn first_position(&self) -> Position {
        self.shared.first_position()
    }

    /// Timestamp of the oldest frame kept; none in an empty log.
    #[cfg(test)]
    fn first_ts(&self) -> Option<u64> {
        let mut reader = self.reader(ReadFrom::Start).ok()?;
        Some(reader.next().ok()??.optime.ts)
    }

    /// How often the log's files were synced since it was opened: waiters share a sync.
    pub fn syncs(&self) -> u64 {
        self.shared.syncs.load(Ordering::Relaxed)
    }

    /// Bytes of frames kept.
    pub fn bytes(&self) -> u64 {
        self.appended().saturating_sub(self.first_position())
    }

    /// The position that [`truncate_before`](Self::truncate_before) may be given so that `retain_bytes` are kept, and what is
    /// younger than `retain_ms`.
    pub fn retention_position(&self) -> Position {
        let by_bytes = self.appended().saturating_sub(self.retain_bytes());
        by_bytes.min(self.before_young()).max(self.first_position())
    }
    /// A position before every frame that is younger than `retain_ms`.
    fn before_young(&self) -> Position {
        let kept = self.retain_ms();
        if kept == 0 {
            return Position::MAX;
        }
        let since_ms = (self.shared.options.clock.now_millis().max(0) as u64).saturating_sub(kept);
        self.shared.mark_before_ts((since_ms / 1000) << 32).unwrap_or_else(|_| self.first_position())
    }
    pub fn retain_ms(&self) -> u64 {
        self.shared.retain_ms.load(Ordering::Relaxed)
    }
    /// Keeps frames so long from now on, in milliseconds.
    pub fn set_retain_ms(&self, ms: u64) {
        self.shared.retain_ms.store(ms, Ordering::Relaxed);
    }
    pub fn retain_bytes(&self) -> u64 {
        self.shared.retain_bytes.load(Ordering::Relaxed)
    }
    /// Keeps so many bytes from now on; what is too much goes with the next checkpoint.
    pub fn set_retain_bytes(&self, bytes: u64) {
        self.shared.retain_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Writes and syncs everything, and ends the log's thread. Nothing may be appended afterwards; waiters for more get
    /// [`LogError::Closed`]. A second call does nothing.
    pub fn shutdown(&self) -> Result<(), LogError> {
        let thread = self.thread.lock().take();
        self.shared.stop();
        if let Some(thread) = thread {
            // The thread aborts the process rather than panic, so there is nothing to learn from joining it.
            let _ = thread.join();
        } else if runtime::simulation::is_running() {
            self.shared.finish_here();
        }
        self.shared.health()
    }
}

impl Drop for Log {
    // Who wants to know whether everything reached the disk calls `shutdown`.
    fn drop(&mut self) {
        let _ = self.shutdown();
    }
}

/// The first timestamp of this run; see "The clock" at the head of this file.
fn clock_start(ts_bound: u64, wall: i64) -> u64 {
    let wall_seconds = (wall / 1000).clamp(0, i64::from(u32::MAX)) as u64;
    let seconds = (ts_bound >> 32).max(wall_seconds) + 1;
    seconds.min(u64::from(u32::MAX)) << 32 | 1
}

#[expect(clippy::disallowed_methods, reason = "the log's own thread")]
fn start_thread(shared: &Arc<Shared>) -> Result<std::thread::JoinHandle<()>, LogError> {
    let running = Arc::clone(shared);
    let body = move || {
        let run = std::panic::AssertUnwindSafe(|| running.run());
        if std::panic::catch_unwind(run).is_err() {
            std::process::abort();
        }
    };
    let thread = std::thread::Builder::new().name("log".to_owned()).spawn(body);
    thread.map_err(|error| LogError::io("start the thread of", &shared.dir, &error))
}
