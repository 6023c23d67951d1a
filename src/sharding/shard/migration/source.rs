//! What a donor hands out: the clone of a snapshot, then differences of snapshots.
//!
//! ```text
//! S0  snapshot when the donation begins      clone: every document of S0 in the range
//! S1  snapshot when the clone is out         difference S0..S1
//! S2  ...                                    difference S1..S2
//! Sn  after the critical section began       difference Sn-1..Sn, the last: nothing changes any more
//! ```
//! A difference yields (before, after) of every record that changed. After in the range: the document goes over
//! whole. Before in the range and after not (deleted, or its key changed): its `_id` goes over as deleted. There is
//! no list of what was written meanwhile, so no write can be missing from it.

use super::range::{KeyRange, Position, SLICE_TIME_MAX, is_multikey, walk_records, walk_slice};
use crate::shard::resharding::Part;
use document::{Doc, DocBuf, DocWriter, Result, bail};
use runtime::Instant;
use std::ops::Bound;
use storage::tree::difference;
use storage::{CollectionSnapshot, CollectionView, RecordId};

/// The most bytes of documents in one batch; one document always fits.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024 - 64 * 1024;

/// Raw documents under the names "0", "1", ...: an array being written.
struct RawArray {
    bytes: Vec<u8>,
    n: usize,
}

impl RawArray {
    fn new() -> RawArray {
        RawArray { bytes: vec![0; 4], n: 0 }
    }
    fn push(&mut self, doc: Doc<'_>) {
        let mut w = DocWriter::resume(&mut self.bytes);
        w.with_index(self.n, |w, name| w.document(name, doc));
        self.n += 1;
    }
    fn len(&self) -> usize {
        self.bytes.len()
    }
    /// Whether a document of `bytes` still fits, beside another array of the same answer.
    fn takes(&self, bytes: usize, beside: Option<&RawArray>) -> bool {
        let (n, used) = beside.map_or((0, 0), |b| (b.n, b.len()));
        self.n + n == 0 || self.len() + used + bytes + 16 <= BATCH_BYTES_MAX
    }
    fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.bytes
    }
}

struct Round {
    now: CollectionSnapshot,
    /// Last key of the difference that went out.
    after: Option<Vec<u8>>,
}

/// Which documents of the collection are handed out.
pub enum Selection {
    /// A range, walked by the index in this slot.
    Range { range: KeyRange, index: usize },
    /// What one recipient of a resharding gets: the whole collection is walked.
    Part(Part),
}

impl Selection {
    fn contains(&self, doc: Doc<'_>) -> bool {
        match self {
            Selection::Range { range, .. } => range.contains(doc),
            Selection::Part(part) => part.contains(doc),
        }
    }
    /// Walks on for a moment over documents, of which some may have to be left out; answers whether the end was reached.
    fn walk(
        &self,
        view: &CollectionSnapshot,
        position: &mut Position,
        f: impl FnMut(RecordId) -> bool,
    ) -> bool {
        match self {
            Selection::Range { range, index } => walk_slice(view, *index, range, position, f),
            Selection::Part(_) => walk_records(view, position, f),
        }
    }
    /// Whether a document that the walk has come to is not handed out. An index lists what is in the range and nothing else,
    /// unless it is multikey.
    fn leaves_out(&self, view: &CollectionSnapshot, doc: Doc<'_>) -> bool {
        match self {
            Selection::Range { range, index } => is_multikey(view, *index) && !range.contains(doc),
            Selection::Part(part) => !part.contains(doc),
        }
    }
}

/// The state of one donation's data.
pub struct Source {
    selection: Selection,
    cloning: Option<Position>,
    previous: CollectionSnapshot,
    round: Option<Round>,
    /// Documents of the range on the recipient once it has taken everything that went out.
    pub documents: i64,
    pub cloned: i64,
    pub cloned_bytes: i64,
}

impl Source {
    pub fn new(selection: Selection, snapshot: CollectionSnapshot) -> Source {
        Source {
            selection,
            cloning: Some(Position::default()),
            previous: snapshot,
            round: None,
            documents: 0,
            cloned: 0,
            cloned_bytes: 0,
        }
    }

    /// # Errors
    /// Why something of the collection cannot be handed out, if anything could not.
    pub fn check(&self) -> Result<()> {
        match &self.selection {
            Selection::Range { .. } => Ok(()),
            Selection::Part(part) => part.check(),
        }
    }

    /// The next batch of the clone as `{objects: [...]}`; empty when all is out.
    pub async fn clone_batch(&mut self) -> Result<DocBuf> {
        let mut batch = RawArray::new();
        while let Some(position) = &mut self.cloning {
            let (view, selection, mut full) = (&self.previous, &self.selection, false);
            let ended = selection.walk(view, position, |record| {
                let Some(doc) = view.get(record) else { return true };
                if selection.leaves_out(view, doc) {
                    return true;
                }
                full = !batch.takes(doc.bytes().len(), None);
                if !full {
                    batch.push(doc);
                }
                !full
            });
            if ended {
                self.cloning = None;
            }
            if full {
                break;
            }
            tokio::task::yield_now().await;
        }
        self.cloned += batch.n as i64;
        self.documents += batch.n as i64;
        self.cloned_bytes += batch.len() as i64;
        let objects = batch.finish();
        Ok(DocWriter::build(|w| w.array("objects", Doc::from_validated(&objects))))
    }

    /// The next part of what changed, as `{size, deleted, reload, more}`; `size` 0 when nothing did. `latest` takes a
    /// snapshot of the collection; `more` says that this difference goes on in the next answer.
    ///
    /// # Errors
    /// NotYetInitialized (94) while the clone is not out; NamespaceNotFound (26) when the collection is gone.
    pub async fn changes(&mut self, latest: impl Fn() -> Result<CollectionSnapshot>) -> Result<DocBuf> {
        if self.cloning.is_some() {
            bail!(NOT_YET_INITIALIZED, "the clone of the range is not finished");
        }
        if self.round.is_none() {
            let now = latest()?;
            if now.meta().uuid != self.previous.meta().uuid {
                bail!(NAMESPACE_NOT_FOUND, "the collection was dropped during its migration");
            }
            self.round = Some(Round { now, after: None });
        }
        let (mut deleted, mut reload) = (RawArray::new(), RawArray::new());
        let mut more = false;
        while self.round.is_some() {
            match self.changes_slice(&mut deleted, &mut reload) {
                Slice::Ended => {
                    if let Some(round) = self.round.take() {
                        self.previous = round.now;
                    }
                }
                Slice::Full => {
                    more = true;
                    break;
                }
                Slice::GoesOn => tokio::task::yield_now().await,
            }
        }
        let size = if deleted.n + reload.n == 0 { 0 } else { (deleted.len() + reload.len()) as i64 };
        let (deleted, reload) = (deleted.finish(), reload.finish());
        Ok(DocWriter::build(|w| {
            w.i64("size", size);
            w.array("deleted", Doc::from_validated(&deleted));
            w.array("reload", Doc::from_validated(&reload));
            w.bool("more", more);
        }))
    }

    fn changes_slice(&mut self, deleted: &mut RawArray, reload: &mut RawArray) -> Slice {
        let Some(round) = &mut self.round else { return Slice::Ended };
        let lo = round.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let started = Instant::now();
        let mut last = None;
        let mut out = Slice::Ended;
        for (n, change) in
            difference(self.previous.record_tree(), round.now.record_tree(), lo, Bound::Unbounded).enumerate()
        {
            if n % 32 == 31 && started.elapsed() > SLICE_TIME_MAX {
                out = Slice::GoesOn;
                break;
            }
            let in_range =
                |bytes: Option<&[u8]>| bytes.is_some_and(|b| self.selection.contains(Doc::from_validated(b)));
            let (was, is) = (in_range(change.before), in_range(change.after));
            if let Some(after) = change.after.filter(|_| is) {
                let doc = Doc::from_validated(after);
                if !reload.takes(doc.bytes().len(), Some(deleted)) {
                    out = Slice::Full;
                    break;
                }
                reload.push(doc);
            } else if let Some(before) = change.before.filter(|_| was) {
                let id = DocWriter::build(|w| {
                    if let Some(e) = Doc::from_validated(before).element("_id") {
                        w.element(&e);
                    }
                });
                if !deleted.takes(id.bytes().len(), Some(reload)) {
                    out = Slice::Full;
                    break;
                }
                deleted.push(id.doc());
            }
            self.documents += i64::from(is) - i64::from(was);
            last = Some(change.key);
        }
        if let Some(key) = last {
            round.after = Some(key.to_vec());
        }
        out
    }
}

enum Slice {
    Ended,
    Full,
    GoesOn,
}
