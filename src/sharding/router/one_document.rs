//! Statements of one document that may concern several shards: the filter does not say on which the document is, or the
//! update gives it a shard key of another shard.
//!
//! ```text
//! aimed     the filter names one shard                  -> the statement, there
//! searched  all shards: one document that matches        -> the statement, held to that document, on its shard
//!           of a time series, one measurement            -> the statement, as it is, on the shard that has it
//!           none matches                                 -> an upsert inserts the new document where that belongs
//! moved     the shard has taken the document away and hands it back -> inserted where its new key belongs
//! ```
//!
//! All of it is one transaction: the client's, or one of the router's own ([`super::internal`]). A retryable write asks
//! every shard of the collection, whatever its filter says: the document that it has upserted may be outside of that.

use super::body::{Placement, batch, ok_reply, take};
use super::cluster::Call;
use super::collation;
use super::internal::{self, statement_ids, without};
use super::scatter::read_all;
use super::target::{self, Target};
use super::task::{Retry, Task, is_stale};
use super::timeseries::{self, Placed, Series};
use super::write::{Kind, Write, first_error};
use crate::chunk::ShardId;
use crate::routing::RoutingTable;
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Value, ValueRef, codes, doc, err};
use node::write::statement::MOVED;
use query::matcher::Matcher;
use query::projection::Projection;
use query::sort::SortSpec;
use query::update::Update;
use std::sync::Arc;

/// A statement of one document.
pub enum Statement<'s, 'a> {
    Write(&'s Write<'s, 'a>, usize),
    FindAndModify(&'s Task<'a>, &'s str),
}

/// Executes a statement, in the client's transaction if there is one. Returns the reply of the shard that did, or one made
/// here, whose indexes count from 0.
pub async fn run(task: &Task<'_>, statement: &Statement<'_, '_>) -> Result<DocBuf> {
    if !task.in_transaction() {
        return internal::run(task, statement).await;
    }
    let mut retry = Retry::default();
    loop {
        match statement.attempt(task, true).await {
            Err(e) if is_stale(&e) => retry.absorb(task, statement.ns(), e).await?,
            Ok(None) => return Ok(statement.nothing()),
            Ok(Some(reply)) => return Ok(reply),
            Err(e) => return Err(e),
        }
    }
}

impl Statement<'_, '_> {
    pub fn ns(&self) -> &str {
        match self {
            Statement::Write(write, _) => write.ns,
            Statement::FindAndModify(_, ns) => ns,
        }
    }
    /// The statement; of a findAndModify, the command.
    fn spec(&self) -> Doc<'_> {
        match self {
            Statement::Write(write, i) => write.statements[*i].doc(),
            Statement::FindAndModify(task, _) => task.body(),
        }
    }
    fn filter(&self) -> Doc<'_> {
        let name = if matches!(self, Statement::Write(..)) { "q" } else { "query" };
        self.spec().get_document(name).unwrap_or(Doc::empty())
    }
    fn upserts(&self) -> bool {
        self.spec().get("upsert").is_some_and(|v| v.truthy())
    }
    fn number(&self) -> i32 {
        match self {
            Statement::Write(write, i) => write.statement_id(*i),
            Statement::FindAndModify(task, _) => super::write::statement_id(task, 0),
        }
    }

    /// Executes the statement as part of `task`'s transaction. `None`: no shard has a document that matches, and that counts
    /// only if all were asked as of one time.
    pub async fn attempt(&self, task: &Task<'_>, at_one_time: bool) -> Result<Option<DocBuf>> {
        let at = timeseries::placed(task, self.ns()).await?;
        let placement = &at.placement;
        let Some(table) = placement.table.clone() else {
            return self.send(task, &at, placement.home(), self.spec()).await.map(Some);
        };
        let aim = self.aim(task, &at, &table)?;
        if let Some(shard) = self.goes_to(task, &at, &aim) {
            return self.send(task, &at, shard, self.spec()).await.map(Some);
        }
        let shards = if task.op.is_retryable_write() { placement.shards() } else { aim.shards };
        let done = match &at.series {
            Some(series) => self.on_measurement(task, &at, series, &shards).await?,
            None => match self.search(task, placement, &table, &shards).await? {
                Some(found) => Some(self.on_found(task, &at, &table, found.doc()).await?),
                None => None,
            },
        };
        match done {
            Some(reply) => Ok(Some(reply)),
            None if shards.len() > 1 && !at_one_time => Ok(None),
            None if self.upserts() => self.insert_new(task, placement, &table).await.map(Some),
            None => Ok(Some(self.nothing())),
        }
    }

    /// The shards that can have what the statement is about.
    pub(super) fn aim(&self, task: &Task<'_>, at: &Placed, table: &RoutingTable) -> Result<Target> {
        let context = collation::context(task, self.spec(), table)?;
        Ok(match &at.series {
            Some(series) => target::filter(table, series.key_filter(self.filter()).doc(), &context),
            None => target::filter(table, self.filter(), &context),
        })
    }
    /// The shard that executes the statement as it is, if one alone can: of a time series, any refuses what it does not take.
    pub(super) fn goes_to<'t>(&self, task: &Task<'_>, at: &Placed, aim: &'t Target) -> Option<&'t ShardId> {
        match aim.shards.as_slice() {
            [first, ..] if at.series.is_some() && !self.may_remove_measurement(task) => Some(first),
            [shard] if aim.key.is_some() || !self.upserts() => Some(shard),
            _ => None,
        }
    }

    fn may_remove_measurement(&self, task: &Task<'_>) -> bool {
        let spec = self.spec();
        let removes = match self {
            Statement::Write(write, _) => write.kind == Kind::Delete,
            Statement::FindAndModify(..) => spec.get("remove").is_some_and(|v| v.truthy()),
        };
        let sorted = spec.get_document("sort").is_some_and(|sort| !sort.is_empty());
        removes && !sorted && !task.op.is_in_transaction()
    }

    /// Finds a measurement that matches, and has its shard execute the statement: in one snapshot both find the same.
    async fn on_measurement(
        &self,
        task: &Task<'_>,
        at: &Placed,
        series: &Series,
        shards: &[ShardId],
    ) -> Result<Option<DocBuf>> {
        let (db, buckets) = series.buckets.split_once('.').unwrap_or((&series.buckets, ""));
        let mut command =
            doc! { "aggregate": buckets, "pipeline": series.search(self.filter()), "cursor": {} };
        command.0.extend(take(self.spec(), &["collation"]));
        self.search_arguments(task, &mut command);
        let ask = |shard: &ShardId| task.own(&command, db, &at.placement.versions(shard));
        let replies = read_all(task, shards, ask).await?;
        let Some((shard, _)) = replies.iter().find(|(_, reply)| batch(reply.doc()).next().is_some()) else {
            return Ok(None);
        };
        let reply = self.send(task, at, shard, self.spec()).await?;
        self.unless_gone(reply).map(Some)
    }

    async fn on_found(
        &self,
        task: &Task<'_>,
        at: &Placed,
        table: &Arc<RoutingTable>,
        found: Doc<'_>,
    ) -> Result<DocBuf> {
        let shard = target::document(table, found)?;
        let held = self.held_to(&target::identity(&table.key, found)?);
        let reply = self.send(task, at, &shard, held.doc()).await?;
        self.unless_gone(reply)
    }

    /// The reply of the shard on which something was found, if it found that, too.
    fn unless_gone(&self, reply: DocBuf) -> Result<DocBuf> {
        let n = match self {
            Statement::Write(..) => reply.doc().get_i64("n"),
            Statement::FindAndModify(..) => {
                reply.doc().get_document("lastErrorObject").and_then(|d| d.get_i64("n"))
            }
        };
        // The shard reads what it has found in the same snapshot; another writer would have been a conflict.
        if n == Some(0) && reply.doc().element("writeErrors").is_none() {
            return Err(err!(WRITE_CONFLICT, "the document that was found matches no more"));
        }
        Ok(reply)
    }

    /// The statement with its filter held to one document. Nothing is inserted if it is gone.
    fn held_to(&self, identity: &Document) -> DocBuf {
        let filter = self.filter();
        let held = DocWriter::build(|w| {
            identity.write_fields(w);
            if !filter.is_empty() {
                w.array_with("$and", |w| w.document("0", filter));
            }
        });
        with_filter(self.spec(), held.doc())
    }

    /// Sends a form of the statement to one shard; puts what that hands back where it belongs.
    pub(super) async fn send(
        &self,
        task: &Task<'_>,
        at: &Placed,
        shard: &str,
        form: Doc<'_>,
    ) -> Result<DocBuf> {
        let (placement, series) = (&at.placement, at.series.as_ref());
        match self {
            Statement::Write(write, i) => {
                write.one(task, *i, series).send_changed(placement, shard, 0, form).await
            }
            Statement::FindAndModify(..) => {
                let without =
                    ["query", "sort", "hint", "upsert", "stmtId", "stmtIds", "isTimeseriesNamespace"];
                let on_buckets = series.map(|series| series.renamed(task.body()));
                let command = on_buckets.as_ref().map_or(task.body(), DocBuf::doc);
                let body = task.forward_as(command, &without, &placement.versions(shard), |w| {
                    if series.is_some() {
                        w.bool("isTimeseriesNamespace", true);
                    }
                    for e in form.iter().filter(|e| without[..4].contains(&e.name())) {
                        w.element(&e);
                    }
                    if task.op.is_retryable_write() {
                        w.array_with("stmtIds", |w| w.i32("0", self.number()));
                    }
                    if task.in_transaction() {
                        w.bool("mayMoveDocument", true);
                    }
                });
                let brief = form.get_document("query").is_some_and(target::names_one);
                let call = Call { brief, ..Call::new(shard, body.doc()) };
                let reply = task.write_call(call).await.map_err(|e| e.error)?;
                put_moved(task, self.ns(), reply).await
            }
        }
    }

    /// What the statement did when it was executed before, on whichever shard.
    pub async fn executed_before(&self, task: &Task<'_>) -> Result<Option<DocBuf>> {
        let at = timeseries::placed(task, self.ns()).await?;
        let never = doc! { "_id": { "$in": [] } }.to_doc_buf();
        let never = with_filter(self.spec(), never.doc());
        for shard in at.placement.shards() {
            let reply = self.send(task, &at, &shard, never.doc()).await?;
            if ["retriedStmtIds", "retriedStmtId"].iter().any(|name| reply.doc().get(name).is_some()) {
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }

    fn nothing(&self) -> DocBuf {
        match self {
            Statement::Write(write, _) if write.kind == Kind::Update => {
                doc! { "n": 0, "nModified": 0, "ok": 1.0 }.to_doc_buf()
            }
            Statement::Write(..) => doc! { "n": 0, "ok": 1.0 }.to_doc_buf(),
            Statement::FindAndModify(task, _) => {
                let mut last = doc! { "n": 0 };
                if !task.get("remove").is_some_and(|v| v.truthy()) {
                    last.push("updatedExisting", false);
                }
                ok_reply(doc! { "lastErrorObject": last, "value": Value::Null })
            }
        }
    }

    /// Adds what every search carries.
    fn search_arguments(&self, task: &Task<'_>, command: &mut Document) {
        command.0.extend(take(task.body(), &["let", "maxTimeMS", "comment"]));
        if task.op.is_retryable_write() {
            command.push("stmtIds", statement_ids(self.number()));
        }
    }

    /// One document that matches; with `sort`, the first.
    async fn search(
        &self,
        task: &Task<'_>,
        placement: &Placement,
        table: &Arc<RoutingTable>,
        shards: &[ShardId],
    ) -> Result<Option<DocBuf>> {
        let spec = self.spec();
        let context = collation::context(task, spec, table)?;
        let sort = SortSpec::parse(spec.get_document("sort").unwrap_or(Doc::empty()))?;
        let sort = sort.with_collation(&context.collation);
        let (db, collection) = self.ns().split_once('.').unwrap_or((self.ns(), ""));
        let mut command =
            doc! { "find": collection, "filter": self.filter(), "limit": 1, "singleBatch": true };
        command.0.extend(take(spec, &["sort", "hint", "collation"]));
        self.search_arguments(task, &mut command);
        if sort.is_empty() {
            let mut projection: Document =
                table.key.fields().iter().map(|f| (f.path.clone(), Value::Int32(1))).collect();
            projection.insert("_id", 1);
            command.push("projection", projection);
        }
        let replies =
            read_all(task, shards, |shard| task.own(&command, db, &placement.versions(shard))).await?;
        first_of(replies, &sort)
    }

    /// An upsert that found nothing: the document it makes, inserted where it belongs.
    async fn insert_new(
        &self,
        task: &Task<'_>,
        placement: &Placement,
        table: &Arc<RoutingTable>,
    ) -> Result<DocBuf> {
        let new = self.new_document(task, table)?;
        let id = new.get("_id").map_or(Value::Null, |v| v.to_value());
        insert_at_owner(task, self.ns(), placement, table, new.doc(), self.number()).await?;
        let Statement::FindAndModify(outer, _) = self else {
            let upserted = document::array![{ "index": 0, "_id": id }];
            return Ok(doc! { "n": 1, "nModified": 0, "upserted": upserted, "ok": 1.0 }.to_doc_buf());
        };
        let last = doc! { "n": 1, "updatedExisting": false, "upserted": id };
        let value = match outer.get("new").is_some_and(|v| v.truthy()) {
            true => Value::from(projected(task, table, self.filter(), &new)?),
            false => Value::Null,
        };
        Ok(ok_reply(doc! { "lastErrorObject": last, "value": value }))
    }

    /// The document that the upsert inserts, with its `_id`.
    fn new_document(&self, task: &Task<'_>, table: &RoutingTable) -> Result<DocBuf> {
        let spec = self.spec();
        let mut context = collation::context(task, spec, table)?;
        let update = spec.get(if matches!(self, Statement::Write(..)) { "u" } else { "update" });
        let update = update.unwrap_or(ValueRef::Null);
        if let Some(c) = spec.get_document("c") {
            Update::take_constants(c, update, &mut context.variables)?;
        }
        let matcher = Matcher::parse(self.filter(), &context)?;
        let filters: Vec<Document> = spec
            .get("arrayFilters")
            .and_then(|v| v.as_array())
            .into_iter()
            .flat_map(|a| a.iter())
            .filter_map(|e| e.value().as_document().map(|d| d.to_document()))
            .collect();
        let update = match Update::of_supplied(spec, &context)? {
            Some(supplied) => supplied,
            None => Update::parse(&update.to_value(), &filters, &context)?,
        };
        let new = update.upsert_document(&matcher)?;
        Ok(task.router.with_id(new.doc()).unwrap_or(new))
    }
}

/// The statement, or the findAndModify, with another filter, and without what goes with a search.
pub fn with_filter(spec: Doc<'_>, filter: Doc<'_>) -> DocBuf {
    DocWriter::build(|w| {
        for e in spec.iter() {
            match e.name() {
                name @ ("q" | "query") => w.document(name, filter),
                "upsert" | "sort" | "hint" => {}
                _ => w.element(&e),
            }
        }
        if spec.get("q").is_none() && spec.get("query").is_none() {
            w.document("query", filter);
        }
    })
}

fn projected(task: &Task<'_>, table: &RoutingTable, filter: Doc<'_>, new: &DocBuf) -> Result<DocBuf> {
    let fields = take(task.body(), &["fields"]);
    let Some(spec) = fields.get_document("fields").filter(|f| !f.is_empty()) else { return Ok(new.clone()) };
    let context = collation::context(task, task.body(), table)?;
    let matcher = Matcher::parse(filter, &context)?;
    let projection = Projection::parse(spec.to_doc_buf().doc(), &matcher, &context)?;
    let mut out = Vec::new();
    projection.apply(new.doc(), &mut out)?;
    Ok(DocBuf::from_validated(out))
}

/// Inserts the document that a shard's reply hands back where it belongs; the reply without it. Only the insertion is
/// repeated when it went to the wrong place: the document is gone from where it was, so the statement would find nothing.
///
/// # Errors
/// DuplicateKey (11000) when the other shard has one of this `_id`; WriteConflict (112) when its place was not found in time. The
/// transaction is over whatever the error.
pub async fn put_moved(task: &Task<'_>, ns: &str, reply: DocBuf) -> Result<DocBuf> {
    let Some(moved) = reply.doc().get_document(MOVED) else { return Ok(reply) };
    let mut retry = Retry::default();
    let failed = loop {
        match insert_moved(task, ns, moved).await {
            Ok(()) => return Ok(without(reply.doc(), &[MOVED])),
            Err(e) if is_stale(&e) => match retry.absorb(task, ns, e).await {
                Ok(()) => {}
                Err(e) => break e,
            },
            Err(e) => break e,
        }
    };
    task.fail_transaction(failed.code);
    Err(match is_stale(&failed) {
        // As such it would have the statement repeated.
        true => err!(WRITE_CONFLICT, "the moved document was not put in its place: {}", failed.message)
            .with_label("TransientTransactionError"),
        false => failed,
    })
}

async fn insert_moved(task: &Task<'_>, ns: &str, moved: Doc<'_>) -> Result<()> {
    let placement = task.placement_for_write(ns).await?;
    let Some(table) = placement.table.clone() else {
        return Err(err!(CONFLICTING_OPERATION_IN_PROGRESS, "{ns} is not sharded any more"));
    };
    // Its statement is recorded where it was executed.
    insert_at_owner(task, ns, &placement, &table, moved, -1).await.map_err(|e| match takes_id(&e) {
        true => {
            let text = format!(
                "Failed to update document's shard key field. There is either an orphan for this document or _id for this \
                 collection is not globally unique. :: caused by :: {}",
                e.message
            );
            Error { message: text, ..e }
        }
        false => e,
    })
}

fn first_of(replies: Vec<(ShardId, DocBuf)>, sort: &SortSpec) -> Result<Option<DocBuf>> {
    let mut best: Option<(Vec<u8>, DocBuf)> = None;
    for (_, reply) in &replies {
        let Some(found) = batch(reply.doc()).next() else { continue };
        let key = sort.key(found)?;
        if best.as_ref().is_none_or(|(k, _)| key < *k) {
            best = Some((key, found.to_owned()));
        }
    }
    Ok(best.map(|(_, d)| d))
}

/// Inserts a document on the shard that owns it, as statement `stmt`.
async fn insert_at_owner(
    task: &Task<'_>,
    ns: &str,
    placement: &Placement,
    table: &Arc<RoutingTable>,
    new: Doc<'_>,
    stmt: i32,
) -> Result<()> {
    let (db, collection) = ns.split_once('.').unwrap_or((ns, ""));
    let shard = target::document(table, new)?;
    let documents = Value::Array(vec![Value::from(new)]);
    let mut command = doc! { "insert": collection, "documents": documents };
    command.0.extend(take(task.body(), &["bypassDocumentValidation", "comment", "maxTimeMS"]));
    if task.op.is_retryable_write() {
        command.push("stmtIds", statement_ids(stmt));
    }
    let body = task.own(&command, db, &placement.versions(&shard));
    let reply = task.write(&shard, &body).await?;
    first_error(reply.doc()).map_or(Ok(()), Err)
}

/// Whether an insert met another document of its `_id`.
pub fn takes_id(e: &Error) -> bool {
    let pattern = e.info.as_ref().and_then(|info| info.get_document("keyPattern"));
    e.code == codes::DUPLICATE_KEY && pattern.is_some_and(|p| p.keys().eq(["_id"]))
}
