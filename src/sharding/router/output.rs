//! `$out` and `$merge` at the end of a pipeline that runs here.
//!
//! ```text
//! $merge   each document goes to the shard that owns it (by the `on` fields, which hold the shard key), in batches; the shard merges it
//!          by its own code. A batch that is refused as stale was not touched, and is sent anew by the placement of then
//! $out     all documents go to the shard of the target, into a collection beside it, which takes its name with the last batch. A
//!          pipeline that is refused as stale begins anew. Where moveCollection has placed the target: `placed_output`
//! ```
//! Invariant: once a `$merge` has changed something its pipeline is not run again. What is stale after that ends the command, and so
//! does a target that was sharded, dropped or made anew meanwhile.

use super::aggregate::{PipelineCursor, constants};
use super::body::{Placement, take};
use super::cluster::Call;
use super::placed_output::Beside;
use super::target;
use super::task::{Retry, Task, is_stale};
use crate::chunk::ShardId;
use crate::routing::RoutingTable;
use document::{
    Doc, DocBuf, DocWriter, Document, Error, Result, Timestamp, Value, ValueRef, bail, doc, err, path,
};
use futures::future::join_all;
use node::operation::ReadLevel;
use parking_lot::Mutex;
use query::pipeline::{HostStage, Namespace, Run};
use std::sync::OnceLock;

/// Documents and bytes of one batch.
const BATCH: usize = 1000;
const BATCH_BYTES: usize = 16 * 1024 * 1024;
/// What clients look for when they replace a sharded collection.
const OUT_TO_SHARDED: i32 = 28769;
const NO_UNIQUE_INDEX: i32 = 51183;
/// The code for a target that is no time series.
const NO_SERIES: i32 = 7268700;

/// Runs the pipeline to its end, writing what comes of it.
pub(super) async fn run(
    task: &Task<'_>,
    ns: &str,
    mut cursor: PipelineCursor,
    stage: &HostStage,
) -> Result<DocBuf> {
    let done = match Output::open(task, stage).await {
        Ok(output) => {
            let done = drain(task, &mut cursor, &output).await;
            output.finish(ns, done).await
        }
        Err(e) => Err(e),
    };
    if done.is_err() {
        cursor.close(task);
    }
    done
}

async fn drain(task: &Task<'_>, cursor: &mut PipelineCursor, output: &Output<'_, '_>) -> Result<()> {
    while cursor.advance(task, Some(output)).await? {
        task.op.check_interrupt()?;
    }
    Ok(())
}

/// A stage that writes, under way.
pub(super) struct Output<'t, 'a> {
    task: &'t Task<'a>,
    target: Namespace,
    ns: String,
    stage: &'t HostStage,
    /// When the target was sharded, if it was when the command began.
    sharded: Option<Timestamp>,
    /// The pipeline's variables and collation, as commands carry them.
    surroundings: OnceLock<Document>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// A `$merge` has sent something that a shard took, or may have taken.
    merged: bool,
    /// Where `$out` writes: the shard, and the collection beside the target.
    beside: Option<(ShardId, String)>,
    /// The same where the catalog has placed the target.
    placed: Option<Beside>,
    concern_error: Option<Document>,
}

impl<'t, 'a> Output<'t, 'a> {
    /// # Errors
    /// 28769 for an `$out` into a sharded collection, 51183 for a `$merge` by other fields than find one document; InvalidOptions (72).
    async fn open(task: &'t Task<'a>, stage: &'t HostStage) -> Result<Output<'t, 'a>> {
        if task.op.read_concern.given && task.op.read_concern.level == ReadLevel::Linearizable {
            bail!(INVALID_OPTIONS, "{} cannot be used with a 'linearizable' read concern level", stage.name);
        }
        let Some(target) = stage.namespace.clone() else {
            bail!(INTERNAL_ERROR, "{} without a target", stage.name)
        };
        let ns = target.to_string();
        let placement = task.placement_for_write(&ns).await?;
        let spec = stage.spec.as_document();
        if spec.is_some_and(|d| d.contains_key("targetCollectionVersion")) {
            return Err(Error::new(51179, "Received unexpected 'targetCollectionVersion' on mongos"));
        }
        if let Some(table) = &placement.table {
            if stage.name == "$out" {
                let text = format!("namespace '{ns}' is sharded so it can't be used for $out");
                return Err(Error::new(OUT_TO_SHARDED, text));
            }
            check_fields(spec, table)?;
        }
        let sharded = placement.table.as_ref().map(|table| table.timestamp);
        Ok(Output {
            task,
            target,
            ns,
            stage,
            sharded,
            surroundings: OnceLock::new(),
            state: Mutex::default(),
        })
    }

    pub(super) async fn write(&self, batch: Vec<DocBuf>, end: bool, run: &Run) -> Result<()> {
        self.surroundings.get_or_init(|| surroundings(run));
        match self.stage.name {
            "$out" => self.out(batch, end).await,
            _ => self.merge(batch, end).await,
        }
    }

    /// # Errors
    /// QueryPlanKilled (175) when the target is not what it was when the command began.
    async fn placement(&self) -> Result<Placement> {
        let placement = self.task.placement_for_write(&self.ns).await?;
        if placement.table.as_ref().map(|table| table.timestamp) != self.sharded {
            bail!(QUERY_PLAN_KILLED, "{} was changed while {} wrote to it", self.ns, self.stage.name);
        }
        Ok(placement)
    }

    async fn merge(&self, batch: Vec<DocBuf>, end: bool) -> Result<()> {
        // Where nothing came, one shard says whether anything could have been merged.
        let mut asks = end && batch.is_empty() && !self.state.lock().merged;
        let mut retry = Retry::default();
        let mut pending = batch;
        while asks || !pending.is_empty() {
            let placement = self.placement().await?;
            let shares = match asks {
                true => placement.shards().into_iter().take(1).map(|shard| (shard, Vec::new())).collect(),
                false => self.shares(&placement, std::mem::take(&mut pending))?,
            };
            let command = self.merge_command(&placement);
            let send = |(shard, documents)| self.merge_on(&placement, shard, &command, documents);
            let sent = shares.into_iter().map(send);
            let (mut stale, mut failed) = (None, None);
            for (left, result) in join_all(sent).await {
                match result {
                    Err(e) if is_stale(&e) => {
                        pending.extend(left);
                        stale = Some(e);
                    }
                    Err(e) => drop(failed.get_or_insert(e)),
                    Ok(()) => retry.reset(),
                }
            }
            if let Some(e) = failed {
                return Err(e);
            }
            match stale {
                Some(e) => retry.absorb(self.task, &self.ns, e).await?,
                None => asks = false,
            }
        }
        Ok(())
    }

    /// The documents by their owners, each owner's in the order they came in.
    fn shares(&self, placement: &Placement, documents: Vec<DocBuf>) -> Result<Vec<(ShardId, Vec<DocBuf>)>> {
        let Some(table) = &placement.table else { return Ok(vec![(placement.home().clone(), documents)]) };
        let on = self.on(table);
        let by_id = on.iter().any(|field| field == "_id");
        let mut shares: Vec<(ShardId, Vec<DocBuf>)> = Vec::new();
        for document in documents {
            let given = by_id.then(|| self.task.router.with_id(document.doc())).flatten();
            let document = given.unwrap_or(document);
            check_no_array(&on, document.doc())?;
            let shard = target::document(table, document.doc())?;
            match shares.iter_mut().find(|(s, _)| *s == shard) {
                Some((_, share)) => share.push(document),
                None => shares.push((shard, vec![document])),
            }
        }
        Ok(shares)
    }
    /// The fields that find a document of a sharded target: those asked for, or `_id` and the shard key.
    fn on(&self, table: &RoutingTable) -> Vec<String> {
        asked_fields(self.stage.spec.as_document()).unwrap_or_else(|| {
            let key = table.key.fields().iter().map(|f| f.path.clone()).filter(|path| path != "_id");
            std::iter::once("_id".to_string()).chain(key).collect()
        })
    }

    /// Sends a shard its share. What is left was not touched.
    async fn merge_on(
        &self,
        placement: &Placement,
        shard: ShardId,
        command: &Document,
        mut share: Vec<DocBuf>,
    ) -> (Vec<DocBuf>, Result<()>) {
        loop {
            let n = batch_of(&share);
            match self.send(placement, &shard, command, &share[..n]).await {
                Ok(_) => {
                    self.state.lock().merged = true;
                    share.drain(..n);
                }
                Err(e) => {
                    self.state.lock().merged |= !is_stale(&e);
                    return (share, Err(e));
                }
            }
            if share.is_empty() {
                return (share, Ok(()));
            }
        }
    }
    fn merge_command(&self, placement: &Placement) -> Document {
        let mut spec = self.stage.spec.as_document().cloned().unwrap_or_default();
        spec.insert("into", self.target_document());
        let mut command = self.command();
        if let Some(table) = &placement.table {
            if !spec.contains_key("on") {
                command.push("documentKey", true);
            }
            let on = self.on(table).into_iter().map(Value::from).collect();
            spec.insert("on", Value::Array(on));
        }
        command.push("stage", doc! { "$merge": spec });
        command
    }

    async fn out(&self, mut batch: Vec<DocBuf>, end: bool) -> Result<()> {
        loop {
            let placement = self.placement().await?;
            let n = batch_of(&batch);
            let last = n == batch.len();
            match placement.alone.is_some() {
                true => self.out_placed(&placement, &batch[..n], end && last).await?,
                false => self.out_batch(&placement, &batch[..n], end && last).await?,
            }
            batch.drain(..n);
            if last {
                return Ok(());
            }
        }
    }
    async fn out_batch(&self, placement: &Placement, batch: &[DocBuf], end: bool) -> Result<()> {
        let shard = placement.home().clone();
        let mut spec = self.stage.spec.as_document().cloned().unwrap_or_default();
        spec.insert("db", self.target.db.as_str());
        spec.insert("coll", self.target.collection.as_str());
        let mut command = self.command();
        command.push("stage", doc! { "$out": spec });
        command.push("end", end);
        let beside = self.state.lock().beside.clone();
        match beside {
            _ if self.state.lock().placed.is_some() => {
                bail!(
                    QUERY_PLAN_KILLED,
                    "{} was brought back to its database's primary while $out wrote to it",
                    self.ns
                )
            }
            Some((begun, _)) if begun != shard => {
                bail!(QUERY_PLAN_KILLED, "the primary of {} moved while $out wrote to it", self.target.db)
            }
            Some((_, name)) => command.push("temporary", name),
            None => {}
        }
        let reply = self.send(placement, &shard, &command, batch).await?;
        self.state.lock().beside = reply.doc().get_str("temporary").map(|name| (shard, name.to_string()));
        Ok(())
    }

    /// The same where the catalog says where the target is.
    async fn out_placed(&self, placement: &Placement, batch: &[DocBuf], end: bool) -> Result<()> {
        if self.stage.spec.as_document().is_some_and(|d| d.contains_key("timeseries")) {
            let text = format!(
                "$out with the option 'timeseries' needs a time-series collection, and {} is none",
                self.ns
            );
            return Err(Error::new(NO_SERIES, text));
        }
        if self.state.lock().beside.is_some() {
            bail!(QUERY_PLAN_KILLED, "{} was moved by itself while $out wrote to it", self.ns);
        }
        let begun = self.state.lock().placed.clone();
        let beside = match begun {
            Some(beside) => beside,
            None => {
                let beside = Beside::open(self.task, &self.target, placement).await?;
                self.state.lock().placed = Some(beside.clone());
                beside
            }
        };
        let more = take(self.task.body(), &["maxTimeMS", "bypassDocumentValidation", "writeConcern"]);
        self.note_concern(beside.insert(self.task, batch, &more).await?);
        if end {
            beside.put_in_place(self.task, &self.target).await?;
            self.state.lock().placed = None;
        }
        Ok(())
    }

    fn target_document(&self) -> Document {
        doc! { "db": self.target.db.as_str(), "coll": self.target.collection.as_str() }
    }
    /// What every batch is sent with.
    fn command(&self) -> Document {
        let mut command = doc! { "_shardsvrWriteOutput": self.target.collection.as_str() };
        let taken = ["maxTimeMS", "bypassDocumentValidation", "writeConcern", "isMapReduceCommand"];
        command.0.extend(take(self.task.body(), &taken));
        command.push("runtimeConstants", constants(self.task));
        command.0.extend(self.surroundings.get().cloned().unwrap_or_default().0);
        command
    }
    async fn send(
        &self,
        placement: &Placement,
        shard: &str,
        command: &Document,
        documents: &[DocBuf],
    ) -> Result<DocBuf> {
        let body = self.task.own(command, &self.target.db, &placement.versions(shard));
        let documents: Vec<Doc<'_>> = documents.iter().map(DocBuf::doc).collect();
        let call = Call { sequence: Some(("documents", &documents)), ..Call::new(shard, body.doc()) };
        let reply = self.task.write_call(call).await.map_err(|e| e.error)?;
        self.note_concern(reply.doc().get_document("writeConcernError").map(Doc::to_document));
        Ok(reply)
    }
    /// Of all batches the client hears the first.
    fn note_concern(&self, error: Option<Document>) {
        let mut state = self.state.lock();
        state.concern_error = state.concern_error.take().or(error);
    }

    /// The reply, or the end of what was begun.
    async fn finish(self, ns: &str, done: Result<()>) -> Result<DocBuf> {
        if let Err(e) = done {
            self.give_up().await;
            return Err(match is_stale(&e) && self.state.lock().merged {
                true => err!(
                    QUERY_PLAN_KILLED,
                    "$merge has written a part of its documents :: caused by :: {}",
                    e.message
                ),
                false => e,
            });
        }
        let concern_error = self.state.lock().concern_error.take();
        Ok(DocWriter::build(|w| {
            w.document_with("cursor", |w| {
                w.array_with("firstBatch", |_| {});
                w.i64("id", 0);
                w.string("ns", ns);
            });
            if let Some(e) = &concern_error {
                w.document("writeConcernError", e.to_doc_buf().doc());
            }
            w.double("ok", 1.0);
        }))
    }
    /// Drops the collection beside the target. Where that fails the collection stays, under a name that tells what it is.
    async fn give_up(&self) {
        let placed = self.state.lock().placed.take();
        if let Some(placed) = placed {
            placed.give_up(self.task).await;
        }
        let Some((shard, name)) = self.state.lock().beside.take() else { return };
        let command = doc! {
            "_shardsvrWriteOutput": (self.target.collection.as_str()), "temporary": name, "drop": true,
        };
        let body = self.task.own(&command, &self.target.db, &Default::default());
        // What the pipeline failed with is what the client learns.
        let _ = self.task.router.cluster.call(Call::new(&shard, body.doc())).await;
    }
}

/// What a shard must know of the pipeline to run the stage.
fn surroundings(run: &Run) -> Document {
    let values = run.names.iter().zip(run.vars.values());
    let bound = values.filter_map(|(name, v)| Some((name.clone(), doc! { "$literal": (v.clone()?) }.into())));
    let collation = run.collation.document().cloned().unwrap_or_else(|| doc! { "locale": "simple" });
    doc! { "let": (bound.collect::<Document>()), "collation": collation }
}

/// The `on` fields that the stage names.
fn asked_fields(spec: Option<&Document>) -> Option<Vec<String>> {
    match spec?.get("on")? {
        Value::String(field) => Some(vec![field.clone()]),
        Value::Array(fields) => Some(fields.iter().filter_map(|v| v.as_str().map(str::to_string)).collect()),
        _ => None,
    }
}

/// The fields asked for must hold the shard key: no index makes others unique over all shards.
fn check_fields(spec: Option<&Document>, table: &RoutingTable) -> Result<()> {
    let Some(asked) = asked_fields(spec) else { return Ok(()) };
    if table.key.fields().iter().all(|f| asked.contains(&f.path)) {
        return Ok(());
    }
    Err(Error::new(NO_UNIQUE_INDEX, "Cannot find index to verify that join fields will be unique"))
}

fn check_no_array(on: &[String], document: Doc<'_>) -> Result<()> {
    let is_array = |field: &&String| matches!(path::get(document, field), Some(ValueRef::Array(_)));
    match on.iter().find(is_array) {
        Some(field) => bail!(51185, "$merge write error: 'on' field '{field}' is an array"),
        None => Ok(()),
    }
}

/// How many of the documents go into one batch.
fn batch_of(documents: &[DocBuf]) -> usize {
    let mut bytes = 0;
    let fits = documents.iter().take(BATCH).take_while(|d| {
        bytes += d.bytes().len();
        bytes <= BATCH_BYTES
    });
    fits.count().max(1).min(documents.len())
}
