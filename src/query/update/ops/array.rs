//! `$addToSet`, `$pop`, `$pull`, `$pullAll`.

use super::{Change, Modifier, Parsed};
use crate::QueryContext;
use crate::matcher::Matcher;
use crate::matcher::ops::{self, PATH_OPERATORS};
use crate::text;
use crate::update::path::UpdatePath;
use crate::update::tree::Place;
use document::delta::Extent;
use document::{Collation, Doc, DocWriter, Result, Value, bail, meter, number};
use std::collections::HashSet;
use std::sync::Arc;

/// More values than this are looked up by their keys instead of by a search for each.
const SEARCHES_MAX: usize = 4;

/// What equal values have in common.
fn key(v: &Value, c: &Collation) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    c.append_value_key(&mut out, v, false);
    meter::spend(1 + out.len() / 64)?;
    Ok(out)
}

fn keys(items: &[Value], c: &Collation) -> Result<HashSet<Vec<u8>>> {
    items.iter().map(|v| key(v, c)).collect()
}

#[derive(Debug)]
struct AddToSet {
    values: Vec<Value>,
    collation: Collation,
}

impl AddToSet {
    fn add(&self, items: &mut Vec<Value>) -> Result<bool> {
        let before = items.len();
        if self.values.len() <= SEARCHES_MAX {
            for value in &self.values {
                meter::spend(1 + items.len() / 4)?;
                if !items.iter().any(|x| self.collation.values_equal(x, value)) {
                    items.push(value.clone());
                }
            }
        } else {
            let mut seen = keys(items, &self.collation)?;
            for value in &self.values {
                if seen.insert(key(value, &self.collation)?) {
                    items.push(value.clone());
                }
            }
        }
        Ok(items.len() > before)
    }
}

impl Modifier for AddToSet {
    fn extent(&self) -> Extent {
        Extent::Elements
    }
    fn change(&self, value: &mut Value, place: &Place<'_>) -> Result<Change> {
        let Value::Array(items) = value else {
            bail!(
                BAD_VALUE,
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                place.name,
                value.type_name()
            );
        };
        Ok(if self.add(items)? { Change::Changed } else { Change::None })
    }
    fn create(&self, _: &Place<'_>) -> Result<Option<Value>> {
        let mut items = Vec::new();
        self.add(&mut items)?;
        Ok(Some(Value::Array(items)))
    }
}

pub fn add_to_set(_: &UpdatePath, v: &Value, ctx: &QueryContext) -> Parsed {
    let values = match v {
        Value::Document(d) if d.keys().next() == Some("$each") => {
            let Some(Value::Array(list)) = d.get("$each") else {
                let found = d.get("$each").map_or("missing", Value::type_name);
                bail!(
                    TYPE_MISMATCH,
                    "The argument to $each in $addToSet must be an array but it was of type {found}"
                );
            };
            if d.len() > 1 {
                bail!(
                    BAD_VALUE,
                    "Found unexpected fields after $each in $addToSet: {}",
                    text::document(d.to_doc_buf().doc())
                );
            }
            list.clone()
        }
        one => vec![one.clone()],
    };
    Ok(Arc::new(AddToSet { values, collation: ctx.collation.clone() }))
}

#[derive(Debug)]
struct Pop {
    first: bool,
}

impl Modifier for Pop {
    fn change(&self, value: &mut Value, place: &Place<'_>) -> Result<Change> {
        let Value::Array(items) = value else {
            bail!(
                TYPE_MISMATCH,
                "Path '{}' contains an element of non-array type '{}'",
                place.path,
                value.type_name()
            );
        };
        if items.is_empty() {
            return Ok(Change::None);
        }
        if self.first {
            items.remove(0);
        } else {
            items.pop();
        }
        Ok(Change::Changed)
    }
    fn create(&self, _: &Place<'_>) -> Result<Option<Value>> {
        Ok(None)
    }
    fn creates(&self, _: bool) -> bool {
        false
    }
    fn needs_viable_path(&self, _: bool) -> bool {
        true
    }
}

pub fn pop(path: &UpdatePath, v: &Value, _: &QueryContext) -> Parsed {
    if !v.is_number() {
        bail!(FAILED_TO_PARSE, "Expected a number in: {}: {}", path.text, text::owned(v));
    }
    match number::to_i64_exact(v) {
        Some(1) => Ok(Arc::new(Pop { first: false })),
        Some(-1) => Ok(Arc::new(Pop { first: true })),
        Some(n) => bail!(FAILED_TO_PARSE, "$pop expects 1 or -1, found: {n}"),
        None => bail!(FAILED_TO_PARSE, "Expected an integer: {}: {}", path.text, text::owned(v)),
    }
}

/// What `$pull` takes out.
#[derive(Debug)]
enum Unwanted {
    Equal(Vec<Value>, Collation),
    /// Values with one of many keys.
    Keys(HashSet<Vec<u8>>, Collation),
    /// Documents that match a filter.
    Documents(Matcher),
    /// Values that satisfy operators; the filter is on a field without a name.
    Values(Matcher),
}

impl Unwanted {
    fn of(list: &[Value], c: &Collation) -> Result<Unwanted> {
        Ok(match list.len() > SEARCHES_MAX {
            true => Unwanted::Keys(keys(list, c)?, c.clone()),
            false => Unwanted::Equal(list.to_vec(), c.clone()),
        })
    }
    fn accepts(&self, item: &Value) -> Result<bool> {
        meter::spend(1)?;
        match self {
            Unwanted::Equal(list, c) => Ok(list.iter().any(|v| c.values_equal(v, item))),
            Unwanted::Keys(keys, c) => Ok(keys.contains(&key(item, c)?)),
            Unwanted::Documents(m) => match item {
                Value::Document(d) => m.matches(d.to_doc_buf().doc()),
                _ => Ok(false),
            },
            Unwanted::Values(m) => m.matches(item.to_holder().doc()),
        }
    }
}

#[derive(Debug)]
struct Pull(Unwanted);

impl Modifier for Pull {
    fn change(&self, value: &mut Value, _: &Place<'_>) -> Result<Change> {
        let Value::Array(items) = value else { bail!(BAD_VALUE, "Cannot apply $pull to a non-array value") };
        let before = items.len();
        let mut kept = Vec::with_capacity(before);
        for item in items.drain(..) {
            if !self.0.accepts(&item)? {
                kept.push(item);
            }
        }
        *items = kept;
        Ok(if items.len() < before { Change::Changed } else { Change::None })
    }
    fn create(&self, _: &Place<'_>) -> Result<Option<Value>> {
        Ok(None)
    }
    fn creates(&self, _: bool) -> bool {
        false
    }
}

pub fn pull(_: &UpdatePath, v: &Value, ctx: &QueryContext) -> Parsed {
    let on_value = |ctx| -> Result<Unwanted> {
        let filter = DocWriter::build(|w| v.write(w, ""));
        Ok(Unwanted::Values(Matcher::parse(filter.doc(), ctx)?))
    };
    let unwanted = match v {
        Value::Document(d) => match d.keys().next() {
            Some(name) if ops::find(PATH_OPERATORS, name).is_some() => on_value(ctx)?,
            _ => Unwanted::Documents(Matcher::parse(Doc::from_validated(&d.to_vec()), ctx)?),
        },
        Value::Regex(_) => on_value(ctx)?,
        other => Unwanted::Equal(vec![other.clone()], ctx.collation.clone()),
    };
    Ok(Arc::new(Pull(unwanted)))
}

pub fn pull_all(_: &UpdatePath, v: &Value, ctx: &QueryContext) -> Parsed {
    match v {
        Value::Array(list) => Ok(Arc::new(Pull(Unwanted::of(list, &ctx.collation)?))),
        other => {
            bail!(BAD_VALUE, "$pullAll requires an array argument but was given a {}", other.type_name())
        }
    }
}
