//! `$facet` under way: every batch of the input goes through each of the pipelines in turn, and at the end one document holds
//! what came out of each.

use super::execution::{Execution, Progress, boxed_step};
use super::host::PipelineHost;
use super::stage::Batch;
use super::{Charge, Flow, Pipeline, Run};
use document::{DocBuf, DocWriter, Result, bail};

struct Facet {
    name: String,
    execution: Execution,
    found: Vec<DocBuf>,
}

pub struct RunningFacet {
    facets: Vec<Facet>,
    /// All that was found.
    charge: Charge,
}

impl RunningFacet {
    pub fn new(facets: &[(String, Pipeline)], run: &Run) -> Result<RunningFacet> {
        let mut out = Vec::with_capacity(facets.len());
        for (name, pipeline) in facets {
            let execution = Execution::new(pipeline, run.clone())?;
            out.push(Facet { name: name.clone(), execution, found: Vec::new() });
        }
        Ok(RunningFacet { facets: out, charge: run.charge(run.limits.facet) })
    }

    /// Takes a batch of the input.
    pub async fn push(&mut self, docs: Vec<DocBuf>, host: &dyn PipelineHost) -> Result<()> {
        for i in 0..self.facets.len() {
            if !self.facets[i].execution.wants_no_more() {
                self.facets[i].execution.feed(docs.iter().cloned());
                self.run(i, host).await?;
            }
        }
        Ok(())
    }

    /// The one document.
    pub async fn end(&mut self, out: &mut Batch, host: &dyn PipelineHost) -> Result<Flow> {
        for i in 0..self.facets.len() {
            self.facets[i].execution.close();
            self.run(i, host).await?;
        }
        let d = DocWriter::build(|w| {
            for facet in &mut self.facets {
                let found = std::mem::take(&mut facet.found);
                w.array_with(&facet.name, |w| {
                    for (i, d) in found.iter().enumerate() {
                        w.with_index(i, |w, name| w.document(name, d.doc()));
                    }
                });
            }
        });
        out.push(crate::depth::checked(d)?)?;
        Ok(Flow::Continue)
    }

    /// Runs one pipeline until it needs more input.
    async fn run(&mut self, i: usize, host: &dyn PipelineHost) -> Result<()> {
        let facet = &mut self.facets[i];
        loop {
            let mut out = Batch::new();
            let progress = boxed_step(&mut facet.execution, &mut out, host).await?;
            for d in out.into_vec() {
                self.charge.add(d.bytes().len() + 16);
                facet.found.push(d);
            }
            if self.charge.is_over() {
                bail!(
                    4031700,
                    "document constructed by $facet is {} bytes, which exceeds the limit of {} bytes",
                    self.charge.bytes(),
                    self.charge.limit()
                );
            }
            if progress != Progress::Worked {
                return Ok(());
            }
            host.breathe().await?;
        }
    }
}
