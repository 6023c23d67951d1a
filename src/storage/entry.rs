//! What one frame of the log says.
//!
//! The payload of a frame is one BSON document, the oplog entry without what the frame itself carries:
//!
//! ```text
//! payload   { lsid?, txnNumber?, op, ns, ui?, fromMigrate?, o, o2?, imageBefore?, stmtId?, prevOpTime?, ...more }
//! frame     ts, t (the term), wall
//! shown     { lsid?, txnNumber?, op, ns, ui?, fromMigrate?, o, o2?, stmtId?, ...more, ts, t, v: 2, wall, prevOpTime? }
//! ```
//!
//! `imageBefore` is the document before an update or delete in a collection that keeps pre-images for change streams. It
//! stands in the entry so that the image is there exactly when the change is; readers of the oplog do not see it.
//!
//! `op` and `o`:
//!
//! | op | `o` | `o2` |
//! |---|---|---|
//! | `i` | the document | its `_id` and shard-key fields |
//! | `u` | the whole new document, or `{$v: 2, diff}` | `_id` and shard-key fields |
//! | `d` | `_id` and shard-key fields | |
//! | `c` | a command: create, drop, createIndexes, applyOps, ... | |
//! | `n` | anything; changes no data | |
//!
//! An entry is written without copying the document a second time: [`Draft::encode`] makes what stands before and after
//! `o`, and [`EntryParts::slices`] gives the log the three pieces.

use document::{Doc, DocBuf, DocWriter, Element, Result, ValueRef, bail};

use crate::log::FrameRef;

/// What an entry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `i`
    Insert,
    /// `u`
    Update,
    /// `d`
    Delete,
    /// `c`
    Command,
    /// `n`
    Noop,
}

impl Op {
    /// The letter in the entry. DO NOT CHANGE: they are on disk.
    pub fn letter(self) -> &'static str {
        match self {
            Op::Insert => "i",
            Op::Update => "u",
            Op::Delete => "d",
            Op::Command => "c",
            Op::Noop => "n",
        }
    }
    /// The operation of a letter.
    pub fn from_letter(letter: &str) -> Option<Op> {
        Some(match letter {
            "i" => Op::Insert,
            "u" => Op::Update,
            "d" => Op::Delete,
            "c" => Op::Command,
            "n" => Op::Noop,
            _ => return None,
        })
    }
}

/// The session statement that an entry belongs to.
#[derive(Clone, Copy, Debug)]
pub struct SessionPart<'a> {
    /// The logical session id, with `uid`.
    pub lsid: Doc<'a>,
    /// The transaction number.
    pub txn_number: i64,
    /// One statement id is written as `stmtId: n`, several as an array, none is left out.
    pub statements: &'a [i32],
    /// Timestamp and term of the session's previous entry; `(0, -1)` where there is none.
    pub previous: (u64, i64),
}

/// `o2` of an entry.
#[derive(Clone, Copy, Default)]
pub enum O2<'a> {
    /// No `o2`.
    #[default]
    None,
    /// `{_id}`, copied from the document.
    Id(Element<'a>),
    /// As given: `_id` and shard-key fields, or the `o2` of a command.
    Doc(Doc<'a>),
}

/// An entry to be written, without its `o`.
#[derive(Clone, Copy)]
pub struct Draft<'a> {
    /// What it does.
    pub op: Op,
    /// The namespace; `db.$cmd` for commands.
    pub ns: &'a str,
    /// UUID of the collection.
    pub uuid: Option<[u8; 16]>,
    /// See [`O2`].
    pub o2: O2<'a>,
    /// The session statement.
    pub session: Option<SessionPart<'a>>,
    /// Written by a migration or a range deletion: hidden from change streams.
    pub from_migrate: bool,
    /// The document before the change, for change streams.
    pub image_before: Option<Doc<'a>>,
    /// More members, written as they are (`needsRetryImage`, `reshardDest`, ...).
    pub more: Option<Doc<'a>>,
}

/// The member that holds the document before the change. DO NOT CHANGE: it is on disk.
const IMAGE_BEFORE: &str = "imageBefore";
/// The members that hold the document which a retryable findAndModify has returned, before or after its change.
pub const RETRY_IMAGES: [&str; 2] = ["preImage", "postImage"];

impl<'a> Draft<'a> {
    /// A draft with operation, namespace and UUID.
    pub fn new(op: Op, ns: &'a str, uuid: Option<[u8; 16]>) -> Draft<'a> {
        Draft {
            op,
            ns,
            uuid,
            o2: O2::None,
            session: None,
            from_migrate: false,
            image_before: None,
            more: None,
        }
    }

    /// Encodes all but `o`, of which only the length counts. Reuses the memory of `parts`.
    pub fn encode(&self, o: Doc<'_>, parts: &mut EntryParts) {
        parts.head.clear();
        parts.tail.clear();
        // Enough for all but long names and extra members: growing step by step would allocate four times.
        parts.head.reserve(256);
        parts.tail.reserve(128);
        self.write_head(&mut parts.head);
        self.write_tail(&mut parts.tail);
        let length = parts.head.len() + o.bytes().len() + parts.tail.len();
        // The log refuses entries above 64 MiB before anything is applied, so the length fits.
        parts.head[..4].copy_from_slice(&(length as u32).to_le_bytes());
    }

    /// The whole entry in one buffer, for callers to whom speed does not matter.
    pub fn to_doc_buf(&self, o: Doc<'_>) -> DocBuf {
        let mut parts = EntryParts::default();
        self.encode(o, &mut parts);
        DocBuf::from_validated(parts.slices(o).concat())
    }

    fn write_head(&self, head: &mut Vec<u8>) {
        // The writer closes what it writes as a document; the closing zero is taken off again, the document goes on.
        DocWriter::write(head, |w| {
            if let Some(session) = &self.session {
                w.document("lsid", session.lsid);
                w.i64("txnNumber", session.txn_number);
            }
            w.string("op", self.op.letter());
            w.string("ns", self.ns);
            if let Some(uuid) = &self.uuid {
                w.uuid("ui", uuid);
            }
            if self.from_migrate {
                w.bool("fromMigrate", true);
            }
        });
        head.pop();
        head.extend_from_slice(b"\x03o\0");
    }

    fn write_tail(&self, tail: &mut Vec<u8>) {
        DocWriter::write(tail, |w| {
            match &self.o2 {
                O2::None => {}
                O2::Id(id) => w.document_with("o2", |w| w.element(id)),
                O2::Doc(doc) => w.document("o2", *doc),
            }
            if let Some(image) = self.image_before {
                w.document(IMAGE_BEFORE, image);
            }
            if let Some(more) = self.more {
                w.fields_of(more);
            }
            if let Some(session) = &self.session {
                write_statements(w, session);
            }
        });
        tail.drain(..4);
    }
}

fn write_statements(w: &mut DocWriter<'_>, session: &SessionPart<'_>) {
    match session.statements {
        [] => {}
        [one] => w.i32("stmtId", *one),
        many => w.array_with("stmtId", |w| {
            for (i, statement) in many.iter().enumerate() {
                w.with_index(i, |w, name| w.i32(name, *statement));
            }
        }),
    }
    w.document_with("prevOpTime", |w| {
        w.timestamp("ts", document::Timestamp::from_u64(session.previous.0));
        w.i64("t", session.previous.1);
    });
}

/// What stands before and after `o` in an entry.
#[derive(Clone, Debug, Default)]
pub struct EntryParts {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl EntryParts {
    /// The pieces of the payload, for the log.
    pub fn slices<'a>(&'a self, o: Doc<'a>) -> [&'a [u8]; 3] {
        [&self.head, o.bytes(), &self.tail]
    }

    /// Sets the `prevOpTime` of an entry that was encoded with a session, once the entry before it in the same append
    /// has its timestamp. The length does not change.
    pub fn set_previous(&mut self, ts: u64, term: i64) {
        // The tail ends with `prevOpTime`: ... timestamp (8), 0x12 't' 0, term (8), end of prevOpTime, end of entry.
        let Some(at) = self.tail.len().checked_sub(2 + 8 + 3 + 8) else { return };
        self.tail[at..at + 8].copy_from_slice(&ts.to_le_bytes());
        self.tail[at + 11..at + 19].copy_from_slice(&term.to_le_bytes());
    }
}

/// Hands out the bytes of an entry that was encoded with a session, its `prevOpTime` naming another entry.
pub fn with_previous(payload: &[u8], ts: u64, term: i64, mut out: impl FnMut(&[u8])) {
    // It ends with `prevOpTime`: ... timestamp (8), 0x12 't' 0, term (8), end of prevOpTime, end of entry.
    let Some((head, tail)) = payload.len().checked_sub(2 + 8 + 3 + 8).map(|at| payload.split_at(at)) else {
        return out(payload);
    };
    out(head);
    out(&ts.to_le_bytes());
    out(&tail[8..11]);
    out(&term.to_le_bytes());
    out(&tail[19..]);
}

/// An entry, read.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    doc: Doc<'a>,
    /// What it does.
    pub op: Op,
    /// The namespace.
    pub ns: &'a str,
    /// UUID of the collection.
    pub uuid: Option<[u8; 16]>,
    /// See the head of the file.
    pub o: Doc<'a>,
    /// See the head of the file.
    pub o2: Option<Doc<'a>>,
}

impl<'a> Entry<'a> {
    /// Reads a payload, or one operation of an `applyOps`. Error: FailedToParse (9) when it is no entry.
    pub fn read(doc: Doc<'a>) -> Result<Entry<'a>> {
        let (mut op, mut ns, mut uuid, mut o, mut o2) = (None, None, None, None, None);
        for element in doc.iter() {
            match element.name_bytes() {
                b"op" => op = element.value().as_str().and_then(Op::from_letter),
                b"ns" => ns = element.value().as_str(),
                b"ui" => uuid = element.value().as_uuid(),
                b"o" => o = element.value().as_document(),
                b"o2" => o2 = element.value().as_document(),
                _ => {}
            }
        }
        match (op, ns, o) {
            (Some(op), Some(ns), Some(o)) => Ok(Entry { doc, op, ns, uuid, o, o2 }),
            _ => bail!(FAILED_TO_PARSE, "not a log entry: {doc:?}"),
        }
    }

    /// Reads the payload of a frame. Error: FailedToParse (9) when it is no entry.
    pub fn of_frame(frame: &FrameRef<'a>) -> Result<Entry<'a>> {
        let length = frame.payload.first_chunk().map(|b| u32::from_le_bytes(*b) as usize);
        if length != Some(frame.payload.len()) || frame.payload.len() < 5 {
            bail!(FAILED_TO_PARSE, "the log frame at position {} does not hold a document", frame.position);
        }
        Entry::read(Doc::from_validated(frame.payload))
    }

    /// The whole entry.
    pub fn doc(&self) -> Doc<'a> {
        self.doc
    }
    /// The logical session id.
    pub fn lsid(&self) -> Option<Doc<'a>> {
        self.doc.get_document("lsid")
    }
    /// The transaction number.
    pub fn txn_number(&self) -> Option<i64> {
        self.doc.get_i64("txnNumber")
    }
    /// The statement ids, written as one number or as an array.
    pub fn statements(&self) -> Vec<i32> {
        match self.doc.get("stmtId").or_else(|| self.doc.get("stmtIds")) {
            Some(ValueRef::Array(many)) => {
                many.iter().filter_map(|e| Some(e.value().as_i64()? as i32)).collect()
            }
            Some(one) => one.as_i64().map(|n| n as i32).into_iter().collect(),
            None => Vec::new(),
        }
    }
    /// The document before an update or delete, where the collection keeps pre-images.
    pub fn image_before(&self) -> Option<Doc<'a>> {
        self.doc.get_document(IMAGE_BEFORE)
    }
    /// Whether a migration or a range deletion wrote it.
    pub fn from_migrate(&self) -> bool {
        self.doc.get_bool("fromMigrate") == Some(true)
    }
    /// The name and argument of the command of an entry of op `c`.
    pub fn command(&self) -> Option<(&'a str, ValueRef<'a>)> {
        let first = self.o.iter().next()?;
        Some((first.name(), first.value()))
    }
    /// The `_id` of the document it touches.
    pub fn document_id(&self) -> Option<ValueRef<'a>> {
        match self.op {
            Op::Insert | Op::Delete => self.o.get("_id"),
            Op::Update => self.o2.unwrap_or(self.o).get("_id"),
            Op::Command | Op::Noop => None,
        }
    }
}

/// The document that `local.oplog.rs` shows for a frame.
pub fn compose(frame: &FrameRef<'_>) -> DocBuf {
    composed(frame, Reader::Client)
}

/// As [`compose`], with the images that stand beside the changes: what another member of the set takes over. An entry that no
/// reply could carry goes without the image for change streams, or as clients see it: the member then knows of the image for
/// a retry that it does not have it.
pub fn compose_whole(frame: &FrameRef<'_>) -> DocBuf {
    let members = [Reader::Member { images: true }, Reader::Member { images: false }];
    let mut composed_for = members.into_iter().map(|reader| composed(frame, reader));
    let fits = composed_for.find(|entry| entry.bytes().len() <= document::validate::Limits::USER.bytes_max);
    fits.unwrap_or_else(|| compose(frame))
}

/// The longest entry that is brought to another node whole: one that lies in another's `o2` there still fits into what the other
/// members of that node's set are sent.
const BROUGHT_BYTES_MAX: usize = document::validate::Limits::INTERNAL.bytes_max - 4096;

/// An entry as it is brought to the history of another node: without the image for change streams; and without that for a retry, of
/// which it then tells that it is missing, where the entry would be too long.
pub fn brought(payload: Doc<'_>) -> DocBuf {
    let write =
        |reader| DocWriter::build(|w| payload.iter().for_each(|field| write_field(w, &field, reader)));
    let whole = write(Reader::Member { images: false });
    match whole.bytes().len() <= BROUGHT_BYTES_MAX {
        true => whole,
        false => write(Reader::Client),
    }
}

/// For whom an entry is composed.
#[derive(Clone, Copy)]
enum Reader {
    Client,
    Member { images: bool },
}

fn composed(frame: &FrameRef<'_>, reader: Reader) -> DocBuf {
    let payload = Doc::from_validated(frame.payload);
    let mut out = Vec::with_capacity(frame.payload.len() + 64);
    DocWriter::write(&mut out, |w| {
        let mut previous = None;
        for element in payload.iter() {
            match element.name_bytes() {
                b"prevOpTime" => previous = Some(element),
                b"ts" | b"t" | b"v" | b"wall" => {}
                b"o" => w.document_with("o", |w| write_shown(w, element.value().as_document(), reader)),
                _ => write_field(w, &element, reader),
            }
        }
        w.timestamp("ts", document::Timestamp::from_u64(frame.optime.ts));
        w.i64("t", frame.optime.term);
        w.i64("v", 2);
        w.date("wall", frame.wall);
        if let Some(previous) = previous {
            w.element(&previous);
        }
    });
    DocBuf::from_validated(out)
}

/// `o` as it is shown: operations in it without their images.
fn write_shown(w: &mut DocWriter<'_>, o: Option<Doc<'_>>, reader: Reader) {
    for e in o.unwrap_or(Doc::empty()) {
        match (e.name_bytes(), e.value().as_array()) {
            (b"applyOps", Some(operations)) => w.array_with("applyOps", |w| {
                for operation in operations.iter() {
                    let fields = operation.value().as_document().unwrap_or(Doc::empty());
                    w.document_with(operation.name(), |w| {
                        fields.iter().for_each(|f| write_field(w, &f, reader))
                    });
                }
            }),
            _ => w.element(&e),
        }
    }
}

/// A member of an entry, or of an operation in one, as it is shown: of an image that a retry needs, only which it is.
fn write_field(w: &mut DocWriter<'_>, field: &Element<'_>, reader: Reader) {
    let name = field.name_bytes();
    let hides_before = !matches!(reader, Reader::Member { images: true });
    if hides_before && name == IMAGE_BEFORE.as_bytes() {
        return;
    }
    match RETRY_IMAGES.iter().find(|kind| matches!(reader, Reader::Client) && kind.as_bytes() == name) {
        None => w.element(field),
        Some(kind) => {
            if field.value().as_document().is_some_and(|image| !image.is_empty()) {
                w.string("needsRetryImage", kind);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Class, OpTime};
    use document::doc;

    fn frame(payload: &[u8]) -> FrameRef<'_> {
        let optime = OpTime { ts: (7 << 32) | 3, term: 2 };
        FrameRef { position: 0, end: 0, optime, wall: 99, class: Class::Oplog, payload }
    }

    #[test]
    fn parts_make_one_document_and_the_view_adds_what_the_frame_carries() {
        let o = doc! { "_id": 1, "a": "x" }.to_doc_buf();
        let lsid = doc! { "id": 5 }.to_doc_buf();
        let mut draft = Draft::new(Op::Insert, "db.c", Some([7; 16]));
        draft.o2 = O2::Id(o.doc().element("_id").unwrap());
        draft.session =
            Some(SessionPart { lsid: lsid.doc(), txn_number: 4, statements: &[2], previous: (0, -1) });
        let whole = draft.to_doc_buf(o.doc());
        let entry = Entry::of_frame(&frame(whole.bytes())).unwrap();
        assert_eq!((entry.op, entry.ns, entry.uuid), (Op::Insert, "db.c", Some([7; 16])));
        assert_eq!(entry.o, o.doc());
        assert_eq!(entry.statements(), [2]);
        assert_eq!(entry.txn_number(), Some(4));
        let shown = compose(&frame(whole.bytes())).to_document();
        let names: Vec<&str> = shown.keys().collect();
        let expected = [
            "lsid",
            "txnNumber",
            "op",
            "ns",
            "ui",
            "o",
            "o2",
            "stmtId",
            "ts",
            "t",
            "v",
            "wall",
            "prevOpTime",
        ];
        assert_eq!(names, expected);
        assert_eq!(shown.get_document("o2"), Some(&doc! { "_id": 1 }));
    }

    #[test]
    fn the_previous_optime_is_set_after_encoding() {
        let (o, lsid) = (doc! { "_id": 1 }.to_doc_buf(), doc! { "id": 5 }.to_doc_buf());
        let mut draft = Draft::new(Op::Insert, "db.c", None);
        draft.session =
            Some(SessionPart { lsid: lsid.doc(), txn_number: 4, statements: &[], previous: (0, -1) });
        let mut parts = EntryParts::default();
        draft.encode(o.doc(), &mut parts);
        parts.set_previous((9 << 32) | 8, 7);
        let whole = DocBuf::from_validated(parts.slices(o.doc()).concat()).to_document();
        let expected = doc! { "ts": document::Timestamp::new(9, 8), "t": 7i64 };
        assert_eq!(whole.get_document("prevOpTime"), Some(&expected));
    }

    #[test]
    fn of_the_image_for_a_retry_only_the_kind_is_shown_but_to_members() {
        let (o, more) =
            (doc! { "_id": 1 }.to_doc_buf(), doc! { "preImage": { "_id": 1, "a": 5 } }.to_doc_buf());
        let draft =
            Draft { more: Some(more.doc()), ..Draft::new(Op::Delete, "db.c", None) }.to_doc_buf(o.doc());
        let shown = compose(&frame(draft.bytes())).to_document();
        assert_eq!((shown.get_str("needsRetryImage"), shown.get("preImage")), (Some("preImage"), None));
        let whole = compose_whole(&frame(draft.bytes())).to_document();
        assert_eq!(whole.get_document("preImage"), Some(&doc! { "_id": 1, "a": 5 }));
        assert!(!whole.contains_key("needsRetryImage"));
    }

    #[test]
    fn an_image_that_makes_an_entry_too_large_for_a_reply_stays_behind() {
        let large = |bytes: usize| doc! { "_id": 1, "a": ("x".repeat(bytes)) }.to_doc_buf();
        let (o, old) = (large(9 << 20), large(8 << 20));
        let draft = |old: &DocBuf| {
            Draft { image_before: Some(old.doc()), ..Draft::new(Op::Update, "db.c", None) }
                .to_doc_buf(o.doc())
        };
        let whole = |entry: &DocBuf| compose_whole(&frame(entry.bytes())).to_document();
        assert!(!whole(&draft(&old)).contains_key("imageBefore"));
        assert_eq!(whole(&draft(&old)).get_document("o"), Some(&o.to_document()));
        assert!(whole(&draft(&large(1 << 20))).contains_key("imageBefore"));
    }

    #[test]
    fn an_entry_is_brought_with_the_image_for_a_retry_if_both_fit() {
        let image = |bytes: usize| doc! { "_id": 1, "a": ("x".repeat(bytes)) };
        let entry = |bytes: usize| {
            doc! { "op": "u", "o": image(9 << 20), "imageBefore": image(9 << 20), "preImage": image(bytes), "stmtId": 0 }
        };
        let brought = |bytes: usize| brought(entry(bytes).to_doc_buf().doc()).to_document();
        let (small, large) = (brought(1 << 20), brought(9 << 20));
        assert_eq!(small.get_document("preImage"), Some(&image(1 << 20)));
        assert!(!small.contains_key("imageBefore"));
        assert_eq!((large.get_str("needsRetryImage"), large.get("preImage")), (Some("preImage"), None));
        assert_eq!((large.get_document("o"), large.get_i64("stmtId")), (Some(&image(9 << 20)), Some(0)));
    }

    #[test]
    fn the_image_before_a_change_is_kept_but_not_shown() {
        let (o, old) = (doc! { "_id": 1 }.to_doc_buf(), doc! { "_id": 1, "a": 5 }.to_doc_buf());
        let draft = Draft { image_before: Some(old.doc()), ..Draft::new(Op::Delete, "db.c", None) }
            .to_doc_buf(o.doc());
        assert_eq!(Entry::read(draft.doc()).unwrap().image_before(), Some(old.doc()));
        assert!(!compose(&frame(draft.bytes())).to_document().contains_key("imageBefore"));
        let batch = doc! { "applyOps": [(draft.to_document())] }.to_doc_buf();
        let whole = Draft::new(Op::Command, "admin.$cmd", None).to_doc_buf(batch.doc());
        let shown = compose(&frame(whole.bytes())).to_document();
        let expected = doc! { "applyOps": [{ "op": "d", "ns": "db.c", "o": { "_id": 1 } }] };
        assert_eq!(shown.get_document("o"), Some(&expected));
    }

    #[test]
    fn a_payload_that_is_no_entry_is_refused() {
        assert!(Entry::of_frame(&frame(&[5, 0, 0, 0, 0])).is_err());
        assert!(Entry::of_frame(&frame(&[9, 0, 0, 0, 0])).is_err());
        assert!(Entry::of_frame(&frame(b"")).is_err());
    }
}
