//! A set of three members on one machine: majority writes beside plain ones on one node, how far secondaries lag, failover, and copying to a
//! new member.

use crate::Settings;
use crate::points::initiate;
use crate::process::Server;
use crate::timing::{Times, since};
use crate::traffic::{Client, drive, frame, insert_at_rate, write_document};
use document::{Document, Value, doc};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 16;
const ELECTION_TIMEOUT_MS: i64 = 1000;
const KILLS: usize = 30;
const STEP_DOWNS: usize = 30;
/// Inserts a second, and how many at once, behind which the lag is measured.
const RATE: u64 = 40_000;
const BATCH: u64 = 250;
/// How often a secondary is asked for its newest document.
const LOOK: Duration = Duration::from_millis(10);

pub(crate) async fn run(settings: &Settings) {
    println!("## a set of three, {CONNECTIONS} connections");
    majority(settings.seconds).await;
    lag(settings.seconds).await;
    initial_sync(settings.documents as u64 / 5).await;
    step_downs().await;
    kills().await;
}

fn start() -> Server {
    Server::real("mongod", &["--replSet", "rs"])
}

fn configuration(members: &[Server], version: i32) -> Document {
    let member = |(i, s): (usize, &Server)| doc! { "_id": i as i32, "host": s.address() };
    let members: Vec<Document> = members.iter().enumerate().map(member).collect();
    let settings = doc! { "electionTimeoutMillis": ELECTION_TIMEOUT_MS, "heartbeatIntervalMillis": 200 };
    doc! { "_id": "rs", "version": version, "members": members, "settings": settings }
}

async fn state(server: &Server, role: &str) -> bool {
    let mut client = Client::connect(&server.address()).await;
    client.attempt("admin", &doc! { "hello": 1 }).await.get_bool(role).unwrap_or(false)
}

/// The place of the member that takes writes.
async fn primary(members: &[Server]) -> usize {
    loop {
        for (i, member) in members.iter().enumerate() {
            if state(member, "isWritablePrimary").await {
                return i;
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn start_set() -> Vec<Server> {
    let members: Vec<Server> = (0..3).map(|_| start()).collect();
    let mut client = Client::connect(&members[0].address()).await;
    client.run("admin", doc! { "replSetInitiate": configuration(&members, 1) }).await;
    for member in &members {
        while !state(member, "isWritablePrimary").await && !state(member, "secondary").await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    primary(&members).await;
    members
}

async fn majority(time: Duration) {
    let one = start();
    initiate(&one).await;
    let members = start_set().await;
    let first = members[primary(&members).await].address();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let insert = |concern: Value| {
        move |_: u64, out: &mut Vec<u8>| {
            let id = NEXT.fetch_add(1, Ordering::Relaxed);
            *out = frame("bench", |w| {
                w.string("insert", "c");
                w.array_with("documents", |w| w.document_with("0", |w| write_document(w, id)));
                doc! { "writeConcern": { "w": concern.clone() } }.write_fields(w);
            });
        }
    };
    let (mut plain, mut everywhere) = (0.0, 0.0);
    for _ in 0..4 {
        plain += drive(&one.address(), CONNECTIONS, time / 4, insert(1.into())).await.per_second();
        everywhere += drive(&first, CONNECTIONS, time / 4, insert("majority".into())).await.per_second();
    }
    println!(
        "inserts with w: \"majority\": {:.0} % of w: 1 on one node ({:.0} of {:.0} a second)",
        100.0 * everywhere / plain,
        everywhere / 4.0,
        plain / 4.0
    );
    println!("one at a time, w: 1 on one node: {}", one_at_a_time(&one.address(), 1.into()).await);
    let before = work(&members).await;
    println!("one at a time, w: \"majority\": {}", one_at_a_time(&first, "majority".into()).await);
    let after = work(&members).await;
    let each = |before: i64, after: i64| (after - before) as f64 / SINGLE_WRITES as f64;
    println!(
        "for each, on all members together: {:.1} requests, the client's own and heartbeats among them, and {:.1} syncs of the log",
        each(before.requests, after.requests),
        each(before.syncs, after.syncs)
    );
}

/// How many writes are made one at a time.
const SINGLE_WRITES: i64 = 500;

async fn one_at_a_time(address: &str, concern: Value) -> String {
    let mut client = Client::connect(address).await;
    let mut times = Times::default();
    for _ in 0..SINGLE_WRITES {
        let started = Instant::now();
        let insert =
            doc! { "insert": "one", "documents": vec![doc! {}], "writeConcern": { "w": concern.clone() } };
        client.run("bench", insert).await;
        times.add(since(started));
    }
    format!("p50 {:.1} ms, p99 {:.1} ms", times.median(), times.quantile(0.99))
}

/// What all members together have done since they were started.
#[derive(Default)]
struct Work {
    requests: i64,
    /// Of their logs.
    syncs: i64,
}

async fn work(members: &[Server]) -> Work {
    let mut all = Work::default();
    for member in members {
        let status = Client::connect(&member.address()).await.run("admin", doc! { "serverStatus": 1 }).await;
        let counted = |path: &str| status.get_path(path).and_then(Value::as_i64).unwrap_or(0);
        all.requests += counted("network.numRequests");
        all.syncs += counted("wiredTiger.log.log sync operations");
    }
    all
}

/// How old the newest document of a secondary is while documents come at [`RATE`]; on a primary that would be the time between two batches.
async fn lag(time: Duration) {
    let members = start_set().await;
    let at = primary(&members).await;
    let address = members[at].address();
    let origin = Instant::now();
    let writer = tokio::spawn(async move {
        let plain = doc! { "writeConcern": { "w": 1 } };
        insert_at_rate(&address, (RATE, BATCH), origin, time, &plain).await
    });
    let mut lags = Times::default();
    let mut reader = Client::connect(&members[(at + 1) % 3].address()).await;
    let newest = doc! {
        "find": "c", "sort": { "$natural": -1 }, "limit": 1, "$readPreference": { "mode": "secondary" },
    };
    while origin.elapsed() < time {
        let found = reader.run("bench", newest.clone()).await;
        let batch = found.get_document("cursor").and_then(|c| c.get_array("firstBatch"));
        let document = batch.and_then(|b| b.first()).and_then(Value::as_document);
        if let Some(at) = document.and_then(|d| d.get("at")).and_then(Value::as_f64) {
            lags.add(since(origin) - at);
        }
        tokio::time::sleep(LOOK).await;
    }
    let written = writer.await.expect("the writer's connection failed");
    println!(
        "behind {:.0} inserts/s a secondary's newest document is {:.1} ms old in p50, {:.1} ms in p99 ({} looks)",
        written as f64 / time.as_secs_f64(),
        lags.median(),
        lags.quantile(0.99),
        lags.len()
    );
}

async fn initial_sync(documents: u64) {
    let mut members = start_set().await;
    let at = primary(&members).await;
    let mut client = Client::connect(&members[at].address()).await;
    let mut bytes = 0;
    for batch in 0..documents / 1000 {
        let documents = |w: &mut document::DocWriter<'_>| {
            for i in 0..1000 {
                w.with_index(i, |w, name| {
                    w.document_with(name, |w| write_document(w, batch * 1000 + i as u64))
                });
            }
        };
        let insert = frame("bench", |w| {
            w.string("insert", "c");
            w.array_with("documents", documents);
        });
        bytes += insert.len();
        client.call(&insert).await;
    }
    members.push(start());
    let started = Instant::now();
    client.run("admin", doc! { "replSetReconfig": configuration(&members, 2) }).await;
    while !state(&members[3], "secondary").await {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "a new member has {:.0} MB after {seconds:.1} s: {:.0} MB/s",
        bytes as f64 / 1e6,
        bytes as f64 / 1e6 / seconds
    );
}

/// How long until one of the members acknowledges a majority write.
async fn until_written(members: &[Server], started: Instant) -> f64 {
    let insert = doc! { "insert": "c", "documents": vec![doc! {}], "writeConcern": { "w": "majority", "wtimeout": 500 } };
    loop {
        for member in members {
            let mut client = Client::connect(&member.address()).await;
            let reply = client.attempt("bench", &insert).await;
            if reply.get_i64("n") == Some(1) && reply.get("writeConcernError").is_none() {
                return since(started);
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn step_downs() {
    let members = start_set().await;
    let mut times = Times::default();
    for _ in 0..STEP_DOWNS {
        let at = primary(&members).await;
        until_written(&members, Instant::now()).await;
        let mut client = Client::connect(&members[at].address()).await;
        let started = Instant::now();
        client.run("admin", doc! { "replSetStepDown": 6, "secondaryCatchUpPeriodSecs": 5 }).await;
        times.add(until_written(&members, started).await);
    }
    println!(
        "after a step-down writes go on in p50 {:.0} ms, p99 {:.0} ms of {STEP_DOWNS} (goal 200)",
        times.median(),
        times.quantile(0.99)
    );
}

async fn kills() {
    let mut times = Times::default();
    for _ in 0..KILLS {
        let mut members = start_set().await;
        let at = primary(&members).await;
        until_written(&members, Instant::now()).await;
        let started = Instant::now();
        drop(members.remove(at));
        times.add(until_written(&members, started).await);
    }
    println!(
        "after a kill of the primary: p50 {:.0} ms, p99 {:.0} ms of {KILLS} (election timeout {ELECTION_TIMEOUT_MS} ms; goal 500 ms above it)",
        times.median(),
        times.quantile(0.99)
    );
}
