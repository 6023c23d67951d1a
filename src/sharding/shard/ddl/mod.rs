//! Changes of the catalog that concern several shards: coordinators on the database's primary shard.
//!
//! A coordinator is a [`protocol::ddl`] machine with a document in `config.system.sharding_ddl_coordinators`. It holds a
//! lock on its namespace (and its database, shared; exclusively where it concerns all of it), so changes of one
//! namespace run one after another; a request for what runs already waits for its outcome ([`joining`]). It runs as a task of its own:
//! a client that goes away does not end it, and [`Ddl::resume`] takes it up after a restart.
//!
//! ```text
//! Ddl::coordinate -> locks -> task: persist phase, run phase, ... -> forget -> reply
//! participants:  _shardsvr..Participant on every shard concerned; _shardsvrParticipantBlock is their critical section
//! ```
//! Participants' commands are idempotent, and refused when they are of an earlier run of their coordinator ([`fence`]). A critical section entered for DDL is written to
//! `config.collection_critical_sections` first, and entered again at start.
//!
//! # Who may be waiting for whom
//!
//! ```text
//! who waits                      for whom                            how it ends
//! a request                      a coordinator that runs the same    its outcome; the client may go, the coordinator goes on
//!                                the locks of database, namespace    their coordinators end, or LockBusy after 120 s; the client may go
//! any coordinator, for its lock  a standstill of the cluster         it ends, or LockBusy after 120 s
//! a standstill                   coordinators that have their locks  they end, or LockBusy after 20 s; others queue behind it meanwhile
//! a coordinator, freezing        migrations of its collection        those that have not begun to commit are stopped; ExceededTimeLimit after 60 s
//! a coordinator                  its message to every shard          all have replied; a failure is undone before the commit, repeated after it
//!                                the config server                   its reply; where the commit's outcome is unknown, repeated until it is known
//! a message of a coordinator     its message before, on that shard   that ends; an older one is refused (fence)
//! a section, to be entered       writes of many documents            they end; after 5 s it goes on without them
//!                                transactions of the collection      they end, or LockTimeout after 30 s: nothing has changed, and it is undone
//!                                another section                     it is left, or ConflictingOperationInProgress in the end: likewise
//! a shard's own change           transactions of the collection      they end, or LockTimeout after 60 s: undone before the commit, repeated after it
//! clients of the namespace       the section                         its coordinator's last phases, on whichever primary: both are written down
//! ```
//! After the commit nothing gives up: behind a shard that does not come back, its namespaces (of a resharding also their writes) wait for it,
//! while others go on. No cycle: `node::ddl::lock` has the order of all these. [`standstill`] and [`reshard`] say what they add.

mod auto_split;
pub mod block;
mod coll_mod;
pub mod commands;
mod consistency;
mod convert_to_capped;
mod coordinator;
mod create;
mod create_indexes;
mod distribution;
mod drop;
mod drop_database;
pub(crate) mod fence;
mod freeze;
mod joining;
mod locks;
mod move_primary;
mod refine;
mod rename;
pub(crate) mod repeated;
mod reshard;
mod reshard_plan;
mod sizes;
pub mod split;
pub mod standstill;
#[cfg(test)]
mod tests;
mod timeseries;
mod untrack;

pub(crate) use reshard_plan::{Sample, split_points};

use super::ShardRole;
use crate::config::catalog::Database;
use crate::remote::{Target, majority};
use document::{Document, Result, Value, bail, doc, err};
use locks::Locks;
use node::{Operation, Request};
use std::sync::Arc;

/// Where coordinators keep their documents.
pub const COORDINATORS: &str = "config.system.sharding_ddl_coordinators";

/// The coordinators of one shard.
pub struct Ddl {
    pub role: Arc<ShardRole>,
    locks: Locks,
    fences: fence::Fences,
    running: Arc<joining::Running>,
    wishes: reshard::Wishes,
    auto_split: Arc<auto_split::AutoSplit>,
    standstill: standstill::Standstill,
    me: std::sync::Weak<Ddl>,
}

impl Ddl {
    pub fn new(role: Arc<ShardRole>) -> Arc<Ddl> {
        let ddl = Arc::new_cyclic(|me| Ddl {
            role,
            locks: Locks::default(),
            fences: fence::Fences::default(),
            running: Arc::default(),
            wishes: reshard::Wishes::default(),
            auto_split: Arc::default(),
            standstill: standstill::Standstill::default(),
            me: me.clone(),
        });
        let own = ddl.me.clone();
        let halt = move || {
            if let Some(ddl) = own.upgrade() {
                ddl.stop();
            }
        };
        let _ = ddl.role.halt.set(Box::new(halt));
        ddl
    }
    fn strong(&self) -> Result<Arc<Ddl>> {
        self.me.upgrade().ok_or_else(|| err!(SHUTDOWN_IN_PROGRESS, "the shard is stopping"))
    }

    /// Enters again the critical sections that were in force and takes up the coordinators that were under way. Called
    /// once, when the node has become primary and before it answers requests of routers.
    ///
    /// # Errors
    /// Unreadable documents.
    pub async fn resume(&self) -> Result<()> {
        if self.role.identity().is_none() {
            return Ok(());
        }
        self.reenter_sections()?;
        self.stand_still_again().await?;
        for document in self.role.local.find(COORDINATORS, &Document::new())? {
            self.take_up(document).await?;
        }
        Ok(())
    }

    /// Ends what only a primary does; what its tasks were at is taken up by the next primary.
    pub fn stop(&self) {
        self.role.stop();
        self.stop_auto_split();
        self.forget_standstill();
    }

    /// This shard's name.
    fn shard(&self) -> Result<String> {
        Ok(self.role.require_identity()?.name.to_string())
    }
    /// Names of all shards, this one included.
    async fn all_shards(&self) -> Result<Vec<String>> {
        self.role.remote.registry.reload(&self.role.remote).await?;
        Ok(self.role.remote.registry.names())
    }
    /// The document of `config.collections`, as the config server has it now.
    async fn tracked(&self, ns: &str) -> Result<Option<Document>> {
        Ok(self.role.remote.find_config("collections", doc! { "_id": ns }, None).await?.into_iter().next())
    }
    async fn database_entry(&self, db: &str) -> Result<Database> {
        let found = self.role.remote.find_config("databases", doc! { "_id": db }, None).await?;
        let found = found.first().and_then(Database::from_document);
        found.ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "database {db} not found"))
    }
    /// Runs a command on the config server, with majority write concern.
    async fn config(&self, command: Document) -> Result<Document> {
        self.role.remote.admin(Target::Config, fence::mark(with_majority(command))).await
    }
    /// Runs a participant's command on one shard, this one or another, with majority write concern.
    async fn on_shard(&self, shard: &str, db: &str, command: Document) -> Result<Document> {
        let command = fence::mark(with_majority(command)).to_doc_buf();
        if shard == self.shard()? {
            return self.on_this_shard(db.to_string(), command).await;
        }
        Ok(self.role.remote.run(Target::Shard(shard), db, command).await?.to_document())
    }
    /// The same to take something back: `None` from a shard that was removed, which has nothing any more.
    async fn undo_on_shard(&self, shard: &str, db: &str, command: Document) -> Result<Option<Document>> {
        match self.on_shard(shard, db, command).await {
            Err(e) if e.code == document::codes::SHARD_NOT_FOUND => Ok(None),
            done => done.map(Some),
        }
    }
    /// The same on several at once; the first error is the answer, after all have answered.
    async fn undo_on_shards<'a>(
        &self,
        shards: impl IntoIterator<Item = &'a String>,
        db: &str,
        command: Document,
    ) -> Result<()> {
        let asks = shards.into_iter().map(|shard| self.undo_on_shard(shard, db, command.clone()));
        futures::future::join_all(asks).await.into_iter().try_for_each(|done| done.map(drop))
    }
    /// Runs a participant's command here, to its end, even if the coordinator gives up meanwhile: what follows waits for it, as
    /// on any other shard.
    async fn on_this_shard(&self, db: String, command: document::DocBuf) -> Result<Document> {
        let ddl = self.strong()?;
        let (done, outcome) = tokio::sync::oneshot::channel();
        let run = async move {
            let request = Request { db: &db, body: command.doc(), sequences: &[] };
            commands::run_participant(&ddl, &coll_mod::unversioned(), request).await
        };
        let run: futures::future::BoxFuture<'static, Result<Document>> = Box::pin(run);
        self.role.spawn(async move { drop(done.send(run.await)) });
        outcome.await.map_err(|_| err!(INTERRUPTED_AT_SHUTDOWN, "the shard is stopping"))?
    }
    /// Runs the same command on several shards at once; the first error is the answer, after all have answered.
    async fn on_shards(
        &self,
        shards: &[String],
        db: &str,
        command: Document,
    ) -> Result<Vec<(String, Document)>> {
        let asks = shards.iter().map(|s| {
            let command = command.clone();
            async move { Ok((s.clone(), self.on_shard(s, db, command).await?)) }
        });
        futures::future::join_all(asks).await.into_iter().collect()
    }
    /// Runs a command on shards of which this may be one. The others are first and log it as a migration's, so that change
    /// streams see it once: here, when it is done.
    async fn on_shards_seen_here(&self, shards: &[String], db: &str, command: Document) -> Result<()> {
        let own = self.shard()?;
        let (here, others): (Vec<String>, Vec<String>) = shards.iter().cloned().partition(|s| *s == own);
        let mut marked = command.clone();
        marked.insert("fromMigrate", true);
        self.on_shards(&others, db, marked).await?;
        self.on_shards(&here, db, command).await.map(drop)
    }
    /// Refuses a request that was sent for another version of the database, or for one whose primary is elsewhere.
    ///
    /// # Errors
    /// StaleDbVersion (249), IllegalOperation (20) when the request carries no version and this is not the primary.
    async fn check_primary(&self, op: &Operation, db: &str) -> Result<()> {
        // The versions are checked under the latch of any namespace of the database.
        let mut versions = Operation::internal();
        versions.received.database = op.received.database;
        self.role.node.namespaces.slot(&format!("{db}.$cmd")).read(&versions, |_| Ok(())).await?;
        if op.received.database.is_none() {
            let entry = self.database_entry(db).await?;
            if entry.primary != self.shard()? {
                bail!(ILLEGAL_OPERATION, "this shard is not the primary of database {db}");
            }
        }
        Ok(())
    }

    /// Appends to the cluster's `config.changelog`. Best effort.
    pub(crate) async fn log_change(&self, what: &str, ns: &str, details: Document) {
        let Ok(shard) = self.shard() else { return };
        let node = &self.role.node;
        let now = node.now_ms();
        let when = document::extended_json::format_date(now).unwrap_or_default();
        let host = node.options.host.as_str();
        let event = doc! {
            "_id": format!("{host}-{when}-{}", node.new_object_id().hex()), "server": host, "shard": shard, "clientAddr": "",
            "time": Value::DateTime(now), "what": what, "ns": ns, "details": details,
        };
        let command = with_majority(doc! { "insert": "changelog", "documents": vec![event] });
        drop(self.role.remote.run(Target::Config, "config", command.to_doc_buf()).await);
    }
}

fn with_majority(mut command: Document) -> Document {
    command.insert("writeConcern", majority());
    command
}

/// `db` and collection of a namespace.
fn split(ns: &str) -> (&str, &str) {
    storage::split_namespace(ns)
}
