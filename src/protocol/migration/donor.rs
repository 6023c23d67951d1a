//! The donor's side, as a machine: [`Donor::action`] says what to do, [`Donor::on`] takes what came of it.
//!
//! Where it can get stuck: in [`Action::ResolveOutcome`] while the config server cannot be asked (the collection is
//! blocked meanwhile, since nobody can know who owns the range), and in settling the recipient's task while the
//! recipient cannot be reached (nothing is blocked then but further migrations of this shard). Both are repeated.

use super::Decision;

/// What the driver is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Durable, in one batch: the coordinator's document and the donor's own pending task.
    WriteCoordinator,
    StartRecipient,
    /// Waits until the recipient has cloned and has nearly caught up.
    AwaitSteady,
    /// Writes wait from here. In memory only.
    EnterCriticalSection,
    /// The recipient takes the last difference and answers when all is durable there.
    CommitOnRecipient,
    /// Reads wait as well.
    BlockReads,
    CommitOnConfig,
    /// Makes sure that a commit still under way can no longer be executed, then reads who owns the range.
    ResolveOutcome,
    /// Durable.
    PersistDecision(Decision),
    /// Installs the placement now in force, or forgets what was known of it.
    Refresh(Decision),
    LeaveCriticalSection(Decision),
    /// Stops the recipient; returns when it writes no more.
    AbortRecipient,
    /// Durable there: the recipient's task is removed (committed) or made ready (aborted).
    SettleRecipientTask(Decision),
    ReleaseRecipient,
    /// Durable: the donor's task is made ready (committed) or removed (aborted).
    SettleOwnTask(Decision),
    /// Durable: the coordinator's document goes.
    ForgetCoordinator(Decision),
    Finish(Decision),
}

/// What came of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Done,
    /// The action failed, or whether it was executed is not known.
    Failed,
    /// Of [`Action::ResolveOutcome`].
    Outcome(Decision),
}

/// One migration of a range away from this shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Donor {
    action: Action,
    /// The critical section was entered by this run.
    in_section: bool,
    /// Taken up from a coordinator document without a decision.
    recovering: bool,
}

impl Donor {
    pub fn start() -> Donor {
        Donor { action: Action::WriteCoordinator, in_section: false, recovering: false }
    }
    /// Takes up a migration whose coordinator document was found at start. Without a decision the namespace must be
    /// blocked before anything is served: nobody here knows whether the commit was executed.
    pub fn recover(decision: Option<Decision>) -> Donor {
        let action = match decision {
            None => Action::EnterCriticalSection,
            Some(Decision::Committed) => Action::SettleRecipientTask(Decision::Committed),
            Some(Decision::Aborted) => Action::AbortRecipient,
        };
        Donor { action, in_section: false, recovering: decision.is_none() }
    }
    pub fn action(&self) -> Action {
        self.action
    }

    /// Goes on with what came of [`Donor::action`].
    pub fn on(&mut self, event: Event) {
        use Action::*;
        use Decision::*;
        let done = event == Event::Done;
        self.action = match (self.action, event) {
            (WriteCoordinator, Event::Done) => StartRecipient,
            (WriteCoordinator, _) => Finish(Aborted),
            (StartRecipient, Event::Done) => AwaitSteady,
            (AwaitSteady, Event::Done) => EnterCriticalSection,
            (EnterCriticalSection, Event::Done) => {
                self.in_section = true;
                if self.recovering { ResolveOutcome } else { CommitOnRecipient }
            }
            (EnterCriticalSection, _) if self.recovering => EnterCriticalSection,
            (CommitOnRecipient, Event::Done) => BlockReads,
            (StartRecipient | AwaitSteady | EnterCriticalSection | CommitOnRecipient, _) => {
                PersistDecision(Aborted)
            }
            (BlockReads, _) => CommitOnConfig,
            (CommitOnConfig, Event::Done) => PersistDecision(Committed),
            // An answer that does not come and an answer that refuses are treated alike.
            (CommitOnConfig, _) => ResolveOutcome,
            (ResolveOutcome, Event::Outcome(decision)) => PersistDecision(decision),
            (ResolveOutcome, _) => ResolveOutcome,
            (PersistDecision(_), _) if !done => return,
            (PersistDecision(d), _) if self.in_section => Refresh(d),
            (PersistDecision(Committed), _) => SettleRecipientTask(Committed),
            (PersistDecision(Aborted), _) => AbortRecipient,
            (Refresh(d), _) => LeaveCriticalSection(d),
            (LeaveCriticalSection(d), _) => {
                self.in_section = false;
                if d == Committed { SettleRecipientTask(Committed) } else { AbortRecipient }
            }
            // From here on a failure means: again. The decision stands.
            (action, _) if !done => action,
            (AbortRecipient, _) => SettleRecipientTask(Aborted),
            (SettleRecipientTask(Committed), _) => ReleaseRecipient,
            (SettleRecipientTask(Aborted), _) => SettleOwnTask(Aborted),
            (ReleaseRecipient, _) => SettleOwnTask(Committed),
            (SettleOwnTask(d), _) => ForgetCoordinator(d),
            (ForgetCoordinator(d), _) => Finish(d),
            (Finish(d), _) => Finish(d),
        };
    }
    /// Whether a failure of the present action is to be tried again after a pause.
    pub fn repeats(&self) -> bool {
        use Action::*;
        matches!(
            self.action,
            ResolveOutcome
                | PersistDecision(_)
                | AbortRecipient
                | SettleRecipientTask(_)
                | ReleaseRecipient
                | SettleOwnTask(_)
                | ForgetCoordinator(_)
        ) || (self.action == EnterCriticalSection && self.recovering)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Task {
        None,
        Pending,
        Ready,
    }
    /// What survives a crash of the donor, on all three nodes.
    #[derive(Clone, Copy, Debug)]
    struct World {
        coordinator: Option<Option<Decision>>,
        own: Task,
        recipient: Task,
        moved: bool,
        /// A commit request that the config server has not executed yet.
        under_way: bool,
        bumped: bool,
        recipient_complete: bool,
        blocked: bool,
    }
    impl World {
        fn new() -> World {
            World {
                coordinator: None,
                own: Task::None,
                recipient: Task::None,
                moved: false,
                under_way: false,
                bumped: false,
                recipient_complete: false,
                blocked: false,
            }
        }
        /// Performs an action; `fails` says whether its answer is lost, `executed` whether it took effect.
        fn perform(&mut self, action: Action, executed: bool, answered: bool) -> Event {
            use Action::*;
            if executed {
                match action {
                    WriteCoordinator => (self.coordinator, self.own) = (Some(None), Task::Pending),
                    StartRecipient => self.recipient = Task::Pending,
                    CommitOnRecipient => self.recipient_complete = true,
                    CommitOnConfig => {
                        assert!(self.recipient_complete && self.blocked);
                        self.moved = true;
                    }
                    ResolveOutcome => {
                        self.bumped = true;
                        if answered {
                            let moved = self.moved;
                            return Event::Outcome(if moved {
                                Decision::Committed
                            } else {
                                Decision::Aborted
                            });
                        }
                    }
                    PersistDecision(d) => self.coordinator = Some(Some(d)),
                    EnterCriticalSection => self.blocked = true,
                    LeaveCriticalSection(_) => {
                        assert!(matches!(self.coordinator, Some(Some(_))), "left the section undecided");
                        self.blocked = false;
                    }
                    SettleRecipientTask(Decision::Committed) => self.recipient = Task::None,
                    SettleRecipientTask(Decision::Aborted) if self.recipient == Task::Pending => {
                        self.recipient = Task::Ready
                    }
                    SettleOwnTask(Decision::Committed) => self.own = Task::Ready,
                    SettleOwnTask(Decision::Aborted) => self.own = Task::None,
                    ForgetCoordinator(_) => self.coordinator = None,
                    _ => {}
                }
            } else if action == CommitOnConfig {
                self.under_way = true;
            }
            if answered && executed { Event::Done } else { Event::Failed }
        }
        fn late_commit(&mut self) {
            if self.under_way && !self.bumped {
                self.moved = true;
            }
            self.under_way = false;
        }
        fn check(&self) {
            assert_eq!(self.coordinator, None);
            if self.moved {
                assert_eq!((self.own, self.recipient), (Task::Ready, Task::None), "{self:?}");
            } else {
                assert_eq!(self.own, Task::None, "{self:?}");
                assert_ne!(self.recipient, Task::Pending, "{self:?}");
            }
        }
    }
    fn drive(donor: &mut Donor, world: &mut World) -> Decision {
        for _ in 0..100 {
            if let Action::Finish(d) = donor.action() {
                return d;
            }
            let event = world.perform(donor.action(), true, true);
            donor.on(event);
        }
        panic!("never finishes: {donor:?}");
    }
    fn recover(world: &mut World) {
        world.blocked = false;
        if let Some(decision) = world.coordinator {
            let mut donor = Donor::recover(decision);
            if decision.is_none() {
                assert_eq!(donor.action(), Action::EnterCriticalSection, "must block before it serves");
            }
            drive(&mut donor, world);
        }
    }

    #[test]
    fn an_undisturbed_migration_moves_the_range() {
        let (mut donor, mut world) = (Donor::start(), World::new());
        assert_eq!(drive(&mut donor, &mut world), Decision::Committed);
        assert!(world.moved && !world.blocked);
        world.check();
    }

    /// After each action, executed or not: the donor crashes and recovers.
    #[test]
    fn a_crash_at_any_action_leaves_tasks_that_agree_with_the_owner() {
        for crash_at in 0..20 {
            for executed in [false, true] {
                let (mut donor, mut world) = (Donor::start(), World::new());
                for _ in 0..crash_at {
                    let event = world.perform(donor.action(), true, true);
                    donor.on(event);
                }
                if matches!(donor.action(), Action::Finish(_)) {
                    break;
                }
                world.perform(donor.action(), executed, false);
                // The request may arrive before the recovery, or never.
                for late in [false, true] {
                    let mut world = world;
                    if late {
                        world.late_commit();
                    }
                    recover(&mut world);
                    world.late_commit();
                    world.check();
                }
                // A crash during the recovery, at each of its actions.
                for second in 0..12 {
                    let mut world = world;
                    let Some(decision) = world.coordinator else { continue };
                    let mut donor = Donor::recover(decision);
                    for _ in 0..second {
                        let event = world.perform(donor.action(), true, true);
                        donor.on(event);
                    }
                    recover(&mut world);
                    world.late_commit();
                    world.check();
                }
            }
        }
    }

    /// Each action in turn fails, with and without effect, and the donor goes on.
    #[test]
    fn a_failure_of_any_action_leaves_tasks_that_agree_with_the_owner() {
        for fail_at in 0..20 {
            for executed in [false, true] {
                let (mut donor, mut world) = (Donor::start(), World::new());
                let mut steps = 0;
                let decision = loop {
                    if let Action::Finish(d) = donor.action() {
                        break d;
                    }
                    let fine = steps != fail_at;
                    let event = world.perform(donor.action(), fine || executed, fine);
                    donor.on(event);
                    steps += 1;
                    assert!(steps < 100);
                };
                world.late_commit();
                // A coordinator written without an answer is taken up at the next start.
                recover(&mut world);
                world.check();
                assert_eq!(decision == Decision::Committed, world.moved, "failed at {fail_at}");
                assert!(!world.blocked);
            }
        }
    }
}
