//! `_shardsvrMovePrimary`: the unsharded collections of a database move to another shard.
//!
//! ```text
//! blockWrites            requests of the database that write wait here; reads go on
//! clone                  the recipient copies collections, indexes and documents from this shard, with their UUIDs, and
//!                        which statements of retryable writes were executed on them
//! enterCriticalSection   reads wait too
//! commit                 the config server's entry gets the new primary and version
//! clean                  the copies here go
//! exitCriticalSection    whoever waited meets the new version and goes where the data is
//! ```

use super::block::BlockType;
use super::coordinator::{Coordinator, namespace};
use super::locks::Purpose;
use super::{Ddl, split};
use crate::config::{argument, required, required_str};
use crate::driver::phase_of;
use crate::messages::ddl::{
    CloneCatalogData, CommitMovePrimary, Definition, DropParticipant, SessionHistory,
};
use crate::messages::placement::FlushDatabase;
use crate::messages::{self, Field, Flag, Message};
use crate::remote::Target;
use crate::shard::migration::sessions;
use document::{Document, Result, bail, doc, err};
use futures::future::BoxFuture;
use node::write::unit::Origin;
use node::{Operation, Request};
use protocol::ddl::protocols::MovePrimaryPhase;
use protocol::ddl::{Protocol, protocols};
use protocol::version::DatabaseVersion;

pub(super) struct MovePrimary;

impl Coordinator for MovePrimary {
    fn protocol(&self) -> &'static Protocol {
        &protocols::MOVE_PRIMARY
    }
    fn run<'a>(&'a self, ddl: &'a Ddl, phase: &'a str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let db = namespace(state).to_string();
            match phase_of(MovePrimaryPhase::named(phase), phase)? {
                MovePrimaryPhase::CheckPreconditions => ddl.check_move(state).await,
                MovePrimaryPhase::BlockWrites => {
                    ddl.set_block(&db, BlockType::Writes, &reason(state)).await?;
                    ddl.list_what_moves(&db, state).await
                }
                MovePrimaryPhase::Clone => ddl.clone_to_recipient(&db, state).await,
                MovePrimaryPhase::EnterCriticalSection => {
                    ddl.set_block(&db, BlockType::ReadsAndWrites, &reason(state)).await
                }
                MovePrimaryPhase::Commit => ddl.commit_move(&db, state).await,
                MovePrimaryPhase::Clean => ddl.drop_moved(state).await,
                MovePrimaryPhase::ExitCriticalSection => {
                    ddl.set_block(&db, BlockType::Unblock, &reason(state)).await
                }
            }
        })
    }
    fn undo<'a>(&'a self, ddl: &'a Ddl, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            ddl.drop_clones(state).await?;
            ddl.set_block(namespace(state), BlockType::Unblock, &reason(state)).await
        })
    }
}

fn reason(state: &Document) -> Document {
    doc! { "command": "movePrimary", "db": namespace(state), "to": to(state) }
}
fn to(state: &Document) -> &str {
    state.get_str("to").unwrap_or("")
}
/// Members with what the phase that blocks writes has found: what moves; what the catalog tracks; what an `$out` has begun.
const MOVING: &str = "collections";
const TRACKED: &str = "tracked";
const OUTPUTS: &str = "outputs";

/// What is in such a member; nothing before that phase.
fn listed(state: &Document, member: &str) -> Result<Vec<Definition>> {
    let found: Option<Vec<Definition>> = messages::read(state, protocols::MOVE_PRIMARY.operation, member)?;
    Ok(found.unwrap_or_default())
}

impl Ddl {
    /// Runs `_shardsvrMovePrimary`.
    ///
    /// # Errors
    /// InvalidOptions (72), ShardNotFound (70), NamespaceExists (48) when the recipient holds a collection of the same
    /// name.
    pub(super) async fn move_primary(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let db = argument(&request)?;
        if document::is_internal_database(db) {
            bail!(INVALID_OPTIONS, "Can't move primary for {db} database");
        }
        self.check_primary(op, db).await?;
        let body = request.body.to_document();
        let to = required_str(&body, "to")?;
        if to == self.shard()? {
            return Ok(Document::new());
        }
        self.coordinate(op, &MovePrimary, db, doc! { "to": to }).await?;
        Ok(Document::new())
    }

    async fn check_move(&self, state: &mut Document) -> Result<()> {
        let shards = self.role.remote.find_config("shards", Document::new(), None).await?;
        let wanted = to(state).to_string();
        let found =
            shards.iter().find(|s| s.get_str("_id") == Some(&wanted) || s.get_str("host") == Some(&wanted));
        let Some(found) = found else {
            bail!(SHARD_NOT_FOUND, "Requested primary shard {wanted} does not exist")
        };
        if found.get_bool("draining").unwrap_or(false) {
            bail!(SHARD_NOT_FOUND, "Requested primary shard {wanted} is draining");
        }
        state.insert("to", found.get_str("_id").unwrap_or(""));
        let entry = self.database_entry(namespace(state)).await?;
        state.push("expectedDatabaseVersion", entry.version.to_document());
        Ok(())
    }

    /// What moves: every collection and view of the database here that is not tracked, but for what an `$out` is writing: it
    /// begins anew on the new primary. What it writes for a target that moveCollection has placed is tracked, and stays.
    async fn list_what_moves(&self, db: &str, state: &mut Document) -> Result<()> {
        let of_database = doc! { "_id": { "$gt": format!("{db}."), "$lt": format!("{db}/") } };
        let sharded = self.role.remote.find_config("collections", of_database, None).await?;
        let is_sharded = |ns: &str| sharded.iter().any(|d| d.get_str("_id") == Some(ns));
        let (mut collections, mut tracked, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        for slot in self.role.node.namespaces.of_database(db) {
            let latched = slot.read_unchecked();
            let Some(c) = &latched.collection else { continue };
            let indexes: Vec<Document> =
                c.indexes().iter().map(|i| node::ddl::indexes::complete(i.spec())).collect();
            let (ns, uuid, options) = (slot.ns.to_string(), c.uuid(), c.meta().options.clone());
            let definition = Definition { ns, uuid, options, indexes };
            match (is_sharded(&slot.ns), node::read::is_output(&slot.ns)) {
                (true, _) => tracked.push(definition),
                (false, false) => collections.push(definition),
                (false, true) => outputs.push(definition),
            }
        }
        for (member, definitions) in [(MOVING, collections), (TRACKED, tracked), (OUTPUTS, outputs)] {
            messages::set(state, member, &definitions);
        }
        Ok(())
    }

    async fn clone_to_recipient(&self, db: &str, state: &Document) -> Result<()> {
        let own = self.role.remote.connection_string(&self.shard()?).await?;
        let clone = CloneCatalogData {
            db: db.to_string(),
            from: own,
            collections: listed(state, MOVING)?,
            tracked: listed(state, TRACKED)?,
        };
        self.on_shard(to(state), "admin", clone.to_document()).await.map(drop)
    }

    async fn commit_move(&self, db: &str, state: &Document) -> Result<()> {
        let expected = required(state, "expectedDatabaseVersion", DatabaseVersion::from_value)?;
        let commit = CommitMovePrimary { db: db.to_string(), to: to(state).to_string(), expected };
        self.config(commit.to_document()).await?;
        self.log_change("movePrimary.commit", db, doc! { "from": self.shard()?, "to": to(state) }).await;
        // Best effort: the new primary looks at its version when a request brings it.
        let refresh = FlushDatabase::anew(db).to_document();
        drop(self.role.remote.admin(Target::Shard(to(state)), refresh).await);
        Ok(())
    }

    async fn drop_moved(&self, state: &Document) -> Result<()> {
        // What an `$out` has begun for the primary that this shard no longer is can take no place any more.
        for Definition { ns, uuid, .. } in listed(state, MOVING)?.into_iter().chain(listed(state, OUTPUTS)?) {
            if self.uuid_here(&ns) == Some(uuid) {
                let op = Operation::internal();
                node::ddl::collections::drop_collection(&self.role.node, &op, &ns, true).await?;
                self.role.node.wait_operation_committed(&op).await?;
            }
            self.role.clear_placement(&ns);
        }
        self.drop_views(namespace(state)).await
    }

    /// Views are documents of `system.views`, which moved with the rest; their names here are free again.
    async fn drop_views(&self, db: &str) -> Result<()> {
        for slot in self.role.node.namespaces.of_database(db) {
            let mut latched = slot.write_unchecked();
            latched.set_view(None);
        }
        Ok(())
    }

    async fn drop_clones(&self, state: &Document) -> Result<()> {
        for Definition { ns, uuid, .. } in listed(state, MOVING)? {
            let (db, name) = split(&ns);
            let (name, uuid) = (name.to_string(), Some(uuid));
            let command = DropParticipant { name, uuid, only_empty: Flag(false), from_migrate: Flag(true) };
            self.undo_on_shard(to(state), db, command.to_document()).await?;
        }
        Ok(())
    }

    /// Runs [`CloneCatalogData`]. A repeat begins anew.
    pub(super) async fn clone_catalog_data(&self, request: Request<'_>) -> Result<Document> {
        let CloneCatalogData { db, from, collections, tracked } = CloneCatalogData::parse(request.body)?;
        if let Some(other) = collections.iter().chain(&tracked).find(|c| split(&c.ns).0 != db) {
            bail!(INVALID_NAMESPACE, "{} is not of database {db}", other.ns);
        }
        // This shard may have been the primary before, and be about to drop what it gave away then: the same collections.
        let holder = format!("movePrimary of {db} to this shard");
        let _held = self.locks.take_for(Purpose::Brought, &[&db], &holder).await?;
        let names: Vec<String> = collections.iter().map(|c| c.ns.clone()).collect();
        for c in collections {
            self.clone_collection(&from, c).await?;
        }
        for c in tracked {
            self.have_collection(c).await?;
        }
        self.load_views(&db)?;
        self.bring_outcomes(&from, &db).await?;
        Ok(doc! { "clonedColls": names })
    }

    /// The primary has every collection of its databases, those that the catalog tracks too: empty where it owns nothing of
    /// them.
    async fn have_collection(&self, Definition { ns, uuid, options, mut indexes }: Definition) -> Result<()> {
        if self.uuid_here(&ns) != Some(uuid) {
            self.create_here(&ns, uuid, options, true).await?;
        }
        // What is here may be from before some were made: they are built on the owners and the primary.
        indexes.retain(|spec| spec.get_str("name").is_none_or(|name| !self.has_index_here(&ns, name)));
        self.build_listed(&ns, indexes).await
    }

    fn has_index_here(&self, ns: &str, name: &str) -> bool {
        let slot = self.role.node.namespaces.slot(ns);
        let state = slot.read_unchecked();
        state.collection.as_ref().is_some_and(|c| c.indexes().iter().any(|i| i.spec().name() == name))
    }

    /// Builds the indexes that a definition lists.
    pub(super) async fn build_listed(&self, ns: &str, mut specs: Vec<Document>) -> Result<()> {
        let (node, op) = (&self.role.node, Operation::internal_marked(true));
        specs.retain(|s| s.get_str("name") != Some("_id_"));
        if !specs.is_empty() {
            node::ddl::indexes::build_indexes(node, &op, &node.namespaces.slot(ns), &specs, true).await?;
        }
        self.role.node.wait_operation_committed(&op).await
    }

    async fn clone_collection(&self, donor: &str, c: Definition) -> Result<()> {
        let Definition { ns, uuid, options, indexes } = c;
        let ns = ns.as_str();
        let (node, op) = (&self.role.node, Operation::internal_marked(true));
        match self.uuid_here(ns) {
            Some(found) if found != uuid => {
                bail!(
                    NAMESPACE_EXISTS,
                    "Cannot clone {ns}: a collection of this name with another UUID exists here"
                )
            }
            // Left by a try that did not end.
            Some(_) => drop(node::ddl::collections::drop_collection(node, &op, ns, true).await?),
            None => {}
        }
        self.create_here(ns, uuid, options, true).await?;
        self.build_listed(ns, indexes).await?;
        self.copy_documents(donor, ns, &op).await?;
        self.copy_sessions(Target::Host(donor), ns).await?;
        self.role.node.wait_operation_committed(&op).await?;
        self.role.clear_placement(ns);
        Ok(())
    }

    async fn copy_documents(&self, donor: &str, ns: &str, op: &Operation) -> Result<()> {
        let (db, name) = split(ns);
        let (remote, slot) = (&self.role.remote, self.role.node.namespaces.slot(ns));
        let first = doc! { "find": name, "batchSize": 1000, "noCursorTimeout": true };
        let mut reply = remote.run(Target::Host(donor), db, first.to_doc_buf()).await?;
        loop {
            let cursor = reply.doc().get_document("cursor");
            let cursor = cursor.ok_or_else(|| err!(FAILED_TO_PARSE, "the donor answered no cursor"))?;
            let batch =
                cursor.get("firstBatch").or_else(|| cursor.get("nextBatch")).and_then(|v| v.as_array());
            let documents: Vec<_> =
                batch.into_iter().flat_map(|a| a.iter()).filter_map(|e| e.value().as_document()).collect();
            self.role
                .node
                .write(op, &slot, |unit| {
                    for d in &documents {
                        unit.insert(*d, Origin::MIGRATION)?;
                    }
                    Ok(())
                })
                .await?;
            let id = cursor.get_i64("id").unwrap_or(0);
            if id == 0 {
                return Ok(());
            }
            let more = doc! { "getMore": id, "collection": name, "batchSize": 1000 };
            reply = remote.run(Target::Host(donor), db, more.to_doc_buf()).await?;
        }
    }

    /// Writes wait on the donor, so its session table has all there is to know.
    pub(super) async fn copy_sessions(&self, donor: Target<'_>, ns: &str) -> Result<()> {
        let mut after: Option<Document> = None;
        loop {
            let ask = SessionHistory { ns: ns.to_string(), after }.to_document().to_doc_buf();
            let reply = self.role.remote.run(donor, "admin", ask).await?;
            sessions::apply(&self.role, ns, &reply).await?;
            match reply.doc().get_document("next") {
                Some(next) => after = Some(next.to_document()),
                None => return Ok(()),
            }
        }
    }

    fn load_views(&self, db: &str) -> Result<()> {
        for definition in self.role.local.find(&format!("{db}.system.views"), &Document::new())? {
            if let Some((ns, view)) = node::view::View::from_document(&definition) {
                self.role
                    .node
                    .namespaces
                    .slot(&ns)
                    .write_unchecked()
                    .set_view(Some(std::sync::Arc::new(view)));
            }
        }
        Ok(())
    }
}
