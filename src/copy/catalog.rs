//! What the source has beside documents: collections with their options, views, indexes, shard keys and zones; and making the
//! same at the target, where what exists already counts as made.

use crate::{Copy, Error, Result, codes, has_code};
use futures::TryStreamExt;
use mongodb::Client;
use mongodb::bson::{Bson, Document, doc};
use std::collections::HashSet;

/// A collection or view of the source, as listCollections describes it.
pub(crate) struct Described {
    pub db: String,
    pub name: String,
    /// None of a view.
    pub uuid: Option<Bson>,
    kind: String,
    options: Document,
}

impl Described {
    pub(crate) fn ns(&self) -> String {
        format!("{}.{}", self.db, self.name)
    }
    pub(crate) fn is_view(&self) -> bool {
        self.kind == "view"
    }
    pub(crate) fn is_time_series(&self) -> bool {
        self.kind == "timeseries"
    }
    pub(crate) fn is_capped(&self) -> bool {
        self.options.get_bool("capped").unwrap_or(false)
    }
    /// Whether ranges of `_id` can be read by the index on it.
    pub(crate) fn has_id_index(&self) -> bool {
        self.kind == "collection" && !self.is_capped() && !self.options.contains_key("clusteredIndex")
    }
    fn is_copied(&self) -> bool {
        !self.name.starts_with("system.") || self.name == "system.js"
    }
}

/// The databases of the source that are meant.
pub(crate) async fn databases(copy: &Copy) -> Result<Vec<String>> {
    let names = copy.from.list_database_names().await?;
    Ok(names.into_iter().filter(|db| copy.takes(db)).collect())
}

/// The collections and views of a database, views last; what belongs to the server itself is left out.
pub(crate) async fn collections(client: &Client, db: &str) -> Result<Vec<Described>> {
    described(client, db, doc! {}).await
}

/// The collection of that name, if there is one.
pub(crate) async fn collection(client: &Client, db: &str, name: &str) -> Result<Option<Described>> {
    Ok(described(client, db, doc! { "name": name }).await?.pop())
}

async fn described(client: &Client, db: &str, filter: Document) -> Result<Vec<Described>> {
    let cursor =
        client.database(db).run_cursor_command(doc! { "listCollections": 1, "filter": filter }).await?;
    let listed: Vec<Document> = cursor.try_collect().await?;
    let mut found: Vec<Described> = listed
        .into_iter()
        .map(|d| Described {
            db: db.to_string(),
            name: d.get_str("name").unwrap_or_default().to_string(),
            uuid: d.get_document("info").ok().and_then(|info| info.get("uuid").cloned()),
            kind: d.get_str("type").unwrap_or("collection").to_string(),
            options: d.get_document("options").cloned().unwrap_or_default(),
        })
        .filter(Described::is_copied)
        .collect();
    found.sort_by_key(Described::is_view);
    Ok(found)
}

/// Refuses a target that has a collection of the source's already: it may be somebody's.
///
/// # Errors
/// `Refused`, and those of the servers.
pub(crate) async fn check_free(copy: &Copy) -> Result<()> {
    for db in databases(copy).await? {
        let there: HashSet<String> = collections(&copy.to, &db).await?.iter().map(Described::ns).collect();
        if let Some(taken) = collections(&copy.from, &db).await?.iter().find(|c| there.contains(&c.ns())) {
            return Err(Error::Refused(format!(
                "the target has a collection {} already; --drop drops the databases there first",
                taken.ns()
            )));
        }
    }
    Ok(())
}

/// Makes a collection or view with its options and, as they must not wait for the documents to be sorted, its indexes.
pub(crate) async fn make(copy: &Copy, collection: &Described) -> Result<()> {
    let mut command = doc! { "create": &collection.name };
    command.extend(collection.options.clone());
    command.remove("uuid");
    copy.change(&collection.db, command, &[codes::NAMESPACE_EXISTS]).await?;
    if collection.is_view() {
        return Ok(());
    }
    make_indexes(copy, &collection.db, &collection.name, indexes(copy, collection).await?).await
}

async fn make_indexes(copy: &Copy, db: &str, name: &str, indexes: Vec<Document>) -> Result<()> {
    let indexes = to_make(indexes);
    if indexes.is_empty() {
        return Ok(());
    }
    copy.change(db, doc! { "createIndexes": name, "indexes": indexes }, &codes::INDEX_TO_COME).await
}

/// Indexes as createIndexes wants them, of their descriptions. The one on `_id` comes with the collection, and one without a
/// collation has none, whatever that of the collection.
pub(crate) fn to_make(mut indexes: Vec<Document>) -> Vec<Document> {
    indexes.retain(|index| {
        !index.get_str("name").is_ok_and(|n| n == "_id_") && !index.contains_key("clustered")
    });
    for index in &mut indexes {
        index.remove("ns");
        if !index.contains_key("collation") {
            index.insert("collation", doc! { "locale": "simple" });
        }
    }
    indexes
}

/// The indexes that are built; one that is not yet comes by the stream if it ever is.
async fn indexes(copy: &Copy, collection: &Described) -> Result<Vec<Document>> {
    let source = copy.from.database(&collection.db);
    let command = doc! { "listIndexes": &collection.name };
    let mut with_builds = command.clone();
    with_builds.insert("includeIndexBuildInfo", true);
    let cursor = match source.run_cursor_command(with_builds).await {
        // Of an older server.
        Err(error) if has_code(&error, &[codes::UNKNOWN_FIELD]) => source.run_cursor_command(command).await,
        cursor => cursor,
    };
    let listed: Vec<Document> = match cursor {
        Ok(cursor) => cursor.try_collect().await?,
        // Dropped meanwhile.
        Err(error) if has_code(&error, &[codes::NAMESPACE_NOT_FOUND]) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let built = listed.into_iter().filter(|index| !index.contains_key("indexBuildInfo"));
    Ok(built.map(|index| index.get_document("spec").cloned().unwrap_or(index)).collect())
}

/// What a cluster knows of its sharded collections.
pub(crate) struct Sharding {
    /// `config.collections`: `_id`, `key`, `unique`, ...
    keys: Vec<Document>,
    /// `config.tags`: `ns`, `min`, `max`, `tag`.
    zones: Vec<Document>,
    /// For each shard of the source, in order of their names, its zones.
    zones_of_shards: Vec<Vec<String>>,
}

impl Sharding {
    /// None unless both sides are routers: where one is not, there are no shard keys to be had or to be set.
    pub(crate) async fn of(copy: &Copy) -> Result<Option<Sharding>> {
        if !Copy::is_router(&copy.from).await? || !Copy::is_router(&copy.to).await? {
            return Ok(None);
        }
        let config = copy.from.database("config");
        let all = |name: &'static str| {
            let collection = config.collection::<Document>(name);
            async move { collection.find(doc! {}).sort(doc! { "_id": 1 }).await?.try_collect::<Vec<_>>().await }
        };
        let sharded = |d: &Document| !d.get_bool("unsplittable").unwrap_or(false) && d.contains_key("key");
        let zones = |shard: &Document| {
            let tags = shard.get_array("tags").into_iter().flatten();
            tags.filter_map(|t| t.as_str().map(str::to_string)).collect()
        };
        Ok(Some(Sharding {
            keys: all("collections").await?.into_iter().filter(sharded).collect(),
            zones: all("tags").await?,
            zones_of_shards: all("shards").await?.iter().map(zones).collect(),
        }))
    }

    /// Gives the target's shards the zones of the source's, one to one in order of their names, from the first again where the
    /// target has fewer.
    pub(crate) async fn make_zones(&self, copy: &Copy) -> Result<()> {
        let reply = copy.to.database("admin").run_command(doc! { "listShards": 1 }).await?;
        let shards = reply.get_array("shards").into_iter().flatten().filter_map(|s| s.as_document());
        let mut names: Vec<&str> = shards.filter_map(|s| s.get_str("_id").ok()).collect();
        names.sort_unstable();
        for (zones, shard) in self.zones_of_shards.iter().zip(names.iter().cycle()) {
            for zone in zones {
                copy.ask("admin", doc! { "addShardToZone": *shard, "zone": zone }, &[]).await?;
            }
        }
        Ok(())
    }

    /// Shards a collection of the target as the source's is, its zones first, so that its chunks begin where they belong.
    pub(crate) async fn shard(&self, copy: &Copy, ns: &str) -> Result<()> {
        let Some(key) = self.keys.iter().find(|k| k.get_str("_id").is_ok_and(|n| n == ns)) else {
            return Ok(());
        };
        for zone in self.zones.iter().filter(|z| z.get_str("ns").is_ok_and(|n| n == ns)) {
            let field = |name| zone.get(name).cloned();
            let command = doc! { "updateZoneKeyRange": ns, "min": field("min"), "max": field("max"), "zone": field("tag") };
            copy.ask("admin", command, &[]).await?;
        }
        let unique = key.get_bool("unique").unwrap_or(false);
        let command = shard_collection(ns, key.get("key").cloned().unwrap_or(Bson::Null), unique);
        copy.ask("admin", command, &[codes::ALREADY_INITIALIZED]).await
    }
}

/// The command that shards a collection; its own collation does not matter to a shard key, and has to be denied.
pub(crate) fn shard_collection(ns: &str, key: Bson, unique: bool) -> Document {
    doc! { "shardCollection": ns, "key": key, "unique": unique, "collation": { "locale": "simple" } }
}
