//! One connection that carries many calls at a time: short requests between nodes.
//!
//! ```text
//! callers -> outbox -> writer task -> socket -> peer -> socket -> reader task -> waiting[responseTo] -> caller
//! ```
//! Requests of all callers are gathered and written together; replies come in any order and find their callers by
//! `responseTo`. Under load both ends share each system call and each wake-up among many requests, which is most of what a
//! short request costs. A peer takes part only if its hello says so (`multiplex: true`, asked and answered).
//!
//! A caller that gives up (its deadline, a dropped future) tells the peer with [`ABANDON`], so that nobody works for it any more.
//!
//! Invariant: an id waits for at most one reply, and a reply whose caller has gone is dropped; nobody is given somebody
//! else's. When the connection fails every caller that waits learns of it.

use super::connection::{Connection, by, write_request};
use super::{CallResult, RemoteError, socket_error};
use crate::op_msg::{ABANDON, MORE_TO_COME, NO_REPLY};
use crate::reader::decode_uncompressed;
use crate::writer::KEPT_CAPACITY;
use crate::{FrameError, FrameReader, Header, Limits, Message, OpMsg};
use bytes::Bytes;
use document::{Error, codes};
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;

/// A live connection. Dropping the last handle closes it.
#[derive(Debug)]
pub(super) struct Multiplexed {
    line: Arc<Line>,
    tasks: [AbortHandle; 2],
}

#[derive(Debug)]
struct Line {
    host: String,
    limits: Limits,
    state: Mutex<State>,
    /// The outbox is no longer empty.
    filled: Notify,
    /// [`State::ended`] is set.
    has_ended: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Whole requests that the writer has not taken yet.
    outbox: Vec<u8>,
    /// The callers by request id, and the number of each request.
    waiting: HashMap<i32, (u64, oneshot::Sender<CallResult<Bytes>>), foldhash::fast::RandomState>,
    /// Requests numbered so far, and those of them that the writer took.
    issued: u64,
    taken: u64,
    ended: Option<Error>,
}

impl Multiplexed {
    /// Takes over a connection whose hello agreed to it. Runs on the runtime of the caller.
    pub(super) fn start(connection: Connection) -> Multiplexed {
        let (host, reader, limits) = connection.into_parts();
        let (read, write) = reader.into_stream().into_split();
        let line = Arc::new(Line {
            host,
            limits,
            state: Mutex::default(),
            filled: Notify::new(),
            has_ended: AtomicBool::new(false),
        });
        let tasks = [
            runtime::spawn(receive(line.clone(), FrameReader::gathering(read))).abort_handle(),
            runtime::spawn(transmit(line.clone(), write)).abort_handle(),
        ];
        Multiplexed { line, tasks }
    }

    /// Sends a whole OP_MSG, whose request id is set here, and waits for its reply.
    ///
    /// # Errors
    /// NetworkTimeout at the deadline; otherwise those of the connection.
    pub(super) async fn call(&self, message: &mut [u8], deadline: Option<Instant>) -> CallResult<OpMsg> {
        let mut place = self.line.enter(message)?;
        let Some(reply) = by(deadline, &mut place.reply).await else {
            let text = format!("Request to {} timed out", self.line.host);
            return Err(RemoteError::network(Error::new(codes::NETWORK_TIMEOUT, text), false));
        };
        place.left = true;
        // The sender goes only with the line itself, which tells every caller first.
        let frame = reply.unwrap_or_else(|_| Err(RemoteError::network(self.line.closed_by_peer(), false)))?;
        let broken = |error| RemoteError::network(error, false);
        match decode_uncompressed(frame, &self.line.limits).map_err(|m| broken(m.error))? {
            Message::Msg(reply) if reply.flags() & NO_REPLY == 0 => Ok(reply),
            Message::Msg(_) => Err(broken(self.line.closed_by_peer())),
            _ => {
                let text = format!("reply of {} is no OP_MSG", self.line.host);
                Err(broken(Error::new(codes::PROTOCOL_ERROR, text)))
            }
        }
    }
    pub(super) fn has_ended(&self) -> bool {
        self.line.has_ended.load(Relaxed)
    }
    pub(super) fn is_busy(&self) -> bool {
        !self.line.state.lock().waiting.is_empty()
    }
}

impl Drop for Multiplexed {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// A caller's place among those that wait; given up when dropped.
struct Place<'a> {
    line: &'a Line,
    id: i32,
    reply: oneshot::Receiver<CallResult<Bytes>>,
    /// Whoever sent the reply removed the place.
    left: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.left {
            self.line.abandon(self.id);
        }
    }
}

impl Line {
    fn enter(&self, message: &mut [u8]) -> CallResult<Place<'_>> {
        let (sender, reply) = oneshot::channel();
        let mut state = self.state.lock();
        if let Some(error) = &state.ended {
            return Err(RemoteError::network(error.clone(), true));
        }
        let id = loop {
            state.issued += 1;
            // A caller that has waited for four thousand million others keeps its id.
            let id = state.issued as i32;
            if !state.waiting.contains_key(&id) {
                break id;
            }
        };
        let number = state.issued;
        state.waiting.insert(id, (number, sender));
        Header::set_request_id(message, id);
        let first = state.outbox.is_empty();
        state.outbox.extend_from_slice(message);
        drop(state);
        if first {
            self.filled.notify_one();
        }
        Ok(Place { line: self, id, reply, left: false })
    }

    /// Takes a caller from those that wait and lets the peer know.
    fn abandon(&self, id: i32) {
        let mut state = self.state.lock();
        if state.waiting.remove(&id).is_none() || state.ended.is_some() {
            return;
        }
        state.issued += 1;
        let number = state.issued as i32;
        let first = state.outbox.is_empty();
        write_request(&mut state.outbox, number, MORE_TO_COME, &[], |w| {
            w.i32(ABANDON, id);
            w.string("$db", "admin");
        });
        drop(state);
        if first {
            self.filled.notify_one();
        }
    }

    /// Fails everybody who waits, and everybody who comes. Who was still in the outbox may go elsewhere.
    fn end(&self, error: Error) {
        let mut state = self.state.lock();
        let error = state.ended.get_or_insert(error).clone();
        self.has_ended.store(true, Relaxed);
        let (taken, waiting) = (state.taken, std::mem::take(&mut state.waiting));
        state.outbox = Vec::new();
        drop(state);
        for (number, sender) in waiting.into_values() {
            // Who no longer waits need not know.
            let _ = sender.send(Err(RemoteError::network(error.clone(), number > taken)));
        }
    }
    fn closed_by_peer(&self) -> Error {
        socket_error(&self.host, "receiving from", &std::io::ErrorKind::UnexpectedEof.into())
    }
}

/// Writes what callers put into the outbox until the line ends.
async fn transmit(line: Arc<Line>, mut stream: impl AsyncWrite + Unpin) {
    let mut batch = Vec::new();
    loop {
        line.filled.notified().await;
        // Whoever else is ready to run may have a request as well.
        tokio::task::yield_now().await;
        {
            let mut state = line.state.lock();
            if state.ended.is_some() {
                return;
            }
            std::mem::swap(&mut batch, &mut state.outbox);
            state.taken = state.issued;
        }
        let sent = match stream.write_all(&batch).await {
            Ok(()) => stream.flush().await,
            failed => failed,
        };
        if let Err(e) = sent {
            return line.end(socket_error(&line.host, "sending to", &e));
        }
        if batch.capacity() > KEPT_CAPACITY {
            batch = Vec::new();
        }
        batch.clear();
    }
}

/// Hands replies to their callers until the line ends.
async fn receive(line: Arc<Line>, mut frames: FrameReader<impl AsyncRead + Unpin>) {
    loop {
        let frame = match frames.read_frame(&line.limits).await {
            Ok(frame) => frame,
            Err(error) => {
                line.end(match error {
                    FrameError::Closed => line.closed_by_peer(),
                    FrameError::Io(e) => socket_error(&line.host, "receiving from", &e),
                    FrameError::Malformed(m) => m.error,
                });
                // The writer waits for requests that nobody can make any more.
                line.filled.notify_one();
                return;
            }
        };
        let Some(header) = Header::parse(&frame) else { continue };
        let waiting = line.state.lock().waiting.remove(&header.response_to);
        if let Some((_, sender)) = waiting {
            let _ = sender.send(Ok(frame));
        }
    }
}
