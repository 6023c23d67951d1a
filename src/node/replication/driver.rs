//! Performs what the machine decides, and gives it time.
//!
//! ```text
//! Lead:       no batch is being applied -> the log takes the new term -> "new primary" -> durable -> services recover
//!             -> writable -> services start
//! StepDown:   exclusive gate: no write is under way, none begins -> waiting writes learn it -> services stop
//! ```
//! A reign that ends while it begins (a higher term arrives during recovery) is abandoned: recovery is raced against the end.

use super::{ELECTION_NAMESPACE, Election, Participation, Reason, Replication, known, stored};
use crate::local::LocalClient;
use crate::open::new_primary_message;
use crate::{Node, Operation, log_failed};
use document::{Document, Result, bail, doc, err};
use futures::FutureExt;
use futures::future::BoxFuture;
use protocol::replication::member::{Action, Member, Vote, VoteRequest};
use runtime::simulation::{self, Check};
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::AbortHandle;

/// How often the machine is told the time.
const TICK_MAX: Duration = Duration::from_millis(100);

impl Node {
    /// Performs actions in order, and those that come of them.
    ///
    /// # Errors
    /// A failed log or state file.
    pub(super) async fn perform(self: &Arc<Self>, actions: Vec<Action>) -> Result<()> {
        let mut queue: VecDeque<Action> = actions.into();
        while let Some(action) = queue.pop_front() {
            match action {
                Action::StoreVote(vote) => {
                    self.failpoints.pause_while_set("hangInWritingLastVoteForDryRun").await;
                    self.store_vote(vote)?;
                    queue.extend(self.replication.with(|m, now, _| m.vote_stored(vote, now)));
                }
                Action::AskVotes { round, dry, term } => self.ask_votes(round, dry, term),
                Action::Lead { term, reason } => {
                    if let Err(error) = self.lead(term, reason).await {
                        return self.abandon_reign(term, error).await;
                    }
                }
                Action::StepDown => self.stepped_down().await,
                Action::Commit(point) => {
                    self.replication.commit.advance(stored(point));
                    self.note_writes_of_majority();
                    self.replication.note_progress();
                }
            }
        }
        Ok(())
    }

    /// Performs actions where nobody waits for the outcome: a failed log is what every later command says.
    pub(super) async fn perform_quietly(self: &Arc<Self>, actions: Vec<Action>) {
        if let Err(error) = self.perform(actions).await {
            self.replication.note("Replication could not go on", doc! { "error": error.message });
        }
    }

    /// Tells the machine how far the log has come.
    pub(super) fn positions(&self) -> Vec<Action> {
        self.replication.with(|m, _, _| self.tell_positions(m))
    }
    /// The same, before it decides something. The log is asked while nobody else tells the machine: a look that took long takes
    /// nothing back, and no vote is given to a candidate that lacks what the set has been told this member has.
    pub(super) fn tell_positions(&self, m: &mut Member) -> Vec<Action> {
        let durable = known(self.log.durable_optime());
        m.progressed(known(self.log.last_optime()), durable)
    }

    /// Requests are answered side by side: a vote that comes to the file behind one of a later term leaves that one there.
    pub(super) fn store_vote(&self, vote: Vote) -> Result<()> {
        if simulation::omits(Check::StoredVote) {
            return Ok(());
        }
        let state = &self.replication.state;
        state
            .change(|k| k.vote = k.vote.filter(|kept| kept.term > vote.term).or(Some(vote)))
            .map_err(|e| err!(LOG_WRITE_FAILED, "the vote cannot be stored: {e}"))
    }

    /// Shows in `local` what was stored beside the log.
    pub(super) async fn show_in_local(self: &Arc<Self>, ns: &str, shown: Document) {
        let client = LocalClient::new(self.clone());
        // A failed log is what every later command says.
        drop(client.put(ns, &shown).await);
    }

    /// Not an `async fn`: catching up may perform actions itself.
    fn lead(self: &Arc<Self>, term: i64, reason: Reason) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.begin_reign(term, reason))
    }

    /// A reign that cannot begin ends, so that another member can lead. This one stands again after an election timeout.
    async fn abandon_reign(self: &Arc<Self>, term: i64, error: document::Error) -> Result<()> {
        let attributes = doc! { "term": term, "error": error.message.as_str() };
        self.replication.note("Stepping down, since a reign cannot begin", attributes);
        let actions = self.replication.with(|m, now, offset| {
            if !m.is_leader() || m.term() != term {
                return Vec::new();
            }
            m.step_aside(now, offset)
        });
        Box::pin(self.perform(actions)).await?;
        Err(error)
    }

    async fn begin_reign(self: &Arc<Self>, term: i64, reason: Reason) -> Result<()> {
        let replication = &self.replication;
        let (wall_ms, seen, committed) = (self.now_ms(), self.log.last_optime(), self.committed());
        self.catch_up().await;
        self.failpoints.pause_while_set("hangBeforeRSTLOnDrainComplete").await;
        let (first, first_wall_ms, mut reigns) = {
            let _no_batch = replication.applying.lock().await;
            // Taken before it is asked who leads: an end that comes later is noticed.
            let reigns = replication.commit.reigns();
            let leads = || replication.look(|m| m.is_leader() && m.term() == term);
            // Their locks come before the first write of this reign.
            let begun = self.claim_prepared(leads, || {
                self.log.set_term(term);
                if !self.open_writes(term) {
                    return Ok(None);
                }
                let appended = self.append_noop(new_primary_message())?;
                replication.with(|m, _, _| m.begin_term(known(appended.first)));
                Ok(Some(appended))
            })?;
            let Some(appended) = begun.flatten() else { return Ok(()) };
            (appended, self.now_ms(), reigns)
        };
        self.reterm_config(term).await?;
        self.failpoints.pause_while_set("hangAfterReconfigOnDrainComplete").await;
        let vote = doc! { "_id": "lastVote", "term": term, "candidateIndex": replication.look(|m| m.vote().candidate) };
        self.show_in_local(ELECTION_NAMESPACE, vote).await;
        self.log.wait_durable(first.position).await.map_err(log_failed)?;
        let more = self.positions();
        Box::pin(self.perform(more)).await?;
        let ended = async { drop(reigns.changed().await) };
        let lead = || {
            let prior = replication.look(|m| m.last_primary());
            let first = first.first;
            let election = Election { term, wall_ms, first, first_wall_ms, seen, committed, prior, reason };
            *replication.election.lock() = Some(election);
            self.note_writes_of_majority();
            Ok(replication.with(|m, _, _| m.drained(term, known(first))))
        };
        if replication.services.begin(ended, lead).await? {
            replication.ask_members_now();
        } else if replication.look(|m| m.is_leader() && m.term() == term) {
            bail!(INTERRUPTED_DUE_TO_REPL_STATE_CHANGE, "what ended an earlier reign has cut off this one");
        }
        Ok(())
    }

    /// From the first commit of a reign on, writes reach a majority: since when is told by `replSetGetStatus`.
    fn note_writes_of_majority(&self) {
        let since = &self.replication.majority_wall_ms;
        let first = (*self.replication.election.lock()).map(|e| e.first);
        if since.load(Ordering::SeqCst) == 0 && first.is_some_and(|t| self.is_committed(t)) {
            since.store(self.now_ms(), Ordering::SeqCst);
        }
    }

    /// What ends with a reign. It may come so late that this member leads again: it takes writes and services from that reign, which
    /// then ends too.
    pub(super) async fn stepped_down(self: &Arc<Self>) {
        let later = self.replication.look(|m| m.is_leader().then(|| m.term()));
        self.close_writes();
        let replication = &self.replication;
        *replication.election.lock() = None;
        replication.majority_wall_ms.store(0, Ordering::SeqCst);
        replication.publish();
        replication.commit.end_reign();
        // Before anything is waited for: another reign of this node may begin meanwhile, with transactions of its own.
        self.yield_transactions();
        replication.services.stop().await;
        replication.ask_members_now();
        let more = replication.with(|m, now, offset| match later == Some(m.term()) {
            true => m.step_down(now, offset),
            false => Vec::new(),
        });
        if !more.is_empty() {
            return Box::pin(self.perform_quietly(more)).await;
        }
        self.wake_lonely();
    }

    /// No write of this node's own is under way when this returns, and none begins.
    pub(super) fn close_writes(&self) {
        let _gate = self.gate.write();
        self.replication.leads.store(false, Ordering::SeqCst);
    }

    /// This node's own writes may begin, unless the reign of `term` is over: false then.
    pub(super) fn open_writes(&self, term: i64) -> bool {
        let _gate = self.gate.write();
        let leads = self.replication.look(|m| m.is_leader() && m.term() == term);
        if leads {
            self.replication.leads.store(true, Ordering::SeqCst);
        }
        leads
    }

    fn ask_votes(self: &Arc<Self>, round: u64, dry: bool, term: i64) {
        let (targets, request, timeout) = self.replication.look(|m| {
            let Some(config) = m.config().cloned() else { return (Vec::new(), None, 0) };
            let me = m.me();
            let voters = config.members().iter().enumerate().filter(|(i, m)| m.votes && Some(*i) != me);
            let targets: Vec<(usize, String)> = voters.map(|(i, m)| (i, m.host.clone())).collect();
            let request = VoteRequest {
                set: config.name().to_string(),
                dry,
                term,
                candidate: me.map_or(-1, |i| i as i64),
                config: (config.term(), config.version()),
                applied: m.applied(),
            };
            (targets, Some(request), config.election_timeout_ms())
        });
        let Some(request) = request else { return };
        for (index, host) in targets {
            let (node, command) = (self.clone(), vote_command(&request));
            let limit = Duration::from_millis(timeout.min(30_000));
            runtime::spawn(async move {
                let Ok(peers) = node.replication.peers().cloned() else { return };
                let reply = peers.call(&host, "admin", command.to_doc_buf(), limit).await.ok();
                let answer = reply.and_then(|r| {
                    Some((r.doc().get_i64("term")?, r.doc().get_bool("voteGranted") == Some(true)))
                });
                let actions = node
                    .replication
                    .with(|m, now, offset| m.vote_answered(round, index, answer, now, offset));
                node.perform_quietly(actions).await;
            });
        }
    }

    /// `replSetRequestVotes`.
    ///
    /// # Errors
    /// NotYetInitialized (94), BadValue (2) for a bad index, a vote that cannot be stored.
    pub async fn answer_vote_request(self: &Arc<Self>, request: &VoteRequest) -> Result<Document> {
        let (_, config) = self.configured()?;
        if usize::try_from(request.candidate).ok().is_none_or(|i| i >= config.members().len()) {
            bail!(BAD_VALUE, "Invalid candidateIndex in replSetRequestVotes: {}", request.candidate);
        }
        if let Some(answer) = self.vote_of_a_test(request).await? {
            return Ok(answer);
        }
        let (more, (answer, actions), newest_in_set) = self.replication.with(|m, now, offset| {
            let told = self.tell_positions(m);
            let answered = m.asked_for_vote(request, now, offset);
            let heard = m.peers().map(|(_, peer)| peer.applied);
            (told, answered, heard.fold(m.applied().max(request.applied), Ord::max))
        });
        if let Some(vote) = answer.store {
            // Stored before anything else happens: the answer counts from the moment it is sent.
            self.store_vote(vote)?;
        }
        self.perform(more).await?;
        self.perform(actions).await?;
        if !request.dry {
            *self.replication.participation.lock() = Some(Participation {
                term: request.term,
                candidate: request.candidate,
                granted: answer.granted,
                reason: answer.reason.to_string(),
                wall_ms: self.now_ms(),
                applied: self.log.last_optime(),
                newest_in_set,
                term_began: None,
            });
        }
        if answer.store.is_some() {
            // The candidate does not wait for what is only shown, which may have to wait for a batch.
            let node = self.clone();
            runtime::spawn(async move { node.show_last_vote().await });
        }
        Ok(doc! { "term": answer.term, "voteGranted": answer.granted, "reason": answer.reason })
    }

    /// Keeps the newest vote in `local`, too.
    async fn show_last_vote(self: &Arc<Self>) {
        let vote = self.replication.look(|m| m.vote());
        let shown = doc! { "_id": "lastVote", "term": vote.term, "candidateIndex": vote.candidate };
        self.show_in_local(ELECTION_NAMESPACE, shown).await;
    }

    /// The vote that a fail point asks for. It is written down nowhere: a member may deny whom it likes.
    async fn vote_of_a_test(self: &Arc<Self>, request: &VoteRequest) -> Result<Option<Document>> {
        let [no, only_dry] = ["voteNoInElection", "voteYesInDryRunButNoInRealElection"];
        let Some(point) = [no, only_dry].into_iter().find(|point| self.failpoint(point)) else {
            return Ok(None);
        };
        let granted = point == only_dry && request.dry;
        if !request.dry {
            self.see_term(request.term).await?;
        }
        let kind = if request.dry { "dry run" } else { "real election" };
        let reason = if granted {
            String::new()
        } else {
            format!("forced to vote no in {kind} due to failpoint {point} set")
        };
        let term = self.replication.look(|m| m.term());
        Ok(Some(doc! { "term": term, "voteGranted": granted, "reason": reason }))
    }

    /// A term that came with some message.
    ///
    /// # Errors
    /// A failed log.
    pub async fn see_term(self: &Arc<Self>, term: i64) -> Result<()> {
        if term <= self.replication.look(|m| m.term()) {
            return Ok(());
        }
        let actions = self.replication.with(|m, now, offset| m.see_term(term, now, offset));
        self.perform(actions).await
    }

    /// A term that came with a read of the oplog. Nothing is read in a term that is over: whoever reads shall ask again.
    ///
    /// # Errors
    /// StaleTerm (135) where this member did not know the term; a failed log.
    pub async fn heed_term(self: &Arc<Self>, term: i64) -> Result<()> {
        let before = self.replication.look(|m| m.term());
        if !self.is_replica_set() || term <= before {
            return Ok(());
        }
        self.see_term(term).await?;
        match self.replication.look(|m| m.term()) > before {
            true => bail!(STALE_TERM, "Replication term of this node was stale; retry query"),
            false => Ok(()),
        }
    }

    /// Starts what a member of a set of several does all the time.
    pub(super) fn start_tasks(self: &Arc<Self>) {
        let mut tasks = self.replication.tasks.lock();
        if !tasks.is_empty() {
            return;
        }
        let weak = Arc::downgrade(self);
        let ticks = runtime::spawn(async move {
            loop {
                let Some(node) = weak.upgrade() else { return };
                let timeout = node.replication.look(|m| m.config().map(|c| c.election_timeout_ms()));
                node.outliving_panics(node.tick()).await;
                drop(node);
                let tick = Duration::from_millis(timeout.unwrap_or(1000) / 20)
                    .clamp(Duration::from_millis(5), TICK_MAX);
                tokio::time::sleep(tick).await;
            }
        });
        tasks.push(ticks.abort_handle());
        tasks.push(runtime::spawn(super::fetch::follow(Arc::downgrade(self))).abort_handle());
        let weak = Arc::downgrade(self);
        tasks.push(self.spawn_for_good(move || super::fetch::report(weak.clone())));
    }

    async fn tick(self: &Arc<Self>) {
        let actions = self.replication.with(|m, now, offset| {
            let mut actions = self.tell_positions(m);
            actions.extend(m.tick(now, offset));
            actions
        });
        self.perform_quietly(actions).await;
    }

    /// Begins work again that a panic has ended, until it ends by itself.
    pub(super) fn spawn_for_good<F>(&self, work: impl Fn() -> F + Send + 'static) -> AbortHandle
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let task = runtime::spawn(async move {
            while AssertUnwindSafe(work()).catch_unwind().await.is_err() {
                tokio::time::sleep(TICK_MAX).await;
            }
        });
        task.abort_handle()
    }

    /// Does work without which a member would never stand nor step down again, should it end. A panic ends the reign: nobody knows how
    /// far its work came.
    pub(super) async fn outliving_panics(self: &Arc<Self>, work: impl Future<Output = ()>) {
        if AssertUnwindSafe(work).catch_unwind().await.is_err() {
            self.replication.note("A panic while time was told to the elections", Document::new());
            let actions = self.replication.with(|m, now, offset| m.step_down(now, offset));
            self.perform_quietly(actions).await;
        }
    }

    /// A member that is alone stands again when its time has come.
    pub(super) fn wake_lonely(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        let alone = self.replication.look(|m| m.config().is_some_and(|c| c.members().len() == 1));
        if !alone {
            return;
        }
        runtime::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(50)).await;
                let Some(node) = weak.upgrade() else { return };
                let done = node
                    .replication
                    .look(|m| m.is_leader() || m.config().is_none_or(|c| c.members().len() > 1));
                if done || node.log.health().is_err() {
                    return;
                }
                node.outliving_panics(node.tick()).await;
            }
        });
    }

    /// Steps down for `seconds`. Writes stop; then, for at most `catch_up` seconds, a majority must get the last entry and
    /// one of it be able to take over. With `force` this member steps down even if that does not happen.
    ///
    /// # Errors
    /// NotWritablePrimary (10107); ExceededTimeLimit (262) when nobody has caught up, and those of an operation that is to end: this
    /// member stays primary;
    /// ConflictingOperationInProgress (117); PrimarySteppedDown (189) when it was deposed meanwhile.
    pub async fn step_down(
        self: &Arc<Self>,
        op: &Operation,
        seconds: u64,
        catch_up: u64,
        force: bool,
    ) -> Result<()> {
        let Ok(_changing) = self.replication.changing.try_lock() else {
            bail!(CONFLICTING_OPERATION_IN_PROGRESS, "This node is already in the process of stepping down");
        };
        let replication = &self.replication;
        if replication.look(|m| m.is_leader()) {
            self.failpoints.pause_while_set("stepdownHangBeforeRSTLEnqueue").await;
        }
        // One that still catches up, or recovers, is let go as well: it may never end.
        let Some(term) = replication.look(|m| m.is_leader().then(|| m.term())) else {
            bail!(NOT_WRITABLE_PRIMARY, "not primary so can't step down")
        };
        let _closed = StepDown::begin(self, term);
        replication.ask_members_now();
        let successor = op.interruptible(self.await_successor(Duration::from_secs(catch_up))).await?;
        if !replication.look(|m| m.is_leader() && m.term() == term) {
            return Err(Replication::stepped_down());
        }
        if successor.is_none() && !force {
            bail!(
                EXCEEDED_TIME_LIMIT,
                "No electable secondaries caught up as of {}Please use the replSetStepDown command with the argument \
                 {{force: true}} to force node to step down.",
                document::extended_json::format_date(self.now_ms()).unwrap_or_default()
            );
        }
        let actions = replication.with(|m, now, offset| {
            m.freeze(now, seconds);
            m.step_down(now, offset)
        });
        self.perform(actions).await?;
        if let Some(index) = successor.filter(|_| !force && replication.settings().hands_over) {
            self.hand_over(index);
        }
        Ok(())
    }

    async fn await_successor(self: &Arc<Self>, limit: Duration) -> Option<usize> {
        let mut progress = self.replication.progress();
        let anybody = self.replication.look(|m| {
            let me = m.me();
            m.config().is_some_and(|c| {
                c.members().iter().enumerate().any(|(i, m)| Some(i) != me && m.is_electable())
            })
        });
        if !anybody {
            return None;
        }
        let caught_up = async {
            loop {
                let actions = self.positions();
                self.perform_quietly(actions).await;
                if let Some(index) = self.replication.look(|m| m.successor()) {
                    return index;
                }
                if progress.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::time::timeout(limit, caught_up).await.ok()
    }

    /// Asks the member to stand at once, since nobody else leads now; others where it refuses, as one does that is about to end.
    fn hand_over(self: &Arc<Self>, index: usize) {
        let Ok(peers) = self.replication.peers().cloned() else { return };
        let hosts: Vec<String> = self.replication.look(|m| {
            let Some(config) = m.config() else { return Vec::new() };
            let others = m.peers().filter(|(i, peer)| *i != index && peer.up).map(|(i, _)| i);
            let able = std::iter::once(index).chain(others).filter_map(|i| config.members().get(i));
            able.filter(|member| member.is_electable()).map(|member| member.host.clone()).collect()
        });
        runtime::spawn(async move {
            for host in hosts {
                let command = doc! { "replSetStepUp": 1, "skipDryRun": true }.to_doc_buf();
                if peers.call(&host, "admin", command, Duration::from_secs(10)).await.is_ok() {
                    return;
                }
            }
            // The election timers do the rest.
        });
    }

    /// Holds off elections for `seconds`; 0 ends the wait now.
    ///
    /// # Errors
    /// NotSecondary (95) on a primary.
    pub async fn freeze_elections(self: &Arc<Self>, seconds: u64) -> Result<()> {
        let _changing = self.replication.changing.lock().await;
        let frozen = self.replication.with(|m, now, offset| {
            if m.is_leader() || m.is_candidate() {
                return None;
            }
            if seconds != 0 {
                m.freeze(now, seconds);
                return Some(Vec::new());
            }
            m.unfreeze();
            let alone = m.config().is_some_and(|c| c.members().len() == 1);
            Some(if alone { m.tick(now, offset) } else { Vec::new() })
        });
        let Some(actions) = frozen else {
            bail!(NOT_SECONDARY, "cannot freeze node when primary or running for election. state: Primary");
        };
        self.perform(actions).await
    }

    /// Becomes primary now if it is not: `replSetStepUp`. Returns when the election is decided.
    ///
    /// # Errors
    /// NotYetInitialized (94), CommandFailed (125) when the election is not won.
    pub async fn step_up(self: &Arc<Self>, skip_dry_run: bool) -> Result<()> {
        self.configured()?;
        let reason = if skip_dry_run { Reason::StepUpRequestSkipDryRun } else { Reason::StepUpRequest };
        let mut progress = self.replication.progress();
        let more = self.positions();
        self.perform(more).await?;
        if self.replication.is_primary() {
            return Ok(());
        }
        let begun = self.replication.with(|m, now, offset| {
            m.unfreeze();
            m.stand(reason, now, offset)
        });
        let refused = |why: &str| err!(COMMAND_FAILED, "Election failed: {why}.");
        self.perform(begun.map_err(refused)?).await?;
        let decided = async {
            loop {
                if self.replication.is_primary() {
                    return true;
                }
                if self.replication.look(|m| !m.is_candidate() && !m.is_leader()) {
                    return false;
                }
                drop(tokio::time::timeout(Duration::from_millis(20), progress.changed()).await);
            }
        };
        let won = tokio::time::timeout(Duration::from_secs(60), decided).await;
        match won {
            Ok(true) => Ok(()),
            _ => Err(refused("it was not won")),
        }
    }

    /// `replSetMaintenance`.
    ///
    /// # Errors
    /// NotSecondary (95), OperationFailed (96) below zero.
    pub fn set_maintenance(&self, on: bool) -> Result<()> {
        if self.failpoint("setMaintenanceModeFailsWithNotSecondary")
            || self.replication.look(|m| m.is_leader() || m.is_candidate())
        {
            bail!(NOT_SECONDARY, "primaries can't modify maintenance mode");
        }
        match self.replication.with(|m, now, offset| m.change_maintenance(on, now, offset)) {
            Some(_) => Ok(()),
            None => bail!(OPERATION_FAILED, "already out of maintenance mode"),
        }
    }
}

/// A step-down that waits for a successor. Writes are closed; however the wait ends, they open again while the reign lasts.
struct StepDown<'a> {
    node: &'a Arc<Node>,
    term: i64,
}

impl<'a> StepDown<'a> {
    fn begin(node: &'a Arc<Node>, term: i64) -> StepDown<'a> {
        let attempt = StepDown { node, term };
        node.close_writes();
        node.replication.with(|m, _, _| m.begin_step_down(term));
        attempt
    }
}

impl Drop for StepDown<'_> {
    fn drop(&mut self) {
        if self.node.open_writes(self.term) {
            self.node.replication.with(|m, _, _| m.cancel_step_down());
        }
    }
}

/// The command of a request for a vote.
fn vote_command(request: &VoteRequest) -> Document {
    let mut command = doc! {
        "replSetRequestVotes": 1, "setName": request.set.as_str(), "dryRun": request.dry, "term": request.term,
        "candidateIndex": request.candidate as i32, "configVersion": request.config.1 as i32,
    };
    if request.config.0 != -1 {
        command.push("configTerm", request.config.0);
    }
    command.push("lastAppliedOpTime", optime_document(request.applied));
    command
}

/// `{ts, t}`.
pub(super) fn optime_document(t: protocol::replication::OpTime) -> Document {
    doc! { "ts": document::Timestamp::from_u64(t.ts), "t": t.term }
}

/// Reads `{ts, t}`.
pub fn read_optime(d: document::Doc<'_>) -> Option<protocol::replication::OpTime> {
    let ts = d.get("ts").and_then(|v| v.as_timestamp())?;
    Some(known(storage::log::OpTime { ts: ts.as_u64(), term: d.get_i64("t").unwrap_or(-1) }))
}
