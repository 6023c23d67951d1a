//! `mongobridge`: a proxy before one server, which tells its peers apart and treats them as a test wants.
//!
//! ```text
//! mongobridge --port PORT --dest HOST:PORT [--seed N] [--verbose]
//!
//! peer --request--> | rule of this peer: forward, after a delay; lose; hang up | --> server
//! peer <--reply---- |                      as it comes                         | <-- server
//! ```
//! A peer is known by `hostInfo` of its first hello, `"host:port"` under which it listens itself: what servers with test commands
//! say of themselves, so both ends of a set whose members all have bridges can be told apart. A connection without it has no rule.
//!
//! Commands with `$forBridge: true` are for the bridge, which answers them itself ([`rules`]). A rule that hangs up also ends the
//! connections that the peer has open. A delay is counted from when a request has arrived, so requests that arrive together leave together.
//!
//! Three threads serve a connection: one reads requests, one sends them when they are due, one copies the replies.

mod rules;
#[cfg(test)]
mod tests;

use rules::{Rules, Treatment, Verdict};

use document::Document;
use parking_lot::Mutex;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use wire::op_compressed::Codecs;
use wire::{CompressorSet, Limits, Message, encode};

/// How long a server that does not listen yet is tried.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
const CONNECT_EVERY: Duration = Duration::from_millis(20);
/// Requests of one connection that may wait for their time.
const WAITING_MAX: usize = 1024;
/// Bytes of the longest message between servers.
const MESSAGE_MAX: usize = Limits::BETWEEN_NODES.max_message;
/// Bytes of the longest command for the bridge itself.
const COMMAND_BYTES_MAX: usize = 4096;
const HEADER_LENGTH: usize = wire::header::HEADER_LENGTH;

const EXIT_BAD_OPTIONS: i32 = 2;
const EXIT_NET_ERROR: i32 = 48;

/// What a bridge is told when it is started.
#[derive(Debug, PartialEq)]
struct Options {
    port: u16,
    /// `host:port` of the server.
    dest: String,
    /// Where the sequence of random numbers begins that says which requests are lost.
    seed: u64,
    verbose: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options { port: 0, dest: String::new(), seed: 0, verbose: false };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (name, given) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (arg.as_str(), None),
            };
            if matches!(name, "--verbose" | "-v" | "-vv" | "-vvv" | "-vvvv" | "-vvvvv") {
                options.verbose = true;
                continue;
            }
            let mut value =
                || given.clone().or_else(|| args.next().cloned()).ok_or(format!("{name} needs a value"));
            let number = |text: String| text.parse().map_err(|_| format!("{name} must be a number"));
            match name {
                "--port" => options.port = value()?.parse().map_err(|_| format!("{name} must be a port"))?,
                "--dest" => options.dest = value()?,
                "--seed" => options.seed = number(value()?)?,
                _ => return Err(format!("unrecognised option '{arg}'")),
            }
        }
        match options {
            Options { port: 0, .. } => Err("missing --port".into()),
            Options { dest, .. } if dest.is_empty() => Err("missing --dest".into()),
            options => Ok(options),
        }
    }
}

/// The bridge's `main`: `args` without the program's name. Returns the exit code; ends with the process.
pub fn run(args: Vec<std::ffi::OsString>) -> i32 {
    let args: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let options = match Options::parse(&args) {
        Ok(options) => options,
        Err(text) => {
            eprintln!("mongobridge: {text}");
            return EXIT_BAD_OPTIONS;
        }
    };
    end_cleanly_when_told();
    match TcpListener::bind((Ipv4Addr::UNSPECIFIED, options.port)) {
        Ok(listener) => Bridge::new(options).serve(&listener),
        Err(error) => {
            eprintln!("mongobridge: cannot listen on port {}: {error}", options.port);
            EXIT_NET_ERROR
        }
    }
}

/// SIGTERM and SIGINT end the process with exit code 0: there is nothing to keep.
fn end_cleanly_when_told() {
    extern "C" fn leave(_: libc::c_int) {
        // SAFETY: may be called in a handler.
        unsafe { libc::_exit(0) }
    }
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: the handler does nothing but end the process.
        unsafe { libc::signal(signal, leave as *const () as libc::sighandler_t) };
    }
}

struct Bridge {
    options: Options,
    rules: Mutex<Rules>,
    open: Mutex<Vec<Open>>,
}

/// A connection whose peer has said who it is.
struct Open {
    id: u64,
    host: String,
    ends: Ends,
}

/// Both sockets of a connection, to be closed together.
struct Ends {
    peer: TcpStream,
    server: TcpStream,
}

impl Ends {
    fn try_clone(&self) -> io::Result<Ends> {
        Ok(Ends { peer: self.peer.try_clone()?, server: self.server.try_clone()? })
    }
    fn close(&self) {
        // One that is closed already is what was wanted.
        let _ = self.peer.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

impl Bridge {
    fn new(options: Options) -> Arc<Bridge> {
        let rules = Mutex::new(Rules::new(options.seed));
        Arc::new(Bridge { options, rules, open: Mutex::default() })
    }

    fn serve(self: &Arc<Bridge>, listener: &TcpListener) -> i32 {
        for (id, peer) in listener.incoming().enumerate() {
            let Ok(peer) = peer else { continue };
            let bridge = self.clone();
            std::thread::spawn(move || {
                if let Err(error) = bridge.relay(id as u64, peer) {
                    bridge.tell(|| format!("connection {id} ended: {error}"));
                }
                bridge.open.lock().retain(|open| open.id != id as u64);
            });
        }
        0
    }

    fn tell(&self, line: impl FnOnce() -> String) {
        if self.options.verbose {
            println!("{}", line());
        }
    }

    /// Serves one connection until one of its ends closes.
    fn relay(&self, id: u64, peer: TcpStream) -> io::Result<()> {
        peer.set_nodelay(true)?;
        let server = self.connect()?;
        let ends = Ends { peer, server };
        let (requests, due) = sync_channel(WAITING_MAX);
        let (sending, copying) = (ends.try_clone()?, ends.try_clone()?);
        std::thread::spawn(move || {
            send_when_due(&sending.server, due);
            sending.close();
        });
        std::thread::spawn(move || {
            // The other end is told by closing it, whatever ended this one.
            let _ = io::copy(&mut &copying.server, &mut &copying.peer);
            copying.close();
        });
        let done = self.read_requests(id, &ends, &requests);
        ends.close();
        done
    }

    /// Connects to the server, which may only just be starting.
    fn connect(&self) -> io::Result<TcpStream> {
        let deadline = Instant::now() + CONNECT_LIMIT;
        loop {
            match TcpStream::connect(&self.options.dest) {
                Ok(server) => {
                    server.set_nodelay(true)?;
                    return Ok(server);
                }
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => std::thread::sleep(CONNECT_EVERY),
            }
        }
    }

    fn read_requests(&self, id: u64, ends: &Ends, requests: &SyncSender<Due>) -> io::Result<()> {
        let mut host = None;
        let mut first = true;
        loop {
            let frame = read_frame(&mut &ends.peer)?;
            if std::mem::take(&mut first) {
                host = host_of(&frame);
                if let Some(host) = &host {
                    self.tell(|| format!("connection {id} is from {host}"));
                    self.open.lock().push(Open { id, host: host.clone(), ends: ends.try_clone()? });
                }
            }
            if let Some((reply_to, command)) = for_bridge(&frame) {
                let reply = self.obey(&command);
                (&ends.peer).write_all(&encoded(reply_to, &reply))?;
                continue;
            }
            match self.rules.lock().judge(host.as_deref()) {
                Verdict::HangUp => return Err(io::Error::other("its peer is to be hung up on")),
                Verdict::Lose => self.tell(|| format!("connection {id}: a request is lost")),
                Verdict::Forward { delay } => {
                    let due = Due { at: Instant::now() + delay, frame };
                    requests.send(due).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
                }
            }
        }
    }

    /// Executes a command for the bridge and returns its reply.
    fn obey(&self, command: &Document) -> Document {
        let (host, treatment) = match rules::parse(command) {
            Ok(wanted) => wanted,
            Err(error) => return error.to_reply(),
        };
        self.tell(|| format!("requests of {host}: {treatment:?}"));
        self.rules.lock().set(&host, treatment);
        if treatment == Treatment::HangUp {
            self.open.lock().iter().filter(|open| open.host == host).for_each(|open| open.ends.close());
        }
        document::doc! { "ok": 1.0 }
    }
}

/// A request and when to send it.
struct Due {
    at: Instant,
    frame: Vec<u8>,
}

fn send_when_due(mut server: &TcpStream, requests: Receiver<Due>) {
    for Due { at, frame } in requests {
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        if server.write_all(&frame).is_err() {
            return;
        }
    }
}

/// One whole message, its header included.
fn read_frame(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEADER_LENGTH];
    stream.read_exact(&mut frame)?;
    let length = i32::from_le_bytes([frame[0], frame[1], frame[2], frame[3]]);
    let length = usize::try_from(length).unwrap_or(0);
    if !(HEADER_LENGTH..=MESSAGE_MAX).contains(&length) {
        return Err(io::Error::other(format!("a message of {length} bytes")));
    }
    // Grows with what arrives, whatever length the peer claims.
    stream.take((length - HEADER_LENGTH) as u64).read_to_end(&mut frame)?;
    if frame.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(frame)
}

/// The command of a request, if it can be read.
fn command_of(frame: &[u8]) -> Option<Document> {
    let limits = Limits::BETWEEN_NODES;
    match wire::decode(frame.to_vec().into(), &limits, CompressorSet::default(), &mut Codecs::default())
        .ok()?
    {
        Message::Msg(message) => Some(message.body().to_document()),
        Message::Query(query) => Some(query.body().to_document()),
        _ => None,
    }
}

/// Who the sender of a connection's first request says it is.
fn host_of(frame: &[u8]) -> Option<String> {
    let hello = command_of(frame)?;
    let is_hello = ["hello", "isMaster", "ismaster"].iter().any(|name| hello.get(name).is_some());
    is_hello.then(|| hello.get_str("hostInfo").map(str::to_string)).flatten()
}

/// The id and the command of a request that is for the bridge.
fn for_bridge(frame: &[u8]) -> Option<(i32, Document)> {
    const MARK: &[u8] = b"$forBridge";
    // Most requests are not, and are not decoded.
    let may_be = frame.len() < COMMAND_BYTES_MAX && frame.windows(MARK.len()).any(|part| part == MARK);
    may_be.then_some(())?;
    let command = command_of(frame).filter(|command| command.get("$forBridge").is_some())?;
    Some((wire::Header::parse(frame)?.request_id, command))
}

fn encoded(reply_to: i32, reply: &Document) -> Vec<u8> {
    let body = reply.clone().to_doc_buf();
    let mut out = Vec::new();
    encode::msg(&mut out, 0, reply_to, 0, |w| w.fields_of(body.doc()));
    out
}
