//! Why a document fails a validator: `errInfo` of error 121, as the real server describes it.
//!
//! The validator is taken apart again and each clause asked by itself; only refused documents pay for that. A clause that
//! fails says what it compared. Below `$nor` and `$not` the sense is inverted: there the clauses that hold are described.
//!
//! The description repeats parts of the validator and of the document. When these exceed [`SIZE_MAX`] it is made a second
//! time without them (`truncated: true`), and when that is too large as well, it is left out.

mod leaf;
mod schema;
#[cfg(test)]
mod tests;

use document::{Doc, DocWriter, Document, Value, ValueRef, doc};
use query::QueryContext;
use query::computed::Computed;
use query::matcher::Matcher;
use std::cell::Cell;

/// The most bytes that a description may take.
const SIZE_MAX: usize = 12 << 20;

/// The most levels that it may have; a reply has some around it, and may have 200.
const DEPTH_MAX: usize = 190;

/// `errInfo` for a document that `validator` refuses, under the validator's context.
pub fn info(validator: Doc<'_>, document: Doc<'_>, context: &QueryContext) -> Document {
    let mut info = doc! { "failingDocumentId": document.get("_id").map(|v| v.to_value()) };
    for brief in [false, true] {
        let refusal = Refusal { document, context, brief, room: Cell::new(Some(SIZE_MAX)) };
        let details = refusal.filter(&validator.to_document(), false);
        if refusal.room.get().is_none() {
            continue;
        }
        if is_deeper(&details, DEPTH_MAX) {
            return doc! { "reason": "generated error was too deeply nested", "truncated": true };
        }
        if brief {
            info.push("truncated", true);
        }
        info.push("details", details);
        return info;
    }
    info.push("note", "detailed error was too large");
    info
}

/// One description in the making.
struct Refusal<'a> {
    document: Doc<'a>,
    context: &'a QueryContext,
    /// Without what is as large as the document or the validator.
    brief: bool,
    /// The bytes left for values; `None` once they did not suffice.
    room: Cell<Option<usize>>,
}

impl Refusal<'_> {
    /// Takes room for `bytes` more; false, now and ever after, when there is none.
    fn fits(&self, bytes: usize) -> bool {
        self.room.set(self.room.get().and_then(|room| room.checked_sub(bytes)));
        self.room.get().is_some()
    }
    /// Appends a part of the document.
    fn push_value(&self, d: &mut Document, name: &str, value: ValueRef<'_>) {
        if !self.brief && self.fits(name.len() + size(value)) {
            d.push(name, value.to_value());
        }
    }
    /// Appends several parts of the document as an array.
    fn push_values<'v>(
        &self,
        d: &mut Document,
        name: &str,
        mut values: impl Iterator<Item = ValueRef<'v>> + Clone,
    ) {
        let fits = |v: ValueRef<'_>| self.fits(8 + size(v));
        if !self.brief && values.clone().all(fits) {
            d.push(name, Value::Array(values.by_ref().map(|v| v.to_value()).collect()));
        }
    }
    /// Appends names of fields, even to a brief description.
    fn push_names<'n>(&self, d: &mut Document, name: &str, names: impl Iterator<Item = &'n str>) {
        let names = names.take_while(|n| self.fits(8 + n.len()));
        d.push(name, Value::Array(names.map(Value::from).collect()));
    }
    /// Appends the part of the validator that is described.
    fn push_specified(&self, d: &mut Document, specified: Document) {
        if !self.brief && self.fits(specified.to_vec().len()) {
            d.push("specifiedAs", specified);
        }
    }

    fn holds(&self, filter: &Document) -> Option<bool> {
        Matcher::parse(filter.to_doc_buf().doc(), self.context).and_then(|m| m.matches(self.document)).ok()
    }

    /// Why the filter does not hold; if `inverted`, why it does.
    fn filter(&self, filter: &Document, inverted: bool) -> Document {
        match clauses_of(filter).as_slice() {
            [one] => self.clause(one, inverted),
            several => self.list("$and", several, inverted),
        }
    }

    fn clause(&self, clause: &Document, inverted: bool) -> Document {
        let Some((name, argument)) = clause.first() else { return Document::new() };
        match (name, argument) {
            ("$and" | "$or" | "$nor", Value::Array(parts)) => {
                let parts: Vec<Document> = parts.iter().filter_map(Value::as_document).cloned().collect();
                self.list(name, &parts, inverted)
            }
            ("$jsonSchema", Value::Document(schema)) => self.schema(schema.to_doc_buf().doc(), inverted),
            ("$expr", expression) => self.expression(expression, clause, inverted),
            ("$alwaysFalse" | "$alwaysTrue", _) => {
                let reason = match name {
                    "$alwaysFalse" => "expression always evaluates to false",
                    _ => "expression always evaluates to true",
                };
                self.start(name, clause, reason)
            }
            (path, Value::Document(operators)) if operators.first().is_some_and(|(o, _)| o == "$not") => {
                let inner = operators.get("$not").cloned().unwrap_or(Value::Null);
                let mut d = doc! { "operatorName": "$not" };
                d.push("details", self.filter(&single(path, inner), !inverted));
                d
            }
            (path, argument) => self.leaf(clause, path, argument, inverted),
        }
    }

    /// `$and`, `$or` and `$nor`: the parts because of which it does not hold, or does.
    fn list(&self, name: &str, parts: &[Document], inverted: bool) -> Document {
        let inner_inverted = inverted != (name == "$nor");
        let described: Vec<Document> = parts
            .iter()
            .enumerate()
            .filter(|(_, part)| self.holds(part).is_none_or(|holds| holds == inner_inverted))
            .map(|(i, part)| doc! { "index": i as i64, "details": self.filter(part, inner_inverted) })
            .collect();
        let list = if inner_inverted { "clausesSatisfied" } else { "clausesNotSatisfied" };
        doc! { "operatorName": name, list: described }
    }

    fn expression(&self, expression: &Value, clause: &Document, inverted: bool) -> Document {
        let mut d = doc! { "operatorName": "$expr" };
        self.push_specified(&mut d, clause.clone());
        match Computed::parse(expression, self.context).and_then(|e| e.eval(self.document)) {
            Ok(result) => {
                d.push("reason", if inverted { "expression did match" } else { "expression did not match" });
                if let Some(result) = result {
                    let holder = result.to_holder();
                    for e in holder.doc() {
                        self.push_value(&mut d, "expressionResult", e.value());
                    }
                }
            }
            Err(e) => {
                d.push("reason", "failed to evaluate aggregation expression");
                d.push("details", doc! { "code": e.code, "codeName": e.code_name(), "errmsg": e.message });
            }
        }
        d
    }

    fn start(&self, operator: &str, specified: &Document, reason: &str) -> Document {
        let mut d = doc! { "operatorName": operator };
        self.push_specified(&mut d, specified.clone());
        d.push("reason", reason);
        d
    }
}

/// The filter as filters of one operator each.
fn clauses_of(filter: &Document) -> Vec<Document> {
    let mut clauses = Vec::new();
    for (name, value) in filter.iter().filter(|(name, _)| *name != "$comment") {
        match value {
            Value::Document(operators)
                if !name.starts_with('$') && operators.first().is_some_and(|(o, _)| o.starts_with('$')) =>
            {
                for (operator, argument) in operators.iter().filter(|(o, _)| *o != "$options") {
                    let mut one = single(operator, argument.clone());
                    if let (Some(options), "$regex") = (operators.get("$options"), operator) {
                        one.push("$options", options.clone());
                    }
                    clauses.push(single(name, Value::Document(one)));
                }
            }
            _ => clauses.push(single(name, value.clone())),
        }
    }
    clauses
}

/// The bytes of a value in a document.
fn size(value: ValueRef<'_>) -> usize {
    match value.raw_bytes() {
        Some(bytes) => bytes.len(),
        None => DocWriter::build(|w| w.value("", value)).bytes().len(),
    }
}

fn single(name: &str, value: Value) -> Document {
    Document(vec![(name.to_string(), value)])
}

fn is_deeper(d: &Document, levels: usize) -> bool {
    fn value(v: &Value, levels: usize) -> bool {
        match v {
            Value::Document(d) => is_deeper(d, levels),
            Value::Array(items) => levels == 0 || items.iter().any(|v| value(v, levels - 1)),
            _ => false,
        }
    }
    levels == 0 || d.iter().any(|(_, v)| value(v, levels - 1))
}
