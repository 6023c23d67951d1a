//! `$push`, `$addToSet`, `$concatArrays`, `$setUnion`, `$mergeObjects`. Partial: what was collected.

use super::{Accumulator, Parsed, single, value_bytes};
use crate::expression::object::Merging;
use crate::expression::{Arg, Variables};
use document::{Collation, Result, Value, bail, meter};
use std::collections::HashSet;

/// An array of values; with `seen`, each value once.
struct List {
    name: &'static str,
    items: Vec<Value>,
    seen: Option<HashSet<Vec<u8>>>,
    /// The values given are arrays, whose elements are collected.
    spread: bool,
    bytes: usize,
    collation: Collation,
}

impl List {
    fn take(&mut self, v: Value) {
        if let Some(seen) = &mut self.seen {
            let mut key = Vec::new();
            self.collation.append_value_key(&mut key, &v, false);
            let size = key.len();
            if !seen.insert(key) {
                return;
            }
            self.bytes += size;
        }
        self.bytes += value_bytes(&v);
        self.items.push(v);
    }
}

impl Accumulator for List {
    fn add(&mut self, v: Arg) -> Result<()> {
        match v {
            None => {}
            Some(v) if !self.spread => self.take(v),
            Some(Value::Array(items)) => {
                for v in items {
                    meter::spend(1)?;
                    self.take(v);
                }
            }
            Some(v) => {
                bail!(
                    TYPE_MISMATCH,
                    "{} requires array inputs, but got a value of type {}",
                    self.name,
                    v.type_name()
                )
            }
        }
        Ok(())
    }
    fn export(&mut self) -> Value {
        self.finish()
    }
    fn merge(&mut self, partial: Value) -> Result<()> {
        if let Value::Array(items) = partial {
            items.into_iter().for_each(|v| self.take(v));
        }
        Ok(())
    }
    fn finish(&mut self) -> Value {
        Value::Array(std::mem::take(&mut self.items))
    }
    fn current(&mut self) -> Value {
        Value::Array(self.items.clone())
    }
    fn memory(&self) -> usize {
        self.bytes
    }
}

/// What a field takes beside its name and its value.
const FIELD_BYTES: usize = 64;

#[derive(Default)]
struct Merged {
    merging: Merging,
    bytes: usize,
}

impl Merged {
    fn insert(&mut self, name: String, v: Value) {
        let (held, own) = (name.len() + FIELD_BYTES, value_bytes(&v));
        self.bytes += own;
        match self.merging.insert(name, v) {
            Some(replaced) => self.bytes -= value_bytes(&replaced),
            None => self.bytes += held,
        }
    }
}

impl Accumulator for Merged {
    fn add(&mut self, v: Arg) -> Result<()> {
        match v {
            None | Some(Value::Null | Value::Undefined) => {}
            Some(Value::Document(d)) => {
                for (name, v) in d {
                    meter::spend(1)?;
                    self.insert(name, v);
                }
            }
            Some(v) => bail!(
                5911200,
                "$mergeObjects only supports objects, but got a value of type {}",
                v.type_name()
            ),
        }
        Ok(())
    }
    fn export(&mut self) -> Value {
        self.finish()
    }
    fn merge(&mut self, partial: Value) -> Result<()> {
        self.add(Some(partial))
    }
    fn finish(&mut self) -> Value {
        Value::Document(std::mem::take(self).merging.into_document())
    }
    fn current(&mut self) -> Value {
        Value::Document(self.merging.fields().clone())
    }
    fn memory(&self) -> usize {
        self.bytes
    }
}

pub fn parse(name: &'static str, v: &Value, vars: &Variables) -> Result<Parsed> {
    let input = single(name, v, vars)?;
    if name == "$mergeObjects" {
        return Ok(Parsed::new(name, input, |_| Box::new(Merged::default())));
    }
    let distinct = matches!(name, "$addToSet" | "$setUnion");
    let spread = matches!(name, "$concatArrays" | "$setUnion");
    let collation = vars.collation().clone();
    Ok(Parsed::new(name, input, move |_| {
        let seen = distinct.then(HashSet::new);
        Box::new(List { name, items: Vec::new(), seen, spread, bytes: 0, collation: collation.clone() })
    }))
}
