//! What happens to all data of the cluster at once: a snapshot is taken or put back, a database is copied.
//!
//! ```text
//!             every shard (shard/ddl/standstill)                     here
//! quiesce     no change of the catalog, no migration is under way
//! begin       clients wait: for writes, or for reads too             topology, membership and chunks of all collections are locked
//!
//! snapshot    keeps what it has under a new name                     keeps the catalog likewise
//!             confirms that clients have waited ever since           config.tesseraSnapshots: it counts from here
//!
//! restore     what it has is exchanged for what was kept             the catalog likewise, every collection and database as a
//!                                                                    new incarnation
//! fork        copies the database                                    entries for the copies
//!
//! end         forgets what it knew of placement, clients go on       unlocked before
//! ```
//! The work is a [`protocol::ddl`] machine with a document in `config.sharding_configsvr_coordinators`; one is under way at a time. A restart goes on
//! with it. Messages carry the number of the coordinator's run, so that a late one does nothing (`shard/ddl/fence`).
//!
//! # Why it is one moment
//!
//! A snapshot's parts are taken at different times, but from before the first to after the last no client changes anything on any shard, no
//! transaction commits but those that all parts of have prepared, which every shard waits for, no range moves, and the catalog is locked. If a
//! shard's standstill was interrupted (a restart, the lease), it does not confirm, and the snapshot is given up: the one of the same name
//! that was there before still counts, since parts are kept under names that are made of the snapshot's id.
//!
//! # Why a restore leaves nothing in between
//!
//! Before the first shard is put back, every shard has written down that all clients wait, and has shown that it has its part. From then
//! on nothing is undone: what fails, a shard that is down included, is tried until it succeeds, and no client sees anything meanwhile. Shards
//! that restart wait again before they serve. When all data and the catalog are exchanged, each shard forgets what it knew of placement and
//! lets clients go on, whose versions are older than the new incarnations: so routers refresh, whatever has moved, was dropped, made or
//! resharded in between.
//!
//! # Where it can get stuck
//!
//! Behind a change of the catalog or a prepared transaction that does not end: it gives up after a time, with nothing changed. After the
//! point without return, behind a shard that does not come back, as any change of the catalog.

mod catalog;
mod fork;
mod restore;
mod snapshot;

use super::{ConfigServer, argument, require_majority};
use crate::driver::{self, Performer, phase_of};
use crate::messages::Flag;
use crate::messages::standstill::{End, Quiesce, Step};
use crate::remote::{Target, majority};
use crate::shard::ddl::fence;
use document::{Document, Error, Result, Value, bail, doc, err};
use futures::future::{BoxFuture, join_all};
use node::{Operation, Request};
use parking_lot::Mutex;
use protocol::ddl::protocols::{self, DropSnapshotPhase, ForkPhase, RestorePhase, TakePhase};
use protocol::ddl::{Event, OnFailure, Protocol};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{MutexGuard, OwnedMutexGuard, RwLockWriteGuard};

const COORDINATORS: &str = "config.sharding_configsvr_coordinators";
/// The `_id` of the document of what is under way. DO NOT CHANGE.
const KIND: &str = "standstill";
/// How often a request looks whether what another reign has begun has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long commits of the catalog may hold a standstill up.
pub(crate) const CATALOG_WAIT: Duration = Duration::from_secs(20);

/// A kind of work.
#[derive(Clone, Copy)]
enum Kind {
    Take,
    Drop,
    Restore,
    Fork,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Take, Kind::Drop, Kind::Restore, Kind::Fork];

    fn protocol(self) -> &'static Protocol {
        match self {
            Kind::Take => &protocols::TAKE_SNAPSHOT,
            Kind::Drop => &protocols::DROP_SNAPSHOT,
            Kind::Restore => &protocols::RESTORE,
            Kind::Fork => &protocols::FORK,
        }
    }
    /// What a failed phase leads to; `None` for a phase of another version of this code.
    fn on_failure(self, phase: &str) -> Option<OnFailure> {
        self.protocol().phases.iter().find(|p| p.name == phase).map(|p| p.on_failure)
    }
    async fn run(self, config: &ConfigServer, phase: &str, state: &mut Document) -> Result<()> {
        match self {
            Kind::Take => config.run_take(phase_of(TakePhase::named(phase), phase)?, state).await,
            Kind::Drop => config.run_drop(phase_of(DropSnapshotPhase::named(phase), phase)?, state).await,
            Kind::Restore => config.run_restore(phase_of(RestorePhase::named(phase), phase)?, state).await,
            Kind::Fork => config.run_fork(phase_of(ForkPhase::named(phase), phase)?, state).await,
        }
    }
}

/// What is under way on one config server.
#[derive(Default)]
pub(crate) struct Whole {
    /// Held by what is under way.
    one: Arc<tokio::sync::Mutex<()>>,
    on: Arc<AtomicBool>,
    task: Mutex<Option<tokio::task::AbortHandle>>,
}

impl Whole {
    /// Waits for what is under way.
    pub(crate) async fn pass(&self) {
        drop(self.one.lock().await);
    }
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::SeqCst)
    }
}

/// The reign's work is over when this is dropped.
struct On(Arc<AtomicBool>);
impl Drop for On {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Whatever adds or removes a shard waits for this.
struct SetOfShards<'a> {
    _topology: MutexGuard<'a, ()>,
    _members: RwLockWriteGuard<'a, ()>,
}

/// Whatever changes the catalog waits for this.
struct Locks<'a> {
    _shards: SetOfShards<'a>,
    _chunks: Vec<OwnedMutexGuard<()>>,
}

impl ConfigServer {
    /// Runs work of a kind to its end, whatever becomes of the client; returns its document.
    ///
    /// # Errors
    /// That of the phase that failed: what was done is undone then. Interrupts leave it running.
    async fn run_whole(self: &Arc<Self>, op: &Operation, kind: Kind, fields: Document) -> Result<Document> {
        let held = self.next_whole(op).await?;
        let mut state = doc! { "_id": { "coordinatorType": KIND }, "operation": kind.protocol().operation };
        state.0.extend(fields.0);
        let (done, outcome) = tokio::sync::oneshot::channel();
        let config = self.clone();
        let task = runtime::spawn(async move {
            let ended = config.start_whole(kind, state).await;
            drop(held);
            drop(done.send(ended));
        });
        *self.whole.task.lock() = Some(task.abort_handle());
        op.interruptible(outcome).await?.map_err(|_| stepped_down())?
    }

    /// The shards stay those that are written down: whatever adds or removes one waits until they are, and is refused then.
    async fn start_whole(self: &Arc<Self>, kind: Kind, mut state: Document) -> Result<Document> {
        let set_of_shards = tokio::time::timeout(CATALOG_WAIT, self.lock_shards()).await.map_err(late)?;
        state.push("shards", self.shard_names());
        self.node.failpoints.pause_while_set("hangStandstillBefore_start").await;
        self.drive_whole(kind, state, Event::Started, Some(set_of_shards)).await
    }

    fn shard_names(&self) -> Vec<String> {
        self.catalog().shards().into_iter().map(|s| s.name).collect()
    }

    /// Waits for its turn, also behind what another reign has begun.
    async fn next_whole(&self, op: &Operation) -> Result<OwnedMutexGuard<()>> {
        loop {
            let held = op.interruptible(self.whole.one.clone().lock_owned()).await?;
            if self.begun_whole()?.is_none() {
                return Ok(held);
            }
            drop(held);
            op.interruptible(tokio::time::sleep(LOOK_AGAIN)).await?;
        }
    }

    fn begun_whole(&self) -> Result<Option<Document>> {
        self.local.find_one(COORDINATORS, &doc! { "_id": { "coordinatorType": KIND } })
    }

    /// Refuses what changes the set of shards while data of all shards is exchanged: a restart has lost the locks.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117).
    pub(super) fn refuse_during_standstill(&self) -> Result<()> {
        match self.begun_whole()? {
            Some(_) => bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "a snapshot of the cluster is being taken or put back"
            ),
            None => Ok(()),
        }
    }

    /// Takes up what another reign has begun.
    pub async fn resume_whole(self: Arc<Self>) {
        let _held = self.whole.one.clone().lock_owned().await;
        let Ok(Some(mut state)) = self.begun_whole() else { return };
        let operation = state.get_str("operation").unwrap_or_default();
        let Some(kind) = Kind::ALL.into_iter().find(|k| k.protocol().operation == operation) else { return };
        state.insert("recoveredFromDisk", true);
        let phase = state.get_str("phase").unwrap_or_default().to_string();
        // Whoever asked for it is gone; what failed was undone.
        drop(self.drive_whole(kind, state, Event::Recovered { phase: &phase }, None).await);
    }

    /// Ends what a primary does; the next one takes it up.
    pub fn stop_whole(&self) {
        if let Some(task) = self.whole.task.lock().take() {
            task.abort();
        }
    }

    /// `set_of_shards` is let go when the document is written.
    async fn drive_whole(
        &self,
        kind: Kind,
        state: Document,
        first: Event<'_>,
        set_of_shards: Option<SetOfShards<'_>>,
    ) -> Result<Document> {
        self.whole.on.store(true, Ordering::SeqCst);
        let _on = On(self.whole.on.clone());
        let mut work = Work { config: self, kind, set_of_shards, locks: None };
        driver::drive(&mut work, kind.protocol(), state, first).await
    }

    /// Locks whatever a commit of the catalog locks, in the order of `node::ddl::lock`.
    async fn lock_catalog(&self, state: &Document) -> Result<Locks<'_>> {
        let lock = async {
            let _shards = self.lock_shards().await;
            let mut names: Vec<String> =
                self.catalog().collections().into_iter().map(|c| c.info.ns).collect();
            names.sort();
            let mut _chunks = Vec::with_capacity(names.len());
            for ns in names {
                _chunks.push(self.lock_chunks(&ns).await);
            }
            Locks { _shards, _chunks }
        };
        let locks = tokio::time::timeout(CATALOG_WAIT, lock).await.map_err(late)?;
        let now: Vec<Value> = self.shard_names().into_iter().map(Value::from).collect();
        if state.get_array("shards") != Some(&now) {
            bail!(CONFLICTING_OPERATION_IN_PROGRESS, "a shard was added or removed meanwhile");
        }
        Ok(locks)
    }

    async fn lock_shards(&self) -> SetOfShards<'_> {
        let (_topology, _members) = (self.topology.lock().await, self.membership.write().await);
        SetOfShards { _topology, _members }
    }

    /// Sends every shard the step that `of` says for it; the first error is the answer, after all have replied.
    async fn on_shards(&self, state: &Document, of: impl Fn(&str) -> Step) -> Result<Vec<Document>> {
        let asks = names(state, "shards").map(|shard| {
            let mut command = of(shard).to_document();
            command.push("writeConcern", majority());
            let command = fence::mark(command);
            async move {
                let host = self.catalog().shard(shard)?.host;
                self.remote.admin(Target::Host(&host), command).await
            }
        });
        join_all(asks).await.into_iter().collect()
    }

    async fn quiesce(&self, state: &Document) -> Result<()> {
        self.on_shards(state, |_| Step::Quiesce(Quiesce {})).await.map(drop)
    }

    /// Ends the standstill on every shard; `drop` are names of parts that are of no use any more.
    async fn end_everywhere(&self, state: &Document, drop: Vec<String>) -> Result<()> {
        let forget = Flag(state.get_bool("forgets").unwrap_or(false));
        self.on_shards(state, |_| Step::End(End { forget, drop: drop.clone() })).await?;
        for name in &drop {
            self.drop_catalog_part(name).await?;
        }
        Ok(())
    }
}

/// Work of a kind under way, with what it keeps from changing.
struct Work<'c> {
    config: &'c ConfigServer,
    kind: Kind,
    set_of_shards: Option<SetOfShards<'c>>,
    locks: Option<Locks<'c>>,
}

impl Performer for Work<'_> {
    fn may_go_on(&self) -> Result<()> {
        if self.config.node.is_writable() { Ok(()) } else { Err(stepped_down()) }
    }
    /// The fail points `hangStandstillBefore_<phase>`.
    fn pause<'a>(&'a self, step: &'static str, phase: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if step == "Running" {
                let point = format!("hangStandstillBefore_{phase}");
                self.config.node.failpoints.pause_while_set(&point).await;
            }
        })
    }
    fn write<'a>(&'a mut self, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.config.local.put(COORDINATORS, state).await?;
            self.set_of_shards = None;
            Ok(())
        })
    }
    fn forget<'a>(&'a mut self, _: &'a Document) -> BoxFuture<'a, Result<()>> {
        let id = doc! { "_id": { "coordinatorType": KIND } };
        Box::pin(async move { self.config.local.delete(COORDINATORS, &id).await.map(drop) })
    }
    fn run<'a>(&'a mut self, phase: &'static str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let recovered = state.get_bool("recoveredFromDisk") == Some(true);
            if recovered && self.kind.on_failure(phase) == Some(OnFailure::Undo) {
                // The locks were not held all the time.
                return Err(stepped_down());
            }
            match phase {
                "quiesce" => {}
                "end" => self.locks = None,
                _ if self.locks.is_none() => self.locks = Some(self.config.lock_catalog(state).await?),
                _ => {}
            }
            self.kind.run(self.config, phase, state).await
        })
    }
    fn undo<'a>(&'a mut self, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        self.locks = None;
        let parts = strings(state, "undone");
        Box::pin(self.config.end_everywhere(state, parts))
    }
}

fn late(_: tokio::time::error::Elapsed) -> Error {
    err!(LOCK_BUSY, "the catalog was being changed for longer than {CATALOG_WAIT:?}")
}

fn stepped_down() -> Error {
    err!(INTERRUPTED_DUE_TO_REPL_STATE_CHANGE, "the config server's primary has changed")
}

/// The strings of a list.
fn names<'d>(d: &'d Document, list: &str) -> impl Iterator<Item = &'d str> {
    d.get_array(list).into_iter().flatten().filter_map(Value::as_str)
}

fn strings(d: &Document, list: &str) -> Vec<String> {
    names(d, list).map(String::from).collect()
}

/// The names that any of the replies lists.
fn distinct(replies: &[Document]) -> i32 {
    let all: std::collections::BTreeSet<&str> = replies.iter().flat_map(|r| names(r, "namespaces")).collect();
    all.len() as i32
}
