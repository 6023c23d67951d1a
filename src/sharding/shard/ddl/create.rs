//! `_shardsvrCreateCollection`: shardCollection.
//!
//! ```text
//! checkPreconditions              key, options, indexes; already sharded the same way: done
//! enterCriticalSection            nobody writes to or reads the collection on the primary; UUID and chunks are chosen
//! createCollectionOnParticipants  collection and indexes here, and on every shard that gets a chunk
//! commitOnShardingCatalog         the config server's documents, at once
//! setPostCommitMetadata           the owners look at their placement
//! exitCriticalSection             placement forgotten here; the next request makes this shard ask
//! ```

use super::block::BlockType;
use super::coordinator::{Coordinator, namespace, reply_of};
use super::distribution::{Wanted, first_chunks};
use super::timeseries::SERIES_KEY;
use super::{Ddl, split, timeseries};
use crate::config::{argument, required, shown};
use crate::driver::phase_of;
use crate::key_pattern::ShardKeyPattern;
use crate::messages::ddl::{CommitCreateCollection, CreateParticipant, DropParticipant, FirstChunk};
use crate::messages::placement::FlushRoutingTable;
use crate::messages::{self, Flag, Message};
use crate::remote::Target;
use crate::routing::table::SERIES;
use crate::shard::migration::range::{Position, walk_records};
use document::{Document, Error, Result, Value, bail, doc, err};
use futures::future::BoxFuture;
use node::{Node, Operation, Request};
use protocol::ddl::protocols::CreatePhase;
use protocol::ddl::{Protocol, protocols};
use std::collections::BTreeSet;
use storage::{Collection, CollectionSnapshot, CollectionView, IndexSpec};

pub(super) struct Create;

/// Members of the request that are no options of the collection.
const OWN: &[&str] = &[
    "_shardsvrCreateCollection",
    "shardKey",
    "unique",
    "numInitialChunks",
    "presplitHashedZones",
    "collectionUUID",
    "implicitlyCreateIndex",
    "enforceUniquenessCheck",
    "skipHashedShardKeyIndexCreation",
    SERIES_KEY,
    SERIES,
    "unsplittable",
    "dataShard",
    "registerExistingCollectionInGlobalCatalog",
    "collation",
    "idIndex",
    "$db",
];

impl Coordinator for Create {
    fn protocol(&self) -> &'static Protocol {
        &protocols::CREATE_COLLECTION
    }
    fn run<'a>(&'a self, ddl: &'a Ddl, phase: &'a str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match phase_of(CreatePhase::named(phase), phase)? {
                CreatePhase::CheckPreconditions => ddl.check_shard_collection(state).await,
                CreatePhase::EnterCriticalSection => ddl.prepare_shard_collection(state).await,
                CreatePhase::CreateOnParticipants => ddl.create_everywhere(state).await,
                CreatePhase::CommitOnShardingCatalog => ddl.commit_shard_collection(state).await,
                CreatePhase::SetPostCommitMetadata => ddl.tell_owners(state).await,
                CreatePhase::ExitCriticalSection => {
                    ddl.set_block(namespace(state), BlockType::Unblock, &reason(state)).await
                }
            }
        })
    }
    fn undo<'a>(&'a self, ddl: &'a Ddl, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            ddl.drop_what_was_created(state).await?;
            ddl.set_block(namespace(state), BlockType::Unblock, &reason(state)).await
        })
    }
    fn also_locks(&self, state: &Document) -> Vec<String> {
        timeseries::also_locked(namespace(state), request(state))
    }
}

fn reason(state: &Document) -> Document {
    doc! { "command": "shardCollection", "ns": namespace(state) }
}
fn request(state: &Document) -> &Document {
    static EMPTY: Document = Document(Vec::new());
    state.get_document("request").unwrap_or(&EMPTY)
}
fn key(state: &Document) -> Result<ShardKeyPattern> {
    ShardKeyPattern::parse(required(request(state), "shardKey", Value::as_document)?)
}
fn flag(d: &Document, name: &str, default: bool) -> bool {
    d.get_present(name).map_or(default, Value::truthy)
}
fn uuid_of(state: &Document) -> Result<[u8; 16]> {
    required(state, "collectionUUID", Value::as_uuid)
}
/// The first chunks; none of a collection that is sharded already.
fn chunks_of(state: &Document) -> Result<Vec<FirstChunk>> {
    let chosen: Option<_> = messages::read(state, protocols::CREATE_COLLECTION.operation, "chunks")?;
    Ok(chosen.unwrap_or_default())
}

impl Ddl {
    /// Runs `_shardsvrCreateCollection`; answers `{collectionUUID, collectionVersion}`. Without a shard key it makes an
    /// unsharded collection here.
    pub(super) async fn create_collection(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        self.check_primary(op, request.db).await?;
        let body = request.body.to_document();
        if body.get_present("shardKey").is_none() {
            return self.create_unsharded(op, &ns, &body).await;
        }
        check_arguments(&ns, &body)?;
        argument(&request)?;
        let (ns, body) = self.series_request(op, &ns, &body).await?.unwrap_or((ns, body));
        let alone = self.tracked(&ns).await?.filter(|d| d.get_bool("unsplittable") == Some(true));
        if let Some(alone) = alone.filter(|_| !flag(&body, "unsplittable", false)) {
            return self.shard_tracked(op, &ns, body, &alone).await;
        }
        let kept =
            body.into_iter().filter(|(name, _)| !node::generic::is_generic(name) || name == "collation");
        let state = self.coordinate(op, &Create, &ns, doc! { "request": kept.collect::<Document>() }).await?;
        Ok(reply_of(&state))
    }

    /// Shards a tracked collection, which may be on any shard: its copy is sharded.
    async fn shard_tracked(
        &self,
        op: &Operation,
        ns: &str,
        body: Document,
        tracked: &Document,
    ) -> Result<Document> {
        let pattern = ShardKeyPattern::parse(required(&body, "shardKey", Value::as_document)?)?;
        if let Some(default) = tracked.get_document("defaultCollation")
            && body.get_present("collation").is_none()
        {
            return Err(collation_missing(default));
        }
        let mut wanted = doc! { "key": pattern.document().clone() };
        let passed = [
            "unique",
            "collectionUUID",
            "implicitlyCreateIndex",
            "enforceUniquenessCheck",
            SERIES,
            SERIES_KEY,
        ];
        for name in passed {
            if let Some(value) = body.get_present(name) {
                wanted.push(name, value.clone());
            }
        }
        match body.get_present("numInitialChunks").filter(|n| n.as_i64() != Some(0)) {
            Some(n) => wanted.push("numInitialChunks", n.clone()),
            None if !pattern.is_hashed_prefix() => wanted.push("numInitialChunks", 1),
            None => {}
        }
        let fields = doc! { "provenance": "shardCollection", "request": wanted };
        self.coordinate(op, &super::reshard::Reshard, ns, fields).await?;
        let uuid = self.tracked_uuid(ns).await?;
        Ok(doc! { "collectionUUID": uuid.map(Value::uuid) })
    }

    async fn create_unsharded(&self, op: &Operation, ns: &str, body: &Document) -> Result<Document> {
        let _held = self.locks.take(&[ns], &format!("create of {ns}")).await?;
        if self.tracked(ns).await?.is_some() {
            bail!(NAMESPACE_EXISTS, "namespace {ns} already exists, but is sharded");
        }
        let mut options = collection_options(body);
        if let Some(collation) = body.get_present("collation") {
            options.push("collation", collation.clone());
        }
        node::ddl::collections::create_collection(&self.role.node, op, ns, options, None).await?;
        let uuid = self.local_uuid(ns);
        Ok(uuid.map_or_else(Document::new, |u| doc! { "collectionUUID": Value::uuid(u) }))
    }

    fn local_uuid(&self, ns: &str) -> Option<[u8; 16]> {
        self.role.node.namespaces.slot(ns).read_unchecked().collection.as_ref().map(Collection::uuid)
    }

    /// The first phase: refuses what cannot be sharded, and finds what is sharded the same way already.
    async fn check_shard_collection(&self, state: &mut Document) -> Result<()> {
        let ns = namespace(state).to_string();
        let pattern = key(state)?;
        let body = &request(state).clone();
        if let Some(existing) = self.tracked(&ns).await? {
            let same = existing.get_document("key") == Some(pattern.document())
                && existing.get_bool("unsplittable").unwrap_or(false) == flag(body, "unsplittable", false)
                && existing.get_bool("unique").unwrap_or(false) == flag(body, "unique", false);
            if !same {
                bail!(
                    ALREADY_INITIALIZED,
                    "sharding already enabled for collection {ns} with options {}",
                    document::shell::document(&existing)
                );
            }
            state.insert("alreadySharded", true);
        }
        self.check_buckets(&ns, body)?;
        let wanted = body.get("collectionUUID").and_then(Value::as_uuid);
        if let (Some(wanted), found) = (wanted, self.local_uuid(&ns))
            && found != Some(wanted)
        {
            return Err(self.role.node.uuid_mismatch(&ns, wanted));
        }
        if self.all_shards().await?.is_empty() {
            bail!(SHARD_NOT_FOUND, "No shards found");
        }
        check_indexes(&self.role.node, &ns, &pattern, body).await?;
        let details = doc! { "shardKey": pattern.document().clone(), "collection": ns.as_str(), "primary": self.shard()? };
        self.log_change("shardCollection.start", &ns, details).await;
        Ok(())
    }

    /// Blocks the collection, then looks at it again and decides what will be made.
    async fn prepare_shard_collection(&self, state: &mut Document) -> Result<()> {
        let ns = namespace(state).to_string();
        if flag(state, "alreadySharded", false) {
            return Ok(());
        }
        self.set_block(&ns, BlockType::ReadsAndWrites, &reason(state)).await?;
        let pattern = key(state)?;
        check_indexes(&self.role.node, &ns, &pattern, request(state)).await?;
        if state.contains_key("collectionUUID") {
            return Ok(());
        }
        let (existing, empty) = {
            let slot = self.role.node.namespaces.slot(&ns);
            let latched = slot.read_unchecked();
            let c = latched.collection.as_ref();
            (c.map(Collection::uuid), c.is_none_or(Collection::is_empty))
        };
        let shards = self.role.remote.find_config("shards", Document::new(), Some(doc! { "_id": 1 })).await?;
        let usable: Vec<String> = shards
            .iter()
            .filter(|s| !s.get_bool("draining").unwrap_or(false))
            .filter_map(|s| s.get_str("_id").map(str::to_string))
            .collect();
        let zones = self.zones_of(&ns, &pattern, &shards).await?;
        let primary = self.shard()?;
        let chunks = match flag(request(state), "unsplittable", false) {
            true => vec![self.whole_on(request(state).get_str("dataShard"), &pattern, &usable, empty)?],
            false => first_chunks(&Wanted {
                key: &pattern,
                empty,
                chunks: request(state).get_i64("numInitialChunks").unwrap_or(0),
                primary: &primary,
                shards: &usable,
                zones: &zones,
                presplit: flag(request(state), "presplitHashedZones", false),
            })?,
        };
        state.push("createdHere", existing.is_none());
        state.push("collectionUUID", Value::uuid(existing.unwrap_or_else(|| self.role.node.new_uuid())));
        messages::set(state, "chunks", &chunks);
        Ok(())
    }

    /// The only chunk of a collection that is tracked and not sharded.
    fn whole_on(
        &self,
        shard: Option<&str>,
        key: &ShardKeyPattern,
        usable: &[String],
        empty: bool,
    ) -> Result<FirstChunk> {
        let own = self.shard()?;
        let shard = shard.unwrap_or(&own).to_string();
        if !usable.contains(&shard) {
            bail!(SHARD_NOT_FOUND, "Shard {shard} does not exist or is draining");
        }
        if shard != own && !empty {
            bail!(NAMESPACE_EXISTS, "the collection exists already, and not on shard {shard}");
        }
        Ok(FirstChunk { min: key.global_min(), max: key.global_max(), shard })
    }

    /// Zone ranges with the shards of each, extended to full keys.
    async fn zones_of(
        &self,
        ns: &str,
        key: &ShardKeyPattern,
        shards: &[Document],
    ) -> Result<Vec<(Document, Document, Vec<String>)>> {
        let tags = self.role.remote.find_config("tags", doc! { "ns": ns }, Some(doc! { "min": 1 })).await?;
        let mut zones = Vec::new();
        for tag in &tags {
            let (min, max) = zone_bounds(ns, key, tag)?;
            let zone = tag.get("tag");
            let has = |s: &&Document| s.get_array("tags").is_some_and(|t| t.iter().any(|v| Some(v) == zone));
            let owners =
                shards.iter().filter(has).filter_map(|s| s.get_str("_id").map(str::to_string)).collect();
            zones.push((min, max, owners));
        }
        Ok(zones)
    }

    async fn create_everywhere(&self, state: &Document) -> Result<()> {
        if flag(state, "alreadySharded", false) {
            return Ok(());
        }
        let ns = namespace(state);
        let (uuid, pattern, body) = (uuid_of(state)?, key(state)?, request(state));
        let mut options = collection_options(body);
        // A sharded collection has none of its own.
        if let Some(collation) = body.get_present("collation").filter(|_| flag(body, "unsplittable", false)) {
            options.push("collation", collation.clone());
        }
        self.create_here(ns, uuid, options, false).await?;
        self.index_here(ns, &pattern, body).await?;
        let (options, indexes) = self.definition_of(ns)?;
        let (db, name) = split(ns);
        let (name, options, indexes) = (name.to_string(), Some(options), Some(indexes));
        let command = CreateParticipant { name, uuid, options, indexes };
        let others: Vec<String> = self.owners(state)?.into_iter().collect();
        self.on_shards(&others, db, command.to_document()).await.map(drop)
    }

    /// Owners of the first chunks other than this shard.
    fn owners(&self, state: &Document) -> Result<BTreeSet<String>> {
        let own = self.shard()?;
        Ok(chunks_of(state)?.into_iter().map(|c| c.shard).filter(|s| *s != own).collect())
    }

    /// Makes the collection on this shard with this UUID; an empty one with another UUID gives way.
    ///
    /// # Errors
    /// InvalidUUID (207) when a filled collection of this name has another UUID.
    pub(super) async fn create_here(
        &self,
        ns: &str,
        uuid: [u8; 16],
        options: Document,
        from_migrate: bool,
    ) -> Result<()> {
        let (node, op) = (&self.role.node, Operation::internal_marked(from_migrate));
        let existing = {
            let slot = node.namespaces.slot(ns);
            let state = slot.read_unchecked();
            state.collection.as_ref().map(|c| (c.uuid(), c.is_empty()))
        };
        match existing {
            Some((found, _)) if found == uuid => return Ok(()),
            Some((_, true)) => {
                node::ddl::collections::drop_collection(node, &op, ns, true).await?;
            }
            Some(_) => bail!(INVALID_UUID, "collection {ns} exists with another UUID and holds documents"),
            None => {}
        }
        node::ddl::collections::create_collection(node, &op, ns, options, Some(uuid)).await?;
        self.role.node.wait_operation_committed(&op).await
    }

    async fn index_here(&self, ns: &str, pattern: &ShardKeyPattern, body: &Document) -> Result<()> {
        if flag(body, "unsplittable", false)
            || find_index(&self.role.node, ns, pattern, flag(body, "unique", false)).is_some()
            || !flag(body, "implicitlyCreateIndex", true)
            || (pattern.is_hashed() && flag(body, "skipHashedShardKeyIndexCreation", false))
        {
            return Ok(());
        }
        let slot = self.role.node.namespaces.slot(ns);
        let spec = doc! { "v": 2, "key": pattern.document().clone(), "name": pattern.index_name() };
        let mut spec = timeseries::index_for(body, spec)?;
        if !slot.collation().is_simple() {
            spec.push("collation", doc! { "locale": "simple" });
        }
        if flag(body, "unique", false) {
            spec.push("unique", true);
        }
        let op = Operation::internal();
        node::ddl::indexes::build_indexes(&self.role.node, &op, &slot, &[spec], false).await?;
        self.role.node.wait_operation_committed(&op).await
    }

    /// Options and index definitions of the collection as it is here.
    ///
    /// # Errors
    /// NamespaceNotFound (26).
    pub(super) fn definition_of(&self, ns: &str) -> Result<(Document, Vec<Document>)> {
        let slot = self.role.node.namespaces.slot(ns);
        let state = slot.read_unchecked();
        let c =
            state.collection.as_ref().ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns does not exist: {ns}"))?;
        let indexes = c.indexes().iter().map(|i| node::ddl::indexes::complete(i.spec())).collect();
        Ok((c.meta().options.clone(), indexes))
    }

    async fn commit_shard_collection(&self, state: &mut Document) -> Result<()> {
        let ns = namespace(state).to_string();
        if flag(state, "alreadySharded", false) {
            let reply = self.tracked(&ns).await?.map(|d| {
                let member = |name: &str| d.get(name).cloned().unwrap_or(Value::Null);
                doc! { "collectionUUID": member("uuid") }
            });
            state.insert("reply", reply.unwrap_or_default());
            return Ok(());
        }
        let body = request(state);
        let alone = flag(body, "unsplittable", false);
        let commit = CommitCreateCollection {
            ns: ns.clone(),
            uuid: uuid_of(state)?,
            key: key(state)?.document().clone(),
            unique: Flag(flag(body, "unique", false)),
            collation: self.role.node.namespaces.slot(&ns).collation().document().cloned(),
            series: body.get_document(SERIES).cloned(),
            unsplittable: Flag(alone),
            chunks: chunks_of(state)?,
        };
        let reply = self.config(commit.to_document()).await?;
        let member = |name: &str| reply.get(name).cloned().unwrap_or(Value::Null);
        let version = member("collectionVersion");
        state.insert(
            "reply",
            doc! { "collectionUUID": member("collectionUUID"), "collectionVersion": version.clone() },
        );
        if alone {
            return Ok(());
        }
        self.note_sharded(&ns, state).await?;
        self.log_change("shardCollection.end", &ns, doc! { "version": version }).await;
        Ok(())
    }

    /// Tells change streams that the collection is sharded.
    async fn note_sharded(&self, ns: &str, state: &mut Document) -> Result<()> {
        let body = request(state);
        let note = doc! {
            "shardCollection": ns, "shardKey": key(state)?.document().clone(), "unique": flag(body, "unique", false),
            "numInitialChunks": body.get_i64("numInitialChunks").unwrap_or(0),
            "presplitHashedZones": flag(body, "presplitHashedZones", false),
        };
        let uuid = uuid_of(state)?;
        self.tell_streams(state, ns, Some(uuid), note).await
    }

    /// Best effort: a shard that does not hear of it asks when it meets the new version.
    async fn tell_owners(&self, state: &Document) -> Result<()> {
        let command = FlushRoutingTable::anew(namespace(state)).to_document();
        let owners = self.owners(state)?;
        let asks = owners.iter().map(|s| self.role.remote.admin(Target::Shard(s), command.clone()));
        drop(futures::future::join_all(asks).await);
        Ok(())
    }

    /// Removes empty collections that this coordinator made.
    async fn drop_what_was_created(&self, state: &Document) -> Result<()> {
        let Some(uuid) = state.get("collectionUUID").and_then(Value::as_uuid) else { return Ok(()) };
        let (db, name) = split(namespace(state));
        let mut shards = self.owners(state)?;
        if flag(state, "createdHere", false) {
            shards.insert(self.shard()?);
        }
        let (name, uuid, yes) = (name.to_string(), Some(uuid), Flag(true));
        let command = DropParticipant { name, uuid, only_empty: yes, from_migrate: yes };
        self.undo_on_shards(&shards, db, command.to_document()).await
    }

    /// Runs `_shardsvrCreateCollectionParticipant`.
    pub(super) async fn create_participant(&self, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        let asked = CreateParticipant::parse(request.body)?;
        // Change streams see the creation on the primary shard.
        self.create_here(&ns, asked.uuid, asked.options.unwrap_or_default(), true).await?;
        self.build_listed(&ns, asked.indexes.unwrap_or_default()).await?;
        self.role.clear_placement(&ns);
        Ok(Document::new())
    }
}

/// The bounds of a zone range of `ns`, as full keys of the collection to come.
///
/// # Errors
/// InvalidOptions (72) for a range of another key.
pub(super) fn zone_bounds(ns: &str, key: &ShardKeyPattern, range: &Document) -> Result<(Document, Document)> {
    let bound = |name: &str| range.get_document(name).and_then(|b| key.extend_bound(b, Value::MinKey));
    match (bound("min"), bound("max")) {
        (Some(min), Some(max)) => Ok((min, max)),
        _ => bail!(
            INVALID_OPTIONS,
            "the proposed shard key {} does not fit the zones of {ns}",
            shown(key.document())
        ),
    }
}

fn collection_options(body: &Document) -> Document {
    let is_option =
        |name: &str| !OWN.contains(&name) && !name.starts_with('$') && !node::generic::is_generic(name);
    body.iter()
        .skip(1)
        .filter(|(name, value)| is_option(name) && !value.is_null())
        .filter(|(_, value)| !matches!(value, Value::Boolean(false)))
        .map(|(name, value)| (name.to_string(), value.clone()))
        .collect()
}

fn check_arguments(ns: &str, body: &Document) -> Result<()> {
    let (db, name) = split(ns);
    if matches!(db, "admin" | "local") || (db == "config" && name != "system.sessions") {
        bail!(ILLEGAL_OPERATION, "can't shard collections of the database {db}");
    }
    if name.starts_with("system.") && db != "config" {
        bail!(ILLEGAL_OPERATION, "can't shard system namespaces");
    }
    let pattern = required(body, "shardKey", Value::as_document)?;
    if pattern.is_empty() {
        bail!(INVALID_OPTIONS, "Shard key cannot be empty");
    }
    let pattern = ShardKeyPattern::parse(pattern)?;
    if pattern.is_hashed() && flag(body, "unique", false) {
        bail!(
            INVALID_OPTIONS,
            "Hashed shard keys cannot be declared unique. It's possible to ensure uniqueness on the hashed field by declaring an additional (non-hashed) unique index on the field."
        );
    }
    if let Some(collation) = body.get_present("collation")
        && !flag(body, "unsplittable", false)
        && collation.as_document().and_then(|c| c.get_str("locale")) != Some("simple")
    {
        bail!(
            BAD_VALUE,
            "The collation for shardCollection must be {{locale: 'simple'}}, but found: {}",
            document::shell::value(collation)
        );
    }
    let presplit = flag(body, "presplitHashedZones", false);
    if presplit && !pattern.is_hashed() {
        bail!(INVALID_OPTIONS, "presplitHashedZones needs a shard key with a hashed field");
    }
    if body.get_i64("numInitialChunks").unwrap_or(0) > 0 && !presplit && !pattern.is_hashed_prefix() {
        bail!(
            INVALID_OPTIONS,
            "numInitialChunks is only supported for collections with a hashed prefix of the shard key"
        );
    }
    Ok(())
}

/// Refuses a view, a capped collection, and indexes that do not go with the key.
pub(super) async fn check_indexes(
    node: &Node,
    ns: &str,
    pattern: &ShardKeyPattern,
    body: &Document,
) -> Result<()> {
    match check_definitions(node, ns, pattern, body)? {
        Some(doubtful) if !has_single_keys(&doubtful, pattern).await => bail!(
            INVALID_OPTIONS,
            "couldn't find valid index for shard key: the index on {} is multikey",
            shown(pattern.document())
        ),
        _ => Ok(()),
    }
}

/// As [`check_indexes`], by the definitions alone. Where the only index that serves the key is multikey, the documents tell
/// whether it does; this is a snapshot of them, since they are not to be read under the latch.
fn check_definitions(
    node: &Node,
    ns: &str,
    pattern: &ShardKeyPattern,
    body: &Document,
) -> Result<Option<CollectionSnapshot>> {
    let unique = flag(body, "unique", false);
    let slot = node.namespaces.slot(ns);
    let state = slot.read_unchecked();
    if state.view.is_some() {
        bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Namespace {ns} is a view, not a collection");
    }
    let Some(c) = &state.collection else { return Ok(None) };
    if let Some(default) = c.collation().document()
        && body.get_present("collation").is_none()
    {
        return Err(collation_missing(default));
    }
    if c.meta().capped() {
        bail!(INVALID_OPTIONS, "can't shard a capped collection: {ns}");
    }
    let compared = flag(body, "enforceUniquenessCheck", true);
    for index in c.indexes().iter().filter(|i| compared && i.spec().unique() && !i.spec().is_id()) {
        if !pattern.fields_begin(index.spec().key()) || !index.spec().collation().is_simple() {
            bail!(
                INVALID_OPTIONS,
                "can't shard collection '{ns}' with unique index on {} and proposed shard key {}. Uniqueness can't be maintained unless shard key is a prefix",
                shown(index.spec().key()),
                shown(pattern.document())
            );
        }
    }
    if let Some((_, multikey)) = usable_index(c, pattern, unique) {
        return Ok(multikey.then(|| c.snapshot()));
    }
    let multikey = c.indexes().iter().any(|i| pattern.is_prefix_of(i.spec().key()) && i.is_multikey());
    if multikey {
        bail!(
            INVALID_OPTIONS,
            "couldn't find valid index for shard key: the index on {} is multikey",
            shown(pattern.document())
        );
    }
    if !c.is_empty() || !flag(body, "implicitlyCreateIndex", true) {
        return Err(index_missing());
    }
    Ok(None)
}

pub(super) fn index_missing() -> Error {
    err!(
        INVALID_OPTIONS,
        "Please create an index that starts with the proposed shard key before sharding the collection."
    )
}
fn collation_missing(default: &Document) -> Error {
    err!(
        BAD_VALUE,
        "Collection has default collation: {}. Must specify collation {{ locale: 'simple' }}.",
        shown(default)
    )
}

/// The definition of an index of the collection that serves the shard key.
pub(super) fn find_index(
    node: &Node,
    ns: &str,
    pattern: &ShardKeyPattern,
    unique: bool,
) -> Option<IndexSpec> {
    let slot = node.namespaces.slot(ns);
    let state = slot.read_unchecked();
    usable_index(state.collection.as_ref()?, pattern, unique).map(|(spec, _)| spec.clone())
}

/// Whether no document has an array in a field of the key: then an index on it is multikey for the sake of later fields.
async fn has_single_keys(view: &CollectionSnapshot, pattern: &ShardKeyPattern) -> bool {
    let (mut position, mut single) = (Position::default(), true);
    loop {
        let done = walk_records(view, &mut position, |record| {
            single &= view.get(record).is_none_or(|d| pattern.key_of(d).is_ok());
            single
        });
        if done || !single {
            return single;
        }
        tokio::task::yield_now().await;
    }
}

/// An index that serves the key, rather one that is not multikey; and whether it is.
fn usable_index<'c>(
    c: &'c Collection,
    pattern: &ShardKeyPattern,
    unique: bool,
) -> Option<(&'c IndexSpec, bool)> {
    let whole = |spec: &IndexSpec| {
        let d = spec.document();
        !d.contains_key("partialFilterExpression") && !d.get("sparse").is_some_and(Value::truthy)
    };
    let exact = |spec: &IndexSpec| spec.key().len() == pattern.fields().len();
    c.indexes()
        .iter()
        .filter(|i| pattern.is_prefix_of(i.spec().key()) && whole(i.spec()))
        .filter(|i| i.spec().collation().is_simple())
        .filter(|i| !unique || (exact(i.spec()) && (i.spec().unique() || i.spec().is_id())))
        .map(|i| (i.spec(), i.is_multikey()))
        .min_by_key(|(_, multikey)| *multikey)
}
