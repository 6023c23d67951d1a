//! Keeping the ranges of a collection on this shard while many documents are written.
//!
//! ```text
//! a write of many documents     keep()                        until it ends
//! one over several shards       lease() here and elsewhere    until its router releases the lease, or falls silent
//! a range about to leave        let_go()                      waits for both, and keeps others from beginning
//! ```
//! A write that runs under a lease does not queue behind a range that is about to leave: the range waits for the lease, so
//! the two would wait for each other.

use crate::Operation;
use document::{Error, Result, err};
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Until it is dropped no range leaves.
pub type Kept = Arc<OwnedRwLockReadGuard<()>>;

/// The ranges of one namespace.
#[derive(Default)]
pub struct Ranges {
    lock: Arc<RwLock<()>>,
    leases: Arc<Mutex<BTreeMap<[u8; 16], Lease>>>,
}

struct Lease {
    /// `None` once it was released: known until its end, so that a release whose reply was lost can be repeated.
    kept: Option<Kept>,
    until: Instant,
}

impl Ranges {
    /// # Errors
    /// An interrupt while a range is leaving.
    pub async fn keep(&self, op: &Operation) -> Result<Kept> {
        let leased = self.leases.lock().values().find_map(|lease| lease.kept.clone());
        match leased {
            Some(kept) => Ok(kept),
            None => Ok(Arc::new(op.interruptible(self.lock.clone().read_owned()).await?)),
        }
    }

    /// Keeps the ranges for `time` on behalf of the operation `id` of a router.
    ///
    /// # Errors
    /// Those of [`Ranges::keep`].
    pub async fn lease(&self, op: &Operation, id: [u8; 16], time: Duration) -> Result<()> {
        let kept = self.keep(op).await?;
        self.leases.lock().insert(id, Lease { kept: Some(kept), until: Instant::now() + time });
        let leases = self.leases.clone();
        runtime::spawn(async move {
            loop {
                let Some(until) = leases.lock().get(&id).map(|lease| lease.until) else { return };
                if Instant::now() >= until {
                    leases.lock().remove(&id);
                    return;
                }
                tokio::time::sleep_until(until).await;
            }
        });
        Ok(())
    }

    /// Prolongs a lease.
    ///
    /// # Errors
    /// QueryPlanKilled (175) when there is none: ranges may have left meanwhile.
    pub fn renew(&self, id: [u8; 16], time: Duration) -> Result<()> {
        match self.leases.lock().get_mut(&id) {
            Some(lease) if lease.kept.is_some() => {
                lease.until = Instant::now() + time;
                Ok(())
            }
            _ => Err(lapsed()),
        }
    }

    /// Ends a lease. Once more nothing happens.
    ///
    /// # Errors
    /// Those of [`Ranges::renew`].
    pub fn release(&self, id: [u8; 16]) -> Result<()> {
        self.leases.lock().get_mut(&id).map(|lease| lease.kept = None).ok_or_else(lapsed)
    }

    /// Ends all leases, for good: the node is not the one any more that can hold the ranges.
    pub fn forget(&self) {
        self.leases.lock().clear();
    }

    pub(crate) async fn let_go(&self) -> OwnedRwLockWriteGuard<()> {
        self.lock.clone().write_owned().await
    }
}

fn lapsed() -> Error {
    err!(QUERY_PLAN_KILLED, "migrations are not held back any longer by this operation")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn leaves(ranges: &Ranges) -> bool {
        tokio::time::timeout(Duration::from_millis(20), ranges.let_go()).await.is_ok()
    }

    #[tokio::test]
    async fn a_lease_keeps_ranges_and_lets_writes_pass_those_that_wait_to_leave() {
        let (ranges, op, id) = (Ranges::default(), Operation::internal(), [7; 16]);
        let long = Duration::from_secs(60);
        ranges.lease(&op, id, long).await.unwrap();
        {
            let mut leaving = std::pin::pin!(ranges.let_go());
            assert!(futures::poll!(leaving.as_mut()).is_pending());
            drop(ranges.keep(&op).await.unwrap());
            ranges.renew(id, long).unwrap();
        }
        assert!(!leaves(&ranges).await);
        ranges.release(id).unwrap();
        ranges.release(id).unwrap();
        assert!(leaves(&ranges).await);
        assert_eq!(ranges.renew(id, long).unwrap_err().code, document::codes::QUERY_PLAN_KILLED);
    }

    #[tokio::test]
    async fn a_lease_that_is_forgotten_cannot_be_renewed_nor_released() {
        let (ranges, id) = (Ranges::default(), [7; 16]);
        ranges.lease(&Operation::internal(), id, Duration::from_secs(60)).await.unwrap();
        ranges.forget();
        assert!(leaves(&ranges).await);
        for lapsed in [ranges.renew(id, Duration::from_secs(60)), ranges.release(id)] {
            assert_eq!(lapsed.unwrap_err().code, document::codes::QUERY_PLAN_KILLED);
        }
    }

    #[tokio::test]
    async fn a_lease_that_nobody_renews_ends() {
        let (ranges, op) = (Ranges::default(), Operation::internal());
        ranges.lease(&op, [7; 16], Duration::from_millis(30)).await.unwrap();
        let running = ranges.keep(&op).await.unwrap();
        tokio::time::sleep(Duration::from_millis(60)).await;
        assert!(!leaves(&ranges).await, "the write under it goes on");
        drop(running);
        assert!(leaves(&ranges).await);
        assert_eq!(ranges.release([7; 16]).unwrap_err().code, document::codes::QUERY_PLAN_KILLED);
    }
}
