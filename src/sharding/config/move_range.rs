//! `_configsvrMoveRange`: a user or the balancer wants a range moved. The donor does it; here the request is checked
//! and sent on.

use super::{ConfigServer, argument, required_str, shown};
use crate::chunk::Chunk;
use crate::remote::{Target, majority};
use document::{Document, ObjectId, Result, Value, bail, doc};
use node::{Operation, Request};

/// One migration to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Migration {
    pub ns: String,
    pub from: String,
    pub to: String,
    /// At least one is given; the donor finds the other within its chunk.
    pub min: Option<Document>,
    pub max: Option<Document>,
    pub epoch: ObjectId,
    pub max_chunk_bytes: i64,
    /// How many documents the range may have at most, where documents are counted.
    pub max_objects: Option<i64>,
    /// 0 no, 1 a user said so, 2 the balancer does.
    pub force_jumbo: i32,
    pub wait_for_delete: bool,
    pub secondary_throttle: Option<Value>,
}

impl ConfigServer {
    /// `{_configsvrMoveRange: ns, toShard, min?, max?, waitForDelete?, forceJumbo?, secondaryThrottle?}`. Moving a range to
    /// where it is succeeds at once.
    ///
    /// # Errors
    /// NamespaceNotSharded (118), ShardNotFound (70), InvalidOptions (72), and the donor's (ChunkTooBig, 117, ...).
    pub async fn move_range(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        self.ensure().await?;
        let ns = argument(&request)?;
        let body = request.body.to_document();
        let to = required_str(&body, "toShard")?;
        let bound = |name: &str| body.get_present(name).and_then(Value::as_document).cloned();
        let (min, max) = (bound("min"), bound("max"));
        let force_jumbo = match body.get("forceJumbo") {
            Some(v) if v.as_i64().is_none() => v.truthy() as i32,
            Some(v) => v.as_i64().unwrap_or(0).clamp(0, 2) as i32,
            None => 0,
        };
        let collection = self.catalog().sharded(ns)?;
        let to = self.shard_named(to)?;
        let (Some(anchor), false) = (min.as_ref().or(max.as_ref()), false) else {
            bail!(INVALID_OPTIONS, "Mandatory to specify at least one bound of the range")
        };
        for given in [&min, &max].into_iter().flatten() {
            if !collection.key.is_full_key(given) {
                bail!(
                    INVALID_OPTIONS,
                    "{} is not a full shard key of {}",
                    shown(given),
                    shown(collection.key.document())
                );
            }
        }
        let chunk = match &min {
            Some(min) => self.catalog().chunk_at(&collection, min)?,
            None => self.chunk_ending_at_or_holding(&collection, anchor)?,
        };
        let Some(chunk) = chunk else {
            bail!(INVALID_OPTIONS, "no chunk of {ns} holds the bound {}", shown(anchor))
        };
        check_within(ns, &collection.key, &chunk, min.as_ref(), max.as_ref())?;
        if *chunk.shard == *to.name {
            return Ok(Document::new());
        }
        let migration = Migration {
            ns: ns.to_string(),
            from: chunk.shard.to_string(),
            to: to.name,
            min,
            max,
            epoch: collection.info.epoch,
            max_chunk_bytes: self.max_chunk_bytes(&collection),
            max_objects: None,
            force_jumbo,
            wait_for_delete: body.get_bool("waitForDelete").unwrap_or(false),
            secondary_throttle: body.get_present("secondaryThrottle").cloned(),
        };
        op.interruptible(self.migrate(&migration)).await??;
        Ok(Document::new())
    }

    fn chunk_ending_at_or_holding(
        &self,
        collection: &super::catalog::Sharded,
        max: &Document,
    ) -> Result<Option<Chunk>> {
        let key = collection.key.encode_bound(max)?;
        let chunks = self.catalog().chunks(collection)?;
        Ok(chunks.into_iter().find(|c| c.min_key < key && key <= c.max_key))
    }

    /// Has the donor move the range.
    ///
    /// # Errors
    /// The donor's.
    pub async fn migrate(&self, m: &Migration) -> Result<()> {
        // The donor refuses while the cluster stands still.
        self.whole.pass().await;
        let mut command = doc! { "_shardsvrMoveRange": m.ns.as_str(), "toShard": m.to.as_str(), "fromShard": m.from.as_str() };
        if let Some(min) = &m.min {
            command.push("min", min.clone());
        }
        if let Some(max) = &m.max {
            command.push("max", max.clone());
        }
        command.push("maxChunkSizeBytes", m.max_chunk_bytes);
        if let Some(most) = m.max_objects {
            command.push("maxChunkObjects", most);
        }
        command.push("epoch", m.epoch);
        command.push("forceJumbo", m.force_jumbo);
        command.push("waitForDelete", m.wait_for_delete);
        if let Some(throttle) = &m.secondary_throttle {
            command.push("secondaryThrottle", throttle.clone());
        }
        command.push("writeConcern", majority());
        let donor = self.catalog().shard(&m.from)?;
        self.remote.admin(Target::Host(&donor.host), command).await.map(drop)
    }
}

fn check_within(
    ns: &str,
    key: &crate::key_pattern::ShardKeyPattern,
    chunk: &Chunk,
    min: Option<&Document>,
    max: Option<&Document>,
) -> Result<()> {
    let outside = |bound: &Document| -> Result<bool> {
        let bound = key.encode_bound(bound)?;
        Ok(bound < chunk.min_key || bound > chunk.max_key)
    };
    let mut bad = false;
    for bound in [min, max].into_iter().flatten() {
        bad |= outside(bound)?;
    }
    if let (Some(min), Some(max)) = (min, max) {
        bad |= key.encode_bound(min)? >= key.encode_bound(max)?;
    }
    if bad {
        bail!(
            11089203,
            "the range to move must lie within one chunk of {ns}; found [{}, {})",
            shown(&chunk.min),
            shown(&chunk.max)
        );
    }
    Ok(())
}
