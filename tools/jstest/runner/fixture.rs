//! Servers that tests share one after another: started once a job, cleaned between tests, replaced when a test broke
//! or changed them.
//!
//! A fixture is one `tessera up` process. Cleaning turns off the fail points a test left on, drops every database but
//! the servers' own, and then compares what a test could have changed for the next one (parameters, settings, zones,
//! shards, users, unfinished range deletions) with what it was at the start.

use super::child;
use super::interrupt;
use super::kind::Kind;
use super::node::Node;
use document::{Value, doc, extended_json};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long servers may take to start.
const START: Duration = Duration::from_secs(60);
/// How long one command of the runner's own may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// The log line of a server whose fail point is set.
const FAIL_POINT_SET: &str = "\"id\":23829";

/// Where fixtures are made.
pub(super) struct Place {
    /// The directory of the server binaries.
    pub binaries: PathBuf,
    /// A directory of this job's own.
    pub directory: PathBuf,
    /// The value of `JSTEST_MARK` for servers.
    pub mark: String,
}

pub(super) struct Fixture {
    /// `host:port` of what tests connect to.
    pub address: String,
    /// `host:port` of every node, that of the tests first.
    pub nodes: Vec<String>,
    directory: PathBuf,
    process: Child,
    connections: Vec<Node>,
    /// How far each log was read in search of fail points.
    logs_read: HashMap<PathBuf, u64>,
    at_start: Vec<String>,
}

/// What cleaning found.
pub(super) enum Cleaned {
    /// The next test may have it.
    Ready,
    /// It must be replaced, for this reason.
    Changed(String),
    /// The servers are gone, which is the last test's doing.
    Dead(String),
}

impl Fixture {
    pub(super) fn start(kind: Kind, number: usize, place: &Place) -> io::Result<Fixture> {
        let directory = place.directory.join(format!("{}-{number}", kind.name()));
        std::fs::create_dir_all(&directory)?;
        let output = directory.join("up.txt");
        let mut command = Command::new(place.binaries.join("tessera"));
        command.args(["up", "--json", "--port", "0", "--set-parameter", "enableTestCommands=1"]);
        // The collection of sessions would come, and move between the shards, in the middle of some test.
        command.args(["--set-parameter", "disableLogicalSessionCacheRefresh=true"]);
        match kind {
            Kind::None | Kind::Standalone => command.arg("--standalone"),
            Kind::Set => command.args(["--replset", "rs0"]),
            Kind::Sharded => command.args(["--shards", "2"]),
        };
        // The servers make their data and logs below TMPDIR.
        command.env("TMPDIR", &directory).env("JSTEST_MARK", &place.mark);
        let mut process = child::spawn(&mut command, &output)?;
        match ready(&mut process, &output) {
            Ok(info) => Fixture::join(directory, process, &info),
            Err(error) => {
                let _ = process.kill();
                let _ = process.wait();
                Err(error)
            }
        }
    }

    fn join(directory: PathBuf, process: Child, info: &serde_json::Value) -> io::Result<Fixture> {
        let shards = info["shards"].as_array().into_iter().flatten().map(|shard| &shard["uri"]);
        let uris = [&info["uri"]].into_iter().chain(shards).chain([&info["config"]]);
        let nodes: Vec<String> = uris.filter_map(|uri| address(uri.as_str()?)).collect();
        let Some(first) = nodes.first().cloned() else {
            return Err(io::Error::other(format!("the servers named no address: {info}")));
        };
        let mut fixture = Fixture {
            address: first,
            nodes,
            directory,
            process,
            connections: Vec::new(),
            logs_read: HashMap::new(),
            at_start: Vec::new(),
        };
        fixture.at_start = fixture.state()?;
        Ok(fixture)
    }

    /// Makes it as it was at the start, if that can be done.
    pub(super) fn clean(&mut self) -> Cleaned {
        if let Some(gone) = self.gone() {
            return Cleaned::Dead(gone);
        }
        match self.try_clean() {
            Ok(Some(changed)) => Cleaned::Changed(changed),
            Ok(None) => Cleaned::Ready,
            Err(error) => match self.gone_soon() {
                Some(gone) => Cleaned::Dead(gone),
                None => Cleaned::Changed(format!("it could not be cleaned: {error}")),
            },
        }
    }

    /// As [`Fixture::gone`], for servers that do not answer: a process that ends closes its sockets first.
    fn gone_soon(&mut self) -> Option<String> {
        let deadline = Instant::now() + ENDING;
        loop {
            match self.gone() {
                None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                answer => return answer,
            }
        }
    }

    /// How the servers' process ended, if it did, with the last thing it said.
    pub(super) fn gone(&mut self) -> Option<String> {
        let status = self.process.try_wait().ok().flatten()?;
        let said = std::fs::read(self.directory.join("up.txt")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        let last = said.lines().rev().find(|l| !l.trim().is_empty() && !l.starts_with('{')).unwrap_or("");
        Some(format!("the fixture's servers ended during the test ({status}) {last}").trim_end().to_string())
    }

    fn try_clean(&mut self) -> io::Result<Option<String>> {
        self.turn_off_fail_points()?;
        // Through the router first, which drops what is sharded; then what was written past it.
        for at in 0..self.nodes.len() {
            for database in self.connection(at)?.user_databases()? {
                self.connection(at)?.run(&database, doc! { "dropDatabase": 1 })?;
            }
        }
        let now = self.state()?;
        let changed = now.iter().find(|line| !self.at_start.contains(line));
        let lost = self.at_start.iter().find(|line| !now.contains(line));
        Ok(changed.or(lost).map(|line| format!("the test changed {line}")))
    }

    /// Fail points are known by the log lines that setting one writes.
    fn turn_off_fail_points(&mut self) -> io::Result<()> {
        let mut names = BTreeSet::new();
        for log in logs_below(&self.directory) {
            let read = self.logs_read.entry(log.clone()).or_default();
            fail_points_set(&log, read, &mut names)?;
        }
        for at in 0..self.nodes.len() {
            for name in &names {
                let off = doc! { "configureFailPoint": name.as_str(), "mode": "off" };
                self.connection(at)?.run("admin", off)?;
            }
        }
        Ok(())
    }

    fn connection(&mut self, at: usize) -> io::Result<&mut Node> {
        while self.connections.len() <= at {
            let node = Node::connect(&self.nodes[self.connections.len()], PATIENCE)?;
            self.connections.push(node);
        }
        Ok(&mut self.connections[at])
    }

    /// What a test can change for those after it, one line a fact.
    fn state(&mut self) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        for at in 0..self.nodes.len() {
            let node = self.connection(at)?;
            for (name, value) in node.run("admin", doc! { "getParameter": "*" })?.iter() {
                if !name.starts_with('$') && !["ok", "operationTime", "lastCommittedOpTime"].contains(&name) {
                    lines.push(format!("parameter {name} of node {at}: {}", shown(value)));
                }
            }
            for (database, collection) in WATCHED {
                for row in node.rows(database, doc! { "find": *collection, "batchSize": 1000 })? {
                    lines.push(format!(
                        "{database}.{collection} of node {at}: {}",
                        shown(&Value::Document(row))
                    ));
                }
            }
        }
        Ok(lines)
    }

    /// The last lines of every node's log.
    pub(super) fn log_tails(&self, lines: usize) -> Vec<(PathBuf, String)> {
        let logs = logs_below(&self.directory).into_iter();
        logs.map(|log| (log.clone(), super::output::tail(&log, lines))).collect()
    }

    /// Stops the servers and removes what they wrote.
    pub(super) fn stop(mut self) {
        self.connections.clear();
        if let Ok(None) = self.process.try_wait() {
            // SAFETY: the child is not reaped, so the pid is its own.
            unsafe { libc::kill(self.process.id() as i32, libc::SIGTERM) };
            let deadline = Instant::now() + Duration::from_secs(5);
            while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// How long servers that end may take from closing their sockets to being gone.
const ENDING: Duration = Duration::from_secs(3);

/// Collections of the servers' own that outlive a test: on a node that has none of them, nothing is found.
const WATCHED: &[(&str, &str)] = &[
    ("config", "settings"),
    ("config", "tags"),
    ("config", "shards"),
    ("config", "migrations"),
    ("config", "rangeDeletions"),
    ("config", "migrationCoordinators"),
    ("admin", "system.users"),
    ("admin", "system.roles"),
];

fn shown(value: &Value) -> String {
    extended_json::to_relaxed(value)
}

/// The line of JSON that says the servers are ready.
fn ready(process: &mut Child, output: &Path) -> io::Result<serde_json::Value> {
    let deadline = Instant::now() + START;
    loop {
        let text = std::fs::read_to_string(output)?;
        let line = text.split_inclusive('\n').find(|l| l.starts_with("{\"ready\":true") && l.ends_with('\n'));
        if let Some(line) = line {
            return serde_json::from_str(line).map_err(io::Error::other);
        }
        if let Some(status) = process.try_wait()? {
            return Err(io::Error::other(format!("the servers did not start ({status}): {}", text.trim())));
        }
        if interrupt::noticed_any() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if Instant::now() > deadline {
            return Err(io::Error::other(format!(
                "the servers were not ready within {START:?}: {}",
                text.trim()
            )));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// `host:port` of `mongodb://host:port/...`.
fn address(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("mongodb://")?;
    rest.split(['/', '?']).next().filter(|a| !a.is_empty()).map(str::to_string)
}

fn logs_below(directory: &Path) -> Vec<PathBuf> {
    let pattern = format!("{}/**/*.log", glob::Pattern::escape(&directory.to_string_lossy()));
    glob::glob(&pattern).into_iter().flatten().filter_map(Result::ok).collect()
}

/// Collects the fail points that the log names from `read` on, and moves `read` to its end.
fn fail_points_set(log: &Path, read: &mut u64, names: &mut BTreeSet<String>) -> io::Result<()> {
    let mut file = std::fs::File::open(log)?;
    file.seek(SeekFrom::Start(*read))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    // A line that is being written is left for the next time.
    let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    *read += whole as u64;
    for line in String::from_utf8_lossy(&bytes[..whole]).lines().filter(|l| l.contains(FAIL_POINT_SET)) {
        let parsed: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        names.extend(parsed["attr"]["failPointName"].as_str().map(str::to_string));
    }
    Ok(())
}
