//! `_shardsvrCreateIndexes`: the same indexes on every shard that owns a chunk, and on this one; or on none.
//!
//! What each shard has before is written down first, so that a build that fails on one shard is taken back on all, also after a
//! restart. No migration begins or commits meanwhile: its recipient would be left out.
//!
//! With a commit quorum the shards may wait for their members as long as they like. So the build is aborted, and taken back, when every
//! client that waits for it is interrupted, and when the collection or these indexes are dropped.

use super::coll_mod::{COMMAND, own_command, renamed, unversioned};
use super::coordinator::{Coordinator, namespace, reply_of, uuid_of};
use super::{Ddl, split};
use crate::config::{required, required_str};
use crate::driver::phase_of;
use crate::key_pattern::ShardKeyPattern;
use crate::messages::ddl::{CreateIndexesParticipant, DropIndexesParticipant};
use crate::messages::{Flag, Message};
use crate::remote::Target;
use crate::routing::Routing;
use document::{Document, Result, Value, bail, doc};
use futures::future::BoxFuture;
use node::{Operation, Request};
use protocol::ddl::protocols::CreateIndexesPhase;
use protocol::ddl::{Protocol, protocols};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often shards are told that nobody wants what they build.
const ABORT_EVERY: Duration = Duration::from_millis(200);
/// How long the others wait for a shard that does not reply to that.
const ABORT_WAIT: Duration = Duration::from_secs(1);

pub(super) struct CreateIndexes;

impl Coordinator for CreateIndexes {
    fn protocol(&self) -> &'static Protocol {
        &protocols::CREATE_INDEXES
    }
    fn refuses_others(&self) -> bool {
        false
    }
    fn ends_with_its_clients(&self) -> bool {
        true
    }
    fn run<'a>(&'a self, ddl: &'a Ddl, phase: &'a str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match phase_of(CreateIndexesPhase::named(phase), phase)? {
                CreateIndexesPhase::FreezeMigrations => ddl.freeze_for_change(state).await,
                CreateIndexesPhase::NoteIndexes => ddl.note_indexes(state).await,
                CreateIndexesPhase::BuildIndexes => ddl.build_everywhere(state).await,
                CreateIndexesPhase::AllowMigrations => ddl.thaw(namespace(state), uuid_of(state)).await,
            }
        })
    }
    fn undo<'a>(&'a self, ddl: &'a Ddl, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            ddl.take_indexes_back(state).await?;
            ddl.thaw(namespace(state), uuid_of(state)).await
        })
    }
}

/// Shards that get the indexes, each with the names of those it had.
fn holders(state: &Document) -> Vec<(String, BTreeSet<String>)> {
    let list = state.get_array("holders").into_iter().flatten().filter_map(Value::as_document);
    list.filter_map(|d| Some((d.get_str("shard")?.to_string(), names(d)))).collect()
}
/// The names of the indexes that a `createIndexes` command asks for.
fn index_names(command: &Document) -> BTreeSet<String> {
    let specs = command.get_array("indexes").into_iter().flatten().filter_map(Value::as_document);
    specs.filter_map(|spec| spec.get_str("name").map(str::to_string)).collect()
}
fn names(d: &Document) -> BTreeSet<String> {
    let list = d.get_array("names").into_iter().flatten();
    list.filter_map(|v| v.as_str().map(str::to_string)).collect()
}

impl Ddl {
    /// Runs `_shardsvrCreateIndexes`.
    ///
    /// # Errors
    /// NamespaceNotSharded (118), CannotCreateIndex (67) for a unique index that the shard key does not allow; those of building.
    pub(super) async fn create_indexes(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        self.check_primary(op, request.db).await?;
        let Some(tracked) = self.tracked(&ns).await? else {
            bail!(NAMESPACE_NOT_SHARDED, "Collection {ns} is not tracked")
        };
        let command = renamed(request, "createIndexes");
        if tracked.get_bool("unsplittable") != Some(true) {
            let key = ShardKeyPattern::parse(required(&tracked, "key", Value::as_document)?)?;
            for spec in command.get_array("indexes").into_iter().flatten().filter_map(Value::as_document) {
                key.check_unique(spec, tracked.get("defaultCollation").is_none())?;
            }
        }
        if let Some(reply) = self.all_indexes_are_there(&ns, &tracked, &command).await {
            return Ok(reply);
        }
        let fields = doc! {
            COMMAND: command, "collectionUUID": tracked.get("uuid").cloned(),
            "timestamp": tracked.get("timestamp").cloned(),
        };
        let state = self.coordinate(op, &CreateIndexes, &ns, fields).await?;
        Ok(reply_of(&state))
    }

    /// The reply where every shard has all of the indexes: then no migration need stop for them. What cannot be told is left to
    /// the coordinator.
    async fn all_indexes_are_there(
        &self,
        ns: &str,
        tracked: &Document,
        command: &Document,
    ) -> Option<Document> {
        let shards = self.index_holders(ns, tracked.get("uuid").and_then(Value::as_uuid)).await.ok()?;
        let (db, name) = split(ns);
        let ask = list_of(name, Some(command.clone()));
        let lists = self.on_shards(&shards, db, ask.to_document()).await.ok()?;
        let unchanged =
            |(shard, list): (String, Document)| Some((shard, list.get_document("unchanged")?.clone()));
        let replies: Vec<(String, Document)> = lists.into_iter().map(unchanged).collect::<Option<_>>()?;
        self.reply_of_all(replies).await.ok()
    }

    /// The shards that have the indexes of the incarnation `uuid`: those that own chunks, and this one.
    async fn index_holders(&self, ns: &str, uuid: Option<[u8; 16]>) -> Result<Vec<String>> {
        let table = match self.role.refresh_collection(ns).await? {
            Routing::Sharded(table) if Some(table.uuid) == uuid => table,
            _ => bail!(NAMESPACE_NOT_FOUND, "collection {ns} was dropped or renamed meanwhile"),
        };
        let mut shards: BTreeSet<String> = table.shards().map(|s| s.to_string()).collect();
        // This shard has every collection of its databases.
        if self.uuid_here(ns) == uuid {
            shards.insert(self.shard()?);
        }
        Ok(shards.into_iter().collect())
    }

    async fn note_indexes(&self, state: &mut Document) -> Result<()> {
        let ns = namespace(state).to_string();
        let shards = self.index_holders(&ns, uuid_of(state)).await?;
        let (db, name) = split(&ns);
        let lists = self.on_shards(&shards, db, list_of(name, None).to_document()).await?;
        let holders: Vec<Document> = lists
            .iter()
            .map(|(s, r)| doc! { "shard": s.as_str(), "names": r.get("names").cloned() })
            .collect();
        state.insert("holders", holders);
        Ok(())
    }

    async fn build_everywhere(&self, state: &mut Document) -> Result<()> {
        let shards: Vec<String> = holders(state).into_iter().map(|(shard, _)| shard).collect();
        let replies = self.build_while_wanted(&shards, state).await?;
        let mut done = Vec::new();
        for (shard, reply) in replies {
            done.push((shard, reply?));
        }
        let reply = self.reply_of_all(done).await?;
        state.insert("reply", reply);
        Ok(())
    }

    /// # Errors
    /// IndexBuildAborted (276) when nobody wants it before it begins.
    async fn build_while_wanted(
        &self,
        shards: &[String],
        state: &Document,
    ) -> Result<Vec<(String, Result<Document>)>> {
        let requested = state.get_document("requested").cloned().unwrap_or_default();
        let mut unwanted =
            self.running.unwanted(namespace(state), protocols::CREATE_INDEXES.operation, &requested);
        if *unwanted.borrow_and_update() {
            bail!(INDEX_BUILD_ABORTED, "the indexes are not wanted any more");
        }
        let (db, name) = split(namespace(state));
        let (name, command) = (name.to_string(), Some(own_command(state)));
        let build =
            CreateIndexesParticipant { name, command, only_list: Flag(false), aborted: None }.to_document();
        let mut building = std::pin::pin!(self.on_each(shards, db, &build));
        tokio::select! {
            replies = &mut building => return Ok(replies),
            Ok(_) = unwanted.wait_for(|unwanted| *unwanted) => {}
        }
        loop {
            // More than once: a shard may be about to begin.
            tokio::select! {
                replies = &mut building => return Ok(replies),
                _ = tokio::time::timeout(ABORT_WAIT, self.abort_builds_on(shards, state)) => {}
            }
            tokio::select! {
                replies = &mut building => return Ok(replies),
                () = tokio::time::sleep(ABORT_EVERY) => {}
            }
        }
    }

    /// Has the shards end what they build. A shard that does not hear of it builds on.
    async fn abort_builds_on(&self, shards: &[String], state: &Document) {
        let (db, name) = split(namespace(state));
        let ask = CreateIndexesParticipant {
            name: name.to_string(),
            command: Some(own_command(state)),
            only_list: Flag(false),
            aborted: uuid_of(state),
        };
        let ask = ask.to_document();
        // Not marked as a message of the coordinator: it must pass the one that it ends.
        let asks =
            shards.iter().map(|shard| self.role.remote.run(Target::Shard(shard), db, ask.to_doc_buf()));
        drop(futures::future::join_all(asks).await);
    }

    async fn take_indexes_back(&self, state: &Document) -> Result<()> {
        let (db, name) = split(namespace(state));
        let wanted = index_names(&own_command(state));
        for (shard, before) in holders(state) {
            let list = self.undo_on_shard(&shard, db, list_of(name, None).to_document()).await?;
            let Some(now) = list.as_ref().map(names) else { continue };
            let made: Vec<String> =
                now.into_iter().filter(|n| wanted.contains(n) && !before.contains(n)).collect();
            if !made.is_empty() {
                let command = doc! { "dropIndexes": name, "index": made };
                let drop = DropIndexesParticipant { name: name.to_string(), command };
                self.undo_on_shard(&shard, db, drop.to_document()).await?;
            }
        }
        Ok(())
    }

    /// The names of the indexes of a namespace that are being built.
    pub(super) fn building(&self, ns: &str) -> BTreeSet<String> {
        let all = self.running.requested(ns, protocols::CREATE_INDEXES.operation);
        all.iter().flat_map(|requested| index_names(&own_command(requested))).collect()
    }

    /// Ends builds of indexes of a namespace that are under way, whoever waits for them, where all of their names are among these; whether
    /// there were any.
    pub(super) fn abort_builds(&self, ns: &str, names: &dyn Fn(&str) -> bool) -> bool {
        self.running.end(protocols::CREATE_INDEXES.operation, |of, requested| {
            of == ns && index_names(&own_command(requested)).iter().all(|name| names(name))
        })
    }
    /// As [`Ddl::abort_builds`], of all of a database.
    pub(super) fn abort_builds_of_database(&self, db: &str) {
        self.running.end(protocols::CREATE_INDEXES.operation, |of, _| split(of).0 == db);
    }

    /// Runs [`CreateIndexesParticipant`]. A list is `{names, unchanged?}`, the latter being the reply if there is nothing to build.
    pub(super) async fn create_indexes_here(&self, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        let CreateIndexesParticipant { command, only_list, aborted, .. } =
            CreateIndexesParticipant::parse(request.body)?;
        let command = command.unwrap_or_default();
        if let Some(uuid) = aborted {
            self.role.node.index_builds.abort(uuid, index_names(&command).into_iter().collect());
            return Ok(Document::new());
        }
        let (op, bytes) = (unversioned(), command.to_doc_buf());
        let request = Request { body: bytes.doc(), ..request };
        if !only_list.0 {
            return node::ddl::indexes::create_indexes(&self.role.node, &op, request).await;
        }
        let indexes = self.definition_of(&ns).map(|(_, indexes)| indexes).unwrap_or_default();
        let names = indexes.iter().map(|i| required_str(i, "name").map(str::to_string));
        let mut list = doc! { "names": names.collect::<Result<Vec<_>>>()? };
        if !command.is_empty()
            && let Some(reply) = node::ddl::indexes::nothing_to_build(&self.role.node, &op, request)
        {
            list.push("unchanged", reply);
        }
        Ok(list)
    }
}

/// Asks for the indexes that a shard has.
fn list_of(name: &str, command: Option<Document>) -> CreateIndexesParticipant {
    CreateIndexesParticipant { name: name.to_string(), command, only_list: Flag(true), aborted: None }
}
