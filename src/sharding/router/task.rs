//! One client command under way on the router, and what it does when the router turns out to know old placements.

use super::body::{Placement, Versions, forward, is_time, own};
use super::cluster::{CONFIG, Call, database_of, unsent};
use super::transaction::Transaction;
use super::{Answer, Router};
use crate::chunk::ShardId;
use crate::messages::Message;
use crate::messages::ddl::CreateDatabase;
use document::error::{NETWORK, NOT_PRIMARY, STALE_DB_VERSION, STALE_SHARD_VERSION};
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Timestamp, codes, doc, err};
use node::{Operation, Request};
use protocol::selection::ReadPreference;
use query::ParseContext;
use query::script::Scripts;
use runtime::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use wire::client::{CallResult, RemoteError};

/// How often a command is targeted anew at least before its stale error goes to the client.
pub const ATTEMPTS_MAX: usize = 10;
/// And how long, where placement is what keeps changing: a busy machine makes ten attempts in the time of one migration.
const STALE_LIMIT: Duration = Duration::from_secs(10);
/// How often a command that may be repeated is sent when its connection breaks.
const NETWORK_ATTEMPTS_MAX: usize = 3;
/// How often a change of metadata is sent whose executor leads no more: it may begin at the old primary, and go on with the next two.
const CHANGE_ATTEMPTS_MAX: usize = 4;

/// A client's command: what it asked, and what was heard for it.
pub struct Task<'a> {
    pub router: &'a Router,
    pub op: &'a Operation,
    pub request: Request<'a>,
    operation_time: AtomicU64,
    now_ms: OnceLock<i64>,
    preference: OnceLock<ReadPreference>,
    /// The transaction that the command is a statement of.
    transaction: Option<Arc<Transaction>>,
    /// The time at which it reads, outside transactions.
    read_at: OnceLock<Timestamp>,
}

impl<'a> Task<'a> {
    pub fn new(router: &'a Router, op: &'a Operation, request: Request<'a>) -> Task<'a> {
        if let Some(time) = op.cluster_time {
            router.advance(time);
        }
        let transaction = router.transactions.find(op);
        let read_at = super::snapshot::time_of(request.body).filter(|_| transaction.is_none());
        Task {
            router,
            op,
            request,
            operation_time: AtomicU64::new(0),
            now_ms: OnceLock::new(),
            preference: OnceLock::new(),
            transaction,
            read_at: read_at.map(OnceLock::from).unwrap_or_default(),
        }
    }
    /// Has the command read at one time on all shards.
    pub fn set_read_at(&self, time: Timestamp) {
        let _ = self.read_at.set(time);
    }
    /// The time at which it reads on all shards, if it reads at one.
    pub fn read_at(&self) -> Option<Timestamp> {
        self.read_at.get().copied()
    }
    /// The same command as a statement of a transaction of the router's own.
    pub fn within(&self, transaction: Arc<Transaction>) -> Task<'a> {
        let now_ms = OnceLock::from(self.now_ms());
        Task { now_ms, transaction: Some(transaction), ..Task::new(self.router, self.op, self.request) }
    }
    /// Whether it is a statement of a transaction, a client's or the router's own.
    pub fn in_transaction(&self) -> bool {
        self.transaction.is_some()
    }
    /// `$$NOW` of the whole command: given with it, or the moment it is first asked for.
    pub fn now_ms(&self) -> i64 {
        *self.now_ms.get_or_init(|| {
            let constants = self.body().get_document("runtimeConstants");
            match constants.and_then(|d| d.get("localNow")) {
                Some(document::ValueRef::DateTime(now)) => now,
                _ => now_ms(),
            }
        })
    }
    /// The reply with the time of what stands behind it.
    pub fn finish(&self, body: DocBuf) -> Answer {
        Answer { body, operation_time: self.operation_time() }
    }
    /// `operationTime` of the reply, once a shard has said one.
    pub fn operation_time(&self) -> Option<Timestamp> {
        Some(self.operation_time.load(Ordering::Relaxed)).filter(|t| *t != 0).map(Timestamp::from_u64)
    }
    pub fn body(&self) -> Doc<'a> {
        self.request.body
    }
    pub fn db(&self) -> &'a str {
        self.request.db
    }

    /// The client's command for a shard: see [`forward`].
    pub fn forward(
        &self,
        without: &[&str],
        versions: &Versions,
        more: impl FnOnce(&mut DocWriter<'_>),
    ) -> DocBuf {
        self.forward_as(self.body(), without, versions, more)
    }
    /// The same with another command in place of the client's.
    pub fn forward_as(
        &self,
        command: Doc<'_>,
        without: &[&str],
        versions: &Versions,
        more: impl FnOnce(&mut DocWriter<'_>),
    ) -> DocBuf {
        let bypass = self.op.may_bypass_write_blocking();
        forward(command, self.db(), without, self.router.clock(), versions, |w| {
            more(w);
            if bypass {
                w.bool("mayBypassWriteBlocking", true);
            }
        })
    }
    /// A command of the router's own making.
    pub fn own(&self, command: &Document, db: &str, versions: &Versions) -> DocBuf {
        if !self.op.may_bypass_write_blocking() {
            return own(command, db, self.router.clock(), versions);
        }
        let mut command = command.clone();
        command.push("mayBypassWriteBlocking", true);
        own(&command, db, self.router.clock(), versions)
    }

    /// Has its transaction, if it is a statement of one, end with it on every shard, because of `code`.
    pub fn fail_transaction(&self, code: i32) {
        if let Some(t) = &self.transaction {
            t.fail(code);
        }
    }
    /// What the command's reply says of its transaction.
    pub fn recovery_token(&self) -> Option<Document> {
        self.transaction.as_ref().map(|t| t.recovery_token())
    }

    /// Sends one command once, as a statement of the transaction if there is one. Refusals are errors that keep the whole reply.
    pub async fn call(&self, call: Call<'_>) -> CallResult<DocBuf> {
        let dressed = self.transaction.as_ref().and_then(|t| Some((t, t.dress(call.shard, call.body)?)));
        let shard = call.shard;
        let call = match &dressed {
            Some((_, body)) => Call { body: body.doc(), ..call },
            None => call,
        };
        let answer = self.op.interruptible(self.router.cluster.call(call)).await.map_err(unsent)?;
        if let Some((t, _)) = &dressed {
            t.hear(shard, &answer);
        }
        match &answer {
            Ok(reply) => self.hear(reply.doc()),
            Err(e) => {
                if let Some(reply) = &e.reply {
                    self.hear(reply.doc());
                }
            }
        }
        answer
    }
    /// Sends a command that may be sent again when its connection breaks.
    pub async fn read(&self, shard: &str, body: &DocBuf) -> Result<DocBuf> {
        self.read_call(Call::new(shard, body.doc())).await
    }
    /// As [`Task::read`], with all that can be said of a call.
    pub async fn read_call(&self, call: Call<'_>) -> Result<DocBuf> {
        let call = Call { preference: self.preference(), ..call };
        let mut attempt = 1;
        loop {
            match self.call(Call { ..call }).await {
                Err(e) if e.error.is(NETWORK | NOT_PRIMARY) && attempt < NETWORK_ATTEMPTS_MAX => {
                    self.op.check_interrupt()?;
                    pause(20 << attempt).await;
                    attempt += 1;
                }
                Err(e) => return Err(e.error),
                Ok(reply) => return Ok(reply),
            }
        }
    }
    /// Where the command's reads may go: its own preference where it only reads, outside transactions.
    fn preference(&self) -> &ReadPreference {
        self.preference.get_or_init(|| {
            let given = self.body().get_document("$readPreference");
            // The dispatcher has refused what cannot be read.
            let given = given.and_then(|given| ReadPreference::parse(given).ok());
            given.filter(|_| self.transaction.is_none() && self.only_reads()).unwrap_or_default()
        })
    }
    /// Whether the command changes nothing, so that it may be sent again.
    pub fn only_reads(&self) -> bool {
        const READS: &[&str] = &[
            "find",
            "count",
            "distinct",
            "explain",
            "dbStats",
            "dbstats",
            "collStats",
            "collstats",
            "dataSize",
            "datasize",
            "listCollections",
            "listIndexes",
            "listDatabases",
        ];
        match self.request.name() {
            "aggregate" => !super::cluster::ends_in_writing(self.body()),
            name => READS.contains(&name),
        }
    }
    /// Sends a command that changes something; again only where that cannot execute it twice.
    pub async fn write(&self, shard: &str, body: &DocBuf) -> Result<DocBuf> {
        self.write_call(Call::new(shard, body.doc())).await.map_err(|e| e.error)
    }
    /// As [`Task::write`], with all that is known of a failure. What certainly was not received is sent again, and what the
    /// shard recognises as a repetition: a retryable write.
    pub async fn write_call(&self, call: Call<'_>) -> CallResult<DocBuf> {
        let recognised = self.op.is_retryable_write() && self.transaction.is_none();
        let mut attempt = 1;
        loop {
            match self.call(Call { ..call }).await {
                Err(e)
                    if attempt < NETWORK_ATTEMPTS_MAX
                        && may_resend(&e, recognised)
                        && self.op.check_interrupt().is_ok() =>
                {
                    pause(20 << attempt).await;
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }
    /// Sends a change of metadata, which may be sent again: to the next primary where the one that had it leads no more.
    pub async fn change(&self, shard: &str, body: &DocBuf) -> Result<DocBuf> {
        let mut repeat = Repeat::default();
        loop {
            match self.write_call(Call::new(shard, body.doc())).await {
                Err(e) => repeat.absorb(self, e).await?,
                Ok(reply) => return Ok(reply),
            }
        }
    }
    /// A command of the router's own on the config server, majority-committed, on `admin`. It may be sent again.
    pub async fn config(&self, command: Document) -> Result<DocBuf> {
        self.change(CONFIG, &self.for_config(command)).await
    }
    /// The same for one that must not be executed twice.
    pub async fn config_once(&self, command: Document) -> Result<DocBuf> {
        self.write(CONFIG, &self.for_config(command)).await
    }
    fn for_config(&self, mut command: Document) -> DocBuf {
        if !command.contains_key("writeConcern") {
            command.push("writeConcern", doc! { "w": "majority" });
        }
        self.own(&command, "admin", &Versions::NONE)
    }

    /// Takes over the time of a task that ran for this one.
    pub fn hear_from(&self, inner: &Task<'_>) {
        self.operation_time.fetch_max(inner.operation_time.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    /// Takes the times out of a reply. One that is too far ahead is passed over, whoever has put it there.
    pub(super) fn hear(&self, reply: Doc<'_>) {
        for e in reply.iter().filter(|e| is_time(e.name_bytes())) {
            match e.name_bytes() {
                b"operationTime" => {
                    if let Some(t) = e.value().as_timestamp().filter(|t| self.router.is_credible(*t)) {
                        self.operation_time.fetch_max(t.as_u64(), Ordering::Relaxed);
                        self.router.advance(t);
                    }
                }
                b"$clusterTime" => {
                    let time = e.value().as_document().and_then(|d| d.get("clusterTime")?.as_timestamp());
                    if let Some(t) = time {
                        self.router.advance(t);
                    }
                }
                b"$configTime" => {
                    if let Some(t) = e.value().as_timestamp() {
                        self.router.cluster.hear_config_time(t);
                    }
                }
                b"$topologyTime" => {
                    let time = e.value().as_timestamp().filter(|t| self.router.is_credible(*t));
                    if time.is_some_and(|time| self.router.hear_topology(time)) {
                        let cluster = self.router.cluster.clone();
                        // What fails here is read with the regular refresh.
                        runtime::spawn(async move { drop(cluster.reload_shards().await) });
                    }
                }
                _ => {}
            }
        }
    }

    /// Where the namespace is; `None` when its database does not exist.
    pub async fn placement(&self, ns: &str) -> Result<Option<Placement>> {
        let placement = match self.router.cluster.cached(ns) {
            Some(known) => Some(known),
            None => self.op.interruptible(self.router.cluster.placement(ns)).await??,
        };
        match (placement, self.read_at()) {
            (Some(placement), Some(time)) => placement.at(time).map(Some),
            (placement, _) => Ok(placement),
        }
    }
    /// Where the namespace is; creates its database if need be.
    pub async fn placement_for_write(&self, ns: &str) -> Result<Placement> {
        for _ in 0..ATTEMPTS_MAX {
            if let Some(placement) = self.placement(ns).await? {
                return Ok(placement);
            }
            self.create_database(database_of(ns)).await?;
        }
        Err(err!(NAMESPACE_NOT_FOUND, "database {} vanishes as often as it is created", database_of(ns)))
    }
    /// Makes the database exist.
    pub async fn create_database(&self, db: &str) -> Result<()> {
        if db == "local" {
            return Err(err!(ILLEGAL_OPERATION, "Can't write to the 'local' database through a router"));
        }
        self.config(CreateDatabase { db: db.to_string(), primary: None }.to_document()).await?;
        self.router.cluster.forget(Some(db));
        Ok(())
    }

    /// What a parser of the command's queries may see of the outside.
    pub fn parse_context(&self) -> Result<ParseContext> {
        let now_ms = self.now_ms();
        let variables = query::command_let::evaluate(self.body(), now_ms)?;
        let cluster_time = self.router.cluster_time();
        let mut scripts = Scripts::new(self.router.scripting.get().cloned());
        scripts.map_reduce = self.get("isMapReduceCommand").is_some_and(|v| v.truthy());
        Ok(ParseContext {
            variables,
            now_ms,
            cluster_time,
            timeless: false,
            clockless: false,
            seed: runtime::random(),
            scripts,
        })
    }
    /// A field that is present and not null.
    pub fn get(&self, name: &str) -> Option<document::ValueRef<'a>> {
        self.body().get_present(name)
    }
    /// A document field; absent is empty.
    pub fn document_or_empty(&self, name: &str) -> Doc<'a> {
        self.get(name).and_then(|v| v.as_document()).unwrap_or(Doc::empty())
    }
    /// All shards by name.
    pub async fn all_shards(&self) -> Result<Vec<ShardId>> {
        Ok(self.router.cluster.shards().await?.into_iter().map(|(name, _)| name).collect())
    }
}

fn may_resend(e: &RemoteError, recognised: bool) -> bool {
    (e.not_sent && e.error.is(NETWORK)) || (recognised && e.error.is(NETWORK | NOT_PRIMARY))
}

/// Boxed, because a timer would align every future that holds it to cache lines.
fn pause(ms: u64) -> std::pin::Pin<Box<tokio::time::Sleep>> {
    Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    runtime::now_millis()
}

/// Counts the attempts of one command at targeting.
#[derive(Default)]
pub struct Retry {
    attempts: usize,
    since: Option<Instant>,
}

impl Retry {
    /// Returns when the command can be targeted anew after this error; gives it back when it is final.
    pub async fn absorb(&mut self, task: &Task<'_>, ns: &str, error: Error) -> Result<()> {
        if !is_stale(&error) || self.is_spent(&error) {
            return Err(error);
        }
        self.attempts += 1;
        task.router.cluster.note_stale(ns, &error);
        if error.code == codes::SHARD_NOT_FOUND {
            task.router.cluster.reload_shards().await?;
        }
        let told = error.info.as_ref().is_some_and(|info| info.contains_key("vWanted"));
        if self.attempts > 2 && !told {
            // The node knows nothing again: it may be no shard any more.
            let named = error.info.as_ref().and_then(|info| info.get_str("ns"));
            task.router.cluster.invalidate(named.unwrap_or(ns));
        }
        if self.attempts > 2 {
            // Who comes late finds the next migration: a shard that says what it has is asked again soon.
            let longest = if told { 4 } else { 8 };
            task.op.interruptible(pause(1 << self.attempts.min(longest))).await?;
        }
        task.op.check_interrupt()
    }
    fn is_spent(&mut self, error: &Error) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        let may_change = error.is(STALE_SHARD_VERSION | STALE_DB_VERSION);
        self.attempts + 1 >= ATTEMPTS_MAX && (!may_change || since.elapsed() >= STALE_LIMIT)
    }
    /// Progress was made: the attempts begin anew.
    pub fn reset(&mut self) {
        *self = Retry::default();
    }
}

/// Counts the attempts of one change at finding a member that executes it to its end.
#[derive(Default)]
pub struct Repeat {
    attempts: usize,
}

impl Repeat {
    /// Returns when the change can be sent again after this error; gives it back when it is final. An executor that has not reached others is
    /// there itself, and says how it has ended.
    pub async fn absorb(&mut self, task: &Task<'_>, failed: Box<RemoteError>) -> Result<()> {
        self.attempts += 1;
        let error = failed.error;
        let is_gone = error.is(NOT_PRIMARY) || (error.is(NETWORK) && failed.reply.is_none());
        if !is_gone || self.attempts >= CHANGE_ATTEMPTS_MAX || task.in_transaction() {
            return Err(error);
        }
        task.op.check_interrupt()?;
        task.op.interruptible(pause(20 << self.attempts)).await
    }
}

/// Whether the error says that the request went to the wrong place.
pub fn is_stale(error: &Error) -> bool {
    error.is(STALE_SHARD_VERSION | STALE_DB_VERSION)
        || matches!(
            error.code,
            codes::SHARD_NOT_FOUND
                // The config server has ceased to be a shard.
                | codes::SHARDING_STATE_NOT_INITIALIZED
                | codes::SHARD_CANNOT_REFRESH_DUE_TO_LOCKS_HELD
                | codes::CANNOT_IMPLICITLY_CREATE_COLLECTION
        )
}
