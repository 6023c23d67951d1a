//! The cursors of several shards as one stream of documents.
//!
//! Sorted streams are merged by the sort key of each shard's next document, computed here by the code that sorted them
//! there; so the shards are asked for whole documents, and the projection is applied after the merge. Unsorted streams
//! follow one another as their batches arrive. No shard is asked for more than the client's batch can take.
//!
//! Invariant: a document leaves its buffer only when it is in the batch; an error loses the cursor, never a document.

use super::body::{ArrayBuilder, Versions, cursor_id};
use super::cluster::Call;
use super::cursor::BATCH_BYTES_MAX;
use super::task::Task;
use crate::chunk::ShardId;
use document::{Doc, DocBuf, DocWriter, Document, Result, Value, ValueRef, bail, doc};
use futures::future::join_all;
use query::pipeline::sort::SORT_KEY;
use query::projection::Projection;
use query::sort::SortSpec;
use std::borrow::Cow;

/// Documents, and about how many bytes of them, that a pipeline which runs here takes at a time.
const PULL: usize = 500;
const PULL_BYTES: usize = 1024 * 1024;

/// Documents of one reply, not yet taken.
#[derive(Default)]
struct Buffer {
    reply: Vec<u8>,
    /// Where the next documents lie in `reply`, the next one last.
    places: Vec<(u32, u32)>,
}

impl Buffer {
    fn of(reply: DocBuf) -> Result<Buffer> {
        let bytes = reply.into_bytes();
        let base = bytes.as_ptr() as usize;
        let mut places = Vec::new();
        let cursor = Doc::from_validated(&bytes).get_document("cursor");
        let batch = cursor.and_then(|c| c.get("firstBatch").or_else(|| c.get("nextBatch")));
        let Some(batch) = batch.and_then(|v| v.as_array()) else {
            bail!(OPERATION_FAILED, "a shard answered without a batch of documents")
        };
        for e in batch.iter() {
            let value = e.value_bytes();
            let at = value.as_ptr() as usize - base;
            places.push((at as u32, (at + value.len()) as u32));
        }
        places.reverse();
        Ok(Buffer { reply: bytes, places })
    }
    fn peek(&self) -> Option<Doc<'_>> {
        let (from, to) = *self.places.last()?;
        Some(Doc::from_validated(&self.reply[from as usize..to as usize]))
    }
    fn drop_first(&mut self) {
        self.places.pop();
        if self.places.is_empty() {
            self.reply = Vec::new();
        }
    }
}

/// One shard's cursor.
struct Stream {
    shard: ShardId,
    /// 0 once the shard has sent everything.
    id: i64,
    buffer: Buffer,
    /// The sort key of the buffer's first document.
    key: Vec<u8>,
}

/// Several shards' cursors.
pub struct Merge {
    ns: String,
    streams: Vec<Stream>,
    order: Order,
    projection: Option<Projection>,
    skip: u64,
    /// How many may still be given out.
    limit: Option<u64>,
}

/// In which order streams are merged.
enum Order {
    None,
    /// By the key computed of each document.
    Sort(SortSpec),
    /// By the `$sortKey` that shards put into their documents, which is taken out.
    SortKeyField,
}

/// What is done to the merged stream.
#[derive(Default)]
pub struct Shape {
    pub sort: Option<SortSpec>,
    /// The documents carry their keys as `$sortKey`.
    pub sort_key_field: bool,
    pub projection: Option<Projection>,
    pub skip: u64,
    pub limit: Option<u64>,
}

enum Next {
    From(usize),
    /// Some streams have to be asked first.
    Ask,
    End,
}

impl Merge {
    /// Merges the first batches that these shards answered.
    pub fn new(ns: &str, replies: Vec<(ShardId, DocBuf)>, shape: Shape) -> Result<Merge> {
        let mut streams = Vec::with_capacity(replies.len());
        for (shard, reply) in replies {
            let id = cursor_id(reply.doc());
            streams.push(Stream { shard, id, buffer: Buffer::of(reply)?, key: Vec::new() });
        }
        let Shape { sort, sort_key_field, projection, skip, limit } = shape;
        let order = match sort {
            _ if sort_key_field => Order::SortKeyField,
            Some(sort) => Order::Sort(sort),
            None => Order::None,
        };
        let mut merge = Merge { ns: ns.to_string(), streams, order, projection, skip, limit };
        for i in 0..merge.streams.len() {
            merge.load_key(i)?;
        }
        Ok(merge)
    }
    /// The rest of one shard's cursor.
    pub fn rest_of(ns: &str, shard: ShardId, id: i64) -> Merge {
        let streams = vec![Stream { shard, id, buffer: Buffer::default(), key: Vec::new() }];
        Merge { ns: ns.to_string(), streams, order: Order::None, projection: None, skip: 0, limit: None }
    }
    pub fn open_cursors(&self) -> Vec<(ShardId, i64)> {
        self.streams.iter().filter(|s| s.id != 0).map(|s| (s.shard.clone(), s.id)).collect()
    }

    /// What shards have sent and nobody has taken.
    pub fn held_bytes(&self) -> usize {
        self.streams.iter().map(|s| s.buffer.reply.len()).sum()
    }

    fn is_unordered(&self) -> bool {
        matches!(self.order, Order::None)
    }
    /// A stream's next document, as it leaves here.
    fn head(&self, i: usize) -> Option<Cow<'_, [u8]>> {
        let doc = self.streams[i].buffer.peek()?;
        Some(match self.order {
            Order::SortKeyField => Cow::Owned(
                DocWriter::build(|w| {
                    doc.iter().filter(|e| e.name_bytes() != SORT_KEY.as_bytes()).for_each(|e| w.element(&e))
                })
                .into_bytes(),
            ),
            _ => Cow::Borrowed(doc.bytes()),
        })
    }
    fn load_key(&mut self, i: usize) -> Result<()> {
        let stream = &mut self.streams[i];
        let Some(doc) = stream.buffer.peek() else { return Ok(()) };
        match &self.order {
            Order::None => {}
            Order::Sort(sort) => stream.key = sort.key(doc)?,
            Order::SortKeyField => {
                stream.key = match doc.get(SORT_KEY) {
                    Some(ValueRef::Binary(_, key)) => key.to_vec(),
                    _ => Vec::new(),
                }
            }
        }
        Ok(())
    }
    fn next(&self) -> Next {
        if self.limit == Some(0) {
            return Next::End;
        }
        let has_next = |s: &Stream| s.buffer.peek().is_some();
        let waiting = |s: &Stream| s.id != 0 && !has_next(s);
        if self.is_unordered() {
            return match self.streams.iter().position(has_next) {
                Some(i) => Next::From(i),
                None if self.streams.iter().any(waiting) => Next::Ask,
                None => Next::End,
            };
        }
        if self.streams.iter().any(waiting) {
            return Next::Ask;
        }
        let ready = self.streams.iter().enumerate().filter(|(_, s)| has_next(s));
        ready.min_by(|(_, a), (_, b)| a.key.cmp(&b.key)).map_or(Next::End, |(i, _)| Next::From(i))
    }

    /// Adds up to `documents_max` documents to the batch, waiting for shards until it is full; whether there can be more.
    pub async fn fill(
        &mut self,
        task: &Task<'_>,
        batch: &mut ArrayBuilder,
        documents_max: usize,
    ) -> Result<bool> {
        let mut projected = Vec::new();
        while batch.len() < documents_max {
            match self.next() {
                Next::End => {
                    self.close(task);
                    return Ok(false);
                }
                Next::Ask => self.ask(task, self.wanted(documents_max, batch.len())).await?,
                Next::From(i) if self.skip > 0 => {
                    self.skip -= 1;
                    self.advance(i)?;
                }
                Next::From(i) => {
                    let Some(head) = self.head(i) else { continue };
                    let doc = Doc::from_validated(&head);
                    let doc = match &self.projection {
                        None => doc,
                        Some(projection) => {
                            projected.clear();
                            projection.apply(doc, &mut projected)?;
                            Doc::from_validated(&projected)
                        }
                    };
                    if !batch.is_empty() && batch.byte_len() + doc.bytes().len() > BATCH_BYTES_MAX {
                        return Ok(true);
                    }
                    batch.push(doc);
                    drop(head);
                    self.limit = self.limit.map(|n| n - 1);
                    self.advance(i)?;
                }
            }
        }
        let ended = matches!(self.next(), Next::End);
        if ended {
            self.close(task);
        }
        Ok(!ended)
    }
    /// The next documents, as they come from the shards; empty at the end. For pipelines that run here.
    pub async fn next_documents(&mut self, task: &Task<'_>) -> Result<Vec<DocBuf>> {
        let (mut out, mut bytes) = (Vec::new(), 0);
        while out.len() < PULL && bytes < PULL_BYTES {
            match self.next() {
                Next::End => break,
                Next::Ask if !out.is_empty() => break,
                Next::Ask => self.ask(task, None).await?,
                Next::From(i) => {
                    let next = self.head(i).map(|d| DocBuf::from_validated(d.into_owned()));
                    bytes += next.as_ref().map_or(0, |d| d.bytes().len());
                    out.extend(next);
                    self.advance(i)?;
                }
            }
        }
        Ok(out)
    }

    fn advance(&mut self, i: usize) -> Result<()> {
        self.streams[i].buffer.drop_first();
        self.load_key(i)
    }

    /// The most documents of one shard that a batch can still take; `None` where only its bytes are bounded.
    fn wanted(&self, documents_max: usize, len: usize) -> Option<u64> {
        (documents_max != usize::MAX).then(|| self.skip.saturating_add((documents_max - len) as u64))
    }
    /// Asks every shard whose buffer is empty for its next batch, of so many documents, all at once.
    async fn ask(&mut self, task: &Task<'_>, wanted: Option<u64>) -> Result<()> {
        let empty: Vec<usize> = (0..self.streams.len())
            .filter(|i| self.streams[*i].id != 0 && self.streams[*i].buffer.peek().is_none())
            .collect();
        let asked = empty.iter().map(|i| self.get_more(task, &self.streams[*i], wanted));
        let replies = join_all(asked).await;
        let mut failed = None;
        for (i, reply) in empty.into_iter().zip(replies) {
            match reply {
                Ok(reply) => {
                    self.streams[i].id = cursor_id(reply.doc());
                    self.streams[i].buffer = Buffer::of(reply)?;
                    self.load_key(i)?;
                }
                Err(e) => failed = Some(e),
            }
        }
        failed.map_or(Ok(()), Err)
    }
    async fn get_more(&self, task: &Task<'_>, stream: &Stream, wanted: Option<u64>) -> Result<DocBuf> {
        let (db, collection) = self.ns.split_once('.').unwrap_or((&self.ns, ""));
        let mut command: Document = doc! { "getMore": Value::Int64(stream.id), "collection": collection };
        if let Some(n) = wanted {
            command.push("batchSize", i64::try_from(n).unwrap_or(i64::MAX));
        }
        let lsid = super::body::take(task.body(), &["lsid"]);
        command.0.extend(lsid);
        let body = task.own(&command, db, &Versions::NONE);
        let call = Call::new(&stream.shard, body.doc());
        task.call(call).await.map_err(|e| e.error)
    }
    /// The limit is reached: what shards still hold open is closed.
    pub fn close(&mut self, task: &Task<'_>) {
        let open = self.open_cursors();
        for stream in &mut self.streams {
            stream.id = 0;
        }
        super::cursor::kill_on_shards(&task.router.cluster, &self.ns, open);
    }
}
