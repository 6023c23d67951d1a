//! What logging in, TLS and many idle connections cost, and putting a database back.

use crate::Settings;
use crate::certificate;
use crate::points::{find, find_times, load};
use crate::process::{Server, directory};
use crate::timing::since;
use crate::traffic::{Client, Target, User, drive_to, write_document};
use document::{Document, array, doc};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 16;
const SHAKERS: usize = 8;
const IDLE: usize = 10_000;
/// File descriptors that a process needs besides those connections.
const SPARE: usize = 200;

pub(crate) async fn run(settings: &Settings) {
    println!("## logins, TLS, idle connections, copies");
    let plain = Server::real("mongod", &[]);
    load(&plain.address()).await;
    with_users(&plain, settings.seconds).await;
    with_tls(settings.seconds).await;
    idle(&plain, settings.seconds).await;
    drop(plain);
    copies(settings.documents as u64 * 2).await;
}

/// New connections a second, each with one command after what it takes to be let in.
async fn handshakes(target: &Target, time: Duration) -> f64 {
    let started = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..SHAKERS {
        let target = target.clone();
        tasks.push(tokio::spawn(async move {
            let mut done = 0_u64;
            while started.elapsed() < time {
                Client::open(&target).await.attempt("admin", &doc! { "hello": 1 }).await;
                done += 1;
            }
            done
        }));
    }
    let mut done = 0;
    for task in tasks {
        done += task.await.expect("a connection failed");
    }
    done as f64 / started.elapsed().as_secs_f64()
}

async fn with_users(plain: &Server, time: Duration) {
    let guarded = Server::real("mongod", &["--auth"]);
    let create = doc! { "createUser": "bench", "pwd": "secret", "roles": ["root"] };
    Client::connect(&guarded.address()).await.run("admin", create).await;
    let anybody = Target::new(&plain.address());
    let user = Target { user: Some(User::new("bench", "secret")), ..Target::new(&guarded.address()) };
    load_to(&user).await;
    let (mut open, mut logged_in, mut without, mut with) = (0.0, 0.0, 0.0, 0.0);
    for _ in 0..4 {
        open += handshakes(&anybody, time / 8).await;
        logged_in += handshakes(&user, time / 8).await;
        without += drive_to(&anybody, CONNECTIONS, time / 4, find).await.per_second();
        with += drive_to(&user, CONNECTIONS, time / 4, find).await.per_second();
    }
    println!(
        "SCRAM-SHA-256: {:.0} logins a second, {:.0} % of connections without ({:.0})",
        logged_in / 4.0,
        100.0 * logged_in / open,
        open / 4.0
    );
    println!("find by _id with users: {:.0} % of without (goal 97 %)", 100.0 * with / without);
}

async fn load_to(target: &Target) {
    let mut client = Client::open(target).await;
    for batch in 0..10 {
        let rows = |w: &mut document::DocWriter<'_>| {
            for i in 0..1000 {
                w.with_index(i, |w, name| {
                    w.document_with(name, |w| write_document(w, batch * 1000 + i as u64))
                });
            }
        };
        let insert = |w: &mut document::DocWriter<'_>| {
            w.string("insert", "c");
            w.array_with("documents", rows);
        };
        client.command("bench", insert).await;
    }
}

async fn with_tls(time: Duration) {
    let dir = directory("certificate");
    let path = dir.join("server.pem");
    certificate::write(&path);
    let file = path.display().to_string();
    let bare = Server::own(&["tls-echo-server", &file]);
    let options = ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", &file, "--tlsCAFile", &file];
    let node =
        Server::real("mongod", &[&options[..], &["--tlsAllowConnectionsWithoutCertificates"]].concat());
    let tls = certificate::client(&file);
    let over_tls = |server: &Server| Target { tls: Some(tls.clone()), ..Target::new(&server.address()) };
    let (echo, ours) = (over_tls(&bare), over_tls(&node));
    load_to(&ours).await;
    let mut sample = Vec::new();
    find(1, &mut sample);
    let size = Client::open(&ours).await.call(&sample).await.len() as u32;
    let sized = move |n: u64, out: &mut Vec<u8>| {
        find(n, out);
        out[4..8].copy_from_slice(&size.to_le_bytes());
    };
    let (mut bare_shakes, mut our_shakes, mut echoed, mut found) = (0.0, 0.0, 0.0, 0.0);
    for _ in 0..4 {
        bare_shakes += handshakes(&echo, time / 8).await;
        our_shakes += handshakes(&ours, time / 8).await;
        echoed += drive_to(&echo, CONNECTIONS, time / 4, sized).await.per_second();
        found += drive_to(&ours, CONNECTIONS, time / 4, find).await.per_second();
    }
    println!(
        "TLS: {:.0} handshakes a second, {:.0} % of a bare server's; find by _id {:.0} % of echo over TLS",
        our_shakes / 4.0,
        100.0 * our_shakes / bare_shakes,
        100.0 * found / echoed
    );
    let _ = std::fs::remove_dir_all(dir);
}

/// What connections weigh that do nothing, and what others notice of them.
async fn idle(node: &Server, time: Duration) {
    let connections = IDLE.min(open_files_max().saturating_sub(SPARE));
    let mut quiet = find_times(&node.address(), 0, time / 2).await;
    let before = node.usage().resident_bytes;
    let mut held = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut client = Client::connect(&node.address()).await;
        client.run("admin", doc! { "hello": 1 }).await;
        held.push(client);
    }
    let weight = node.usage().resident_bytes.saturating_sub(before) as f64 / connections as f64 / 1024.0;
    let mut beside = find_times(&node.address(), 0, time / 2).await;
    println!(
        "{connections} idle connections: {weight:.1} KiB each; p99 of finds {:.2} ms beside {:.2} without them",
        beside.quantile(0.99),
        quiet.quantile(0.99)
    );
}

/// How many files this process, and those it starts, may have open.
fn open_files_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|l| l.starts_with("Max open files"));
    line.and_then(|l| l.split_whitespace().nth(3)?.parse().ok()).unwrap_or(1024)
}

/// Copies, snapshots and restores of a database, which share what they hold.
async fn copies(documents: u64) {
    let node = Server::real("mongod", &[]);
    let mut client = Client::connect(&node.address()).await;
    for batch in 0..documents / 1000 {
        let rows: Vec<Document> =
            (0..1000).map(|i| doc! { "_id": (batch * 1000 + i) as i64, "n": i as i32 }).collect();
        client.run("bench", doc! { "insert": "c", "documents": rows }).await;
    }
    let commands: [(&str, Document); 3] = [
        ("snapshot", doc! { "tesseraSnapshot": "base" }),
        ("restore", doc! { "tesseraRestore": "base" }),
        ("fork", doc! { "tesseraFork": "bench", "to": "copy" }),
    ];
    for (name, command) in commands {
        client
            .run("bench", doc! { "delete": "c", "deletes": array![{ "q": { "_id": 1 }, "limit": 1 }] })
            .await;
        let started = Instant::now();
        client.run("admin", command).await;
        println!("{name} of {documents} documents: {:.1} ms (goal 10)", since(started));
    }
}
