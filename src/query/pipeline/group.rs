//! `$group`, whole and in two halves.
//!
//! A shard's half (`$willBeMerged: true`) gives `{_id, <field>: <partial>, ..}`; the router's half (`$doingMerge: true`)
//! merges such documents of several shards. Keys are compared by their key string (in the command's
//! collation), so `1` and `1.0` are one group whose
//! `_id` is the first seen. Groups come out in the order in which they were first seen, as long as they fit into memory.
//!
//! Otherwise all groups in memory go to partitions by the hash of their key, with their partial results, as often as memory is
//! full. At the end each partition is read by itself and its partial results are merged; one that does not fit is divided again.

use super::account::{Charge, Kind, Use};
use super::partition::{LEVELS_MAX, Partition, Partitions};
use super::spill::Space;
use super::spool::Stored;
use super::stage::checked_size;
use super::{Batch, Context, Flow, Limits, Needs, Parsed, Plan, Run, Stage, parse::one};
use crate::accumulator::{self, Accumulator};
use crate::expression::{Expression, Vars};
use document::{Collation, Doc, DocBuf, DocWriter, Document, Result, Value, bail};
use indexmap::IndexMap;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Half {
    Whole,
    Partial,
    Merge,
}

#[derive(Clone, Debug)]
struct Group {
    id: Expression,
    fields: Vec<(String, accumulator::Parsed)>,
    half: Half,
}

/// One group: its key and a state for each field.
struct Member {
    key: Value,
    states: Vec<Box<dyn Accumulator>>,
}

/// The groups by their keys' bytes, in the order in which they were first seen.
type Groups = IndexMap<Vec<u8>, Member, foldhash::fast::RandomState>;

struct Running {
    plan: Group,
    vars: Vars,
    groups: Groups,
    /// Reused for every key.
    scratch: Vec<u8>,
    bytes: usize,
    collation: Collation,
    charge: Charge,
    limits: Limits,
    space: Option<Arc<dyn Space>>,
    /// How often what is read now was divided.
    level: u32,
    /// Where groups go that do not fit.
    spilled: Option<Partitions>,
    /// Partitions to be read.
    pending: Vec<Partition>,
    /// Groups that are being given.
    giving: Option<indexmap::map::IntoValues<Vec<u8>, Member>>,
}

impl Plan for Group {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Running {
            plan: self.clone(),
            vars: run.vars.clone(),
            groups: Groups::default(),
            scratch: Vec::new(),
            bytes: 0,
            collation: run.collation.clone(),
            charge: run.charge(run.limits.group).counted_as(Kind::Group),
            limits: run.limits,
            space: run.space(),
            level: 0,
            spilled: None,
            pending: Vec::new(),
            giving: None,
        }))
    }
    fn needs(&self) -> Needs {
        if self.half == Half::Merge {
            return Needs::Everything;
        }
        let mut out = match self.id.needed_fields() {
            None => return Needs::Everything,
            Some(fields) => fields,
        };
        for (_, parsed) in &self.fields {
            match parsed.input.needed_fields() {
                None => return Needs::Everything,
                Some(fields) => out.extend(fields),
            }
        }
        Needs::Only(out)
    }
}

impl Running {
    /// The position of the group whose key stands in `scratch`; `value` gives the key of a new one.
    fn position(&mut self, value: impl FnOnce() -> Value) -> Result<usize> {
        if let Some(at) = self.groups.get_index_of(&self.scratch) {
            return Ok(at);
        }
        let key = value();
        let states = self.plan.states(&key, &mut self.vars)?;
        self.bytes += self.scratch.len() + accumulator::value_bytes(&key) + 64 + 48 * states.len();
        Ok(self.groups.insert_full(self.scratch.clone(), Member { key, states }).0)
    }

    fn add(&mut self, d: Doc<'_>) -> Result<()> {
        let key = if self.plan.half == Half::Merge {
            d.get("_id").map_or(Value::Null, |v| v.to_value())
        } else {
            self.plan.id.eval_or_null(d, &mut self.vars)?
        };
        self.scratch.clear();
        self.collation.append_value_key(&mut self.scratch, &key, false);
        let at = self.position(|| key)?;
        if self.plan.half == Half::Merge {
            return self.merge(at, d);
        }
        let Some((_, member)) = self.groups.get_index_mut(at) else { return Ok(()) };
        for ((_, parsed), state) in self.plan.fields.iter().zip(&mut member.states) {
            let before = state.memory();
            state.add(parsed.eval(d, &mut self.vars).map_err(as_grouping)?)?;
            let now = state.memory();
            if now != before {
                check_state(parsed, now, &self.limits)?;
                self.bytes = (self.bytes + now).saturating_sub(before);
            }
        }
        Ok(())
    }

    /// Takes the partial results of a document for the group at a position.
    fn merge(&mut self, at: usize, d: Doc<'_>) -> Result<()> {
        let Some((_, member)) = self.groups.get_index_mut(at) else { return Ok(()) };
        for ((field, parsed), state) in self.plan.fields.iter().zip(&mut member.states) {
            let Some(partial) = d.get(field) else { continue };
            let before = state.memory();
            state.merge(partial.to_value())?;
            let now = state.memory();
            if now != before {
                check_state(parsed, now, &self.limits)?;
                self.bytes = (self.bytes + now).saturating_sub(before);
            }
        }
        Ok(())
    }

    /// Moves the groups in memory to partitions, each with its partial results.
    fn spill(&mut self) -> Result<()> {
        let Some(space) = &self.space else { return Ok(()) };
        let partitions = match &mut self.spilled {
            Some(partitions) => partitions,
            none => none.insert(Partitions::new(&**space, self.level)?),
        };
        let mut stored = Stored::default();
        for (key, member) in std::mem::take(&mut self.groups) {
            let partial = self.plan.document(member, true)?;
            stored.bytes += partitions.push(&key, partial.bytes())? as u64;
            stored.records += 1;
        }
        self.charge.spilled(stored);
        self.bytes = 0;
        Ok(())
    }

    /// Reads a partition into memory, or divides it again when it does not fit there.
    fn load(&mut self, mut partition: Partition) -> Result<()> {
        self.level = partition.level() + 1;
        while let Some((key, partial)) = partition.pull()? {
            self.scratch.clear();
            self.scratch.extend_from_slice(key);
            let partial = Doc::from_validated(partial);
            let at = self.position(|| partial.get("_id").map_or(Value::Null, |v| v.to_value()))?;
            self.merge(at, partial)?;
            self.charge.set(self.bytes);
            // One group cannot be divided.
            if self.charge.is_over() && self.groups.len() > 1 && self.level < LEVELS_MAX {
                self.spill()?;
            }
        }
        Ok(())
    }

    /// Gets the next groups ready to be given; false when there are no more.
    fn advance(&mut self) -> Result<bool> {
        loop {
            if self.spilled.is_some() {
                self.spill()?;
                self.pending.extend(self.spilled.take().into_iter().flat_map(Partitions::finish));
            }
            if !self.groups.is_empty() {
                self.giving = Some(std::mem::take(&mut self.groups).into_values());
                return Ok(true);
            }
            let Some(partition) = self.pending.pop() else { return Ok(false) };
            self.load(partition)?;
        }
    }
}

/// Refuses a state that collects more than its parameter allows (`internalQueryMaxPushBytes`,
/// `internalQueryMaxAddToSetBytes`): it cannot be divided among files.
fn check_state(parsed: &accumulator::Parsed, bytes: usize, limits: &Limits) -> Result<()> {
    let most = match parsed.name {
        "$addToSet" | "$setUnion" => limits.add_to_set,
        _ => limits.push,
    };
    if bytes > most {
        bail!(
            EXCEEDED_MEMORY_LIMIT,
            "{} used too much memory and cannot spill to disk. Memory limit: {most} bytes",
            parsed.name
        );
    }
    Ok(())
}

impl Group {
    fn states(&self, key: &Value, vars: &mut Vars) -> Result<Vec<Box<dyn Accumulator>>> {
        self.fields.iter().map(|(_, parsed)| parsed.start(key, vars)).collect()
    }
    /// A group as a document, with partial results or with final ones.
    fn document(&self, mut member: Member, partial: bool) -> Result<DocBuf> {
        for state in &mut member.states {
            state.settle(partial)?;
        }
        Ok(DocWriter::build(|w| {
            member.key.write(w, "_id");
            for ((field, _), state) in self.fields.iter().zip(&mut member.states) {
                let v = if partial { state.export() } else { state.finish() };
                v.write(w, field);
            }
        }))
    }
}

/// The server evaluates the arguments of accumulators in another engine, whose errors have other codes.
fn as_grouping(mut e: document::Error) -> document::Error {
    e.code = match (e.code, e.message.as_str()) {
        (2, "can't $divide by zero") => 4848401,
        (16610, "can't $mod by zero") => 4848403,
        (code, _) => code,
    };
    e
}

impl Stage for Running {
    fn push(&mut self, d: DocBuf, _: &mut Batch) -> Result<Flow> {
        self.add(d.doc())?;
        self.charge.set(self.bytes);
        if self.charge.is_over() {
            if self.space.is_none() {
                bail!(
                    QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                    "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in."
                );
            }
            self.spill()?;
        }
        Ok(Flow::Continue)
    }
    fn end(&mut self, out: &mut Batch) -> Result<Flow> {
        let partial = self.plan.half == Half::Partial;
        loop {
            for member in self.giving.iter_mut().flatten() {
                out.push(checked_size(self.plan.document(member, partial)?)?)?;
                if out.is_full() {
                    return Ok(Flow::More);
                }
            }
            if self.giving.take().is_some() {
                self.bytes = 0;
                self.charge.set(0);
            }
            if !self.advance()? {
                return Ok(Flow::Continue);
            }
        }
    }
    fn use_of_memory(&self) -> Option<Use> {
        Some(self.charge.used)
    }
}

/// Names of output fields: no dot, no leading dollar.
pub fn check_output_name(field: &str) -> Result<()> {
    if field.contains('.') {
        bail!(40235, "The field name '{field}' cannot contain '.'");
    }
    if field.starts_with('$') {
        bail!(40236, "The field name '{field}' cannot be an operator name");
    }
    Ok(())
}

pub fn parse(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let Value::Document(d) = v else { bail!(15947, "a group's fields must be specified in an object") };
    let scope = ctx.scope();
    let (mut id, mut fields, mut half) = (None, Vec::new(), Half::Whole);
    for (field, spec) in d.iter() {
        match field {
            "_id" if id.is_some() => bail!(15948, "a group's _id may only be specified once"),
            "_id" => {
                check_id(spec)?;
                id = Some(Expression::parse(spec, &scope)?);
            }
            "$willBeMerged" if ctx.from_router => half = Half::Partial,
            "$doingMerge" => half = Half::Merge,
            field => {
                check_output_name(field)?;
                fields.push((field.to_string(), accumulator::parse(field, spec, &scope)?));
            }
        }
    }
    let Some(id) = id else { bail!(15955, "a group specification must include an _id") };
    one(name, v, Group { id, fields, half })
}

fn check_id(v: &Value) -> Result<()> {
    if let Value::Document(d) = v
        && !d.first().is_some_and(|(k, _)| k.starts_with('$'))
        && d.iter().any(|(_, v)| v.is_number() || matches!(v, Value::Boolean(_)))
    {
        bail!(17390, "$group does not support inclusion-style expressions");
    }
    Ok(())
}

/// The halves of a `$group` for a cluster.
pub(super) fn halves(spec: &Document) -> (Document, Document) {
    let (mut shard, mut merge) = (spec.clone(), spec.clone());
    shard.push("$willBeMerged", true);
    merge.push("$doingMerge", true);
    (shard, merge)
}
