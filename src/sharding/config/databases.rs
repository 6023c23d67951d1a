//! `config.databases`: creating, moving and forgetting databases.

use super::catalog::Database;
use super::chunks::migration::placement_entry;
use super::{ConfigServer, DATABASES, PLACEMENT_HISTORY, TAGS, delete, insert, put, require_majority};
use crate::messages::Message;
use crate::messages::ddl::{CommitDropDatabase, CommitMovePrimary, CreateDatabase};
use crate::routing::registry::Shard;
use document::{Document, Result, Value, bail, doc, err};
use node::{Operation, Request};
use protocol::version::DatabaseVersion;

impl ConfigServer {
    /// Runs a [`CreateDatabase`]. An existing database answers its version; so does one that another router made meanwhile.
    ///
    /// # Errors
    /// InvalidNamespace (73), InvalidOptions (72) for admin and local, DatabaseDifferCase (13297), ShardNotFound (70),
    /// NamespaceExists (48) when it has another primary than the one asked for.
    pub async fn create_database(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, CreateDatabase::COMMAND)?;
        self.ensure().await?;
        let CreateDatabase { db, primary } = CreateDatabase::parse(request.body)?;
        let (name, wanted) = (db.as_str(), primary.as_deref());
        node::request::check_database_name(name)?;
        if matches!(name, "admin" | "local") || (name == "config" && wanted.is_some()) {
            bail!(INVALID_OPTIONS, "Cannot manually create or shard database '{name}'");
        }
        if name == "config" {
            return Ok(doc! { "databaseVersion": fixed_version().to_document() });
        }
        let found = match self.existing_database(name, wanted)? {
            Some(database) => database,
            None => self.create_missing_database(name, wanted).await?,
        };
        Ok(doc! { "databaseVersion": found.version.to_document() })
    }

    fn existing_database(&self, name: &str, wanted: Option<&str>) -> Result<Option<Database>> {
        let Some(found) = self.catalog().database(name) else { return Ok(None) };
        if let Some(wanted) = wanted
            && self.shard_named(wanted)?.name != found.primary
        {
            bail!(NAMESPACE_EXISTS, "database already created on a primary which is different from {wanted}");
        }
        Ok(Some(found))
    }

    async fn create_missing_database(&self, name: &str, wanted: Option<&str>) -> Result<Database> {
        // Asked of the shards before the lock: it is only a preference.
        let primary = match wanted {
            Some(shard) => self.shard_named(shard)?.name,
            None => self.least_loaded_shard().await?,
        };
        let _lock = self.topology.lock().await;
        if let Some(found) = self.existing_database(name, wanted)? {
            return Ok(found);
        }
        if let Some(other) =
            self.catalog().databases().into_iter().find(|d| d.name.eq_ignore_ascii_case(name))
        {
            bail!(
                DATABASE_DIFFER_CASE,
                "can't have 2 databases that just differ on case have: {} want to add: {name}",
                other.name
            );
        }
        if self.catalog().shard(&primary)?.draining {
            bail!(SHARD_NOT_FOUND, "Shard {primary} is currently draining");
        }
        let timestamp = self.tick();
        let version = DatabaseVersion { uuid: self.node.new_uuid(), timestamp, last_mod: 1 };
        let database = Database { name: name.to_string(), primary, version };
        let placement =
            placement_entry(self.node.new_object_id(), name, None, timestamp, vec![database.primary.clone()]);
        self.commit(&[insert(DATABASES, database.to_document()), insert(PLACEMENT_HISTORY, placement)])
            .await?;
        Ok(database)
    }

    /// A shard by name or by connection string, as `primaryShard` and `to` may give it.
    pub fn shard_named(&self, name: &str) -> Result<Shard> {
        let shards = self.catalog().shards();
        let found = shards.into_iter().find(|s| s.is_called(name));
        found.ok_or_else(|| err!(SHARD_NOT_FOUND, "Shard {name} not found"))
    }

    /// The shard with the least data that takes new databases. A shard that does not answer is passed by.
    async fn least_loaded_shard(&self) -> Result<String> {
        let shards: Vec<Shard> = self.catalog().shards().into_iter().filter(|s| !s.draining).collect();
        if let [only] = shards.as_slice() {
            return Ok(only.name.clone());
        }
        let sizes = futures::future::join_all(shards.iter().map(|s| self.data_size_of(s))).await;
        let known = shards.iter().zip(&sizes).filter_map(|(s, size)| Some((size.as_ref().ok()?, &s.name)));
        let best = known.min().map(|(_, name)| name.clone());
        best.or_else(|| shards.first().map(|s| s.name.clone()))
            .ok_or_else(|| err!(SHARD_NOT_FOUND, "Database could not be created: no shards found"))
    }

    async fn data_size_of(&self, shard: &Shard) -> Result<i64> {
        let reply = self.ask_while_heard(&shard.host, doc! { "listDatabases": 1 }).await?;
        let databases = reply.get_array("databases").into_iter().flatten().filter_map(Value::as_document);
        let own =
            databases.filter(|d| d.get_str("name").is_none_or(|db| !document::is_internal_database(db)));
        Ok(own.filter_map(|d| d.get_i64("sizeOnDisk")).sum())
    }

    /// `{_configsvrCommitMovePrimary: db, expectedDatabaseVersion, to}`: the version gets lastMod + 1 and a new timestamp.
    ///
    /// # Errors
    /// NamespaceNotFound (26), ShardNotFound (70), ConflictingOperationInProgress (117) when it is another database.
    pub async fn commit_move_primary(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, CommitMovePrimary::COMMAND)?;
        self.ensure().await?;
        let CommitMovePrimary { db, to, expected } = CommitMovePrimary::parse(request.body)?;
        let (name, to) = (db.as_str(), to.as_str());
        let _lock = self.topology.lock().await;
        let found = self.catalog().database(name);
        let current = found.ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "database {name} not found"))?;
        // Only the primary of the expected version can have moved the database on, and it runs one coordinator at a time. So where the database
        // has gone further since, this move has been made: were that an error, the coordinator would undo it.
        let moves = current.version.last_mod.saturating_sub(expected.last_mod);
        let repeated =
            current.version.uuid == expected.uuid && (moves > 1 || (moves == 1 && current.primary == to));
        if repeated {
            return Ok(Document::new());
        }
        if current.version != expected {
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "The database {name} does not have the version the move of its primary began with"
            );
        }
        if self.catalog().shard(to)?.draining {
            bail!(SHARD_NOT_FOUND, "Shard {to} is currently draining and may not become a primary");
        }
        let timestamp = self.tick();
        let Some(last_mod) = expected.last_mod.checked_add(1) else {
            bail!(OVERFLOW, "the version of database {name} is at its maximum")
        };
        let version = DatabaseVersion { timestamp, last_mod, ..expected };
        let moved = Database { primary: to.to_string(), version, ..current };
        let placement =
            placement_entry(self.node.new_object_id(), name, None, timestamp, vec![to.to_string()]);
        self.commit(&[put(DATABASES, moved.to_document()), insert(PLACEMENT_HISTORY, placement)]).await?;
        Ok(Document::new())
    }

    /// `{_configsvrCommitDropDatabase: db, databaseVersion}`: forgets the database of this version, with the zones in it; one that is gone, or is
    /// another by now, stays as it is.
    ///
    /// # Errors
    /// IllegalOperation (20) while it has sharded collections.
    pub async fn commit_drop_database(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, CommitDropDatabase::COMMAND)?;
        self.ensure().await?;
        let CommitDropDatabase { db, version: expected } = CommitDropDatabase::parse(request.body)?;
        let name = db.as_str();
        let _lock = self.topology.lock().await;
        let Some(current) = self.catalog().database(name) else { return Ok(Document::new()) };
        if current.version.uuid != expected.uuid {
            return Ok(Document::new());
        }
        let prefix = format!("{name}.");
        if let Some(left) = self.catalog().collections().iter().find(|c| c.info.ns.starts_with(&prefix)) {
            bail!(ILLEGAL_OPERATION, "database {name} still has the sharded collection {}", left.info.ns);
        }
        let placement = placement_entry(self.node.new_object_id(), name, None, self.tick(), Vec::new());
        let mut writes = vec![delete(DATABASES, Value::from(name)), insert(PLACEMENT_HISTORY, placement)];
        // Those of collections that never were sharded.
        writes.extend(self.catalog().zones_of_database(name).into_iter().map(|id| delete(TAGS, id)));
        self.commit(&writes).await?;
        self.log_change("dropDatabase", name, Document::new()).await;
        Ok(Document::new())
    }
}

/// The version of `config`, which every cluster has and nobody moves.
fn fixed_version() -> DatabaseVersion {
    DatabaseVersion { uuid: [0; 16], timestamp: document::Timestamp::default(), last_mod: 0 }
}
