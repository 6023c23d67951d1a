//! Point operations over 16 connections, on one node and through a router, beside an echo server in the same run.

use crate::Settings;
use crate::process::Server;
use crate::timing::{Times, since};
use crate::traffic::{Client, Rate, drive, frame, write_document};
use document::DocWriter;
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 16;
const DOCUMENTS: u64 = 10_000;

/// A cluster of separate processes: config server, one shard, one router.
pub(crate) struct Cluster {
    pub router: Server,
    pub shards: Vec<Server>,
    _config: Server,
}

impl Cluster {
    pub(crate) async fn start(shards: usize) -> Cluster {
        let config = Server::real("mongod", &["--configsvr", "--replSet", "cfg"]);
        initiate(&config).await;
        let servers: Vec<Server> = (0..shards)
            .map(|i| {
                Server::real(
                    "mongod",
                    &[
                        "--shardsvr",
                        "--replSet",
                        &format!("s{i}"),
                        "--setParameter",
                        "orphanCleanupDelaySecs=0",
                    ],
                )
            })
            .collect();
        for s in &servers {
            initiate(s).await;
        }
        let router = Server::real("mongos", &["--configdb", &format!("cfg/localhost:{}", config.port)]);
        let mut client = Client::connect(&router.address()).await;
        for (i, s) in servers.iter().enumerate() {
            client.command("admin", |w| w.string("addShard", &format!("s{i}/localhost:{}", s.port))).await;
        }
        client.command("admin", |w| w.i32("balancerStop", 1)).await;
        Cluster { router, shards: servers, _config: config }
    }
}

pub(crate) async fn initiate(server: &Server) {
    let mut client = Client::connect(&server.address()).await;
    client.command("admin", |w| w.document_with("replSetInitiate", |_| {})).await;
    loop {
        let hello = client.command("admin", |w| w.i32("hello", 1)).await;
        if hello.get("isWritablePrimary").is_some_and(|v| v.truthy()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn load(address: &str) {
    let mut client = Client::connect(address).await;
    for batch in 0..DOCUMENTS / 1000 {
        let insert = |w: &mut DocWriter<'_>| {
            w.string("insert", "c");
            w.array_with("documents", |w| {
                for i in 0..1000 {
                    w.with_index(i, |w, name| {
                        w.document_with(name, |w| write_document(w, batch * 1000 + i as u64))
                    });
                }
            });
        };
        client.command("bench", insert).await;
    }
}

pub(crate) fn find(n: u64, out: &mut Vec<u8>) {
    *out = frame("bench", |w| {
        w.string("find", "c");
        w.document_with("filter", |w| w.i64("_id", (n.wrapping_mul(7919) % DOCUMENTS) as i64));
        w.i32("limit", 1);
        w.bool("singleBatch", true);
    });
}

/// The times of point finds of one connection, one after the other; `first` numbers the first of them.
pub(crate) async fn find_times(address: &str, first: u64, time: Duration) -> Times {
    let mut client = Client::connect(address).await;
    let (started, mut times, mut frame, mut n) = (Instant::now(), Times::default(), Vec::new(), first);
    while started.elapsed() < time {
        n += 1;
        find(n, &mut frame);
        let asked = Instant::now();
        client.call(&frame).await;
        times.add(since(asked));
    }
    times
}

fn increment(n: u64, out: &mut Vec<u8>) {
    *out = frame("bench", |w| {
        w.string("update", "c");
        w.array_with("updates", |w| {
            w.document_with("0", |w| {
                w.document_with("q", |w| w.i64("_id", (n.wrapping_mul(7919) % DOCUMENTS) as i64));
                w.document_with("u", |w| w.document_with("$inc", |w| w.i32("n", 1)));
            });
        });
        w.document_with("writeConcern", |w| w.i32("w", 1));
    });
}
fn insert_one(n: u64, out: &mut Vec<u8>) {
    *out = frame("bench", |w| {
        w.string("insert", "c");
        w.array_with("documents", |w| w.document_with("0", |w| write_document(w, DOCUMENTS + n)));
        w.document_with("writeConcern", |w| w.i32("w", 1));
    });
}

type Frame = fn(u64, &mut Vec<u8>);

pub(crate) async fn run(settings: &Settings) {
    println!("## point operations, {CONNECTIONS} connections, {} s each", settings.seconds.as_secs());
    let echo = Server::own(&["echo-server"]);
    let node = Server::real("mongod", &[]);
    load(&node.address()).await;
    let cases: [(&str, Frame, [f64; 2]); 3] = [
        ("find by _id", find, [65.0, 35.0]),
        ("$inc by _id", increment, [50.0, 0.0]),
        ("insertOne", insert_one, [55.0, 0.0]),
    ];
    let wanted = |name: &str| name.contains(settings.only.as_str());
    for (name, make, goals) in cases {
        let name = format!("{name}, one node");
        if wanted(&name) {
            compare(&name, &echo, &node, &[&node], make, settings.seconds, goals[0]).await;
        }
    }
    drop(node);
    let cluster = Cluster::start(1).await;
    load(&cluster.router.address()).await;
    for (name, make, goals) in cases {
        let name = format!("{name}, router and shard");
        if !wanted(&name) {
            continue;
        }
        let counted = [&cluster.router, &cluster.shards[0]];
        compare(&name, &echo, &cluster.router, &counted, make, settings.seconds, goals[1]).await;
    }
}

/// Measures echo, server, echo, server, echo: the machine's drift falls on both alike.
async fn compare(
    name: &str,
    echo: &Server,
    target: &Server,
    counted: &[&Server],
    make: Frame,
    time: Duration,
    goal: f64,
) {
    let mut probe = Client::connect(&target.address()).await;
    let mut sample = Vec::new();
    make(u64::MAX / 2, &mut sample);
    let reply_size = probe.call(&sample).await.len() as u32;
    let sized = move |n: u64, out: &mut Vec<u8>| {
        make(n, out);
        out[4..8].copy_from_slice(&reply_size.to_le_bytes());
    };
    let slice = time / 4;
    let (mut echoed, mut served) = (Vec::new(), Vec::new());
    let (mut echo_cpu, mut server_cpu) = (0.0, 0.0);
    let offset = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    for _ in 0..4 {
        let before = echo.usage().cpu_us;
        echoed.push(drive(&echo.address(), CONNECTIONS, slice, sized).await);
        echo_cpu += echo.usage().cpu_us - before;
        let before: f64 = counted.iter().map(|s| s.usage().cpu_us).sum();
        let base = offset.load(std::sync::atomic::Ordering::Relaxed);
        let rate = drive(&target.address(), CONNECTIONS, slice, move |n, out| make(base + n, out)).await;
        offset.fetch_add(rate.requests + 1000, std::sync::atomic::Ordering::Relaxed);
        served.push(rate);
        server_cpu += counted.iter().map(|s| s.usage().cpu_us).sum::<f64>() - before;
    }
    let total = |rates: &[Rate]| {
        let requests: u64 = rates.iter().map(|r| r.requests).sum();
        Rate { requests, seconds: rates.iter().map(|r| r.seconds).sum() }
    };
    let (e, s) = (total(&echoed), total(&served));
    println!(
        "{name}: {:.0} % of echo ({:.0} of {:.0} requests/s){}; CPU {:.1} us a request, echo {:.1} us",
        100.0 * s.per_second() / e.per_second(),
        s.per_second(),
        e.per_second(),
        if goal > 0.0 { format!("; goal {goal:.0} %") } else { String::new() },
        server_cpu / s.requests as f64,
        echo_cpu / e.requests as f64
    );
}
