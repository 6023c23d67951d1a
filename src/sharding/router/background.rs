//! What a router does by itself: it shows that it is there. It also ends cursors, when it is told to.

use super::Router;
use super::admin::ping_document;
use super::body::{Versions, own};
use super::cluster::{CONFIG, Call};
use super::task::now_ms;
use document::{Result, Timestamp, codes, doc};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PING_EVERY: Duration = Duration::from_secs(10);
/// Until a ping that failed is repeated: a router and its config server often start together.
const PING_AGAIN: Duration = Duration::from_millis(500);

/// A driver whose connection breaks under a commit sends it once more, at once, and may be led to the same router.
const COMMIT_AGAIN_MAX: Duration = Duration::from_secs(1);

impl Router {
    /// The background work, which never ends by itself.
    pub fn run_background(self: &Arc<Router>, version: &str) -> impl Future<Output = ()> + Send + use<> {
        let (router, version) = (self.clone(), version.to_string());
        async move {
            let mut tick = tokio::time::interval(PING_EVERY);
            loop {
                tick.tick().await;
                // A config server that cannot be reached now is reached by a later ping.
                if router.ping(&version).await.is_err() {
                    tick.reset_after(PING_AGAIN);
                }
                let _ = router.refresh_defaults().await;
                let _ = router.refresh_parameters().await;
            }
        }
    }

    /// Starts the background work on the present runtime.
    pub fn start(self: &Arc<Router>, version: &str) -> tokio::task::JoinHandle<()> {
        runtime::spawn(self.run_background(version))
    }

    /// Writes this router's document of `config.mongos`.
    pub async fn ping(&self, version: &str) -> Result<()> {
        let now = now_ms();
        let document = ping_document(&self.host, self.started.elapsed().as_secs() as i64, version, now);
        let (mut set, mut insert) = (document.clone(), doc! {});
        set.remove("_id");
        if let Some(created) = set.remove("created") {
            insert.push("created", created);
        }
        let statement = doc! {
            "q": { "_id": (self.host.as_str()) }, "u": { "$set": set, "$setOnInsert": insert }, "upsert": true,
        };
        let command =
            doc! { "update": "mongos", "updates": [statement], "writeConcern": { "w": "majority" } };
        let body = own(&command, "config", self.clock(), &Versions::NONE);
        let call = Call::new(CONFIG, body.doc());
        let reply = self.cluster.call(call).await.map_err(|e| e.error)?;
        let time = reply.doc().get("$topologyTime").and_then(|v| v.as_timestamp());
        match time.is_some_and(|time| self.hear_topology(time)) {
            true => self.cluster.reload_shards().await,
            false => Ok(()),
        }
    }

    /// Takes in the topology time of a reply; true when the set of shards has changed since the last that was heard.
    pub(super) fn hear_topology(&self, time: Timestamp) -> bool {
        let time = time.as_u64();
        time > self.topology_time.load(Ordering::Relaxed)
            && self.topology_time.fetch_max(time, Ordering::Relaxed) < time
    }

    /// Closes the cursors that nobody asked for so long.
    pub fn close_idle_cursors(&self, most: Duration) {
        for cursor in self.cursors.remove_idle(most) {
            cursor.close(&self.cluster);
        }
    }
    /// Closes every cursor, here and on the shards: the router ends, and nobody can ask for more. Shards that do not answer
    /// within a moment forget theirs in time.
    pub async fn close_all_cursors(&self) {
        let cursors = self.cursors.remove_where(|_| true);
        let ended = futures::future::join_all(cursors.into_iter().map(|c| c.close_now(&self.cluster)));
        drop(tokio::time::timeout(std::time::Duration::from_millis(300), ended).await);
    }
    /// Ends what a load balancer's client began on this connection: its next connection may lead to another router.
    pub fn connection_ended(self: &Arc<Router>, connection: i64) {
        for cursor in self.cursors.remove_of_connection(connection) {
            cursor.close(&self.cluster);
        }
        if self.transactions.used_by(connection).is_empty() {
            return;
        }
        let router = self.clone();
        runtime::spawn(async move {
            tokio::time::sleep(COMMIT_AGAIN_MAX).await;
            let left = router.transactions.used_by(connection);
            router.abort_transactions(left, codes::CLIENT_DISCONNECT).await;
        });
    }
    /// Closes the cursors of sessions that ended; returns how many that no getMore has, which closes its own.
    pub fn close_cursors_of(&self, ended: impl Fn(&node::operation::SessionId) -> bool) -> usize {
        let cursors = self.cursors.remove_where(|session| session.is_some_and(|s| ended(&s)));
        let count = cursors.len();
        for cursor in cursors {
            cursor.close(&self.cluster);
        }
        count
    }
}
