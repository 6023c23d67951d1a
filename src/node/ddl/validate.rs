//! validate: are records and indexes what they say of each other?

use crate::{Node, Operation, Request};
use document::{Document, Result, Value, bail, doc, err};
use storage::CollectionView;

/// Runs a `validate` command: every document is read and valid BSON, every index has the entries its documents give.
pub async fn validate(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let ns = request.namespace()?;
    let flag = |name: &str| request.body.get(name).is_some_and(|v| v.truthy());
    if flag("background") && flag("full") {
        bail!(
            INVALID_OPTIONS,
            "Running the validate command with both {{ background: true }} and {{ full: true }} is not supported."
        );
    }
    let slot = node.namespaces.slot(&ns);
    let snapshot = slot
        .read(op, |s| {
            if s.view.is_some() {
                bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Cannot validate a view");
            }
            s.collection
                .as_ref()
                .map(|c| c.snapshot())
                .ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "Collection '{ns}' does not exist to validate."))
        })
        .await?;
    let (mut invalid, mut seen) = (0i64, 0usize);
    let mut records = snapshot.records();
    let mut next = records.first();
    while let Some((_, d)) = next {
        invalid +=
            document::validate::validate(d.bytes(), document::validate::Limits::INTERNAL).is_err() as i64;
        seen += 1;
        if seen.is_multiple_of(1000) {
            op.check_interrupt()?;
            tokio::task::yield_now().await;
        }
        next = records.next();
    }
    let (mut keys, mut details, mut errors) = (Document::new(), Document::new(), Vec::new());
    for i in 0..snapshot.index_count() {
        let Some(info) = snapshot.index_info(i) else { continue };
        let dangling = dangling_entries(&snapshot, i);
        let name = info.spec.name();
        keys.push(name, dangling.0);
        details.push(name, doc! { "valid": dangling.1 == 0, "spec": info.spec.document().clone() });
        if dangling.1 > 0 {
            errors.push(Value::from(format!("index {name} has {} entries without a record", dangling.1)));
        }
    }
    Ok(doc! {
        "ns": ns.as_str(), "uuid": Value::uuid(snapshot.meta().uuid), "nInvalidDocuments": invalid, "nNonCompliantDocuments": 0i64, "nrecords": seen as i64,
        "nIndexes": snapshot.index_count() as i32, "keysPerIndex": keys, "indexDetails": details,
        "valid": invalid == 0 && errors.is_empty(), "repaired": false, "warnings": [], "errors": errors,
        "extraIndexEntries": [], "missingIndexEntries": [], "corruptRecords": [],
    })
}

/// How many entries an index has, and how many of them lead to no record.
fn dangling_entries(snapshot: &storage::CollectionSnapshot, slot: usize) -> (i64, i64) {
    let Some(mut cursor) = snapshot.index_cursor(slot) else { return (0, 0) };
    let (mut entries, mut dangling) = (0, 0);
    let mut next = cursor.first();
    while let Some(e) = next {
        entries += 1;
        dangling += snapshot.get(e.record).is_none() as i64;
        next = cursor.next();
    }
    (entries, dangling)
}
