//! One request, from the raw body to the finished reply.

use super::{After, Command, Generic, Handler, Kind, Reply, Request, Sequence};
use crate::api_versions::ApiVersions;
use crate::connection::Connection;
use crate::profile::Ended;
use crate::service::Service;
use document::{Doc, DocBuf, Error, Result, bail, codes, doc, err};
use futures::FutureExt;
use node::Operation;
use node::auth::{Action, Target};
use node::operation::WriteConcern;
use runtime::Instant;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// What a handler knows beside its request: the node, the connection, the operation.
pub struct Context {
    pub service: Arc<Service>,
    pub connection: Arc<Connection>,
    pub operation: Arc<Operation>,
}

/// A finished reply: the buffer that was handed in, with the document appended.
pub struct Outcome {
    pub bytes: Vec<u8>,
    pub after: After,
}

impl Outcome {
    /// The reply's document, which begins at this place of the buffer.
    fn reply(&self, at: usize) -> Doc<'_> {
        Doc::from_validated(self.bytes.get(at..).unwrap_or(&document::raw::EMPTY))
    }
}

/// Runs one command. `body` and `sequences` were validated. `request_id` is that of the message. `out` is the outgoing
/// message so far (its header); the reply's document is appended to it.
pub(super) async fn dispatch(
    service: &Arc<Service>,
    connection: &Arc<Connection>,
    body: Doc<'_>,
    sequences: &[Sequence<'_>],
    exhaust_allowed: bool,
    request_id: i32,
    out: Vec<u8>,
) -> Outcome {
    let started = Instant::now();
    let reply_at = out.len();
    let mut reply = Reply::open(out);
    let name = body.iter().next().map_or(&[][..], |e| e.name_bytes());
    let found = service.commands().find(name).filter(|(_, row)| service.answers(row));
    let Some((index, command)) = found else {
        service.counters.unknown_command();
        let name = String::from_utf8_lossy(name);
        fail(service, &mut reply, &err!(COMMAND_NOT_FOUND, "no such command: '{name}'"));
        return finish(service, reply, None);
    };
    service.counters.command_started(index, command);
    let (operation, changed) = match operation_of(service, connection, command, body, started) {
        Ok(read) => read,
        Err(error) => {
            service.counters.command_failed(index);
            fail(service, &mut reply, &error);
            return finish(service, reply, None);
        }
    };
    let body = changed.as_ref().map_or(body, DocBuf::doc);
    let context = Context { service: service.clone(), connection: connection.clone(), operation };
    let registered = service.operations.enter(&context.operation, connection, command, body, request_id);
    let result = AssertUnwindSafe(run(&context, command, body, sequences, exhaust_allowed, &mut reply));
    let result = match result.catch_unwind().await {
        Ok(result) => result,
        Err(panic) => {
            reply.after = After::Close;
            Err(after_panic(service, command, panic.as_ref()))
        }
    };
    drop(registered);
    let failed = result.is_err();
    if let Err(error) = result {
        // A deadline ends this, too: the next request learns then.
        drop(context.operation.interruptible(Box::pin(service.members.on_stale(&error))).await);
        if error.code == codes::LOG_WRITE_FAILED && service.node.is_some() {
            // The node ends. Drivers repeat what a lost connection left open, as after a crash, and nothing that has this code.
            reply.after = After::Vanish;
        }
        fail(service, &mut reply, &labelled(&context, command, error));
    }
    if failed {
        service.counters.command_failed(index);
    }
    let elapsed = started.elapsed();
    service.counters.command_finished(command, elapsed);
    if !service.is_router() {
        service.counters.top.record(command, body, elapsed);
        if !failed {
            service.counters.top.heed_drop(command, body);
        }
    }
    let outcome = finish(service, reply, Some(&context));
    let ended = Ended { command, body, sequences, reply: outcome.reply(reply_at), elapsed };
    crate::profile::log_if_slow(&context, &ended);
    take_note(&context, &ended, failed, outcome.after).await;
    outcome
}

/// Reads what the body says besides the command's own fields; also the body, where the owner of its session was put in.
fn operation_of(
    service: &Service,
    connection: &Arc<Connection>,
    command: &Command,
    body: Doc<'_>,
    started: Instant,
) -> Result<(Arc<Operation>, Option<DocBuf>)> {
    let mut operation = Operation::parse(service.operations.next_id(), connection.client.clone(), body)?;
    let changed = crate::auth::gate::own_session(connection, service, &mut operation, body)?;
    // What is written to `local` is this member's own: no other could tell a repetition, and the session is not its.
    if operation.is_retryable_write()
        && body.get_str("$db") == Some("local")
        && let Some(session) = &mut operation.session
    {
        session.txn_number = None;
    }
    // There it says how long a cursor may wait for data.
    if command.name == "getMore" {
        operation.deadline = cursor_time_left(service, body).map(|left| started + left);
    }
    if let Some(limit) = default_time(service, connection, command, body) {
        operation.deadline = started.checked_add(limit);
    }
    if operation.deadline.is_some() && service.failpoints().should("maxTimeNeverTimeOut") {
        operation.deadline = None;
    }
    Ok((Arc::new(operation), changed))
}

/// The time that the cluster gives a client's read which names none.
fn default_time(
    service: &Service,
    connection: &Connection,
    command: &Command,
    body: Doc<'_>,
) -> Option<Duration> {
    if !matches!(command.name, "find" | "count" | "distinct" | "dbHash" | "aggregate") {
        return None;
    }
    let limit = match &service.node {
        Some(node) => node.default_time.of_reads(),
        None => service.members.router().ok()?.default_time.of_reads(),
    }?;
    let bypasses = || {
        let user = connection.client.user();
        user.is_some_and(|user| user.may(&Target::Cluster, Action::BypassDefaultMaxTimeMS))
    };
    let internal = connection.client.internal.load(std::sync::atomic::Ordering::Relaxed);
    let reads = command.name != "aggregate" || !crate::commands::read::writes(body);
    (reads && body.get("maxTimeMS").is_none() && !internal && !bypasses()).then_some(limit)
}

/// Tells the profiler, the table of cursors' owners and the counters what a command did.
async fn take_note(context: &Context, ended: &Ended<'_>, failed: bool, after: After) {
    let service = &context.service;
    if service.profiler.is_active() {
        crate::profile::record(context, ended).await;
    }
    service.counters.validator(ended.command, ended.body, failed);
    if failed {
        return;
    }
    if service.auth.enabled
        && let Some(user) = context.connection.client.user()
    {
        crate::auth::cursors::note(service, &user, ended.body, ended.reply);
    }
    if ended.command.kind != Kind::Other && after != After::Vanish {
        let request = node::request::Request { db: "", body: ended.body, sequences: ended.sequences };
        service.counters.effects(&request, ended.command, ended.reply);
        if let Some(node) = &service.node {
            note_concerns(context, node, &request, ended.command.name);
        }
    }
}

/// Counts the concerns of a command that ran.
fn note_concerns(context: &Context, node: &node::Node, request: &node::request::Request<'_>, command: &str) {
    let (counters, op) = (&context.service.counters, &context.operation);
    counters.read_concerns.note(op, command, || node.replication.default_read_level());
    if counters.write_concerns.are_reported() {
        let statements = match command {
            "insert" => request.documents("documents").count(),
            "update" => request.documents("updates").count(),
            "delete" => request.documents("deletes").count(),
            _ => return,
        };
        let implicit = match node.is_replica_set() && node.implicit_concern_is_majority() {
            true => WriteConcern::majority(),
            false => WriteConcern::acknowledged(),
        };
        let default = node.replication.default_write_concern();
        counters.write_concerns.note(
            command,
            &op.write_concern,
            statements as i64,
            default.as_ref(),
            &implicit,
        );
    }
}

/// What earlier batches of the cursor have left of the time that was given for all of them.
fn cursor_time_left(service: &Service, getmore: Doc<'_>) -> Option<Duration> {
    let id = getmore.get_i64("getMore")?;
    match &service.node {
        Some(node) => node.cursors.time_left(id),
        None => service.members.router().ok()?.cursors.time_left(id),
    }
}

/// Everything between the row and the handler's result.
async fn run(
    context: &Context,
    command: &'static Command,
    body: Doc<'_>,
    sequences: &[Sequence<'_>],
    exhaust_allowed: bool,
    reply: &mut Reply,
) -> Result<()> {
    let user = crate::auth::gate::enter(context, command).await?;
    match context.connection.client.internal.load(Relaxed) {
        true => context.service.members.hear_config_time(context.operation.config_time),
        false => super::doubled::refuse(command.name, body)?,
    }
    let generic = Generic::parse(body)?;
    let db = database(&generic)?;
    let name = body.iter().next().map_or("", |e| e.name());
    let node = node::request::Request { db, body, sequences };
    let request = Request { command, name, node, exhaust_allowed, comment: generic.comment };
    check_row(context, &request, &generic)?;
    crate::auth::gate::authorize(context, &request, user.as_deref())?;
    crate::commands::user_writes::mark(context, &request, user.as_deref());
    crate::signed_time::accept(context, command, body).await?;
    if let Some(session) = &context.operation.session {
        crate::commands::sessions::note_use(context, command, session.lsid)?;
    }
    if command.kind == Kind::Write && context.service.is_locked() {
        crate::commands::fsync::wait_unlocked(context).await?;
    }
    if command.kind == Kind::Write && context.service.flow_control.is_limited() && db != "local" {
        Box::pin(context.service.flow_control.admit(&context.operation)).await?;
    }
    if context.operation.deadline.is_some() && context.service.failpoints().should("maxTimeAlwaysTimeOut") {
        bail!(MAX_TIME_MS_EXPIRED, "operation exceeded time limit");
    }
    crate::commands::fail_point::before(context, &request, reply).await?;
    if reply.after == After::Vanish {
        return Ok(());
    }
    let numbered = context.operation.has_txn_number() && !context.service.failpoints().is_idle();
    if numbered {
        Box::pin(crate::commands::fail_point::at_session(context, "hangBeforeSessionCheckOut")).await?;
    }
    let entered = crate::commands::transactions::enter(context, &request).await?;
    let edition = context.service.node.as_ref().filter(|_| db == "local").map(|node| node.past_edition());
    let result = handle_watched(context, &request, numbered, reply).await;
    let result = result.and_then(|()| check_readable(context, reply));
    crate::commands::transactions::leave(context, entered, &result, reply).await;
    if result.is_ok()
        && db == "local"
        && let Some(node) = context.service.node.as_ref().filter(|_| body.get("$oplogQueryData").is_some())
    {
        reply.fields(&doc! { "$oplogQueryData": node.oplog_query_data() });
        // What was read and what is said of it are of one history: a follower takes a commit point to lie on that of the entries.
        if edition != Some(node.past_edition()) {
            return Err(node::replication::Replication::rolled_back());
        }
    }
    if result.is_ok()
        && generic.asks_set_data
        && let Some(data) = context.service.node.as_ref().and_then(|node| node.set_data())
    {
        reply.fields(&doc! { "$replData": data });
    }
    if context.operation.is_connection_lost() {
        reply.after = After::Vanish;
        return Ok(());
    }
    crate::commands::fail_point::after(context, &request, result, reply)
}

/// As [`handle`]; a test may hold the command before and after, while it has its session.
async fn handle_watched(
    context: &Context,
    request: &Request<'_>,
    numbered: bool,
    reply: &mut Reply,
) -> Result<()> {
    if context.service.failpoints().is_idle() {
        return handle(context, request, reply).await;
    }
    if numbered {
        Box::pin(crate::commands::fail_point::at_session(context, "hangAfterSessionCheckOut")).await?;
    }
    handle(context, request, reply).await?;
    Box::pin(crate::commands::fail_point::executed(context, request)).await
}

async fn handle(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    if context.service.sampling.sampler.is_active() {
        return Box::pin(crate::sampling::run(context, request, reply)).await;
    }
    invoke(context, request, reply).await
}

/// Runs the handler of a request that keeps to the row.
pub async fn invoke(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let command = request.command;
    if let Some(shape) = command.shape {
        shape.check_command(request.body, request.sequences)?;
    }
    match command.handler {
        Handler::Sync(handler) => handler(context, request, reply),
        Handler::Async(handler) => handler(context, request, reply).await,
        Handler::Missing => bail!(NOT_IMPLEMENTED, "command '{}' is known but not implemented", command.name),
    }
}

fn database<'a>(generic: &Generic<'a>) -> Result<&'a str> {
    let Some(db) = generic.db else { bail!(40571, "OP_MSG requests require a $db argument") };
    node::request::check_database_name(db)?;
    Ok(db)
}

/// What the row demands of every request.
fn check_row(context: &Context, request: &Request<'_>, generic: &Generic<'_>) -> Result<()> {
    let command = request.command;
    note_api_version(context, command.name, generic);
    check_api(context, command, generic)?;
    // What a router makes of a pipeline is not the client's any more; it has looked at that.
    if generic.api_strict == Some(true) && !is_internal(context) {
        crate::commands::validate_api::check_strict(context, request)?;
    }
    check_transaction(context, request)?;
    if command.admin_only && request.db != "admin" {
        bail!(UNAUTHORIZED, "{} may only be run against the admin database.", command.name);
    }
    check_txn_number(context, command)?;
    check_read_concern(context, command)?;
    check_write_concern(context, command)?;
    if command.primary_only && request.db != "local" {
        if let Some(node) = &context.service.node {
            context.operation.note_reign(node.reigns_ended());
        }
        if !context.service.is_writable() {
            return Err(context.service.not_primary());
        }
    }
    if command.kind == Kind::Read && request.db != "local" && !context.service.is_readable() {
        bail!(NOT_PRIMARY_OR_SECONDARY, "node is not in primary or recovering state");
    }
    if command.kind == Kind::Read && request.db != "local" && !context.service.is_writable() {
        check_secondary_read(context, command, generic)?;
    }
    if command.name == "explain" {
        check_has_plan(context, request)?;
    }
    Ok(())
}

/// A command that exists and has no plan is refused as such; the handler says the rest.
fn check_has_plan(context: &Context, request: &Request<'_>) -> Result<()> {
    let explained = request.target().as_document().and_then(|d| d.iter().next());
    let Some(name) = explained.map(|e| e.name()) else { return Ok(()) };
    let exists =
        context.service.commands().find(name.as_bytes()).is_some_and(|(_, row)| context.service.answers(row));
    if exists && !node::read::explain::EXPLAINED.contains(&name) {
        bail!(ILLEGAL_OPERATION, "Cannot explain cmd: {name}");
    }
    Ok(())
}

/// A secondary answers reads whose sender said that it may.
fn check_secondary_read(context: &Context, command: &Command, generic: &Generic<'_>) -> Result<()> {
    let mode = generic.read_preference.and_then(|d| d.get_str("mode"));
    let allowed = mode.is_some_and(|m| m != "primary") || command.any_member;
    if allowed || context.service.is_router() {
        return Ok(());
    }
    bail!(NOT_PRIMARY_NO_SECONDARY_OK, "not primary and secondaryOk=false")
}

/// What a command that is part of a transaction must be and say.
fn check_transaction(context: &Context, request: &Request<'_>) -> Result<()> {
    let command = request.command;
    if context.operation.session.as_ref().is_none_or(|s| s.autocommit.is_none()) {
        return Ok(());
    }
    if context.service.node.as_ref().is_some_and(|node| !node.is_replica_set()) {
        bail!(ILLEGAL_OPERATION, "Transaction numbers are only allowed on a replica set member or mongos");
    }
    if command.in_transaction {
        return node::transaction::admission::check(
            &context.operation,
            command.name,
            request.db,
            request.body,
        );
    }
    bail!(
        OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
        "Cannot run '{}' in a multi-document transaction.",
        command.name
    );
}

/// A transaction number outside a transaction makes a write retryable, and means nothing to other commands. Those between
/// nodes carry the numbers of migrations.
fn check_txn_number(context: &Context, command: &Command) -> Result<()> {
    if !context.operation.is_retryable_write() || command.retryable || command.name.starts_with('_') {
        return Ok(());
    }
    bail!(
        NOT_A_RETRYABLE_WRITE_COMMAND,
        "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not \
         provided, and {} is not a retryable write command.",
        command.name
    )
}

/// Members send their concerns with whatever they send.
fn check_write_concern(context: &Context, command: &Command) -> Result<()> {
    let given = context.operation.write_concern.given && !is_internal(context);
    if given && !command.takes_write_concern {
        bail!(INVALID_OPTIONS, "Command does not support writeConcern");
    }
    Ok(())
}

/// Only reads take a read concern above local; a transaction's first statement gives that of the transaction.
fn check_read_concern(context: &Context, command: &Command) -> Result<()> {
    use node::operation::ReadLevel;
    let rc = &context.operation.read_concern;
    if !rc.given || is_internal(context) {
        return Ok(());
    }
    let starts = context.operation.session.as_ref().is_some_and(|s| s.start_transaction);
    if rc.level != ReadLevel::Local && !command.reads_documents && !starts {
        bail!(
            INVALID_OPTIONS,
            "Command {} does not support this readConcern :: caused by :: read concern not supported",
            command.name
        );
    }
    if rc.after_cluster_time.is_some_and(|after| after.as_u64() == 0) {
        bail!(INVALID_OPTIONS, "afterClusterTime cannot be a null timestamp");
    }
    let alone = context.service.node.as_ref().is_some_and(|node| !node.is_replica_set());
    if rc.after_cluster_time.is_some() && alone {
        bail!(ILLEGAL_OPERATION, "Cannot specify afterClusterTime readConcern without replica set");
    }
    Ok(())
}

/// Counts the version with the application's name, once a connection.
fn note_api_version(context: &Context, name: &str, generic: &Generic<'_>) {
    let (version, bit) = ApiVersions::known(generic.api_version);
    let client = &context.connection.client;
    // Its name comes with the first greeting.
    if client.api_versions.load(Relaxed) & bit != 0
        || matches!(name, "hello" | "isMaster")
        || is_internal(context)
    {
        return;
    }
    client.api_versions.fetch_or(bit, Relaxed);
    if let Some(application) = &*client.app_name.lock() {
        context.service.counters.api_versions.note(application, version);
    }
}

fn check_api(context: &Context, command: &Command, generic: &Generic<'_>) -> Result<()> {
    let Some(version) = generic.api_version else {
        if generic.api_strict.is_some() || generic.api_deprecation_errors.is_some() {
            bail!(
                4886600,
                "Provided values for 'apiStrict' and/or 'apiDeprecationErrors' without 'apiVersion'"
            );
        }
        if context.service.parameters.require_api_version() && !is_internal(context) {
            bail!(
                498870,
                "The apiVersion parameter is required, please configure your MongoClient's API version"
            );
        }
        return Ok(());
    };
    if version != "1" && !(version == "2" && context.service.parameters.bool("acceptApiVersion2")) {
        bail!(API_VERSION_ERROR, "API version must be \"1\"");
    }
    if generic.api_strict == Some(true) {
        crate::commands::validate_api::check_name(command, version)?;
    }
    if generic.api_deprecation_errors == Some(true) && command.deprecated_in == version {
        bail!(
            API_DEPRECATION_ERROR,
            "Provided apiDeprecationErrors:true, but the command {} is deprecated in API Version {version}",
            command.name
        );
    }
    Ok(())
}

fn is_internal(context: &Context) -> bool {
    context.connection.client.internal.load(std::sync::atomic::Ordering::Relaxed)
}

/// Tells drivers what they may send again: a retryable write or the end of a transaction, or a whole transaction. A router
/// says the first only of its own end: what a shard answered brings its labels along.
fn labelled(context: &Context, command: &Command, error: Error) -> Error {
    let operation = &context.operation;
    if error.info.as_ref().is_some_and(|i| i.contains_key("errorLabels")) {
        return error;
    }
    let ends = node::transaction::admission::ends(command.name);
    let part = operation.session.as_ref().is_some_and(|s| s.txn_number.is_some() && s.autocommit.is_some());
    if part && is_transient(&error, ends) {
        return error.with_label("TransientTransactionError");
    }
    let ending = matches!(error.code, codes::INTERRUPTED_AT_SHUTDOWN | codes::SHUTDOWN_IN_PROGRESS);
    let retriable = error.is(document::error::RETRIABLE) && (!context.service.is_router() || ending);
    if !retriable || !(operation.is_retryable_write() || ends) {
        return error;
    }
    let error = error.with_label("RetryableWriteError");
    // A driver whose repetition ends so shows the error of its first attempt, which may have written.
    match context.service.is_router() || operation.committed_position().is_some() {
        true => error,
        false => error.with_label("NoWritesPerformed"),
    }
}

/// Whether a transaction that met this error may be run again as a whole. Of an end that met an error that may be repeated
/// nobody knows whether it has happened.
fn is_transient(error: &Error, ends: bool) -> bool {
    use document::error::{RETRIABLE, SNAPSHOT, STALE_DB_VERSION, STALE_SHARD_VERSION};
    let waits = error.info.as_ref().is_some_and(|i| i.contains_key("writeConcernError"));
    match error.code {
        codes::WRITE_CONFLICT | codes::LOCK_TIMEOUT | codes::PREPARED_TRANSACTION_IN_PROGRESS => true,
        codes::SHARD_CANNOT_REFRESH_DUE_TO_LOCKS_HELD => true,
        codes::NO_SUCH_TRANSACTION => !ends || !waits,
        _ if error.is(SNAPSHOT | STALE_SHARD_VERSION | STALE_DB_VERSION) => true,
        _ => !ends && error.is(RETRIABLE),
    }
}

/// Replaces whatever the handler wrote by the error.
fn fail(service: &Service, reply: &mut Reply, error: &Error) {
    service.counters.assertion(error);
    reply.clear();
    reply.fields(&error.to_reply());
    reply.closed();
    // Where nothing changed (a fail point's error) a version would tell drivers that the error is old news.
    if error.is(document::error::NOT_PRIMARY)
        && (!service.is_writable() || service.is_ending())
        && error.info.as_ref().is_none_or(|i| !i.contains_key("topologyVersion"))
    {
        reply
            .writer()
            .document("topologyVersion", service.topology.version().to_document().to_doc_buf().doc());
    }
}

/// The largest reply to a client: a document of the largest size that leaves the server, and what stands around it.
const REPLY_BYTES_MAX: usize = query::pipeline::stage::DOCUMENT_BYTES_MAX + 64 * 1024;

/// Refuses to answer what a client could not read.
///
/// # Errors
/// BSONObjectTooLarge (10334).
fn check_readable(context: &Context, reply: &Reply) -> Result<()> {
    match reply.len() > REPLY_BYTES_MAX && !is_internal(context) {
        true => Err(document::size_refused(reply.len())),
        false => Ok(()),
    }
}

/// Closes the reply with what every reply carries.
fn finish(service: &Service, mut reply: Reply, context: Option<&Context>) -> Outcome {
    let after = reply.after;
    if !reply.is_closed() {
        reply.writer().double("ok", 1.0);
    }
    let connection = context.map(|c| &*c.connection);
    service.append_times(connection, context.map(|c| &*c.operation), &mut reply.writer());
    Outcome { bytes: reply.finish(), after }
}

fn after_panic(service: &Service, command: &Command, panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown cause");
    service.log.error(
        "COMMAND",
        9_000_001,
        "conn",
        "A command handler panicked",
        document::doc! {
            "command": command.name, "cause": text,
        },
    );
    Error::new(codes::INTERNAL_ERROR, format!("internal error in command '{}'", command.name))
}

#[cfg(test)]
mod tests {
    use crate::commands::TABLES;
    use crate::dispatch::Roles;

    /// What a client sees of a command does not depend on whether it talks to a router.
    #[test]
    fn the_rows_of_a_router_and_of_a_node_say_the_same_of_a_command() {
        let rows = || TABLES.iter().copied().flatten().filter(|row| row.is_implemented());
        let mut differences = Vec::new();
        for routed in rows().filter(|row| row.roles == Roles::ROUTER) {
            let Some(row) = rows().find(|r| r.name == routed.name && r.roles.meets(Roles::MONGOD)) else {
                continue;
            };
            for (what, here, there) in [
                ("kind", row.kind == routed.kind, true),
                ("aliases", row.aliases == routed.aliases, true),
                ("in_transaction", row.in_transaction, routed.in_transaction),
                ("stable_api", row.stable_api, routed.stable_api),
                ("unstable_fields", row.unstable_fields == routed.unstable_fields, true),
                ("admin_only", row.admin_only, routed.admin_only),
                ("test_only", row.test_only, routed.test_only),
                ("reads_documents", row.reads_documents, routed.reads_documents),
                ("takes_write_concern", row.takes_write_concern, routed.takes_write_concern),
                ("retryable", row.retryable, routed.retryable),
                ("quiet", row.quiet, routed.quiet),
                ("shape", row.shape == routed.shape, true),
            ] {
                if here != there {
                    differences.push(format!("{}: {what}", row.name));
                }
            }
        }
        assert!(differences.is_empty(), "{differences:?}");
    }
}
