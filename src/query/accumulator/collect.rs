//! `$push`, `$addToSet`, `$concatArrays`, `$setUnion`, `$mergeObjects`. Partial: what was collected.

use super::{Accumulator, Parsed, single, value_bytes};
use crate::expression::object::Merging;
use crate::expression::{Arg, Variables};
use document::{Collation, Result, Value, bail};
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
            Some(Value::Array(items)) => items.into_iter().for_each(|v| self.take(v)),
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

#[derive(Default)]
struct Merged(Merging);

impl Accumulator for Merged {
    fn add(&mut self, v: Arg) -> Result<()> {
        match v {
            None | Some(Value::Null | Value::Undefined) => {}
            Some(Value::Document(d)) => self.0.merge(d),
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
        Value::Document(std::mem::take(&mut self.0).into_document())
    }
    fn current(&mut self) -> Value {
        Value::Document(self.0.fields().clone())
    }
    fn memory(&self) -> usize {
        self.0.fields().len() * 64
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
