//! The config server over a node in memory, with shards that answer what a test told them to.

use super::*;
use crate::messages::Message;
use crate::messages::balancing::SetAutoSplit;
use crate::messages::ddl::{CommitCreateCollection, CommitRename};
use crate::remote::Transport;
use crate::shard::migration::MoveRange;
use document::{DocBuf, Error, codes};
use futures::future::BoxFuture;
use node::{NodeOptions, Request};
use protocol::version::ShardVersion;
use storage::files::MemoryFiles;
use storage::log::{LogOptions, RealClock, SyncPolicy};

/// Shards by host: what they say they are, and the commands they got.
#[derive(Default)]
struct Fakes {
    databases: Mutex<BTreeMap<String, Vec<(String, i64)>>>,
    sizes: Mutex<BTreeMap<String, i64>>,
    got: Mutex<Vec<Document>>,
    refuse: Mutex<BTreeMap<String, Error>>,
    /// How many transactions and migrations they coordinate, by the collection that says so.
    coordinated: Mutex<BTreeMap<&'static str, i64>>,
    /// The cluster time that their replies bring.
    time: Mutex<Option<Timestamp>>,
}

impl Transport for Fakes {
    fn call<'a>(&'a self, host: &'a str, _db: &'a str, command: DocBuf) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move {
            let command = command.to_document();
            let name = command.first().map_or(String::new(), |(n, _)| n.to_string());
            self.got.lock().push(command.clone());
            if let Some(e) = self.refuse.lock().get(&name) {
                return Err(e.clone());
            }
            let set = host.split(':').next().unwrap_or("");
            let mut reply = match name.as_str() {
                "hello" if set == "router" => doc! { "msg": "isdbgrid", "isWritablePrimary": true },
                "hello" if set == "config" => {
                    doc! { "setName": set, "hosts": [host], "isWritablePrimary": true, "configsvr": 2 }
                }
                "hello" if set == "lonely" => doc! { "isWritablePrimary": true },
                "hello" => doc! {
                    "setName": set, "setVersion": 3, "hosts": [host], "isWritablePrimary": true, "maxWireVersion": 25,
                },
                "listDatabases" => {
                    let known = self.databases.lock().get(host).cloned().unwrap_or_default();
                    let list: Vec<Document> =
                        known.iter().map(|(n, s)| doc! { "name": n.as_str(), "sizeOnDisk": *s }).collect();
                    doc! { "databases": list }
                }
                "count" => {
                    let counted = command.get_str("count").unwrap();
                    doc! { "n": self.coordinated.lock().get(counted).copied().unwrap_or(0) }
                }
                "_shardsvrGetStatsForBalancing" => {
                    let size = self.sizes.lock().get(host).copied().unwrap_or(0);
                    let all = command.get_array("collections").unwrap();
                    let stats: Vec<Document> = all
                        .iter()
                        .map(|c| doc! { "ns": c.as_document().unwrap().get_str("ns").unwrap(), "collSize": size })
                        .collect();
                    doc! { "stats": stats }
                }
                _ => Document::new(),
            };
            if let Some(time) = *self.time.lock() {
                reply.push("$clusterTime", doc! { "clusterTime": time });
            }
            Ok(reply.to_doc_buf())
        })
    }
}

struct Cluster {
    config: Arc<ConfigServer>,
    shards: Arc<Fakes>,
}

fn open(files: &MemoryFiles) -> Arc<Node> {
    let options = NodeOptions {
        files: Arc::new(files.clone()),
        dir: "/data".into(),
        log: LogOptions { sync: SyncPolicy::Never, ..LogOptions::default() },
        clock: Arc::new(RealClock),
        replica_set: Some("cfg".to_string()),
        host: "h:1".to_string(),
    };
    Node::open(options).unwrap().node
}

impl Cluster {
    fn new() -> Cluster {
        let shards = Arc::new(Fakes::default());
        let remote = Remote::new(shards.clone(), None);
        let config = ConfigServer::new(open(&MemoryFiles::default()), remote, Arc::new(Parameters::new()));
        Cluster { config, shards }
    }
    /// With shards a and b, and `d.c` sharded by x: one chunk on a, so wide as the key space.
    async fn sharded() -> Cluster {
        let c = Cluster::new();
        for shard in ["a", "b"] {
            c.run(doc! { "_configsvrAddShard": format!("{shard}/{shard}:1") }).await.unwrap();
        }
        c.run(doc! { "_configsvrCreateDatabase": "d", "primaryShardId": "a" }).await.unwrap();
        c.create("d.c", [1; 16]).await.unwrap();
        c
    }
    async fn create(&self, ns: &str, uuid: [u8; 16]) -> Result<Document> {
        self.run(CommitCreateCollection::whole(ns, uuid, "a").to_document()).await
    }
    async fn run(&self, command: Document) -> Result<Document> {
        let bytes = command.to_doc_buf();
        let request = Request { db: "admin", body: bytes.doc(), sequences: &[] };
        let op = Operation::parse(1, Arc::default(), bytes.doc())?;
        commands::run(&self.config, &op, request).await
    }
    fn collection(&self) -> catalog::Sharded {
        self.config.catalog().sharded("d.c").unwrap()
    }
    fn version(&self) -> ShardVersion {
        let c = self.collection();
        c.version(self.config.catalog().collection_placement(c.info.uuid))
    }
    /// `shard[min,max)major|minor`, in key order.
    fn chunks(&self) -> Vec<String> {
        let show = |b: &Document| match b.get("x") {
            Some(Value::MinKey) => "-".to_string(),
            Some(Value::MaxKey) => "+".to_string(),
            Some(v) => v.as_i64().unwrap().to_string(),
            None => "?".to_string(),
        };
        let all = self.config.catalog().chunks(&self.collection()).unwrap();
        all.iter()
            .map(|c| {
                format!("{}[{},{}){}|{}", c.shard, show(&c.min), show(&c.max), c.version.secs, c.version.inc)
            })
            .collect()
    }
    async fn split(&self, min: Value, max: Value, points: &[i32]) -> Result<Document> {
        let points: Vec<Document> = points.iter().map(|p| doc! { "x": *p }).collect();
        self.run(doc! {
            "_configsvrCommitChunkSplit": "d.c", "collEpoch": self.collection().info.epoch, "min": { "x": min }, "max": { "x": max },
            "splitPoints": points, "shard": "a",
        })
        .await
    }
    /// What the donor of a migration of [0, 10) asks for when it does not know how that ended.
    fn bump(&self) -> Document {
        doc! {
            "_configsvrEnsureChunkVersionIsGreaterThan": 1, "minKey": { "x": 0 }, "maxKey": { "x": 10 },
            "version": self.version().to_document(), "nss": "d.c",
        }
    }
    fn migration(&self, min: Value, max: Value, version: ShardVersion) -> Document {
        doc! {
            "_configsvrCommitChunkMigration": "d.c", "fromShard": "a", "toShard": "b",
            "migratedChunk": { "min": { "x": min }, "max": { "x": max }, "lastmod": version.to_document() },
            "fromShardCollectionVersion": version.to_document(), "writeConcern": { "w": "majority" },
        }
    }
    async fn migrate(&self, min: i32, max: i32) -> Result<Document> {
        let command = self.migration(min.into(), max.into(), self.version());
        self.run(command).await
    }
}

fn code<T>(r: Result<T>) -> i32 {
    r.err().map_or(0, |e| e.code)
}

#[tokio::test]
async fn a_shard_is_added_once_and_named_after_its_set() {
    let c = Cluster::new();
    let add = |s: &str| doc! { "_configsvrAddShard": s };
    assert_eq!(c.run(add("a/a:1")).await.unwrap().get_str("shardAdded"), Some("a"));
    assert_eq!(c.run(add("a/a:1")).await.unwrap().get_str("shardAdded"), Some("a"));
    let shard = c.config.catalog().shard_document("a").unwrap();
    assert_eq!(shard.get_str("host"), Some("a/a:1"));
    assert_eq!(shard.get_i64("state"), Some(1));
    assert_eq!(shard.get_i64("replSetConfigVersion"), Some(3), "the version of the set that was asked");
    assert!(shard.get("topologyTime").and_then(Value::as_timestamp).is_some());
    let identity = c.shards.got.lock().iter().find(|d| d.contains_key("_addShard")).cloned().unwrap();
    let identity = identity.get_document("shardIdentity").unwrap().clone();
    assert_eq!(identity.get_str("configsvrConnectionString"), Some("cfg/h:1"));
    assert_eq!(identity.get("clusterId").and_then(Value::as_object_id), c.config.ensure().await.ok());
    assert_eq!(
        code(c.run(doc! { "_configsvrAddShard": "a/a:1", "name": "other" }).await),
        codes::ILLEGAL_OPERATION
    );
    assert_eq!(
        code(c.run(doc! { "_configsvrAddShard": "b/b:1", "name": "a" }).await),
        codes::ILLEGAL_OPERATION
    );
    assert_eq!(code(c.run(add("router/router:1")).await), codes::ILLEGAL_OPERATION);
    assert_eq!(code(c.run(add("config/config:1")).await), codes::OPERATION_FAILED);
    assert_eq!(code(c.run(add("lonely/lonely:1")).await), codes::OPERATION_FAILED);
    assert_eq!(code(c.run(add("x/b:1")).await), codes::OPERATION_FAILED);
    assert_eq!(code(c.run(add("b:1")).await), codes::OPERATION_FAILED);
}

#[tokio::test]
async fn databases_of_a_new_shard_are_registered_and_those_that_exist_elsewhere_refuse_it() {
    let c = Cluster::new();
    c.shards.databases.lock().insert("a:1".into(), vec![("d".into(), 10), ("admin".into(), 1)]);
    c.shards.databases.lock().insert("b:1".into(), vec![("d".into(), 10)]);
    c.run(doc! { "_configsvrAddShard": "a/a:1" }).await.unwrap();
    assert_eq!(c.config.catalog().database("d").unwrap().primary, "a");
    assert!(c.config.catalog().database("admin").is_none());
    let refused = c.run(doc! { "_configsvrAddShard": "b/b:1" }).await.unwrap_err();
    assert_eq!(refused.code, codes::OPERATION_FAILED);
    assert!(refused.message.contains("can't add shard"), "{}", refused.message);
}

#[tokio::test]
async fn routers_that_create_the_same_database_get_one_and_another_spelling_is_refused() {
    let c = Cluster::new();
    for shard in ["a", "b"] {
        c.run(doc! { "_configsvrAddShard": format!("{shard}/{shard}:1") }).await.unwrap();
    }
    c.shards.databases.lock().insert("a:1".into(), vec![("big".into(), 1000)]);
    let create = || c.run(doc! { "_configsvrCreateDatabase": "new" });
    let (one, two) = tokio::join!(create(), create());
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(c.config.catalog().database("new").unwrap().primary, "b");
    assert_eq!(code(c.run(doc! { "_configsvrCreateDatabase": "NEW" }).await), codes::DATABASE_DIFFER_CASE);
    let elsewhere = doc! { "_configsvrCreateDatabase": "new", "primaryShardId": "a" };
    assert_eq!(code(c.run(elsewhere).await), codes::NAMESPACE_EXISTS);
    assert_eq!(code(c.run(doc! { "_configsvrCreateDatabase": "admin" }).await), codes::INVALID_OPTIONS);
    assert_eq!(
        code(c.run(doc! { "_configsvrCreateDatabase": "x", "primaryShardId": "z" }).await),
        codes::SHARD_NOT_FOUND
    );
}

#[tokio::test]
async fn commands_that_write_want_majority() {
    let c = Cluster::sharded().await;
    let weak = doc! { "w": 1 };
    let e = c.run(doc! { "_configsvrCreateDatabase": "x", "writeConcern": weak }).await.unwrap_err();
    assert_eq!(e.code, codes::INVALID_OPTIONS);
    assert!(e.message.contains("must be called with majority writeConcern"));
}

#[tokio::test]
async fn a_collection_is_created_once_and_each_incarnation_is_newer() {
    let c = Cluster::sharded().await;
    assert_eq!(c.chunks(), ["a[-,+)1|0"]);
    let first = c.version();
    c.create("d.c", [1; 16]).await.unwrap();
    assert_eq!(c.version(), first);
    assert_eq!(code(c.create("d.c", [2; 16]).await), codes::ALREADY_INITIALIZED);
    let drop = doc! { "_configsvrCommitDropCollection": "d.c", "collectionUUID": Value::uuid([1; 16]) };
    c.run(drop.clone()).await.unwrap();
    c.run(drop.clone()).await.unwrap();
    assert!(c.config.catalog().chunk_documents([1; 16]).is_empty());
    c.create("d.c", [2; 16]).await.unwrap();
    assert!(c.version().timestamp > first.timestamp);
    // A late repeat of the drop concerns the old incarnation alone.
    c.run(drop).await.unwrap();
    assert_eq!(c.chunks(), ["a[-,+)1|0"]);
}

#[tokio::test]
async fn a_split_raises_the_minor_version_and_its_repeat_changes_nothing() {
    let c = Cluster::sharded().await;
    let reply = c.split(Value::MinKey, Value::MaxKey, &[0, 10]).await.unwrap();
    let expected = ["a[-,0)1|1", "a[0,10)1|2", "a[10,+)1|3"];
    assert_eq!(c.chunks(), expected);
    assert_eq!(reply.get_document("shardVersion").and_then(ShardVersion::from_document), Some(c.version()));
    c.split(Value::MinKey, Value::MaxKey, &[0, 10]).await.unwrap();
    assert_eq!(c.chunks(), expected);
    assert_eq!(
        code(c.split(Value::MinKey, Value::MaxKey, &[5]).await),
        codes::CONFLICTING_OPERATION_IN_PROGRESS
    );
    assert_eq!(code(c.split(0.into(), 10.into(), &[0]).await), codes::INVALID_OPTIONS);
    assert_eq!(code(c.split(0.into(), 10.into(), &[7, 6]).await), codes::INVALID_OPTIONS);
    assert_eq!(code(c.split(0.into(), 10.into(), &[10]).await), codes::INVALID_OPTIONS);
    assert_eq!(c.chunks(), expected);
    let stale = doc! {
        "_configsvrCommitChunkSplit": "d.c", "collEpoch": ObjectId([9; 12]), "min": { "x": 0 }, "max": { "x": 10 },
        "splitPoints": [{ "x": 5 }], "shard": "a",
    };
    assert_eq!(code(c.run(stale).await), codes::STALE_EPOCH);
}

#[tokio::test]
async fn a_migration_raises_the_major_version_with_a_control_chunk_on_the_donor() {
    let c = Cluster::sharded().await;
    c.split(Value::MinKey, Value::MaxKey, &[0, 10]).await.unwrap();
    let before = c.version();
    let reply = c.migrate(0, 10).await.unwrap();
    assert_eq!(c.chunks(), ["a[-,0)2|1", "b[0,10)2|0", "a[10,+)1|3"]);
    let donor = reply.get_document("shardVersion").and_then(ShardVersion::from_document).unwrap();
    assert_eq!((donor.major(), donor.minor()), (2, 1));
    let moved = c.config.catalog().chunks(&c.collection()).unwrap().remove(1);
    assert_eq!(moved.history.iter().map(|(_, s)| &**s).collect::<Vec<_>>(), ["b", "a"]);
    assert!(moved.history[0].0 > moved.history[1].0);
    // The answer was lost and the donor asks again.
    let again = c.run(c.migration(0.into(), 10.into(), before)).await.unwrap();
    assert_eq!(again, reply);
    assert_eq!(c.chunks(), ["a[-,0)2|1", "b[0,10)2|0", "a[10,+)1|3"]);
}

#[tokio::test]
async fn part_of_a_chunk_moves_and_what_is_left_stays_on_the_donor() {
    let c = Cluster::sharded().await;
    c.migrate(0, 10).await.unwrap();
    assert_eq!(c.chunks(), ["a[-,0)2|1", "b[0,10)2|0", "a[10,+)2|2"]);
    let ids: std::collections::BTreeSet<_> =
        c.config.catalog().chunks(&c.collection()).unwrap().iter().map(|x| x.id).collect();
    assert_eq!(ids.len(), 3);
}

#[tokio::test]
async fn the_last_chunk_of_a_donor_leaves_no_control_chunk() {
    let c = Cluster::sharded().await;
    let reply = c.run(c.migration(Value::MinKey, Value::MaxKey, c.version())).await.unwrap();
    assert_eq!(c.chunks(), ["b[-,+)2|0"]);
    let donor = reply.get_document("shardVersion").and_then(ShardVersion::from_document).unwrap();
    assert_eq!(donor.placement, Timestamp::default());
}

#[tokio::test]
async fn a_commit_that_does_not_fit_is_refused_and_changes_nothing() {
    let c = Cluster::sharded().await;
    c.split(Value::MinKey, Value::MaxKey, &[0, 10]).await.unwrap();
    let (before, version) = (c.chunks(), c.version());
    let stale = ShardVersion { epoch: ObjectId([9; 12]), ..version };
    assert_eq!(code(c.run(c.migration(0.into(), 10.into(), stale)).await), codes::STALE_EPOCH);
    let older = version.at(Timestamp::new(1, 1));
    let refused = c.run(c.migration(0.into(), 10.into(), older)).await;
    assert_eq!(code(refused), codes::CONFLICTING_OPERATION_IN_PROGRESS);
    assert_eq!(code(c.migrate(5, 15).await), 40165);
    let mut other = c.migration(0.into(), 10.into(), version);
    other.insert("fromShard", "b");
    other.insert("toShard", "a");
    assert_eq!(c.run(other).await.map(|_| ()), Ok(()), "it is on a already");
    let mut nowhere = c.migration(0.into(), 10.into(), version);
    nowhere.insert("toShard", "z");
    assert_eq!(code(c.run(nowhere).await), codes::SHARD_NOT_FOUND);
    c.run(doc! { "_configsvrSetAllowMigrations": "d.c", "allowMigrations": false }).await.unwrap();
    assert_eq!(code(c.migrate(0, 10).await), codes::CONFLICTING_OPERATION_IN_PROGRESS);
    c.run(doc! { "_configsvrSetAllowMigrations": "d.c", "allowMigrations": true }).await.unwrap();
    c.run(doc! { "_configsvrRemoveShard": "b" }).await.unwrap();
    assert_eq!(code(c.migrate(0, 10).await), codes::SHARD_NOT_FOUND);
    assert_eq!(c.chunks().len(), before.len());
    assert!(c.chunks().iter().all(|chunk| chunk.starts_with('a')));
}

#[tokio::test]
async fn after_the_bump_a_late_commit_is_refused() {
    let c = Cluster::sharded().await;
    c.split(Value::MinKey, Value::MaxKey, &[0, 10]).await.unwrap();
    let late = c.migration(0.into(), 10.into(), c.version());
    let bump = c.bump();
    c.run(bump.clone()).await.unwrap();
    assert_eq!(c.chunks()[1], "a[0,10)2|0");
    c.run(bump).await.unwrap();
    assert_eq!(c.chunks()[1], "a[0,10)2|0");
    assert_eq!(code(c.run(late).await), codes::CONFLICTING_OPERATION_IN_PROGRESS);
}

#[tokio::test]
async fn chunks_merge_into_one_with_a_raised_minor_version() {
    let c = Cluster::sharded().await;
    c.split(Value::MinKey, Value::MaxKey, &[0, 10, 20]).await.unwrap();
    let merge = |min: Value, max: Value| {
        doc! {
            "_configsvrCommitChunksMerge": "d.c", "shard": "a", "collUUID": { "uuid": Value::uuid([1; 16]) },
            "chunkRange": { "min": { "x": min }, "max": { "x": max } },
        }
    };
    c.run(merge(0.into(), 20.into())).await.unwrap();
    assert_eq!(c.chunks(), ["a[-,0)1|1", "a[0,20)1|5", "a[20,+)1|4"]);
    c.run(merge(0.into(), 20.into())).await.unwrap();
    assert_eq!(c.chunks()[1], "a[0,20)1|5");
    assert_eq!(code(c.run(merge(5.into(), 20.into())).await), codes::ILLEGAL_OPERATION);
    c.migrate(0, 20).await.unwrap();
    assert_eq!(code(c.run(merge(Value::MinKey, 20.into())).await), codes::ILLEGAL_OPERATION);
}

#[tokio::test]
async fn a_stopped_balancer_gets_neither_merges_nor_splits_that_shards_commit_late() {
    let c = Cluster::sharded().await;
    c.split(Value::MinKey, Value::MaxKey, &[0, 10, 20]).await.unwrap();
    let majority = |mut command: Document| {
        command.push("writeConcern", doc! { "w": "majority" });
        command
    };
    let merge = |of_balancer: bool| {
        doc! {
            "_configsvrCommitChunksMerge": "d.c", "shard": "a", "chunkRange": { "min": { "x": 0 }, "max": { "x": 20 } },
            "ofBalancer": of_balancer,
        }
    };
    let merge_all = doc! { "_configsvrCommitMergeAllChunksOnShard": "d.c", "shard": "a", "ofBalancer": true };
    let split = doc! {
        "_configsvrCommitChunkSplit": "d.c", "collEpoch": c.collection().info.epoch, "min": { "x": 0 }, "max": { "x": 10 },
        "splitPoints": [{ "x": 5 }], "shard": "a", "autoSplit": true,
    };
    c.run(majority(doc! { "_configsvrBalancerStop": 1 })).await.unwrap();
    let before = c.chunks();
    for late in [merge(true), merge_all, split.clone()] {
        assert_eq!(code(c.run(late).await), codes::CONFLICTING_OPERATION_IN_PROGRESS);
        assert_eq!(c.chunks(), before);
    }
    // A user's goes on.
    c.run(merge(false)).await.unwrap();
    assert_eq!(c.chunks(), ["a[-,0)1|1", "a[0,20)1|5", "a[20,+)1|4"]);
    c.run(majority(doc! { "_configsvrBalancerStart": 1 })).await.unwrap();
    c.run(merge(true)).await.unwrap();
    assert_eq!(
        code(c.run(split).await),
        codes::CONFLICTING_OPERATION_IN_PROGRESS,
        "splitting is off by itself"
    );
}

#[tokio::test]
async fn a_merge_of_the_balancer_keeps_to_zones_and_marks_that_are_younger_than_its_plan() {
    let c = Cluster::sharded().await;
    c.split(Value::MinKey, Value::MaxKey, &[0, 10, 20, 30]).await.unwrap();
    let merge = |min: i32, max: Value, of_balancer: bool| {
        doc! {
            "_configsvrCommitChunksMerge": "d.c", "shard": "a", "chunkRange": { "min": { "x": min }, "max": { "x": max } },
            "ofBalancer": of_balancer,
        }
    };
    c.run(doc! { "_configsvrAddShardToZone": "a", "zone": "z" }).await.unwrap();
    // The edges are of another number type than the chunks' bounds.
    c.run(doc! {
        "_configsvrUpdateZoneKeyRange": "d.c", "min": { "x": 10.0 }, "max": { "x": 20i64 }, "zone": "z",
    })
    .await
    .unwrap();
    let before = c.chunks();
    assert_eq!(code(c.run(merge(0, 20.into(), true)).await), codes::ILLEGAL_OPERATION);
    assert_eq!(code(c.run(merge(10, 30.into(), true)).await), codes::ILLEGAL_OPERATION);
    c.run(doc! { "_configsvrCommitMergeAllChunksOnShard": "d.c", "shard": "a" }).await.unwrap();
    let shape = |chunks: &[String]| chunks.iter().map(|c| c[..=c.find(')').unwrap()].to_string()).collect();
    let merged: Vec<String> = shape(&c.chunks());
    assert_eq!(merged, ["a[-,10)", "a[10,20)", "a[20,+)"], "from {before:?}");
    // A user may.
    c.run(merge(10, Value::MaxKey, false)).await.unwrap();
    // One that was marked since stays apart, too.
    c.split(10.into(), Value::MaxKey, &[40, 50]).await.unwrap();
    let marked = c.config.catalog().chunk_at(&c.collection(), &doc! { "x": 40 }).unwrap().unwrap();
    c.config.mark_jumbo(&c.collection(), &marked).await.unwrap();
    assert_eq!(code(c.run(merge(10, 50.into(), true)).await), codes::ILLEGAL_OPERATION);
    c.run(merge(10, 50.into(), false)).await.unwrap();
}

#[tokio::test]
async fn a_migration_of_the_balancer_is_committed_only_while_its_note_stands() {
    let c = Cluster::sharded().await;
    let note = ObjectId([7; 12]);
    let mut commit = c.migration(Value::MinKey, Value::MaxKey, c.version());
    commit.push("note", note);
    assert_eq!(code(c.run(commit.clone()).await), codes::CONFLICTING_OPERATION_IN_PROGRESS);
    assert_eq!(c.chunks(), ["a[-,+)1|0"]);
    c.config.local.put(MIGRATIONS, &doc! { "_id": note }).await.unwrap();
    c.run(commit.clone()).await.unwrap();
    assert_eq!(c.chunks(), ["b[-,+)2|0"]);
    // The answer was lost, and the note has been struck off since.
    c.config.local.delete(MIGRATIONS, &Document::new()).await.unwrap();
    c.run(commit).await.unwrap();
}

#[tokio::test]
async fn a_donor_that_is_gone_finds_its_migration_fenced() {
    let c = Cluster::sharded().await;
    c.split(Value::MinKey, Value::MaxKey, &[0, 10]).await.unwrap();
    let late = c.migration(0.into(), 10.into(), c.version());
    let bump = c.bump();
    let lost = MoveRange {
        ns: "d.c".to_string(),
        from: "a".to_string(),
        to: "b".to_string(),
        min: Some(doc! { "x": 0 }),
        max: Some(doc! { "x": 10 }),
        max_bytes: 1,
        max_objects: None,
        epoch: Some(c.collection().info.epoch),
        force_jumbo: 0,
        wait_for_delete: false,
        throttle: None,
        note: None,
    };
    let fence = || put(MIGRATIONS, doc! { "_id": 1, "fenced": true });
    let other = MoveRange { epoch: Some(ObjectId([9; 12])), ..lost.clone() };
    c.config.fence_migration(&other, fence()).await.unwrap();
    assert_eq!(c.chunks()[1], "a[0,10)1|2", "another incarnation is let be");
    c.config.fence_migration(&lost, fence()).await.unwrap();
    let fenced = c.chunks();
    assert_eq!(fenced[1], "a[0,10)2|0");
    assert_eq!(code(c.run(late).await), codes::CONFLICTING_OPERATION_IN_PROGRESS);
    c.run(bump).await.unwrap();
    assert_eq!(c.chunks(), fenced);
}

#[tokio::test]
async fn the_primary_moves_once_with_a_new_version() {
    let c = Cluster::sharded().await;
    let before = c.config.catalog().database("d").unwrap();
    let move_it = doc! {
        "_configsvrCommitMovePrimary": "d", "to": "b", "expectedDatabaseVersion": before.version.to_document(),
    };
    c.run(move_it.clone()).await.unwrap();
    let after = c.config.catalog().database("d").unwrap();
    assert_eq!((after.primary.as_str(), after.version.last_mod), ("b", 2));
    assert!(after.version.order(&before.version).is_gt());
    c.run(move_it.clone()).await.unwrap();
    assert_eq!(c.config.catalog().database("d").unwrap(), after);
    let mut back = move_it;
    back.insert("to", "a");
    assert_eq!(code(c.run(back).await), codes::CONFLICTING_OPERATION_IN_PROGRESS);
}

#[tokio::test]
async fn a_rename_makes_a_new_incarnation_with_the_same_chunks() {
    let c = Cluster::sharded().await;
    c.create("d.old", [2; 16]).await.unwrap();
    let before = c.version();
    let (from, to) = ("d.c".to_string(), "d.old".to_string());
    let rename = CommitRename { ns: from, to, source: [1; 16], replaced: Some([2; 16]) };
    let of_target = c.config.catalog().chunk_documents([2; 16]);
    c.run(rename.to_document()).await.unwrap();
    // The first try ended before these went.
    let left: Vec<_> = of_target.into_iter().map(|chunk| insert(CHUNKS, chunk)).collect();
    assert!(!left.is_empty());
    c.config.commit(&left).await.unwrap();
    c.run(rename.to_document()).await.unwrap();
    assert!(c.config.catalog().find_collection("d.c").unwrap().is_none());
    let renamed = c.config.catalog().sharded("d.old").unwrap();
    assert_eq!(renamed.info.uuid, [1; 16]);
    assert!(renamed.info.timestamp > before.timestamp);
    assert_eq!(c.config.catalog().chunk_documents([1; 16]).len(), 1);
    assert!(c.config.catalog().chunk_documents([2; 16]).is_empty());
}

#[tokio::test]
async fn a_shard_is_drained_before_it_goes_and_the_last_one_stays() {
    let c = Cluster::sharded().await;
    let state = |d: &Document| d.get_str("state").unwrap_or("").to_string();
    assert_eq!(code(c.run(doc! { "_configsvrRemoveShard": "z" }).await), codes::SHARD_NOT_FOUND);
    assert_eq!(state(&c.run(doc! { "_configsvrRemoveShard": "a" }).await.unwrap()), "started");
    assert_eq!(code(c.run(doc! { "_configsvrRemoveShard": "b" }).await), codes::ILLEGAL_OPERATION);
    let ongoing = c.run(doc! { "_configsvrRemoveShard": "a" }).await.unwrap();
    assert_eq!(state(&ongoing), "ongoing");
    assert_eq!(ongoing.get_path("remaining.chunks").and_then(Value::as_i64), Some(1));
    assert_eq!(ongoing.get_path("remaining.dbs").and_then(Value::as_i64), Some(1));
    c.run(c.migration(Value::MinKey, Value::MaxKey, c.version())).await.unwrap();
    let version = c.config.catalog().database("d").unwrap().version;
    let primary = doc! { "_configsvrCommitMovePrimary": "d", "to": "b", "expectedDatabaseVersion": version.to_document() };
    c.run(primary).await.unwrap();
    assert_eq!(state(&c.run(doc! { "_configsvrRemoveShard": "a" }).await.unwrap()), "completed");
    assert_eq!(c.config.catalog().shards().len(), 1);
}

#[tokio::test]
async fn a_shard_stays_while_others_may_need_the_decisions_that_it_has_made() {
    let c = Cluster::sharded().await;
    c.run(doc! { "_configsvrRemoveShard": "b" }).await.unwrap();
    let coordinates = |name: &'static str, n: i64| c.shards.coordinated.lock().insert(name, n);
    coordinates("transaction_coordinators", 2);
    let pending = c.run(doc! { "_configsvrRemoveShard": "b" }).await.unwrap();
    assert_eq!(pending.get_str("state"), Some("pendingDataCleanup"));
    assert_eq!(pending.get_i64("pendingOperations"), Some(2));
    let status = c.run(doc! { "_configsvrShardDrainingStatus": "b" }).await.unwrap();
    assert_eq!(status.get_str("state"), Some("pendingDataCleanup"));
    let early = c.run(doc! { "_configsvrCommitShardRemoval": "b" }).await;
    assert_eq!(code(early), codes::REMOVE_SHARD_DRAINING_IN_PROGRESS);
    // Nor does it go while nobody knows.
    c.shards.refuse.lock().insert("count".to_string(), err!(HOST_UNREACHABLE, "b is down"));
    assert_eq!(code(c.run(doc! { "_configsvrRemoveShard": "b" }).await), codes::HOST_UNREACHABLE);
    c.shards.refuse.lock().clear();
    coordinates("transaction_coordinators", 0);
    coordinates("migrationCoordinators", 1);
    let pending = c.run(doc! { "_configsvrRemoveShard": "b" }).await.unwrap();
    assert_eq!(pending.get_i64("pendingOperations"), Some(1));
    coordinates("migrationCoordinators", 0);
    let done = c.run(doc! { "_configsvrRemoveShard": "b" }).await.unwrap();
    assert_eq!(done.get_str("state"), Some("completed"));
}

#[tokio::test]
async fn zones_take_ranges_that_do_not_overlap() {
    let c = Cluster::sharded().await;
    let range = |min: i32, max: i32, zone: Value| {
        doc! { "_configsvrUpdateZoneKeyRange": "d.c", "min": { "x": min }, "max": { "x": max }, "zone": zone }
    };
    assert_eq!(code(c.run(range(0, 10, "z".into())).await), codes::ZONE_NOT_FOUND);
    c.run(doc! { "_configsvrAddShardToZone": "b", "zone": "z" }).await.unwrap();
    c.run(range(0, 10, "z".into())).await.unwrap();
    assert_eq!(code(c.run(range(5, 15, "z".into())).await), codes::RANGE_OVERLAP_CONFLICT);
    let wrong =
        doc! { "_configsvrUpdateZoneKeyRange": "d.c", "min": { "y": 0 }, "max": { "y": 1 }, "zone": "z" };
    assert_eq!(code(c.run(wrong).await), codes::SHARD_KEY_NOT_FOUND);
    let leave = doc! { "_configsvrRemoveShardFromZone": "b", "zone": "z" };
    assert_eq!(code(c.run(leave.clone()).await), codes::ZONE_STILL_IN_USE);
    c.run(range(0, 10, Value::Null)).await.unwrap();
    c.run(leave).await.unwrap();
}

#[tokio::test]
async fn a_range_that_is_where_it_shall_go_is_not_moved_and_another_is_sent_to_its_donor() {
    let c = Cluster::sharded().await;
    let go = |to: &str, min: Document| doc! { "_configsvrMoveRange": "d.c", "toShard": to, "min": min };
    c.run(go("a", doc! { "x": 5 })).await.unwrap();
    assert!(!c.shards.got.lock().iter().any(|d| d.contains_key("_shardsvrMoveRange")));
    c.run(go("b", doc! { "x": 5 })).await.unwrap();
    let sent = c.shards.got.lock().last().cloned().unwrap();
    assert_eq!(sent.get_str("_shardsvrMoveRange"), Some("d.c"));
    assert_eq!(sent.get_str("fromShard"), Some("a"));
    assert_eq!(sent.get_i64("maxChunkSizeBytes"), Some(128 << 20));
    assert_eq!(code(c.run(go("z", doc! { "x": 5 })).await), codes::SHARD_NOT_FOUND);
    assert_eq!(code(c.run(go("b", doc! { "y": 5 })).await), codes::INVALID_OPTIONS);
    assert_eq!(
        code(c.run(doc! { "_configsvrMoveRange": "d.c", "toShard": "b" }).await),
        codes::INVALID_OPTIONS
    );
    let unsharded = doc! { "_configsvrMoveRange": "d.u", "toShard": "b", "min": { "x": 1 } };
    assert_eq!(code(c.run(unsharded).await), codes::NAMESPACE_NOT_SHARDED);
    c.shards.refuse.lock().insert("_shardsvrMoveRange".into(), document::err!(CHUNK_TOO_BIG, "too big"));
    let min = doc! { "x": Value::MinKey };
    assert_eq!(code(c.run(go("b", min)).await), codes::CHUNK_TOO_BIG);
    assert!(!c.config.catalog().chunks(&c.collection()).unwrap()[0].jumbo, "only the balancer marks");
}

#[tokio::test]
async fn the_balancer_moves_from_the_loaded_shard_and_says_so() {
    let c = Cluster::sharded().await;
    c.config.local.put(SETTINGS, &doc! { "_id": "chunksize", "value": 1 }).await.unwrap();
    let status = doc! { "_configsvrBalancerCollectionStatus": "d.c" };
    let reply = c.run(status.clone()).await.unwrap();
    assert_eq!((reply.get_i64("chunkSize"), reply.get_bool("balancerCompliant")), (Some(1), Some(true)));
    c.shards.sizes.lock().insert("a:1".into(), 3 << 20);
    let reply = c.run(status).await.unwrap();
    assert_eq!(reply.get_str("firstComplianceViolation"), Some("chunksImbalance"));
    c.config.node.failpoints.configure(
        "overrideBalanceRoundInterval",
        node::failpoints::Mode::AlwaysOn,
        doc! { "intervalMs": 5 },
    );
    c.config.start_balancer();
    c.run(doc! { "_configsvrBalancerStart": 1 }).await.unwrap();
    let moved = |c: &Cluster| c.shards.got.lock().iter().any(|d| d.contains_key("_shardsvrMoveRange"));
    for _ in 0..200 {
        if moved(&c) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(moved(&c));
    let noted = |c: &Cluster| c.shards.got.lock().iter().any(|d| d.contains_key("note"));
    assert!(noted(&c), "a migration of the balancer's names its note");
    c.run(doc! { "_configsvrBalancerStop": 1 }).await.unwrap();
    let reply = c.run(doc! { "_configsvrBalancerStatus": 1 }).await.unwrap();
    assert_eq!((reply.get_str("mode"), reply.get_bool("inBalancerRound")), (Some("off"), Some(false)));
    assert!(reply.get_i64("numBalancerRounds").unwrap() > 0);
    let rounds = c.config.local.find(ACTIONLOG, &doc! { "what": "balancer.round" }).unwrap();
    let details = rounds[0].get_document("details").unwrap();
    assert_eq!(details.get_bool("errorOccured"), Some(false));
    assert_eq!(details.get_i64("chunksMoved"), Some(1));
    let count = c.shards.got.lock().len();
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    assert_eq!(c.shards.got.lock().len(), count, "a stopped balancer asks nobody");
}

#[tokio::test]
async fn shards_are_told_not_to_split_until_all_have_replied() {
    let c = Cluster::sharded().await;
    let said = |c: &Cluster| {
        let got = std::mem::take(&mut *c.shards.got.lock());
        let of = |d: &Document| {
            d.contains_key(SetAutoSplit::COMMAND).then(|| SetAutoSplit::read(d).unwrap().sizes.is_some())
        };
        got.iter().filter_map(of).collect::<Vec<bool>>()
    };
    let told = async || {
        c.shards.got.lock().clear();
        c.config.tell_auto_split().await;
        said(&c)
    };
    let set = async |enabled: bool| {
        c.config.local.put(SETTINGS, &doc! { "_id": "autosplit", "enabled": enabled }).await.unwrap();
    };
    let no: Vec<bool> = vec![];
    assert_eq!(told().await, no);
    set(true).await;
    assert_eq!((told().await, told().await), (vec![true, true], vec![true, true]));
    // One that was not reached is told again; so it is when the setting is gone.
    let unreached = err!(INTERNAL_ERROR, "not reached");
    c.shards.refuse.lock().insert("_shardsvrSetAutoSplit".into(), unreached);
    c.config.local.delete(SETTINGS, &doc! { "_id": "autosplit" }).await.unwrap();
    assert_eq!((told().await, told().await), (vec![false, false], vec![false, false]));
    c.shards.refuse.lock().clear();
    assert_eq!((told().await, told().await), (vec![false, false], no.clone()));
    // Off with the balancer and on again with it; but not what a user has switched off.
    let setting = |c: &Cluster| c.config.setting("autosplit").unwrap().get_bool("enabled");
    set(true).await;
    told().await;
    c.run(doc! { "_configsvrBalancerStop": 1 }).await.unwrap();
    assert_eq!((said(&c), setting(&c)), (vec![false, false], Some(false)));
    c.run(doc! { "_configsvrBalancerStart": 1 }).await.unwrap();
    assert_eq!(setting(&c), Some(true));
    c.run(doc! { "_configsvrBalancerStop": 1 }).await.unwrap();
    set(false).await;
    c.run(doc! { "_configsvrBalancerStart": 1 }).await.unwrap();
    assert_eq!(setting(&c), Some(false));
    assert!(c.config.balancer.current_operations().is_empty(), "a command has begun a reign");
}

#[tokio::test]
async fn what_was_committed_is_there_after_a_restart() {
    let files = MemoryFiles::default();
    let shards = Arc::new(Fakes::default());
    let remote = Remote::new(shards.clone(), None);
    let config = ConfigServer::new(open(&files), remote.clone(), Arc::new(Parameters::new()));
    let c = Cluster { config, shards };
    c.run(doc! { "_configsvrAddShard": "a/a:1" }).await.unwrap();
    c.create("d.c", [1; 16]).await.unwrap();
    c.split(Value::MinKey, Value::MaxKey, &[0]).await.unwrap();
    let (before, id) = (c.chunks(), c.config.ensure().await.unwrap());
    let Cluster { config, shards } = c;
    config.node.shutdown();
    drop(config);
    let c = Cluster { config: ConfigServer::new(open(&files), remote, Arc::new(Parameters::new())), shards };
    assert_eq!(c.config.ensure().await.unwrap(), id);
    assert_eq!(c.chunks(), before);
}

/// A kill has come after the catalog's change, before the node has cleared up.
#[tokio::test]
async fn a_config_server_that_is_no_shard_any_more_keeps_its_identity_until_all_else_is_gone() {
    let c = Cluster::sharded().await;
    let identity = doc! { "_id": "shardIdentity", "shardName": "config" };
    let local = &c.config.local;
    local.put("admin.system.version", &identity).await.unwrap();
    for ns in ["d.left", "config.system.sessions"] {
        local.ensure_collection(ns, &[]).await.unwrap();
    }
    local.put("d.only_here", &doc! { "_id": 1 }).await.unwrap();
    let has = |ns: &str| c.config.node.namespaces.slot(ns).read_unchecked().collection.is_some();
    let is_shard =
        || local.find_one("admin.system.version", &doc! { "_id": "shardIdentity" }).unwrap().is_some();
    let to = || c.run(doc! { "_configsvrTransitionToDedicatedConfigServer": 1 });
    assert_eq!(
        c.config.finish_transition().await.unwrap_err().code,
        codes::CONFLICTING_OPERATION_IN_PROGRESS
    );
    let waits = to().await.unwrap();
    assert_eq!(waits.get_str("state"), Some("pendingDataCleanup"));
    assert_eq!(waits.get_array("collectionsUnknown"), Some(&vec![Value::from("d.only_here")]));
    assert!(is_shard() && has("d.left") && has("d.only_here"));
    local.delete("d.only_here", &doc! {}).await.unwrap();
    c.config.finish_transition().await.unwrap();
    assert!(!is_shard());
    assert_eq!([has("d.left"), has("d.only_here"), has("config.system.sessions")], [false; 3]);
    assert_eq!(to().await.unwrap_err().code, codes::SHARD_NOT_FOUND);
}

#[tokio::test]
async fn a_config_server_that_has_begun_something_stays_a_shard_until_it_ends() {
    let c = Cluster::sharded().await;
    let local = &c.config.local;
    let shard = doc! { "_id": "config", "host": "cfg/h:1", "state": 1, "draining": true };
    local.put(SHARDS, &shard).await.unwrap();
    local.put("admin.system.version", &doc! { "_id": "shardIdentity", "shardName": "config" }).await.unwrap();
    let to = || c.run(doc! { "_configsvrTransitionToDedicatedConfigServer": 1 });
    for ns in [
        "config.transaction_coordinators",
        "config.system.sharding_ddl_coordinators",
        "config.collection_critical_sections",
        "config.migrationCoordinators",
        "config.migrationRecipients",
    ] {
        local.put(ns, &doc! { "_id": 1 }).await.unwrap();
        let waits = to().await.unwrap();
        assert_eq!(waits.get_str("state"), Some("pendingDataCleanup"), "{ns}");
        assert_eq!(waits.get_i64("pendingOperations"), Some(1), "{ns}");
        local.delete(ns, &doc! {}).await.unwrap();
    }
    assert_eq!(to().await.unwrap().get_str("state"), Some("completed"));
}

/// The chunks' histories were written, and the versions were not raised.
#[tokio::test]
async fn a_repair_of_histories_that_was_cut_short_raises_versions_when_it_is_repeated() {
    let c = Cluster::sharded().await;
    let before = c.version();
    c.run(doc! { "_configsvrRepairShardedCollectionChunksHistory": "d.c" }).await.unwrap();
    assert!(c.version().placement > before.placement);
}

#[tokio::test]
async fn a_reset_of_the_history_that_is_cut_short_has_left_no_hole() {
    let c = Cluster::sharded().await;
    c.run(doc! { "_configsvrResetPlacementHistory": 1 }).await.unwrap();
    let history = |nss: &str| c.config.local.find(PLACEMENT_HISTORY, &doc! { "nss": nss }).unwrap();
    for cut in 1.. {
        let writes = c.config.history_anew().unwrap();
        // The old mark and the new one are always in one part.
        if cut + 1 > writes.len() {
            break;
        }
        c.config.commit(&writes[..cut + 1]).await.unwrap();
        for owned in ["d", "d.c"] {
            assert!(!history(owned).is_empty(), "{owned} after {cut}");
        }
        assert!(history("").len() >= 2, "after {cut}");
    }
    c.run(doc! { "_configsvrResetPlacementHistory": 1 }).await.unwrap();
    assert_eq!(["", "d", "d.c"].map(|nss| history(nss).len()), [2, 1, 1]);
}

#[tokio::test]
async fn the_time_of_a_reply_is_taken_unless_it_is_too_far_ahead() {
    let c = Cluster::sharded().await;
    let now = (c.config.node.now_ms() / 1000) as u32;
    let hour = 60 * 60;
    let years = 2 * 366 * 24 * hour;
    for (ahead, taken) in [(years, false), (hour, true)] {
        let time = Timestamp::new(now + ahead, 1);
        *c.shards.time.lock() = Some(time);
        c.config.remote.admin(crate::remote::Target::Host("a/a:1"), doc! { "ping": 1 }).await.unwrap();
        assert_eq!(c.config.tick() > time, taken, "{ahead} seconds ahead");
    }
}

#[tokio::test]
async fn a_move_of_a_primary_is_known_as_made_after_the_next() {
    let c = Cluster::sharded().await;
    let version = || c.config.catalog().database("d").unwrap().version.to_document();
    let to = |shard: &str, expected: Document| {
        doc! {
            "_configsvrCommitMovePrimary": "d", "to": shard, "expectedDatabaseVersion": expected,
            "writeConcern": { "w": "majority" },
        }
    };
    let first = to("b", version());
    c.run(first.clone()).await.unwrap();
    c.run(to("a", version())).await.unwrap();
    let there = version();
    c.run(first).await.unwrap();
    assert_eq!((version(), c.config.catalog().database("d").unwrap().primary.as_str()), (there, "a"));
}

#[tokio::test]
async fn a_rename_that_comes_late_leaves_what_has_the_target_since() {
    for replaced in [Some([1; 16]), None] {
        let c = Cluster::sharded().await;
        let (from, to) = ("d.plain".to_string(), "d.c".to_string());
        let late = CommitRename { ns: from, to, source: [5; 16], replaced };
        c.run(doc! { "_configsvrCommitDropCollection": "d.c" }).await.unwrap();
        c.create("d.c", [2; 16]).await.unwrap();
        c.run(late.to_document()).await.unwrap();
        assert_eq!(c.collection().info.uuid, [2; 16]);
        assert_eq!(c.chunks().len(), 1);
    }
}

#[tokio::test]
async fn what_is_found_done_is_confirmed_once_it_is_committed() {
    let c = Cluster::sharded().await;
    // The majority is away.
    c.config.node.replication.commit.set_shared(true);
    let within = std::time::Duration::from_millis(100);
    for done in [
        doc! { "_configsvrAddShard": "a/a:1" },
        doc! { "_configsvrCreateDatabase": "d", "writeConcern": { "w": "majority" } },
        doc! { "_configsvrMoveRange": "d.c", "toShard": "a", "min": { "x": 0 } },
    ] {
        let shown = format!("{done:?}");
        assert!(tokio::time::timeout(within, c.run(done)).await.is_err(), "confirmed: {shown}");
    }
    c.run(doc! { "_configsvrBalancerStatus": 1 }).await.unwrap();
    c.config.node.replication.commit.set_shared(false);
    c.run(doc! { "_configsvrAddShard": "a/a:1" }).await.unwrap();
}

/// What shards were told of cluster parameters, as `{name: fields}`.
fn told(c: &Cluster) -> Vec<Document> {
    let got = c.shards.got.lock();
    got.iter().filter_map(|d| d.get_document("_shardsvrSetClusterParameter").cloned()).collect()
}

#[tokio::test]
async fn a_shard_that_comes_gets_the_parameters_of_the_cluster() {
    let c = Cluster::new();
    let time = c.config.node.cluster_time();
    let limit = doc! { "_id": "defaultMaxTimeMS", "clusterParameterTime": time, "readOperations": 5i64 };
    c.config.set_cluster_parameter(&limit).await.unwrap();
    assert!(told(&c).is_empty());
    c.run(doc! { "_configsvrAddShard": "a/a:1" }).await.unwrap();
    assert_eq!(told(&c), [doc! { "defaultMaxTimeMS": { "readOperations": 5i64 } }]);
    let got = c.shards.got.lock().clone();
    let at = |name: &str| got.iter().position(|d| d.contains_key(name)).unwrap();
    assert!(at("delete") < at("_shardsvrSetClusterParameter"), "what it has set for itself is gone first");
    let sent = &got[at("_shardsvrSetClusterParameter")];
    assert!(sent.get("clusterParameterTime").and_then(Value::as_timestamp) >= Some(time));
}

#[tokio::test]
async fn shards_hear_whether_they_are_several() {
    let c = Cluster::sharded().await;
    let says =
        |several: bool| doc! { (node::cardinality::PARAMETER): { (node::cardinality::FIELD): several } };
    assert_eq!(told(&c), [says(true), says(true)], "each of the two");
    let remove = || c.run(doc! { "_configsvrRemoveShard": "b" });
    for state in ["started", "completed"] {
        assert_eq!(remove().await.unwrap().get_str("state"), Some(state));
    }
    assert_eq!(told(&c)[2..], [says(false)]);
}

#[tokio::test]
async fn a_shard_that_was_not_told_of_a_parameter_is_told_later() {
    let c = Cluster::sharded().await;
    let before = told(&c).len();
    c.shards.refuse.lock().insert("_shardsvrSetClusterParameter".into(), err!(HOST_UNREACHABLE, "silent"));
    let limit = doc! { "_id": "defaultMaxTimeMS", "readOperations": 5i64 };
    assert_eq!(code(c.config.set_cluster_parameter(&limit).await), codes::HOST_UNREACHABLE);
    c.shards.refuse.lock().clear();
    // The next primary.
    let telling = runtime::spawn(c.config.clone().keep_shards_told());
    let wanted = doc! { "defaultMaxTimeMS": { "readOperations": 5i64 } };
    let all_told = async {
        while told(&c)[before..].iter().filter(|d| **d == wanted).count() < 3 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), all_told).await.unwrap();
    telling.abort();
}

#[tokio::test]
async fn what_others_are_asked_is_later_than_all_that_was_done_here() {
    let c = Cluster::new();
    c.config.ensure().await.unwrap();
    let before = c.config.node.cluster_time();
    c.run(doc! { "_configsvrAddShard": "a/a:1" }).await.unwrap();
    let got = c.shards.got.lock();
    let times = got.iter().map(|d| d.get_path("$clusterTime.clusterTime").and_then(Value::as_timestamp));
    assert!(times.clone().count() > 2 && times.into_iter().all(|time| time >= Some(before)), "{got:?}");
}
