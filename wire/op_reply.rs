//! OP_REPLY, the answer to an OP_QUERY.
//!
//! ```text
//! header  responseFlags:i32  cursorID:i64  startingFrom:i32  numberReturned:i32  document*
//! ```

use crate::encode;
use crate::error::{Answer, Malformed};
use crate::header::{HEADER_LENGTH, Header, i32_at, op_code};
use crate::limits::Limits;
use bytes::Bytes;
use document::{Doc, DocWriter, codes};

/// The server can answer getMore with awaitData; always set by the real server.
pub const AWAIT_CAPABLE: i32 = 8;
/// The one document is an error `{$err, code}`.
pub const QUERY_FAILURE: i32 = 2;

const DOCUMENTS_AT: usize = HEADER_LENGTH + 20;

/// A parsed OP_REPLY of exactly one document, which is all a command ever gives.
#[derive(Clone, Debug)]
pub struct OpReply {
    frame: Bytes,
    header: Header,
}

impl OpReply {
    pub fn request_id(&self) -> i32 {
        self.header.request_id
    }
    pub fn response_to(&self) -> i32 {
        self.header.response_to
    }
    pub fn flags(&self) -> i32 {
        i32_at(&self.frame, HEADER_LENGTH).unwrap_or(0)
    }
    pub fn body(&self) -> Doc<'_> {
        Doc::from_validated(&self.frame[DOCUMENTS_AT..])
    }
}

pub(crate) fn parse(frame: Bytes, header: Header, limits: &Limits) -> Result<OpReply, Malformed> {
    let fail = |message| Malformed::new(&header, Answer::Silence, codes::PROTOCOL_ERROR, message);
    if i32_at(&frame, HEADER_LENGTH + 16) != Some(1) {
        return Err(fail("OP_REPLY without exactly one document"));
    }
    let document = frame.get(DOCUMENTS_AT..).ok_or_else(|| fail("OP_REPLY is too short"))?;
    crate::reader::validate(document, limits)
        .map_err(|e| Malformed::from_error(&header, Answer::Silence, e))?;
    Ok(OpReply { frame, header })
}

/// Appends an OP_REPLY with the one document that `f` writes.
pub fn write(
    out: &mut Vec<u8>,
    request_id: i32,
    response_to: i32,
    flags: i32,
    f: impl FnOnce(&mut DocWriter<'_>),
) {
    let start = encode::begin(out, request_id, response_to, op_code::REPLY);
    out.extend_from_slice(&(flags | AWAIT_CAPABLE).to_le_bytes());
    out.extend_from_slice(&0i64.to_le_bytes());
    out.extend_from_slice(&0i32.to_le_bytes());
    out.extend_from_slice(&1i32.to_le_bytes());
    DocWriter::write(out, f);
    encode::finish(out, start);
}
