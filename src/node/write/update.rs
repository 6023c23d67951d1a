//! update: statements `{q, u, upsert, multi, arrayFilters, collation, hint, sort, c, upsertSupplied}`.
//!
//! A statement that names its document by `_id` is evaluated under the latch. Any other finds its candidates outside,
//! on a snapshot; under the latch each is fetched and matched again, and the update applied to what it is *now*. A
//! single update whose candidates have all changed away searches again, so it misses no document that matched
//! throughout.

use super::aside::Aside;
use super::insert::{Stored, normalized};
use super::retry::{CHANGES_OWNER, kind_of};
use super::shapes::{self, check_statements};
use super::statement::*;
use super::unit::{Origin, WriteUnit};
use crate::exec::query::LATCHED_QUANTA;
use crate::read::candidates::{Candidates, Search};
use crate::sampling::samples::difference;
use crate::timeseries::{self, Series};
use crate::{Node, Operation, Request, namespace::Slot};
use document::{Collation, Doc, DocBuf, Document, Result, Value, ValueRef, bail, codes, doc, err, meter};
use query::matcher::Matcher;
use query::planner::Hint;
use query::sort::SortSpec;
use query::update::{Outcome as Applied, Update};
use runtime::Instant;
use std::sync::OnceLock;
use std::time::Duration;
use storage::RecordId;

const SLICE_TIME_MAX: Duration = Duration::from_millis(1);
/// How often a single update or an upsert searches again after others changed what it had found.
const SEARCHES_MAX: usize = 100;

/// One parsed statement.
pub struct UpdateStatement {
    pub filter: Filter,
    /// `_id` when the filter pins it.
    pub id: Option<Value>,
    pub update: Update,
    pub multi: bool,
    pub upsert: bool,
    /// What an upsert is made by, where the statement supplies its document.
    pub supplied: Option<Update>,
    pub sort: Option<SortSpec>,
    pub hint: Option<Hint>,
    /// The sample that the statement is: what it changes is noted.
    pub sample: Option<[u8; 16]>,
    pub aside: Aside<Option<Applied>>,
    /// The document that an upsert makes, with its `_id`.
    pub fresh: OnceLock<DocBuf>,
}

/// A statement's filter. One that says nothing but an `_id` is parsed only where more than finding that document is
/// asked of it, which is seldom.
pub enum Filter {
    Parsed(Matcher),
    OnlyId { q: DocBuf, parsed: OnceLock<Matcher> },
}

impl Filter {
    /// # Errors
    /// Those of [`Matcher::parse`].
    pub fn parse(q: Doc<'_>, context: &query::QueryContext) -> Result<Filter> {
        let mut fields = q.iter();
        let only_id = match (fields.next(), fields.next()) {
            (Some(id), None) => id.name_bytes() == b"_id" && is_plain(id.value()),
            _ => false,
        };
        Ok(match only_id && context.collation.is_simple() {
            true => Filter::OnlyId { q: q.to_owned(), parsed: OnceLock::new() },
            false => Filter::Parsed(Matcher::parse_checked(q, context)?),
        })
    }
    pub fn matcher(&self) -> Result<&Matcher> {
        match self {
            Filter::Parsed(matcher) => Ok(matcher),
            Filter::OnlyId { q, parsed } => {
                if parsed.get().is_none() {
                    // Nothing but a value to be equal to: no variable or clock has a part in it.
                    let _ = parsed.set(Matcher::parse(q.doc(), &query::QueryContext::default())?);
                }
                parsed.get().ok_or_else(|| err!(INTERNAL_ERROR, "a filter was not kept"))
            }
        }
    }
    /// Whether the document, which has the `_id` asked for if one was, matches; and the position that `$` means.
    fn accepts(&self, doc: Doc<'_>) -> Result<(bool, Option<usize>)> {
        match self {
            Filter::Parsed(matcher) => matcher.matches_with_position(doc),
            Filter::OnlyId { .. } => Ok((true, None)),
        }
    }
}

/// Whether a value in a filter stands for equality with itself.
fn is_plain(v: ValueRef<'_>) -> bool {
    matches!(
        v,
        ValueRef::Int32(_)
            | ValueRef::Int64(_)
            | ValueRef::Double(_)
            | ValueRef::String(_)
            | ValueRef::ObjectId(_)
            | ValueRef::Binary(..)
            | ValueRef::DateTime(_)
    )
}

/// What one statement did.
#[derive(Default, Debug)]
pub struct Done {
    pub matched: i64,
    pub modified: i64,
    pub upserted: Option<Value>,
    /// The document that is for another shard to have: see [`MOVED`].
    pub moved: Option<DocBuf>,
}

/// Runs an `update` command; answers the reply's members without `ok`.
pub async fn update(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    check_writable(&ns)?;
    node.check_write_concern(op)?;
    check_statements(request, &shapes::UPDATE, "updates", &shapes::UPDATE_STATEMENT)?;
    let statements: Vec<Doc<'_>> = request.documents("updates").collect();
    check_batch(request.body, statements.len())?;
    let slot = node.namespaces.slot(&ns);
    if let Err(e) = node.check_uuid(request.body, &slot) {
        return Outcome::refused(op, ordered(request.body), statements.len(), e)
            .map(|outcome| outcome.reply(true));
    }
    let variables = crate::read::command_variables(node, request.body)?;
    let bypass = request.body.get("bypassDocumentValidation").is_some_and(|v| v.truthy());
    let series = timeseries::named(node, op, &slot, request.body).await?;
    let checkout = node.sessions.check_out(node, op).await?;
    let mut outcome = Outcome::default();
    for (index, raw) in statements.iter().enumerate() {
        between_statements(op, index).await?;
        let stmt = statement_id(op, index);
        let done = match executed_before(checkout.as_ref(), stmt)? {
            Some(at) => {
                outcome.retried.push(stmt);
                done_before(node, at, stmt)
            }
            None => {
                let target = (&*slot, series.as_ref());
                parse_and_run(node, op, target, *raw, &variables, stmt, bypass).await
            }
        };
        match done {
            Ok(done) => {
                outcome.n += done.matched + done.upserted.is_some() as i64;
                outcome.modified += done.modified;
                outcome.moved = outcome.moved.or(done.moved);
                if let Some(id) = done.upserted {
                    outcome.upserted.push(doc! { "index": index as i32, "_id": id });
                }
            }
            Err(e) if ends_command_of(op, &e) => return Err(e),
            Err(e) => {
                outcome.fail(index, &e);
                if stops(op, ordered(request.body)) {
                    break;
                }
            }
        }
    }
    Ok(outcome.reply(true))
}

impl UpdateStatement {
    pub fn parse(node: &Node, slot: &Slot, raw: Doc<'_>, variables: &Document) -> Result<UpdateStatement> {
        let missing = |f: &str| {
            err!(IDL_FAILED_TO_PARSE, "BSON field 'update.updates.{f}' is missing but a required field")
        };
        let (mut q, mut u, mut hint) = (None, None, None);
        let mut variables = variables.clone();
        let mut filters: Vec<Document> = Vec::new();
        let (mut multi, mut upsert, mut sort) = (false, false, None);
        let (mut constants, mut sample) = (None, None);
        for e in raw.iter() {
            let v = e.value();
            match e.name_bytes() {
                b"q" => q = v.as_document(),
                b"u" => u = Some(v),
                b"c" => constants = v.as_document(),
                b"arrayFilters" => {
                    let items = v.as_array().into_iter().flatten();
                    filters =
                        items.filter_map(|e| e.value().as_document()).map(|d| d.to_document()).collect();
                }
                b"multi" => multi = v.truthy(),
                b"upsert" => upsert = v.truthy(),
                b"sort" => sort = v.as_document(),
                b"sampleId" => sample = v.as_uuid(),
                b"hint" if v != ValueRef::Null => hint = Some(v),
                _ => {}
            }
        }
        let (q, u) = (q.ok_or_else(|| missing("q"))?, u.ok_or_else(|| missing("u"))?);
        if let Some(c) = constants {
            Update::take_constants(c, u, &mut variables)?;
        }
        let mut context = node.parse_context_on(slot, raw.get_document("collation"), variables)?;
        node.note_text_index(&mut context, slot, q);
        let update = Update::parse(&u.to_value(), &filters, &context)?;
        if multi && update.is_replacement() {
            bail!(FAILED_TO_PARSE, "multi update is not supported for replacement-style update");
        }
        let sort = match sort {
            Some(_) if multi => bail!(FAILED_TO_PARSE, "Cannot specify sort with multi=true"),
            Some(s) if !s.is_empty() => {
                let text = Matcher::parse(q, &context)?.text().cloned();
                Some(SortSpec::parse(s)?.with_collation(&context.collation).with_text(text.as_ref())?)
            }
            _ => None,
        };
        Ok(UpdateStatement {
            // A hint must name an index even where `_id` would do.
            id: if hint.is_none() { crate::read::pinned_id(q, &context, slot) } else { None },
            filter: Filter::parse(q, &context)?,
            update,
            multi,
            upsert,
            supplied: Update::of_supplied(raw, &context)?,
            sort,
            hint: if hint.is_some() { crate::read::parse_hint(raw)? } else { None },
            sample,
            aside: Aside::default(),
            fresh: OnceLock::new(),
        })
    }

    /// Matches a document and updates it; `None` when it does not match.
    fn evaluate_now(&self, old: Doc<'_>) -> Result<Option<Applied>> {
        let (matches, position) = self.filter.accepts(old)?;
        match matches {
            true => self.update.apply(old, position, false).map(Some),
            false => Ok(None),
        }
    }
    /// The same under a latch.
    ///
    /// # Errors
    /// [`meter::OVERRUN`], among others: see [`UpdateStatement::unless_aside`].
    fn evaluate(&self, old: Doc<'_>) -> Result<Option<Applied>> {
        self.aside.latched(old, || self.evaluate_now(old))
    }
    /// The document that the statement's filter and update describe, as it will be stored. It depends on no stored document.
    fn describe(&self, node: &Node) -> Result<DocBuf> {
        let described =
            self.supplied.as_ref().unwrap_or(&self.update).upsert_document(self.filter.matcher()?)?;
        let changed = match normalized(node, described.doc(), false)? {
            Stored::As(_) => None,
            Stored::Changed(changed) => Some(changed),
        };
        Ok(changed.unwrap_or(described))
    }
    /// The same under a latch; once it is known it stays.
    ///
    /// # Errors
    /// [`meter::OVERRUN`], among others: see [`UpdateStatement::unless_aside`].
    fn described(&self, node: &Node) -> Result<&DocBuf> {
        if let Some(known) = self.fresh.get() {
            return Ok(known);
        }
        let described = meter::bounded(LATCHED_QUANTA, || self.describe(node))?;
        Ok(self.fresh.get_or_init(|| described))
    }
    /// What a write came to; `None` when a document had to be evaluated without the latch first, which has been done: the
    /// write is to be repeated.
    ///
    /// # Errors
    /// The write's, and the evaluation's.
    pub fn unless_aside<T>(&self, node: &Node, written: Result<T>) -> Result<Option<T>> {
        match written {
            Err(e) if e.code == meter::OVERRUN && !self.aside.is_wanted() => {
                let described = self.describe(node)?;
                self.fresh.get_or_init(|| described);
                Ok(None)
            }
            other => self.aside.unless(other, |old| self.evaluate_now(old)),
        }
    }
}

/// What an update did that was executed before, from its log entry.
pub fn done_before(node: &Node, at: protocol::session::EntryTime, stmt: i32) -> Result<Done> {
    let entry = node.statement_entry(at, stmt)?;
    Ok(match kind_of(entry.doc()) {
        "i" => Done {
            upserted: entry.doc().get_document("o").and_then(|o| o.get("_id")).map(|v| v.to_value()),
            ..Done::default()
        },
        "u" => Done { matched: 1, modified: 1, ..Done::default() },
        _ => Done { matched: 1, ..Done::default() },
    })
}

/// Runs one statement `{q, u, ..}` on a collection, of which is said whether it is a time series.
///
/// # Errors
/// Those of [`UpdateStatement::parse`] and [`run`], and for a time series InvalidOptions (72).
pub(super) async fn parse_and_run(
    node: &Node,
    op: &Operation,
    (slot, series): (&Slot, Option<&Series>),
    raw: Doc<'_>,
    variables: &Document,
    stmt: i32,
    bypass: bool,
) -> Result<Done> {
    if let Some(series) = series {
        return Box::pin(timeseries::update::update(node, op, series, raw, variables, stmt)).await;
    }
    let s = UpdateStatement::parse(node, slot, raw, variables)?;
    run(node, op, slot, &s, stmt, bypass).await
}

/// Runs one statement.
///
/// # Errors
/// InvalidOptions (72) for one of many documents that is to be retryable, among others.
pub async fn run(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    s: &UpdateStatement,
    stmt: i32,
    bypass: bool,
) -> Result<Done> {
    if let Some(held) = node.failpoints.hold(op, "hangDuringBatchUpdate", &slot.ns) {
        held.await?;
    }
    node.failpoints.fail_if_set("failAllUpdates")?;
    if s.multi && op.is_retryable_write() {
        bail!(INVALID_OPTIONS, "Cannot use retryable writes with multi=true");
    }
    if let Some(id) = s.id.as_ref().filter(|_| !s.multi) {
        return by_id(node, op, slot, s, id, stmt, bypass).await;
    }
    check_no_view(slot)?;
    if s.multi {
        return many(node, op, slot, s, bypass).await;
    }
    for _ in 0..SEARCHES_MAX {
        let mut changed_away = false;
        let search = Search { filter: s.filter.matcher()?, sort: s.sort.as_ref(), hint: s.hint.as_ref() };
        let mut candidates = Candidates::open(node, op, slot, search).await?;
        loop {
            let records = candidates.next(op).await?;
            if records.is_empty() {
                break;
            }
            let done = loop {
                let written = node
                    .write_waiting(op, &op.received, slot, |unit| {
                        for record in &records {
                            let done = update_record(unit, s, *record, stmt, bypass)?;
                            if done.matched > 0 {
                                return Ok(Some(done));
                            }
                            changed_away = true;
                        }
                        Ok(None)
                    })
                    .await;
                if let Some((done, _)) = s.unless_aside(node, written)? {
                    break done;
                }
            };
            if let Some(done) = done {
                return Ok(done);
            }
        }
        if changed_away {
            continue;
        }
        if !s.upsert {
            // The versions are checked even where nothing is found: a stale router must not take this for an answer.
            slot.read(op, |_| Ok(())).await?;
            return Ok(Done::default());
        }
        match upsert_waiting(node, op, slot, s, stmt, bypass).await {
            Ok(upserted) => return Ok(upserted.done()),
            Err(e) if e.code == codes::DUPLICATE_KEY && upsert_may_retry(s.filter.matcher()?, &e) => {}
            Err(e) => return Err(e),
        }
    }
    bail!(WRITE_CONFLICT, "the documents this update matched kept changing")
}

async fn by_id(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    s: &UpdateStatement,
    id: &Value,
    stmt: i32,
    bypass: bool,
) -> Result<Done> {
    let holder = id.to_holder();
    loop {
        let written = node
            .write_waiting(op, &op.received, slot, |unit| {
                refuse_view(unit.slot, unit.state)?;
                let found = holder.get("").and_then(|id| unit.collection()?.record_of_id(id));
                node.note_point(op, found.is_some());
                let done = match found {
                    Some(record) => update_record(unit, s, record, stmt, bypass)?,
                    None => Done::default(),
                };
                if done.matched == 0 && s.upsert {
                    return upsert(unit, s, stmt, bypass).map(Upserted::done);
                }
                Ok(done)
            })
            .await;
        if let Some((done, _)) = s.unless_aside(node, written)? {
            return Ok(done);
        }
    }
}

async fn many(node: &Node, op: &Operation, slot: &Slot, s: &UpdateStatement, bypass: bool) -> Result<Done> {
    let search = Search { filter: s.filter.matcher()?, sort: None, hint: s.hint.as_ref() };
    let (_kept, mut candidates) = Candidates::open_for_many(node, op, slot, search).await?;
    let mut total = Done::default();
    loop {
        let records = candidates.next(op).await?;
        if records.is_empty() {
            break;
        }
        let mut next = 0;
        while next < records.len() {
            op.check_interrupt()?;
            let written = node
                .write_waiting(op, &candidates.received, slot, |unit| {
                    candidates.check_collection(unit)?;
                    let started = Instant::now();
                    while next < records.len() && started.elapsed() < SLICE_TIME_MAX {
                        let done = update_record(unit, s, records[next], -1, bypass)?;
                        next += 1;
                        total.matched += done.matched;
                        total.modified += done.modified;
                    }
                    Ok(())
                })
                .await;
            s.unless_aside(node, written)?;
        }
        crate::lane::give_way(op).await?;
    }
    if total.matched == 0 && s.upsert {
        return upsert_waiting(node, op, slot, s, -1, bypass).await.map(Upserted::done);
    }
    Ok(total)
}

/// Matches the record as it is now and updates it. Nothing matched when it is gone, changed away or not owned.
fn update_record(
    unit: &mut WriteUnit<'_>,
    s: &UpdateStatement,
    record: RecordId,
    stmt: i32,
    bypass: bool,
) -> Result<Done> {
    Ok(match change_record(unit, s, record, stmt, bypass, None)? {
        None => Done::default(),
        Some(Change { new: None, .. }) => Done { matched: 1, ..Done::default() },
        Some(change) => {
            Done { matched: 1, modified: 1, moved: change.new.filter(|_| change.moved), upserted: None }
        }
    })
}

/// A record before and after an update; `new` is `None` when the update left it as it was. `old` is kept for who wants
/// images.
pub struct Change {
    pub old: Option<DocBuf>,
    pub new: Option<DocBuf>,
    /// Only taken away here: it belongs to another shard now.
    pub moved: bool,
}

/// What a findAndModify wants kept in the log entry, so that a retry can be answered.
pub type Image<'a> = &'a dyn Fn(Doc<'_>, Doc<'_>) -> Document;

/// As [`update_record`], handing out both images.
pub fn change_record(
    unit: &mut WriteUnit<'_>,
    s: &UpdateStatement,
    record: RecordId,
    stmt: i32,
    bypass: bool,
    image: Option<Image<'_>>,
) -> Result<Option<Change>> {
    let Some(old) = unit.collection().and_then(|c| c.get(record)) else { return Ok(None) };
    if !unit.owns(old) {
        return Ok(None);
    }
    let Some(applied) = s.evaluate(old)? else { return Ok(None) };
    let kept = image.map(|_| old.to_owned());
    let new = match applied {
        Applied::NoOp => return Ok(Some(Change { old: kept, new: None, moved: false })),
        Applied::Changed(new) => new,
    };
    check_size(new.doc())?;
    if let Some(id) = s.sample {
        note_sampled(unit, id, old, new.doc());
    }
    let moves = changes_owner(unit, s, old, new.doc())?;
    if !bypass {
        unit.check_validator_of_update(old, new.doc())?;
    }
    unit.check_capped_growth(old, new.doc())?;
    let more = image.map(|f| f(old, new.doc()).to_doc_buf());
    if moves {
        let more = with_change_of_owner(more.as_ref());
        let from_migrate = unit.is_orphan(old);
        unit.delete(
            record,
            Origin { statement: Some(stmt), also: &[], from_migrate, more: Some(more.doc()) },
        )?;
        return Ok(Some(Change { old: kept, new: Some(new), moved: true }));
    }
    unit.check_room_of(old, new.doc())?;
    let mut prepared = unit.prepare_update(record, old, new.doc(), s.update.touched())?;
    if s.update.is_replacement() {
        prepared = prepared.whole();
    } else if s.update.is_pipeline() {
        prepared = prepared.shorter_of(new.doc());
    }
    let origin = Origin {
        statement: Some(stmt).filter(|s| *s >= 0),
        from_migrate: unit.is_orphan(old),
        more: more.as_ref().map(|d| d.doc()),
        ..Origin::default()
    };
    unit.put(record, prepared, new.doc(), origin)?;
    Ok(Some(Change { old: kept, new: Some(new), moved: false }))
}

/// Notes what an update changes that is sampled; also where it is refused in the end, which is as much a query.
fn note_sampled(unit: &WriteUnit<'_>, id: [u8; 16], old: Doc<'_>, new: Doc<'_>) {
    let Some(collection) = unit.collection() else { return };
    let (node, diff) = (unit.node, difference(old, new));
    node.samples.diff(id, &unit.slot.ns, collection.uuid(), diff, node.now_ms());
}

/// What the entry of an update keeps that takes its document to another shard: the image, if one is wanted, and the mark.
fn with_change_of_owner(image: Option<&DocBuf>) -> DocBuf {
    document::DocWriter::build(|w| {
        image.iter().for_each(|d| w.fields_of(d.doc()));
        w.bool(CHANGES_OWNER, true);
    })
}

/// Whether the updated document belongs to another shard. A router's update may give a document another shard key only
/// as a retryable write of one document or in a transaction, and another shard's key only where the router is ready to
/// put it there.
///
/// # Errors
/// NotSingleValueField (54), InvalidOptions (72), IllegalOperation (20), WouldChangeOwningShard (283).
fn changes_owner(unit: &WriteUnit<'_>, s: &UpdateStatement, old: Doc<'_>, new: Doc<'_>) -> Result<bool> {
    if unit.keeps_shard_key(old, new) {
        return Ok(false);
    }
    if let Some(path) = unit.array_in_shard_key(new) {
        bail!(
            NOT_SINGLE_VALUE_FIELD,
            "After applying the update to the document {}, the (immutable) field '{path}' was found to be an array or array descendant.",
            document::shell::document(&new.to_document())
        );
    }
    if s.multi {
        bail!(INVALID_OPTIONS, "Multi-update operations are not allowed when updating the shard key field.");
    }
    if !unit.may_change_shard_key() {
        return Err(needs_retryable_write());
    }
    match unit.owns(new) {
        true => Ok(false),
        false if unit.may_move_document() => Ok(true),
        false => Err(would_change_owning_shard(unit, old, new)),
    }
}

fn needs_retryable_write() -> document::Error {
    err!(
        ILLEGAL_OPERATION,
        "Must run update to shard key field in a multi-statement transaction or with retryWrites: true."
    )
}

fn would_change_owning_shard(unit: &WriteUnit<'_>, old: Doc<'_>, new: Doc<'_>) -> document::Error {
    err!(WOULD_CHANGE_OWNING_SHARD, "Document shard key value updates that cause the doc to move shards must be sent with write batch of size 1")
        .with_info(doc! { "preImage": old, "postImage": new, "shouldUpsert": false, "ns": unit.slot.ns.as_str() })
}

/// # Errors
/// BSONObjectTooLarge (10334).
pub(crate) fn check_size(new: Doc<'_>) -> Result<()> {
    if new.bytes().len() > DOCUMENT_BYTES_MAX {
        bail!(BSON_OBJECT_TOO_LARGE, "Resulting document after update is larger than {DOCUMENT_BYTES_MAX}");
    }
    Ok(())
}

/// Inserts the document that the statement describes.
///
/// # Errors
/// Those of the description, and of the insert.
pub async fn upsert_waiting(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    s: &UpdateStatement,
    stmt: i32,
    bypass: bool,
) -> Result<Upserted> {
    loop {
        let written = node.write_waiting(op, &op.received, slot, |unit| upsert(unit, s, stmt, bypass)).await;
        if let Some((upserted, _)) = s.unless_aside(node, written)? {
            return Ok(upserted);
        }
    }
}

/// The document that an upsert makes.
pub struct Upserted {
    pub new: DocBuf,
    /// Not inserted here: it belongs to another shard.
    pub moved: bool,
}

impl Upserted {
    fn done(self) -> Done {
        let id = self.new.get("_id").map_or(Value::Null, |v| v.to_value());
        Done { upserted: Some(id), moved: self.moved.then_some(self.new), ..Done::default() }
    }
}

/// Inserts the document that the statement's filter and update describe. Its entry holds all that a retry is answered with.
///
/// # Errors
/// [`meter::OVERRUN`], among others: see [`UpdateStatement::unless_aside`].
fn upsert(unit: &mut WriteUnit<'_>, s: &UpdateStatement, stmt: i32, bypass: bool) -> Result<Upserted> {
    let doc = s.described(unit.node)?.doc();
    if unit.state.view.is_some() {
        bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Namespace {} is a view, not a collection", unit.slot.ns);
    }
    if !unit.owns(doc) && !unit.may_change_shard_key() {
        return Err(needs_retryable_write());
    }
    if !unit.owns(doc) && unit.may_move_document() {
        let more = with_change_of_owner(None);
        let origin = Origin { more: Some(more.doc()), ..Origin::statement(Some(stmt)) };
        unit.noop(doc.to_document(), origin);
        return Ok(Upserted { new: doc.to_owned(), moved: true });
    }
    if !unit.owns(doc) {
        return Err(err!(WOULD_CHANGE_OWNING_SHARD, "The upserted document belongs to another shard")
            .with_info(doc! { "postImage": doc, "shouldUpsert": true, "ns": unit.slot.ns.as_str() }));
    }
    unit.check_room()?;
    if unit.collection().is_none() {
        unit.create_implicitly()?;
    }
    if !bypass {
        unit.check_validator(doc)?;
    }
    let origin = Origin { statement: Some(stmt).filter(|s| *s >= 0), ..Origin::default() };
    unit.insert(doc, origin)?;
    unit.trim_capped()?;
    Ok(Upserted { new: doc.to_owned(), moved: false })
}

/// Whether a duplicate key met by an upsert is another's upsert of the same thing: the unique index's fields are
/// exactly what the filter asks equality for, and the key is what it asks. Then the search is worth repeating.
pub fn upsert_may_retry(filter: &Matcher, error: &document::Error) -> bool {
    let Some(info) = &error.info else { return false };
    let (Some(pattern), Some(key)) = (info.get_document("keyPattern"), info.get_document("keyValue")) else {
        return false;
    };
    let equalities = filter.equalities();
    let collation = info.get_document("collation").and_then(|c| Collation::of_document(c).ok());
    let shown = |v: ValueRef<'_>| collation.clone().unwrap_or_default().shown(&v.to_value());
    pattern.len() == equalities.len()
        && equalities.iter().all(|(path, wanted)| {
            pattern.contains_key(path)
                && key.get(path).is_some_and(|v| document::compare::values_equal(v, &shown(*wanted)))
        })
}
