//! The running stage: gathers a partition, then gives it out with the computed fields.
//!
//! A partition over the limit goes to a file, which is read once for each field and once more when the documents are given;
//! then the computed fields wait in files too. So they do where they would take the partition over the limit. While a field is
//! computed its sort keys, inputs and results are in memory, a value of each for each document. They are charged as they come, and send
//! the documents to the file when they exceed the limit together; alone they may exceed it where the disk may be used.

use super::SetWindowFields;
use super::function::{Partition, held_bytes, too_much};
use crate::expression::{Arg, Vars};
use crate::pipeline::account::{Kind, Use};
use crate::pipeline::spill::Space;
use crate::pipeline::spool::{Place, Spool};
use crate::pipeline::{Batch, Charge, Flow, Run, Stage};
use document::{Collation, DocBuf, DocWriter, Result, Value, bail};
use std::sync::Arc;

pub(super) struct Running {
    plan: SetWindowFields,
    vars: Vars,
    /// The partition that is being gathered, or given out.
    documents: Spool,
    /// The key of the partition that is being gathered.
    key: Option<Value>,
    collation: Collation,
    charge: Charge,
    space: Option<Arc<dyn Space>>,
    giving: Option<Giving>,
    /// The first document of the next partition.
    held: Option<DocBuf>,
}

/// How far a partition is given out, and the values of its computed fields.
struct Giving {
    place: Place,
    columns: Vec<Column>,
}

/// The values of a computed field, in the order of the documents.
enum Column {
    Memory(std::vec::IntoIter<Arg>),
    /// Each the field `v` of a document.
    File(Spool, Place),
}

impl Column {
    fn spilled(values: Vec<Arg>, space: &dyn Space, charge: &mut Charge) -> Result<Column> {
        let (mut spool, mut held) = (Spool::default(), 0);
        for v in values {
            let d = DocWriter::build(|w| v.iter().for_each(|v| v.write(w, "v")));
            let bytes = spool.push(d);
            charge.add(bytes);
            held += bytes;
            // Others may have taken most of the limit; a part of it is worth a write.
            if held > charge.limit() / 4 {
                charge.spilled_part(std::mem::take(&mut held), spool.spill(space)?);
            }
        }
        charge.spilled_part(held, spool.spill(space)?);
        Ok(Column::File(spool, Place::default()))
    }
    fn next(&mut self) -> Result<Arg> {
        match self {
            Column::Memory(values) => Ok(values.next().flatten()),
            Column::File(spool, place) => {
                Ok(spool.next(place)?.and_then(|d| d.get("v").map(|v| v.to_value())))
            }
        }
    }
}

impl Running {
    pub(super) fn new(plan: SetWindowFields, run: &Run) -> Running {
        Running {
            plan,
            vars: run.vars.clone(),
            documents: Spool::default(),
            key: None,
            collation: run.collation.clone(),
            charge: run.charge(run.limits.set_window_fields).counted_as(Kind::SetWindowFields),
            space: run.space(),
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
        if let (Some(space), true) = (&self.space, self.documents.has_spilled()) {
            // What came after the last spill, so that the computed fields are charged from nothing on.
            self.charge.spilled(self.documents.spill(&**space)?);
        }
        let documents_bytes = self.charge.bytes();
        let mut partition = Partition {
            documents: &mut self.documents,
            keys: Vec::new(),
            descends: self.plan.descends,
            collation: &self.collation,
            charge: &mut self.charge,
            documents_bytes,
            values_bytes: 0,
            space: self.space.as_deref(),
        };
        partition.keys = match &self.plan.sort_field {
            Some(path) => {
                let keys = partition.each(|d| Ok(Some(path.get(d).unwrap_or(Value::Null))))?;
                keys.into_iter().flatten().collect()
            }
            None => {
                let nulls = vec![Value::Null; partition.documents.len()];
                partition.hold(nulls.len() * size_of::<Value>())?;
                nulls
            }
        };
        let keys_bytes = std::mem::take(&mut partition.values_bytes);
        let mut columns = Vec::with_capacity(self.plan.outputs.len());
        for output in &self.plan.outputs {
            let values = output.column(&mut partition, &mut self.vars)?;
            partition.release_values();
            let charge = &mut *partition.charge;
            let bytes = values.iter().map(held_bytes).sum::<usize>();
            let all = charge.bytes().saturating_add(bytes);
            let fits = all <= charge.limit();
            columns.push(match partition.space {
                Some(space) if partition.documents.has_spilled() || !fits => {
                    Column::spilled(values, space, charge)?
                }
                None if !fits => return Err(too_much(all, charge)),
                _ => {
                    charge.add(bytes);
                    Column::Memory(values.into_iter())
                }
            });
        }
        partition.charge.subtract(keys_bytes);
        Ok(Giving { place: Place::default(), columns })
    }
    /// Gives out as much of a partition as there is room for; false when there is more.
    fn give(&mut self, giving: &mut Giving, out: &mut Batch) -> Result<bool> {
        let depth = self.vars.len();
        while !out.is_full() {
            let Some(d) = self.documents.next(&mut giving.place)? else {
                self.documents = Spool::default();
                self.charge.set(0);
                return Ok(true);
            };
            for column in &mut giving.columns {
                self.vars.push(column.next()?);
            }
            let made = self.plan.shape.apply(d, &mut self.vars);
            self.vars.truncate(depth);
            out.push(made?)?;
        }
        Ok(false)
    }
    fn keep(&mut self, d: DocBuf) -> Result<()> {
        self.charge.add(self.documents.push(d));
        if self.charge.is_over() {
            let Some(space) = &self.space else { return Err(too_much(self.charge.bytes(), &self.charge)) };
            self.charge.spilled(self.documents.spill(&**space)?);
        }
        Ok(())
    }
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
    fn use_of_memory(&self) -> Option<Use> {
        Some(self.charge.used)
    }
}
