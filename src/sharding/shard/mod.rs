//! What a shard adds to a node: identity, placement with its checks, migrations, range deletion.
//!
//! Entry points: [`ShardRole::start`] reads the identity and takes up what a crash interrupted; [`commands::run`]
//! runs what routers, the config server and other shards ask of a shard; the dispatcher calls [`ShardRole::on_stale`] before a
//! stale error goes back; [`ShardRole::enter_critical_section`] and its companions serve migrations and DDL alike.

pub mod cluster_parameters;
pub mod commands;
pub mod coordinator;
pub mod critical_section;
pub mod ddl;
pub mod identity;
pub mod migration;
mod named;
pub mod ownership_filter;
pub mod persisted;
pub mod placement;
pub mod range_deleter;
pub mod refresh;
pub mod resharding;
pub mod statistics;
pub mod user_writes;

#[cfg(test)]
pub(crate) mod tests;

pub use identity::Identity;
pub use ownership_filter::ShardFilter;
pub use placement::{CollectionPlacement, DatabaseState, State};

use crate::remote::Remote;
use crate::routing::CatalogCache;
use document::{Document, Result, bail, err};
use node::Node;
use node::local::LocalClient;
use node::parameters::Parameters;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// The shard half of a node. Made for every member of a set; does nothing until it has an identity.
pub struct ShardRole {
    pub node: Arc<Node>,
    pub local: LocalClient,
    pub remote: Arc<Remote>,
    pub cache: Arc<CatalogCache>,
    pub parameters: Arc<Parameters>,
    pub statistics: statistics::Statistics,
    pub migrations: migration::Migrations,
    pub resharding: resharding::Reshardings,
    pub deleter: range_deleter::RangeDeleter,
    pub coordinators: coordinator::Coordinators,
    pub(crate) signals: persisted::Signals,
    written: persisted::Written,
    identity: RwLock<Option<Arc<Identity>>>,
    assuming: tokio::sync::Mutex<()>,
    /// The identity's collection is observed.
    watching: AtomicBool,
    /// This reign has taken up what the last one left.
    resumed: AtomicBool,
    /// The last reign has ended, and no other has begun.
    ended: AtomicBool,
    /// One refresh of a namespace or database at a time.
    flights: Mutex<named::Named<tokio::sync::Mutex<()>>>,
    /// Every filter given out that may still be alive.
    filters: Mutex<BTreeMap<String, Vec<Weak<ShardFilter>>>>,
    tasks: Mutex<Vec<tokio::task::AbortHandle>>,
    /// Ends what else runs on this shard, and calls [`ShardRole::stop`].
    halt: OnceLock<Box<dyn Fn() + Send + Sync>>,
    me: Weak<ShardRole>,
}

impl ShardRole {
    pub fn new(
        node: Arc<Node>,
        remote: Arc<Remote>,
        cache: Arc<CatalogCache>,
        parameters: Arc<Parameters>,
    ) -> Arc<ShardRole> {
        remote.keep_time(&node, &parameters);
        Arc::new_cyclic(|me| ShardRole {
            local: LocalClient::new(node.clone()),
            node,
            remote,
            cache,
            parameters,
            statistics: statistics::Statistics::default(),
            migrations: migration::Migrations::default(),
            resharding: resharding::Reshardings::default(),
            deleter: range_deleter::RangeDeleter::default(),
            coordinators: coordinator::Coordinators::default(),
            signals: persisted::Signals::default(),
            written: persisted::Written::default(),
            identity: RwLock::new(None),
            assuming: tokio::sync::Mutex::new(()),
            watching: AtomicBool::new(false),
            resumed: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            flights: Mutex::default(),
            filters: Mutex::default(),
            tasks: Mutex::default(),
            halt: OnceLock::new(),
            me: me.clone(),
        })
    }

    /// This member's state in its set has changed: what it knew of placement may be of another time than its data.
    pub fn state_changed(&self) {
        self.signals.raise_all();
        self.written.forget();
    }

    /// This node as a shard; `None` before it was added to a cluster.
    pub fn identity(&self) -> Option<Arc<Identity>> {
        self.identity.read().clone()
    }
    /// # Errors
    /// ShardingStateNotInitialized (203).
    pub fn require_identity(&self) -> Result<Arc<Identity>> {
        self.identity().ok_or_else(|| {
            err!(
                SHARDING_STATE_NOT_INITIALIZED,
                "Cannot accept sharding commands if sharding state has not been initialized with a shardIdentity document"
            )
        })
    }
    /// `getShardMap` as this shard knows the cluster.
    ///
    /// # Errors
    /// Those of asking the config server where no shard is known yet.
    pub async fn shard_map(&self) -> Result<Document> {
        let known = self.remote.registry.load(&self.remote).await?;
        let shards: Vec<_> = known.into_iter().map(|s| (s.name, s.host)).collect();
        Ok(crate::config::shards::shard_map(&shards, self.remote.registry.config().as_deref()))
    }
    pub(crate) fn strong(&self) -> Option<Arc<ShardRole>> {
        self.me.upgrade()
    }

    /// Runs a task of this shard's own until it ends or the shard stops. After that it is dropped, and this answers false: a request of the
    /// reign before that begins something late would have it run beside what the next primary takes up. What was registered for
    /// the task is the caller's to take back then.
    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(&self, task: F) -> bool {
        let mut tasks = self.tasks.lock();
        if self.ended.load(Ordering::SeqCst) {
            return false;
        }
        tasks.retain(|t| !t.is_finished());
        tasks.push(runtime::spawn(task).abort_handle());
        true
    }
    /// A member that leads no more is in no critical section: the next primary is, and is asked for placement. While this member may
    /// still write, as when it stops, they hold.
    fn end_sections(&self) {
        if let Some(identity) = self.identity().filter(|_| !self.leads()) {
            self.forget_placements(&identity.name);
        }
    }
    /// # Errors
    /// InterruptedDueToReplStateChange (11602) when the last reign has ended, and no other has begun.
    fn require_reign(&self) -> Result<()> {
        match self.ended.load(Ordering::SeqCst) {
            false => Ok(()),
            true => {
                bail!(
                    INTERRUPTED_DUE_TO_REPL_STATE_CHANGE,
                    "this member has ceased to be the shard's primary"
                )
            }
        }
    }
    /// Ends the shard's own tasks; what they were at is taken up by the next primary.
    pub fn stop(&self) {
        {
            let mut tasks = self.tasks.lock();
            self.ended.store(true, Ordering::SeqCst);
            self.resumed.store(false, Ordering::SeqCst);
            tasks.drain(..).for_each(|task| task.abort());
        }
        self.end_sections();
        self.migrations.abandon();
        self.resharding.abandon();
        self.coordinators.forget();
        // Another primary gives ranges away without knowing of leases here, which must not hold again in a later reign.
        for slot in self.node.namespaces.all() {
            slot.ranges.forget();
        }
    }
}
