//! Session history of a range: which statements of retryable writes were executed on the donor.
//!
//! A client that did not see the answer of a write sends it again; after the range has moved, the recipient receives it.
//! So every statement executed on this collection goes over with its log entry: first those the session table knows,
//! then what the log brings from the moment that table was read. The recipient writes each as a no-op entry under the
//! client's session, with the original inside, and its session table takes it in as it takes any entry.
//!
//! Statements outside the range go over too where the entry does not tell (a delete names only the `_id`), and where an
//! update may have taken its document out of the range, from where its filter brings the retry: a statement is executed on
//! one shard only, so knowing of it elsewhere does no harm. Likewise all that made buckets which are sharded by time: one of an earlier
//! bucketing, or of an earlier key, has measurements whose own keys are in other ranges.
//!
//! Where the log no longer holds an entry that the session table knows, a marker goes over instead: the recipient then
//! refuses a statement of that number it does not know (IncompleteTransactionHistory) rather than executing it twice.

use super::range::{KeyRange, SLICE_TIME_MAX};
use crate::key_pattern::ShardKeyPattern;
use crate::messages::Message;
use crate::messages::ddl::SessionHistory;
use crate::shard::ShardRole;
use document::{Doc, DocBuf, DocWriter, Document, Result, Value, bail, codes, doc};
use node::operation::{SessionFields, SessionId};
use node::{Node, Operation, Origin, log_failed, timeseries};
use protocol::session::{EntryTime, INCOMPLETE_HISTORY};
use runtime::Instant;
use std::collections::{BTreeMap, VecDeque};
use storage::entry::{Entry, Op, brought};
use storage::log::{Class, LogReader, Position, ReadFrom};

/// The most bytes of entries in one answer.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// A statement that the session table knows, by where its entry stands; without one, a history with a gap.
struct Known {
    session: SessionId,
    number: i64,
    at: Option<(EntryTime, i32)>,
}

impl Known {
    /// In the order in which a whole history is handed out.
    fn place(&self) -> Place {
        (self.session, self.number, self.at.map(|(_, stmt)| stmt))
    }
}

type Place = (SessionId, i64, Option<i32>);

fn place_to_document((session, number, statement): Place) -> Document {
    doc! { "session": session.to_document(), "txnNumber": number, "stmtId": statement.map_or(Value::Null, Value::Int32) }
}
fn read_place(d: Doc<'_>) -> Result<Place> {
    let session = d.get_document("session").map(SessionId::parse).transpose()?;
    match (session, d.get_i64("txnNumber")) {
        (Some(session), Some(number)) => Ok((session, number, d.get_i64("stmtId").map(|n| n as i32))),
        _ => bail!(IDL_FAILED_TO_PARSE, "a place in a session history has a session and a txnNumber"),
    }
}

/// The donor's side.
pub struct SessionSource {
    ns: String,
    /// Everything of the collection, or what concerns one range of it.
    range: Option<KeyRange>,
    known: VecDeque<Known>,
    /// The newest number of a session for which a marker went out.
    marked: BTreeMap<SessionId, i64>,
    position: Position,
    /// What finds the entries of known statements.
    reader: Option<LogReader>,
}

impl SessionSource {
    pub fn new(node: &Node, ns: &str, range: Option<KeyRange>) -> SessionSource {
        // In this order, so that no statement falls between.
        let position = node.log.appended();
        let executed = node.sessions.executed().into_iter();
        let gaps = node.sessions.incomplete().into_iter();
        let mut known: Vec<Known> = executed
            .map(|(session, number, stmt, at)| Known { session, number, at: Some((at, stmt)) })
            .chain(gaps.map(|(session, number)| Known { session, number, at: None }))
            .collect();
        // In the log's order: of each statement its entry is read, whatever collection it is of.
        known.sort_by_key(|k| k.at.map_or((true, 0), |(at, _)| (false, at.ts)));
        let known = known.into();
        SessionSource { ns: ns.to_string(), range, known, marked: BTreeMap::new(), position, reader: None }
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
            let Some(known) = self.known.pop_front() else { break };
            full = match self.entry_of(node, &known)? {
                Some(entry) => take(entry),
                None => false,
            };
            tokio::task::yield_now().await;
        }
        while !full && self.position < node.log.appended() {
            full = self.read_slice(node, &mut take)?;
            tokio::task::yield_now().await;
        }
        Ok(reply(&batch, None))
    }

    /// What goes over for a statement of the session table, if anything.
    fn entry_of(&mut self, node: &Node, known: &Known) -> Result<Option<DocBuf>> {
        let Some((at, stmt)) = known.at else { return Ok(self.marker(known)) };
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(node.log.reader(ReadFrom::End).map_err(log_failed)?),
        };
        match node.statement_entry_by(reader, at, stmt) {
            Ok(entry) if self.concerns(entry.doc()) => {
                let entry = as_statement_of(brought(entry.doc()).doc(), known.session, known.number);
                Ok(Some(with_time(entry.doc(), at.ts, at.term)))
            }
            Ok(_) => Ok(None),
            // It may have been of this range: nobody can say any more.
            Err(e) if e.code == codes::INCOMPLETE_TRANSACTION_HISTORY => Ok(self.marker(known)),
            Err(e) => Err(e),
        }
    }

    /// Says that the history of this number has a gap; once for each.
    fn marker(&mut self, known: &Known) -> Option<DocBuf> {
        if self.marked.insert(known.session, known.number) == Some(known.number) {
            return None;
        }
        let entry = doc! {
            "lsid": known.session.to_document(), "txnNumber": known.number, "op": "n", "ns": "", "o": Document::new(),
            "o2": { "$incompleteOplogHistory": 1 }, "stmtId": INCOMPLETE_HISTORY,
        };
        Some(entry.to_doc_buf())
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
            for entry in statements_of(node, payload)? {
                if self.concerns(entry.doc()) {
                    full = take(with_time(brought(entry.doc()).doc(), frame.optime.ts, frame.optime.term))
                        || full;
                }
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
        // Whatever UUID the collection had: a resharding gives it another, and what was executed before is still known.
        if entry.ns != self.ns {
            return false;
        }
        let Some(range) = &self.range else { return true };
        let key = match entry.op {
            Op::Insert => return range.contains(entry.o) || timeseries::is_by_time(range.key.document()),
            Op::Update => entry.o2,
            Op::Delete => Some(entry.o),
            _ => None,
        };
        // What was written before the collection was sharded is named by `_id` only, and may concern any range.
        let in_range = key.and_then(|key| range.contains_document_key(key)).unwrap_or(true);
        in_range || (entry.op == Op::Update && may_change_key(entry.o, &range.key))
    }
}

/// The statements of retryable writes that a log entry executes: itself, or those in the transaction of a router that it
/// commits.
fn statements_of(node: &Node, payload: Doc<'_>) -> Result<Vec<DocBuf>> {
    let lsid = payload.get_document("lsid").and_then(|d| SessionId::parse(d).ok());
    let Some(lsid) = lsid else { return Ok(Vec::new()) };
    let Some((parent, number)) = lsid.executes() else { return Ok(vec![payload.to_owned()]) };
    let o = payload.get_document("o").unwrap_or(Doc::empty());
    let undecided = ["partialTxn", "prepare", "abortTransaction"].iter().any(|name| o.get(name).is_some());
    if undecided {
        return Ok(Vec::new());
    }
    let mut operations = node.transaction_operations(payload)?;
    operations.retain(|o| o.get("stmtId").is_some());
    Ok(operations.iter().map(|o| as_statement_of(o.doc(), parent, number)).collect())
}

/// An entry under the session that a repetition of its statement comes with.
fn as_statement_of(entry: Doc<'_>, session: SessionId, number: i64) -> DocBuf {
    let lsid = session.to_document().to_doc_buf();
    DocWriter::build(|w| {
        w.document("lsid", lsid.doc());
        w.i64("txnNumber", number);
        for e in entry.iter().filter(|e| !matches!(e.name(), "lsid" | "txnNumber")) {
            w.element(&e);
        }
    })
}

fn reply(batch: &[DocBuf], next: Option<Place>) -> DocBuf {
    let next = next.map(|place| place_to_document(place).to_doc_buf());
    DocWriter::build(|w| {
        w.array_with("oplog", |w| {
            for (i, entry) in batch.iter().enumerate() {
                w.with_index(i, |w, name| w.document(name, entry.doc()));
            }
        });
        if let Some(next) = &next {
            w.document("next", next.doc());
        }
    })
}

/// [`SessionHistory`] of a whole collection to which nobody writes,
/// as `{oplog: [...], next?}`. `next`, the last statement of the answer, is the `after` of the next request.
///
/// # Errors
/// IDLFailedToParse (40414), TypeMismatch (14); a failed log.
pub async fn whole_history(node: &Node, body: Doc<'_>) -> Result<DocBuf> {
    let SessionHistory { ns, after } = SessionHistory::parse(body)?;
    let after = after.map(|after| read_place(after.to_doc_buf().doc())).transpose()?;
    let mut source = SessionSource::new(node, &ns, None);
    let mut known: Vec<Known> = source.known.drain(..).collect();
    known.retain(|k| after.is_none_or(|after| after < k.place()));
    known.sort_by_key(Known::place);
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for known in known {
        if let Some(entry) = source.entry_of(node, &known)? {
            bytes += entry.bytes().len();
            batch.push(entry);
        }
        if bytes > BATCH_BYTES_MAX {
            return Ok(reply(&batch, Some(known.place())));
        }
        tokio::task::yield_now().await;
    }
    Ok(reply(&batch, None))
}

/// Whether an update's entry may have given its document another shard key: the entry names it by the new one.
fn may_change_key(o: Doc<'_>, key: &ShardKeyPattern) -> bool {
    let Some(diff) = o.get_document("diff").filter(|_| o.get("$v").is_some()) else { return true };
    let fields = key.fields().iter().map(|f| f.path.split('.').next().unwrap_or(&f.path));
    let changed = |field: &str| {
        let inside = diff.iter().any(|e| e.name().strip_prefix('s') == Some(field));
        let whole = |section: &str| diff.get_document(section).is_some_and(|d| d.get(field).is_some());
        inside || ["d", "u", "i"].into_iter().any(whole)
    };
    fields.into_iter().any(changed)
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
    let incomplete = doc! { "$incompleteOplogHistory": 1 }.to_doc_buf();
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
        let marker = entry.statements() == [INCOMPLETE_HISTORY];
        let original = inner.unwrap_or(if marker { incomplete.doc() } else { received });
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
            let origin = Origin {
                statement: Some(statement),
                from_migrate: true,
                more: Some(more.doc()),
                ..Origin::default()
            };
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
