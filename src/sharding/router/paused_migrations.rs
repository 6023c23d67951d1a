//! Updates and deletes of many documents on several shards, with migrations held back meanwhile: the cluster parameter
//! `pauseMigrationsDuringMultiUpdates`.
//!
//! A range that goes from a shard that has executed the statement to one that has not meets it twice, and never on the
//! opposite way. So every shard that the statement goes to leases its ranges to it first (`_shardsvrKeepRanges`), and its
//! versions are compared only then: a range that matters is on one of these shards, and stays there. The leases are renewed
//! until all have executed the statement, and given back then; each message also says which of the router's statements are over, whose
//! leases end with that wherever they still are. When a shard does not have its lease any more (it died, stepped down
//! or heard nothing for too long), the statement fails, at the latest when the leases are given back.

use super::body::Versions;
use super::cluster::Call;
use super::task::Task;
use crate::chunk::ShardId;
use crate::messages::Message;
use crate::messages::ranges::{KeepRanges, LeaseAction};
use document::error::{NETWORK, NOT_PRIMARY};
use document::{DocBuf, Document, Error, Result, err};
use futures::StreamExt;
use futures::future::{join_all, try_join_all};
use futures::stream::FuturesUnordered;
use node::cluster_parameters::Copied;
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a shard keeps its ranges for a router it hears nothing of.
const LEASE: Duration = Duration::from_secs(15);
const RENEW_EVERY: Duration = Duration::from_secs(3);
/// How often a shard is told that it need not keep its ranges any longer.
const RELEASES_MAX: usize = 3;

/// What the cluster parameter says, and the statements that hold ranges.
pub struct Switch {
    enabled: AtomicBool,
    /// Of this router, in this life.
    router: [u8; 16],
    statements: Mutex<Statements>,
}

#[derive(Default)]
struct Statements {
    last: i64,
    under_way: BTreeSet<i64>,
}

impl Default for Switch {
    fn default() -> Switch {
        Switch { enabled: AtomicBool::new(false), router: runtime::uuid(), statements: Mutex::default() }
    }
}

impl Copied for Switch {
    fn name(&self) -> &'static str {
        "pauseMigrationsDuringMultiUpdates"
    }
    fn learn(&self, parameter: &Document) {
        self.enabled.store(parameter.get_bool("enabled").unwrap_or(false), Ordering::Relaxed);
    }
}

impl Switch {
    fn begin(&self) -> i64 {
        let mut statements = self.statements.lock();
        statements.last += 1;
        let number = statements.last;
        statements.under_way.insert(number);
        number
    }
    fn ended_below(&self) -> i64 {
        let statements = self.statements.lock();
        statements.under_way.first().copied().unwrap_or(statements.last + 1)
    }
}

/// The ranges held for one statement.
pub(super) struct Hold<'t, 'a> {
    task: &'t Task<'a>,
    ns: &'t str,
    number: i64,
    /// The shards that were asked, and whether they have granted the lease.
    shards: Mutex<BTreeMap<ShardId, bool>>,
}

impl Drop for Hold<'_, '_> {
    fn drop(&mut self) {
        self.task.router.pauses_migrations.statements.lock().under_way.remove(&self.number);
    }
}

impl<'t, 'a> Hold<'t, 'a> {
    /// One that holds nothing yet; `None` where migrations may go on. A transaction sees each document once anyway.
    pub(super) fn wanted(task: &'t Task<'a>, ns: &'t str) -> Option<Hold<'t, 'a>> {
        let switch = &task.router.pauses_migrations;
        let wanted = switch.enabled.load(Ordering::Relaxed) && !task.in_transaction();
        wanted.then(|| Hold { task, ns, number: switch.begin(), shards: Mutex::default() })
    }

    /// Holds the ranges of these shards too.
    ///
    /// # Errors
    /// Those of asking a shard.
    pub(super) async fn on(&self, shards: &[ShardId]) -> Result<()> {
        let known = self.shards.lock().clone();
        let new = shards.iter().filter(|shard| known.get(*shard) != Some(&true));
        try_join_all(new.map(|shard| async move {
            // Whatever becomes of this, the lease is to be given back.
            self.shards.lock().insert(shard.clone(), false);
            self.ask(shard, LeaseAction::Begin).await?;
            self.shards.lock().insert(shard.clone(), true);
            Ok(())
        }))
        .await
        .map(drop)
    }

    /// Renews the leases, each by itself; returns when one is lost.
    pub(super) async fn lost(&self) -> Error {
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
        let mut granted = Instant::now();
        loop {
            let asked = Instant::now();
            match self.ask(&shard, LeaseAction::Renew).await {
                Ok(()) => granted = asked,
                // It lasts until then, whoever has not answered.
                Err(e) if e.is(NETWORK | NOT_PRIMARY) && granted.elapsed() < LEASE => {}
                Err(e) => return e,
            }
            tokio::time::sleep(RENEW_EVERY).await;
        }
    }

    /// Lets migrations go on, whatever became of the operation. A shard that does not hear of it does so by itself when the
    /// lease ends.
    ///
    /// # Errors
    /// That of a shard which may not have had its lease until now.
    pub(super) async fn release(self) -> Result<()> {
        let asked: Vec<ShardId> = self.shards.lock().keys().cloned().collect();
        join_all(asked.iter().map(|shard| self.give_back_in_time(shard))).await.into_iter().collect()
    }
    /// A shard that says nothing has no lease any more when its time is over, and may not have had it until now.
    async fn give_back_in_time(&self, shard: &ShardId) -> Result<()> {
        match tokio::time::timeout(LEASE, self.give_back(shard)).await {
            Ok(given) => given,
            Err(_) => Err(err!(HOST_UNREACHABLE, "shard {shard} does not say whether it kept its ranges")),
        }
    }
    async fn give_back(&self, shard: &ShardId) -> Result<()> {
        let body = self.command(LeaseAction::Release);
        let mut attempt = 1;
        loop {
            match self.task.router.cluster.call(Call::new(shard, body.doc())).await {
                Err(e) if e.error.is(NETWORK | NOT_PRIMARY) && attempt < RELEASES_MAX => {
                    tokio::time::sleep(Duration::from_millis(20 << attempt)).await;
                    attempt += 1;
                }
                answer => return answer.map(drop).map_err(|e| e.error),
            }
        }
    }

    async fn ask(&self, shard: &ShardId, action: LeaseAction) -> Result<()> {
        self.task.read(shard, &self.command(action)).await.map(drop)
    }
    fn command(&self, action: LeaseAction) -> DocBuf {
        let lease_millis = LEASE.as_millis() as i64;
        let switch = &self.task.router.pauses_migrations;
        let (router, number, ended_below) = (switch.router, self.number, switch.ended_below());
        let message =
            KeepRanges { ns: self.ns.to_string(), router, number, ended_below, action, lease_millis };
        self.task.own(&message.to_document(), "admin", &Versions::NONE)
    }
}
