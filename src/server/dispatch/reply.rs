//! The reply under construction: handlers write straight into the buffer that goes to the socket.

use document::{Doc, DocWriter, Document};

/// What happens on the connection after this reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum After {
    #[default]
    Continue,
    /// Send the reply, then close.
    Close,
    /// Send nothing and close (`shutdown`, a fail point's closeConnection).
    Vanish,
    /// An exhaust reply: set moreToCome and call the handler again with the request of the next round, this document.
    Again,
}

/// One reply document, open at its end. The handler writes its fields; the dispatcher appends `ok` and what every
/// reply carries, or replaces everything by an error.
///
/// Where the handler wrote `ok` itself (writes with errors keep ok:1 anyway; forwarded replies), it calls
/// [`Reply::closed`].
pub struct Reply {
    out: Vec<u8>,
    /// Where the document starts: what lies before it is the message's header.
    start: usize,
    pub after: After,
    /// The handler wrote `ok` itself.
    complete: bool,
}

impl Reply {
    /// Opens a reply document at the end of `out`.
    pub fn open(mut out: Vec<u8>) -> Reply {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        Reply { out, start, after: After::Continue, complete: false }
    }
    /// Writes further fields.
    pub fn writer(&mut self) -> DocWriter<'_> {
        DocWriter::resume(&mut self.out)
    }
    /// Appends all fields of `fields`.
    pub fn fields(&mut self, fields: &Document) {
        fields.write_fields(&mut self.writer());
    }
    /// Appends all fields of `fields`.
    pub fn fields_of(&mut self, fields: Doc<'_>) {
        self.writer().fields_of(fields);
    }
    /// Says that the fields written include `ok`; the dispatcher then adds only the times.
    pub fn closed(&mut self) {
        self.complete = true;
    }
    pub fn is_closed(&self) -> bool {
        self.complete
    }
    /// Forgets what was written.
    pub fn clear(&mut self) {
        self.out.truncate(self.start + 4);
        self.complete = false;
    }
    /// Bytes of the document written so far.
    pub fn len(&self) -> usize {
        self.out.len() - self.start
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 4
    }
    /// Ends the document and returns the whole buffer, header included.
    pub fn finish(mut self) -> Vec<u8> {
        self.out.push(0);
        let length = (self.out.len() - self.start) as u32;
        self.out[self.start..self.start + 4].copy_from_slice(&length.to_le_bytes());
        self.out
    }
}
