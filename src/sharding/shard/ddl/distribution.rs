//! The first chunks of a new sharded collection, and where they go.

use crate::key_pattern::ShardKeyPattern;
use crate::messages::ddl::FirstChunk;
use document::{Document, Result, Value, bail};

/// More first chunks than this are refused, and more than so many for each shard.
const CHUNKS_MAX: i64 = 1_000_000;
const CHUNKS_OF_SHARD_MAX: i64 = 8192;

/// What decides the first chunks.
pub(super) struct Wanted<'a> {
    pub key: &'a ShardKeyPattern,
    pub empty: bool,
    /// 0 when not given.
    pub chunks: i64,
    pub primary: &'a str,
    /// Shards that take part, in name order.
    pub shards: &'a [String],
    /// Lower and upper bounds of zones with the shards of each, in key order and full.
    pub zones: &'a [ZoneRange],
    /// Spread the hashes over the shards of each zone (`presplitHashedZones`).
    pub presplit: bool,
}

/// Lower and upper bound of a zone's range, and the shards of the zone.
type ZoneRange = (Document, Document, Vec<String>);

/// An empty collection hashed by its first field is spread at once, one chunk for each shard or as many as asked for; an
/// empty one with zones gets a chunk for each zone and each gap, or with `presplit` some for each shard of a zone; any other one
/// chunk on the primary.
///
/// # Errors
/// InvalidOptions (72) for a number of chunks that cannot be made, and for zones that cannot be split by hashes.
pub(super) fn first_chunks(wanted: &Wanted<'_>) -> Result<Vec<FirstChunk>> {
    let shards = wanted.shards.len().max(1) as i64;
    if !(0..=CHUNKS_MAX).contains(&wanted.chunks) || wanted.chunks > CHUNKS_OF_SHARD_MAX * shards {
        bail!(
            INVALID_OPTIONS,
            "numInitialChunks cannot be more than either: {}, 8192 * number of shards; or {CHUNKS_MAX}",
            CHUNKS_OF_SHARD_MAX * shards
        );
    }
    if wanted.presplit {
        check_presplit(wanted)?;
        return Ok(by_zones(wanted, &|zone| presplit(wanted, zone)));
    }
    if wanted.empty && !wanted.zones.is_empty() {
        return Ok(by_zones(wanted, &|zone| vec![whole(wanted, zone)]));
    }
    if !wanted.empty || !wanted.key.is_hashed_prefix() {
        return Ok(vec![FirstChunk {
            min: wanted.key.global_min(),
            max: wanted.key.global_max(),
            shard: wanted.primary.to_string(),
        }]);
    }
    let count = if wanted.chunks > 0 { wanted.chunks } else { shards };
    let points: Vec<Document> = hashed_points(count).into_iter().map(|p| bound(wanted.key, p)).collect();
    let of_each = (count / shards).max(1) as usize;
    Ok(ranges(wanted.key, points)
        .into_iter()
        .enumerate()
        .map(|(i, (min, max))| {
            let shard = wanted.shards.get((i / of_each) % wanted.shards.len().max(1));
            FirstChunk { min, max, shard: shard.cloned().unwrap_or_else(|| wanted.primary.to_string()) }
        })
        .collect())
}

/// Split points that divide the hashes evenly, around zero.
fn hashed_points(count: i64) -> Vec<i64> {
    if count <= 1 {
        return Vec::new();
    }
    let interval = (i64::MAX / count.max(1)) * 2;
    let mut points = Vec::new();
    let mut current = 0i64;
    if count % 2 == 0 {
        points.push(0);
        current += interval;
    } else {
        current += interval / 2;
    }
    for _ in 0..(count - 1) / 2 {
        points.extend([current, -current]);
        current = current.saturating_add(interval);
    }
    points.sort_unstable();
    points
}

fn bound(key: &ShardKeyPattern, hash: i64) -> Document {
    let mut d = Document::new();
    for (i, field) in key.fields().iter().enumerate() {
        d.push(field.path.as_str(), if i == 0 { Value::Int64(hash) } else { Value::MinKey });
    }
    d
}

fn ranges(key: &ShardKeyPattern, points: Vec<Document>) -> Vec<(Document, Document)> {
    let mut ranges = Vec::with_capacity(points.len() + 1);
    let mut min = key.global_min();
    for point in points.into_iter().chain(std::iter::once(key.global_max())) {
        ranges.push((min, point.clone()));
        min = point;
    }
    ranges
}

/// The chunks of the zones, and one for each gap between them.
fn by_zones(
    wanted: &Wanted<'_>,
    of_zone: &dyn Fn((usize, &ZoneRange)) -> Vec<FirstChunk>,
) -> Vec<FirstChunk> {
    let mut chunks = Vec::new();
    let mut min = wanted.key.global_min();
    let mut gaps = 0;
    let mut gap = |min: &Document, max: &Document| {
        let shard = wanted.shards.get(gaps % wanted.shards.len().max(1)).cloned();
        gaps += 1;
        FirstChunk {
            min: min.clone(),
            max: max.clone(),
            shard: shard.unwrap_or_else(|| wanted.primary.to_string()),
        }
    };
    for zone in wanted.zones.iter().enumerate() {
        let (_, (lower, upper, _)) = zone;
        if min != *lower {
            chunks.push(gap(&min, lower));
        }
        chunks.extend(of_zone(zone));
        min = upper.clone();
    }
    let end = wanted.key.global_max();
    if min != end {
        chunks.push(gap(&min, &end));
    }
    chunks
}

/// One chunk for a zone; zones of the same shards take turns.
fn whole(wanted: &Wanted<'_>, (i, (lower, upper, shards)): (usize, &ZoneRange)) -> FirstChunk {
    let shard = shards.get(i % shards.len().max(1)).cloned().unwrap_or_else(|| wanted.primary.to_string());
    FirstChunk { min: lower.clone(), max: upper.clone(), shard }
}

/// The hashes of a zone, divided evenly among its shards. A shard has its part of the chunks asked for, or one, and divides it among
/// the ranges that are its own.
fn presplit(wanted: &Wanted<'_>, (i, zone): (usize, &ZoneRange)) -> Vec<FirstChunk> {
    let (lower, upper, shards) = zone;
    let of_each_shard = (wanted.chunks / wanted.shards.len().max(1) as i64).max(1);
    let mut owners = Vec::new();
    for shard in shards {
        let ranges = wanted.zones.iter().filter(|(_, _, shards)| shards.contains(shard)).count() as i64;
        let chunks = (of_each_shard / ranges.max(1)).max(1);
        owners.extend((0..chunks).map(|_| shard.clone()));
    }
    if owners.is_empty() {
        return vec![whole(wanted, (i, zone))];
    }
    let mut bounds = vec![lower.clone()];
    bounds.extend(hashed_points(owners.len() as i64).into_iter().map(|p| hashed_bound(wanted.key, lower, p)));
    bounds.push(upper.clone());
    let pairs = bounds.iter().zip(bounds.iter().skip(1)).zip(owners);
    pairs.map(|((min, max), shard)| FirstChunk { min: min.clone(), max: max.clone(), shard }).collect()
}

/// The lower bound with this hash in place of its own, and the lowest values behind it.
fn hashed_bound(key: &ShardKeyPattern, lower: &Document, hash: i64) -> Document {
    let at = hashed_place(key);
    let value = |(i, (name, value)): (usize, (&str, &Value))| {
        let value = match i.cmp(&at) {
            std::cmp::Ordering::Less => value.clone(),
            std::cmp::Ordering::Equal => Value::Int64(hash),
            std::cmp::Ordering::Greater => Value::MinKey,
        };
        (name.to_string(), value)
    };
    lower.iter().enumerate().map(value).collect()
}

fn hashed_place(key: &ShardKeyPattern) -> usize {
    key.document().iter().position(|(_, v)| v.as_str() == Some("hashed")).unwrap_or(0)
}

/// What the hashes can be divided in: for a hashed first field the whole key space as one zone; for another one ranges that begin
/// with the lowest hash and differ in the fields before it.
fn check_presplit(wanted: &Wanted<'_>) -> Result<()> {
    if !wanted.key.is_hashed() {
        bail!(INVALID_OPTIONS, "presplitHashedZones needs a shard key with a hashed field");
    }
    if !wanted.empty {
        bail!(INVALID_OPTIONS, "presplitHashedZones needs a collection that is empty or does not exist");
    }
    if wanted.zones.is_empty() {
        bail!(INVALID_OPTIONS, "presplitHashedZones needs zones with ranges for the collection");
    }
    let at = hashed_place(wanted.key);
    if at == 0 {
        let (min, max) = (wanted.key.global_min(), wanted.key.global_max());
        return match wanted.zones {
            [(lower, upper, _)] if (lower, upper) == (&min, &max) => Ok(()),
            _ => bail!(
                INVALID_OPTIONS,
                "presplitHashedZones with a hashed first field needs one zone, from MinKey to MaxKey in every field"
            ),
        };
    }
    for (lower, upper, _) in wanted.zones {
        if lower.iter().skip(at).any(|(_, v)| *v != Value::MinKey) {
            bail!(
                INVALID_OPTIONS,
                "presplitHashedZones needs MinKey in the hashed field and those behind it in a zone's lower bound: {lower:?}"
            );
        }
        if lower.iter().take(at).eq(upper.iter().take(at)) {
            bail!(
                INVALID_OPTIONS,
                "presplitHashedZones needs zones whose bounds differ in a field before the hashed one: {lower:?}"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    fn shards() -> Vec<String> {
        ["a", "b", "c"].map(str::to_string).to_vec()
    }
    fn owners(key: Document, empty: bool, chunks: i64) -> Vec<String> {
        let key = ShardKeyPattern::parse(&key).unwrap();
        let wanted =
            Wanted { key: &key, empty, chunks, primary: "b", shards: &shards(), zones: &[], presplit: false };
        let chunks = first_chunks(&wanted).unwrap();
        assert_eq!(chunks[0].min, key.global_min());
        assert_eq!(chunks.last().unwrap().max, key.global_max());
        for pair in chunks.windows(2) {
            assert_eq!(pair[0].max, pair[1].min);
            assert!(key.encode_bound(&pair[0].min).unwrap() < key.encode_bound(&pair[0].max).unwrap());
        }
        chunks.into_iter().map(|c| c.shard).collect()
    }

    #[test]
    fn an_empty_hashed_collection_has_one_chunk_on_each_shard() {
        assert_eq!(owners(doc! { "x": "hashed" }, true, 0), ["a", "b", "c"]);
        assert_eq!(owners(doc! { "x": "hashed", "y": 1 }, true, 6), ["a", "a", "b", "b", "c", "c"]);
    }
    #[test]
    fn ranges_and_filled_collections_begin_on_the_primary() {
        assert_eq!(owners(doc! { "x": 1 }, true, 0), ["b"]);
        assert_eq!(owners(doc! { "x": "hashed" }, false, 0), ["b"]);
        assert_eq!(owners(doc! { "x": 1, "y": "hashed" }, true, 0), ["b"]);
    }
    #[test]
    fn hashes_are_divided_as_the_real_server_divides_them() {
        assert_eq!(hashed_points(2), [0]);
        assert_eq!(hashed_points(4), [-4611686018427387902, 0, 4611686018427387902]);
        assert_eq!(hashed_points(3), [-3074457345618258602, 3074457345618258602]);
    }
    #[test]
    fn too_many_chunks_are_refused() {
        let key = ShardKeyPattern::parse(&doc! { "x": "hashed" }).unwrap();
        let wanted = Wanted {
            key: &key,
            empty: true,
            chunks: 3 * 8192 + 1,
            primary: "a",
            shards: &shards(),
            zones: &[],
            presplit: false,
        };
        assert_eq!(first_chunks(&wanted).unwrap_err().code, 72);
    }

    fn presplit_owners(key: Document, chunks: i64, zones: &[ZoneRange]) -> Result<Vec<(Document, String)>> {
        let key = ShardKeyPattern::parse(&key).unwrap();
        let wanted =
            Wanted { key: &key, empty: true, chunks, primary: "a", shards: &shards(), zones, presplit: true };
        let made = first_chunks(&wanted)?;
        assert!(made.windows(2).all(|pair| pair[0].max == pair[1].min));
        assert!(made.iter().all(|c| key.encode_bound(&c.min).unwrap() < key.encode_bound(&c.max).unwrap()));
        Ok(made.into_iter().map(|c| (c.min, c.shard)).collect())
    }
    fn zone(min: Document, max: Document, shards: &[&str]) -> ZoneRange {
        (min, max, shards.iter().map(|s| s.to_string()).collect())
    }

    #[test]
    fn the_hashes_of_a_zone_are_divided_among_its_shards() {
        let at = |x: i32, h: Value| doc! { "x": x, "h": h };
        let zones = [
            zone(at(0, Value::MinKey), at(10, Value::MinKey), &["a", "b"]),
            zone(at(10, Value::MinKey), at(20, Value::MinKey), &["b"]),
        ];
        let made = presplit_owners(doc! { "x": 1, "h": "hashed" }, 12, &zones).unwrap();
        // Four chunks a shard; those of b stand in two ranges. Before and behind the zones is a chunk each.
        let owners: Vec<&str> = made.iter().map(|(_, shard)| shard.as_str()).collect();
        assert_eq!(owners, ["a", "a", "a", "a", "a", "b", "b", "b", "b", "b"]);
        assert_eq!(made[1].0, at(0, Value::MinKey));
        assert_eq!(made[4].0, at(0, Value::Int64(hashed_points(6)[2])));
        assert_eq!(made[8].0, at(10, Value::Int64(0)));
        assert_eq!(made[9].0, at(20, Value::MinKey));

        let all = [zone(doc! { "h": Value::MinKey }, doc! { "h": Value::MaxKey }, &["b", "c"])];
        let made = presplit_owners(doc! { "h": "hashed" }, 0, &all).unwrap();
        let expected = [(Value::MinKey, "b"), (Value::Int64(0), "c")];
        assert_eq!(made, expected.map(|(h, shard)| (doc! { "h": h }, shard.to_string())));
    }

    #[test]
    fn zones_that_hashes_cannot_divide_are_refused() {
        let half = zone(doc! { "h": Value::MinKey }, doc! { "h": 0i64 }, &["a"]);
        let low = zone(doc! { "x": 0, "h": 5i64 }, doc! { "x": 1, "h": Value::MinKey }, &["a"]);
        let same = zone(doc! { "x": 0, "h": Value::MinKey }, doc! { "x": 0, "h": 7i64 }, &["a"]);
        let compound = || doc! { "x": 1, "h": "hashed" };
        let cases = [
            (doc! { "h": "hashed" }, vec![]),
            (doc! { "h": "hashed" }, vec![half]),
            (compound(), vec![low]),
            (compound(), vec![same]),
            (doc! { "x": 1 }, vec![zone(doc! { "x": 0 }, doc! { "x": 1 }, &["a"])]),
        ];
        for (key, zones) in cases {
            assert_eq!(presplit_owners(key.clone(), 0, &zones).unwrap_err().code, 72, "{key:?}");
        }
    }
}
