//! The shards of the cluster: name to connection string, as `config.shards` has them.
//!
//! Read when the node starts, every 30 seconds, when something unknown is asked for, and when another node knows of a newer
//! topology: every change of the set of shards has a `topologyTime`, which the config server and the shards name in their
//! replies to other nodes.

use crate::remote::Remote;
use document::{Document, Result, Timestamp, Value};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often the shards are read anew without a reason.
pub const REFRESH_EVERY: Duration = Duration::from_secs(30);

/// One shard: a document of `config.shards`.
#[derive(Clone, Debug, PartialEq)]
pub struct Shard {
    pub name: String,
    pub host: String,
    pub draining: bool,
    pub zones: Vec<String>,
    /// When the set of shards was changed last, as far as this document tells.
    pub topology_time: Timestamp,
}

impl Shard {
    /// Whether `name` is the shard's, that of its set, its connection string, or one of its hosts.
    pub fn is_called(&self, name: &str) -> bool {
        let set = self.host.split_once('/').map(|(set, _)| set);
        self.name == name
            || self.host == name
            || set == Some(name)
            || crate::remote::hosts(&self.host).any(|h| h == name)
    }
}

#[derive(Default)]
struct Known {
    config: Option<String>,
    shards: BTreeMap<String, Shard>,
}

/// What a node knows of the shards; loaded when something unknown is asked for, and by [`Registry::reload`].
pub struct Registry {
    known: RwLock<Known>,
    /// One reload at a time. The number of the newest reading that has succeeded.
    loading: tokio::sync::Mutex<u64>,
    /// Readings begun.
    begun: AtomicU64,
    topology_time: AtomicU64,
}

impl Registry {
    pub fn new(config: Option<&str>) -> Registry {
        let known = Known { config: config.map(str::to_string), shards: BTreeMap::new() };
        Registry {
            known: RwLock::new(known),
            loading: tokio::sync::Mutex::new(0),
            begun: AtomicU64::new(0),
            topology_time: AtomicU64::new(0),
        }
    }
    /// The config server's connection string.
    pub fn config(&self) -> Option<String> {
        self.known.read().config.clone()
    }
    pub fn set_config(&self, connection: &str) {
        self.known.write().config = Some(connection.to_string());
    }
    /// The connection string of a known shard, by its name, its set's, or a host of it.
    pub fn host(&self, shard: &str) -> Option<String> {
        let known = self.known.read();
        let found = known.shards.get(shard).or_else(|| known.shards.values().find(|s| s.is_called(shard)));
        found.map(|s| s.host.clone())
    }
    /// The newest change of the set of shards that is known here.
    pub fn topology_time(&self) -> Timestamp {
        Timestamp::from_u64(self.topology_time.load(Ordering::Relaxed))
    }
    /// Takes in the topology time of another node; true when this one should read the shards anew.
    pub fn is_behind(&self, topology_time: Timestamp) -> bool {
        topology_time.as_u64() > self.topology_time.load(Ordering::Relaxed)
    }
    /// Known shards, in name order.
    pub fn shards(&self) -> Vec<Shard> {
        self.known.read().shards.values().cloned().collect()
    }
    pub fn names(&self) -> Vec<String> {
        self.known.read().shards.keys().cloned().collect()
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
        let begun = self.begun.load(Ordering::SeqCst);
        let mut done = self.loading.lock().await;
        if *done > begun {
            return Ok(());
        }
        let reading = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let documents = remote.find_config("shards", Document::new(), None).await?;
        let shards: BTreeMap<String, Shard> =
            documents.iter().filter_map(shard_of).map(|s| (s.name.clone(), s)).collect();
        let newest = shards.values().map(|s| s.topology_time.as_u64()).max().unwrap_or(0);
        self.known.write().shards = shards;
        self.topology_time.fetch_max(newest, Ordering::Relaxed);
        *done = reading;
        Ok(())
    }
}

/// Reads a document of `config.shards`.
pub(crate) fn shard_of(d: &Document) -> Option<Shard> {
    let zones = d.get_array("tags").into_iter().flatten().filter_map(|v| v.as_str().map(str::to_string));
    Some(Shard {
        name: d.get_str("_id")?.to_string(),
        host: d.get_str("host")?.to_string(),
        draining: d.get_bool("draining").unwrap_or(false),
        zones: zones.collect(),
        topology_time: d.get("topologyTime").and_then(Value::as_timestamp).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::Transport;
    use document::{DocBuf, doc};
    use futures::future::{BoxFuture, join_all};
    use std::sync::Arc;

    /// A config server without shards, and how often it was read.
    #[derive(Default)]
    struct Counted(AtomicU64);
    impl Transport for Counted {
        fn call<'a>(&'a self, _: &'a str, _: &'a str, _: DocBuf) -> BoxFuture<'a, Result<DocBuf>> {
            Box::pin(async {
                self.0.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                let cursor = doc! { "id": 0i64, "ns": "config.shards", "firstBatch": Vec::<Value>::new() };
                Ok(doc! { "ok": 1.0, "cursor": cursor }.to_doc_buf())
            })
        }
    }

    #[tokio::test]
    async fn calls_that_overlap_share_a_reading_that_began_after_them() {
        let counted = Arc::new(Counted::default());
        let remote = Remote::new(counted.clone(), Some("c:1"));
        // The first reading may have begun before the others came: they share the second.
        let all = join_all((0..10).map(|_| remote.registry.reload(&remote))).await;
        assert!(all.into_iter().all(|done| done.is_ok()));
        assert_eq!(counted.0.load(Ordering::SeqCst), 2);
        remote.registry.reload(&remote).await.unwrap();
        assert_eq!(counted.0.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_shard_is_found_by_its_name_its_set_and_its_hosts() {
        let shard = shard_of(&doc! { "_id": "s0", "host": "set0/a:1,b:2" }).unwrap();
        for name in ["s0", "set0", "set0/a:1,b:2", "a:1", "b:2"] {
            assert!(shard.is_called(name), "{name}");
        }
        for name in ["s1", "set", "a", ""] {
            assert!(!shard.is_called(name), "{name}");
        }
    }
}
