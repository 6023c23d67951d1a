//! Connections to a server of this test's making: what is sent, and what a test sees when it goes away.

use super::HELPERS;
use crate::testing;
use document::{Document, doc};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Answers hello, then each command with `answer`, until that is `None`, which closes the connection.
fn serve(answer: impl Fn(&Document) -> Option<Document> + Copy + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let name = host.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, name) = (stream.unwrap(), name.clone());
            std::thread::spawn(move || converse(stream, &name, answer));
        }
    });
    host
}

fn converse(mut stream: TcpStream, name: &str, answer: impl Fn(&Document) -> Option<Document>) {
    while let Some((id, command)) = read(&mut stream) {
        let reply = match command.first() {
            Some(("isMaster", _)) => Some(doc! {
                "isWritablePrimary": true, "setName": "rs", "hosts": [name],
                "minWireVersion": 0, "maxWireVersion": 21, "ok": 1.0,
            }),
            _ => answer(&command),
        };
        let Some(reply) = reply else { return };
        let mut out = Vec::new();
        wire::encode::msg(&mut out, 1, id, 0, |w| reply.write_fields(w));
        stream.write_all(&out).unwrap();
    }
}

fn read(stream: &mut TcpStream) -> Option<(i32, Document)> {
    let mut head = [0; 16];
    stream.read_exact(&mut head).ok()?;
    let length = i32::from_le_bytes(head[..4].try_into().unwrap()) as usize;
    let mut body = vec![0; length - 16];
    stream.read_exact(&mut body).ok()?;
    let command = document::Doc::from_validated(&body[5..]).to_document();
    Some((i32::from_le_bytes(head[4..8].try_into().unwrap()), command))
}

#[track_caller]
fn passes(host: &str, script: &str) {
    if let Err(text) = testing::run(&format!("{HELPERS}\nconst host = '{host}';\n{script}")) {
        panic!("{text}");
    }
}

fn echo(command: &Document) -> Option<Document> {
    Some(doc! {"got": Document(command.0.clone()), "ok": 1.0})
}

#[test]
fn a_command_is_sent_as_it_is_with_its_database() {
    passes(
        &serve(echo),
        r#"
        const conn = new Mongo(host);
        same(conn.host, host);
        same(conn.defaultDB, "test");
        const reply = conn.runCommand("db", {ping: 1, x: {"2": 1, b: 2}}, 0);
        same(tostrictjson(reply.got), '{"ping":1.0,"x":{"2":1.0,"b":2.0},"$db":"db"}');
        same(conn.getMaxWireVersion(), 21);
        same(conn.isReplicaSetMember(), true);
        same(conn.isMongos(), false);
        same(conn.isReplicaSetConnection(), false);
        "#,
    );
}

#[test]
fn metadata_and_api_parameters_are_fields_of_the_command() {
    passes(
        &serve(echo),
        r#"
        const conn = new Mongo(host, undefined, {api: {version: "1", strict: true}});
        same(conn.getApiParameters().apiVersion, "1");
        same(conn.runCommand("db", {ping: 1}, 0).got.apiStrict, true);
        const reply = conn.runCommandWithMetadata("db", {$audit: {user: "x"}}, {ping: 1});
        same(reply.commandReply.got.$audit.user, "x");
        same(conn.runCommand("db", {ping: 1}, 4).got.$readPreference.mode, "secondaryPreferred");
        "#,
    );
}

#[test]
fn a_lost_server_is_an_error_once_and_then_found_again() {
    let until_shutdown = |command: &Document| match command.first() {
        Some(("shutdown", _)) => None,
        _ => echo(command),
    };
    passes(
        &serve(until_shutdown),
        r#"
        const conn = new Mongo(host);
        const lost = "network error while attempting to run command 'shutdown' on host '" + host + "'";
        fails(() => conn.runCommand("admin", {shutdown: 1}, 0), lost, 6);
        same(conn.runCommand("admin", {ping: 1}, 0).ok, 1);
        conn.close();
        fails(() => conn.runCommand("admin", {ping: 1}, 0), "network error", 6);
        "#,
    );
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    passes(
        &format!("127.0.0.1:{port}"),
        r#"
        fails(() => new Mongo(host), "couldn't connect to server " + host + ", connection attempt failed:", 6);
        fails(() => connect(host + "/test"), "couldn't connect to server");
        fails(() => new Mongo("mongodb://" + host + "/?replicaSet=rs&serverSelectionTimeoutMS=1"), "Could not find host matching read preference");
        fails(() => new Mongo("mongodb://" + host + "/?tls=true"), "TLS");
        fails(() => new Mongo(host, {keyVaultNamespace: "a.b"}), "field level encryption");
        fails(() => new Mongo("a:b:c:d"), "");
        "#,
    );
}

#[test]
fn a_set_is_reached_through_its_primary() {
    passes(
        &serve(echo),
        r#"
        const conn = new Mongo("rs/" + host);
        same(conn.isReplicaSetConnection(), true);
        same(conn.host, "rs/" + host);
        same(conn.runCommand("a", {ping: 1}, 0).ok, 1);
        const both = new Mongo("mongodb://" + host + ",127.0.0.1:1/d?replicaSet=rs");
        same(both.defaultDB, "d");
        fails(() => new Mongo("mongodb://" + host + "/?replicaSet=other&serverSelectionTimeoutMS=1"), "no member of set other");
        "#,
    );
}

#[test]
fn cursors_fetch_batches_until_the_server_has_no_more() {
    let batches = |command: &Document| {
        let batch = |name: &str, id: i64, values: Vec<i32>| {
            let docs: Vec<Document> = values.into_iter().map(|v| doc! {"v": v}).collect();
            let mut cursor = Document::new();
            cursor.push("id", id);
            cursor.push("ns", "d.c");
            cursor.push(name, docs);
            Some(doc! {"cursor": cursor, "ok": 1.0})
        };
        match command.first() {
            Some(("find", _)) => batch("firstBatch", 9, vec![1, 2]),
            Some(("getMore", id)) if id.as_i64() == Some(9) => batch("nextBatch", 0, vec![3]),
            Some(("getMore", _)) => Some(
                doc! {"ok": 0.0, "code": 43, "codeName": "CursorNotFound", "errmsg": "cursor id not found"},
            ),
            _ => echo(command),
        }
    };
    passes(
        &serve(batches),
        r#"
        const conn = new Mongo(host);
        const cursor = conn.find("d.c", {}, {}, 0, 0, 0, 0);
        same(cursor.objsLeftInBatch(), 2);
        const seen = [];
        while (cursor.hasNext()) { seen.push(cursor.next().v); }
        same(seen.join(), "1,2,3");
        same(cursor.isClosed(), true);
        fails(() => cursor.next(), "hasNext");
        fails(() => conn.cursorFromId("d.c", NumberLong(8)).hasNext(), "cursor id not found", 43);
        const handle = conn.cursorHandleFromId("d.c", NumberLong(8));
        handle.zeroCursorId();
        same(handle.getId() == 0, true);
        const session = conn._startSession();
        same(session.getId().id instanceof BinData, true);
        session.incrementTxnNumber();
        same(session.getTxnNumber() == 0, true);
        session.setTxnState("active");
        fails(() => session.setTxnState("lost"), "lost");
        session.end();
        "#,
    );
}
