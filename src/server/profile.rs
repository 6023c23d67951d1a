//! The profiler: one document in `<db>.system.profile` for each operation of a database whose level asks for it.
//!
//! Level 1 notes slow operations, or those a filter chooses; level 2 all. The collection is capped and not replicated.

use crate::dispatch::{Command, Context};
use crate::log::now_millis;
use crate::operations;
use document::{Doc, Document, Result, Value, doc};
use node::{Node, Operation};
use parking_lot::Mutex;
use query::matcher::Matcher;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use storage::CollectionMeta;

/// Bytes that the collection of a database keeps.
const SIZE: i64 = 1024 * 1024;

/// What a database's operations are measured by.
#[derive(Clone)]
pub struct Setting {
    pub level: i32,
    pub sample_rate: f64,
    pub filter: Option<Filter>,
}

impl Setting {
    pub fn of_level(level: i32) -> Setting {
        Setting { level, sample_rate: 1.0, filter: None }
    }
}

/// The settings of one node.
#[derive(Default)]
pub struct Profiler {
    /// Some database has a level above 0: all that the profiler asks of every operation.
    active: AtomicBool,
    /// Some database has a filter or a rate: all that the log of slow operations asks of every operation.
    selective: AtomicBool,
    settings: Mutex<BTreeMap<String, Setting>>,
    /// The filter of every database that has not been given another since.
    everywhere: Mutex<Option<Filter>>,
}

/// A condition as it was given, and parsed.
pub type Filter = (Document, Arc<Matcher>);

impl Profiler {
    /// `usual`: the level that the node was started with.
    pub fn setting(&self, db: &str, usual: i32) -> Setting {
        let own = self.settings.lock().get(db).cloned();
        own.unwrap_or_else(|| Setting { filter: self.everywhere.lock().clone(), ..Setting::of_level(usual) })
    }
    pub fn set(&self, db: &str, setting: Setting) {
        let mut settings = self.settings.lock();
        settings.insert(db.to_string(), setting);
        self.active.store(settings.values().any(|s| s.level > 0), Relaxed);
        self.note_selective(&settings);
    }
    /// Gives all databases a filter, those that are still to come included; returns the one that they had so.
    pub fn set_everywhere(&self, filter: Option<Filter>) -> Option<Filter> {
        let mut settings = self.settings.lock();
        settings.values_mut().for_each(|setting| setting.filter.clone_from(&filter));
        let was = std::mem::replace(&mut *self.everywhere.lock(), filter);
        self.note_selective(&settings);
        was
    }
    fn note_selective(&self, settings: &BTreeMap<String, Setting>) {
        let chooses = |s: &Setting| s.filter.is_some() || s.sample_rate < 1.0;
        let selective = self.everywhere.lock().is_some() || settings.values().any(chooses);
        self.selective.store(selective, Relaxed);
    }
    /// The node was started with this level for every database.
    pub fn start(&self, level: i32) {
        self.active.store(level > 0, Relaxed);
    }
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }
}

/// One operation that has ended.
pub struct Ended<'a> {
    pub command: &'static Command,
    pub body: Doc<'a>,
    /// Statements that came beside the body.
    pub sequences: &'a [crate::dispatch::Sequence<'a>],
    pub reply: Doc<'a>,
    pub elapsed: Duration,
}

/// Notes the operation where the profiler of its database asks for it. What cannot be noted is passed over.
pub async fn record(context: &Context, ended: &Ended<'_>) {
    let service = &context.service;
    let Some(node) = &service.node else { return };
    let db = ended.body.get_str("$db").unwrap_or("");
    let setting = service.profiler.setting(db, service.options.profile);
    if setting.level == 0 || ended.command.quiet {
        return;
    }
    let slow = ended.elapsed.as_millis() as i64 >= service.parameters.slow_ms();
    for d in entries(context, ended) {
        let chosen = match &setting.filter {
            Some((_, matcher)) => matcher.matches(d.to_doc_buf().doc()).unwrap_or(false),
            None => setting.level == 2 || (slow && runtime::random::<f64>() < setting.sample_rate),
        };
        if chosen {
            drop(write(node, db, &d).await);
        }
    }
}

/// Writes the line of a slow operation: one that took as long as `slowms` says, or that the filter of its database chooses.
pub fn log_if_slow(context: &Context, ended: &Ended<'_>) {
    let service = &context.service;
    let millis = ended.elapsed.as_millis() as i64;
    let slow = millis >= service.parameters.slow_ms() && !ended.command.quiet;
    let wanted = service.log.verbosity() >= 1
        || match service.profiler.selective.load(Relaxed) {
            false => slow,
            true => {
                let db = ended.body.get_str("$db").unwrap_or("");
                let setting = service.profiler.setting(db, service.options.profile);
                match &setting.filter {
                    Some((_, matcher)) => {
                        let d = entry(context, ended, command_of(ended), true).to_doc_buf();
                        !ended.command.quiet && matcher.matches(d.doc()).unwrap_or(false)
                    }
                    None => slow && runtime::random::<f64>() < setting.sample_rate,
                }
            }
        };
    if !wanted {
        return;
    }
    let mut attr = line(context, ended, millis);
    if service.parameters.bool("redactClientLogData") {
        let data = |name: &str| matches!(name, "command" | "originatingCommand" | "errMsg");
        attr.0.iter_mut().filter(|(name, _)| data(name)).for_each(|(_, value)| redact(value));
    }
    service.log.info("COMMAND", 51803, &context.connection.name(), "Slow query", attr);
}

/// Leaves of a value its form.
fn redact(value: &mut Value) {
    match value {
        Value::Document(d) => d.0.iter_mut().for_each(|(_, v)| redact(v)),
        Value::Array(items) => items.iter_mut().for_each(redact),
        leaf => *leaf = "###".into(),
    }
}

/// Bytes of a command whose shape is worth a look: it is made where others are served.
const HASHED_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a command that a line of the log shows.
const SHOWN_BYTES_MAX: usize = 4096;

/// The line's attributes: what the profiler would note, under the names and in the order of the log.
fn line(context: &Context, ended: &Ended<'_>, millis: i64) -> Document {
    let (body, name) = (ended.body, ended.command.name);
    let command = match body.bytes().len() > SHOWN_BYTES_MAX {
        true => doc! { "$truncated": name },
        false => ended.command.masked(body),
    };
    let mut entry = entry(context, ended, command, true);
    let mut attr =
        doc! { "type": "command", "isFromUserConnection": !context.connection.client.internal.load(Relaxed) };
    let mut take = |attr: &mut Document, from: &str, to: &str| {
        if let Some(value) = entry.remove(from) {
            attr.push(to, value);
        }
    };
    for same in
        ["ns", "appName", "command", "originatingCommand", "planSummary", "keysExamined", "docsExamined"]
    {
        take(&mut attr, same, same);
    }
    take(&mut attr, "numYield", "numYields");
    for left_out in ["op", "ts", "client", "allUsers", "user", "execStats", "locks", "millis", "protocol"] {
        entry.remove(left_out);
    }
    let reply_bytes = entry.remove("responseLength");
    let failed = ["ok", "errMsg", "errName", "errCode"].map(|name| entry.remove(name).map(|v| (name, v)));
    attr.0.extend(entry.0);
    failed.into_iter().flatten().for_each(|(name, value)| attr.push(name, value));
    if let Some(bytes) = reply_bytes {
        attr.push("reslen", bytes);
    }
    attr.push("locks", Document::new());
    attr.push("remote", context.connection.client.remote.as_str());
    attr.push("protocol", "op_msg");
    attr.push("durationMillis", millis);
    attr
}

async fn write(node: &Arc<Node>, db: &str, d: &Document) -> Result<()> {
    let ns = format!("{db}.system.profile");
    let slot = node.namespaces.slot(&ns);
    if slot.read_unchecked().collection.is_none() {
        make_collection(node, db).await?;
    }
    let bytes = d.to_doc_buf();
    node.write(&Operation::internal(), &slot, |unit| {
        unit.insert(bytes.doc(), node::Origin::default())?;
        unit.trim_capped()
    })
    .await
    .map(drop)
}

/// Makes the database's collection if it is not there.
pub async fn make_collection(node: &Node, db: &str) -> Result<()> {
    let ns = format!("{db}.system.profile");
    let options = doc! { "capped": true, "size": SIZE };
    let mut meta = CollectionMeta::with_options(ns.clone(), node.new_uuid(), options);
    // The documents have no `_id`.
    meta.id_index = false;
    node.write(&Operation::internal(), &node.namespaces.slot(&ns), |unit| {
        if unit.collection().is_none() {
            unit.create_collection(meta, false);
        }
        Ok(())
    })
    .await
    .map(drop)
}

/// Bytes of a command that an entry shows whole, and of the text that it shows of a longer one.
const COMMAND_BYTES_MAX: usize = 50 * 1024;

/// The command as entries show it: `{$truncated: text, comment}` for a long one.
fn shown(command: Doc<'_>) -> Document {
    cut(command, COMMAND_BYTES_MAX).unwrap_or_else(|| command.to_document())
}

/// `{$truncated: text, comment}` in place of a command of more than `most` bytes.
pub(crate) fn cut(command: Doc<'_>, most: usize) -> Option<Document> {
    let mut cut = query::text::truncated(command, most)?;
    if let Some(comment) = command.get("comment") {
        cut.push("comment", comment.to_value());
    }
    Some(cut)
}

/// The whole command as entries show it, without its secrets.
fn command_of(ended: &Ended<'_>) -> Document {
    match ended.command.secret_fields.is_empty() {
        true => shown(ended.body),
        false => shown(ended.command.masked(ended.body).to_doc_buf().doc()),
    }
}

/// Updates and deletes have an entry for each statement.
fn entries(context: &Context, ended: &Ended<'_>) -> Vec<Document> {
    let list = match ended.command.name {
        "update" => "updates",
        "delete" => "deletes",
        _ => return vec![entry(context, ended, command_of(ended), true)],
    };
    let request = node::request::Request { db: "", body: ended.body, sequences: ended.sequences };
    let statements: Vec<Document> = request.documents(list).map(shown).collect();
    let counted = statements.len() == 1;
    statements.into_iter().map(|s| entry(context, ended, s, counted)).collect()
}

fn entry(context: &Context, ended: &Ended<'_>, mut command: Document, counted: bool) -> Document {
    let (body, client) = (ended.body, &context.connection.client);
    let notes = context.operation.noted();
    let opened_by = notes.and_then(|n| n.originating_command());
    // A batch has the comment of the command that opened its cursor, unless it has one of its own.
    let inherited = opened_by.as_ref().and_then(|opened_by| opened_by.get("comment"));
    if let Some(comment) = inherited.filter(|_| !command.contains_key("comment")) {
        command.push("comment", comment.clone());
    }
    let mut d = doc! {
        "op": operations::operation_type(ended.command.name), "ns": namespace(ended.command.name, body), "command": command,
    };
    if let Some(opened_by) = opened_by {
        d.push("originatingCommand", shown(opened_by.to_doc_buf().doc()));
    }
    let (keys, docs) = context.operation.examined();
    let plan = context.operation.plan_summary();
    if counted && plan.is_some() {
        d.push("keysExamined", document::number::int_or_long(keys as i64));
        d.push("docsExamined", document::number::int_or_long(docs as i64));
    }
    d.push("numYield", 0);
    if counted {
        d.0.extend(counts(ended));
        d.0.extend(notes.map(|n| n.shown()).unwrap_or_default().0);
    }
    if let Some((shape, key)) = context.operation.plan_hashes() {
        d.push("queryHash", shape.as_str());
        d.push("planCacheShapeHash", shape);
        d.push("planCacheKey", key);
    }
    if counted {
        d.0.extend(context.operation.spilled().0);
    }
    if body.bytes().len() <= HASHED_BYTES_MAX
        && let Some(hash) = query::shape::query_hash(body.get_str("$db").unwrap_or(""), body)
    {
        d.push("queryShapeHash", hash);
    }
    d.push("locks", Document::new());
    if let Some(plan) = plan {
        d.push("planSummary", plan);
    }
    if let Some(stages) = notes.and_then(|n| n.stages()).filter(|_| counted) {
        d.push("execStats", below_write(ended, stages));
    }
    if let (Some(code), true) =
        (ended.reply.get_i64("code"), ended.reply.get("ok").is_some_and(|v| !v.truthy()))
    {
        d.push("ok", 0.0);
        d.push("errMsg", ended.reply.get_str("errmsg").unwrap_or(""));
        d.push("errName", ended.reply.get_str("codeName").unwrap_or(""));
        d.push("errCode", code as i32);
    }
    d.push("responseLength", ended.reply.bytes().len() as i32);
    d.push("protocol", "op_msg");
    d.push("millis", ended.elapsed.as_millis() as i32);
    d.push("ts", Value::DateTime(now_millis()));
    d.push("client", client.remote.rsplit_once(':').map_or(client.remote.as_str(), |(host, _)| host));
    if let Some(app) = &*client.app_name.lock() {
        d.push("appName", app.as_str());
    }
    let user = client.user();
    d.push("allUsers", user.iter().map(|u| u.name.to_document().into()).collect::<Vec<Value>>());
    d.push("user", user.map_or_else(String::new, |u| u.name.shown()));
    d
}

/// The stages of a search, under that of the write they search for.
fn below_write(ended: &Ended<'_>, search: Document) -> Document {
    let write = match ended.command.name {
        "update" => "UPDATE",
        "delete" => "DELETE",
        "findAndModify" if ended.body.get("remove").is_some_and(|v| v.truthy()) => "DELETE",
        "findAndModify" => "UPDATE",
        _ => return search,
    };
    doc! { "stage": write, "inputStage": search }
}

fn namespace(name: &str, body: Doc<'_>) -> String {
    match operations::target(name, body) {
        // Some commands are given the whole namespace.
        Some(ns) if body.get_str("$db") == Some("admin") && ns.contains('.') => ns.to_string(),
        _ => operations::namespace(name, body),
    }
}

/// How many documents came or changed, as the reply says.
fn counts(ended: &Ended<'_>) -> Document {
    let (mut d, reply) = (Document::new(), ended.reply);
    let number = |name: &str| reply.get_i64(name).unwrap_or(0) as i32;
    match ended.command.name {
        "insert" => d.push("ninserted", number("n")),
        "delete" => d.push("ndeleted", number("n")),
        "update" => {
            let upserted =
                reply.get("upserted").and_then(|v| v.as_array()).map_or(0, |a| a.iter().count() as i32);
            d.push("nMatched", number("n") - upserted);
            d.push("nModified", number("nModified"));
            d.push("nUpserted", upserted);
        }
        "findAndModify" => {
            let last = reply.get_document("lastErrorObject");
            let n = last.and_then(|l| l.get_i64("n")).unwrap_or(0) as i32;
            match ended.body.get("remove").is_some_and(|v| v.truthy()) {
                true => d.push("ndeleted", n),
                false => {
                    let existing = last.and_then(|l| l.get_bool("updatedExisting")) == Some(true);
                    d.push("nMatched", if existing { n } else { 0 });
                    d.push("nModified", if existing { n } else { 0 });
                }
            }
        }
        _ => {}
    }
    if let Some(cursor) = reply.get_document("cursor") {
        let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch")).and_then(|v| v.as_array());
        d.push("nreturned", batch.map_or(0, |a| a.iter().count() as i32));
        match cursor.get_i64("id") {
            Some(0) | None => d.push("cursorExhausted", true),
            Some(id) => d.push("cursorid", id),
        }
    }
    d
}
