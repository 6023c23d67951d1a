//! `setUserWriteBlockMode` over the cluster.
//!
//! ```text
//! block     own document -> every shard: no change of the catalog begins, those under way end -> every shard: no write
//! unblock   every shard: writes -> every shard: changes of the catalog -> own document
//! ```
//! What was asked for stands in `config.sharding_configsvr_coordinators` until every shard has it: a primary that finds it there takes it
//! up, and it is tried again for as long as a shard cannot be reached. A shard that is added takes over the block of the own document.

use super::{ConfigServer, require_majority};
use crate::remote::{Target, majority};
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

/// What is asked of the cluster.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    block: bool,
    reason: Option<String>,
}

impl Asked {
    fn to_document(&self) -> Document {
        let mut d = doc! { "_id": { "coordinatorType": KIND }, "blockUserWrites": self.block };
        if let Some(reason) = &self.reason {
            d.push("reason", reason.as_str());
        }
        d
    }
    fn parse(d: &Document) -> Asked {
        Asked {
            block: d.get_bool("blockUserWrites") == Some(true),
            reason: d.get_str("reason").map(str::to_string),
        }
    }
    fn phase(&self, phase: &str) -> Document {
        let mut command = doc! { "_shardsvrSetUserWriteBlockMode": 1, "global": self.block, "phase": phase };
        if let Some(reason) = &self.reason {
            command.push("reason", reason.as_str());
        }
        command.push("writeConcern", majority());
        command
    }
}

impl ConfigServer {
    /// `{_configsvrSetUserWriteBlockMode: 1, global, reason?}`. Returns when every shard does so.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) while something else is being put into force.
    pub async fn set_user_write_block_mode(
        self: &Arc<Self>,
        op: &Operation,
        request: Request<'_>,
    ) -> Result<Document> {
        require_majority(op, "_configsvrSetUserWriteBlockMode")?;
        self.ensure().await?;
        let Some(block) = request.body.get("global").and_then(|v| v.as_bool()) else {
            bail!(
                IDL_FAILED_TO_PARSE,
                "BSON field '{}.global' is missing but a required field",
                request.name()
            )
        };
        let asked = Asked { block, reason: request.body.get_str("reason").map(str::to_string) };
        let held = match self.user_writes.clone().try_lock_owned() {
            Ok(held) => held,
            Err(_) if self.begun_block()?.is_some_and(|other| other != asked) => bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "Another conflicting setUserWriteBlockMode operation is in progress"
            ),
            Err(_) => op.interruptible(self.user_writes.clone().lock_owned()).await?,
        };
        self.local.put(COORDINATORS, &asked.to_document()).await?;
        // A client that leaves does not leave the shards in disagreement.
        let driving = runtime::spawn(self.clone().drive_block(asked, held));
        op.interruptible(driving).await?.map_err(|e| err!(INTERNAL_ERROR, "{e}"))??;
        Ok(Document::new())
    }

    fn begun_block(&self) -> Result<Option<Asked>> {
        let found = self.local.find_one(COORDINATORS, &doc! { "_id": { "coordinatorType": KIND } })?;
        Ok(found.as_ref().map(Asked::parse))
    }

    /// Takes up what another primary has begun.
    pub async fn resume_user_write_block(self: Arc<Self>) {
        let held = self.user_writes.clone().lock_owned().await;
        if let Ok(Some(asked)) = self.begun_block() {
            // It ends with the reign; the next primary takes it up.
            let _ = self.clone().drive_block(asked, held).await;
        }
    }

    async fn drive_block(self: Arc<Self>, asked: Asked, _held: OwnedMutexGuard<()>) -> Result<()> {
        loop {
            match self.block_everywhere(&asked).await {
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
    async fn block_everywhere(&self, asked: &Asked) -> Result<()> {
        let reason = Block::reason_of(asked.reason.as_deref());
        if asked.block {
            self.node.set_user_write_block(Block { new_ddl: true, writes: true, reason }).await?;
        }
        for phase in ["prepare", "complete"] {
            if !self.node.is_writable() {
                bail!(NOT_WRITABLE_PRIMARY, "this member does not lead any more");
            }
            let shards = self.catalog().shards();
            let sent = shards.iter().map(|s| self.remote.admin(Target::Host(&s.host), asked.phase(phase)));
            try_join_all(sent).await?;
        }
        if !asked.block {
            self.node.set_user_write_block(Block::default()).await?;
        }
        Ok(())
    }

    /// Has a shard that is being added do as the others. Until the guard is dropped nothing changes of that.
    pub(super) async fn block_new_shard(&self, connection: &str) -> Result<OwnedMutexGuard<()>> {
        let held = self.user_writes.clone().lock_owned().await;
        let block = self.node.user_writes.block();
        let asked =
            Asked { block: block.writes, reason: block.writes.then(|| block.reason_name().to_string()) };
        for phase in ["prepare", "complete"] {
            self.remote.admin(Target::Host(connection), asked.phase(phase)).await?;
        }
        Ok(held)
    }
}
