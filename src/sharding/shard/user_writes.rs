//! `_shardsvrSetUserWriteBlockMode`, a shard's part of blocking user writes.
//!
//! ```text
//! block     prepare   no change of the catalog begins here; returns when those under way have ended
//!           complete  no write either
//! unblock   prepare   writes again
//!           complete  changes of the catalog again
//! ```
//! What moves data without changing what users have goes on, and so may begin before and end after.

use super::ddl::Ddl;
use crate::messages::user_writes::{BlockPhase, ShardUserWriteBlock};
use document::Result;
use node::Operation;
use node::user_writes::Block;

const MOVES_DATA: &[&str] = &["movePrimary", "reshardCollection"];

/// Takes the step.
///
/// # Errors
/// Interrupts; those of a write.
pub async fn set(ddl: &Ddl, op: &Operation, asked: ShardUserWriteBlock) -> Result<()> {
    let complete = asked.phase == BlockPhase::Complete;
    let asked =
        Block { new_ddl: false, writes: asked.block, reason: Block::reason_of(asked.reason.as_deref()) };
    let node = &ddl.role.node;
    let _changing = op.interruptible(node.user_writes.changing.lock()).await?;
    let now = node.user_writes.block();
    let block = match (asked.writes, complete) {
        (true, true) => Block { new_ddl: true, ..asked },
        (true, false) => Block { new_ddl: true, writes: now.writes, reason: asked.reason },
        (false, false) => Block { writes: false, ..now },
        (false, true) => Block::default(),
    };
    node.set_user_write_block(block).await?;
    if asked.writes && !complete {
        drop(op.interruptible(node.user_writes.began.write()).await?);
        op.interruptible(ddl.join(MOVES_DATA)).await??;
    }
    Ok(())
}
