//! validate: are records and indexes what they say of each other?

use crate::write::extras::Validator;
use crate::{Node, Operation, Request};
use document::error::{INTERRUPTION, NOT_PRIMARY};
use document::{Doc, Document, Result, Value, ValueRef, bail, codes, doc, err, number};
use query::matcher::Matcher;
use storage::index::IndexInfo;
use storage::{CollectionSnapshot, CollectionView, IndexSpec, RecordId};

/// Runs a `validate` command: every document is read and valid BSON, every index has the entries its documents give and no others.
/// What does not comply with the collection's validator is counted, and no fault: it may have been there before.
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
    let validator = slot.read(op, |s| Ok(s.validator.clone())).await?;
    let documents = Documents::read(node, op, &snapshot, validator.as_deref()).await?;
    let mut indexes = Vec::with_capacity(snapshot.index_count());
    for i in 0..snapshot.index_count() {
        indexes.push(Entries::read(op, &snapshot, i).await?);
    }
    let mut reply = doc! { "ns": ns.as_str(), "uuid": Value::uuid(snapshot.meta().uuid) };
    if !metadata {
        reply.push("nInvalidDocuments", number::int_or_long(documents.invalid));
        reply.push("nNonCompliantDocuments", number::int_or_long(documents.non_compliant));
        reply.push("nrecords", number::int_or_long(documents.seen));
    }
    let repair_mode = match () {
        _ if flag("repair") => "FixErrors",
        _ if flag("fixMultikey") => "AdjustMultikey",
        _ => "None",
    };
    reply.0.extend(findings(&snapshot, &documents, &indexes, repair_mode).0);
    Ok(reply)
}

/// Entries that are shown of each kind; the others are only counted.
const SHOWN_MAX: usize = 100;
/// Documents, and bytes of them, between two looks at whether the command was interrupted.
const SLICE: usize = 1000;
const SLICE_BYTES: usize = 1024 * 1024;

/// What the documents are like.
#[derive(Default)]
struct Documents {
    seen: i64,
    invalid: i64,
    non_compliant: i64,
}

impl Documents {
    async fn read(
        node: &Node,
        op: &Operation,
        snapshot: &CollectionSnapshot,
        validator: Option<&Validator>,
    ) -> Result<Documents> {
        let mut found = Documents::default();
        let now = node.parse_context(Document::new());
        let off = snapshot.meta().options.get_str("validationLevel") == Some("off");
        let matcher = validator.filter(|_| !off).map(|v| v.matcher.at_time_of(&now));
        let mut pace = Pace::default();
        let mut records = snapshot.records();
        let mut next = records.first();
        while let Some((_, d)) = next {
            let valid = document::validate::validate(d.bytes(), document::validate::Limits::INTERNAL).is_ok();
            found.invalid += i64::from(!valid);
            if let Some(matcher) = matcher.as_ref().filter(|_| valid) {
                found.non_compliant += i64::from(!complies(op, matcher, d)?);
            }
            found.seen += 1;
            pace.step(op, d).await?;
            next = records.next();
        }
        Ok(found)
    }
}

/// What an index has, beside what the documents say it should have.
#[derive(Default)]
struct Entries {
    keys: i64,
    missing: i64,
    extra: i64,
    shown_missing: Vec<Value>,
    shown_extra: Vec<Value>,
}

impl Entries {
    async fn read(op: &Operation, snapshot: &CollectionSnapshot, slot: usize) -> Result<Entries> {
        let mut found = Entries::default();
        let (Some(info), Some(mut cursor)) = (snapshot.index_info(slot), snapshot.index_cursor(slot)) else {
            return Ok(found);
        };
        let (mut wanted, mut pace) = (0i64, Pace::default());
        let mut records = snapshot.records();
        let mut next = records.first();
        while let Some((record, d)) = next {
            // A document that gives no keys is not in this index.
            let of = snapshot.missing_keys(slot, &mut cursor, record, d).unwrap_or_default();
            wanted += of.keys as i64;
            found.missing += of.missing.len() as i64;
            for key in of.missing.iter().take(SHOWN_MAX - found.shown_missing.len()) {
                found.shown_missing.push(shown(&info.spec, record, Some(d), key));
            }
            pace.step(op, d).await?;
            next = records.next();
        }
        found.keys = snapshot.indexes()[slot].len() as i64;
        if found.keys != wanted - found.missing {
            found.look_for_extra(op, snapshot, slot, info).await?;
        }
        Ok(found)
    }

    async fn look_for_extra(
        &mut self,
        op: &Operation,
        snapshot: &CollectionSnapshot,
        slot: usize,
        info: &IndexInfo,
    ) -> Result<()> {
        let Some(mut cursor) = snapshot.index_cursor(slot) else { return Ok(()) };
        let mut pace = Pace::default();
        let mut next = cursor.first();
        while let Some(entry) = next {
            let d = snapshot.get(entry.record);
            if !snapshot.explains(slot, &entry) {
                self.extra += 1;
                if self.shown_extra.len() < SHOWN_MAX {
                    self.shown_extra.push(shown(&info.spec, entry.record, d, entry.key));
                }
            }
            pace.step(op, d.unwrap_or(Doc::empty())).await?;
            next = cursor.next();
        }
        Ok(())
    }
}

/// An entry that is missing, or too many.
fn shown(spec: &IndexSpec, record: RecordId, d: Option<Doc<'_>>, key: &[u8]) -> Value {
    let mut out = doc! { "indexName": spec.name(), "recordId": record as i64 };
    if let Some(id) = d.and_then(|d| d.get("_id")) {
        out.push("idKey", doc! { "_id": id.to_value() });
    }
    if let Some(shown) = d.and_then(|d| storage::index::keys::shown(spec, d, key)) {
        out.push("indexKey", shown);
    }
    out.into()
}

/// What was gone through since the command last let others run.
#[derive(Default)]
struct Pace {
    documents: usize,
    bytes: usize,
}

impl Pace {
    /// Counts a document; fails when the operation is to end.
    async fn step(&mut self, op: &Operation, d: Doc<'_>) -> Result<()> {
        self.documents += 1;
        self.bytes += d.bytes().len();
        if self.documents >= SLICE || self.bytes >= SLICE_BYTES {
            *self = Pace::default();
            op.check_interrupt()?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Whether a document is as the validator wants it. One of which the validator cannot tell is not.
///
/// # Errors
/// What ends the operation.
fn complies(op: &Operation, validator: &Matcher, d: Doc<'_>) -> Result<bool> {
    let failed = match validator.matches(d) {
        Ok(complies) => return Ok(complies),
        Err(failed) => failed,
    };
    op.check_interrupt()?;
    match failed.is(INTERRUPTION | NOT_PRIMARY) || failed.code == codes::EXCEEDED_MEMORY_LIMIT {
        true => Err(failed),
        false => Ok(false),
    }
}

/// The fields of the reply that say what was found.
fn findings(
    snapshot: &CollectionSnapshot,
    documents: &Documents,
    indexes: &[Entries],
    repair_mode: &str,
) -> Document {
    let (mut keys, mut details) = (Document::new(), Document::new());
    for (index, found) in snapshot.indexes().iter().zip(indexes) {
        let spec = &index.info().spec;
        keys.push(spec.name(), number::int_or_long(found.keys));
        let valid = found.missing == 0 && found.extra == 0;
        details.push(spec.name(), doc! { "valid": valid, "spec": spec.document().clone() });
    }
    let sum = |of: fn(&Entries) -> i64| indexes.iter().map(of).sum::<i64>();
    let all =
        |of: fn(&Entries) -> &Vec<Value>| -> Vec<Value> { indexes.iter().flat_map(of).cloned().collect() };
    let (missing, extra) = (sum(|e| e.missing), sum(|e| e.extra));
    let mut errors: Vec<Value> = Vec::new();
    if missing > 0 {
        errors.push(Value::from(format!("Detected {missing} missing index entries.")));
    }
    if extra > 0 {
        errors.push(Value::from(format!("Detected {extra} extra index entries.")));
    }
    let mut warnings: Vec<Value> = Vec::new();
    if documents.non_compliant > 0 {
        warnings
            .push(Value::from("Detected one or more documents not compliant with the collection's schema."));
    }
    doc! {
        "nIndexes": snapshot.index_count() as i32, "keysPerIndex": keys, "indexDetails": details,
        "valid": documents.invalid == 0 && errors.is_empty(), "repaired": false, "repairMode": repair_mode,
        "warnings": warnings, "errors": errors, "extraIndexEntries": all(|e| &e.shown_extra),
        "missingIndexEntries": all(|e| &e.shown_missing), "corruptRecords": [],
    }
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
