//! The driver of changes that concern several nodes: performs the actions of a [`Machine`] and feeds their outcomes back.
//!
//! There are two kinds of [`Performer`]: the coordinators of catalog changes on a database's primary shard
//! (`shard/ddl/coordinator`), and what happens to all data of the cluster, on the config server (`config/whole`).
//!
//! ```text
//! document   { _id, phase, run: { coordinator: UUID, number }, ... what the phases have added }      DO NOT CHANGE
//! ```
//! Invariant: before an attempt at a phase, or at undoing, sends anything, the document holds the number of a run that no
//! attempt before has sent, durably. So a participant that has heard of a later attempt refuses what an earlier one sent
//! (`shard/ddl/fence`). The number is written with the phase; for every other attempt (a repetition, one after a restart, one
//! whose phase could not be written) it is raised and written first. Only phases that come before the first document have none.

use crate::shard::ddl::fence::Run;
use document::error::{INTERRUPTION, NETWORK, NOT_PRIMARY, RETRIABLE};
use document::{Document, Error, Result, codes, err};
use futures::future::BoxFuture;
use protocol::ddl::{Action, Event, Machine, Protocol};
use std::time::Duration;

const BACKOFF: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// One change under way: what the driver has done for it.
pub(crate) trait Performer: Send {
    /// Asked before each action.
    ///
    /// # Errors
    /// That with which the driver ends at once; whoever is primary next goes on.
    fn may_go_on(&self) -> Result<()> {
        Ok(())
    }
    /// Passes the fail points before `step` ("Persisting" or "Running") of a phase.
    fn pause<'a>(&'a self, step: &'static str, phase: &'a str) -> BoxFuture<'a, ()>;
    /// Writes the document, durably.
    fn write<'a>(&'a mut self, state: &'a Document) -> BoxFuture<'a, Result<()>>;
    /// Removes the document, durably.
    fn forget<'a>(&'a mut self, state: &'a Document) -> BoxFuture<'a, Result<()>>;
    /// Runs a phase from its beginning; it may have run before. What it adds to `state` is written down with the next phase.
    fn run<'a>(&'a mut self, phase: &'static str, state: &'a mut Document) -> BoxFuture<'a, Result<()>>;
    /// Takes back what the phases before the commit did, whichever of them ran.
    fn undo<'a>(&'a mut self, state: &'a Document) -> BoxFuture<'a, Result<()>>;
}

/// Runs a change to its end; returns its document, with what the phases added.
///
/// # Errors
/// That of the phase that made it fail, when all is undone; that of [`Performer::may_go_on`].
pub(crate) async fn drive(
    by: &mut impl Performer,
    protocol: &'static Protocol,
    mut state: Document,
    first: Event<'_>,
) -> Result<Document> {
    let mut machine = Machine::new(protocol);
    let mut action = machine.step(first);
    let mut failure: Option<Error> = None;
    let mut backoff = BACKOFF;
    // Whether the document holds a run for the action that comes.
    let mut raised = false;
    loop {
        by.may_go_on()?;
        let outcome = match action {
            Action::Persist { phase } => {
                by.pause("Persisting", phase).await;
                state.insert("phase", phase);
                raise_run(&mut state);
                let written = by.write(&state).await;
                raised = written.is_ok();
                written
            }
            Action::Run { phase } => {
                by.pause("Running", phase).await;
                match begin_run(by, &mut state, std::mem::take(&mut raised)).await {
                    Ok(run) => run.scope(by.run(phase, &mut state)).await,
                    Err(e) => Err(e),
                }
            }
            Action::Undo => match begin_run(by, &mut state, std::mem::take(&mut raised)).await {
                Ok(run) => run.scope(by.undo(&state)).await,
                Err(e) => Err(e),
            },
            Action::Wait => {
                tokio::time::sleep(backoff).await;
                backoff = (backoff * 2).min(BACKOFF_MAX);
                Ok(())
            }
            Action::Forget => {
                by.pause("Persisting", "forget").await;
                by.forget(&state).await
            }
            Action::Finish { succeeded: true } => return Ok(state),
            Action::Finish { succeeded: false } => {
                // Why it failed only the primary knew that began to undo it.
                let unknown = || {
                    err!(INTERRUPTED_DUE_TO_REPL_STATE_CHANGE, "it failed before another primary took it up")
                };
                return Err(failure.unwrap_or_else(unknown));
            }
        };
        action = machine.step(event_of(outcome, action, &mut failure));
    }
}

/// What the machine is told; `failure` keeps the error of the last phase that failed.
fn event_of(outcome: Result<()>, action: Action, failure: &mut Option<Error>) -> Event<'static> {
    let Err(e) = outcome else { return Event::Done };
    let definite = is_definite(&e);
    if matches!(action, Action::Run { .. } | Action::Persist { .. }) {
        *failure = Some(e);
    }
    Event::Failed { definite }
}

/// The run of the attempt that begins: the one that was written with the phase, or else a new one.
async fn begin_run(by: &mut impl Performer, state: &mut Document, raised: bool) -> Result<Run> {
    let current = state.get_document("run").and_then(Run::from_document);
    if let (Some(current), true) = (current, raised) {
        return Ok(current);
    }
    let run = raise_run(state);
    // Before its first document nothing is undone or taken up.
    if state.contains_key("phase") {
        by.write(state).await?;
    }
    Ok(run)
}

fn raise_run(state: &mut Document) -> Run {
    let run = match state.get_document("run").and_then(Run::from_document) {
        Some(before) => Run { number: before.number + 1, ..before },
        None => Run { coordinator: runtime::uuid(), number: 1 },
    };
    state.insert("run", run.to_document());
    run
}

/// The phase that a driver was told to run, as its coordinator's own type.
///
/// # Errors
/// UnsupportedFormat (12): the name is none of this coordinator's. Nothing is done then.
pub(crate) fn phase_of<P>(named: Option<P>, phase: &str) -> Result<P> {
    named.ok_or_else(|| err!(UNSUPPORTED_FORMAT, "the coordinator has no phase '{phase}'"))
}

/// Whether an error says that nothing was done and that another try would end the same.
fn is_definite(e: &Error) -> bool {
    const UNKNOWN: &[i32] = &[codes::LOCK_TIMEOUT, codes::LOCK_BUSY, codes::WRITE_CONCERN_FAILED];
    !e.is(NETWORK | RETRIABLE | NOT_PRIMARY | INTERRUPTION) && !UNKNOWN.contains(&e.code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;
    use protocol::ddl::{OnFailure, Phase, UNDO};

    const PROTOCOL: Protocol = Protocol {
        operation: "test",
        phases: &[
            Phase { name: "check", on_failure: OnFailure::Fail },
            Phase { name: "prepare", on_failure: OnFailure::Undo },
            Phase { name: "commit", on_failure: OnFailure::Retry },
        ],
    };

    /// A disk, and what was sent: by which attempt, and what the disk held of it then.
    #[derive(Default)]
    struct World {
        disk: Option<Document>,
        /// The writes that fail, counted from 0.
        failing: Vec<usize>,
        writes: usize,
        /// How often a phase fails before it succeeds.
        failures: Vec<(&'static str, usize)>,
        sent: Vec<(String, i64)>,
    }

    fn run_in(state: &Document) -> i64 {
        state.get_document("run").and_then(Run::from_document).map_or(0, |run| run.number)
    }

    impl World {
        fn send(&mut self, phase: &str, state: &Document) {
            let number = run_in(state);
            if phase != "check" {
                let disk = self.disk.as_ref().expect("a document");
                assert_eq!(
                    (disk.get_str("phase"), run_in(disk)),
                    (Some(phase), number),
                    "what the disk holds"
                );
            }
            assert!(
                self.sent.iter().all(|(_, before)| *before < number),
                "{number} was sent before: {:?}",
                self.sent
            );
            self.sent.push((phase.to_string(), number));
        }
    }

    impl Performer for World {
        fn pause<'a>(&'a self, _: &'static str, _: &'a str) -> BoxFuture<'a, ()> {
            Box::pin(async {})
        }
        fn write<'a>(&'a mut self, state: &'a Document) -> BoxFuture<'a, Result<()>> {
            Box::pin(async move {
                self.writes += 1;
                if self.failing.contains(&(self.writes - 1)) {
                    return Err(err!(WRITE_CONCERN_FAILED, "the disk is away"));
                }
                self.disk = Some(state.clone());
                Ok(())
            })
        }
        fn forget<'a>(&'a mut self, _: &'a Document) -> BoxFuture<'a, Result<()>> {
            self.disk = None;
            Box::pin(async { Ok(()) })
        }
        fn run<'a>(&'a mut self, phase: &'static str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
            Box::pin(async move {
                self.send(phase, state);
                match self.failures.iter_mut().find(|(name, left)| *name == phase && *left > 0) {
                    Some((_, left)) => {
                        *left -= 1;
                        Err(err!(BAD_VALUE, "{phase} fails"))
                    }
                    None => Ok(()),
                }
            })
        }
        fn undo<'a>(&'a mut self, state: &'a Document) -> BoxFuture<'a, Result<()>> {
            Box::pin(async move {
                self.send(UNDO, state);
                Ok(())
            })
        }
    }

    impl World {
        async fn starts(&mut self) -> Result<Document> {
            drive(self, &PROTOCOL, doc! { "_id": 1 }, Event::Started).await
        }
        fn phases(&self) -> Vec<&str> {
            self.sent.iter().map(|(phase, _)| phase.as_str()).collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_attempt_has_a_run_of_its_own() {
        let mut world = World { failures: vec![("commit", 2)], ..World::default() };
        world.starts().await.unwrap();
        assert_eq!(world.phases(), ["check", "prepare", "commit", "commit", "commit"]);
        let mut world = World { failures: vec![("prepare", 1)], ..World::default() };
        assert_eq!(world.starts().await.unwrap_err().code, codes::BAD_VALUE);
        assert_eq!(world.phases(), ["check", "prepare", UNDO]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_phase_that_could_not_be_written_is_written_before_it_runs() {
        // Of "commit" the first write fails, and the one of the next attempt.
        let mut world = World { failing: vec![1, 2], ..World::default() };
        world.starts().await.unwrap();
        assert_eq!(world.phases(), ["check", "prepare", "commit"]);
        // The same of what undoes.
        let mut world = World { failing: vec![1, 2], failures: vec![("prepare", 1)], ..World::default() };
        world.starts().await.unwrap_err();
        assert_eq!(world.phases(), ["check", "prepare", UNDO]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_after_a_restart_has_a_run_of_its_own() {
        for phase in ["commit", UNDO] {
            let before = Run { coordinator: [1; 16], number: 5 };
            let state = doc! { "_id": 1, "phase": phase, "run": before.to_document() };
            let mut world =
                World { disk: Some(state.clone()), sent: vec![(phase.into(), 5)], ..World::default() };
            let done = drive(&mut world, &PROTOCOL, state, Event::Recovered { phase }).await;
            assert_eq!((done.is_ok(), world.sent.last().unwrap().1), (phase == "commit", 6));
        }
    }
}
