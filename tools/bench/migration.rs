//! moveRange of the whole data set under no load, beside a bare loopback copy; and how long the critical section lasts.

use crate::Settings;
use crate::points::Cluster;
use crate::process::Server;
use crate::traffic::{Client, write_document};
use document::DocWriter;
use std::time::Instant;
use tokio::io::AsyncWriteExt;

pub(crate) async fn run(settings: &Settings) {
    println!("## moveRange of {} documents of 1 KB", settings.documents);
    let cluster = Cluster::start(2).await;
    let mut client = Client::connect(&cluster.router.address()).await;
    client.command("admin", |w| w.string("enableSharding", "bench")).await;
    let shard_collection = |w: &mut DocWriter<'_>| {
        w.string("shardCollection", "bench.c");
        w.document_with("key", |w| w.i32("_id", 1));
    };
    client.command("admin", shard_collection).await;
    let mut bytes = 0;
    for batch in 0..settings.documents as u64 / 1000 {
        let reply = client
            .command("bench", |w| {
                let start = w.position();
                w.string("insert", "c");
                w.array_with("documents", |w| {
                    for i in 0..1000 {
                        w.with_index(i, |w, name| {
                            w.document_with(name, |w| write_document(w, batch * 1000 + i as u64))
                        });
                    }
                });
                bytes += w.position() - start;
            })
            .await;
        assert_eq!(reply.get("n").and_then(|n| n.as_i64()), Some(1000));
    }
    let owner = owner(&mut client).await;
    let other = if owner == "s0" { "s1" } else { "s0" };
    let started = Instant::now();
    move_range(&mut client, other, None, None).await;
    let moved = bytes as f64 / started.elapsed().as_secs_f64() / 1e6;
    let copied = loopback(bytes).await;
    println!("{moved:.0} MB/s, a bare loopback copy {copied:.0} MB/s ({:.1} %)", 100.0 * moved / copied);

    let mut times = Vec::new();
    let mut before = critical_section_millis(&cluster).await;
    for i in 0..50 {
        let low = i * 1000;
        let to = if i % 2 == 0 { &owner } else { other };
        move_range(&mut client, to, Some(low), Some(low + 1000)).await;
        let after = critical_section_millis(&cluster).await;
        times.push(after - before);
        before = after;
    }
    times.sort_by(f64::total_cmp);
    println!(
        "critical section over 50 moves of 1,000 documents: p50 {:.0} ms, p99 {:.0} ms",
        times[24], times[49]
    );
}

async fn owner(client: &mut Client) -> String {
    let reply = client.command("config", |w| w.string("find", "chunks")).await;
    let chunk =
        reply.get("cursor").and_then(|c| c.as_document()?.get("firstBatch")?.as_array()?.iter().next());
    let shard = chunk.and_then(|c| c.value().as_document()?.get_str("shard").map(str::to_string));
    shard.expect("a chunk")
}

async fn move_range(client: &mut Client, to: &str, low: Option<i64>, high: Option<i64>) {
    client
        .command("admin", |w| {
            let bound = |w: &mut DocWriter<'_>, name: &str, v: Option<i64>, end: u8| {
                w.document_with(name, |w| match v {
                    Some(v) => w.i64("_id", v),
                    None => w.tag_only(end, "_id"),
                });
            };
            w.string("moveRange", "bench.c");
            w.string("toShard", to);
            bound(w, "min", low, 0xFF);
            bound(w, "max", high, 0x7F);
            w.bool("forceJumbo", true);
            w.bool("waitForDelete", true);
        })
        .await;
}

async fn critical_section_millis(cluster: &Cluster) -> f64 {
    let mut total = 0.0;
    for shard in &cluster.shards {
        let status =
            Client::connect(&shard.address()).await.command("admin", |w| w.i32("serverStatus", 1)).await;
        let section = status
            .get("shardingStatistics")
            .and_then(|s| s.as_document()?.get("totalCriticalSectionTimeMillis"));
        total += section.and_then(|v| v.as_f64()).unwrap_or(0.0);
    }
    total
}

async fn loopback(bytes: usize) -> f64 {
    let sink = Server::own(&["sink-server"]);
    let mut stream = tokio::net::TcpStream::connect(sink.address()).await.expect("connect");
    let block = vec![1u8; 256 * 1024];
    let started = Instant::now();
    let mut sent = 0;
    while sent < bytes {
        stream.write_all(&block).await.expect("send");
        sent += block.len();
    }
    sent as f64 / started.elapsed().as_secs_f64() / 1e6
}
