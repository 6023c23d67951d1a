//! One connection, one command at a time.
//!
//! Between the first byte written and the last byte of the reply the connection is *busy*. Whoever abandons a call
//! there (a deadline, a dropped future) leaves it busy for ever, and a busy connection is never used again: its
//! next bytes would be the answer to somebody else's question.

use super::{Address, CallResult, ClientTls, Credentials, RemoteError, Stream, socket_error};
use crate::op_compressed::{Codecs, Compressor, compress_in_place};
use crate::op_msg::{CHECKSUM_PRESENT, EXHAUST_ALLOWED, MORE_TO_COME};
use crate::{FrameError, FrameReader, Limits, Message, OpMsg, encode};
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, codes};
use runtime::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout_at;

/// Document sequences of a request: the name of the array field each stands for, and its documents.
pub type Sequences<'a> = &'a [(&'a str, &'a [Doc<'a>])];

/// The driver's name in the hello of nodes. DO NOT CHANGE: logs show it and nodes know each other by it.
pub const NODE_DRIVER: &str = "NetworkInterface";

/// How to connect and what to say of oneself.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// `client.application.name` of hello.
    pub app_name: Option<String>,
    /// `client.driver.name` of hello.
    pub driver_name: String,
    /// The `internalClient` of hello, `{minWireVersion, maxWireVersion}`: says that the peer is a node.
    pub internal_client: Option<Document>,
    /// The `hostInfo` of hello: `host:port` under which this process listens. Proxies of tests know their peers by it.
    pub host_info: Option<String>,
    /// Absent: in the clear.
    pub tls: Option<Arc<ClientTls>>,
    /// Whom to log in as, right after hello.
    pub credentials: Option<Arc<Credentials>>,
    /// Log in by the certificate that TLS has shown, instead of by credentials. Asked for every connection that is made.
    pub certificate_login: Arc<AtomicBool>,
    /// A peer that refuses the credentials is talked to all the same: while a cluster is being given a key.
    pub credentials_optional: bool,
    /// Compressors to offer, the preferred one first. Empty: none.
    pub compressors: Vec<Compressor>,
    /// Requests carry a checksum.
    pub checksum: bool,
    /// Ask the peer to serve many requests at a time on this connection; what its hello answers says whether it does.
    pub multiplex: bool,
    pub connect_timeout: Duration,
    pub limits: Limits,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            app_name: None,
            driver_name: NODE_DRIVER.to_string(),
            internal_client: None,
            host_info: None,
            tls: None,
            credentials: None,
            certificate_login: Arc::default(),
            credentials_optional: false,
            compressors: Vec::new(),
            checksum: false,
            multiplex: false,
            connect_timeout: Duration::from_secs(20),
            limits: Limits::STANDARD,
        }
    }
}

/// How to make one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions {
    /// When to give up. The connection is then lost, the pool makes another.
    pub deadline: Option<Instant>,
    /// The server may answer more than once; see [`Connection::next_reply`].
    pub exhaust: bool,
    /// Never compressed, as authentication must not be.
    pub uncompressed: bool,
    /// A pool may send this request among others on one connection: it is short, and so is the work that it asks for.
    pub brief: bool,
}

impl CallOptions {
    pub fn deadline(deadline: Instant) -> CallOptions {
        CallOptions { deadline: Some(deadline), ..CallOptions::default() }
    }
    pub fn timeout(timeout: Duration) -> CallOptions {
        CallOptions { deadline: Instant::now().checked_add(timeout), ..CallOptions::default() }
    }
}

#[derive(Debug)]
pub struct Connection {
    host: String,
    reader: FrameReader<Stream>,
    buffer: Vec<u8>,
    codecs: Codecs,
    last_id: i32,
    /// Bytes of the request that the socket has taken.
    sent: usize,
    busy: bool,
    /// The socket failed: others to the same peer are then likely dead too.
    lost: bool,
    checksum: bool,
    compressor: Option<Compressor>,
    limits: Limits,
    hello: DocBuf,
}

impl Connection {
    /// Connects and says hello. `host` is an [`Address`] in text.
    pub async fn connect(host: &str) -> Result<Connection> {
        Connection::connect_with(host, &ConnectOptions::default()).await
    }

    /// Errors: FailedToParse, HostNotFound, HostUnreachable, NetworkTimeout, or what hello answered.
    pub async fn connect_with(host: &str, options: &ConnectOptions) -> Result<Connection> {
        let deadline = Instant::now() + options.connect_timeout;
        let mut connection = Connection::open(host, options, deadline).await?;
        connection.handshake(options, deadline).await?;
        Ok(connection)
    }

    /// A connection that has not said hello, for tests of what comes before it.
    pub async fn open(host: &str, options: &ConnectOptions, deadline: Instant) -> Result<Connection> {
        let address = Address::parse(host)?;
        let stream = match timeout_at(deadline, Stream::connect(&address, options.tls.as_deref())).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(e)) => return Err(connect_error(host, &e)),
            Err(_) => {
                let message = format!("Couldn't connect to server {host} :: caused by :: timed out");
                return Err(Error::new(codes::NETWORK_TIMEOUT, message));
            }
        };
        Ok(Connection {
            host: host.to_string(),
            reader: FrameReader::new(stream),
            buffer: Vec::new(),
            codecs: Codecs::default(),
            last_id: 0,
            sent: 0,
            busy: false,
            lost: false,
            checksum: options.checksum,
            compressor: None,
            limits: options.limits,
            hello: DocBuf::new(),
        })
    }

    async fn handshake(&mut self, options: &ConnectOptions, deadline: Instant) -> Result<()> {
        let call = CallOptions { deadline: Some(deadline), uncompressed: true, ..CallOptions::default() };
        let reply = self.call("admin", &call, &[], |w| write_hello(w, options)).await?;
        let hello = into_ok(reply)?;
        if let Some(theirs) = hello.get("compression").and_then(|v| v.as_array()) {
            let common = crate::op_compressed::negotiate(&options.compressors, theirs);
            self.compressor = options.compressors.iter().copied().find(|c| common.contains(c));
            self.reader.set_compressors(common.into_iter().collect());
        }
        self.hello = hello;
        let login = match &options.credentials {
            _ if options.certificate_login.load(Ordering::Relaxed) => {
                super::auth::log_in_by_certificate(self, &call).await
            }
            Some(credentials) => credentials.log_in(self, &call).await,
            None => return Ok(()),
        };
        match login {
            Err(e) if options.credentials_optional && e.code == codes::AUTHENTICATION_FAILED => Ok(()),
            done => done,
        }
    }

    /// The reply to this connection's hello.
    pub fn hello(&self) -> Doc<'_> {
        self.hello.doc()
    }
    pub fn host(&self) -> &str {
        &self.host
    }
    /// What a [`super::multiplexed::Multiplexed`] goes on with.
    pub(super) fn into_parts(self) -> (String, FrameReader<Stream>, Limits) {
        (self.host, self.reader, self.limits)
    }
    /// No call is under way or was abandoned, and the peer has not closed.
    pub fn is_reusable(&self) -> bool {
        self.is_idle() && self.reader.stream().is_quiet()
    }
    /// No call is under way or was abandoned.
    pub(super) fn is_idle(&self) -> bool {
        !self.busy && self.reader.buffered() == 0
    }
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Runs a command and gives its reply if that says ok; a server's refusal is an error.
    pub async fn run(&mut self, db: &str, command: DocBuf) -> Result<DocBuf> {
        Ok(self.run_full(db, &CallOptions::default(), &[], command.doc()).await?)
    }

    /// As [`Connection::run`], with the given sequences.
    pub async fn run_with_sequences(
        &mut self,
        db: &str,
        command: Doc<'_>,
        sequences: Sequences<'_>,
    ) -> Result<DocBuf> {
        Ok(self.run_full(db, &CallOptions::default(), sequences, command).await?)
    }

    /// As [`Connection::run_full`] with a command that may be answered more than once: the first reply, and whether more come.
    pub async fn run_exhaust(
        &mut self,
        db: &str,
        deadline: Option<Instant>,
        command: Doc<'_>,
    ) -> CallResult<(DocBuf, bool)> {
        let options = CallOptions { deadline, exhaust: true, ..CallOptions::default() };
        into_one_of_several(self.call(db, &options, &[], |w| w.fields_of(command)).await?)
    }

    /// As [`Connection::run`], with everything that can be said and everything that is known of a failure.
    pub async fn run_full(
        &mut self,
        db: &str,
        options: &CallOptions,
        sequences: Sequences<'_>,
        command: Doc<'_>,
    ) -> CallResult<DocBuf> {
        let reply = if command.element("$db").is_some() {
            self.call_as_is(options, sequences, |w| w.fields_of(command)).await
        } else {
            self.call(db, options, sequences, |w| w.fields_of(command)).await
        };
        into_ok(reply?)
    }

    /// Sends the command that `write` writes (without `$db`) and gives the reply as it came, ok or not.
    pub async fn call(
        &mut self,
        db: &str,
        options: &CallOptions,
        sequences: Sequences<'_>,
        write: impl FnOnce(&mut DocWriter<'_>),
    ) -> CallResult<OpMsg> {
        let with_database = |w: &mut DocWriter<'_>| {
            write(w);
            w.string("$db", db);
        };
        self.call_as_is(options, sequences, with_database).await
    }

    /// As [`Connection::call`], with a command that names its own `$db`: one that is passed on.
    pub async fn call_as_is(
        &mut self,
        options: &CallOptions,
        sequences: Sequences<'_>,
        write: impl FnOnce(&mut DocWriter<'_>),
    ) -> CallResult<OpMsg> {
        let flags = if options.exhaust { EXHAUST_ALLOWED } else { 0 };
        self.build(flags, options.uncompressed, sequences, write)?;
        by(options.deadline, self.exchange()).await.unwrap_or_else(|| Err(self.timed_out()))
    }

    /// Sends a command that wants no reply. Its outcome is never known.
    pub async fn send_only(
        &mut self,
        db: &str,
        options: &CallOptions,
        write: impl FnOnce(&mut DocWriter<'_>),
    ) -> CallResult<()> {
        let with_database = |w: &mut DocWriter<'_>| {
            write(w);
            w.string("$db", db);
        };
        self.build(MORE_TO_COME, options.uncompressed, &[], with_database)?;
        let done = by(options.deadline, self.transmit()).await.unwrap_or_else(|| Err(self.timed_out()));
        self.busy = done.is_err();
        done
    }

    /// The next of an exhaust command's replies: call this after each reply whose `more_to_come` is set.
    pub async fn next_reply(&mut self, deadline: Option<Instant>) -> CallResult<OpMsg> {
        self.busy = true;
        by(deadline, self.receive()).await.unwrap_or_else(|| Err(self.timed_out()))
    }

    /// As [`Connection::next_reply`], where it says ok, and whether more come.
    pub async fn next_full(&mut self, deadline: Option<Instant>) -> CallResult<(DocBuf, bool)> {
        into_one_of_several(self.next_reply(deadline).await?)
    }

    fn build(
        &mut self,
        flags: u32,
        uncompressed: bool,
        sequences: Sequences<'_>,
        write: impl FnOnce(&mut DocWriter<'_>),
    ) -> CallResult<()> {
        if self.busy {
            let message = format!("connection to {} was abandoned during a call", self.host);
            return Err(RemoteError::network(Error::new(codes::SOCKET_EXCEPTION, message), true));
        }
        self.last_id = self.last_id.wrapping_add(1);
        self.sent = 0;
        self.buffer.clear();
        let compressor = self.compressor.filter(|_| !uncompressed);
        let checksum = if self.checksum && compressor.is_none() { CHECKSUM_PRESENT } else { 0 };
        write_request(&mut self.buffer, self.last_id, flags | checksum, sequences, write);
        if self.buffer.len() > self.limits.max_message {
            let message = format!("request of {} bytes is longer than a message may be", self.buffer.len());
            return Err(RemoteError::network(Error::new(codes::BSON_OBJECT_TOO_LARGE, message), true));
        }
        if let Some(compressor) = compressor {
            compress_in_place(&mut self.buffer, 0, compressor, &mut self.codecs);
        }
        Ok(())
    }

    async fn exchange(&mut self) -> CallResult<OpMsg> {
        self.transmit().await?;
        self.receive().await
    }

    /// Writes the buffer. A cancelled write has written nothing, so `sent` is exact at every moment.
    async fn transmit(&mut self) -> CallResult<()> {
        self.busy = true;
        while self.sent < self.buffer.len() {
            match self.reader.stream_mut().write(&self.buffer[self.sent..]).await {
                Ok(0) => return Err(self.failed("sending to", &std::io::ErrorKind::WriteZero.into())),
                Ok(n) => self.sent += n,
                Err(e) => return Err(self.failed("sending to", &e)),
            }
        }
        // Over TLS what was taken may still be on this side.
        if let Err(e) = self.reader.stream_mut().flush().await {
            return Err(self.failed("sending to", &e));
        }
        self.give_back_memory();
        Ok(())
    }

    async fn receive(&mut self) -> CallResult<OpMsg> {
        let message = match self.reader.read(&self.limits).await {
            Ok(message) => message,
            Err(FrameError::Closed) => {
                return Err(self.failed("receiving from", &std::io::ErrorKind::UnexpectedEof.into()));
            }
            Err(FrameError::Io(e)) => return Err(self.failed("receiving from", &e)),
            Err(FrameError::Malformed(m)) => return Err(self.broken(m.error)),
        };
        match message {
            Message::Msg(reply) if reply.response_to() == self.last_id => {
                if reply.more_to_come() {
                    // The next reply answers this one.
                    self.last_id = reply.request_id();
                } else {
                    self.busy = false;
                }
                Ok(reply)
            }
            other => {
                let (got, wanted) = (other.response_to(), self.last_id);
                let message = format!("reply of {} answers request {got}, not {wanted}", self.host);
                Err(self.broken(Error::new(codes::PROTOCOL_ERROR, message)))
            }
        }
    }

    fn failed(&mut self, doing: &str, e: &std::io::Error) -> Box<RemoteError> {
        self.lost = true;
        RemoteError::network(socket_error(&self.host, doing, e), self.sent == 0)
    }
    fn broken(&self, error: Error) -> Box<RemoteError> {
        RemoteError::network(error, false)
    }
    fn timed_out(&self) -> Box<RemoteError> {
        let error = Error::new(codes::NETWORK_TIMEOUT, format!("Request to {} timed out", self.host));
        RemoteError::network(error, self.sent == 0)
    }
    fn give_back_memory(&mut self) {
        if self.buffer.capacity() > crate::writer::KEPT_CAPACITY {
            self.buffer = Vec::new();
        }
    }
}

/// Appends a request as one OP_MSG.
pub(super) fn write_request(
    out: &mut Vec<u8>,
    id: i32,
    flags: u32,
    sequences: Sequences<'_>,
    write: impl FnOnce(&mut DocWriter<'_>),
) {
    let start = encode::begin_msg(out, id, 0, flags, write);
    for (identifier, documents) in sequences {
        encode::sequence(out, identifier, documents.iter().copied());
    }
    encode::finish_msg(out, start);
}

/// `None` when the deadline came first. Boxed where there is one: a timer is aligned to cache lines, and so is every future
/// that holds it, for which allocators have no fast way.
pub(super) async fn by<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match deadline {
        None => Some(work.await),
        Some(deadline) => Box::pin(timeout_at(deadline, work)).await.ok(),
    }
}

/// The reply's document if it says ok; the server's error with the whole reply otherwise.
pub(super) fn into_ok(reply: OpMsg) -> CallResult<DocBuf> {
    let body = reply.body();
    if body.get("ok").is_some_and(|v| v.truthy()) {
        return Ok(body.to_owned());
    }
    let error = Error::from_reply(&body.to_document())
        .unwrap_or_else(|| Error::new(codes::PROTOCOL_ERROR, "reply without ok"));
    Err(Box::new(RemoteError { error, reply: Some(body.to_owned()), not_sent: false }))
}

/// As [`into_ok`], and whether more replies come.
fn into_one_of_several(reply: OpMsg) -> CallResult<(DocBuf, bool)> {
    let more = reply.more_to_come();
    Ok((into_ok(reply)?, more))
}

fn connect_error(host: &str, e: &std::io::Error) -> Error {
    // A resolver's failure has no kind and no errno of its own.
    if e.raw_os_error().is_none() && e.to_string().contains("lookup address") {
        return Error::new(
            codes::HOST_NOT_FOUND,
            format!("Could not find address for {host} :: caused by :: {e}"),
        );
    }
    socket_error(host, "connecting to", e)
}

fn write_hello(w: &mut DocWriter<'_>, options: &ConnectOptions) {
    w.i32("hello", 1);
    w.bool("helloOk", true);
    w.document_with("client", |w| {
        if let Some(name) = &options.app_name {
            w.document_with("application", |w| w.string("name", name));
        }
        w.document_with("driver", |w| {
            w.string("name", &options.driver_name);
            w.string("version", env!("CARGO_PKG_VERSION"));
        });
        w.document_with("os", |w| {
            w.string("type", std::env::consts::OS);
            w.string("architecture", std::env::consts::ARCH);
        });
    });
    if let Some(internal) = &options.internal_client {
        let internal = internal.clone().to_doc_buf();
        w.document("internalClient", internal.doc());
    }
    if let Some(host) = &options.host_info {
        w.string("hostInfo", host);
    }
    if let Some(credentials) = &options.credentials {
        w.string("saslSupportedMechs", &credentials.shown());
    }
    if options.multiplex {
        w.bool("multiplex", true);
    }
    if !options.compressors.is_empty() {
        w.array_with("compression", |w| {
            for (i, compressor) in options.compressors.iter().enumerate() {
                w.with_index(i, |w, name| w.string(name, compressor.name()));
            }
        });
    }
}
