//! The shape of a query: what is left of it without its constants.
//!
//! There are two. The *plan shape* is what the plan cache and index filters go by: queries that can have the same plans have the
//! same one, whatever the order of their conjuncts. The *query shape* tells queries apart as their authors wrote them, and is what
//! query settings and statistics go by: the order of fields counts, and the types of constants.
//!
//! ```text
//! {b: {$in: [1, 2]}, a: 5}     plan shape    {$and: [{a: {$eq: 1}}, {b: {$in: 1}}]}
//!                              query shape   {$and: [{b: {$in: "?array<>"}}, {a: {$eq: "?number"}}]}
//! ```
//! Hashes are shown in upper-case hexadecimal: 8 digits of a plan shape's, 64 of a query shape's. The real server's
//! are as long, and not the same numbers.

use crate::matcher::{Matcher, parse, render};
use document::{Collation, Doc, DocBuf, Document, Value, ValueRef, doc};
use sha2::{Digest, Sha256};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plan,
    Query,
}

/// What a plan is made for.
#[derive(Clone, Copy)]
pub struct Planned<'a> {
    pub filter: &'a Matcher,
    pub sort: Option<&'a Document>,
    pub projection: Option<Doc<'a>>,
    pub collation: &'a Collation,
}

/// The plan shape.
pub fn plan_shape(of: &Planned<'_>) -> DocBuf {
    let rendered;
    let filter = match of.filter.filter().is_empty() && !of.filter.is_always_true() {
        // It was put together from others.
        true => {
            rendered = render::node(of.filter.root()).to_doc_buf();
            rendered.doc()
        }
        false => of.filter.filter(),
    };
    let mut out = doc! { "query": filter_shape(filter, Kind::Plan) };
    if let Some(sort) = of.sort.filter(|s| !s.is_empty()) {
        out.push("sort", sort.clone());
    }
    if let Some(projection) = of.projection.filter(|p| !p.is_empty()) {
        let mut fields: Vec<Value> = projection
            .iter()
            .map(|e| Value::from(doc! { "path": e.name(), "kept": kept(e.value()) }))
            .collect();
        fields.sort_by_cached_key(bytes_of);
        out.push("projection", fields);
    }
    if let Some(collation) = of.collation.document() {
        out.push("collation", collation.clone());
    }
    out.to_doc_buf()
}

fn kept(v: ValueRef<'_>) -> Value {
    match v {
        ValueRef::Boolean(_) => Value::Boolean(v.truthy()),
        v if v.is_number() => Value::Boolean(v.truthy()),
        _ => Value::from("computed"),
    }
}

/// The hash of a plan shape with whatever else distinguishes it.
pub fn plan_hash(shape: &DocBuf, beside: &[u8]) -> String {
    let digest = Sha256::new().chain_update(shape.bytes()).chain_update(beside).finalize();
    hex(&digest[..4])
}

fn hex(bytes: &[u8]) -> String {
    document::encoding::hex(bytes).to_uppercase()
}

/// The query shape of a `find`, `distinct` or `aggregate` command; `None` of others.
pub fn query_shape(db: &str, command: Doc<'_>) -> Option<Document> {
    let first = command.iter().next()?;
    let collection = match first.value() {
        ValueRef::String(name) => name,
        _ => "$cmd.aggregate",
    };
    let mut out = doc! { "cmdNs": { "db": db, "coll": collection }, "command": first.name() };
    let parts: &[&str] = match first.name() {
        "find" => &[
            "filter",
            "sort",
            "projection",
            "skip",
            "limit",
            "hint",
            "max",
            "min",
            "returnKey",
            "showRecordId",
            "tailable",
            "awaitData",
            "collation",
            "let",
        ],
        "distinct" => &["key", "query", "collation", "hint"],
        "aggregate" => &["pipeline", "collation", "hint", "let"],
        _ => return None,
    };
    for name in parts {
        let v = match (*name, command.get_present(name)) {
            // A find has one even if it names none.
            ("filter", _) => ValueRef::Document(command.get_document(name).unwrap_or(Doc::empty())),
            (_, Some(v)) if v.as_document().is_none_or(|d| !d.is_empty()) => v,
            _ => continue,
        };
        out.push(*name, part_shape(name, v));
    }
    Some(out)
}

/// The hash of the command's query shape.
pub fn query_hash(db: &str, command: Doc<'_>) -> Option<String> {
    query_shape(db, command).map(|shape| hash_of_shape(&shape))
}

pub fn hash_of_shape(shape: &Document) -> String {
    hex(&Sha256::digest(shape.to_doc_buf().bytes()))
}

fn part_shape(name: &str, v: ValueRef<'_>) -> Value {
    match (name, v) {
        ("filter" | "query", ValueRef::Document(d)) => Value::Document(filter_shape(d, Kind::Query)),
        ("projection", ValueRef::Document(d)) => Value::Document(projection_shape(d)),
        ("collation", ValueRef::Document(d)) => {
            let whole = Collation::of_document(&d.to_document()).ok().and_then(|c| c.document().cloned());
            Value::Document(whole.unwrap_or_else(|| d.to_document()))
        }
        ("pipeline", ValueRef::Array(stages)) => pipeline_shape(stages),
        ("sort" | "hint" | "key", v) => v.to_value(),
        ("let", v) => expression_shape(v),
        (_, v) => Value::from(type_of(v)),
    }
}

fn projection_shape(d: Doc<'_>) -> Document {
    d.iter()
        .map(|e| {
            let v = match e.value() {
                ValueRef::Document(inner) if !parse::is_operator_document(inner) => {
                    Value::Document(projection_shape(inner))
                }
                ValueRef::Document(inner) if inner.get("$elemMatch").is_some() => {
                    let filter = inner.get_document("$elemMatch").unwrap_or(Doc::empty());
                    Value::from(doc! { "$elemMatch": filter_shape(filter, Kind::Query) })
                }
                v if v.is_number() || matches!(v, ValueRef::Boolean(_)) => Value::Boolean(v.truthy()),
                v => expression_shape(v),
            };
            (e.name().to_string(), v)
        })
        .collect()
}

fn pipeline_shape(stages: Doc<'_>) -> Value {
    Value::Array(stages.iter().map(|stage| stage_shape(stage.value())).collect())
}

fn stage_shape(stage: ValueRef<'_>) -> Value {
    let Some(e) = stage.as_document().and_then(|d| d.iter().next()) else { return stage.to_value() };
    let shape = match (e.name(), e.value()) {
        ("$match", ValueRef::Document(d)) => Value::Document(filter_shape(d, Kind::Query)),
        ("$sort", v) => v.to_value(),
        ("$project" | "$unset", ValueRef::Document(d)) => Value::Document(projection_shape(d)),
        ("$facet", ValueRef::Document(d)) => {
            let fields = d.iter().map(|f| (f.name().to_string(), nested_pipeline(f.value())));
            Value::Document(fields.collect())
        }
        ("$lookup" | "$unionWith", ValueRef::Document(d)) => {
            let field = |f: document::Element<'_>| match f.name() {
                "pipeline" => nested_pipeline(f.value()),
                "let" => expression_shape(f.value()),
                _ => f.value().to_value(),
            };
            Value::Document(d.iter().map(|f| (f.name().to_string(), field(f))).collect())
        }
        ("$addFields" | "$set" | "$group" | "$replaceRoot" | "$replaceWith" | "$redact", v) => {
            expression_shape(v)
        }
        (_, v) => constants_away(v),
    };
    let mut out = Document::new();
    out.push(e.name(), shape);
    Value::Document(out)
}

fn nested_pipeline(v: ValueRef<'_>) -> Value {
    match v {
        ValueRef::Array(stages) => pipeline_shape(stages),
        v => v.to_value(),
    }
}

/// The argument of a stage: numbers, dates and the like go, names stay.
fn constants_away(v: ValueRef<'_>) -> Value {
    match v {
        ValueRef::String(_) | ValueRef::Boolean(_) => v.to_value(),
        ValueRef::Document(d) => {
            Value::Document(d.iter().map(|e| (e.name().to_string(), constants_away(e.value()))).collect())
        }
        ValueRef::Array(a) => Value::Array(a.iter().map(|e| constants_away(e.value())).collect()),
        v => Value::from(type_of(v)),
    }
}

/// An expression: paths, variables and operators stay.
fn expression_shape(v: ValueRef<'_>) -> Value {
    match v {
        ValueRef::String(s) if s.starts_with('$') => Value::from(s),
        ValueRef::Document(d) => match d.iter().next() {
            Some(e) if matches!(e.name(), "$literal" | "$const") => Value::from(type_of(e.value())),
            _ => Value::Document(
                d.iter().map(|e| (e.name().to_string(), expression_shape(e.value()))).collect(),
            ),
        },
        ValueRef::Array(a) => Value::Array(a.iter().map(|e| expression_shape(e.value())).collect()),
        v => Value::from(type_of(v)),
    }
}

/// Whether it compares fields with constants, which decides what plans there are.
fn compares_with_constants(e: ValueRef<'_>) -> bool {
    let is_field = |v: ValueRef<'_>| v.as_str().is_some_and(|s| s.starts_with('$') && !s.starts_with("$$"));
    e.as_document().is_some_and(|d| {
        d.iter().any(|call| match (call.name(), call.value()) {
            ("$and", ValueRef::Array(parts)) => {
                parts.iter().any(|part| compares_with_constants(part.value()))
            }
            ("$eq" | "$gt" | "$gte" | "$lt" | "$lte", ValueRef::Array(sides)) => {
                sides.iter().filter(|side| is_field(side.value())).count() == 1
            }
            _ => false,
        })
    })
}

fn filter_shape(filter: Doc<'_>, kind: Kind) -> Document {
    joined(conjuncts(filter, kind), kind)
}

fn joined(mut list: Vec<Document>, kind: Kind) -> Document {
    if kind == Kind::Plan {
        list.sort_by_cached_key(Document::to_vec);
    }
    match list.len() {
        0 => Document::new(),
        1 => list.remove(0),
        _ => doc! { "$and": list },
    }
}

fn bytes_of(v: &Value) -> Vec<u8> {
    v.to_holder().bytes().to_vec()
}

fn conjuncts(filter: Doc<'_>, kind: Kind) -> Vec<Document> {
    let mut out = Vec::new();
    for e in filter.iter() {
        match (e.name(), e.value()) {
            ("$comment", _) => {}
            ("$and", ValueRef::Array(list)) => {
                let parts = list.iter().filter_map(|part| part.value().as_document());
                out.extend(parts.flat_map(|part| conjuncts(part, kind)));
            }
            (name @ ("$or" | "$nor"), ValueRef::Array(list)) => {
                let parts = list.iter().filter_map(|part| part.value().as_document());
                let mut branches: Vec<Value> =
                    parts.map(|part| Value::Document(filter_shape(part, kind))).collect();
                if kind == Kind::Plan {
                    branches.sort_by_cached_key(bytes_of);
                }
                out.push(named(name, Value::Array(branches)));
            }
            ("$expr", v) => {
                let decides = kind == Kind::Query || compares_with_constants(v);
                out.push(named("$expr", if decides { expression_shape(v) } else { Value::Int32(1) }));
            }
            ("$jsonSchema", v) => out.push(named("$jsonSchema", v.to_value())),
            (name, v) if name.starts_with('$') => out.push(named(name, constant(v, kind))),
            (path, v) => {
                of_path(v, kind).into_iter().for_each(|test| out.push(named(path, Value::Document(test))));
            }
        }
    }
    out
}

fn named(name: &str, v: Value) -> Document {
    let mut out = Document::new();
    out.push(name, v);
    out
}

/// The tests that a filter asks of one path.
fn of_path(v: ValueRef<'_>, kind: Kind) -> Vec<Document> {
    match v {
        ValueRef::Regex(..) => vec![named("$regex", constant(v, kind))],
        ValueRef::Document(d) if parse::is_operator_document(d) => {
            d.iter().flat_map(|e| of_operator(e.name(), e.value(), kind)).collect()
        }
        v => vec![named("$eq", constant(v, kind))],
    }
}

fn of_operator(name: &str, v: ValueRef<'_>, kind: Kind) -> Vec<Document> {
    let not = |tests: Vec<Document>| vec![named("$not", Value::Document(joined(tests, kind)))];
    match (name, v) {
        ("$options" | "$comment" | "$maxDistance" | "$minDistance", _) => Vec::new(),
        ("$not", v) => not(of_path(v, kind)),
        ("$ne", v) => not(vec![named("$eq", constant(v, kind))]),
        ("$nin", v) => not(of_operator("$in", v, kind)),
        ("$exists", v) if !v.truthy() => not(vec![named("$exists", Value::Boolean(true))]),
        ("$exists", _) => vec![named("$exists", Value::Boolean(true))],
        // A list of one is an equality to the planner.
        ("$in", ValueRef::Array(list)) if kind == Kind::Plan && list.iter().count() == 1 => {
            vec![named("$eq", Value::Int32(1))]
        }
        ("$in", ValueRef::Array(_)) if kind == Kind::Query => vec![named("$in", Value::from("?array<>"))],
        ("$all", ValueRef::Array(list)) => match kind {
            Kind::Plan => list.iter().map(|_| named("$eq", Value::Int32(1))).collect(),
            Kind::Query => {
                let each = list.iter().map(|e| constant(e.value(), kind)).collect();
                vec![named("$all", Value::Array(each))]
            }
        },
        ("$elemMatch", ValueRef::Document(d)) => {
            let inner = match d.iter().next().is_some_and(|e| is_value_operator(e.name())) {
                true => joined(of_path(v, kind), kind),
                false => filter_shape(d, kind),
            };
            vec![named("$elemMatch", Value::Document(inner))]
        }
        ("$type", v) if kind == Kind::Query => {
            let types = match v {
                ValueRef::Array(_) => v.to_value(),
                v => Value::Array(vec![v.to_value()]),
            };
            vec![named("$type", types)]
        }
        (name, v) => vec![named(name, constant(v, kind))],
    }
}

fn is_value_operator(name: &str) -> bool {
    name.starts_with('$') && !matches!(name, "$and" | "$or" | "$nor" | "$expr" | "$where" | "$jsonSchema")
}

fn constant(v: ValueRef<'_>, kind: Kind) -> Value {
    if kind == Kind::Plan { Value::Int32(1) } else { Value::from(type_of(v)) }
}

/// The stand-in for a constant.
fn type_of(v: ValueRef<'_>) -> &'static str {
    match v {
        v if v.is_number() => "?number",
        ValueRef::Array(_) => "?array<>",
        ValueRef::Document(_) => "?object",
        ValueRef::String(_) => "?string",
        ValueRef::Boolean(_) => "?bool",
        ValueRef::DateTime(_) => "?date",
        ValueRef::ObjectId(_) => "?objectId",
        ValueRef::Null => "?null",
        ValueRef::Regex(..) => "?string",
        ValueRef::Timestamp(_) => "?timestamp",
        ValueRef::Binary(..) => "?binData",
        ValueRef::MinKey => "?minKey",
        ValueRef::MaxKey => "?maxKey",
        _ => "?other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueryContext;

    fn plan(filter: Document) -> String {
        let matcher = Matcher::parse(filter.to_doc_buf().doc(), &QueryContext::at(0)).unwrap();
        let collation = Collation::SIMPLE;
        plan_hash(
            &plan_shape(&Planned { filter: &matcher, sort: None, projection: None, collation: &collation }),
            &[],
        )
    }
    fn query(filter: Document) -> String {
        query_hash("db", doc! { "find": "c", "filter": filter }.to_doc_buf().doc()).unwrap()
    }

    #[test]
    fn constants_are_no_part_of_a_shape_but_fields_and_operators_are() {
        let same = [
            (doc! {"a": 1}, doc! {"a": {"$eq": 7}}),
            (doc! {"a": 1, "b": 2}, doc! {"$and": [{"a": 3}, {"b": 4}]}),
            (doc! {"a": {"$in": [1, 2]}}, doc! {"a": {"$in": [4, 3, 2]}}),
            (doc! {"a": {"$elemMatch": {"b": 1}}}, doc! {"a": {"$elemMatch": {"b": {"$eq": 2}}}}),
            (doc! {"$expr": {"$gt": ["$a", 1]}}, doc! {"$expr": {"$gt": ["$a", 2]}}),
        ];
        for (a, b) in same {
            assert_eq!(plan(a.clone()), plan(b.clone()), "{a:?} {b:?}");
            assert_eq!(query(a.clone()), query(b.clone()), "{a:?} {b:?}");
        }
        // Of an expression a plan depends on what it compares with constants.
        let compared = |e: Document| plan(doc! {"$expr": e});
        assert_eq!(compared(doc! {"$gt": ["$a", "$b"]}), compared(doc! {"$lt": ["$a", "$b"]}));
        assert_ne!(compared(doc! {"$eq": ["$a", 1]}), compared(doc! {"$eq": ["$b", 1]}));
        let other = [
            (doc! {"a": 1}, doc! {"b": 1}),
            (doc! {"$expr": {"$and": [{"$gt": ["$a", 1]}]}}, doc! {"$expr": {"$and": [{"$lt": ["$a", 1]}]}}),
            (doc! {"a": {"$gt": 1}}, doc! {"a": {"$lt": 1}}),
            (doc! {"a": {"$in": [1, 2]}}, doc! {"a": {"$nin": [1, 2]}}),
            (doc! {"a": {"$exists": true}}, doc! {"a": {"$exists": false}}),
            (doc! {"$or": [{"a": 1}]}, doc! {"$or": [{"a": 1}, {"b": 1}]}),
            (doc! {"$jsonSchema": {"required": ["a"]}}, doc! {"$jsonSchema": {"required": ["b"]}}),
        ];
        for (a, b) in other {
            assert_ne!(plan(a.clone()), plan(b.clone()), "{a:?} {b:?}");
            assert_ne!(query(a.clone()), query(b.clone()), "{a:?} {b:?}");
        }
    }

    #[test]
    fn the_order_of_fields_counts_in_query_shapes_alone() {
        let (a, b) = (doc! {"a": 1, "b": 2}, doc! {"b": 2, "a": 1});
        assert_eq!(plan(a.clone()), plan(b.clone()));
        assert_ne!(query(a), query(b));
        let (a, b) = (doc! {"a": {"$type": "int"}}, doc! {"a": {"$type": "string"}});
        assert_eq!(plan(a.clone()), plan(b.clone()));
        assert_ne!(query(a), query(b));
        assert_eq!((plan(doc! {}).len(), query(doc! {}).len()), (8, 64));
    }
}
