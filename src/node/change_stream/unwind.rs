//! Entries that hold several operations: batches and transactions.
//!
//! ```text
//! applyOps, alone                           its operations, at its time
//! applyOps partialTxn ... applyOps          the chain is read back through prevOpTime when its last entry comes
//! applyOps prepare    ... commitTransaction the same, at the time of the commit
//! ```
//! An operation's index counts every operation of the transaction, whether a stream shows it or not, so that tokens do
//! not depend on what is watched.

use super::event::Logged;
use crate::write::retry::operations_of;
use crate::{Node, log_failed};
use document::{Doc, DocBuf, Result, Timestamp, bail};
use std::ops::Range;
use storage::entry::{Entry, Op};
use storage::log::{Class, FrameRef, LogError, ReadFrom};

/// The operations of one commit, in order.
pub(super) struct Unwound {
    time: Timestamp,
    wall: i64,
    payloads: Vec<DocBuf>,
    /// Which payload, and where in it.
    operations: Vec<(usize, Range<usize>)>,
    next: usize,
}

/// What an entry is to a stream.
pub(super) enum Entries {
    /// One operation.
    One,
    /// Several, which are committed here.
    Several(Unwound),
    /// Part of something that is committed later, or never.
    None,
}

/// # Errors
/// ChangeStreamHistoryLost (286) when the beginning of a transaction is no longer in the log.
pub(super) fn unwind(node: &Node, frame: &FrameRef<'_>, entry: &Entry<'_>) -> Result<Entries> {
    if entry.op != Op::Command {
        return Ok(Entries::One);
    }
    let is = |name: &str| entry.o.get_bool(name) == Some(true);
    match entry.command().map(|(name, _)| name) {
        Some("applyOps") if is("partialTxn") || is("prepare") => Ok(Entries::None),
        Some("applyOps") => {
            Unwound::of(node, frame, entry, Some(entry.doc().to_owned())).map(Entries::Several)
        }
        Some("commitTransaction") => Unwound::of(node, frame, entry, None).map(Entries::Several),
        Some("abortTransaction") => Ok(Entries::None),
        _ => Ok(Entries::One),
    }
}

impl Unwound {
    fn of(node: &Node, frame: &FrameRef<'_>, entry: &Entry<'_>, last: Option<DocBuf>) -> Result<Unwound> {
        // The last payload says whose transaction it is, so a prepared one's commit stays though it has no operations.
        let mut payloads = vec![last.unwrap_or_else(|| entry.doc().to_owned())];
        let mut before = previous(entry);
        while let Some(ts) = before {
            let payload = read(node, ts)?;
            before = previous(&Entry::read(payload.doc())?).filter(|earlier| *earlier < ts);
            payloads.push(payload);
        }
        payloads.reverse();
        let mut operations = Vec::new();
        for (i, payload) in payloads.iter().enumerate() {
            let start = payload.bytes().as_ptr() as usize;
            for operation in operations_of(payload.doc()) {
                let at = operation.bytes().as_ptr() as usize - start;
                operations.push((i, at..at + operation.bytes().len()));
            }
        }
        let time = Timestamp::from_u64(frame.optime.ts);
        Ok(Unwound { time, wall: frame.wall, payloads, operations, next: 0 })
    }

    pub(super) fn time(&self) -> Timestamp {
        self.time
    }

    /// The next operation; entries that are none are passed over.
    pub(super) fn next(&mut self) -> Option<Logged<'_>> {
        loop {
            let index = self.next;
            let (payload, range) = self.operations.get(index)?.clone();
            self.next += 1;
            let last = self.payloads.last()?.doc();
            let operation = Doc::from_validated(&self.payloads[payload].bytes()[range]);
            let Ok(entry) = Entry::read(operation) else { continue };
            let transaction = last.get_document("lsid").zip(last.get_i64("txnNumber"));
            return Some(Logged {
                entry,
                time: self.time,
                wall: self.wall,
                index: index as i64,
                transaction,
            });
        }
    }
}

/// The time of the chain's entry before; the previous *statement* of a session is none.
pub(super) fn previous(entry: &Entry<'_>) -> Option<u64> {
    if entry.txn_number().is_none() || entry.doc().get("multiOpType").is_some() {
        return None;
    }
    let ts = entry.doc().get_document("prevOpTime")?.get("ts")?.as_timestamp()?.as_u64();
    (ts > 0).then_some(ts)
}

fn read(node: &Node, ts: u64) -> Result<DocBuf> {
    let mut reader = match node.log.reader(ReadFrom::Ts(ts)) {
        Err(LogError::Truncated { .. }) => return lost(),
        reader => reader.map_err(log_failed)?,
    };
    while let Some(frame) = reader.next().map_err(log_failed)? {
        if frame.optime.ts > ts {
            break;
        }
        if frame.class == Class::Oplog {
            return Ok(Entry::of_frame(&frame)?.doc().to_owned());
        }
    }
    lost()
}

fn lost<T>() -> Result<T> {
    bail!(
        CHANGE_STREAM_HISTORY_LOST,
        "Resume of change stream was not possible, as the resume point may no longer be in the oplog."
    )
}
