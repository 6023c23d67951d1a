//! The part of the stream that is not yet written: chunks in memory, and the clock.
//!
//! A chunk holds whole frames whose `synced`, `previous` and checksum are still zero; the writer fills them in on its
//! own copy, so a chunk is never changed once it is shared with the writer and with readers. Only the open chunk, at the
//! end, is written to, under the tail's mutex.
//!
//! ```text
//!   chunks: [taken by the writer ...][full ...] open
//!           ^ first()                                ^ position
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::frame::{Class, FRAME_HEAD, Head};
use super::{Appended, OpTime, Position};

const CHUNK_BYTES: usize = 256 << 10;

/// Chunks kept for reuse once written: memory whose pages are already mapped.
const SPARE_CHUNKS: usize = 32;

/// Optime and wall time of a frame of class oplog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) optime: OpTime,
    pub(super) wall: i64,
}

/// Whole frames, the first at `position`.
pub(super) struct Chunk {
    pub(super) position: Position,
    pub(super) first_ts: u64,
    pub(super) bytes: Vec<u8>,
    /// The newest frame of class oplog in this chunk.
    pub(super) newest: Option<Stamp>,
}

impl Chunk {
    fn empty(position: Position) -> Self {
        Chunk { position, first_ts: 0, bytes: Vec::new(), newest: None }
    }

    fn end(&self) -> Position {
        self.position + self.bytes.len() as u64
    }
}

/// The payload of a frame being appended.
pub struct Payload<'a> {
    bytes: &'a mut Vec<u8>,
}

impl Payload<'_> {
    /// Adds bytes to the payload.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

/// What memory holds at a position.
pub(super) enum Found {
    Chunk(Arc<Chunk>),
    Copied,
    End,
    OnDisk,
}

pub(super) struct Tail {
    pub(super) position: Position,
    /// The newest timestamp given or advanced to. Changed under the tail's mutex only; read by anybody.
    pub(super) last_ts: Arc<AtomicU64>,
    pub(super) term: i64,
    pub(super) newest: Stamp,
    /// Timestamp of the newest frame of any class.
    pub(super) frame_ts: u64,
    open: Chunk,
    chunks: VecDeque<Arc<Chunk>>,
    taken: usize,
    spare: Vec<Vec<u8>>,
}

/// Half an entry in the log would be followed by garbage: a panic while one is copied ends the process.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

impl Tail {
    pub(super) fn new(position: Position, last_ts: u64, frame_ts: u64, term: i64, newest: Stamp) -> Self {
        Tail {
            position,
            last_ts: Arc::new(AtomicU64::new(last_ts)),
            term,
            newest,
            frame_ts,
            open: Chunk::empty(position),
            chunks: VecDeque::new(),
            taken: 0,
            spare: Vec::new(),
        }
    }

    /// The next timestamp, the wall clock showing `wall` milliseconds.
    pub(super) fn next_ts(&mut self, wall: i64) -> u64 {
        let seconds = (wall / 1000).clamp(0, i64::from(u32::MAX)) as u64;
        let ts = (seconds << 32 | 1).max(self.last_ts.load(Ordering::Relaxed).saturating_add(1));
        self.last_ts.store(ts, Ordering::Release);
        ts
    }

    /// Appends `n` frames; `size` is a guess of the bytes each needs.
    pub(super) fn append(
        &mut self,
        class: Class,
        wall: i64,
        n: usize,
        size: impl Fn(usize) -> usize,
        mut write: impl FnMut(usize, u64, &mut Payload<'_>),
    ) -> Appended {
        let guard = AbortOnUnwind;
        let start = self.position;
        let mut first = OpTime { ts: self.last_ts.load(Ordering::Relaxed), term: self.term };
        let mut last = first;
        for i in 0..n {
            // A frame of class local takes the time of the frame before: on a secondary the clock is ahead of the entries that
            // are still to come.
            last.ts = if class == Class::Local { self.frame_ts.max(1) } else { self.next_ts(wall) };
            if i == 0 {
                first.ts = last.ts;
            }
            self.make_room(size(i));
            self.push(class, wall, last, |payload| write(i, last.ts, payload));
        }
        std::mem::forget(guard);
        Appended { first, last, start, position: self.position, wall }
    }

    /// Appends one frame with a time and term that another member gave it.
    pub(super) fn append_at(
        &mut self,
        class: Class,
        optime: OpTime,
        wall: i64,
        size: usize,
        write: impl FnOnce(&mut Payload<'_>),
    ) -> Appended {
        let guard = AbortOnUnwind;
        let start = self.position;
        self.last_ts.fetch_max(optime.ts, Ordering::AcqRel);
        self.make_room(size);
        self.push(class, wall, optime, write);
        std::mem::forget(guard);
        Appended { first: optime, last: optime, start, position: self.position, wall }
    }

    fn push(&mut self, class: Class, wall: i64, optime: OpTime, write: impl FnOnce(&mut Payload<'_>)) {
        let at = self.open.bytes.len();
        self.open.bytes.resize(at + FRAME_HEAD, 0);
        write(&mut Payload { bytes: &mut self.open.bytes });
        let length = self.open.bytes.len() - at - FRAME_HEAD;
        // `admit` refuses what is larger; an entry that was never admitted must not reach the disk.
        assert!(length as u64 <= super::MAX_PAYLOAD, "log entry of {length} bytes was not admitted");
        let head = Head {
            length: length as u32,
            class,
            position: self.position,
            term: optime.term,
            ts: optime.ts,
            wall,
            synced: 0,
            previous: 0,
            checksum: 0,
        };
        self.open.bytes[at..at + FRAME_HEAD].copy_from_slice(&head.encode());
        self.position = head.end();
        self.frame_ts = optime.ts;
        if class == Class::Oplog {
            self.newest = Stamp { optime, wall };
            self.open.newest = Some(self.newest);
        }
        if at == 0 {
            self.open.first_ts = optime.ts;
        }
    }

    fn make_room(&mut self, payload: usize) {
        let size = FRAME_HEAD + payload;
        if !self.open.bytes.is_empty() && self.open.bytes.len() + size > CHUNK_BYTES {
            self.close_open();
        }
        if self.open.bytes.capacity() == 0 {
            self.open.bytes = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES));
        }
    }

    fn close_open(&mut self) {
        if !self.open.bytes.is_empty() {
            let open = std::mem::replace(&mut self.open, Chunk::empty(self.position));
            self.chunks.push_back(Arc::new(open));
        }
    }

    /// Hands everything appended to the writer, which answers with [`release`](Self::release) once it is written.
    pub(super) fn take(&mut self) -> Vec<Arc<Chunk>> {
        self.close_open();
        let taken: Vec<_> = self.chunks.iter().skip(self.taken).cloned().collect();
        self.taken = self.chunks.len();
        taken
    }

    /// Forgets what was taken: it can now be read from the files.
    pub(super) fn release(&mut self) {
        for chunk in self.chunks.drain(..std::mem::take(&mut self.taken)) {
            if let Ok(mut chunk) = Arc::try_unwrap(chunk)
                && self.spare.len() < SPARE_CHUNKS
                && chunk.bytes.capacity() <= 2 * CHUNK_BYTES
            {
                chunk.bytes.clear();
                self.spare.push(chunk.bytes);
            }
        }
    }

    /// Starts again at `position`, everything in memory having been written.
    pub(super) fn rewind(&mut self, position: Position, newest: Stamp, frame_ts: u64) {
        self.position = position;
        self.newest = newest;
        self.frame_ts = frame_ts;
        self.open = Chunk::empty(position);
    }

    /// The first position in memory.
    pub(super) fn first(&self) -> Position {
        self.chunks.front().map_or(self.open.position, |chunk| chunk.position)
    }

    /// What stands at `position`; of the open chunk a copy of about `most` bytes (at least the frame) is put in `copy`.
    pub(super) fn find(&self, position: Position, most: usize, copy: &mut Vec<u8>) -> Found {
        if position >= self.position {
            return Found::End;
        }
        if position < self.first() {
            return Found::OnDisk;
        }
        if position >= self.open.position {
            let bytes = &self.open.bytes[(position - self.open.position) as usize..];
            let frame = Head::decode(bytes).map_or(0, |head| head.size());
            copy.clear();
            copy.extend_from_slice(&bytes[..most.max(frame).min(bytes.len())]);
            return Found::Copied;
        }
        let after = self.chunks.partition_point(|chunk| chunk.position <= position);
        match self.chunks.get(after.wrapping_sub(1)) {
            Some(chunk) if position < chunk.end() => Found::Chunk(Arc::clone(chunk)),
            _ => Found::OnDisk,
        }
    }

    /// Where the chunks in memory begin, with their first timestamps, oldest first.
    pub(super) fn marks(&self) -> impl DoubleEndedIterator<Item = (Position, u64)> {
        let open = (!self.open.bytes.is_empty()).then_some((self.open.position, self.open.first_ts));
        self.chunks.iter().map(|chunk| (chunk.position, chunk.first_ts)).chain(open)
    }
}
