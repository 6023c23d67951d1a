//! Sets of members over a simulated network, from a seed: messages are delayed, reordered and lost, links are cut, members
//! crash and come back with what was durable. After every event the invariants of the protocol are checked.
//!
//! The driver here is small and plays the part of `node::replication`: it keeps a log of optimes, fetches, rolls back to the
//! common point, and stores votes. Faulty drivers, and a faulty member, show that the invariants can fail.

use super::OpTime;
use super::config::SetConfig;
use super::member::{Action, Beat, Member, MemberState, Reason, Vote, VoteRequest};
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
    Beat,
    BeatBack(Box<Beat>, OpTime),
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
    up: bool,
}

impl Host {
    fn last(&self) -> OpTime {
        self.log.last().copied().unwrap_or(OpTime::NONE)
    }
    fn durable(&self) -> OpTime {
        self.durable.checked_sub(1).map_or(OpTime::NONE, |i| self.log[i])
    }
}

struct World {
    random: Random,
    fault: Fault,
    now: u64,
    config: Arc<SetConfig>,
    hosts: Vec<Host>,
    messages: BTreeMap<(u64, u64), (usize, usize, Message)>,
    sent: u64,
    cut: BTreeSet<(usize, usize)>,
    leaders: BTreeMap<i64, usize>,
    /// The committed history, as the leaders that committed it had it.
    committed: Vec<OpTime>,
    clock: u64,
}

const TIMEOUT: u64 = 1000;

impl World {
    fn new(seed: u64, n: usize, fault: Fault) -> World {
        let member =
            |i: usize| Value::from(doc! { "_id": i as i32, "host": format!("h{i}:1"), "priority": 1 });
        let members = Value::Array((0..n).map(member).collect());
        let given: Document =
            doc! { "_id": "rs", "members": members, "settings": { "electionTimeoutMillis": TIMEOUT as i32 } };
        let config = Arc::new(SetConfig::parse(&given).expect("a valid configuration"));
        let first = OpTime::new(0, 1);
        let hosts = (0..n).map(|i| {
            let mut member = Member::new(None, first);
            member.commits_older_terms = fault == Fault::CommitsOlderTerms;
            member.install(config.clone(), Some(i), 0, 0.5);
            member.set_follower(MemberState::Secondary, 0, 0.1 * i as f64);
            Host { member, log: vec![first], durable: 1, vote: None, up: true }
        });
        World {
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            fault,
            now: 1,
            config: config.clone(),
            hosts: hosts.collect(),
            messages: BTreeMap::new(),
            sent: 0,
            cut: BTreeSet::new(),
            leaders: BTreeMap::new(),
            committed: vec![first],
            clock: 1,
        }
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
            state: host.member.state(),
            term: host.member.term(),
            config: Some((self.config.term(), self.config.version())),
            applied: host.last(),
            durable: host.durable(),
            applied_wall: 0,
            durable_wall: 0,
            sync_source: String::new(),
            election_time: 0,
        }
    }

    fn perform(&mut self, i: usize, actions: Vec<Action>) -> Result<(), String> {
        for action in actions {
            match action {
                Action::StoreVote(vote) => {
                    self.hosts[i].vote = Some(vote);
                    let more = self.hosts[i].member.vote_stored(vote, self.now);
                    self.perform(i, more)?;
                }
                Action::AskVotes { round, dry, term } => {
                    let request = VoteRequest {
                        set: "rs".to_string(),
                        dry,
                        term,
                        candidate: i as i64,
                        config: (self.config.term(), self.config.version()),
                        applied: self.hosts[i].last(),
                    };
                    for to in (0..self.hosts.len()).filter(|to| *to != i) {
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
        let first = self.append(i, term);
        self.hosts[i].member.drained(term, first);
        self.progress(i)
    }

    fn append(&mut self, i: usize, term: i64) -> OpTime {
        // Clocks of members differ: a time is only above the member's own last one.
        self.clock += self.random.below(3);
        let ts = self.hosts[i].last().ts.max(self.clock.saturating_sub(self.random.below(20))) + 1;
        let entry = OpTime::new(term, ts);
        self.hosts[i].log.push(entry);
        entry
    }

    fn commit(&mut self, i: usize, point: OpTime) -> Result<(), String> {
        let host = &self.hosts[i];
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
        let (now, offset) = (self.now, self.random.fraction());
        match message {
            Message::Beat => {
                self.hosts[to].member.heard_of(from, now, 0);
                let (beat, commit) = (self.beat_of(to), self.hosts[to].member.committed());
                self.send(to, from, Message::BeatBack(Box::new(beat), commit));
            }
            Message::BeatBack(beat, commit) => {
                let mut beat = *beat;
                if self.fault == Fault::ReportsTooEarly {
                    beat.durable = beat.applied;
                }
                let member = &mut self.hosts[to].member;
                let mut actions = member.heard_beat(from, beat, 1, now, 0, offset);
                actions.extend(member.learn_commit_from_heartbeat(commit));
                self.perform(to, actions)?;
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
                let actions =
                    self.hosts[to].member.vote_answered(round, from, Some((term, granted)), now, offset);
                self.perform(to, actions)?;
            }
            Message::Fetch(last) => self.serve_fetch(from, to, last),
            Message::Entries(entries) => self.take_entries(from, to, entries, offset)?,
            Message::Report(applied, durable, term) => {
                let member = &mut self.hosts[to].member;
                let mut actions = member.see_term(term, now, offset);
                actions.extend(member.report(from, applied, durable, (0, 0), now));
                self.perform(to, actions)?;
            }
        }
        Ok(())
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
        let now = self.now;
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
            host.log.truncate(at + 1);
            host.durable = host.durable.min(at + 1);
            host.log.extend(entries);
            host.member.primary_is_alive(now, offset);
            actions.extend(host.member.progressed(host.last(), host.durable()));
            actions.extend(host.member.learn_commit_from_source(commit));
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
        let host = &mut self.hosts[i];
        member.commits_older_terms = self.fault == Fault::CommitsOlderTerms;
        member.install(self.config.clone(), Some(i), self.now, offset);
        member.set_follower(MemberState::Secondary, self.now, offset);
        host.member = member;
    }

    /// What members do by themselves, at some millisecond.
    fn tick(&mut self, i: usize) -> Result<(), String> {
        let offset = self.random.fraction();
        let actions = self.hosts[i].member.tick(self.now, offset);
        self.perform(i, actions)?;
        let n = self.hosts.len();
        if self.random.one_in(8) {
            for to in (0..n).filter(|to| *to != i) {
                self.send(i, to, Message::Beat);
            }
        }
        if self.random.one_in(3) {
            self.hosts[i].durable = self.hosts[i].log.len();
            self.progress(i)?;
        }
        if self.hosts[i].member.is_writable() && self.random.one_in(3) {
            let term = self.hosts[i].member.term();
            self.append(i, term);
            self.progress(i)?;
        }
        if self.random.one_in(2)
            && !self.hosts[i].member.is_leader()
            && let Some(source) = super::source::choose(&self.hosts[i].member, self.hosts[i].last(), &[])
        {
            let last = self.hosts[i].last();
            self.send(i, source, Message::Fetch(last));
        }
        // Two of the faults show where elections follow one another closely.
        let often = match self.fault {
            Fault::ForgetsVotes | Fault::CommitsOlderTerms => 40,
            _ => 400,
        };
        if self.random.one_in(often) {
            let actions =
                self.hosts[i].member.stand(Reason::StepUpRequest, self.now, offset).unwrap_or_default();
            self.perform(i, actions)?;
        }
        Ok(())
    }

    fn disturb(&mut self) {
        let n = self.hosts.len() as u64;
        let (a, b) = (self.random.below(n) as usize, self.random.below(n) as usize);
        match self.random.below(6) {
            0 => drop(self.cut.insert((a, b))),
            1 => {
                (0..n as usize).for_each(|other| {
                    self.cut.insert((a, other));
                    self.cut.insert((other, a));
                });
            }
            2 | 3 => self.cut.clear(),
            4 if self.hosts[a].up => self.crash(a),
            _ => self.hosts.iter_mut().for_each(|h| h.up = true),
        }
    }

    fn run(&mut self, steps: u64) -> Result<(), String> {
        for step in 0..steps {
            self.now += 10 + self.random.below(20);
            // The last third is quiet, so that the set can come to rest.
            if step * 3 < steps * 2 && self.random.one_in(25) {
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
                }
            }
            for i in 0..self.hosts.len() {
                if self.hosts[i].up {
                    self.tick(i)?;
                }
            }
        }
        Ok(())
    }
}

fn simulate(seed: u64, fault: Fault) -> Result<(usize, usize), String> {
    let n = if seed.is_multiple_of(2) { 3 } else { 5 };
    let mut world = World::new(seed, n, fault);
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

#[test]
fn a_member_that_forgets_its_vote_makes_two_leaders() {
    let broken = (1..=400).find_map(|seed| simulate(seed, Fault::ForgetsVotes).err());
    assert!(broken.is_some());
}

#[test]
fn positions_without_a_term_commit_what_another_leader_lacks() {
    let broken = (1..=400).find_map(|seed| simulate(seed, Fault::HidesTerms).err());
    assert!(broken.is_some());
}

#[test]
fn entries_of_earlier_terms_that_are_counted_are_lost() {
    let broken = (1..=400).find_map(|seed| simulate(seed, Fault::CommitsOlderTerms).err());
    assert!(broken.is_some());
}

#[test]
fn positions_reported_before_they_are_durable_lose_committed_entries() {
    let broken = (1..=400).find_map(|seed| simulate(seed, Fault::ReportsTooEarly).err());
    assert!(broken.is_some());
}
