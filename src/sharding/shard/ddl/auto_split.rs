//! Auto-splitting, as the generations did that counted chunks: off unless `config.settings {_id: "autosplit"}` says otherwise.
//!
//! The config server tells its shards whether to split, and from what size on, which a collection may have of its own. While they are to, an observer of all writes
//! adds up the bytes written to each chunk, in memory. When a fifth of a chunk's size has come, the chunk is looked at in the
//! background, once at a time: `splitVector` finds points at half the chunk size, and two or more of them are worth a split.
//!
//! Keys that grow or fall for ever fill the chunk at the end of the key space: it is split at the extreme key instead, so
//! that the rest of it is whole, and the config server is asked to have what lies beyond moved to another shard.
//!
//! Nothing waits for any of this, and a split that fails is tried again when as much has been written once more.

use super::Ddl;
use super::split::{Points, SPLIT_POINTS_MAX, documents_per_piece, snapshot_of, split_points};
use crate::chunk::Chunk;
use crate::messages::balancing::{ChunkSizes, RebalanceChunk, SetAutoSplit};
use crate::messages::chunks::CommitChunkSplit;
use crate::messages::{Flag, Message};
use crate::routing::RoutingTable;
use crate::shard::ShardRole;
use crate::shard::migration::range::{KeyRange, shard_key_index};
use document::{Doc, Document, Result};
use node::observer::WriteObserver;
use node::{Operation, Request};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use storage::CollectionView;
use tokio::sync::watch;

/// A chunk is looked at when this part of its size has been written to it.
const LOOKED_AT_PARTS: i64 = 5;
/// Documents between two points at most.
const OBJECTS_MAX: i64 = 250_000;

/// Bytes written to one chunk since it was last looked at.
#[derive(Default)]
struct Written {
    bytes: i64,
    in_flight: bool,
}

/// The size that the chunks of a collection are to have.
fn bytes_of(sizes: &ChunkSizes, ns: &str) -> i64 {
    let own = sizes.own.iter().find(|own| own.ns == ns);
    own.map_or(sizes.usual_bytes, |own| own.bytes).max(1)
}

/// What is to be split, and what was written.
#[derive(Default)]
pub(crate) struct AutoSplit {
    /// `None` while nothing is to be split.
    sizes: RwLock<Option<ChunkSizes>>,
    /// Splits that are being made.
    splitting: watch::Sender<usize>,
    /// By namespace and lower bound of the chunk.
    written: Mutex<BTreeMap<(String, Vec<u8>), Written>>,
}

impl AutoSplit {
    /// The size of the collection's chunks; `None` while nothing is to be split.
    fn chunk_bytes(&self, ns: &str) -> Option<i64> {
        self.sizes.read().as_ref().map(|sizes| bytes_of(sizes, ns))
    }
}

/// A split that is being made.
struct Splitting(Arc<AutoSplit>);

impl Drop for Splitting {
    fn drop(&mut self) {
        self.0.splitting.send_modify(|n| *n = n.saturating_sub(1));
    }
}

struct Tracker {
    ddl: Weak<Ddl>,
    state: Arc<AutoSplit>,
    runtime: tokio::runtime::Handle,
}

impl WriteObserver for Tracker {
    fn inserted(&self, ns: &str, doc: Doc<'_>) {
        self.note(ns, doc);
    }
    fn updated(&self, ns: &str, new: Doc<'_>) {
        self.note(ns, new);
    }
}

impl Tracker {
    fn note(&self, ns: &str, doc: Doc<'_>) {
        let Some(ddl) = self.ddl.upgrade() else { return };
        let Some(routing) = ddl.role.cache.cached_collection(ns) else { return };
        let Some(table) = routing.table() else { return };
        let Ok(key) = table.key.key_of(doc) else { return };
        let at = (ns.to_string(), table.find(&key).min_key.clone());
        let Some(chunk_bytes) = self.state.chunk_bytes(ns) else { return };
        let due = {
            let mut all = self.state.written.lock();
            let written = all.entry(at.clone()).or_default();
            written.bytes += doc.bytes().len() as i64;
            let due = written.bytes >= chunk_bytes / LOOKED_AT_PARTS && !written.in_flight;
            written.in_flight |= due;
            due
        };
        if due {
            let state = self.state.clone();
            runtime::spawn_on(&self.runtime, async move {
                // What cannot be split now is looked at again after as many bytes.
                drop(ddl.split_if_large(&at.0, &at.1).await);
                state.written.lock().remove(&at);
            });
        }
    }
}

impl Ddl {
    /// Runs [`SetAutoSplit`]. Once splitting has been switched off, none is under way when this returns.
    pub(super) async fn set_auto_split(self: &Arc<Self>, request: Request<'_>) -> Result<Document> {
        let SetAutoSplit { sizes } = SetAutoSplit::parse(request.body)?;
        let enabled = sizes.is_some();
        let before = std::mem::replace(&mut *self.auto_split.sizes.write(), sizes);
        if before.is_some() != enabled {
            self.auto_split.written.lock().clear();
            let tracker = || -> Arc<dyn WriteObserver> {
                let (ddl, state) = (Arc::downgrade(self), self.auto_split.clone());
                Arc::new(Tracker { ddl, state, runtime: tokio::runtime::Handle::current() })
            };
            self.role.node.observers.watch_all(enabled.then(tracker));
        }
        self.forget_gone();
        if !enabled {
            // The sender lives as long as this node.
            drop(self.auto_split.splitting.subscribe().wait_for(|n| *n == 0).await);
        }
        Ok(Document::new())
    }

    /// Forgets what was written to chunks that are no longer there, or no longer this shard's.
    fn forget_gone(&self) {
        let own = self.role.identity().map(|i| i.name.to_string());
        let is_own = |(ns, min): &(String, Vec<u8>)| {
            let routing = self.role.cache.cached_collection(ns);
            let chunk = routing.as_ref().and_then(|r| r.table()).map(|table| table.find(min));
            chunk.is_some_and(|c| c.min_key == *min && Some(&*c.shard) == own.as_deref())
        };
        self.auto_split.written.lock().retain(|chunk, written| written.in_flight || is_own(chunk));
    }

    /// This node is no longer primary: it watches writes no more. The config server tells the next primary.
    pub(super) fn stop_auto_split(&self) {
        *self.auto_split.sizes.write() = None;
        self.auto_split.written.lock().clear();
        self.role.node.observers.watch_all(None);
    }

    /// The size of a collection's chunks; `None` while nothing is to be split.
    #[cfg(test)]
    pub(super) fn splits_at(&self, ns: &str) -> Option<i64> {
        self.auto_split.chunk_bytes(ns)
    }

    /// How many chunks have been written to since they were looked at.
    #[cfg(test)]
    pub(super) fn chunks_written(&self) -> usize {
        self.auto_split.written.lock().len()
    }

    /// Looks at the chunk of this shard that begins at `min_key`, and splits it if it has grown to its full size.
    async fn split_if_large(&self, ns: &str, min_key: &[u8]) -> Result<()> {
        let Some(chunk_bytes) = self.auto_split.chunk_bytes(ns) else { return Ok(()) };
        let own = self.shard()?;
        let routing = self.role.refresh_collection(ns).await?;
        let Some(table) = routing.table() else { return Ok(()) };
        let chunk = table.find(min_key).clone();
        if *chunk.shard != *own {
            return Ok(());
        }
        let mut points = self.points_of(ns, table, &chunk, chunk_bytes).await?;
        // One point means between half and all of a chunk: not yet.
        if points.len() < 2 {
            return Ok(());
        }
        let moves_on = self.use_extreme_key(ns, table, &chunk, &mut points);
        self.auto_split.splitting.send_modify(|n| *n += 1);
        let splitting = Splitting(self.auto_split.clone());
        // It may have been switched off since.
        if self.auto_split.chunk_bytes(ns).is_none() {
            return Ok(());
        }
        let commit = CommitChunkSplit {
            ns: ns.to_string(),
            epoch: table.epoch,
            timestamp: Some(table.timestamp),
            min: chunk.min.clone(),
            max: chunk.max.clone(),
            points,
            shard: own.to_string(),
            auto_split: Flag(true),
        };
        self.config(commit.to_document()).await?;
        drop(splitting);
        self.role.refresh_collection(ns).await?;
        if let Some(min) = moves_on {
            self.config(RebalanceChunk { ns: ns.to_string(), min }.to_document()).await?;
        }
        Ok(())
    }

    async fn points_of(
        &self,
        ns: &str,
        table: &RoutingTable,
        chunk: &Chunk,
        chunk_bytes: i64,
    ) -> Result<Vec<Document>> {
        let snapshot = snapshot_of(&self.role.node, ns)?;
        let documents = documents_per_piece(&snapshot, chunk_bytes, Some(OBJECTS_MAX));
        let points = Points::Every { documents, points_max: SPLIT_POINTS_MAX };
        let range = KeyRange::new(table.key.clone(), &chunk.min, &chunk.max)?;
        split_points(&self.role.node, &Operation::internal(), ns, &range, points).await
    }

    /// At an end of the key space, puts the extreme key in the place of the outermost point. Returns the lower bound of the
    /// chunk that this leaves at the end.
    fn use_extreme_key(
        &self,
        ns: &str,
        table: &RoutingTable,
        chunk: &Chunk,
        points: &mut [Document],
    ) -> Option<Document> {
        let first = chunk.min == table.key.global_min();
        let last = chunk.max == table.key.global_max();
        if first == last {
            return None;
        }
        let extreme = extreme_key(&self.role, ns, table, chunk, last)?;
        match last {
            true => {
                let top = points
                    .last_mut()
                    .filter(|p| table.key.encode_bound(p).ok() < table.key.encode_bound(&extreme).ok())?;
                *top = extreme.clone();
                Some(extreme)
            }
            false => {
                let low = points
                    .first_mut()
                    .filter(|p| table.key.encode_bound(&extreme).ok() < table.key.encode_bound(p).ok())?;
                *low = extreme;
                Some(chunk.min.clone())
            }
        }
    }
}

/// The greatest or the least key of the documents in a chunk.
fn extreme_key(
    role: &ShardRole,
    ns: &str,
    table: &RoutingTable,
    chunk: &Chunk,
    greatest: bool,
) -> Option<Document> {
    let slot = role.node.namespaces.slot(ns);
    let snapshot = slot.read_unchecked().collection.as_ref()?.snapshot();
    let mut cursor = snapshot.index_cursor(shard_key_index(&snapshot, &table.key)?)?;
    let entry = match greatest {
        true => cursor.seek_before(&chunk.max_key).filter(|e| e.key >= chunk.min_key.as_slice())?,
        false => cursor.seek(&chunk.min_key).filter(|e| e.key < chunk.max_key.as_slice())?,
    };
    table.key.key_document_of(snapshot.get(entry.record)?).ok()
}
