//! Coordinators of catalog changes, as phases: which is persisted, what a failure means, where a restart goes on.
//!
//! ```text
//! Started ---> [Persist phase] ---> Run phase ---> next phase ... ---> Forget ---> Finish ok
//!                                      |
//!                  failed, by the phase's OnFailure:
//!                  Fail             Finish failed (nothing was persisted or changed)
//!                  Undo             Persist "undo" ---> Undo ---> Forget ---> Finish failed
//!                  UndoIfDefinite   as Undo when the outcome is known, else as Retry
//!                  Retry            Wait ---> Run the phase again
//! ```
//! A phase is persisted before its first action, and every phase can be run again from its beginning. After the phase
//! that commits nothing is undone. A restart goes on with the persisted phase; "undo" goes on undoing.

pub mod protocols;
#[cfg(test)]
mod tests;

/// What a failed phase leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    Fail,
    Undo,
    UndoIfDefinite,
    Retry,
}

/// One phase of a coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// As it stands in the coordinator's document. DO NOT CHANGE.
    pub name: &'static str,
    pub on_failure: OnFailure,
}

/// The phases of one kind of change, in order. Phases that only [`OnFailure::Fail`] come first and are not persisted.
#[derive(Debug, PartialEq, Eq)]
pub struct Protocol {
    /// `operationType` of the coordinator's document. DO NOT CHANGE.
    pub operation: &'static str,
    pub phases: &'static [Phase],
}

/// The phase name of a coordinator that undoes what it did. DO NOT CHANGE.
pub const UNDO: &str = "undo";

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    Started,
    /// A restart found the coordinator's document in this phase.
    Recovered {
        phase: &'a str,
    },
    /// The last action was done.
    Done,
    /// The last action failed. `definite`: it is known to have had no effect and would fail again.
    Failed {
        definite: bool,
    },
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write the document with this phase, durably.
    Persist {
        phase: &'static str,
    },
    Run {
        phase: &'static str,
    },
    Undo,
    /// Let some time pass, then answer Done.
    Wait,
    /// Remove the document, durably.
    Forget,
    /// The end; on failure the client gets the error of the phase that failed.
    Finish {
        succeeded: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Persisting,
    Running,
    Waiting,
    PersistingUndo,
    Undoing,
    WaitingUndo,
    Forgetting { succeeded: bool },
    WaitingForget { succeeded: bool },
    Finished,
}

/// One coordinator under way.
#[derive(Debug)]
pub struct Machine {
    protocol: &'static Protocol,
    at: usize,
    state: State,
}

impl Machine {
    pub fn new(protocol: &'static Protocol) -> Machine {
        Machine { protocol, at: 0, state: State::New }
    }

    /// The next action after `event`.
    pub fn step(&mut self, event: Event<'_>) -> Action {
        match (self.state, event) {
            (State::New, Event::Recovered { phase: UNDO }) => self.undo(),
            (State::New, Event::Recovered { phase }) => {
                // A phase of another version of this code: the first that is persisted begins anew.
                let known = self.protocol.phases.iter().position(|p| p.name == phase);
                let first = self.protocol.phases.iter().position(|p| p.on_failure != OnFailure::Fail);
                self.at = known.or(first).unwrap_or(0);
                self.run()
            }
            (State::New, _) => self.enter(),
            (State::Persisting, Event::Done) => self.run(),
            // A document that could not be written: nothing of this phase was done.
            (State::Persisting, _) => self.failed_before_acting(),
            (State::Running, Event::Done) => {
                self.at += 1;
                self.enter()
            }
            (State::Running, Event::Failed { definite }) => self.failed(definite),
            (State::Waiting, _) => self.run(),
            (State::PersistingUndo | State::WaitingUndo, _) => self.undo(),
            (State::Undoing, Event::Done) => self.forget(false),
            (State::Undoing, _) => self.wait(State::WaitingUndo),
            (State::Forgetting { succeeded }, Event::Done) => self.finish(succeeded),
            (State::Forgetting { succeeded }, _) => self.wait(State::WaitingForget { succeeded }),
            (State::WaitingForget { succeeded }, _) => self.forget(succeeded),
            (State::Running | State::Finished, _) => self.finish(false),
        }
    }

    fn phase(&self) -> Option<Phase> {
        self.protocol.phases.get(self.at).copied()
    }
    fn enter(&mut self) -> Action {
        match self.phase() {
            None => self.forget(true),
            Some(p) if p.on_failure == OnFailure::Fail => self.run(),
            Some(p) => {
                self.state = State::Persisting;
                Action::Persist { phase: p.name }
            }
        }
    }
    fn run(&mut self) -> Action {
        match self.phase() {
            Some(p) => {
                self.state = State::Running;
                Action::Run { phase: p.name }
            }
            None => self.forget(true),
        }
    }
    fn failed(&mut self, definite: bool) -> Action {
        match self.phase().map(|p| p.on_failure) {
            None | Some(OnFailure::Fail) => self.finish(false),
            Some(OnFailure::Undo) => self.begin_undo(),
            Some(OnFailure::UndoIfDefinite) if definite => self.begin_undo(),
            Some(OnFailure::UndoIfDefinite | OnFailure::Retry) => self.wait(State::Waiting),
        }
    }
    fn failed_before_acting(&mut self) -> Action {
        match self.phase().map(|p| p.on_failure) {
            Some(OnFailure::Retry) => self.wait(State::Waiting),
            _ => self.begin_undo(),
        }
    }
    fn begin_undo(&mut self) -> Action {
        self.state = State::PersistingUndo;
        Action::Persist { phase: UNDO }
    }
    fn undo(&mut self) -> Action {
        self.state = State::Undoing;
        Action::Undo
    }
    fn wait(&mut self, state: State) -> Action {
        self.state = state;
        Action::Wait
    }
    fn forget(&mut self, succeeded: bool) -> Action {
        self.state = State::Forgetting { succeeded };
        Action::Forget
    }
    fn finish(&mut self, succeeded: bool) -> Action {
        self.state = State::Finished;
        Action::Finish { succeeded }
    }
}
