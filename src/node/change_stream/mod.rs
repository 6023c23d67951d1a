//! Change streams over this node's log.
//!
//! ```text
//! log ──scan──> operations ──unwind──> event ──(look up)──> delivery: resume, user's stages, checks ──> batch
//! ```
//! Only what is committed by a majority is read. A stream needs nothing of the collection it watches: it reads the log,
//! and lives until an event invalidates it. Its `postBatchResumeToken` is the token of the last event handed out or, when
//! the log was read to its end, a high-water mark of the newest entry read; it never goes back.

pub mod delivery;
pub mod event;
pub(crate) mod feed;
pub mod images;
pub mod scope;
mod stream;
#[cfg(test)]
mod tests;
mod unwind;

pub use delivery::Delivery;
pub use event::Watch;
pub use scope::Scope;
pub use stream::ChangeStreamRows;

use document::{Doc, Error, Result, codes, error};

/// A stream goes on when its collection is another: no UUID can be asked for.
///
/// # Errors
/// 4928900
pub fn refuse_uuid(body: Doc<'_>) -> Result<()> {
    match body.get_present("collectionUUID") {
        Some(_) => Err(Error::new(4928900, "collectionUUID is not supported beside $changeStream")),
        None => Ok(()),
    }
}

/// An error of a stream's command, with what it means to a driver: whether to resume.
pub fn labelled(e: Error) -> Error {
    let resumable = error::RETRIABLE | error::NETWORK | error::STALE_SHARD_VERSION;
    let given = e.info.as_ref().is_some_and(|i| i.contains_key("errorLabels"));
    match e.code {
        _ if given || !e.labels.is_empty() => e,
        codes::CHANGE_STREAM_FATAL_ERROR | codes::CHANGE_STREAM_HISTORY_LOST => {
            e.with_label("NonResumableChangeStreamError")
        }
        codes::RETRY_CHANGE_STREAM | codes::FAILED_TO_SATISFY_READ_PREFERENCE => {
            e.with_label("ResumableChangeStreamError")
        }
        _ if e.is(resumable) => e.with_label("ResumableChangeStreamError"),
        _ => e,
    }
}
