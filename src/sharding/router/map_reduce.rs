//! mapReduce through a router: its pipeline is divided like any other; what comes of it is written from here.

use super::{Task, aggregate, cursor, ddl, write};
use document::{Doc, DocBuf, DocWriter, Document, Result, Value, bail, doc};
use futures::future::BoxFuture;
use node::Request;
use node::read::map_reduce::{BATCH, MapReduce, Mode, Reducer, copy_generic, ids_of, write_inline};
use query::script::stored_functions;

/// `mapReduce`.
pub fn map_reduce<'a>(task: &'a Task<'_>) -> BoxFuture<'a, Result<DocBuf>> {
    Box::pin(async move {
        let command = MapReduce::parse(&task.request)?;
        let stored = all(task, task.db(), &find(task, "system.js", &doc! {})).await?;
        let command = command.with_stored(stored_functions(stored.iter().map(DocBuf::to_document)));
        let rows = Rows::open(task, &command).await?;
        if command.out.mode == Mode::Inline {
            let rows = rows.all(task).await?;
            let mut written = Ok(());
            let reply = DocWriter::build(|w| {
                written = write_inline(&rows, w);
                w.double("ok", 1.0);
            });
            return written.map(|()| reply);
        }
        match command.out.mode {
            Mode::Replace => replace(task, &command, rows).await?,
            Mode::Reduce => {
                let reducer = command.reducer(&task.parse_context()?.scripts)?;
                merge(task, &command, rows, Some(&reducer)).await?;
            }
            _ => merge(task, &command, rows, None).await?,
        }
        Ok(DocWriter::build(|w| {
            command.write_result(w);
            w.double("ok", 1.0);
        }))
    })
}

/// Runs a command of its own making on behalf of the client's, in `db`.
async fn run(
    task: &Task<'_>,
    db: &str,
    body: &DocBuf,
    command: for<'t, 'r> fn(&'t Task<'r>) -> BoxFuture<'t, Result<DocBuf>>,
) -> Result<DocBuf> {
    let inner = Task::new(task.router, task.op, Request { db, body: body.doc(), sequences: &[] });
    let reply = command(&inner).await;
    task.hear_from(&inner);
    let reply = reply?;
    if let Some(first) =
        reply.doc().get("writeErrors").and_then(|v| v.as_array()).and_then(|a| a.iter().next())
        && let Some(e) = first.value().as_document()
    {
        return Err(write::error_of(e));
    }
    Ok(reply)
}

/// A command with the generic arguments of the client's.
fn dressed(task: &Task<'_>, write: impl FnOnce(&mut DocWriter<'_>)) -> DocBuf {
    DocWriter::build(|w| {
        write(w);
        copy_generic(task.body(), w);
    })
}

fn find(task: &Task<'_>, collection: &str, filter: &Document) -> DocBuf {
    dressed(task, |w| {
        w.string("find", collection);
        w.document("filter", filter.to_doc_buf().doc());
    })
}

/// All documents of a `find`.
async fn all(task: &Task<'_>, db: &str, command: &DocBuf) -> Result<Vec<DocBuf>> {
    let reply = run(task, db, command, |t| Box::pin(super::find::find(t))).await?;
    let collection = command.doc().get_str("find").unwrap_or_default().to_string();
    let rows = Rows { db: db.to_string(), collection, reply, started: false };
    rows.all(task).await
}

/// A cursor of this router, read here.
struct Rows {
    db: String,
    collection: String,
    /// The reply with the newest batch.
    reply: DocBuf,
    started: bool,
}

impl Rows {
    async fn open(task: &Task<'_>, command: &MapReduce) -> Result<Rows> {
        let collection = task.request.argument().and_then(|v| v.as_str()).unwrap_or_default();
        let body = dressed(task, |w| {
            w.string("aggregate", collection);
            Value::Array(command.stages()).write(w, "pipeline");
            w.document_with("cursor", |_| {});
            w.bool("isMapReduceCommand", true);
        });
        let reply = run(task, task.db(), &body, aggregate::aggregate).await?;
        Ok(Rows { db: task.db().to_string(), collection: collection.to_string(), reply, started: false })
    }
    /// The next batch; `None` at the end.
    async fn next(&mut self, task: &Task<'_>) -> Result<Option<Vec<DocBuf>>> {
        let cursor = self.reply.doc().get_document("cursor").unwrap_or(Doc::empty());
        let id = cursor.get("id").and_then(|v| v.as_i64()).unwrap_or(0);
        if self.started {
            if id == 0 {
                return Ok(None);
            }
            let body = dressed(task, |w| {
                w.i64("getMore", id);
                w.string("collection", &self.collection);
            });
            self.reply = run(task, &self.db, &body, |t| Box::pin(cursor::get_more(t))).await?;
        }
        self.started = true;
        let cursor = self.reply.doc().get_document("cursor").unwrap_or(Doc::empty());
        let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch")).and_then(|v| v.as_array());
        let items = batch.unwrap_or(Doc::empty()).iter();
        Ok(Some(items.filter_map(|e| Some(e.value().as_document()?.to_owned())).collect()))
    }
    async fn all(mut self, task: &Task<'_>) -> Result<Vec<DocBuf>> {
        let mut all = Vec::new();
        while let Some(mut batch) = self.next(task).await? {
            all.append(&mut batch);
        }
        Ok(all)
    }
}

/// Writes the rows over those with their keys, reduced with them where there is a reducer.
async fn merge(
    task: &Task<'_>,
    command: &MapReduce,
    mut rows: Rows,
    reducer: Option<&Reducer>,
) -> Result<()> {
    let out = &command.out;
    while let Some(batch) = rows.next(task).await? {
        for batch in batch.chunks(BATCH) {
            let mut batch = batch.to_vec();
            if let Some(reducer) = reducer {
                let there = find(task, &out.collection, &doc! { "_id": { "$in": ids_of(&batch) } });
                batch = reducer.into_found(batch, &all(task, &out.db, &there).await?)?;
            }
            let body = dressed(task, |w| {
                w.string("update", &out.collection);
                w.array_with("updates", |w| {
                    for (i, row) in batch.iter().enumerate() {
                        w.with_index(i, |w, name| w.document_with(name, |w| write_upsert(w, row)));
                    }
                });
            });
            run(task, &out.db, &body, |t| Box::pin(write::update(t))).await?;
        }
    }
    Ok(())
}

fn write_upsert(w: &mut DocWriter<'_>, row: &DocBuf) {
    w.document_with("q", |w| {
        let id = row.get("_id").map_or(Value::Null, |v| v.to_value());
        w.document_with("_id", |w| id.write(w, "$eq"));
    });
    w.document("u", row.doc());
    w.bool("upsert", true);
}

/// Writes the rows to a new collection, which then takes the target's name.
async fn replace(task: &Task<'_>, command: &MapReduce, mut rows: Rows) -> Result<()> {
    let out = &command.out;
    let ns = out.ns();
    if task.placement(&ns).await?.is_some_and(|p| p.table.is_some()) {
        bail!(ILLEGAL_OPERATION, "Cannot replace a sharded collection: {ns}; use merge or reduce");
    }
    let temporary = format!("tmp.mr.{}.{}", out.collection, uuid_text());
    let create = dressed(task, |w| w.string("create", &temporary));
    run(task, &out.db, &create, |t| Box::pin(ddl::create(t))).await?;
    let done = fill(task, &out.db, &temporary, &mut rows).await;
    let done = match done {
        Ok(()) => {
            let rename = dressed(task, |w| {
                w.string("renameCollection", &format!("{}.{temporary}", out.db));
                w.string("to", &ns);
                w.bool("dropTarget", true);
            });
            run(task, "admin", &rename, |t| Box::pin(ddl::rename_collection(t))).await.map(|_| ())
        }
        failed => failed,
    };
    if done.is_err() {
        let drop = dressed(task, |w| w.string("drop", &temporary));
        // What it failed with is what the client learns.
        let _ = run(task, &out.db, &drop, |t| Box::pin(ddl::drop_collection(t))).await;
    }
    done
}

async fn fill(task: &Task<'_>, db: &str, collection: &str, rows: &mut Rows) -> Result<()> {
    while let Some(batch) = rows.next(task).await? {
        for batch in batch.chunks(BATCH) {
            let body = dressed(task, |w| {
                w.string("insert", collection);
                w.array_with("documents", |w| {
                    for (i, row) in batch.iter().enumerate() {
                        w.with_index(i, |w, name| w.document(name, row.doc()));
                    }
                });
            });
            run(task, db, &body, |t| Box::pin(write::insert(t))).await?;
        }
    }
    Ok(())
}

fn uuid_text() -> String {
    format!("{:032x}", rand::random::<u128>())
}
