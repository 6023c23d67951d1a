//! What a command brings with it besides its own fields: deadline, session, concerns, placement versions.
//!
//! Parsed once, in one pass over the raw command, by the dispatcher, and handed down to everything that acts for the
//! command. `null` for an optional field means absent.

use crate::exec::profiled::Notes;
use crate::write::ahead::Ahead;
use document::{Doc, Document, Error, Result, Timestamp, Value, ValueRef, bail, codes, err};
use parking_lot::Mutex;
use protocol::version::{DatabaseVersion, ShardVersion};
use query::pipeline::Spills;
use runtime::Instant;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;

/// What a long operation is doing: text, and `{done, total}` where that is counted.
pub type Progress = (String, Option<Document>);

/// A logical session: the client's UUID and the digest of the user it belongs to. The order keeps children behind their
/// parent, by the number of the parent's write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId {
    pub id: [u8; 16],
    pub uid: [u8; 32],
    pub child: Option<ChildId>,
}

/// Tells the session of a transaction that a server runs on its own from the client's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChildId {
    /// The number of the client's retryable write that the transaction executes.
    pub number: Option<i64>,
    pub uuid: [u8; 16],
}

/// SHA-256 of the empty string: the owner of a session nobody authenticated for.
pub const NO_USER: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
    0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

impl SessionId {
    /// A client's session.
    pub fn of_client(id: [u8; 16], uid: [u8; 32]) -> SessionId {
        SessionId { id, uid, child: None }
    }
    /// The client's session that this is, or is a child of.
    pub fn parent(&self) -> SessionId {
        SessionId { child: None, ..*self }
    }
    /// A child for one transaction of a server; `number` is that of the retryable write it executes.
    pub fn with_child(&self, number: Option<i64>, uuid: [u8; 16]) -> SessionId {
        SessionId { child: Some(ChildId { number, uuid }), ..*self }
    }
    /// The client's session and the number of its retryable write that transactions of this session execute.
    pub fn executes(&self) -> Option<(SessionId, i64)> {
        Some((self.parent(), self.child?.number?))
    }

    /// Reads `{id: UUID, uid?: BinData(0, 32 bytes), txnNumber?: long, txnUUID?: UUID}`.
    pub fn parse(doc: Doc<'_>) -> Result<SessionId> {
        let id = match doc.get("id") {
            Some(v @ ValueRef::Binary(subtype, _)) if subtype != 4 => {
                return Err(wrong_type("lsid.id", v, "UUID"));
            }
            Some(v @ ValueRef::Binary(..)) => {
                v.as_uuid().ok_or_else(|| err!(INVALID_UUID, "lsid.id must be a UUID"))?
            }
            Some(v) => return Err(wrong_type("lsid.id", v, "binData")),
            None => bail!(IDL_FAILED_TO_PARSE, "BSON field 'lsid.id' is missing but a required field"),
        };
        if let Some(e) = doc.iter().find(|e| !matches!(e.name(), "id" | "uid" | "txnNumber" | "txnUUID")) {
            bail!(IDL_UNKNOWN_FIELD, "BSON field 'lsid.{}' is an unknown field.", e.name());
        }
        let uid = match doc.get("uid") {
            Some(ValueRef::Binary(_, b)) => <[u8; 32]>::try_from(b).unwrap_or(NO_USER),
            _ => NO_USER,
        };
        Ok(SessionId { id, uid, child: ChildId::parse(doc)? })
    }
    pub fn to_document(&self) -> Document {
        let mut lsid = document::doc! {
            "id": Value::uuid(self.id),
            "uid": document::Binary { subtype: 0, bytes: self.uid.to_vec() },
        };
        if let Some(child) = &self.child {
            if let Some(number) = child.number {
                lsid.push("txnNumber", number);
            }
            lsid.push("txnUUID", Value::uuid(child.uuid));
        }
        lsid
    }
}

impl ChildId {
    fn parse(lsid: Doc<'_>) -> Result<Option<ChildId>> {
        let number = match lsid.get("txnNumber") {
            None => None,
            Some(ValueRef::Int64(n)) if n >= 0 => Some(n),
            Some(ValueRef::Int64(_)) => bail!(INVALID_OPTIONS, "Transaction number cannot be negative"),
            Some(v) => return Err(wrong_type("lsid.txnNumber", v, "long")),
        };
        match (lsid.get("txnUUID").map(|v| v.as_uuid()), number) {
            (None, None) => Ok(None),
            (None, Some(_)) => {
                bail!(INVALID_OPTIONS, "Session id txnNumber cannot be provided without a txnUUID")
            }
            (Some(None), _) => bail!(INVALID_UUID, "lsid.txnUUID must be a UUID"),
            (Some(Some(uuid)), number) => Ok(Some(ChildId { number, uuid })),
        }
    }
}

/// `lsid`, `txnNumber` and the transaction fields of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFields {
    pub lsid: SessionId,
    pub txn_number: Option<i64>,
    /// Present (and false) on every statement of a transaction.
    pub autocommit: Option<bool>,
    pub start_transaction: bool,
    /// `stmtId` / `stmtIds` of a retryable write; empty means 0, 1, 2, ...
    pub stmt_ids: Vec<i32>,
}

/// `apiVersion`, `apiStrict` and `apiDeprecationErrors`. All commands of a transaction carry the same, and all of a cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ApiParameters {
    version: Option<u32>,
    strict: Option<bool>,
    deprecation_errors: Option<bool>,
}

impl ApiParameters {
    /// The dispatcher refuses what is no version or no flag.
    fn set(&mut self, name: &[u8], v: ValueRef<'_>) {
        match name {
            b"apiVersion" => self.version = v.as_str().and_then(|v| v.parse().ok()),
            b"apiStrict" => self.strict = v.as_bool(),
            _ => self.deprecation_errors = v.as_bool(),
        }
    }

    /// Of a command's body.
    pub fn of(body: Doc<'_>) -> ApiParameters {
        let mut api = ApiParameters::default();
        for e in
            body.iter().filter(|e| matches!(e.name(), "apiVersion" | "apiStrict" | "apiDeprecationErrors"))
        {
            api.set(e.name().as_bytes(), e.value());
        }
        api
    }

    /// Whether a getMore may carry these, when the command that opened its cursor has carried `first`.
    ///
    /// # Errors
    /// APIMismatchError (347).
    pub fn check_cursor(self, first: ApiParameters) -> Result<()> {
        match self == first {
            true => Ok(()),
            false => bail!(
                API_MISMATCH_ERROR,
                "API parameter mismatch: getMore used params {self}, the cursor-creating command used {first}"
            ),
        }
    }

    /// Whether a later command may carry these, when the first of its transaction has carried `first`.
    ///
    /// # Errors
    /// APIMismatchError (347).
    pub fn check_same(self, first: ApiParameters) -> Result<()> {
        match self == first {
            true => Ok(()),
            false => bail!(
                API_MISMATCH_ERROR,
                "All commands of a transaction carry the API parameters of its first, which are {first}; this one has {self}"
            ),
        }
    }
}

impl std::fmt::Display for ApiParameters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = Document::new();
        if let Some(version) = self.version {
            shown.push("apiVersion", version.to_string());
        }
        if let Some(strict) = self.strict {
            shown.push("apiStrict", strict);
        }
        if let Some(errors) = self.deprecation_errors {
            shown.push("apiDeprecationErrors", errors);
        }
        f.write_str(&document::shell::value(&Value::Document(shown)))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum WriteAck {
    Nodes(i64),
    Majority,
    /// One of the configuration's `getLastErrorModes`.
    Mode(String),
    /// How many different values of each tag.
    Tags(Document),
}

/// A parsed write concern. `given` tells a client's own from the default.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteConcern {
    pub w: WriteAck,
    pub journal: bool,
    pub timeout: Option<Duration>,
    pub given: bool,
}

/// Where a concern came from, as routers note it.
fn check_provenance(concern: &str, v: ValueRef<'_>) -> Result<()> {
    const KNOWN: &[&str] = &[
        "clientSupplied",
        "implicitDefault",
        "customDefault",
        "getLastErrorDefaults",
        "internalWriteDefault",
    ];
    match v {
        ValueRef::Null | ValueRef::Undefined => Ok(()),
        ValueRef::String(s) if KNOWN.contains(&s) => Ok(()),
        ValueRef::String(s) => {
            bail!(BAD_VALUE, "Enumeration value '{s}' for field '{concern}.provenance' is not a valid value.")
        }
        v => bail!(
            TYPE_MISMATCH,
            "BSON field '{concern}.provenance' is the wrong type '{}', expected type 'string'",
            v.type_name()
        ),
    }
}

/// How many different values of each tag the members that have a write must carry.
fn parse_tags(given: Doc<'_>) -> Result<Document> {
    if given.is_empty() {
        bail!(FAILED_TO_PARSE, "tagged write concern requires tags");
    }
    let mut tags = Document::new();
    for e in given.iter() {
        let Some(wanted) = crate::shape::to_long(e.value()) else {
            bail!(
                FAILED_TO_PARSE,
                "tags must be a single level document with only number values; found: {}",
                e.value().type_name()
            )
        };
        tags.insert(e.name(), wanted);
    }
    Ok(tags)
}

impl WriteConcern {
    /// Whether the client wants to hear nothing of what became of its statements.
    pub fn is_unacknowledged(&self) -> bool {
        self.w == WriteAck::Nodes(0) && !self.journal
    }
    pub fn majority() -> WriteConcern {
        WriteConcern { w: WriteAck::Majority, journal: false, timeout: None, given: false }
    }
    pub fn acknowledged() -> WriteConcern {
        WriteConcern { w: WriteAck::Nodes(1), journal: false, timeout: None, given: false }
    }
    pub fn parse(doc: Doc<'_>) -> Result<WriteConcern> {
        let mut wc = WriteConcern { given: true, ..WriteConcern::acknowledged() };
        let mut fsync = false;
        for e in doc.iter() {
            match (e.name(), e.value()) {
                ("w", ValueRef::String("majority")) => wc.w = WriteAck::Majority,
                ("w", ValueRef::String(mode)) => wc.w = WriteAck::Mode(mode.to_string()),
                ("w", ValueRef::Document(tags)) => wc.w = WriteAck::Tags(parse_tags(tags)?),
                ("w", v) if v.is_number() && document::number::is_nan(&v.to_value()) => {
                    bail!(
                        FAILED_TO_PARSE,
                        "w has to be a non-negative number and not greater than 50; found: NaN"
                    )
                }
                ("w", v) if v.is_number() => {
                    let n = crate::shape::to_long(v).unwrap_or(-1);
                    if !(0..=50).contains(&n) {
                        bail!(
                            FAILED_TO_PARSE,
                            "w has to be a non-negative number and not greater than 50; found: {n}"
                        );
                    }
                    wc.w = WriteAck::Nodes(n);
                }
                // The mode without a name, which no set has.
                ("w", ValueRef::Null | ValueRef::Undefined) => wc.w = WriteAck::Mode(String::new()),
                ("w", v) => {
                    bail!(
                        FAILED_TO_PARSE,
                        "w has to be a number, string, or object; found: {}",
                        v.type_name()
                    )
                }
                ("j" | "journal", ValueRef::Null | ValueRef::Undefined) => {}
                ("j" | "journal", v) if v.is_number() || matches!(v, ValueRef::Boolean(_)) => {
                    wc.journal |= v.truthy()
                }
                ("j" | "journal", v) => {
                    return Err(document::wrong_types(
                        "writeConcern.j",
                        v.type_name(),
                        "[bool, long, int, decimal, double]",
                    ));
                }
                ("fsync", v) => fsync |= v.truthy(),
                ("wtimeout" | "wtimeoutMS", v) => {
                    let ms = document::number::as_f64(&v.to_value()).unwrap_or(0.0);
                    if ms > f64::from(i32::MAX) {
                        bail!(FAILED_TO_PARSE, "wtimeout must be a 32-bit integer, but found {ms}");
                    }
                    wc.timeout = Some(ms).filter(|ms| *ms >= 1.0).map(|ms| Duration::from_millis(ms as u64));
                }
                ("provenance", v) => check_provenance("writeConcern", v)?,
                ("getLastError" | "wOpTime" | "wElectionId", _) => {}
                (name, _) => {
                    bail!(IDL_UNKNOWN_FIELD, "BSON field 'writeConcern.{name}' is an unknown field.")
                }
            }
        }
        if fsync && wc.journal {
            bail!(FAILED_TO_PARSE, "fsync and j options cannot be used together");
        }
        wc.journal |= fsync;
        Ok(wc)
    }
    pub fn to_document(&self) -> Document {
        let mut d = Document::new();
        match &self.w {
            WriteAck::Nodes(n) => d.push("w", *n as i32),
            WriteAck::Majority => d.push("w", "majority"),
            WriteAck::Mode(name) => d.push("w", name.as_str()),
            WriteAck::Tags(tags) => d.push("w", tags.clone()),
        }
        if self.journal {
            d.push("j", true);
        }
        d.push("wtimeout", self.timeout.map_or(0, |t| t.as_millis() as i32));
        d
    }
    /// Whether the acknowledgement has to wait until the write is durable on this node.
    pub fn needs_durable(&self) -> bool {
        self.journal || !matches!(self.w, WriteAck::Nodes(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadLevel {
    Local,
    Available,
    Majority,
    Linearizable,
    Snapshot,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReadConcern {
    pub level: ReadLevel,
    pub after_cluster_time: Option<Timestamp>,
    pub at_cluster_time: Option<Timestamp>,
    /// The timestamp of `afterOpTime`: an entry that the member must have.
    pub after_op_time: Option<Timestamp>,
    pub given: bool,
    /// The client named the level, and does not just wait for a time.
    pub level_given: bool,
}

impl ReadConcern {
    pub const LOCAL: ReadConcern = ReadConcern {
        level: ReadLevel::Local,
        after_cluster_time: None,
        at_cluster_time: None,
        after_op_time: None,
        given: false,
        level_given: false,
    };

    pub fn parse(doc: Doc<'_>) -> Result<ReadConcern> {
        let mut rc = ReadConcern { given: true, ..ReadConcern::LOCAL };
        for e in doc.iter() {
            match (e.name(), e.value()) {
                ("level", ValueRef::String(s)) => {
                    rc.level_given = true;
                    rc.level = match s {
                        "local" => ReadLevel::Local,
                        "available" => ReadLevel::Available,
                        "majority" => ReadLevel::Majority,
                        "linearizable" => ReadLevel::Linearizable,
                        "snapshot" => ReadLevel::Snapshot,
                        other => bail!(
                            BAD_VALUE,
                            "Enumeration value '{other}' for field 'readConcern.level' is not a valid value."
                        ),
                    }
                }
                ("level", ValueRef::Null) => {}
                ("level", v) => return Err(wrong_type("readConcern.level", v, "string")),
                ("afterClusterTime", ValueRef::Timestamp(t)) => rc.after_cluster_time = Some(t),
                ("atClusterTime", ValueRef::Timestamp(t)) => rc.at_cluster_time = Some(t),
                (name @ ("afterClusterTime" | "atClusterTime"), v) => {
                    return Err(wrong_type(&format!("readConcern.{name}"), v, "timestamp"));
                }
                ("afterOpTime", ValueRef::Document(optime)) => rc.after_op_time = Some(time_of(optime)?),
                ("afterOpTime", v) => return Err(wrong_type("readConcern.afterOpTime", v, "object")),
                ("provenance", v) => check_provenance("readConcern", v)?,
                ("$gleStats", _) => {}
                (name, _) => bail!(IDL_UNKNOWN_FIELD, "BSON field 'readConcern.{name}' is an unknown field."),
            }
        }
        if rc.after_op_time.is_some() {
            rc.check_after_op_time()?;
        }
        if rc.after_cluster_time.is_some()
            && matches!(rc.level, ReadLevel::Available | ReadLevel::Linearizable)
        {
            bail!(
                INVALID_OPTIONS,
                "afterClusterTime field can be set only if level is equal to majority, local, or snapshot"
            );
        }
        if rc.after_cluster_time.is_some() && rc.at_cluster_time.is_some() {
            bail!(INVALID_OPTIONS, "Can not specify both afterClusterTime and atClusterTime");
        }
        if rc.at_cluster_time.is_some_and(|at| at.secs == 0 && at.inc <= 1) {
            bail!(INVALID_OPTIONS, "atClusterTime cannot be a null timestamp");
        }
        if rc.at_cluster_time.is_some() && rc.level != ReadLevel::Snapshot {
            bail!(INVALID_OPTIONS, "atClusterTime field can be set only if level is equal to snapshot");
        }
        Ok(rc)
    }

    fn check_after_op_time(&self) -> Result<()> {
        if self.after_cluster_time.is_some() {
            bail!(INVALID_OPTIONS, "Can not specify both afterClusterTime and afterOpTime");
        }
        match self.level {
            ReadLevel::Linearizable => {
                bail!(FAILED_TO_PARSE, "afterOpTime not compatible with linearizable read concern")
            }
            ReadLevel::Snapshot => {
                bail!(INVALID_OPTIONS, "afterOpTime field cannot be set if level is equal to snapshot")
            }
            _ => Ok(()),
        }
    }
}

/// The timestamp of an optime `{ts, t}`.
fn time_of(optime: Doc<'_>) -> Result<Timestamp> {
    match optime.get("ts") {
        Some(ValueRef::Timestamp(ts)) => Ok(ts),
        Some(v) => Err(wrong_type("readConcern.afterOpTime.ts", v, "timestamp")),
        None => bail!(NO_SUCH_KEY, "Missing expected field \"ts\""),
    }
}

/// Who is asking: one for each connection.
#[derive(Debug, Default)]
pub struct ClientInfo {
    pub connection_id: i64,
    pub remote: String,
    /// It came in through a load balancer: what it began here ends with its connection.
    pub balanced: bool,
    pub app_name: Mutex<Option<String>>,
    pub metadata: Mutex<Option<Document>>,
    /// Another node of the cluster: it said so in its handshake and, where there is a key, proved it.
    pub internal: std::sync::atomic::AtomicBool,
    /// The versions of the API that it has been counted with, as bits.
    pub api_versions: std::sync::atomic::AtomicU8,
    /// It speaks as nodes do, and is told what nodes tell each other. Nothing is allowed to it for that.
    pub peer: std::sync::atomic::AtomicBool,
    /// The user that has logged in.
    pub user: arc_swap::ArcSwapOption<crate::auth::User>,
}

impl ClientInfo {
    /// Adds to a row of `$currentOp` whose it is.
    pub fn describe(&self, row: &mut Document) {
        row.push("connectionId", self.connection_id);
        row.push("client", self.remote.as_str());
        if let Some(app) = &*self.app_name.lock() {
            row.push("appName", app.as_str());
        }
        if let Some(metadata) = &*self.metadata.lock() {
            row.push("clientMetadata", metadata.clone());
        }
    }
    pub fn user(&self) -> Option<Arc<crate::auth::User>> {
        self.user.load_full()
    }
    pub fn set_user(&self, user: Option<Arc<crate::auth::User>>) {
        self.user.store(user);
    }
}

/// The versions a router attached to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Received {
    pub shard: Option<ShardVersion>,
    pub database: Option<DatabaseVersion>,
}

/// One command under way.
#[derive(Debug)]
pub struct Operation {
    /// The opid of currentOp.
    pub id: i64,
    pub started: Instant,
    pub deadline: Option<Instant>,
    pub client: Arc<ClientInfo>,
    pub session: Option<SessionFields>,
    pub api: ApiParameters,
    pub write_concern: WriteConcern,
    pub read_concern: ReadConcern,
    pub received: Received,
    /// `$clusterTime.clusterTime` of the request.
    pub cluster_time: Option<Timestamp>,
    /// The newest time of the config server that the sender has heard of.
    pub config_time: Option<Timestamp>,
    /// What it changes in the catalog is part of something that change streams see elsewhere.
    pub from_migrate: bool,
    /// The router puts what an update gives another shard's key where it belongs: the shard only removes it.
    pub may_move_document: bool,
    /// Whoever asks may write while the writes of users are blocked; and whether the block concerns the operation.
    may_bypass_write_blocking: AtomicBool,
    subject_to_block: AtomicBool,
    /// Position and time of the last entry that this operation appended; 0 before the first.
    committed_position: AtomicU64,
    committed_ts: AtomicU64,
    committed_term: AtomicI64,
    /// The newest time that other nodes answered to a router for this operation; 0 before the first.
    heard_ts: AtomicU64,
    /// 0 while alive, else the error code the operation ends with.
    killed: AtomicI32,
    kill_notify: Notify,
    /// The operation on whose behalf this one runs: what ends that one ends this one.
    pub parent: Option<Arc<Operation>>,
    /// A fail point wants the connection closed instead of a reply.
    connection_lost: AtomicBool,
    /// How many reigns of the node had ended when it began to write; `UNKNOWN` before.
    reign: AtomicU64,
    /// The edition of the node's past in which it began to read; `UNKNOWN` before.
    read_edition: AtomicU64,
    /// The transaction that it is a statement of.
    transaction: std::sync::OnceLock<Arc<crate::transaction::Transaction>>,
    /// The fail point at which the operation waits.
    paused_at: Mutex<Option<String>>,
    /// What it is doing, in the words of currentOp's `msg`, and its `progress`.
    progress: Mutex<Option<Progress>>,
    /// It waits until flow control admits it.
    waits_for_ticket: AtomicBool,
    waits_for_lock: AtomicBool,
    /// Units of work in slices, as [`document::meter`] counts them.
    work: AtomicI64,
    /// What its queries have examined, and by which plan, for the profiler.
    spilled: OnceLock<Arc<Spills>>,
    examined_keys: AtomicU64,
    examined_docs: AtomicU64,
    plan: Mutex<Option<String>>,
    /// The indexes that the settings of the query allow.
    pub allowed_indexes: std::sync::OnceLock<Vec<document::Value>>,
    /// The hashes of the plan shape and of the plan cache key.
    hashes: Mutex<Option<(String, String)>>,
    /// The rest of what the profiler is told.
    profiler_notes: OnceLock<Box<Notes>>,
    /// What its commits ask and may not find out under a latch.
    pub(crate) ahead: Ahead,
    /// What the log is to say of documents that validators do not accept.
    validation_failures: OnceLock<Mutex<Vec<Document>>>,
}

const UNKNOWN: u64 = u64::MAX;

/// A timer. Boxed: it is aligned to cache lines, and so would be every future that holds it, for which allocators have no
/// fast way.
pub fn until(at: Instant) -> std::pin::Pin<Box<tokio::time::Sleep>> {
    Box::pin(tokio::time::sleep_until(at))
}

/// The arguments that name the session, the transaction and the statements a command belongs to, while they are read.
#[derive(Default)]
struct SessionArguments {
    lsid: Option<SessionId>,
    txn_number: Option<i64>,
    autocommit: Option<bool>,
    start_transaction: bool,
    stmt_ids: Vec<i32>,
}

impl SessionArguments {
    fn set_lsid(&mut self, v: ValueRef<'_>) -> Result<()> {
        self.lsid = Some(SessionId::parse(object("OperationSessionInfo.lsid", v)?)?);
        Ok(())
    }
    fn set_txn_number(&mut self, v: ValueRef<'_>) -> Result<()> {
        match v {
            ValueRef::Int64(n) if n >= 0 => self.txn_number = Some(n),
            ValueRef::Int64(_) => bail!(INVALID_OPTIONS, "Transaction number cannot be negative"),
            v => return Err(wrong_type("OperationSessionInfo.txnNumber", v, "long")),
        }
        Ok(())
    }
    /// `autocommit` is only ever false, `startTransaction` only ever true.
    fn set_flag(&mut self, name: &str, v: ValueRef<'_>) -> Result<()> {
        match (name, v) {
            ("autocommit", ValueRef::Boolean(false)) => self.autocommit = Some(false),
            ("startTransaction", ValueRef::Boolean(true)) => self.start_transaction = true,
            (_, ValueRef::Boolean(given)) => {
                bail!(INVALID_OPTIONS, "Specifying {name}={given} is not allowed.")
            }
            (_, v) => return Err(wrong_type(&format!("OperationSessionInfo.{name}"), v, "bool")),
        }
        Ok(())
    }
    fn add_statement(&mut self, v: ValueRef<'_>) {
        self.stmt_ids.extend(v.as_i64().and_then(|n| i32::try_from(n).ok()));
    }
    /// What was read, where it goes together.
    fn finish(self) -> Result<Option<SessionFields>> {
        let SessionArguments { lsid, txn_number, autocommit, start_transaction, stmt_ids } = self;
        if autocommit.is_some() && txn_number.is_none() {
            bail!(INVALID_OPTIONS, "'autocommit' field requires a transaction number to also be specified");
        }
        if start_transaction && autocommit.is_none() {
            bail!(
                INVALID_OPTIONS,
                "'startTransaction' field requires 'autocommit' field to also be specified"
            );
        }
        match lsid {
            Some(lsid) => {
                Ok(Some(SessionFields { lsid, txn_number, autocommit, start_transaction, stmt_ids }))
            }
            None if txn_number.is_some() => {
                bail!(INVALID_OPTIONS, "Transaction number requires a session ID to also be specified")
            }
            None => Ok(None),
        }
    }
}

fn wrong_type(field: &str, v: ValueRef<'_>, expected: &str) -> Error {
    document::wrong_type(field, v.type_name(), expected)
}

fn object<'a>(field: &str, v: ValueRef<'a>) -> Result<Doc<'a>> {
    v.as_document().ok_or_else(|| wrong_type(field, v, "object"))
}

/// The time in a `$clusterTime`.
fn cluster_time(d: Doc<'_>) -> Result<Option<Timestamp>> {
    match d.get("clusterTime") {
        None => Ok(None),
        Some(ValueRef::Timestamp(time)) => Ok(Some(time)),
        Some(v) => bail!(
            TYPE_MISMATCH,
            "\"clusterTime\" had the wrong type. Expected timestamp, found {}",
            v.type_name()
        ),
    }
}

impl Operation {
    /// An operation of the node's own, without deadline, session or versions.
    pub fn internal() -> Operation {
        Operation::new(0, Arc::new(ClientInfo::default()))
    }

    /// The same, whose catalog changes are marked as a migration's when `from_migrate` says so.
    pub fn internal_marked(from_migrate: bool) -> Operation {
        Operation { from_migrate, ..Operation::internal() }
    }

    /// See [`crate::user_writes`].
    pub fn may_bypass_write_blocking(&self) -> bool {
        self.may_bypass_write_blocking.load(Ordering::Relaxed)
    }
    pub fn set_may_bypass_write_blocking(&self, may: bool) {
        self.may_bypass_write_blocking.store(may, Ordering::Relaxed);
    }
    /// It writes on behalf of a user.
    pub fn note_subject_to_block(&self) {
        self.subject_to_block.store(true, Ordering::Relaxed);
    }
    pub fn is_subject_to_block(&self) -> bool {
        self.subject_to_block.load(Ordering::Relaxed)
    }

    /// Notes the time of what stands behind a router's reply.
    pub fn note_time(&self, time: Timestamp) {
        self.heard_ts.fetch_max(time.as_u64(), Ordering::Relaxed);
    }
    pub fn heard_time(&self) -> Option<Timestamp> {
        Some(self.heard_ts.load(Ordering::Relaxed)).filter(|t| *t != 0).map(Timestamp::from_u64)
    }

    /// Adds work to that of earlier slices; the units of all.
    pub(crate) fn note_work(&self, units: i64) -> i64 {
        self.work.fetch_add(units, Ordering::Relaxed) + units
    }

    fn new(id: i64, client: Arc<ClientInfo>) -> Operation {
        Operation {
            id,
            started: Instant::now(),
            deadline: None,
            client,
            session: None,
            api: ApiParameters::default(),
            write_concern: WriteConcern::acknowledged(),
            read_concern: ReadConcern::LOCAL,
            received: Received::default(),
            cluster_time: None,
            config_time: None,
            from_migrate: false,
            may_move_document: false,
            may_bypass_write_blocking: AtomicBool::new(false),
            subject_to_block: AtomicBool::new(false),
            committed_position: AtomicU64::new(0),
            reign: AtomicU64::new(UNKNOWN),
            read_edition: AtomicU64::new(UNKNOWN),
            committed_ts: AtomicU64::new(0),
            committed_term: AtomicI64::new(-1),
            heard_ts: AtomicU64::new(0),
            killed: AtomicI32::new(0),
            kill_notify: Notify::new(),
            parent: None,
            connection_lost: AtomicBool::new(false),
            transaction: std::sync::OnceLock::new(),
            paused_at: Mutex::new(None),
            progress: Mutex::new(None),
            waits_for_ticket: AtomicBool::new(false),
            waits_for_lock: AtomicBool::new(false),
            work: AtomicI64::new(0),
            spilled: OnceLock::new(),
            examined_keys: AtomicU64::new(0),
            examined_docs: AtomicU64::new(0),
            plan: Mutex::new(None),
            hashes: Mutex::new(None),
            profiler_notes: OnceLock::new(),
            ahead: Ahead::default(),
            validation_failures: OnceLock::new(),
            allowed_indexes: std::sync::OnceLock::new(),
        }
    }

    /// Reads the generic arguments out of a command's body, in one pass.
    pub fn parse(id: i64, client: Arc<ClientInfo>, body: Doc<'_>) -> Result<Operation> {
        let mut op = Operation::new(id, client);
        let mut session = SessionArguments::default();
        for e in body.iter() {
            let name = e.name_bytes();
            // Every generic argument begins with one of these; most of a command's own fields do not.
            if !matches!(name.first(), Some(b'$' | b'a' | b'd' | b'l' | b'm' | b'r' | b's' | b't' | b'w')) {
                continue;
            }
            match (name, e.value()) {
                (_, ValueRef::Null) => {}
                (b"maxTimeMS" | b"maxTimeMSOpOnly", v) => op.set_max_time(v)?,
                (b"lsid", v) => session.set_lsid(v)?,
                (b"txnNumber", v) => session.set_txn_number(v)?,
                (b"autocommit" | b"startTransaction", v) => session.set_flag(e.name(), v)?,
                (b"apiVersion" | b"apiStrict" | b"apiDeprecationErrors", v) => op.api.set(name, v),
                (b"stmtId", v) => session.add_statement(v),
                (b"stmtIds", ValueRef::Array(a)) => a.iter().for_each(|e| session.add_statement(e.value())),
                (b"writeConcern", v) => op.write_concern = WriteConcern::parse(object(e.name(), v)?)?,
                (b"readConcern", v) => op.read_concern = ReadConcern::parse(object(e.name(), v)?)?,
                (b"shardVersion", v) => {
                    let d = object(e.name(), v)?;
                    let version = ShardVersion::parse(d);
                    op.received.shard =
                        Some(version.ok_or_else(|| err!(FAILED_TO_PARSE, "bad shardVersion: {d:?}"))?);
                }
                (b"databaseVersion", v) => {
                    let d = object(e.name(), v)?;
                    let version = DatabaseVersion::parse(d);
                    op.received.database =
                        Some(version.ok_or_else(|| err!(FAILED_TO_PARSE, "bad databaseVersion: {d:?}"))?);
                }
                (b"mayBypassWriteBlocking", v) => op.set_may_bypass_write_blocking(v.truthy()),
                (b"mayMoveDocument", v) => op.may_move_document = v.truthy(),
                (b"$clusterTime", ValueRef::Document(d)) => op.cluster_time = cluster_time(d)?,
                (b"$configTime", ValueRef::Timestamp(t)) => op.config_time = Some(t),
                _ => {}
            }
        }
        op.session = session.finish()?;
        Ok(op)
    }

    fn set_max_time(&mut self, v: ValueRef<'_>) -> Result<()> {
        if !v.is_number() {
            return Err(document::wrong_types("maxTimeMS", v.type_name(), "[long, int, decimal, double]"));
        }
        let ms = match document::number::to_i64_exact(&v.to_value()) {
            Some(ms) => ms,
            None => bail!(FAILED_TO_PARSE, "maxTimeMS has non-integral value"),
        };
        if !(0..=i32::MAX as i64).contains(&ms) {
            bail!(BAD_VALUE, "{ms} value for maxTimeMS is out of range [0, 2147483647]");
        }
        if ms > 0 {
            self.deadline = self.started.checked_add(Duration::from_millis(ms as u64));
        }
        Ok(())
    }

    /// Notes that it writes in the reign after so many have ended: what it has written, or found done, is acknowledged in that one alone.
    pub fn note_reign(&self, ended: u64) {
        let _ = self.reign.compare_exchange(UNKNOWN, ended, Ordering::SeqCst, Ordering::SeqCst);
    }
    /// How many reigns had ended when it began to write; `None` for one that does not write.
    pub(crate) fn reign(&self) -> Option<u64> {
        Some(self.reign.load(Ordering::SeqCst)).filter(|n| *n != UNKNOWN)
    }
    /// Remembers what the operation's commits appended: what its acknowledgement has to wait for.
    pub(crate) fn note_commit(&self, appended: &storage::log::Appended) {
        self.committed_position.fetch_max(appended.position, Ordering::SeqCst);
        self.committed_ts.fetch_max(appended.last.ts, Ordering::SeqCst);
        self.committed_term.store(appended.last.term, Ordering::SeqCst);
    }
    /// Has the acknowledgement wait for this position too.
    pub fn note_position(&self, position: u64) {
        self.committed_position.fetch_max(position, Ordering::SeqCst);
    }
    /// The transaction that it is a statement of; `None` outside.
    pub fn transaction(&self) -> Option<&Arc<crate::transaction::Transaction>> {
        self.transaction.get()
    }
    /// Whether it is part of a statement that a server executes as a transaction of its own.
    pub(crate) fn is_part_of_statement(&self) -> bool {
        self.transaction().is_some() && self.session.as_ref().is_some_and(|s| s.lsid.child.is_some())
    }
    /// Notes in which edition of the node's past it begins to read.
    pub(crate) fn begin_reading(&self, edition: u64) {
        self.read_edition.store(edition, Ordering::Relaxed);
    }
    /// Whether what it has read may since have been taken back.
    pub(crate) fn read_before(&self, edition: u64) -> bool {
        let began = self.read_edition.load(Ordering::Relaxed);
        began != UNKNOWN && began != edition
    }
    /// Makes it a statement of a transaction, once and for all.
    pub(crate) fn join(&self, transaction: Arc<crate::transaction::Transaction>) {
        let _ = self.transaction.set(transaction);
    }
    /// The number of its transaction; `None` outside.
    pub fn transaction_number(&self) -> Option<i64> {
        self.transaction().filter(|t| !t.only_reads()).map(|t| t.number)
    }
    /// Log position behind the operation's last entry; `None` when it wrote nothing.
    pub fn committed_position(&self) -> Option<u64> {
        Some(self.committed_position.load(Ordering::SeqCst)).filter(|p| *p != 0)
    }
    /// Timestamp value of the operation's last entry; `None` when it wrote nothing.
    pub fn committed_ts(&self) -> Option<u64> {
        Some(self.committed_ts.load(Ordering::SeqCst)).filter(|p| *p != 0)
    }

    /// Optime of the operation's last entry; `None` when it wrote nothing.
    pub fn committed_optime(&self) -> Option<storage::log::OpTime> {
        let term = self.committed_term.load(Ordering::SeqCst);
        self.committed_ts().map(|ts| storage::log::OpTime { ts, term })
    }

    pub fn kill(&self, code: i32) {
        let _ = self.killed.compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst);
        self.kill_notify.notify_waiters();
    }
    /// Asks for the connection to be closed once the command has run, without a reply.
    /// What errors call it.
    pub(crate) fn name(&self) -> String {
        format!("operation {}", self.id)
    }
    pub fn lose_connection(&self) {
        self.connection_lost.store(true, Ordering::SeqCst);
    }
    pub fn is_connection_lost(&self) -> bool {
        self.connection_lost.load(Ordering::SeqCst)
    }
    /// What is left of its time, if that is limited.
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|at| at.saturating_duration_since(Instant::now()))
    }
    /// What its stages are to note that write to files.
    pub(crate) fn spills(&self) -> Arc<Spills> {
        self.spilled.get_or_init(Arc::default).clone()
    }
    /// What its stages have written to files, if they could have.
    pub fn spilled(&self) -> Document {
        self.spilled.get().map(|spills| spills.report()).unwrap_or_default()
    }
    /// Adds to what the operation's queries have examined.
    pub fn note_examined(&self, keys: u64, docs: u64) {
        self.examined_keys.fetch_add(keys, Ordering::Relaxed);
        self.examined_docs.fetch_add(docs, Ordering::Relaxed);
    }
    /// Keys and documents.
    pub fn examined(&self) -> (u64, u64) {
        (self.examined_keys.load(Ordering::Relaxed), self.examined_docs.load(Ordering::Relaxed))
    }
    /// The first plan of the operation, if it was noted: `IXSCAN { a: 1 }`.
    pub fn plan_summary(&self) -> Option<String> {
        self.plan.lock().clone()
    }
    /// Notes what the log is to say of a document, once no latch is held: `{namespace, document, errInfo}`.
    pub(crate) fn note_validation_failure(&self, failure: Document) {
        self.validation_failures.get_or_init(Mutex::default).lock().push(failure);
    }
    /// What was noted so; none of it is left.
    pub(crate) fn take_validation_failures(&self) -> Vec<Document> {
        self.validation_failures.get().map(|noted| std::mem::take(&mut *noted.lock())).unwrap_or_default()
    }
    /// Made by whoever notes something first: ask whether anything is profiled before.
    pub fn profiler_notes(&self) -> &Notes {
        self.profiler_notes.get_or_init(Box::default)
    }
    /// The notes, if there are some.
    pub fn noted(&self) -> Option<&Notes> {
        self.profiler_notes.get().map(|notes| &**notes)
    }
    /// The hashes of the query's plan shape and plan cache key, noted as the summary is.
    pub fn plan_hashes(&self) -> Option<(String, String)> {
        self.hashes.lock().clone()
    }
    pub fn note_hashes(&self, shape: String, key: String) {
        self.hashes.lock().get_or_insert((shape, key));
    }
    pub fn note_plan(&self, summary: String) {
        self.plan.lock().get_or_insert(summary);
    }
    /// The fail point at which the operation waits now; currentOp shows it as `failpointMsg`.
    pub fn paused_at(&self) -> Option<String> {
        self.paused_at.lock().clone()
    }
    pub(crate) fn set_paused_at(&self, name: Option<&str>) {
        *self.paused_at.lock() = name.map(str::to_string);
    }
    /// What a long operation is doing now: text, and `{done, total}` where that is counted.
    pub fn progress(&self) -> Option<Progress> {
        self.progress.lock().clone()
    }
    pub(crate) fn show_progress(&self, progress: Option<Progress>) {
        *self.progress.lock() = progress;
    }
    /// Whether it waits for others to let go of a lock.
    pub fn waits_for_lock(&self) -> bool {
        self.waits_for_lock.load(Ordering::Relaxed)
    }
    pub fn waits_for_ticket(&self) -> bool {
        self.waits_for_ticket.load(Ordering::Relaxed)
    }
    pub fn set_waits_for_ticket(&self, waits: bool) {
        self.waits_for_ticket.store(waits, Ordering::Relaxed);
    }
    pub fn kill_pending(&self) -> bool {
        self.killed.load(Ordering::Relaxed) != 0
    }

    /// Fails when the operation was killed or its time is up. Asked between batches.
    pub fn check_interrupt(&self) -> Result<()> {
        match self.killed.load(Ordering::Relaxed) {
            0 => {}
            codes::MAX_TIME_MS_EXPIRED => bail!(MAX_TIME_MS_EXPIRED, "operation exceeded time limit"),
            codes::INTERRUPTED_AT_SHUTDOWN => bail!(INTERRUPTED_AT_SHUTDOWN, "interrupted at shutdown"),
            codes::CURSOR_KILLED => bail!(CURSOR_KILLED, "cursor was killed"),
            codes::CLIENT_DISCONNECT => {
                bail!(CLIENT_DISCONNECT, "operation was interrupted because a client disconnected")
            }
            code => return Err(document::Error::new(code, "operation was interrupted")),
        }
        match self.deadline {
            Some(d) if Instant::now() >= d => bail!(MAX_TIME_MS_EXPIRED, "operation exceeded time limit"),
            _ => self.parent.as_ref().map_or(Ok(()), |p| p.check_interrupt()),
        }
    }

    /// Awaits `future`, or fails when the operation is killed or its time is up first.
    pub async fn interruptible<F: Future>(&self, future: F) -> Result<F::Output> {
        let killed = self.kill_notify.notified();
        tokio::pin!(killed, future);
        killed.as_mut().enable();
        self.check_interrupt()?;
        match self.deadline.map(until) {
            Some(deadline) => tokio::select! {
                out = future => Ok(out),
                _ = killed => self.check_interrupt().and_then(|_| Err(err!(INTERRUPTED, "operation was interrupted"))),
                _ = deadline => Err(err!(MAX_TIME_MS_EXPIRED, "operation exceeded time limit")),
            },
            None => tokio::select! {
                out = future => Ok(out),
                _ = killed => self.check_interrupt().and_then(|_| Err(err!(INTERRUPTED, "operation was interrupted"))),
            },
        }
    }

    /// As [`Operation::interruptible`], for what ends when others let go of a lock: currentOp shows that the operation waits for one.
    ///
    /// # Errors
    /// Those of an operation that is to end.
    pub(crate) async fn locking<F: Future>(&self, lock: F) -> Result<F::Output> {
        struct Waits<'a>(&'a AtomicBool);
        impl Drop for Waits<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Relaxed);
            }
        }
        self.waits_for_lock.store(true, Ordering::Relaxed);
        let _waits = Waits(&self.waits_for_lock);
        self.interruptible(lock).await
    }

    /// Whether this command carries a session and a transaction number: a retryable write, or part of a transaction.
    pub fn has_txn_number(&self) -> bool {
        self.session.as_ref().is_some_and(|s| s.txn_number.is_some())
    }
    /// Whether this command is a statement of its client's transaction.
    pub fn is_in_transaction(&self) -> bool {
        self.session.as_ref().is_some_and(|s| s.autocommit.is_some())
    }
    /// Whether this command carries a session and a transaction number, and is no part of a transaction.
    pub fn is_retryable_write(&self) -> bool {
        self.session.as_ref().is_some_and(|s| s.txn_number.is_some() && s.autocommit.is_none())
    }
}
