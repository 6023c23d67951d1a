//! Opening a log: which frames are valid, where the stream ends, and whether that end is a torn tail or damage. The rules
//! stand at the head of `mod.rs`.
//!
//! Only the segment in which replay starts and those after it are read. Of older ones, kept for the oplog, the heads and
//! lengths are checked; their frames are verified when somebody reads them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;

use super::frame::{FRAME_HEAD, Head, right_in_itself};
use super::segment::{Index, SEGMENT_HEAD, Segment, SegmentHead, segment_base, segment_path};
use super::tail::Stamp;
use super::{Class, FrameRef, LogError, OpTime, Position};
use crate::files::{File, Files};

/// What opening found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Oldest position kept.
    pub first_position: Position,
    /// End of the log.
    pub end_position: Position,
    /// Frames given to `replay`.
    pub frames_replayed: u64,
    /// The torn tail that was cut.
    pub torn: Option<TornTail>,
    /// Optime of the newest frame of any class in the part that was read; the term to rise above.
    pub last_optime: OpTime,
    /// Every timestamp handed out from now on is at or above this.
    pub clock_start: u64,
}

/// What was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// Where the cut was made.
    pub position: Position,
    /// How many bytes of the last segments were cut, up to the last that was not zero.
    pub bytes: u64,
}

/// The state of the files after opening.
pub(super) struct Recovered {
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) end: Position,
    pub(super) checksum: u32,
    pub(super) last: OpTime,
    /// No frame in the log has a later timestamp.
    pub(super) ts_bound: u64,
    /// Newest frame of class oplog in the part that was read.
    pub(super) newest: Option<Stamp>,
    pub(super) replayed: u64,
    pub(super) torn: Option<TornTail>,
    /// Whether frames were found that no statement says to be durable.
    pub(super) unsure: bool,
}

/// A segment file as found.
struct Found {
    base: Position,
    path: PathBuf,
    file: Arc<dyn File>,
    head: Option<SegmentHead>,
}

/// The walk over the frames.
struct Scan<'a> {
    start_at: Position,
    replay: &'a mut dyn FnMut(&FrameRef<'_>) -> Result<(), LogError>,
    at: Position,
    checksum: u32,
    last: OpTime,
    ts_bound: u64,
    newest: Option<Stamp>,
    replayed: u64,
    start_seen: bool,
    stated: Position,
}

/// Where a walk ended too early.
struct Break {
    segment: usize,
    /// What follows in that segment, from the end of the valid frames on.
    rest: Vec<u8>,
    reason: &'static str,
}

pub(super) fn recover(
    files: &dyn Files,
    dir: &Path,
    start_at: Option<Position>,
    replay: &mut dyn FnMut(&FrameRef<'_>) -> Result<(), LogError>,
) -> Result<Recovered, LogError> {
    files.create_dir_all(dir).map_err(|error| LogError::io("create directory", dir, &error))?;
    let found = find_segments(files, dir)?;
    let base = found.first().map_or(0, |first| first.base);
    let start_at = start_at.unwrap_or(base);
    if start_at < base {
        return Err(LogError::PositionLost { asked: start_at, first: base });
    }
    let from = found.partition_point(|segment| segment.base <= start_at).saturating_sub(1);
    check_older(&found[..from], found.get(from))?;
    let at = found.get(from).map_or(0, |segment| segment.base);
    let mut scan = Scan {
        start_at,
        replay,
        at,
        checksum: 0,
        last: OpTime::default(),
        ts_bound: 0,
        newest: None,
        replayed: 0,
        start_seen: start_at == at,
        stated: start_at,
    };
    let mut segments: Vec<Arc<Segment>> = found[..from].iter().filter_map(Found::older).collect();
    let mut torn = None;
    if let Some(broken) = scan.walk(&found, from, &mut segments)? {
        refuse_damage(&found, &broken, scan.at, scan.stated)?;
        torn = cut(files, dir, &found, &broken, scan.at)?;
    }
    if scan.at < start_at || !scan.start_seen {
        let path = found.get(from).map_or(dir, |segment| &segment.path);
        let reason = format!("replay starts at {start_at}, which is not the beginning of a frame or the end");
        return Err(LogError::corrupt(path, scan.at, reason));
    }
    Ok(Recovered {
        segments,
        end: scan.at,
        checksum: scan.checksum,
        last: scan.last,
        ts_bound: scan.ts_bound,
        newest: scan.newest,
        replayed: scan.replayed,
        torn,
        unsure: scan.at > scan.stated,
    })
}

fn find_segments(files: &dyn Files, dir: &Path) -> Result<Vec<Found>, LogError> {
    let names = files.list(dir).map_err(|error| LogError::io("list", dir, &error))?;
    let mut bases: Vec<Position> = names.iter().filter_map(|name| segment_base(name)).collect();
    bases.sort_unstable();
    bases.into_iter().map(|base| open_segment(files, dir, base)).collect()
}

fn open_segment(files: &dyn Files, dir: &Path, base: Position) -> Result<Found, LogError> {
    let path = segment_path(dir, base);
    let file = files.open(&path).map_err(|error| LogError::io("open", &path, &error))?;
    let mut bytes = [0; SEGMENT_HEAD];
    let read = file.read_at(&mut bytes, 0).map_err(|error| LogError::io("read", &path, &error))?;
    let head = SegmentHead::decode(&bytes[..read], &path)?;
    let head = head.filter(|head| head.base == base);
    Ok(Found { base, path, file, head })
}

/// Segments before the one in which replay starts: each must have a head and reach to the next.
fn check_older(older: &[Found], next: Option<&Found>) -> Result<(), LogError> {
    for (at, segment) in older.iter().enumerate() {
        let corrupt = |reason: &str| Err(LogError::corrupt(&segment.path, segment.base, reason));
        if segment.head.is_none() {
            return corrupt("the segment's head is damaged");
        }
        let Some(next) = older.get(at + 1).or(next) else { continue };
        let length = segment.file.len().map_err(|error| LogError::io("read", &segment.path, &error))?;
        if length < SEGMENT_HEAD as u64 + (next.base - segment.base) {
            return corrupt("the segment is shorter than the next one's position says");
        }
    }
    Ok(())
}

impl Found {
    fn segment(&self, head: &SegmentHead, index: Index) -> Arc<Segment> {
        Arc::new(Segment {
            base: self.base,
            first_ts: head.first_ts,
            previous: head.previous,
            path: self.path.clone(),
            file: Arc::clone(&self.file),
            index: RwLock::new(index),
        })
    }

    fn older(&self) -> Option<Arc<Segment>> {
        self.head.map(|head| self.segment(&head, Index::default()))
    }
}

impl Scan<'_> {
    fn walk(
        &mut self,
        found: &[Found],
        from: usize,
        segments: &mut Vec<Arc<Segment>>,
    ) -> Result<Option<Break>, LogError> {
        for (number, segment) in found.iter().enumerate().skip(from) {
            let bytes = segment.file.read_to_end_at(SEGMENT_HEAD as u64);
            let bytes = bytes.map_err(|error| LogError::io("read", &segment.path, &error))?;
            let Some(head) = segment.head else {
                return Ok(Some(Break {
                    segment: number,
                    rest: bytes,
                    reason: "a segment's head is not valid",
                }));
            };
            if segment.base != self.at || (number > from && head.previous != self.checksum) {
                let reason = "the segment does not continue the one before";
                return Ok(Some(Break { segment: number, rest: bytes, reason }));
            }
            self.checksum = head.previous;
            self.ts_bound = self.ts_bound.max(head.first_ts.saturating_sub(1));
            self.stated = self.stated.max(head.synced);
            let mut index = Index { marks: Vec::new(), complete: true };
            let limit = found.get(number + 1).map(|next| next.base);
            let read = self.walk_frames(&bytes, limit, &mut index)?;
            segments.push(segment.segment(&head, index));
            self.ts_bound = self.ts_bound.max(head.first_ts);
            if limit != Some(self.at) {
                let rest = bytes[read..].to_vec();
                let last = number + 1 == found.len();
                if last && rest.iter().all(|&byte| byte == 0) {
                    return Ok(None);
                }
                return Ok(Some(Break { segment: number, rest, reason: "a frame is not valid" }));
            }
        }
        Ok(None)
    }

    /// Takes the valid frames at the beginning of `bytes`, up to `limit`; returns how many bytes they have.
    fn walk_frames(
        &mut self,
        bytes: &[u8],
        limit: Option<Position>,
        index: &mut Index,
    ) -> Result<usize, LogError> {
        let mut read = 0;
        while limit != Some(self.at) {
            let Some(head) = right_in_itself(&bytes[read..], self.at) else { break };
            let repeats = head.class == Class::Local && head.ts == self.ts_bound;
            let continues = head.previous == self.checksum && (head.ts > self.ts_bound || repeats);
            if !continues || limit.is_some_and(|limit| head.end() > limit) {
                break;
            }
            index.note(head.position, head.ts);
            self.take(&head, &bytes[read..])?;
            read += head.size();
        }
        Ok(read)
    }

    fn take(&mut self, head: &Head, bytes: &[u8]) -> Result<(), LogError> {
        let frame = head.frame(bytes);
        if head.position >= self.start_at {
            (self.replay)(&frame)?;
            self.replayed += 1;
        }
        if head.class == Class::Oplog {
            self.newest = Some(Stamp { optime: frame.optime, wall: frame.wall });
        }
        self.at = frame.end;
        self.checksum = head.checksum;
        self.last = frame.optime;
        self.ts_bound = head.ts;
        self.start_seen |= self.at == self.start_at;
        self.stated = self.stated.max(head.synced);
        Ok(())
    }
}

/// Errs if anything states that bytes at or after `end` were durable.
fn refuse_damage(found: &[Found], broken: &Break, end: Position, stated: Position) -> Result<(), LogError> {
    let mut stated = stated;
    for later in &found[broken.segment..] {
        stated = stated.max(later.head.map_or(0, |head| head.synced));
    }
    if stated <= end {
        stated = stated.max(latest_statement(&broken.rest, end.max(found[broken.segment].base)));
    }
    for later in &found[broken.segment + 1..] {
        if stated <= end {
            let bytes = later.file.read_to_end_at(SEGMENT_HEAD as u64);
            let bytes = bytes.map_err(|error| LogError::io("read", &later.path, &error))?;
            stated = stated.max(latest_statement(&bytes, later.base));
        }
    }
    if stated <= end {
        return Ok(());
    }
    let reason = format!("{}, but everything up to {stated} was durable; nothing was changed", broken.reason);
    Err(LogError::corrupt(&found[broken.segment].path, end, reason))
}

/// The highest `synced` of the frames in `bytes` that are right in themselves. `bytes` begin at `position`, but not
/// necessarily with a frame.
fn latest_statement(bytes: &[u8], position: Position) -> Position {
    const PAGE: usize = 4096;
    let mut latest = 0;
    let mut at = 0;
    while at + FRAME_HEAD <= bytes.len() {
        if bytes[at..].first_chunk::<PAGE>().is_some_and(|page| *page == [0; PAGE]) {
            at += PAGE - FRAME_HEAD;
            continue;
        }
        let here = position + at as u64;
        let possible = bytes[at + 8..at + 16] == here.to_le_bytes();
        match possible.then(|| right_in_itself(&bytes[at..], here)).flatten() {
            Some(head) => {
                latest = latest.max(head.synced);
                at += head.size();
            }
            None => at += 1,
        }
    }
    latest
}

/// Removes everything from `end` on, the last names first, so that an interrupted cut leaves a shorter tail and no hole.
fn cut(
    files: &dyn Files,
    dir: &Path,
    found: &[Found],
    broken: &Break,
    end: Position,
) -> Result<Option<TornTail>, LogError> {
    let mut bytes = meaningful(&broken.rest);
    // A segment without a valid place in the stream goes as a whole; of one with valid frames, or none yet, the head
    // stays.
    let segment = &found[broken.segment];
    let keep = segment.head.is_some() && segment.base <= end && broken.reason == "a frame is not valid";
    let first_removed = if keep { broken.segment + 1 } else { broken.segment };
    for removed in found[first_removed..].iter().rev() {
        bytes += removed.file.len().map_err(|error| LogError::io("read", &removed.path, &error))?;
        files.remove(&removed.path).map_err(|error| LogError::io("remove", &removed.path, &error))?;
        files.sync_dir(dir).map_err(|error| LogError::io("sync directory", dir, &error))?;
    }
    if keep {
        let io = |error| LogError::io("cut", &segment.path, &error);
        segment.file.set_len(SEGMENT_HEAD as u64 + (end - segment.base)).map_err(io)?;
        segment.file.sync().map_err(io)?;
    }
    Ok((bytes > 0).then_some(TornTail { position: end, bytes }))
}

fn meaningful(bytes: &[u8]) -> u64 {
    bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last as u64 + 1)
}
