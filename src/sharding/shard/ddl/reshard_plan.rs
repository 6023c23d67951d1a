//! What a resharding is to come to: whether it may be done, and who will own what.
//!
//! Split points are keys of documents, sampled evenly on the donors, so that chunks hold about the same number of documents;
//! the bounds of zones are split points too. Chunks go round among the shards of their zone, or among all.

use super::coordinator::namespace;
use super::reshard::{OF_STATE, names};
use super::{Ddl, create, split, timeseries};
use crate::config::catalog::compare;
use crate::config::{required, required_doc, required_str, shown};
use crate::key_pattern::ShardKeyPattern;
use crate::messages::ddl::FirstChunk;
use crate::messages::resharding::ReshardSample;
use crate::messages::{self, Message};
use crate::remote::Target;
use crate::routing::{Routing, RoutingTable};
use crate::shard::resharding::{self, documents, recipient::key_index};
use document::{Document, Result, Value, bail, doc, err};
use std::collections::BTreeMap;
use std::sync::Arc;

/// More first chunks than this are refused, and more than so many for each shard.
const CHUNKS_MAX: i64 = 1_000_000;
const CHUNKS_OF_SHARD_MAX: i64 = 8192;
/// Keys sampled for each chunk where a request does not say, and for all chunks together at least.
const SAMPLES_OF_CHUNK: i64 = 10;
const SAMPLES_MIN: i64 = 1000;
/// "The shard key provided does not have enough cardinality". DO NOT CHANGE: clients see it.
const NOT_ENOUGH_CARDINALITY: i32 = 4952606;

/// The distribution to come.
pub(super) struct Planned {
    pub chunks: Vec<FirstChunk>,
    /// Zone ranges that take the place of the collection's, if they change.
    pub zones: Option<Vec<Document>>,
    pub documents: i64,
    pub bytes: i64,
}

/// A shard as the distribution sees it.
struct Shard {
    name: String,
    zones: Vec<String>,
}

fn request(state: &Document) -> Document {
    state.get_document("request").cloned().unwrap_or_default()
}
/// Whether the shard key is to be unique, as that of a collection that is not sharded yet may be.
pub(super) fn is_unique(state: &Document) -> bool {
    state.get_document("request").and_then(|asked| asked.get("unique")).is_some_and(Value::truthy)
}
fn is_move(state: &Document) -> bool {
    state.get_bool("unsplittable").unwrap_or(false)
}

impl Ddl {
    /// Whether what is asked makes sense for the collection as it is; finds what is to be known of it.
    ///
    /// # Errors
    /// NamespaceNotFound (26), NamespaceNotSharded (118), CommandNotSupportedOnView (166), ShardNotFound (70),
    /// CollectionUUIDMismatch (361), InvalidOptions (72), BadValue (2), IllegalOperation (20).
    pub(super) async fn check_reshard(&self, state: &mut Document) -> Result<()> {
        let ns = namespace(state).to_string();
        let kind = required_str(state, "provenance")?.to_string();
        let asked = request(state);
        if split(&ns).1.starts_with("system.") && !timeseries::is_of_series(&asked) {
            bail!(ILLEGAL_OPERATION, "Can't {kind} a system collection: {ns}");
        }
        self.check_buckets(&ns, &asked)?;
        let is_view = self.role.node.namespaces.slot(&ns).read_unchecked().view.is_some();
        if is_view {
            bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Namespace {ns} is a view, not a collection");
        }
        let entry = self.tracked(&ns).await?;
        let sharded = entry.as_ref().is_some_and(|e| e.get_bool("unsplittable") != Some(true));
        check_kind(&kind, &ns, sharded)?;
        let tracked = entry.as_ref().and_then(|e| e.get("uuid")).and_then(Value::as_uuid);
        let Some(old) = tracked.or_else(|| self.uuid_here(&ns)) else {
            bail!(NAMESPACE_NOT_FOUND, "Collection {ns} does not exist")
        };
        if let Some(wanted) = asked.get("collectionUUID").and_then(Value::as_uuid).filter(|w| *w != old) {
            return Err(self.role.node.uuid_mismatch(&ns, wanted));
        }
        let donors = self.donors_now(&ns, tracked).await?;
        state.insert("tracked", tracked.is_some());
        state.insert("oldUUID", Value::uuid(old));
        state.insert("oldKey", entry.as_ref().and_then(|e| e.get("key")).cloned().unwrap_or(Value::Null));
        state.insert("newUUID", Value::uuid(self.role.node.new_uuid()));
        let resharding = self.role.node.new_uuid();
        state.insert(
            "reshardingUUID",
            asked.get("reshardingUUID").cloned().unwrap_or(Value::uuid(resharding)),
        );
        let temporary = format!("{}.system.resharding.{}", split(&ns).0, document::uuid::to_string(&old));
        state.insert("tempNs", temporary);
        match kind.as_str() {
            "moveCollection" | "unshardCollection" => {
                let to = self.destination(asked.get_str("toShard")).await?;
                state.insert("key", doc! { "_id": 1 });
                state.insert("unsplittable", true);
                state.insert("unchanged", !sharded && donors == [to.clone()]);
                state.insert("to", to);
                self.refuse_capped_over_shards(&ns, &donors)
            }
            "shardCollection" => self.check_new_key(state, &asked, sharded),
            _ => {
                check_options(&asked)?;
                self.check_new_key(state, &asked, sharded)
            }
        }
    }

    /// The placement of a tracked collection.
    async fn table_now(&self, ns: &str, tracked: Option<[u8; 16]>) -> Result<Option<Arc<RoutingTable>>> {
        match (tracked, self.role.refresh_collection(ns).await?) {
            (None, _) => Ok(None),
            (Some(uuid), Routing::Sharded(table)) if table.uuid == uuid => Ok(Some(table)),
            _ => bail!(CONFLICTING_OPERATION_IN_PROGRESS, "the placement of {ns} is changing"),
        }
    }

    /// The shards that own documents of the collection. A migration that commits changes them until migrations are frozen.
    async fn donors_now(&self, ns: &str, tracked: Option<[u8; 16]>) -> Result<Vec<String>> {
        match self.table_now(ns, tracked).await? {
            Some(table) => Ok(table.shards().map(|s| s.to_string()).collect()),
            None => Ok(vec![self.shard()?]),
        }
    }

    /// Chooses the donors, and refuses what cannot be copied from them. No chunk moves any more.
    ///
    /// # Errors
    /// IllegalOperation (20), ConflictingOperationInProgress (117).
    pub(super) async fn choose_donors(&self, state: &mut Document, tracked: Option<[u8; 16]>) -> Result<()> {
        let donors = self.donors_now(namespace(state), tracked).await?;
        if is_move(state) {
            self.refuse_capped_over_shards(namespace(state), &donors)?;
        }
        state.insert("donors", donors);
        Ok(())
    }

    /// A capped collection keeps its order only when one shard hands it out.
    fn refuse_capped_over_shards(&self, ns: &str, donors: &[String]) -> Result<()> {
        match donors.len() > 1
            && self.definition_of(ns).is_ok_and(|(options, _)| options.contains_key("capped"))
        {
            true => bail!(ILLEGAL_OPERATION, "{ns} is capped and on several shards"),
            false => Ok(()),
        }
    }

    fn check_new_key(&self, state: &mut Document, asked: &Document, sharded: bool) -> Result<()> {
        let pattern = ShardKeyPattern::parse(required_doc(asked, "key")?)?;
        let same = sharded && state.get_document("oldKey") == Some(pattern.document());
        let forced = asked.get("forceRedistribution").is_some_and(Value::truthy);
        state.insert("key", pattern.document().clone());
        state.insert("sameKey", same);
        state.insert("unchanged", same && !forced);
        Ok(())
    }

    /// The shard that a collection moves to; without a name the one with the least data.
    async fn destination(&self, name: Option<&str>) -> Result<String> {
        let shards = self.role.remote.find_config("shards", Document::new(), Some(doc! { "_id": 1 })).await?;
        let usable: Vec<&Document> = shards.iter().filter(|s| s.get_bool("draining") != Some(true)).collect();
        let id = |s: &Document| s.get_str("_id").unwrap_or("").to_string();
        if let Some(name) = name {
            let found = shards.iter().find(|s| s.get_str("_id") == Some(name));
            let found = found.ok_or_else(|| err!(SHARD_NOT_FOUND, "Shard {name} does not exist"))?;
            if found.get_bool("draining") == Some(true) {
                bail!(SHARD_NOT_FOUND, "Shard {name} is currently draining and may not receive collections");
            }
            return Ok(id(found));
        }
        let sizes = usable.iter().map(|s| async {
            let reply =
                self.role.remote.admin(Target::Shard(&id(s)), doc! { "listDatabases": 1 }).await.ok()?;
            Some((reply.get_i64("totalSize")?, id(s)))
        });
        let least = futures::future::join_all(sizes).await.into_iter().flatten().min();
        let first = || usable.first().map(|s| id(s));
        least.map(|(_, name)| name).or_else(first).ok_or_else(|| err!(SHARD_NOT_FOUND, "No shards found"))
    }

    /// Chooses the chunks.
    pub(super) async fn plan_distribution(&self, state: &Document) -> Result<Planned> {
        let key = ShardKeyPattern::parse(required_doc(state, "key")?)?;
        if is_move(state) {
            let to = required_str(state, "to")?.to_string();
            let whole = FirstChunk { min: key.global_min(), max: key.global_max(), shard: to };
            // Zones of a collection that is not sharded are for its sharding to come.
            let zones = (required_str(state, "provenance")? != "moveCollection").then(Vec::new);
            return Ok(Planned { chunks: vec![whole], zones, documents: 0, bytes: 0 });
        }
        let asked = request(state);
        let shards = self.shards_to_use(&asked).await?;
        let (zones, changed) = self.zones_to_come(state, &asked, &key).await?;
        let present = match self.role.refresh_collection(namespace(state)).await? {
            Routing::Sharded(table) => table.chunk_count() as i64,
            Routing::Unsharded => 1,
        };
        let given = asked.get_i64("numInitialChunks");
        let wanted = chunks_wanted(given, present, shards.len() as i64)?;
        let sample = self.sample_keys(state, samples_wanted(&asked, wanted)).await?;
        let chunks = match bounds_given(&asked, &key)? {
            Some(chunks) => chunks,
            None => {
                let points = split_points(&sample, &key, wanted as usize, given.is_some())?;
                distribute(&key, points, &zones, &shards)?
            }
        };
        resharding::table_of(namespace(state), &key, &chunks)?;
        Ok(Planned { chunks, zones: changed, documents: sample.documents, bytes: sample.bytes })
    }

    async fn shards_to_use(&self, asked: &Document) -> Result<Vec<Shard>> {
        let all = self.role.remote.find_config("shards", Document::new(), Some(doc! { "_id": 1 })).await?;
        let usable = all.iter().filter(|s| s.get_bool("draining") != Some(true)).filter_map(|s| {
            let zones = s.get_array("tags").into_iter().flatten();
            Some(Shard {
                name: s.get_str("_id")?.to_string(),
                zones: zones.filter_map(|v| v.as_str().map(str::to_string)).collect(),
            })
        });
        let mut shards: Vec<Shard> = usable.collect();
        let chosen: Vec<String> = documents(asked, "shardDistribution")
            .iter()
            .filter_map(|d| d.get_str("shard").map(str::to_string))
            .collect();
        if let Some(missing) = chosen.iter().find(|c| shards.iter().all(|s| s.name != **c)) {
            bail!(SHARD_NOT_FOUND, "Shard {missing} of shardDistribution does not exist or is draining");
        }
        shards.retain(|s| chosen.is_empty() || chosen.contains(&s.name));
        match shards.is_empty() {
            true => bail!(SHARD_NOT_FOUND, "No shards found"),
            false => Ok(shards),
        }
    }

    /// Zone ranges by lower bound, and those that take the place of the collection's if they change.
    async fn zones_to_come(
        &self,
        state: &Document,
        asked: &Document,
        key: &ShardKeyPattern,
    ) -> Result<(Vec<Document>, Option<Vec<Document>>)> {
        let ns = namespace(state);
        let now = self.role.remote.find_config("tags", doc! { "ns": ns }, Some(doc! { "min": 1 })).await?;
        let mut now: Vec<Document> = now
            .iter()
            .map(|t| doc! { "zone": t.get("tag").cloned(), "min": t.get("min").cloned(), "max": t.get("max").cloned() })
            .collect();
        let same_key = state.get_bool("sameKey").unwrap_or(false);
        if !asked.contains_key("zones") {
            if required_str(state, "provenance")? == "shardCollection" {
                // They were defined for the key to come, by fields that it begins with.
                for zone in &mut now {
                    let (min, max) = create::zone_bounds(ns, key, zone)?;
                    zone.insert("min", min);
                    zone.insert("max", max);
                }
            } else if !now.is_empty() && !same_key {
                bail!(BAD_VALUE, "Must specify value for zones field");
            }
            return Ok((now, None));
        }
        let zones = checked_zones(documents(asked, "zones"), key)?;
        for zone in &zones {
            let name = required_str(zone, "zone")?;
            let known = self.role.remote.find_config("shards", doc! { "tags": name }, None).await?;
            if known.is_empty() {
                bail!(BAD_VALUE, "Zone must already exist: {name}");
            }
        }
        Ok((zones.clone(), Some(zones)))
    }

    async fn sample_keys(&self, state: &Document, samples: i64) -> Result<Sample> {
        let donors = names(state, "donors");
        let ask = ReshardSample {
            ns: namespace(state).to_string(),
            old: messages::read(state, OF_STATE, "oldUUID")?,
            tracked: messages::read(state, OF_STATE, "tracked")?,
            key: messages::read(state, OF_STATE, "key")?,
            samples,
        };
        let mut sample = Sample { keys: Vec::new(), whole: true, documents: 0, bytes: 0 };
        for (_, reply) in self.on_shards(&donors, "admin", ask.to_document()).await? {
            sample.keys.extend(documents(&reply, "keys"));
            sample.whole &= reply.get_bool("whole").unwrap_or(false);
            sample.documents += reply.get_i64("documents").unwrap_or(0);
            sample.bytes += reply.get_i64("bytes").unwrap_or(0);
        }
        sample.keys.sort_by(compare);
        Ok(sample)
    }
}

/// Keys of documents, in order.
pub(crate) struct Sample {
    pub keys: Vec<Document>,
    /// They are the keys of all documents.
    pub whole: bool,
    pub documents: i64,
    pub bytes: i64,
}

fn check_kind(kind: &str, ns: &str, sharded: bool) -> Result<()> {
    match (kind, sharded) {
        ("moveCollection", true) => {
            bail!(NAMESPACE_NOT_FOUND, "MoveCollection can only be called on an unsharded collection: {ns}")
        }
        ("shardCollection", true) => {
            bail!(ALREADY_INITIALIZED, "sharding already enabled for collection {ns}")
        }
        ("unshardCollection" | "reshardCollection", false) => {
            bail!(NAMESPACE_NOT_SHARDED, "Namespace must be sharded to perform a {kind} command: {ns}")
        }
        _ => Ok(()),
    }
}

/// How many keys a distribution to so many chunks is chosen by.
fn samples_wanted(asked: &Document, chunks: i64) -> i64 {
    let of_chunk = asked.get_i64("numSamplesPerChunk").unwrap_or(SAMPLES_OF_CHUNK);
    chunks.saturating_mul(of_chunk).max(SAMPLES_MIN)
}

fn check_options(asked: &Document) -> Result<()> {
    if let Some(given) = asked.get_i64("numSamplesPerChunk").filter(|n| *n < 1) {
        bail!(
            BAD_VALUE,
            "BSON field 'reshardCollection.numSamplesPerChunk' value must be >= 1, actual value '{given}'"
        );
    }
    if asked.get("unique").is_some_and(Value::truthy) {
        bail!(BAD_VALUE, "unique must be false");
    }
    if let Some(collation) = asked.get_present("collation")
        && collation.as_document().and_then(|c| c.get_str("locale")) != Some("simple")
    {
        bail!(
            BAD_VALUE,
            "The collation for reshardCollection must be {{locale: 'simple'}}, but found: {}",
            document::shell::value(collation)
        );
    }
    if asked.get("relaxed").is_some_and(Value::truthy) {
        bail!(NOT_IMPLEMENTED, "the option 'relaxed' of reshardCollection is not implemented");
    }
    if asked.contains_key("_presetReshardedChunks") && asked.contains_key("numInitialChunks") {
        bail!(
            BAD_VALUE,
            "Test commands must be enabled when a value is provided for _presetReshardedChunks, and numInitialChunks must not be"
        );
    }
    Ok(())
}

/// How many chunks there are to be: as many as asked for, or else as many as there are at `present`, within bounds.
///
/// # Errors
/// BadValue (2) when `given` is beyond them.
fn chunks_wanted(given: Option<i64>, present: i64, shards: i64) -> Result<i64> {
    let most = CHUNKS_MAX.min(CHUNKS_OF_SHARD_MAX * shards);
    match given.unwrap_or(present.max(shards).min(most)) {
        wanted if (1..=most).contains(&wanted) => Ok(wanted),
        _ => bail!(
            BAD_VALUE,
            "numInitialChunks must be between 1 and the lesser of {} (8192 for each shard) and {CHUNKS_MAX}",
            CHUNKS_OF_SHARD_MAX * shards
        ),
    }
}

/// Zones in order, with full bounds that do not overlap.
fn checked_zones(mut zones: Vec<Document>, key: &ShardKeyPattern) -> Result<Vec<Document>> {
    for zone in &zones {
        required_str(zone, "zone")?;
        for name in ["min", "max"] {
            let bound = required_doc(zone, name)?;
            if !key.is_full_key(bound) {
                bail!(
                    BAD_VALUE,
                    "the bound {} of a zone is no full shard key of {}",
                    shown(bound),
                    shown(key.document())
                );
            }
        }
    }
    let bound = |d: &Document, name: &str| d.get_document(name).cloned().unwrap_or_default();
    zones.sort_by(|a, b| compare(&bound(a, "min"), &bound(b, "min")));
    let wrong = zones.iter().any(|z| compare(&bound(z, "min"), &bound(z, "max")).is_ge())
        || zones.windows(2).any(|p| compare(&bound(&p[0], "max"), &bound(&p[1], "min")).is_gt());
    match wrong {
        true => bail!(BAD_VALUE, "zones overlap, or the min of one is not below its max"),
        false => Ok(zones),
    }
}

/// The chunks where the request names all bounds: `_presetReshardedChunks`, or a `shardDistribution` with bounds.
fn bounds_given(asked: &Document, key: &ShardKeyPattern) -> Result<Option<Vec<FirstChunk>>> {
    let (list, shard) = match asked.contains_key("_presetReshardedChunks") {
        true => (documents(asked, "_presetReshardedChunks"), "recipientShardId"),
        false => (documents(asked, "shardDistribution"), "shard"),
    };
    if !list.iter().any(|d| d.contains_key("min") || d.contains_key("max")) {
        return Ok(None);
    }
    let mut chunks = Vec::new();
    for d in &list {
        let (min, max) = (required_doc(d, "min")?.clone(), required_doc(d, "max")?.clone());
        chunks.push(FirstChunk { min, max, shard: required_str(d, shard)?.to_string() });
    }
    chunks.sort_by(|a, b| compare(&a.min, &b.min));
    match resharding::table_of("", key, &chunks) {
        Ok(_) => Ok(Some(chunks)),
        Err(e) => bail!(
            BAD_VALUE,
            "the chunks given do not cover the key space without gaps and overlaps: {}",
            e.message
        ),
    }
}

/// `chunks - 1` keys that divide the sample evenly, or fewer where there are not so many; as many as asked for when `exact`.
pub(crate) fn split_points(
    sample: &Sample,
    key: &ShardKeyPattern,
    chunks: usize,
    exact: bool,
) -> Result<Vec<Document>> {
    let lowest = key.global_min();
    let mut distinct: Vec<Document> = sample.keys.iter().filter(|k| **k != lowest).cloned().collect();
    distinct.dedup();
    // A chunk below the lowest key would be empty.
    let distinct = distinct.get(1..).unwrap_or_default();
    let evenly = |from: &[Document]| {
        let mut points: Vec<Document> =
            (1..chunks).filter_map(|i| from.get(i * from.len() / chunks).cloned()).collect();
        points.dedup();
        points
    };
    let lowest_key = sample.keys.first();
    let mut points = evenly(&sample.keys);
    points.retain(|p| Some(p) != lowest_key && *p != lowest);
    if points.len() + 1 < chunks {
        points = if distinct.len() < chunks { distinct.to_vec() } else { evenly(distinct) };
    }
    if exact && points.len() + 1 < chunks {
        let text = if sample.whole { "" } else { " among the documents sampled" };
        return Err(document::Error::new(
            NOT_ENOUGH_CARDINALITY,
            format!(
                "The shard key provided does not have enough cardinality{text} to make the required number of chunks of {chunks}, it can only make {} chunks",
                points.len() + 1
            ),
        ));
    }
    Ok(points)
}

/// Chunks between the points and the bounds of zones.
fn distribute(
    key: &ShardKeyPattern,
    mut points: Vec<Document>,
    zones: &[Document],
    shards: &[Shard],
) -> Result<Vec<FirstChunk>> {
    let bound = |d: &Document, name: &str| d.get_document(name).cloned().unwrap_or_default();
    points.extend(zones.iter().flat_map(|z| [bound(z, "min"), bound(z, "max")]));
    points.retain(|p| *p != key.global_min() && *p != key.global_max());
    points.sort_by(compare);
    points.dedup_by(|a, b| compare(a, b).is_eq());
    let mut turns: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    let mut chunks = Vec::with_capacity(points.len() + 1);
    let mut min = key.global_min();
    for max in points.into_iter().chain([key.global_max()]) {
        let holds = |z: &&Document| {
            compare(&bound(z, "min"), &min).is_le() && compare(&max, &bound(z, "max")).is_le()
        };
        let zone = zones.iter().find(holds).and_then(|z| z.get_str("zone"));
        let able: Vec<&Shard> =
            shards.iter().filter(|s| zone.is_none_or(|z| s.zones.iter().any(|n| n == z))).collect();
        let turn = turns.entry(zone).or_default();
        let Some(shard) = able.get(*turn % able.len().max(1)) else {
            bail!(BAD_VALUE, "no shard that may be used is in zone {}", zone.unwrap_or(""))
        };
        *turn += 1;
        chunks.push(FirstChunk { min, max: max.clone(), shard: shard.name.clone() });
        min = max;
    }
    Ok(chunks)
}

/// The indexes of the copy: those of the collection, and one for the shard key where none serves it.
///
/// # Errors
/// InvalidOptions (72) when a unique index does not go with the key, or sharding a filled collection would need an index.
pub(super) fn indexes_of_copy(
    state: &Document,
    options: &Document,
    indexes: &[Document],
    documents: i64,
) -> Result<Vec<Document>> {
    let mut all = indexes.to_vec();
    if is_move(state) {
        return Ok(all);
    }
    let key = ShardKeyPattern::parse(required_doc(state, "key")?)?;
    if options.get("capped").is_some_and(Value::truthy) {
        bail!(INVALID_OPTIONS, "can't shard a capped collection: {}", namespace(state));
    }
    let asked = request(state);
    let wanted = |name: &str| asked.get_present(name).is_none_or(Value::truthy);
    let unique = |i: &&Document| i.get("unique").is_some_and(Value::truthy);
    for index in indexes.iter().filter(|_| wanted("enforceUniquenessCheck")).filter(unique) {
        let pattern = required(index, "key", Value::as_document)?;
        let simple = index.get_document("collation").is_none_or(|c| c.get_str("locale") == Some("simple"));
        if index.get_str("name") != Some("_id_") && !(key.fields_begin(pattern) && simple) {
            bail!(
                INVALID_OPTIONS,
                "can't shard collection '{}' with unique index on {} and proposed shard key {}. Uniqueness can't be maintained unless shard key is a prefix",
                namespace(state),
                shown(pattern),
                shown(key.document())
            );
        }
    }
    let missing = key_index(&key, indexes, options.contains_key("collation"), is_unique(state));
    let missing = missing.map(|spec| timeseries::index_for(&asked, spec)).transpose()?;
    let sharded = required_str(state, "provenance")? == "shardCollection";
    if missing.is_some() && sharded && (documents > 0 || !wanted("implicitlyCreateIndex")) {
        return Err(create::index_missing());
    }
    if let Some(spec) = &missing
        && let Some(other) = indexes.iter().find(|i| i.get("name") == spec.get("name"))
    {
        bail!(
            INDEX_KEY_SPECS_CONFLICT,
            "an index of the name of that on the shard key is defined otherwise: {}",
            shown(other)
        );
    }
    all.extend(missing);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(xs: &[i32]) -> Sample {
        let keys = xs.iter().map(|x| doc! { "x": *x }).collect();
        Sample { keys, whole: true, documents: xs.len() as i64, bytes: 0 }
    }
    fn points(xs: &[i32], chunks: usize, exact: bool) -> Result<Vec<i64>> {
        let key = ShardKeyPattern::parse(&doc! { "x": 1 }).unwrap();
        let points = split_points(&sample(xs), &key, chunks, exact)?;
        Ok(points.iter().map(|p| p.get_i64("x").unwrap()).collect())
    }

    #[test]
    fn more_chunks_than_shards_may_get_are_refused_only_when_asked_for() {
        assert_eq!(chunks_wanted(None, 100_000, 2).unwrap(), 16384);
        assert_eq!(chunks_wanted(None, 1, 3).unwrap(), 3);
        assert_eq!(chunks_wanted(None, 5_000_000, 1000).unwrap(), CHUNKS_MAX);
        assert_eq!(chunks_wanted(Some(5), 100_000, 2).unwrap(), 5);
        for given in [0, 16385] {
            assert_eq!(chunks_wanted(Some(given), 1, 2).unwrap_err().code, document::codes::BAD_VALUE);
        }
    }
    #[test]
    fn a_request_says_how_many_keys_are_sampled_for_each_chunk() {
        assert_eq!(samples_wanted(&doc! {}, 500), 5000);
        assert_eq!(samples_wanted(&doc! { "numSamplesPerChunk": 30 }, 500), 15000);
        assert_eq!(samples_wanted(&doc! { "numSamplesPerChunk": 30 }, 2), SAMPLES_MIN);
        assert_eq!(samples_wanted(&doc! { "numSamplesPerChunk": i64::MAX }, 500), i64::MAX);
        check_options(&doc! { "numSamplesPerChunk": 1 }).unwrap();
        let refused = check_options(&doc! { "numSamplesPerChunk": 0 }).unwrap_err();
        assert_eq!(refused.code, document::codes::BAD_VALUE);
    }
    #[test]
    fn split_points_divide_the_documents_evenly() {
        let xs: Vec<i32> = (0..100).collect();
        assert_eq!(points(&xs, 4, true).unwrap(), [25, 50, 75]);
        assert_eq!(points(&xs, 1, true).unwrap(), [0i64; 0]);
        // Many of one key, and enough others.
        assert_eq!(points(&[0, 0, 0, 0, 0, 0, 1, 2], 3, true).unwrap().len(), 2);
    }
    #[test]
    fn too_few_keys_make_fewer_chunks_unless_the_number_was_asked_for() {
        assert_eq!(points(&[5, 5, 5, 6], 10, false).unwrap(), [6]);
        assert_eq!(points(&[5, 5, 5, 6], 10, true).unwrap_err().code, NOT_ENOUGH_CARDINALITY);
        assert_eq!(points(&[], 10, false).unwrap(), [0i64; 0]);
    }
    #[test]
    fn chunks_go_round_and_stay_in_their_zones() {
        let key = ShardKeyPattern::parse(&doc! { "x": 1 }).unwrap();
        let shard = |name: &str, zones: &[&str]| Shard {
            name: name.into(),
            zones: zones.iter().map(|z| z.to_string()).collect(),
        };
        let shards = [shard("a", &[]), shard("b", &["low"])];
        let points = vec![doc! { "x": 10 }, doc! { "x": 20 }];
        let owners = |zones: &[Document]| -> Vec<String> {
            let chunks = distribute(&key, points.clone(), zones, &shards).unwrap();
            chunks.into_iter().map(|c| c.shard).collect()
        };
        assert_eq!(owners(&[]), ["a", "b", "a"]);
        let low = doc! { "zone": "low", "min": { "x": Value::MinKey }, "max": { "x": 15 } };
        assert_eq!(owners(&[low]), ["b", "b", "a", "b"]);
    }
}
