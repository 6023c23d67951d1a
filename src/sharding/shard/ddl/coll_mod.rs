//! `_shardsvrCollMod` and `_shardsvrDropIndexes`: the same change on every shard that may hold the collection.
//!
//! A shard that was not asked yet when the coordinator stops is asked after the restart; the change is written so that
//! asking twice changes nothing more.
//!
//! By the bucketing of a time series routers choose the shard of a measurement, and shards its bucket. So a change of it goes after all
//! else that the command asks for:
//!
//! ```text
//! blockShards      writes wait on every shard
//! updateConfig     the catalog has the new bucketing; versions rise, so routers read it before they aim again
//! updateBuckets    every shard has it
//! unblockShards    writes go on
//! ```
//! Where buckets are sharded by time, a repeated insert may come to another shard than before. So each shard also takes over from the others
//! what sessions have done, while nobody writes.

use super::block::BlockType;
use super::coordinator::{Coordinator, namespace, reply_of, uuid_of};
use super::{Ddl, split};
use crate::config::{required, required_doc};
use crate::driver::phase_of;
use crate::key_pattern::ShardKeyPattern;
use crate::messages::Message;
use crate::messages::ddl::{CollModParticipant, CommitBucketing, DropIndexesParticipant};
use crate::remote::Target;
use crate::routing::table::SERIES;
use document::{Document, Result, Value, bail, codes, doc};
use futures::future::BoxFuture;
use node::operation::WriteConcern;
use node::{Operation, Request, timeseries};
use protocol::ddl::protocols::{CollModPhase, DropIndexesPhase};
use protocol::ddl::{Protocol, protocols};
use query::planner;
use std::collections::BTreeSet;

pub(super) struct CollMod;
pub(super) struct DropIndexes;

impl Coordinator for CollMod {
    fn protocol(&self) -> &'static Protocol {
        &protocols::COLL_MOD
    }
    fn run<'a>(&'a self, ddl: &'a Ddl, phase: &'a str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match phase_of(CollModPhase::named(phase), phase)? {
                CollModPhase::FreezeMigrations => {
                    ddl.freeze_for_change(state).await?;
                    ddl.find_bucketing(state)
                }
                CollModPhase::UpdateShards => {
                    let name = split(namespace(state)).1.to_string();
                    let mut command = own_command(state);
                    if is_rebucketed(state) {
                        command.remove(BUCKETING);
                    }
                    ddl.on_holders(state, CollModParticipant { name, command, histories: None }).await
                }
                CollModPhase::BlockShards
                | CollModPhase::UpdateConfig
                | CollModPhase::UpdateBuckets
                | CollModPhase::UnblockShards
                    if !is_rebucketed(state) =>
                {
                    Ok(())
                }
                CollModPhase::BlockShards => {
                    ddl.block_everywhere(namespace(state), BlockType::Writes, &reason(state)).await
                }
                CollModPhase::UpdateConfig => ddl.commit_bucketing(state).await,
                CollModPhase::UpdateBuckets => ddl.update_buckets(state).await,
                CollModPhase::UnblockShards => {
                    ddl.block_everywhere(namespace(state), BlockType::Unblock, &reason(state)).await
                }
                CollModPhase::AllowMigrations => ddl.thaw(namespace(state), uuid_of(state)).await,
            }
        })
    }
    fn undo<'a>(&'a self, ddl: &'a Ddl, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if is_rebucketed(state) {
                ddl.block_everywhere(namespace(state), BlockType::Unblock, &reason(state)).await?;
            }
            ddl.thaw(namespace(state), uuid_of(state)).await
        })
    }
}

/// Field of collMod that names a bucketing.
const BUCKETING: &str = "timeseries";

/// Whether the coordinator's document has the definition that a time series gets.
fn is_rebucketed(state: &Document) -> bool {
    state.contains_key(SERIES)
}
fn reason(state: &Document) -> Document {
    doc! { "command": "collMod", "ns": namespace(state) }
}

impl Coordinator for DropIndexes {
    fn protocol(&self) -> &'static Protocol {
        &protocols::DROP_INDEXES
    }
    fn refuses_others(&self) -> bool {
        false
    }
    fn run<'a>(&'a self, ddl: &'a Ddl, phase: &'a str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match phase_of(DropIndexesPhase::named(phase), phase)? {
                DropIndexesPhase::FreezeMigrations => {
                    ddl.keep_shard_key_index(state).await?;
                    ddl.freeze_for_change(state).await
                }
                DropIndexesPhase::UpdateShards => {
                    let (name, command) = (split(namespace(state)).1.to_string(), own_command(state));
                    ddl.on_holders(state, DropIndexesParticipant { name, command }).await
                }
                DropIndexesPhase::AllowMigrations => ddl.thaw(namespace(state), uuid_of(state)).await,
            }
        })
    }
    fn undo<'a>(&'a self, ddl: &'a Ddl, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(ddl.thaw(namespace(state), uuid_of(state)))
    }
}

impl Ddl {
    /// Runs `_shardsvrCollMod`.
    pub(super) async fn coll_mod(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        self.check_primary(op, request.db).await?;
        let command = renamed(request, "collMod");
        let uuid = self.tracked_uuid(&ns).await?;
        let fields = doc! { COMMAND: command, "collectionUUID": uuid.map(Value::uuid) };
        let state = self.coordinate(op, &CollMod, &ns, fields).await?;
        Ok(reply_of(&state))
    }

    /// Notes which bucketing is asked for, if that is another than there is.
    ///
    /// # Errors
    /// InvalidOptions (72), and those of the shape.
    fn find_bucketing(&self, state: &mut Document) -> Result<()> {
        state.remove(SERIES);
        let command = own_command(state);
        let asked = command.get_document(BUCKETING).map(Document::to_doc_buf);
        let series = timeseries::of_buckets(&self.role.node.namespaces.slot(namespace(state)));
        let (Some(asked), Some(series)) = (asked, series) else { return Ok(()) };
        let wanted = timeseries::ddl::rebucketed(&series, asked.doc())?;
        if wanted != series.definition() {
            state.insert(SERIES, wanted);
        }
        Ok(())
    }

    async fn commit_bucketing(&self, state: &Document) -> Result<()> {
        let commit = CommitBucketing {
            ns: namespace(state).to_string(),
            uuid: required(state, "collectionUUID", Value::as_uuid)?,
            series: required_doc(state, SERIES)?.clone(),
        };
        self.config(commit.to_document()).await.map(drop)
    }

    async fn update_buckets(&self, state: &mut Document) -> Result<()> {
        let ns = namespace(state).to_string();
        let name = split(&ns).1.to_string();
        let tracked = self.tracked(&ns).await?.unwrap_or_default();
        let by_time = tracked.get_document("key").is_some_and(timeseries::is_by_time);
        let histories = match by_time {
            true => Some(self.all_shards().await?),
            false => None,
        };
        let mut command = doc! { "collMod": name.as_str(), "isTimeseriesNamespace": true };
        command.push(BUCKETING, own_command(state).get(BUCKETING).cloned().unwrap_or(Value::Null));
        let said = state.get("reply").cloned();
        self.on_holders(state, CollModParticipant { name, command, histories }).await?;
        // The reply is of all else that was asked for.
        state.insert("reply", said.unwrap_or(Value::Null));
        Ok(())
    }

    /// Runs `_shardsvrDropIndexes`. An index that the shard key needs stays; one that is being built is there no more.
    ///
    /// # Errors
    /// CannotDropShardKeyIndex (370), IndexNotFound (27).
    pub(super) async fn drop_indexes(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        self.check_primary(op, request.db).await?;
        let command = renamed(request, "dropIndexes");
        let tracked = self.tracked(&ns).await?.unwrap_or_default();
        let uuid = tracked.get("uuid").and_then(Value::as_uuid);
        let wanted = request.body.get_present("collectionUUID").and_then(|v| v.as_uuid());
        if let Some(wanted) = wanted.filter(|w| uuid.or_else(|| self.uuid_here(&ns)) != Some(*w)) {
            return Err(self.role.node.uuid_mismatch(&ns, wanted));
        }
        let mut fields = doc! { COMMAND: command, "collectionUUID": uuid.map(Value::uuid) };
        fields.push("timestamp", tracked.get("timestamp").cloned());
        let index = request.body.get("index").map_or(Value::Null, |v| v.to_value());
        self.check_droppable(&ns, &fields, &index).await?;
        let aborted = self.abort_builds(&ns, &|name| match &index {
            Value::String(one) => one == name || one == "*",
            Value::Array(several) => several.iter().any(|one| one.as_str() == Some(name)),
            _ => false,
        });
        match self.coordinate(op, &DropIndexes, &ns, fields.clone()).await {
            Ok(state) => Ok(reply_of(&state)),
            Err(e) if aborted && e.code == codes::INDEX_NOT_FOUND => {
                self.drop_what_is_built(op, &ns, fields, &index).await
            }
            Err(e) => Err(e),
        }
    }

    /// Refuses what cannot be dropped before builds end for it.
    ///
    /// # Errors
    /// CannotDropShardKeyIndex (370), IndexNotFound (27), those of a node.
    async fn check_droppable(&self, ns: &str, fields: &Document, index: &Value) -> Result<()> {
        let mut state = doc! { "_id": { "namespace": ns } };
        state.push(COMMAND, own_command(fields));
        self.keep_shard_key_index(&mut state).await?;
        let building = self.building(ns);
        let built = match index {
            Value::String(one) if building.contains(one) => return Ok(()),
            Value::Array(several) => {
                let built = |one: &&Value| one.as_str().is_none_or(|one| !building.contains(one));
                Value::Array(several.iter().filter(built).cloned().collect())
            }
            one => one.clone(),
        };
        node::ddl::indexes::check_droppable(&self.role.node.namespaces.slot(ns), &built)
    }

    /// Drops those of several indexes that are there, where the builds of others were aborted.
    async fn drop_what_is_built(
        &self,
        op: &Operation,
        ns: &str,
        mut fields: Document,
        index: &Value,
    ) -> Result<Document> {
        let specs = self.definition_of(ns).map(|(_, specs)| specs).unwrap_or_default();
        let there = |one: &&Value| specs.iter().any(|spec| spec.get("name") == Some(*one));
        let left: Vec<Value> = index.as_array().into_iter().flatten().filter(there).cloned().collect();
        if left.is_empty() {
            return Ok(doc! { "nIndexesWas": specs.len() as i32 });
        }
        let mut command = own_command(&fields);
        command.insert("index", left);
        fields.insert(COMMAND, command);
        let state = self.coordinate(op, &DropIndexes, ns, fields).await?;
        Ok(reply_of(&state))
    }

    /// Refuses to drop the last index that the shard key needs, and spares those that serve it where all are to go. With the
    /// lock held, since another may have gone meanwhile.
    async fn keep_shard_key_index(&self, state: &mut Document) -> Result<()> {
        let ns = namespace(state).to_string();
        let tracked = self.tracked(&ns).await?.unwrap_or_default();
        let Some(key) = tracked.get_document("key") else { return Ok(()) };
        let key = ShardKeyPattern::parse(key)?;
        let Ok((_, specs)) = self.definition_of(&ns) else { return Ok(()) };
        let mut command = own_command(state);
        let named = |s: &Document| s.get_str("name").unwrap_or("").to_string();
        let simple =
            |s: &Document| s.get_document("collation").is_none_or(|c| c.get_str("locale") == Some("simple"));
        let serves = |s: &&Document| simple(s) && s.get_document("key").is_some_and(|k| key.is_prefix_of(k));
        let serving: BTreeSet<String> = specs.iter().filter(serves).map(named).collect();
        let dropped: BTreeSet<String> = match command.get("index") {
            Some(Value::String(s)) if s == "*" => {
                let others = specs.iter().map(named).filter(|n| n != "_id_" && !serving.contains(n));
                command.insert("index", others.collect::<Vec<_>>());
                state.insert(COMMAND, command);
                return Ok(());
            }
            Some(Value::String(s)) => [s.clone()].into(),
            Some(Value::Array(a)) => a.iter().filter_map(|v| v.as_str().map(str::to_string)).collect(),
            Some(Value::Document(d)) => {
                let same = |s: &&Document| s.get_document("key").is_some_and(|k| planner::same_key(k, d));
                specs.iter().filter(same).map(named).collect()
            }
            _ => BTreeSet::new(),
        };
        if !serving.is_empty() && serving.is_subset(&dropped) {
            bail!(
                CANNOT_DROP_SHARD_KEY_INDEX,
                "Cannot drop the only compatible index for the shard key of {ns}"
            );
        }
        Ok(())
    }

    /// A recipient would be given the definition as it was when its migration began.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) when the collection has become another while the lock was waited for.
    pub(super) async fn freeze_for_change(&self, state: &Document) -> Result<()> {
        let ns = namespace(state);
        let now = self.tracked(ns).await?.unwrap_or_default();
        let same = |name: &str| state.get(name).is_none_or(|v| v.is_null() || now.get(name) == Some(v));
        let uuid = now.get("uuid").and_then(Value::as_uuid);
        if uuid != uuid_of(state) || !same("timestamp") {
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "collection {ns} was dropped, renamed or given another shard key"
            );
        }
        self.freeze(ns, uuid_of(state)).await
    }

    /// Has this shard, and every other that owns a chunk, change what it has; the reply is this shard's.
    async fn on_holders(&self, state: &mut Document, change: impl Message) -> Result<()> {
        let ns = namespace(state).to_string();
        let own = self.shard()?;
        let mut shards = vec![own.clone()];
        if self.tracked(&ns).await?.is_some() {
            shards = self.all_shards().await?;
        }
        let mut replies = Vec::new();
        let mut failed = None;
        for (shard, reply) in self.on_each(&shards, split(&ns).0, &change.to_document()).await {
            match reply {
                Ok(reply) => replies.push((shard, reply)),
                // A shard without a chunk may not have the collection, and a repeat finds its indexes gone.
                Err(e) if e.code == codes::NAMESPACE_NOT_FOUND && shards.len() > 1 && shard != own => {}
                Err(e)
                    if e.code == codes::INDEX_NOT_FOUND
                        && state.get_bool("recoveredFromDisk") == Some(true) => {}
                Err(e) => failed = Some(e),
            }
        }
        if let Some(e) = failed {
            return Err(e);
        }
        let reply = self.reply_of_all(replies).await?;
        state.insert("reply", reply);
        Ok(())
    }

    /// This shard's reply, or the first; with everybody's under `raw`.
    pub(super) async fn reply_of_all(&self, replies: Vec<(String, Document)>) -> Result<Document> {
        let (own, several) = (self.shard()?, replies.len() > 1);
        let (mut reply, mut raw) = (Document::new(), Document::new());
        for (shard, mut one) in replies {
            one.0.retain(|(name, _)| !crate::router::body::is_time(name.as_bytes()));
            if shard == own || reply.is_empty() {
                reply = one.clone();
            }
            let host = self.role.remote.connection_string(&shard).await.unwrap_or(shard);
            one.insert("ok", 1.0);
            raw.push(host, one);
        }
        reply.remove("ok");
        if several {
            reply.insert("raw", raw);
        }
        Ok(reply)
    }

    pub(super) async fn on_each(
        &self,
        shards: &[String],
        db: &str,
        command: &Document,
    ) -> Vec<(String, Result<Document>)> {
        let asks = shards.iter().map(|s| async { (s.clone(), self.on_shard(s, db, command.clone()).await) });
        futures::future::join_all(asks).await
    }

    /// Runs [`CollModParticipant`].
    pub(super) async fn coll_mod_here(&self, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        let CollModParticipant { command, histories, .. } = CollModParticipant::parse(request.body)?;
        let own = self.shard()?;
        // Who has nothing of it is told when a chunk comes.
        let others = histories.into_iter().flatten().filter(|shard| *shard != own);
        for shard in others.filter(|_| self.uuid_here(&ns).is_some()) {
            self.copy_sessions(Target::Shard(&shard), &ns).await?;
        }
        let command = command.to_doc_buf();
        let request = Request { body: command.doc(), ..request };
        node::ddl::collections::coll_mod(&self.role.node, &unversioned(), request).await
    }
    /// Runs [`DropIndexesParticipant`].
    pub(super) async fn drop_indexes_here(&self, request: Request<'_>) -> Result<Document> {
        let command = DropIndexesParticipant::parse(request.body)?.command.to_doc_buf();
        let request = Request { body: command.doc(), ..request };
        node::ddl::indexes::drop_indexes(&self.role.node, &unversioned(), request).await
    }
}

/// What a participant's change runs as: the versions of a routed request were checked by the coordinator.
pub(super) fn unversioned() -> Operation {
    let mut op = Operation::internal();
    op.write_concern = WriteConcern::majority();
    op
}

/// The member of a coordinator's document with what a shard is to run.
pub(super) const COMMAND: &str = "participant";

/// What a shard is to run.
pub(super) fn own_command(state: &Document) -> Document {
    state.get_document(COMMAND).cloned().unwrap_or_default()
}

/// The same command under another name, without generic arguments.
pub(super) fn renamed(request: Request<'_>, name: &str) -> Document {
    let mut command = Document::new();
    command.push(name, request.argument().map_or(Value::Null, |v| v.to_value()));
    for e in request.body.iter().skip(1) {
        let own = e.name().starts_with('$') || e.name() == super::fence::MEMBER;
        if !own && !node::generic::is_generic(e.name()) {
            command.push(e.name(), e.value().to_value());
        }
    }
    command
}
