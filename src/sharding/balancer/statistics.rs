//! What the policy looks at: bytes each shard owns of a collection, its chunks, zones and flags.

use crate::config::ConfigServer;
use crate::config::catalog::{Sharded, ZoneRange, compare};
use crate::remote::Target;
use crate::routing::registry::Shard;
use document::{Document, Result, Value, bail, doc};
use protocol::balancer::{ChunkView, CollectionView, ShardLoad};
use std::collections::BTreeMap;

/// Bytes owned, by shard and namespace.
pub(crate) type Sizes = BTreeMap<(String, String), i64>;

/// Asks every shard for the sizes of `collections`.
///
/// # Errors
/// Those of a shard that does not answer: without its number nothing may be concluded.
pub(crate) async fn sizes(config: &ConfigServer, shards: &[Shard], collections: &[Sharded]) -> Result<Sizes> {
    let wanted: Vec<Document> = collections
        .iter()
        .map(|c| doc! { "ns": c.info.ns.as_str(), "UUID": Value::uuid(c.info.uuid) })
        .collect();
    let ask = |shard: Shard| {
        let command =
            doc! { "_shardsvrGetStatsForBalancing": 1, "collections": wanted.clone(), "scaleFactor": 1 };
        async move { (config.remote.admin(Target::Host(&shard.host), command).await, shard.name) }
    };
    let mut sizes = Sizes::new();
    for (reply, shard) in futures::future::join_all(shards.iter().cloned().map(ask)).await {
        let reply = reply?;
        let Some(stats) = reply.get_array("stats") else {
            bail!(FAILED_TO_PARSE, "shard {shard} answered no 'stats'")
        };
        for one in stats.iter().filter_map(Value::as_document) {
            // Shards round differently for large scale factors; a missing number counts as nothing held.
            let bytes = one.get("collSize").and_then(Value::as_f64).unwrap_or(0.0) as i64;
            sizes.insert((shard.clone(), one.get_str("ns").unwrap_or("").to_string()), bytes);
        }
    }
    Ok(sizes)
}

/// One collection as the policy sees it.
///
/// # Errors
/// Unreadable chunks.
pub(crate) fn view(
    config: &ConfigServer,
    collection: &Sharded,
    shards: &[Shard],
    sizes: &Sizes,
) -> Result<CollectionView> {
    let ns = &collection.info.ns;
    let zones = config.catalog().zone_ranges(ns);
    let chunks = config.catalog().chunks(collection)?;
    let load = |s: &Shard| ShardLoad {
        shard: s.name.clone(),
        draining: s.draining,
        zones: s.zones.iter().cloned().collect(),
        bytes: sizes.get(&(s.name.clone(), ns.clone())).copied().unwrap_or(0),
    };
    let settings = config.setting("balancer").unwrap_or_default();
    Ok(CollectionView {
        ns: ns.clone(),
        max_chunk_bytes: config.max_chunk_bytes(collection),
        shards: shards.iter().map(load).collect(),
        chunks: chunks
            .into_iter()
            .map(|c| ChunkView {
                zone: zone_of(&zones, &c.min, &c.max),
                shard: c.shard.to_string(),
                jumbo: c.jumbo,
                min: c.min,
                max: c.max,
            })
            .collect(),
        balanced: collection.may_migrate() && !collection.document.get_bool("noBalance").unwrap_or(false),
        move_jumbo: settings.get("attemptToBalanceJumboChunks").is_some_and(Value::truthy),
    })
}

/// The zone whose range holds the whole chunk.
fn zone_of(zones: &[ZoneRange], min: &Document, max: &Document) -> Option<String> {
    let holds = |z: &&ZoneRange| compare(&z.min, min).is_le() && compare(max, &z.max).is_le();
    zones.iter().find(holds).map(|z| z.zone.clone())
}
