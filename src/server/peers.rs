//! The other members of this node's set, over the network.

use crate::service::Service;
use document::{DocBuf, Document, ObjectId, Result, err};
use futures::future::BoxFuture;
use node::replication::{Peers, Replies};
use runtime::Instant;
use std::sync::{Arc, Weak};
use std::time::Duration;
use wire::client::{CallOptions, ConnectOptions, Pool, PoolOptions, Pooled};

/// How long to try to connect to a member: shorter than the usual election timeout.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Reaches members by a pool of their own, so that a busy node still hears of its set.
pub struct Members {
    service: Weak<Service>,
    pool: Pool,
}

impl Members {
    pub fn new(service: &Arc<Service>) -> Arc<Members> {
        let connect = ConnectOptions { connect_timeout: CONNECT_LIMIT, ..crate::members::as_member(service) };
        let pool = Pool::new(PoolOptions { connect, ..PoolOptions::default() });
        Arc::new(Members { service: Arc::downgrade(service), pool })
    }
}

/// What a member answers over one connection. A connection that is dropped while more is to come is closed, by which the member
/// hears that nobody reads on.
struct Stream {
    connection: Pooled,
    /// Not sent yet: the database and the command.
    request: Option<(String, DocBuf)>,
    more: bool,
}

impl Replies for Stream {
    fn next(&mut self, limit: Duration) -> BoxFuture<'_, Option<Result<DocBuf>>> {
        Box::pin(async move {
            if !self.more {
                return None;
            }
            let deadline = Instant::now().checked_add(limit);
            let answered = match self.request.take() {
                Some((db, command)) => self.connection.run_exhaust(&db, deadline, command.doc()).await,
                None => self.connection.next_full(deadline).await,
            };
            self.more = answered.as_ref().is_ok_and(|(_, more)| *more);
            Some(answered.map(|(reply, _)| reply).map_err(Into::into))
        })
    }
}

impl Peers for Members {
    fn call<'a>(
        &'a self,
        host: &'a str,
        db: &'a str,
        command: DocBuf,
        limit: Duration,
    ) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move {
            let options = CallOptions::timeout(limit);
            let call = self.pool.run_full(host, db, &options, &[], command.doc());
            // The deadline of a call does not cover all of connecting.
            match tokio::time::timeout(limit, call).await {
                Ok(done) => Ok(done?),
                Err(_) => Err(err!(NETWORK_TIMEOUT, "{host} did not answer within {} ms", limit.as_millis())),
            }
        })
    }

    fn stream<'a>(
        &'a self,
        host: &'a str,
        db: &'a str,
        command: DocBuf,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Box<dyn Replies>>> {
        Box::pin(async move {
            let connected = self.pool.get_new(host, Instant::now().checked_add(limit));
            let Ok(connection) = tokio::time::timeout(limit, connected).await else {
                return Err(err!(NETWORK_TIMEOUT, "{host} did not answer within {} ms", limit.as_millis()));
            };
            let request = Some((db.to_string(), command));
            Ok(Box::new(Stream { connection: connection?, request, more: true }) as Box<dyn Replies>)
        })
    }

    fn is_self<'a>(&'a self, host: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            match self.service.upgrade() {
                Some(service) => is_own_address(&service, host).await,
                None => false,
            }
        })
    }

    fn is_self_elsewhere<'a>(&'a self, host: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            match self.service.upgrade() {
                Some(service) => leads_here(&service, &self.pool, host).await,
                None => false,
            }
        })
    }

    fn process_at<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Option<ObjectId>> {
        Box::pin(process_at(&self.pool, host))
    }

    fn note(&self, text: &str, attributes: Document) {
        if let Some(service) = self.service.upgrade() {
            service.log.info("REPL", 9_000_010, "ReplCoord", text, attributes);
        }
    }
}

/// Whether the address leads to this node: its port is ours and its name leads to an address of this machine.
async fn is_own_address(service: &Service, host: &str) -> bool {
    let port = host.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    if port != Some(service.port) {
        return false;
    }
    host == service.host
        || tokio::net::lookup_host(host)
            .await
            .is_ok_and(|mut found| found.any(|a| std::net::UdpSocket::bind((a.ip(), 0)).is_ok()))
}

/// Whether this process is what answers at the address: one behind a port that is forwarded has another than its own.
async fn leads_here(service: &Service, pool: &Pool, host: &str) -> bool {
    process_at(pool, host).await == Some(service.topology.version().process_id)
}

async fn process_at(pool: &Pool, host: &str) -> Option<ObjectId> {
    let options = CallOptions::timeout(SELF_LIMIT);
    let asked = pool.run_full(host, "admin", &options, &[], IS_SELF.doc());
    let reply = tokio::time::timeout(SELF_LIMIT, asked).await;
    match reply.ok()?.ok()?.doc().get("id") {
        Some(document::ValueRef::ObjectId(id)) => Some(id),
        _ => None,
    }
}

/// How long an address has to say whose it is.
const SELF_LIMIT: Duration = Duration::from_secs(3);
static IS_SELF: std::sync::LazyLock<DocBuf> =
    std::sync::LazyLock::new(|| document::doc! { "_isSelf": 1 }.to_doc_buf());
