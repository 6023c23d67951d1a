//! One member of a replica set: its configuration, its state, its elections, and the entries it takes from others.
//!
//! ```text
//! started with --replSet:  STARTUP --replSetInitiate, or a heartbeat--> STARTUP2 --copy--> SECONDARY --election--> PRIMARY
//! restarted, configured:   STARTUP ------------------------------------------------------> SECONDARY -> ...
//! ```
//! What is decided stands in [`protocol::replication`]; here are its hands:
//!
//! ```text
//! driver      performs the machine's actions: votes, leading, stepping down; feeds it time
//! heartbeat   asks the other members how they are, and answers them; carries configurations
//! reconfig    initiating and changing the configuration
//! fetch       follows another member's log; reports positions
//! apply       entries into trees and log
//! catch_up    a new primary fetches what others have, before its first entry
//! copy        everything anew from another member's snapshot
//! rollback    back to the newest entry shared with the set
//! commit      what is majority-committed; waiting
//! services    what only a primary does by itself
//! settings    what parameters say of all this
//! metrics     what was fetched and applied, counted
//! state       vote, configuration and counters that outlive the log
//! ```
//! A member that is alone wins every election it holds, at once.
//!
//! Invariant: the standing is replaced as a whole, under one mutex, and the observer hears of every change in order.
//! Invariant: nothing but `apply` appends to the oplog of a member that does not lead: who writes passes
//! [`Node::check_leads`] under the gate, and a step-down closes it under the exclusive gate.

mod apply;
mod catch_up;
pub(crate) mod commit;
mod copy;
mod copy_status;
mod driver;
mod fetch;
mod heartbeat;
mod metrics;
mod reconfig;
mod rollback;
mod services;
mod settings;
mod state;
mod status;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod waiting;

pub use commit::{CommitPoint, order};
pub use driver::read_optime;
pub use heartbeat::HeartbeatRequest;
pub use protocol::replication::config::{Member as MemberConfig, SetConfig};
pub use protocol::replication::member::{MemberState, Reason};
pub use reconfig::Change;
pub(crate) use reconfig::begins_set;
pub use services::{PrimaryService, PrimaryServices};
pub use settings::Settings;
pub(crate) use state::State;

use crate::operation::{ReadLevel, WriteConcern};
use crate::transaction::Area;
use crate::{Node, Operation};
use document::{DocBuf, Document, ObjectId, Result, Timestamp, bail, doc, err};
use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use protocol::replication::member::Member;
use runtime::Instant;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use storage::log::OpTime;
use tokio::sync::{Notify, watch};

/// Where the configuration and the vote are shown.
pub const CONFIG_NAMESPACE: &str = "local.system.replset";
const ELECTION_NAMESPACE: &str = "local.replset.election";
/// The namespace and `_id` of the feature compatibility document.
pub const VERSION_NAMESPACE: &str = "admin.system.version";
pub const VERSION_ID: &str = "featureCompatibilityVersion";

/// The last election this member won.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Election {
    pub term: i64,
    pub wall_ms: i64,
    /// Position of the no-op written first in the term, and when it was.
    pub first: OpTime,
    pub first_wall_ms: i64,
    /// The newest entry when the election was held, and the newest that was known to be committed.
    pub seen: OpTime,
    pub committed: OpTime,
    /// The id of the member that led before.
    pub prior: Option<i64>,
    pub reason: Reason,
}

/// The last election in which this member has voted for another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Participation {
    pub term: i64,
    /// The candidate's place in the configuration.
    pub candidate: i64,
    pub granted: bool,
    pub reason: String,
    pub wall_ms: i64,
    /// The newest entry here at that time, and the candidate's.
    pub applied: OpTime,
    pub newest_in_set: protocol::replication::OpTime,
    /// When the winner wrote its first entry, and when that was applied here.
    pub term_began: Option<(i64, i64)>,
}

/// Everything known of the set at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    pub state: MemberState,
    pub config: Option<Arc<SetConfig>>,
    /// Index of this member; `None` in no configuration.
    pub me: Option<usize>,
    pub term: i64,
    /// Index of the primary, if it is known.
    pub primary: Option<usize>,
    /// A primary that takes writes.
    pub writable: bool,
    pub stepping_down: bool,
    pub election: Option<Election>,
}

impl Standing {
    /// This member's line in the configuration.
    pub fn own(&self) -> Option<&MemberConfig> {
        self.config.as_ref()?.members().get(self.me?)
    }
    /// `host:port` of a member.
    pub fn host(&self, index: usize) -> Option<String> {
        Some(self.config.as_ref()?.members().get(index)?.host.clone())
    }
}

/// Hears of each change of the standing, in order, before whoever made the change goes on.
pub trait StandingObserver: Send + Sync + 'static {
    fn changed(&self, from: &Standing, to: &Standing);
}

/// The replies of a member that goes on answering by itself. Dropping this makes an end of it.
pub trait Replies: Send {
    /// The next one, which has to come within the limit; `None` where no more come. A refusal is an error.
    fn next(&mut self, limit: Duration) -> BoxFuture<'_, Option<Result<DocBuf>>>;
}

/// The other members, as this one reaches them. Implemented by the process around the node.
pub trait Peers: Send + Sync + 'static {
    /// Runs a getMore that the member may go on with by itself, over a connection of its own: the batches, of which none has come yet.
    fn stream<'a>(
        &'a self,
        host: &'a str,
        db: &'a str,
        command: DocBuf,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Box<dyn Replies>>>;
    /// Runs a command; a refusal is an error.
    fn call<'a>(
        &'a self,
        host: &'a str,
        db: &'a str,
        command: DocBuf,
        limit: Duration,
    ) -> BoxFuture<'a, Result<DocBuf>>;
    /// Whether the address is this node's own.
    fn is_self<'a>(&'a self, host: &'a str) -> BoxFuture<'a, bool>;
    /// Whether this node answers at an address that does not look like its own. Asks the address.
    fn is_self_elsewhere<'a>(&'a self, host: &'a str) -> BoxFuture<'a, bool>;
    /// Which process answers at the address; `None` where none says.
    fn process_at<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Option<ObjectId>>;
    /// A line for the log.
    fn note(&self, text: &str, attributes: Document);
}

/// Whom this member fetches from.
#[derive(Default)]
struct Source {
    /// Empty where it fetches from nobody. Places in the configuration change.
    host: String,
    /// Asked for by replSetSyncFrom.
    forced: Option<String>,
    /// Not to be asked until then, in milliseconds.
    denied: Vec<(String, u64)>,
    /// What the last choice came to, and until when that is told.
    outcome: Option<(String, u64)>,
}

/// The replication half of a node. A standalone has one that never leaves STARTUP.
pub struct Replication {
    member: Mutex<Member>,
    standing: RwLock<Arc<Standing>>,
    publishing: Mutex<()>,
    observer: OnceLock<Arc<dyn StandingObserver>>,
    /// One change of the configuration or state at a time.
    changing: tokio::sync::Mutex<()>,
    /// Held while a configuration takes the place of another; taken after `changing`, and by a reign that begins.
    installing: tokio::sync::Mutex<()>,
    /// What `setDefaultRWConcern` has set.
    default_write_concern: Mutex<Option<WriteConcern>>,
    default_read_level: Mutex<Option<ReadLevel>>,
    pub commit: CommitPoint,
    /// What runs while this node is primary; on a standalone always.
    pub services: PrimaryServices,
    state: State,
    between: apply::Between,
    /// Writes of this node's own may be appended to the oplog.
    leads: AtomicBool,
    pub(crate) metrics: metrics::Metrics,
    /// Since when majorities have had the writes of this reign; 0 before.
    majority_wall_ms: AtomicI64,
    /// Rises when a position, a member or the commit point changes.
    progress: watch::Sender<u64>,
    /// Held while entries of others are applied, and while leading begins.
    applying: tokio::sync::Mutex<()>,
    /// Held while prepared transactions change their place; before the gate.
    pub(crate) places: Mutex<()>,
    peers: OnceLock<Arc<dyn Peers>>,
    tasks: Mutex<Vec<tokio::task::AbortHandle>>,
    /// Heartbeats of an older configuration end when this has risen.
    generation: AtomicU64,
    heartbeat_now: Notify,
    source: Mutex<Source>,
    notes: tokio::sync::Mutex<fetch::Notes>,
    election: Mutex<Option<Election>>,
    participation: Mutex<Option<Participation>>,
    copies: copy::Copies,
    /// How far this member's own copy is.
    copy_status: Mutex<copy_status::CopyStatus>,
    abort_catch_up: Notify,
    settings: RwLock<Settings>,
    /// Why this member cannot go on.
    hopeless: watch::Sender<Option<document::Error>>,
    started: Instant,
}

impl Replication {
    /// As found at the start: what was kept, and the optime with which the log ends.
    pub(crate) fn new(state: State, last: OpTime) -> Replication {
        let kept = state.get();
        let mut member = Member::new(kept.vote, known(last));
        member.set_vote_floor(kept.floor);
        let standing = Standing {
            state: MemberState::Startup,
            config: None,
            me: None,
            term: -1,
            primary: None,
            writable: false,
            stepping_down: false,
            election: None,
        };
        Replication {
            member: Mutex::new(member),
            standing: RwLock::new(Arc::new(standing)),
            publishing: Mutex::default(),
            observer: OnceLock::new(),
            changing: tokio::sync::Mutex::default(),
            installing: tokio::sync::Mutex::default(),
            default_write_concern: Mutex::default(),
            default_read_level: Mutex::default(),
            commit: CommitPoint::default(),
            services: PrimaryServices::default(),
            state,
            between: apply::Between::default(),
            leads: AtomicBool::new(true),
            metrics: metrics::Metrics::default(),
            majority_wall_ms: AtomicI64::new(0),
            progress: watch::Sender::new(0),
            applying: tokio::sync::Mutex::default(),
            places: Mutex::default(),
            peers: OnceLock::new(),
            tasks: Mutex::default(),
            generation: AtomicU64::new(0),
            heartbeat_now: Notify::new(),
            source: Mutex::default(),
            notes: tokio::sync::Mutex::default(),
            election: Mutex::new(None),
            participation: Mutex::new(None),
            copies: copy::Copies::default(),
            copy_status: Mutex::default(),
            abort_catch_up: Notify::new(),
            settings: RwLock::default(),
            hopeless: watch::Sender::new(None),
            started: Instant::now(),
        }
    }

    pub fn standing(&self) -> Arc<Standing> {
        self.standing.read().clone()
    }
    pub fn is_primary(&self) -> bool {
        self.standing.read().writable
    }
    /// Goes by these from now on.
    pub fn set(&self, settings: Settings) {
        self.member.lock().set_offset_fraction(settings.offset_fraction);
        *self.settings.write() = settings;
    }
    fn settings(&self) -> Settings {
        self.settings.read().clone()
    }
    /// Keeps over restarts that a majority has what the log has up to `optime`; a node of its own has nothing to keep.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn note_committed(&self, optime: storage::log::OpTime) -> std::io::Result<()> {
        if !self.commit.is_shared() {
            return Ok(());
        }
        // A copy that has begun meanwhile makes an end of it.
        self.state.change(|k| {
            if !k.copying {
                k.committed = known(optime);
            }
        })
    }
    /// This member cannot go on without somebody's help: whoever runs the node ends it.
    fn give_up(&self, error: document::Error) {
        self.hopeless.send_replace(Some(error));
    }
    /// Returns when it cannot go on, and why.
    pub async fn wait_hopeless(&self) -> document::Error {
        let mut hopeless = self.hopeless.subscribe();
        let why = hopeless.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        match why {
            Some(error) => error,
            // The sender lives as long as the node.
            None => std::future::pending().await,
        }
    }
    /// Installs the observer; a second one would be a programming error and is not used.
    pub fn observe(&self, observer: Arc<dyn StandingObserver>) {
        let _ = self.observer.set(observer);
    }
    /// Installs the way to the other members; once, before the set is resumed.
    pub fn reach_by(&self, peers: Arc<dyn Peers>) {
        let _ = self.peers.set(peers);
    }
    pub fn default_write_concern(&self) -> Option<WriteConcern> {
        self.default_write_concern.lock().clone()
    }
    /// The level of reads that name none.
    pub fn default_read_level(&self) -> Option<ReadLevel> {
        *self.default_read_level.lock()
    }
    pub fn set_default_read_level(&self, level: Option<ReadLevel>) {
        *self.default_read_level.lock() = level;
    }
    pub fn set_default_write_concern(&self, concern: Option<WriteConcern>) {
        *self.default_write_concern.lock() = concern;
    }
    /// How often this member has rolled back, counted from 1.
    pub fn rollback_id(&self) -> i32 {
        self.state.get().rollback_id
    }
    /// What became of this member's elections.
    pub fn election_metrics(&self) -> Document {
        self.look(|m| m.metrics().to_document())
    }
    /// Wakes whenever a position, a member or the commit point changes.
    pub(crate) fn progress(&self) -> watch::Receiver<u64> {
        self.progress.subscribe()
    }
    /// Transactions of which the log has brought a part.
    pub(crate) fn transactions_between(&self) -> Vec<storage::checkpoint::OpenTransaction> {
        self.between.open()
    }
    /// Those of them that are prepared at `until` or before, and have written to the database if one is given.
    pub(crate) fn prepared_between(&self, area: Area<'_>, until: Timestamp) -> Vec<apply::Key> {
        self.between.prepared(area, until)
    }
    /// Where the first entry of any of them begins.
    pub(crate) fn first_between(&self) -> Option<storage::log::Position> {
        self.between.first_position()
    }
    pub(crate) fn is_any_between(&self, keys: &[apply::Key]) -> bool {
        self.between.has_any(keys)
    }
    /// The table of transactions has them from now on.
    pub(crate) fn forget_between(&self) {
        self.between.replace(Vec::new());
    }
    pub(crate) fn add_between(&self, transactions: Vec<storage::checkpoint::OpenTransaction>) {
        self.between.add(transactions);
    }
    fn note_progress(&self) {
        self.progress.send_modify(|n| *n += 1);
    }
    fn peers(&self) -> Result<&Arc<dyn Peers>> {
        self.peers.get().ok_or_else(|| err!(INTERNAL_ERROR, "this node has no way to other members"))
    }
    pub(crate) fn note(&self, text: &str, attributes: Document) {
        if let Some(peers) = self.peers.get() {
            peers.note(text, attributes);
        }
    }
    /// Milliseconds of this process; never 0.
    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64 + 1
    }

    /// Runs `f` on the machine, and publishes what came of it.
    fn with<T>(&self, f: impl FnOnce(&mut Member, u64, f64) -> T) -> T {
        let (now, offset) = (self.now(), runtime::random());
        let out = f(&mut self.member.lock(), now, offset);
        self.publish();
        out
    }
    /// What is known of another member.
    pub fn peer(&self, index: usize) -> Option<protocol::replication::member::Peer> {
        self.look(|m| m.peer(index).cloned())
    }

    /// Looks at the machine.
    pub(crate) fn look<T>(&self, f: impl FnOnce(&Member) -> T) -> T {
        f(&self.member.lock())
    }

    fn publish(&self) {
        let _one = self.publishing.lock();
        let before = self.standing();
        let after = {
            let member = self.member.lock();
            Standing {
                state: member.state(),
                config: member.config().cloned(),
                me: member.me(),
                term: if member.config().is_some() { member.term() } else { -1 },
                primary: member.primary(),
                writable: member.is_writable(),
                stepping_down: member.is_stepping_down(),
                election: *self.election.lock(),
            }
        };
        if *before == after {
            return;
        }
        let after = Arc::new(after);
        *self.standing.write() = after.clone();
        if let Some(observer) = self.observer.get() {
            observer.changed(&before, &after);
        }
        self.note_progress();
    }
}

/// The optime of an entry as the machines know it.
pub fn known(t: OpTime) -> protocol::replication::OpTime {
    match t.ts {
        0 => protocol::replication::OpTime::NONE,
        ts => protocol::replication::OpTime::new(t.term, ts),
    }
}
/// And back.
pub(crate) fn stored(t: protocol::replication::OpTime) -> OpTime {
    OpTime { ts: t.ts, term: t.term }
}

impl Node {
    /// Whether this node may take writes: a standalone, or the primary of its set.
    pub fn is_writable(&self) -> bool {
        !self.is_replica_set() || self.replication.is_primary()
    }

    /// Refuses a write to the oplog on a member that does not lead. To be asked under the commit gate.
    ///
    /// # Errors
    /// NotWritablePrimary (10107).
    pub(crate) fn check_leads(&self) -> Result<()> {
        match self.replication.leads.load(Ordering::SeqCst) {
            true => Ok(()),
            false => bail!(NOT_WRITABLE_PRIMARY, "Not primary so we cannot accept writes"),
        }
    }

    /// `replSetGetStatus`, for `uptime` seconds of this process.
    ///
    /// # Errors
    /// NoReplicationEnabled (76), NotYetInitialized (94), InvalidReplicaSetConfig (93) from a member that stands in no line.
    pub fn set_status(&self, uptime: i64, copy: bool) -> Result<Document> {
        let (standing, config) = self.configured()?;
        match standing.me {
            Some(_) => Ok(status::status(self, &standing, &config, uptime, copy)),
            None => Err(status::removed(self, &standing, uptime)),
        }
    }

    /// The configuration as `replSetGetConfig` shows it.
    ///
    /// # Errors
    /// NoReplicationEnabled (76), NotYetInitialized (94).
    pub fn set_config(&self) -> Result<Document> {
        self.config_document(false)
    }
    /// The same, with the members' `newlyAdded` if asked for.
    ///
    /// # Errors
    /// As [`Node::set_config`].
    pub fn config_document(&self, newly_added: bool) -> Result<Document> {
        let (standing, config) = self.configured()?;
        let mut shown = if newly_added { config.document() } else { config.shown() };
        if config.members().len() == 1 && config.term() != -1 {
            shown.insert("term", standing.term);
        }
        Ok(shown)
    }

    fn configured(&self) -> Result<(Arc<Standing>, Arc<SetConfig>)> {
        if !self.is_replica_set() {
            bail!(NO_REPLICATION_ENABLED, "not running with --replSet");
        }
        let standing = self.replication.standing();
        match standing.config.clone() {
            Some(config) => Ok((standing, config)),
            None => bail!(NOT_YET_INITIALIZED, "no replset config has been received"),
        }
    }

    /// Writes a note into the oplog: `appendOplogNote` and the periodic no-op.
    ///
    /// # Errors
    /// NotWritablePrimary (10107).
    pub fn append_note(&self, op: &Operation, message: Document) -> Result<()> {
        let appended = self.append_noop(message)?;
        self.note_commit(op, &appended);
        Ok(())
    }

    /// Writes the feature compatibility document of a data directory that has none.
    pub async fn ensure_version_document(self: &Arc<Self>, version: &str) -> Result<()> {
        let client = crate::local::LocalClient::new(self.clone());
        if client.find_one(VERSION_NAMESPACE, &doc! { "_id": VERSION_ID })?.is_none() {
            client.put(VERSION_NAMESPACE, &doc! { "_id": VERSION_ID, "version": version }).await?;
        }
        Ok(())
    }

    /// Changes how many bytes of the oplog are kept, and for how many milliseconds whatever their number, here and after
    /// restarts.
    ///
    /// # Errors
    /// A state file that cannot be written.
    pub fn resize_oplog(&self, bytes: Option<u64>, ms: Option<u64>) -> Result<()> {
        let stored = self.replication.state.change(|k| {
            k.oplog_bytes = bytes.or(k.oplog_bytes);
            k.oplog_ms = ms.or(k.oplog_ms);
        });
        stored.map_err(|e| err!(LOG_WRITE_FAILED, "the size of the oplog cannot be stored: {e}"))?;
        bytes.into_iter().for_each(|bytes| self.log.set_retain_bytes(bytes));
        ms.into_iter().for_each(|ms| self.log.set_retain_ms(ms));
        Ok(())
    }

    /// Ends the tasks of replication; the node serves no more.
    pub async fn stop_replication(&self) {
        for task in self.replication.tasks.lock().drain(..) {
            task.abort();
        }
        self.replication.services.stop().await;
    }
}
