//! Shards that do not reply: a paused or cut-off one keeps its connections, and what was asked of it never ends by itself.
//!
//! Short questions have a deadline. What may take long, a migration or a merge, goes on as long as its shards reply to a
//! ping now and then; the answer is given up when one of them falls silent, so that it holds nothing else up.

use crate::config::ConfigServer;
use crate::remote::Target;
use document::{Document, Result, doc, err};
use std::time::Duration;

/// How long a shard may take over a short question.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two pings.
const PAUSE: Duration = Duration::from_secs(5);

impl ConfigServer {
    /// Asks a shard, by its connection string, what is quickly answered.
    ///
    /// # Errors
    /// The shard's own; HostUnreachable (6) after ten seconds.
    pub(super) async fn ask_briefly(&self, host: &str, command: Document) -> Result<Document> {
        let asked = self.remote.admin(Target::Host(host), command);
        let silent = |_| err!(HOST_UNREACHABLE, "{host} has not replied for {} seconds", PATIENCE.as_secs());
        tokio::time::timeout(PATIENCE, asked).await.map_err(silent)?
    }

    /// Does `work`, which these shards take part in, as long as they are heard of.
    ///
    /// # Errors
    /// Those of `work`; HostUnreachable (6) when a shard has fallen silent, which may go on with it all the same.
    pub(super) async fn while_heard<T>(
        &self,
        shards: [&str; 2],
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            done = work => done,
            silent = self.silence_of(shards[0]) => Err(silent),
            silent = self.silence_of(shards[1]), if shards[0] != shards[1] => Err(silent),
        }
    }

    /// Ends when a shard no longer replies. One that refuses connections is left to whoever is connected to it.
    async fn silence_of(&self, name: &str) -> document::Error {
        loop {
            tokio::time::sleep(PAUSE).await;
            let Ok(shard) = self.catalog().shard(name) else { std::future::pending().await };
            let ping = self.remote.admin(Target::Host(&shard.host), doc! { "ping": 1 });
            if tokio::time::timeout(PATIENCE, ping).await.is_err() {
                return err!(
                    HOST_UNREACHABLE,
                    "shard {name} has not replied for {} seconds",
                    PATIENCE.as_secs()
                );
            }
        }
    }
}
