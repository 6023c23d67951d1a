//! The owned tree: [`Value`] and [`Document`].

use crate::raw::{Doc, DocBuf, ValueRef};
use crate::{DocWriter, ObjectId};

/// An internal timestamp: seconds and increment. Order is (secs, inc).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    pub secs: u32,
    pub inc: u32,
}
impl Timestamp {
    pub const MAX: Timestamp = Timestamp { secs: u32::MAX, inc: u32::MAX };
    pub fn new(secs: u32, inc: u32) -> Timestamp {
        Timestamp { secs, inc }
    }
    /// `secs << 32 | inc`, which orders as the timestamp does.
    pub fn as_u64(self) -> u64 {
        (self.secs as u64) << 32 | self.inc as u64
    }
    pub fn from_u64(v: u64) -> Timestamp {
        Timestamp { secs: (v >> 32) as u32, inc: v as u32 }
    }
}

/// IEEE 754-2008 decimal, 128 bits, as BSON stores it (binary integer decimal, little-endian).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal128(pub [u8; 16]);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binary {
    pub subtype: u8,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Regex {
    pub pattern: String,
    pub options: String,
}

/// A pointer of the first drivers to a document: a namespace and an `_id`.
#[derive(Debug, Clone, PartialEq)]
pub struct DbPointer {
    pub ns: String,
    pub id: ObjectId,
}

/// JavaScript with the variables that it sees.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeWithScope {
    pub code: String,
    pub scope: Document,
}

/// An owned BSON value. `PartialEq` is structural (type and bits), not the query language's equality. Rare kinds that are longer than a
/// string stand apart, so that an array of numbers takes 32 bytes for each.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Double(f64),
    String(String),
    Document(Document),
    Array(Vec<Value>),
    Binary(Binary),
    Undefined,
    ObjectId(ObjectId),
    Boolean(bool),
    /// Milliseconds since the epoch, UTC.
    DateTime(i64),
    Null,
    Regex(Box<Regex>),
    DbPointer(Box<DbPointer>),
    JavaScript(String),
    Symbol(String),
    JavaScriptWithScope(Box<CodeWithScope>),
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal128(Decimal128),
    MinKey,
    MaxKey,
}

const _: () = assert!(size_of::<Value>() == 32 && size_of::<Option<Value>>() == 32);

impl Value {
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(s) => Some(s),
            _ => None,
        }
    }
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Boolean(b) => Some(*b),
            _ => None,
        }
    }
    /// The number as an i64: int32, int64, or a double that is integral and in range.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_ref_value(|v| v.as_i64())
    }
    pub fn as_f64(&self) -> Option<f64> {
        self.as_ref_value(|v| v.as_f64())
    }
    fn as_ref_value<T>(&self, f: impl FnOnce(ValueRef<'_>) -> Option<T>) -> Option<T> {
        match self {
            Value::Int32(i) => f(ValueRef::Int32(*i)),
            Value::Int64(i) => f(ValueRef::Int64(*i)),
            Value::Double(d) => f(ValueRef::Double(*d)),
            _ => None,
        }
    }
    pub fn as_document(&self) -> Option<&Document> {
        match self {
            Value::Document(d) => Some(d),
            _ => None,
        }
    }
    pub fn as_array(&self) -> Option<&Vec<Value>> {
        match self {
            Value::Array(a) => Some(a),
            _ => None,
        }
    }
    pub fn as_timestamp(&self) -> Option<Timestamp> {
        match self {
            Value::Timestamp(t) => Some(*t),
            _ => None,
        }
    }
    pub fn as_object_id(&self) -> Option<ObjectId> {
        match self {
            Value::ObjectId(o) => Some(*o),
            _ => None,
        }
    }
    /// The 16 bytes of a UUID (binary subtype 4).
    pub fn as_uuid(&self) -> Option<[u8; 16]> {
        match self {
            Value::Binary(b) if b.subtype == 4 => b.bytes.as_slice().try_into().ok(),
            _ => None,
        }
    }
    pub fn uuid(bytes: [u8; 16]) -> Value {
        Value::Binary(Binary { subtype: 4, bytes: bytes.to_vec() })
    }
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
    pub fn is_number(&self) -> bool {
        matches!(self, Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_))
    }
    /// The server's idea of truth for flags: false, 0, null, undefined and missing are false.
    pub fn truthy(&self) -> bool {
        match self {
            Value::Boolean(b) => *b,
            Value::Null | Value::Undefined => false,
            Value::Decimal128(d) => !d.is_zero(),
            v => v.as_f64_lossy() != Some(0.0),
        }
    }
    fn as_f64_lossy(&self) -> Option<f64> {
        match self {
            Value::Int32(i) => Some(*i as f64),
            Value::Int64(i) => Some(*i as f64),
            Value::Double(d) => Some(*d),
            _ => None,
        }
    }
    /// The BSON type byte.
    pub fn tag(&self) -> u8 {
        match self {
            Value::Double(_) => 0x01,
            Value::String(_) => 0x02,
            Value::Document(_) => 0x03,
            Value::Array(_) => 0x04,
            Value::Binary(_) => 0x05,
            Value::Undefined => 0x06,
            Value::ObjectId(_) => 0x07,
            Value::Boolean(_) => 0x08,
            Value::DateTime(_) => 0x09,
            Value::Null => 0x0A,
            Value::Regex(_) => 0x0B,
            Value::DbPointer(..) => 0x0C,
            Value::JavaScript(_) => 0x0D,
            Value::Symbol(_) => 0x0E,
            Value::JavaScriptWithScope(..) => 0x0F,
            Value::Int32(_) => 0x10,
            Value::Timestamp(_) => 0x11,
            Value::Int64(_) => 0x12,
            Value::Decimal128(_) => 0x13,
            Value::MinKey => 0xFF,
            Value::MaxKey => 0x7F,
        }
    }
    /// The type's name as `$type` and error messages spell it ("int", "string", "object", ...).
    pub fn type_name(&self) -> &'static str {
        crate::raw::type_name(self.tag())
    }
    /// Appends this value under `name` to the document being written.
    pub fn write(&self, w: &mut DocWriter<'_>, name: &str) {
        match self {
            Value::Double(v) => w.double(name, *v),
            Value::String(v) => w.string(name, v),
            Value::Document(v) => w.document_with(name, |w| v.write_fields(w)),
            Value::Array(v) => w.array_with(name, |w| {
                for (i, item) in v.iter().enumerate() {
                    w.with_index(i, |w, n| item.write(w, n));
                }
            }),
            Value::Binary(v) => w.binary(name, v.subtype, &v.bytes),
            Value::Undefined => w.tag_only(0x06, name),
            Value::ObjectId(v) => w.object_id(name, *v),
            Value::Boolean(v) => w.bool(name, *v),
            Value::DateTime(v) => w.date(name, *v),
            Value::Null => w.null(name),
            Value::Regex(v) => w.regex(name, &v.pattern, &v.options),
            Value::DbPointer(p) => w.db_pointer(name, &p.ns, p.id),
            Value::JavaScript(v) => w.string_like(0x0D, name, v),
            Value::Symbol(v) => w.string_like(0x0E, name, v),
            Value::JavaScriptWithScope(c) => w.code_with_scope(name, &c.code, &c.scope.to_doc_buf()),
            Value::Int32(v) => w.i32(name, *v),
            Value::Timestamp(v) => w.timestamp(name, *v),
            Value::Int64(v) => w.i64(name, *v),
            Value::Decimal128(v) => w.decimal(name, *v),
            Value::MinKey => w.tag_only(0xFF, name),
            Value::MaxKey => w.tag_only(0x7F, name),
        }
    }
    /// The value borrowed, unless it is a document, an array or code with scope, which are bytes when borrowed.
    pub fn as_scalar(&self) -> Option<ValueRef<'_>> {
        Some(match self {
            Value::Document(_) | Value::Array(_) | Value::JavaScriptWithScope(..) => return None,
            Value::Double(v) => ValueRef::Double(*v),
            Value::String(v) => ValueRef::String(v),
            Value::Binary(v) => ValueRef::Binary(v.subtype, &v.bytes),
            Value::Undefined => ValueRef::Undefined,
            Value::ObjectId(v) => ValueRef::ObjectId(*v),
            Value::Boolean(v) => ValueRef::Boolean(*v),
            Value::DateTime(v) => ValueRef::DateTime(*v),
            Value::Null => ValueRef::Null,
            Value::Regex(v) => ValueRef::Regex(&v.pattern, &v.options),
            Value::DbPointer(p) => ValueRef::DbPointer(&p.ns, p.id),
            Value::JavaScript(v) => ValueRef::JavaScript(v),
            Value::Symbol(v) => ValueRef::Symbol(v),
            Value::Int32(v) => ValueRef::Int32(*v),
            Value::Timestamp(v) => ValueRef::Timestamp(*v),
            Value::Int64(v) => ValueRef::Int64(*v),
            Value::Decimal128(v) => ValueRef::Decimal128(*v),
            Value::MinKey => ValueRef::MinKey,
            Value::MaxKey => ValueRef::MaxKey,
        })
    }
    /// A one-field document `{"": self}`, for code that wants a [`ValueRef`] of an owned value.
    pub fn to_holder(&self) -> DocBuf {
        let mut bytes = Vec::with_capacity(32);
        DocWriter::write(&mut bytes, |w| self.write(w, ""));
        DocBuf::from_validated(bytes)
    }
}

macro_rules! from {
    ($($t:ty => $e:expr;)*) => { $(impl From<$t> for Value { fn from(v: $t) -> Value { let f: fn($t) -> Value = $e; f(v) } })* };
}
from! {
    f64 => Value::Double; i32 => Value::Int32; i64 => Value::Int64; bool => Value::Boolean;
    u32 => |v| Value::Int64(v as i64);
    &str => |v| Value::String(v.to_string()); String => Value::String; &String => |v| Value::String(v.clone());
    Document => Value::Document; &Document => |v| Value::Document(v.clone()); Vec<Value> => Value::Array; ObjectId => Value::ObjectId;
    Timestamp => Value::Timestamp; Decimal128 => Value::Decimal128; Binary => Value::Binary; Regex => |v| Value::Regex(Box::new(v));
    DbPointer => |v| Value::DbPointer(Box::new(v)); CodeWithScope => |v| Value::JavaScriptWithScope(Box::new(v));
    Vec<Document> => |v| Value::Array(v.into_iter().map(Value::Document).collect());
    Vec<String> => |v| Value::Array(v.into_iter().map(Value::String).collect());
    Doc<'_> => |v| Value::Document(v.to_document()); ValueRef<'_> => |v| v.to_value();
    DocBuf => |v| Value::Document(v.doc().to_document()); &Value => |v| v.clone();
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Value {
        v.map_or(Value::Null, Into::into)
    }
}

/// An ordered list of fields. Names may repeat when the bytes did; [`Document::get`] finds the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document(pub Vec<(String, Value)>);

impl Document {
    pub fn new() -> Document {
        Document(Vec::new())
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Value)> + ExactSizeIterator {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(k, _)| k.as_str())
    }
    pub fn first(&self) -> Option<(&str, &Value)> {
        self.0.first().map(|(k, v)| (k.as_str(), v))
    }
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k == name).map(|(_, v)| v)
    }
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(k, _)| k == name).map(|(_, v)| v)
    }
    /// The value, unless it is missing or null: on an optional command field null means absent.
    pub fn get_present(&self, name: &str) -> Option<&Value> {
        self.get(name).filter(|v| !matches!(v, Value::Null | Value::Undefined))
    }
    /// A value by dotted path through documents (not arrays).
    pub fn get_path(&self, path: &str) -> Option<&Value> {
        match path.split_once('.') {
            None => self.get(path),
            Some((head, rest)) => self.get(head)?.as_document()?.get_path(rest),
        }
    }
    pub fn get_str(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }
    pub fn get_i64(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }
    pub fn get_bool(&self, name: &str) -> Option<bool> {
        self.get(name).and_then(Value::as_bool)
    }
    pub fn get_document(&self, name: &str) -> Option<&Document> {
        self.get(name).and_then(Value::as_document)
    }
    pub fn get_array(&self, name: &str) -> Option<&Vec<Value>> {
        self.get(name).and_then(Value::as_array)
    }
    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
    /// Appends without looking for an existing field of this name.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.0.push((name.into(), value.into()));
    }
    /// Replaces the field in place, or appends it.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let name = name.into();
        match self.get_mut(&name) {
            Some(slot) => *slot = value.into(),
            None => self.0.push((name, value.into())),
        }
    }
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(k, _)| k == name)?;
        Some(self.0.remove(at).1)
    }
    pub fn write_fields(&self, w: &mut DocWriter<'_>) {
        for (name, value) in &self.0 {
            value.write(w, name);
        }
    }
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        DocWriter::write(&mut bytes, |w| self.write_fields(w));
        bytes
    }
    pub fn to_doc_buf(&self) -> DocBuf {
        DocBuf::from_validated(self.to_vec())
    }
}
impl FromIterator<(String, Value)> for Document {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(iter: I) -> Document {
        Document(iter.into_iter().collect())
    }
}
impl IntoIterator for Document {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
