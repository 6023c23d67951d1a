//! The router (`mongos`): one server in front of many, without data of its own.
//!
//! ```text
//! client command ── target ──> shards ──> requests with versions ──> replies ──> one reply
//!                      ^                        │ stale version
//!                      └────── refresh <────────┘
//! ```
//!
//! Every request to a shard says by which version of the placement it was targeted; a shard that knows better refuses,
//! and [`task::Retry`] makes the router read the placement anew and target what was not executed again. A command that
//! concerns one shard is copied to it field by field and its reply copied back; nothing is decoded on that path.
//!
//! Invariant: the router never decides where data is; it only remembers what the config server said, and a shard checks
//! that under the latch of the data.

pub mod admin;
pub mod aggregate;
pub mod background;
pub mod body;
pub mod bulk_write;
pub mod change_stream;
pub mod cluster;
mod collation;
pub mod count;
pub mod cursor;
pub mod ddl;
pub mod defaults;
pub mod explain;
pub mod file_md5;
pub mod find;
pub mod find_and_modify;
pub mod internal;
pub mod map_reduce;
pub mod merge;
pub mod one_document;
mod output;
mod paused_migrations;
mod placed_output;
pub mod resharding;
pub mod sampling;
pub mod scatter;
mod shapes;
pub mod single;
pub mod snapshot;
mod sub_pipelines;
pub mod target;
pub mod targeted;
pub mod task;
mod text;
mod timeseries;
pub mod transaction;
pub mod write;

#[cfg(test)]
mod tests;

pub use cluster::{Cluster, LiveCluster};
pub use task::Task;

use crate::remote::{CLOCK_DRIFT_DEFAULT, is_too_far_ahead};
use crate::routing::CatalogCache;
use document::oid::ObjectIdGenerator;
use document::{Doc, DocBuf, DocWriter, ObjectId, Timestamp};
use node::operation::{ClientInfo, SessionId};
use node::{Operation, Request};
use parking_lot::RwLock;
use query::pipeline::Limits;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::client::Pool;

/// The state of one router.
pub struct Router {
    pub cluster: Arc<dyn Cluster>,
    pub cursors: cursor::CursorTable,
    pub defaults: defaults::Defaults,
    /// What administrators want of queries, read anew with every ping.
    pub query_settings: node::query_settings::QuerySettings,
    pub default_time: node::default_time::DefaultTime,
    pub pauses_migrations: paused_migrations::Switch,
    pub transactions: transaction::Transactions,
    pub targeted: targeted::Targeted,
    /// What stages that run here may hold.
    pub limits: RwLock<Limits>,
    /// The newest cluster time heard of.
    clock: AtomicU64,
    /// `maxAcceptableLogicalClockDriftSecs`; set by the server, which does not change it.
    pub drift_max_secs: std::sync::OnceLock<i64>,
    /// The newest change of the set of shards that a reply has named.
    topology_time: AtomicU64,
    /// `host:port`, under which the router shows itself in `config.mongos`.
    pub host: String,
    object_ids: ObjectIdGenerator,
    started: runtime::Instant,
    /// Lists the operations of this process, for `$currentOp` with `localOps`.
    pub own_operations: std::sync::OnceLock<OwnOperations>,
    pub own_sessions: std::sync::OnceLock<OwnSessions>,
    /// Where the functions of clients run, as far as they run here; set by the server unless scripting is disabled.
    pub scripting: std::sync::OnceLock<Arc<dyn query::script::Engine>>,
}

/// The sessions that the process knows of.
pub type OwnSessions = Box<dyn Fn() -> Vec<(SessionId, i64)> + Send + Sync>;

/// What the flags of a `$currentOp` stage make of the process's operations, for this client.
pub type OwnOperations =
    Box<dyn Fn(&document::Document, &ClientInfo) -> Vec<document::Document> + Send + Sync>;

/// A reply with its `ok`, and the time of the newest operation behind it.
#[derive(Debug)]
pub struct Answer {
    pub body: DocBuf,
    pub operation_time: Option<Timestamp>,
}

impl Router {
    pub fn new(cache: Arc<CatalogCache>, pool: Pool, host: &str) -> Arc<Router> {
        Router::over(Arc::new(LiveCluster::new(cache, pool)), host)
    }
    /// A router over any cluster.
    pub fn over(cluster: Arc<dyn Cluster>, host: &str) -> Arc<Router> {
        Arc::new(Router {
            cluster,
            cursors: cursor::CursorTable::default(),
            defaults: defaults::Defaults::default(),
            query_settings: Default::default(),
            default_time: Default::default(),
            pauses_migrations: Default::default(),
            transactions: transaction::Transactions::default(),
            targeted: targeted::Targeted::default(),
            limits: RwLock::default(),
            clock: AtomicU64::new(0),
            drift_max_secs: std::sync::OnceLock::new(),
            topology_time: AtomicU64::new(0),
            host: host.to_string(),
            object_ids: ObjectIdGenerator::new(runtime::random()),
            started: runtime::Instant::now(),
            own_operations: std::sync::OnceLock::new(),
            own_sessions: std::sync::OnceLock::new(),
            scripting: std::sync::OnceLock::new(),
        })
    }

    /// The newest cluster time that a client or a node has brought.
    pub fn cluster_time(&self) -> Timestamp {
        Timestamp::from_u64(self.clock.load(Ordering::Relaxed))
    }
    /// What requests to other nodes say of time.
    pub fn clock(&self) -> body::Clock {
        body::Clock { cluster: self.cluster_time(), config: self.cluster.config_time() }
    }
    /// The cluster time that a read at one time is given. One that nobody has told a router since it started is asked for.
    ///
    /// # Errors
    /// The config server's; interrupts.
    pub async fn time_to_read_at(&self, op: &Operation) -> document::Result<Timestamp> {
        if self.cluster_time() == Timestamp::default() {
            op.interruptible(Box::pin(self.refresh_defaults())).await??;
        }
        Ok(self.cluster_time())
    }
    /// When the set of shards was changed last, as far as replies have told.
    fn topology_time(&self) -> Timestamp {
        Timestamp::from_u64(self.topology_time.load(Ordering::Relaxed))
    }
    /// Whether a time that a client or a node names can be one of this cluster's.
    fn is_credible(&self, time: Timestamp) -> bool {
        let drift_max = self.drift_max_secs.get().copied().unwrap_or(CLOCK_DRIFT_DEFAULT);
        time <= self.cluster_time() || !is_too_far_ahead(time, task::now_ms(), drift_max)
    }
    /// Takes over a time, unless it is too far ahead: it would be sent to every shard from now on.
    pub fn advance(&self, time: Timestamp) {
        if self.is_credible(time) {
            self.clock.fetch_max(time.as_u64(), Ordering::Relaxed);
        }
    }
    /// The document with an `_id` in front, if it has none.
    pub(crate) fn with_id(&self, document: Doc<'_>) -> Option<DocBuf> {
        document.element("_id").is_none().then(|| {
            DocWriter::build(|w| {
                w.object_id("_id", self.new_object_id());
                w.fields_of(document);
            })
        })
    }
    pub fn new_object_id(&self) -> ObjectId {
        ObjectId::generate(&self.object_ids, (task::now_ms() / 1000) as u32)
    }
    /// Begins a client's command. The functions of this module's children run it; [`Task::finish`] ends it.
    pub fn task<'a>(&'a self, op: &'a Operation, request: Request<'a>) -> Task<'a> {
        Task::new(self, op, request)
    }
}
