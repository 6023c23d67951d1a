//! checkMetadataConsistency, the catalog's part: do its own documents agree with each other?
//!
//! What shards hold is compared by the shards ([`crate::shard::ddl`]); a finding of either is a document
//! `{type, description, details}`.

use super::catalog::{Sharded, ZoneRange, compare};
use super::{COLLECTIONS, ConfigServer};
use crate::key_pattern::ShardKeyPattern;
use crate::remote::{Target, majority};
use document::{Document, Result, Value, doc};
use node::Request;

/// One finding.
pub(crate) fn finding(kind: &str, description: &str, details: Document) -> Document {
    doc! { "type": kind, "description": description, "details": details }
}

/// Findings as the only batch of a cursor.
pub(crate) fn cursor_of(ns: &str, findings: Vec<Document>) -> Document {
    doc! { "cursor": { "firstBatch": findings, "id": 0i64, "ns": ns } }
}

impl ConfigServer {
    /// `_configsvrCheckMetadataConsistency`: the sharded collections of one database, or the one collection named.
    pub async fn check_database(&self, request: Request<'_>) -> Result<Document> {
        self.ensure().await?;
        let name = request.argument().and_then(|v| v.as_str()).unwrap_or("");
        let (db, only) = if name.contains('.') {
            (name.split('.').next().unwrap_or(name), Some(name))
        } else {
            (if name.is_empty() { request.db } else { name }, None)
        };
        let prefix = format!("{db}.");
        let mut findings = Vec::new();
        for d in self.local.find(COLLECTIONS, &Document::new())? {
            let ns = d.get_str("_id").unwrap_or("").to_string();
            if only.map_or(ns.starts_with(&prefix), |o| o == ns) {
                findings.extend(self.check_collection(&ns, d));
            }
        }
        Ok(cursor_of(&format!("{db}.$cmd.aggregate"), findings))
    }

    /// `_configsvrCheckClusterMetadataConsistency`: every database, by its primary, and what has no database.
    pub async fn check_cluster(&self, request: Request<'_>) -> Result<Document> {
        self.ensure().await?;
        let indexes = request.body.get("checkIndexes").is_some_and(|v| v.truthy());
        let mut findings = Vec::new();
        for database in self.catalog().databases() {
            let command = doc! {
                "_shardsvrCheckMetadataConsistency": 1, "checkIndexes": indexes,
                "databaseVersion": database.version.to_document(), "writeConcern": majority(),
            };
            let shard = self.catalog().shard(&database.primary)?;
            let reply =
                self.remote.run(Target::Host(&shard.host), &database.name, command.to_doc_buf()).await;
            let reply = match reply {
                // Dropped or moved while this went on: not there to be checked any more.
                Err(e)
                    if e.is(document::error::STALE_DB_VERSION)
                        || e.code == document::codes::NAMESPACE_NOT_FOUND =>
                {
                    continue;
                }
                reply => reply?.to_document(),
            };
            let batch = reply.get_path("cursor.firstBatch").and_then(Value::as_array);
            findings.extend(batch.into_iter().flatten().filter_map(|v| v.as_document().cloned()));
        }
        for d in self.local.find(COLLECTIONS, &Document::new())? {
            let ns = d.get_str("_id").unwrap_or("");
            let db = ns.split('.').next().unwrap_or(ns);
            if db != "config" && self.catalog().database(db).is_none() {
                findings.push(finding(
                    "HiddenShardedCollection",
                    "Found a sharded collection whose database does not exist in config.databases",
                    doc! { "namespace": ns, "collection": d.clone() },
                ));
                findings.extend(self.check_collection(ns, d.clone()));
            } else if db == "config" {
                findings.extend(self.check_collection(ns, d.clone()));
            }
        }
        Ok(cursor_of("admin.$cmd.aggregate", findings))
    }

    fn check_collection(&self, ns: &str, document: Document) -> Vec<Document> {
        let Ok(collection) = Sharded::parse(document) else {
            let details = doc! { "namespace": ns };
            return vec![finding(
                "MissingRoutingTable",
                "The entry of the collection cannot be read",
                details,
            )];
        };
        let chunks = self.catalog().chunk_documents(collection.info.uuid);
        let mut findings = check_chunks(&collection, &chunks);
        findings.extend(check_zones(&collection.key, ns, &self.catalog().zone_ranges(ns)));
        findings
    }
}

/// The chunks of one collection, in the order of their lower bounds.
fn check_chunks(collection: &Sharded, chunks: &[Document]) -> Vec<Document> {
    let (ns, key) = (collection.info.ns.as_str(), &collection.key);
    let uuid = Value::uuid(collection.info.uuid);
    let base = || doc! { "namespace": ns, "collectionUUID": uuid.clone() };
    if chunks.is_empty() {
        let text = "Found a collection in config.collections without chunks";
        return vec![finding("MissingRoutingTable", text, base())];
    }
    let mut findings = Vec::new();
    for chunk in chunks {
        findings.extend(check_chunk(key, chunk, base()));
    }
    let bound = |c: &Document, name: &str| c.get_document(name).cloned().unwrap_or_default();
    let with = |more: &[(&str, Document)]| {
        let mut details = base();
        for (name, value) in more {
            details.push(*name, value.clone());
        }
        details
    };
    let first = bound(&chunks[0], "min");
    if first != key.global_min() {
        let details = with(&[("minKeyObj", first), ("globalMin", key.global_min())]);
        findings.push(finding(
            "RoutingTableMissingMinKey",
            "The first chunk does not begin at the lowest key",
            details,
        ));
    }
    let last = bound(&chunks[chunks.len() - 1], "max");
    if last != key.global_max() {
        let details = with(&[("maxKeyObj", last), ("globalMax", key.global_max())]);
        findings.push(finding(
            "RoutingTableMissingMaxKey",
            "The last chunk does not end at the highest key",
            details,
        ));
    }
    for pair in chunks.windows(2) {
        let details = || with(&[("chunkA", pair[0].clone()), ("chunkB", pair[1].clone())]);
        match compare(&bound(&pair[0], "max"), &bound(&pair[1], "min")) {
            std::cmp::Ordering::Less => {
                findings.push(finding("RoutingTableRangeGap", "Found a gap between two chunks", details()));
            }
            std::cmp::Ordering::Greater => {
                findings.push(finding(
                    "RoutingTableRangeOverlap",
                    "Found two chunks that overlap",
                    details(),
                ));
            }
            std::cmp::Ordering::Equal => {}
        }
    }
    if collection.is_unsplittable() {
        if chunks.len() > 1 {
            let text = "Found an unsharded collection with several chunks";
            let mut details = base();
            details.push("numChunks", chunks.len() as i32);
            findings.push(finding("TrackedUnshardedCollectionHasMultipleChunks", text, details));
        }
        if *key.document() != doc! { "_id": 1 } {
            let text = "Found an unsharded collection with a shard key other than {_id: 1}";
            let details = with(&[("key", key.document().clone())]);
            findings.push(finding("TrackedUnshardedCollectionHasInvalidKey", text, details));
        }
    }
    findings
}

fn check_chunk(key: &ShardKeyPattern, chunk: &Document, mut details: Document) -> Option<Document> {
    details.push("chunk", chunk.clone());
    let fits = |name: &str| chunk.get_document(name).is_some_and(|b| key.is_full_key(b));
    if !fits("min") || !fits("max") {
        details.push("shardKeyPattern", key.document().clone());
        let text = "Found a chunk whose bounds do not have the fields of the shard key";
        return Some(finding("CorruptedChunkShardKey", text, details));
    }
    let newest = chunk.get_array("history").and_then(|h| h.first()?.as_document());
    let issue = match newest {
        None => "The history is missing or empty",
        Some(h) if h.get("shard") != chunk.get("shard") => {
            "The newest entry of the history names another shard"
        }
        Some(h) if chunk.get("onCurrentShardSince") != h.get("validAfter") => {
            "onCurrentShardSince is not the time of the newest entry of the history"
        }
        Some(_) => return None,
    };
    details.push("issue", issue);
    Some(finding("CorruptedChunkHistory", "Found a chunk with a corrupted history", details))
}

fn check_zones(key: &ShardKeyPattern, ns: &str, zones: &[ZoneRange]) -> Vec<Document> {
    let shown = |z: &ZoneRange| doc! { "zone": z.zone.as_str(), "min": z.min.clone(), "max": z.max.clone() };
    let mut findings = Vec::new();
    for zone in zones.iter().filter(|z| !key.is_full_key(&z.min) || !key.is_full_key(&z.max)) {
        let details =
            doc! { "namespace": ns, "zone": shown(zone), "shardKeyPattern": key.document().clone() };
        let text = "Found a zone whose bounds do not have the fields of the shard key";
        findings.push(finding("CorruptedZoneShardKey", text, details));
    }
    for pair in zones.windows(2) {
        if compare(&pair[0].max, &pair[1].min).is_gt() {
            let details = doc! { "namespace": ns, "zoneA": shown(&pair[0]), "zoneB": shown(&pair[1]) };
            findings.push(finding("ZonesRangeOverlap", "Found two zones that overlap", details));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{ObjectId, Timestamp};

    fn collection(more: Document) -> Sharded {
        let mut d = doc! {
            "_id": "d.c", "uuid": Value::uuid([1; 16]), "lastmodEpoch": ObjectId([2; 12]), "timestamp": Timestamp::new(1, 0),
            "key": { "x": 1 },
        };
        for (name, value) in more {
            d.insert(name, value);
        }
        Sharded::parse(d).unwrap()
    }
    fn chunk(min: Value, max: Value) -> Document {
        let at = Timestamp::new(9, 0);
        doc! {
            "min": { "x": min }, "max": { "x": max }, "shard": "a", "lastmod": Timestamp::new(1, 0), "onCurrentShardSince": at,
            "history": [{ "validAfter": at, "shard": "a" }],
        }
    }
    fn good() -> Vec<Document> {
        vec![chunk(Value::MinKey, Value::Int32(0)), chunk(Value::Int32(0), Value::MaxKey)]
    }
    fn kinds(c: &Sharded, chunks: &[Document]) -> Vec<String> {
        check_chunks(c, chunks).iter().map(|f| f.get_str("type").unwrap().to_string()).collect()
    }

    #[test]
    fn each_fault_of_the_routing_table_is_found_as_itself_and_a_clean_one_gives_nothing() {
        let c = collection(doc! {});
        assert!(kinds(&c, &good()).is_empty());
        assert_eq!(kinds(&c, &[]), ["MissingRoutingTable"]);
        let mut faulty = good();
        faulty[0].insert("min", doc! { "x": -5 });
        assert_eq!(kinds(&c, &faulty), ["RoutingTableMissingMinKey"]);
        let mut faulty = good();
        faulty[1].insert("max", doc! { "x": 5 });
        assert_eq!(kinds(&c, &faulty), ["RoutingTableMissingMaxKey"]);
        let mut faulty = good();
        faulty[1].insert("min", doc! { "x": 1 });
        assert_eq!(kinds(&c, &faulty), ["RoutingTableRangeGap"]);
        let mut faulty = good();
        faulty[0].insert("max", doc! { "x": 1 });
        assert_eq!(kinds(&c, &faulty), ["RoutingTableRangeOverlap"]);
    }

    #[test]
    fn each_fault_of_a_chunk_is_found_as_itself() {
        let c = collection(doc! {});
        let mut faulty = good();
        faulty[1].remove("history");
        assert_eq!(kinds(&c, &faulty), ["CorruptedChunkHistory"]);
        let mut faulty = good();
        faulty[1].insert("shard", "b");
        assert_eq!(kinds(&c, &faulty), ["CorruptedChunkHistory"]);
        let mut faulty = good();
        faulty[1].insert("onCurrentShardSince", Timestamp::new(8, 0));
        assert_eq!(kinds(&c, &faulty), ["CorruptedChunkHistory"]);
        let mut faulty = good();
        for (chunk, side) in [(0, "max"), (1, "min")] {
            faulty[chunk].insert(side, doc! { "y": 0 });
        }
        assert_eq!(kinds(&c, &faulty), ["CorruptedChunkShardKey", "CorruptedChunkShardKey"]);
    }

    #[test]
    fn faults_of_tracked_unsharded_collections_are_found() {
        let c = collection(doc! { "unsplittable": true });
        let expected =
            ["TrackedUnshardedCollectionHasMultipleChunks", "TrackedUnshardedCollectionHasInvalidKey"];
        assert_eq!(kinds(&c, &good()), expected);
    }

    #[test]
    fn faults_of_zones_are_found() {
        let key = ShardKeyPattern::parse(&doc! { "x": 1 }).unwrap();
        let zone = |min: Document, max: Document| ZoneRange { id: Value::Null, zone: "z".into(), min, max };
        let kinds = |zones: &[ZoneRange]| {
            check_zones(&key, "d.c", zones)
                .iter()
                .map(|f| f.get_str("type").unwrap().to_string())
                .collect::<Vec<_>>()
        };
        assert!(
            kinds(&[zone(doc! { "x": 0 }, doc! { "x": 5 }), zone(doc! { "x": 5 }, doc! { "x": 9 })])
                .is_empty()
        );
        assert_eq!(
            kinds(&[zone(doc! { "x": 0 }, doc! { "x": 6 }), zone(doc! { "x": 5 }, doc! { "x": 9 })]),
            ["ZonesRangeOverlap"]
        );
        assert_eq!(kinds(&[zone(doc! { "y": 0 }, doc! { "y": 6 })]), ["CorruptedZoneShardKey"]);
    }
}
