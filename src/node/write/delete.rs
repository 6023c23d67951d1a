//! delete: statements `{q, limit, collation, hint}` with limit 0 (all) or 1.

use super::aside::Aside;
use super::shapes::{self, check_statements};
use super::statement::*;
use super::unit::{Origin, WriteUnit};
use crate::read::candidates::{Candidates, Search};
use crate::timeseries::{self, Series};
use crate::{Node, Operation, Request, namespace::Slot};
use document::error::Phase;
use document::{Doc, DocBuf, Document, Result, Value, bail, doc, err};
use query::QueryContext;
use query::matcher::Matcher;
use query::planner::Hint;
use query::sort::SortSpec;
use runtime::Instant;
use std::time::Duration;
use storage::RecordId;

const SLICE_TIME_MAX: Duration = Duration::from_millis(1);
const SEARCHES_MAX: usize = 100;

/// One parsed statement; findAndModify's remove is one with a sort.
pub struct DeleteStatement {
    pub filter: Matcher,
    pub id: Option<Value>,
    pub one: bool,
    pub sort: Option<SortSpec>,
    pub hint: Option<Hint>,
    /// Whether a document matches.
    pub aside: Aside<bool>,
    /// The time series that the collection is, and which of its buckets can hold what matches.
    pub series: Option<(Series, Matcher)>,
}

/// Runs a `delete` command; answers the reply's members without `ok`.
pub async fn delete(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    check_writable(&ns)?;
    node.check_write_concern(op)?;
    check_statements(request, &shapes::DELETE, "deletes", &shapes::DELETE_STATEMENT)?;
    let statements: Vec<Doc<'_>> = request.documents("deletes").collect();
    check_batch(request.body, statements.len())?;
    let slot = node.namespaces.slot(&ns);
    if let Err(e) = node.check_uuid(request.body, &slot) {
        return Outcome::refused(op, ordered(request.body), statements.len(), e)
            .map(|outcome| outcome.reply(false));
    }
    let variables = crate::read::command_variables(node, request.body)?;
    let series = timeseries::named(node, op, &slot, request.body).await?;
    let checkout = node.sessions.check_out(node, op).await?;
    let mut outcome = Outcome::default();
    for (index, raw) in statements.iter().enumerate() {
        between_statements(op, index).await?;
        let stmt = statement_id(op, index);
        let done = match executed_before(checkout.as_ref(), stmt)? {
            Some(_) => {
                outcome.retried.push(stmt);
                Ok(1)
            }
            None => match DeleteStatement::parse(node, (&slot, series.as_ref()), *raw, &variables) {
                Ok(s) if !s.one && op.is_retryable_write() => {
                    Err(err!(INVALID_OPTIONS, "Cannot use retryable writes with limit=0"))
                }
                Ok(s) => run(node, op, &slot, &s, stmt).await,
                Err(e) => Err(e),
            },
        };
        match done {
            Ok(n) => outcome.n += n,
            Err(e) if ends_command_of(op, &e) => return Err(e),
            Err(e) => {
                outcome.fail(index, &e);
                if stops(op, ordered(request.body)) {
                    break;
                }
            }
        }
    }
    Ok(outcome.reply(false))
}

impl DeleteStatement {
    /// Reads a statement on a collection, of which is said whether it is a time series.
    pub fn parse(
        node: &Node,
        (slot, series): (&Slot, Option<&Series>),
        raw: Doc<'_>,
        variables: &Document,
    ) -> Result<DeleteStatement> {
        let missing = |f: &str| {
            err!(IDL_FAILED_TO_PARSE, "BSON field 'delete.deletes.{f}' is missing but a required field")
        };
        let q = raw.get_document("q").ok_or_else(|| missing("q"))?;
        let limit = raw.get("limit").ok_or_else(|| missing("limit"))?;
        let one = limit.truthy();
        let mut context = node.parse_context_on(slot, raw.get_document("collation"), variables.clone())?;
        node.note_text_index(&mut context, slot, q);
        Ok(DeleteStatement {
            series: with_filter(series.cloned(), q, &context)?,
            // A hint must name an index even where `_id` would do.
            id: crate::read::pinned_id(q, &context, slot).filter(|_| raw.get_present("hint").is_none()),
            filter: Matcher::parse_checked(q, &context)?,
            one,
            sort: None,
            hint: crate::read::parse_hint(raw)?,
            aside: Aside::default(),
        })
    }
    /// See [`Aside::unless`].
    fn unless_aside<T>(&self, written: Result<T>) -> Result<Option<T>> {
        self.aside.unless(written, |old| self.filter.matches(old))
    }
}

/// The time series that the collection is, and the filter of its buckets.
pub fn with_filter(
    series: Option<Series>,
    q: Doc<'_>,
    context: &QueryContext,
) -> Result<Option<(Series, Matcher)>> {
    let Some(series) = series else { return Ok(None) };
    let buckets = timeseries::delete::bucket_filter(&series, q, context)?;
    Ok(Some((series, buckets)))
}

/// Runs one statement; answers how many documents went.
pub async fn run(node: &Node, op: &Operation, slot: &Slot, s: &DeleteStatement, stmt: i32) -> Result<i64> {
    if let Some(held) = node.failpoints.hold(op, "hangDuringBatchRemove", &slot.ns) {
        held.await?;
    }
    node.failpoints.fail_if_set("failAllRemoves")?;
    if let Some(series) = &s.series {
        return Ok(Box::pin(timeseries::delete::delete(node, op, series, s, stmt, false)).await?.n);
    }
    check_no_view(slot)?;
    if s.one {
        return Ok(one(node, op, slot, s, stmt, false).await?.is_some() as i64);
    }
    let search = Search { filter: &s.filter, sort: None, hint: s.hint.as_ref() };
    let (_kept, mut candidates) = Candidates::open_for_many(node, op, slot, search).await?;
    let mut removed = 0;
    loop {
        let records = candidates.next(op).await?;
        if records.is_empty() {
            break;
        }
        let mut next = 0;
        while next < records.len() {
            let written = node
                .write_waiting(op, &candidates.received, slot, |unit| {
                    candidates.check_collection(unit)?;
                    let started = Instant::now();
                    while next < records.len() && started.elapsed() < SLICE_TIME_MAX {
                        removed += delete_record(unit, s, records[next], Origin::default())?.is_some() as i64;
                        next += 1;
                    }
                    Ok(())
                })
                .await;
            s.unless_aside(written)?;
        }
        crate::lane::give_way(op).await?;
    }
    Ok(removed)
}

/// Deletes one document that matches and answers it. `image` keeps it in the log entry for a retry.
pub async fn one(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    s: &DeleteStatement,
    stmt: i32,
    image: bool,
) -> Result<Option<DocBuf>> {
    if let Some(series) = &s.series {
        return Ok(Box::pin(timeseries::delete::delete(node, op, series, s, stmt, image)).await?.first);
    }
    if let Some(id) = &s.id {
        let holder = id.to_holder();
        loop {
            let written = node
                .write_waiting(op, &op.received, slot, |unit| {
                    let found = holder
                        .get("")
                        .and_then(|id| unit.collection()?.find_id(id))
                        .map(|(record, _)| record);
                    node.note_point(op, found.is_some());
                    found.map_or(Ok(None), |record| delete_with_image(unit, s, record, stmt, image))
                })
                .await;
            if let Some((gone, _)) = s.unless_aside(written)? {
                return Ok(gone);
            }
        }
    }
    for _ in 0..SEARCHES_MAX {
        let mut changed_away = false;
        let search = Search { filter: &s.filter, sort: s.sort.as_ref(), hint: s.hint.as_ref() };
        let mut candidates = Candidates::open(node, op, slot, search).await?;
        loop {
            let records = candidates.next(op).await.map_err(|e| e.at(Phase::Running))?;
            if records.is_empty() {
                break;
            }
            let gone = loop {
                let written = node
                    .write_waiting(op, &op.received, slot, |unit| {
                        for record in &records {
                            if let Some(old) = delete_with_image(unit, s, *record, stmt, image)? {
                                return Ok(Some(old));
                            }
                            changed_away = true;
                        }
                        Ok(None)
                    })
                    .await;
                if let Some((gone, _)) = s.unless_aside(written)? {
                    break gone;
                }
            };
            if gone.is_some() {
                return Ok(gone);
            }
        }
        if !changed_away {
            slot.read(op, |_| Ok(())).await?;
            return Ok(None);
        }
    }
    bail!(WRITE_CONFLICT, "the documents this delete matched kept changing")
}

fn delete_with_image(
    unit: &mut WriteUnit<'_>,
    s: &DeleteStatement,
    record: RecordId,
    stmt: i32,
    image: bool,
) -> Result<Option<DocBuf>> {
    let more = match unit.collection().and_then(|c| c.get(record)) {
        Some(old) if image => Some(doc! { "preImage": old }.to_doc_buf()),
        _ => None,
    };
    delete_record(
        unit,
        s,
        record,
        Origin { statement: Some(stmt), more: more.as_ref().map(|d| d.doc()), ..Origin::default() },
    )
}

fn delete_record(
    unit: &mut WriteUnit<'_>,
    s: &DeleteStatement,
    record: RecordId,
    origin: Origin<'_>,
) -> Result<Option<DocBuf>> {
    let Some(old) = unit.collection().and_then(|c| c.get(record)).map(|d| d.to_owned()) else {
        return Ok(None);
    };
    if !s.aside.latched(old.doc(), || s.filter.matches(old.doc()))? || !unit.owns(old.doc()) {
        return Ok(None);
    }
    let from_migrate = origin.from_migrate || unit.is_orphan(old.doc());
    unit.delete(record, Origin { from_migrate, ..origin })?;
    Ok(Some(old))
}
