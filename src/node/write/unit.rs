//! One commit: changes to one namespace, applied to its trees and appended to the log under its latch.
//!
//! ```text
//! gate (shared) -> database latch (shared) -> namespace latch (exclusive)
//!   version and critical section checked
//!   for each change:  prepare (may fail)  ->  apply to the trees  ->  stage its log entry
//!   append all staged entries to the log; session table takes them in
//! latches released; whoever must wait for durability waits now
//! ```
//!
//! So the log has no holes, its order is the order of application, and whoever takes the latch after choosing a time T
//! sees all that is at or before T.
//!
//! Invariant: between the first change to a tree and the append nothing fails. A closure that returns an error after
//! it changed something has still committed those changes. A panic in between aborts the process ([`Committing`]).

use super::ahead::Source;
use super::commit::Commit;
use crate::namespace::{OwnershipFilter, SlotState};
use crate::operation::{Operation, Received};
use crate::transaction::locks::{Ended, Lock};
use crate::transaction::{Part, write_conflict};
use crate::{Node, memory, namespace::Slot};
use document::delta::{self, Touched};
use document::{Doc, DocBuf, Document, Result, Value, bail, codes, doc, err, meter};
use query::matcher::Matcher;
use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use storage::collection::UpdatePlan;
use storage::entry::{Draft, Entry, O2, Op};
use storage::log::Appended;
use storage::{Collection, CollectionMeta, RecordId};

/// What a change's log entry carries besides the change.
#[derive(Clone, Copy, Default)]
pub struct Origin<'a> {
    /// The statement of a retryable write.
    pub statement: Option<i32>,
    /// More statements that this one change carries out.
    pub also: &'a [i32],
    /// Written by a migration or a range deletion.
    pub from_migrate: bool,
    /// More members of the entry, such as a findAndModify image.
    pub more: Option<Doc<'a>>,
}

impl Origin<'_> {
    pub const MIGRATION: Origin<'static> =
        Origin { statement: None, also: &[], from_migrate: true, more: None };
    pub fn statement(statement: Option<i32>) -> Origin<'static> {
        Origin { statement, also: &[], from_migrate: false, more: None }
    }
}

/// A document's replacement, prepared: nothing about it fails any more.
pub struct Replacement {
    plan: UpdatePlan,
    difference: Option<DocBuf>,
}

impl Replacement {
    /// The log keeps the whole new document.
    pub fn whole(mut self) -> Replacement {
        self.difference = None;
        self
    }
    /// The log keeps the whole new document where that is the shorter; consumers of the log then see a replacement.
    pub fn shorter_of(self, new: Doc<'_>) -> Replacement {
        match &self.difference {
            Some(difference) if difference.bytes().len() < new.bytes().len() => self,
            _ => self.whole(),
        }
    }
}

/// Changes to one namespace inside an open commit; made by [`Node::write`] and [`super::commit::WideUnit::on`].
pub struct WriteUnit<'a> {
    pub node: &'a Node,
    pub slot: &'a Slot,
    pub state: &'a mut SlotState,
    pub(super) op: &'a Operation,
    filter: OnceCell<Option<Arc<dyn OwnershipFilter>>>,
    /// The validator as of the time of this commit, once a document was held to one that asks for the time.
    pub(super) timed_validator: OnceCell<Matcher>,
    commit: &'a mut Commit,
    /// Set where the changes are a transaction's: they go into its branch, and are logged when it commits.
    part: Option<Part<'a>>,
    /// The transaction whose lock a write outside transactions has met.
    blocked: Cell<Option<Ended>>,
    /// What runs in it can be called again: see [`super::ahead`].
    pub(super) repeats: bool,
}

impl Node {
    /// Runs `f` as one commit on `ns`: versions checked, latch held exclusively. The answer carries where the log
    /// stands behind the commit's entries; `None` when nothing was changed.
    ///
    /// # Errors
    /// Stale versions, interrupts while waiting for a critical section, a failed log, and whatever `f` answers.
    /// Changes `f` made before it failed are committed: [`Node::note_commit`] of the operation knows them.
    pub async fn write<T>(
        &self,
        op: &Operation,
        slot: &Slot,
        f: impl FnOnce(&mut WriteUnit<'_>) -> Result<T>,
    ) -> Result<(T, Option<Appended>)> {
        self.write_as(op, &op.received, slot, f).await
    }

    /// As [`Node::write`], for other versions than those of the request.
    pub(crate) async fn write_as<T>(
        &self,
        op: &Operation,
        received: &Received,
        slot: &Slot,
        f: impl FnOnce(&mut WriteUnit<'_>) -> Result<T>,
    ) -> Result<(T, Option<Appended>)> {
        let done = match op.transaction() {
            Some(t) => {
                self.check_user_writes(op, &slot.ns)?;
                match self.failpoints.should("WTWriteConflictException") {
                    true => Err(write_conflict()),
                    false => Box::pin(t.write(self, slot, op, received, f)).await.map(|out| (out, None)),
                }
            }
            None => {
                self.admit(op).await?;
                slot.write(&self.gate, op, received, |state| self.write_unit(op, slot, state, f)).await
            }
        };
        if matches!(&done, Err(e) if e.code == codes::WRITE_CONFLICT) {
            self.write_conflicts.increment();
        }
        self.log_validation_failures(op);
        done
    }

    /// As [`Node::write_as`], for a write of a client: when it meets what an open transaction has changed, `f` is called
    /// again once that has ended; and when it asks what would take too long under the latch, once that is answered. Until then `f`
    /// has changed nothing that it would change again.
    pub(crate) async fn write_waiting<T>(
        &self,
        op: &Operation,
        received: &Received,
        slot: &Slot,
        mut f: impl FnMut(&mut WriteUnit<'_>) -> Result<T>,
    ) -> Result<(T, Option<Appended>)> {
        loop {
            let mut blocked = None;
            let done = self
                .write_as(op, received, slot, |unit| {
                    unit.repeats = true;
                    let out = f(unit);
                    blocked = unit.blocked.take().filter(|_| out.is_err());
                    out
                })
                .await;
            let Some(mut ended) = blocked else {
                match &done {
                    Err(e) if e.code == meter::OVERRUN && op.ahead.work(self) => continue,
                    _ => return done,
                }
            };
            let wait = async move {
                // A dropped sender has ended, too.
                let _ = ended.wait_for(|ended| *ended).await;
            };
            op.interruptible(wait).await?;
        }
    }

    /// One commit under the latch that `state` is guarded by.
    pub(crate) fn write_unit<T>(
        &self,
        op: &Operation,
        slot: &Slot,
        state: &mut SlotState,
        f: impl FnOnce(&mut WriteUnit<'_>) -> Result<T>,
    ) -> Result<(T, Option<Appended>)> {
        self.check_may_log(&slot.ns)?;
        self.check_user_writes(op, &slot.ns)?;
        self.snapshots.before_change(slot, state);
        let mut commit = Commit::open(self.class_of(&slot.ns));
        let out = f(&mut WriteUnit::new(self, slot, state, op, &mut commit));
        let appended = commit.finish(self, op);
        Ok((out?, appended))
    }
}

impl<'a> WriteUnit<'a> {
    pub(super) fn new(
        node: &'a Node,
        slot: &'a Slot,
        state: &'a mut SlotState,
        op: &'a Operation,
        commit: &'a mut Commit,
    ) -> WriteUnit<'a> {
        WriteUnit {
            node,
            slot,
            state,
            op,
            filter: OnceCell::new(),
            timed_validator: OnceCell::new(),
            commit,
            part: None,
            blocked: Cell::new(None),
            repeats: false,
        }
    }

    /// Runs `f` on a transaction's branch of the namespace.
    pub(crate) fn in_transaction<T>(
        node: &Node,
        slot: &Slot,
        state: &mut SlotState,
        op: &Operation,
        part: Part<'_>,
        f: impl FnOnce(&mut WriteUnit<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut commit = Commit::apart();
        let mut unit = WriteUnit::new(node, slot, state, op, &mut commit);
        unit.part = Some(part);
        f(&mut unit)
    }

    /// Refuses what an open transaction has locked; [`Node::write_waiting`] then waits for it.
    ///
    /// # Errors
    /// WriteConflict (112).
    fn refuse_locked(&self, locks: impl IntoIterator<Item = Lock>) -> Result<()> {
        for lock in locks {
            if let Some(ended) = self.node.transactions.locks.holder(&lock) {
                self.blocked.set(Some(ended));
                return Err(write_conflict());
            }
        }
        Ok(())
    }
    /// Whether no transaction has locked anything; asked first, since it mostly is so.
    fn nothing_locked(&self) -> bool {
        self.node.transactions.locks.is_empty()
    }

    /// Claims the unique keys of a document that is to be inserted.
    fn claim_insert(&mut self, doc: Doc<'_>) -> Result<()> {
        self.refuse_capped()?;
        if self.part.is_none() && self.nothing_locked() {
            return Ok(());
        }
        let Some(collection) = &self.state.collection else { return Ok(()) };
        let keys = collection.unique_keys(doc, self.node.offered_keys(), &self.source())?;
        let uuid = collection.uuid();
        match &mut self.part {
            Some(part) => part.lock_keys(keys.iter().map(|(slot, key)| (*slot, key.as_slice()))),
            None => self.refuse_locked(keys.into_iter().map(|(slot, key)| Lock::Key(uuid, slot, key))),
        }
    }

    /// Refuses, outside transactions, to change a record or to take keys that one has locked.
    fn check_unlocked(&self, record: RecordId, new: Option<Doc<'_>>) -> Result<()> {
        if self.part.is_some() || self.nothing_locked() {
            return Ok(());
        }
        let Some(collection) = self.collection() else { return Ok(()) };
        let uuid = collection.uuid();
        self.refuse_locked([Lock::Record(uuid, record)])?;
        let unique = |new| collection.unique_keys(new, self.node.offered_keys(), &self.source());
        let keys = new.map(unique).transpose()?.unwrap_or_default();
        self.refuse_locked(keys.into_iter().map(|(slot, key)| Lock::Key(uuid, slot, key)))
    }

    pub(super) fn is_in_transaction(&self) -> bool {
        self.part.is_some()
    }
    /// Whether this is a transaction's, and the collection was there before it.
    pub(super) fn is_older_than_transaction(&self) -> bool {
        self.part.as_ref().is_some_and(Part::is_older)
    }

    /// Claims the name for a collection that is to be made.
    ///
    /// # Errors
    /// WriteConflict (112) where a transaction makes one of this name, or another has made one meanwhile.
    pub fn claim_namespace(&mut self) -> Result<()> {
        let ns = &self.slot.ns;
        if let Some(part) = &mut self.part {
            return part.lock_namespace(ns);
        }
        match self.nothing_locked() {
            true => Ok(()),
            false => self.refuse_locked([Lock::Namespace(ns.clone())]),
        }
    }

    fn refuse_capped(&self) -> Result<()> {
        if self.part.is_some() && self.state.capped.is_some() {
            let ns = &self.slot.ns;
            bail!(
                OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                "Collection '{ns}' is a capped collection. Writes in transactions are not allowed on capped collections."
            );
        }
        Ok(())
    }

    /// Applies an operation of a transaction that commits; nothing is staged.
    pub(crate) fn apply(&mut self, entry: &Entry<'_>) -> Result<()> {
        let ns = &self.slot.ns;
        let done = match (entry.op, entry.command()) {
            (Op::Command, Some(("create", _))) if self.state.collection.is_none() => {
                storage::recovery::created(ns.clone(), entry).map(|c| self.state.install(c))
            }
            (Op::Command, Some(("createIndexes", _))) => {
                let o = entry.o.to_document();
                self.existing_mut()
                    .map_err(|e| e.message)
                    .and_then(|c| storage::recovery::create_index(c, &o, &crate::open::partial_predicate))
            }
            (Op::Noop, _) => Ok(()),
            (Op::Command, command) => {
                Err(format!("{:?} is no operation of a transaction", command.map(|c| c.0)))
            }
            _ => self
                .existing_mut()
                .map_err(|e| e.message)
                .and_then(|c| storage::recovery::apply_to_collection(c, entry)),
        };
        done.map_err(|reason| {
            err!(INTERNAL_ERROR, "a transaction's write to {} does not fit: {reason}", self.slot.ns)
        })
    }

    /// Tells the observers of an operation that was applied.
    pub(crate) fn tell(&self, entry: &Entry<'_>) {
        let now = || entry.document_id().and_then(|id| self.collection()?.find_id(id)).map(|(_, d)| d);
        match entry.op {
            Op::Insert => self.observe(|o, ns| o.inserted(ns, entry.o)),
            Op::Update => self.observe(|o, ns| now().iter().for_each(|new| o.updated(ns, *new))),
            Op::Delete => self.observe(|o, ns| o.deleted(ns, entry.o)),
            Op::Command | Op::Noop => {}
        }
    }

    /// The collection, if there is one.
    pub fn collection(&self) -> Option<&Collection> {
        self.state.collection.as_ref()
    }
    /// # Errors
    /// NamespaceNotFound (26).
    pub fn existing(&self) -> Result<&Collection> {
        self.collection().ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns does not exist: {}", self.slot.ns))
    }
    fn existing_mut(&mut self) -> Result<&mut Collection> {
        existing_in(self.slot, self.state)
    }

    /// Whether the write may touch the document: one that this shard owns, and any at all for a request that came past
    /// the routers, with which tests and operators mend what a shard merely holds.
    pub fn owns(&self, doc: Doc<'_>) -> bool {
        self.op.received.shard.is_none() || !self.is_orphan(doc)
    }
    /// Whether an update may give its document another shard key: a retryable write may, on its own or as a router's
    /// transaction, and a transaction of the client's.
    pub fn may_change_shard_key(&self) -> bool {
        let unnumbered = |id: &crate::operation::SessionId| id.child.is_some_and(|c| c.number.is_none());
        match &self.part {
            Some(_) => !self.op.session.as_ref().is_some_and(|s| unnumbered(&s.lsid)),
            None => self.op.is_retryable_write(),
        }
    }
    /// Whether the router takes a document that belongs to another shard there, in the same transaction.
    pub fn may_move_document(&self) -> bool {
        self.part.is_some() && self.op.may_move_document
    }
    /// Whether a router's update leaves the shard key as it was; true for all others.
    pub fn keeps_shard_key(&self, old: Doc<'_>, new: Doc<'_>) -> bool {
        self.op.received.shard.is_none() || self.filter().is_none_or(|f| f.same_key(old, new))
    }
    /// The field of the shard key that a router's update has made an array, or put below one.
    pub fn array_in_shard_key(&self, new: Doc<'_>) -> Option<String> {
        self.filter().filter(|_| self.op.received.shard.is_some())?.array_in_key(new)
    }
    /// Whether this shard holds the document without owning it. A write to it is nothing that a migration takes along.
    pub fn is_orphan(&self, doc: Doc<'_>) -> bool {
        self.filter().is_some_and(|f| !f.owns(doc))
    }
    fn filter(&self) -> Option<&Arc<dyn OwnershipFilter>> {
        self.filter.get_or_init(|| self.state.placement.as_ref().and_then(|p| p.filter())).as_ref()
    }

    /// Passes the fail point `onPrimaryTransactionalWrite` before a statement of a retryable write: it fails the
    /// statement, or lets it happen, and in either case loses the connection unless told not to.
    fn pass_fail_point(&self, origin: Origin<'_>) -> Result<()> {
        if origin.statement.is_none() || !self.op.has_txn_number() {
            return Ok(());
        }
        let Some(data) = self.node.failpoints.should_with("onPrimaryTransactionalWrite", |_| true) else {
            return Ok(());
        };
        if data.get("closeConnection").is_none_or(Value::truthy) {
            self.op.lose_connection();
        }
        match data.get("failBeforeCommitExceptionCode").and_then(Value::as_i64) {
            Some(code) => Err(document::Error::new(
                i32::try_from(code).unwrap_or(document::codes::UNKNOWN_ERROR),
                "Failing write for unit test: 'failBeforeCommitExceptionCode' was set",
            )),
            None => Ok(()),
        }
    }

    /// Refuses a client's document where the data fills the memory. Asked where it enters, before anything is staged for it: a
    /// commit that has begun is finished.
    ///
    /// # Errors
    /// ExceededMemoryLimit (146).
    pub fn check_room(&self) -> Result<()> {
        memory::check_growth(self.op, &self.slot.ns)
    }

    /// As [`WriteUnit::check_room`], where a client's update makes a document larger.
    pub fn check_room_of(&self, old: Doc<'_>, new: Doc<'_>) -> Result<()> {
        if new.bytes().len() > old.bytes().len() { self.check_room() } else { Ok(()) }
    }

    /// Inserts a document that has its `_id` first.
    pub fn insert(&mut self, doc: Doc<'_>, origin: Origin<'_>) -> Result<RecordId> {
        self.pass_fail_point(origin)?;
        self.claim_insert(doc)?;
        let (keys, source) = (self.node.offered_keys(), self.source());
        let collection = existing_in(self.slot, self.state)?;
        let uuid = collection.uuid();
        let plan = &mut self.commit.insert_plan;
        collection.prepare_insert_into(doc, keys, &source, plan)?;
        if self.node.profiling.load(Relaxed) {
            self.op.profiler_notes().keys(plan.added().count(), 0);
        }
        let record = collection.insert_with(plan, doc);
        let key = self.sharded_key(doc);
        self.stage(Op::Insert, Some(uuid), named_by(&key, doc), doc, origin, None);
        self.observe(|o, ns| o.inserted(ns, doc));
        Ok(record)
    }

    /// Puts `new` in the place of the document at `record`; the log keeps all of it.
    pub fn replace(&mut self, record: RecordId, new: Doc<'_>, origin: Origin<'_>) -> Result<()> {
        self.check_unlocked(record, Some(new))?;
        let plan = self.existing()?.prepare_update(record, new)?;
        self.put(record, Replacement { plan, difference: None }, new, origin)
    }

    /// Prepares to put `new` in the place of `old`, the document at `record`. The log will keep the difference, along the
    /// paths that operators were told to write.
    pub fn prepare_update(
        &self,
        record: RecordId,
        old: Doc<'_>,
        new: Doc<'_>,
        touched: Option<&Touched>,
    ) -> Result<Replacement> {
        self.check_unlocked(record, Some(new))?;
        let plan = self.existing()?.prepare_update_of(
            record,
            (old, new),
            self.node.offered_keys(),
            &self.source(),
        )?;
        let difference = match touched {
            Some(touched) => delta::compute_along(old, new, touched),
            None => delta::compute(old, new),
        };
        Ok(Replacement { plan, difference: Some(difference) })
    }

    /// Puts `new` in the place of the document it was prepared for.
    pub fn put(
        &mut self,
        record: RecordId,
        prepared: Replacement,
        new: Doc<'_>,
        origin: Origin<'_>,
    ) -> Result<()> {
        self.pass_fail_point(origin)?;
        self.refuse_capped()?;
        if let Some(part) = &mut self.part {
            part.lock_record(record)?;
            let unique = |slot: usize| {
                self.state.collection.as_ref().is_some_and(|c| c.indexes()[slot].spec().unique())
            };
            let keys = prepared.plan.removed().chain(prepared.plan.added());
            part.lock_keys(keys.filter(|(slot, _)| unique(*slot)))?;
        }
        if self.node.profiling.load(Relaxed) {
            let (added, removed) = (prepared.plan.added().count(), prepared.plan.removed().count());
            self.op.profiler_notes().keys(added, removed);
        }
        let keeps_images = self.state.keeps_images;
        let collection = self.existing_mut()?;
        let uuid = collection.uuid();
        let image = collection.get(record).filter(|_| keeps_images).map(|d| d.to_owned());
        collection.update(record, prepared.plan, new);
        let key = self.sharded_key(new);
        let logged = prepared.difference.as_ref().map_or(new, DocBuf::doc);
        self.stage(Op::Update, Some(uuid), named_by(&key, new), logged, origin, image.as_ref());
        self.observe(|o, ns| o.updated(ns, new));
        Ok(())
    }

    /// Shard key and `_id` of a document of a sharded collection: how the log names it.
    fn sharded_key(&self, doc: Doc<'_>) -> Option<DocBuf> {
        Some(self.filter()?.document_key(doc))
    }

    fn source(&self) -> Source<'a> {
        if self.repeats { Source::Ahead(self.op) } else { Source::Computed }
    }

    /// Removes the document at `record`; false when there is none.
    pub fn delete(&mut self, record: RecordId, origin: Origin<'_>) -> Result<bool> {
        self.remove(record, origin, self.source())
    }

    /// The same after a change that may not be made again.
    pub(super) fn delete_as_well(&mut self, record: RecordId, origin: Origin<'_>) -> Result<bool> {
        self.remove(record, origin, Source::Computed)
    }

    fn remove(&mut self, record: RecordId, origin: Origin<'_>, source: Source<'_>) -> Result<bool> {
        self.pass_fail_point(origin)?;
        self.check_unlocked(record, None)?;
        self.refuse_capped()?;
        let collection = existing_in(self.slot, self.state)?;
        let uuid = collection.uuid();
        let Some(old) = collection.get(record).map(|d| d.to_owned()) else { return Ok(false) };
        let removed = &mut self.commit.removed;
        collection.prepare_delete(old.doc(), &source, removed)?;
        if let Some(part) = &mut self.part {
            part.lock_record(record)?;
            let unique = |slot: usize| collection.indexes()[slot].spec().unique();
            part.lock_keys(removed.iter().filter(|(slot, _)| unique(*slot)))?;
        }
        if self.node.profiling.load(Relaxed) {
            self.op.profiler_notes().keys(0, removed.len());
        }
        collection.delete_with(record, removed);
        let key = self.sharded_key(old.doc()).unwrap_or_else(|| {
            document::DocWriter::build(|w| old.doc().element("_id").iter().for_each(|id| w.element(id)))
        });
        let image = Some(&old).filter(|_| self.state.keeps_images);
        self.stage(Op::Delete, Some(uuid), O2::None, key.doc(), origin, image);
        self.observe(|o, ns| o.deleted(ns, old.doc()));
        Ok(true)
    }

    /// Makes the collection for a client's first document.
    ///
    /// # Errors
    /// StaleConfig (13388) when the collection is sharded: a sharded one is made by DDL only, so the placement known here
    /// is of a collection that was dropped. Both the router and this shard have to look.
    pub fn create_implicitly(&mut self) -> Result<()> {
        let sharded = self.state.placement.as_ref().is_some_and(|p| p.filter().is_some());
        let ns = self.slot.ns.as_str();
        if sharded && self.op.received.shard.is_some() {
            // Without the versions, so that nobody takes this for news that he has already.
            let info = doc! { "ns": ns };
            return Err(err!(STALE_CONFIG, "the sharded collection {ns} does not exist here").with_info(info));
        }
        super::extras::check_case(self.node, &self.slot.database.name)?;
        self.claim_namespace()?;
        let meta = CollectionMeta::new(ns, self.node.new_uuid());
        self.create_collection(meta, false);
        Ok(())
    }

    /// Makes the collection of this namespace and logs its creation. The caller has checked that there is none.
    pub fn create_collection(&mut self, meta: CollectionMeta, from_migrate: bool) {
        let mut o = Document::new();
        o.push("create", meta.name());
        for (name, value) in meta.options.iter() {
            o.push(name, value.clone());
        }
        if meta.id_index {
            o.insert("idIndex", document::doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" });
        }
        let uuid = meta.uuid;
        self.state.install(Collection::new(meta));
        self.command(Some(uuid), o, None, from_migrate);
    }

    /// Stages a command entry (`db.$cmd`) for a catalog change that the caller makes in the same unit.
    pub fn command(&mut self, uuid: Option<[u8; 16]>, o: Document, o2: Option<Document>, from_migrate: bool) {
        let ns = format!("{}.$cmd", self.slot.database.name);
        let o = o.to_doc_buf();
        let o2 = o2.map(|d| d.to_doc_buf());
        let o2 = o2.as_ref().map_or(O2::None, |d| O2::Doc(d.doc()));
        let from_migrate = from_migrate || self.op.from_migrate;
        let draft = Draft { o2, from_migrate, ..Draft::new(Op::Command, &ns, uuid) };
        match &mut self.part {
            Some(part) => part.push(&draft, o.doc()),
            None => self.commit.stage(&draft, o.doc(), None),
        }
    }

    /// A no-op entry that tells change streams of a change of the cluster's catalog: `o2` begins with the change's name.
    pub fn note(&mut self, uuid: Option<[u8; 16]>, o2: Document) {
        let message = o2.first().map(|(name, _)| doc! { name: self.slot.ns.as_str() }).unwrap_or_default();
        let (o, o2) = (doc! { "msg": message }.to_doc_buf(), o2.to_doc_buf());
        self.stage(Op::Noop, uuid, O2::Doc(o2.doc()), o.doc(), Origin::default(), None);
    }

    /// A no-op entry that records a statement or a message.
    pub fn noop(&mut self, o: Document, origin: Origin<'_>) {
        let o = o.to_doc_buf();
        self.stage(Op::Noop, None, O2::None, o.doc(), origin, None);
    }

    /// Stages an entry; `image` is the document before the change where the collection keeps pre-images.
    fn stage(
        &mut self,
        op: Op,
        uuid: Option<[u8; 16]>,
        o2: O2<'_>,
        o: Doc<'_>,
        origin: Origin<'_>,
        image: Option<&DocBuf>,
    ) {
        let draft = Draft {
            o2,
            from_migrate: origin.from_migrate,
            image_before: image.map(DocBuf::doc),
            more: origin.more,
            ..Draft::new(op, &self.slot.ns, uuid)
        };
        match &mut self.part {
            Some(part) => {
                let kept = part.history(origin);
                part.push(&Draft { more: kept.as_ref().map(DocBuf::doc), ..draft }, o);
            }
            None => {
                self.commit.stage_statement(self.node, self.op, draft, o, (origin.statement, origin.also))
            }
        }
    }

    fn observe(&self, f: impl Fn(&dyn crate::observer::WriteObserver, &str)) {
        if self.commit.tentative || self.part.is_some() {
            return;
        }
        for observer in self.node.observers.of(&self.slot.ns) {
            f(observer.as_ref(), &self.slot.ns);
        }
    }
}

/// The collection of a namespace, beside which the rest of a unit may be changed.
///
/// # Errors
/// NamespaceNotFound (26).
pub(super) fn existing_in<'s>(slot: &Slot, state: &'s mut SlotState) -> Result<&'s mut Collection> {
    state.collection.as_mut().ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns does not exist: {}", slot.ns))
}

fn named_by<'a>(sharded_key: &'a Option<DocBuf>, doc: Doc<'a>) -> O2<'a> {
    match sharded_key {
        Some(key) => O2::Doc(key.doc()),
        None => doc.element("_id").map_or(O2::None, O2::Id),
    }
}

/// One change of an atomic batch over several namespaces.
#[derive(Clone, Debug)]
pub enum BatchWrite {
    Insert {
        ns: String,
        doc: Document,
    },
    /// Inserts, or replaces the document of this `_id`.
    Put {
        ns: String,
        doc: Document,
    },
    /// Gives the document of this `_id` the fields in which `after` differs from `before`, which was read without a latch: other
    /// fields may have been written since, and stay. Inserts `after` where there is none. Where `after` has another `_id` than `before`, it
    /// goes on under that.
    Change {
        ns: String,
        before: Document,
        after: Document,
    },
    Delete {
        ns: String,
        id: Value,
    },
}

impl BatchWrite {
    pub fn ns(&self) -> &str {
        match self {
            BatchWrite::Insert { ns, .. }
            | BatchWrite::Put { ns, .. }
            | BatchWrite::Change { ns, .. }
            | BatchWrite::Delete { ns, .. } => ns,
        }
    }
}
