//! What this shard owns, in bytes: the balancer's statistics and measurements.
//!
//! A shard also holds what it does not own: ranges that wait for their deletion, and ranges that arrive. Both are measured
//! by walking them, since their documents need not be like the collection's others, and no counter survives every crash.
//! What waits does not change until the deleter comes to it, so it is walked once.

use super::Ddl;
use crate::key_pattern::ShardKeyPattern;
use crate::messages::Message;
use crate::messages::balancing::{CountedCollection, StatsForBalancing};
use crate::messages::chunks::MeasureRange;
use crate::shard::migration::range::{KeyRange, measure, require_shard_key_index, shard_key_index};
use crate::shard::range_deleter::{Task, tasks};
use document::{Document, Result, doc, err};
use node::{Operation, Request};
use std::collections::BTreeSet;
use std::sync::Arc;
use storage::{CollectionSnapshot, CollectionView};

impl Ddl {
    /// Runs `_shardsvrGetStatsForBalancing`: bytes of owned documents, and bytes of all there are.
    pub(super) async fn stats_for_balancing(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let StatsForBalancing { collections, scale } = StatsForBalancing::parse(request.body)?;
        let scale = scale.unwrap_or(1).max(1);
        let all_tasks = tasks(&self.role, None);
        let waiting: BTreeSet<[u8; 16]> = all_tasks.iter().map(|t| t.id).collect();
        self.role.deleter.measured.lock().retain(|id, _| waiting.contains(id));
        let mut stats = Vec::new();
        for CountedCollection { ns, uuid } in collections {
            let mut size = 0;
            if let Some(snapshot) = self.snapshot(&ns).filter(|s| uuid.is_none_or(|u| u == s.meta().uuid)) {
                size = i64::try_from(snapshot.data_bytes()).unwrap_or(i64::MAX);
                for task in all_tasks.iter().filter(|t| t.uuid == snapshot.meta().uuid) {
                    size -= op.interruptible(self.unowned_bytes(&snapshot, task)).await?;
                }
            }
            stats.push(doc! { "ns": ns, "collSize": size.max(0) / scale });
        }
        let used = i64::try_from(self.role.node.data_bytes()).unwrap_or(i64::MAX);
        Ok(doc! { "stats": stats, "usedBytes": used })
    }

    fn snapshot(&self, ns: &str) -> Option<CollectionSnapshot> {
        let slot = self.role.node.namespaces.slot(ns);
        let state = slot.read_unchecked();
        state.collection.as_ref().map(|c| c.snapshot())
    }

    /// Bytes of a range that is held and not owned. A donor owns its range until the migration is decided.
    async fn unowned_bytes(&self, snapshot: &CollectionSnapshot, task: &Task) -> i64 {
        let own = self.role.identity().is_some_and(|i| *i.name == *task.donor);
        if task.pending && own {
            return 0;
        }
        let known = self.role.deleter.measured.lock().get(&task.id).copied();
        let delay_ms =
            if task.delayed { self.role.parameters.int("orphanCleanupDelaySecs").max(0) * 1000 } else { 0 };
        let rests = !task.pending && self.role.node.now_ms() < task.ready_at_ms.saturating_add(delay_ms);
        if let Some(bytes) = known.filter(|_| rests) {
            return bytes;
        }
        let Ok(range) = task.range() else { return 0 };
        let Some(slot) = shard_key_index(snapshot, &range.key) else { return 0 };
        let (bytes, _) = measure(snapshot, slot, &range, i64::MAX).await;
        if rests {
            self.role.deleter.measured.lock().insert(task.id, bytes);
        }
        bytes
    }

    /// Runs `_shardsvrMeasureRange`: `{ns, keyPattern, min, max}` returns `{size, numObjects}` of the documents there.
    ///
    /// # Errors
    /// NamespaceNotFound (26), IndexNotFound (27), BadValue (2).
    pub(super) async fn measure_range(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let MeasureRange { ns, key, min, max } = &MeasureRange::parse(request.body)?;
        let range = KeyRange::new(Arc::new(ShardKeyPattern::parse(key)?), min, max)?;
        let snapshot = self.snapshot(ns).ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns not found: {ns}"))?;
        let slot = require_shard_key_index(&snapshot, &range.key)?;
        let (size, documents) = op.interruptible(measure(&snapshot, slot, &range, i64::MAX)).await?;
        Ok(doc! { "size": size, "numObjects": documents })
    }
}
