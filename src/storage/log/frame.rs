//! The bytes of a frame; the table stands at the head of `mod.rs`.

use super::{OpTime, Position};

/// Bytes of a frame before its payload. DO NOT CHANGE.
pub const FRAME_HEAD: usize = 56;

/// Largest payload, in bytes; a longer length in a file is taken for damage. May grow, never shrink. DO NOT CHANGE.
pub const MAX_PAYLOAD: u64 = 64 << 20;

/// Which view of the log shows a frame. DO NOT CHANGE the numbers: they are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// An oplog entry: shown in `local.oplog.rs`, replicated.
    Oplog = 1,
    /// Local to this node (database `local`, profiles): neither shown nor replicated.
    Local = 2,
}

impl Class {
    pub(super) fn from_byte(byte: u8) -> Option<Class> {
        match byte {
            1 => Some(Class::Oplog),
            2 => Some(Class::Local),
            _ => None,
        }
    }
}

/// A frame, its payload borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRef<'a> {
    /// Where the frame begins.
    pub position: Position,
    /// Where it ends and the next begins.
    pub end: Position,
    /// Timestamp and term.
    pub optime: OpTime,
    /// Wall time of the append, milliseconds since 1970.
    pub wall: i64,
    /// Its class.
    pub class: Class,
    /// The bytes that were appended.
    pub payload: &'a [u8],
}

impl FrameRef<'_> {
    /// A copy that owns its payload.
    pub fn to_owned(&self) -> Frame {
        Frame {
            position: self.position,
            end: self.end,
            optime: self.optime,
            wall: self.wall,
            class: self.class,
            payload: self.payload.to_vec(),
        }
    }
}

/// A frame that owns its payload; fields as in [`FrameRef`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Frame {
    pub position: Position,
    pub end: Position,
    pub optime: OpTime,
    pub wall: i64,
    pub class: Class,
    pub payload: Vec<u8>,
}

/// The head of a frame as it stands in memory or in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: u32,
    pub(super) class: Class,
    pub(super) position: Position,
    pub(super) term: i64,
    pub(super) ts: u64,
    pub(super) wall: i64,
    pub(super) synced: Position,
    pub(super) previous: u32,
    pub(super) checksum: u32,
}

impl Head {
    /// The bytes; `previous` and `checksum` are usually still zero and filled in by [`seal`].
    pub(super) fn encode(&self) -> [u8; FRAME_HEAD] {
        let mut bytes = [0; FRAME_HEAD];
        bytes[0..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4] = self.class as u8;
        bytes[8..16].copy_from_slice(&self.position.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.term.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.ts.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.wall.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.synced.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.previous.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// The head at the beginning of `bytes`, if there are enough of them and class, zeros and length are possible.
    pub(super) fn decode(bytes: &[u8]) -> Option<Head> {
        let bytes: &[u8; FRAME_HEAD] = bytes.first_chunk()?;
        let head = Head {
            length: u32_at(bytes, 0),
            class: Class::from_byte(bytes[4])?,
            position: u64_at(bytes, 8),
            term: u64_at(bytes, 16) as i64,
            ts: u64_at(bytes, 24),
            wall: u64_at(bytes, 32) as i64,
            synced: u64_at(bytes, 40),
            previous: u32_at(bytes, 48),
            checksum: u32_at(bytes, 52),
        };
        let possible = u64::from(head.length) <= MAX_PAYLOAD && bytes[5..8] == [0; 3];
        let in_range = head.position.checked_add(FRAME_HEAD as u64 + MAX_PAYLOAD).is_some();
        (possible && in_range).then_some(head)
    }

    /// Bytes of the whole frame.
    pub(super) fn size(&self) -> usize {
        FRAME_HEAD + self.length as usize
    }

    /// Where the next frame begins.
    pub(super) fn end(&self) -> Position {
        self.position + self.size() as u64
    }

    /// The frame that begins with this head, `bytes` being the frame.
    pub(super) fn frame<'a>(&self, bytes: &'a [u8]) -> FrameRef<'a> {
        FrameRef {
            position: self.position,
            end: self.end(),
            optime: OpTime { ts: self.ts, term: self.term },
            wall: self.wall,
            class: self.class,
            payload: &bytes[FRAME_HEAD..self.size()],
        }
    }
}

fn u32_at(bytes: &[u8; FRAME_HEAD], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

fn u64_at(bytes: &[u8; FRAME_HEAD], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}

/// Fills in what only the writer knows and returns the checksum. `frame` is one whole frame.
pub(super) fn seal(frame: &mut [u8], synced: Position, previous: u32) -> u32 {
    frame[40..48].copy_from_slice(&synced.to_le_bytes());
    frame[48..52].copy_from_slice(&previous.to_le_bytes());
    let checksum = checksum(frame);
    frame[52..56].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

fn checksum(frame: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&frame[..52]), &frame[FRAME_HEAD..])
}

/// The frame at the beginning of `bytes` if it is right in itself and stands at `position`.
pub(super) fn right_in_itself(bytes: &[u8], position: Position) -> Option<Head> {
    let head = Head::decode(bytes)?;
    let frame = bytes.get(..head.size())?;
    (head.position == position && head.checksum == checksum(frame)).then_some(head)
}
