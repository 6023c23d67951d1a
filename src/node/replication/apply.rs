//! Entries of another member's log, applied to this member's trees and appended to its log as they were.
//!
//! ```text
//! gate (shared; exclusive for commands) -> namespace latches
//!   one entry after the other: prepare (may fail) -> trees -> append with the entry's own time and term -> sessions
//! ```
//! Entries are applied one by one in the order of the log, so a reader on a secondary always sees a state that the primary
//! went through. Consecutive writes to one collection share a latch, for a bounded number of entries.
//!
//! An entry whose image for a retry was too large to come along gets it here, from the document before or after the change.
//!
//! An entry that does not fit means that the two logs or the two trees differ: nothing of it is applied, and the caller has
//! this member copy everything anew.

use crate::Node;
use crate::db_check;
use crate::namespace::{Slot, SlotState};
use crate::open::{apply_session_fields, partial_predicate};
use crate::transaction::Area;
use crate::write::commit::Committing;
use document::{Doc, DocBuf, DocWriter, Result, Timestamp, bail, err};
use parking_lot::{Mutex, RwLockWriteGuard};
use query::timeseries::BUCKETS_PREFIX;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use storage::checkpoint::OpenTransaction;
use storage::entry::{Entry, Op, RETRY_IMAGES};
use storage::log::{Class, OpTime, Position};
use storage::recovery::{Applier, apply_to_collection};
use storage::{Collection, CollectionView, split_namespace};

/// Writes to one collection that share a latch.
const RUN_MAX: usize = 64;

/// An entry as it came: the payload of its frame, and what the frame carries.
pub(crate) struct Fetched {
    pub payload: DocBuf,
    pub optime: OpTime,
    pub wall: i64,
}

impl Fetched {
    /// Takes apart an entry as `local.oplog.rs` shows it.
    ///
    /// # Errors
    /// BadValue (2) for a document that is no entry of version 2.
    pub(crate) fn read(shown: Doc<'_>) -> Result<Fetched> {
        let ts = shown.get("ts").and_then(|v| v.as_timestamp());
        let (Some(ts), Some(2)) = (ts, shown.get_i64("v")) else {
            bail!(BAD_VALUE, "not an oplog entry of version 2: {shown:?}")
        };
        let payload = DocWriter::build(|w| {
            for element in shown.iter() {
                if !matches!(element.name_bytes(), b"ts" | b"t" | b"v" | b"wall") {
                    w.element(&element);
                }
            }
        });
        let wall = match shown.get("wall") {
            Some(document::ValueRef::DateTime(wall)) => wall,
            _ => 0,
        };
        let optime = OpTime { ts: ts.as_u64(), term: shown.get_i64("t").unwrap_or(-1) };
        Ok(Fetched { payload, optime, wall })
    }
    fn entry(&self) -> Result<Entry<'_>> {
        Entry::read(self.payload.doc())
    }
    /// Which image for a retry the entry had where it comes from and does not have here. (The image of a change to a time series
    /// is a measurement, which is not the document that changes.)
    fn missing_image(&self, entry: &Entry<'_>) -> Option<&'static str> {
        let kind = self.payload.doc().get_str("needsRetryImage")?;
        let of_series = split_namespace(entry.ns).1.starts_with(BUCKETS_PREFIX);
        RETRY_IMAGES.into_iter().find(|known| *known == kind && !of_series)
    }
    /// The entry with its image.
    fn with_image(&self, kind: &str, image: &DocBuf) -> Fetched {
        let payload = DocWriter::build(|w| {
            for element in self.payload.doc().iter() {
                match element.name_bytes() {
                    b"needsRetryImage" => w.document(kind, image.doc()),
                    _ => w.element(&element),
                }
            }
        });
        Fetched { payload, optime: self.optime, wall: self.wall }
    }
}

/// The document of an entry as it is now, if the image that is missing is the one of this moment.
fn image_in(collection: &Collection, entry: &Entry<'_>, missing: &str, kind: &str) -> Option<DocBuf> {
    let id = entry.document_id().filter(|_| missing == kind)?;
    CollectionView::find_id(collection, id).map(|(_, d)| d.to_owned())
}

/// Session and number of a transaction.
pub(crate) type Key = (DocBuf, i64);

/// What lies between entries: transactions whose operations came and whose outcome did not.
pub(super) struct Between(Mutex<Applier<'static>>);

impl Default for Between {
    fn default() -> Self {
        Between(Mutex::new(Applier::new(&partial_predicate)))
    }
}

impl Between {
    /// The state was replaced by one in which these are under way.
    pub(super) fn replace(&self, transactions: Vec<OpenTransaction>) {
        let mut applier = Applier::new(&partial_predicate);
        applier.restore_transactions(transactions);
        *self.0.lock() = applier;
    }
    /// Adds what this member has prepared itself.
    pub(super) fn add(&self, transactions: Vec<OpenTransaction>) {
        self.0.lock().restore_transactions(transactions);
    }
    pub(super) fn open(&self) -> Vec<OpenTransaction> {
        self.0.lock().transactions().cloned().collect()
    }
    pub(super) fn first_position(&self) -> Option<Position> {
        self.0.lock().transactions().map(|t| t.first_position).min()
    }
    pub(super) fn prepared(&self, area: Area<'_>, until: Timestamp) -> Vec<Key> {
        let applier = self.0.lock();
        let prepared = applier.transactions().filter(|t| {
            t.prepared.is_some_and(|at| at.ts <= until.as_u64()) && area.is_written_by(&t.operations)
        });
        prepared.map(|t| (t.lsid.clone(), t.txn_number)).collect()
    }
    pub(super) fn has_any(&self, keys: &[Key]) -> bool {
        let is = |t: &OpenTransaction, key: &Key| (&t.lsid, t.txn_number) == (&key.0, key.1);
        self.0.lock().transactions().any(|t| keys.iter().any(|key| is(t, key)))
    }
}

impl Node {
    /// Applies entries in order, and appends them. Those before the one that failed are done.
    ///
    /// # Errors
    /// InternalError-like (1): an entry does not fit what is here.
    pub(crate) fn apply_entries(&self, entries: &[Fetched]) -> Result<()> {
        let _committing = Committing;
        let mut at = 0;
        while at < entries.len() {
            let first = entries[at].entry()?;
            at += match first.op {
                Op::Insert | Op::Update | Op::Delete => self.apply_run(first.ns, &entries[at..])?,
                Op::Command if is_check(&first) => self.note_check(&first, &entries[at]),
                Op::Command => self.apply_command(&first, &entries[at]).map(|()| 1)?,
                Op::Noop => self.apply_noop(&entries[at]),
            };
        }
        Ok(())
    }

    fn apply_noop(&self, fetched: &Fetched) -> usize {
        {
            let _gate = self.gate.read();
            // Every reign begins with such an entry.
            if fetched.optime.term > self.log.last_optime().term {
                self.replication.between.0.lock().end_chains();
            }
            self.append_fetched(fetched);
        }
        self.note_first_of_term(fetched);
        1
    }

    /// An entry of a check changes nothing; what it is compared with is the collection as it is here and now.
    fn note_check(&self, entry: &Entry<'_>, fetched: &Fetched) -> usize {
        let ns = entry.o.get_str(db_check::follow::COMMAND).unwrap_or("");
        let _gate = self.gate.read();
        let snapshot = self.namespaces.slot(ns).read_unchecked().collection.as_ref().map(|c| c.snapshot());
        self.db_checks.heard.note(entry, snapshot);
        self.append_fetched(fetched);
        1
    }

    /// The first entry of a reign tells when it began whoever has voted in its election.
    fn note_first_of_term(&self, fetched: &Fetched) {
        if let Some(p) = &mut *self.replication.participation.lock()
            && p.term == fetched.optime.term
            && p.term_began.is_none()
        {
            p.term_began = Some((fetched.wall, self.now_ms()));
        }
    }

    /// Writes to one namespace; returns how many.
    fn apply_run(&self, ns: &str, entries: &[Fetched]) -> Result<usize> {
        let slot = self.namespaces.slot(ns);
        let observers = self.observers.of(ns);
        let mut done = 0;
        let _gate = self.gate.read();
        {
            let mut state = slot.write_unchecked();
            self.snapshots.before_change(&slot, &mut state);
            for fetched in entries.iter().take(RUN_MAX) {
                let entry = fetched.entry()?;
                if entry.ns != ns || matches!(entry.op, Op::Command | Op::Noop) {
                    break;
                }
                let Some(collection) = state.collection.as_mut() else {
                    return Err(misfit(&entry, "the collection does not exist"));
                };
                let missing = fetched.missing_image(&entry);
                let before = missing.and_then(|kind| image_in(collection, &entry, kind, "preImage"));
                apply_to_collection(collection, &entry).map_err(|reason| misfit(&entry, &reason))?;
                let image = before
                    .or_else(|| missing.and_then(|kind| image_in(collection, &entry, kind, "postImage")));
                match missing.zip(image) {
                    Some((kind, image)) => self.append_fetched(&fetched.with_image(kind, &image)),
                    None => self.append_fetched(fetched),
                }
                for observer in &observers {
                    tell(observer.as_ref(), collection, &entry);
                }
                self.replication.metrics.operations.count(&entry);
                done += 1;
            }
        }
        if ns.ends_with(".system.views") {
            self.reload_views(split_namespace(ns).0);
        }
        Ok(done)
    }

    /// A change of the catalog, or several operations in one entry: nothing else is under way meanwhile.
    fn apply_command(&self, entry: &Entry<'_>, fetched: &Fetched) -> Result<()> {
        let slots = match touched(entry) {
            Some(names) => names.iter().map(|ns| self.namespaces.slot(ns)).collect(),
            None => self.namespaces.all(),
        };
        let replaces = has_forks(entry);
        let builds = self.builds_indexes();
        let mut gone = HashMap::new();
        {
            let _gate = self.gate.write();
            let mut between = self.replication.between.0.lock();
            let mut states: Vec<RwLockWriteGuard<'_, SlotState>> = Vec::with_capacity(slots.len());
            for slot in &slots {
                let mut state = slot.write_unchecked();
                self.snapshots.before_change(slot, &mut state);
                if let Some(collection) = state.uninstall() {
                    gone.insert(collection.uuid(), slot.ns.clone());
                    between.collections.insert(slot.ns.clone(), collection);
                }
                states.push(state);
            }
            let position = self.log.appended();
            let outcome = between.apply(entry, position, fetched.optime);
            if !builds {
                between.collections.values_mut().for_each(Collection::defer_indexes);
            }
            for (slot, state) in slots.iter().zip(&mut states) {
                if let Some(collection) = between.collections.remove(&slot.ns) {
                    gone.remove(&collection.uuid());
                    state.install(collection);
                }
            }
            // What has a name that was not among those touched would be a fault of `touched`.
            let strays: Vec<String> = between.collections.keys().cloned().collect();
            for ns in strays {
                if let Some(collection) = between.collections.remove(&ns) {
                    gone.remove(&collection.uuid());
                    self.namespaces.slot(&ns).write_unchecked().install(collection);
                }
            }
            outcome.map_err(|reason| err!(INTERNAL_ERROR, "{reason}"))?;
            self.tell_of_each(entry, &slots, &states);
            self.append_fetched(fetched);
            self.replication.metrics.operations.count(entry);
            drop(states);
            if !replaces {
                views_of(entry).iter().for_each(|db| self.reload_views(db));
            }
        }
        gone.into_iter().for_each(|(uuid, ns)| self.forget_dropped(uuid, &ns));
        if replaces {
            self.cursors.kill_where(|_, _| true);
            self.load_views();
        }
        Ok(())
    }

    /// Tells observers of the writes that one entry consists of. What a transaction has only prepared is none yet.
    fn tell_of_each(
        &self,
        entry: &Entry<'_>,
        slots: &[Arc<Slot>],
        states: &[RwLockWriteGuard<'_, SlotState>],
    ) {
        if entry.o.get("prepare").is_some() || entry.o.get("partialTxn").is_some() {
            return;
        }
        for write in operations(entry).filter_map(|o| Entry::read(o).ok()) {
            let observers = match write.op {
                Op::Insert | Op::Update | Op::Delete => self.observers.of(write.ns),
                Op::Command | Op::Noop => continue,
            };
            if observers.is_empty() {
                continue;
            }
            let at = slots.iter().position(|slot| slot.ns == write.ns);
            if let Some(collection) = at.and_then(|at| states[at].collection.as_ref()) {
                observers.iter().for_each(|observer| tell(observer.as_ref(), collection, &write));
            }
        }
    }

    fn append_fetched(&self, fetched: &Fetched) {
        self.log.append_at(Class::Oplog, fetched.optime, fetched.wall, &[fetched.payload.bytes()]);
        apply_session_fields(&self.sessions, fetched.payload.doc(), fetched.optime, fetched.wall);
    }
}

fn misfit(entry: &Entry<'_>, reason: &str) -> document::Error {
    err!(INTERNAL_ERROR, "op '{}' on {} cannot be applied: {reason}", entry.op.letter(), entry.ns)
}

fn tell(observer: &dyn crate::observer::WriteObserver, c: &storage::Collection, entry: &Entry<'_>) {
    match entry.op {
        Op::Insert => observer.inserted(entry.ns, entry.o),
        Op::Delete => observer.deleted(entry.ns, entry.o),
        _ => {
            if let Some((_, new)) = entry.document_id().and_then(|id| c.find_id(id)) {
                observer.updated(entry.ns, new);
            }
        }
    }
}

fn is_check(entry: &Entry<'_>) -> bool {
    entry.command().is_some_and(|(name, _)| name == db_check::follow::COMMAND)
}

/// Whether collections take the place of others.
fn has_forks(entry: &Entry<'_>) -> bool {
    let first = |d: document::Doc<'_>| {
        let o = d.get_document("o").and_then(|o| o.iter().next());
        o.is_some_and(|e| e.name() == "tesseraFork")
    };
    operations(entry).any(first)
}

/// What an `applyOps` consists of.
pub(super) fn operations<'a>(entry: &Entry<'a>) -> impl Iterator<Item = Doc<'a>> {
    let list = match entry.command() {
        Some(("applyOps", list)) => list.as_array(),
        _ => None,
    };
    list.into_iter().flat_map(|list| list.iter()).filter_map(|e| e.value().as_document())
}

/// The databases whose views a command may have changed, alone or with others in one entry.
fn views_of(entry: &Entry<'_>) -> BTreeSet<String> {
    let defining = |e: &Entry<'_>| {
        let (db, name) = split_namespace(e.ns);
        let target = e.command().and_then(|(_, target)| target.as_str());
        (name == "system.views" || target == Some("system.views")).then(|| db.to_string())
    };
    let inner = operations(entry).filter_map(|o| defining(&Entry::read(o).ok()?));
    inner.chain(defining(entry)).collect()
}

/// The namespaces that a command changes; `None` when it can be any.
fn touched(entry: &Entry<'_>) -> Option<BTreeSet<String>> {
    let (name, argument) = entry.command()?;
    let db = split_namespace(entry.ns).0;
    let one = |ns: String| Some(BTreeSet::from([ns]));
    match name {
        "create" | "drop" | "createIndexes" | "commitIndexBuild" | "startIndexBuild" | "abortIndexBuild"
        | "dropIndexes" | "deleteIndexes" | "collMod" => one(format!("{db}.{}", argument.as_str()?)),
        "renameCollection" => {
            let to = entry.o.get_str("to")?;
            Some(BTreeSet::from([argument.as_str()?.to_string(), to.to_string()]))
        }
        "applyOps" if entry.lsid().is_none() => {
            let operations = argument.as_array()?;
            let mut names = BTreeSet::new();
            for operation in operations.iter().filter_map(|e| e.value().as_document()) {
                let inner = Entry::read(operation).ok()?;
                if inner.op == Op::Command {
                    return None;
                }
                names.insert(inner.ns.to_string());
            }
            Some(names)
        }
        _ => None,
    }
}
