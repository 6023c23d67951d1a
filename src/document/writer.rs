//! Writes BSON straight into a byte buffer.

use crate::{Decimal128, Doc, ObjectId, Timestamp, ValueRef};

/// Appends elements to one open document. Lengths are patched when a document closes.
pub struct DocWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> DocWriter<'a> {
    /// Appends one whole document to `out`, with the elements that `f` writes.
    pub fn write(out: &'a mut Vec<u8>, f: impl FnOnce(&mut DocWriter<'_>)) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        f(&mut DocWriter { out });
        close(out, start);
    }
    /// Continues a document that the caller opened in `out` (its length already reserved) and will close itself.
    pub fn resume(out: &'a mut Vec<u8>) -> DocWriter<'a> {
        DocWriter { out }
    }
    /// A new buffer holding one document.
    pub fn build(f: impl FnOnce(&mut DocWriter<'_>)) -> crate::DocBuf {
        let mut out = Vec::with_capacity(128);
        DocWriter::write(&mut out, f);
        crate::DocBuf::from_validated(out)
    }
    fn head(&mut self, tag: u8, name: &str) {
        self.out.push(tag);
        self.c_string(name);
    }
    /// It cannot hold NUL on the wire; anything after one would be read as the next thing, so it is cut off.
    fn c_string(&mut self, text: &str) {
        let end = crate::raw::name_length(text.as_bytes()).unwrap_or(text.len());
        self.out.extend_from_slice(&text.as_bytes()[..end]);
        self.out.push(0);
    }
    fn scalar(&mut self, tag: u8, name: &str, bytes: &[u8]) {
        self.head(tag, name);
        self.out.extend_from_slice(bytes);
    }
    pub fn double(&mut self, name: &str, v: f64) {
        self.scalar(0x01, name, &v.to_le_bytes());
    }
    pub fn i32(&mut self, name: &str, v: i32) {
        self.scalar(0x10, name, &v.to_le_bytes());
    }
    pub fn i64(&mut self, name: &str, v: i64) {
        self.scalar(0x12, name, &v.to_le_bytes());
    }
    pub fn bool(&mut self, name: &str, v: bool) {
        self.scalar(0x08, name, &[v as u8]);
    }
    pub fn date(&mut self, name: &str, millis: i64) {
        self.scalar(0x09, name, &millis.to_le_bytes());
    }
    pub fn null(&mut self, name: &str) {
        self.head(0x0A, name);
    }
    /// Null, undefined, MinKey and MaxKey: types without a value.
    pub fn tag_only(&mut self, tag: u8, name: &str) {
        self.head(tag, name);
    }
    pub fn object_id(&mut self, name: &str, v: ObjectId) {
        self.scalar(0x07, name, &v.0);
    }
    pub fn timestamp(&mut self, name: &str, v: Timestamp) {
        self.scalar(0x11, name, &v.as_u64().to_le_bytes());
    }
    pub fn decimal(&mut self, name: &str, v: Decimal128) {
        self.scalar(0x13, name, &v.0);
    }
    pub fn string(&mut self, name: &str, v: &str) {
        self.string_like(0x02, name, v);
    }
    /// String, JavaScript (0x0D) and symbol (0x0E) share one layout.
    pub fn string_like(&mut self, tag: u8, name: &str, v: &str) {
        self.head(tag, name);
        self.raw_string(v);
    }
    fn raw_string(&mut self, v: &str) {
        self.out.extend_from_slice(&(v.len() as i32 + 1).to_le_bytes());
        self.out.extend_from_slice(v.as_bytes());
        self.out.push(0);
    }
    pub fn binary(&mut self, name: &str, subtype: u8, bytes: &[u8]) {
        self.head(0x05, name);
        self.out.extend_from_slice(&(bytes.len() as i32).to_le_bytes());
        self.out.push(subtype);
        self.out.extend_from_slice(bytes);
    }
    pub fn uuid(&mut self, name: &str, v: &[u8; 16]) {
        self.binary(name, 4, v);
    }
    pub fn regex(&mut self, name: &str, pattern: &str, options: &str) {
        self.head(0x0B, name);
        self.c_string(pattern);
        self.c_string(options);
    }
    pub fn db_pointer(&mut self, name: &str, ns: &str, id: ObjectId) {
        self.head(0x0C, name);
        self.raw_string(ns);
        self.out.extend_from_slice(&id.0);
    }
    pub fn code_with_scope(&mut self, name: &str, code: &str, scope: &crate::DocBuf) {
        self.head(0x0F, name);
        let total = 4 + 4 + code.len() + 1 + scope.bytes().len();
        self.out.extend_from_slice(&(total as i32).to_le_bytes());
        self.raw_string(code);
        self.out.extend_from_slice(scope.bytes());
    }
    pub fn document(&mut self, name: &str, v: Doc<'_>) {
        self.scalar(0x03, name, v.bytes());
    }
    /// An array given as the document of its elements.
    pub fn array(&mut self, name: &str, v: Doc<'_>) {
        self.scalar(0x04, name, v.bytes());
    }
    pub fn document_with(&mut self, name: &str, f: impl FnOnce(&mut DocWriter<'_>)) {
        self.head(0x03, name);
        DocWriter::write(self.out, f);
    }
    /// The closure names its elements "0", "1", ... ([`DocWriter::with_index`] helps).
    pub fn array_with(&mut self, name: &str, f: impl FnOnce(&mut DocWriter<'_>)) {
        self.head(0x04, name);
        DocWriter::write(self.out, f);
    }
    /// Calls `f` with the decimal name of array position `i`.
    pub fn with_index(&mut self, i: usize, f: impl FnOnce(&mut DocWriter<'_>, &str)) {
        let mut buffer = [0u8; 20];
        let mut at = buffer.len();
        let mut n = i;
        loop {
            at -= 1;
            buffer[at] = b'0' + (n % 10) as u8;
            n /= 10;
            if n == 0 {
                break;
            }
        }
        f(self, std::str::from_utf8(&buffer[at..]).unwrap_or("0"));
    }
    pub fn value(&mut self, name: &str, v: ValueRef<'_>) {
        match v {
            ValueRef::Document(v) => self.document(name, v),
            ValueRef::Array(v) => self.array(name, v),
            ValueRef::Double(v) => self.double(name, v),
            ValueRef::String(v) => self.string(name, v),
            ValueRef::Binary(subtype, v) => self.binary(name, subtype, v),
            ValueRef::ObjectId(v) => self.object_id(name, v),
            ValueRef::Boolean(v) => self.bool(name, v),
            ValueRef::DateTime(v) => self.date(name, v),
            ValueRef::Regex(pattern, options) => self.regex(name, pattern, options),
            ValueRef::DbPointer(ns, id) => self.db_pointer(name, ns, id),
            ValueRef::JavaScript(code) => self.string_like(0x0D, name, code),
            ValueRef::Symbol(symbol) => self.string_like(0x0E, name, symbol),
            ValueRef::JavaScriptWithScope(code, scope) => self.code_with_scope(name, code, &scope.to_owned()),
            ValueRef::Int32(v) => self.i32(name, v),
            ValueRef::Timestamp(v) => self.timestamp(name, v),
            ValueRef::Int64(v) => self.i64(name, v),
            ValueRef::Decimal128(v) => self.decimal(name, v),
            ValueRef::Null | ValueRef::Undefined | ValueRef::MinKey | ValueRef::MaxKey => {
                self.tag_only(v.tag(), name)
            }
        }
    }
    /// Copies an element as it is: tag, name and value bytes.
    pub fn element(&mut self, e: &crate::Element<'_>) {
        self.out.extend_from_slice(e.whole());
    }
    /// Copies an element's value under another name.
    pub fn element_as(&mut self, name: &str, e: &crate::Element<'_>) {
        self.scalar(e.tag(), name, e.value_bytes());
    }
    /// All elements of `v`, in place.
    pub fn fields_of(&mut self, v: Doc<'_>) {
        let b = v.bytes();
        if b.len() >= 5 {
            self.out.extend_from_slice(&b[4..b.len() - 1]);
        }
    }
    /// The number of bytes written so far to the underlying buffer.
    pub fn position(&self) -> usize {
        self.out.len()
    }
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.out
    }
}

fn close(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}
