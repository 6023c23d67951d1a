//! Applying operators through the tree of a document.
//!
//! Each path is followed by itself. Where it leaves the document, a modifier that creates builds the documents on the way; in an array a
//! number is a position (the array is padded with nulls up to it) and `$`, `$[]`, `$[id]` choose elements.

use super::index::Index;
use super::ops::{Change, Modifier};
use super::path::Step;
use super::{Operation, Operators};
use crate::matcher::Matcher;
use crate::matcher::path::array_index;
use crate::text;
use document::{Doc, DocWriter, Document, Result, Value, bail, meter};
use std::collections::BTreeMap;

/// An update may lengthen an array by at most this many nulls.
const PADDING_MAX: usize = 1_500_000;

pub(super) struct State<'a> {
    pub old: Doc<'a>,
    pub match_position: Option<usize>,
    pub is_insert: bool,
    pub array_filters: &'a BTreeMap<String, Matcher>,
}

/// Where a modifier works, for its messages.
pub struct Place<'a> {
    pub path: &'a str,
    /// The last name.
    pub name: &'a str,
    pub document: Doc<'a>,
    pub is_insert: bool,
}

impl Place<'_> {
    /// `{_id: 1}`, as messages name the document.
    pub fn document_id(&self) -> String {
        match self.document.get("_id") {
            Some(id) => format!("{{_id: {}}}", text::value(id)),
            None => "{no id}".to_string(),
        }
    }
}

struct Walk<'a> {
    operation: &'a Operation,
    state: &'a State<'a>,
}

/// Applies every operator; whether anything changed.
pub(super) fn apply(o: &Operators, document: &mut Document, state: &State<'_>) -> Result<bool> {
    let mut changed = false;
    let mut index = Index::of(document, 2 * o.renames.len() + o.operations.len())?;
    for rename in &o.renames {
        changed |= rename.apply(document, &mut index, state.old)?;
    }
    for operation in &o.operations {
        let walk = Walk { operation, state };
        changed |= walk.in_document(document, &mut index, &operation.path.steps)?;
    }
    index.settle(document);
    Ok(changed)
}

impl Walk<'_> {
    fn modifier(&self) -> &dyn Modifier {
        &*self.operation.modifier
    }
    fn place<'b>(&'b self, name: &'b str) -> Place<'b> {
        Place {
            path: &self.operation.path.text,
            name,
            document: self.state.old,
            is_insert: self.state.is_insert,
        }
    }

    /// The name that a step stands for where it is one name.
    fn resolve(&self, step: &Step) -> Result<Option<String>> {
        match step {
            Step::Name(name) => Ok(Some(name.clone())),
            Step::Matched => match self.state.match_position {
                Some(at) => Ok(Some(at.to_string())),
                None => {
                    bail!(BAD_VALUE, "The positional operator did not find the match needed from the query.")
                }
            },
            Step::Every | Step::Filtered(_) => Ok(None),
        }
    }

    fn in_document(&self, document: &mut Document, index: &mut Index, steps: &[Step]) -> Result<bool> {
        let Some((step, rest)) = steps.split_first() else { return Ok(false) };
        let Some(name) = self.resolve(step)? else { return self.no_array(document) };
        let Some(at) = index.position(document, &name)? else {
            let Some(value) = self.created(&name, rest)? else { return Ok(false) };
            index.push(document, &name, value);
            return Ok(true);
        };
        if !rest.is_empty() {
            let (name, value) = &mut document.0[at];
            return self.below(name, value, rest);
        }
        match self.modifier().change(&mut document.0[at].1, &self.place(&name))? {
            Change::None => Ok(false),
            Change::Changed => Ok(true),
            Change::Remove => {
                index.remove(document, at);
                Ok(true)
            }
        }
    }

    /// `$[]` where there is a document.
    fn no_array(&self, document: &Document) -> Result<bool> {
        let steps = &self.operation.path.steps;
        let upto = steps.iter().position(|s| matches!(s, Step::Every | Step::Filtered(_))).unwrap_or(0);
        let names: Vec<&str> = self.operation.path.text.split('.').take(upto).collect();
        bail!(
            BAD_VALUE,
            "Cannot apply array updates to non-array element {}: {}",
            names.last().unwrap_or(&""),
            text::document(document.to_doc_buf().doc())
        )
    }

    fn below(&self, name: &str, value: &mut Value, rest: &[Step]) -> Result<bool> {
        match value {
            Value::Document(d) => self.in_document(d, &mut Index::default(), rest),
            Value::Array(items) => self.in_array(name, items, rest),
            other => {
                if let Some(Step::Every | Step::Filtered(_)) = rest.first() {
                    bail!(
                        BAD_VALUE,
                        "Cannot apply array updates to non-array element {name}: {}",
                        text::owned(other)
                    );
                }
                let Some(next) = self.resolve(&rest[0])? else { return Ok(false) };
                if !self.modifier().needs_viable_path(self.state.is_insert) {
                    return Ok(false);
                }
                bail!(
                    PATH_NOT_VIABLE,
                    "Cannot create field '{next}' in element {}",
                    text::element(name, other)
                )
            }
        }
    }

    fn in_array(&self, name: &str, items: &mut Vec<Value>, steps: &[Step]) -> Result<bool> {
        let Some((step, rest)) = steps.split_first() else { return Ok(false) };
        match step {
            Step::Every => {
                let mut changed = false;
                for (i, item) in items.iter_mut().enumerate() {
                    meter::spend(2)?;
                    changed |= self.element(i, item, rest)?;
                }
                Ok(changed)
            }
            Step::Filtered(id) => self.filtered(id, items, rest),
            Step::Name(_) | Step::Matched => {
                let next = self.resolve(step)?.unwrap_or_default();
                self.at_position(name, items, &next, rest)
            }
        }
    }

    fn filtered(&self, id: &str, items: &mut [Value], rest: &[Step]) -> Result<bool> {
        let Some(filter) = self.state.array_filters.get(id) else { return Ok(false) };
        let mut changed = false;
        for (i, item) in items.iter_mut().enumerate() {
            let holder = DocWriter::build(|w| item.write(w, id));
            if filter.matches(holder.doc())? {
                changed |= self.element(i, item, rest)?;
            }
        }
        Ok(changed)
    }

    fn at_position(&self, name: &str, items: &mut Vec<Value>, next: &str, rest: &[Step]) -> Result<bool> {
        let Some(at) = array_index(next) else {
            if !self.modifier().needs_viable_path(self.state.is_insert) {
                return Ok(false);
            }
            let whole = Value::Array(std::mem::take(items));
            bail!(PATH_NOT_VIABLE, "Cannot create field '{next}' in element {}", text::element(name, &whole));
        };
        if let Some(item) = items.get_mut(at) {
            return self.element(at, item, rest);
        }
        let Some(value) = self.created(next, rest)? else { return Ok(false) };
        if at - items.len() > PADDING_MAX {
            bail!(CANNOT_BACKFILL_ARRAY, "can't backfill more than {PADDING_MAX} elements");
        }
        items.resize(at, Value::Null);
        items.push(value);
        Ok(true)
    }

    fn element(&self, at: usize, item: &mut Value, rest: &[Step]) -> Result<bool> {
        let name = at.to_string();
        if !rest.is_empty() {
            return self.below(&name, item, rest);
        }
        match self.modifier().change(item, &self.place(&name))? {
            Change::None => Ok(false),
            Change::Changed => Ok(true),
            // The other elements keep their positions.
            Change::Remove => {
                let changed = *item != Value::Null;
                *item = Value::Null;
                Ok(changed)
            }
        }
    }

    /// What appears at `name` when the path leads out of the document there.
    fn created(&self, name: &str, rest: &[Step]) -> Result<Option<Value>> {
        if rest.is_empty() {
            return self.modifier().create(&self.place(name));
        }
        for (i, step) in rest.iter().enumerate() {
            if matches!(step, Step::Every | Step::Filtered(_)) {
                let names: Vec<&str> = self.operation.path.text.split('.').collect();
                let upto = names.len() - (rest.len() - i);
                bail!(
                    BAD_VALUE,
                    "The path '{}' must exist in the document in order to apply array updates.",
                    names[..upto].join(".")
                );
            }
        }
        if !self.modifier().creates(self.state.is_insert) {
            self.resolve(&rest[0])?;
            return Ok(None);
        }
        let mut resolved = Vec::with_capacity(rest.len());
        for step in rest {
            resolved.push(self.resolve(step)?.unwrap_or_default());
        }
        let last = resolved.pop().unwrap_or_default();
        let Some(mut value) = self.modifier().create(&self.place(&last))? else { return Ok(None) };
        let mut inner = last;
        loop {
            value = Value::Document(Document(vec![(inner, value)]));
            match resolved.pop() {
                Some(outer) => inner = outer,
                None => return Ok(Some(value)),
            }
        }
    }
}
