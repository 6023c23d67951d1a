//! `currentOp`, `killOp`, and the documents of the `$currentOp` stage.

use crate::auth::needs;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use crate::service::Service;
use document::{Doc, DocBuf, Document, Result, Value, ValueRef, bail, codes, doc, number};
use node::Node;
use node::auth::Owners;
use node::cursor::CursorInfo;
use query::QueryContext;
use query::matcher::Matcher;
use sharding::router::admin;
use sharding::router::body::Versions;

pub const ROWS: &[Command] = &[
    Command::future("currentOp", Roles::ALL, |c, r, reply| Box::pin(current_op(c, r, reply)))
        .takes_no_write_concern()
        .needs(Needs::Asked(needs::shows_operations))
        .ends_with_client()
        .admin_only()
        .help("The operations under way."),
    Command::future("killOp", Roles::ALL, |c, r, reply| Box::pin(kill_op(c, r, reply)))
        .needs(Needs::Asked(needs::kills_operation))
        .admin_only()
        .help("Ends an operation by its opid."),
];

/// What `$currentOp` shows.
pub struct Shown {
    /// Whose operations.
    pub owners: Owners,
    pub idle_connections: bool,
    /// Transactions between two statements.
    pub idle_sessions: bool,
    /// Cursors between two batches.
    pub idle_cursors: bool,
    /// Long commands as text that is cut off.
    pub truncates: bool,
}

/// Bytes of a command that is shown whole where long ones are cut off, and of the text that is left of those.
const COMMAND_BYTES_MAX: usize = 1000;

fn truncate_command(row: &mut Document) {
    let command = row.get_document("command").map(|command| command.to_doc_buf());
    if let Some(cut) = command.and_then(|command| crate::profile::cut(command.doc(), COMMAND_BYTES_MAX)) {
        row.insert("command", cut);
    }
}

/// Bytes of the command that opened a cursor, up to which it is shown whole: there may be many, each as long as a message.
const ORIGIN_BYTES_MAX: usize = 64 * 1024;

fn cursor(c: &CursorInfo, truncates: bool) -> Document {
    let command = c.account.command.doc();
    let most = if truncates { COMMAND_BYTES_MAX } else { ORIGIN_BYTES_MAX };
    let origin = query::text::truncated(command, most).unwrap_or_else(|| command.to_document());
    let flag = |name: &str| command.get(name).is_some_and(|v| v.truthy());
    let mut d = doc! {
        "cursorId": c.id, "createdDate": Value::DateTime(c.account.created_ms),
        "lastAccessDate": Value::DateTime(c.last_use_ms), "nDocsReturned": c.account.returned as i64,
        "nBatchesReturned": c.account.batches as i64, "noCursorTimeout": c.no_timeout, "tailable": flag("tailable"),
        "awaitData": flag("awaitData"), "originatingCommand": origin,
    };
    if let Some(operation) = c.operation {
        d.push("operationUsingCursorId", operation);
    }
    d
}

/// Adds to each getMore the cursor that it uses, and the idle ones as rows of their own where they are asked for.
fn add_cursors(service: &Service, node: &Node, shown: &Shown, rows: &mut Vec<Document>) {
    let (idle, used): (Vec<_>, Vec<_>) = node.cursors.list().into_iter().partition(|c| c.operation.is_none());
    for c in used {
        let its = |row: &&mut Document| c.operation.is_some() && row.get_i64("opid") == c.operation;
        if let Some(row) = rows.iter_mut().find(its) {
            row.push("cursor", cursor(&c, shown.truncates));
        }
    }
    if !shown.idle_cursors {
        return;
    }
    let opener = |id| crate::auth::cursors::owner(service, id);
    let owned = idle.into_iter().filter(|c| {
        shown.owners.include_some(c.session.as_ref())
            || opener(c.id).is_some_and(|user| shown.owners.include(&user))
    });
    rows.extend(owned.map(|c| {
        let mut d = doc! { "type": "idleCursor", "host": service.host.as_str(), "ns": c.ns.as_str() };
        if let Some(session) = c.session {
            d.push("lsid", session.to_document());
        }
        d.push("cursor", cursor(&c, shown.truncates));
        d
    }));
}

/// The rows of `$currentOp` on this node.
pub fn documents(service: &Service, shown: &Shown) -> Vec<Document> {
    let router = service.members.router().ok();
    let transaction = |op: &node::Operation| match router {
        Some(router) => router.transactions.find(op)?.report(),
        None => Some(op.transaction().filter(|t| !t.only_reads())?.report()),
    };
    let mut rows =
        service.operations.describe(&service.host, shown.idle_connections, &shown.owners, &transaction);
    if shown.idle_sessions {
        let idle = match (router, &service.node) {
            (Some(router), _) => router.transactions.idle_rows(&service.host),
            (None, Some(node)) => node.idle_transactions(&service.host),
            (None, None) => Vec::new(),
        };
        rows.extend(idle.into_iter().filter(|row| shown.owners.include_row(row)));
    }
    // What the node does by itself is nobody's.
    if shown.owners == Owners::Everybody {
        if let Ok(role) = service.members.shard() {
            rows.extend(role.migrations.current_operations());
            rows.extend(role.resharding.current_operations());
            rows.extend(role.coordinators.current_operations());
        }
        rows.extend(service.sampling.sampler.rows(crate::sampling::keeps(service)));
        if let Ok(config) = service.members.config("currentOp") {
            rows.extend(config.balancer.current_operations());
        }
    }
    if let Some(node) = &service.node {
        add_cursors(service, node, shown, &mut rows);
    }
    if shown.truncates {
        rows.iter_mut().for_each(truncate_command);
    }
    rows
}

/// `{currentOp: 1, $all, $ownOps, $local, ...filter}`. A router asks the shards, unless told `$local`. `$ownOps` has no meaning without
/// users.
async fn current_op(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let own = request.get("$ownOps").is_some_and(|v| v.truthy());
    let all = request.get("$all").is_some_and(|v| v.truthy())
        || matches!(request.target(), ValueRef::Boolean(true));
    let local = request.get("$local").is_some_and(|v| v.truthy());
    let truncates = request.get("$truncateOps").is_none_or(|v| v.truthy());
    let service = &context.service;
    let rows: Vec<DocBuf> = match service.members.router() {
        Ok(router) if !local => {
            let task = router.task(&context.operation, request.node);
            let spec = doc! { "allUsers": !own, "idleConnections": all, "truncateOps": truncates };
            admin::current_op(&task, &Value::Document(spec)).await?
        }
        _ => {
            let owners = Owners::operating(&doc! { "allUsers": !own }, &context.connection.client);
            let shown =
                Shown { owners, idle_connections: all, idle_sessions: true, idle_cursors: false, truncates };
            documents(service, &shown).iter().map(|d| d.to_doc_buf()).collect()
        }
    };
    let filter = filter(request.body)?;
    let mut shown = Vec::new();
    for row in rows {
        if filter.matches(row.doc())? {
            shown.push(row.to_document());
        }
    }
    reply.fields(&doc! { "inprog": shown });
    if service.is_locked() {
        reply.fields(&doc! {
            "fsyncLock": true, "info": "use db.fsyncUnlock() to terminate the fsync write/snapshot lock",
        });
    }
    Ok(())
}

/// What is no option of the command is a condition on the operations.
fn filter(body: Doc<'_>) -> Result<Matcher> {
    let option = |name: &str| {
        matches!(name, "$all" | "$ownOps" | "$local" | "$truncateOps") || node::generic::is_generic(name)
    };
    let conditions = body.iter().skip(1).filter(|e| !option(e.name()));
    let d: Document = conditions.map(|e| (e.name().to_string(), e.value().to_value())).collect();
    Matcher::parse(d.to_doc_buf().doc(), &QueryContext::at(crate::log::now_millis()))
}

async fn kill_op(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let op = match request.body.get("op") {
        None => bail!(NO_SUCH_KEY, "Missing expected field \"op\""),
        Some(ValueRef::String(id)) if context.service.is_router() => {
            return kill_on_shard(context, request, id, reply).await;
        }
        Some(v) => i64::from(operation_id(v)?),
    };
    context.service.log.info(
        "COMMAND",
        20482,
        &context.connection.name(),
        "Going to kill op",
        doc! { "opId": op },
    );
    context.service.operations.kill(op, codes::INTERRUPTED);
    reply.fields(&doc! { "info": Value::from("attempting to kill op") });
    Ok(())
}

/// The number of an operation: any number that is a 32-bit integer.
fn operation_id(v: ValueRef<'_>) -> Result<i32> {
    if !v.is_number() {
        bail!(TYPE_MISMATCH, "Expected field \"op\" to have numeric type, but found {}", v.type_name());
    }
    let Some(exact) = number::to_i64_exact(&v.to_value()) else {
        bail!(BAD_VALUE, "Expected field \"op\" to have a value exactly representable as a 64-bit integer")
    };
    match i32::try_from(exact) {
        Ok(op) => Ok(op),
        Err(_) => bail!(26823, "invalid op : {exact}. Op ID cannot be represented with 32 bits"),
    }
}

/// A router names the operations of shards `shard:opid`.
async fn kill_on_shard(context: &Context, request: &Request<'_>, id: &str, reply: &mut Reply) -> Result<()> {
    let named = id.rsplit_once(':').and_then(|(shard, op)| Some((shard, op.parse::<i32>().ok()?)));
    let Some((shard, op)) = named else {
        bail!(BAD_VALUE, "The op argument to killOp must be of the format shardid:opid but found \"{id}\"")
    };
    let task = context.service.members.router()?.task(&context.operation, request.node);
    let command = task.own(&doc! { "killOp": 1, "op": op }, "admin", &Versions::NONE);
    task.read(shard, &command).await?;
    reply.fields(&doc! { "shard": shard, "shardid": op });
    Ok(())
}
