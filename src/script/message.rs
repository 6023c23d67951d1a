//! What a server and its script process say to each other: BSON documents, one after the other, over two pipes.
//!
//! ```text
//! server -> child   {session, code, this?, args?, scope?, emits?, heapBytes, stopAfterMs}     a call
//!                   {session, end: true}                                                     the session is over
//! child  -> server  {value: .., printed?: [..]}         what the function returned
//!                   {emitted: [{k, v}, ..], printed?}   what it emitted
//!                   {code, message, printed?}           what it threw
//! ```
//! A document begins with its length, so nothing else is needed to tell one from the next. There is one reply for each
//! call and none for an end. Both sides are the same binary: nothing here is for other versions.

use document::validate::{Limits, validate};
use document::{Doc, DocBuf, DocWriter, Error, Result, Value, bail, codes, err};
use std::io::{self, Read};
use std::time::Duration;

/// The largest message that either side takes.
const MESSAGE_BYTES_MAX: usize = 512 << 20;
/// Its depth: that of a document, and the levels of the message around it.
const DEPTH_MAX: usize = 256;

/// One function applied to values.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// A function, or an expression that is the result of one.
    pub code: &'a str,
    /// What `this` (and `obj`) is.
    pub this: Option<Doc<'a>>,
    /// The arguments, as an array's document.
    pub args: Option<Doc<'a>>,
    /// Global variables.
    pub scope: Option<Doc<'a>>,
    /// The bytes that `emit` may collect, where there is an `emit`: what it collects is the reply.
    pub emits: Option<usize>,
    pub limits: CallLimits,
}

/// What a call may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// The engine's memory.
    pub heap_bytes: usize,
    /// The function is stopped after this time.
    pub time: Duration,
}

/// What a server asks.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    Call(u64, Call<'a>),
    /// Forget the session's globals.
    End(u64),
}

/// What a script process replies.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub outcome: Outcome,
    /// The lines it printed.
    pub printed: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The value that was returned.
    Value(Value),
    /// `{k, v}` of each `emit`, in order.
    Emitted(Vec<Value>),
    Failed(Error),
}

impl<'a> Request<'a> {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        DocWriter::write(&mut out, |w| match self {
            Request::End(session) => {
                w.i64("session", *session as i64);
                w.bool("end", true);
            }
            Request::Call(session, call) => {
                w.i64("session", *session as i64);
                call.write(w);
            }
        });
        out
    }
    /// # Errors
    /// NoSuchKey (4) for a message that lacks something.
    pub fn parse(doc: Doc<'a>) -> Result<Request<'a>> {
        let session = integer(doc, "session")?;
        if doc.get("end").is_some() {
            return Ok(Request::End(session));
        }
        Ok(Request::Call(session, Call::parse(doc)?))
    }
}

impl<'a> Call<'a> {
    fn write(&self, w: &mut DocWriter<'_>) {
        w.string("code", self.code);
        if let Some(this) = self.this {
            w.document("this", this);
        }
        if let Some(args) = self.args {
            w.array("args", args);
        }
        if let Some(scope) = self.scope {
            w.document("scope", scope);
        }
        if let Some(bytes) = self.emits {
            w.i64("emits", bytes as i64);
        }
        w.i64("heapBytes", self.limits.heap_bytes as i64);
        w.i64("stopAfterMs", i64::try_from(self.limits.time.as_millis()).unwrap_or(i64::MAX));
    }
    fn parse(doc: Doc<'a>) -> Result<Call<'a>> {
        Ok(Call {
            code: doc.get_str("code").ok_or_else(|| missing("code"))?,
            this: doc.get_document("this"),
            args: doc.get("args").and_then(|v| v.as_array()),
            scope: doc.get_document("scope"),
            emits: doc.get("emits").map(|_| integer(doc, "emits")).transpose()?.map(|n| n as usize),
            limits: CallLimits {
                heap_bytes: integer(doc, "heapBytes")? as usize,
                time: Duration::from_millis(integer(doc, "stopAfterMs")?),
            },
        })
    }
}

impl Reply {
    /// # Errors
    /// Those of a message that is none: the child is not to be trusted any more.
    pub fn parse(doc: Doc<'_>) -> Result<Reply> {
        let outcome = if let Some(code) = doc.get("code") {
            let code = code.as_i64().and_then(|n| i32::try_from(n).ok()).unwrap_or(codes::INTERNAL_ERROR);
            Outcome::Failed(Error::new(code, doc.get_str("message").unwrap_or_default()))
        } else if let Some(list) = doc.get("emitted").and_then(|v| v.as_array()) {
            Outcome::Emitted(list.iter().map(|e| e.value().to_value()).collect())
        } else {
            let value = doc.get("value").ok_or_else(|| missing("value"))?;
            Outcome::Value(value.to_value())
        };
        let printed = doc.get("printed").and_then(|v| v.as_array()).unwrap_or(Doc::empty());
        let printed = printed.iter().filter_map(|e| Some(e.value().as_str()?.to_string())).collect();
        Ok(Reply { outcome, printed })
    }
}

fn integer(doc: Doc<'_>, name: &str) -> Result<u64> {
    doc.get(name).and_then(|v| v.as_i64()).map(|n| n as u64).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Error {
    err!(NO_SUCH_KEY, "a message between a server and its script process lacks '{name}'")
}

/// Takes the document at the front of what has arrived; `None` while it is not whole.
///
/// # Errors
/// For what is no document.
pub fn take(arrived: &mut Vec<u8>) -> io::Result<Option<DocBuf>> {
    let Some(head) = arrived.first_chunk::<4>() else { return Ok(None) };
    let length = length_of(*head)?;
    if arrived.len() < length {
        return Ok(None);
    }
    let rest = arrived.split_off(length);
    let bytes = std::mem::replace(arrived, rest);
    check(&bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.message))?;
    Ok(Some(DocBuf::from_validated(bytes)))
}

fn length_of(head: [u8; 4]) -> io::Result<usize> {
    let length = usize::try_from(i32::from_le_bytes(head)).ok();
    length.filter(|n| (5..=MESSAGE_BYTES_MAX).contains(n)).ok_or(io::ErrorKind::InvalidData.into())
}

/// The next document of a pipe, from a process that is trusted to write valid ones; `None` at its end.
///
/// # Errors
/// The pipe's.
pub fn read(pipe: &mut impl Read) -> io::Result<Option<DocBuf>> {
    let mut head = [0; 4];
    let mut have = 0;
    while have < head.len() {
        match pipe.read(&mut head[have..])? {
            0 if have == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => have += n,
        }
    }
    let length = length_of(head)?;
    // Grows with what arrives: a length alone allocates nothing.
    let mut bytes = head.to_vec();
    pipe.by_ref().take(length as u64 - 4).read_to_end(&mut bytes)?;
    if bytes.len() != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(DocBuf::from_validated(bytes)))
}

fn check(bytes: &[u8]) -> Result<()> {
    match validate(bytes, Limits { bytes_max: MESSAGE_BYTES_MAX, depth_max: DEPTH_MAX }) {
        Ok(()) => Ok(()),
        Err(e) => bail!(JS_INTERPRETER_FAILURE, "a script made an invalid document: {}", e.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn a_call_arrives_as_it_was_sent() {
        let (this, scope) = (doc! { "a": 1 }.to_doc_buf(), doc! { "x": "y" }.to_doc_buf());
        let limits = CallLimits { heap_bytes: 1 << 20, time: Duration::from_millis(250) };
        let call = Call {
            code: "f",
            this: Some(this.doc()),
            args: None,
            scope: Some(scope.doc()),
            emits: Some(7),
            limits,
        };
        let bytes = Request::Call(9, call).to_bytes();
        let read = read(&mut &bytes[..]).unwrap().unwrap();
        let Request::Call(9, got) = Request::parse(read.doc()).unwrap() else { panic!("no call") };
        assert_eq!((got.code, got.emits, got.limits, got.args.is_none()), ("f", Some(7), limits, true));
        assert_eq!(got.this.unwrap().bytes(), this.bytes());
        assert_eq!(got.scope.unwrap().bytes(), scope.bytes());
    }

    #[test]
    fn lengths_that_are_only_claimed_and_broken_documents_are_refused() {
        let claimed = (400i32 << 20).to_le_bytes();
        assert!(read(&mut &claimed[..]).is_err());
        assert!(take(&mut (-1i32).to_le_bytes().to_vec()).is_err());
        assert!(take(&mut vec![6, 0, 0, 0, 1, 0]).is_err());
        assert!(take(&mut vec![6, 0, 0, 0, 1]).unwrap().is_none());
        assert!(read(&mut &[][..]).unwrap().is_none());
    }
}
