//! The catalog cache: what a node knows of databases and of the placement of collections.
//!
//! Each entry is refreshed by one flight at a time. An invalidation is a number that rises; an entry is good while the
//! refresh that brought it began at the present number. So a refresh that was under way when a node learned of
//! something newer does not count as news of it, and those who wait for the next one share it.
//!
//! A refresh is incremental: chunks whose version is at or above what is known, laid over the table there is. Whatever
//! does not fit together was read while it changed, and the refresh starts over from nothing.

use crate::chunk::{Chunk, ShardId};
use crate::key_pattern::ShardKeyPattern;
use crate::remote::Remote;
use crate::routing::table::{CollectionInfo, RoutingTable};
use document::{Document, Error, Result, Value, bail, codes, doc, err};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use protocol::version::{DatabaseVersion, ShardVersion};
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How often a refresh starts over when what it read does not fit together.
const ATTEMPTS: usize = 10;

/// How a collection is placed.
#[derive(Clone, Debug)]
pub enum Routing {
    /// In the catalog: sharded, or tracked on one shard ([`RoutingTable::unsplittable`]).
    Sharded(Arc<RoutingTable>),
    /// Not tracked (or not there): on its database's primary.
    Unsharded,
}

impl Routing {
    pub fn table(&self) -> Option<&Arc<RoutingTable>> {
        match self {
            Routing::Sharded(table) => Some(table),
            Routing::Unsharded => None,
        }
    }
}

/// A document of `config.databases`.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseEntry {
    pub name: String,
    pub primary: ShardId,
    pub version: DatabaseVersion,
}

impl DatabaseEntry {
    pub fn from_document(d: &Document) -> Option<DatabaseEntry> {
        Some(DatabaseEntry {
            name: d.get_str("_id")?.to_string(),
            primary: d.get_str("primary")?.into(),
            version: DatabaseVersion::from_document(d.get_document("version")?)?,
        })
    }
}

/// One cached thing: what is known, and of which invalidation.
struct Entry<T> {
    invalidations: AtomicU64,
    known: RwLock<Option<(u64, T)>>,
    flight: tokio::sync::Mutex<()>,
}

impl<T: Clone> Entry<T> {
    fn new() -> Entry<T> {
        Entry {
            invalidations: AtomicU64::new(1),
            known: RwLock::new(None),
            flight: tokio::sync::Mutex::new(()),
        }
    }
    fn good(&self) -> Option<T> {
        let now = self.invalidations.load(Ordering::SeqCst);
        self.known.read().as_ref().filter(|(at, _)| *at == now).map(|(_, v)| v.clone())
    }
    fn last(&self) -> Option<T> {
        self.known.read().as_ref().map(|(_, v)| v.clone())
    }
    fn invalidate(&self) {
        self.invalidations.fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Counters {
    incremental: Refreshes,
    full: Refreshes,
    failed: AtomicU64,
    stale_config: AtomicU64,
    wait_micros: AtomicU64,
}

/// Readings of one kind.
#[derive(Default)]
struct Refreshes {
    started: AtomicU64,
    active: AtomicU64,
}

/// One that is under way, until it is dropped.
struct Active<'a>(&'a AtomicU64);

impl Refreshes {
    fn begin(&self) -> Active<'_> {
        self.started.fetch_add(1, Ordering::Relaxed);
        self.active.fetch_add(1, Ordering::Relaxed);
        Active(&self.active)
    }
}
impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The cache of one node.
pub struct CatalogCache {
    pub remote: Arc<Remote>,
    collections: Entries<Routing>,
    databases: Entries<Option<Arc<DatabaseEntry>>>,
    counters: Counters,
}

impl CatalogCache {
    pub fn new(remote: Arc<Remote>) -> Arc<CatalogCache> {
        Arc::new(CatalogCache {
            remote,
            collections: Entries::new(|routing| routing.table().is_some()),
            databases: Entries::new(Option::is_some),
            counters: Counters::default(),
        })
    }

    /// Placement of a collection, from the cache or fresh.
    ///
    /// # Errors
    /// Those of asking the config server; ConflictingOperationInProgress (117) when it kept changing meanwhile.
    pub async fn collection(&self, ns: &str) -> Result<Routing> {
        if ns.starts_with("admin.") || ns.starts_with("local.") {
            return Ok(Routing::Unsharded);
        }
        let entry = self.collections.slot(ns);
        if let Some(routing) = entry.good() {
            return Ok(routing);
        }
        let waiting = Instant::now();
        let _flight = entry.flight.lock().await;
        if let Some(routing) = entry.good() {
            return Ok(routing);
        }
        let as_of = entry.invalidations.load(Ordering::SeqCst);
        let fresh = self.read_collection(ns, entry.last()).await;
        self.counters.wait_micros.fetch_add(waiting.elapsed().as_micros() as u64, Ordering::Relaxed);
        match fresh {
            Ok(routing) => {
                *entry.known.write() = Some((as_of, routing.clone()));
                Ok(routing)
            }
            Err(e) => {
                self.counters.failed.fetch_add(1, Ordering::Relaxed);
                Err(e)
            }
        }
    }
    /// Placement as of a reading that begins after this call.
    pub async fn refresh_collection(&self, ns: &str) -> Result<Routing> {
        self.invalidate(ns);
        self.collection(ns).await
    }
    /// What is cached and good, without asking.
    pub fn cached_collection(&self, ns: &str) -> Option<Routing> {
        self.collections.read().get(ns).and_then(|e| e.good())
    }

    /// A database's primary and version, from the cache or fresh; `None` when the config server has none of this name.
    /// `admin` and `config` are not in the catalog and answer `None`.
    pub async fn database(&self, db: &str) -> Result<Option<Arc<DatabaseEntry>>> {
        if document::is_internal_database(db) {
            return Ok(None);
        }
        let entry = self.databases.slot(db);
        // That there is no such database is never remembered: another router may make it at any time.
        if let Some(Some(known)) = entry.good() {
            return Ok(Some(known));
        }
        let _flight = entry.flight.lock().await;
        if let Some(Some(known)) = entry.good() {
            return Ok(Some(known));
        }
        let as_of = entry.invalidations.load(Ordering::SeqCst);
        let found = self.remote.find_config("databases", doc! { "_id": db }, None).await?;
        let fresh = found.first().and_then(DatabaseEntry::from_document).map(Arc::new);
        *entry.known.write() = Some((as_of, fresh.clone()));
        Ok(fresh)
    }
    pub async fn refresh_database(&self, db: &str) -> Result<Option<Arc<DatabaseEntry>>> {
        self.invalidate_database(db);
        self.database(db).await
    }

    /// What is cached and good, without asking.
    pub fn cached_database(&self, db: &str) -> Option<Arc<DatabaseEntry>> {
        self.databases.read().get(db).and_then(|e| e.good()).flatten()
    }

    /// Whether the collection may be sharded by what was asked or told of it since the cache was cleared.
    pub fn may_be_sharded(&self, ns: &str) -> bool {
        let known = self.collections.read();
        known.get(ns).is_some_and(|entry| !matches!(entry.good(), Some(Routing::Unsharded)))
    }
    /// The next use of this collection reads its placement anew.
    pub fn invalidate(&self, ns: &str) {
        self.collections.slot(ns).invalidate();
    }
    pub fn invalidate_database(&self, db: &str) {
        self.databases.slot(db).invalidate();
    }
    /// `flushRouterConfig`: everything is read anew, from nothing.
    pub fn clear(&self) {
        self.collections.write().clear();
        self.databases.write().clear();
    }
    /// `flushRouterConfig: "db"`: the database and its collections.
    pub fn clear_database(&self, db: &str) {
        let prefix = format!("{db}.");
        self.collections.write().retain(|ns, _| !ns.starts_with(&prefix));
        self.databases.write().remove(db);
    }
    pub fn clear_collection(&self, ns: &str) {
        self.collections.write().remove(ns);
    }

    /// Takes in a stale error of a request sent with what this cache knew: invalidates what it speaks of, unless the
    /// cache has learned better since. False when the error is none of these.
    pub fn note_stale(&self, error: &Error) -> bool {
        let info = error.info.as_deref();
        if error.is(document::error::STALE_SHARD_VERSION) {
            self.counters.stale_config.fetch_add(1, Ordering::Relaxed);
            let Some(info) = info else { return true };
            let Some(ns) = info.get_str("ns") else { return true };
            let version = |name: &str| info.get_document(name).and_then(ShardVersion::from_document);
            // The shard did not know anything, and has asked by now: what it says next counts.
            if version("vWanted").is_none() {
                return true;
            }
            let shard = info.get_str("shardId").unwrap_or("");
            if !self.knows_better(ns, shard, version("vReceived")) {
                self.invalidate(ns);
            }
            return true;
        }
        if error.is(document::error::STALE_DB_VERSION) {
            let Some(info) = info else { return true };
            let Some(db) = info.get_str("db") else { return true };
            let version = |name: &str| info.get_document(name).and_then(DatabaseVersion::from_document);
            let known = self.databases.read().get(db).and_then(|e| e.good()).flatten();
            // What was sent is no longer what would be sent.
            let better = known.is_some_and(|known| version("vReceived").is_some_and(|v| v != known.version));
            if !better {
                self.invalidate_database(db);
            }
            return true;
        }
        false
    }
    /// Whether what was sent is no longer what would be sent. Versions of one shard are not compared by size: that of a
    /// shard which gives its last chunk away falls to 0|0.
    fn knows_better(&self, ns: &str, shard: &str, received: Option<ShardVersion>) -> bool {
        let Some(known) = self.cached_collection(ns) else { return false };
        let version = match &known {
            Routing::Sharded(table) => table.shard_version(shard),
            Routing::Unsharded => ShardVersion::UNTRACKED,
        };
        received.is_some_and(|received| received != version)
    }

    async fn read_collection(&self, ns: &str, mut known: Option<Routing>) -> Result<Routing> {
        for attempt in 1..=ATTEMPTS {
            match self.read_once(ns, known.take()).await {
                // Read while it changed: the next attempt begins from nothing.
                Err(e) if is_inconsistent(&e) && attempt < ATTEMPTS => {
                    tokio::time::sleep(Duration::from_millis(2 << attempt.min(6))).await;
                }
                done => return done,
            }
        }
        bail!(CONFLICTING_OPERATION_IN_PROGRESS, "placement of {ns} kept changing while it was read")
    }

    async fn read_once(&self, ns: &str, known: Option<Routing>) -> Result<Routing> {
        let Some(info) = self.read_info(ns).await? else { return Ok(Routing::Unsharded) };
        let known = known.as_ref().and_then(Routing::table);
        let base =
            known.filter(|t| t.timestamp == info.timestamp && t.epoch == info.epoch && t.uuid == info.uuid);
        let kind = if base.is_some() { &self.counters.incremental } else { &self.counters.full };
        let _active = kind.begin();
        let mut filter = doc! { "uuid": Value::uuid(info.uuid) };
        if let Some(table) = base {
            filter.push("lastmod", doc! { "$gte": table.collection_version().placement });
        }
        let documents = self.remote.find_config("chunks", filter, Some(doc! { "lastmod": 1 })).await?;
        let key = ShardKeyPattern::parse(&info.key)?;
        let chunks = documents.iter().map(|d| Chunk::from_document(d, &key)).collect::<Result<Vec<_>>>()?;
        // The chunks belong to the generation only if it is still the same.
        let after = self.read_info(ns).await?;
        if after.as_ref().map(|i| (i.timestamp, i.uuid)) != Some((info.timestamp, info.uuid)) {
            return Err(err!(CONFLICTING_OPERATION_IN_PROGRESS, "{ns} changed while its placement was read"));
        }
        let table = match base {
            Some(table) if chunks.is_empty() => {
                // At least the newest chunk is there unless everything was replaced.
                bail!(CONFLICTING_OPERATION_IN_PROGRESS, "no chunk of {} at its known version", table.ns)
            }
            Some(table) => table.update(&info, chunks)?,
            None => RoutingTable::build(&info, chunks)?,
        };
        Ok(Routing::Sharded(Arc::new(table)))
    }

    async fn read_info(&self, ns: &str) -> Result<Option<CollectionInfo>> {
        let found = self.remote.find_config("collections", doc! { "_id": ns }, None).await?;
        match found.first() {
            None => Ok(None),
            Some(d) => CollectionInfo::from_document(d).map(Some).ok_or_else(|| {
                err!(INCOMPATIBLE_SHARDING_METADATA, "bad document of config.collections: {d:?}")
            }),
        }
    }

    /// `shardingStatistics.catalogCache`.
    pub fn statistics(&self) -> Document {
        let read = |c: &AtomicU64| c.load(Ordering::Relaxed) as i64;
        doc! {
            "numDatabaseEntries": self.databases.read().len() as i64,
            "numCollectionEntries": self.collections.read().len() as i64,
            "countStaleConfigErrors": read(&self.counters.stale_config),
            "totalRefreshWaitTimeMicros": read(&self.counters.wait_micros),
            "numActiveIncrementalRefreshes": read(&self.counters.incremental.active),
            "countIncrementalRefreshesStarted": read(&self.counters.incremental.started),
            "numActiveFullRefreshes": read(&self.counters.full.active),
            "countFullRefreshesStarted": read(&self.counters.full.started),
            "countFailedRefreshes": read(&self.counters.failed),
        }
    }
}

fn is_inconsistent(e: &Error) -> bool {
    matches!(
        e.code,
        codes::CONFLICTING_OPERATION_IN_PROGRESS | codes::INCOMPATIBLE_SHARDING_METADATA | codes::BAD_VALUE
    )
}

/// Names are kept as they are asked for, and there are as many as clients make up: beyond so many, and then whenever there are twice
/// as many as were worth it, those go of which nothing is known but that the catalog has none, and that nobody uses.
const NAMES_MIN: usize = 10_000;

/// The entries of one kind.
struct Entries<T> {
    by_name: RwLock<BTreeMap<String, Arc<Entry<T>>>>,
    is_worth: fn(&T) -> bool,
    prune_at: AtomicUsize,
}

impl<T: Clone> Entries<T> {
    fn new(is_worth: fn(&T) -> bool) -> Entries<T> {
        Entries { by_name: RwLock::default(), is_worth, prune_at: AtomicUsize::new(NAMES_MIN) }
    }
    fn slot(&self, name: &str) -> Arc<Entry<T>> {
        if let Some(entry) = self.by_name.read().get(name) {
            return entry.clone();
        }
        let mut by_name = self.by_name.write();
        if by_name.len() >= self.prune_at.load(Ordering::Relaxed) {
            let is_worth = |entry: &Entry<T>| entry.last().is_some_and(|v| (self.is_worth)(&v));
            by_name.retain(|_, entry| Arc::strong_count(entry) > 1 || is_worth(entry));
            self.prune_at.store((by_name.len() * 2).max(NAMES_MIN), Ordering::Relaxed);
        }
        by_name.entry(name.to_string()).or_insert_with(|| Arc::new(Entry::new())).clone()
    }
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Arc<Entry<T>>>> {
        self.by_name.read()
    }
    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Arc<Entry<T>>>> {
        self.by_name.write()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_clients_make_up_are_not_kept_for_ever() {
        let entries: Entries<bool> = Entries::new(|worth| *worth);
        *entries.slot("placed").known.write() = Some((1, true));
        let used = entries.slot("used");
        for n in 0..5 * NAMES_MIN {
            *entries.slot(&n.to_string()).known.write() = Some((1, false));
        }
        assert!(entries.read().len() <= NAMES_MIN);
        assert_eq!(entries.slot("placed").good(), Some(true));
        assert!(Arc::ptr_eq(&entries.slot("used"), &used));
    }
}
