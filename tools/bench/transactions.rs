//! Transactions beside the same round trips without one, across shards beside on one, and what an old snapshot costs.

use crate::Settings;
use crate::points::{Cluster, initiate, load};
use crate::process::Server;
use crate::timing::{Times, since};
use crate::traffic::Client;
use document::{Binary, Document, Value, array, doc};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CLIENTS: u64 = 16;
const WRITES: u64 = 4;
const DOCUMENTS: u64 = 10_000;

/// A logical session of its own.
pub(crate) fn session() -> Document {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut bytes = vec![0xB5; 16];
    bytes[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    doc! { "id": Value::Binary(Binary { subtype: 4, bytes }) }
}

fn increment(collection: &str, id: i64) -> Document {
    doc! { "update": collection, "updates": array![{ "q": { "_id": id }, "u": { "$inc": { "n": 1 } } }] }
}

/// `command` as statement `n` of a transaction; the first begins it.
fn in_transaction(mut command: Document, lsid: &Document, number: i64, n: u64) -> Document {
    command.push("lsid", lsid);
    command.push("txnNumber", number);
    command.push("autocommit", false);
    if n == 0 {
        command.push("startTransaction", true);
    }
    command
}

fn commit(lsid: &Document, number: i64) -> Document {
    in_transaction(doc! { "commitTransaction": 1 }, lsid, number, 1)
}

fn is_ok(reply: &Document) -> bool {
    reply.get("ok").is_some_and(|ok| ok.as_f64() == Some(1.0)) && reply.get("writeErrors").is_none()
}

pub(crate) async fn run(settings: &Settings) {
    println!("## transactions of {WRITES} writes, {CLIENTS} clients");
    let node = Server::real("mongod", &["--replSet", "rs"]);
    initiate(&node).await;
    load(&node.address()).await;
    let (mut plain, mut whole, mut conflicts) = (0.0, 0.0, 0);
    for _ in 0..4 {
        plain += many(&node, settings.seconds / 4, false).await.0;
        let (rate, refused) = many(&node, settings.seconds / 4, true).await;
        whole += rate;
        conflicts += refused;
    }
    println!(
        "one node: {:.0} % of the same round trips as plain writes, the last with j: true ({:.0} of {:.0} a second; goal 60 %); {conflicts} conflicts",
        100.0 * whole / plain,
        whole / 4.0,
        plain / 4.0
    );
    old_snapshot(&node, settings.seconds).await;
    drop(node);
    across_shards().await;
}

/// Groups of writes a second, and how many were given up for a conflict.
async fn many(node: &Server, time: Duration, transactions: bool) -> (f64, u64) {
    let started = Instant::now();
    let mut tasks = Vec::new();
    for client in 0..CLIENTS {
        let address = node.address();
        tasks.push(tokio::spawn(async move {
            let mut client = Group::new(&address, client).await;
            while started.elapsed() < time {
                match transactions {
                    true => client.transaction().await,
                    false => client.plain().await,
                }
            }
            (client.done, client.conflicts)
        }));
    }
    let (mut done, mut conflicts) = (0, 0);
    for task in tasks {
        let (d, c) = task.await.expect("a connection failed");
        done += d;
        conflicts += c;
    }
    (done as f64 / started.elapsed().as_secs_f64(), conflicts)
}

/// A client that writes in groups.
struct Group {
    client: Client,
    lsid: Document,
    number: i64,
    next: u64,
    done: u64,
    conflicts: u64,
}

impl Group {
    async fn new(address: &str, client: u64) -> Group {
        let next = client.wrapping_mul(0x9E37_79B9);
        Group {
            client: Client::connect(address).await,
            lsid: session(),
            number: 0,
            next,
            done: 0,
            conflicts: 0,
        }
    }
    fn id(&mut self) -> i64 {
        self.next = self.next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.next >> 33) as i64 % DOCUMENTS as i64
    }
    async fn plain(&mut self) {
        for n in 0..=WRITES {
            let mut write = increment("c", self.id());
            write.push("writeConcern", doc! { "w": 1, "j": n == WRITES });
            self.client.run("bench", write).await;
        }
        self.done += 1;
    }
    async fn transaction(&mut self) {
        self.number += 1;
        for n in 0..WRITES {
            let write = in_transaction(increment("c", self.id()), &self.lsid, self.number, n);
            if !is_ok(&self.client.attempt("bench", &write).await) {
                self.conflicts += 1;
                return;
            }
        }
        self.client.run("admin", commit(&self.lsid, self.number)).await;
        self.done += 1;
    }
}

/// Updates a second while a transaction's snapshot is held, beside as many seconds without.
async fn old_snapshot(node: &Server, time: Duration) {
    let before = node.usage().resident_bytes;
    let without = many(node, time, false).await.0;
    let mut holder = Client::connect(&node.address()).await;
    let lsid = session();
    let read = doc! { "find": "c", "filter": { "_id": 1 }, "readConcern": { "level": "snapshot" } };
    holder.run("bench", in_transaction(read, &lsid, 1, 0)).await;
    let with = many(node, time, false).await.0;
    let held = node.usage().resident_bytes;
    let again = doc! { "find": "c", "filter": { "_id": 2 } };
    holder.run("bench", in_transaction(again, &lsid, 1, 1)).await;
    holder.run("admin", commit(&lsid, 1)).await;
    println!(
        "beside a snapshot held for {} s: {:.0} % of the updates without (goal 85 %); resident {:.0} MiB, {:.0} before",
        time.as_secs(),
        100.0 * with / without,
        held as f64 / f64::from(1 << 20),
        before as f64 / f64::from(1 << 20)
    );
}

/// The median of transactions of two writes: on one shard, and on two.
async fn across_shards() {
    let cluster = Cluster::start(2).await;
    let mut client = Client::connect(&cluster.router.address()).await;
    client.run("admin", doc! { "enableSharding": "bench", "primaryShard": "s0" }).await;
    client.run("admin", doc! { "shardCollection": "bench.c", "key": { "_id": 1 } }).await;
    load(&cluster.router.address()).await;
    let half = DOCUMENTS as i64 / 2;
    let upper = doc! { "moveRange": "bench.c", "min": { "_id": half }, "toShard": "s1", "forceJumbo": true };
    client.run("admin", upper).await;
    let (mut one, mut two) = (Times::default(), Times::default());
    let lsid = session();
    for n in 0..400_i64 {
        for (offset, times) in [(1, &mut one), (half, &mut two)] {
            let number = 2 * n + i64::from(offset == half);
            let low = n * 7 % (half - 1);
            let started = Instant::now();
            for (i, id) in [low, low + offset].into_iter().enumerate() {
                let write = in_transaction(increment("c", id), &lsid, number, i as u64);
                client.run("bench", write).await;
            }
            let mut last = commit(&lsid, number);
            last.push("writeConcern", doc! { "w": "majority" });
            client.run("admin", last).await;
            times.add(since(started));
        }
    }
    let (single, both) = (one.median(), two.median());
    println!(
        "two writes on two shards: p50 {:.1} times that on one ({both:.2} ms beside {single:.2}, goal 3 times)",
        both / single
    );
}
