//! explain.

use super::aggregate::{self, Asked, Prepared};
use super::fields::Fields;
use super::host::Writing;
use super::map_reduce::{self, MapReduce};
use super::rows::Rows;
use crate::exec::choice::{Choice, Memory};
use crate::exec::query::ownership;
use crate::exec::shown::{Whole, push_spills, with_counters};
use crate::exec::walk::Counters;
use crate::exec::{Opened, Output, Query, Wanted};
use crate::namespace::Slot;
use crate::plan_cache::{self, Hashes};
use crate::request::check_collection_name;
use crate::{Node, Operation, Request};
use document::number::count;
use document::{Doc, Document, Result, Value, ValueRef, bail, doc, err};
use query::explain::{Extras, count_scan, parsed_query, winning_plan, with_sharding_filter};
use query::matcher::Matcher;
use query::pipeline::Limits;
use query::planner::Plan;
use query::shape::query_hash;
use runtime::Instant;
use std::sync::Arc;
use subject::{Subject, asked_of_view};

mod subject;

const FIELDS: Fields = Fields { command: "explain" };

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    Planner,
    Stats,
    All,
}

/// Takes results and forgets them.
#[derive(Default)]
struct Discard;

impl Output for Discard {
    fn is_full(&self) -> bool {
        false
    }
    fn put(&mut self, _: Doc<'_>) -> Result<bool> {
        Ok(true)
    }
    fn put_with(&mut self, write: &mut dyn FnMut(&mut Vec<u8>) -> Result<()>) -> Result<bool> {
        write(&mut Vec::new())?;
        Ok(true)
    }
}

/// Commands that have a plan to show.
pub const EXPLAINED: &[&str] = &[
    "aggregate",
    "find",
    "count",
    "distinct",
    "findAndModify",
    "findandmodify",
    "update",
    "delete",
    "mapReduce",
    "mapreduce",
];

/// The command to explain.
///
/// # Errors
/// TypeMismatch (14), BadValue (2); CommandNotFound (59) for any command that has no plan: whoever knows which commands
/// exist refuses those first.
pub fn explained_command<'a>(request: &Request<'a>) -> Result<Doc<'a>> {
    let inner = match request.argument() {
        Some(ValueRef::Document(d)) => d,
        Some(ValueRef::Null | ValueRef::Undefined) => {
            bail!(IDL_FAILED_TO_PARSE, "BSON field 'explain.explain' is missing but a required field")
        }
        Some(v) => bail!(
            TYPE_MISMATCH,
            "BSON field 'explain.explain' is the wrong type '{}', expected type 'object'",
            v.type_name()
        ),
        None => bail!(BAD_VALUE, "explain command requires a nested object"),
    };
    match inner.get("$db") {
        Some(ValueRef::String(db)) if db != request.db => bail!(
            INVALID_NAMESPACE,
            "Mismatched $db in explain command. Expected {} but got {db}",
            request.db
        ),
        None | Some(ValueRef::String(_)) => {}
        Some(v) => bail!(
            TYPE_MISMATCH,
            "BSON field 'explain.$db' is the wrong type '{}', expected type 'string'",
            v.type_name()
        ),
    }
    match inner.iter().next().map(|e| e.name()) {
        None => bail!(COMMAND_NOT_FOUND, "Explain failed due to unknown command: "),
        Some(name) if EXPLAINED.contains(&name) => Ok(inner),
        Some(name) => bail!(COMMAND_NOT_FOUND, "Explain failed due to unknown command: {name}"),
    }
}

/// Whether a command of this name is explained as the aggregation that it becomes.
pub fn is_map_reduce(name: &str) -> bool {
    name.eq_ignore_ascii_case("mapReduce")
}

/// What an `explain` command asks for.
///
/// # Errors
/// BadValue (2), TypeMismatch (14), IDLUnknownField (40415).
pub fn verbosity_of(request: &Request<'_>) -> Result<Verbosity> {
    let mut verbosity = Verbosity::All;
    for e in request.body.iter().skip(1) {
        match e.name() {
            "verbosity" if e.value() == ValueRef::Null => {}
            "verbosity" => {
                verbosity = match FIELDS.string(&e)? {
                    "queryPlanner" => Verbosity::Planner,
                    "executionStats" => Verbosity::Stats,
                    "allPlansExecution" => Verbosity::All,
                    other => bail!(
                        BAD_VALUE,
                        "Enumeration value '{other}' for field 'explain.verbosity' is not a valid value."
                    ),
                }
            }
            name => FIELDS.unknown(name)?,
        }
    }
    Ok(verbosity)
}

/// Runs an `explain` command.
pub async fn explain(node: &Arc<Node>, op: &Arc<Operation>, request: Request<'_>) -> Result<Document> {
    let inner = explained_command(&request)?;
    let verbosity = verbosity_of(&request)?;
    let Some(first) = inner.iter().next() else {
        bail!(BAD_VALUE, "explain command requires a nested object")
    };
    let asked = Request { db: request.db, body: inner, sequences: request.sequences };
    if first.name() == "aggregate" {
        let mut asked_for = Asked::parse_explained(node, &asked)?;
        asked_for.explain = true;
        node.heed_query_settings(op, &asked_for.ns, inner)?;
        refuse_writing(&asked_for.pipeline, verbosity)?;
        return pipeline(node, op, asked_for, verbosity, asked).await;
    }
    if is_map_reduce(first.name()) {
        let (_, asked_for) = map_reduce::asked_of(node, MapReduce::parse(&asked)?, &asked)?;
        refuse_writing(&asked_for.pipeline, verbosity)?;
        return pipeline(node, op, Asked { explain: true, ..asked_for }, verbosity, asked).await;
    }
    let ns = match first.value() {
        ValueRef::String(s) => {
            check_collection_name(request.db, s)?;
            format!("{}.{s}", request.db)
        }
        v => bail!(INVALID_NAMESPACE, "collection name has invalid type {}", v.type_name()),
    };
    node.heed_query_settings(op, &ns, inner)?;
    let slot = node.namespaces.slot(&ns);
    let subject = Subject::of(node, op, &slot, first.name(), inner, &asked)?;
    let mut reply = match subject.run(node, op, &slot, verbosity).await? {
        Some(explained) => explained,
        None => {
            let asked_for = asked_of_view(node, &slot, first.name(), inner)?;
            let asked_for = Asked { explain: true, ..asked_for };
            return pipeline(node, op, asked_for, verbosity, asked).await;
        }
    };
    finish_on(node, &mut reply, inner, request.db);
    Ok(reply)
}

fn finish_on(node: &Node, reply: &mut Document, command: Doc<'_>, db: &str) {
    let limits = *node.limits.read();
    finish(&node.options.host, &limits, reply, command, db);
}

/// The command, the server and its parameters: what ends every explanation.
pub fn finish(host: &str, limits: &Limits, reply: &mut Document, command: Doc<'_>, db: &str) {
    if let Some(hash) = query_hash(db, command) {
        reply.push("queryShapeHash", hash);
    }
    reply.push("command", shown_command(command, db));
    let (host, port) = host.rsplit_once(':').unwrap_or((host, "27017"));
    reply.push(
        "serverInfo",
        doc! {
            "host": host, "port": port.parse::<i32>().unwrap_or(27017),
            "version": SERVER_VERSION, "gitVersion": GIT_VERSION,
        },
    );
    reply.push("serverParameters", server_parameters(limits));
}

/// A command as an explanation shows it.
pub fn shown_command(command: Doc<'_>, db: &str) -> Document {
    let mut shown = Document::new();
    for e in command.iter().filter(|e| !e.name().starts_with('$') && e.name() != "lsid") {
        shown.push(e.name(), e.value().to_value());
    }
    shown.push("$db", db);
    shown
}

/// The limits that the plan ran with; those without effect here stand as they are by default.
fn server_parameters(limits: &Limits) -> Document {
    let bytes = |limit: usize| count(limit as u64);
    doc! {
        "internalQueryFacetBufferSizeBytes": 104857600,
        "internalQueryFacetMaxOutputDocSizeBytes": bytes(limits.facet),
        "internalLookupStageIntermediateDocumentMaxSizeBytes": bytes(limits.lookup),
        "internalDocumentSourceGroupMaxMemoryBytes": bytes(limits.group),
        "internalQueryMaxBlockingSortMemoryUsageBytes": bytes(limits.sort),
        "internalQueryProhibitBlockingMergeOnMongoS": 0,
        "internalQueryMaxAddToSetBytes": bytes(limits.add_to_set),
        "internalDocumentSourceSetWindowFieldsMaxMemoryBytes": bytes(limits.set_window_fields),
        "internalQueryFrameworkControl": "forceClassicEngine",
    }
}

/// The version of the real server whose behaviour this one shows.
pub const SERVER_VERSION: &str = "8.0.4";
/// The commit of that version, as the real server says it.
pub const GIT_VERSION: &str = "bc35ab4305d9920d9d0491c1c9ef9b72383d31f9";

/// How a plan is reached and shown.
struct Planned {
    choice: Choice,
    /// Of the collection's indexes.
    signature: u64,
    /// What the shard does not own is filtered.
    filtered: bool,
    clustered: bool,
}

impl Subject {
    fn wanted<'a>(&'a self, node: &Node, op: &'a Operation, chosen: Option<Plan>) -> Wanted<'a> {
        Wanted {
            chosen,
            allowed: op.allowed_indexes.get().map(Vec::as_slice),
            filter: self.filter.clone(),
            sort: self.sort.as_ref(),
            hint: self.hint.as_ref(),
            min: self.min.as_ref(),
            max: self.max.as_ref(),
            collation: self.collation.clone(),
            sort_means: node.sort_means(op, self.allow_disk_use),
            shape: self.shape.clone(),
            needed: self.needed.clone(),
            narrows: self.narrows,
            ..Wanted::default()
        }
    }

    /// Plans, and runs where statistics are asked for; `None` when the namespace is a view.
    async fn run(
        &self,
        node: &Node,
        op: &Operation,
        slot: &Slot,
        verbosity: Verbosity,
    ) -> Result<Option<Document>> {
        let Some(planned) = self.plan(node, op, slot).await? else { return Ok(None) };
        let mut reply = self.planner(node, op, &slot.ns, &planned);
        if verbosity > Verbosity::Planner {
            let started = Instant::now();
            let ran = self.execute(node, op, slot, &planned).await?;
            reply.push("executionStats", self.execution(node, op, &planned, &ran, started, verbosity));
        }
        Ok(Some(reply))
    }

    /// The explanation without statistics.
    fn planner(&self, node: &Node, op: &Operation, ns: &str, planned: &Planned) -> Document {
        let winning = self.shown(planned, &planned.choice.plan);
        let hashes = self.wanted(node, op, None).hashes_with(planned.signature, &self.stages);
        let rejected = planned.choice.rejected.iter().map(|plan| self.shown(planned, plan)).collect();
        doc! {
            "explainVersion": "1",
            "queryPlanner": planner_section(ns, &self.filter, &hashes, &planned.choice, winning, rejected),
        }
    }

    async fn plan(&self, node: &Node, op: &Operation, slot: &Slot) -> Result<Option<Planned>> {
        slot.read(op, |state| {
            if state.view.is_some() {
                return Ok(None);
            }
            let (choice, signature) = match &state.collection {
                Some(c) => {
                    let signature = plan_cache::signature(&crate::exec::index_infos(c));
                    let owner = ownership(state, op);
                    let asked = Wanted {
                        distinct: self.distinct.as_ref().filter(|_| owner.is_none()),
                        owner,
                        ..self.wanted(node, op, None)
                    };
                    (asked.choose(node, c, Memory::Looked)?, signature)
                }
                None => (Choice::only(Plan::Eof), 0),
            };
            let clustered = state.collection.as_ref().is_some_and(|c| c.is_clustered());
            Ok(Some(Planned { choice, signature, filtered: ownership(state, op).is_some(), clustered }))
        })
        .await
    }

    /// The stage of a count that reads keys alone, where the plan allows it.
    fn count_scan(&self, planned: &Planned, plan: &Plan) -> Option<Document> {
        count_scan(plan).filter(|_| self.around == Some("COUNT") && !planned.filtered)
    }

    /// Whether a count has nothing to do but to say how many records there are.
    fn counts_records(&self, planned: &Planned, plan: &Plan) -> bool {
        self.around == Some("COUNT")
            && self.filter.is_always_true()
            && self.hint.is_none()
            && !planned.filtered
            && matches!(plan, Plan::CollScan { .. })
    }

    fn shown(&self, planned: &Planned, plan: &Plan) -> Document {
        if self.counts_records(planned, plan) {
            return doc! { "stage": "RECORD_STORE_FAST_COUNT" };
        }
        let limited = self.around != Some("COUNT");
        let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let narrowed =
            Wanted { needed: self.needed.clone(), narrows: self.narrows, ..Wanted::default() }.narrowing();
        let extras = Extras {
            narrowed: narrowed.as_ref(),
            projection: self.shape.projection.as_ref(),
            needed: self.needed.as_deref().filter(|fields| !fields.is_empty()),
            skip: Some(self.shape.skip).filter(|n| *n > 0 && limited).map(whole),
            limit: self.shape.limit.filter(|_| self.around.is_none()).map(whole),
            return_key: self.shape.return_key,
            clustered: planned.clustered,
        };
        let mut out = self.count_scan(planned, plan).unwrap_or_else(|| winning_plan(plan, &extras));
        if planned.filtered {
            out = with_sharding_filter(out);
        }
        match self.around {
            Some(stage) => doc! { "stage": stage, "inputStage": out },
            None => out,
        }
    }

    /// Runs the query by the plan that was chosen.
    async fn execute(&self, node: &Node, op: &Operation, slot: &Slot, planned: &Planned) -> Result<Ran> {
        let wanted = self.wanted(node, op, Some(planned.choice.plan.clone()));
        match Query::open(node, op, slot, wanted, &mut Discard).await? {
            Opened::Query(mut query) => {
                query.fill(node, op, &mut Discard).await?;
                Ok(Ran::of(&query))
            }
            Opened::Absent | Opened::View(_) => Ok(Ran::default()),
        }
    }

    /// `executionStats`.
    fn execution(
        &self,
        node: &Node,
        op: &Operation,
        planned: &Planned,
        ran: &Ran,
        started: Instant,
        verbosity: Verbosity,
    ) -> Document {
        let choice = &planned.choice;
        let mut counters = ran.counters;
        if self.count_scan(planned, &choice.plan).is_some() || self.counts_records(planned, &choice.plan) {
            // Such a count reads no documents, unlike the query that stands for it here.
            counters.docs = 0;
        }
        let shown = if self.around.is_some() { 0 } else { ran.returned };
        let whole = Whole { returned: ran.returned, counters, examined: ran.examined.clone(), ended: true };
        let stages =
            with_cached(choice.cached.is_some(), with_counters(self.shown(planned, &choice.plan), &whole));
        let mut section = doc! {
            "executionSuccess": true, "nReturned": count(shown),
            "executionTimeMillis": count(started.elapsed().as_millis() as u64),
            "totalKeysExamined": count(counters.keys), "totalDocsExamined": count(counters.docs),
            "executionStages": stages,
        };
        if verbosity == Verbosity::All {
            section.push("allPlansExecution", Vec::<Value>::new());
        }
        if verbosity == Verbosity::All && choice.trials.len() > 1 {
            let subject = self.wanted(node, op, None);
            let trials: Vec<Document> = choice.trials.iter().map(|t| t.statistics(&subject)).collect();
            section.insert("allPlansExecution", trials);
        }
        if let Some(Value::Document(stage)) = section.get_mut("executionStages") {
            if self.upsert && ran.returned == 0 {
                stage.insert("nWouldUpsert", 1i64);
            }
            if stage.contains_key("nCounted") {
                let passed = ran.examined.iter().map(|counters| counters.passed).sum::<u64>();
                stage.insert("nSkipped", count(passed.min(self.shape.skip)));
            }
        }
        section
    }
}

/// What a query has done.
#[derive(Default)]
struct Ran {
    returned: u64,
    counters: Counters,
    /// See [`Query::examined`].
    examined: Vec<Counters>,
}

impl Ran {
    fn of(query: &Query) -> Ran {
        Ran { returned: query.returned(), counters: query.counters, examined: query.examined() }
    }
}

/// A plan, and whether it was taken from the cache.
fn with_cached(cached: bool, plan: Document) -> Document {
    let mut out = doc! { "isCached": cached };
    out.0.extend(plan.0);
    out
}

fn planner_section(
    ns: &str,
    filter: &Matcher,
    hashes: &Hashes,
    choice: &Choice,
    winning: Document,
    rejected: Vec<Document>,
) -> Document {
    let rejected: Vec<Document> = rejected.into_iter().map(|plan| with_cached(false, plan)).collect();
    doc! {
        "namespace": ns, "parsedQuery": parsed_query(filter), "indexFilterSet": choice.filtered,
        "queryHash": hashes.shape.as_str(), "planCacheShapeHash": hashes.shape.as_str(),
        "planCacheKey": hashes.key.as_str(),
        "optimizationTimeMillis": 0, "maxIndexedOrSolutionsReached": false, "maxIndexedAndSolutionsReached": false,
        "maxScansToExplodeReached": false, "prunedSimilarIndexes": false,
        "winningPlan": with_cached(choice.cached.is_some(), winning), "rejectedPlans": rejected,
    }
}

/// The stages behind a pipeline's filter that are part of its plan shape, by name.
fn stages_of_shape(pipeline: Doc<'_>) -> Vec<u8> {
    const PARTS: &[&str] = &[
        "$group",
        "$lookup",
        "$bucket",
        "$replaceRoot",
        "$replaceWith",
        "$project",
        "$sort",
        "$count",
        "$sortByCount",
        "$densify",
        "$setWindowFields",
        "$bucketAuto",
    ];
    let names = pipeline.iter().filter_map(|s| s.value().as_document()?.iter().next().map(|e| e.name()));
    let behind = names.skip_while(|name| *name == "$match").take_while(|name| PARTS.contains(name));
    behind.flat_map(str::bytes).collect()
}

/// Runs the whole pipeline, and adds to its stages what each of them did.
async fn run_with_statistics(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    prepared: Prepared,
    stages: &mut [Value],
) -> Result<Ran> {
    let started = Instant::now();
    let mut rows = aggregate::begin(node, op, prepared, Writing::default(), None).await?;
    while !rows.ended() {
        rows.fill(node, op, &mut Discard).await?;
    }
    let did = if let Rows::Pipeline(rows) = &rows { rows.did() } else { Vec::new() };
    for (stage, did) in stages.iter_mut().zip(did) {
        let Value::Document(out) = stage else { continue };
        match (did.name, did.used) {
            ("$sort", Some(used)) => {
                out.push("totalDataSizeSortedBytesEstimate", count(used.peak_bytes as u64));
                push_spills(out, used);
            }
            ("$group", _) if out.contains_key("$groupByDistinctScan") => {}
            ("$group", Some(used)) => {
                out.push("totalOutputDataSizeBytes", count(did.returned_bytes));
                push_spills(out, used);
            }
            (_, Some(used)) => push_spills(out, used),
            (_, None) => {}
        }
        out.push("nReturned", did.returned as i64);
        out.push("executionTimeMillisEstimate", started.elapsed().as_millis() as i64);
    }
    Ok(rows.query().map(Ran::of).unwrap_or_default())
}

fn writes(stage: &Value) -> bool {
    stage.as_document().is_some_and(|d| d.contains_key("$out") || d.contains_key("$merge"))
}

/// What a pipeline that writes would do cannot be tried.
///
/// # Errors
/// 51184.
pub fn refuse_writing(pipeline: &[Value], verbosity: Verbosity) -> Result<()> {
    let last =
        pipeline.last().and_then(Value::as_document).and_then(|d| d.first()).map_or("", |(name, _)| name);
    let code = match last {
        "$merge" => 51184,
        _ => return Ok(()),
    };
    if verbosity > Verbosity::Planner {
        return Err(document::Error::new(
            code,
            format!(
                "explain command on an aggregate with {last} can only be run with verbosity level 'queryPlanner'"
            ),
        ));
    }
    Ok(())
}

/// Explains an aggregation.
pub async fn pipeline(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    asked: Asked,
    verbosity: Verbosity,
    request: Request<'_>,
) -> Result<Document> {
    let mut prepared = aggregate::prepare(node, op, asked).await?;
    // The target of a router's need not be here.
    let own = op.received.shard.is_none() && op.received.database.is_none();
    if let Some(stage) = prepared.rest.writes().filter(|_| own) {
        super::output::check_merge(node, op, stage, &prepared.run).await?;
    }
    let mut stages = prepared.rest.to_array();
    if prepared.source_only {
        let mut reply = doc! { "explainVersion": "1", "stages": Value::Array(stages) };
        finish_on(node, &mut reply, request.body, request.db);
        return Ok(reply);
    }
    let subject = Subject {
        filter: prepared.filter.clone(),
        sort: prepared.sort.clone(),
        hint: prepared.hint.clone(),
        collation: prepared.run.collation.clone(),
        shape: prepared.shape(),
        needed: prepared.needed(),
        narrows: true,
        distinct: prepared.group.as_ref().map(|group| group.distinct.clone()),
        stages: stages_of_shape(
            request.body.get("pipeline").and_then(|v| v.as_array()).unwrap_or(Doc::empty()),
        ),
        ..Subject::default()
    };
    let ns = prepared.ns.clone();
    let slot = node.namespaces.slot(&ns);
    let Some(planned) = subject.plan(node, op, &slot).await? else {
        return Err(err!(INTERNAL_ERROR, "{ns} became a view while it was explained"));
    };
    if let Some(group) = prepared.group.as_ref().filter(|_| planned.choice.plan.is_distinct()) {
        let shown = doc! { "$groupByDistinctScan": { "newRoot": group.new_root.clone() } };
        stages.first_mut().into_iter().for_each(|stage| *stage = shown.clone().into());
    }
    let mut cursor = subject.planner(node, op, &ns, &planned);
    if verbosity > Verbosity::Planner {
        let started = Instant::now();
        let ran = match stages.iter().any(writes) {
            // Only what would be written is searched for.
            true => subject.execute(node, op, &slot, &planned).await?,
            false => {
                prepared.chosen = Some(planned.choice.plan.clone());
                run_with_statistics(node, op, prepared, &mut stages).await?
            }
        };
        cursor.push("executionStats", subject.execution(node, op, &planned, &ran, started, verbosity));
    }
    let stages = query::pipeline::sort::shown(stages);
    let mut reply = match stages.is_empty() {
        true => cursor,
        false => {
            cursor.remove("explainVersion");
            let mut list = vec![Value::Document(doc! { "$cursor": cursor })];
            list.extend(stages);
            doc! { "explainVersion": "1", "stages": Value::Array(list) }
        }
    };
    finish_on(node, &mut reply, request.body, request.db);
    Ok(reply)
}
