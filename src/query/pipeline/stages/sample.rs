//! `$sample`: a uniform choice of documents without repetition, in random order.

use crate::expression::Vars;
use crate::pipeline::{Context, Flow, Needs, Parsed, Plan, Run, Stage, parse::one};
use document::{DocBuf, Result, Value, bail, number};

#[derive(Clone, Debug)]
struct Sample(usize);

/// Reservoir sampling: after n documents each was kept with probability size / n.
struct Running {
    size: usize,
    seen: u64,
    kept: Vec<DocBuf>,
    vars: Vars,
}

impl Plan for Sample {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Running { size: self.0, seen: 0, kept: Vec::new(), vars: run.vars.clone() }))
    }
    fn needs(&self) -> Needs {
        Needs::Passing(Vec::new())
    }
}

impl Stage for Running {
    fn push(&mut self, batch: Vec<DocBuf>, _: &mut Vec<DocBuf>) -> Result<Flow> {
        for d in batch {
            self.seen += 1;
            if self.kept.len() < self.size {
                self.kept.push(d);
                continue;
            }
            let at = (self.vars.random() * self.seen as f64) as usize;
            if at < self.size {
                self.kept[at] = d;
            }
        }
        Ok(Flow::Continue)
    }
    fn end(&mut self, out: &mut Vec<DocBuf>) -> Result<()> {
        for i in (1..self.kept.len()).rev() {
            let j = (self.vars.random() * (i + 1) as f64) as usize;
            self.kept.swap(i, j.min(i));
        }
        out.append(&mut self.kept);
        Ok(())
    }
}

/// Decimals are rounded half to even, doubles truncated.
fn rounded(v: &Value) -> Option<i64> {
    match v {
        Value::Decimal128(d) => number::to_i64_saturating(&Value::Decimal128(d.round())),
        v => number::to_i64_saturating(v),
    }
}

pub fn parse(name: &'static str, v: &Value, _: &Context) -> Result<Vec<Parsed>> {
    let Value::Document(d) = v else { bail!(28745, "the $sample stage specification must be an object") };
    let mut size = None;
    for (option, v) in d.iter() {
        match option {
            "size" if v.is_number() => size = rounded(v),
            "size" => bail!(28746, "size argument to $sample must be a number"),
            other => bail!(28748, "unrecognized option to $sample: {other}"),
        }
    }
    match size {
        None => bail!(28749, "$sample stage must specify a size"),
        Some(n) if n <= 0 => bail!(28747, "size argument to $sample must be a positive integer"),
        Some(n) => one(name, v, Sample(n as usize)),
    }
}
