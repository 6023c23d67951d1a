//! Readers, forward and backward, over files and memory alike.
//!
//! A reader holds a piece of the stream: a chunk it shares with the tail, a copy of a part of the open chunk, or a block
//! read from a segment. When the piece is used up it asks the tail first and the files second. That order is safe: what
//! leaves the tail is in the files by then. Frames from files are verified; the chain is not followed, because a reader
//! may begin anywhere.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::frame::{FRAME_HEAD, Head, right_in_itself};
use super::segment::{Index, Mark, Segment};
use super::tail::{Chunk, Found};
use super::writer::Shared;
use super::{Class, FrameRef, LogError, OpTime, Position, ReadFrom};

const SMALLEST_READ: usize = 16 << 10;
const LARGEST_READ: usize = 256 << 10;

enum Piece {
    Shared(Arc<Chunk>),
    Own { first: Position, bytes: Vec<u8>, from_file: bool },
}

impl Piece {
    fn at(&self, position: Position) -> Option<&[u8]> {
        let (first, bytes) = match self {
            Piece::Shared(chunk) => (chunk.position, &chunk.bytes),
            Piece::Own { first, bytes, .. } => (*first, bytes),
        };
        let offset = usize::try_from(position.checked_sub(first)?).ok()?;
        bytes.get(offset..)
    }

    /// The whole frame at `position`, if this piece has it and it is right.
    fn head(&self, position: Position) -> Option<Head> {
        let bytes = self.at(position)?;
        let from_file = matches!(self, Piece::Own { from_file: true, .. });
        if from_file {
            return right_in_itself(bytes, position);
        }
        Head::decode(bytes).filter(|head| head.position == position && head.size() <= bytes.len())
    }
}

/// Reads frames forward, those in memory included. It holds at most one piece of some hundred KiB, or one frame.
pub struct LogReader {
    shared: Arc<Shared>,
    position: Position,
    /// When the newest frame that was passed was written.
    passed_ts: u64,
    epoch: u64,
    piece: Piece,
    read_size: usize,
}

impl LogReader {
    pub(super) fn open(shared: &Arc<Shared>, from: ReadFrom) -> Result<LogReader, LogError> {
        let position = match from {
            ReadFrom::Start => shared.first_position(),
            ReadFrom::End => shared.appended.load(Ordering::SeqCst),
            ReadFrom::Position(position) => shared.inside(position)?,
            ReadFrom::Ts(ts) => shared.mark_before_ts(ts)?,
        };
        let mut reader = LogReader::at(shared, position);
        if let ReadFrom::Ts(ts) = from {
            reader.pass_before(ts)?;
        }
        Ok(reader)
    }

    /// Goes to the first frame written at `ts` or later, as a new reader from there would. What stands a little behind the frame read
    /// last is reached by reading on.
    pub fn seek_ts(&mut self, ts: u64) -> Result<(), LogError> {
        let mark = self.shared.mark_before_ts(ts)?;
        let epoch = self.shared.epoch.load(Ordering::SeqCst);
        if epoch != self.epoch || self.passed_ts >= ts || self.position < mark {
            if epoch != self.epoch || self.piece.at(mark).is_none() {
                self.piece = Piece::nothing();
                self.read_size = SMALLEST_READ;
            }
            (self.epoch, self.position, self.passed_ts) = (epoch, mark, 0);
        }
        self.pass_before(ts)
    }

    /// Passes all frames written before `ts`.
    fn pass_before(&mut self, ts: u64) -> Result<(), LogError> {
        while let Some(head) = self.load()?
            && head.ts < ts
        {
            (self.position, self.passed_ts) = (head.end(), head.ts);
        }
        Ok(())
    }

    pub(super) fn at(shared: &Arc<Shared>, position: Position) -> LogReader {
        LogReader {
            shared: Arc::clone(shared),
            position,
            // Nothing was passed; what stands before is unknown.
            passed_ts: u64::MAX,
            epoch: shared.epoch.load(Ordering::SeqCst),
            piece: Piece::Own { first: 0, bytes: Vec::new(), from_file: false },
            read_size: SMALLEST_READ,
        }
    }

    /// The next frame; none at the end, where a later call may find one.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<FrameRef<'_>>, LogError> {
        self.next_before(Position::MAX)
    }

    /// The next frame if it ends at or before `limit` (the durable or the majority-committed position).
    pub fn next_before(&mut self, limit: Position) -> Result<Option<FrameRef<'_>>, LogError> {
        self.next_if(limit, |_, _| true)
    }

    /// The same, if its class and optime are also admitted; else it stays the next.
    pub fn next_if(
        &mut self,
        limit: Position,
        admits: impl FnOnce(Class, OpTime) -> bool,
    ) -> Result<Option<FrameRef<'_>>, LogError> {
        let admitted =
            |head: &Head| head.end() <= limit && admits(head.class, OpTime { ts: head.ts, term: head.term });
        let Some(head) = self.load()?.filter(admitted) else { return Ok(None) };
        let position = std::mem::replace(&mut self.position, head.end());
        self.passed_ts = head.ts;
        Ok(self.piece.at(position).map(|bytes| head.frame(bytes)))
    }

    /// Where the next frame begins: what to give to [`Log::wait_appended`](super::Log::wait_appended) at the end.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Brings the frame at `position` into the piece.
    fn load(&mut self) -> Result<Option<Head>, LogError> {
        self.notice_cuts()?;
        if let Some(head) = self.piece.head(self.position) {
            return Ok(Some(head));
        }
        if !self.refill()? {
            return Ok(None);
        }
        match self.piece.head(self.position) {
            Some(head) => Ok(Some(head)),
            None => self.not_a_frame(),
        }
    }

    fn refill(&mut self) -> Result<bool, LogError> {
        let mut copy = match std::mem::replace(&mut self.piece, Piece::nothing()) {
            Piece::Own { bytes, .. } => bytes,
            Piece::Shared(_) => Vec::new(),
        };
        let found =
            self.shared.tail.lock().find(self.position, self.read_size.max(LARGEST_READ / 4), &mut copy);
        self.piece = match found {
            Found::End => return Ok(false),
            Found::Chunk(chunk) => Piece::Shared(chunk),
            Found::Copied => Piece::Own { first: self.position, bytes: copy, from_file: false },
            Found::OnDisk => {
                self.read_file(&mut copy)?;
                Piece::Own { first: self.position, bytes: copy, from_file: true }
            }
        };
        Ok(true)
    }

    fn read_file(&mut self, bytes: &mut Vec<u8>) -> Result<(), LogError> {
        let (segment, end) = self.shared.segment_at(self.position)?;
        let available = usize::try_from(end.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let read = |bytes: &mut Vec<u8>, size: usize| {
            bytes.resize(size.min(available), 0);
            let read = segment.file.read_at(bytes, segment.offset(self.position));
            let read = read.map_err(|error| LogError::io("read", &segment.path, &error))?;
            bytes.truncate(read);
            Ok(())
        };
        read(bytes, self.read_size)?;
        if let Some(head) = Head::decode(bytes).filter(|head| head.size() > bytes.len()) {
            read(bytes, head.size())?;
        }
        self.read_size = (self.read_size * 2).clamp(SMALLEST_READ, LARGEST_READ);
        Ok(())
    }

    /// After a cut, what was read ahead may be gone, and a position above the cut means something else.
    fn notice_cuts(&mut self) -> Result<(), LogError> {
        let epoch = self.shared.epoch.load(Ordering::SeqCst);
        if epoch == self.epoch {
            return Ok(());
        }
        let lowest = self.shared.lowest_cut_since(self.epoch).unwrap_or(Position::MAX);
        if self.position > lowest {
            return Err(LogError::Truncated { asked: self.position, end: lowest });
        }
        self.epoch = epoch;
        self.piece = Piece::nothing();
        Ok(())
    }

    fn not_a_frame(&mut self) -> Result<Option<Head>, LogError> {
        self.notice_cuts()?;
        let in_file = matches!(self.piece, Piece::Own { from_file: true, .. });
        self.piece = Piece::nothing();
        match self.shared.segment_at(self.position) {
            Ok((segment, _)) if in_file => {
                Err(LogError::corrupt(&segment.path, self.position, "no valid frame begins here"))
            }
            _ => Err(LogError::Truncated {
                asked: self.position,
                end: self.shared.appended.load(Ordering::SeqCst),
            }),
        }
    }
}

impl Piece {
    fn nothing() -> Piece {
        Piece::Own { first: 0, bytes: Vec::new(), from_file: false }
    }
}

/// Reads frames backward, newest first: finds the last mark before the upper end, walks forward from there, and hands
/// out what it passed in reverse.
pub struct ReverseReader {
    reader: LogReader,
    upper: Position,
    passed: Vec<Position>,
}

impl ReverseReader {
    pub(super) fn open(shared: &Arc<Shared>, upper: Option<Position>) -> Result<ReverseReader, LogError> {
        let upper = match upper {
            Some(position) => shared.inside(position)?,
            None => shared.appended.load(Ordering::SeqCst),
        };
        Ok(ReverseReader { reader: LogReader::at(shared, upper), upper, passed: Vec::new() })
    }

    /// The frame before the one read last; none at the beginning of the log.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<FrameRef<'_>>, LogError> {
        if self.passed.is_empty() && !self.step_back()? {
            return Ok(None);
        }
        let Some(position) = self.passed.pop() else { return Ok(None) };
        self.reader.position = position;
        self.reader.next()
    }

    fn step_back(&mut self) -> Result<bool, LogError> {
        let Some(mark) = self.reader.shared.mark_before(self.upper)? else { return Ok(false) };
        self.reader.position = mark;
        self.reader.read_size = usize::try_from(self.upper - mark).unwrap_or(LARGEST_READ).max(FRAME_HEAD);
        while self.reader.position < self.upper
            && let Some(head) = self.reader.load()?
        {
            self.passed.push(head.position);
            self.reader.position = head.end();
        }
        self.upper = mark;
        Ok(true)
    }
}

impl Shared {
    pub(super) fn first_position(&self) -> Position {
        // The tail first: if there is no segment afterwards, nothing had left the tail before.
        let in_memory = self.tail.lock().first();
        self.segments.read().first().map_or(in_memory, |segment| segment.base)
    }

    /// `position`, if the log has it.
    fn inside(&self, position: Position) -> Result<Position, LogError> {
        let (first, end) = (self.first_position(), self.appended.load(Ordering::SeqCst));
        match position {
            _ if position < first => Err(LogError::PositionLost { asked: position, first }),
            _ if position > end => Err(LogError::Truncated { asked: position, end }),
            _ => Ok(position),
        }
    }

    /// The segment that holds the frame at `position`, and where its written frames end.
    pub(super) fn segment_at(&self, position: Position) -> Result<(Arc<Segment>, Position), LogError> {
        let segments = self.segments.read();
        let after = segments.partition_point(|segment| segment.base <= position);
        let Some(segment) = segments.get(after.wrapping_sub(1)) else {
            let first = segments.first().map_or(0, |segment| segment.base);
            return Err(LogError::PositionLost { asked: position, first });
        };
        let end = segments.get(after).map_or_else(|| self.written.load(Ordering::SeqCst), |next| next.base);
        Ok((Arc::clone(segment), end))
    }

    /// The beginning of a frame at or before the first one whose timestamp is `ts` or later.
    pub(super) fn mark_before_ts(self: &Arc<Self>, ts: u64) -> Result<Position, LogError> {
        let in_memory = self.tail.lock().marks().rev().find(|&(_, first)| first < ts);
        if let Some((position, _)) = in_memory {
            return Ok(position);
        }
        let segment = {
            let segments = self.segments.read();
            let after = segments.partition_point(|segment| segment.first_ts < ts);
            segments.get(after.wrapping_sub(1)).cloned()
        };
        match segment {
            None => Ok(self.first_position()),
            Some(segment) => Ok(self.mark_in(&segment, |mark| mark.ts < ts)?.unwrap_or(segment.base)),
        }
    }

    /// The last mark before `position`.
    fn mark_before(self: &Arc<Self>, position: Position) -> Result<Option<Position>, LogError> {
        let in_memory = self.tail.lock().marks().rev().find(|&(mark, _)| mark < position);
        if let Some((mark, _)) = in_memory {
            return Ok(Some(mark));
        }
        match self.segment_at(position.saturating_sub(1)) {
            Ok((segment, _)) if position > segment.base => {
                let mark = self.mark_in(&segment, |mark| mark.position < position)?;
                Ok(Some(mark.unwrap_or(segment.base)))
            }
            _ => Ok(None),
        }
    }

    fn mark_in(
        self: &Arc<Self>,
        segment: &Segment,
        before: impl Fn(&Mark) -> bool,
    ) -> Result<Option<Position>, LogError> {
        self.complete_index(segment)?;
        let index = segment.index.read();
        let after = index.marks.partition_point(before);
        Ok(index.marks.get(after.wrapping_sub(1)).map(|mark| mark.position))
    }

    /// Makes the index of a segment that was not read when the log was opened.
    fn complete_index(self: &Arc<Self>, segment: &Segment) -> Result<(), LogError> {
        if segment.index.read().complete {
            return Ok(());
        }
        let (_, end) = self.segment_at(segment.base)?;
        let mut reader = LogReader::at(self, segment.base);
        let mut index = Index { marks: Vec::new(), complete: true };
        while let Some(frame) = reader.next_before(end)? {
            index.note(frame.position, frame.optime.ts);
        }
        *segment.index.write() = index;
        Ok(())
    }
}
