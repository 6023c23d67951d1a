//! What a router counts of its clients' transactions (`serverStatus.transactions`), and what it tells of each when it ends.
//!
//! A transaction is open from its first statement until it is known to be committed or aborted. A commit whose outcome nobody
//! knows leaves it open until the commit is repeated, or until the session begins another.

use super::{CommitPath, State};
use document::{Document, Value, doc};
use node::operation::{ClientInfo, SessionId};
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The cause of an abort that the client asked for.
pub(super) const ABORT: &str = "abort";
/// That of one given up because its session has begun another, or was forgotten: the shards refuse its number by this code.
pub(super) const REPLACED: &str = "TransactionTooOld";

/// How a transaction is committed, as the counters tell them apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CommitType {
    NoShards,
    SingleShard,
    SingleWriteShard,
    ReadOnly,
    TwoPhaseCommit,
    RecoverWithToken,
}

const COMMIT_TYPES: [(CommitType, &str); 6] = [
    (CommitType::NoShards, "noShards"),
    (CommitType::SingleShard, "singleShard"),
    (CommitType::SingleWriteShard, "singleWriteShard"),
    (CommitType::ReadOnly, "readOnly"),
    (CommitType::TwoPhaseCommit, "twoPhaseCommit"),
    (CommitType::RecoverWithToken, "recoverWithToken"),
];

impl CommitType {
    /// `None` where the commit is refused before any shard is asked.
    pub(super) fn of(state: &State, path: &CommitPath) -> Option<CommitType> {
        let alone = state.participants.len() == 1;
        match path {
            CommitPath::Unknown => None,
            CommitPath::None => Some(CommitType::NoShards),
            CommitPath::ReadOnly(_) | CommitPath::OneWriter(..) if alone => Some(CommitType::SingleShard),
            CommitPath::ReadOnly(_) => Some(CommitType::ReadOnly),
            CommitPath::OneWriter(..) => Some(CommitType::SingleWriteShard),
            CommitPath::TwoPhase(..) => Some(CommitType::TwoPhaseCommit),
        }
    }
    pub(super) fn name(self) -> &'static str {
        COMMIT_TYPES[self as usize].1
    }
}

#[derive(Default)]
struct CommitTotals {
    initiated: AtomicI64,
    successful: AtomicI64,
    successful_micros: AtomicI64,
}

/// A router's counters of transactions since it was started.
#[derive(Default)]
pub struct Metrics {
    started: AtomicI64,
    committed: AtomicI64,
    aborted: AtomicI64,
    contacted: AtomicI64,
    at_commit: AtomicI64,
    targeted: AtomicI64,
    causes: Mutex<BTreeMap<String, i64>>,
    commits: [CommitTotals; COMMIT_TYPES.len()],
    /// Told of each transaction that ends.
    pub observer: OnceLock<Observer>,
}

/// Gets the time that a transaction was open, the number of the connection that used it last, and what makes its account.
pub type Observer = Box<dyn Fn(Duration, i64, &dyn Fn() -> Document) + Send + Sync>;

/// How a transaction has ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome<'a> {
    Committed,
    /// With the cause: the name of an error code, or [`ABORT`].
    Aborted(&'a str),
}

/// One transaction's times.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    pub(super) started: Instant,
    active: Duration,
    /// A command of it is running since then.
    pub(super) running: Option<Instant>,
    pub(super) commit: Option<(CommitType, Instant)>,
    /// The client that used it last.
    pub(super) client: Option<Arc<ClientInfo>>,
    pub(super) ended: bool,
}

impl Progress {
    pub(super) fn active(&self) -> Duration {
        self.active + self.running.map_or(Duration::ZERO, |since| since.elapsed())
    }
    pub(super) fn run(&mut self, client: Arc<ClientInfo>) {
        self.running = Some(Instant::now());
        self.client = Some(client);
    }
    pub(super) fn stop(&mut self) {
        self.active = self.active();
        self.running = None;
    }
}

impl Metrics {
    /// Counts a transaction that begins.
    pub(super) fn start(&self, started: Instant) -> Progress {
        self.started.fetch_add(1, Relaxed);
        Progress { started, active: Duration::ZERO, running: None, commit: None, client: None, ended: false }
    }
    /// Counts so many commands that go to shards.
    pub(super) fn target(&self, requests: usize) {
        self.targeted.fetch_add(requests as i64, Relaxed);
    }
    pub(super) fn contact(&self) {
        self.contacted.fetch_add(1, Relaxed);
    }
    /// Counts a commit that begins; its repetitions are part of it.
    pub(super) fn begin_commit(&self, state: &mut State, kind: Option<CommitType>, since: Instant) {
        let participants = state.participants.len();
        let Some((progress, kind)) = state.progress.as_mut().zip(kind) else { return };
        if progress.commit.is_none() {
            progress.commit = Some((kind, since));
            self.commits[kind as usize].initiated.fetch_add(1, Relaxed);
            self.at_commit.fetch_add(participants as i64, Relaxed);
        }
    }
    /// Counts a commit of a transaction that this router has not seen, which was asked of another's shard since then. Without
    /// an outcome it will be asked again.
    pub(super) fn recovered(
        &self,
        mut state: State,
        session: SessionId,
        since: Instant,
        outcome: Option<Outcome<'_>>,
    ) {
        self.target(1);
        let Some(outcome) = outcome else { return };
        state.progress = Some(self.start(since));
        self.begin_commit(&mut state, Some(CommitType::RecoverWithToken), since);
        self.end(&mut state, session, outcome);
    }
    /// Counts a transaction that has ended, once, and tells of it.
    pub(super) fn end(&self, state: &mut State, session: SessionId, outcome: Outcome<'_>) {
        let Some(progress) = state.progress.as_mut().filter(|p| !p.ended) else { return };
        progress.ended = true;
        match outcome {
            Outcome::Aborted(cause) => {
                self.aborted.fetch_add(1, Relaxed);
                *self.causes.lock().entry(cause.to_string()).or_default() += 1;
            }
            Outcome::Committed => {
                self.committed.fetch_add(1, Relaxed);
                if let Some((kind, since)) = progress.commit {
                    let totals = &self.commits[kind as usize];
                    totals.successful.fetch_add(1, Relaxed);
                    totals.successful_micros.fetch_add(micros(since.elapsed()), Relaxed);
                }
            }
        }
        let connection = progress.client.as_ref().map_or(0, |client| client.connection_id);
        let open = progress.started.elapsed();
        if let Some(observer) = self.observer.get() {
            observer(open, connection, &|| account(state, session, outcome, open));
        }
    }

    /// `serverStatus.transactions`. `open` yields for each open transaction whether a command of it is running.
    pub(super) fn to_document(&self, open: impl Iterator<Item = bool>) -> Document {
        let (active, inactive): (Vec<_>, Vec<_>) = open.partition(|active| *active);
        let (active, inactive) = (active.len() as i64, inactive.len() as i64);
        let causes: Document = self.causes.lock().iter().map(|(k, n)| (k.clone(), Value::from(*n))).collect();
        let commits = COMMIT_TYPES.iter().zip(&self.commits).map(|((_, name), totals)| {
            let totals = doc! {
                "initiated": totals.initiated.load(Relaxed), "successful": totals.successful.load(Relaxed),
                "successfulDurationMicros": totals.successful_micros.load(Relaxed),
            };
            (name.to_string(), Value::Document(totals))
        });
        doc! {
            "currentOpen": active + inactive, "currentActive": active, "currentInactive": inactive,
            "totalStarted": self.started.load(Relaxed), "totalCommitted": self.committed.load(Relaxed),
            "totalAborted": self.aborted.load(Relaxed), "abortCause": causes,
            "totalContactedParticipants": self.contacted.load(Relaxed),
            "totalParticipantsAtCommit": self.at_commit.load(Relaxed),
            "totalRequestsTargeted": self.targeted.load(Relaxed), "commitTypes": commits.collect::<Document>(),
        }
    }
}

impl State {
    /// Whether the transaction is open, and if so, whether a command of it is running.
    pub(super) fn open(&self) -> Option<bool> {
        self.progress.as_ref().filter(|p| !p.ended).map(|p| p.running.is_some())
    }
}

/// The attributes of the log line about a transaction that has ended.
fn account(state: &State, session: SessionId, outcome: Outcome<'_>, open: Duration) -> Document {
    let mut concern = state.read_concern.clone();
    let at = concern.remove("atClusterTime");
    let mut account = doc! { "parameters": {
        "lsid": session.to_document(), "txnNumber": state.number, "autocommit": false, "readConcern": concern,
    } };
    if let Some(at) = at {
        account.push("globalReadTimestamp", at);
    }
    account.push("numParticipants", state.participants.len() as i64);
    let Some(progress) = &state.progress else { return account };
    let commit = progress.commit;
    if let Some((CommitType::TwoPhaseCommit, _)) = commit {
        account.push("coordinator", state.coordinator.as_deref().unwrap_or(""));
    }
    match outcome {
        Outcome::Committed => account.push("terminationCause", "committed"),
        Outcome::Aborted(cause) => {
            account.push("terminationCause", "aborted");
            account.push("abortCause", cause);
        }
    }
    if let Some((kind, since)) = commit {
        account.push("commitType", kind.name());
        account.push("commitDurationMicros", micros(since.elapsed()));
    }
    let active = progress.active().min(open);
    account.push("timeActiveMicros", micros(active));
    account.push("timeInactiveMicros", micros(open - active));
    account.push("durationMillis", open.as_millis() as i64);
    account
}

pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
