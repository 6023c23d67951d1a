//! `$sample`: a uniform choice of documents without repetition, in random order.

use crate::expression::Vars;
use crate::pipeline::sort::attach_sort_key;
use crate::pipeline::{Context, Flow, Needs, Parsed, Plan, Run, Stage, parse::one};
use document::{DocBuf, Result, Value, bail, number};
use std::collections::BinaryHeap;

#[derive(Clone, Debug)]
struct Sample {
    size: usize,
    /// A shard's half: the random numbers travel as sort keys, so that the merger chooses fairly among shards of
    /// different sizes.
    emit_key: bool,
}

/// Every document draws a number; the `size` least are kept, in the order of their numbers.
struct Running {
    plan: Sample,
    kept: BinaryHeap<Drawn>,
    vars: Vars,
}

struct Drawn(u64, DocBuf);

impl PartialEq for Drawn {
    fn eq(&self, other: &Drawn) -> bool {
        self.0 == other.0
    }
}
impl Eq for Drawn {}
impl PartialOrd for Drawn {
    fn partial_cmp(&self, other: &Drawn) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Drawn {
    fn cmp(&self, other: &Drawn) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl Plan for Sample {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Running { plan: self.clone(), kept: BinaryHeap::new(), vars: run.vars.clone() }))
    }
    fn needs(&self) -> Needs {
        Needs::Passing(Vec::new())
    }
}

impl Stage for Running {
    fn push(&mut self, batch: Vec<DocBuf>, _: &mut Vec<DocBuf>) -> Result<Flow> {
        for d in batch {
            let drawn = (self.vars.random() * (1u64 << 53) as f64) as u64;
            let full = self.kept.len() >= self.plan.size;
            if full && self.kept.peek().is_some_and(|worst| worst.0 <= drawn) {
                continue;
            }
            self.kept.push(Drawn(drawn, d));
            if full {
                self.kept.pop();
            }
        }
        Ok(Flow::Continue)
    }
    fn end(&mut self, out: &mut Vec<DocBuf>) -> Result<()> {
        for Drawn(drawn, d) in std::mem::take(&mut self.kept).into_sorted_vec() {
            out.push(if self.plan.emit_key { attach_sort_key(&d, &drawn.to_be_bytes()) } else { d });
        }
        Ok(())
    }
}

/// The member that makes a shard's half of a specification.
pub const EMIT_KEY: &str = "$emitSortKey";

/// Decimals are rounded half to even, doubles truncated.
fn rounded(v: &Value) -> Option<i64> {
    match v {
        Value::Decimal128(d) => number::to_i64_saturating(&Value::Decimal128(d.round())),
        v => number::to_i64_saturating(v),
    }
}

pub fn parse(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let Value::Document(d) = v else { bail!(28745, "the $sample stage specification must be an object") };
    let (mut size, mut emit_key) = (None, false);
    for (option, v) in d.iter() {
        match option {
            "size" if v.is_number() => size = rounded(v),
            "size" => bail!(28746, "size argument to $sample must be a number"),
            EMIT_KEY if ctx.from_router => emit_key = true,
            other => bail!(28748, "unrecognized option to $sample: {other}"),
        }
    }
    match size {
        None => bail!(28749, "$sample stage must specify a size"),
        Some(n) if n <= 0 => bail!(28747, "size argument to $sample must be a positive integer"),
        Some(n) => one(name, v, Sample { size: n as usize, emit_key }),
    }
}
