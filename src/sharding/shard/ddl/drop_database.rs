//! `_shardsvrDropDatabase`: first every sharded collection, then what is left on every shard, then the database's entry.
//!
//! Nothing is undone: a database that is being dropped is dropped to its end, also after a restart.
//!
//! A run that comes after the commit must not touch a database of the same name that was made since. The commit removes
//! the entry of this version, and only after every participant has dropped what it had. So each run, and each participant,
//! looks first: what it lists while the entry still has this version belongs to this version, and only that is dropped;
//! when the entry is gone or is another, there is nothing left to do.

use super::Ddl;
use super::block::BlockType;
use super::coordinator::{Coordinator, namespace};
use crate::config::catalog::Database;
use crate::config::required;
use crate::driver::phase_of;
use crate::messages::ddl::{CommitDropDatabase, DropDatabaseParticipant};
use crate::messages::placement::FlushDatabase;
use crate::messages::{Field, Flag, Message};
use document::{Document, Result, Value, bail, doc};
use futures::future::BoxFuture;
use node::{Operation, Request};
use protocol::ddl::protocols::DropDatabasePhase;
use protocol::ddl::{Protocol, protocols};
use protocol::version::DatabaseVersion;

pub(super) struct DropDatabase;

impl Coordinator for DropDatabase {
    fn protocol(&self) -> &'static Protocol {
        &protocols::DROP_DATABASE
    }
    fn run<'a>(&'a self, ddl: &'a Ddl, phase: &'a str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let db = namespace(state);
            match phase_of(DropDatabasePhase::named(phase), phase)? {
                DropDatabasePhase::DropCollections => ddl.drop_sharded_of(db, state).await,
                DropDatabasePhase::EnterCriticalSection => {
                    ddl.set_block(db, BlockType::ReadsAndWrites, &reason(state)).await
                }
                DropDatabasePhase::DropDatabase => ddl.drop_rest_of(db, state).await,
                DropDatabasePhase::ExitCriticalSection => {
                    ddl.set_block(db, BlockType::Unblock, &reason(state)).await
                }
            }
        })
    }
}

/// The version of the database when the operation began.
fn dropped(state: &Document) -> Result<DatabaseVersion> {
    required(state, "dropped", DatabaseVersion::from_value)
}
fn reason(state: &Document) -> Document {
    doc! { "command": "dropDatabase", "db": namespace(state) }
}

impl Ddl {
    /// Runs `_shardsvrDropDatabase`.
    ///
    /// # Errors
    /// IllegalOperation (20) for admin, config and local.
    pub(super) async fn drop_database(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let db = request.db;
        if document::is_internal_database(db) {
            bail!(ILLEGAL_OPERATION, "Cannot drop '{db}' database");
        }
        self.check_primary(op, db).await?;
        let Ok(entry) = self.database_entry(db).await else { return Ok(Document::new()) };
        if entry.primary != self.shard()? {
            return Ok(Document::new());
        }
        let fields = doc! { "dropped": entry.version.to_document() };
        self.abort_builds_of_database(db);
        self.log_change("dropDatabase.start", db, Document::new()).await;
        self.coordinate(op, &DropDatabase, db, fields).await?;
        Ok(Document::new())
    }

    /// Whether the catalog still has the database in the version that is to be dropped.
    async fn is_still(&self, db: &str, dropped: Option<DatabaseVersion>) -> Result<bool> {
        let found = self.role.remote.find_config("databases", doc! { "_id": db }, None).await?;
        let found = found.first().and_then(Database::from_document);
        // movePrimary holds the same lock, so the version differs only where the database was made anew.
        Ok(found.is_some_and(|found| dropped.is_none_or(|d| d.uuid == found.version.uuid)))
    }

    async fn drop_sharded_of(&self, db: &str, state: &Document) -> Result<()> {
        if self.is_still(db, Some(dropped(state)?)).await? {
            // Every name of the database lies between these.
            let of_database = doc! { "_id": { "$gt": format!("{db}."), "$lt": format!("{db}/") } };
            for found in self.role.remote.find_config("collections", of_database, None).await? {
                let Some(ns) = found.get_str("_id") else { continue };
                let reason = doc! { "command": "dropDatabase", "ns": ns };
                self.freeze(ns, found.get("uuid").and_then(Value::as_uuid)).await?;
                self.block_everywhere(ns, BlockType::ReadsAndWrites, &reason).await?;
                self.drop_everywhere(ns, found.get("uuid").and_then(Value::as_uuid)).await?;
                self.block_everywhere(ns, BlockType::Unblock, &reason).await?;
            }
        }
        // A restart may have come after the catalog forgot a collection and before its section was left.
        self.leave_sections_of(db).await
    }

    async fn leave_sections_of(&self, db: &str) -> Result<()> {
        let (only_sections, from_migrate) = (Flag(true), Flag(false));
        let command = DropDatabaseParticipant { only_sections, from_migrate, dropped: None };
        let shards = self.all_shards().await?;
        self.on_shards(&shards, db, command.to_document()).await.map(drop)
    }

    async fn drop_rest_of(&self, db: &str, state: &Document) -> Result<()> {
        let version = dropped(state)?;
        if !self.is_still(db, Some(version)).await? {
            return Ok(());
        }
        let shards = self.all_shards().await?;
        let own = self.shard()?;
        let others: Vec<String> = shards.iter().filter(|s| **s != own).cloned().collect();
        // A change stream hears of the drop from the primary alone.
        let command = |from_migrate: bool| {
            let (only_sections, from_migrate) = (Flag(false), Flag(from_migrate));
            DropDatabaseParticipant { only_sections, from_migrate, dropped: Some(version) }.to_document()
        };
        self.on_shard(&own, db, command(false)).await?;
        self.on_shards(&others, db, command(true)).await?;
        self.config(CommitDropDatabase { db: db.to_string(), version }.to_document()).await?;
        for shard in &others {
            // Best effort: a shard that does not hear of it meets a newer version later.
            let command = FlushDatabase::anew(db).to_document();
            drop(self.role.remote.admin(crate::remote::Target::Shard(shard), command).await);
        }
        Ok(())
    }

    /// Runs `_shardsvrDropDatabaseParticipant`.
    pub(super) async fn drop_database_participant(&self, request: Request<'_>) -> Result<Document> {
        let (db, asked) = (request.db, DropDatabaseParticipant::parse(request.body)?);
        if asked.only_sections.0 {
            self.leave_dropped_sections(db).await?;
            return Ok(Document::new());
        }
        let op = Operation::internal();
        // In this order: what is listed now belongs to the version that the catalog has afterwards.
        let contents = node::ddl::collections::contents_of(&self.role.node, db);
        if !self.is_still(db, asked.dropped).await? {
            return Ok(Document::new());
        }
        self.role.node.failpoints.pause_while_set("hangBeforeDroppingListedCollections").await;
        node::ddl::collections::drop_contents(&self.role.node, &op, db, &contents, asked.from_migrate.0)
            .await?;
        self.role.node.wait_operation_committed(&op).await?;
        for slot in self.role.node.namespaces.of_database(db) {
            self.role.clear_placement(&slot.ns);
        }
        self.role.clear_database(db);
        Ok(Document::new())
    }

    async fn leave_dropped_sections(&self, db: &str) -> Result<()> {
        for section in self.role.local.find(super::block::SECTIONS, &Document::new())? {
            let (Some(ns), Some(reason)) = (section.get_str("_id"), section.get_document("reason")) else {
                continue;
            };
            if super::split(ns).0 == db
                && ns.contains('.')
                && reason.get_str("command") == Some("dropDatabase")
            {
                self.set_block(ns, BlockType::Unblock, reason).await?;
            }
        }
        Ok(())
    }
}
