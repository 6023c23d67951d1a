//! One process node: everything a command can reach, and the life from start to stop.
//!
//! ```text
//! Service::start(config) -> Running       opens the data directory, listens, serves
//! Running::stop()                         quiesce, end operations, close connections, release the directory
//! ```
//! `mongod` and `mongos` start one; `tessera up` starts several in one process.

use crate::auth::{Auth, ClusterAuthMode, ClusterKey};
use crate::connection::{Connection, Entrance};
use crate::counters::{Counter, Counters};
use crate::dispatch::{Command, Lookup, Roles};
use crate::establishment::Establishment;
use crate::listener::{self, Listeners};
use crate::log::{Logger, now_millis};
use crate::operations::Operations;
use crate::options::{self, ClusterRole, Options, Program};
use crate::session_cache::SessionCache;
use crate::tls::Tls;
use crate::topology::{LastWrite, Membership, Topology};
use document::{DocWriter, Error, ObjectId, Timestamp, doc, err};
use node::auth::User;
use node::auth::store::Store;
use node::failpoints::FailPoints;
use node::maintenance::Schedule;
use node::open::NodeOptions;
use node::parameters::Parameters;
use node::{Node, Operation};
use parking_lot::Mutex;
use runtime::Instant;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;
use storage::files::{FileLock, Files, LockError, RealFiles};
use storage::log::{LogOptions, RealClock, SyncPolicy};
use storage::recovery::{Progress, Stage};
use tokio::sync::watch;

/// The command tables of the two programs, immutable.
static MONGOD: LazyLock<Lookup> = LazyLock::new(|| Lookup::new(crate::commands::TABLES, Roles::MONGOD));
static MONGOS: LazyLock<Lookup> = LazyLock::new(|| Lookup::new(crate::commands::TABLES, Roles::ROUTER));

fn lookup(program: Program) -> &'static Lookup {
    match program {
        Program::Mongod => &MONGOD,
        Program::Mongos => &MONGOS,
    }
}

/// The exit code after a fatal assertion.
pub const ABRUPT: i32 = 14;

/// How long connections that are to be closed may go on with what they do, and how often they are looked at.
const CLOSING_MAX: Duration = Duration::from_secs(10);
const CLOSING_LOOK: Duration = Duration::from_millis(5);

/// Log after which a checkpoint is written before its time has come.
const CHECKPOINT_LOG_BYTES: u64 = 256 << 20;

/// The times that replies carry; set by what keeps a clock (a set member, a router).
pub trait Times: Send + Sync + 'static {
    /// The newest cluster time known; `$clusterTime` of replies.
    fn cluster_time(&self) -> Option<Timestamp>;
    /// Takes note of a cluster time that a client or node brought.
    fn advance(&self, time: Timestamp);
    /// `operationTime` of the reply to this operation.
    fn operation_time(&self, operation: &Operation) -> Option<Timestamp>;
    /// `lastWrite` of hello; routers have none.
    fn last_write(&self) -> Option<LastWrite>;
}

/// What a node is started with.
pub struct Config {
    pub options: Options,
    pub log: Arc<Logger>,
    /// Made by this process for itself: no lock file, pid or warnings about it (`tessera up` without --dbpath).
    pub ephemeral: bool,
    /// The cluster's key, where it does not come from the key file.
    pub key: Option<Arc<ClusterKey>>,
}

/// Why a node did not start: what is logged, and the exit code of a process that fails so.
#[derive(Debug)]
pub struct StartError {
    pub id: i32,
    pub message: &'static str,
    pub error: Error,
    pub exit_code: i32,
}

/// One node.
pub struct Service {
    pub program: Program,
    /// Exactly one role.
    pub role: Roles,
    pub options: Options,
    pub parameters: Arc<Parameters>,
    pub log: Arc<Logger>,
    pub counters: Counters,
    /// The data-bearing half; a router has none.
    pub node: Option<Arc<Node>>,
    /// Router, shard role, config server: whichever the node has.
    pub members: crate::members::Members,
    own_failpoints: FailPoints,
    pub auth: Auth,
    pub signed_times: crate::signed_time::SignedTimes,
    /// Absent where it is off.
    pub tls: Option<Tls>,
    pub operations: Operations,
    pub sessions: SessionCache,
    pub topology: Topology,
    pub connections: ConnectionCounts,
    pub establishment: Establishment,
    pub flow_control: crate::flow_control::FlowControl,
    /// What messages that are read or run may hold.
    pub input: Arc<wire::InputBudget>,
    /// Names this router to clients behind a load balancer.
    pub service_id: ObjectId,
    /// `gethostname`:port, as the node names itself.
    pub host: String,
    pub port: u16,
    pub started: Instant,
    pub started_at: i64,
    /// fsync with lock: how many locks are held.
    pub fsync_locks: watch::Sender<i64>,
    pub auto_compact: Mutex<Option<crate::commands::auto_compact::AutoCompact>>,
    pub profiler: crate::profile::Profiler,
    pub sampling: crate::sampling::Sampling,
    times: OnceLock<Arc<dyn Times>>,
    end: watch::Sender<Option<i32>>,
    tasks: Mutex<Vec<tokio::task::AbortHandle>>,
}

#[derive(Default)]
pub struct ConnectionCounts {
    pub current: Counter,
    pub total: Counter,
    /// Those of clients behind a load balancer, which have said that they know of it.
    pub balanced: Counter,
    pub rejected: Counter,
    pub exhaust_hellos: Counter,
    pub awaiting: Counter,
    next_id: AtomicI64,
}

impl ConnectionCounts {
    pub fn next_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A node that serves.
pub struct Running {
    pub service: Arc<Service>,
    listeners: Listeners,
    directory: Option<Directory>,
    ephemeral: bool,
}

/// The parameter that says how many MiB the process may hold.
pub const MEMORY_LIMIT: &str = "processMemoryLimitMB";

impl Service {
    /// Opens the data directory, starts listening and serves in the background.
    ///
    /// # Errors
    /// The directory is missing, in use or unreadable (exit code 100); an address cannot be listened on (48).
    pub async fn start(config: Config) -> std::result::Result<Running, StartError> {
        Service::start_on(Arc::new(RealFiles), config).await
    }

    /// The same on other files than the operating system's.
    ///
    /// # Errors
    /// Those of [`Service::start`].
    pub async fn start_on(files: Arc<dyn Files>, config: Config) -> std::result::Result<Running, StartError> {
        let Config { options, log, ephemeral, key } = config;
        let key = match key {
            Some(key) => Some(key),
            None => options.key_file.as_deref().map(load_key).transpose()?,
        };
        let tls = Tls::open(&options.tls).map_err(|text| StartError {
            id: 23248,
            message: "Cannot set up TLS",
            error: err!(INVALID_SSL_CONFIGURATION, "{text}"),
            exit_code: 1,
        })?;
        let directory = match options.program {
            Program::Mongod => Some(Directory::open(&files, &options.dbpath, ephemeral)?),
            Program::Mongos => None,
        };
        let bound = listener::bind(&options).await?;
        let node = match options.program {
            Program::Mongod => Some(open_node(files, &options, bound.port, ephemeral, &log).await?),
            Program::Mongos => None,
        };
        let mut service = Service::new(options, log, bound.port, node);
        service.auth.set_key(key);
        service.tls = tls;
        service.note_tls_mode();
        let service = Arc::new(service);
        if let Some(node) = &service.node {
            service.set_times(Arc::new(NodeTimes(node.clone())));
        }
        service.apply_parameters();
        service.profiler.start(service.options.profile);
        service.note_plans_if_asked();
        service.warn_at_startup();
        for step in crate::commands::STARTUP {
            step(&service).await.map_err(|error| StartError {
                id: 20557,
                message: "DBException in initAndListen, terminating",
                error,
                exit_code: 100,
            })?;
        }
        maintain(&service);
        let bound = bound.with_load_balancer(&service).await?;
        let listeners = bound.serve(&service);
        Ok(Running { service, listeners, directory, ephemeral })
    }

    /// A node that serves nobody yet; also what tests of single commands use.
    pub fn new(options: Options, log: Arc<Logger>, port: u16, node: Option<Arc<Node>>) -> Service {
        let membership = match (options.program, &options.repl_set) {
            (Program::Mongos, _) => Membership::Router,
            (_, Some(_)) => Membership::Uninitiated,
            (_, None) => Membership::Standalone,
        };
        let parameters = Parameters::new();
        parameters.set_slow_ms(options.slow_ms);
        if options.key_file.is_some() || options.cluster_auth != ClusterAuthMode::KeyFile {
            // It is one of the names that the parameter takes.
            drop(parameters.set_at_runtime("clusterAuthMode", &options.cluster_auth.name().into()));
        }
        let mut auth = Auth::new(options.auth && !options.transition_to_auth, node.clone().map(Store::new));
        auth.system = Arc::new(User::system().restricted(options.member_restrictions.clone()));
        auth.sends_certificate.store(options.cluster_auth.sends_certificate(), Ordering::Relaxed);
        Service {
            program: options.program,
            role: role(&options),
            parameters: Arc::new(parameters),
            log,
            counters: Counters::new(lookup(options.program)),
            tls: None,
            auth,
            node,
            signed_times: crate::signed_time::SignedTimes::default(),
            members: crate::members::Members::default(),
            own_failpoints: FailPoints::new(),
            operations: Operations::default(),
            sessions: SessionCache::new(now_millis()),
            topology: Topology::new(random_object_id(), membership),
            connections: ConnectionCounts::default(),
            establishment: Establishment::default(),
            flow_control: Default::default(),
            input: Arc::new(wire::InputBudget::new(crate::memory::input_bytes_max)),
            service_id: random_object_id(),
            host: format!("{}:{port}", hostname()),
            port,
            started: Instant::now(),
            started_at: now_millis(),
            fsync_locks: watch::Sender::new(0),
            auto_compact: Mutex::default(),
            profiler: crate::profile::Profiler::default(),
            sampling: Default::default(),
            times: OnceLock::new(),
            end: watch::Sender::new(None),
            tasks: Mutex::default(),
            options,
        }
    }

    /// The fail points of the node, or of the router itself.
    pub fn failpoints(&self) -> &FailPoints {
        self.node.as_ref().map_or(&self.own_failpoints, |node| &node.failpoints)
    }
    pub fn commands(&self) -> &'static Lookup {
        lookup(self.program)
    }
    /// Whether this node has the command at all.
    pub fn answers(&self, row: &Command) -> bool {
        row.roles.contains(self.role) && (!row.test_only || self.parameters.test_commands())
    }
    /// How members know one another now.
    pub fn cluster_auth_mode(&self) -> ClusterAuthMode {
        ClusterAuthMode::from_name(&self.parameters.text("clusterAuthMode")).unwrap_or_default()
    }
    /// Makes what `clusterAuthMode` says count for connections that this node makes.
    pub fn apply_cluster_auth_mode(&self) {
        let by_certificate = self.cluster_auth_mode().sends_certificate();
        self.auth.sends_certificate.store(by_certificate, Ordering::Relaxed);
    }
    pub fn is_router(&self) -> bool {
        self.program == Program::Mongos
    }
    pub fn is_writable(&self) -> bool {
        self.topology.membership().is_writable()
    }
    /// A node of a set shows others than `local` only as primary or secondary.
    pub fn is_readable(&self) -> bool {
        match (&**self.topology.membership(), &self.node) {
            (Membership::Uninitiated | Membership::Removed { .. }, _) => false,
            (Membership::Member(_), Some(node)) => node.is_readable_member(),
            _ => true,
        }
    }
    /// `fsync` with lock is in force.
    pub fn is_locked(&self) -> bool {
        *self.fsync_locks.borrow() > 0
    }
    /// The error of a write on a node that is no primary.
    pub fn not_primary(&self) -> Error {
        let version = self.topology.version().to_document();
        err!(NOT_WRITABLE_PRIMARY, "not primary").with_info(doc! { "topologyVersion": version })
    }
    /// Runs a task that ends with the node, at its next await.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let handle = runtime::spawn(task).abort_handle();
        let mut tasks = self.tasks.lock();
        tasks.retain(|task| !task.is_finished());
        tasks.push(handle);
    }

    /// Installs the clock of the node; once, before it serves.
    pub fn set_times(&self, times: Arc<dyn Times>) {
        // A second clock would be a programming error and is not used.
        let _ = self.times.set(times);
    }
    pub fn times(&self) -> Option<&Arc<dyn Times>> {
        self.times.get()
    }
    /// `$clusterTime` and `operationTime` of a reply.
    pub fn append_times(
        &self,
        connection: Option<&Connection>,
        operation: Option<&Operation>,
        w: &mut DocWriter<'_>,
    ) {
        let Some(times) = self.times.get().filter(|_| self.topology.times_shown()) else { return };
        let time = times.cluster_time();
        let signature = time.and_then(|time| crate::signed_time::for_reply(self, connection, time));
        if let Some((time, signature)) = time.zip(signature) {
            w.document_with("$clusterTime", |w| {
                w.timestamp("clusterTime", time);
                w.document_with("signature", |w| {
                    w.binary("hash", 0, &signature.hash);
                    w.i64("keyId", signature.key_id);
                });
            });
        }
        // A time that its receiver could not show to others is of no use.
        let shown = time.is_none() || signature.is_some();
        if let Some(time) = operation.filter(|_| shown).and_then(|o| times.operation_time(o)) {
            w.timestamp("operationTime", time);
        }
        if !connection.is_some_and(|c| c.client.peer.load(Ordering::Relaxed)) {
            return;
        }
        if let Some(time) = self.members.topology_time() {
            w.timestamp("$topologyTime", time);
        }
        if let Some(time) = self.members.config_time() {
            w.timestamp(sharding::config_time::FIELD, time);
        }
    }

    /// Logs a transaction that has ended if it was open for at least the slow threshold. The connection is that of its last
    /// command.
    pub fn log_transaction_if_slow(
        &self,
        id: i32,
        open: Duration,
        connection: i64,
        account: &dyn Fn() -> document::Document,
    ) {
        if open.as_millis() as i64 >= self.parameters.slow_ms() || self.log.verbosity() >= 1 {
            self.log.info("TXN", id, &format!("conn{connection}"), "transaction", account());
        }
    }

    /// Lets the node note the plans of all operations where the profiler or the log of slow ones may show each.
    pub fn note_plans_if_asked(&self) {
        if let Some(node) = &self.node {
            let asked = self.profiler.is_active() || self.parameters.slow_ms() <= 0;
            node.profiling.store(asked, Ordering::Relaxed);
        }
    }

    fn abort_connections(&self) {
        for connection in self.operations.connections() {
            connection.abort();
        }
    }
    /// Ends what clients do, since this member is about to take back what they may have read: their operations with
    /// InterruptedDueToReplStateChange (11602), and their connections, but for those that said in their hello that they stay.
    /// A connection that is at work is closed once it has answered.
    pub fn end_clients(&self) {
        let code = document::codes::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE;
        let (idle, busy): (Vec<_>, Vec<_>) = self
            .operations
            .end_clients("rollback", code)
            .into_iter()
            .partition(|connection| connection.slot.active() == 0);
        idle.iter().for_each(|connection| connection.abort());
        if busy.is_empty() {
            return;
        }
        self.spawn(async move {
            let deadline = Instant::now() + CLOSING_MAX;
            loop {
                // Also between the end of an operation and that of its reply.
                tokio::time::sleep(CLOSING_LOOK).await;
                if Instant::now() >= deadline || busy.iter().all(|c| c.slot.active() == 0) {
                    break;
                }
            }
            busy.iter().for_each(|connection| connection.abort());
        });
    }
    /// Asks the process to end with this exit code.
    pub fn request_end(&self, exit_code: i32) {
        self.end.send_if_modified(|end| {
            let first = end.is_none();
            end.get_or_insert(exit_code);
            first
        });
    }
    /// Whether the node's log can no longer be written.
    pub fn has_failed(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.log.has_failed())
    }
    pub fn is_ending(&self) -> bool {
        self.end.borrow().is_some()
    }
    /// Waits until an end was asked for.
    pub async fn end_requested(&self) -> i32 {
        let mut end = self.end.subscribe();
        match end.wait_for(Option::is_some).await {
            Ok(code) => code.unwrap_or(0),
            Err(_) => 0,
        }
    }

    fn apply_parameters(&self) {
        let (first, others): (Vec<_>, Vec<_>) =
            self.options.set_parameters.iter().partition(|(name, _)| name == "enableTestCommands");
        for (name, value) in first.into_iter().chain(others) {
            match self.parameters.set_at_startup(name, value) {
                Ok(Some(warning)) => {
                    self.log.warning(
                        "CONTROL",
                        9_000_002,
                        "main",
                        &warning,
                        doc! { "parameter": name.as_str() },
                    );
                }
                Ok(None) => {}
                Err(error) => self.log.error("CONTROL", 9_000_003, "main", &error.message, doc! {}),
            }
        }
        if self.options.redacts_log {
            // It is one that can be set.
            drop(self.parameters.set_at_runtime("redactClientLogData", &true.into()));
        }
        if self.options.set_parameters.iter().any(|(name, _)| name == MEMORY_LIMIT) {
            self.limit_memory();
        }
        self.apply_log_level();
    }
    /// Goes over to another mode of TLS, where it is spoken at all, and shows it.
    pub fn set_tls_mode(&self, mode: crate::tls::Mode) {
        if let Some(tls) = &self.tls {
            tls.set_mode(mode);
            self.note_tls_mode();
        }
    }
    /// Has the parameters show the mode of TLS.
    fn note_tls_mode(&self) {
        let mode = self.tls.as_ref().map_or(crate::tls::Mode::Disabled, |tls| tls.mode());
        for (name, value) in [("tlsMode", mode.name()), ("sslMode", mode.old_name())] {
            // They are among the names that these take.
            drop(self.parameters.set_at_runtime(name, &value.into()));
        }
    }
    /// Makes the process follow [`MEMORY_LIMIT`]. Called where that is given: all nodes of a process have one memory, and what one of
    /// them was told holds until another is told something else.
    pub fn limit_memory(&self) {
        node::memory::set_ceiling(self.parameters.int(MEMORY_LIMIT));
    }
    /// Makes the log follow the parameters `logLevel` and `quiet`, and the node and the router those that they keep.
    pub fn apply_log_level(&self) {
        if let Ok(router) = self.members.router() {
            *router.limits.write() = node::memory::limits(&self.parameters);
        }
        if let Some(node) = &self.node {
            *node.limits.write() = node::memory::limits(&self.parameters);
            node.replication.set(node::replication::Settings::of(&self.parameters));
            let memory = node::memory::available_bytes().unwrap_or(usize::MAX);
            if let Ok(bytes) = node::plan_cache::parse_size(&self.parameters.text("planCacheSize"), memory) {
                node.plan_caches.set_bound(bytes);
            }
            let disk = self.parameters.bool("allowDiskUseByDefault");
            node.disk_use_by_default.store(disk, Ordering::Relaxed);
            let keys = self.parameters.int("indexMaxNumGeneratedKeysPerDocument");
            node.keys_of_places_max.store(usize::try_from(keys).unwrap_or(usize::MAX), Ordering::Relaxed);
        }
        self.counters
            .write_concerns
            .report(self.parameters.bool("reportOpWriteConcernCountersInServerStatus"));
        let level = self.parameters.int("logLevel").max(i64::from(self.options.verbosity));
        self.log.set_verbosity(level as i32);
        self.log.set_quiet(self.options.quiet || self.parameters.bool("quiet"));
    }

    fn warn_at_startup(&self) {
        if !self.options.auth && !self.options.is_auth_declined() {
            let text = "Access control is not enabled for the database. Read and write access to data and configuration is unrestricted";
            self.log.startup_warning("CONTROL", 22120, text, doc! {});
        }
        if self.node.as_ref().is_some_and(|node| node.is_detached) {
            let text = "There is a configuration in local.system.replset, but --replSet was not given: \
                        what is written now, this member's set does not hear of, and nothing expires. Restart with --replSet after maintenance";
            self.log.startup_warning("CONTROL", 20547, text, doc! {});
        }
        if !self.is_router() && self.parameters.int("loadBalancerPort") != 0 {
            let text = "Only a mongos listens for load balancers; loadBalancerPort has no effect here";
            self.log.startup_warning("CONTROL", 9_000_012, text, doc! {});
        }
        if self.parameters.test_commands() {
            let text = "While invalid X509 certificates may be used to connect to this server, they will not be considered permissible for authentication";
            self.log.debug(1, "CONTROL", 22132, "initandlisten", text, || doc! {});
        }
    }
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}

impl Running {
    pub fn port(&self) -> u16 {
        self.service.port
    }

    /// Stops: hello tells clients, operations end, connections close, the directory is released. Well below a second.
    pub async fn stop(self) {
        let Running { service, listeners, directory, ephemeral } = self;
        if service.has_failed() {
            return end_failed(&service, listeners).await;
        }
        service.request_end(0);
        service.topology.quiesce(Instant::now());
        listeners.stop().await;
        service.operations.kill_all(document::codes::INTERRUPTED_AT_SHUTDOWN);
        if let Ok(router) = service.members.router() {
            router.close_all_cursors().await;
        }
        let deadline = Instant::now() + Duration::from_millis(500);
        while service.operations.active() > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
            service.operations.kill_all(document::codes::INTERRUPTED_AT_SHUTDOWN);
        }
        service.abort_connections();
        service.tasks.lock().drain(..).for_each(|task| task.abort());
        if let Some(node) = &service.node {
            node.stop_replication().await;
        }
        if let Some(node) = service.node.clone() {
            close_node(&service, node, ephemeral).await;
        }
        if let Some(directory) = directory {
            directory.close();
        }
    }
}

/// A line of the log for each step of a start, which takes seconds when there is much data.
fn tell(log: &Logger, progress: Progress) {
    let (text, unit) = match progress.stage {
        Stage::Images => ("Loading the checkpoint", "bytes"),
        Stage::Replay => ("Replaying the journal", "entries"),
        Stage::Indexes => ("Building indexes", "collections"),
    };
    let mut attr = doc! { "done": progress.done as i64 };
    if let Some(total) = progress.total {
        attr.push("total", total as i64);
    }
    attr.push("unit", unit);
    log.info("STORAGE", 9_000_004, "initandlisten", text, attr);
}

fn load_key(path: &Path) -> std::result::Result<Arc<ClusterKey>, StartError> {
    ClusterKey::load(path).map_err(|text| StartError {
        id: 20254,
        message: "Read security file failed",
        error: err!(INVALID_PATH, "{text}"),
        exit_code: 1,
    })
}

async fn open_node(
    files: Arc<dyn Files>,
    options: &Options,
    port: u16,
    ephemeral: bool,
    log: &Arc<Logger>,
) -> std::result::Result<Arc<Node>, StartError> {
    let clock = Arc::new(RealClock);
    let mut log_options = LogOptions { clock: clock.clone(), ..LogOptions::default() };
    if ephemeral {
        log_options.sync = SyncPolicy::Never;
    }
    if let Some(mib) = options.oplog_size {
        log_options.retain_bytes = mib.saturating_mul(1 << 20);
    }
    log_options.retain_ms = options.oplog_ms;
    let node_options = NodeOptions {
        files,
        dir: options.dbpath.clone(),
        log: log_options,
        clock,
        replica_set: options.repl_set.as_deref().map(|s| options::set_name(s).to_string()),
        host: format!("{}:{port}", hostname()),
    };
    let telling = log.clone();
    let open = move || Node::open_telling(node_options, &mut |progress| tell(&telling, progress));
    let opened = runtime::blocking(open).await;
    let refuse = |text: String| StartError {
        id: 20557,
        message: "DBException in initAndListen, terminating",
        error: err!(INTERNAL_ERROR, "{text}"),
        exit_code: 100,
    };
    let opened = opened.map_err(|e| refuse(e.to_string()))?.map_err(|e| refuse(e.to_string()))?;
    let report = format!("{:?}", opened.report);
    log.info("STORAGE", 4795906, "initandlisten", "Storage engine opened", doc! { "report": report });
    Ok(opened.node)
}

/// A last checkpoint makes the next start short; the log is synced in any case.
async fn close_node(service: &Service, node: Arc<Node>, ephemeral: bool) {
    let closed = runtime::blocking(move || {
        let written = if ephemeral { Ok(None) } else { node.checkpoint() };
        node.shutdown();
        written.map(drop)
    });
    if let Ok(Err(error)) = closed.await {
        service.log.error(
            "STORAGE",
            22331,
            "initandlisten",
            "Checkpoint failed",
            doc! { "error": error.to_string() },
        );
    }
}

/// Ends a node whose log has failed: no checkpoint, and a lock file that says so.
async fn end_failed(service: &Arc<Service>, listeners: Listeners) {
    listeners.stop().await;
    service.abort_connections();
    service.tasks.lock().drain(..).for_each(|task| task.abort());
    if let Some(node) = service.node.clone() {
        let _ = runtime::blocking(move || node.shutdown()).await;
    }
}

/// Asks for the end of the node once its log cannot be written, as a fatal assertion of the real server does: of what was not
/// synced nobody knows whether it will be there after the next start, so neither a write's end nor anything read since is told.
async fn end_with_log(node: Arc<Node>, service: std::sync::Weak<Service>) {
    let error = node.log.wait_failed().await;
    let Some(service) = service.upgrade() else { return };
    let attr = doc! { "msgid": 50853, "error": error.to_string() };
    service.log.fatal("-", 23089, "JournalFlusher", "Fatal assertion", attr);
    service.log.fatal("-", 23090, "JournalFlusher", "\n\n***aborting after fassert() failure\n\n", doc! {});
    service.abort_connections();
    service.request_end(ABRUPT);
}

/// Asks for the end of a member that cannot go on by itself: it would seem to be coming back for ever.
async fn end_hopeless(node: Arc<Node>, service: std::sync::Weak<Service>) {
    let error = node.replication.wait_hopeless().await;
    let Some(service) = service.upgrade() else { return };
    let attr = doc! { "error": error.to_string() };
    service.log.fatal("REPL", 9_000_013, "ReplicationCoordinator", "This member cannot go on", attr);
    service.request_end(ABRUPT);
}

/// Lets go of the slots of dropped collections, now and then.
async fn forget_unused(node: Arc<Node>) {
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        node.namespaces.forget_unused();
        node.forget_idle_copies();
    }
}

/// What a data-bearing node does by itself while it runs: checkpoints, letting unused slots go.
fn maintain(service: &Arc<Service>) {
    let Some(node) = service.node.clone() else { return };
    service.spawn(forget_unused(node.clone()));
    service.spawn(end_with_log(node.clone(), Arc::downgrade(service)));
    service.spawn(end_hopeless(node.clone(), Arc::downgrade(service)));
    let seconds = service.options.sync_delay;
    if !(seconds.is_finite() && seconds > 0.0) {
        return;
    }
    let interval = Duration::from_secs_f64(seconds.min(86_400.0));
    let schedule = Schedule { interval, log_bytes: CHECKPOINT_LOG_BYTES };
    let log = service.log.clone();
    let failed = move |error: String| {
        log.error("STORAGE", 22331, "WTCheckpoint", "Checkpoint failed", doc! { "error": error });
    };
    service.spawn(node::maintenance::checkpoints(node, schedule, failed));
}

/// The clock of a data-bearing node.
struct NodeTimes(Arc<Node>);

impl Times for NodeTimes {
    fn cluster_time(&self) -> Option<Timestamp> {
        Some(self.0.cluster_time())
    }
    fn advance(&self, time: Timestamp) {
        self.0.log.advance_clock(time.as_u64());
    }
    fn operation_time(&self, operation: &Operation) -> Option<Timestamp> {
        Some(self.0.operation_time(operation))
    }
    fn last_write(&self) -> Option<LastWrite> {
        let (log, committed) = (&self.0.log, self.0.committed());
        Some(LastWrite {
            op_time: Timestamp::from_u64(log.last_optime().ts),
            term: log.last_optime().term,
            majority: Timestamp::from_u64(committed.ts),
            majority_term: committed.term,
        })
    }
}

fn role(options: &Options) -> Roles {
    match (options.program, options.cluster_role, &options.repl_set) {
        (Program::Mongos, ..) => Roles::ROUTER,
        (_, Some(ClusterRole::Shard), _) => Roles::SHARD,
        (_, Some(ClusterRole::Config), _) => Roles::CONFIG,
        (_, None, Some(_)) => Roles::REPLSET,
        (_, None, None) => Roles::STANDALONE,
    }
}

/// The data directory while this node owns it.
struct Directory {
    files: Arc<dyn Files>,
    lock_path: PathBuf,
    _lock: FileLock,
}

impl Directory {
    fn open(
        files: &Arc<dyn Files>,
        path: &Path,
        ephemeral: bool,
    ) -> std::result::Result<Directory, StartError> {
        let refuse = |error: Error| StartError {
            id: 20557,
            message: "DBException in initAndListen, terminating",
            error,
            exit_code: 100,
        };
        let shown = path.display();
        if files.list(path).is_err() {
            return Err(refuse(err!(
                29,
                "Data directory {shown} not found. Create the missing directory or specify another path using (1) the \
                 --dbpath command line option, or (2) by adding the 'storage.dbPath' option in the configuration file."
            )));
        }
        let lock_path = path.join("mongod.lock");
        let lock = files.lock(&lock_path).map_err(|error| match error {
            LockError::InUse(_) => refuse(err!(
                98,
                "Unable to lock the lock file: {} (Resource temporarily unavailable). Another mongod instance is \
                 already running on the {shown} directory",
                lock_path.display()
            )),
            LockError::Io(error) => refuse(err!(
                ILLEGAL_OPERATION,
                "Attempted to create a lock file on a read-only directory: {shown} ({error})"
            )),
        })?;
        let io = |error: std::io::Error| refuse(err!(98, "Unable to write the lock file: {error}"));
        if !ephemeral {
            let pid = format!("{}\n", std::process::id());
            write_whole(&**files, &lock_path, pid.as_bytes()).map_err(io)?;
        }
        // Launchers look for this file to tell a directory that was used from one that was not.
        let marker = path.join("storage.bson");
        if !files.exists(&marker).map_err(io)? {
            let text = doc! { "storage": { "engine": "wiredTiger", "options": { "directoryPerDB": false } } };
            write_whole(&**files, &marker, &text.to_vec()).map_err(io)?;
        }
        Ok(Directory { files: files.clone(), lock_path, _lock: lock })
    }
    /// An empty lock file says that the last owner ended cleanly.
    fn close(self) {
        let _ = self.files.create(&self.lock_path);
    }
}

/// Writes a file of the directory that need not survive a crash.
fn write_whole(files: &dyn Files, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    files.create(path)?.write_at(bytes, 0)
}

pub fn hostname() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the buffer is valid for its length; one byte is kept for the terminator.
    let ok = unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) } == 0;
    let end = buffer.iter().position(|b| *b == 0).unwrap_or(0);
    match std::str::from_utf8(&buffer[..end]) {
        Ok(name) if ok && !name.is_empty() => name.to_string(),
        _ => "localhost".to_string(),
    }
}

fn random_object_id() -> ObjectId {
    let mut bytes: [u8; 12] = runtime::random();
    bytes[..4].copy_from_slice(&((now_millis() / 1000) as u32).to_be_bytes());
    ObjectId(bytes)
}

/// A place among the connections that the node may have; given back when it is dropped.
pub struct Place {
    service: Arc<Service>,
}

impl Place {
    /// `None` when the node has as many connections as it may.
    pub fn take(service: &Arc<Service>, remote: &str) -> Option<Place> {
        let counts = &service.connections;
        if counts.current.get() >= service.options.max_connections as i64 {
            counts.rejected.increment();
            let attr = doc! { "remote": remote, "connectionCount": counts.current.get() };
            service.log.info(
                "NETWORK",
                22942,
                "listener",
                "Connection refused because there are too many open connections",
                attr,
            );
            return None;
        }
        counts.current.increment();
        Some(Place { service: service.clone() })
    }

    /// A connection in this place.
    pub fn open(self, remote: String, entrance: Entrance) -> OpenConnection {
        let service = self.service.clone();
        let counts = &service.connections;
        counts.total.increment();
        let connection = Arc::new(Connection::new(counts.next_id(), remote, entrance));
        service.operations.add_connection(&connection);
        let open = OpenConnection { connection, place: self };
        open.log(22943, "listener", "Connection accepted", counts.current.get());
        open
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.service.connections.current.add(-1);
    }
}

/// A connection from its acceptance to its end.
pub struct OpenConnection {
    pub connection: Arc<Connection>,
    place: Place,
}

impl OpenConnection {
    fn log(&self, id: i32, by: &str, text: &str, count: i64) {
        let (service, connection) = (&self.place.service, &self.connection);
        if !service.log.is_quiet() {
            let attr = doc! {
                "remote": connection.client.remote.as_str(), "isLoadBalanced": connection.client.balanced,
                "connectionId": connection.id, "connectionCount": count,
            };
            service.log.info("NETWORK", id, by, text, attr);
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let (service, connection) = (&self.place.service, &self.connection);
        service.operations.remove_connection(connection.id);
        if connection.knows_balancer.load(Ordering::Relaxed) {
            service.connections.balanced.add(-1);
        }
        if service.is_ending() {
            return;
        }
        if let Some(router) = service.members.router().ok().filter(|_| connection.client.balanced) {
            router.connection_ended(connection.id);
        }
        // Its own place is given back after this.
        self.log(22944, &connection.name(), "Connection ended", service.connections.current.get() - 1);
    }
}
