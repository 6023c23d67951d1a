//! The running stage: gathers a partition, then gives it out with the computed fields.

use super::SetWindowFields;
use super::function::Partition;
use crate::expression::{FieldPath, Vars};
use crate::pipeline::{Batch, Charge, Flow, Run, Stage};
use document::{Collation, DocBuf, Result, Value, bail};

pub struct Running {
    plan: SetWindowFields,
    vars: Vars,
    documents: Vec<DocBuf>,
    /// The key of the partition that is being gathered.
    key: Option<Value>,
    collation: Collation,
    charge: Charge,
    /// The partition that is being given out, and the first document of the next.
    giving: Option<Giving>,
    held: Option<DocBuf>,
}

/// A partition with the values of its computed fields.
struct Giving {
    documents: std::vec::IntoIter<DocBuf>,
    columns: Vec<std::vec::IntoIter<Option<Value>>>,
}

impl Running {
    pub fn new(plan: SetWindowFields, run: &Run) -> Running {
        Running {
            plan,
            vars: run.vars.clone(),
            documents: Vec::new(),
            key: None,
            collation: run.collation.clone(),
            charge: run.charge(crate::pipeline::MEMORY_LIMIT),
            giving: None,
            held: None,
        }
    }

    fn partition_of(&mut self, d: &DocBuf) -> Result<Option<Value>> {
        let Some(by) = &self.plan.partition else { return Ok(None) };
        match by.eval(d.doc(), &mut self.vars)? {
            Some(Value::Array(_)) => {
                bail!(TYPE_MISMATCH, "An expression used to partition cannot evaluate to value of type array")
            }
            v => Ok(Some(v.unwrap_or(Value::Null))),
        }
    }

    /// Computes the fields of the gathered partition.
    fn compute(&mut self) -> Result<Giving> {
        let documents = std::mem::take(&mut self.documents);
        let keys: Vec<Value> =
            documents.iter().map(|d| sort_value(self.plan.sort_field.as_ref(), d)).collect();
        let partition = Partition { documents: &documents, keys: &keys, collation: &self.collation };
        let mut columns = Vec::with_capacity(self.plan.outputs.len());
        for output in &self.plan.outputs {
            columns.push(output.column(&partition, &mut self.vars)?.into_iter());
        }
        Ok(Giving { documents: documents.into_iter(), columns })
    }
    /// Gives out as much of a partition as there is room for; false when there is more.
    fn give(&mut self, giving: &mut Giving, out: &mut Batch) -> Result<bool> {
        let depth = self.vars.len();
        while !out.is_full() {
            let Some(d) = giving.documents.next() else {
                self.charge.set(0);
                return Ok(true);
            };
            for column in &mut giving.columns {
                self.vars.push(column.next().flatten());
            }
            let made = self.plan.shape.apply(d.doc(), &mut self.vars);
            self.vars.truncate(depth);
            out.push(made?)?;
        }
        Ok(false)
    }
    fn keep(&mut self, d: DocBuf) -> Result<()> {
        self.charge.add(d.bytes().len() + 64);
        if self.charge.is_over() {
            bail!(
                EXCEEDED_MEMORY_LIMIT,
                "Exceeded memory limit in $setWindowFields: a partition holds {} bytes, but {} are allowed",
                self.charge.bytes(),
                self.charge.limit()
            );
        }
        self.documents.push(d);
        Ok(())
    }
}

fn sort_value(field: Option<&FieldPath>, d: &DocBuf) -> Value {
    field.and_then(|path| path.get(d.doc())).unwrap_or(Value::Null)
}

impl Stage for Running {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        let key = self.partition_of(&d)?;
        let same = match (&self.key, &key) {
            (Some(a), Some(b)) => self.collation.values_equal(a, b),
            (a, b) => a.is_none() == b.is_none(),
        };
        if same {
            self.keep(d)?;
            return Ok(Flow::Continue);
        }
        self.key = key;
        self.held = Some(d);
        self.giving = Some(self.compute()?);
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Batch) -> Result<Flow> {
        if let Some(mut giving) = self.giving.take()
            && !self.give(&mut giving, out)?
        {
            self.giving = Some(giving);
            return Ok(Flow::More);
        }
        if let Some(d) = self.held.take() {
            self.keep(d)?;
        }
        Ok(Flow::Continue)
    }

    fn end(&mut self, out: &mut Batch) -> Result<Flow> {
        if self.giving.is_none() {
            self.giving = Some(self.compute()?);
        }
        self.resume(out)
    }
}
