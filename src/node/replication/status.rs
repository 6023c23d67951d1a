//! The document of `replSetGetStatus`.

use super::driver::optime_document;
use super::{Election, MemberState, Participation, SetConfig, Standing, known};
use crate::Node;
use document::{Document, Error, Timestamp, Value, doc, err};
use protocol::replication::OpTime;
use protocol::replication::member::Peer;
use std::sync::atomic::Ordering;
use storage::log::ReadFrom;

/// The date that a position's seconds say.
fn date_of(t: OpTime) -> Value {
    Value::DateTime((t.ts >> 32) as i64 * 1000)
}

/// When an entry was written, as it says itself.
fn wall_of(node: &Node, t: OpTime) -> Option<i64> {
    if node.log.durable_optime().ts == t.ts {
        return Some(node.log.durable_wall());
    }
    let mut reader = node.log.reader(ReadFrom::Ts(t.ts)).ok()?;
    reader.next().ok()?.filter(|frame| frame.optime.ts == t.ts).map(|frame| frame.wall)
}

/// What stands of this member's own log.
struct Positions {
    applied: OpTime,
    durable: OpTime,
    committed: OpTime,
    committed_wall: Value,
    applied_wall: Value,
    durable_wall: Value,
}

impl Positions {
    fn of(node: &Node, state: MemberState) -> Positions {
        let log = &node.log;
        if state == MemberState::Startup2 {
            // What is in the log is of no use to the set: everything is copied anew.
            let none = Value::DateTime(0);
            return Positions {
                applied: OpTime::NONE,
                durable: OpTime::NONE,
                committed: OpTime::NONE,
                committed_wall: none.clone(),
                applied_wall: none.clone(),
                durable_wall: none,
            };
        }
        let committed = known(node.committed());
        Positions {
            applied: known(log.last_optime()),
            durable: known(log.durable_optime()),
            committed,
            committed_wall: Value::DateTime(wall_of(node, committed).unwrap_or(0)),
            applied_wall: Value::DateTime(log.last_wall()),
            durable_wall: Value::DateTime(log.durable_wall()),
        }
    }
}

impl Node {
    /// The times of the newest and of the oldest entry of the oplog; zero in one that is empty.
    pub fn oplog_window(&self) -> (Timestamp, Timestamp) {
        let oldest = self.time_of_entry_at(self.log.first_position()).unwrap_or(0);
        (Timestamp::from_u64(self.log.last_optime().ts), Timestamp::from_u64(oldest))
    }

    /// `replicationProgress` of `serverStatus.repl`: how far each member has come, as far as this one knows; empty without a
    /// configuration.
    pub fn replication_progress(&self) -> Vec<Document> {
        let standing = self.replication.standing();
        let Some(config) = &standing.config else { return Vec::new() };
        let own = (known(self.log.last_optime()), known(self.log.durable_optime()));
        let line = |(index, member): (usize, &super::MemberConfig)| {
            // A member sends no heartbeats to itself.
            let (told, heard) = match Some(index) == standing.me {
                true => (own, (OpTime::NONE, OpTime::NONE)),
                false => {
                    let peer = self.replication.peer(index).unwrap_or_default();
                    ((peer.applied, peer.durable), (peer.applied, peer.durable))
                }
            };
            let (applied, durable) = told;
            doc! {
                "host": member.host.as_str(), "optime": optime_document(durable),
                "lastAppliedOpTime": optime_document(applied), "heartbeatAppliedOpTime": optime_document(heard.0),
                "heartbeatDurableOpTime": optime_document(heard.1), "memberId": member.id as i32,
            }
        };
        config.members().iter().enumerate().map(line).collect()
    }
}

/// What a member says that stands in no line of its configuration: of itself alone.
pub(super) fn removed(node: &Node, standing: &Standing, uptime: i64) -> Error {
    let applied = known(node.log.last_optime());
    let mut d = doc! {
        "state": standing.state as i32, "stateStr": standing.state.name(), "uptime": uptime as i32,
        "optime": optime_document(applied), "optimeDate": date_of(applied),
    };
    let maintenance = node.replication.look(|m| m.maintenance());
    if maintenance > 0 {
        d.push("maintenanceMode", maintenance as i32);
    }
    for (name, value) in doc! {
        "lastHeartbeatMessage": "", "syncSourceHost": "", "syncSourceId": -1i32, "infoMessage": node.outcome_of_choice(),
    } {
        d.push(name, value);
    }
    let text = "Our replica set config is invalid or we are not a member of it";
    err!(INVALID_REPLICA_SET_CONFIG, "{text}").with_info(d)
}

pub(super) fn status(
    node: &Node,
    standing: &Standing,
    config: &SetConfig,
    uptime: i64,
    copy: bool,
) -> Document {
    let own = Positions::of(node, standing.state);
    let (source, source_index) = node.sync_source();
    let source_id = source_index.and_then(|i| config.members().get(i)).map_or(-1, |m| m.id as i32);
    let bearing = config.voters().filter(|m| m.bears_data()).count() as i32;
    let mut d = doc! {
        "set": config.name(), "date": Value::DateTime(node.now_ms()), "myState": standing.state as i32,
        "term": standing.term, "syncSourceHost": source.as_str(), "syncSourceId": source_id,
    };
    if config.is_config_server() {
        d.push("configsvr", true);
    }
    for (name, value) in doc! {
        "heartbeatIntervalMillis": config.heartbeat_interval_ms() as i64,
        "majorityVoteCount": config.vote_majority() as i32, "writeMajorityCount": config.write_majority() as i32,
        "votingMembersCount": config.voters().count() as i32, "writableVotingMembersCount": bearing,
        "optimes": optimes(&own),
    } {
        d.push(name, value);
    }
    if let Some(stable) = node.stable_recovery_time() {
        d.push("lastStableRecoveryTimestamp", stable);
    }
    if standing.state == MemberState::Startup2
        && copy
        && let Some(shown) = node
            .replication
            .copy_status
            .lock()
            .shown(node.now_ms(), node.replication.settings().copy_attempts)
    {
        d.push("initialSyncStatus", shown);
    }
    if let Some(e) = standing.election.filter(|_| standing.state == MemberState::Primary) {
        d.push("electionCandidateMetrics", candidacy(&e, node, standing, config));
    }
    if let Some(p) = node.replication.participation.lock().clone() {
        d.push("electionParticipantMetrics", participation(&p, standing, config));
    }
    let now = node.replication.now();
    let members = config.members().iter().enumerate().map(|(index, m)| {
        let line = match Some(index) == standing.me {
            true => own_line(node, standing, config, &own, uptime, (&source, source_id)),
            false => {
                let peer = node.replication.peer(index).unwrap_or_default();
                peer_line(config, m, &peer, now)
            }
        };
        Value::from(line)
    });
    d.push("members", Value::Array(members.collect()));
    d
}

fn candidacy(e: &Election, node: &Node, standing: &Standing, config: &SetConfig) -> Document {
    let seen = optime_document(known(e.seen));
    let mut d = doc! {
        "lastElectionReason": e.reason.name(), "lastElectionDate": Value::DateTime(e.wall_ms),
        "electionTerm": e.term, "lastCommittedOpTimeAtElection": optime_document(known(e.committed)),
        "lastSeenWrittenOpTimeAtElection": seen.clone(), "lastSeenOpTimeAtElection": seen,
        "numVotesNeeded": config.vote_majority() as i32,
        "priorityAtElection": standing.own().map_or(1.0, |m| m.priority),
        "electionTimeoutMillis": config.election_timeout_ms() as i64,
    };
    if let Some(prior) = e.prior {
        d.push("priorPrimaryMemberId", prior as i32);
    }
    let catch_up = node.replication.look(|m| m.last_catch_up());
    if let Some(target) = catch_up.target {
        d.push("targetCatchupOpTime", optime_document(target));
    }
    if let Some(operations) = catch_up.operations {
        d.push("numCatchUpOps", operations);
    }
    d.push("newTermStartDate", Value::DateTime(e.first_wall_ms));
    let since = node.replication.majority_wall_ms.load(Ordering::SeqCst);
    if since != 0 {
        d.push("wMajorityWriteAvailabilityDate", Value::DateTime(since));
    }
    d
}

fn participation(p: &Participation, standing: &Standing, config: &SetConfig) -> Document {
    let candidate = usize::try_from(p.candidate).ok().and_then(|i| config.members().get(i));
    let applied = known(p.applied);
    let mut d = doc! {
        "votedForCandidate": p.granted, "electionTerm": p.term, "lastVoteDate": Value::DateTime(p.wall_ms),
        "electionCandidateMemberId": candidate.map_or(-1, |m| m.id as i32), "voteReason": p.reason.as_str(),
        "lastWrittenOpTimeAtElection": optime_document(applied),
        "maxWrittenOpTimeInSet": optime_document(p.newest_in_set),
        "lastAppliedOpTimeAtElection": optime_document(applied),
        "maxAppliedOpTimeInSet": optime_document(p.newest_in_set),
        "priorityAtElection": standing.own().map_or(1.0, |m| m.priority),
    };
    if let Some((began, applied)) = p.term_began {
        d.push("newTermStartDate", Value::DateTime(began));
        d.push("newTermAppliedDate", Value::DateTime(applied));
    }
    d
}

fn optimes(own: &Positions) -> Document {
    let mut d = doc! {
        "lastCommittedOpTime": optime_document(own.committed), "lastCommittedWallTime": own.committed_wall.clone(),
    };
    // There is a committed state to read.
    if own.committed.ts != 0 {
        d.push("readConcernMajorityOpTime", optime_document(own.committed));
    }
    for (name, value) in doc! {
        "appliedOpTime": optime_document(own.applied),
        "durableOpTime": optime_document(own.durable), "writtenOpTime": optime_document(own.applied),
        "lastAppliedWallTime": own.applied_wall.clone(), "lastDurableWallTime": own.durable_wall.clone(),
        "lastWrittenWallTime": own.applied_wall.clone(),
    } {
        d.push(name, value);
    }
    d
}

fn own_line(
    node: &Node,
    standing: &Standing,
    config: &SetConfig,
    own: &Positions,
    uptime: i64,
    (source, source_id): (&str, i32),
) -> Document {
    let member = standing.own();
    let mut m = doc! {
        "_id": member.map_or(0, |m| m.id as i32), "name": member.map_or("", |m| m.host.as_str()), "health": 1.0,
        "state": standing.state as i32, "stateStr": standing.state.name(), "uptime": uptime as i32,
    };
    if standing.state != MemberState::Arbiter {
        m.push("optime", optime_document(own.applied));
        m.push("optimeDate", date_of(own.applied));
        m.push("optimeWritten", optime_document(own.applied));
        m.push("optimeWrittenDate", date_of(own.applied));
        m.push("lastAppliedWallTime", own.applied_wall.clone());
        m.push("lastDurableWallTime", own.durable_wall.clone());
        m.push("lastWrittenWallTime", own.applied_wall.clone());
    }
    m.push("syncSourceHost", source);
    m.push("syncSourceId", source_id);
    let maintenance = node.replication.look(|m| m.maintenance());
    if maintenance > 0 {
        m.push("maintenanceMode", maintenance as i32);
    }
    m.push("infoMessage", node.outcome_of_choice());
    if let Some(e) = standing.election.filter(|_| standing.state == MemberState::Primary) {
        m.push("electionTime", Timestamp::from_u64(e.first.ts));
        m.push("electionDate", date_of(known(e.first)));
    }
    m.push("configVersion", config.version() as i32);
    m.push(
        "configTerm",
        if config.members().len() == 1 { standing.term as i32 } else { config.term() as i32 },
    );
    m.push("self", true);
    m.push("lastHeartbeatMessage", "");
    m
}

fn peer_line(config: &SetConfig, member: &super::MemberConfig, peer: &Peer, now: u64) -> Document {
    // Nothing but its dates and its last error is told of a member that does not answer.
    let state = if peer.up { peer.state } else { MemberState::Down };
    let at = |t: OpTime| if peer.up { t } else { OpTime::NONE };
    let (applied, durable) = (at(peer.applied), at(peer.durable));
    let source = if peer.up { peer.sync_source.as_str() } else { "" };
    let text = if peer.up { state.name() } else { "(not reachable/healthy)" };
    let uptime = if peer.up { now.saturating_sub(peer.up_since) / 1000 } else { 0 };
    let mut m = doc! {
        "_id": member.id as i32, "name": member.host.as_str(), "health": if peer.up { 1.0 } else { 0.0 },
        "state": state as i32, "stateStr": text, "uptime": uptime as i32,
    };
    if !member.arbiter {
        for (name, value) in doc! {
            "optime": optime_document(applied), "optimeDurable": optime_document(durable),
            "optimeWritten": optime_document(applied), "optimeDate": date_of(applied),
            "optimeDurableDate": date_of(durable), "optimeWrittenDate": date_of(applied),
            "lastAppliedWallTime": Value::DateTime(peer.applied_wall),
            "lastDurableWallTime": Value::DateTime(peer.durable_wall),
            "lastWrittenWallTime": Value::DateTime(peer.applied_wall),
        } {
            m.push(name, value);
        }
    }
    m.push("lastHeartbeat", Value::DateTime(peer.last_heartbeat_wall));
    m.push("lastHeartbeatRecv", Value::DateTime(peer.last_heartbeat_received_wall));
    m.push("pingMs", peer.ping_ms.unwrap_or(0) as i64);
    m.push("lastHeartbeatMessage", peer.message.as_str());
    m.push("syncSourceHost", source);
    let source = config.index_of_host(source).and_then(|i| config.members().get(i));
    m.push("syncSourceId", source.map_or(-1, |m| m.id as i32));
    m.push("infoMessage", "");
    if peer.up && peer.state == MemberState::Primary {
        m.push("electionTime", Timestamp::from_u64(peer.election_time));
        m.push("electionDate", date_of(OpTime::new(0, peer.election_time)));
    }
    let (term, version) = peer.config.filter(|_| peer.up).unwrap_or((-1, -1));
    m.push("configVersion", version as i32);
    m.push("configTerm", term as i32);
    m
}
