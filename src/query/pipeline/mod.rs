//! Aggregation pipelines: parsed, optimised, split for a cluster, and run batch by batch.
//!
//! ```text
//! [Value] ──parse──> Pipeline ──optimize──> Pipeline ──split──> shards: Pipeline + merge: Pipeline
//!                                  └─ Execution::new ─> next(source, host) ─> batches
//! ```
//!
//! A [`Stage`] is synchronous: batches of raw documents are pushed through it. What needs another collection, another
//! node or the server's own state is asked of a [`PipelineHost`], which the executor's owner implements.
//!
//! Invariant: this crate does no I/O; every await in [`Execution`] is on the host or on the source.

//WIP pub mod execution;
//WIP pub mod group;
pub mod host;
//WIP pub mod lookup;
//WIP pub mod optimize;
//WIP pub mod parse;
//WIP pub mod sort;
//WIP pub mod split;
//WIP pub mod stages;
//WIP pub mod table;

//WIP pub use execution::Execution;
pub use host::{BoxFuture, Documents, HostStage, Namespace, PipelineHost, Source};
//WIP pub use optimize::optimize;
//WIP pub use parse::parse;
//WIP pub use split::{MergeKind, Split, split};

use crate::expression::{Variables, Vars};
use document::{DocBuf, Document, Result, Value};
use std::fmt;
use std::sync::Arc;

/// Whether a stage wants more input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    /// The stage will produce nothing more whatever is pushed (`$limit` reached): the source can stop.
    Done,
}

/// One running stage.
pub trait Stage: Send {
    /// Takes a batch and appends what it produces to `out`.
    fn push(&mut self, batch: Vec<DocBuf>, out: &mut Vec<DocBuf>) -> Result<Flow>;
    /// The input has ended: appends the rest. Called once.
    fn end(&mut self, out: &mut Vec<DocBuf>) -> Result<()> {
        let _ = out;
        Ok(())
    }
}

/// A parsed local stage: makes running stages, and writes itself back as BSON for a shard.
pub trait Plan: fmt::Debug + Send + Sync {
    fn start(&self, run: &Run) -> Box<dyn Stage>;
    /// The fields it reads and whether it forgets all others; see [`Needs`].
    fn needs(&self) -> Needs {
        Needs::Everything
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
    /// Names bound by the command's `let`.
    pub variables: Variables,
    /// `db.collection` the pipeline runs on; the collection is empty for `aggregate: 1`.
    pub namespace: Namespace,
    /// The command came from a router (`fromRouter` or `needsMerge`): internal stage forms are accepted.
    pub from_router: bool,
    pub allow_disk_use: bool,
}

impl Context {
    pub fn new(namespace: Namespace) -> Context {
        Context { variables: Variables::new(), namespace, from_router: false, allow_disk_use: true }
    }
}

/// What running must know of the command.
#[derive(Clone, Debug)]
pub struct Run {
    pub vars: Vars,
    pub allow_disk_use: bool,
    /// Bytes that one blocking stage may hold; 100 MiB by default.
    pub memory_limit: usize,
    /// Seed of `$sample`; `$rand` draws from the process's generator.
    pub seed: u64,
}

/// The default of `internalQueryMaxBlockingSortMemoryUsageBytes` and of the `$group` limit.
pub const MEMORY_LIMIT: usize = 100 * 1024 * 1024;

impl Run {
    pub fn new(vars: Vars) -> Run {
        Run { vars, allow_disk_use: true, memory_limit: MEMORY_LIMIT, seed: 0x9E37_79B9_7F4A_7C15 }
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
    /// The scope it was parsed in.
    pub variables: Variables,
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
        self.stages.iter().map(|s| Value::Document(Document(vec![(s.name.to_string(), s.spec.clone())]))).collect()
    }
    pub fn first_stage_name(&self) -> Option<&'static str> {
        self.stages.first().map(|s| s.name)
    }
    /// The filter of the leading `$match` stages, as one document; the planner answers it and
    /// [`Pipeline::without_leading_match`] is what remains to run.
    pub fn leading_match(&self) -> Option<Document> {
        todo!("leading_match")
    }
    pub fn without_leading_match(&self) -> Pipeline {
        let skip = 0;
        Pipeline { stages: self.stages[skip..].to_vec(), variables: self.variables.clone() }
    }
    /// The pattern of a `$sort` at the front (after the leading `$match`), and the limit folded into it.
    pub fn leading_sort(&self) -> Option<(Document, Option<i64>)> {
        todo!("leading_sort")
    }
    /// This pipeline without the `$sort` at its front, for a plan that already delivers that order; a folded limit
    /// stays as a `$limit`.
    pub fn without_leading_sort(&self) -> Pipeline {
        todo!("without_leading_sort")
    }
    /// The most documents the pipeline can use of its input, when a `$limit` at the front says so.
    pub fn leading_limit(&self) -> Option<i64> {
        todo!("leading_limit")
    }
    /// The top-level fields of the input that can matter; `None` when all can.
    pub fn needed_fields(&self) -> Option<Vec<String>> {
        todo!("needed_fields")
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
        todo!("involved_namespaces")
    }
    /// A pipeline whose documents are given: for update pipelines, tests and `$documents`.
    /// Fails when a stage needs a host.
    pub fn run_local(&self, input: Vec<DocBuf>, run: &Run) -> Result<Vec<DocBuf>> {
        todo!("run_local")
    }
}
