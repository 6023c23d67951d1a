//! The other end: how our own nodes, tools and tests talk to a server.
//!
//! A [`Connection`] carries one command at a time. A [`Pool`] keeps idle connections per host. What fails on the
//! way is an error of the NETWORK category (HostUnreachable, HostNotFound, NetworkTimeout, SocketException); what
//! the server refuses is the server's own error. [`RemoteError`] says which, keeps the whole reply, and knows
//! whether the request was certainly not sent.

mod address;
mod auth;
mod connection;
mod multiplexed;
mod pool;
mod stream;
mod tls;

pub use address::Address;
pub use auth::Credentials;
pub use connection::{CallOptions, ConnectOptions, Connection, NODE_DRIVER, Sequences};
pub use pool::{Pool, PoolOptions, Pooled};
pub use stream::Stream;
pub use tls::ClientTls;

use document::{DocBuf, Error, codes};
use std::io;

/// Why a command failed.
#[derive(Clone, Debug)]
pub struct RemoteError {
    pub error: Error,
    /// The whole reply, with labels, info, writeErrors and cluster times; `None` when no reply came.
    pub reply: Option<DocBuf>,
    /// No byte of the request can have reached the server, so even a write may be sent again.
    pub not_sent: bool,
}

impl RemoteError {
    fn network(error: Error, not_sent: bool) -> Box<RemoteError> {
        Box::new(RemoteError { error, reply: None, not_sent })
    }
    /// Nothing is known of what the server did, or it was never asked.
    pub fn is_network(&self) -> bool {
        self.reply.is_none()
    }
}

impl std::fmt::Display for RemoteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}
impl std::error::Error for RemoteError {}
impl From<Box<RemoteError>> for Error {
    fn from(e: Box<RemoteError>) -> Error {
        e.error
    }
}

/// What every call gives; boxed, because errors are rare and replies are not.
pub type CallResult<T> = Result<T, Box<RemoteError>>;

/// The error a client of the real server would see for a socket error.
fn socket_error(host: &str, doing: &str, e: &io::Error) -> Error {
    use io::ErrorKind::*;
    let code = match e.kind() {
        TimedOut => codes::NETWORK_TIMEOUT,
        UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe | ConnectionRefused | NotFound
        | NotConnected | HostUnreachable | NetworkUnreachable => codes::HOST_UNREACHABLE,
        _ => codes::SOCKET_EXCEPTION,
    };
    let reason =
        if e.kind() == UnexpectedEof { "Connection closed by peer".to_string() } else { e.to_string() };
    Error::new(code, format!("Error {doing} {host} :: caused by :: {reason}"))
}
