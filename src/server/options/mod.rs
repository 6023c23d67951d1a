//! Options of `mongod` and `mongos`: the command line, a configuration file (YAML or INI), defaults.
//!
//! One table of flags ([`flags::FLAGS`]) serves the command line, both file formats, `--help`, and the `parsed` document of
//! getCmdLineOpts: every source fills one document by dotted path (`net.port`), and [`Options`] reads that document.
//! The command line wins over the file.

mod file;
pub mod flags;
mod line;
mod parse;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use parse::check_parameters;
pub use parse::{parse, put};
pub use text::*;

use document::{Document, Value};
use node::auth::restriction::Restrictions;
use std::path::PathBuf;
use wire::Compressor;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    Mongod,
    Mongos,
}

impl Program {
    pub fn name(self) -> &'static str {
        match self {
            Program::Mongod => "mongod",
            Program::Mongos => "mongos",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClusterRole {
    Shard,
    Config,
}

/// What a start-up is for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Run(Box<Options>),
    /// Print this and exit 0.
    Print(String),
    /// `--shutdown`: end the process that holds this data directory.
    Shutdown(PathBuf),
}

/// Why the options cannot be used: the text for standard error and the exit code.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    pub text: String,
    pub exit_code: i32,
}

/// The options of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub program: Program,
    pub port: u16,
    pub bind_ip: Vec<String>,
    pub ipv6: bool,
    pub max_connections: usize,
    pub unix_socket: bool,
    pub unix_socket_prefix: PathBuf,
    /// The mode of the socket's file.
    pub unix_socket_mode: u32,
    /// Connections that wait to be accepted, at most.
    pub listen_backlog: u32,
    pub dbpath: PathBuf,
    pub logpath: Option<PathBuf>,
    pub log_append: bool,
    /// On logRotate: rename the file aside, rather than reopen it.
    pub log_rename: bool,
    pub syslog: bool,
    pub pid_file: Option<PathBuf>,
    pub fork: bool,
    pub repair: bool,
    pub repl_set: Option<String>,
    pub cluster_role: Option<ClusterRole>,
    /// `set/host:port,...` of the config servers; required on mongos.
    pub config_db: Option<String>,
    pub key_file: Option<PathBuf>,
    pub auth: bool,
    /// Users may log in and nobody has to: while a cluster is being given authentication.
    pub transition_to_auth: bool,
    /// From where members of the cluster may log in.
    pub member_restrictions: Restrictions,
    /// How members know one another.
    pub cluster_auth: crate::auth::ClusterAuthMode,
    pub tls: crate::tls::TlsOptions,
    /// `security.redactClientLogData`: the log shows no data of clients.
    pub redacts_log: bool,
    pub set_parameters: Vec<(String, String)>,
    pub compressors: Vec<Compressor>,
    pub quiet: bool,
    pub verbosity: i32,
    pub slow_ms: i64,
    /// 0 off, 1 slow operations, 2 all.
    pub profile: i32,
    /// Mebibytes; `None` is the built-in default.
    pub oplog_size: Option<u64>,
    /// How long the oplog keeps entries even if they are more than its size, in milliseconds.
    pub oplog_ms: u64,
    /// Seconds between checkpoints.
    pub sync_delay: f64,
    /// Bytes of memory the store may take; from --wiredTigerCacheSizeGB.
    pub cache_bytes: Option<u64>,
    pub argv: Vec<String>,
    pub parsed: Document,
}

/// Hours of an option, where less than none is none, in milliseconds.
pub fn hours_to_ms(hours: f64) -> u64 {
    (hours * 3_600_000.0) as u64
}

impl Options {
    /// The options of a program started without any, on `argv[0]` alone.
    pub fn defaults(program: Program) -> Options {
        Options::from_parsed(program, vec![program.name().to_string()], Document::new())
    }

    /// Reads the merged document. It was checked by the parser: types are those of the table.
    pub fn from_parsed(program: Program, argv: Vec<String>, parsed: Document) -> Options {
        let text = |path: &str| parsed.get_path(path).and_then(Value::as_str).map(str::to_string);
        let flag = |path: &str| parsed.get_path(path).and_then(Value::as_bool).unwrap_or(false);
        let int = |path: &str| parsed.get_path(path).and_then(Value::as_i64);
        let number = |path: &str| parsed.get_path(path).and_then(Value::as_f64);
        let cluster_role = match text("sharding.clusterRole").as_deref() {
            Some("shardsvr") => Some(ClusterRole::Shard),
            Some("configsvr") => Some(ClusterRole::Config),
            _ => None,
        };
        let default_port = match cluster_role {
            Some(ClusterRole::Shard) => 27018,
            Some(ClusterRole::Config) => 27019,
            None => 27017,
        };
        let default_path =
            if cluster_role == Some(ClusterRole::Config) { "/data/configdb" } else { "/data/db" };
        let syslog = text("systemLog.destination").as_deref() == Some("syslog");
        let logpath = text("systemLog.path").filter(|_| !syslog).map(PathBuf::from);
        let set_parameters = parsed.get_document("setParameter").map(parameters).unwrap_or_default();
        Options {
            program,
            port: int("net.port").map_or(default_port, |p| u16::try_from(p).unwrap_or(default_port)),
            bind_ip: bind_ip(text("net.bindIp"), flag("net.bindIpAll"), flag("net.ipv6")),
            ipv6: flag("net.ipv6"),
            max_connections: int("net.maxIncomingConnections").map_or(1_000_000, |n| n.max(1) as usize),
            unix_socket: parsed.get_path("net.unixDomainSocket.enabled").is_none_or(|v| v.truthy()),
            unix_socket_prefix: text("net.unixDomainSocket.pathPrefix")
                .unwrap_or_else(|| "/tmp".into())
                .into(),
            unix_socket_mode: text("net.unixDomainSocket.filePermissions")
                .and_then(|mode| file_mode(&mode))
                .unwrap_or(0o700),
            listen_backlog: int("net.listenBacklog").and_then(|n| u32::try_from(n).ok()).unwrap_or(4096),
            dbpath: text("storage.dbPath").unwrap_or_else(|| default_path.into()).into(),
            logpath,
            log_append: flag("systemLog.logAppend"),
            log_rename: text("systemLog.logRotate").as_deref() != Some("reopen"),
            syslog,
            pid_file: text("processManagement.pidFilePath").map(PathBuf::from),
            fork: flag("processManagement.fork"),
            repair: flag("repair"),
            repl_set: text("replication.replSetName").or_else(|| text("replication.replSet")),
            cluster_role,
            config_db: text("sharding.configDB"),
            key_file: text("security.keyFile").map(PathBuf::from),
            auth: text("security.authorization").as_deref() == Some("enabled")
                || text("security.keyFile").is_some()
                || text("security.clusterAuthMode").is_some(),
            transition_to_auth: flag("security.transitionToAuth"),
            member_restrictions: text("security.clusterIpSourceAllowlist")
                .and_then(|list| Restrictions::to_clients(&list).ok())
                .unwrap_or_default(),
            cluster_auth: text("security.clusterAuthMode")
                .and_then(|mode| crate::auth::ClusterAuthMode::from_name(&mode))
                .unwrap_or_default(),
            tls: crate::tls::TlsOptions::of_parsed(&parsed),
            redacts_log: flag("security.redactClientLogData"),
            set_parameters,
            compressors: compressors(text("net.compression.compressors").as_deref()),
            quiet: flag("systemLog.quiet"),
            verbosity: int("systemLog.verbosity").unwrap_or(0) as i32,
            slow_ms: int("operationProfiling.slowOpThresholdMs").unwrap_or(100),
            profile: match text("operationProfiling.mode").as_deref() {
                Some("slowOp") => 1,
                Some("all") => 2,
                _ => 0,
            },
            oplog_size: int("replication.oplogSizeMB").and_then(|n| u64::try_from(n).ok()),
            oplog_ms: number("storage.oplogMinRetentionHours").map_or(0, hours_to_ms),
            sync_delay: number("storage.syncPeriodSecs").unwrap_or(60.0),
            cache_bytes: number("storage.wiredTiger.engineConfig.cacheSizeGB")
                .filter(|gb| *gb > 0.0)
                .map(|gb| (gb * 1073741824.0) as u64),
            argv,
            parsed,
        }
    }
    /// Whether it was said that nobody has to log in.
    pub fn is_auth_declined(&self) -> bool {
        let given = self.parsed.get_path("security.authorization").and_then(Value::as_str);
        given == Some("disabled")
    }
}

/// A file's permissions in octal digits.
fn file_mode(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777)
}

/// The name before the first `/`: members after it are seeds and not used.
pub fn set_name(repl_set: &str) -> &str {
    repl_set.split('/').next().unwrap_or(repl_set)
}

fn parameters(d: &Document) -> Vec<(String, String)> {
    let text = |v: &Value| match v {
        Value::String(s) => s.clone(),
        Value::Boolean(b) => b.to_string(),
        Value::Int32(n) => n.to_string(),
        Value::Int64(n) => n.to_string(),
        Value::Double(f) => f.to_string(),
        Value::Document(d) => document::extended_json::to_logged(d),
        _ => String::new(),
    };
    d.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

fn bind_ip(list: Option<String>, all: bool, ipv6: bool) -> Vec<String> {
    let any =
        || if ipv6 { vec!["0.0.0.0".to_string(), "::".to_string()] } else { vec!["0.0.0.0".to_string()] };
    if all {
        return any();
    }
    let Some(list) = list else { return vec!["127.0.0.1".to_string()] };
    list.split(',')
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .flat_map(|ip| if ip == "*" { any() } else { vec![ip.to_string()] })
        .collect()
}

fn compressors(list: Option<&str>) -> Vec<Compressor> {
    match list {
        None => Compressor::OFFERED.to_vec(),
        Some(list) => list.split(',').filter_map(|name| Compressor::from_name(name.trim())).collect(),
    }
}
