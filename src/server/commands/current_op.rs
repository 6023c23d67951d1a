//! `currentOp`, `killOp`, and the documents of the `$currentOp` stage.

use crate::dispatch::{Command, Context, Reply, Request, Roles};
use crate::service::Service;
use document::{Doc, Document, Result, Value, ValueRef, bail, codes, doc};

pub const ROWS: &[Command] = &[
    Command::sync("currentOp", Roles::ALL, current_op).admin_only().help("The operations under way."),
    Command::sync("killOp", Roles::ALL, kill_op).admin_only().help("Ends an operation by its opid."),
];

/// What `$currentOp` shows.
pub struct Shown {
    pub idle_connections: bool,
}

/// The rows of `$currentOp` on this node.
pub fn documents(service: &Service, shown: &Shown) -> Vec<Document> {
    let mut rows = service.operations.describe(&service.host, shown.idle_connections, service.is_router());
    if let Ok(role) = service.members.shard() {
        rows.extend(role.migrations.current_operations());
    }
    rows
}

fn current_op(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    // `$all` shows idle connections; `$ownOps` has no meaning without users; other fields are a filter.
    let all = request.get("$all").is_some_and(|v| v.truthy())
        || matches!(request.target(), ValueRef::Boolean(true));
    let rows = documents(&context.service, &Shown { idle_connections: all });
    let shown = rows.into_iter().filter(|row| matches(row, request.body)).collect::<Vec<_>>();
    reply.fields(&doc! { "inprog": shown });
    Ok(())
}

/// Equality on top-level and dotted fields: what shells use it for.
fn matches(row: &Document, body: Doc<'_>) -> bool {
    body.iter().skip(1).all(|e| {
        let name = e.name();
        if name.starts_with('$') || crate::dispatch::generic::is_generic(name) {
            return true;
        }
        match (row.get_path(name), e.value()) {
            (_, ValueRef::Document(_) | ValueRef::Regex(..)) => true,
            (None, ValueRef::Null) => true,
            (None, _) => false,
            (Some(have), want) if have.is_number() => have.as_f64() == want.as_f64(),
            (Some(have), want) => *have == want.to_value(),
        }
    })
}

fn kill_op(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let op = match request.get("op") {
        None => return Err(document::err!(4, "Missing expected field \"op\"")),
        Some(ValueRef::String(id)) if context.service.is_router() => {
            // A router names operations of shards `shard:opid`; only its own can be ended here.
            match id.rsplit(':').next().and_then(|n| n.parse::<i64>().ok()) {
                Some(op) => op,
                None => bail!(
                    BAD_VALUE,
                    "The op argument to killOp must be of the format shardid:opid but found \"{id}\""
                ),
            }
        }
        Some(v) => match v.as_i64() {
            Some(op) => op,
            None => bail!(
                TYPE_MISMATCH,
                "Expected field \"op\" to have numeric type, but found {}",
                v.type_name()
            ),
        },
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
