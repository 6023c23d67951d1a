//! `_shardsvrUntrackUnsplittableCollection`: a collection that is not sharded leaves the catalog; its data stays.
//!
//! Without an entry a collection is looked for on its database's primary, so it must be there.

use super::block::BlockType;
use super::coordinator::{Coordinator, namespace, uuid_of};
use super::{Ddl, split};
use crate::driver::phase_of;
use crate::messages::ddl::{CommitDropCollection, DropParticipant};
use crate::messages::{Flag, Message};
use document::{Document, Result, Value, bail, doc};
use futures::future::BoxFuture;
use node::{Operation, Request};
use protocol::ddl::protocols::UntrackPhase;
use protocol::ddl::{Protocol, protocols};

pub(super) struct Untrack;

impl Coordinator for Untrack {
    fn protocol(&self) -> &'static Protocol {
        &protocols::UNTRACK
    }
    fn run<'a>(&'a self, ddl: &'a Ddl, phase: &'a str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let phase = phase_of(UntrackPhase::named(phase), phase)?;
            if phase != UntrackPhase::CheckPreconditions && state.get("collectionUUID").is_none() {
                return Ok(());
            }
            let ns = namespace(state).to_string();
            match phase {
                UntrackPhase::CheckPreconditions => ddl.check_untrack(state).await,
                UntrackPhase::EnterCriticalSection => {
                    ddl.block_everywhere(&ns, BlockType::ReadsAndWrites, &reason(state)).await
                }
                UntrackPhase::Commit => {
                    let command = CommitDropCollection { ns, uuid: uuid_of(state), untrack: Flag(true) };
                    ddl.config(command.to_document()).await.map(drop)
                }
                UntrackPhase::DropEmptyCopies => ddl.drop_empty_copies(state).await,
                UntrackPhase::ExitCriticalSection => {
                    ddl.block_everywhere(&ns, BlockType::Unblock, &reason(state)).await
                }
            }
        })
    }
    fn undo<'a>(&'a self, ddl: &'a Ddl, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(
            async move { ddl.block_everywhere(namespace(state), BlockType::Unblock, &reason(state)).await },
        )
    }
}

fn reason(state: &Document) -> Document {
    doc! { "command": "untrackUnshardedCollection", "ns": namespace(state) }
}

impl Ddl {
    /// Runs `_shardsvrUntrackUnsplittableCollection`. One that is not tracked is left as it is.
    ///
    /// # Errors
    /// InvalidNamespace (73) for a sharded collection, OperationFailed (96) for one that is on another shard.
    pub(super) async fn untrack(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let ns = self.documents_of(request.namespace()?);
        self.check_primary(op, request.db).await?;
        self.coordinate(op, &Untrack, &ns, Document::new()).await?;
        Ok(Document::new())
    }

    async fn check_untrack(&self, state: &mut Document) -> Result<()> {
        let ns = namespace(state).to_string();
        let Some(entry) = self.tracked(&ns).await? else { return Ok(()) };
        if entry.get_bool("unsplittable") != Some(true) {
            bail!(INVALID_NAMESPACE, "collection {ns} is sharded and cannot be untracked");
        }
        let of_it = doc! { "uuid": entry.get("uuid").cloned() };
        let chunks = self.role.remote.find_config("chunks", of_it, None).await?;
        let own = self.shard()?;
        if chunks.iter().any(|c| c.get_str("shard") != Some(&own)) {
            bail!(
                OPERATION_FAILED,
                "Unable to untrack {ns}: move it to the primary shard of its database first"
            );
        }
        state.insert("collectionUUID", entry.get("uuid").cloned().unwrap_or(Value::Null));
        Ok(())
    }

    async fn drop_empty_copies(&self, state: &Document) -> Result<()> {
        let (db, name) = split(namespace(state));
        let own = self.shard()?;
        let others: Vec<String> = self.all_shards().await?.into_iter().filter(|s| *s != own).collect();
        let (name, yes) = (name.to_string(), Flag(true));
        let command = DropParticipant { name, uuid: uuid_of(state), only_empty: yes, from_migrate: yes };
        self.on_shards(&others, db, command.to_document()).await.map(drop)
    }
}
