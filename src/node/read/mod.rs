//! Answering queries.

pub mod aggregate;
pub mod aggregate_command;
pub mod candidates;
pub mod count;
pub mod distinct;
pub mod explain;
pub mod fields;
pub mod file_md5;
pub mod find;
mod geo_near;
pub mod get_more;
pub mod hooks;
pub(crate) mod host;
pub mod index_use;
pub mod map_reduce;
pub(crate) mod output;
pub mod pseudo;
pub mod routed_output;
pub mod rows;
pub mod statistics;
pub(crate) mod sub_pipelines;
pub mod tail;
#[cfg(test)]
mod tests;

pub use host::{SEARCH_NOT_ENABLED, search_not_enabled};
pub use output::{is_output, output_name};

use crate::Node;
use crate::namespace::Slot;
use document::{Doc, Document, Result, Value, ValueRef, bail};
use query::planner::{Direction, Hint};

/// The namespace a reading command names: a collection's name, or the UUID of one.
///
/// # Errors
/// InvalidNamespace (73), NamespaceNotFound (26) for an unknown UUID.
pub fn target(node: &Node, request: &crate::Request<'_>) -> Result<String> {
    let Some(uuid) = request.argument().and_then(|v| v.as_uuid()) else { return request.namespace() };
    match node.namespaces.of_database(request.db).iter().find(|slot| slot.holds(uuid)) {
        Some(slot) => Ok(slot.ns.clone()),
        None => bail!(
            NAMESPACE_NOT_FOUND,
            "Unable to resolve {} to a collection in db {}",
            uuid::Uuid::from_bytes(uuid),
            request.db
        ),
    }
}

/// The `_id` a filter pins: `{_id: <value that is no operator document>}` among its top-level fields. None where the
/// strings of the filter compare otherwise than those of the index on `_id`.
pub fn pinned_id(filter: Doc<'_>, context: &query::QueryContext, slot: &Slot) -> Option<Value> {
    let id = equal_id(filter)?;
    let alike = || id.to_holder().get("").is_none_or(document::collation::compares_alike);
    (context.collation == slot.collation() || alike()).then_some(id)
}

fn equal_id(filter: Doc<'_>) -> Option<Value> {
    match filter.get("_id")? {
        ValueRef::Document(d) => match d.iter().next() {
            Some(e)
                if e.name() == "$eq"
                    && d.iter().count() == 1
                    && !matches!(e.value(), ValueRef::Regex(..)) =>
            {
                Some(e.value().to_value())
            }
            Some(e) if e.name().starts_with('$') => None,
            _ => Some(Value::from(d)),
        },
        ValueRef::Regex(..) | ValueRef::Array(_) | ValueRef::Undefined => None,
        v => Some(v.to_value()),
    }
}

/// The command's `hint`.
///
/// # Errors
/// FailedToParse (9) when it is neither a string nor a document.
pub fn parse_hint(body: Doc<'_>) -> Result<Option<Hint>> {
    Ok(match body.get("hint") {
        None | Some(ValueRef::Null) => None,
        Some(ValueRef::String(name)) => Some(Hint::Name(name.to_string())),
        Some(ValueRef::Document(d)) if d.is_empty() => None,
        Some(ValueRef::Document(d)) => match d.get("$natural").and_then(|v| v.as_f64()) {
            Some(n) if n < 0.0 => Some(Hint::Natural(Direction::Backward)),
            Some(_) => Some(Hint::Natural(Direction::Forward)),
            None => Some(Hint::Key(d.to_document())),
        },
        Some(_) => bail!(
            FAILED_TO_PARSE,
            "hint must be specified as a string representing an index name, or an object representing an index's key pattern"
        ),
    })
}

/// The command's `let`, its expressions evaluated.
pub fn command_variables(node: &Node, body: Doc<'_>) -> Result<Document> {
    query::command_let::evaluate(body, node.now_ms())
}
