//! Bringing placement from the config server into the latched state, and the critical sections around it.
//!
//! Readings of one namespace are made and installed one after another, so an older reading never replaces a newer.

use super::ShardRole;
use super::critical_section::{Phase, Section};
use super::identity::is_placed;
use super::persisted::{AsOf, READ_ATTEMPTS};
use super::placement::{CollectionPlacement, DatabaseState, State};
use super::statistics::add;
use crate::routing::{DatabaseEntry, Routing};
use document::error::{STALE_DB_VERSION, STALE_SHARD_VERSION};
use document::{Document, Error, Result, Value, bail, codes, doc};
use futures::future::BoxFuture;
use node::Operation;
use node::namespace::{Learner, SlotState};
use protocol::refresh::{Known, is_news, replaces};
use protocol::version::{DatabaseVersion, ShardVersion};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The fail point that keeps a shard from learning the placement it was told of.
pub(super) const SKIP_REFRESH: &str = "skipShardFilteringMetadataRefresh";

/// The placement in a slot, if it is a shard's.
pub fn placement_of(state: &SlotState) -> Option<&CollectionPlacement> {
    state.placement.as_ref().and_then(|p| p.as_any().downcast_ref::<CollectionPlacement>())
}

/// A reading as it is compared with what is installed.
pub(super) fn known_of(routing: &Routing) -> Known {
    match routing {
        Routing::Unsharded => Known::Unsharded,
        Routing::Sharded(table) => Known::Sharded(table.collection_version()),
    }
}

/// What becomes of a reading while the config server cannot be reached.
#[derive(Clone, Copy)]
enum Unreached {
    Fail,
    /// What was written down last is good enough.
    Remember,
}

/// Brings in what a statement of a transaction, or a read of a secondary, finds unknown.
pub(super) struct Refreshing(pub(super) Weak<ShardRole>);

impl Learner for Refreshing {
    fn learn<'a>(&'a self, stale: &'a Error) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(role) = self.0.upgrade() {
                drop(role.learn_before(stale).await);
            }
        })
    }
    fn recover<'a>(&'a self, unknown: &'a Error) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            // What a secondary knows is void again and again beside migrations, so it learns before it refuses a read: the router,
            // which it would send back, comes too late as often as not.
            let Some(role) = self.0.upgrade().filter(|role| !role.leads()) else { return Ok(false) };
            match role.learn_before(unknown).await {
                Err(e) if e.code != codes::FAILED_TO_SATISFY_READ_PREFERENCE => Ok(false),
                learned => learned,
            }
        })
    }
}

impl ShardRole {
    /// What is installed for a collection; `None` where nothing is placed.
    pub fn placement(&self, ns: &str) -> Option<CollectionPlacement> {
        placement_of(&self.node.namespaces.slot(ns).read_unchecked()).cloned()
    }
    /// Edits the placement under the latch.
    fn edit<T>(&self, ns: &str, f: impl FnOnce(&mut CollectionPlacement) -> T) -> Option<T> {
        let slot = self.node.namespaces.slot(ns);
        let mut state = slot.write_unchecked();
        let mut placement = placement_of(&state)?.clone();
        let out = f(&mut placement);
        state.placement = Some(Arc::new(placement));
        Some(out)
    }
    pub(super) fn flight(&self, name: &str) -> Arc<tokio::sync::Mutex<()>> {
        self.flights.lock().of(name)
    }

    /// Takes in a stale error before it goes back to the router: this shard learns what it may have missed. Failures to
    /// learn are left for the next request.
    pub async fn on_stale(&self, error: &Error) {
        let Some(info) = error.info.as_deref() else { return };
        if self.identity().is_none() || self.node.failpoints.should(SKIP_REFRESH) {
            return;
        }
        if error.is(STALE_SHARD_VERSION) {
            add(&self.statistics.stale_config_errors, 1);
        }
        // A secondary that knew nothing has tried before it refused.
        let wanted = info.contains_key("vWanted");
        if wanted || self.leads() {
            drop(self.learn_from(error, info).await);
        }
    }
    /// False when the error names nothing that is there to be learned.
    async fn learn_from(&self, error: &Error, info: &Document) -> Result<bool> {
        if error.is(STALE_SHARD_VERSION) {
            let Some(ns) = info.get_str("ns").filter(|ns| is_placed(ns)) else { return Ok(false) };
            let received = info.get_document("vReceived").and_then(ShardVersion::from_document);
            let flight = self.flight(ns);
            let _one = flight.lock().await;
            let installed = self.placement(ns).map_or(Known::Unknown, |p| p.known());
            if is_news(installed, received) {
                self.refresh_in_flight(ns, Unreached::Remember).await?;
            }
            return Ok(true);
        }
        if error.is(STALE_DB_VERSION) {
            let Some(db) = info.get_str("db") else { return Ok(false) };
            let received = info.get_document("vReceived").and_then(DatabaseVersion::from_document);
            // Who waits for another's reading has what that one learns.
            let flight = self.flight(db);
            let _one = flight.lock().await;
            let known = self.database(db);
            let news = match (&known, received) {
                (Some(known), Some(received)) => known.version.order(&received).is_lt(),
                _ => true,
            };
            return Ok(!news || self.refresh_database_in_flight(db).await?.is_some());
        }
        Ok(false)
    }

    /// As [`ShardRole::on_stale`], before anything is refused. False when nothing can be learned.
    async fn learn_before(&self, error: &Error) -> Result<bool> {
        match error.info.as_deref() {
            Some(info) if !self.node.failpoints.should(SKIP_REFRESH) => self.learn_from(error, info).await,
            _ => Ok(false),
        }
    }

    /// [`ShardRole::on_stale`] for a write's reply, which carries the stale error among its `writeErrors`.
    pub async fn on_reply(&self, reply: &Document) {
        for e in reply.get_array("writeErrors").into_iter().flatten().filter_map(Value::as_document) {
            let code = e.get_i64("code").unwrap_or(0) as i32;
            let error = Error::new(code, "");
            if !error.is(STALE_SHARD_VERSION | STALE_DB_VERSION) {
                continue;
            }
            if let Some(info) = e.get_document("errInfo") {
                // One is enough: the others of the reply were refused for the same reason.
                return self.on_stale(&error.with_info(info.clone())).await;
            }
        }
    }

    /// Reads a collection's placement, as the config server has it now, and installs it.
    ///
    /// # Errors
    /// Those of asking the config server; what was installed stays.
    pub async fn refresh_collection(&self, ns: &str) -> Result<Routing> {
        let flight = self.flight(ns);
        let _one = flight.lock().await;
        self.refresh_in_flight(ns, Unreached::Fail).await
    }
    /// As [`ShardRole::refresh_collection`], for what requests are checked by: what was written down will do while the config
    /// server cannot be reached.
    pub(super) async fn refresh_or_remember(&self, ns: &str) -> Result<Routing> {
        let flight = self.flight(ns);
        let _one = flight.lock().await;
        self.refresh_in_flight(ns, Unreached::Remember).await
    }
    async fn refresh_in_flight(&self, ns: &str, unreached: Unreached) -> Result<Routing> {
        for _ in 0..READ_ATTEMPTS {
            let forgotten = self.forgotten(ns);
            let leads = self.leads();
            let (routing, as_of) = match leads {
                true => {
                    let as_of = self.signals.now(ns);
                    let read = self.cache.refresh_collection(ns).await;
                    let read = match unreached {
                        Unreached::Fail => read,
                        Unreached::Remember => self.or_remembered(ns, read),
                    };
                    (read?, as_of)
                }
                false => self.learn_collection(ns).await?,
            };
            if self.install(ns, &routing, as_of, forgotten) {
                self.persist_later(ns, &routing, leads);
                return Ok(routing);
            }
        }
        bail!(CONFLICTING_OPERATION_IN_PROGRESS, "the placement of {ns} kept changing while it was read")
    }
    /// Writes down what a primary has read.
    fn persist_later(&self, ns: &str, routing: &Routing, leads: bool) {
        if let Some(role) = self.strong().filter(|_| leads) {
            let (ns, routing) = (ns.to_string(), routing.clone());
            // A step-down ends this, and the next primary writes what it reads.
            self.spawn(async move {
                drop(role.persist_installed(&Operation::internal(), &ns, &routing).await);
            });
        }
    }
    /// How often what is known of a collection was forgotten: noted before it is read, and given to [`ShardRole::install`].
    pub(super) fn forgotten(&self, ns: &str) -> u64 {
        self.placement(ns).map_or(0, |p| p.forgotten)
    }
    /// What the config server says. While it cannot be reached, what was written down for the collection that is here: whatever
    /// takes a range away from this shard has made that void before (`ShardRole::signal_secondaries`). Of other shards, and of
    /// what came to this one since, it may tell nothing: requests are checked by it, and nothing is planned by it.
    fn or_remembered(&self, ns: &str, read: Result<Routing>) -> Result<Routing> {
        let unreached = match read {
            Err(e)
                if e.is(document::error::NETWORK) || e.code == codes::FAILED_TO_SATISFY_READ_PREFERENCE =>
            {
                e
            }
            answer => return answer,
        };
        let here = self.node.namespaces.slot(ns).read_unchecked().collection.as_ref().map(|c| c.uuid());
        match self.persisted_collection(ns) {
            Ok(Some(Routing::Sharded(table))) if here == Some(table.uuid) => Ok(Routing::Sharded(table)),
            _ => Err(unreached),
        }
    }
    /// Installs what was read if it is newer; false where what was known has been forgotten since (`forgotten` tells the times before):
    /// a change of the catalog may have come in between, and what was read be from before it. The section, if one is entered, stays.
    pub(super) fn install(&self, ns: &str, routing: &Routing, as_of: AsOf, forgotten: u64) -> bool {
        let read = known_of(routing);
        let mut is_late = false;
        let installed = self.edit(ns, |placement| {
            is_late = placement.forgotten != forgotten;
            if is_late || !replaces(placement.known(), read) {
                return None;
            }
            if let Routing::Sharded(table) = routing {
                // What is written here from now on is later than the ranges' coming: reads of the past look for it here.
                self.node.log.advance_clock(table.newest_on(&placement.shard).as_u64());
            }
            *placement = placement.with(routing);
            placement.as_of = Some(as_of);
            match &placement.state {
                State::Sharded { filter, .. } => Some(filter.clone()),
                _ => None,
            }
        });
        if let Some(Some(filter)) = installed {
            let mut filters = self.filters.lock();
            let list = filters.entry(ns.to_string()).or_default();
            list.retain(|f| f.strong_count() > 0);
            list.push(Arc::downgrade(&filter));
        }
        !is_late
    }
    /// Asks the catalog whether this shard owns nothing of the incarnation `uuid`, which is not here.
    ///
    /// # Errors
    /// OperationFailed (96).
    pub(super) async fn require_no_chunks(&self, uuid: [u8; 16], ns: &str) -> Result<()> {
        let own = self.require_identity()?.name.clone();
        let of_own = doc! { "uuid": Value::uuid(uuid), "shard": &*own };
        match self.remote.config_has("chunks", of_own).await? {
            false => Ok(()),
            true => {
                bail!(OPERATION_FAILED, "shard {own} owns chunks of {ns} and does not have the collection")
            }
        }
    }
    /// Forgets what is known of a collection, and what is being read of it: the next versioned request makes the shard ask.
    pub fn clear_placement(&self, ns: &str) {
        self.edit(ns, |p| {
            p.state = State::Unknown;
            p.forgotten += 1;
        });
        self.cache.invalidate(ns);
    }
    /// Whether somebody still reads `min..max` of this namespace through a filter that owns a part of it.
    pub(crate) fn is_read(&self, ns: &str, min: &[u8], max: &[u8]) -> bool {
        let mut filters = self.filters.lock();
        let Some(list) = filters.get_mut(ns) else { return false };
        list.retain(|f| f.strong_count() > 0);
        list.iter().filter_map(|f| f.upgrade()).any(|f| f.owns_part_of(min, max))
    }

    /// The database's entry as installed.
    pub fn database(&self, db: &str) -> Option<Arc<DatabaseEntry>> {
        self.database_state(db)?.known().cloned()
    }
    /// The section that is entered on the database.
    pub(super) fn database_section(&self, db: &str) -> Option<Section> {
        self.database_state(db)?.section
    }
    /// Whether something else is installed than was read.
    pub(super) fn has_other_database(&self, db: &str, read: Option<&DatabaseEntry>) -> bool {
        let installed = self.database_state(db);
        installed.is_some_and(|s| s.known().map(|d| d.version) != read.map(|d| d.version))
    }
    fn database_state(&self, db: &str) -> Option<DatabaseState> {
        let placement = self.node.namespaces.database(db).placement()?;
        placement.as_any().downcast_ref::<DatabaseState>().cloned()
    }
    fn edit_database<T>(&self, db: &str, f: impl FnOnce(&mut DatabaseState) -> T) -> Option<T> {
        self.node.namespaces.database(db).edit_placement(|placement| {
            let mut state = placement.as_ref()?.as_any().downcast_ref::<DatabaseState>()?.clone();
            let out = f(&mut state);
            *placement = Some(Arc::new(state));
            Some(out)
        })
    }
    /// Reads a database's primary and version and installs them.
    pub async fn refresh_database(&self, db: &str) -> Result<Option<Arc<DatabaseEntry>>> {
        let flight = self.flight(db);
        let _one = flight.lock().await;
        self.refresh_database_in_flight(db).await
    }
    async fn refresh_database_in_flight(&self, db: &str) -> Result<Option<Arc<DatabaseEntry>>> {
        let leads = self.leads();
        let (entry, as_of) = match leads {
            true => {
                let as_of = self.signals.now(db);
                (self.cache.refresh_database(db).await?, as_of)
            }
            false => self.learn_database(db).await?,
        };
        self.edit_database(db, |state| {
            state.entry = entry.clone();
            state.as_of = Some(as_of);
        });
        if let Some(role) = self.strong().filter(|_| leads) {
            let (db, entry) = (db.to_string(), entry.clone());
            self.spawn(async move { drop(role.persist_installed_database(&db, entry.as_deref()).await) });
        }
        Ok(entry)
    }
    pub fn clear_database(&self, db: &str) {
        self.edit_database(db, |s| s.entry = None);
        self.cache.invalidate_database(db);
    }

    /// Enters a critical section on a collection: from the return on, versioned writes wait. Waits first for the
    /// transactions that have touched it, and for a section that is entered already.
    ///
    /// # Errors
    /// LockTimeout (24); ConflictingOperationInProgress (117) when another section does not end in time.
    pub async fn enter_critical_section(&self, ns: &str, reason: &str, timeout: Duration) -> Result<()> {
        let slot = self.node.namespaces.slot(ns);
        let until = runtime::Instant::now() + timeout;
        loop {
            let exclusive = self.node.intent_exclusive(&slot, timeout, reason).await?;
            let refused = match self.block(ns, Phase::CatchUp, reason) {
                Ok(()) => return Ok(()),
                Err(e) => e,
            };
            drop(exclusive);
            let Some(section) = self.placement(ns).and_then(|p| p.section) else { continue };
            let mut signal = section.signal();
            drop(section);
            if tokio::time::timeout_at(until, signal.wait_for(|ended| *ended)).await.is_err() {
                return Err(refused);
            }
        }
    }
    /// Enters a section at once, in the given phase: for what is found at start.
    pub fn block(&self, ns: &str, phase: Phase, reason: &str) -> Result<()> {
        let entered = self.edit(ns, |p| match &p.section {
            Some(section) => Err(section.reason.clone()),
            None => {
                p.section = Some(Section::new(phase, reason));
                Ok(())
            }
        });
        match entered {
            None => Ok(()),
            // The end of a reign ends its sections, and may have come just before.
            Some(Ok(())) => self.require_reign().inspect_err(|_| self.leave_section_of(ns, reason)),
            Some(Err(other)) => {
                bail!(CONFLICTING_OPERATION_IN_PROGRESS, "{ns} is already in a critical section: {other}")
            }
        }
    }
    /// Reads wait as well from here.
    pub fn block_reads(&self, ns: &str) {
        self.edit(ns, |p| p.section = p.section.as_ref().map(|s| s.at(Phase::Commit)));
    }
    /// Leaves the section and wakes those who waited. Without one nothing happens.
    pub fn leave_critical_section(&self, ns: &str) {
        if let Some(Some(section)) = self.edit(ns, |p| p.section.take()) {
            section.end();
        }
    }
    /// Leaves the section if it was entered for this reason.
    pub(crate) fn leave_section_of(&self, ns: &str, reason: &str) {
        let own = |section: &mut Section| *section.reason == *reason;
        if let Some(Some(section)) = self.edit(ns, |p| p.section.take_if(own)) {
            section.end();
        }
    }
    /// As [`ShardRole::block`], taking over from another that is entered, which blocks no less than it did: who waits for
    /// that one waits for this one.
    pub(crate) fn block_instead(&self, ns: &str, phase: Phase, reason: &str) {
        self.edit(ns, |p| {
            let mut section = p.section.take().unwrap_or_else(|| Section::new(phase, reason));
            section.reason = reason.into();
            p.section = Some(section);
        });
    }
    pub fn in_critical_section(&self, ns: &str) -> bool {
        self.placement(ns).is_some_and(|p| p.section.is_some())
    }

    /// As for collections: versioned requests of a database wait.
    pub fn enter_database_section(&self, db: &str, phase: Phase, reason: &str) -> Result<()> {
        let entered = self.edit_database(db, |s| match &s.section {
            Some(other) => Err(other.reason.clone()),
            None => {
                s.section = Some(Section::new(phase, reason));
                Ok(())
            }
        });
        match entered {
            None => Ok(()),
            Some(Ok(())) => self.require_reign().inspect_err(|_| self.leave_database_section(db)),
            Some(Err(other)) => {
                bail!(CONFLICTING_OPERATION_IN_PROGRESS, "{db} is already in a critical section: {other}")
            }
        }
    }
    pub fn block_database_reads(&self, db: &str) {
        self.edit_database(db, |s| s.section = s.section.as_ref().map(|s| s.at(Phase::Commit)));
    }
    pub fn leave_database_section(&self, db: &str) {
        if let Some(Some(section)) = self.edit_database(db, |s| s.section.take()) {
            section.end();
        }
    }
}
