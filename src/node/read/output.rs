//! `$out` and `$merge` on this node.
//!
//! `$out` fills a collection beside the target and renames it over the target at the end, so that readers see either
//! the old contents or all of the new. `$merge` changes the target document by document.

use super::host::LocalHost;
use crate::exec::walk::{Context, Counters};
use crate::exec::{Budget, Taken, Walk};
use crate::write::aside::Aside;
use crate::write::insert::{Flags, Stored, insert_documents, normalized};
use crate::write::unit::{Origin, WriteUnit};
use crate::{Node, Operation, ddl};
use document::error::{STALE_DB_VERSION, STALE_SHARD_VERSION};
use document::{
    Collation, Doc, DocBuf, DocWriter, Document, Element, Error, Result, Value, ValueRef, bail, codes, doc,
    err, path,
};
use parking_lot::Mutex;
use query::QueryContext;
use query::expression::{Expression, Variables, Vars};
use query::matcher::Matcher;
use query::pipeline::{HostStage, Run};
use query::planner::{Request, plan};
use query::script::Scripts;
use query::update::{Outcome as Applied, Update, field_order};
use runtime::Instant;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use storage::{Collection, RecordId};

/// What the names of collections begin with that an `$out` is writing.
const OUTPUT: &str = "tmp.agg_out.";

/// A new name for what an `$out` collects for `target`. It is a plain one: what a kill leaves can be dropped like any other.
pub(crate) fn output_beside(node: &Node, target: &str) -> String {
    let (db, _) = storage::split_namespace(target);
    format!("{db}.{}", output_name(node.new_uuid()))
}

/// The name within its database.
pub fn output_name(random: [u8; 16]) -> String {
    format!("{OUTPUT}{}", uuid::Uuid::from_bytes(random))
}

/// Whether a collection is what an `$out` is writing, or has left, by its name: a client's may begin alike, but is not called by
/// a UUID.
pub fn is_output(ns: &str) -> bool {
    let random = storage::split_namespace(ns).1.strip_prefix(OUTPUT);
    random.is_some_and(|random| uuid::Uuid::try_parse(random).is_ok_and(|u| u.to_string() == random))
}

/// Documents changed in one commit.
const SLICE: usize = 128;
const SLICE_TIME_MAX: Duration = Duration::from_millis(1);

impl LocalHost {
    pub(super) async fn out(
        &self,
        target: &str,
        series: Option<&Document>,
        batch: Vec<DocBuf>,
        end: bool,
    ) -> Result<()> {
        let point = "hangWhileBuildingDocumentSourceOutBatch";
        self.node.failpoints.pause_operation(&self.op, point, target).await?;
        let result = match self.outputs_series(target, series) {
            true => Box::pin(self.out_series(target, series, batch, end)).await,
            false => self.out_batch(target, batch, end).await,
        };
        if result.is_err() {
            self.give_up().await;
        }
        result
    }

    /// Drops the collection beside the target. The operation that wrote it may be killed or late, so another one does.
    pub(super) async fn give_up(&self) {
        let Some(ns) = self.writing.temporary.lock().take() else { return };
        // What the pipeline failed with is what the client learns.
        let _ = ddl::collections::drop_collection(&self.node, &Operation::internal(), &ns, false).await;
    }

    async fn out_batch(&self, target: &str, batch: Vec<DocBuf>, end: bool) -> Result<()> {
        let (node, routed) = (&self.node, self.towards(target));
        // Nobody has heard of the collection beside the target, so nothing is known of its placement.
        let mut op = self.aside();
        op.received.database = routed.received.database;
        let op = &op;
        let begun = self.writing.temporary.lock().clone();
        let temporary = match begun {
            Some(ns) => ns,
            None => {
                let ns = self.begin_out(&routed, op, target).await?;
                *self.writing.temporary.lock() = Some(ns.clone());
                ns
            }
        };
        if !batch.is_empty() {
            let slot = node.namespaces.slot(&temporary);
            let docs: Vec<Doc<'_>> = batch.iter().map(|d| d.doc()).collect();
            let flags = Flags {
                ordered: true,
                keep_empty_timestamps: false,
                bypass_validation: self.writing.bypass_validation,
                from_migrate: false,
            };
            let outcome = insert_documents(node, op, &slot, &docs, flags).await?;
            if let Some(e) = outcome.first_error {
                return Err(e);
            }
        }
        if end {
            ddl::rename::put_in_place(node, &routed, &temporary, target).await?;
            self.writing.temporary.lock().take();
        }
        Ok(())
    }

    /// An empty collection with the target's options and indexes.
    async fn begin_out(&self, routed: &Operation, op: &Operation, target: &str) -> Result<String> {
        let node = &self.node;
        let ns = output_beside(node, target);
        let slot = node.namespaces.slot(target);
        let like = slot
            .read(routed, |s| {
                if s.view.is_some() {
                    bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Namespace {target} is a view, not a collection");
                }
                if s.capped.is_some() {
                    return Err(document::Error::new(
                        17152,
                        format!("namespace '{target}' is capped so it can't be used for $out"),
                    ));
                }
                Ok(s.collection.as_ref().map(|c| {
                    let indexes: Vec<Document> =
                        c.indexes().iter().skip(1).map(|i| ddl::indexes::complete(i.spec())).collect();
                    (c.meta().options.clone(), indexes)
                }))
            })
            .await?;
        let (options, indexes) = like.unwrap_or_default();
        ddl::collections::create_collection(node, op, &ns, options, None).await?;
        if !indexes.is_empty() {
            ddl::indexes::build_indexes(node, op, &node.namespaces.slot(&ns), &indexes, false).await?;
        }
        Ok(ns)
    }

    pub(super) async fn merge(
        &self,
        target: &str,
        spec: &Value,
        batch: Vec<DocBuf>,
        run: &Run,
    ) -> Result<()> {
        self.merge_as(&self.towards(target), target, spec, batch, run, None).await
    }

    /// The same by an operation with the versions to compare; where those are no longer compared, for `bound` alone.
    pub(super) async fn merge_as(
        &self,
        op: &Operation,
        target: &str,
        spec: &Value,
        batch: Vec<DocBuf>,
        run: &Run,
        bound: Option<&Bound>,
    ) -> Result<()> {
        let merge = Merge {
            bypass_validation: self.writing.bypass_validation,
            document_key: self.writing.document_key,
            ..Merge::parse(spec, run)?
        };
        let slot = self.node.namespaces.slot(target);
        if batch.is_empty() && !self.writing.merged.load(Relaxed) {
            slot.read(op, |s| merge.check_unique(s.collection.as_ref())).await?;
        }
        for slice in batch.chunks(SLICE) {
            let mut progress = Progress::default();
            while progress.merged < slice.len() {
                self.op.check_interrupt()?;
                self.pause_before_slice(target).await?;
                let written = self.node.write(op, &slot, |unit| {
                    if unit.state.view.is_some() {
                        bail!(
                            COMMAND_NOT_SUPPORTED_ON_VIEW,
                            "Namespace {target} is a view, not a collection"
                        );
                    }
                    match bound {
                        Some(bound) => bound.on(unit, |unit| merge.some(unit, slice, &mut progress)),
                        None => merge.some(unit, slice, &mut progress),
                    }
                });
                let written = written.await;
                let evaluate = |old: Doc<'_>| {
                    let doc = merge.stored(&self.node, slice[progress.merged].doc())?;
                    merge.updated(&self.node, old, doc.doc())
                };
                progress.aside.unless(written, evaluate).map_err(|e| self.past_retrying(e))?;
                self.writing.merged.fetch_or(progress.merged > 0, Relaxed);
            }
            if let Some(error) = progress.refused {
                return Err(error);
            }
        }
        Ok(())
    }

    async fn pause_before_slice(&self, target: &str) -> Result<()> {
        let point = "hangWhileBuildingDocumentSourceMergeBatch";
        self.node.failpoints.pause_operation(&self.op, point, target).await
    }

    /// A router runs a pipeline anew that was refused as stale: not one that has changed something.
    pub(super) fn past_retrying(&self, error: Error) -> Error {
        match error.is(STALE_SHARD_VERSION | STALE_DB_VERSION) && self.writing.merged.load(Relaxed) {
            true => err!(
                QUERY_PLAN_KILLED,
                "$merge has written a part of its documents :: caused by :: {}",
                error.message
            ),
            false => error,
        }
    }
}

/// # Errors
/// 51183 when a stage is a `$merge` that could not tell which document of its target each of its input stands for.
pub(super) async fn check_merge(node: &Node, op: &Operation, stage: &HostStage, run: &Run) -> Result<()> {
    let Some(target) = stage.namespace.as_ref().filter(|_| stage.name == "$merge") else { return Ok(()) };
    let merge = Merge::parse(&stage.spec, run)?;
    let slot = node.namespaces.slot(&target.to_string());
    slot.read(op, |s| merge.check_unique(s.collection.as_ref())).await
}

/// The target of a `$merge` by its UUID; none where the first document makes the collection.
pub(super) struct Bound(Mutex<Option<[u8; 16]>>);

impl Bound {
    pub(super) fn to(unit: &WriteUnit<'_>) -> Bound {
        Bound(Mutex::new(unit.collection().map(Collection::uuid)))
    }
    /// Runs `f`, which may make the collection.
    ///
    /// # Errors
    /// QueryPlanKilled (175) when the target is gone, or another collection has its name; those of `f`.
    fn on(&self, unit: &mut WriteUnit<'_>, f: impl FnOnce(&mut WriteUnit<'_>) -> Result<()>) -> Result<()> {
        let mut bound = self.0.lock();
        if bound.is_some() && unit.collection().map(Collection::uuid) != *bound {
            bail!(QUERY_PLAN_KILLED, "{} was dropped or renamed while $merge wrote to it", unit.slot.ns);
        }
        let done = f(unit);
        *bound = unit.collection().map(Collection::uuid);
        done
    }
}

enum Matched {
    Replace,
    Merge,
    Keep,
    Fail,
    Pipeline(Vec<Value>),
}

/// How far a slice has been merged.
#[derive(Default)]
struct Progress {
    /// Its documents that are done with.
    merged: usize,
    /// What the pipeline makes of the document that the next one matches.
    aside: Aside<Applied>,
    /// The error of the first that was refused.
    refused: Option<Error>,
}

enum NotMatched {
    Insert,
    Discard,
    Fail,
}

/// A `$merge` stage.
struct Merge {
    on: Vec<String>,
    matched: Matched,
    not_matched: NotMatched,
    variables: Document,
    /// The stage's `let`.
    bound: Option<Document>,
    /// Names and values that the stage's `let` may use.
    names: Vec<String>,
    values: Vars,
    collation: Collation,
    scripts: Scripts,
    bypass_validation: bool,
    /// `on` is the shard key with `_id`.
    document_key: bool,
}

impl Merge {
    /// Merges documents, those of a pipeline until the latch has been held for long. One that violates a unique index does not
    /// keep the others out: its error is kept.
    fn some(&self, unit: &mut WriteUnit<'_>, documents: &[DocBuf], progress: &mut Progress) -> Result<()> {
        let started = Instant::now();
        let is_long = || matches!(self.matched, Matched::Pipeline(_)) && started.elapsed() >= SLICE_TIME_MAX;
        while progress.merged < documents.len() && !is_long() {
            match self.one(unit, documents[progress.merged].doc(), &progress.aside) {
                Err(e) if e.code == codes::DUPLICATE_KEY => drop(progress.refused.get_or_insert(e)),
                done => done?,
            }
            progress.merged += 1;
            progress.aside = Aside::default();
        }
        Ok(())
    }
    fn parse(spec: &Value, run: &Run) -> Result<Merge> {
        let empty = Document::new();
        let d = spec.as_document().unwrap_or(&empty);
        let on = match d.get("on") {
            Some(Value::String(s)) => vec![s.clone()],
            Some(Value::Array(a)) => a.iter().filter_map(|v| v.as_str().map(str::to_string)).collect(),
            _ => vec!["_id".to_string()],
        };
        let matched = match d.get("whenMatched") {
            Some(Value::Array(stages)) => Matched::Pipeline(stages.clone()),
            Some(Value::String(s)) => match s.as_str() {
                "replace" => Matched::Replace,
                "keepExisting" => Matched::Keep,
                "fail" => Matched::Fail,
                _ => Matched::Merge,
            },
            _ => Matched::Merge,
        };
        let not_matched = match d.get_str("whenNotMatched") {
            Some("discard") => NotMatched::Discard,
            Some("fail") => NotMatched::Fail,
            _ => NotMatched::Insert,
        };
        // Variables of the command are visible in an update pipeline.
        let mut variables = Document::new();
        for (name, value) in run.names.iter().zip(run.vars.values()) {
            variables.push(name.as_str(), value.clone().unwrap_or(Value::Null));
        }
        let bound = d.get_document("let").cloned();
        Ok(Merge {
            on,
            matched,
            not_matched,
            variables,
            bound,
            names: run.names.clone(),
            values: run.vars.clone(),
            collation: run.collation.clone(),
            scripts: run.scripts.clone(),
            bypass_validation: false,
            document_key: false,
        })
    }

    fn one(&self, unit: &mut WriteUnit<'_>, doc: Doc<'_>, aside: &Aside<Applied>) -> Result<()> {
        self.check_unique(unit.collection())?;
        let stored = self.stored(unit.node, doc)?;
        let doc = stored.doc();
        let mut filter = Document::new();
        for field in &self.on {
            let value = match path::get(doc, field) {
                Some(ValueRef::Array(_)) => {
                    bail!(51185, "$merge write error: 'on' field '{field}' is an array")
                }
                None | Some(ValueRef::Null | ValueRef::Undefined) if !self.document_key => bail!(
                    51132,
                    "$merge write error: 'on' field '{field}' cannot be missing, null, undefined or an array"
                ),
                None | Some(ValueRef::Undefined) => Value::Null,
                Some(v) => v.to_value(),
            };
            filter.push(field.as_str(), doc! { "$eq": value });
        }
        let filter = Matcher::parse(filter.to_doc_buf().doc(), &QueryContext::collated(&self.collation))?;
        match self.find(unit, &filter)? {
            Some(record) => self.matched(unit, record, doc, aside),
            None => match self.not_matched {
                NotMatched::Insert => {
                    unit.check_room()?;
                    if unit.collection().is_none() {
                        unit.create_implicitly()?;
                    }
                    let new = self.fresh(&filter, doc)?;
                    let stored = normalized(unit.node, new.as_ref().map_or(doc, DocBuf::doc), false)?;
                    let doc = stored.doc();
                    if !unit.owns(doc) {
                        bail!(INTERNAL_ERROR, "a router sent a document that belongs to another shard");
                    }
                    if !self.bypass_validation {
                        unit.check_validator(doc)?;
                    }
                    unit.insert(doc, Origin::default())?;
                    unit.trim_capped()
                }
                NotMatched::Discard => Ok(()),
                NotMatched::Fail => bail!(
                    13113,
                    "$merge could not find a matching document in the target collection for at least one document in the source collection"
                ),
            },
        }
    }

    /// A document as it is looked for and seen by the pipeline. One without `_id` gets it here where it is found by it, and
    /// else only when it is inserted.
    fn stored<'a>(&self, node: &Node, doc: Doc<'a>) -> Result<Stored<'a>> {
        match self.on.iter().any(|f| f == "_id") || doc.get("_id").is_some() {
            true => normalized(node, doc, false),
            false => Ok(Stored::As(doc)),
        }
    }

    /// What operators make of nothing (`$set`, `$setOnInsert`), where a mode has the document set by them; others insert it as it is.
    fn fresh(&self, filter: &Matcher, doc: Doc<'_>) -> Result<Option<DocBuf>> {
        match self.matched {
            Matched::Merge | Matched::Keep => {
                Ok(Some(merged(query::update::upsert_base(filter)?.doc(), doc)))
            }
            Matched::Replace | Matched::Fail | Matched::Pipeline(_) => Ok(None),
        }
    }

    /// There must be an index by which at most one document is found; asked before any document is looked at.
    fn check_unique(&self, collection: Option<&Collection>) -> Result<()> {
        if self.document_key || self.on == ["_id"] {
            return Ok(());
        }
        let mut specs = collection.into_iter().flat_map(|c| c.indexes()).map(|i| i.spec());
        let unique = specs.any(|spec| {
            spec.unique()
                && *spec.collation() == self.collation
                && spec.partial_filter().is_none()
                && spec.key().len() == self.on.len()
                && self.on.iter().all(|f| spec.key().contains_key(f))
        });
        match unique {
            true => Ok(()),
            false => bail!(51183, "Cannot find index to verify that join fields will be unique"),
        }
    }

    fn find(&self, unit: &WriteUnit<'_>, matcher: &Matcher) -> Result<Option<RecordId>> {
        let Some(collection) = unit.collection() else { return Ok(None) };
        let indexes = crate::exec::index_infos(collection);
        let request = Request { id_collation: collection.collation(), ..Request::new(matcher, &indexes) };
        let mut walk = Walk::new(plan(&request)?, None, None);
        let mut found = None;
        let mut context = Context { owner: None, counters: &mut Counters::default(), keys: None };
        walk.run(collection, &mut context, &mut Budget::of(u32::MAX, Duration::from_secs(60)), &mut |f| {
            found = Some(f.record);
            Ok(Taken::Last)
        })?;
        Ok(found)
    }

    fn matched(
        &self,
        unit: &mut WriteUnit<'_>,
        record: RecordId,
        doc: Doc<'_>,
        aside: &Aside<Applied>,
    ) -> Result<()> {
        let Some(old) = unit.collection().and_then(|c| c.get(record)).map(|d| d.to_owned()) else {
            return Ok(());
        };
        let new = match &self.matched {
            Matched::Keep => return Ok(()),
            Matched::Fail => {
                let ns = unit.slot.ns.clone();
                let pattern: Document =
                    self.on.iter().map(|field| (field.clone(), Value::Int32(1))).collect();
                let value = |field: &String| {
                    (field.clone(), path::get(doc, field).map_or(Value::Null, |v| v.to_value()))
                };
                let values: Document = self.on.iter().map(value).collect();
                return Err(err!(
                    DUPLICATE_KEY,
                    "$merge found a matching document in {ns}: E11000 duplicate key error"
                )
                .with_info(doc! { "keyPattern": pattern, "keyValue": values }));
            }
            Matched::Replace => {
                check_same_id(old.doc(), doc)?;
                with_id(old.doc(), doc)
            }
            Matched::Merge => {
                check_same_id(old.doc(), doc)?;
                merged(old.doc(), doc)
            }
            Matched::Pipeline(_) => {
                match aside.latched(old.doc(), || self.updated(unit.node, old.doc(), doc))? {
                    Applied::NoOp => return Ok(()),
                    Applied::Changed(new) => new,
                }
            }
        };
        if new.bytes() == old.bytes() {
            return Ok(());
        }
        if !unit.keeps_shard_key(old.doc(), new.doc()) {
            bail!(
                IMMUTABLE_FIELD,
                "$merge failed to update the matching document, did you attempt to modify the _id or the shard key?"
            );
        }
        crate::write::update::check_size(new.doc())?;
        if !self.bypass_validation {
            unit.check_validator(new.doc())?;
        }
        unit.check_room_of(old.doc(), new.doc())?;
        let prepared = unit.prepare_update(record, old.doc(), new.doc(), None)?.shorter_of(new.doc());
        unit.put(record, prepared, new.doc(), Origin::default())
    }

    /// What the pipeline makes of a document that `doc` has matched.
    fn updated(&self, node: &Node, old: Doc<'_>, doc: Doc<'_>) -> Result<Applied> {
        let Matched::Pipeline(stages) = &self.matched else { return Ok(Applied::NoOp) };
        let mut context = node.parse_context(Document::new());
        context.now_ms = self.values.now_ms;
        context.collation = self.collation.clone();
        context.scripts = self.scripts.clone();
        for (name, value) in self.variables.iter() {
            context.variables.push(name, value.clone());
        }
        self.bind(&mut context.variables, doc)?;
        Update::parse(&Value::Array(stages.clone()), &[], &context)?.apply(old, None, false)
    }

    /// Binds `$$new`, which is the document, and what `let` gives for it. A variable without a value is not defined.
    fn bind(&self, variables: &mut Document, doc: Doc<'_>) -> Result<()> {
        variables.insert("new", Value::Document(doc.to_document()));
        let names = self.names.iter().map(String::as_str);
        let scope = Variables::with_names(names).with_collation(&self.collation).with_scripts(&self.scripts);
        for (name, e) in self.bound.iter().flat_map(Document::iter) {
            let value = Expression::parse(e, &scope)?.eval(doc, &mut self.values.clone())?;
            if let Some(value) = value {
                variables.insert(name, value);
            }
        }
        Ok(())
    }
}

/// A document that brings an `_id` of its own must bring that of the document it goes into.
fn check_same_id(old: Doc<'_>, new: Doc<'_>) -> Result<()> {
    match (old.get("_id"), new.get("_id")) {
        (Some(a), Some(b)) if document::compare::compare(a, b).is_ne() => bail!(
            IMMUTABLE_FIELD,
            "$merge failed to update the matching document, did you attempt to modify the _id or the shard key? :: caused by :: Performing an update on the path '_id' would modify the immutable field '_id'"
        ),
        _ => Ok(()),
    }
}

/// The new document under the old one's `_id`.
fn with_id(old: Doc<'_>, new: Doc<'_>) -> DocBuf {
    DocWriter::build(|w| {
        if let Some(id) = old.element("_id") {
            w.element(&id);
        }
        for e in new.iter().filter(|e| e.name_bytes() != b"_id") {
            w.element(&e);
        }
    })
}

/// The old document with the new one's top-level fields set in it: what it lacks comes in the order in which operators visit fields.
fn merged(old: Doc<'_>, new: Doc<'_>) -> DocBuf {
    let mut added: Vec<Element<'_>> = new.iter().filter(|e| old.element(e.name()).is_none()).collect();
    added.sort_by_cached_key(|e| (e.name_bytes() != b"_id").then(|| field_order(e.name())));
    DocWriter::build(|w| {
        for e in old.iter() {
            match new.element(e.name()).filter(|_| e.name_bytes() != b"_id") {
                Some(replacement) => w.element(&replacement),
                None => w.element(&e),
            }
        }
        added.iter().for_each(|e| w.element(e));
    })
}
