//! The recipient's side, as a machine.
//!
//! Invariant: the pending task is durable before the first document of the range is written, so whatever a crash
//! leaves behind has somebody to remove it; and everything received is durable before the commit is answered.

/// What the driver is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Waits for range deletions that overlap; refuses when they do not end.
    AwaitNoOverlap,
    /// The collection, with the donor's UUID, options and indexes.
    EnsureCollection,
    /// Durable, in one batch: the pending task and the record of this reception.
    WriteTask,
    Clone,
    /// Differences until one is small; then again whenever there is something, until the donor commits.
    CatchUp,
    /// Nearly level with the donor: differences are taken as they come until the donor decides.
    Steady,
    /// The donor's writes wait: differences and sessions until there are none.
    Drain,
    MakeDurable,
    /// The donor is answered; it commits on the config server now.
    AwaitRelease,
    /// The record of this reception goes. The task stays: it is the donor's to settle.
    Forget {
        success: bool,
    },
    Finish {
        success: bool,
    },
}

/// What came of an action, or what the donor asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Done,
    Failed,
    /// `_recvChunkCommit` arrived.
    CommitRequested,
    /// `_recvChunkAbort` arrived.
    AbortRequested,
    /// `_recvChunkReleaseCritSec` arrived.
    Released,
}

/// The states of `_recvChunkStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ready,
    Clone,
    CatchUp,
    Steady,
    CommitStart,
    EnteredCriticalSection,
    Done,
    Fail,
    Abort,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Clone => "clone",
            State::CatchUp => "catchup",
            State::Steady => "steady",
            State::CommitStart => "commitStart",
            State::EnteredCriticalSection => "enteredCritSec",
            State::Done => "done",
            State::Fail => "fail",
            State::Abort => "abort",
        }
    }
}

/// One reception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipient {
    action: Action,
    aborted: bool,
    recorded: bool,
}

impl Recipient {
    pub fn start() -> Recipient {
        Recipient { action: Action::AwaitNoOverlap, aborted: false, recorded: false }
    }
    /// A record found at start: the reception itself is gone, and the donor decides about its task.
    pub fn recover() -> Recipient {
        Recipient { action: Action::Forget { success: false }, aborted: true, recorded: true }
    }
    pub fn action(&self) -> Action {
        self.action
    }
    pub fn state(&self) -> State {
        use Action::*;
        match self.action {
            AwaitNoOverlap | EnsureCollection | WriteTask => State::Ready,
            Clone => State::Clone,
            CatchUp => State::CatchUp,
            Steady => State::Steady,
            Drain | MakeDurable => State::CommitStart,
            AwaitRelease => State::EnteredCriticalSection,
            Forget { success: true } | Finish { success: true } => State::Done,
            Forget { success: false } | Finish { success: false } if self.aborted => State::Abort,
            Forget { .. } | Finish { .. } => State::Fail,
        }
    }

    pub fn on(&mut self, event: Event) {
        use Action::*;
        if event == Event::AbortRequested {
            self.aborted |= !matches!(self.action, Finish { .. } | Forget { .. });
        }
        self.recorded |= self.action == WriteTask;
        self.action = match (self.action, event) {
            (Finish { success }, _) => Finish { success },
            (Forget { success }, Event::Done | Event::Failed) => Finish { success },
            (Forget { success }, _) => Forget { success },
            (_, Event::AbortRequested | Event::Failed) if self.recorded => Forget { success: false },
            (_, Event::AbortRequested | Event::Failed) => Finish { success: false },
            (Steady, Event::CommitRequested) => Drain,
            // A commit that comes too early is refused by the driver; one that comes twice changes nothing.
            (action, Event::CommitRequested) => action,
            (AwaitRelease, Event::Released) => Forget { success: true },
            (action, Event::Released) => action,
            (AwaitNoOverlap, Event::Done) => EnsureCollection,
            (EnsureCollection, Event::Done) => WriteTask,
            (WriteTask, Event::Done) => Clone,
            (Clone, Event::Done) => CatchUp,
            (CatchUp, Event::Done) => Steady,
            (Steady, Event::Done) => Steady,
            (Drain, Event::Done) => MakeDurable,
            (MakeDurable, Event::Done) => AwaitRelease,
            (AwaitRelease, Event::Done) => AwaitRelease,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_stands_before_the_first_document_and_all_is_durable_before_the_answer() {
        let mut r = Recipient::start();
        let mut seen = Vec::new();
        for _ in 0..20 {
            seen.push(r.action());
            match r.action() {
                Action::Steady => r.on(Event::CommitRequested),
                Action::AwaitRelease => r.on(Event::Released),
                Action::Finish { success } => {
                    assert!(success);
                    break;
                }
                _ => r.on(Event::Done),
            }
        }
        let at = |a: Action| seen.iter().position(|s| *s == a).unwrap();
        assert!(at(Action::WriteTask) < at(Action::Clone));
        assert!(at(Action::Drain) < at(Action::MakeDurable));
        assert!(at(Action::MakeDurable) < at(Action::AwaitRelease));
    }

    #[test]
    fn an_abort_or_a_failure_at_any_point_ends_it_and_removes_the_record() {
        for stop_at in 0..12 {
            for event in [Event::AbortRequested, Event::Failed] {
                let mut r = Recipient::start();
                let mut recorded = false;
                for _ in 0..stop_at {
                    recorded |= r.action() == Action::WriteTask;
                    match r.action() {
                        Action::Steady => r.on(Event::CommitRequested),
                        Action::AwaitRelease => r.on(Event::Released),
                        _ => r.on(Event::Done),
                    }
                }
                recorded |= r.action() == Action::WriteTask;
                if matches!(r.action(), Action::Finish { .. } | Action::Forget { .. }) {
                    continue;
                }
                r.on(event);
                let expected = if recorded {
                    Action::Forget { success: false }
                } else {
                    Action::Finish { success: false }
                };
                assert_eq!(r.action(), expected, "stopped at {stop_at}");
                r.on(Event::Done);
                assert_eq!(r.action(), Action::Finish { success: false });
                let state = if event == Event::Failed { State::Fail } else { State::Abort };
                assert_eq!(r.state(), state);
            }
        }
    }

    #[test]
    fn a_commit_before_the_steady_state_changes_nothing() {
        let mut r = Recipient::start();
        r.on(Event::CommitRequested);
        assert_eq!(r.action(), Action::AwaitNoOverlap);
    }
}
