//! `tesseraFork`, `tesseraSnapshot`, `tesseraSnapshots`, `tesseraRestore`: commands of this server's own, over `node::fork`.
//!
//! ```text
//! { tesseraFork: "db", to: "newdb", replace?: bool }     -> { collections }
//! { tesseraSnapshot: "name", drop?: bool }               -> { collections }
//! { tesseraSnapshots: 1 }                                -> { snapshots: [{ name, collections }] }
//! { tesseraRestore: "name" }                             -> { collections }
//! ```
//! Of a cluster they would have to be taken on all shards and the config server at one moment; there they answer NotImplemented.

use super::crud::conclude;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Document, Result, bail, doc};
use node::auth::Action as A;
use node::{Node, fork};
use std::sync::Arc;

/// As mongorestore, which also puts anything in the place of anything.
const NEEDS: Needs = Needs::Cluster(&[A::ApplyOps, A::ForceUUID]);
macro_rules! row {
    ($name:literal, $run:expr) => {
        Command::future($name, Roles::MONGOD, |c, r, reply| Box::pin($run(c, r, reply)))
            .admin_only()
            .primary_only()
            .needs(NEEDS)
    };
}

pub const ROWS: &[Command] = &[
    row!("tesseraFork", fork_database).write().help("Makes a database a copy of another, at no cost."),
    row!("tesseraSnapshot", take).write().help("Keeps all databases as they are now under a name."),
    row!("tesseraRestore", restore).write().help("Puts all databases back to a snapshot."),
    Command::sync("tesseraSnapshots", Roles::MONGOD, list)
        .admin_only()
        .needs(NEEDS)
        .help("The snapshots that were taken."),
    Command::missing("tesseraFork", Roles::ROUTER).admin_only().needs(NEEDS),
    Command::missing("tesseraSnapshot", Roles::ROUTER).admin_only().needs(NEEDS),
    Command::missing("tesseraRestore", Roles::ROUTER).admin_only().needs(NEEDS),
    Command::missing("tesseraSnapshots", Roles::ROUTER).admin_only().needs(NEEDS),
];

/// The node, if its data is not a part of something greater.
fn node(context: &Context) -> Result<&Arc<Node>> {
    if context.service.role.meets(Roles::SHARD.or(Roles::CONFIG)) {
        bail!(NOT_IMPLEMENTED, "snapshots of a cluster and its databases are not implemented");
    }
    super::crud::node(context)
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
    let done = fork::fork_database(node(context)?, &context.operation, from, to, replace).await;
    conclude(context, reply, done.map(counted)).await
}

async fn take(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["drop"])?;
    let (node, op, name) = (node(context)?, &context.operation, named(request)?);
    let done = match request.bool("drop")? {
        Some(true) => fork::drop_snapshot(node, op, name).await.map(|()| Document::new()),
        _ => fork::take_snapshot(node, op, name).await.map(counted),
    };
    conclude(context, reply, done).await
}

async fn restore(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let done = fork::restore(node(context)?, &context.operation, named(request)?).await;
    conclude(context, reply, done.map(counted)).await
}

fn list(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    reply.fields(&doc! { "snapshots": fork::list_snapshots(node(context)?) });
    Ok(())
}
