//! The first chunks of a new sharded collection, and where they go.

use crate::key_pattern::ShardKeyPattern;
use document::{Document, Result, Value, bail, doc};

/// More first chunks than this are refused, and more than so many for each shard.
const CHUNKS_MAX: i64 = 1_000_000;
const CHUNKS_OF_SHARD_MAX: i64 = 8192;

/// One chunk as the config server is asked to create it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct First {
    pub min: Document,
    pub max: Document,
    pub shard: String,
}

impl First {
    pub(super) fn to_document(&self) -> Document {
        doc! { "min": self.min.clone(), "max": self.max.clone(), "shard": self.shard.as_str() }
    }
}

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
    pub zones: &'a [(Document, Document, Vec<String>)],
}

/// An empty collection hashed by its first field is spread at once, one chunk for each shard or as many as asked for; an
/// empty one with zones gets a chunk for each zone and each gap; any other one chunk on the primary.
///
/// # Errors
/// InvalidOptions (72) for a number of chunks that cannot be made.
pub(super) fn first_chunks(wanted: &Wanted<'_>) -> Result<Vec<First>> {
    let shards = wanted.shards.len().max(1) as i64;
    if !(0..=CHUNKS_MAX).contains(&wanted.chunks) || wanted.chunks > CHUNKS_OF_SHARD_MAX * shards {
        bail!(
            INVALID_OPTIONS,
            "numInitialChunks cannot be more than either: {}, 8192 * number of shards; or {CHUNKS_MAX}",
            CHUNKS_OF_SHARD_MAX * shards
        );
    }
    if wanted.empty && !wanted.zones.is_empty() {
        return Ok(by_zones(wanted));
    }
    if !wanted.empty || !wanted.key.is_hashed_prefix() {
        return Ok(vec![First {
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
            First { min, max, shard: shard.cloned().unwrap_or_else(|| wanted.primary.to_string()) }
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

fn by_zones(wanted: &Wanted<'_>) -> Vec<First> {
    let mut chunks = Vec::new();
    let mut min = wanted.key.global_min();
    let mut gaps = 0;
    let mut gap = |min: &Document, max: &Document| {
        let shard = wanted.shards.get(gaps % wanted.shards.len().max(1)).cloned();
        gaps += 1;
        First {
            min: min.clone(),
            max: max.clone(),
            shard: shard.unwrap_or_else(|| wanted.primary.to_string()),
        }
    };
    for (i, (lower, upper, shards)) in wanted.zones.iter().enumerate() {
        if min != *lower {
            chunks.push(gap(&min, lower));
        }
        let shard =
            shards.get(i % shards.len().max(1)).cloned().unwrap_or_else(|| wanted.primary.to_string());
        chunks.push(First { min: lower.clone(), max: upper.clone(), shard });
        min = upper.clone();
    }
    let end = wanted.key.global_max();
    if min != end {
        chunks.push(gap(&min, &end));
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards() -> Vec<String> {
        ["a", "b", "c"].map(str::to_string).to_vec()
    }
    fn owners(key: Document, empty: bool, chunks: i64) -> Vec<String> {
        let key = ShardKeyPattern::parse(&key).unwrap();
        let wanted = Wanted { key: &key, empty, chunks, primary: "b", shards: &shards(), zones: &[] };
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
        };
        assert_eq!(first_chunks(&wanted).unwrap_err().code, 72);
    }
}
