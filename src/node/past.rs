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
use crate::{Node, log_failed};
use document::{Doc, Error, Result, Timestamp, ValueRef, codes, err};
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use storage::entry::{Entry, Op};
use storage::log::{LogError, ReadFrom};
use storage::{Collection, CollectionView};
use tokio::sync::watch;

/// Bytes of log that may have been written since a snapshot that is kept: about what it keeps from being freed.
const LOG_BYTES_MAX: u64 = 256 << 20;

/// Where the views of a database are defined.
const VIEWS: &str = "system.views";

struct Kept {
    snapshot: Arc<NodeSnapshot>,
    position: u64,
    taken: Instant,
}

/// Snapshots kept for reads in the past, ascending.
#[derive(Default)]
pub struct Past {
    kept: Mutex<VecDeque<Kept>>,
    /// How often what had been written here was taken back.
    replaced: watch::Sender<u64>,
}

impl Past {
    /// What was here has not been: it was rolled back, or everything was copied anew. To be called under the exclusive gate.
    pub(crate) fn replace(&self) {
        self.replaced.send_modify(|n| *n += 1);
        let gone = std::mem::take(&mut *self.kept.lock());
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
        let frozen = self.base.read(slot, &slot.read_unchecked());
        let views = format!("{}.{VIEWS}", storage::split_namespace(&slot.ns).0);
        let mut replay = Replay::new(&slot.ns, &views, self.until, self.base.ts);
        if let Some(c) = &frozen.collection {
            replay.collections.insert(slot.ns.clone(), c.branch());
        }
        replay.run(node, self.base.ts)?;
        let collection = replay.collections.get(&slot.ns).map(Collection::snapshot);
        let view = match replay.views_changed && slot.ns != views {
            true => self.view(node, &views, &slot.ns)?,
            false => frozen.view,
        };
        Ok(Frozen { collection, view })
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
    pub fn remember(&self, window: Duration) {
        let position = self.log.appended();
        let unchanged = self.past.kept.lock().back().is_some_and(|k| k.position == position);
        let shared = self.replication.commit.is_shared();
        if !unchanged && (shared || !window.is_zero()) {
            self.past.keep(Arc::new(self.snapshot()), self.log.appended());
        }
        let committed = if shared { self.committed().ts } else { u64::MAX };
        let mut gone = Vec::new();
        let mut kept = self.past.kept.lock();
        let far = |k: &Kept| position.saturating_sub(k.position) > LOG_BYTES_MAX;
        let over = |k: &Kept| far(k) || (k.taken.elapsed() > window && k.snapshot.ts <= committed);
        // The newest before the window is what its beginning is read from.
        while kept.len() > 1 && over(&kept[1]) {
            gone.extend(kept.pop_front());
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
                let snapshot = Arc::new(self.snapshot());
                // What was prepared in between may be committed as of a time that the snapshot covers.
                if !self.is_any_prepared(Timestamp::from_u64(snapshot.ts)) {
                    return Ok(Moment::of(snapshot));
                }
            }
        };
        self.wait_prepared(op, Area::All, at).await?;
        if self.log.last_optime().ts <= at.as_u64() {
            let snapshot = Arc::new(self.snapshot());
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
}

impl<'a> Replay<'a> {
    fn new(ns: &'a str, views: &'a str, until: Option<Until>, base: u64) -> Replay<'a> {
        let Until { ts, read } = until.unwrap_or(Until { ts: base, read: base });
        Replay { ns, at: ts, last: read, collections: BTreeMap::new(), views, views_changed: false }
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
                (Op::Command, Some(("commitTransaction", _))) => self.prepared(node, &entry)?,
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

    /// What a prepared transaction wrote, if it is visible at the time.
    fn prepared(&mut self, node: &Node, entry: &Entry<'_>) -> Result<()> {
        let at = entry.o.get("commitTimestamp").and_then(|v| v.as_timestamp());
        if at.is_none_or(|at| at.as_u64() > self.at) {
            return Ok(());
        }
        self.transaction(node, entry)
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
        let mut before_the_log = node.snapshot();
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

    #[tokio::test]
    async fn a_snapshot_of_what_was_rolled_back_is_not_kept() {
        let node = testing::node(Some("rs"));
        node.initiate(testing::config()).await.unwrap();
        let (before, at) = (Arc::new(node.snapshot()), node.log.last_optime().ts);
        node.past.replace();
        node.past.keep(before, node.log.appended());
        assert!(node.past.newest(at).is_none());
        node.past.keep(Arc::new(node.snapshot()), node.log.appended());
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
        node.remember(Duration::from_secs(60));
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

    /// What was written under the other name would be missing.
    #[tokio::test]
    async fn what_was_renamed_away_and_back_is_not_rebuilt_from_before() {
        let node = testing::node(Some("rs"));
        node.initiate(testing::config()).await.unwrap();
        let (local, op) = (LocalClient::new(node.clone()), Operation::internal());
        local.ensure_collection("d.c", &[]).await.unwrap();
        node.remember(Duration::from_secs(60));
        rename(&node, &op, "d.c", "d.other", DropTarget::Refuse).await.unwrap();
        local.put("d.other", &doc! { "_id": 2i64 }).await.unwrap();
        rename(&node, &op, "d.other", "d.c", DropTarget::Refuse).await.unwrap();
        let last = node.log.last_optime().ts;
        let moment = Moment::at(node.past.newest(last).unwrap(), last, last);
        let rebuilt = moment.rebuilt(&node, &node.namespaces.slot("d.c"));
        assert_eq!(rebuilt.err().map(|e| e.code), Some(codes::SNAPSHOT_UNAVAILABLE));
    }
}
