//! Features of the query language, each beside what the same takes without it.

use crate::Settings;
use crate::process::Server;
use crate::timing::{in_turn, since};
use crate::traffic::Client;
use document::{Document, Regex, Value, array, doc};
use std::time::Instant;

/// Documents a batch of an insert.
const BATCH: u64 = 1000;
const WORDS: u64 = 5000;

/// A number of a sequence that looks random, below `below`.
pub(crate) fn scattered(n: u64, below: u64) -> u64 {
    let x = (n.wrapping_add(1)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ (x >> 32)) % below
}

/// From -10 to 10.
fn degrees(n: u64) -> f64 {
    scattered(n, 20_000_001) as f64 / 1_000_000.0 - 10.0
}

fn word(n: u64) -> String {
    format!("w{}", base26(n))
}

fn base26(mut n: u64) -> String {
    let mut text = String::new();
    for _ in 0..4 {
        text.push((b'a' + (n % 26) as u8) as char);
        n /= 26;
    }
    text
}

pub(crate) async fn load(client: &mut Client, name: &str, documents: u64, make: impl Fn(u64) -> Document) {
    let mut next = 0;
    while next < documents {
        let batch: Vec<Document> = (next..(next + BATCH).min(documents)).map(&make).collect();
        next += batch.len() as u64;
        client.run("bench", doc! { "insert": name, "documents": batch }).await;
    }
}

async fn index(client: &mut Client, collection: &str, name: &str, key: Document, more: Document) {
    let mut spec = doc! { "name": name, "key": key };
    spec.0.extend(more);
    client.run("bench", doc! { "createIndexes": collection, "indexes": array![spec] }).await;
}

/// A pipeline that reads every document it is left with, in their order, and returns one.
fn summed(collection: &str, stages: Vec<Document>) -> Document {
    let mut pipeline = stages;
    pipeline
        .push(doc! { "$group": { "_id": Value::Null, "sum": { "$sum": "$v" }, "last": { "$last": "$v" } } });
    doc! { "aggregate": collection, "pipeline": pipeline, "cursor": {}, "allowDiskUse": true }
}

pub(crate) async fn run(settings: &Settings) {
    let many = settings.documents as u64 * 2;
    let some = many / 5;
    println!(
        "## the language: {many} documents (of text and strings {some}), medians beside the same without the feature"
    );
    let node = Server::real("mongod", &[]);
    let mut client = Client::connect(&node.address()).await;
    geo(&mut client, many).await;
    windows(&mut client, many).await;
    text(&mut client, some).await;
    collations(&mut client, some).await;
    time_series(&mut client, &node, some).await;
}

fn report(name: &str, (plain, featured): (f64, f64), goal: &str) {
    println!("{name}: {:.1} times ({featured:.2} ms beside {plain:.2}{goal})", featured / plain);
}

async fn geo(client: &mut Client, documents: u64) {
    let point = |n: u64| array![degrees(2 * n), degrees(2 * n + 1)];
    load(
        client,
        "places",
        documents,
        |n| doc! { "_id": n as i64, "k": n as i64, "v": 1, "at": { "type": "Point", "coordinates": point(n) } },
    )
    .await;
    index(client, "places", "k", doc! { "k": 1 }, doc! {}).await;
    index(client, "places", "at", doc! { "at": "2dsphere" }, doc! {}).await;
    let nearest = in_turn(
        client,
        50,
        |n| doc! { "find": "places", "filter": { "k": { "$gte": scattered(n, documents) as i64 } }, "sort": { "k": 1 }, "limit": 10 },
        |n| doc! { "find": "places", "filter": { "at": { "$near": { "$geometry": { "type": "Point", "coordinates": point(n + 7) } } } }, "limit": 10 },
    );
    report("$near, the nearest 10, beside 10 by an index", nearest.await, "");
    let hundredth = documents / 100;
    let within = in_turn(
        client,
        15,
        |n| {
            let low = scattered(n, documents - hundredth) as i64;
            summed("places", vec![doc! { "$match": { "k": { "$gte": low, "$lt": low + hundredth as i64 } } }])
        },
        |n| {
            // Two degrees of twenty each way: a hundredth of the points.
            let (x, y) = (degrees(n) * 0.9 - 1.0, degrees(n + 99) * 0.9 - 1.0);
            let corner = |dx: f64, dy: f64| array![x + dx, y + dy];
            let ring = array![
                corner(0.0, 0.0),
                corner(2.0, 0.0),
                corner(2.0, 2.0),
                corner(0.0, 2.0),
                corner(0.0, 0.0)
            ];
            let shape = doc! { "type": "Polygon", "coordinates": [ring] };
            summed("places", vec![doc! { "$match": { "at": { "$geoWithin": { "$geometry": shape } } } }])
        },
    );
    report("$geoWithin of 1 %, beside 1 % by an index", within.await, "");
    client.run("bench", doc! { "drop": "places" }).await;
}

async fn windows(client: &mut Client, documents: u64) {
    load(
        client,
        "rows",
        documents,
        |n| doc! { "_id": n as i64, "k": scattered(n, documents) as i64, "v": (n % 100) as i32 },
    )
    .await;
    let window = doc! { "v": { "$sum": "$v", "window": { "documents": [-10, 0] } } };
    let times = in_turn(
        client,
        3,
        |_| summed("rows", vec![doc! { "$sort": { "k": 1 } }]),
        |_| {
            summed(
                "rows",
                vec![doc! { "$setWindowFields": { "sortBy": { "k": 1 }, "output": window.clone() } }],
            )
        },
    );
    report("sums over windows of 11, beside the sort", times.await, ", goal 3 times");
    client.run("bench", doc! { "drop": "rows" }).await;
}

async fn text(client: &mut Client, documents: u64) {
    // Of the 150 words of a text, the square makes some frequent and others rare.
    let choose = |n: u64| scattered(n, WORDS) * scattered(n + 1_000_003, WORDS) / WORDS;
    let words = |n: u64| (0..150).map(|i| word(choose(n * 150 + i))).collect::<Vec<_>>().join(" ");
    load(client, "texts", documents, |n| doc! { "_id": n as i64, "v": 1, "t": words(n) }).await;
    let started = Instant::now();
    index(client, "texts", "t", doc! { "t": "text" }, doc! { "default_language": "none" }).await;
    let built = since(started);
    let pair = |n: u64| (word(4000 + n * 31 % 900), word(4000 + n * 57 % 900));
    let times = in_turn(
        client,
        7,
        |n| {
            let (a, b) = pair(n);
            let either = Regex { pattern: format!(r"\b({a}|{b})\b"), options: String::new() };
            summed("texts", vec![doc! { "$match": { "t": either } }])
        },
        |n| {
            let (a, b) = pair(n);
            summed("texts", vec![doc! { "$match": { "$text": { "$search": format!("{a} {b}") } } }])
        },
    );
    report("$text of two words, beside a scan with a regular expression", times.await, "");
    println!("text index of {documents} documents of 750 bytes: built in {:.1} s", built / 1000.0);
    client.run("bench", doc! { "drop": "texts" }).await;
}

async fn collations(client: &mut Client, documents: u64) {
    let english = || doc! { "locale": "en", "strength": 2 };
    let name = |n: u64| format!("{} {}", word(scattered(n, 400_000)), word(scattered(n + 77, 400_000)));
    load(client, "names", documents, |n| doc! { "_id": n as i64, "v": 1, "s": name(n) }).await;
    let collated = |mut command: Document| {
        command.push("collation", english());
        command
    };
    let sorted = || summed("names", vec![doc! { "$sort": { "s": 1 } }]);
    let times = in_turn(client, 7, |_| sorted(), |_| collated(sorted())).await;
    report("sort with a collation, beside one without", times, ", goal 2.5 times");
    index(client, "names", "plain", doc! { "s": 1 }, doc! {}).await;
    index(client, "names", "english", doc! { "s": 1 }, doc! { "collation": english() }).await;
    let tenth = || summed("names", vec![doc! { "$match": { "s": { "$gte": "wf", "$lt": "wh" } } }]);
    let times = in_turn(client, 15, |_| tenth(), |_| collated(tenth())).await;
    report("range of an index with a collation, beside one without", times, ", goal 2.5 times");
    client.run("bench", doc! { "drop": "names" }).await;
}

async fn time_series(client: &mut Client, node: &Server, documents: u64) {
    client.run("bench", doc! { "create": "plain" }).await;
    client
        .run("bench", doc! { "create": "series", "timeseries": { "timeField": "t", "metaField": "m" } })
        .await;
    let measurement = |n: u64| {
        doc! {
            "_id": n as i64, "t": Value::DateTime(1_700_000_000_000 + (n / 10) as i64 * 1000), "m": { "sensor": (n % 10) as i32 },
            "temperature": 20.0 + (n % 37) as f64 / 10.0, "humidity": (40 + n % 20) as i32, "status": "ok",
        }
    };
    let mut cpu = [0.0; 2];
    for batch in 0..documents / BATCH {
        for (i, name) in ["plain", "series"].into_iter().enumerate() {
            let rows: Vec<Document> = (batch * BATCH..(batch + 1) * BATCH).map(measurement).collect();
            let before = node.usage().cpu_us;
            client.run("bench", doc! { "insert": name, "documents": rows, "ordered": false }).await;
            cpu[i] += node.usage().cpu_us - before;
        }
    }
    let [plain, series] = cpu.map(|us| us / documents as f64);
    println!(
        "time series insert: {:.2} times the CPU of a plain one ({series:.2} us a measurement beside {plain:.2}, goal 1)",
        series / plain
    );
    let mut bytes = [0.0; 2];
    for (i, name) in ["plain", "series"].into_iter().enumerate() {
        let stats = client.run("bench", doc! { "collStats": name }).await;
        bytes[i] = stats.get("size").and_then(Value::as_f64).unwrap_or(0.0) / documents as f64;
    }
    println!(
        "bytes a measurement: {:.0} % of a document's ({:.0} beside {:.0}, goal 33 %)",
        100.0 * bytes[1] / bytes[0],
        bytes[1],
        bytes[0]
    );
}
