//! Where the rows of a cursor come from.

use super::aggregate::PipelineRows;
use super::tail::TailRows;
use crate::change_stream::ChangeStreamRows;
use crate::exec::{Output, Query};
use crate::oplog_view::OplogRows;
use crate::transaction::Transaction;
use crate::{Node, Operation};
use document::{DocBuf, Document, Error, Result, Timestamp, err};
use runtime::Instant;
use std::collections::VecDeque;
use std::sync::Arc;
use storage::log::Position;
use storage::{Collection, CollectionSnapshot};

/// Rows that are pulled in batches. Between two calls it needs nothing of the node.
pub enum Rows {
    Query(Box<Query>),
    Pipeline(Box<PipelineRows>),
    Oplog(Box<OplogRows>),
    Documents(VecDeque<DocBuf>),
    Tail(Box<TailRows>),
    ChangeStream(Box<ChangeStreamRows>),
    /// The collection that was read, by its UUID, is gone: the next batch is an error.
    Dropped([u8; 16]),
}

impl Rows {
    pub fn empty() -> Rows {
        Rows::Documents(VecDeque::new())
    }
    pub fn of(documents: impl IntoIterator<Item = DocBuf>) -> Rows {
        Rows::Documents(documents.into_iter().collect())
    }
    /// About how many bytes of results, or of what they are made of, it holds.
    pub fn held_bytes(&self) -> usize {
        match self {
            Rows::Query(q) => q.sorted_bytes(),
            Rows::Pipeline(p) => p.held_bytes(),
            Rows::Documents(list) => list.iter().map(|d| d.bytes().len()).sum(),
            Rows::Oplog(_) | Rows::Tail(_) | Rows::ChangeStream(_) | Rows::Dropped(_) => 0,
        }
    }
    /// A tailable cursor that waits for data.
    pub fn awaits_data(&self) -> bool {
        match self {
            Rows::Tail(tail) => tail.await_data,
            Rows::ChangeStream(_) => !self.ended(),
            _ => false,
        }
    }
    /// Whether even an empty batch is worth a reply now.
    pub fn has_news(&self) -> bool {
        matches!(self, Rows::ChangeStream(stream) if stream.has_news())
    }
    /// Waits until there may be more than at `seen`, or until the time is up.
    ///
    /// # Errors
    /// Interrupts, and a log that takes nothing any more.
    pub async fn await_news(
        &mut self,
        node: &Node,
        op: &Operation,
        seen: Position,
        until: Instant,
    ) -> Result<()> {
        match self {
            Rows::Tail(tail) => tail.await_news(node, op, seen, until).await,
            Rows::ChangeStream(stream) => stream.await_news(node, op, until).await,
            _ => Ok(()),
        }
    }
    /// `postBatchResumeToken` of a change stream.
    pub fn resume_token(&self) -> Option<Document> {
        match self {
            Rows::ChangeStream(stream) => Some(stream.token()),
            _ => None,
        }
    }
    /// Whether the next batch may hold what was written after the first, committed or not.
    pub fn reads_anew(&self) -> bool {
        match self {
            Rows::Query(q) => q.is_released(),
            Rows::Pipeline(_) | Rows::Oplog(_) | Rows::Tail(_) => true,
            Rows::Documents(_) | Rows::ChangeStream(_) | Rows::Dropped(_) => false,
        }
    }
    /// Whether nothing more will come.
    pub fn ended(&self) -> bool {
        match self {
            Rows::Query(q) => q.ended(),
            Rows::Pipeline(p) => p.ended(),
            Rows::Oplog(o) => o.ended(),
            Rows::Documents(d) => d.is_empty(),
            Rows::Tail(t) => t.ended(),
            Rows::ChangeStream(s) => s.ended(),
            Rows::Dropped(_) => false,
        }
    }
    /// Puts rows into `out` until it is full or there are no more.
    pub async fn fill(&mut self, node: &Arc<Node>, op: &Arc<Operation>, out: &mut dyn Output) -> Result<()> {
        match self {
            Rows::Query(q) => q.fill(node, op, out).await,
            Rows::Pipeline(p) => p.fill(node, op, out).await,
            Rows::Oplog(o) => o.fill(op, out).await,
            Rows::Tail(t) => t.fill(node, op, out).await,
            Rows::ChangeStream(s) => s.fill(node, op, out).await,
            Rows::Dropped(uuid) => Err(dropped(*uuid)),
            Rows::Documents(list) => {
                while let Some(doc) = list.front() {
                    if !out.put(doc.doc())? {
                        break;
                    }
                    list.pop_front();
                }
                Ok(())
            }
        }
    }
    /// The query of a collection that it comes from.
    pub fn query(&self) -> Option<&Query> {
        match self {
            Rows::Query(q) => Some(q),
            Rows::Pipeline(p) => p.query(),
            _ => None,
        }
    }
    /// The cluster time at which it reads, for a snapshot read.
    pub fn read_time(&self, op: &Operation) -> Option<Timestamp> {
        op.transaction().and_then(|t| t.read_time())
    }
    /// The moment of a read outside transactions, if later batches need it: the stages of a pipeline may read other collections.
    pub fn reader(&self, op: &Operation) -> Option<Arc<Transaction>> {
        let moment = op.transaction().filter(|t| t.only_reads());
        moment.filter(|_| matches!(self, Rows::Pipeline(_))).cloned()
    }
    /// Gives back what an idle cursor need not hold.
    pub fn release(&mut self) -> Option<CollectionSnapshot> {
        match self {
            Rows::Query(q) => q.release(),
            Rows::Pipeline(p) => p.release(),
            Rows::Oplog(_)
            | Rows::Documents(_)
            | Rows::Tail(_)
            | Rows::ChangeStream(_)
            | Rows::Dropped(_) => None,
        }
    }
    /// Takes it again from the collection as it is now.
    pub fn resume(&mut self, collection: &Collection) {
        match self {
            Rows::Query(q) => q.resume(collection),
            Rows::Pipeline(p) => p.resume(collection),
            Rows::Oplog(_)
            | Rows::Documents(_)
            | Rows::Tail(_)
            | Rows::ChangeStream(_)
            | Rows::Dropped(_) => {}
        }
    }
    /// The namespace read, where it is not the cursor's own (a view's).
    pub fn ns(&self) -> Option<&str> {
        match self {
            Rows::Pipeline(p) => Some(&p.ns),
            _ => None,
        }
    }
    /// The collection that must still be there for the next batch.
    pub fn uuid(&self) -> Option<[u8; 16]> {
        match self {
            Rows::Query(q) => Some(q.uuid),
            Rows::Dropped(uuid) => Some(*uuid),
            Rows::Pipeline(p) => p.uuid(),
            Rows::Tail(t) => t.uuid(),
            Rows::Oplog(_) | Rows::Documents(_) | Rows::ChangeStream(_) => None,
        }
    }
}

/// The error of a cursor whose collection is gone.
pub fn dropped(uuid: [u8; 16]) -> Error {
    err!(QUERY_PLAN_KILLED, "collection dropped. UUID {}", uuid::Uuid::from_bytes(uuid))
}
