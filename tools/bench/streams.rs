//! Change streams: how far one lags behind writers, what an event costs, and what a thousand idle ones weigh.

use crate::Settings;
use crate::points::initiate;
use crate::process::Server;
use crate::timing::{Times, since};
use crate::traffic::{Client, frame, insert_at_rate};
use document::{Document, Value, array, doc};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Documents a second that the writers aim at, and in one insert.
const RATE: u64 = 50_000;
const BATCH: u64 = 250;
const IDLE: usize = 1000;

pub(crate) async fn run(settings: &Settings) {
    println!("## change streams");
    let node = Server::real("mongod", &["--replSet", "rs"]);
    initiate(&node).await;
    let mut client = Client::connect(&node.address()).await;
    client.run("bench", doc! { "create": "c" }).await;
    lag(&node, settings.seconds).await;
    idle(&node, settings.seconds).await;
}

async fn lag(node: &Server, time: Duration) {
    let origin = Instant::now();
    let before = node.usage().cpu_us;
    let alone = write(node, origin, time).await;
    let alone_cpu = (node.usage().cpu_us - before) / alone as f64;
    let over = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn(read(node.address(), origin, over.clone()));
    let before = node.usage().cpu_us;
    let written = write(node, origin, time).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    over.store(true, Ordering::Relaxed);
    let mut lags = reader.await.expect("the stream's connection failed");
    let cpu = (node.usage().cpu_us - before) / written as f64;
    println!(
        "behind {:.0} inserts/s: lag p50 {:.1} ms, p99 {:.1} ms; {:.1} us of CPU an event above the {alone_cpu:.1} us of its insert; {} of {written} seen",
        written as f64 / time.as_secs_f64(),
        lags.median(),
        lags.quantile(0.99),
        cpu - alone_cpu,
        lags.len()
    );
}

async fn write(node: &Server, origin: Instant, time: Duration) -> u64 {
    insert_at_rate(&node.address(), (RATE, BATCH), origin, time, &doc! {}).await
}

fn open() -> Document {
    doc! { "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": { "batchSize": 0 } }
}

fn cursor_id(reply: &Document) -> i64 {
    reply.get_document("cursor").and_then(|c| c.get_i64("id")).expect("a cursor")
}

/// The lag of every event until it is `over`.
async fn read(address: String, origin: Instant, over: Arc<AtomicBool>) -> Times {
    let mut client = Client::connect(&address).await;
    let id = cursor_id(&client.run("bench", open()).await);
    let mut lags = Times::default();
    while !over.load(Ordering::Relaxed) {
        let more = doc! { "getMore": id, "collection": "c", "maxTimeMS": 100 };
        let reply = client.run("bench", more).await;
        let seen = since(origin);
        let batch = reply.get_document("cursor").and_then(|c| c.get_array("nextBatch"));
        for event in batch.into_iter().flatten().filter_map(Value::as_document) {
            let at = event.get_path("fullDocument.at").and_then(Value::as_f64).expect("an insert");
            lags.add(seen - at);
        }
    }
    lags
}

/// What idle streams weigh, each awaiting its next event on a connection of its own.
async fn idle(node: &Server, time: Duration) {
    let before = node.usage().resident_bytes;
    let mut waiting = Vec::new();
    for n in 0..IDLE {
        let mut client = Client::connect(&node.address()).await;
        let mut stream = open();
        stream.insert("aggregate", format!("idle{n}"));
        let id = cursor_id(&client.run("bench", stream).await);
        let more = doc! { "getMore": id, "collection": format!("idle{n}"), "maxTimeMS": time.as_millis() as i64 * 4 };
        let frame = frame("bench", |w| more.write_fields(w));
        waiting.push(tokio::spawn(async move {
            client.call(&frame).await;
        }));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let weight = (node.usage().resident_bytes.saturating_sub(before)) as f64 / IDLE as f64 / 1024.0;
    let quiet = cpu_share(node, time / 2).await;
    let mut client = Client::connect(&node.address()).await;
    let started = Instant::now();
    let before = node.usage().cpu_us;
    let mut written = 0;
    while started.elapsed() < time / 2 {
        client.run("bench", doc! { "insert": "c", "documents": array![{ "n": written }] }).await;
        written += 1;
    }
    let each = (node.usage().cpu_us - before) / f64::from(written);
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    println!(
        "{IDLE} idle streams: {weight:.1} KiB each with their connections, {quiet:.1} % of a core; {each:.0} us of CPU an insert elsewhere beside them"
    );
}

/// Per cent of a core that the server uses while nothing is asked of it.
async fn cpu_share(node: &Server, time: Duration) -> f64 {
    let before = node.usage().cpu_us;
    tokio::time::sleep(time).await;
    (node.usage().cpu_us - before) / time.as_secs_f64() / 10_000.0
}
