//! The document of `replSetGetStatus`.

use super::{MemberState, SetConfig, Standing};
use crate::Node;
use document::{Document, Timestamp, Value, doc};
use storage::log::OpTime;

fn optime(t: OpTime) -> Document {
    doc! { "ts": Timestamp::from_u64(t.ts), "t": t.term }
}
/// The date that a position's seconds say.
fn date_of(t: OpTime) -> Value {
    Value::DateTime((t.ts >> 32) as i64 * 1000)
}

pub(super) fn status(node: &Node, standing: &Standing, config: &SetConfig, uptime: i64) -> Document {
    let log = &node.log;
    let (applied, durable) = (log.last_optime(), log.durable_optime());
    let (applied_wall, durable_wall) =
        (Value::DateTime(log.last_wall()), Value::DateTime(log.durable_wall()));
    let settings = config.document_in_term(0).get_document("settings").cloned().unwrap_or_default();
    let millis = |name: &str| settings.get(name).and_then(Value::as_i64).unwrap_or(0);
    let mut d = doc! {
        "set": config.name(), "date": Value::DateTime(node.now_ms()), "myState": standing.state as i32,
        "term": standing.term, "syncSourceHost": "", "syncSourceId": -1,
        "heartbeatIntervalMillis": millis("heartbeatIntervalMillis"), "majorityVoteCount": 1,
        "writeMajorityCount": 1, "votingMembersCount": 1, "writableVotingMembersCount": 1,
        "optimes": {
            "lastCommittedOpTime": optime(durable), "lastCommittedWallTime": durable_wall.clone(),
            "readConcernMajorityOpTime": optime(durable), "appliedOpTime": optime(applied),
            "durableOpTime": optime(durable), "writtenOpTime": optime(applied),
            "lastAppliedWallTime": applied_wall.clone(), "lastDurableWallTime": durable_wall.clone(),
            "lastWrittenWallTime": applied_wall.clone(),
        },
        "lastStableRecoveryTimestamp": Timestamp::from_u64(durable.ts),
    };
    let primary = standing.state == MemberState::Primary;
    if let Some(e) = standing.election.filter(|_| primary) {
        d.push(
            "electionCandidateMetrics",
            doc! {
                "lastElectionReason": "electionTimeout", "lastElectionDate": Value::DateTime(e.wall_ms),
                "electionTerm": e.term, "lastCommittedOpTimeAtElection": optime(e.seen),
                "lastSeenWrittenOpTimeAtElection": optime(e.seen), "lastSeenOpTimeAtElection": optime(e.seen),
                "numVotesNeeded": 1, "priorityAtElection": 1.0,
                "electionTimeoutMillis": millis("electionTimeoutMillis"),
                "newTermStartDate": Value::DateTime(e.wall_ms),
                "wMajorityWriteAvailabilityDate": Value::DateTime(e.wall_ms),
            },
        );
    }
    let member = config.member();
    let mut m = doc! {
        "_id": member.get("_id").cloned().unwrap_or(Value::Int32(0)), "name": config.host(), "health": 1.0,
        "state": standing.state as i32, "stateStr": standing.state.name(), "uptime": uptime as i32,
        "optime": optime(applied), "optimeDate": date_of(applied), "optimeWritten": optime(applied),
        "optimeWrittenDate": date_of(applied), "lastAppliedWallTime": applied_wall.clone(),
        "lastDurableWallTime": durable_wall, "lastWrittenWallTime": applied_wall, "syncSourceHost": "",
        "syncSourceId": -1, "infoMessage": "",
    };
    if let Some(e) = standing.election.filter(|_| primary) {
        m.push("electionTime", Timestamp::from_u64(e.first.ts));
        m.push("electionDate", date_of(e.first));
    }
    m.push("configVersion", config.version() as i32);
    m.push("configTerm", standing.term as i32);
    m.push("self", true);
    m.push("lastHeartbeatMessage", "");
    d.push("members", Value::Array(vec![Value::from(m)]));
    d
}
