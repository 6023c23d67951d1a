//! How often clients used each operator: `operatorCounters` in the metrics of serverStatus.
//!
//! An operator counts once for each place where a request that ran says it. Within `$expr` the operators are expressions.

use crate::counters::RareCounter;
use document::{Doc, Document, ValueRef, doc};
use node::request::Request;
use query::{accumulator, expression, matcher, pipeline};
use std::collections::BTreeMap;

/// A counter for each of some names.
struct Named(BTreeMap<&'static str, RareCounter>);

impl Named {
    fn new(names: impl Iterator<Item = &'static str>) -> Named {
        Named(names.filter(|n| !n.starts_with("$_internal")).map(|n| (n, RareCounter::default())).collect())
    }
    /// Counts a name; false where there is no such operator.
    fn note(&self, name: &str) -> bool {
        let counter = self.0.get(name);
        if let Some(counter) = counter {
            counter.increment();
        }
        counter.is_some()
    }
    fn shown(&self) -> Document {
        self.0.iter().map(|(name, n)| (name.to_string(), n.get().into())).collect()
    }
}

pub struct OperatorCounters {
    expressions: Named,
    filters: Named,
    groups: Named,
    windows: Named,
}

impl Default for OperatorCounters {
    fn default() -> OperatorCounters {
        let filters = matcher::ops::PATH_OPERATORS.iter().chain(matcher::ops::TOP_OPERATORS);
        OperatorCounters {
            expressions: Named::new(expression::table::OPERATORS.iter().map(|row| row.name)),
            filters: Named::new(filters.map(|row| row.name)),
            groups: Named::new(accumulator::table::ACCUMULATORS.iter().map(|row| row.name)),
            windows: Named::new(pipeline::stages::window::function_names()),
        }
    }
}

impl OperatorCounters {
    /// Counts what a command that ran was asked with.
    pub fn note(&self, command: &str, request: &Request<'_>) {
        let body = request.body;
        match command {
            "find" => {
                self.filter_in(body, "filter");
                self.expressions_in(body, "projection");
            }
            "count" | "distinct" => self.filter_in(body, "query"),
            "aggregate" => self.pipeline_in(body, "pipeline"),
            "update" => request.documents("updates").for_each(|statement| {
                self.filter_in(statement, "q");
                self.pipeline_in(statement, "u");
            }),
            "delete" => request.documents("deletes").for_each(|statement| self.filter_in(statement, "q")),
            "findAndModify" => {
                self.filter_in(body, "query");
                self.pipeline_in(body, "update");
                self.expressions_in(body, "fields");
            }
            _ => {}
        }
    }

    pub fn shown(&self) -> Document {
        doc! {
            "expressions": self.expressions.shown(), "match": self.filters.shown(),
            "groupAccumulators": self.groups.shown(), "windowAccumulators": self.windows.shown(),
        }
    }

    fn filter_in(&self, owner: Doc<'_>, field: &str) {
        if let Some(filter) = owner.get_document(field) {
            self.filter(filter);
        }
    }
    fn expressions_in(&self, owner: Doc<'_>, field: &str) {
        if let Some(value) = owner.get(field) {
            self.expression(value);
        }
    }
    fn pipeline_in(&self, owner: Doc<'_>, field: &str) {
        if let Some(ValueRef::Array(stages)) = owner.get(field) {
            self.pipeline(stages);
        }
    }

    fn filter(&self, filter: Doc<'_>) {
        for e in filter.iter() {
            let name = e.name();
            if name.starts_with('$') {
                self.filters.note(name);
            }
            match (name, e.value()) {
                ("$expr", value) => self.expression(value),
                ("$and" | "$or" | "$nor", ValueRef::Array(filters)) => {
                    filters
                        .iter()
                        .filter_map(|e| e.value().as_document())
                        .for_each(|inner| self.filter(inner));
                }
                (name, ValueRef::Document(conditions)) if !name.starts_with('$') => {
                    self.conditions(conditions)
                }
                _ => {}
            }
        }
    }
    /// The operators under a path, or under `$not` and `$elemMatch` there.
    fn conditions(&self, conditions: Doc<'_>) {
        for e in conditions.iter().filter(|e| e.name().starts_with('$')) {
            self.filters.note(e.name());
            match (e.name(), e.value()) {
                ("$not", ValueRef::Document(inner)) => self.conditions(inner),
                ("$elemMatch", ValueRef::Document(inner)) => match inner.iter().next() {
                    Some(first) if is_condition(first.name()) => self.conditions(inner),
                    _ => self.filter(inner),
                },
                _ => {}
            }
        }
    }

    fn expression(&self, value: ValueRef<'_>) {
        match value {
            ValueRef::Array(items) => items.iter().for_each(|e| self.expression(e.value())),
            ValueRef::Document(fields) => {
                for e in fields.iter() {
                    let known = e.name().starts_with('$') && self.expressions.note(e.name());
                    if !(known && matches!(e.name(), "$literal" | "$const")) {
                        self.expression(e.value());
                    }
                }
            }
            _ => {}
        }
    }

    fn pipeline(&self, stages: Doc<'_>) {
        for stage in stages.iter().filter_map(|e| e.value().as_document()) {
            if let Some(stage) = stage.iter().next() {
                self.stage(stage.name(), stage.value());
            }
        }
    }
    fn stage(&self, name: &str, arguments: ValueRef<'_>) {
        let Some(fields) = arguments.as_document() else {
            return if name != "$unionWith" {
                self.expression(arguments)
            };
        };
        match name {
            "$match" => self.filter(fields),
            "$facet" => fields.iter().for_each(|e| self.pipeline_in(fields, e.name())),
            "$geoNear" => self.filter_in(fields, "query"),
            "$graphLookup" => {
                self.expressions_in(fields, "startWith");
                self.filter_in(fields, "restrictSearchWithMatch");
            }
            "$lookup" | "$unionWith" => {
                self.expressions_in(fields, "let");
                self.pipeline_in(fields, "pipeline");
            }
            "$merge" => self.pipeline_in(fields, "whenMatched"),
            "$group" => self.accumulators(&self.groups, fields),
            "$bucket" | "$bucketAuto" => {
                self.expressions_in(fields, "groupBy");
                if let Some(output) = fields.get_document("output") {
                    self.accumulators(&self.groups, output);
                }
            }
            "$setWindowFields" => {
                self.expressions_in(fields, "partitionBy");
                if let Some(output) = fields.get_document("output") {
                    self.accumulators(&self.windows, output);
                }
            }
            _ => self.expression(arguments),
        }
    }
    /// Fields of which each has an accumulator, but `_id`, which has an expression.
    fn accumulators(&self, counters: &Named, fields: Doc<'_>) {
        for field in fields.iter() {
            match field.value() {
                ValueRef::Document(inner) if field.name() != "_id" => {
                    for e in inner.iter() {
                        counters.note(e.name());
                        self.expression(e.value());
                    }
                }
                value => self.expression(value),
            }
        }
    }
}

/// Whether the name is an operator for what stands under a path.
fn is_condition(name: &str) -> bool {
    name.starts_with('$') && matcher::ops::PATH_OPERATORS.iter().any(|row| row.name == name)
}
