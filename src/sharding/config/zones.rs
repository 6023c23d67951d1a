//! Zones: names that shards carry, and ranges of keys that belong to them.

use super::catalog::{ZoneRange, compare};
use super::{
    ConfigServer, SHARDS, TAGS, argument, delete, edit, insert, require_majority, required_doc, required_str,
    shard_argument, shown,
};
use crate::key_pattern::ShardKeyPattern;
use document::{Document, Result, Value, bail, doc};
use node::{Operation, Request};

impl ConfigServer {
    /// `{_configsvrAddShardToZone: shard, zone}`.
    ///
    /// # Errors
    /// ShardNotFound (70).
    pub async fn add_shard_to_zone(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, "_configsvrAddShardToZone")?;
        self.ensure().await?;
        let body = request.body.to_document();
        self.change_zones(shard_argument(&request), required_str(&body, "zone")?, true).await
    }

    /// `{_configsvrRemoveShardFromZone: shard, zone}`.
    ///
    /// # Errors
    /// ShardNotFound (70), ZoneStillInUse (163) when it is the last shard of a zone with ranges.
    pub async fn remove_shard_from_zone(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, "_configsvrRemoveShardFromZone")?;
        self.ensure().await?;
        let body = request.body.to_document();
        self.change_zones(shard_argument(&request), required_str(&body, "zone")?, false).await
    }

    async fn change_zones(&self, shard: &str, zone: &str, add: bool) -> Result<Document> {
        let _lock = self.topology.lock().await;
        let found = self.catalog().shard(shard)?;
        if found.zones.iter().any(|z| z == zone) == add {
            return Ok(Document::new());
        }
        let others = self.catalog().shards().into_iter().filter(|s| s.name != shard);
        if !add && self.catalog().zone_has_ranges(zone) && !others.flat_map(|s| s.zones).any(|z| z == zone) {
            bail!(
                ZONE_STILL_IN_USE,
                "Cannot remove shard {shard} from zone {zone}: a range of a collection still needs it"
            );
        }
        let mut zones = found.zones;
        if add {
            zones.push(zone.to_string());
        } else {
            zones.retain(|z| z != zone);
        }
        let document = self.catalog().shard_document(shard).unwrap_or_default();
        self.commit(&[edit(SHARDS, document, |d| d.insert("tags", zones))]).await?;
        Ok(Document::new())
    }

    /// `{_configsvrUpdateZoneKeyRange: ns, min, max, zone}`; zone null removes exactly this range.
    ///
    /// # Errors
    /// ZoneNotFound (177), ShardKeyNotFound (61), RangeOverlapConflict (178), InvalidOptions (72).
    pub async fn update_zone_key_range(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        require_majority(op, "_configsvrUpdateZoneKeyRange")?;
        self.ensure().await?;
        let ns = argument(&request)?;
        let body = request.body.to_document();
        let (mut min, mut max) = (required_doc(&body, "min")?.clone(), required_doc(&body, "max")?.clone());
        let _topology = self.topology.lock().await;
        let _lock = self.lock_chunks(ns).await;
        // One that is not sharded has no key yet: its zones are for the one to come.
        if let Some(collection) = self.catalog().find_collection(ns)?.filter(|c| !c.is_unsplittable()) {
            min = full_bound(&collection.key, &min)?;
            max = full_bound(&collection.key, &max)?;
        }
        if min.keys().ne(max.keys()) || compare(&min, &max).is_ge() {
            bail!(
                BAD_VALUE,
                "min: {} should be less than max: {}, of the same fields",
                shown(&min),
                shown(&max)
            );
        }
        let ranges = self.catalog().zone_ranges(ns);
        let Some(zone) = body.get_present("zone").and_then(Value::as_str) else {
            let exact: Vec<_> = ranges
                .iter()
                .filter(|r| r.min == min && r.max == max)
                .map(|r| delete(TAGS, r.id.clone()))
                .collect();
            self.commit(&exact).await?;
            return Ok(Document::new());
        };
        if !self.catalog().shards().iter().any(|s| s.zones.iter().any(|z| z == zone)) {
            bail!(ZONE_NOT_FOUND, "zone {zone} does not exist");
        }
        let overlaps = |r: &&ZoneRange| compare(&r.min, &max).is_lt() && compare(&min, &r.max).is_lt();
        if let Some(other) = ranges.iter().find(overlaps) {
            if other.min == min && other.max == max && other.zone == zone {
                return Ok(Document::new());
            }
            bail!(
                RANGE_OVERLAP_CONFLICT,
                "Zone range: [{}, {}) is overlapping with existing: [{}, {})",
                shown(&min),
                shown(&max),
                shown(&other.min),
                shown(&other.max)
            );
        }
        let id = self.node.new_object_id();
        self.commit(&[insert(TAGS, doc! { "_id": id, "ns": ns, "tag": zone, "min": min, "max": max })])
            .await?;
        Ok(Document::new())
    }
}

fn full_bound(key: &ShardKeyPattern, bound: &Document) -> Result<Document> {
    let Some(full) = key.extend_bound(bound, Value::MinKey) else {
        bail!(
            SHARD_KEY_NOT_FOUND,
            "min: {} is not a valid shard key of {}",
            shown(bound),
            shown(key.document())
        )
    };
    for (field, (_, value)) in key.fields().iter().zip(full.iter()) {
        if field.hashed && !matches!(value, Value::Int64(_) | Value::MinKey | Value::MaxKey) {
            bail!(
                INVALID_OPTIONS,
                "Bounds of a hashed field must be of type NumberLong, MinKey or MaxKey, found {}",
                value.type_name()
            );
        }
    }
    Ok(full)
}
