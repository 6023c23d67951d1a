//! The plan cache's commands. Plans are made anew for each query, so there is never one to list or to clear; index
//! filters, which would change plans, are refused.

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Doc, Result, Value, bail, doc};
use node::auth::Action as A;
use query::matcher::Matcher;

pub const ROWS: &[Command] = &[
    Command::sync("planCacheClear", Roles::MONGOD, clear)
        .needs(Needs::Collection(&[A::PlanCacheWrite]))
        .help("Forgets cached plans; there are none."),
    Command::sync("planCacheListFilters", Roles::MONGOD, list_filters)
        .needs(Needs::Collection(&[A::PlanCacheIndexFilter]))
        .help("Index filters; there are none."),
    Command::sync("planCacheClearFilters", Roles::MONGOD, clear)
        .needs(Needs::Collection(&[A::PlanCacheIndexFilter]))
        .help("Removes index filters; there are none."),
    Command::missing("planCacheSetFilter", Roles::ALL).needs(Needs::Collection(&[A::PlanCacheIndexFilter])),
];

fn clear(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&["query", "sort", "projection", "collation", "comment"])?;
    request.namespace()?;
    let filter = request.document("query")?;
    if filter.is_none() && (request.get("sort").is_some() || request.get("projection").is_some()) {
        bail!(BAD_VALUE, "sort or projection provided without query");
    }
    let parse = node(context)?.parse_context(document::Document::new());
    Matcher::parse(filter.unwrap_or(Doc::empty()), &parse).map(drop)
}

fn list_filters(_: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["comment"])?;
    request.namespace()?;
    reply.fields(&doc! { "filters": Vec::<Value>::new() });
    Ok(())
}
