//! A chunk: a half-open range of shard keys and the shard that owns it.

use crate::key_pattern::ShardKeyPattern;
use document::{Document, ObjectId, Result, Timestamp, Value, doc, err};
use std::sync::Arc;

/// A shard's name; shared, because a table of a million chunks names few shards.
pub type ShardId = Arc<str>;

/// One document of `config.chunks`, with its bounds encoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    pub id: ObjectId,
    pub min: Document,
    pub max: Document,
    pub min_key: Vec<u8>,
    pub max_key: Vec<u8>,
    pub shard: ShardId,
    /// `lastmod`: major and minor.
    pub version: Timestamp,
    pub jumbo: bool,
    /// Bytes of its documents, while the collection is defragmented and they have been measured.
    pub bytes: Option<i64>,
    /// Newest first: from when which shard owned it.
    pub history: Vec<(Timestamp, ShardId)>,
}

impl Chunk {
    /// # Errors
    /// IncompatibleShardingMetadata (105) when a member is missing or of the wrong type.
    pub fn from_document(d: &Document, key: &ShardKeyPattern) -> Result<Chunk> {
        let bad =
            |what: &str| err!(INCOMPATIBLE_SHARDING_METADATA, "chunk document without valid '{what}': {d:?}");
        let min = d.get_document("min").ok_or_else(|| bad("min"))?.clone();
        let max = d.get_document("max").ok_or_else(|| bad("max"))?.clone();
        let history = d.get_array("history").map(|a| a.iter().filter_map(history_entry).collect());
        Ok(Chunk {
            id: d.get("_id").and_then(Value::as_object_id).unwrap_or_default(),
            min_key: key.encode_bound(&min)?,
            max_key: key.encode_bound(&max)?,
            min,
            max,
            shard: d.get_str("shard").ok_or_else(|| bad("shard"))?.into(),
            version: d.get("lastmod").and_then(Value::as_timestamp).ok_or_else(|| bad("lastmod"))?,
            jumbo: d.get_bool("jumbo").unwrap_or(false),
            bytes: d.get_i64("estimatedDataSizeBytes"),
            history: history.unwrap_or_default(),
        })
    }
    /// The `config.chunks` document.
    pub fn to_document(&self, uuid: [u8; 16]) -> Document {
        let mut d = doc! {
            "_id": self.id, "uuid": Value::uuid(uuid), "min": self.min.clone(), "max": self.max.clone(),
            "shard": &*self.shard, "lastmod": self.version,
        };
        if let Some((valid_after, _)) = self.history.first() {
            d.push("onCurrentShardSince", *valid_after);
        }
        if self.jumbo {
            d.push("jumbo", true);
        }
        if let Some(bytes) = self.bytes {
            d.push("estimatedDataSizeBytes", bytes);
        }
        let history: Vec<Document> =
            self.history.iter().map(|(t, s)| doc! { "validAfter": *t, "shard": &**s }).collect();
        d.push("history", history);
        d
    }
    pub fn contains(&self, key: &[u8]) -> bool {
        self.min_key.as_slice() <= key && key < self.max_key.as_slice()
    }
    /// `{min, max}`.
    pub fn range_document(&self) -> Document {
        doc! { "min": self.min.clone(), "max": self.max.clone() }
    }
}

fn history_entry(v: &Value) -> Option<(Timestamp, ShardId)> {
    let d = v.as_document()?;
    Some((d.get("validAfter")?.as_timestamp()?, d.get_str("shard")?.into()))
}
