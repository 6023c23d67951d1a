//! listDatabases, listCollections, listIndexes.

use crate::namespace::Slot;
use crate::{Node, Operation, Request};
use document::{Document, Result, Value, bail, doc, err};
use query::matcher::Matcher;
use std::collections::BTreeMap;
use std::sync::Arc;
use storage::{IndexSpec, split_namespace};

/// What a collection, or a database without one, takes at least.
const DATABASE_BYTES: i64 = 4096;

/// Runs a `listDatabases` command.
pub fn list_databases(node: &Node, request: Request<'_>) -> Result<Document> {
    let names_only = request.body.get("nameOnly").is_some_and(|v| v.truthy());
    let matcher = filter(node, request)?;
    let mut sizes: BTreeMap<String, i64> = BTreeMap::new();
    for slot in node.namespaces.visible() {
        let state = slot.read_unchecked();
        if let Some(c) = &state.collection {
            *sizes.entry(slot.database.name.clone()).or_default() +=
                (c.data_bytes() + c.index_bytes()) as i64 + DATABASE_BYTES;
        } else if state.view.is_some() {
            sizes.entry(slot.database.name.clone()).or_default();
        }
    }
    // Of a set it holds what sessions and transactions leave, which stands in no collection.
    if node.replication.standing().config.is_some() {
        sizes.entry("config".to_string()).or_insert(DATABASE_BYTES);
    }
    let (mut databases, mut total) = (Vec::new(), 0);
    for (name, size) in sizes {
        let full = doc! { "name": name.as_str(), "sizeOnDisk": size, "empty": size == 0 };
        let shown = if names_only {
            doc! { "name": name.as_str() }
        } else {
            full
        };
        if matcher.matches(shown.to_doc_buf().doc())? {
            total += size;
            databases.push(shown);
        }
    }
    let mut reply = doc! { "databases": databases };
    if !names_only {
        reply.push("totalSize", total);
        reply.push("totalSizeMb", total / (1024 * 1024));
    }
    Ok(reply)
}

fn filter(node: &Node, request: Request<'_>) -> Result<Matcher> {
    match request.body.get_document("filter") {
        Some(f) => {
            let mut context = node.parse_context(Document::new());
            context.timeless = true;
            Matcher::parse_plain(f, &context)
        }
        None => Ok(Matcher::always()),
    }
}

/// The documents of `listCollections`, in namespace order.
pub fn list_collections(node: &Node, request: Request<'_>) -> Result<Vec<Document>> {
    let names_only = request.body.get("nameOnly").is_some_and(|v| v.truthy());
    let matcher = filter(node, request)?;
    let mut out = Vec::new();
    let slots = node.namespaces.of_database(request.db);
    let oplog = (request.db == "local" && node.replication.standing().config.is_some()).then(|| oplog(node));
    for full in oplog.into_iter().chain(slots.iter().filter_map(|slot| collection_document(node, slot))) {
        // The filter sees what is shown: with `nameOnly` there is no more than name and type.
        let shown = match names_only {
            true => full.into_iter().filter(|(name, _)| matches!(name.as_str(), "name" | "type")).collect(),
            false => full,
        };
        if matcher.matches(shown.to_doc_buf().doc())? {
            out.push(shown);
        }
    }
    Ok(out)
}

/// The oplog, which is a view of the log and no collection; its size is what the log keeps at most.
fn oplog(node: &Node) -> Document {
    let size = node.log.retain_bytes().min(i64::MAX as u64) as i64;
    doc! {
        "name": "oplog.rs", "type": "collection",
        "options": { "capped": true, "size": size, "autoIndexId": false },
        "info": { "readOnly": false },
    }
}

fn collection_document(node: &Node, slot: &Slot) -> Option<Document> {
    if let Some(series) = crate::timeseries::ddl::listed(node, slot) {
        return Some(series);
    }
    let state = slot.read_unchecked();
    let name = split_namespace(&slot.ns).1;
    if let Some(view) = &state.view {
        let mut options = doc! { "viewOn": view.on.as_str(), "pipeline": view.pipeline.clone() };
        if let Some(collation) = view.collation.document() {
            options.push("collation", collation.clone());
        }
        return Some(doc! { "name": name, "type": "view", "options": options, "info": { "readOnly": true } });
    }
    let c = state.collection.as_ref()?;
    let mut d = doc! {
        "name": name, "type": "collection", "options": c.meta().options.clone(),
        "info": { "readOnly": false, "uuid": Value::uuid(c.uuid()) },
    };
    if let Some(id) = c.index("_id_").filter(|i| !i.spec().is_clustered()) {
        d.push("idIndex", id.spec().document().clone());
    }
    Some(d)
}

/// The documents of `$listClusterCatalog` on a database, on `admin` of all: `{db, ns, type, idIndex, options, info, sharded}`.
pub fn cluster_catalog(node: &Node, db: &str, shards: bool) -> Vec<Document> {
    let slots = if db == "admin" { node.namespaces.visible() } else { node.namespaces.of_database(db) };
    let shown = |slot: &Arc<Slot>| {
        let mut d = doc! { "db": slot.database.name.as_str(), "ns": slot.ns.as_str() };
        d.0.extend(collection_document(node, slot)?.into_iter().filter(|(name, _)| name != "name"));
        d.push("sharded", false);
        if shards {
            d.push("shards", Value::Array(Vec::new()));
        }
        Some(d)
    };
    slots.iter().filter_map(shown).collect()
}

/// The documents of `listIndexes`.
///
/// # Errors
/// NamespaceNotFound (26), CommandNotSupportedOnView (166).
pub async fn list_indexes(node: &Node, op: &Operation, slot: &Slot) -> Result<Vec<Document>> {
    match crate::timeseries::of(node, slot) {
        Some(series) => crate::timeseries::ddl::list_indexes(op, &series).await,
        None => list_indexes_of(op, slot).await,
    }
}

/// As [`list_indexes`], of what is no time series.
pub async fn list_indexes_of(op: &Operation, slot: &Slot) -> Result<Vec<Document>> {
    slot.read(op, |state| {
        if state.view.is_some() {
            bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Namespace {} is a view, not a collection", slot.ns);
        }
        let c = state
            .collection
            .as_ref()
            .ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns does not exist: {}", slot.ns))?;
        let listed = |s: &&IndexSpec| !s.is_clustered() || c.meta().lists_clustered();
        Ok(c.indexes().iter().map(|i| i.spec()).filter(listed).map(|s| s.document().clone()).collect())
    })
    .await
}
