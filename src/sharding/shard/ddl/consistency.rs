//! checkMetadataConsistency, the shards' part: does what each shard holds agree with the catalog, and with the others?
//!
//! The database's primary locks out DDL on the database (all but reshardings, whose collections it leaves out), asks every shard to look at itself, the config server to look
//! at its documents, and compares what the shards report of options and indexes.

use super::create::find_index;
use super::locks::Purpose;
use super::{COORDINATORS, Ddl, split};
use crate::config::consistency::{cursor_of, finding};
use crate::key_pattern::ShardKeyPattern;
use document::{Document, Result, Value, doc};
use node::{Operation, Request};
use protocol::ddl::protocols;
use std::collections::BTreeMap;

/// Whether a finding is of a collection that is being resharded, or of what that makes.
fn concerns(finding: &Document, resharded: &[String]) -> bool {
    let ns = finding.get_document("details").and_then(|d| d.get_str("namespace")).unwrap_or("");
    resharded.iter().any(|r| r == ns)
        || (!resharded.is_empty() && split(ns).1.starts_with("system.resharding."))
}

/// What a shard has of a tracked collection.
struct Definition {
    shard: String,
    owns_chunks: bool,
    options: Document,
    indexes: Vec<Document>,
}

impl Ddl {
    /// Runs `_shardsvrCheckMetadataConsistency`: of the database, or of the one collection named.
    pub(super) async fn check_database(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let db = request.db;
        self.check_primary(op, db).await?;
        let only = request.argument().and_then(|v| v.as_str()).map(|c| format!("{db}.{c}"));
        let indexes = request.body.get("checkIndexes").is_some_and(|v| v.truthy());
        let mut locked = vec![db];
        locked.extend(only.as_deref());
        let holder = format!("checkMetadataConsistency of {db}");
        let _held = self.locks.take_for(Purpose::Look, &locked, &holder).await?;
        let mut resharded = self.resharded(db)?;
        let catalog =
            doc! { "_configsvrCheckMetadataConsistency": only.clone().unwrap_or_else(|| db.to_string()) };
        let mut findings = findings_of(&self.config(catalog).await?);
        let ask = doc! {
            "_shardsvrCheckMetadataConsistencyParticipant": 1, "primaryShardId": self.shard()?, "only": only.clone(),
        };
        let shards = self.all_shards().await?;
        let mut definitions: BTreeMap<String, Vec<Definition>> = BTreeMap::new();
        for (shard, reply) in self.on_shards(&shards, db, ask).await? {
            findings.extend(findings_of(&reply));
            for d in reply.get_array("definitions").into_iter().flatten().filter_map(Value::as_document) {
                let definition = Definition::parse(&shard, d);
                definitions.entry(d.get_str("ns").unwrap_or("").to_string()).or_default().push(definition);
            }
        }
        for (ns, definitions) in &definitions {
            findings.extend(options_mismatch(ns, definitions));
            if indexes {
                findings.extend(index_mismatch(ns, definitions));
            }
        }
        // Another may have begun meanwhile.
        resharded.extend(self.resharded(db)?);
        findings.retain(|f| !concerns(f, &resharded));
        Ok(cursor_of(&only.unwrap_or_else(|| format!("{db}.$cmd.aggregate")), findings))
    }

    /// The collections of the database that are being resharded.
    fn resharded(&self, db: &str) -> Result<Vec<String>> {
        let under_way = self.role.local.find(COORDINATORS, &Document::new())?;
        let ids = under_way.iter().filter_map(|d| d.get_document("_id"));
        let of_db = ids.filter(|id| id.get_str("operationType") == Some(protocols::RESHARD.operation));
        let names = of_db.filter_map(|id| id.get_str("namespace"));
        Ok(names.filter(|ns| split(ns).0 == db).map(str::to_string).collect())
    }

    /// Runs `_shardsvrCheckMetadataConsistencyParticipant`: answers findings, and the definitions it has.
    pub(super) async fn check_here(&self, request: Request<'_>) -> Result<Document> {
        let db = request.db;
        let body = request.body.to_document();
        let own = self.shard()?;
        let is_primary = body.get_str("primaryShardId") == Some(&own);
        let only = body.get_str("only");
        let of_database = doc! { "_id": { "$gt": format!("{db}."), "$lt": format!("{db}/") } };
        let tracked = self.role.remote.find_config("collections", of_database, None).await?;
        let wanted = |ns: &str| only.is_none_or(|o| o == ns);
        let (mut findings, mut definitions) = (Vec::new(), Vec::new());
        for c in tracked.iter().filter(|c| wanted(c.get_str("_id").unwrap_or(""))) {
            self.check_tracked(&own, c, &mut findings, &mut definitions).await?;
        }
        if !is_primary {
            let known = |ns: &str| tracked.iter().any(|c| c.get_str("_id") == Some(ns));
            for (ns, uuid, documents) in self.collections_here(db) {
                if wanted(&ns) && !known(&ns) && !ns.ends_with(".system.profile") {
                    let details = doc! {
                        "namespace": ns, "shard": own.as_str(), "localUUID": Value::uuid(uuid), "numDocs": documents,
                    };
                    let text = "Unsharded collection found on a shard other than the primary of its database";
                    findings.push(finding("MisplacedCollection", text, details));
                }
            }
        }
        let mut reply = cursor_of(&format!("{db}.$cmd.aggregate"), findings);
        reply.push("definitions", definitions);
        Ok(reply)
    }

    fn collections_here(&self, db: &str) -> Vec<(String, [u8; 16], i64)> {
        let slots = self.role.node.namespaces.of_database(db);
        let here = slots.iter().filter_map(|slot| {
            let state = slot.read_unchecked();
            state.collection.as_ref().map(|c| (slot.ns.clone(), c.uuid(), c.len() as i64))
        });
        here.collect()
    }

    async fn check_tracked(
        &self,
        own: &str,
        entry: &Document,
        findings: &mut Vec<Document>,
        definitions: &mut Vec<Document>,
    ) -> Result<()> {
        let ns = entry.get_str("_id").unwrap_or("");
        let uuid = entry.get("uuid").cloned().unwrap_or(Value::Null);
        let of_own = doc! { "uuid": uuid.clone(), "shard": own };
        let owns = self.role.remote.config_has("chunks", of_own).await?;
        let found = self.collections_here(split(ns).0).into_iter().find(|(n, ..)| n == ns);
        let Some((_, local, documents)) = found else {
            if owns {
                let details = doc! { "namespace": ns, "uuid": uuid, "shard": own };
                let text = "A shard that owns chunks of a collection does not have the collection";
                findings.push(finding("MissingLocalCollection", text, details));
            }
            return Ok(());
        };
        if Value::uuid(local) != uuid {
            let details = doc! {
                "namespace": ns, "shard": own, "localUUID": Value::uuid(local), "uuid": uuid, "numDocs": documents,
            };
            let text = "A shard has the collection with another UUID than the catalog";
            findings.push(finding("CollectionUUIDMismatch", text, details));
            return Ok(());
        }
        self.check_key_index(own, entry, owns, findings)?;
        let (options, indexes) = self.definition_of(ns)?;
        definitions.push(doc! { "ns": ns, "ownsChunks": owns, "options": options, "indexes": indexes });
        Ok(())
    }

    fn check_key_index(
        &self,
        own: &str,
        entry: &Document,
        owns: bool,
        findings: &mut Vec<Document>,
    ) -> Result<()> {
        let ns = entry.get_str("_id").unwrap_or("");
        let key = entry.get_document("key").cloned().unwrap_or_default();
        let pattern = ShardKeyPattern::parse(&key)?;
        // One that is not sharded is not looked at by its key, and its collation may be that of all its indexes.
        let whole = entry.get_bool("unsplittable") == Some(true);
        if whole || find_index(&self.role.node, ns, &pattern, false).is_some() {
            return Ok(());
        }
        let details = || doc! { "namespace": ns, "shard": own, "shardKey": key.clone() };
        if owns {
            let text = "A shard that owns chunks of a collection has no index that begins with the shard key";
            findings.push(finding("MissingShardKeyIndex", text, details()));
        }
        let of = doc! { "collectionUuid": entry.get("uuid").cloned() };
        let tasks = self.role.local.find("config.rangeDeletions", &of)?;
        if !tasks.is_empty() {
            let text = "A shard has ranges to delete and no index that begins with the shard key";
            findings.push(finding("RangeDeletionMissingShardKeyIndex", text, details()));
        }
        Ok(())
    }
}

impl Definition {
    fn parse(shard: &str, d: &Document) -> Definition {
        let list = d.get_array("indexes").into_iter().flatten();
        Definition {
            shard: shard.to_string(),
            owns_chunks: d.get_bool("ownsChunks").unwrap_or(false),
            options: d.get_document("options").cloned().unwrap_or_default(),
            indexes: list.filter_map(|v| v.as_document().cloned()).collect(),
        }
    }
}

fn findings_of(reply: &Document) -> Vec<Document> {
    let batch = reply.get_path("cursor.firstBatch").and_then(Value::as_array);
    batch.into_iter().flatten().filter_map(|v| v.as_document().cloned()).collect()
}

fn equal(a: &Document, b: &Document) -> bool {
    a.len() == b.len()
        && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| document::compare::values_equal(v, w)))
}

fn options_mismatch(ns: &str, definitions: &[Definition]) -> Option<Document> {
    let first = definitions.first()?;
    if definitions.iter().all(|d| equal(&d.options, &first.options)) {
        return None;
    }
    let options: Vec<Document> = definitions
        .iter()
        .map(|d| doc! { "shards": vec![d.shard.clone()], "options": d.options.clone() })
        .collect();
    let text = "The options of a collection differ between shards";
    Some(finding("CollectionOptionsMismatch", text, doc! { "namespace": ns, "options": options }))
}

fn index_mismatch(ns: &str, definitions: &[Definition]) -> Vec<Document> {
    let owners: Vec<&Definition> = definitions.iter().filter(|d| d.owns_chunks).collect();
    let mut by_name: BTreeMap<&str, Vec<(&str, &Document)>> = BTreeMap::new();
    for d in &owners {
        for index in &d.indexes {
            by_name.entry(index.get_str("name").unwrap_or("")).or_default().push((&d.shard, index));
        }
    }
    let mut findings = Vec::new();
    for (name, held) in by_name {
        let missing: Vec<String> = owners
            .iter()
            .filter(|d| !held.iter().any(|(shard, _)| *shard == d.shard))
            .map(|d| d.shard.clone())
            .collect();
        let same = held.windows(2).all(|pair| equal(pair[0].1, pair[1].1));
        if missing.is_empty() && same {
            continue;
        }
        let mut info = doc! { "indexName": name, "missingFromShards": missing };
        if !same {
            let specs: Vec<Document> =
                held.iter().map(|(shard, spec)| doc! { "shard": *shard, "spec": (*spec).clone() }).collect();
            info.push("inconsistentProperties", specs);
        }
        let text = "The indexes of a collection differ between the shards that own its chunks";
        findings.push(finding("InconsistentIndex", text, doc! { "namespace": ns, "info": info }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(shard: &str, options: Document, indexes: &[Document]) -> Definition {
        Definition { shard: shard.into(), owns_chunks: true, options, indexes: indexes.to_vec() }
    }

    #[test]
    fn definitions_that_agree_give_nothing_and_each_difference_its_finding() {
        let index = doc! { "v": 2, "key": { "x": 1 }, "name": "x_1" };
        let unique = doc! { "v": 2, "key": { "x": 1 }, "name": "x_1", "unique": true };
        let a = || definition("a", doc! {}, std::slice::from_ref(&index));
        assert!(options_mismatch("d.c", &[a(), a()]).is_none());
        assert!(index_mismatch("d.c", &[a(), a()]).is_empty());
        let capped = definition("b", doc! { "validationLevel": "off" }, std::slice::from_ref(&index));
        let found = options_mismatch("d.c", &[a(), capped]).unwrap();
        assert_eq!(found.get_str("type"), Some("CollectionOptionsMismatch"));
        for other in [definition("b", doc! {}, &[]), definition("b", doc! {}, &[unique])] {
            let found = index_mismatch("d.c", &[a(), other]);
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].get_str("type"), Some("InconsistentIndex"));
        }
        let idle = Definition { owns_chunks: false, ..definition("b", doc! {}, &[]) };
        assert!(index_mismatch("d.c", &[a(), idle]).is_empty());
    }
}
