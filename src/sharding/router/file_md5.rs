//! filemd5 through a router: the chunks of the file, wherever they are.

use super::map_reduce::{AGGREGATE, dressed, run};
use super::{Task, aggregate};
use document::{DocBuf, DocWriter, Result, Value};
use futures::future::BoxFuture;
use node::read::file_md5::FileMd5;

/// `filemd5`.
pub fn file_md5<'a>(task: &'a Task<'_>) -> BoxFuture<'a, Result<DocBuf>> {
    Box::pin(async move {
        let mut command = FileMd5::parse(&task.request)?;
        while let Some(pipeline) = command.next_pipeline() {
            let asked = dressed(task, AGGREGATE, |w| {
                w.string("aggregate", &command.collection);
                Value::Array(pipeline).write(w, "pipeline");
                w.document_with("cursor", |_| {});
            });
            let reply = run(task, &asked, aggregate::aggregate).await?;
            command.add(&aggregate::rest_of(task, task.db(), asked.doc(), reply).await?)?;
        }
        Ok(DocWriter::build(|w| {
            command.write_result(w);
            w.double("ok", 1.0);
        }))
    })
}
