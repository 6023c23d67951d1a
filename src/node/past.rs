//! Reading in the past: a collection as it stood at a cluster time.
//!
//! The node keeps a snapshot of itself every second ([`Node::remember`]), for as long as `minSnapshotHistoryWindowInSeconds`
//! says and little enough was written since. A collection at time T is the newest of these at or before T, with the log
//! done again from there up to T:
//!
//! ```text
//! kept      S1 ───────────── S2 ───────────── S3 ──▶ now
//! T                               ▲
//!                            └────┘  log entries of the collection, applied to a branch of what S2 has
//! ```
//!
//! A prepared transaction is visible from its commitTimestamp, which may lie before the entry that commits it. So the log is
//! read for such entries to where it ended when the moment was chosen; whoever reads at T has waited for what was prepared.
//! What is committed later belongs to no collection of the moment, whenever that is rebuilt.
//!
//! What these keep from being freed is bounded by the log since, and by what the trees say: an update of one field is little log, and
//! leaves a version as large as its document.
//!
//! What was rebuilt is kept for a while ([`Rebuilt`]), and the next read of the collection goes on from there: it costs what has happened
//! since, not what has since the snapshot.
//!
//! Record ids come out as they are in the live collection, since each insert takes the next one.
//!
//! Reads of level majority come here too, where the commit point lags behind what is here ([`Node::committed_moment`]). What a
//! rollback takes back, or a copy of another member replaces, is no past: [`Past::replace`].

use crate::namespace::Slot;
use crate::open::partial_predicate;
use crate::operation::Operation;
use crate::snapshots::{Frozen, NodeSnapshot};
use crate::transaction::Area;
use crate::view::View;
use crate::{Node, log_failed, memory};
use document::{Doc, Error, Result, Timestamp, ValueRef, codes, err};
use parking_lot::Mutex;
use runtime::Instant;
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use storage::entry::{Entry, Op};
use storage::log::{LogError, ReadFrom};
use storage::{Collection, CollectionView};
use tokio::sync::watch;

/// Bytes of log that may have been written since a snapshot that is kept, and of versions that are kept,
const BYTES_MAX: u64 = 256 << 20;
/// which is at most this part of what the process may hold.
const MEMORY_SHARE: usize = 8;

fn bytes_max() -> u64 {
    BYTES_MAX.min((memory::ceiling() / MEMORY_SHARE) as u64)
}

/// How long a rebuilt namespace is kept after it was last read.
const REBUILT_KEPT: Duration = Duration::from_secs(10);

/// Where the views of a database are defined.
const VIEWS: &str = "system.views";

struct Kept {
    snapshot: Arc<NodeSnapshot>,
    position: u64,
    taken: Instant,
}

/// A namespace with the log done again up to `ts`.
struct Rebuilt {
    frozen: Frozen,
    edition: u64,
    ts: u64,
    /// How far the log was read for it.
    read: u64,
    /// Nothing behind `ts` was done: what is done from there on comes in the log's order, which record ids follow.
    in_order: bool,
    used: Instant,
}

/// Snapshots kept for reads in the past, ascending.
#[derive(Default)]
pub struct Past {
    kept: Mutex<VecDeque<Kept>>,
    /// By namespace.
    rebuilt: Mutex<BTreeMap<String, Rebuilt>>,
    /// How often what had been written here was taken back.
    replaced: watch::Sender<u64>,
    /// Bytes of versions that others than these keep, by what letting some of these go did not free.
    held_by_others: AtomicU64,
}

impl Past {
    /// What was here has not been: it was rolled back, or everything was copied anew. To be called under the exclusive gate.
    pub(crate) fn replace(&self) {
        self.replaced.send_modify(|n| *n += 1);
        let gone = std::mem::take(&mut *self.kept.lock());
        let rebuilt = std::mem::take(&mut *self.rebuilt.lock());
        drop((gone, rebuilt));
    }
    /// What the namespace was at a time from which the log leads to the moment, with the time from which the log is read.
    fn rebuilt_before(&self, ns: &str, base: &NodeSnapshot, until: Until) -> Option<(Frozen, u64, bool)> {
        let mut all = self.rebuilt.lock();
        let found = all.get_mut(ns).filter(|r| r.edition == base.edition && r.ts >= base.ts)?;
        let from = match found.ts.cmp(&until.ts) {
            Ordering::Equal if found.read <= until.read => found.read,
            Ordering::Less if found.in_order => found.ts,
            _ => return None,
        };
        found.used = Instant::now();
        Some((found.frozen.clone(), from, found.in_order))
    }
    /// Keeps what was rebuilt, unless it is already kept of a later time.
    fn keep_rebuilt(&self, ns: &str, rebuilt: Rebuilt) {
        let mut all = self.rebuilt.lock();
        let is_past = rebuilt.edition == self.edition();
        if is_past && all.get(ns).is_none_or(|r| (r.ts, r.read) < (rebuilt.ts, rebuilt.read)) {
            let gone = all.insert(ns.to_string(), rebuilt);
            drop(all);
            // The trees are freed outside the lock.
            drop(gone);
        }
    }
    fn forget_rebuilt(&self) {
        let old = |_: &String, r: &mut Rebuilt| r.used.elapsed() > REBUILT_KEPT;
        let gone: Vec<_> = self.rebuilt.lock().extract_if(.., old).collect();
        drop(gone);
    }
    /// A number that [`Past::replace`] changes.
    pub(crate) fn edition(&self) -> u64 {
        *self.replaced.borrow()
    }
    /// A receiver that sees every edition from now on.
    pub(crate) fn editions(&self) -> watch::Receiver<u64> {
        self.replaced.subscribe()
    }
    /// Keeps a snapshot, unless what it shows was replaced since it was taken.
    fn keep(&self, snapshot: Arc<NodeSnapshot>, position: u64) {
        let mut kept = self.kept.lock();
        // Asked under the lock: a replacement that comes now empties what is kept.
        let is_past = snapshot.edition == self.edition();
        if is_past && kept.back().is_none_or(|k| k.snapshot.ts < snapshot.ts) {
            kept.push_back(Kept { snapshot, position, taken: Instant::now() });
        }
    }
    /// The newest that is kept of `at` or before.
    fn newest(&self, at: u64) -> Option<Arc<NodeSnapshot>> {
        let kept = self.kept.lock();
        kept.iter().rev().find(|k| k.snapshot.ts <= at).map(|k| k.snapshot.clone())
    }
}

/// All collections at one time.
#[derive(Clone)]
pub struct Moment {
    base: Arc<NodeSnapshot>,
    /// How far the log is done again; `None`: the base is the moment.
    until: Option<Until>,
}

#[derive(Clone, Copy)]
struct Until {
    ts: u64,
    /// Entries behind this one are not read: they commit nothing that belongs to the moment.
    read: u64,
}

impl Moment {
    pub(crate) fn of(base: Arc<NodeSnapshot>) -> Moment {
        Moment { base, until: None }
    }
    /// `ts`, from a base of that time or before, by a log whose last entry is of the time `read`.
    pub(crate) fn at(base: Arc<NodeSnapshot>, ts: u64, read: u64) -> Moment {
        Moment { base, until: Some(Until { ts, read }) }
    }
    /// The timestamp of what is read.
    pub fn ts(&self) -> u64 {
        self.until.map_or(self.base.ts, |until| until.ts)
    }
    /// What a namespace holds now, where the base is the moment; else [`Moment::rebuilt`] says.
    pub(crate) fn base(&self) -> Option<&NodeSnapshot> {
        self.until.is_none().then_some(&self.base)
    }

    /// The namespace with the log done again; not to be called under a latch.
    ///
    /// # Errors
    /// SnapshotUnavailable (246) where the log cannot be done again, as over a rename.
    pub(crate) fn rebuilt(&self, node: &Node, slot: &Slot) -> Result<Frozen> {
        let until = self.until.unwrap_or(Until { ts: self.base.ts, read: self.base.ts });
        let before = node.past.rebuilt_before(&slot.ns, &self.base, until);
        let of_base = || (self.base.read(slot, &slot.read_unchecked()), self.base.ts, true);
        let (frozen, from, in_order) = before.unwrap_or_else(of_base);
        let views = format!("{}.{VIEWS}", storage::split_namespace(&slot.ns).0);
        let mut replay = Replay::new(&slot.ns, &views, until, in_order);
        if let Some(c) = &frozen.collection {
            replay.collections.insert(slot.ns.clone(), c.branch());
        }
        replay.run(node, from)?;
        let in_order = replay.in_order;
        let collection = replay.collections.get(&slot.ns).map(Collection::snapshot);
        let view = match replay.views_changed && slot.ns != views {
            true => self.view(node, &views, &slot.ns)?,
            false => frozen.view,
        };
        let frozen = Frozen { collection, view };
        let Until { ts, read } = until;
        let (edition, used) = (self.base.edition, Instant::now());
        let rebuilt = Rebuilt { frozen: frozen.clone(), edition, ts, read, in_order, used };
        node.past.keep_rebuilt(&slot.ns, rebuilt);
        Ok(frozen)
    }

    /// The view of a name, by the definitions of its database at the moment.
    fn view(&self, node: &Node, views: &str, ns: &str) -> Result<Option<Arc<View>>> {
        let definitions = self.rebuilt(node, &node.namespaces.slot(views))?.collection;
        let found = definitions.as_ref().and_then(|c| c.find_id(ValueRef::String(ns)));
        let view = found.and_then(|(_, d)| View::from_document(&d.to_document()));
        Ok(view.map(|(_, view)| Arc::new(view)))
    }
}

impl Node {
    /// A number that changes when what was written here is taken back.
    pub fn past_edition(&self) -> u64 {
        self.past.edition()
    }

    /// Keeps the node as it is now for later reads in the past, and lets go of what is older than `window`. In a set of several
    /// members the newest that is committed stays, for reads of level majority.
    pub async fn remember(&self, window: Duration) {
        let position = self.log.appended();
        let unchanged = self.past.kept.lock().back().is_some_and(|k| k.position == position);
        let shared = self.replication.commit.is_shared();
        if !unchanged && (shared || !window.is_zero()) {
            // Nothing ends this operation.
            if let Ok(snapshot) = self.snapshot(&Operation::internal()).await {
                self.past.keep(Arc::new(snapshot), self.log.appended());
            }
        }
        let committed = if shared { self.committed().ts } else { u64::MAX };
        let most = bytes_max();
        let superseded = self.superseded_bytes();
        let others = self.past.held_by_others.load(Relaxed).min(superseded);
        let too_much = superseded - others > most;
        let mut gone = Vec::new();
        let mut kept = self.past.kept.lock();
        let far = |k: &Kept| position.saturating_sub(k.position) > most;
        let over = |k: &Kept| far(k) || (k.taken.elapsed() > window && k.snapshot.ts <= committed);
        // The newest before the window is what its beginning is read from.
        while kept.len() > 1 && over(&kept[1]) {
            gone.extend(kept.pop_front());
        }
        // The older half goes, and at the next second again if that was not enough: what each of them keeps is not known.
        let mut older = if too_much { kept.len() / 2 } else { 0 };
        while older > 0 && kept.len() > 1 && kept[1].snapshot.ts <= committed {
            gone.extend(kept.pop_front());
            older -= 1;
        }
        // From there on the log is no longer kept.
        let cut = self.log.first_position();
        while kept.front().is_some_and(|k| k.position < cut) {
            gone.extend(kept.pop_front());
        }
        if window.is_zero() && !shared {
            gone.extend(kept.drain(..));
        }
        drop(kept);
        drop(gone);
        // An open transaction may hold them, a cursor or a checkpoint: less of a past would free nothing.
        let freed = !too_much || self.superseded_bytes() < superseded;
        self.past.held_by_others.store(if freed { others } else { superseded }, Relaxed);
        self.past.forget_rebuilt();
    }

    /// Bytes of all collections' versions that are none of the present any more.
    fn superseded_bytes(&self) -> u64 {
        let of_slot = |slot: &Arc<Slot>| {
            slot.read_unchecked().collection.as_ref().map_or(0, Collection::superseded_bytes)
        };
        self.namespaces.all().iter().map(of_slot).sum()
    }

    /// All collections now, or at the time given. Waits for prepared transactions, whose outcome may belong to it.
    ///
    /// # Errors
    /// SnapshotTooOld (239) for a time before what is kept; interrupts.
    pub(crate) async fn moment(&self, op: &Operation, at: Option<Timestamp>) -> Result<Moment> {
        if let Some(at) = at {
            self.log.advance_clock(at.as_u64());
        }
        let Some(at) = at else {
            loop {
                self.wait_prepared(op, Area::All, Timestamp::MAX).await?;
                let snapshot = Arc::new(self.snapshot(op).await?);
                // What was prepared in between may be committed as of a time that the snapshot covers.
                if !self.is_any_prepared(Timestamp::from_u64(snapshot.ts)) {
                    return Ok(Moment::of(snapshot));
                }
            }
        };
        self.wait_prepared(op, Area::All, at).await?;
        if self.log.last_optime().ts <= at.as_u64() {
            let snapshot = Arc::new(self.snapshot(op).await?);
            if snapshot.ts <= at.as_u64() {
                return Ok(Moment::of(snapshot));
            }
        }
        let base = self.past.newest(at.as_u64()).ok_or_else(|| too_old(at))?;
        // Also where the base was taken at this very time: a transaction that was prepared then may be visible from before.
        Ok(Moment::at(base, at.as_u64(), self.log.last_optime().ts))
    }

    /// All collections at the commit point; `None` where nothing that old is kept. A transaction that was decided since is seen if
    /// its commitTimestamp is of that time: with its preparation a majority has it, and its outcome is settled.
    pub(crate) fn committed_moment(&self) -> Option<Moment> {
        let at = self.committed().ts;
        Some(Moment::at(self.past.newest(at)?, at, self.log.last_optime().ts))
    }

    /// Whether the node can be read as of `at`.
    pub(crate) fn keeps(&self, at: Timestamp) -> bool {
        self.past.newest(at.as_u64()).is_some()
    }

    /// Keeps the moment of a snapshot read, so that the session's later reads find it.
    pub(crate) fn keep_read(&self, moment: &Moment) {
        if moment.until.is_none() {
            self.past.keep(moment.base.clone(), self.log.appended());
        }
    }
}

/// The log done again for one namespace.
struct Replay<'a> {
    ns: &'a str,
    at: u64,
    /// The newest entry that is read.
    last: u64,
    collections: BTreeMap<String, Collection>,
    /// Where the views of its database are defined, and whether these definitions have changed.
    views: &'a str,
    views_changed: bool,
    /// Nothing behind the time was done.
    in_order: bool,
}

impl<'a> Replay<'a> {
    fn new(ns: &'a str, views: &'a str, until: Until, in_order: bool) -> Replay<'a> {
        let Until { ts: at, read: last } = until;
        Replay { ns, at, last, collections: BTreeMap::new(), views, views_changed: false, in_order }
    }

    fn run(&mut self, node: &Node, from: u64) -> Result<()> {
        let at = Timestamp::from_u64(self.at);
        let read_failed = |e: LogError| match e {
            LogError::PositionLost { .. } | LogError::Truncated { .. } => too_old(at),
            failed => log_failed(failed),
        };
        let mut reader = node.log.reader(ReadFrom::Ts(from)).map_err(read_failed)?;
        // Whether the log has been kept since the snapshot.
        let mut kept = from == 0 && node.log.first_position() == 0;
        while let Some(frame) = reader.next().map_err(read_failed)? {
            if frame.optime.ts <= from {
                kept = true;
                continue;
            }
            if frame.optime.ts > self.last {
                break;
            }
            if !kept {
                return Err(too_old(at));
            }
            let entry = Entry::read(Doc::from_validated(frame.payload))?;
            let visible = frame.optime.ts <= self.at;
            match (entry.op, entry.command()) {
                (Op::Command, Some(("commitTransaction", _))) => {
                    let done = self.prepared(node, &entry)?;
                    self.in_order &= visible || !done;
                }
                (Op::Command, Some(("applyOps", _))) if visible => self.operations(node, &entry)?,
                _ if visible => self.apply(&entry)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// What an `applyOps` did, with the entries before it in its chain: on a member that had it from another, the snapshot may lie in
    /// the midst of a chain.
    fn operations(&mut self, node: &Node, entry: &Entry<'_>) -> Result<()> {
        let flag = |name: &str| entry.o.get_bool(name) == Some(true);
        match flag("prepare") || flag("partialTxn") {
            true => Ok(()),
            false => self.transaction(node, entry),
        }
    }

    fn transaction(&mut self, node: &Node, last: &Entry<'_>) -> Result<()> {
        let operations = node.transaction_operations(last.doc()).map_err(|e| match e.code {
            codes::INCOMPLETE_TRANSACTION_HISTORY => too_old(Timestamp::from_u64(self.at)),
            _ => e,
        })?;
        operations.iter().try_for_each(|o| self.apply(&Entry::read(o.doc())?))
    }

    /// What a prepared transaction wrote, if it is visible at the time; whether it is.
    fn prepared(&mut self, node: &Node, entry: &Entry<'_>) -> Result<bool> {
        let at = entry.o.get("commitTimestamp").and_then(|v| v.as_timestamp());
        if at.is_none_or(|at| at.as_u64() > self.at) {
            return Ok(false);
        }
        self.transaction(node, entry).map(|()| true)
    }

    fn apply(&mut self, entry: &Entry<'_>) -> Result<()> {
        self.views_changed |= self.concerns(entry, self.views);
        if !self.concerns(entry, self.ns) {
            return Ok(());
        }
        storage::recovery::apply_operation(&mut self.collections, entry, &partial_predicate).map_err(
            |reason| err!(SNAPSHOT_UNAVAILABLE, "Unable to read '{}' from a snapshot: {reason}", self.ns),
        )?;
        // What is written under another name is not read here: a collection that was renamed away and comes back is unknown.
        self.collections.retain(|ns, _| ns == self.ns);
        Ok(())
    }

    fn concerns(&self, entry: &Entry<'_>, ns: &str) -> bool {
        let (db, name) = storage::split_namespace(ns);
        match (entry.op, entry.command()) {
            (Op::Noop, _) => false,
            (Op::Command, Some(("renameCollection" | "tesseraFork", from))) => {
                from.as_str() == Some(ns) || entry.o.get_str("to") == Some(ns)
            }
            (Op::Command, Some(("dropDatabase", _))) => false,
            (Op::Command, Some((_, target))) => {
                storage::split_namespace(entry.ns).0 == db && target.as_str() == Some(name)
            }
            _ => entry.ns == ns,
        }
    }
}

fn too_old(at: Timestamp) -> Error {
    err!(
        SNAPSHOT_TOO_OLD,
        "Read timestamp Timestamp({}, {}) is older than the oldest available timestamp.",
        at.secs,
        at.inc
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddl::rename::{DropTarget, rename};
    use crate::local::LocalClient;
    use crate::operation::{ReadConcern, ReadLevel};
    use crate::replication::testing;
    use document::doc;
    use storage::log::OpTime;

    /// It reads what is here then, and waits.
    #[tokio::test]
    async fn a_majority_read_whose_past_was_cut_is_not_refused() {
        let node = testing::node(Some("rs"));
        node.initiate(testing::config()).await.unwrap();
        node.replication.commit.set_shared(true);
        let mut before_the_log = node.snapshot(&Operation::internal()).await.unwrap();
        before_the_log.ts = 1;
        node.past.keep(Arc::new(before_the_log), node.log.appended());
        node.replication.commit.advance(OpTime { ts: 2, term: 0 });
        let mut op = Operation::internal();
        op.read_concern =
            ReadConcern { given: true, level_given: true, level: ReadLevel::Majority, ..op.read_concern };
        let moment = node.committed_moment().unwrap();
        let slot = node.namespaces.slot("d.c");
        assert_eq!(moment.rebuilt(&node, &slot).err().map(|e| e.code), Some(codes::SNAPSHOT_TOO_OLD));
        node.read_at_one_moment(&op, || Some(vec!["d.c".to_string()])).await.unwrap();
        assert!(op.transaction().is_none());
    }

    /// A field of a large document changes each second: that is little log.
    #[tokio::test]
    async fn versions_of_a_large_document_are_kept_within_bounds() {
        let node = testing::node(Some("rs"));
        node.initiate(testing::config()).await.unwrap();
        let large = doc! { "_id": 1, "n": 0, "s": "x".repeat(15 << 20) };
        LocalClient::new(node.clone()).put("d.c", &large).await.unwrap();
        let statement = doc! { "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } };
        let update = doc! { "update": "c", "updates": document::array![statement] }.to_doc_buf();
        for _ in 0..40 {
            let request = crate::Request { db: "d", body: update.doc(), sequences: &[] };
            crate::write::update::update(&node, &Operation::internal(), request).await.unwrap();
            node.remember(Duration::from_secs(300)).await;
        }
        assert!(node.superseded_bytes() < BYTES_MAX + (40 << 20), "{}", node.superseded_bytes());
        assert!(node.past.newest(node.log.last_optime().ts).is_some());
    }

    /// Letting the past go would not free them.
    #[tokio::test]
    async fn versions_that_others_hold_shorten_no_past() {
        let node = testing::node(Some("rs"));
        node.initiate(testing::config()).await.unwrap();
        let client = LocalClient::new(node.clone());
        let large = |id: i32| doc! { "_id": id, "s": "x".repeat(15 << 20) };
        for id in 0..20 {
            client.put("d.c", &large(id)).await.unwrap();
        }
        let held = node.snapshot(&Operation::internal()).await.unwrap();
        for id in 0..20 {
            client.put("d.c", &doc! { "_id": id }).await.unwrap();
        }
        assert!(node.superseded_bytes() > BYTES_MAX);
        for n in 0..10 {
            node.remember(Duration::from_secs(300)).await;
            client.put("d.other", &doc! { "_id": n }).await.unwrap();
        }
        assert!(node.past.kept.lock().len() > 5, "{}", node.past.kept.lock().len());
        drop(held);
        node.remember(Duration::from_secs(300)).await;
        assert!(node.superseded_bytes() < 1 << 20);
    }

    #[tokio::test]
    async fn a_snapshot_of_what_was_rolled_back_is_not_kept() {
        let node = testing::node(Some("rs"));
        node.initiate(testing::config()).await.unwrap();
        let (before, at) =
            (Arc::new(node.snapshot(&Operation::internal()).await.unwrap()), node.log.last_optime().ts);
        node.past.replace();
        node.past.keep(before, node.log.appended());
        assert!(node.past.newest(at).is_none());
        node.past.keep(Arc::new(node.snapshot(&Operation::internal()).await.unwrap()), node.log.appended());
        assert!(node.past.newest(at).is_some());
    }

    #[tokio::test]
    async fn a_view_is_read_as_it_was_defined_then() {
        let node = testing::node(Some("rs"));
        node.initiate(testing::config()).await.unwrap();
        let op = Operation::internal();
        let run = async |command: document::Document| {
            let body = command.to_doc_buf();
            let request = crate::Request { db: "d", body: body.doc(), sequences: &[] };
            let done = match request.name() {
                "create" => crate::ddl::collections::create(&node, &op, request).await,
                _ => crate::ddl::coll_mod::coll_mod(&node, &op, request).await,
            };
            done.unwrap();
            node.log.last_optime().ts
        };
        LocalClient::new(node.clone()).ensure_collection("d.c", &[]).await.unwrap();
        node.remember(Duration::from_secs(60)).await;
        let before = node.log.last_optime().ts;
        let made = run(doc! { "create": "v", "viewOn": "c", "pipeline": document::array![] }).await;
        let changed = run(doc! { "collMod": "v", "viewOn": "b", "pipeline": document::array![] }).await;
        let drop = crate::ddl::collections::drop_collection(&node, &op, "d.v", false);
        drop.await.unwrap();
        let dropped = node.log.last_optime().ts;
        let on = |at: u64| {
            let moment = Moment::at(node.past.newest(at).unwrap(), at, dropped);
            let frozen = moment.rebuilt(&node, &node.namespaces.slot("d.v")).unwrap();
            frozen.view.map(|view| view.on.clone())
        };
        assert_eq!(
            [before, made, changed, dropped].map(on),
            [None, Some("c".to_string()), Some("b".to_string()), None]
        );
    }

    /// The second read does again only what has come since the first: entries that it need not read are no longer there.
    #[tokio::test]
    async fn a_later_read_goes_on_from_what_was_rebuilt_before() {
        let node = testing::node(Some("rs"));
        node.initiate(testing::config()).await.unwrap();
        let local = LocalClient::new(node.clone());
        local.ensure_collection("d.c", &[]).await.unwrap();
        node.remember(Duration::from_secs(60)).await;
        let base = node.past.newest(u64::MAX).unwrap();
        let slot = node.namespaces.slot("d.c");
        let mut times = Vec::new();
        for n in 0..4i64 {
            local.put("d.c", &doc! { "_id": n }).await.unwrap();
            times.push(node.log.last_optime().ts);
        }
        let ids = |ts: u64| {
            let frozen =
                Moment::at(base.clone(), ts, node.log.last_optime().ts).rebuilt(&node, &slot).unwrap();
            let all = frozen.collection.unwrap();
            let mut records = all.records();
            let first = records.first();
            let all = std::iter::successors(first, |_| records.next());
            all.map(|(record, d)| (record, d.get_i64("_id").unwrap())).collect::<Vec<_>>()
        };
        let applied = || node.past.rebuilt.lock().get("d.c").map(|r| r.ts);
        let live = || {
            let now = node.namespaces.slot("d.c").read_unchecked().collection.as_ref().unwrap().snapshot();
            let mut records = now.records();
            let first = records.first();
            std::iter::successors(first, |_| records.next()).map(|(record, _)| record).collect::<Vec<_>>()
        };
        assert_eq!((ids(times[1]).len(), applied()), (2, Some(times[1])));
        // From there on, and not from the snapshot.
        let until = Until { ts: times[3], read: times[3] };
        let (_, from, _) = node.past.rebuilt_before("d.c", &base, until).unwrap();
        assert_eq!(from, times[1]);
        let found = ids(times[3]);
        assert_eq!(found.iter().map(|(_, id)| *id).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(found.iter().map(|(record, _)| *record).collect::<Vec<_>>(), live());
        // An earlier time is read from the snapshot, and takes nothing away.
        assert_eq!((ids(times[0]).len(), applied()), (1, Some(times[3])));
        node.past.replace();
        assert_eq!(applied(), None);
    }

    /// What was written under the other name would be missing.
    #[tokio::test]
    async fn what_was_renamed_away_and_back_is_not_rebuilt_from_before() {
        let node = testing::node(Some("rs"));
        node.initiate(testing::config()).await.unwrap();
        let (local, op) = (LocalClient::new(node.clone()), Operation::internal());
        local.ensure_collection("d.c", &[]).await.unwrap();
        node.remember(Duration::from_secs(60)).await;
        rename(&node, &op, "d.c", "d.other", DropTarget::Refuse).await.unwrap();
        local.put("d.other", &doc! { "_id": 2i64 }).await.unwrap();
        rename(&node, &op, "d.other", "d.c", DropTarget::Refuse).await.unwrap();
        let last = node.log.last_optime().ts;
        let moment = Moment::at(node.past.newest(last).unwrap(), last, last);
        let rebuilt = moment.rebuilt(&node, &node.namespaces.slot("d.c"));
        assert_eq!(rebuilt.err().map(|e| e.code), Some(codes::SNAPSHOT_UNAVAILABLE));
    }
}
