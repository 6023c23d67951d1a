//! The documents of one reply, written as the bytes of a BSON array while they are found.

use document::{Doc, DocBuf, DocWriter, Document, Result, Timestamp, bail};
use query::pipeline::stage::{DOCUMENT_BYTES_MAX, too_large};

/// Bytes of documents in a batch beyond which no further document is added.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An array under construction, bounded in documents and bytes. A document is always accepted while it is the first.
pub struct Batch {
    bytes: Vec<u8>,
    count: usize,
    count_max: usize,
    bytes_max: usize,
}

impl Batch {
    /// Takes up to `count_max` documents.
    pub fn new(count_max: usize) -> Batch {
        Batch { bytes: vec![0; 4], count: 0, count_max, bytes_max: BATCH_BYTES_MAX }
    }
    /// The same, with another bound on bytes.
    pub fn with_bytes(count_max: usize, bytes_max: usize) -> Batch {
        Batch { bytes_max, ..Batch::new(count_max) }
    }
    pub fn count(&self) -> usize {
        self.count
    }
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Bytes written so far.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }
    /// Whether no further document may be added, however small.
    pub fn is_full(&self) -> bool {
        self.count >= self.count_max || (self.count > 0 && self.bytes.len() >= self.bytes_max)
    }
    /// Appends the document; false (and nothing has changed) when it does not fit.
    pub fn push(&mut self, doc: Doc<'_>) -> bool {
        if !self.admits(doc.bytes().len()) {
            return false;
        }
        self.head();
        self.bytes.extend_from_slice(doc.bytes());
        self.count += 1;
        true
    }
    /// Appends the document that `write` appends to the buffer; `Ok(false)` when it did not fit.
    pub fn push_with(&mut self, write: &mut dyn FnMut(&mut Vec<u8>) -> Result<()>) -> Result<bool> {
        if self.is_full() {
            return Ok(false);
        }
        let before = self.bytes.len();
        self.head();
        let start = self.bytes.len();
        if let Err(e) = write(&mut self.bytes) {
            self.bytes.truncate(before);
            return Err(e);
        }
        let length = self.bytes.len() - start;
        if length > DOCUMENT_BYTES_MAX {
            let text = too_large(&DocBuf::from_validated(self.bytes[start..].to_vec()));
            self.bytes.truncate(before);
            bail!(BSON_OBJECT_TOO_LARGE, "{text}");
        }
        if self.count > 0 && before + length > self.bytes_max {
            self.bytes.truncate(before);
            return Ok(false);
        }
        self.count += 1;
        Ok(true)
    }
    fn admits(&self, length: usize) -> bool {
        self.count < self.count_max && (self.count == 0 || self.bytes.len() + length <= self.bytes_max)
    }
    fn head(&mut self) {
        self.bytes.push(0x03);
        append_index(&mut self.bytes, self.count);
    }
    /// The array, closed.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.bytes
    }
    /// Writes `{<name>: [..], id, ns}` as the reply's `cursor`. `name` is `firstBatch` or `nextBatch`.
    pub fn write_cursor(self, w: &mut DocWriter<'_>, name: &str, id: i64, ns: &str) {
        self.write_cursor_at(w, name, id, ns, None, None);
    }
    /// The same, with the token to resume a change stream behind, and the cluster time at which it reads.
    pub fn write_cursor_at(
        self,
        w: &mut DocWriter<'_>,
        name: &str,
        id: i64,
        ns: &str,
        token: Option<Document>,
        at: Option<Timestamp>,
    ) {
        let bytes = self.finish();
        w.document_with("cursor", |w| {
            w.array(name, Doc::from_validated(&bytes));
            if let Some(token) = &token {
                w.document_with("postBatchResumeToken", |w| token.write_fields(w));
            }
            if let Some(at) = at {
                w.timestamp("atClusterTime", at);
            }
            w.i64("id", id);
            w.string("ns", ns);
        });
    }
}

/// What a query puts its results into.
pub trait Output: Send {
    /// Whether nothing more may be put in now.
    fn is_full(&self) -> bool;
    /// False, and nothing has changed, when the document does not fit now.
    ///
    /// # Errors
    /// Those of the work of taking it, after which it may be put in again.
    fn put(&mut self, doc: Doc<'_>) -> Result<bool>;
    /// The same for a document that `write` appends to a buffer.
    fn put_with(&mut self, write: &mut dyn FnMut(&mut Vec<u8>) -> Result<()>) -> Result<bool>;
}

impl Output for Batch {
    fn is_full(&self) -> bool {
        Batch::is_full(self)
    }
    fn put(&mut self, doc: Doc<'_>) -> Result<bool> {
        Ok(self.push(doc))
    }
    fn put_with(&mut self, write: &mut dyn FnMut(&mut Vec<u8>) -> Result<()>) -> Result<bool> {
        self.push_with(write)
    }
}

/// Owned documents, for a pipeline.
#[derive(Default)]
pub struct Documents {
    pub list: Vec<DocBuf>,
    bytes: usize,
    /// Where each is written, to be copied once its length is known.
    scratch: Vec<u8>,
}

/// Documents and bytes handed to a pipeline at once.
const DOCUMENTS_MAX: usize = 512;
const DOCUMENTS_BYTES_MAX: usize = 1024 * 1024;

impl Output for Documents {
    fn is_full(&self) -> bool {
        self.list.len() >= DOCUMENTS_MAX || self.bytes >= DOCUMENTS_BYTES_MAX
    }
    fn put(&mut self, doc: Doc<'_>) -> Result<bool> {
        if Output::is_full(self) {
            return Ok(false);
        }
        self.bytes += doc.bytes().len();
        self.list.push(doc.to_owned());
        Ok(true)
    }
    fn put_with(&mut self, write: &mut dyn FnMut(&mut Vec<u8>) -> Result<()>) -> Result<bool> {
        if Output::is_full(self) {
            return Ok(false);
        }
        self.scratch.clear();
        write(&mut self.scratch)?;
        self.bytes += self.scratch.len();
        self.list.push(DocBuf::from_validated(self.scratch.clone()));
        Ok(true)
    }
}

/// The decimal digits of `n` and a NUL.
fn append_index(out: &mut Vec<u8>, n: usize) {
    let mut buffer = [0u8; 20];
    let (mut at, mut n) = (buffer.len(), n);
    loop {
        at -= 1;
        buffer[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&buffer[at..]);
    out.push(0);
}
