//! One connection: requests in, replies out, one at a time.
//!
//! ```text
//! OP_QUERY  hello only -> OP_REPLY          every other command: error 352, the connection goes on
//! OP_MSG    -> OP_MSG                       moreToCome set: the request is run and nothing is answered
//! exhaust   OP_MSG -> OP_MSG moreToCome, OP_MSG moreToCome, ... until a reply without the flag
//! malformed -> the protocol's error where it has one, then the connection closes
//! ```
//! A reply is compressed as its request was, and has a checksum if its request had one.
//!
//! While a request waits, the socket is read on: at its end the operation is interrupted if it is one that ends with its
//! client ([`crate::dispatch::Command::ends_with`]).
//!
//! A node of this kind may ask in its hello for a connection on which many requests are served at a time: [`multiplexed`].

mod multiplexed;
#[cfg(test)]
mod tests;

use crate::dispatch::{After, Outcome, Sequence, dispatch};
use crate::operations::Slot;
use crate::service::Service;
use document::{Doc, DocBuf, DocWriter};
use node::operation::ClientInfo;
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use wire::header::op_code;
use wire::op_compressed::{Codecs, compress_in_place};
use wire::op_msg::{CHECKSUM_PRESENT, MORE_TO_COME};
use wire::{
    Compressor, CompressorSet, FrameError, FrameReader, Limits, Malformed, Message, OpMsg, OpQuery, encode,
};

/// A reply buffer that grew beyond this is not kept for the next reply.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// A reply longer than this is compressed beside the threads that serve: it takes zlib some tenths of a second for 16 MiB.
const COMPRESSED_HERE_BYTES_MAX: usize = 1024 * 1024;

/// Where a connection came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    Tcp,
    UnixSocket,
    /// The port of `loadBalancerPort`. The client's address is what the load balancer says it is.
    LoadBalancer,
}

/// What a connection is and has said of itself.
pub struct Connection {
    pub id: i64,
    pub client: Arc<ClientInfo>,
    /// What it is doing now.
    pub slot: Slot,
    /// What hello negotiated; requests may use it from the next message on.
    pub compressors: Mutex<CompressorSet>,
    pub entrance: Entrance,
    /// Its first hello through a load balancer has said that the client knows of it.
    pub knows_balancer: AtomicBool,
    /// Serves many requests at a time from the next message on.
    pub multiplexed: AtomicBool,
    /// The address it came in at; over a unix socket there is none.
    pub local: std::sync::OnceLock<std::net::IpAddr>,
    /// What the peer's certificate says, if it showed one that was checked.
    pub peer: std::sync::OnceLock<crate::tls::Peer>,
    /// The name by which the client asked for this server over TLS.
    pub server_name: std::sync::OnceLock<String>,
    /// Logging in, step by step.
    pub conversation: Mutex<Option<crate::auth::sasl::Conversation>>,
    /// When the user was read: see `Auth::generation`.
    pub user_generation: AtomicU64,
    /// There are users, as this connection has been told: it gets no further without one.
    pub exception_over: AtomicBool,
    /// Its hello said that it is a node.
    pub claims_internal: AtomicBool,
    /// Its hello said that it is a node, or that it is to stay where this member goes back in its history: see
    /// [`Service::end_clients`].
    pub stays_over_rollback: AtomicBool,
    /// The session whose use was noted last.
    pub noted_session: Mutex<Option<crate::session_cache::Noted>>,
    task: std::sync::OnceLock<tokio::task::AbortHandle>,
}

impl Connection {
    pub fn new(id: i64, remote: String, entrance: Entrance) -> Connection {
        let balanced = entrance == Entrance::LoadBalancer;
        let client = ClientInfo { connection_id: id, remote, balanced, ..ClientInfo::default() };
        Connection {
            id,
            client: Arc::new(client),
            slot: Slot::default(),
            compressors: Mutex::default(),
            entrance,
            knows_balancer: AtomicBool::new(false),
            multiplexed: AtomicBool::new(false),
            local: std::sync::OnceLock::new(),
            peer: std::sync::OnceLock::new(),
            server_name: std::sync::OnceLock::new(),
            conversation: Mutex::default(),
            user_generation: AtomicU64::new(0),
            exception_over: AtomicBool::new(false),
            claims_internal: AtomicBool::new(false),
            stays_over_rollback: AtomicBool::new(false),
            noted_session: Mutex::default(),
            task: std::sync::OnceLock::new(),
        }
    }
    /// `conn12`, as logs and currentOp name it.
    pub fn name(&self) -> String {
        format!("conn{}", self.id)
    }
    /// Forgets the user and any conversation.
    pub fn log_out(&self, service: &Service) {
        self.conversation.lock().take();
        self.client.set_user(None);
        self.judge_internal(service);
    }
    /// Whether the peer is a node: it says so, and where the cluster has a key it has logged in with it.
    pub fn judge_internal(&self, service: &Service) {
        let proven = match (&service.auth.key, service.auth.enabled) {
            (None, false) => true,
            _ => self.client.user().is_some_and(|user| user.is_system()),
        };
        self.client.internal.store(proven && self.claims_internal.load(Relaxed), Relaxed);
    }
    /// What it may send at a time.
    fn limits(&self, service: &Service) -> Limits {
        if service.auth.enabled && self.client.user().is_none() {
            return Limits::BEFORE_AUTHENTICATION;
        }
        match self.client.internal.load(Relaxed) {
            true => Limits::BETWEEN_NODES,
            false => Limits::STANDARD,
        }
    }
    pub fn set_task(&self, task: tokio::task::AbortHandle) {
        let _ = self.task.set(task);
    }
    /// The peer is gone, or waits no longer for the request of this id: interrupts what ends with it.
    fn disconnect(&self, request: Option<i32>) {
        self.slot.disconnect(request, self.client.internal.load(Relaxed));
    }
    /// Ends the connection at its next await.
    pub fn abort(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

/// Serves a connection until either side ends it.
pub async fn serve<R, W>(service: Arc<Service>, connection: Arc<Connection>, reader: R, writer: W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut session = Session {
        frames: FrameReader::new(reader).with_budget(service.input.clone()),
        writer,
        out: Vec::new(),
        codecs: Codecs::default(),
        next_id: 0,
        service,
        connection,
    };
    session.run().await;
}

struct Session<R, W> {
    frames: FrameReader<R>,
    writer: W,
    /// The outgoing message, built in place; kept between replies.
    out: Vec<u8>,
    codecs: Codecs,
    next_id: i32,
    service: Arc<Service>,
    connection: Arc<Connection>,
}

/// Whether the loop goes on.
#[derive(PartialEq, Eq)]
enum Next {
    Read,
    Close,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Session<R, W> {
    async fn run(&mut self) {
        loop {
            let message = match self.frames.read(&self.connection.limits(&self.service)).await {
                Ok(message) => Ok(message),
                Err(FrameError::Malformed(malformed)) if malformed.goes_on => Err(malformed),
                Err(error) => return self.refuse(error).await,
            };
            let next = match message {
                Ok(Message::Msg(msg)) => self.message(msg).await,
                Ok(Message::Query(query)) => self.query(query).await,
                Ok(Message::Reply(_)) => Next::Close,
                Err(malformed) => self.refuse_message(&malformed).await,
            };
            if next == Next::Close {
                return;
            }
            self.frames.trust(self.connection.client.internal.load(Relaxed));
            if self.connection.multiplexed.load(Relaxed) && self.may_multiplex() {
                return self.multiplex().await;
            }
            self.give_back_memory();
        }
    }

    /// Many requests at a time are another node's: where users are checked it has logged in before. Others are served one after another.
    fn may_multiplex(&self) -> bool {
        self.connection.client.internal.load(Relaxed) || !self.service.auth.enabled
    }

    fn give_back_memory(&mut self) {
        if self.out.capacity() > KEPT_CAPACITY {
            self.out = Vec::new();
        }
    }

    /// Answers a malformed message where the protocol has an answer. The caller closes.
    async fn refuse(&mut self, error: FrameError) {
        if let FrameError::Malformed(malformed) = error {
            self.service.log.line(
                crate::log::Severity::Info,
                "NETWORK",
                22988,
                &self.connection.name(),
                "Error receiving request from client. Ending connection from remote",
                &document::doc! {
                    "error": { "code": malformed.code(), "codeName": malformed.error.code_name(),
                               "errmsg": malformed.message() },
                    "remote": self.connection.client.remote.as_str(), "connectionId": self.connection.id,
                },
            );
            // The peer is going either way.
            self.refuse_message(&malformed).await;
        }
    }

    /// Answers a malformed message; closes when the peer has gone.
    async fn refuse_message(&mut self, malformed: &Malformed) -> Next {
        self.service.counters.assertion(&malformed.error);
        if let Some(reply) = malformed.reply() {
            self.out.clear();
            self.out.extend_from_slice(&reply);
            if !self.send_bytes().await {
                return Next::Close;
            }
        }
        Next::Read
    }

    async fn message(&mut self, msg: OpMsg) -> Next {
        self.service.counters.network.received(msg.wire_length());
        let sequences = sequences(&msg);
        let compressor = msg.compressor();
        let checksum = reply_flags(&msg);
        let mut answers_to = msg.request_id();
        // The request of an exhaust round after the first differs from the client's own.
        let mut again: Option<DocBuf> = None;
        loop {
            let header = self.open_message(answers_to, checksum);
            let body = again.as_ref().map_or(msg.body(), DocBuf::doc);
            let outcome =
                self.dispatch(body, &sequences, msg.exhaust_allowed(), msg.request_id(), header).await;
            let after = outcome.after;
            self.out = outcome.bytes;
            if after == After::Vanish {
                return Next::Close;
            }
            if msg.more_to_come() {
                return if after == After::Close { Next::Close } else { Next::Read };
            }
            if after == After::Again {
                let reply = self.reply_document();
                again = next_round(body, reply);
                if again.is_some() {
                    self.set_flag(MORE_TO_COME);
                }
            }
            let id = self.next_id;
            if !self.send_message(compressor).await {
                if let Some(kill) = again.as_ref().and_then(|request| kill_cursor(request.doc())) {
                    self.dispatch(kill.doc(), &[], false, 0, Vec::new()).await;
                }
                return Next::Close;
            }
            if after == After::Close {
                return Next::Close;
            }
            match (after, &again) {
                (After::Again, Some(_)) => answers_to = id,
                _ => return Next::Read,
            }
        }
    }

    async fn query(&mut self, query: OpQuery) -> Next {
        self.service.counters.network.received(query.wire_length());
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        self.next_id = self.next_id.wrapping_add(1);
        encode::begin(&mut out, self.next_id, query.request_id(), op_code::REPLY);
        out.extend_from_slice(&wire::op_reply::AWAIT_CAPABLE.to_le_bytes());
        out.extend_from_slice(&[0; 12]);
        out.extend_from_slice(&1i32.to_le_bytes());
        let outcome = match query.check_supported() {
            Err(error) => {
                self.service.counters.assertion(&error);
                DocWriter::write(&mut out, |w| error.to_reply().write_fields(w));
                Outcome { bytes: out, after: After::Continue }
            }
            Ok(()) => {
                // OP_QUERY names its database in the namespace; commands expect `$db`.
                let body = DocWriter::build(|w| {
                    w.fields_of(query.body());
                    if query.body().get("$db").is_none() {
                        w.string("$db", query.database());
                    }
                });
                self.dispatch(body.doc(), &[], false, query.request_id(), out).await
            }
        };
        self.out = outcome.bytes;
        encode::finish(&mut self.out, 0);
        if outcome.after == After::Vanish || !self.send_bytes().await || outcome.after == After::Close {
            return Next::Close;
        }
        Next::Read
    }

    async fn dispatch(
        &mut self,
        body: Doc<'_>,
        sequences: &[Sequence<'_>],
        exhaust: bool,
        request_id: i32,
        out: Vec<u8>,
    ) -> Outcome {
        let mut running =
            pin!(dispatch(&self.service, &self.connection, body, sequences, exhaust, request_id, out));
        // A request that waits for nothing costs no look at the socket.
        let outcome = match futures::poll!(running.as_mut()) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => tokio::select! {
                biased;
                outcome = running.as_mut() => outcome,
                () = self.frames.wait_closed() => {
                    self.connection.disconnect(None);
                    running.await
                }
            },
        };
        self.frames.set_compressors(*self.connection.compressors.lock());
        outcome
    }

    /// Starts an OP_MSG in the reusable buffer: header, flags, and the kind of the one section that follows.
    fn open_message(&mut self, response_to: i32, flags: u32) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        self.next_id = self.next_id.wrapping_add(1);
        open_message(&mut out, self.next_id, response_to, flags);
        out
    }
    fn reply_document(&self) -> Doc<'_> {
        Doc::from_validated(self.out.get(BODY_AT..).unwrap_or(&document::raw::EMPTY))
    }
    fn set_flag(&mut self, flag: u32) {
        if let Some(byte) = self.out.get_mut(FLAGS_AT) {
            *byte |= flag as u8;
        }
    }
    async fn send_message(&mut self, compressor: Option<Compressor>) -> bool {
        encode::finish_msg(&mut self.out, 0);
        if let Some(compressor) = compressor
            && !self.compress(compressor).await
        {
            return false;
        }
        self.send_bytes().await
    }
    /// Compresses the outgoing message; false at the end of the runtime.
    async fn compress(&mut self, compressor: Compressor) -> bool {
        if self.out.len() <= COMPRESSED_HERE_BYTES_MAX {
            compress_in_place(&mut self.out, 0, compressor, &mut self.codecs);
            return true;
        }
        let (mut out, mut codecs) = (std::mem::take(&mut self.out), std::mem::take(&mut self.codecs));
        let compressed = runtime::blocking(move || {
            compress_in_place(&mut out, 0, compressor, &mut codecs);
            (out, codecs)
        });
        match compressed.await {
            Ok(done) => {
                (self.out, self.codecs) = done;
                true
            }
            Err(_) => false,
        }
    }
    async fn send_bytes(&mut self) -> bool {
        if self.service.has_failed() {
            // Whether any of this will be there after the next start nobody knows: the node ends, and its clients hear nothing.
            return false;
        }
        self.service.counters.network.bytes_out.add(self.out.len() as i64);
        // Over TLS what was taken may still be on this side.
        self.writer.write_all(&self.out).await.is_ok() && self.writer.flush().await.is_ok()
    }
}

fn sequences(msg: &OpMsg) -> Vec<Sequence<'_>> {
    msg.sequences().iter().map(|s| (msg.identifier(s), msg.documents(s).bytes())).collect()
}

/// The flags of the reply to a request.
fn reply_flags(msg: &OpMsg) -> u32 {
    if msg.has_checksum() && msg.compressor().is_none() { CHECKSUM_PRESENT } else { 0 }
}

fn open_message(out: &mut Vec<u8>, id: i32, response_to: i32, flags: u32) {
    encode::begin(out, id, response_to, op_code::MSG);
    out.extend_from_slice(&flags.to_le_bytes());
    out.push(0);
}

/// Where the flags and the body of an OP_MSG of one section start.
const FLAGS_AT: usize = 16;
const BODY_AT: usize = 21;

/// Ends the cursor of a getMore whose next rounds nobody reads any more.
fn kill_cursor(request: Doc<'_>) -> Option<DocBuf> {
    let (cursor, collection) = (request.get_i64("getMore")?, request.get_str("collection")?);
    let db = request.get_str("$db")?;
    Some(document::doc! { "killCursors": collection, "cursors": [cursor], "$db": db }.to_doc_buf())
}

/// The request that the next exhaust round stands for. A hello waits for a change from what was just told; a getMore
/// repeats itself until its cursor is closed, and waits for another commit point than was just told.
fn next_round(request: Doc<'_>, reply: Doc<'_>) -> Option<DocBuf> {
    let (name, told) = match reply.get_document("topologyVersion") {
        Some(version) => ("topologyVersion", version),
        None => {
            reply.get_document("cursor").and_then(|c| c.get_i64("id")).filter(|id| *id != 0)?;
            let commit =
                reply.get_document("$oplogQueryData").and_then(|d| d.get_document("lastOpCommitted"));
            let Some(commit) = commit else { return Some(request.to_owned()) };
            ("lastKnownCommittedOpTime", commit)
        }
    };
    Some(DocWriter::build(|w| {
        for element in request.iter() {
            match element.name() == name {
                true => w.document(name, told),
                false => w.element(&element),
            }
        }
    }))
}
