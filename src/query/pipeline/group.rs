//! `$group`, whole and in two halves.
//!
//! A shard's half (`$willBeMerged: true`) gives `{_id, <field>: <partial>, ..}`; the router's half (`$doingMerge: true`)
//! merges such documents of several shards. Keys are compared by their key string (in the command's collation), so `1` and `1.0` are one group whose
//! `_id` is the first seen. Groups come out in the order in which they were first seen.

use super::{Context, Flow, Needs, Parsed, Plan, Run, Stage, parse::one};
use crate::accumulator::{self, Accumulator};
use crate::expression::{Expression, Vars};
use document::{Collation, Doc, DocBuf, DocWriter, Document, Result, Value, bail};
use std::collections::HashMap;

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
    index: HashMap<Vec<u8>, usize>,
    members: Vec<Member>,
    /// Reused for every key.
    scratch: Vec<u8>,
    bytes: usize,
    limit: usize,
    spill: bool,
    collation: Collation,
}

impl Plan for Group {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Running {
            plan: self.clone(),
            vars: run.vars.clone(),
            index: HashMap::new(),
            members: Vec::new(),
            scratch: Vec::new(),
            bytes: 0,
            limit: run.memory_limit,
            spill: run.allow_disk_use,
            collation: run.collation.clone(),
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
        let mut states = Vec::with_capacity(self.plan.fields.len());
        for (_, parsed) in &self.plan.fields {
            states.push(parsed.start(&key, &mut self.vars)?);
        }
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
            self.bytes = (self.bytes + state.memory()).saturating_sub(before);
        }
        Ok(())
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
    fn push(&mut self, batch: Vec<DocBuf>, _: &mut Vec<DocBuf>) -> Result<Flow> {
        for d in batch {
            self.add(d.doc())?;
        }
        if self.bytes > self.limit && !self.spill {
            bail!(
                QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                "PlanExecutor error during aggregation :: caused by :: Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in."
            );
        }
        Ok(Flow::Continue)
    }
    fn end(&mut self, out: &mut Vec<DocBuf>) -> Result<()> {
        self.index.clear();
        for mut member in std::mem::take(&mut self.members) {
            let d = DocWriter::build(|w| {
                member.key.write(w, "_id");
                for ((field, _), state) in self.plan.fields.iter().zip(&mut member.states) {
                    let v = if self.plan.half == Half::Partial { state.export() } else { state.finish() };
                    v.write(w, field);
                }
            });
            out.push(checked_size(d)?);
        }
        Ok(())
    }
}

/// The largest document a command may give, with the room the server leaves for itself.
const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;

/// Refuses a document that no command may give: too large or too deep.
pub fn checked_size(d: DocBuf) -> Result<DocBuf> {
    let size = d.bytes().len();
    if size > DOCUMENT_BYTES_MAX {
        bail!(
            BSON_OBJECT_TOO_LARGE,
            "BSONObj size: {size} is invalid. Size must be between 0 and 16793600(16MB)"
        );
    }
    crate::depth::checked(d)
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
