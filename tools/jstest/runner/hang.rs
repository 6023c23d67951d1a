//! What a test that hangs is waiting for: the operations of every node that answers, and the last lines of logs.

use super::fixture::Fixture;
use super::node::Node;
use super::output;
use super::processes::{Process, listening_ports};
use document::{Value, doc, extended_json};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// A node that hangs itself must not hang the dump.
const PATIENCE: Duration = Duration::from_secs(3);
const LOG_LINES: usize = 10;

/// Describes the fixture's nodes and the servers among the test's own processes.
pub fn dump(fixture: Option<&Fixture>, processes: &[Process]) -> String {
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
    let command = doc! { "aggregate": 1, "pipeline": pipeline, "cursor": doc! { "batchSize": 1000 } };
    let rows = node.rows("admin", command)?.into_iter();
    let asks = |row: &document::Document| row.get_path("command.pipeline.0.$currentOp").is_some();
    let others = rows.filter(|row| row.get_bool("active") != Some(false) && !asks(row));
    Ok(others.map(|row| extended_json::to_relaxed(&Value::Document(row))).collect())
}

fn log(text: &mut String, path: &Path, tail: &str) {
    let _ = writeln!(text, "last lines of {}:", path.display());
    tail.lines().for_each(|line| _ = writeln!(text, "  {line}"));
}
