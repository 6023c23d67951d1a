//! `_shardsvrSetUserWriteBlockMode`, a shard's part of blocking user writes.
//!
//! ```text
//! block     prepare   no change of the catalog begins here; returns when those under way have ended
//!           complete  no write either
//! unblock   prepare   writes again
//!           complete  changes of the catalog again
//! ```
//! What moves data without changing what users have goes on, and so may begin before and end after.

use super::ddl::{COORDINATORS, Ddl};
use document::{Document, Result};
use node::Operation;
use node::user_writes::Block;
use std::time::Duration;

const MOVES_DATA: &[&str] = &["movePrimary", "reshardCollection"];

/// Takes the step.
///
/// # Errors
/// Interrupts; those of a write.
pub async fn set(ddl: &Ddl, op: &Operation, asked: Block, complete: bool) -> Result<()> {
    ddl.role.require_identity()?;
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
        op.interruptible(no_change(ddl)).await??;
    }
    Ok(())
}

/// Waits for the coordinators that a primary has taken up.
async fn no_change(ddl: &Ddl) -> Result<()> {
    let operation = |d: &Document| {
        d.get_document("_id").and_then(|id| id.get_str("operationType")).unwrap_or("").to_string()
    };
    loop {
        let under_way = ddl.role.local.find(COORDINATORS, &Document::new())?;
        if under_way.iter().all(|d| MOVES_DATA.contains(&operation(d).as_str())) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
