//! The sixteen bytes before every message.
//!
//! ```text
//! messageLength:i32  requestID:i32  responseTo:i32  opCode:i32      all little-endian; the length counts itself
//! ```

/// Bytes of a header. DO NOT CHANGE.
pub const HEADER_LENGTH: usize = 16;

/// The opcodes this protocol has had. DO NOT CHANGE.
pub mod op_code {
    pub const REPLY: i32 = 1;
    pub const UPDATE: i32 = 2001;
    pub const INSERT: i32 = 2002;
    pub const QUERY: i32 = 2004;
    pub const GET_MORE: i32 = 2005;
    pub const DELETE: i32 = 2006;
    pub const KILL_CURSORS: i32 = 2007;
    pub const COMPRESSED: i32 = 2012;
    pub const MSG: i32 = 2013;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub message_length: i32,
    pub request_id: i32,
    pub response_to: i32,
    pub op_code: i32,
}

impl Header {
    /// Reads the first sixteen bytes; `None` when there are fewer.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        Some(Header {
            message_length: i32_at(bytes, 0)?,
            request_id: i32_at(bytes, 4)?,
            response_to: i32_at(bytes, 8)?,
            op_code: i32_at(bytes, 12)?,
        })
    }
    /// Writes another request id into a message.
    pub(crate) fn set_request_id(message: &mut [u8], id: i32) {
        message[4..8].copy_from_slice(&id.to_le_bytes());
    }
    pub fn to_bytes(self) -> [u8; HEADER_LENGTH] {
        let mut bytes = [0; HEADER_LENGTH];
        bytes[0..4].copy_from_slice(&self.message_length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.request_id.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.response_to.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.op_code.to_le_bytes());
        bytes
    }
}

/// The little-endian int32 at `at`, if the bytes reach that far.
#[inline]
pub(crate) fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}
