//! The operators of the match language: one row each.
//!
//! A row says where the operator may stand and how it is parsed; an operator we know and do not have yet is a row too, so that its
//! user reads that it is missing and not that it does not exist.

pub mod array;
pub mod bits;
pub mod comparison;
pub mod element;
pub mod evaluation;
pub mod geo;
pub mod logical;
pub mod schema;
pub mod text;

use crate::QueryContext;
use crate::matcher::ast::{Condition, Node};
use document::{Doc, Element, Result, ValueRef};

/// Whether an operator for the top of a filter stands somewhere in this one, asked before it is parsed.
pub fn stands_in(filter: Doc<'_>, operator: &str) -> bool {
    filter.iter().any(|e| match (e.name(), e.value()) {
        ("$and" | "$or" | "$nor", ValueRef::Array(list)) => {
            list.iter().filter_map(|item| item.value().as_document()).any(|inner| stands_in(inner, operator))
        }
        (name, _) => name == operator,
    })
}

/// An operator standing under a path: `{path: {$op: argument}}`.
pub struct PathInput<'a> {
    pub path: &'a str,
    pub argument: Element<'a>,
    /// The document the operator stands in; `$regex` looks there for `$options`.
    pub siblings: Doc<'a>,
    pub ctx: &'a QueryContext,
}

pub enum Parse {
    /// Under a path.
    Path(fn(&PathInput<'_>) -> Result<Condition>),
    /// At the top of a filter.
    Top(fn(Element<'_>, &QueryContext) -> Result<Node>),
    NotImplemented,
}

pub struct Row {
    pub name: &'static str,
    pub parse: Parse,
}

const fn path(name: &'static str, parse: fn(&PathInput<'_>) -> Result<Condition>) -> Row {
    Row { name, parse: Parse::Path(parse) }
}
const fn top(name: &'static str, parse: fn(Element<'_>, &QueryContext) -> Result<Node>) -> Row {
    Row { name, parse: Parse::Top(parse) }
}
const fn missing(name: &'static str) -> Row {
    Row { name, parse: Parse::NotImplemented }
}

/// Operators under a path.
pub const PATH_OPERATORS: &[Row] = &[
    path("$eq", comparison::eq),
    path("$ne", comparison::ne),
    path("$lt", comparison::lt),
    path("$lte", comparison::lte),
    path("$gt", comparison::gt),
    path("$gte", comparison::gte),
    path("$in", comparison::in_list),
    path("$nin", comparison::not_in_list),
    path("$not", logical::not),
    path("$exists", element::exists),
    path("$type", element::of_type),
    path("$mod", evaluation::modulo),
    path("$regex", evaluation::regex),
    path("$options", evaluation::options),
    path("$comment", evaluation::comment_at_path),
    path("$all", array::all),
    path("$elemMatch", array::elem_match),
    path("$size", array::size),
    path("$bitsAllSet", bits::all_set),
    path("$bitsAllClear", bits::all_clear),
    path("$bitsAnySet", bits::any_set),
    path("$bitsAnyClear", bits::any_clear),
    path("$near", geo::near),
    path("$nearSphere", geo::near_sphere),
    path("$geoNear", geo::near),
    path("$within", geo::within),
    path("$geoWithin", geo::within),
    path("$geoIntersects", geo::intersects),
    path("$maxDistance", geo::distance_limit),
    path("$minDistance", geo::distance_limit),
    path("$uniqueDocs", geo::distance_limit),
];

/// Operators at the top of a filter.
pub const TOP_OPERATORS: &[Row] = &[
    top("$and", logical::and),
    top("$or", logical::or),
    top("$nor", logical::nor),
    top("$expr", evaluation::expr),
    top("$comment", evaluation::comment),
    top("$jsonSchema", schema::json_schema),
    top("$alwaysTrue", evaluation::always_true),
    top("$alwaysFalse", evaluation::always_false),
    top("$sampleRate", evaluation::sample_rate),
    top("$where", evaluation::script),
    top("$text", text::text),
    top(geo::OF_BUCKET, geo::of_bucket),
    missing("$geoNear"),
];

pub fn find(table: &'static [Row], name: &str) -> Option<&'static Row> {
    table.iter().find(|r| r.name == name)
}
