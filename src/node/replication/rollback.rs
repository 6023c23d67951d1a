//! Rollback: entries that this member has and the set does not are taken back.
//!
//! ```text
//! common point   the newest entry that both logs have; never before the commit point
//! kept           documents that the entries to go had inserted or updated, in files below `rollback`
//! counted        the rollback id rises (durable) before anything is cut
//! cut            the log behind the common point; then the state is what checkpoint and log say
//! ```
//! A checkpoint is never written of what is not committed ([`Node::checkpoint`]), so the newest one lies before every common
//! point, and replaying from it is exact. Vote and configuration are not in the log (`state`), and are shown in `local`
//! again afterwards. The clock does not go back.
//!
//! A node without checkpoints (in memory) and one whose log parts from the set's before everything it has copies
//! everything anew instead.

use super::driver::optime_document;
use super::{CONFIG_NAMESPACE, ELECTION_NAMESPACE, MemberState, known};
use crate::Node;
use crate::open::{Replay, partial_predicate};
use document::{Document, Result, Timestamp, Value, bail, doc, err};
use protocol::replication::OpTime;
use std::collections::BTreeMap;
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
    /// Where the next entry of the oplog begins: frames of class local in between stay, and a checkpoint may begin behind
    /// them.
    next: Position,
}

/// Documents that go, by collection: `(namespace, uuid)` and their current bytes.
type Lost = BTreeMap<(String, [u8; 16]), Vec<u8>>;

impl Node {
    pub(super) async fn roll_back(self: &Arc<Self>, index: usize, host: &str) -> Result<()> {
        for point in ["rollbackHangBeforeStart", "rollbackHangBeforeTransitioningToRollback"] {
            self.failpoints.pause_while_set(point).await;
        }
        self.replication.with(|m, now, offset| m.set_follower(MemberState::Rollback, now, offset));
        self.failpoints.pause_while_set("rollbackHangAfterTransitionToRollback").await;
        let outcome = self.try_roll_back(host).await;
        let still = self.replication.look(|m| m.state() == MemberState::Rollback);
        if still {
            self.replication.with(|m, now, offset| m.set_follower(MemberState::Secondary, now, offset));
        }
        if outcome.is_err() {
            self.deny(index, 500);
        }
        self.failpoints.pause_while_set("bgSyncHangAfterRunRollback").await;
        outcome
    }

    async fn try_roll_back(self: &Arc<Self>, host: &str) -> Result<()> {
        let begun = self.last_known();
        let source = self.source_history(host, begun).await?;
        let own = self.own_history()?;
        let common = protocol::replication::source::common_point(own.iter().map(|o| o.optime), source);
        let Some(common) = common else { return self.start_copy("no common point with the source") };
        if common < known(self.committed()) {
            bail!(
                UNRECOVERABLE_ROLLBACK_ERROR,
                "the common point {common:?} lies before the commit point: a committed entry would be rolled back"
            );
        }
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
            Ok(None) => return self.start_copy("there is no checkpoint to replay from"),
            Err(error) => {
                self.replication.note("A rollback failed", doc! { "error": error.message });
                return self.start_copy("the state cannot be replayed");
            }
        };
        self.after_exchange(under_way);
        self.show_kept().await;
        let (applied, durable) = (known(self.log.last_optime()), known(self.log.durable_optime()));
        let actions = self.replication.with(|m, _, _| m.progressed(applied, durable));
        self.perform(actions).await?;
        self.replication.note("Rollback done", doc! { "rollbackId": self.replication.rollback_id() });
        Ok(())
    }

    /// Optimes of the source at or before `last`, newest first, as far back as this member's log reaches or less.
    async fn source_history(&self, host: &str, last: OpTime) -> Result<Vec<OpTime>> {
        let floor = known(self.committed());
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
            // Nothing before the commit point is ever looked for.
            if id == 0 || history.last().is_some_and(|t| *t < floor) {
                return Ok(history);
            }
            let more = doc! { "getMore": Value::Int64(id), "collection": "oplog.rs", "batchSize": BATCH };
            reply = self.ask(host, "local", more, CALL_LIMIT).await?;
        }
    }

    fn own_history(&self) -> Result<Vec<Own>> {
        let floor = known(self.committed());
        let mut reader = self.log.reverse_reader(None).map_err(crate::log_failed)?;
        let mut own = Vec::new();
        let mut next = self.log.appended();
        while let Some(frame) = reader.next().map_err(crate::log_failed)? {
            if frame.class == Class::Oplog {
                let optime = known(frame.optime);
                own.push(Own { optime, next });
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
        let mut lost: Lost = BTreeMap::new();
        let mut seen = std::collections::BTreeSet::new();
        while let Some(frame) = reader.next_before(self.log.appended()).map_err(crate::log_failed)? {
            let Ok(entry) = Entry::of_frame(&frame) else { continue };
            if frame.class != Class::Oplog || !matches!(entry.op, Op::Insert | Op::Update) {
                continue;
            }
            let Some(id) = entry.document_id() else { continue };
            if !seen.insert((entry.ns.to_string(), id.to_value().to_holder().bytes().to_vec())) {
                continue;
            }
            let slot = self.namespaces.slot(entry.ns);
            let state = slot.read_unchecked();
            if let Some((c, (_, d))) = state.collection.as_ref().and_then(|c| Some((c, c.find_id(id)?))) {
                lost.entry((entry.ns.to_string(), c.uuid())).or_default().extend_from_slice(d.bytes());
            }
        }
        Ok(lost)
    }

    fn keep_lost(&self, lost: &Lost) -> Result<()> {
        if self.directory.checkpoints.lock().is_none() {
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
        let _gate = self.gate.write();
        self.past.replace();
        self.log.truncate_after(end).map_err(crate::log_failed)?;
        self.sessions.clear();
        let files = self.options.files.clone();
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
