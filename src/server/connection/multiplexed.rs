//! A connection on which another node has many requests served at a time.
//!
//! ```text
//! arrived together -> begun in turn -> answered at once: one write for all of them
//!                                   -> waits (a latch, a group commit, the next slice of a scan): a task of its own
//! ```
//! Replies come in whatever order they are ready. What would close the connection of one request alone ends only this
//! request here: [`NO_REPLY`]. A caller that no longer waits says so with [`wire::op_msg::ABANDON`], which interrupts its
//! request as a closed connection does. The other end is `wire::client`'s pool.

use super::{Session, open_message, reply_flags, sequences};
use crate::connection::Connection;
use crate::dispatch::{After, dispatch};
use crate::service::Service;
use futures::FutureExt;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use wire::op_msg::{ABANDON, NO_REPLY};
use wire::{Limits, Message, OpMsg, encode};

/// Nothing more is read while this many requests are under way.
const UNDER_WAY_MAX: usize = 4096;
/// Replies of this many bytes are sent without beginning what else has arrived.
const BATCH_BYTES: usize = 64 * 1024;

/// The replies of requests that had to wait.
#[derive(Default)]
struct Answered {
    replies: Mutex<Replies>,
    some: Notify,
}

#[derive(Default)]
struct Replies {
    bytes: Vec<u8>,
    /// Requests they answer; one that wants no reply counts.
    requests: usize,
}

impl Answered {
    fn add(&self, reply: &[u8]) {
        let mut replies = self.replies.lock();
        replies.bytes.extend_from_slice(reply);
        replies.requests += 1;
        if replies.requests == 1 {
            self.some.notify_one();
        }
    }
    /// Appends the replies to `out` and returns how many requests have ended.
    fn take(&self, out: &mut Vec<u8>) -> usize {
        let mut replies = self.replies.lock();
        out.append(&mut replies.bytes);
        std::mem::take(&mut replies.requests)
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Session<R, W> {
    /// Serves until either side ends it, which ends the requests under way as it does on other connections.
    pub(super) async fn multiplex(&mut self) {
        self.serve_many().await;
        self.connection.disconnect(None);
    }

    /// Leaves requests under way to their tasks, unless this very task is aborted.
    async fn serve_many(&mut self) {
        self.frames.gather();
        self.out.clear();
        let answered = Arc::new(Answered::default());
        let mut tasks = JoinSet::new();
        let mut waiting = 0;
        let ended = 'served: loop {
            while self.frames.is_ready(&Limits::MULTIPLEXED)
                && waiting < UNDER_WAY_MAX
                && self.out.len() < BATCH_BYTES
            {
                match self.frames.read(&Limits::MULTIPLEXED).await {
                    Ok(Message::Msg(request)) => waiting += self.begin(request, &answered, &mut tasks),
                    Ok(_) => return tasks.detach_all(),
                    Err(error) => break 'served error,
                }
            }
            waiting -= answered.take(&mut self.out);
            while let Some(task) = tasks.try_join_next() {
                if task.is_err() {
                    // It panicked where no handler did: its request would never be answered.
                    return tasks.detach_all();
                }
            }
            if !self.out.is_empty() {
                if !self.send_bytes().await {
                    return tasks.detach_all();
                }
                self.out.clear();
                self.give_back_memory();
                continue;
            }
            tokio::select! {
                biased;
                () = answered.some.notified() => {}
                whole = self.frames.wait_whole(&Limits::MULTIPLEXED), if waiting < UNDER_WAY_MAX => {
                    if let Err(error) = whole {
                        break error;
                    }
                }
            }
        };
        // What came before is answered.
        if self.out.is_empty() || self.send_bytes().await {
            self.refuse(ended).await;
        }
        tasks.detach_all();
    }

    /// Runs a request as far as it goes without waiting; the number of tasks that were made for it.
    fn begin(&mut self, request: OpMsg, answered: &Arc<Answered>, tasks: &mut JoinSet<()>) -> usize {
        if let Some(id) = abandoned(&request) {
            self.connection.disconnect(Some(id));
            return 0;
        }
        self.next_id = self.next_id.wrapping_add(1);
        let mut answer =
            Box::pin(answer(self.service.clone(), self.connection.clone(), request, self.next_id));
        if let Some(reply) = answer.as_mut().now_or_never() {
            self.out.extend_from_slice(&reply);
            return 0;
        }
        let answered = answered.clone();
        runtime::spawn_in(tasks, async move { answered.add(&answer.await) });
        1
    }
}

/// The request that a caller gives up by this one.
fn abandoned(request: &OpMsg) -> Option<i32> {
    let first = request.body().iter().next().filter(|e| request.more_to_come() && e.name() == ABANDON)?;
    first.value().as_i64().and_then(|id| i32::try_from(id).ok())
}

/// The whole message that answers a request; empty where none is wanted.
pub(super) async fn answer(
    service: Arc<Service>,
    connection: Arc<Connection>,
    request: OpMsg,
    id: i32,
) -> Vec<u8> {
    service.counters.network.received(request.wire_length());
    let flags = reply_flags(&request);
    let mut out = Vec::with_capacity(1024);
    open_message(&mut out, id, request.request_id(), flags);
    let sequences = sequences(&request);
    let outcome =
        dispatch(&service, &connection, request.body(), &sequences, false, request.request_id(), out).await;
    let mut out = outcome.bytes;
    if request.more_to_come() {
        return Vec::new();
    }
    if outcome.after == After::Vanish {
        out.clear();
        encode::msg(&mut out, id, request.request_id(), flags | NO_REPLY, |_| {});
        return out;
    }
    encode::finish_msg(&mut out, 0);
    out
}
