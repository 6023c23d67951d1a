//! What a test that hangs is waiting for: the operations of every node that answers, and the last lines of logs.

use super::fixture::Fixture;
use super::node::Node;
use super::output;
use super::processes::{Process, listening_ports};
use document::{Document, Value, doc, extended_json};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// A node that hangs itself must not hang the dump.
const PATIENCE: Duration = Duration::from_secs(3);
/// By which the dump knows its own query.
const OWN_COMMENT: &str = "jstest: what is the test waiting for";
const LOG_LINES: usize = 10;

/// Describes the fixture's nodes and the servers among the test's own processes.
pub(super) fn dump(fixture: Option<&Fixture>, processes: &[Process]) -> String {
    let mut text = String::new();
    for process in processes {
        let _ = writeln!(text, "process {}", process.command());
    }
    if let Some(fixture) = fixture {
        fixture.nodes.iter().for_each(|node| operations(&mut text, node));
        fixture.log_tails(LOG_LINES).iter().for_each(|(path, tail)| log(&mut text, path, tail));
    }
    for process in processes {
        for port in listening_ports(process.pid) {
            operations(&mut text, &format!("127.0.0.1:{port}"));
        }
        // A server without a log file writes to the test's output, whose tail is shown anyway.
        if let Some(path) = process.option("--logpath").map(Path::new) {
            log(&mut text, path, &output::tail(path, LOG_LINES));
        }
    }
    text
}

fn operations(text: &mut String, address: &str) {
    match current_op(address) {
        Ok(rows) if rows.is_empty() => _ = writeln!(text, "currentOp of {address}: nothing"),
        Ok(rows) => {
            let _ = writeln!(text, "currentOp of {address}:");
            rows.iter().for_each(|row| _ = writeln!(text, "  {row}"));
        }
        Err(error) => _ = writeln!(text, "currentOp of {address}: no answer: {error}"),
    }
}

/// The active operations of a node, without the one that asks.
fn current_op(address: &str) -> std::io::Result<Vec<String>> {
    let mut node = Node::connect(address, PATIENCE)?;
    let stage = doc! { "$currentOp": { "allUsers": true, "idleConnections": false, "localOps": true } };
    let pipeline = Value::Array(vec![Value::Document(stage)]);
    let batch = doc! { "batchSize": 1000 };
    let command = doc! { "aggregate": 1, "pipeline": pipeline, "cursor": batch, "comment": OWN_COMMENT };
    let rows = node.rows("admin", command)?.into_iter();
    Ok(rows.filter(concerns_test).map(shown).collect())
}

/// Not the dump's own query, and not a client that only waits for news of the topology.
fn concerns_test(row: &Document) -> bool {
    let own = row.get_path("command.comment").and_then(Value::as_str) == Some(OWN_COMMENT);
    let monitors = row.get_path("command.topologyVersion").is_some();
    !own && !monitors && row.get_bool("active") != Some(false)
}

/// One line of an operation: without what is empty, and without how its client was built.
fn shown(row: Document) -> String {
    let tells = |name: &str, value: &Value| {
        name != "clientMetadata" && value.as_document().is_none_or(|document| !document.is_empty())
    };
    let fields = row.into_iter().filter(|(name, value)| tells(name, value));
    extended_json::to_relaxed(&Value::Document(fields.collect()))
}

fn log(text: &mut String, path: &Path, tail: &str) {
    let _ = writeln!(text, "last lines of {}:", path.display());
    tail.lines().for_each(|line| _ = writeln!(text, "  {line}"));
}
