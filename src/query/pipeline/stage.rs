//! What a running stage is, and what it is given and may give at once.
//!
//! A stage is synchronous. It takes one document at a time and appends what becomes of it to a [`Batch`], which is bounded
//! in rows and in bytes; when the batch is full it stops, says so, and is resumed once there is room.
//!
//! ```text
//!              push(document) ─> Continue          the next document, please
//!                             ─> More              the batch is full and I hold more: resume me
//!                             ─> Done              nothing more comes out of me, whatever goes in
//! after More:  resume()       ─> the same three
//! input ended: end()          ─> Continue          that was all
//!                             ─> More              the batch is full: call end again
//! ```
//!
//! What a stage has to do in return:
//! - after every push to the batch that is one of several for one call, ask [`Batch::is_full`] and return [`Flow::More`];
//! - count work in loops that are long for one document ([`document::meter::spend`]); allocations and expressions count
//!   by themselves;
//! - charge what it keeps from one document to the next to an [`Account`](super::account::Account), and when that says it is over its limit
//!   either spill ([`super::spill`]: sorted runs, merged again) or fail with 292 (`allowDiskUse: false`) or 146.
//!
//! The executor ([`super::Execution`]) does the rest: it keeps a batch between any two stages, always runs the last stage that
//! can run, so that no more than one batch waits anywhere, and returns to its caller after about a millisecond of work,
//! where deadlines and kills are looked at and other tasks get the worker.

use document::{DocBuf, Result, bail};
use std::collections::VecDeque;

/// How a stage goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    /// The output is full and the stage holds more.
    More,
    /// The stage will produce nothing more whatever is pushed (`$limit` reached): the source can stop.
    Done,
}

/// One running stage; see the head of this file.
pub trait Stage: Send {
    /// Takes a document. Not called while the stage has more to give.
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow>;
    /// Goes on after [`Flow::More`].
    fn resume(&mut self, out: &mut Batch) -> Result<Flow> {
        let _ = out;
        Ok(Flow::Continue)
    }
    /// The input has ended: appends the rest. Called until it returns something else than [`Flow::More`].
    fn end(&mut self, out: &mut Batch) -> Result<Flow> {
        let _ = out;
        Ok(Flow::Continue)
    }
    /// What it kept and wrote to files, for explain.
    fn use_of_memory(&self) -> Option<super::account::Use> {
        None
    }
}

/// Rows and bytes that go from stage to stage at once.
const ROWS_MAX: usize = 512;
const BYTES_MAX: usize = 1024 * 1024;
/// The largest document that may be under way between two stages. Only what leaves the server is held to 16 MiB.
pub const UNDERWAY_BYTES_MAX: usize = 112 * 1024 * 1024;
/// The largest document that leaves the server, with the room the real server leaves for itself.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;

/// Documents on their way from one stage to the next.
#[derive(Debug, Default)]
pub struct Batch {
    docs: VecDeque<DocBuf>,
    bytes: usize,
}

impl Batch {
    pub fn new() -> Batch {
        Batch::default()
    }
    pub fn is_empty(&self) -> bool {
        self.docs.is_empty()
    }
    pub fn len(&self) -> usize {
        self.docs.len()
    }
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Whether nothing more should be appended now. A stage that appends one document for each that it takes need not ask.
    pub fn is_full(&self) -> bool {
        self.docs.len() >= ROWS_MAX || self.bytes >= BYTES_MAX
    }
    /// Appends a document.
    ///
    /// # Errors
    /// BSONObjectTooLarge (10334) for one that no stage may give.
    pub fn push(&mut self, d: DocBuf) -> Result<()> {
        let size = d.bytes().len();
        if size > UNDERWAY_BYTES_MAX {
            bail!(BSON_OBJECT_TOO_LARGE, "{}", too_large(&d));
        }
        self.bytes += size;
        self.docs.push_back(d);
        Ok(())
    }
    /// The oldest document.
    pub fn pop(&mut self) -> Option<DocBuf> {
        let d = self.docs.pop_front()?;
        self.bytes -= d.bytes().len();
        Some(d)
    }
    /// Puts a document back to the front.
    pub fn put_back(&mut self, d: DocBuf) {
        self.bytes += d.bytes().len();
        self.docs.push_front(d);
    }
    pub fn clear(&mut self) {
        *self = Batch::default();
    }
    /// Takes documents that are already at hand, however many.
    pub fn extend(&mut self, docs: impl IntoIterator<Item = DocBuf>) {
        for d in docs {
            self.bytes += d.bytes().len();
            self.docs.push_back(d);
        }
    }
    pub fn into_vec(self) -> Vec<DocBuf> {
        self.docs.into()
    }
}

/// The real server's words for a document of more than 16 MiB.
pub fn too_large(d: &DocBuf) -> String {
    let first = d.doc().iter().next().map_or(String::new(), |e| {
        let shown = crate::text::value(e.value());
        format!(" First element: {}: {}", e.name(), shown.chars().take(150).collect::<String>())
    });
    document::size_refused(d.bytes().len()).message + &first
}

/// Refuses a document that no command may give: too large or too deep.
///
/// # Errors
/// BSONObjectTooLarge (10334), Overflow (15).
pub fn checked_size(d: DocBuf) -> Result<DocBuf> {
    if d.bytes().len() > DOCUMENT_BYTES_MAX {
        bail!(BSON_OBJECT_TOO_LARGE, "{}", too_large(&d));
    }
    crate::depth::checked(d)
}
