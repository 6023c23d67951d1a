//! Aggregation pipelines: parsed, optimised, split for a cluster, and run batch by batch.
//!
//! ```text
//! [Value] ──parse──> Pipeline ──optimize──> Pipeline ──split──> shards: Pipeline + merge: Pipeline
//!                                  └─ Execution::new ─> next(source, host) ─> batches
//! ```
//!
//! A [`Stage`] is synchronous: raw documents are pushed through it, and it fills a bounded batch (the head of [`stage`] says
//! what a new stage has to do). What needs another collection, another
//! node or the server's own state is asked of a [`PipelineHost`], which the executor's owner implements.
//!
//! Invariant: this crate does no I/O; every await in [`Execution`] is on the host or on the source.

pub mod account;
mod distinct_group;
pub mod execution;
pub mod fusion;
pub mod graph;
pub mod group;
pub mod hash_side;
mod hidden;
pub mod host;
pub mod index_key;
pub mod key_file;
pub mod lookup;
pub mod optimize;
pub mod parse;
pub mod partition;
mod pushdown;
pub mod running_facet;
pub mod score;
pub mod score_fusion;
pub mod seen;
pub mod sort;
pub mod sort_key;
pub mod spill;
pub mod split;
pub mod spool;
pub mod stage;
pub mod stages;
pub mod table;
pub mod text;

pub use account::{Account, Charge, Spills};
pub use distinct_group::DistinctGroup;
pub use execution::Execution;
pub use host::{BoxFuture, Documents, HostStage, Kept, Namespace, PipelineHost, Source};
pub use optimize::optimize;
pub use parse::{parse, parse_checked, refuse_own};
pub use split::{MergeKind, Split, split};
pub use stage::{Batch, Flow, Stage};

use crate::QueryContext;
use crate::expression::{Variables, Vars};
use crate::sort::SortSpec;
use document::{Collation, DocBuf, Document, Result, Value};
use std::fmt;
use std::sync::Arc;

/// A parsed local stage: makes running stages, and writes itself back as BSON for a shard.
pub trait Plan: fmt::Debug + Send + Sync {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>>;
    /// The fields it reads and whether it forgets all others; see [`Needs`].
    fn needs(&self) -> Needs {
        Needs::Everything
    }
    /// The projection of a find that does the same, where it only keeps fields: the argument in its normal form.
    fn inclusion(&self) -> Option<Document> {
        None
    }
}

/// What a stage reads of its input, for projection pushdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    Everything,
    /// Reads these and passes everything else on.
    Passing(Vec<String>),
    /// Reads these and its output holds nothing else of the input.
    Only(Vec<String>),
}

/// What parsing must know of the command.
#[derive(Clone, Debug)]
pub struct Context {
    /// Variables of the command's `let` with their values, and the time.
    pub query: QueryContext,
    /// `db.collection` the pipeline runs on; the collection is empty for `aggregate: 1`.
    pub namespace: Namespace,
    /// The command came from a router (`fromRouter` or `needsMerge`): internal stage forms are accepted.
    pub from_router: bool,
    pub allow_disk_use: bool,
    /// The pipeline belongs to a `$lookup` or `$unionWith`, where `$documents` may start it.
    pub in_join: bool,
}

impl Context {
    pub fn new(namespace: Namespace, query: QueryContext) -> Context {
        Context { query, namespace, from_router: false, allow_disk_use: true, in_join: false }
    }
    /// The scope that expressions are parsed in.
    pub fn scope(&self) -> Variables {
        Variables::from(&self.query)
    }
}

/// Bytes that stages of each kind may hold before they spill or fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub sort: usize,
    pub group: usize,
    pub bucket_auto: usize,
    pub graph_lookup: usize,
    pub lookup: usize,
    /// The hash side of a `$lookup`.
    pub lookup_side: usize,
    pub set_window_fields: usize,
    pub facet: usize,
    pub push: usize,
    pub add_to_set: usize,
    /// Documents that one `$densify` makes.
    pub densify: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        let n = MEMORY_LIMIT;
        Limits {
            sort: n,
            group: n,
            bucket_auto: n,
            graph_lookup: n,
            lookup: n,
            lookup_side: n,
            set_window_fields: n,
            facet: n,
            push: n,
            add_to_set: n,
            densify: 500_000,
        }
    }
}

/// What running must know of the command.
#[derive(Clone, Debug)]
pub struct Run {
    pub vars: Vars,
    pub allow_disk_use: bool,
    pub limits: Limits,
    /// What the running pipeline holds.
    pub account: Arc<Account>,
    /// Where stages may spill; `None` where there is no disk.
    pub spill: Option<Arc<dyn spill::Space>>,
    /// Names of the stack positions of `vars`, for sub-pipelines.
    pub names: Vec<String>,
    /// How strings compare, in sub-pipelines too.
    pub collation: Collation,
    pub scripts: crate::script::Scripts,
}

/// The default of every limit.
pub const MEMORY_LIMIT: usize = 100 * 1024 * 1024;

impl Run {
    /// A charge with one of the limits.
    pub fn charge(&self, limit: usize) -> Charge {
        Charge::new(&self.account, limit)
    }
    /// Where a stage may spill; `None` where it must not.
    pub fn space(&self) -> Option<Arc<dyn spill::Space>> {
        self.spill.clone().filter(|_| self.allow_disk_use)
    }
    pub fn new(ctx: &Context) -> Run {
        Run {
            vars: Vars::from(&ctx.query),
            allow_disk_use: ctx.allow_disk_use,
            limits: Limits::default(),
            account: Arc::default(),
            spill: None,
            names: ctx.scope().names(),
            collation: ctx.query.collation.clone(),
            scripts: ctx.query.scripts.clone(),
        }
    }
}

/// One parsed stage.
#[derive(Clone, Debug)]
pub struct Parsed {
    pub name: &'static str,
    /// The stage's argument as it was written (or rewritten by the optimiser): what a shard is sent.
    pub spec: Value,
    pub kind: ParsedKind,
}

#[derive(Clone, Debug)]
pub enum ParsedKind {
    Local(Arc<dyn Plan>),
    /// `$facet` with sub-pipelines, which may hold `$lookup` but no source and no writing stage.
    Facet(Vec<(String, Pipeline)>),
    /// The executor's owner supplies it.
    Host(HostStage),
}

/// A parsed pipeline.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    pub stages: Vec<Parsed>,
}

impl Pipeline {
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }
    pub fn len(&self) -> usize {
        self.stages.len()
    }
    /// The stages as a shard's aggregate command takes them.
    pub fn to_array(&self) -> Vec<Value> {
        self.stages
            .iter()
            .map(|s| Value::Document(Document(vec![(s.name.to_string(), s.spec.clone())])))
            .collect()
    }
    pub fn first_stage_name(&self) -> Option<&'static str> {
        self.stages.first().map(|s| s.name)
    }
    /// The filter of the leading `$match` stages, as one document; the planner answers it and
    /// [`Pipeline::without_leading_match`] is what remains to run.
    pub fn leading_match(&self) -> Option<Document> {
        optimize::leading_match(self).0
    }
    pub fn without_leading_match(&self) -> Pipeline {
        let skip = optimize::leading_match(self).1;
        Pipeline { stages: self.stages[skip..].to_vec() }
    }
    /// The argument of a `$geoNear` at the front.
    pub fn leading_geo_near(&self) -> Option<&Document> {
        let first = self.stages.first().filter(|s| s.name == "$geoNear")?;
        first.spec.as_document()
    }
    /// The pattern of a `$sort` at the front (after the leading `$match`), and the limit folded into it.
    pub fn leading_sort(&self) -> Option<(Document, Option<i64>)> {
        optimize::leading_sort(self)
    }
    /// This pipeline without the `$sort` at its front, for a plan that already delivers that order; a folded limit
    /// stays as a `$limit`.
    pub fn without_leading_sort(&self) -> Pipeline {
        optimize::without_leading_sort(self)
    }
    /// The most documents the pipeline can use of its input, when a `$limit` at the front says so.
    pub fn leading_limit(&self) -> Option<i64> {
        optimize::leading_limit(self)
    }
    /// The paths of the input that can matter, none below another; `None` when all can.
    pub fn needed_fields(&self) -> Option<Vec<String>> {
        optimize::needed_fields(self)
    }
    /// The projection that a `$project` at the front stands for, and what is behind it; `None` where it does more than keep fields.
    pub fn leading_inclusion(&self) -> Option<(Document, Pipeline)> {
        let (first, rest) = self.stages.split_first()?;
        match &first.kind {
            ParsedKind::Local(plan) => Some((plan.inclusion()?, Pipeline { stages: rest.to_vec() })),
            _ => None,
        }
    }
    /// What is behind the stage that asks the query for index keys, where that is at the front ([`index_key`]).
    pub fn behind_index_key(&self) -> Option<Pipeline> {
        index_key::behind(self)
    }
    /// What a `$group` at the front makes of one document for each value, where it needs no others; `sort` is the order of its input.
    pub fn leading_distinct(&self, sort: Option<&SortSpec>, collation: &Collation) -> Option<DistinctGroup> {
        let first = self.stages.first().filter(|s| s.name == "$group")?;
        DistinctGroup::of(first.spec.as_document()?, sort, collation)
    }
    /// What is behind a `$limit` of `n` at the front, where there is one.
    pub fn behind_limit(&self, n: u64) -> Option<Pipeline> {
        let (first, rest) = self.stages.split_first().filter(|(first, _)| first.name == "$limit")?;
        let own = document::number::to_i64_exact(&first.spec).and_then(|own| u64::try_from(own).ok());
        (own == Some(n)).then(|| Pipeline { stages: rest.to_vec() })
    }
    /// The `$out` or `$merge` at the end.
    pub fn writes(&self) -> Option<&HostStage> {
        match self.stages.last() {
            Some(Parsed { kind: ParsedKind::Host(h), .. }) if matches!(h.name, "$out" | "$merge") => Some(h),
            _ => None,
        }
    }
    /// The stage at the front that produces documents itself (`$collStats`, `$documents`, `$changeStream`, ...).
    pub fn source_stage(&self) -> Option<&HostStage> {
        match self.stages.first() {
            Some(Parsed { kind: ParsedKind::Host(h), .. }) if h.is_source() => Some(h),
            _ => None,
        }
    }
    /// True when nothing is read from the pipeline's own collection.
    pub fn is_source_only(&self) -> bool {
        self.source_stage().is_some()
    }
    /// Every other namespace that the pipeline names, with whether it writes there.
    pub fn involved_namespaces(&self) -> Vec<(Namespace, bool)> {
        parse::involved_namespaces(self)
    }
    /// A pipeline whose documents are given: for update pipelines, tests and `$documents`.
    /// Fails when a stage needs a host.
    pub fn run_local(&self, input: Vec<DocBuf>, run: &Run) -> Result<Vec<DocBuf>> {
        execution::run_local(self, input, run)
    }
}

#[cfg(test)]
mod tests;
