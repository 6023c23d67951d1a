//! Counters of one node, as serverStatus shows them. Each moves where the thing it counts happens.

use crate::dispatch::{Command, Latencies, Lookup};
use document::{Doc, Document, Error, ValueRef, codes, doc};
pub use node::stripe::Counter;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

/// Counts what happens now and then.
#[derive(Default)]
pub struct RareCounter(AtomicI64);

impl RareCounter {
    pub fn increment(&self) {
        self.0.fetch_add(1, Relaxed);
    }
    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// How often a command ran and failed.
#[derive(Default)]
pub struct PerCommand {
    pub total: Counter,
    pub failed: RareCounter,
    pub rejected: RareCounter,
}

/// The classic operation counters: commands for `query`, `getmore` and `command`, statements for the others.
#[derive(Default)]
pub struct Operations {
    pub insert: Counter,
    pub query: Counter,
    pub update: Counter,
    pub delete: Counter,
    pub getmore: Counter,
    pub command: Counter,
}

impl Operations {
    pub fn to_document(&self) -> Document {
        doc! {
            "insert": self.insert.get(), "query": self.query.get(), "update": self.update.get(),
            "delete": self.delete.get(), "getmore": self.getmore.get(), "command": self.command.get(),
        }
    }
}

#[derive(Default)]
pub struct Network {
    pub bytes_in: Counter,
    pub bytes_out: Counter,
    pub requests: Counter,
    pub slow_dns: Counter,
    pub slow_ssl: Counter,
}

impl Network {
    /// Counts a request of so many bytes.
    pub fn received(&self, bytes: usize) {
        self.requests.increment();
        self.bytes_in.add(bytes as i64);
    }
}

#[derive(Default)]
pub struct Latency {
    pub micros: Counter,
    pub operations: Counter,
}

impl Latency {
    fn to_document(&self) -> Document {
        doc! { "latency": self.micros.get(), "ops": self.operations.get() }
    }
}

#[derive(Default)]
pub struct Asserts {
    pub regular: Counter,
    pub warning: Counter,
    pub message: Counter,
    pub user: Counter,
}

/// Operations that ended before they were done.
#[derive(Default)]
pub struct Killed {
    pub disconnected: RareCounter,
    pub expired: RareCounter,
}

/// Documents touched.
#[derive(Default)]
pub struct Documents {
    pub deleted: Counter,
    pub inserted: Counter,
    pub returned: Counter,
    pub updated: Counter,
}

/// What updates are made of, in one command.
#[derive(Default)]
pub struct Updates {
    pipeline: Counter,
    array_filters: Counter,
}

impl Updates {
    /// Counts a statement or command by its update and its array filters.
    fn note(&self, statement: Doc<'_>, update: &str) {
        if matches!(statement.get(update), Some(ValueRef::Array(_))) {
            self.pipeline.increment();
        }
        if statement.get_present("arrayFilters").is_some() {
            self.array_filters.increment();
        }
    }
}

/// Validators that a command was given.
#[derive(Default)]
pub struct Validators {
    total: RareCounter,
    json_schema: RareCounter,
    failed: RareCounter,
}

impl Validators {
    fn note(&self, body: Doc<'_>, failed: bool) {
        let Some(validator) = body.get_document("validator").filter(|v| !v.is_empty()) else { return };
        self.total.increment();
        if validator.get("$jsonSchema").is_some() {
            self.json_schema.increment();
        }
        if failed {
            self.failed.increment();
        }
    }
    fn shown(&self) -> Document {
        doc! { "failed": self.failed.get(), "jsonSchema": self.json_schema.get(), "total": self.total.get() }
    }
}

pub struct Counters {
    pub operations: Operations,
    pub network: Network,
    pub asserts: Asserts,
    pub documents: Documents,
    pub reads: Latency,
    pub writes: Latency,
    pub commands: Latency,
    pub unknown: Counter,
    pub top: crate::commands::top::Top,
    pub stages: crate::stage_counters::StageCounters,
    pub operators: crate::operator_counters::OperatorCounters,
    pub api_versions: crate::api_versions::ApiVersions,
    pub read_concerns: crate::concern_counters::ReadConcerns,
    pub write_concerns: crate::concern_counters::WriteConcerns,
    pub killed: Killed,
    updates: Updates,
    found_updates: Updates,
    create_validators: Validators,
    coll_mod_validators: Validators,
    per_command: Vec<PerCommand>,
}

impl Counters {
    pub fn new(lookup: &Lookup) -> Counters {
        Counters {
            operations: Operations::default(),
            network: Network::default(),
            asserts: Asserts::default(),
            documents: Documents::default(),
            reads: Latency::default(),
            writes: Latency::default(),
            commands: Latency::default(),
            unknown: Counter::default(),
            top: crate::commands::top::Top::default(),
            stages: Default::default(),
            operators: Default::default(),
            api_versions: Default::default(),
            read_concerns: Default::default(),
            write_concerns: Default::default(),
            killed: Killed::default(),
            updates: Updates::default(),
            found_updates: Updates::default(),
            create_validators: Validators::default(),
            coll_mod_validators: Validators::default(),
            per_command: lookup.rows().iter().map(|_| PerCommand::default()).collect(),
        }
    }
    pub fn unknown_command(&self) {
        self.unknown.increment();
        self.operations.command.increment();
    }
    pub fn command_started(&self, index: usize, command: &Command) {
        self.per_command[index].total.increment();
        match command.name {
            "find" => self.operations.query.increment(),
            "getMore" => self.operations.getmore.increment(),
            // Counted by their statements, when they are done.
            "insert" | "update" | "delete" => {}
            _ => self.operations.command.increment(),
        }
    }
    pub fn command_failed(&self, index: usize) {
        self.per_command[index].failed.increment();
    }
    pub fn command_finished(&self, command: &Command, elapsed: Duration) {
        let latency = match command.latencies() {
            Latencies::Reads => &self.reads,
            Latencies::Writes => &self.writes,
            Latencies::Commands => &self.commands,
        };
        latency.micros.add(elapsed.as_micros() as i64);
        latency.operations.increment();
    }
    pub fn assertion(&self, error: &Error) {
        match error.code {
            1 => self.asserts.regular.increment(),
            _ => self.asserts.user.increment(),
        }
        match error.code {
            codes::MAX_TIME_MS_EXPIRED => self.killed.expired.increment(),
            codes::CLIENT_DISCONNECT => self.killed.disconnected.increment(),
            _ => {}
        }
    }
    /// Counts what a command that succeeded did: its statements, and the documents its reply tells of.
    pub fn effects(&self, request: &node::request::Request<'_>, command: &Command, reply: Doc<'_>) {
        let (op, documents) = (&self.operations, &self.documents);
        let n = |name: &str| reply.get_i64(name).unwrap_or(0);
        self.operators.note(command.name, request);
        match command.name {
            "insert" => {
                op.insert.add(request.documents("documents").count() as i64);
                documents.inserted.add(n("n"));
            }
            "update" => {
                request.documents("updates").for_each(|statement| {
                    op.update.increment();
                    self.updates.note(statement, "u");
                });
                documents.updated.add(n("nModified"));
                documents.inserted.add(length(reply.get("upserted")));
            }
            "delete" => {
                op.delete.add(request.documents("deletes").count() as i64);
                documents.deleted.add(n("n"));
            }
            "bulkWrite" => {
                documents.inserted.add(n("nInserted") + n("nUpserted"));
                documents.updated.add(n("nModified"));
                documents.deleted.add(n("nDeleted"));
            }
            "findAndModify" => self.find_and_modify(request, reply),
            "find" | "getMore" | "aggregate" => {
                if let Some(pipeline) = request.body.get("pipeline").and_then(|v| v.as_array()) {
                    self.stages.note(pipeline);
                }
                let cursor = reply.get_document("cursor").unwrap_or(Doc::empty());
                documents.returned.add(length(cursor.get("firstBatch").or(cursor.get("nextBatch"))));
            }
            _ => {}
        }
    }
    /// Counts the validator that a command was given.
    pub fn validator(&self, command: &Command, body: Doc<'_>, failed: bool) {
        match command.name {
            "create" => self.create_validators.note(body, failed),
            "collMod" => self.coll_mod_validators.note(body, failed),
            _ => {}
        }
    }
    fn find_and_modify(&self, request: &node::request::Request<'_>, reply: Doc<'_>) {
        self.found_updates.note(request.body, "update");
        let outcome = reply.get_document("lastErrorObject").unwrap_or(Doc::empty());
        let n = outcome.get_i64("n").unwrap_or(0);
        match (request.body.get("remove").is_some_and(|v| v.truthy()), outcome.get_bool("updatedExisting")) {
            (true, _) => self.documents.deleted.add(n),
            (false, Some(true)) => self.documents.updated.add(n),
            (false, _) => self.documents.inserted.add(n),
        }
    }
    pub fn per_command(&self, index: usize) -> &PerCommand {
        &self.per_command[index]
    }
    pub fn latencies(&self) -> Document {
        doc! {
            "reads": self.reads.to_document(), "writes": self.writes.to_document(),
            "commands": self.commands.to_document(), "transactions": { "latency": 0i64, "ops": 0i64 },
        }
    }
    /// `metrics.commands` of serverStatus: rows by name.
    pub fn commands_document(&self, lookup: &Lookup, shown: impl Fn(&Command) -> bool) -> Document {
        let mut rows: Vec<(&str, Document)> = lookup
            .rows()
            .iter()
            .zip(&self.per_command)
            .filter(|(row, _)| shown(row))
            .map(|(row, n)| {
                let counts =
                    doc! { "failed": n.failed.get(), "rejected": n.rejected.get(), "total": n.total.get() };
                (row.name, self.of_command(row.name, counts))
            })
            .collect();
        rows.sort_by_key(|(name, _)| *name);
        let mut out = doc! { "<UNKNOWN>": self.unknown.get() };
        for (name, counts) in rows {
            out.push(name, counts);
        }
        out
    }
}

impl Counters {
    /// What is counted of one command alone, beside the counts of all.
    fn of_command(&self, name: &str, mut counts: Document) -> Document {
        let updates = |updates: &Updates| [updates.array_filters.get(), updates.pipeline.get()];
        let [array_filters, pipeline] = match name {
            "update" => updates(&self.updates),
            "findAndModify" => updates(&self.found_updates),
            "create" => return with_validators(counts, &self.create_validators),
            "collMod" => return with_validators(counts, &self.coll_mod_validators),
            _ => return counts,
        };
        counts.push("arrayFilters", array_filters);
        counts.push("pipeline", pipeline);
        counts
    }
}

fn with_validators(mut counts: Document, validators: &Validators) -> Document {
    counts.push("validator", validators.shown());
    counts
}

/// How many elements an array has.
fn length(array: Option<ValueRef<'_>>) -> i64 {
    array.and_then(|v| v.as_array()).map_or(0, |a| a.iter().count() as i64)
}
