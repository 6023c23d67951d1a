//! What a peer may send.

/// `maxMessageSizeBytes` of hello.
pub const MAX_MESSAGE: usize = 48_000_000;
/// `maxBsonObjectSize` of hello: the largest document a user may store.
pub const MAX_USER_DOCUMENT: usize = 16 * 1024 * 1024;
/// The largest document in a message: a stored document and room for the command around it.
pub const MAX_DOCUMENT: usize = MAX_USER_DOCUMENT + 16 * 1024;
/// What a connection may send before it has authenticated, where authentication is on.
pub const MAX_MESSAGE_BEFORE_AUTHENTICATION: usize = 16_384;
pub const MAX_NESTING: usize = 200;
/// Document sequences in one message. Commands use two at most; the bound keeps the search for duplicates short.
pub const MAX_SEQUENCES: usize = 16;

/// The limits of one read. A server passes them anew for every message, since authentication lifts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole message with its header, both as sent and decompressed.
    pub max_message: usize,
    /// Bytes of one document.
    pub max_document: usize,
    /// Documents within documents.
    pub max_nesting: usize,
}

impl Limits {
    pub const STANDARD: Limits =
        Limits { max_message: MAX_MESSAGE, max_document: MAX_DOCUMENT, max_nesting: MAX_NESTING };
    /// Of a request on a multiplexed connection, where a longer one would hold the others up.
    pub const MULTIPLEXED: Limits = Limits { max_message: 16 * 1024, ..Limits::STANDARD };
    /// Between nodes: a router adds versions and sessions to a message that is as long as a client's may be, and a log entry is
    /// longer and deeper than what it has stored, in a reply that is deeper again.
    pub const BETWEEN_NODES: Limits = Limits {
        max_message: MAX_MESSAGE + 64 * 1024,
        max_document: MAX_MESSAGE,
        max_nesting: document::validate::DEPTH_BETWEEN_NODES,
    };
    pub const BEFORE_AUTHENTICATION: Limits =
        Limits { max_message: MAX_MESSAGE_BEFORE_AUTHENTICATION, ..Limits::STANDARD };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::STANDARD
    }
}
