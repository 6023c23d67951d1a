//! Updates and deletes of many documents on several shards, with migrations held back meanwhile: the cluster parameter
//! `pauseMigrationsDuringMultiUpdates`.
//!
//! A range that goes from a shard that has executed the statement to one that has not meets it twice, and never on the
//! opposite path. So every shard that the statement goes to leases its ranges to it first (`_shardsvrKeepRanges`), and its
//! versions are compared only then: a range that matters is on one of these shards, and stays there. The leases are renewed
//! until all have executed the statement, and given back then. When a shard does not have its lease any more (it died, stepped down
//! or heard nothing for too long), by the last at the end, the statement fails.

use super::body::{Versions, own};
use super::cluster::Call;
use super::{Router, task::Task};
use crate::chunk::ShardId;
use document::{Document, Error, Result, Value, doc};
use futures::StreamExt;
use futures::future::{join_all, try_join_all};
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub const PARAMETER: &str = "pauseMigrationsDuringMultiUpdates";
/// How long a shard keeps its ranges for a router it hears nothing of.
const LEASE: Duration = Duration::from_secs(15);
const RENEW_EVERY: Duration = Duration::from_secs(3);

/// What the cluster parameter says.
#[derive(Default)]
pub struct Switch(AtomicBool);

impl Switch {
    /// Takes over the parameter's document.
    pub fn learn(&self, parameter: &Document) {
        self.0.store(parameter.get_bool("enabled").unwrap_or(false), Ordering::Relaxed);
    }
}

/// The ranges held for one statement.
pub struct Hold<'r> {
    router: &'r Router,
    ns: &'r str,
    id: [u8; 16],
    /// The shards that were asked, and whether they have granted the lease.
    shards: Mutex<BTreeMap<ShardId, bool>>,
}

impl<'r> Hold<'r> {
    /// One that holds nothing yet; `None` where migrations may go on. A transaction sees each document once anyway.
    pub fn wanted(task: &Task<'r>, ns: &'r str) -> Option<Hold<'r>> {
        let wanted = task.router.pauses_migrations.0.load(Ordering::Relaxed) && !task.in_transaction();
        wanted.then(|| Hold { router: task.router, ns, id: runtime::uuid(), shards: Mutex::default() })
    }

    /// Holds the ranges of these shards too.
    ///
    /// # Errors
    /// Those of asking a shard.
    pub async fn on(&self, shards: &[ShardId]) -> Result<()> {
        let known = self.shards.lock().clone();
        let new = shards.iter().filter(|shard| known.get(*shard) != Some(&true));
        try_join_all(new.map(|shard| async move {
            // Whatever becomes of this, the lease is to be given back.
            self.shards.lock().insert(shard.clone(), false);
            self.ask(shard, "begin").await?;
            self.shards.lock().insert(shard.clone(), true);
            Ok(())
        }))
        .await
        .map(drop)
    }

    /// Renews the leases, each by itself; returns when one is lost.
    pub async fn lost(&self) -> Error {
        let mut renewed = BTreeSet::new();
        let mut renewals = FuturesUnordered::new();
        loop {
            let granted: Vec<ShardId> =
                self.shards.lock().iter().filter(|(_, granted)| **granted).map(|(s, _)| s.clone()).collect();
            for shard in granted {
                if renewed.insert(shard.clone()) {
                    renewals.push(self.renew(shard));
                }
            }
            tokio::select! {
                Some(e) = renewals.next() => return e,
                () = tokio::time::sleep(RENEW_EVERY) => {}
            }
        }
    }
    async fn renew(&self, shard: ShardId) -> Error {
        loop {
            if let Err(e) = self.ask(&shard, "renew").await {
                return e;
            }
            tokio::time::sleep(RENEW_EVERY).await;
        }
    }

    /// Lets migrations go on. A shard that does not hear of it does so by itself when the lease ends.
    ///
    /// # Errors
    /// That of a shard which may not have had its lease until now.
    pub async fn release(self) -> Result<()> {
        let asked: Vec<ShardId> = self.shards.lock().keys().cloned().collect();
        join_all(asked.iter().map(|shard| self.ask(shard, "release"))).await.into_iter().collect()
    }

    async fn ask(&self, shard: &ShardId, what: &str) -> Result<()> {
        let command = doc! {
            "_shardsvrKeepRanges": self.ns, "operationId": Value::uuid(self.id), "action": what,
            "leaseMillis": LEASE.as_millis() as i64,
        };
        let body = own(&command, "admin", self.router.cluster_time(), &Versions::NONE);
        self.router.cluster.call(Call::new(shard, body.doc())).await.map(drop).map_err(|e| e.error)
    }
}
