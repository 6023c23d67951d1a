//! Locks of coordinators: a database (shared, or exclusive for what concerns all of it) and namespaces.
//!
//! Taken in the order database, then namespaces by name; they live in memory, since coordinators are taken up with
//! their locks before anything else runs.

use document::{Result, err};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// How long a coordinator waits for another to end.
const WAIT: Duration = Duration::from_secs(120);

#[derive(Default)]
pub(super) struct Locks {
    locks: Mutex<BTreeMap<String, Weak<RwLock<()>>>>,
}

/// What a coordinator holds until it ends.
#[derive(Default)]
pub(super) struct Held {
    _shared: Vec<OwnedRwLockReadGuard<()>>,
    _exclusive: Vec<OwnedRwLockWriteGuard<()>>,
}

impl Locks {
    fn of(&self, name: &str) -> Arc<RwLock<()>> {
        let mut locks = self.locks.lock();
        locks.retain(|_, lock| lock.strong_count() > 0);
        match locks.get(name).and_then(Weak::upgrade) {
            Some(lock) => lock,
            None => {
                let lock = Arc::new(RwLock::new(()));
                locks.insert(name.to_string(), Arc::downgrade(&lock));
                lock
            }
        }
    }

    /// Locks the namespaces, which are full names or names of databases.
    ///
    /// # Errors
    /// LockBusy (46) when another coordinator does not end in time.
    pub(super) async fn take(&self, namespaces: &[&str]) -> Result<Held> {
        let mut names: Vec<&str> = namespaces.to_vec();
        names.sort_unstable();
        names.dedup();
        let mut databases: Vec<&str> =
            names.iter().filter(|n| n.contains('.')).map(|n| super::split(n).0).collect();
        databases.retain(|db| !names.contains(db));
        databases.dedup();
        let mut held = Held::default();
        for db in databases {
            held._shared.push(waited(db, self.of(db).read_owned()).await?);
        }
        for name in names {
            held._exclusive.push(waited(name, self.of(name).write_owned()).await?);
        }
        Ok(held)
    }
}

async fn waited<T>(name: &str, lock: impl Future<Output = T>) -> Result<T> {
    let taken = tokio::time::timeout(WAIT, lock).await;
    taken.map_err(|_| {
        err!(LOCK_BUSY, "Failed to acquire the DDL lock for '{name}': another operation holds it")
    })
}
