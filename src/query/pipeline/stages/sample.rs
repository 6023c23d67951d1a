//! `$sample`: a uniform choice of documents without repetition, in random order.

use crate::expression::Vars;
use crate::pipeline::account::{Kind, Use};
use crate::pipeline::sort::attach_sort_key;
use crate::pipeline::spill::{Merge, Sorter};
use crate::pipeline::{Batch, Context, Flow, Needs, Parsed, Plan, Run, Stage, parse::one};
use document::{DocBuf, Result, Value, bail, number};

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
    sorter: Sorter,
    chosen: Option<Merge>,
    vars: Vars,
}

impl Plan for Sample {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        let sorter = Sorter::new(run, Kind::Sort, run.limits.sort, Some(self.size));
        Ok(Box::new(Running { plan: self.clone(), sorter, chosen: None, vars: run.vars.clone() }))
    }
    fn needs(&self) -> Needs {
        Needs::Passing(Vec::new())
    }
}

impl Stage for Running {
    fn push(&mut self, d: DocBuf, _: &mut Batch) -> Result<Flow> {
        let drawn = (self.vars.random() * (1u64 << 53) as f64) as u64;
        self.sorter.push(drawn.to_be_bytes().to_vec(), d.into_bytes())?;
        if self.sorter.is_over() {
            bail!(
                QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                "Sort exceeded memory limit of {} bytes, but did not opt in to external sorting.",
                self.sorter.limit()
            );
        }
        Ok(Flow::Continue)
    }
    fn end(&mut self, out: &mut Batch) -> Result<Flow> {
        let chosen = match &mut self.chosen {
            Some(chosen) => chosen,
            none => none.insert(self.sorter.finish()?),
        };
        for entry in chosen.by_ref() {
            let (key, bytes) = entry?;
            let d = DocBuf::from_validated(bytes);
            out.push(if self.plan.emit_key { attach_sort_key(&d, &key) } else { d })?;
            if out.is_full() {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Continue)
    }
    fn use_of_memory(&self) -> Option<Use> {
        Some(self.sorter.used())
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
