//! Full documents of changes: before, after, and as they are now.
//!
//! The document before a change stands in the change's own log entry (`imageBefore`), where the collection keeps
//! pre-images; the one after an update is that with the entry's difference applied. So an image is there exactly as long
//! as the entry is, and `changeStreamOptions.preAndPostImages.expireAfterSeconds` hides those that are older.

use super::event::{Logged, Watch};
use crate::{Node, log_failed};
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Timestamp, Value, ValueRef, err, meter};
use query::change_stream::{Images, Lookup};
use storage::entry::Entry;
use storage::log::{Class, ReadFrom};

/// The wall time (ms) before which images have expired, by `changeStreamOptions.preAndPostImages.expireAfterSeconds`.
pub fn kept_since(node: &Node) -> i64 {
    let slot = node.namespaces.slot("config.clusterParameters");
    let state = slot.read_unchecked();
    let options = state
        .collection
        .as_ref()
        .and_then(|c| c.find_id(ValueRef::String("changeStreamOptions")))
        .map(|(_, d)| d);
    let seconds = options.and_then(|d| d.get_document("preAndPostImages")?.get_i64("expireAfterSeconds"));
    seconds.map_or(i64::MIN, |seconds| node.now_ms().saturating_sub(seconds.saturating_mul(1000)))
}

/// Adds `fullDocument` and `fullDocumentBeforeChange` as the stream asks for them. The error that is returned, if any, is
/// the stream's when the event belongs to it: NoMatchingDocument (47) for a missing image that is required.
pub fn add(watch: &Watch, l: &Logged<'_>, operation_type: &str, out: &mut Document) -> Result<Option<Error>> {
    let kept = || l.entry.image_before().filter(|_| l.wall >= watch.images_since);
    let mut missing = None;
    if let (Lookup::PostImage(mode), "update") = (watch.spec.full_document, operation_type) {
        let image = match (kept(), l.entry.o.get_document("diff")) {
            (Some(before), Some(diff)) => {
                Some(document::delta::apply(before, &diff.to_document())?.to_document())
            }
            _ => None,
        };
        missing = missing.or_else(|| refused(mode, &image, "post-image for all update events", l));
        out.push("fullDocument", image.map_or(Value::Null, Value::Document));
    }
    let mode = watch.spec.before_change;
    if mode != Images::Off && matches!(operation_type, "update" | "replace" | "delete") {
        let image = kept().map(Doc::to_document);
        let text = "pre-image for all update, delete and replace events";
        missing = missing.or_else(|| refused(mode, &image, text, l));
        out.push("fullDocumentBeforeChange", image.map_or(Value::Null, Value::Document));
    }
    Ok(missing)
}

fn refused(mode: Images, image: &Option<Document>, what: &str, l: &Logged<'_>) -> Option<Error> {
    let kind = what.split(' ').next().unwrap_or("");
    (image.is_none() && mode == Images::Required).then(|| {
        err!(
            NO_MATCHING_DOCUMENT,
            "Change stream was configured to require a {what}, but the {kind} was not found for event: {{ ns: {}, time: {:?} }}",
            l.entry.ns,
            l.time
        )
    })
}

/// `config.system.preimages`: `{_id: {nsUUID, ts, applyOpsIndex}, operationDate, preImage}` of every image that is kept.
///
/// # Errors
/// A log that cannot be read.
pub fn all(node: &Node) -> Result<Vec<DocBuf>> {
    let since = kept_since(node);
    let mut reader = node.log.reader(ReadFrom::Start).map_err(log_failed)?;
    let end = node.log.appended();
    let mut out = Vec::new();
    while let Some(frame) = reader.next_before(end).map_err(log_failed)? {
        meter::spend(16)?;
        if frame.class != Class::Oplog || frame.wall < since {
            continue;
        }
        let entry = Entry::of_frame(&frame)?;
        let operations = entry.o.get("applyOps").and_then(|v| v.as_array());
        let inner =
            operations.into_iter().flatten().filter_map(|e| Entry::read(e.value().as_document()?).ok());
        for (i, operation) in std::iter::once(entry).chain(inner).enumerate() {
            let Some((image, uuid)) = operation.image_before().zip(operation.uuid) else { continue };
            let time = Timestamp::from_u64(frame.optime.ts);
            // The entry itself is the first that is looked at.
            out.push(shown(&uuid, time, i.saturating_sub(1) as i64, frame.wall, image));
        }
    }
    Ok(out)
}

fn shown(uuid: &[u8; 16], time: Timestamp, index: i64, wall: i64, image: Doc<'_>) -> DocBuf {
    DocWriter::build(|w| {
        w.document_with("_id", |w| {
            w.uuid("nsUUID", uuid);
            w.timestamp("ts", time);
            w.i64("applyOpsIndex", index);
        });
        w.date("operationDate", wall);
        w.document("preImage", image);
    })
}

/// The document of an update as it is now: null when it, or the collection it was in, is gone.
pub fn current(node: &Node, ns: &str, uuid: Option<[u8; 16]>, key: Doc<'_>) -> Option<DocBuf> {
    let slot = node.namespaces.slot(ns);
    let state = slot.read_unchecked();
    let collection = state.collection.as_ref().filter(|c| uuid.is_none_or(|uuid| c.uuid() == uuid))?;
    let (_, doc) = collection.find_id(key.get("_id")?)?;
    Some(doc.to_owned())
}
