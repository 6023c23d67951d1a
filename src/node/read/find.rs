//! find.
//!
//! The commonest request of all, one document by `_id`, is answered under the latch: no plan, no snapshot, no cursor, the
//! document's bytes copied once, from the record into the reply.

use super::fields::Fields;
use super::rows::Rows;
use super::tail::TailRows;
use super::{aggregate, aggregate::Asked, command_variables};
use crate::cursor::{Account, Cursor};
use crate::exec::query::ownership;
use crate::exec::sorter::Means;
use crate::exec::{Batch, Opened, Query, Shape, Wanted};
use crate::namespace::Slot;
use crate::operation::ReadLevel;
use crate::{Node, Operation, Request};
use document::error::Phase;
use document::{Collation, Doc, DocWriter, Document, Result, Value, ValueRef, bail};
use query::expression::Constants;
use query::matcher::Matcher;
use query::pipeline::{index_key, sort_key};
use query::planner::Hint;
use query::projection::Projection;
use query::sort::SortSpec;
use std::sync::Arc;

/// Documents in a first batch when the client does not say.
pub const FIRST_BATCH: u64 = 101;

const FIELDS: Fields = Fields { command: "find" };

/// The fields of a find, still raw.
#[derive(Clone, Copy, Default)]
pub struct FindCommand<'a> {
    pub filter: Option<Doc<'a>>,
    pub sort: Option<Doc<'a>>,
    pub projection: Option<Doc<'a>>,
    pub hint: Option<ValueRef<'a>>,
    pub skip: u64,
    pub limit: u64,
    pub batch_size: Option<u64>,
    pub single_batch: bool,
    pub min: Option<Doc<'a>>,
    pub max: Option<Doc<'a>>,
    pub return_key: bool,
    pub show_record_id: bool,
    pub no_timeout: bool,
    pub tailable: bool,
    pub await_data: bool,
    /// `None`: as the parameter says.
    pub allow_disk_use: Option<bool>,
    pub collation: Option<Doc<'a>>,
    /// It says by its UUID which collection it means.
    pub names_uuid: bool,
    /// Something beside filter, projection, limit and batch size was given.
    pub(crate) rare: bool,
}

impl<'a> FindCommand<'a> {
    /// Reads the command in one pass.
    ///
    /// # Errors
    /// 40415 for unknown fields, 14 for wrong types, 2 for negative numbers.
    pub fn parse(body: Doc<'a>) -> Result<FindCommand<'a>> {
        let mut out = FindCommand::default();
        for e in body.iter().skip(1) {
            if e.name() != "filter" && matches!(e.value(), ValueRef::Null | ValueRef::Undefined) {
                FIELDS.known_null(e.name())?;
                continue;
            }
            match e.name() {
                "filter" => out.filter = Some(FIELDS.document(&e)?),
                "projection" => out.projection = Some(FIELDS.document(&e)?).filter(|d| !d.is_empty()),
                "limit" => out.limit = FIELDS.count(&e)?,
                "batchSize" => out.batch_size = Some(FIELDS.count(&e)?),
                "singleBatch" => out.single_batch = FIELDS.bool(&e)?,
                "allowDiskUse" => {
                    let allowed = FIELDS.bool(&e)?;
                    out.set(|o| &mut o.allow_disk_use, Some(allowed));
                }
                "allowPartialResults" | "oplogReplay" => drop(FIELDS.bool(&e)?),
                "term" if !matches!(e.value(), ValueRef::Int64(_)) => {
                    return Err(FIELDS.wrong_type(&e, "long"));
                }
                "$_internalReadAtClusterTime"
                | "ntoreturn"
                | "term"
                | "querySettings"
                | "includeQueryStatsMetrics" => {}
                "sort" => out.set(|o| &mut o.sort, Some(FIELDS.document(&e)?).filter(|d| !d.is_empty())),
                "skip" => {
                    let skip = FIELDS.count(&e)?;
                    out.set(|o| &mut o.skip, skip);
                }
                "hint" => out.set(|o| &mut o.hint, Some(e.value())),
                "min" => out.set(|o| &mut o.min, Some(FIELDS.document(&e)?).filter(|d| !d.is_empty())),
                "max" => out.set(|o| &mut o.max, Some(FIELDS.document(&e)?).filter(|d| !d.is_empty())),
                "returnKey" => {
                    let v = FIELDS.bool(&e)?;
                    out.set(|o| &mut o.return_key, v);
                }
                "showRecordId" => {
                    let v = FIELDS.bool(&e)?;
                    out.set(|o| &mut o.show_record_id, v);
                }
                "noCursorTimeout" => out.no_timeout = FIELDS.bool(&e)?,
                "tailable" => {
                    let v = FIELDS.bool(&e)?;
                    out.set(|o| &mut o.tailable, v);
                }
                "collectionUUID" => {
                    out.names_uuid = true;
                    out.rare = true;
                }
                "awaitData" => out.await_data = FIELDS.bool(&e)?,
                "let" => {
                    FIELDS.document(&e)?;
                    out.rare = true;
                }
                "collation" => {
                    let named = Some(FIELDS.document(&e)?).filter(|d| !d.is_empty());
                    out.set(|o| &mut o.collation, named);
                }
                name => FIELDS.unknown(name)?,
            }
        }
        if out.await_data && !out.tailable {
            bail!(FAILED_TO_PARSE, "Cannot set 'awaitData' without also setting 'tailable'");
        }
        Ok(out)
    }
    fn set<T>(&mut self, field: impl FnOnce(&mut Self) -> &mut T, value: T) {
        *field(self) = value;
        self.rare = true;
    }
    /// The single `_id` that is asked for, where nothing else is.
    fn point(&self) -> Option<ValueRef<'a>> {
        if self.rare || self.batch_size == Some(0) || self.asks_index_key() {
            return None;
        }
        let mut fields = self.filter?.iter();
        let first = fields.next().filter(|e| e.name_bytes() == b"_id")?;
        if fields.next().is_some() {
            return None;
        }
        match first.value() {
            ValueRef::Document(d) if d.iter().next().is_some_and(|e| e.name().starts_with('$')) => None,
            ValueRef::Regex(..) | ValueRef::Array(_) | ValueRef::Undefined => None,
            v => Some(v),
        }
    }
    /// Whether the projection shows the keys by which documents are found.
    fn asks_index_key(&self) -> bool {
        self.projection.is_some_and(index_key::is_asked_by)
    }
    /// Documents in the first batch.
    pub fn first_batch(&self) -> usize {
        let size = self.batch_size.unwrap_or(FIRST_BATCH);
        // A single batch with a limit holds all that is asked for.
        let size =
            if self.batch_size.is_none() && self.single_batch && self.limit > 0 { self.limit } else { size };
        usize::try_from(size).unwrap_or(usize::MAX)
    }
}

impl Fields {
    /// A null field counts as absent, but its name must be known all the same.
    fn known_null(&self, name: &str) -> Result<()> {
        const KNOWN: &[&str] = &[
            "filter",
            "projection",
            "limit",
            "batchSize",
            "singleBatch",
            "sort",
            "skip",
            "hint",
            "min",
            "max",
            "returnKey",
            "showRecordId",
            "noCursorTimeout",
            "tailable",
            "awaitData",
            "let",
            "collation",
            "allowDiskUse",
            "allowPartialResults",
            "oplogReplay",
            "ntoreturn",
            "term",
            "collectionUUID",
        ];
        if KNOWN.contains(&name) { Ok(()) } else { self.unknown(name) }
    }
}

/// A find's text, parsed.
pub struct Parsed {
    pub filter: Matcher,
    pub sort: Option<SortSpec>,
    pub projection: Option<Projection>,
    pub hint: Option<Hint>,
    pub min: Option<Document>,
    pub max: Option<Document>,
    pub collation: Collation,
    sort_means: Means,
}

impl Parsed {
    pub fn of(
        node: &Node,
        op: &Operation,
        slot: &Slot,
        command: &FindCommand<'_>,
        body: Doc<'_>,
    ) -> Result<Parsed> {
        let variables = command_variables(node, body)?;
        let mut context = node.parse_context_on(slot, command.collation, variables)?;
        node.note_text_index(&mut context, slot, command.filter.unwrap_or(Doc::empty()));
        context.constants = Constants::checked();
        let filter = Matcher::parse(command.filter.unwrap_or(Doc::empty()), &context)?;
        let sort = command.sort.map(SortSpec::parse).transpose()?;
        let sort = sort.map(|s| s.with_collation(&context.collation).with_text(filter.text())).transpose()?;
        let projection =
            command.projection.map(|p| sort_key::projection(p, sort.as_ref(), &filter, &context));
        let projection = projection.transpose()?;
        context.constants.check()?;
        let hint = command.hint.map(Hint::given).transpose()?.flatten();
        // `$near` sorts by distance.
        let sorts = sort.is_some() || filter.near().is_some();
        let sort_means = if sorts { node.sort_means(op, command.allow_disk_use) } else { Means::default() };
        Ok(Parsed {
            sort,
            collation: context.collation.clone(),
            min: command.min.map(|d| d.to_document()),
            max: command.max.map(|d| d.to_document()),
            filter,
            projection,
            hint,
            sort_means,
        })
    }
    /// What to ask of the collection; takes filter and projection out.
    pub fn wanted(&mut self, command: &FindCommand<'_>) -> Wanted<'_> {
        Wanted {
            filter: std::mem::take(&mut self.filter),
            sort: self.sort.as_ref(),
            hint: self.hint.as_ref(),
            min: self.min.as_ref(),
            max: self.max.as_ref(),
            collation: self.collation.clone(),
            sort_means: std::mem::take(&mut self.sort_means),
            shape: Shape {
                skip: command.skip,
                limit: Some(command.limit).filter(|n| *n > 0),
                projection: self.projection.take(),
                return_key: command.return_key,
                show_record_id: command.show_record_id,
                index_key: command.asks_index_key(),
            },
            ..Wanted::default()
        }
    }
}

/// Runs a `find` command; writes the reply's `cursor`.
pub async fn find(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    request: Request<'_>,
    w: &mut DocWriter<'_>,
) -> Result<()> {
    let ns = super::target(node, &request)?;
    let command = FindCommand::parse(request.body)?;
    op.check_interrupt()?;
    node.await_readable(op, node.area_of(&ns)).await?;
    node.failpoints.pause_operation(op, "waitInFindBeforeMakingBatch", &ns).await?;
    let slot = node.namespaces.slot(&ns);
    if command.names_uuid {
        node.check_uuid(request.body, &slot)?;
    }
    if op.read_concern.level != ReadLevel::Snapshot
        && let Some(id) = command.point()
        && by_id(node, op, &slot, &command, id, &ns, w).await?
    {
        return Ok(());
    }
    node.heed_query_settings(op, &ns, request.body)?;
    // Boxed, so that a find by `_id` is not as large as all this.
    let found = Box::pin(by_plan(node, op, &slot, &ns, &command, request.body, w)).await;
    found.map_err(|e| e.while_running(|| format!("Executor error during find command: {ns}"), None))
}

/// A find that is more than one document by its `_id`.
async fn by_plan(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    slot: &Arc<Slot>,
    ns: &str,
    command: &FindCommand<'_>,
    body: Doc<'_>,
    w: &mut DocWriter<'_>,
) -> Result<()> {
    let mut parsed = Parsed::of(node, op, slot, command, body)?;
    let mut batch = Batch::new(command.first_batch());
    if command.tailable {
        let mut rows = tail(node, op, slot, command, &mut parsed).await?;
        rows.fill(node, op, &mut batch).await?;
        return answer(node, op, ns, command, body, rows, batch, w);
    }
    let rows = match super::pseudo::rows(node, op, ns, command, &mut parsed)? {
        Some(mut rows) => {
            rows.fill(node, op, &mut batch).await?;
            rows
        }
        None => match Query::open(node, op, slot, parsed.wanted(command), &mut batch).await? {
            Opened::Absent => Rows::empty(),
            Opened::Query(mut query) => {
                query.fill(node, op, &mut batch).await.map_err(|e| e.at(Phase::Running))?;
                Rows::Query(query)
            }
            Opened::View(_) => {
                let asked = on_view(node, ns, command, body)?;
                let mut rows = aggregate::start(node, op, asked, Some(&mut batch)).await?;
                rows.fill(node, op, &mut batch).await.map_err(|e| e.at(Phase::Running))?;
                rows
            }
        },
    };
    answer(node, op, ns, command, body, rows, batch, w)
}

/// The reply, with a cursor where there may be more.
#[allow(clippy::too_many_arguments)]
fn answer(
    node: &Node,
    op: &Arc<Operation>,
    ns: &str,
    command: &FindCommand<'_>,
    body: Doc<'_>,
    rows: Rows,
    batch: Batch,
    w: &mut DocWriter<'_>,
) -> Result<()> {
    let at = rows.read_time(op);
    let id = match rows.ended() || command.single_batch {
        true => 0,
        false => node.cursors.open(cursor(node, op, ns, rows, command, body, &batch), node.now_ms())?,
    };
    batch.write_cursor_at(w, "firstBatch", id, ns, None, at);
    Ok(())
}

fn cursor(
    node: &Node,
    op: &Operation,
    ns: &str,
    rows: Rows,
    command: &FindCommand<'_>,
    body: Doc<'_>,
    batch: &Batch,
) -> Cursor {
    Cursor {
        ns: ns.to_string(),
        session: op.session.as_ref().map(|s| s.lsid),
        reader: rows.reader(op),
        rows,
        no_timeout: command.no_timeout,
        transaction: op.transaction_number(),
        level: node.read_level(op),
        keeps_snapshot: op.transaction().is_some(),
        time_left: op.time_left(),
        account: Account::new(body, node.now_ms(), batch.count()),
    }
}

/// Answers a find by `_id` alone; false when the namespace needs the long way.
async fn by_id(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    command: &FindCommand<'_>,
    id: ValueRef<'_>,
    ns: &str,
    w: &mut DocWriter<'_>,
) -> Result<bool> {
    let projection = match command.projection {
        Some(p) => {
            let context = node.parse_context_on(slot, None, Document::new())?;
            let matcher = Matcher::parse(command.filter.unwrap_or(Doc::empty()), &context)?;
            Some(Projection::parse(p, &matcher, &context)?)
        }
        None => None,
    };
    slot.read(op, |state| {
        if state.view.is_some() || super::pseudo::is_pseudo(ns) {
            return Ok(false);
        }
        let found = state.collection.as_ref().and_then(|c| c.find_id(id)).map(|(_, d)| d);
        let found = match found {
            Some(d) if ownership(state, op).is_some_and(|o| !o.owns(d)) => None,
            other => other,
        };
        let projected = match (found, &projection) {
            (Some(d), Some(p)) => {
                let mut bytes = Vec::with_capacity(d.bytes().len());
                let running = || format!("Executor error during find command: {ns}");
                p.apply(d, &mut bytes).map_err(|e| e.at(Phase::Running).while_running(running, None))?;
                Some(bytes)
            }
            _ => None,
        };
        node.index_use.totals.note_point(found.is_some());
        node.note_point(op, found.is_some());
        node.index_use.note(ns, "_id_");
        w.document_with("cursor", |w| {
            w.array_with("firstBatch", |w| {
                if let Some(d) = projected.as_deref().map(Doc::from_validated).or(found) {
                    w.document("0", d);
                }
            });
            w.i64("id", 0);
            w.string("ns", ns);
        });
        Ok(true)
    })
    .await
}

/// The rows of a tailable find.
///
/// # Errors
/// BadValue (2) on what is not capped, or with an order of its own; InvalidPipelineOperator (168) on a view.
async fn tail(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    command: &FindCommand<'_>,
    parsed: &mut Parsed,
) -> Result<Rows> {
    let backwards =
        parsed.sort.as_ref().and_then(|s| s.natural()) == Some(query::planner::Direction::Backward);
    let ordered = parsed.sort.as_ref().is_some_and(|s| !s.is_empty() && s.natural().is_none());
    if backwards || ordered {
        bail!(BAD_VALUE, "cannot use tailable option with a sort other than {{$natural: 1}}");
    }
    if command.single_batch {
        bail!(BAD_VALUE, "cannot use tailable option with the 'singleBatch' option");
    }
    parsed.sort = None;
    if let Some(Rows::Oplog(rows)) = super::pseudo::rows(node, op, &slot.ns, command, parsed)? {
        return Ok(Rows::Tail(Box::new(TailRows::of_oplog(*rows, command.await_data))));
    }
    let (filter, projection) = (std::mem::take(&mut parsed.filter), parsed.projection.take());
    let rows = TailRows::of_capped(op, slot, filter, projection, command).await?;
    if rows.is_some() {
        node.index_use.note_scan(&slot.ns, true);
    }
    Ok(rows.map_or_else(Rows::empty, |rows| Rows::Tail(Box::new(rows))))
}

/// The aggregation that answers a find on a view.
pub fn on_view(node: &Node, ns: &str, command: &FindCommand<'_>, body: Doc<'_>) -> Result<Asked> {
    let asked = Asked::on(node, ns, body)?;
    let hint = command.hint.or(natural_order(command.sort));
    Ok(Asked {
        pipeline: view_pipeline(command)?,
        hint: hint.map(Hint::given).transpose()?.flatten(),
        allow_disk_use: command.allow_disk_use.unwrap_or(asked.allow_disk_use),
        ..asked
    })
}

/// A sort by `$natural`, which no stage can do: on a view it is a hint to read what is below in its own order.
pub fn natural_order(sort: Option<Doc<'_>>) -> Option<ValueRef<'_>> {
    sort.filter(|sort| sort.get("$natural").is_some()).map(ValueRef::Document)
}

/// The pipeline that answers a find on a view.
pub fn view_pipeline(command: &FindCommand<'_>) -> Result<Vec<Value>> {
    if command.min.is_some() || command.max.is_some() || command.return_key || command.show_record_id {
        bail!(INVALID_PIPELINE_OPERATOR, "Option not supported on views.");
    }
    let mut out: Vec<Value> = Vec::new();
    let mut stage = |name: &str, v: Value| out.push(Value::Document(Document(vec![(name.to_string(), v)])));
    if let Some(filter) = command.filter.filter(|f| !f.is_empty()) {
        stage("$match", Value::Document(filter.to_document()));
    }
    if let Some(sort) = command.sort.filter(|_| natural_order(command.sort).is_none()) {
        stage("$sort", Value::Document(sort.to_document()));
    }
    if command.skip > 0 {
        stage("$skip", Value::Int64(command.skip as i64));
    }
    if command.limit > 0 {
        stage("$limit", Value::Int64(command.limit as i64));
    }
    if let Some(projection) = command.projection {
        stage("$project", Value::Document(projection.to_document()));
    }
    Ok(out)
}
