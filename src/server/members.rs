//! What sharding adds to a node of the process: the router of a mongos, the shard role and the config server of a mongod.
//!
//! Made by the start-up step [`start`], before clients are served. A member that a node does not have is absent, and a
//! command that needs it is refused by its row's roles or, on a shard that no cluster has taken in yet, with
//! ShardingStateNotInitialized (203).

use crate::commands::current_op::{Shown, documents};
use crate::dispatch::Roles;
use crate::service::{Service, Times};
use crate::topology::LastWrite;
use document::{Result, Timestamp, doc, err};
use node::Operation;
use node::auth::Owners;
use node::replication::PrimaryService;
use sharding::config::ConfigServer;
use sharding::remote::{CLOCK_DRIFT_MAX, Remote};
use sharding::router::Router;
use sharding::routing::CatalogCache;
use sharding::shard::ShardRole;
use sharding::shard::ddl::Ddl;
use std::sync::{Arc, OnceLock};
use wire::Limits;
use wire::client::{ConnectOptions, Pool, PoolOptions};

/// The members, each set at most once.
#[derive(Default)]
pub struct Members {
    router: OnceLock<Arc<Router>>,
    config: OnceLock<Arc<ConfigServer>>,
    shard: OnceLock<Arc<ShardRole>>,
    ddl: OnceLock<Arc<Ddl>>,
    /// Connections to other nodes.
    pool: OnceLock<Pool>,
    remote: OnceLock<Arc<Remote>>,
    cache: OnceLock<Arc<CatalogCache>>,
}

impl Members {
    /// The router of a mongos.
    ///
    /// # Errors
    /// CommandNotFound-like refusal (59) on a node that is none.
    pub fn router(&self) -> Result<&Arc<Router>> {
        self.router.get().ok_or_else(|| err!(COMMAND_NOT_FOUND, "this node is no router"))
    }
    /// The config server's catalog and commands.
    ///
    /// # Errors
    /// IllegalOperation (20) on a node that is none.
    pub fn config(&self, command: &str) -> Result<&Arc<ConfigServer>> {
        self.config
            .get()
            .ok_or_else(|| err!(ILLEGAL_OPERATION, "{command} can only be run on config servers"))
    }
    /// The shard role of a member of a set that a cluster has taken in, or may.
    ///
    /// # Errors
    /// ShardingStateNotInitialized (203).
    pub fn shard(&self) -> Result<&Arc<ShardRole>> {
        self.shard.get().ok_or_else(no_shard)
    }
    /// The coordinators of catalog changes on a shard.
    ///
    /// # Errors
    /// ShardingStateNotInitialized (203).
    pub fn ddl(&self) -> Result<&Arc<Ddl>> {
        self.ddl.get().ok_or_else(no_shard)
    }
    /// Connections to other nodes; `None` outside a cluster.
    pub fn pool(&self) -> Option<&Pool> {
        self.pool.get()
    }
    /// The way to other nodes; `None` outside a cluster.
    pub fn remote(&self) -> Option<&Arc<Remote>> {
        self.remote.get()
    }
    /// What this node knows of placement; `None` where nothing is placed by it.
    pub fn cache(&self) -> Option<&Arc<CatalogCache>> {
        self.cache.get()
    }
    /// The shards this node knows of, by name, with their connection strings.
    pub fn known_shards(&self) -> Vec<(String, String)> {
        let registry = self.remote.get().map(|remote| &remote.registry);
        registry.map_or(Vec::new(), |r| r.shards().into_iter().map(|s| (s.name, s.host)).collect())
    }
    /// When the set of shards was changed last, as a config server or a shard knows it and tells other nodes.
    pub fn topology_time(&self) -> Option<Timestamp> {
        let time = match self.config.get() {
            Some(config) => config.topology_time(),
            None => self.shard.get()?.remote.registry.topology_time(),
        };
        Some(time).filter(|t| t.as_u64() != 0)
    }
    /// Up to when this node knows of the catalog: a member of the config server's set, what is committed; a shard, what it has heard.
    pub fn config_time(&self) -> Option<Timestamp> {
        let time = match self.config.get() {
            Some(config) => Timestamp::from_u64(config.node.committed().ts),
            None => self.remote.get()?.config_time.get(),
        };
        Some(time).filter(|t| t.as_u64() != 0)
    }
    /// Takes in what another node says of that.
    pub fn hear_config_time(&self, time: Option<Timestamp>) {
        if let Some(remote) = self.remote.get() {
            remote.hear_config_time(time);
        }
    }
    /// This member's state in its set has changed.
    pub fn state_changed(&self) {
        if let Some(role) = self.shard.get() {
            role.state_changed();
        }
    }
    /// What a shard does about a stale error before it goes back to the router: it learns what it may have missed.
    pub async fn on_stale(&self, error: &document::Error) {
        use document::error::{STALE_DB_VERSION, STALE_SHARD_VERSION};
        if let Some(role) = self.shard.get().filter(|_| error.is(STALE_SHARD_VERSION | STALE_DB_VERSION)) {
            role.on_stale(error).await;
        }
    }
    /// The same for a write's reply, which carries such an error among its `writeErrors`.
    pub async fn on_reply(&self, reply: &document::Document) {
        if let Some(role) = self.shard.get().filter(|_| reply.contains_key("writeErrors")) {
            role.on_reply(reply).await;
        }
    }
}

fn no_shard() -> document::Error {
    err!(
        SHARDING_STATE_NOT_INITIALIZED,
        "Cannot accept sharding commands if sharding state has not been initialized with a shardIdentity document"
    )
}

/// Makes what the node's role asks for.
pub async fn start(service: &Arc<Service>) -> Result<()> {
    if service.role == Roles::ROUTER {
        start_router(service);
    }
    if service.role == Roles::CONFIG {
        start_config(service).await?;
    }
    if service.role == Roles::SHARD {
        start_shard(service).await?;
    }
    Ok(())
}

/// How this node connects to others: as a member of the cluster, by the key and the certificate they share.
pub fn as_member(service: &Service) -> ConnectOptions {
    ConnectOptions {
        internal_client: Some(
            doc! { "minWireVersion": 0, "maxWireVersion": crate::options::MAX_WIRE_VERSION },
        ),
        host_info: service.parameters.test_commands().then(|| service.host.clone()),
        credentials: service.auth.key.as_ref().map(|key| key.credentials()),
        certificate_login: service.auth.sends_certificate.clone(),
        tls: service.tls.as_ref().map(|tls| tls.client.clone()),
        limits: Limits::BETWEEN_NODES,
        // Where users are not checked, a node that does not know the key is served as one without it.
        credentials_optional: service.options.transition_to_auth || !service.options.auth,
        ..ConnectOptions::default()
    }
}

/// The way to other nodes, made once.
fn remote(service: &Service, config: Option<&str>) -> (Pool, Arc<Remote>) {
    let pool = Pool::new(PoolOptions { connect: as_member(service), ..PoolOptions::default() });
    let remote = Remote::new(Arc::new(pool.clone()), config);
    let _ = service.members.pool.set(pool.clone());
    let _ = service.members.remote.set(remote.clone());
    (pool, remote)
}

fn start_router(service: &Arc<Service>) {
    let (pool, remote) = remote(service, service.options.config_db.as_deref());
    let cache = CatalogCache::new(remote.clone());
    service.spawn(async move { remote.keep_registry().await });
    let _ = service.members.cache.set(cache.clone());
    let router = Router::new(cache, pool, &service.host);
    let _ = router.drift_max_secs.set(service.parameters.int(CLOCK_DRIFT_MAX));
    *router.limits.write() = node::memory::limits(&service.parameters);
    service.set_times(Arc::new(RouterTimes(router.clone())));
    let own = Arc::downgrade(service);
    let _ = router.own_operations.set(Box::new(move |flags, client| {
        let idle_connections = flags.get_bool("idleConnections") == Some(true);
        let owners = Owners::operating(flags, client);
        let idle_sessions = flags.get_bool("idleSessions").unwrap_or(true);
        let truncates = flags.get_bool("truncateOps") == Some(true);
        let shown = Shown { owners, idle_connections, idle_sessions, idle_cursors: false, truncates };
        own.upgrade().map_or(Vec::new(), |service| documents(&service, &shown))
    }));
    let own = Arc::downgrade(service);
    let _ = router
        .own_sessions
        .set(Box::new(move || own.upgrade().map_or(Vec::new(), |service| service.sessions.list())));
    let own = Arc::downgrade(service);
    let _ = router.transactions.metrics.observer.set(Box::new(move |open, connection, account| {
        if let Some(service) = own.upgrade() {
            service.log_transaction_if_slow(51805, open, connection, account);
        }
    }));
    service.spawn(crate::auth::users::follow_config(service.clone()));
    let ping = AbortOnDrop(router.start(crate::options::VERSION));
    // The service aborts its tasks when it stops, and with this one the ping ends.
    service.spawn(async move {
        let _ping = ping;
        std::future::pending::<()>().await;
    });
    let _ = service.members.router.set(router);
}

async fn start_config(service: &Arc<Service>) -> Result<()> {
    let Some(node) = service.node.clone() else { return Ok(()) };
    let (_, remote) = remote(service, None);
    let config = ConfigServer::new(node.clone(), remote.clone(), service.parameters.clone());
    let _ = service.members.config.set(config.clone());
    let balancer = PrimaryService::task("balancer", move || {
        let own = config.clone();
        async move {
            let _stops = StopBalancer(own.clone());
            // A failed log is reported by every command; the catalog is made by the first that succeeds.
            drop(own.ensure().await);
            // What stands against it the next transition meets, too.
            drop(own.finish_transition().await);
            own.start_balancer();
            let _resumes = AbortOnDrop(runtime::spawn(own.clone().resume_user_write_block()));
            let _whole = AbortOnDrop(runtime::spawn(own.clone().resume_whole()));
            let _told = AbortOnDrop(runtime::spawn(own.clone().keep_shards_told()));
            own.follow_members().await;
        }
    });
    node.replication.services.register(balancer).await?;
    // It may become a shard, too.
    start_shard_role(service, node, remote).await
}

/// A shard takes up what a crash or a step-down interrupted before it serves: namespaces that are undecided are blocked by
/// then. Migrations, range deletions and coordinators of catalog changes end with the reign.
async fn start_shard(service: &Arc<Service>) -> Result<()> {
    let Some(node) = service.node.clone() else { return Ok(()) };
    let (_, remote) = remote(service, None);
    start_shard_role(service, node, remote).await
}

async fn start_shard_role(service: &Arc<Service>, node: Arc<node::Node>, remote: Arc<Remote>) -> Result<()> {
    let cache = CatalogCache::new(remote.clone());
    let kept = remote.clone();
    service.spawn(async move { kept.keep_registry().await });
    let _ = service.members.cache.set(cache.clone());
    let role = ShardRole::new(node.clone(), remote, cache, service.parameters.clone());
    let ddl = Ddl::new(role.clone());
    let own = Arc::downgrade(service);
    let _ = role.coordinators.observer.set(Box::new(move |text, attributes| {
        if let Some(service) = own.upgrade() {
            service.log.warning("TXN", 9_000_011, "TransactionCoordinator", text, attributes);
        }
    }));
    let _ = service.members.shard.set(role.clone());
    let _ = service.members.ddl.set(ddl.clone());
    role.read_identity()?;
    let (resuming, stopping) = (role, ddl.clone());
    let shard = PrimaryService {
        name: "shard",
        recover: Arc::new(move || {
            let (role, ddl) = (resuming.clone(), ddl.clone());
            Box::pin(async move {
                role.start().await?;
                ddl.resume().await
            })
        }),
        run: Arc::new(|| Box::pin(std::future::pending())),
        halt: Arc::new(move || stopping.stop()),
    };
    node.replication.services.register(shard).await
}

/// The balancer ends with the task that started it.
struct StopBalancer(Arc<ConfigServer>);
impl Drop for StopBalancer {
    fn drop(&mut self) {
        self.0.balancer.stop();
        self.0.stop_whole();
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);
impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A router's clock: what its clients and shards have told it.
struct RouterTimes(Arc<Router>);

impl Times for RouterTimes {
    fn cluster_time(&self) -> Option<Timestamp> {
        Some(self.0.cluster_time()).filter(|t| t.as_u64() != 0)
    }
    fn advance(&self, time: Timestamp) {
        self.0.advance(time);
    }
    /// What the shards answered; where none was asked, the newest time known, which is no earlier.
    fn operation_time(&self, operation: &Operation) -> Option<Timestamp> {
        operation.heard_time().or_else(|| self.cluster_time())
    }
    fn last_write(&self) -> Option<LastWrite> {
        None
    }
}
