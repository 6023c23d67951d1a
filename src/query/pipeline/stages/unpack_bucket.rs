//! `$_internalUnpackBucket`: the measurements of a time series collection out of its buckets.

use crate::pipeline::{Batch, Context, Flow, Parsed, Plan, Run, Stage, parse::one};
use crate::timeseries::{Options, bucket};
use document::{DocBuf, Result, Value, bail};

#[derive(Clone, Debug)]
struct Unpack {
    options: Options,
}

/// A bucket that is being gone through: its measurements still to come, the next one last.
struct Running {
    options: Options,
    pending: Vec<DocBuf>,
}

impl Plan for Unpack {
    fn start(&self, _: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Running { options: self.options.clone(), pending: Vec::new() }))
    }
}

impl Stage for Running {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        self.pending = bucket::measurements(d.doc(), &self.options)?;
        self.pending.reverse();
        self.resume(out)
    }
    fn resume(&mut self, out: &mut Batch) -> Result<Flow> {
        while let Some(measurement) = self.pending.pop() {
            out.push(measurement)?;
            if out.is_full() {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Continue)
    }
}

pub fn parse(name: &'static str, v: &Value, _: &Context) -> Result<Vec<Parsed>> {
    let Some(options) = v.as_document().and_then(Options::of_document) else {
        bail!(5346500, "{name} needs an object with a timeField, got {}", v.type_name());
    };
    one(name, v, Unpack { options })
}
