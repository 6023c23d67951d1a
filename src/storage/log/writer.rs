//! What appenders, readers and the log's thread share, and that thread.
//!
//! The thread sleeps until one of: somebody waits for a position (`requested`), enough is unwritten, the interval since
//! the first unsynced append has passed, the log is shut down. Then it makes a *round*: take every chunk, seal and write
//! the frames, sync if it is time, publish, wake. Whatever is appended during a round goes into the next.
//!
//! Sleeping and waking: the thread states how it sleeps, then looks once more at what it waits for; an appender or waiter
//! stores its number, then looks how the thread sleeps. Both orders are total (`SeqCst`), so one sees the other.
//!
//! In a simulation a task makes the rounds instead of the thread, by the same steps, and each takes its time; whoever would
//! block until something is durable makes the round itself.
//!
//! Lock order: `writer`, `segments`, `tail`. A reader takes `tail` and `segments` one after the other, never both.

use runtime::Instant;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use super::frame::{Head, seal};
use super::segment::{INDEX_STEP, Index, SEGMENT_HEAD, Segment, SegmentHead, segment_path};
use super::tail::{Chunk, Stamp, Tail};
use super::waiters::Waiters;
use super::{Class, LogError, LogOptions, Position, ReverseReader, SyncPolicy};
use crate::files::Files;

/// The thread writes when this much is unwritten, even if nobody waits.
const WRITE_AT: u64 = 1 << 20;

/// Sealed bytes are handed to the file in pieces of about this size.
const WRITE_PIECE: usize = 1 << 20;

/// Segments are preallocated in steps of this size.
const ALLOCATE_STEP: u64 = 1 << 20;

/// How long unwritten bytes stay in memory under `SyncPolicy::Never`.
const LAZY_WRITE: Duration = Duration::from_millis(100);

/// What makes the rounds, to be woken.
enum Runner {
    Thread(Thread),
    Task(Arc<Notify>),
}

impl Runner {
    fn wake(&self) {
        match self {
            Runner::Thread(thread) => thread.unpark(),
            Runner::Task(task) => task.notify_one(),
        }
    }
}

/// What follows a step.
enum Next {
    Step,
    /// So many waiters were woken by a sync that took so long.
    Gather(usize, Duration),
    /// Sleep, in this way and at most so long.
    Doze(u8, Option<Duration>),
    End,
}

/// How long the task of a simulation takes to begin a round, in milliseconds.
const SIMULATED_PAUSE_MAX: u64 = 3;

const AWAKE: u8 = 0;
const SLEEPING: u8 = 1;
const IDLE: u8 = 2;

pub(super) struct Shared {
    pub(super) files: Arc<dyn Files>,
    pub(super) dir: PathBuf,
    pub(super) options: LogOptions,
    /// The options', until it is changed.
    pub(super) retain_bytes: AtomicU64,
    pub(super) retain_ms: AtomicU64,
    pub(super) tail: Mutex<Tail>,
    /// The tail's, to be read without its mutex.
    pub(super) last_ts: Arc<AtomicU64>,
    pub(super) segments: RwLock<Vec<Arc<Segment>>>,
    pub(super) writer: Mutex<Writer>,
    pub(super) trimming: Mutex<()>,
    pub(super) appended: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) synced: AtomicU64,
    pub(super) durable_stamp: Mutex<Stamp>,
    /// How often a segment was synced.
    pub(super) syncs: AtomicU64,
    requested: AtomicU64,
    sleep: AtomicU8,
    runner: OnceLock<Runner>,
    stop: AtomicBool,
    closed: AtomicBool,
    pub(super) failed: AtomicBool,
    failure: OnceLock<LogError>,
    pub(super) durable_waiters: Waiters,
    /// Who waits for the log to fail.
    pub(super) failure_waiters: Waiters,
    pub(super) written_waiters: Waiters,
    pub(super) appended_waiters: Waiters,
    /// How often the log was cut, and where.
    pub(super) epoch: AtomicU64,
    pub(super) cuts: Mutex<Vec<Position>>,
}

/// What only the holder of the writer's lock touches: the end of the files.
pub(super) struct Writer {
    /// End of what was handed to the files.
    pub(super) position: Position,
    /// Checksum of the last frame before `position`.
    pub(super) checksum: u32,
    /// Newest oplog frame before `position`.
    pub(super) newest: Stamp,
    /// Bytes the last segment's file has.
    pub(super) allocated: u64,
    /// The last segment's name is not durable yet.
    pub(super) name_unsynced: bool,
    /// The segment being written: the last of `Shared::segments`.
    pub(super) current: Option<Arc<Segment>>,
    /// Where the next index mark is due.
    next_mark: Position,
    /// Sealed frames not yet handed to the file; they begin at `position`.
    sealed: Vec<u8>,
}

impl Writer {
    pub(super) fn new(position: Position, checksum: u32, newest: Stamp) -> Self {
        Writer {
            position,
            checksum,
            newest,
            allocated: 0,
            name_unsynced: false,
            current: None,
            next_mark: position,
            sealed: Vec::new(),
        }
    }

    /// Goes on from `position` after a cut.
    pub(super) fn restart(&mut self, position: Position, checksum: u32, newest: Stamp) {
        self.position = position;
        self.checksum = checksum;
        self.newest = newest;
        self.next_mark = position;
    }

    fn write(&mut self, shared: &Shared, chunks: &[Arc<Chunk>]) -> Result<(), LogError> {
        for chunk in chunks {
            let mut rest = chunk.bytes.as_slice();
            while let Some(head) = Head::decode(rest) {
                let (frame, after) = rest.split_at(head.size());
                self.seal_frame(shared, &head, frame)?;
                rest = after;
            }
            self.newest = chunk.newest.unwrap_or(self.newest);
        }
        self.flush(shared)
    }

    fn seal_frame(&mut self, shared: &Shared, head: &Head, frame: &[u8]) -> Result<(), LogError> {
        let segment = self.segment_for(shared, head)?;
        if head.position >= self.next_mark || head.position == segment.base {
            segment.index.write().note(head.position, head.ts);
            self.next_mark = head.position + INDEX_STEP;
        }
        let at = self.sealed.len();
        self.sealed.extend_from_slice(frame);
        let synced = shared.synced.load(Ordering::Relaxed);
        self.checksum = seal(&mut self.sealed[at..], synced, self.checksum);
        if self.sealed.len() >= WRITE_PIECE { self.flush(shared) } else { Ok(()) }
    }

    /// The segment in which the frame goes; begins a new one where the last is full.
    fn segment_for(&mut self, shared: &Shared, head: &Head) -> Result<Arc<Segment>, LogError> {
        let Some(last) = self.current.clone() else { return self.begin_segment(shared, head) };
        let full = head.end() - last.base > shared.options.segment_bytes;
        if !full || head.position == last.base {
            return Ok(last);
        }
        self.flush(shared)?;
        let exact = last.offset(self.position);
        last.file.set_len(exact).map_err(|error| LogError::io("cut", &last.path, &error))?;
        if shared.options.sync != SyncPolicy::Never {
            self.sync(shared)?;
        }
        self.begin_segment(shared, head)
    }

    fn begin_segment(&mut self, shared: &Shared, head: &Head) -> Result<Arc<Segment>, LogError> {
        let path = segment_path(&shared.dir, head.position);
        let io = |operation, error: &std::io::Error| LogError::io(operation, &path, error);
        let file = shared.files.create(&path).map_err(|error| io("create", &error))?;
        let segment_head = SegmentHead {
            previous: self.checksum,
            base: head.position,
            first_ts: head.ts,
            synced: shared.synced.load(Ordering::Relaxed),
        };
        file.write_at(&segment_head.encode(), 0).map_err(|error| io("write", &error))?;
        self.allocated = SEGMENT_HEAD as u64;
        self.name_unsynced = true;
        let segment = Arc::new(Segment {
            base: head.position,
            first_ts: head.ts,
            previous: self.checksum,
            path,
            file,
            index: RwLock::new(Index { marks: Vec::new(), complete: true }),
        });
        shared.segments.write().push(Arc::clone(&segment));
        self.current = Some(Arc::clone(&segment));
        Ok(segment)
    }

    /// Hands the sealed frames to the file.
    fn flush(&mut self, shared: &Shared) -> Result<(), LogError> {
        let Some(segment) = self.current.clone().filter(|_| !self.sealed.is_empty()) else { return Ok(()) };
        let offset = segment.offset(self.position);
        let end = offset + self.sealed.len() as u64;
        if end > self.allocated {
            let full = SEGMENT_HEAD as u64 + shared.options.segment_bytes;
            let step = (end + ALLOCATE_STEP).min(full).max(end);
            let allocate = segment.file.preallocate(step);
            allocate.map_err(|error| LogError::io("preallocate", &segment.path, &error))?;
            self.allocated = step;
        }
        let write = segment.file.write_at(&self.sealed, offset);
        write.map_err(|error| LogError::io("write", &segment.path, &error))?;
        self.position += self.sealed.len() as u64;
        self.sealed.clear();
        self.sealed.shrink_to(2 * WRITE_PIECE);
        shared.written.store(self.position, Ordering::SeqCst);
        Ok(())
    }

    /// Makes durable what was handed to the files, and says so; returns how many waiters that woke.
    pub(super) fn sync(&mut self, shared: &Shared) -> Result<usize, LogError> {
        if let Some(segment) = self.current.clone() {
            self.sync_segment(shared, &segment)?;
        }
        shared.synced.store(self.position, Ordering::SeqCst);
        *shared.durable_stamp.lock() = self.newest;
        Ok(shared.durable_waiters.wake(self.position))
    }

    fn sync_segment(&mut self, shared: &Shared, segment: &Segment) -> Result<(), LogError> {
        shared.syncs.fetch_add(1, Ordering::Relaxed);
        segment.file.sync().map_err(|error| LogError::io("sync", &segment.path, &error))?;
        if self.name_unsynced {
            shared.sync_names()?;
            self.name_unsynced = false;
        }
        Ok(())
    }

    /// Cuts what was preallocated and not used.
    fn finish(&mut self, shared: &Shared) -> Result<(), LogError> {
        let Some(segment) = self.current.clone() else { return Ok(()) };
        let exact = segment.offset(self.position);
        segment.file.set_len(exact).map_err(|error| LogError::io("cut", &segment.path, &error))?;
        self.allocated = exact;
        if shared.options.sync != SyncPolicy::Never {
            self.sync(shared)?;
        }
        Ok(())
    }
}

impl Shared {
    pub(super) fn new(
        files: Arc<dyn Files>,
        dir: PathBuf,
        options: LogOptions,
        segments: Vec<Arc<Segment>>,
        writer: Writer,
        tail: Tail,
    ) -> Shared {
        let end = writer.position;
        Shared {
            retain_bytes: AtomicU64::new(options.retain_bytes),
            retain_ms: AtomicU64::new(options.retain_ms),
            files,
            dir,
            options,
            durable_stamp: Mutex::new(writer.newest),
            last_ts: Arc::clone(&tail.last_ts),
            tail: Mutex::new(tail),
            segments: RwLock::new(segments),
            writer: Mutex::new(writer),
            trimming: Mutex::default(),
            appended: AtomicU64::new(end),
            written: AtomicU64::new(end),
            synced: AtomicU64::new(end),
            syncs: AtomicU64::new(0),
            requested: AtomicU64::new(0),
            sleep: AtomicU8::new(AWAKE),
            runner: OnceLock::new(),
            stop: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            failure: OnceLock::new(),
            durable_waiters: Waiters::default(),
            failure_waiters: Waiters::default(),
            written_waiters: Waiters::default(),
            appended_waiters: Waiters::default(),
            epoch: AtomicU64::new(0),
            cuts: Mutex::default(),
        }
    }

    /// Unwritten bytes at which the thread writes although nobody waits: before appenders would have to.
    fn write_at(&self) -> u64 {
        WRITE_AT.min(self.options.buffer_bytes / 2)
    }

    pub(super) fn never_syncs(&self) -> bool {
        self.options.sync == SyncPolicy::Never
    }

    pub(super) fn durable(&self) -> Position {
        let position = if self.never_syncs() { &self.appended } else { &self.synced };
        position.load(Ordering::SeqCst)
    }

    pub(super) fn health(&self) -> Result<(), LogError> {
        if !self.failed.load(Ordering::SeqCst) {
            return Ok(());
        }
        let reason = self.failure.get().map_or_else(|| "unknown".to_owned(), LogError::to_string);
        Err(LogError::Failed(reason))
    }

    /// An error once the log is shut down or has failed.
    pub(super) fn open(&self) -> Result<(), LogError> {
        self.health()?;
        if self.closed.load(Ordering::SeqCst) { Err(LogError::Closed) } else { Ok(()) }
    }

    /// What is known about `position` being durable, to a waiter that began in `epoch`; none: wait.
    pub(super) fn durable_answer(&self, position: Position, epoch: u64) -> Option<Result<(), LogError>> {
        if let Some(end) = self.lowest_cut_since(epoch)
            && position > end
        {
            return Some(Err(LogError::Truncated { asked: position, end }));
        }
        // Without syncs nothing but the health of the log stands behind "durable".
        if self.never_syncs()
            && let Err(error) = self.health()
        {
            return Some(Err(error));
        }
        if self.durable() >= position {
            return Some(Ok(()));
        }
        self.open().err().map(Err)
    }

    /// The lowest position at which the log was cut after `epoch`.
    pub(super) fn lowest_cut_since(&self, epoch: u64) -> Option<Position> {
        if self.epoch.load(Ordering::SeqCst) == epoch {
            return None;
        }
        let cuts = self.cuts.lock();
        cuts.get(usize::try_from(epoch).ok()?..)?.iter().copied().min()
    }

    pub(super) fn durable_stamp(&self) -> Stamp {
        if self.never_syncs() { self.tail.lock().newest } else { *self.durable_stamp.lock() }
    }

    /// After opening: makes durable what was found beyond every statement (a killed process leaves frames in the
    /// operating system's cache, which a power failure would still take away).
    pub(super) fn settle(&self, unsure: bool) -> Result<(), LogError> {
        if !unsure || self.never_syncs() {
            return Ok(());
        }
        for segment in self.segments.read().iter().filter(|segment| segment.index.read().complete) {
            segment.file.sync().map_err(|error| LogError::io("sync", &segment.path, &error))?;
        }
        self.sync_names()
    }

    /// Makes the names of segments durable. The first one may stand in a directory that is itself new.
    fn sync_names(&self) -> Result<(), LogError> {
        let sync = |dir: &Path| {
            self.files.sync_dir(dir).map_err(|error| LogError::io("sync directory", dir, &error))
        };
        sync(&self.dir)?;
        match self.dir.parent() {
            Some(parent) if self.segments.read().len() == 1 => sync(parent),
            _ => Ok(()),
        }
    }

    /// Looks for the newest oplog frame in segments that were not read when the log was opened.
    pub(super) fn find_newest(self: &Arc<Self>) -> Result<(), LogError> {
        let newest = self.newest_before(self.appended.load(Ordering::SeqCst))?;
        self.writer.lock().newest = newest;
        self.tail.lock().newest = newest;
        *self.durable_stamp.lock() = newest;
        Ok(())
    }

    /// The newest oplog frame that ends at or before `position`.
    pub(super) fn newest_before(self: &Arc<Self>, position: Position) -> Result<Stamp, LogError> {
        let mut reader = ReverseReader::open(self, Some(position))?;
        while let Some(frame) = reader.next()? {
            if frame.class == Class::Oplog {
                return Ok(Stamp { optime: frame.optime, wall: frame.wall });
            }
        }
        Ok(Stamp::default())
    }

    pub(super) fn fail(&self, error: LogError) {
        let _ = self.failure.set(error);
        self.failed.store(true, Ordering::SeqCst);
        self.failure_waiters.wake_all();
        self.wake_everybody();
    }

    pub(super) fn wake_everybody(&self) {
        self.durable_waiters.wake_all();
        self.written_waiters.wake_all();
        self.appended_waiters.wake_all();
    }

    /// Publishes what was appended.
    pub(super) fn announce(&self, position: Position) {
        self.appended_waiters.wake(position);
        let unwritten = position.saturating_sub(self.written.load(Ordering::Relaxed));
        match self.sleep.load(Ordering::SeqCst) {
            IDLE => self.wake_thread(),
            SLEEPING if unwritten >= self.write_at() => self.wake_thread(),
            _ => {}
        }
    }

    /// Asks for a sync up to `position`.
    pub(super) fn request(&self, position: Position) {
        self.requested.fetch_max(position, Ordering::SeqCst);
        self.wake_thread();
    }

    pub(super) fn forget_requests_above(&self, position: Position) {
        self.requested.fetch_min(position, Ordering::SeqCst);
    }

    pub(super) fn wake_thread(&self) {
        if self.sleep.load(Ordering::SeqCst) != AWAKE
            && let Some(runner) = self.runner.get()
        {
            runner.wake();
        }
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(runner) = self.runner.get() {
            runner.wake();
        }
    }

    /// Writes everything appended; the caller holds the writer's lock.
    pub(super) fn write_all(&self, writer: &mut Writer) -> Result<(), LogError> {
        let chunks = self.tail.lock().take();
        writer.write(self, &chunks)?;
        drop(chunks);
        self.tail.lock().release();
        self.written_waiters.wake(writer.position);
        Ok(())
    }

    /// Writes, and syncs if asked; returns how many waiters that woke.
    fn round(&self, sync: bool) -> Result<usize, LogError> {
        let mut writer = self.writer.lock();
        self.health()?;
        self.write_all(&mut writer)?;
        if sync && !self.never_syncs() { writer.sync(self) } else { Ok(0) }
    }

    /// After a sync that woke several, most of them will soon be back with their next commit. Without a pause the first
    /// to return would have the next sync almost to itself and the others would wait for two. The pause ends when as
    /// many wait again, and lasts at most a quarter of a sync.
    #[expect(clippy::disallowed_methods, reason = "the log's own thread")]
    fn gather(&self, woken: usize, sync_took: Duration) {
        const STEP: Duration = Duration::from_micros(20);
        let longest = (sync_took / 4).min(Duration::from_millis(2));
        let begun = Instant::now();
        while woken > 1
            && self.durable_waiters.count() < woken
            && begun.elapsed() + STEP < longest
            && !self.stop.load(Ordering::SeqCst)
        {
            std::thread::sleep(STEP);
        }
    }

    /// The log's thread.
    pub(super) fn run(&self) {
        let _ = self.runner.set(Runner::Thread(std::thread::current()));
        self.end(self.rounds());
    }

    /// What the thread does, as a task.
    pub(super) async fn run_as_task(self: Arc<Self>) {
        let woken = Arc::new(Notify::new());
        let _ = self.runner.set(Runner::Task(woken.clone()));
        let mut unsynced_since = None;
        while !self.closed.load(Ordering::SeqCst) {
            match self.step(&mut unsynced_since) {
                Err(error) => self.end(Err(error)),
                Ok(Next::End) => self.end(Ok(())),
                Ok(Next::Step | Next::Gather(..)) => {}
                Ok(Next::Doze(how, longest)) => {
                    self.sleep.store(how, Ordering::SeqCst);
                    if self.may_doze(how) {
                        let longest = longest.unwrap_or(Duration::MAX);
                        let _ = tokio::time::timeout(longest, woken.notified()).await;
                    }
                    self.sleep.store(AWAKE, Ordering::SeqCst);
                    let pause = runtime::random_range(0..=SIMULATED_PAUSE_MAX);
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
            }
        }
    }

    /// Writes and syncs everything on this thread, where there is no other that would.
    pub(super) fn sync_here(&self) -> Result<(), LogError> {
        self.open()?;
        self.round(true).map(drop).inspect_err(|error| self.fail(error.clone()))
    }

    /// Makes the last rounds on this thread, where there is no other that would.
    pub(super) fn finish_here(&self) {
        let mut unsynced_since = None;
        while !self.closed.load(Ordering::SeqCst) {
            match self.step(&mut unsynced_since) {
                Err(error) => self.end(Err(error)),
                Ok(Next::End) => self.end(Ok(())),
                Ok(_) => {}
            }
        }
    }

    fn end(&self, result: Result<(), LogError>) {
        if let Err(error) = result {
            self.fail(error);
        }
        self.closed.store(true, Ordering::SeqCst);
        self.wake_everybody();
    }

    fn rounds(&self) -> Result<(), LogError> {
        let mut unsynced_since = None;
        loop {
            match self.step(&mut unsynced_since)? {
                Next::Step => {}
                Next::Gather(woken, sync_took) => self.gather(woken, sync_took),
                Next::Doze(how, longest) => self.doze(how, longest),
                Next::End => return Ok(()),
            }
        }
    }

    fn step(&self, unsynced_since: &mut Option<Instant>) -> Result<Next, LogError> {
        let interval = match self.options.sync {
            SyncPolicy::Group { interval } => interval,
            SyncPolicy::Never => LAZY_WRITE,
        };
        let waited = unsynced_since.map(|since| since.elapsed());
        match self.work(waited.is_some_and(|waited| waited >= interval)) {
            Work::Stop => {
                self.round(true)?;
                if self.appended.load(Ordering::SeqCst) == self.written.load(Ordering::SeqCst) {
                    self.writer.lock().finish(self)?;
                    return Ok(Next::End);
                }
                Ok(Next::Step)
            }
            Work::Write => self.round(false).map(|_| Next::Step),
            Work::Sync => {
                let begun = Instant::now();
                let woken = self.round(true)?;
                *unsynced_since = None;
                Ok(Next::Gather(woken, begun.elapsed()))
            }
            Work::Later => {
                unsynced_since.get_or_insert_with(Instant::now);
                Ok(Next::Doze(SLEEPING, Some(interval.saturating_sub(waited.unwrap_or_default()))))
            }
            Work::Nothing => {
                *unsynced_since = None;
                Ok(Next::Doze(IDLE, None))
            }
        }
    }

    fn work(&self, interval_passed: bool) -> Work {
        let appended = self.appended.load(Ordering::SeqCst);
        let written = self.written.load(Ordering::SeqCst);
        let done = if self.never_syncs() { written } else { self.synced.load(Ordering::SeqCst) };
        if self.stop.load(Ordering::SeqCst) {
            Work::Stop
        } else if done >= appended {
            Work::Nothing
        } else if interval_passed || self.requested.load(Ordering::SeqCst).min(appended) > done {
            Work::Sync
        } else if appended.saturating_sub(written) >= self.write_at() {
            Work::Write
        } else {
            Work::Later
        }
    }

    /// Whether there is still nothing to do, having said how it sleeps.
    fn may_doze(&self, how: u8) -> bool {
        matches!((self.work(false), how), (Work::Nothing, IDLE) | (Work::Later, SLEEPING))
    }

    fn doze(&self, how: u8, longest: Option<Duration>) {
        self.sleep.store(how, Ordering::SeqCst);
        match longest {
            _ if !self.may_doze(how) => {}
            None => std::thread::park(),
            Some(longest) => std::thread::park_timeout(longest),
        }
        self.sleep.store(AWAKE, Ordering::SeqCst);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Write and sync everything, then end.
    Stop,
    /// Write and sync.
    Sync,
    /// Write, because much is in memory.
    Write,
    /// Nothing until the interval has passed.
    Later,
    /// Nothing at all.
    Nothing,
}
