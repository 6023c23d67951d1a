//! Session history of a range: which statements of retryable writes were executed on the donor.
//!
//! A client that did not see the answer of a write sends it again; after the range has moved, the recipient receives it.
//! So every statement executed on this collection goes over with its log entry: first those the session table knows,
//! then what the log brings from the moment that table was read. The recipient writes each as a no-op entry under the
//! client's session, with the original inside, and its session table takes it in as it takes any entry.
//!
//! Statements outside the range go over too where the entry does not tell (a delete names only the `_id`): a statement
//! is executed on one shard only, so knowing of it elsewhere does no harm.

use super::range::{KeyRange, SLICE_TIME_MAX};
use crate::shard::ShardRole;
use document::{Doc, DocBuf, DocWriter, Document, Result, codes};
use node::operation::{SessionFields, SessionId};
use node::{Node, Operation, Origin, log_failed};
use protocol::session::EntryTime;
use std::collections::VecDeque;
use std::time::Instant;
use storage::entry::{Entry, Op};
use storage::log::{Class, Position, ReadFrom};

/// The most bytes of entries in one answer.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// The donor's side.
pub struct SessionSource {
    ns: String,
    uuid: [u8; 16],
    range: KeyRange,
    known: VecDeque<EntryTime>,
    position: Position,
}

impl SessionSource {
    pub fn new(node: &Node, ns: &str, uuid: [u8; 16], range: KeyRange) -> SessionSource {
        // In this order, so that no statement falls between.
        let position = node.log.appended();
        let known = node.sessions.executed().into_iter().map(|(_, _, _, at)| at).collect();
        SessionSource { ns: ns.to_string(), uuid, range, known, position }
    }

    /// The next entries as `{oplog: [...]}`; empty when there are none now.
    ///
    /// # Errors
    /// A failed log.
    pub async fn next(&mut self, node: &Node) -> Result<DocBuf> {
        let mut batch: Vec<DocBuf> = Vec::new();
        let mut bytes = 0;
        let mut take = |entry: DocBuf| {
            bytes += entry.bytes().len();
            batch.push(entry);
            bytes > BATCH_BYTES_MAX
        };
        let mut full = false;
        while !full {
            let Some(at) = self.known.pop_front() else { break };
            full = match node.entry_at(at) {
                Ok(entry) if self.concerns(entry.doc()) => take(with_time(entry.doc(), at.ts, at.term)),
                // What the log no longer holds cannot be shown; the session is too old to be retried.
                Ok(_) => false,
                Err(e) if e.code == codes::INCOMPLETE_TRANSACTION_HISTORY => false,
                Err(e) => return Err(e),
            };
            tokio::task::yield_now().await;
        }
        while !full && self.position < node.log.appended() {
            full = self.read_slice(node, &mut take)?;
            tokio::task::yield_now().await;
        }
        Ok(DocWriter::build(|w| {
            w.array_with("oplog", |w| {
                for (i, entry) in batch.iter().enumerate() {
                    w.with_index(i, |w, name| w.document(name, entry.doc()));
                }
            });
        }))
    }

    /// Reads on in the log for a moment; true when the batch is full.
    fn read_slice(&mut self, node: &Node, take: &mut impl FnMut(DocBuf) -> bool) -> Result<bool> {
        let started = Instant::now();
        let mut full = false;
        let mut reader = node.log.reader(ReadFrom::Position(self.position)).map_err(log_failed)?;
        while !full && started.elapsed() < SLICE_TIME_MAX {
            let Some(frame) = reader.next().map_err(log_failed)? else { break };
            if frame.class != Class::Oplog {
                continue;
            }
            let payload = Doc::from_validated(frame.payload);
            if payload.get("lsid").is_some() && self.concerns(payload) {
                full = take(with_time(payload, frame.optime.ts, frame.optime.term));
            }
        }
        self.position = reader.position();
        Ok(full)
    }

    fn concerns(&self, payload: Doc<'_>) -> bool {
        // A no-op brought along by an earlier migration speaks for the entry inside.
        let inner = payload
            .get_document("o2")
            .filter(|o2| payload.get_str("op") == Some("n") && o2.get("op").is_some());
        let Ok(entry) = Entry::read(inner.unwrap_or(payload)) else { return false };
        if entry.ns != self.ns || entry.uuid.is_some_and(|u| u != self.uuid) {
            return false;
        }
        let key = match entry.op {
            Op::Insert => return self.range.contains(entry.o),
            Op::Update => entry.o2,
            Op::Delete => Some(entry.o),
            _ => None,
        };
        // What was written before the collection was sharded is named by `_id` only, and may concern any range.
        key.and_then(|key| self.range.contains_document_key(key)).unwrap_or(true)
    }
}

fn with_time(payload: Doc<'_>, ts: u64, term: i64) -> DocBuf {
    DocWriter::build(|w| {
        w.fields_of(payload);
        w.timestamp("ts", document::Timestamp::from_u64(ts));
        w.i64("t", term);
    })
}

/// The recipient's side: takes in a batch; answers how many entries it had.
///
/// # Errors
/// A failed log.
pub async fn apply(role: &ShardRole, ns: &str, reply: &DocBuf) -> Result<usize> {
    let slot = role.node.namespaces.slot(ns);
    let Some(batch) = reply.get("oplog").and_then(|v| v.as_array()) else { return Ok(0) };
    let mut n = 0;
    for element in batch.iter() {
        n += 1;
        let Some(received) = element.value().as_document() else { continue };
        let Ok(entry) = Entry::read(received) else { continue };
        let (Some(lsid), Some(number)) =
            (entry.lsid().and_then(|d| SessionId::parse(d).ok()), entry.txn_number())
        else {
            continue;
        };
        let inner = received.get_document("o2").filter(|o2| entry.op == Op::Noop && o2.get("op").is_some());
        let original = inner.unwrap_or(received);
        for statement in entry.statements() {
            if role.node.sessions.knows(&lsid, number, statement) {
                continue;
            }
            let mut op = Operation::internal();
            op.session = Some(SessionFields {
                lsid,
                txn_number: Some(number),
                autocommit: None,
                start_transaction: false,
                stmt_ids: Vec::new(),
            });
            let more = DocWriter::build(|w| w.document("o2", original));
            let origin = Origin { statement: Some(statement), from_migrate: true, more: Some(more.doc()) };
            role.node
                .write(&op, &slot, |unit| {
                    unit.noop(Document::new(), origin);
                    Ok(())
                })
                .await?;
        }
    }
    Ok(n)
}
