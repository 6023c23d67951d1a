//! One segment file: its head, its name, and a sparse index of its frames. The bytes are described in `mod.rs`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;

use super::{LogError, Position};
use crate::files::File;

/// Bytes before the first frame. DO NOT CHANGE.
pub(super) const SEGMENT_HEAD: usize = 64;

/// First bytes of every segment. DO NOT CHANGE.
const MAGIC: [u8; 8] = *b"TSSRALOG";

/// Version of segment heads and frames. Another number is another format: opening refuses it.
const VERSION: u32 = 1;

/// An index entry for about every so many bytes.
pub(super) const INDEX_STEP: u64 = 64 << 10;

/// The head of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHead {
    pub(super) previous: u32,
    pub(super) base: Position,
    pub(super) first_ts: u64,
    pub(super) synced: Position,
}

impl SegmentHead {
    pub(super) fn encode(&self) -> [u8; SEGMENT_HEAD] {
        let mut bytes = [0; SEGMENT_HEAD];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.previous.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.base.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_ts.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.synced.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The head in `bytes`; none if they are not one. A right checksum around another version is an error, because
    /// cutting the file as torn would destroy what a newer release wrote.
    pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<Option<SegmentHead>, LogError> {
        let Some(bytes) = bytes.first_chunk::<SEGMENT_HEAD>() else { return Ok(None) };
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if bytes[..8] != MAGIC || u32_at(60) != crc32c::crc32c(&bytes[..60]) {
            return Ok(None);
        }
        let head =
            SegmentHead { previous: u32_at(12), base: u64_at(16), first_ts: u64_at(24), synced: u64_at(32) };
        match u32_at(8) {
            VERSION => Ok(Some(head)),
            other => {
                let reason = format!("format version {other}, this release reads {VERSION}");
                Err(LogError::corrupt(path, head.base, reason))
            }
        }
    }
}

/// The path of the segment that begins at `base`. DO NOT CHANGE.
pub(super) fn segment_path(dir: &Path, base: Position) -> PathBuf {
    dir.join(format!("log-{base:016x}.seg"))
}

/// The position a segment's name states, if it is the name of a segment.
pub(super) fn segment_base(name: &str) -> Option<Position> {
    let digits = name.strip_prefix("log-")?.strip_suffix(".seg")?;
    (digits.len() == 16).then(|| Position::from_str_radix(digits, 16).ok()).flatten()
}

/// Where a frame begins, and its timestamp.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) position: Position,
    pub(super) ts: u64,
}

/// Marks of a segment; those of a segment that was not read when the log was opened are made at the first search.
#[derive(Default)]
pub(super) struct Index {
    pub(super) marks: Vec<Mark>,
    pub(super) complete: bool,
}

impl Index {
    /// Notes a frame if the last mark is far enough behind.
    pub(super) fn note(&mut self, position: Position, ts: u64) {
        if self.marks.last().is_none_or(|last| position >= last.position + INDEX_STEP) {
            self.marks.push(Mark { position, ts });
        }
    }
}

/// An open segment.
pub(super) struct Segment {
    pub(super) base: Position,
    pub(super) first_ts: u64,
    /// Checksum of the last frame before this segment.
    pub(super) previous: u32,
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn File>,
    pub(super) index: RwLock<Index>,
}

impl Segment {
    /// Where the frame at `position` stands in the file.
    pub(super) fn offset(&self, position: Position) -> u64 {
        SEGMENT_HEAD as u64 + (position - self.base)
    }
}
