//! The MongoDB wire protocol: frames, their messages, compression and limits, for servers and for clients.
//!
//! ```text
//! bytes of a socket -> FrameReader -> Message::{Msg, Query, Reply}      every document in it validated
//! closure over DocWriter -> encode / FrameWriter -> one write           no copy between
//! client::{Connection, Pool}                                            the other end, for our own nodes
//! ```
//!
//! Every error of the reading side is typed ([`FrameError`]): a malformed message carries what the protocol
//! allows to be answered, and always ends its connection.
//!
//! Invariant: nothing here knows a command, except hello's two legacy names (OP_QUERY) and the client's hello.
//! Invariant: a length that a peer claims bounds what is read; it is the size of an allocation only once a mebibyte of the message is here
//! and all of it is charged to the node's [`InputBudget`].

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on the machine's clock")
)]

pub mod budget;
pub mod client;
pub mod encode;
pub mod error;
pub mod header;
pub mod limits;
pub mod op_compressed;
pub mod op_msg;
pub mod op_query;
pub mod op_reply;
pub mod proxy_header;
pub mod reader;
pub mod scram;
#[cfg(test)]
mod tests;
pub mod writer;

pub use budget::InputBudget;
pub use error::{Answer, FrameError, Malformed};
pub use header::Header;
pub use limits::Limits;
pub use op_compressed::{Compressor, CompressorSet};
pub use op_msg::{Docs, OpMsg, Sequence};
pub use op_query::OpQuery;
pub use op_reply::OpReply;
pub use reader::{FrameReader, decode, decode_uncompressed};
pub use writer::{FrameWriter, ReplyTo};

/// One message, decompressed and validated. A server meets `Msg` and `Query`; `Reply` answers a client's OP_QUERY.
#[derive(Debug)]
pub enum Message {
    Msg(OpMsg),
    Query(OpQuery),
    Reply(OpReply),
}

impl Message {
    pub fn request_id(&self) -> i32 {
        match self {
            Message::Msg(m) => m.request_id(),
            Message::Query(m) => m.request_id(),
            Message::Reply(m) => m.request_id(),
        }
    }
    pub fn response_to(&self) -> i32 {
        match self {
            Message::Msg(m) => m.response_to(),
            Message::Query(_) => 0,
            Message::Reply(m) => m.response_to(),
        }
    }
    /// The command document, or the first document of an OP_REPLY.
    pub fn body(&self) -> document::Doc<'_> {
        match self {
            Message::Msg(m) => m.body(),
            Message::Query(m) => m.body(),
            Message::Reply(m) => m.body(),
        }
    }
}
