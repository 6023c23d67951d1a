//! Writes replies to a stream: built in one reusable buffer, sent in one write.

use crate::op_compressed::{Codecs, Compressor, compress_in_place};
use crate::op_msg::CHECKSUM_PRESENT;
use crate::{Message, encode, op_reply};
use document::{Doc, DocWriter};
use std::io;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// A buffer that grew beyond this for a long message is not kept.
pub(crate) const KEPT_CAPACITY: usize = 1024 * 1024;

/// What a reply must know of its request; small, so that the request itself can be dropped or given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    pub request_id: i32,
    /// The request had a checksum, so the reply has one.
    pub checksum: bool,
    /// The request was compressed with it, so the reply is.
    pub compressor: Option<Compressor>,
    /// The request was an OP_QUERY, so the reply is an OP_REPLY.
    pub legacy: bool,
}

impl ReplyTo {
    pub fn to(message: &Message) -> ReplyTo {
        let plain =
            ReplyTo { request_id: message.request_id(), checksum: false, compressor: None, legacy: false };
        match message {
            Message::Msg(m) => ReplyTo { checksum: m.has_checksum(), compressor: m.compressor(), ..plain },
            Message::Query(_) => ReplyTo { legacy: true, ..plain },
            Message::Reply(_) => plain,
        }
    }
}

#[derive(Debug)]
pub struct FrameWriter<W> {
    stream: W,
    buffer: Vec<u8>,
    codecs: Codecs,
    last_id: i32,
}

impl<W> FrameWriter<W> {
    pub fn new(stream: W) -> FrameWriter<W> {
        FrameWriter { stream, buffer: Vec::new(), codecs: Codecs::default(), last_id: 0 }
    }
    pub fn stream_mut(&mut self) -> &mut W {
        &mut self.stream
    }

    /// Builds a reply and returns its bytes, which [`FrameWriter::send`] then sends. `flags` are those of an OP_MSG
    /// (only MORE_TO_COME makes sense); an OP_REPLY has none.
    pub fn build(&mut self, to: &ReplyTo, flags: u32, f: impl FnOnce(&mut DocWriter<'_>)) -> &[u8] {
        self.last_id = self.last_id.wrapping_add(1);
        self.buffer.clear();
        let id = self.last_id;
        if to.legacy {
            op_reply::write(&mut self.buffer, id, to.request_id, 0, f);
        } else {
            // A compressed message carries no checksum, as the real server's do not.
            let checksum = if to.checksum && to.compressor.is_none() { CHECKSUM_PRESENT } else { 0 };
            encode::msg(&mut self.buffer, id, to.request_id, flags | checksum, f);
        }
        if let Some(compressor) = to.compressor {
            compress_in_place(&mut self.buffer, 0, compressor, &mut self.codecs);
        }
        &self.buffer
    }
    /// The id of the last message built. A client's next exhaust request never comes: the reply that follows
    /// answers this one.
    pub fn last_request_id(&self) -> i32 {
        self.last_id
    }
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    /// Sends what was built last. Returns its length.
    pub async fn send(&mut self) -> io::Result<usize> {
        let length = self.buffer.len();
        let sent = self.stream.write_all(&self.buffer).await;
        if self.buffer.capacity() > KEPT_CAPACITY {
            self.buffer = Vec::new();
        }
        sent.map(|()| length)
    }
    /// Builds and sends a reply. Returns its length.
    pub async fn reply(
        &mut self,
        to: &ReplyTo,
        flags: u32,
        f: impl FnOnce(&mut DocWriter<'_>),
    ) -> io::Result<usize> {
        self.build(to, flags, f);
        self.send().await
    }
    /// Sends a reply that is already a document.
    pub async fn reply_doc(&mut self, to: &ReplyTo, flags: u32, reply: Doc<'_>) -> io::Result<usize> {
        self.reply(to, flags, |w| w.fields_of(reply)).await
    }
    /// Sends bytes that are a whole message already, e.g. [`crate::Malformed::reply`].
    pub async fn send_raw(&mut self, message: &[u8]) -> io::Result<()> {
        self.stream.write_all(message).await
    }
}
