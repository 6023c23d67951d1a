//! One blocking connection to one server: hello, then a command and its reply at a time.

use document::{Doc, DocBuf, DocWriter, Error, codes};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use wire::client::Address;
use wire::op_compressed::Codecs;
use wire::{CompressorSet, Limits, Message, encode};

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.read(buffer),
            Stream::Unix(s) => s.read(buffer),
        }
    }
}
impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.write(bytes),
            Stream::Unix(s) => s.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) struct Socket {
    pub host: String,
    stream: Stream,
    hello: DocBuf,
    last_id: i32,
    codecs: Codecs,
}

/// Replies may be larger than what a client may send: they are as large as a message may be.
const REPLY_LIMITS: Limits = Limits { max_document: wire::limits::MAX_MESSAGE, ..Limits::STANDARD };

impl Socket {
    /// Connects and says hello. The message is the legacy one, with the host and the cause.
    pub(super) fn connect(host: &str, app_name: &str, timeout: Duration) -> Result<Socket, Error> {
        let refused = |cause: String| {
            let message = format!("couldn't connect to server {host}, connection attempt failed: {cause}");
            Error::new(codes::HOST_UNREACHABLE, message)
        };
        let address = Address::parse(host).map_err(|error| refused(error.to_string()))?;
        let stream = open(&address, timeout).map_err(|error| {
            refused(format!("SocketException: Error connecting to {host} :: caused by :: {}", reason(&error)))
        })?;
        let mut socket = Socket {
            host: host.to_string(),
            stream,
            hello: DocBuf::new(),
            last_id: 0,
            codecs: Codecs::default(),
        };
        let hello = DocWriter::build(|w| write_hello(w, host, app_name));
        socket.set_timeout(Some(timeout));
        let reply = socket.call(hello.doc()).map_err(|error| {
            refused(format!("HostUnreachable: network error while attempting to run command 'isMaster' on host '{host}' :: caused by :: {}", reason(&error)))
        })?;
        socket.set_timeout(None);
        if let Some(error) = Error::from_reply(&reply.to_document()) {
            return Err(refused(error.to_string()));
        }
        socket.hello = reply;
        Ok(socket)
    }
    /// The server's answer to hello when the connection was made.
    pub(super) fn hello(&self) -> Doc<'_> {
        self.hello.doc()
    }
    /// The port of this end; unix sockets have none.
    pub(super) fn local_port(&self) -> Option<u16> {
        match &self.stream {
            Stream::Tcp(s) => s.local_addr().ok().map(|address| address.port()),
            Stream::Unix(_) => None,
        }
    }
    /// How long a reply may take; for ever when `None`.
    pub(super) fn set_timeout(&mut self, timeout: Option<Duration>) {
        // Only a zero duration is an error, and a broken socket shows itself when it is used.
        let _ = match &self.stream {
            Stream::Tcp(s) => s.set_read_timeout(timeout),
            Stream::Unix(s) => s.set_read_timeout(timeout),
        };
    }
    /// Sends a whole command (with its `$db`) and waits for the reply. After an error the socket is useless.
    pub(super) fn call(&mut self, command: Doc<'_>) -> io::Result<DocBuf> {
        self.last_id = self.last_id.wrapping_add(1);
        let mut out = Vec::with_capacity(command.bytes().len() + 32);
        encode::msg(&mut out, self.last_id, 0, 0, |w| w.fields_of(command));
        if out.len() > wire::limits::MAX_MESSAGE {
            return Err(io::Error::other("the command is larger than a message may be"));
        }
        self.stream.write_all(&out)?;
        loop {
            match self.read()? {
                Message::Msg(reply) if reply.response_to() == self.last_id => {
                    return Ok(reply.body().to_owned());
                }
                Message::Msg(_) => {}
                _ => return Err(io::Error::other("the reply is no OP_MSG")),
            }
        }
    }
    fn read(&mut self) -> io::Result<Message> {
        let mut frame = vec![0; 4];
        self.stream.read_exact(&mut frame)?;
        let length = i32::from_le_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
        if !(16..=wire::limits::MAX_MESSAGE).contains(&length) {
            return Err(io::Error::other(format!("a reply of {length} bytes")));
        }
        // Grows with what arrives, whatever length the peer claims.
        (&mut self.stream).take(length as u64 - 4).read_to_end(&mut frame)?;
        if frame.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        wire::decode(frame.into(), &REPLY_LIMITS, CompressorSet::default(), &mut self.codecs)
            .map_err(|malformed| io::Error::other(format!("{malformed:?}")))
    }
}

/// What went wrong, in the words of the operating system.
pub(super) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "Connection closed by peer".to_string(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "timed out".to_string(),
        io::ErrorKind::ConnectionRefused => "Connection refused".to_string(),
        _ => error.to_string(),
    }
}

fn open(address: &Address, timeout: Duration) -> io::Result<Stream> {
    let (name, port) = match address {
        Address::Unix(path) => return UnixStream::connect(path).map(Stream::Unix),
        Address::Tcp(name, port) => (name.as_str(), *port),
    };
    let deadline = Instant::now() + timeout;
    let mut last = io::Error::other("no address of that name");
    for address in (name, port).to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(Stream::Tcp(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn write_hello(w: &mut DocWriter<'_>, host: &str, app_name: &str) {
    w.i32("isMaster", 1);
    w.bool("helloOk", true);
    w.document_with("client", |w| {
        w.document_with("application", |w| w.string("name", app_name));
        w.document_with("driver", |w| {
            w.string("name", "MongoDB Internal Client");
            w.string("version", env!("CARGO_PKG_VERSION"));
        });
        w.document_with("os", |w| w.string("type", "Linux"));
    });
    w.string("hostInfo", host);
    w.string("$db", "admin");
}
