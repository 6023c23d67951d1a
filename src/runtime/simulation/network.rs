//! The network of a simulation: connections that deliver whole writes in order, each after a random delay.
//!
//! ```text
//! connect(port) --delay--> Listener::accept          both ends are a Pipe
//! Pipe::write --------delay 0..=3 ms-------> Pipe::read of the other end
//! cut(a, b)     between two owners nothing is delivered and no connection made; heal() delivers what was held. That an end
//!               has gone, or that the connection is broken, is a message too: nobody hears of it before
//! reset(a, b)   their connections break on both ends at once, and what was under way is lost
//! ```
//! An end belongs to the [`Owner`](crate::Owner) whose task made it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

use super::{note, with};
use crate::{Owner, random_range};

const DELAY_MAX_MS: u64 = 3;

/// Ports that are given where none is asked for begin here.
const FIRST_PORT: u16 = 20_000;

/// Who listens, who is connected, who is cut off from whom.
#[derive(Default)]
pub(super) struct Network {
    listeners: BTreeMap<u16, (String, mpsc::UnboundedSender<(Pipe, SocketAddr)>)>,
    links: Vec<Link>,
    cuts: BTreeSet<(String, String)>,
    ports_given: u16,
}

struct Link {
    ends: (String, String),
    lines: [Weak<Line>; 2],
}

impl Link {
    fn is_between(&self, a: &str, b: &str) -> bool {
        let (x, y) = (self.ends.0.as_str(), self.ends.1.as_str());
        (x, y) == (a, b) || (x, y) == (b, a)
    }
    fn concerns(&self, name: &str) -> bool {
        self.ends.0 == name || self.ends.1 == name
    }
    fn change(&self, change: impl Fn(&mut Direction)) {
        for line in self.lines.iter().filter_map(Weak::upgrade) {
            let mut direction = line.lock();
            change(&mut direction);
            direction.wake();
        }
    }
}

/// One direction of a connection.
struct Line {
    name: String,
    state: Mutex<Direction>,
}

#[derive(Default)]
struct Direction {
    /// What is under way, and when it arrives.
    messages: VecDeque<(Instant, Vec<u8>)>,
    /// How much of the first was read.
    read: usize,
    /// The writer has gone.
    ended: bool,
    /// The reader has gone.
    unread: bool,
    broken: bool,
    held: bool,
    reader: Option<Waker>,
}

impl Direction {
    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, Direction> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One end of a connection.
pub struct Pipe {
    incoming: Arc<Line>,
    outgoing: Arc<Line>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl std::fmt::Debug for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipe").field("name", &self.outgoing.name).finish_non_exhaustive()
    }
}

impl Pipe {
    fn pair(from: &str, to: &str) -> (Pipe, Pipe, Link) {
        let line =
            |from: &str, to: &str| Arc::new(Line { name: format!("{from}>{to}"), state: Mutex::default() });
        let (there, back) = (line(from, to), line(to, from));
        let lines = [Arc::downgrade(&there), Arc::downgrade(&back)];
        let near = Pipe { incoming: back.clone(), outgoing: there.clone(), timer: None };
        let far = Pipe { incoming: there, outgoing: back, timer: None };
        (near, far, Link { ends: (from.to_string(), to.to_string()), lines })
    }

    /// Whether the other end has, as far as can be known here, neither gone nor sent anything that was not read.
    pub fn is_quiet(&self) -> bool {
        let direction = self.incoming.lock();
        direction.held || (!direction.ended && !direction.broken && direction.messages.is_empty())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let mut outgoing = self.outgoing.lock();
        outgoing.ended = true;
        outgoing.wake();
        drop(outgoing);
        self.incoming.lock().unread = true;
    }
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let pipe = self.get_mut();
        loop {
            let mut direction = pipe.incoming.lock();
            let direction = &mut *direction;
            direction.reader = Some(cx.waker().clone());
            if direction.held {
                return Poll::Pending;
            }
            if direction.broken {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            let Some((at, message)) = direction.messages.front() else {
                return if direction.ended { Poll::Ready(Ok(())) } else { Poll::Pending };
            };
            if *at <= Instant::now() {
                let rest = &message[direction.read..];
                let n = rest.len().min(buf.remaining());
                buf.put_slice(&rest[..n]);
                direction.read += n;
                if direction.read == message.len() {
                    direction.messages.pop_front();
                    direction.read = 0;
                }
                pipe.timer = None;
                return Poll::Ready(Ok(()));
            }
            let timer = pipe.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(*at)));
            if timer.deadline() != *at {
                timer.as_mut().reset(*at);
            }
            ready!(timer.as_mut().poll(cx));
        }
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let delay = Duration::from_millis(random_range(0..=DELAY_MAX_MS));
        let mut direction = self.outgoing.lock();
        if !direction.held && (direction.broken || direction.unread) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        note(&self.outgoing.name, bytes);
        let before = direction.messages.back().map(|(at, _)| *at);
        let at = (Instant::now() + delay).max(before.unwrap_or_else(Instant::now));
        direction.messages.push_back((at, bytes.to_vec()));
        direction.wake();
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut direction = self.outgoing.lock();
        direction.ended = true;
        direction.wake();
        Poll::Ready(Ok(()))
    }
}

/// Accepts connections; nobody reaches the port once it is dropped.
pub struct Listener {
    port: u16,
    incoming: mpsc::UnboundedReceiver<(Pipe, SocketAddr)>,
}

impl Listener {
    /// # Errors
    /// AddrInUse. The port 0 takes any that is free.
    pub fn bind(port: u16) -> io::Result<Listener> {
        let (sender, incoming) = mpsc::unbounded_channel();
        change(|network| {
            let port = if port == 0 {
                network.ports_given += 1;
                FIRST_PORT + network.ports_given
            } else {
                port
            };
            if network.listeners.get(&port).is_some_and(|(_, listener)| !listener.is_closed()) {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            network.listeners.insert(port, (own_name(), sender));
            Ok(Listener { port, incoming })
        })
    }
    pub fn local_addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }
    /// The next connection, with the address of its other end; `None` never comes while the listener lives.
    pub async fn accept(&mut self) -> Option<(Pipe, SocketAddr)> {
        self.incoming.recv().await
    }
}

/// Connects to a port. A peer that is cut off is not reached until it is connected again.
///
/// # Errors
/// ConnectionRefused.
pub async fn connect(port: u16) -> io::Result<Pipe> {
    let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
    let own = own_name();
    loop {
        tokio::time::sleep(Duration::from_millis(random_range(0..=DELAY_MAX_MS))).await;
        let attempt = change(|network| {
            let (name, listener) = network.listeners.get(&port).ok_or_else(refused)?;
            if network.is_cut(&own, name) {
                return Ok::<_, io::Error>(None);
            }
            let (near, far, link) = Pipe::pair(&own, name);
            let from = (Ipv4Addr::LOCALHOST, FIRST_PORT).into();
            listener.send((far, from)).map_err(|_| refused())?;
            network.links.retain(|link| link.lines.iter().any(|line| line.strong_count() > 0));
            network.links.push(link);
            Ok(Some(near))
        })?;
        match attempt {
            Some(pipe) => return Ok(pipe),
            None => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

impl Network {
    fn is_cut(&self, a: &str, b: &str) -> bool {
        self.cuts.iter().any(|(x, y)| (x == a && y == b) || (x == b && y == a))
    }
}

/// Cuts two owners off from each other.
pub fn cut(a: &str, b: &str) {
    change(|network| {
        network.cuts.insert((a.to_string(), b.to_string()));
        network
            .links
            .iter()
            .filter(|link| link.is_between(a, b))
            .for_each(|link| link.change(|d| d.held = true));
    });
}

/// Ends all cuts.
pub fn heal() {
    change(|network| {
        network.cuts.clear();
        network.links.iter().for_each(|link| link.change(|d| d.held = false));
    });
}

/// Breaks the connections between two owners.
pub fn reset(a: &str, b: &str) {
    change(|network| {
        network
            .links
            .iter()
            .filter(|link| link.is_between(a, b))
            .for_each(|link| link.change(|d| d.broken = true));
    });
}

/// Breaks everything that leads from or to an owner, who listens no longer.
pub fn unplug(name: &str) {
    change(|network| {
        network
            .links
            .iter()
            .filter(|link| link.concerns(name))
            .for_each(|link| link.change(|d| d.broken = true));
        network.listeners.retain(|_, (owner, _)| owner != name);
    });
}

fn own_name() -> String {
    Owner::current().map_or_else(|| "nobody".to_string(), |owner| owner.name().to_string())
}

/// # Panics
/// Outside simulations.
fn change<T>(f: impl FnOnce(&mut Network) -> T) -> T {
    with(|world| f(&mut world.network.borrow_mut())).expect("a simulation runs on this thread")
}
