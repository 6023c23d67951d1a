//! One member of a set: its term and vote, what it knows of the others, elections, and the commit point.
//!
//! ```text
//!                 timer, takeover, command            dry run won: term + 1, vote stored
//!   FOLLOWER ------------------------------> DRY RUN -----------------------------------> CANDIDATE
//!      ^  ^                                     |                                             | votes of a majority
//!      |  +-------------------------------------+---------------------------------------------+
//!      |            refused, higher term                                                      v
//!      +------------------------------------------------------------------------------ LEADER (draining -> writable)
//!                   higher term, majority lost, command, unelectable in a new configuration
//! ```
//! The caller feeds what happened together with the time in milliseconds, and performs the [`Action`]s it gets back in
//! order. Nothing is decided by a clock other than that argument, and nothing by chance but the offset of an election
//! timer, which is passed in too.
//!
//! Where it could get stuck: a candidate waits for answers, and [`Member::tick`] ends that after the election timeout; a
//! leader that drains waits for its driver, which reports the end or is stepped down by a higher term.
//!
//! Invariant: one vote for each term, stored before it is given. Invariant: the term never falls. Invariant: the commit
//! point never falls, and a leader moves it only by positions of its own term.

use super::OpTime;
use super::config::SetConfig;
use super::metrics::{CatchUp, ElectionMetrics};
use std::collections::BTreeMap;
use std::sync::Arc;

/// States of a member, with the numbers that `replSetGetStatus` shows. DO NOT CHANGE: they are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    Startup = 0,
    Primary = 1,
    Secondary = 2,
    Recovering = 3,
    Startup2 = 5,
    Unknown = 6,
    Arbiter = 7,
    Down = 8,
    Rollback = 9,
    Removed = 10,
}

impl MemberState {
    pub const ALL: [MemberState; 10] = [
        MemberState::Startup,
        MemberState::Primary,
        MemberState::Secondary,
        MemberState::Recovering,
        MemberState::Startup2,
        MemberState::Unknown,
        MemberState::Arbiter,
        MemberState::Down,
        MemberState::Rollback,
        MemberState::Removed,
    ];
    pub fn name(self) -> &'static str {
        match self {
            MemberState::Startup => "STARTUP",
            MemberState::Primary => "PRIMARY",
            MemberState::Secondary => "SECONDARY",
            MemberState::Recovering => "RECOVERING",
            MemberState::Startup2 => "STARTUP2",
            MemberState::Unknown => "UNKNOWN",
            MemberState::Arbiter => "ARBITER",
            MemberState::Down => "DOWN",
            MemberState::Rollback => "ROLLBACK",
            MemberState::Removed => "REMOVED",
        }
    }
    pub fn from_number(n: i64) -> Option<MemberState> {
        MemberState::ALL.into_iter().find(|s| *s as i64 == n)
    }
    /// Whether a member that does not lead has a set's data in this state, and is not just copying it.
    pub fn has_data(self) -> bool {
        matches!(self, MemberState::Secondary | MemberState::Recovering | MemberState::Rollback)
    }
    /// Whether reads are served in this state.
    pub fn is_readable(self) -> bool {
        matches!(self, MemberState::Primary | MemberState::Secondary)
    }
}

/// The last vote given, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    pub term: i64,
    /// Index of the candidate among the members.
    pub candidate: i64,
}

/// What this member knows of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    pub up: bool,
    pub state: MemberState,
    /// When it was asked for what it told last, in milliseconds; 0: never.
    pub asked: u64,
    pub applied: OpTime,
    pub durable: OpTime,
    pub applied_wall: i64,
    pub durable_wall: i64,
    /// When another member last reported a newer position of it, in milliseconds; 0: never.
    pub reported: u64,
    /// Its configuration.
    pub config: Option<(i64, i64)>,
    pub sync_source: String,
    /// When it last answered or asked, in milliseconds; 0: never.
    pub heard: u64,
    pub last_heartbeat_wall: i64,
    pub last_heartbeat_received_wall: i64,
    pub up_since: u64,
    pub ping_ms: Option<u64>,
    pub election_time: u64,
    pub message: String,
}

impl Default for Peer {
    fn default() -> Peer {
        Peer {
            up: false,
            state: MemberState::Unknown,
            asked: 0,
            applied: OpTime::NONE,
            durable: OpTime::NONE,
            applied_wall: 0,
            durable_wall: 0,
            reported: 0,
            config: None,
            sync_source: String::new(),
            heard: 0,
            last_heartbeat_wall: 0,
            last_heartbeat_received_wall: 0,
            up_since: 0,
            ping_ms: None,
            election_time: 0,
            message: String::new(),
        }
    }
}

/// What the catch-up of a leader's present reign was for, and came to. Nothing where there was no reason to begin one.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastCatchUp {
    /// The newest entry of others, if one was ahead.
    pub target: Option<OpTime>,
    /// How many operations were fetched, once it has ended.
    pub operations: Option<i64>,
}

/// Why an election is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    ElectionTimeout,
    PriorityTakeover,
    /// The primary lacks what this member has, and is slow at fetching it.
    CatchUpTakeover,
    StepUpRequest,
    StepUpRequestSkipDryRun,
    SingleNode,
    /// A set of one after a freeze or a step-down.
    SingleNodeAgain,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Reason::ElectionTimeout => "electionTimeout",
            Reason::PriorityTakeover => "priorityTakeover",
            Reason::CatchUpTakeover => "catchupTakeover",
            Reason::StepUpRequest => "stepUpRequest",
            Reason::StepUpRequestSkipDryRun => "stepUpRequestSkipDryRun",
            Reason::SingleNode => "electionTimeout",
            Reason::SingleNodeAgain => "singleNodePromptElection",
        }
    }
}

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Store the vote durably, then report [`Member::vote_stored`].
    StoreVote(Vote),
    /// Ask the voters. Answers come back through [`Member::vote_answered`] with the same `round`.
    AskVotes { round: u64, dry: bool, term: i64 },
    /// This member has won: stop fetching, apply what was fetched, then report [`Member::drained`].
    Lead { term: i64, reason: Reason },
    /// This member leads no more.
    StepDown,
    /// The commit point is now here.
    Commit(OpTime),
}

/// An answer to a request for a vote.
#[derive(Clone, Debug, PartialEq)]
pub struct VoteAnswer {
    pub term: i64,
    pub granted: bool,
    pub reason: String,
    /// To be stored before the answer is sent.
    pub store: Option<Vote>,
}

/// A request for a vote.
#[derive(Clone, Debug, PartialEq)]
pub struct VoteRequest {
    pub set: String,
    pub dry: bool,
    pub term: i64,
    pub candidate: i64,
    pub config: (i64, i64),
    pub applied: OpTime,
}

/// The good part of an answer to a heartbeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Beat {
    /// When it was asked for, in milliseconds.
    pub asked: u64,
    /// The `_id` of the line that it takes for its own; `None` where it says none.
    pub id: Option<i64>,
    pub state: MemberState,
    pub term: i64,
    pub config: Option<(i64, i64)>,
    pub applied: OpTime,
    pub durable: OpTime,
    pub applied_wall: i64,
    pub durable_wall: i64,
    pub sync_source: String,
    pub election_time: u64,
}

#[cfg(test)]
impl Beat {
    /// Of a member in term 1 that has everything up to an entry.
    pub(super) fn of(state: MemberState, at: OpTime) -> Beat {
        Beat {
            asked: 0,
            id: None,
            state,
            term: 1,
            config: Some((-1, 1)),
            applied: at,
            durable: at,
            applied_wall: 0,
            durable_wall: 0,
            sync_source: String::new(),
            election_time: 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Role {
    Follower,
    /// Votes are asked for; `granted` holds the indexes that said yes, this member included.
    Candidate {
        dry: bool,
        round: u64,
        granted: Vec<usize>,
        answered: Vec<usize>,
        reason: Reason,
        since: u64,
    },
    /// The vote for itself is being stored.
    Storing {
        round: u64,
        reason: Reason,
        since: u64,
    },
    Leader {
        writable: bool,
    },
}

/// How far ahead of a member's own term one that it hears of may be.
const TERM_LEAP_MAX: i64 = 1 << 32;

/// Share of the election timeout by which its timer is put off at random, where nobody says another.
pub const OFFSET_FRACTION: f64 = 0.15;

/// What a member does wrong, for simulations.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// Entries of earlier terms are committed by being counted.
    pub(super) commits_older_terms: bool,
    /// Entries are committed that fewer hold than elect.
    pub(super) counts_thin_majorities: bool,
    /// The commit point is what was heard last.
    pub(super) believes_any_commit_point: bool,
}

/// One member's decisions.
#[derive(Clone, Debug)]
pub struct Member {
    config: Option<Arc<SetConfig>>,
    /// Where this member stands among the members; `None`: it is in no configuration.
    me: Option<usize>,
    term: i64,
    vote: Vote,
    role: Role,
    /// What the state is while neither primary nor arbiter nor removed.
    follower: MemberState,
    maintenance: u32,
    peers: BTreeMap<usize, Peer>,
    /// Index of the member known to be primary in this term.
    primary: Option<usize>,
    /// The id of the member that was last known to be primary.
    last_primary: Option<i64>,
    applied: OpTime,
    durable: OpTime,
    commit: OpTime,
    /// What this member had before it began to copy everything anew: candidates behind it are refused until the copy is done.
    floor: OpTime,
    /// The first entry of this leader's term.
    first_of_term: Option<OpTime>,
    #[cfg(test)]
    faults: Faults,
    rounds: u64,
    election_at: Option<u64>,
    /// When, and why.
    takeover: Option<(u64, Reason)>,
    /// Until when this member does not stand; 0: it never had to wait.
    frozen_until: u64,
    /// A step-down that waits for a secondary to catch up: no new terms of office begin, and no writes.
    stepping_down: bool,
    reconfiguring: bool,
    /// See [`Member::set_next`].
    next: Option<Arc<SetConfig>>,
    /// A leader that fetches what others have, before the first entry of its term.
    catching_up: bool,
    last_catch_up: LastCatchUp,
    /// Share of the election timeout by which its timer is put off at random.
    offset_fraction: f64,
    metrics: ElectionMetrics,
}

impl Member {
    pub fn set_offset_fraction(&mut self, fraction: f64) {
        self.offset_fraction = fraction;
    }
    /// A member as found at its start: the stored vote, and the optime its log ends with.
    pub fn new(vote: Option<Vote>, last: OpTime) -> Member {
        let vote = vote.unwrap_or(Vote { term: 0, candidate: -1 });
        Member {
            config: None,
            me: None,
            term: vote.term.max(last.term).max(0),
            vote,
            role: Role::Follower,
            follower: MemberState::Startup,
            maintenance: 0,
            peers: BTreeMap::new(),
            primary: None,
            last_primary: None,
            applied: last,
            durable: last,
            commit: OpTime::NONE,
            floor: OpTime::NONE,
            first_of_term: None,
            #[cfg(test)]
            faults: Faults::default(),
            rounds: 0,
            election_at: None,
            takeover: None,
            frozen_until: 0,
            stepping_down: false,
            reconfiguring: false,
            next: None,
            catching_up: false,
            last_catch_up: LastCatchUp::default(),
            offset_fraction: OFFSET_FRACTION,
            metrics: ElectionMetrics::default(),
        }
    }

    // ---- what it is ----

    pub fn state(&self) -> MemberState {
        if self.config.is_none() {
            return MemberState::Startup;
        }
        let Some(me) = self.own() else { return MemberState::Removed };
        match &self.role {
            Role::Leader { .. } => MemberState::Primary,
            _ if me.arbiter => MemberState::Arbiter,
            _ if self.follower == MemberState::Secondary && self.maintenance > 0 => MemberState::Recovering,
            _ => self.follower,
        }
    }
    /// What it is apart from leading, and from standing in the configuration.
    pub fn follower(&self) -> MemberState {
        self.follower
    }
    pub fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader { .. })
    }
    pub fn is_writable(&self) -> bool {
        matches!(self.role, Role::Leader { writable: true }) && !self.stepping_down
    }
    pub fn is_candidate(&self) -> bool {
        matches!(self.role, Role::Candidate { .. } | Role::Storing { .. })
    }
    pub fn is_stepping_down(&self) -> bool {
        self.stepping_down
    }
    pub fn term(&self) -> i64 {
        self.term
    }
    pub fn vote(&self) -> Vote {
        self.vote
    }
    pub fn config(&self) -> Option<&Arc<SetConfig>> {
        self.config.as_ref()
    }
    pub fn me(&self) -> Option<usize> {
        self.me
    }
    /// Where a host stands in the configuration. Another one may put it elsewhere.
    pub fn index_of(&self, host: &str) -> Option<usize> {
        self.config.as_ref()?.index_of_host(host)
    }
    pub fn own(&self) -> Option<&super::config::Member> {
        self.config.as_ref()?.members().get(self.me?)
    }
    /// Index of the primary of this term, if it is known.
    pub fn primary(&self) -> Option<usize> {
        if self.is_leader() { self.me } else { self.primary }
    }
    /// The id of the member that was last known to be primary, in this term or before.
    pub fn last_primary(&self) -> Option<i64> {
        self.last_primary
    }
    pub fn peer(&self, index: usize) -> Option<&Peer> {
        self.peers.get(&index)
    }
    pub fn peers(&self) -> impl Iterator<Item = (usize, &Peer)> {
        self.peers.iter().map(|(i, p)| (*i, p))
    }
    pub fn applied(&self) -> OpTime {
        self.applied
    }
    pub fn durable(&self) -> OpTime {
        self.durable
    }
    pub fn committed(&self) -> OpTime {
        self.commit
    }
    pub fn maintenance(&self) -> u32 {
        self.maintenance
    }
    #[cfg(test)]
    pub(super) fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }
    fn config_version(&self) -> (i64, i64) {
        self.config.as_ref().map_or((-1, -2), |c| (c.term(), c.version()))
    }

    // ---- configuration ----

    /// Installs a configuration in which this member stands at `me`. Peers that stay are remembered by host.
    pub fn install(
        &mut self,
        config: Arc<SetConfig>,
        me: Option<usize>,
        now: u64,
        offset: f64,
    ) -> Vec<Action> {
        let mut before = std::mem::take(&mut self.peers);
        self.next = None;
        let old = self.config.take();
        for (index, member) in config.members().iter().enumerate() {
            if Some(index) == me {
                continue;
            }
            let kept =
                old.as_ref().and_then(|c| c.index_of_host(&member.host)).and_then(|i| before.remove(&i));
            // One that is new has not had time to be heard of.
            self.peers.insert(index, kept.unwrap_or_else(|| Peer { heard: now, ..Peer::default() }));
        }
        let primary = self.primary.and_then(|i| Some(old.as_ref()?.members().get(i)?.host.clone()));
        self.primary = primary.and_then(|host| config.index_of_host(&host)).filter(|i| Some(*i) != me);
        self.config = Some(config);
        self.me = me;
        if self.follower == MemberState::Startup {
            self.follower = MemberState::Startup2;
        }
        let mut actions = Vec::new();
        let electable = self.own().is_some_and(|m| m.is_electable());
        if !electable && self.is_leader() {
            actions.extend(self.become_follower(now, offset));
        }
        if self.is_candidate() {
            self.role = Role::Follower;
        }
        self.schedule_election(now, offset);
        actions.extend(self.advance_commit());
        actions
    }

    /// Another configuration is being stored: no election begins meanwhile.
    pub fn set_reconfiguring(&mut self, reconfiguring: bool) {
        self.reconfiguring = reconfiguring;
    }

    // ---- what the driver reports of this member ----

    /// The state while neither leading nor arbiter: STARTUP2, RECOVERING, ROLLBACK, SECONDARY. Standing ends with SECONDARY, since
    /// the log with which this member stands is about to change. False on a leader, which stays what it is: its log is the set's.
    pub fn set_follower(&mut self, state: MemberState, now: u64, offset: f64) -> bool {
        if self.is_leader() {
            return false;
        }
        if state != MemberState::Secondary {
            self.role = Role::Follower;
        }
        self.follower = state;
        self.schedule_election(now, offset);
        true
    }
    /// Refuses candidates whose log ends before this: entries that this member acknowledged and is copying anew.
    pub fn set_vote_floor(&mut self, floor: OpTime) {
        self.floor = floor;
    }
    pub fn vote_floor(&self) -> OpTime {
        self.floor
    }
    /// The counter of `replSetMaintenance`; `None` when it would fall below zero. Whoever stood aside because of it may be elected again.
    pub fn change_maintenance(&mut self, up: bool, now: u64, offset: f64) -> Option<u32> {
        self.maintenance = if up { self.maintenance + 1 } else { self.maintenance.checked_sub(1)? };
        self.schedule_election(now, offset);
        Some(self.maintenance)
    }

    /// This member's log has come so far.
    pub fn progressed(&mut self, applied: OpTime, durable: OpTime) -> Vec<Action> {
        self.applied = applied;
        self.durable = durable;
        self.advance_commit()
    }

    // ---- the commit point ----

    /// How far a member has come durably.
    fn durable_of(&self, id: i64) -> OpTime {
        match self.config.as_ref().and_then(|c| c.index_of_id(id)) {
            Some(index) if Some(index) == self.me => self.durable,
            Some(index) => self.peers.get(&index).map_or(OpTime::NONE, |p| p.durable),
            None => OpTime::NONE,
        }
    }
    /// The newest optime that a write majority of a configuration has durably.
    fn reached_by_majority(&self, config: &SetConfig) -> OpTime {
        let voters = config.voters().filter(|m| m.bears_data());
        let mut positions: Vec<OpTime> = voters.map(|m| self.durable_of(m.id)).collect();
        positions.sort_unstable_by(|a, b| b.cmp(a));
        positions.get(config.write_majority() - 1).copied().unwrap_or(OpTime::NONE)
    }

    /// On the leader: the newest optime of its own term that a write majority has durably.
    fn advance_commit(&mut self) -> Vec<Action> {
        let (Some(first), true) = (self.first_of_term, self.is_leader()) else { return Vec::new() };
        let Some(config) = &self.config else { return Vec::new() };
        // A member in another term may have been rolled back since: its position says nothing of this leader's entries.
        let reached = self.reached_by_majority(config);
        let reached = self.next.as_ref().map_or(reached, |next| reached.min(self.reached_by_majority(next)));
        let own = reached >= first && reached.term == self.term;
        #[cfg(test)]
        let own = own || self.faults.commits_older_terms;
        let outvoted = self.commits_thinly() && !self.is_config_held(config);
        #[cfg(test)]
        let outvoted = outvoted && !self.faults.counts_thin_majorities;
        if !own || reached <= self.commit || outvoted {
            return Vec::new();
        }
        self.commit = reached;
        vec![Action::Commit(reached)]
    }

    /// A configuration is about to take the place of this one: until it is installed, or `None` says that it is not, what is committed
    /// has to be so by both. Only where fewer commit than elect, as one member with data beside an arbiter does: elsewhere those that
    /// elect by the next one share a member with those that commit by this one.
    pub fn set_next(&mut self, next: Option<Arc<SetConfig>>) {
        self.next = next.filter(|_| self.commits_thinly());
    }
    /// Whether a write majority of the next configuration has an entry. Always so where [`Member::set_next`] makes no difference.
    pub fn next_has(&self, next: &SetConfig, entry: OpTime) -> bool {
        !self.commits_thinly() || self.reached_by_majority(next) >= entry
    }
    fn commits_thinly(&self) -> bool {
        self.config.as_ref().is_some_and(|c| c.write_majority() < c.vote_majority())
    }

    /// Whether a majority of voters holds the configuration. Where fewer commit than elect, as one member with data beside an arbiter
    /// does, those that do not hold it yet could elect by the one before a member that lacks what is committed.
    fn is_config_held(&self, config: &SetConfig) -> bool {
        let version = Some(self.config_version());
        let holds = |i: usize| Some(i) == self.me || self.peers.get(&i).is_some_and(|p| p.config == version);
        let voters = config.members().iter().enumerate().filter(|(i, m)| m.votes && holds(*i));
        voters.count() >= config.vote_majority()
    }

    /// A commit point learned from a source, whose log this member's has in common up to the entry `shared`. What follows that here
    /// may be of another branch: this member may have led since it asked.
    pub fn learn_commit_from_source(&mut self, point: OpTime, shared: OpTime) -> Vec<Action> {
        self.learn(point.min(shared))
    }
    /// A commit point learned from a heartbeat: only one of the term of this member's newest entry lies on its branch.
    pub fn learn_commit_from_heartbeat(&mut self, point: OpTime) -> Vec<Action> {
        let is_arbiter = self.own().is_some_and(|m| m.arbiter);
        match point.term == self.applied.term && !matches!(self.follower, MemberState::Startup2) {
            true => self.learn(point.min(self.applied)),
            false if is_arbiter => self.learn(point),
            false => Vec::new(),
        }
    }
    fn learn(&mut self, point: OpTime) -> Vec<Action> {
        #[cfg(test)]
        if self.faults.believes_any_commit_point && !self.is_leader() {
            self.commit = point;
        }
        if self.is_leader() || point <= self.commit {
            return Vec::new();
        }
        self.commit = point;
        vec![Action::Commit(point)]
    }

    // ---- terms ----

    /// Whether no election can have led to this term: it is not believed, since terms have an end.
    fn is_beyond(&self, term: i64) -> bool {
        term > self.term.saturating_add(TERM_LEAP_MAX)
    }

    /// A term that some message carried. A higher one is adopted, and ends leading and standing.
    pub fn see_term(&mut self, term: i64, now: u64, offset: f64) -> Vec<Action> {
        if term <= self.term || self.is_beyond(term) {
            return Vec::new();
        }
        if self.is_leader() {
            self.metrics.deposed();
        }
        self.term = term;
        self.primary = None;
        self.takeover = None;
        let actions = self.become_follower(now, offset);
        self.schedule_election(now, offset);
        actions
    }

    fn become_follower(&mut self, now: u64, offset: f64) -> Vec<Action> {
        let led = self.is_leader();
        self.role = Role::Follower;
        self.stepping_down = false;
        self.catching_up = false;
        if led {
            self.first_of_term = None;
            self.primary = None;
            self.follower = MemberState::Secondary;
            self.schedule_election(now, offset);
            return vec![Action::StepDown];
        }
        Vec::new()
    }

    // ---- liveness ----

    /// A heartbeat's answer from the address of the member at `index`. One from a node that is another member is none of that member:
    /// its position, counted under two names, would be taken for two copies.
    pub fn heard_beat(
        &mut self,
        index: usize,
        beat: Beat,
        ping_ms: u64,
        now: u64,
        wall: i64,
        offset: f64,
    ) -> Vec<Action> {
        let mut actions = self.see_term(beat.term, now, offset);
        let config = self.config.as_ref();
        let asked = config.and_then(|c| c.members().get(index)).map(|m| m.id);
        if let (Some(asked), Some(id)) = (asked, beat.id)
            && asked != id
        {
            self.lost(index, &format!("The node at this address is the member with _id {id}"));
            return actions;
        }
        let current = beat.term == self.term;
        let Some(peer) = self.peers.get_mut(&index) else { return actions };
        // It is of before what is known already: answers overtake one another.
        if beat.asked < peer.asked {
            return actions;
        }
        peer.asked = beat.asked;
        if !peer.up {
            peer.up_since = now;
        }
        peer.up = true;
        peer.heard = now;
        peer.last_heartbeat_wall = wall;
        peer.state = beat.state;
        peer.config = beat.config;
        peer.sync_source = beat.sync_source;
        peer.election_time = beat.election_time;
        peer.message.clear();
        peer.ping_ms = Some(peer.ping_ms.map_or(ping_ms, |old| (old * 4 + ping_ms) / 5));
        // A position may have been reported since it was asked, which the answer must not undo. Otherwise it is where the member is now: one
        // that has taken back what it had would be waited for in vain by a leader that catches up.
        let restarted = matches!(beat.state, MemberState::Startup2 | MemberState::Rollback);
        let newest = restarted || peer.reported < beat.asked;
        if newest || beat.applied >= peer.applied {
            (peer.applied, peer.applied_wall) = (beat.applied, beat.applied_wall);
        }
        if newest || beat.durable >= peer.durable {
            (peer.durable, peer.durable_wall) = (beat.durable, beat.durable_wall);
        }
        if current {
            if beat.state == MemberState::Primary && !self.is_leader() {
                self.primary = Some(index);
                let config = self.config.as_ref();
                self.last_primary = config.and_then(|c| c.members().get(index)).map(|m| m.id);
                self.schedule_election(now, offset);
                self.schedule_takeover(now, offset);
            } else if self.primary == Some(index) && beat.state != MemberState::Primary {
                self.primary = None;
                self.takeover = None;
            }
        }
        actions.extend(self.advance_commit());
        actions
    }

    /// The member at `index` asked or reported something: it is alive.
    pub fn heard_of(&mut self, index: usize, now: u64, wall: i64) {
        if let Some(peer) = self.peers.get_mut(&index) {
            peer.heard = now;
            peer.last_heartbeat_received_wall = wall;
        }
    }

    /// The member at `index` was asked, and has not answered.
    pub fn asked_in_vain(&mut self, index: usize, wall: i64) {
        if let Some(peer) = self.peers.get_mut(&index) {
            peer.last_heartbeat_wall = wall;
        }
    }

    /// Heartbeats to the member at `index` failed for the heartbeat timeout.
    pub fn lost(&mut self, index: usize, message: &str) {
        if let Some(peer) = self.peers.get_mut(&index) {
            peer.up = false;
            peer.state = MemberState::Down;
            peer.message = message.to_string();
        }
        if self.primary == Some(index) {
            self.primary = None;
        }
    }

    /// Entries were fetched through a chain that begins at a primary: it is alive.
    pub fn primary_is_alive(&mut self, now: u64, offset: f64) {
        if !self.is_leader() && !self.is_candidate() {
            self.schedule_election(now, offset);
        }
    }

    /// A position that the member at `index` (or another for it) reported.
    pub fn report(
        &mut self,
        index: usize,
        applied: OpTime,
        durable: OpTime,
        walls: (i64, i64),
        now: u64,
    ) -> Vec<Action> {
        let Some(peer) = self.peers.get_mut(&index) else { return Vec::new() };
        // A report may come by way of another member: only news of progress says that this one is alive.
        if applied > peer.applied || durable > peer.durable {
            (peer.heard, peer.reported) = (now, now);
        }
        if applied >= peer.applied {
            (peer.applied, peer.applied_wall) = (applied, walls.0);
        }
        if durable >= peer.durable {
            (peer.durable, peer.durable_wall) = (durable, walls.1);
        }
        self.advance_commit()
    }

    /// Voters that are up, this member included.
    fn voters_up(&self) -> usize {
        let Some(config) = &self.config else { return 0 };
        let members = config.members().iter().enumerate();
        members
            .filter(|(i, m)| m.votes && (Some(*i) == self.me || self.peers.get(i).is_some_and(|p| p.up)))
            .count()
    }
    fn sees_majority(&self) -> bool {
        self.config.as_ref().is_some_and(|c| self.voters_up() >= c.vote_majority())
    }
    /// Whether a majority of voters was heard of within the election timeout.
    fn hears_majority(&self, now: u64) -> bool {
        let Some(config) = &self.config else { return false };
        let timeout = config.election_timeout_ms();
        let members = config.members().iter().enumerate();
        let alive =
            |i: &usize| Some(*i) == self.me || self.peers.get(i).is_some_and(|p| p.heard + timeout > now);
        members.filter(|(i, m)| m.votes && alive(i)).count() >= config.vote_majority()
    }

    // ---- elections ----

    fn schedule_election(&mut self, now: u64, offset: f64) {
        let timeout = self.config.as_ref().map(|c| c.election_timeout_ms());
        let stands = self.state() == MemberState::Secondary && self.own().is_some_and(|m| m.is_electable());
        self.election_at = timeout
            .filter(|_| stands)
            .map(|t| now + t + (t as f64 * self.offset_fraction * offset.clamp(0.0, 1.0)) as u64);
    }

    /// A member of higher priority than the primary stands after a while that grows with its rank; one that has what the primary lacks,
    /// while that fetches it and has begun nothing of its own, after a while that the configuration says.
    fn schedule_takeover(&mut self, now: u64, offset: f64) {
        if matches!(self.takeover, Some((_, Reason::CatchUpTakeover))) && !self.is_ahead_of_primary() {
            self.takeover = None;
        }
        let Some(config) = self.config.clone() else { return };
        let (Some(own), Some(primary)) = (self.own(), self.primary.and_then(|i| config.members().get(i)))
        else {
            return;
        };
        let outranks = own.is_electable() && own.priority > primary.priority;
        let rank = config.members().iter().filter(|m| m.priority > own.priority).count() as u64;
        let delay = config.catch_up_takeover_delay_ms();
        let delay = delay.filter(|_| own.is_electable() && self.is_ahead_of_primary());
        if !outranks && matches!(self.takeover, Some((_, Reason::PriorityTakeover))) {
            self.takeover = None;
        }
        let takeover = match delay {
            Some(delay) if !outranks || rank > 0 => (now.saturating_add(delay), Reason::CatchUpTakeover),
            _ if outranks => {
                let timeout = config.election_timeout_ms();
                let jitter = (timeout as f64 * self.offset_fraction * offset.clamp(0.0, 1.0)) as u64;
                (now + (rank + 1) * timeout + jitter, Reason::PriorityTakeover)
            }
            _ => return,
        };
        self.takeover.get_or_insert(takeover);
    }

    /// Whether the primary lacks what this member has and nobody has more, and nothing of its term is known of.
    fn is_ahead_of_primary(&self) -> bool {
        let primary = self.primary.and_then(|i| self.peers.get(&i));
        let newest = self.peers.values().map(|p| p.applied).max().unwrap_or(OpTime::NONE);
        primary.is_some_and(|p| p.applied < self.applied)
            && newest <= self.applied
            && self.applied.term < self.term
    }

    /// Time has passed. To be called often: at least every tenth of the election timeout.
    pub fn tick(&mut self, now: u64, offset: f64) -> Vec<Action> {
        let Some(config) = self.config.clone() else { return Vec::new() };
        match &self.role {
            Role::Leader { .. } => {
                if config.vote_majority() > 1 && !self.hears_majority(now) {
                    return self.become_follower(now, offset);
                }
                Vec::new()
            }
            Role::Candidate { since, .. } | Role::Storing { since, .. } => {
                if now >= since + config.election_timeout_ms() {
                    self.role = Role::Follower;
                    self.schedule_election(now, offset);
                }
                Vec::new()
            }
            Role::Follower => self.tick_follower(now, offset),
        }
    }

    fn tick_follower(&mut self, now: u64, offset: f64) -> Vec<Action> {
        if self.config.as_ref().is_some_and(|c| c.members().len() == 1) && now >= self.frozen_until {
            let reason = if self.frozen_until > 0 { Reason::SingleNodeAgain } else { Reason::SingleNode };
            return self.stand(reason, now, offset).unwrap_or_default();
        }
        if let Some((_, reason)) = self.takeover.filter(|(at, _)| now >= *at) {
            self.takeover = None;
            let able = match reason {
                Reason::CatchUpTakeover => self.is_ahead_of_primary(),
                _ => self.is_fresh_enough(),
            };
            if able {
                return self.stand(reason, now, offset).unwrap_or_default();
            }
        }
        if self.election_at.is_some_and(|at| now >= at) {
            self.schedule_election(now, offset);
            return self.stand(Reason::ElectionTimeout, now, offset).unwrap_or_default();
        }
        Vec::new()
    }

    /// Within two seconds of the newest entry known of, in the same term.
    fn is_fresh_enough(&self) -> bool {
        let newest = self.peers.values().map(|p| p.applied).max().unwrap_or(OpTime::NONE);
        newest <= self.applied
            || (newest.term == self.applied.term
                && (newest.ts >> 32).saturating_sub(self.applied.ts >> 32) <= 2)
    }

    /// Begins an election.
    ///
    /// # Errors
    /// Why this member may not stand.
    pub fn stand(&mut self, reason: Reason, now: u64, offset: f64) -> Result<Vec<Action>, &'static str> {
        self.may_stand(now, reason)?;
        self.metrics.held(reason);
        self.schedule_election(now, offset);
        let alone = matches!(reason, Reason::SingleNode | Reason::SingleNodeAgain);
        if alone || reason == Reason::StepUpRequestSkipDryRun {
            return Ok(self.stand_in_earnest(reason, now));
        }
        let round = self.begin_round(true, reason, now);
        Ok(self.count_or(Action::AskVotes { round, dry: true, term: self.term }, now))
    }

    fn may_stand(&self, now: u64, reason: Reason) -> Result<(), &'static str> {
        let Some(own) = self.own() else { return Err("member is not in the configuration") };
        if self.reconfiguring {
            return Err("the configuration is being changed");
        }
        if !own.is_electable() {
            return Err(if own.arbiter { "member is an arbiter" } else { "member has zero priority" });
        }
        if self.term == i64::MAX {
            return Err("there is no higher term");
        }
        if self.is_leader() || self.is_candidate() {
            return Err("member is primary or a candidate already");
        }
        if self.state() != MemberState::Secondary {
            return Err("member is not currently a secondary");
        }
        if self.applied.is_none() && !matches!(reason, Reason::SingleNode | Reason::SingleNodeAgain) {
            return Err("member has not applied any operations");
        }
        if now < self.frozen_until && reason != Reason::StepUpRequest {
            return Err("I am still waiting for stepdown period to end or was frozen");
        }
        if !self.sees_majority() {
            return Err("I cannot see a majority");
        }
        Ok(())
    }

    fn begin_round(&mut self, dry: bool, reason: Reason, now: u64) -> u64 {
        self.rounds += 1;
        let granted: Vec<usize> = self.me.into_iter().collect();
        self.role = Role::Candidate {
            dry,
            round: self.rounds,
            answered: granted.clone(),
            granted,
            reason,
            since: now,
        };
        self.rounds
    }

    fn stand_in_earnest(&mut self, reason: Reason, now: u64) -> Vec<Action> {
        self.rounds += 1;
        self.term += 1;
        self.primary = None;
        self.role = Role::Storing { round: self.rounds, reason, since: now };
        let candidate = self.me.map_or(-1, |i| i as i64);
        self.vote = Vote { term: self.term, candidate };
        vec![Action::StoreVote(self.vote)]
    }

    /// The vote for itself is on disk.
    pub fn vote_stored(&mut self, vote: Vote, now: u64) -> Vec<Action> {
        let Role::Storing { reason, .. } = self.role else { return Vec::new() };
        if vote.term != self.term {
            return Vec::new();
        }
        let round = self.begin_round(false, reason, now);
        self.count_or(Action::AskVotes { round, dry: false, term: self.term }, now)
    }

    /// Goes on at once where this member's own voice is enough.
    fn count_or(&mut self, ask: Action, now: u64) -> Vec<Action> {
        match self.count(now) {
            decided if !decided.is_empty() => decided,
            _ => vec![ask],
        }
    }

    /// The member at `index` answered; `None`: it could not be asked.
    pub fn vote_answered(
        &mut self,
        round: u64,
        index: usize,
        answer: Option<(i64, bool)>,
        now: u64,
        offset: f64,
    ) -> Vec<Action> {
        if let Some((term, _)) = answer
            && term > self.term
        {
            return self.see_term(term, now, offset);
        }
        let Role::Candidate { round: current, granted, answered, .. } = &mut self.role else {
            return Vec::new();
        };
        if *current != round || answered.contains(&index) {
            return Vec::new();
        }
        answered.push(index);
        if answer.is_some_and(|(_, yes)| yes) {
            granted.push(index);
        }
        let decided = self.count(now);
        if decided.is_empty() && self.all_answered() {
            self.role = Role::Follower;
            self.schedule_election(now, offset);
        }
        decided
    }

    fn all_answered(&self) -> bool {
        let (Role::Candidate { answered, .. }, Some(config)) = (&self.role, &self.config) else {
            return false;
        };
        config.members().iter().enumerate().all(|(i, m)| !m.votes || answered.contains(&i))
    }

    fn count(&mut self, now: u64) -> Vec<Action> {
        let (Role::Candidate { dry, granted, reason, .. }, Some(config)) = (&self.role, &self.config) else {
            return Vec::new();
        };
        let votes = granted.iter().filter(|i| config.members().get(**i).is_some_and(|m| m.votes)).count();
        if votes < config.vote_majority() {
            return Vec::new();
        }
        let reason = *reason;
        // A primary that has caught up by now would be deposed for nothing.
        let spared = self.primary.is_some_and(|primary| !granted.contains(&primary));
        if *dry && reason == Reason::CatchUpTakeover && spared {
            return Vec::new();
        }
        if *dry {
            return self.stand_in_earnest(reason, now);
        }
        self.metrics.won(reason);
        self.role = Role::Leader { writable: false };
        self.primary = None;
        self.election_at = None;
        self.takeover = None;
        self.first_of_term = None;
        // Its liveness is counted from now: the voters have just answered.
        for peer in self.peers.values_mut().filter(|p| p.up) {
            peer.heard = peer.heard.max(now);
        }
        vec![Action::Lead { term: self.term, reason }]
    }

    /// A leader that has won an election and written nothing yet fetches from members that are ahead of it.
    pub fn begin_catch_up(&mut self) {
        self.last_catch_up = LastCatchUp::default();
        self.catching_up = self.is_leader() && self.first_of_term.is_none();
    }
    /// `operations` were fetched for it. One that had no reason to begin has none.
    pub fn end_catch_up(&mut self, how: CatchUp, operations: i64) {
        match std::mem::take(&mut self.catching_up) {
            true => self.last_catch_up.operations = Some(operations),
            false => self.last_catch_up = LastCatchUp::default(),
        }
        self.metrics.caught_up(how, operations);
    }
    /// Fetches what is ahead now: [`Member::ahead`] of a leader that catches up.
    pub fn aim_catch_up(&mut self) -> Option<usize> {
        let (index, entry) = self.ahead()?;
        self.last_catch_up.target = self.last_catch_up.target.max(Some(entry));
        Some(index)
    }
    pub fn last_catch_up(&self) -> LastCatchUp {
        self.last_catch_up
    }
    /// What became of its elections.
    pub fn metrics(&self) -> &ElectionMetrics {
        &self.metrics
    }
    pub fn is_catching_up(&self) -> bool {
        self.catching_up
    }
    /// Whether every member that is up has told how it is, asked after `since`: what is known of their positions is no older than that. One
    /// that has only asked, or voted, told no position.
    pub fn knows_positions_since(&self, since: u64) -> bool {
        self.peers.values().all(|p| !p.up || p.asked > since)
    }
    /// The member that is up and has the newest entry, if it is ahead of this one; and that entry.
    pub fn ahead(&self) -> Option<(usize, OpTime)> {
        let config = self.config.as_ref()?;
        let bears = |i: &usize| config.members().get(*i).is_some_and(|m| m.bears_data());
        let up = self.peers.iter().filter(|(i, p)| p.up && bears(i) && p.applied > self.applied);
        up.max_by_key(|(_, p)| p.applied).map(|(i, p)| (*i, p.applied))
    }

    /// The leader of `term` has written its first entry; it takes writes from now on. False when it leads no more.
    pub fn drained(&mut self, term: i64, first: OpTime) -> bool {
        let leads = self.is_leader() && self.term == term;
        if leads {
            self.first_of_term = Some(first);
            self.role = Role::Leader { writable: true };
        }
        leads
    }
    /// Counts positions for a term whose first entry is this one, before writes are taken.
    pub fn begin_term(&mut self, first: OpTime) {
        if self.is_leader() && first.term == self.term {
            self.first_of_term = Some(first);
        }
    }

    /// Another member asks for a vote.
    pub fn asked_for_vote(
        &mut self,
        request: &VoteRequest,
        now: u64,
        offset: f64,
    ) -> (VoteAnswer, Vec<Action>) {
        // The terms of another set are not counted here.
        let of_this_set = self.config.as_ref().is_none_or(|config| config.name() == request.set);
        let actions = if of_this_set { self.see_term(request.term, now, offset) } else { Vec::new() };
        let refusal = self.refusal(request);
        let granted = refusal.is_none();
        let mut store = None;
        if granted && !request.dry {
            self.vote = Vote { term: request.term, candidate: request.candidate };
            store = Some(self.vote);
        }
        (VoteAnswer { term: self.term, granted, reason: refusal.unwrap_or_default(), store }, actions)
    }

    fn refusal(&self, request: &VoteRequest) -> Option<String> {
        let Some(config) = &self.config else { return Some("no configuration".to_string()) };
        if request.set != config.name() {
            return Some(format!(
                "candidate's set name ({}) differs from mine ({})",
                request.set,
                config.name()
            ));
        }
        let ours = self.config_version();
        if request.config != ours && !(ours.0 == -1 || request.config.0 == -1) || request.config.1 != ours.1 {
            return Some(format!(
                "candidate's config with {{version: {}, term: {}}} differs from mine with {{version: {}, term: {}}}",
                request.config.1, request.config.0, ours.1, ours.0
            ));
        }
        if request.term < self.term {
            return Some(format!("candidate's term ({}) is lower than mine ({})", request.term, self.term));
        }
        if self.is_beyond(request.term) {
            return Some(format!(
                "candidate's term ({}) is too far ahead of mine ({})",
                request.term, self.term
            ));
        }
        if request.applied < self.applied.max(self.floor) {
            return Some(format!(
                "candidate's data is staler than mine. candidate's last applied OpTime: {:?}, my last applied OpTime: {:?}",
                request.applied, self.applied
            ));
        }
        if !request.dry && self.vote.term >= request.term {
            return Some(format!(
                "already voted for another candidate ({}) this term ({})",
                self.vote.candidate, self.vote.term
            ));
        }
        self.arbiter_refuses(request)
    }

    /// An arbiter that sees a healthy primary of at least the candidate's priority.
    fn arbiter_refuses(&self, request: &VoteRequest) -> Option<String> {
        let (own, config) = (self.own()?, self.config.as_ref()?);
        let candidate = config.members().get(usize::try_from(request.candidate).ok()?)?;
        let better = self.peers.iter().find(|(i, p)| {
            p.up && p.state == MemberState::Primary && config.members()[**i].priority >= candidate.priority
        });
        let (index, _) = better.filter(|_| own.arbiter)?;
        let host = &config.members()[*index].host;
        Some(format!("can see a healthy primary ({host}) of equal or greater priority"))
    }

    // ---- commands ----

    /// `replSetFreeze`, and the time after a step-down. So many seconds that they have no end last forever.
    pub fn freeze(&mut self, now: u64, seconds: u64) {
        self.frozen_until = self.frozen_until.max(now.saturating_add(seconds.saturating_mul(1000)));
    }
    pub fn unfreeze(&mut self) {
        self.frozen_until = self.frozen_until.min(1);
    }
    /// A step-down of the leader of `term` waits for a secondary: writes stop. One that leads no more has nothing to wait for.
    pub fn begin_step_down(&mut self, term: i64) {
        self.stepping_down = self.is_leader() && self.term == term;
    }
    pub fn cancel_step_down(&mut self) {
        self.stepping_down = false;
    }
    /// As [`Member::step_down`], and this member does not stand for an election timeout, so that another can.
    pub fn step_aside(&mut self, now: u64, offset: f64) -> Vec<Action> {
        let pause_ms = self.config.as_ref().map_or(0, |c| c.election_timeout_ms());
        self.freeze(now, pause_ms.div_ceil(1000));
        self.step_down(now, offset)
    }
    /// Steps down now.
    pub fn step_down(&mut self, now: u64, offset: f64) -> Vec<Action> {
        self.become_follower(now, offset)
    }
    /// Whether a majority has the leader's last entry and one of them can be elected: who, by priority.
    pub fn successor(&self) -> Option<usize> {
        let config = self.config.as_ref()?;
        let caught_up = |i: &usize| self.peers.get(i).is_some_and(|p| p.up && p.applied >= self.applied);
        let members = 0..config.members().len();
        let with_entry =
            members.clone().filter(|i| config.members()[*i].votes && config.members()[*i].bears_data());
        if with_entry.filter(|i| Some(*i) == self.me || caught_up(i)).count() < config.write_majority() {
            return None;
        }
        let electable = members.filter(|i| {
            caught_up(i)
                && config.members()[*i].is_electable()
                && self.peers.get(i).is_some_and(|p| p.state == MemberState::Secondary)
        });
        electable.max_by(|a, b| config.members()[*a].priority.total_cmp(&config.members()[*b].priority))
    }
    /// Members with data, this one included, that have the entry, counting only positions of its term.
    pub fn holders(&self, entry: OpTime, durable: bool) -> Vec<usize> {
        let Some(config) = &self.config else { return Vec::new() };
        let has = |i: usize| {
            let (applied, synced) = match Some(i) == self.me {
                true => (self.applied, self.durable),
                false => self.peers.get(&i).map_or((OpTime::NONE, OpTime::NONE), |p| (p.applied, p.durable)),
            };
            let position = if durable { synced } else { applied };
            position >= entry && position.term == entry.term
        };
        (0..config.members().len()).filter(|i| config.members()[*i].bears_data() && has(*i)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    /// A secondary of a set of one.
    fn alone() -> Member {
        let config = SetConfig::parse(&doc! { "_id": "rs", "members": [{"_id": 0, "host": "a:1"}] }).unwrap();
        let mut member = Member::new(None, OpTime::new(1, 1));
        member.install(Arc::new(config), Some(0), 1, 0.0);
        member.set_follower(MemberState::Secondary, 1, 0.0);
        member
    }

    #[test]
    fn a_term_that_no_election_has_led_to_is_not_believed() {
        let mut member = alone();
        for term in [i64::MAX, i64::MAX - 1, 1 << 62] {
            let request = VoteRequest {
                set: "rs".to_string(),
                dry: false,
                term,
                candidate: 0,
                config: (0, 1),
                applied: OpTime::new(1, 1),
            };
            let (answer, _) = member.asked_for_vote(&request, 2, 0.0);
            assert!(!answer.granted && answer.store.is_none(), "{answer:?}");
            member.see_term(term, 2, 0.0);
        }
        assert_eq!(member.term(), 1);
        member.see_term(1000, 2, 0.0);
        assert_eq!(member.term(), 1000);
        assert!(!member.tick(3, 0.0).is_empty(), "it does not stand");
    }

    #[test]
    fn a_candidate_of_another_set_is_of_no_term_here() {
        let mut member = alone();
        let request = VoteRequest {
            set: "other".to_string(),
            dry: false,
            term: 7,
            candidate: 0,
            config: (-1, 1),
            applied: OpTime::new(1, 1),
        };
        let (answer, actions) = member.asked_for_vote(&request, 2, 0.0);
        assert!(!answer.granted && answer.store.is_none() && actions.is_empty(), "{answer:?}");
        assert_eq!(member.term(), 1);
    }

    /// A second address of a member, counted, would be taken for a second copy.
    #[test]
    fn a_member_counts_under_one_address() {
        let members =
            document::array![{"_id": 0, "host": "a:1"}, {"_id": 1, "host": "b:1"}, {"_id": 2, "host": "c:1"}];
        let config = SetConfig::parse(&doc! { "_id": "rs", "members": members }).unwrap();
        let mut member = Member::new(None, OpTime::new(1, 1));
        member.install(Arc::new(config), Some(0), 1, 0.0);
        member.set_follower(MemberState::Secondary, 1, 0.0);
        let beat = Beat { id: Some(1), ..Beat::of(MemberState::Secondary, OpTime::new(1, 1)) };
        member.heard_beat(2, beat.clone(), 1, 2, 0, 0.0);
        let forwarded = member.peer(2).unwrap();
        assert!(!forwarded.up && forwarded.applied == OpTime::NONE, "{forwarded:?}");
        assert_eq!(forwarded.message, "The node at this address is the member with _id 1");
        member.heard_beat(1, beat, 1, 2, 0, 0.0);
        assert!(member.peer(1).unwrap().up);
    }

    /// A primary that catches up would go by what it knew of this one before, and roll back what was acknowledged since.
    #[test]
    fn only_an_answer_tells_a_position() {
        let mut member = ahead_of_its_primary();
        member.heard_of(1, 600, 0);
        member.heard_of(2, 600, 0);
        assert!(!member.knows_positions_since(500));
        for (asked, known) in [(499, false), (501, true)] {
            for index in [1, 2] {
                let beat = Beat { asked, term: 2, ..Beat::of(MemberState::Secondary, OpTime::new(1, 5)) };
                member.heard_beat(index, beat, 1, 601, 0, 0.0);
            }
            assert_eq!(member.knows_positions_since(500), known, "asked at {asked}");
        }
    }

    /// A leader that catches up would wait for them without end.
    #[test]
    fn entries_that_were_taken_back_are_not_looked_for() {
        let mut member = ahead_of_its_primary();
        let beat = |asked, at| Beat { asked, term: 2, ..Beat::of(MemberState::Secondary, at) };
        let [had, kept] = [OpTime::new(1, 20), OpTime::new(1, 9)];
        member.heard_beat(2, beat(590, had), 5, 600, 0, 0.0);
        assert_eq!(member.ahead(), Some((2, had)));
        member.heard_beat(2, beat(690, kept), 5, 700, 0, 0.0);
        assert_eq!((member.ahead(), member.peer(2).unwrap().durable), (None, kept));
        // The answer to a question that was asked before does not undo a report.
        member.report(2, had, had, (0, 0), 800);
        member.heard_beat(2, beat(790, kept), 5, 810, 0, 0.0);
        assert_eq!(member.ahead(), Some((2, had)));
        member.heard_beat(2, beat(815, kept), 5, 820, 0, 0.0);
        assert_eq!(member.ahead(), None);
        // Nor does one that a later answer has overtaken.
        member.heard_beat(2, beat(830, had), 5, 840, 0, 0.0);
        member.heard_beat(2, beat(825, kept), 25, 850, 0, 0.0);
        assert_eq!(member.ahead(), Some((2, had)));
    }

    #[test]
    fn the_last_term_has_no_elections() {
        let config = alone().config().cloned().unwrap();
        let mut member = Member::new(Some(Vote { term: i64::MAX, candidate: 0 }), OpTime::new(1, 1));
        member.install(config, Some(0), 1, 0.0);
        member.set_follower(MemberState::Secondary, 1, 0.0);
        assert!(member.tick(2, 0.0).is_empty());
    }

    /// Votes for what it had elect nobody when it has begun to take that back.
    #[test]
    fn a_log_that_is_taken_back_leads_no_set() {
        for state in [MemberState::Rollback, MemberState::Startup2] {
            let members = document::array![{"_id": 0, "host": "a:1"}, {"_id": 1, "host": "b:1"}];
            let config = SetConfig::parse(&doc! { "_id": "rs", "members": members }).unwrap();
            let mut member = Member::new(None, OpTime::new(1, 1));
            member.install(Arc::new(config), Some(0), 1, 0.0);
            member.set_follower(MemberState::Secondary, 1, 0.0);
            member.heard_beat(1, Beat::of(MemberState::Secondary, OpTime::new(1, 1)), 1, 1, 0, 0.0);
            let stand = |member: &mut Member| {
                let actions = member.stand(Reason::StepUpRequestSkipDryRun, 2, 0.0).unwrap();
                let [Action::StoreVote(vote)] = actions[..] else { panic!("{actions:?}") };
                let actions = member.vote_stored(vote, 2);
                let [Action::AskVotes { round, .. }] = actions[..] else { panic!("{actions:?}") };
                round
            };
            let round = stand(&mut member);
            assert!(member.set_follower(state, 3, 0.0));
            assert!(member.vote_answered(round, 1, Some((member.term(), true)), 3, 0.0).is_empty());
            assert_eq!(member.state(), state);
            member.set_follower(MemberState::Secondary, 4, 0.0);
            let round = stand(&mut member);
            let actions = member.vote_answered(round, 1, Some((member.term(), true)), 3, 0.0);
            assert!(matches!(actions[..], [Action::Lead { .. }]));
            assert!(!member.set_follower(state, 5, 0.0));
            assert_eq!(member.state(), MemberState::Primary);
        }
    }

    /// The primary of term 2 has fetched less than this member, of the term before, has.
    fn ahead_of_its_primary() -> Member {
        let members =
            document::array![{"_id": 0, "host": "a:1"}, {"_id": 1, "host": "b:1"}, {"_id": 2, "host": "c:1"}];
        let settings = doc! { "catchUpTakeoverDelayMillis": 500 };
        let config =
            SetConfig::parse(&doc! { "_id": "rs", "members": members, "settings": settings }).unwrap();
        let mut member = Member::new(None, OpTime::new(1, 10));
        member.install(Arc::new(config), Some(0), 1, 0.0);
        member.set_follower(MemberState::Secondary, 1, 0.0);
        hear_of_term_2(&mut member, 2, MemberState::Secondary, OpTime::new(1, 5));
        hear_of_term_2(&mut member, 1, MemberState::Primary, OpTime::new(1, 5));
        assert!(member.tick(500, 0.0).is_empty());
        member
    }
    fn hear_of_term_2(member: &mut Member, index: usize, state: MemberState, at: OpTime) {
        member.heard_beat(index, Beat { term: 2, ..Beat::of(state, at) }, 1, 1, 0, 0.0);
    }

    #[test]
    fn a_member_takes_over_from_a_primary_that_is_slow_at_fetching_what_it_has() {
        for primary_agrees in [true, false] {
            let mut member = ahead_of_its_primary();
            let actions = member.tick(502, 0.0);
            let [Action::AskVotes { round, dry: true, term: 2 }] = actions[..] else { panic!("{actions:?}") };
            assert!(
                member.vote_answered(round, 2, Some((2, true)), 503, 0.0).is_empty(),
                "the primary was not asked"
            );
            let actions = member.vote_answered(round, 1, Some((2, primary_agrees)), 504, 0.0);
            assert_eq!(matches!(actions[..], [Action::StoreVote(_)]), primary_agrees, "{actions:?}");
            assert_eq!(member.is_candidate(), primary_agrees);
        }
    }

    #[test]
    fn nobody_takes_over_from_a_primary_that_has_begun_its_term() {
        let mut member = ahead_of_its_primary();
        hear_of_term_2(&mut member, 2, MemberState::Secondary, OpTime::new(2, 11));
        assert!(member.tick(502, 0.0).is_empty());
        // Nor from one that has caught up.
        let mut member = ahead_of_its_primary();
        hear_of_term_2(&mut member, 1, MemberState::Primary, OpTime::new(1, 10));
        assert!(member.tick(502, 0.0).is_empty());
    }

    /// Its beat is from before it wrote what is here already.
    #[test]
    fn nobody_takes_over_from_a_primary_whose_entries_it_has() {
        let mut member = ahead_of_its_primary();
        member.progressed(OpTime::new(2, 11), OpTime::new(2, 11));
        assert!(member.tick(502, 0.0).is_empty());
    }

    /// What it had counts for those who were told of it, though it is being copied anew.
    #[test]
    fn a_candidate_is_compared_with_what_this_member_has_had() {
        let mut member = alone();
        member.set_vote_floor(OpTime::new(1, 5));
        let granted = |member: &mut Member, applied: OpTime| {
            let request = VoteRequest {
                set: "rs".to_string(),
                dry: true,
                term: 1,
                candidate: 0,
                config: (-1, 1),
                applied,
            };
            member.asked_for_vote(&request, 2, 0.0).0.granted
        };
        assert!(!granted(&mut member, OpTime::new(1, 4)));
        assert!(granted(&mut member, OpTime::new(1, 5)));
        member.set_vote_floor(OpTime::NONE);
        assert!(granted(&mut member, OpTime::new(1, 4)));
    }

    #[test]
    fn a_late_message_takes_no_position_back() {
        let mut member = ahead_of_its_primary();
        let position = |member: &Member| member.peer(2).unwrap().durable;
        hear_of_term_2(&mut member, 2, MemberState::Secondary, OpTime::new(1, 3));
        assert_eq!(position(&member), OpTime::new(1, 5), "a late message has undone a newer one");
        hear_of_term_2(&mut member, 2, MemberState::Startup2, OpTime::NONE);
        assert_eq!(position(&member), OpTime::NONE, "what is gone is counted");
    }

    /// It could be elected with the arbiter's vote.
    #[test]
    fn a_member_that_joins_one_beside_an_arbiter_has_what_is_committed() {
        let config = |votes: i32| {
            let arbiter = doc! { "_id": 1, "host": "b:1", "arbiterOnly": true };
            let joins = doc! { "_id": 2, "host": "c:1", "votes": votes, "priority": votes };
            let members = document::array![{"_id": 0, "host": "a:1"}, arbiter, joins];
            Arc::new(
                SetConfig::parse(&doc! { "_id": "rs", "version": votes + 1, "members": members }).unwrap(),
            )
        };
        let t = |ts| OpTime::new(1, ts);
        let mut member = Member::new(None, t(1));
        member.install(config(0), Some(0), 1, 0.0);
        member.set_follower(MemberState::Secondary, 1, 0.0);
        let hear = |member: &mut Member, index: usize, state: MemberState, at: OpTime| {
            member.heard_beat(index, Beat::of(state, at), 1, 1, 0, 0.0)
        };
        hear(&mut member, 1, MemberState::Arbiter, OpTime::NONE);
        hear(&mut member, 2, MemberState::Secondary, t(1));
        let actions = member.stand(Reason::StepUpRequestSkipDryRun, 2, 0.0).unwrap();
        let [Action::StoreVote(vote)] = actions[..] else { panic!("{actions:?}") };
        let actions = member.vote_stored(vote, 2);
        let [Action::AskVotes { round, term, .. }] = actions[..] else { panic!("{actions:?}") };
        member.vote_answered(round, 1, Some((term, true)), 3, 0.0);
        let t = |ts| OpTime::new(term, ts);
        assert!(member.drained(term, t(2)));
        assert_eq!(member.progressed(t(3), t(3)), [Action::Commit(t(3))]);

        member.set_next(Some(config(1)));
        assert!(!member.next_has(&config(1), t(3)));
        assert!(member.progressed(t(4), t(4)).is_empty(), "committed by one that the next has two of");
        hear(&mut member, 2, MemberState::Secondary, t(3));
        assert!(member.next_has(&config(1), t(3)));
        assert!(member.progressed(t(5), t(5)).is_empty());
        assert_eq!(hear(&mut member, 2, MemberState::Secondary, t(4)), [Action::Commit(t(4))]);
        member.set_next(None);
        assert_eq!(member.progressed(t(6), t(6)), [Action::Commit(t(6))]);
    }

    /// The next reign would take no writes.
    #[test]
    fn a_step_down_that_begins_when_its_reign_is_over_waits_for_nobody() {
        let mut member = alone();
        let lead = |member: &mut Member| {
            let actions = member.tick(2, 0.0);
            let [Action::StoreVote(vote)] = actions[..] else { panic!("{actions:?}") };
            assert!(matches!(member.vote_stored(vote, 2)[..], [Action::Lead { .. }]));
            assert!(member.drained(member.term(), OpTime::new(member.term(), 2)));
            member.term()
        };
        let term = lead(&mut member);
        member.see_term(term + 1, 3, 0.0);
        member.begin_step_down(term);
        lead(&mut member);
        assert!(member.is_writable());
        member.begin_step_down(member.term());
        assert!(!member.is_writable());
    }

    #[test]
    fn a_freeze_without_end_is_one() {
        let mut member = alone();
        member.freeze(5, u64::MAX);
        assert!(member.tick(u64::MAX / 2, 0.0).is_empty());
        member.unfreeze();
        assert!(!member.tick(6, 0.0).is_empty());
    }
}
