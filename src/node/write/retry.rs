//! What a retried statement did the first time, read from its log entry.

use crate::{Node, log_failed};
use document::{Doc, DocBuf, Result, err};
use protocol::session::EntryTime;
use storage::log::{LogReader, ReadFrom};

/// Set on the entry of an update after which the document belongs to another shard: here it was removed (`d`), or would
/// have been inserted (`n`, with the document as `o`). DO NOT CHANGE: logs hold it.
pub const CHANGES_OWNER: &str = "changesOwner";

/// Set on the entry of a bucket's update that removed measurements. DO NOT CHANGE: logs hold it.
pub(crate) const REMOVES: &str = "removesMeasurements";

/// The kind of statement that an entry was made by: `i`, `u` or `d`.
pub(crate) fn kind_of<'a>(entry: Doc<'a>) -> &'a str {
    let marked = |mark: &str| entry.get_bool(mark) == Some(true);
    match entry.get_str("op") {
        Some("d") if marked(CHANGES_OWNER) => "u",
        Some("n") if marked(CHANGES_OWNER) => "i",
        Some("u") if marked(REMOVES) => "d",
        op => op.unwrap_or(""),
    }
}

/// Where the entry before this one of the same transaction stands.
pub(crate) fn previous_of(entry: Doc<'_>) -> Option<EntryTime> {
    let previous = entry.get_document("prevOpTime")?;
    let ts = previous.get("ts")?.as_timestamp()?.as_u64();
    Some(EntryTime { ts, term: previous.get_i64("t")? }).filter(|_| ts != 0)
}

/// The operations of an `applyOps` entry.
pub fn operations_of(entry: Doc<'_>) -> impl Iterator<Item = Doc<'_>> {
    let operations = entry.get_document("o").and_then(|o| o.get("applyOps")?.as_array());
    operations.into_iter().flat_map(|a| a.iter()).filter_map(|e| e.value().as_document())
}

impl Node {
    /// What statement `stmt` did, from the entry that the session table names: an entry of its own, or an operation of the
    /// transaction that ends with it.
    ///
    /// # Errors
    /// IncompleteTransactionHistory (217) when the log no longer holds it.
    pub fn statement_entry(&self, at: EntryTime, stmt: i32) -> Result<DocBuf> {
        self.statement_in(self.entry_at(at)?, at, stmt)
    }

    /// The same by a reader that is kept: whoever asks for many, in the order of their times, reads the log once.
    ///
    /// # Errors
    /// Those of [`Node::statement_entry`].
    pub fn statement_entry_by(&self, reader: &mut LogReader, at: EntryTime, stmt: i32) -> Result<DocBuf> {
        reader.seek_ts(at.ts).map_err(log_failed)?;
        self.statement_in(read_entry(reader, at)?, at, stmt)
    }

    fn statement_in(&self, mut entry: DocBuf, at: EntryTime, stmt: i32) -> Result<DocBuf> {
        while entry.doc().get_str("op") == Some("c") {
            let its = |o: &Doc<'_>| o.get_i64("stmtId") == Some(i64::from(stmt));
            if let Some(operation) = operations_of(entry.doc()).find(its) {
                return Ok(operation.to_owned());
            }
            let before = previous_of(entry.doc());
            let before = before.ok_or_else(|| {
                err!(
                    INCOMPLETE_TRANSACTION_HISTORY,
                    "statement {stmt} is not in the transaction that ends at {at:?}"
                )
            })?;
            entry = self.entry_at(before)?;
        }
        Ok(entry)
    }

    /// The operations of a transaction with the statements they are, given its last entry: an `applyOps`, or the decision
    /// about a prepared one.
    ///
    /// # Errors
    /// IncompleteTransactionHistory (217) when the log no longer holds all of it.
    pub fn transaction_operations(&self, last: Doc<'_>) -> Result<Vec<DocBuf>> {
        let mut parts = vec![last.to_owned()];
        while let Some(before) = parts.last().and_then(|p| previous_of(p.doc())) {
            parts.push(self.entry_at(before)?);
        }
        Ok(parts.iter().rev().flat_map(|p| operations_of(p.doc()).map(Doc::to_owned)).collect())
    }

    /// The payload of the entry written at this time.
    ///
    /// # Errors
    /// IncompleteTransactionHistory (217) when the log no longer holds it.
    pub fn entry_at(&self, at: EntryTime) -> Result<DocBuf> {
        read_entry(&mut self.log.reader(ReadFrom::Ts(at.ts)).map_err(log_failed)?, at)
    }
}

/// The payload of the next entry, which is to be the one written at this time.
fn read_entry(reader: &mut LogReader, at: EntryTime) -> Result<DocBuf> {
    let gone = || {
        err!(
            INCOMPLETE_TRANSACTION_HISTORY,
            "oplog no longer contains the complete write history of this transaction, log with opTime {at:?} cannot be found"
        )
    };
    let frame = reader.next().map_err(log_failed)?.ok_or_else(gone)?;
    if frame.optime.ts != at.ts {
        return Err(gone());
    }
    let entry = Doc::from_validated(frame.payload);
    // A statement that a migration brought along: the entry of the shard that executed it lies inside.
    match entry.get_document("o2").filter(|o2| entry.get_str("op") == Some("n") && o2.get("op").is_some()) {
        Some(original) => Ok(original.to_owned()),
        None => Ok(entry.to_owned()),
    }
}
