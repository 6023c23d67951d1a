//! OP_MSG, the message of every command and reply.
//!
//! ```text
//! header  flagBits:u32  section+  [checksum:u32 CRC-32C of everything before it]
//! section := 0x00 document                                      exactly one, the body
//!          | 0x01 size:i32 identifier 0x00 document*            size counts itself, the name and the documents
//! ```
//!
//! Bits 0-15 of the flags are *required*: a reader that does not know one must refuse the message. Bits 16-31 are
//! optional. A sequence stands for the array field of its name, so a name may appear once, counting the body's
//! own fields. The frame stays one piece of memory: body and sequences are ranges of it.

use crate::error::{Answer, Malformed, code};
use crate::header::{HEADER_LENGTH, Header, i32_at};
use crate::limits::{Limits, MAX_SEQUENCES};
use crate::op_compressed::Compressor;
use bytes::Bytes;
use document::{Doc, DocBuf, DocWriter, codes};
use std::ops::Range;

/// The message ends in a checksum. DO NOT CHANGE.
pub const CHECKSUM_PRESENT: u32 = 1;
/// Of a request: no reply is wanted. Of a reply: another one follows without a request.
pub const MORE_TO_COME: u32 = 1 << 1;
/// The client is ready for replies with [`MORE_TO_COME`].
pub const EXHAUST_ALLOWED: u32 = 1 << 16;
/// Of a message of a multiplexed connection, between nodes of this kind: it ends its request as the close of a connection
/// of its own would have, without a reply.
pub const NO_REPLY: u32 = 1 << 17;
/// The first field of a request of a multiplexed connection which says that nobody waits any longer for the reply to the
/// request of the given id. It is sent with [`MORE_TO_COME`].
pub const ABANDON: &str = "_abandon";

const KNOWN_REQUIRED: u32 = CHECKSUM_PRESENT | MORE_TO_COME;
const REQUIRED: u32 = 0xFFFF;

/// Where the sections start.
pub(crate) const SECTIONS_AT: usize = HEADER_LENGTH + 4;

/// A parsed OP_MSG: the frame's bytes, and where its parts are.
#[derive(Clone, Debug)]
pub struct OpMsg {
    frame: Bytes,
    header: Header,
    flags: u32,
    body: Range<u32>,
    sequences: Vec<Sequence>,
    compressor: Option<Compressor>,
    wire_length: usize,
}

/// A document sequence, as ranges of the frame of the [`OpMsg`] it belongs to.
#[derive(Clone, Debug)]
pub struct Sequence {
    identifier: Range<u32>,
    documents: Range<u32>,
    count: usize,
}

impl Sequence {
    /// How many documents it has.
    pub fn len(&self) -> usize {
        self.count
    }
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl OpMsg {
    pub fn request_id(&self) -> i32 {
        self.header.request_id
    }
    pub fn response_to(&self) -> i32 {
        self.header.response_to
    }
    pub fn flags(&self) -> u32 {
        self.flags
    }
    pub fn more_to_come(&self) -> bool {
        self.flags & MORE_TO_COME != 0
    }
    pub fn exhaust_allowed(&self) -> bool {
        self.flags & EXHAUST_ALLOWED != 0
    }
    pub fn has_checksum(&self) -> bool {
        self.flags & CHECKSUM_PRESENT != 0
    }
    /// What it was compressed with, which is what its reply is to be compressed with.
    pub fn compressor(&self) -> Option<Compressor> {
        self.compressor
    }
    /// Bytes it took on the wire, for network statistics.
    pub fn wire_length(&self) -> usize {
        self.wire_length
    }
    pub fn body(&self) -> Doc<'_> {
        Doc::from_validated(slice(&self.frame, &self.body))
    }
    /// The body without copying, as shared bytes of the frame.
    pub fn body_bytes(&self) -> Bytes {
        self.frame.slice(self.body.start as usize..self.body.end as usize)
    }
    /// The name of the body's first field, which names the command. Empty for an empty body.
    pub fn command_name(&self) -> &str {
        self.body().iter().next().map_or("", |e| e.name())
    }
    pub fn sequences(&self) -> &[Sequence] {
        &self.sequences
    }
    pub fn identifier(&self, sequence: &Sequence) -> &str {
        // Checked to be UTF-8 by `parse`; a sequence of another message can only yield an empty name.
        std::str::from_utf8(slice(&self.frame, &sequence.identifier)).unwrap_or("")
    }
    pub fn documents(&self, sequence: &Sequence) -> Docs<'_> {
        Docs { bytes: slice(&self.frame, &sequence.documents), left: sequence.count }
    }
    /// The documents of the sequence of this name.
    pub fn sequence(&self, identifier: &str) -> Option<Docs<'_>> {
        self.sequences.iter().find(|s| self.identifier(s) == identifier).map(|s| self.documents(s))
    }
    /// The command as one document: the body's fields, then each sequence as the array it stands for.
    pub fn to_single_document(&self) -> DocBuf {
        let mut out = Vec::with_capacity(self.frame.len() + 64);
        DocWriter::write(&mut out, |w| {
            w.fields_of(self.body());
            for sequence in &self.sequences {
                w.array_with(self.identifier(sequence), |w| {
                    for (i, doc) in self.documents(sequence).enumerate() {
                        w.with_index(i, |w, name| w.document(name, doc));
                    }
                });
            }
        });
        DocBuf::from_validated(out)
    }
}

/// The documents of a sequence, in order.
#[derive(Clone, Debug)]
pub struct Docs<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Docs<'a> {
    /// The documents not yet read, back to back.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for Docs<'a> {
    type Item = Doc<'a>;
    fn next(&mut self) -> Option<Doc<'a>> {
        let length = usize::try_from(i32_at(self.bytes, 0)?).ok()?;
        let doc = self.bytes.get(..length)?;
        self.bytes = self.bytes.get(length..)?;
        self.left = self.left.saturating_sub(1);
        Some(Doc::from_validated(doc))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}
impl ExactSizeIterator for Docs<'_> {}

fn slice<'a>(frame: &'a Bytes, range: &Range<u32>) -> &'a [u8] {
    frame.get(range.start as usize..range.end as usize).unwrap_or(&document::raw::EMPTY)
}

/// Parses and validates one decompressed frame, header included, whose length is that of `frame`.
pub(crate) fn parse(
    frame: Bytes,
    header: Header,
    limits: &Limits,
    compressor: Option<Compressor>,
    wire_length: usize,
) -> Result<OpMsg, Malformed> {
    let flags = match i32_at(&frame, HEADER_LENGTH) {
        Some(bits) => bits as u32,
        None => {
            return Err(Malformed::new(&header, Answer::Silence, codes::OVERFLOW, "OP_MSG without flags"));
        }
    };
    check_flags(&header, flags)?;
    let end = sections_end(&frame, &header, flags)?;
    // A request that wants no reply gets none, not even this one.
    let answer = if flags & MORE_TO_COME != 0 { Answer::Silence } else { Answer::OpMsg };
    let mut sections = Sections { frame: &frame, at: SECTIONS_AT, end, limits, header: &header, answer };
    let (body, sequences) = sections.read_all().map_err(Malformed::in_whole_frame)?;
    Ok(OpMsg { header, flags, body, sequences, compressor, wire_length, frame })
}

fn check_flags(header: &Header, flags: u32) -> Result<(), Malformed> {
    if flags & REQUIRED & !KNOWN_REQUIRED == 0 {
        return Ok(());
    }
    let message = format!("Message contains illegal flags value: Ob{flags:032b}");
    Err(Malformed::new(header, Answer::Silence, code::ILLEGAL_OP_MSG_FLAG, message))
}

/// Where the sections end: before the checksum, which is verified, or at the end of the frame.
fn sections_end(frame: &[u8], header: &Header, flags: u32) -> Result<usize, Malformed> {
    if flags & CHECKSUM_PRESENT == 0 {
        return Ok(frame.len());
    }
    let mismatch = |message: &str| Malformed::new(header, Answer::Silence, code::CHECKSUM_MISMATCH, message);
    let end = frame.len().checked_sub(4).filter(|end| *end >= SECTIONS_AT);
    let end = end.ok_or_else(|| mismatch("OP_MSG too short for its checksum"))?;
    if i32_at(frame, end) != Some(crc32c::crc32c(&frame[..end]) as i32) {
        return Err(mismatch("OP_MSG checksum does not match contents"));
    }
    Ok(end)
}

struct Sections<'a> {
    frame: &'a [u8],
    at: usize,
    end: usize,
    limits: &'a Limits,
    header: &'a Header,
    answer: Answer,
}

impl Sections<'_> {
    fn fail<T>(&self, code: i32, message: impl Into<String>) -> Result<T, Malformed> {
        Err(Malformed::new(self.header, self.answer, code, message))
    }

    fn read_all(&mut self) -> Result<(Range<u32>, Vec<Sequence>), Malformed> {
        let mut body = None;
        let mut sequences = Vec::new();
        while self.at < self.end {
            let kind = self.frame[self.at];
            self.at += 1;
            match kind {
                0 if body.is_some() => {
                    return self.fail(code::MULTIPLE_BODIES, "Multiple body sections in message");
                }
                0 => body = Some(self.document(self.end)?),
                1 => self.sequence(&mut sequences)?,
                kind => return self.fail(code::UNKNOWN_SECTION, format!("Unknown section kind {kind}")),
            }
        }
        let Some(body) = body else { return self.fail(code::NO_BODY, "OP_MSG messages must have a body") };
        self.check_clashes(&body, &sequences)?;
        Ok((body, sequences))
    }

    /// Validates the document at the cursor, which must end at or before `end`, and steps over it.
    fn document(&mut self, end: usize) -> Result<Range<u32>, Malformed> {
        let length = i32_at(&self.frame[..end], self.at).and_then(|n| usize::try_from(n).ok());
        let stop =
            length.filter(|n| *n >= 5).and_then(|n| self.at.checked_add(n)).filter(|stop| *stop <= end);
        let Some(stop) = stop else {
            return self.fail(codes::INVALID_BSON, "document length does not fit its message section");
        };
        let range = self.at..stop;
        crate::reader::validate(&self.frame[range.clone()], self.limits)
            .map_err(|e| Malformed::from_error(self.header, self.answer, e))?;
        self.at = stop;
        // Frames are below 2^31 bytes, as their length is an int32.
        Ok(range.start as u32..range.end as u32)
    }

    fn sequence(&mut self, sequences: &mut Vec<Sequence>) -> Result<(), Malformed> {
        if sequences.len() == MAX_SEQUENCES {
            return self.fail(code::DUPLICATE_SEQUENCE, "Too many document sequences in OP_MSG");
        }
        let size = i32_at(&self.frame[..self.end], self.at).and_then(|n| usize::try_from(n).ok());
        let stop = size.filter(|n| *n >= 5).and_then(|n| self.at.checked_add(n)).filter(|s| *s <= self.end);
        let Some(stop) = stop else {
            return self.fail(codes::OVERFLOW, "document sequence size does not fit its message");
        };
        let identifier = self.identifier(stop)?;
        if sequences.iter().any(|s| self.text(&s.identifier) == self.text(&identifier)) {
            let name = String::from_utf8_lossy(self.text(&identifier)).into_owned();
            return self.fail(code::DUPLICATE_SEQUENCE, format!("Duplicate document sequence: {name}"));
        }
        let (start, mut count) = (self.at as u32, 0);
        while self.at < stop {
            self.document(stop)?;
            count += 1;
        }
        sequences.push(Sequence { identifier, documents: start..stop as u32, count });
        Ok(())
    }

    /// Reads the sequence's name, which must end before `stop`, and leaves the cursor at its first document.
    fn identifier(&mut self, stop: usize) -> Result<Range<u32>, Malformed> {
        let start = self.at + 4;
        let Some(length) = self.frame[start..stop].iter().position(|b| *b == 0) else {
            return self.fail(codes::OVERFLOW, "document sequence identifier is not terminated");
        };
        if std::str::from_utf8(&self.frame[start..start + length]).is_err() {
            return self.fail(codes::INVALID_BSON, "document sequence identifier is not valid UTF-8");
        }
        self.at = start + length + 1;
        Ok(start as u32..(start + length) as u32)
    }

    fn text(&self, range: &Range<u32>) -> &[u8] {
        &self.frame[range.start as usize..range.end as usize]
    }

    fn check_clashes(&self, body: &Range<u32>, sequences: &[Sequence]) -> Result<(), Malformed> {
        if sequences.is_empty() {
            return Ok(());
        }
        for element in Doc::from_validated(self.text(body)).iter() {
            if sequences.iter().any(|s| self.text(&s.identifier) == element.name_bytes()) {
                let name = element.name();
                let message = format!("Duplicate field between body and document sequence {name}");
                return self.fail(code::SEQUENCE_IN_BODY, message);
            }
        }
        Ok(())
    }
}
