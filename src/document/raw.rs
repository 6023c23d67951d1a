//! Borrowed views of BSON bytes.
//!
//! ```text
//! document := length:i32le element* 0x00          length counts itself and the terminator
//! element  := tag:u8 name 0x00 value
//! ```
//!
//! A [`Doc`] is made from bytes that were validated on entry or written by us. Reading is nevertheless total:
//! on bytes that lie, iteration ends early; nothing panics and nothing is read out of bounds.

use crate::{Binary, CodeWithScope, DbPointer, Decimal128, Document, ObjectId, Regex, Timestamp, Value};
use std::fmt;

/// A document, borrowed. Copying it copies a pointer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Doc<'a>(&'a [u8]);

/// The five bytes of `{}`.
pub const EMPTY: [u8; 5] = [5, 0, 0, 0, 0];

impl<'a> Doc<'a> {
    /// Wraps bytes known to be one valid document (validated on entry, or ours).
    pub fn from_validated(bytes: &'a [u8]) -> Doc<'a> {
        Doc(bytes)
    }
    pub fn empty() -> Doc<'static> {
        Doc(&EMPTY)
    }
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
    pub fn is_empty(self) -> bool {
        self.0.len() <= 5
    }
    /// The elements from a position on that [`Iter::position`] gave for the same document; 0: all of them.
    pub fn iter_at(self, at: usize) -> Iter<'a> {
        Iter { at: at.max(4), ..self.iter() }
    }
    pub fn iter(self) -> Iter<'a> {
        let end = self.0.len().saturating_sub(1);
        Iter { bytes: self.0.get(..end).unwrap_or(&[]), at: 4 }
    }
    /// The first element of this name.
    pub fn element(self, name: &str) -> Option<Element<'a>> {
        let mut iter = self.iter();
        let wanted = Wanted::new(name.as_bytes());
        loop {
            let rest = iter.bytes.get(iter.at..)?;
            let found = wanted.is_name_of(rest);
            let element = iter.next()?;
            if found {
                return Some(element);
            }
        }
    }
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        self.element(name).map(|e| e.value())
    }
    /// Present and not null.
    pub fn get_present(self, name: &str) -> Option<ValueRef<'a>> {
        self.get(name).filter(|v| !matches!(v, ValueRef::Null | ValueRef::Undefined))
    }
    pub fn get_str(self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(|v| v.as_str())
    }
    pub fn get_i64(self, name: &str) -> Option<i64> {
        self.get(name).and_then(|v| v.as_i64())
    }
    pub fn get_bool(self, name: &str) -> Option<bool> {
        match self.get(name) {
            Some(ValueRef::Boolean(b)) => Some(b),
            _ => None,
        }
    }
    pub fn get_document(self, name: &str) -> Option<Doc<'a>> {
        self.get(name).and_then(|v| v.as_document())
    }
    pub fn to_document(self) -> Document {
        Document(self.iter().map(|e| (e.name().to_string(), e.value().to_value())).collect())
    }
    /// Read as an array: its elements in order.
    pub fn to_array(self) -> Vec<Value> {
        self.iter().map(|e| e.value().to_value()).collect()
    }
    pub fn to_owned(self) -> DocBuf {
        DocBuf(self.0.to_vec())
    }
}
impl fmt::Debug for Doc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|e| (e.name(), e.value()))).finish()
    }
}
impl<'a> IntoIterator for Doc<'a> {
    type Item = Element<'a>;
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// A document, owned as bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct DocBuf(Vec<u8>);

impl DocBuf {
    pub fn from_validated(bytes: Vec<u8>) -> DocBuf {
        DocBuf(bytes)
    }
    pub fn new() -> DocBuf {
        DocBuf(EMPTY.to_vec())
    }
    pub fn doc(&self) -> Doc<'_> {
        Doc(&self.0)
    }
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
    pub fn get(&self, name: &str) -> Option<ValueRef<'_>> {
        self.doc().get(name)
    }
    pub fn to_document(&self) -> Document {
        self.doc().to_document()
    }
}
impl Default for DocBuf {
    fn default() -> DocBuf {
        DocBuf::new()
    }
}
impl fmt::Debug for DocBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.doc().fmt(f)
    }
}
impl From<Document> for DocBuf {
    fn from(d: Document) -> DocBuf {
        d.to_doc_buf()
    }
}

/// One field of a document: its tag, its name and the bytes of its value, not yet decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    whole: &'a [u8],
    /// Where the value starts in `whole`: one past the name's terminator.
    value_at: usize,
}

impl<'a> Element<'a> {
    pub fn tag(&self) -> u8 {
        self.whole[0]
    }
    pub fn name_bytes(&self) -> &'a [u8] {
        &self.whole[1..self.value_at - 1]
    }
    pub fn name(&self) -> &'a str {
        std::str::from_utf8(self.name_bytes()).unwrap_or("")
    }
    pub fn value_bytes(&self) -> &'a [u8] {
        &self.whole[self.value_at..]
    }
    /// Tag, name, terminator and value.
    pub fn whole(&self) -> &'a [u8] {
        self.whole
    }
    pub fn value(&self) -> ValueRef<'a> {
        decode(self.tag(), self.value_bytes()).unwrap_or(ValueRef::Undefined)
    }
}

/// The elements of a document, in order.
#[derive(Clone)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iter<'a> {
    /// Where it stands; see [`Doc::iter_at`].
    pub fn position(&self) -> usize {
        self.at
    }
    /// The bytes of the elements to come.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or(&[])
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Element<'a>;
    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        let rest = self.bytes.get(self.at..)?;
        let tag = *rest.first()?;
        let value_at = name_length(&rest[1..])? + 2;
        let length = value_length(tag, &rest[value_at..])?;
        let end = value_at.checked_add(length)?;
        let whole = rest.get(..end)?;
        self.at += end;
        Some(Element { whole, value_at })
    }
}

/// A name to look for, as the first eight bytes that an element of this name shows behind its tag.
struct Wanted<'n> {
    name: &'n [u8],
    word: u64,
    mask: u64,
}

impl<'n> Wanted<'n> {
    #[inline]
    fn new(name: &'n [u8]) -> Wanted<'n> {
        let mut head = [0; 8];
        let n = name.len().min(8);
        head[..n].copy_from_slice(&name[..n]);
        // A name below eight bytes has its terminator in the word.
        let mask = if n < 7 { (1 << (8 * (n + 1))) - 1 } else { u64::MAX };
        Wanted { name, word: u64::from_le_bytes(head), mask }
    }
    /// `rest` begins with an element's tag.
    #[inline]
    fn is_name_of(&self, rest: &[u8]) -> bool {
        match rest.get(1..).and_then(|r| r.first_chunk::<8>()) {
            Some(head) if u64::from_le_bytes(*head) & self.mask != self.word => false,
            _ => self.is_whole_name_of(rest),
        }
    }
    fn is_whole_name_of(&self, rest: &[u8]) -> bool {
        let n = self.name.len();
        rest.get(1..n + 1) == Some(self.name) && rest.get(n + 1) == Some(&0) && !self.name.contains(&0)
    }
}

/// Where the first NUL is. Eight bytes at a time: most names end within the first step, and a call to a general
/// search costs more than that.
#[inline]
pub(crate) fn name_length(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut at = 0;
    let mut rest = bytes;
    while let Some((chunk, behind)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros != 0 {
            return Some(at + (zeros.trailing_zeros() / 8) as usize);
        }
        at += 8;
        rest = behind;
    }
    rest.iter().position(|b| *b == 0).map(|n| at + n)
}

#[inline]
fn read_i32(bytes: &[u8]) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.get(..4)?.try_into().ok()?))
}
#[inline]
fn read_u64(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?))
}

/// The number of bytes the value takes; `None` for an unknown tag or a length that cannot be.
#[inline]
pub fn value_length(tag: u8, bytes: &[u8]) -> Option<usize> {
    let sized = |extra: usize| usize::try_from(read_i32(bytes)?).ok()?.checked_add(extra);
    match tag {
        0x01 | 0x09 | 0x11 | 0x12 => Some(8),
        0x10 => Some(4),
        0x02 | 0x0D | 0x0E => sized(4),
        0x03 | 0x04 | 0x0F => sized(0).filter(|n| *n >= 5),
        0x05 => sized(5),
        0x06 | 0x0A | 0xFF | 0x7F => Some(0),
        0x07 => Some(12),
        0x08 => Some(1),
        0x0B => {
            let a = name_length(bytes)? + 1;
            Some(a + name_length(&bytes[a..])? + 1)
        }
        0x0C => sized(16),
        0x13 => Some(16),
        _ => None,
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    let n = usize::try_from(read_i32(bytes)?).ok()?.checked_sub(1)?;
    std::str::from_utf8(bytes.get(4..4usize.checked_add(n)?)?).ok()
}

fn decode(tag: u8, b: &[u8]) -> Option<ValueRef<'_>> {
    Some(match tag {
        0x01 => ValueRef::Double(f64::from_bits(read_u64(b)?)),
        0x02 => ValueRef::String(text(b)?),
        0x03 => ValueRef::Document(Doc(b)),
        0x04 => ValueRef::Array(Doc(b)),
        0x05 => ValueRef::Binary(*b.get(4)?, b.get(5..)?),
        0x06 => ValueRef::Undefined,
        0x07 => ValueRef::ObjectId(ObjectId(b.get(..12)?.try_into().ok()?)),
        0x08 => ValueRef::Boolean(*b.first()? != 0),
        0x09 => ValueRef::DateTime(read_u64(b)? as i64),
        0x0A => ValueRef::Null,
        0x0B => {
            let a = name_length(b)?;
            let options = b.get(a + 1..b.len().checked_sub(1)?)?;
            ValueRef::Regex(std::str::from_utf8(&b[..a]).ok()?, std::str::from_utf8(options).ok()?)
        }
        0x0C => ValueRef::DbPointer(text(b)?, ObjectId(b.get(b.len().checked_sub(12)?..)?.try_into().ok()?)),
        0x0D => ValueRef::JavaScript(text(b)?),
        0x0E => ValueRef::Symbol(text(b)?),
        0x0F => {
            let code = text(b.get(4..)?)?;
            ValueRef::JavaScriptWithScope(code, Doc(b.get(4 + 4 + code.len() + 1..)?))
        }
        0x10 => ValueRef::Int32(read_i32(b)?),
        0x11 => ValueRef::Timestamp(Timestamp::from_u64(read_u64(b)?)),
        0x12 => ValueRef::Int64(read_u64(b)? as i64),
        0x13 => ValueRef::Decimal128(Decimal128(b.get(..16)?.try_into().ok()?)),
        0xFF => ValueRef::MinKey,
        0x7F => ValueRef::MaxKey,
        _ => return None,
    })
}

/// A value, borrowed from its document. `PartialEq` is structural, not the query language's equality.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ValueRef<'a> {
    Double(f64),
    String(&'a str),
    Document(Doc<'a>),
    /// The document whose elements are the array's, named "0", "1", ...
    Array(Doc<'a>),
    /// Subtype and bytes. For the old subtype 2 the bytes include its inner length.
    Binary(u8, &'a [u8]),
    Undefined,
    ObjectId(ObjectId),
    Boolean(bool),
    DateTime(i64),
    Null,
    Regex(&'a str, &'a str),
    DbPointer(&'a str, ObjectId),
    JavaScript(&'a str),
    Symbol(&'a str),
    JavaScriptWithScope(&'a str, Doc<'a>),
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal128(Decimal128),
    MinKey,
    MaxKey,
}

impl<'a> ValueRef<'a> {
    pub fn tag(&self) -> u8 {
        match self {
            ValueRef::Double(_) => 0x01,
            ValueRef::String(_) => 0x02,
            ValueRef::Document(_) => 0x03,
            ValueRef::Array(_) => 0x04,
            ValueRef::Binary(..) => 0x05,
            ValueRef::Undefined => 0x06,
            ValueRef::ObjectId(_) => 0x07,
            ValueRef::Boolean(_) => 0x08,
            ValueRef::DateTime(_) => 0x09,
            ValueRef::Null => 0x0A,
            ValueRef::Regex(..) => 0x0B,
            ValueRef::DbPointer(..) => 0x0C,
            ValueRef::JavaScript(_) => 0x0D,
            ValueRef::Symbol(_) => 0x0E,
            ValueRef::JavaScriptWithScope(..) => 0x0F,
            ValueRef::Int32(_) => 0x10,
            ValueRef::Timestamp(_) => 0x11,
            ValueRef::Int64(_) => 0x12,
            ValueRef::Decimal128(_) => 0x13,
            ValueRef::MinKey => 0xFF,
            ValueRef::MaxKey => 0x7F,
        }
    }
    pub fn type_name(&self) -> &'static str {
        type_name(self.tag())
    }
    /// The value's own bytes where this view still holds them contiguously (documents and arrays).
    pub fn raw_bytes(&self) -> Option<&'a [u8]> {
        match self {
            ValueRef::Document(d) | ValueRef::Array(d) => Some(d.bytes()),
            _ => None,
        }
    }
    pub fn as_str(&self) -> Option<&'a str> {
        match self {
            ValueRef::String(s) => Some(s),
            _ => None,
        }
    }
    pub fn as_document(&self) -> Option<Doc<'a>> {
        match self {
            ValueRef::Document(d) => Some(*d),
            _ => None,
        }
    }
    pub fn as_array(&self) -> Option<Doc<'a>> {
        match self {
            ValueRef::Array(d) => Some(*d),
            _ => None,
        }
    }
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            ValueRef::Boolean(b) => Some(*b),
            _ => None,
        }
    }
    /// int32, int64, or a double that is integral and in range.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            ValueRef::Int32(i) => Some(*i as i64),
            ValueRef::Int64(i) => Some(*i),
            ValueRef::Double(d) if d.trunc() == *d && d.abs() < 9.2e18 => Some(*d as i64),
            _ => None,
        }
    }
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            ValueRef::Int32(i) => Some(*i as f64),
            ValueRef::Int64(i) => Some(*i as f64),
            ValueRef::Double(d) => Some(*d),
            _ => None,
        }
    }
    pub fn as_timestamp(&self) -> Option<Timestamp> {
        match self {
            ValueRef::Timestamp(t) => Some(*t),
            _ => None,
        }
    }
    pub fn as_uuid(&self) -> Option<[u8; 16]> {
        match self {
            ValueRef::Binary(4, b) => (*b).try_into().ok(),
            _ => None,
        }
    }
    pub fn is_number(&self) -> bool {
        matches!(self.tag(), 0x01 | 0x10 | 0x12 | 0x13)
    }
    pub fn truthy(&self) -> bool {
        match self {
            ValueRef::Boolean(b) => *b,
            ValueRef::Null | ValueRef::Undefined => false,
            ValueRef::Decimal128(d) => !d.is_zero(),
            v => v.as_f64() != Some(0.0),
        }
    }
    pub fn to_value(&self) -> Value {
        match *self {
            ValueRef::Double(v) => Value::Double(v),
            ValueRef::String(v) => Value::String(v.to_string()),
            ValueRef::Document(v) => Value::Document(v.to_document()),
            ValueRef::Array(v) => Value::Array(v.to_array()),
            ValueRef::Binary(subtype, v) => Value::Binary(Binary { subtype, bytes: v.to_vec() }),
            ValueRef::Undefined => Value::Undefined,
            ValueRef::ObjectId(v) => Value::ObjectId(v),
            ValueRef::Boolean(v) => Value::Boolean(v),
            ValueRef::DateTime(v) => Value::DateTime(v),
            ValueRef::Null => Value::Null,
            ValueRef::Regex(p, o) => Regex { pattern: p.to_string(), options: o.to_string() }.into(),
            ValueRef::DbPointer(ns, id) => DbPointer { ns: ns.to_string(), id }.into(),
            ValueRef::JavaScript(v) => Value::JavaScript(v.to_string()),
            ValueRef::Symbol(v) => Value::Symbol(v.to_string()),
            ValueRef::JavaScriptWithScope(c, s) => {
                CodeWithScope { code: c.to_string(), scope: s.to_document() }.into()
            }
            ValueRef::Int32(v) => Value::Int32(v),
            ValueRef::Timestamp(v) => Value::Timestamp(v),
            ValueRef::Int64(v) => Value::Int64(v),
            ValueRef::Decimal128(v) => Value::Decimal128(v),
            ValueRef::MinKey => Value::MinKey,
            ValueRef::MaxKey => Value::MaxKey,
        }
    }
}

/// The name of a BSON type as `$type` and error messages spell it.
pub fn type_name(tag: u8) -> &'static str {
    match tag {
        0x01 => "double",
        0x02 => "string",
        0x03 => "object",
        0x04 => "array",
        0x05 => "binData",
        0x06 => "undefined",
        0x07 => "objectId",
        0x08 => "bool",
        0x09 => "date",
        0x0A => "null",
        0x0B => "regex",
        0x0C => "dbPointer",
        0x0D => "javascript",
        0x0E => "symbol",
        0x0F => "javascriptWithScope",
        0x10 => "int",
        0x11 => "timestamp",
        0x12 => "long",
        0x13 => "decimal",
        0xFF => "minKey",
        0x7F => "maxKey",
        _ => "unknown",
    }
}
