//! The running stage: gathers a partition, then gives it out with the computed fields.

use super::SetWindowFields;
use super::function::Partition;
use crate::expression::{FieldPath, Vars};
use crate::pipeline::{Flow, Run, Stage};
use document::{Collation, DocBuf, Result, Value, bail};

pub struct Running {
    plan: SetWindowFields,
    vars: Vars,
    documents: Vec<DocBuf>,
    /// The key of the partition that is being gathered.
    key: Option<Value>,
    bytes: usize,
    limit: usize,
    collation: Collation,
}

impl Running {
    pub fn new(plan: SetWindowFields, run: &Run) -> Running {
        Running {
            plan,
            vars: run.vars.clone(),
            documents: Vec::new(),
            key: None,
            bytes: 0,
            limit: run.memory_limit,
            collation: run.collation.clone(),
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

    /// Gives out the gathered partition.
    fn flush(&mut self, out: &mut Vec<DocBuf>) -> Result<()> {
        let documents = std::mem::take(&mut self.documents);
        self.bytes = 0;
        let keys: Vec<Value> =
            documents.iter().map(|d| sort_value(self.plan.sort_field.as_ref(), d)).collect();
        let partition = Partition { documents: &documents, keys: &keys, collation: &self.collation };
        let mut columns = Vec::with_capacity(self.plan.outputs.len());
        for output in &self.plan.outputs {
            columns.push(output.column(&partition, &mut self.vars)?.into_iter());
        }
        let depth = self.vars.len();
        for d in &documents {
            for column in &mut columns {
                self.vars.push(column.next().flatten());
            }
            let made = self.plan.shape.apply(d.doc(), &mut self.vars);
            self.vars.truncate(depth);
            out.push(made?);
        }
        Ok(())
    }
}

fn sort_value(field: Option<&FieldPath>, d: &DocBuf) -> Value {
    field.and_then(|path| path.get(d.doc())).unwrap_or(Value::Null)
}

impl Stage for Running {
    fn push(&mut self, batch: Vec<DocBuf>, out: &mut Vec<DocBuf>) -> Result<Flow> {
        for d in batch {
            let key = self.partition_of(&d)?;
            let same = match (&self.key, &key) {
                (Some(a), Some(b)) => self.collation.values_equal(a, b),
                (a, b) => a.is_none() == b.is_none(),
            };
            if !same {
                self.flush(out)?;
                self.key = key;
            }
            self.bytes += d.bytes().len() + 64;
            if self.bytes > self.limit {
                bail!(
                    EXCEEDED_MEMORY_LIMIT,
                    "Exceeded memory limit in $setWindowFields: a partition holds {} bytes, but {} are allowed",
                    self.bytes,
                    self.limit
                );
            }
            self.documents.push(d);
        }
        Ok(Flow::Continue)
    }

    fn end(&mut self, out: &mut Vec<DocBuf>) -> Result<()> {
        self.flush(out)
    }
}
