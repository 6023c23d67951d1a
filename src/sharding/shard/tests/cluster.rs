//! The cluster that the tests run on.

use super::bound;
use super::lifetime::{self, FOREVER, Gone};
use crate::chunk::Chunk;
use crate::key_pattern::ShardKeyPattern;
use crate::remote::{Remote, Transport};
use crate::router::write::first_error;
use crate::routing::{CatalogCache, Routing};
use crate::shard::commands::{self, Reply};
use crate::shard::{Identity, ShardRole};
use document::{DocBuf, Document, ObjectId, Result, Timestamp, Value, bail, doc, err};
use futures::future::BoxFuture;
use node::local::LocalClient;
use node::operation::{ClientInfo, NO_USER, SessionId};
use node::parameters::Parameters;
use node::{BatchWrite, Node, NodeOptions, Operation, Request};
use parking_lot::Mutex;
use protocol::version::ShardVersion;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use storage::CollectionView;
use storage::files::{CrashMode, SimulatedDisk};
use storage::log::{LogOptions, SyncPolicy};
use tokio::sync::watch;

pub(super) const NS: &str = "d.c";
const UUID: [u8; 16] = [7; 16];

/// How the config server treats the next commit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CommitFault {
    None,
    /// The answer is lost, the commit is not.
    LoseAnswer,
    /// The request is executed only after the donor asked for a bump.
    LoseRequest,
}

pub(super) struct Network {
    nodes: Mutex<BTreeMap<String, (Arc<ShardRole>, watch::Sender<bool>)>>,
    config: LocalClient,
    pub fault: Mutex<CommitFault>,
    late: Mutex<Option<Document>>,
    /// `validAfter` of the last commit.
    pub valid_after: Mutex<Option<Timestamp>>,
    /// A host whose member does not know that it is deposed: what it reads is from before, unless it has to prove that it leads.
    pub deposed: Mutex<Option<&'static str>>,
}

impl Transport for Network {
    fn call<'a>(&'a self, host: &'a str, db: &'a str, command: DocBuf) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move {
            if host == "config:1" {
                return self.config_command(db, &command.to_document()).await.map(|d| d.to_doc_buf());
            }
            let node = self.nodes.lock().get(host).map(|(role, down)| (role.clone(), down.subscribe()));
            let (role, mut down) = node.ok_or_else(|| err!(HOST_UNREACHABLE, "{host} is down"))?;
            if *self.deposed.lock() == Some(host) && command.doc().get("find").is_some() {
                let concern = command.doc().get_document("readConcern");
                if concern.and_then(|c| c.get_str("level")) == Some("linearizable") {
                    bail!(NOT_WRITABLE_PRIMARY, "{host} is deposed")
                }
                return Ok(cursor(db, "none", Vec::new()).to_doc_buf());
            }
            tokio::select! {
                _ = down.wait_for(|down| *down) => Err(err!(HOST_UNREACHABLE, "{host} went down")),
                answer = serve(&role, db, &command) => answer,
            }
        })
    }
}

/// What a dispatcher does with a command.
pub(super) async fn serve(role: &Arc<ShardRole>, db: &str, command: &DocBuf) -> Result<DocBuf> {
    let op = Operation::parse(1, Arc::new(ClientInfo::default()), command.doc())?;
    let request = Request { db, body: command.doc(), sequences: &[] };
    let answer = match request.name() {
        "insert" => node::write::insert::insert(&role.node, &op, request).await.map(Reply::Tree),
        "update" => node::write::update::update(&role.node, &op, request).await.map(Reply::Tree),
        "delete" => node::write::delete::delete(&role.node, &op, request).await.map(Reply::Tree),
        "find" => find(&role.local, db, &command.to_document()).map(Reply::Tree),
        _ => commands::run(role, &op, request).await,
    };
    if let Err(e) = &answer {
        role.on_stale(e).await;
    }
    let mut reply = match answer? {
        Reply::Raw(raw) => return Ok(raw),
        Reply::Tree(tree) => tree,
    };
    role.on_reply(&reply).await;
    // As in a server: what nodes send each other waits itself for what it did.
    if matches!(request.name(), "insert" | "update" | "delete") {
        role.node.acknowledge(&op).await?;
    }
    reply.push("$clusterTime", doc! { "clusterTime": role.node.cluster_time() });
    Ok(reply.to_doc_buf())
}

fn find(local: &LocalClient, db: &str, command: &Document) -> Result<Document> {
    let collection = command.get_str("find").unwrap();
    let filter = command.get_document("filter").cloned().unwrap_or_default();
    let mut found = local.find(&format!("{db}.{collection}"), &filter)?;
    found.sort_by_key(|d| d.get("lastmod").and_then(Value::as_timestamp));
    Ok(cursor(db, collection, found))
}

fn cursor(db: &str, collection: &str, found: Vec<Document>) -> Document {
    doc! { "cursor": { "id": 0i64, "ns": format!("{db}.{collection}"), "firstBatch": found } }
}

impl Network {
    async fn config_command(&self, db: &str, command: &Document) -> Result<Document> {
        match command.first().map(|(name, _)| name).unwrap_or("") {
            "find" => find(&self.config, db, command),
            "insert" => Ok(doc! { "n": 1 }),
            "_configsvrCommitChunkMigration" => match *self.fault.lock() {
                CommitFault::LoseRequest => {
                    *self.late.lock() = Some(command.clone());
                    bail!(HOST_UNREACHABLE, "the request is on its way")
                }
                fault => {
                    let done = self.commit_now(command);
                    if fault == CommitFault::LoseAnswer {
                        bail!(HOST_UNREACHABLE, "the answer is lost")
                    }
                    done
                }
            },
            "_configsvrEnsureChunkVersionIsGreaterThan" => {
                self.bump(command)?;
                // The late request arrives after the bump, and must find that it is too late.
                if let Some(late) = self.late.lock().take() {
                    assert!(self.commit_now(&late).is_err(), "a late commit was executed after the bump");
                }
                Ok(doc! {})
            }
            other => bail!(COMMAND_NOT_FOUND, "{other}"),
        }
    }
    fn chunks(&self) -> Vec<Chunk> {
        let key = key();
        let found = self.config.find("config.chunks", &doc! {}).unwrap();
        let mut chunks: Vec<Chunk> = found.iter().map(|d| Chunk::from_document(d, &key).unwrap()).collect();
        chunks.sort_by(|a, b| a.min_key.cmp(&b.min_key));
        chunks
    }
    fn bump(&self, command: &Document) -> Result<()> {
        let min = key().encode_bound(command.get_document("minKey").unwrap())?;
        let version = ShardVersion::from_document(command.get_document("version").unwrap()).unwrap();
        let chunks = self.chunks();
        let newest = chunks.iter().map(|c| c.version).max().unwrap();
        let mut chunk = chunks.into_iter().find(|c| c.contains(&min)).unwrap();
        if chunk.version <= version.placement {
            chunk.version = Timestamp::new(newest.secs + 1, 0);
            self.write(vec![put(&chunk)]);
        }
        Ok(())
    }
    /// Synchronous, so that concurrent requests cannot interleave.
    fn commit_now(&self, command: &Document) -> Result<Document> {
        let (from, to) = (command.get_str("fromShard").unwrap(), command.get_str("toShard").unwrap());
        *self.valid_after.lock() = command.get("validAfter").and_then(Value::as_timestamp);
        let moved = command.get_document("migratedChunk").unwrap();
        let (min, max) =
            (moved.get_document("min").unwrap().clone(), moved.get_document("max").unwrap().clone());
        let lastmod = ShardVersion::from_document(moved.get_document("lastmod").unwrap()).unwrap();
        let (min_key, max_key) = (key().encode_bound(&min)?, key().encode_bound(&max)?);
        let chunks = self.chunks();
        let newest = chunks.iter().map(|c| c.version).max().unwrap();
        let old = chunks.into_iter().find(|c| c.contains(&min_key)).unwrap();
        if &*old.shard == to {
            return Ok(doc! {});
        }
        if &*old.shard != from || old.version != lastmod.placement || old.max_key < max_key {
            bail!(CONFLICTING_OPERATION_IN_PROGRESS, "chunk version newer than requested");
        }
        let mut minor = 0;
        let mut next = || {
            minor += 1;
            Timestamp::new(newest.secs + 1, minor - 1)
        };
        let mut new = old.clone();
        (new.id, new.min, new.min_key, new.max, new.max_key) =
            (fresh_id(), min.clone(), min_key.clone(), max.clone(), max_key.clone());
        new.shard = to.into();
        new.version = next();
        let mut writes =
            vec![BatchWrite::Delete { ns: "config.chunks".into(), id: old.id.into() }, put(&new)];
        for (lo, lo_key, hi, hi_key) in
            [(&old.min, &old.min_key, &min, &min_key), (&max, &max_key, &old.max, &old.max_key)]
        {
            if lo_key < hi_key {
                let mut rest = old.clone();
                (rest.id, rest.min, rest.min_key) = (fresh_id(), lo.clone(), lo_key.clone());
                (rest.max, rest.max_key, rest.version) = (hi.clone(), hi_key.clone(), next());
                writes.push(put(&rest));
            }
        }
        let control = self.chunks().into_iter().find(|c| &*c.shard == from && c.id != old.id);
        if let (Some(mut control), 2) = (control, writes.len()) {
            control.version = next();
            writes.push(put(&control));
        }
        self.write(writes);
        Ok(doc! {})
    }
    fn write(&self, writes: Vec<BatchWrite>) {
        futures::executor::block_on(self.config.node().commit_batch(&Operation::internal(), &writes))
            .unwrap();
    }
}

fn fresh_id() -> ObjectId {
    let n: [u8; 12] = runtime::random();
    ObjectId(n)
}
pub(super) fn key() -> ShardKeyPattern {
    ShardKeyPattern::parse(&doc! { "x": 1 }).unwrap()
}
fn put(chunk: &Chunk) -> BatchWrite {
    BatchWrite::Put { ns: "config.chunks".into(), doc: chunk.to_document(UUID) }
}

pub(super) struct Cluster {
    pub network: Arc<Network>,
    pub router: Arc<CatalogCache>,
    disks: BTreeMap<String, SimulatedDisk>,
    /// By shard, when the node that runs now has come to its end.
    ends: Mutex<BTreeMap<String, Gone>>,
    next_session: AtomicI64,
    pub delay_secs: i32,
}

impl Cluster {
    /// Shards `a` and `b`; `d.c` sharded on x with one chunk of all on `a`, split at 0 and 1000.
    pub(super) async fn new() -> Arc<Cluster> {
        let (config, _) = open(&SimulatedDisk::new(), "config:1", true);
        let client = LocalClient::new(config);
        for ns in ["shards", "chunks", "collections", "databases"] {
            client.ensure_collection(&format!("config.{ns}"), &[]).await.unwrap();
        }
        for shard in ["a", "b"] {
            client
                .insert("config.shards", &doc! { "_id": shard, "host": format!("{shard}:1") })
                .await
                .unwrap();
        }
        let collection = doc! {
            "_id": NS, "uuid": Value::uuid(UUID), "lastmodEpoch": ObjectId([9; 12]), "timestamp": Timestamp::new(100, 1),
            "key": doc! { "x": 1 }, "unique": false,
        };
        client.insert("config.collections", &collection).await.unwrap();
        let network = Arc::new(Network {
            nodes: Mutex::default(),
            config: client,
            fault: Mutex::new(CommitFault::None),
            late: Mutex::new(None),
            valid_after: Mutex::new(None),
            deposed: Mutex::new(None),
        });
        let edges = [(None, Some(0)), (Some(0), Some(1000)), (Some(1000), None)];
        for (i, (lo, hi)) in edges.iter().enumerate() {
            let d = doc! {
                "_id": fresh_id(), "min": bound(*lo, Value::MinKey), "max": bound(*hi, Value::MaxKey), "shard": "a",
                "lastmod": Timestamp::new(1, i as u32),
            };
            network.write(vec![put(&Chunk::from_document(&d, &key()).unwrap())]);
        }
        let router = CatalogCache::new(Remote::new(network.clone(), Some("config:1")));
        let disks = ["a", "b"].map(|s| (s.to_string(), SimulatedDisk::new())).into();
        let (ends, next_session) = (Mutex::default(), AtomicI64::new(1));
        let cluster = Cluster { network, router, disks, ends, next_session, delay_secs: 0 };
        for shard in ["a", "b"] {
            cluster.start(shard).await;
            let identity = Identity {
                name: shard.into(),
                cluster_id: ObjectId([5; 12]),
                config: "config:1".to_string(),
            };
            cluster.shard(shard).add_shard(identity).await.unwrap();
        }
        let a = cluster.shard("a");
        let slot = a.node.namespaces.slot(NS);
        let meta = storage::CollectionMeta::new(NS, UUID);
        a.node
            .write(&Operation::internal(), &slot, |unit| {
                unit.create_collection(meta, false);
                unit.create_index_now(&doc! { "x": 1 }, &doc! {}).map(|_| ())
            })
            .await
            .unwrap();
        Arc::new(cluster)
    }
    pub(super) fn shard(&self, name: &str) -> Arc<ShardRole> {
        self.network.nodes.lock()[&format!("{name}:1")].0.clone()
    }
    async fn start(&self, shard: &str) {
        let host = format!("{shard}:1");
        let (node, end) = open(&self.disks[shard], &host, false);
        self.ends.lock().insert(shard.to_string(), end);
        let remote = Remote::new(self.network.clone(), None);
        let parameters = Arc::new(Parameters::new());
        parameters.set_at_runtime("orphanCleanupDelaySecs", &Value::Int32(self.delay_secs)).unwrap();
        parameters.set_at_runtime("receiveChunkWaitForRangeDeleterTimeoutMS", &Value::Int32(2000)).unwrap();
        let role = ShardRole::new(node, remote.clone(), CatalogCache::new(remote), parameters);
        role.start().await.unwrap();
        self.network.nodes.lock().insert(host, (role, watch::Sender::new(false)));
    }
    /// Power fails on a shard, and it starts again.
    pub(super) async fn crash(&self, shard: &str) {
        let (role, down) = self.network.nodes.lock().remove(&format!("{shard}:1")).unwrap();
        role.stop();
        down.send_replace(true);
        self.disks[shard].crash(CrashMode::DropUnsynced);
        drop(role);
        let end = self.ends.lock().remove(shard).unwrap();
        end.wait().await;
        self.start(shard).await;
    }

    pub(super) async fn move_range(&self, from: &str, to: &str, min: i32, max: i32) -> Result<()> {
        let command = doc! {
            "_shardsvrMoveRange": NS, "fromShard": from, "toShard": to, "min": doc! { "x": min }, "max": doc! { "x": max },
            "maxChunkSizeBytes": 128i64 << 20, "forceJumbo": 1, "writeConcern": doc! { "w": "majority" },
        };
        let remote = &self.router.remote;
        remote.admin(crate::remote::Target::Shard(from), command).await.map(|_| ())
    }

    pub(super) fn session(&self) -> Client {
        let n = self.next_session.fetch_add(1, Ordering::SeqCst);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&n.to_be_bytes());
        Client { lsid: SessionId::of_client(id, NO_USER).to_document(), number: 0 }
    }

    /// Sends one retryable write to the owner of `x` until it is acknowledged; answers `n`.
    pub(super) async fn write(&self, client: &mut Client, x: i32, mut command: Document) -> Result<i64> {
        client.number += 1;
        command.push("lsid", client.lsid.clone());
        command.push("txnNumber", Value::Int64(client.number));
        command.push("writeConcern", doc! { "w": "majority" });
        let mut last = err!(INTERNAL_ERROR, "never sent");
        for _ in 0..12_000 {
            let table = match self.router.collection(NS).await? {
                Routing::Sharded(t) => t,
                Routing::Unsharded => bail!(INTERNAL_ERROR, "not sharded"),
            };
            let shard = table.find(&table.key.key_of(doc! { "x": x }.to_doc_buf().doc())?).shard.clone();
            let mut sent = command.clone();
            sent.push("shardVersion", table.shard_version(&shard).to_document());
            let target = crate::remote::Target::Shard(&shard);
            let failed = match self.router.remote.run(target, "d", sent.to_doc_buf()).await {
                Ok(reply) => match first_error(reply.doc()) {
                    None => return Ok(reply.doc().get_i64("n").unwrap_or(0)),
                    Some(e) => e,
                },
                Err(e) => e,
            };
            if !self.router.note_stale(&failed) {
                if !failed.is(document::error::NETWORK | document::error::INTERRUPTION)
                    && failed.code != document::codes::LOG_WRITE_FAILED
                {
                    return Err(failed);
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            last = failed;
        }
        Err(last)
    }
    pub(super) async fn insert(&self, client: &mut Client, x: i32) -> Result<i64> {
        let d = doc! { "_id": x, "x": x, "n": 0, "filler": "f".repeat(100) };
        self.write(client, x, doc! { "insert": "c", "documents": vec![d] }).await
    }
    pub(super) async fn increment(&self, client: &mut Client, x: i32) -> Result<i64> {
        let u = doc! { "q": { "_id": x, "x": x }, "u": { "$inc": { "n": 1 } } };
        self.write(client, x, doc! { "update": "c", "updates": vec![u] }).await
    }
    pub(super) async fn delete(&self, client: &mut Client, x: i32) -> Result<i64> {
        let d = doc! { "q": { "_id": x, "x": x }, "limit": 1 };
        self.write(client, x, doc! { "delete": "c", "deletes": vec![d] }).await
    }

    /// Every document that its shard owns, by x; panics when two shards own one.
    pub(super) async fn owned(&self) -> BTreeMap<i32, i64> {
        let routing = self.router.refresh_collection(NS).await.unwrap();
        let table = routing.table().unwrap();
        let mut all = BTreeMap::new();
        for shard in ["a", "b"] {
            for d in self.held(shard) {
                let x = d.get_i64("x").unwrap() as i32;
                if table.owns(shard, &table.key.key_of(d.to_doc_buf().doc()).unwrap()) {
                    let twice = all.insert(x, d.get_i64("n").unwrap());
                    assert!(twice.is_none(), "{x} is there twice");
                }
            }
        }
        all
    }
    /// Every document a shard holds, orphans included.
    pub(super) fn held(&self, shard: &str) -> Vec<Document> {
        let role = self.shard(shard);
        let slot = role.node.namespaces.slot(NS);
        let state = slot.read_unchecked();
        let Some(c) = &state.collection else { return Vec::new() };
        let mut cursor = CollectionView::records(c);
        let mut found = Vec::new();
        while let Some((_, d)) = cursor.next() {
            found.push(d.to_document());
        }
        found
    }
    /// Waits until no shard has a migration or a range deletion left.
    pub(super) async fn settle(&self) {
        for shard in ["a", "b"] {
            let role = self.shard(shard);
            let done = async {
                role.migrations.join().await;
                while !crate::shard::range_deleter::tasks(&role, None).is_empty() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            let waited = tokio::time::timeout(FOREVER, done).await;
            assert!(
                waited.is_ok(),
                "{shard} does not settle: {:?}",
                crate::shard::range_deleter::tasks(&role, None)
            );
        }
    }
}

pub(super) struct Client {
    lsid: Document,
    pub number: i64,
}

pub(super) fn open(disk: &SimulatedDisk, host: &str, in_memory: bool) -> (Arc<Node>, Gone) {
    let log = LogOptions {
        segment_bytes: 1 << 20,
        sync: SyncPolicy::Group { interval: Duration::from_millis(50) },
        in_memory,
        ..LogOptions::default()
    };
    let (clock, end) = lifetime::clock();
    let options = NodeOptions {
        files: Arc::new(disk.clone()),
        dir: "/data".into(),
        log,
        clock,
        replica_set: Some("rs".to_string()),
        host: host.to_string(),
    };
    (Node::open(options).expect("opens").node, end)
}
