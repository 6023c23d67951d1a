//! Whether the indexes of a snapshot fit its documents, as notes in the health log.

use super::batch::{self, Bounds};
use super::health_log::{Finding, Severity};
use crate::Node;
use document::{Document, Result, Value, bail, doc};
use storage::{CollectionSnapshot, CollectionView};

/// Entries looked at between two pauses.
const SLICE: usize = 1000;

/// Notes each document of the range that some index lacks a key of.
///
/// # Errors
/// IndexNotFound (27) for a collection without an index on `_id`.
pub(super) async fn note_missing_keys(
    node: &Node,
    ns: &str,
    snapshot: &CollectionSnapshot,
    range: &Bounds,
) -> Result<()> {
    let mut found = Vec::new();
    batch::each(snapshot, range, |record, d| {
        let mut missing: Vec<Value> = Vec::new();
        for slot in 0..snapshot.index_count() {
            let (Some(info), Some(mut cursor)) = (snapshot.index_info(slot), snapshot.index_cursor(slot))
            else {
                continue;
            };
            let keys = snapshot.missing_keys(slot, &mut cursor, record, d).unwrap_or_default();
            for key in &keys.missing {
                let key = storage::index::keys::shown(&info.spec, d, key).unwrap_or_default();
                missing.push(doc! { "indexName": info.spec.name(), "key": key }.into());
            }
        }
        if !missing.is_empty() {
            let id = d.get("_id").map_or(Value::Null, |id| id.to_value());
            found.push(doc! { "recordID": record as i64, "_id": id, "missingIndexKeys": missing });
        }
        true
    })?;
    for data in found {
        note(node, ns, snapshot, data, "Document has missing index keys").await;
    }
    Ok(())
}

/// Notes each entry of an index that no document gives.
///
/// # Errors
/// IndexNotFound (27).
pub(super) async fn note_extra_keys(
    node: &Node,
    ns: &str,
    snapshot: &CollectionSnapshot,
    index: &str,
) -> Result<()> {
    let slot = snapshot.index_slot(index);
    let Some((slot, mut cursor)) = slot.and_then(|slot| Some((slot, snapshot.index_cursor(slot)?))) else {
        bail!(INDEX_NOT_FOUND, "cannot find index {index} for ns {ns}")
    };
    let mut seen = 0usize;
    let mut next = cursor.first();
    while let Some(entry) = next {
        if !snapshot.explains(slot, &entry) {
            let message = match snapshot.get(entry.record) {
                None => "found extra index key entry without corresponding document",
                Some(_) => "found index key entry with corresponding document that does not have the key",
            };
            let data = doc! { "indexName": index, "recordID": entry.record as i64 };
            note(node, ns, snapshot, data, message).await;
        }
        seen += 1;
        if seen.is_multiple_of(SLICE) {
            tokio::task::yield_now().await;
        }
        next = cursor.next();
    }
    Ok(())
}

async fn note(node: &Node, ns: &str, snapshot: &CollectionSnapshot, data: Document, message: &str) {
    let uuid = Some(snapshot.meta().uuid);
    let finding = Finding { ns, uuid, scope: "document", operation: "dbCheckBatch", data };
    finding.note(node, Severity::Error, message).await;
}
