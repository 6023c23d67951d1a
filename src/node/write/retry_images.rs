//! `config.image_collection`: for each session the document that its last retryable findAndModify has returned.
//!
//! The document stands in the log entry of the change, so that a retry finds it exactly as long as it finds the entry; the
//! oplog shows only which one it is (`needsRetryImage`), and here they are shown by session.

use super::retry::operations_of;
use crate::{Node, log_failed};
use document::{Doc, DocBuf, DocWriter, Result, Timestamp, meter};
use std::collections::BTreeMap;
use storage::entry::RETRY_IMAGES;
use storage::log::{Class, ReadFrom};

/// # Errors
/// A log that cannot be read.
pub fn all(node: &Node) -> Result<Vec<DocBuf>> {
    let mut reader = node.log.reader(ReadFrom::Start).map_err(log_failed)?;
    let end = node.log.appended();
    let mut last: BTreeMap<Vec<u8>, DocBuf> = BTreeMap::new();
    while let Some(frame) = reader.next_before(end).map_err(log_failed)? {
        meter::spend(16)?;
        if frame.class != Class::Oplog {
            continue;
        }
        let entry = Doc::from_validated(frame.payload);
        let Some(lsid) = entry.get_document("lsid") else { continue };
        let number = entry.get_i64("txnNumber").unwrap_or(0);
        for (kind, image) in std::iter::once(entry).chain(operations_of(entry)).filter_map(image_of) {
            let shown = shown(lsid, number, Timestamp::from_u64(frame.optime.ts), kind, image);
            last.insert(lsid.bytes().to_vec(), shown);
        }
    }
    Ok(last.into_values().collect())
}

fn image_of(operation: Doc<'_>) -> Option<(&'static str, Doc<'_>)> {
    RETRY_IMAGES
        .into_iter()
        .find_map(|kind| Some((kind, operation.get_document(kind)?)))
        .filter(|(_, image)| !image.is_empty())
}

fn shown(lsid: Doc<'_>, number: i64, ts: Timestamp, kind: &str, image: Doc<'_>) -> DocBuf {
    DocWriter::build(|w| {
        w.document("_id", lsid);
        w.i64("txnNum", number);
        w.timestamp("ts", ts);
        w.string("imageKind", kind);
        w.document("image", image);
        w.bool("invalidated", false);
    })
}
