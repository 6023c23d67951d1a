//! Changing chunks: the commits of migrations, splits and merges, and what else raises a version.
//!
//! ```text
//! migration   moved chunk (major+1 | 0); leftovers of a sub-range, or one control chunk, on the donor (major+1 | 1..)
//! split       each piece (major | minor+1..), lowest first
//! merge       the merged chunk (major | minor+1)
//! ```
//! where major|minor is the collection's highest version. All run under the lock of the collection's chunks and
//! commit as one batch. The last repeat of a commit whose answer was lost finds its outcome in place and succeeds.

mod bump;
mod merge;
pub(crate) mod migration;
mod sizes;
mod split;

use crate::chunk::{Chunk, ShardId};
use crate::config::catalog::Sharded;
use crate::config::{CHUNKS, ConfigServer, put};
use document::{Document, ObjectId, Result, Timestamp, bail, doc, err};
use node::BatchWrite;
use protocol::version::ShardVersion;

/// The first version of the next major.
///
/// # Errors
/// 31180 when there is none.
fn next_major(current: Timestamp) -> Result<Timestamp> {
    match current.secs.checked_add(1) {
        Some(major) => Ok(Timestamp::new(major, 0)),
        None => bail!(31180, "The major version of the chunks is at its maximum"),
    }
}

/// The version after `current` within its major.
///
/// # Errors
/// 31181 when there is none.
fn next_minor(current: Timestamp) -> Result<Timestamp> {
    match current.inc.checked_add(1) {
        Some(minor) => Ok(Timestamp::new(current.secs, minor)),
        None => bail!(31181, "The minor version of the chunks is at its maximum"),
    }
}

/// The history of a chunk that `shard` owns from `at` on: the new entry first, then those still within the window and
/// the one in force as the window begins.
///
/// # Errors
/// IncompatibleShardingMetadata (105) when the newest entry is not older than `at`.
fn history_with(
    old: &[(Timestamp, ShardId)],
    at: Timestamp,
    shard: &str,
    window_secs: u32,
) -> Result<Vec<(Timestamp, ShardId)>> {
    if let Some((newest, _)) = old.first()
        && *newest >= at
    {
        bail!(
            INCOMPATIBLE_SHARDING_METADATA,
            "The chunk history is corrupted: its newest entry is valid from {newest:?}, which is not before {at:?}"
        );
    }
    let oldest_needed = at.secs.saturating_sub(window_secs);
    let mut history = vec![(at, ShardId::from(shard))];
    for (since, owner) in old {
        history.push((*since, owner.clone()));
        if since.secs < oldest_needed {
            break;
        }
    }
    Ok(history)
}

impl ConfigServer {
    /// How long superseded owners stay in a chunk's history, in seconds: reads in the past and transactions need them.
    pub(crate) fn history_window_secs(&self) -> u32 {
        let of = |name: &str| u32::try_from(self.parameters.int(name)).unwrap_or(0);
        of("minSnapshotHistoryWindowInSeconds").max(of("transactionLifetimeLimitSeconds"))
    }

    /// The collection a chunk command names, of the generation the caller knows.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) when it is gone, StaleEpoch (150) when it is another incarnation.
    fn of_generation(
        &self,
        ns: &str,
        epoch: Option<ObjectId>,
        timestamp: Option<Timestamp>,
    ) -> Result<Sharded> {
        let collection = self.catalog().find_collection(ns)?.ok_or_else(|| {
            err!(CONFLICTING_OPERATION_IN_PROGRESS, "Collection {ns} does not exist in config.collections")
        })?;
        let same = epoch.is_none_or(|e| e == collection.info.epoch)
            && timestamp.is_none_or(|t| t == collection.info.timestamp);
        if !same {
            let in_force = collection.version(self.catalog().collection_placement(collection.info.uuid));
            return Err(err!(
                STALE_EPOCH,
                "Epoch of collection {ns} has changed: the request was made for epoch {} and the current is {}",
                epoch.unwrap_or_default().hex(),
                collection.info.epoch.hex()
            )
            .with_info(doc! { "ns": ns, "vReceived": received(epoch, timestamp), "vWanted": in_force.to_document() }));
        }
        Ok(collection)
    }

    /// A chunk as a write of the batch.
    pub(crate) fn put_chunk(&self, collection: &Sharded, chunk: &Chunk) -> BatchWrite {
        put(CHUNKS, chunk.to_document(collection.info.uuid))
    }

    /// `{collectionVersion, shardVersion}` of the chunks as they stand.
    fn versions(&self, collection: &Sharded, shard: &str) -> Document {
        let catalog = self.catalog();
        let uuid = collection.info.uuid;
        doc! {
            "collectionVersion": collection.version(catalog.collection_placement(uuid)).to_document(),
            "shardVersion": collection.version(catalog.shard_placement(uuid, shard)).to_document(),
        }
    }
}

fn received(epoch: Option<ObjectId>, timestamp: Option<Timestamp>) -> Document {
    let (epoch, timestamp) = (epoch.unwrap_or_default(), timestamp.unwrap_or_default());
    ShardVersion { epoch, timestamp, placement: Timestamp::default() }.to_document()
}
