//! Why a message could not be read, what may be said about it, and whether the connection goes on.

use crate::header::Header;
use crate::{encode, op_reply};
use document::Error;
use std::io;

/// Codes of this layer which the table of `document` does not name.
pub(crate) mod code {
    pub(crate) const ILLEGAL_OP_MSG_FLAG: i32 = 223;
    pub(crate) const CHECKSUM_MISMATCH: i32 = 288;
    pub(crate) const MULTIPLE_BODIES: i32 = 40430;
    pub(crate) const DUPLICATE_SEQUENCE: i32 = 40431;
    pub(crate) const UNKNOWN_SECTION: i32 = 40432;
    pub(crate) const SEQUENCE_IN_BODY: i32 = 40433;
    pub(crate) const NO_BODY: i32 = 40587;
    pub(crate) const OPCODE_REMOVED: i32 = 5739101;
}

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer closed between two messages.
    #[error("connection closed")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{}", .0.error)]
    Malformed(Box<Malformed>),
}

impl From<Malformed> for FrameError {
    fn from(m: Malformed) -> FrameError {
        FrameError::Malformed(Box::new(m))
    }
}

/// In which form the peer can be told. Nothing is said to bytes that are not a message, to a message that asked
/// for no reply, and where the real server closes in silence (illegal flags, a wrong checksum).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Silence,
    OpMsg,
    OpReply,
}

/// A message that broke the protocol.
#[derive(Clone, Debug)]
pub struct Malformed {
    /// Of the broken message; 0 when not even its header made sense.
    pub request_id: i32,
    pub answer: Answer,
    /// The frame was whole, and only what it holds was wrong: after the answer, if there is one, the next message can be read. Of
    /// any other the connection must be closed.
    pub goes_on: bool,
    pub error: Error,
}

impl Malformed {
    pub(crate) fn new(header: &Header, answer: Answer, code: i32, message: impl Into<String>) -> Malformed {
        Malformed::from_error(header, answer, Error::new(code, message))
    }
    pub(crate) fn from_error(header: &Header, answer: Answer, error: Error) -> Malformed {
        Malformed { request_id: header.request_id, answer, goes_on: false, error }
    }
    /// The same, where the frame around it was whole.
    pub(crate) fn in_whole_frame(self) -> Malformed {
        Malformed { goes_on: true, ..self }
    }
    pub fn code(&self) -> i32 {
        self.error.code
    }
    pub fn message(&self) -> &str {
        &self.error.message
    }
    /// The bytes to send, or `None` for [`Answer::Silence`].
    pub fn reply(&self) -> Option<Vec<u8>> {
        let reply = self.error.to_reply().to_doc_buf();
        let mut out = Vec::with_capacity(reply.bytes().len() + 64);
        match self.answer {
            Answer::Silence => return None,
            Answer::OpMsg => encode::msg(&mut out, 1, self.request_id, 0, |w| w.fields_of(reply.doc())),
            Answer::OpReply => op_reply::write(&mut out, 1, self.request_id, 0, |w| w.fields_of(reply.doc())),
        }
        Some(out)
    }
}
