//! What a router stands on: where data is, and a way to the nodes that hold it.
//!
//! One trait, so that everything above it runs in tests against shards made of a few maps.

use super::body::{Placement, cursor_id};
use crate::chunk::ShardId;
use crate::remote::{hosts, silent};
use crate::routing::{CatalogCache, DatabaseEntry, Routing};
use crate::sets::{Silence, retry_until};
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Timestamp, codes};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use protocol::selection::{Mode, PRIMARY, ReadPreference};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::client::{CallOptions, CallResult, Pool, RemoteError};

/// The name under which the config server is called like a shard.
pub const CONFIG: &str = "config";

/// One command for one node.
pub struct Call<'a> {
    pub shard: &'a str,
    /// The whole command, `$db` included.
    pub body: Doc<'a>,
    /// A document sequence: the array field it stands for, and its documents.
    pub sequence: Option<(&'a str, &'a [Doc<'a>])>,
    /// What is asked for is a document or a few, found by `_id`: the call may share a connection with others.
    pub brief: bool,
    /// Which member of the shard may answer.
    pub preference: &'a ReadPreference,
}

impl<'a> Call<'a> {
    /// A command without sequences, of unknown length.
    pub fn new(shard: &'a str, body: Doc<'a>) -> Call<'a> {
        Call { shard, body, sequence: None, brief: false, preference: &PRIMARY }
    }
}

/// The cluster as a router sees it.
pub trait Cluster: Send + Sync + 'static {
    /// Where the namespace is, if that is known without asking anybody.
    fn cached(&self, ns: &str) -> Option<Placement>;
    /// Where the namespace is; `None` when its database does not exist.
    fn placement<'a>(&'a self, ns: &'a str) -> BoxFuture<'a, Result<Option<Placement>>>;
    /// Whether the namespace may be sharded by what was ever asked or told of it.
    fn may_be_sharded(&self, ns: &str) -> bool {
        let _ = ns;
        false
    }
    /// Takes in a stale error of a request on `ns`: what it speaks of is read anew by the next [`Cluster::placement`].
    fn note_stale(&self, ns: &str, error: &Error);
    /// The next [`Cluster::placement`] reads this collection and its database anew.
    fn invalidate(&self, ns: &str);
    /// Forgets a collection (`db.c`), a database (`db`), or everything.
    fn forget(&self, name: Option<&str>);
    /// Reads the list of shards anew.
    fn reload_shards<'a>(&'a self) -> BoxFuture<'a, Result<()>>;
    /// All shards by name, with their connection strings.
    fn shards<'a>(&'a self) -> BoxFuture<'a, Result<Vec<(ShardId, String)>>>;
    /// Runs a command on a member of a shard, or of [`CONFIG`]. The reply is given if it says ok.
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, CallResult<DocBuf>>;
    /// The connection string of the config server.
    fn config_string(&self) -> String;
    /// `shardingStatistics.catalogCache`.
    fn statistics(&self) -> Document;
    /// The newest time of the config server that the router has heard of.
    fn config_time(&self) -> Timestamp {
        Timestamp::default()
    }
    fn hear_config_time(&self, time: Timestamp) {
        let _ = time;
    }
}

/// The cluster over the network.
pub struct LiveCluster {
    pub cache: Arc<CatalogCache>,
    pub pool: Pool,
    pins: Pins,
}

/// The members that shards' cursors are on.
#[derive(Default)]
struct Pins(Mutex<BTreeMap<i64, String>>);

impl Pins {
    /// The member that the command has to go to.
    fn of(&self, body: Doc<'_>) -> Option<String> {
        let id = cursor_named(body)?;
        self.0.lock().get(&id).cloned()
    }
    /// Takes in the reply of a member.
    fn note(&self, host: &str, body: Doc<'_>, reply: Doc<'_>) {
        let open = cursor_id(reply);
        match cursor_named(body) {
            Some(id) if id != open => drop(self.0.lock().remove(&id)),
            None if open != 0 => drop(self.0.lock().insert(open, host.to_string())),
            _ => {}
        }
    }
    fn forget(&self, body: Doc<'_>) {
        if let Some(id) = cursor_named(body) {
            self.0.lock().remove(&id);
        }
    }
}

/// The cursor that a command asks more of, or closes.
fn cursor_named(body: Doc<'_>) -> Option<i64> {
    match body.iter().next()?.name() {
        "getMore" => body.get_i64("getMore"),
        "killCursors" => body.get("cursors")?.as_array()?.iter().next()?.value().as_i64(),
        _ => None,
    }
}

impl LiveCluster {
    pub fn new(cache: Arc<CatalogCache>, pool: Pool) -> LiveCluster {
        LiveCluster { cache, pool, pins: Pins::default() }
    }

    async fn send(&self, connection: &str, host: &str, call: &Call<'_>) -> CallResult<DocBuf> {
        let sequences: Vec<(&str, &[Doc<'_>])> = call.sequence.into_iter().collect();
        let options = CallOptions { brief: call.brief, ..CallOptions::default() };
        let dressed = named(call);
        let body = dressed.as_ref().map_or(call.body, DocBuf::doc);
        let run = self.pool.run_as_is(host, &options, &sequences, body);
        let answer = self.cache.remote.sets.guarded(connection, Silence::Of(host), run).await;
        answer.unwrap_or_else(|| {
            Err(Box::new(RemoteError { error: silent(host), reply: None, not_sent: false }))
        })
    }

    /// On a set of several: another member is looked for as long as nothing was executed, and once for what may be executed
    /// twice. What concerns a cursor goes to the member that has it, and to no other.
    async fn call_set(&self, connection: &str, call: Call<'_>) -> CallResult<DocBuf> {
        let sets = &self.cache.remote.sets;
        let pinned = self.pins.of(call.body);
        let until = retry_until();
        let mut repeats = 1;
        loop {
            let host = match &pinned {
                Some(host) => host.clone(),
                None => sets.find(connection, call.preference).await.map_err(unsent)?,
            };
            let failure = match self.send(connection, &host, &call).await {
                Ok(reply) => {
                    self.pins.note(&host, call.body, reply.doc());
                    return Ok(reply);
                }
                Err(failure) => failure,
            };
            let again = sets.note_failure(connection, &host, &failure.error, failure.not_sent);
            let lost = failure.is_network() || failure.error.is(document::error::NOT_PRIMARY);
            if pinned.is_some() {
                if lost || failure.error.code == codes::CURSOR_NOT_FOUND {
                    self.pins.forget(call.body);
                }
                return Err(failure);
            }
            let repeat = lost && repeats > 0 && is_repeatable(call.body);
            if !(again || repeat) || runtime::Instant::now() >= until {
                return Err(failure);
            }
            repeats -= usize::from(!again);
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn assemble(
        &self,
        ns: &str,
        database: Option<Arc<DatabaseEntry>>,
        routing: Routing,
    ) -> Option<Placement> {
        let (alone, table) = match routing.table().cloned() {
            Some(table) if table.unsplittable => (Some(table), None),
            table => (None, table),
        };
        let (primary, database) = match database {
            Some(d) => (d.primary.clone(), Some(d.version)),
            None if is_config(ns) => (CONFIG.into(), None),
            None => return None,
        };
        Some(Placement { primary, database, table, alone, now: None })
    }
}

/// Whether the namespace lives on the config server unless it is sharded.
pub fn is_config(ns: &str) -> bool {
    matches!(database_of(ns), "config" | "admin")
}

pub fn database_of(ns: &str) -> &str {
    ns.split_once('.').map_or(ns, |(db, _)| db)
}

/// Whether it is `db.`, which stands for the database alone. Names of collections may end in a dot as well.
fn is_database(ns: &str) -> bool {
    ns.split_once('.').is_some_and(|(_, collection)| collection.is_empty())
}

impl Cluster for LiveCluster {
    fn cached(&self, ns: &str) -> Option<Placement> {
        let routing = match is_database(ns) {
            true => Routing::Unsharded,
            false => self.cache.cached_collection(ns)?,
        };
        let database = match is_config(ns) {
            true => None,
            false => Some(self.cache.cached_database(database_of(ns))?),
        };
        self.assemble(ns, database, routing)
    }
    fn placement<'a>(&'a self, ns: &'a str) -> BoxFuture<'a, Result<Option<Placement>>> {
        Box::pin(async move {
            let database = self.cache.database(database_of(ns)).await?;
            if database.is_none() && !is_config(ns) {
                return Ok(None);
            }
            let routing = match is_database(ns) || (is_config(ns) && !is_shardable_config(ns)) {
                true => Routing::Unsharded,
                false => self.cache.collection(ns).await?,
            };
            Ok(self.assemble(ns, database, routing))
        })
    }
    fn may_be_sharded(&self, ns: &str) -> bool {
        self.cache.may_be_sharded(ns)
    }
    fn note_stale(&self, ns: &str, error: &Error) {
        let names_it = error.info.as_ref().is_some_and(|i| i.contains_key("ns") || i.contains_key("db"));
        if names_it && self.cache.note_stale(error) {
            return;
        }
        self.invalidate(ns);
    }
    fn invalidate(&self, ns: &str) {
        self.cache.invalidate_database(database_of(ns));
        self.cache.invalidate(ns);
    }
    fn forget(&self, name: Option<&str>) {
        match name {
            None => self.cache.clear(),
            Some(ns) if ns.contains('.') => self.cache.clear_collection(ns),
            Some(db) => self.cache.clear_database(db),
        }
    }
    fn reload_shards<'a>(&'a self) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.cache.remote.registry.reload(&self.cache.remote))
    }
    fn shards<'a>(&'a self) -> BoxFuture<'a, Result<Vec<(ShardId, String)>>> {
        Box::pin(async move {
            let shards = self.cache.remote.registry.load(&self.cache.remote).await?;
            Ok(shards.into_iter().map(|s| (s.name.into(), s.host)).collect())
        })
    }
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, CallResult<DocBuf>> {
        Box::pin(async move {
            let connection = self.cache.remote.connection_string(call.shard).await.map_err(unsent)?;
            let mut all = hosts(&connection);
            match (all.next(), all.next()) {
                (Some(host), None) => self.send(&connection, host, &call).await,
                _ => self.call_set(&connection, call).await,
            }
        })
    }
    fn config_string(&self) -> String {
        self.cache.remote.registry.config().unwrap_or_default()
    }
    fn statistics(&self) -> Document {
        self.cache.statistics()
    }
    fn config_time(&self) -> Timestamp {
        self.cache.remote.config_time.get()
    }
    fn hear_config_time(&self, time: Timestamp) {
        self.cache.remote.hear_config_time(Some(time));
    }
}

/// The failure of a call that nobody has received.
pub(super) fn unsent(error: Error) -> Box<RemoteError> {
    Box::new(RemoteError { error, reply: None, not_sent: true })
}

/// The command with its read preference, where a secondary may get it and it does not say so yet.
fn named(call: &Call<'_>) -> Option<DocBuf> {
    let mode = Some(call.preference.mode).filter(|mode| *mode != Mode::Primary)?;
    if call.body.get("$readPreference").is_some() {
        return None;
    }
    Some(DocWriter::build(|w| {
        w.fields_of(call.body);
        w.document_with("$readPreference", |w| w.string("mode", mode.name()));
    }))
}

/// How long to wait before a new primary is asked.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// Whether a command may be executed twice: a read, or a write whose statements the session knows. What a pipeline has written before its
/// answer was lost nobody knows.
fn is_repeatable(body: Doc<'_>) -> bool {
    let name = body.iter().next().map_or("", |e| e.name());
    let reads = ["find", "aggregate", "count", "distinct", "listCollections", "listIndexes", "hello", "ping"];
    let in_transaction = body.get("autocommit").is_some();
    !in_transaction && !ends_in_writing(body) && (reads.contains(&name) || body.get("txnNumber").is_some())
}

/// Whether the command's pipeline writes what it comes to.
pub(super) fn ends_in_writing(body: Doc<'_>) -> bool {
    let stages = body.get("pipeline").and_then(|v| v.as_array());
    let last = stages.and_then(|s| s.iter().last()?.value().as_document()?.iter().next());
    last.is_some_and(|stage| matches!(stage.name(), "$out" | "$merge"))
}

/// Collections of `config` that are sharded like a user's.
fn is_shardable_config(ns: &str) -> bool {
    ns == "config.system.sessions"
}

#[cfg(test)]
mod tests {
    use super::is_repeatable;
    use document::{array, doc};

    #[test]
    fn a_pipeline_that_writes_is_not_sent_again() {
        let aggregate =
            |stage| doc! { "aggregate": "c", "pipeline": array![{ "$match": {} }, stage], "cursor": {} };
        let may = |d: document::Document| is_repeatable(d.to_doc_buf().doc());
        assert!(may(aggregate(doc! { "$sort": { "a": 1 } })) && may(doc! { "find": "c" }));
        for stage in [doc! { "$merge": { "into": "d" } }, doc! { "$out": "d" }] {
            assert!(!may(aggregate(stage)));
        }
        assert!(may(doc! { "insert": "c", "txnNumber": 1i64 }) && !may(doc! { "insert": "c" }));
        assert!(!may(doc! { "find": "c", "txnNumber": 1i64, "autocommit": false }));
    }
}
