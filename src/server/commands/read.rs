//! find, getMore, killCursors, count, distinct, aggregate, explain: rows over `node::read`.
//!
//! Results go into the reply as bytes: nothing here decodes a document.

use super::crud::{acknowledge, node};
use super::current_op::{Shown, documents};
use super::validate_api::unstable;
use crate::auth::needs;
use crate::dispatch::{After, Command, Context, Needs, Reply, Request, Roles};
use crate::service::Service;
use document::{Doc, Document, Element, Result, ValueRef, bail};
use node::auth::Owners;
use node::operation::{ClientInfo, ReadLevel, SessionId};
use node::read;
use runtime::Instant;
use sharding::router::body::is_time;
use std::sync::{Arc, Weak};
use std::time::Duration;

pub const ROWS: &[Command] = &[
    Command::future("find", Roles::MONGOD, |c, r, reply| Box::pin(find(c, r, reply)))
        .needs(Needs::Asked(needs::reads))
        .reads_documents()
        .in_transaction()
        .stable_api_without(unstable::FIND)
        .help("Finds documents."),
    Command::future("getMore", Roles::MONGOD, |c, r, reply| Box::pin(get_more(c, r, reply)))
        .needs(Needs::Asked(needs::gets_more))
        .reads_documents()
        .in_transaction()
        .stable_api()
        .any_member()
        .help("The next batch of a cursor."),
    Command::future("killCursors", Roles::MONGOD, |c, r, reply| Box::pin(kill_cursors(c, r, reply)))
        .needs(Needs::Asked(needs::kills_cursors))
        .direct()
        .in_transaction()
        .stable_api()
        .takes_no_write_concern()
        .help("Ends cursors."),
    Command::future("count", Roles::MONGOD, |c, r, reply| Box::pin(count(c, r, reply)))
        .needs(Needs::Asked(needs::reads))
        .reads_documents()
        .in_transaction()
        .stable_api()
        .help("Counts documents."),
    Command::future("distinct", Roles::MONGOD, |c, r, reply| Box::pin(distinct(c, r, reply)))
        .needs(Needs::Asked(needs::reads))
        .reads_documents()
        .in_transaction()
        .help("The different values of a field."),
    Command::future("aggregate", Roles::MONGOD, |c, r, reply| Box::pin(aggregate(c, r, reply)))
        .needs(Needs::Asked(needs::aggregates))
        .reads_documents()
        .in_transaction()
        .stable_api()
        .takes_write_concern()
        .help("Runs an aggregation pipeline."),
    Command::future("mapReduce", Roles::MONGOD, |c, r, reply| Box::pin(map_reduce(c, r, reply)))
        .needs(Needs::Asked(needs::map_reduces))
        .aliases(&["mapreduce"])
        .read()
        .takes_write_concern()
        .help("Runs functions of the client over documents, and combines by key what they emit."),
    Command::future("filemd5", Roles::MONGOD, |c, r, reply| Box::pin(file_md5(c, r, reply)))
        .needs(Needs::Asked(needs::sums_files))
        .reads_documents()
        .help("The MD5 of a GridFS file."),
    Command::future("explain", Roles::MONGOD, |c, r, reply| Box::pin(explain(c, r, reply)))
        .needs(Needs::Asked(needs::explains))
        .reads_documents()
        .stable_api()
        .any_member()
        .help("Shows how a command would be executed."),
];

/// Members say their term when they read an oplog.
async fn heed_term(node: &Arc<node::Node>, request: &Request<'_>) -> Result<()> {
    match request.body.get("term") {
        Some(ValueRef::Int64(term)) => Box::pin(node.heed_term(term)).await,
        _ => Ok(()),
    }
}

async fn find(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let node = node(context)?;
    heed_term(node, request).await?;
    let tails = || request.body.get("tailable").is_some_and(|v| v.truthy());
    node.read_at_one_moment(&context.operation, || target(request).filter(|_| !tails()).map(only)).await?;
    read::find::find(node, &context.operation, request.node, &mut reply.writer()).await?;
    node.await_read_committed(&context.operation).await
}

async fn get_more(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let node = node(context)?;
    heed_term(node, request).await?;
    let began = Instant::now();
    read::get_more::get_more(node, &context.operation, request.node, &mut reply.writer()).await?;
    if request.node.db == "local" && request.body.get("term").is_some() {
        node.note_served(began);
    }
    if request.exhaust_allowed {
        reply.after = After::Again;
    }
    Ok(())
}

async fn kill_cursors(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    reply.fields(&read::get_more::kill_cursors(node(context)?, request.node)?);
    Ok(())
}

async fn count(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let node = node(context)?;
    let operation = &context.operation;
    if operation.read_concern.level == ReadLevel::Snapshot && operation.transaction().is_none() {
        bail!(INVALID_OPTIONS, "Command count does not support read concern level snapshot");
    }
    node.read_at_one_moment(operation, || target(request).map(only)).await?;
    reply.fields(&read::count::count(node, &context.operation, request.node).await?);
    node.await_read_committed(&context.operation).await
}

async fn distinct(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let node = node(context)?;
    node.read_at_one_moment(&context.operation, || target(request).map(only)).await?;
    let of_view =
        read::distinct::distinct(node, &context.operation, request.node, &mut reply.writer()).await?;
    node.await_read_committed(&context.operation).await?;
    if of_view {
        // The real server writes this reply in another place, with a whole number.
        reply.writer().i32("ok", 1);
        reply.closed();
    }
    Ok(())
}

async fn aggregate(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let node = node(context)?;
    if writes(request.body) && node.is_replica_set() && !node.is_writable() {
        return write_on_primary(context, request, reply).await;
    }
    if let Some(stages) = request.body.get("pipeline").and_then(|v| v.as_array()) {
        read::aggregate::check_level(&context.operation, stages)?;
    }
    let plain = |_: &String| !writes(request.body) && !watches(request);
    let names = || target(request).filter(plain).map(|ns| read::aggregate::reads(node, &request.node, ns));
    node.read_at_one_moment(&context.operation, names).await?;
    read::aggregate::aggregate(node, &context.operation, request.node, &mut reply.writer()).await?;
    node.await_read_committed(&context.operation).await?;
    if writes(request.body) {
        acknowledge(context, reply).await?;
    }
    Ok(())
}

/// How long the primary may take where the client does not say.
const PRIMARY_LIMIT: Duration = Duration::from_secs(3600);

/// A secondary that is asked to write what it reads has the primary do both. The user's rights were checked here.
async fn write_on_primary(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let mut command = request.body.to_document();
    for own in ["lsid", "txnNumber", "$clusterTime", "$readPreference", "$db"] {
        command.remove(own);
    }
    command.insert("mayBypassWriteBlocking", context.operation.may_bypass_write_blocking());
    let deadline = context.operation.deadline;
    let limit = deadline.map_or(PRIMARY_LIMIT, |d| d.saturating_duration_since(runtime::Instant::now()));
    let asked = node(context)?.run_on_primary(request.db, command, limit);
    let mut done = context.operation.interruptible(asked).await??.to_document();
    done.0.retain(|(name, _)| name != "ok" && !is_time(name.as_bytes()));
    reply.fields(&done);
    Ok(())
}

async fn map_reduce(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let node = node(context)?;
    node.read_at_one_moment(&context.operation, || None).await?;
    read::map_reduce::map_reduce(node, &context.operation, request.node, &mut reply.writer()).await?;
    node.await_read_committed(&context.operation).await?;
    acknowledge(context, reply).await
}

async fn file_md5(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let node = node(context)?;
    node.read_at_one_moment(&context.operation, || None).await?;
    read::file_md5::file_md5(node, &context.operation, request.node, &mut reply.writer()).await?;
    node.await_read_committed(&context.operation).await
}

/// The collection of clients that a read is of: what it may read as of the commit point. The node's own are read as they are.
fn target(request: &Request<'_>) -> Option<String> {
    let name = request.body.iter().next()?.value().as_str().filter(|name| !name.contains('$'))?;
    (!document::is_internal_database(request.db)).then(|| format!("{}.{name}", request.db))
}

fn only(ns: String) -> Vec<String> {
    vec![ns]
}

/// Whether the pipeline ends in a stage that writes.
pub(crate) fn writes(aggregate: Doc<'_>) -> bool {
    let last = stages(aggregate).and_then(|stages| stages.iter().last());
    matches!(last.and_then(stage_name), Some("$out" | "$merge"))
}

/// Whether it is a change stream, which reads the log.
fn watches(request: &Request<'_>) -> bool {
    let first = stages(request.body).and_then(|stages| stages.iter().next());
    first.and_then(stage_name) == Some("$changeStream")
}

fn stages(aggregate: Doc<'_>) -> Option<Doc<'_>> {
    aggregate.get("pipeline").and_then(|v| v.as_array())
}

fn stage_name<'a>(stage: Element<'a>) -> Option<&'a str> {
    stage.value().as_document()?.iter().next().map(|e| e.name())
}

async fn explain(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    reply.fields(&read::explain::explain(node(context)?, &context.operation, request.node).await?);
    Ok(())
}

/// What the node asks of its process.
struct ServerHooks(Weak<Service>);

impl read::hooks::Hooks for ServerHooks {
    fn current_op(&self, spec: &Document, client: &ClientInfo) -> Vec<Document> {
        let Some(service) = self.0.upgrade() else { return Vec::new() };
        let flag = |name: &str| spec.get_bool(name).unwrap_or(false);
        let shown = Shown {
            owners: Owners::operating(spec, client),
            idle_connections: flag("idleConnections"),
            idle_sessions: spec.get_bool("idleSessions").unwrap_or(true),
            idle_cursors: flag("idleCursors"),
            truncates: flag("truncateOps"),
        };
        documents(&service, &shown)
    }
    fn latency_stats(&self, ns: &str, histograms: bool) -> Document {
        let Some(service) = self.0.upgrade() else { return Document::new() };
        service.counters.top.latencies(ns, histograms)
    }
    fn sessions(&self) -> Vec<(SessionId, i64)> {
        self.0.upgrade().map_or(Vec::new(), |service| service.sessions.list())
    }
    fn transaction_ended(&self, open: Duration, connection: i64, account: &dyn Fn() -> Document) {
        if let Some(service) = self.0.upgrade() {
            service.log_transaction_if_slow(51802, open, connection, account);
        }
    }
    fn validation_failed(&self, connection: i64, failure: Document) {
        if let Some(service) = self.0.upgrade() {
            let ctx = format!("conn{connection}");
            service.log.warning("STORAGE", 20294, &ctx, "Document would fail validation", failure);
        }
    }
}

/// Lets the node ask what only the process knows, and ends cursors that nobody asks for any more.
pub async fn start(service: &Arc<Service>) -> Result<()> {
    if let Some(node) = &service.node {
        *node.hooks.write() = Some(Arc::new(ServerHooks(Arc::downgrade(service))));
    }
    let ending = Arc::downgrade(service);
    service.spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let Some(service) = ending.upgrade() else { return };
            close_idle_cursors(&service);
        }
    });
    Ok(())
}

fn close_idle_cursors(service: &Service) {
    let idle_ms = service.parameters.int("cursorTimeoutMillis");
    if let Some(node) = &service.node {
        node.cursors.set_idle_ms(idle_ms);
        node.cursors.reap_if_due(node.now_ms());
    }
    if let Ok(router) = service.members.router() {
        router.close_idle_cursors(Duration::from_millis(idle_ms.unsigned_abs()));
    }
}
