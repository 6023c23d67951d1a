//! The range deleter: removes documents that this shard holds and does not own, task by task.
//!
//! Tasks are documents of `config.rangeDeletions`. Each is *pending* from before there is anything to delete until its
//! migration is decided, then *ready*. Whether a ready task may run is decided by `protocol::range_deletion`; that a
//! document may go is decided once more for each, under the latch that every other writer takes.
//!
//! Where it can get stuck: while a cursor from before the migration lives, and while the config server cannot say
//! whether this shard owns the range. Both only keep orphans a little longer.

use super::ShardRole;
use super::migration::range::{KeyRange, Position, SLICE_TIME_MAX, shard_key_index, walk_slice};
use super::migration::request::{Coordinator, RecvStart};
use super::migration::{text, uuid_of};
use super::placement::State;
use super::refresh::placement_of;
use super::statistics::add;
use crate::key_pattern::ShardKeyPattern;
use crate::remote::Target;
use document::{Doc, Document, Result, Value, bail, doc, err};
use node::observer::WriteObserver;
use node::standstill::Extent;
use node::{Operation, Origin, WriteUnit};
use parking_lot::Mutex;
use protocol::range_deletion::{Facts, Next, Ownership, next};
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use storage::{CollectionView, RecordId};
use tokio::sync::watch;

pub const TASKS: &str = "config.rangeDeletions";
/// How often a task that waits for readers is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How often the donor of an undecided task is asked whether it still knows of the migration.
const ASK_DONOR: Duration = Duration::from_secs(10);

/// A document of `config.rangeDeletions`.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub id: [u8; 16],
    pub ns: String,
    pub uuid: [u8; 16],
    pub donor: String,
    pub min: Document,
    pub max: Document,
    pub key: Document,
    pub pending: bool,
    pub delayed: bool,
    pub ready_at_ms: i64,
    pub orphans: i64,
}

impl Task {
    pub fn from_document(d: &Document) -> Option<Task> {
        let range = d.get_document("range")?;
        Some(Task {
            id: uuid_of(d, "_id")?,
            ns: d.get_str("nss")?.to_string(),
            uuid: uuid_of(d, "collectionUuid")?,
            donor: text(d, "donorShardId"),
            min: range.get_document("min")?.clone(),
            max: range.get_document("max")?.clone(),
            key: d.get_document("keyPattern")?.clone(),
            pending: d.get_bool("pending") == Some(true),
            delayed: d.get_str("whenToClean") != Some("now"),
            ready_at_ms: match d.get("readyAt") {
                Some(Value::DateTime(ms)) => *ms,
                _ => d.get("timestamp").and_then(Value::as_timestamp).map_or(0, |t| i64::from(t.secs) * 1000),
            },
            orphans: d.get_i64("numOrphanDocs").unwrap_or(0),
        })
    }
    pub fn range(&self) -> Result<KeyRange> {
        KeyRange::new(Arc::new(ShardKeyPattern::parse(&self.key)?), &self.min, &self.max)
    }
    /// The range in terms of the collection's key as it is now, which may have been refined since the task was written.
    fn range_by(&self, key: &Arc<ShardKeyPattern>) -> Result<KeyRange> {
        match (key.refined_bound(&self.min), key.refined_bound(&self.max)) {
            (Some(min), Some(max)) => KeyRange::new(key.clone(), &min, &max),
            _ => self.range(),
        }
    }
}

/// The donor's own task, pending.
pub fn task_document(c: &Coordinator, when: &str) -> Document {
    doc! {
        "_id": Value::uuid(c.id), "nss": c.ns.as_str(), "collectionUuid": Value::uuid(c.uuid),
        "donorShardId": c.donor.as_str(), "range": c.range(), "pending": true, "whenToClean": when,
        "numOrphanDocs": 0i64, "keyPattern": c.key.clone(),
    }
}
/// The recipient's task, pending.
pub fn received_task_document(s: &RecvStart) -> Document {
    doc! {
        "_id": Value::uuid(s.id), "nss": s.ns.as_str(), "collectionUuid": Value::uuid(s.uuid),
        "donorShardId": s.from.as_str(), "range": { "min": s.min.clone(), "max": s.max.clone() }, "pending": true,
        "whenToClean": "now", "numOrphanDocs": 0i64, "keyPattern": s.key.clone(),
    }
}

/// Wakes the deleter, and those who wait for tasks to end.
pub struct RangeDeleter {
    changes: Arc<watch::Sender<u64>>,
    /// The tasks' collection is observed.
    watching: AtomicBool,
    /// Bytes of ranges that rest, by task.
    pub(crate) measured: Mutex<BTreeMap<[u8; 16], i64>>,
}

impl Default for RangeDeleter {
    fn default() -> Self {
        RangeDeleter {
            changes: Arc::new(watch::Sender::new(0)),
            watching: AtomicBool::new(false),
            measured: Mutex::default(),
        }
    }
}

struct Noticed(Arc<watch::Sender<u64>>);
impl WriteObserver for Noticed {
    fn inserted(&self, _ns: &str, _doc: Doc<'_>) {
        self.0.send_modify(|n| *n += 1);
    }
    fn updated(&self, _ns: &str, _new: Doc<'_>) {
        self.0.send_modify(|n| *n += 1);
    }
    fn deleted(&self, _ns: &str, _old: Doc<'_>) {
        self.0.send_modify(|n| *n += 1);
    }
}

/// Starts the deleter of a shard; it ends with the shard.
pub fn start(role: &Arc<ShardRole>) {
    if !role.deleter.watching.swap(true, Ordering::SeqCst) {
        role.node.observers.add(TASKS, Arc::new(Noticed(role.deleter.changes.clone())));
    }
    let worker = role.clone();
    role.spawn(async move { work(&worker).await });
}

/// Has the deleter look at the tasks anew, where their collection was exchanged.
pub fn look_again(role: &ShardRole) {
    role.deleter.changes.send_modify(|n| *n += 1);
}

/// All tasks; those of one namespace where given.
pub fn tasks(role: &ShardRole, ns: Option<&str>) -> Vec<Task> {
    // They keep the name that the collection had when they were written.
    let filter = ns.map_or_else(Document::new, |ns| match role.node.namespaces.slot(ns).uuid() {
        Some(uuid) => doc! { "collectionUuid": Value::uuid(uuid) },
        None => doc! { "nss": ns },
    });
    let found = role.local.find(TASKS, &filter).unwrap_or_default();
    found.iter().filter_map(Task::from_document).collect()
}

async fn work(role: &Arc<ShardRole>) {
    let mut changes = role.deleter.changes.subscribe();
    let mut asked = Instant::now();
    loop {
        changes.mark_unchanged();
        let mut wake: Option<Duration> = None;
        // Before the tasks are read.
        let restored_at = role.node.restored_at();
        let ask_donors = asked.elapsed() >= ASK_DONOR;
        for task in tasks(role, None) {
            let again = match attend(role, &task, restored_at, ask_donors).await {
                Ok(again) => again,
                // The config server or the log; looked at again.
                Err(_) => Some(Duration::from_secs(1)),
            };
            wake = [wake, again].into_iter().flatten().min();
        }
        if ask_donors {
            asked = Instant::now();
        }
        match wake {
            Some(pause) => {
                let _ = tokio::time::timeout(pause, changes.changed()).await;
            }
            None => {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Does what is to be done about a task now; answers when to look again (`None`: when the tasks change).
async fn attend(
    role: &Arc<ShardRole>,
    task: &Task,
    restored_at: u64,
    ask_donor: bool,
) -> Result<Option<Duration>> {
    // What is known of ownership is not of the data then.
    if all_data_is_exchanged(role) {
        return Ok(Some(LOOK_AGAIN));
    }
    let task = &Task { ns: namespace_of(role, task), ..task.clone() };
    let table = role.placement(&task.ns).and_then(|p| p.table().cloned());
    let range = match table.filter(|t| t.uuid == task.uuid) {
        Some(table) => task.range_by(&table.key)?,
        None => task.range()?,
    };
    let now_ms = role.node.now_ms();
    match next(facts(role, task, &range, now_ms)) {
        Next::WaitForOutcome => {
            if ask_donor {
                settle_if_forgotten(role, task).await?;
            }
            Ok(Some(ASK_DONOR))
        }
        // Not longer than a second: the delay is a parameter that may be lowered meanwhile.
        Next::WaitUntil(ms) => Ok(Some(Duration::from_millis((ms - now_ms).clamp(1, 1000) as u64))),
        Next::WaitForReaders => Ok(Some(LOOK_AGAIN)),
        Next::Refresh => {
            role.refresh_collection(&task.ns).await?;
            Ok(Some(LOOK_AGAIN))
        }
        Next::Drop => forget(role, task, restored_at).await,
        Next::Delete => match delete_range(role, task, &range).await? {
            true => forget(role, task, restored_at).await,
            false => Ok(Some(LOOK_AGAIN)),
        },
    }
}

fn all_data_is_exchanged(role: &ShardRole) -> bool {
    role.node.namespaces.standstill.holds(Extent::ReadsAndWrites)
}

/// Where the task's collection is now: a rename keeps its UUID.
fn namespace_of(role: &ShardRole, task: &Task) -> String {
    if role.node.namespaces.slot(&task.ns).holds(task.uuid) {
        return task.ns.clone();
    }
    let renamed = role.node.namespaces.all().into_iter().find(|slot| slot.holds(task.uuid));
    renamed.map_or_else(|| task.ns.clone(), |slot| slot.ns.clone())
}

/// Removes a task that is done; answers as [`attend`]. It stays where all data was exchanged since the task was read, or is now: what was put
/// back with it is yet to be deleted.
async fn forget(role: &ShardRole, task: &Task, restored_at: u64) -> Result<Option<Duration>> {
    let node = &role.node;
    let op = Operation::internal();
    let id = Value::uuid(task.id).to_holder();
    let remove = |unit: &mut WriteUnit<'_>| {
        if all_data_is_exchanged(role) || node.restored_at() != restored_at {
            return Ok(Some(LOOK_AGAIN));
        }
        let found = id.get("").and_then(|id| unit.collection()?.find_id(id)).map(|(record, _)| record);
        if let Some(record) = found {
            unit.delete(record, Origin::default())?;
        }
        Ok(None)
    };
    let (again, _) = node.write(&op, &node.namespaces.slot(TASKS), remove).await?;
    node.wait_operation_committed(&op).await?;
    Ok(again)
}

fn facts(role: &ShardRole, task: &Task, range: &KeyRange, now_ms: i64) -> Facts {
    let slot = role.node.namespaces.slot(&task.ns);
    let state = slot.read_unchecked();
    let exists = state.collection.as_ref().is_some_and(|c| c.uuid() == task.uuid);
    let ownership = placement_of(&state).map_or(Ownership::Unknown, |p| ownership(&p.state, task, range));
    drop(state);
    let delay = if task.delayed { role.parameters.int("orphanCleanupDelaySecs").max(0) * 1000 } else { 0 };
    Facts {
        pending: task.pending,
        collection_exists: exists,
        ownership,
        due_ms: task.ready_at_ms.saturating_add(delay),
        now_ms,
        read_by_somebody: role.is_read(&task.ns, &range.min, &range.max),
        suspended: role.node.failpoints.is_set("suspendRangeDeletion")
            || role.parameters.bool("disableResumableRangeDeleter"),
    }
}

fn ownership(state: &State, task: &Task, range: &KeyRange) -> Ownership {
    match state {
        State::Unknown => Ownership::Unknown,
        State::Unsharded => Ownership::NotSharded,
        State::Sharded { filter, .. } if filter.table.uuid != task.uuid => Ownership::NotSharded,
        State::Sharded { filter, .. } if filter.owns_part_of(&range.min, &range.max) => Ownership::Owned,
        State::Sharded { .. } => Ownership::NotOwned,
    }
}

/// Deletes the range; false when it may not go on (somebody owns or reads it again, or it was suspended).
async fn delete_range(role: &Arc<ShardRole>, task: &Task, range: &KeyRange) -> Result<bool> {
    let slot = role.node.namespaces.slot(&task.ns);
    let op = Operation::internal();
    role.node.failpoints.pause_while_set("hangBeforeDoingDeletion").await;
    let mut in_batch = 0;
    let mut records = RecordId::MIN;
    loop {
        if role.node.failpoints.is_set("suspendRangeDeletion") {
            return Ok(false);
        }
        let room = batch_max(role).saturating_sub(in_batch).max(1);
        // While all data is exchanged, what is known of ownership is not of the data that is here.
        let slice = |unit: &mut WriteUnit<'_>| match all_data_is_exchanged(role) {
            true => Ok(Slice::NotOurs),
            false => delete_slice(unit, task, range, room, &mut records),
        };
        let (slice, _) = role.node.write(&op, &slot, slice).await?;
        let (removed, bytes, end) = match slice {
            Slice::Gone => return Ok(true),
            Slice::NotOurs => return Ok(false),
            Slice::Removed { n, bytes, end } => (n, bytes, end),
        };
        add(&role.statistics.deleted_by_range_deleter, removed);
        add(&role.statistics.bytes_deleted_by_range_deleter, bytes);
        if end {
            role.node.wait_all_committed().await?;
            role.node.failpoints.pause_while_set("hangAfterDoingDeletion").await;
            return Ok(true);
        }
        in_batch += removed;
        if in_batch >= batch_max(role) {
            in_batch = 0;
            pause_between_batches(role).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
}

/// Documents of a batch at most; the parameter's 0 means no limit.
fn batch_max(role: &ShardRole) -> i64 {
    match role.parameters.int("rangeDeleterBatchSize") {
        n if n > 0 => n,
        _ => i64::MAX,
    }
}

/// As long as the parameter says, which may be lowered meanwhile.
async fn pause_between_batches(role: &ShardRole) {
    let since = Instant::now();
    let delay =
        || Duration::from_millis(u64::try_from(role.parameters.int("rangeDeleterBatchDelayMS")).unwrap_or(0));
    while let Some(left) = delay().checked_sub(since.elapsed()).filter(|left| !left.is_zero()) {
        tokio::time::sleep(left.min(LOOK_AGAIN)).await;
    }
}

enum Slice {
    /// The collection of the task's UUID is no more.
    Gone,
    /// Not to be deleted now.
    NotOurs,
    Removed {
        n: i64,
        bytes: i64,
        end: bool,
    },
}

/// One latch: what it finds in the range and this shard does not own goes, `room` documents at most.
fn delete_slice(
    unit: &mut WriteUnit<'_>,
    task: &Task,
    range: &KeyRange,
    room: i64,
    scanned: &mut RecordId,
) -> Result<Slice> {
    let Some(collection) = unit.collection().filter(|c| c.uuid() == task.uuid) else {
        return Ok(Slice::Gone);
    };
    let filter = match placement_of(unit.state).map(|p| &p.state) {
        Some(State::Sharded { filter, .. }) if filter.table.uuid == task.uuid => filter.clone(),
        _ => return Ok(Slice::NotOurs),
    };
    if filter.owns_part_of(&range.min, &range.max) {
        return Ok(Slice::NotOurs);
    }
    let mut found: Vec<RecordId> = Vec::new();
    let end = match shard_key_index(collection, &range.key) {
        // What was found is deleted, so every slice begins at the start of the range.
        Some(index) => walk_slice(collection, index, range, &mut Position::default(), |record| {
            found.push(record);
            found.len() < 256
        }),
        None => scan_slice(collection, range, scanned, &mut found),
    };
    let started = Instant::now();
    let (mut n, mut bytes, total) = (0, 0, found.len());
    for record in found {
        let Some(doc) = unit.existing()?.get(record) else { continue };
        // The last word on whether a document may go, under the latch.
        if !range.contains(doc) || node::namespace::OwnershipFilter::owns(filter.as_ref(), doc) {
            continue;
        }
        bytes += doc.bytes().len() as i64;
        unit.delete(record, Origin::MIGRATION)?;
        n += 1;
        if n >= room || started.elapsed() > SLICE_TIME_MAX {
            return Ok(Slice::Removed { n, bytes, end: false });
        }
    }
    // Documents in the range that may not go would be found for ever.
    Ok(Slice::Removed { n, bytes, end: end || (n == 0 && total > 0) })
}

/// Without an index on the shard key: by records.
fn scan_slice(
    view: &impl CollectionView,
    range: &KeyRange,
    from: &mut RecordId,
    found: &mut Vec<RecordId>,
) -> bool {
    let started = Instant::now();
    let mut cursor = view.records();
    let mut entry = cursor.seek(*from);
    while let Some((record, doc)) = entry {
        if found.len() >= 256 || started.elapsed() > SLICE_TIME_MAX {
            *from = found.first().copied().unwrap_or(record);
            return false;
        }
        if range.contains(doc) {
            found.push(record);
        }
        entry = cursor.next();
    }
    true
}

/// A pending task of a migration that its donor no longer knows: the donor settles before it forgets, so this one was
/// never committed (it arrived after its own abort). Nor does anybody know it when the donor was removed from the cluster; what this shard
/// owns does not go in any case. A donor's member that still takes itself for the primary may know nothing of what the
/// next one has begun: it has to prove that it is not deposed.
pub(super) async fn settle_if_forgotten(role: &Arc<ShardRole>, task: &Task) -> Result<()> {
    let own = role.require_identity()?.name.clone();
    let running = role.migrations.reception().is_some_and(|r| r.start.id == task.id);
    if *own == *task.donor || running {
        return Ok(());
    }
    let filter = doc! { "_id": Value::uuid(task.id) };
    let more =
        doc! { "readConcern": doc! { "level": "linearizable" }, "maxTimeMS": ASK_DONOR.as_millis() as i64 };
    let asked = role.remote.find(Target::Shard(&task.donor), "config", "migrationCoordinators", filter, more);
    let known = match asked.await {
        Err(e) if e.code == document::codes::SHARD_NOT_FOUND => Vec::new(),
        known => known?,
    };
    if known.is_empty() {
        let id = Value::uuid(task.id);
        role.local.modify(TASKS, &id, |d| drop(d.remove("pending"))).await?;
    }
    Ok(())
}

/// Waits until no task of this collection overlaps the range.
pub async fn no_overlap(role: &ShardRole, uuid: [u8; 16], range: &KeyRange) -> Result<()> {
    let mut changes = role.deleter.changes.subscribe();
    loop {
        changes.mark_unchanged();
        let overlaps = tasks(role, None)
            .iter()
            .any(|t| t.uuid == uuid && t.range_by(&range.key).map_or(true, |r| r.overlaps(range)));
        if !overlaps {
            return Ok(());
        }
        if changes.changed().await.is_err() {
            bail!(INTERRUPTED_AT_SHUTDOWN, "the range deleter has stopped");
        }
    }
}

/// Waits until this task is gone.
pub async fn gone(role: &ShardRole, id: [u8; 16]) -> Result<()> {
    let mut changes = role.deleter.changes.subscribe();
    loop {
        changes.mark_unchanged();
        if role.local.find_one(TASKS, &doc! { "_id": Value::uuid(id) })?.is_none() {
            return Ok(());
        }
        if changes.changed().await.is_err() {
            bail!(ORPHANED_RANGE_CLEAN_UP_FAILED, "the range deleter has stopped");
        }
    }
}

/// Waits until the collection has no decided task left.
pub async fn drained(role: &ShardRole, ns: &str) -> Result<()> {
    let mut changes = role.deleter.changes.subscribe();
    loop {
        changes.mark_unchanged();
        if tasks(role, Some(ns)).iter().all(|t| t.pending) {
            return Ok(());
        }
        if changes.changed().await.is_err() {
            bail!(ORPHANED_RANGE_CLEAN_UP_FAILED, "the range deleter has stopped");
        }
    }
}

/// `cleanupOrphaned`: waits until this shard's orphans of a collection are gone.
///
/// # Errors
/// NamespaceNotSharded-like texts of the real server; interrupts.
pub async fn cleanup_orphaned(role: &Arc<ShardRole>, op: &Operation, body: Doc<'_>) -> Result<Document> {
    role.require_identity()?;
    if role.parameters.bool("disableResumableRangeDeleter") {
        bail!(
            RESUMABLE_RANGE_DELETER_DISABLED,
            "cleanupOrphaned is not supported because the disableResumableRangeDeleter server parameter is set to true on this shard."
        );
    }
    let ns = body
        .get_str("cleanupOrphaned")
        .filter(|ns| ns.contains('.'))
        .ok_or_else(|| err!(INVALID_NAMESPACE, "cleanupOrphaned needs a namespace"))?;
    role.refresh_collection(ns).await?;
    op.interruptible(drained(role, ns)).await??;
    Ok(Document::new())
}
