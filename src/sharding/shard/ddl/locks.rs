//! Locks of coordinators: a database (shared, or exclusive for what concerns all of it) and namespaces.
//!
//! The first two of the order that `node::ddl::lock` writes down: databases by name, then namespaces by name. They live in
//! memory, since coordinators are taken up with their locks before anything else runs.

use document::{Result, err};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// How long a coordinator waits for another to end.
const WAIT: Duration = Duration::from_secs(120);

/// One lock, and who holds it, for those who wait in vain.
#[derive(Default)]
struct Lock {
    lock: Arc<RwLock<()>>,
    holders: Mutex<Vec<Arc<str>>>,
}

#[derive(Default)]
pub(super) struct Locks {
    locks: Mutex<BTreeMap<String, Weak<Lock>>>,
}

enum Guard {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Exclusive { _guard: OwnedRwLockWriteGuard<()> },
}

struct HeldLock {
    lock: Arc<Lock>,
    holder: Arc<str>,
    _guard: Guard,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        let mut holders = self.lock.holders.lock();
        if let Some(at) = holders.iter().position(|h| *h == self.holder) {
            holders.swap_remove(at);
        }
    }
}

/// What a coordinator holds until it ends.
#[derive(Default)]
pub(super) struct Held(Vec<HeldLock>);

impl Locks {
    /// How many hold the lock of a name or wait for it.
    #[cfg(test)]
    pub(super) fn users(&self, name: &str) -> usize {
        self.locks.lock().get(name).map_or(0, Weak::strong_count)
    }
    fn of(&self, name: &str) -> Arc<Lock> {
        let mut locks = self.locks.lock();
        locks.retain(|_, lock| lock.strong_count() > 0);
        match locks.get(name).and_then(Weak::upgrade) {
            Some(lock) => lock,
            None => {
                let lock = Arc::new(Lock::default());
                locks.insert(name.to_string(), Arc::downgrade(&lock));
                lock
            }
        }
    }

    /// Locks the namespaces, which are full names or names of databases, for `holder`.
    ///
    /// # Errors
    /// LockBusy (46), which names the holders, when they do not end in time.
    pub(super) async fn take(&self, namespaces: &[&str], holder: &str) -> Result<Held> {
        self.take_within(WAIT, namespaces, holder).await
    }

    async fn take_within(&self, wait: Duration, namespaces: &[&str], holder: &str) -> Result<Held> {
        let mut names: Vec<&str> = namespaces.to_vec();
        names.sort_unstable();
        names.dedup();
        let mut databases: Vec<&str> =
            names.iter().filter(|n| n.contains('.')).map(|n| super::split(n).0).collect();
        databases.retain(|db| !names.contains(db));
        databases.dedup();
        // A database alone is among the names, and stands before its namespaces there.
        let shared = databases.into_iter().map(|db| (db, false));
        let holder: Arc<str> = holder.into();
        let mut held = Held::default();
        for (name, exclusive) in shared.chain(names.into_iter().map(|name| (name, true))) {
            let lock = self.of(name);
            let guard = match tokio::time::timeout(wait, lock.guard(exclusive)).await {
                Ok(guard) => guard,
                Err(_) => return Err(busy(name, &holder, &lock)),
            };
            lock.holders.lock().push(holder.clone());
            held.0.push(HeldLock { lock, holder: holder.clone(), _guard: guard });
        }
        Ok(held)
    }
}

impl Lock {
    async fn guard(&self, exclusive: bool) -> Guard {
        match exclusive {
            true => Guard::Exclusive { _guard: self.lock.clone().write_owned().await },
            false => Guard::Shared { _guard: self.lock.clone().read_owned().await },
        }
    }
}

fn busy(name: &str, wanted: &str, lock: &Lock) -> document::Error {
    let holders = lock.holders.lock().join(", ");
    err!(LOCK_BUSY, "Failed to acquire the DDL lock of '{name}' for {wanted}: it is held by {holders}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn who_waits_in_vain_hears_who_holds_the_lock() {
        let locks = Locks::default();
        let first = locks.take(&["d.c"], "drop of d.c").await.unwrap();
        let _other = locks.take_within(SOON, &["d.e"], "create of d.e").await.unwrap();
        let refused = locks.take_within(SOON, &["d"], "dropDatabase of d").await.err().unwrap();
        assert_eq!(refused.code, document::codes::LOCK_BUSY);
        assert!(refused.message.contains("drop of d.c, create of d.e"), "{}", refused.message);
        let refused = locks.take_within(SOON, &["d.b", "d.c"], "rename of d.b").await.err().unwrap();
        assert!(refused.message.contains("'d.c'") && refused.message.contains("drop of d.c"));
        drop(first);
        locks.take_within(SOON, &["d.b", "d.c"], "rename of d.b").await.unwrap();
    }

    #[tokio::test]
    async fn names_given_in_any_order_are_locked_in_one() {
        let locks = Arc::new(Locks::default());
        let take = |a: &'static str, b: &'static str| {
            let locks = locks.clone();
            async move {
                for _ in 0..200 {
                    let held = locks.take(&[a, b], "rename").await.unwrap();
                    tokio::task::yield_now().await;
                    drop(held);
                }
            }
        };
        let all = futures::future::join3(take("d.a", "d.b"), take("d.b", "d.a"), take("e.x", "d.b"));
        tokio::time::timeout(Duration::from_secs(20), all).await.expect("a cycle of DDL locks");
    }
}
