//! mapReduce through a router: its pipeline, which is divided, and writes, like any other.

use super::{Task, aggregate, find};
use document::{Doc, DocBuf, DocWriter, Result, Value};
use futures::future::BoxFuture;
use node::Request;
use node::generic::is_generic;
use node::read::map_reduce::MapReduce;
use query::script::stored_functions;

/// `mapReduce`.
pub fn map_reduce<'a>(task: &'a Task<'_>) -> BoxFuture<'a, Result<DocBuf>> {
    Box::pin(async move {
        let (command, pipeline) = as_aggregate(task).await?;
        let reply = run(task, &pipeline, aggregate::aggregate).await?;
        let concern_error = reply.doc().get_document("writeConcernError").map(Doc::to_owned);
        let rows = aggregate::rest_of(task, task.db(), pipeline.doc(), reply).await?;
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

/// The command with the functions stored in its database, and the aggregation that it becomes.
pub(super) async fn as_aggregate(task: &Task<'_>) -> Result<(MapReduce, DocBuf)> {
    let command = MapReduce::parse(&task.request)?;
    let find = dressed(task, FIND, |w| w.string("find", "system.js"));
    let stored = run(task, &find, |t| Box::pin(find::find(t))).await?;
    let stored = aggregate::rest_of(task, task.db(), find.doc(), stored).await?;
    let command = command.with_stored(stored_functions(stored.iter().map(DocBuf::to_document)));
    let collection = task.request.argument().and_then(|v| v.as_str()).unwrap_or_default();
    let pipeline = dressed(task, AGGREGATE, |w| {
        w.string("aggregate", collection);
        Value::Array(command.pipeline()).write(w, "pipeline");
        w.document_with("cursor", |_| {});
        w.bool("isMapReduceCommand", true);
    });
    Ok((command, pipeline))
}

/// What a command made here takes over from the client's.
#[derive(Clone, Copy)]
pub(super) struct Dress {
    /// Generic arguments that it may not have.
    without: &'static [&'static str],
    /// Others that concern it.
    with: &'static [&'static str],
}

pub(super) const AGGREGATE: Dress = Dress { without: &[], with: &["collation", "bypassDocumentValidation"] };
const FIND: Dress = Dress { without: &["writeConcern"], with: &[] };

/// A command with arguments of the client's.
pub(super) fn dressed(task: &Task<'_>, dress: Dress, write: impl FnOnce(&mut DocWriter<'_>)) -> DocBuf {
    let concerns =
        |name: &str| dress.with.contains(&name) || (is_generic(name) && !dress.without.contains(&name));
    DocWriter::build(|w| {
        write(w);
        task.body().iter().skip(1).filter(|e| concerns(e.name())).for_each(|e| w.element(&e));
    })
}

type Handler = for<'t, 'r> fn(&'t Task<'r>) -> BoxFuture<'t, Result<DocBuf>>;

/// Runs a command made here on behalf of the client's.
pub(super) async fn run(task: &Task<'_>, body: &DocBuf, handler: Handler) -> Result<DocBuf> {
    let request = Request { db: task.db(), body: body.doc(), sequences: &[] };
    let inner = Task::new(task.router, task.op, request);
    let reply = handler(&inner).await;
    task.hear_from(&inner);
    reply
}
