//! Who leads a replica set, as a node outside it finds out.
//!
//! A connection string of several hosts names a set. Its primary is asked for with `hello`, remembered, and asked for again
//! when it turns out to lead no more or cannot be reached. A string of one host is that host.

use crate::remote::{Transport, hosts};
use document::error::NOT_PRIMARY;
use document::{Document, Error, Result, codes, doc, err};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long to look for a primary: longer than an election usually takes.
const FIND_LIMIT: Duration = Duration::from_secs(20);
/// How long a member may take to say who it is.
const HELLO_LIMIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// Primaries by connection string.
#[derive(Default)]
pub struct Primaries {
    known: RwLock<BTreeMap<String, String>>,
}

impl Primaries {
    /// The primary of a connection string.
    ///
    /// # Errors
    /// HostNotFound (7) for a string without hosts; FailedToSatisfyReadPreference (133) when nobody leads for long.
    pub async fn find(&self, transport: &dyn Transport, connection: &str) -> Result<String> {
        let mut all = hosts(connection);
        let Some(first) = all.next() else { return Err(err!(HOST_NOT_FOUND, "no host in '{connection}'")) };
        if all.next().is_none() {
            return Ok(first.to_string());
        }
        if let Some(known) = self.known.read().get(connection) {
            return Ok(known.clone());
        }
        // Boxed: rare, and large.
        Box::pin(self.search(transport, connection)).await
    }

    async fn search(&self, transport: &dyn Transport, connection: &str) -> Result<String> {
        let until = Instant::now() + FIND_LIMIT;
        loop {
            let asks = hosts(connection).map(|host| ask(transport, host));
            let answers = futures::future::join_all(asks).await;
            if let Some(primary) = answers.into_iter().flatten().next() {
                self.known.write().insert(connection.to_string(), primary.clone());
                return Ok(primary);
            }
            if Instant::now() >= until {
                return Err(err!(
                    FAILED_TO_SATISFY_READ_PREFERENCE,
                    "Could not find host matching read preference {{ mode: \"primary\" }} for set {connection}"
                ));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Forgets who leads, after an error that says it may be another. True when there can be another, and the request was
    /// certainly not executed: it may be sent again.
    pub fn note_failure(&self, connection: &str, error: &Error, not_sent: bool) -> bool {
        let refused = matches!(
            error.code,
            codes::NOT_WRITABLE_PRIMARY
                | codes::NOT_PRIMARY_NO_SECONDARY_OK
                | codes::NOT_PRIMARY_OR_SECONDARY
        );
        if !error.is(NOT_PRIMARY) && !error.is(document::error::NETWORK) {
            return false;
        }
        self.known.write().remove(connection);
        (not_sent || refused) && hosts(connection).nth(1).is_some()
    }
}

/// The host itself if it leads.
async fn ask(transport: &dyn Transport, host: &str) -> Option<String> {
    let hello: Document = doc! { "hello": 1 };
    let asked = tokio::time::timeout(HELLO_LIMIT, transport.call(host, "admin", hello.to_doc_buf()));
    let reply = asked.await.ok()?.ok()?;
    (reply.doc().get_bool("isWritablePrimary") == Some(true)).then(|| host.to_string())
}

/// How long to go on sending a request that was refused or could not be sent.
pub fn retry_until() -> Instant {
    Instant::now() + FIND_LIMIT
}
