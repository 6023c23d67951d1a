//! count.

use super::aggregate::{self, Asked};
use super::fields::Fields;
use super::{command_variables, find::FindCommand};
use crate::exec::choice::{Memory, Watched};
use crate::exec::query::{LATCHED_QUANTA, Wanted, note_use, ownership, summary};
use crate::exec::walk::{Context, Counters};
use crate::exec::{Budget, Progress, Walk};
use crate::namespace::OwnershipFilter;
use crate::{Node, Operation, Request};
use document::{Doc, Document, Result, Value, ValueRef, bail, doc, meter};
use query::explain::count_scan;
use query::matcher::Matcher;
use query::planner::Hint;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use storage::CollectionSnapshot;

const FIELDS: Fields = Fields { command: "count" };

/// A count's fields.
pub struct CountCommand<'a> {
    pub query: Doc<'a>,
    pub skip: u64,
    pub limit: u64,
    pub hint: Option<Hint>,
    pub collation: Option<Doc<'a>>,
}

impl<'a> CountCommand<'a> {
    pub fn parse(body: Doc<'a>) -> Result<CountCommand<'a>> {
        let mut out = CountCommand { query: Doc::empty(), skip: 0, limit: 0, hint: None, collation: None };
        for e in body.iter().skip(1) {
            if matches!(e.value(), ValueRef::Null | ValueRef::Undefined)
                && !matches!(e.name(), "hint" | "limit")
            {
                continue;
            }
            match e.name() {
                "query" => out.query = FIELDS.document(&e)?,
                "skip" => out.skip = FIELDS.count(&e)?,
                // A negative limit means the same as the positive one.
                "limit" => out.limit = limit(e.value())?,
                "hint" => out.hint = Hint::given(e.value())?,
                "collation" => out.collation = Some(FIELDS.document(&e)?),
                "fields"
                | "queryOptions"
                | "collectionUUID"
                | "encryptionInformation"
                | "includeQueryStatsMetrics" => {}
                name => FIELDS.unknown(name)?,
            }
        }
        Ok(out)
    }
    /// The pipeline that counts what a view or a pseudo collection gives.
    fn pipeline(&self) -> Result<Vec<Value>> {
        let find = FindCommand {
            filter: Some(self.query),
            skip: self.skip,
            limit: self.limit,
            ..FindCommand::default()
        };
        let mut pipeline = super::find::view_pipeline(&find)?;
        pipeline.push(Value::Document(doc! { "$count": "n" }));
        Ok(pipeline)
    }
    /// What of `matched` documents is counted.
    fn result(&self, matched: u64) -> u64 {
        let counted = matched.saturating_sub(self.skip);
        if self.limit > 0 { counted.min(self.limit) } else { counted }
    }
    /// Matches beyond which nothing changes.
    fn most(&self) -> u64 {
        if self.limit == 0 { u64::MAX } else { self.limit.saturating_add(self.skip) }
    }
}

fn limit(v: ValueRef<'_>) -> Result<u64> {
    if !v.is_number() {
        bail!(BAD_VALUE, "limit value is not a valid number");
    }
    match document::number::to_i64_exact(&v.to_value()) {
        Some(i64::MIN) => bail!(BAD_VALUE, "limit value for count cannot be min long"),
        Some(n) => Ok(n.unsigned_abs()),
        None => {
            bail!(FAILED_TO_PARSE, "Expected an integer: limit: {}", document::shell::value(&v.to_value()))
        }
    }
}

/// A count under way.
struct Counting {
    /// The keys of an index say all: no document is read.
    by_keys: bool,
    walk: Walk,
    owner: Option<Arc<dyn OwnershipFilter>>,
    counters: Counters,
    count: u64,
    most: u64,
    watched: Watched,
}

impl Counting {
    /// At the end: what it has examined, for the node's totals and the operation's.
    fn note(&self, node: &Node, op: &Operation) {
        node.index_use.totals.note(self.counters);
        let docs = if self.by_keys { 0 } else { self.counters.docs };
        op.note_examined(self.counters.keys, docs);
    }
    /// One slice; true at the end.
    fn slice<V: storage::CollectionView>(&mut self, view: &V, budget: &mut Budget) -> Result<bool> {
        let mut context = Context { owner: self.owner.as_deref(), counters: &mut self.counters, keys: None };
        let progress = self.walk.count_only(view, &mut context, budget, &mut self.count, self.most)?;
        self.watched.note(self.counters, self.count);
        Ok(progress != Progress::Slice)
    }
}

enum Begun {
    Done(u64),
    View,
    Walking(Box<(Counting, CollectionSnapshot)>),
}

/// Runs a `count` command.
pub async fn count(node: &Arc<Node>, op: &Arc<Operation>, request: Request<'_>) -> Result<Document> {
    let ns = super::target(node, &request)?;
    let command = CountCommand::parse(request.body)?;
    op.check_interrupt()?;
    node.await_readable(op, node.area_of(&ns)).await?;
    let slot = node.namespaces.slot(&ns);
    node.check_uuid(request.body, &slot)?;
    let variables = command_variables(node, request.body)?;
    let mut context = node.parse_context_on(&slot, command.collation, variables)?;
    context.timeless = true;
    node.note_text_index(&mut context, &slot, command.query);
    let filter = Matcher::parse_checked(command.query, &context)?;
    if super::pseudo::is_pseudo(&ns) {
        return by_pipeline(node, op, &ns, &command, request.body).await;
    }
    let profiled = node.profiling.load(Ordering::Relaxed);
    let begun = slot
        .read(op, |state| {
            if state.view.is_some() {
                return Ok(Begun::View);
            }
            let Some(collection) = &state.collection else { return Ok(Begun::Done(0)) };
            let owner = ownership(state, op);
            if filter.is_always_true() && owner.is_none() && command.hint.is_none() {
                if profiled {
                    op.note_plan("RECORD_STORE_FAST_COUNT".to_string());
                }
                return Ok(Begun::Done(command.result(collection.len() as u64)));
            }
            let wanted = Wanted {
                filter,
                hint: command.hint.as_ref(),
                needed: Some(Vec::new()),
                owner: owner.clone(),
                ..Wanted::default()
            };
            let choice = wanted.choose(node, collection, Memory::Used)?;
            note_use(node, op, &slot.ns, &choice.plan);
            let by_keys = owner.is_none() && count_scan(&choice.plan).is_some();
            if by_keys && profiled {
                op.note_plan(summary(&choice.plan).replacen("IXSCAN", "COUNT_SCAN", 1));
            }
            let mut counting = Counting {
                by_keys,
                walk: Walk::new(choice.plan, None, None),
                owner,
                counters: Counters::default(),
                count: 0,
                most: command.most(),
                watched: Watched::new(choice.cached),
            };
            let mut budget = Budget::of(256, Duration::from_micros(200));
            match meter::bounded(LATCHED_QUANTA, || counting.slice(collection, &mut budget)) {
                Ok(true) => {
                    counting.note(node, op);
                    return Ok(Begun::Done(command.result(counting.count)));
                }
                Err(e) if e.code != meter::OVERRUN => return Err(e),
                _ => {}
            }
            Ok(Begun::Walking(Box::new((counting, collection.snapshot()))))
        })
        .await;
    node.plan_caches.trim();
    let n = match begun? {
        Begun::Done(n) => n,
        Begun::View => return by_pipeline(node, op, &ns, &command, request.body).await,
        Begun::Walking(walking) => {
            let (mut counting, snapshot) = *walking;
            while !counting.slice(&snapshot, &mut Budget::slice())? {
                crate::lane::give_way(op).await?;
                op.check_interrupt()?;
            }
            counting.note(node, op);
            command.result(counting.count)
        }
    };
    Ok(reply(n))
}

fn reply(n: u64) -> Document {
    doc! { "n": document::number::count(n) }
}

/// The aggregation that counts what a view or a pseudo collection gives.
pub fn on_view(node: &Node, ns: &str, command: &CountCommand<'_>, body: Doc<'_>) -> Result<Asked> {
    let (pipeline, hint) = (command.pipeline()?, command.hint.clone());
    Ok(Asked { pipeline, hint, ..Asked::on(node, ns, body)? })
}

/// Counts what an aggregation over a view or a pseudo collection gives.
async fn by_pipeline(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    ns: &str,
    command: &CountCommand<'_>,
    body: Doc<'_>,
) -> Result<Document> {
    let found = aggregate::collect(node, op, on_view(node, ns, command, body)?).await?;
    let n = found.first().and_then(|d| d.doc().get_i64("n")).unwrap_or(0);
    Ok(reply(n.unsigned_abs()))
}
