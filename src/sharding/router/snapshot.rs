//! Reads of level snapshot outside transactions: one cluster time for all shards.
//!
//! ```text
//! time      the one the client names, else the newest that the router has heard of
//! targets   the shards that owned the data at that time, by the histories of the chunks
//! shards    read as of that time, and filter by what they owned then; the version of a request is that in force
//! cursor    keeps the time; its reply names it (`cursor.atClusterTime`), for the session's later reads
//! ```
//!
//! A time that some shard has no more, or that the histories do not reach, is an error; where the router chose the time,
//! it chooses another.

use super::Router;
use document::error::SNAPSHOT;
use document::{Doc, DocBuf, DocWriter, Error, Timestamp};
use node::Operation;
use node::operation::ReadLevel;
use std::time::Duration;

/// How often the router chooses a time before the client hears that it was too old.
const TIMES_MAX: usize = 10;

/// The time that a command names.
pub fn time_of(body: Doc<'_>) -> Option<Timestamp> {
    body.get_document("readConcern")?.get("atClusterTime")?.as_timestamp()
}

/// Whether the command reads at one time on all shards.
pub fn reads_so(op: &Operation, name: &str) -> bool {
    op.read_concern.level == ReadLevel::Snapshot
        && op.session.as_ref().is_none_or(|s| s.autocommit.is_none())
        && matches!(name, "find" | "aggregate" | "distinct")
}

/// The command with the time to read at.
///
/// # Errors
/// Those of the config server where it must be asked for the time; interrupts.
pub async fn at_one_time(router: &Router, op: &Operation, body: Doc<'_>) -> document::Result<DocBuf> {
    let (concern, now) = (&op.read_concern, router.time_to_read_at(op).await?);
    let now = concern.after_cluster_time.map_or(now, |after| after.max(now));
    let at = concern.at_cluster_time.unwrap_or(now);
    Ok(DocWriter::build(|w| {
        body.iter().filter(|e| e.name() != "readConcern").for_each(|e| w.element(&e));
        w.document_with("readConcern", |w| {
            w.string("level", "snapshot");
            w.timestamp("atClusterTime", at);
        });
    }))
}

/// Returns when a read that failed may be tried at another time; gives the error back when it is final.
///
/// # Errors
/// The error given; interrupts.
pub async fn absorb(op: &Operation, attempt: usize, error: Error) -> document::Result<()> {
    if !error.is(SNAPSHOT) || op.read_concern.at_cluster_time.is_some() || attempt + 1 >= TIMES_MAX {
        return Err(error);
    }
    op.interruptible(Box::pin(tokio::time::sleep(Duration::from_millis(1 << attempt.min(7))))).await
}

/// The reply with the time that was read at, where no shard's reply was passed on with it.
pub fn with_time(name: &str, body: Doc<'_>, reply: DocBuf) -> DocBuf {
    let Some(at) = time_of(body) else { return reply };
    let cursor = reply.doc().get_document("cursor");
    let named = cursor.is_some_and(|c| c.get("atClusterTime").is_some());
    if named || reply.doc().get("atClusterTime").is_some() {
        return reply;
    }
    DocWriter::build(|w| {
        for e in reply.doc().iter() {
            match (e.name(), cursor) {
                ("cursor", Some(cursor)) => w.document_with("cursor", |w| {
                    w.fields_of(cursor);
                    w.timestamp("atClusterTime", at);
                }),
                _ => w.element(&e),
            }
        }
        if name == "distinct" {
            w.timestamp("atClusterTime", at);
        }
    })
}
