//! Runs the coordinators of cross-shard transactions: the actions of [`protocol::coordinator`] done, with the state in
//! `config.transaction_coordinators`:
//!
//! ```text
//! {_id: {lsid, txnNumber}, participants: [shard, ...], decision?: {decision: "commit", commitTimestamp} |
//!                                                              {decision: "abort", abortStatus: {code, errmsg}}}
//! ```
//!
//! A coordinator runs as a task of the shard, so it goes on when its router has gone away. After a restart each document
//! found is taken up again. A participant that does not answer is asked again, for its vote until the transaction's
//! lifetime is over, for its acknowledgement forever, and the log says so ([`Patience`]).

mod report;
#[cfg(test)]
mod tests;

use report::{Patience, Progress};

use super::ShardRole;
use crate::remote::Target;
use document::{DocBuf, Document, Error, Result, Timestamp, Value, bail, codes, doc, err};
use futures::stream::{FuturesUnordered, StreamExt};
use node::Operation;
use node::operation::SessionId;
use node::transaction::Limits;
use parking_lot::Mutex;
use protocol::coordinator::{Action, Coordinator, Decision, Event, Step, Vote};
use protocol::transaction::Phase;
use runtime::simulation::{self, Check};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

pub const COLLECTION: &str = "config.transaction_coordinators";
type Key = (SessionId, i64);

/// What somebody who waits for a coordinator is told.
#[derive(Clone, Debug, PartialEq)]
enum News {
    Open,
    Decided(Decision),
    Ended(Decision),
}

/// A coordinator that runs.
#[derive(Clone)]
struct Running {
    news: watch::Receiver<News>,
    progress: Arc<Progress>,
}

/// Takes a line for the log with its attributes.
pub type Observer = Box<dyn Fn(&str, Document) + Send + Sync>;

/// The coordinators of a shard.
#[derive(Default)]
pub struct Coordinators {
    running: Mutex<BTreeMap<Key, Running>>,
    totals: report::Totals,
    /// Told of what takes long.
    pub observer: OnceLock<Observer>,
}

impl Coordinators {
    /// The tasks have ended with the reign; the next primary takes their documents up.
    pub(super) fn forget(&self) {
        self.running.lock().clear();
    }
    /// Makes the entry of a coordinator; `None` where one runs already, which its waiters keep listening to.
    fn enter(&self, progress: Progress) -> Option<(watch::Sender<News>, Running)> {
        let mut running = self.running.lock();
        let key = progress.key;
        if running.contains_key(&key) {
            return None;
        }
        let (tell, news) = watch::channel(News::Open);
        let entry = Running { news, progress: Arc::new(progress) };
        running.insert(key, entry.clone());
        self.totals.created();
        Some((tell, entry))
    }
    /// Removes the entry of a coordinator that is done, unless a later reign has made it anew.
    fn leave(&self, progress: &Arc<Progress>) {
        let mut running = self.running.lock();
        if running.get(&progress.key).is_some_and(|entry| Arc::ptr_eq(&entry.progress, progress)) {
            running.remove(&progress.key);
        }
    }
    fn news(&self, key: &Key) -> Option<watch::Receiver<News>> {
        self.running.lock().get(key).map(|entry| entry.news.clone())
    }
}

impl ShardRole {
    /// `coordinateCommitTransaction`: commits the operation's transaction on all `participants`; none means to say what
    /// became of it.
    ///
    /// # Errors
    /// NoSuchTransaction (251) when it was aborted; TransactionTooOld (225) when the session has gone on; 51162 for a shard named
    /// twice.
    pub async fn coordinate_commit(
        self: &Arc<ShardRole>,
        op: &Arc<Operation>,
        participants: Vec<String>,
        limits: Limits,
    ) -> Result<()> {
        let fields = op.session.as_ref();
        let Some(key) = fields.and_then(|s| Some((s.lsid, s.txn_number?))) else {
            bail!(INVALID_OPTIONS, "a transaction needs lsid and txnNumber")
        };
        for (i, shard) in participants.iter().enumerate() {
            if participants[..i].contains(shard) {
                bail!(51162, "participant list contained duplicate shardId {shard}");
            }
        }
        let running = self.coordinators.news(&key);
        if running.is_none() {
            self.node.sessions.refuse_older(&key.0, key.1)?;
        }
        let news = match running {
            Some(news) => news,
            None if participants.is_empty() => return self.outcome_here(op, key, limits).await,
            None => match self.node.sessions.phase(&key.0, key.1) {
                // It was decided before, and its document is gone.
                Phase::Committed => return Ok(()),
                Phase::Aborted | Phase::AbortedAfterPrepare | Phase::None => return Err(aborted(key.1)),
                Phase::InProgress | Phase::Prepared => self.begin_coordinator(key, participants, limits)?,
            },
        };
        self.await_outcome(op, key, news).await
    }

    fn begin_coordinator(
        self: &Arc<ShardRole>,
        key: Key,
        participants: Vec<String>,
        limits: Limits,
    ) -> Result<watch::Receiver<News>> {
        let now = self.node.now_ms();
        let open = self.node.transactions.open();
        let own = open.iter().find(|t| (t.session, t.number) == key).map_or(i64::MAX, |t| t.expires_ms());
        let latest = now.saturating_add(limits.lifetime.as_millis() as i64);
        let progress = Progress::new(key, participants.len(), now, own.min(latest), false);
        let Some((tell, running)) = self.coordinators.enter(progress) else {
            let known = self.coordinators.news(&key);
            return known.ok_or_else(|| err!(INTERRUPTED, "the coordinator has just ended"));
        };
        let (coordinator, actions) = Coordinator::begin(participants);
        let (role, news) = (self.clone(), running.news);
        let progress = running.progress.clone();
        if !self
            .spawn(async move { role.run_coordinator(running.progress, coordinator, actions, tell).await })
        {
            self.coordinators.leave(&progress);
        }
        Ok(news)
    }

    async fn await_outcome(&self, op: &Operation, key: Key, mut news: watch::Receiver<News>) -> Result<()> {
        let early = self.parameters.bool("coordinateCommitReturnImmediatelyAfterPersistingDecision");
        let enough = |n: &News| matches!(n, News::Ended(_)) || (early && matches!(n, News::Decided(_)));
        let told = op.interruptible(news.wait_for(enough)).await?;
        match told.as_deref() {
            Ok(News::Ended(Decision::Commit(_)) | News::Decided(Decision::Commit(_))) => Ok(()),
            Ok(News::Ended(Decision::Abort(..)) | News::Decided(Decision::Abort(..))) => Err(aborted(key.1)),
            // The task was ended with this shard's reign.
            Ok(News::Open) | Err(_) => {
                bail!(INTERRUPTED_DUE_TO_REPL_STATE_CHANGE, "the coordinator of the transaction has stopped")
            }
        }
    }

    /// What became of a transaction that no coordinator here knows: its part on this shard says so.
    async fn outcome_here(&self, op: &Arc<Operation>, (id, number): Key, limits: Limits) -> Result<()> {
        loop {
            // Before the transaction: what is prepared in between is then seen in progress, and asked again.
            let phase = self.node.sessions.phase(&id, number);
            let prepared = self.node.transactions.open().into_iter();
            let prepared =
                prepared.filter(|t| t.session == id && t.number == number).find(|t| t.is_prepared());
            match (phase, prepared) {
                (Phase::Committed, _) => return Ok(()),
                (Phase::Prepared, Some(t)) => op.interruptible(t.wait_ended()).await?,
                // It has just ended, or a step-down has left it to the log: only the next answer is for good.
                (Phase::Prepared, None) => bail!(
                    INTERRUPTED_DUE_TO_REPL_STATE_CHANGE,
                    "the transaction is prepared, and its outcome not known to this member"
                ),
                // Nobody has asked for the commit, and after this nobody can; unless the coordinator on another shard comes
                // first, which then decides.
                (Phase::InProgress, _) => match self.node.abort_unless_prepared(op, limits).await {
                    Err(e) if e.code == codes::PREPARED_TRANSACTION_IN_PROGRESS => {}
                    done => return Err(done.err().unwrap_or_else(|| aborted(number))),
                },
                _ => return Err(aborted(number)),
            }
        }
    }

    /// Takes up the coordinators that were running when this shard stopped.
    ///
    /// # Errors
    /// A document that cannot be read; a failed log.
    pub(crate) async fn recover_coordinators(self: &Arc<ShardRole>) -> Result<()> {
        self.local.ensure_collection(COLLECTION, &[]).await?;
        for found in self.local.find(COLLECTION, &Document::new())? {
            let damaged = || err!(INTERNAL_ERROR, "{COLLECTION} holds what is no coordinator: {found:?}");
            let (key, participants, decision) = read(&found).ok_or_else(damaged)?;
            let now = self.node.now_ms();
            let lifetime = self.parameters.int("transactionLifetimeLimitSeconds").max(1) * 1000;
            let progress = Progress::new(key, participants.len(), now, now.saturating_add(lifetime), true);
            let Some((tell, running)) = self.coordinators.enter(progress) else { continue };
            let (coordinator, actions) = Coordinator::recover(participants, decision);
            let role = self.clone();
            self.spawn(
                async move { role.run_coordinator(running.progress, coordinator, actions, tell).await },
            );
        }
        Ok(())
    }

    async fn run_coordinator(
        &self,
        progress: Arc<Progress>,
        mut coordinator: Coordinator,
        actions: Vec<Action>,
        tell: watch::Sender<News>,
    ) {
        let participants: Vec<String> = coordinator.participants().map(str::to_string).collect();
        let perform = |action| self.perform(progress.key, &participants, action);
        let is_vote = |action: &Action| matches!(action, Action::Prepare(_));
        let mut deadline = std::pin::pin!(tokio::time::sleep(progress.time_left(self.node.now_ms())));
        // Votes are waited for no longer once it is decided without them.
        let (mut votes, mut others) = (FuturesUnordered::new(), FuturesUnordered::new());
        let mut next = actions;
        while coordinator.step() != Step::Done {
            progress.note(coordinator.step(), coordinator.decision());
            if coordinator.step() != Step::WaitingForVotes {
                votes.clear();
            }
            let (asks, rest): (Vec<Action>, Vec<Action>) = next.into_iter().partition(is_vote);
            votes.extend(asks.into_iter().map(perform));
            others.extend(rest.into_iter().map(perform));
            if let Some(decision) = coordinator.decision().filter(|_| *tell.borrow() == News::Open) {
                self.coordinators.totals.decided(decision);
                tell.send_replace(News::Decided(decision.clone()));
            }
            let event = tokio::select! {
                biased;
                Some(event) = others.next() => event,
                Some(event) = votes.next() => event,
                () = &mut deadline, if !progress.expired() => {
                    progress.expire();
                    Event::DeadlinePassed
                }
                else => break,
            };
            next = coordinator.handle(event);
        }
        self.coordinators.leave(&progress);
        if let Some(decision) = coordinator.decision() {
            tell.send_replace(News::Ended(decision.clone()));
        }
    }

    async fn perform(&self, key: Key, participants: &[String], action: Action) -> Event {
        match action {
            Action::PersistParticipants => {
                self.pause_at("hangBeforeWritingParticipantList").await;
                self.persist(key, participants, None).await;
                Event::ParticipantsDurable
            }
            Action::Prepare(shard) => {
                self.pause_at("hangBeforeSendingPrepare").await;
                let vote = self.ask_for_vote(key, &shard).await;
                Event::Voted(shard, vote)
            }
            Action::PersistDecision(decision) => {
                self.pause_at("hangBeforeWritingDecision").await;
                if let Decision::Commit(at) = &decision {
                    self.node.log.advance_clock(*at);
                }
                if !simulation::omits(Check::DurableDecision) {
                    self.persist(key, participants, Some(&decision)).await;
                }
                Event::DecisionDurable
            }
            Action::Decide(shard, decision) => {
                self.pause_at(match decision {
                    Decision::Commit(_) => "hangBeforeSendingCommit",
                    Decision::Abort(..) => "hangBeforeSendingAbort",
                })
                .await;
                self.tell_decision(key, &shard, &decision).await;
                Event::Acknowledged(shard)
            }
            Action::DeleteDocument => {
                self.pause_at("hangBeforeDeletingCoordinatorDoc").await;
                let id = doc! { "_id": id_of(key) };
                // One that stays is taken up after the next start, and tells what is known already.
                let _ = self.local.delete(COLLECTION, &id).await;
                self.pause_at("hangAfterDeletingCoordinatorDoc").await;
                Event::DocumentDeleted
            }
        }
    }

    async fn pause_at(&self, fail_point: &str) {
        self.node.failpoints.pause_while_set(fail_point).await;
    }

    /// Writes the coordinator's document; returns when it is durable, so never on a node whose log has failed.
    async fn persist(&self, key: Key, participants: &[String], decision: Option<&Decision>) {
        let shards: Vec<Value> = participants.iter().map(|s| Value::from(s.as_str())).collect();
        let mut state = doc! { "_id": id_of(key), "participants": Value::Array(shards) };
        if let Some(decision) = decision {
            state.push("decision", decision_document(decision));
        }
        let mut patience = Patience::new(key, "write the state of the transaction's coordinator", "");
        while let Err(e) = self.local.put(COLLECTION, &state).await {
            patience.rest(&self.coordinators, &e).await;
        }
    }

    async fn ask_for_vote(&self, key: Key, shard: &str) -> Vote {
        let mut patience = Patience::new(key, "prepareTransaction", shard);
        loop {
            let answer = self.say(key, shard, doc! { "prepareTransaction": 1 }).await;
            match answer {
                Ok(reply) => match reply.doc().get("prepareTimestamp").and_then(|v| v.as_timestamp()) {
                    Some(at) => return Vote::Commit(at.as_u64()),
                    None => {
                        return Vote::Abort(50993, "a participant has prepared without a timestamp".into());
                    }
                },
                Err(e) if votes_abort(&e) => return Vote::Abort(e.code, e.message),
                Err(e) => patience.rest(&self.coordinators, &e).await,
            }
        }
    }

    async fn tell_decision(&self, key: Key, shard: &str, decision: &Decision) {
        let name = match decision {
            Decision::Commit(_) => "commitTransaction",
            Decision::Abort(..) => "abortTransaction",
        };
        let mut patience = Patience::new(key, name, shard);
        loop {
            let command = match decision {
                Decision::Commit(at) => {
                    doc! { "commitTransaction": 1, "commitTimestamp": Timestamp::from_u64(*at) }
                }
                Decision::Abort(..) => doc! { "abortTransaction": 1 },
            };
            match self.say(key, shard, command).await {
                Ok(_) => return,
                // It has ended there, by this decision: nothing else ends what is prepared. No failover brings it back, since
                // `say` has waited for the majority.
                Err(e) if matches!(e.code, codes::TRANSACTION_TOO_OLD | codes::NO_SUCH_TRANSACTION) => return,
                Err(e) => patience.rest(&self.coordinators, &e).await,
            }
        }
    }

    async fn say(&self, (id, number): Key, shard: &str, mut command: Document) -> Result<DocBuf> {
        command.push("lsid", id.to_document());
        command.push("txnNumber", number);
        command.push("autocommit", false);
        command.push("writeConcern", doc! { "w": "majority" });
        let reply = self.remote.run(Target::Shard(shard), "admin", command.to_doc_buf()).await;
        let unmet = match &reply {
            Ok(reply) => reply.doc().get_document("writeConcernError").map(|d| d.get_i64("code")),
            Err(e) => {
                e.info.as_ref().and_then(|i| i.get_document("writeConcernError")).map(|d| d.get_i64("code"))
            }
        };
        match unmet {
            Some(code) => Err(Error::new(code.unwrap_or(64) as i32, "the write concern was not met")),
            None => reply,
        }
    }
}

fn id_of((id, number): Key) -> Document {
    doc! { "lsid": id.to_document(), "txnNumber": number }
}

/// As it is persisted, and shown.
fn decision_document(decision: &Decision) -> Document {
    match decision {
        Decision::Commit(at) => doc! { "decision": "commit", "commitTimestamp": Timestamp::from_u64(*at) },
        Decision::Abort(code, text) => {
            doc! { "decision": "abort", "abortStatus": { "code": *code, "errmsg": text.as_str() } }
        }
    }
}

fn read(found: &Document) -> Option<(Key, Vec<String>, Option<Decision>)> {
    let id = found.get_document("_id")?;
    let lsid = SessionId::parse(id.get_document("lsid")?.to_doc_buf().doc()).ok()?;
    let participants = found.get_array("participants")?.iter();
    let participants = participants.map(|v| v.as_str().map(str::to_string)).collect::<Option<Vec<_>>>()?;
    let decision = match found.get_document("decision") {
        None => None,
        Some(d) if d.get_str("decision") == Some("commit") => {
            Some(Decision::Commit(d.get("commitTimestamp")?.as_timestamp()?.as_u64()))
        }
        Some(d) => {
            let status = d.get_document("abortStatus")?;
            let code = status.get_i64("code").and_then(|n| i32::try_from(n).ok())?;
            Some(Decision::Abort(code, status.get_str("errmsg").unwrap_or("").to_string()))
        }
    };
    Some(((lsid, id.get_i64("txnNumber")?), participants, decision))
}

/// Whether the refusal says that the participant has not prepared and never will.
fn votes_abort(e: &Error) -> bool {
    const READ_CONCERN_MAJORITY_NOT_ENABLED: i32 = 148;
    matches!(
        e.code,
        READ_CONCERN_MAJORITY_NOT_ENABLED
            | codes::TRANSACTION_TOO_OLD
            | codes::NO_SUCH_TRANSACTION
            | codes::OPERATION_NOT_SUPPORTED_IN_TRANSACTION
            | codes::SHARD_NOT_FOUND
    )
}

fn aborted(number: i64) -> Error {
    err!(NO_SUCH_TRANSACTION, "Transaction with {{ txnNumber: {number} }} has been aborted.")
}
