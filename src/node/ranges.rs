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
use crate::holders::{Held, Holders};
use document::{Error, Result, err};
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Until it is dropped no range leaves.
pub type Kept = Arc<Held<OwnedRwLockReadGuard<()>>>;

/// How long a released lease is known at most, and a router that is not heard of.
const REMEMBERED: Duration = Duration::from_secs(60);

/// A statement of a router.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    pub router: [u8; 16],
    /// Counted by the router.
    pub number: i64,
    /// The router has ended all statements below this number.
    pub ended_below: i64,
}

/// The ranges of one namespace.
#[derive(Default)]
pub struct Ranges {
    lock: Arc<RwLock<()>>,
    /// Who keeps them.
    pub(crate) keepers: Holders,
    leases: Arc<Mutex<Leases>>,
}

#[derive(Default)]
struct Leases {
    routers: BTreeMap<[u8; 16], Router>,
    /// A task ends leases whose time is over.
    is_watched: bool,
}

struct Router {
    ended_below: i64,
    heard: Instant,
    leases: BTreeMap<i64, Lease>,
    /// Known while their statements go on, so that a release whose reply was lost can be repeated, and a begin that comes late does
    /// nothing.
    released: BTreeMap<i64, Released>,
}

#[derive(Clone, Copy)]
struct Released {
    at: Instant,
    /// The lease was in force until then.
    was_kept: bool,
}

struct Lease {
    kept: Kept,
    until: Instant,
}

impl Leases {
    /// What is known of the router, with what the statement's message says of its others.
    fn of(&mut self, statement: Statement) -> &mut Router {
        let now = Instant::now();
        let is_lately = |at: Instant| now.saturating_duration_since(at) < REMEMBERED;
        self.routers.retain(|_, router| !router.leases.is_empty() || is_lately(router.heard));
        let new =
            || Router { ended_below: 0, heard: now, leases: BTreeMap::new(), released: BTreeMap::new() };
        let router = self.routers.entry(statement.router).or_insert_with(new);
        router.heard = now;
        if statement.ended_below > router.ended_below {
            router.ended_below = statement.ended_below;
            router.leases = router.leases.split_off(&statement.ended_below);
            router.released = router.released.split_off(&statement.ended_below);
        }
        while router.released.first_key_value().is_some_and(|(_, r)| !is_lately(r.at)) {
            router.released.pop_first();
        }
        router
    }
    /// Ends leases whose time is over; when the next may end.
    fn end_lapsed(&mut self) -> Option<Instant> {
        let now = Instant::now();
        self.routers.values_mut().for_each(|router| router.leases.retain(|_, lease| lease.until > now));
        self.routers.values().flat_map(|router| router.leases.values()).map(|lease| lease.until).min()
    }
}

impl Ranges {
    /// # Errors
    /// An interrupt while a range is leaving.
    pub async fn keep(&self, op: &Operation) -> Result<Kept> {
        let leased = {
            let leases = self.leases.lock();
            leases.routers.values().find_map(|router| Some(router.leases.values().next()?.kept.clone()))
        };
        match leased {
            Some(kept) => Ok(kept),
            None => {
                let guard = op.interruptible(self.lock.clone().read_owned()).await?;
                Ok(Arc::new(self.keepers.hold(guard, &op.name())))
            }
        }
    }

    /// Keeps the ranges for `time` on behalf of a router's statement.
    ///
    /// # Errors
    /// Those of [`Ranges::keep`]; QueryPlanKilled (175) when the statement has ended or has released them.
    pub async fn lease(&self, op: &Operation, statement: Statement, time: Duration) -> Result<()> {
        let kept = self.keep(op).await?;
        let mut leases = self.leases.lock();
        let router = leases.of(statement);
        if statement.number < router.ended_below || router.released.contains_key(&statement.number) {
            return Err(lapsed());
        }
        router.leases.insert(statement.number, Lease { kept, until: Instant::now() + time });
        if !std::mem::replace(&mut leases.is_watched, true) {
            runtime::spawn(watch(self.leases.clone()));
        }
        Ok(())
    }

    /// Prolongs a lease.
    ///
    /// # Errors
    /// QueryPlanKilled (175) when there is none: ranges may have left meanwhile.
    pub fn renew(&self, statement: Statement, time: Duration) -> Result<()> {
        let mut leases = self.leases.lock();
        let lease = leases.of(statement).leases.get_mut(&statement.number).ok_or_else(lapsed)?;
        lease.until = Instant::now() + time;
        Ok(())
    }

    /// Ends a lease. Once more returns the same.
    ///
    /// # Errors
    /// Those of [`Ranges::renew`].
    pub fn release(&self, statement: Statement) -> Result<()> {
        let mut leases = self.leases.lock();
        let router = leases.of(statement);
        let was_kept = router.leases.remove(&statement.number).is_some();
        let now = Released { at: Instant::now(), was_kept };
        let released = *router.released.entry(statement.number).or_insert(now);
        if released.was_kept { Ok(()) } else { Err(lapsed()) }
    }

    /// Ends all leases, for good: the node is not the one any more that can hold the ranges.
    pub fn forget(&self) {
        self.leases.lock().routers.clear();
    }

    pub(crate) async fn let_go(&self) -> OwnedRwLockWriteGuard<()> {
        self.lock.clone().write_owned().await
    }
}

/// Ends leases that nobody renews, as long as there are any.
async fn watch(leases: Arc<Mutex<Leases>>) {
    loop {
        let next = {
            let mut leases = leases.lock();
            let next = leases.end_lapsed();
            leases.is_watched = next.is_some();
            next
        };
        match next {
            Some(next) => tokio::time::sleep_until(next).await,
            None => return,
        }
    }
}

fn lapsed() -> Error {
    err!(QUERY_PLAN_KILLED, "migrations are not held back any longer by this operation")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A statement of a router that has ended none before.
    fn statement(number: i64) -> Statement {
        Statement { router: [7; 16], number, ended_below: 0 }
    }
    async fn leaves(ranges: &Ranges) -> bool {
        tokio::time::timeout(Duration::from_millis(20), ranges.let_go()).await.is_ok()
    }

    #[tokio::test]
    async fn a_lease_keeps_ranges_and_lets_writes_pass_those_that_wait_to_leave() {
        let (ranges, op, id) = (Ranges::default(), Operation::internal(), statement(1));
        ranges.lease(&op, id, LONG).await.unwrap();
        {
            let mut leaving = std::pin::pin!(ranges.let_go());
            assert!(futures::poll!(leaving.as_mut()).is_pending());
            drop(ranges.keep(&op).await.unwrap());
            ranges.renew(id, LONG).unwrap();
        }
        assert!(!leaves(&ranges).await);
        ranges.release(id).unwrap();
        ranges.release(id).unwrap();
        assert!(leaves(&ranges).await);
        assert_eq!(ranges.renew(id, LONG).unwrap_err().code, document::codes::QUERY_PLAN_KILLED);
    }

    #[tokio::test]
    async fn a_lease_that_is_forgotten_cannot_be_renewed_nor_released() {
        let (ranges, id) = (Ranges::default(), statement(1));
        ranges.lease(&Operation::internal(), id, LONG).await.unwrap();
        ranges.forget();
        assert!(leaves(&ranges).await);
        for lapsed in [ranges.renew(id, LONG), ranges.release(id)] {
            assert_eq!(lapsed.unwrap_err().code, document::codes::QUERY_PLAN_KILLED);
        }
    }

    #[tokio::test]
    async fn a_lease_that_nobody_renews_ends() {
        let (ranges, op) = (Ranges::default(), Operation::internal());
        ranges.lease(&op, statement(1), Duration::from_millis(30)).await.unwrap();
        let running = ranges.keep(&op).await.unwrap();
        tokio::time::sleep(Duration::from_millis(60)).await;
        assert!(!leaves(&ranges).await, "the write under it goes on");
        drop(running);
        assert!(leaves(&ranges).await);
        assert_eq!(ranges.release(statement(1)).unwrap_err().code, document::codes::QUERY_PLAN_KILLED);
    }

    #[tokio::test]
    async fn a_lease_that_was_released_does_not_come_back() {
        let (ranges, op) = (Ranges::default(), Operation::internal());
        ranges.lease(&op, statement(1), LONG).await.unwrap();
        ranges.release(statement(1)).unwrap();
        ranges.lease(&op, statement(1), LONG).await.unwrap_err();
        assert!(leaves(&ranges).await);
        // A range is leaving: the lease is not granted before its statement gives it up.
        let leaving = ranges.let_go().await;
        let mut late = std::pin::pin!(ranges.lease(&op, statement(2), LONG));
        assert!(futures::poll!(late.as_mut()).is_pending());
        for _ in 0..2 {
            ranges.release(statement(2)).unwrap_err();
        }
        drop(leaving);
        late.await.unwrap_err();
        assert!(leaves(&ranges).await);
    }

    #[tokio::test]
    async fn what_a_router_has_ended_is_forgotten_and_ends() {
        let (ranges, op) = (Ranges::default(), Operation::internal());
        for number in 1..100 {
            let statement = Statement { ended_below: number, ..statement(number) };
            ranges.lease(&op, statement, LONG).await.unwrap();
            ranges.release(statement).unwrap();
        }
        assert_eq!(ranges.leases.lock().routers[&[7; 16]].released.len(), 1);
        // Its release is lost.
        ranges.lease(&op, Statement { ended_below: 100, ..statement(100) }, LONG).await.unwrap();
        ranges.renew(Statement { ended_below: 101, ..statement(101) }, LONG).unwrap_err();
        assert!(leaves(&ranges).await);
        for number in [50, 100] {
            ranges.lease(&op, statement(number), LONG).await.unwrap_err();
        }
        assert!(leaves(&ranges).await);
    }
}
