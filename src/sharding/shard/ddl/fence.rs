//! Which run of a coordinator a message is from.
//!
//! A coordinator counts its runs: the number is raised, durably, before each phase and before each repetition of one, and
//! every message to a participant carries it. A participant refuses a message that is older than one it has begun to
//! execute. So what lies unread in the socket of a paused shard, while its coordinator is taken up elsewhere or anew and
//! goes on, does nothing when the shard wakes: it cannot, for one, enter a critical section that nobody leaves. The config server is asked in the
//! same way: it cannot forbid migrations, or note a resharding, for a coordinator that has undone what it began.
//!
//! Messages of one coordinator are executed one after another, since an old one may be waiting for something in the middle
//! of its work when the next comes; that one waits until the old has ended.
//!
//! A participant's numbers live in memory, as long as the sockets that a late message can lie in.

use document::{Doc, Document, Result, Value, doc, err};
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;

/// How long a participant remembers a coordinator it no longer hears of.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// The member of messages that holds a [`Run`].
pub(crate) const MEMBER: &str = "coordinatorRun";

/// One run of a coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub coordinator: [u8; 16],
    pub number: i64,
}

tokio::task_local! {
    /// The run on whose behalf this task sends messages.
    static CURRENT: Run;
}

impl Run {
    pub(crate) fn to_document(self) -> Document {
        doc! { "coordinator": Value::uuid(self.coordinator), "number": self.number }
    }
    pub(crate) fn from_document(d: &Document) -> Option<Run> {
        Some(Run { coordinator: d.get("coordinator")?.as_uuid()?, number: d.get_i64("number")? })
    }
    /// Runs `work`; its messages carry this run.
    pub(crate) async fn scope<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self, work).await
    }
}

/// Adds the run of this task to a message.
pub(crate) fn mark(mut message: Document) -> Document {
    if let Ok(run) = CURRENT.try_with(|run| *run) {
        message.insert(MEMBER, run.to_document());
    }
    message
}

struct Seen {
    /// Held while a message is executed.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The newest run of which a message has begun.
    newest: i64,
    at: Instant,
}

/// What a participant has heard of coordinators.
#[derive(Default)]
pub(crate) struct Fences {
    seen: Mutex<BTreeMap<[u8; 16], Seen>>,
}

impl Fences {
    /// Lets a message pass; the guard is kept while it is executed. One without a run always passes.
    ///
    /// # Errors
    /// TransactionTooOld (225) for a message of an earlier run than one that has begun here.
    pub(crate) async fn pass(&self, message: Doc<'_>) -> Result<Option<OwnedMutexGuard<()>>> {
        let Some(run) = run_of(message) else { return Ok(None) };
        let turn = self.turn_of(run.coordinator).lock_owned().await;
        let mut seen = self.seen.lock();
        let Some(seen) = seen.get_mut(&run.coordinator) else { return Ok(Some(turn)) };
        if run.number < seen.newest {
            return Err(err!(
                TRANSACTION_TOO_OLD,
                "the message is of run {} of its coordinator, and run {} has begun",
                run.number,
                seen.newest
            ));
        }
        seen.newest = run.number;
        Ok(Some(turn))
    }

    /// Whether a message would be refused now. One that has not passed yet must not disturb what has.
    pub(super) fn is_late(&self, message: Doc<'_>) -> bool {
        let newest = |run: &Run| self.seen.lock().get(&run.coordinator).map(|s| s.newest);
        run_of(message).is_some_and(|run| newest(&run).is_some_and(|newest| run.number < newest))
    }

    /// Whoever waits for a turn or has it keeps the entry alive.
    fn turn_of(&self, coordinator: [u8; 16]) -> Arc<tokio::sync::Mutex<()>> {
        let mut seen = self.seen.lock();
        seen.retain(|_, s| s.at.elapsed() < REMEMBERED || Arc::strong_count(&s.turn) > 1);
        let new = || Seen { turn: Arc::default(), newest: 0, at: Instant::now() };
        let entry = seen.entry(coordinator).or_insert_with(new);
        entry.at = Instant::now();
        entry.turn.clone()
    }
}

fn run_of(message: Doc<'_>) -> Option<Run> {
    message.get_document(MEMBER).and_then(|d| Run::from_document(&d.to_document()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: i64) -> document::DocBuf {
        let mut m = doc! { "_shardsvrParticipantBlock": "c" };
        m.push(MEMBER, Run { coordinator: [1; 16], number }.to_document());
        m.to_doc_buf()
    }

    #[tokio::test]
    async fn an_older_message_is_refused_and_waits_for_none() {
        let fences = Fences::default();
        for number in [1, 3, 3] {
            fences.pass(message(number).doc()).await.unwrap();
        }
        let refused = fences.pass(message(2).doc()).await.unwrap_err();
        assert_eq!(refused.code, document::codes::TRANSACTION_TOO_OLD);
        assert!(fences.is_late(message(2).doc()) && !fences.is_late(message(3).doc()));
        assert!(fences.pass(doc! { "x": 1 }.to_doc_buf().doc()).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn the_next_message_waits_for_the_end_of_the_one_before() {
        let fences = Fences::default();
        let first = fences.pass(message(1).doc()).await.unwrap();
        let next = message(2);
        let mut second = Box::pin(fences.pass(next.doc()));
        assert!(tokio::time::timeout(Duration::from_millis(10), &mut second).await.is_err());
        drop(first);
        second.await.unwrap();
    }
}
