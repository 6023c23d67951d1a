//! A driver-like client without a driver's costs: prepared frames out, replies in, many connections at once.

use crate::timing::since;
use document::{Binary, DocBuf, DocWriter, Document, ObjectId, Value, doc};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::client::{Address, ClientTls, Stream};
use wire::scram::{ClientSide, Mechanism, salted, secret};

/// A server to be reached, and how.
#[derive(Clone)]
pub(crate) struct Target {
    pub address: String,
    pub tls: Option<Arc<ClientTls>>,
    pub user: Option<Arc<User>>,
}

/// Who logs in, of the database `admin`.
pub(crate) struct User {
    name: String,
    password: String,
    /// Stretching takes long, and one server always asks for the same.
    salted: OnceLock<Vec<u8>>,
}

impl User {
    pub(crate) fn new(name: &str, password: &str) -> Arc<User> {
        Arc::new(User { name: name.to_string(), password: password.to_string(), salted: OnceLock::new() })
    }
    fn salted(&self, salt: &[u8], rounds: u32) -> Vec<u8> {
        let stretch = || {
            let secret = secret(Mechanism::Sha256, &self.name, &self.password).expect("a plain password");
            salted(Mechanism::Sha256, &secret, salt, rounds)
        };
        self.salted.get_or_init(stretch).clone()
    }
}

impl Target {
    pub(crate) fn new(address: &str) -> Target {
        Target { address: address.to_string(), tls: None, user: None }
    }
}

/// One connection, one request at a time.
pub(crate) struct Client {
    stream: Stream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: &str) -> Client {
        Client::open(&Target::new(address)).await
    }
    pub(crate) async fn open(target: &Target) -> Client {
        let address = Address::parse(&target.address).expect("an address");
        let stream = Stream::connect(&address, target.tls.as_deref()).await.expect("connect");
        let mut client = Client { stream, buffer: Vec::with_capacity(64 * 1024) };
        if let Some(user) = &target.user {
            client.log_in(user).await;
        }
        client
    }
    async fn log_in(&mut self, user: &User) {
        let payload = |text: String| Value::Binary(Binary { subtype: 0, bytes: text.into_bytes() });
        let (mut login, first) = ClientSide::begin(Mechanism::Sha256, &user.name);
        let start = doc! {
            "saslStart": 1, "mechanism": Mechanism::Sha256.name(), "payload": payload(first), "options": { "skipEmptyExchange": true },
        };
        let reply = self.run("admin", start).await;
        let Some(Value::Binary(challenge)) = reply.get("payload") else { panic!("{reply:?}") };
        let proof =
            login.prove(&challenge.bytes, |_, salt, rounds| user.salted(salt, rounds)).expect("a challenge");
        let id = reply.get_i64("conversationId");
        let end = doc! { "saslContinue": 1, "conversationId": id, "payload": payload(proof) };
        let reply = self.run("admin", end).await;
        assert_eq!(reply.get_bool("done"), Some(true), "{reply:?}");
    }
    /// Sends a frame and reads the whole reply, header included.
    pub(crate) async fn call(&mut self, frame: &[u8]) -> &[u8] {
        self.stream.write_all(frame).await.expect("send");
        self.buffer.clear();
        loop {
            if self.buffer.len() >= 4 {
                let length = u32::from_le_bytes(self.buffer[..4].try_into().expect("four bytes")) as usize;
                if self.buffer.len() >= length {
                    return &self.buffer;
                }
            }
            let n = self.stream.read_buf(&mut self.buffer).await.expect("receive");
            assert!(n > 0, "the server closed the connection");
        }
    }
    /// Runs a command and asserts that it succeeded.
    pub(crate) async fn command(&mut self, db: &str, command: impl FnOnce(&mut DocWriter<'_>)) -> DocBuf {
        let frame = frame(db, command);
        let reply = self.call(&frame).await;
        let body = DocBuf::from_validated(reply[21..].to_vec());
        assert!(body.get("ok").is_some_and(|ok| ok.truthy()), "{body:?}");
        assert!(body.get("writeErrors").is_none(), "{body:?}");
        body
    }
    /// Runs a command and asserts that it succeeded.
    pub(crate) async fn run(&mut self, db: &str, command: Document) -> Document {
        self.command(db, |w| command.write_fields(w)).await.doc().to_document()
    }
    /// Runs a command and returns its reply, an error too.
    pub(crate) async fn attempt(&mut self, db: &str, command: &Document) -> Document {
        let frame = frame(db, |w| command.write_fields(w));
        DocBuf::from_validated(self.call(&frame).await[21..].to_vec()).doc().to_document()
    }
}

/// An OP_MSG frame of one command.
pub(crate) fn frame(db: &str, command: impl FnOnce(&mut DocWriter<'_>)) -> Vec<u8> {
    let mut out = vec![0; 21];
    DocWriter::write(&mut out, |w| {
        command(w);
        w.string("$db", db);
    });
    let length = out.len() as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out[4..8].copy_from_slice(&1u32.to_le_bytes());
    out[12..16].copy_from_slice(&2013u32.to_le_bytes());
    out
}

/// A document of 20 fields and about 1 KB; `n` is a counter.
pub(crate) fn write_document(w: &mut DocWriter<'_>, id: u64) {
    w.i64("_id", id as i64);
    w.i32("n", 0);
    w.object_id("owner", ObjectId([7; 12]));
    w.double("score", id as f64 / 3.0);
    w.bool("active", id.is_multiple_of(2));
    w.i32("group", (id % 1000) as i32);
    for i in 0..14 {
        w.string(
            &format!("field{i:02}"),
            &format!("{:0>48}", id.wrapping_mul(2_654_435_761).wrapping_add(i)),
        );
    }
}

/// Inserts documents that say when they were made, in milliseconds since `origin` (`at`), so many a second and so many at once; returns how
/// many. The command also has the fields `more`.
pub(crate) async fn insert_at_rate(
    address: &str,
    (rate, batch): (u64, u64),
    origin: Instant,
    time: Duration,
    more: &Document,
) -> u64 {
    let mut client = Client::connect(address).await;
    let started = Instant::now();
    let mut written = 0;
    while started.elapsed() < time {
        let due = Duration::from_secs_f64(written as f64 / rate as f64);
        tokio::time::sleep(due.saturating_sub(started.elapsed())).await;
        let at = since(origin);
        let documents: Vec<Document> =
            (0..batch).map(|n| doc! { "at": at, "n": n as i64, "text": "some text" }).collect();
        let mut insert = doc! { "insert": "c", "documents": documents };
        insert.0.extend(more.0.iter().cloned());
        client.run("bench", insert).await;
        written += batch;
    }
    written
}

/// What many connections achieved together.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    pub requests: u64,
    pub seconds: f64,
}
impl Rate {
    pub(crate) fn per_second(&self) -> f64 {
        self.requests as f64 / self.seconds
    }
}

/// Keeps `connections` busy for `time`; `next` makes the frame of the n-th request.
pub(crate) async fn drive(
    address: &str,
    connections: usize,
    time: Duration,
    next: impl Fn(u64, &mut Vec<u8>) + Send + Sync + 'static,
) -> Rate {
    drive_to(&Target::new(address), connections, time, next).await
}

/// As [`drive`], over TLS or by a user.
pub(crate) async fn drive_to(
    target: &Target,
    connections: usize,
    time: Duration,
    next: impl Fn(u64, &mut Vec<u8>) + Send + Sync + 'static,
) -> Rate {
    let (next, counter) = (Arc::new(next), Arc::new(AtomicU64::new(0)));
    // Logging in is no part of it.
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(Client::open(target).await);
    }
    let started = Instant::now();
    let mut tasks = Vec::new();
    for mut client in clients {
        let (next, counter) = (next.clone(), counter.clone());
        tasks.push(tokio::spawn(async move {
            let (mut frame, mut done) = (Vec::new(), 0u64);
            while started.elapsed() < time {
                let n = counter.fetch_add(1, Ordering::Relaxed);
                frame.clear();
                next(n, &mut frame);
                let reply = client.call(&frame).await;
                if done == 0 {
                    check(reply);
                }
                done += 1;
            }
            done
        }));
    }
    let mut requests = 0;
    for task in tasks {
        requests += task.await.expect("a connection failed");
    }
    Rate { requests, seconds: started.elapsed().as_secs_f64() }
}

/// A benchmark of errors measures nothing: the first reply of each connection is looked at.
fn check(reply: &[u8]) {
    let body = DocBuf::from_validated(reply[21..].to_vec());
    assert!(body.get("ok").is_none_or(|ok| ok.truthy()) && body.get("writeErrors").is_none(), "{body:?}");
}
