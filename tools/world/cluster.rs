//! Nodes that can be killed, each on a disk of its own: those of a cluster (a config server, two shards, two routers), or the
//! members of one set.

use document::error::NOT_PRIMARY;
use document::{DocBuf, Document, Error, doc};
use runtime::simulation::{self, Check, Skew, network};
use runtime::{Owner, random, random_range};
use server::log::{Logger, Target};
use server::options::{Options, Program, put};
use server::service::{Config, Running, Service};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use storage::files::{CrashMode, Fault, Files, SimulatedDisk};
use wire::client::{CallOptions, ConnectOptions, Connection};

/// The nodes, in the order in which they start: the config server, the shards, and from [`ROUTER`] on the routers.
pub(crate) const NAMES: [&str; 5] = ["config", "shard0", "shard1", "router0", "router1"];
pub(crate) const ROUTER: usize = 3;
pub(crate) const ROUTERS: Range<usize> = ROUTER..NAMES.len();
/// The members of a set without a cluster.
pub(crate) const MEMBERS: [&str; 3] = ["member0", "member1", "member2"];
/// What their set is called.
pub(crate) const SET: &str = "set";
const FIRST_PORT: u16 = 27100;
/// How far the wall clock of a node may be off when a run begins, in milliseconds, and how many it may gain or lose in a million.
const CLOCK_OFF_MAX: i64 = 2_000;
const CLOCK_GAIN_MAX: i64 = 1_000;

/// What a run may be asked for beside its seed.
#[derive(Clone, Default)]
pub(crate) struct Wishes {
    /// Connections break all the time.
    pub hard: bool,
    /// A set of three members instead of a cluster.
    pub set: bool,
    /// What the cluster does without.
    pub without: Option<Without>,
    /// Where nodes write their logs.
    pub logs: Option<PathBuf>,
    /// Print every step.
    pub verbose: bool,
}

/// What a cluster can do without; each must make some seed fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Without {
    /// Disks say that they have synced and do nothing: what a forgotten sync amounts to.
    Sync,
    Check(Check),
}

impl Without {
    pub(crate) const ALL: [(&str, Without); 10] = [
        ("sync", Without::Sync),
        ("version", Without::Check(Check::ShardVersion)),
        ("executed", Without::Check(Check::Executed)),
        ("conflict", Without::Check(Check::WriteConflict)),
        ("decision", Without::Check(Check::DurableDecision)),
        ("prepared", Without::Check(Check::PrepareConflict)),
        ("ended", Without::Check(Check::EndedTransaction)),
        ("vote", Without::Check(Check::StoredVote)),
        ("rollback", Without::Check(Check::Rollback)),
        ("term", Without::Check(Check::ReporterTerm)),
    ];

    /// Whether a set of several shows it, and not a cluster of sets of one.
    pub(crate) fn concerns_sets(self) -> bool {
        matches!(self, Without::Check(Check::StoredVote | Check::Rollback | Check::ReporterTerm))
    }

    pub(crate) fn named(name: &str) -> Option<Without> {
        Without::ALL.iter().find(|(known, _)| *known == name).map(|(_, what)| *what)
    }
}

pub(crate) struct Node {
    name: &'static str,
    at: usize,
    disk: SimulatedDisk,
    /// That of its machine: it goes on while the node is down.
    clock: Skew,
    wishes: Wishes,
    life: Option<(Owner, Running)>,
    role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Config,
    Shard,
    Router,
    /// Of a set without a cluster.
    Member,
}

/// How a node ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    /// Between two steps, and the machine goes on: nothing that was written is lost.
    Process,
    /// Between two steps, and what was not synced is lost, whole or in part.
    Power,
    /// The disk stops in the middle of something, within its next operations.
    Disk,
}

pub(crate) fn address(at: usize) -> String {
    format!("127.0.0.1:{}", FIRST_PORT + at as u16)
}

impl Node {
    pub(crate) fn new(at: usize, wishes: &Wishes) -> Node {
        let disk = SimulatedDisk::new();
        disk.ignore_syncs(wishes.without == Some(Without::Sync));
        let (name, role) = match at {
            _ if wishes.set => (MEMBERS[at], Role::Member),
            0 => (NAMES[at], Role::Config),
            ROUTER.. => (NAMES[at], Role::Router),
            _ => (NAMES[at], Role::Shard),
        };
        let clock = Skew {
            ahead_millis: random_range(-CLOCK_OFF_MAX..CLOCK_OFF_MAX),
            gain_millionths: random_range(-CLOCK_GAIN_MAX..CLOCK_GAIN_MAX),
        };
        Node { name, at, disk, clock, wishes: wishes.clone(), life: None, role }
    }

    fn options(&self) -> Options {
        let is_router = self.role == Role::Router;
        let program = if is_router { Program::Mongos } else { Program::Mongod };
        let mut parsed = doc! {
            "net": { "port": i32::from(FIRST_PORT) + self.at as i32, "unixDomainSocket": { "enabled": false } },
            "storage": { "dbPath": "/data", "syncPeriodSecs": 5.0 },
        };
        let mut set = |path: &str, text: &str| put(&mut parsed, path, text.into());
        // What is written of sessions would stand between what the workload does.
        set("setParameter.disableLogicalSessionCacheRefresh", "true");
        if is_router {
            set("sharding.configDB", &format!("config/{}", address(0)));
        } else {
            set("replication.replSet", if self.role == Role::Member { SET } else { self.name });
            set("setParameter.orphanCleanupDelaySecs", "1");
            set("setParameter.transactionLifetimeLimitSeconds", "5");
        }
        match self.role {
            Role::Config => set("sharding.clusterRole", "configsvr"),
            Role::Shard => set("sharding.clusterRole", "shardsvr"),
            Role::Router | Role::Member => {}
        }
        Options::from_parsed(program, vec![program.name().to_string()], parsed)
    }

    /// Starts the node. One that does not come up is taken down again.
    pub(crate) async fn start(&mut self) -> Result<(), String> {
        let target = match &self.wishes.logs {
            Some(dir) => Target::File { path: dir.join(format!("{}.log", self.name)), append: true },
            None => Target::Nowhere,
        };
        let log = Arc::new(Logger::new(target).map_err(|e| e.to_string())?);
        let files: Arc<dyn Files> = Arc::new(self.disk.clone());
        files.create_dir_all(std::path::Path::new("/data")).map_err(|e| e.to_string())?;
        let owner = Owner::with_clock(self.name, self.clock);
        let config = Config { options: self.options(), log, ephemeral: false, key: None };
        let started = owner.run(Service::start_on(files, config)).await;
        match started {
            Ok(running) => {
                self.life = Some((owner, running));
                Ok(())
            }
            Err(error) => {
                owner.end().await;
                self.disk.crash(CrashMode::KeepAll);
                Err(error.error.to_string())
            }
        }
    }

    /// Ends the node, wherever it stands.
    pub(crate) async fn kill(&mut self, how: Ending) {
        let Some((owner, running)) = self.life.take() else { return };
        if matches!(how, Ending::Disk) && self.role != Role::Router {
            self.disk.fail_at(self.disk.operations() + random_range(0..24), Fault::PowerOff);
            let ended = running.service.end_requested();
            let _ = tokio::time::timeout(Duration::from_secs(3), ended).await;
        }
        self.disk.fail_at(self.disk.operations(), Fault::PowerOff);
        network::unplug(self.name);
        owner.end().await;
        drop(running);
        self.disk.crash(match how {
            Ending::Process => CrashMode::KeepAll,
            Ending::Power | Ending::Disk => CrashMode::Torn { seed: random() },
        });
    }

    /// Takes every byte that was not synced.
    pub(crate) async fn lose_power(&mut self) {
        self.kill(Ending::Power).await;
        self.disk.crash(CrashMode::DropUnsynced);
    }
}

/// Why a command has no reply that says ok.
pub(crate) struct Failure {
    pub error: Error,
    /// No reply came.
    pub network: bool,
}

impl Failure {
    /// A reply that is none to what was asked.
    pub(crate) fn of(text: String) -> Failure {
        Failure { error: Error::new(0, text), network: false }
    }
}

/// A connection that is made anew when it was lost, or leads to a member that is not primary.
pub(crate) struct Client {
    connection: Option<Connection>,
    /// The nodes of which it leads to one.
    nodes: Range<usize>,
}

/// Of any router.
impl Default for Client {
    fn default() -> Client {
        Client::of_any(ROUTERS)
    }
}

impl Client {
    pub(crate) fn of(at: usize) -> Client {
        Client::of_any(at..at + 1)
    }
    pub(crate) fn of_any(nodes: Range<usize>) -> Client {
        Client { connection: None, nodes }
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let at = if self.nodes.len() == 1 { self.nodes.start } else { random_range(self.nodes.clone()) };
        let options = ConnectOptions { connect_timeout: Duration::from_secs(5), ..Default::default() };
        let connected = Connection::connect_with(&address(at), &options).await;
        connected.map_err(|error| Failure { error, network: true })
    }

    /// Runs a command once and returns the reply, or why there is none.
    pub(crate) async fn run(&mut self, db: &str, command: &Document) -> Result<Document, String> {
        self.ask(db, command).await.map_err(|failure| failure.error.to_string())
    }

    /// As [`Client::run`], with all that is known of a failure.
    pub(crate) async fn ask(&mut self, db: &str, command: &Document) -> Result<Document, Failure> {
        let limit = CallOptions::timeout(Duration::from_secs(15));
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let command: DocBuf = command.to_doc_buf();
        match connection.run_full(db, &limit, &[], command.doc()).await {
            Ok(reply) => {
                self.connection = Some(connection);
                Ok(reply.doc().to_document())
            }
            Err(failed) => {
                let network = failed.is_network();
                if !network && !failed.error.is(NOT_PRIMARY) {
                    self.connection = Some(connection);
                }
                Err(Failure { error: failed.error, network })
            }
        }
    }

    /// Runs a command until it succeeds.
    ///
    /// # Errors
    /// The last failure, after minutes of them.
    pub(crate) async fn insist(&mut self, db: &str, command: &Document) -> Result<Document, String> {
        let mut last = String::new();
        for _ in 0..600 {
            match self.run(db, command).await {
                Ok(reply) => return Ok(reply),
                Err(error) => last = error,
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        Err(format!("{command:?} never succeeded: {last}"))
    }
}

/// Starts all nodes and makes a cluster of them, with a sharded collection `test.c` of four chunks.
pub(crate) async fn establish(wishes: &Wishes) -> Result<Vec<Node>, String> {
    if let Some(Without::Check(check)) = wishes.without {
        simulation::omit(check);
    }
    if wishes.set {
        return crate::set::establish(wishes).await;
    }
    let mut nodes: Vec<Node> = (0..NAMES.len()).map(|at| Node::new(at, wishes)).collect();
    for at in 0..ROUTER {
        nodes[at].start().await?;
        let mut set = doc! { "_id": NAMES[at], "members": [doc! { "_id": 0, "host": address(at) }] };
        if at == 0 {
            set.push("configsvr", true);
        }
        Client::of(at).insist("admin", &doc! { "replSetInitiate": set }).await?;
    }
    for router in &mut nodes[ROUTER..] {
        router.start().await?;
    }
    let mut router = Client::of(ROUTER);
    for (at, name) in (1..ROUTER).map(|at| (at, NAMES[at])) {
        let shard = doc! { "addShard": format!("{name}/{}", address(at)), "name": name };
        router.insist("admin", &shard).await?;
    }
    router.insist("admin", &doc! { "enableSharding": "test", "primaryShard": "shard0" }).await?;
    router.insist("admin", &doc! { "shardCollection": "test.c", "key": { "k": 1 } }).await?;
    router.insist("admin", &doc! { "balancerStop": 1 }).await?;
    for bound in [250, 500, 750] {
        router.insist("admin", &doc! { "split": "test.c", "middle": { "k": bound } }).await?;
    }
    Ok(nodes)
}
