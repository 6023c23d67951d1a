//! `$group`, whole and in two halves.
//!
//! A shard's half (`$willBeMerged: true`) gives `{_id, <field>: <partial>, ..}`; the router's half (`$doingMerge: true`)
//! merges such documents of several shards. Keys are compared by their key string (in the command's
//! collation), so `1` and `1.0` are one group whose
//! `_id` is the first seen. Groups come out in the order in which they were first seen; those that were spilled, by key.

use super::account::{Charge, Kind, Use};
use super::spill::{Entry, Merge, Runs, Space};
use super::stage::checked_size;
use super::{Batch, Context, Flow, Limits, Needs, Parsed, Plan, Run, Stage, parse::one};
use crate::accumulator::{self, Accumulator};
use crate::expression::{Expression, Vars};
use document::{Collation, Doc, DocBuf, DocWriter, Document, Result, Value, bail, meter};
use std::collections::HashMap;
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

struct Running {
    plan: Group,
    vars: Vars,
    index: HashMap<Vec<u8>, usize, foldhash::fast::RandomState>,
    members: Vec<Member>,
    /// Reused for every key.
    scratch: Vec<u8>,
    bytes: usize,
    collation: Collation,
    charge: Charge,
    limits: Limits,
    space: Option<Arc<dyn Space>>,
    runs: Option<Runs>,
    /// Set when the input has ended.
    giving: Option<Giving>,
}

/// How the groups are given: those in memory in the order in which they were first seen, those in files by key.
enum Giving {
    Memory(std::vec::IntoIter<Member>),
    Files(Merge),
}

impl Plan for Group {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Running {
            plan: self.clone(),
            vars: run.vars.clone(),
            index: HashMap::default(),
            members: Vec::new(),
            scratch: Vec::new(),
            bytes: 0,
            collation: run.collation.clone(),
            charge: run.charge(run.limits.group).counted_as(Kind::Group),
            limits: run.limits,
            space: run.space(),
            runs: None,
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
    fn member(&mut self, key: Value) -> Result<usize> {
        self.scratch.clear();
        self.collation.append_value_key(&mut self.scratch, &key, false);
        if let Some(at) = self.index.get(&self.scratch) {
            return Ok(*at);
        }
        let states = self.plan.states(&key, &mut self.vars)?;
        self.bytes += self.scratch.len() + accumulator::value_bytes(&key) + 64 + 48 * states.len();
        self.index.insert(self.scratch.clone(), self.members.len());
        self.members.push(Member { key, states });
        Ok(self.members.len() - 1)
    }

    fn add(&mut self, d: Doc<'_>) -> Result<()> {
        let key = if self.plan.half == Half::Merge {
            d.get("_id").map_or(Value::Null, |v| v.to_value())
        } else {
            self.plan.id.eval_or_null(d, &mut self.vars)?
        };
        let at = self.member(key)?;
        let Some(member) = self.members.get_mut(at) else { return Ok(()) };
        for ((field, parsed), state) in self.plan.fields.iter().zip(&mut member.states) {
            let before = state.memory();
            if self.plan.half == Half::Merge {
                if let Some(partial) = d.get(field) {
                    state.merge(partial.to_value())?;
                }
            } else {
                state.add(parsed.eval(d, &mut self.vars).map_err(as_grouping)?)?;
            }
            let now = state.memory();
            check_state(parsed, now, &self.limits)?;
            self.bytes = (self.bytes + now).saturating_sub(before);
        }
        Ok(())
    }

    /// Writes the groups in memory to a file, by key, each with its partial results.
    fn spill(&mut self, space: Arc<dyn Space>) -> Result<()> {
        let chunks = self.chunks()?;
        let runs = self.runs.get_or_insert_with(|| Runs::new(space.clone()));
        runs.write(Runs::new(space).merge(chunks)?, &mut self.charge)?;
        self.bytes = 0;
        self.charge.set(0);
        Ok(())
    }
    /// The groups in memory as entries, sorted in pieces.
    fn chunks(&mut self) -> Result<Vec<Vec<Entry>>> {
        let keys: Vec<(Vec<u8>, usize)> = self.index.drain().collect();
        let mut members: Vec<Option<Member>> =
            std::mem::take(&mut self.members).into_iter().map(Some).collect();
        let mut chunks = Vec::new();
        let mut keys = keys.into_iter().peekable();
        while keys.peek().is_some() {
            let mut chunk = Vec::with_capacity(CHUNK_GROUPS);
            for (key, at) in keys.by_ref().take(CHUNK_GROUPS) {
                meter::spend(8)?;
                if let Some(member) = members[at].take() {
                    chunk.push((key, self.plan.document(member, true)?.into_bytes()));
                }
            }
            chunk.sort_unstable_by(|a: &Entry, b: &Entry| a.0.cmp(&b.0));
            chunks.push(chunk);
        }
        Ok(chunks)
    }
    /// The next group of the files: the partial results of its key merged.
    fn merged(&mut self, merge: &mut Merge) -> Result<Option<DocBuf>> {
        let Some(first) = merge.next() else { return Ok(None) };
        let (key, bytes) = first?;
        let first = DocBuf::from_validated(bytes);
        let id = first.get("_id").map_or(Value::Null, |v| v.to_value());
        let mut member = Member { states: self.plan.states(&id, &mut self.vars)?, key: id };
        self.plan.take_partials(&mut member, first.doc(), &self.limits)?;
        while merge.peek_key() == Some(&key[..]) {
            let Some(next) = merge.next() else { break };
            let next = DocBuf::from_validated(next?.1);
            self.plan.take_partials(&mut member, next.doc(), &self.limits)?;
        }
        let partial = self.plan.half == Half::Partial;
        checked_size(self.plan.document(member, partial)?).map(Some)
    }
}

/// Groups that are sorted at once when they are spilled.
const CHUNK_GROUPS: usize = 2048;
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
    fn take_partials(&self, member: &mut Member, d: Doc<'_>, limits: &Limits) -> Result<()> {
        for ((field, parsed), state) in self.fields.iter().zip(&mut member.states) {
            if let Some(partial) = d.get(field) {
                state.merge(partial.to_value())?;
                check_state(parsed, state.memory(), limits)?;
            }
        }
        Ok(())
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
            match self.space.clone() {
                Some(space) => self.spill(space)?,
                None => bail!(
                    QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                    "PlanExecutor error during aggregation :: caused by :: Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in."
                ),
            }
        }
        Ok(Flow::Continue)
    }
    fn end(&mut self, out: &mut Batch) -> Result<Flow> {
        let mut giving = match self.giving.take() {
            Some(giving) => giving,
            None => match self.runs.take() {
                Some(runs) => Giving::Files(runs.merge(self.chunks()?)?),
                None => {
                    self.index = HashMap::default();
                    Giving::Memory(std::mem::take(&mut self.members).into_iter())
                }
            },
        };
        let partial = self.plan.half == Half::Partial;
        loop {
            let next = match &mut giving {
                Giving::Memory(members) => {
                    members.next().map(|m| checked_size(self.plan.document(m, partial)?)).transpose()?
                }
                Giving::Files(merge) => self.merged(merge)?,
            };
            let Some(d) = next else {
                self.charge.set(0);
                return Ok(Flow::Continue);
            };
            out.push(d)?;
            if out.is_full() {
                self.giving = Some(giving);
                return Ok(Flow::More);
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
