//! Talking to the other nodes of the cluster: by host, by shard name, or to the config server.
//!
//! A [`Transport`] carries one command to one host: over the wire in production, in memory in tests. [`Remote`] adds
//! names: it knows the shards' hosts ([`Registry`]) and the config server's, and lets a node answer for itself where
//! it is the one addressed.
//!
//! Invariant: nothing here retries a command that may have been executed. Who can repeat a step says so itself.

use crate::config_time::{self, ConfigTime};
use crate::routing::registry::{REFRESH_EVERY, Registry};
use crate::sets::{Sets, Silence, retry_until};
use document::error::NOT_PRIMARY;
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Timestamp, Value, bail, doc, err};
use futures::future::BoxFuture;
use node::Node;
use node::parameters::Parameters;
use protocol::selection::PRIMARY;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use wire::client::Pool;

/// How often a reading of metadata is begun whose executor leads no more, and how long after one another.
const FIND_ATTEMPTS_MAX: usize = 3;
const FIND_PAUSE: Duration = Duration::from_millis(50);
/// How long a reading of the catalog may take, with the wait for its time.
const CONFIG_FIND_MS_MAX: i64 = 30_000;

/// Carries a command to a host and brings the reply; a refusal (`ok: 0`) is an error with its code, labels and info.
pub trait Transport: Send + Sync + 'static {
    fn call<'a>(&'a self, host: &'a str, db: &'a str, command: DocBuf) -> BoxFuture<'a, Result<DocBuf>>;
    /// As [`Transport::call`]; an error comes with whether certainly nothing was sent.
    fn attempt<'a>(
        &'a self,
        host: &'a str,
        db: &'a str,
        command: DocBuf,
    ) -> BoxFuture<'a, std::result::Result<DocBuf, (Error, bool)>> {
        Box::pin(async move {
            let unsent = |e: Error| {
                let not_sent = e.code == document::codes::HOST_NOT_FOUND;
                (e, not_sent)
            };
            self.call(host, db, command).await.map_err(unsent)
        })
    }
}

impl Transport for Pool {
    fn call<'a>(&'a self, host: &'a str, db: &'a str, command: DocBuf) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(self.run(host, db, command))
    }
    fn attempt<'a>(
        &'a self,
        host: &'a str,
        db: &'a str,
        command: DocBuf,
    ) -> BoxFuture<'a, std::result::Result<DocBuf, (Error, bool)>> {
        Box::pin(async move {
            let options = wire::client::CallOptions::default();
            let done = self.run_full(host, db, &options, &[], command.doc()).await;
            done.map_err(|e| (e.error, e.not_sent))
        })
    }
}

/// A node that answers for itself: the config server for the name `config`, a shard for its own name.
pub trait LocalAnswer: Send + Sync + 'static {
    fn run<'a>(&'a self, db: &'a str, command: DocBuf) -> BoxFuture<'a, Result<DocBuf>>;
}

/// Whom a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// The config server (also a shard of the name `config`).
    Config,
    /// A shard by its name.
    Shard(&'a str),
    /// `host:port`, or `set/host:port,...`.
    Host(&'a str),
}

/// The cluster as one node reaches it.
pub struct Remote {
    transport: Arc<dyn Transport>,
    pub registry: Registry,
    local: OnceLock<(String, Arc<dyn LocalAnswer>)>,
    pub sets: Sets,
    pub config_time: ConfigTime,
    /// Whose clock is never behind what others have said.
    clock: OnceLock<(Weak<Node>, Arc<Parameters>)>,
    me: Weak<Remote>,
}

impl Remote {
    /// `config` is the config server's connection string; a shard learns it later ([`Registry::set_config`]).
    pub fn new(transport: Arc<dyn Transport>, config: Option<&str>) -> Arc<Remote> {
        Arc::new_cyclic(|me| Remote {
            sets: Sets::new(transport.clone()),
            transport,
            registry: Registry::new(config),
            local: OnceLock::new(),
            config_time: ConfigTime::default(),
            clock: OnceLock::new(),
            me: me.clone(),
        })
    }
    /// From now on this node answers commands for `name` (`config`, or its shard name) itself. Only the first call counts.
    pub fn answer_locally(&self, name: &str, node: Arc<dyn LocalAnswer>) {
        let _ = self.local.set((name.to_string(), node));
    }

    /// From now on the node's clock is ahead of every time that a reply brings. Only the first call counts.
    pub fn keep_time(&self, node: &Arc<Node>, parameters: &Arc<Parameters>) {
        let _ = self.clock.set((Arc::downgrade(node), parameters.clone()));
    }

    /// Runs a command; a refusal is an error.
    ///
    /// # Errors
    /// ShardNotFound (70) for a shard that the config server does not know either; network errors; the receiver's own.
    pub async fn run(&self, target: Target<'_>, db: &str, command: DocBuf) -> Result<DocBuf> {
        let name = match target {
            Target::Config => "config",
            Target::Shard(name) => name,
            Target::Host(host) => return self.run_on_host(host, db, command).await,
        };
        if let Some((_, node)) = self.local.get().filter(|(own, _)| own == name) {
            return node.run(db, command).await;
        }
        let host = self.connection_string(name).await?;
        self.run_on_host(&host, db, command).await
    }
    /// [`Remote::run`] with a command and a reply as trees, on `admin`.
    pub async fn admin(&self, target: Target<'_>, command: Document) -> Result<Document> {
        Ok(self.run(target, "admin", command.to_doc_buf()).await?.to_document())
    }

    /// Does `work`, which a set takes part in, as long as one of its members is heard of.
    ///
    /// # Errors
    /// Those of `work`; HostUnreachable (6) when the set has fallen silent, which may go on with the work all the same.
    pub async fn while_heard<T>(&self, connection: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        let done = self.sets.guarded(connection, Silence::OfAll, work).await;
        done.unwrap_or_else(|| Err(silent(connection)))
    }

    /// The connection string of a shard or of `config`.
    ///
    /// # Errors
    /// ShardNotFound (70), NotYetInitialized (94) before the config server is known.
    pub async fn connection_string(&self, name: &str) -> Result<String> {
        if name == "config" {
            let config = self.registry.config();
            return config.ok_or_else(|| err!(NOT_YET_INITIALIZED, "the config server is not known yet"));
        }
        if let Some(host) = self.registry.host(name) {
            return Ok(host);
        }
        // Boxed: reloading the registry asks the config server through `run`.
        Box::pin(self.registry.reload(self)).await?;
        self.registry.host(name).ok_or_else(|| err!(SHARD_NOT_FOUND, "Shard {name} not found"))
    }

    /// Runs a command on the primary of a connection string; goes on to another only where nothing was executed.
    async fn run_on_host(&self, connection: &str, db: &str, command: DocBuf) -> Result<DocBuf> {
        let until = retry_until();
        let command = self.with_times(command);
        loop {
            let host = self.sets.find(connection, &PRIMARY).await?;
            let attempt = self.transport.attempt(&host, db, command.clone());
            let answer = self.sets.guarded(connection, Silence::Of(&host), attempt).await;
            match answer.unwrap_or_else(|| Err((silent(&host), false))) {
                Ok(reply) => {
                    self.hear_time(reply.doc());
                    self.hear_topology(reply.doc().get("$topologyTime").and_then(|v| v.as_timestamp()));
                    self.hear_config_time(reply.doc().get(config_time::FIELD).and_then(|v| v.as_timestamp()));
                    return Ok(reply);
                }
                Err((error, not_sent)) => {
                    let again = self.sets.note_failure(connection, &host, &error, not_sent);
                    if !again || runtime::Instant::now() >= until {
                        return Err(error);
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
            }
        }
    }
    /// The command, and what this node knows of the cluster's and the config server's time: what the other does for it is later than
    /// all that this one has done or heard of.
    fn with_times(&self, command: DocBuf) -> DocBuf {
        let node = self.clock.get().and_then(|(node, _)| node.upgrade());
        let cluster = node.map(|node| node.cluster_time()).filter(|_| command.get("$clusterTime").is_none());
        let (cluster, config) = (cluster.unwrap_or_default(), self.config_time.get());
        if cluster == Timestamp::default() && config == Timestamp::default() {
            return command;
        }
        DocWriter::build(|w| {
            w.fields_of(command.doc());
            if config != Timestamp::default() {
                w.timestamp(config_time::FIELD, config);
            }
            write_cluster_time(w, cluster);
        })
    }
    /// Takes in the config server's time of a request or of a reply, unless it is too far ahead.
    pub fn hear_config_time(&self, time: Option<Timestamp>) {
        let Some(time) = time.filter(|time| *time > self.config_time.get()) else { return };
        let drift_max = self.clock.get().map_or(CLOCK_DRIFT_DEFAULT, |(_, p)| p.int(CLOCK_DRIFT_MAX));
        if !is_too_far_ahead(time, runtime::now_millis(), drift_max) {
            self.config_time.hear(time);
        }
    }
    /// What this node writes or decides after a reply is later than what the reply tells of: a range changes hands after the
    /// last write on either side.
    fn hear_time(&self, reply: Doc<'_>) {
        let time = reply.get_document("$clusterTime").and_then(|d| d.get("clusterTime")?.as_timestamp());
        let Some((time, (node, parameters))) = time.zip(self.clock.get()) else { return };
        let Some(node) = node.upgrade().filter(|node| time > node.cluster_time()) else { return };
        if !is_too_far_ahead(time, node.now_ms(), parameters.int(CLOCK_DRIFT_MAX)) {
            node.log.advance_clock(time.as_u64());
        }
    }
    /// Takes in the topology time of a reply: one that is newer than what is known here makes this node read the shards anew.
    pub fn hear_topology(&self, time: Option<Timestamp>) {
        if let Some(remote) = self.me.upgrade().filter(|_| time.is_some_and(|t| self.registry.is_behind(t))) {
            // A failure leaves it behind, and the next reply says so again.
            runtime::spawn(async move { drop(remote.registry.reload(&remote).await) });
        }
    }
    /// Reads the shards at once and then regularly, for as long as it is polled.
    pub async fn keep_registry(&self) {
        let mut tick = tokio::time::interval(REFRESH_EVERY);
        loop {
            tick.tick().await;
            if self.registry.config().is_some() {
                drop(self.registry.reload(self).await);
            }
        }
    }

    /// Every document that a `find` answers, batch by batch; from the next primary where one leads no more.
    ///
    /// # Errors
    /// The receiver's, FailedToParse (9) for a reply that is none of a cursor.
    pub async fn find(
        &self,
        target: Target<'_>,
        db: &str,
        collection: &str,
        filter: Document,
        more: Document,
    ) -> Result<Vec<Document>> {
        let mut command = doc! { "find": collection, "filter": filter };
        command.0.extend(more.0);
        let command = command.to_doc_buf();
        let mut attempts = 1;
        loop {
            match self.find_once(target, db, collection, command.clone()).await {
                // One that led and is cut off from its set does not come to know of a later time.
                Err(e) if is_of_another(&e) && attempts < FIND_ATTEMPTS_MAX => attempts += 1,
                found => return found,
            }
            tokio::time::sleep(FIND_PAUSE).await;
        }
    }
    async fn find_once(
        &self,
        target: Target<'_>,
        db: &str,
        collection: &str,
        command: DocBuf,
    ) -> Result<Vec<Document>> {
        let mut documents = Vec::new();
        let mut reply = self.run(target, db, command).await?;
        loop {
            let cursor = reply.doc().get_document("cursor");
            let Some(cursor) = cursor else { bail!(FAILED_TO_PARSE, "reply to find without a cursor") };
            let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
            let batch = batch.and_then(|v| v.as_array());
            documents.extend(
                batch
                    .into_iter()
                    .flat_map(|a| a.iter())
                    .filter_map(|e| e.value().as_document().map(|d| d.to_document())),
            );
            let id = cursor.get_i64("id").unwrap_or(0);
            if id == 0 {
                return Ok(documents);
            }
            let get_more = doc! { "getMore": Value::Int64(id), "collection": collection };
            reply = self.run(target, db, get_more.to_doc_buf()).await?;
        }
    }
    /// Documents of the config server's `config.<collection>`, majority-committed, and as of the newest time of the config server that this
    /// node has heard of.
    pub async fn find_config(
        &self,
        collection: &str,
        filter: Document,
        sort: Option<Document>,
    ) -> Result<Vec<Document>> {
        let more = sort.map_or(Document::new(), |sort| doc! { "sort": sort });
        self.find_catalog("config", collection, filter, more).await
    }
    /// Whether the config server's `config.<collection>` has such a document; otherwise as [`Remote::find_config`].
    pub async fn config_has(&self, collection: &str, filter: Document) -> Result<bool> {
        Ok(!self.find_catalog("config", collection, filter, doc! { "limit": 1 }).await?.is_empty())
    }
    /// As [`Remote::find_config`], in any database.
    pub async fn find_catalog(
        &self,
        db: &str,
        collection: &str,
        filter: Document,
        mut more: Document,
    ) -> Result<Vec<Document>> {
        more.push("readConcern", self.config_time.read_concern());
        more.push("maxTimeMS", CONFIG_FIND_MS_MAX);
        self.find(Target::Config, db, collection, filter, more).await
    }
}

/// Whether another member may have what this one could not say.
fn is_of_another(error: &Error) -> bool {
    error.is(NOT_PRIMARY) || error.code == document::codes::MAX_TIME_MS_EXPIRED
}

/// How many seconds a cluster time may be ahead of a node's own clock.
pub const CLOCK_DRIFT_MAX: &str = "maxAcceptableLogicalClockDriftSecs";
/// Where that is not said: a year.
pub const CLOCK_DRIFT_DEFAULT: i64 = 365 * 24 * 60 * 60;

/// `$clusterTime` of a message to another node, which believes it without a signature; nothing for no time.
pub(crate) fn write_cluster_time(w: &mut DocWriter<'_>, time: Timestamp) {
    if time == Timestamp::default() {
        return;
    }
    w.document_with("$clusterTime", |w| {
        w.timestamp("clusterTime", time);
        w.document_with("signature", |w| {
            w.binary("hash", 0, &[0; 20]);
            w.i64("keyId", 0);
        });
    });
}

/// Whether a time, of a request or of a reply, must not become the node's own. Beyond [`CLOCK_DRIFT_MAX`] one bad message would push every
/// node's clock to where it cannot rise any further.
pub fn is_too_far_ahead(time: Timestamp, now_ms: i64, drift_max_secs: i64) -> bool {
    i64::from(time.secs) > (now_ms / 1000).saturating_add(drift_max_secs)
}

/// `host:port` of each member of a connection string, which may begin with a set's name.
pub fn hosts(connection: &str) -> impl Iterator<Item = &str> {
    let list = connection.split_once('/').map_or(connection, |(_, list)| list);
    list.split(',').map(str::trim).filter(|h| !h.is_empty())
}

/// The error of a call that was given up because the member did not answer other questions either.
pub(crate) fn silent(host: &str) -> Error {
    err!(HOST_UNREACHABLE, "{host} does not answer any more")
}

/// `{w: "majority"}`, which every request that changes metadata carries.
pub fn majority() -> Document {
    doc! { "w": "majority" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_string_lists_hosts_behind_an_optional_set_name() {
        assert_eq!(hosts("rs/a:1,b:2").collect::<Vec<_>>(), ["a:1", "b:2"]);
        assert_eq!(hosts("a:1").collect::<Vec<_>>(), ["a:1"]);
        assert_eq!(hosts("rs/").count(), 0);
    }
}
