//! One data-bearing process: write path, reads, cursors, sessions, catalog, oplog, replica set of one.
//!
//! Entry points: [`Node::open`] recovers a data directory; [`write`] changes data; [`read`] and [`cursor`] answer
//! queries; [`ddl`] changes the catalog; [`local::LocalClient`] is what a node uses for its own metadata.
//!
//! Invariant: nothing here knows of routing tables, chunks or the network. What a shard adds comes in through the
//! traits of [`namespace`] (placement, ownership filter) and [`observer`].

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on the machine's clock")
)]

pub mod auth;
pub mod batch;
pub mod cardinality;
pub mod change_stream;
pub mod cluster_parameters;
mod collection_uuid;
pub mod concern;
pub mod cursor;
pub mod db_check;
pub mod ddl;
pub mod default_concerns;
pub mod default_time;
pub mod exec;
pub mod failpoints;
pub mod fork;
pub mod generic;
pub mod holders;
pub mod lane;
pub mod local;
pub mod log_components;
pub mod maintenance;
pub mod memory;
pub mod metadata_errors;
pub mod namespace;
pub mod observer;
pub mod open;
pub mod operation;
pub mod oplog_view;
pub mod parameters;
pub mod past;
pub mod plan_cache;
pub mod query_settings;
pub mod ranges;
pub mod read;
pub mod relaxed;
pub mod replication;
pub mod request;
pub mod sampling;
pub mod session;
pub mod shape;
pub mod snapshots;
pub mod standstill;
pub mod stripe;
pub mod temporary;
pub mod timeseries;
pub mod transaction;
pub mod ttl;
pub mod user_writes;
pub mod view;
pub mod write;

pub use open::{NodeOptions, Opened};
pub use operation::Operation;
pub use request::Request;
pub use write::commit::WideUnit;
pub use write::unit::{BatchWrite, Origin, WriteUnit};

use document::oid::ObjectIdGenerator;
use document::{Collation, Doc, Document, Error, ObjectId, Timestamp, err};
use futures::FutureExt;
use parking_lot::RwLock;
use query::script::Scripts;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use storage::log::{Clock, Log, LogError};

/// A node: its data, log, sessions and catalog. Several may live in one process.
pub struct Node {
    pub options: NodeOptions,
    pub log: Log,
    pub clock: Arc<dyn Clock>,
    /// Passed, shared, by every commit; taken exclusively, for a moment, by a checkpoint.
    pub(crate) gate: RwLock<()>,
    pub namespaces: namespace::Namespaces,
    pub sessions: session::SessionTable,
    pub(crate) snapshots: Arc<snapshots::Snapshots>,
    pub transactions: transaction::Transactions,
    pub(crate) past: past::Past,
    /// The cluster time of the last restore; see [`fork`].
    pub(crate) restored_ts: std::sync::atomic::AtomicU64,
    pub observers: observer::Observers,
    pub failpoints: failpoints::FailPoints,
    pub replication: replication::Replication,
    pub log_holds: maintenance::LogHolds,
    pub cursors: cursor::Cursors,
    pub(crate) stream_feed: change_stream::feed::Feed,
    pub index_builds: ddl::index_builds::IndexBuilds,
    pub index_use: read::index_use::IndexUse,
    pub plan_caches: plan_cache::PlanCaches,
    pub query_settings: Arc<query_settings::QuerySettings>,
    pub default_time: Arc<default_time::DefaultTime>,
    pub cardinality: Arc<cardinality::Cardinality>,
    /// Sampled queries that are to be written, and which collections are sampled.
    pub samples: sampling::samples::Samples,
    pub analyzers: sampling::analyzers::Analyzers,
    /// Whether the writes of users are blocked.
    pub user_writes: Arc<user_writes::UserWrites>,
    /// The buckets of time series that are being filled.
    pub series: timeseries::Catalog,
    pub ttl: ttl::Totals,
    pub db_checks: db_check::Checks,
    /// What the process around the node answers for it in `$currentOp` and `$collStats`; set by the server.
    pub hooks: RwLock<Option<Arc<dyn read::hooks::Hooks>>>,
    /// Where the functions of clients run; set by the server unless scripting is disabled.
    pub scripting: std::sync::OnceLock<Arc<dyn query::script::Engine>>,
    pub object_ids: ObjectIdGenerator,
    /// What each kind of stage may hold before it spills or fails.
    pub limits: RwLock<query::pipeline::Limits>,
    /// `indexMaxNumGeneratedKeysPerDocument`.
    pub keys_of_places_max: std::sync::atomic::AtomicUsize,
    /// `allowDiskUseByDefault`.
    pub disk_use_by_default: std::sync::atomic::AtomicBool,
    /// Where stages spill.
    pub temporary: Arc<temporary::TemporaryFiles>,
    /// What stages wrote there since the start.
    pub spills: Arc<query::pipeline::Spills>,
    /// Some database is profiled: operations note their plans.
    pub profiling: std::sync::atomic::AtomicBool,
    /// Writes that met what an open transaction has changed, since the start.
    pub write_conflicts: stripe::Counter,
    /// A member of a set that was started without it: what is written meanwhile is this node's own, and its set never hears of it.
    pub is_detached: bool,
    pub(crate) directory: open::Directory,
}

impl Node {
    /// Wall-clock milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_millis()
    }
    /// Milliseconds since 1970 by the clock on the wall: local time, where the process has one.
    pub fn local_ms(&self) -> i64 {
        let now = self.now_ms();
        now.saturating_add(self.clock.local_offset_millis(now))
    }
    pub fn new_object_id(&self) -> ObjectId {
        ObjectId::generate(&self.object_ids, (self.now_ms() / 1000) as u32)
    }
    /// A random UUID.
    pub fn new_uuid(&self) -> [u8; 16] {
        runtime::uuid()
    }
    /// The newest cluster time this node has handed out or heard of.
    pub fn cluster_time(&self) -> Timestamp {
        Timestamp::from_u64(self.log.last_ts())
    }
    /// Whether this node was started as a member of a replica set.
    pub fn is_replica_set(&self) -> bool {
        self.options.replica_set.is_some()
    }
    /// Notes, for the profiler, that an operation asked for one document by `_id`.
    pub(crate) fn note_point(&self, op: &Operation, found: bool) {
        if self.profiling.load(Ordering::Relaxed) {
            op.note_examined(found as u64, found as u64);
            op.note_plan("IDHACK".to_string());
            exec::profiled::note_point(op, found);
        }
    }
    /// Lets go of what is kept of a collection that is gone: what idle cursors hold of it, what was learnt of its queries, and
    /// how often it was read under this name.
    pub(crate) fn forget_dropped(&self, uuid: [u8; 16], ns: &str) {
        self.index_use.forget(ns);
        self.cursors.release_dropped(uuid);
        self.index_builds.forget_dropped(uuid);
        self.plan_caches.forget(uuid);
    }
    /// Whose keys those of a client's document or index are.
    pub(crate) fn offered_keys(&self) -> storage::index::Keys {
        storage::index::Keys::Offered { places_max: self.keys_of_places_max.load(Ordering::Relaxed) }
    }
    /// What a blocking sort may use: the disk where the client says so, or the parameter when the client says nothing.
    /// What it writes is noted with the operation.
    pub fn sort_means(&self, op: &Operation, disk: Option<bool>) -> exec::sorter::Means {
        let disk = disk.unwrap_or_else(|| self.disk_use_by_default.load(Ordering::Relaxed));
        let space = disk.then(|| self.temporary.clone() as _);
        let told = vec![op.spills(), self.spills.clone()];
        let bytes_max = Some(self.limits.read().sort);
        exec::sorter::Means { bytes_max, space, account: None, told }
    }
    /// As [`Node::parse_context`], for a command on `slot`: with the collation it names, and else with the default of the
    /// collection or view. An empty document names none.
    ///
    /// # Errors
    /// Those of [`Collation::parse`].
    pub fn parse_context_on(
        &self,
        slot: &namespace::Slot,
        collation: Option<Doc<'_>>,
        variables: Document,
    ) -> document::Result<query::QueryContext> {
        let collation = match collation.filter(|d| !d.is_empty()) {
            Some(spec) => Collation::parse(spec)?,
            None => slot.collation(),
        };
        Ok(self.parse_context(variables).with_collation(&collation))
    }
    /// Tells a context what the filter needs of its collection and database: the text index for `$text`, the stored
    /// functions for `$where`.
    pub fn note_text_index(
        &self,
        context: &mut query::QueryContext,
        slot: &namespace::Slot,
        filter: Doc<'_>,
    ) {
        if query::matcher::ops::stands_in(filter, "$text") {
            let state = slot.read_unchecked();
            let indexes = state.collection.iter().flat_map(|c| c.indexes());
            context.text_index = indexes.filter_map(|i| i.spec().text()).next().cloned();
        }
        if query::matcher::ops::stands_in(filter, "$where") {
            let db = storage::split_namespace(&slot.ns).0;
            context.scripts.stored = Some(Arc::new(self.stored_functions(db).to_doc_buf()));
        }
    }
    /// The functions that `system.js` of a database holds, by name.
    pub fn stored_functions(&self, db: &str) -> Document {
        let slot = self.namespaces.slot(&format!("{db}.system.js"));
        let state = slot.read_unchecked();
        let Some(collection) = &state.collection else { return Document::new() };
        use storage::CollectionView;
        let snapshot = collection.snapshot();
        let (mut cursor, mut documents) = (snapshot.records(), Vec::new());
        let mut next = cursor.first();
        while let Some((_, doc)) = next {
            documents.push(doc.to_document());
            next = cursor.next();
        }
        query::script::stored_functions(documents.into_iter())
    }
    /// What a parser of queries may see of the outside.
    pub fn parse_context(&self, variables: Document) -> query::QueryContext {
        query::ParseContext {
            variables,
            now_ms: self.now_ms(),
            cluster_time: self.cluster_time(),
            timeless: false,
            clockless: !self.is_replica_set(),
            seed: runtime::random(),
            scripts: Scripts::new(self.scripting.get().cloned()),
        }
        .into()
    }
}

impl Node {
    /// Waits while too much of the log is unwritten, as long as the operation may.
    ///
    /// # Errors
    /// Those of [`log_failed`], and of an operation that is to end.
    pub(crate) async fn admit(&self, op: &Operation) -> document::Result<()> {
        let admitted = match self.log.admit(0).now_or_never() {
            Some(admitted) => admitted,
            // Boxed: rare, and large.
            None => Box::pin(op.interruptible(self.log.admit(0))).await?,
        };
        admitted.map_err(log_failed)
    }
}

/// The error of a write that the log could not take.
pub fn log_failed(e: LogError) -> Error {
    err!(LOG_WRITE_FAILED, "{e}")
}
