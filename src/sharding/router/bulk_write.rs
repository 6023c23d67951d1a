//! `bulkWrite`: its operations as statements of `insert`, `update` and `delete`.
//!
//! Neighbouring inserts into one collection go together; an update or a delete is a command of its own, since its counts
//! have to be told apart. Every operation keeps its place in the command as its statement id.

use super::body::{ok_reply, take};
use super::cursor::{Kind as CursorKind, first_batch};
use super::task::Task;
use super::write::{Kind, Outcome, Statement, execute, statement_id};
use document::{Doc, DocBuf, Document, Result, Value, ValueRef, bail, doc};
use node::Request;
use node::write::bulk_write::{delete_statement, operation_namespace, update_statement};
use node::write::shapes;

/// One operation, read.
struct Operation<'a> {
    kind: Kind,
    namespace: usize,
    raw: Doc<'a>,
}

#[derive(Default)]
struct Sums {
    items: Vec<Document>,
    errors: i32,
    inserted: i64,
    matched: i64,
    modified: i64,
    upserted: i64,
    deleted: i64,
    retried: Vec<i32>,
    concern_error: Option<Document>,
}

pub async fn bulk_write(task: &Task<'_>) -> Result<DocBuf> {
    shapes::BULK_WRITE.check_command(task.request.body, task.request.sequences)?;
    task.parse_context()?;
    let namespaces = namespaces(task)?;
    let operations = operations(task, namespaces.len())?;
    let ordered = !matches!(task.body().get("ordered"), Some(ValueRef::Boolean(false)));
    let mut sums = Sums::default();
    let mut at = 0;
    while at < operations.len() {
        task.op.check_interrupt()?;
        let first = &operations[at];
        let together = |o: &&Operation<'_>| o.kind == Kind::Insert && o.namespace == first.namespace;
        let count = match first.kind {
            Kind::Insert => operations[at..].iter().take_while(together).count(),
            _ => 1,
        };
        let batch = &operations[at..at + count];
        let outcome = run_batch(task, &namespaces[first.namespace], batch, at, ordered).await?;
        let failed = !outcome.errors.is_empty();
        sums.add(first.kind, at, count, ordered, outcome);
        at += count;
        if failed && ordered {
            break;
        }
    }
    sums.reply(task).await
}

/// One entry of `nsInfo`.
struct Target {
    ns: String,
    /// The UUID that its collection is meant to have.
    uuid: Option<Value>,
}

fn namespaces(task: &Task<'_>) -> Result<Vec<Target>> {
    let mut out = Vec::new();
    for info in task.request.documents("nsInfo") {
        shapes::BULK_NAMESPACE.check(info)?;
        let ns = info.get_str("ns").unwrap_or("");
        let (db, collection) = ns.split_once('.').unwrap_or((ns, ""));
        node::request::check_collection_name(db, collection)?;
        let uuid = info.get_present("collectionUUID").map(|v| v.to_value());
        out.push(Target { ns: ns.to_string(), uuid });
    }
    Ok(out)
}

fn operations<'a>(task: &Task<'a>, namespaces: usize) -> Result<Vec<Operation<'a>>> {
    let mut out = Vec::new();
    for raw in task.request.documents("ops") {
        let namespace = operation_namespace(raw, namespaces)?;
        let kind = match raw.iter().next().map_or("", |e| e.name()) {
            "insert" => Kind::Insert,
            "update" => Kind::Update,
            _ => Kind::Delete,
        };
        out.push(Operation { kind, namespace, raw });
    }
    if !(1..=100_000).contains(&out.len()) {
        bail!(
            INVALID_LENGTH,
            "Write batch sizes must be between 1 and 100000. Got {} operations.",
            out.len()
        );
    }
    Ok(out)
}

/// Runs operations of one kind on one collection.
async fn run_batch(
    task: &Task<'_>,
    target: &Target,
    batch: &[Operation<'_>],
    at: usize,
    ordered: bool,
) -> Result<Outcome> {
    let kind = batch[0].kind;
    let (db, collection) = target.ns.split_once('.').unwrap_or((&target.ns, ""));
    let mut command = Document::new();
    command.push(
        match kind {
            Kind::Insert => "insert",
            Kind::Update => "update",
            Kind::Delete => "delete",
        },
        collection,
    );
    command.push("ordered", ordered);
    if let Some(uuid) = &target.uuid {
        command.push("collectionUUID", uuid.clone());
    }
    let mut taken = vec!["lsid", "txnNumber", "writeConcern", "maxTimeMS", "comment"];
    if kind != Kind::Insert {
        taken.push("let");
    }
    if kind != Kind::Delete {
        taken.push("bypassDocumentValidation");
    }
    command.0.extend(take(task.body(), &taken));
    let body = command.to_doc_buf();
    let inner = Task::new(task.router, task.op, Request { db, body: body.doc(), sequences: &[] });
    let statements = batch.iter().map(statement).collect::<Result<Vec<_>>>()?;
    let ids = (at..at + batch.len()).map(|i| statement_id(task, i)).collect();
    let outcome = execute(&inner, kind, statements, ids).await?;
    task.hear_from(&inner);
    Ok(outcome)
}

fn statement<'a>(o: &Operation<'_>) -> Result<Statement<'a>> {
    Ok(Statement::Owned(match o.kind {
        Kind::Update => update_statement(o.raw),
        Kind::Delete => delete_statement(o.raw),
        Kind::Insert => match o.raw.get_document("document") {
            Some(document) => document.to_owned(),
            None => bail!(
                IDL_FAILED_TO_PARSE,
                "BSON field 'bulkWrite.ops.document' is missing but a required field"
            ),
        },
    }))
}

impl Sums {
    fn add(&mut self, kind: Kind, at: usize, count: usize, ordered: bool, outcome: Outcome) {
        self.retried.extend(outcome.retried);
        if self.concern_error.is_none() {
            self.concern_error = outcome.concern_errors.into_iter().next();
        }
        let upserts = outcome.upserted.len() as i64;
        match kind {
            Kind::Insert => self.inserted += outcome.n,
            Kind::Delete => self.deleted += outcome.n,
            Kind::Update => {
                self.matched += outcome.n - upserts;
                self.modified += outcome.modified;
                self.upserted += upserts;
            }
        }
        for i in 0..count {
            if let Some((_, error)) = outcome.errors.iter().find(|(e, _)| *e == i) {
                self.errors += 1;
                let mut item = doc! { "ok": 0.0, "idx": (at + i) as i32 };
                item.0.extend(
                    error.iter().filter(|(n, _)| *n != "index").map(|(n, v)| (n.to_string(), v.clone())),
                );
                item.push("n", 0);
                self.items.push(item);
                if ordered {
                    return;
                }
                continue;
            }
            let n = if kind == Kind::Insert { 1 } else { outcome.n };
            let mut item = doc! { "ok": 1.0, "idx": (at + i) as i32, "n": n as i32 };
            if kind == Kind::Update {
                item.push("nModified", outcome.modified as i32);
            }
            if let Some((_, id)) = outcome.upserted.first() {
                item.push("upserted", doc! { "_id": id.clone() });
            }
            self.items.push(item);
        }
    }

    async fn reply(self, task: &Task<'_>) -> Result<DocBuf> {
        let errors_only = task.get("errorsOnly").is_some_and(|v| v.truthy());
        let shown =
            self.items.into_iter().filter(|i| !errors_only || !i.get("ok").is_some_and(Value::truthy));
        let documents = shown.map(|d| d.to_doc_buf()).collect();
        let size = task.get("cursor").and_then(|v| v.as_document()).and_then(|d| d.get_i64("batchSize"));
        let size = size.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
        let batch =
            first_batch(task, "admin.$cmd.bulkWrite", CursorKind::Documents(documents), Some(size)).await?;
        let mut reply: Document = batch.to_document();
        reply.remove("ok");
        reply.push("nErrors", self.errors);
        for (name, n) in [
            ("nInserted", self.inserted),
            ("nMatched", self.matched),
            ("nModified", self.modified),
            ("nUpserted", self.upserted),
            ("nDeleted", self.deleted),
        ] {
            reply.push(name, n as i32);
        }
        if let Some(e) = self.concern_error {
            reply.push("writeConcernError", e);
        }
        if !self.retried.is_empty() {
            reply.push("retriedStmtIds", Value::Array(self.retried.into_iter().map(Value::Int32).collect()));
        }
        Ok(ok_reply(reply))
    }
}
