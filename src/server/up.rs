//! `tessera up`: a whole cluster in one process.
//!
//! Nodes are started as services of this process and then spoken to over their own ports, with the commands anybody
//! would use by hand: replSetInitiate on each set, addShard through the first router. Each has its directory below
//! the root, with its log in it.

#![expect(clippy::disallowed_methods, reason = "files of the command, which no node opens")]

mod certificates;
mod file;

use crate::ask::{self, Question, Server};
use crate::auth::ClusterKey;
use crate::log::{Logger, Target};
use crate::options::{self, Options, Program};
use crate::process::{self, Signals};
use crate::service::{Config, Running, Service, StartError};
use crate::topology::{Membership, State};
use crate::web::{self, Web};
use certificates::Certificates;
use clap::{CommandFactory, Parser, Subcommand};
use document::{Value, codes, doc};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use runtime::Instant;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use wire::client::{ConnectOptions, Connection};

#[derive(Parser, Debug)]
#[command(name = "tessera", version, about = "A MongoDB-compatible sharded cluster in one binary")]
pub struct Cli {
    #[command(subcommand)]
    pub command: CliCommand,
}

#[derive(Subcommand, Debug)]
pub enum CliCommand {
    /// Start a ready cluster and stay in the foreground until Ctrl-C.
    Up(Box<Up>),
    /// Make a database of a running server a copy of another; it takes no longer for a large one.
    Fork {
        db: String,
        new_db: String,
        /// Drop what NEW_DB holds.
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        server: Server,
    },
    /// Keep all databases of a running server as they are now.
    Snapshot {
        name: String,
        /// Drop the snapshot instead.
        #[arg(long)]
        drop: bool,
        #[command(flatten)]
        server: Server,
    },
    /// List the snapshots of a running server.
    Snapshots {
        #[command(flatten)]
        server: Server,
    },
    /// Put all databases of a running server back to a snapshot.
    Restore {
        name: String,
        #[command(flatten)]
        server: Server,
    },
    /// Copy databases from one server to another, and every change after that.
    Copy(copy::Options),
    /// Print a script that completes the arguments of tessera in a shell.
    Completions { shell: clap_complete::Shell },
    /// Show what a running cluster is doing: shards, collections, the balancer and its migrations.
    Status(crate::status::Status),
    /// Let the primary of a shard hand over to another member.
    StepDown(crate::step_down::StepDown),
    /// Run a mongod, with mongod's own options.
    #[command(disable_help_flag = true)]
    Mongod {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run a mongos, with mongos's own options.
    #[command(disable_help_flag = true)]
    Mongos {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

/// The options of `tessera up`.
#[derive(clap::Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct Up {
    /// Read options from a YAML file, under their long names; those of the command line count.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How many shards.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub shards: u16,
    /// Members of each shard, or of the set that --replset names.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=7))]
    pub replicas: u16,
    /// Members of the config server's set.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=7))]
    pub config_replicas: u16,
    /// Let the config server hold data, too: a shard named `config` beside the others.
    #[arg(long, conflicts_with_all = ["standalone", "replset"])]
    pub config_shard: bool,
    /// How many routers.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub routers: u16,
    /// Routers listen here and upward, the other nodes on the ports after them; 0 is any free port.
    #[arg(long, default_value_t = 27017)]
    pub port: u16,
    /// Where the data lives; without it in a temporary directory that goes with the process.
    #[arg(long)]
    pub dbpath: Option<std::path::PathBuf>,
    /// One standalone node and no cluster.
    #[arg(long, conflicts_with = "replset")]
    pub standalone: bool,
    /// One replica set of this name and no cluster.
    #[arg(long, value_name = "NAME")]
    pub replset: Option<String>,
    /// Set a parameter on every node.
    #[arg(long = "set-parameter", value_name = "K=V")]
    pub set_parameter: Vec<String>,
    /// Let in only who logs in: makes a user `admin`, and its password is part of the address printed.
    #[arg(long)]
    pub auth: bool,
    /// Speak TLS only, with certificates made for this cluster; the address printed names the authority.
    #[arg(long)]
    pub tls: bool,
    /// Serve a live page about the cluster on this port of the loopback address; 0 is any free one.
    #[arg(long, value_name = "PORT")]
    pub web: Option<u16>,
    /// Print one JSON object when ready, instead of the table.
    #[arg(long)]
    pub json: bool,
}

impl Up {
    /// What cannot be had yet, as a text; the process then exits with 2.
    pub fn refusal(&self) -> Option<String> {
        if self.standalone && self.replicas != 1 {
            return Some("error: --replicas needs a set: it cannot be given with --standalone".to_string());
        }
        if let Some(bad) = self.set_parameter.iter().find(|p| !p.contains('=')) {
            return Some(format!("error: --set-parameter expects name=value, found '{bad}'"));
        }
        options::check_parameters(self.parameters()).map(|text| format!("error: {text}"))
    }

    fn parameters(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.set_parameter.iter().filter_map(|p| p.split_once('='))
    }

    /// The port at which the first router listens for load balancers, if it does. Those of the other routers follow it.
    fn load_balancer_port(&self) -> Option<u32> {
        let given = self.parameters().find(|(name, _)| *name == LOAD_BALANCER_PORT);
        given.and_then(|(_, text)| text.parse().ok()).filter(|port| *port != 0)
    }
}

/// A parameter that each router is given with a port of its own, and the other nodes not at all.
const LOAD_BALANCER_PORT: &str = "loadBalancerPort";

/// Runs `tessera` on the arguments of this process and returns the exit code.
pub fn cli() -> i32 {
    let program = |program: Program, args: Vec<String>| {
        process::main(program, std::iter::once(program.name().to_string()).chain(args).collect())
    };
    match Cli::parse().command {
        CliCommand::Up(up) => {
            // Behind the program's name and `up`.
            let given: Vec<OsString> = std::env::args_os().skip(2).collect();
            match up.with_file(&given) {
                Ok(up) => main(up),
                Err(text) => {
                    eprintln!("{text}");
                    2
                }
            }
        }
        CliCommand::Fork { db, new_db, replace, server } => {
            ask::main(&server, &Question::Fork { from: db, to: new_db, replace })
        }
        CliCommand::Snapshot { name, drop, server } => ask::main(&server, &Question::Snapshot { name, drop }),
        CliCommand::Snapshots { server } => ask::main(&server, &Question::Snapshots),
        CliCommand::Restore { name, server } => ask::main(&server, &Question::Restore { name }),
        CliCommand::Copy(options) => ask::run(async {
            let stop = process::interrupted();
            copy::copy(options, stop).await.map_err(|e| document::err!(INTERNAL_ERROR, "{e}"))
        }),
        CliCommand::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "tessera", &mut std::io::stdout());
            0
        }
        CliCommand::Status(status) => crate::status::main(&status),
        CliCommand::StepDown(options) => crate::step_down::main(&options),
        CliCommand::Mongod { args } => program(Program::Mongod, args),
        CliCommand::Mongos { args } => program(Program::Mongos, args),
    }
}

/// Runs `tessera up` and returns the exit code.
pub fn main(up: Up) -> i32 {
    if let Some(text) = up.refusal() {
        eprintln!("{text}");
        return 2;
    }
    process::disable_huge_pages();
    if let Err(error) = process::restrict_files(up.parameters()) {
        eprintln!("error: {}", error.message);
        return 2;
    }
    let runtime = match process::runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start the runtime: {error}");
            return 1;
        }
    };
    runtime.block_on(async {
        match run(up).await {
            Ok(()) => 0,
            Err(Failed { text, exit_code }) => {
                eprintln!("{text}");
                exit_code
            }
        }
    })
}

/// A file as the value of an option of an address.
fn in_address(file: &Path) -> String {
    const KEPT: AsciiSet = NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    percent_encode(file.as_os_str().as_encoded_bytes(), &KEPT).to_string()
}

/// Why the cluster did not come up.
#[derive(Debug)]
pub struct Failed {
    pub text: String,
    pub exit_code: i32,
}

impl From<StartError> for Failed {
    fn from(e: StartError) -> Failed {
        Failed { text: format!("error: {}", e.error.message), exit_code: e.exit_code }
    }
}
impl From<document::Error> for Failed {
    fn from(e: document::Error) -> Failed {
        Failed { text: format!("error: {e}"), exit_code: 1 }
    }
}
impl From<std::io::Error> for Failed {
    fn from(e: std::io::Error) -> Failed {
        Failed { text: format!("error: {e}"), exit_code: 1 }
    }
}

async fn run(up: Up) -> Result<(), Failed> {
    let mut signals = Signals::new()?;
    let json = up.json;
    let mut cluster = Cluster::start(up).await?;
    println!("{}", if json { cluster.ready_json() } else { cluster.ready_text() });
    let ended = until_end(&mut cluster, &mut signals).await;
    cluster.stop().await;
    ended
}

/// Until a signal, or until a client shut down a node that clients talk to. Another node that ends is left out.
async fn until_end(cluster: &mut Cluster, signals: &mut Signals) -> Result<(), Failed> {
    loop {
        tokio::select! {
            (name, exit_code) = cluster.ended() => {
                let Some(member) = cluster.take_out(&name) else { return Ok(()) };
                let text = member.ending(exit_code);
                let alone = cluster.single.as_ref().is_some_and(|set| set.members.is_empty());
                member.running.stop().await;
                if alone {
                    return Err(Failed { text, exit_code });
                }
                eprintln!("{text}; the other nodes go on");
            }
            signal = signals.next() => match signal {
                None => cluster.rotate_logs(),
                Some(_) => return Ok(()),
            },
        }
    }
}

/// One node of the cluster and what it is for.
pub struct Member {
    pub name: String,
    pub kind: &'static str,
    pub running: Running,
}

impl Member {
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.running.port())
    }
    /// Why and how the node ends, for the terminal.
    fn ending(&self, exit_code: i32) -> String {
        let service = &self.running.service;
        let failure = service.node.as_ref().and_then(|node| node.log.health().err());
        let cause = failure.map_or_else(|| "a client shut it down".to_string(), |error| error.to_string());
        let log = service.options.logpath.as_deref().unwrap_or(Path::new("")).display();
        format!("{} ended with exit code {exit_code}: {cause} (see {log})", self.name)
    }
}

/// The members of one replica set, or one standalone node.
pub struct Set {
    pub name: String,
    pub members: Vec<Member>,
}

impl Set {
    /// `host:port,...` of all members.
    pub fn hosts(&self) -> String {
        self.members.iter().map(Member::address).collect::<Vec<_>>().join(",")
    }
    /// The member that takes writes.
    pub fn writable(&self) -> Option<&Member> {
        self.members.iter().find(|m| m.running.service.is_writable())
    }
}

/// All nodes of one `tessera up`, ready.
pub struct Cluster {
    pub routers: Vec<Member>,
    pub shards: Vec<Set>,
    pub config: Option<Set>,
    /// The config server is a shard, too.
    config_shard: bool,
    /// Neither router nor shard: the node or nodes of `--standalone` or `--replset`.
    pub single: Option<Set>,
    pub millis: u128,
    set_name: Option<String>,
    /// With --auth: who clients are.
    pub login: Option<Login>,
    /// With --tls: what clients check the nodes by.
    authority: Option<PathBuf>,
    /// With --web.
    web: Option<Web>,
    /// Dropped last, when all nodes have stopped.
    _temporary: Option<Temporary>,
}

/// A directory that is removed with this.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Temporary {
        let name = format!("tessera-{}", uuid::Uuid::from_bytes(runtime::uuid()));
        Temporary(std::env::temp_dir().join(name))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The user that `--auth` makes.
pub struct Login {
    pub user: String,
    pub password: String,
}

/// Where nodes live and which ports are theirs.
struct Plan {
    up: Up,
    root: PathBuf,
    ephemeral: bool,
    /// Ports of data nodes at an earlier start: the cluster's own documents name its members by them.
    known_ports: BTreeMap<String, u16>,
    /// By which the nodes know one another.
    key: Arc<ClusterKey>,
    /// With --tls.
    certificates: Option<Certificates>,
}

/// The file below `--dbpath` that remembers the data nodes' ports: a line `name port` each. DO NOT CHANGE the form.
const PORTS_FILE: &str = "ports";

fn read_ports(root: &Path) -> BTreeMap<String, u16> {
    let text = std::fs::read_to_string(root.join(PORTS_FILE)).unwrap_or_default();
    let pair = |line: &str| {
        let (name, port) = line.split_once(' ')?;
        Some((name.to_string(), port.trim().parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

fn write_ports(root: &Path, cluster: &Cluster) -> std::io::Result<()> {
    let nodes = cluster.sets().flat_map(|set| &set.members);
    let text: String = nodes.map(|m| format!("{} {}\n", m.name, m.running.port())).collect();
    std::fs::write(root.join(PORTS_FILE), text)
}

impl Cluster {
    /// Starts and initiates everything.
    pub async fn start(up: Up) -> Result<Cluster, Failed> {
        let started = Instant::now();
        let (root, temporary) = match &up.dbpath {
            Some(path) => (path.clone(), None),
            None => {
                let temporary = Temporary::new();
                (temporary.0.clone(), Some(temporary))
            }
        };
        std::fs::create_dir_all(&root)?;
        let web = match up.web {
            Some(port) => Some(web::bind(port).await.map_err(|e| Failed {
                text: format!("error: cannot serve the page on port {port}: {e}"),
                exit_code: 48,
            })?),
            None => None,
        };
        let known_ports = read_ports(&root);
        let key = ClusterKey::generate();
        let certificates = up.tls.then(|| Certificates::ensure(&root)).transpose()?;
        let plan = Plan { ephemeral: temporary.is_some(), up, root, known_ports, key, certificates };
        let mut cluster = plan.start().await?;
        if plan.up.auth {
            cluster.login = Some(plan.make_user(&cluster).await?);
        }
        if let Some(listener) = web {
            cluster.web = Some(plan.serve_web(listener, &cluster)?);
        }
        if temporary.is_none() {
            write_ports(&plan.root, &cluster)?;
        }
        cluster._temporary = temporary;
        cluster.millis = started.elapsed().as_millis();
        Ok(cluster)
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        self.routers.iter().chain(self.sets().flat_map(|set| &set.members))
    }
    fn sets(&self) -> impl Iterator<Item = &Set> {
        self.shards.iter().chain(&self.config).chain(&self.single)
    }
    /// The address clients use.
    pub fn uri(&self) -> String {
        let login = self.login.as_ref().map_or(String::new(), |l| format!("{}:{}@", l.user, l.password));
        let routers = || self.routers.iter().map(Member::address).collect::<Vec<_>>().join(",");
        let hosts = self.single.as_ref().map_or_else(routers, Set::hosts);
        let set = self.set_name.as_deref().filter(|_| self.single.is_some());
        format!("mongodb://{login}{hosts}/{}", self.query(set))
    }
    /// The options of an address, with the set's name where it has one.
    fn query(&self, set: Option<&str>) -> String {
        let tls = self.authority.as_deref().map(|file| format!("tls=true&tlsCAFile={}", in_address(file)));
        let options: Vec<String> =
            set.map(|name| format!("replicaSet={name}")).into_iter().chain(tls).collect();
        if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) }
    }
    /// The address of the page of `--web`.
    fn page(&self) -> Option<String> {
        self.web.as_ref().map(|web| format!("http://127.0.0.1:{}/", web.port))
    }
    /// A line for each node, then the line that says ready.
    pub fn ready_text(&self) -> String {
        let mut text = String::new();
        for member in self.members() {
            text.push_str(&format!("{:<10} {:<8} {}\n", member.name, member.kind, member.address()));
        }
        if let Some(page) = self.page() {
            text.push_str(&format!("page: {page}\n"));
        }
        text.push_str(&format!("ready: {}", self.uri()));
        text
    }
    pub fn ready_json(&self) -> String {
        let uri = |m: &Member| format!("mongodb://{}/{}", m.address(), self.query(None));
        let of_set = |s: &Set| match s.members.as_slice() {
            [one] => uri(one),
            _ => format!("mongodb://{}/{}", s.hosts(), self.query(Some(&s.name))),
        };
        let shards = self.config.iter().filter(|_| self.config_shard).chain(&self.shards);
        let shards = shards.map(|s| doc! { "id": s.name.as_str(), "uri": of_set(s) });
        let mut d = doc! {
            "ready": true,
            "uri": self.uri(),
            "routers": self.routers.iter().map(uri).collect::<Vec<_>>(),
            "shards": shards.collect::<Vec<_>>(),
            "config": self.config.as_ref().map(of_set),
            "millis": self.millis as i64,
        };
        if let Some(login) = &self.login {
            d.push("user", login.user.as_str());
            d.push("password", login.password.as_str());
        }
        if let Some(page) = self.page() {
            d.push("web", page);
        }
        document::extended_json::to_logged(&d)
    }
    pub fn rotate_logs(&self) {
        for member in self.members() {
            let service = &member.running.service;
            if let Err(error) = service.log.rotate(service.options.log_rename) {
                let attr = doc! { "reason": error.to_string() };
                service.log.error("CONTROL", 23168, "LogRotate", "Log rotation failed", attr);
            }
        }
    }
    /// The first member that asks for its end, by a `shutdown` command or because its log failed, with its exit code.
    pub async fn ended(&self) -> (String, i32) {
        let ends = self
            .members()
            .map(|m| Box::pin(async { (m.name.clone(), m.running.service.end_requested().await) }));
        futures::future::select_all(ends).await.0
    }
    /// Takes out a member that ends while the others go on; `None` for one whose shutdown is meant for all of them.
    fn take_out(&mut self, name: &str) -> Option<Member> {
        let out = |set: &mut Set| {
            let at = set.members.iter().position(|m| m.name == name)?;
            Some(set.members.remove(at))
        };
        if let Some(member) = self.shards.iter_mut().chain(&mut self.config).find_map(out) {
            return Some(member);
        }
        let single = self.single.as_mut()?;
        let member = single.members.iter().find(|m| m.name == name)?;
        let goes = single.members.len() > 1 || member.running.service.has_failed();
        if goes { out(single) } else { None }
    }
    /// Stops routers first, so that no request finds its shard gone.
    pub async fn stop(self) {
        for router in self.routers {
            router.running.stop().await;
        }
        let sets = self.shards.into_iter().chain(self.config).chain(self.single);
        let others = sets.flat_map(|set| set.members);
        futures::future::join_all(others.map(|m| m.running.stop())).await;
    }
}

/// The file below `--dbpath` that remembers the user of `--auth`: `user password`, for its owner's eyes. DO NOT CHANGE the form.
const LOGIN_FILE: &str = "login";

impl Plan {
    /// A connection as a member of the cluster where users are checked.
    async fn connect(&self, member: &Member) -> document::Result<Connection> {
        Connection::connect_with(&member.address(), &self.connect_options(member)).await
    }
    fn connect_options(&self, member: &Member) -> ConnectOptions {
        let credentials = self.up.auth.then(|| self.key.credentials());
        let tls = member.running.service.tls.as_ref().map(|tls| tls.client.clone());
        ConnectOptions { credentials, tls, ..ConnectOptions::default() }
    }

    /// The page of `--web`, which asks any router, or the nodes of the set.
    fn serve_web(&self, listener: TcpListener, cluster: &Cluster) -> Result<Web, Failed> {
        let asked = || cluster.routers.iter().chain(cluster.single.iter().flat_map(|set| &set.members));
        let options = asked().next().map(|member| self.connect_options(member)).unwrap_or_default();
        let hosts = asked().map(Member::address).collect();
        let login = cluster.login.as_ref().map(|login| (login.user.clone(), login.password.clone()));
        Ok(web::serve(listener, web::Source { hosts, options }, login)?)
    }

    /// The user of `--auth`: the one of an earlier start, or a new one.
    async fn make_user(&self, cluster: &Cluster) -> Result<Login, Failed> {
        let path = self.root.join(LOGIN_FILE);
        let kept = std::fs::read_to_string(&path).ok();
        let kept = kept.as_deref().and_then(|text| text.trim().split_once(' '));
        let login = match kept {
            Some((user, password)) => Login { user: user.to_string(), password: password.to_string() },
            None => {
                let password = document::encoding::hex(&runtime::random::<[u8; 12]>());
                Login { user: "admin".to_string(), password }
            }
        };
        let Some(first) = cluster.routers.first().or_else(|| cluster.single.as_ref()?.writable()) else {
            return Ok(login);
        };
        let create =
            doc! { "createUser": login.user.as_str(), "pwd": login.password.as_str(), "roles": ["root"] };
        match self.connect(first).await?.run("admin", create.to_doc_buf()).await {
            Ok(_) => {}
            Err(error) if error.code == USER_EXISTS && kept.is_some() => return Ok(login),
            Err(error) => return Err(error.into()),
        }
        if !self.ephemeral {
            write_secret(&path, &format!("{} {}\n", login.user, login.password))?;
        }
        Ok(login)
    }

    async fn start(&self) -> Result<Cluster, Failed> {
        let mut cluster = Cluster {
            routers: Vec::new(),
            shards: Vec::new(),
            config: None,
            config_shard: self.up.config_shard,
            single: None,
            millis: 0,
            set_name: self.up.replset.clone(),
            login: None,
            authority: self.certificates.as_ref().map(|c| c.authority.clone()),
            web: None,
            _temporary: None,
        };
        if self.up.standalone || self.up.replset.is_some() {
            cluster.single = Some(self.start_single().await?);
            return Ok(cluster);
        }
        self.start_data_nodes(&mut cluster).await?;
        self.start_routers(&mut cluster).await?;
        Ok(cluster)
    }

    /// The nodes of `--standalone` or `--replset`.
    async fn start_single(&self) -> Result<Set, Failed> {
        let kind = if self.up.standalone { "mongod" } else { "replset" };
        let mut members = Vec::new();
        for i in 0..self.up.replicas {
            let name = member_name("mongod", i);
            let set = self.up.replset.iter().map(|set| ("replication.replSet", set.clone())).collect();
            // These nodes are what clients connect to: a port asked for counts, else a set keeps those its configuration names.
            let known =
                self.known_ports.get(&name).filter(|_| self.up.port == 0 && self.up.replset.is_some());
            let port = known.copied().map_or_else(|| self.port(i), Ok)?;
            members.push(self.member(&name, kind, Program::Mongod, port, set).await?);
        }
        let set = Set { name: self.up.replset.clone().unwrap_or_default(), members };
        if self.up.replset.is_some() {
            initiate(self, &set, false).await?;
        }
        Ok(set)
    }

    /// The members of one set with a part in the cluster, initiated. The first port is the `offset`-th after `--port`.
    async fn start_set(
        &self,
        name: &str,
        kind: &'static str,
        cluster_role: &str,
        count: u16,
        offset: u16,
    ) -> Result<Set, Failed> {
        let starts = (0..count).map(|i| async move {
            let member = member_name(name, i);
            let port = self.data_port(&member, offset + i)?;
            self.member(&member, kind, Program::Mongod, port, role(name, cluster_role)).await
        });
        let members = futures::future::join_all(starts).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        let set = Set { name: name.to_string(), members };
        initiate(self, &set, cluster_role == "configsvr").await?;
        Ok(set)
    }

    /// The config server and the shards, each initiated; all at once, since they do not need each other.
    async fn start_data_nodes(&self, cluster: &mut Cluster) -> Result<(), Failed> {
        let (routers, configs, replicas) = (self.up.routers, self.up.config_replicas, self.up.replicas);
        let config = self.start_set("config", "config", "configsvr", configs, routers);
        let shards = (0..self.up.shards).map(|i| async move {
            let offset = routers + configs + i * replicas;
            self.start_set(&format!("shard{i}"), "shard", "shardsvr", replicas, offset).await
        });
        let (config, shards) = futures::future::join(config, futures::future::join_all(shards)).await;
        cluster.config = Some(config?);
        cluster.shards = shards.into_iter().collect::<Result<_, _>>()?;
        Ok(())
    }

    async fn start_routers(&self, cluster: &mut Cluster) -> Result<(), Failed> {
        let config = cluster.config.as_ref().map(Set::hosts).unwrap_or_default();
        for i in 0..self.up.routers {
            let name = format!("router{i}");
            let mut options = vec![("sharding.configDB", format!("config/{config}"))];
            if let Some(first) = self.up.load_balancer_port() {
                options.push(("setParameter.loadBalancerPort", (first + u32::from(i)).to_string()));
            }
            cluster
                .routers
                .push(self.member(&name, "router", Program::Mongos, self.port(i)?, options).await?);
        }
        let Some(router) = cluster.routers.first() else { return Ok(()) };
        let mut connection = self.connect(router).await?;
        if self.up.config_shard {
            let command = doc! { "transitionFromDedicatedConfigServer": 1 };
            connection.run("admin", command.to_doc_buf()).await?;
        }
        for shard in &cluster.shards {
            let host = format!("{}/{}", shard.name, shard.hosts());
            // A cluster that is started again knows its shards; adding one with the same name is no error.
            let command = doc! { "addShard": host, "name": shard.name.as_str() };
            connection.run("admin", command.to_doc_buf()).await?;
        }
        Ok(())
    }

    /// The port of a shard or the config server: the one it had before, or the `offset`-th after `--port`.
    fn data_port(&self, name: &str, offset: u16) -> Result<u16, Failed> {
        self.known_ports.get(name).copied().map_or_else(|| self.port(offset), Ok)
    }

    fn port(&self, offset: u16) -> Result<u16, Failed> {
        match self.up.port {
            0 => Ok(0),
            base => base.checked_add(offset).ok_or_else(|| Failed {
                text: format!("error: there are not enough ports above {base}"),
                exit_code: 2,
            }),
        }
    }

    async fn member(
        &self,
        name: &str,
        kind: &'static str,
        program: Program,
        port: u16,
        texts: Vec<(&'static str, String)>,
    ) -> Result<Member, Failed> {
        let directory = self.root.join(name);
        std::fs::create_dir_all(&directory)?;
        let log_path = directory.join(format!("{}.log", program.name()));
        let mut parsed = doc! {
            "net": { "port": i32::from(port), "unixDomainSocket": { "enabled": false } },
            "systemLog": { "destination": "file", "path": log_path.display().to_string(), "logAppend": true },
        };
        if program == Program::Mongod {
            parsed.push("storage", doc! { "dbPath": directory.display().to_string() });
        }
        if self.up.auth {
            options::put(&mut parsed, "security.authorization", "enabled".into());
        }
        if let Some(certificates) = &self.certificates {
            certificates.put(&mut parsed);
        }
        for (path, text) in texts {
            options::put(&mut parsed, path, text.into());
        }
        for (name, value) in self.up.parameters().filter(|(name, _)| *name != LOAD_BALANCER_PORT) {
            options::put(&mut parsed, &format!("setParameter.{name}"), value.into());
        }
        let options = Options::from_parsed(program, vec![program.name().to_string()], parsed);
        let target = Target::File { path: log_path, append: true };
        let log = Arc::new(Logger::new(target)?);
        let running =
            Service::start(Config { options, log, ephemeral: self.ephemeral, key: Some(self.key.clone()) })
                .await?;
        Ok(Member { name: name.to_string(), kind, running })
    }
}

/// The code of a user that is there already.
const USER_EXISTS: i32 = 51003;

/// Writes a file that only its owner can read.
fn write_secret(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// The options of a member of a set with a part in a cluster.
fn role(set: &str, role: &str) -> Vec<(&'static str, String)> {
    vec![("replication.replSet", set.to_string()), ("sharding.clusterRole", role.to_string())]
}

/// The first member is named as its set, the others by number.
fn member_name(set: &str, index: u16) -> String {
    if index == 0 { set.to_string() } else { format!("{set}-{index}") }
}

/// Makes a set of the nodes, unless they are one from an earlier life, and waits until one is primary and the others follow.
async fn initiate(plan: &Plan, set: &Set, config_server: bool) -> Result<(), Failed> {
    let Some(first) = set.members.first() else { return Ok(()) };
    let mut connection = plan.connect(first).await?;
    let line =
        |(i, member): (usize, &Member)| Value::from(doc! { "_id": i as i32, "host": member.address() });
    let members: Vec<Value> = set.members.iter().enumerate().map(line).collect();
    let mut config = doc! { "_id": set.name.as_str(), "members": members };
    if config_server {
        config.push("configsvr", true);
    }
    match connection.run("admin", doc! { "replSetInitiate": config }.to_doc_buf()).await {
        Ok(_) => {}
        Err(error) if error.code == codes::ALREADY_INITIALIZED => {}
        Err(error) => return Err(error.into()),
    }
    let ready = async {
        let usable = set.members.iter().map(|member| {
            let mut states = member.running.service.topology.subscribe();
            async move {
                let settled = |state: &State| match &*state.membership {
                    Membership::Member(m) => m.is_primary || (m.is_secondary && m.primary.is_some()),
                    _ => false,
                };
                // The sender lives as long as the node.
                drop(states.wait_for(settled).await.map(drop));
            }
        });
        futures::future::join_all(usable).await;
    };
    match tokio::time::timeout(READY_LIMIT, ready).await {
        Ok(_) => Ok(()),
        Err(_) => {
            Err(Failed { text: format!("error: the set {} did not become ready", set.name), exit_code: 1 })
        }
    }
}

/// How long a set may take from its initiation until it is ready.
const READY_LIMIT: Duration = Duration::from_secs(60);
