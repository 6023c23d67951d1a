//! From the bytes of a request to the bytes of its reply.
//!
//! The dispatcher finds the command by the raw bytes of the body's first field name, enforces what the row says, reads
//! the generic arguments once, calls the handler, and closes the reply with what every reply carries. It does not
//! decode the body: handlers receive the raw document and read what they need.

pub mod command;
mod doubled;
pub mod generic;
pub mod reply;
pub mod request;
mod run;
#[cfg(test)]
mod tests;

pub use command::{BoxFuture, Command, Handler, Kind, Latencies, Lookup, Needs, Roles};
pub use generic::Generic;
pub use reply::{After, Reply};
pub use request::{Request, Sequence, Strict};
pub use run::{Context, Outcome, invoke};

use crate::connection::Connection;
use crate::service::Service;
use document::Doc;
use std::sync::Arc;

/// Runs one command, its work metered ([`node::lane`]). `body` and `sequences` were validated. `request_id` is that of the
/// message. `out` is the outgoing message so far (its header); the reply's document is appended to it.
pub async fn dispatch(
    service: &Arc<Service>,
    connection: &Arc<Connection>,
    body: Doc<'_>,
    sequences: &[Sequence<'_>],
    exhaust_allowed: bool,
    request_id: i32,
    out: Vec<u8>,
) -> Outcome {
    let running = run::dispatch(service, connection, body, sequences, exhaust_allowed, request_id, out);
    node::lane::metered(running).await
}
