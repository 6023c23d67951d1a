//! The shards of the cluster: name to connection string, as `config.shards` has them.

use crate::remote::Remote;
use document::{Document, Result};
use parking_lot::RwLock;
use std::collections::BTreeMap;

/// One shard: a document of `config.shards`.
#[derive(Clone, Debug, PartialEq)]
pub struct Shard {
    pub name: String,
    pub host: String,
    pub draining: bool,
    pub zones: Vec<String>,
}

#[derive(Default)]
struct Known {
    config: Option<String>,
    shards: BTreeMap<String, Shard>,
}

/// What a node knows of the shards; loaded when something unknown is asked for, and by [`Registry::reload`].
pub struct Registry {
    known: RwLock<Known>,
    /// One reload at a time; those who waited for it use what it brought.
    loading: tokio::sync::Mutex<u64>,
}

impl Registry {
    pub fn new(config: Option<&str>) -> Registry {
        let known = Known { config: config.map(str::to_string), shards: BTreeMap::new() };
        Registry { known: RwLock::new(known), loading: tokio::sync::Mutex::new(0) }
    }
    /// The config server's connection string.
    pub fn config(&self) -> Option<String> {
        self.known.read().config.clone()
    }
    pub fn set_config(&self, connection: &str) {
        self.known.write().config = Some(connection.to_string());
    }
    /// The connection string of a known shard.
    pub fn host(&self, shard: &str) -> Option<String> {
        self.known.read().shards.get(shard).map(|s| s.host.clone())
    }
    /// Known shards, in name order.
    pub fn shards(&self) -> Vec<Shard> {
        self.known.read().shards.values().cloned().collect()
    }
    pub fn names(&self) -> Vec<String> {
        self.known.read().shards.keys().cloned().collect()
    }
    /// The shard that has this host among its members.
    pub fn by_host(&self, host: &str) -> Option<String> {
        let known = self.known.read();
        known
            .shards
            .values()
            .find(|s| crate::remote::hosts(&s.host).any(|h| h == host))
            .map(|s| s.name.clone())
    }
    /// Known shards; asks the config server when none is known.
    pub async fn load(&self, remote: &Remote) -> Result<Vec<Shard>> {
        let known = self.shards();
        if !known.is_empty() {
            return Ok(known);
        }
        self.reload(remote).await?;
        Ok(self.shards())
    }

    /// Reads `config.shards`. Calls that overlap share one reading that began after they were made.
    ///
    /// # Errors
    /// Those of asking the config server; what was known stays.
    pub async fn reload(&self, remote: &Remote) -> Result<()> {
        let mut generation = self.loading.lock().await;
        let documents = remote.find_config("shards", Document::new(), None).await?;
        let shards = documents.iter().filter_map(shard_of).map(|s| (s.name.clone(), s)).collect();
        self.known.write().shards = shards;
        *generation += 1;
        Ok(())
    }
}

fn shard_of(d: &Document) -> Option<Shard> {
    let zones = d.get_array("tags").into_iter().flatten().filter_map(|v| v.as_str().map(str::to_string));
    Some(Shard {
        name: d.get_str("_id")?.to_string(),
        host: d.get_str("host")?.to_string(),
        draining: d.get_bool("draining").unwrap_or(false),
        zones: zones.collect(),
    })
}
