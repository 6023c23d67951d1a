//! insert, update, delete, findAndModify, bulkWrite: rows over the node's write commands.
//!
//! A write answers when its write concern is met; one that cannot be met is a `writeConcernError` beside what was
//! done, since what was done stays done.

use super::validate_api::unstable;
use crate::auth::needs;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use crate::topology::Membership;
use document::{DocBuf, Document, Result, Value, bail, doc, err};
use node::Node;
use node::cursor::{Account, Cursor};
use node::exec::Batch;
use node::operation::ReadLevel;
use node::read::rows::Rows;
use std::sync::Arc;
use storage::log::OpTime;

pub const ROWS: &[Command] = &[
    Command::future("insert", Roles::MONGOD, |c, r, reply| Box::pin(insert(c, r, reply)))
        .needs(Needs::Asked(needs::inserts))
        .write()
        .in_transaction()
        .stable_api()
        .retryable()
        .help("Inserts documents."),
    Command::future("update", Roles::MONGOD, |c, r, reply| Box::pin(update(c, r, reply)))
        .needs(Needs::Asked(needs::updates))
        .write()
        .in_transaction()
        .stable_api_without(unstable::UPDATE)
        .retryable()
        .help("Updates documents."),
    Command::future("delete", Roles::MONGOD, |c, r, reply| Box::pin(delete(c, r, reply)))
        .needs(Needs::Asked(needs::deletes))
        .write()
        .in_transaction()
        .stable_api()
        .retryable()
        .help("Deletes documents."),
    Command::future("findAndModify", Roles::MONGOD, |c, r, reply| Box::pin(find_and_modify(c, r, reply)))
        .needs(Needs::Asked(needs::finds_and_modifies))
        .aliases(&["findandmodify"])
        .write()
        .in_transaction()
        .stable_api()
        .retryable()
        .help("Changes or removes one document and returns it."),
    Command::future("bulkWrite", Roles::MONGOD, |c, r, reply| Box::pin(bulk_write(c, r, reply)))
        .needs(Needs::Asked(needs::bulk_writes))
        .write()
        .in_transaction()
        .admin_only()
        .stable_api()
        .retryable()
        .help("Inserts, updates and deletes in several collections."),
];

/// The data-bearing half of this process.
///
/// # Errors
/// CommandNotFound where there is none: rows name the roles that have one, so a client does not see it.
pub fn node(context: &Context) -> Result<&Arc<Node>> {
    context.service.node.as_ref().ok_or_else(|| err!(COMMAND_NOT_FOUND, "this process holds no data"))
}

/// Waits as the write concern says, and adds its error where it could not be met.
pub async fn acknowledge(context: &Context, reply: &mut Reply) -> Result<()> {
    // A transaction's writes are acknowledged with its commit.
    if context.operation.transaction().is_some() {
        return Ok(());
    }
    if let Some(error) = node(context)?.acknowledge(&context.operation).await? {
        show_concern_error(reply, error, context.operation.is_retryable_write());
    }
    Ok(())
}

/// Adds the error of a write concern. After a step-down nobody knows whether the write stays: by the label the driver sends it
/// once more, as it does after an error. `retryable`: a write that is done once however often it is sent.
pub fn show_concern_error(reply: &mut Reply, error: Document, retryable: bool) {
    let code = error.get_i64("code").and_then(|code| i32::try_from(code).ok()).unwrap_or(0);
    let retriable = document::error::categories(code) & document::error::RETRIABLE != 0;
    reply.fields(&doc! { "writeConcernError": error });
    if retriable && retryable {
        reply.fields(&doc! { "errorLabels": ["RetryableWriteError"] });
    }
}

/// Ends a command that writes: its members, then the acknowledgement. A command that failed is acknowledged too, since
/// drivers look at the write concern's error first.
pub async fn conclude(context: &Context, reply: &mut Reply, done: Result<Document>) -> Result<()> {
    let internal = context.connection.client.internal.load(std::sync::atomic::Ordering::Relaxed);
    let mut error = match done {
        Ok(mut fields) => {
            // A router has to know, whatever its client wants to hear.
            if context.operation.write_concern.is_unacknowledged() && !internal {
                fields.remove("writeErrors");
            }
            reply.fields(&fields);
            return acknowledge(context, reply).await;
        }
        Err(error) => error,
    };
    if context.operation.write_concern.given
        && let Ok(Some(concern_error)) = node(context)?.acknowledge(&context.operation).await
    {
        let mut info = error.info.take().map(|i| *i).unwrap_or_default();
        info.insert("writeConcernError", concern_error);
        error = error.with_info(info);
    }
    Err(error)
}

/// Refuses a level of read concern that a command, not being a query, does not know.
pub fn check_read_concern(context: &Context, request: &Request<'_>) -> Result<()> {
    if context.operation.read_concern.level == ReadLevel::Local {
        return Ok(());
    }
    bail!(
        INVALID_OPTIONS,
        "Command {} does not support this readConcern :: caused by :: read concern not supported",
        request.command.name
    )
}

/// Checks made before a write begins: what its session and its concerns ask of this kind of node.
fn admit(context: &Context, request: &Request<'_>) -> Result<()> {
    let operation = &context.operation;
    let numbered = operation.session.as_ref().is_some_and(|s| s.txn_number.is_some());
    if numbered && !node(context)?.is_replica_set() {
        bail!(ILLEGAL_OPERATION, "Transaction numbers are only allowed on a replica set member or mongos");
    }
    if operation.transaction().is_some() {
        return Ok(());
    }
    check_read_concern(context, request)?;
    // A causally consistent session sends the time after which the write shall come.
    if let (Some(after), true) = (operation.read_concern.after_cluster_time, node(context)?.is_replica_set())
    {
        node(context)?.log.advance_clock(after.as_u64());
    }
    Ok(())
}

/// Ends a write command: its members, the acknowledgement, and the position that a set's member shows.
async fn finish(context: &Context, reply: &mut Reply, done: Result<Document>) -> Result<()> {
    if let Ok(fields) = &done {
        context.service.members.on_reply(fields).await;
    }
    conclude(context, reply, done).await?;
    if let Membership::Member(member) = &**context.service.topology.membership() {
        let own = context.operation.committed_optime();
        let OpTime { ts, term } = own.map_or_else(|| node(context).map(|n| n.log.last_optime()), Ok)?;
        let mut times = Document::new();
        if let Some(id) = member.election_id {
            times.push("electionId", id);
        }
        times.push("opTime", doc! { "ts": document::Timestamp::from_u64(ts), "t": term });
        reply.fields(&times);
    }
    Ok(())
}

async fn insert(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    admit(context, request)?;
    let done = node::write::insert::insert(node(context)?, &context.operation, request.node).await;
    finish(context, reply, done).await
}

async fn update(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    admit(context, request)?;
    let done = node::write::update::update(node(context)?, &context.operation, request.node).await;
    finish(context, reply, done).await
}

async fn delete(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    admit(context, request)?;
    let done = node::write::delete::delete(node(context)?, &context.operation, request.node).await;
    finish(context, reply, done).await
}

async fn find_and_modify(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    admit(context, request)?;
    let done =
        node::write::find_and_modify::find_and_modify(node(context)?, &context.operation, request.node).await;
    finish(context, reply, done).await
}

async fn bulk_write(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    admit(context, request)?;
    let done = node::write::bulk_write::bulk_write(node(context)?, &context.operation, request.node).await;
    let mut done = done?;
    // The documents about the operations come in batches, as those of a query do.
    if let Some(Value::Document(mut cursor)) = done.remove("cursor") {
        let items = match cursor.remove("firstBatch") {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let items = items.iter().filter_map(Value::as_document).map(Document::to_doc_buf);
        write_cursor(context, request, reply, "admin.$cmd.bulkWrite", items.collect()).await?;
    }
    finish(context, reply, Ok(done)).await
}

/// Writes the reply's `cursor` over documents that are all there already; `cursor.batchSize` bounds the first batch.
pub async fn write_cursor(
    context: &Context,
    request: &Request<'_>,
    reply: &mut Reply,
    ns: &str,
    items: Vec<DocBuf>,
) -> Result<()> {
    let node = node(context)?;
    let asked = request.body.get_document("cursor").and_then(|c| c.get_present("batchSize"));
    let asked = asked.and_then(node::shape::to_long).and_then(|n| usize::try_from(n).ok());
    let mut batch = Batch::new(asked.unwrap_or(usize::MAX));
    let mut rows = Rows::of(items);
    rows.fill(node, &context.operation, &mut batch).await?;
    let id = match rows.ended() {
        true => 0,
        false => {
            let now = node.now_ms();
            let cursor = Cursor {
                ns: ns.to_string(),
                session: context.operation.session.as_ref().map(|s| s.lsid),
                rows,
                no_timeout: false,
                transaction: context.operation.transaction_number(),
                level: ReadLevel::Local,
                keeps_snapshot: false,
                reader: None,
                time_left: context.operation.time_left(),
                account: Account::new(request.body, now, batch.count()),
            };
            node.cursors.open(cursor, now)?
        }
    };
    batch.write_cursor(&mut reply.writer(), "firstBatch", id, ns);
    Ok(())
}
