//! What a node does by itself while it runs: checkpoints, and letting old log go.
//!
//! A checkpoint is due after some time with writes, or after many bytes of log, since both decide how long the next
//! start takes. The log is then cut before the checkpoint, but never so far that less is kept than its options say:
//! the oplog's readers, change streams and retries live on that part. Tasks that need more name a position to hold.

use crate::Node;
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use storage::StorageError;
use storage::log::Position;

/// Positions from which on the log must be kept, each held by somebody.
#[derive(Default)]
pub struct LogHolds {
    held: Mutex<(u64, BTreeMap<u64, Position>)>,
}

/// Keeps the log from a position on while it lives.
pub struct LogHold {
    id: u64,
    node: Arc<Node>,
}

impl Drop for LogHold {
    fn drop(&mut self) {
        self.node.log_holds.held.lock().1.remove(&self.id);
    }
}

impl LogHolds {
    fn oldest(&self) -> Option<Position> {
        self.held.lock().1.values().min().copied()
    }
}

/// When checkpoints are written.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The longest time between two, while something is written.
    pub interval: Duration,
    /// The most log between two, in bytes.
    pub log_bytes: u64,
}

/// A checkpoint comes earlier than [`Schedule::log_bytes`] say where there is less data: it writes no more than that, and the next
/// start replays less. So much log, and this share of the data, are enough.
const LOG_BYTES_MIN: u64 = 64 << 20;
const DATA_SHARE: u64 = 8;
/// How often it is looked whether one is due.
const TICK: Duration = Duration::from_millis(500);

impl Node {
    /// Keeps the log from the oldest frame kept now; whoever reads from there does so while the hold lives.
    pub fn hold_log(self: &Arc<Node>) -> (LogHold, Position) {
        let mut held = self.log_holds.held.lock();
        held.0 += 1;
        let (id, position) = (held.0, self.log.first_position());
        held.1.insert(id, position);
        drop(held);
        (LogHold { id, node: self.clone() }, position)
    }

    /// Bytes of all documents.
    pub fn data_bytes(&self) -> u64 {
        let slots = self.namespaces.all();
        slots.iter().filter_map(|s| s.read_unchecked().collection.as_ref().map(|c| c.data_bytes())).sum()
    }

    /// Writes a checkpoint, if this node has a directory, and lets log go. Blocks its thread.
    ///
    /// # Errors
    /// I/O; the older checkpoint stays in force and the log as it is.
    pub fn checkpoint_and_trim(&self) -> Result<(), StorageError> {
        let report = self.checkpoint()?;
        if report.is_none() && self.has_checkpoints() {
            // The older one stays in force, and needs its log.
            return Ok(());
        }
        let checkpointed = report.map_or_else(|| self.log.appended(), |report| report.position);
        let keep_from = self.log.retention_position().min(checkpointed);
        // The commit of what is prepared leads its readers back to these entries.
        let held = self.log_holds.oldest().into_iter().chain(self.oldest_prepared());
        let keep_from = held.fold(keep_from, Position::min);
        let (began, first) = (Instant::now(), self.log.first_position());
        self.log.truncate_before(keep_from)?;
        if self.log.first_position() != first {
            self.replication.metrics.note_truncation(began);
        }
        Ok(())
    }
}

/// Writes checkpoints until it is dropped. `failed` hears of every one that could not be written.
pub async fn checkpoints(node: Arc<Node>, schedule: Schedule, failed: impl Fn(String) + Send + 'static) {
    let (mut last, mut at) = (node.log.appended(), Instant::now());
    // The first one is not tried at every tick where it cannot be written.
    let mut tried = false;
    loop {
        tokio::time::sleep(TICK.min(schedule.interval)).await;
        let written = node.log.appended().saturating_sub(last);
        // Until there is one, a member does not say from where it would go on, and fixtures of sets wait for that.
        let first = !tried
            && node.is_replica_set()
            && node.stable_recovery_time().is_none()
            && node.has_checkpoints();
        let due = written >= schedule.log_bytes
            || (first && node.is_all_committed())
            || (written > 0 && at.elapsed() >= schedule.interval)
            || (written >= LOG_BYTES_MIN && written >= node.data_bytes() / DATA_SHARE);
        if !due {
            continue;
        }
        (last, at) = (node.log.appended(), Instant::now());
        let blocking = node.clone();
        let error = match runtime::blocking(move || blocking.checkpoint_and_trim()).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tried = true;
        failed(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::LocalClient;
    use crate::replication::testing;
    use document::doc;
    use storage::log::{LogOptions, SyncPolicy};

    fn small(options: &mut LogOptions) {
        options.segment_bytes = 4096;
        options.retain_bytes = 8192;
        // Each write is then written out, and segments end.
        options.sync = SyncPolicy::Group { interval: Duration::from_millis(1) };
    }

    async fn fill(node: &Arc<Node>, n: i64) {
        let client = LocalClient::new(node.clone());
        for i in 0..n {
            client.put("t.c", &doc! { "_id": i, "pad": "x".repeat(200) }).await.unwrap();
        }
    }

    #[tokio::test]
    async fn log_before_a_checkpoint_goes_as_far_as_retention_allows_and_nothing_is_lost() {
        let files = storage::files::MemoryFiles::default();
        let node = testing::open(None, &files, small);
        fill(&node, 200).await;
        let before = node.log.bytes();
        node.checkpoint_and_trim().unwrap();
        assert!(node.log.bytes() < before / 2, "{} of {before}", node.log.bytes());
        assert!(node.log.bytes() >= 8192);
        fill(&node, 210).await;
        node.shutdown();
        drop(node);
        let node = testing::open(None, &files, small);
        assert_eq!(LocalClient::new(node).find("t.c", &doc! {}).unwrap().len(), 210);
    }

    #[tokio::test]
    async fn what_is_young_stays_whatever_its_size() {
        let files = storage::files::MemoryFiles::default();
        let node = testing::open(None, &files, |options| {
            small(options);
            options.retain_ms = 3_600_000;
        });
        let first = node.log.first_position();
        fill(&node, 200).await;
        node.checkpoint_and_trim().unwrap();
        assert_eq!(node.log.first_position(), first);
        let cuts = || node.oplog_truncation().get_i64("truncateCount");
        assert_eq!(cuts(), Some(0));
        node.log.set_retain_ms(0);
        node.checkpoint_and_trim().unwrap();
        assert!(node.log.first_position() > first);
        assert_eq!(cuts(), Some(1));
    }

    #[tokio::test]
    async fn a_hold_keeps_the_log_while_it_lives() {
        let files = storage::files::MemoryFiles::default();
        let node = testing::open(None, &files, small);
        let (hold, position) = node.hold_log();
        fill(&node, 200).await;
        node.checkpoint_and_trim().unwrap();
        assert_eq!(node.log.first_position(), position);
        drop(hold);
        node.checkpoint_and_trim().unwrap();
        assert!(node.log.first_position() > position);
    }

    #[tokio::test]
    async fn a_test_keeps_checkpoints_at_a_time() {
        let files = storage::files::MemoryFiles::default();
        let node = testing::open(None, &files, small);
        fill(&node, 10).await;
        let name = "holdStableTimestampAtSpecificTimestamp";
        let hold = |ts: u64| {
            let data = doc! { "timestamp": document::Timestamp::from_u64(ts) };
            node.failpoints.configure(name, crate::failpoints::Mode::AlwaysOn, data);
        };
        let last = node.log.last_optime().ts;
        hold(last);
        assert!(node.checkpoint().unwrap().is_some());
        fill(&node, 20).await;
        assert!(node.checkpoint().unwrap().is_none());
        assert_eq!(node.stable_recovery_time().map(|t| t.as_u64()), Some(last));
        node.failpoints.configure(name, crate::failpoints::Mode::Off, document::Document::new());
        assert!(node.checkpoint().unwrap().is_some());
        assert!(node.stable_recovery_time().is_some_and(|t| t.as_u64() > last));
    }

    #[tokio::test]
    async fn a_log_in_memory_is_cut_too() {
        let files = storage::files::MemoryFiles::default();
        let node = testing::open(None, &files, |o| {
            small(o);
            o.in_memory = true;
        });
        fill(&node, 200).await;
        let before = node.log.bytes();
        node.checkpoint_and_trim().unwrap();
        assert!(node.log.bytes() < before / 2);
    }
}
