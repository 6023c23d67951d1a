//! `config.shards`: shards come, are drained and go; and the commands that list them.
//!
//! ```text
//! addShard:  hello on the target -> its databases -> _addShard (identity) on it -> it gets the cluster parameters
//!           -> topology lock: check again, commit
//! removeShard, repeated: started -> ongoing (the balancer drains) -> pendingDataCleanup (others do not know yet what
//!           became of transactions that it coordinates) -> completed
//! ```
//! The databases are read before the identity is given and compared under the lock, so a database that a router
//! creates meanwhile is a conflict that addShard sees.

use super::catalog::Database;
use super::chunks::migration::placement_entry;
use super::dedicated::{CONFIG_SHARD, Cleanup, pending_cleanup};
use super::{
    ConfigServer, DATABASES, PLACEMENT_HISTORY, SHARDS, argument, delete, edit, insert, require_majority,
    shard_argument,
};
use crate::remote::{Target, hosts, majority};
use crate::routing::registry::Shard;
use crate::shard::{coordinator, migration};
use document::{Doc, Document, Result, Value, ValueRef, bail, codes, doc, err};
use node::{Operation, Request};
use protocol::version::DatabaseVersion;

/// How long a shard may take to say what it coordinates, in milliseconds: nothing else changes the set of shards meanwhile.
const ASKED_MS: i32 = 10_000;

/// What is known of a node that is to become a shard.
pub(super) struct Candidate {
    pub(super) set: String,
    /// `set/host:port,...` with every member.
    pub(super) connection: String,
    /// Version of the set's configuration that `connection` was read from.
    pub(super) config_version: i64,
    pub(super) databases: Vec<String>,
}

impl ConfigServer {
    /// `{_configsvrAddShard: connection string, name?, maxSize?}` answers `{shardAdded}`. A shard that is there already
    /// under the same set and name is answered again. A shard that holds `maxSize` MiB gets nothing from the balancer.
    ///
    /// # Errors
    /// BadValue (2), IllegalOperation (20), OperationFailed (96), NotWritablePrimary (10107), IncompatibleServerVersion (188).
    pub async fn add_shard(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, "_configsvrAddShard")?;
        let cluster = self.ensure().await?;
        let offered = argument(&request)?;
        let wanted = request.body.get_present("name").map(|v| v.as_str().unwrap_or("").to_string());
        if wanted.as_deref() == Some("") {
            bail!(BAD_VALUE, "shard name cannot be empty");
        }
        if let Some(existing) = self.already_a_shard(offered, wanted.as_deref())? {
            return Ok(doc! { "shardAdded": existing });
        }
        let max_size = request.body.get_present("maxSize").map(|v| v.as_i64().filter(|n| *n >= 0));
        let Some(max_size_mib) = max_size.unwrap_or(Some(0)) else {
            bail!(BAD_VALUE, "maxSize must be a number of megabytes that is not negative");
        };
        let candidate = self.examine(offered).await?;
        let name = wanted.unwrap_or_else(|| candidate.set.clone());
        if name == "config" {
            bail!(BAD_VALUE, "use of shard replica set with name 'config' is not allowed");
        }
        self.check_databases(&candidate, &name)?;
        let identity = doc! {
            "_id": "shardIdentity", "shardName": name.as_str(), "clusterId": cluster,
            "configsvrConnectionString": self.connection_string()?,
        };
        let command = doc! { "_addShard": 1, "shardIdentity": identity, "writeConcern": majority() };
        self.remote.admin(Target::Host(&candidate.connection), command).await.map_err(|e| failed(&e))?;
        let _writes = self.block_new_shard(&candidate.connection).await.map_err(|e| failed(&e))?;
        let _parameters = self.give_parameters(&candidate.connection).await.map_err(|e| failed(&e))?;
        let _lock = self.topology.lock().await;
        self.refuse_during_standstill()?;
        if let Some(existing) = self.already_a_shard(&candidate.connection, Some(&name))? {
            return Ok(doc! { "shardAdded": existing });
        }
        self.check_databases(&candidate, &name)?;
        self.register(&candidate, &name, max_size_mib).await?;
        Ok(doc! { "shardAdded": name })
    }

    /// The name of the shard that these hosts already are.
    fn already_a_shard(&self, offered: &str, wanted: Option<&str>) -> Result<Option<String>> {
        let set = offered.split_once('/').map(|(set, _)| set);
        for shard in self.catalog().shards() {
            let same_set = set.is_some_and(|s| shard.host.split_once('/').is_some_and(|(own, _)| own == s));
            let shared = hosts(offered).any(|h| hosts(&shard.host).any(|own| own == h));
            if same_set || shared {
                if shared && wanted.is_none_or(|w| w == shard.name) && (set.is_none() || same_set) {
                    return Ok(Some(shard.name));
                }
                bail!(
                    ILLEGAL_OPERATION,
                    "'{offered}' is already a member of the existing shard '{}' ({}).",
                    shard.host,
                    shard.name
                );
            }
            if wanted == Some(shard.name.as_str()) {
                bail!(
                    ILLEGAL_OPERATION,
                    "A shard named '{}' containing the replica set '{}' already exists",
                    shard.name,
                    shard.host
                );
            }
        }
        Ok(None)
    }

    /// Asks the node what it is.
    async fn examine(&self, offered: &str) -> Result<Candidate> {
        if hosts(offered).next().is_none() {
            bail!(BAD_VALUE, "'{offered}' is no connection string");
        }
        let target = Target::Host(offered);
        let hello = self.remote.admin(target, doc! { "hello": 1 }).await.map_err(|e| failed(&e))?;
        if hello.get_str("msg") == Some("isdbgrid") {
            bail!(ILLEGAL_OPERATION, "Cannot add {offered} as a shard since it is a mongos");
        }
        if hello.get_i64("maxWireVersion").is_some_and(|v| v < 21) {
            bail!(
                INCOMPATIBLE_SERVER_VERSION,
                "Cannot add {offered} as a shard because it is of an older version"
            );
        }
        let is = |name: &str| hello.get(name).is_some_and(Value::truthy);
        if !is("isWritablePrimary") && !is("ismaster") {
            bail!(
                NOT_WRITABLE_PRIMARY,
                "{offered} does not have a master. If this is a replica set, ensure that it has a healthy primary and that the set has been properly initiated."
            );
        }
        let provided = offered.split_once('/').map(|(set, _)| set);
        let set = match (provided, hello.get_str("setName")) {
            (None, Some(found)) => bail!(
                OPERATION_FAILED,
                "host is part of set {found}; use replica set url format <setname>/<server1>,<server2>, ...."
            ),
            (_, None) => bail!(
                OPERATION_FAILED,
                "host did not return a set name; is the replica set still initializing? {}",
                super::shown(&hello)
            ),
            (Some(given), Some(found)) if given != found => bail!(
                OPERATION_FAILED,
                "the provided connection string ({offered}) does not match the actual set name {found}"
            ),
            (Some(_), Some(found)) => found.to_string(),
        };
        if hello.contains_key("configsvr") {
            bail!(OPERATION_FAILED, "Cannot add {offered} as a shard since it is a config server");
        }
        let members = super::addresses::listed(&hello);
        if let Some(stranger) = hosts(offered).find(|h| !members.contains(h)) {
            bail!(
                OPERATION_FAILED,
                "in seed list {offered}, host {stranger} does not belong to replica set {set}; found {members:?}"
            );
        }
        let connection = format!("{set}/{}", members.join(","));
        let list = doc! { "listDatabases": 1, "nameOnly": true };
        let reply = self.remote.admin(target, list).await.map_err(|e| failed(&e))?;
        let names = reply.get_array("databases").into_iter().flatten();
        let names = names.filter_map(|d| d.as_document()?.get_str("name"));
        let databases = names.filter(|n| !document::is_internal_database(n)).map(str::to_string).collect();
        let config_version = hello.get_i64("setVersion").unwrap_or(1);
        Ok(Candidate { set, connection, config_version, databases })
    }

    fn check_databases(&self, candidate: &Candidate, name: &str) -> Result<()> {
        let known = self.catalog().databases();
        for database in &candidate.databases {
            if let Some(other) = known.iter().find(|d| d.name == *database && d.primary != name) {
                bail!(
                    OPERATION_FAILED,
                    "can't add shard '{}' because a local database '{database}' exists in another {}",
                    candidate.connection,
                    other.primary
                );
            }
        }
        Ok(())
    }

    pub(super) async fn register(&self, candidate: &Candidate, name: &str, max_size_mib: i64) -> Result<()> {
        let topology_time = self.tick();
        let mut shard = doc! {
            "_id": name, "host": candidate.connection.as_str(), "state": 1, "topologyTime": topology_time,
            "replSetConfigVersion": candidate.config_version,
        };
        if max_size_mib > 0 {
            shard.push("maxSize", max_size_mib);
        }
        let mut writes = vec![insert(SHARDS, shard)];
        for database in &candidate.databases {
            if self.catalog().database(database).is_some() {
                continue;
            }
            let timestamp = self.tick();
            let version = DatabaseVersion { uuid: self.node.new_uuid(), timestamp, last_mod: 1 };
            let entry = Database { name: database.clone(), primary: name.to_string(), version };
            writes.push(insert(DATABASES, entry.to_document()));
            let placement =
                placement_entry(self.node.new_object_id(), database, None, timestamp, vec![name.to_string()]);
            writes.push(insert(PLACEMENT_HISTORY, placement));
        }
        self.commit(&writes).await?;
        let details = doc! { "name": name, "host": candidate.connection.as_str() };
        self.log_change("addShard", "", details).await;
        Ok(())
    }

    /// `{_configsvrRemoveShard: name}`, repeated until it answers `state: "completed"`.
    ///
    /// # Errors
    /// ShardNotFound (70), IllegalOperation (20) for the last shard, ZoneStillInUse (163).
    pub async fn remove_shard(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, "_configsvrRemoveShard")?;
        self.ensure().await?;
        let _lock = self.topology.lock().await;
        let shard = self.shard_of_argument(&request)?;
        if shard.name == CONFIG_SHARD {
            bail!(
                ILLEGAL_OPERATION,
                "the config server ceases to be a shard by transitionToDedicatedConfigServer, not by removeShard"
            );
        }
        self.remove(shard).await
    }

    /// Drains the shard and, when it is empty, removes it: one step of that. Under the lock of the topology.
    pub(super) async fn remove(&self, shard: Shard) -> Result<Document> {
        if !shard.draining {
            self.start_draining(&shard).await?;
            let left = self.holdings(&shard.name)?;
            let mut reply = doc! {
                "msg": "draining started successfully", "state": "started", "shard": shard.name.as_str(),
            };
            left.describe_databases(&mut reply);
            return Ok(reply);
        }
        let left = self.all_holdings(&shard).await?;
        if !left.is_empty() {
            let mut reply =
                doc! { "msg": "draining ongoing", "state": "ongoing", "remaining": left.remaining() };
            left.describe_databases(&mut reply);
            return Ok(reply);
        }
        if !left.cleanup.is_done() {
            return Ok(pending_cleanup(&shard.name, &left.cleanup));
        }
        self.forget_shard(&shard).await?;
        Ok(doc! { "msg": "removeshard completed successfully", "state": "completed", "shard": shard.name })
    }

    /// `{_configsvrStartShardDraining: name}`.
    ///
    /// # Errors
    /// As [`ConfigServer::remove_shard`].
    pub async fn start_shard_draining(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, "startShardDraining")?;
        self.ensure().await?;
        let _lock = self.topology.lock().await;
        let shard = self.shard_of_argument(&request)?;
        if !shard.draining {
            self.start_draining(&shard).await?;
        }
        Ok(Document::new())
    }

    /// `{_configsvrStopShardDraining: name}`.
    ///
    /// # Errors
    /// ShardNotFound (70).
    pub async fn stop_shard_draining(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, "stopShardDraining")?;
        self.ensure().await?;
        let _lock = self.topology.lock().await;
        let shard = self.shard_of_argument(&request)?;
        let document = self.catalog().shard_document(&shard.name).unwrap_or_default();
        if document.contains_key("draining") {
            let write = edit(SHARDS, document, |d| drop(d.remove("draining")));
            self.commit(&[write]).await?;
        }
        Ok(Document::new())
    }

    /// `{_configsvrShardDrainingStatus: name}`.
    ///
    /// # Errors
    /// ShardNotFound (70), IllegalOperation (20) when the shard is not draining.
    pub async fn shard_draining_status(&self, request: Request<'_>) -> Result<Document> {
        self.ensure().await?;
        let shard = self.shard_of_argument(&request)?;
        if !shard.draining {
            bail!(ILLEGAL_OPERATION, "Shard {} is not in draining mode", shard.name);
        }
        let left = self.all_holdings(&shard).await?;
        if left.is_empty() && !left.cleanup.is_done() {
            return Ok(doc! { "state": "pendingDataCleanup", "shard": shard.name });
        }
        if left.is_empty() {
            return Ok(doc! { "state": "drainingComplete", "shard": shard.name });
        }
        let mut reply = doc! { "msg": "draining ongoing", "state": "ongoing", "remaining": left.remaining() };
        left.describe_databases(&mut reply);
        Ok(reply)
    }

    /// `{_configsvrCommitShardRemoval: name}`.
    ///
    /// # Errors
    /// ShardNotFound (70), RemoveShardDrainingInProgress (1003141) with the progress, IllegalOperation (20).
    pub async fn commit_shard_removal(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, "commitShardRemoval")?;
        self.ensure().await?;
        let _lock = self.topology.lock().await;
        let shard = self.shard_of_argument(&request)?;
        if !shard.draining {
            bail!(ILLEGAL_OPERATION, "Shard {} is not in draining mode", shard.name);
        }
        let left = self.all_holdings(&shard).await?;
        if !left.is_empty() || !left.cleanup.is_done() {
            let e = err!(REMOVE_SHARD_DRAINING_IN_PROGRESS, "Shard {} is not yet drained", shard.name);
            return Err(e.with_info(doc! { "remaining": left.remaining() }));
        }
        self.forget_shard(&shard).await?;
        Ok(Document::new())
    }

    fn shard_of_argument(&self, request: &Request<'_>) -> Result<Shard> {
        let name = shard_argument(request);
        self.shard_named(name)
            .map_err(|_| err!(SHARD_NOT_FOUND, "Drop of shard {name} failed because it does not exist"))
    }

    async fn start_draining(&self, shard: &Shard) -> Result<()> {
        let others: Vec<Shard> =
            self.catalog().shards().into_iter().filter(|s| s.name != shard.name && !s.draining).collect();
        if others.is_empty() {
            bail!(ILLEGAL_OPERATION, "Operation not allowed because it would remove the last shard");
        }
        for zone in &shard.zones {
            if self.catalog().zone_has_ranges(zone) && !others.iter().any(|s| s.zones.contains(zone)) {
                bail!(
                    ZONE_STILL_IN_USE,
                    "Shard {} is the only shard of zone {zone}, which still has ranges",
                    shard.name
                );
            }
        }
        let _members = self.membership.write().await;
        let document = self.catalog().shard_document(&shard.name).unwrap_or_default();
        self.commit(&[edit(SHARDS, document, |d| d.insert("draining", true))]).await?;
        self.log_change("removeShard.start", "", doc! { "shard": shard.name.as_str() }).await;
        Ok(())
    }

    /// Removes the shard's document; another shard's gets a new topology time, which tells every node to look again.
    async fn forget_shard(&self, shard: &Shard) -> Result<()> {
        let _members = self.membership.write().await;
        self.refuse_during_standstill()?;
        let left = self.holdings(&shard.name)?;
        if !left.is_empty() || !left.cleanup.is_done() {
            bail!(CONFLICTING_OPERATION_IN_PROGRESS, "Shard {} has received data since", shard.name);
        }
        let others = self.catalog().shards();
        let Some(control) = others.iter().find(|s| s.name != shard.name) else {
            bail!(ILLEGAL_OPERATION, "Operation not allowed because it would remove the last shard")
        };
        let document = self.catalog().shard_document(&control.name).unwrap_or_default();
        let told = edit(SHARDS, document, |d| d.insert("topologyTime", self.tick()));
        self.commit(&[delete(SHARDS, Value::from(shard.name.as_str())), told]).await?;
        self.log_change("removeShard", "", doc! { "shard": shard.name.as_str() }).await;
        match shard.name.as_str() {
            CONFIG_SHARD => self.cease_to_be_a_shard().await,
            _ => Ok(()),
        }
    }

    /// What the catalog says that a shard holds, and once that is nothing, what the shard says: of the transactions that it coordinates
    /// another shard may not have heard, whose part would stay prepared for ever, nor of the end of a migration from it, whose range
    /// could never come back there. Transactions that it only takes part in hold its chunks back.
    ///
    /// # Errors
    /// Those of asking the shard: HostUnreachable (6) where it is silent, MaxTimeMSExpired (50) where no majority of it is there.
    async fn all_holdings(&self, shard: &Shard) -> Result<Holdings> {
        let mut left = self.holdings(&shard.name)?;
        if left.is_empty() && shard.name != CONFIG_SHARD {
            for ns in [coordinator::COLLECTION, migration::COORDINATORS] {
                let (db, name) = storage::split_namespace(ns);
                // A deposed primary, which would not know of what its successor coordinates, cannot reply to this.
                let last = doc! { "level": "linearizable" };
                let count = doc! { "count": name, "readConcern": last, "maxTimeMS": ASKED_MS };
                let asked = self.remote.run(Target::Host(&shard.host), db, count.to_doc_buf());
                let reply = self.remote.while_heard(&shard.host, asked).await?;
                let coordinated = reply.get("n").and_then(|n| n.as_i64()).unwrap_or(0);
                left.cleanup.under_way += usize::try_from(coordinated).unwrap_or(0);
            }
        }
        Ok(left)
    }

    fn holdings(&self, shard: &str) -> Result<Holdings> {
        let databases = self.catalog().databases().into_iter().filter(|d| d.primary == shard).map(|d| d.name);
        let mut left = Holdings { databases: databases.collect(), ..Holdings::default() };
        if shard == CONFIG_SHARD {
            left.cleanup = self.cleanup()?;
        }
        for collection in self.catalog().collections() {
            for chunk in self.catalog().chunk_documents(collection.info.uuid) {
                if chunk.get_str("shard") != Some(shard) {
                    continue;
                }
                if collection.is_unsplittable() {
                    left.collections.push(collection.info.ns.clone());
                } else {
                    left.chunks += 1;
                    left.jumbo += chunk.get_bool("jumbo").unwrap_or(false) as i64;
                }
            }
        }
        Ok(left)
    }

    /// `{listShards: 1, filter?: {draining}}` answers `{shards}`.
    pub async fn list_shards(&self, request: Request<'_>) -> Result<Document> {
        self.ensure().await?;
        let draining = draining_wanted(request.body)?;
        let all = self.catalog().shards();
        let shown = all.iter().filter(|s| draining.is_none_or(|d| d == s.draining));
        let shards: Vec<Document> = shown.filter_map(|s| self.catalog().shard_document(&s.name)).collect();
        Ok(doc! { "shards": shards })
    }

    /// `{getShardMap: 1}` answers `{map, hosts, connStrings}`.
    pub async fn shard_map(&self) -> Result<Document> {
        self.ensure().await?;
        let shards: Vec<_> = self.catalog().shards().into_iter().map(|s| (s.name, s.host)).collect();
        Ok(shard_map(&shards, Some(&self.connection_string()?)))
    }
}

/// What the `filter` of listShards wants.
///
/// # Errors
/// TypeMismatch (14), IDLUnknownField (40415).
pub fn draining_wanted(body: Doc<'_>) -> Result<Option<bool>> {
    const FILTER: &str = "listShards.filter";
    let Some(filter) = body.get_present("filter") else { return Ok(None) };
    let Some(filter) = filter.as_document() else {
        return Err(document::wrong_type(FILTER, filter.type_name(), "object"));
    };
    let mut wanted = None;
    for e in filter.iter() {
        match (e.name(), e.value()) {
            ("draining", ValueRef::Null) => {}
            ("draining", ValueRef::Boolean(draining)) => wanted = Some(draining),
            ("draining", other) => {
                return Err(document::wrong_type(&format!("{FILTER}.draining"), other.type_name(), "bool"));
            }
            (name, _) => bail!(IDL_UNKNOWN_FIELD, "BSON field '{FILTER}.{name}' is an unknown field."),
        }
    }
    Ok(wanted)
}

/// The reply of getShardMap for `(name, connection string)` pairs and the config server, which may be among them.
pub fn shard_map(shards: &[(impl AsRef<str>, String)], config: Option<&str>) -> Document {
    let (mut map, mut by_host, mut strings) = (Document::new(), Document::new(), Document::new());
    let named = shards.iter().map(|(name, connection)| (name.as_ref(), connection.as_str()));
    let named = named.filter(|(name, _)| config.is_none() || *name != CONFIG_SHARD);
    for (name, connection) in named.chain(config.map(|connection| (CONFIG_SHARD, connection))) {
        map.push(name, connection);
        strings.push(connection, name);
        for host in hosts(connection) {
            by_host.push(host, name);
        }
    }
    doc! { "map": map, "hosts": by_host, "connStrings": strings }
}

/// What a draining shard still holds.
#[derive(Default)]
struct Holdings {
    chunks: i64,
    jumbo: i64,
    databases: Vec<String>,
    /// Tracked collections that are not sharded: the balancer leaves them where they are.
    collections: Vec<String>,
    /// What is to end first: the config server outlives its being a shard.
    cleanup: Cleanup,
}

impl Holdings {
    fn is_empty(&self) -> bool {
        self.chunks == 0 && self.databases.is_empty() && self.collections.is_empty()
    }
    fn remaining(&self) -> Document {
        doc! {
            "chunks": self.chunks, "dbs": self.databases.len() as i64, "jumboChunks": self.jumbo,
            "collectionsToMove": self.collections.len() as i64,
        }
    }
    fn describe_databases(&self, reply: &mut Document) {
        if !self.databases.is_empty() || !self.collections.is_empty() {
            reply.push("note", "you need to call moveCollection for collectionsToMove and afterwards movePrimary for the dbsToMove");
        }
        reply.push("dbsToMove", self.databases.clone());
        reply.push("collectionsToMove", self.collections.clone());
    }
}

/// A command that failed on the candidate: its own code where that says something to the caller.
fn failed(e: &document::Error) -> document::Error {
    let code = match e.code {
        codes::ILLEGAL_OPERATION | codes::INCOMPATIBLE_SERVER_VERSION | codes::NOT_WRITABLE_PRIMARY => e.code,
        _ => codes::OPERATION_FAILED,
    };
    document::Error::new(
        code,
        format!("failed to run command on the new shard :: caused by :: {}", e.message),
    )
}
