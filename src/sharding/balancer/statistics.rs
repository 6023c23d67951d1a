//! What the policies look at: the shards with their flags, bytes each owns of each collection, chunks and zones.

use crate::chunk::Chunk;
use crate::config::ConfigServer;
use crate::config::catalog::{Sharded, ZoneRange};
use crate::messages::Message;
use crate::messages::balancing::{CountedCollection, StatsForBalancing};
use crate::routing::registry::Shard;
use document::{Document, Error, Result, Value, bail, err};
use protocol::balancer::{ChunkView, CollectionView, ShardView, ZoneView, assign_zones};
use std::collections::BTreeMap;

const MIB: i64 = 1024 * 1024;

/// The shards, and what they said they own.
pub(crate) struct Statistics {
    pub shards: Vec<Shard>,
    pub views: Vec<ShardView>,
    /// By shard, as in `shards`: bytes owned by namespace. `None` for a shard that did not say.
    owned: Vec<Option<BTreeMap<String, i64>>>,
    /// Shards that did not say, with the reason.
    pub failed: Vec<(String, Error)>,
}

/// Asks every shard for the sizes of `collections`. A shard that does not answer is left out by the policies.
pub(crate) async fn gather(config: &ConfigServer, collections: &[Sharded]) -> Statistics {
    let shards = config.catalog().shards();
    let counted = |c: &Sharded| CountedCollection { ns: c.info.ns.clone(), uuid: Some(c.info.uuid) };
    let wanted = StatsForBalancing { collections: collections.iter().map(counted).collect(), scale: None }
        .to_document();
    let ask = |shard: &Shard| {
        let (host, command) = (shard.host.clone(), wanted.clone());
        async move { config.ask_while_heard(&host, command).await.and_then(|r| parse(&r)) }
    };
    let replies = futures::future::join_all(shards.iter().map(ask)).await;
    let (mut views, mut owned, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (shard, reply) in shards.iter().zip(replies) {
        let used = reply.as_ref().map_or(0, |(_, used)| *used);
        views.push(shard_view(config, shard, used));
        match reply {
            Ok((bytes, _)) => owned.push(Some(bytes)),
            Err(e) => {
                owned.push(None);
                failed.push((shard.name.clone(), e));
            }
        }
    }
    Statistics { shards, views, owned, failed }
}

/// Bytes owned by namespace, and bytes the shard holds in all.
fn parse(reply: &Document) -> Result<(BTreeMap<String, i64>, i64)> {
    let stats = reply.get_array("stats").ok_or_else(|| err!(FAILED_TO_PARSE, "no 'stats' in the answer"))?;
    let one = |d: &Document| {
        // Shards round differently for large scale factors; a missing number counts as nothing held.
        let bytes = d.get("collSize").and_then(Value::as_f64).unwrap_or(0.0) as i64;
        (d.get_str("ns").unwrap_or_default().to_string(), bytes)
    };
    let bytes = stats.iter().filter_map(Value::as_document).map(one).collect();
    Ok((bytes, reply.get_i64("usedBytes").unwrap_or(0)))
}

fn shard_view(config: &ConfigServer, shard: &Shard, used: i64) -> ShardView {
    let entry = config.catalog().shard_document(&shard.name).unwrap_or_default();
    let max_mib = entry.get_i64("maxSize").unwrap_or(0);
    ShardView {
        name: shard.name.clone(),
        draining: shard.draining,
        zones: shard.zones.iter().cloned().collect(),
        full: max_mib > 0 && used >= max_mib.saturating_mul(MIB),
    }
}

impl Statistics {
    /// What each shard owns of a collection.
    pub(crate) fn bytes_of(&self, ns: &str) -> Vec<Option<i64>> {
        let of = |known: &BTreeMap<String, i64>| known.get(ns).copied().unwrap_or(0);
        self.owned.iter().map(|known| known.as_ref().map(of)).collect()
    }
}

/// One collection as the policy sees it.
///
/// # Errors
/// Unreadable chunks; zones that do not fit the shard key.
pub(crate) fn view(
    config: &ConfigServer,
    collection: &Sharded,
    statistics: &Statistics,
) -> Result<CollectionView> {
    let ns = &collection.info.ns;
    let zones = zone_views(collection, config.catalog().zone_ranges(ns))?;
    let mut chunks = chunk_views(config, collection, &statistics.shards)?;
    assign_zones(&mut chunks, &zones);
    Ok(CollectionView {
        ns: ns.clone(),
        max_chunk_bytes: config.max_chunk_bytes(collection),
        bytes: statistics.bytes_of(ns),
        zones,
        chunks,
        balanced: collection.is_balanced(),
        move_jumbo: config.balancer_settings().get("attemptToBalanceJumboChunks").is_some_and(Value::truthy),
        under_way: config.balancer.under_way.lock().contains(ns),
    })
}

/// Zone ranges with their encoded bounds, in order.
///
/// # Errors
/// Ranges that do not fit the shard key; RangeOverlapConflict (178).
pub(crate) fn zone_views(collection: &Sharded, ranges: Vec<ZoneRange>) -> Result<Vec<ZoneView>> {
    let view = |z: ZoneRange| {
        let (min_key, max_key) = (collection.key.encode_bound(&z.min)?, collection.key.encode_bound(&z.max)?);
        Ok(ZoneView { zone: z.zone, min: z.min, max: z.max, min_key, max_key })
    };
    let mut zones: Vec<ZoneView> = ranges.into_iter().map(view).collect::<Result<_>>()?;
    zones.sort_by(|a, b| a.min_key.cmp(&b.min_key));
    // Commands make none that overlap; whoever writes to config.tags may.
    match zones.windows(2).find(|pair| pair[1].min_key < pair[0].max_key) {
        Some(pair) => bail!(
            RANGE_OVERLAP_CONFLICT,
            "Ranges of zones {} and {} of {} overlap at {}",
            pair[0].zone,
            pair[1].zone,
            collection.info.ns,
            document::shell::document(&pair[1].min)
        ),
        None => Ok(zones),
    }
}

/// The chunks of a collection; one on a shard that is no longer there counts for none of them.
pub(crate) fn chunk_views(
    config: &ConfigServer,
    collection: &Sharded,
    shards: &[Shard],
) -> Result<Vec<ChunkView>> {
    let indexes = indexes_of(shards);
    Ok(config.catalog().chunks(collection)?.into_iter().filter_map(|c| chunk_view(c, &indexes)).collect())
}

/// Shards by name, as policies number them.
pub(crate) fn indexes_of(shards: &[Shard]) -> BTreeMap<&str, usize> {
    shards.iter().enumerate().map(|(i, s)| (s.name.as_str(), i)).collect()
}

/// One chunk, not yet in a zone; `None` on a shard that is no longer there.
pub(crate) fn chunk_view(chunk: Chunk, indexes: &BTreeMap<&str, usize>) -> Option<ChunkView> {
    Some(ChunkView {
        shard: *indexes.get(&*chunk.shard)?,
        jumbo: chunk.jumbo,
        min: chunk.min,
        max: chunk.max,
        min_key: chunk.min_key,
        max_key: chunk.max_key,
        zone: None,
    })
}
