//! What coordinators say of themselves: lines of the log about participants that do not answer, rows of currentOp, and
//! `serverStatus.twoPhaseCommitCoordinator`.

use super::{Coordinators, Key};
use document::extended_json::format_date;
use document::{Document, Error, doc};
use parking_lot::Mutex;
use protocol::coordinator::{Decision, Step};
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The longest pause before a participant is asked again.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long something is tried before the log says so; each later line comes after twice the time.
const SILENT_FIRST: Duration = Duration::from_secs(5);

/// Something that is tried until it succeeds.
pub(super) struct Patience<'a> {
    key: Key,
    what: &'a str,
    shard: &'a str,
    pause: Duration,
    since: Instant,
    next_word: Duration,
    attempts: u64,
}

impl<'a> Patience<'a> {
    pub(super) fn new(key: Key, what: &'a str, shard: &'a str) -> Patience<'a> {
        Patience {
            key,
            what,
            shard,
            pause: Duration::from_millis(20),
            since: Instant::now(),
            next_word: SILENT_FIRST,
            attempts: 0,
        }
    }

    /// Pauses after a failed attempt.
    pub(super) async fn rest(&mut self, coordinators: &Coordinators, error: &Error) {
        self.attempts += 1;
        let tried = self.since.elapsed();
        if tried >= self.next_word {
            self.next_word *= 2;
            coordinators.say("Transaction coordinator is still trying", self.attributes(tried, error));
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    fn attributes(&self, tried: Duration, error: &Error) -> Document {
        doc! {
            "sessionId": self.key.0.to_document(), "txnNumber": self.key.1, "shardId": self.shard, "action": self.what,
            "attempts": self.attempts as i64, "durationMillis": tried.as_millis() as i64,
            "error": doc! { "code": error.code, "errmsg": error.message.as_str() },
        }
    }
}

/// One coordinator as others see it.
pub(super) struct Progress {
    pub key: Key,
    participants: usize,
    started: Instant,
    started_ms: i64,
    deadline_ms: i64,
    recovered: bool,
    expired: AtomicBool,
    now: Mutex<(Step, Option<Decision>)>,
}

impl Progress {
    pub(super) fn new(
        key: Key,
        participants: usize,
        started_ms: i64,
        deadline_ms: i64,
        recovered: bool,
    ) -> Progress {
        let now = Mutex::new((Step::WritingParticipantList, None));
        let (started, expired) = (Instant::now(), AtomicBool::new(false));
        Progress { key, participants, started, started_ms, deadline_ms, recovered, expired, now }
    }
    pub(super) fn note(&self, step: Step, decision: Option<&Decision>) {
        *self.now.lock() = (step, decision.cloned());
    }
    pub(super) fn time_left(&self, now_ms: i64) -> Duration {
        Duration::from_millis(self.deadline_ms.saturating_sub(now_ms).max(0) as u64)
    }
    pub(super) fn expired(&self) -> bool {
        self.expired.load(Ordering::SeqCst)
    }
    pub(super) fn expire(&self) {
        self.expired.store(true, Ordering::SeqCst);
    }

    fn row(&self) -> Document {
        let (step, decision) = self.now.lock().clone();
        let date = |ms| format_date(ms).unwrap_or_default();
        let mut state = doc! {
            "lsid": self.key.0.to_document(), "txnNumber": self.key.1, "numParticipants": self.participants as i64,
            "state": step.name(), "commitStartTime": date(self.started_ms), "hasRecoveredFromFailover": self.recovered,
        };
        let total = self.started.elapsed().as_micros() as i64;
        state.push("stepDurations", doc! { "totalCommitDurationMicros": total });
        if let Some(decision) = &decision {
            state.push("decision", super::decision_document(decision));
        }
        state.push("deadline", date(self.deadline_ms));
        doc! { "type": "op", "desc": "transaction coordinator", "active": true, "twoPhaseCommitCoordinator": state }
    }
}

/// Counts since the start of the process.
#[derive(Default)]
pub(super) struct Totals {
    created: AtomicU64,
    committed: AtomicU64,
    aborted: AtomicU64,
}

impl Totals {
    pub(super) fn created(&self) {
        self.created.fetch_add(1, Ordering::Relaxed);
    }
    pub(super) fn decided(&self, decision: &Decision) {
        let counter = match decision {
            Decision::Commit(_) => &self.committed,
            Decision::Abort(..) => &self.aborted,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Coordinators {
    fn say(&self, text: &str, attributes: Document) {
        if let Some(observer) = self.observer.get() {
            observer(text, attributes);
        }
    }

    /// A row of currentOp for each coordinator.
    pub fn current_operations(&self) -> Vec<Document> {
        self.running.lock().values().map(|entry| entry.progress.row()).collect()
    }

    /// `serverStatus.twoPhaseCommitCoordinator`.
    pub fn statistics(&self) -> Document {
        let mut steps: BTreeMap<&str, i64> = BTreeMap::new();
        for entry in self.running.lock().values() {
            *steps.entry(entry.progress.now.lock().0.name()).or_default() += 1;
        }
        let in_step = |step: Step| steps.get(step.name()).copied().unwrap_or(0);
        let count = |n: &AtomicU64| n.load(Ordering::Relaxed) as i64;
        let created = count(&self.totals.created);
        doc! {
            "totalCreated": created, "totalStartedTwoPhaseCommit": created,
            "totalAbortedTwoPhaseCommit": count(&self.totals.aborted),
            "totalCommittedTwoPhaseCommit": count(&self.totals.committed),
            "currentInSteps": {
                "writingParticipantList": in_step(Step::WritingParticipantList),
                "waitingForVotes": in_step(Step::WaitingForVotes),
                "writingDecision": in_step(Step::WritingDecision),
                "waitingForDecisionAcks": in_step(Step::WaitingForDecisionAcks),
                "deletingCoordinatorDoc": in_step(Step::DeletingCoordinatorDoc),
            },
        }
    }
}
