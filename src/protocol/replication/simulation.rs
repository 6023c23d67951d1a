//! Sets of members over a simulated network, from a seed: messages are delayed, reordered and lost, links are cut, members
//! crash and come back with what was durable, and their clocks are apart and go at rates of their own. In some worlds leaders change the
//! configuration, a voter at a time. At every event the invariants of the protocol are checked:
//!
//! ```text
//! election safety       a term has one leader
//! leader completeness   a leader has all that is committed when it begins
//! log matching          what comes before an entry is the same in every log that has it
//! commit points         one history is committed, and no member's commit point falls while it is up
//! configurations        a member never goes back to an older one
//! ```
//!
//! The driver here is small and plays the part of `node::replication`: it keeps a log of optimes, fetches, rolls back to the
//! common point, and stores votes. Faulty drivers, and a faulty member, show that the invariants can fail.

use super::OpTime;
use super::config::SetConfig;
use super::member::{Action, Beat, Faults, Member, MemberState, Reason, Vote, VoteRequest};
use document::{Document, Value, doc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A driver's fault.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// A crash loses the stored vote.
    ForgetsVotes,
    /// Reports entries as durable that a crash can still take.
    ReportsTooEarly,
    /// Reports positions without the reporter's term: a leader of an earlier one counts them.
    HidesTerms,
    /// Leaders commit entries of earlier terms by counting who has them.
    CommitsOlderTerms,
    /// Leaders commit by fewer than can elect while others elect by the configuration before.
    CountsThinMajorities,
    /// Leaders change several voters at once.
    ChangesManyVoters,
    /// Leaders change the configuration before a majority holds the one before, and what is written under it.
    ChangesTooEarly,
    /// Followers append what a source sends behind what they have, where the two logs differ too.
    AppendsAnywhere,
    /// Members take the commit point that they heard last.
    BelievesAnyCommitPoint,
    /// Members take the configuration that they heard last.
    TakesOlderConfigs,
}

/// How the configuration changes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Changes {
    Never,
    /// Voters come and go among five hosts, three of which begin.
    Voters,
    /// Of two members with data and an arbiter, one with data is removed.
    BesideArbiter,
}

struct Random(u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n.max(1)
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
    fn fraction(&mut self) -> f64 {
        self.below(1000) as f64 / 1000.0
    }
}

#[derive(Clone, Debug)]
enum Message {
    /// With the sender's configuration, by term and version, and when it asks.
    Beat((i64, i64), u64),
    BeatBack(Box<Beat>, OpTime, Arc<SetConfig>),
    Vote(u64, VoteRequest),
    VoteBack(u64, i64, bool),
    Fetch(OpTime),
    Entries(Entries),
    Report(OpTime, OpTime, i64),
}

/// What a source answers: what follows the newest entry that both have.
#[derive(Clone, Debug)]
struct Entries {
    asked: OpTime,
    common: OpTime,
    entries: Vec<OpTime>,
    commit: OpTime,
    term: i64,
}

struct Host {
    member: Member,
    log: Vec<OpTime>,
    durable: usize,
    vote: Option<Vote>,
    config: Arc<SetConfig>,
    /// What is to be committed before this leader changes the configuration.
    awaited: Option<OpTime>,
    up: bool,
    /// The commit point that the member was seen to have, since it started.
    seen: OpTime,
    /// How far its clock is ahead, in milliseconds, and how many thousandths it shows of a second.
    clock: (u64, u64),
}

impl Host {
    fn index_of(&self, host: usize) -> Option<usize> {
        self.config.index_of_id(host as i64)
    }
    fn host_at(&self, index: usize) -> usize {
        self.config.members()[index].id as usize
    }
    fn config_version(&self) -> (i64, i64) {
        (self.config.term(), self.config.version())
    }
    /// What its clock shows.
    fn time(&self, now: u64) -> u64 {
        self.clock.0 + now * self.clock.1 / 1000
    }
    fn last(&self) -> OpTime {
        self.log.last().copied().unwrap_or(OpTime::NONE)
    }
    fn durable(&self) -> OpTime {
        self.durable.checked_sub(1).map_or(OpTime::NONE, |i| self.log[i])
    }
}

/// A member's part in a fault.
fn member_faults(fault: Fault) -> Faults {
    Faults {
        commits_older_terms: fault == Fault::CommitsOlderTerms,
        counts_thin_majorities: fault == Fault::CountsThinMajorities,
        believes_any_commit_point: fault == Fault::BelievesAnyCommitPoint,
    }
}

/// The first configuration that consists of these hosts, all of them voters.
fn config_of(hosts: impl IntoIterator<Item = usize>, arbiter: Option<usize>) -> SetConfig {
    let member = |i: usize| {
        let is_arbiter = Some(i) == arbiter;
        let priority = i32::from(!is_arbiter);
        let host = format!("h{i}:1");
        Value::from(doc! { "_id": i as i32, "host": host, "priority": priority, "arbiterOnly": is_arbiter })
    };
    let members = Value::Array(hosts.into_iter().map(member).collect());
    let given: Document = doc! { "_id": "rs", "term": 0i64, "members": members, "settings": { "electionTimeoutMillis": TIMEOUT as i32 } };
    SetConfig::parse(&given).expect("a valid configuration")
}

struct World {
    random: Random,
    fault: Fault,
    changes: Changes,
    now: u64,
    hosts: Vec<Host>,
    messages: BTreeMap<(u64, u64), (usize, usize, Message)>,
    sent: u64,
    cut: BTreeSet<(usize, usize)>,
    leaders: BTreeMap<i64, usize>,
    /// The committed history, as the leaders that committed it had it.
    committed: Vec<OpTime>,
    /// What comes before each entry that there is.
    before: BTreeMap<OpTime, OpTime>,
    clock: u64,
}

const TIMEOUT: u64 = 1000;
const LAG_MAX_SECS: u64 = 30;

impl World {
    fn new(seed: u64, n: usize, fault: Fault, changes: Changes) -> World {
        let arbiter = (changes == Changes::BesideArbiter).then_some(2);
        let begins = if changes == Changes::Voters { 3 } else { n };
        let config = Arc::new(config_of(0..begins, arbiter));
        let first = OpTime::new(0, 1);
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let hosts = (0..n).map(|i| {
            let clock = (random.below(3_600_000), 950 + random.below(100));
            let mut member = Member::new(None, first);
            member.set_faults(member_faults(fault));
            member.install(config.clone(), config.index_of_id(i as i64), clock.0, 0.5);
            member.set_follower(MemberState::Secondary, clock.0, 0.1 * i as f64);
            Host {
                member,
                log: vec![first],
                durable: 1,
                vote: None,
                config: config.clone(),
                awaited: None,
                up: true,
                seen: OpTime::NONE,
                clock,
            }
        });
        let hosts = hosts.collect();
        World {
            random,
            fault,
            changes,
            now: 1,
            hosts,
            messages: BTreeMap::new(),
            sent: 0,
            cut: BTreeSet::new(),
            leaders: BTreeMap::new(),
            committed: vec![first],
            before: BTreeMap::new(),
            clock: 1,
        }
    }

    fn time(&self, i: usize) -> u64 {
        self.hosts[i].time(self.now)
    }

    /// What a member has done is compared with what it had done before.
    fn check_member(&mut self, i: usize) -> Result<(), String> {
        let host = &mut self.hosts[i];
        let commit = host.member.committed();
        if commit < host.seen {
            return Err(format!("member {i}'s commit point fell from {:?} to {commit:?}", host.seen));
        }
        host.seen = commit;
        Ok(())
    }

    /// Notes what comes before the entries from `from` on in a host's log.
    fn check_log(&mut self, i: usize, from: usize) -> Result<(), String> {
        for pair in self.hosts[i].log[from.saturating_sub(1)..].windows(2) {
            let known = *self.before.entry(pair[1]).or_insert(pair[0]);
            if known != pair[0] {
                return Err(format!(
                    "member {i} has {:?} before {:?}, others have {known:?}",
                    pair[0], pair[1]
                ));
            }
        }
        Ok(())
    }

    fn send(&mut self, from: usize, to: usize, message: Message) {
        if self.random.one_in(25) {
            return;
        }
        let longest = if self.random.one_in(20) { 1500 } else { 60 };
        let delay = 1 + self.random.below(longest);
        self.sent += 1;
        self.messages.insert((self.now + delay, self.sent), (from, to, message));
    }

    fn beat_of(&self, i: usize) -> Beat {
        let host = &self.hosts[i];
        Beat {
            term: host.member.term(),
            config: Some(host.config_version()),
            durable: host.durable(),
            ..Beat::of(host.member.state(), host.last())
        }
    }

    fn perform(&mut self, i: usize, actions: Vec<Action>) -> Result<(), String> {
        for action in actions {
            match action {
                Action::StoreVote(vote) => {
                    self.hosts[i].vote = Some(vote);
                    let now = self.time(i);
                    let more = self.hosts[i].member.vote_stored(vote, now);
                    self.perform(i, more)?;
                }
                Action::AskVotes { round, dry, term } => {
                    let host = &self.hosts[i];
                    let request = VoteRequest {
                        set: "rs".to_string(),
                        dry,
                        term,
                        candidate: host.index_of(i).map_or(-1, |index| index as i64),
                        config: host.config_version(),
                        applied: host.last(),
                    };
                    for to in self.others(i) {
                        self.send(i, to, Message::Vote(round, request.clone()));
                    }
                }
                Action::Lead { term, .. } => self.lead(i, term)?,
                Action::StepDown => {}
                Action::Commit(point) => self.commit(i, point)?,
            }
        }
        Ok(())
    }

    /// The other hosts in the configuration of one.
    fn others(&self, i: usize) -> Vec<usize> {
        let ids = self.hosts[i].config.members().iter().map(|m| m.id as usize);
        ids.filter(|other| *other != i).collect()
    }

    fn install(&mut self, i: usize, config: Arc<SetConfig>) -> Result<(), String> {
        let (now, offset) = (self.time(i), self.random.fraction());
        let host = &mut self.hosts[i];
        if super::config::newer(host.config_version(), (config.term(), config.version())) {
            return Err(format!("member {i} goes back to configuration {}", config.version()));
        }
        host.config = config.clone();
        let actions = host.member.install(config, host.index_of(i), now, offset);
        self.perform(i, actions)
    }

    /// A leader proposes a configuration with a voter more or less.
    fn change_config(&mut self, i: usize) -> Result<(), String> {
        let host = &self.hosts[i];
        let version = Some(host.config_version());
        let holds = |index: &usize| {
            Some(*index) == host.member.me() || host.member.peer(*index).is_some_and(|p| p.config == version)
        };
        let held = (0..host.config.members().len()).filter(holds).count() >= host.config.vote_majority();
        let (committed, last) = (host.member.committed(), host.last());
        let awaited = *self.hosts[i].awaited.get_or_insert(last);
        let host = &self.hosts[i];
        let settled = held && committed >= awaited && committed.term == host.member.term();
        if !settled && self.fault != Fault::ChangesTooEarly {
            return Ok(());
        }
        let arbiter = (self.changes == Changes::BesideArbiter).then_some(2);
        let mut ids: BTreeSet<usize> = host.config.members().iter().map(|m| m.id as usize).collect();
        let (term, version) = (host.member.term(), host.config.version() + 1);
        let many = if self.fault == Fault::ChangesManyVoters { 4 } else { 1 };
        for _ in 0..many {
            let other = self.random.below(self.hosts.len() as u64) as usize;
            let goes = other != i && Some(other) != arbiter && ids.len() > 2;
            match ids.contains(&other) {
                true if goes => drop(ids.remove(&other)),
                false if arbiter.is_none() => drop(ids.insert(other)),
                _ => {}
            }
        }
        let mut next = config_of(ids, arbiter);
        next.set_term(term);
        next.set_version(version);
        if many == 1 && next.follow(&self.hosts[i].config, false).is_err() {
            return Ok(());
        }
        self.hosts[i].awaited = None;
        // Writes go on while the set is asked.
        self.append(i, term)?;
        // Who hears of a configuration, and who does not, is what matters.
        if self.random.one_in(2) {
            self.split();
        }
        self.install(i, Arc::new(next))
    }

    fn lead(&mut self, i: usize, term: i64) -> Result<(), String> {
        if let Some(other) = self.leaders.insert(term, i)
            && other != i
        {
            return Err(format!("two leaders in term {term}: {other} and {i}"));
        }
        let log = &self.hosts[i].log;
        if log.get(..self.committed.len()) != Some(&self.committed[..]) {
            return Err(format!("leader {i} of term {term} lacks committed entries"));
        }
        if self.changes != Changes::Never {
            let mut config = (*self.hosts[i].config).clone();
            config.set_term(term);
            self.install(i, Arc::new(config))?;
        }
        self.hosts[i].awaited = None;
        let first = self.append(i, term)?;
        self.hosts[i].member.drained(term, first);
        self.progress(i)
    }

    fn append(&mut self, i: usize, term: i64) -> Result<OpTime, String> {
        // Clocks of members differ: a time is only above the member's own last one.
        self.clock += self.random.below(3);
        let ts = self.hosts[i].last().ts.max(self.clock.saturating_sub(self.random.below(20))) + 1;
        let entry = OpTime::new(term, ts);
        self.hosts[i].log.push(entry);
        self.check_log(i, self.hosts[i].log.len() - 1)?;
        Ok(entry)
    }

    fn commit(&mut self, i: usize, point: OpTime) -> Result<(), String> {
        let host = &self.hosts[i];
        // An arbiter has no entries, and believes what it hears.
        if host.member.own().is_some_and(|m| m.arbiter) && self.committed.contains(&point) {
            return Ok(());
        }
        let Some(at) = host.log.iter().position(|e| *e == point) else {
            return Err(format!("member {i} holds {point:?} for committed and does not have it"));
        };
        let prefix = &host.log[..=at];
        let shared = prefix.len().min(self.committed.len());
        if prefix[..shared] != self.committed[..shared] {
            return Err(format!("member {i} committed another history at {point:?}"));
        }
        if prefix.len() > self.committed.len() {
            if !host.member.is_leader() {
                return Err(format!("member {i} learned a commit point that no leader announced"));
            }
            self.committed = prefix.to_vec();
        }
        Ok(())
    }

    fn progress(&mut self, i: usize) -> Result<(), String> {
        let host = &mut self.hosts[i];
        let durable = if self.fault == Fault::ReportsTooEarly { host.last() } else { host.durable() };
        let actions = host.member.progressed(host.last(), durable);
        self.perform(i, actions)
    }

    fn receive(&mut self, from: usize, to: usize, message: Message) -> Result<(), String> {
        let (now, offset) = (self.time(to), self.random.fraction());
        match message {
            Message::Beat(config, asked) => self.answer_beat(from, to, config, asked),
            Message::BeatBack(beat, commit, config) => {
                let mut beat = *beat;
                if self.fault == Fault::ReportsTooEarly {
                    beat.durable = beat.applied;
                }
                if let Some(index) = self.hosts[to].index_of(from) {
                    let member = &mut self.hosts[to].member;
                    let mut actions = member.heard_beat(index, beat, 1, now, 0, offset);
                    actions.extend(member.learn_commit_from_heartbeat(commit));
                    self.perform(to, actions)?;
                }
                let host = &self.hosts[to];
                let follows = config.is_newer_than(&host.config) || self.fault == Fault::TakesOlderConfigs;
                if follows && !host.member.is_candidate() {
                    self.install(to, config)?;
                }
            }
            Message::Vote(round, request) => {
                let (answer, actions) = self.hosts[to].member.asked_for_vote(&request, now, offset);
                if answer.store.is_some() {
                    self.hosts[to].vote = answer.store;
                }
                self.perform(to, actions)?;
                self.send(to, from, Message::VoteBack(round, answer.term, answer.granted));
                if answer.store.is_some() && self.fault == Fault::ForgetsVotes && self.random.one_in(2) {
                    self.crash(to);
                    self.hosts[to].up = true;
                }
            }
            Message::VoteBack(round, term, granted) => {
                let host = &mut self.hosts[to];
                let index = host.index_of(from);
                let answered =
                    index.map(|i| host.member.vote_answered(round, i, Some((term, granted)), now, offset));
                self.perform(to, answered.unwrap_or_default())?;
            }
            Message::Fetch(last) => self.serve_fetch(from, to, last),
            Message::Entries(entries) => self.take_entries(from, to, entries, offset)?,
            Message::Report(applied, durable, term) => {
                let host = &mut self.hosts[to];
                let mut actions = host.member.see_term(term, now, offset);
                if let Some(index) = host.index_of(from) {
                    actions.extend(host.member.report(index, applied, durable, (0, 0), now));
                }
                self.perform(to, actions)?;
            }
        }
        Ok(())
    }

    /// A host that is in no line of its configuration asks, and says nothing.
    fn answer_beat(&mut self, from: usize, to: usize, config: (i64, i64), asked: u64) {
        let now = self.time(to);
        let host = &mut self.hosts[to];
        if let Some(index) = host.index_of(from) {
            host.member.heard_of(index, now, 0);
        }
        let (ours, is_member) = (host.config_version(), host.member.me().is_some());
        if super::config::newer(config, ours) {
            self.send(to, from, Message::Beat(ours, now));
        }
        if is_member {
            let host = &self.hosts[to];
            let (commit, config) = (host.member.committed(), host.config.clone());
            let beat = Box::new(Beat { asked, ..self.beat_of(to) });
            self.send(to, from, Message::BeatBack(beat, commit, config));
        }
    }

    /// The source `to` is asked what follows `last`.
    fn serve_fetch(&mut self, from: usize, to: usize, last: OpTime) {
        let host = &self.hosts[to];
        let (commit, term) = (host.member.committed(), host.member.term());
        // The newest entry that both have, found by the simulated driver in one step.
        let (common, entries) = match host.log.iter().position(|e| *e == last) {
            Some(at) => (last, host.log[at + 1..].iter().take(3).copied().collect()),
            None => {
                let asker = &self.hosts[from].log;
                let shared = host.log.iter().zip(asker).take_while(|(a, b)| a == b).count();
                (host.log[shared - 1], host.log[shared..].to_vec())
            }
        };
        self.send(to, from, Message::Entries(Entries { asked: last, common, entries, commit, term }));
    }

    fn take_entries(&mut self, from: usize, to: usize, answer: Entries, offset: f64) -> Result<(), String> {
        let Entries { asked, common, entries, commit, term } = answer;
        let now = self.time(to);
        let host = &mut self.hosts[to];
        let mut actions = host.member.see_term(term, now, offset);
        // An answer to an earlier question says nothing of what this member has by now, and a source that is not
        // ahead is none.
        let ahead = entries.last().is_some_and(|e| *e > host.last());
        if !host.member.is_leader() && ahead && asked == host.last() {
            let Some(at) = host.log.iter().position(|e| *e == common) else {
                return self.perform(to, actions);
            };
            if common < host.member.committed() {
                return Err(format!("member {to} knows what it rolls back to {common:?} to be committed"));
            }
            if self.fault != Fault::AppendsAnywhere {
                host.log.truncate(at + 1);
            }
            host.durable = host.durable.min(at + 1);
            let from = host.log.len();
            host.log.extend(entries);
            host.member.primary_is_alive(now, offset);
            actions.extend(host.member.progressed(host.last(), host.durable()));
            actions.extend(host.member.learn_commit_from_source(commit, host.last()));
            self.check_log(to, from)?;
            self.check_held()?;
        }
        self.perform(to, actions)?;
        let host = &self.hosts[to];
        let durable = if self.fault == Fault::ReportsTooEarly { host.last() } else { host.durable() };
        let term = if self.fault == Fault::HidesTerms { 0 } else { host.member.term() };
        let report = Message::Report(host.last(), durable, term);
        self.send(to, from, report);
        Ok(())
    }

    /// A majority has all that is committed, durably. One of the others may roll back some of it that it does not know to be
    /// committed, for a late reply of an earlier leader: it is not counted.
    fn check_held(&self) -> Result<(), String> {
        // Of which hosts, depends on the configuration. What its leaders have tells there.
        if self.changes != Changes::Never {
            return Ok(());
        }
        let holds = |h: &&Host| h.log[..h.durable].starts_with(&self.committed);
        match 2 * self.hosts.iter().filter(holds).count() > self.hosts.len() {
            true => Ok(()),
            false => Err(format!("no majority has the {} committed entries any more", self.committed.len())),
        }
    }

    fn crash(&mut self, i: usize) {
        let host = &mut self.hosts[i];
        host.up = false;
        host.log.truncate(host.durable.max(1));
        host.durable = host.log.len();
        if self.fault == Fault::ForgetsVotes {
            host.vote = None;
        }
        let mut member = Member::new(host.vote, host.last());
        let offset = self.random.fraction();
        let now = self.time(i);
        let host = &mut self.hosts[i];
        member.set_faults(member_faults(self.fault));
        member.install(host.config.clone(), host.index_of(i), now, offset);
        member.set_follower(MemberState::Secondary, now, offset);
        host.member = member;
        host.seen = OpTime::NONE;
    }

    /// What members do by themselves, at some millisecond.
    fn tick(&mut self, i: usize) -> Result<(), String> {
        let (now, offset) = (self.time(i), self.random.fraction());
        if self.changes != Changes::Never {
            // An arbiter votes for nobody while it sees a primary.
            let member = &mut self.hosts[i].member;
            let silent = |p: &super::member::Peer| p.up && p.heard + TIMEOUT < now;
            let lost: Vec<usize> =
                member.peers().filter(|(_, p)| silent(p)).map(|(index, _)| index).collect();
            lost.into_iter().for_each(|index| member.lost(index, "silent"));
        }
        let actions = self.hosts[i].member.tick(now, offset);
        self.perform(i, actions)?;
        if self.random.one_in(8) {
            let config = self.hosts[i].config_version();
            for to in self.others(i) {
                self.send(i, to, Message::Beat(config, now));
            }
        }
        if self.random.one_in(3) {
            self.hosts[i].durable = self.hosts[i].log.len();
            self.progress(i)?;
        }
        if self.hosts[i].member.is_writable() && self.random.one_in(3) {
            let term = self.hosts[i].member.term();
            self.append(i, term)?;
            self.progress(i)?;
        }
        if self.changes != Changes::Never && self.hosts[i].member.is_writable() && self.random.one_in(10) {
            self.change_config(i)?;
        }
        let bears_data = self.hosts[i].member.own().is_some_and(|m| m.bears_data());
        if self.random.one_in(2)
            && bears_data
            && !self.hosts[i].member.is_leader()
            && let Some(source) =
                super::source::choose(&self.hosts[i].member, self.hosts[i].last(), &[], LAG_MAX_SECS)
        {
            let last = self.hosts[i].last();
            self.send(i, self.hosts[i].host_at(source), Message::Fetch(last));
        }
        // Some of the faults show where elections follow one another closely.
        let often = match self.fault {
            Fault::ForgetsVotes | Fault::CommitsOlderTerms => 40,
            _ if self.changes != Changes::Never => 80,
            _ => 400,
        };
        if self.random.one_in(often) {
            let actions = self.hosts[i].member.stand(Reason::StepUpRequest, now, offset).unwrap_or_default();
            self.perform(i, actions)?;
        }
        Ok(())
    }

    fn disturb(&mut self) {
        let n = self.hosts.len() as u64;
        let (a, b) = (self.random.below(n) as usize, self.random.below(n) as usize);
        let kinds = if self.changes == Changes::Never { 6 } else { 9 };
        match self.random.below(kinds) {
            0 => drop(self.cut.insert((a, b))),
            1 => {
                (0..n as usize).for_each(|other| {
                    self.cut.insert((a, other));
                    self.cut.insert((other, a));
                });
            }
            2 | 3 => self.cut.clear(),
            4 if self.hosts[a].up => self.crash(a),
            6..9 => self.split(),
            _ => self.hosts.iter_mut().for_each(|h| h.up = true),
        }
    }

    /// Cuts the hosts into two groups.
    fn split(&mut self) {
        let side: Vec<bool> = self.hosts.iter().map(|_| self.random.one_in(2)).collect();
        let pairs = (0..side.len()).flat_map(|a| (0..side.len()).map(move |b| (a, b)));
        self.cut = pairs.filter(|(a, b)| side[*a] != side[*b]).collect();
    }

    fn run(&mut self, steps: u64) -> Result<(), String> {
        for step in 0..steps {
            self.now += 10 + self.random.below(20);
            // The last third is quiet, so that the set can come to rest.
            let rarely = if self.changes == Changes::Never { 25 } else { 100 };
            if step * 3 < steps * 2 && self.random.one_in(rarely) {
                self.disturb();
            } else if step * 3 >= steps * 2 {
                self.cut.clear();
                self.hosts.iter_mut().for_each(|h| h.up = true);
            }
            while let Some((&key, _)) = self.messages.first_key_value()
                && key.0 <= self.now
            {
                let Some((from, to, message)) = self.messages.remove(&key) else { break };
                if self.hosts[to].up && self.hosts[from].up && !self.cut.contains(&(from, to)) {
                    self.receive(from, to, message)?;
                    self.check_member(to)?;
                }
            }
            for i in 0..self.hosts.len() {
                if self.hosts[i].up {
                    self.tick(i)?;
                    self.check_member(i)?;
                }
            }
        }
        Ok(())
    }
}

fn simulate(seed: u64, fault: Fault) -> Result<(usize, usize), String> {
    let n = if seed.is_multiple_of(2) { 3 } else { 5 };
    simulate_in(World::new(seed, n, fault, Changes::Never))
}

/// The same while leaders change the configuration.
fn simulate_changes(seed: u64, fault: Fault) -> Result<(usize, usize), String> {
    simulate_in(World::new(seed, 5, fault, Changes::Voters))
}

fn simulate_beside_arbiter(seed: u64, fault: Fault) -> Result<(usize, usize), String> {
    simulate_in(World::new(seed, 3, fault, Changes::BesideArbiter))
}

fn simulate_in(mut world: World) -> Result<(usize, usize), String> {
    world.run(1200)?;
    Ok((world.committed.len(), world.leaders.len()))
}

/// How many seeds are tried: `TESSERA_PROTOCOL_SEEDS`, or 200.
fn seeds() -> u64 {
    std::env::var("TESSERA_PROTOCOL_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

#[test]
fn histories_agree_whatever_the_network_does() {
    let (mut committed, mut leaders) = (0, 0);
    for seed in 1..=seeds() {
        let (entries, terms) = simulate(seed, Fault::None).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert!(entries > 5, "seed {seed}: only {entries} entries were committed");
        committed += entries;
        leaders += terms;
    }
    let seeds = seeds() as usize;
    assert!(committed > 40 * seeds && leaders > seeds, "{committed} entries, {leaders} leaders");
}

/// Whether a fault shows in one of the seeds, by the invariant whose breach these words tell.
fn is_broken_by<T>(words: &str, simulate: impl Fn(u64) -> Result<T, String>) -> bool {
    (1..=400).any(|seed| simulate(seed).is_err_and(|error| error.contains(words)))
}

/// Whether a fault shows in one of the seeds.
fn is_broken<T, E>(simulate: impl Fn(u64) -> Result<T, E>) -> bool {
    (1..=400).any(|seed| simulate(seed).is_err())
}

#[test]
fn a_member_that_forgets_its_vote_makes_two_leaders() {
    assert!(is_broken_by("two leaders", |seed| simulate(seed, Fault::ForgetsVotes)));
}

#[test]
fn positions_without_a_term_commit_what_another_leader_lacks() {
    assert!(is_broken(|seed| simulate(seed, Fault::HidesTerms)));
}

#[test]
fn entries_of_earlier_terms_that_are_counted_are_lost() {
    assert!(is_broken(|seed| simulate(seed, Fault::CommitsOlderTerms)));
}

#[test]
fn positions_reported_before_they_are_durable_lose_committed_entries() {
    assert!(is_broken(|seed| simulate(seed, Fault::ReportsTooEarly)));
}

#[test]
fn histories_agree_while_voters_come_and_go() {
    let mut committed = 0;
    for seed in 1..=seeds() {
        let (entries, _) = simulate_changes(seed, Fault::None).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        committed += entries;
    }
    assert!(committed as u64 > 40 * seeds(), "{committed} entries");
}

#[test]
fn histories_agree_where_a_member_beside_an_arbiter_is_removed() {
    let mut committed = 0;
    for seed in 1..=seeds() {
        let outcome = simulate_beside_arbiter(seed, Fault::None);
        let (entries, _) = outcome.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        committed += entries;
    }
    assert!(committed as u64 > 40 * seeds(), "{committed} entries");
}

#[test]
fn a_leader_alone_with_an_arbiter_that_counts_at_once_loses_what_it_committed() {
    assert!(is_broken(|seed| simulate_beside_arbiter(seed, Fault::CountsThinMajorities)));
}

#[test]
fn voters_that_change_together_make_majorities_that_do_not_meet() {
    assert!(is_broken(|seed| simulate_changes(seed, Fault::ChangesManyVoters)));
}

#[test]
fn configurations_that_follow_one_another_too_early_make_majorities_that_do_not_meet() {
    assert!(is_broken(|seed| simulate_changes(seed, Fault::ChangesTooEarly)));
}

#[test]
fn entries_that_are_appended_anywhere_have_different_pasts() {
    assert!(is_broken_by("others have", |seed| simulate(seed, Fault::AppendsAnywhere)));
}

#[test]
fn a_commit_point_that_is_believed_unseen_falls() {
    assert!(is_broken_by("commit point fell", |seed| simulate(seed, Fault::BelievesAnyCommitPoint)));
}

#[test]
fn a_configuration_that_is_taken_unseen_is_an_older_one() {
    assert!(is_broken_by("goes back", |seed| simulate_changes(seed, Fault::TakesOlderConfigs)));
}
