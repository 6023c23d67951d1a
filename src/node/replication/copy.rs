//! Initial sync: everything copied anew from another member.
//!
//! ```text
//! source   open: under the exclusive gate, all roots, the session table and the newest entry T at one moment
//!          next: a piece of the description (collections, sessions, prepared transactions), which may be longer than a message
//!          next: the records of one collection after a given one, with their record ids
//! copier   state file says "copying" (durable)
//!          records into new collections beside the old ones, indexes filled at the end of each
//!          exclusive gate: collections exchanged, log cut to nothing, T appended (and what leads up to it)
//!          checkpoint of the new state; state file says "not copying"
//! ```
//! The copy is exact at T, so the log goes on behind T without any leniency about what is there already, and record ids are
//! the source's. Where a transaction is prepared at T, the log comes along from its first entry on: its commit leads readers of
//! the log back there. (If that is more than [`HISTORY_BYTES_MAX`], it does not: change streams on the copy then end at the commit,
//! as their history is lost.) After a crash in between the state file says that nothing here is of use, and the start begins with an
//! empty directory; vote and configuration are in that file.
//!
//! A member that had data refuses, until the copy is done, to vote for candidates that are behind what it had: it may be
//! one of the majority that holds a committed entry.

use super::apply::Fetched;
use super::copy_status::{CopiedCollection, CopyStatus};
use super::{MemberState, known};
use crate::Node;
use crate::failpoints::concerns;
use crate::open::partial_predicate;
use document::error::NETWORK;
use document::validate::{DEPTH_BETWEEN_NODES, Limits, validate};
use document::{Binary, Doc, DocBuf, Document, Error, Result, Timestamp, Value, ValueRef, bail, doc, err};
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use storage::checkpoint::OpenTransaction;
use storage::entry::compose_whole;
use storage::log::{Class, Frame, FrameRef, Position, ReadFrom};
use storage::{Collection, CollectionMeta, CollectionSnapshot, CollectionView};

/// A copy that nobody has read from for this long is let go: longer than any collection's indexes take, for which whoever copies stops
/// reading.
const IDLE_MAX: Duration = Duration::from_secs(900);
const BATCH_BYTES: usize = 4 << 20;
const CALL_LIMIT: Duration = Duration::from_secs(60);
/// How long a source has to hear that its copy is of no more use; it finds that out by itself too.
const END_LIMIT: Duration = Duration::from_secs(5);
const DENY_MS: u64 = 500;
/// How long each look for a source may take of those that an attempt has, and how often it is taken anew meanwhile.
const LOOK_LIMIT: Duration = Duration::from_secs(1);
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// The most log that comes along, in bytes.
const HISTORY_BYTES_MAX: usize = 64 << 20;
/// How long at most a source that cannot be reached is asked for more of its copy, before another is copied from: one that is started
/// again has it no more.
const RETRY_MAX: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(200);

struct Open {
    collections: Vec<CollectionSnapshot>,
    /// `{collections, sessions, transactions}`.
    description: Arc<DocBuf>,
    used: Instant,
}

/// Copies that other members make of this one.
#[derive(Default)]
pub(super) struct Copies {
    open: Mutex<BTreeMap<i64, Open>>,
}

fn shown_entry(frame: &Frame) -> DocBuf {
    compose_whole(&FrameRef {
        position: frame.position,
        end: frame.end,
        optime: frame.optime,
        wall: frame.wall,
        class: frame.class,
        payload: &frame.payload,
    })
}

impl Node {
    /// `_replSetCopyOpen`: freezes everything but `local`. What there is to copy is asked for next.
    ///
    /// # Errors
    /// NotPrimaryOrSecondary (13436) where there is nothing to copy, a failed log.
    pub fn open_copy(&self) -> Result<Document> {
        if !self.replication.standing().state.is_readable() {
            bail!(NOT_PRIMARY_OR_SECONDARY, "this member has no data that could be copied");
        }
        let (collections, sessions, transactions, entry) = {
            let _gate = self.gate.write();
            let slots = self.namespaces.all();
            let copied = slots.iter().filter(|s| !s.ns.starts_with("local."));
            let collections: Vec<CollectionSnapshot> = copied
                .filter_map(|s| s.read_unchecked().collection.as_ref().map(Collection::snapshot))
                .collect();
            let entry = self.log.last_frame(Some(Class::Oplog)).map_err(crate::log_failed)?;
            let transactions = self.prepared_transactions();
            (collections, self.sessions.image(), transactions, entry)
        };
        let entry = entry.ok_or_else(|| err!(NOT_PRIMARY_OR_SECONDARY, "this member has no oplog"))?;
        let first = transactions.iter().map(|t| t.first_position).min();
        let log_from = first.map_or(Ok(entry.optime.ts), |first| self.time_of_entry_at(first))?;
        let shown = |c: &CollectionSnapshot| {
            let meta = c.meta();
            let indexes: Vec<Document> =
                c.known_indexes().iter().map(|i| i.info().spec.document().clone()).collect();
            doc! {
                "ns": meta.ns.as_str(), "uuid": Value::uuid(meta.uuid), "options": meta.options.clone(),
                "idIndex": meta.id_index, "nextRecord": c.next_record() as i64, "indexes": indexes,
                "count": c.len() as i64,
                "bytes": c.data_bytes() as i64,
            }
        };
        let list: Vec<Document> = collections.iter().map(shown).collect();
        let transactions: Vec<Document> = transactions.iter().map(|t| t.document().to_document()).collect();
        self.forget_idle_copies();
        // One that a source of the same address had before its restart is found by nobody.
        let id = i64::from(runtime::random::<u32>()) << 16 | i64::from(runtime::random::<u16>());
        let description = doc! { "collections": list, "sessions": sessions, "transactions": transactions };
        let description = Arc::new(description.to_doc_buf());
        self.replication
            .copies
            .open
            .lock()
            .insert(id, Open { collections, description, used: Instant::now() });
        Ok(
            doc! { "copy": id, "entry": shown_entry(&entry).to_document(), "logFrom": Timestamp::from_u64(log_from),
            "rbid": self.replication.rollback_id() },
        )
    }

    /// Lets go of copies that nobody reads from any more: they keep what has changed since.
    pub fn forget_idle_copies(&self) {
        self.replication.copies.open.lock().retain(|_, copy| copy.used.elapsed() < IDLE_MAX);
    }

    /// The time of the first entry of the oplog at or behind a position.
    pub(super) fn time_of_entry_at(&self, position: Position) -> Result<u64> {
        let mut reader = self.log.reader(ReadFrom::Position(position)).map_err(crate::log_failed)?;
        while let Some(frame) = reader.next().map_err(crate::log_failed)? {
            if frame.class == Class::Oplog {
                return Ok(frame.optime.ts);
            }
        }
        Err(err!(NOT_PRIMARY_OR_SECONDARY, "this member's oplog ends before what is prepared"))
    }

    /// `_replSetCopyNext` without anything else: ends the copy.
    pub fn end_copy(&self, id: i64) {
        self.replication.copies.open.lock().remove(&id);
    }

    fn use_copy<T>(&self, id: i64, f: impl FnOnce(&Open) -> T) -> Result<T> {
        let mut open = self.replication.copies.open.lock();
        let copy = open.get_mut(&id).ok_or_else(|| err!(CURSOR_NOT_FOUND, "copy {id} is not open"))?;
        copy.used = Instant::now();
        Ok(f(copy))
    }

    /// `_replSetCopyNext`: bytes of the description from `offset` on.
    ///
    /// # Errors
    /// CursorNotFound (43) for a copy that is not open.
    pub fn description_of_copy(&self, id: i64, offset: usize) -> Result<Document> {
        let description = self.use_copy(id, |copy| copy.description.clone())?;
        let left = description.bytes().get(offset..).unwrap_or_default();
        let piece = &left[..left.len().min(BATCH_BYTES)];
        let bytes = Value::Binary(Binary { subtype: 0, bytes: piece.to_vec() });
        Ok(doc! { "bytes": bytes, "done": piece.len() == left.len() })
    }

    /// `_replSetCopyNext`: records of the collection at `index` after record `after`.
    ///
    /// # Errors
    /// CursorNotFound (43) for a copy that is not open.
    pub fn next_of_copy(&self, id: i64, index: usize, after: i64) -> Result<Document> {
        let snapshot = self.use_copy(id, |copy| copy.collections.get(index).cloned())?;
        let snapshot = snapshot.ok_or_else(|| err!(BAD_VALUE, "no collection {index} in the copy"))?;
        let mut cursor = snapshot.records();
        let mut next = cursor.seek((after + 1) as u64);
        let (mut records, mut bytes) = (Vec::new(), 0);
        while let Some((record, d)) = next {
            bytes += d.bytes().len();
            records.push(doc! { "r": record as i64, "d": d.to_document() });
            if bytes >= BATCH_BYTES {
                return Ok(doc! { "records": records, "done": false });
            }
            next = cursor.next();
        }
        Ok(doc! { "records": records, "done": true })
    }

    /// Makes this member copy everything anew: it has nothing that the set could go on from.
    pub(super) fn start_copy(self: &Arc<Self>, reason: &str) -> Result<()> {
        self.replication.note("Copying all data from another member", doc! { "reason": reason });
        let floor = self.last_known().max(self.replication.state.get().floor);
        let begun = self.replication.with(|m, now, offset| {
            let begun = m.set_follower(MemberState::Startup2, now, offset);
            if begun {
                m.set_vote_floor(floor);
            }
            begun
        });
        if !begun {
            return Ok(());
        }
        // Sources that have let go of what comes next in this member's log can be copied from all the same.
        self.replication.source.lock().denied.clear();
        self.note_copying()
    }

    /// Durably: from now on what is here is of no use.
    fn note_copying(&self) -> Result<()> {
        let floor = self.replication.look(|m| m.vote_floor());
        let stored = self.replication.state.change(|k| {
            k.copying = true;
            k.floor = k.floor.max(floor);
            k.committed = protocol::replication::OpTime::NONE;
        });
        stored.map_err(|e| err!(LOG_WRITE_FAILED, "{e}"))
    }

    /// One attempt; false where this member is not to copy any more.
    pub(super) async fn copy_from_anybody(self: &Arc<Self>) -> Result<bool> {
        self.failpoints.pause_while_set("initialSyncHangBeforeChoosingSyncSource").await;
        self.replication.copy_status.lock().begin(self.now_ms());
        let copied = self.attempt_copy().await;
        let metrics = &self.replication.metrics;
        match &copied {
            Ok(true) => {
                *self.replication.copy_status.lock() = CopyStatus::default();
                metrics.copies.add(1);
            }
            Ok(false) => {}
            Err(error) => {
                self.note_failed_copy(error);
                metrics.failed_copies.add(1);
            }
        }
        copied
    }

    async fn attempt_copy(self: &Arc<Self>) -> Result<bool> {
        let Some(host) = self.await_source_of_copy().await? else { return Ok(false) };
        self.set_source(&host);
        self.replication.copy_status.lock().chose(&host);
        self.copy_from(&host).await.inspect_err(|_| self.deny(&host, DENY_MS))?;
        Ok(true)
    }

    /// Whom to copy from; `None` where this member is not to copy any more.
    ///
    /// # Errors
    /// InitialSyncOplogSourceMissing (114): there was nobody, as often as one attempt may look.
    async fn await_source_of_copy(&self) -> Result<Option<String>> {
        let begun = Instant::now();
        while self.replication.standing().state == MemberState::Startup2 {
            if let Some(host) = self.choose_to_copy() {
                return Ok(Some(host));
            }
            if begun.elapsed() >= LOOK_LIMIT * self.replication.settings().copy_looks {
                bail!(
                    INITIAL_SYNC_OPLOG_SOURCE_MISSING,
                    "No valid sync source found in current replica set to do an initial sync."
                );
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        Ok(None)
    }

    fn note_failed_copy(&self, error: &Error) {
        let failed = self.replication.copy_status.lock().failed(error);
        if failed >= self.replication.settings().copy_attempts {
            self.replication.metrics.hopeless_copies.add(1);
            self.replication.give_up(err!(
                INITIAL_SYNC_FAILURE,
                "The maximum number of initial sync attempts has been reached: {}",
                error.message
            ));
        }
    }

    pub(super) async fn copy_from(self: &Arc<Self>, host: &str) -> Result<()> {
        let begun = Instant::now();
        self.note_copying()?;
        if self.failpoint("failInitialSyncWithBadHost") {
            bail!(INITIAL_SYNC_FAILURE, "initial sync failed - failInitialSyncWithBadHost failpoint is set.");
        }
        self.failpoints.pause_while_set("initialSyncHangBeforeCreatingOplog").await;
        // One that is cut off keeps no copy, and another is chosen.
        let opened = self.ask(host, "admin", doc! { "_replSetCopyOpen": 1 }, self.patience()).await?;
        let opened = opened.doc();
        let bad = || err!(FAILED_TO_PARSE, "a copy was opened without what it must say");
        let entry = Fetched::read(opened.get_document("entry").ok_or_else(bad)?)?;
        let id = opened.get_i64("copy").ok_or_else(bad)?;
        let copied = self.copy_opened(host, id, opened, entry).await;
        // However it has ended: the source keeps it as it was meanwhile.
        let end = doc! { "_replSetCopyNext": id };
        drop(self.ask(host, "admin", end, END_LIMIT).await);
        let copied = copied?;
        let millis = begun.elapsed().as_millis() as i64;
        self.replication.note(
            "Initial sync done",
            doc! { "source": host, "collections": copied, "durationMillis": millis },
        );
        Ok(())
    }

    /// What there is to copy.
    async fn describe_copy(&self, host: &str, id: i64) -> Result<DocBuf> {
        let mut bytes = Vec::new();
        loop {
            let next = doc! { "_replSetCopyNext": id, "describe": bytes.len() as i64 };
            let reply = self.ask_for_more(host, next).await?;
            let bad = || err!(FAILED_TO_PARSE, "a copy was described without what it must say");
            let Some(ValueRef::Binary(_, piece)) = reply.get("bytes") else { return Err(bad()) };
            bytes.extend_from_slice(piece);
            if reply.get("done").is_some_and(|v| v == ValueRef::Boolean(true)) {
                break;
            }
            if piece.is_empty() {
                return Err(bad());
            }
        }
        // Operations of transactions are documents of clients within it.
        let limits = Limits { bytes_max: i32::MAX as usize, depth_max: DEPTH_BETWEEN_NODES };
        validate(&bytes, limits)?;
        Ok(DocBuf::from_validated(bytes))
    }

    /// Copies what a source has opened, and goes on from there; returns how many collections there are.
    async fn copy_opened(
        self: &Arc<Self>,
        host: &str,
        id: i64,
        opened: Doc<'_>,
        entry: Fetched,
    ) -> Result<i64> {
        let bad = || err!(FAILED_TO_PARSE, "a copy was opened without what it must say");
        self.check_source_of_copy(&entry)?;
        let described = self.describe_copy(host, id).await?;
        let described = described.doc();
        let listed = described.get("collections").and_then(|v| v.as_array()).ok_or_else(bad)?;
        let lines = listed.iter().filter_map(|e| e.value().as_document()).map(CopiedCollection::read);
        let log_from = opened.get("logFrom").and_then(|v| v.as_timestamp()).ok_or_else(bad)?;
        let times = (log_from.as_u64().min(entry.optime.ts), entry.optime.ts);
        self.replication.copy_status.lock().opened(opened.get_i64("rbid"), times, lines.collect());
        for point in [
            "initialSyncHangAfterGettingBeginFetchingTimestamp",
            "initialSyncHangBeforeSplittingControlFlow",
            "initialSyncHangBeforeCopyingDatabases",
        ] {
            self.failpoints.pause_while_set(point).await;
        }
        let mut collections = Vec::new();
        for (index, line) in listed.iter().filter_map(|e| e.value().as_document()).enumerate() {
            collections.push(self.copy_collection(host, id, index, line).await?);
        }
        let sessions = described.get_document("sessions").map(|d| d.to_document()).unwrap_or_default();
        let listed = described.get("transactions").and_then(|v| v.as_array());
        let listed = listed.into_iter().flat_map(|a| a.iter()).filter_map(|e| e.value().as_document());
        let transactions =
            listed.map(|d| OpenTransaction::read(d).ok_or_else(bad)).collect::<Result<Vec<_>>>()?;
        for point in [
            "initialSyncHangAfterDataCloning",
            "initialSyncHangBeforeCompletingOplogFetching",
            "initialSyncHangBeforeFinish",
        ] {
            self.failpoints.pause_while_set(point).await;
        }
        if self.failpoint("failAndHangInitialSync") {
            self.failpoints.wait_off("failAndHangInitialSync").await;
            bail!(INTERNAL_ERROR, "failAndHangInitialSync fail point enabled");
        }
        if self.failpoint("failInitialSyncBeforeApplyingBatch") {
            self.failpoints.wait_off("failInitialSyncBeforeApplyingBatch").await;
            bail!(CALLBACK_CANCELED, "failInitialSyncBeforeApplyingBatch fail point enabled");
        }
        let copied = collections.len() as i64;
        let history = self.history_of_copy(host, log_from, entry).await?;
        self.take_over(collections, &sessions, transactions, &history).await?;
        Ok(copied)
    }

    /// # Errors
    /// InvalidSyncSource (119) where the copy, which is exact at `entry`, lacks what this member had.
    fn check_source_of_copy(&self, entry: &Fetched) -> Result<()> {
        // Times in a log rise: one that was cut must not be gone on with at an earlier time.
        if entry.optime.ts <= self.log.last_optime().ts {
            bail!(
                INVALID_SYNC_SOURCE,
                "the source's newest entry is older than what this member has in its log"
            );
        }
        // What this member has acknowledged, before it began to copy or was started again, must be in what it copies.
        if known(entry.optime) < self.replication.state.get().floor.max(known(self.committed())) {
            bail!(INVALID_SYNC_SOURCE, "the source lacks entries that this member had");
        }
        Ok(())
    }

    /// The entries that the log begins with: `entry`, at which the copy is exact, and before it those from `from` on.
    async fn history_of_copy(&self, host: &str, from: Timestamp, entry: Fetched) -> Result<Vec<Fetched>> {
        if from.as_u64() >= entry.optime.ts {
            return Ok(vec![entry]);
        }
        let history = self.entries_up_to(host, from, known(entry.optime), HISTORY_BYTES_MAX).await?;
        let mut history = history.unwrap_or_else(|| vec![entry]);
        // Times in a log rise, see above.
        let own = self.log.last_optime().ts;
        history.retain(|e| e.optime.ts > own);
        Ok(history)
    }

    /// The next records of a copy. A source that cannot be reached for a while is asked again: it has kept the copy, and what is
    /// here already is not copied twice.
    async fn ask_for_more(&self, host: &str, command: Document) -> Result<DocBuf> {
        let until = Instant::now() + self.replication.settings().copy_retry.min(RETRY_MAX);
        loop {
            match self.ask(host, "admin", command.clone(), CALL_LIMIT).await {
                Err(error) if error.is(NETWORK) && Instant::now() < until => {
                    self.replication.copy_status.lock().unreachable(self.now_ms());
                    self.replication.note("Asking again for more of a copy", doc! { "error": error.message });
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                done => {
                    self.replication.copy_status.lock().reached();
                    return done;
                }
            }
        }
    }

    fn note_copied(&self, index: usize, change: impl FnOnce(&mut CopiedCollection)) {
        self.replication.copy_status.lock().collection(index, change);
    }

    async fn copy_collection(&self, host: &str, id: i64, index: usize, line: Doc<'_>) -> Result<Collection> {
        let bad = || err!(FAILED_TO_PARSE, "a collection of a copy without what it must say");
        let uuid = line.get("uuid").and_then(|v| v.as_uuid()).ok_or_else(bad)?;
        let options = line.get_document("options").map(|d| d.to_document()).unwrap_or_default();
        let id_index = line.get_bool("idIndex").unwrap_or(true);
        let ns = line.get_str("ns").ok_or_else(bad)?.to_string();
        let begun = self.now_ms();
        self.note_copied(index, |c| c.begun_ms = begun);
        let here = |data: &Document| concerns(data, &ns);
        let points = &self.failpoints;
        points.pause_while_set_with("initialSyncHangCollectionClonerBeforeEstablishingCursor", here).await;
        let mut collection = Collection::new(CollectionMeta { ns: ns.clone(), uuid, options, id_index });
        let mut after = -1i64;
        loop {
            let next = doc! { "_replSetCopyNext": id, "index": index as i32, "after": after };
            let reply = self.ask_for_more(host, next).await?;
            let records = reply.get("records").and_then(|v| v.as_array()).ok_or_else(bad)?;
            for record in records.iter().filter_map(|e| e.value().as_document()) {
                after = record.get_i64("r").ok_or_else(bad)?;
                let d = record.get_document("d").ok_or_else(bad)?;
                collection.load_record(after as u64, d.bytes());
            }
            let (documents, bytes) = (collection.len() as i64, collection.data_bytes() as i64);
            self.note_copied(index, |c| {
                (c.copied, c.copied_bytes, c.batches) = (documents, bytes, c.batches + 1);
            });
            let reached = |data: &Document| {
                concerns(data, &ns) && data.get_i64("numDocsToClone").is_none_or(|wanted| documents >= wanted)
            };
            points.pause_while_set_with("initialSyncHangDuringCollectionClone", reached).await;
            points
                .pause_while_set_with("initialSyncHangCollectionClonerAfterHandlingBatchResponse", here)
                .await;
            if reply.get("done").is_some_and(|v| v == ValueRef::Boolean(true)) {
                break;
            }
        }
        collection.set_next_record(line.get_i64("nextRecord").ok_or_else(bad)? as u64);
        let specs = line.get("indexes").and_then(|v| v.as_array()).ok_or_else(bad)?;
        let parse = |d: Doc<'_>| storage::IndexSpec::parse(&d.to_document(), &partial_predicate);
        let specs =
            specs.iter().filter_map(|e| e.value().as_document()).map(parse).collect::<Result<Vec<_>>>()?;
        collection.rebuild_indexes(specs, self.builds_indexes())?;
        let ended = self.now_ms();
        self.note_copied(index, |c| c.ended_ms = Some(ended));
        Ok(collection)
    }

    /// Exchanges everything, and goes on from the entry at which the copy was made.
    async fn take_over(
        self: &Arc<Self>,
        collections: Vec<Collection>,
        sessions: &Document,
        mut transactions: Vec<OpenTransaction>,
        history: &[Fetched],
    ) -> Result<()> {
        let _applying = self.replication.applying.lock().await;
        self.yield_transactions();
        // Theirs are positions in the source's log.
        let begin = self.exchange(collections, sessions, history)?;
        transactions.iter_mut().for_each(|t| t.first_position = begin);
        self.after_exchange(transactions);
        let node = self.clone();
        let written = runtime::blocking(move || node.checkpoint_anew()).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(e)) => bail!(LOG_WRITE_FAILED, "the copy cannot be kept: {e}"),
            Err(e) => bail!(INTERNAL_ERROR, "{e}"),
        }
        let stored = self.replication.state.change(|k| {
            k.copying = false;
            k.floor = protocol::replication::OpTime::NONE;
        });
        stored.map_err(|e| err!(LOG_WRITE_FAILED, "{e}"))?;
        self.replication.metrics.secondary_attempts.add(1);
        let actions = self.replication.with(|m, now, offset| {
            m.set_vote_floor(protocol::replication::OpTime::NONE);
            let actions = self.tell_positions(m);
            m.set_follower(MemberState::Secondary, now, offset);
            actions
        });
        self.perform(actions).await
    }

    /// Returns where the log begins now.
    fn exchange(
        &self,
        collections: Vec<Collection>,
        sessions: &Document,
        history: &[Fetched],
    ) -> Result<Position> {
        let _gate = self.gate.write();
        self.past.replace();
        for slot in self.namespaces.all().iter().filter(|s| !s.ns.starts_with("local.")) {
            let mut state = slot.write_unchecked();
            drop(state.uninstall());
            state.view = None;
        }
        for collection in collections {
            self.namespaces.slot(collection.ns()).write_unchecked().install(collection);
        }
        self.sessions.clear();
        self.sessions.restore(sessions);
        self.log.truncate_after(self.log.first_position()).map_err(crate::log_failed)?;
        let begin = self.log.appended();
        for entry in history {
            self.log.append_at(Class::Oplog, entry.optime, entry.wall, &[entry.payload.bytes()]);
        }
        Ok(begin)
    }

    /// What was derived from the state before: cursors, views, transactions under way.
    pub(super) fn after_exchange(&self, transactions: Vec<OpenTransaction>) {
        self.cursors.kill_where(|_, _| true);
        self.replication.between.replace(transactions);
        self.load_views();
        self.load_cluster_parameters();
        self.load_user_writes();
        self.load_defaults();
        self.observers.exchanged();
    }
}
