//! `$_internalInhibitOptimization`: passes documents on as they are. No rewriting looks past it, so what stands before and what
//! stands after it are executed as written; tests put it where they want a stage left alone.

use crate::expression::parse::show;
use crate::pipeline::{Batch, Context, Flow, Parsed, Plan, Run, Stage, parse::one};
use document::{DocBuf, Result, Value, bail};

#[derive(Debug)]
struct Inhibit;

impl Plan for Inhibit {
    fn start(&self, _: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Inhibit))
    }
}

impl Stage for Inhibit {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        out.push(d)?;
        Ok(Flow::Continue)
    }
}

/// Its argument is an empty document.
pub fn parse(name: &'static str, v: &Value, _: &Context) -> Result<Vec<Parsed>> {
    let Some(argument) = v.as_document() else {
        bail!(40489, "{name} must take a nested object but found: {name}: {}", show(v));
    };
    if !argument.is_empty() {
        bail!(40490, "{name} must take an empty object but found: {name}: {}", show(v));
    }
    one(name, v, Inhibit)
}
