//! `config.cache.*`: what a shard's primary has read of placement, written down where its secondaries find it.
//!
//! ```text
//! secondary, asked with a version it does not know            primary
//!   s = signals of the namespace
//!   _flushRoutingTableCacheUpdates ----------------------------> waits while a critical section is entered
//!                                                                asks the config server, installs, writes config.cache.*
//!   waits until it has applied the reply's operationTime <-----
//!   reads config.cache.*, installs "as of s"; asks again when the signals have changed meanwhile, or nobody leads
//! ```
//! So a secondary knows a placement only together with the data that was there when its primary learned of it. A read that
//! meets nothing known waits for this and is checked again, before it would be refused.
//!
//! What is installed on a secondary is good while the namespace's signals are still `s`. The primary raises them by the log:
//! by `enterCriticalSectionCounter` before a migration commits, by the document of a critical section before a catalog change.
//! An entry that follows in the log (of the recipient's, by cluster time, or the deletion of the range, in this one) is
//! applied after that, so a reader that sees it asks again which ranges are owned here.
//!
//! Invariant: what a secondary installs was asked for after `s` was read. Invariant: an entry with `refreshing` is not read.

use super::ShardRole;
use super::critical_section::Section;
use super::ddl::block::SECTIONS;
use super::ddl::standstill::EVERYTHING;
use super::named::Named;
use super::placement::CollectionPlacement;
use super::refresh::known_of;
use crate::chunk::Chunk;
use crate::key_pattern::ShardKeyPattern;
use crate::messages::Message;
use crate::messages::placement::{FlushDatabase, FlushRoutingTable};
use crate::remote::Target;
use crate::routing::table::{CollectionInfo, RESTORED};
use crate::routing::{DatabaseEntry, Routing, RoutingTable};
use document::{Doc, Document, Error, Result, Timestamp, Value, bail, codes, doc, err};
use node::observer::WriteObserver;
use node::replication::MemberState;
use node::standstill::Extent;
use node::{BatchWrite, Operation};
use parking_lot::Mutex;
use protocol::refresh::Known;
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// DO NOT CHANGE: on disk, and read by operators.
pub const COLLECTIONS: &str = "config.cache.collections";
/// DO NOT CHANGE: on disk, and read by operators.
pub const DATABASES: &str = "config.cache.databases";
/// DO NOT CHANGE: on disk, and read by operators.
const VECTOR_CLOCK: &str = "config.vectorClock";
const VECTOR_CLOCK_ID: &str = "vectorClockState";
const COUNTER: &str = "enterCriticalSectionCounter";
const VERSION: &str = "lastRefreshedCollectionMajorMinorVersion";
/// Changes of one batch; a larger refresh is not atomic and marked as under way.
const BATCH_MAX: usize = 2000;
/// How long a secondary waits for its primary and for the entries behind the reply, before it asks again.
const ASK_LIMIT: Duration = Duration::from_secs(30);
/// How long a secondary goes on asking when it is told nothing but errors: longer than an election usually takes.
const REFUSED_LIMIT: Duration = Duration::from_secs(20);
const PAUSE_MAX: Duration = Duration::from_millis(50);
pub(super) const READ_ATTEMPTS: usize = 50;
/// How long a majority may take to hear that a placement changes: writes wait meanwhile.
const SIGNAL_MAX: Duration = Duration::from_secs(10);

fn chunks_of(ns: &str) -> String {
    format!("config.cache.chunks.{ns}")
}

/// How often the placement of each name (`db.c`, or `db`) was said to change.
#[derive(Default)]
pub struct Signals {
    counts: Mutex<Named<AtomicU64>>,
    /// Values of the counters that the log has brought.
    counters: Mutex<BTreeMap<String, i64>>,
}

/// The signals of one name as they were when somebody began to ask.
#[derive(Clone, Debug)]
pub struct AsOf {
    count: Arc<AtomicU64>,
    seen: u64,
}

impl AsOf {
    pub fn is_good(&self) -> bool {
        self.count.load(Ordering::SeqCst) == self.seen
    }
}

impl Signals {
    pub fn now(&self, name: &str) -> AsOf {
        let count = self.counts.lock().of(name);
        let seen = count.load(Ordering::SeqCst);
        AsOf { count, seen }
    }
    fn raise(&self, name: &str) {
        if let Some(count) = self.counts.lock().get(name) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }
    /// Nothing that was learned before is good any more.
    pub fn raise_all(&self) {
        for count in self.counts.lock().all() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }
    /// Whether the counter of a document differs from the last one seen.
    fn counts(&self, name: &str, counter: i64) -> bool {
        self.counters.lock().insert(name.to_string(), counter) != Some(counter)
    }
}

/// Raises the signals that the log of the primary brings. On the primary itself the section is entered already.
pub(super) struct Listener(pub Weak<ShardRole>);

impl Listener {
    fn hear(&self, ns: &str, d: Doc<'_>) {
        let (Some(role), Some(name)) = (self.0.upgrade(), d.get_str("_id")) else { return };
        if role.leads() {
            return;
        }
        if ns == SECTIONS && name == EVERYTHING {
            role.signals.raise_all();
        } else if ns == SECTIONS || role.signals.counts(name, d.get_i64(COUNTER).unwrap_or(0)) {
            role.signals.raise(name);
        }
    }
}

impl WriteObserver for Listener {
    fn inserted(&self, ns: &str, doc: Doc<'_>) {
        self.hear(ns, doc);
    }
    fn updated(&self, ns: &str, new: Doc<'_>) {
        self.hear(ns, new);
    }
    fn deleted(&self, ns: &str, old: Doc<'_>) {
        self.hear(ns, old);
    }
}

/// What was written last, to write only what differs.
#[derive(Default)]
pub struct Written {
    tables: Mutex<BTreeMap<String, Arc<RoutingTable>>>,
    /// Held while an entry is read and replaced.
    writing: tokio::sync::Mutex<()>,
    /// Held while the config server's time is.
    clock: tokio::sync::Mutex<()>,
}

impl Written {
    /// The log may hold something else from now on.
    pub fn forget(&self) {
        self.tables.lock().clear();
    }
}

impl ShardRole {
    /// Whether this member's knowledge is its set's: the primary, and a node without a set.
    pub fn leads(&self) -> bool {
        let standing = self.node.replication.standing();
        standing.config.is_none() || standing.state == MemberState::Primary
    }

    // ---- the primary writes ----
    //
    // Readings are installed one after another, and written down by tasks that overtake each other: so each task looks, once
    // it is its turn, whether its reading is still the one installed. What was installed meanwhile has a task of its own.

    /// Writes down a collection's placement that was read and installed, unless another is installed by now: `false` then.
    /// Waits for critical sections: what was read before one ends may be void afterwards. Returns when it is in the log.
    ///
    /// # Errors
    /// NotWritablePrimary (10107), a failed log, interrupts.
    pub(super) async fn persist_installed(
        &self,
        op: &Operation,
        ns: &str,
        routing: &Routing,
    ) -> Result<bool> {
        loop {
            await_sections(op, || self.placement(ns)?.section).await?;
            let _one = self.written.writing.lock().await;
            match self.placement(ns) {
                Some(placement) if placement.section.is_some() => continue,
                Some(placement) if placement.known() != known_of(routing) => return Ok(false),
                _ => {}
            }
            self.write_down(ns, routing).await?;
            return Ok(true);
        }
    }

    /// Writes down what was read of a collection whose placement was forgotten, unless one is installed by now.
    ///
    /// # Errors
    /// As [`ShardRole::persist_installed`].
    pub async fn persist_forgotten(&self, ns: &str, routing: &Routing) -> Result<()> {
        let _one = self.written.writing.lock().await;
        // A section does not matter to what is not sharded: nobody takes that for placement when it is remembered.
        let may = |p: &CollectionPlacement| p.section.is_none() || matches!(routing, Routing::Unsharded);
        let forgotten = |p: &CollectionPlacement| may(p) && p.known() == Known::Unknown;
        match self.placement(ns).as_ref().is_none_or(forgotten) {
            true => self.write_down(ns, routing).await,
            false => Ok(()),
        }
    }

    /// Takes in up to when this shard's primary knew of the catalog.
    pub(super) fn read_config_time(&self) -> Result<()> {
        self.remote.hear_config_time(self.config_time_held()?);
        Ok(())
    }
    fn config_time_held(&self) -> Result<Option<Timestamp>> {
        let state = self.local.find_one(VECTOR_CLOCK, &doc! { "_id": VECTOR_CLOCK_ID })?;
        Ok(state.and_then(|d| d.get("configTime")?.as_timestamp()))
    }
    /// Writes down up to when this node knows of the catalog, in front of what follows from it: who goes on with that knows no less. Returns
    /// when it is in the log.
    ///
    /// # Errors
    /// As [`ShardRole::persist_installed`].
    pub(super) async fn persist_config_time(&self) -> Result<()> {
        let _one = self.written.clock.lock().await;
        let time = self.remote.config_time.get();
        if time <= self.config_time_held()?.unwrap_or_default() {
            return Ok(());
        }
        self.ensure_cached(VECTOR_CLOCK, &[]).await?;
        let topology_time = self.remote.registry.topology_time();
        let state = doc! { "_id": VECTOR_CLOCK_ID, "configTime": time, "topologyTime": topology_time };
        let write = BatchWrite::Put { ns: VECTOR_CLOCK.to_string(), doc: state };
        self.node.commit_batch(&Operation::internal(), &[write]).await.map(drop)
    }

    async fn write_down(&self, ns: &str, routing: &Routing) -> Result<()> {
        match routing {
            Routing::Unsharded => self.persist_unsharded(ns).await,
            Routing::Sharded(table) => self.persist_table(ns, table).await,
        }
    }

    async fn persist_unsharded(&self, ns: &str) -> Result<()> {
        self.written.tables.lock().remove(ns);
        let Some(held) = self.local.find_one(COLLECTIONS, &doc! { "_id": ns })? else { return Ok(()) };
        if !held.contains_key("uuid") {
            return Ok(());
        }
        let chunks = chunks_of(ns);
        let stale = self.local.find(&chunks, &Document::new())?;
        let entry = doc! { "_id": ns, COUNTER: held.get_i64(COUNTER).unwrap_or(0) };
        let mut writes = vec![BatchWrite::Put { ns: COLLECTIONS.to_string(), doc: entry }];
        writes.extend(stale.iter().filter_map(|d| removal(&chunks, d.get("_id")?)));
        self.write_batches(writes).await
    }

    async fn persist_table(&self, ns: &str, table: &Arc<RoutingTable>) -> Result<()> {
        let before = self.written.tables.lock().get(ns).cloned();
        let same = before
            .filter(|b| b.uuid == table.uuid && b.epoch == table.epoch && b.timestamp == table.timestamp);
        let version = |t: &RoutingTable| t.collection_version().placement;
        let held = self.local.find_one(COLLECTIONS, &doc! { "_id": ns })?;
        let void = held.as_ref().and_then(|d| d.get_bool("refreshing")) == Some(true);
        // Its chunks are there already where nothing has changed, and only the entry may be void.
        let table = match &same {
            Some(before) if version(before) >= version(table) => match void {
                true => before,
                false => return Ok(()),
            },
            _ => table,
        };
        let chunks = chunks_of(ns);
        self.ensure_cached(COLLECTIONS, &[]).await?;
        self.ensure_cached(&chunks, &[doc! { "lastmod": 1 }]).await?;
        let mut writes = match &same {
            Some(before) => differences(&chunks, before, table),
            None => self.everything(&chunks, table)?,
        };
        let counter = held.as_ref().and_then(|d| d.get_i64(COUNTER)).unwrap_or(0);
        let entry = |refreshing| BatchWrite::Put {
            ns: COLLECTIONS.to_string(),
            doc: entry_of(ns, table, counter, refreshing),
        };
        if writes.len() >= BATCH_MAX {
            writes.insert(0, entry(true));
        }
        writes.push(entry(false));
        self.written.tables.lock().remove(ns);
        self.write_batches(writes).await?;
        self.written.tables.lock().insert(ns.to_string(), table.clone());
        Ok(())
    }

    /// All chunks, and the removal of what is there and no chunk of this table.
    fn everything(&self, chunks: &str, table: &RoutingTable) -> Result<Vec<BatchWrite>> {
        let mut writes = Vec::new();
        for held in self.local.find(chunks, &Document::new())? {
            let Some(min) = held.get_document("_id") else { continue };
            let known = table.key.encode_bound(min).is_ok_and(|key| table.find(&key).min_key == key);
            if !known {
                writes.extend(held.get("_id").and_then(|id| removal(chunks, id)));
            }
        }
        writes.extend(table.chunks().map(|c| put(chunks, c)));
        Ok(writes)
    }

    async fn write_batches(&self, writes: Vec<BatchWrite>) -> Result<()> {
        self.persist_config_time().await?;
        for batch in writes.chunks(BATCH_MAX) {
            self.node.commit_batch(&Operation::internal(), batch).await?;
        }
        Ok(())
    }

    /// Makes a collection of the cache without waiting for other members.
    async fn ensure_cached(&self, ns: &str, indexes: &[Document]) -> Result<()> {
        let slot = self.node.namespaces.slot(ns);
        if slot.read_unchecked().collection.is_some() {
            return Ok(());
        }
        let op = Operation::internal();
        let written = self.node.write(&op, &slot, |unit| {
            unit.ensure_exists();
            indexes.iter().try_for_each(|key| unit.create_index_now(key, &Document::new()).map(drop))
        });
        written.await.map(drop)
    }

    /// Writes down a database's primary and version that were read and installed, unless others are installed by now: `false`
    /// then.
    ///
    /// # Errors
    /// As [`ShardRole::persist_installed`].
    pub(super) async fn persist_installed_database(
        &self,
        db: &str,
        entry: Option<&DatabaseEntry>,
    ) -> Result<bool> {
        let _one = self.written.writing.lock().await;
        if self.has_other_database(db, entry) {
            return Ok(false);
        }
        self.persist_database(db, entry).await?;
        Ok(true)
    }

    async fn persist_database(&self, db: &str, entry: Option<&DatabaseEntry>) -> Result<()> {
        let held = self.local.find_one(DATABASES, &doc! { "_id": db })?;
        let counter = held.as_ref().and_then(|d| d.get_i64(COUNTER)).unwrap_or(0);
        let mut new = doc! { "_id": db };
        if let Some(entry) = entry {
            new.push("primary", &*entry.primary);
            new.push("version", entry.version.to_document());
        }
        new.push(COUNTER, counter);
        if held.as_ref() == Some(&new) || (held.is_none() && entry.is_none()) {
            return Ok(());
        }
        self.ensure_cached(DATABASES, &[]).await?;
        self.write_batches(vec![BatchWrite::Put { ns: DATABASES.to_string(), doc: new }]).await
    }

    /// Tells the secondaries by the log that the placement of `ns` is about to change, and makes void what is written down of it:
    /// it may be older than the change when nobody can be asked afterwards. Called in the critical section, before the change can be
    /// seen anywhere. A majority has it when this returns: whoever leads next was told, and tells the others.
    ///
    /// # Errors
    /// NotWritablePrimary (10107), a failed log; WriteConcernFailed (64) where no majority has it for [`SIGNAL_MAX`].
    pub async fn signal_secondaries(&self, ns: &str) -> Result<()> {
        let one = self.written.writing.lock().await;
        let slot = self.node.namespaces.slot(COLLECTIONS);
        let id = doc! { "_id": ns }.to_doc_buf();
        let op = Operation::internal();
        let written = self.node.write(&op, &slot, |unit| {
            unit.ensure_exists();
            let found = id.get("_id").and_then(|id| unit.collection()?.find_id(id));
            let found = found.map(|(record, d)| (record, d.to_document()));
            match found {
                Some((record, mut entry)) => {
                    let counter = entry.get_i64(COUNTER).unwrap_or(0);
                    entry.insert(COUNTER, counter + 1);
                    entry.insert("refreshing", true);
                    unit.replace(record, entry.to_doc_buf().doc(), node::Origin::default())
                }
                None => {
                    let entry = doc! { "_id": ns, COUNTER: 1i64 };
                    unit.insert(entry.to_doc_buf().doc(), node::Origin::default()).map(drop)
                }
            }
        });
        written.await?;
        drop(one);
        match tokio::time::timeout(SIGNAL_MAX, self.node.wait_operation_committed(&op)).await {
            Ok(done) => done,
            Err(_) => bail!(
                WRITE_CONCERN_FAILED,
                "no majority of the shard's members has heard of the change of {ns}"
            ),
        }
    }

    /// `_flushRoutingTableCacheUpdates`, on the primary: what secondaries read next is at least as new as this call.
    ///
    /// # Errors
    /// NotWritablePrimary (10107), interrupts, those of asking the config server.
    pub async fn flush_collection(&self, op: &Operation, ns: &str, sync: bool) -> Result<()> {
        self.require_primary()?;
        self.await_standstill(op).await?;
        await_sections(op, || self.placement(ns)?.section).await?;
        for _ in 0..READ_ATTEMPTS {
            if !sync {
                return Ok(());
            }
            let routing = self.refresh_or_remember(ns).await?;
            if self.persist_installed(op, ns, &routing).await? {
                return Ok(());
            }
            op.check_interrupt()?;
        }
        bail!(CONFLICTING_OPERATION_IN_PROGRESS, "the placement of {ns} kept changing while it was written")
    }

    /// `_flushDatabaseCacheUpdates`, likewise.
    ///
    /// # Errors
    /// As [`ShardRole::flush_collection`].
    pub async fn flush_database(&self, op: &Operation, db: &str, sync: bool) -> Result<()> {
        self.require_primary()?;
        self.await_standstill(op).await?;
        await_sections(op, || self.database_section(db)).await?;
        for _ in 0..READ_ATTEMPTS {
            if !sync {
                return Ok(());
            }
            let entry = self.refresh_database(db).await?;
            if self.persist_installed_database(db, entry.as_deref()).await? {
                return Ok(());
            }
            op.check_interrupt()?;
        }
        bail!(CONFLICTING_OPERATION_IN_PROGRESS, "the primary of {db} kept changing while it was written")
    }

    /// Waits while all data of the cluster is being exchanged.
    async fn await_standstill(&self, op: &Operation) -> Result<()> {
        let standstill = &self.node.namespaces.standstill;
        while let Some(mut ended) = standstill.signal().filter(|_| standstill.holds(Extent::ReadsAndWrites)) {
            op.interruptible(ended.wait_for(|ended| *ended)).await?.ok();
        }
        Ok(())
    }

    fn require_primary(&self) -> Result<()> {
        match self.leads() {
            true => Ok(()),
            false => bail!(
                NOT_WRITABLE_PRIMARY,
                "the placement is read from the config server by the primary only"
            ),
        }
    }

    // ---- a secondary learns ----

    /// A collection's placement from the primary, together with the data it belongs to, and as of when.
    ///
    /// # Errors
    /// FailedToSatisfyReadPreference (133) where for long there is no primary, or it returns errors; NotWritablePrimary (10107)
    /// when this member has become the primary.
    pub(super) async fn learn_collection(&self, ns: &str) -> Result<(Routing, AsOf)> {
        let command = FlushRoutingTable::anew(ns).to_document();
        self.learn(ns, command, || self.persisted_collection(ns)).await
    }

    /// A database's entry from the primary, likewise.
    ///
    /// # Errors
    /// As [`ShardRole::learn_collection`].
    pub(super) async fn learn_database(&self, db: &str) -> Result<(Option<Arc<DatabaseEntry>>, AsOf)> {
        let read = || {
            let held = self.local.find_one(DATABASES, &doc! { "_id": db })?;
            Ok(Some(held.as_ref().and_then(DatabaseEntry::from_document).map(Arc::new)))
        };
        self.learn(db, FlushDatabase::anew(db).to_document(), read).await
    }

    /// Has the primary write down what it reads, and reads that here, until it is good: beside migrations it is void again as
    /// often as not, and in an election there is nobody to ask. It goes on for as long as the primary is heard of, since a
    /// critical section takes the time it takes; whoever waits for this has a deadline or not.
    async fn learn<T>(
        &self,
        name: &str,
        command: Document,
        read: impl Fn() -> Result<Option<T>>,
    ) -> Result<(T, AsOf)> {
        let mut patience = Patience::default();
        loop {
            let as_of = self.signals.now(name);
            let refused = match self.ask_primary(command.clone()).await {
                Ok(true) => match read() {
                    Ok(Some(learned)) if as_of.is_good() => return Ok((learned, as_of)),
                    read => read.err(),
                },
                Ok(false) => None,
                Err(e) => Some(e),
            };
            // As the primary it would ask itself, and has the config server to ask instead.
            if self.leads() {
                bail!(NOT_WRITABLE_PRIMARY, "this member has become the primary while it asked for placement")
            }
            patience.after(refused).await?;
        }
    }

    /// Returns when the primary has written down what it knows and this member has applied that; false when it takes long.
    async fn ask_primary(&self, command: Document) -> Result<bool> {
        let standing = self.node.replication.standing();
        let primary = standing.primary.filter(|_| standing.state != MemberState::Primary);
        let Some(primary) = primary.and_then(|i| standing.host(i)) else {
            bail!(NOT_WRITABLE_PRIMARY, "there is no primary that could be asked for placement")
        };
        let learned = async {
            let reply = self.remote.admin(Target::Host(&primary), command).await?;
            let time = reply.get("operationTime").and_then(Value::as_timestamp).unwrap_or_default();
            self.node.wait_applied(&Operation::internal(), time).await
        };
        // Another may be the primary by then. If not, a section takes its time, which is no failure.
        tokio::time::timeout(ASK_LIMIT, learned).await.map_or(Ok(false), |learned| learned.map(|()| true))
    }

    /// What is written down; `None` while it is being written.
    pub(super) fn persisted_collection(&self, ns: &str) -> Result<Option<Routing>> {
        let entry = || self.local.find_one(COLLECTIONS, &doc! { "_id": ns });
        let Some(before) = entry()?.filter(|d| d.contains_key("uuid")) else {
            return Ok(Some(Routing::Unsharded));
        };
        if before.get_bool("refreshing") == Some(true) {
            return Ok(None);
        }
        let documents = self.local.find(&chunks_of(ns), &Document::new())?;
        if entry()?.as_ref() != Some(&before) {
            return Ok(None);
        }
        let info = info_of(&before)?;
        let key = ShardKeyPattern::parse(&info.key)?;
        let chunks = documents.into_iter().map(|d| chunk_of(d, &key)).collect::<Result<Vec<_>>>()?;
        let table = RoutingTable::build(&info, chunks)?;
        Ok(Some(Routing::Sharded(Arc::new(table))))
    }
}

/// How long a secondary goes on asking.
struct Patience {
    pause: Duration,
    /// Since when there was nothing but errors.
    refused: Option<Instant>,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { pause: Duration::from_millis(2), refused: None }
    }
}

impl Patience {
    /// Pauses after an answer that was of no use, or an error.
    ///
    /// # Errors
    /// The error, when there was nothing else for long.
    async fn after(&mut self, refused: Option<Error>) -> Result<()> {
        match refused {
            None => self.refused = None,
            Some(e) => {
                let since = *self.refused.get_or_insert_with(Instant::now);
                if since.elapsed() >= REFUSED_LIMIT {
                    let code = codes::FAILED_TO_SATISFY_READ_PREFERENCE;
                    return Err(Error { code, ..e }.context("a secondary did not learn where data is placed"));
                }
            }
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(())
    }
}

/// Returns when no critical section is entered.
async fn await_sections(op: &Operation, entered: impl Fn() -> Option<Section>) -> Result<()> {
    while let Some(section) = entered() {
        let mut ended = section.signal();
        drop(section);
        op.interruptible(ended.wait_for(|ended| *ended)).await?.ok();
    }
    Ok(())
}

fn put(chunks: &str, chunk: &Chunk) -> BatchWrite {
    let mut d = chunk.to_document([0; 16]);
    for name in ["_id", "uuid", "min"] {
        d.remove(name);
    }
    let mut doc = doc! { "_id": chunk.min.clone() };
    doc.0.extend(d.0);
    BatchWrite::Put { ns: chunks.to_string(), doc }
}

fn chunk_of(mut d: Document, key: &ShardKeyPattern) -> Result<Chunk> {
    let min =
        d.remove("_id").ok_or_else(|| err!(INCOMPATIBLE_SHARDING_METADATA, "a chunk without bounds"))?;
    d.push("min", min);
    Chunk::from_document(&d, key)
}

fn removal(chunks: &str, id: &Value) -> Option<BatchWrite> {
    Some(BatchWrite::Delete { ns: chunks.to_string(), id: id.clone() })
}

/// What turns the chunks of `before` into those of `table`, an update of it.
fn differences(ns: &str, before: &RoutingTable, table: &RoutingTable) -> Vec<BatchWrite> {
    let known = before.collection_version().placement;
    let mut writes = Vec::new();
    for chunk in table.chunks().filter(|c| c.version > known) {
        for old in before.overlapping(&chunk.min_key, &chunk.max_key, false) {
            let stays = table.find(&old.min_key).min_key == old.min_key;
            if !stays {
                writes.extend(removal(ns, &old.min.clone().into()));
            }
        }
        writes.push(put(ns, chunk));
    }
    writes
}

fn entry_of(ns: &str, table: &RoutingTable, counter: i64, refreshing: bool) -> Document {
    let mut d = doc! {
        "_id": ns, "epoch": table.epoch, "timestamp": table.timestamp, "uuid": Value::uuid(table.uuid),
        "key": table.key.document().clone(), "unique": table.unique, "refreshing": refreshing,
        VERSION: table.collection_version().placement, "allowMigrations": table.allow_migrations,
    };
    if table.restored != Timestamp::default() {
        d.push(RESTORED, table.restored);
    }
    if let Some(collation) = table.default_collation.document() {
        d.push("defaultCollation", collation.clone());
    }
    d.push(COUNTER, counter);
    d
}

fn info_of(entry: &Document) -> Result<CollectionInfo> {
    let mut d = entry.clone();
    d.push("lastmodEpoch", entry.get("epoch").cloned().unwrap_or(Value::Null));
    CollectionInfo::from_document(&d)
        .ok_or_else(|| err!(INCOMPATIBLE_SHARDING_METADATA, "bad document of {COLLECTIONS}: {entry:?}"))
}
