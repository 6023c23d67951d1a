//! A running pipeline.
//!
//! ```text
//! source ─> batch ─> step ─> batch ─> step ─> batch ─> step ─> out
//! ```
//!
//! Between any two steps stands a batch, bounded in rows and bytes. The last step that can run runs, until it has used up
//! what stands before it or filled what stands behind it; only when no step can run is the source asked. So a stage that makes
//! a million documents of one (`$unwind`) is resumed as its documents are used up, and nowhere waits more than a batch.
//!
//! When the source ends (or a step wants no more) the steps end in order, each one's last output going through the steps
//! after it before the next ends.
//!
//! Where can it get stuck? Nowhere: [`Execution::next`] returns, with what there is, after about a millisecond of counted
//! work, and its caller looks at deadlines and lets other tasks run.

use super::graph::RunningGraph;
use super::host::{BoxFuture, Documents, HostStage, NoHost, PipelineHost, Role, Source};
use super::lookup::{Join, RunningLookup, RunningUnion};
use super::running_facet::RunningFacet;
use super::stage::Batch;
use super::stages::host_stages;
use super::{Flow, Parsed, ParsedKind, Pipeline, Run, Stage, account::Use};
use document::{DocBuf, Result, bail, meter};
use std::pin::pin;
use std::task::{Context as TaskContext, Poll, Waker};

enum Kind {
    Local(Box<dyn Stage>),
    Lookup(Box<RunningLookup>),
    Graph(RunningGraph),
    Union(RunningUnion),
    Facet(RunningFacet),
    Write(HostStage),
}

/// A stage under way and what waits before it.
struct Step {
    name: &'static str,
    kind: Kind,
    input: Batch,
    /// It has more to give than fitted.
    more: bool,
    ended: bool,
    /// Documents given to the next.
    given: u64,
    given_bytes: u64,
}

/// What a stage did, for explain.
#[derive(Clone, Copy, Debug)]
pub struct Did {
    pub name: &'static str,
    pub returned: u64,
    pub returned_bytes: u64,
    pub used: Option<Use>,
}

/// What a step of the execution came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Worked,
    /// Nothing can go on without input.
    Starved,
    Ended,
}

/// The state of a running pipeline; owned by a cursor.
pub struct Execution {
    steps: Vec<Step>,
    /// A source stage at the front, not yet opened.
    opening: Option<HostStage>,
    own_source: Option<Box<dyn Source>>,
    run: Run,
    /// No further input will come.
    closed: bool,
    /// Input, where there is no step.
    passed: Batch,
    finished: bool,
}

/// Steps taken by one call of [`Execution::next`] at most, where no work is counted.
const STEPS_MAX: usize = 64;

impl Execution {
    /// Starts the stages. Nothing is read yet.
    pub fn new(p: &Pipeline, run: Run) -> Result<Execution> {
        let mut steps = Vec::with_capacity(p.stages.len());
        let mut opening = None;
        for s in &p.stages {
            match &s.kind {
                ParsedKind::Host(h) if h.is_source() => opening = Some(h.clone()),
                _ => steps.push(Step {
                    name: s.name,
                    kind: start(s, &run)?,
                    input: Batch::new(),
                    more: false,
                    ended: false,
                    given: 0,
                    given_bytes: 0,
                }),
            }
        }
        let passed = Batch::new();
        Ok(Execution { steps, opening, own_source: None, run, closed: false, passed, finished: false })
    }

    /// The next batch of results, empty where there is none yet; `None` at the end. `source` gives the collection's
    /// documents, and is not read when the pipeline has a source stage.
    pub async fn next(
        &mut self,
        source: &mut dyn Source,
        host: &dyn PipelineHost,
    ) -> Result<Option<Vec<DocBuf>>> {
        if self.finished {
            return Ok(None);
        }
        let mut out = Batch::new();
        for _ in 0..STEPS_MAX {
            match self.step(&mut out, host).await? {
                Progress::Worked => {}
                // A source that has nothing now, as one that awaits data, gives an empty batch.
                Progress::Starved if !self.pull(source, host).await? => break,
                Progress::Starved => {}
                Progress::Ended => {
                    self.finished = true;
                    return Ok(Some(out.into_vec()).filter(|docs| !docs.is_empty()));
                }
            }
            if !out.is_empty() || meter::quanta() > 0 {
                break;
            }
        }
        Ok(Some(out.into_vec()))
    }

    /// Passes one document through all the stages and returns what comes out, without an end of the input: for endless
    /// streams, whose stages keep nothing.
    pub async fn pass(&mut self, doc: DocBuf, host: &dyn PipelineHost) -> Result<Vec<DocBuf>> {
        self.feed([doc]);
        let (mut all, mut out) = (Vec::new(), Batch::new());
        while self.step(&mut out, host).await? == Progress::Worked {
            all.extend(std::mem::take(&mut out).into_vec());
        }
        Ok(all)
    }

    /// Gives it documents; only when it is starved.
    pub fn feed(&mut self, docs: impl IntoIterator<Item = DocBuf>) {
        match self.steps.first_mut() {
            Some(first) => first.input.extend(docs),
            None => self.passed.extend(docs),
        }
    }
    /// Says that no more will come.
    pub fn close(&mut self) {
        self.closed = true;
    }
    /// Whether it would not look at further input.
    pub fn wants_no_more(&self) -> bool {
        self.closed
    }
    /// What the stages did until now, without that of a source stage at the front.
    pub fn did(&self) -> Vec<Did> {
        let used = |s: &Step| match &s.kind {
            Kind::Local(stage) => stage.use_of_memory(),
            Kind::Graph(graph) => Some(graph.used()),
            Kind::Lookup(lookup) => lookup.used(),
            _ => None,
        };
        let did =
            |s: &Step| Did { name: s.name, returned: s.given, returned_bytes: s.given_bytes, used: used(s) };
        self.steps.iter().map(did).collect()
    }
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Takes a batch of the source, or learns of its end; false for an empty batch.
    async fn pull(&mut self, source: &mut dyn Source, host: &dyn PipelineHost) -> Result<bool> {
        if let Some(stage) = self.opening.take() {
            self.own_source = Some(match stage.name {
                "$documents" => Box::new(Documents(Some(host_stages::documents_of(&stage, &self.run)?))),
                _ => host.source(&stage, &self.run).await?,
            });
        }
        let batch = match &mut self.own_source {
            Some(own) => own.next(host).await?,
            None => source.next(host).await?,
        };
        let any = batch.as_ref().is_none_or(|docs| !docs.is_empty());
        match batch {
            Some(docs) => self.feed(docs),
            None => self.close(),
        }
        Ok(any)
    }

    /// Runs the last step that can run, or ends the first that has not ended.
    pub async fn step(&mut self, out: &mut Batch, host: &dyn PipelineHost) -> Result<Progress> {
        out.extend(std::mem::take(&mut self.passed).into_vec());
        let ready = self.steps.iter().rposition(|s| !s.ended && (s.more || !s.input.is_empty()));
        let (at, ending) = match ready {
            Some(at) => (at, false),
            None if !self.closed => {
                return Ok(if out.is_empty() { Progress::Starved } else { Progress::Worked });
            }
            None => match self.steps.iter().position(|s| !s.ended) {
                Some(at) => (at, true),
                None => return Ok(Progress::Ended),
            },
        };
        let (before, behind) = self.steps.split_at_mut(at + 1);
        let Some(step) = before.last_mut() else { return Ok(Progress::Ended) };
        let to = match behind.first_mut() {
            Some(next) => &mut next.input,
            None => out,
        };
        let (before, bytes_before) = (to.len(), to.bytes());
        let flow = match ending {
            true => step.end(to, host, &self.run).await?,
            false => step.run(to, host, &self.run).await?,
        };
        step.given += to.len().saturating_sub(before) as u64;
        step.given_bytes += to.bytes().saturating_sub(bytes_before) as u64;
        step.more = flow == Flow::More && !ending;
        step.ended |= ending && flow != Flow::More;
        if flow == Flow::Done {
            self.stop_before(at, host);
        }
        Ok(Progress::Worked)
    }

    /// Nothing that comes before the step behind this one is wanted any more.
    fn stop_before(&mut self, at: usize, host: &dyn PipelineHost) {
        self.closed = true;
        for step in &mut self.steps[..=at] {
            (step.ended, step.more) = (true, false);
            step.input.clear();
            if let Kind::Union(union) = &mut step.kind {
                union.stop(host);
            }
        }
    }
}

fn start(s: &Parsed, run: &Run) -> Result<Kind> {
    Ok(match &s.kind {
        ParsedKind::Local(plan) => Kind::Local(plan.start(run)?),
        ParsedKind::Facet(facets) => Kind::Facet(RunningFacet::new(facets, run)?),
        ParsedKind::Host(h) => match (&h.join, h.role) {
            (Some(Join::Lookup(l)), _) => Kind::Lookup(Box::new(RunningLookup::new(l.clone(), run))),
            (Some(Join::Graph(g)), _) => Kind::Graph(RunningGraph::new(g.clone(), run)),
            (Some(Join::Union { namespace, pipeline, .. }), _) => {
                Kind::Union(RunningUnion::new(namespace.clone(), pipeline.clone()))
            }
            (None, Role::Write) => Kind::Write(h.clone()),
            _ => bail!(NOT_IMPLEMENTED, "{} is known but not implemented", h.name),
        },
    })
}

impl Step {
    /// Uses up the input, as far as there is room behind it.
    async fn run(&mut self, to: &mut Batch, host: &dyn PipelineHost, run: &Run) -> Result<Flow> {
        match &mut self.kind {
            Kind::Local(stage) => local(&mut **stage, &mut self.input, self.more, to),
            Kind::Lookup(l) => l.run(&mut self.input, to, host, run).await,
            Kind::Graph(g) => g.run(&mut self.input, to, host, run).await,
            Kind::Union(_) => {
                to.extend(std::mem::take(&mut self.input).into_vec());
                Ok(Flow::Continue)
            }
            Kind::Facet(f) => {
                f.push(std::mem::take(&mut self.input).into_vec(), host).await?;
                Ok(Flow::Continue)
            }
            Kind::Write(h) => {
                host.write(h, std::mem::take(&mut self.input).into_vec(), false, run).await?;
                Ok(Flow::Continue)
            }
        }
    }

    async fn end(&mut self, to: &mut Batch, host: &dyn PipelineHost, run: &Run) -> Result<Flow> {
        match &mut self.kind {
            Kind::Local(stage) => stage.end(to),
            Kind::Lookup(_) | Kind::Graph(_) => Ok(Flow::Continue),
            Kind::Union(u) => u.next(to, host, run).await,
            Kind::Facet(f) => f.end(to, host).await,
            Kind::Write(h) => host.write(h, Vec::new(), true, run).await.map(|_| Flow::Continue),
        }
    }
}

fn local(stage: &mut dyn Stage, input: &mut Batch, more: bool, to: &mut Batch) -> Result<Flow> {
    if more {
        match stage.resume(to)? {
            Flow::Continue => {}
            other => return Ok(other),
        }
    }
    while !to.is_full()
        && let Some(d) = input.pop()
    {
        meter::spend(4)?;
        match stage.push(d, to)? {
            // Others wait for the worker: the rest of the input is for the next poll.
            Flow::Continue if meter::quanta() > 0 => break,
            Flow::Continue => {}
            other => return Ok(other),
        }
    }
    Ok(Flow::Continue)
}

/// A boxed call of [`Execution::step`], for pipelines within pipelines.
pub(super) fn boxed_step<'a>(
    execution: &'a mut Execution,
    out: &'a mut Batch,
    host: &'a dyn PipelineHost,
) -> BoxFuture<'a, Result<Progress>> {
    Box::pin(execution.step(out, host))
}

/// Runs a pipeline that needs no host to its end.
pub(super) fn run_local(p: &Pipeline, input: Vec<DocBuf>, run: &Run) -> Result<Vec<DocBuf>> {
    let mut execution = Execution::new(p, run.clone())?;
    let mut source = Documents(Some(input));
    let mut out = Vec::new();
    loop {
        let mut future = pin!(execution.next(&mut source, &NoHost));
        // Without a host every await is ready at once.
        match future.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
            Poll::Ready(Ok(Some(batch))) => out.extend(batch),
            Poll::Ready(Ok(None)) => return Ok(out),
            Poll::Ready(Err(e)) => return Err(e),
            Poll::Pending => bail!(INTERNAL_ERROR, "a pipeline without a host did not finish"),
        }
    }
}
