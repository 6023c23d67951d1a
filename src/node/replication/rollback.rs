//! Rollback: entries that this member has and the set does not are taken back.
//!
//! ```text
//! common point   the newest entry that both logs have; never before the commit point
//! kept           documents that the entries to go had inserted or updated, in files below `rollback`
//! counted        the rollback id rises (durable) before anything is cut
//! cut            the log behind the common point; then the state is what checkpoint and log say
//! ```
//! A checkpoint is never written of what is not committed ([`Node::checkpoint`]), so the newest one lies before every common
//! point, and replaying from it is exact; a member that was restarted knows by it what is committed. Vote and configuration are not in
//! the log (`state`), and are shown in `local` again afterwards. The clock does not go back.
//!
//! A node without checkpoints (in memory) copies everything anew instead. Where the logs part before the commit point the node ends:
//! it may be the last that has what was acknowledged, and which history is to stay is for a person to decide.

use super::apply::operations;
use super::driver::optime_document;
use super::{CONFIG_NAMESPACE, ELECTION_NAMESPACE, MemberState, known};
use crate::Node;
use crate::namespace::Slot;
use crate::open::{Replay, partial_predicate};
use document::{DocBuf, Document, Error, Result, Timestamp, Value, doc, err};
use protocol::replication::OpTime;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use storage::checkpoint::OpenTransaction;
use storage::entry::{Entry, Op};
use storage::log::{Class, Position};

const CALL_LIMIT: Duration = Duration::from_secs(30);
const BATCH: i32 = 2000;

/// An entry of the own log, seen from its end.
struct Own {
    optime: OpTime,
    wall: i64,
    /// Where the next entry of the oplog begins: frames of class local in between stay, and a checkpoint may begin behind
    /// them.
    next: Position,
}

/// A collection's name and UUID.
type LostFrom = (String, [u8; 16]);
/// Documents that go, by collection: their current bytes.
type Lost = BTreeMap<LostFrom, Vec<u8>>;

impl Node {
    pub(super) async fn roll_back(self: &Arc<Self>, host: &str) -> Result<()> {
        for point in ["rollbackHangBeforeStart", "rollbackHangBeforeTransitioningToRollback"] {
            self.failpoints.pause_while_set(point).await;
        }
        let begun =
            self.replication.with(|m, now, offset| m.set_follower(MemberState::Rollback, now, offset));
        if !begun {
            return Ok(());
        }
        self.failpoints.pause_while_set("rollbackHangAfterTransitionToRollback").await;
        let outcome = self.try_roll_back(host).await;
        // It may have been removed meanwhile, and is to be of use when it is added again.
        let still = self.replication.look(|m| m.follower() == MemberState::Rollback);
        if still {
            self.replication.metrics.secondary_attempts.add(1);
            self.replication.with(|m, now, offset| m.set_follower(MemberState::Secondary, now, offset));
        }
        if outcome.is_err() {
            self.deny(host, 500);
        }
        self.failpoints.pause_while_set("bgSyncHangAfterRunRollback").await;
        outcome
    }

    async fn try_roll_back(self: &Arc<Self>, host: &str) -> Result<()> {
        let begun = self.last_known();
        let floor = known(self.committed()).max(self.replication.state.get().committed);
        let source = self.source_history(host, begun, floor).await?;
        let own = self.own_history(floor)?;
        // What the source has let go of cannot be compared, as with a member that is too stale; nor what this member never had in its log,
        // which begins where it was copied, and the source has.
        let reached = source.last().is_some_and(|oldest| *oldest <= floor);
        let copied = own.last().is_some_and(|oldest| oldest.optime > floor) && source.contains(&floor);
        let common = protocol::replication::source::common_point(own.iter().map(|o| o.optime), source);
        let common = match common {
            Some(common) if common >= floor => common,
            None if !reached || copied => return self.start_copy("no common point with the source"),
            _ => {
                return Err(self.leave_to_a_person(format!(
                    "the logs part at {common:?}, before the commit point {floor:?}: committed entries would be rolled back"
                )));
            }
        };
        self.check_rollback_time(&own, common)?;
        let end = own.iter().find(|o| o.optime == common).map_or(0, |o| o.next);
        let attributes =
            doc! { "commonPoint": optime_document(common), "newest": optime_document(begun), "source": host };
        self.replication.note("Rolling back", attributes);
        let lost = self.lost_documents(end)?;
        self.keep_lost(&lost)?;
        let counted = self.replication.state.change(|k| k.rollback_id += 1);
        counted.map_err(|e| err!(LOG_WRITE_FAILED, "{e}"))?;
        let _applying = self.replication.applying.lock().await;
        self.yield_transactions();
        let under_way = match self.reload_from(end) {
            Ok(Some(under_way)) => under_way,
            Ok(None) => return self.start_copy("there is no checkpoint before the common point"),
            Err(error) => {
                self.replication.note("A rollback failed", doc! { "error": error.message });
                return self.start_copy("the state cannot be replayed");
            }
        };
        self.after_exchange(under_way);
        self.show_kept().await;
        let actions = self.positions();
        self.perform(actions).await?;
        self.failpoints.pause_while_set("rollbackHangBeforeFinish").await;
        self.replication.note("Rollback done", doc! { "rollbackId": self.replication.rollback_id() });
        Ok(())
    }

    /// Has the node end by this error, and answers it: UnrecoverableRollbackError (127).
    fn leave_to_a_person(&self, why: String) -> Error {
        let error = err!(UNRECOVERABLE_ROLLBACK_ERROR, "{why}");
        self.replication.give_up(error.clone());
        error
    }

    /// # Errors
    /// UnrecoverableRollbackError (127) where more than `rollbackTimeLimitSecs` would be taken back.
    fn check_rollback_time(&self, own: &[Own], common: OpTime) -> Result<()> {
        let first = own.iter().take_while(|o| o.optime != common).last();
        let Some((newest, first)) = own.first().zip(first) else { return Ok(()) };
        let (took, most) = (newest.wall - first.wall, self.replication.settings().rollback_max_ms);
        if took <= most {
            return Ok(());
        }
        Err(self.leave_to_a_person(format!(
            "not willing to roll back more than {} seconds of data. Have: {} seconds of data to roll back.",
            most / 1000,
            took / 1000
        )))
    }

    /// Optimes of the source at or before `last`, newest first, back to the first that lies before `floor`.
    async fn source_history(&self, host: &str, last: OpTime, floor: OpTime) -> Result<Vec<OpTime>> {
        let find = doc! {
            "find": "oplog.rs", "filter": { "ts": { "$lte": Timestamp::from_u64(last.ts) } }, "sort": { "$natural": -1 },
            "projection": { "ts": 1, "t": 1 }, "batchSize": BATCH,
            "$readPreference": { "mode": "secondaryPreferred" },
        };
        let mut history = Vec::new();
        let mut reply = self.ask(host, "local", find, CALL_LIMIT).await?;
        loop {
            let cursor = reply
                .doc()
                .get_document("cursor")
                .ok_or_else(|| err!(FAILED_TO_PARSE, "a reply without a cursor"))?;
            let batch =
                cursor.get("firstBatch").or_else(|| cursor.get("nextBatch")).and_then(|v| v.as_array());
            let entries = batch.into_iter().flat_map(|a| a.iter()).filter_map(|e| e.value().as_document());
            history.extend(entries.filter_map(super::driver::read_optime));
            let id = cursor.get_i64("id").unwrap_or(0);
            if id == 0 || history.last().is_some_and(|t| *t < floor) {
                return Ok(history);
            }
            let more = doc! { "getMore": Value::Int64(id), "collection": "oplog.rs", "batchSize": BATCH };
            reply = self.ask(host, "local", more, CALL_LIMIT).await?;
        }
    }

    /// The own entries, likewise.
    fn own_history(&self, floor: OpTime) -> Result<Vec<Own>> {
        let mut reader = self.log.reverse_reader(None).map_err(crate::log_failed)?;
        let mut own = Vec::new();
        let mut next = self.log.appended();
        while let Some(frame) = reader.next().map_err(crate::log_failed)? {
            if frame.class == Class::Oplog {
                let optime = known(frame.optime);
                own.push(Own { optime, wall: frame.wall, next });
                next = frame.position;
                if optime < floor {
                    break;
                }
            }
        }
        Ok(own)
    }

    /// The current versions of what the entries behind `end` inserted or updated.
    fn lost_documents(&self, end: Position) -> Result<Lost> {
        let mut reader = self.log.reader(storage::log::ReadFrom::Position(end)).map_err(crate::log_failed)?;
        let (mut lost, mut seen) = (Lost::new(), BTreeSet::new());
        // A collection may have another name by now.
        let uuid = |slot: &Arc<Slot>| slot.read_unchecked().collection.as_ref().map(|c| c.uuid());
        let slots: HashMap<[u8; 16], Arc<Slot>> =
            self.namespaces.all().into_iter().filter_map(|slot| Some((uuid(&slot)?, slot))).collect();
        while let Some(frame) = reader.next_before(self.log.appended()).map_err(crate::log_failed)? {
            let Ok(entry) = Entry::of_frame(&frame) else { continue };
            if frame.class != Class::Oplog {
                continue;
            }
            // Those of a transaction stand in one entry.
            let inner: Vec<Entry<'_>> = operations(&entry).filter_map(|o| Entry::read(o).ok()).collect();
            for entry in std::iter::once(&entry).chain(&inner) {
                let Some((collection, id, document)) = document_now(entry, &slots) else { continue };
                if seen.insert((collection.clone(), id)) {
                    lost.entry(collection).or_default().extend_from_slice(document.bytes());
                }
            }
        }
        Ok(lost)
    }

    fn keep_lost(&self, lost: &Lost) -> Result<()> {
        if self.directory.checkpoints.lock().is_none() || !self.replication.settings().keeps_rolled_back {
            return Ok(());
        }
        let at = self.now_ms();
        for ((ns, uuid), bytes) in lost {
            let dir = self.options.dir.join("rollback").join(uuid::Uuid::from_bytes(*uuid).to_string());
            let path = dir.join(format!("removed.{at}.bson"));
            let files = &self.options.files;
            let kept = files.create_dir_all(&dir).and_then(|()| files.replace(&path, bytes));
            kept.map_err(|e| err!(LOG_WRITE_FAILED, "{}: {e}", path.display()))?;
            self.replication.note(
                "Kept rolled back documents",
                doc! { "namespace": ns.as_str(), "file": path.display().to_string() },
            );
        }
        Ok(())
    }

    /// Cuts the log at `end` and replaces everything by what checkpoint and log say, with the transactions that are under way there;
    /// `None` when they cannot say it.
    fn reload_from(&self, end: Position) -> Result<Option<Vec<OpenTransaction>>> {
        let mut checkpoints = self.directory.checkpoints.lock();
        if checkpoints.is_none() {
            return Ok(None);
        }
        let files = self.options.files.clone();
        let newest = storage::recovery::checkpoint_position(&*files, &self.options.dir);
        let newest = newest.map_err(|e| err!(LOG_WRITE_FAILED, "the checkpoint cannot be read: {e}"))?;
        // Nothing could be replayed from a log that ends before it. The file says where it is: a write of it that failed may have put it
        // in force.
        if newest.is_some_and(|position| position > end) {
            return Ok(None);
        }
        let _gate = self.gate.write();
        self.past.replace();
        self.log.truncate_after(end).map_err(crate::log_failed)?;
        self.sessions.clear();
        let reloaded = storage::recovery::reload(
            files,
            &self.options.dir,
            &self.log,
            &partial_predicate,
            &mut Replay { sessions: &self.sessions, progress: &mut |_| {} },
        );
        let reloaded = reloaded.map_err(|e| err!(LOG_WRITE_FAILED, "the state cannot be replayed: {e}"))?;
        for slot in self.namespaces.all() {
            let mut state = slot.write_unchecked();
            drop(state.uninstall());
            state.view = None;
        }
        let builds = self.builds_indexes();
        for (ns, mut collection) in reloaded.collections {
            if !builds {
                collection.defer_indexes();
            }
            self.namespaces.slot(&ns).write_unchecked().install(collection);
        }
        *checkpoints = Some(reloaded.checkpoints);
        Ok(Some(reloaded.transactions))
    }

    /// Shows vote and configuration in `local` again: the frames that did went with the log.
    async fn show_kept(self: &Arc<Self>) {
        let kept = self.replication.state.get();
        if let Some(config) = kept.config {
            self.show_in_local(CONFIG_NAMESPACE, config).await;
        }
        if let Some(vote) = kept.vote {
            let shown: Document =
                doc! { "_id": "lastVote", "term": vote.term, "candidateIndex": vote.candidate };
            self.show_in_local(ELECTION_NAMESPACE, shown).await;
        }
    }
}

/// What an insert or update has made of its document by now: the collection, the `_id`, the document.
fn document_now(
    entry: &Entry<'_>,
    slots: &HashMap<[u8; 16], Arc<Slot>>,
) -> Option<(LostFrom, Vec<u8>, DocBuf)> {
    let id = entry.document_id().filter(|_| matches!(entry.op, Op::Insert | Op::Update))?;
    let slot = slots.get(&entry.uuid?)?;
    let state = slot.read_unchecked();
    let collection = state.collection.as_ref()?;
    let (_, document) = collection.find_id(id)?;
    let from = (slot.ns.to_string(), collection.uuid());
    Some((from, id.to_value().to_holder().bytes().to_vec(), document.to_owned()))
}
