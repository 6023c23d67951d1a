//! Reads messages from a stream.
//!
//! One buffer serves all messages of a connection. A frame is split off it without a copy; once that message is
//! dropped the memory is used again, so a connection that answers before it reads allocates nothing. The declared
//! length is checked first, and memory then grows with the bytes that arrive: at most as much again as is there,
//! or [`READ_AHEAD`]. Only a message that is charged to a budget in full gets its whole memory at once. Waiting for a
//! message is safe to cancel: what has arrived stays in the buffer.
//!
//! A server's reader has an account with the node's [`InputBudget`], and checks long messages away from the threads that serve
//! others ([`LANE_BYTES`]), a few at a time: decompressing and validating 48 MB takes a tenth of a second.

use crate::budget::{Account, InputBudget};
use crate::error::{Answer, FrameError, Malformed};
use crate::header::{HEADER_LENGTH, Header, i32_at, op_code};
use crate::limits::Limits;
use crate::op_compressed::{self, Codecs, Compressor, CompressorSet};
use crate::{Message, op_msg, op_query, op_reply};
use bytes::{Bytes, BytesMut};
use document::{codes, validate};
use runtime::Instant;
use std::io;
use std::sync::{Arc, LazyLock};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Semaphore;

/// The buffer of a quiet connection.
const INITIAL: usize = 16 * 1024;
/// The least room there is before a read.
const READ_MIN: usize = 4 * 1024;
/// How far memory may run ahead of the bytes of a long message.
pub const READ_AHEAD: usize = 64 * 1024;
/// Of a message of which this much has arrived the whole length is charged to the budget.
const CLAIM_BYTES: usize = 1024 * 1024;
/// A message of more bytes, decompressed, is decoded on a thread of its own.
const LANE_BYTES: usize = 1024 * 1024;
/// A buffer that grew beyond this for a long message is not kept.
const KEPT: usize = 1024 * 1024;

#[derive(Debug)]
pub struct FrameReader<R> {
    stream: R,
    buffer: BytesMut,
    /// The room that a new buffer has.
    initial: usize,
    longest: usize,
    compressors: CompressorSet,
    codecs: Codecs,
    account: Option<Account>,
    /// When the first byte of the message that is here in part was seen.
    began: Option<Instant>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(stream: R) -> FrameReader<R> {
        FrameReader {
            stream,
            buffer: BytesMut::new(),
            initial: INITIAL,
            longest: 0,
            compressors: CompressorSet::default(),
            codecs: Codecs::default(),
            account: None,
            began: None,
        }
    }
    /// For a stream on which many messages arrive together: reads as much as [`READ_AHEAD`] at once.
    pub fn gathering(stream: R) -> FrameReader<R> {
        FrameReader { initial: READ_AHEAD, ..FrameReader::new(stream) }
    }
    /// Charges long messages to a budget, and gives up a peer that leaves one half-sent.
    pub fn with_budget(mut self, budget: Arc<InputBudget>) -> FrameReader<R> {
        self.account = Some(Account::new(budget));
        self
    }
    /// The peer is a node: its messages do not wait for the budget.
    pub fn trust(&mut self, trusted: bool) {
        if let Some(account) = &mut self.account {
            account.trusted = trusted;
        }
    }
    /// From now on reads as much at once as a reader made by [`FrameReader::gathering`].
    pub fn gather(&mut self) {
        self.initial = READ_AHEAD;
    }
    pub fn into_stream(self) -> R {
        self.stream
    }
    /// The compressors that messages may use from now on; none until this is called.
    pub fn set_compressors(&mut self, compressors: CompressorSet) {
        self.compressors = compressors;
    }
    /// Bytes that arrived and belong to no message read so far.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
    pub fn stream(&self) -> &R {
        &self.stream
    }
    pub fn stream_mut(&mut self) -> &mut R {
        &mut self.stream
    }

    /// The next message. After any error but a cancelled read, or a message that [goes on](Malformed::goes_on), the stream must be closed.
    pub async fn read(&mut self, limits: &Limits) -> Result<Message, FrameError> {
        let frame = self.frame(limits).await?;
        let bytes = claimed_bytes(&frame, limits).unwrap_or(frame.len());
        match &mut self.account {
            Some(account) if bytes > LANE_BYTES => {
                if !account.raise(memory_of(&frame, frame.len(), limits)).await {
                    return Err(FrameError::Io(io::ErrorKind::TimedOut.into()));
                }
                self.decode_in_lane(frame, *limits).await
            }
            _ => Ok(decode(frame, limits, self.compressors, &mut self.codecs)?),
        }
    }

    async fn decode_in_lane(&mut self, frame: Bytes, limits: Limits) -> Result<Message, FrameError> {
        static LANE: LazyLock<Semaphore> = LazyLock::new(|| {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            Semaphore::new((cores / 2).max(1))
        });
        let _place = LANE.acquire().await;
        let (compressors, mut codecs) = (self.compressors, std::mem::take(&mut self.codecs));
        let decoded = runtime::blocking(move || {
            let message = decode(frame, &limits, compressors, &mut codecs);
            (message, codecs)
        });
        let (message, codecs) = decoded.await.map_err(io::Error::other)?;
        self.codecs = codecs;
        Ok(message?)
    }

    /// The next message as it came, to be decoded by whom it is for: see [`decode_uncompressed`].
    pub async fn read_frame(&mut self, limits: &Limits) -> Result<Bytes, FrameError> {
        self.frame(limits).await
    }
    /// Whether [`FrameReader::read`] would answer, be it with an error, without waiting for the stream.
    pub fn is_ready(&self, limits: &Limits) -> bool {
        let header = Header::parse(&self.buffer);
        header.is_some_and(|h| checked_length(&h, limits).map_or(true, |length| self.buffer.len() >= length))
    }

    /// Waits until the first byte of a message is here, so that a deadline can be put on the rest of it only.
    pub async fn wait(&mut self) -> Result<(), FrameError> {
        if self.buffer.is_empty() { self.fill(1).await } else { Ok(()) }
    }

    /// Waits until a whole message is here, and gives its length.
    pub async fn wait_whole(&mut self, limits: &Limits) -> Result<usize, FrameError> {
        let header = loop {
            match Header::parse(&self.buffer) {
                Some(header) => break header,
                None if self.buffer.is_empty() => self.fill(HEADER_LENGTH).await?,
                None => self.fill_in_time(HEADER_LENGTH, limits).await?,
            }
        };
        let length = checked_length(&header, limits)?;
        while self.buffer.len() < length {
            self.fill_in_time(length, limits).await?;
        }
        self.began = None;
        Ok(length)
    }

    /// Waits until the peer has closed its side or the stream fails. What arrives meanwhile is kept for the next read; of a peer
    /// that sends more than [`READ_AHEAD`] ahead the end is not seen.
    pub async fn wait_closed(&mut self) {
        while self.buffer.len() < READ_AHEAD {
            if self.fill(0).await.is_err() {
                return;
            }
        }
        std::future::pending().await
    }

    async fn frame(&mut self, limits: &Limits) -> Result<Bytes, FrameError> {
        self.give_back_memory();
        if let Some(account) = &mut self.account {
            account.clear();
        }
        let length = self.wait_whole(limits).await?;
        self.longest = self.longest.max(length);
        Ok(self.buffer.split_to(length).freeze())
    }

    async fn fill(&mut self, wanted: usize) -> Result<(), FrameError> {
        fill(&mut self.stream, &mut self.buffer, self.initial, wanted).await
    }

    /// As [`FrameReader::fill`], for the rest of a message: within the budget and its time, where there is one.
    async fn fill_in_time(&mut self, wanted: usize, limits: &Limits) -> Result<(), FrameError> {
        let Some(account) = &mut self.account else { return self.fill(wanted).await };
        let late = || FrameError::Io(io::ErrorKind::TimedOut.into());
        let have = self.buffer.len();
        if wanted > READ_AHEAD {
            let asked = Instant::now();
            let room = match have < CLAIM_BYTES {
                true => wanted.min(have.max(READ_AHEAD).saturating_add(have)),
                false => memory_of(&self.buffer, wanted, limits),
            };
            if !account.raise(room).await {
                return Err(late());
            }
            if have >= CLAIM_BYTES {
                // Growing by steps would leave the allocator as much again in freed blocks, which no budget counts.
                self.buffer.reserve(wanted.saturating_sub(have) + READ_MIN);
            }
            // Waiting for memory is no fault of the sender.
            self.began = self.began.map(|began| began + asked.elapsed());
        }
        let began = *self.began.get_or_insert_with(Instant::now);
        tokio::select! {
            biased;
            filled = fill(&mut self.stream, &mut self.buffer, self.initial, wanted) => filled,
            () = Box::pin(account.overdue(began, have)) => Err(late()),
        }
    }

    fn give_back_memory(&mut self) {
        if self.longest > KEPT && self.buffer.is_empty() {
            self.buffer = BytesMut::new();
            self.longest = 0;
        }
    }
}

/// Reads once, towards a buffer of `wanted` bytes.
async fn fill<R: AsyncRead + Unpin>(
    stream: &mut R,
    buffer: &mut BytesMut,
    initial: usize,
    wanted: usize,
) -> Result<(), FrameError> {
    let have = buffer.len();
    let missing = wanted.saturating_sub(have);
    let room = missing.max(READ_MIN).min(have.max(READ_AHEAD));
    if buffer.capacity() - have < READ_MIN {
        buffer.reserve(room.max(if have == 0 || initial > INITIAL { initial } else { 0 }));
    }
    match stream.read_buf(buffer).await? {
        0 if have == 0 => Err(FrameError::Closed),
        0 => Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into())),
        _ => Ok(()),
    }
}

/// What a compressed message says that it decompresses to, within the limit.
fn claimed_bytes(start: &[u8], limits: &Limits) -> Option<usize> {
    Header::parse(start).filter(|h| h.op_code == op_code::COMPRESSED)?;
    let claimed = usize::try_from(i32_at(start, HEADER_LENGTH + 4)?).unwrap_or(0);
    Some(claimed.min(limits.max_message))
}

/// The memory that a message of `length` bytes needs, decompressed with it. `start` is as much of it as there is.
fn memory_of(start: &[u8], length: usize, limits: &Limits) -> usize {
    length.saturating_add(claimed_bytes(start, limits).unwrap_or(0))
}

fn checked_length(header: &Header, limits: &Limits) -> Result<usize, Malformed> {
    let length = usize::try_from(header.message_length).ok();
    length.filter(|n| (HEADER_LENGTH..=limits.max_message).contains(n)).ok_or_else(|| {
        let message = format!(
            "recv(): message msgLen {} is invalid. Min {HEADER_LENGTH} Max: {}",
            header.message_length, limits.max_message
        );
        Malformed::new(header, Answer::Silence, codes::PROTOCOL_ERROR, message)
    })
}

/// Decodes one whole frame: what [`FrameReader`] does once the bytes are there.
pub fn decode(
    frame: Bytes,
    limits: &Limits,
    compressors: CompressorSet,
    codecs: &mut Codecs,
) -> Result<Message, Malformed> {
    let header = frame_header(&frame, limits)?;
    let wire_length = frame.len();
    if header.op_code != op_code::COMPRESSED {
        return decode_plain(frame, header, limits, None, wire_length);
    }
    let (inner, plain, compressor) = op_compressed::unwrap(&frame, &header, limits, compressors, codecs)?;
    drop(frame);
    decode_plain(plain, inner, limits, Some(compressor), wire_length)
}

/// As [`decode`], for a stream on which nothing is compressed.
pub fn decode_uncompressed(frame: Bytes, limits: &Limits) -> Result<Message, Malformed> {
    let wire_length = frame.len();
    let header = frame_header(&frame, limits)?;
    decode_plain(frame, header, limits, None, wire_length)
}

fn frame_header(frame: &Bytes, limits: &Limits) -> Result<Header, Malformed> {
    let nothing = Header { message_length: 0, request_id: 0, response_to: 0, op_code: 0 };
    let Some(header) = Header::parse(frame) else {
        let message = "fewer bytes than a message header has";
        return Err(Malformed::new(&nothing, Answer::Silence, codes::PROTOCOL_ERROR, message));
    };
    if checked_length(&header, limits)? != frame.len() {
        let message = format!("message of {} bytes says it has {}", frame.len(), header.message_length);
        return Err(Malformed::new(&header, Answer::Silence, codes::PROTOCOL_ERROR, message));
    }
    Ok(header)
}

fn decode_plain(
    frame: Bytes,
    header: Header,
    limits: &Limits,
    compressor: Option<Compressor>,
    wire_length: usize,
) -> Result<Message, Malformed> {
    match header.op_code {
        op_code::MSG => op_msg::parse(frame, header, limits, compressor, wire_length).map(Message::Msg),
        op_code::QUERY => op_query::parse(frame, header, limits, wire_length).map(Message::Query),
        op_code::REPLY => op_reply::parse(frame, header, limits).map(Message::Reply),
        other => {
            let message = format!("Unsupported opcode {other}");
            Err(Malformed::new(&header, Answer::Silence, codes::PROTOCOL_ERROR, message))
        }
    }
}

/// Checks one document as it enters: its size, then its bytes.
pub(crate) fn validate(bytes: &[u8], limits: &Limits) -> document::Result<()> {
    let limits = validate::Limits { bytes_max: limits.max_document, depth_max: limits.max_nesting };
    validate::validate(bytes, limits)
}
