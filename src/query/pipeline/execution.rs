//! A running pipeline.
//!
//! Batches are pulled from the source and pushed through the steps in order. When the source ends (or a step says it needs
//! no more) the steps end in order, each one's last output going through the steps after it.

use super::host::{BoxFuture, Documents, HostStage, NoHost, PipelineHost, Role, Source};
use super::lookup::{self, Graph, Join, RunningLookup};
use super::stages::host_stages;
use super::{Flow, Parsed, ParsedKind, Pipeline, Run, Stage};
use document::{DocBuf, Document, Result, Value, bail};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

enum Step {
    Local(Box<dyn Stage>),
    Lookup(RunningLookup),
    Graph(Arc<Graph>),
    Union(Join),
    Facet { facets: Vec<(String, Pipeline)>, input: Vec<DocBuf>, bytes: usize },
    Write(HostStage),
}

/// The state of a running pipeline; owned by a cursor.
pub struct Execution {
    steps: Vec<Step>,
    /// A source stage at the front, not yet opened.
    opening: Option<HostStage>,
    own_source: Option<Box<dyn Source>>,
    run: Run,
    finished: bool,
}

impl Execution {
    /// Starts the stages. Nothing is read yet.
    pub fn new(p: &Pipeline, run: Run) -> Result<Execution> {
        let mut steps = Vec::with_capacity(p.stages.len());
        let mut opening = None;
        for s in &p.stages {
            match &s.kind {
                ParsedKind::Host(h) if h.is_source() => opening = Some(h.clone()),
                _ => steps.push(start(s, &run)?),
            }
        }
        Ok(Execution { steps, opening, own_source: None, run, finished: false })
    }

    /// The next batch of results, possibly empty; `None` at the end. `source` gives the collection's documents, and is not
    /// read when the pipeline has a source stage.
    pub async fn next(
        &mut self,
        source: &mut dyn Source,
        host: &dyn PipelineHost,
    ) -> Result<Option<Vec<DocBuf>>> {
        if self.finished {
            return Ok(None);
        }
        if let Some(stage) = self.opening.take() {
            self.own_source = Some(match stage.name {
                "$documents" => Box::new(Documents(Some(host_stages::documents_of(&stage, &self.run)?))),
                _ => host.source(&stage, &self.run).await?,
            });
        }
        let batch = match &mut self.own_source {
            Some(own) => own.next().await?,
            None => source.next().await?,
        };
        let Some(batch) = batch else { return self.finish(0, Vec::new(), host).await.map(Some) };
        let mut docs = batch;
        for i in 0..self.steps.len() {
            let (out, flow) = self.steps[i].push(docs, host, &self.run).await?;
            docs = out;
            if flow == Flow::Done {
                return self.finish(i + 1, docs, host).await.map(Some);
            }
        }
        Ok(Some(docs))
    }

    /// Ends the steps from `from` on; `docs` is what goes into the first of them.
    async fn finish(
        &mut self,
        from: usize,
        mut docs: Vec<DocBuf>,
        host: &dyn PipelineHost,
    ) -> Result<Vec<DocBuf>> {
        self.finished = true;
        for i in from..self.steps.len() {
            let mut out = Vec::new();
            if !docs.is_empty() {
                out = self.steps[i].push(docs, host, &self.run).await?.0;
            }
            self.steps[i].end(&mut out, host, &self.run).await?;
            docs = out;
        }
        Ok(docs)
    }
}

fn start(s: &Parsed, run: &Run) -> Result<Step> {
    Ok(match &s.kind {
        ParsedKind::Local(plan) => Step::Local(plan.start(run)?),
        ParsedKind::Facet(facets) => Step::Facet { facets: facets.clone(), input: Vec::new(), bytes: 0 },
        ParsedKind::Host(h) => match (&h.join, h.role) {
            (Some(Join::Lookup(l)), _) => Step::Lookup(RunningLookup::new(l.clone(), run)),
            (Some(Join::Graph(g)), _) => Step::Graph(g.clone()),
            (Some(union), _) => Step::Union(union.clone()),
            (None, Role::Write) => Step::Write(h.clone()),
            _ => bail!(NOT_IMPLEMENTED, "{} is known but not implemented", h.name),
        },
    })
}

impl Step {
    async fn push(
        &mut self,
        docs: Vec<DocBuf>,
        host: &dyn PipelineHost,
        run: &Run,
    ) -> Result<(Vec<DocBuf>, Flow)> {
        let more = |docs| Ok((docs, Flow::Continue));
        match self {
            Step::Local(stage) => {
                let mut out = Vec::new();
                let flow = stage.push(docs, &mut out)?;
                Ok((out, flow))
            }
            Step::Lookup(l) => more(l.push(docs, host, run).await?),
            Step::Graph(g) => more(g.push(docs, host, run).await?),
            Step::Union(_) => more(docs),
            Step::Facet { input, bytes, .. } => {
                *bytes += docs.iter().map(|d| d.bytes().len()).sum::<usize>();
                if *bytes > run.memory_limit {
                    bail!(
                        QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                        "$facet exceeded its memory limit of {} bytes",
                        run.memory_limit
                    );
                }
                input.extend(docs);
                more(Vec::new())
            }
            Step::Write(h) => {
                host.write(h, docs, false, run).await?;
                more(Vec::new())
            }
        }
    }

    async fn end(&mut self, out: &mut Vec<DocBuf>, host: &dyn PipelineHost, run: &Run) -> Result<()> {
        match self {
            Step::Local(stage) => stage.end(out),
            Step::Lookup(_) | Step::Graph(_) => Ok(()),
            Step::Union(Join::Union { namespace, pipeline, .. }) => {
                out.extend(lookup::union(namespace, pipeline, host, run).await?);
                Ok(())
            }
            Step::Union(_) => Ok(()),
            Step::Facet { facets, input, .. } => {
                let input = std::mem::take(input);
                out.push(run_facets(facets, input, host, run).await?);
                Ok(())
            }
            Step::Write(h) => host.write(h, Vec::new(), true, run).await,
        }
    }
}

/// One document with the result of each facet as an array. Boxed, because facets run executions.
fn run_facets<'a>(
    facets: &'a [(String, Pipeline)],
    input: Vec<DocBuf>,
    host: &'a dyn PipelineHost,
    run: &'a Run,
) -> BoxFuture<'a, Result<DocBuf>> {
    Box::pin(async move {
        let mut result = Document::new();
        for (name, p) in facets {
            let mut source = Documents(Some(input.clone()));
            let mut execution = Execution::new(p, run.clone())?;
            let mut items = Vec::new();
            while let Some(batch) = execution.next(&mut source, host).await? {
                items.extend(batch.iter().map(|d| Value::Document(d.to_document())));
            }
            result.push(name.as_str(), Value::Array(items));
        }
        let d = result.to_doc_buf();
        if d.bytes().len() > run.memory_limit {
            bail!(
                BSON_OBJECT_TOO_LARGE,
                "document constructed by $facet is {} bytes, which exceeds the limit of {} bytes",
                d.bytes().len(),
                run.memory_limit
            );
        }
        crate::depth::checked(d)
    })
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
