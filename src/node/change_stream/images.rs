//! Full documents of changes: before, after, and as they are now.
//!
//! The document before a change stands in the change's own log entry (`imageBefore`), where the collection keeps
//! pre-images; the one after an update is that with the entry's difference applied. So an image is there exactly as long
//! as the entry is, and `changeStreamOptions.preAndPostImages.expireAfterSeconds` hides those that are older.

use super::event::{Logged, Watch};
use crate::Node;
use document::{Doc, DocBuf, Document, Error, Result, Value, ValueRef, err};
use query::change_stream::{Images, Lookup};

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

/// The document of an update as it is now: null when it, or the collection it was in, is gone.
pub fn current(node: &Node, ns: &str, uuid: Option<[u8; 16]>, key: Doc<'_>) -> Option<DocBuf> {
    let slot = node.namespaces.slot(ns);
    let state = slot.read_unchecked();
    let collection = state.collection.as_ref().filter(|c| uuid.is_none_or(|uuid| c.uuid() == uuid))?;
    let (_, doc) = collection.find_id(key.get("_id")?)?;
    Some(doc.to_owned())
}
