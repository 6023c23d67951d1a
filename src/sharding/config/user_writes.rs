//! `setUserWriteBlockMode` over the cluster.
//!
//! ```text
//! block     own document -> every shard: no change of the catalog begins, those under way end -> every shard: no write
//! unblock   every shard: writes -> every shard: changes of the catalog -> own document
//! ```
//! What was asked for stands in `config.sharding_configsvr_coordinators` until every shard has it: a primary that finds it there takes it
//! up, and it is tried again for as long as a shard cannot be reached. A shard that is added takes over the block of the own document.

use super::{ConfigServer, require_majority};
use crate::messages::Message;
use crate::messages::user_writes::{BlockPhase, ClusterUserWriteBlock, ShardUserWriteBlock};
use crate::remote::Target;
use document::{Document, Result, bail, doc, err};
use futures::future::try_join_all;
use node::user_writes::Block;
use node::{Operation, Request};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;

const COORDINATORS: &str = "config.sharding_configsvr_coordinators";
const KIND: &str = "setUserWriteBlockMode";
/// How long until shards that could not be reached are asked again.
const PAUSE: Duration = Duration::from_millis(500);

/// What is asked of the cluster, as it is kept until every shard has it.
fn to_document(block: Block) -> Document {
    doc! {
        "_id": { "coordinatorType": KIND }, "blockUserWrites": (block.writes), "reason": block.reason_name(),
    }
}

fn from_document(d: &Document) -> Block {
    let writes = d.get_bool("blockUserWrites") == Some(true);
    Block { new_ddl: false, writes, reason: Block::reason_of(d.get_str("reason")) }
}

/// The step of `block` that a shard is asked to take.
fn step(block: Block, phase: BlockPhase) -> Document {
    let reason = Some(block.reason_name().to_string());
    ShardUserWriteBlock { block: block.writes, phase, reason }.with_majority()
}

impl ConfigServer {
    /// [`ClusterUserWriteBlock`]. Returns when every shard does so.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) while something else is being put into force.
    pub async fn set_user_write_block_mode(
        self: &Arc<Self>,
        op: &Operation,
        request: Request<'_>,
    ) -> Result<Document> {
        require_majority(op, ClusterUserWriteBlock::COMMAND)?;
        self.ensure().await?;
        let ClusterUserWriteBlock { block, reason } = ClusterUserWriteBlock::parse(request.body)?;
        let asked = Block { new_ddl: false, writes: block, reason: Block::reason_of(reason.as_deref()) };
        let held = match self.user_writes.clone().try_lock_owned() {
            Ok(held) => held,
            Err(_) if self.begun_block()?.is_some_and(|other| other != asked) => bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "Another conflicting setUserWriteBlockMode operation is in progress"
            ),
            Err(_) => op.interruptible(self.user_writes.clone().lock_owned()).await?,
        };
        self.local.put(COORDINATORS, &to_document(asked)).await?;
        // A client that leaves does not leave the shards in disagreement.
        let driving = runtime::spawn(self.clone().drive_block(asked, held));
        op.interruptible(driving).await?.map_err(|e| err!(INTERNAL_ERROR, "{e}"))??;
        Ok(Document::new())
    }

    fn begun_block(&self) -> Result<Option<Block>> {
        let found = self.local.find_one(COORDINATORS, &doc! { "_id": { "coordinatorType": KIND } })?;
        Ok(found.as_ref().map(from_document))
    }

    /// Takes up what another primary has begun.
    pub async fn resume_user_write_block(self: Arc<Self>) {
        let held = self.user_writes.clone().lock_owned().await;
        if let Ok(Some(asked)) = self.begun_block() {
            // It ends with the reign; the next primary takes it up.
            let _ = self.clone().drive_block(asked, held).await;
        }
    }

    async fn drive_block(self: Arc<Self>, asked: Block, _held: OwnedMutexGuard<()>) -> Result<()> {
        loop {
            match self.block_everywhere(asked).await {
                // Another primary decides now.
                Err(e) if !self.node.is_writable() => return Err(e),
                Err(_) => tokio::time::sleep(PAUSE).await,
                Ok(()) => {
                    let id = doc! { "_id": { "coordinatorType": KIND } };
                    return self.local.delete(COORDINATORS, &id).await.map(drop);
                }
            }
        }
    }
    async fn block_everywhere(&self, asked: Block) -> Result<()> {
        if asked.writes {
            self.node.set_user_write_block(Block { new_ddl: true, ..asked }).await?;
        }
        for phase in [BlockPhase::Prepare, BlockPhase::Complete] {
            if !self.node.is_writable() {
                bail!(NOT_WRITABLE_PRIMARY, "this member does not lead any more");
            }
            let shards = self.catalog().shards();
            let sent = shards.iter().map(|s| self.remote.admin(Target::Host(&s.host), step(asked, phase)));
            try_join_all(sent).await?;
        }
        if !asked.writes {
            self.node.set_user_write_block(Block::default()).await?;
        }
        Ok(())
    }

    /// Has a shard that is being added do as the others. Until the guard is dropped nothing changes of that.
    pub(super) async fn block_new_shard(&self, connection: &str) -> Result<OwnedMutexGuard<()>> {
        let held = self.user_writes.clone().lock_owned().await;
        let asked = self.node.user_writes.block();
        for phase in [BlockPhase::Prepare, BlockPhase::Complete] {
            self.remote.admin(Target::Host(connection), step(asked, phase)).await?;
        }
        Ok(held)
    }
}
