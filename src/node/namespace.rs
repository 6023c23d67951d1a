//! Namespaces: a slot for each, whether or not the collection exists.
//!
//! A slot has a short *latch* over its data and placement, and a long *intent lock*. A database has a latch over its
//! version. Order of acquisition: commit gate, database latch, namespace latches (by namespace order where several),
//! session table, log.
//!
//! Invariant: a root is never read without its latch. No latch is held across an await: the guards are not `Send`,
//! and the accessors take closures.
//!
//! What a request was sent for (its shard or database version) is compared with what is in force *under the same
//! latch* as the data it then reads or writes. A request that meets a critical section lets go of the latch, waits
//! for the section to end, and checks again.

use crate::holders::{Held, Holders, shown};
use crate::operation::{Operation, Received};
use crate::ranges::{Kept, Ranges};
use crate::standstill::Standstill;
use crate::write::extras::{Capped, Validator};
use arc_swap::ArcSwap;
use document::{Collation, Doc, DocBuf, Error, Result, Timestamp, err, meter};
use futures::future::BoxFuture;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use protocol::version::DatabaseVersion;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use storage::Collection;
use tokio::sync::{Notify, watch};

/// What a request wants of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// Why a request may not use the data now.
pub enum Refusal {
    /// The router's knowledge is stale, or ours is.
    Stale(Error),
    /// This node knows nothing to compare with: the same error, which it may avoid by learning first.
    Unknown(Error),
    /// A critical section is entered; the receiver sees a change when it ends.
    CriticalSection(watch::Receiver<bool>),
}

/// What a shard knows of the placement of one collection: implemented in `sharding`, absent elsewhere.
pub trait Placement: Send + Sync + 'static {
    /// Compares what the router believed with what is in force. Called under the namespace's latch.
    fn check(&self, received: &Received, access: Access) -> std::result::Result<(), Refusal>;
    /// The filter of documents this shard holds but does not own; `None` when everything here is owned.
    fn filter(&self) -> Option<Arc<dyn OwnershipFilter>>;
    /// The filter as it was at a time in the past, for reads of that time.
    ///
    /// # Errors
    /// StaleChunkHistory (250) when nobody knows any more.
    fn at(&self, time: Timestamp) -> Result<Option<Arc<dyn Placement>>> {
        let _ = time;
        Ok(None)
    }
    /// Whether something is owned here that has come after `time`: what began before does not see it here, nor where it was.
    fn came_after(&self, time: Timestamp) -> bool {
        let _ = time;
        false
    }
    /// Whether nothing is lost with it that would not be read again, when the namespace holds nothing here.
    fn is_forgettable(&self) -> bool {
        false
    }
    fn as_any(&self) -> &dyn Any;
}

/// Is this document in a chunk this shard owns? An immutable value: a cursor keeps the one it began with.
pub trait OwnershipFilter: Send + Sync + 'static {
    fn owns(&self, doc: Doc<'_>) -> bool;
    /// The paths by which it tells what is owned.
    fn paths(&self) -> Vec<String>;
    /// Whether two versions of a document have one shard key.
    fn same_key(&self, old: Doc<'_>, new: Doc<'_>) -> bool {
        self.document_key(old).bytes() == self.document_key(new).bytes()
    }
    /// The field of the shard key that is an array in this document, or below one.
    fn array_in_key(&self, _doc: Doc<'_>) -> Option<String> {
        None
    }
    /// `{<shard key fields>, _id}` of a document, paths as names: what log entries name it by.
    fn document_key(&self, doc: Doc<'_>) -> DocBuf;
}

/// What the latch of a namespace guards.
#[derive(Default)]
pub struct SlotState {
    pub collection: Option<Collection>,
    /// A view's definition `{viewOn, pipeline, collation}`; a namespace has a collection or a view.
    pub view: Option<Arc<crate::view::View>>,
    /// Derived from the collection's options; kept by [`SlotState::install`].
    pub validator: Option<Arc<Validator>>,
    pub capped: Option<Capped>,
    /// `changeStreamPreAndPostImages`: the log keeps documents as they were before a change.
    pub keeps_images: bool,
    /// The default collation of what stands here; also read without the latch ([`Slot::collation`]).
    collation: Arc<ArcSwap<Collation>>,
    /// The epoch of node snapshots in which it was last changed; see [`crate::snapshots`].
    pub(crate) changed_in: u64,
    pub placement: Option<Arc<dyn Placement>>,
}

impl SlotState {
    /// Puts a collection into the slot, with what its options ask of writes.
    pub fn install(&mut self, collection: Collection) {
        self.collection = Some(collection);
        self.heed_options();
    }
    /// Derives again what the collection's options ask of writes.
    pub fn heed_options(&mut self) {
        let Some(collection) = &self.collection else { return };
        let options = &collection.meta().options;
        // Options were checked when they were given; an unreadable validator of an older log refuses nothing.
        self.validator = Validator::of(options).unwrap_or(None);
        self.capped = Capped::of(options);
        self.collation.store(Arc::new(collection.collation().clone()));
        self.keeps_images =
            options.get_document("changeStreamPreAndPostImages").and_then(|d| d.get_bool("enabled"))
                == Some(true);
    }
    /// Takes the collection out of the slot.
    pub fn uninstall(&mut self) -> Option<Collection> {
        (self.validator, self.capped, self.keeps_images) = (None, None, false);
        let collection = self.collection.take()?;
        self.collation.store(Arc::default());
        Some(collection)
    }
    /// Puts a view into the slot, or takes it out.
    pub fn set_view(&mut self, view: Option<Arc<crate::view::View>>) {
        let collation = view.as_ref().map(|v| v.collation.clone()).unwrap_or_default();
        self.collation.store(Arc::new(collation));
        self.view = view;
    }
}

/// One namespace.
pub struct Slot {
    pub ns: String,
    pub database: Arc<DatabaseSlot>,
    latch: RwLock<SlotState>,
    /// Shared by transactions for their whole life; exclusive for DDL, for publishing an index and for entering a
    /// critical section.
    intent: Arc<tokio::sync::RwLock<()>>,
    /// Who holds it exclusively.
    changers: Holders,
    /// See [`Slot::collation`].
    collation: Arc<ArcSwap<Collation>>,
    /// Shared by updates and deletes of many documents while they run; exclusive, for a moment, when a range is about
    /// to leave. Nothing is waited for by who holds it exclusively.
    pub ranges: Ranges,
    /// Wakes those who follow a capped collection when it changes, still under the latch.
    pub(crate) written: Notify,
    standstill: Arc<Standstill>,
    learner: Arc<OnceLock<Arc<dyn Learner>>>,
}

/// The intent lock of a namespace, held exclusively.
pub type Exclusive = Held<tokio::sync::OwnedRwLockWriteGuard<()>>;

/// What a write that does not wait has met.
pub(crate) enum Met<T> {
    Data(T),
    Section(watch::Receiver<bool>),
}

impl<T> Met<T> {
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Met<U> {
        match self {
            Met::Data(data) => Met::Data(f(data)),
            Met::Section(signal) => Met::Section(signal),
        }
    }
}

/// A database's placement on a shard.
pub trait DatabasePlacement: Send + Sync + 'static {
    fn check(&self, received: &DatabaseVersion, access: Access) -> std::result::Result<(), Refusal>;
    fn as_any(&self) -> &dyn Any;
}

/// Learns what a shard does not know yet of where data belongs: implemented in `sharding`, absent elsewhere.
pub trait Learner: Send + Sync + 'static {
    /// Takes in a stale error: reads anew what this node may have missed. What cannot be read stays as it is.
    fn learn<'a>(&'a self, stale: &'a Error) -> BoxFuture<'a, ()>;
    /// Learns, for a read, what this node turned out to know nothing of, and waits for that as long as it takes. False where
    /// it leaves that to the next request: then the read is refused.
    ///
    /// # Errors
    /// FailedToSatisfyReadPreference (133) when those who could be asked have not been there for long.
    fn recover<'a>(&'a self, unknown: &'a Error) -> BoxFuture<'a, Result<bool>>;
}

/// How often a read has its node learn, if what it learned is void each time before the read comes to look.
const RECOVERIES_MAX: usize = 100;

#[derive(Default)]
pub struct DatabaseSlot {
    pub name: String,
    latch: RwLock<Option<Arc<dyn DatabasePlacement>>>,
}

impl DatabaseSlot {
    pub fn placement(&self) -> Option<Arc<dyn DatabasePlacement>> {
        self.latch.read().clone()
    }
    pub fn set_placement(&self, placement: Option<Arc<dyn DatabasePlacement>>) {
        *self.latch.write() = placement;
    }
    /// Changes the placement under the exclusive latch.
    pub fn edit_placement<T>(&self, f: impl FnOnce(&mut Option<Arc<dyn DatabasePlacement>>) -> T) -> T {
        f(&mut self.latch.write())
    }
}

impl Slot {
    /// The default collation of the collection or view as it is at this moment, without the latch. What is parsed by it
    /// stays right whatever replaces the collection: plans compare it with that of each index.
    pub fn collation(&self) -> Collation {
        (**self.collation.load()).clone()
    }
    /// The UUID of the collection that it has now.
    pub fn uuid(&self) -> Option<[u8; 16]> {
        self.read_unchecked().collection.as_ref().map(|c| c.uuid())
    }
    /// Whether it has the collection of this UUID now.
    pub fn holds(&self, uuid: [u8; 16]) -> bool {
        self.uuid() == Some(uuid)
    }
    /// Latches shared, without a version check: for the node's own needs (checkpoints, statistics, recovery).
    pub fn read_unchecked(&self) -> RwLockReadGuard<'_, SlotState> {
        self.latch.read()
    }
    /// Latches exclusively, without a version check. The caller holds the commit gate if it changes data.
    pub fn write_unchecked(&self) -> RwLockWriteGuard<'_, SlotState> {
        self.latch.write()
    }

    fn check(
        &self,
        state: &SlotState,
        database: Option<&dyn DatabasePlacement>,
        received: &Received,
        access: Access,
    ) -> std::result::Result<(), Refusal> {
        self.standstill.check(received, access)?;
        if let (Some(version), Some(placement)) = (&received.database, database) {
            placement.check(version, access)?;
        }
        match &state.placement {
            Some(placement) => placement.check(received, access),
            None => Ok(()),
        }
    }

    fn holds_something(&self) -> bool {
        let Some(state) = self.latch.try_read() else { return true };
        let known = |p: &Arc<dyn Placement>| Arc::strong_count(p) > 1 || !p.is_forgettable();
        state.collection.is_some() || state.view.is_some() || state.placement.as_ref().is_some_and(known)
    }

    /// Runs `f` under the shared latch, with the versions checked under it. An operation of a transaction is given the
    /// namespace as the transaction sees it.
    pub async fn read<T>(&self, op: &Operation, f: impl FnOnce(&SlotState) -> Result<T>) -> Result<T> {
        match op.transaction() {
            // Boxed, so that a read outside transactions is not as large as one inside.
            Some(t) => Box::pin(t.read(self, op, f)).await,
            None => self.read_live(op, &op.received, Access::Read, f).await,
        }
    }

    /// Runs `f` on the namespace as it is, under the shared latch, with the versions `received` checked for `access`.
    pub(crate) async fn read_live<T>(
        &self,
        op: &Operation,
        received: &Received,
        access: Access,
        f: impl FnOnce(&SlotState) -> Result<T>,
    ) -> Result<T> {
        let mut patience = Patience::default();
        let mut recoveries = 0;
        loop {
            let refusal = {
                let database = self.database.latch.read();
                match patience.attempt(|| self.latch.try_read(), |d| self.latch.try_read_for(d)) {
                    None => None,
                    Some(state) => match self.check(&state, database.as_deref(), received, access) {
                        Ok(()) => return meter::latched(|| f(&state)),
                        Err(refusal) => Some(refusal),
                    },
                }
            };
            match refusal {
                None => wait_or_yield(op, None).await?,
                Some(Refusal::CriticalSection(signal)) => wait_or_yield(op, Some(signal)).await?,
                Some(Refusal::Unknown(e)) if access == Access::Read && recoveries < RECOVERIES_MAX => {
                    recoveries += 1;
                    // Boxed: rare, and large.
                    if !Box::pin(self.recover(op, &e)).await? {
                        return Err(e);
                    }
                }
                Some(Refusal::Stale(e) | Refusal::Unknown(e)) => return Err(e),
            }
        }
    }
    async fn recover(&self, op: &Operation, unknown: &Error) -> Result<bool> {
        match self.learner.get() {
            Some(learner) => op.interruptible(learner.recover(unknown)).await?,
            None => Ok(false),
        }
    }

    /// Runs `f` under the exclusive latch with the versions checked under it. `f` receives the state and may edit it;
    /// data goes through [`crate::write::WriteUnit`], which calls this. `received` are the versions to check.
    pub(crate) async fn write<T>(
        &self,
        gate: &RwLock<()>,
        op: &Operation,
        received: &Received,
        f: impl FnOnce(&mut SlotState) -> Result<T>,
    ) -> Result<T> {
        let mut patience = Patience::default();
        loop {
            let signal = {
                let _gate = gate.read();
                let database = self.database.latch.read();
                match patience.attempt(|| self.latch.try_write(), |d| self.latch.try_write_for(d)) {
                    None => None,
                    Some(mut state) => match self.check(&state, database.as_deref(), received, Access::Write)
                    {
                        Ok(()) => return meter::latched(|| f(&mut state)),
                        Err(Refusal::Stale(e) | Refusal::Unknown(e)) => return Err(e),
                        Err(Refusal::CriticalSection(signal)) => Some(signal),
                    },
                }
            };
            wait_or_yield(op, signal).await?;
        }
    }

    /// As [`Slot::write`], once: a critical section that is met is handed back instead of being waited for. For the holder
    /// of an intent lock, who must let go of it first (see [`crate::ddl`]).
    pub(crate) fn write_or_section<T>(
        &self,
        gate: &RwLock<()>,
        received: &Received,
        f: impl FnOnce(&mut SlotState) -> Result<T>,
    ) -> Result<Met<T>> {
        let _gate = gate.read();
        let database = self.database.latch.read();
        let mut state = self.latch.write();
        match self.check(&state, database.as_deref(), received, Access::Write) {
            Ok(()) => meter::latched(|| f(&mut state)).map(Met::Data),
            Err(Refusal::Stale(e) | Refusal::Unknown(e)) => Err(e),
            Err(Refusal::CriticalSection(signal)) => Ok(Met::Section(signal)),
        }
    }

    /// As [`Slot::write_or_section`] for several namespaces. The versions are those of `self`.
    pub(crate) fn write_all_or_section<T>(
        &self,
        slots: &[&Slot],
        gate: &RwLock<()>,
        received: &Received,
        f: impl FnOnce(Vec<(&Slot, RwLockWriteGuard<'_, SlotState>)>) -> Result<T>,
    ) -> Result<Met<T>> {
        let ordered: BTreeMap<&str, &Slot> = slots.iter().map(|s| (s.ns.as_str(), *s)).collect();
        let _gate = gate.read();
        let database = self.database.latch.read();
        let states: Vec<_> = ordered.into_values().map(|slot| (slot, slot.latch.write())).collect();
        let own = states.iter().find(|(slot, _)| slot.ns == self.ns).map(|(_, state)| &**state);
        match own.map_or(Ok(()), |own| self.check(own, database.as_deref(), received, Access::Write)) {
            Ok(()) => meter::latched(|| f(states)).map(Met::Data),
            Err(Refusal::Stale(e) | Refusal::Unknown(e)) => Err(e),
            Err(Refusal::CriticalSection(signal)) => Ok(Met::Section(signal)),
        }
    }

    /// Takes the intent lock shared if nobody holds it exclusively.
    pub(crate) fn intent_now(&self) -> Option<tokio::sync::OwnedRwLockReadGuard<()>> {
        self.intent.clone().try_read_owned().ok()
    }
    /// Takes the intent lock shared.
    ///
    /// # Errors
    /// LockTimeout (24) after `timeout`, which says who holds it exclusively.
    pub async fn intent_shared(&self, timeout: Duration) -> Result<tokio::sync::OwnedRwLockReadGuard<()>> {
        self.within(timeout, self.intent.clone().read_owned(), || self.changers.names()).await
    }
    /// Takes the intent lock exclusively, under a name. `others` are who hold it shared.
    ///
    /// # Errors
    /// LockTimeout (24) after `timeout`, which says who holds it.
    pub(crate) async fn intent_exclusive(
        &self,
        timeout: Duration,
        name: &str,
        others: impl Fn() -> Vec<String>,
    ) -> Result<Exclusive> {
        let holders = || others().into_iter().chain(self.changers.names()).collect();
        let guard = self.within(timeout, self.intent.clone().write_owned(), holders).await?;
        Ok(self.changers.hold(guard, name))
    }
    /// Held while many documents are written one after another: until it is dropped no range of the collection leaves
    /// this shard.
    pub async fn keep_ranges(&self, op: &Operation) -> Result<Kept> {
        self.ranges.keep(op).await
    }
    /// Waits for the writes that hold [`Slot::keep_ranges`]; others do not begin while it is held.
    ///
    /// # Errors
    /// LockTimeout (24) after `timeout`, which says who holds them.
    pub async fn let_ranges_go(&self, timeout: Duration) -> Result<tokio::sync::OwnedRwLockWriteGuard<()>> {
        self.within(timeout, self.ranges.let_go(), || self.ranges.keepers.names()).await
    }
    /// Boxed for the sake of its timer: see [`crate::operation::until`].
    async fn within<T>(
        &self,
        timeout: Duration,
        lock: impl Future<Output = T>,
        holders: impl FnOnce() -> Vec<String>,
    ) -> Result<T> {
        let late = |_| {
            let (ns, waited) = (&self.ns, timeout.as_millis());
            err!(LOCK_TIMEOUT, "Unable to acquire lock on '{ns}' within {waited}ms; {}", shown(holders()))
        };
        Box::pin(tokio::time::timeout(timeout, lock)).await.map_err(late)
    }
}

/// Latches all of `slots`, which stand in namespace order, exclusively, without a version check; `None`: others hold one of them.
pub(crate) fn latch_all<'a>(
    slots: &[&'a Slot],
    patience: &mut Patience,
) -> Option<Vec<(&'a Slot, RwLockWriteGuard<'a, SlotState>)>> {
    let all = |latch: &dyn Fn(&'a Slot) -> Option<RwLockWriteGuard<'a, SlotState>>| {
        slots.iter().map(|slot| Some((*slot, latch(slot)?))).collect()
    };
    patience
        .attempt(|| all(&|slot| slot.latch.try_write()), |time| all(&|slot| slot.latch.try_write_for(time)))
}

/// How an operation takes a latch that others hold. It lets its worker do other work meanwhile, since a worker that
/// sleeps over a latch of a microsecond leaves a core idle for many. An operation that was passed over often queues for
/// the latch, so that it has its turn; but only for a moment at a time, so that a latch held for long (an update whose
/// expression explodes) never holds the workers too.
#[derive(Default)]
pub(crate) struct Patience {
    yielded: u32,
}

const YIELDS_MAX: u32 = 16;
/// How long an operation queues for a latch before its worker does other work again.
const QUEUE_TIME: Duration = Duration::from_micros(500);

impl Patience {
    /// The guard; `None`: yield, and try again.
    pub(crate) fn attempt<G>(
        &mut self,
        attempt: impl FnOnce() -> Option<G>,
        queue: impl FnOnce(Duration) -> Option<G>,
    ) -> Option<G> {
        if self.yielded >= YIELDS_MAX {
            return queue(QUEUE_TIME);
        }
        let guard = attempt();
        self.yielded += guard.is_none() as u32;
        guard
    }
}

/// Waits for the end of a critical section, or lets others run where only the latch was taken.
pub(crate) async fn wait_or_yield(op: &Operation, section: Option<watch::Receiver<bool>>) -> Result<()> {
    match section {
        Some(signal) => wait_for_end(op, signal).await,
        None => {
            op.check_interrupt()?;
            tokio::task::yield_now().await;
            Ok(())
        }
    }
}

pub(crate) async fn wait_for_end(op: &Operation, mut signal: watch::Receiver<bool>) -> Result<()> {
    // `true` or a dropped sender: the section has ended.
    let ended = async move {
        let _ = signal.wait_for(|ended| *ended).await;
    };
    op.interruptible(ended).await
}

/// All slots of a node. Slots are made on demand; one that holds nothing and that nobody uses is let go by
/// [`Namespaces::forget_unused`].
#[derive(Default)]
pub struct Namespaces {
    slots: RwLock<BTreeMap<String, Arc<Slot>>>,
    databases: RwLock<BTreeMap<String, Arc<DatabaseSlot>>>,
    /// Gives every new slot its placement: set on a shard, where an unknown placement refuses versioned requests.
    default_placement: RwLock<Option<PlacementFactory>>,
    default_database_placement: RwLock<Option<DatabasePlacementFactory>>,
    learner: Arc<OnceLock<Arc<dyn Learner>>>,
    pub standstill: Arc<Standstill>,
    /// Held from the look whether a UUID is taken until the collection that a client gave it to is there.
    pub naming_uuids: tokio::sync::Mutex<()>,
}

/// Makes the placement that a new database starts with.
pub type DatabasePlacementFactory = Arc<dyn Fn(&str) -> Option<Arc<dyn DatabasePlacement>> + Send + Sync>;

/// Makes the placement that a new slot starts with.
pub type PlacementFactory = Arc<dyn Fn(&str) -> Option<Arc<dyn Placement>> + Send + Sync>;

impl Namespaces {
    /// The slot of a namespace that has been asked for before.
    pub fn existing(&self, ns: &str) -> Option<Arc<Slot>> {
        self.slots.read().get(ns).cloned()
    }
    pub fn slot(&self, ns: &str) -> Arc<Slot> {
        if let Some(slot) = self.existing(ns) {
            return slot;
        }
        let database = self.database(ns.split('.').next().unwrap_or(ns));
        let mut slots = self.slots.write();
        slots
            .entry(ns.to_string())
            .or_insert_with(|| {
                // Asked under the map's lock: a slot is either made with the new default or found by its setter.
                let placement = self.default_placement.read().as_ref().and_then(|f| f(ns));
                let state = SlotState { placement, ..SlotState::default() };
                Arc::new(Slot {
                    ns: ns.to_string(),
                    database,
                    collation: state.collation.clone(),
                    latch: RwLock::new(state),
                    intent: Arc::default(),
                    changers: Holders::default(),
                    ranges: Ranges::default(),
                    written: Notify::new(),
                    standstill: self.standstill.clone(),
                    learner: self.learner.clone(),
                })
            })
            .clone()
    }
    pub fn database(&self, db: &str) -> Arc<DatabaseSlot> {
        if let Some(slot) = self.databases.read().get(db) {
            return slot.clone();
        }
        let mut databases = self.databases.write();
        databases
            .entry(db.to_string())
            .or_insert_with(|| {
                let placement = self.default_database_placement.read().as_ref().and_then(|f| f(db));
                Arc::new(DatabaseSlot { name: db.to_string(), latch: RwLock::new(placement) })
            })
            .clone()
    }
    /// From now on new databases start with this placement, and those there are get it too.
    pub fn set_default_database_placement(&self, factory: Option<DatabasePlacementFactory>) {
        let databases: Vec<Arc<DatabaseSlot>> = {
            let databases = self.databases.write();
            *self.default_database_placement.write() = factory.clone();
            databases.values().cloned().collect()
        };
        for slot in databases {
            slot.set_placement(factory.as_ref().and_then(|f| f(&slot.name)));
        }
    }
    /// Lets go of the slots of dropped collections, and of those that were only ever asked for.
    ///
    /// Who holds a slot, be it over an await, keeps it: the map hands out clones under its lock, so a slot of which the map
    /// has the only one is in nobody's hands. The next to ask gets a new slot with a placement as after a start.
    pub fn forget_unused(&self) {
        self.slots.write().retain(|_, slot| Arc::strong_count(slot) > 1 || slot.holds_something());
        let unused = |slot: &Arc<DatabaseSlot>| {
            Arc::strong_count(slot) == 1 && slot.latch.try_read().is_some_and(|placement| placement.is_none())
        };
        self.databases.write().retain(|_, slot| !unused(slot));
    }
    /// Every slot, in namespace order.
    pub fn all(&self) -> Vec<Arc<Slot>> {
        self.slots.read().values().cloned().collect()
    }
    /// Every slot but those of snapshots, in namespace order: what clients may hear of.
    pub fn visible(&self) -> Vec<Arc<Slot>> {
        let mut slots = self.all();
        slots.retain(|slot| !crate::fork::is_hidden(&slot.database.name));
        slots
    }
    /// The slots of one database, in namespace order.
    pub fn of_database(&self, db: &str) -> Vec<Arc<Slot>> {
        let prefix = format!("{db}.");
        let slots = self.slots.read();
        slots
            .range::<str, _>((std::ops::Bound::Included(prefix.as_str()), std::ops::Bound::Unbounded))
            .take_while(|(ns, _)| ns.starts_with(&prefix))
            .map(|(_, s)| s.clone())
            .collect()
    }
    /// A database whose name differs from `db` by case alone and that holds a collection. Asked by who may hold a latch, so
    /// a namespace that somebody else holds is passed over.
    pub fn differing_in_case(&self, db: &str) -> Option<String> {
        let alike = |name: &&String| *name != db && name.eq_ignore_ascii_case(db);
        let names: Vec<String> = self.databases.read().keys().filter(alike).cloned().collect();
        let filled = |name: &String| {
            let slots = self.of_database(name);
            slots.iter().any(|slot| slot.latch.try_read().is_some_and(|s| s.collection.is_some()))
        };
        names.into_iter().find(filled)
    }
    /// From now on a transaction has this one learn before it touches a namespace for the first time, and a read where nothing
    /// is known. Only the first call counts.
    pub fn set_learner(&self, learner: Arc<dyn Learner>) {
        let _ = self.learner.set(learner);
    }
    pub(crate) fn learner(&self) -> Option<Arc<dyn Learner>> {
        self.learner.get().cloned()
    }
    /// From now on new slots start with this placement, and those there are get it too.
    pub fn set_default_placement(&self, factory: Option<PlacementFactory>) {
        *self.default_placement.write() = factory.clone();
        for slot in self.all() {
            slot.latch.write().placement = factory.as_ref().and_then(|f| f(&slot.ns));
        }
    }
}
