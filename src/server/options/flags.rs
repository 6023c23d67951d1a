//! The table of flags.

use super::Program;

/// What follows a flag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// Nothing: present means true.
    Switch,
    /// Nothing: present sets the path to this text.
    Sets(&'static str),
    /// Nothing: present sets the path to false.
    Clears,
    Text,
    Int,
    Number,
    Bool,
    /// `true` or `false`, and nothing is true.
    OptionalBool,
    /// `name=value`, repeatable; fills a document.
    Pair,
    /// An optional value, here `v`s: `-v`, `-vvv`, `--verbose`, `--verbose=vvv`.
    Verbosity,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    Both,
    Mongod,
    Mongos,
}

/// One flag: its names, where its value goes, and on which programs it exists.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    pub name: &'static str,
    pub short: Option<char>,
    pub argument: Argument,
    /// Dotted path in the parsed document and in YAML files.
    pub path: &'static str,
    pub on: On,
    pub help: &'static str,
}

impl Flag {
    pub fn is_on(&self, program: Program) -> bool {
        match self.on {
            On::Both => true,
            On::Mongod => program == Program::Mongod,
            On::Mongos => program == Program::Mongos,
        }
    }
    pub fn takes_value(&self) -> bool {
        use Argument::*;
        matches!(self.argument, Text | Int | Number | Bool | Pair)
    }
}

const fn flag(
    name: &'static str,
    argument: Argument,
    path: &'static str,
    on: On,
    help: &'static str,
) -> Flag {
    Flag { name, short: None, argument, path, on, help }
}
const fn short(
    name: &'static str,
    c: char,
    argument: Argument,
    path: &'static str,
    help: &'static str,
) -> Flag {
    Flag { name, short: Some(c), argument, path, on: On::Both, help }
}

use Argument::*;
use On::*;

pub const FLAGS: &[Flag] = &[
    short("help", 'h', Switch, "help", "Show this usage information"),
    flag("version", Switch, "version", Both, "Show version information"),
    short("config", 'f', Text, "config", "Configuration file specifying additional options"),
    flag(
        "configExpand",
        Text,
        "configExpand",
        Both,
        "Process expansion directives in config file (none, exec, rest)",
    ),
    flag("outputConfig", Switch, "outputConfig", Both, "Display the resolved configuration and exit"),
    short(
        "verbose",
        'v',
        Verbosity,
        "systemLog.verbosity",
        "Be more verbose (include multiple times for more verbosity e.g. -vvvvv)",
    ),
    flag("quiet", Switch, "systemLog.quiet", Both, "Quieter output"),
    flag("port", Int, "net.port", Both, "Specify port number - 27017 by default"),
    flag(
        "bind_ip",
        Text,
        "net.bindIp",
        Both,
        "Comma separated list of ip addresses to listen on - localhost by default",
    ),
    flag("bind_ip_all", Switch, "net.bindIpAll", Both, "Bind to all ip addresses"),
    flag("ipv6", Switch, "net.ipv6", Both, "Enable IPv6 support (disabled by default)"),
    flag("listenBacklog", Int, "net.listenBacklog", Both, "Set socket listen backlog size"),
    flag("maxConns", Int, "net.maxIncomingConnections", Both, "Max number of simultaneous connections"),
    flag("nounixsocket", Clears, "net.unixDomainSocket.enabled", Both, "Disable listening on unix sockets"),
    flag(
        "unixSocketPrefix",
        Text,
        "net.unixDomainSocket.pathPrefix",
        Both,
        "Alternative directory for UNIX domain sockets (defaults to /tmp)",
    ),
    flag(
        "filePermissions",
        Text,
        "net.unixDomainSocket.filePermissions",
        Both,
        "Permissions to set on UNIX domain socket file - 0700 by default",
    ),
    flag(
        "networkMessageCompressors",
        Text,
        "net.compression.compressors",
        Both,
        "Comma-separated list of compressors to use for network messages",
    ),
    flag(
        "transportLayer",
        Text,
        "net.transportLayer",
        Both,
        "Sets the ingress transport layer implementation",
    ),
    flag("serviceExecutor", Text, "net.serviceExecutor", Both, "Sets the service executor implementation"),
    flag(
        "logpath",
        Text,
        "systemLog.path",
        Both,
        "Log file to send write to instead of stdout - has to be a file, not directory",
    ),
    flag("logappend", Switch, "systemLog.logAppend", Both, "Append to logpath instead of over-writing"),
    flag("logRotate", Text, "systemLog.logRotate", Both, "Set the log rotation behavior (rename|reopen)"),
    flag(
        "timeStampFormat",
        Text,
        "systemLog.timeStampFormat",
        Both,
        "Desired format for timestamps in log messages. One of iso8601-utc or iso8601-local",
    ),
    flag(
        "syslog",
        Sets("syslog"),
        "systemLog.destination",
        Both,
        "Log to system's syslog facility instead of file or stdout",
    ),
    flag(
        "syslogFacility",
        Text,
        "systemLog.syslogFacility",
        Both,
        "syslog facility used for mongodb syslog message",
    ),
    flag(
        "traceExceptions",
        Switch,
        "systemLog.traceAllExceptions",
        Both,
        "Log stack traces for every exception",
    ),
    flag(
        "pidfilepath",
        Text,
        "processManagement.pidFilePath",
        Both,
        "Full path to pidfile (if not set, no pidfile is created)",
    ),
    flag(
        "timeZoneInfo",
        Text,
        "processManagement.timeZoneInfo",
        Both,
        "Full path to time zone info directory",
    ),
    flag("fork", Switch, "processManagement.fork", Both, "Fork server process"),
    flag("setParameter", Pair, "setParameter", Both, "Set a configurable parameter"),
    flag("keyFile", Text, "security.keyFile", Both, "Private key for cluster authentication"),
    flag(
        "clusterAuthMode",
        Text,
        "security.clusterAuthMode",
        Both,
        "Authentication mode used for cluster authentication. Alternatives are (keyFile|sendKeyFile|sendX509|x509)",
    ),
    flag("auth", Sets("enabled"), "security.authorization", Mongod, "Run with security"),
    flag("noauth", Sets("disabled"), "security.authorization", Mongod, "Run without security"),
    flag("transitionToAuth", Switch, "security.transitionToAuth", Both, "For rolling access control upgrade"),
    flag("noscripting", Clears, "security.javascriptEnabled", Both, "Disable scripting engine"),
    flag(
        "redactClientLogData",
        Switch,
        "security.redactClientLogData",
        Both,
        "Redact client data written to the diagnostics log",
    ),
    flag(
        "clusterIpSourceAllowlist",
        Text,
        "security.clusterIpSourceAllowlist",
        Both,
        "Network CIDR specification of permitted origin for `__system` access",
    ),
    flag("dbpath", Text, "storage.dbPath", Mongod, "Directory for datafiles - defaults to /data/db"),
    flag(
        "directoryperdb",
        Switch,
        "storage.directoryPerDB",
        Mongod,
        "Each database will be stored in a separate directory",
    ),
    flag(
        "storageEngine",
        Text,
        "storage.engine",
        Mongod,
        "What storage engine to use - defaults to wiredTiger if no data files present",
    ),
    flag("syncdelay", Number, "storage.syncPeriodSecs", Mongod, "Seconds between disk syncs"),
    flag(
        "journal",
        Switch,
        "storage.journal.enabled",
        Mongod,
        "Accepted for compatibility; the log cannot be switched off",
    ),
    flag(
        "nojournal",
        Clears,
        "storage.journal.enabled",
        Mongod,
        "Accepted for compatibility; the log cannot be switched off",
    ),
    flag(
        "journalCommitInterval",
        Int,
        "storage.journal.commitIntervalMs",
        Mongod,
        "How often to group/batch commit (ms)",
    ),
    flag(
        "oplogMinRetentionHours",
        Number,
        "storage.oplogMinRetentionHours",
        Mongod,
        "Minimum number of hours to preserve in the oplog",
    ),
    flag("upgrade", Switch, "upgrade", Mongod, "Upgrade db if needed"),
    flag("repair", Switch, "repair", Mongod, "Run repair on all dbs"),
    flag("restore", Switch, "restore", Mongod, "This should only be used when restoring from a backup"),
    flag("shutdown", Switch, "shutdown", Mongod, "Kill a running server (for init scripts)"),
    flag(
        "wiredTigerCacheSizeGB",
        Number,
        "storage.wiredTiger.engineConfig.cacheSizeGB",
        Both,
        "Maximum amount of memory to allocate for the store",
    ),
    flag(
        "wiredTigerCacheSizePct",
        Number,
        "storage.wiredTiger.engineConfig.cacheSizePct",
        Mongod,
        "Maximum percentage of memory to allocate for the store",
    ),
    flag(
        "wiredTigerJournalCompressor",
        Text,
        "storage.wiredTiger.engineConfig.journalCompressor",
        Mongod,
        "Accepted for compatibility",
    ),
    flag(
        "wiredTigerDirectoryForIndexes",
        Switch,
        "storage.wiredTiger.engineConfig.directoryForIndexes",
        Mongod,
        "Accepted for compatibility",
    ),
    flag(
        "wiredTigerCollectionBlockCompressor",
        Text,
        "storage.wiredTiger.collectionConfig.blockCompressor",
        Mongod,
        "Accepted for compatibility",
    ),
    flag(
        "wiredTigerIndexPrefixCompression",
        Bool,
        "storage.wiredTiger.indexConfig.prefixCompression",
        Mongod,
        "Accepted for compatibility",
    ),
    flag(
        "wiredTigerEngineConfigString",
        Text,
        "storage.wiredTiger.engineConfig.configString",
        Mongod,
        "Accepted for compatibility",
    ),
    flag(
        "wiredTigerCollectionConfigString",
        Text,
        "storage.wiredTiger.collectionConfig.configString",
        Mongod,
        "Accepted for compatibility",
    ),
    flag(
        "inMemorySizeGB",
        Number,
        "storage.inMemory.engineConfig.inMemorySizeGB",
        Mongod,
        "Accepted for compatibility",
    ),
    flag(
        "slowms",
        Int,
        "operationProfiling.slowOpThresholdMs",
        Both,
        "Value of slow for profile and console log",
    ),
    flag(
        "slowOpSampleRate",
        Number,
        "operationProfiling.slowOpSampleRate",
        Both,
        "Fraction of slow ops to include in the profile and console log",
    ),
    flag(
        "profileFilter",
        Text,
        "operationProfiling.filter",
        Both,
        "Query predicate to control which operations are logged and profiled",
    ),
    flag("profile", Int, "operationProfiling.mode", Mongod, "0=off 1=slow, 2=all"),
    flag("replSet", Text, "replication.replSet", Mongod, "Specify the replica set name"),
    flag("replSetName", Text, "replication.replSetName", Mongod, "Specify the replica set name"),
    flag("oplogSize", Int, "replication.oplogSizeMB", Mongod, "Size to use (in MB) for replication op log"),
    flag(
        "enableMajorityReadConcern",
        OptionalBool,
        "replication.enableMajorityReadConcern",
        Mongod,
        "Accepted for compatibility; always on",
    ),
    flag(
        "localThreshold",
        Int,
        "replication.localPingThresholdMs",
        Mongos,
        "Ping time (in ms) for a node to be considered local",
    ),
    flag(
        "configsvr",
        Sets("configsvr"),
        "sharding.clusterRole",
        Mongod,
        "Declare this is a config db of a cluster; default port 27019; default dir /data/configdb",
    ),
    flag(
        "shardsvr",
        Sets("shardsvr"),
        "sharding.clusterRole",
        Mongod,
        "Declare this is a shard db of a cluster; default port 27018",
    ),
    flag(
        "configdb",
        Text,
        "sharding.configDB",
        Mongos,
        "Connection string for communicating with config servers: <config replset name>/<host1:port>,<host2:port>,[...]",
    ),
    flag("notablescan", Switch, "notablescan", Mongod, "Do not allow table scans"),
    flag("cpu", Switch, "cpu", Mongod, "Periodically show cpu and iowait utilization"),
    flag("sysinfo", Switch, "sysinfo", Mongod, "Print some diagnostic system information"),
    flag(
        "tlsMode",
        Text,
        "net.tls.mode",
        Both,
        "Set the TLS operation mode (disabled|allowTLS|preferTLS|requireTLS)",
    ),
    flag("tlsOnNormalPorts", Sets("requireTLS"), "net.tls.mode", Both, "Use TLS on configured ports"),
    flag(
        "tlsCertificateKeyFile",
        Text,
        "net.tls.certificateKeyFile",
        Both,
        "Certificate and key file for TLS",
    ),
    flag(
        "tlsCertificateKeyFilePassword",
        Text,
        "net.tls.certificateKeyFilePassword",
        Both,
        "Password to unlock key in the TLS certificate key file",
    ),
    flag("tlsClusterFile", Text, "net.tls.clusterFile", Both, "Key file for internal TLS authentication"),
    flag(
        "tlsClusterPassword",
        Text,
        "net.tls.clusterPassword",
        Both,
        "Internal authentication key file password",
    ),
    flag(
        "tlsClusterAuthX509Attributes",
        Text,
        "net.tls.clusterAuthX509.attributes",
        Both,
        "Parts of the subject by which certificates of members are known",
    ),
    flag(
        "tlsClusterAuthX509ExtensionValue",
        Text,
        "net.tls.clusterAuthX509.extensionValue",
        Both,
        "Value of the extension by which certificates of members are known",
    ),
    flag("tlsCAFile", Text, "net.tls.CAFile", Both, "Certificate Authority file for TLS"),
    flag(
        "tlsClusterCAFile",
        Text,
        "net.tls.clusterCAFile",
        Both,
        "CA used for verifying remotes during inbound connections",
    ),
    flag("tlsCRLFile", Text, "net.tls.CRLFile", Both, "Certificate Revocation List file for TLS"),
    flag(
        "tlsDisabledProtocols",
        Text,
        "net.tls.disabledProtocols",
        Both,
        "Comma separated list of TLS protocols to disable",
    ),
    flag(
        "tlsAllowConnectionsWithoutCertificates",
        Switch,
        "net.tls.allowConnectionsWithoutCertificates",
        Both,
        "Allow client to connect without presenting a certificate",
    ),
    flag(
        "tlsAllowInvalidHostnames",
        Switch,
        "net.tls.allowInvalidHostnames",
        Both,
        "Allow server certificates to provide non-matching hostnames",
    ),
    flag(
        "tlsAllowInvalidCertificates",
        Switch,
        "net.tls.allowInvalidCertificates",
        Both,
        "Allow connections to servers with invalid certificates",
    ),
    flag("tlsFIPSMode", Switch, "net.tls.FIPSMode", Both, "Activate FIPS 140-2 mode at startup"),
    flag(
        "tlsLogVersions",
        Text,
        "net.tls.logVersions",
        Both,
        "Comma separated list of TLS protocols to log on connect",
    ),
    flag("sslMode", Text, "net.ssl.mode", Both, "The older name of --tlsMode"),
    flag(
        "sslOnNormalPorts",
        Sets("requireSSL"),
        "net.ssl.mode",
        Both,
        "The older name of --tlsOnNormalPorts",
    ),
    flag("sslPEMKeyFile", Text, "net.ssl.PEMKeyFile", Both, "The older name of --tlsCertificateKeyFile"),
    flag(
        "sslPEMKeyPassword",
        Text,
        "net.ssl.PEMKeyPassword",
        Both,
        "The older name of --tlsCertificateKeyFilePassword",
    ),
    flag("sslClusterFile", Text, "net.ssl.clusterFile", Both, "The older name of --tlsClusterFile"),
    flag(
        "sslClusterPassword",
        Text,
        "net.ssl.clusterPassword",
        Both,
        "The older name of --tlsClusterPassword",
    ),
    flag("sslCAFile", Text, "net.ssl.CAFile", Both, "The older name of --tlsCAFile"),
    flag("sslClusterCAFile", Text, "net.ssl.clusterCAFile", Both, "The older name of --tlsClusterCAFile"),
    flag("sslCRLFile", Text, "net.ssl.CRLFile", Both, "The older name of --tlsCRLFile"),
    flag(
        "sslDisabledProtocols",
        Text,
        "net.ssl.disabledProtocols",
        Both,
        "The older name of --tlsDisabledProtocols",
    ),
    flag(
        "sslAllowConnectionsWithoutCertificates",
        Switch,
        "net.ssl.allowConnectionsWithoutCertificates",
        Both,
        "The older name of --tlsAllowConnectionsWithoutCertificates",
    ),
    flag(
        "sslWeakCertificateValidation",
        Switch,
        "net.ssl.allowConnectionsWithoutCertificates",
        Both,
        "The older name of --tlsAllowConnectionsWithoutCertificates",
    ),
    flag(
        "sslAllowInvalidHostnames",
        Switch,
        "net.ssl.allowInvalidHostnames",
        Both,
        "The older name of --tlsAllowInvalidHostnames",
    ),
    flag(
        "sslAllowInvalidCertificates",
        Switch,
        "net.ssl.allowInvalidCertificates",
        Both,
        "The older name of --tlsAllowInvalidCertificates",
    ),
    flag("sslFIPSMode", Switch, "net.ssl.FIPSMode", Both, "The older name of --tlsFIPSMode"),
];

pub fn by_name(program: Program, name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|f| f.name == name && f.is_on(program))
}
