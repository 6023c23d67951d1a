//! `_shardsvrRenameCollection`.
//!
//! Unsharded source and target live on this shard: the node renames at once. Otherwise both names are blocked on every
//! shard, each shard renames what it has, the catalog follows, the names are free again.

use super::block::BlockType;
use super::coordinator::{Coordinator, namespace};
use super::{Ddl, split};
use crate::config::{required, required_str};
use crate::driver::phase_of;
use crate::messages::ddl::{CommitRename, CreateDatabase, RenameParticipant};
use crate::messages::{Flag, Message};
use document::{Document, Result, Value, bail, codes, doc};
use futures::future::BoxFuture;
use node::ddl::rename::{DropTarget, check_name, check_names};
use node::{Operation, Request};
use protocol::ddl::protocols::RenamePhase;
use protocol::ddl::{Protocol, protocols};

pub(super) struct Rename;

impl Coordinator for Rename {
    fn protocol(&self) -> &'static Protocol {
        &protocols::RENAME_COLLECTION
    }
    fn run<'a>(&'a self, ddl: &'a Ddl, phase: &'a str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match phase_of(RenamePhase::named(phase), phase)? {
                RenamePhase::CheckPreconditions => ddl.check_rename(state).await,
                RenamePhase::FreezeMigrations => {
                    ddl.freeze(namespace(state), uuid_of(state, "sourceUUID")).await?;
                    ddl.freeze(target(state), uuid_of(state, "targetUUID")).await
                }
                RenamePhase::BlockCrudAndRename => {
                    ddl.block_both(state, BlockType::ReadsAndWrites).await?;
                    ddl.check_participants(state).await
                }
                RenamePhase::RenameMetadata => ddl.rename_everywhere(state).await,
                RenamePhase::UnblockCrud => {
                    ddl.block_both(state, BlockType::Unblock).await?;
                    let (from, to) = (namespace(state), target(state));
                    ddl.log_change("renameCollection.end", from, rename_details(from, to)).await;
                    Ok(())
                }
            }
        })
    }
    fn undo<'a>(&'a self, ddl: &'a Ddl, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            ddl.block_both(state, BlockType::Unblock).await?;
            ddl.thaw(namespace(state), uuid_of(state, "sourceUUID")).await?;
            ddl.thaw(target(state), uuid_of(state, "targetUUID")).await
        })
    }
    fn also_locks(&self, state: &Document) -> Vec<String> {
        vec![target(state).to_string()]
    }
}

fn target(state: &Document) -> &str {
    state.get_str("to").unwrap_or("")
}
fn uuid_of(state: &Document, member: &str) -> Option<[u8; 16]> {
    state.get(member).and_then(Value::as_uuid)
}
/// What shards are asked to do, or whether they could.
fn participant(name: &str, state: &Document, check: bool) -> Result<RenameParticipant> {
    Ok(RenameParticipant {
        name: name.to_string(),
        to: target(state).to_string(),
        source: required(state, "sourceUUID", Value::as_uuid)?,
        check: Flag(check),
        from_migrate: Flag(false),
    })
}
/// What the changelog says of a rename.
fn rename_details(from: &str, to: &str) -> Document {
    doc! { "source": from, "destination": to }
}
fn reason(state: &Document) -> Document {
    doc! { "command": "rename", "from": namespace(state), "to": target(state) }
}

impl Ddl {
    /// Runs `_shardsvrRenameCollection`.
    ///
    /// # Errors
    /// IllegalOperation (20), NamespaceNotFound (26), NamespaceExists (48), CommandFailed (125) across databases.
    pub(super) async fn rename_collection(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let from = request.namespace()?;
        let body = request.body.to_document();
        let to = required_str(&body, "to")?.to_string();
        let to_db = split(&to).0;
        check_name(&to)?;
        check_names(&from, &to)?;
        self.check_primary(op, request.db).await?;
        if self.has_renamed(&to)? {
            return Ok(Document::new());
        }
        let drop_target = DropTarget::parse(request.body)?;
        let expected = body.get("collectionUUID").and_then(Value::as_uuid);
        let (source, existing) = (self.tracked(&from).await?, self.tracked(&to).await?);
        self.check_source(&from, &source, expected)?;
        if to_db == request.db {
            drop_target.check(&to, self.standing(&existing, &to))?;
        }
        if source.is_none() && existing.is_none() {
            return self.rename_unsharded(op, &from, &to, expected, drop_target).await;
        }
        if to_db != request.db {
            bail!(COMMAND_FAILED, "Source and destination collections must be on the same database.");
        }
        if body.get("targetMustNotBeSharded").is_some_and(Value::truthy) && existing.is_some() {
            bail!(ILLEGAL_OPERATION, "cannot rename to sharded collection '{to}'");
        }
        let mut fields = doc! { "to": to, "dropTarget": drop_target.drops() };
        if let Some(expected) = expected {
            fields.push("expectedSource", Value::uuid(expected));
        }
        if let DropTarget::Only(expected) = drop_target {
            fields.push("expectedTarget", Value::uuid(expected));
        }
        self.coordinate(op, &Rename, &from, fields).await?;
        Ok(Document::new())
    }

    /// The UUID of what has a name: that of the catalog's entry, or else of the collection here.
    fn standing(&self, tracked: &Option<Document>, ns: &str) -> Option<[u8; 16]> {
        let uuid = tracked.as_ref().and_then(|d| d.get("uuid").and_then(Value::as_uuid));
        uuid.or_else(|| self.uuid_here(ns))
    }

    /// # Errors
    /// CollectionUUIDMismatch (361) when another collection than the one that was named has the name.
    fn check_source(&self, from: &str, tracked: &Option<Document>, expected: Option<[u8; 16]>) -> Result<()> {
        match expected {
            Some(expected) if self.standing(tracked, from) != Some(expected) => {
                Err(self.role.node.uuid_mismatch(from, expected))
            }
            _ => Ok(()),
        }
    }

    async fn rename_unsharded(
        &self,
        op: &Operation,
        from: &str,
        to: &str,
        expected: Option<[u8; 16]>,
        drop_target: DropTarget,
    ) -> Result<Document> {
        let _held = self.locks.take(&[from, to], &format!("rename of {from} to {to}")).await?;
        if self.has_renamed(to)? {
            return Ok(Document::new());
        }
        if self.tracked(from).await?.is_some() || self.tracked(to).await?.is_some() {
            bail!(CONFLICTING_OPERATION_IN_PROGRESS, "a collection was sharded meanwhile");
        }
        self.check_source(from, &None, expected)?;
        if split(from).0 != split(to).0 {
            // It may have moved while the locks were waited for.
            self.check_primary(op, split(from).0).await?;
            self.check_is_here(from)?;
            self.place_here(split(to).0).await?;
        }
        self.log_change("renameCollection.start", from, rename_details(from, to)).await;
        self.note_renaming(from).await?;
        node::ddl::rename::rename(&self.role.node, op, from, to, drop_target).await?;
        self.log_change("renameCollection.end", from, rename_details(from, to)).await;
        Ok(Document::new())
    }

    /// # Errors
    /// NamespaceNotFound (26), CommandNotSupportedOnView (166).
    fn check_is_here(&self, from: &str) -> Result<()> {
        let slot = self.role.node.namespaces.slot(from);
        let state = slot.read_unchecked();
        if state.view.is_some() {
            bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "cannot rename view: {from}");
        }
        match state.collection {
            Some(_) => Ok(()),
            None => bail!(NAMESPACE_NOT_FOUND, "Source collection {from} does not exist"),
        }
    }

    /// A collection that changes its database stays on its shard: a database that does not exist yet is made there. By the shard that has the
    /// collection, since a router may be wrong about which one that is.
    ///
    /// # Errors
    /// CommandFailed (125) for a database of another shard.
    async fn place_here(&self, db: &str) -> Result<()> {
        let create = CreateDatabase { db: db.to_string(), primary: Some(self.shard()?) };
        match self.config(create.to_document()).await {
            Err(e) if e.code == codes::NAMESPACE_EXISTS => {
                bail!(COMMAND_FAILED, "Source and destination collections must be on the same shard.")
            }
            made => made.map(drop),
        }
    }

    /// What has the two names now, with the lock held: either may have become another since the request came.
    async fn check_rename(&self, state: &mut Document) -> Result<()> {
        let (from, to) = (namespace(state).to_string(), target(state).to_string());
        let tracked = self.tracked(&from).await?;
        self.check_source(&from, &tracked, uuid_of(state, "expectedSource"))?;
        let Some(source) = self.standing(&tracked, &from) else {
            bail!(NAMESPACE_NOT_FOUND, "Source collection {from} does not exist")
        };
        let existing = self.standing(&self.tracked(&to).await?, &to);
        if let Some(expected) = uuid_of(state, "expectedTarget") {
            DropTarget::Only(expected).check(&to, existing)?;
        }
        if existing.is_some() && !state.get_bool("dropTarget").unwrap_or(false) {
            bail!(NAMESPACE_EXISTS, "Target collection {to} exists but --dropTarget was not specified");
        }
        self.log_change("renameCollection.start", &from, rename_details(&from, &to)).await;
        state.push("sourceUUID", Value::uuid(source));
        if let Some(existing) = existing {
            state.push("targetUUID", Value::uuid(existing));
        }
        Ok(())
    }

    async fn block_both(&self, state: &Document, block: BlockType) -> Result<()> {
        let (from, to) = (namespace(state), target(state));
        // In one order, so that two renames cannot hold one name each.
        self.block_everywhere(from.min(to), block, &reason(state)).await?;
        self.block_everywhere(from.max(to), block, &reason(state)).await
    }

    /// Every shard that owns some of the source has it: where one has not, the target would be lost for nothing.
    async fn check_participants(&self, state: &Document) -> Result<()> {
        let (db, name) = split(namespace(state));
        let command = participant(name, state, true)?;
        let shards = self.all_shards().await?;
        self.on_shards(&shards, db, command.to_document()).await.map(drop)
    }

    async fn rename_everywhere(&self, state: &Document) -> Result<()> {
        let (from, to) = (namespace(state), target(state));
        let (db, name) = split(from);
        let command = participant(name, state, false)?;
        let shards = self.all_shards().await?;
        self.on_shards_seen_here(&shards, db, command.to_document()).await?;
        let commit = CommitRename {
            ns: from.to_string(),
            to: to.to_string(),
            source: command.source,
            replaced: uuid_of(state, "targetUUID"),
        };
        self.config(commit.to_document()).await.map(drop)
    }

    /// Runs `_shardsvrRenameCollectionParticipant`: renames what this shard has of the source, and drops what it has of
    /// the target. With `check` it changes nothing.
    ///
    /// # Errors
    /// OperationFailed (96) when this shard owns some of the source and does not have it.
    pub(super) async fn rename_participant(&self, request: Request<'_>) -> Result<Document> {
        let from = request.namespace()?;
        let RenameParticipant { to, source, check, from_migrate, .. } =
            RenameParticipant::parse(request.body)?;
        let to = to.as_str();
        self.check_has_source(&from, to, source).await?;
        if check.0 {
            return Ok(Document::new());
        }
        let (node, op) = (&self.role.node, Operation::internal_marked(from_migrate.0));
        if self.uuid_here(&from) == Some(source) {
            node::ddl::rename::rename(node, &op, &from, to, DropTarget::Drop).await?;
        } else if self.uuid_here(to).is_some_and(|u| u != source) {
            node::ddl::collections::drop_collection(node, &op, to, true).await?;
        }
        self.role.node.wait_operation_committed(&op).await?;
        self.role.clear_placement(&from);
        self.role.clear_placement(to);
        Ok(Document::new())
    }

    async fn check_has_source(&self, from: &str, to: &str, source: [u8; 16]) -> Result<()> {
        // Under its new name where this is a repetition.
        if [from, to].iter().any(|ns| self.uuid_here(ns) == Some(source)) {
            return Ok(());
        }
        self.role.require_no_chunks(source, from).await
    }
}
