//! commitTransaction, abortTransaction, prepareTransaction, and what every statement of a transaction passes.

use super::crud::{node, show_concern_error};
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use crate::service::Service;
use document::{Error, Result, ValueRef, bail, codes, doc, err};
use node::operation::SessionId;
use node::transaction::{Admitted, Entered, Limits, admission};
use protocol::transaction::Request as Wanted;
use sharding::router::Router;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub const ROWS: &[Command] = &[
    Command::future("commitTransaction", Roles::MONGOD, |c, r, reply| Box::pin(commit(c, r, reply)))
        .admin_only()
        .needs(Needs::Login)
        .primary_only()
        .in_transaction()
        .stable_api()
        .retryable()
        .help("Commits a transaction."),
    Command::future("abortTransaction", Roles::MONGOD, |c, r, reply| Box::pin(abort(c, r, reply)))
        .admin_only()
        .needs(Needs::Login)
        .primary_only()
        .in_transaction()
        .stable_api()
        .retryable()
        .help("Aborts a transaction."),
    Command::future("prepareTransaction", Roles::SETS, |c, r, reply| Box::pin(prepare(c, r, reply)))
        .admin_only()
        .needs(Needs::Member)
        .primary_only()
        .in_transaction()
        .retryable()
        .help("Prepares a transaction of several shards, for its coordinator."),
    Command::future("coordinateCommitTransaction", Roles::SETS, |c, r, reply| {
        Box::pin(coordinate(c, r, reply))
    })
    .admin_only()
    .needs(Needs::Member)
    .primary_only()
    .in_transaction()
    .retryable()
    .help("Commits a transaction of several shards, this one coordinating."),
];

/// How long a router remembers a session's last transaction, for a late repetition of its commit.
const SESSION_AGE: Duration = Duration::from_secs(30 * 60);

/// How long a node remembers what a router ran on its own for a write that cannot be repeated, for a late repetition of its
/// commit.
const INTERNAL_SESSION_AGE_MS: i64 = 120_000;

/// Aborts, in the background, what a router's sessions have in progress.
pub fn abort_routed(router: &Arc<Router>, chosen: impl Fn(&SessionId) -> bool) {
    let (router, open) = (router.clone(), router.transactions.chosen(|id, _| chosen(id)));
    if !open.is_empty() {
        runtime::spawn(async move { router.abort_transactions(open, codes::INTERRUPTED).await });
    }
}

/// What the parameters say of transactions now.
pub fn limits(service: &Service) -> Limits {
    let parameters = &service.parameters;
    let wait = parameters.int("maxTransactionLockRequestTimeoutMillis");
    let behind_section = parameters.int("metadataRefreshInTransactionMaxWaitBehindCritSecMS").max(0) as u64;
    Limits {
        lifetime: Duration::from_secs(parameters.int("transactionLifetimeLimitSeconds").max(1) as u64),
        lock_timeout: u64::try_from(wait).ok().map(Duration::from_millis),
        section_timeout: Duration::from_millis(behind_section),
        bytes_max: u64::try_from(parameters.int("transactionSizeLimitBytes")).unwrap_or(u64::MAX),
        may_restart: service.role == Roles::SHARD || service.role == Roles::CONFIG,
    }
}

/// A statement's part in its transaction, on a node or on a router.
pub enum Part {
    Node(Entered),
    Router(Arc<Router>, sharding::router::transaction::Entered),
}

/// Makes the operation a statement of its transaction, if it is one.
pub async fn enter(context: &Context, request: &Request<'_>) -> Result<Option<Part>> {
    let Some(session) = context.operation.session.as_ref().filter(|s| s.autocommit.is_some()) else {
        return Ok(None);
    };
    if admission::ends(request.command.name) {
        return Ok(None);
    }
    let Some(node) = &context.service.node else {
        let router = context.service.members.router()?.clone();
        let now = router.time_to_read_at(&context.operation).await?;
        let entered = router.transactions.enter(&context.operation, now).await?;
        return Ok(Some(Part::Router(router, entered)));
    };
    let limits = limits(&context.service);
    let wanted = match session.start_transaction {
        true => Wanted::Start { may_restart: limits.may_restart },
        false => Wanted::Continue,
    };
    match node.enter_transaction(&context.operation, wanted, limits).await? {
        Admitted::Run(entered) => Ok(Some(Part::Node(entered))),
        Admitted::Done => Err(err!(INTERNAL_ERROR, "a statement was taken for a repetition")),
    }
}

/// Ends the operation's part in its transaction. A member of a cluster says whether it has only read.
pub async fn leave(context: &Context, part: Option<Part>, result: &Result<()>, reply: &mut Reply) {
    let done = result.is_ok();
    let cluster = context.service.role == Roles::SHARD || context.service.role == Roles::CONFIG;
    match part {
        None => {}
        Some(Part::Node(entered)) => {
            if done && cluster {
                reply.fields(&doc! { "readOnly": entered.transaction.is_read_only() });
            }
            entered.leave(done);
        }
        Some(Part::Router(router, entered)) => {
            router.leave_transaction(entered, result.as_ref().err().map(|e| e.code)).await;
        }
    }
}

fn check_within(context: &Context, request: &Request<'_>) -> Result<()> {
    let name = request.command.name;
    match &context.operation.session {
        Some(s) if s.autocommit.is_some() => Ok(()),
        // A number alone makes a retryable write, which an end of a transaction is not.
        Some(s) if s.txn_number.is_some() => bail!(
            NOT_A_RETRYABLE_WRITE_COMMAND,
            "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not \
             provided, and {name} is not a retryable write command."
        ),
        _ => bail!(COMMAND_FAILED, "{name} must be run within a transaction"),
    }
}

/// Refuses fields that a client made up; nodes know what they send each other.
fn check_fields(context: &Context, request: &Request<'_>, known: &[&str]) -> Result<()> {
    match context.connection.client.internal.load(Ordering::Relaxed) {
        true => Ok(()),
        false => request.strict(known),
    }
}

async fn commit(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    check_fields(context, request, &["commitTimestamp", "recoveryToken"])?;
    check_within(context, request)?;
    let at = match request.get("commitTimestamp") {
        None => None,
        Some(ValueRef::Timestamp(at)) => Some(at),
        Some(v) => return Err(request.wrong_type("commitTransaction.commitTimestamp", v, "timestamp")),
    };
    pause_at(context, "hangBeforeCommitingTxn").await?;
    let done = node(context)?.commit_transaction(&context.operation, at, limits(&context.service)).await;
    conclude_known(context, reply, done).await?;
    lose_answer(context, "participantReturnNetworkErrorForCommitAfterExecutingCommitLogic")
}

async fn abort(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    check_fields(context, request, &["recoveryToken"])?;
    check_within(context, request)?;
    pause_at(context, "hangBeforeAbortingTxn").await?;
    let (node, limits) = (node(context)?, limits(&context.service));
    // A router says so of what it does not hear the end of.
    let done = match request.get("unlessPrepared").is_some_and(|v| v.truthy()) {
        true => node.abort_unless_prepared(&context.operation, limits).await,
        false => node.abort_transaction(&context.operation, limits).await,
    };
    // A coordinator takes it for an acknowledgement, and forgets.
    let of_coordinator =
        context.connection.client.internal.load(Ordering::Relaxed) && context.operation.write_concern.given;
    match of_coordinator {
        true => conclude_known(context, reply, done).await?,
        false => conclude(context, reply, done).await?,
    }
    lose_answer(context, "participantReturnNetworkErrorForAbortAfterExecutingAbortLogic")
}

async fn prepare(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    check_within(context, request)?;
    let at = node(context)?.prepare_transaction(&context.operation, limits(&context.service)).await;
    let done = at.map(|at| reply.fields(&doc! { "prepareTimestamp": document::Value::Timestamp(at) }));
    conclude(context, reply, done).await?;
    lose_answer(context, "participantReturnNetworkErrorForPrepareAfterExecutingPrepareLogic")
}

async fn pause_at(context: &Context, fail_point: &str) -> Result<()> {
    node(context)?.failpoints.pause_operation(&context.operation, fail_point, "admin").await
}

/// What was done is told as a broken connection while the fail point is set.
fn lose_answer(context: &Context, fail_point: &str) -> Result<()> {
    match node(context)?.failpoints.should(fail_point) {
        true => bail!(HOST_UNREACHABLE, "fail point {fail_point}: the answer is lost"),
        false => Ok(()),
    }
}

async fn coordinate(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    check_within(context, request)?;
    let Some(ValueRef::Array(listed)) = request.get("participants") else {
        return Err(request.missing("participants"));
    };
    let mut participants = Vec::new();
    for e in listed.iter() {
        let shard = e.value().as_document().and_then(|d| d.get_str("shardId"));
        participants.push(shard.ok_or_else(|| request.missing("participants.shardId"))?.to_string());
    }
    let role = context.service.members.shard()?.clone();
    let limits = limits(&context.service);
    let done = role.coordinate_commit(&context.operation, participants, limits).await;
    conclude_known(context, reply, done).await
}

/// As [`conclude`], for the end of a transaction. That there is no such transaction, or that a later one has begun, may only be said
/// for good: an entry of this reign is written and waited for, since a member that leads no more does not know what another has
/// committed, and what it has committed itself may yet be rolled back.
async fn conclude_known(context: &Context, reply: &mut Reply, done: Result<()>) -> Result<()> {
    let unknown = |e: &Error| matches!(e.code, codes::NO_SUCH_TRANSACTION | codes::TRANSACTION_TOO_OLD);
    if done.as_ref().is_err_and(unknown) {
        let message = doc! { "msg": "refusing the end of an unknown transaction" };
        node(context)?.append_note(&context.operation, message)?;
    }
    conclude(context, reply, done).await
}

/// Waits as the write concern says, after a refusal too.
async fn conclude(context: &Context, reply: &mut Reply, done: Result<()>) -> Result<()> {
    let concern = node(context)?.acknowledge(&context.operation).await?;
    match (done, concern) {
        (Ok(()), Some(error)) => show_concern_error(reply, error, true),
        (Ok(()), None) => {}
        (Err(e), Some(error)) if context.operation.write_concern.given => {
            let mut info = e.info.as_deref().cloned().unwrap_or_default();
            info.insert("writeConcernError", error);
            return Err(e.with_info(info));
        }
        (Err(e), _) => return Err(e),
    }
    Ok(())
}

/// Waits for half as long as a transaction may live, which may be changed meanwhile; that limit, in seconds.
async fn lifetime_passed_by_half(service: &Service) -> u64 {
    let mut seconds = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        seconds += 1;
        let limit = service.parameters.int("transactionLifetimeLimitSeconds").max(1) as u64;
        if seconds >= (limit / 2).clamp(1, 60) {
            return limit;
        }
    }
}

/// Aborts transactions that are older than they may be, as long as the node lives.
pub async fn reap_regularly(service: Arc<Service>) {
    loop {
        let limit = lifetime_passed_by_half(&service).await;
        if let Some(node) = &service.node {
            node.reap_transactions();
            node.sessions.reap_internal(node.now_ms() - INTERNAL_SESSION_AGE_MS);
        } else if let Ok(router) = service.members.router() {
            let limit = Duration::from_secs(limit);
            let expired = router.transactions.chosen(|_, idle| idle > limit);
            let code = codes::TRANSACTION_EXCEEDED_LIFETIME_LIMIT_SECONDS;
            router.abort_transactions(expired, code).await;
            router.transactions.forget_older(SESSION_AGE);
        }
    }
}

/// Keeps a node's past for reads at cluster times, as long as the node lives.
pub async fn remember_regularly(service: Arc<Service>) {
    let Some(node) = service.node.clone().filter(|node| node.is_replica_set()) else { return };
    loop {
        let window = service.parameters.int("minSnapshotHistoryWindowInSeconds").max(0) as u64;
        node.remember(Duration::from_secs(window)).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
