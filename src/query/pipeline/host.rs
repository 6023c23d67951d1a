//! What a running pipeline asks of the node it runs on.

use super::Run;
use document::{DocBuf, Result, Value};
use std::future::Future;
use std::pin::Pin;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A database and a collection; an empty collection is the database itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Namespace {
    pub db: String,
    pub collection: String,
}

impl Namespace {
    /// Bytes of the longest full name.
    pub const BYTES_MAX: usize = 255;

    pub fn new(db: impl Into<String>, collection: impl Into<String>) -> Namespace {
        Namespace { db: db.into(), collection: collection.into() }
    }
    /// Splits `db.coll.with.dots` at the first dot.
    pub fn parse(full: &str) -> Namespace {
        let (db, collection) = full.split_once('.').unwrap_or((full, ""));
        Namespace::new(db, collection)
    }
}
impl std::fmt::Display for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.db, self.collection)
    }
}

/// Batches of documents, as long as there are any.
pub trait Source: Send {
    /// The next batch, never empty unless the host wants to yield; `None` at the end. `host` is the one of the command under
    /// way: a source may outlive the command that opened it.
    fn next<'a>(&'a mut self, host: &'a dyn PipelineHost) -> BoxFuture<'a, Result<Option<Vec<DocBuf>>>>;
    /// Gives up what was not read, where the host keeps something open for it.
    fn end(&mut self, host: &dyn PipelineHost) {
        let _ = host;
    }
    /// Whether every document of a collection, of which these are some, has to be looked at to find them.
    fn scans(&self) -> bool {
        false
    }
}

/// Documents that are already at hand.
pub struct Documents(pub Option<Vec<DocBuf>>);

impl Source for Documents {
    fn next<'a>(&'a mut self, _: &'a dyn PipelineHost) -> BoxFuture<'a, Result<Option<Vec<DocBuf>>>> {
        let batch = self.0.take();
        Box::pin(async move { Ok(batch) })
    }
}

/// Documents of a cursor that the host keeps.
pub struct Kept {
    pub number: u64,
    /// See [`Source::scans`].
    pub scans: bool,
}

impl Source for Kept {
    fn next<'a>(&'a mut self, host: &'a dyn PipelineHost) -> BoxFuture<'a, Result<Option<Vec<DocBuf>>>> {
        host.more(self.number)
    }
    fn scans(&self) -> bool {
        self.scans
    }
    fn end(&mut self, host: &dyn PipelineHost) {
        host.end(self.number);
    }
}

/// A parsed stage that the host supplies or takes part in.
#[derive(Clone, Debug)]
pub struct HostStage {
    pub name: &'static str,
    pub spec: Value,
    /// `$lookup`, `$graphLookup`, `$unionWith`, `$out`, `$merge`: the collection it names.
    pub namespace: Option<Namespace>,
    pub role: Role,
    pub join: Option<super::lookup::Join>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Produces documents at the front of the pipeline.
    Source,
    /// Reads another collection for each document, or after the input.
    Join,
    /// Writes what it is given; last in the pipeline.
    Write,
    /// Changes documents with the host's help, in the middle (`$changeStreamSplitLargeEvent`, ...).
    Transform,
}

impl HostStage {
    pub fn is_source(&self) -> bool {
        self.role == Role::Source
    }
}

/// Implemented by the node (one collection, or a cluster behind a router).
pub trait PipelineHost: Send + Sync {
    /// Called between steps of a long computation that has nothing to wait for: lets other tasks run, and fails when the
    /// operation is to end.
    fn breathe<'a>(&'a self) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }
    /// Opens a source stage (`$collStats`, `$indexStats`, `$currentOp`, `$changeStream`, ...).
    fn source<'a>(&'a self, stage: &'a HostStage, run: &'a Run) -> BoxFuture<'a, Result<Box<dyn Source>>>;
    /// Runs a pipeline on another namespace. `let_values` are bound to the names in `pipeline`'s scope: the host
    /// passes them as the `let` of an aggregate command, or as [`crate::expression::Vars`].
    fn run<'a>(
        &'a self,
        namespace: &'a Namespace,
        pipeline: Vec<Value>,
        let_values: Vec<(String, Value)>,
        run: &'a Run,
    ) -> BoxFuture<'a, Result<Box<dyn Source>>>;
    /// The next documents of a cursor that the host keeps for the pipeline ([`Kept`]); `None` at the end.
    fn more<'a>(&'a self, number: u64) -> BoxFuture<'a, Result<Option<Vec<DocBuf>>>> {
        let e = document::err!(NOT_IMPLEMENTED, "cursor {number} of a pipeline cannot be read here");
        Box::pin(async move { Err(e) })
    }
    /// Closes such a cursor before its end.
    fn end(&self, number: u64) {
        let _ = number;
    }
    /// `$out` and `$merge`: called for each batch, then once with `end`.
    fn write<'a>(
        &'a self,
        stage: &'a HostStage,
        batch: Vec<DocBuf>,
        end: bool,
        run: &'a Run,
    ) -> BoxFuture<'a, Result<()>>;
}

/// A host for pipelines that need none: every call is refused.
pub struct NoHost;

impl PipelineHost for NoHost {
    fn source<'a>(&'a self, stage: &'a HostStage, _: &'a Run) -> BoxFuture<'a, Result<Box<dyn Source>>> {
        let e = document::err!(NOT_IMPLEMENTED, "{} is not available here", stage.name);
        Box::pin(async move { Err(e) })
    }
    fn run<'a>(
        &'a self,
        namespace: &'a Namespace,
        _: Vec<Value>,
        _: Vec<(String, Value)>,
        _: &'a Run,
    ) -> BoxFuture<'a, Result<Box<dyn Source>>> {
        let e = document::err!(NOT_IMPLEMENTED, "{namespace} cannot be read here");
        Box::pin(async move { Err(e) })
    }
    fn write<'a>(
        &'a self,
        stage: &'a HostStage,
        _: Vec<DocBuf>,
        _: bool,
        _: &'a Run,
    ) -> BoxFuture<'a, Result<()>> {
        let e = document::err!(NOT_IMPLEMENTED, "{} is not available here", stage.name);
        Box::pin(async move { Err(e) })
    }
}
