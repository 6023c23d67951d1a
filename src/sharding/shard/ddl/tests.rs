//! A real config server and two shards in one process, over disks that lose power; and a crash of the coordinator before
//! and after each of its steps.

use super::*;
use crate::config::{self, ConfigServer};
use crate::messages::Message;
use crate::messages::ddl::CommitCreateCollection;
use crate::remote::{Remote, Transport};
use crate::routing::CatalogCache;
use crate::shard::commands::Reply;
use crate::shard::tests::lifetime::{self, FOREVER, Gone};
use document::{DocBuf, Timestamp, codes};
use futures::future::BoxFuture;
use node::failpoints::Mode;
use node::local::LocalClient;
use node::parameters::Parameters;
use node::{Node, NodeOptions};
use parking_lot::Mutex;
use protocol::ddl::{Protocol, protocols};
use protocol::version::ShardVersion;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use storage::files::{CrashMode, SimulatedDisk};
use storage::log::{LogOptions, SyncPolicy};
use tokio::sync::watch;

mod beside;
mod pairs;
mod resharding;
mod standstill;

/// What happens before a host gets a command of a name.
type Hook = Arc<dyn Fn(&str, &str) -> BoxFuture<'static, ()> + Send + Sync>;

#[derive(Default)]
struct Network {
    config: Mutex<Option<Arc<ConfigServer>>>,
    shards: Mutex<BTreeMap<String, (Arc<Ddl>, watch::Sender<bool>)>>,
    /// A command that lies in a socket of this host, unread, once it was sent.
    held: Mutex<Option<(&'static str, &'static str)>>,
    unread: Mutex<Option<(String, DocBuf)>>,
    hook: Mutex<Option<Hook>>,
    /// How many commands the config server got.
    asked: AtomicUsize,
    /// How many of the next commands find it away.
    away: AtomicUsize,
}

impl Transport for Network {
    fn call<'a>(&'a self, host: &'a str, db: &'a str, command: DocBuf) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move {
            let name = command.doc().iter().next().map_or(String::new(), |e| e.name().to_string());
            let held = self.held.lock().take_if(|held| *held == (host, name.as_str())).is_some();
            if held {
                *self.unread.lock() = Some((db.to_string(), command));
                return std::future::pending().await;
            }
            if host == "config:1" {
                let config = self.config.lock().clone().unwrap();
                self.asked.fetch_add(1, Ordering::Relaxed);
                let away = self.away.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
                if away.is_ok() {
                    return Err(err!(HOST_UNREACHABLE, "{host} is down"));
                }
                // Others go on meanwhile, as over a network.
                tokio::task::yield_now().await;
                return serve_config(&config, db, &command).await.map(|d| d.to_doc_buf());
            }
            let hook = self.hook.lock().clone();
            if let Some(hook) = hook {
                hook(host, &name).await;
            }
            let found = self.shards.lock().get(host).map(|(ddl, down)| (ddl.clone(), down.subscribe()));
            let (ddl, mut down) = found.ok_or_else(|| err!(HOST_UNREACHABLE, "{host} is down"))?;
            tokio::select! {
                // Nobody hears what a node says that has lost power.
                biased;
                _ = down.wait_for(|down| *down) => Err(err!(HOST_UNREACHABLE, "{host} went down")),
                answer = serve_shard(&ddl, host, db, &command) => answer,
            }
        })
    }
}

async fn serve_config(config: &Arc<ConfigServer>, db: &str, command: &DocBuf) -> Result<Document> {
    let op = Operation::parse(1, Arc::default(), command.doc())?;
    let request = Request { db, body: command.doc(), sequences: &[] };
    match request.name() {
        "find" => find(&config.local, db, &command.to_document()),
        "insert" => Ok(doc! { "n": 1 }),
        _ => config::commands::run(config, &op, request).await,
    }
}

async fn serve_shard(ddl: &Arc<Ddl>, host: &str, db: &str, command: &DocBuf) -> Result<DocBuf> {
    let op = Operation::parse(1, Arc::default(), command.doc())?;
    let request = Request { db, body: command.doc(), sequences: &[] };
    let name = request.name();
    let answer = match name {
        "hello" => Ok(doc! { "setName": host.split(':').next(), "hosts": [host], "isWritablePrimary": true }),
        "listDatabases" => Ok(doc! { "databases": Vec::<Document>::new() }),
        "find" => find(&ddl.role.local, db, &command.to_document()),
        "insert" => node::write::insert::insert(&ddl.role.node, &op, request).await,
        "update" => node::write::update::update(&ddl.role.node, &op, request).await,
        "delete" => node::write::delete::delete(&ddl.role.node, &op, request).await,
        _ if commands::COMMANDS.contains(&name) => commands::run(ddl, &op, request).await,
        _ => match crate::shard::commands::run(&ddl.role, &op, request).await? {
            Reply::Raw(raw) => return Ok(raw),
            Reply::Tree(tree) => Ok(tree),
        },
    };
    if let Err(e) = &answer {
        ddl.role.on_stale(e).await;
    }
    // As in a server: what nodes send each other waits itself for what it did.
    if matches!(name, "insert" | "update" | "delete") {
        ddl.role.node.acknowledge(&op).await?;
    }
    answer.map(|d| d.to_doc_buf())
}

fn find(local: &LocalClient, db: &str, command: &Document) -> Result<Document> {
    let ns = format!("{db}.{}", command.get_str("find").unwrap());
    let mut found = local.find(&ns, command.get_document("filter").unwrap_or(&Document::new()))?;
    found.sort_by_key(|d| d.get("lastmod").and_then(Value::as_timestamp));
    Ok(doc! { "cursor": { "id": 0i64, "ns": ns, "firstBatch": found } })
}

fn open(disk: &SimulatedDisk, host: &str, sync: bool) -> (Arc<Node>, Gone) {
    let policy = if sync { LogOptions::default().sync } else { SyncPolicy::Never };
    let (clock, end) = lifetime::clock();
    let options = NodeOptions {
        files: Arc::new(disk.clone()),
        dir: "/data".into(),
        log: LogOptions { sync: policy, ..LogOptions::default() },
        clock,
        // Of a set that was never initiated nobody leads; the config server looks at whether it does.
        replica_set: host.split(':').next().filter(|name| *name != "config").map(String::from),
        host: host.to_string(),
    };
    (Node::open(options).unwrap().node, end)
}

struct Cluster {
    network: Arc<Network>,
    disks: BTreeMap<String, SimulatedDisk>,
    /// By shard, when the node that runs now has come to its end.
    ends: Mutex<BTreeMap<String, Gone>>,
}

impl Cluster {
    /// Shards a and b, and the database d with its primary on a.
    async fn new() -> Cluster {
        let network = Arc::new(Network::default());
        let (node, _) = open(&SimulatedDisk::new(), "config:1", false);
        let remote = Remote::new(network.clone(), None);
        *network.config.lock() = Some(ConfigServer::new(node, remote, Arc::new(Parameters::new())));
        let disks = ["a", "b"].map(|s| (s.to_string(), SimulatedDisk::new())).into();
        let cluster = Cluster { network, disks, ends: Mutex::default() };
        for shard in ["a", "b"] {
            cluster.start(shard).await;
            cluster.config(doc! { "_configsvrAddShard": format!("{shard}/{shard}:1") }).await.unwrap();
        }
        cluster.config(doc! { "_configsvrCreateDatabase": "d", "primaryShardId": "a" }).await.unwrap();
        cluster
    }
    async fn start(&self, shard: &str) {
        let host = format!("{shard}:1");
        let (node, end) = open(&self.disks[shard], &host, true);
        self.ends.lock().insert(shard.to_string(), end);
        let remote = Remote::new(self.network.clone(), None);
        let role =
            ShardRole::new(node, remote.clone(), CatalogCache::new(remote), Arc::new(Parameters::new()));
        role.start().await.unwrap();
        let ddl = Ddl::new(role);
        self.network.shards.lock().insert(host, (ddl.clone(), watch::Sender::new(false)));
        ddl.resume().await.unwrap();
    }
    /// Power fails on a shard, and it starts again.
    async fn crash(&self, shard: &str) {
        let (ddl, down) = self.network.shards.lock().remove(&format!("{shard}:1")).unwrap();
        ddl.stop();
        down.send_replace(true);
        self.disks[shard].crash(CrashMode::DropUnsynced);
        drop(ddl);
        let end = self.ends.lock().remove(shard).unwrap();
        end.wait().await;
        self.start(shard).await;
    }
    fn ddl(&self, shard: &str) -> Arc<Ddl> {
        self.network.shards.lock()[&format!("{shard}:1")].0.clone()
    }
    fn catalog(&self) -> Arc<ConfigServer> {
        self.network.config.lock().clone().unwrap()
    }
    async fn config(&self, command: Document) -> Result<Document> {
        serve_config(&self.catalog(), "admin", &command.to_doc_buf()).await
    }
    /// Sends a command to a shard, with the version of the database d as the catalog has it.
    async fn send(&self, shard: &str, db: &str, mut command: Document) -> Result<Document> {
        if let Some(found) = self.catalog().catalog().database("d") {
            command.push("databaseVersion", found.version.to_document());
        }
        let mut last = err!(INTERNAL_ERROR, "never sent");
        for _ in 0..3 {
            let bytes = command.to_doc_buf();
            match self.network.call(&format!("{shard}:1"), db, bytes).await {
                Ok(reply) => return Ok(reply.to_document()),
                // The shard has learned of the database meanwhile.
                Err(e) if e.code == codes::STALE_DB_VERSION => last = e,
                Err(e) => return Err(e),
            }
        }
        Err(last)
    }
    /// Sends a command to a again, as a router does: it may join what is just being undone.
    async fn repeat(&self, db: &str, command: Document) -> Result<Document> {
        for _ in 0..3 {
            match self.send("a", db, command.clone()).await {
                Err(e) if e.is(document::error::RETRIABLE) => {
                    tokio::time::sleep(Duration::from_millis(50)).await
                }
                done => return done,
            }
        }
        self.send("a", db, command).await
    }
    async fn shard_collection(&self, name: &str, key: Document) -> Result<Document> {
        let command = doc! {
            "_shardsvrCreateCollection": name, "shardKey": key, "unique": false, "writeConcern": { "w": "majority" },
        };
        self.send("a", "d", command).await
    }
    fn count(&self, shard: &str, ns: &str) -> Option<usize> {
        let ddl = self.ddl(shard);
        let slot = ddl.role.node.namespaces.slot(ns);
        let state = slot.read_unchecked();
        state.collection.as_ref().map(storage::Collection::len)
    }
    async fn insert(&self, shard: &str, ns: &str, n: i32) {
        for i in 0..n {
            self.ddl(shard).role.local.insert(ns, &doc! { "_id": i, "x": i }).await.unwrap();
        }
    }
    /// Types of what checkMetadataConsistency finds in the whole cluster.
    async fn findings(&self) -> Vec<String> {
        let check = doc! { "_configsvrCheckClusterMetadataConsistency": 1, "checkIndexes": true };
        let mut reply = self.config(check.clone()).await;
        for _ in 0..3 {
            if reply.as_ref().is_err_and(|e| e.code == codes::STALE_DB_VERSION) {
                reply = self.config(check.clone()).await;
            }
        }
        let reply = reply.unwrap();
        let batch = reply.get_path("cursor.firstBatch").and_then(Value::as_array).unwrap();
        batch.iter().map(|f| f.as_document().unwrap().get_str("type").unwrap().to_string()).collect()
    }
    /// Waits until no coordinator is left, and checks that none left anything behind.
    async fn settle(&self) {
        for shard in ["a", "b"] {
            let done = async {
                while !self.ddl(shard).role.local.find(COORDINATORS, &doc! {}).unwrap().is_empty() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(FOREVER, done).await.expect("a coordinator does not end");
            let sections = self.ddl(shard).role.local.find(block::SECTIONS, &doc! {}).unwrap();
            assert!(sections.is_empty(), "{shard} is left in {sections:?}");
        }
    }
}

#[tokio::test]
async fn a_hashed_collection_is_spread_and_a_repeat_changes_nothing() {
    let c = Cluster::new().await;
    let first = c.shard_collection("h", doc! { "x": "hashed" }).await.unwrap();
    let chunks = c.catalog().catalog().chunk_counts(first.get("collectionUUID").unwrap().as_uuid().unwrap());
    assert_eq!(chunks.into_iter().collect::<Vec<_>>(), [("a".to_string(), 1), ("b".to_string(), 1)]);
    assert_eq!((c.count("a", "d.h"), c.count("b", "d.h")), (Some(0), Some(0)));
    let again = c.shard_collection("h", doc! { "x": "hashed" }).await.unwrap();
    assert_eq!(again.get("collectionUUID"), first.get("collectionUUID"));
    let other = c.shard_collection("h", doc! { "x": 1 }).await.unwrap_err();
    assert_eq!(other.code, codes::ALREADY_INITIALIZED);
    c.settle().await;
    assert!(c.findings().await.is_empty());
}

#[tokio::test]
async fn a_move_found_done_is_confirmed_once_it_is_committed() {
    let c = Cluster::new().await;
    let shared = |shared| c.ddl("a").role.node.replication.commit.set_shared(shared);
    let again = || c.send("a", "d", doc! { "_shardsvrMovePrimary": "d", "to": "a" });
    again().await.unwrap();
    // The majority is away.
    shared(true);
    assert!(tokio::time::timeout(Duration::from_millis(100), again()).await.is_err(), "confirmed");
    shared(false);
    again().await.unwrap();
}

/// Its router asks the database's next primary, which has done nothing itself.
#[tokio::test]
async fn what_was_done_before_the_database_moved_is_not_done_again() {
    let c = Cluster::new().await;
    c.insert("a", "d.plain", 3).await;
    c.shard_collection("h", doc! { "x": "hashed" }).await.unwrap();
    let named = |mut command: Document, id: u8| {
        command.push(repeated::REQUEST_ID, Value::uuid([id; 16]));
        command
    };
    let rename = named(doc! { "_shardsvrRenameCollection": "plain", "to": "d.renamed" }, 1);
    let drop = named(doc! { "_shardsvrDropCollection": "h" }, 2);
    c.send("a", "d", rename.clone()).await.unwrap();
    let dropped = c.send("a", "d", drop.clone()).await.unwrap();
    c.send("a", "admin", doc! { "_shardsvrMovePrimary": "d", "to": "b" }).await.unwrap();
    // Somebody has taken the old name since: it is not what was to be renamed.
    c.insert("b", "d.plain", 1).await;
    c.send("b", "d", rename).await.unwrap();
    assert_eq!((c.count("b", "d.renamed"), c.count("b", "d.plain")), (Some(3), Some(1)));
    assert_eq!(c.send("b", "d", drop).await.unwrap(), dropped);
}

#[tokio::test]
async fn outcomes_that_no_change_removes_expire() {
    let c = Cluster::new().await;
    c.insert("a", "d.plain", 1).await;
    let id = Value::uuid([7; 16]);
    let mut rename = doc! { "_shardsvrRenameCollection": "plain", "to": "d.other" };
    rename.push(repeated::REQUEST_ID, id.clone());
    c.send("a", "d", rename).await.unwrap();
    let role = c.ddl("a").role.clone();
    let old = doc! { "_id": Value::uuid([8; 16]), "at": Value::DateTime(0), "reply": {} };
    role.local.insert(repeated::OUTCOMES, &old).await.unwrap();
    node::ttl::pass(&role.node).await;
    let left = role.local.find(repeated::OUTCOMES, &doc! {}).unwrap();
    assert_eq!(left.iter().map(|d| d.get("_id")).collect::<Vec<_>>(), [Some(&id)]);
}

#[tokio::test]
async fn what_cannot_be_sharded_is_refused_and_leaves_nothing() {
    let c = Cluster::new().await;
    c.insert("a", "d.full", 3).await;
    let code = |r: Result<Document>| r.err().map_or(0, |e| e.code);
    assert_eq!(code(c.shard_collection("full", doc! { "x": 1 }).await), codes::INVALID_OPTIONS);
    assert_eq!(code(c.shard_collection("new", doc! {}).await), codes::INVALID_OPTIONS);
    assert_eq!(code(c.shard_collection("new", doc! { "x": -1 }).await), codes::BAD_VALUE);
    assert_eq!(code(c.shard_collection("system.x", doc! { "x": 1 }).await), codes::ILLEGAL_OPERATION);
    let unique = doc! { "_shardsvrCreateCollection": "new", "shardKey": { "x": "hashed" }, "unique": true };
    assert_eq!(code(c.send("a", "d", unique).await), codes::INVALID_OPTIONS);
    // Sharding by _id needs no other index.
    c.shard_collection("full", doc! { "_id": 1 }).await.unwrap();
    assert_eq!(c.count("b", "d.new"), None);
    c.settle().await;
}

#[tokio::test]
async fn a_unique_index_that_does_not_begin_with_the_key_refuses_it() {
    let c = Cluster::new().await;
    c.ddl("a")
        .role
        .local
        .ensure_collection("d.u", &[(doc! { "y": 1 }, doc! { "unique": true })])
        .await
        .unwrap();
    let e = c.shard_collection("u", doc! { "x": 1 }).await.unwrap_err();
    assert_eq!(e.code, codes::INVALID_OPTIONS);
    assert!(e.message.contains("Uniqueness can't be maintained"), "{}", e.message);
    c.shard_collection("u", doc! { "y": 1 }).await.unwrap();
}

#[tokio::test]
async fn a_time_series_is_not_sharded_by_what_it_was_before_its_names_were_locked() {
    let c = Cluster::new().await;
    let (ddl, op) = (c.ddl("a"), Operation::internal());
    let node = &ddl.role.node;
    let options = doc! { "timeseries": { "timeField": "t", "metaField": "m" } };
    node::timeseries::ddl::create(node, &op, "d.s", options).await.unwrap();
    let ask = doc! { "_shardsvrCreateCollection": "s", "shardKey": { "m": 1 } };
    let (buckets, request) = ddl.series_request(&op, "d.s", &ask).await.unwrap().unwrap();
    ddl.check_buckets(&buckets, &request).unwrap();
    let wider = doc! { "collMod": "s", "timeseries": { "granularity": "hours" } }.to_doc_buf();
    let wider = Request { db: "d", body: wider.doc(), sequences: &[] };
    node::ddl::coll_mod::coll_mod(node, &op, wider).await.unwrap();
    let refused = ddl.check_buckets(&buckets, &request).unwrap_err();
    assert_eq!(refused.code, codes::CONFLICTING_OPERATION_IN_PROGRESS);
}

#[tokio::test]
async fn a_commit_that_is_refused_is_undone_and_frees_the_names() {
    let c = Cluster::new().await;
    // The catalog learns of a namesake behind the coordinator's back.
    let points = &c.ddl("a").role.node.failpoints;
    points.configure("hangDdlCoordinatorBeforeRunning_commitOnShardingCatalog", Mode::AlwaysOn, doc! {});
    let running = c.shard_collection("c", doc! { "x": "hashed" });
    let interfere = async {
        points.wait_entered("hangDdlCoordinatorBeforeRunning_commitOnShardingCatalog", 1).await;
        c.config(CommitCreateCollection::whole("d.c", [9; 16], "b").to_document()).await.unwrap();
        points.configure("hangDdlCoordinatorBeforeRunning_commitOnShardingCatalog", Mode::Off, doc! {});
    };
    let (outcome, ()) = tokio::join!(running, interfere);
    assert_eq!(outcome.unwrap_err().code, codes::ALREADY_INITIALIZED);
    c.settle().await;
    assert_eq!((c.count("a", "d.c"), c.count("b", "d.c")), (None, None), "what was made for it is gone");
}

/// A shard that holds nothing by the catalog may be removed while a collection is made or a database brought there.
#[tokio::test]
async fn what_was_begun_on_a_shard_that_is_removed_is_undone() {
    for (command, db, step) in [
        (
            doc! { "_shardsvrCreateCollection": "h", "shardKey": { "x": "hashed" } },
            "d",
            "commitOnShardingCatalog",
        ),
        (doc! { "_shardsvrMovePrimary": "d", "to": "b" }, "admin", "commit"),
    ] {
        let c = Cluster::new().await;
        c.insert("a", "d.plain", 3).await;
        let (role, point) = (c.ddl("a").role.clone(), format!("hangDdlCoordinatorBeforeRunning_{step}"));
        let points = &role.node.failpoints;
        points.configure(&point, Mode::AlwaysOn, doc! {});
        let removal = async {
            points.wait_entered(&point, 1).await;
            c.catalog().commit(&[config::delete(config::SHARDS, Value::from("b"))]).await.unwrap();
            c.network.shards.lock().remove("b:1");
            role.remote.registry.reload(&role.remote).await.unwrap();
            points.configure(&point, Mode::Off, doc! {});
        };
        let (outcome, ()) = tokio::join!(c.send("a", db, command), removal);
        outcome.unwrap_err();
        let ended = async {
            while !role.local.find(COORDINATORS, &doc! {}).unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(FOREVER, ended).await.expect("what was begun is never undone");
        assert!(role.local.find(block::SECTIONS, &doc! {}).unwrap().is_empty());
        assert_eq!((c.count("a", "d.plain"), c.count("a", "d.h")), (Some(3), None));
    }
}

/// Its copy is from a time when it owned something, and indexes are made on owners and the primary.
#[tokio::test]
async fn a_new_primary_has_the_indexes_that_were_made_while_it_owned_nothing() {
    let c = Cluster::new().await;
    c.shard_collection("c", doc! { "x": 1 }).await.unwrap();
    let uuid = c.catalog().catalog().sharded("d.c").unwrap().info.uuid;
    c.ddl("b").create_here("d.c", uuid, Document::new(), true).await.unwrap();
    let indexes = |shard: &str| {
        let slot = c.ddl(shard).role.node.namespaces.slot("d.c");
        let state = slot.read_unchecked();
        state
            .collection
            .as_ref()
            .unwrap()
            .indexes()
            .iter()
            .map(|i| i.spec().name().to_string())
            .collect::<Vec<_>>()
    };
    assert_ne!(indexes("a"), indexes("b"));
    c.send("a", "admin", doc! { "_shardsvrMovePrimary": "d", "to": "b" }).await.unwrap();
    assert_eq!(indexes("a"), indexes("b"));
}

/// Its router was told nothing, since the primary died.
#[tokio::test]
async fn a_drop_that_is_repeated_drops_nothing_that_has_come_since() {
    let c = Cluster::new().await;
    let drop = |id: u8| {
        let mut command = doc! { "_shardsvrDropCollection": "c" };
        command.push(repeated::REQUEST_ID, Value::uuid([id; 16]));
        c.send("a", "d", command)
    };
    c.insert("a", "d.c", 3).await;
    let dropped = drop(1).await.unwrap();
    assert_eq!(dropped.get_str("ns"), Some("d.c"));
    c.insert("a", "d.c", 1).await;
    assert_eq!(drop(1).await.unwrap(), dropped);
    assert_eq!(c.count("a", "d.c"), Some(1));
    // Sharded by somebody else, it is not what was to be dropped either.
    c.shard_collection("c", doc! { "_id": 1 }).await.unwrap();
    assert_eq!(drop(1).await.unwrap(), dropped);
    assert_eq!(c.count("a", "d.c"), Some(1));
    drop(2).await.unwrap();
    assert_eq!(c.count("a", "d.c"), None);
    c.settle().await;
}

#[tokio::test]
async fn each_fault_of_what_a_shard_holds_is_found_as_itself() {
    let c = Cluster::new().await;
    c.shard_collection("h", doc! { "x": "hashed" }).await.unwrap();
    assert!(c.findings().await.is_empty());
    let local = |shard: &str| c.ddl(shard).role.local.clone();
    let drop_from = async |shard: &str, ns: &str| {
        let node = c.ddl(shard).role.node.clone();
        node::ddl::collections::drop_collection(&node, &Operation::internal(), ns, false).await.unwrap();
    };
    local("b").ensure_collection("d.stray", &[]).await.unwrap();
    assert_eq!(c.findings().await, ["MisplacedCollection"]);
    drop_from("b", "d.stray").await;
    let slot = c.ddl("b").role.node.namespaces.slot("d.h");
    let index = Value::from("x_hashed");
    let node = c.ddl("b").role.node.clone();
    node::ddl::indexes::drop_indexes_named(&node, &Operation::internal(), &slot, &index).await.unwrap();
    assert_eq!(c.findings().await, ["MissingShardKeyIndex", "InconsistentIndex"]);
    let uuid = c.catalog().catalog().sharded("d.h").unwrap().info.uuid;
    let task = doc! { "_id": Value::uuid([3; 16]), "nss": "d.h", "collectionUuid": Value::uuid(uuid) };
    local("b").insert("config.rangeDeletions", &task).await.unwrap();
    let expected = ["MissingShardKeyIndex", "RangeDeletionMissingShardKeyIndex", "InconsistentIndex"];
    assert_eq!(c.findings().await, expected);
    local("b").delete("config.rangeDeletions", &doc! { "nss": "d.h" }).await.unwrap();
    drop_from("b", "d.h").await;
    assert_eq!(c.findings().await, ["MissingLocalCollection"]);
    local("b").ensure_collection("d.h", &[(doc! { "x": "hashed" }, doc! {})]).await.unwrap();
    assert_eq!(c.findings().await, ["CollectionUUIDMismatch"]);
    drop_from("b", "d.h").await;
    drop_from("a", "d.h").await;
    c.catalog().commit(&[config::delete(config::COLLECTIONS, Value::from("d.h"))]).await.unwrap();
    assert!(c.findings().await.is_empty());
    c.catalog().commit(&[config::delete(config::DATABASES, Value::from("d"))]).await.unwrap();
    c.shard_config_only("d.lost").await;
    assert_eq!(c.findings().await, ["HiddenShardedCollection"]);
}

impl Cluster {
    async fn shard_config_only(&self, ns: &str) {
        self.config(CommitCreateCollection::whole(ns, [9; 16], "b").to_document()).await.unwrap();
    }
}

#[tokio::test]
async fn a_section_is_entered_when_an_update_of_many_has_ended() {
    let c = Cluster::new().await;
    let ddl = c.ddl("a");
    for ns in ["d.plain", "d"] {
        let slot = ddl.role.node.namespaces.slot("d.plain");
        let updating = slot.keep_ranges(&Operation::internal()).await.unwrap();
        let reason = doc! { "command": "test", "ns": ns };
        let entering = ddl.set_block(ns, block::BlockType::Writes, &reason);
        tokio::pin!(entering);
        assert!(tokio::time::timeout(Duration::from_millis(100), &mut entering).await.is_err(), "{ns}");
        drop(updating);
        entering.await.unwrap();
        ddl.set_block(ns, block::BlockType::Unblock, &reason).await.unwrap();
    }
}

/// A shard is asked to enter a section and waits for a transaction; it is deposed meanwhile, and leads again when all is over.
#[tokio::test]
async fn a_section_that_was_asked_for_in_a_reign_is_not_entered_after_it() {
    for ns in ["d.plain", "d"] {
        let c = Cluster::new().await;
        let ddl = c.ddl("a");
        let slot = ddl.role.node.namespaces.slot("d.plain");
        let transaction = slot.intent_shared(FOREVER).await.unwrap();
        let (db, name) = split(ns);
        let block = doc! {
            "_shardsvrParticipantBlock": name, "blockType": "ReadsAndWrites", "reason": { "command": "test" },
        };
        let asked = async {
            match name.is_empty() {
                true => {
                    ddl.set_block(ns, block::BlockType::ReadsAndWrites, &doc! { "command": "test" }).await
                }
                false => c.network.call("a:1", db, block.to_doc_buf()).await.map(drop),
            }
        };
        tokio::pin!(asked);
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut asked).await.is_err(), "{ns}");
        ddl.role.node.replication.commit.end_reign();
        ddl.stop();
        drop(transaction);
        assert!(
            asked.await.unwrap_err().is(document::error::NOT_PRIMARY | document::error::INTERRUPTION),
            "{ns}"
        );
        ddl.role.start().await.unwrap();
        ddl.resume().await.unwrap();
        assert!(!ddl.role.in_critical_section("d.plain") && ddl.role.database_section("d").is_none(), "{ns}");
        assert!(ddl.role.local.find(block::SECTIONS, &doc! {}).unwrap().is_empty(), "{ns}");
    }
}

/// Both were under way when the shard lost power: a drop that had blocked the collection, and a migration still cloning.
#[tokio::test]
async fn a_shard_starts_with_a_section_and_an_undecided_migration_of_one_collection() {
    let c = Cluster::new().await;
    c.shard_collection("h", doc! { "x": "hashed" }).await.unwrap();
    let info = c.catalog().catalog().sharded("d.h").unwrap().info;
    let version =
        ShardVersion { epoch: info.epoch, timestamp: info.timestamp, placement: Timestamp::new(1, 0) };
    let coordinator = doc! {
        "_id": Value::uuid([4; 16]), "migrationSessionId": "a_b_1", "lsid": { "id": Value::uuid([5; 16]) },
        "txnNumber": 0i64, "nss": "d.h", "collectionUuid": Value::uuid(info.uuid), "donorShardId": "a",
        "recipientShardId": "b", "range": { "min": { "x": Value::MinKey }, "max": { "x": 0i64 } },
        "preMigrationChunkVersion": version.to_document(), "shardKeyPattern": { "x": "hashed" },
    };
    let local = c.ddl("a").role.local.clone();
    local.insert("config.migrationCoordinators", &coordinator).await.unwrap();
    let reason = doc! { "command": "dropCollection", "ns": "d.h" };
    let section = doc! { "_id": "d.h", "reason": reason.clone(), "blockReads": true };
    local.insert(block::SECTIONS, &section).await.unwrap();
    drop(local);
    c.crash("a").await;
    let undecided = async {
        let ddl = c.ddl("a");
        while !ddl.role.local.find("config.migrationCoordinators", &doc! {}).unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(FOREVER, undecided).await.expect("the migration is decided and forgotten");
    let ddl = c.ddl("a");
    assert!(ddl.role.in_critical_section("d.h"), "the migration has ended the section of the drop");
    ddl.set_block("d.h", block::BlockType::Unblock, &reason).await.unwrap();
    assert!(!ddl.role.in_critical_section("d.h"));
}

/// A coordinator to be interrupted: the state it begins in, the command, and what must be true when it has run.
struct Story {
    protocol: &'static Protocol,
    command: fn() -> (&'static str, Document),
}

impl Story {
    /// The command as a router sends it, however often.
    fn asked(&self) -> (&'static str, Document) {
        let (db, mut command) = (self.command)();
        command.push(repeated::REQUEST_ID, Value::uuid([7; 16]));
        (db, command)
    }
}

const STORIES: &[Story] = &[
    Story {
        protocol: &protocols::CREATE_COLLECTION,
        command: || ("d", doc! { "_shardsvrCreateCollection": "new", "shardKey": { "x": "hashed" } }),
    },
    Story {
        protocol: &protocols::DROP_COLLECTION,
        command: || ("d", doc! { "_shardsvrDropCollection": "h" }),
    },
    Story { protocol: &protocols::DROP_DATABASE, command: || ("d", doc! { "_shardsvrDropDatabase": 1 }) },
    Story {
        protocol: &protocols::RENAME_COLLECTION,
        command: || ("d", doc! { "_shardsvrRenameCollection": "h", "to": "d.h2", "dropTarget": true }),
    },
    Story {
        protocol: &protocols::MOVE_PRIMARY,
        command: || ("admin", doc! { "_shardsvrMovePrimary": "d", "to": "b" }),
    },
    Story {
        protocol: &protocols::REFINE_SHARD_KEY,
        command: || {
            ("d", doc! { "_shardsvrRefineCollectionShardKey": "r", "newShardKey": { "x": 1, "y": 1 } })
        },
    },
    Story {
        protocol: &protocols::RESHARD,
        command: || ("d", doc! { "_shardsvrReshardCollection": "m", "key": { "_id": "hashed" } }),
    },
    Story {
        protocol: &protocols::CREATE_INDEXES,
        command: || {
            let index = doc! { "key": { "y": 1 }, "name": "y_1" };
            ("d", doc! { "_shardsvrCreateIndexes": "h", "indexes": [index] })
        },
    },
    Story {
        protocol: &protocols::UNTRACK,
        command: || ("d", doc! { "_shardsvrUntrackUnsplittableCollection": "t" }),
    },
    Story {
        protocol: &protocols::COLL_MOD,
        command: || {
            let hours = doc! { "timeseries": { "granularity": "hours" }, "isTimeseriesNamespace": true };
            let mut command = doc! { "_shardsvrCollMod": "system.buckets.s" };
            command.0.extend(hours.0);
            ("d", command)
        },
    },
    Story {
        protocol: &protocols::CONVERT_TO_CAPPED,
        command: || ("d", doc! { "_shardsvrConvertToCapped": "t", "size": 100_000 }),
    },
];

/// A resharding of a time series; [`Cluster::happened`] knows that of a collection.
const RESHARD_SERIES: Story = Story {
    protocol: &protocols::RESHARD,
    command: || ("d", doc! { "_shardsvrReshardCollection": "u", "key": { "m": "hashed" } }),
};

/// A drop of a collection that never was sharded, for which zones wait.
const DROP_ZONED: Story = Story {
    protocol: &protocols::DROP_COLLECTION,
    command: || ("d", doc! { "_shardsvrDropCollection": "plain" }),
};

impl Cluster {
    async fn prepare(&self) {
        self.shard_collection("h", doc! { "x": "hashed" }).await.unwrap();
        self.shard_collection("h2", doc! { "x": "hashed" }).await.unwrap();
        self.shard_collection("r", doc! { "x": 1 }).await.unwrap();
        let longer = [(doc! { "x": 1, "y": 1 }, doc! {})];
        self.ddl("a").role.local.ensure_collection("d.r", &longer).await.unwrap();
        self.shard_collection("m", doc! { "x": 1 }).await.unwrap();
        self.insert("a", "d.m", 20).await;
        let tracked =
            doc! { "_shardsvrCreateCollection": "t", "shardKey": { "_id": 1 }, "unsplittable": true };
        self.send("a", "d", tracked).await.unwrap();
        self.insert("a", "d.t", 3).await;
        self.insert("a", "d.plain", 5).await;
        self.shard_series("s", doc! { "m": "hashed", "t": 1 }).await;
        self.shard_series("u", doc! { "m": 1 }).await;
        let measurements: Vec<Document> =
            (0..20).map(|m| doc! { "t": Value::DateTime(60_000), "m": m }).collect();
        let insert = doc! { "insert": "u", "documents": measurements };
        self.network.call("a:1", "d", insert.to_doc_buf()).await.unwrap();
    }
    async fn shard_series(&self, name: &str, key: Document) {
        let command = doc! {
            "_shardsvrCreateCollection": name, "shardKey": key, "timeseries": { "timeField": "t", "metaField": "m" },
        };
        self.send("a", "d", command).await.unwrap();
    }
    /// The granularity of a time series by the catalog, and on each shard.
    fn granularities(&self, buckets: &str) -> Vec<String> {
        let entry = self.catalog().catalog().sharded(buckets).unwrap().document;
        let mut all = vec![entry.get_document(crate::routing::table::SERIES).cloned().unwrap()];
        for shard in ["a", "b"] {
            let (options, _) = self.ddl(shard).definition_of(buckets).unwrap();
            all.push(options.get_document("timeseries").cloned().unwrap());
        }
        all.iter().map(|d| d.get_str("granularity").unwrap().to_string()).collect()
    }
    /// Whether the catalog and the shards are as after the whole of the story.
    fn happened(&self, protocol: &Protocol) -> bool {
        let config = self.catalog();
        let catalog = config.catalog();
        let sharded = |ns: &str| catalog.find_collection(ns).unwrap().is_some();
        let everywhere = |ns: &str| self.count("a", ns).is_some() && self.count("b", ns).is_some();
        let nowhere = |ns: &str| self.count("a", ns).is_none() && self.count("b", ns).is_none();
        match protocol.operation {
            "createCollection_V4" => sharded("d.new") && everywhere("d.new"),
            "dropCollection_V2" => !sharded("d.h") && nowhere("d.h") && everywhere("d.h2"),
            "dropDatabase_V2" => {
                catalog.database("d").is_none()
                    && ["d.h", "d.h2", "d.plain"].iter().all(|ns| !sharded(ns) && nowhere(ns))
            }
            "renameCollection_V2" => {
                !sharded("d.h") && nowhere("d.h") && sharded("d.h2") && everywhere("d.h2")
            }
            "reshardCollection" => {
                let now = catalog.sharded("d.m").unwrap();
                let held = ["a", "b"].map(|s| self.count(s, "d.m").unwrap_or(0));
                assert_eq!(held.iter().sum::<usize>(), 20, "every document is on one shard");
                assert!(now.may_migrate() && !now.document.contains_key("reshardingFields"));
                assert_eq!(catalog.chunk_documents(now.info.uuid).len(), config.all_chunks_of("d.m"));
                assert!(config.local.find(config::RESHARDING_OPERATIONS, &doc! {}).unwrap().is_empty());
                for shard in ["a", "b"] {
                    let all = self.ddl(shard).role.node.namespaces.of_database("d");
                    let copies = all.iter().filter(|s| s.ns.contains("system.resharding"));
                    let left = copies.filter(|s| s.read_unchecked().collection.is_some()).count();
                    assert_eq!((left, self.ddl(shard).role.resharding.current_operations().len()), (0, 0));
                }
                now.info.key == doc! { "_id": "hashed" } && held.iter().all(|n| *n > 0)
            }
            "createIndexes" => {
                assert!(catalog.sharded("d.h").unwrap().may_migrate());
                let has = ["a", "b"].map(|s| self.ddl(s).definition_of("d.h").unwrap().1.len());
                assert_eq!(has[0], has[1], "on both shards or on none");
                has[0] == 3
            }
            "collMod_V3" => {
                assert!(catalog.sharded("d.system.buckets.s").unwrap().may_migrate());
                let all = self.granularities("d.system.buckets.s");
                assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
                all[0] == "hours"
            }
            "convertToCapped" => {
                assert_eq!((self.count("a", "d.t"), self.count("b", "d.t")), (Some(3), None));
                let entry = catalog.find_collection("d.t").unwrap().unwrap();
                let (options, _) = self.ddl("a").definition_of("d.t").unwrap();
                assert_eq!(self.ddl("a").uuid_here("d.t"), Some(entry.info.uuid));
                assert_eq!(catalog.chunk_documents(entry.info.uuid).len(), config.all_chunks_of("d.t"));
                assert!(entry.is_unsplittable() && entry.may_migrate());
                options.get_bool("capped") == Some(true)
            }
            "untrackUnsplittableCollection" => {
                assert_eq!((self.count("a", "d.t"), self.count("b", "d.t")), (Some(3), None));
                !sharded("d.t")
            }
            "refineCollectionShardKey_V2" => {
                let refined = catalog.sharded("d.r").unwrap();
                let whole = catalog.chunks(&refined).unwrap();
                refined.info.key.len() == 2
                    && refined.may_migrate()
                    && whole[0].min == refined.key.global_min()
            }
            _ => {
                catalog.database("d").is_some_and(|d| d.primary == "b")
                    && self.count("b", "d.plain") == Some(5)
                    && self.count("a", "d.plain").is_none()
            }
        }
    }
}

async fn crash_at(story: &Story, point: &str, persisted: bool) {
    let c = Cluster::new().await;
    c.prepare().await;
    let source = c.catalog().catalog().find_collection("d.h").unwrap().map(|s| s.info.uuid);
    let name = format!("hangDdlCoordinatorBefore{point}");
    c.crash_in(story, &name).await;
    // A resharding whose shards have forgotten it while writes waited is given up.
    let given_up = story.protocol.operation == "reshardCollection"
        && ["Running_blockWrites", "Persisting_commit"].contains(&point);
    assert_eq!(c.happened(story.protocol), persisted && !given_up, "{name}");
    assert_eq!(c.findings().await, [""; 0], "{name}");
    if story.protocol.operation == "renameCollection_V2" && persisted {
        assert_eq!(c.catalog().catalog().find_collection("d.h2").unwrap().map(|s| s.info.uuid), source);
    }
    let (db, command) = story.asked();
    let repeated = c.repeat(db, command).await;
    assert!(repeated.is_ok(), "{name}: repeated by its router: {repeated:?}");
    c.settle().await;
    assert!(c.happened(story.protocol), "{name}: repeated");
}

impl Cluster {
    /// Runs a story until the coordinator stands at a fail point, and ends its shard's power there; what was begun has ended then.
    async fn crash_in(&self, story: &Story, name: &str) {
        let ddl = self.ddl("a");
        ddl.role.node.failpoints.configure(name, Mode::AlwaysOn, doc! {});
        let (db, command) = story.asked();
        let reached = async {
            let waited = ddl.role.node.failpoints.wait_entered(name, 1);
            tokio::time::timeout(FOREVER, waited).await.unwrap_or_else(|_| panic!("{name} is not reached"));
        };
        tokio::select! {
            outcome = self.send("a", db, command) => panic!("{name}: ended with {outcome:?}"),
            () = reached => {}
        }
        drop(ddl);
        self.crash("a").await;
        self.settle().await;
    }
}

/// Before a phase runs its document is there; before it is persisted the phase in front of it has run.
async fn crash_everywhere(story: &Story) {
    let first =
        story.protocol.phases.iter().find(|p| p.on_failure != protocol::ddl::OnFailure::Fail).unwrap().name;
    let mut reached_first = false;
    for phase in story.protocol.phases {
        reached_first |= phase.name == first;
        crash_at(story, &format!("Running_{}", phase.name), reached_first).await;
        if reached_first {
            crash_at(story, &format!("Persisting_{}", phase.name), phase.name != first).await;
        }
    }
    crash_at(story, "Persisting_forget", true).await;
}

#[tokio::test]
async fn shard_collection_survives_a_crash_at_every_step() {
    crash_everywhere(&STORIES[0]).await;
}
#[tokio::test]
async fn drop_survives_a_crash_at_every_step() {
    crash_everywhere(&STORIES[1]).await;
}
#[tokio::test]
async fn drop_of_what_never_was_sharded_takes_its_zones_along_over_a_crash_at_every_step() {
    let steps = protocols::DROP_COLLECTION.phases.iter();
    let steps =
        steps.flat_map(|p| [("Persisting", p.name), ("Running", p.name)]).chain([("Persisting", "forget")]);
    for (at, (step, phase)) in steps.enumerate() {
        let c = Cluster::new().await;
        c.insert("a", "d.plain", 5).await;
        c.config(doc! { "_configsvrAddShardToZone": "b", "zone": "z" }).await.unwrap();
        let range = doc! {
            "_configsvrUpdateZoneKeyRange": "d.plain", "min": { "x": 0 }, "max": { "x": 10 }, "zone": "z",
        };
        c.config(range).await.unwrap();
        let left = || (c.count("a", "d.plain"), c.catalog().catalog().zone_ranges("d.plain").len());
        let name = format!("hangDdlCoordinatorBefore{step}_{phase}");
        c.crash_in(&DROP_ZONED, &name).await;
        // Before its first document nothing has begun.
        assert_eq!(left(), if at == 0 { (Some(5), 1) } else { (None, 0) }, "{name}");
        assert_eq!(c.findings().await, [""; 0], "{name}");
        let (db, command) = DROP_ZONED.asked();
        let reply = c.repeat(db, command).await.unwrap();
        assert_eq!(reply.get_str("ns"), Some("d.plain"), "{name}: what the first has done");
        c.settle().await;
        assert_eq!(left(), (None, 0), "{name}: repeated");
    }
}
#[tokio::test]
async fn drop_database_survives_a_crash_at_every_step() {
    crash_everywhere(&STORIES[2]).await;
}
#[tokio::test]
async fn rename_survives_a_crash_at_every_step() {
    crash_everywhere(&STORIES[3]).await;
}
#[tokio::test]
async fn move_primary_survives_a_crash_at_every_step() {
    crash_everywhere(&STORIES[4]).await;
}
#[tokio::test]
async fn refine_survives_a_crash_at_every_step() {
    crash_everywhere(&STORIES[5]).await;
}
#[tokio::test]
async fn reshard_survives_a_crash_at_every_step() {
    crash_everywhere(&STORIES[6]).await;
}
#[tokio::test]
async fn untrack_survives_a_crash_at_every_step() {
    crash_everywhere(&STORIES[8]).await;
}
#[tokio::test]
async fn create_indexes_survives_a_crash_at_every_step() {
    crash_everywhere(&STORIES[7]).await;
}
#[tokio::test]
async fn a_change_of_bucketing_survives_a_crash_at_every_step() {
    crash_everywhere(&STORIES[9]).await;
}
#[tokio::test]
async fn a_conversion_to_capped_survives_a_crash_at_every_step() {
    crash_everywhere(&STORIES[10]).await;
}
#[tokio::test]
async fn reshard_of_a_time_series_survives_a_crash_at_every_step() {
    for phase in protocols::RESHARD.phases {
        let c = Cluster::new().await;
        c.prepare().await;
        let name = format!("hangDdlCoordinatorBeforeRunning_{}", phase.name);
        c.crash_in(&RESHARD_SERIES, &name).await;
        let ns = "d.system.buckets.u";
        let now = c.catalog().catalog().sharded(ns).unwrap();
        let undone = ["checkPreconditions", "blockWrites"].contains(&phase.name);
        assert_eq!(
            now.info.key,
            doc! { "meta": if undone { 1.into() } else { Value::from("hashed") } },
            "{name}"
        );
        assert_eq!(now.info.series.as_ref().map(|s| s.time.as_str()), Some("t"), "{name}");
        let held = ["a", "b"].map(|shard| c.count(shard, ns).unwrap_or(0));
        assert_eq!((held[0] + held[1], held[1] > 0), (20, !undone), "{name}");
        assert_eq!(c.findings().await, [""; 0], "{name}");
    }
}

#[tokio::test]
async fn an_index_that_one_shard_cannot_build_is_on_none() {
    let c = Cluster::new().await;
    c.shard_collection("h", doc! { "x": "hashed" }).await.unwrap();
    for (id, shard) in [(1, "a"), (2, "b"), (3, "b")] {
        c.ddl(shard)
            .role
            .local
            .insert("d.h", &doc! { "_id": id, "geo": if id == 3 { "no" } else { "" } })
            .await
            .unwrap();
    }
    let fails = doc! { "key": { "geo": "2dsphere" }, "name": "geo" };
    let plain = doc! { "key": { "y": 1 }, "name": "y_1" };
    let create = doc! { "_shardsvrCreateIndexes": "h", "indexes": [plain, fails] };
    c.ddl("a").role.local.delete("d.h", &doc! { "_id": 1 }).await.unwrap();
    c.send("a", "d", create).await.unwrap_err();
    c.settle().await;
    assert!(!c.happened(&protocols::CREATE_INDEXES));
    assert!(c.catalog().catalog().sharded("d.h").unwrap().may_migrate());
}

/// The recipient that is not the coordinator's shard loses power before each phase, and after the last.
#[tokio::test]
async fn reshard_survives_a_crash_of_a_recipient_at_every_step() {
    for phase in protocols::RESHARD.phases {
        let c = Cluster::new().await;
        c.prepare().await;
        let name = format!("hangDdlCoordinatorBeforeRunning_{}", phase.name);
        let ddl = c.ddl("a");
        let points = &ddl.role.node.failpoints;
        points.configure(&name, Mode::AlwaysOn, doc! {});
        let (db, command) = (STORIES[6].command)();
        let crash = async {
            points.wait_entered(&name, 1).await;
            c.crash("b").await;
            points.configure(&name, Mode::Off, doc! {});
        };
        let (outcome, ()) = tokio::join!(c.send("a", db, command), crash);
        c.settle().await;
        let given_up = phase.name == "blockWrites";
        assert_eq!(outcome.is_ok(), !given_up, "{name}: {outcome:?}");
        assert_eq!(c.happened(&protocols::RESHARD), !given_up, "{name}");
        assert_eq!(c.findings().await, [""; 0], "{name}");
    }
}

/// The reply to the commit was lost, and what the coordinator tried next has failed for good.
#[tokio::test]
async fn a_resharding_that_was_committed_unknown_to_its_coordinator_is_not_undone() {
    let c = Cluster::new().await;
    c.prepare().await;
    let ddl = c.ddl("a");
    let points = &ddl.role.node.failpoints;
    let name = "hangDdlCoordinatorBeforeRunning_switchCollections";
    points.configure(name, Mode::AlwaysOn, doc! {});
    let (db, command) = (STORIES[6].command)();
    let undone = async {
        points.wait_entered(name, 1).await;
        let state = ddl.role.local.find(COORDINATORS, &doc! {}).unwrap().remove(0);
        coordinator::Coordinator::undo(&reshard::Reshard, &ddl, &state).await.unwrap();
        points.configure(name, Mode::Off, doc! {});
    };
    let (outcome, ()) = tokio::join!(c.send("a", db, command), undone);
    outcome.unwrap();
    c.settle().await;
    assert!(c.happened(&protocols::RESHARD));
    assert_eq!(c.findings().await, [""; 0]);
}

/// It had passed the check of who leads. What it would begin, the next primary does not know of.
#[tokio::test]
async fn a_request_of_the_reign_before_begins_nothing() {
    let c = Cluster::new().await;
    c.shard_collection("h", doc! { "x": "hashed" }).await.unwrap();
    c.ddl("a").stop();
    let refused = c.send("a", "d", doc! { "_shardsvrDropCollection": "h" }).await.unwrap_err();
    assert_eq!(refused.code, codes::INTERRUPTED_AT_SHUTDOWN);
    assert_eq!((c.count("a", "d.h"), c.count("b", "d.h")), (Some(0), Some(0)));
}

/// A shard stands still when writes are to be blocked: the other does not wait for it longer than writes may wait.
#[tokio::test]
async fn a_shard_that_stands_still_does_not_keep_writes_blocked_elsewhere() {
    let c = Cluster::new().await;
    c.prepare().await;
    c.ddl("a")
        .role
        .parameters
        .set_at_runtime("reshardingCriticalSectionTimeoutMillis", &Value::Int32(100))
        .unwrap();
    *c.network.held.lock() = Some(("b:1", "_shardsvrParticipantBlock"));
    let (db, command) = (STORIES[6].command)();
    let refused = c.send("a", db, command).await.unwrap_err();
    assert_eq!(refused.code, codes::RESHARDING_CRITICAL_SECTION_TIMEOUT);
    c.settle().await;
    let (db, late) = c.network.unread.lock().take().unwrap();
    assert_eq!(c.network.call("b:1", &db, late).await.unwrap_err().code, codes::TRANSACTION_TOO_OLD);
    assert!(!c.happened(&protocols::RESHARD));
    assert_eq!(c.findings().await, [""; 0]);
}

/// The database of the target is made by who has the source, and by nobody for one that is not there.
#[tokio::test]
async fn a_rename_into_a_new_database_makes_it_where_the_source_is() {
    let c = Cluster::new().await;
    c.insert("a", "d.plain", 3).await;
    c.config(doc! { "_configsvrCreateDatabase": "there", "primaryShardId": "b" }).await.unwrap();
    let rename = |from: &str, to: &str| doc! { "_shardsvrRenameCollection": from, "to": to };
    let code = |renamed: Result<Document>| renamed.err().map_or(0, |e| e.code);
    assert_eq!(code(c.send("a", "d", rename("none", "new.c")).await), codes::NAMESPACE_NOT_FOUND);
    assert!(c.catalog().catalog().database("new").is_none());
    assert_eq!(code(c.send("a", "d", rename("plain", "there.c")).await), codes::COMMAND_FAILED);
    let before = c.catalog().catalog().database("d").unwrap().version;
    c.send("a", "admin", doc! { "_shardsvrMovePrimary": "d", "to": "b" }).await.unwrap();
    c.settle().await;
    // A router that knows the old primary.
    let mut stale = rename("plain", "new.c");
    stale.push("databaseVersion", before.to_document());
    assert_eq!(
        code(c.network.call("a:1", "d", stale.to_doc_buf()).await.map(|r| r.to_document())),
        codes::STALE_DB_VERSION
    );
    assert!(c.catalog().catalog().database("new").is_none());
    c.send("b", "d", rename("plain", "new.c")).await.unwrap();
    assert_eq!(c.catalog().catalog().database("new").unwrap().primary, "b");
    assert_eq!((c.count("b", "new.c"), c.count("b", "d.plain")), (Some(3), None));
}

/// A shard that does not have its part of the source says so before any shard has given up the target.
#[tokio::test]
async fn a_rename_whose_source_is_missing_where_it_is_owned_changes_nothing() {
    let c = Cluster::new().await;
    c.prepare().await;
    c.insert("b", "d.h2", 3).await;
    let node = c.ddl("b").role.node.clone();
    node::ddl::collections::drop_collection(&node, &Operation::internal(), "d.h", true).await.unwrap();
    let rename = || doc! { "_shardsvrRenameCollection": "h", "to": "d.h2", "dropTarget": true };
    assert_eq!(c.send("a", "d", rename()).await.unwrap_err().code, codes::OPERATION_FAILED);
    c.settle().await;
    assert!(!c.happened(&protocols::RENAME_COLLECTION));
    assert_eq!(
        (c.count("a", "d.h"), c.count("a", "d.h2"), c.count("b", "d.h2")),
        (Some(0), Some(0), Some(3))
    );
    assert!(c.catalog().catalog().sharded("d.h").unwrap().may_migrate());
}

/// A message of the copy that a recipient reads when the resharding was begun anew and has ended.
#[tokio::test]
async fn a_copy_begun_by_an_earlier_run_does_nothing() {
    for held in [
        "_shardsvrReshardPrepare",
        "_shardsvrReshardClone",
        "_shardsvrReshardDrain",
        "_shardsvrReshardSwitch",
    ] {
        let reshard = doc! { "_shardsvrReshardCollection": "c", "key": { "_id": "hashed" } };
        let refused = late_message(held, reshard, async |c| {
            let held = ["a", "b"].map(|s| c.count(s, "d.c").unwrap_or(0));
            assert_eq!(held.iter().sum::<usize>(), 20);
        })
        .await;
        assert_eq!(refused.unwrap_err().code, codes::TRANSACTION_TOO_OLD, "{held}");
    }
}

#[tokio::test]
async fn an_abort_before_the_commit_leaves_everything_as_it_was() {
    let c = Cluster::new().await;
    c.prepare().await;
    let before = c.catalog().catalog().sharded("d.m").unwrap().info;
    let abort = || doc! { "_shardsvrAbortReshardCollection": "m" };
    assert_eq!(c.send("a", "d", abort()).await.unwrap_err().code, codes::NO_SUCH_RESHARD_COLLECTION);
    for phase in ["clone", "blockWrites"] {
        let name = format!("hangDdlCoordinatorBeforeRunning_{phase}");
        let ddl = c.ddl("a");
        let points = &ddl.role.node.failpoints;
        points.configure(&name, Mode::AlwaysOn, doc! {});
        let (db, command) = (STORIES[6].command)();
        let aborted = async {
            points.wait_entered(&name, 1).await;
            let release = async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                points.configure(&name, Mode::Off, doc! {});
            };
            tokio::join!(c.send("a", "d", abort()), release).0
        };
        let (outcome, aborted) = tokio::join!(c.send("a", db, command), aborted);
        aborted.unwrap();
        assert_eq!(outcome.unwrap_err().code, codes::RESHARD_COLLECTION_ABORTED, "{phase}");
        c.settle().await;
        assert!(!c.happened(&protocols::RESHARD));
        let now = c.catalog().catalog().sharded("d.m").unwrap().info;
        assert_eq!((now.uuid, now.timestamp), (before.uuid, before.timestamp));
    }
    // And it can be resharded afterwards.
    let (db, command) = (STORIES[6].command)();
    c.send("a", db, command).await.unwrap();
    c.settle().await;
    assert!(c.happened(&protocols::RESHARD));
}

#[tokio::test]
async fn an_unsharded_collection_moves_and_is_tracked_where_it_is() {
    let c = Cluster::new().await;
    c.insert("a", "d.plain", 5).await;
    let to = |shard: &str| {
        doc! { "_shardsvrReshardCollection": "plain", "provenance": "moveCollection", "toShard": shard }
    };
    c.send("a", "d", to("b")).await.unwrap();
    c.settle().await;
    assert_eq!((c.count("a", "d.plain"), c.count("b", "d.plain")), (Some(0), Some(5)));
    let entry = c.catalog().catalog().collection_document("d.plain").unwrap();
    assert_eq!(
        (entry.get_bool("unsplittable"), entry.get_document("key")),
        (Some(true), Some(&doc! { "_id": 1 }))
    );
    assert_eq!(c.findings().await, [""; 0]);
    let untrack = doc! { "_shardsvrUntrackUnsplittableCollection": "plain" };
    assert_eq!(c.send("a", "d", untrack.clone()).await.unwrap_err().code, codes::OPERATION_FAILED);
    c.send("a", "d", to("a")).await.unwrap();
    c.send("a", "d", untrack).await.unwrap();
    c.settle().await;
    assert_eq!((c.count("a", "d.plain"), c.count("b", "d.plain")), (Some(5), None));
    assert_eq!(c.catalog().catalog().collection_document("d.plain"), None);
    assert_eq!(c.findings().await, [""; 0]);
}

impl ConfigServer {
    /// Chunks of any incarnation, if the collection is the only one with documents of so many chunks.
    fn all_chunks_of(&self, ns: &str) -> usize {
        let others: Vec<[u8; 16]> =
            self.catalog().collections().iter().filter(|c| c.info.ns != ns).map(|c| c.info.uuid).collect();
        let all = self.local.find(config::CHUNKS, &doc! {}).unwrap();
        all.iter().filter(|c| !others.contains(&c.get("uuid").unwrap().as_uuid().unwrap())).count()
    }
}

/// The step of a recipient just before it makes the collection.
const BEFORE_COLLECTION: &str = "migrateThreadHangAtStep1";

impl Cluster {
    async fn move_to(&self, ns: &str, shard: &str) -> Result<Document> {
        let command = doc! {
            "_configsvrMoveRange": ns, "toShard": shard, "min": { "x": Value::MinKey }, "max": { "x": Value::MaxKey },
        };
        self.config(command).await
    }
    /// A collection with 20 documents on a, one chunk.
    async fn prepare_one_chunk(&self) {
        self.shard_collection("c", doc! { "x": 1 }).await.unwrap();
        self.insert("a", "d.c", 20).await;
    }
    /// Moves the collection to b, and runs `command` when the recipient is about to make its collection, which it does after
    /// the command has ended, unless that has stopped it.
    async fn beside_a_migration(&self, command: Document) -> Result<Document> {
        self.prepare_one_chunk().await;
        let points = &self.ddl("b").role.node.failpoints;
        points.configure(BEFORE_COLLECTION, Mode::AlwaysOn, doc! {});
        let change = async {
            points.wait_entered(BEFORE_COLLECTION, 1).await;
            let done = self.send("a", "d", command).await;
            let active = ["a", "b"].map(|shard| self.ddl(shard).role.migrations.status());
            assert_eq!(active, [doc! {}, doc! {}], "it must have ended");
            points.configure(BEFORE_COLLECTION, Mode::Off, doc! {});
            done
        };
        let (moved, done) = tokio::join!(self.move_to("d.c", "b"), change);
        assert!(moved.is_err(), "the migration must give way");
        self.settle().await;
        done
    }
}

#[tokio::test]
async fn a_migration_that_starts_beside_a_drop_brings_nothing_back() {
    let c = Cluster::new().await;
    c.beside_a_migration(doc! { "_shardsvrDropCollection": "c" }).await.unwrap();
    assert_eq!((c.count("a", "d.c"), c.count("b", "d.c")), (None, None));
    c.prepare_one_chunk().await;
    c.move_to("d.c", "b").await.unwrap();
    assert_eq!(c.count("b", "d.c"), Some(20));
    assert_eq!(c.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_migration_that_starts_beside_a_drop_of_its_database_brings_nothing_back() {
    let c = Cluster::new().await;
    c.beside_a_migration(doc! { "_shardsvrDropDatabase": 1 }).await.unwrap();
    assert_eq!((c.count("a", "d.c"), c.count("b", "d.c")), (None, None));
}

#[tokio::test]
async fn a_migration_that_starts_beside_a_rename_leaves_the_old_name_free_and_the_new_one_movable() {
    let c = Cluster::new().await;
    let rename = doc! { "_shardsvrRenameCollection": "c", "to": "d.renamed" };
    c.beside_a_migration(rename).await.unwrap();
    assert_eq!((c.count("a", "d.c"), c.count("b", "d.c")), (None, None));
    assert_eq!(c.count("a", "d.renamed"), Some(20));
    c.move_to("d.renamed", "b").await.unwrap();
    assert_eq!(c.count("b", "d.renamed"), Some(20));
    assert_eq!(c.findings().await, [""; 0]);
}

#[tokio::test]
async fn a_recipient_that_is_told_late_makes_no_collection_the_catalog_does_not_want() {
    let c = Cluster::new().await;
    c.prepare_one_chunk().await;
    let found = c.catalog().catalog().find_collection("d.c").unwrap().unwrap();
    let start = |uuid: [u8; 16]| {
        doc! {
            "_recvChunkStart": "d.c", "uuid": Value::uuid(runtime::random()), "sessionId": format!("a_b_{}", runtime::random::<u32>()),
            "from": "a:1", "fromShardName": "a", "toShardName": "b", "min": { "x": Value::MinKey },
            "max": { "x": Value::MaxKey }, "shardKeyPattern": { "x": 1 },
            "collection": { "uuid": Value::uuid(uuid), "options": {}, "indexes": Vec::<Document>::new() },
        }
    };
    let received = async |start: Document| {
        c.send("b", "admin", start).await.unwrap();
        tokio::time::timeout(FOREVER, c.ddl("b").role.migrations.join()).await.unwrap();
        c.count("b", "d.c")
    };
    assert_eq!(received(start([9; 16])).await, None, "of another incarnation");
    c.config(doc! { "_configsvrSetAllowMigrations": "d.c", "allowMigrations": false }).await.unwrap();
    assert_eq!(received(start(found.info.uuid)).await, None, "while they are forbidden");
    c.config(doc! { "_configsvrSetAllowMigrations": "d.c", "allowMigrations": true }).await.unwrap();
    assert_eq!(received(start(found.info.uuid)).await, Some(0));
}

#[tokio::test]
async fn when_migrations_have_been_forbidden_none_is_under_way() {
    let c = Cluster::new().await;
    c.beside_a_migration(doc! { "_shardsvrSetAllowMigrations": "c", "allowMigrations": false })
        .await
        .unwrap();
    assert_eq!(c.move_to("d.c", "b").await.unwrap_err().code, codes::CONFLICTING_OPERATION_IN_PROGRESS);
    // What an operation on the catalog forbids and allows is not what the user does.
    let coll_mod = doc! { "_shardsvrCollMod": "c", "validationLevel": "off" };
    c.send("a", "d", coll_mod).await.unwrap();
    assert_eq!(c.move_to("d.c", "b").await.unwrap_err().code, codes::CONFLICTING_OPERATION_IN_PROGRESS);
    let allow = doc! { "_shardsvrSetAllowMigrations": "c", "allowMigrations": true };
    c.send("a", "d", allow).await.unwrap();
    c.move_to("d.c", "b").await.unwrap();
}

/// Power fails on the coordinator's shard while a message to b lies unread; when all is over b reads it.
async fn late_message(
    held: &'static str,
    command: Document,
    after: impl AsyncFn(&Cluster),
) -> Result<DocBuf> {
    let c = Cluster::new().await;
    c.prepare_one_chunk().await;
    *c.network.held.lock() = Some(("b:1", held));
    let sent = async {
        while c.network.unread.lock().is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        outcome = c.send("a", "d", command) => panic!("ended with {outcome:?}"),
        () = sent => {}
    }
    c.crash("a").await;
    c.settle().await;
    after(&c).await;
    let (db, late) = c.network.unread.lock().take().unwrap();
    let answer = c.network.call("b:1", &db, late).await;
    c.settle().await;
    assert_eq!(c.findings().await, [""; 0]);
    answer
}

#[tokio::test]
async fn a_section_asked_for_by_an_earlier_run_is_not_entered() {
    let drop = doc! { "_shardsvrDropCollection": "c" };
    let refused = late_message("_shardsvrParticipantBlock", drop, async |_| {}).await.unwrap_err();
    assert_eq!(refused.code, codes::TRANSACTION_TOO_OLD);
}

#[tokio::test]
async fn a_late_drop_of_a_database_leaves_the_one_that_was_made_since() {
    let made_anew = async |c: &Cluster| {
        c.config(doc! { "_configsvrCreateDatabase": "d", "primaryShardId": "b" }).await.unwrap();
        c.insert("b", "d.new", 3).await;
    };
    // Refused or without effect: the checks of `late_message` and this count.
    let c = async |c: &Cluster| {
        made_anew(c).await;
        assert_eq!(c.count("b", "d.new"), Some(3));
    };
    let drop = doc! { "_shardsvrDropDatabase": 1 };
    late_message("_shardsvrDropDatabaseParticipant", drop, c).await.unwrap_err();
}

/// The coordinator's shard dies when the catalog has forgotten the database, and comes back when there is a new one.
#[tokio::test]
async fn a_drop_of_a_database_that_is_taken_up_leaves_the_one_that_was_made_since() {
    let c = Cluster::new().await;
    c.prepare_one_chunk().await;
    let point = "hangDdlCoordinatorBeforePersisting_exitCriticalSection";
    let ddl = c.ddl("a");
    ddl.role.node.failpoints.configure(point, Mode::AlwaysOn, doc! {});
    tokio::select! {
        outcome = c.send("a", "d", doc! { "_shardsvrDropDatabase": 1 }) => panic!("ended with {outcome:?}"),
        () = ddl.role.node.failpoints.wait_entered(point, 1) => {}
    }
    drop(ddl);
    c.config(doc! { "_configsvrCreateDatabase": "d", "primaryShardId": "b" }).await.unwrap();
    c.insert("b", "d.new", 20).await;
    c.crash("a").await;
    c.settle().await;
    assert_eq!(c.count("b", "d.new"), Some(20));
    assert_eq!(c.findings().await, [""; 0]);
}

/// A participant that has looked and is about to drop, while the database comes to be another.
#[tokio::test]
async fn a_participant_drops_what_it_has_listed_and_nothing_newer() {
    let c = Cluster::new().await;
    let version = c.catalog().catalog().database("d").unwrap().version.to_document();
    c.insert("b", "d.old", 1).await;
    let ddl = c.ddl("b");
    let points = &ddl.role.node.failpoints;
    points.configure("hangBeforeDroppingListedCollections", Mode::AlwaysOn, doc! {});
    let participant = doc! { "_shardsvrDropDatabaseParticipant": 1, "dropped": version };
    let meanwhile = async {
        points.wait_entered("hangBeforeDroppingListedCollections", 1).await;
        c.insert("b", "d.new", 2).await;
        points.configure("hangBeforeDroppingListedCollections", Mode::Off, doc! {});
    };
    let (dropped, ()) = tokio::join!(c.send("b", "d", participant), meanwhile);
    dropped.unwrap();
    assert_eq!((c.count("b", "d.old"), c.count("b", "d.new")), (None, Some(2)));
}

#[tokio::test]
async fn a_statement_executed_before_its_database_moved_is_not_executed_again() {
    let c = Cluster::new().await;
    c.insert("a", "d.plain", 3).await;
    c.ddl("a").role.refresh_database("d").await.unwrap();
    let lsid = doc! { "id": Value::uuid([5; 16]) };
    let retryable = |command: Document, number: i64| {
        let mut command = command;
        command.push("lsid", lsid.clone());
        command.push("txnNumber", number);
        command
    };
    let increment = |number: i64| {
        let u = doc! { "q": { "_id": 1 }, "u": { "$inc": { "x": 10 } } };
        retryable(doc! { "update": "plain", "updates": [u] }, number)
    };
    let new = retryable(doc! { "insert": "plain", "documents": [doc! { "_id": 7 }] }, 1);
    c.send("a", "d", new.clone()).await.unwrap();
    let mut other = new.clone();
    other.insert("lsid", doc! { "id": Value::uuid([6; 16]) });
    other.insert("documents", vec![doc! { "_id": 8 }]);
    c.send("a", "d", other.clone()).await.unwrap();
    c.send("a", "d", increment(2)).await.unwrap();
    c.send("a", "admin", doc! { "_shardsvrMovePrimary": "d", "to": "b" }).await.unwrap();
    c.settle().await;
    c.ddl("b").role.refresh_database("d").await.unwrap();
    for again in [increment(2), other] {
        let reply = c.send("b", "d", again).await.unwrap();
        assert_eq!((reply.get_i64("n"), reply.get_array("writeErrors")), (Some(1), None));
    }
    let found = c.ddl("b").role.local.find_one("d.plain", &doc! { "_id": 1 }).unwrap().unwrap();
    assert_eq!(found.get_i64("x"), Some(11));
    assert_eq!(c.count("b", "d.plain"), Some(5));
}

#[tokio::test]
async fn a_database_does_not_come_back_before_its_shard_has_dropped_what_it_gave_away() {
    let c = Cluster::new().await;
    c.insert("a", "d.plain", 3).await;
    let ddl = c.ddl("a");
    let (points, point) = (&ddl.role.node.failpoints, "hangDdlCoordinatorBeforeRunning_clean");
    points.configure(point, Mode::AlwaysOn, doc! {});
    let away = c.send("a", "admin", doc! { "_shardsvrMovePrimary": "d", "to": "b" });
    let back = async {
        points.wait_entered(point, 1).await;
        let back = c.send("b", "admin", doc! { "_shardsvrMovePrimary": "d", "to": "a" });
        let go_on = async {
            while ddl.locks.users("d") < 2 && c.catalog().catalog().database("d").unwrap().primary == "b" {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            points.configure(point, Mode::Off, doc! {});
        };
        tokio::join!(back, go_on).0
    };
    let (away, back) = tokio::join!(away, back);
    away.unwrap();
    back.unwrap();
    c.settle().await;
    assert_eq!((c.count("a", "d.plain"), c.count("b", "d.plain")), (Some(3), None));
}

#[tokio::test]
async fn what_took_the_name_of_a_dropped_time_series_stays() {
    let c = Cluster::new().await;
    let (ddl, op) = (c.ddl("a"), Operation::internal());
    c.insert("a", "d.s", 3).await;
    ddl.drop_view_of("d.s").await.unwrap();
    assert_eq!(c.count("a", "d.s"), Some(3));
    let options = doc! { "timeseries": { "timeField": "t" } };
    node::timeseries::ddl::create(&ddl.role.node, &op, "d.v", options).await.unwrap();
    ddl.drop_view_of("d.v").await.unwrap();
    assert!(ddl.role.node.namespaces.slot("d.v").read_unchecked().view.is_none());
}

#[tokio::test]
async fn a_shard_watches_writes_to_split_chunks_until_it_steps_down() {
    let c = Cluster::new().await;
    let ddl = c.ddl("a");
    let watching = || ddl.role.node.observers.of("d.c").len();
    c.shard_collection("own", doc! { "x": 1 }).await.unwrap();
    c.config(doc! { "_configsvrConfigureCollectionBalancing": "d.own", "chunkSize": 1 }).await.unwrap();
    let on = config::put(config::SETTINGS, doc! { "_id": "autosplit", "enabled": true });
    c.catalog().commit(&[on]).await.unwrap();
    c.catalog().tell_auto_split().await;
    // A collection may have a size of its own.
    let sizes = || (ddl.splits_at("d.own"), ddl.splits_at("d.c"));
    assert_eq!((sizes(), watching()), ((Some(1 << 20), Some(128 << 20)), 1));
    ddl.role.refresh_collection("d.own").await.unwrap();
    c.insert("a", "d.own", 3).await;
    c.catalog().tell_auto_split().await;
    assert_eq!(ddl.chunks_written(), 1);
    c.send("a", "d", doc! { "_shardsvrDropCollection": "own", "writeConcern": { "w": "majority" } })
        .await
        .unwrap();
    c.catalog().tell_auto_split().await;
    assert_eq!(ddl.chunks_written(), 0, "of a collection that is gone");
    ddl.stop();
    assert_eq!((sizes(), watching()), ((None, None), 0));
}

#[tokio::test]
async fn requests_that_wait_for_an_unknown_database_share_one_reading() {
    let c = Cluster::new().await;
    let version = c.catalog().catalog().database("d").unwrap().version;
    let role = c.ddl("a").role.clone();
    role.clear_database("d");
    let info = doc! { "db": "d", "vReceived": version.to_document(), "vWanted": Value::Null };
    let stale = err!(STALE_DB_VERSION, "stale").with_info(info);
    let before = c.network.asked.load(Ordering::Relaxed);
    futures::future::join_all((0..4).map(|_| role.on_stale(&stale))).await;
    assert_eq!(role.database("d").map(|d| d.version), Some(version));
    assert_eq!(c.network.asked.load(Ordering::Relaxed) - before, 1);
}
