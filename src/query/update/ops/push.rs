//! `$push` with `$each`, `$position`, `$slice` and `$sort`.

use super::{Change, Modifier, Parsed};
use crate::QueryContext;
use crate::merge_sort::merge_sort;
use crate::update::path::UpdatePath;
use crate::update::tree::Place;
use document::delta::Extent;
use document::{Collation, Document, Result, Value, bail, meter, number};
use std::cmp::Ordering;
use std::sync::Arc;

#[derive(Debug)]
struct Push {
    values: Vec<Value>,
    position: Option<i64>,
    slice: Option<i64>,
    sort: Option<Sort>,
    collation: Collation,
}

#[derive(Debug)]
enum Sort {
    Whole { descending: bool },
    Fields(Vec<(String, bool)>),
}

impl Push {
    fn push(&self, items: &mut Vec<Value>) -> Result<()> {
        let at = match self.position {
            None => items.len(),
            Some(p) if p < 0 => items.len().saturating_sub(p.unsigned_abs() as usize),
            Some(p) => (p as usize).min(items.len()),
        };
        meter::spend((items.len() + self.values.len()) / 16)?;
        items.splice(at..at, self.values.iter().cloned());
        if let Some(sort) = &self.sort {
            merge_sort(items, |a, b| sort.compare(a, b, &self.collation))?;
        }
        match self.slice {
            Some(n) if n >= 0 => items.truncate(n as usize),
            Some(n) => {
                let surplus = items.len().saturating_sub(n.unsigned_abs() as usize);
                items.drain(..surplus);
            }
            None => {}
        }
        Ok(())
    }
}

impl Sort {
    fn compare(&self, a: &Value, b: &Value, c: &Collation) -> Ordering {
        let turned = |order: Ordering, descending: bool| if descending { order.reverse() } else { order };
        match self {
            Sort::Whole { descending } => turned(c.compare_values(a, b), *descending),
            Sort::Fields(list) => list
                .iter()
                .map(|(path, descending)| {
                    turned(c.compare_values(field(a, path), field(b, path)), *descending)
                })
                .find(|order| *order != Ordering::Equal)
                .unwrap_or(Ordering::Equal),
        }
    }
}

fn field<'a>(v: &'a Value, path: &str) -> &'a Value {
    v.as_document().and_then(|d| d.get_path(path)).unwrap_or(&Value::Null)
}

impl Modifier for Push {
    fn extent(&self) -> Extent {
        match (self.position, self.slice, &self.sort) {
            (None, None, None) => Extent::Elements,
            _ => Extent::Whole,
        }
    }
    fn change(&self, value: &mut Value, place: &Place<'_>) -> Result<Change> {
        let Value::Array(items) = value else {
            bail!(
                BAD_VALUE,
                "The field '{}' must be an array but is of type {} in document {}",
                place.path,
                value.type_name(),
                place.document_id()
            );
        };
        if self.slice.is_none() && self.sort.is_none() {
            self.push(items)?;
            return Ok(if self.values.is_empty() { Change::None } else { Change::Changed });
        }
        let before = items.clone();
        self.push(items)?;
        Ok(if *items == before { Change::None } else { Change::Changed })
    }
    fn create(&self, _: &Place<'_>) -> Result<Option<Value>> {
        let mut items = Vec::new();
        self.push(&mut items)?;
        Ok(Some(Value::Array(items)))
    }
}

pub fn push(_: &UpdatePath, v: &Value, ctx: &QueryContext) -> Parsed {
    let collation = ctx.collation.clone();
    let mut out = Push { values: Vec::new(), position: None, slice: None, sort: None, collation };
    match v {
        Value::Document(d) if d.contains_key("$each") => read_clauses(d, &mut out)?,
        one => out.values.push(one.clone()),
    }
    Ok(Arc::new(out))
}

fn read_clauses(d: &Document, out: &mut Push) -> Result<()> {
    for (name, value) in d.iter() {
        match name {
            "$each" => match value {
                Value::Array(list) => out.values = list.clone(),
                other => bail!(
                    BAD_VALUE,
                    "The argument to $each in $push must be an array but it was of type: {}",
                    other.type_name()
                ),
            },
            "$slice" => match number::to_i64_exact(value) {
                Some(n) => out.slice = Some(n),
                None => bail!(
                    BAD_VALUE,
                    "The value for $slice must be an integer value but was given type: {}",
                    value.type_name()
                ),
            },
            "$position" => match number::to_i64_exact(value) {
                Some(n) => out.position = Some(n),
                None => bail!(
                    BAD_VALUE,
                    "The value for $position must be an integer value, not of type: {}",
                    value.type_name()
                ),
            },
            "$sort" => out.sort = Some(sort(value)?),
            other => bail!(BAD_VALUE, "Unrecognized clause in $push: {other}"),
        }
    }
    Ok(())
}

fn direction(v: &Value) -> Result<bool> {
    match number::to_i64_exact(v) {
        Some(1) => Ok(false),
        Some(-1) => Ok(true),
        _ => bail!(BAD_VALUE, "The $sort element value must be either 1 or -1"),
    }
}

fn sort(v: &Value) -> Result<Sort> {
    match v {
        Value::Document(d) => {
            if d.is_empty() {
                bail!(BAD_VALUE, "The $sort pattern is empty when it should be a set of fields.");
            }
            let mut fields = Vec::new();
            for (path, value) in d.iter() {
                if path.is_empty() {
                    bail!(BAD_VALUE, "The $sort field cannot be empty");
                }
                if path.split('.').any(str::is_empty) {
                    bail!(BAD_VALUE, "The $sort field is a dotted field but has an empty part: {path}");
                }
                fields.push((path.to_string(), direction(value)?));
            }
            Ok(Sort::Fields(fields))
        }
        v if v.is_number() => Ok(Sort::Whole { descending: direction(v)? }),
        _ => bail!(
            BAD_VALUE,
            "The $sort is invalid: use 1/-1 to sort the whole element, or {{field:1/-1}} to sort embedded fields"
        ),
    }
}
