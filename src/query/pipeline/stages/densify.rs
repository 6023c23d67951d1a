//! `$densify`: documents made for the values that a field skips.
//!
//! ```text
//! $densify = $sort {[<partition fields>,] <field>} + $_internalDensify
//! ```
//! The sort comes first by the partition's fields only where each partition is filled between its own ends
//! (`bounds: "partition"`). Otherwise all partitions advance together along the field, and what a partition lacks at the
//! end is made when the input has ended.

use crate::expression::date::{Unit, shift};
use crate::expression::date_format::UTC;
use crate::expression::{FieldPath, parse::show};
use crate::pipeline::parse::{check_internal, one};
use crate::pipeline::{Batch, Charge, Context, Flow, Parsed, Plan, Run, Stage, sort};
use document::{Collation, DocBuf, Document, Result, Value, bail, compare::compare_values, number};
use indexmap::IndexMap;
use std::cmp::Ordering;

#[derive(Clone, Debug)]
enum Bounds {
    /// From the least value of the collection to the greatest.
    Full,
    /// The same for each partition.
    Partition,
    /// From the first, included, to the second, excluded.
    Explicit(Value, Value),
}

#[derive(Clone, Debug)]
struct Densify {
    field: FieldPath,
    partition: Vec<FieldPath>,
    step: Value,
    unit: Option<Unit>,
    bounds: Bounds,
}

impl Plan for Densify {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Running {
            plan: self.clone(),
            partitions: IndexMap::new(),
            least: None,
            greatest: None,
            made: 0,
            made_max: run.limits.densify,
            collation: run.collation.clone(),
            charge: run.charge(crate::pipeline::MEMORY_LIMIT),
            pending: None,
            ending: 0,
        }))
    }
}

/// A partition on its way along the field.
struct Track {
    key: Vec<Option<Value>>,
    /// Where its steps begin, and how many it has taken.
    base: Value,
    steps: i64,
    /// The next value on a step.
    next: Value,
}

struct Running {
    plan: Densify,
    /// In the order in which they came, by what [`Running::place_key`] makes of their keys.
    partitions: IndexMap<Vec<u8>, Track>,
    least: Option<Value>,
    greatest: Option<Value>,
    made: usize,
    made_max: usize,
    collation: Collation,
    charge: Charge,
    pending: Option<Pending>,
    /// The partition that is being filled up after the input has ended.
    ending: usize,
}

/// A document before which others are being made.
struct Pending {
    track: usize,
    end: Value,
    value: Value,
    doc: DocBuf,
}

impl Densify {
    /// `base` moved by `steps` steps; dates by whole units from the base, so that months keep their day.
    fn at(&self, base: &Value, before: &Value, steps: i64) -> Result<Value> {
        let moved = match (self.unit, base) {
            (Some(unit), Value::DateTime(ms)) => number::to_i64_exact(&self.step)
                .and_then(|step| step.checked_mul(steps))
                .and_then(|by| shift(*ms, unit, by, UTC))
                .map(Value::DateTime),
            _ => number::add(before, &self.step),
        };
        match moved {
            Some(v) => Ok(v),
            None => bail!(
                5733414,
                "Encountered a value that cannot be moved by a step of $densify: {}",
                show(base)
            ),
        }
    }

    fn check_value(&self, v: &Value) -> Result<()> {
        match (v, self.unit) {
            (Value::DateTime(_), Some(_)) => Ok(()),
            (Value::DateTime(_), None) => {
                bail!(6053600, "Encountered date value for '{}' but no 'unit' was specified", self.field)
            }
            (v, None) if v.is_number() => Ok(()),
            (v, Some(_)) if v.is_number() => {
                bail!(6053600, "Encountered numeric value for '{}' but a 'unit' was specified", self.field)
            }
            (v, _) => bail!(5733201, "Densify field type must be numeric or a date, found {}", v.type_name()),
        }
    }
}

impl Running {
    /// Bytes that are the same for keys that are equal by the collation, and for no others. Missing equals nothing but missing.
    fn place_key(&self, key: &[Option<Value>]) -> Vec<u8> {
        let mut out = Vec::new();
        for v in key {
            let begin = out.len();
            if let Some(v) = v {
                self.collation.append_value_key(&mut out, v, false);
            }
            let length = out.len() - begin;
            out.extend_from_slice(&length.to_be_bytes());
        }
        out
    }

    fn track(&mut self, key: Vec<Option<Value>>, v: &Value) -> Result<usize> {
        let place_key = self.place_key(&key);
        if let Some(i) = self.partitions.get_index_of(&place_key) {
            return Ok(i);
        }
        let base = match &self.plan.bounds {
            Bounds::Full => self.least.clone().unwrap_or_else(|| v.clone()),
            Bounds::Partition => v.clone(),
            Bounds::Explicit(from, _) => from.clone(),
        };
        let held: usize = key.iter().flatten().map(crate::accumulator::value_bytes).sum();
        self.charge.add(held + place_key.len() + 128);
        if self.charge.is_over() {
            bail!(6007200, "$densify exceeded memory limit of {}", self.charge.limit());
        }
        // Only the partition at hand can come again when they come one after another.
        if matches!(self.plan.bounds, Bounds::Partition) {
            self.partitions.clear();
            self.charge.set(0);
        }
        let track = Track { key, next: base.clone(), base, steps: 0 };
        Ok(self.partitions.insert_full(place_key, track).0)
    }

    /// Makes documents of a partition up to `end`; false when the batch is full before.
    fn advance(&mut self, i: usize, end: &Value, included: bool, out: &mut Batch) -> Result<bool> {
        loop {
            let track = &self.partitions[i];
            let order = compare_values(&track.next, end);
            if order == Ordering::Greater || (order == Ordering::Equal && !included) {
                return Ok(true);
            }
            if out.is_full() {
                return Ok(false);
            }
            let mut made = Document::new();
            for (path, v) in self.plan.partition.iter().zip(&track.key) {
                if let Some(v) = v {
                    put(&mut made, path.parts(), v.clone());
                }
            }
            put(&mut made, self.plan.field.parts(), track.next.clone());
            out.push(made.to_doc_buf())?;
            self.made += 1;
            if self.made > self.made_max {
                bail!(
                    5897900,
                    "Generated {} documents in $densify, which is over the limit of {}. Increase the 'internalQueryMaxAllowedDensifyDocs' parameter to allow more generated documents",
                    self.made,
                    self.made_max
                );
            }
            self.step(i)?;
        }
    }

    fn step(&mut self, i: usize) -> Result<()> {
        let track = &self.partitions[i];
        let next = self.plan.at(&track.base, &track.next, track.steps + 1)?;
        let track = &mut self.partitions[i];
        (track.next, track.steps) = (next, track.steps + 1);
        Ok(())
    }
}

/// Sets a path in a new document; the parts of one path do not meet those of another, which was checked.
fn put(d: &mut Document, parts: &[Box<str>], v: Value) {
    let Some((name, rest)) = parts.split_first() else { return };
    if rest.is_empty() {
        d.push(name.to_string(), v);
        return;
    }
    let mut inner = match d.remove(name) {
        Some(Value::Document(inner)) => inner,
        _ => Document::new(),
    };
    put(&mut inner, rest, v);
    d.push(name.to_string(), inner);
}

impl Stage for Running {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        let v = match self.plan.field.get(d.doc()) {
            None | Some(Value::Null) => {
                out.push(d)?;
                return Ok(Flow::Continue);
            }
            Some(v) => v,
        };
        self.plan.check_value(&v)?;
        self.least.get_or_insert_with(|| v.clone());
        self.greatest = Some(v.clone());
        let key: Vec<Option<Value>> = self.plan.partition.iter().map(|p| p.get(d.doc())).collect();
        let track = self.track(key.clone(), &v)?;
        // Of keys that are equal by the collation the newest is the one shown.
        self.partitions[track].key = key;
        let end = match &self.plan.bounds {
            Bounds::Explicit(_, to) if compare_values(to, &v).is_lt() => to.clone(),
            _ => v.clone(),
        };
        self.pending = Some(Pending { track, end, value: v, doc: d });
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Batch) -> Result<Flow> {
        let Some(pending) = self.pending.take() else { return Ok(Flow::Continue) };
        if !self.advance(pending.track, &pending.end, false, out)? {
            self.pending = Some(pending);
            return Ok(Flow::More);
        }
        if compare_values(&self.partitions[pending.track].next, &pending.value).is_eq() {
            self.step(pending.track)?;
        }
        out.push(pending.doc)?;
        Ok(Flow::Continue)
    }

    fn end(&mut self, out: &mut Batch) -> Result<Flow> {
        let (end, included) = match (&self.plan.bounds, &self.greatest) {
            (Bounds::Explicit(from, to), _) => {
                let (from, to) = (from.clone(), to.clone());
                if self.partitions.is_empty() && self.plan.partition.is_empty() {
                    self.track(Vec::new(), &from)?;
                }
                (to, false)
            }
            (Bounds::Full, Some(greatest)) => (greatest.clone(), true),
            _ => return Ok(Flow::Continue),
        };
        while self.ending < self.partitions.len() {
            if !self.advance(self.ending, &end, included, out)? {
                return Ok(Flow::More);
            }
            self.ending += 1;
        }
        Ok(Flow::Continue)
    }
}

/// `$densify`, as the stages it stands for.
pub fn parse(_: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let plan = plan(v)?;
    let mut pattern = Document::new();
    if matches!(plan.bounds, Bounds::Partition) {
        plan.partition.iter().for_each(|p| pattern.push(p.to_string(), 1));
    }
    pattern.push(plan.field.to_string(), 1);
    let mut stages = sort::parse("$sort", &pattern.into(), ctx)?;
    stages.extend(one("$_internalDensify", v, plan)?);
    Ok(stages)
}

/// `$_internalDensify`, sent by a router.
pub fn parse_shard(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    check_internal(name, ctx)?;
    one(name, v, plan(v)?)
}

fn plan(v: &Value) -> Result<Densify> {
    let Value::Document(d) = v else {
        bail!(FAILED_TO_PARSE, "The $densify stage specification must be an object, found {}", v.type_name());
    };
    let (mut field, mut range, mut partition) = (None, None, &[][..]);
    for (name, v) in d.iter() {
        let expected = match (name, v) {
            ("field", Value::String(s)) => {
                field = Some(s);
                continue;
            }
            ("range", Value::Document(r)) => {
                range = Some(r);
                continue;
            }
            ("partitionByFields", Value::Array(fields)) => {
                partition = fields;
                continue;
            }
            ("field", _) => "string",
            ("range", _) => "object",
            ("partitionByFields", _) => "array",
            (other, _) => bail!(IDL_UNKNOWN_FIELD, "BSON field '$densify.{other}' is an unknown field."),
        };
        return Err(document::wrong_type(&format!("$densify.{name}"), v.type_name(), expected));
    }
    let missing = |name: &str| {
        document::err!(IDL_FAILED_TO_PARSE, "BSON field '$densify.{name}' is missing but a required field")
    };
    let field = field_path(field.ok_or_else(|| missing("field"))?)?;
    let partition = partition.iter().map(|v| partition_field(v, &field)).collect::<Result<Vec<_>>>()?;
    range_of(range.ok_or_else(|| missing("range"))?, field, partition)
}

fn field_path(s: &str) -> Result<FieldPath> {
    if s.starts_with('$') {
        bail!(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    }
    FieldPath::parse(s)
}

fn partition_field(v: &Value, field: &FieldPath) -> Result<FieldPath> {
    let Value::String(s) = v else {
        return Err(document::wrong_type("$densify.partitionByFields", v.type_name(), "string"));
    };
    let path = field_path(s)?;
    let (a, b) = (path.to_string(), field.to_string());
    if a == b || a.starts_with(&format!("{b}.")) || b.starts_with(&format!("{a}.")) {
        bail!(
            5733404,
            "One field of 'partitionByFields' is '{a}', which overlaps the field to densify, '{b}'"
        );
    }
    Ok(path)
}

fn range_of(d: &Document, field: FieldPath, partition: Vec<FieldPath>) -> Result<Densify> {
    let (mut step, mut unit, mut bounds) = (None, None, None);
    for (name, v) in d.iter() {
        match name {
            "step" if v.is_number() => step = Some(v.clone()),
            "step" => {
                return Err(document::wrong_types(
                    "$densify.range.step",
                    v.type_name(),
                    "[int, decimal, double, long]",
                ));
            }
            "unit" => unit = Some(super::window::frame::parse_unit(v)?),
            "bounds" => bounds = Some(v),
            other => bail!(IDL_UNKNOWN_FIELD, "BSON field '$densify.range.{other}' is an unknown field."),
        }
    }
    let missing = |name: &str| {
        document::err!(
            IDL_FAILED_TO_PARSE,
            "BSON field '$densify.range.{name}' is missing but a required field"
        )
    };
    let step = step.ok_or_else(|| missing("step"))?;
    if number::as_f64(&step).is_none_or(|s| s.is_nan() || s <= 0.0) {
        bail!(5733401, "The step parameter in a range statement must be a strictly positive numeric value");
    }
    if unit.is_some() && number::to_i64_exact(&step).is_none() {
        bail!(
            6586400,
            "The step parameter in a range statement must be a whole number when densifying a date range"
        );
    }
    let bounds = bounds_of(bounds.ok_or_else(|| missing("bounds"))?, unit)?;
    if matches!(bounds, Bounds::Partition) && partition.is_empty() {
        bail!(
            5733408,
            "One may not specify the bounds as 'partition' without specifying a non-empty array of partitionByFields. You may have meant to specify 'full' bounds."
        );
    }
    Ok(Densify { field, partition, step, unit, bounds })
}

fn bounds_of(v: &Value, unit: Option<Unit>) -> Result<Bounds> {
    match v {
        Value::String(s) if s == "full" => Ok(Bounds::Full),
        Value::String(s) if s == "partition" => Ok(Bounds::Partition),
        Value::String(s) => {
            bail!(5946800, "Bounds string must either be 'full' or 'partition', found \"{s}\"")
        }
        Value::Array(ends) => {
            let [from, to] = ends.as_slice() else {
                bail!(5733403, "A bounding array in a range statement must have exactly two elements");
            };
            if compare_values(from, to).is_gt() {
                bail!(5733402, "A bounding array in a range statement must be in ascending order");
            }
            match (from, to, unit) {
                (Value::DateTime(_), Value::DateTime(_), Some(_)) => {}
                (Value::DateTime(_), Value::DateTime(_), None) => {
                    bail!(5733402, "A bounding array of dates must have a unit")
                }
                (a, b, None) if a.is_number() && b.is_number() => {}
                (a, b, Some(_)) if a.is_number() && b.is_number() => {
                    bail!(5733402, "Numeric bounds may not have unit parameter")
                }
                _ => bail!(5733402, "A bounding array must contain either both dates or both numeric types"),
            }
            Ok(Bounds::Explicit(from.clone(), to.clone()))
        }
        v => bail!(
            5733402,
            "the bounds of a range statement must be the string \'full\', \'partition\', or an ascending array of two numbers or two dates, found {}",
            v.type_name()
        ),
    }
}
