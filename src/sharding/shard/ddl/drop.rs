//! `_shardsvrDropCollection`: a collection goes from the catalog first, then from every shard.
//!
//! One that the catalog knows nothing of is dropped in one step. Zones may wait for it there, though: they are a second place, and a
//! coordinator sees to it that both change.

use super::block::BlockType;
use super::coordinator::{Coordinator, namespace, reply_of, uuid_of};
use super::{Ddl, split};
use crate::driver::phase_of;
use crate::messages::ddl::{CommitDropCollection, DropParticipant, ParticipantBlock};
use crate::messages::{Flag, Message};
use document::{Document, Result, Value, bail, doc};
use futures::future::BoxFuture;
use node::{Operation, Request};
use protocol::ddl::protocols::DropPhase;
use protocol::ddl::{Protocol, protocols};
use storage::Collection;

pub(super) struct Drop;

impl Coordinator for Drop {
    fn protocol(&self) -> &'static Protocol {
        &protocols::DROP_COLLECTION
    }
    fn refuses_others(&self) -> bool {
        false
    }
    fn run<'a>(&'a self, ddl: &'a Ddl, phase: &'a str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let ns = namespace(state);
            match phase_of(DropPhase::named(phase), phase)? {
                DropPhase::FreezeCollection => {
                    let ns = ns.to_string();
                    ddl.resolve_drop(&ns, state).await?;
                    ddl.freeze(&ns, uuid_of(state)).await
                }
                DropPhase::EnterCriticalSection => {
                    ddl.block_everywhere(ns, BlockType::ReadsAndWrites, &reason(state)).await
                }
                DropPhase::DropCollection => {
                    ddl.drop_everywhere(ns, uuid_of(state)).await?;
                    match state.get_str(SERIES) {
                        Some(series) => ddl.drop_view_of(series).await,
                        None => Ok(()),
                    }
                }
                DropPhase::ReleaseCriticalSection => {
                    ddl.block_everywhere(ns, BlockType::Unblock, &reason(state)).await
                }
            }
        })
    }
    fn also_locks(&self, state: &Document) -> Vec<String> {
        state.get_str(SERIES).map(str::to_string).into_iter().collect()
    }
    fn undo<'a>(&'a self, ddl: &'a Ddl, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let ns = namespace(state);
            ddl.block_everywhere(ns, BlockType::Unblock, &reason(state)).await?;
            ddl.thaw(ns, uuid_of(state)).await
        })
    }
}

/// Member of the coordinator's document: the time series whose buckets go.
const SERIES: &str = "series";

fn reason(state: &Document) -> Document {
    doc! { "command": "dropCollection", "ns": namespace(state) }
}

impl Ddl {
    /// Runs `_shardsvrDropCollection`. Dropping what is not there succeeds.
    pub(super) async fn drop_collection(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        self.check_primary(op, request.db).await?;
        let wanted = request.body.get_present("collectionUUID").and_then(|v| v.as_uuid());
        let (found, system) = (self.uuid_here(&ns), split(&ns).1.starts_with("system."));
        if system && !matches!(split(&ns).1, "system.js" | "system.profile" | "system.views") {
            bail!(ILLEGAL_OPERATION, "can't drop system collection {ns}");
        }
        let sharded = self.tracked(&ns).await?;
        let now = sharded.as_ref().and_then(|d| d.get("uuid")).and_then(Value::as_uuid).or(found);
        if let Some((_, indexes)) = self.dropping()?.filter(|(uuid, _)| now != Some(*uuid)) {
            // An attempt before has dropped it: what has the name now came later.
            return Ok(node::ddl::collections::dropped_reply(&ns, indexes));
        }
        let tracked = sharded.as_ref().and_then(|d| d.get("uuid")).and_then(Value::as_uuid);
        if let Some(wanted) = wanted
            && tracked.or(found) != Some(wanted)
        {
            return Err(self.role.node.uuid_mismatch(&ns, wanted));
        }
        if tracked.is_none()
            && wanted.is_none()
            && let Some((buckets, uuid)) = self.buckets_beyond_here(&ns).await?
        {
            let reply = doc! { "ns": ns.as_str() };
            let fields = doc! {
                "collectionUUID": uuid.map(Value::uuid), "thisOnly": false, SERIES: ns.as_str(), "reply": reply,
            };
            self.abort_builds(&buckets, &|_| true);
            self.log_change("dropCollection.start", &ns, Document::new()).await;
            return Ok(reply_of(&self.coordinate(op, &Drop, &buckets, fields).await?));
        }
        if tracked.is_none() && !self.has_zones(&ns).await? {
            return self.drop_unsharded(op, &ns, wanted).await;
        }
        let uuid = tracked.or(wanted).map(Value::uuid);
        let mut fields = doc! { "collectionUUID": uuid, "thisOnly": wanted.is_some() };
        let indexes = if tracked.is_none() { self.indexes_here(&ns) } else { Some(0) };
        let reply = indexes.map(|n| node::ddl::collections::dropped_reply(&ns, n));
        fields.push("reply", reply.unwrap_or_default());
        self.abort_builds(&ns, &|_| true);
        self.log_change("dropCollection.start", &ns, Document::new()).await;
        Ok(reply_of(&self.coordinate(op, &Drop, &ns, fields).await?))
    }

    /// What has the name now, with the lock held: it may have become another since the request came.
    async fn resolve_drop(&self, ns: &str, state: &mut Document) -> Result<()> {
        let now = self.tracked_uuid(ns).await?;
        match uuid_of(state).filter(|_| state.get_bool("thisOnly").unwrap_or(false)) {
            Some(wanted) if now.or_else(|| self.uuid_here(ns)) != Some(wanted) => {
                return Err(self.role.node.uuid_mismatch(ns, wanted));
            }
            Some(_) => {}
            None => {
                let uuid = now.or_else(|| self.uuid_here(ns));
                state.insert("collectionUUID", uuid.map(Value::uuid));
            }
        }
        Ok(())
    }

    /// The buckets of a time series whose drop concerns more than this shard's own.
    async fn buckets_beyond_here(&self, ns: &str) -> Result<Option<(String, Option<[u8; 16]>)>> {
        if let Some((buckets, entry)) = self.tracked_buckets(ns).await? {
            return Ok(Some((buckets, entry.get("uuid").and_then(Value::as_uuid))));
        }
        let buckets = self.documents_of(ns.to_string());
        match buckets != ns && self.has_zones(&buckets).await? {
            true => Ok(Some((buckets.clone(), self.uuid_here(&buckets)))),
            false => Ok(None),
        }
    }
    async fn has_zones(&self, ns: &str) -> Result<bool> {
        Ok(!self.role.remote.find_config("tags", doc! { "ns": ns }, None).await?.is_empty())
    }

    async fn drop_unsharded(&self, op: &Operation, ns: &str, wanted: Option<[u8; 16]>) -> Result<Document> {
        let _held = self.locks.take(&[ns], &format!("drop of {ns}")).await?;
        if self.tracked(ns).await?.is_some() {
            bail!(CONFLICTING_OPERATION_IN_PROGRESS, "collection {ns} was sharded meanwhile");
        }
        if self.tracked_buckets(ns).await?.is_some() {
            bail!(CONFLICTING_OPERATION_IN_PROGRESS, "time series {ns} was sharded meanwhile");
        }
        // One that was asked for again drops nothing that has come to have the name since.
        let before = self.dropping()?;
        if before.is_none()
            && let Some((uuid, indexes)) = self.uuid_here(ns).zip(self.indexes_here(ns))
        {
            self.note_dropping(ns, uuid, indexes).await?;
        }
        let only = before.map(|(uuid, _)| uuid).or(wanted);
        let this = |uuid| only.is_none() || uuid == only;
        let dropped = node::ddl::collections::drop_if(&self.role.node, op, ns, false, this).await?;
        match (dropped.or(before.map(|(_, indexes)| indexes)), wanted) {
            (Some(indexes), _) => Ok(node::ddl::collections::dropped_reply(ns, indexes)),
            (None, Some(wanted)) => Err(self.role.node.uuid_mismatch(ns, wanted)),
            (None, None) => Ok(Document::new()),
        }
    }

    pub(super) fn uuid_here(&self, ns: &str) -> Option<[u8; 16]> {
        self.role.node.namespaces.slot(ns).read_unchecked().collection.as_ref().map(Collection::uuid)
    }

    /// How many indexes the collection or view of this name has here.
    fn indexes_here(&self, ns: &str) -> Option<usize> {
        let slot = self.role.node.namespaces.slot(ns);
        let state = slot.read_unchecked();
        let indexes = state.collection.as_ref().map(Collection::indexes_beside);
        indexes.or_else(|| state.view.as_ref().map(|_| 0))
    }

    /// Sets what is blocked on a namespace on every shard.
    pub(super) async fn block_everywhere(&self, ns: &str, block: BlockType, reason: &Document) -> Result<()> {
        let (db, name) = split(ns);
        let (name, block) = (name.to_string(), block.name().to_string());
        let command = ParticipantBlock { name, block, reason: reason.clone(), copy: None };
        let shards = self.all_shards().await?;
        self.on_shards(&shards, db, command.to_document()).await.map(drop)
    }

    /// Removes a collection and its zones from the catalog, and then from every shard.
    pub(super) async fn drop_everywhere(&self, ns: &str, uuid: Option<[u8; 16]>) -> Result<()> {
        let (db, name) = split(ns);
        let commit = CommitDropCollection { ns: ns.to_string(), uuid, untrack: Flag(false) };
        self.config(commit.to_document()).await?;
        let (name, no) = (name.to_string(), Flag(false));
        let command = DropParticipant { name, uuid, only_empty: no, from_migrate: no };
        let shards = self.all_shards().await?;
        self.on_shards_seen_here(&shards, db, command.to_document()).await
    }

    /// Runs `_shardsvrDropCollectionParticipant`: only a collection with this UUID is dropped, and only an empty one if so
    /// asked; without a UUID, a view.
    pub(super) async fn drop_participant(&self, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        let asked = DropParticipant::parse(request.body)?;
        let found = {
            let slot = self.role.node.namespaces.slot(&ns);
            let state = slot.read_unchecked();
            state.collection.as_ref().map(|c| (c.uuid(), c.is_empty()))
        };
        self.role.clear_placement(&ns);
        let goes = match found {
            None => asked.uuid.is_none() && !asked.only_empty.0,
            Some((uuid, empty)) => {
                asked.uuid.is_none_or(|wanted| wanted == uuid) && (empty || !asked.only_empty.0)
            }
        };
        if !goes {
            return Ok(Document::new());
        }
        let op = Operation::internal();
        node::ddl::collections::drop_collection(&self.role.node, &op, &ns, asked.from_migrate.0).await?;
        self.role.node.wait_operation_committed(&op).await?;
        // What was written down of its placement goes, unless it has come to be placed anew.
        if let Ok(routing) = self.role.cache.refresh_collection(&ns).await {
            drop(self.role.persist_forgotten(&ns, &routing).await);
        }
        Ok(Document::new())
    }
}
