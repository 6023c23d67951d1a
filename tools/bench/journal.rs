//! `j: true` inserts over 64 connections, beside a bare server that appends the same bytes and waits for the same kind of
//! group sync.

use crate::Settings;
use crate::process::{Server, directory};
use crate::traffic::{drive, frame, write_document};

const CONNECTIONS: usize = 64;

pub(crate) async fn run(settings: &Settings) {
    println!("## j:true single inserts, {CONNECTIONS} connections");
    let make = |n: u64, out: &mut Vec<u8>| {
        *out = frame("bench", |w| {
            w.string("insert", "c");
            w.array_with("documents", |w| w.document_with("0", |w| write_document(w, n)));
            w.document_with("writeConcern", |w| {
                w.i32("w", 1);
                w.bool("j", true);
            });
        });
    };
    let dir = directory("bare");
    let bare = Server::own(&["log-server", &dir.display().to_string()]);
    let node = Server::real("mongod", &[]);
    let (mut a, mut b, mut offset) = (0.0, 0.0, 0);
    for _ in 0..4 {
        a += drive(&bare.address(), CONNECTIONS, settings.seconds / 4, make).await.per_second();
        let base = offset;
        let rate =
            drive(&node.address(), CONNECTIONS, settings.seconds / 4, move |n, out| make(base + n, out))
                .await;
        offset += rate.requests + 1000;
        b += rate.per_second();
    }
    println!(
        "{:.0} % of the bare server ({:.0} of {:.0} inserts/s; goal 50 %)",
        100.0 * b / a,
        b / 4.0,
        a / 4.0
    );
    let _ = std::fs::remove_dir_all(dir);
}
