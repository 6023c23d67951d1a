//! OP_COMPRESSED: another message, compressed.
//!
//! ```text
//! header  originalOpcode:i32  uncompressedSize:i32  compressorId:u8  compressed bytes
//! ```
//!
//! The compressed bytes are those of the original message *after* its header; the size counts the same bytes. A
//! server that trusted the size instead of what came out disclosed its heap (CVE-2025-14847): here what comes out
//! must be exactly as long as declared, both must fit the limit of the moment, and memory grows with what is
//! produced. A compressed message is never itself OP_COMPRESSED.

use crate::error::{Answer, Malformed};
use crate::header::{HEADER_LENGTH, Header, i32_at, op_code};
use crate::limits::Limits;
use bytes::Bytes;
use document::{Doc, codes};
use std::io::Write;

/// Bytes before the compressed ones, the header included.
const DATA_AT: usize = HEADER_LENGTH + 9;
/// How far output memory runs ahead of what has been produced.
const STEP: usize = 64 * 1024;
/// No snappy element yields more than 64 bytes from 2, so a claim above this is a lie.
const SNAPPY_RATIO_MAX: usize = 64;

/// A compression algorithm by its id on the wire. DO NOT CHANGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Compressor {
    Noop = 0,
    Snappy = 1,
    Zlib = 2,
    Zstd = 3,
}

impl Compressor {
    /// Those offered in hello, in the real server's default order.
    pub const OFFERED: [Compressor; 3] = [Compressor::Snappy, Compressor::Zstd, Compressor::Zlib];

    pub fn from_id(id: u8) -> Option<Compressor> {
        [Compressor::Noop, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd].get(id as usize).copied()
    }
    /// The name in hello's `compression`. The noop compressor is not negotiated there.
    pub fn from_name(name: &str) -> Option<Compressor> {
        Compressor::OFFERED.into_iter().find(|c| c.name() == name)
    }
    pub fn name(self) -> &'static str {
        match self {
            Compressor::Noop => "noop",
            Compressor::Snappy => "snappy",
            Compressor::Zlib => "zlib",
            Compressor::Zstd => "zstd",
        }
    }
}

/// The compressors one connection has negotiated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompressorSet(u8);

impl CompressorSet {
    pub fn insert(&mut self, c: Compressor) {
        self.0 |= 1 << c as u8;
    }
    pub fn contains(self, c: Compressor) -> bool {
        self.0 & (1 << c as u8) != 0
    }
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Compressor> for CompressorSet {
    fn from_iter<I: IntoIterator<Item = Compressor>>(iter: I) -> CompressorSet {
        let mut set = CompressorSet::default();
        iter.into_iter().for_each(|c| set.insert(c));
        set
    }
}

/// What both ends have, in the order of `theirs` (the `compression` array of a hello). Unknown names are ignored.
pub fn negotiate(ours: &[Compressor], theirs: Doc<'_>) -> Vec<Compressor> {
    let mut common = Vec::new();
    for element in theirs.iter() {
        let compressor = element.value().as_str().and_then(Compressor::from_name);
        if let Some(c) = compressor.filter(|c| ours.contains(c) && !common.contains(c)) {
            common.push(c);
        }
    }
    common
}

/// The reusable state of the algorithms, made on first use.
#[derive(Default)]
pub struct Codecs {
    zstd_out: Option<zstd::bulk::Compressor<'static>>,
    zstd_in: Option<zstd::bulk::Decompressor<'static>>,
    snappy: Option<snap::raw::Encoder>,
    scratch: Vec<u8>,
}

impl std::fmt::Debug for Codecs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Codecs")
    }
}

/// The frame inside an OP_COMPRESSED frame: its header rebuilt, its bytes decompressed.
pub(crate) fn unwrap(
    frame: &[u8],
    header: &Header,
    limits: &Limits,
    negotiated: CompressorSet,
    codecs: &mut Codecs,
) -> Result<(Header, Bytes, Compressor), Malformed> {
    let fail = |code: i32, message: String| Err(Malformed::new(header, Answer::Silence, code, message));
    let (Some(original), Some(declared), Some(id)) =
        (i32_at(frame, HEADER_LENGTH), i32_at(frame, HEADER_LENGTH + 4), frame.get(HEADER_LENGTH + 8))
    else {
        return fail(codes::PROTOCOL_ERROR, "OP_COMPRESSED is too short".into());
    };
    if original == op_code::COMPRESSED {
        return fail(codes::PROTOCOL_ERROR, "OP_COMPRESSED within OP_COMPRESSED".into());
    }
    let Some(compressor) = Compressor::from_id(*id).filter(|c| negotiated.contains(*c)) else {
        return fail(codes::BAD_VALUE, format!("Compressor id {id} was not negotiated"));
    };
    let fitting =
        usize::try_from(declared).ok().filter(|n| n.saturating_add(HEADER_LENGTH) <= limits.max_message);
    let Some(declared) = fitting else {
        let message =
            format!("Decompressed message would be {declared} bytes, more than {}", limits.max_message);
        return fail(codes::BAD_VALUE, message);
    };
    let length = (declared + HEADER_LENGTH) as i32;
    let inner = Header { message_length: length, op_code: original, ..*header };
    let mut out = Vec::with_capacity((declared + HEADER_LENGTH).min(STEP));
    out.extend_from_slice(&inner.to_bytes());
    match decompress(compressor, &frame[DATA_AT..], declared, &mut out, codecs) {
        Some(()) => Ok((inner, Bytes::from(out), compressor)),
        None => fail(
            codes::BAD_VALUE,
            format!("Compressed message is not {declared} bytes of {}", compressor.name()),
        ),
    }
}

/// Appends exactly `declared` bytes to `out`, or gives `None`.
fn decompress(
    compressor: Compressor,
    data: &[u8],
    declared: usize,
    out: &mut Vec<u8>,
    codecs: &mut Codecs,
) -> Option<()> {
    let start = out.len();
    match compressor {
        Compressor::Noop => out.extend_from_slice(data),
        Compressor::Snappy => unsnap(data, declared, out)?,
        Compressor::Zlib => inflate(data, declared, out)?,
        Compressor::Zstd => unzstd(data, declared, out, codecs)?,
    }
    (out.len() - start == declared).then_some(())
}

fn unsnap(data: &[u8], declared: usize, out: &mut Vec<u8>) -> Option<()> {
    let claimed = snap::raw::decompress_len(data).ok()?;
    if claimed != declared || claimed > data.len().saturating_mul(SNAPPY_RATIO_MAX) {
        return None;
    }
    let start = out.len();
    out.resize(start + declared, 0);
    let produced = snap::raw::Decoder::new().decompress(data, &mut out[start..]).ok()?;
    (produced == declared).then_some(())
}

fn inflate(data: &[u8], declared: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut inflater = flate2::Decompress::new(true);
    let end = out.len() + declared;
    loop {
        // One byte more than declared, so that a stream which goes on is seen to.
        let room = (end + 1).checked_sub(out.len())?;
        out.reserve(room.min(out.len().max(STEP)));
        let (before_in, before_out) = (inflater.total_in(), out.len());
        let rest = data.get(usize::try_from(before_in).ok()?..)?;
        let status = inflater.decompress_vec(rest, out, flate2::FlushDecompress::None).ok()?;
        if status == flate2::Status::StreamEnd {
            return (inflater.total_in() == data.len() as u64).then_some(());
        }
        if out.len() > end || (inflater.total_in() == before_in && out.len() == before_out) {
            return None;
        }
    }
}

fn unzstd(data: &[u8], declared: usize, out: &mut Vec<u8>, codecs: &mut Codecs) -> Option<()> {
    // A frame that says how long it is must agree. One that does not say is bounded by the declared length.
    let stated = zstd::zstd_safe::get_frame_content_size(data).ok()?;
    if stated.is_some_and(|n| n != declared as u64) {
        return None;
    }
    if codecs.zstd_in.is_none() {
        codecs.zstd_in = Some(zstd::bulk::Decompressor::new().ok()?);
    }
    let decompressor = codecs.zstd_in.as_mut()?;
    // Capacity that is not written to is address space, not memory; `declared` was held against the limit.
    let mut produced = Vec::with_capacity(declared);
    decompressor.decompress_to_buffer(data, &mut produced).ok()?;
    out.extend_from_slice(&produced);
    Some(())
}

/// Replaces the finished message at `start` by its OP_COMPRESSED form. Left as it is if the algorithm fails, which
/// is a correct message too.
pub fn compress_in_place(out: &mut Vec<u8>, start: usize, compressor: Compressor, codecs: &mut Codecs) {
    let Some(header) = out.get(start..).and_then(Header::parse) else { return };
    let plain_at = start + HEADER_LENGTH;
    let plain_length = out.len() - plain_at;
    let mut compressed = std::mem::take(&mut codecs.scratch);
    compressed.clear();
    if compress(compressor, &out[plain_at..], &mut compressed, codecs).is_some() {
        out.truncate(plain_at);
        out[start + 12..start + 16].copy_from_slice(&op_code::COMPRESSED.to_le_bytes());
        out.extend_from_slice(&header.op_code.to_le_bytes());
        out.extend_from_slice(&(plain_length as u32).to_le_bytes());
        out.push(compressor as u8);
        out.extend_from_slice(&compressed);
        crate::encode::finish(out, start);
    }
    if compressed.capacity() <= crate::writer::KEPT_CAPACITY {
        codecs.scratch = compressed;
    }
}

fn compress(compressor: Compressor, plain: &[u8], out: &mut Vec<u8>, codecs: &mut Codecs) -> Option<()> {
    match compressor {
        Compressor::Noop => out.extend_from_slice(plain),
        Compressor::Snappy => {
            out.resize(snap::raw::max_compress_len(plain.len()), 0);
            let encoder = codecs.snappy.get_or_insert_with(snap::raw::Encoder::new);
            let length = encoder.compress(plain, out).ok()?;
            out.truncate(length);
        }
        Compressor::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(&mut *out, flate2::Compression::default());
            encoder.write_all(plain).and_then(|()| encoder.finish().map(drop)).ok()?;
        }
        Compressor::Zstd => {
            if codecs.zstd_out.is_none() {
                codecs.zstd_out = Some(zstd::bulk::Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL).ok()?);
            }
            out.reserve(zstd::zstd_safe::compress_bound(plain.len()));
            codecs.zstd_out.as_mut()?.compress_to_buffer(plain, out).ok()?;
        }
    }
    Some(())
}
