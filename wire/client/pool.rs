//! Connections kept per host.
//!
//! At most [`PoolOptions::max_per_host`] connections to a host exist; who comes later waits in line. An idle one
//! is looked at before it is handed out: a peer that restarted has closed it. When one connection of a host fails
//! the idle ones are dropped with it, as they lead to the same place.
//!
//! Brief calls ([`CallOptions::brief`]) share a few connections instead, where the peer serves many requests at a time on
//! one ([`Multiplexed`]).
//!
//! A call is sent a second time only when no byte of it can have left and the connection was an old one; whether
//! anything else may be repeated only the caller knows.

use super::connection::{CallOptions, ConnectOptions, Connection, Sequences, by, write_request};
use super::multiplexed::Multiplexed;
use super::{CallResult, RemoteError};
use crate::{Limits, OpMsg};
use document::{Doc, DocBuf, DocWriter, Error, Result, codes};
use parking_lot::{Mutex, RwLock};
use runtime::Instant;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Clone, Debug)]
pub struct PoolOptions {
    pub connect: ConnectOptions,
    pub max_per_host: usize,
    /// Idle connections beyond this are closed as they are given back.
    pub max_idle_per_host: usize,
    /// An idle connection older than this is not used again.
    pub max_idle_time: Duration,
    /// How long to wait in line where the call has no deadline.
    pub wait_timeout: Duration,
    /// Connections to a host that brief calls share, at least one. A peer reads all requests of one in one task, so by
    /// default there are as many as cores here, which it likely has as well; beyond a few they would only make the
    /// batches shorter.
    pub lanes: usize,
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        PoolOptions {
            connect: ConnectOptions::default(),
            max_per_host: 512,
            max_idle_per_host: 64,
            max_idle_time: Duration::from_secs(300),
            wait_timeout: Duration::from_secs(20),
            lanes: std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 8)),
        }
    }
}

/// Cheap to clone; clones share the connections.
#[derive(Clone, Debug)]
pub struct Pool {
    options: Arc<PoolOptions>,
    hosts: Arc<RwLock<BTreeMap<String, Arc<Host>>>>,
}

#[derive(Debug)]
struct Host {
    name: String,
    options: Arc<PoolOptions>,
    places: Arc<Semaphore>,
    created: AtomicU64,
    idle: Mutex<Idle>,
    lanes: Box<[Lane]>,
    next_lane: AtomicUsize,
    /// The peer serves one request at a time only; asked again after [`Host::forget`].
    single: AtomicBool,
}

/// The place of a connection that brief calls share.
#[derive(Debug, Default)]
struct Lane {
    live: RwLock<Option<Arc<Multiplexed>>>,
    /// Held while connecting, so that the others wait for the same connection.
    opening: tokio::sync::Mutex<()>,
}

impl Lane {
    fn live(&self) -> Option<Arc<Multiplexed>> {
        self.live.read().clone().filter(|live| !live.has_ended())
    }
}

#[derive(Debug, Default)]
struct Idle {
    /// The most recently used last. Boxed: compression state makes a connection some kilobytes long, and it moves with
    /// every call.
    connections: Vec<(Box<Connection>, Instant)>,
    /// Rises when the idle ones are dropped; connections handed out before are then not taken back.
    generation: u64,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool::new(PoolOptions::default())
    }
}

impl Pool {
    pub fn new(options: PoolOptions) -> Pool {
        Pool { options: Arc::new(options), hosts: Arc::default() }
    }

    fn host(&self, name: &str) -> Arc<Host> {
        if let Some(host) = self.hosts.read().get(name) {
            return host.clone();
        }
        let mut hosts = self.hosts.write();
        let make = || {
            Arc::new(Host {
                name: name.to_string(),
                options: self.options.clone(),
                places: Arc::new(Semaphore::new(self.options.max_per_host)),
                created: AtomicU64::new(0),
                idle: Mutex::default(),
                lanes: (0..self.options.lanes.max(1)).map(|_| Lane::default()).collect(),
                next_lane: AtomicUsize::new(0),
                single: AtomicBool::new(false),
            })
        };
        hosts.entry(name.to_string()).or_insert_with(make).clone()
    }

    /// A connection to `host` (an [`super::Address`] in text), idle or new. Errors: as
    /// [`Connection::connect_with`], and NetworkTimeout when none became free in time.
    pub async fn get(&self, host: &str, deadline: Option<Instant>) -> Result<Pooled> {
        self.host(host).get(deadline, true).await
    }

    /// As [`Pool::get`], but never an idle one.
    pub async fn get_new(&self, host: &str, deadline: Option<Instant>) -> Result<Pooled> {
        self.host(host).get(deadline, false).await
    }

    /// Runs a command on `host` and gives its reply if that says ok; a server's refusal is an error.
    pub async fn run(&self, host: &str, db: &str, command: DocBuf) -> Result<DocBuf> {
        Ok(self.run_full(host, db, &CallOptions::default(), &[], command.doc()).await?)
    }

    /// As [`Pool::run`], with everything that can be said and everything that is known of a failure.
    pub async fn run_full(
        &self,
        host: &str,
        db: &str,
        options: &CallOptions,
        sequences: Sequences<'_>,
        command: Doc<'_>,
    ) -> CallResult<DocBuf> {
        if command.element("$db").is_some() {
            return self.run_as_is(host, options, sequences, command).await;
        }
        let reply = self.call(host, db, options, sequences, |w| w.fields_of(command)).await?;
        super::connection::into_ok(reply)
    }

    /// As [`Pool::run_full`], with a command that names its own `$db`.
    pub async fn run_as_is(
        &self,
        host: &str,
        options: &CallOptions,
        sequences: Sequences<'_>,
        command: Doc<'_>,
    ) -> CallResult<DocBuf> {
        let reply = self.call_as_is(host, options, sequences, |w| w.fields_of(command)).await?;
        super::connection::into_ok(reply)
    }

    /// Sends the command that `write` writes (without `$db`) and gives the reply as it came, ok or not. `write`
    /// is called again if the command has to be sent again.
    pub async fn call(
        &self,
        host: &str,
        db: &str,
        options: &CallOptions,
        sequences: Sequences<'_>,
        write: impl Fn(&mut DocWriter<'_>),
    ) -> CallResult<OpMsg> {
        let with_database = |w: &mut DocWriter<'_>| {
            write(w);
            w.string("$db", db);
        };
        self.call_as_is(host, options, sequences, with_database).await
    }

    /// As [`Pool::call`], with a command that names its own `$db`.
    pub async fn call_as_is(
        &self,
        host: &str,
        options: &CallOptions,
        sequences: Sequences<'_>,
        write: impl Fn(&mut DocWriter<'_>),
    ) -> CallResult<OpMsg> {
        let host = self.host(host);
        if options.brief {
            let mut message = Vec::with_capacity(512);
            write_request(&mut message, 0, 0, sequences, &write);
            if message.len() <= Limits::MULTIPLEXED.max_message
                && let Some(done) = host.call_among_others(&mut message, options.deadline).await
            {
                return done;
            }
        }
        let not_sent = |e| RemoteError::network(e, true);
        let mut connection = host.get(options.deadline, true).await.map_err(not_sent)?;
        match connection.call_as_is(options, sequences, &write).await {
            Err(e) if e.not_sent && connection.was_idle && e.error.code != codes::NETWORK_TIMEOUT => {
                drop(connection);
                let mut connection = host.get(options.deadline, false).await.map_err(not_sent)?;
                connection.call_as_is(options, sequences, &write).await
            }
            done => done,
        }
    }

    /// Closes the idle connections to `host`; those in use close as they are given back.
    pub fn forget(&self, host: &str) {
        if let Some(host) = self.hosts.read().get(host) {
            host.forget();
        }
    }
    /// [`Pool::forget`] for every host.
    pub fn clear(&self) {
        self.hosts.read().values().for_each(|host| host.forget());
    }
    /// For each host: its name, connections in use, idle connections, connections made so far.
    pub fn statistics(&self) -> Vec<(String, usize, usize, u64)> {
        let count = |host: &Arc<Host>| {
            let used = self.options.max_per_host.saturating_sub(host.places.available_permits());
            let lanes: Vec<Arc<Multiplexed>> = host.lanes.iter().filter_map(Lane::live).collect();
            let busy = lanes.iter().filter(|lane| lane.is_busy()).count();
            let idle = host.idle.lock().connections.len() + lanes.len() - busy;
            (host.name.clone(), used + busy, idle, host.created.load(Relaxed))
        };
        self.hosts.read().values().map(count).collect()
    }
}

impl Host {
    async fn get(self: &Arc<Host>, deadline: Option<Instant>, idle: bool) -> Result<Pooled> {
        let place = self.place(deadline).await?;
        if idle && let Some((connection, generation)) = self.take_idle() {
            return Ok(self.pooled(connection, place, generation, true));
        }
        let generation = self.idle.lock().generation;
        let mut connect = self.options.connect.clone();
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            connect.connect_timeout = connect.connect_timeout.min(left);
        }
        let connection = self.connect(connect).await?;
        Ok(self.pooled(Box::new(connection), place, generation, false))
    }

    async fn connect(&self, options: ConnectOptions) -> Result<Connection> {
        // Boxed: rare, and five times as large as the rest of a call.
        let connected = Box::pin(Connection::connect_with(&self.name, &options)).await;
        match &connected {
            Ok(_) => drop(self.created.fetch_add(1, Relaxed)),
            Err(_) => self.forget(),
        }
        connected
    }

    /// Makes a call on a connection shared with others; `None` when the peer has no such connections. Sent again only when
    /// no byte of it can have left.
    async fn call_among_others(
        &self,
        message: &mut [u8],
        deadline: Option<Instant>,
    ) -> Option<CallResult<OpMsg>> {
        let not_sent = |e| RemoteError::network(e, true);
        let lane = &self.lanes[self.next_lane.fetch_add(1, Relaxed) % self.lanes.len()];
        let mut again = true;
        loop {
            let shared = match self.enter(lane, deadline).await {
                Ok(shared) => shared?,
                Err(e) => return Some(Err(not_sent(e))),
            };
            match shared.call(message, deadline).await {
                Err(e) if e.not_sent && again => again = false,
                done => return Some(done),
            }
        }
    }

    async fn enter(&self, lane: &Lane, deadline: Option<Instant>) -> Result<Option<Arc<Multiplexed>>> {
        if let Some(live) = lane.live() {
            return Ok(Some(live));
        }
        if self.single.load(Relaxed) {
            return Ok(None);
        }
        // Boxed: rare, and large.
        Box::pin(self.open(lane, deadline)).await
    }

    async fn open(&self, lane: &Lane, deadline: Option<Instant>) -> Result<Option<Arc<Multiplexed>>> {
        let deadline = deadline.unwrap_or_else(|| Instant::now() + self.options.wait_timeout);
        let Some(_opening) = by(Some(deadline), lane.opening.lock()).await else {
            return Err(self.no_connection());
        };
        if let Some(live) = lane.live() {
            return Ok(Some(live));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let options = ConnectOptions {
            multiplex: true,
            compressors: Vec::new(),
            connect_timeout: self.options.connect.connect_timeout.min(left),
            ..self.options.connect.clone()
        };
        let connection = self.connect(options).await?;
        if !connection.hello().get_bool("multiplex").unwrap_or(false) {
            self.single.store(true, Relaxed);
            return Ok(None);
        }
        let live = Arc::new(Multiplexed::start(connection));
        *lane.live.write() = Some(live.clone());
        Ok(Some(live))
    }

    fn no_connection(&self) -> Error {
        let message = format!("Couldn't get a connection to {} within the time limit", self.name);
        Error::new(codes::NETWORK_TIMEOUT, message)
    }

    fn pooled(
        self: &Arc<Host>,
        connection: Box<Connection>,
        place: OwnedSemaphorePermit,
        generation: u64,
        was_idle: bool,
    ) -> Pooled {
        Pooled { connection: Some(connection), host: self.clone(), generation, was_idle, _place: place }
    }

    async fn place(&self, deadline: Option<Instant>) -> Result<OwnedSemaphorePermit> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Ok(place);
        }
        let deadline = deadline.unwrap_or_else(|| Instant::now() + self.options.wait_timeout);
        match by(Some(deadline), self.places.clone().acquire_owned()).await {
            Some(Ok(place)) => Ok(place),
            _ => Err(self.no_connection()),
        }
    }

    fn take_idle(&self) -> Option<(Box<Connection>, u64)> {
        let mut idle = self.idle.lock();
        while let Some((connection, since)) = idle.connections.pop() {
            if since.elapsed() < self.options.max_idle_time && connection.is_reusable() {
                return Some((connection, idle.generation));
            }
        }
        None
    }

    fn give_back(&self, connection: Box<Connection>, generation: u64) {
        if connection.is_lost() {
            return self.forget();
        }
        if !connection.is_idle() {
            return;
        }
        let mut idle = self.idle.lock();
        if idle.generation == generation && idle.connections.len() < self.options.max_idle_per_host {
            idle.connections.push((connection, Instant::now()));
        }
    }

    fn forget(&self) {
        let mut idle = self.idle.lock();
        idle.generation += 1;
        idle.connections.clear();
        drop(idle);
        self.single.store(false, Relaxed);
        // Calls under way hold on to theirs.
        self.lanes.iter().for_each(|lane| *lane.live.write() = None);
    }
}

/// A connection on loan. It goes back when this is dropped, unless a call failed or was abandoned in it.
#[derive(Debug)]
pub struct Pooled {
    /// Taken only by `drop`.
    connection: Option<Box<Connection>>,
    host: Arc<Host>,
    generation: u64,
    was_idle: bool,
    _place: OwnedSemaphorePermit,
}

impl Deref for Pooled {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("there until dropped")
    }
}
impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("there until dropped")
    }
}
impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.host.give_back(connection, self.generation);
        }
    }
}
