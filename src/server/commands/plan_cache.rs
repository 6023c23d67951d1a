//! The plan cache's commands: what trials have shown is forgotten, and queries of a shape are held to some indexes.
//!
//! Like the real server, those that forget take fields they do not know, and a `query` that is no document.

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Collation, Doc, Document, Result, Value, ValueRef, bail, doc};
use node::Node;
use node::auth::Action as A;
use node::plan_cache::{IndexFilter, index_names};
use query::matcher::Matcher;
use query::shape::{Planned, plan_shape};
use std::sync::Arc;

pub const ROWS: &[Command] = &[
    Command::sync("planCacheClear", Roles::MONGOD, clear)
        .needs(Needs::Collection(&[A::PlanCacheWrite]))
        .help("Forgets the cached plans of a collection, or those of one query shape."),
    Command::sync("planCacheListFilters", Roles::MONGOD, list_filters)
        .needs(Needs::Collection(&[A::PlanCacheIndexFilter]))
        .help("The index filters of a collection."),
    Command::sync("planCacheClearFilters", Roles::MONGOD, clear_filters)
        .needs(Needs::Collection(&[A::PlanCacheIndexFilter]))
        .help("Removes the index filters of a collection, or that of one query shape."),
    Command::sync("planCacheSetFilter", Roles::MONGOD, set_filter)
        .needs(Needs::Collection(&[A::PlanCacheIndexFilter]))
        .help("Holds the queries of a shape to the indexes named."),
];

/// The collection of the request: its UUID, if it exists.
fn collection(node: &Node, request: &Request<'_>) -> Result<Option<[u8; 16]>> {
    let ns = request.namespace()?;
    let slot = node.namespaces.slot(&ns);
    let state = slot.read_unchecked();
    if state.view.is_some() {
        bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Namespace {ns} is a view, not a collection");
    }
    Ok(state.collection.as_ref().map(|c| c.uuid()))
}

/// A query as these commands name it.
struct Named {
    query: Document,
    sort: Document,
    projection: Document,
    collation: Collation,
    shape: Vec<u8>,
}

fn named(node: &Arc<Node>, request: &Request<'_>, query: Doc<'_>) -> Result<Named> {
    let slot = node.namespaces.slot(&request.namespace()?);
    let part = |name: &str| match request.body.get(name) {
        None => Ok(Doc::empty()),
        Some(ValueRef::Document(d) | ValueRef::Array(d)) => Ok(d),
        Some(_) => bail!(BAD_VALUE, "optional field {name} must be an object"),
    };
    let (sort, projection) = (part("sort")?, part("projection")?);
    let collation = match request.body.get("collation") {
        None => None,
        Some(ValueRef::Document(d)) if d.is_empty() => {
            bail!(BAD_VALUE, "optional field collation cannot be an empty object")
        }
        Some(ValueRef::Document(d)) => Some(d),
        Some(_) => bail!(BAD_VALUE, "optional field collation must be an object"),
    };
    let mut context = node.parse_context_on(&slot, collation, Document::new())?;
    node.note_text_index(&mut context, &slot, query);
    let filter = Matcher::parse(query, &context)?;
    let sort_document = sort.to_document();
    let shape = plan_shape(&Planned {
        filter: &filter,
        sort: Some(&sort_document),
        projection: Some(projection),
        collation: &context.collation,
    });
    Ok(Named {
        query: query.to_document(),
        sort: sort_document,
        projection: projection.to_document(),
        collation: context.collation.clone(),
        shape: shape.bytes().to_vec(),
    })
}

/// The query to forget something of: `None` for all of them, and nothing where what is named is no query.
fn forgotten(node: &Arc<Node>, request: &Request<'_>) -> Result<Option<Option<Vec<u8>>>> {
    match request.get("query") {
        None => Ok(Some(None)),
        Some(ValueRef::Document(query)) => Ok(Some(Some(named(node, request, query)?.shape))),
        Some(_) => Ok(None),
    }
}

fn clear(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let node = node(context)?;
    let Some(uuid) = collection(node, request)? else { return Ok(()) };
    if let (Some(shape), Some(cache)) = (forgotten(node, request)?, node.plan_caches.of(uuid)) {
        cache.clear(shape.as_deref());
    }
    Ok(())
}

fn clear_filters(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let node = node(context)?;
    let Some(uuid) = collection(node, request)? else { return Ok(()) };
    if let Some(shape) = forgotten(node, request)? {
        node.plan_caches.clear_filters(uuid, shape.as_deref());
    }
    Ok(())
}

fn list_filters(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let node = node(context)?;
    let cache = collection(node, request)?.and_then(|uuid| node.plan_caches.of(uuid));
    let filters: Vec<Document> = cache
        .iter()
        .flat_map(|cache| cache.filters())
        .map(|f| {
            let mut out = doc! { "query": f.query, "sort": f.sort, "projection": f.projection };
            if let Some(collation) = f.collation {
                out.push("collation", collation);
            }
            out.push("indexes", Value::Array(f.indexes));
            out
        })
        .collect();
    reply.fields(&doc! { "filters": filters });
    Ok(())
}

fn set_filter(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let node = node(context)?;
    let uuid = collection(node, request)?;
    let query = match request.get("query") {
        Some(ValueRef::Document(d) | ValueRef::Array(d)) => d,
        Some(_) => bail!(BAD_VALUE, "required field query must be an object"),
        None => bail!(BAD_VALUE, "required field query missing"),
    };
    let indexes = index_names(request.get("indexes"))?;
    let named = named(node, request, query)?;
    let Some(uuid) = uuid else {
        bail!(BAD_VALUE, "no such collection");
    };
    let collation = named.collation.document().cloned();
    node.plan_caches.set_filter(
        uuid,
        IndexFilter {
            shape: named.shape,
            query: named.query,
            sort: named.sort,
            projection: named.projection,
            collation,
            indexes,
        },
    );
    Ok(())
}
