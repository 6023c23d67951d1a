//! The replica set of one: its configuration, its state, its elections.
//!
//! ```text
//! started with --replSet:  STARTUP --replSetInitiate--> SECONDARY --election, at once--> PRIMARY
//! restarted, configured:   STARTUP ------------------------------> SECONDARY -> PRIMARY
//! replSetStepDown(force):  PRIMARY -> SECONDARY for the time asked, then an election again
//! ```
//! A member that is alone wins every election it holds. Each election raises the term, which stands in every log entry
//! from then on, in the election id and in the positions shown. The configuration is the one document of
//! `local.system.replset`.
//!
//! Invariant: the state is replaced as a whole, under one mutex, and the observer hears of every change in order.

pub(crate) mod commit;
mod config;
mod services;
mod status;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use commit::CommitPoint;
pub use config::SetConfig;
pub use services::{PrimaryService, PrimaryServices};

use crate::local::LocalClient;
use crate::open::new_primary_message;
use crate::operation::{ReadLevel, WriteConcern};
use crate::{Node, Operation, log_failed};
use document::{Document, Result, bail, doc};
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use storage::log::OpTime;

/// Where the configuration is kept.
pub const CONFIG_NAMESPACE: &str = "local.system.replset";
/// The namespace and `_id` of the feature compatibility document.
pub const VERSION_NAMESPACE: &str = "admin.system.version";
pub const VERSION_ID: &str = "featureCompatibilityVersion";

/// States of a member, with the numbers that `replSetGetStatus` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    Startup = 0,
    Primary = 1,
    Secondary = 2,
    Startup2 = 5,
}

impl MemberState {
    pub fn name(self) -> &'static str {
        match self {
            MemberState::Startup => "STARTUP",
            MemberState::Primary => "PRIMARY",
            MemberState::Secondary => "SECONDARY",
            MemberState::Startup2 => "STARTUP2",
        }
    }
}

/// The last election this member won.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Election {
    pub term: i64,
    pub wall_ms: i64,
    /// Position of the no-op written first in the term.
    pub first: OpTime,
    /// The newest entry when the election was held.
    pub seen: OpTime,
}

/// Everything known of the set at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    pub state: MemberState,
    pub config: Option<Arc<SetConfig>>,
    pub term: i64,
    pub election: Option<Election>,
}

/// Hears of each change of the standing, in order, before whoever made the change goes on.
pub trait StandingObserver: Send + Sync + 'static {
    fn changed(&self, from: &Standing, to: &Standing);
}

/// The replication half of a node. A standalone has one that never leaves STARTUP.
pub struct Replication {
    standing: RwLock<Arc<Standing>>,
    observer: OnceLock<Arc<dyn StandingObserver>>,
    /// One change of the configuration or state at a time.
    changing: tokio::sync::Mutex<()>,
    /// Counts elections and step-downs: a timer set before the newest one does nothing.
    generation: AtomicU64,
    /// What `setDefaultRWConcern` has set.
    default_write_concern: Mutex<Option<WriteConcern>>,
    default_read_level: Mutex<Option<ReadLevel>>,
    pub commit: CommitPoint,
    /// What runs while this node is primary; on a standalone always.
    pub services: PrimaryServices,
}

impl Default for Replication {
    fn default() -> Self {
        let standing = Standing { state: MemberState::Startup, config: None, term: -1, election: None };
        Replication {
            standing: RwLock::new(Arc::new(standing)),
            observer: OnceLock::new(),
            changing: tokio::sync::Mutex::default(),
            generation: AtomicU64::new(0),
            default_write_concern: Mutex::default(),
            default_read_level: Mutex::default(),
            commit: CommitPoint::default(),
            services: PrimaryServices::default(),
        }
    }
}

impl Replication {
    pub fn standing(&self) -> Arc<Standing> {
        self.standing.read().clone()
    }
    pub fn is_primary(&self) -> bool {
        self.standing.read().state == MemberState::Primary
    }
    /// Installs the observer; a second one would be a programming error and is not used.
    pub fn observe(&self, observer: Arc<dyn StandingObserver>) {
        let _ = self.observer.set(observer);
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

    /// Callers hold `changing`.
    fn replace(&self, change: impl FnOnce(&mut Standing)) {
        let before = self.standing();
        let mut after = (*before).clone();
        change(&mut after);
        let after = Arc::new(after);
        *self.standing.write() = after.clone();
        if before != after
            && let Some(observer) = self.observer.get()
        {
            observer.changed(&before, &after);
        }
    }
}

impl Node {
    /// Whether this node may take writes: a standalone, or the primary of its set.
    pub fn is_writable(&self) -> bool {
        !self.is_replica_set() || self.replication.is_primary()
    }

    /// Takes up the configuration of an earlier life and becomes primary; false when there is none.
    ///
    /// # Errors
    /// An unreadable configuration; one of a set with another name (93).
    pub async fn resume_set(self: &Arc<Self>) -> Result<bool> {
        let Some(name) = &self.options.replica_set else { return Ok(false) };
        let client = LocalClient::new(self.clone());
        let Some(stored) = client.find_one(CONFIG_NAMESPACE, &Document::new())? else { return Ok(false) };
        let config = SetConfig::parse(&stored)?;
        if config.name() != name {
            bail!(
                INVALID_REPLICA_SET_CONFIG,
                "Local replica set configuration document reports set name of {}, but command line reports {name}",
                config.name()
            );
        }
        let _changing = self.replication.changing.lock().await;
        self.install(Arc::new(config));
        self.elect().await?;
        Ok(true)
    }

    /// Makes the set and becomes its primary. The configuration is durable when this returns.
    ///
    /// # Errors
    /// NoReplicationEnabled (76), AlreadyInitialized (23), InvalidReplicaSetConfig (93).
    pub async fn initiate(self: &Arc<Self>, config: SetConfig) -> Result<()> {
        let Some(name) = &self.options.replica_set else {
            bail!(NO_REPLICATION_ENABLED, "This node was not started with replication enabled.")
        };
        let _changing = self.replication.changing.lock().await;
        if self.replication.standing().config.is_some() {
            bail!(ALREADY_INITIALIZED, "already initialized");
        }
        if config.name() != name {
            bail!(
                INVALID_REPLICA_SET_CONFIG,
                "Attempting to initiate a replica set with name {}, but command line reports {name}; rejecting",
                config.name()
            );
        }
        self.store_config(&config).await?;
        let appended = self.append_noop(doc! { "msg": "initiating set" });
        self.log.wait_durable(appended.position).await.map_err(log_failed)?;
        self.install(Arc::new(config));
        self.elect().await
    }

    /// Replaces the configuration by one of a higher version; `force` raises the version by itself.
    ///
    /// # Errors
    /// NewReplicaSetConfigurationIncompatible (103), NotYetInitialized (94), NotWritablePrimary (10107).
    pub async fn reconfigure(self: &Arc<Self>, mut config: SetConfig, force: bool) -> Result<()> {
        let _changing = self.replication.changing.lock().await;
        let standing = self.replication.standing();
        let Some(current) = standing.config.clone() else {
            bail!(NOT_YET_INITIALIZED, "Node not yet initialized; use the replSetInitiate command")
        };
        if !force && standing.state != MemberState::Primary {
            bail!(
                NOT_WRITABLE_PRIMARY,
                "New config is rejected :: caused by :: replSetReconfig should only be run on a writable PRIMARY. \
                 Current state {};",
                standing.state.name()
            );
        }
        if force {
            // Far enough that no configuration another member made meanwhile is newer.
            config.set_version(config.version().max(current.version()) + 10_000);
        }
        config.follow(&current)?;
        self.store_config(&config).await?;
        let note = doc! { "msg": "Reconfig set", "version": config.version() };
        self.append_noop(note);
        self.replication.replace(|s| s.config = Some(Arc::new(config)));
        Ok(())
    }

    /// Steps down for `seconds`, then holds an election again.
    ///
    /// # Errors
    /// NotWritablePrimary (10107) when this is no primary.
    pub async fn step_down(self: &Arc<Self>, seconds: u64) -> Result<()> {
        let _changing = self.replication.changing.lock().await;
        if !self.replication.is_primary() {
            bail!(NOT_WRITABLE_PRIMARY, "not primary so can't step down");
        }
        self.replication.replace(|s| s.state = MemberState::Secondary);
        self.replication.commit.end_reign();
        self.replication.services.stop().await;
        self.elect_after(seconds);
        Ok(())
    }

    /// Holds off elections for `seconds`; 0 ends the wait now.
    ///
    /// # Errors
    /// NotSecondary (95) on a primary.
    pub async fn freeze_elections(self: &Arc<Self>, seconds: u64) -> Result<()> {
        let _changing = self.replication.changing.lock().await;
        if self.replication.is_primary() {
            bail!(NOT_SECONDARY, "cannot freeze node when primary or running for election. state: Primary");
        }
        match seconds {
            0 => self.elect().await?,
            _ => self.elect_after(seconds),
        }
        Ok(())
    }

    /// Becomes primary now if it is not: `replSetStepUp`.
    pub async fn step_up(self: &Arc<Self>) -> Result<()> {
        let _changing = self.replication.changing.lock().await;
        if self.replication.standing().config.is_none() {
            bail!(NOT_YET_INITIALIZED, "no replset config has been received");
        }
        match self.replication.is_primary() {
            true => Ok(()),
            false => self.elect().await,
        }
    }

    /// `replSetGetStatus`, for `uptime` seconds of this process.
    ///
    /// # Errors
    /// NoReplicationEnabled (76), NotYetInitialized (94).
    pub fn set_status(&self, uptime: i64) -> Result<Document> {
        let (standing, config) = self.configured()?;
        Ok(status::status(self, &standing, &config, uptime))
    }

    /// The configuration as `replSetGetConfig` shows it.
    ///
    /// # Errors
    /// NoReplicationEnabled (76), NotYetInitialized (94).
    pub fn set_config(&self) -> Result<Document> {
        let (standing, config) = self.configured()?;
        Ok(config.document_in_term(standing.term))
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
    pub fn append_note(&self, op: &Operation, message: Document) {
        let appended = self.append_noop(message);
        op.note_commit(Some(&appended));
    }

    /// Writes the feature compatibility document of a data directory that has none.
    pub async fn ensure_version_document(self: &Arc<Self>, version: &str) -> Result<()> {
        let client = LocalClient::new(self.clone());
        if client.find_one(VERSION_NAMESPACE, &doc! { "_id": VERSION_ID })?.is_none() {
            client.put(VERSION_NAMESPACE, &doc! { "_id": VERSION_ID, "version": version }).await?;
        }
        Ok(())
    }

    async fn store_config(self: &Arc<Self>, config: &SetConfig) -> Result<()> {
        let client = LocalClient::new(self.clone());
        client.put(CONFIG_NAMESPACE, &config.document_in_term(self.log.term())).await
    }

    fn install(&self, config: Arc<SetConfig>) {
        self.replication.replace(|s| {
            s.config = Some(config);
            s.state = MemberState::Startup2;
            s.term = self.log.term();
        });
        self.replication.replace(|s| s.state = MemberState::Secondary);
    }

    /// Wins an election: the first after the start in the term that opening the log has raised, any later one in a new
    /// term.
    /// The term is on disk before anybody sees a primary of it: after a crash no second one can have the same.
    ///
    /// # Errors
    /// A failed log.
    async fn elect(&self) -> Result<()> {
        self.replication.generation.fetch_add(1, Ordering::SeqCst);
        if self.replication.standing().election.is_some() {
            self.log.set_term(self.log.term() + 1);
        }
        let seen = self.log.last_optime();
        let appended = self.append_noop(new_primary_message());
        self.log.wait_durable(appended.position).await.map_err(log_failed)?;
        let term = self.log.term();
        let election = Election { term, wall_ms: self.now_ms(), first: appended.first, seen };
        self.replication.services.recover().await?;
        self.replication.replace(|s| {
            s.state = MemberState::Primary;
            s.term = term;
            s.election = Some(election);
        });
        self.replication.services.start();
        Ok(())
    }

    fn elect_after(self: &Arc<Self>, seconds: u64) {
        let generation = self.replication.generation.fetch_add(1, Ordering::SeqCst) + 1;
        let node = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            let Some(node) = node.upgrade() else { return };
            let _changing = node.replication.changing.lock().await;
            // Another change in between has its own timer, or none.
            if node.replication.generation.load(Ordering::SeqCst) == generation && node.log.health().is_ok() {
                // A failed log is what every later command says.
                drop(node.elect().await);
            }
        });
    }
}
