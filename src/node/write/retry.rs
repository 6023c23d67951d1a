//! What a retried statement did the first time, read from its log entry.

use crate::{Node, log_failed};
use document::{Doc, DocBuf, Result, err};
use protocol::session::EntryTime;
use storage::log::ReadFrom;

impl Node {
    /// The payload of the entry written at this time.
    ///
    /// # Errors
    /// IncompleteTransactionHistory (217) when the log no longer holds it.
    pub fn entry_at(&self, at: EntryTime) -> Result<DocBuf> {
        let gone = || {
            err!(
                INCOMPLETE_TRANSACTION_HISTORY,
                "oplog no longer contains the complete write history of this transaction, log with opTime {at:?} cannot be found"
            )
        };
        let mut reader = self.log.reader(ReadFrom::Ts(at.ts)).map_err(log_failed)?;
        let frame = reader.next().map_err(log_failed)?.ok_or_else(gone)?;
        if frame.optime.ts != at.ts {
            return Err(gone());
        }
        let entry = Doc::from_validated(frame.payload);
        // A statement that a migration brought along: the entry of the shard that executed it lies inside.
        match entry.get_document("o2").filter(|o2| entry.get_str("op") == Some("n") && o2.get("op").is_some())
        {
            Some(original) => Ok(original.to_owned()),
            None => Ok(entry.to_owned()),
        }
    }
}
