//! Other collections, as stages that run here read them: `$lookup`, `$graphLookup` and `$unionWith` ask for pipelines on them, and each runs
//! through the router as a client's aggregation would.
//!
//! ```text
//! run    all of it came with the first batch: the documents
//!        else a cursor, kept here by a number
//! more   the cursor's next documents, asked for by the command under way: the first one, or a getMore of the outer cursor
//! end    closes the cursor: a $limit behind the stage is reached, or there is more than the stage may hold
//! ```
//!
//! Invariant: these cursors belong to the cursor of the pipeline that reads them. Whatever ends that (its last document, a failure, a kill, the
//! end of its session, idleness) closes what they have open on shards, at any depth.

use super::admin;
use super::aggregate::{constants_at, first_reply, reading_at};
use super::body::{self, take};
use super::cluster::Cluster;
use super::cursor::{Cursor, OpenOnShards};
use super::output::Output;
use super::task::Task;
use document::{Doc, DocBuf, Document, Result, Value, bail, doc};
use futures::future::BoxFuture;
use node::memory;
use parking_lot::Mutex;
use query::pipeline::{Account, Documents, HostStage, Kept, Namespace, PipelineHost, Run, Source};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The cursors of the sub-pipelines of one pipeline.
#[derive(Default)]
pub(super) struct SubCursors {
    kept: Mutex<Numbered>,
    /// What the stages that read them hold.
    account: Arc<Account>,
    /// How the pipeline reads: its read concern, preference and comment, which a getMore does not say.
    reading: Document,
}

#[derive(Default)]
struct Numbered {
    cursors: BTreeMap<u64, SubCursor>,
    last: u64,
}

struct SubCursor {
    /// The documents that came with the command, until they are taken.
    first: Vec<DocBuf>,
    rest: Cursor,
}

impl SubCursor {
    /// The next documents; none at the end.
    async fn next(&mut self, task: &Task<'_>) -> Result<Vec<DocBuf>> {
        match self.first.is_empty() {
            true => self.rest.next_documents(task).await,
            false => Ok(std::mem::take(&mut self.first)),
        }
    }
    fn held_bytes(&self) -> usize {
        self.first.iter().map(|d| d.bytes().len()).sum::<usize>() + self.rest.held_bytes()
    }
}

impl SubCursors {
    /// Of a pipeline whose command has this body.
    pub(super) fn new(account: Arc<Account>, body: Doc<'_>) -> SubCursors {
        let reading = take(body, &["readConcern", "$readPreference", "comment"]);
        SubCursors { account, reading, ..SubCursors::default() }
    }
    /// About how many bytes of shards' replies wait in them.
    pub(super) fn held_bytes(&self) -> usize {
        self.kept.lock().cursors.values().map(SubCursor::held_bytes).sum()
    }
    /// Closes all of them, in the background.
    pub(super) fn close(&self, cluster: &Arc<dyn Cluster>) {
        let cursors = std::mem::take(&mut self.kept.lock().cursors);
        cursors.into_values().for_each(|cursor| cursor.rest.close(cluster));
    }
    /// What they have open on shards.
    pub(super) fn into_open(self) -> OpenOnShards {
        self.kept.into_inner().cursors.into_values().flat_map(|cursor| cursor.rest.into_open()).collect()
    }

    async fn open(&self, task: &Task<'_>, db: &str, command: Document) -> Result<Box<dyn Source>> {
        let reply = first_reply(task, db, &reading_at(task, command)).await?;
        let first: Vec<DocBuf> = body::batch(reply.doc()).map(|d| d.to_owned()).collect();
        let id = body::cursor_id(reply.doc());
        if id == 0 {
            return Ok(Box::new(Documents(Some(first))));
        }
        let rest = task.router.cursors.claim(id)?;
        let mut kept = self.kept.lock();
        kept.last += 1;
        let number = kept.last;
        kept.cursors.insert(number, SubCursor { first, rest });
        Ok(Box::new(Kept { number, scans: false }))
    }

    /// # Errors
    /// The shards'; interrupts; ExceededMemoryLimit (146) where memory is short and the pipeline holds much of it. The cursor is closed
    /// with the pipeline's then.
    async fn more(&self, task: &Task<'_>, number: u64) -> Result<Option<Vec<DocBuf>>> {
        let cursor = self.kept.lock().cursors.remove(&number);
        let Some(mut cursor) = cursor else { return Ok(None) };
        let next = cursor.next(task).await;
        if next.as_ref().is_ok_and(Vec::is_empty) {
            return Ok(None);
        }
        self.kept.lock().cursors.insert(number, cursor);
        memory::check_gathered(|| self.held_bytes() + self.account.bytes())?;
        next.map(Some)
    }
    fn end(&self, task: &Task<'_>, number: u64) {
        let cursor = self.kept.lock().cursors.remove(&number);
        cursor.into_iter().for_each(|cursor| cursor.rest.close(&task.router.cluster));
    }
}

/// Reads other collections for the stages of a pipeline, as a client of the router would; writes, where the pipeline does.
pub(super) struct RouterHost<'t, 'a> {
    pub task: &'t Task<'a>,
    pub output: Option<&'t Output<'t, 'a>>,
    pub others: &'t SubCursors,
}

impl RouterHost<'_, '_> {
    /// A pipeline on any namespace as a command.
    fn command(
        &self,
        namespace: &Namespace,
        pipeline: Vec<Value>,
        let_values: Vec<(String, Value)>,
        run: &Run,
    ) -> Document {
        let literals: Document =
            let_values.into_iter().map(|(name, v)| (name, Value::from(doc! { "$literal": v }))).collect();
        let collection: Value = match namespace.collection.as_str() {
            "" => Value::Int32(1),
            name => Value::from(name),
        };
        let mut command = doc! { "aggregate": collection, "pipeline": Value::Array(pipeline), "cursor": {} };
        if !literals.is_empty() {
            command.push("let", literals);
        }
        command.push("runtimeConstants", constants_at(self.task, run.vars.now_ms));
        command.0.extend(take(self.task.body(), &["lsid", "maxTimeMS"]));
        command.0.extend(self.others.reading.clone());
        // Named even where it is the simple one: the other collection's default does not count.
        let simple = doc! { "locale": "simple" };
        command.push("collation", run.collation.document().cloned().unwrap_or(simple));
        command.push("$db", namespace.db.as_str());
        command
    }
}

impl PipelineHost for RouterHost<'_, '_> {
    fn breathe<'a>(&'a self) -> BoxFuture<'a, Result<()>> {
        Box::pin(async {
            self.task.op.check_interrupt()?;
            tokio::task::yield_now().await;
            Ok(())
        })
    }
    fn source<'a>(&'a self, stage: &'a HostStage, _: &'a Run) -> BoxFuture<'a, Result<Box<dyn Source>>> {
        Box::pin(async move {
            let documents = admin::source_documents(self.task, stage.name, &stage.spec).await?;
            Ok(Box::new(Documents(Some(documents))) as Box<dyn Source>)
        })
    }
    fn run<'a>(
        &'a self,
        namespace: &'a Namespace,
        pipeline: Vec<Value>,
        let_values: Vec<(String, Value)>,
        run: &'a Run,
    ) -> BoxFuture<'a, Result<Box<dyn Source>>> {
        Box::pin(async move {
            let command = self.command(namespace, pipeline, let_values, run);
            self.others.open(self.task, &namespace.db, command).await
        })
    }
    fn more<'a>(&'a self, number: u64) -> BoxFuture<'a, Result<Option<Vec<DocBuf>>>> {
        Box::pin(self.others.more(self.task, number))
    }
    fn end(&self, number: u64) {
        self.others.end(self.task, number);
    }
    fn write<'a>(
        &'a self,
        stage: &'a HostStage,
        batch: Vec<DocBuf>,
        end: bool,
        run: &'a Run,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match self.output {
                Some(output) => output.write(batch, end, run).await,
                None => bail!(NOT_IMPLEMENTED, "{} on a router is known but not implemented", stage.name),
            }
        })
    }
}
