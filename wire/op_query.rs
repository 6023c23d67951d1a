//! OP_QUERY, kept only for the first hello of a driver which does not know yet that we speak OP_MSG.
//!
//! ```text
//! header  flags:i32  fullCollectionName 0x00  numberToSkip:i32  numberToReturn:i32  query:document  [fields:document]
//! ```

use crate::error::{Answer, Malformed, code};
use crate::header::{HEADER_LENGTH, Header};
use crate::limits::Limits;
use bytes::Bytes;
use document::{Doc, Error, codes};
use std::ops::Range;

const LEGACY_HELLO: [&str; 3] = ["ismaster", "isMaster", "hello"];
const UPGRADE: &str = "The client driver may require an upgrade. For more details see \
                       https://dochub.mongodb.org/core/legacy-opcode-removal";

/// A parsed OP_QUERY on some database's `$cmd`.
#[derive(Clone, Debug)]
pub struct OpQuery {
    frame: Bytes,
    header: Header,
    database: Range<usize>,
    query: Range<usize>,
    wire_length: usize,
}

impl OpQuery {
    pub fn request_id(&self) -> i32 {
        self.header.request_id
    }
    /// Bytes it took on the wire, for network statistics.
    pub fn wire_length(&self) -> usize {
        self.wire_length
    }
    pub fn database(&self) -> &str {
        // Checked to be UTF-8 by `parse`.
        std::str::from_utf8(&self.frame[self.database.clone()]).unwrap_or("")
    }
    /// The command, out of its `$query` wrapper if it has one.
    pub fn body(&self) -> Doc<'_> {
        let query = Doc::from_validated(&self.frame[self.query.clone()]);
        let first = query.iter().next();
        let wrapped = first.filter(|e| matches!(e.name(), "$query" | "query"));
        wrapped.and_then(|e| e.value().as_document()).unwrap_or(query)
    }
    pub fn command_name(&self) -> &str {
        self.body().iter().next().map_or("", |e| e.name())
    }
    /// Only hello may still come this way. The error is to be answered in an OP_REPLY; the connection stays open.
    pub fn check_supported(&self) -> Result<(), Error> {
        let name = self.command_name();
        if LEGACY_HELLO.contains(&name) {
            return Ok(());
        }
        let message = format!("Unsupported OP_QUERY command: {name}. {UPGRADE}");
        Err(Error::new(codes::UNSUPPORTED_OP_QUERY_COMMAND, message))
    }
}

pub(crate) fn parse(
    frame: Bytes,
    header: Header,
    limits: &Limits,
    wire_length: usize,
) -> Result<OpQuery, Malformed> {
    let fail = |code, message: &str| Malformed::new(&header, Answer::OpReply, code, message);
    let name_at = HEADER_LENGTH + 4;
    let name = frame.get(name_at..).and_then(|rest| rest.iter().position(|b| *b == 0));
    let name_end =
        name_at + name.ok_or_else(|| fail(codes::OVERFLOW, "OP_QUERY without a collection name"))?;
    let namespace = std::str::from_utf8(&frame[name_at..name_end])
        .map_err(|_| fail(codes::INVALID_NAMESPACE, "OP_QUERY collection name is not valid UTF-8"))?;
    let Some(database) = namespace.strip_suffix(".$cmd") else {
        return Err(fail(code::OPCODE_REMOVED, &format!("OP_QUERY is no longer supported. {UPGRADE}")));
    };
    let database = name_at..name_at + database.len();
    let query = one_document(&frame, name_end + 1 + 8, &header, limits)?;
    if query.end < frame.len() {
        let fields = one_document(&frame, query.end, &header, limits)?;
        if fields.end != frame.len() {
            return Err(fail(codes::PROTOCOL_ERROR, "bytes after the end of an OP_QUERY"));
        }
    }
    Ok(OpQuery { frame, header, database, query, wire_length })
}

/// The range of the valid document that starts at `at`.
fn one_document(
    frame: &[u8],
    at: usize,
    header: &Header,
    limits: &Limits,
) -> Result<Range<usize>, Malformed> {
    let length = crate::header::i32_at(frame, at).and_then(|n| usize::try_from(n).ok());
    let end = length.filter(|n| *n >= 5).and_then(|n| at.checked_add(n)).filter(|end| *end <= frame.len());
    let end = end.ok_or_else(|| {
        let message = "document length does not fit its OP_QUERY";
        Malformed::new(header, Answer::OpReply, codes::INVALID_BSON, message)
    })?;
    crate::reader::validate(&frame[at..end], limits)
        .map_err(|e| Malformed::from_error(header, Answer::OpReply, e))?;
    Ok(at..end)
}
