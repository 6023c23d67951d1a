//! `tesseraFork`, `tesseraSnapshot`, `tesseraSnapshots`, `tesseraRestore`: commands of this server's own, over `node::fork` on a node or a
//! set, over `sharding::config::whole` through a router.
//!
//! ```text
//! { tesseraFork: "db", to: "newdb", replace?: bool }     -> { collections }
//! { tesseraSnapshot: "name", drop?: bool }               -> { collections }
//! { tesseraSnapshots: 1 }                                -> { snapshots: [{ name, collections }] }
//! { tesseraRestore: "name" }                             -> { collections }
//! ```

use super::crud::conclude;
use crate::auth::needs;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Document, Result, bail, doc};
use node::auth::Action as A;
use node::{Node, fork};
use std::sync::Arc;

macro_rules! row {
    ($name:literal, $run:expr, $needs:expr) => {
        Command::future($name, Roles::ALL, |c, r, reply| Box::pin($run(c, r, reply)))
            .admin_only()
            .primary_only()
            .needs(Needs::Asked($needs))
            .write()
    };
}

pub const ROWS: &[Command] = &[
    row!("tesseraFork", fork_database, needs::forks).help("Makes a database a copy of another, at no cost."),
    row!("tesseraSnapshot", take, needs::restores).help("Keeps all databases as they are now under a name."),
    row!("tesseraRestore", restore, needs::restores).help("Puts all databases back to a snapshot."),
    Command::future("tesseraSnapshots", Roles::ALL, |c, r, reply| Box::pin(list(c, r, reply)))
        .admin_only()
        .needs(Needs::Cluster(&[A::ApplyOps, A::ForceUUID]))
        .help("The snapshots that were taken."),
];

/// The node, if its data is not a part of something greater.
fn node(context: &Context) -> Result<&Arc<Node>> {
    if context.service.role.meets(Roles::SHARD.or(Roles::CONFIG)) {
        bail!(
            ILLEGAL_OPERATION,
            "snapshots of a cluster and copies of its databases are made through a router"
        );
    }
    super::crud::node(context)
}

/// Has the config server do it, where this is a router.
async fn routed(context: &Context, request: &Request<'_>, command: &str, reply: &mut Reply) -> Result<bool> {
    if context.service.role != Roles::ROUTER {
        return Ok(false);
    }
    let task = context.service.members.router()?.task(&context.operation, request.node);
    let done = sharding::router::ddl::to_config_once(&task, command).await?.to_document();
    for member in ["collections", "snapshots"] {
        if let Some(value) = done.get(member) {
            reply.fields(&doc! { member: value.clone() });
        }
    }
    Ok(true)
}

/// The name that the first argument gives.
fn named<'a>(request: &Request<'a>) -> Result<&'a str> {
    let target = request.target();
    target.as_str().ok_or_else(|| request.wrong_type(request.command.name, target, "string"))
}

fn counted(collections: usize) -> Document {
    doc! { "collections": collections as i32 }
}

async fn fork_database(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["to", "replace"])?;
    let from = named(request)?;
    let Some(to) = request.string("to")? else { return Err(request.missing("to")) };
    let replace = request.bool("replace")? == Some(true);
    if routed(context, request, "_configsvrTesseraFork", reply).await? {
        return Ok(());
    }
    let done = fork::fork_database(node(context)?, &context.operation, from, to, replace).await;
    conclude(context, reply, done.map(counted)).await
}

async fn take(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["drop"])?;
    let (name, drop) = (named(request)?, request.bool("drop")?);
    if routed(context, request, "_configsvrTesseraSnapshot", reply).await? {
        return Ok(());
    }
    let (node, op) = (node(context)?, &context.operation);
    let done = match drop {
        Some(true) => fork::drop_snapshot(node, op, name).await.map(|()| Document::new()),
        _ => fork::take_snapshot(node, op, name).await.map(counted),
    };
    conclude(context, reply, done).await
}

async fn restore(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let name = named(request)?;
    if routed(context, request, "_configsvrTesseraRestore", reply).await? {
        return Ok(());
    }
    let done = fork::restore(node(context)?, &context.operation, name).await;
    conclude(context, reply, done.map(counted)).await
}

async fn list(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    if !routed(context, request, "_configsvrTesseraSnapshots", reply).await? {
        reply.fields(&doc! { "snapshots": fork::list_snapshots(node(context)?) });
    }
    Ok(())
}
