//! Loading, scanning and grouping: server CPU a document, memory a document.

use crate::Settings;
use crate::process::Server;
use crate::traffic::{Client, frame, write_document};
use document::{DocBuf, DocWriter};

const BATCH: usize = 1000;

pub(crate) async fn run(settings: &Settings) {
    println!("## {} documents of 1 KB, {BATCH} a batch", settings.documents);
    let node = Server::real("mongod", &[]);
    let mut client = Client::connect(&node.address()).await;
    client.command("bench", |w| w.string("create", "c")).await;
    let empty = node.usage();
    let (mut bytes, mut next) = (0u64, 0u64);
    while (next as usize) < settings.documents {
        let frame = insert_frame(next, &mut bytes);
        let reply = client.call(&frame).await;
        let body = DocBuf::from_validated(reply[21..].to_vec());
        assert_eq!(body.get("n").and_then(|n| n.as_i64()), Some(BATCH as i64), "{body:?}");
        next += BATCH as u64;
    }
    let loaded = node.usage();
    let n = next as f64;
    println!(
        "insertMany: {:.2} us of server CPU a document (goal 3.3), {:.0} bytes each",
        (loaded.cpu_us - empty.cpu_us) / n,
        bytes as f64 / n
    );
    println!(
        "memory: {:.2} KB a document (goal 1.6)",
        (loaded.resident_bytes - empty.resident_bytes) as f64 / n / 1024.0
    );

    let scan = cpu_of(&node, &mut client, 0, |w| {
        w.string("find", "c");
        w.document_with("filter", |w| w.i32("group", -1));
    });
    println!(
        "scan with one predicate: {:.0} ns of server CPU a document (goal 180)",
        scan.await * 1000.0 / n
    );
    let keyed = cpu_of(&node, &mut client, 1, |w| {
        w.string("aggregate", "c");
        w.array_with("pipeline", |w| {
            w.with_index(0, |w, name| {
                w.document_with(name, |w| {
                    w.document_with("$group", |w| {
                        w.string("_id", "$group");
                        w.document_with("n", |w| w.string("$sum", "$score"));
                    });
                });
            });
            w.with_index(1, |w, name| w.document_with(name, |w| w.string("$count", "n")));
        });
        w.document_with("cursor", |_| ());
    });
    println!("$group of 1,000 keys: {:.0} ns of server CPU a document (goal 350)", keyed.await * 1000.0 / n);
}

/// Microseconds of server CPU that a command takes, of several rounds. Its first batch has so many documents.
async fn cpu_of(
    node: &Server,
    client: &mut Client,
    returned: usize,
    command: impl Fn(&mut DocWriter<'_>),
) -> f64 {
    let rounds = 5;
    let before = node.usage().cpu_us;
    for _ in 0..rounds {
        let reply = client.command("bench", &command).await;
        let batch = reply.get("cursor").and_then(|c| c.as_document()?.get("firstBatch")?.as_array());
        assert_eq!(batch.map(|batch| batch.iter().count()), Some(returned), "{reply:?}");
    }
    (node.usage().cpu_us - before) / f64::from(rounds)
}

fn insert_frame(first: u64, bytes: &mut u64) -> Vec<u8> {
    let out = frame("bench", |w| {
        w.string("insert", "c");
        w.array_with("documents", |w| {
            for i in 0..BATCH {
                w.with_index(i, |w, name| w.document_with(name, |w| write_document(w, first + i as u64)));
            }
        });
    });
    *bytes += out.len() as u64;
    out
}
