//! The coordinator of a transaction that several shards have written to: two-phase commit as a state machine.
//!
//! ```text
//! writingParticipantList ─▶ waitingForVotes ─▶ writingDecision ─▶ waitingForDecisionAcks ─▶ deletingCoordinatorDoc ─▶ done
//!        durable: who          prepare to all     durable: what       commit or abort to all      durable: nothing
//! ```
//!
//! Invariant: no prepare is sent before the list of participants is durable, and no decision before the decision is. So
//! whoever takes the document up after a crash knows whom to ask, and never decides twice.
//!
//! Where can it get stuck? At a participant that does not answer. Its vote is asked for until the deadline, which decides to
//! abort; its acknowledgement until it comes, since what is prepared there ends by nothing else. One that refuses to prepare
//! has aborted, and decides the rest.

use document::codes::NO_SUCH_TRANSACTION;
use std::collections::{BTreeMap, BTreeSet};

/// What a shard said to prepareTransaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Prepared at this timestamp.
    Commit(u64),
    /// It cannot: the code and text of its refusal.
    Abort(i32, String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// At this timestamp, the latest of the prepares.
    Commit(u64),
    Abort(i32, String),
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    PersistParticipants,
    Prepare(String),
    PersistDecision(Decision),
    Decide(String, Decision),
    DeleteDocument,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    ParticipantsDurable,
    Voted(String, Vote),
    /// Votes are waited for no longer.
    DeadlinePassed,
    DecisionDurable,
    Acknowledged(String),
    DocumentDeleted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    WritingParticipantList,
    WaitingForVotes,
    WritingDecision,
    WaitingForDecisionAcks,
    DeletingCoordinatorDoc,
    Done,
}

impl Step {
    /// As currentOp and serverStatus show it.
    pub fn name(self) -> &'static str {
        match self {
            Step::WritingParticipantList => "writingParticipantList",
            Step::WaitingForVotes => "waitingForVotes",
            Step::WritingDecision => "writingDecision",
            Step::WaitingForDecisionAcks => "waitingForDecisionAcks",
            Step::DeletingCoordinatorDoc => "deletingCoordinatorDoc",
            Step::Done => "done",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Coordinator {
    participants: BTreeSet<String>,
    votes: BTreeMap<String, u64>,
    acknowledged: BTreeSet<String>,
    decision: Option<Decision>,
    expired: bool,
    step: Step,
}

impl Coordinator {
    /// A new one, with its first action.
    pub fn begin(participants: impl IntoIterator<Item = String>) -> (Coordinator, Vec<Action>) {
        let coordinator = Coordinator {
            participants: participants.into_iter().collect(),
            votes: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            decision: None,
            expired: false,
            step: Step::WritingParticipantList,
        };
        (coordinator, vec![Action::PersistParticipants])
    }

    /// One whose document was found after a restart, with what it has to do again.
    pub fn recover(
        participants: impl IntoIterator<Item = String>,
        decision: Option<Decision>,
    ) -> (Coordinator, Vec<Action>) {
        let (mut coordinator, _) = Coordinator::begin(participants);
        let actions = match decision {
            None => coordinator.handle(Event::ParticipantsDurable),
            Some(decision) => {
                coordinator.step = Step::WritingDecision;
                coordinator.decision = Some(decision);
                coordinator.handle(Event::DecisionDurable)
            }
        };
        (coordinator, actions)
    }

    pub fn step(&self) -> Step {
        self.step
    }
    /// What was decided, once that is durable.
    pub fn decision(&self) -> Option<&Decision> {
        let durable =
            matches!(self.step, Step::WaitingForDecisionAcks | Step::DeletingCoordinatorDoc | Step::Done);
        self.decision.as_ref().filter(|_| durable)
    }
    pub fn participants(&self) -> impl Iterator<Item = &str> {
        self.participants.iter().map(String::as_str)
    }

    /// What follows from an event. One that comes late, or twice, changes nothing.
    pub fn handle(&mut self, event: Event) -> Vec<Action> {
        match (self.step, event) {
            (Step::WritingParticipantList, Event::DeadlinePassed) => {
                self.expired = true;
                Vec::new()
            }
            (Step::WaitingForVotes, Event::DeadlinePassed) => self.give_up(),
            (Step::WritingParticipantList, Event::ParticipantsDurable) if self.expired => self.give_up(),
            (Step::WritingParticipantList, Event::ParticipantsDurable) => {
                self.step = Step::WaitingForVotes;
                self.participants.iter().cloned().map(Action::Prepare).collect()
            }
            (Step::WaitingForVotes, Event::Voted(shard, vote)) => self.count(shard, vote),
            (Step::WritingDecision, Event::DecisionDurable) => {
                self.step = Step::WaitingForDecisionAcks;
                let Some(decision) = &self.decision else { return Vec::new() };
                self.participants.iter().map(|s| Action::Decide(s.clone(), decision.clone())).collect()
            }
            (Step::WaitingForDecisionAcks, Event::Acknowledged(shard)) => {
                self.acknowledged.insert(shard);
                if !self.participants.is_subset(&self.acknowledged) {
                    return Vec::new();
                }
                self.step = Step::DeletingCoordinatorDoc;
                vec![Action::DeleteDocument]
            }
            (Step::DeletingCoordinatorDoc, Event::DocumentDeleted) => {
                self.step = Step::Done;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn count(&mut self, shard: String, vote: Vote) -> Vec<Action> {
        let decision = match vote {
            Vote::Abort(code, text) => Decision::Abort(code, text),
            Vote::Commit(at) => {
                if self.participants.contains(&shard) {
                    self.votes.insert(shard, at);
                }
                if self.votes.len() < self.participants.len() {
                    return Vec::new();
                }
                Decision::Commit(self.votes.values().copied().max().unwrap_or(at))
            }
        };
        self.decide(decision)
    }

    fn give_up(&mut self) -> Vec<Action> {
        let silent: Vec<&str> = self.participants().filter(|s| !self.votes.contains_key(*s)).collect();
        let text =
            format!("The transaction's deadline passed before these shards had voted: {}", silent.join(", "));
        self.decide(Decision::Abort(NO_SUCH_TRANSACTION, text))
    }

    fn decide(&mut self, decision: Decision) -> Vec<Action> {
        self.step = Step::WritingDecision;
        self.decision = Some(decision.clone());
        vec![Action::PersistDecision(decision)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards() -> Vec<String> {
        vec!["a".to_string(), "b".to_string()]
    }
    fn voted(shard: &str, vote: Vote) -> Event {
        Event::Voted(shard.to_string(), vote)
    }

    #[test]
    fn all_votes_commit_at_the_latest_prepare() {
        let (mut c, first) = Coordinator::begin(shards());
        assert_eq!(first, [Action::PersistParticipants]);
        assert_eq!(c.handle(Event::ParticipantsDurable).len(), 2);
        assert!(c.handle(voted("a", Vote::Commit(7))).is_empty());
        assert!(c.handle(voted("a", Vote::Commit(7))).is_empty());
        assert_eq!(c.handle(voted("b", Vote::Commit(5))), [Action::PersistDecision(Decision::Commit(7))]);
        assert_eq!(c.decision(), None);
        assert_eq!(c.handle(Event::DecisionDurable).len(), 2);
        assert_eq!(c.decision(), Some(&Decision::Commit(7)));
        assert!(c.handle(Event::Acknowledged("b".to_string())).is_empty());
        assert_eq!(c.handle(Event::Acknowledged("a".to_string())), [Action::DeleteDocument]);
        c.handle(Event::DocumentDeleted);
        assert_eq!(c.step(), Step::Done);
    }

    #[test]
    fn the_first_refusal_decides_and_a_late_vote_changes_nothing() {
        let (mut c, _) = Coordinator::begin(shards());
        c.handle(Event::ParticipantsDurable);
        let aborts = Decision::Abort(251, "gone".to_string());
        let refused = c.handle(voted("b", Vote::Abort(251, "gone".to_string())));
        assert_eq!(refused, [Action::PersistDecision(aborts.clone())]);
        assert!(c.handle(voted("a", Vote::Commit(9))).is_empty());
        let told = c.handle(Event::DecisionDurable);
        assert_eq!(told[0], Action::Decide("a".to_string(), aborts));
    }

    #[test]
    fn the_deadline_ends_the_voting_and_nothing_else() {
        let aborts = |silent: &str| {
            let text = format!("The transaction's deadline passed before these shards had voted: {silent}");
            [Action::PersistDecision(Decision::Abort(NO_SUCH_TRANSACTION, text))]
        };
        let (mut c, _) = Coordinator::begin(shards());
        c.handle(Event::ParticipantsDurable);
        c.handle(voted("a", Vote::Commit(7)));
        assert_eq!(c.handle(Event::DeadlinePassed), aborts("b"));
        assert!(c.handle(voted("b", Vote::Commit(8))).is_empty());
        let (mut early, _) = Coordinator::begin(shards());
        assert!(early.handle(Event::DeadlinePassed).is_empty());
        assert_eq!(early.handle(Event::ParticipantsDurable), aborts("a, b"));
        let (mut decided, _) = Coordinator::recover(shards(), Some(Decision::Commit(3)));
        assert!(decided.handle(Event::DeadlinePassed).is_empty());
        assert_eq!(decided.decision(), Some(&Decision::Commit(3)));
    }

    #[test]
    fn nothing_is_sent_before_what_must_be_durable_is() {
        let (mut c, _) = Coordinator::begin(shards());
        assert!(c.handle(voted("a", Vote::Commit(1))).is_empty());
        assert!(c.handle(Event::DecisionDurable).is_empty());
        assert_eq!(c.step(), Step::WritingParticipantList);
    }

    #[test]
    fn a_restart_asks_again_or_tells_again() {
        let (c, actions) = Coordinator::recover(shards(), None);
        assert_eq!((c.step(), actions.len()), (Step::WaitingForVotes, 2));
        let (c, actions) = Coordinator::recover(shards(), Some(Decision::Commit(3)));
        assert_eq!(c.step(), Step::WaitingForDecisionAcks);
        assert_eq!(actions[1], Action::Decide("b".to_string(), Decision::Commit(3)));
    }

    /// What a participant has done, of which the prepare and what follows survive its death.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Part {
        InProgress,
        Prepared(u64),
        Committed(u64),
        Aborted,
    }

    /// The shards and the disk of the one that coordinates.
    struct World {
        parts: BTreeMap<String, Part>,
        document: Option<Option<Decision>>,
        /// A participant that refuses to prepare.
        refuses: Option<&'static str>,
        /// Actions that may yet be performed before the crash, and whether the last of them is.
        until_crash: Option<(usize, bool)>,
        crashed: bool,
    }

    impl World {
        /// Performs an action as the shard would; `None` when the coordinator dies before it hears of it.
        fn perform(&mut self, action: Action) -> Option<Event> {
            match &mut self.until_crash {
                Some((0, performed)) => {
                    if *performed {
                        self.event_of(action);
                    }
                    self.until_crash = None;
                    self.crashed = true;
                    return None;
                }
                Some((left, _)) => *left -= 1,
                None => {}
            }
            Some(self.event_of(action))
        }
        fn event_of(&mut self, action: Action) -> Event {
            match action {
                Action::PersistParticipants => {
                    self.document.get_or_insert(None);
                    Event::ParticipantsDurable
                }
                Action::Prepare(shard) => {
                    assert!(self.document.is_some(), "a prepare before the list is durable");
                    let part = self.parts.get_mut(&shard).unwrap();
                    match *part {
                        Part::InProgress if self.refuses == Some(shard.as_str()) => *part = Part::Aborted,
                        Part::InProgress => *part = Part::Prepared(shard.len() as u64 + 4),
                        _ => {}
                    }
                    let vote = match *part {
                        Part::Prepared(at) => Vote::Commit(at),
                        _ => Vote::Abort(251, "gone".to_string()),
                    };
                    Event::Voted(shard, vote)
                }
                Action::PersistDecision(decision) => {
                    let kept = self.document.as_ref().expect("the list came first");
                    assert!(kept.as_ref().is_none_or(|kept| *kept == decision), "decided twice");
                    self.document = Some(Some(decision));
                    Event::DecisionDurable
                }
                Action::Decide(shard, decision) => {
                    assert_eq!(self.document, Some(Some(decision.clone())), "told before it is durable");
                    let part = self.parts.get_mut(&shard).unwrap();
                    *part = match (*part, decision) {
                        (Part::Prepared(_), Decision::Commit(at)) => Part::Committed(at),
                        (Part::Committed(at), Decision::Commit(again)) if at == again => Part::Committed(at),
                        (Part::Committed(_), other) => panic!("committed, and then {other:?}"),
                        (part, Decision::Commit(_)) => panic!("{part:?} is told to commit"),
                        (_, Decision::Abort(..)) => Part::Aborted,
                    };
                    Event::Acknowledged(shard)
                }
                Action::DeleteDocument => {
                    self.document = None;
                    Event::DocumentDeleted
                }
            }
        }
        /// Runs a coordinator until it is done or dies.
        fn run(&mut self, (mut coordinator, actions): (Coordinator, Vec<Action>)) {
            let mut queue: std::collections::VecDeque<Action> = actions.into();
            while let Some(action) = queue.pop_front() {
                let Some(event) = self.perform(action) else { return };
                queue.extend(coordinator.handle(event));
            }
            assert_eq!(coordinator.step(), Step::Done);
        }
        /// The coordinating shard starts again; `others` have died meanwhile as well.
        fn restart(&mut self, others: bool) {
            for (shard, part) in &mut self.parts {
                if *part == Part::InProgress && (others || shard == "a") {
                    *part = Part::Aborted;
                }
            }
            if let Some(decision) = self.document.clone() {
                self.run(Coordinator::recover(shards(), decision));
            }
            // What no coordinator knows of expires.
            for part in self.parts.values_mut().filter(|p| **p == Part::InProgress) {
                *part = Part::Aborted;
            }
        }
    }

    /// Every action of a commit of two participants, the shard that coordinates killed before and after it, alone or with
    /// the others, and once more after every action of what follows: all end alike, and nobody stays prepared.
    #[test]
    fn killed_before_or_after_any_step_all_participants_end_alike() {
        let mut cells = 0;
        for (refuses, first, performed, others) in
            (0..16 * 12).map(|n| ([None, Some("a"), Some("b")][n % 3], n / 12, n % 2 == 0, n % 4 < 2))
        {
            for second in (0..20).map(|n| (n < 18).then_some((n / 2, n % 2 == 0))) {
                let parts = shards().into_iter().map(|s| (s, Part::InProgress)).collect();
                let until_crash = Some((first, performed));
                let mut world = World { parts, document: None, refuses, until_crash, crashed: false };
                world.run(Coordinator::begin(shards()));
                world.until_crash = second.filter(|_| world.crashed);
                world.crashed = false;
                world.restart(others);
                if world.crashed {
                    world.restart(others);
                }
                let ends: BTreeSet<String> = world.parts.values().map(|p| format!("{p:?}")).collect();
                assert_eq!(
                    ends.len(),
                    1,
                    "{refuses:?} {first} {performed} {others} {second:?}: {:?}",
                    world.parts
                );
                assert!(!ends.iter().any(|e| e.starts_with("Prepared")), "{ends:?}");
                assert_eq!(world.document, None);
                assert!(refuses.is_none() || ends.contains("Aborted"));
                cells += 1;
            }
        }
        assert_eq!(cells, 16 * 12 * 20);
    }
}
