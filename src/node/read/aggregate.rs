//! aggregate.
//!
//! What stands at the front of the pipeline (`$match`, `$sort`, `$limit`, a `$project` that only keeps fields) is answered by a query on
//! the collection, with its indexes and its own blocking sort; the rest runs over that query's rows, which hold only the fields that it
//! reads. A `$group` that needs one document of each group has the query skip the others where an index allows it.

use super::aggregate_command::{AggregateCommand, names_collection};
use super::command_variables;
use super::find::FIRST_BATCH;
use super::host::{LocalHost, Writing};
use super::rows::Rows;
use super::sub_pipelines::SubPipelines;
use crate::change_stream::{self, ChangeStreamRows};
use crate::cursor::{Account, Cursor};
use crate::exec::batch::Documents;
use crate::exec::sorter::Means;
use crate::exec::{Batch, Opened, Output, Query, Shape, Wanted};
use crate::namespace::SlotState;
use crate::operation::ReadLevel;
use crate::transaction::Area;
use crate::{Node, Operation, Request};
use document::error::Phase;
use document::{Collation, Doc, DocBuf, DocWriter, Document, Error, Result, Value, bail, doc};
use query::matcher::Matcher;
use query::pipeline::execution::Did;
use query::pipeline::stage::{DOCUMENT_BYTES_MAX, too_large};
use query::pipeline::stages::{geo_near, host_stages};
use query::pipeline::{
    BoxFuture, Context, DistinctGroup, Execution, Namespace, Pipeline, PipelineHost, Run, Source, fusion,
    optimize, parse_checked, refuse_own,
};
use query::planner::{Hint, Plan};
use query::projection::Projection;
use query::sort::SortSpec;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many views may stand on one another.
const VIEW_DEPTH_MAX: usize = 20;

/// An aggregation as it is asked for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub ns: String,
    pub pipeline: Vec<Value>,
    pub hint: Option<Hint>,
    /// The command's `let`, evaluated.
    pub variables: Document,
    /// It came from a router, which merges what shards answer.
    pub from_router: bool,
    pub allow_disk_use: bool,
    pub batch_size: Option<u64>,
    pub explain: bool,
    /// What `$out` and `$merge` write need not satisfy validators.
    pub bypass_validation: bool,
    /// The collation that was named; without one the collection or view has its own.
    pub collation: Option<Collation>,
    /// `$$NOW`, where the command has begun somewhere else.
    pub now_ms: Option<i64>,
    /// It is what a mapReduce command became.
    pub map_reduce: bool,
    /// A stage of another pipeline asks. A view is then resolved here, and what is below it must be where the router believes
    /// everything to be that the pipeline names: unsharded, on this shard.
    pub within: bool,
}

impl Asked {
    /// On `ns`, with the variables of a command.
    pub fn on(node: &Node, ns: &str, body: Doc<'_>) -> Result<Asked> {
        Ok(Asked {
            ns: ns.to_string(),
            variables: command_variables(node, body)?,
            collation: named_collation(body)?,
            allow_disk_use: node.disk_use_by_default.load(Ordering::Relaxed),
            ..Asked::default()
        })
    }
    /// Reads an `aggregate` command that is to be explained: it needs no cursor.
    pub fn parse_explained(node: &Node, request: &Request<'_>) -> Result<Asked> {
        Asked::of(node, request, AggregateCommand::parse(request.body)?)
    }
    /// Reads an `aggregate` command.
    ///
    /// # Errors
    /// 40414, 40415, 14, 9 as the real server.
    pub fn parse(node: &Node, request: &Request<'_>) -> Result<Asked> {
        let command = AggregateCommand::parse(request.body)?;
        command.check_cursor()?;
        Asked::of(node, request, command)
    }
    fn of(node: &Node, request: &Request<'_>, command: AggregateCommand<'_>) -> Result<Asked> {
        let ns = match names_collection(request.argument())? {
            true => super::target(node, request)?,
            false => format!("{}.$cmd.aggregate", request.db),
        };
        let asked = Asked::on(node, &ns, request.body)?;
        Ok(Asked {
            pipeline: command.pipeline.to_array(),
            hint: command.hint,
            from_router: command.from_router,
            allow_disk_use: command.allow_disk_use.unwrap_or(asked.allow_disk_use),
            batch_size: command.batch_size,
            explain: command.explain,
            bypass_validation: command.bypass_validation,
            now_ms: command.now_ms,
            map_reduce: command.map_reduce,
            ..asked
        })
    }
}

/// The namespaces that an `aggregate` command on `ns` reads, that one first and alone where the pipeline cannot be parsed: whoever
/// runs it says why.
pub fn reads(node: &Node, request: &Request<'_>, ns: String) -> Vec<String> {
    let all = Asked::parse(node, request).and_then(|asked| {
        let mut context = Context::new(Namespace::parse(&ns), node.parse_context(asked.variables));
        context.from_router = asked.from_router;
        crate::view::reads(&asked.pipeline, &context)
    });
    all.unwrap_or_else(|_| vec![ns])
}

/// The collation that a command names.
fn named_collation(body: Doc<'_>) -> Result<Option<Collation>> {
    body.get_document("collation").filter(|d| !d.is_empty()).map(Collation::parse).transpose()
}

/// A pipeline over rows.
pub struct PipelineRows {
    execution: Execution,
    source: CollectionSource,
    writing: Arc<Writing>,
    /// What its stages read of other collections.
    others: Arc<SubPipelines>,
    pending: VecDeque<DocBuf>,
    finished: bool,
    uuid: Option<[u8; 16]>,
    /// The collection read, behind any views.
    pub ns: String,
}

impl PipelineRows {
    pub fn ended(&self) -> bool {
        self.finished && self.pending.is_empty()
    }
    pub fn uuid(&self) -> Option<[u8; 16]> {
        self.uuid
    }
    /// About how many bytes its stages and their input hold.
    pub fn held_bytes(&self) -> usize {
        let waiting = self.pending.iter().chain(&self.source.first).map(|d| d.bytes().len()).sum::<usize>();
        let stages = self.execution.run().account.bytes() + self.others.held_bytes();
        waiting + stages + self.source.rows.held_bytes()
    }
    /// What its stages did until now.
    pub fn did(&self) -> Vec<Did> {
        self.execution.did()
    }
    /// The query whose rows go through the stages.
    pub fn query(&self) -> Option<&Query> {
        self.source.rows.query()
    }
    pub fn release(&mut self) -> Option<storage::CollectionSnapshot> {
        self.source.rows.release()
    }
    pub fn resume(&mut self, collection: &storage::Collection) {
        self.source.rows.resume(collection);
    }
    pub async fn fill(&mut self, node: &Arc<Node>, op: &Arc<Operation>, out: &mut dyn Output) -> Result<()> {
        self.execution.run().account.tell(vec![op.spills(), node.spills.clone()]);
        // Whatever part of the pipeline was refused, the documents merged until then are there.
        let done = self.run(node, op, out).await.map_err(|e| self.host(node, op).past_retrying(e));
        if done.is_err() {
            self.host(node, op).give_up().await;
        }
        done
    }
    fn host(&self, node: &Arc<Node>, op: &Arc<Operation>) -> LocalHost {
        let (writing, others) = (self.writing.clone(), self.others.clone());
        LocalHost { node: node.clone(), op: op.clone(), writing, others, ns: self.ns.clone() }
    }
    async fn run(&mut self, node: &Arc<Node>, op: &Arc<Operation>, out: &mut dyn Output) -> Result<()> {
        loop {
            while let Some(front) = self.pending.front() {
                if front.bytes().len() > DOCUMENT_BYTES_MAX {
                    bail!(BSON_OBJECT_TOO_LARGE, "{}", too_large(front));
                }
                if !out.put(front.doc())? {
                    return Ok(());
                }
                self.pending.pop_front();
            }
            if out.is_full() || self.finished {
                return Ok(());
            }
            op.check_interrupt()?;
            self.source.op = op.clone();
            let host = self.host(node, op);
            match self.execution.next(&mut self.source, &host).await? {
                Some(batch) => self.pending.extend(batch),
                None => self.finished = true,
            }
            crate::lane::give_way(op).await?;
        }
    }
}

/// The rows of a collection as a pipeline takes them.
pub struct CollectionSource {
    /// Found while the query was opened.
    first: Vec<DocBuf>,
    rows: Rows,
    node: Arc<Node>,
    /// The command under way: a getMore replaces it.
    op: Arc<Operation>,
}

impl Source for CollectionSource {
    fn next<'a>(&'a mut self, _: &'a dyn PipelineHost) -> BoxFuture<'a, Result<Option<Vec<DocBuf>>>> {
        Box::pin(async move {
            if !self.first.is_empty() {
                return Ok(Some(std::mem::take(&mut self.first)));
            }
            if self.rows.ended() {
                return Ok(None);
            }
            let mut out = Documents::default();
            self.rows.fill(&self.node, &self.op, &mut out).await?;
            Ok(if out.list.is_empty() && self.rows.ended() { None } else { Some(out.list) })
        })
    }
}

/// Resolves views: the collection behind them, the whole pipeline, and the collation it runs by.
async fn resolve(
    node: &Node,
    op: &Operation,
    ns: &str,
    pipeline: Vec<Value>,
    named: Option<Collation>,
    within: bool,
) -> Result<(String, Vec<Value>, Collation)> {
    let (mut ns, mut pipeline, mut collation) = (ns.to_string(), pipeline, named);
    for _ in 0..VIEW_DEPTH_MAX {
        let state = |s: &SlotState| (s.view.clone(), s.collection.as_ref().map(|c| c.collation().clone()));
        let (view, default) = node.namespaces.slot(&ns).read(op, |s| Ok(state(s))).await?;
        let Some(view) = view else {
            let inherits = first_stage(&pipeline) != Some("$changeStream");
            return Ok((ns, pipeline, collation.or(default.filter(|_| inherits)).unwrap_or_default()));
        };
        let series = crate::timeseries::is_series(&view);
        if *collation.get_or_insert_with(|| view.collation.clone()) != view.collation && !series {
            bail!(OPTION_NOT_SUPPORTED_ON_VIEW, "Cannot override a view's default collation: {ns}");
        }
        let own = first_stage(&pipeline);
        if own == Some("$changeStream") {
            bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "$changeStream is not supported on views.");
        }
        let for_router = !within && (op.received.database.is_some() || op.received.shard.is_some());
        let db = ns.split('.').next().unwrap_or("");
        if matches!(own, Some("$collStats" | "$indexStats")) && series && !for_router {
            ns = format!("{db}.{}", view.on);
            pipeline = query::timeseries::indexes::with_shown_statistics(pipeline);
            continue;
        }
        if own == Some("$collStats")
            && !series
            && let Some(Value::Document(spec)) =
                pipeline.first().and_then(Value::as_document).and_then(|d| d.get("$collStats"))
        {
            host_stages::check_coll_stats(spec)?;
            // How long operations took is known of any name; all else is known of collections.
            if spec.iter().all(|(option, v)| option == "latencyStats" || v.is_null()) {
                return Ok((ns, pipeline, collation.unwrap_or_default()));
            }
        }
        if own == Some("$collStats") && !series {
            bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "$collStats is not supported on a view");
        }
        if for_router {
            return Err(resolved_for_router(node, &ns));
        }
        pipeline = view.pipeline.iter().cloned().chain(pipeline).collect();
        ns = format!("{db}.{}", view.on);
    }
    bail!(
        VIEW_DEPTH_LIMIT_EXCEEDED,
        "View depth too deep or view cycle detected; maximum depth is {VIEW_DEPTH_MAX}"
    )
}

fn first_stage(pipeline: &[Value]) -> Option<&str> {
    pipeline.first().and_then(Value::as_document).and_then(Document::first).map(|(name, _)| name)
}

/// What is below a view may be on other shards: a router is told what the view means and asks for that.
fn resolved_for_router(node: &Node, view: &str) -> document::Error {
    let (mut ns, mut pipeline) = (view.to_string(), Vec::new());
    for _ in 0..VIEW_DEPTH_MAX {
        let Some(view) = node.namespaces.slot(&ns).read_unchecked().view.clone() else { break };
        pipeline = view.pipeline.iter().cloned().chain(pipeline).collect();
        ns = format!("{}.{}", ns.split('.').next().unwrap_or(""), view.on);
    }
    let collation = node.namespaces.slot(view).collation();
    let collation = collation.document().cloned().unwrap_or_else(|| doc! { "locale": "simple" });
    let message = format!("Resolved views on sharded collections must be executed by mongos: {view}");
    document::Error::new(document::codes::COMMAND_ON_SHARDED_VIEW_NOT_SUPPORTED_ON_MONGOD, message).with_info(
        doc! { "resolvedView": { "ns": ns, "pipeline": Value::Array(pipeline), "collation": collation } },
    )
}

/// A pipeline divided into what the collection's query answers and what runs over its rows.
pub struct Prepared {
    pub ns: String,
    pub filter: Matcher,
    pub sort: Option<SortSpec>,
    pub limit: Option<u64>,
    /// A `$project` that the query does.
    pub projection: Option<Projection>,
    /// The query puts the keys by which it finds documents into them.
    pub index_key: bool,
    /// What a `$group` behind the query asks of it, where that is one document of each group.
    pub group: Option<DistinctGroup>,
    pub rest: Pipeline,
    pub run: Run,
    pub source_only: bool,
    pub hint: Option<Hint>,
    /// The plan of the query, where it was chosen before.
    pub chosen: Option<Plan>,
    /// A router merges what comes of it.
    pub from_router: bool,
}

/// Tells the context of the `$text` at the front of the pipeline, and puts its score where later stages find it.
fn note_text(node: &Node, ns: &str, stages: Vec<Value>, context: &mut Context) -> Result<Vec<Value>> {
    let stages = match context.from_router {
        true => stages,
        false => query::pipeline::text::with_metadata(stages, false)?,
    };
    let first = stages.first().and_then(Value::as_document).and_then(|d| d.get_document("$match"));
    let Some(filter) = first.map(Document::to_doc_buf) else { return Ok(stages) };
    node.note_text_index(&mut context.query, &node.namespaces.slot(ns), filter.doc());
    if query::matcher::ops::stands_in(filter.doc(), "$text") {
        context.query.text = Matcher::parse(filter.doc(), &context.query)?.text().cloned();
    }
    Ok(stages)
}

/// A hint by the key of an index of a time series, which is another one on its buckets.
fn bucket_hint(hint: Hint, stages: &[Value]) -> Hint {
    let Some(options) = query::timeseries::unpacked_by(stages) else { return hint };
    match hint {
        Hint::Key(key) => {
            Hint::Key(query::timeseries::indexes::bucket_key(&key, &options).unwrap_or_else(|_| key.clone()))
        }
        other => other,
    }
}

/// The sort and the limit at the front of a pipeline, and the pipeline without that sort. One that the query cannot do stays there.
fn sorted_front(rest: Pipeline, context: &Context) -> (Option<SortSpec>, Option<i64>, Pipeline) {
    let sorted = rest.leading_sort().and_then(|(pattern, limit)| {
        let sort = SortSpec::parse(pattern.to_doc_buf().doc()).ok().filter(|s| s.natural().is_none())?;
        Some((sort.with_collation(&context.query.collation), limit))
    });
    let Some((sort, limit)) = sorted else {
        let limit = rest.leading_limit();
        return (None, limit, rest);
    };
    let rest = rest.without_leading_sort();
    let limit = limit.or_else(|| rest.leading_limit());
    (Some(sort), limit, rest)
}

/// Whether a name is that of a time series, or of its buckets.
fn reads_series(node: &Node, ns: &str) -> bool {
    let slot = node.namespaces.slot(ns);
    let state = slot.read_unchecked();
    state.view.as_ref().is_some_and(|view| crate::timeseries::is_series(view))
        || storage::split_namespace(ns).1.starts_with(query::timeseries::BUCKETS_PREFIX)
}

/// Resolves views, parses and divides.
pub async fn prepare(node: &Node, op: &Operation, asked: Asked) -> Result<Prepared> {
    if asked.map_reduce && node.namespaces.slot(&asked.ns).read_unchecked().view.is_some() {
        bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "mapReduce on a view is not yet supported: {}", asked.ns);
    }
    // What stands for a `$rankFusion` reads the view, not what is below it.
    let over_series = || reads_series(node, &asked.ns);
    let fused = fusion::fused(&asked.pipeline, storage::split_namespace(&asked.ns).1, over_series)?;
    let stages = fused.unwrap_or(asked.pipeline);
    let (ns, stages, collation) = resolve(node, op, &asked.ns, stages, asked.collation, asked.within).await?;
    let mut namespace = Namespace::parse(&ns);
    if namespace.collection == "$cmd.aggregate" {
        namespace.collection.clear();
    }
    let mut context = Context::new(namespace, node.parse_context(asked.variables));
    context.query.collation = collation;
    context.query.now_ms = asked.now_ms.unwrap_or(context.query.now_ms);
    context.query.scripts.map_reduce = asked.map_reduce;
    context.from_router = asked.from_router;
    context.allow_disk_use = asked.allow_disk_use;
    let hint = asked.hint.map(|hint| bucket_hint(hint, &stages));
    let stages = query::timeseries::near::with_distances(stages)?;
    let stages = query::timeseries::with_bucket_filter(stages);
    let stages = super::geo_near::with_key(node, &ns, stages)?;
    let stages = note_text(node, &ns, stages, &mut context)?;
    let parsed = parse_checked(&stages, &context)?;
    crate::timeseries::output::check_options(&stages)?;
    let pipeline = optimize(parsed, &context)?;
    let mut run = Run::new(&context);
    run.limits = *node.limits.read();
    run.spill = Some(node.temporary.clone());
    run.account.tell(vec![op.spills(), node.spills.clone()]);
    if pipeline.is_source_only() {
        return Ok(Prepared {
            ns,
            filter: Matcher::always(),
            sort: None,
            limit: None,
            projection: None,
            index_key: false,
            group: None,
            rest: pipeline,
            run,
            source_only: true,
            hint: None,
            chosen: None,
            from_router: asked.from_router,
        });
    }
    let near = pipeline.leading_geo_near().map(|spec| geo_near::filter(spec, &context)).transpose()?;
    let filter = match near.or_else(|| pipeline.leading_match()) {
        Some(d) => Matcher::parse(d.to_doc_buf().doc(), &context.query)?,
        None => Matcher::always(),
    };
    let (sort, limit, rest) = sorted_front(pipeline.without_leading_match(), &context);
    let limit = limit.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
    let mut prepared = Prepared {
        group: rest.leading_distinct(sort.as_ref(), &context.query.collation),
        ns,
        filter,
        sort,
        limit,
        projection: None,
        index_key: false,
        rest,
        run,
        source_only: false,
        hint,
        chosen: None,
        from_router: asked.from_router,
    };
    if !super::pseudo::is_pseudo(&prepared.ns) {
        prepared.push_down(&context);
    }
    Ok(prepared)
}

impl Prepared {
    /// Leaves to the query what it can do of the stages at the front: a `$limit`, index keys, and a `$project` that only keeps fields.
    fn push_down(&mut self, context: &Context) {
        if let Some(rest) = self.limit.and_then(|n| self.rest.behind_limit(n)) {
            self.rest = rest;
        }
        if let Some(rest) = self.rest.behind_index_key() {
            (self.index_key, self.rest) = (true, rest);
        }
        let Some((spec, rest)) = self.rest.leading_inclusion() else { return };
        let parsed = Projection::parse(spec.to_doc_buf().doc(), &Matcher::always(), &context.query);
        if let Ok(projection) = parsed {
            (self.projection, self.rest) = (Some(projection), rest);
        }
    }
    /// What the query does with the documents that it finds.
    pub fn shape(&self) -> Shape {
        let (projection, index_key) = (self.projection.clone(), self.index_key);
        Shape { limit: self.limit, projection, index_key, ..Shape::default() }
    }
    /// The paths that the pipeline behind the query reads; `None` where that is all.
    pub fn needed(&self) -> Option<Vec<String>> {
        self.rest.needed_fields().filter(|_| !self.rest.is_empty())
    }
    pub fn wanted(&mut self) -> Wanted<'_> {
        Wanted {
            filter: std::mem::take(&mut self.filter),
            sort: self.sort.as_ref(),
            hint: self.hint.as_ref(),
            chosen: self.chosen.take(),
            collation: self.run.collation.clone(),
            shape: self.shape(),
            needed: self.needed(),
            narrows: true,
            distinct: self.group.as_ref().map(|group| &group.distinct),
            sort_means: Means {
                bytes_max: Some(self.run.limits.sort),
                space: self.run.space(),
                account: Some(self.run.account.clone()),
                told: Vec::new(),
            },
            ..Wanted::default()
        }
    }
}

/// Starts an aggregation.
pub async fn open(node: &Arc<Node>, op: &Arc<Operation>, asked: Asked) -> Result<Rows> {
    start(node, op, asked, None).await
}

/// Starts an aggregation. A pipeline that the collection's query answers whole may put its first rows into `batch`
/// without a copy of each document.
pub async fn start(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    asked: Asked,
    batch: Option<&mut Batch>,
) -> Result<Rows> {
    let writing = Writing { bypass_validation: asked.bypass_validation, ..Writing::default() };
    let prepared = prepare(node, op, asked).await?;
    begin(node, op, prepared, writing, batch).await
}

/// Starts what was prepared.
pub async fn begin(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    mut prepared: Prepared,
    writing: Writing,
    batch: Option<&mut Batch>,
) -> Result<Rows> {
    let ns = prepared.ns.clone();
    let mut first = Documents::default();
    if prepared.rest.first_stage_name() == Some("$changeStream") {
        let stream =
            ChangeStreamRows::open(node, op, &ns, &prepared.rest, prepared.run, prepared.from_router);
        let stream = stream.map_err(change_stream::labelled)?;
        return Ok(Rows::ChangeStream(Box::new(stream)));
    }
    let rows = if prepared.source_only {
        Rows::empty()
    } else if super::pseudo::is_pseudo(&ns) {
        pseudo(node, op, &mut prepared).await?
    } else {
        let slot = node.namespaces.slot(&ns);
        let whole = prepared.rest.is_empty();
        let out: &mut dyn Output = match batch {
            Some(batch) if whole => batch,
            _ => &mut first,
        };
        match Query::open(node, op, &slot, prepared.wanted(), out).await? {
            Opened::Absent => Rows::empty(),
            Opened::Query(query) => Rows::Query(query),
            // It became one after the name was resolved.
            Opened::View(_) => bail!(INTERRUPTED, "a view was created on {ns} while it was read"),
        }
    };
    if prepared.rest.is_empty() && first.list.is_empty() {
        return Ok(rows);
    }
    let uuid = rows.uuid();
    Ok(Rows::Pipeline(Box::new(PipelineRows {
        execution: Execution::new(&prepared.rest, prepared.run)?,
        source: CollectionSource { first: first.list, rows, node: node.clone(), op: op.clone() },
        writing: Arc::new(writing),
        others: Arc::default(),
        pending: VecDeque::new(),
        finished: false,
        uuid,
        ns,
    })))
}

/// The filtered rows of a namespace that is no collection, sorted where the pipeline begins with a sort.
async fn pseudo(node: &Arc<Node>, op: &Arc<Operation>, prepared: &mut Prepared) -> Result<Rows> {
    let filter = std::mem::take(&mut prepared.filter);
    let Some(mut rows) = super::pseudo::source(node, &prepared.ns, filter)? else { return Ok(Rows::empty()) };
    let Some(sort) = prepared.sort.take() else { return Ok(rows) };
    let limit = prepared.limit.and_then(|n| usize::try_from(n).ok());
    let mut sorter = query::sort::Sorter::new(sort, limit, query::sort::MEMORY_LIMIT_BYTES);
    while !rows.ended() {
        let mut out = Documents::default();
        rows.fill(node, op, &mut out).await?;
        for d in out.list {
            sorter.push(d)?;
        }
    }
    Ok(Rows::of(sorter.finish()))
}

/// Some stages tell of the process and take no other level than local; those that write cannot wait to be linearizable.
pub fn check_level(op: &Operation, pipeline: Doc<'_>) -> Result<()> {
    const LOCAL: &[&str] = &["$listLocalSessions", "$listClusterCatalog", "$currentOp", "$planCacheStats"];
    let concern = &op.read_concern;
    if !concern.level_given || concern.level == ReadLevel::Local {
        return Ok(());
    }
    let mut stages = pipeline.iter().filter_map(|e| e.value().as_document()?.iter().next());
    let (first, last) = (stages.next(), stages.last());
    if let Some(stage) = first.filter(|stage| LOCAL.contains(&stage.name())) {
        bail!(
            INVALID_OPTIONS,
            "Aggregation stage {} cannot run with a readConcern other than 'local'",
            stage.name()
        );
    }
    match last.or(first).map(|stage| stage.name()) {
        Some(name @ ("$out" | "$merge")) if concern.level == ReadLevel::Linearizable => {
            bail!(INVALID_OPTIONS, "{name} cannot be used with a 'linearizable' read concern level")
        }
        _ => Ok(()),
    }
}

/// Refuses what does not go with the first stage.
fn refuse_beside_first(op: &Operation, stage: Option<&str>, body: Doc<'_>) -> Result<()> {
    match stage {
        Some("$planCacheStats")
            if !matches!(op.read_concern.level, ReadLevel::Local) && op.received.shard.is_none() =>
        {
            bail!(INVALID_OPTIONS, "$planCacheStats cannot run with a readConcern other than 'local'")
        }
        Some("$changeStream") => change_stream::refuse_uuid(body),
        _ => Ok(()),
    }
}

/// Runs an `aggregate` command; writes the reply's `cursor`, or the explanation asked for.
pub async fn aggregate(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    request: Request<'_>,
    w: &mut DocWriter<'_>,
) -> Result<()> {
    let asked = Asked::parse(node, &request)?;
    let by_router = asked.from_router || op.received.database.is_some() || op.received.shard.is_some();
    if !by_router && let Some(stages) = request.body.get("pipeline").and_then(|v| v.as_array()) {
        refuse_own(stages)?;
    }
    node.check_write_concern(op)?;
    node.heed_query_settings(op, &asked.ns, request.body)?;
    let first = asked.pipeline.first().and_then(Value::as_document).and_then(Document::first);
    refuse_beside_first(op, first.map(|(name, _)| name), request.body)?;
    if asked.explain {
        let reply =
            super::explain::pipeline(node, op, asked, super::explain::Verbosity::Planner, request).await?;
        reply.write_fields(w);
        return Ok(());
    }
    let is_stream = first.is_some_and(|(name, _)| name == "$changeStream");
    op.check_interrupt()?;
    match is_stream {
        true => node.await_read_concern(op).await?,
        false => node.await_readable(op, Area::Database(request.db)).await?,
    };
    node.check_uuid(request.body, &node.namespaces.slot(&asked.ns))?;
    let (ns, batch_size) = (asked.ns.clone(), asked.batch_size.unwrap_or(FIRST_BATCH));
    let mut batch = Batch::new(usize::try_from(batch_size).unwrap_or(usize::MAX));
    let running = || format!("Executor error during aggregate command on namespace: {ns}");
    let shown = |e: Error| e.while_running(running, Some("Failed to optimize pipeline"));
    let mut rows = start(node, op, asked, Some(&mut batch)).await.map_err(shown)?;
    let filled = rows.fill(node, op, &mut batch).await.map_err(|e| shown(e.at(Phase::Running)));
    filled.map_err(|e| if rows.awaits_data() { change_stream::labelled(e) } else { e })?;
    let (at, token) = (rows.read_time(op), rows.resume_token());
    let id = match rows.ended() {
        true => 0,
        false => node.cursors.open(
            Cursor {
                ns: ns.clone(),
                session: op.session.as_ref().map(|s| s.lsid),
                reader: rows.reader(op),
                rows,
                no_timeout: false,
                transaction: op.transaction_number(),
                level: node.read_level(op),
                keeps_snapshot: op.transaction().is_some(),
                time_left: op.time_left(),
                account: Account::new(request.body, node.now_ms(), batch.count()),
            },
            node.now_ms(),
        )?,
    };
    batch.write_cursor_at(w, "firstBatch", id, &ns, token, at);
    Ok(())
}

/// Runs an aggregation to its end; for the node's own use and for sub-pipelines.
pub async fn collect(node: &Arc<Node>, op: &Arc<Operation>, asked: Asked) -> Result<Vec<DocBuf>> {
    let mut rows = open(node, op, asked).await?;
    let mut all = Vec::new();
    while !rows.ended() {
        let mut out = Documents::default();
        rows.fill(node, op, &mut out).await?;
        all.append(&mut out.list);
    }
    Ok(all)
}
