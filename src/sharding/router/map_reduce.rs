//! mapReduce through a router: its pipeline, which is divided, and writes, like any other.

use super::{Task, aggregate, body, cursor, find};
use document::{Doc, DocBuf, DocWriter, Result, Value, doc};
use futures::future::BoxFuture;
use node::Request;
use node::generic::is_generic;
use node::read::map_reduce::MapReduce;
use query::script::stored_functions;

/// `mapReduce`.
pub fn map_reduce<'a>(task: &'a Task<'_>) -> BoxFuture<'a, Result<DocBuf>> {
    Box::pin(async move {
        let command = MapReduce::parse(&task.request)?;
        let find = dressed(task, FIND, |w| w.string("find", "system.js"));
        let stored = Rows::open(task, "system.js", &find, |t| Box::pin(find::find(t))).await?;
        let stored = stored.all(task).await?;
        let command = command.with_stored(stored_functions(stored.iter().map(DocBuf::to_document)));
        let collection = task.request.argument().and_then(|v| v.as_str()).unwrap_or_default();
        let aggregate = dressed(task, AGGREGATE, |w| {
            w.string("aggregate", collection);
            Value::Array(command.pipeline()).write(w, "pipeline");
            w.document_with("cursor", |_| {});
            w.bool("isMapReduceCommand", true);
        });
        let rows = Rows::open(task, collection, &aggregate, aggregate::aggregate).await?;
        let concern_error = rows.reply.doc().get_document("writeConcernError").map(Doc::to_owned);
        let rows = rows.all(task).await?;
        let mut written = Ok(());
        let reply = DocWriter::build(|w| {
            written = command.write_result(&rows, w);
            if let Some(e) = &concern_error {
                w.document("writeConcernError", e.doc());
            }
            w.double("ok", 1.0);
        });
        written.map(|()| reply)
    })
}

/// What a command made here takes over from the client's.
#[derive(Clone, Copy)]
struct Dress {
    /// Generic arguments that it may not have.
    without: &'static [&'static str],
    /// Others that concern it.
    with: &'static [&'static str],
}

const AGGREGATE: Dress = Dress { without: &[], with: &["collation", "bypassDocumentValidation"] };
const FIND: Dress = Dress { without: &["writeConcern"], with: &[] };
const GET_MORE: Dress = Dress { without: &["writeConcern", "readConcern", "maxTimeMS"], with: &[] };

/// A command with arguments of the client's.
fn dressed(task: &Task<'_>, dress: Dress, write: impl FnOnce(&mut DocWriter<'_>)) -> DocBuf {
    let concerns =
        |name: &str| dress.with.contains(&name) || (is_generic(name) && !dress.without.contains(&name));
    DocWriter::build(|w| {
        write(w);
        task.body().iter().skip(1).filter(|e| concerns(e.name())).for_each(|e| w.element(&e));
    })
}

type Handler = for<'t, 'r> fn(&'t Task<'r>) -> BoxFuture<'t, Result<DocBuf>>;

/// Runs a command made here on behalf of the client's.
async fn run(task: &Task<'_>, body: &DocBuf, handler: Handler) -> Result<DocBuf> {
    let request = Request { db: task.db(), body: body.doc(), sequences: &[] };
    let inner = Task::new(task.router, task.op, request);
    let reply = handler(&inner).await;
    task.hear_from(&inner);
    reply
}

/// A cursor of this router, read here.
struct Rows<'c> {
    collection: &'c str,
    /// The reply with the newest batch.
    reply: DocBuf,
}

impl<'c> Rows<'c> {
    async fn open(
        task: &Task<'_>,
        collection: &'c str,
        command: &DocBuf,
        handler: Handler,
    ) -> Result<Rows<'c>> {
        Ok(Rows { collection, reply: run(task, command, handler).await? })
    }
    /// All of them.
    async fn all(mut self, task: &Task<'_>) -> Result<Vec<DocBuf>> {
        let mut all = Vec::new();
        loop {
            let cursor = self.reply.doc().get_document("cursor").unwrap_or(Doc::empty());
            let batch =
                cursor.get("firstBatch").or_else(|| cursor.get("nextBatch")).and_then(|v| v.as_array());
            let items = batch.unwrap_or(Doc::empty()).iter();
            all.extend(items.filter_map(|e| Some(e.value().as_document()?.to_owned())));
            let id = body::cursor_id(self.reply.doc());
            if id == 0 {
                return Ok(all);
            }
            let body = dressed(task, GET_MORE, |w| {
                w.i64("getMore", id);
                w.string("collection", self.collection);
            });
            match run(task, &body, |t| Box::pin(cursor::get_more(t))).await {
                Ok(reply) => self.reply = reply,
                Err(e) => {
                    self.close(task, id).await;
                    return Err(e);
                }
            }
        }
    }
    /// Closes the cursor, if what failed has not done so.
    async fn close(&self, task: &Task<'_>, id: i64) {
        let command = doc! { "killCursors": self.collection, "cursors": [(Value::Int64(id))] };
        let _ = run(task, &command.to_doc_buf(), |t| Box::pin(cursor::kill_cursors(t))).await;
    }
}
