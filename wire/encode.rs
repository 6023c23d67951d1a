//! Appends messages to a byte buffer. The header goes in first and its length is patched last, so that a document
//! written by a closure lands where it will be sent from.

use crate::header::{Header, op_code};
use crate::op_msg::CHECKSUM_PRESENT;
use document::{Doc, DocWriter};

/// Appends a header with a length still to be patched. Returns where the message starts.
pub fn begin(out: &mut Vec<u8>, request_id: i32, response_to: i32, op_code: i32) -> usize {
    let start = out.len();
    let header = Header { message_length: 0, request_id, response_to, op_code };
    out.extend_from_slice(&header.to_bytes());
    start
}

/// Patches the length of the message that [`begin`] opened at `start`.
pub fn finish(out: &mut [u8], start: usize) {
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Appends a whole OP_MSG with the body that `f` writes and no sequences.
pub fn msg(
    out: &mut Vec<u8>,
    request_id: i32,
    response_to: i32,
    flags: u32,
    f: impl FnOnce(&mut DocWriter<'_>),
) {
    let start = begin_msg(out, request_id, response_to, flags, f);
    finish_msg(out, start);
}

/// Appends an OP_MSG up to the end of its body. Sequences may follow, then [`finish_msg`].
pub fn begin_msg(
    out: &mut Vec<u8>,
    request_id: i32,
    response_to: i32,
    flags: u32,
    f: impl FnOnce(&mut DocWriter<'_>),
) -> usize {
    let start = begin(out, request_id, response_to, op_code::MSG);
    out.extend_from_slice(&flags.to_le_bytes());
    out.push(0);
    DocWriter::write(out, f);
    start
}

/// Appends a document sequence to an open OP_MSG. `identifier` must hold no NUL and clash with nothing else.
pub fn sequence<'a>(out: &mut Vec<u8>, identifier: &str, documents: impl IntoIterator<Item = Doc<'a>>) {
    out.push(1);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(identifier.as_bytes());
    out.push(0);
    for document in documents {
        out.extend_from_slice(document.bytes());
    }
    finish(out, start);
}

/// Closes an OP_MSG: patches its length, and appends the checksum when its flags say that there is one.
pub fn finish_msg(out: &mut Vec<u8>, start: usize) {
    let flags_at = start + crate::header::HEADER_LENGTH;
    if out[flags_at] & CHECKSUM_PRESENT as u8 == 0 {
        return finish(out, start);
    }
    out.extend_from_slice(&[0; 4]);
    finish(out, start);
    let end = out.len() - 4;
    let checksum = crc32c::crc32c(&out[start..end]);
    out[end..].copy_from_slice(&checksum.to_le_bytes());
}

/// Appends an OP_QUERY on `<database>.$cmd`, the way drivers send their first hello.
pub fn query(out: &mut Vec<u8>, request_id: i32, database: &str, f: impl FnOnce(&mut DocWriter<'_>)) {
    let start = begin(out, request_id, 0, op_code::QUERY);
    out.extend_from_slice(&0i32.to_le_bytes());
    out.extend_from_slice(database.as_bytes());
    out.extend_from_slice(b".$cmd\0");
    out.extend_from_slice(&0i32.to_le_bytes());
    out.extend_from_slice(&(-1i32).to_le_bytes());
    DocWriter::write(out, f);
    finish(out, start);
}
