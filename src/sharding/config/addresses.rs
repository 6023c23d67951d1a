//! The members of shards: when a set has changed, its connection string in `config.shards` is written anew.
//!
//! The primary of the config server asks each shard's primary for its members every few seconds. A list counts if it is of
//! a newer configuration of the set than the one that is written down.

use super::{ConfigServer, SHARDS, edit};
use crate::remote::{Target, hosts};
use crate::routing::registry::Shard;
use document::{Document, Result, Value, bail, doc};
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_secs(5);
const LOOK_LIMIT: Duration = Duration::from_secs(10);

/// The members that clients may talk to, as `hello` lists them.
pub(super) fn listed(hello: &Document) -> Vec<&str> {
    let lists = ["hosts", "passives"].into_iter().filter_map(|list| hello.get_array(list));
    lists.flatten().filter_map(Value::as_str).collect()
}

impl ConfigServer {
    /// Looks at the shards for as long as it is polled.
    pub async fn follow_members(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let shards = self.catalog().shards();
            let looks = shards.iter().map(|shard| async {
                // A shard that cannot be asked now is asked again.
                drop(tokio::time::timeout(LOOK_LIMIT, self.follow_set(shard)).await);
            });
            futures::future::join_all(looks).await;
        }
    }

    async fn follow_set(&self, shard: &Shard) -> Result<()> {
        let hello = self.remote.admin(Target::Host(&shard.host), doc! { "hello": 1 }).await?;
        let members = listed(&hello);
        let set = shard.host.split_once('/').map(|(set, _)| set);
        let (Some(set), Some(version)) = (set, hello.get_i64("setVersion")) else {
            bail!(OPERATION_FAILED, "{} is no set", shard.name)
        };
        let same =
            hosts(&shard.host).count() == members.len() && hosts(&shard.host).all(|h| members.contains(&h));
        if same || members.is_empty() || hello.get_str("setName") != Some(set) {
            return Ok(());
        }
        let _lock = self.topology.lock().await;
        let Some(before) = self.catalog().shard_document(&shard.name) else { return Ok(()) };
        if before.get_i64("replSetConfigVersion").is_some_and(|known| known >= version) {
            return Ok(());
        }
        let host = format!("{set}/{}", members.join(","));
        let write = edit(SHARDS, before, |document| {
            document.insert("host", host);
            document.insert("replSetConfigVersion", version);
        });
        self.commit(&[write]).await
    }
}
