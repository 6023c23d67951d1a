//! `_shardsvrConvertToCapped`: a collection that the catalog knows and that is not sharded becomes capped.
//!
//! The capped copy is another collection, with a UUID of its own. It takes the name where the documents are: from there on there is no way but
//! forward. Then it does on the database's primary, which has every collection of its databases, and the catalog learns its UUID. Nobody reads
//! or writes in between.

use super::block::BlockType;
use super::coordinator::{Coordinator, namespace, uuid_of};
use super::{Ddl, split};
use crate::config::{required, required_str};
use crate::driver::phase_of;
use crate::messages::ddl::{CommitConversion, ConvertParticipant};
use crate::messages::{Flag, Message};
use document::{Document, Result, Value, bail, doc};
use futures::future::BoxFuture;
use node::ddl::capped;
use node::{Operation, Request};
use protocol::ddl::protocols::ConvertPhase;
use protocol::ddl::{Protocol, protocols};

pub(super) struct ConvertToCapped;

impl Coordinator for ConvertToCapped {
    fn protocol(&self) -> &'static Protocol {
        &protocols::CONVERT_TO_CAPPED
    }
    fn run<'a>(&'a self, ddl: &'a Ddl, phase: &'a str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let ns = namespace(state).to_string();
            match phase_of(ConvertPhase::named(phase), phase)? {
                ConvertPhase::CheckPreconditions => ddl.check_conversion(state).await,
                ConvertPhase::FreezeMigrations => ddl.freeze(&ns, uuid_of(state)).await,
                ConvertPhase::BlockCrud => {
                    ddl.block_everywhere(&ns, BlockType::ReadsAndWrites, &reason(state)).await
                }
                ConvertPhase::ConvertCollection => {
                    let owner = required_str(state, "dataShard")?;
                    ddl.on_shard(owner, split(&ns).0, message(state, false)?).await.map(drop)
                }
                ConvertPhase::Commit => {
                    ddl.convert_copies(state).await?;
                    let (uuid, new) = (required(state, "collectionUUID", Value::as_uuid)?, new_uuid(state)?);
                    ddl.config(CommitConversion { ns, uuid, new }.to_document()).await.map(drop)
                }
                ConvertPhase::UnblockCrud => {
                    ddl.block_everywhere(&ns, BlockType::Unblock, &reason(state)).await
                }
            }
        })
    }
    fn undo<'a>(&'a self, ddl: &'a Ddl, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let ns = namespace(state);
            ddl.block_everywhere(ns, BlockType::Unblock, &reason(state)).await?;
            ddl.thaw(ns, uuid_of(state)).await
        })
    }
}

fn reason(state: &Document) -> Document {
    doc! { "command": "convertToCapped", "ns": namespace(state) }
}
/// What shards are asked to do.
fn message(state: &Document, from_migrate: bool) -> Result<Document> {
    let convert = ConvertParticipant {
        name: split(namespace(state)).1.to_string(),
        size: required(state, "size", Value::as_i64)?,
        uuid: required(state, "collectionUUID", Value::as_uuid)?,
        new: new_uuid(state)?,
        from_migrate: Flag(from_migrate),
    };
    Ok(convert.to_document())
}
fn new_uuid(state: &Document) -> Result<[u8; 16]> {
    required(state, "newUUID", Value::as_uuid)
}

impl Ddl {
    /// Runs `_shardsvrConvertToCapped`.
    ///
    /// # Errors
    /// IllegalOperation (20) for a sharded collection, InvalidOptions (72), BadValue (2) for a size that is none.
    pub(super) async fn convert_to_capped(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        self.check_primary(op, request.db).await?;
        let size = capped::size_of(request.body)?;
        self.coordinate(op, &ConvertToCapped, &ns, doc! { "size": size }).await?;
        Ok(Document::new())
    }

    async fn check_conversion(&self, state: &mut Document) -> Result<()> {
        let ns = namespace(state).to_string();
        capped::check_convertible(&ns)?;
        let Some(entry) = self.tracked(&ns).await? else {
            bail!(CONFLICTING_OPERATION_IN_PROGRESS, "collection {ns} was dropped or untracked meanwhile")
        };
        if entry.get_bool("unsplittable") != Some(true) {
            bail!(ILLEGAL_OPERATION, "can't do command: convertToCapped on sharded collection: {ns}");
        }
        let uuid = entry.get("uuid").cloned();
        let chunks = self.role.remote.find_config("chunks", doc! { "uuid": uuid.clone() }, None).await?;
        let owner = chunks.first().and_then(|c| c.get_str("shard")).unwrap_or_default();
        state.insert("dataShard", owner);
        state.insert("collectionUUID", uuid.unwrap_or(Value::Null));
        state.insert("newUUID", Value::uuid(self.role.node.new_uuid()));
        Ok(())
    }

    /// Where there are no documents.
    async fn convert_copies(&self, state: &Document) -> Result<()> {
        let owner = required_str(state, "dataShard")?;
        let others: Vec<String> = self.all_shards().await?.into_iter().filter(|s| s != owner).collect();
        self.on_shards(&others, split(namespace(state)).0, message(state, true)?).await.map(drop)
    }

    /// Runs `_shardsvrConvertToCappedParticipant`: what this shard has of the collection becomes capped, under another UUID.
    ///
    /// # Errors
    /// OperationFailed (96) when this shard owns the collection and does not have it.
    pub(super) async fn convert_participant(&self, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        let asked = ConvertParticipant::parse(request.body)?;
        let (node, op) = (&self.role.node, Operation::internal_marked(asked.from_migrate.0));
        match self.uuid_here(&ns) {
            Some(here) if here == asked.new => return Ok(Document::new()),
            Some(here) if here == asked.uuid => {
                capped::convert(node, &op, &ns, asked.size, Some(asked.new)).await?;
            }
            _ => self.role.require_no_chunks(asked.uuid, &ns).await?,
        }
        node.wait_operation_committed(&op).await?;
        self.role.clear_placement(&ns);
        Ok(Document::new())
    }
}
