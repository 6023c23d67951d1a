//! validate: are records and indexes what they say of each other?

use crate::{Node, Operation, Request};
use document::{Document, Result, Value, ValueRef, bail, doc, err, number};
use storage::CollectionView;

/// Runs a `validate` command: every document is read and valid BSON, every index has the entries its documents give.
pub async fn validate(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let ns = match request.argument() {
        Some(ValueRef::String(name)) if name.starts_with('$') => {
            bail!(NAMESPACE_NOT_FOUND, "Collection '{}.{name}' does not exist to validate.", request.db)
        }
        _ => request.namespace()?,
    };
    let flag = |name: &str| request.body.get(name).is_some_and(|v| v.truthy());
    let metadata = flag("metadata");
    check_together(&flag)?;
    check_background(node, &flag)?;
    node.failpoints.pause_operation(op, "pauseCollectionValidationWithLock", &ns).await?;
    let slot = node.namespaces.slot(&ns);
    let slot = crate::timeseries::of(node, &slot).map_or(slot, |series| series.buckets);
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
        keys.push(name, number::int_or_long(dangling.0));
        details.push(name, doc! { "valid": dangling.1 == 0, "spec": info.spec.document().clone() });
        if dangling.1 > 0 {
            errors.push(Value::from(format!("index {name} has {} entries without a record", dangling.1)));
        }
    }
    let mut reply = doc! { "ns": ns.as_str(), "uuid": Value::uuid(snapshot.meta().uuid) };
    if !metadata {
        reply.push("nInvalidDocuments", number::int_or_long(invalid));
        reply.push("nNonCompliantDocuments", 0);
        reply.push("nrecords", number::int_or_long(seen as i64));
    }
    let repair_mode = match () {
        _ if flag("repair") => "FixErrors",
        _ if flag("fixMultikey") => "AdjustMultikey",
        _ => "None",
    };
    reply.0.extend(
        doc! {
            "nIndexes": snapshot.index_count() as i32, "keysPerIndex": keys, "indexDetails": details,
            "valid": invalid == 0 && errors.is_empty(), "repaired": false, "repairMode": repair_mode,
            "warnings": [], "errors": errors, "extraIndexEntries": [], "missingIndexEntries": [], "corruptRecords": [],
        }
        .0,
    );
    Ok(reply)
}

fn check_background(node: &Node, flag: &impl Fn(&str) -> bool) -> Result<()> {
    if flag("background") && !node.is_replica_set() {
        bail!(
            COMMAND_NOT_SUPPORTED,
            "Running validate on a standalone with {{ background: true }} is not supported."
        );
    }
    if flag("background") && flag("full") {
        bail!(
            INVALID_OPTIONS,
            "Running the validate command with both {{ background: true }} and {{ full: true }} is not supported."
        );
    }
    Ok(())
}

/// Refuses options that contradict one another.
fn check_together(flag: &dyn Fn(&str) -> bool) -> Result<()> {
    const NOT_WITH_METADATA: &[&str] =
        &["background", "full", "enforceFastCount", "repair", "fixMultikey", "checkBSONConformance"];
    let contradicts = |name: &&&str| flag("metadata") && flag(name);
    let both = match NOT_WITH_METADATA.iter().find(contradicts) {
        Some(name) => Some(("metadata", *name)),
        None => Some(("checkBSONConformance", "repair")).filter(|(a, b)| flag(a) && flag(b)),
    };
    match both {
        Some((a, b)) => bail!(
            INVALID_OPTIONS,
            "Running the validate command with both {{ {a}: true }} and {{ {b}: true }} is not supported."
        ),
        None => Ok(()),
    }
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
