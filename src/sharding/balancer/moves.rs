//! One migration that a policy chose, and what follows from how it ended; splits at the edges of zones.

use super::lost::UnderWay;
use super::statistics;
use crate::chunk::Chunk;
use crate::config::ConfigServer;
use crate::config::catalog::Sharded;
use crate::messages::chunks::{CommitChunkSplit, MeasureRange};
use crate::messages::{Flag, Message};
use crate::remote::Target;
use crate::shard::migration::{MoveRange, throttle_of};
use document::error::{INTERRUPTION, NETWORK, NOT_PRIMARY};
use document::{Document, Error, Result, Value, codes, doc};
use protocol::balancer::{CollectionView, Move, Policy, Reason, splits, violation};

/// Documents that a migration moved at most in the generations that counted chunks.
const OBJECTS_MAX: i64 = 250_000;

/// A migration with the collection it was chosen for.
pub(super) struct Chosen {
    pub what: Move,
    pub collection: Sharded,
    /// The defragmentation that chose it; `None` for chunk selection.
    pub origin: Option<super::defragment::Origin>,
}

/// What became of a migration that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    Moved,
    /// The range has more than a migration takes.
    TooBig,
    /// The balancer was stopped meanwhile.
    Stopped,
}

impl ConfigServer {
    /// Makes migrations at the same time, and returns how each ended.
    pub(super) async fn make_all(&self, chosen: &[Chosen]) -> Vec<Result<Made>> {
        let requests = chosen.iter().map(|c| self.migration_of(&c.collection, &c.what)).collect();
        let mut under_way = match self.begin_migrations(requests).await {
            Ok(under_way) => under_way,
            Err(e) => return chosen.iter().map(|_| Err(e.clone())).collect(),
        };
        let made = chosen.iter().zip(&mut under_way).map(|(c, u)| self.make(c, u));
        let made = futures::future::join_all(made).await;
        self.end_migrations(under_way).await;
        made
    }

    /// Makes a migration that was noted. A range that is too big is no failure: its chunk is split, or marked if it cannot be.
    /// That of a defragmentation is left as it is, since pieces would only be merged again.
    ///
    /// # Errors
    /// The migration's, which are remembered.
    async fn make(&self, chosen: &Chosen, under_way: &mut UnderWay) -> Result<Made> {
        // Stopping the balancer ends the round before its next migration.
        if !self.balancing_now() {
            under_way.end();
            return Ok(Made::Stopped);
        }
        let Chosen { what, collection, .. } = chosen;
        let migrated = self.migrate(under_way.request());
        let made = self.while_heard(&what.from, self.while_heard(&what.to, migrated)).await;
        if !made.as_ref().is_err_and(|e| e.is(NETWORK | INTERRUPTION | NOT_PRIMARY)) {
            under_way.end();
        }
        match made {
            Ok(()) => {
                self.balancer.failures.lock().succeeded(what);
                Ok(Made::Moved)
            }
            // It gave way to a standstill of the cluster, which is no fault of anybody's.
            Err(_) if self.whole.is_on() => Ok(Made::Stopped),
            Err(e) if e.code == codes::CHUNK_TOO_BIG && chosen.origin.is_some() => Ok(Made::TooBig),
            Err(e) if e.code == codes::CHUNK_TOO_BIG => {
                let split = self.split_or_mark(collection, &what.min).await;
                split.map(|()| Made::TooBig).map_err(|e| self.remember(what, e))
            }
            Err(e) => Err(self.remember(what, e)),
        }
    }

    fn remember(&self, what: &Move, e: Error) -> Error {
        self.balancer.failures.lock().failed(what, self.node.now_ms());
        e
    }

    fn migration_of(&self, collection: &Sharded, m: &Move) -> MoveRange {
        let settings = self.balancer_settings();
        MoveRange {
            ns: m.ns.clone(),
            from: m.from.clone(),
            to: m.to.clone(),
            min: Some(m.min.clone()),
            max: m.max.clone(),
            epoch: Some(collection.info.epoch),
            max_bytes: self.max_chunk_bytes(collection),
            max_objects: self.objects_max(),
            force_jumbo: if m.force_jumbo { 2 } else { 0 },
            wait_for_delete: settings.get("_waitForDelete").is_some_and(Value::truthy),
            throttle: throttle_of(settings.get_present("_secondaryThrottle")),
            note: None,
        }
    }

    /// Documents that a migration moves at most, where they are counted.
    fn objects_max(&self) -> Option<i64> {
        (self.balancer_policy() != Policy::DataSize).then_some(OBJECTS_MAX)
    }

    /// Splits the chunk that begins at `min` into pieces that can be moved; marks it jumbo where no split helps, because
    /// all of it has one key. One that is no longer too big, since somebody has split it or deleted from it, is let be.
    async fn split_or_mark(&self, collection: &Sharded, min: &Document) -> Result<()> {
        let ns = &collection.info.ns;
        let Some(chunk) = self.catalog().chunk_at(collection, min)? else { return Ok(()) };
        let mut ask = doc! {
            "autoSplitVector": ns.as_str(), "keyPattern": collection.key.document().clone(), "min": chunk.min.clone(),
            "max": chunk.max.clone(), "maxChunkSizeBytes": self.max_chunk_bytes(collection),
        };
        if let Some(most) = self.objects_max() {
            ask.push("maxChunkObjects", most);
        }
        let owner = self.catalog().shard(&chunk.shard)?;
        let asked = self.remote.admin(Target::Host(&owner.host), ask);
        let reply = self.while_heard(&chunk.shard, asked).await?;
        let points = reply.get_array("splitKeys").cloned().unwrap_or_default();
        if points.is_empty() {
            let too_big = self.is_too_big(collection, &chunk, &owner.host).await?;
            return if too_big { self.mark_jumbo(collection, &chunk).await } else { Ok(()) };
        }
        let points = points.into_iter().filter_map(|p| p.as_document().cloned()).collect();
        self.split_own(collection, &chunk.shard, &chunk.min, &chunk.max, points).await
    }

    async fn is_too_big(&self, collection: &Sharded, chunk: &Chunk, host: &str) -> Result<bool> {
        let ask = MeasureRange {
            ns: collection.info.ns.clone(),
            key: collection.key.document().clone(),
            min: chunk.min.clone(),
            max: chunk.max.clone(),
        };
        let asked = self.remote.admin(Target::Host(host), ask.to_document());
        let measured = self.while_heard(&chunk.shard, asked).await?;
        let number = |name: &str| measured.get_i64(name).unwrap_or(0);
        let most = self.objects_max();
        Ok(number("size") > self.max_chunk_bytes(collection)
            || most.is_some_and(|n| number("numObjects") > n))
    }

    /// Splits the chunks that reach over the edge of a zone, so that every chunk lies in one zone or none.
    pub(super) async fn split_at_zone_edges(&self, collection: &Sharded) -> Result<()> {
        let ranges = self.catalog().zone_ranges(&collection.info.ns);
        if ranges.is_empty() {
            return Ok(());
        }
        let shards = self.catalog().shards();
        let view = CollectionView {
            zones: statistics::zone_views(collection, ranges)?,
            chunks: statistics::chunk_views(self, collection, &shards)?,
            balanced: true,
            ..CollectionView::default()
        };
        let mut done = Ok(());
        for split in splits(&view) {
            let shard = shards.get(split.shard).map_or("", |s| &s.name);
            // One that fails holds up no other.
            done = done.and(self.split_own(collection, shard, &split.min, &split.max, split.points).await);
        }
        done
    }

    async fn split_own(
        &self,
        collection: &Sharded,
        shard: &str,
        min: &Document,
        max: &Document,
        points: Vec<Document>,
    ) -> Result<()> {
        let split = CommitChunkSplit {
            ns: collection.info.ns.clone(),
            epoch: collection.info.epoch,
            timestamp: Some(collection.info.timestamp),
            min: min.clone(),
            max: max.clone(),
            points,
            shard: shard.to_string(),
            auto_split: Flag(false),
        };
        self.commit_split(split).await.map(drop)
    }

    /// What keeps a collection from being balanced, from the shards' own numbers.
    ///
    /// # Errors
    /// Those of a shard that does not answer: without its number nothing can be said.
    pub(super) async fn compliance_of(&self, collection: &Sharded) -> Result<Option<Reason>> {
        let statistics = statistics::gather(self, std::slice::from_ref(collection)).await;
        if let Some((_, e)) = statistics.failed.first() {
            return Err(e.clone());
        }
        let view = statistics::view(self, collection, &statistics)?;
        Ok(violation(&view, self.balancer_policy(), &statistics.views))
    }
}
