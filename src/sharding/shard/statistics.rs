//! Counters of `serverStatus.shardingStatistics` on a shard.

use document::Document;
use std::sync::atomic::{AtomicI64, Ordering};

macro_rules! counters {
    ($($name:ident $shown:literal),+ $(,)?) => {
        #[derive(Default)]
        pub struct Statistics { $(pub $name: AtomicI64),+ }
        impl Statistics {
            /// The members as `serverStatus` names them.
            pub fn to_document(&self) -> Document {
                let mut d = Document::new();
                $(d.push($shown, self.$name.load(Ordering::Relaxed));)+
                d
            }
        }
    };
}

counters! {
    stale_config_errors "countStaleConfigErrors",
    donor_started "countDonorMoveChunkStarted",
    donor_committed "countDonorMoveChunkCommitted",
    donor_aborted "countDonorMoveChunkAborted",
    donor_clone_millis "totalDonorChunkCloneTimeMillis",
    critical_section_commit_millis "totalCriticalSectionCommitTimeMillis",
    critical_section_millis "totalCriticalSectionTimeMillis",
    cloned_on_recipient "countDocsClonedOnRecipient",
    bytes_cloned_on_recipient "countBytesClonedOnRecipient",
    cloned_on_catch_up "countDocsClonedOnCatchUpOnRecipient",
    bytes_on_catch_up "countBytesClonedOnCatchUpOnRecipient",
    cloned_on_donor "countDocsClonedOnDonor",
    bytes_cloned_on_donor "countBytesClonedOnDonor",
    recipient_started "countRecipientMoveChunkStarted",
    deleted_by_range_deleter "countDocsDeletedByRangeDeleter",
    bytes_deleted_by_range_deleter "countBytesDeletedByRangeDeleter",
    donor_lock_timeouts "countDonorMoveChunkLockTimeout",
    donor_index_aborts "countDonorMoveChunkAbortConflictingIndexOperation",
    unfinished_from_before "unfinishedMigrationFromPreviousPrimary",
    unauthorized_direct "unauthorizedDirectShardOperations",
}

/// Adds to a counter.
pub fn add(counter: &AtomicI64, n: i64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
