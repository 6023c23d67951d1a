//! What other clients notice of pipelines that explode: the tail of a point find, quiet and beside ten of them. What a group costs that
//! spills.

use crate::Settings;
use crate::language;
use crate::points::{find_times, load};
use crate::process::Server;
use crate::timing::{Times, since};
use crate::traffic::Client;
use document::{Document, array, doc};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PIPELINES: usize = 10;
const FINDERS: usize = 4;

pub(crate) async fn run(settings: &Settings) {
    println!("## point finds of {FINDERS} connections beside {PIPELINES} pipelines that explode");
    let node = Server::real("mongod", &[]);
    load(&node.address()).await;
    let mut quiet = finds(&node, settings.seconds).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut exploding = Vec::new();
    for n in 0..PIPELINES {
        let (address, stop) = (node.address(), stop.clone());
        exploding.push(tokio::spawn(async move {
            let mut client = Client::connect(&address).await;
            while !stop.load(Ordering::Relaxed) {
                client.attempt("bench", &explosion(n)).await;
            }
        }));
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut beside = finds(&node, settings.seconds).await;
    stop.store(true, Ordering::Relaxed);
    for task in exploding {
        task.await.expect("a pipeline's connection failed");
    }
    let (before, after) = (quiet.quantile(0.99), beside.quantile(0.99));
    println!(
        "p99 {:.1} times ({after:.2} ms beside {before:.2}, goal 20 times); p50 {:.2} ms beside {:.2}",
        after / before,
        beside.median(),
        quiet.median()
    );
    spilled(settings.documents as u64 * 2).await;
}

/// A group of as many keys as documents, in memory and with room for a sixteenth of them or so, in turn.
async fn spilled(documents: u64) {
    println!("## a group of {documents} keys");
    let node = Server::real("mongod", &[]);
    let mut client = Client::connect(&node.address()).await;
    let key = |n: u64| language::scattered(n, u64::MAX >> 2) as i64;
    language::load(&mut client, "c", documents, |n| doc! { "_id": n as i64, "k": key(n), "v": 1 }).await;
    let (mut whole, mut spilling) = (Times::default(), Times::default());
    for _ in 0..3 {
        for (bytes, times) in [(i32::MAX, &mut whole), (16 << 20, &mut spilling)] {
            let room = doc! { "setParameter": 1, "internalDocumentSourceGroupMaxMemoryBytes": bytes };
            client.run("admin", room).await;
            let stages = array![{ "$group": { "_id": "$k", "n": { "$sum": "$v" } } }, { "$count": "n" }];
            let started = Instant::now();
            client.run("bench", doc! { "aggregate": "c", "pipeline": stages, "cursor": {} }).await;
            times.add(since(started));
        }
    }
    let (whole, spilling) = (whole.median(), spilling.median());
    println!("that spills: {:.1} times ({spilling:.0} ms beside {whole:.0}, goal 3 times)", spilling / whole);
}

/// A pipeline that makes a billion documents, or values, until its time is over.
fn explosion(n: usize) -> Document {
    let range = |name: &str| doc! { "$set": { name: { "$range": [0, 1000] } } };
    let stages = match n % 3 {
        0 => array![
            range("a"),
            { "$unwind": "$a" },
            range("b"),
            { "$unwind": "$b" },
            { "$group": { "_id": { "$add": ["$a", "$b"] } } }
        ],
        1 => {
            array![{ "$lookup": { "from": "c", "pipeline": [{ "$match": { "score": { "$gt": -1 } } }], "as": "all" } }, { "$count": "n" }]
        }
        _ => array![{ "$project": { "sum": { "$reduce": {
            "input": { "$range": [0, 1_000_000] }, "initialValue": 0, "in": { "$add": ["$$value", "$$this"] } } } } }],
    };
    doc! { "aggregate": "c", "pipeline": stages, "cursor": {}, "maxTimeMS": 2000 }
}

/// The times of point finds of several connections.
async fn finds(node: &Server, time: Duration) -> Times {
    let mut tasks = Vec::new();
    for offset in 0..FINDERS as u64 {
        let address = node.address();
        tasks.push(tokio::spawn(async move { find_times(&address, offset * 1_000_000, time).await }));
    }
    let mut all = Times::default();
    for task in tasks {
        all.extend(task.await.expect("a connection failed"));
    }
    all
}
