//! The commands by which members of a set speak with each other, over `node::replication`.

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Doc, Result, ValueRef, bail};
use node::auth::Action as A;
use node::replication::HeartbeatRequest;
use protocol::replication::OpTime;
use protocol::replication::member::VoteRequest;
use runtime::simulation::{self, Check};
use std::time::Duration;

/// The longest that a test can delay the answer to a heartbeat.
const DELAY_MAX_SECONDS: i64 = 3600;

pub const ROWS: &[Command] = &[
    Command::future("replSetHeartbeat", Roles::MONGOD, |c, r, reply| Box::pin(heartbeat(c, r, reply)))
        .needs(Needs::Cluster(&[A::Internal]))
        .admin_only()
        .help("Internal: asks a member how it is."),
    Command::future("replSetRequestVotes", Roles::MONGOD, |c, r, reply| Box::pin(vote(c, r, reply)))
        .needs(Needs::Cluster(&[A::Internal]))
        .admin_only()
        .help("Internal: asks a member for its vote."),
    Command::future("replSetUpdatePosition", Roles::MONGOD, |c, r, reply| Box::pin(positions(c, r, reply)))
        .needs(Needs::Cluster(&[A::Internal]))
        .admin_only()
        .help("Internal: reports how far members have come."),
    Command::sync("_replSetCopyOpen", Roles::MONGOD, open_copy)
        .admin_only()
        .help("Internal: freezes everything for another member to copy."),
    Command::sync("_replSetCopyNext", Roles::MONGOD, next_of_copy)
        .admin_only()
        .help("Internal: records of what was frozen."),
];

async fn heartbeat(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[
        "checkEmpty",
        "configVersion",
        "configTerm",
        "hbv",
        "from",
        "fromId",
        "term",
        "primaryId",
    ])?;
    let Some(set) = request.target().as_str() else {
        return Err(request.wrong_type("replSetHeartbeat", request.target(), "string"));
    };
    let asked = HeartbeatRequest {
        set: set.to_string(),
        config_version: request.integer("configVersion")?.unwrap_or(-2),
        config_term: request.integer("configTerm")?.unwrap_or(-1),
        from: request.string("from")?.unwrap_or("").to_string(),
        from_id: request.integer("fromId")?.unwrap_or(-1),
        term: request.integer("term")?.unwrap_or(-1),
        check_empty: request.bool("checkEmpty")?.unwrap_or(false),
    };
    let node = node(context)?;
    if let Some(data) = node.failpoints.should_with("rsDelayHeartbeatResponse", |_| true) {
        let seconds = data.get_i64("delay").unwrap_or(0).clamp(0, DELAY_MAX_SECONDS) as u64;
        context.operation.interruptible(tokio::time::sleep(Duration::from_secs(seconds))).await?;
    }
    reply.fields(&node.answer_heartbeat(&asked).await?);
    Ok(())
}

async fn vote(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let fields = [
        "setName",
        "dryRun",
        "term",
        "candidateIndex",
        "configVersion",
        "configTerm",
        "lastAppliedOpTime",
        "lastWrittenOpTime",
        "lastCommittedOp",
    ];
    request.strict(&fields)?;
    let node = node(context)?;
    node.set_config()?;
    let needed = |name: &str| request.integer(name)?.ok_or_else(|| request.missing(name));
    let applied =
        request.document("lastAppliedOpTime")?.ok_or_else(|| request.missing("lastAppliedOpTime"))?;
    let asked = VoteRequest {
        set: request.string("setName")?.ok_or_else(|| request.missing("setName"))?.to_string(),
        dry: request.bool("dryRun")?.unwrap_or(false),
        term: needed("term")?,
        candidate: needed("candidateIndex")?,
        config: (request.integer("configTerm")?.unwrap_or(-1), needed("configVersion")?),
        applied: node::replication::read_optime(applied).unwrap_or(OpTime::NONE),
    };
    reply.fields(&node.answer_vote_request(&asked).await?);
    Ok(())
}

async fn positions(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&["optimes"])?;
    let node = node(context)?;
    node.set_config()?;
    let Some(list) = request.get("optimes").and_then(|v| v.as_array()) else {
        return Err(request.missing("optimes"));
    };
    let lines: Vec<_> = list.iter().filter_map(|e| e.value().as_document()).map(position).collect();
    // First the term of the sender: who has voted for another leader says nothing of what this one has committed.
    let data = request.body.get_document("$replData").filter(|_| !simulation::omits(Check::ReporterTerm));
    if let Some(term) = data.and_then(|data| data.get_i64("term")) {
        node.see_term(term).await?;
    }
    node.take_positions(&lines).await
}

fn position(line: Doc<'_>) -> (i64, OpTime, OpTime, (i64, i64)) {
    let optime =
        |name: &str| line.get_document(name).and_then(node::replication::read_optime).unwrap_or(OpTime::NONE);
    let wall = |name: &str| match line.get(name) {
        Some(ValueRef::DateTime(ms)) => ms,
        _ => 0,
    };
    let walls = (wall("appliedWallTime"), wall("durableWallTime"));
    (line.get_i64("memberId").unwrap_or(-1), optime("appliedOpTime"), optime("durableOpTime"), walls)
}

fn open_copy(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    reply.fields(&node(context)?.open_copy()?);
    Ok(())
}

/// `{_replSetCopyNext: <copy>}` with `describe`, an offset; with `index` and `after`, a collection's and a record's; or to end the copy.
fn next_of_copy(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["describe", "index", "after"])?;
    let Some(id) = request.target().as_i64() else {
        bail!(BAD_VALUE, "_replSetCopyNext needs the id of a copy");
    };
    let place = |name: &str| match request.integer(name)?.map(usize::try_from) {
        None => Ok(None),
        Some(Ok(n)) => Ok(Some(n)),
        Some(Err(_)) => bail!(BAD_VALUE, "{name} must not be negative"),
    };
    let node = node(context)?;
    match (place("describe")?, place("index")?) {
        (Some(offset), _) => reply.fields(&node.description_of_copy(id, offset)?),
        (None, Some(index)) => {
            let after = request.integer("after")?.unwrap_or(-1).max(-1);
            reply.fields(&node.next_of_copy(id, index, after)?);
        }
        (None, None) => node.end_copy(id),
    }
    Ok(())
}
