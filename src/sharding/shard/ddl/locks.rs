//! Locks of coordinators: a database (shared, or exclusive for what concerns all of it) and namespaces.
//!
//! ```text
//!                                    the database   its data    the namespaces
//! a change of a namespace            shared                     exclusive
//! one that copies for long                          shared      exclusive        a resharding
//! a change of the whole database     exclusive      exclusive
//! a look at the whole database       exclusive                                   checkMetadataConsistency
//! what another shard's change brings exclusive      exclusive                     the clone of a movePrimary
//! ```
//! All of these but the last share one more lock, which comes first and which a standstill of the cluster takes exclusively ([`Purpose::Standstill`]).
//! So a look waits for no resharding, and has to leave out what is being resharded. The coordinator of the last holds that lock
//! on its own shard, and keeps clients waiting meanwhile, so that it waits here for a short time only.
//!
//! The first two of the order that `node::ddl::lock` writes down: databases by name, then namespaces by name. They live in
//! memory, since coordinators are taken up with their locks before anything else runs.

use document::{Result, err};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// How long a coordinator waits for another to end.
const WAIT: Duration = Duration::from_secs(120);
/// How long a standstill waits for coordinators to end; others that come meanwhile wait behind it.
pub(super) const STANDSTILL_WAIT: Duration = Duration::from_secs(20);
/// How long what another shard's change brings waits for coordinators of this one.
const BROUGHT_WAIT: Duration = Duration::from_secs(10);

/// The lock that everybody shares.
pub(super) const EVERYTHING: &str = "";

/// Follows a database's name in the name of the lock of its data. No database has it in its name.
const DATA: &str = " (data)";

/// What somebody takes locks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Change,
    /// A change of namespaces that copies their documents.
    Copy,
    /// A look at a whole database.
    Look,
    /// What a change on another shard brings.
    Brought,
    /// Nothing changes meanwhile.
    Standstill,
}

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
        self.take_for(Purpose::Change, namespaces, holder).await
    }
    /// The same for a purpose.
    pub(super) async fn take_for(&self, purpose: Purpose, namespaces: &[&str], holder: &str) -> Result<Held> {
        let wait = match purpose {
            Purpose::Standstill => STANDSTILL_WAIT,
            Purpose::Brought => BROUGHT_WAIT,
            _ => WAIT,
        };
        self.take_within(wait, purpose, namespaces, holder).await
    }

    async fn take_within(
        &self,
        wait: Duration,
        purpose: Purpose,
        names: &[&str],
        holder: &str,
    ) -> Result<Held> {
        let holder: Arc<str> = holder.into();
        let mut held = Held::default();
        for (name, exclusive) in wanted(purpose, names) {
            let lock = self.of(&name);
            let guard = match tokio::time::timeout(wait, lock.guard(exclusive)).await {
                Ok(guard) => guard,
                Err(_) => return Err(busy(&name, &holder, &lock)),
            };
            lock.holders.lock().push(holder.clone());
            held.0.push(HeldLock { lock, holder: holder.clone(), _guard: guard });
        }
        Ok(held)
    }
}

/// The locks in the order in which everybody takes them: databases and their data by name, then namespaces by name.
fn wanted(purpose: Purpose, names: &[&str]) -> Vec<(String, bool)> {
    let (mut databases, mut namespaces) = (BTreeMap::new(), BTreeSet::new());
    for name in names.iter().filter(|n| n.contains('.')) {
        let db = super::split(name).0;
        let shared = if purpose == Purpose::Copy { format!("{db}{DATA}") } else { db.to_string() };
        databases.insert(shared, false);
        namespaces.insert(name.to_string());
    }
    for db in names.iter().filter(|n| !n.contains('.')) {
        databases.insert(db.to_string(), true);
        if purpose != Purpose::Look {
            databases.insert(format!("{db}{DATA}"), true);
        }
    }
    let everything =
        (purpose != Purpose::Brought).then(|| (EVERYTHING.to_string(), purpose == Purpose::Standstill));
    let named = databases.into_iter().chain(namespaces.into_iter().map(|ns| (ns, true)));
    everything.into_iter().chain(named).collect()
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
        let _other = locks.take_within(SOON, Purpose::Change, &["d.e"], "create of d.e").await.unwrap();
        let refused =
            locks.take_within(SOON, Purpose::Change, &["d"], "dropDatabase of d").await.err().unwrap();
        assert_eq!(refused.code, document::codes::LOCK_BUSY);
        assert!(refused.message.contains("drop of d.c, create of d.e"), "{}", refused.message);
        let refused =
            locks.take_within(SOON, Purpose::Change, &["d.b", "d.c"], "rename of d.b").await.err().unwrap();
        assert!(refused.message.contains("'d.c'") && refused.message.contains("drop of d.c"));
        drop(first);
        locks.take_within(SOON, Purpose::Change, &["d.b", "d.c"], "rename of d.b").await.unwrap();
    }

    #[tokio::test]
    async fn a_look_at_a_database_waits_for_changes_and_not_for_copies() {
        let locks = Locks::default();
        let _copy = locks.take_for(Purpose::Copy, &["d.c"], "resharding of d.c").await.unwrap();
        let look = locks.take_within(SOON, Purpose::Look, &["d"], "check of d").await.unwrap();
        assert!(locks.take_within(SOON, Purpose::Change, &["d.e"], "create of d.e").await.is_err());
        drop(look);
        let _change = locks.take_within(SOON, Purpose::Change, &["d.e"], "create of d.e").await.unwrap();
        assert!(locks.take_within(SOON, Purpose::Look, &["d"], "check of d").await.is_err());
        for (purpose, name) in [(Purpose::Change, "d"), (Purpose::Change, "d.c"), (Purpose::Look, "d.c")] {
            let refused = locks.take_within(SOON, purpose, &[name], "another").await.err().unwrap();
            assert!(refused.message.contains("of d."), "{}", refused.message);
        }
    }

    #[tokio::test]
    async fn a_standstill_waits_for_everybody_and_everybody_for_it() {
        let locks = Locks::default();
        let change = locks.take(&["d.c"], "drop of d.c").await.unwrap();
        let standstill = || locks.take_within(SOON, Purpose::Standstill, &[], "a standstill");
        let refused = standstill().await.err().unwrap();
        assert!(refused.message.contains("drop of d.c"), "{}", refused.message);
        drop(change);
        let held = standstill().await.unwrap();
        for purpose in [Purpose::Change, Purpose::Copy, Purpose::Look] {
            assert!(locks.take_within(SOON, purpose, &["e.x"], "another").await.is_err());
        }
        drop(held);
        locks.take_within(SOON, Purpose::Change, &["e"], "dropDatabase of e").await.unwrap();
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
