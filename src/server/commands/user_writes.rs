//! `setUserWriteBlockMode`, on a set, a config server and a shard, and which operations the block concerns.

use super::crud::node;
use crate::dispatch::{Command, Context, Kind, Needs, Reply, Request, Roles};
use document::{Result, bail};
use node::auth::{Action as A, Target, User};
use node::shape::Kind::{Bool, OneOf};
use node::shape::{Shape, field, required};
use node::user_writes::{Block, REASONS};
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::OwnedRwLockReadGuard;

pub const ROWS: &[Command] =
    &[Command::future("setUserWriteBlockMode", Roles::ALL, |c, r, reply| Box::pin(set(c, r, reply)))
        .needs(Needs::Cluster(&[A::SetUserWriteBlockMode]))
        .admin_only()
        .primary_only()
        .shape(&SHAPE)
        .help("Blocks the writes of users, or allows them again.")];

const SHAPE: Shape = Shape {
    name: "setUserWriteBlockMode",
    generic: true,
    fields: &[required("global", Bool), field("reason", OneOf(REASONS))],
};

/// Changes of the catalog that do not begin while the block is on. What moves data goes on.
const BLOCKED_DDL: &[&str] = &[
    "_shardsvrCollMod",
    "_shardsvrCreateCollection",
    "_shardsvrCreateIndexes",
    "_shardsvrDropCollection",
    "_shardsvrDropDatabase",
    "_shardsvrDropIndexes",
    "_shardsvrRefineCollectionShardKey",
    "_shardsvrRenameCollection",
];

/// Notes what the block concerns: what clients write, themselves, through a router or through a secondary. Those say of clients who may
/// write all the same that they may; a secondary says that of others, too.
pub fn mark(context: &Context, request: &Request<'_>, user: Option<&User>) {
    let (op, command) = (&context.operation, request.command);
    if command.kind == Kind::Read && !matches!(command.name, "aggregate" | "mapReduce") {
        return;
    }
    let internal = context.connection.client.internal.load(Relaxed);
    let may = match internal {
        true => op.may_bypass_write_blocking(),
        false => user.is_some_and(|u| u.may(&Target::Cluster, A::BypassWriteBlockingMode)),
    };
    op.set_may_bypass_write_blocking(may);
    let routed = op.received.shard.is_some() || op.received.database.is_some();
    let coordinates = command.name.starts_with("_shardsvr") && command.name != "_shardsvrWriteOutput";
    let through_secondary =
        || request.body.get("mayBypassWriteBlocking").and_then(|v| v.as_bool()) == Some(false);
    let clients = !internal || (routed && !coordinates) || through_secondary();
    if clients && !may && !node::transaction::admission::ends(command.name) {
        op.note_subject_to_block();
    }
}

/// Begins a coordinated change of the catalog. Whoever blocks those waits for the guards of those that began.
///
/// # Errors
/// UserWritesBlocked (371).
pub async fn begin_ddl(context: &Context, request: &Request<'_>) -> Result<Option<OwnedRwLockReadGuard<()>>> {
    let Some(node) = &context.service.node else { return Ok(None) };
    if !BLOCKED_DDL.contains(&request.command.name) || context.operation.may_bypass_write_blocking() {
        return Ok(None);
    }
    loop {
        let began = node.user_writes.began.clone().try_read_owned();
        let block = node.user_writes.block();
        if block.new_ddl {
            bail!(USER_WRITES_BLOCKED, "User writes blocked, reason: {}", block.reason_name());
        }
        if let Ok(began) = began {
            return Ok(Some(began));
        }
        // A block that waited for what had begun has just been taken back.
        context.operation.check_interrupt()?;
        tokio::task::yield_now().await;
    }
}

async fn set(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    match context.service.role {
        Roles::ROUTER => set_through_router(context, request, reply).await,
        Roles::STANDALONE => {
            bail!(ILLEGAL_OPERATION, "setUserWriteBlockMode cannot be run on standalones")
        }
        Roles::REPLSET => set_on_set(context, request).await,
        _ => bail!(
            ILLEGAL_OPERATION,
            "setUserWriteBlockMode must be run through a mongos in a sharded cluster"
        ),
    }
}

async fn set_through_router(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let router = context.service.members.router()?;
    let task = router.task(&context.operation, request.node);
    sharding::router::ddl::to_config(&task, "_configsvrSetUserWriteBlockMode").await.map(drop)
}

async fn set_on_set(context: &Context, request: &Request<'_>) -> Result<()> {
    let node = node(context)?;
    let asked = asked(request);
    let _changing = context.operation.interruptible(node.user_writes.changing.lock()).await?;
    let now = node.user_writes.block();
    if now.writes && now.reason != asked.reason {
        let verb = if asked.writes { "acquire" } else { "release" };
        bail!(
            ILLEGAL_OPERATION,
            "Cannot {verb} user writes critical section with different reason than the already-set reason. current: {}, reason: {}",
            now.reason_name(),
            asked.reason_name()
        );
    }
    match now.writes == asked.writes {
        true => Ok(()),
        false if asked.writes => node.set_user_write_block(asked).await,
        false => node.set_user_write_block(Block::default()).await,
    }
}

fn asked(request: &Request<'_>) -> Block {
    let writes = request.body.get("global").and_then(|v| v.as_bool()).unwrap_or(false);
    Block { new_ddl: false, writes, reason: Block::reason_of(request.body.get_str("reason")) }
}
